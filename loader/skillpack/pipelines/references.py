"""References in a pipeline: ``{$from: /steps/parse/circuit/devices/0}``, a JSON Pointer (RFC 6901) into what is known.

``/inputs/NAME`` leads to an input of the pipeline, ``/steps/STEP/...`` into the data that step answered. A reference
may carry ``default``, taken where it leads to nothing, or ``optional: true``, which then leaves its field out.

The second part follows references in JSON Schemas, before anything runs, and compares two schemas: can a value that
one describes satisfy the other? Only a certain contradiction is a problem. What a schema leaves open, or a keyword that
is not compared, fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillscript.schema_references import described
from sturdy.near_names import did_you_mean
from sturdy.schema_acceptance import TYPE_WORDS, types_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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


def references(node: Any) -> list[tuple[Path, StepReference | ValueError]]:
    """Return every reference below ``node`` with its place, a malformed one as the error it is."""
    found: list[tuple[Path, StepReference | ValueError]] = []
    with_stand_ins(node, lambda path, reference: found.append((path, reference)))
    return found


def with_stand_ins(node: Any, stand_in: Callable[[Path, StepReference | ValueError], Any], path: Path = ()) -> Any:
    """Return ``node`` with what ``stand_in`` answers in the place of each reference; LEFT_OUT leaves a field out.

    Args:
        node: Literals and references.
        stand_in: Called with the place and the reference, a malformed one as the error it is.
        path: The place of ``node``.
    """
    try:
        reference = as_reference(node)
    except ValueError as error:
        return stand_in(path, error)
    if reference is not None:
        return stand_in(path, reference)
    if isinstance(node, dict):
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
        ValueError: If one is malformed.
    """
    return with_stand_ins(node, lambda _, reference: follow(reference, known))


def follow(reference: StepReference | ValueError, known: dict[str, Any]) -> Any:
    """Return what a reference leads to in ``known``, or LEFT_OUT; see ``resolve``."""
    if isinstance(reference, ValueError):
        raise reference
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


_MAX_DEPTH = 16


@dataclass(frozen=True)
class SchemaPlace:
    """A schema inside a document whose ``$defs`` it may refer to.

    Attributes:
        schema: The schema; True where nothing is known.
        root: The document that contains it.
        certain: Whether a value that satisfies the document always has something in this place.
        problem: Why no value can have anything there; "" if one can.
    """

    schema: Any
    root: Mapping[str, Any]
    certain: bool = True
    problem: str = ""

    def resolved(self) -> dict[str, Any]:
        """Return the schema with its reference followed; {} where nothing is known."""
        schema = described(self.schema, self.root)
        return {key: rule for key, rule in schema.items() if key != "$ref"} if isinstance(schema, dict) else {}


def find_place(place: SchemaPlace, path: Sequence[str | int]) -> SchemaPlace:
    """Return the schema of the element at ``path`` of the values that ``place`` describes."""
    for step in path:
        if place.problem:
            return place
        place = _inside(place, step)
    return place


def _inside(place: SchemaPlace, step: str | int) -> SchemaPlace:
    """Return the schema one step further in."""
    schema = place.resolved()
    types = types_of(schema)
    name = str(step)
    if "object" in types and types != {"array"}:
        properties = schema.get("properties", {})
        certain = place.certain and name in schema.get("required", ()) and types == {"object"}
        if name in properties:
            return SchemaPlace(properties[name], place.root, certain)
        others = schema.get("additionalProperties", True)
        if others is not False or "array" in types or _has_branches(schema):
            return SchemaPlace(True if _has_branches(schema) else others, place.root, certain)
        hint = did_you_mean(name, properties)
        return SchemaPlace(True, place.root, certain=False, problem=f"there is no {name!r}{hint}")
    if "array" in types:
        return _item(place, schema, name)
    words = " or ".join(TYPE_WORDS[kind] for kind in sorted(types))
    return SchemaPlace(True, place.root, certain=False, problem=f"there is no {name!r} in {words}")


