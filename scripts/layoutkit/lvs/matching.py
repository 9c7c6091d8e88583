"""Whether two circuits are the same, with a proof that does not rest on the search that found it.

The search (``renaming``) proposes which layout net is which reference net. The proposal counts only if, renamed by
it, the transistor groups of the layout are exactly those of the reference, no two nets became one, and every label lies
on the net that it names. Sizes are compared after that, group by group.

The renaming of nets that turns one circuit into another is found by colour refinement.

Both circuits are refined as one graph (``circuit.refinement``), so that their cells and nets share colours. Circuits of
which one has more cells or nets of some colour differ. Nets that still share a colour look alike from everywhere; one
of ours and one of theirs get a colour of their own and the refinement goes on, and the next of theirs is tried where
that leads nowhere. Ports colour their nets from the start.

This is the search that Gemini (Ebeling 1988) and netgen use. A result is a proposal to be checked: see ``matching``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.canonical import ColourClasses, ComparedDevice, links_of
from layoutkit.errors import counted, listed
from layoutkit.extract.folding import FoldKey, Net, in_parallel
from layoutkit.lvs.lvs_result import LvsMismatch, at, wrong_parameter
from layoutkit.technology.device_kinds import SIZE_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from layoutkit.extract.extracted import ExtractedDevice, Extraction
    from layoutkit.lvs.reference import Reference, ReferenceDevice


_CLEARLY = 1e-3  # relative difference beyond which a size is called wrong [1]

Size = tuple[tuple[float, float], ...]
"""W and L of transistors in parallel. [um]"""


@dataclass(frozen=True)
class Pairing:
    """Which reference net each layout net is, proven."""

    nets: Mapping[int, str]

    def key(self, key: FoldKey[int]) -> FoldKey[str]:
        """Return a group of the layout in the reference's names."""
        return renamed(key, self.nets)


def renamed(key: FoldKey[int], nets: Mapping[int, str]) -> FoldKey[str]:
    """Return a group's key with other names for its nets; KeyError where there is none."""
    device, ends = key
    return device, tuple(sorted((role, nets[net]) for role, net in ends))


def nets_of_taps(
    extraction: Extraction, reference: Reference, paired: Mapping[int, str], least: Callable[[float], float]
) -> dict[int, str]:
    """Return nets of the layout on which only taps lie, to such nets of the netlist whose taps are all on them.

    Nets that are left are paired in any order, so that a message can state what is there.

    Args:
        extraction: The layout.
        reference: The netlist.
        paired: The nets that other devices and labels pair.
        least: Returns the least width that agrees with one of the netlist. [um]
    """
    drawn: dict[int, dict[tuple[str, float], float]] = {}
    wanted: dict[str, dict[tuple[str, float], float]] = {}
    for finger in extraction.dummies:
        if finger.kind.always_tied and (net := finger.nets[finger.kind.ends[0]]) not in paired:
            there = drawn.setdefault(net, {})
            there[finger.device, finger.l_um] = there.get((finger.device, finger.l_um), 0.0) + finger.w_um
    known = set(paired.values())
    for device in reference.dummies:
        if device.kind.always_tied and (name := device.nets[device.kind.ends[0]]) not in known:
            taps = wanted.setdefault(name, {})
            taps[device.device, device.drawn_l_um] = (
                taps.get((device.device, device.drawn_l_um), 0.0) + device.drawn_w_um
            )
    if not wanted:
        return {}
    import networkx as nx

    fitting = nx.Graph()
    fitting.add_nodes_from(wanted)
    fitting.add_edges_from(
        (name, net)
        for name, taps in wanted.items()
        for net, there in drawn.items()
        if all(there.get(size, 0.0) >= least(width) for size, width in taps.items())
    )
    found = nx.bipartite.maximum_matching(fitting, wanted)
    rest = zip(  # one of both may be longer
        [net for net in drawn if net not in found], [name for name in wanted if name not in found], strict=False
    )
    return {net: name for net, name in (*found.items(), *rest) if net in drawn}


