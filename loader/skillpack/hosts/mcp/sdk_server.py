"""The MCP server over streamable HTTP, with the SDK's low-level server."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings

from skillpack.hosts.calls import Calls, in_thread
from skillpack.hosts.guard import Guard
from skillpack.hosts.listening import serve
from skillpack.hosts.mcp.pack_server import INSTRUCTIONS, REPORT_SECONDS, Asking, PackServer, Progress
from skillpack.hosts.mcp.protocol import RequestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from skillpack.hosts.guard import Access
    from skillpack.hosts.options import Listening
    from skillpack.hosts.pack import Pack
    from skillpack.hosts.served_schemas import NameStyle

PATH = "/mcp"


class UriParams(types.PaginatedRequestParams):
    """Parameters of ``skills/get`` and ``resources/directory/read``."""

    uri: str


_PARAMS: dict[str, type[types.RequestParams]] = {
    "tools/call": types.CallToolRequestParams,
    "resources/read": types.ReadResourceRequestParams,
    "skills/get": UriParams,
    "resources/directory/read": UriParams,
}


def run_http(pack: Pack, style: NameStyle, access: Access, listening: Listening) -> None:
    """Serve any number of clients over streamable HTTP at ``/mcp``."""
    server = sdk_server(PackServer(pack, Calls(pack.max_workers), style))
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the guard checks
    app = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=unchecked, max_request_body_size=listening.max_body
    )
    serve(Guard(app, access, max_body=listening.max_body), access, listening.port, path=PATH)


def sdk_server(pack_server: PackServer) -> Server[Any]:
    """Return a server of the SDK that checks requests and gets its answers from the pack's server."""
    identity = pack_server.identity
    server: Server[Any] = Server(
        identity["name"], version=identity["version"], title=identity["title"], instructions=INSTRUCTIONS
    )
    server.extensions = pack_server.extensions
    server.middleware.append(partial(_with_extensions, pack_server))
    for method in pack_server.methods:
        kind = _PARAMS.get(method, types.PaginatedRequestParams)
        server.add_request_handler(method, kind, _handler(pack_server, method))
    return server


def _handler(pack_server: PackServer, method: str) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Return the handler of one method; the SDK has checked the parameters, which are passed on unchanged."""

    async def handle(context: ServerRequestContext[Any, Any], _: Any) -> dict[str, Any]:
        asking = Asking(context.protocol_version)

        def answer() -> dict[str, Any] | RequestError:
            try:
                return pack_server.answer(method, context.params or {}, asking)
            except RequestError as error:
                return error

        async with _reporting(context, asking):
            result = await in_thread(answer, asking.cancellation)
        if isinstance(result, RequestError):
            raise MCPError(result.code, result.message, result.data) from result
        return {"resultType": "complete", **result}

    return handle


async def _with_extensions(
    pack_server: PackServer, context: ServerRequestContext[Any, Any], call_next: CallNext
) -> HandlerResult:
    """Put the extensions into the answer to ``initialize``: the SDK keeps them for revisions that know the field."""
    result = await call_next(context)
    if context.method == "initialize" and isinstance(result, dict):
        return {**result, "capabilities": {**result.get("capabilities", {}), "extensions": pack_server.extensions}}
    return result


@asynccontextmanager
async def _reporting(context: ServerRequestContext[Any, Any], asking: Asking) -> AsyncIterator[None]:
    """Within the block, report the progress of the call to a client that asked for it."""
    progress = Progress(asking.output)

    async def report(*, ended: bool = False) -> None:
        due = progress.due(ended=ended)
        if due is not None:
            await context.session.report_progress(due[0], message=due[1])

    async def keep_reporting() -> None:
        while True:
            await anyio.sleep(REPORT_SECONDS)
            await report()

    async with anyio.create_task_group() as group:
        group.start_soon(keep_reporting)
        yield
        group.cancel_scope.cancel()
    await report(ended=True)
