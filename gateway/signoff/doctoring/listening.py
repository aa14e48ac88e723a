"""The ports that the gateway will listen on."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

from signoff.config import Config
from signoff.ports import Finding


def port_findings(config: Config) -> Iterator[Finding]:
    """Whether the addresses are free. For a gateway that does not run."""
    settings = config.gateway
    yield _free(settings.host, settings.port, "port")
    if config.webhooks:
        yield _free(settings.hooks_host, settings.hooks_port, "hooks port")


def _free(host: str, port: int, about: str) -> Finding:
    name = "gateway.port" if about == "port" else "gateway.hooks_port"
    where = f"{host}:{port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except socket.gaierror:
        return Finding.problem(about, f"{host} is no address of this machine.", f"Set {name[:-4]}host.")
    except OSError as error:
        return _taken(error, where, about, name)
    return Finding.fine(about, f"{where} is free." if port else f"{host}: any free port is taken.")


def _taken(error: OSError, where: str, about: str, name: str) -> Finding:
    if error.errno == errno.EADDRINUSE:
        return Finding.problem(about, f"Another program listens on {where}.", f"Stop it, or set {name}.")
    if error.errno == errno.EACCES:
        return Finding.problem(about, f"Only root may listen on {where}.", f"Set {name} to 1024 or above.")
    return Finding.problem(about, f"{where} cannot be listened on: {error.strerror}.", f"Set {name[:-4]}host.")
