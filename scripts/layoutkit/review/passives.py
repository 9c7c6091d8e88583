"""Findings on resistors and capacitors whose ratio counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import dist, sqrt
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.circuit.recognise import MODULE_TYPES
from layoutkit.review.matched_devices import MOST_PARTS, ratio_apart, widest_gap
from layoutkit.review.matched_roles import MatchedDevices, are_mixed, without_current
from layoutkit.review.repeated_cells import off_pitch
from layoutkit.review.subject import box_around, centre_of, gap_between, names_of, region_of, turned
from layoutkit.review.symmetric_halves import wire_capacitances
from layoutkit.technology.passive_sizes import capacitance

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.review.finding import Remark
    from layoutkit.review.subject import PlacedDevice, Subject

_BANK_UM = 5.0
"""Gap within which bars and plates are one bank. [um]"""
_ROWS_UM = 20.0
"""Gap between the rows of one array, where wires may lie. [um]"""
_ARRAYS_UM = 10.0  # gap that may part two arrays [um]
_MATRIX = 4
"""Rows and columns from which on plates at one pitch are an array without a frame of dummies."""
_END_UM = 2.0
"""Distance from a bank within which a bar guards its end. [um]"""
_LONG_STRING = 4  # bars of a string that divides a voltage or sets a gain as a rule
_STRING = "the bars of resistor"
_RATIO = MODULE_TYPES["resistor_ratio"].words
_COPIED = "resistors on currents of one source"
_SQUARE = 0.9  # shorter over longer side of a bar that may lie in either direction
_SMALL_F = 1e-13  # of capacitors whose wires may matter [F]
_MOST_BANKS = 3  # equal capacitors on one net from which on their places are judged


class Passives:
    """The findings on resistors and capacitors of one layout.

    Args:
        subject: The layout.
        groups: Its matched groups.
        images: Each device of a pair that is symmetric, mapped to its image.
    """

    def __init__(self, subject: Subject, groups: Sequence[MatchedDevices], images: Mapping[str, str]) -> None:
        self.subject, self._images = subject, images
        self.bipolar = [each for each in groups if each.devices[0].device.type in {"npn", "pnp"}]
        passive = [each for each in groups if each.devices[0].device.type in {"resistor", "capacitor"}]
        drawn = (p for p in subject.placed if p.device.is_mos and p.id not in without_current(subject))
        lifted = {placed.device.terminals["b"] for placed in drawn} - subject.supplies.nets  # wells, by a bootstrap
        passive = [each for each in passive if any(lifted.isdisjoint(placed.ends) for placed in each.devices)]
        self.groups = [each for each in passive if not self._loads_a_ring(each)]

    def findings(self) -> Iterator[Remark]:
        """Yield all findings."""
        for group in self.groups:
            yield from self.banks(group) or self.apart(group)
            yield from self.unlike_units(group)
            yield from self.blocks(group)
            yield from self.bare_ends(group)
            if not any({*group.devices} < {*other.devices} for other in self.groups):  # else told of these
                yield from self.spare_units(group)
            yield from self.covered(group)
            yield from self.off_centre(group)
        for group in self.bipolar:
            yield from ratio_apart(self.subject, group, must=True)
        strings = list(self._strings())
        for group in self._copied(strings):
            yield from self.unlike_units(group)
            yield from self.banks(group)
        for chain in strings:
            yield from self.banks(chain)
            yield from self.unlike_units(chain) if self._divides(chain) else ()
            if self._sets_current(chain) or sum(len(placed.boxes) for placed in chain.devices) >= _LONG_STRING:
                yield from self.bare_ends(chain)
        yield from self.turned()
        yield from self.equal_apart()
        yield from self.strewn()
        yield from self.strays()

    def _loads_a_ring(self, group: MatchedDevices) -> bool:
        """Return whether the capacitors of a group load the stages of a ring, beside which each of them belongs."""
        rings = (each.properties["outputs"] for each in self.subject.roles.groups if each.type == "ring_stage")
        outputs = {net for stages in rings for nets in stages for net in nets}
        ends = (set(self._ends(placed)) for placed in group.devices)
        return all(nets & outputs and all(net in self.subject.supplies for net in nets - outputs) for nets in ends)

    def apart(self, group: MatchedDevices) -> list[Remark]:
        """Return whether other resistors or capacitors lie among those of a group."""
        subject, kind = self.subject, group.devices[0].device.type
        hull = box_around(placed.box for placed in group.devices)
        foreign = [placed for placed in subject.among(group.devices, group.relatives) if placed.device.type == kind]
        own = {(box.width(), box.height()) for placed in group.devices for box in placed.boxes}
        joints = {net for placed in group.devices for net in placed.ends} - subject.supplies.nets
        same = {placed.device.model for placed in group.devices}  # on a net of these, steps of one ladder
        if kind == "resistor":
            one, other = group.devices[0], group.devices[-1]
            gap = subject.um(min(gap_between(a, b) for a in one.boxes for b in other.boxes))
            if subject.images(one) == [other] and subject.limits["group-apart.halves"].beyond(gap):
                return []  # it is said that the halves lie apart
            foreign = [each for each in foreign if each.device.model not in same or not each.ends & joints]
        unlike = [each for each in foreign if not {(box.width(), box.height()) for box in each.boxes} <= own]
        foreign = unlike if kind == "capacitor" or group.words == _RATIO else foreign  # an equal one is a dummy
        why = f"{names_of(foreign)} lie{'s' * (len(foreign) == 1)} among {group.called}"
        return subject.finding(
            "group-apart", len(foreign), why, where=hull, devices=[*group.devices, *foreign],
            must=group.strict and bool(unlike),
        )  # fmt: skip

    def unlike_units(self, group: MatchedDevices) -> list[Remark]:
        """Return whether a group is drawn in unlike bars or plates; unlike lengths in no simple ratio are milder."""
        sizes = sorted(
            {tuple(sorted((round(f.w_um, 3), round(f.l_um, 3)))) for p in group.devices for f in p.fingers}
        )  # fmt: skip
        areas = [a * b for a, b in sizes]
        parts = [Fraction(area / areas[0]).limit_denominator(MOST_PARTS) for area in areas]
        even = all(abs(float(p) * areas[0] / a - 1) < 1e-3 for p, a in zip(parts, areas, strict=True))
        shown = ", ".join(f"{a:g} x {b:g} um" for a, b in sizes[:4])
        why = f"{group.called} {'are' if group.is_plural else 'is'} drawn in {len(sizes)} different units: {shown}"
        return self.subject.finding("passives", len(sizes) - 1, why, devices=group.devices, must=even and group.strict)

    def banks(self, group: MatchedDevices) -> list[Remark]:
        """Return whether a group lies in several places; resistors apart are milder than capacitors."""
        boxes = [box for placed in group.devices for box in placed.boxes]
        judged = group.strict or group.words in {_STRING, _RATIO, _COPIED}
        own = {placed.id for placed in group.devices if placed.device.type == "capacitor"}
        halves = own and all(self._images.get(name) in own for name in own)  # they may lie at both sides of the axis
        beside = len(boxes) == 2 and gap_between(*boxes) <= self.subject.technology.to_dbu(_ROWS_UM)
        halves = halves or (bool(own) and beside)  # two plates are no bank
        judged = judged and not halves
        banks = len(self._banks(boxes)) if judged and not self._array(group) else 1
        why = f"{group.called} {'are' if group.is_plural else 'is'} split over {banks} places"
        cure, must = "one bank, the units interleaved", group.strict and group.devices[0].device.type != "resistor"
        return self.subject.finding("passives", banks - 1, why, what_to_do=cure, devices=group.devices, must=must)

    def blocks(self, group: MatchedDevices) -> list[Remark]:
        """Return whether resistors in a ratio, of several bars each in one bank, stand side by side as blocks."""
        several = [p for p in group.devices if group.words == _RATIO and len(p.boxes) > 1]
        pairs = [(a, b) for a, b in combinations(several, 2) if not a.box.overlaps(b.box)]
        boxes = [box for placed in group.devices for box in placed.boxes]
        apart = max((dist(a.centre, b.centre) for a, b in pairs), default=0.0) if len(self._banks(boxes)) == 1 else 0.0
        why = f"{group.called} stand in blocks side by side: their centres lie {self.subject.um(apart):.3g} um apart"
        return self.subject.finding("passives.blocks", self.subject.um(apart), why, devices=group.devices)

    def turned(self) -> Iterator[Remark]:
        """Yield the resistors that lie across others of their kind."""
        kinds: dict[str, tuple[list[PlacedDevice], list[PlacedDevice]]] = {}
        for placed in self.subject.placed:
            if placed.device.type == "resistor" and not self.subject.is_idle(placed):
                sides = (placed.boxes[0].width(), placed.boxes[0].height())  # one of them is the length of the bar
                away = [abs(self.subject.um(side) - placed.fingers[0].l_um) for side in sides]
                if min(sides) <= _SQUARE * max(sides):  # a square has no direction
                    kinds.setdefault(placed.device.model, ([], []))[away[1] < away[0]].append(placed)
        for ways in kinds.values():
            few, others = sorted(ways, key=len)
            why = f"{names_of(few)} {'lies' if len(few) == 1 else 'lie'} across {names_of(others)} of the same kind"
            yield from self.subject.finding("passives.turned", len(few), why, devices=few)

    def _divides(self, chain: MatchedDevices) -> bool:
        """Return whether a gate or base senses a voltage between resistors of one width in series."""
        ends = Counter(net for placed in chain.devices for net in self._ends(placed))
        joints = [net for net, count in ends.items() if count > 1]
        sensed = (end.terminal in {"g", "b"} for net in joints for end in self.subject.circuit.nets[net])
        widths = {round(finger.w_um, 3) for placed in chain.devices for finger in placed.fingers}
        return len(widths) == 1 and any(sensed)

    def _copied(self, strings: Sequence[MatchedDevices]) -> Iterator[MatchedDevices]:
        """Yield each resistor that sets a current with those of its kind and width into which mirrors copy currents."""
        supplies, sources = self.subject.supplies.nets, set[str]()
        for module in self.subject.roles.groups:
            if module.type in {"current_mirror", "cascode_pair"}:
                ends = (end for name in module.devices for end in self.subject.circuit.device(name).terminals.items())
                sources |= {net for terminal, net in ends if terminal in {"d", "c"}}
        kinds: dict[tuple[object, ...], tuple[list[MatchedDevices], list[MatchedDevices]]] = {}
        for chain in strings:
            nets = {net for placed in chain.devices for net in self._ends(placed)}
            kind = (
                chain.devices[0].device.model,
                *sorted({round(f.w_um, 3) for p in chain.devices for f in p.fingers}),
            )
            setters, copies = kinds.setdefault(kind, ([], []))
            if self._sets_current(chain):
                setters.append(chain)
            elif nets & supplies and nets & (sources - supplies):
                copies.append(chain)
        for setters, copies in kinds.values():
            if setters and copies:
                devices = tuple(placed for chain in (*setters, *copies) for placed in chain.devices)
                yield MatchedDevices(_COPIED, False, devices, devices)

    def _array(self, group: MatchedDevices) -> list[kdb.Box]:
        """Return the plates of the array that a group fills at one pitch; none unless it is large or in a frame."""
        reaches = (self.subject.technology.to_dbu(gap) // 2 for gap in (_ROWS_UM, _ARRAYS_UM))
        return next((found for half in reaches if (found := self._array_within(group, half))), [])

    def _array_within(self, group: MatchedDevices, half: int) -> list[kdb.Box]:
        units = [box for placed in group.devices for box in placed.boxes]
        size = (units[0].width(), units[0].height())
        alike = {(box.left, box.bottom): box for box in units}
        kind = group.devices[0].device.type
        others = [box for placed in self.subject.placed if placed.device.type == kind for box in placed.boxes]
        others += self.subject.idle_passives(kind)  # as good as units of the group beside them
        idle = {(box.left, box.bottom): box for box in others if (box.width(), box.height()) == size}
        places = region_of(box.enlarged(half, half) for box in (alike | idle).values()).merged()
        (bank, *others) = [each.bbox() for each in places.each() if any(box.inside(each.bbox()) for box in units)]
        idle = {at: box for at, box in idle.items() if box.inside(bank)}
        columns, rows = (sorted({at[axis] for at in alike | idle}) for axis in (0, 1))
        steps = [{b - a for a, b in pairwise(line)} for line in (columns, rows)]
        frame = {(x, y) for x in columns for y in rows if x in (columns[0], columns[-1]) or y in (rows[0], rows[-1])}
        whole = len(alike | idle) == len(columns) * len(rows)
        filled = len(idle.keys() - alike.keys()) >= len(alike)  # dummies keep the pitch between the units
        bare = alike.keys() & frame and min(len(columns), len(rows)) < _MATRIX and not filled
        if others or not whole or max(map(len, steps)) > 1 or bare:
            return []
        return list((alike | idle).values())

    def _strings(self) -> Iterator[MatchedDevices]:
        """Yield the resistors that are in no group, those in series as one."""
        known = {placed.index for group in self.groups for placed in group.devices}
        free = [p for p in self.subject.placed if p.device.type == "resistor" and p.index not in known]
        ends = Counter(net for placed in free for net in self._ends(placed))
        parts = [[placed] for placed in free if not self.subject.is_idle(placed)]
        for net, count in ends.items():
            if count == 2 and net not in self.subject.supplies and self._is_tap(net):
                one = [part for part in parts if any(net in self._ends(placed) for placed in part)]
                if len(one) == 2 and len({placed.device.model for part in one for placed in part}) == 1:
                    parts = [part for part in parts if part not in one] + [one[0] + one[1]]
        for part in parts:
            devices = tuple(sorted(part, key=lambda placed: placed.index))
            yield MatchedDevices(_STRING, False, devices, devices)

    def _is_tap(self, net: str) -> bool:
        """Return whether nothing on a net but resistors can carry a direct current."""
        ends = ((self.subject.circuit.device(end.device), end.terminal) for end in self.subject.circuit.nets[net])
        still = {"resistor", "capacitor", "diode"}
        others = (end for device, end in ends if device.type not in still)
        return net not in self.subject.circuit.ports and all(end in {"g", "b"} for end in others)

    def _sets_current(self, chain: MatchedDevices) -> bool:
        """Return whether a resistor sets a current: at a mirror's diode, below a transistor of it, at a junction."""
        subject, ends = self.subject, {net for placed in chain.devices for net in self._ends(placed)}
        mirrored = {name for each in subject.roles.groups if each.type == "current_mirror" for name in each.devices}
        held: set[str] = set()
        for placed in subject.placed:
            net = placed.device.terminals
            if placed.device.is_mos and placed.id in mirrored:
                held |= {net["s"], net["d"]} if net["d"] == net["g"] else {net["s"]}
            elif placed.device.type in {"npn", "pnp"}:
                held.add(net["e"])
        return not ends.isdisjoint(held - subject.supplies.nets)

    def _ends(self, placed: PlacedDevice) -> list[str]:
        """Return the nets at both ends of a resistor or capacitor, of parts in series or parallel of all together."""
        parts = [self.subject.circuit.device(name) for name in placed.names]
        count = Counter(part.terminals[end] for part in parts for end in part.kind.ends)
        return [net for net in count if count[net] == min(count.values())]

    def _banks(self, boxes: Sequence[kdb.Box]) -> list[kdb.Box]:
        """Return the boxes around boxes whose neighbours are no farther apart than in a bank."""
        half = self.subject.technology.to_dbu(_BANK_UM) // 2
        banks = region_of(box.enlarged(half, half) for box in boxes).merged()
        return [bank.bbox().enlarged(-half, -half) for bank in banks.each()]

    def bare_ends(self, group: MatchedDevices) -> list[Remark]:
        """Return whether the bars at the ends of the banks of resistors lack a dummy beside them."""
        subject = self.subject
        boxes = [box for placed in group.devices for box in placed.boxes]
        if group.devices[0].device.type != "resistor":
            return self._bare_plates(group)
        bank = subject.technology.to_dbu(_BANK_UM)
        own = {str(box) for box in boxes}  # the body of a bar may be no poly
        others = [box for p in subject.placed if p.device.type == "resistor" for box in p.boxes if str(box) not in own]
        bars = subject.role("poly") - region_of(boxes) + region_of([*others, *subject.idle_passives("resistor")])
        flat = sum(box.height() for box in boxes) < sum(box.width() for box in boxes)
        across = sorted({(turned(box, upright=flat).left, turned(box, upright=flat).right) for box in boxes})
        steps = [after[0] - before[1] for before, after in pairwise(across)]  # a dummy is as near as the others
        reach = max(subject.technology.to_dbu(_END_UM), *(step for step in (0, *steps) if step <= bank))
        hulls = [turned(hull, upright=flat) for hull in self._banks(boxes)]
        ends = [(start, hull.center().y) for hull in hulls for start in (hull.left - reach, hull.right)]
        sides = [turned(kdb.Box(x, y, x + reach, y + 1), upright=flat) for x, y in ends]
        bare = sum((bars & kdb.Region(side)).is_empty() for side in sides)
        why = f"{group.called} {group.has} no dummy bar at {bare} of its {len(sides)} ends"
        cure, cause = "a dummy bar at each end of the bank", "bare bars"
        return subject.finding("passives", bare, why, what_to_do=cure, devices=group.devices, must=False, cause=cause)

    def _bare_plates(self, group: MatchedDevices) -> list[Remark]:
        """Return whether no dummy lies beside the plates of capacitors that must match."""
        subject, boxes = self.subject, [box for placed in group.devices for box in placed.boxes]
        idle, reach = subject.idle_passives("capacitor"), subject.technology.to_dbu(_ROWS_UM)
        guarded = any(gap_between(box, each) <= reach for box in boxes for each in idle)
        far = subject.um(max(dist(a.centre, b.centre) for a, b in product(group.devices, repeat=2)))
        why = f"no dummy plates lie around {group.called}: {len(boxes)} units, their centres {far:.3g} um apart"
        cure, cause = "equal units about one centre, with dummies around them", "bare plates"
        return subject.finding(
            "passives", not guarded, why, what_to_do=cure, devices=group.devices, must=False, cause=cause
        )

    def covered(self, group: MatchedDevices) -> list[Remark]:
        """Return a remark if metal, of whatever net, covers some bars of a ratio more than others."""
        subject, bars = self.subject, [box for placed in group.devices for box in placed.boxes]
        if group.devices[0].device.type != "resistor":
            return []
        near, metal = region_of([box_around(bars)]), kdb.Region()
        for conductor in subject.technology.conductors:
            metal += subject.layer(conductor.layer) & near
        metal.merge()
        parts = [(metal & kdb.Region(bar)).area() / bar.area() for bar in bars]
        why = f"metal covers from {100 * min(parts):.3g} to {100 * max(parts):.3g} % of each bar of {group.called}"
        return subject.finding(
            "passives.covered", max(parts) - min(parts), why, devices=group.devices, cause="covered bars"
        )

    def off_centre(self, group: MatchedDevices) -> list[Remark]:
        """Return a remark if a capacitor of several units in a ratio is off the middle of all."""
        units = [box for placed in group.devices for box in placed.boxes]
        if group.devices[0].device.type != "capacitor" or len({box.area() for box in units}) > 1:
            return []
        several = [placed for placed in group.devices if len(placed.boxes) > 1]
        side, middle = sqrt(units[0].area()), centre_of(group.devices)
        off = {placed: dist(placed.centre, middle) / side for placed in several if len(group.devices) > 1}
        limit = self.subject.limits["passives.centre"]
        wrong = [placed for placed, away in off.items() if limit.beyond(away)]
        most = max((off[placed] for placed in wrong), default=0.0)
        why = f"the units of {names_of(wrong)} lie up to {most:.3g} of their sides off the middle of {group.called}"
        must = len(group.devices) > 2  # two halves may lie beside each other
        return self.subject.finding("passives.centre", most, why, devices=wrong, cause="off centre", must=must)

    def spare_units(self, group: MatchedDevices) -> list[Remark]:
        """Return whether more dummies than units lie in and around a bank; a frame around bars, one dummy deep, may."""
        subject, boxes = self.subject, [box for placed in group.devices for box in placed.boxes]
        units, reach = len(boxes), subject.technology.to_dbu(_BANK_UM)
        array = self._array(group)
        around = box_around(array) if array else box_around(boxes).enlarged(reach, reach)
        idle = subject.idle_passives(group.devices[0].device.type)
        kind, own = group.devices[0].device.type, {str(box) for box in boxes}
        working = [p for p in subject.placed if p.device.type == kind and not subject.is_idle(p)]
        every = [box for placed in working for box in placed.boxes]
        near = [each for each in idle if each.touches(around)]  # those next to units of other groups are of these
        near = [each for each in near if str(min(every, key=lambda box: (gap_between(each, box), str(box)))) in own]
        bars = len(near) > units and group.devices[0].device.type == "resistor"
        count = 0 if bars and not any(_is_behind(box, near, boxes) for box in near) else len(near)
        return subject.finding(
            "passives.spare",
            count / units,
            f"{group.called} {group.has} {count} dummies around {units} unit{'s' * (units > 1)}",
            where=around,
            devices=group.devices,
            difference=sum(box.area() for box in near) / subject.box.area(),
        )

    def strewn(self) -> Iterator[Remark]:
        """Yield the equal capacitors on one net that lie neither in one bank nor at one pitch."""
        subject, known = self.subject, {id(placed) for group in self.groups for placed in group.devices}
        alike: dict[tuple[object, ...], list[PlacedDevice]] = defaultdict(list)
        for placed in subject.placed:
            if placed.device.type == "capacitor" and id(placed) not in known and not self.subject.is_idle(placed):
                size = sorted((round(f.w_um, 3), round(f.l_um, 3)) for f in placed.fingers)
                for net in set(placed.device.terminals.values()):
                    alike[placed.device.model, net, tuple(size)].append(placed)
        for devices in alike.values():
            boxes = [box for placed in devices for box in placed.boxes]
            banks = len(self._banks(boxes))
            if len(devices) < _MOST_BANKS or banks == 1:
                continue
            off = off_pitch([placed.centre for placed in devices], subject.technology.to_dbu(1.0))
            yield from subject.finding(
                "passives",
                banks - 1 if off > subject.technology.grid else 0,
                f"{len(devices)} equal capacitors ({names_of(devices)}) are scattered over {banks} places",
                what_to_do="one bank, or one capacitor beside each stage at its pitch",
                devices=devices,
                must=False,
            )

    def equal_apart(self) -> Iterator[Remark]:
        """Yield the resistors of one kind and size in no group that lie far from each other."""
        alike: dict[tuple[object, ...], list[MatchedDevices]] = defaultdict(list)
        for string in (each for each in self._strings() if self._images.keys().isdisjoint(p.id for p in each.devices)):
            fingers = [finger for placed in string.devices for finger in placed.fingers]
            size = sorted({round(finger.w_um, 3) for finger in fingers}), round(sum(f.l_um for f in fingers), 3)
            alike[string.devices[0].device.model, str(size)].append(string)
        for strings in (each for each in alike.values() if len(each) > 1):
            boxes = [[box for placed in string.devices for box in placed.boxes] for string in strings]
            gap, devices = self.subject.um(widest_gap(boxes, len(boxes))), [p for each in strings for p in each.devices]
            why = f"equal resistors {names_of(devices)} lie {gap:.3g} um apart"
            yield from self.subject.finding("passives.apart", gap, why, devices=devices)
            if len(devices) == 2 and are_mixed(*devices):
                yield from self.bare_ends(MatchedDevices("equal resistors", False, tuple(devices), tuple(devices)))

    def strays(self) -> Iterator[Remark]:
        """Yield the small capacitors whose wires, also those between parts in series, have capacitances like theirs."""
        subject = self.subject
        value = {placed: _farad(subject, placed) for placed in subject.placed}
        small = {placed: 1e15 * each for placed, each in value.items() if 0 < each < _SMALL_F}
        supplies = {subject.number.get(net) for net in (*subject.supplies.power, *subject.supplies.ground)}
        ends = {placed: {number for f in placed.fingers for number in f.nets.values()} - supplies for placed in small}
        if not small:
            return
        found = wire_capacitances(subject, set[int]().union(*ends.values()))
        for placed, numbers in ends.items():
            own = [{f.nets[end] for end in placed.device.kind.ends} for f in placed.fingers]
            loads = {number: found.ground_fF.get(number, 0.0) for number in numbers}
            for pair, value_fF in found.coupling_fF.items():  # noqa: N806 - the unit
                for number in loads.keys() & pair if {*pair} not in own else ():
                    loads[number] += value_fF
            worst = max(loads, key=lambda number: (loads[number], -number), default=0)
            most, name = loads.get(worst, 0.0), subject.found.nets.get(worst, "")
            why = f"the wires of {name} have {most:.3g} fF, the capacitor {placed.id} {small[placed]:.3g} fF"
            nets = [name] if name in subject.circuit.nets else []
            yield from subject.finding(
                "passives.stray", most / small[placed], why, devices=[placed], nets=nets, cause="strays",
                must=name not in subject.circuit.ports,
            )  # fmt: skip


