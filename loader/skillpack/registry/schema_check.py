"""Is a stranger's JSON Schema safe to validate with? Asked once when a tool is declared, so that no call trips over it.

The quick answer needs no ``jsonschema``: a schema whose keywords all have values of their kind is fine. Only for one
that does not, the complete metaschema is asked for words.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from skillpack.registry.patterns import never_ends
from skillscript.schema_references import SCHEMA_LISTS, SCHEMA_MAPS, SCHEMA_SINGLES, child_schemas, resolve_pointer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


def _is_schema(rule: Any) -> bool:
    return isinstance(rule, (dict, bool))


def _is_list_of_schemas(rule: Any) -> bool:
    return isinstance(rule, list) and len(rule) > 0 and all(map(_is_schema, rule))


def _is_map_of_schemas(rule: Any) -> bool:
    return isinstance(rule, dict) and all(map(_is_schema, rule.values()))


def _is_text(rule: Any) -> bool:
    return isinstance(rule, str)


def _is_names(rule: Any) -> bool:
    return isinstance(rule, list) and all(map(_is_text, rule)) and len(set(rule)) == len(rule)


def _is_type(rule: Any) -> bool:
    return (_is_text(rule) and rule in _TYPES) or (_is_names(rule) and len(rule) > 0 and _TYPES.issuperset(rule))


def _is_number(rule: Any) -> bool:
    return isinstance(rule, (int, float)) and not isinstance(rule, bool)


def _is_count(rule: Any) -> bool:
    return isinstance(rule, int) and not isinstance(rule, bool) and rule >= 0


_SOUND: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("$schema", "$ref", "pattern", "format", "title", "description"), _is_text),
    **dict.fromkeys(SCHEMA_MAPS, _is_map_of_schemas),
    **dict.fromkeys(SCHEMA_LISTS, _is_list_of_schemas),
    **dict.fromkeys(SCHEMA_SINGLES, _is_schema),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), _is_count),
    "type": _is_type,
    "enum": lambda rule: isinstance(rule, list),
    "required": _is_names,
    "dependentRequired": lambda rule: isinstance(rule, dict) and all(map(_is_names, rule.values())),
    "uniqueItems": lambda rule: isinstance(rule, bool),
    "multipleOf": lambda rule: _is_number(rule) and rule > 0,
}
_MAX_WEIGHT = 5000  # schemas that judge one value; twice the same reference twenty times over would make a million
_MAX_CHAIN = 50  # references and branches passed without a step into the value
_SAME_VALUE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else"})


def schema_problems(schema: Any) -> list[str]:
    """Return what makes ``schema`` no JSON Schema 2020-12 that values can safely be judged by; empty if nothing does.

    Beyond the metaschema: patterns must compile and come to an end, references must lead to schemas in the schema
    itself, and none may lead back to where it stands without a step into the value, which would never end.
    """
    inside = _all_schemas(schema)
    if not _is_schema(schema) or not all(map(_is_sound, inside)):
        from skillscript.schema import check_schema

        told = check_schema(schema) or [text for sub in inside if not _is_sound(sub) for text in check_schema(sub)]
        if told:
            return list(dict.fromkeys(told))
    problems = [problem for sub in inside for problem in _pattern_problems(sub)]
    references = [sub["$ref"] for sub in inside if "$ref" in sub]
    lost = [reference for reference in references if not _is_schema(resolve_pointer(schema, reference))]
    problems += [f"$ref {reference!r} leads to nothing in the schema" for reference in lost]
    problems += ["$dynamicRef is not followed; write $ref" for sub in inside if "$dynamicRef" in sub]
    problems += [
        "$id is allowed at the top only, since it changes where a $ref leads" for sub in inside[1:] if "$id" in sub
    ]
    return problems or (_endless(schema) if references else [])


def _all_schemas(schema: Any) -> list[dict[str, Any]]:
    """Return every schema in ``schema``, itself first, also those in odd places that only a reference leads to."""
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


def _is_sound(schema: dict[str, Any]) -> bool:
    """Return whether every keyword of one schema has a value of its kind."""
    return all(_SOUND[keyword](rule) for keyword, rule in schema.items() if keyword in _SOUND)


def _pattern_problems(schema: dict[str, Any]) -> list[str]:
    """Return which patterns of one schema are no regular expressions."""
    patterns = [schema["pattern"]] if "pattern" in schema else []
    patterns += schema.get("patternProperties", ())
    problems: list[str] = []
    for pattern in patterns:
        try:
            re.compile(pattern)
            if never_ends(pattern):
                problems.append(f"pattern {pattern!r} repeats a repetition, which may take for ever; write (a+)+ as a+")
        except (re.error, OverflowError, RecursionError) as error:  # noqa: PERF203 - a handful
            problems.append(f"pattern {pattern!r} is no regular expression: {error}")
    return problems


def _endless(schema: Any) -> list[str]:
    """Return the problem of references that lead back to themselves, or on and on, with the same value in hand."""
    weights: dict[int, float] = {}
    under_way: set[int] = set()

    def weight(place: Any) -> float:
        """Return how many schemas judge a value that comes to ``place``."""
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
        return [f"one value would be judged by {heaviest} schemas, more than the {_MAX_WEIGHT} allowed"]
    return []
