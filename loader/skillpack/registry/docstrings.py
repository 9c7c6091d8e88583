"""What a docstring says: its first paragraph, and what it says of each parameter (Google, NumPy or Sphinx style)."""

from __future__ import annotations

import inspect
import re

_COLON = "[:\uff1a]"  # ASCII or full-width
_TITLES = "Args|Arguments|Parameters|Other Parameters|Attributes|参数|属性"
_SECTION = re.compile(rf"(?:{_TITLES})\s*{_COLON}")
_NUMPY_SECTION = re.compile(rf"(?:{_TITLES})")
_UNDERLINE = re.compile(r"-{3,}")
_GOOGLE = re.compile(rf"\*{{0,2}}(\w+)\s*(?:\([^)]*\))?\s*{_COLON}\s*(.*)")
_NUMPY = re.compile(r"\*{0,2}(\w+)(?:\s*:.*|(?:,\s*\*{0,2}\w+)*)")
_SPHINX = re.compile(r":(?:param|parameter|arg|argument|ivar)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return a docstring's first paragraph and what it says of each parameter or attribute."""
    lines = inspect.cleandoc(text).splitlines()
    blank = lines.index("") if "" in lines else len(lines)
    paragraph = [] if lines and _SPHINX.fullmatch(lines[0]) else lines[:blank]
    summary = " ".join(line.strip() for line in paragraph)
    return summary, {**_sphinx(lines), **_numpy(lines), **_google(lines)}


def _google(lines: list[str]) -> dict[str, str]:
    """Return the entries ``name (type): text`` below a line such as ``Args:``, deeper lines going on."""
    told: dict[str, str] = {}
    current, inside, indent = "", False, 0
    for line in lines:
        stripped = line.strip()
        depth = len(line) - len(line.lstrip())
        if stripped and depth == 0:
            inside, current, indent = bool(_SECTION.fullmatch(stripped)), "", 0
        elif inside and stripped:
            indent = indent or depth
            match = _GOOGLE.fullmatch(stripped) if depth == indent else None
            if match:
                current = match[1]
                told[current] = match[2]
            elif current:
                told[current] = f"{told[current]} {stripped}".strip()
    return told


def _numpy(lines: list[str]) -> dict[str, str]:
    """Return the entries ``name : type`` below an underlined title, their texts indented."""
    told: dict[str, str] = {}
    current, inside = "", False
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        stripped = line.strip()
        if _UNDERLINE.fullmatch(following.strip()):
            inside, current = bool(_NUMPY_SECTION.fullmatch(stripped)), ""
        elif inside and stripped and not _UNDERLINE.fullmatch(stripped):
            match = _NUMPY.fullmatch(stripped) if line == line.lstrip() else None
            if match:
                current = match[1]
                told[current] = ""
            elif current:
                told[current] = f"{told[current]} {stripped}".strip()
    return {name: text for name, text in told.items() if text}


def _sphinx(lines: list[str]) -> dict[str, str]:
    """Return the fields ``:param type name: text``, indented lines going on."""
    told: dict[str, str] = {}
    current = ""
    for line in lines:
        match = _SPHINX.fullmatch(line.strip())
        if match:
            current = match[1]
            told[current] = match[2]
        elif current and line.strip() and line != line.lstrip():
            told[current] = f"{told[current]} {line.strip()}".strip()
        else:
            current = ""
    return told
