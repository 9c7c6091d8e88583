"""The header of a script (PEP 723): which Python and which distributions it needs."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillpack.exceptions import CopyError

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPEN = re.compile(r"# /// script\s*")
_CLOSE = re.compile(r"# ///\s*")
_TABLE = re.compile(r"\s*\[")
_ENCODING = re.compile(r"#.*coding[:=]")


def parse_toml(text: str) -> dict[str, Any]:
    """Return the content of a TOML document.

    Raises:
        ValueError: If it is not TOML.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # the same module, before it was added to the standard library
    content: dict[str, Any] = tomllib.loads(text)
    return content


@dataclass(frozen=True)
class ScriptHeader:
    """The header of one script.

    Attributes:
        requires_python: Which Pythons may run it, such as ``>=3.10``; "" if the header does not say.
        dependencies: The distributions it needs, as PEP 508 requirements.
        tool: The tables below ``tool``.
        tables: Text of all tables, such as ``[tool.uv]``, without comment signs.
    """

    requires_python: str = ""
    dependencies: tuple[str, ...] = ()
    tool: dict[str, Any] = field(default_factory=dict)
    tables: str = ""


def read_header(source: str) -> ScriptHeader | None:
    """Return the header of a script, or None if it has none.

    Raises:
        CopyError: If it has several, or one that is not TOML of the specified form.
    """
    places = _places(source)
    if not places:
        return None
    if len(places) > 1:
        raise CopyError(f"has {len(places)} headers '# /// script'; a script has one")
    first, last = places[0]
    lines = [line[2:].rstrip("\r") for line in source.split("\n")[first + 1 : last]]
    try:
        content = parse_toml("\n".join(lines))
    except ValueError as error:
        raise CopyError(f"its header '# /// script' is not TOML: {error}") from error
    python, needed = content.get("requires-python", ""), content.get("dependencies", [])
    tool = content.get("tool", {})
    listed = isinstance(needed, list) and all(isinstance(item, str) for item in needed)
    if not isinstance(python, str) or not listed or not _is_tool(tool):
        raise CopyError("its header has requires-python = TEXT, dependencies = [TEXT, ...] and tables below tool only")
    start = next((index for index, line in enumerate(lines) if _TABLE.match(line)), len(lines))
    tables = "\n".join(lines[start:]).strip()
    if tool and parse_toml(tables) != {"tool": tool}:
        raise CopyError("its header has settings of tool above its first table; write them as [tool.NAME] at its end")
    return ScriptHeader(python, tuple(needed), tool, tables)


def _is_tool(tool: object) -> bool:
    """Return whether ``tool``, ``tool.uv`` and ``tool.uv.sources`` are tables."""
    uv = tool.get("uv", {}) if isinstance(tool, dict) else None
    return isinstance(uv, dict) and isinstance(uv.get("sources", {}), dict)


def with_header(source: str, requires_python: str, dependencies: Sequence[str], tables: str = "") -> str:
    """Return ``source`` with this header in the place of its own, or else at its top.

    Args:
        source: Text of the script.
        requires_python: Which Pythons may run it.
        dependencies: PEP 508 requirements.
        tables: Text of further tables.
    """
    content = [f"requires-python = {_quoted(requires_python)}"]
    content += ["dependencies = [", *(f"  {_quoted(item)}," for item in dependencies), "]"]
    if not dependencies:
        content[1:] = ["dependencies = []"]
    content += tables.split("\n") if tables else []
    header = ["# /// script", *(f"# {line}".rstrip() for line in content), "# ///"]
    lines = source.removeprefix("\ufeff").split("\n")
    places = _places(source)
    first, last = places[0] if places else (_top(lines), _top(lines) - 1)
    end = "\r" if lines[0].endswith("\r") else ""
    lines[first : last + 1] = [line + end for line in header]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Return a TOML string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _top(lines: list[str]) -> int:
    """Return the line at which a header may be inserted: below ``#!`` and the encoding."""
    shebang = int(bool(lines) and lines[0].startswith("#!"))
    return shebang + int(len(lines) > shebang and bool(_ENCODING.match(lines[shebang])))


def _places(source: str) -> list[tuple[int, int]]:
    """Return the first and the last line of each header; the last closing line in a run of comments counts."""
    lines = [line.rstrip("\r") for line in source.removeprefix("\ufeff").split("\n")]
    places = []
    index = 0
    while index < len(lines):
        if not _OPEN.fullmatch(lines[index]):
            index += 1
            continue
        end = index + 1
        while end < len(lines) and (lines[end] == "#" or lines[end].startswith("# ")):
            end += 1
        closing = [number for number in range(index + 1, end) if _CLOSE.fullmatch(lines[number])]
        if closing:
            places.append((index, closing[-1]))
        index = end
    return places
