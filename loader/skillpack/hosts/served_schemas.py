"""The names and JSON Schemas under which tools are served.

Dots are legal in the tool names of MCP, yet several hosts refuse a name with a dot and with it every other tool.

An answer is the envelope ``{ok, error, data, duration_ms}``. A tool that declares ``answer: success`` in skill.yaml
answers ``{"success": true, "data"}`` or ``{"success": false, "error", "code"}`` instead over MCP.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from skillscript.envelope import EXIT_CODES, own_codes
from skillscript.schema_references import map_children

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillpack.execution.runner import Call
    from skillpack.registry.declaration import ToolDeclaration

NameStyle = Literal["underscored", "dotted"]
MAX_NAME = 64  # characters; the smallest limit of a widespread host
_DIGITS = 8
ANSWER = {"type": "object"}
"""The schema that is listed for every answer over MCP; its full schema is a file of its skill."""
# Keywords for this pack's programs, not for a caller.
_OURS = ("x-error", "x-error-codes", "x-env", "x-from", "x-path", "x-programs", "x-short", "x-si", "x-whole")
_ROOT_ONLY = ("$schema", "$id", "examples", "title")


def served_names(tool_ids: Iterable[str], style: NameStyle, taken: Iterable[str] = ()) -> dict[str, str]:
    """Return the tool ids by the names they are served under, in the order given.

    ``layout.create_nmos_pcell`` becomes ``layout_create_nmos_pcell``, or stays as it is where ``style`` is dotted. A
    name that is too long, or that is another's already, ends in a digest of the id instead.

    Args:
        tool_ids: Unique ids; of two that would get one name, the first has it.
        style: How to write them.
        taken: Names that are not available.
    """
    names: dict[str, str] = {}
    used = set(taken)
    for tool_id in tool_ids:
        name = tool_id if style == "dotted" else tool_id.replace(".", "_")
        if len(name) > MAX_NAME or name in used:
            digest = hashlib.sha256(tool_id.encode()).hexdigest()[:_DIGITS]
            name = f"{name[: MAX_NAME - _DIGITS - 1]}_{digest}"
        used.add(name)
        names[name] = tool_id
    return names


def answer_codes(tool: ToolDeclaration) -> list[str]:
    """Return the error codes the tool may answer: the common ones and those it declares."""
    return sorted({*EXIT_CODES, *own_codes(tool.output_schema)})


def answers_success(tool: ToolDeclaration) -> bool:
    """Return whether the tool declares the answer form ``{"success", ...}``."""
    return tool.entry.get("answer") == "success"


def structured_answer(tool: ToolDeclaration, call: Call) -> dict[str, Any]:
    """Return a finished call as its caller over MCP gets it: in the form that the tool declares."""
    result = call.result
    if not answers_success(tool):
        return call.envelope
    if result.error is not None:
        return {"success": False, "error": result.error.message, "code": result.error.code}
    left_out = {} if call.left_out is None else {"left_out": dict(call.left_out)}
    return {"success": True, "data": result.data or {}, **left_out}


def envelope_schema(data: dict[str, Any], codes: Sequence[str]) -> dict[str, Any]:
    """Return the schema of the envelope with these error codes and the ``data`` of a successful call."""
    envelope: dict[str, Any] = json.loads(_envelope())
    done, failed = envelope["oneOf"]
    done["properties"]["data"] = data
    failed["properties"]["error"]["properties"]["code"]["enum"] = list(codes)
    return envelope


@cache
def _envelope() -> bytes:
    return (Path(__file__).parents[1] / "schemas" / "envelope.schema.json").read_bytes()


def travelling(schema: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return ``schema`` for use at ``place`` in another document.

    References within the schema (``#/$defs/box``) are rewritten; keywords that only this pack reads are removed.

    Args:
        schema: A whole, self-contained schema.
        place: JSON pointer of its new root, as a URI fragment.
    """
    root = {key: rule for key, rule in schema.items() if key not in _ROOT_ONLY}
    moved: dict[str, Any] = _moved(root, place)
    return moved


def _moved(schema: Any, place: str) -> Any:
    """Return a subschema with its references moved to ``place``."""
    if not isinstance(schema, dict):
        return schema
    kept = {key: rule for key, rule in schema.items() if key not in _OURS}
    moved = map_children(kept, lambda inner: _moved(inner, place))
    reference = moved.get("$ref")
    if isinstance(reference, str) and (reference == "#" or reference.startswith("#/")):
        moved["$ref"] = place + reference[1:]
    return _single_typed(moved)


def _single_typed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an equivalent schema without a list of types, which some hosts do not support."""
    names = schema.get("type")
    if not isinstance(names, list):
        return schema
    rest = {key: rule for key, rule in schema.items() if key != "type"}
    branches = [{"type": name} for name in names]
    if "anyOf" in rest:
        return {**rest, "allOf": [*rest.get("allOf", ()), {"anyOf": branches}]}
    return {**rest, "anyOf": branches}
