"""The JSON Schemas a host is given: a tool's own, made ready to travel, and those of the two forms of an answer.

An answer is the envelope ``{ok, error, data, duration_ms}``. A tool that declares ``answer: success`` in skill.yaml
answers ``{"success": true, "data"}`` or ``{"success": false, "error", "code"}`` instead where the protocol has room for
a form of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillscript.envelope import EXIT_CODES, own_codes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillpack.registry.declaration import ToolDeclaration
    from skillscript.envelope import SkillResult

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_OURS = (
    "x-error",
    "x-error-codes",
    "x-env",
    "x-path",
    "x-programs",
)  # speak to this pack's own programs, not to a caller
_ROOT_ONLY = ("$schema", "$id", "examples", "title")
_VALUE_KEYWORDS = ("const", "enum", "default", "examples")
_MAPS = ("properties", "patternProperties", "$defs", "dependentSchemas")


def input_schema(tool: ToolDeclaration) -> dict[str, Any]:
    """Return the schema of a tool's parameters for a caller; an object that takes nothing unknown."""
    schema = travelling(tool.input_schema, "#")
    return {"$schema": DIALECT, **schema, "type": "object"}


def answer_schema(tool: ToolDeclaration) -> dict[str, Any]:
    """Return the schema of everything the tool may answer, success or error, in the form it declares."""
    data = travelling(tool.output_schema, "#/oneOf/0/properties/data")
    codes = sorted({*EXIT_CODES, *own_codes(tool.output_schema)})
    return success_schema(data, codes) if answers_success(tool) else envelope_schema(data, codes)


def answers_success(tool: ToolDeclaration) -> bool:
    """Return whether the tool declares the answer form ``{"success", ...}``."""
    return tool.entry.get("answer") == "success"


def structured_answer(tool: ToolDeclaration, result: SkillResult) -> dict[str, Any]:
    """Return a result in the form that ``answer_schema`` describes."""
    if not answers_success(tool):
        return result.to_dict()
    if result.error is None:
        return {"success": True, "data": result.data or {}}
    return {"success": False, "error": result.error.message, "code": result.error.code}


def envelope_schema(data: dict[str, Any], codes: Sequence[str]) -> dict[str, Any]:
    """Return the schema of the envelope with these error codes whose ``data``, if the call succeeds, is as told."""
    duration = {"type": "integer", "minimum": 0, "description": "Time the call took. [ms]"}
    return {
        "$schema": DIALECT,
        "type": "object",
        "required": ["ok", "error", "data", "duration_ms"],
        "properties": {"ok": {"type": "boolean"}, "duration_ms": duration},
        "oneOf": [
            {"properties": {"ok": {"const": True}, "error": {"type": "null"}, "data": data}},
            {"properties": {"ok": {"const": False}, "error": error_schema(codes), "data": _nullable_object()}},
        ],
    }


def error_schema(codes: Sequence[str] = tuple(sorted(EXIT_CODES))) -> dict[str, Any]:
    """Return the schema of the envelope's ``error`` with one of these codes."""
    return {
        "type": "object",
        "required": ["code", "message", "details"],
        "properties": {
            "code": {"enum": list(codes)},
            "message": {"type": "string"},
            "details": _nullable_object(),
        },
    }


def _nullable_object() -> dict[str, Any]:
    return {"anyOf": [{"type": "object"}, {"type": "null"}]}


def success_schema(data: dict[str, Any], codes: Sequence[str]) -> dict[str, Any]:
    """Return the schema of the answer form ``{"success", ...}`` with these error codes."""
    failure = {
        "required": ["error", "code"],
        "properties": {"success": {"const": False}, "error": {"type": "string"}, "code": {"enum": list(codes)}},
    }
    return {
        "$schema": DIALECT,
        "type": "object",
        "required": ["success"],
        "properties": {"success": {"type": "boolean"}},
        "oneOf": [{"required": ["data"], "properties": {"success": {"const": True}, "data": data}}, failure],
    }


def travelling(schema: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return ``schema`` as it can stand at ``place`` of another document.

    References into the schema itself (``#/$defs/box``) lead to its new place; what only this pack reads is left out.

    Args:
        schema: A whole schema.
        place: JSON pointer of its new root, as a URI fragment.
    """
    root = {key: rule for key, rule in schema.items() if key not in _ROOT_ONLY}
    moved: dict[str, Any] = _moved(root, place)
    return moved


def _moved(schema: Any, place: str) -> Any:
    """Return a subschema with its references moved to ``place``."""
    if isinstance(schema, list):
        return [_moved(item, place) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result: dict[str, Any] = {}
    for key, rule in schema.items():
        if key in _OURS:
            continue
        if key == "$ref" and isinstance(rule, str) and (rule == "#" or rule.startswith("#/")):
            result[key] = place + rule[1:]
        elif key in _VALUE_KEYWORDS:
            result[key] = rule
        elif key in _MAPS and isinstance(rule, dict):
            result[key] = {name: _moved(item, place) for name, item in rule.items()}
        else:
            result[key] = _moved(rule, place)
    return _single_typed(result)


def _single_typed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that says the same without a list of types, which some hosts' dialects lack."""
    names = schema.get("type")
    if not isinstance(names, list):
        return schema
    rest = {key: rule for key, rule in schema.items() if key != "type"}
    branches = [{"type": name} for name in names]
    if "anyOf" in rest:
        return {**rest, "allOf": [*rest.get("allOf", ()), {"anyOf": branches}]}
    return {**rest, "anyOf": branches}
