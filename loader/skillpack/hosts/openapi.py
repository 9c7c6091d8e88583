"""The OpenAPI 3.1 document of the HTTP server, made from what it serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillpack.hosts.names import served_names
from skillpack.hosts.served_schemas import envelope_schema, error_schema, travelling
from skillscript.context import CONTEXT_SCHEMA
from skillscript.envelope import EXIT_CODES, own_codes

if TYPE_CHECKING:
    from skillpack.hosts.pack import View
    from skillpack.registry.declaration import ToolDeclaration

_JSON = "application/json"
_REFUSALS = {
    "400": "Malformed request.",
    "401": "The token is missing or wrong.",
    "403": "A page of another site asked.",
    "408": "The body did not come in time.",
    "413": "The body is too long.",
    "415": "The body is not declared as JSON.",
    "421": "The Host header names another server.",
}
_OUTCOMES = {
    "404": "There is no such skill, or not in that version.",
    "409": "DRC_VIOLATION, LAYOUT_CONFLICT: the design stands against it.",
    "422": "INVALID_PARAM, DEVICE_NOT_FOUND, RULE_NOT_FOUND, UNSUPPORTED_OPERATION or a code of the skill's own.",
    "500": "INTERNAL_ERROR, KLAYOUT_ERROR.",
    "503": "SERVICE_UNAVAILABLE: too many calls, or a needed program is missing.",
    "504": "TIMEOUT: the tool was killed.",
}
VALIDATE_BODY: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["skill_id"],
    "anyOf": [
        {"title": "an object with params", "required": ["params"]},
        {"title": "an object with result", "required": ["result"]},
    ],
    "properties": {
        "skill_id": {"type": "string", "minLength": 1, "description": "Which skill."},
        "params": {"type": "object", "description": "Parameters to check against its input schema."},
        "result": {"type": "object", "description": "Answer's data to check against its output schema."},
    },
}
EXECUTE_BODY: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "params": {"type": "object", "default": {}, "description": "Parameters of the call."},
        "context": {**CONTEXT_SCHEMA, "description": "What is known beside the parameters."},
        "timeout_s": {"type": "number", "minimum": 1, "description": "Longest duration. [s]"},
        "version": {"type": "string", "minLength": 1, "description": "Version the parameters were written for."},
    },
}
_FIELDS = (  # S4.1, those that every entry has
    "id",
    "version",
    "display_name",
    "intent_tags",
    "input_schema",
    "output_schema",
    "models",
    "context",
    "cost",
    "composable",
    "dependencies",
)
_FAULTS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["part", "path", "message", "provided_value"],
        "properties": {
            "part": {"enum": ["params", "result"]},
            "path": {"type": "string", "description": "Where in that part, such as nets[2].x."},
            "message": {"type": "string"},
            "provided_value": {},
            "allowed": {},
        },
    },
}


@dataclass(frozen=True)
class Limits:
    """What a server demands of requests.

    Attributes:
        needs_token: Whether they must bear a token.
        max_timeout: Longest duration a call may ask for. [s]
    """

    needs_token: bool
    max_timeout: float


def document(view: View, version: str, limits: Limits) -> dict[str, Any]:
    """Return the OpenAPI document.

    Every callable skill has a path of its own for execution, so that its parameters and answer are typed.

    Args:
        view: What is served.
        version: Version of the server.
        limits: What it demands of requests.
    """
    tools = list(view.tools.by_id.values())
    paths: dict[str, Any] = {
        "/skills": {"get": _list_skills()},
        "/skills/{id}": {"get": _get_skill([tool.id for tool in tools])},
        "/skills/validate": {"post": _validate([tool.id for tool in tools])},
    }
    callable_tools = [tool for tool in tools if tool.script]
    for name, tool in zip(
        served_names((tool.id for tool in callable_tools), "underscored"), callable_tools, strict=True
    ):
        paths[_execute_path(tool)] = {"post": _execute(tool, f"execute_{name}", limits.max_timeout)}
    paths |= {"/healthz": {"get": _health()}, "/openapi.json": {"get": _self()}}
    result: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "skillpack",
            "version": version,
            "description": (
                "Skills of this pack: what they are, whether parameters suit them, and calling them. JSON is read "
                "strictly: no key twice, integers within 64 bits, no NUL in a text, at most 64 levels deep."
            ),
        },
        "paths": paths,
        "components": {"schemas": _schemas()},
    }
    if limits.needs_token:
        result["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        result["security"] = [{"token": []}]
        paths["/healthz"]["get"]["security"] = []
    return result


def _list_skills() -> dict[str, Any]:
    intent = {
        "name": "intent",
        "in": "query",
        "required": False,
        "schema": {"type": "string", "minLength": 1},
        "description": "Only skills that serve this intent, the best first, with the reasons for their rank.",
    }
    answer = {
        "type": "object",
        "required": ["skills"],
        "properties": {"skills": {"type": "array", "items": {"$ref": "#/components/schemas/Skill"}}},
    }
    return _operation("list_skills", "All skills, each in its latest version.", answer, parameters=[intent])


def _get_skill(ids: list[str]) -> dict[str, Any]:
    parameters = [
        {"name": "id", "in": "path", "required": True, "schema": _ids(ids), "description": "Dotted id."},
        {
            "name": "version",
            "in": "query",
            "required": False,
            "schema": {"type": "string", "minLength": 1},
            "description": "Version wanted; default: the latest.",
        },
    ]
    operation = _operation(
        "get_skill", "The definition of one skill.", {"$ref": "#/components/schemas/Skill"}, parameters=parameters
    )
    return _with_outcomes(operation, "404")


def _validate(ids: list[str]) -> dict[str, Any]:
    body = {**VALIDATE_BODY, "properties": {**VALIDATE_BODY["properties"], "skill_id": _ids(ids)}}
    answer = {
        "type": "object",
        "required": ["valid", "errors"],
        "properties": {"valid": {"type": "boolean"}, "errors": _FAULTS},
    }
    operation = _operation("validate", "Whether parameters, or a result, suit a skill. Runs nothing.", answer)
    operation["requestBody"] = _body(body)
    return _with_outcomes(operation, "404", "422")


def _execute_path(tool: ToolDeclaration) -> str:
    return f"/skills/{tool.id}/execute"


def _execute(tool: ToolDeclaration, operation_id: str, max_timeout: float) -> dict[str, Any]:
    place = "#/paths/" + _execute_path(tool).replace("~", "~0").replace("/", "~1") + "/post"
    body_place = f"{place}/requestBody/content/application~1json/schema/properties/params"
    data_place = f"{place}/responses/200/content/application~1json/schema/oneOf/0/properties/data"
    properties = {
        **EXECUTE_BODY["properties"],
        "params": travelling(tool.input_schema, body_place),
        "timeout_s": {**EXECUTE_BODY["properties"]["timeout_s"], "maximum": max_timeout},
    }
    required = ["params"] if tool.input_schema.get("required") else []
    codes = sorted({*EXIT_CODES, *own_codes(tool.output_schema)})
    answer = envelope_schema(travelling(tool.output_schema, data_place), codes)
    operation = _operation(operation_id, tool.description or tool.id, answer)
    operation["requestBody"] = _body({**EXECUTE_BODY, "required": required, "properties": properties})
    return _with_outcomes(operation, *_OUTCOMES)


def _health() -> dict[str, Any]:
    answer = {
        "type": "object",
        "required": ["status"],
        "properties": {"status": {"const": "ok"}},
    }
    return _operation("health", "Whether the server is up.", answer)


def _self() -> dict[str, Any]:
    return _operation("openapi", "This document.", {"type": "object"})


def _operation(
    operation_id: str, summary: str, answer: dict[str, Any], *, parameters: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return an operation that answers ``answer``, or a refusal."""
    responses = {"200": {"description": "Done.", "content": {_JSON: {"schema": answer}}}}
    responses |= {status: _failure(text) for status, text in _REFUSALS.items()}
    operation: dict[str, Any] = {"operationId": operation_id, "summary": summary, "responses": responses}
    if parameters:
        operation["parameters"] = parameters
    return operation


