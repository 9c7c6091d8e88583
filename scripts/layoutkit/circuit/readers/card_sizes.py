"""The sizes of a card in SI units: which of its parameters are understood, and which a layout does without.

A parameter is understood, without effect on a layout (``_WITHOUT_EFFECT``), or left out with a warning that names it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from layoutkit.circuit.bipolar_map import SMALLEST_FACTOR
from layoutkit.circuit.circuit import INTEGER_PARAMS, JUNCTIONS
from layoutkit.circuit.passive_map import sides_of
from layoutkit.circuit.readers.spice_expressions import OpenParametersError, Scope
from layoutkit.errors import MAX_NAME, NetlistError
from layoutkit.technology.device_kinds import BLOCKS, KINDS, OTHER_LENGTHS
from layoutkit.technology.finger_widths import MAX_COUNT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from layoutkit.circuit.circuit import Device
    from layoutkit.circuit.readers.spice_cards import Card
    from layoutkit.circuit.replaced_devices import ModelNames
    from layoutkit.errors import Findings
    from layoutkit.technology.device_kinds import DeviceKind

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

_MULTIPLIERS = ("m", "mult", "multi", "multiplier")
_FINGERS = ("nf", "ng", "nfing", "nfinger", "nfingers", "fingers")
_ALIASES = {"wr": "w", "lr": "l", "c_width": "w", "c_length": "l", "r_width": "w", "r_length": "l"}
_ALIASES |= {"we": "w", "le": "l", "res": "r", "cap": "c"}  # of an emitter; the values of ideal passives
_ALIASES |= {name: each.name for each in KINDS["nmos"].parameters if each.name in BLOCKS for name in each.spellings}
_LENGTHS = ("w", "l", *OTHER_LENGTHS)
# A terminal is not longer than this; a larger area or perimeter was not written in metres.
LONGEST_JUNCTION_M = 1e-4
# Stress distances and operating conditions follow from the drawn layout or do not concern it; so do the squares of
# source and drain, which extraction does not state, so that a comparison would take them for an effect of the layout.
# Temperatures, noise, statistics and switches of the model belong to the simulation; places to the schematic.
_WITHOUT_EFFECT = re.compile(
    r"[ap][ds]|nr[ds]|s[abcd]\d*|sw\d+|sc[abc]|s[abp]\w*eff|sp[ab]a?\d*|sap[ab]?|ld[bst]\w*"  # junctions, stress
    r"|ic|off|temp|dtemp|trise|tc[12]|noisy|noise|noisemod|mismatch\w*|mis\w*flag|mm_?ok|mc_?ok|sw_\w+|degradation"
    r"|rgeo(?:mod)?|geo(?:mod)?|rb(?:db|sb|pb|ps|pd)|trnqsmod|acnqsmod|rbodymod|rgatemod|min|ngcon|xgw|lod\w*|dfm\w*"
    r"|x|y|d|model|sub|region|topography|mosflag|lvs\w*|tt|version|_ar0|shape|par1"
)
_OF_BIPOLARS = re.compile(r"[ap][bc]|selft|bn")
"""Base and collector of a bipolar transistor are drawn around its emitter."""
_OF_PASSIVES = {"resistor": ("b", "s", "series"), "capacitor": ("series",), "mos_capacitor": ("series",)}
"""Kind to the parameters that ``passive_map`` reads besides those of the kind's declaration."""
_MAY_BE_ZERO = frozenset({"b", "area", "a", "perimeter", "p", "pj", "perim", *BLOCKS})
UNKNOWN_SIZES = (
    "parameters are not defined, so the sizes that use them are unknown; equal expressions count as equal sizes; set "
    "values with 'parameters'"
)
OWN_SIZES = "every transistor has parameters of its own for this size, which is taken to be equal for all of them"
NOT_UNDERSTOOD = "parameters that are not understood are left out; see that none of them changes the device"


