"""From one card to a device: its type, its nodes and its sizes in SI units."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from layoutkit.circuit.bipolar_map import SMALLEST_FACTOR
from layoutkit.circuit.circuit import INTEGER_PARAMS, JUNCTIONS
from layoutkit.circuit.passive_map import sides_of
from layoutkit.circuit.readers.findings import shown_words
from layoutkit.circuit.readers.model_names import classify_model
from layoutkit.circuit.readers.parameters import OpenParametersError, Scope
from layoutkit.circuit.readers.spice_expressions import parse_number
from layoutkit.circuit.replaced_devices import ModelNames, undrawn_in_any_process
from layoutkit.errors import NetlistError
from layoutkit.technology.device_kinds import KINDS, MOS_KINDS
from layoutkit.technology.size_limits import MAX_FINGERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit.readers.findings import Findings
    from layoutkit.circuit.readers.spice_deck import Subcircuit
    from layoutkit.circuit.readers.spice_lines import Statement
    from layoutkit.technology.device_kinds import DeviceKind

SOURCE = "source"
UNKNOWN = "unknown"
UNDRAWN = "undrawn"

# No device is as large as 10 mm or as small as 0.01 um, so a number of 0.01 and more without a unit is in micrometres.
# So is one of 0.1 m and more with a unit: cells of sky130 state 650000u, which their library scales by 1e-6 once more.
LARGEST_SIZE_M = 1e-2
LEAST_SCALED_M = 0.1
SMALLEST_SIZE_M = 1e-9
_PLAIN = re.compile(r"[\d.]+(e\+?\d+)?", re.IGNORECASE)
_IN_MILLIMETRES = re.compile(r"[\d.]+m(?:m|eters?|etres?)?", re.IGNORECASE)
LARGEST_RECTANGLE_M = {1: 0.1, 2: 1e-6}
"""Largest perimeter [m] and area [m2] by their power of a length; one in micrometres is never that small."""
LARGEST_RECTANGLE_UM = 1e4


_IDEAL_NODES = {**dict.fromkeys("viefghbsw", 2), "t": 4, "o": 4, "u": 3, "y": 4, "k": 0}
"""First letter of an ideal element's card to its nodes that carry current: sources, switches, lines, couplings."""
_IDEAL_TYPES = (
    "vsource isource vcvs vccs cccs ccvs pvcvs pvccs pcccs pccvs bsource iprobe port vdc idc vpulse ipulse vsin isin "
    "vpwl ipwl vexp iexp psin switch relay tline mtline delay mutual_inductor transformer"
)
_IDEAL_MASTERS = frozenset(_IDEAL_TYPES.split())
_BY_LETTER: dict[str, tuple[str, ...]] = {}  # kinds whose cards begin with a letter
for _name, _kind in KINDS.items():
    if _kind.letter != "X":
        _BY_LETTER[_kind.letter.lower()] = (*_BY_LETTER.get(_kind.letter.lower(), ()), _name)
_MULTIPLIERS = ("m", "mult", "multi", "multiplier")
_FINGERS = ("nf", "ng", "nfing", "nfinger", "nfingers", "fingers")
_ALIASES = {"wr": "w", "lr": "l", "c_width": "w", "c_length": "l", "r_width": "w", "r_length": "l"}
_LENGTHS = ("w", "l")
# A terminal is not longer than this; a larger area or perimeter was not written in metres.
LONGEST_JUNCTION_M = 1e-4
# Stress distances and operating conditions follow from the drawn layout or do not concern it; so do the squares of
# source and drain, which extraction does not state, so that a comparison would take them for an effect of the layout.
_NOT_DRAWN = frozenset({*JUNCTIONS, "nrd", "nrs", "sa", "sb", "sd", "ic", "off", "temp", "dtemp", "tc1", "tc2"})
_NOT_DRAWN |= {"x", "y", "d", "model", "sub", "region", "geo", "rgeo", "sca", "scb", "scc", "mismatch"}


@dataclass(frozen=True)
class Card:
    """One card's meaning before its parameters are evaluated.

    ``kind`` is a device type, ``source`` (drawn by nobody), ``unknown`` (an undefined subcircuit) or ``undrawn`` (a
    device of the process without a drawing).
    """

    name: str
    kind: str
    model: str
    nodes: tuple[str, ...]
    params: dict[str, str]
    where: str