class Matcher:
    """Compares one extraction with one reference, under different assumptions.

    ``gave_up`` states whether any comparison ended undecided, because the circuits are too symmetric.
    """

    def __init__(self, extraction: Extraction, reference: Reference, tolerance: float | None) -> None:
        self.extraction = extraction
        self.reference = reference
        self.tolerance = tolerance
        self.groups: dict[FoldKey[int], tuple[ExtractedDevice, ...]] = in_parallel(extraction.devices)
        self.gave_up = False
        self._sizes_asked = {key: _reference_size(members) for key, members in reference.groups.items()}
        samples = {self._sizes_asked[key]: members for key, members in reference.groups.items()}
        self._sizes = {key: self._size(members, samples) for key, members in self.groups.items()}

    def _size(self, drawn: Sequence[ExtractedDevice], samples: Mapping[Size, Sequence[ReferenceDevice]]) -> Size:
        """Return the first size of the netlist that these transistors have, or their own."""
        for size, expected in samples.items():
            if not group_mismatches(drawn, expected, self.tolerance):
                return size
        return tuple((device.w_um, device.l_um) for device in drawn)

    def pairing(self, pins: Mapping[int, str], *, sizes: bool) -> Pairing | None:
        """Return the proven pairing of nets, or None where the circuits differ.

        Args:
            pins: Layout net to the reference net it has to be.
            sizes: Whether W and L take part in finding the pairing.
        """
        ours = [_cell(key, self._sizes[key] if sizes else None) for key in self.groups]
        theirs = [_cell(key, self._sizes_asked[key] if sizes else None) for key in self.reference.groups]
        hints: dict[Any, Hashable] = {} if sizes else {**_looks(self._sizes), **_looks(self._sizes_asked)}
        try:
            proposed = renaming(ours, theirs, pins, hints)
        except GaveUpError:
            self.gave_up = True
            return None
        if proposed is None:
            return None
        nets = {**proposed, **pins}
        return Pairing(nets) if self._proven(nets) else None

    def _proven(self, nets: Mapping[int, str]) -> bool:
        used = {net for _, ends in self.groups for _, net in ends}
        if not used <= nets.keys() or len({nets[net] for net in nets}) != len(nets):
            return False
        return {renamed(key, nets) for key in self.groups} == set(self.reference.groups)

    def size_mismatches(self, pairing: Pairing) -> list[LvsMismatch]:
        """Return the groups whose sizes differ."""
        found = []
        for key, drawn in self.groups.items():
            found += group_mismatches(drawn, self.reference.groups[pairing.key(key)], self.tolerance)
        return found


def _reference_size(expected: Sequence[ReferenceDevice]) -> Size:
    return tuple(sorted((device.drawn_w_um, device.drawn_l_um) for device in expected))


def _cell(key: FoldKey[Net], size: Size | None) -> ComparedDevice[Net]:
    device, ends = key
    return ComparedDevice((device, size), ends)


def _looks(sizes: Mapping[FoldKey[Net], Size]) -> dict[Net, Hashable]:
    """Return for each net the devices on it with their sizes."""
    found: dict[Net, list[Hashable]] = {}
    for (device, ends), size in sizes.items():
        for role, net in ends:
            found.setdefault(net, []).append((device, role, size))
    return {net: frozenset(Counter(devices).items()) for net, devices in found.items()}


def group_mismatches(
    drawn: Iterable[ExtractedDevice], expected: Iterable[ReferenceDevice], tolerance: float | None
) -> list[LvsMismatch]:
    """Return how the sizes of devices in parallel differ from the netlist's: nothing when they agree.

    Widths of equal length are added up on both sides before they are compared. Where the kind of device says so, the
    areas and perimeters of all devices are compared instead.

    Args:
        drawn: Extracted devices, one per length.
        expected: Devices of the netlist that are in parallel.
        tolerance: Largest relative difference of a size; None for that of the kind. A size on the grid point nearest to
            the netlist's agrees.
    """
    expected, drawn = list(expected), list(drawn)
    if (
        other := _other_feeds(drawn, expected)
        or _other_blocks(drawn, expected)
        or _outside_of_deep_wells(drawn, expected)
    ):
        return [other]
    if expected and "area" in expected[0].kind.compared:
        return _rectangle_mismatches(drawn, expected, tolerance)
    lengths = sorted({device.drawn_l_um for device in expected})
    left = list(drawn)
    total = sum(device.w_um for device in left)
    of_w, of_l = (tolerance if tolerance is not None else _declared(expected, name) for name in ("w", "l"))
    wrong_width, undrawn = [], []
    for length in lengths:
        members = [device for device in expected if device.drawn_l_um == length]
        goals = [goal for member in members for goal in (member.l_um, member.drawn_l_um)]
        same = [device for device in left if any(_agree(device.l_um, goal, of_l) for goal in goals)]
        left = [device for device in left if device not in same]
        if not same:
            undrawn.append(members)
        elif not _width_agrees(sum(device.w_um for device in same), members, of_w):
            wrong_width.append(_wrong_width(same, members))
    if left:
        same_total = _width_agrees(total, expected, of_w)
        return [_wrong_length(device, expected) for device in left] + ([] if same_total else wrong_width)
    return wrong_width + [_undrawn(members) for members in undrawn]


