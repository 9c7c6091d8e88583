"""The MCP server: the SDK's low-level server with the answers of a pack, over stdin and stdout or streamable HTTP.

Over stdin and stdout a line is a message. The SDK's own transport drops a line that is not a message, so that a client
whose model wrote half of a surrogate pair waits until its timeout; it reads lines of any length, and does not end at a
signal. This transport answers such a line with an error, limits the length of lines, and ends at a signal.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache, partial
from typing import IO, TYPE_CHECKING, Any

import anyio
import mcp_types as types
from anyio import to_thread
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from skillpack.hosts.mcp.pack_server import INSTRUCTIONS, Asking, PackServer
from skillpack.hosts.mcp.skill_files import EXTENSIONS
from skillpack.hosts.mcp.work_resources import NotServedError
from skillpack.hosts.pack import MAX_WAITING, Calls, in_thread, pack_version

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from skillpack.hosts.listening import Access
    from skillpack.hosts.pack import Pack
    from skillpack.hosts.served_schemas import NameStyle

PATH = "/mcp"
REPORT_SECONDS = 0.2  # shortest time between two progress reports
HEARTBEAT_SECONDS = 5.0  # longest time between two, so that a client's timeout restarts
MORE_THREADS = 8  # for short requests; calls that run or wait have their own
_LOG = logging.getLogger(__name__)


class UriParams(types.PaginatedRequestParams):
    """Parameters of ``skills/get`` and ``resources/directory/read``."""

    uri: str


_PARAMS: dict[str, type[types.RequestParams]] = {
    "tools/call": types.CallToolRequestParams,
    "resources/read": types.ReadResourceRequestParams,
    "skills/get": UriParams,
    "resources/directory/read": UriParams,
}


def run_stdio(pack: Pack, style: NameStyle) -> None:
    """Serve one client over stdin and stdout until it disconnects, or until SIGTERM, SIGHUP or Ctrl-C.

    This ends the process: a thread may still wait for a line, or for a client that does not read.
    """
    server = sdk_server(PackServer(pack, Calls(pack.max_workers), style))
    with _standard_streams() as (lines, answers):
        anyio.run(_serve_until_signal, server, Pipe(lines, answers, MAX_ESCAPED * pack.max_upload + MORE_BYTES), pack)


def run_http(pack: Pack, style: NameStyle, access: Access, port: int, max_body: int) -> None:
    """Serve any number of clients over streamable HTTP at ``/mcp``."""
    from mcp.server.transport_security import TransportSecuritySettings

    from skillpack.hosts.listening import Guard, serve

    server = sdk_server(PackServer(pack, Calls(pack.max_workers), style))
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the guard checks
    app = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=unchecked, max_request_body_size=max_body
    )
    serve(Guard(app, access, max_body=max_body), access, port, path=PATH)


def sdk_server(pack_server: PackServer) -> Server[Any]:
    """Return a server of the SDK that checks requests and gets its answers from the pack's server."""
    server: Server[Any] = Server(
        "skillpack", version=pack_version(), title="Skills and their tools", instructions=INSTRUCTIONS
    )
    server.extensions = EXTENSIONS
    server.middleware.append(_with_extensions)
    most = pack_server.calls.max_running + MAX_WAITING + MORE_THREADS
    threads = lru_cache(maxsize=1)(partial(anyio.CapacityLimiter, most))  # made in the event loop
    for method in pack_server.methods:
        kind = _PARAMS.get(method, types.PaginatedRequestParams)
        server.add_request_handler(method, kind, _handler(pack_server, method, threads))
    return server


def _handler(
    pack_server: PackServer, method: str, threads: Callable[[], anyio.CapacityLimiter]
) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Return the handler of one method; the SDK has checked the parameters, which are passed on unchanged."""

    async def handle(context: ServerRequestContext[Any, Any], _: Any) -> dict[str, Any]:
        asking = Asking(context.protocol_version)

        def answer() -> dict[str, Any] | MCPError:
            try:
                return {"resultType": "complete", **pack_server.methods[method](context.params or {}, asking)}
            except NotServedError as error:
                return MCPError(types.INVALID_PARAMS, str(error))
            except Exception:  # noqa: BLE001 - the outermost boundary; its text is for the log, not for the client
                _LOG.exception("request %s failed", method)
                return MCPError(types.INTERNAL_ERROR, "Internal error; the server's log says more")

        async with _reporting(context, asking):
            result = await in_thread(answer, asking.cancellation, threads())
        if isinstance(result, MCPError):
            raise result
        return result

    return handle


async def _with_extensions(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Put the extensions into the answer to ``initialize``: the SDK keeps them for revisions that know the field."""
    result = await call_next(ctx)
    if ctx.method == "initialize" and isinstance(result, dict):
        return {**result, "capabilities": {**result.get("capabilities", {}), "extensions": EXTENSIONS}}
    return result


@asynccontextmanager
async def _reporting(context: ServerRequestContext[Any, Any], asking: Asking) -> AsyncIterator[None]:
    """Within the block, report progress to a client that asked for it: the lines that a tool writes to stderr.

    Without any, report how long it has run.
    """
    start = last = time.monotonic()
    count = 0

    async def report(*, ended: bool = False) -> None:
        nonlocal count, last
        lines, now = asking.output.take(), time.monotonic()
        if lines or (not ended and now - last >= HEARTBEAT_SECONDS):
            count, last = count + 1, now
            message = "\n".join(lines) if lines else f"running for {now - start:.0f} s"
            await context.session.report_progress(count, message=message)

    async def keep_reporting() -> None:
        while True:
            await anyio.sleep(REPORT_SECONDS)
            await report()

    async with anyio.create_task_group() as group:
        group.start_soon(keep_reporting)
        yield
        group.cancel_scope.cancel()
    await report(ended=True)


