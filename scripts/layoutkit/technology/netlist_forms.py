"""How netlists for a process write its devices: one line of text per device, as its technology file states it.

A card reads ``X d g s b {model} w={w} l={l} ng={nf} m={m}``: the letter of the card, the terminals in the order of the
PDK, the model, then the parameters under the PDK's names. ``spice`` is the form of the PDK's SPICE library and of
netgen, ``lvs_deck`` that of the foundry's LVS deck, where the deck cannot read the first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from layoutkit.errors import TechnologyError
from layoutkit.technology.device_kinds import DRAWN_KINDS, KINDS, OTHER_LENGTHS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

OF_ALL_UNITS = ("total_w", "area", "perimeter")
LENGTHS = ("metres", "micrometres")
AREAS = ("ad", "as")
MEASURED = (*AREAS, "pd", "ps", "sa", "sb", "sd")
"""Quantities of a transistor that only a layout has; a netlist that was not extracted leaves them out."""
_COUNTS = ("nf", "m", "bends")
QUANTITIES = ("w", "l", *OTHER_LENGTHS, *_COUNTS, "finger_w", "unit_area", "unit_perimeter", *OF_ALL_UNITS, *MEASURED)
_PARAMETER = re.compile(r"(\w+)=(?:\{(\w+)\}(e\d{1,2})?|(\d{1,9}))", re.ASCII)


@dataclass(frozen=True)
class CardForm:
    """The card of one device.

    Attributes:
        letter: That of the device's kind, or ``X`` for a subcircuit.
        terminals: Terminals of the circuit model (``d g s b``, ``p n b``) in the order of the card.
        model: Model name; ``{width}`` in it stands for the width, as in a technology's device.
        params: Name on the card, what it is (one of ``QUANTITIES``), and the power of ten written after the number,
            such as ``e12`` for a library that scales areas itself. Empty, and the number, for one that is always the
            same, such as ``rfmode=1``.
        lengths: ``metres`` (written ``0.42u``) or ``micrometres`` (a plain number: the library scales it).
        lists_tied: Whether netlists of this form list a transistor whose terminals are all on one net.
    """

    letter: str
    terminals: tuple[str, ...]
    model: str
    params: tuple[tuple[str, str, str], ...]
    lengths: str
    lists_tied: bool = True

    @property
    def counts_units(self) -> bool:
        """Whether one card describes all units of a device; otherwise each unit has a card."""
        return any(quantity in ("m", *OF_ALL_UNITS) for _, quantity, _ in self.params)


def read_card_form(text: object, kind: str, model: str, lengths: str) -> CardForm:
    """Return the card that ``text`` states for a device of type ``kind`` with this model.

    Raises:
        TechnologyError: If it is not a card of such a device; the message says what it must look like.
    """
    words = str(text).split()
    first = next((i for i, word in enumerate(words) if "=" in word), len(words))
    letter, terminals, name = (words[0], tuple(words[1 : first - 1]), words[first - 1]) if first > 1 else ("", (), "")
    found = [_PARAMETER.fullmatch(word) for word in words[first:]]
    params = tuple((match[1], match[2] or "", match[3] or match[4] or "") for match in found if match)
    declared = KINDS[kind]
    faults = []
    if letter not in declared.letters:
        faults.append(f"it must begin with {' or '.join(declared.letters)}")
    if len(set(terminals)) != len(terminals) or not set(terminals) <= set(declared.all_terminals):
        faults.append(f"its terminals must be of {' '.join(declared.all_terminals)}, each once")
    elif not set(declared.terminals) <= set(terminals):
        faults.append(f"a {declared.noun} connects all of {' '.join(declared.terminals)}")
    if len(params) < len(found) or any(quantity not in (*QUANTITIES, "") for _, quantity, _ in params):
        faults.append(
            f"parameters are written name={{quantity}}, with a quantity of {', '.join(QUANTITIES)}, or name=1"
        )
    if faults:
        raise TechnologyError(f"card '{text}': {'; '.join(faults)}; an example is {_example(kind)}")
    return CardForm(letter, terminals, name.replace("{model}", model), params, lengths)


def _example(kind: str) -> str:
    return f"'X {' '.join(KINDS[kind].all_terminals)} {{model}} w={{w}} l={{l}} m={{m}}'"


def read_forms(data: Mapping[str, Any]) -> dict[str, dict[str, CardForm]]:
    """Return form name -> device name -> card, from a whole technology file.

    Raises:
        TechnologyError: At the first entry of its section ``netlists`` that is not understood.
    """
    fault = next(faults_of_forms(data), None)
    if fault is not None:
        raise TechnologyError(f"{fault[0]}: {fault[1]}")
    section, devices = data.get("netlists") or {}, data["devices"]
    forms: dict[str, dict[str, CardForm]] = {}
    for form, entry in section.items():
        cards = entry["cards"]
        forms[form] = {
            name: replace(
                read_card_form(
                    cards[name] if name in cards else cards[device["type"]],
                    device["type"],
                    device.get("model", name),
                    entry["lengths"],
                ),
                lists_tied=not entry.get("ignores_tied", False),
            )
            for name, device in devices.items()
        }
    return forms


def faults_of_forms(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield place and message of every fault in the cards of a technology file, whose form the schema states."""
    kinds = {
        str(name): str(device.get("type"))
        for name, device in data.get("devices", {}).items()
        if device.get("type") in DRAWN_KINDS
    }
    for form, entry in data.get("netlists", {}).items():
        yield from _faults_of_cards(f"netlists.{form}.cards", entry.get("cards", {}), kinds)


def _faults_of_cards(place: str, cards: Mapping[str, Any], kinds: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in _without(kinds, cards):
        yield place, f"states no card for {name}, neither under its name nor for every {kinds[name]}"
    for key, text in cards.items():
        kind = kinds.get(key, key)
        if kind not in DRAWN_KINDS:
            yield f"{place}.{key}", "is neither a device nor a type of device"
            continue
        try:
            read_card_form(text, kind, "", LENGTHS[0])
        except TechnologyError as error:
            yield f"{place}.{key}", str(error)


def _without(kinds: Mapping[str, str], cards: Mapping[str, Any]) -> Iterable[str]:
    return [name for name, kind in kinds.items() if name not in cards and kind not in cards]
