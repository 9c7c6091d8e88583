"""The objectives of a search: their names, their values in the report of a layout, and the front of the layouts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError, did_you_mean, sentences
from layoutkit.flow.measured_matching import largest_offset
from layoutkit.view.comparison import value_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CAPACITANCE, POST_LAYOUT, CHANGE = "capacitance", "post_layout", "post_layout_change"
REVIEW = ("review_must", "review_should")
OF_A_NAME = {
    CAPACITANCE: ("fF", "capacitance of the wires of net {}", "NET"),
    POST_LAYOUT: ("", "{} as simulated with the parasitics of the layout, in its own unit", "MEASUREMENT"),
    CHANGE: (
        "",
        "change of {} from netlist to layout, either way, in %; in its own unit for dB and offsets",
        "MEASUREMENT",
    ),
}
"""Objectives that are followed by a name, such as that of a net: unit, meaning, and what the name is."""
_FORM = re.compile(r"(?:(min|max) )?([a-z_]+)(?: (\S+))?")


@dataclass(frozen=True)
class Objective:
    """One figure that a search minimises or maximises.

    Attributes:
        name: As the request gives it, without its goal, such as ``area`` or ``capacitance out``.
        unit: Of its values.
        largest: Whether the largest value is the best.
        text: What it is.
    """

    name: str
    unit: str
    largest: bool
    text: str

    def named(self, *words: str) -> str:
        """Return what the objective is of, such as the net of a capacitance, if its first word is one of ``words``."""
        word, _, name = self.name.partition(" ")
        return name if word in words else ""

    def cost(self, figures: Mapping[str, float | None]) -> float | None:
        """Return the value, the smaller the better; None if the layout has none."""
        value = figures.get(self.name)
        return None if value is None else -value if self.largest else value

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {"name": self.name, "unit": self.unit, "goal": "max" if self.largest else "min", "text": self.text}


_OFFSET_DIGITS = 3
"""Digits of predicted offsets [mV] and mirror errors [%]; a smaller difference is no property of the layouts."""


def _offset(report: Mapping[str, Any], unit: str) -> float | None:
    largest = largest_offset(report["matching"]["groups"], unit)
    return None if largest is None else round(largest, _OFFSET_DIGITS)


def _symmetry_error(report: Mapping[str, Any]) -> float | None:
    pairs = [each["mirror_error"] for each in report["routing"]["mirrored"] if len(each["nets"]) > 1]
    errors = [*pairs, *(each["symmetry_error"] for each in report["metrics"]["matching_metrics"])]
    return round(max(errors), 6) if errors else None


FIGURES = {
    "area": ("um2", "area of the box around the layout", "metrics.metrics.total_area"),
    "wire_length": ("um", "length of all wires", "routing.total_wire_length"),
    "vias": ("", "vias of the router", "routing.via_count"),
    "aspect": ("", "longer over shorter side", "placement.aspect"),
    "symmetry_error": (
        "", "worst symmetric pair of nets or matched devices: area that its mirror image does not cover", ""
    ),
    "offset": ("mV", "largest predicted systematic offset of a pair, of what is modelled", ""),
    "review_must": ("", "findings of the design review that must be mended", "review.must"),
    "review_should": ("", "findings of the design review that are worth mending", "review.should"),
    "mirror_error": ("%", "largest predicted systematic error of a mirror, of what is modelled", ""),
}  # fmt: skip
"""Name to unit, meaning, and where it is in the report of a build; empty where ``figures_of`` computes it."""


def figures_of(report: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the figures in the report of a build, None for those that it does not have."""
    found = {name: value_at(report, path) for name, (_, _, path) in FIGURES.items()}
    computed = {"offset": _offset(report, "mV"), "mirror_error": _offset(report, "%")}
    return found | computed | {"symmetry_error": _symmetry_error(report)}


def objectives_of(texts: Sequence[str]) -> tuple[Objective, ...]:
    """Return the objectives that ``area``, ``min capacitance out`` or ``max aspect`` state.

    Raises:
        LayoutkitError: If there is none, or one is unknown; the details list every fault.
    """
    found: dict[str, Objective] = {}
    faults = [] if texts else ["give at least one objective"]
    for text in texts:
        form = _FORM.fullmatch(text)
        goal, word, of = form.groups() if form else (None, text, None)
        if word in OF_A_NAME and of:
            unit, meaning = OF_A_NAME[word][0], OF_A_NAME[word][1].format(of)
        elif word in FIGURES and not of:
            unit, meaning = FIGURES[word][:2]
        else:
            known = [*FIGURES, *(f"{each} {what}" for each, (_, _, what) in OF_A_NAME.items())]
            faults.append(f"unknown objective {text!r}{did_you_mean(word, known)}; allowed: {', '.join(known)}")
            continue
        name = f"{word} {of}" if of else word
        if name in found:
            faults.append(f"{name} is stated twice")
        found[name] = Objective(name, unit, goal == "max", meaning)
    if faults:
        raise LayoutkitError(sentences(faults), details={"param_name": "objectives", "errors": faults})
    return tuple(found.values())


def front_of(costs: Mapping[int, Sequence[float]]) -> tuple[list[int], dict[int, int]]:
    """Return which entries no other one beats, and for each of the others one of those that beat or equal it.

    One entry beats another if it is nowhere worse and somewhere better. Of equal ones the first is kept.

    Args:
        costs: By number; the smaller, the better, in each place.
    """
    best: list[int] = []
    beaten: dict[int, int] = {}
    for number in sorted(costs, key=lambda each: (tuple(costs[each]), each)):
        # in this order, whatever beats an entry comes before it
        by = next((each for each in best if _at_most(costs[each], costs[number])), None)
        if by is None:
            best.append(number)
        else:
            beaten[number] = by
    return sorted(best), beaten


def _at_most(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))