MAX_ESCAPED = 6  # bytes of JSON for one byte of a text, as in \\u0000; a line can hold the longest uploaded file
MORE_BYTES = 1 << 16  # of a line, besides such a file
END_SECONDS = 2.0  # time for the last answers when the client's input ends


async def _serve_until_signal(server: Server[Any], wire: Pipe, pack: Pack) -> None:
    numbers = [signal.SIGTERM, signal.SIGINT]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup wants it ignored
        numbers.append(signal.SIGHUP)
    with anyio.open_signal_receiver(*numbers) as received:  # further signals disturb nothing
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                await received.__anext__()
                group.cancel_scope.cancel()

            group.start_soon(stop)
            await wire.carry(server)
            group.cancel_scope.cancel()
        pack.close()
        os._exit(0)  # a thread may wait for a line, or for a client that does not read


class Pipe:
    """Carries the messages of one client to a server and back.

    Args:
        lines: Where messages come from, one per line.
        answers: Where messages go; not buffered.
        longest: Most bytes of a line.
    """

    def __init__(self, lines: IO[bytes], answers: IO[bytes], longest: int) -> None:
        self._lines = lines
        self._answers = answers
        self._longest = longest
        self._unanswered: set[str | int | None] = set()  # ids of requests that run no tool
        self._answered: anyio.Event | None = None  # after the end of the input

    async def carry(self, server: Server[Any]) -> None:
        """Serve until the input ends. Then requests that run no tool are answered, and tools are killed."""
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception]()
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage]()
        async with anyio.create_task_group() as group:
            group.start_soon(self._read, to_server, to_client.clone())
            group.start_soon(self._write, from_server)
            await server.run(from_client, to_client, server.create_initialization_options())
            group.cancel_scope.deadline = anyio.current_time() + END_SECONDS

    async def _read(
        self, to_server: MemoryObjectSendStream[SessionMessage | Exception], to_client: MemoryObjectSendStream[Any]
    ) -> None:
        async with to_server, to_client:
            while line := await self._line():
                if not line.strip():
                    continue
                try:
                    message = _parsed(line, self._longest)
                except NotAMessageError as problem:
                    if problem.answer is not None:
                        await to_client.send(SessionMessage(problem.answer))
                    continue
                if isinstance(message, types.JSONRPCRequest) and message.method != "tools/call":
                    self._unanswered.add(message.id)
                await to_server.send(SessionMessage(message))
            if self._unanswered:
                self._answered = anyio.Event()
                with anyio.move_on_after(END_SECONDS):
                    await self._answered.wait()

    async def _line(self) -> bytes:
        """Return the next line; what it has beyond the longest that is taken is not kept."""
        read = partial(self._lines.readline, self._longest + 1)
        line = piece = await to_thread.run_sync(read, abandon_on_cancel=True)
        while len(piece) > self._longest and not piece.endswith(b"\n"):
            piece = await to_thread.run_sync(read, abandon_on_cancel=True)
        return line

    async def _write(self, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async for item in from_server:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
            await to_thread.run_sync(self._write_line, text.encode(), abandon_on_cancel=True)
            if isinstance(item.message, (types.JSONRPCResponse, types.JSONRPCError)):
                self._unanswered.discard(item.message.id)
                if self._answered is not None and not self._unanswered:
                    self._answered.set()

    def _write_line(self, line: bytes) -> None:
        """Write a line. If the client is gone, this does nothing: the end of its input ends the session."""
        try:
            self._answers.write(line)
            self._answers.flush()
        except (OSError, ValueError):
            return


class NotAMessageError(ValueError):
    """A line is not a message.

    Attributes:
        answer: The answer to its sender, or None if it waits for none.
    """

    def __init__(self, code: int, text: str, value: Any = None) -> None:
        super().__init__(text)
        fields = value if isinstance(value, dict) else {}
        given = fields.get("id")
        is_id = isinstance(given, (str, int)) and not isinstance(given, bool) and _is_text(given)
        waits = value is None or not isinstance(value, dict) or {"method", "id"} <= {*fields}
        error = types.ErrorData(code=code, message=text)
        self.answer = types.JSONRPCError(jsonrpc="2.0", id=given if is_id else None, error=error) if waits else None


def _parsed(line: bytes, longest: int) -> types.JSONRPCMessage:
    """Return the message in a line.

    Raises:
        NotAMessageError: If there is none.
    """
    if len(line) > longest:
        raise NotAMessageError(types.PARSE_ERROR, f"Parse error: the line is longer than {longest} bytes")
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except RecursionError:
        raise NotAMessageError(types.PARSE_ERROR, "Parse error: nested too deep") from None
    except ValueError as error:
        raise NotAMessageError(types.PARSE_ERROR, f"Parse error: {error}") from None
    if b"\\ud" in line.lower() and not _is_text(value):
        raise NotAMessageError(types.PARSE_ERROR, "Parse error: lone surrogate, which is not Unicode text", value)
    try:
        message = types.jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        raise NotAMessageError(types.INVALID_REQUEST, "Invalid request", value) from None
    if isinstance(message, types.JSONRPCNotification) and "id" in value:  # a request whose id is none
        raise NotAMessageError(types.INVALID_REQUEST, "Invalid request", value)
    return message


def _is_text(value: object) -> bool:
    """Return whether a value can be written as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


@contextmanager
def _standard_streams() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Yield the client's streams. Within the block, other output goes to stderr, and stdin is empty."""
    sys.stdout.flush()
    with os.fdopen(os.dup(0), "rb") as lines, os.fdopen(os.dup(1), "wb") as answers:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        yield lines, answers
