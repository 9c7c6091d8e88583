"""The distributions installed here: what each requires, and which of them a module belongs to."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXTRA = re.compile(r'(?:(.*) and )?extra == "([^"]*)"(?: and (.*))?')


def parse_requirement(text: str) -> Requirement:
    """Return a PEP 508 requirement; its name is in the normal form, in which ``PyYAML`` is ``pyyaml``.

    Raises:
        ValueError: If it is none.
    """
    try:
        found = Requirement(text)
    except InvalidRequirement as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{text!r} is not a requirement such as 'numpy>=1.26': {reason}") from error
    found.name = canonicalize_name(found.name)
    return found


def _without_extra(requirement: Requirement) -> str:
    """Return the extra of a distribution that has a requirement, "" for none, and take it out of the marker."""
    text = str(requirement.marker or "")
    found = _EXTRA.fullmatch(text)
    if found is None:
        return text if "extra ==" in text else ""  # several extras, in a form that is not understood: never wanted
    rest = " and ".join(filter(None, (found[1], found[3])))
    requirement.marker = Marker(rest) if rest else None
    return found[2]


@cache
def distribution(name: str) -> metadata.Distribution | None:
    """Return an installed distribution, or None."""
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


@cache
def required_by(name: str, extras: tuple[str, ...] = ()) -> tuple[Requirement, ...]:
    """Return what a distribution requires with these extras; one name may occur several times, for other Pythons."""
    own = distribution(name)
    listed: list[tuple[str, Requirement]] = []
    for text in (own.requires or []) if own else []:
        with suppress(ValueError):  # an old distribution that does not follow PEP 508
            requirement = parse_requirement(text)
            listed.append((_without_extra(requirement), requirement))
    found: list[Requirement] = []
    active = ["", *sorted(extras)]
    for extra in active:  # it grows
        for requirement in [item for wanted, item in listed if wanted == extra]:
            if requirement.name == canonicalize_name(name):
                active += sorted(requirement.extras.difference(active))
            else:
                found.append(requirement)
    return tuple(found)


def everything_required(name: str) -> set[str]:
    """Return the names of all distributions that an installed one requires, directly or not."""
    return set(_walked(name, set()))


def _walked(name: str, seen: set[str]) -> Iterator[str]:
    for needed in required_by(name):
        if needed.name not in seen:
            seen.add(needed.name)
            yield needed.name
            yield from _walked(needed.name, seen)


@cache
def _owners() -> dict[str, tuple[str, ...]]:
    return {
        module: tuple(sorted({canonicalize_name(name) for name in names}))
        for module, names in metadata.packages_distributions().items()
    }


def owners_of(module: str) -> tuple[str, ...]:
    """Return the installed distributions that provide a top-level module; if there is none, its name as a guess."""
    return _owners().get(module) or (canonicalize_name(module),)