def read_card(statement: Statement, definition: Subcircuit, scope: Scope, names: ModelNames | None = None) -> Card:
    """Return what a card that is not a subcircuit instance describes.

    Args:
        statement: The card.
        definition: The subcircuit that holds it.
        scope: The parameters there.
        names: What the names of models mean in the process at hand.

    Raises:
        NetlistError: If the card has the wrong number of nodes or its type is unknown.
    """
    words = list(statement.words)
    name, letter = words[0], words[0][0].lower()
    known = _Kinds(definition, names or ModelNames())
    words = known.with_variant(words, statement.params)
    undrawn = known.undrawn(words, statement.params)
    if undrawn:
        return Card(name, UNDRAWN, undrawn, tuple(words[1:-1]), {}, statement.where)
    spectre_type = _spectre_type(words, known) if definition.spectre else None
    if spectre_type is not None:
        kind, model, nodes, params = spectre_type, words[-1], words[1:-1], dict(statement.params)
    elif letter in _BY_LETTER:
        kinds = _BY_LETTER[letter]
        if KINDS[kinds[0]].is_mos:
            kind, model, nodes, params = _mos(words, statement, known)
        elif KINDS[kinds[0]].value:
            kind, model, nodes, params = _passive(words, statement, scope, known)
        else:
            kind, model, nodes, params = _junction(words, statement, known)
    elif letter == "x" or definition.spectre:
        if len(words) < 2:
            raise NetlistError(f"'{name}' names no subcircuit")
        model, nodes, params = words[-1], words[1:-1], dict(statement.params)
        kind = known.of(model) or UNKNOWN
    elif letter in _IDEAL_NODES:
        kind, model, nodes, params = SOURCE, "", words[1 : 1 + _IDEAL_NODES[letter]], {}
    else:
        raise NetlistError(f"'{name}': cards of type '{name[0].upper()}' are not supported")
    if kind in KINDS:
        _check_nodes(name, kind, model, nodes)
    return Card(name, kind, model, tuple(nodes), params, statement.where)


class _Kinds:
    """Finds the kinds of the models that cards of one subcircuit name."""

    def __init__(self, definition: Subcircuit, names: ModelNames) -> None:
        self._definition = definition
        self._names = names

    def of(self, model: str, *, on_mos_card: bool = False) -> str | None:
        """Return the kind of a model: as the process has it, else as a model card or its name states it."""
        listed, stated = self._names.kind(model), self._definition.model_type(model)
        if {listed, stated} in ({"nmos", "pmos"}, {"npn", "pnp"}):
            raise NetlistError(f"the .model card of {model} makes it a {stated}, and the process has it as a {listed}")
        return listed or stated or classify_model(model, on_mos_card=on_mos_card) or self._names.target_kind(model)

    def undrawn(self, words: list[str], params: Mapping[str, str]) -> str:
        """Return the model of a card if the process has it without a drawing; else nothing."""
        place = self._place(words)
        model = params.get("model", words[place] if place else "")
        return model if self._names.refuses(model) else ""

    def with_variant(self, words: list[str], params: Mapping[str, str]) -> list[str]:
        """Return the words of a card with the name of the device that its parameters make of the model's."""
        place, given = self._place(words), [name for name, text in params.items() if parse_number(text) != 0]
        if not place or (model := self._names.variant(words[place], given)) == words[place]:
            return words
        return [*words[:place], model, *words[place + 1 :]]

    def _place(self, words: list[str]) -> int:
        """Return where a card names its model: its last word that is no number; 0 where none can be a model."""
        first = 2 if words[0][0] in "xX" or self._definition.spectre else 3
        places = (place for place in range(len(words) - 1, first - 1, -1) if words[place][0] != "'")
        return next((place for place in places if parse_number(words[place]) is None), 0)


def _spectre_type(words: list[str], known: _Kinds) -> str | None:
    """Return the type of a Spectre instance, which its master names and its own first letter does not."""
    if len(words) < 2:
        return None
    master = words[-1].lower()
    if master in _IDEAL_MASTERS:
        return SOURCE
    if len(words) < 3:
        return None
    on_mos_card = words[0][0] in "mM" and len(words) == 6
    return known.of(master, on_mos_card=on_mos_card)


