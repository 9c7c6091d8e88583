"""Check a technology file against its JSON Schema, ``technology.schema.json``, and explain every fault.

Beside the keywords of JSON Schema 2020-12, a subschema may hold ``x-error``: one text for whatever is wrong with the
value or its parts, or a mapping of keyword to text.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

from layoutkit.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Steps = tuple[Any, ...]

SCHEMA = Path(__file__).with_name("technology.schema.json")
_WORDS = {
    "object": "a mapping", "array": "a list", "string": "a text", "number": "a number", "integer": "a whole number",
    "boolean": "true or false", "null": "null",
}  # fmt: skip


@dataclass(frozen=True)
class SchemaFault:
    """What is wrong with one part of a file.

    Attributes:
        path: Keys and indexes that lead to the part, which may be missing from the file; ends in None where the fault
            is about an entry as a whole.
        place: Path of the entry to look at, such as ``layers.met1``.
        message: What is wrong with it, and what is allowed.
    """

    path: Steps
    place: str
    message: str


def schema_faults(data: Any) -> list[SchemaFault]:
    """Return every fault of the content of a technology file against the schema, in the order of the schema."""
    found = [fault for error in _validator().iter_errors(data) for fault in _explained(error, data)]
    explained = {fault.path for fault, own in found if own}
    kept: dict[tuple[str, str], SchemaFault] = {}
    for fault, own in found:
        inside = any(fault.path[: len(path)] == path for path in explained)
        if own or not inside:
            kept.setdefault((fault.place, fault.message), fault)
    return list(kept.values())


def without(data: Any, faults: Iterable[SchemaFault]) -> Any:
    """Return a copy of ``data`` without the parts that have ``faults``; the rest keeps the schema's types."""
    copy, indexes = deepcopy(data), []
    for fault in faults:
        if not fault.path:
            return {}
        parent = copy
        for step in fault.path[:-1]:
            parent = parent[step]
        if isinstance(parent, list) and fault.path[-1] is not None:
            indexes.append((parent, fault.path[-1]))
        elif isinstance(parent, dict):
            parent.pop(fault.path[-1], None)
    for parent, index in sorted(indexes, key=lambda item: -item[1]):
        parent[index : index + 1] = []
    return copy


@cache
def _validator() -> Any:
    """Return the validator; jsonschema is loaded here, because shipped files are used without a check."""
    from jsonschema import Draft202012Validator, ValidationError, validators

    def own_text(validator: Any, text: Any, value: Any, schema: dict[str, Any]) -> Iterator[Any]:
        plain = {keyword: rule for keyword, rule in schema.items() if keyword != "x-error"}
        if isinstance(text, str) and not validator.evolve(schema=plain).is_valid(value):
            yield ValidationError(text)

    extend: Any = validators.extend
    return extend(Draft202012Validator, {"x-error": own_text})(json.loads(SCHEMA.read_text(encoding="utf-8")))


def _explained(error: Any, data: Any) -> Iterator[tuple[SchemaFault, bool]]:
    """Yield the faults of one error, each with whether its text is that of ``x-error`` for the whole value."""
    path, rule, value = tuple(error.absolute_path), error.validator_value, error.instance
    texts = error.schema.get("x-error") if isinstance(error.schema, dict) else None
    own = texts.get(error.validator) if isinstance(texts, dict) else None
    if error.validator == "x-error":
        yield SchemaFault(path, _place(path, data), f"{error.message}, got {short(value)}"), True
    elif error.validator == "required":
        for name in (name for name in rule if name not in value):
            place, message = (_place(path, data), f"'{name}' is missing") if path else (name, "is missing")
            yield SchemaFault((*path, name), place, own or message), False
    elif error.validator == "additionalProperties":
        known = error.schema["properties"]
        for name in (name for name in value if name not in known):
            meant = did_you_mean(name, known) or f"; allowed: {', '.join(known)}"
            yield SchemaFault((*path, name), _place(path, data), f"unknown {short(name)}{meant}"), False
    elif error.validator == "dependentRequired":
        for name, needed in rule.items():
            for other in (other for other in needed if name in value and other not in value):
                yield SchemaFault((*path, name), _place(path, data), f"'{name}' needs '{other}'"), False
    else:
        if "propertyNames" in error.absolute_schema_path:
            path = (*path, value)
        whole = error.validator in ("anyOf", "minItems")
        message = own or _requirement(error.validator, rule, error.message)
        if error.validator != "anyOf":
            message += f", got {len(value) if whole else short(value)}"
        if error.validator == "enum":
            message += did_you_mean(value, rule)
        yield SchemaFault((*path, None) if whole else path, _place(path, data), message), False


def _requirement(keyword: str, rule: Any, message: str) -> str:
    if keyword == "type":
        return "must be " + " or ".join(_WORDS[name] for name in ([rule] if isinstance(rule, str) else rule))
    if keyword == "enum":
        return f"must be one of {', '.join(map(str, rule))}"
    limits = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "greater than", "minItems": "at least"}
    return f"must be {limits[keyword]} {rule}" if keyword in limits else message


def _place(path: Sequence[Any], data: Any) -> str:
    """Return ``path`` as a user reads it: entries of lists by their name or id, where they have one."""
    words: list[str] = []
    for step in path:
        data = data[step] if isinstance(data, list) or (isinstance(data, dict) and step in data) else None
        name = next((data[key] for key in ("name", "id") if isinstance(data, dict) and key in data), None)
        if not isinstance(step, int):
            words.append(str(step))
        elif isinstance(name, str):
            words.append(name)
        else:
            words[-1] = f"{words[-1]}[{step}]"
    return ".".join(words) or "file"
