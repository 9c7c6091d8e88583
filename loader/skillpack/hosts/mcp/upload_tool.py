"""The tool ``file_write``, with which a client without a shared disk uploads a file for the server's tools."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from skillpack.exceptions import FileRefusedError
from skillpack.hosts.confined_files import FileExistsAlreadyError
from skillpack.hosts.lean_schemas import lean_input
from skillpack.hosts.mcp.work_resources import file_uri, links
from skillpack.hosts.served_schemas import ANSWER
from skillpack.hosts.work_files import WorkFile
from skillscript.envelope import ErrorCode, SkillError, SkillResult
from skillscript.faults import joined
from skillscript.schema import fill_defaults, find_faults
from sturdy.strict_json import NotJsonError, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillpack.hosts.pack import Pack

NAME = "file_write"
_INPUT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["path"],
    "properties": {
        "path": {"type": "string", "minLength": 1, "description": "In the server's folder"},
        "text": {"type": "string", "description": "Content, or give base64"},
        "base64": {"type": "string", "description": "Binary content"},
        "overwrite": {"type": "boolean", "default": False, "description": "Replace a file"},
    },
}


def described(pack: Pack) -> list[dict[str, Any]]:
    """Return the tool's entry in ``tools/list``; none if the server accepts no files."""
    if not pack.files.takes_uploads:
        return []
    return [
        {
            "name": NAME,
            "title": "Upload a file",
            "description": (
                "Write a file on the server for its tools, which take its path: a netlist with its includes, a "
                "technology, a layout to check, an asset of a skill as skill_read gives it. Results come back as "
                "resource links."
            ),
            "inputSchema": lean_input(_INPUT),
            "outputSchema": ANSWER,
            "annotations": {
                "readOnlyHint": False,
                "destructiveHint": True,
                "idempotentHint": True,
                "openWorldHint": False,
            },
        }
    ]


def call(pack: Pack, arguments: Any) -> dict[str, Any]:
    """Return the answer of the tool. It writes a file: call it from a thread."""
    try:
        params = plain(arguments)
        faults = find_faults(params, _INPUT)
        if faults:
            return _failed(joined(faults))
        params = fill_defaults(params, _INPUT)
        content = _content(params)
        if len(content) > pack.max_upload:
            return _failed(f"the file has {len(content)} bytes; at most {pack.max_upload} are accepted")
        path = params["path"]
        created = pack.take_file(path, content, replace=params["overwrite"])
    except (NotJsonError, FileRefusedError) as error:
        advice = "; give overwrite: true to replace it" if isinstance(error, FileExistsAlreadyError) else ""
        return _failed(f"{error}{advice}")
    data = {"path": path, "uri": file_uri(path), "size": len(content), "created": created}
    return _answer(SkillResult.success(data), links([WorkFile(path, len(content))]))


def _content(params: Mapping[str, Any]) -> bytes:
    """Return the bytes that the parameters state.

    Raises:
        FileRefusedError: If they state none or two, or if the base64 text is invalid.
    """
    if ("text" in params) is ("base64" in params):
        raise FileRefusedError("give exactly one of text and base64")
    if "text" in params:
        return str(params["text"]).encode()
    try:
        return base64.b64decode("".join(params["base64"].split()), validate=True)
    except (ValueError, binascii.Error) as error:
        raise FileRefusedError(f"base64 cannot be decoded: {error}") from error


def _failed(message: str) -> dict[str, Any]:
    """Return the answer about a file that was not written."""
    return _answer(SkillResult.failure(SkillError(ErrorCode.INVALID_PARAM, message)))


def _answer(result: SkillResult, attached: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return an envelope as structure and as text, and what is attached to it."""
    content = [{"type": "text", "text": result.to_json()}, *attached]
    return {"content": content, "structuredContent": result.to_dict(), "isError": not result.ok}