def _split_trailing_numbers(words: list[str], keep: int) -> tuple[list[str], list[str]]:
    end = len(words)
    while end > keep and parse_number(words[end - 1]) is not None:
        end -= 1
    return words[:end], words[end:]


def _mos(words: list[str], statement: Statement, known: _Kinds) -> tuple[str, str, list[str], dict[str, str]]:
    words = [word for word in words if word.lower() != "off"]
    params = dict(statement.params)
    if len(words) == 5 and "model" in params:
        words = [*words, params["model"]]
    words, sizes = _split_trailing_numbers(words, keep=6)
    params = {**dict(zip(("l", "w"), sizes, strict=False)), **params}
    if len(words) != 6:
        raise NetlistError(
            f"'{words[0]}' has {max(0, len(words) - 2)} nodes; a MOS transistor needs drain, gate, source and bulk, "
            "then the model name"
        )
    model = words[5]
    kind = known.of(model, on_mos_card=True)
    if kind not in MOS_KINDS:
        raise NetlistError(f"'{words[0]}': it is unknown whether model '{model}' is nmos or pmos; add a .model card")
    return kind, model, words[1:5], params


def _passive(
    words: list[str], statement: Statement, scope: Scope, known: _Kinds
) -> tuple[str, str, list[str], dict[str, str]]:
    kinds = _BY_LETTER[words[0][0].lower()]
    kind = next(each for each in kinds if KINDS[each].model_cards)
    params = dict(statement.params)
    model = params.get("model", "")
    nodes, rest = words[1:3], words[3:]
    values = [word for word in rest if _has_value(word, scope)]
    valued = frozenset(values)
    names = [word for word in rest if word not in valued]
    if len(names) > 1:  # a third node before the model name
        nodes, names = [*nodes, names[0]], names[1:]
    elif "sub" in params and len(nodes) == 2:
        nodes = [*nodes, params["sub"]]
    if len(names) > 1 or len(values) > 1:
        raise NetlistError(f"'{words[0]}' has words that are not understood: {shown_words(rest)}")
    if values:
        params.setdefault(KINDS[kind].value, values[0])
    model = names[0] if names else model or kind
    named = known.of(model)
    if named in kinds or (kind == "resistor" and named == "tap"):
        kind = str(named)
    return kind, model, nodes, params


def _has_value(word: str, scope: Scope) -> bool:
    if parse_number(word) is not None or word.startswith("'"):
        return True
    try:
        scope.lookup(word.lower())
    except KeyError:
        return False
    return True


def _junction(words: list[str], statement: Statement, known: _Kinds) -> tuple[str, str, list[str], dict[str, str]]:
    kinds = _BY_LETTER[words[0][0].lower()]
    words, sizes = _split_trailing_numbers(words, keep=len(KINDS[kinds[0]].terminals) + 2)
    stated = ("area", "perimeter") if KINDS[kinds[0]].parameter("perimeter") else ("area",)  # as HSPICE and CDL
    params = {**dict(zip(stated, sizes, strict=False)), **statement.params}
    model = words[-1]
    if len(kinds) == 1:
        return kinds[0], model, words[1:-1], params
    kind = known.of(model)
    if kind not in kinds:
        choice = " or ".join(kinds)
        raise NetlistError(f"'{words[0]}': it is unknown whether model '{model}' is {choice}; add a .model card")
    return kind, model, words[1:-1], params


def _check_nodes(name: str, kind: str, model: str, nodes: list[str]) -> None:
    needed, every = KINDS[kind].terminals, KINDS[kind].all_terminals
    if not len(needed) <= len(nodes) <= len(every):
        if (found := undrawn_in_any_process(model)) is not None:
            raise NetlistError(f"'{name}': {model} is a device of {found[0]} that has no drawing: {found[1].reason}")
        wanted = " ".join(needed) + "".join(f" [{terminal}]" for terminal in every[len(needed) :])
        other = f", unless {model} is a subcircuit, which the netlist does not define" if name[0] in "xX" else ""
        raise NetlistError(f"'{name}' ({kind} {model}) has {len(nodes)} nodes; it needs {wanted}{other}")
    if any(node.startswith("'") for node in nodes):
        raise NetlistError(f"'{name}' has an expression where a node is needed")


