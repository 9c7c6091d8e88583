"""The MCP server: the SDK's low-level server with the answers of a pack, over stdin and stdout or streamable HTTP."""

from __future__ import annotations

import logging
import time
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server

from skillpack.hosts.calls import MAX_WAITING, Calls, in_thread
from skillpack.hosts.mcp.pack_server import INSTRUCTIONS, Asking, PackServer
from skillpack.hosts.mcp.skill_files import EXTENSIONS
from skillpack.hosts.mcp.work_resources import NotServedError
from skillpack.hosts.pack import pack_version

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from skillpack.hosts.guard import Access
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
    from skillpack.hosts.mcp.stdio_transport import serve

    serve(sdk_server(PackServer(pack, Calls(pack.max_workers), style)), pack)


def run_http(pack: Pack, style: NameStyle, access: Access, port: int, max_body: int) -> None:
    """Serve any number of clients over streamable HTTP at ``/mcp``."""
    from mcp.server.transport_security import TransportSecuritySettings

    from skillpack.hosts.guard import Guard
    from skillpack.hosts.listening import serve

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
