"""Read JSON strictly and within bounds, check that a Python value is plain JSON, and find repeated keys in YAML, too.

Refused when reading: duplicate keys, NaN and infinities (also as ``1e999``), text that is not UTF-8, nesting deeper
than ``MAX_DEPTH``, texts longer than ``MAX_BYTES``. A leading byte-order mark is tolerated.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from math import isfinite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64
WRAPPED = 2  # levels that an envelope or a request adds around its contents
_INT64 = 2**63
_MERGE = "tag:yaml.org,2002:merge"  # of <<, which stands for the keys of another mapping
_KEY_OR_BRACE = re.compile(r'("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}]')


class NotJsonError(ValueError):
    """A value is not plain, bounded JSON; ``path`` leads to it from the root."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: tuple[str | int, ...] = ()

    def under(self, step: str | int) -> NotJsonError:
        """Return this error with its path extended by one level."""
        self.path = (step, *self.path)
        return self

    def __str__(self) -> str:
        return f"{path_text(self.path)} {self.reason}" if self.path else self.reason


def path_text(path: tuple[str | int, ...]) -> str:
    """Return a path in the form ``nets[2].endpoints[0].x``; the root is the empty string."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def parse_json(text: str | bytes, *, limit: int = MAX_BYTES) -> Any:
    """Return the value of a JSON text of at most ``limit`` [bytes] as plain JSON values.

    Raises:
        NotJsonError: If the text is not strict JSON within the bounds above.
    """
    if len(text) > limit:
        raise NotJsonError(f"is longer than the {limit} bytes allowed; keep large data in a file and name that")
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise NotJsonError(f"is not UTF-8 text (byte {error.start})") from None
    try:
        value = _loaded(text.removeprefix("\ufeff"), finite=True)
    except RecursionError:
        raise NotJsonError(f"is nested deeper than the {MAX_DEPTH} levels allowed") from None
    except ValueError as error:
        raise NotJsonError(f"Invalid JSON format: {error}") from None
    return plain(value)


def load_json(text: str, *, finite: bool = True) -> Any:
    """Return the value of a JSON text of any size, in which no object repeats a key and no number is NaN or infinite.

    For documents that are bounded and checked elsewhere; ``parse_json`` does both. ``finite=False`` is for those who
    find NaN and infinities themselves.

    Raises:
        ValueError: If it is no such text; the message says why and where. It quotes no key: the file may be secret.
        RecursionError: If it is nested too deeply.
    """
    try:
        return _loaded(text, finite=finite)
    except RepeatedKeyError:
        raise ValueError(f"a key appears twice in one object (line {_line_of_repeated_key(text)})") from None


def _loaded(text: str, *, finite: bool) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant if finite else None)
    except RepeatedKeyError:
        raise
    except ValueError as error:
        # Without Python's advice on integers of many digits.
        raise ValueError(str(error).partition("; use sys.")[0]) from None


class RepeatedKeyError(ValueError):
    """One object or mapping repeats a key."""


def refusing_repeated_keys(loader: Any) -> Any:
    """Return a loader of PyYAML like the class ``loader`` that raises ``RepeatedKeyError`` for repeated keys."""

    def flatten_mapping(self: Any, node: Any) -> None:
        if id(node) not in vars(self).setdefault("flattened", {}):
            self.flattened[id(node)] = node  # the next time it has merged keys, too
            lines: dict[Any, int] = {}
            for key in (key for key, _ in node.value if isinstance(key.value, str) and key.tag != _MERGE):
                name, line = self.construct_object(key), key.start_mark.line + 1
                if name in lines:
                    raise RepeatedKeyError(f"line {line}: its key is already in line {lines[name]}; keep one")
                lines[name] = line
        loader.flatten_mapping(self, node)

    return type("UniqueKeys", (loader,), {"flatten_mapping": flatten_mapping})


def _line_of_repeated_key(text: str) -> int:
    """Return the line of the first key that its object has already; the key may be a stranger's text."""
    opened: list[set[str]] = []
    for found in _KEY_OR_BRACE.finditer(text):
        if found[0] == "{":
            opened.append(set())
        elif found[0] == "}":
            opened.pop()
        elif found[1]:
            name = json.loads(found[1])
            if name in opened[-1]:
                return text.count("\n", 0, found.start()) + 1
            opened[-1].add(name)
    return 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise RepeatedKeyError(f"key {json.dumps(name)} appears twice in one object")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def plain(value: object, depth: int = 0) -> Any:
    """Return ``value`` as plain JSON values: the same tree with tuples as lists.

    ``depth`` is the number of levels that will lie above it. Scalars must be exactly ``str``, ``int``, ``float``,
    ``bool`` or ``None``: a numpy scalar is refused rather than converted, because the result would depend on its type.

    Raises:
        NotJsonError: Naming the first value that JSON cannot hold.
    """
    kind = type(value)
    if kind is str:
        return _checked_text(value)  # type: ignore[arg-type]
    if value is None or kind is bool:
        return value
    if kind is int:
        if not -_INT64 <= value < _INT64:  # type: ignore[operator]
            raise NotJsonError("is an integer outside 64 bits")
        return value
    if kind is float:
        if not isfinite(value):  # type: ignore[arg-type]
            raise NotJsonError(f"is {value}, which JSON cannot hold; numbers must be finite")
        return value
    if depth >= MAX_DEPTH:
        raise NotJsonError(f"is nested deeper than the {MAX_DEPTH} levels allowed")
    if isinstance(value, dict):
        return _plain_object(value, depth)
    if isinstance(value, (list, tuple)):
        return _plain_array(value, depth)
    raise NotJsonError(f"is a {kind.__module__}.{kind.__qualname__}, not a JSON value")


def _checked_text(text: str) -> str:
    if "\0" in text:
        raise NotJsonError("holds a NUL character")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise NotJsonError("holds a lone surrogate, which is not valid Unicode text") from None
    return text


def _plain_object(value: dict[Any, Any], depth: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in value.items():
        if type(key) is not str:
            raise NotJsonError(f"has the key {key!r}; JSON keys are strings")
        _checked_text(key)
        try:
            result[key] = plain(item, depth + 1)
        except NotJsonError as fault:
            raise fault.under(key) from None
    return result


def _plain_array(value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
    result = []
    for index, item in enumerate(value):
        try:
            result.append(plain(item, depth + 1))
        except NotJsonError as fault:  # noqa: PERF203 - free until it is raised
            raise fault.under(index) from None
    return result
