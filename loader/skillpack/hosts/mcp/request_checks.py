"""Check the parameters of MCP requests: those of each method, and the envelope of revision 2026-07-28."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillpack.hosts.mcp.protocol import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    INVALID_PARAMS,
    MODERN_VERSIONS,
    PREFIX,
    UNSUPPORTED_PROTOCOL_VERSION,
    VERSION_KEY,
    RequestError,
)
from skillscript.accept import accepts

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT = {"type": "string"}
_OBJECT = {"type": "object"}


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": [*required], "properties": properties}


_CLIENT = _object("name", "version", name=_TEXT, version=_TEXT, title={"type": ["string", "null"]})
_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_META = _object(
    progressToken={"type": ["string", "integer", "null"]},
    **{CLIENT_KEY: {"anyOf": [_CLIENT, {"type": "null"}]}, f"{PREFIX}logLevel": {"enum": [*_LEVELS, None]}},
)
_LIST = _object(cursor={"type": ["string", "null"]})
_METHODS: dict[str, dict[str, Any]] = {
    "initialize": _object(
        "protocolVersion",
        "capabilities",
        "clientInfo",
        protocolVersion=_TEXT,
        capabilities=_OBJECT,
        clientInfo=_CLIENT,
    ),
    "tools/list": _LIST,
    "tools/call": _object("name", name=_TEXT, arguments={"type": ["object", "null"]}),
    "resources/list": _LIST,
    "resources/templates/list": _LIST,
    "resources/read": _object("uri", uri=_TEXT),
    "skills/list": _LIST,
    "skills/get": _object("uri", uri=_TEXT),
    "resources/directory/read": _object("uri", uri=_TEXT, cursor={"type": ["string", "null"]}),
}


def check_params(method: str, params: Mapping[str, Any] | None) -> None:
    """Check the parameters of a request, and its ``_meta``; those of an unknown method only that.

    Raises:
        RequestError: If they are not what the method takes.
    """
    schema = _METHODS.get(method, _OBJECT)
    value = {} if params is None else params
    meta = value.get("_meta")
    if not accepts(schema, value, schema) or (meta is not None and not accepts(_META, meta, _META)):
        raise RequestError(INVALID_PARAMS, "Invalid request parameters", "")


def check_envelope(params: Mapping[str, Any] | None) -> None:
    """Check that a request states a revision that is served, and what the client can do.

    Raises:
        RequestError: If it does not.
    """
    meta = (params or {}).get("_meta")
    if not isinstance(meta, dict):
        text = f"params._meta must be an object with {VERSION_KEY!r} and {CAPABILITIES_KEY!r}"
        raise RequestError(INVALID_PARAMS, text)
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        raise RequestError(INVALID_PARAMS, f"params._meta lacks {', '.join(map(repr, missing))}")
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise RequestError(INVALID_PARAMS, f"params._meta {VERSION_KEY!r} must be a string")
    if version not in MODERN_VERSIONS:
        facts = {"supported": [*MODERN_VERSIONS], "requested": version}
        raise RequestError(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", facts)
    if not isinstance(meta[CAPABILITIES_KEY], dict):
        raise RequestError(INVALID_PARAMS, "Invalid request parameters", "")
