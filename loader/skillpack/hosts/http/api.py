"""The HTTP server: the registry as an API (S4.2), and calls of its tools.

FastAPI routes, checks and describes the requests; ``Guard`` is the middleware before it. The answer to every failure
is an envelope. Answers to other machines hold no folders of this one.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import sys
import tempfile
import time
from base64 import b64encode
from bisect import bisect_left
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import anyio.to_thread
from fastapi import FastAPI, HTTPException, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.routing import Match

from skillpack.execution.runner import choose
from skillpack.hosts.http import file_routes
from skillpack.hosts.http.file_routes import json_response
from skillpack.hosts.http.openapi import (
    OUTCOMES,
    REFUSALS,
    ExecuteBody,
    Health,
    RegisteredTool,
    SkillList,
    ValidateBody,
    Validation,
    document,
    failures,
)
from skillpack.hosts.listening import Guard, failure, is_json, serve
from skillpack.hosts.pack import Calls, Order, pack_version
from skillpack.registry.skill_registry import SkillRegistry
from skillscript.envelope import MAX_REPORTED, ErrorCode, Fault, SkillError, fault_details, joined
from skillscript.schema import find_faults
from sturdy.near_names import did_you_mean
from sturdy.strict_json import NotJsonError, parse_json, path_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from skillpack.execution.runner import Call
    from skillpack.hosts.listening import Access
    from skillpack.hosts.pack import Pack, View
    from skillpack.registry.declaration import ToolDeclaration

STATUS = {1: 409, 2: 422, 3: 503, 4: 500}  # by the exit code that the error would have; a timeout is 504
DESCRIPTION = (
    "Skills of this pack: what they are, whether parameters suit them, and calling them. JSON is read strictly: no key "
    "twice, integers within 64 bits, no NUL in a text, at most 64 levels deep."
)
_VALIDATE = "/skills/validate"
_OTHER_METHODS = ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"]
_DONE = {"response_description": "Done."}
_PAGE = FilePath(__file__).with_name("docs.html")
_Optional = Annotated[str, Query(json_schema_extra={"minLength": 1})]  # "" where the request does not name it
# A POSIX or Windows path up to its last component. Not a path: a fraction, a MIME type, a relative path, a URL.
_PATH = re.compile(
    r"(?:(?<=file://)|(?<![\w.:/\\]))(?:/(?!/)(?:[^\s/:'\"`<>|,;()\[\]{}]+/)+|[A-Za-z]:[\\/](?:[^\s\\/:'\"`<>|]+[\\/])*)"
    r"([^\s/\\:'\"`<>|,;()\[\]{}]*)"
)
_MAX_DEPTH = 64


def run(pack: Pack, access: Access, port: int, max_body: int) -> None:
    """Serve the HTTP API until a signal stops the process."""
    api = PackApi(pack, Calls(pack.max_workers), needs_token=access.token is not None)
    serve(Guard(api.app(), access, max_body=max_body), access, port)


class _StrictRequest(Request):
    """A request whose body is strict JSON: no key twice, no NaN, bounded depth."""

    async def json(self) -> Any:
        """Return the body's value."""
        if not hasattr(self, "_json"):
            try:
                self._json = parse_json(await self.body())
            except NotJsonError as error:
                raise HTTPException(400, f"the body: {error}") from error
        return self._json


class _StrictRoute(APIRoute):
    """A route that also refuses query parameters that are unknown, repeated or empty, and bodies not declared JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request."""
        answer = super().get_route_handler()
        known = [field.alias for field in self.dependant.query_params]

        async def strict(request: Request) -> Response:
            for name, value in request.query_params.multi_items():
                if name not in known:
                    raise HTTPException(400, f"unknown query parameter {name!r}{did_you_mean(name, known)}")
                if request.query_params.getlist(name) != [value] or not value:
                    raise HTTPException(400, f"the query parameter {name!r} must be given once and not be empty")
            checked = _StrictRequest(request.scope, request.receive)
            if self.body_field is not None:
                if not is_json(request.headers.get("content-type", "")):
                    raise HTTPException(415, "the body must be JSON, declared by 'Content-Type: application/json'")
                await checked.json()  # FastAPI would take an empty body for none
            return await answer(checked)

        return strict


