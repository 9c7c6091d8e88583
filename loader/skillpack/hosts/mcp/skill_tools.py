"""The three tools with which a model reads skills: skill_request, skill_read and skill_search."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from skillpack.hosts.mcp.work_resources import listed, own_tool
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
_PNG = ".png"


def described(view: View) -> list[dict[str, Any]]:
    """Return the entries of the three in ``tools/list``."""
    return [listed(name, f"{own_tool(name)['description']}{_more(name, view)}", _input(name, view)) for name in ANSWERS]


def call(name: str, view: View, arguments: Any) -> dict[str, Any]:
    """Return the answer of one of the three. It reads files: call it from a thread."""
    try:
        params = validate(plain(arguments), own_tool(name)["input"])
    except (NotJsonError, SkillError) as error:
        return _result({"success": False, "message": str(error), "suggestions": []})
    return ANSWERS[name](view, params)


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


def _more(name: str, view: View) -> str:
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


def _input(name: str, view: View) -> dict[str, Any]:
    """Return the schema of one tool's arguments as it is listed: skill_request's has the names of all skills."""
    schema: dict[str, Any] = own_tool(name)["input"]
    if name == "skill_request" and 0 < len(view.skills) <= MAX_ENUM:
        fields = schema["properties"]
        schema = {**schema, "properties": {**fields, "name": {**fields["name"], "enum": list(view.skills)}}}
    return schema


ANSWERS: dict[str, Callable[[View, Mapping[str, Any]], dict[str, Any]]] = {
    "skill_request": _request,
    "skill_read": _read,
    "skill_search": _search,
}
