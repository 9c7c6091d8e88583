"""Downloads, listing and uploads of the files that tools work on: ``/files`` and ``/files/{path}``."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import anyio.to_thread
from fastapi import Header, HTTPException, Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, Field

from skillpack.exceptions import FileRefusedError
from skillpack.hosts.work_files import BYTES, MAX_LISTED, OpenFile, WorkFile, media_type
from skillpack.untrusted.file_access import FileExistsAlreadyError
from skillscript.envelope import to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from skillpack.hosts.pack import Pack

FOLDER = "/files"
FILE = "/files/{path}"
ROUTE = "/files/{path:path}"
CHUNK = 1 << 18
_SNIFFED = 4096
_RANGE = re.compile(r"bytes=(?=-?\d)(\d*)-(\d*)", re.ASCII)
_TAG = re.compile(r'(?:W/)?"[^"]*"')
_MAX_LINK = 4000  # characters; many proxies refuse answers with a longer header
_PathInFolder = Annotated[str, Path(description="Path from the server's folder.", json_schema_extra={"minLength": 1})]
_Match = Annotated[
    str,
    Header(description="'*': only if there is no such file.", json_schema_extra={"enum": ["*"], "pattern": r"^\*$"}),
]
_Safe = {  # a browser must not run an uploaded file
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "private, no-cache",
}
ANSWERS: dict[str, dict[int | str, dict[str, Any]]] = {
    "read": {
        200: {"description": "The file.", "content": {"*/*": {}}},
        206: {"description": "The requested range of it.", "content": {"*/*": {}}},
        304: {"description": "The file is the one that If-None-Match names."},
    },
    "write": {
        200: {"description": "The file was replaced."},
        201: {"description": "The file was written."},
    },
}
BODY = {"requestBody": {"required": False, "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}}}


class ListedFile(BaseModel):
    """A file that tools work on."""

    path: str = Field(description="Path from the server's folder; the file is at /files/PATH.")
    size: int = Field(description="[bytes]")
    media_type: str


class FileList(BaseModel):
    """Files that tools work on."""

    files: list[ListedFile]
    is_cut: bool = Field(description=f"Whether there are more; at most {MAX_LISTED} are listed.")


class WrittenFile(ListedFile):
    """A file that was written."""

    created: bool


@dataclass(frozen=True)
class FileRoutes:
    """The endpoints for files.

    Attributes:
        pack: Whose files.
    """

    pack: Pack
    _writing: threading.Lock = field(default_factory=threading.Lock, init=False)

    async def list_files(self, under: Annotated[str, Query(json_schema_extra={"minLength": 1})] = "") -> Response:
        """List the files that tools work on, below the server's folder or a folder in it."""
        files, is_cut = await anyio.to_thread.run_sync(self.pack.files.listing, under)
        return json_response(200, {"files": [_listed(file) for file in files], "is_cut": is_cut})

    async def read_file(self, request: Request, path: _PathInFolder) -> Response:
        """Return a file, or the range of it that the request names; its ETag is its SHA-256."""
        try:
            opened = await anyio.to_thread.run_sync(self.pack.files.open, path)
        except FileNotFoundError as error:
            raise HTTPException(404, f"this server has no file {path!r}; {FOLDER} lists them") from error
        except FileRefusedError as error:
            raise HTTPException(404, f"the file {path!r} {error}") from error
        try:
            return await anyio.to_thread.run_sync(_answer, request, opened)
        except BaseException:
            opened.close()
            raise

    async def write_file(self, request: Request, path: _PathInFolder, if_none_match: _Match = "") -> Response:
        """Write a file from the body, so that tools can use it; a file of that name is replaced."""
        if request.headers.get("if-none-match", "*") != "*":  # an empty one is not the same as none
            raise HTTPException(400, "If-None-Match must be '*' here: write the file only if there is none")
        if "content-range" in request.headers:
            raise HTTPException(400, "upload the whole file, without Content-Range")
        if request.headers.get("content-encoding", "identity") != "identity":
            raise HTTPException(415, "upload the bytes of the file, without Content-Encoding")
        content, expected = await request.body(), request.headers.get("if-match")
        try:
            created = await anyio.to_thread.run_sync(self._write, path, content, if_none_match == "", expected)
        except (FileExistsAlreadyError, _OtherFileError) as error:
            raise HTTPException(412, str(error)) from error
        except FileRefusedError as error:
            raise HTTPException(422 if self.pack.files.takes_uploads else 403, str(error)) from error
        listed = _listed(WorkFile(path, len(content)))
        location = {"location": file_path(path)} if created else {}
        return json_response(201 if created else 200, {**listed, "created": created}, location)

    def _write(self, path: str, content: bytes, replace: bool, expected: str | None) -> bool:
        with self._writing:  # of two clients with the same If-Match, only one may replace the file
            if expected is not None and not _is_named(self._tag(path), expected):
                raise _OtherFileError(f"{path!r} is not the file that If-Match names")
            return self.pack.take_file(path, content, replace=replace)

    def _tag(self, path: str) -> str | None:
        try:
            with self.pack.files.open(path) as opened:
                return _tag_of(opened)
        except (FileNotFoundError, FileRefusedError):
            return None