def _other_feeds(drawn: list[ExtractedDevice], expected: list[ReferenceDevice]) -> LvsMismatch | None:
    """Return the mismatch of the widths of the feeds of capacitors that have some."""
    wanted = sorted({each.feed_um for each in expected})
    found = sorted({finger.feed_um for device in drawn for finger in device.fingers})
    if not any(wanted) or [round(each, 3) for each in wanted] == [round(each, 3) for each in found]:
        return None
    ids = tuple(each.id for each in expected)
    drawn_um, wanted_um = (listed(f"{each:g}" if each else "unclear" for each in side) for side in (found, wanted))
    return wrong_parameter(
        f"The feed of {listed(ids)} is {drawn_um} um wide in the layout{at(drawn[0].place)}, {wanted_um} um in the "
        "netlist",
        "a feed of another width, or the bottom plate is left on several sides",
        ids,
        drawn,
    )


def _other_blocks(drawn: list[ExtractedDevice], expected: list[ReferenceDevice]) -> LvsMismatch | None:
    """Return the mismatch of how far silicide is blocked at drain and source of transistors that have it blocked."""
    wanted = {each.blocked_um for each in expected}
    found = {finger.blocked_um for device in drawn for finger in device.fingers}
    if wanted == found:
        return None
    ids = tuple(each.id for each in expected)
    drawn_um, wanted_um = (
        listed(" and ".join(f"{each:g}" for each in pair) for pair in sorted(side)) for side in (found, wanted)
    )
    return wrong_parameter(
        f"The silicide of {listed(ids)} is blocked {drawn_um} um beside its gates at drain and source in the layout"
        f"{at(drawn[0].place)}, {wanted_um} um in the netlist",
        "the layer that blocks silicide is longer or shorter",
        ids,
        drawn,
    )


def _outside_of_deep_wells(drawn: list[ExtractedDevice], expected: list[ReferenceDevice]) -> LvsMismatch | None:
    """Return the mismatch of devices that the netlist puts in a deep well and the layout does not.

    Where it puts some of them there, and all are as large as it says, as much of their area must lie there.
    """
    wanted = [each for each in expected if each.in_deep_well]
    fingers = [finger for device in drawn for finger in device.fingers]
    outside = [finger for finger in fingers if not finger.in_deep_well]
    whole = sum(finger.w_um * finger.l_um for finger in fingers)
    inside = whole - sum(finger.w_um * finger.l_um for finger in outside)
    needed, every = (sum(each.drawn_area_um2 for each in several) for several in (wanted, expected))
    if not wanted or not outside or (inside and abs(whole - every) > _CLEARLY * every):
        return None
    if inside >= needed * (1 - _CLEARLY):
        return None
    few = "fewer" if inside else "none"
    ids = tuple(each.id for each in wanted)
    return wrong_parameter(
        f"the netlist puts {listed(ids)} in a deep well; the layout has {few} there{at(outside[0].place)}",
        "the deep well is missing or does not cover the device",
        ids,
        drawn,
    )


def _rectangle_mismatches(
    drawn: list[ExtractedDevice], expected: list[ReferenceDevice], tolerance: float | None
) -> list[LvsMismatch]:
    """Return the mismatch of total area or perimeter, as stated or with each side on the grid, if there is any."""
    parts = [part for device in drawn for part in device.fingers]
    found = {
        "area": sum(part.w_um * part.l_um for part in parts),
        "perimeter": sum(2 * (part.w_um + part.l_um) for part in parts),
    }
    stated = {
        "area": sum(each.area_um2 for each in expected),
        "perimeter": sum(2 * (each.w_um + each.fingers * each.l_um) for each in expected),
    }
    snapped = {
        "area": sum(each.drawn_area_um2 for each in expected),
        "perimeter": sum(2 * (each.drawn_w_um + each.fingers * each.drawn_l_um) for each in expected),
    }
    kind = expected[0].kind
    allowed = {name: each if tolerance is None else tolerance for name, each in kind.compared.items()}
    if all(any(_agree(found[name], goal[name], each) for goal in (stated, snapped)) for name, each in allowed.items()):
        return []
    units = sum(each.fingers for each in expected)
    ids = tuple(each.id for each in expected)
    return [
        wrong_parameter(
            f"{listed(ids)} has an area of {found['area']:g} um2 and a perimeter of {found['perimeter']:g} um in the "
            f"layout ({counted(len(parts), 'part')}{at(drawn[0].place)}), {stated['area']:g} um2 and "
            f"{stated['perimeter']:g} um in the netlist (m = {units})",
            "a wrong size" if len(parts) == units else "a wrong number of units in parallel, or a wrong size",
            ids,
            drawn,
        )
    ]


