"""Files that people write: YAML read within bounds, and every fault against a JSON Schema explained.

Beside the keywords of JSON Schema 2020-12, a subschema may hold ``x-error``: one text for whatever is wrong with the
value or its parts, or a mapping of keyword to text. In a text for ``required``, ``{name}`` is the missing name.

YAML from untrusted files is bounded in depth, in what its aliases expand to, and in its numbers. PyYAML keeps the last
value of a repeated key and drops the others silently, so that one is refused. Its C composer recurses on the C stack,
so that 30 kB of ``[`` crash the process. Aliases of lists of aliases make billions of values of a few lines, as soon as
something walks through them. Infinity, NaN and 1e300 overflow wherever they are rounded.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, ClassVar

from layoutkit.errors import did_you_mean, listed
from sturdy.schema_acceptance import TYPE_WORDS, accepts
from sturdy.strict_json import refusing_repeated_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    Steps = tuple[Any, ...]

MAX_DEPTH = 64
MAX_VALUES = 1_000_000
MAX_NUMBER = 1e12
MAX_SHOWN = 20  # places of wrong numbers in a message
MAX_KEY = 60  # characters of a key in a place
MIN_NUMBER = 1e-30  # a smaller number that is not 0 makes others overflow that are divided by it


@dataclass(frozen=True)
class SchemaFault:
    """What is wrong with one part of a file.

    Attributes:
        path: Keys and indexes that lead to the part, which may be missing from the file; ends in None where the fault
            is about an entry as a whole.
        place: The entry to look at, such as ``layers.met1``.
        message: What is wrong with it, and what is allowed.
    """

    path: Steps
    place: str
    message: str


class FileSchema:
    """The JSON Schema of one kind of file; subclasses choose the words in which its faults are reported.

    Args:
        file: The schema.

    Attributes:
        file: The schema.
        words: What a user calls the types of JSON.
    """

    words: ClassVar[Mapping[str, str]] = {
        **TYPE_WORDS, "object": "a mapping", "array": "a list", "string": "a text", "integer": "a whole number",
    }  # fmt: skip

    def __init__(self, file: Path) -> None:
        self.file = file

    @cached_property
    def content(self) -> dict[str, Any]:
        """The schema as JSON data."""
        data: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
        return data

    def faults(self, data: Any, part: str = "") -> list[SchemaFault]:
        """Return every fault of ``data``, in the order of the schema.

        Args:
            data: The content of a file.
            part: Name in ``$defs`` of the part that ``data`` is; the whole file by default.
        """
        if self._fits(data, part):
            return []
        found = [fault for error in self._of(part).iter_errors(data) for fault in self._explained(error, data)]
        explained = {fault.path for fault, own in found if own}
        kept: dict[tuple[str, str], SchemaFault] = {}
        for fault, own in found:
            inside = any(fault.path[: len(path)] == path for path in explained)
            if own or not inside:
                kept.setdefault((fault.place, fault.message), fault)
        return list(kept.values())

    def accepts(self, data: Any, part: str = "") -> bool:
        """Return whether ``faults`` finds none; this is quicker."""
        return self._fits(data, part) or bool(self._of(part).is_valid(data))

    def _fits(self, data: Any, part: str) -> bool:
        """Return whether ``data`` certainly keeps the schema; jsonschema is slow to load, and most files are right."""
        return accepts(self.content["$defs"][part] if part else self.content, data, self.content)

    def _of(self, part: str) -> Any:
        """Return the validator of one part, or of the whole file."""
        return self._validator.evolve(schema=self.content["$defs"][part]) if part else self._validator

    @cached_property
    def _validator(self) -> Any:
        """The validator; jsonschema is loaded here, where it is needed."""
        from jsonschema import Draft202012Validator, ValidationError, validators

        def own_text(validator: Any, text: Any, value: Any, schema: dict[str, Any]) -> Iterator[Any]:
            plain = {keyword: rule for keyword, rule in schema.items() if keyword != "x-error"}
            if isinstance(text, str) and not validator.evolve(schema=plain).is_valid(value):
                yield ValidationError(text)

        def unique_texts(_validator: Any, rule: Any, value: Any, _schema: Any) -> Iterator[Any]:
            # jsonschema compares each pair of other items, and recurses into them
            texts = [item for item in value if isinstance(item, str)] if rule and isinstance(value, list) else []
            if len(set(texts)) < len(texts):
                yield ValidationError("must not repeat an entry")

        def ordered_additions(validator: Any, rule: Any, value: Any, schema: Any) -> Iterator[Any]:
            # jsonschema walks through a set of names, whose order differs from run to run
            if not isinstance(rule, dict) or not isinstance(value, dict) or "patternProperties" in schema:
                yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, rule, value, schema)
                return
            for name in (name for name in value if name not in schema.get("properties", {})):
                yield from validator.descend(value[name], rule, path=name)

        extend: Any = validators.extend
        own_keywords = {
            "x-error": own_text, "uniqueItems": unique_texts, "additionalProperties": ordered_additions,
        }  # fmt: skip
        return extend(Draft202012Validator, own_keywords)(self.content)

    def _explained(self, error: Any, data: Any) -> Iterator[tuple[SchemaFault, bool]]:
        """Yield the faults of one error, each with whether its text is that of ``x-error`` for the whole value."""
        path, rule, value = tuple(error.absolute_path), error.validator_value, error.instance
        texts = error.schema.get("x-error") if isinstance(error.schema, dict) else None
        own = texts.get(error.validator) if isinstance(texts, dict) else None
        place = self.place(path, data)
        if error.validator == "enum" and not self._has_type(value, error.schema):
            return  # its type is the fault
        if error.validator == "x-error":
            yield SchemaFault(path, place, f"{error.message}, got {short(value)}"), True
        elif error.validator == "required":
            for name in (name for name in rule if name not in value):
                where, message = self.missing(path, name, data)
                where = place if own and "{name}" in own else where
                yield SchemaFault((*path, name), where, own.replace("{name}", name) if own else message), False
        elif error.validator == "additionalProperties":
            known = error.schema["properties"]
            for name in (name for name in value if name not in known):
                meant = did_you_mean(name, known) or f"; allowed: {', '.join(known)}"
                yield SchemaFault((*path, name), place, f"unknown {short(name)}{meant}"), False
        elif error.validator == "dependentRequired":
            for name, needed in rule.items():
                for other in (other for other in needed if name in value and other not in value):
                    yield SchemaFault((*path, name), place, f"'{name}' needs '{other}'"), False
        else:
            yield self._value_fault(error, own, data), False

    def _has_type(self, value: Any, schema: Mapping[str, Any]) -> bool:
        kind = schema.get("type")
        return not isinstance(kind, str) or bool(self._validator.is_type(value, kind))

    def _value_fault(self, error: Any, own: str | None, data: Any) -> SchemaFault:
        """Return the fault of a value that is present."""
        path, rule, value = tuple(error.absolute_path), error.validator_value, error.instance
        is_name = "propertyNames" in error.absolute_schema_path
        path = (*path, value) if is_name else path
        whole = error.validator in ("anyOf", "minItems", "maxItems")
        message = own or self._requirement(error.validator, rule, error.message)
        if error.validator != "anyOf" and not (own and is_name):
            message += f", got {len(value) if whole else self.received(error)}"
        if error.validator == "enum":
            message += did_you_mean(value, rule)
        return SchemaFault((*path, None) if whole else path, self.place(path, data), message)

    def _requirement(self, keyword: str, rule: Any, message: str) -> str:
        if keyword == "type":
            return "must be " + " or ".join(self.words[name] for name in ([rule] if isinstance(rule, str) else rule))
        if keyword == "enum":
            return f"must be one of {', '.join(map(str, rule))}"
        limits = {
            "minimum": "be at least {}", "maximum": "be at most {}", "exclusiveMinimum": "be greater than {}",
            "minItems": "have at least {} entries", "maxItems": "have at most {} entries",
            "minLength": "have at least {} characters",
        }  # fmt: skip
        return f"must {limits[keyword].format(rule)}" if keyword in limits else message

    def missing(self, path: Steps, name: str, data: Any) -> tuple[str, str]:
        """Return the place and the message for ``name``, which the entry at ``path`` lacks."""
        return (self.place(path, data), f"'{name}' is missing") if path else (name, "is missing")

    def received(self, error: Any) -> str:
        """Return what a message shows of the value that has ``error``."""
        return short(error.instance)

    def place(self, path: Sequence[Any], data: Any) -> str:
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


class JsonSchema(FileSchema):
    """The schema of a JSON file: types are called as in JSON, and a place is a path such as ``devices[0].id``."""

    words: ClassVar[Mapping[str, str]] = TYPE_WORDS

    def missing(self, path: Steps, name: str, data: Any) -> tuple[str, str]:
        """Return the place where ``name`` is missing, and the message."""
        return self.place((*path, name), data), "is missing"

    def received(self, error: Any) -> str:
        """Return the value that has ``error``, or its type where that is the fault."""
        kind = json_type(error.instance)
        fraction = kind == "number" and error.validator_value == "integer"
        return kind if error.validator == "type" and not fraction else short(error.instance)

    def place(self, path: Sequence[Any], data: Any) -> str:  # noqa: ARG002 - the path is enough
        """Return ``path`` with points and brackets."""
        return json_place(path)


def json_place(path: Sequence[Any]) -> str:
    """Return keys and indexes as one text, such as ``cells[0].name``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".") or "(document)"


