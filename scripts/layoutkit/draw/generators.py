"""Which generator draws a kind of device: one entry per kind that is not a transistor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutkit.draw.bipolar import BipolarSpec, bipolar, draw_bipolars
from layoutkit.draw.capacitor import CapacitorSpec, draw_capacitor, draw_shielded_capacitor
from layoutkit.draw.capacitor_array import draw_capacitor_array, matched_capacitors, series_plates
from layoutkit.draw.deep_well import draw_isolated_box, isolated_box
from layoutkit.draw.diode import diode, draw_diode, draw_tap, tap
from layoutkit.draw.fixed_cell import draw_fixed_cell, fixed_cell
from layoutkit.draw.mos_capacitor import draw_mos_capacitor, mos_capacitor
from layoutkit.draw.passive import capacitor, resistor
from layoutkit.draw.resistor import draw_resistors
from layoutkit.draw.resistor_bank import ResistorSpec
from layoutkit.technology.device_kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.technology import PassiveSpec, Technology
    from layoutkit.technology.passive_sizes import PassiveSize


@dataclass(frozen=True)
class BlockSpec:
    """Devices to be drawn in one cell.

    Attributes:
        name: Name of the cell.
        spec: The flavour all of them have.
        devices: Id, size and nets of each.
        bulk_net: Net of the ring around them; empty for none.
        dummies: Dummies at each end of a block of several.
        strings: Ids of resistors in series in their order, see ``ResistorSpec``.
        guards: Resistors that are dummies, see ``ResistorSpec``.
        parallel: Whether capacitors have equal plates on the same nets and are drawn as one.
        matched: Whether capacitors match, so that their plates should have one centroid.
        in_well: Whether resistors lie in an n well of their own, on the bulk net.
        substrate: Net of the substrate, for a device of a p well, which lies in a deep well.
    """

    name: str
    spec: PassiveSpec
    devices: tuple[tuple[str, PassiveSize, Mapping[str, str]], ...]
    bulk_net: str = ""
    dummies: int = 0
    strings: tuple[tuple[str, ...], ...] = ()
    guards: tuple[tuple[str, str], ...] = ()
    parallel: bool = False
    matched: bool = True
    in_well: bool = False
    substrate: str = ""


def draw_block(layout: kdb.Layout, technology: Technology, block: BlockSpec) -> Module:
    """Return the module of ``block``, drawn in ``layout`` without labels.

    Raises:
        GeometryError: If the process does not allow a size.
        TechnologyError: If the process lacks a dimension.
    """
    return GENERATORS[block.spec.type](layout, technology, block)


def _resistors(layout: kdb.Layout, technology: Technology, block: BlockSpec) -> Module:
    resistors = tuple(resistor(technology, name, block.spec.name, size, nets) for name, size, nets in block.devices)
    ringed = bool(block.bulk_net)
    dummies = block.dummies if ringed else 0
    dummies = max(dummies, -(-len(block.guards) // 2))
    spec = ResistorSpec(block.name, resistors, block.bulk_net, dummies, ringed, labels=False, strings=block.strings)
    spec = replace(spec, guards=block.guards, in_well=block.in_well, substrate=block.substrate)
    return draw_resistors(layout, technology, spec)


def _capacitors(layout: kdb.Layout, technology: Technology, block: BlockSpec) -> Module:
    drawn = [capacitor(technology, name, block.spec.name, size, nets) for name, size, nets in block.devices]
    if len(drawn) == 1 or block.parallel:
        one = replace(drawn[0], m=sum(each.m for each in drawn))
        parts = tuple((each.id, each.m) for each in drawn)
        return draw_plates(layout, technology, CapacitorSpec(block.name, one, labels=False, parts=parts))
    alone = [each.m for each in drawn] == [1, 1]  # two plates mirror each other: dummies make them no more alike
    dummy_net = block.bulk_net if block.dummies and not alone else ""
    array, _ = matched_capacitors(technology, block.name, drawn, dummy_net=dummy_net, labels=False)
    if not block.matched:  # where the centroids lie does not count
        array = replace(array, warnings=tuple(text for each in drawn for text in each.warnings))
    return draw_capacitor_array(layout, technology, array)


def draw_plates(layout: kdb.Layout, technology: Technology, spec: CapacitorSpec) -> Module:
    """Return the module of one capacitor: its plates over one bottom plate; in series or too large, over one each.

    Raises:
        TechnologyError: If the process lacks a dimension, or its plates lie too low to be reached.
    """
    one = spec.capacitor
    if one.spec.fed:
        return draw_shielded_capacitor(layout, technology, spec)
    if one.series > 1:
        return draw_capacitor_array(layout, technology, series_plates(spec.name, one, labels=spec.labels))
    shared = one.spec.dimensions.get("shared_area", 0)
    if not shared or one.m == 1 or one.width * one.length * one.m <= shared:
        return draw_capacitor(layout, technology, spec)
    drawn = [replace(one, id=name, m=count) for name, count in spec.parts or ((one.id, one.m),)]
    array, _ = matched_capacitors(technology, spec.name, drawn, labels=spec.labels)
    return draw_capacitor_array(layout, technology, replace(array, warnings=one.warnings))


def _mos_capacitor(layout: kdb.Layout, technology: Technology, block: BlockSpec) -> Module:
    drawn = [mos_capacitor(technology, name, block.spec.name, size, nets) for name, size, nets in block.devices]
    one = replace(drawn[0], m=sum(each.m for each in drawn))
    parts = tuple((each.id, each.m) for each in drawn)
    return draw_mos_capacitor(layout, technology, block.name, one, labels=False, parts=parts)


def _diode(layout: kdb.Layout, technology: Technology, block: BlockSpec) -> Module:
    ((name, size, nets),) = block.devices
    drawn = replace(diode(technology, name, block.spec.name, size, nets), substrate=block.substrate)
    return draw_diode(layout, technology, block.name, drawn, labels=False)


def _tap(layout: kdb.Layout, technology: Technology, block: BlockSpec) -> Module:
    ((name, size, nets),) = block.devices
    return draw_tap(layout, technology, block.name, tap(technology, name, block.spec.name, size, nets), labels=False)


def _fixed_cell(layout: kdb.Layout, technology: Technology, block: BlockSpec) -> Module:
    ((name, size, nets),) = block.devices
    return draw_fixed_cell(
        layout, technology, block.name, fixed_cell(technology, name, block.spec.name, size, nets), labels=False
    )


def _isolated_box(layout: kdb.Layout, technology: Technology, block: BlockSpec) -> Module:
    ((name, size, nets),) = block.devices
    box = isolated_box(technology, name, block.spec.name, size, nets)
    return draw_isolated_box(layout, technology, block.name, box, labels=False)


def _bipolars(layout: kdb.Layout, technology: Technology, block: BlockSpec) -> Module:
    devices = tuple(bipolar(technology, name, block.spec.name, size, nets) for name, size, nets in block.devices)
    matched = len(devices) > 1 or devices[0].m > 1
    spec = BipolarSpec(block.name, devices, min(block.dummies, 1) if matched else 0, labels=False)
    return draw_bipolars(layout, technology, spec)


GENERATORS: dict[str, Callable[[kdb.Layout, Technology, BlockSpec], Module]] = {
    "resistor": _resistors,
    "capacitor": _capacitors,
    "mos_capacitor": _mos_capacitor,
    "diode": _diode,
    "tap": _tap,
    "isolated_box": _isolated_box,
    **{name: _fixed_cell for name, kind in KINDS.items() if kind.one_size},
    **{name: _bipolars for name, kind in KINDS.items() if kind.in_cells},
    "pnp": _bipolars,
}
"""Kind of device to the function that draws devices of this kind in one cell."""
