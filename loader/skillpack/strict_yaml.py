"""YAML as a declaration language: no duplicate keys, no aliases, bounded depth.

PyYAML keeps the last of two equal keys, expands aliases, and its C composer recurses on the C stack, so
that 30 kB of ``[`` end the process. All three are refused here before a value is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from skillpack.errors import YamlError
from skillpack.frontmatter import NULLS

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH = 32
_TextLoader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TypedLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OPENERS = "[{-?"


def load_text_mapping(text: str) -> dict[str, Any]:
    """Return the mapping in ``text`` with every scalar as a string (``1.10`` stays ``"1.10"``, null is "").

    Raises:
        YamlError: If the text is not one YAML mapping, or has duplicate keys, aliases or too many levels.
    """
    node = _compose(text, _TextLoader(text))
    return {} if node is None else _mapping(node, set())


def load_typed_mapping(text: str) -> dict[str, Any]:
    """Return the mapping in ``text`` with numbers, booleans and null as such.

    Raises:
        YamlError: As ``load_text_mapping``, and for tags outside plain YAML.
    """
    loader = _TypedLoader(text)
    node = _compose(text, loader)
    if node is None:
        return {}
    _mapping(node, set())
    try:
        value: dict[str, Any] = loader.construct_document(node)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2026-99-99
        raise _as_yaml_error(error) from error
    return value


def _compose(text: str, loader: Any) -> Any:
    """Return the root node of the single document in ``text``, or None when it is empty."""
    try:
        if sum(text.count(opener) for opener in _OPENERS) > MAX_DEPTH:
            _check_depth(text)
        node = loader.get_single_node()
    except yaml.YAMLError as error:
        raise _as_yaml_error(error) from error
    if node is not None and not isinstance(node, yaml.MappingNode):
        raise YamlError("is not a mapping of keys to values", node.start_mark.line + 1)
    return node


def _check_depth(text: str) -> None:
    """Refuse nesting beyond ``MAX_DEPTH``; reading events needs no recursion, composing them does."""
    depth = 0
    events: Iterator[Any] = yaml.parse(text, Loader=_TextLoader)
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise YamlError(f"is nested more than {MAX_DEPTH} levels deep", event.start_mark.line + 1)


def _value(node: Any, seen: set[int]) -> Any:
    """Return the value of ``node`` as strings, lists and dicts; a node met twice came from an alias."""
    if id(node) in seen:
        line = node.start_mark.line + 1
        raise YamlError("has a value that a YAML alias (*name) repeats; write it out each time", line)
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        return "" if not node.style and node.value in NULLS else node.value
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, seen) for item in node.value]
    return _mapping(node, seen)


def _mapping(node: Any, seen: set[int]) -> dict[str, Any]:
    """Return a mapping node as a dict; equal keys are refused, whatever their values."""
    values: dict[str, Any] = {}
    seen.add(id(node))
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise YamlError("has a key that is not text", line)
        if id(key_node) in seen:
            raise YamlError("uses a YAML alias (*name) as a key; write it out", line)
        seen.add(id(key_node))
        if key_node.value in values:
            raise YamlError(f"has the key {key_node.value!r} twice", line)
        values[key_node.value] = _value(value_node, seen)
    return values


def _as_yaml_error(error: Exception) -> YamlError:
    """Return PyYAML's complaint as one short line with its position."""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    context = getattr(error, "context", None)
    mark = getattr(error, "problem_mark", None)
    text = f"{context}, {problem}" if context else problem
    return YamlError(f"is not valid YAML: {text}", None if mark is None else mark.line + 1)
