"""Dummies of transistors: how many the flow adds at the ends of rows, and where those of a netlist are drawn.

A matched group gets one dummy at each end of its rows at least where matching counts, more by figures. Etching and
stress are least exact at the end of a row, so input pairs, their loads, mirrors and what the constraints match get one
there (``AT_LEAST``); a cross-coupled pair on a supply is a latch, whose input pair decides. Those of the netlist that
share the diffusion of the ends take their place. Each group is planned with this number, and with more until these
figures hold:

    offset      what stress at the ends of the diffusion does to a pair or mirror by the coefficients of the technology,
                at most ``LIMIT_MV`` or ``LIMIT_PERCENT``; where it states none, sa and sb equal within 2 %
    junctions   AD, AS, PD and PS per width equal within 1 %, for a pair also what loads its drains
    open ends   of gates up to 1 um long, the part of the edges without a gate beside them is equal

Where no such number keeps them, fewer are tried too: dummies at one end only of each diffusion, as beside long gates,
make the distances unequal. Transistors that switch fully, such as the latch of a level shifter or those on a clock,
need no equal currents and get no dummies.

A dummy of a netlist is a transistor that is off, with gate and one end on the net of its body. It goes to the ends of
the rows of the matched group that it guards, in place of a dummy that the netlist lacks, if it has the flavour and body
of the group and fingers of its width, or of a multiple of it, and its other end is on the net of the body too, or on
one of the group's. Groups that are each other's mirror images get equal ones, and none gets more dummy fingers than it
has fingers. Equal dummies that are left, and equal transistors that are capacitors between supplies, are one block of
rows with shared diffusions.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from layoutkit.circuit.constraints import OF_PLACES
from layoutkit.circuit.roles import find_roles
from layoutkit.circuit.symmetry import decouples, is_tied, off_end
from layoutkit.draw.group_plan import JUNCTIONS_ALIKE, STRESS_ALIKE
from layoutkit.draw.mos import DUMMY_LENGTH_UM
from layoutkit.extract.predicted_offset import MeasuredDevice, predicted_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.draw.group_plan import GroupPlan
    from layoutkit.flow.groups import Group, Sizing
    from layoutkit.technology import Technology


LIMIT_MV = 0.1
"""Predicted offset of a pair from stress that no dummy has to lower. [mV]"""
LIMIT_PERCENT = 0.1
"""The same of the currents of a mirror; it is ``LIMIT_MV`` at an overdrive voltage of 0.2 V. [%]"""
MOST_DUMMIES = 2
"""More dummies at each end change the stress of the gates beside them by less than the limits."""
AT_LEAST = {
    "differential_pair": 1,
    "cross_coupled_pair": 1,
    "current_mirror": 1,
    "load_pair": 1,
    "matched_group": 1,
}
"""Dummies at each end by the type of group, where its figures are no better with fewer; other types need none."""
FEWEST = 4
"""How many dummy fingers a group may have although it has fewer fingers itself: two at each end."""

SWITCHES = (
    "a latch between the supplies, a pair on a clock or in a clocked comparator switches fully and needs equal wires "
    "rather than a common centroid"
)


@dataclass(frozen=True)
class EndDummies:
    """How many dummies a group has at each end of its rows.

    Attributes:
        count: The number.
        reason: Why, in words.
    """

    count: int
    reason: str


@dataclass(frozen=True)
class _Judged:
    """The figures of a plan with some number of dummies.

    Attributes:
        error: Predicted error, or the relative difference of the stress figures where nothing predicts it.
        limit: What it may be.
        unit: Of both.
        unequal: What else differs between the devices, in words.
    """

    error: float
    limit: float
    unit: str
    unequal: tuple[str, ...]

    @property
    def good(self) -> bool:
        return self.error <= self.limit and not self.unequal

    @property
    def text(self) -> str:
        what = "sa and sb differ by" if self.unit == "% of sa and sb" else "predicted error from stress"
        unit = "%" if self.unit == "% of sa and sb" else self.unit
        return "; ".join((f"{what} {self.error:.2f} {unit} (limit {self.limit:g} {unit})", *self.unequal))


def chosen_dummies(
    technology: Technology,
    group: Group,
    wanted: int | Literal["auto"],
    plans_with: Callable[[int], Sequence[GroupPlan]],
) -> tuple[EndDummies, tuple[GroupPlan, ...]]:
    """Return how many dummies a group gets at each end, and its plans with them, the best first.

    Args:
        technology: The process.
        group: Several transistors.
        wanted: The number that the request states, or ``auto``.
        plans_with: Returns the plans with a number of dummies at each end, the best first.

    Raises:
        GeometryError: If the group cannot be drawn.
    """
    if not isinstance(wanted, str):
        return EndDummies(wanted, "stated in the request"), tuple(plans_with(wanted))
    if group.mirrored == SWITCHES:
        reason = "its transistors switch fully, as a latch without an input pair does, and need no equal currents"
        return EndDummies(0, reason), tuple(plans_with(0))
    least = 0 if _is_latch(group) else AT_LEAST.get(group.type, 0)
    if least and group.guards and _guards_join(plans_with(0)[0]):
        least = 0
    tried: dict[int, tuple[_Judged, tuple[GroupPlan, ...]]] = {}
    for count in (*range(least, MOST_DUMMIES + 1), *range(least - 1, -1, -1)):
        plans = tuple(plans_with(count))
        tried[count] = (_judged(technology, group, plans[0]), plans)
        if tried[count][0].good:
            break
    fewest = min(len(each.unequal) for each, _ in tried.values())
    equal = {count: each for count, (each, _) in tried.items() if len(each.unequal) == fewest}
    smallest = min(each.error for each in equal.values())
    count, found = next(
        (count, each) for count, each in equal.items() if each.error <= each.limit or each.error - smallest < each.limit
    )
    plans = tried[count][1]
    kept = [
        plan
        for plan, judged in ((plan, _judged(technology, group, plan)) for plan in plans)
        if judged.good or (len(judged.unequal) <= fewest and judged.error <= found.error)
    ]
    return EndDummies(count, _reason(count, least, {count: each for count, (each, _) in tried.items()})), tuple(kept)


def _is_latch(group: Group) -> bool:
    """Return whether a group is a cross-coupled pair on a supply: what precedes it decides, and it only completes that.

    One on a tail current, as of an oscillator, amplifies.
    """
    return group.type == "cross_coupled_pair" and group.devices[0].terminals["s"] == group.bulk_net


def _guards_join(plan: GroupPlan) -> bool:
    """Return whether dummies of the netlist lie on the diffusion of the first and last finger of every row."""
    for row in plan.rows:
        own = [index for index, finger in enumerate(row.fingers) if finger.device]
        beside = {own[0] - 1, own[-1]}
        if own[0] == 0 or own[-1] == len(row.fingers) - 1 or beside & row.broken():
            return False
    return True


def _reason(count: int, least: int, tried: Mapping[int, _Judged]) -> str:
    found = tried[count]
    if len(tried) == 1:
        return f"{count} by default where matching counts: {found.text}" if least else f"none is needed: {found.text}"
    others = [f"{other or 'none'} at each end: {each.text}" for other, each in tried.items() if other != count]
    text = f"{count or 'none'} at each end: {found.text}"
    if not found.good:
        text += "; this remains"
    return f"{text}; no better with {'; '.join(others)}"


def _judged(technology: Technology, group: Group, plan: GroupPlan) -> _Judged:
    figures = plan.figures
    devices = [each for each in plan.transistors if each.id in figures.stress and each.id not in group.cascodes]
    mirror = len({each.gate for each in devices}) == 1
    alike = len({each.width for each in devices}) == 1
    unequal = []
    if figures.junctions > JUNCTIONS_ALIKE:
        unequal.append(f"AD, AS, PD or PS per width differ by {figures.junctions:.1%}")
    if alike and not mirror and figures.drain_load > JUNCTIONS_ALIKE:
        unequal.append(f"the areas that load the drains differ by {figures.drain_load:.1%}")
    if figures.open_ends > 0 and devices[0].length <= technology.to_dbu(DUMMY_LENGTH_UM):
        unequal.append(f"the devices differ by {figures.open_ends:.0%} in gate edges at the ends of rows")
    measured = [
        MeasuredDevice(
            id=each.id,
            width_um=technology.to_um(each.finger_width),
            total_width_um=technology.to_um(each.width),
            length_um=technology.to_um(each.length),
            stress=figures.stress[each.id] / technology.dbu_um,
            junction_ff=None,
        )
        for each in devices
    ]
    offset = predicted_offset(group.spec, measured, mirror=mirror, clocked=False)
    values = offset["contributions"]["stress"]["values"]
    if not values:
        return _Judged(100 * figures.stress_spread, 100 * STRESS_ALIKE, "% of sa and sb", tuple(unequal))
    error = max(abs(value) for value in values)
    return _Judged(error, LIMIT_PERCENT if mirror else LIMIT_MV, offset["unit"], tuple(unequal))


def idle_devices(circuit: Circuit, constraints: Constraints) -> tuple[Device, ...]:
    """Return the transistors that only guard or decouple, without those that constraints match or place."""
    named = constraints.devices_in("symmetry", "matching", *OF_PLACES)
    roles = find_roles(circuit)
    rails = roles.supplies.nets
    guards = {name for group in roles.groups for name in group.properties.get("dummies", ()) if name not in named}
    return tuple(
        device
        for device in circuit.devices
        if (device.id in guards and off_end(device))
        or (device.is_mos and device.id not in named and (is_tied(device) or decouples(device, rails)))
    )


def guarded(
    groups: Sequence[Group],
    idle: Iterable[Device],
    circuit: Circuit,
    constraints: Constraints,
    sized: Callable[[Device], Sizing],
) -> tuple[list[Group], list[Device]]:
    """Return the groups with the dummies that they get, and the devices of ``idle`` that are left.

    Args:
        groups: All groups of transistors.
        idle: What ``idle_devices`` returned.
        circuit: The whole circuit.
        constraints: State which groups are mirror images.
        sized: Returns the fingers of a device.
    """
    owner = {device.id: number for number, group in enumerate(groups) for device in group.devices}
    image = {
        name: other
        for each in constraints.symmetry
        for one, twin in each.pairs
        for name, other in ((one, twin), (twin, one))
    }
    wards = {
        name: group.devices for group in find_roles(circuit).groups for name in group.properties.get("dummies", ())
    }
    alike: dict[tuple[tuple[int, ...], int, int, str | None], list[Device]] = defaultdict(list)
    left: list[Device] = []
    for device in idle:
        sizing, names = sized(device), wards.get(device.id, ())
        near = {owner[name] for name in (*names, *(image.get(name, name) for name in names)) if name in owner}
        places = tuple(sorted(number for number in near if _fits(device, sizing, groups[number])))
        end = off_end(device)
        if places and end is not None:
            alike[places, sizing.finger_width * sizing.fingers, sizing.length, end].append(device)
        else:
            left.append(device)
    found = list(groups)
    for (places, width, *_), devices in alike.items():
        share = len(devices) // len(places)
        for number in places:
            group = found[number]
            unit, own = group.sizing[0].finger_width, sum(each.fingers for each in group.sizing)
            taken = sum(sized(each).finger_width * sized(each).fingers for each in group.guards) // unit
            free = (max(own, FEWEST) - taken) * unit // width
            share = min(share, max(0, free))
        for place, number in enumerate(places):
            guards = (*found[number].guards, *devices[place * share : (place + 1) * share])
            found[number] = replace(found[number], guards=guards)
        left += devices[len(places) * share :]
    return found, left


def _fits(device: Device, sizing: Sizing, group: Group) -> bool:
    """Return whether a dummy can be drawn in fingers as wide as those of a group, on its diffusion."""
    first = group.devices[0]
    own = (device.model, device.terminals["b"], device.in_deep_well)
    same = own == (first.model, group.bulk_net, first.in_deep_well)
    nets = {net for each in group.devices for net in each.terminals.values()}
    return same and off_end(device) in nets and sizing.finger_width % group.sizing[0].finger_width == 0