@dataclass(frozen=True)
class PackApi:
    """The endpoints over one pack.

    Attributes:
        pack: What is served.
        calls: How many calls run at one time.
        needs_token: Whether requests need a token, for the OpenAPI document.
    """

    pack: Pack
    calls: Calls
    needs_token: bool = False

    def app(self) -> FastAPI:
        """Return the ASGI application, to be wrapped in a ``Guard``."""
        app = FastAPI(
            title="skillpack",
            version=pack_version(),
            description=DESCRIPTION,
            openapi_url=None,  # these two are routes below: behind the token, and without a script from elsewhere
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,  # to a scheme and host that a proxy before this server may not have
            responses=failures(*REFUSALS),
            exception_handlers={
                StarletteHTTPException: _refused,
                RequestValidationError: _invalid,
                Exception: _broken,
            },
            lifespan=self._lifespan,
        )
        app.router.route_class = _StrictRoute
        described = lru_cache(maxsize=2)(
            lambda view: document(app, view, self.pack.timeout, needs_token=self.needs_token)
        )

        async def openapi() -> Response:
            """This document."""
            return json_response(200, described(await self._view()))

        app.add_api_route(_VALIDATE, _post_only, methods=_OTHER_METHODS, include_in_schema=False)
        files = file_routes.FileRoutes(self.pack)
        read, write = file_routes.ANSWERS["read"], file_routes.ANSWERS["write"]
        of_file = {"response_model": None, "responses": {**read, **failures(404, 412, 416)}}
        of_body = {"responses": {**write, **failures(412, 422)}, "openapi_extra": file_routes.BODY}
        for method, path, endpoint, model, statuses, more in (
            ("GET", "/skills", self.list_skills, SkillList, (), _DONE),
            ("POST", _VALIDATE, self.validate, Validation, (404, 422), _DONE),
            ("GET", "/skills/{id}", self.get_skill, RegisteredTool, (404,), _DONE),
            ("POST", "/skills/{id}/execute", self.execute, dict[str, Any], OUTCOMES, _DONE),
            ("GET", "/healthz", self.health, Health, (), _DONE),
            ("GET", "/openapi.json", openapi, dict[str, Any], (), _DONE),
            ("GET", file_routes.FOLDER, files.list_files, file_routes.FileList, (), {}),
            ("GET", file_routes.ROUTE, files.read_file, None, (), of_file),
            ("PUT", file_routes.ROUTE, files.write_file, file_routes.WrittenFile, (), of_body),
        ):
            stated: dict[str, Any] = {"response_model": model, "responses": failures(*statuses), **more}
            summary = (endpoint.__doc__ or "").strip()
            app.add_api_route(
                path, endpoint, methods=[method], operation_id=endpoint.__name__, summary=summary, **stated
            )
            if method == "GET":
                app.add_api_route(path, endpoint, methods=["HEAD"], include_in_schema=False)
        app.add_api_route("/docs", _docs, methods=["GET", "HEAD"], include_in_schema=False)
        return app

    async def list_skills(self, intent: _Optional = "") -> Response:
        """List all skills, or those that serve an intent."""
        view = await self._view()
        if not intent:
            return json_response(200, {"skills": [_definition(view, tool) for tool in view.tools.by_id.values()]})
        registry = SkillRegistry.from_tools(view.tools)
        ranked = await anyio.to_thread.run_sync(registry.get_skills_by_intent, intent)
        skills = [{**_definition(view, view.tools.by_id[item.name]), **item.to_json()} for item in ranked]
        return json_response(200, {"skills": skills})

    async def get_skill(
        self, tool_id: Annotated[str, Path(alias="id", description="Dotted id.")], version: _Optional = ""
    ) -> Response:
        """Return the definition of one skill, in the latest version or a given one."""
        view = await self._view()
        return json_response(200, _definition(view, _tool(view, tool_id, version)))

    async def validate(self, body: ValidateBody) -> Response:
        """Check parameters, or a result, against a skill's schemas; nothing runs."""
        tool = _tool(await self._view(), body.skill_id)
        errors = await anyio.to_thread.run_sync(_faults, tool, body.model_dump(exclude_unset=True))
        return json_response(200, {"valid": not errors, "errors": errors[:MAX_REPORTED]})

    async def execute(self, request: Request, tool_id: Annotated[str, Path(alias="id")], body: ExecuteBody) -> Response:
        """Call a skill; a client that disconnects has its call killed."""
        view = await self._view()
        tool_id = _tool(view, tool_id).id
        if body.version:
            _tool(view, tool_id, body.version)
            tool_id = f"{tool_id}@{body.version}"
        limit = body.timeout_s or self.pack.timeout
        if limit > self.pack.timeout:
            raise HTTPException(422, f"timeout_s must be at most {self.pack.timeout:g}, got {limit:g}")
        order = Order(tool_id, body.params, body.context or None, limit)
        since = time.time()
        call = await self._while_connected(request, view, order)
        if call is None:
            return Response(status_code=499)  # the client has disconnected
        return await anyio.to_thread.run_sync(self._answered, call, body.model_dump(), since)

    async def health(self) -> Response:
        """Report that the server is up."""
        return json_response(200, {"status": "ok"})

    async def _view(self) -> View:
        return await anyio.to_thread.run_sync(self.pack.view)

    def _answered(self, call: Call, body: Mapping[str, Any], since: float) -> Response:
        """Return the response for a finished call and the files it made; an error names no folder of this machine."""
        envelope = call.envelope
        error = call.result.error
        if error is not None:
            envelope = without_paths(envelope, body)
        headers = {"skillpack-note": "; ".join(call.notes)} if call.notes else {}
        if call.tool is not None:
            made = self.pack.files.made(call.tool, body["params"], call.result.data, since)
            headers |= file_routes.link_header(made)
        if error is not None and error.code == ErrorCode.SERVICE_UNAVAILABLE:
            headers["retry-after"] = "1"
        status = 200 if error is None else 504 if error.code == ErrorCode.TIMEOUT else STATUS[call.result.exit_code]
        return json_response(status, envelope, headers)

    async def _while_connected(self, request: Request, view: View, order: Order) -> Call | None:
        """Return the finished call, or None if the client disconnected; the tool has been killed then."""
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
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await anyio.to_thread.run_sync(self.pack.close)