class SizeReader:
    """Evaluates the parameters of cards by the stated unit policy.

    Args:
        scale: Factor of ``.option scale``, which simulators apply to all lengths, also those with a unit.
        findings: Receives a warning for every decision.
    """

    def __init__(self, scale: float, findings: Findings) -> None:
        self._scale = scale
        self._findings = findings
        self._missing: list[str] = []
        self._any_sign = {"r"}

    def params(self, card: Card, device_id: str, scope: Scope) -> dict[str, float]:
        """Return the evaluated parameters of a card.

        Raises:
            OpenParametersError: If they use parameters that are not defined; the error names all of them.
            NetlistError: If a parameter that is drawn has no value or an impossible one.
        """
        self._missing = []
        # Layout extractors write capacitances below 0, which ``without_parasitics`` leaves out.
        self._any_sign = {"r", "c"} if card.model == "capacitor" else {"r"}
        local = Scope(scope, fallback=card.params)
        kind = KINDS[card.kind]
        texts = {_ALIASES.get(key, key): text for key, text in card.params.items() if key not in _NOT_DRAWN}
        if card.kind == "resistor" and card.name[0] in "rR" and "m" not in texts and "par" in texts:
            texts["m"] = texts.pop("par")  # units in parallel, as the LVS deck of gf180mcu reads R cards
        result: dict[str, float] = {}
        for key, text in texts.items():
            if key in {"w", "l", "nfin", "stack", kind.value or None}:
                result[key] = self._number(key, text, local, device_id)
            elif key not in {*_MULTIPLIERS, *_FINGERS} and not kind.is_mos:
                self._add_if_numeric(result, key, text, local)
        if kind.is_mos:
            result["nf"] = self._fingers(card, result, local, device_id)
        elif kind.rectangle:
            result = self._with_sides(kind, result, device_id)
        result["m"] = self._multiplier(texts, local, device_id)
        for key in texts.keys() & set(() if (units := kind.parameter("m")) is None else units.spellings):
            result["m"] *= self._number("m", texts[key], local, device_id)  # units within a subcircuit, which m repeats
            result.pop(key, None)
        if self._missing:
            raise OpenParametersError(self._missing)
        return result

    def junctions(self, card: Card, device_id: str, scope: Scope, size: Mapping[str, float]) -> dict[str, float]:
        """Return the areas [m2] and perimeters [m] of drain and source that a MOS transistor's card states.

        One that has no value, or an impossible one beside the size of the device, is left out with a warning.
        """
        local = Scope(scope, fallback=card.params)
        found: dict[str, float] = {}
        for key in JUNCTIONS if KINDS[card.kind].is_mos else ():
            if key not in card.params:
                continue
            power = 2 if key in ("ad", "as") else 1
            try:
                value = self._si_unit(local.value(card.params[key]), power, device_id)
            except NetlistError:
                value = -1.0
            edge = size.get("w", LONGEST_JUNCTION_M)
            largest = edge * LONGEST_JUNCTION_M if power == 2 else 2 * (edge + size["nf"] * LONGEST_JUNCTION_M)
            if 0 <= value <= largest:
                found[key] = value
            else:
                self._findings.warn(
                    "ad, as, pd and ps whose values are not understood are left out", f"{device_id} {key}"
                )
        return found

    def _with_sides(self, kind: DeviceKind, stated: dict[str, float], device_id: str) -> dict[str, float]:
        """Return the parameters with an area and a perimeter in metres, or with ``w`` and ``l`` instead of them.

        A kind that LVS compares by its area keeps what the netlist states, and an area factor as it is.
        """
        names = {parameter.name: key for key in stated if (parameter := kind.parameter(key)) is not None}
        keeps = "area" in kind.compared
        if kind.area_counts and stated.get(names.get("area", ""), 0) >= SMALLEST_FACTOR:
            return {
                **{key: value for key, value in stated.items() if key != names["area"]},
                "area": stated[names["area"]],
            }
        if "area" not in names or not ("perimeter" in names or keeps):
            return stated
        result = {key: value for key, value in stated.items() if key not in (names["area"], names.get("perimeter"))}
        powers = {"area": 2, "perimeter": 1}
        found = {name: self._si_unit(stated[names[name]], powers[name], device_id) for name in powers if name in names}
        return {**result, **found} if keeps else {**sides_of(found["area"], found["perimeter"], device_id), **result}

    def _si_unit(self, value: float, power: int, device_id: str) -> float:
        """Return a perimeter (power 1) or an area (power 2) in metres, which may be stated in one of three units.

        Libraries with ``.option scale=1u`` take plain micrometres, or micrometres divided by the scale once more.
        """
        scaled = value * self._scale**power
        if scaled < LARGEST_RECTANGLE_M[power]:
            return scaled
        self._findings.warn("areas and perimeters of impossible size are read in micrometres", device_id)
        once_more = scaled >= LARGEST_RECTANGLE_UM**power
        return scaled * 10.0 ** (-6 * power * (2 if once_more else 1))

    def _number(self, key: str, text: str, scope: Scope, device_id: str) -> float:
        try:
            value = scope.value(text)
        except OpenParametersError as error:
            self._missing.extend(error.names)
            return 1.0  # never used: the card is refused when all of its parameters have been looked at
        except NetlistError as error:
            raise NetlistError(f"'{device_id}': {key}: {error}") from None
        if key in _LENGTHS:
            value = self._metres(value, device_id, key, text)
        if value <= 0 and key not in self._any_sign:
            raise NetlistError(f"'{device_id}': {key} must be positive, got {value:g}")
        if key in INTEGER_PARAMS:
            if value > MAX_FINGERS or abs(value - round(value)) > 1e-9 * value:
                raise NetlistError(f"'{device_id}': {key} must be an integer from 1 to {MAX_FINGERS}, got {value:g}")
            return round(value)
        return value

    def _metres(self, value: float, device_id: str, key: str, text: str) -> float:
        """Return a width or length in metres, as its unit or its size says.

        Raises:
            NetlistError: If no device has this size, or the number may be meant in metres or in micrometres.
        """
        metres, stated = value * self._scale, f"'{device_id}': {key}={text}"
        if 0 < metres < SMALLEST_SIZE_M <= value < LARGEST_SIZE_M:
            self._findings.warn(
                "w and l that the scale of the file makes impossibly small are read without it", device_id
            )
            return value
        if 0 < metres < SMALLEST_SIZE_M:
            raise NetlistError(f"{stated} is {metres:g} m, and no device is that small")
        in_millimetres = _IN_MILLIMETRES.fullmatch(text) is not None and self._scale == 1
        if metres < LARGEST_SIZE_M:
            if in_millimetres and metres >= LARGEST_SIZE_M / 10:
                self._findings.warn("w and l of 1 mm and more are read as stated; u is micrometres", device_id)
            return metres
        if in_millimetres:
            raise NetlistError(f"{stated} is in millimetres, and no device is that large; u is micrometres")
        if metres < LEAST_SCALED_M and (self._scale != 1 or not _PLAIN.fullmatch(text)):
            raise NetlistError(
                f"{stated} is {metres * 1e3:g} mm, and no device is that large; state parallel units with m "
                f"({metres:g} um is written {metres:g}u)"
            )
        self._findings.warn(
            "w and l of 10 mm and more are read as micrometres, since no device is that large", device_id
        )
        number = repr(metres)
        return float(f"{number}e-6") if "e" not in number else metres * 1e-6

    def _add_if_numeric(self, result: dict[str, float], key: str, text: str, scope: Scope) -> None:
        try:
            result[key] = scope.value(text)
        except NetlistError:
            self._findings.warn("parameters without a numeric value are left out", key)

    def _fingers(self, card: Card, result: dict[str, float], scope: Scope, device_id: str) -> float:
        if "w" in result and "wr" in card.params and "nr" in card.params:
            # RF transistors give the width of one finger (wr) and their number (nr).
            fingers = self._number("nf", card.params["nr"], scope, device_id)
            result["w"] *= fingers
            return fingers
        key = next((key for key in _FINGERS if key in card.params), None)
        return 1 if key is None else self._number("nf", card.params[key], scope, device_id)

    def _multiplier(self, texts: dict[str, str], scope: Scope, device_id: str) -> float:
        given = {key: self._number("m", texts[key], scope, device_id) for key in _MULTIPLIERS if key in texts}
        if len(set(given.values())) > 1:
            self._findings.warn("where m and mult or multi differ, the first of them is the multiplier", device_id)
        return next(iter(given.values()), 1)
