"""The header of a script (PEP 723), which says what it needs, and its lock (``x.py.lock`` of uv)."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from skillpack.copies.packages import own_distribution, parse_requirement, required_by
from skillpack.exceptions import CopyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_COMMENTS = r"(?:#(?: [^\n]*|\r)?\n)*"
# As PEP 723 has it: the last closing line in a run of comments counts. A run without one is passed over at once.
_HEADER = re.compile(rf"^# /// script[ \t]*\r?\n(?:({_COMMENTS})# ///[ \t]*(?=\r?$)|{_COMMENTS})", re.MULTILINE)
_toml_text = partial(json.dumps, ensure_ascii=False)  # a text in JSON is one in TOML, too
_TABLE = re.compile(r"\s*\[")
_FIRST_LINES = re.compile(r"(?:#![^\n]*\n)?(?:#[^\n]*coding[:=][^\n]*\n)?")


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
    found = _headers(source.removeprefix("\ufeff"))
    if not found:
        return None
    if len(found) > 1:
        raise CopyError(f"has {len(found)} headers '# /// script'; a script has one")
    lines = [line[2:].rstrip("\r") for line in found[0][1].split("\n")[:-1]]
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


def _headers(text: str) -> list[re.Match[str]]:
    """Return the headers in the text of a script; group 1 of each is what it says, as comments."""
    return [found for found in _HEADER.finditer(text) if found[1] is not None]


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
    content = [f"requires-python = {_toml_text(requires_python)}"]
    content += ["dependencies = [", *(f"  {_toml_text(item)}," for item in dependencies), "]"]
    if not dependencies:
        content[1:] = ["dependencies = []"]
    content += tables.split("\n") if tables else []
    header = ["# /// script", *(f"# {line}".rstrip() for line in content), "# ///"]
    text = source.removeprefix("\ufeff")
    place = next(iter(_headers(text)), None)
    start, end = place.span() if place else (_top(text), _top(text))
    newline = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    return text[:start] + newline.join(header) + ("" if place else newline) + text[end:]


def _top(text: str) -> int:
    """Return the place at which a header may be inserted: below ``#!`` and the encoding."""
    found = _FIRST_LINES.match(text)
    return found.end() if found else 0


DEFAULT_PYTHON = ">=3.10"
LOCK_FILE = "scripts.lock"  # beside the skills' folders; `make locks` of this pack writes it
_PACKAGE = "[[package]]\n"
_MANIFEST = "[manifest]\n"


class Lock(NamedTuple):
    """A lock file of uv.

    Attributes:
        head: Its text before the requirements.
        requirements: What it was made for: lines of the file by requirements, as ``_comparable`` writes them.
        packages: Texts of the locked distributions, all versions, by name; each with the names of those it needs.
        requires_python: The Pythons it was made for.
    """

    head: str
    requirements: dict[str, str]
    packages: dict[str, tuple[str, frozenset[str]]]
    requires_python: str

    def cut(self, requirements: Iterable[str], requires_python: str) -> str | None:
        """Return the lock of a script with these requirements, or None if this one does not cover them."""
        wanted = {_comparable(text) for text in requirements}
        if requires_python != self.requires_python or not wanted <= self.requirements.keys():
            return None
        needed: set[str] = set()
        waiting = [parse_requirement(text).name for text in wanted]
        while waiting:
            name = waiting.pop()
            if name not in needed and name in self.packages:
                needed.add(name)
                waiting += self.packages[name][1]
        lines = "".join(f"    {self.requirements[item]},\n" for item in sorted(wanted))
        manifest = f"\n{_MANIFEST}requirements = [\n{lines}]\n" if lines else ""
        return self.head + manifest + "".join(text for name, (text, _) in self.packages.items() if name in needed)


@lru_cache(maxsize=4)
def read_lock(text: str) -> Lock:
    """Return the lock file that uv wrote for a script.

    Raises:
        ValueError: If it is not such a file.
    """
    content = parse_toml(text)
    head, _, rest = text.partition(f"\n{_MANIFEST}")
    listed = [
        line.strip().rstrip(",") for line in rest.partition("[[package]]")[0].split("\n") if line.startswith("    {")
    ]
    required = content.get("manifest", {}).get("requirements", [])
    packages: dict[str, tuple[str, frozenset[str]]] = {}
    texts = [f"\n{_PACKAGE}{part.rstrip()}\n" for part in rest.split(_PACKAGE)[1:]]
    for part, package in zip(texts, content.get("package", []), strict=True):
        before = packages.get(package["name"], ("", frozenset()))
        packages[package["name"]] = before[0] + part, before[1] | _needs(package)
    requirements = {_requirement(item): line for item, line in zip(required, listed, strict=True)}
    return Lock(head, requirements, packages, content.get("requires-python", ""))


def _needs(package: dict[str, Any]) -> frozenset[str]:
    groups = [package.get("dependencies", []), *package.get("optional-dependencies", {}).values()]
    return frozenset(item["name"] for group in groups for item in group)


def _requirement(item: dict[str, Any]) -> str:
    """Return a requirement of a lock file."""
    text = f"{item['name']}[{','.join(item.get('extras', ()))}]{item.get('specifier', '')}"
    return _comparable(f"{text}; {item['marker']}" if "marker" in item else text)


def _comparable(text: str) -> str:
    """Return a requirement in the one form in which equal ones are equal texts; uv writes some markers differently."""
    return str(parse_requirement(text.replace("python_full_version", "python_version")))


def script_to_lock(extras: Iterable[str]) -> str:
    """Return a script that requires all that this distribution requires with ``extras``, for ``uv lock --script``."""
    required = required_by(own_distribution() or "", tuple(extras))
    return with_header("", DEFAULT_PYTHON, sorted(map(str, required)))


if __name__ == "__main__":
    sys.stdout.write(script_to_lock(sys.argv[1:]))