def _item(place: SchemaPlace, schema: Mapping[str, Any], name: str) -> SchemaPlace:
    """Return the schema of an array's item."""
    if not name.isdigit():
        return SchemaPlace(True, place.root, certain=False, problem=f"an array has numbered items, not {name!r}")
    index = int(name)
    leading = schema.get("prefixItems", [])
    if index >= schema.get("maxItems", index + 1):
        return SchemaPlace(True, place.root, certain=False, problem=f"the array has at most {schema['maxItems']} items")
    certain = place.certain and index < schema.get("minItems", 0)
    return SchemaPlace(leading[index] if index < len(leading) else schema.get("items", True), place.root, certain)


def misfits(source: SchemaPlace, target: SchemaPlace, depth: int = 0) -> list[str]:
    """Return why no value of ``source`` satisfies ``target``; empty where one may."""
    given, wanted = source.resolved(), target.resolved()
    if target.schema is False:
        return ["nothing is allowed there"]
    if depth > _MAX_DEPTH:
        return []
    for keyword in ("anyOf", "oneOf"):
        tried = [misfits(source, SchemaPlace(branch, target.root), depth + 1) for branch in wanted.get(keyword, ())]
        tried_given = [
            misfits(SchemaPlace(branch, source.root), target, depth + 1) for branch in given.get(keyword, ())
        ]
        problems = _no_branch(tried) or _no_branch(tried_given)
        if problems:
            return problems
    # an integer is a number, and a number may be an integer
    has, takes = types_of(given), types_of(wanted)
    types = has & takes
    if has & {"number", "integer"} and takes & {"number", "integer"}:
        types |= has & {"number", "integer"}
    if not types:
        return [f"is {_words(has)}, but {_words(takes)} is wanted"]
    return _misfits_of_values(given, wanted) or (
        _misfits_of_parts(SchemaPlace(given, source.root), SchemaPlace(wanted, target.root), types, depth)
    )


def _has_branches(schema: Mapping[str, Any]) -> bool:
    return any(keyword in schema for keyword in ("anyOf", "oneOf", "allOf"))


def _no_branch(found: list[list[str]]) -> list[str]:
    """Return the first branch's problems when every branch has some."""
    return found[0] if found and all(found) else []


def _misfits_of_values(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return why enumerations or bounds exclude each other."""
    values, allowed = _values(given), _values(wanted)
    if values is not None and allowed is not None and not any(value in allowed for value in values):
        return [f"is one of {_list(values)}, but one of {_list(allowed)} is wanted"]
    low, high = given.get("minimum"), wanted.get("maximum")
    if low is not None and high is not None and low > high:
        return [f"is at least {low}, but at most {high} is wanted"]
    low, high = wanted.get("minimum"), given.get("maximum")
    if low is not None and high is not None and low > high:
        return [f"is at most {high}, but at least {low} is wanted"]
    return []


def _misfits_of_parts(given: SchemaPlace, wanted: SchemaPlace, types: set[str], depth: int) -> list[str]:
    """Return why the items or fields exclude each other, where arrays or objects are all there can be."""
    source, target = given.schema, wanted.schema
    if types == {"array"} and isinstance(source.get("items"), dict) and isinstance(target.get("items"), dict):
        inner = misfits(SchemaPlace(source["items"], given.root), SchemaPlace(target["items"], wanted.root), depth + 1)
        return [f"its items: {problem}" for problem in inner]
    if types != {"object"}:
        return []
    problems = []
    has, takes = source.get("properties", {}), target.get("properties", {})
    if source.get("additionalProperties") is False:
        problems += [f"has no {name!r}" for name in target.get("required", ()) if name not in has]
    if target.get("additionalProperties") is False:
        problems += [f"has {name!r}, which is not allowed" for name in source.get("required", ()) if name not in takes]
    for name in sorted(set(has) & set(takes) & set(source.get("required", ()))):
        inner = misfits(SchemaPlace(has[name], given.root), SchemaPlace(takes[name], wanted.root), depth + 1)
        problems += [f"its {name!r} {problem}" for problem in inner]
    return problems


def _values(schema: Mapping[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None


def _words(types: set[str]) -> str:
    return " or ".join(TYPE_WORDS[kind] for kind in sorted(types - {"integer"} if "number" in types else types))


def _list(values: list[Any]) -> str:
    return ", ".join(map(str, values))
