"""Rule kinds about a whole chip: how much of it a layer covers, and how much metal charges a gate."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.drc.kind_register import Case, MeasuredNumber, rule_kind
from layoutkit.drc.regions import EtchedNets, Stage, carrier, sizes_of
from layoutkit.errors import TechnologyError
from layoutkit.extract.resistor_devices import plate_layer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.drc.kind_register import Found
    from layoutkit.technology.technology import Technology

MAX_WINDOWS = 1_000_000
LEAST_EXCESS = 1e-5
"""A ratio is a violation if it exceeds its limit by more than this, as in KLayout's antenna check."""


@rule_kind("density", "layer", optional=("within",), lengths=("window_um", "step_um"),
           choices={"bound": ("min", "max")}, value="ratio", flat=True, whole=True)  # fmt: skip
def density(case: Case) -> Found:
    """``layer`` covers at least (``bound: max``: at most) the share ``value`` of every window.

    Windows start at the lower left of ``within`` (default: of everything drawn); the last of a row is moved back so
    that it ends with it. Without ``window_um`` there is one window, the whole.
    """
    within = case.region("within") if case.has("within") else kdb.Region(case.layers.extent())
    chip, layer = _Coverage(within), _Coverage(case.region("layer") & within)
    largest, extreme = case.choice("bound") == "max", None
    wrong = kdb.Region()
    for window in _windows(case, within.bbox()):
        area = chip.area(window)
        if area == 0:
            continue
        share = layer.area(window) / area
        extreme = share if extreme is None else (max if largest else min)(share, extreme)
        if share > case.ratio if largest else share < case.ratio:
            wrong.insert(window)
    if extreme is not None:
        yield MeasuredNumber(extreme)
    wrong.merged_semantics = False
    yield wrong


def _windows(case: Case, extent: kdb.Box) -> Iterator[kdb.Box]:
    if extent.empty():
        return
    if not case.has("window_um"):
        yield extent
        return
    size = case.length("window_um")
    step = case.length("step_um") if case.has("step_um") else size
    if size <= 0 or step <= 0:
        raise TechnologyError("window_um and step_um must be greater than 0")
    across, along = (extent.left, extent.right), (extent.bottom, extent.top)
    count = _count(*across, size, step) * _count(*along, size, step)
    if count > MAX_WINDOWS:
        raise TechnologyError(f"{count} windows are more than {MAX_WINDOWS}; take a larger step_um")
    for y in _starts(*along, size, step):
        for x in _starts(*across, size, step):
            yield kdb.Box(x, y, x + size, y + size) & extent


def _count(low: int, high: int, size: int, step: int) -> int:
    """Return how many starts ``_starts`` yields."""
    return len(range(low, max(high - size, low), step)) + 1


def _starts(low: int, high: int, size: int, step: int) -> Iterator[int]:
    last = max(high - size, low)
    yield from range(low, last, step)
    yield last


class _Coverage:
    """Answers how much area a region has in a box, by an index of its pieces."""

    def __init__(self, region: kdb.Region) -> None:
        self._layout = kdb.Layout()
        self._cell = self._layout.create_cell("COVERAGE")
        self._layer = self._layout.layer(1, 0)
        self._cell.shapes(self._layer).insert(region.decompose_trapezoids_to_region())

    def area(self, box: kdb.Box) -> int:
        pieces = kdb.Region(kdb.RecursiveShapeIterator(self._layout, self._cell, self._layer, box, True))
        return int((pieces & kdb.Region(box)).area())


@rule_kind("antenna", "layer", "gate", optional=("diode",), lengths=("thickness_um",), ratios=("diode_ratio",),
           choices={"measure": ("area", "sidewall"), "sum": ("layer", "cumulative")}, value="ratio",
           flat=True)  # fmt: skip
def antenna(case: Case) -> Found:
    """Of each net, the area of ``layer`` is at most ``value`` times that of the ``gate`` it is connected to.

    ``gate`` lies in poly, or is the layer of a capacitor's plates.

    Nets are those that exist when ``layer`` is etched: nothing above it connects yet. ``sidewall`` takes perimeter
    times ``thickness_um`` for the area. A net with a ``diode`` is exempt, or with ``diode_ratio`` may have that much
    more for each um2 of diode. ``cumulative`` adds the ratios that the conductors, or cuts, below had for each gate.
    """
    if case.choice("measure") == "sidewall" and not case.has("thickness_um"):
        raise TechnologyError("measure sidewall needs the field 'thickness_um'")
    if case.choice("sum") == "cumulative" and (case.choice("measure") == "sidewall" or case.has("diode_ratio")):
        raise TechnologyError("a cumulative sum takes neither measure sidewall nor the field 'diode_ratio'")
    greatest, violating = _antennas(case)
    if greatest is not None:
        yield MeasuredNumber(greatest)
    yield violating


