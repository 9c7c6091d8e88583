"""Faults: what is wrong with an input, in plain words, with what was received and what is allowed."""

from __future__ import annotations

import json
from dataclasses import dataclass

from .envelope import ErrorCode, SkillError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

MAX_TOLD = 50  # faults in one answer; a thousand wrong items are the same mistake
MAX_JOINED = 10  # faults spelled out in the one-line message
MAX_SHOWN = 80  # characters of a received value in a message
MAX_ECHOED = 400  # characters of a received value in the details

TYPE_WORDS = {  # types of JSON Schema, as a fault names them
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_KINDS = ((str, "string "), (list, "array "), (dict, "object "))


@dataclass(frozen=True)
class Fault:
    """One thing wrong with an input.

    Attributes:
        path: Where, such as ``nets[2].endpoints[0].x``; empty for the whole input.
        message: What is wrong, what was received, what is allowed.
        value: What was received; ``None`` if nothing was.
        allowed: What would be allowed (a list of values, a limit, a type name), if that can be said.
    """

    path: str
    message: str
    value: Any = None
    allowed: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fault as JSON values, a long received value shortened."""
        told = {"path": self.path, "message": self.message, "provided_value": echo(self.value)}
        if self.allowed is not None:
            told["allowed"] = self.allowed
        return told


def invalid_params(faults: Sequence[Fault]) -> SkillError:
    """Return the INVALID_PARAM error that tells all ``faults`` at once.

    Its message is the fault's own message if there is one fault, else all of them joined by ``"; "``. Its details
    name the first fault (``param_name``, ``provided_value``) and list every one (``errors``).
    """
    return SkillError(ErrorCode.INVALID_PARAM, joined(faults), fault_details(faults))


def joined(faults: Sequence[Fault]) -> str:
    """Return the messages of ``faults`` in one line."""
    told = "; ".join(fault.message for fault in faults[:MAX_JOINED])
    more = len(faults) - MAX_JOINED
    return f"{told}; and {more} more" if more > 0 else told


def fault_details(faults: Sequence[Fault]) -> dict[str, Any]:
    """Return ``{param_name, provided_value, errors}``, plus ``error_count`` when not all are listed."""
    first = faults[0]
    details: dict[str, Any] = {
        "param_name": first.path,
        "provided_value": echo(first.value),
        "errors": [fault.to_dict() for fault in faults[:MAX_TOLD]],
    }
    if len(faults) > MAX_TOLD:
        details["error_count"] = len(faults)
    return details


def echo(value: Any) -> Any:
    """Return ``value``, or the beginning of its JSON text when that is long."""
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= MAX_ECHOED else text[:MAX_ECHOED] + "..."


def show(value: Any) -> str:
    """Return a received value for use in a message: its type where that matters, and its JSON text, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > MAX_SHOWN:
        text = text[:MAX_SHOWN] + "..."
    kind = next((name for type_, name in _KINDS if isinstance(value, type_)), "")
    return kind + text


def did_you_mean(received: object, known: Iterable[object]) -> str:
    """Return ``"; did you mean 'x'?"`` if one of the ``known`` texts is near the one received, else nothing."""
    if not isinstance(received, str) or len(received) > MAX_ECHOED:
        return ""
    from difflib import get_close_matches

    folded: dict[str, str] = {}
    for item in known:
        if isinstance(item, str):
            folded.setdefault(item.casefold(), item)
    near = get_close_matches(received.casefold(), list(folded), n=1, cutoff=0.6)
    return f"; did you mean '{folded[near[0]]}'?" if near else ""
