"""Read YAML from untrusted files: bounded in depth, in what its aliases expand to, and in its numbers.

A repeated key is refused: PyYAML keeps the last value and drops the others silently.

PyYAML's C composer recurses on the C stack, so that 30 kB of ``[`` crash the process. Aliases of lists of aliases make
billions of values of a few lines, as soon as something walks through them. Infinity, NaN and 1e300 overflow wherever
they are rounded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from layoutkit.errors import listed
from sturdy.strict_json import refusing_repeated_keys

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 64
MAX_VALUES = 1_000_000
MAX_NUMBER = 1e12
MAX_SHOWN = 20  # places of wrong numbers in a message
MAX_KEY = 60  # characters of a key in a place
MIN_NUMBER = 1e-30  # a smaller number that is not 0 makes others overflow that are divided by it


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
