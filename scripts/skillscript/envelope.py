"""The one envelope every tool answers with: ``{ok, error, data, duration_ms}``, its codes, exit codes and faults.

Ten codes are common to all tools. A tool may have further ones of its own, which its output schema declares in
``x-error-codes``; they say what was wrong with the input, and their exit code is 2. Faults say what is wrong with an
input in plain words, with what was received and what is allowed; the error INVALID_PARAM lists them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from sturdy.near_names import sentences
from sturdy.strict_json import WRAPPED, NotJsonError, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any


MAX_REPORTED = 50  # faults listed in one answer; a thousand wrong items are usually one mistake
MAX_JOINED = 10  # faults spelled out in the one-line message
MAX_SHOWN = 80  # characters of a received value in a message
MAX_ECHOED = 400  # characters of a received value in the details

CHOICES = {"oneOf": "give exactly one of ", "anyOf": "give at least one of ", "not": "do not give all of "}
_KINDS = ((str, "string "), (list, "array "), (dict, "object "))


class ErrorCode:
    """The ten error codes of the envelope (S0.2)."""

    INVALID_PARAM = "INVALID_PARAM"
    DEVICE_NOT_FOUND = "DEVICE_NOT_FOUND"
    DRC_VIOLATION = "DRC_VIOLATION"
    LAYOUT_CONFLICT = "LAYOUT_CONFLICT"
    KLAYOUT_ERROR = "KLAYOUT_ERROR"
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"
    TIMEOUT = "TIMEOUT"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    RULE_NOT_FOUND = "RULE_NOT_FOUND"
    UNSUPPORTED_OPERATION = "UNSUPPORTED_OPERATION"


MAX_MESSAGE = 8_000  # characters of a message, and of a text in its details
MAX_LISTED = 1_000  # entries of a list in the details
MAX_DETAILS = 20_000  # characters of the details, above which their lists are cut to MAX_SHORT
MAX_SHORT = 20
EXIT_DONE = 0
EXIT_VIOLATES = 1

EXIT_CODES = {
    ErrorCode.DRC_VIOLATION: EXIT_VIOLATES,
    ErrorCode.LAYOUT_CONFLICT: EXIT_VIOLATES,
    ErrorCode.INVALID_PARAM: 2,
    ErrorCode.DEVICE_NOT_FOUND: 2,
    ErrorCode.RULE_NOT_FOUND: 2,
    ErrorCode.UNSUPPORTED_OPERATION: 2,
    ErrorCode.SERVICE_UNAVAILABLE: 3,
    ErrorCode.KLAYOUT_ERROR: 4,
    ErrorCode.TIMEOUT: 4,
    ErrorCode.INTERNAL_ERROR: 4,
}


EXIT_BAD_INPUT = 2  # also of every code that a tool declares itself
# Two words or more, so that a misspelt common code is not taken for a tool's own code.
_OWN_CODE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


def is_own_code(code: object) -> bool:
    """Return whether ``code`` is formed like a code that a tool may declare: upper-case words joined by ``_``."""
    return isinstance(code, str) and len(code) <= 60 and _OWN_CODE.fullmatch(code) is not None


def own_codes(output_schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the error codes that a tool's output schema declares in ``x-error-codes`` (code to meaning)."""
    declared = output_schema.get("x-error-codes")
    return frozenset(filter(is_own_code, declared)) if isinstance(declared, dict) else frozenset()


class SkillError(Exception):
    """A failure: raised by a handler and reported in the envelope's ``error``.

    Args:
        code: One of the ten codes in ``ErrorCode``, or one in ``own``; any other code raises ``ValueError``.
        message: What was wrong, what was received, what is allowed and what to do next.
        details: JSON object with the facts behind the message, such as ``param_name`` and ``provided_value``.
        data: JSON object for the envelope's ``data`` although the call failed, such as the violations found.
        own: Codes that the tool declares itself.
    """

    def __init__(
        self,
        code: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        *,
        own: Collection[str] = (),
    ) -> None:
        if code not in EXIT_CODES and code not in own:
            raise ValueError(f"unknown error code {code!r}; the codes are {', '.join(EXIT_CODES)}")
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = None if details is None else dict(details)
        self.data = None if data is None else dict(data)

    def to_dict(self) -> dict[str, Any]:
        """Return ``{code, message, details}``."""
        return {"code": self.code, "message": self.message, "details": self.details}


