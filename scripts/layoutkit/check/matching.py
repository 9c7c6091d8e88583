"""Whether two circuits are the same, with a proof that does not rest on the program that found it.

KLayout's comparer proposes which layout net is which reference net. Its own verdict is not used: the proposal counts
only if, renamed by it, the transistor groups of the layout are exactly those of the reference, no two nets became one,
and every label lies on the net that it names. Sizes are compared after that, group by group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.check.mismatch import Mismatch, at, listed
from layoutkit.check.reference import klayout_netlist

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from layoutkit.check.extracted import ExtractedDevice, Extraction
    from layoutkit.check.parallel import FoldKey
    from layoutkit.check.reference import Reference, ReferenceDevice

_BRANCHES = 500  # guesses at symmetric nets before the comparer gives up; KLayout's default is 100


@dataclass(frozen=True)
class Pairing:
    """Which reference net each layout net is, proven."""

    nets: Mapping[int, str]

    def key(self, key: FoldKey[int]) -> FoldKey[str]:
        """Return a group of the layout in the reference's names."""
        return renamed(key, self.nets)


def renamed(key: FoldKey[int], nets: Mapping[int, str]) -> FoldKey[str]:
    """Return a group's key with other names for its nets; KeyError where there is none."""
    device, bulk, gate, ends = key
    return device, nets[bulk], nets[gate], frozenset(nets[end] for end in ends)


def layout_groups(extraction: Extraction) -> dict[FoldKey[int], tuple[ExtractedDevice, ...]]:
    """Return the extracted transistors in parallel, of whatever length."""
    found: dict[FoldKey[int], list[ExtractedDevice]] = {}
    for device in extraction.devices:
        found.setdefault(device.fingers[0].key, []).append(device)
    return {key: tuple(members) for key, members in found.items()}


class Matcher:
    """Compares one extraction with one reference, under different assumptions."""

    def __init__(self, extraction: Extraction, reference: Reference, tolerance: float) -> None:
        self.extraction = extraction
        self.reference = reference
        self.tolerance = tolerance
        self.groups = layout_groups(extraction)
        self.lvs = extraction.lvs
        self.lvs.reference = klayout_netlist(reference, extraction.technology)

    def pairing(self, pins: Mapping[int, str], *, sizes: bool) -> Pairing | None:
        """Return the proven pairing of nets, or None where the circuits differ.

        Args:
            pins: Layout net to the reference net it has to be.
            sizes: Whether W and L take part in finding the pairing.
        """
        if not self.groups and not self.reference.groups:
            return Pairing(dict(pins))
        if len(self.groups) != len(self.reference.groups):
            return None
        self._compare(pins, sizes=sizes)
        proposed = {**self._proposal(), **pins}
        return Pairing(proposed) if self._proven(proposed) else None

    def _compare(self, pins: Mapping[int, str], *, sizes: bool) -> None:
        if self.lvs.xref() is not None:
            self.lvs.xref().clear()  # KLayout would add to what an earlier comparison found
        comparer = kdb.NetlistComparer()
        comparer.max_branch_complexity = _BRANCHES
        layout, netlist = self.lvs.netlist(), self.lvs.reference
        ours, theirs = layout.top_circuit(), netlist.top_circuit()
        for side in (layout, netlist):
            for device_class in side.each_device_class():
                device_class.equal_parameters = self._equality(sizes=sizes)
        comparer.same_circuits(ours, theirs)
        for net, name in sorted(pins.items()):
            comparer.same_nets(ours, theirs, ours.net_by_cluster_id(net), theirs.net_by_name(name), True)
        self.lvs.compare(comparer)

    def _equality(self, *, sizes: bool) -> kdb.EqualDeviceParameters:
        mos = kdb.DeviceClassMOS4Transistor
        if not sizes:
            return kdb.EqualDeviceParameters.ignore(mos.PARAM_W) + kdb.EqualDeviceParameters.ignore(mos.PARAM_L)
        offset = max((abs(d.w_um - d.drawn_w_um) for d in self.reference.devices), default=0.0) + 1e-6
        width = kdb.EqualDeviceParameters(mos.PARAM_W, offset, self.tolerance)
        return width + kdb.EqualDeviceParameters(mos.PARAM_L, 1e-6, self.tolerance)

    def _proposal(self) -> dict[int, str]:
        xref = self.lvs.xref()
        proposed = {}
        for circuits in xref.each_circuit_pair():
            for pair in xref.each_net_pair(circuits):
                if pair.first() is not None and pair.second() is not None:
                    proposed[pair.first().cluster_id] = pair.second().name
        return proposed

    def _proven(self, nets: Mapping[int, str]) -> bool:
        used = {net for _, bulk, gate, ends in self.groups for net in (bulk, gate, *ends)}
        if not used <= nets.keys() or len({nets[net] for net in nets}) != len(nets):
            return False
        return {renamed(key, nets) for key in self.groups} == set(self.reference.groups)

    def record(self, pins: Mapping[int, str], pairing: Pairing | None) -> None:
        """Leave in KLayout's database the comparison a person should see: nets paired as proven, sizes judged."""
        if self.lvs.netlist().top_circuit() is not None:
            nets = pins if pairing is None else {**pairing.nets, **pins}
            self._compare(nets, sizes=True)

    def size_mismatches(self, pairing: Pairing) -> list[Mismatch]:
        """Return the groups whose sizes differ."""
        found = []
        for key, drawn in self.groups.items():
            found += group_mismatches(drawn, self.reference.groups[pairing.key(key)], self.tolerance)
        return found


