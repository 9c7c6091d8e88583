"""Media types of files, by their names."""

from __future__ import annotations

import os

BYTES = "application/octet-stream"
_BY_SUFFIX = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".png": "image/png",
    ".py": "text/x-python",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}


def known_type(path: str) -> str | None:
    """Return the media type that the suffix of a file's name stands for; None for an unknown suffix."""
    return _BY_SUFFIX.get(os.path.splitext(path)[1].lower())  # noqa: PTH122


def media_type(path: str, content: bytes | None = None) -> str:
    """Return the media type of a file, from its name or else its content: plain text, or bytes."""
    known = known_type(path)
    if known is not None or content is None:
        return known or BYTES
    return "text/plain" if text_of(content) is not None else BYTES


def text_of(content: bytes) -> str | None:
    """Return content as text; None if it is not UTF-8, or contains NUL, which texts do not and binary formats do."""
    if b"\x00" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None
