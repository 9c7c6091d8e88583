"""Texts about this machine made fit for somebody who must not know its folders."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

# A POSIX or Windows path up to its last component. Not a path: a fraction, a MIME type, a relative path, a URL.
_PATH = re.compile(
    r"(?:(?<=file://)|(?<![\w.:/\\]))(?:/(?!/)(?:[^\s/:'\"`<>|,;()\[\]{}]+/)+|[A-Za-z]:[\\/](?:[^\s\\/:'\"`<>|]+[\\/])*)"
    r"([^\s/\\:'\"`<>|,;()\[\]{}]*)"
)
_MAX_DEPTH = 64


def without_paths(value: Any, request: Any) -> Any:
    """Return a JSON value with the folders of every absolute path taken out of its texts.

    A path that the request itself holds is no secret and stays.

    Args:
        value: What would be answered.
        request: What was asked, as JSON.
    """
    return _redacted(value, json.dumps(request, ensure_ascii=False, default=str))


def _redacted(value: Any, known: str, depth: int = 0) -> Any:
    if isinstance(value, str):
        return _without(value, known)
    if depth >= _MAX_DEPTH:
        return value
    if isinstance(value, list):
        return [_redacted(item, known, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_without(key, known): _redacted(item, known, depth + 1) for key, item in value.items()}
    return value


def _without(text: str, known: str) -> str:
    """Return a text without folders: those of this machine, whatever is in their names, then all that look so."""
    if "/" not in text and "\\" not in text:
        return text
    for folder in (str(Path.cwd()), *_own_folders()):
        if not _told(folder, known):
            text = text.replace(folder.rstrip("/\\") + "/", "").replace(folder.rstrip("/\\") + "\\", "")
    return _PATH.sub(lambda match: match[0] if _told(match[0], known) else match[1] or "...", text)


@cache
def _own_folders() -> tuple[str, ...]:
    """Return folders of this installation and this user that a text may show."""
    folders = {str(Path(__file__).resolve().parents[3]), sys.prefix, sys.base_prefix, tempfile.gettempdir()}
    home = Path("~").expanduser()
    return tuple(sorted((folders | {str(home)}) - {home.anchor, "/"}, key=len, reverse=True))


def _told(path: str, known: str) -> bool:
    """Return whether the request holds a path."""
    return json.dumps(path, ensure_ascii=False)[1:-1] in known
