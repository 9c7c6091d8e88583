"""The distributions installed here: what each requires, and which of them a module belongs to."""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_VERSIONS = r"(?:(?:===|[<>=!~]=|[<>])\s*[\w.*+!-]+\s*,?\s*)*"
_FORM = re.compile(
    r"\s*([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[([\w.,\s-]*)\])?\s*"
    rf"({_VERSIONS}|\(\s*{_VERSIONS}\)|@\s*[^\s;]+)\s*(?:;\s*(.*?)\s*)?",
    re.ASCII | re.DOTALL,
)
_EXTRA = re.compile(r"""\bextra\s*==\s*(['"])(.*?)\1""")
_AND = re.compile(r"^\s*and\s+|\s+and\s*$")


class Requirement(NamedTuple):
    """A PEP 508 requirement.

    Attributes:
        name: Name of the distribution in its normal form.
        extras: Its extras that are wanted.
        specifier: Its versions, or its address after ``@``.
        marker: When it applies, without the extra of the distribution that requires it.
        extra: That extra; "" if it is always required.
    """

    name: str
    extras: tuple[str, ...] = ()
    specifier: str = ""
    marker: str = ""
    extra: str = ""

    def __str__(self) -> str:
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        specifier = f" {self.specifier}" if self.specifier.startswith("@") else self.specifier
        return f"{self.name}{extras}{specifier}" + (f"; {self.marker}" if self.marker else "")


def normal_name(name: str) -> str:
    """Return the name of a distribution in its normal form: ``PyYAML`` is ``pyyaml``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_requirement(text: str) -> Requirement:
    """Return a requirement.

    Raises:
        ValueError: If it is none.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a requirement such as 'numpy>=1.26'")
    name, extras, specifier, marker = found.groups()
    named = _EXTRA.search(marker or "")
    rest = _AND.sub("", _EXTRA.sub("", marker or "")).strip()
    while rest.startswith("(") and rest.endswith(")") and "(" not in rest[1:-1]:
        rest = rest[1:-1].strip()
    specifier = specifier.strip("() ").replace(" ", "") if not specifier.startswith("@") else specifier
    wanted = sorted({normal_name(extra.strip()) for extra in (extras or "").split(",") if extra.strip()})
    return Requirement(normal_name(name), tuple(wanted), specifier, rest, named[2] if named else "")


def allows(specifier: str, version: str) -> bool:
    """Return whether the versions that a requirement allows contain a version; release numbers are compared."""
    return all(_allows(clause, _numbers(version)) for clause in specifier.split(",") if clause)


def _allows(clause: str, version: tuple[int, ...]) -> bool:
    text = clause.lstrip("<>=!~")
    sign = clause.removesuffix(text)
    wanted = _numbers(text)
    is_prefix = text.endswith(".*")
    same = version[: len(wanted)] if is_prefix else _without_zeros(version)
    limit = wanted if is_prefix else _without_zeros(wanted)
    if sign in {"==", "==="}:
        return same == limit
    if sign == "~=":
        return same >= limit and version[: len(wanted) - 1] == wanted[:-1]
    return {"!=": same != limit, ">=": same >= limit, "<=": same <= limit, ">": same > limit, "<": same < limit}[sign]


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a release, without what follows them, such as ``rc1``."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _without_zeros(numbers: tuple[int, ...]) -> tuple[int, ...]:
    while numbers and not numbers[-1]:
        numbers = numbers[:-1]
    return numbers


@cache
def distribution(name: str) -> metadata.Distribution | None:
    """Return an installed distribution, or None."""
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


@cache
def required_by(name: str, extras: Collection[str] = ()) -> dict[str, Requirement]:
    """Return what a distribution requires, by name; what only other extras than ``extras`` require is left out."""
    found: dict[str, Requirement] = {}
    own = distribution(name)
    waiting, seen = sorted(extras), set(extras)
    listed = [parse_requirement(text) for text in (own.requires or [] if own else [])]
    active = [""]
    while active or waiting:
        extra = active.pop() if active else waiting.pop(0)
        for requirement in listed:
            if requirement.extra != extra:
                continue
            if requirement.name == normal_name(name):
                waiting += [further for further in requirement.extras if further not in seen]
                seen.update(requirement.extras)
            else:
                found.setdefault(requirement.name, requirement)
    return found


def everything_required(name: str) -> set[str]:
    """Return the names of all distributions that an installed one requires, directly or not."""
    return set(_walked(name, set()))


def _walked(name: str, seen: set[str]) -> Iterator[str]:
    for needed in required_by(name):
        if needed not in seen:
            seen.add(needed)
            yield needed
            yield from _walked(needed, seen)


@cache
def _owners() -> dict[str, tuple[str, ...]]:
    return {
        module: tuple(sorted({normal_name(name) for name in names}))
        for module, names in metadata.packages_distributions().items()
    }


def owners_of(module: str) -> tuple[str, ...]:
    """Return the installed distributions that provide a top-level module; if there is none, its name as a guess."""
    return _owners().get(module) or (normal_name(module),)
