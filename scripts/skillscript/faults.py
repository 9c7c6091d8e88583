"""Faults: what is wrong with an input, in plain words, with what was received and what is allowed."""

from __future__ import annotations

import json
from dataclasses import dataclass

from .envelope import ErrorCode, SkillError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

MAX_REPORTED = 50  # faults listed in one answer; a thousand wrong items are usually one mistake
MAX_JOINED = 10  # faults spelled out in the one-line message
MAX_SENTENCES = 20
MAX_SHOWN = 80  # characters of a received value in a message
MAX_ECHOED = 400  # characters of a received value in the details
MAX_NEAR = 3  # names that are suggested for an unknown one
MIN_PART = 3  # characters of a part by which a longer name is suggested

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


def sentences(faults: Sequence[str], most: int = MAX_SENTENCES) -> str:
    """Return faults for a message: the first ones, and how many more there are."""
    more = len(faults) - most
    return "; ".join([*faults[:most], *([f"and {more} more"] if more > 0 else [])])


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


def did_you_mean(received: object, known: Iterable[object]) -> str:
    """Return ``"; did you mean 'x'?"`` if one of the ``known`` texts is spelled like the one received, else ""."""
    if not isinstance(received, str) or len(received) > MAX_ECHOED:
        return ""
    return suggestion(_spelled_alike(received, _by_folded_name(known), 1))


def suggestion(names: Sequence[str]) -> str:
    """Return ``"; did you mean 'x' or 'y'?"``, or "" without names."""
    return f"; did you mean {' or '.join(map(repr, names))}?" if names else ""


def near_names(received: str, known: Iterable[str]) -> list[str]:
    """Return up to ``MAX_NEAR`` of the ``known`` names that ``received`` may have meant, the nearest first.

    Names that differ only in case, blanks, hyphens and underscores come first, then names spelled alike, then names
    that contain ``received``.
    """
    folded = _by_folded_name(known)
    wanted = _folded_name(received[:MAX_ECHOED])
    found = _spelled_alike(received[:MAX_ECHOED], folded, MAX_NEAR)
    if len(wanted) >= MIN_PART:
        found += [folded[name] for name in sorted(folded) if wanted in name]
    return list(dict.fromkeys(found))[:MAX_NEAR]


def _spelled_alike(received: str, folded: Mapping[str, str], most: int) -> list[str]:
    """Return the names spelled most like ``received``, the nearest first."""
    from difflib import get_close_matches

    return [folded[name] for name in get_close_matches(_folded_name(received), folded, n=most, cutoff=0.6)]


def _by_folded_name(known: Iterable[object]) -> dict[str, str]:
    """Return the texts among ``known`` by the form in which they are compared; of equal forms the first."""
    found: dict[str, str] = {}
    for name in known:
        if isinstance(name, str):
            found.setdefault(_folded_name(name), name)
    return found


def _folded_name(name: str) -> str:
    """Return a name without differences of case, blanks, hyphens and underscores."""
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())
