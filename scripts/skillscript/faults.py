"""Faults: what is wrong with an input, in plain words, with what was received and what is allowed."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sturdy.near_names import sentences

from .envelope import ErrorCode, SkillError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

MAX_REPORTED = 50  # faults listed in one answer; a thousand wrong items are usually one mistake
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
CHOICES = {"oneOf": "give exactly one of ", "anyOf": "give at least one of ", "not": "do not give all of "}
_KINDS = ((str, "string "), (list, "array "), (dict, "object "))


@dataclass(frozen=True)
class Fault:
    """One thing wrong with an input.

    Attributes:
        path: Where, such as ``nets[2].endpoints[0].x``; empty for the whole input.
        message: What is wrong, what was received, what is allowed.
        value: What was received; ``None`` if nothing was.
        allowed: What is allowed (a list of values, a limit, a type name), if it can be stated.
    """

    path: str
    message: str
    value: Any = None
    allowed: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fault as JSON values, a long received value shortened."""
        fields = {"path": self.path, "message": self.message, "provided_value": echo(self.value)}
        if self.allowed is not None:
            fields["allowed"] = self.allowed
        return fields


def invalid_params(faults: Sequence[Fault]) -> SkillError:
    """Return the INVALID_PARAM error that reports all ``faults`` at once.

    Its message joins the messages of all faults by ``"; "``. Its details name the first fault (``param_name``,
    ``provided_value``) and list all faults (``errors``).
    """
    return SkillError(ErrorCode.INVALID_PARAM, joined(faults), fault_details(faults))


def joined(faults: Sequence[Fault]) -> str:
    """Return the messages of ``faults`` in one line."""
    return sentences([fault.message for fault in faults], MAX_JOINED)


def fault_details(faults: Sequence[Fault]) -> dict[str, Any]:
    """Return ``{param_name, provided_value, errors}``, plus ``error_count`` when not all are listed."""
    first = faults[0]
    details: dict[str, Any] = {
        "param_name": first.path,
        "provided_value": echo(first.value),
        "errors": [fault.to_dict() for fault in faults[:MAX_REPORTED]],
    }
    if len(faults) > MAX_REPORTED:
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


def choice(keyword: str, rule: Any) -> str | None:
    """Return in words which properties a rule wants, such as "give exactly one of a, b"; None for any other rule.

    It is a rule of ``CHOICES`` whose schemas have the keyword ``required`` and no other.
    """
    branches = rule if isinstance(rule, list) else [rule]
    names: list[list[str]] = [
        branch.get("required", []) if isinstance(branch, dict) and len(branch) == 1 else [] for branch in branches
    ]
    if keyword not in CHOICES or not all(names):
        return None
    if keyword == "not":
        words = {1: "do not give ", 2: "give only one of "}.get(len(names[0]), CHOICES[keyword])
        return words + ", ".join(names[0])
    return CHOICES[keyword] + ", ".join(" and ".join(each) for each in names)
