"""The exceptions of the layout engine, and what collects the faults that one of them tells at once.

Each exception carries ``code`` (one of the pack's ten error codes) and ``details`` (JSON data or ``None``), so that a
caller can turn any of them into a result envelope without importing this module.

A message says what was wrong, what was received, what is allowed and what to do next.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, count
from typing import TYPE_CHECKING, Any, ClassVar

from sturdy.near_names import near_names
from sturdy.near_names import sentences as sentences  # noqa: PLC0414 - its users find it here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

MAX_LISTED = 20  # names in a message
MAX_NAME = 200  # characters of each of them


class LayoutkitError(Exception):
    """Base of every error the layout engine raises on purpose.

    Args:
        message: What happened, in one sentence a user can act on.
        code: One of the ten error codes; ``None`` takes the class's own code.
        details: JSON-serialisable facts (names, limits, alternatives), or ``None``.
    """

    default_code: ClassVar[str] = "INVALID_PARAM"

    def __init__(self, message: str, *, code: str | None = None, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = self.default_code if code is None else code
        self.details: dict[str, Any] | None = None if details is None else _with_plain_text(dict(details))


def _with_plain_text(value: Any) -> Any:
    """Return details with plain strings for those of other classes, which are no JSON values."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, dict):
        return {key: _with_plain_text(each) for key, each in value.items()}
    return [_with_plain_text(each) for each in value] if type(value) in (list, tuple) else value


class GeometryError(LayoutkitError):
    """A shape, size, pattern or position that cannot be drawn."""


class FarFromTapsError(GeometryError):
    """A shape whose diffusion would lie too far from the nearest tap."""


class TechnologyError(LayoutkitError):
    """A technology file that is missing, malformed or lacks a required entry."""


class NetlistError(LayoutkitError):
    """A netlist or circuit that is malformed, incomplete or ambiguous."""


class FileError(LayoutkitError):
    """A file or folder that is missing, unreadable, corrupt, too large or not writable."""


class DeviceNotFoundError(LayoutkitError):
    """A device id that the circuit or layout does not hold."""

    default_code = "DEVICE_NOT_FOUND"


class RuleNotFoundError(LayoutkitError):
    """A design rule id that the technology does not hold."""

    default_code = "RULE_NOT_FOUND"


class DrcViolationError(LayoutkitError):
    """A request whose result would violate a design rule."""

    default_code = "DRC_VIOLATION"


class LayoutConflictError(LayoutkitError):
    """A request that overlaps or contradicts what the layout already holds."""

    default_code = "LAYOUT_CONFLICT"


class UnsupportedOperationError(LayoutkitError):
    """A well-formed request that this version cannot carry out."""

    default_code = "UNSUPPORTED_OPERATION"


class KlayoutError(LayoutkitError):
    """A KLayout call that failed."""

    default_code = "KLAYOUT_ERROR"


class MissingProgramError(LayoutkitError):
    """A program or library that is needed and not installed."""

    default_code = "SERVICE_UNAVAILABLE"


class TimeLimitError(LayoutkitError):
    """Work that was stopped because it took longer than allowed."""

    default_code = "TIMEOUT"


def listed(names: Iterable[object], most: int = MAX_LISTED, joint: str = ", ") -> str:
    """Return names for a message: the first ones, and how many more there are."""
    known = [str(name)[:MAX_NAME] for name in names]
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return joint.join(known[:most]) + more


def enumerated(words: Sequence[str], last: str = "and") -> str:
    """Return words for a message, such as ``nmos, pmos and resistor``."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def counted(number: int, noun: str) -> str:
    """Return a number and its noun, such as ``1 device`` or ``2 devices``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def did_you_mean(name: object, known: Iterable[object], cutoff: float = 0.6) -> str:
    """Return `` (did you mean 'x'?)`` for the name of ``known`` that is most like ``name``, or "" if none is.

    Args:
        name: The unknown name.
        known: The names that exist.
        cutoff: Least similarity, from 0 to 1; names of devices and nets are short and need a lower one.
    """
    return "".join(f" (did you mean '{close}'?)" for close in near_names(str(name), map(str, known), 1, cutoff=cutoff))


class Findings:
    """Faults that stop the reading at its end, and warnings that travel with the result.

    Attributes:
        left_out: First words of statements that only concern a simulation, with their numbers.
    """

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._warnings: dict[str, list[str]] = {}
        self.left_out: Counter[str] = Counter()

    def fault(self, where: str, text: str) -> None:
        """Record a fault at a place such as ``line 12``."""
        self.faults.append(f"{where}: {text}")

    def warn(self, text: str, subject: str = "") -> None:
        """Record a warning; equal texts become one warning that lists its subjects."""
        subjects = self._warnings.setdefault(text, [])
        if subject and subject not in subjects[-1:]:
            subjects.append(subject)

    def leave_out(self, statement: str) -> None:
        """Count a statement that only concerns a simulation, by its first word such as ``.tran``."""
        self.left_out[statement[:MAX_NAME]] += 1

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings in the order they were first met, and last what is no part of the circuit."""
        shown = tuple(_with_subjects(text, subjects) for text, subjects in self._warnings.items())
        if not self.left_out:
            return shown
        counted = [f"{word} ({count})" for word, count in sorted(self.left_out.items())]
        return (*shown, _with_subjects("statements for a simulation are left out", counted))

    def raise_faults(self, what: str, details: Mapping[str, Any] | None = None) -> None:
        """Raise every fault in one error, with ``details`` beside their list.

        Raises:
            NetlistError: If there is any fault; its details list them all.
        """
        if not self.faults:
            return
        raise NetlistError(f"{what}: {sentences(self.faults)}", details={"faults": self.faults, **(details or {})})


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, in the order of their first use."""
    return [name for name, count in Counter(names).items() if count > 1]


def numbered(name: str, is_free: Callable[[str], bool]) -> str:
    """Return a name if it is free, else with the first number behind it that makes it free: ``a``, ``a_2``, ``a_3``."""
    return next(each for each in chain([name], (f"{name}_{number}" for number in count(2))) if is_free(each))


def _with_subjects(text: str, subjects: list[str]) -> str:
    if not subjects:
        return text
    return f"{text}: {listed(subjects)}"