def _definition(view: View, tool: ToolDeclaration) -> dict[str, Any]:
    """Return the registry entry of a tool (S4.1) with its available versions."""
    return {**tool.to_json(), "versions": [known.version for known in view.tools.versions(tool.id)]}


def _tool(view: View, tool_id: str, version: str = "") -> ToolDeclaration:
    """Return a tool, in a version or a later compatible one.

    Raises:
        HTTPException: 404 if there is none.
    """
    if "@" in tool_id or tool_id not in view.tools.by_id:
        raise HTTPException(404, f"unknown skill {tool_id!r}{did_you_mean(tool_id, view.tools.by_id)}")
    try:
        return choose(view.tools, f"{tool_id}@{version}" if version else tool_id).tool
    except SkillError as error:
        raise HTTPException(404, error.message) from error


def _faults(tool: ToolDeclaration, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the faults of the parameters or the result in a request to validate."""
    schemas = {"params": tool.input_schema, "result": tool.output_schema}
    return [
        {"part": part, **fault.to_dict()}
        for part, schema in schemas.items()
        if part in body
        for fault in find_faults(body[part], dict(schema))
    ]


async def _docs() -> Response:
    """Return the page that shows the OpenAPI document; it runs only its own script."""
    page = _PAGE.read_text(encoding="utf-8")
    texts = {tag: page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0] for tag in ("script", "style")}
    hashes = {tag: b64encode(hashlib.sha256(text.encode()).digest()).decode() for tag, text in texts.items()}
    policy = (
        f"default-src 'none'; connect-src 'self'; script-src 'sha256-{hashes['script']}'; "
        f"style-src 'sha256-{hashes['style']}'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {"content-security-policy": policy, "referrer-policy": "no-referrer", "x-content-type-options": "nosniff"}
    return HTMLResponse(page, headers=headers)


async def _post_only() -> Response:
    """Refuse to read the path of ``POST /skills/validate``, which ``/skills/{id}`` would take for a skill."""
    raise HTTPException(405, "Method Not Allowed", {"allow": "POST"})


async def _invalid(request: Request, error: Any) -> Response:
    """Answer a request whose body FastAPI refuses, with all faults at once."""
    model = request.scope["route"].body_field.field_info.annotation
    faults = find_faults(error.body, model.model_json_schema()) or [
        Fault(path_text(tuple(problem["loc"][1:])), problem["msg"], problem.get("input")) for problem in error.errors()
    ]
    return await _failed(request, 422, failure(joined(faults), details=fault_details(faults)))


async def _refused(request: Request, error: Any) -> Response:
    """Answer a request that cannot be served."""
    text = str(error.detail)
    if error.status_code == 404 and text == "Not Found":
        text = "there is nothing here; /openapi.json lists what there is"
    headers = error.headers
    if error.status_code == 405 and request.url.path != _VALIDATE:
        routes = (route for route in request.app.routes if route.matches(request.scope)[0] != Match.NONE)
        methods = sorted({method for route in routes for method in route.methods})
        headers = {"allow": ", ".join(methods)}  # Starlette names those of the first route alone
    return await _failed(request, error.status_code, failure(text), headers)


async def _failed(
    request: Request, status: int, envelope: dict[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    """Answer an envelope of a failure without the folders of this machine."""
    return json_response(status, await anyio.to_thread.run_sync(without_paths, envelope, request.url.path), headers)


async def _broken(_: Request, __: Exception) -> Response:
    """Answer for an unexpected exception, which the server's log shows."""
    return json_response(500, failure("internal error; the server's log says more", ErrorCode.INTERNAL_ERROR))


def without_paths(value: Any, request: Any) -> Any:
    """Return a JSON value whose texts hold no folder of an absolute path.

    A path that the request itself contains, or a folder above it, is not secret and stays.

    Args:
        value: The answer.
        request: The request, as JSON.
    """
    known: list[str] = []

    def noted(text: str) -> str:
        known.extend([text] if _may_hold_path(text) else [])
        return text

    _with_texts(request, noted)
    folders = (str(pathlib.Path.cwd()), *own_folders())
    paths = sorted(match[0] for text in known for match in _PATH.finditer(text))
    secret = tuple(folder for folder in folders if not any(folder in text for text in known))
    return _with_texts(value, _Redaction(paths, secret).of)


@dataclass(frozen=True)
class _Redaction:
    """Removes folders from texts.

    Attributes:
        known: Paths that the request contains, sorted.
        folders: Folders of this machine that it does not contain.
    """

    known: list[str]
    folders: tuple[str, ...]

    def of(self, text: str) -> str:
        """Return a text without folders: first those of this machine, then everything that looks like one."""
        if not _may_hold_path(text):
            return text
        for folder in self.folders:
            text = text.replace(folder.rstrip("/\\") + "/", "").replace(folder.rstrip("/\\") + "\\", "")
        return _PATH.sub(lambda match: match[0] if self._is_known(match[0]) else match[1] or "...", text)

    def _is_known(self, path: str) -> bool:
        """Return whether the request contains a path that starts so; a binary search, since it may contain many."""
        place = bisect_left(self.known, path)
        return place < len(self.known) and self.known[place].startswith(path)


def _may_hold_path(text: str) -> bool:
    return "/" in text or "\\" in text


def _with_texts(value: Any, change: Callable[[str], str], depth: int = 0) -> Any:
    """Return a JSON value with each of its texts, keys included, as ``change`` returns it."""
    if isinstance(value, str):
        return change(value)
    if depth < _MAX_DEPTH and isinstance(value, list):
        return [_with_texts(item, change, depth + 1) for item in value]
    if depth < _MAX_DEPTH and isinstance(value, dict):
        return {change(key): _with_texts(item, change, depth + 1) for key, item in value.items()}
    return value


@cache
def own_folders() -> tuple[str, ...]:
    """Return folders of this installation and this user that a text may contain."""
    folders = {str(pathlib.Path(__file__).resolve().parents[3]), sys.prefix, sys.base_prefix, tempfile.gettempdir()}
    home = os.path.expanduser("~")  # noqa: PTH111 - unchanged if there is no home folder
    return tuple(sorted((folders | {home}) - {pathlib.Path(home).anchor, "/", "~"}, key=len, reverse=True))
