"""Serve an ASGI application on a port until a signal stops the process, and check every request before it.

The checks are middleware: host, origin, token and body size. A web page must not reach a server on this machine
through the user's browser: the Host header must name this server (against DNS rebinding), and a foreign Origin is
refused. The servers also require a body to be declared as JSON, which a page of another site cannot send without a
preflight request.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import signal
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from skillpack.exceptions import SkillpackError
from skillscript.envelope import ErrorCode, SkillError, SkillResult, to_json
from sturdy.atomic_files import replace_file

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, MutableMapping

    Message = MutableMapping[str, Any]
    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]
    import asyncio

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
MAX_BODY_BYTES = 4 << 20
BODY_SECONDS = 30.0
IDLE_SECONDS = 0.3  # without a byte of a body that is refused
DISCARDED_BODIES = 16  # longest body that is read to be refused, in longest accepted ones
MIN_TOKEN = 16
_OPEN_PATHS = frozenset({"/healthz", "/docs"})  # served without a token: they reveal nothing of the pack
TOKEN_VARIABLE = "SKILLPACK_TOKEN"  # noqa: S105 - the variable's name
GRACE_SECONDS = 10
MAX_CONNECTIONS = 256
MAX_IDLE = MAX_CONNECTIONS // 2  # connections without a request; beyond these the oldest one is closed
REQUEST_SECONDS = 20.0  # time for the head of a request


class RefusedError(Exception):
    """A request that is refused.

    Args:
        status: HTTP status.
        message: The reason, for the client.
        headers: Further headers of the answer.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


