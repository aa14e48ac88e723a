"""The ports that the gateway will listen on."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

from signoff.config import Config
from signoff.loopback import is_loopback, is_signoff
from signoff.ports import Finding


def port_findings(config: Config) -> Iterator[Finding]:
    """Whether the addresses are free. For a gateway that does not run."""
    settings = config.gateway
    yield _free(settings.host, settings.port, "port")
    if config.webhooks:
        yield _free(settings.hooks_host, settings.hooks_port, "hooks port")


def reachable_findings(config: Config) -> Iterator[Finding]:
    """A warning where other machines can call the API, which has no TLS of its own."""
    host = config.gateway.host
    if not is_loopback(host):
        yield Finding.warning(
            "gateway.host",
            f"{host} lets other machines call the API, whose keys and log-ins then cross the network unencrypted.",
            "Let a proxy with https alone reach it, or set it to 127.0.0.1 (docs/security.md).",
        )


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
        return _taken(error, where, about, name, ours=error.errno == errno.EADDRINUSE and is_signoff(host, port))
    return Finding.fine(about, f"{where} is free." if port else f"{host}: any free port is taken.")


def _taken(error: OSError, where: str, about: str, name: str, *, ours: bool) -> Finding:
    if ours:
        text = f"Another Signoff gateway, with a state folder of its own, listens on {where}."
        return Finding.problem(about, text, f"Stop that one, name its settings with --config, or set {name}.")
    if error.errno == errno.EADDRINUSE:
        return Finding.problem(about, f"Another program listens on {where}.", f"Stop it, or set {name}.")
    if error.errno == errno.EACCES:
        return Finding.problem(about, f"Only root may listen on {where}.", f"Set {name} to 1024 or above.")
    return Finding.problem(about, f"{where} cannot be listened on: {error.strerror}.", f"Set {name[:-4]}host.")
