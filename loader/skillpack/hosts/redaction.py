"""Texts about this machine made fit for somebody who must not know its folders."""

from __future__ import annotations

import re
import sys
import tempfile
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# A POSIX or Windows path up to its last component. Not a path: a fraction, a MIME type, a relative path, a URL.
_PATH = re.compile(
    r"(?:(?<=file://)|(?<![\w.:/\\]))(?:/(?!/)(?:[^\s/:'\"`<>|,;()\[\]{}]+/)+|[A-Za-z]:[\\/](?:[^\s\\/:'\"`<>|]+[\\/])*)"
    r"([^\s/\\:'\"`<>|,;()\[\]{}]*)"
)
_MAX_DEPTH = 64


def without_paths(value: Any, request: Any) -> Any:
    """Return a JSON value with the folders of every absolute path taken out of its texts.

    A path that the request itself holds, or that leads to one it holds, is no secret and stays.

    Args:
        value: What would be answered.
        request: What was asked, as JSON.
    """
    told = [text for text in _texts(request) if _may_hold_path(text)]
    folders = (str(Path.cwd()), *_own_folders())
    paths = sorted(match[0] for text in told for match in _PATH.finditer(text))
    secret = tuple(folder for folder in folders if not any(folder in text for text in told))
    return _Redaction(paths, secret).of(value)


@dataclass(frozen=True)
class _Redaction:
    """Taking folders out of texts.

    Attributes:
        told: Paths that the request holds, sorted.
        folders: Folders of this machine that it does not hold.
    """

    told: list[str]
    folders: tuple[str, ...]

    def of(self, value: Any, depth: int = 0) -> Any:
        """Return a JSON value without folders."""
        if isinstance(value, str):
            return self._text(value)
        if depth >= _MAX_DEPTH:
            return value
        if isinstance(value, list):
            return [self.of(item, depth + 1) for item in value]
        if isinstance(value, dict):
            return {self._text(key): self.of(item, depth + 1) for key, item in value.items()}
        return value

    def _text(self, text: str) -> str:
        """Return a text without folders: those of this machine, whatever is in their names, then all that look so."""
        if not _may_hold_path(text):
            return text
        for folder in self.folders:
            text = text.replace(folder.rstrip("/\\") + "/", "").replace(folder.rstrip("/\\") + "\\", "")
        return _PATH.sub(lambda match: match[0] if self._is_told(match[0]) else match[1] or "...", text)

    def _is_told(self, path: str) -> bool:
        """Return whether the request holds a path, or one that begins so; a long request holds very many."""
        place = bisect_left(self.told, path)
        return place < len(self.told) and self.told[place].startswith(path)


def _may_hold_path(text: str) -> bool:
    return "/" in text or "\\" in text


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield every text of a JSON value, names too."""
    if isinstance(value, str):
        yield value
    elif depth < _MAX_DEPTH and isinstance(value, (list, dict)):
        for item in value:
            yield from _texts(item, depth + 1)
        if isinstance(value, dict):
            yield from _texts(list(value.values()), depth)


@cache
def _own_folders() -> tuple[str, ...]:
    """Return folders of this installation and this user that a text may show."""
    folders = {str(Path(__file__).resolve().parents[3]), sys.prefix, sys.base_prefix, tempfile.gettempdir()}
    home = Path("~").expanduser()
    return tuple(sorted((folders | {str(home)}) - {home.anchor, "/"}, key=len, reverse=True))
