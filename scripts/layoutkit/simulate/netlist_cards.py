"""The netlists and decks of users, made harmless before ngspice reads them.

ngspice runs commands that a netlist contains (``.control``, ``shell``) and reads files that it names. Only cards of
devices, subcircuits, parameters and, in a deck, analyses and measurements pass; any other card is an error that names
its line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from layoutkit.errors import NetlistError, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MAX_TEXT = 64 << 20
DEVICES = frozenset("rclmqdjxkviefgh")
"""First letters of the devices that pass. Code models (a), expressions as sources (b) and others are refused."""
IN_NETLISTS = frozenset({".subckt", ".ends", ".param", ".global", ".end"})
IN_DECKS = frozenset(
    {".op", ".ac", ".dc", ".tran", ".tf", ".noise", ".meas", ".measure", ".ic", ".nodeset", ".temp", ".option",
     ".options", ".save", ".print", ".model", ".func"}
)  # fmt: skip
_SET = re.compile(r"([a-z_]\w*)\s*=(?!=)")
_WIDTH = re.compile(r"(\sw\s*=\s*)(\d[\d.]*(?:e[+-]?\d+)?)(?=[a-z]*(?:\s|$))", re.IGNORECASE)
_FINGERS = re.compile(r"\snf\s*=\s*(\d+)(?:\s|$)", re.IGNORECASE)
_DIRECTIVE = re.compile(r"^\s*\.(subckt|ac|dc|tran|op|tf|noise|meas|measure)\b", re.IGNORECASE | re.MULTILINE)
_INSIDE = 1 + 1e-7
"""ngspice takes the model of a transistor by the width of its fingers, W/nf, which rounding puts below the narrowest
model where it is exactly that wide, such as 4.2 um over ten fingers of 0.42 um."""
_REFUSED_WORDS = re.compile(r"\b(file|filename|input_file|path)\s*=|`|\$\(|;\s*shell\b", re.IGNORECASE)


@dataclass(frozen=True)
class CardNetlist:
    """A netlist whose every card is of an allowed kind.

    Attributes:
        cell: Name of its top subcircuit, as spelled.
        ports: The ports of that subcircuit, in order.
        models: Names that its device cards call and it does not define itself.
        text: The cards, one a line, without comments.
    """

    cell: str
    ports: tuple[str, ...]
    models: frozenset[str]
    text: str


def read_cards(text: str, where: str, cell: str = "", ignored: Sequence[str] = ()) -> CardNetlist:
    """Return a netlist that ngspice may read.

    Args:
        text: Cards of subcircuits.
        where: What the text is, for messages.
        cell: The subcircuit to simulate, without regard to case; empty for the last one defined.
        ignored: Parameters to leave out.

    Raises:
        NetlistError: If a card is of another kind, or there is no such subcircuit; all faulty lines are named.
    """
    check_is_netlist(text, where)
    cards = harmless_cards(text, where, IN_NETLISTS)
    if ignored:
        cards = [re.sub(rf"\s(?:{'|'.join(ignored)})\s*=\s*\S+", "", card, flags=re.IGNORECASE) for card in cards]
    cards = [_inside_of_its_model(card) for card in cards]
    headers = [words for words in map(str.split, cards) if len(words) > 1 and words[0].lower() == ".subckt"]
    subcircuits = {words[1].lower(): words[1:] for words in headers}
    if not subcircuits or (cell and cell.lower() not in subcircuits):
        has = listed(words[0] for words in subcircuits.values()) or "none"
        raise NetlistError(f"{where} has no subcircuit {cell or 'at all'}; it has {has}")
    head = subcircuits[cell.lower()] if cell else list(subcircuits.values())[-1]
    ports = tuple(word for word in head[1:] if "=" not in word and word.lower() != "params:")
    return CardNetlist(head[0], ports, called_models(cards), "\n".join(cards) + "\n")


def _inside_of_its_model(card: str) -> str:
    """Return a card of a transistor with several fingers with a width that is larger by far less than an atom."""
    fingers = _FINGERS.search(card)
    if fingers is None or int(fingers[1]) < 2:
        return card
    return _WIDTH.sub(lambda match: f"{match[1]}{float(match[2]) * _INSIDE:.14g}", card)


def called_models(cards: Iterable[str]) -> frozenset[str]:
    """Return the lowercase models and subcircuits that device cards call and that ``cards`` do not define.

    A value may be a parameter: the names that ``.param`` sets are none of them.
    """
    called: set[str] = set()
    defined: set[str] = set()
    for card in cards:
        words = card.lower().split()
        if words[0] in (".subckt", ".model"):
            defined.update(words[1:2])
        elif words[0] == ".param":
            defined.update(_SET.findall(card.lower()))
        elif not words[0].startswith("."):
            called.update(_called(card))
    return frozenset(called - defined)


def check_is_netlist(text: str, where: str) -> None:
    """Refuse a file that is no netlist before any message quotes it: it may be any file.

    Raises:
        NetlistError: If it is binary, or no line is a directive that every netlist or deck has.
    """
    if "\0" in text:
        raise NetlistError(f"{where} is binary, not text: it contains NUL")
    if _DIRECTIVE.search(text) is None:
        raise NetlistError(
            f"{where} has no subcircuit and no analysis: no line of it is a directive such as .subckt, .tran or .meas"
        )


def harmless_cards(text: str, where: str, commands: Iterable[str]) -> list[str]:
    """Return the cards of a text, continuation lines joined, without comments, title and ``.end``.

    Args:
        text: SPICE.
        where: What the text is, for messages.
        commands: Words with a dot that may begin a card.

    Raises:
        NetlistError: If the text is too long or a card is of another kind; the first ten are named.
    """
    if len(text) > MAX_TEXT:
        raise NetlistError(f"{where} has {len(text)} characters, at most {MAX_TEXT} are read")
    allowed, cards, faults = frozenset(commands), [], []
    for number, card in _joined(text):
        word = card.split(None, 1)[0].lower()
        known = word in allowed if word.startswith(".") else word[0] in DEVICES
        if not known or _REFUSED_WORDS.search(card):
            faults.append(f"line {number}: {word[:20]}")
        elif word != ".end":
            cards.append(card)
    if faults:
        more = f" and {len(faults) - 10} more" if len(faults) > 10 else ""
        raise NetlistError(
            f"{where} holds cards that are not simulated: {'; '.join(faults[:10])}{more}; allowed are "
            f"{' '.join(sorted(allowed))} and devices {' '.join(sorted(DEVICES))}; no commands, files or code models",
            details={"lines": faults[:100]},
        )
    return cards


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each card: no comment, continuation lines joined."""
    start, card = 0, ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = re.split(r"(?<!\S)[$;]", raw.strip(), maxsplit=1)[0].strip()
        if not line or line.startswith("*"):
            continue
        if line.startswith("+") and card:
            card += " " + line[1:].strip()
            continue
        if card:
            yield start, card
        start, card = number, line
    if card:
        yield start, card


def _called(card: str) -> Iterator[str]:
    """Yield the lowercase names after the nodes of a device card, one of which is its model or subcircuit."""
    letter = card[0].lower()
    words = [word for word in card.split()[1:] if "=" not in word and word.lower() != "params:"]
    if letter == "x" and words:
        yield words[-1].lower()
    elif letter == "m" and len(words) > 4:
        yield words[4].lower()
    elif letter in "dj" and len(words) > (2 if letter == "d" else 3):
        yield words[2 if letter == "d" else 3].lower()
    elif letter == "q":  # three or four nodes, the model, then perhaps an area
        yield from [word.lower() for word in words[3:] if not word[0].isdigit()][-1:]
    elif letter in "rc" and len(words) > 2 and words[2][0].isalpha():
        yield words[2].lower()
