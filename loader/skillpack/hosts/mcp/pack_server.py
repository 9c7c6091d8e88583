"""What the MCP server answers, as plain JSON: the skills and tools of a pack, described, and the answers to calls.

Three tools of its own let a model read skills: skill_request, skill_read and skill_search.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

from skillpack.execution.runner import Call
from skillpack.execution.short_answers import DETAILS, PARAMETER, can_be_short, in_detail, take_detail
from skillpack.hosts.mcp import skill_files, work_resources
from skillpack.hosts.mcp.work_resources import NotServedError, listed, own_tool
from skillpack.hosts.pack import Order, StderrLines
from skillpack.hosts.served_schemas import ANSWER, NameStyle, lean_input, rare_fields, served_names, structured_answer
from skillpack.skills.layer1 import Budget
from skillpack.skills.skill_md import Resource
from skillscript.envelope import CHOICES, SkillError, SkillResult, choice, to_json
from skillscript.schema import validate
from sturdy.bounded_run import Cancellation
from sturdy.near_names import did_you_mean
from sturdy.strict_json import NotJsonError, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from skillpack.hosts.pack import Calls, Pack, View
    from skillpack.registry.declaration import ToolDeclaration

MAX_NAMES = 8  # of parameters that are not listed, in a description
MAX_ENUM = 200  # names in a schema; a larger catalogue is searched instead
MAX_LISTING = 1600  # characters of names and summaries in a description; hosts cut descriptions at about 2000
_PNG = ".png"


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
        return served_names(callable_ids, self.style, taken=[*SKILL_TOOLS, work_resources.UPLOAD])

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
            return f"Unknown tool: {name}{did_you_mean(name, [*SKILL_TOOLS, work_resources.UPLOAD, *self.names])}"
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
        tools = [*skill_tools(view), *work_resources.upload_tool(self.pack), *self._toolbox(view).described]
        return {"tools": tools, "ttlMs": skill_files.TTL_MS, "cacheScope": "private"}

    def _call_tool(self, params: Mapping[str, Any], asking: Asking) -> dict[str, Any]:
        view = self.pack.view()
        called, arguments = params["name"], params.get("arguments") or {}
        if called in SKILL_TOOLS:
            return call_skill_tool(called, view, arguments)
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


def skill_tools(view: View) -> list[dict[str, Any]]:
    """Return the entries of the three in ``tools/list``."""
    return [
        listed(name, f"{own_tool(name)['description']}{_listed_skills(name, view)}", _skill_input(name, view))
        for name in SKILL_TOOLS
    ]


def call_skill_tool(name: str, view: View, arguments: Any) -> dict[str, Any]:
    """Return the answer of one of the three. It reads files: call it from a thread."""
    try:
        params = validate(plain(arguments), own_tool(name)["input"])
    except (NotJsonError, SkillError) as error:
        return _skill_answer({"success": False, "message": str(error), "suggestions": []})
    return SKILL_TOOLS[name](view, params)


def _request(view: View, params: Mapping[str, Any]) -> dict[str, Any]:
    """Answer skill_request: the body itself as text, which reads better than the same in JSON."""
    answer = view.loader.skill_request(params["name"], section=params.get("section"), wrap=True)
    return _skill_answer(answer, answer["data"]["content"] if answer["success"] else None)


def _read(view: View, params: Mapping[str, Any]) -> dict[str, Any]:
    """Answer skill_read: a text as text, an image as an image, other bytes as base64."""
    answer = view.loader.read_resource(params["name"], params["path"])
    data = answer.get("data", {})
    schema = _whole_schema(view, params["name"], data.get("path"))
    if schema is not None:
        data = Resource(data["path"], json.dumps(schema, ensure_ascii=False, indent=1).encode()).to_json()
        answer = {"success": True, "data": data}
    if data.get("encoding") == "utf-8":
        return _skill_answer(answer, data["content"])
    if data.get("encoding") == "base64" and data["path"].lower().endswith(_PNG):
        picture = {"type": "image", "data": data["content"], "mimeType": "image/png"}
        return {"content": [picture], "structuredContent": answer, "isError": False}
    return _skill_answer(answer)


def _whole_schema(view: View, name: str, path: str | None) -> Mapping[str, Any] | None:
    """Return the schema of a tool in the file ``path``, if the file takes definitions from elsewhere, else None."""
    for tool in view.tools.of_skill(name):
        for part, schema in (("input_schema", tool.input_schema), ("output_schema", tool.output_schema)):
            if path is not None and tool.shared_files and tool.entry.get(part) == path:
                return schema
    return None


def _search(view: View, params: Mapping[str, Any]) -> dict[str, Any]:
    """Answer skill_search."""
    return _skill_answer(view.loader.search(params["query"], limit=params["limit"]))


def _skill_answer(answer: dict[str, Any], text: str | None = None) -> dict[str, Any]:
    """Return an answer as structure and as text."""
    content = {"type": "text", "text": to_json(answer) if text is None else text}
    return {"content": [content], "structuredContent": answer, "isError": not answer["success"]}


def _listed_skills(name: str, view: View) -> str:
    """Return what depends on the skills in the description of skill_request: as much of layer 1 as fits."""
    if name != "skill_request":
        return ""
    sets = ", ".join(view.toolsets)  # skills also name the tools that are not served
    only = f" Only tools of {sets} are served here; a skill may name others, which cannot be called." if sets else ""
    return only + _listing(view)


def _listing(view: View) -> str:
    """Return layer 1, or how to search if it does not fit."""
    listing = view.loader.layer1("compact", Budget(MAX_LISTING))
    if listing.shown < listing.total:
        return f" There are {listing.total} skills: use skill_search to find one."
    return f" Skills:\n{listing.text}" if listing.total else " There are no skills now."


def _skill_input(name: str, view: View) -> dict[str, Any]:
    """Return the schema of one tool's arguments as it is listed: skill_request's has the names of all skills."""
    schema: dict[str, Any] = own_tool(name)["input"]
    if name == "skill_request" and 0 < len(view.skills) <= MAX_ENUM:
        fields = schema["properties"]
        schema = {**schema, "properties": {**fields, "name": {**fields["name"], "enum": list(view.skills)}}}
    return schema


SKILL_TOOLS: dict[str, Callable[[View, Mapping[str, Any]], dict[str, Any]]] = {
    "skill_request": _request,
    "skill_read": _read,
    "skill_search": _search,
}