def _antennas(case: Case) -> tuple[float | None, kdb.Region]:
    """Return the greatest ratio of ``layer`` to the gates it reaches, None where it reaches none, and what exceeds it.

    Raises:
        TechnologyError: If ``layer`` is neither poly, contact, conductor nor cut.
    """
    technology = case.layers.technology
    # what charges gates, in the order in which it is made
    etched = ["poly", "contact"]
    for number, conductor in enumerate(technology.conductors):
        etched += [conductor.name, *(cut.name for cut in technology.cuts[number : number + 1])]
    layer = carrier(technology, case.text("layer"))
    if layer not in etched:
        known = ", ".join(technology.resolve(name) for name in etched)
        raise TechnologyError(f"the layer of an antenna rule is one of {known}; got '{case.text('layer')}'")
    if case.region("gate").is_empty():  # nothing to judge; extracting the nets of a large array of diodes takes long
        return None, kdb.Region()
    if case.choice("sum") == "cumulative":
        below = etched[2 : etched.index(layer)]
        return _cumulative(case, [*(each for each in below if _is_cut(case, each) == _is_cut(case, layer)), layer])
    return _of_layer(case, layer)


def _of_layer(case: Case, layer: str) -> tuple[float | None, kdb.Region]:
    """Return the greatest ratio of a layer alone, and the polygons of the nets where it is too much."""
    nets, um2 = _etched_nets(case), case.layers.unit_um**2
    if nets.regions[layer].is_empty():  # it charges nothing; the nets of a layer that is not drawn need no extraction
        return None, kdb.Region()
    stage = nets.stage(layer)
    metal = stage.sizes(stage.part.sizes(layer))
    gates, diodes = stage.sizes(sizes_of(_gates(case, stage))), stage.sizes(sizes_of(_diodes(case, stage)))
    thickness = float(case.fields.get("thickness_um", 0.0)) if case.choice("measure") == "sidewall" else None
    greatest, wrong = None, set()
    for net in gates.keys() & metal.keys():
        exempt = diodes[net].area if net in diodes else 0
        if exempt and not case.has("diode_ratio"):
            continue
        size, allowed = metal[net], exempt * um2 * case.number("diode_ratio") if exempt else 0.0
        charged = size.area * um2 if thickness is None else size.perimeter * case.layers.unit_um * thickness
        ratio = charged / (gates[net].area * um2)
        if ratio > allowed + LEAST_EXCESS:
            greatest = max(ratio, greatest or 0.0)
        if ratio > allowed + case.ratio + LEAST_EXCESS:
            wrong.add(net)
    return greatest, kdb.Region([polygon for net, polygon in stage.part.polygons(layer) if stage.net(net) in wrong])


def _cumulative(case: Case, counted: list[str]) -> tuple[float | None, kdb.Region]:
    """Return the greatest sum of the ratios of some layers at a gate without diode, and the gates where it is too much.

    Each ratio is that of the net that the gate belonged to when the layer was etched.
    """
    nets, last = _etched_nets(case), _etched_nets(case).stage(counted[-1])
    every = _gates(case, last)
    sizes = sizes_of(every)
    sums = dict.fromkeys(sizes, 0.0)
    for layer in (each for each in counted if not nets.regions[each].is_empty()):
        stage = nets.stage(layer)
        metal, gates = stage.sizes(stage.part.sizes(layer)), stage.sizes(sizes)
        for net in sums:
            own = stage.net(net)
            sums[net] += metal[own].area / gates[own].area if own in metal else 0.0
    protected = {last.net(net) for net, _ in _diodes(case, last)}
    exposed = {net: ratio for net, ratio in sums.items() if last.net(net) not in protected}
    wrong = kdb.Region([polygon for net, polygon in every if exposed.get(net, 0.0) > case.ratio])
    return max(exposed.values(), default=None), wrong


def _etched_nets(case: Case) -> EtchedNets:
    """Return the nets of the cell as it is made; rules with the same diodes share them."""
    layers, technology = case.layers, case.layers.technology
    key = case.text("diode") if case.has("diode") else ""
    if key not in layers.nets.etched:
        metal, joins = layers.nets.metal
        first = technology.conductors[0].name
        regions = {"poly": layers.region("poly"), "contact": layers.region(technology.contact.layer), **metal}
        joins = (*joins, ("contact", "poly"), ("contact", first), ("diode", "contact"))
        if key:
            regions["diode"] = case.region("diode")
        other = next(iter(layers.nets.etched.values()), None)
        layers.nets.etched[key] = EtchedNets(technology, regions, joins, other)
    return layers.nets.etched[key]


def _gates(case: Case, stage: Stage) -> list[tuple[Any, kdb.Polygon]]:
    """Return the gates with their nets: poly over diffusion, or the plates of a capacitor."""
    technology, gate = case.layers.technology, case.text("gate")
    layer = _plates(technology).get(technology.resolve(gate), "poly")
    return stage.gates(layer, gate, case.region("gate"))


@lru_cache(maxsize=64)
def _plates(technology: Technology) -> dict[str, str]:
    """Return the names of the plates of capacitors by their layers."""
    made = (spec for spec in technology.passives.values() if "plate" in spec.parts and technology.makes(spec))
    return {technology.resolve(spec.parts["plate"]): plate_layer(spec.name) for spec in made}


def _diodes(case: Case, stage: Stage) -> list[tuple[Any, kdb.Polygon]]:
    return stage.base.polygons("diode") if case.has("diode") else []


def _is_cut(case: Case, layer: str) -> bool:
    return layer in {cut.name for cut in case.layers.technology.cuts}
