"""The review of a layout: every finding of every kind, and the verdict."""

from __future__ import annotations

import gc
from itertools import chain
from typing import TYPE_CHECKING, Any

from layoutkit.errors import listed
from layoutkit.review import (
    drive_ways,
    dummy_transistors,
    floorplan,
    ports_and_cuts,
    room_and_wells,
    single_transistors,
    stage_order,
    supply_ways,
)
from layoutkit.review.coupling import Coupling
from layoutkit.review.covered_devices import CoveredDevices, joined_rings, tap_ways
from layoutkit.review.dead_metal import DeadMetal
from layoutkit.review.drive_ways import shared_wires
from layoutkit.review.electrical import Electrical
from layoutkit.review.finding import SEVERITIES, Review, Unjudged, by_cause, limits_with
from layoutkit.review.matched_devices import Matching, mixed_channels
from layoutkit.review.matched_roles import matched_groups
from layoutkit.review.passives import Passives
from layoutkit.review.ports_and_cuts import PortsAndCuts
from layoutkit.review.repeated_cells import arrays_of, cell_numbers, loads, repeated
from layoutkit.review.subject import Subject
from layoutkit.review.symmetric_halves import SymmetryReview
from layoutkit.review.ways import detours, unlike_rows
from layoutkit.review.wire_runs import WireRuns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.lvs.lvs_result import LvsResult
    from layoutkit.review.finding import Remark

_OF_THE_SUBJECT: tuple[Callable[[Subject], Iterable[Remark]], ...] = (
    floorplan.rail_side, floorplan.rails, floorplan.rail_ties, floorplan.ports, floorplan.open_ports,
    floorplan.unfed_nets, floorplan.floating_metal,
    stage_order.flow_order, stage_order.output_beside_input, stage_order.far_bias, stage_order.far_loads,
    stage_order.loads_beside, stage_order.loads_behind, stage_order.off_centre, stage_order.far_tails,
    stage_order.far_in_series,
    stage_order.bipolar_pairs, stage_order.parts_apart, stage_order.power_beside_input, stage_order.far_capacitors,
    room_and_wells.room, room_and_wells.shape, room_and_wells.wide_channels, room_and_wells.empty_rings,
    room_and_wells.rings, room_and_wells.wide_rings, dummy_transistors.lone_dummies, room_and_wells.well_tap,
    single_transistors.far_taps, single_transistors.along_channels, room_and_wells.cut_sizes,
    room_and_wells.domains, room_and_wells.floating_bodies,
    room_and_wells.wells_apart, room_and_wells.single_tap_contacts, room_and_wells.bare_rings,
    single_transistors.gates_apart, single_transistors.unshared_diffusions,
    single_transistors.split_channels, dummy_transistors.dummies_between, dummy_transistors.dummies_away,
    single_transistors.few_contacts,
    ports_and_cuts.wires, ports_and_cuts.poly_wires, ports_and_cuts.climbs, supply_ways.supply_necks,
    supply_ways.through_others, drive_ways.gate_necks, drive_ways.gates_at_one_end, drive_ways.drive_necks,
    drive_ways.thin_links, drive_ways.small_resistors, drive_ways.wide_metal, drive_ways.plate_ways,
)  # fmt: skip
"""The findings that need nothing but the subject: layout, circuit and limits."""


def unmatched(result: LvsResult) -> Review:
    """Return the review of a layout that is not its netlist: nothing is judged, and nobody signs."""
    reason = "the layout does not match the netlist, so that nothing was looked at"
    technology, name = result.extraction.technology, result.extraction.cell_name
    return Review((), (Unjudged("all", reason, matters=True),), (), technology.dbu_um, name)


def _not_compared(result: LvsResult) -> list[Unjudged]:
    """Return the black boxes, which LVS did not compare: nobody signs a layout that is not all of its netlist."""
    boxes = [f"{box.id} ({box.cell})" for box in result.reference.black_boxes]
    what = f"LVS is not complete: not drawn and not compared {'is' if len(boxes) == 1 else 'are'} {listed(boxes)}"
    return [Unjudged("all", what, matters=True)] if boxes else []


def review_layout(
    result: LvsResult,
    circuit: Circuit,
    constraints: Constraints | None = None,
    limits: Mapping[str, Mapping[str, Any]] | None = None,
) -> Review:
    """Return what an engineer would say of a layout.

    Python's garbage collector rests meanwhile: nearly all that is made stays until the end.

    Args:
        result: The layout and its netlist, as LVS matched them.
        circuit: The netlist, in models of the technology.
        constraints: What the layout was asked for; None for nothing.
        limits: Limits that the user states instead of the package's.

    Raises:
        LayoutkitError: If the layout does not match its netlist, or a name is no limit.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return _review(Subject(result, circuit, constraints, limits_with(limits)), _not_compared(result))
    finally:
        if collects:
            gc.enable()


def _review(subject: Subject, not_compared: Sequence[Unjudged]) -> Review:
    electrical, arrays, groups = Electrical(subject), arrays_of(subject), matched_groups(subject)
    cells, coupling = cell_numbers(arrays), Coupling(subject, groups)
    matching, symmetry = Matching(subject, groups, cells), SymmetryReview(subject, groups, cells)
    runs = WireRuns(subject, groups, coupling, symmetry.counterparts)
    found = (
        electrical.findings(),
        shared_wires(electrical, groups),
        tap_ways(subject, electrical.networks),
        unlike_rows(subject, groups, [array.cells for array in arrays]),
        detours(subject),
        joined_rings(subject),
        PortsAndCuts(electrical).findings(),
        matching.findings(),
        *(mixed_channels(matching, group) for group in matching.transistors),
        single_transistors.matched_units(subject, groups),
        single_transistors.lone_transistors(subject, matching),
        Passives(subject, groups, symmetry.images).findings(),
        symmetry.findings(),
        *(kind(subject) for kind in _OF_THE_SUBJECT),
        repeated(subject, arrays),
        loads(subject),
        room_and_wells.long_rows(subject, groups),
        room_and_wells.unguarded(subject, groups),
        DeadMetal(subject, groups).findings(),
        CoveredDevices(subject, matching.transistors, coupling).findings(),
        coupling.findings(matching.bare),
        runs.findings(),
    )
    findings = by_cause(map(runs.described, chain.from_iterable(found)), subject.technology.dbu_um)
    findings.sort(key=lambda f: (SEVERITIES.index(f.severity), f.id, f.box.left, f.box.bottom, f.measured, f.nets))
    currents = subject.currents.devices
    estimated = [
        (name, currents[name].ampere, currents[name].how)
        for name in (device.id for device in subject.circuit.devices)
        if name in currents and not currents[name].stated
    ]
    return Review(
        tuple(findings),
        tuple(dict.fromkeys([*subject.unjudged, *not_compared])),
        tuple(estimated),
        subject.technology.dbu_um,
        subject.cell.name,
    )
