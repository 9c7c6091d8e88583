"""Findings on symmetry: devices about their common axis, and nets that are images of each other."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cached_property
from operator import sub
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.parasitics.capacitance import capacitances
from layoutkit.parasitics.net_network import NetParasitics, layout_networks, pair_mismatches
from layoutkit.parasitics.net_shapes import net_shapes
from layoutkit.review.finding import Unjudged
from layoutkit.review.matched_devices import is_gate
from layoutkit.review.matched_roles import (
    FAR,
    are_mixed,
    are_moved,
    axis_of,
    set_by_logic,
    signal_halves,
    without_current,
)
from layoutkit.review.subject import box_around, gap_between, region_of, turned, wire_length

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from layoutkit.circuit.constraints import Constraints, SymmetryGroup
    from layoutkit.parasitics.net_shapes import Capacitances
    from layoutkit.review.finding import Remark
    from layoutkit.review.matched_roles import Axis, MatchedDevices, Pair
    from layoutkit.review.subject import PlacedDevice, Subject


class SymmetryReview:
    """The findings on symmetry of one layout.

    Args:
        subject: The layout.
        groups: Its matched groups.
        cells: The cell of an array that a device is in, by its index: each has an axis of its own.
    """

    def __init__(self, subject: Subject, groups: Sequence[MatchedDevices], cells: Mapping[int, int]) -> None:
        self.subject, self.groups = subject, groups
        self._cell = cells

    def findings(self) -> Iterator[Remark]:
        """Yield all findings."""
        by_name = self.subject.by_name
        ratios = [{*group.devices} for group in self.groups if group.devices[0].device.type == "resistor"]
        for structure in (*self._suggested, *self._halves):
            members: dict[int | None, tuple[list[Pair], list[PlacedDevice]]] = defaultdict(lambda: ([], []))
            drawn = [(by_name[a], by_name[b]) for a, b in structure.pairs if a in by_name and b in by_name]
            for pair in (*drawn, *self._hung_on(structure.net_pairs)):
                cells = {self._cell.get(placed.index) for placed in pair}
                banked = any(own > {*pair} for own in ratios)  # in a bank about its own centre
                if pair[0] is not pair[1] and len(cells) == 1 and pair[0].device.type != "diode" and not banked:
                    members[cells.pop()][0].append(pair)
            alone = [by_name[name] for name in structure.self_symmetric if name in by_name]
            alone = [placed for placed in alone if placed.device.is_mos and placed.id not in self._banked]
            members[None][1].extend(placed for placed in alone if placed.index not in self._cell)
            for pairs, alone in members.values():
                yield from self.axis(pairs, alone) if pairs else ()
        yield from self.apart()
        unequal = list(self.net_pairs())
        yield from unequal
        yield from self.unlike_wires({frozenset(each.nets) for each in unequal})

    def _hung_on(self, nets: Iterable[tuple[str, str]]) -> Iterator[Pair]:
        """Yield the capacitors of no pair that are alone of their size on two nets that are images, one on each.

        Their other plates may be on unlike nets, as those of a feedback and of its copy to a reference are.
        """
        banked = {placed for group in self.groups for placed in group.devices}
        free = [p for p in self.subject.placed if p.device.type == "capacitor" and p not in banked]
        free = [p for p in free if p.id not in self.images and not self.subject.is_idle(p)]
        for pair in nets:
            on: dict[object, list[tuple[str, PlacedDevice]]] = defaultdict(list)
            for placed in (p for p in free if len(p.ends.intersection(pair)) == 1):
                on[placed.device.model, placed.area].append((next(iter(placed.ends.intersection(pair))), placed))
            for (net, one), *others in on.values():
                if [own for own, _ in others] == [other for other in pair if other != net]:
                    yield one, others[0][1]

    def apart(self) -> Iterator[Remark]:
        """Yield the images that lie apart: two transistors that are no switches or logic, or two resistors."""
        subject, roles = self.subject, self.subject.roles
        said = {name for each in roles.groups if each.type in _SAID for name in each.devices}
        said |= subject.both_ways | set_by_logic(subject) | without_current(subject)
        said.update(placed.id for stage in subject.stages if is_gate(stage) for placed in stage)
        said.update(p.id for p in subject.placed if p.device.terminals.get("g") in roles.clocks or subject.is_idle(p))
        parts = (p for p in subject.placed if p.device.is_mos or p.device.type == "resistor")
        for placed in (p for p in parts if p.id not in said):
            for image in (each for each in subject.images(placed) if placed.index < each.index):
                gap = subject.um(min(gap_between(one, other) for one in placed.boxes for other in image.boxes))
                why = f"{placed.id} and {image.id}, halves that must match, lie {gap:.3g} um apart"
                yield from subject.finding(
                    "group-apart.halves", gap, why, devices=[placed, image], cause="halves apart"
                )

    @cached_property
    def _banked(self) -> set[str]:
        """The transistors that are centred in the bank of their mirror, not on an axis."""
        groups = [each.devices for each in self.subject.roles.groups if each.type in _BANKS]
        return {name for names in groups if len(self.subject.devices(names)) > 1 for name in names}

    def axis(self, pairs: Sequence[Pair], alone: Sequence[PlacedDevice]) -> list[Remark]:
        """Return whether devices of a symmetric structure are off their common axis.

        Other stages that lie beside those on the axis have one of their own.
        """
        if are_moved(pairs, self.subject.limits["axis"].should or 0.0, self.subject.technology.dbu_um):
            return []
        best = min((axis_of(pairs, alone, upright=upright) for upright in (True, False)), key=self._badness)
        beside = self._beside(best)
        if beside:
            parts = [(pairs, alone)]
            for block in beside:
                parts.append(([p for p in pairs if p in block], [p for p in alone if (p,) in block]))
                parts[0] = ([p for p in parts[0][0] if p not in block], [p for p in parts[0][1] if (p,) not in block])
            return [each for pairs, alone in parts if pairs for each in self.axis(pairs, alone)]
        mixed = [(are_mixed(*devices), error) for error, devices in best.errors if len(devices) > 1]
        # Pairs about one centre have no axis that others must keep.
        centred = any(is_mixed for is_mixed, _ in mixed) and not any(e <= FAR for is_mixed, e in mixed if not is_mixed)
        if centred and sum(error <= FAR for error, _ in best.errors) <= 1:
            return []  # an axis of one centre
        strict = [e for e in best.errors if not centred and self._is_strict(e[1]) and self._is_measured(*e[1])]
        strict = [each for each in strict if not self._is_moved(each[1], pairs)]
        others = [each for each in best.errors if each not in strict and not (centred and len(each[1]) == 1)]
        return [*self._off_axis("axis", best, strict), *self._off_axis("axis.tail", best, others)]

    def _is_moved(self, devices: Sequence[PlacedDevice], pairs: Sequence[Pair]) -> bool:
        """Return whether a pair is of those, in one half and moved by one step in the other, that make up a block."""
        limit, dbu_um, step = self.subject.limits["axis"].should or 0.0, self.subject.technology.dbu_um, _step(devices)
        return are_moved([p for p in pairs if max(map(abs, map(sub, _step(p), step))) * dbu_um <= limit], limit, dbu_um)

    def _beside(self, axis: Axis) -> list[list[tuple[PlacedDevice, ...]]]:
        """Return the blocks of other stages, none of which is near an axis, that lie beside all that is near it."""
        blocks: list[tuple[set[int | str], list[tuple[float, tuple[PlacedDevice, ...]]]]] = []
        for each in axis.errors:
            stages = {stage for placed in each[1] for stage in self._stages(placed)}
            joined = [block for block in blocks if block[0] & stages]
            whole = stages.union(*(own for own, _ in joined)), [each, *(one for _, own in joined for one in own)]
            blocks = [block for block in blocks if block not in joined] + [whole]
        spans = [turned(box_around(p.box for _, d in own for p in d), upright=not axis.upright) for _, own in blocks]
        on_it = [any(error <= FAR and len(devices) > 1 for error, devices in own) for _, own in blocks]
        if not any(on_it):  # the middle of blocks is the axis of none
            largest = max(range(len(blocks)), key=lambda each: (len(blocks[each][1]), -each))
            on_it[largest] = True
        near = box_around(span for span, on in zip(spans, on_it, strict=True) if on)
        return [
            [devices for _, devices in own]
            for (_, own), span, on in zip(blocks, spans, on_it, strict=True)
            if not on and (span.right < near.left or near.right < span.left)
        ]

    def _stages(self, placed: PlacedDevice) -> set[int | str]:
        """Return the stages that a device is in, or its nets that no channel is on."""
        nets = {net for net in placed.ends if net not in self.subject.supplies}
        return {self._stage_on.get(net, net) for net in nets} or {-1 - placed.index}

    @cached_property
    def _stage_on(self) -> dict[str, int]:
        stages = enumerate(self.subject.stages)
        return {net: number for number, stage in stages for placed in stage for net in placed.ends}

    def _badness(self, axis: Axis) -> tuple[int, int, float]:
        """Return how many pairs, then how many pairs and single devices, are far off; and the sum of all errors."""
        across = int(not axis.upright)  # two beside each other on a line are not at its two sides
        ways = [(error, devices, [abs(each) for each in _step(devices)]) for error, devices in axis.errors]
        far = [devices for error, devices, way in ways if error > FAR or way[across] < way[1 - across]]
        return sum(map(self._is_strict, far)), len(far), sum(error for error, _ in axis.errors)

    def _is_strict(self, devices: Sequence[PlacedDevice]) -> bool:
        hung = devices[0].device.type == "capacitor" and devices[0].id not in self.images
        hung |= devices[0].id in without_current(self.subject)
        return len(devices) > 1 and not (hung or self._switches(devices) or are_mixed(*devices))

    def _is_measured(self, one: PlacedDevice, other: PlacedDevice) -> bool:
        """Return whether two devices share a net or are on images: behind the mirrors of a stage the halves differ."""
        ends = [
            {net for end, net in p.device.terminals.items() if end != "b" or not p.device.is_mos} for p in (one, other)
        ]
        return bool(ends[0] & ends[1]) or any(self._are_images(a, b) for a in ends[0] for b in ends[1])

    def _off_axis(
        self, name: str, axis: Axis, errors: Sequence[tuple[float, tuple[PlacedDevice, ...]]]
    ) -> list[Remark]:
        """Return whether devices miss their axis by more than the limit of this name."""
        subject, limit = self.subject, self.subject.limits[name]
        off = [(error, devices) for error, devices in errors if limit.beyond(subject.um(error))]
        if not off:
            return []
        worst, devices = max(off, key=lambda each: (each[0], each[1][0].index))
        every = subject.devices(part for _, members in off for placed in members for part in placed.names)
        names = ", ".join(sorted({"/".join(placed.id for placed in members) for _, members in off}))
        line = f"the {'vertical' if axis.upright else 'horizontal'} axis at {subject.um(axis.place):.3f} um"
        misses, are = ("miss", ", or are unlike each other,") if len(every) > 1 else ("misses", "")
        by = f"by {'up to ' * (len(off) > 1)}{subject.um(worst):.3g} um"
        why = f"{names} {misses} {line}{are} {by}"
        return subject.finding(name, subject.um(worst), why, where=box_around(p.box for p in devices), devices=every)

    def _switches(self, devices: Sequence[PlacedDevice]) -> bool:
        """Tell switches: both ways, or at a supply with a port, supply or inverter at the gate."""
        if all(placed.id in self.subject.both_ways for placed in devices):
            return True
        circuit, nets = self.subject.circuit, [placed.device.terminals for placed in devices]
        gate, groups = nets[0].get("g"), self.subject.roles.groups  # a bipolar transistor has none, but may have an s
        if gate is None or any(net.get("g") != gate or net["s"] not in self.subject.supplies for net in nets):
            return False
        mirrored = {str(each.properties.get("common_gate")) for each in groups if each.type == "current_mirror"}
        held = gate in circuit.ports or gate in self.subject.supplies or gate in self.subject.inverted
        return gate not in mirrored and held

    @cached_property
    def _structure(self) -> Constraints:
        """The structure of the circuit and its other halves."""
        return replace(self.subject.structure, symmetry=(*self._suggested, *self._halves))

    @cached_property
    def _suggested(self) -> list[SymmetryGroup]:
        """The symmetric structures of the circuit that are no logic."""
        logic = set_by_logic(self.subject)
        return [each for each in self.subject.structure.symmetry if logic.isdisjoint(each.sides)]

    @cached_property
    def _halves(self) -> list[SymmetryGroup]:
        """The halves that carry one signal and are in no structure of the circuit."""
        return list(signal_halves(self.subject))

    @cached_property
    def images(self) -> dict[str, str]:
        """Each device of a symmetric pair or of two halves, mapped to its image."""
        pairs = [pair for group in self._structure.symmetry for pair in group.pairs]
        return {one: other for a, b in pairs for one, other in ((a, b), (b, a))}

    def _images(self, placed: PlacedDevice) -> list[PlacedDevice]:
        return self.subject.devices(self.images[n] for n in placed.names if n in self.images)

    def net_pairs(self) -> Iterator[Remark]:
        """Yield the pairs of nets that differ electrically."""
        subject = self.subject
        structure = self._structure
        every = {pair for group in structure.symmetry for pair in group.net_pairs}
        wanted = sorted(pair for pair in every if self._are_images(*pair))
        if not wanted:
            return
        numbers = {subject.number[net] for pair in wanted for net in pair}
        unlike = {subject.number[net] for pair in wanted if not self._drawn_as_images(*pair) for net in pair}
        starts = {number: first for number in unlike if (first := self._first_terminal(number)) is not None}
        networks, unchecked = layout_networks(subject.found, unlike, starts)
        capacitance = wire_capacitances(subject, numbers)
        subject.unjudged += [Unjudged("net-pair", reason) for reason in sorted({*unchecked, *capacitance.unchecked})]
        coupling: dict[int, dict[str, float]] = {number: {} for number in numbers}
        for (one, other), value in capacitance.coupling_fF.items():
            for here, there in ((one, other), (other, one)):
                if here in coupling:
                    coupling[here][subject.found.nets[there]] = value
        ground, names = capacitance.ground_fF, subject.found.nets
        nets = [NetParasitics(names[n], ground.get(n, 0.0), coupling[n]) for n in sorted(numbers)]
        named = {subject.found.nets[n]: replace(each, nodes=self._carrying(each.nodes)) for n, each in networks.items()}

        def in_order(pair: tuple[str, str]) -> tuple[str, str]:
            one, other = sorted(pair, key=subject.number.__getitem__)
            return one, other

        judged = tuple(
            replace(
                group,
                pairs=tuple((self._places.get(a, a), self._places.get(b, b)) for a, b in group.pairs),
                net_pairs=tuple(in_order(pair) for pair in group.net_pairs if pair in wanted),
            )
            for group in structure.symmetry
        )
        for pair in pair_mismatches(replace(structure, symmetry=judged), nets, named):
            box = self._around(pair.nets)
            difference_ff = abs(pair.total_fF[0] - pair.total_fF[1])
            yield from self._unequal("capacitance", pair.capacitance_percent, pair.nets, box, difference_ff)
            if pair.resistance_percent is not None:
                ohm = pair.resistance_difference_ohm
                yield from self._unequal("resistance", pair.resistance_percent, pair.nets, box, ohm)

    def unlike_wires(self, told: Collection[frozenset[str]]) -> Iterator[Remark]:
        """Yield the nets of both halves whose wires have different lengths or conductors, but for some pairs.

        Plates hide what is below them, so that capacitances do not say it of nets of capacitors.
        """
        subject = self.subject
        known = (pair for pair in self.counterparts if pair not in told)
        for one, other in sorted(sorted(pair, key=subject.number.__getitem__) for pair in known):
            if not self._carry_alike(one, other):
                continue
            here, there = self._lengths(one), self._lengths(other)
            differ = {name: here.get(name, 0.0) - there.get(name, 0.0) for name in {**here, **there}}
            most = sorted(differ, key=lambda name: -abs(differ[name]))[:2]
            unlike = sum(map(abs, differ.values()))
            share = 2 * unlike / (sum(here.values()) + sum(there.values()) or 1.0)
            layers = (f"{here.get(each, 0):.3g} um of {each} against {there.get(each, 0):.3g} um" for each in most)
            why = f"{one} and {other}, counterparts in two halves, are wired differently: {', '.join(layers)}"
            yield from subject.finding(
                "net-pair.wires", share if unlike > _UNLIKE_UM else 0.0, why,
                where=self._around((one, other)), nets=[one, other], cause="wires",
            )  # fmt: skip

    @cached_property
    def counterparts(self) -> set[frozenset[str]]:
        """The pairs of signals of halves: of symmetric structures, of pairs of devices, and tails of equal pairs."""
        subject, tails = self.subject, defaultdict[object, list[str]](list)
        pairs = {frozenset(pair) for group in self._structure.symmetry for pair in group.net_pairs}
        modules = [subject.devices(m.devices) for m in subject.roles.groups if m.type == "differential_pair"]
        modules = [own for own in modules if set_by_logic(subject).isdisjoint(p.id for p in own)]
        groups = [[*group.devices] for group in self.groups if group.words in _PAIRS]
        for devices in (each for each in modules + groups if len(each) == 2):
            nets = [placed.device.terminals for placed in devices]
            pairs |= {frozenset(net[end] for net in nets if end in net) for end in ("g", "d", "b", "c")}
            if (tail := nets[0].get("s")) == nets[1].get("s") and tail not in tails[_form(devices)]:
                tails[_form(devices)].append(str(tail))
        pairs |= {frozenset(each) for each in tails.values() if len(each) == 2}
        known = subject.number.keys() - subject.supplies.nets
        return {pair for pair in pairs if len(pair) == 2 and pair <= known}

    def _carry_alike(self, one: str, other: str) -> bool:
        """Return whether two nets have ends and gates of one size each, unlike the diode of a mirror and its output."""
        ends, gates = [0, 0], [0, 0]
        for placed in (each for each in self.subject.placed if each.device.type != "capacitor"):
            for number, net in enumerate((one, other)):
                ends[number] += placed.area * (net in placed.ends)
                gates[number] += placed.area * (net == placed.device.terminals.get("g"))
        return all(max(sizes) <= _SAME_SIZE * min(sizes) for sizes in (ends, gates))

    def _lengths(self, net: str) -> dict[str, float]:
        """Return the length of the wires of a net on each conductor, away from the plates of its capacitors. [um]"""
        subject, reach = self.subject, self.subject.technology.to_dbu(_PLATE_UM)
        own = (p for p in subject.placed if p.device.type == "capacitor" and net in p.ends)
        plates = region_of(box.enlarged(reach) for placed in own for box in placed.boxes)
        wires = {name: (metal - plates).each() for name, metal in subject.metal(net).items()}
        return {name: subject.um(sum(map(wire_length, pieces))) for name, pieces in wires.items()}

    def _around(self, nets: Sequence[str]) -> kdb.Box:
        """Return the box around the metal of some nets. [dbu]"""
        return box_around(self.subject.shapes(net, name).bbox() for net in nets for name in self.subject.metal(net))

    def _carrying(self, nodes: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], str]:
        """Return the nodes of terminals that carry a direct current: what leads to a gate costs no voltage."""
        return {
            (self._places.get(name, name), self._end(name, end)): node
            for (name, end), node in nodes.items()
            if end != "g"
        }

    def _first_terminal(self, number: int) -> tuple[str, str] | None:
        """Return the terminal of a net to measure from: that of a pair, so that images are measured from images."""
        carrying = (each for each in self.subject.found.feeds[number] if each[1] != "g")
        return min(carrying, key=lambda each: (self._places.get(each[0], each[0]), self._end(*each)), default=None)

    @cached_property
    def _places(self) -> dict[str, str]:
        """What devices are called by their places and those of their images, so that images are measured alike."""
        found: dict[str, str] = {}
        for placed in self.subject.placed:
            pair = min([placed.index, *(image.index for image in self._images(placed))])
            found |= dict.fromkeys((placed.key, *placed.names), f"{pair:06d}/{int(placed.index != pair)}")
        return found

    def _drawn_as_images(self, one: str, other: str) -> bool:
        """Return whether the wires of two nets, and where devices meet them, are each other's image, as R is then."""
        names = ("poly", "contact", *(name for name, _ in self.subject.metal_layers))
        here, there = ([self.subject.shapes(net, name) for name in names] for net in (one, other))
        box, its = (box_around(region.bbox() for region in regions) for regions in (here, there))
        if (box.width(), box.height()) != (its.width(), its.height()):
            return False
        if any(a.count() != b.count() or a.area() != b.area() for a, b in zip(here, there, strict=True)):
            return False
        for turn in (kdb.Trans.R0, kdb.Trans.M90, kdb.Trans.M0, kdb.Trans.R180):
            moved = kdb.Trans(box.p1 - its.transformed(turn).p1) * turn
            if all((a ^ b.transformed(moved)).is_empty() for a, b in zip(here, there, strict=True)):
                return self._fed_as_images(one, other, moved)
        return False

    def _fed_as_images(self, one: str, other: str, moved: kdb.Trans) -> bool:
        """Return whether devices meet a net where their images meet another one, which is moved onto it."""
        fed = self.subject.feeds(other)
        for (placed, terminal), feeds in self.subject.feeds(one).items():
            image = next(iter(self._images(placed)), placed)
            its = fed.get((image, terminal))
            points = {(p.x, p.y) for p in feeds.points}
            if its is None or points != {(p.x, p.y) for p in (moved * kdb.Point(q.x, q.y) for q in its.points)}:
                return False
        return True

    def _are_images(self, one: str, other: str) -> bool:
        """Return whether two nets join the same terminals on both sides, so that they can be equal."""
        circuit, images = self.subject.circuit, self.images
        if not {one, other} <= self.subject.number.keys() or (one in circuit.ports) != (other in circuit.ports):
            return False
        here, there = (
            sorted(
                (self._as_image(each.device, known), self._end(each.device, each.terminal))
                for each in circuit.nets[net]
            )
            for net, known in ((one, images), (other, {}))
        )
        return here == there

    def _as_image(self, name: str, known: Mapping[str, str]) -> str:
        """Return the image of a device; capacitors without one are images of equal ones."""
        device = self.subject.circuit.device(name)
        if device.type == "capacitor" and name not in self.images:
            return f"{device.model} {sorted(device.params.items())}"
        return known.get(name, name)

    def _end(self, name: str, terminal: str) -> str:
        """Return a terminal of a device, one name for both ends where either may be the drain."""
        placed = self.subject.by_key.get(name) or self.subject.by_name.get(name)
        if placed is None or terminal not in placed.device.kind.ends:
            return terminal
        turns = placed.device.kind.exchangeable and (not placed.device.is_mos or placed.id in self.subject.both_ways)
        return "" if turns else terminal

    def _unequal(
        self, figure: str, percent: float, nets: Sequence[str], box: kdb.Box, difference: float
    ) -> list[Remark]:
        one, other = nets
        why = f"{one} and {other} are images of each other and differ by {percent:.3g} % in {figure}"
        return self.subject.finding(
            f"net-pair.{figure}",
            percent / 100,
            why,
            where=box,
            nets=nets,
            must=figure == "capacitance" or not all(map(self._only_passes_current, nets)),
            cause=figure,
            difference=difference,
        )

    def _only_passes_current(self, net: str) -> bool:
        """Return whether an inner net leads currents from drains to sources, whose voltage nothing senses."""
        circuit = self.subject.circuit
        ends = {(circuit.device(end.device).is_mos, end.terminal) for end in circuit.nets[net]}
        switched = any(end.device in self.subject.both_ways for end in circuit.nets[net])
        return ends == {(True, "d"), (True, "s")} and net not in circuit.ports and not switched