class SizeReader:
    """Evaluates the parameters of cards by the stated unit policy.

    Args:
        scale: Factor of ``.option scale``, which simulators apply to all lengths, also those with a unit.
        findings: Receives a warning for every decision.
        names: What the names of models mean, and in which unit their process states lengths.
        keep_unknown: Whether a size that depends on undefined parameters is only told, and gets a stand-in: equal
            expressions get equal ones, others different ones.
    """

    def __init__(self, scale: float, findings: Findings, names: ModelNames, *, keep_unknown: bool = False) -> None:
        self.unknown: list[str] = []
        """The parameters of the last card that have stand-ins."""
        self._keep_unknown = keep_unknown
        self._stand_ins: dict[tuple[object, ...], float] = {}
        self._users: dict[tuple[str, str], set[tuple[object, ...]]] = defaultdict(set)  # of parameters, by size
        self._card = ""
        self._undefined: set[str] = set()
        self._scale = scale
        self._names = names
        self._model = ""
        self._findings = findings
        self._missing: list[str] = []
        self._any_sign = {"r"}

    def params(self, card: Card, device_id: str, scope: Scope) -> dict[str, float]:
        """Return the evaluated parameters of a card.

        Raises:
            OpenParametersError: If they use parameters that are not defined; the error names all of them.
            NetlistError: If a parameter that is drawn has no value or an impossible one.
        """
        self._missing, self.unknown = [], []
        self._model = card.model
        self._card = card.where if KINDS[card.kind].is_mos else ""
        # Layout extractors write capacitances below 0, which ``without_parasitics`` leaves out.
        self._any_sign = {"r", "c"} if card.model == "capacitor" else {"r"}
        local = Scope(scope, fallback=card.params)
        kind = KINDS[card.kind]
        texts = {_ALIASES.get(key, key): text for key, text in card.params.items()}
        units = kind.parameter("m")
        spelled = [] if units is None else [key for key in units.spellings if key in texts]
        result = {
            key: value
            for key, text in texts.items()
            if key not in spelled and (value := self._value(key, text, card, local, device_id)) is not None
        }
        if kind.is_mos:
            result["nf"] = self._fingers(card, result, local, device_id)
        elif kind.rectangle:
            result = self._with_sides(kind, result, device_id)
        result["m"] = self._multiplier(texts, local, device_id)
        for key in spelled:
            more = self._number(key, texts[key], local, device_id, whole=True)
            result["m"] = self._all_units(card, device_id, result["m"], key, more)
        if self._missing:
            raise OpenParametersError(self._missing)
        return result

    def _value(self, key: str, text: str, card: Card, scope: Scope, device_id: str) -> float | None:
        """Return the value of a parameter; None of a number of units and of what is not understood."""
        kind = KINDS[card.kind]
        if key in _MULTIPLIERS:
            return None
        if card.kind in ("tap", "inductor"):
            return self._if_numeric(key, text, scope)
        sizes = {"w", "l", "nfin", "stack", *_OF_PASSIVES.get(card.kind, ())}
        if key in sizes or kind.parameter(key) is not None or key == kind.value:
            return self._number(key, text, scope, device_id)
        if not self._is_known(key, card, scope):
            self._findings.warn(NOT_UNDERSTOOD, f"{key}={text[:MAX_NAME]} ({device_id})")
        return None

    @staticmethod
    def _all_units(card: Card, device_id: str, m: float, key: str, more: float) -> float:
        """Return the units that ``m`` and another name of it state together."""
        if card.name[0] in "xX" and key != "mf":  # units within a subcircuit, which m repeats
            return m * more
        if 1 not in (m, more) and m != more:  # LVS decks and symbols have both names for one number
            raise NetlistError(
                f"'{device_id}': m={m:g} and {key}={more:g} state two numbers of units; state one of them"
            )
        return max(m, more)

    def _is_known(self, key: str, card: Card, scope: Scope) -> bool:
        """Whether a parameter that is not a size of the device changes nothing in a layout."""
        kind = KINDS[card.kind]
        if _WITHOUT_EFFECT.fullmatch(key) or self._names.is_variant(key):
            return True
        if kind.is_mos:
            return key in _FINGERS or (key == "nr" and "wr" in card.params)
        if kind.area_counts or kind.in_cells:
            return _OF_BIPOLARS.fullmatch(key) is not None
        try:
            return key in _FINGERS and scope.value(card.params[key]) == 1
        except NetlistError:
            return False

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
        if not self._names.in_micrometres(self._model):
            self._findings.warn("areas and perimeters of impossible size are read in micrometres", device_id)
        once_more = scaled >= LARGEST_RECTANGLE_UM**power
        return scaled * 10.0 ** (-6 * power * (2 if once_more else 1))

    def _number(self, key: str, text: str, scope: Scope, device_id: str, *, whole: bool = False) -> float:
        try:
            value = scope.value(text)
        except OpenParametersError as error:
            if self._keep_unknown:
                return self._stand_in(key, text, error, whole=whole or key in INTEGER_PARAMS)
            self._missing.extend(error.names)
            return 1.0  # never used: the card is refused when all of its parameters have been looked at
        except NetlistError as error:
            raise NetlistError(f"'{device_id}': {key}: {error}") from None
        if key in _LENGTHS:
            value = self._metres(value, device_id, key, text)
        if value < 0 and key in _MAY_BE_ZERO:
            raise NetlistError(f"'{device_id}': {key} must not be negative, got {value:g}")
        if value <= 0 and key not in {*self._any_sign, *_MAY_BE_ZERO}:
            raise NetlistError(f"'{device_id}': {key} must be positive, got {value:g}")
        if whole or key in INTEGER_PARAMS:
            if value > MAX_COUNT or abs(value - round(value)) > 1e-9 * value:
                raise NetlistError(f"'{device_id}': {key} must be an integer from 1 to {MAX_COUNT}, got {value:g}")
            return round(value)
        return value

    def _stand_in(self, key: str, text: str, error: OpenParametersError, *, whole: bool) -> float:
        for name in error.names:
            if name not in self._undefined:
                self._undefined.add(name)
                self._findings.warn(UNKNOWN_SIZES, name)
        self.unknown.append(key)
        if whole:
            return 1
        expression = (text, error.names, error.at_one)
        for name in error.names if self._card and key in _LENGTHS else ():
            self._users[key, name].add((self._card, expression))
        number = self._stand_ins.setdefault(expression, 1 + len(self._stand_ins) / 16)
        return number * 1e-6 if key in _LENGTHS else number

    def without_own_sizes(self, devices: Iterable[Device]) -> list[Device]:
        """Return the devices, with one stand-in for all where each transistor has parameters of its own for a size.

        Such parameters, as an optimizer wants them, say nothing about which sizes are equal.
        """
        own = {
            key
            for key in _LENGTHS
            if len(users := [places for (size, _), places in self._users.items() if size == key]) > 1
            and all(len(places) == 1 for places in users)
        }
        for key in sorted(own):
            self._findings.warn(OWN_SIZES, key)
        return [
            replace(each, params={**each.params, **dict.fromkeys(own & {*each.unknown}, 1e-6)}) if each.is_mos else each
            for each in devices
        ]

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
        if not self._names.in_micrometres(self._model):
            self._findings.warn(
                "w and l of 10 mm and more are read as micrometres, since no device is that large", device_id
            )
        number = repr(metres)
        return float(f"{number}e-6") if "e" not in number else metres * 1e-6

    def _if_numeric(self, key: str, text: str, scope: Scope) -> float | None:
        try:
            return scope.value(text)
        except NetlistError:
            self._findings.warn("parameters without a numeric value are left out", key)
            return None

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