def _with_outcomes(operation: dict[str, Any], *statuses: str) -> dict[str, Any]:
    """Return the operation with further statuses it may answer."""
    operation["responses"] |= {status: _failure(_OUTCOMES[status]) for status in statuses}
    return operation


def _failure(text: str) -> dict[str, Any]:
    return {"description": text, "content": {_JSON: {"schema": {"$ref": "#/components/schemas/Failure"}}}}


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {_JSON: {"schema": schema}}}


def _ids(ids: list[str]) -> dict[str, Any]:
    return {"type": "string", "enum": ids} if ids else {"type": "string"}


def _schemas() -> dict[str, Any]:
    """Return the schemas that several operations share."""
    failure = {
        "type": "object",
        "required": ["ok", "error", "data", "duration_ms"],
        "properties": {
            "ok": {"const": False},
            "error": {**error_schema(), "properties": {**error_schema()["properties"], "code": {"type": "string"}}},
            "data": {"type": ["object", "null"]},
            "duration_ms": {"type": "integer", "minimum": 0},
        },
    }
    texts = {"type": "array", "items": {"type": "string"}}
    skill = {
        "type": "object",
        "required": [*_FIELDS],
        "properties": {
            "id": {"type": "string"},
            "skill": {"type": "string", "description": "Name of the skill whose instructions speak of it."},
            "version": {"type": "string"},
            "versions": {**texts, "description": "All versions there are, the latest first."},
            "display_name": {"type": ["string", "object"]},
            "description": {"type": "string"},
            "intent_tags": texts,
            "input_schema": {"type": "object"},
            "output_schema": {"type": "object"},
            "models": {"type": "object"},
            "context": {"type": "object"},
            "cost": {"type": "object"},
            "composable": {"type": "boolean"},
            "dependencies": texts,
            "rank": {"type": "integer", "minimum": 1, "description": "Its place, when asked by intent."},
            "matched": {**texts, "description": "The tags by which it serves the intent."},
            "decided_by": {"type": "string", "description": "What put it behind the one before."},
            "explanation": {**texts, "description": "Why it stands where it stands."},
        },
    }
    return {"Failure": failure, "Skill": skill}
