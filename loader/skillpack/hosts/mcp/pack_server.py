"""What the MCP server answers, as plain JSON: the skills and tools of a pack."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from skillpack.execution.runner import Call
from skillpack.execution.short_answers import in_detail, take_detail
from skillpack.hosts.calls import Order, StderrLines
from skillpack.hosts.mcp import skill_resources, skill_tools, upload_tool, work_resources
from skillpack.hosts.mcp.toolbox import Toolbox, answered
from skillpack.hosts.mcp.work_resources import NotServedError
from skillscript.envelope import SkillError, SkillResult
from sturdy.bounded_run import Cancellation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillpack.hosts.calls import Calls
    from skillpack.hosts.pack import Pack
    from skillpack.hosts.served_schemas import NameStyle

INSTRUCTIONS = (
    "Tools come with skills: instructions on how to use them, typical errors and their cures. "
    "Before a task, load the matching skill with skill_request; find one with skill_search; read its files "
    "with skill_read. Files that tools make are resources; answers link to them."
)


@dataclass(frozen=True)
class Asking:
    """What one request has besides its parameters.

    Attributes:
        revision: Revision of the protocol.
        output: Collects what a tool writes to stderr.
        cancellation: Ends a tool when cancelled.
    """

    revision: str
    output: StderrLines = field(default_factory=StderrLines)
    cancellation: Cancellation = field(default_factory=Cancellation)


class PackServer:
    """Answers MCP requests from a pack.

    Args:
        pack: What is served.
        calls: How many calls run at one time.
        style: How tool names are written.

    Attributes:
        methods: The methods that are answered; each takes the checked parameters of a request and returns its result.
            They read files and run tools: call them from a thread. NotServedError is an error for the client.
    """

    def __init__(self, pack: Pack, calls: Calls, style: NameStyle = "underscored") -> None:
        self.pack = pack
        self.calls = calls
        self._toolbox = lru_cache(maxsize=2)(partial(Toolbox, style=style))
        of, files = skill_resources, pack.files
        self.methods: dict[str, Callable[[Mapping[str, Any], Asking], dict[str, Any]]] = {
            "tools/list": lambda _, __: self._list_tools(),
            "tools/call": self._call_tool,
            "resources/list": lambda params, _: of.list_resources(pack.view(), files, params.get("cursor")),
            "resources/templates/list": lambda _, __: of.list_templates(),
            "resources/read": lambda params, _: of.read_resource(pack.view(), files, params["uri"]),
            "skills/list": lambda params, _: of.list_skills(pack.view(), params.get("cursor")),
            "skills/get": lambda params, _: of.get_skill(pack.view(), params["uri"]),
            "resources/directory/read": lambda params, _: of.read_directory(
                pack.view(), params["uri"], params.get("cursor")
            ),
        }

    def _list_tools(self) -> dict[str, Any]:
        view = self.pack.view()
        tools = [*skill_tools.described(view), *upload_tool.described(self.pack), *self._toolbox(view).described]
        return {"tools": tools, "ttlMs": skill_resources.TTL_MS, "cacheScope": "private"}

    def _call_tool(self, params: Mapping[str, Any], asking: Asking) -> dict[str, Any]:
        view = self.pack.view()
        called, arguments = params["name"], params.get("arguments") or {}
        if called in skill_tools.SKILL_TOOLS:
            return skill_tools.call(called, view, arguments)
        if called == upload_tool.NAME:
            return upload_tool.call(self.pack, arguments)
        toolbox = self._toolbox(view)
        name, at, version = called.partition("@")  # parameters for an older version are converted
        tool = toolbox.find(name)
        if tool is None:
            raise NotServedError(toolbox.unknown(name))
        since = time.time()
        try:
            arguments, detail = take_detail(tool, arguments, "short")
        except SkillError as error:
            return answered(tool, Call(SkillResult.failure(error)))
        order = Order(f"{tool.id}{at}{version}", arguments, output=asking.output)
        call = self.calls.make_here(view.runner, order, asking.cancellation)
        tool = call.tool or tool
        files = self.pack.files
        made = files.made(tool, arguments, call.result.data, since)
        has_links = asking.revision >= work_resources.LINKS_SINCE
        links = work_resources.links(made) if has_links else []
        return answered(tool, in_detail(call, detail), [*links, *work_resources.images(files, made)])