def json_type(value: Any) -> str:
    """Return what JSON calls the type of a value."""
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return "null" if value is None else names[type(value)]


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


def read_yaml(text: str, *, trusted: bool = False) -> Any:
    """Return the value of a YAML document.

    Args:
        text: The document.
        trusted: Whether to leave the bounds unchecked, for files that come with the package.

    Raises:
        ValueError: If it is not YAML, too deep or too large, or repeats a key; of the document the message quotes no
            more than keys.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        if not trusted:
            _check(loader(text).get_event)
            loader = refusing_repeated_keys(loader)
        value = yaml.load(text, Loader=loader)  # noqa: S506 - both are safe loaders
    except yaml.YAMLError as error:
        raise ValueError(_reason(error)) from error
    if not trusted:
        check_numbers(value)
    return value


def check_numbers(document: Any) -> None:
    """Raise an error if a number of a YAML or JSON document is not finite, or beyond the range of any unit.

    Raises:
        ValueError: If there is one; the message names up to ``MAX_SHOWN`` places.
    """
    wrong: list[str] = []
    waiting: list[tuple[Any, tuple[Any, ...]]] = [(document, ())]
    seen: set[int] = set()  # what aliases share is read once
    while waiting:
        value, place = waiting.pop()
        if isinstance(value, dict | list):
            if id(value) not in seen:
                seen.add(id(value))
                parts = value.items() if isinstance(value, dict) else enumerate(value)
                waiting.extend((part, (*place, key)) for key, part in parts)
                waiting.extend((key, (*place, "a key")) for key in value if isinstance(value, dict))
        elif isinstance(value, int | float) and value and not MIN_NUMBER <= abs(value) <= MAX_NUMBER:
            wrong.append(".".join(str(key)[:MAX_KEY] for key in place) or "the document")
    if wrong:
        raise ValueError(
            f"numbers must be 0 or from {MIN_NUMBER:g} to {MAX_NUMBER:g} of either sign, but are not at "
            f"{listed(sorted(wrong), MAX_SHOWN)}"
        )


def frozen(value: Any) -> Any:
    """Return the data of a file with its lists as tuples, which dataclasses can hold."""
    if isinstance(value, dict):
        return {key: frozen(each) for key, each in value.items()}
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def _check(next_event: Callable[[], Any]) -> None:
    """Read all events of a document; raise ValueError if its value is too deep or too large."""
    import yaml

    total, sizes = 0, dict[str, int]()  # values of each anchor, its aliases expanded
    opened: list[tuple[str | None, int]] = []  # collections that are not complete: their anchor, the total before
    while not isinstance(event := next_event(), yaml.StreamEndEvent):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise ValueError(f"{_line(event)}: an alias has no anchor, or contains itself")
            total += sizes[event.anchor]
        elif isinstance(event, yaml.ScalarEvent):
            total += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, total))
            total += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            if anchor is not None:
                sizes[anchor] = total - before
        if len(opened) > MAX_DEPTH:
            raise ValueError(f"{_line(event)}: it is nested deeper than {MAX_DEPTH} levels")
        if total > MAX_VALUES:
            raise ValueError(f"{_line(event)}: it has more than {MAX_VALUES} values with its aliases")


def _line(event: Any) -> str:
    return f"line {event.start_mark.line + 1}"


def _reason(error: Exception) -> str:
    """Return why and where a text is not YAML, without quoting it: the file may contain something secret."""
    mark = getattr(error, "problem_mark", None)
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return place + re.sub(r"'.*'", "...", getattr(error, "problem", None) or "not readable", flags=re.DOTALL)
