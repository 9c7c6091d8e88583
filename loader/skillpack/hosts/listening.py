"""Serve an ASGI application on a port until a signal stops the process."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from skillpack.exceptions import SkillpackError
from sturdy.atomic_files import replace_file

if TYPE_CHECKING:
    import asyncio

    from skillpack.hosts.guard import Access, App

TOKEN_VARIABLE = "SKILLPACK_TOKEN"  # noqa: S105 - the variable's name
GRACE_SECONDS = 10
MAX_CONNECTIONS = 256
MAX_IDLE = MAX_CONNECTIONS // 2  # connections without a request; beyond these the oldest one is closed
REQUEST_SECONDS = 20.0  # time for the head of a request


class HostError(SkillpackError):
    """A server cannot be started with these options."""


def read_token(file: str | None) -> str | None:
    """Return the token from a file, or else from the environment; None if there is none.

    Raises:
        HostError: If the file cannot be read.
    """
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(f"the token file {file} cannot be read: {error}") from error


def new_token(file: str | None) -> tuple[str, str]:
    """Return a random token and a note for the owner; the token is in ``file`` (mode 0600) if given, else in the note.

    Raises:
        HostError: If the file cannot be written.
    """
    token = secrets.token_urlsafe(32)
    if file is None:
        return token, f"every request needs the header 'Authorization: Bearer {token}'"
    try:
        replace_file(file, f"{token}\n".encode(), mode=0o600)
    except OSError as error:
        raise HostError(f"the token file {file} cannot be written: {error.strerror}") from error
    return token, f"every request needs the token in {file}"


def serve(app: App, access: Access, port: int, *, path: str = "", grace: float = GRACE_SECONDS) -> None:
    """Serve ``app`` until SIGINT, SIGTERM or SIGHUP; running calls then have ``grace`` seconds to finish.

    Standard error gets the address, with the port that was chosen where ``port`` is 0, and then the note of ``access``.

    Raises:
        HostError: If the address cannot be listened on.
    """
    config = uvicorn.Config(
        app,
        http=PromptConnection,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=max(1, round(grace)),
    )
    # Left alone, SIGHUP would end this process and leave its tools behind.
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    listener = _listener(access.host, port)
    name = f"[{access.host}]" if ":" in access.host else access.host
    print(f"skillpack: serving http://{name}:{listener.getsockname()[1]}{path}", file=sys.stderr, flush=True)  # noqa: T201
    if access.note:
        print(f"skillpack: {access.note}", file=sys.stderr, flush=True)  # noqa: T201
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:  # uvicorn has shut down and hands the signal on
        return
    finally:
        listener.close()


def _listener(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server((host, port), family=family, backlog=128, dualstack_ipv6=both)
    except (OSError, OverflowError) as error:
        raise HostError(f"cannot listen on {host} port {port}: {error}") from error


class PromptConnection(H11Protocol):
    """A connection that is closed if the head of a request, the first or a later one, does not arrive in time.

    Otherwise clients that send nothing, or very little, could hold all connections for ever. While they wait, they hold
    ``MAX_IDLE`` of them at most. Heads are bounded (64 KiB) by h11, therefore this is not uvicorn's default parser.
    """

    _timer: asyncio.TimerHandle | None = None
    idle_since = 0.0

    def connection_made(self, transport: Any) -> None:
        """Start waiting for the first request; close the connections that have waited longest if there are many."""
        super().connection_made(transport)
        self._watch()
        idle = [each for each in self.connections if isinstance(each, PromptConnection) and each.is_idle()]
        for each in sorted(idle, key=lambda each: each.idle_since)[:-MAX_IDLE]:
            each.transport.close()

    def is_idle(self) -> bool:
        """Return whether the connection is open and no request on it is being answered."""
        return not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete)

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_watching()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Wait for the head of a request, from its first byte or from the start of the connection."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_watching()
        elif self._timer is None:
            self._timer = self.loop.call_later(REQUEST_SECONDS, self.transport.close)
            self.idle_since = self.loop.time()

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
