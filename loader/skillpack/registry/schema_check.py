"""Check that an untrusted JSON Schema is safe to validate with, once when its tool is declared.

``json_schema.schema.json`` says what every keyword holds; the check with it needs no ``jsonschema``. Where it fails,
the metaschema gives the messages.
"""

from __future__ import annotations

import math
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillscript.schema_references import child_schemas
from sturdy.schema_acceptance import accepts, resolve_pointer
from sturdy.strict_json import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator

_REPEATED_GROUP = re.compile(r"\)[*+{]")
_SHAPE = parse_json((Path(__file__).parents[1] / "schemas" / "json_schema.schema.json").read_bytes())
"""What every keyword of a schema holds, as a schema."""
_MAX_WEIGHT = 5000  # schemas that check one value; twice the same reference twenty times over would make a million
_MAX_CHAIN = 50  # references and branches passed without a step into the value
_SAME_VALUE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else"})


def schema_problems(schema: Any) -> list[str]:
    """Return why ``schema`` is no JSON Schema 2020-12 that is safe to validate with; empty if it is one.

    Beyond the metaschema: patterns must compile and terminate, references must lead to schemas in the schema
    itself, and none may lead back to itself without a step into the value, which would never terminate.
    """
    inside = _all_schemas(schema)
    unsound = [sub for sub in inside if not accepts(_SHAPE, sub, _SHAPE)]
    if not isinstance(schema, (dict, bool)) or unsound:
        from skillscript.schema import check_schema

        problems = check_schema(schema) or [text for sub in unsound for text in check_schema(sub)]
        if problems:
            return list(dict.fromkeys(problems))
    problems = [problem for sub in inside for problem in _pattern_problems(sub)]
    references = [sub["$ref"] for sub in inside if "$ref" in sub]
    lost = [reference for reference in references if not isinstance(resolve_pointer(schema, reference), (dict, bool))]
    problems += [f"$ref {reference!r} leads to nothing in the schema" for reference in lost]
    problems += ["$dynamicRef is not followed; write $ref" for sub in inside if "$dynamicRef" in sub]
    problems += [
        "$id is allowed at the top only, since it changes where a $ref leads" for sub in inside[1:] if "$id" in sub
    ]
    return problems or (_endless(schema) if references else [])


def _all_schemas(schema: Any) -> list[dict[str, Any]]:
    """Return every schema in ``schema``, itself first, including those that only a reference leads to."""
    found: list[dict[str, Any]] = []
    seen: set[int] = set()
    waiting = [schema]
    while waiting:
        for sub in _subschemas(waiting.pop()):
            if id(sub) not in seen:
                seen.add(id(sub))
                found.append(sub)
                waiting.append(resolve_pointer(schema, sub.get("$ref")))
    return found


def _subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Return every schema in ``schema``, itself included."""
    if isinstance(schema, dict):
        yield schema
        for _, inner in child_schemas(schema):
            yield from _subschemas(inner)


def _pattern_problems(schema: dict[str, Any]) -> list[str]:
    """Return what is wrong with the patterns of one schema."""
    patterns = [schema["pattern"]] if "pattern" in schema else []
    patterns += schema.get("patternProperties", ())
    problems: list[str] = []
    for pattern in patterns:
        try:
            re.compile(pattern)
            if never_ends(pattern):
                problems.append(f"pattern {pattern!r} repeats a repetition, which may take for ever; write (a+)+ as a+")
        except (re.error, OverflowError, RecursionError) as error:  # noqa: PERF203 - a handful
            problems.append(f"pattern {pattern!r} is not a regular expression: {error}")
    return problems


def _endless(schema: Any) -> list[str]:
    """Return the problem of references that lead back to themselves, or on and on, with the same value in hand."""
    weights: dict[int, float] = {}
    under_way: set[int] = set()

    def weight(place: Any) -> float:
        """Return how many schemas check a value at ``place``."""
        if not isinstance(place, dict):
            return 0
        if id(place) in weights:
            return weights[id(place)]
        if id(place) in under_way or len(under_way) > _MAX_CHAIN:
            return math.inf
        under_way.add(id(place))
        following = [inner for keyword, inner in child_schemas(place) if keyword in _SAME_VALUE]
        if "$ref" in place:
            following.append(resolve_pointer(schema, place["$ref"]))
        weights[id(place)] = 1 + sum(map(weight, following))
        under_way.discard(id(place))
        return weights[id(place)]

    heaviest = max(map(weight, _all_schemas(schema)))
    if heaviest == math.inf:
        return [f"a $ref leads back to itself, or through more than {_MAX_CHAIN} others"]
    if heaviest > _MAX_WEIGHT:
        return [f"one value would be checked by {heaviest} schemas, more than the {_MAX_WEIGHT} allowed"]
    return []


def never_ends(pattern: str) -> bool:
    """Return whether ``pattern``, which compiles, repeats without bound what may be nothing but such a repetition.

    That is the usual form of a pattern whose time grows exponentially. Others, such as ``(a|a)*``, are not recognised.
    """
    if _REPEATED_GROUP.search(pattern) is None:
        return False
    parser: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
    return _has_nested(parser.parse(pattern))


def _has_nested(sequence: Any) -> bool:
    """Return whether one of the repetitions in a parsed sequence is of such a kind."""
    for item in sequence:
        if _is_unbounded(item) and _may_be_one_repetition(item[1][2]):
            return True
        if any(_has_nested(inner) for inner in _inner(item)):
            return True
    return False


def _may_be_one_repetition(sequence: Any) -> bool:
    """Return whether a sequence may consist of one unbounded repetition, the rest of it being empty."""
    least = sequence.getwidth()[0]
    for index, item in enumerate(sequence):
        others = least - sequence[index : index + 1].getwidth()[0]
        if others == 0 and (_is_unbounded(item) or any(map(_may_be_one_repetition, _inner(item)))):
            return True
    return False


def _is_unbounded(item: Any) -> bool:
    """Return whether a parsed item repeats something any number of times, and may give some of it back."""
    return str(item[0]) in ("MAX_REPEAT", "MIN_REPEAT") and str(item[1][1]) == "MAXREPEAT"


def _inner(item: Any) -> list[Any]:
    """Return the sequences directly inside a parsed item."""
    kind, content = str(item[0]), item[1]
    if kind == "BRANCH":
        return list(content[1])
    if kind in ("SUBPATTERN", "MAX_REPEAT", "MIN_REPEAT"):
        return [content[-1]]
    return [content[1]] if kind in ("ASSERT", "ASSERT_NOT") else []
