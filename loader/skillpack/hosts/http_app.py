"""The HTTP server: the registry as an API (S4.2), and calls of its skills."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from skillpack.execution.tool_choice import choose
from skillpack.hosts.calls import Calls, Order
from skillpack.hosts.guard import failure, is_json
from skillpack.hosts.openapi import EXECUTE_BODY, VALIDATE_BODY, Limits, document
from skillpack.hosts.pack import pack_version
from skillpack.hosts.redaction import without_paths
from skillpack.registry.definitions import SkillRegistry
from skillscript.envelope import ErrorCode, SkillError, to_json
from skillscript.faults import MAX_TOLD, Fault, did_you_mean, fault_details, joined
from skillscript.schema import find_faults
from skillscript.strict_json import NotJsonError, parse_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.requests import Request

    from skillpack.execution.runner import Call
    from skillpack.hosts.pack import Pack, View
    from skillpack.registry.declaration import ToolDeclaration

STATUS = {
    ErrorCode.INVALID_PARAM: 422,
    ErrorCode.DEVICE_NOT_FOUND: 422,
    ErrorCode.RULE_NOT_FOUND: 422,
    ErrorCode.UNSUPPORTED_OPERATION: 422,
    ErrorCode.DRC_VIOLATION: 409,
    ErrorCode.LAYOUT_CONFLICT: 409,
    ErrorCode.SERVICE_UNAVAILABLE: 503,
    ErrorCode.TIMEOUT: 504,
    ErrorCode.KLAYOUT_ERROR: 500,
    ErrorCode.INTERNAL_ERROR: 500,
}


@dataclass(frozen=True)
class PackApi:
    """The endpoints over one pack.

    Attributes:
        pack: What is served.
        calls: How many calls run at one time.
        needs_token: Whether requests must bear a token, for the OpenAPI document.
    """

    pack: Pack
    calls: Calls
    needs_token: bool = False

    def app(self) -> Starlette:
        """Return the ASGI application; a guard belongs in front of it."""
        app = Starlette(
            routes=[
                Route("/skills", self.list_skills, methods=["GET"]),
                Route("/skills/validate", _post_only(self.validate)),
                Route("/skills/{id}", self.get_skill, methods=["GET"]),
                Route("/skills/{id}/execute", self.execute, methods=["POST"]),
                Route("/healthz", self.health, methods=["GET"]),
                Route("/openapi.json", self.openapi, methods=["GET"]),
            ],
            exception_handlers={HTTPException: _refused, Exception: _broken},
            lifespan=self._lifespan,
        )
        app.router.redirect_slashes = False  # to a scheme and host that a proxy before this server may not have
        return app

    async def list_skills(self, request: Request) -> Response:
        """Answer all skills, or those that serve an intent."""
        query = _query(request, "intent")
        view = await self._view()
        return _json(200, await anyio.to_thread.run_sync(_listed, view, query.get("intent")))

    async def get_skill(self, request: Request) -> Response:
        """Answer the definition of one skill."""
        query = _query(request, "version")
        view = await self._view()
        tool = _tool(view, request.path_params["id"], query.get("version"))
        return _json(200, _definition(view, tool))

    async def validate(self, request: Request) -> Response:
        """Answer whether parameters or a result suit a skill; nothing is run."""
        _query(request)
        body = await _body(request, VALIDATE_BODY)
        tool = _tool(await self._view(), body["skill_id"], None)
        errors = await anyio.to_thread.run_sync(_faults, tool, body)
        return _json(200, {"valid": not errors, "errors": errors[:MAX_TOLD]})

    async def execute(self, request: Request) -> Response:
        """Call a skill and answer its envelope; a client that leaves has its call killed."""
        _query(request)
        view = await self._view()
        tool_id = _tool(view, request.path_params["id"], None).id
        body = await _body(request, EXECUTE_BODY)
        if "version" in body:
            _tool(view, tool_id, body["version"])
            tool_id = f"{tool_id}@{body['version']}"
        limit = body.get("timeout_s", self.pack.timeout)
        if limit > self.pack.timeout:
            raise HTTPException(422, f"timeout_s must be at most {self.pack.timeout:g}, got {limit:g}")
        order = Order(tool_id, body.get("params", {}), body.get("context"), limit)
        call = await self._while_connected(request, view, order)
        if call is None:
            return Response(status_code=499)  # nobody is there to read it
        return await anyio.to_thread.run_sync(_answered, call, body)

    async def health(self, request: Request) -> Response:
        """Answer that the server is up."""
        _query(request)
        return _json(200, {"status": "ok"})

    async def openapi(self, request: Request) -> Response:
        """Answer the OpenAPI document."""
        _query(request)
        view = await self._view()
        limits = Limits(needs_token=self.needs_token, max_timeout=self.pack.timeout)
        return _json(200, document(view, pack_version(), limits))

    async def _view(self) -> View:
        return await anyio.to_thread.run_sync(self.pack.view)

    async def _while_connected(self, request: Request, view: View, order: Order) -> Call | None:
        """Return the finished call, or None when the client left before; the tool is dead then."""
        call: Call | None = None
        async with anyio.create_task_group() as group:

            async def leave() -> None:
                while (await request.receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(leave)
            call = await self.calls.make(view.runner, order)
            group.cancel_scope.cancel()
        return call

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await anyio.to_thread.run_sync(self.pack.close)


def _listed(view: View, intent: str | None) -> dict[str, Any]:
    """Return all skills, or those that serve an intent in the order of their rank."""
    if intent is None:
        return {"skills": [_definition(view, tool) for tool in view.tools.by_id.values()]}
    ranked = SkillRegistry.from_tools(view.tools).get_skills_by_intent(intent)
    return {"skills": [{**_definition(view, view.tools.by_id[item.name]), **item.to_json()} for item in ranked]}


def _definition(view: View, tool: ToolDeclaration) -> dict[str, Any]:
    """Return the registry entry of a tool (S4.1) and the versions there are of it."""
    return {**tool.to_json(), "versions": [known.version for known in view.tools.versions(tool.id)]}


def _tool(view: View, tool_id: str, version: str | None) -> ToolDeclaration:
    """Return a tool, in a version or a later compatible one.

    Raises:
        HTTPException: 404 if there is none.
    """
    if "@" in tool_id or tool_id not in view.tools.by_id:
        raise HTTPException(404, f"unknown skill {tool_id!r}{did_you_mean(tool_id, view.tools.by_id)}")
    try:
        return choose(view.tools, tool_id if version is None else f"{tool_id}@{version}").tool
    except SkillError as error:
        raise HTTPException(404, error.message) from error


def _faults(tool: ToolDeclaration, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what is wrong with the parameters or the result in a request to validate."""
    schemas = {"params": tool.input_schema, "result": tool.output_schema}
    return [
        {"part": part, **fault.to_dict()}
        for part, schema in schemas.items()
        if part in body
        for fault in find_faults(body[part], dict(schema))
    ]


