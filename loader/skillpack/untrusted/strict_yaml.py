"""Read YAML without duplicate keys, without aliases and with bounded depth.

PyYAML keeps the last of two equal keys, expands aliases, and its C composer recurses on the C stack, so that 30 kB of
``[`` crash the process. This module reads the events of PyYAML one by one, without recursion, and refuses all three.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from skillpack.exceptions import YamlError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_DEPTH = 32
NULLS = frozenset({"", "~", "null", "Null", "NULL"})  # the plain scalars that mean no value
_TextLoader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TypedLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_PLAIN_TAG = re.compile(r"tag:yaml\.org,2002:[a-z]+")  # tags such as !!str; not !name or !!python/name


def load_text_mapping(text: str) -> dict[str, Any]:
    """Return the mapping in ``text`` with all scalars as strings (``1.10`` stays ``"1.10"``, null becomes "").

    Raises:
        YamlError: If the text is not one YAML mapping, or has duplicate keys, aliases or too many levels.
    """
    tree = _Tree()
    try:
        next_event = _TextLoader(text).get_event
        while not isinstance(event := next_event(), yaml.StreamEndEvent):
            tree.add(event)
    except yaml.YAMLError as error:
        raise _as_yaml_error(error) from error
    return tree.root or {}


def load_typed_mapping(text: str) -> dict[str, Any]:
    """Return the mapping in ``text`` with typed numbers, booleans and null.

    Raises:
        YamlError: As ``load_text_mapping``, and for tags outside plain YAML.
    """
    load_text_mapping(text)
    try:
        value: dict[str, Any] | None = yaml.load(text, Loader=_TypedLoader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2026-99-99
        raise _as_yaml_error(error) from error
    return value or {}


def dump_mapping(value: Mapping[str, object]) -> str:
    """Return a mapping as block-style YAML, with the keys in order, each text on one line and Unicode unescaped."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 20)
    return text


class _Tree:
    """The value that is built from events, scalars as strings."""

    def __init__(self) -> None:
        self.root: dict[str, Any] | None = None
        self._open: list[dict[str, Any] | list[Any]] = []  # collections that are not yet complete
        self._keys: list[str | None] = []  # for each of them, the key whose value comes next

    def add(self, event: Any) -> None:
        """Process the next event.

        Raises:
            YamlError: If the value is not allowed.
        """
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._place(event, "" if not event.style and event.value in NULLS else event.value)
        elif kind is yaml.MappingStartEvent:
            self._begin(event, {})
        elif kind is yaml.SequenceStartEvent:
            self._begin(event, [])
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._open.pop()
            self._keys.pop()
        elif kind is yaml.AliasEvent:
            raise YamlError("has a YAML alias (*name); write the value out each time", _line(event))
        elif kind is yaml.DocumentStartEvent and self.root is not None:
            raise YamlError("is not valid YAML: expected a single document", _line(event))

    def _begin(self, event: Any, collection: dict[str, Any] | list[Any]) -> None:
        """Add a collection and make it the current one."""
        self._place(event, collection)
        self._open.append(collection)
        self._keys.append(None)
        if len(self._open) > MAX_DEPTH:
            raise YamlError(f"is nested more than {MAX_DEPTH} levels deep", _line(event))

    def _place(self, event: Any, value: Any) -> None:
        """Add a value to the current collection, or keep it as the key of the next value."""
        if event.tag is not None and not _PLAIN_TAG.fullmatch(event.tag):
            text = f"is not valid YAML: the tag {event.tag!r} means nothing here; quote a text that begins with '!'"
            raise YamlError(text, _line(event))
        if not self._open:
            if not isinstance(value, dict):
                raise YamlError("is not a mapping of keys to values", _line(event))
            self.root = value
            return
        holder, key = self._open[-1], self._keys[-1]
        if isinstance(holder, list):
            holder.append(value)
        elif key is not None:
            holder[key] = value
            self._keys[-1] = None
        elif not isinstance(value, str):
            raise YamlError("has a key that is not text", _line(event))
        elif event.value in holder:
            raise YamlError(f"has the key {event.value!r} twice", _line(event))
        else:
            self._keys[-1] = event.value  # as written, because a key may be "null"


def _line(event: Any) -> int:
    """Return the 1-based line of an event."""
    return int(event.start_mark.line) + 1


def _as_yaml_error(error: Exception) -> YamlError:
    """Return the error of PyYAML as one short line with its position."""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    problem = problem.partition("; use sys.")[0]  # Python's advice on integers of many digits
    context = getattr(error, "context", None)
    mark = getattr(error, "problem_mark", None)
    text = f"{context}, {problem}" if context else problem
    return YamlError(f"is not valid YAML: {text}", None if mark is None else mark.line + 1)
