"""The names of all devices of a process, and how netlists write them: spellings, devices without a drawing, cards.

A netlist that names a device without a drawing is refused; no other device of the process takes its place unasked.

A netlist for a process has one line of text per device, as the technology file states it. A card reads
``X d g s b {model} w={w} l={l} ng={nf} m={m}``: the letter of the card, the terminals in the order of the PDK, the
model, then the parameters under the PDK's names. ``spice`` is the form of the PDK's SPICE library and of netgen,
``lvs_deck`` that of the foundry's LVS deck, where the deck cannot read the first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from layoutkit.errors import TechnologyError, UnsupportedOperationError, listed
from layoutkit.file_schema import frozen
from layoutkit.technology.device_kinds import DRAWN_KINDS, KINDS, OTHER_LENGTHS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from layoutkit.technology.device_specs import DeviceSpec, PassiveSpec

OTHER = "other"
"""The type of an undrawn device that no kind describes, such as a bond pad."""
_SHOWN = 20
_MODEL_AND_BIN = re.compile(r"(?:__model)?(?:\.\d+)?$")  # of a model card inside of the PDK's subcircuit
OF_ALL_UNITS = ("total_w", "area", "perimeter")
LENGTHS = ("metres", "micrometres")
AREAS = ("ad", "as")
MEASURED = (*AREAS, "pd", "ps", "sa", "sb", "sd")
"""Quantities of a transistor that only a layout has; a netlist that was not extracted leaves them out."""
_COUNTS = ("nf", "m", "bends")
QUANTITIES = ("w", "l", *OTHER_LENGTHS, *_COUNTS, "finger_w", "unit_area", "unit_perimeter", *OF_ALL_UNITS, *MEASURED)
_PARAMETER = re.compile(r"(\w+)=(?:\{(\w+)\}(e\d{1,2})?|(\d{1,9}))", re.ASCII)


@dataclass(frozen=True)
class UndrawnDevice:
    """Devices of a process that have no drawing, for one reason.

    Attributes:
        type: Their kind, or ``other``.
        names: Model names; ``*`` stands for any characters, ``?`` for one.
        reason: What they are and why they are not drawn.
        supply_v: Rated voltage. [V]
        ohm_per_square: Sheet resistance. [ohm]
        farad_per_um2: Capacitance per area. [F/um2]
    """

    type: str
    names: tuple[str, ...]
    reason: str = ""
    supply_v: float | None = None
    ohm_per_square: float | None = None
    farad_per_um2: float | None = None

    @property
    def rating(self) -> str:
        """Rated voltage, sheet resistance or capacitance per area in words; empty where none is known."""
        return rating(self.supply_v, self.ohm_per_square, self.farad_per_um2)


@dataclass(frozen=True)
class ListedNames:
    """What a technology file states about names of devices.

    Attributes:
        prefix: What may be left out at the beginning of every name of the process; empty where nothing may.
        other_names: Other model name -> name of the drawn device.
        undrawn: Devices without a drawing; the first one that has a name counts.
        variants: Parameter -> drawn device -> name of the device that it is where the parameter is not 0.
        cells: Names of the finished cells of the process's libraries; ``*`` stands for any characters, ``?`` for one.
    """

    prefix: str = ""
    other_names: Mapping[str, str] = field(default_factory=dict)
    undrawn: tuple[UndrawnDevice, ...] = ()
    variants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    cells: tuple[str, ...] = ()


def read_names(data: Mapping[str, Any]) -> ListedNames:
    """Return the names that the section ``device_names`` of a technology file lists."""
    stated, known = frozen(data), {each.name for each in fields(UndrawnDevice)}
    undrawn = ({key: entry[key] for key in known & entry.keys()} for entry in stated.get("undrawn", ()))
    return ListedNames(**{**stated, "undrawn": tuple(UndrawnDevice(**entry) for entry in undrawn)})


def faults_of_names(section: Mapping[str, Any], devices: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield place and message of what is wrong in the section ``device_names`` of a technology file.

    Args:
        section: The section; it keeps the schema.
        devices: The section ``devices``.
    """
    prefix = str(section.get("prefix", "")).lower()
    drawn = {
        str(name).lower().removeprefix(prefix)
        for key, entry in devices.items()
        for name in (key, entry.get("model", key), *entry.get("other_models", ()))
    }
    for name, target in section.get("other_names", {}).items():
        if target not in devices:
            yield f"device_names.other_names.{name}", f"must name a device of this file, got '{target}'"
    for parameter, of in section.get("variants", {}).items():
        for name in of:
            if name not in devices:
                yield f"device_names.variants.{parameter}", f"must name devices of this file, got '{name}'"
    seen = {str(name).lower().removeprefix(prefix) for name in section.get("other_names", {})}
    for number, entry in enumerate(section.get("undrawn", ())):
        place = f"device_names.undrawn[{number}]"
        if entry.get("type") not in (*KINDS, OTHER):
            yield place, f"type must be one of {', '.join((*KINDS, OTHER))}, got {str(entry.get('type'))[:80]!r}"
        for name in entry.get("names", ()):
            plain = str(name).lower().removeprefix(prefix)
            if plain in drawn:
                yield place, f"'{name}' is a device of this file that has a drawing"
            if plain in seen:
                yield place, f"'{name}' is listed twice"
            seen.add(plain)


