"""What the MCP server answers, as plain JSON: the skills and tools of a pack, described, and the answers to calls."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

from skillpack.execution.runner import Call
from skillpack.execution.short_answers import DETAILS, PARAMETER, can_be_short, in_detail, take_detail
from skillpack.hosts.calls import Order, StderrLines
from skillpack.hosts.lean_schemas import lean_input, rare_fields
from skillpack.hosts.mcp import skill_files, skill_tools, work_resources
from skillpack.hosts.mcp.skill_tools import ANSWERS
from skillpack.hosts.mcp.work_resources import NotServedError
from skillpack.hosts.served_schemas import ANSWER, NameStyle, served_names, structured_answer
from skillscript.envelope import SkillError, SkillResult, to_json
from skillscript.faults import CHOICES, choice
from sturdy.bounded_run import Cancellation
from sturdy.near_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from skillpack.hosts.calls import Calls
    from skillpack.hosts.pack import Pack, View
    from skillpack.hosts.served_schemas import NameStyle
    from skillpack.registry.declaration import ToolDeclaration


MAX_NAMES = 8  # of parameters that are not listed, in a description


@dataclass(frozen=True)
class Toolbox:
    """The callable tools of one view, by the names they are served under.

    Attributes:
        view: What there is.
        style: How names are written.
    """

    view: View
    style: NameStyle

    @cached_property
    def names(self) -> dict[str, str]:
        """The ids of the listed tools by served name, which does not depend on the toolsets that are listed."""
        return {name: tool_id for name, tool_id in self._all_names.items() if self._is_listed(tool_id)}

    @cached_property
    def _all_names(self) -> dict[str, str]:
        callable_ids = [tool.id for tool in self.view.tools.by_id.values() if tool.script]
        return served_names(callable_ids, self.style, taken=[*ANSWERS, work_resources.UPLOAD])

    def _is_listed(self, tool_id: str) -> bool:
        chosen = self.view.toolsets
        return not chosen or not set(chosen).isdisjoint(self.view.tools.by_id[tool_id].toolsets)

    @property
    def renamed(self) -> dict[str, str]:
        """The ids, by served name, of the tools whose plain name is taken or too long."""
        dot = "." if self.style == "dotted" else "_"
        return {name: tool_id for name, tool_id in self.names.items() if name != tool_id.replace(".", dot)}

    def find(self, name: str) -> ToolDeclaration | None:
        """Return the listed tool whose served name, id, or name in the other style is ``name``, or None."""
        tool_id = self._known.get(name)
        return self.view.tools.by_id[tool_id] if tool_id is not None and self._is_listed(tool_id) else None

    def unknown(self, name: str) -> str:
        """Return the message for a name that ``find`` does not know: the toolset that has it, or what was meant."""
        if name not in self._known:
            return f"Unknown tool: {name}{did_you_mean(name, [*ANSWERS, work_resources.UPLOAD, *self.names])}"
        toolsets = self.view.tools.by_id[self._known[name]].toolsets
        sets, chosen = " or ".join(toolsets), ", ".join(self.view.toolsets)
        return f"Unknown tool: {name}. It is in the toolset {sets}; this server was started with --toolsets {chosen}"

    @cached_property
    def _known(self) -> dict[str, str]:
        """The ids of all tools by what a call may name them: served name, id, or name in the other style."""
        ids = list(self._all_names.values())
        found = {tool_id.replace(".", "_"): tool_id for tool_id in reversed(ids)}  # of equal ones, the first's
        return {**found, **{tool_id: tool_id for tool_id in ids}, **self._all_names}

    @cached_property
    def described(self) -> list[dict[str, Any]]:
        """The entry of each tool in ``tools/list``."""
        tools = [(name, self.view.tools.by_id[tool_id]) for name, tool_id in self.names.items()]
        return [_described(name, tool, instructed=tool.skill in self.view.skills) for name, tool in tools]


def _described(name: str, tool: ToolDeclaration, *, instructed: bool) -> dict[str, Any]:
    """Return MCP's description of one tool; its title contains the dotted id."""
    shown = tool.entry.get("display_name")
    if isinstance(shown, dict):  # in English, else in any language
        shown = shown.get("en") or next(iter(shown.values()), "")
    listed = lean_input(tool.input_schema, rare=False)
    if can_be_short(tool):
        listed.setdefault("properties", {}).setdefault(PARAMETER, {"enum": [*DETAILS], "default": DETAILS[0]})
    return {
        "name": name,
        "title": f"{shown} ({tool.id})" if shown else tool.id,
        "description": _description(tool, instructed=instructed),
        "inputSchema": listed,
        "outputSchema": ANSWER,
        "annotations": _annotations(tool),
    }


def _description(tool: ToolDeclaration, *, instructed: bool) -> str:
    """Return what the tool does, which parameters it wants, and where the instructions are, if there are any.

    The listed schema cannot say at its top that one of several parameters is wanted.
    """
    text = tool.description or str(tool.input_schema.get("description", "")) or tool.id
    wanted = [choice(keyword, tool.input_schema[keyword]) for keyword in CHOICES if keyword in tool.input_schema]
    where = [f"Instructions: skill_request(name='{tool.skill}')"] if instructed else []
    others = rare_fields(tool.input_schema)
    rest = [f"{len(others) - MAX_NAMES} more"] if len(others) > MAX_NAMES else []
    more = [f"Also takes {', '.join([*others[:MAX_NAMES], *rest])}"] if others else []
    sentences = [text.rstrip("."), *(words[0].upper() + words[1:] for words in wanted if words), *where, *more]
    return " ".join(f"{sentence}." for sentence in sentences)


def _annotations(tool: ToolDeclaration) -> dict[str, Any]:
    """Return the declared hints that differ from what MCP assumes, the most cautious; only these need be listed."""
    declared: Mapping[str, Any] = tool.entry.get("annotations", {})
    read_only = bool(declared.get("read_only", False))
    hints = {
        "readOnlyHint": (read_only, False),
        "destructiveHint": (bool(declared.get("destructive", not read_only)), not read_only),
        "idempotentHint": (bool(declared.get("idempotent", read_only)), read_only),
        "openWorldHint": (bool(declared.get("open_world", True)), True),
    }
    return {name: hint for name, (hint, assumed) in hints.items() if hint != assumed}


def answered(tool: ToolDeclaration, call: Call, attached: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return MCP's answer to a finished call: structured, the same as text, and what is attached to it."""
    structure = structured_answer(tool, call)
    texts = [{"type": "text", "text": text} for text in (to_json(structure), *call.notes)]
    return {
        "content": [*texts, *attached],
        "structuredContent": structure,
        "isError": call.result.error is not None,
    }


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
        of, files = skill_files, pack.files
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
        tools = [*skill_tools.described(view), *work_resources.upload_tool(self.pack), *self._toolbox(view).described]
        return {"tools": tools, "ttlMs": skill_files.TTL_MS, "cacheScope": "private"}

    def _call_tool(self, params: Mapping[str, Any], asking: Asking) -> dict[str, Any]:
        view = self.pack.view()
        called, arguments = params["name"], params.get("arguments") or {}
        if called in ANSWERS:
            return skill_tools.call(called, view, arguments)
        if called == work_resources.UPLOAD:
            return work_resources.upload(self.pack, arguments)
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
