"""Versions of tools: their order (semver.org 2.0.0), requirements on them, and how parameters change between them.

The changes are data (skill.yaml) or functions. As data, one version's changes are applied in their order::

    migrations:
      - version: "1.2.0"                     # for parameters written before 1.2.0
        changes:
          - {rename: gate_width, to: w}
          - {scale: w, by: 1.0e-6}           # was um, is m
          - {default: nf, value: 1}          # set where it is missing
          - {replace: orientation, values: {N: R0, S: R180}}
          - {remove: color}

A name may be a path: ``nets[].width`` is the field ``width`` of every item of ``nets``. A missing field is not
changed; a value of an unexpected type is left to the schema check.
"""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

from skillpack.exceptions import MigrationError, VersionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


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


_EVERY_ITEM = "[]"


@dataclass(frozen=True)
class Migration:
    """What changed in the parameters with one version.

    Attributes:
        version: The version that brought the changes; parameters written for any older one are changed.
        changes: Changes as data, applied in order.
        function: Or a function from old to new parameters; it is given a copy of its own.
    """

    version: str
    changes: Sequence[Mapping[str, Any]] = ()
    function: Callable[[dict[str, Any]], dict[str, Any]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        parse_version(self.version)
        if bool(self.changes) is (self.function is not None):
            raise MigrationError(f"migration to {self.version} needs either changes or a function")
        for change in self.changes:
            _operation(change)

    def apply(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the changed parameters; ``params`` is left as it is.

        Raises:
            MigrationError: If old and new name of a field are both given, or the function fails or answers no object.
        """
        current = deepcopy(dict(params))
        if self.function is not None:
            try:
                answer = self.function(current)
            except Exception as error:
                text = f"migration to {self.version} failed: {type(error).__name__}: {error}"
                raise MigrationError(text) from error
            if not isinstance(answer, dict):
                raise MigrationError(f"migration to {self.version} answered a {type(answer).__name__}, not an object")
            return answer
        for change in self.changes:
            _apply(change, current, self.version)
        return current


class SkillVersionManager:
    """Decides which versions are compatible and carries parameters from an older one to a newer one (S0.12).

    Args:
        migrations: Known migrations by skill name.
    """

    COMPATIBILITY_POLICY: ClassVar[dict[str, str]] = {
        "major": "breaking",
        "minor": "additive",
        "patch": "compatible",
    }

    def __init__(self, migrations: Mapping[str, Iterable[Migration]] | None = None) -> None:
        self._migrations: dict[str, list[Migration]] = {}
        for skill_name, known in (migrations or {}).items():
            for migration in known:
                self.add_migration(skill_name, migration)

    def add_migration(self, skill_name: str, migration: Migration) -> None:
        """Add a migration of the skill ``skill_name``; the order of adding does not matter."""
        known = self._migrations.setdefault(skill_name, [])
        known.append(migration)
        known.sort(key=lambda item: parse_version(item.version))

    def is_compatible(self, requested: str, available: str) -> bool:
        """Return whether both versions have the same major version."""
        return parse_version(requested).major == parse_version(available).major

    def migrate_params(
        self, params: dict[str, Any], from_version: str, to_version: str, skill_name: str
    ) -> dict[str, Any]:
        """Return ``params``, written for ``from_version``, as ``to_version`` of ``skill_name`` expects them.

        Every migration whose version lies above ``from_version`` and not above ``to_version`` is applied, the lowest
        first. ``params`` is left as it is.

        Raises:
            VersionError: If a version is no semantic version.
            MigrationError: If ``to_version`` is older than ``from_version``, or a migration cannot be applied.
        """
        start, end = parse_version(from_version), parse_version(to_version)
        if end < start:
            raise MigrationError(
                f"parameters of {skill_name} {from_version} cannot be carried back to the older {to_version}"
            )
        current = dict(params)
        for migration in self._migrations.get(skill_name, ()):
            if start < parse_version(migration.version) <= end:
                current = migration.apply(current)
        return current


def _operation(change: Mapping[str, Any]) -> str:
    """Return which of the operations a change is."""
    found = [name for name in _OPERATIONS if name in change]
    if len(found) != 1 or not isinstance(change[found[0]], str):
        raise MigrationError(f"a change names one of {', '.join(_OPERATIONS)} with a field, got {dict(change)!r}")
    missing = [name for name in _NEEDS[found[0]] if name not in change]
    if missing:
        raise MigrationError(f"the change {found[0]!r} needs {', '.join(missing)}, got {dict(change)!r}")
    wrong = next((key for key, fits in _FITS.items() if key in change and not fits(change[key])), None)
    if wrong is not None:
        raise MigrationError(f"{wrong!r} of the change {found[0]!r} cannot be {change[wrong]!r}")
    *owners, last = change[found[0]].split(".")
    if last.endswith(_EVERY_ITEM) or "" in (last, *(step.removesuffix(_EVERY_ITEM) for step in owners)):
        raise MigrationError(f"a path ends in the name of a field, such as nets[].width, got {change[found[0]]!r}")
    return found[0]


def _apply(change: Mapping[str, Any], params: dict[str, Any], version: str) -> None:
    """Carry out one change in place."""
    operation = _operation(change)
    path: str = change[operation]
    for owner, name in list(_places(params, path)):
        _OPERATIONS[operation](owner, name, change, version)


def _places(value: Any, path: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Return every object that may hold the last field of ``path``, with that field's name."""
    step, _, rest = path.partition(".")
    if not rest:
        if isinstance(value, dict):
            yield value, step
        return
    name = step.removesuffix(_EVERY_ITEM)
    inner = value.get(name) if isinstance(value, dict) else None
    if not step.endswith(_EVERY_ITEM):
        yield from _places(inner, rest)
    elif isinstance(inner, list):
        for item in inner:
            yield from _places(item, rest)


def _rename(owner: dict[str, Any], name: str, change: Mapping[str, Any], version: str) -> None:
    if name not in owner:
        return
    if change["to"] in owner:
        raise MigrationError(f"{name!r} is called {change['to']!r} since {version}, and both are given; give one")
    owner[change["to"]] = owner.pop(name)


def _default(owner: dict[str, Any], name: str, change: Mapping[str, Any], _version: str) -> None:
    owner.setdefault(name, deepcopy(change["value"]))


def _remove(owner: dict[str, Any], name: str, _change: Mapping[str, Any], _version: str) -> None:
    owner.pop(name, None)


def _scale(owner: dict[str, Any], name: str, change: Mapping[str, Any], _version: str) -> None:
    """Multiply as decimals, so that 2 um become 2e-06 m and not 1.9999999999999998e-06."""
    value = owner.get(name)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        owner[name] = float(Decimal(repr(value)) * Decimal(repr(change["by"])))


def _replace(owner: dict[str, Any], name: str, change: Mapping[str, Any], _version: str) -> None:
    value = owner.get(name)
    if isinstance(value, str):
        owner[name] = change["values"].get(value, value)


_OPERATIONS: dict[str, Callable[[dict[str, Any], str, Mapping[str, Any], str], None]] = {
    "rename": _rename,
    "default": _default,
    "remove": _remove,
    "scale": _scale,
    "replace": _replace,
}
_FITS: dict[str, Callable[[Any], bool]] = {
    "to": lambda value: isinstance(value, str) and value != "",
    "by": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value),
    "values": lambda value: isinstance(value, dict),
}
_NEEDS = {"rename": ("to",), "default": ("value",), "remove": (), "scale": ("by",), "replace": ("values",)}
