"""Remove the folders of this machine from answers to other machines."""

from __future__ import annotations

import os
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
    """Return a JSON value whose texts hold no folder of an absolute path.

    A path that the request itself contains, or a folder above it, is not secret and stays.

    Args:
        value: The answer.
        request: The request, as JSON.
    """
    known = [text for text in _texts(request) if _may_hold_path(text)]
    folders = (str(Path.cwd()), *_own_folders())
    paths = sorted(match[0] for text in known for match in _PATH.finditer(text))
    secret = tuple(folder for folder in folders if not any(folder in text for text in known))
    return _Redaction(paths, secret).of(value)


@dataclass(frozen=True)
class _Redaction:
    """Removes folders from texts.

    Attributes:
        known: Paths that the request contains, sorted.
        folders: Folders of this machine that it does not contain.
    """

    known: list[str]
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


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield every text of a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif depth < _MAX_DEPTH and isinstance(value, (list, dict)):
        for item in value:
            yield from _texts(item, depth + 1)
        if isinstance(value, dict):
            yield from _texts(list(value.values()), depth)


@cache
def _own_folders() -> tuple[str, ...]:
    """Return folders of this installation and this user that a text may contain."""
    folders = {str(Path(__file__).resolve().parents[3]), sys.prefix, sys.base_prefix, tempfile.gettempdir()}
    home = os.path.expanduser("~")  # noqa: PTH111 - unchanged if there is no home folder
    return tuple(sorted((folders | {home}) - {Path(home).anchor, "/", "~"}, key=len, reverse=True))