def group_mismatches(
    drawn: Iterable[ExtractedDevice], asked: Iterable[ReferenceDevice], tolerance: float
) -> list[Mismatch]:
    """Return how the sizes of transistors in parallel differ from those asked for: nothing when they agree.

    Widths of equal length are added up on both sides before they are compared.

    Args:
        drawn: Extracted transistors, one a length.
        asked: Transistors of the netlist that are in parallel.
        tolerance: Largest relative difference of W or L. A size on the grid point nearest to the one asked for agrees.
    """
    asked = list(asked)
    lengths = sorted({device.drawn_l_um for device in asked})
    left = list(drawn)
    total = sum(device.w_um for device in left)
    wrong_width, undrawn = [], []
    for length in lengths:
        members = [device for device in asked if device.drawn_l_um == length]
        goals = [goal for member in members for goal in (member.l_um, member.drawn_l_um)]
        same = [device for device in left if any(_agree(device.l_um, goal, tolerance) for goal in goals)]
        left = [device for device in left if device not in same]
        if not same:
            undrawn.append(members)
        elif not _width_agrees(sum(device.w_um for device in same), members, tolerance):
            wrong_width.append(_wrong_width(same, members))
    if left:
        same_total = _width_agrees(total, asked, tolerance)
        return [_wrong_length(device, asked) for device in left] + ([] if same_total else wrong_width)
    return wrong_width + [_undrawn(members) for members in undrawn]


def _wrong_width(drawn: list[ExtractedDevice], asked: list[ReferenceDevice]) -> Mismatch:
    fingers = sum(len(device.fingers) for device in drawn)
    width, goal = sum(device.w_um for device in drawn), sum(member.w_um for member in asked)
    wanted = sum(member.fingers for member in asked)
    return Mismatch(
        "wrong_parameter",
        f"W of {listed(member.id for member in asked)} is {width:g} um in the layout "
        f"({_fingers(fingers)}{at(drawn[0].place)}), {goal:g} um in the netlist ({_fingers(wanted)})",
        "wrong finger width" if fingers == wanted else "a wrong number of fingers or units",
        tuple(member.id for member in asked),
        tuple((device.id, device.place) for device in drawn),
    )


def _wrong_length(drawn: ExtractedDevice, asked: list[ReferenceDevice]) -> Mismatch:
    lengths = listed(f"{length:g}" for length in sorted({member.l_um for member in asked}))
    return Mismatch(
        "wrong_parameter",
        f"L of {listed(member.id for member in asked)} is {drawn.l_um:g} um in the layout "
        f"({_fingers(len(drawn.fingers))}{at(drawn.place)}), {lengths} um in the netlist",
        "wrong gate length",
        tuple(member.id for member in asked),
        ((drawn.id, drawn.place),),
    )


def _undrawn(asked: list[ReferenceDevice]) -> Mismatch:
    ids = tuple(member.id for member in asked)
    return Mismatch(
        "missing_device",
        f"{listed(ids)} (L {asked[0].l_um:g} um) is missing: the netlist has it in parallel with what is drawn there",
        "the transistor was not drawn, or all in parallel were drawn with one length",
        ids,
    )


def _fingers(count: int) -> str:
    return "1 finger" if count == 1 else f"{count} fingers"


def _width_agrees(width: float, asked: list[ReferenceDevice], tolerance: float) -> bool:
    goals = (sum(member.w_um for member in asked), sum(member.drawn_w_um for member in asked))
    return any(_agree(width, goal, tolerance) for goal in goals)


def _agree(value: float, goal: float, tolerance: float) -> bool:
    return abs(value - goal) <= tolerance * goal + 1e-6