def _answered(call: Call, body: Mapping[str, Any]) -> Response:
    """Return an envelope; where it tells an error, it tells no folder of this machine."""
    envelope = call.envelope
    error = call.result.error
    if error is not None:
        envelope = without_paths(envelope, body)
    headers = {"skillpack-note": "; ".join(call.notes)} if call.notes else {}
    if error is not None and error.code == ErrorCode.SERVICE_UNAVAILABLE:
        headers["retry-after"] = "1"
    return _json(200 if error is None else STATUS.get(error.code, 422), envelope, headers)


async def _body(request: Request, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the body as JSON that a schema accepts.

    Raises:
        HTTPException: 415 if it is not said to be JSON, 400 if it is not, 422 if the schema refuses it.
    """
    if not is_json(request.headers.get("content-type", "")):
        raise HTTPException(415, "the body must be JSON, declared by 'Content-Type: application/json'")
    try:
        value = parse_json(await request.body())
    except NotJsonError as error:
        raise HTTPException(400, f"the body: {error}") from error
    faults = await anyio.to_thread.run_sync(find_faults, value, schema)
    if faults:
        raise _BodyRefusedError(422, joined(faults), faults)
    body: dict[str, Any] = value
    return body


class _BodyRefusedError(HTTPException):
    """A body that its schema refuses, with all faults."""

    def __init__(self, status_code: int, detail: str, faults: list[Fault]) -> None:
        super().__init__(status_code, detail)
        self.details = fault_details(faults)


def _query(request: Request, *known: str) -> dict[str, str]:
    """Return the query parameters.

    Raises:
        HTTPException: 400 for one that is unknown, empty or given twice.
    """
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            raise HTTPException(400, f"unknown query parameter {name!r}{did_you_mean(name, known)}")
        if name in found or not value:
            raise HTTPException(400, f"the query parameter {name!r} must be given once and not be empty")
        found[name] = value
    return found


def _post_only(endpoint: Any) -> type[HTTPEndpoint]:
    """Return an endpoint that takes POST and refuses every other method, which a path like ``/skills/{id}`` would."""

    class PostOnly(HTTPEndpoint):
        async def post(self, request: Request) -> Response:
            response: Response = await endpoint(request)
            return response

    return PostOnly


async def _refused(request: Request, error: Exception) -> Response:
    """Answer a request that is not as it should be."""
    status = getattr(error, "status_code", 500)
    message = str(getattr(error, "detail", error))
    if status == 404 and message == "Not Found":
        message = "there is nothing here; /openapi.json lists what there is"
    envelope = failure(message, details=getattr(error, "details", None))
    told = await anyio.to_thread.run_sync(without_paths, envelope, request.url.path)
    return _json(status, told, getattr(error, "headers", None))


async def _broken(_: Request, __: Exception) -> Response:
    """Answer for an unexpected exception, which the server's log shows."""
    return _json(500, failure("internal error; the server's log says more", ErrorCode.INTERNAL_ERROR))


def _json(status: int, value: dict[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    body = to_json(value).encode("utf-8", "backslashreplace")
    return Response(body, status, {**(headers or {}), "cache-control": "no-store"}, "application/json")
