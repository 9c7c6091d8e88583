"""From the text of one SPICE, CDL or Spectre file to statements: comments off, continuations joined, words split."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from layoutkit.errors import NetlistError

if TYPE_CHECKING:
    from collections.abc import Iterator

# xschem comments out the top subcircuit: "**.subckt name ports" ... "**.ends". CDL writes some directives as comments.
_COMMENTED_TOP = re.compile(r"\*\*\s*(\.(?:subckt|ends)\b.*)", re.IGNORECASE)
_CDL_DIRECTIVE = re.compile(r"\*(\.(?:global|scale)\b.*)", re.IGNORECASE)
_CDL_PARAMETER = re.compile(r"\$(?:\[|\.?[A-Za-z]\w*\s*=|pins\b)", re.IGNORECASE)
# ".lib $PDK_ROOT/models.lib tt": a file name may start with a variable.
_PATH_DIRECTIVE = re.compile(
    r"(?:\.(?:include|incl?|lib)|include)\s+(?P<path>'[^']+'|\"[^\"]+\"|\S+)(?P<rest>.*)", re.IGNORECASE
)
_SPACED_OPERATOR = re.compile(r"\s+([-+*/])\s+(?=[\w.('\"{])")
# What Magic writes behind a capacitance of a net without devices, and sizes kept as a comment: "m=1 *W=2u L=1u".
_BEHIND = re.compile(r"\s\*(?:\*FLOATING\b|[A-Za-z]\w*=)")
_WORD = re.compile(r"[^\s,()='\"{}]+(?:\(\d+\)[^\s,()='\"{}]*)?")
_ESCAPE = re.compile(r"\\(.)")
_SEPARATORS = frozenset({"/", "params:"})  # between nodes and master in CDL; between words and parameters in PSpice
_CLOSING = {"'": "'", '"': '"', "{": "}"}


@dataclass(frozen=True)
class LogicalLine:
    """One statement's text with its continuations joined."""

    number: int
    text: str
    commented: bool = False


@dataclass(frozen=True)
class Statement:
    """One statement split into words and parameters.

    Attributes:
        where: Place for messages, such as ``line 12``.
        words: Words that are not part of ``key=value``; quoted expressions keep their quotes.
        params: Lowercase key to the text of its value; quotes and braces have become parentheses.
        pins: Connections by pin name, from CDL's ``$PINS``.
        commented: Whether it stood in a ``**.subckt`` comment.
    """

    where: str
    words: tuple[str, ...]
    params: dict[str, str] = field(default_factory=dict)
    pins: dict[str, str] = field(default_factory=dict)
    commented: bool = False

    @property
    def head(self) -> str:
        """The first word in lowercase."""
        return self.words[0].lower() if self.words else ""


def logical_lines(text: str) -> Iterator[LogicalLine]:
    """Yield the statements of a file as text, without comments, with ``+`` and backslash continuations joined.

    Raises:
        NetlistError: If a continuation line continues nothing.
    """
    parts: list[str] = []
    start, commented, open_backslash = 0, False, False
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        directive = _COMMENTED_TOP.fullmatch(line)
        if directive is None and line.startswith("**+") and commented:
            line = line[2:]
        elif directive is None:
            cdl = _CDL_DIRECTIVE.fullmatch(line)
            line = cdl[1] if cdl else _without_comment(line)
        if not line and directive is None:
            open_backslash = open_backslash and bool(raw.strip())
            continue
        if directive is None and (line.startswith("+") or open_backslash):
            if not parts:
                raise NetlistError(f"line {number}: continuation '+' without a line to continue")
            parts.append(line[1:] if line.startswith("+") and not open_backslash else line)
        else:
            yield from _joined(start, parts, commented)
            parts = [directive[1] if directive else line]
            start, commented = number, directive is not None
        open_backslash = parts[-1].endswith("\\")
        parts[-1] = parts[-1].rstrip("\\")
    yield from _joined(start, parts, commented)


def _joined(start: int, parts: list[str], commented: bool) -> Iterator[LogicalLine]:
    text = " ".join(parts).strip()
    if text:
        yield LogicalLine(start, text, commented)


