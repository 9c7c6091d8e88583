"""The images that a tool made, for hosts that show them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillpack.skills.exceptions import FileRefusedError
from skillpack.skills.file_access import inside, read_bounded
from skillscript.schema_references import described

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillpack.registry.declaration import ToolDeclaration

MAX_IMAGE_BYTES = 3 << 20  # base64 makes 4 MiB of it, the smallest limit of a widespread host
MAX_IMAGES = 4
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CLOCK_SLACK_S = 2.0  # the coarsest time stamps of a file system


def made_images(tool: ToolDeclaration, params: Mapping[str, Any], data: Any, since: float) -> list[bytes]:
    """Return the PNG files that a call made and its answer names: ``image_path``, or any ``.png`` in ``files``.

    Files are left out that the call did not write, that lie outside the working folder and the folders that the call
    names, that are links, too large, or no PNG.

    Args:
        tool: The tool that was called.
        params: Parameters of the call.
        data: Its answer's data.
        since: When the call began. [s, as time.time]
    """
    if not isinstance(data, dict):
        return []
    folders = list(_folders(tool, params))
    found: list[bytes] = []
    for path in dict.fromkeys(_named(data)):
        content = _made_png(path, folders, since) if len(found) < MAX_IMAGES else None
        if content is not None:
            found.append(content)
    return found


def _named(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of pictures in an answer."""
    if isinstance(data.get("image_path"), str):
        yield data["image_path"]
    files = data.get("files")
    if isinstance(files, dict):
        yield from (value for value in files.values() if isinstance(value, str) and value.lower().endswith(".png"))


def _folders(tool: ToolDeclaration, params: Mapping[str, Any]) -> Iterator[str]:
    """Yield the working folder and the folders a call names, itself or through the environment (``x-env``)."""
    properties = tool.input_schema.get("properties", {})
    rules = [described(rule, tool.input_schema) for rule in properties.values()]
    variables = [rule["x-env"] for rule in rules if isinstance(rule, dict) and "x-env" in rule]
    texts = [value for value in params.values() if isinstance(value, str)]
    for text in [".", *texts, *(os.environ.get(name, "") for name in variables)]:
        if text and "\x00" not in text:
            folder = Path(text).resolve()
            folder = folder if folder.is_dir() else folder.parent
            if folder.is_dir() and folder != Path(folder.anchor):
                yield str(folder)


def _made_png(path: str, folders: list[str], since: float) -> bytes | None:
    """Return the content of a PNG file written since then inside one of the folders, else None."""
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_mtime < since - _CLOCK_SLACK_S:
            return None
        if not any(inside(folder, path) for folder in folders):
            return None
        content = read_bounded(path, MAX_IMAGE_BYTES)
    except (OSError, ValueError, FileRefusedError):
        return None
    return content if content.startswith(_SIGNATURE) else None
