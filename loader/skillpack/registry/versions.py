"""Semantic versions (semver.org 2.0.0): their order and requirements on them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillpack.exceptions import VersionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_VERSION = re.compile(
    r"(0|[1-9]\d{0,8})(?:\.(0|[1-9]\d{0,8}))?(?:\.(0|[1-9]\d{0,8}))?"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_COMPARATOR = re.compile(r"\s*(>=|<=|>|<|=|\^)?\s*(\S+)\s*")


@dataclass(frozen=True, order=True)
class Version:
    """A version that compares as semver specifies: ``1.0.0-alpha < 1.0.0-alpha.1 < 1.0.0 < 1.10.0``.

    Attributes:
        major: Changes when callers break.
        minor: Changes when something is added.
        patch: Changes when something is repaired.
        rank: Order of the prerelease among those of one version; a release comes after all of them.
    """

    major: int
    minor: int
    patch: int
    rank: tuple[tuple[int, int, str], ...]


_RELEASE = ((2, 0, ""),)


def parse_version(text: str) -> Version:
    """Return the version that ``text`` names; missing parts are 0 and build metadata does not count.

    Raises:
        VersionError: If it is not a semantic version.
    """
    match = _VERSION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise VersionError(f"{text!r} is not a version; write MAJOR.MINOR.PATCH, such as '1.2.0' or '2.0.0-rc.1'")
    major, minor, patch = (int(part or 0) for part in match.groups()[:3])
    return Version(major, minor, patch, _prerelease(text, match[4]))


def _prerelease(text: str, identifiers: str | None) -> tuple[tuple[int, int, str], ...]:
    """Return the rank of a prerelease: numbers below words, fewer identifiers below more (semver 11.4)."""
    if identifiers is None:
        return _RELEASE
    rank: list[tuple[int, int, str]] = []
    for identifier in identifiers.split("."):
        if not identifier.isdigit():
            rank.append((1, 0, identifier))
        elif identifier != "0" and identifier.startswith("0"):
            raise VersionError(f"{text!r} is not a version: {identifier!r} starts with a zero")
        else:
            rank.append((0, int(identifier), ""))
    return tuple(rank)


def latest(versions: Iterable[str]) -> str:
    """Return the highest of some version texts, at least one."""
    return max(versions, key=lambda text: (parse_version(text), text))


def satisfies(version: str, requirement: str) -> bool:
    """Return whether ``version`` fulfils ``requirement``.

    A requirement is one or several of ``>=1.2``, ``<2``, ``=1.2.3``, joined by commas. A bare version, like ``^``,
    means that one or a later one of the same major version; the empty text accepts any version.

    Raises:
        VersionError: If either cannot be understood.
    """
    have = parse_version(version)
    return all(holds(have) for holds in _comparators(requirement))


def check_requirement(requirement: str) -> None:
    """Raise VersionError if ``requirement`` cannot be understood."""
    _comparators(requirement)


def _comparators(requirement: str) -> list[Callable[[Version], bool]]:
    """Return the conditions of a requirement."""
    if not requirement.strip():
        return []
    found: list[Callable[[Version], bool]] = []
    for part in requirement.split(","):
        match = _COMPARATOR.fullmatch(part)
        if match is None:
            raise VersionError(f"{requirement!r} is not a version requirement; write such as '1.2.0' or '>=1.2,<3'")
        found.append(_comparator(match[1] or "^", parse_version(match[2])))
    return found


def _comparator(operator: str, wanted: Version) -> Callable[[Version], bool]:
    """Return one condition."""
    conditions: dict[str, Callable[[Version], bool]] = {
        ">=": lambda have: have >= wanted,
        "<=": lambda have: have <= wanted,
        ">": lambda have: have > wanted,
        "<": lambda have: have < wanted,
        "=": lambda have: have == wanted,
        "^": lambda have: have >= wanted and have.major == wanted.major,
    }
    return conditions[operator]