@dataclass(frozen=True)
class Access:
    """Who may send requests.

    Attributes:
        host: Address the server listens on.
        token: The token that every request needs, or None.
        names: Further names under which the server is reached.
        note: Text for the owner when the server starts, such as a token made for this run; or "".
    """

    host: str = "127.0.0.1"
    token: str | None = field(default=None, repr=False)
    names: frozenset[str] = frozenset()
    note: str = field(default="", repr=False)

    def problem(self) -> str | None:
        """Return why a server must not start with this, or None."""
        if self.token is not None and (len(self.token) < MIN_TOKEN or not self.token.isascii() or " " in self.token):
            return f"the token must be at least {MIN_TOKEN} ASCII characters without blanks"
        if self.token is None and not is_loopback(self.host):
            return (
                f"{self.host} can be reached from other machines, so every request needs a token; set "
                "SKILLPACK_TOKEN, --token-file or --write-token, or listen on 127.0.0.1"
            )
        return None

    def accepts_host(self, header: str) -> bool:
        """Return whether a Host header names this server."""
        if _is_any_address(self.host) and not self.names:
            return True  # its names are not known; the token protects against rebinding
        name = _host_name(header)
        return name is not None and name in {*LOOPBACK_NAMES, self.host.lower(), *self.names}

    def accepts_token(self, header: str) -> bool:
        """Return whether an Authorization header contains the token."""
        if self.token is None:
            return True
        scheme, _, given = header.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self.token.encode())


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Guard:
    """Passes requests to ``app`` with their bounded body, or refuses them with an envelope.

    Attributes:
        app: ASGI application.
        access: Who may send requests.
        max_body: Longest body. [bytes]
        body_seconds: Longest time for the body to arrive. [s]
    """

    app: App
    access: Access
    max_body: int = MAX_BODY_BYTES
    body_seconds: float = BODY_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            headers = _headers(scope)
            self._check(scope, headers)
            first = await self._body(headers, receive)
        except RefusedError as refusal:
            if refusal.status == 413:
                await self._discard(receive)
            await answer_json(send, refusal.status, failure(str(refusal)), refusal.headers)
            return
        if first["type"] != "http.request":  # the client has gone
            return
        waiting: list[Message] = [first]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._answer(scope, replay, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app answer; if the server stops first, report that."""
        started = False

        async def noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, noting)
        except anyio.get_cancelled_exc_class():
            if started:
                raise
            text = "the server was stopped before the call had ended; the tool was killed"
            await answer_json(send, 503, failure(text, ErrorCode.SERVICE_UNAVAILABLE), {"connection": "close"})

    def _check(self, scope: Scope, headers: Mapping[str, str]) -> None:
        """Refuse a request that is meant for another server, or whose sender has no access."""
        if not self.access.accepts_host(headers.get("host", "")):
            raise RefusedError(421, "the Host header does not name this server")
        origin = headers.get("origin")
        if origin is not None and not self.access.accepts_host(origin.rpartition("://")[2]):
            raise RefusedError(403, "requests from pages of other sites are refused")
        if scope["path"] not in _OPEN_PATHS and not self.access.accepts_token(headers.get("authorization", "")):
            raise RefusedError(401, "this server requires the header 'Authorization: Bearer TOKEN'", _CHALLENGE)

    async def _body(self, headers: Mapping[str, str], receive: Receive) -> Message:
        """Return the whole body as one message."""
        declared = headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self.max_body:
            raise self._too_long()
        body = bytearray()
        with anyio.move_on_after(self.body_seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":  # the client has gone
                    return message
                body += message.get("body", b"")
                if len(body) > self.max_body:
                    raise self._too_long()
                if not message.get("more_body", False):
                    return {"type": "http.request", "body": bytes(body), "more_body": False}
        raise RefusedError(408, f"the body did not arrive within {self.body_seconds:g} s", {"connection": "close"})

    async def _discard(self, receive: Receive) -> None:
        """Read on for a while: a client that is still sending when the connection closes never sees the answer."""
        left = DISCARDED_BODIES * self.max_body
        with anyio.move_on_after(self.body_seconds):
            while left > 0:
                with anyio.move_on_after(IDLE_SECONDS) as idle:
                    message = await receive()
                if idle.cancelled_caught or message["type"] != "http.request" or not message.get("more_body", False):
                    return
                left -= len(message.get("body", b""))

    def _too_long(self) -> RefusedError:
        text = f"the body is longer than the {self.max_body} bytes allowed; keep large data in a file and name that"
        return RefusedError(413, text, {"connection": "close"})


def failure(
    message: str, code: str = ErrorCode.INVALID_PARAM, details: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the envelope of a request that failed before a tool was called."""
    return SkillResult.failure(SkillError(code, message, details)).to_dict()


async def answer_json(send: Send, status: int, value: dict[str, Any], headers: Mapping[str, str]) -> None:
    """Send a JSON answer."""
    body = to_json(value).encode("utf-8", "backslashreplace")
    fields = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    raw = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


_CHALLENGE = {"www-authenticate": 'Bearer realm="skillpack"'}


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers by lower-case name; one that is checked here must not be repeated."""
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1").lower()
        if name in found and name in ("host", "origin", "authorization", "content-type"):
            raise RefusedError(400, f"the header {name} is there twice")
        found[name] = raw_value.decode("latin-1")
    if "content-length" in found and "transfer-encoding" in found:
        # A proxy that uses one and a server that uses the other would disagree on where the next request begins.
        text = "a request has either Content-Length or Transfer-Encoding, not both"
        raise RefusedError(400, text, {"connection": "close"})
    return found


def _host_name(header: str) -> str | None:
    """Return the name in a Host header without port and brackets, or None if it is malformed."""
    text = header.strip().lower()
    if text.startswith("["):
        name, bracket, rest = text[1:].partition("]")
        return name if bracket and (not rest or (rest[0] == ":" and rest[1:].isdecimal())) else None
    name, colon, port = text.partition(":")
    return name if name and (not colon or port.isdecimal()) else None


def _is_any_address(host: str) -> bool:
    """Return whether a server on ``host`` listens on every address of the machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def is_json(content_type: str) -> bool:
    """Return whether a media type is JSON in UTF-8."""
    kind, _, parameters = content_type.partition(";")
    charset = parameters.strip().lower().replace('"', "")
    return kind.strip().lower() == "application/json" and charset in ("", "charset=utf-8")


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


def serve(app: App, access: Access, port: int, *, path: str = "") -> None:
    """Serve ``app`` until SIGINT, SIGTERM or SIGHUP; running calls then have ``GRACE_SECONDS`` to finish.

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
        timeout_graceful_shutdown=GRACE_SECONDS,
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