def _without_comment(line: str) -> str:
    """Return the line up to its comment: ``*`` or ``//`` in front; `` $``, `` //``, ``;`` or `` *w=`` behind."""
    if line.startswith(("*", "//")):
        return ""
    behind = _BEHIND.search(line, max(map(line.rfind, "'\"{")) + 1)  # what is quoted is no comment
    line = line if behind is None else line[: behind.start()]
    if not any(mark in line for mark in ";$/"):
        return line
    quote = ""
    is_path = _PATH_DIRECTIVE.match(line) is not None
    for index, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == ";" or (_starts_word(line, index) and _opens_comment(line, index, is_path)):
            return line[:index].rstrip()
    return line


def _starts_word(line: str, index: int) -> bool:
    return index == 0 or line[index - 1].isspace()


def _opens_comment(line: str, index: int, is_path: bool) -> bool:
    if line.startswith("//", index):
        return True
    if line[index] != "$" or _CDL_PARAMETER.match(line, index) is not None:
        return False
    return not is_path or line[index + 1 : index + 2] in {"", " ", "\t"}


def split_statement(line: LogicalLine, place: str) -> Statement:
    """Return the words and parameters of one logical line; a file name is one word whatever it is made of.

    Raises:
        NetlistError: If a quote or brace is not closed, or a parameter is given twice with two values.
    """
    directive = _PATH_DIRECTIVE.fullmatch(line.text)
    if directive is None:
        return Splitter(line, place).run()
    rest = Splitter(LogicalLine(line.number, directive["rest"]), place).run()
    words = (line.text.split(maxsplit=1)[0], directive["path"], *rest.words)
    return Statement(place, words, rest.params)


class Splitter:
    """A single pass over one logical line."""

    def __init__(self, line: LogicalLine, place: str) -> None:
        self._line = line
        self._text = line.text
        self._place = place
        self._at = 0
        self._words: list[str] = []
        self._params: dict[str, str] = {}
        self._pins: dict[str, str] | None = None

    def run(self) -> Statement:
        """Return the line as a statement."""
        text = self._text
        while self._at < len(text):
            char = text[self._at]
            if char.isspace() or char in ",()":
                self._at += 1
            elif char in _CLOSING:
                self._words.append(f"'{self._quoted()}'")
            elif char == "=":
                self._assignment()
            else:
                self._word()
        return Statement(self._place, tuple(self._words), self._params, self._pins or {}, self._line.commented)

    def _word(self) -> None:
        match = _WORD.match(self._text, self._at)
        if match is None:  # a closing brace with no opening one
            raise NetlistError(f"{self._place}: unexpected '{self._text[self._at]}'")
        self._at = match.end()
        word = _ESCAPE.sub(r"\1", match.group())
        if word.startswith("$[") and word.endswith("]"):
            self._params["model"] = word[2:-1]
        elif word.lower() == "$pins":
            self._pins = {}
        elif not self._words or word.lower() not in _SEPARATORS:
            self._words.append(word)

    def _quoted(self) -> str:
        opening = self._text[self._at]
        end = self._text.find(_CLOSING[opening], self._at + 1)
        if end < 0:
            raise NetlistError(f"{self._place}: {opening} is never closed")
        inner = self._text[self._at + 1 : end]
        self._at = end + 1
        return inner.strip()

    def _assignment(self) -> None:
        if not self._words:
            raise NetlistError(f"{self._place}: '=' without a name before it")
        key = self._words.pop()
        self._at += 1
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        value = self._value()
        if not value:
            raise NetlistError(f"{self._place}: '{key}=' without a value")
        if self._pins is not None:
            self._pins[key] = value
            return
        key = key.lstrip("$.").lower()
        if self._params.get(key, value) != value:
            raise NetlistError(f"{self._place}: '{key}' is given twice, as {self._params[key]} and as {value}")
        self._params[key] = value

    def _value(self) -> str:
        """Take a value up to the next blank that is neither bracketed nor beside a free-standing operator."""
        parts: list[str] = []
        depth = 0
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in "'\"{" and depth == 0:
                parts.append(f"({self._quoted()})")
                continue
            operator = _SPACED_OPERATOR.match(self._text, self._at) if depth == 0 else None
            if operator is not None and parts:
                parts.append(operator[1])
                self._at = operator.end()
                continue
            if depth == 0 and (char.isspace() or char in ",)"):
                break
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(char, 0)
            parts.append(char)
            self._at += 1
        return "".join(parts).strip()