class _OtherFileError(Exception):
    """The file is not the one that a client expects to replace."""


def file_path(path: str) -> str:
    """Return the path of a URL at which a file is."""
    return f"{FOLDER}/{quote(path)}"


def link_header(files: Iterable[WorkFile]) -> dict[str, str]:
    """Return the header ``Link`` that names the files that a call made; none if it made none."""
    links = ""
    for file in files:
        link = f'<{file_path(file.path)}>; rel="item"; type="{file.media_type or BYTES}"'
        if len(links) + len(link) > _MAX_LINK:
            break
        links += f", {link}" if links else link
    return {"link": links} if links else {}


def _answer(request: Request, opened: OpenFile) -> Response:
    """Return the response with a file. It reads the file for its digest: call it from a thread."""
    size, tag = opened.file.size, _tag_of(opened)
    if not _is_named(tag, request.headers.get("if-match", "*")):
        raise HTTPException(412, "the file is not the one that If-Match names")
    if _is_named(tag, request.headers.get("if-none-match", ""), weak=True):
        opened.close()
        return Response(status_code=304, headers={"etag": tag, **_Safe})
    name = quote(opened.file.path.rpartition("/")[2])
    headers = {
        **_Safe,
        "etag": tag,
        "accept-ranges": "bytes",
        "content-disposition": f"attachment; filename*=UTF-8''{name}",
    }
    start, end, status = 0, size, 200
    bounds = _bounds(request.headers.get("range", ""), size) if request.method == "GET" else None
    if bounds is not None and request.headers.get("if-range", tag) == tag:
        start, end = bounds
        if start >= end:
            raise HTTPException(416, f"the file has {size} bytes", {"content-range": f"bytes */{size}"})
        status = 206
        headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
    headers["content-length"] = str(end - start)
    kind = opened.file.media_type or media_type(opened.file.path, opened.chunk(0, _SNIFFED))
    if request.method == "HEAD":
        opened.close()
        return Response(status_code=status, headers=headers, media_type=kind)
    return StreamingResponse(_chunks(opened, start, end), status, headers, kind)


def _tag_of(opened: OpenFile) -> str:
    return f'"{opened.sha256}"'


def _is_named(tag: str | None, header: str, *, weak: bool = False) -> bool:
    """Return whether a header ``If-Match`` or, by the weak comparison, ``If-None-Match`` names a file's tag."""
    if header.strip() == "*":
        return tag is not None
    return tag is not None and tag in (name.removeprefix("W/") if weak else name for name in _TAG.findall(header))


def _bounds(wanted: str, size: int) -> tuple[int, int] | None:
    """Return start and end of the range that a header names, an empty one if there are no such bytes; None for none."""
    found = _RANGE.fullmatch(wanted)
    if found is None:
        return None
    first, last = (text[:20] for text in found.groups())
    if not first:
        return max(0, size - int(last)), size
    if last and int(last) < int(first):
        return None
    return int(first), min(size, int(last) + 1) if last else size


async def _chunks(opened: OpenFile, start: int, end: int) -> AsyncIterator[bytes]:
    """Yield the bytes of an open file from ``start`` to before ``end``, and close it."""
    with opened:
        while start < end:
            chunk = await anyio.to_thread.run_sync(opened.chunk, start, min(CHUNK, end - start))
            if not chunk:  # it was cut meanwhile; the connection is closed, since the length was announced
                return
            start += len(chunk)
            yield chunk


def _listed(file: WorkFile) -> dict[str, Any]:
    return {"path": file.path, "size": file.size, "media_type": file.media_type or BYTES}


def json_response(status: int, value: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    body = to_json(value).encode("utf-8", "backslashreplace")
    return Response(body, status, {**(headers or {}), "cache-control": "no-store"}, "application/json")
