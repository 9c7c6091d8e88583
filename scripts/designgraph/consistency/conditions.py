"""Boolean conditions of state transitions, such as ``start && !busy`` or ``mode == 2 or ready``.

A name is a signal with the value 0 or 1. If it is compared with other values, it has one of these or another value.
Anything else (``count < 7``, free text) raises ``NotUnderstoodError``; nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from math import prod

MAX_CASES = 4096
OTHER = "another value"
_ELSE = frozenset({"else", "default", "otherwise", "others"})
_TOKEN = re.compile(
    r"\s*(?:(?P<op>\|\||&&|==|!=|[!~&|^()=])|(?P<number>\d*'[bdohBDOH]?[0-9a-fA-FxXzZ_]+|\d+)"
    r"|(?P<name>[A-Za-z_][\w.$]*(?:\[[\w:]+\])?))"
)
_WORDS = {"and": "&&", "or": "||", "not": "!", "&": "&&", "|": "||", "~": "!", "=": "=="}
_CONSTANTS = {"true": "1", "false": "0"}

Case = Mapping[str, str]
Test = Callable[[Case], bool]


class NotUnderstoodError(ValueError):
    """A condition that is not Boolean, or has too many cases."""


class Condition:
    """A Boolean condition.

    Args:
        text: The condition.

    Raises:
        NotUnderstoodError: If it is not Boolean.
    """

    def __init__(self, text: str) -> None:
        self.is_else = text.strip().lower() in _ELSE
        self.compared: dict[str, set[str]] = {}
        self._tokens = [] if self.is_else else _tokens(text)
        self._place = 0
        self.holds: Test = (lambda _: False) if self.is_else else self._either()
        if self._place < len(self._tokens):
            raise NotUnderstoodError(f"'{self._tokens[self._place][1]}' is not expected there")

    def _either(self) -> Test:
        parts = [self._different()]
        while self._take("||"):
            parts.append(self._different())
        return parts[0] if len(parts) == 1 else lambda case: any(part(case) for part in parts)

    def _different(self) -> Test:
        parts = [self._both()]
        while self._take("^"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else lambda case: sum(part(case) for part in parts) % 2 == 1

    def _both(self) -> Test:
        parts = [self._negated()]
        while self._take("&&"):
            parts.append(self._negated())
        return parts[0] if len(parts) == 1 else lambda case: all(part(case) for part in parts)

    def _negated(self) -> Test:
        if self._take("!"):
            inner = self._negated()
            return lambda case: not inner(case)
        if self._take("("):
            inner = self._either()
            if not self._take(")"):
                raise NotUnderstoodError("a bracket is not closed")
            return inner
        return self._comparison()

    def _comparison(self) -> Test:
        kind, text = self._next()
        if kind == "number":
            return lambda _: _value(text) != "0"
        if self._take("=="):
            return self._compared_with(text, equal=True)
        if self._take("!="):
            return self._compared_with(text, equal=False)
        self.compared.setdefault(text, set()).update("01")
        return lambda case: case[text] == "1"

    def _compared_with(self, name: str, *, equal: bool) -> Test:
        value = _value(self._next()[1])
        self.compared.setdefault(name, set()).add(value)
        return lambda case: (case[name] == value) is equal

    def _take(self, operator: str) -> bool:
        if self._place < len(self._tokens) and self._tokens[self._place] == ("op", operator):
            self._place += 1
            return True
        return False

    def _next(self) -> tuple[str, str]:
        if self._place == len(self._tokens) or self._tokens[self._place][0] == "op":
            raise NotUnderstoodError("a signal or value is missing")
        self._place += 1
        return self._tokens[self._place - 1]


def cases(conditions: Iterable[Condition]) -> list[Case]:
    """Return all combinations of the values of the signals in ``conditions``.

    Raises:
        NotUnderstoodError: If there are more than 4096.
    """
    values: dict[str, set[str]] = {}
    for condition in conditions:
        for name, compared in condition.compared.items():
            values.setdefault(name, set()).update(compared)
    names = sorted(values)
    domains = [sorted({"0", "1"} if values[n] <= {"0", "1"} else {*values[n], OTHER}) for n in names]
    if prod(map(len, domains)) > MAX_CASES:
        raise NotUnderstoodError(f"its conditions have more than {MAX_CASES} combinations")
    return [dict(zip(names, chosen, strict=True)) for chosen in product(*domains)]


def case_text(case: Case) -> str:
    """Return a combination as text."""
    return ", ".join(f"{name} = {value}" for name, value in case.items()) or "always"


def _tokens(text: str) -> list[tuple[str, str]]:
    found = []
    place = 0
    text = text.strip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise NotUnderstoodError(f"{text[place : place + 20].strip()!r} is not understood")
        kind = str(match.lastgroup)
        word = match[kind]
        if kind == "name" and word.lower() in _CONSTANTS:
            kind, word = "number", _CONSTANTS[word.lower()]
        operator = _WORDS.get(word.lower() if kind == "name" else word)
        found.append(("op", operator) if operator else (kind, word))
        place = match.end()
    if not found:
        raise NotUnderstoodError("it is empty")
    return found


def _value(text: str) -> str:
    """Return a number in one form, so that 1'b1 and 1 are equal; return a name unchanged."""
    size, mark, digits = text.partition("'")
    if not mark:
        return str(int(text)) if text.isdigit() else text
    base = {"b": 2, "d": 10, "o": 8, "h": 16}.get(digits[:1].lower())
    try:
        return str(int(digits[1:] if base else digits, base or 10))
    except ValueError:
        return f"{size}'{digits}"
