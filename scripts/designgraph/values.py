"""What a graph may hold: ids that follow one rule (S2.4), and properties that are plain JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from designgraph.graph_errors import GraphError, InvalidIdError

ID_RULE = "^[a-zA-Z_][a-zA-Z0-9_-]{0,59}$"
MAX_ID_LENGTH = 60
MAX_PROPERTIES_BYTES = 1 << 18
MAX_DEPTH = 32
_ID = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,59}")
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(", ", ": "))

is_id = _ID.fullmatch  # not match: "$" would accept "clk\n"
encode = _ENCODER.encode


def check_id(value: Any, what: str) -> str:
    """Return ``value`` if it is a valid id.

    Args:
        value: The id received.
        what: Name of the argument, for the message.

    Raises:
        InvalidIdError: If it is not a string that the id rule matches as a whole.
    """
    if isinstance(value, str) and is_id(value):
        return value
    shown = repr(value) if len(repr(value)) <= 80 else f"{repr(value)[:80]}..."
    raise InvalidIdError(
        f"{what} {shown} is not a valid id: use 1 to {MAX_ID_LENGTH} letters, digits, '_' or '-', and begin with a "
        "letter or '_'",
        {"param_name": what, "provided_value": value if isinstance(value, str) else None, "pattern": ID_RULE},
    )


def checked_properties(value: Any) -> dict[str, Any]:
    """Return a copy of ``value`` as plain JSON values.

    Raises:
        GraphError: If it is not an object, holds a value that JSON cannot represent, is nested too deeply or is too
            large.
    """
    if not isinstance(value, dict):
        raise GraphError(f"properties must be an object, got {type(value).__name__}")
    _check_json(value, "properties", MAX_DEPTH)
    try:
        text = encode(value)
        size = len(text.encode())
    except ValueError as error:  # NaN, an infinity, or a lone surrogate
        raise GraphError(f"properties cannot be written as JSON: {error}") from None
    if size > MAX_PROPERTIES_BYTES:
        raise GraphError(
            f"properties have {size} bytes, more than the {MAX_PROPERTIES_BYTES} allowed per node; keep long "
            "content in a file and store its path"
        )
    copied: dict[str, Any] = json.loads(text)
    return copied


def _check_json(value: Any, path: str, depth: int) -> None:
    """Refuse values that ``json`` would convert silently, and values that other programs cannot read from JSON.

    These are keys that are not strings, values of other types, integers outside 64 bits and NUL characters.
    """
    if isinstance(value, str):
        if "\0" in value:
            raise GraphError(f"{path} holds a NUL character")
        return
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise GraphError(f"{path} is an integer outside 64 bits")
    if value is None or isinstance(value, (int, float)):
        return
    if depth == 0:
        raise GraphError(f"{path} is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str) or "\0" in key:
                raise GraphError(f"{path} has the key {key!r}; keys must be strings without NUL characters")
            _check_json(item, f"{path}.{key}", depth - 1)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _check_json(item, f"{path}[{index}]", depth - 1)
    else:
        raise GraphError(f"{path} is a {type(value).__name__}, which is not a JSON value")
