"""Recognise values that satisfy a JSON Schema quickly, without importing a validator.

``jsonschema`` takes about as long to import as KLayout. Nearly every call is valid, and a valid call needs no messages,
so this module recognises it. It may reject a valid value, because of a keyword that it does not know, but never accepts
an invalid one. If it rejects a value, its callers use ``jsonschema``. A property test compares the two.
"""

from __future__ import annotations

import re
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Check = Callable[[Any, Any, dict[str, Any], dict[str, Any]], bool]

_ANNOTATIONS = frozenset(
    ("$schema", "$id", "$comment", "$defs", "title", "description", "default", "examples", "deprecated", "format"),
)


def accepts(schema: Any, value: Any, root: dict[str, Any]) -> bool:
    """Return whether plain JSON ``value`` certainly satisfies ``schema``; ``root`` is where ``#/$defs`` are found."""
    if not isinstance(schema, dict):
        return schema is True
    for keyword, rule in schema.items():
        check = _CHECKS.get(keyword)
        if check is None:
            if keyword not in _ANNOTATIONS and not keyword.startswith("x-"):
                return False
        elif not check(rule, value, schema, root):
            return False
    return True


def resolve_pointer(schema: Any, reference: Any) -> Any:
    """Return what a local reference, such as ``#/$defs/box``, leads to in ``schema``, or None."""
    if reference == "#":
        return schema
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    place = schema
    for step in reference[2:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, dict):
            place = place.get(key)
        elif isinstance(place, list) and key.isdigit() and int(key) < len(place):
            place = place[int(key)]
        else:
            return None
    return place


def resolve(schema: Any, root: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema that ``schema``'s local ``$ref`` names, or ``None`` if it has none that is found."""
    found = resolve_pointer(root, schema["$ref"]) if isinstance(schema, dict) and "$ref" in schema else None
    return found if isinstance(found, dict) else None


def is_type(value: object, name: str) -> bool:
    """Return whether a plain JSON value has the type ``name``; a bool is not a number, 1.0 is an integer."""
    kind = type(value)
    if name == "number":
        return kind is float or kind is int
    if name == "integer":
        return kind is int or (kind is float and value.is_integer())  # type: ignore[attr-defined]
    return kind is _PYTHON_TYPES.get(name)


TYPE_WORDS = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
"""The types of JSON Schema, and what messages call them."""
EVERY_TYPE = (*TYPE_WORDS,)


def types_of(schema: Mapping[str, Any]) -> set[str]:
    """Return the JSON types that ``type``, or else ``const`` or ``enum``, of one schema allows; all if it has none."""
    if "type" in schema:
        return {schema["type"]} if isinstance(schema["type"], str) else set(schema["type"])
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list):
        return {name for name in EVERY_TYPE for value in values if is_type(value, name)}
    return set(EVERY_TYPE)


_SCALARS = frozenset((str, int, float, bool, type(None)))
_PYTHON_TYPES = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}


def matches(pattern: str, text: str) -> bool:
    """Return whether ``pattern`` is found in ``text``; ``$`` is the very end, as in ECMA 262."""
    return re.search(_ending_at_the_end(pattern), text) is not None


@lru_cache(maxsize=1024)
def _ending_at_the_end(pattern: str) -> str:
    parts, in_class = re.findall(r"\\.|.", pattern, re.DOTALL), False
    for index, part in enumerate(parts):
        if part == "$" and not in_class:
            parts[index] = r"\Z"
        in_class = part == "[" or (in_class and part != "]")
    return "".join(parts)


def _type(rule: Any, value: Any, _schema: dict[str, Any], _root: dict[str, Any]) -> bool:
    return any(is_type(value, name) for name in ([rule] if isinstance(rule, str) else rule))


def _enum(rule: Any, value: Any, _schema: dict[str, Any], _root: dict[str, Any]) -> bool:
    return type(value) in _SCALARS and any(type(item) is type(value) and item == value for item in rule)


def _const(rule: Any, value: Any, _schema: dict[str, Any], _root: dict[str, Any]) -> bool:
    return type(value) in _SCALARS and type(rule) is type(value) and rule == value


