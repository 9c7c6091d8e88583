"""The one rule of names (S2.4), and what a property may hold."""

from __future__ import annotations

import json
import re
from typing import Any

from designgraph.errors import GraphError, InvalidIdError

ID_RULE = "^[a-zA-Z_][a-zA-Z0-9_-]{0,59}$"
MAX_ID_LENGTH = 60
MAX_PROPERTIES_BYTES = 1 << 18
MAX_DEPTH = 32
_ID = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,59}")
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(", ", ": "))

is_id = _ID.fullmatch  # not match: "$" would accept "clk\n"
encode = _ENCODER.encode


def check_id(value: Any, what: str) -> str:
    """Return ``value`` if it is a legal id.

    Args:
        value: The id received.
        what: Name of the argument, for the message.

    Raises:
        InvalidIdError: If it is not a text that the id rule matches wholly.
    """
    if isinstance(value, str) and is_id(value):
        return value
    shown = repr(value) if len(repr(value)) <= 80 else f"{repr(value)[:80]}..."
    raise InvalidIdError(
        f"{what} {shown} is not a legal id: 1 to {MAX_ID_LENGTH} letters, digits, '_' or '-', not beginning with a "
        "digit or '-'",
        {"param_name": what, "provided_value": value if isinstance(value, str) else None, "pattern": ID_RULE},
    )


def checked_properties(value: Any) -> dict[str, Any]:
    """Return a copy of ``value`` as plain JSON values.

    Raises:
        GraphError: If it is no object, holds what JSON cannot, is nested too deep or is too large.
    """
    if not isinstance(value, dict):
        raise GraphError(f"properties must be an object, got {type(value).__name__}")
    _check_json(value, "properties", MAX_DEPTH)
    try:
        text = encode(value)
        size = len(text.encode())
    except ValueError as error:  # not a finite number; a lone surrogate
        raise GraphError(f"properties cannot be written as JSON: {error}") from None
    if size > MAX_PROPERTIES_BYTES:
        raise GraphError(
            f"properties have {size} bytes, more than the {MAX_PROPERTIES_BYTES} a node may have; keep long matter in "
            "a file and store its path"
        )
    copied: dict[str, Any] = json.loads(text)
    return copied


def _check_json(value: Any, path: str, depth: int) -> None:
    """Refuse what ``json`` would convert silently, and what other programs' JSON cannot hold.

    That is keys that are no text, values of foreign types, integers outside 64 bits and NUL characters.
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
                raise GraphError(f"{path} has the key {key!r}; keys are texts without NUL characters")
            _check_json(item, f"{path}.{key}", depth - 1)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _check_json(item, f"{path}[{index}]", depth - 1)
    else:
        raise GraphError(f"{path} is a {type(value).__name__}, which is no JSON value")