def _wrong_width(drawn: list[ExtractedDevice], expected: list[ReferenceDevice]) -> LvsMismatch:
    if not drawn[0].kind.is_mos:
        return _wrong_passive(drawn, expected)
    fingers = sum(len(device.fingers) for device in drawn)
    width, goal = sum(device.w_um for device in drawn), sum(member.w_um for member in expected)
    wanted = sum(member.fingers for member in expected)
    return wrong_parameter(
        f"W of {listed(member.id for member in expected)} is {width:g} um in the layout "
        f"({counted(fingers, 'finger')}{at(drawn[0].place)}), {goal:g} um in the netlist ({counted(wanted, 'finger')})",
        "wrong finger width" if fingers == wanted else "a wrong number of fingers or units",
        [member.id for member in expected],
        drawn,
    )


def _wrong_length(drawn: ExtractedDevice, expected: list[ReferenceDevice]) -> LvsMismatch:
    if not drawn.kind.is_mos:
        return _wrong_passive([drawn], expected)
    lengths = listed(f"{length:g}" for length in sorted({member.l_um for member in expected}))
    return wrong_parameter(
        f"L of {listed(member.id for member in expected)} is {drawn.l_um:g} um in the layout "
        f"({counted(len(drawn.fingers), 'finger')}{at(drawn.place)}), {lengths} um in the netlist",
        "wrong gate length",
        [member.id for member in expected],
        [drawn],
    )


def _wrong_passive(drawn: list[ExtractedDevice], expected: list[ReferenceDevice]) -> LvsMismatch:
    """Return the mismatch of a resistor or capacitor, with what its shape says about the cause."""
    ids = tuple(member.id for member in expected)
    width, goal = sum(device.w_um for device in drawn), sum(member.w_um for member in expected)
    length, goal_length = drawn[0].l_um, expected[0].l_um
    parts, units = sum(len(device.fingers) for device in drawn), sum(member.fingers for member in expected)
    return wrong_parameter(
        f"{listed(ids)} is W {width:g} um, L {length:g} um in all in the layout ({counted(parts, 'part')}"
        f"{at(drawn[0].place)}), W {goal:g} um, L {goal_length:g} um in the netlist (m = {units})",
        _passive_cause(width / goal, length / goal_length, parts / units),
        ids,
        drawn,
    )


def _passive_cause(width: float, length: float, parts: float) -> str:
    """Return the likely cause from the width, length and number of parts, each relative to the netlist."""
    right_width, right_length = abs(width - 1) < _CLEARLY, abs(length - 1) < _CLEARLY
    if right_width and not right_length:
        short = "bars in series are missing or shorted, or core or plate is too short"
        return short if length < 1 else "too many bars in series, or core or plate is too long"
    if right_length and abs(width - parts) < _CLEARLY:
        return "a wrong number of units in parallel, or one that is not connected"
    if right_length:
        return "bars or plates of a wrong width, or a wrong number of them in parallel"
    return "bars or plates of a wrong width and length"


def _undrawn(expected: list[ReferenceDevice]) -> LvsMismatch:
    ids = tuple(member.id for member in expected)
    return LvsMismatch(
        "missing_device",
        f"{listed(ids)} (L {expected[0].l_um:g} um) is missing: "
        "the netlist has it in parallel with what is drawn there",
        "it was not drawn, or all in parallel were drawn with one length",
        ids,
    )


def _width_agrees(width: float, expected: list[ReferenceDevice], tolerance: float) -> bool:
    goals = (sum(member.w_um for member in expected), sum(member.drawn_w_um for member in expected))
    return any(_agree(width, goal, tolerance) for goal in goals)


