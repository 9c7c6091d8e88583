"""The files that tools work on as MCP resources, and the files that a call made as links and images in its answer."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from skillpack.exceptions import FileRefusedError, SkillpackError
from skillpack.hosts.media_types import media_type, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillpack.hosts.work_files import WorkFile, WorkFiles

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
    contents = {"uri": uri, "mimeType": media_type(path, content)}
    readable = text_of(content)
    if readable is not None:
        contents["text"] = readable
    else:
        contents["blob"] = base64.b64encode(content).decode("ascii")
    return {"contents": [contents], "ttlMs": 0, "cacheScope": "private"}
