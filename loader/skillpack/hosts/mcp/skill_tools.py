"""The three tools with which a model reads skills: skill_request, skill_read and skill_search."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from skillpack.hosts.lean_schemas import lean_input
from skillpack.hosts.served_schemas import ANSWER
from skillpack.relevance import MAX_QUERY
from skillpack.skills.layer1 import Budget
from skillpack.skills.resources import Resource
from skillscript.envelope import SkillError, to_json
from skillscript.schema import validate
from sturdy.strict_json import NotJsonError, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillpack.hosts.pack import View

MAX_ENUM = 200  # names in a schema; a larger catalogue is searched instead
MAX_LISTING = 1600  # characters of names and summaries in a description; hosts cut descriptions at about 2000
MAX_FOUND = 10
_READ_ONLY = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_PNG = ".png"


def described(view: View) -> list[dict[str, Any]]:
    """Return the entries of the three in ``tools/list``."""
    return [
        {
            "name": name,
            "title": title,
            "description": describe(view),
            "inputSchema": lean_input(_input_schema(name, view)),
            "outputSchema": ANSWER,
            "annotations": _READ_ONLY,
        }
        for name, (title, describe, _) in SKILL_TOOLS.items()
    ]


def call(name: str, view: View, arguments: Any) -> dict[str, Any]:
    """Return the answer of one of the three. It reads files: call it from a thread."""
    try:
        params = validate(plain(arguments), _input_schema(name, view, names=False))
    except (NotJsonError, SkillError) as error:
        return _result({"success": False, "message": str(error), "suggestions": []})
    _, _, answer = SKILL_TOOLS[name]
    return answer(view, params)


def _request(view: View, params: Mapping[str, Any]) -> dict[str, Any]:
    """Answer skill_request: the body itself as text, which reads better than the same in JSON."""
    answer = view.loader.skill_request(params["name"], section=params.get("section"), wrap=True)
    return _result(answer, answer["data"]["content"] if answer["success"] else None)


def _read(view: View, params: Mapping[str, Any]) -> dict[str, Any]:
    """Answer skill_read: a text as text, an image as an image, other bytes as base64."""
    answer = view.loader.read_resource(params["name"], params["path"])
    data = answer.get("data", {})
    schema = _whole_schema(view, params["name"], data.get("path"))
    if schema is not None:
        data = Resource(data["path"], json.dumps(schema, ensure_ascii=False, indent=1).encode()).to_json()
        answer = {"success": True, "data": data}
    if data.get("encoding") == "utf-8":
        return _result(answer, data["content"])
    if data.get("encoding") == "base64" and data["path"].lower().endswith(_PNG):
        picture = {"type": "image", "data": data["content"], "mimeType": "image/png"}
        return {"content": [picture], "structuredContent": answer, "isError": False}
    return _result(answer)


def _whole_schema(view: View, name: str, path: str | None) -> Mapping[str, Any] | None:
    """Return the schema of a tool in the file ``path``, if the file takes definitions from elsewhere, else None."""
    for tool in view.tools.of_skill(name):
        for part, schema in (("input_schema", tool.input_schema), ("output_schema", tool.output_schema)):
            if path is not None and tool.shared_files and tool.entry.get(part) == path:
                return schema
    return None


def _search(view: View, params: Mapping[str, Any]) -> dict[str, Any]:
    """Answer skill_search."""
    return _result(view.loader.search(params["query"], limit=params["limit"]))


def _result(answer: dict[str, Any], text: str | None = None) -> dict[str, Any]:
    """Return an answer as structure and as text."""
    content = {"type": "text", "text": to_json(answer) if text is None else text}
    return {"content": [content], "structuredContent": answer, "isError": not answer["success"]}


def _request_description(view: View) -> str:
    """Describe skill_request, with as much of layer 1 as fits."""
    return (
        "Load the instructions of a skill: how to do a task with this server's tools, what goes wrong and the cures. "
        f"Load the skill that matches the task before using its tools.{_toolsets(view)}{_listing(view)}"
    )


def _toolsets(view: View) -> str:
    """Return which tools are served, where not all are: skills also name the others."""
    if not view.toolsets:
        return ""
    return (
        f" Only tools of {', '.join(view.toolsets)} are served here; a skill may name others, which cannot be called."
    )


def _listing(view: View) -> str:
    """Return layer 1, or how to search if it does not fit."""
    listing = view.loader.layer1("compact", Budget(MAX_LISTING))
    if listing.shown < listing.total:
        return f" There are {listing.total} skills: use skill_search to find one."
    return f" Skills:\n{listing.text}" if listing.total else " There are no skills now."


def _input_schema(name: str, view: View, *, names: bool = True) -> dict[str, Any]:
    """Return the schema of one tool's arguments; skill_request's lists all skills, unless any name is to pass."""
    skill: dict[str, Any] = {"type": "string", "minLength": 1, "description": "Skill"}
    if names and name == "skill_request" and 0 < len(view.skills) <= MAX_ENUM:
        skill["enum"] = list(view.skills)
    section = {"type": "string", "minLength": 1, "description": "Heading. Default: all"}
    path = {"type": "string", "minLength": 1, "description": "In the skill's folder"}
    query = {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_QUERY,
        "description": "The task in words",
    }
    limit = {"type": "integer", "minimum": 1, "maximum": 50, "default": MAX_FOUND}
    properties, required = {
        "skill_request": ({"name": skill, "section": section}, ["name"]),
        "skill_read": ({"name": skill, "path": path}, ["name", "path"]),
        "skill_search": ({"query": query, "limit": limit}, ["query"]),
    }[name]
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }


SKILL_TOOLS: dict[str, tuple[str, Callable[[View], str], Callable[[View, Mapping[str, Any]], dict[str, Any]]]] = {
    "skill_request": ("Load a skill", _request_description, _request),
    "skill_read": (
        "Read a file of a skill",
        lambda _: "Read a file of a skill (script, reference, asset, or schema of a tool), as listed by skill_request.",
        _read,
    ),
    "skill_search": ("Find skills", lambda _: "Find the skills that help with a task, best first.", _search),
}