@dataclass(frozen=True)
class SkillResult:
    """The outcome of one call.

    Attributes:
        ok: Whether the call did its work. A design that violates a rule is still ``ok``.
        error: What went wrong, else ``None``.
        data: The tool's answer, else ``None``.
        duration_ms: Time the call took. [ms]
        violated: Whether the answer says that the design violates something; this sets exit code 1; not serialised.
        stopped: Whether the process was requested to end during the call; not serialised.
    """

    ok: bool
    error: SkillError | None
    data: dict[str, Any] | None
    duration_ms: int = 0
    violated: bool = field(default=False, compare=False)
    stopped: bool = field(default=False, compare=False)

    @property
    def exit_code(self) -> int:
        """The exit code of a script: 0 done, 1 design violates, 2 bad input, 3 program missing, 4 internal."""
        if self.error is not None:
            return EXIT_CODES.get(self.error.code, EXIT_BAD_INPUT)
        return EXIT_VIOLATES if self.violated else EXIT_DONE

    def to_dict(self) -> dict[str, Any]:
        """Return the envelope ``{ok, error, data, duration_ms}`` as JSON values."""
        error = None if self.error is None else self.error.to_dict()
        return {"ok": self.ok, "error": error, "data": self.data, "duration_ms": self.duration_ms}

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the envelope as strict JSON text, on one line unless ``indent`` [characters] is given."""
        return to_json(self.to_dict(), indent=indent)

    @classmethod
    def success(cls, data: dict[str, Any], duration_ms: int = 0, *, violated: bool = False) -> SkillResult:
        """Return the result of a call that did its work."""
        return cls(ok=True, error=None, data=data, duration_ms=duration_ms, violated=violated)

    @classmethod
    def failure(cls, error: SkillError, duration_ms: int = 0, *, stopped: bool = False) -> SkillResult:
        """Return the result of a call that failed; details or data that are not JSON are replaced by a note."""
        try:
            details, data = plain(error.details, WRAPPED), plain(error.data, WRAPPED)
        except NotJsonError as fault:
            details, data = {"details_dropped": str(fault)}, None
        message = error.message
        if len(message) > MAX_MESSAGE:
            message = f"{message[:MAX_MESSAGE]}... ({len(message)} characters)"
        sent = SkillError(error.code, message, _bounded(details), data, own=(error.code,))
        return cls(ok=False, error=sent, data=sent.data, duration_ms=duration_ms, stopped=stopped)

    @classmethod
    def from_dict(cls, envelope: Mapping[str, Any]) -> SkillResult:
        """Return the result an envelope describes; fields beyond the envelope's four are ignored.

        Raises:
            ValueError: If the envelope lacks a field, its fields contradict each other, or its error code is neither
                one of the ten nor formed like a tool's own.
        """
        missing = [name for name in ("ok", "error", "data", "duration_ms") if name not in envelope]
        if missing:
            raise ValueError(f"not an envelope: lacks {', '.join(missing)}")
        raw, data, ok = envelope["error"], envelope["data"], envelope["ok"]
        if not isinstance(ok, bool) or ok is (raw is not None):
            raise ValueError("not an envelope: 'ok' must be true without and false with an error")
        if not (data is None or isinstance(data, dict)) or not (raw is None or isinstance(raw, dict)):
            raise ValueError("not an envelope: 'error' and 'data' must be an object or null")
        duration = envelope["duration_ms"]
        if not isinstance(duration, int):
            raise ValueError("not an envelope: 'duration_ms' must be an integer")  # noqa: TRY004 - one kind of failure
        if raw is None:
            return cls(ok=True, error=None, data=data, duration_ms=duration)
        code = str(raw.get("code"))
        own = (code,) if is_own_code(code) else ()
        error = SkillError(code, str(raw.get("message", "")), raw.get("details"), data, own=own)
        return cls(ok=False, error=error, data=data, duration_ms=duration)


def to_json(value: object, *, indent: int | None = None) -> str:
    """Return ``value`` as strict JSON text; raises ``ValueError`` or ``TypeError`` for what JSON cannot hold."""
    separators = (", ", ": ") if indent is None else (",", ": ")
    return json.dumps(value, allow_nan=False, ensure_ascii=False, indent=indent, separators=separators)


def _bounded(details: Any) -> Any:
    """Return the details of an error with at most ``MAX_LISTED`` entries of each list, fewer where they are still long.

    A list that was cut is followed by the number of its entries, as ``<name>_count``.
    """
    found = _cut(details, MAX_LISTED)
    return found if len(json.dumps(found)) <= MAX_DETAILS else _cut(details, MAX_SHORT)


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, dict):
        parts = list(value.items())
        found = {name[:MAX_MESSAGE]: _cut(part, most) for name, part in parts[:most]}
        counts = {f"{name[:MAX_MESSAGE]}_count": len(part) for name, part in parts[:most] if _is_long(part, most)}
        return {**counts, **found}
    if isinstance(value, list):
        return [_cut(part, most) for part in value[:most]]
    return value[:MAX_MESSAGE] if isinstance(value, str) else value


def _is_long(value: Any, most: int) -> bool:
    return isinstance(value, dict | list) and len(value) > most


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