class DeviceNames:
    """Finds the device that a model name means in one technology; without arguments, in one that has none.

    Case, the process's prefix, and the ``__model`` and bin number of a model card do not distinguish names.
    """

    def __init__(
        self,
        listed: ListedNames = ListedNames(),
        devices: Mapping[str, DeviceSpec] | None = None,
        passives: Mapping[str, PassiveSpec] | None = None,
        dbu_um: float = 0.001,
        deep_parts: Collection[str] = (),
    ) -> None:
        devices, passives = devices or {}, passives or {}
        self.specs: tuple[DeviceSpec | PassiveSpec, ...] = (*devices.values(), *passives.values())
        self._deep_parts = frozenset(deep_parts)
        self._prefix = listed.prefix.lower()
        self._drawn: dict[str, DeviceSpec | PassiveSpec] = {}
        for spec in devices.values():
            self._drawn.update({self.plain(name): spec for name in (spec.name, spec.model)})
        self._widths: dict[str, int | None] = {}
        for passive in passives.values():
            widths = {passive.name: None, **passive.models(dbu_um)}
            self._drawn.update({self.plain(name): passive for name in widths})
            self._widths.update({self.plain(name): width for name, width in widths.items()})
        for passive in passives.values():  # a model that several share stands for the first
            self._drawn[self.plain(passive.name)] = passive
        for name, target in listed.other_names.items():
            self._drawn.setdefault(self.plain(name), devices[target] if target in devices else passives[target])
        self.variants = listed.variants
        self._cells = tuple(pattern.lower() for pattern in listed.cells)
        self._undrawn: dict[str, UndrawnDevice] = {}
        self._found: dict[str, UndrawnDevice | None] = {}
        self._patterns: list[tuple[str, UndrawnDevice]] = []
        for entry in listed.undrawn:
            for name in entry.names:
                if "*" in name or "?" in name:
                    self._patterns.append((name.lower(), entry))
                else:
                    self._undrawn.setdefault(self.plain(name), entry)

    def plain(self, name: str) -> str:
        """Return what all spellings of a name have in common."""
        return _MODEL_AND_BIN.sub("", name.lower()).removeprefix(self._prefix)

    def drawn(self, name: str) -> DeviceSpec | PassiveSpec | None:
        """Return the drawn device of this name, None where no device with a drawing has it."""
        return self._drawn.get(self._without_deep_part(name))

    def in_deep_well(self, name: str) -> bool:
        """Return whether this is the name of a drawn device in a deep well."""
        return self._without_deep_part(name) != self.plain(name)

    def _without_deep_part(self, name: str) -> str:
        """Return the plain name, without what says of a drawn device that it lies in a deep well."""
        plain = self.plain(name)
        if plain in self._drawn or plain in self._undrawn or not self._deep_parts:
            return plain
        rest = "_".join(part for part in plain.split("_") if part not in self._deep_parts)
        return rest if rest in self._drawn else plain

    def fixed_width(self, name: str) -> int | None:
        """Return the width that the model of a drawn device stands for [dbu], None where it stands for any."""
        return self._widths.get(self.plain(name))

    def variant(self, name: str, parameters: Collection[str]) -> str:
        """Return the name of the device that ``name`` is with these parameters, which are not 0."""
        variants = [of for parameter, of in self.variants.items() if parameter in parameters]
        spec = self.drawn(name) if variants else None
        return name if spec is None else next((of[spec.name] for of in variants if spec.name in of), name)

    def is_cell(self, name: str) -> bool:
        """Return whether a subcircuit of this name is a finished cell of the process's libraries."""
        return any(fnmatchcase(name.lower(), pattern) for pattern in self._cells)

    def undrawn(self, name: str) -> UndrawnDevice | None:
        """Return the device of the process of this name that has no drawing, None where it is none of the process."""
        if name not in self._found:
            plain, drawn = self.plain(name), self._without_deep_part(name) in self._drawn
            alike = (entry for pattern, entry in self._patterns if _matches(pattern, name.lower(), plain))
            self._found[name] = None if drawn else self._undrawn.get(plain) or next(alike, None)
        return self._found[name]


def _matches(pattern: str, *spellings: str) -> bool:
    return any(fnmatchcase(spelling, pattern) for spelling in spellings)


