"""Local administration: the same routes on a 0600 socket in the 0700 state folder.

Whoever reaches the socket is the operator, so only the gateway's own user and root are let in.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp.web_request import BaseRequest

from signoff.errors import ConfigError, InsufficientScope
from signoff.folder import locked, private_folder

SOCKET_NAME = "admin.sock"
LOCK_NAME = "admin.lock"
_LOCAL_PEERCRED = 1
"""macOS's socket option at level 0: a `struct xucred`, which begins with a version and the user id."""


def is_local(request: BaseRequest) -> bool:
    """Whether the request came over a Unix socket."""
    sock = _socket(request)
    return sock is not None and sock.family == socket.AF_UNIX


def peer_uid(request: BaseRequest) -> int:
    """The user id at the other end. Raises `InsufficientScope` unless it is ours or root's, or when it is gone."""
    sock = _socket(request)
    if sock is None:
        raise InsufficientScope("The caller has gone.")
    try:
        uid = _uid(sock)
    except OSError:
        raise InsufficientScope("The caller has gone.") from None
    if uid not in (0, os.geteuid()):
        raise InsufficientScope("Only the gateway's own user may use its local socket.")
    return uid


def _socket(request: BaseRequest) -> socket.socket | None:
    transport = request.transport
    return None if transport is None else transport.get_extra_info("socket")


def _uid(sock: socket.socket) -> int:
    if sys.platform == "darwin":
        _version, uid = struct.unpack("=II", sock.getsockopt(0, _LOCAL_PEERCRED, 8))
        return int(uid)
    _pid, uid, _gid = struct.unpack("=iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(uid)


@contextmanager
def local_socket(state_dir: Path) -> Iterator[socket.socket]:
    """A listening socket in the state folder, removed at the end.

    A lock file is held meanwhile: with it, a socket file that is there was left by a gateway that was killed, and is
    replaced. Raises `ConfigError` when another gateway holds the folder or the path cannot be used.
    """
    private_folder(state_dir)
    taken = f"A gateway already runs in {state_dir}. Stop it, or give this one its own gateway.state_dir."
    with locked(state_dir / LOCK_NAME, taken):
        path = state_dir / SOCKET_NAME
        sock = _bound(path)
        try:
            yield sock
        finally:
            sock.close()
            path.unlink(missing_ok=True)


def _bound(path: Path) -> socket.socket:
    if path.exists() and not stat.S_ISSOCK(path.stat().st_mode):
        raise ConfigError(f"{path} is in the way and is no socket. Move it, or set gateway.state_dir.")
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Until chmod nobody else can connect either: the folder is private, and a socket serves nobody before `listen`.
    try:
        sock.bind(str(path))
        path.chmod(0o600)
        sock.listen(128)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise ConfigError(f"{path} cannot be listened on: {error}. Set a shorter gateway.state_dir.") from None
    return sock
