"""The files that tools work on as MCP resources, and the files that a call made as links and images in its answer.

The tool ``file_write`` uploads a file from a client without a shared disk.
"""

from __future__ import annotations

import base64
import binascii
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from skillpack.exceptions import FileRefusedError, SkillpackError
from skillpack.hosts.served_schemas import ANSWER, lean_input
from skillpack.hosts.work_files import WorkFile, media_type
from skillpack.untrusted.file_access import FileExistsAlreadyError, text_of
from skillscript.envelope import ErrorCode, SkillError, SkillResult
from skillscript.schema import validate
from sturdy.strict_json import NotJsonError, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillpack.hosts.pack import Pack
    from skillpack.hosts.work_files import WorkFiles


SCHEME = "workspace:///"  # nothing between the second and the third slash, where URIs do not tell case apart
MAX_READ_BYTES = 16 << 20
MAX_IMAGE_BYTES = 3 << 20  # base64 makes 4 MiB of it, the smallest limit of a widespread host
MAX_IMAGES = 4
LINKS_SINCE = "2025-06-18"  # the first revision of MCP with links to resources in answers
TEMPLATE = {
    "uriTemplate": f"{SCHEME}{{+path}}",
    "name": "workspace-file",
    "description": "A file that tools made or read, by its path from the server's folder, as in a tool's answer.",
}
_PNG = "image/png"
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


class NotServedError(SkillpackError):
    """A request names something that this server does not have; clients get JSON-RPC's error for invalid parameters."""


def file_uri(path: str) -> str:
    """Return the URI of a file, by its path from the server's folder; of one elsewhere, by its absolute path."""
    is_absolute = path.startswith("/")
    return f"{SCHEME}{'%2F' if is_absolute else ''}{quote(path.removeprefix('/'))}"


def resource(file: WorkFile) -> dict[str, Any]:
    """Return the entry of a file in ``resources/list``."""
    kind = {} if file.media_type is None else {"mimeType": file.media_type}
    return {"uri": file_uri(file.path), "name": file.path, **kind, "size": file.size}


def links(files: Iterable[WorkFile]) -> list[dict[str, Any]]:
    """Return links to the files that a call made."""
    return [{"type": "resource_link", **resource(file)} for file in files]


def images(files: WorkFiles, made: Iterable[WorkFile]) -> list[dict[str, Any]]:
    """Return the PNG images among the files that a call made, without those that are too large."""
    found: list[dict[str, Any]] = []
    for file in made:
        if file.media_type != _PNG or file.size > MAX_IMAGE_BYTES or len(found) == MAX_IMAGES:
            continue
        try:
            with files.open(file.path) as opened:
                content = opened.read(MAX_IMAGE_BYTES)
        except (OSError, FileRefusedError):  # changed meanwhile
            continue
        if content.startswith(_SIGNATURE):
            found.append({"type": "image", "data": base64.b64encode(content).decode("ascii"), "mimeType": _PNG})
    return found


def read(files: WorkFiles, uri: str) -> dict[str, Any]:
    """Return one file, as text if it is UTF-8 without NUL.

    Raises:
        NotServedError: If the server has no such file, or it is too large for one message.
    """
    try:
        path = unquote(uri.removeprefix(SCHEME), errors="strict")
        with files.open(path) as opened:
            content = opened.read(MAX_READ_BYTES)
    except (UnicodeDecodeError, FileNotFoundError) as error:
        raise NotServedError(f"this server has no file {uri}; resources/list lists them") from error
    except FileRefusedError as error:
        raise NotServedError(f"{uri}: the file {error}") from error
    return {"contents": [contents_of(uri, path, content)], "ttlMs": 0, "cacheScope": "private"}


def contents_of(uri: str, path: str, content: bytes) -> dict[str, Any]:
    """Return a file as an item of ``contents``: as text if it is UTF-8 without NUL."""
    text = text_of(content)
    blob = {"blob": base64.b64encode(content).decode("ascii")}
    return {"uri": uri, "mimeType": media_type(path, content), **(blob if text is None else {"text": text})}


UPLOAD = "file_write"


@cache
def own_tool(name: str) -> dict[str, Any]:
    """Return title, description, schema of the arguments and hints of one of this server's own tools."""
    tools: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("own_tools.json").read_bytes())
    return tools[name]


def listed(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of one of this server's own tools in ``tools/list``."""
    own = own_tool(name)
    return {
        "name": name,
        "title": own["title"],
        "description": description,
        "inputSchema": lean_input(schema),
        "outputSchema": ANSWER,
        "annotations": own["annotations"],
    }


def upload_tool(pack: Pack) -> list[dict[str, Any]]:
    """Return the tool's entry in ``tools/list``; none if the server accepts no files."""
    own = own_tool(UPLOAD)
    return [listed(UPLOAD, own["description"], own["input"])] if pack.files.takes_uploads else []


def upload(pack: Pack, arguments: Any) -> dict[str, Any]:
    """Return the answer of the tool. It writes a file: upload it from a thread."""
    try:
        params = validate(plain(arguments), own_tool(UPLOAD)["input"])
        content = _uploaded(params)
        if len(content) > pack.max_upload:
            return _failed(f"the file has {len(content)} bytes; at most {pack.max_upload} are accepted")
        path = params["path"]
        created = pack.take_file(path, content, replace=params["overwrite"])
    except (NotJsonError, SkillError, FileRefusedError) as error:
        advice = "; give overwrite: true to replace it" if isinstance(error, FileExistsAlreadyError) else ""
        return _failed(f"{error}{advice}")
    data = {"path": path, "uri": file_uri(path), "size": len(content), "created": created}
    return _upload_answer(SkillResult.success(data), links([WorkFile(path, len(content))]))


def _uploaded(params: Mapping[str, Any]) -> bytes:
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
    return _upload_answer(SkillResult.failure(SkillError(ErrorCode.INVALID_PARAM, message)))


def _upload_answer(result: SkillResult, attached: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return an envelope as structure and as text, and what is attached to it."""
    content = [{"type": "text", "text": result.to_json()}, *attached]
    return {"content": content, "structuredContent": result.to_dict(), "isError": not result.ok}