def wire_capacitances(subject: Subject, numbers: Collection[int]) -> Capacitances:
    """Return the capacitances of nets, from their shapes and those of others as far as the fields of these reach."""
    shapes, shielding = net_shapes(subject.extraction), subject.technology.parasitics.shielding
    if 2 * len(numbers) > len(subject.nets):  # looking for what is near would cost more than it saves
        return capacitances(shapes, subject.technology, _DEPTH)
    reach = subject.technology.to_dbu(_REACH_UM if shielding is None else shielding.reach_um)
    near = kdb.Region()
    for nets in shapes.levels.values():
        for number, region in nets.items():
            if number in numbers:
                near += region.sized(reach)
    near.merge()
    levels = {
        name: {net: part for net, region in nets.items() if not (part := region & near).is_empty()}
        for name, nets in shapes.levels.items()
    }
    return capacitances(replace(shapes, levels=levels), subject.technology, _DEPTH)


def _step(devices: Sequence[PlacedDevice]) -> tuple[float, float]:
    """Return the way from the left one of two devices to the other, none for a single one. [dbu]"""
    one, other = sorted((devices[0].centre, devices[-1].centre))
    return other[0] - one[0], other[1] - one[1]


def _form(devices: Sequence[PlacedDevice]) -> object:
    """Return what equal pairs have in common: type and area of their channels."""
    return devices[0].device.type, min(placed.area for placed in devices)


_PAIRS = frozenset({"differential pair", "cross-coupled pair"})
_SAID = frozenset({"differential_pair", "inverter", "switch_pair"})  # judged elsewhere, or no halves
_BANKS = frozenset({"current_mirror", "cascode_pair"})
_PLATE_UM = 2.0  # from a plate to the edge of its metal [um]
_UNLIKE_UM = 3.0  # wires that differ by less are alike [um]
_SAME_SIZE = 1.2  # times by which devices on two nets may differ that carry the same current
_DEPTH = 2  # levels up and down whose capacitance counts
_REACH_UM = 8.0  # of the fields of wires, where the technology does not say [um]
