"""References in a pipeline: ``{$from: /steps/parse/circuit/devices/0}``, a JSON Pointer (RFC 6901) into what is known.

``/inputs/NAME`` leads to an input of the pipeline, ``/steps/STEP/...`` into the data that step answered. A reference
may carry ``default``, taken where it leads to nothing, or ``optional: true``, which then leaves its field out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sturdy.near_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FROM = "$from"
_KEYS = {FROM, "default", "optional"}
Path = tuple[str | int, ...]
LEFT_OUT = object()


class LostReferenceError(LookupError):
    """A reference leads to nothing in the values that are there."""


@dataclass(frozen=True)
class StepReference:
    """One reference.

    Attributes:
        pointer: As written.
        steps: Its unescaped parts.
        optional: Whether its field is left out where it leads to nothing.
        has_default: Whether ``default`` is taken there.
        default: What is taken.
    """

    pointer: str
    steps: tuple[str, ...]
    optional: bool = False
    has_default: bool = False
    default: Any = None

    def written(self) -> dict[str, Any]:
        """Return it as it is written in a pipeline."""
        default = {"default": self.default} if self.has_default else {}
        return {FROM: self.pointer, "optional": self.optional, **default}


def as_reference(node: Any) -> StepReference | None:
    """Return the reference that a node of a pipeline's parameters is, or None for a literal.

    Raises:
        ValueError: If it is a malformed reference.
    """
    if not isinstance(node, dict) or FROM not in node:
        return None
    unknown = sorted(set(node) - _KEYS)
    if unknown:
        raise ValueError(f"a reference has no field {unknown[0]!r}{did_you_mean(unknown[0], _KEYS)}")
    pointer = node[FROM]
    if not isinstance(pointer, str) or not pointer.startswith(("/inputs/", "/steps/")):
        raise ValueError(f"a reference starts with /inputs/ or /steps/, got {pointer!r}")
    steps = tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/"))
    if "" in steps:
        raise ValueError(f"the reference {pointer!r} has an empty part")
    optional = node.get("optional", False)
    if not isinstance(optional, bool):
        raise ValueError(f"'optional' is true or false, got {optional!r}")  # noqa: TRY004 - one kind of fault
    return StepReference(pointer, steps, optional, "default" in node, node.get("default"))


def references(node: Any, path: Path = ()) -> Iterator[tuple[Path, StepReference | ValueError]]:
    """Return every reference below ``node`` with its place, a malformed one as the error it is."""
    try:
        reference = as_reference(node)
    except ValueError as error:
        yield path, error
        return
    if reference is not None:
        yield path, reference
    elif isinstance(node, dict):
        for key, item in node.items():
            yield from references(item, (*path, key))
    elif isinstance(node, list):
        for index, item in enumerate(node):
            yield from references(item, (*path, index))


def with_stand_ins(node: Any, stand_in: Callable[[Path, StepReference | None], Any], path: Path = ()) -> Any:
    """Return ``node`` with what ``stand_in`` answers in the place of each reference; LEFT_OUT leaves a field out.

    Args:
        node: Literals and references.
        stand_in: Called with the place and the reference, None for a malformed one.
        path: The place of ``node``.
    """
    if isinstance(node, dict):
        if FROM in node:
            try:
                return stand_in(path, as_reference(node))
            except ValueError:
                return stand_in(path, None)
        filled = {key: with_stand_ins(item, stand_in, (*path, key)) for key, item in node.items()}
        return {key: item for key, item in filled.items() if item is not LEFT_OUT}
    if isinstance(node, list):
        items = [with_stand_ins(item, stand_in, (*path, index)) for index, item in enumerate(node)]
        return [item for item in items if item is not LEFT_OUT]
    return node


def resolve(node: Any, known: dict[str, Any]) -> Any:
    """Return ``node`` with each reference replaced by what it leads to in ``known``.

    Args:
        node: Literals and references.
        known: ``{"inputs": {...}, "steps": {id: data}}``.

    Raises:
        LostReferenceError: If a reference without default that is not optional leads to nothing.
    """
    reference = as_reference(node)
    if reference is not None:
        return _follow(reference, known)
    if isinstance(node, dict):
        resolved = {key: resolve(item, known) for key, item in node.items()}
        return {key: item for key, item in resolved.items() if item is not LEFT_OUT}
    if isinstance(node, list):
        return [item for item in (resolve(entry, known) for entry in node) if item is not LEFT_OUT]
    return node


def _follow(reference: StepReference, known: dict[str, Any]) -> Any:
    place: Any = known
    for step in reference.steps:
        if isinstance(place, dict) and step in place:
            place = place[step]
        elif isinstance(place, list) and step.isdigit() and int(step) < len(place):
            place = place[int(step)]
        elif reference.has_default:
            return reference.default
        elif reference.optional:
            return LEFT_OUT
        else:
            there = f"a list of {len(place)}" if isinstance(place, list) else _fields(place)
            raise LostReferenceError(f"{reference.pointer} leads to nothing: there is no {step!r} in {there}")
    return place


def _fields(place: Any) -> str:
    if not isinstance(place, dict):
        return "a single value"
    return f"an object with {', '.join(sorted(place)[:10])}" if place else "an empty object"