def rating(supply_v: float | None, ohm_per_square: float | None, farad_per_um2: float | None) -> str:
    """Return what of these is stated, in words."""
    words = []
    if supply_v:
        words.append(f"{supply_v:g} V")
    if ohm_per_square:
        words.append(f"{ohm_per_square:g} ohm/sq")
    if farad_per_um2:
        words.append(f"{farad_per_um2 * 1e15:g} fF/um2")
    return listed(words)


def values_of(spec: DeviceSpec | PassiveSpec | UndrawnDevice) -> dict[str, float]:
    """Return the rated voltage [V], sheet resistance [ohm] or capacitance per area [F/um2] of a device, as stated."""
    found = {name: getattr(spec, name, None) for name in ("supply_v", "ohm_per_square", "farad_per_um2")}
    field = "" if isinstance(spec, UndrawnDevice) or spec.kind.file is None else spec.kind.file.value
    if field:
        found[field] = spec.value  # type: ignore[union-attr]
    return {name: value for name, value in found.items() if value}


def drawn_alternatives(names: DeviceNames, kind: str) -> list[dict[str, Any]]:
    """Return the devices of a kind that can be drawn, each with its rating, as JSON data."""
    return [{"name": spec.name, **values_of(spec)} for spec in names.specs if spec.type == kind]


def refusal(technology: str, names: DeviceNames, users: Mapping[str, Sequence[str]]) -> UnsupportedOperationError:
    """Return the error that refuses devices of the process without a drawing, all at once.

    Args:
        technology: Name of the process.
        names: Its devices.
        users: Model name -> ids of the devices of that model.
    """
    entries = {model: names.undrawn(model) for model in sorted(users)}
    found = {model: entry for model, entry in entries.items() if entry is not None}
    shown = "; ".join(
        f"{model} ({', '.join(users[model][:5])}{' and more' if len(users[model]) > 5 else ''}): "
        + ", ".join(part for part in (entry.rating, entry.reason) if part)
        for model, entry in list(found.items())[:_SHOWN]
    )
    more = f"; and {len(found) - _SHOWN} more models" if len(found) > _SHOWN else ""
    kinds = list(dict.fromkeys(entry.type for entry in found.values()))
    drawn = {kind: drawn_alternatives(names, kind) for kind in kinds}
    instead = "; ".join(f"{kind}: {_listed(found_here)}" for kind, found_here in drawn.items() if found_here)
    nothing = [kind for kind in kinds if not drawn[kind]]
    cures = [
        f"it draws {instead}; to replace a device on purpose, name both in device_map, such as {_example(found, drawn)}"
        if instead
        else "",
        f"it draws no {', no '.join(noun_of(kind) for kind in nothing)}; an undefined subcircuit may be left out with "
        "black_boxes"
        if nothing
        else "",
    ]
    return UnsupportedOperationError(
        f"{technology} has no drawing of these devices of the process: {shown}{more}. "
        + ". ".join(cure[0].upper() + cure[1:] for cure in cures if cure),
        details={
            "param_name": "device_map",
            "technology": technology,
            "undrawn": {
                model: {
                    "type": entry.type,
                    "devices": list(users[model]),
                    "reason": entry.reason,
                    **values_of(entry),
                }
                for model, entry in found.items()
            },
            "drawn": drawn,
        },
    )


def _listed(found: Sequence[Mapping[str, Any]]) -> str:
    words = []
    for entry in found:
        stated = rating(*(entry.get(name) for name in ("supply_v", "ohm_per_square", "farad_per_um2")))
        words.append(f"{entry['name']} ({stated})" if stated else str(entry["name"]))
    return listed(words)


def _example(found: Mapping[str, UndrawnDevice], drawn: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    model, entry = next((model, entry) for model, entry in found.items() if drawn[entry.type])
    enough = (each for each in drawn[entry.type] if each.get("supply_v", 0) >= (entry.supply_v or 0))
    return f'{{"{model}": "{next(enough, drawn[entry.type][0])["name"]}"}}'


def noun_of(kind: str) -> str:
    """Return what messages call a device of a kind, or of none, where nouns of several kinds are the same."""
    alike = [each for each in KINDS.values() if kind in KINDS and each.noun == KINDS[kind].noun]
    return kind if len(alike) > 1 else KINDS[kind].noun if alike else "such device"


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
        raise TechnologyError(f"card '{text}': {'; '.join(faults)}; an example is {_example_value(kind)}")
    return CardForm(letter, terminals, name.replace("{model}", model), params, lengths)


def _example_value(kind: str) -> str:
    return f"'X {' '.join(KINDS[kind].all_terminals)} {{model}} w={{w}} l={{l}} m={{m}}'"


def read_forms(data: Mapping[str, Any]) -> dict[str, dict[str, CardForm]]:
    """Return form name -> device name -> card, from a whole technology file without faults."""
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
    for name in [name for name, kind in kinds.items() if name not in cards and kind not in cards]:
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
