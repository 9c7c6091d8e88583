"""The OpenAPI 3.1 document: what FastAPI knows from the routes, and one typed operation per tool.

The models below are the bodies and answers of the routes. FastAPI checks requests with them; the parameters of a tool
itself are checked with the tool's own JSON Schema when it is called.
"""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi.openapi.utils import get_openapi
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from skillpack.hosts.served_schemas import answer_codes, envelope_schema, served_names, travelling
from skillscript.envelope import joined
from skillscript.schema import find_faults
from skillscript.tool import CONTEXT_SCHEMA

if TYPE_CHECKING:
    from fastapi import FastAPI

    from skillpack.hosts.pack import View
    from skillpack.registry.declaration import ToolDeclaration

_JSON = "application/json"
_EXECUTE = "/skills/{id}/execute"
_STATUSES: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("statuses.json").read_bytes())
_MEANINGS = {int(status): text for group in _STATUSES.values() for status, text in group.items()}
REFUSALS = tuple(map(int, _STATUSES["refusals"]))  # what any route may answer
OUTCOMES = tuple(map(int, _STATUSES["outcomes"]))  # of a call


def _checked_context(context: dict[str, Any]) -> dict[str, Any]:
    """Return the context of a call if its schema accepts it."""
    faults = find_faults(context, CONTEXT_SCHEMA)
    if faults:
        raise ValueError(joined(faults))
    return context


Text = Annotated[str, Field(min_length=1)]
Object = dict[str, Any]
Context = Annotated[Object, WithJsonSchema(CONTEXT_SCHEMA), AfterValidator(_checked_context)]


class _Body(BaseModel):
    """A body without unknown fields or coercion; an optional field has a default factory, so that it refuses null."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ValidateBody(_Body):
    """Body of ``POST /skills/validate``."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"title": "an object with params", "required": ["params"]},
                {"title": "an object with result", "required": ["result"]},
            ]
        }
    )
    skill_id: Text = Field(description="Which skill.")
    params: Object = Field(default_factory=dict, description="Parameters to check against its input schema.")
    result: Object = Field(default_factory=dict, description="Answer's data to check against its output schema.")

    @model_validator(mode="after")
    def _has_a_part(self) -> ValidateBody:
        if not {"params", "result"} & self.model_fields_set:
            raise ValueError("give params, result or both")
        return self


class ExecuteBody(_Body):
    """Body of ``POST /skills/{id}/execute``."""

    params: Object = Field(default={}, description="Parameters of the call.")
    context: Context = Field(default_factory=dict, description="What is known beside the parameters.")
    timeout_s: float = Field(default_factory=float, ge=1, description="Longest duration. [s]")
    version: Text = Field(default_factory=str, description="Version the parameters were written for.")


class FailureDetails(BaseModel):
    """What went wrong."""

    code: str
    message: str
    details: Object | None


class Failure(BaseModel):
    """The envelope of a failure."""

    ok: Literal[False]
    error: FailureDetails
    data: Object | None
    duration_ms: Annotated[int, Field(ge=0)]


class RegisteredTool(BaseModel):
    """The registry entry of one tool (S4.1)."""

    id: str
    skill: str = Field(default="", description="Name of the skill whose instructions describe it.")
    version: str
    versions: list[str] = Field(default=[], description="All versions, the latest first.")
    display_name: str | Object
    description: str = ""
    intent_tags: list[str]
    input_schema: Object
    output_schema: Object
    models: Object
    context: Object
    cost: Object
    composable: bool
    dependencies: list[str]
    rank: int = Field(default=1, ge=1, description="Its rank, if the request names an intent.")
    matched: list[str] = Field(default=[], description="The tags by which it serves the intent.")
    decided_by: str = Field(default="", description="The criterion that ranked it behind the one before.")
    explanation: list[str] = Field(default=[], description="The reasons for its rank.")


class SkillList(BaseModel):
    """Several registry entries."""

    skills: list[RegisteredTool]


class PartFault(BaseModel):
    """One thing wrong with parameters or a result."""

    part: Literal["params", "result"]
    path: str = Field(description="Where in that part, such as nets[2].x.")
    message: str
    provided_value: Any
    allowed: Any = None


class Validation(BaseModel):
    """Whether parameters or a result suit a skill."""

    valid: bool
    errors: list[PartFault]


class Health(BaseModel):
    """The answer of a server that is up."""

    status: Literal["ok"]


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the failures with these statuses as FastAPI declares the answers of a route."""
    return {status: {"model": Failure, "description": _MEANINGS[status]} for status in statuses}


def document(app: FastAPI, view: View, max_timeout: float, *, needs_token: bool) -> dict[str, Any]:
    """Return the OpenAPI document.

    Every callable tool has a path of its own for execution, so that its parameters and answer are typed.

    Args:
        app: The application; its routes are described.
        view: The tools that are served.
        max_timeout: Longest duration of a call that a request may set. [s]
        needs_token: Whether requests need a token.
    """
    result = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    paths, schemas = result["paths"], result["components"]["schemas"]
    for operation in (operation for path in paths.values() for operation in path.values()):
        operation.pop("description")  # says the same as the summary
        for parameter in operation.get("parameters", ()):
            parameter["schema"].pop("default", None)  # an empty text, which means that there is none
        if "HTTPValidationError" in str(operation["responses"].get("422")):  # FastAPI's own form, never answered here
            del operation["responses"]["422"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    ids = list(view.tools.by_id)
    if ids:
        paths["/skills/{id}"]["get"]["parameters"][0]["schema"]["enum"] = ids
        schemas[ValidateBody.__name__]["properties"]["skill_id"]["enum"] = ids
    generic = paths.pop(_EXECUTE)["post"]
    schemas.pop(ExecuteBody.__name__)
    tools = [tool for tool in view.tools.by_id.values() if tool.script]
    for name in served_names((tool.id for tool in tools), "underscored"):
        tool = tools.pop(0)
        paths[_EXECUTE.replace("{id}", tool.id)] = {"post": _typed(generic, tool, f"execute_{name}", max_timeout)}
    if needs_token:
        result["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        result["security"] = [{"token": []}]
        paths["/healthz"]["get"]["security"] = []
    return result


def _typed(generic: dict[str, Any], tool: ToolDeclaration, operation_id: str, max_timeout: float) -> dict[str, Any]:
    """Return the operation that executes any tool as the one that executes ``tool``."""
    place = f"#/paths/{_EXECUTE.replace('{id}', tool.id).replace('~', '~0').replace('/', '~1')}/post"
    content = "content/application~1json/schema"
    body = ExecuteBody.model_json_schema()
    body["properties"]["params"] = travelling(tool.input_schema, f"{place}/requestBody/{content}/properties/params")
    body["properties"]["timeout_s"]["maximum"] = max_timeout
    body["required"] = ["params"] if tool.input_schema.get("required") else []
    data = travelling(tool.output_schema, f"{place}/responses/200/{content}/oneOf/0/properties/data")
    operation = {**deepcopy(generic), "operationId": operation_id, "summary": tool.description or tool.id}
    del operation["parameters"]
    operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": body}}}
    operation["responses"]["200"]["content"] = {_JSON: {"schema": envelope_schema(data, answer_codes(tool))}}
    return operation