def _ref(_rule: Any, value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    target = resolve(schema, root)
    return target is not None and accepts(target, value, root)


def _properties(rule: Any, value: Any, _schema: dict[str, Any], root: dict[str, Any]) -> bool:
    if type(value) is not dict:
        return True
    return all(accepts(rule[name], item, root) for name, item in value.items() if name in rule)


def _additional(rule: Any, value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    if type(value) is not dict:
        return True
    known = schema.get("properties", {})
    return all(accepts(rule, item, root) for name, item in value.items() if name not in known)


def _names(rule: Any, value: Any, _schema: dict[str, Any], root: dict[str, Any]) -> bool:
    return type(value) is not dict or all(accepts(rule, name, root) for name in value)


def _items(rule: Any, value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    if type(value) is not list:
        return True
    return all(accepts(rule, item, root) for item in value[len(schema.get("prefixItems", ())) :])


def _prefix_items(rule: Any, value: Any, _schema: dict[str, Any], root: dict[str, Any]) -> bool:
    if type(value) is not list:
        return True
    return all(accepts(sub, item, root) for sub, item in zip(rule, value, strict=False))


def _unique(rule: Any, value: Any, _schema: dict[str, Any], _root: dict[str, Any]) -> bool:
    if type(value) is not list or rule is False:
        return True
    return all(type(item) is str for item in value) and len(set(value)) == len(value)


def _one_of(rule: Any, value: Any, _schema: dict[str, Any], root: dict[str, Any]) -> bool:
    """Return whether exactly one branch holds; only branches that this module decides exactly can be counted."""
    return all(_is_exact(sub) for sub in rule) and sum(accepts(sub, value, root) for sub in rule) == 1


def _not(rule: Any, value: Any, _schema: dict[str, Any], root: dict[str, Any]) -> bool:
    return _is_exact(rule) and not accepts(rule, value, root)


def _if(rule: Any, value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    if accepts(rule, value, root):
        return accepts(schema.get("then", True), value, root)
    return _is_exact(rule) and accepts(schema.get("else", True), value, root)


def _is_exact(schema: Any) -> bool:
    """Return whether ``accepts`` is false only for invalid values: a schema that just asks for properties or a type."""
    return isinstance(schema, dict) and set(schema) in ({"required"}, {"type"})


def _bound(kinds: tuple[type, ...], holds: Callable[[Any, Any], bool]) -> Check:
    """Return a check that ``holds(value, rule)`` for values of ``kinds`` and passes all others."""

    def check(rule: Any, value: Any, _schema: dict[str, Any], _root: dict[str, Any]) -> bool:
        return type(value) not in kinds or holds(value, rule)

    return check


_NUMBER = (int, float)
_CHECKS: dict[str, Check] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "$ref": _ref,
    "properties": _properties,
    "additionalProperties": _additional,
    "propertyNames": _names,
    "items": _items,
    "prefixItems": _prefix_items,
    "uniqueItems": _unique,
    "anyOf": lambda rule, value, _schema, root: any(accepts(sub, value, root) for sub in rule),
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "then": lambda _rule, _value, _schema, _root: True,
    "else": lambda _rule, _value, _schema, _root: True,
    "allOf": lambda rule, value, _schema, root: all(accepts(sub, value, root) for sub in rule),
    "required": _bound((dict,), lambda value, rule: all(name in value for name in rule)),
    "minProperties": _bound((dict,), lambda value, rule: len(value) >= rule),
    "maxProperties": _bound((dict,), lambda value, rule: len(value) <= rule),
    "minItems": _bound((list,), lambda value, rule: len(value) >= rule),
    "maxItems": _bound((list,), lambda value, rule: len(value) <= rule),
    "minLength": _bound((str,), lambda value, rule: len(value) >= rule),
    "maxLength": _bound((str,), lambda value, rule: len(value) <= rule),
    "pattern": _bound((str,), lambda value, rule: matches(rule, value)),
    "minimum": _bound(_NUMBER, lambda value, rule: value >= rule),
    "maximum": _bound(_NUMBER, lambda value, rule: value <= rule),
    "exclusiveMinimum": _bound(_NUMBER, lambda value, rule: value > rule),
    "exclusiveMaximum": _bound(_NUMBER, lambda value, rule: value < rule),
}