def _declared(expected: Sequence[ReferenceDevice], name: str) -> float:
    return expected[0].kind.compared.get(name, SIZE_TOLERANCE) if expected else SIZE_TOLERANCE


def _agree(value: float, goal: float, tolerance: float) -> bool:
    return abs(value - goal) <= tolerance * goal + 1e-6


MAX_VISITS = 10_000_000  # links looked at, some ten seconds


class GaveUpError(Exception):
    """The circuits are too symmetric to decide within ``MAX_VISITS``."""


def renaming(
    ours: Sequence[ComparedDevice[int]],
    theirs: Sequence[ComparedDevice[str]],
    pins: Mapping[int, str],
    hints: Mapping[Any, Hashable] | None = None,
) -> dict[int, str] | None:
    """Return a renaming of our nets under which our cells are exactly theirs, or None where there is none.

    Args:
        ours: Cells on nets by number.
        theirs: Cells on nets by name.
        pins: Our nets that have to be the nets of these names.
        hints: What nets of both are like; of nets that could be each other, those with equal hints are tried first.

    Raises:
        GaveUpError: If neither was found in reasonable time.
    """
    nets = list(dict.fromkeys(net for cell in ours for _, net in cell.ends))
    names = list(dict.fromkeys(name for cell in theirs for _, name in cell.ends))
    if len(ours) != len(theirs) or len(nets) != len(names):
        return None
    named = set(pins.values())
    marks: list[Hashable] = [*map(pins.get, nets), *(name if name in named else None for name in names)]
    marks += [("cell", cell.label) for side in (ours, theirs) for cell in side]
    numbers: dict[Hashable, int] = {}
    colours = [numbers.setdefault(mark, len(numbers)) for mark in marks]  # those of nets first
    count = len(nets)
    own = [vertex < count or 2 * count <= vertex < 2 * count + len(ours) for vertex in range(len(marks))]
    classes = ColourClasses(links_of([*ours, *theirs], [*nets, *names]), colours)
    found = _Search(own, [(hints or {}).get(net) for net in (*nets, *names)]).run(classes)
    if found is None:
        return None
    pairs = (found.members(first) for first in range(0, 2 * count, 2))
    return {nets[min(pair)]: names[max(pair) - count] for pair in pairs}


class _Search:
    """Splits the classes of two circuits until each class of nets has one net of ours and one of theirs.

    ``own`` states whether each vertex is ours; the first are nets, ours before theirs, each with its hint.
    """

    def __init__(self, own: Sequence[bool], hints: Sequence[Hashable]) -> None:
        self.own, self.hints, self.nets = own, hints, len(hints)
        self.visits = 0

    def run(self, classes: ColourClasses) -> ColourClasses | None:
        """Refine, single out, and go back where that fails; depth first without recursion."""
        classes.refine()
        untried = [iter([classes] if self._balanced(classes, classes.size) else [])]
        begin = [0]  # classes before it have one net of ours each
        while untried:
            found = next(untried[-1], None)
            if found is None:
                untried.pop()
                begin.pop()
                continue
            first = begin[-1]
            while first < self.nets and found.size[first] == 2:
                first += 2
            if first == self.nets:
                return found
            untried.append(self._singled_out(found, first))
            begin.append(first)
        return None

    def _balanced(self, classes: ColourClasses, some: Iterable[int]) -> bool:
        """Whether as many vertices of some classes are ours as are theirs."""
        return all(2 * sum(self.own[v] for v in classes.members(first)) == classes.size[first] for first in set(some))

    def _singled_out(self, classes: ColourClasses, first: int) -> Iterator[ColourClasses]:
        """Yield the classes after one net of ours and each of theirs in turn became a class, where they are alike."""
        members = sorted(classes.members(first))
        theirs = [vertex for vertex in members if not self.own[vertex]]
        known = {self.hints[vertex] for vertex in theirs}
        chosen = min(members, key=lambda vertex: (not self.own[vertex], self.hints[vertex] not in known))
        for other in sorted(theirs, key=lambda vertex: self.hints[vertex] != self.hints[chosen]):
            split = classes.copy()
            changed = split.single_out([chosen, other])
            self.visits += split.visits - classes.visits
            if self.visits > MAX_VISITS:
                raise GaveUpError
            if self._balanced(split, changed):
                yield split
