"""Downloads, listing and uploads of the files that tools work on: ``/files`` and ``/files/{path}``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import anyio.to_thread
from fastapi import Header, HTTPException, Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, Field

from skillpack.hosts.confined_files import FileExistsAlreadyError
from skillpack.hosts.media_types import BYTES, media_type
from skillpack.hosts.work_files import MAX_LISTED, OpenFile, WorkFile
from skillpack.skills.exceptions import FileRefusedError
from skillscript.envelope import to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from skillpack.hosts.pack import Pack

FOLDER = "/files"
FILE = "/files/{path}"
ROUTE = "/files/{path:path}"
CHUNK = 1 << 18
_SNIFFED = 4096
_RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.ASCII)
_PathInFolder = Annotated[str, Path(description="Path from the server's folder.", json_schema_extra={"minLength": 1})]
_Match = Annotated[
    str,
    Header(description="'*': only if there is no such file.", json_schema_extra={"enum": ["*"], "pattern": r"^\*$"}),
]
_Safe = {  # a browser must not run what somebody handed over
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
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

    async def list_files(self, under: Annotated[str, Query(json_schema_extra={"minLength": 1})] = "") -> Response:
        """List the files that tools work on, below the server's folder or a folder in it."""
        files, is_cut = await anyio.to_thread.run_sync(self.pack.files.listing, under)
        return _json(200, {"files": [_listed(file) for file in files], "is_cut": is_cut})

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
        content = await request.body()
        try:
            created = await anyio.to_thread.run_sync(self._write, path, content, if_none_match == "")
        except FileExistsAlreadyError as error:
            raise HTTPException(412, str(error)) from error
        except FileRefusedError as error:
            raise HTTPException(422 if self.pack.files.takes_uploads else 403, str(error)) from error
        listed = _listed(WorkFile(path, len(content)))
        location = {"location": file_path(path)} if created else {}
        return _json(201 if created else 200, {**listed, "created": created}, location)

    def _write(self, path: str, content: bytes, replace: bool) -> bool:
        return self.pack.files.write(path, content, replace=replace, programs=self.pack.refused_programs())


def file_path(path: str) -> str:
    """Return the path of a URL at which a file is."""
    return f"{FOLDER}/{quote(path)}"


def link_header(files: Iterable[WorkFile]) -> dict[str, str]:
    """Return the header ``Link`` that names the files that a call made; none if it made none."""
    links = [f'<{file_path(file.path)}>; rel="item"; type="{file.media_type or BYTES}"' for file in files]
    return {"link": ", ".join(links)} if links else {}


def _answer(request: Request, opened: OpenFile) -> Response:
    """Return the response with a file. It reads the file for its digest: call it from a thread."""
    size, tag = opened.file.size, f'"{opened.sha256}"'
    if tag in re.findall(r'"[^"]*"', request.headers.get("if-none-match", "")):
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
    wanted = request.headers.get("range", "")
    if wanted and request.headers.get("if-range", tag) == tag and (found := _RANGE.fullmatch(wanted)) is not None:
        start, end = _bounds(found[1], found[2], size)
        if start >= end:
            opened.close()
            raise HTTPException(416, f"the file has {size} bytes", {"content-range": f"bytes */{size}"})
        status = 206
        headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
    headers["content-length"] = str(end - start)
    kind = opened.file.media_type or media_type(opened.file.path, opened.chunk(0, _SNIFFED))
    if request.method == "HEAD":
        opened.close()
        return Response(status_code=status, headers=headers, media_type=kind)
    return StreamingResponse(_chunks(opened, start, end), status, headers, kind)


def _bounds(first: str, last: str, size: int) -> tuple[int, int]:
    """Return the start and the end of a range ``first-last`` of a file; an empty one if there are no such bytes."""
    if not first:
        return (max(0, size - int(last[:20])), size) if last else (0, 0)
    return int(first[:20]), min(size, int(last[:20]) + 1) if last else size


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


def _json(status: int, value: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    body = to_json(value).encode("utf-8", "backslashreplace")
    return Response(body, status, {**(headers or {}), "cache-control": "no-store"}, "application/json")
