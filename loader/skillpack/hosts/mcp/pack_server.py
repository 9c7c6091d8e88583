"""The MCP server: skills and tools of a pack, for clients of revision 2026-07-28 and of those before it."""

from __future__ import annotations

import logging
import time
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server

from skillpack.hosts.calls import Calls, Order, StderrLines
from skillpack.hosts.mcp import skill_resources, skill_tools, upload_tool, work_resources
from skillpack.hosts.mcp.toolbox import Toolbox, answered
from skillpack.hosts.pack import pack_version

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.session import ServerSession

    from skillpack.hosts.pack import Pack, View
    from skillpack.hosts.served_schemas import NameStyle
    from skillpack.registry.declaration import ToolDeclaration

NAME = "skillpack"
REPORT_SECONDS = 0.2  # shortest time between two progress reports
HEARTBEAT_SECONDS = 5.0  # longest time between two, so that a client's timeout restarts
Context = Any  # ServerRequestContext of any lifespan
_Answer = TypeVar("_Answer")
_LOG = logging.getLogger(__name__)


class PackServer:
    """Answers MCP requests from a pack.

    Args:
        pack: What is served.
        calls: How many calls run at one time.
        style: How tool names are written.
    """

    def __init__(self, pack: Pack, calls: Calls, style: NameStyle = "underscored") -> None:
        self.pack = pack
        self.calls = calls
        self.style = style
        self._toolbox = lru_cache(maxsize=2)(partial(Toolbox, style=style))

    def server(self) -> Server[Any]:
        """Return the SDK's low-level server, which hands over arguments as they came, unknown ones included."""
        server: Server[Any] = Server(
            NAME,
            version=pack_version(),
            title="Skills and their tools",
            instructions=(
                "Tools come with skills: instructions on how to use them, typical errors and their cures. "
                "Before a task, load the matching skill with skill_request; find one with skill_search; read its files "
                "with skill_read. Files that tools make are resources; answers link to them."
            ),
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
        )
        server.extensions = {skill_resources.EXTENSION: skill_resources.SETTINGS}
        server.middleware.append(_bounded)
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self.list_skills)
        server.add_request_handler("skills/get", skill_resources.UriParams, self.get_skill)
        server.add_request_handler("resources/directory/read", skill_resources.UriParams, self.read_directory)
        return server

    async def list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """Answer ``tools/list``."""
        view = await self._view()
        tools = [*skill_tools.described(view), *upload_tool.described(self.pack), *self._toolbox(view).described]
        return types.ListToolsResult(tools=tools, ttl_ms=skill_resources.TTL_MS)

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Answer ``tools/call``; being cancelled, or losing the client, kills the tool."""
        view = await self._view()
        arguments = params.arguments or {}
        if params.name in skill_tools.SKILL_TOOLS:
            return await anyio.to_thread.run_sync(skill_tools.call, params.name, view, arguments)
        if params.name == upload_tool.NAME:
            return await anyio.to_thread.run_sync(upload_tool.call, self.pack, arguments)
        toolbox = self._toolbox(view)
        name, at, version = params.name.partition("@")  # parameters for an older version are carried over
        tool = toolbox.find(name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, toolbox.unknown(name))
        since = time.time()
        output = StderrLines()
        async with _reporting(context, output):
            call = await self.calls.make(view.runner, Order(f"{tool.id}{at}{version}", arguments, output=output))
        tool = call.tool or tool
        has_links = context.protocol_version >= work_resources.LINKS_SINCE
        find = partial(self._attached, tool, arguments, call.result.data, since, has_links=has_links)
        return answered(tool, call, await anyio.to_thread.run_sync(find))

    def _attached(
        self, tool: ToolDeclaration, params: Mapping[str, Any], data: Any, since: float, *, has_links: bool
    ) -> list[types.ContentBlock]:
        """Return links to the files that a call made, and its images. It reads files: call it from a thread."""
        files = self.pack.files
        made = files.made(tool, params, data, since)
        return [*(work_resources.links(made) if has_links else ()), *work_resources.images(files, made)]

    async def list_resources(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Answer ``resources/list``."""
        cursor = params.cursor if params else None
        return await self._from_view(skill_resources.list_resources, self.pack.files, cursor)

    async def list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Answer ``resources/templates/list``."""
        return skill_resources.list_templates()

    async def read_resource(self, _: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Answer ``resources/read``."""
        return await self._from_view(skill_resources.read_resource, self.pack.files, str(params.uri))

    async def list_skills(self, _: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        """Answer ``skills/list``."""
        return await self._from_view(skill_resources.list_skills, params.cursor)

    async def get_skill(self, _: Context, params: skill_resources.UriParams) -> dict[str, Any]:
        """Answer ``skills/get``."""
        return await self._from_view(skill_resources.get_skill, params.uri)

    async def read_directory(self, _: Context, params: skill_resources.UriParams) -> dict[str, Any]:
        """Answer ``resources/directory/read``."""
        return await self._from_view(skill_resources.read_directory, params.uri, params.cursor)

    async def _view(self) -> View:
        return await anyio.to_thread.run_sync(self.pack.view)

    async def _from_view(self, answer: Callable[..., _Answer], *arguments: Any) -> _Answer:
        """Return what ``answer`` makes of the view, in a thread as it reads files."""
        view = await self._view()
        return await anyio.to_thread.run_sync(answer, view, *arguments)


async def _bounded(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Answer a request; an unexpected exception is logged here and not shown to the client.

    The extension is put into the answer to ``initialize``: the SDK keeps it for revisions that know the field.
    """
    try:
        result = await call_next(ctx)
    except (MCPError, ValueError):  # ValueError: what pydantic raises for a malformed request
        raise
    except Exception as error:
        _LOG.exception("request %s failed", ctx.method)
        raise MCPError(types.INTERNAL_ERROR, "Internal error; the server's log says more") from error
    if ctx.method == "initialize" and isinstance(result, dict):
        extensions = {skill_resources.EXTENSION: skill_resources.SETTINGS}
        return {**result, "capabilities": {**result.get("capabilities", {}), "extensions": extensions}}
    return result


@asynccontextmanager
async def _reporting(context: Context, output: StderrLines) -> AsyncIterator[None]:
    """Within the block, report what the tool writes to stderr, and that it runs, to a client that wants progress."""
    progress = _Progress(context.session)
    async with anyio.create_task_group() as group:
        group.start_soon(_report, progress, output)
        yield
        group.cancel_scope.cancel()
    await progress.report(output.take())


async def _report(progress: _Progress, output: StderrLines) -> None:
    while True:
        await anyio.sleep(REPORT_SECONDS)
        await progress.report(output.take())
        await progress.heartbeat()


class _Progress:
    """Progress notifications of one request."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._count = 0
        self._start = self._last = time.monotonic()

    async def report(self, lines: list[str]) -> None:
        """Report lines of the tool, if there are any."""
        if lines:
            await self._send("\n".join(lines))

    async def heartbeat(self) -> None:
        """Report that the call is running, if nothing was reported for a while."""
        if time.monotonic() - self._last >= HEARTBEAT_SECONDS:
            await self._send(f"running for {time.monotonic() - self._start:.0f} s")

    async def _send(self, message: str) -> None:
        self._count += 1
        self._last = time.monotonic()
        await self._session.report_progress(self._count, message=message)