def _is_behind(dummy: kdb.Box, others: Sequence[kdb.Box], units: Sequence[kdb.Box]) -> bool:
    """Return whether another dummy lies between a dummy and the unit next to it."""
    unit = min(units, key=lambda box: dist((box.center().x, box.center().y), (dummy.center().x, dummy.center().y)))
    way = kdb.Edge(dummy.center(), unit.center())
    return any(other is not dummy and (way.clipped(other) or kdb.Edge()).length() > 0 for other in others)


def is_lifted(subject: Subject, net: str) -> bool:
    """Return whether capacitors alone move an inner net: that of a well, or of gates and the largest resistances."""
    large, circuit = without_current(subject), subject.circuit
    devices = [(circuit.device(end.device), end.terminal) for end in circuit.nets[net] if end.device not in large]
    gates, held = [end == "g" for _, end in devices], all(e == "g" or d.type == "capacitor" for d, e in devices)
    well = any(device.is_mos and end == "b" for device, end in devices)
    return net not in circuit.ports and net not in subject.supplies and (well or (held and any(gates)))


def joined_by_capacitors(circuit: Circuit) -> set[frozenset[str]]:
    """Return the nets that a capacitor couples on purpose, alone or with a resistor in series at either end."""

    def ends(device: Device, net: str) -> set[str]:
        own = {end.device for end in circuit.nets[net]} - {device.id}
        others = [circuit.device(name) for name in own]
        in_series = [other for other in others if other.type == "resistor" and net != other.terminals.get("b")]
        if net in circuit.ports or len(others) != 1 or not in_series:
            return {net}
        return {net, *(in_series[0].terminals[end] for end in in_series[0].kind.ends)}

    plates = [device for device in circuit.devices if device.type == "capacitor"]
    both = [[ends(device, device.terminals[end]) for end in device.kind.ends] for device in plates]
    return {frozenset(nets) for one, other in both for nets in product(one, other)}


def _farad(subject: Subject, placed: PlacedDevice) -> float:
    """Return the capacitance of a capacitor with two nets, its parts in parallel and in series; else 0. [F]"""
    parts: dict[frozenset[int], float] = defaultdict(float)
    if placed.device.type == "capacitor" and not subject.is_idle(placed):
        for finger in placed.fingers:
            spec = subject.technology.passive(finger.device)
            nets = frozenset(finger.nets[end] for end in placed.device.kind.ends)
            parts[nets] += capacitance(spec, finger.w_um, finger.l_um)
    return 1 / sum(1 / each for each in parts.values()) if parts and min(parts.values()) > 0 else 0.0
