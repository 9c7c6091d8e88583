"""What a graph may hold: ids that follow one rule (S2.4), and properties that are plain JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from designgraph.graph_errors import GraphError, InvalidIdError
from sturdy.strict_json import NotJsonError, path_text, plain

ID_RULE = "^[a-zA-Z_][a-zA-Z0-9_-]{0,59}$"
MAX_ID_LENGTH = 60
MAX_PROPERTIES_BYTES = 1 << 18
LEVELS_ABOVE = 8  # of the properties in an answer: envelope, data, nodes, node
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
    try:
        copied: dict[str, Any] = plain(value, LEVELS_ABOVE)
    except NotJsonError as error:
        raise GraphError(f"{path_text(('properties', *error.path))} {error.reason}") from None
    size = len(encode(copied).encode())
    if size > MAX_PROPERTIES_BYTES:
        raise GraphError(
            f"properties have {size} bytes, more than the {MAX_PROPERTIES_BYTES} allowed per node; keep long "
            "content in a file and store its path"
        )
    return copied
