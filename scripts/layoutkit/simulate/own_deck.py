"""The deck of a user: it calls the circuit by its name, and its ``.meas`` cards state what is measured.

ngspice takes the first line of a deck as its title. Decks without one are common too, so that the first line is a card
here if its first two nodes are in other cards.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from layoutkit.errors import NetlistError
from layoutkit.simulate.fixture import Measurement
from layoutkit.simulate.netlist_cards import IN_DECKS, IN_NETLISTS, check_is_netlist, harmless_cards
from layoutkit.simulate.ngspice import SimulationError, trouble

if TYPE_CHECKING:
    from collections.abc import Sequence

    from layoutkit.simulate.fixture import Fixture

_VALUE = re.compile(r"^\s*([a-z_]\w*)\s*=\s*([+-]?\d[\d.]*(?:e[+-]?\d+)?)(?:\s|$)", re.IGNORECASE | re.MULTILINE)
_MEASURES = frozenset({".meas", ".measure"})
_ANALYSES = frozenset({".op", ".ac", ".dc", ".tran", ".tf", ".noise"})


def read_deck(text: str, cell: str) -> tuple[list[str], tuple[str, ...]]:
    """Return the cards of a deck and the names of its measurements.

    Without a ``.save`` card all voltages are kept, as ``.meas`` does not ask for those in ``vdb(node)`` and the like.

    Raises:
        NetlistError: If it holds cards that are not simulated, measures nothing or does not call the circuit.
    """
    check_is_netlist(text, "the deck")
    cards = harmless_cards(_without_title(text), "the deck", IN_DECKS | IN_NETLISTS)
    words = [card.lower().split() for card in cards]
    names = tuple(each[2] for each in words if each[0] in _MEASURES and len(each) > 2)
    if not names:
        raise NetlistError("the deck has no .meas card, so it measures nothing")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise NetlistError(
            f"the deck measures {', '.join(twice)} more than once; give each measurement a name of its own"
        )
    if not any(each[0].startswith("x") and cell.lower() in each for each in words):
        raise NetlistError(f"the deck does not call subcircuit {cell}; add a card such as Xdut ... {cell}")
    saved = any(each[0] == ".save" for each in words)
    return cards if saved else [*cards, ".save all"], names


def _without_title(text: str) -> str:
    """Return a deck whose first line is empty if it is a title."""
    title, _, rest = text.partition("\n")
    words = title.lower().split()
    if not words or words[0].startswith((".", "*")):
        return text
    others = set(re.split(r"[\s()=,]+", rest.lower()))
    return text if len(words) > 2 and others.issuperset(words[1:3]) else f"\n{rest}"


def measure_deck(fixture: Fixture, cards: Sequence[str], names: Sequence[str]) -> dict[str, Measurement]:
    """Return the measurements of a deck that ngspice could make.

    It measures only the analysis that it runs last: those of each kind have a run of their own.

    Raises:
        SimulationError: If it made none; the message holds what it said.
    """
    logs = [fixture.log_of(part) for part in _by_analysis(cards)]
    values = {match[1].lower(): float(match[2]) for log in logs for match in _VALUE.finditer(log)}
    found = {name: Measurement(values[name], "") for name in names if name in values}
    if not found:
        raise SimulationError(f"the deck gave no measurement: {'; '.join(dict.fromkeys(map(trouble, logs)))}")
    return found


def _by_analysis(cards: Sequence[str]) -> list[list[str]]:
    """Return the cards once for each kind of analysis that is measured, without other analyses and measurements."""
    words = [card.lower().split() for card in cards]
    kinds = dict.fromkeys(each[1] for each in words if each[0] in _MEASURES and len(each) > 2)

    def belongs(each: Sequence[str], kind: str) -> bool:
        return each[1:2] == [kind] if each[0] in _MEASURES else each[0] not in _ANALYSES or each[0] == f".{kind}"

    return [[card for card, each in zip(cards, words, strict=True) if belongs(each, kind)] for kind in kinds]
