"""What a reader found wrong or noteworthy, collected so that a user sees everything at once."""

from __future__ import annotations

from collections import Counter
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from layoutkit.errors import NetlistError, listed, sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MAX_SHOWN = 20
MAX_NAME = 200  # characters of a name in a message


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
