"""The lock of one script (``x.py.lock`` of uv), cut from the lock file of the pack."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from skillpack.copies.packages import own_distribution
from skillpack.copies.requirements import parse_requirement, required_by
from skillpack.copies.script_header import parse_toml, with_header

if TYPE_CHECKING:
    from collections.abc import Iterable

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
