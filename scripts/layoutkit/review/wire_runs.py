"""Findings on wires along other nets or over foreign transistors, and on bottom plates.

Unlike the findings on coupling, which ask what disturbs an input or another quiet net, these name the longest such ways
of a layout: an engineer looks at those first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache, cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.errors import listed
from layoutkit.review.coupling import ALONG, BESIDE, LEVELS, OWN_UM
from layoutkit.review.finding import Spot
from layoutkit.review.matched_roles import LOAD_DIODES, PAIR
from layoutkit.review.passives import is_lifted, joined_by_capacitors
from layoutkit.review.subject import HEADS_UM, box_around, gap_between, longer_side, names_of, region_of, wire_length

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.review.coupling import Coupling
    from layoutkit.review.finding import Remark
    from layoutkit.review.matched_roles import MatchedDevices
    from layoutkit.review.subject import PlacedDevice, Subject

    _Places = dict[tuple[str, str], dict[tuple[str, ...], list[kdb.Box]]]

_OWN_UM = (0.3, 1.5)  # so near to transistors on both nets, their terminals lie over each other and side by side [um]
CROSSED_UM = 20.0  # side of the square in which crossings are counted; shorter wires are as if they were so long [um]
_WORTH = 0.04  # share of the layout's longer side that a way must have, too [1]
_BETWEEN = ("between",)  # in place of layers
_PASSED_UM = 3.0  # of two wires along each other [um]
_MOST = 20  # ways that are named, the longest first


class Run(NamedTuple):
    """Where a wire runs along another one or over transistors: length, box [dbu], nets, transistors, and a sentence."""

    length: int
    box: kdb.Box
    nets: tuple[str, ...]
    devices: tuple[PlacedDevice, ...]
    why: str


class WireRuns:
    """The findings on wires along other wires and over foreign transistors of one layout.

    Args:
        subject: The layout.
        groups: Its matched groups.
        coupling: Which nets are quiet, and which are loud.
        counterparts: The pairs of signals of both halves.
    """

    def __init__(
        self, subject: Subject, groups: Sequence[MatchedDevices], coupling: Coupling,
        counterparts: Collection[frozenset[str]],
    ) -> None:  # fmt: skip
        self.subject, self.groups, self.coupling, self.counterparts = subject, groups, coupling, counterparts
        carry = {net for net, ends in subject.circuit.nets.items() if any(end.terminal != "b" for end in ends)}
        self.nets = [net for net in subject.nets if net in carry - subject.supplies.nets]  # bodies stand still
        self.least = int(_WORTH * longer_side(subject.box))
        self._crossable = coupling.still | coupling.held
        self._near, self._along, self._over = cache(self._near_of), cache(self._along_of), cache(self._over_of)

    def findings(self) -> Iterator[Remark]:
        """Yield the longest ways along other wires as one finding, those over transistors as another, and the rest."""
        yield from self.along()
        yield from self.over(self.nets, "coupling.over")
        yield from self.over([net for net in self.subject.nets if net in self.subject.supplies], "coupling.supply")
        yield from self.beside_one_half()
        yield from self.ends_of_switches()
        yield from self.crossed()
        yield from self.crossed_unlike()
        yield from self.bottom_plates()

    def along(self) -> list[Remark]:
        """Return the longest ways of signals over, under or beside others, away from the devices on both."""
        how = "run along each other for", f", one above the other or less than {BESIDE} minimum spaces apart"
        ways = (self._way(self._along(*pair), pair, how) for pair in self._ways if not self._may_run(*pair))
        return self._longest("coupling.run", ways)

    def _along_of(self, one: str, other: str) -> list[kdb.Box]:
        """Return where two nets run along each other, away from the devices on both. [dbu]"""
        boxes: list[kdb.Box] = []
        ways = self._ways.get((one, other)) or self._ways.get((other, one)) or {}
        if sum(map(longer_side, chain(*ways.values()))) < self.least:
            return boxes
        for hidden, pieces in ways.items():
            beside = hidden is _BETWEEN
            if beside and self.subject.net_images.get(one) == other:
                continue  # images run side by side, but not over each other
            away = _thick(pieces) - (self._near(one, beside) & self._near(other, beside))
            for layer in () if beside else hidden:
                away -= self.subject.layer(layer)
            boxes += (piece.bbox() for piece in away.each())
        return boxes

    def beside_one_half(self) -> list[Remark]:
        """Return the ways of a signal along a net of one half that are longer than those along its counterpart.

        If the signal has a counterpart itself, its way is compared with that of the counterpart along the other half.
        """
        found, several = [], Counter(net for pair in self.counterparts for net in pair)
        ports = {*self.subject.circuit.ports}  # both nets are ports, or none is: else the two halves go on differently
        pairs = [p for p in self.counterparts if all(several[net] == 1 for net in p) and len(p & ports) != 1]
        image = {net: other for pair in pairs for net in pair for other in pair - {net}}
        on = {net: {end.device for end in ends} for net, ends in self.subject.circuit.nets.items()}
        for ways in self._ways:
            for third, one in (ways, ways[::-1]):
                if one not in image or third not in self._moving or third == image[one]:
                    continue
                if third not in image and on[third].isdisjoint(on[one]) != on[third].isdisjoint(on[image[one]]):
                    continue  # it belongs to one half
                boxes, its = self._along(third, one), self._along(image.get(third, third), image[one])
                length = sum(map(longer_side, boxes)) - sum(map(longer_side, its))
                if 2 * length > sum(map(longer_side, boxes)):
                    words = f"its counterpart {image[third]} along" if third in image else "along its counterpart"
                    why = f"{third} runs {self.subject.um(length):.3g} um farther along {one} than {words} {image[one]}"
                    found.append(Run(length, box_around(boxes), (third, one, image[one]), (), why))
                    break
        return self._longest("net-pair.third", found)

    def ends_of_switches(self) -> Iterator[Remark]:
        """Yield the switches of signals with a bar of one end over one of the other, or both ends side by side.

        A switch that is off still couples. A transistor whose gate a diode holds is a current source, not a switch.
        """
        subject, reach, seen = self.subject, self.subject.technology.to_dbu(OWN_UM), set[frozenset[str]]()
        for placed in (placed for placed in subject.placed if placed.id in self.coupling.switches):
            ends = frozenset(placed.ends & {*self.nets})
            if len(ends) < 2 or ends in seen:
                continue
            seen.add(ends)
            own = [box for each in subject.placed if each.ends == ends for box in each.boxes]
            one, other = sorted(ends, key=subject.number.__getitem__)
            pieces = (box for hidden, boxes in self._ways.get((one, other), {}).items()
                      for box in boxes if hidden is not _BETWEEN)  # fmt: skip
            bar = max((each.bbox() for each in region_of(pieces).merged().each()), key=longer_side, default=kdb.Box())
            near = region_of(box.enlarged(reach, reach) for box in own)
            length, place, *_ = self.coupling.along(one, other, near, lowest=1)
            words = f"{one} and {other}, the ends of switch {placed.id},"
            for limit, figure, where, why in (
                ("coupling.stacked", longer_side(bar) / longer_side(box_around(own)), bar,
                 f"{words} lie over each other for {subject.um(longer_side(bar)):.3g} um"),
                ("coupling.across", subject.um(length), place, f"{words} run {subject.um(length):.3g} um side by side"),
            ):  # fmt: skip
                yield from subject.finding(
                    limit, figure, why, where=where, devices=[placed], nets=ends, cause="switches"
                )

    def crossed(self) -> Iterator[Remark]:
        """Yield the bias nets that signals from rail to rail cross often, and sampled nets that they cross at all.

        The two outputs of a pair belong together, though one is the gate of its loads and the other drives logic.
        """
        subject, half = self.subject, self.subject.technology.to_dbu(CROSSED_UM / 2)
        loud = self.coupling.loud - self.coupling.outputs
        pairs = [{p.device.terminals.get("d") for p in g.devices} for g in self.coupling.groups if g.words == PAIR]
        for net in [net for net in self.nets if net in self._crossable]:
            held, places = net in self.coupling.held, dict[str, kdb.Region]()
            for pair, crossings in self._met[1].items():
                for other in pair if net in pair else ():
                    if other in loud and other != net and {*pair} not in pairs:
                        own = self._near(net, held) & self._near(other, held)  # of devices on both
                        places[other] = places.get(other, kdb.Region()) + (crossings - own)
            found = {other: [piece.bbox() for piece in each.merged().each()] for other, each in places.items()}
            nets, wires = subject.in_order(other for other in found if found[other]), subject.metal(net).values()
            spots = [box.center() for other in nets for box in found[other]]
            near = max((sum(half >= max(abs(a.x - b.x), abs(a.y - b.y)) for b in spots) for a in spots), default=0)
            length = subject.um(sum(wire_length(piece) for metal in wires for piece in metal.each())) if nets else 1.0
            why = f"the {'sampled' if held else 'bias'} net {net}, {length:.3g} um long, is crossed by {listed(nets)}"
            why += f" at {len(spots)} place{'s' * (len(spots) > 1)}, {near} of them within {CROSSED_UM:g} um"
            figure = len(spots) if held else near * max(1.0, CROSSED_UM / length)
            yield from subject.finding(
                "coupling.held" if held else "coupling.crossed", figure, why,
                where=box_around(box for other in nets for box in found[other]), nets=[net, *nets], cause="crossed",
            )  # fmt: skip

    def crossed_unlike(self) -> list[Remark]:
        """Return the inputs that cross one of two outputs more often than their counterparts cross the other one."""
        places: dict[frozenset[str], kdb.Region] = defaultdict(kdb.Region)
        for nets, crossings in self._met[1].items():
            places[frozenset(nets)] += crossings
        count = {pair: region.merged().count() for pair, region in places.items()}
        found, images, order = [], self.subject.net_images, self.subject.number
        switched = (placed.device.terminals for placed in self.subject.placed if placed.device.is_mos)
        inputs = {net["g"] for net in switched if net["d"] in self._outputs and net["g"] in images}
        for pair, times in count.items():
            for out in pair & self._outputs.keys():
                (third,) = pair - {out}
                if third not in inputs:
                    continue
                there = frozenset((images[third], self._outputs[out]))
                more = times - count.get(there, 0)
                if more > 0:
                    words = f"{third} crosses {out} at {times} place{'s' * (times > 1)}, "
                    words += f"{images[third]} crosses {self._outputs[out]} at {count.get(there, 0)}"
                    own = (third, out, *sorted(there - pair, key=order.__getitem__))
                    found.append(Run(more, places[pair].bbox(), own, (), words))
        found.sort(key=lambda each: (-each.length, [order[net] for net in each.nets]))
        if not found:
            return []
        spots = [Spot(each.box, each.why, f"{each.nets[0]} with {each.nets[1]}") for each in found[1:]]
        more, every = sum(each.length for each in found), {net for each in found for net in each.nets}
        why = f"inputs cross the two outputs unlike: {found[0].why}"
        return self.subject.finding(
            "coupling.unlike", more, why, where=found[0].box, nets=every, places=spots, cause="unlike crossings"
        )

    @cached_property
    def _outputs(self) -> dict[str, str]:
        """The outputs of pairs and steered currents that are images of each other: ports with drains and no gate."""
        circuit = self.subject.circuit
        ends = {net: {each.terminal for each in circuit.nets[net]} for net in circuit.ports}
        driven = {net for net, own in ends.items() if own & {"d", "c"} and not own & {"g", "b"}}
        return {net: image for net, image in self.subject.net_images.items() if {net, image} <= driven}

    def over(self, nets: Iterable[str], limit: str) -> list[Remark]:
        """Return the longest ways of some nets over transistors that are on none of them, with their group.

        A supply over nothing but logic does no harm.
        """
        found, logic = [], self.coupling.loud - self.coupling.outputs
        for net, (devices, boxes) in ((net, self._over(net)) for net in nets):
            if net in self.nets or any(p.device.terminals[end] not in logic for p in devices for end in "dg"):
                how = "runs", f" over transistors that it does not connect to: {names_of(devices)}"
                found.append(self._way(boxes, (net,), how)._replace(devices=devices))
        return self._longest(limit, found)

    def _over_of(self, net: str) -> tuple[tuple[PlacedDevice, ...], list[kdb.Box]]:
        """Return the transistors that a net runs over and is on no net of, nor on one of their group, and where."""
        crossed: dict[int, PlacedDevice] = {}
        boxes, reach = list[kdb.Box](), self.subject.technology.to_dbu(OWN_UM)
        for _, box in self._rectangles.get(net) or self._divided(net):
            for shape in self._diffusions.each_overlapping(box):
                piece = box & shape.box
                below = [self._owners[each.prop_id] for each in self._channels.each_overlapping(piece)]
                below = below or self._nearest(piece, reach)  # over a source or drain
                if below and not any(net in nets for _, nets in below):
                    crossed |= {placed.index: placed for placed, _ in below}
                    boxes.append(piece)
        return tuple(crossed[index] for index in sorted(crossed)), boxes

    def described(self, finding: Remark) -> Remark:
        """Return a finding on the length of a signal's wire, with what the wire passes on its way."""
        if finding.id != "wire-length" or len(finding.nets) != 1 or finding.nets[0] not in self._rectangles:
            return finding
        net, subject = finding.nets[0], self.subject
        passives = {
            self._passives[shape.prop_id]
            for _, box in self._rectangles[net]
            for shape in self._bodies.each_overlapping(box)
        }  # fmt: skip
        crossed = [*self._over(net)[0], *sorted(passives, key=lambda placed: placed.index)]
        crossed = [placed for placed in crossed if net not in placed.device.terminals.values()]
        least = subject.technology.to_dbu(_PASSED_UM)
        beside = {other: sum(map(longer_side, self._along(*pair)))
                  for pair in self._ways if net in pair for other in pair if other != net}  # fmt: skip
        nets = sorted((other for other, length in beside.items() if length > least),
                      key=lambda other: (-beside[other], subject.number[other]))  # fmt: skip
        parts = [f"crosses {names_of(crossed)}"] * bool(crossed) + [f"runs along {listed(nets, most=4)}"] * bool(nets)
        return replace(finding, why=f"{finding.why}; the wire {' and '.join(parts)}") if parts else finding

    def _nearest(self, place: kdb.Box, reach: int) -> list[tuple[PlacedDevice, set[str]]]:
        """Return the transistors whose channels are nearest to a place, within reach."""
        gaps = [(gap_between(place, each.box), each.prop_id)
                for each in self._channels.each_touching(place.enlarged(reach, reach))]  # fmt: skip
        return [self._owners[number] for number in sorted({number for gap, number in gaps if gap == min(gaps)[0]})]

    def bottom_plates(self) -> Iterator[Remark]:
        """Yield the capacitors whose bottom plate, which couples to the substrate, is on the quiet net of both."""
        subject, technology = self.subject, self.subject.technology
        for placed in [
            each for each in subject.placed if each.device.type == "capacitor" and not subject.is_idle(each)
        ]:
            spec = technology.passives.get(placed.fingers[0].device)
            if spec is None or "bottom" not in spec.parts:
                continue
            lower, plates = technology.conductor(spec.parts["bottom"]).name, region_of(placed.boxes)
            nets = placed.ends & subject.number.keys()
            below = {net for net in nets if not (subject.shapes(net, lower) & plates).is_empty()}
            above = nets - below
            apart, (one, other) = len(below) == 1 == len(above), (", ".join(below), ", ".join(above))
            driven = below <= self.coupling.quiet and above <= self.coupling.loud
            wrong, cure = apart and (driven or (is_lifted(subject, one) and not is_lifted(subject, other))), ""
            why = (
                f"{placed.id} has its bottom plate on the sensitive net {one}, its top plate on the driven net {other}"
            )
            if apart and nets in self.counterparts:
                wrong = 2 * self._bottom_area(lower, nets, below) != self._bottom_area(lower, nets, nets)
                why = f"{placed.id} has its bottom plate on {one}, its top plate on the counterpart {other} of that net"
                cure = "divide it into two equal capacitors in parallel, the plates of one of them exchanged"
            yield from subject.finding(
                "passives.bottom", int(wrong), why, what_to_do=cure, devices=[placed], nets=nets, cause="bottom plates"
            )

    def _bottom_area(self, lower: str, ends: AbstractSet[str], nets: AbstractSet[str]) -> int:
        """Return the area of the plates between two nets whose lower conductor is on some nets. [dbu2]"""
        plates = region_of(box for placed in self.subject.placed if placed.ends == ends for box in placed.boxes)
        return sum((self.subject.shapes(net, lower) & plates).area() for net in nets)

    def _way(self, boxes: Sequence[kdb.Box], nets: tuple[str, ...], how: tuple[str, str]) -> Run:
        length = sum(map(longer_side, boxes))
        why = f"{' and '.join(nets)} {how[0]} {self.subject.um(length):.3g} um{how[1]}"
        return Run(length, box_around(boxes), nets, (), why)

    def _longest(self, limit: str, ways: Iterable[Run]) -> list[Remark]:
        """Return the longest ways beyond a limit as one finding."""
        subject, rule = self.subject, self.subject.limits[limit]
        long = (way for way in ways if way.length >= self.least and rule.beyond(subject.um(way.length)))
        kept = sorted(long, key=lambda way: (-way.length, [subject.number[net] for net in way.nets]))[:_MOST]
        if not kept:
            return []
        briefs = [", ".join(way.nets) + f" over {names_of(way.devices[:3])}" * bool(way.devices) for way in kept[1:]]
        spots = [Spot(way.box, way.why, f"{brief} ({subject.um(way.length):.3g} um)")
                 for brief, way in zip(briefs, kept[1:], strict=True)]  # fmt: skip
        nets, devices = {net for way in kept for net in way.nets}, [p for way in kept for p in way.devices]
        return subject.finding(
            limit, subject.um(kept[0].length), kept[0].why, where=kept[0].box, nets=nets,
            devices=list(dict.fromkeys(devices)), cause=limit, places=spots,
        )  # fmt: skip

    @cached_property
    def _rectangles(self) -> dict[str, list[tuple[int, kdb.Box]]]:
        """The metal of each signal in rectangles, with their levels."""
        return {net: self._divided(net) for net in self.nets}

    def _divided(self, net: str) -> list[tuple[int, kdb.Box]]:
        """Return the metal of a net in rectangles, with their levels."""
        names = {conductor.name: level for level, conductor in enumerate(self.subject.technology.conductors)}
        return [
            (names[name], piece.bbox())
            for name, region in self.subject.metal(net).items()
            for piece in region.decompose_trapezoids_to_region().each()
        ]

    @cached_property
    def _diffusions(self) -> kdb.Shapes:
        """The diffusions of transistors, not their rings, in rectangles."""
        found, subject = kdb.Shapes(), self.subject
        channels = region_of(box for placed in subject.placed if placed.device.is_mos for box in placed.boxes)
        for part in subject.role("active").interacting(channels).decompose_trapezoids_to_region().each():
            found.insert(part.bbox())
        return found

    @cached_property
    def _passives(self) -> list[PlacedDevice]:
        """The resistors, capacitors and bipolars that do something."""
        return [each for each in self.subject.placed if not (each.device.is_mos or self.subject.is_idle(each))]

    @cached_property
    def _bodies(self) -> kdb.Shapes:
        """The bars, plates and emitters of ``_passives``, each with its place there."""
        found = kdb.Shapes()
        for number, placed in enumerate(self._passives):
            for box in placed.boxes:
                found.insert(kdb.BoxWithProperties(box, number))
        return found

    @property
    def _ways(self) -> dict[tuple[str, str], dict[tuple[str, ...], list[kdb.Box]]]:
        """Where two nets run along each other. [dbu]

        What is between wires side by side is under ``_BETWEEN``; what one wire covers of another one is under the
        layers of the levels between, which may hide it.
        """
        return self._met[0]

    @cached_property
    def _met(self) -> tuple[_Places, dict[tuple[str, str], kdb.Region]]:
        """Where two nets run along each other, and where a still or sampled net and another one only cross. [dbu]"""
        conductors, still = self.subject.technology.conductors, [net in self._crossable for net in self.nets]
        paired = [net in self._outputs for net in self.nets]
        found: dict[tuple[int, int], dict[tuple[str, ...], list[kdb.Box]]] = defaultdict(lambda: defaultdict(list))
        crossings: dict[tuple[str, str], kdb.Region] = defaultdict(kdb.Region)
        levels = [kdb.Shapes() for _ in conductors]
        for number, net in enumerate(self.nets):
            for level, box in self._rectangles[net]:
                levels[level].insert(kdb.BoxWithProperties(box, number))
        for number, net in enumerate(self.nets):
            for level, box in self._rectangles[net]:
                reach = BESIDE * conductors[level].space
                for shape in levels[level].each_touching(box.enlarged(reach)):
                    if shape.prop_id > number and not (between := _between(box, shape.box, reach)).empty():
                        found[number, shape.prop_id][_BETWEEN].append(between)
                for above in range(level + 1, min(level + 1 + LEVELS, len(levels))):
                    hidden = tuple(conductor.layer for conductor in conductors[level + 1 : above])
                    for shape in levels[above].each_overlapping(box):
                        both, other = box & shape.box, shape.prop_id
                        if longer_side(both) < ALONG * min(both.width(), both.height()):
                            if still[number] != still[other] or paired[number] != paired[other]:
                                crossings[net, self.nets[other]].insert(both)
                        elif other != number:
                            found[min(number, other), max(number, other)][hidden].append(both)
        names = {(self.nets[one], self.nets[other]): dict(ways) for (one, other), ways in sorted(found.items())}
        return names, crossings

    def _near_of(self, net: str, beside: bool) -> kdb.Region:
        """Return the places of the devices on a net, with their straps."""
        subject = self.subject
        own, heads = subject.technology.to_dbu(_OWN_UM[beside]), subject.technology.to_dbu(HEADS_UM)
        at = [placed for placed in subject.placed if net in placed.device.terminals.values()]
        bars = [placed for placed in at if placed.device.type == "resistor" and not beside]  # taps over each other
        found = region_of(box.enlarged(own) for placed in bars for box in placed.boxes)
        others = (placed for placed in at if placed not in bars)
        found += region_of(placed.box.enlarged(own if placed.device.is_mos else heads) for placed in others)
        return found.merged()

    def _may_run(self, one: str, other: str) -> bool:
        """Return whether two nets may run side by side, or are judged elsewhere."""
        judged = {one, other} & self.coupling.quiet and {one, other} & self.coupling.loud
        still, pair = not {one, other} & self._moving, frozenset((one, other))
        return bool(judged) or still or pair in self._ends or pair in self.coupling.disturbed

    @cached_property
    def _ends(self) -> set[frozenset[str]]:
        """The nets at both ends of each device, or of a capacitor and a resistor in series."""
        circuit = self.subject.circuit
        ends = {frozenset(device.terminals[end] for end in device.kind.ends) for device in circuit.devices}
        return ends | joined_by_capacitors(circuit)

    @cached_property
    def _moving(self) -> set[str]:
        """The nets whose voltage follows an input or a loud net; a bias stands still."""
        subject = self.subject
        own = subject.supplies.nets
        found = self.coupling.moved - own
        front = [*found]
        drives: tuple[dict[str, tuple[str, ...]], ...] = ({"b": ("c", "e")}, {"g": ("d",), "b": ()})
        while front:
            net = front.pop()
            for end in subject.circuit.nets[net]:
                device = subject.circuit.device(end.device)
                passes = not device.is_mos or device.id in subject.both_ways
                led = drives[device.is_mos].get(end.terminal, device.kind.ends if passes else ())
                led = ("s",) if led == ("d",) and device.terminals["d"] in own else led  # a follower
                new = {device.terminals[each] for each in led if each in device.terminals} - found - own
                found |= new
                front += new
        return found

    @cached_property
    def _owners(self) -> list[tuple[PlacedDevice, set[str]]]:
        """The working transistors, with their nets and those of their groups."""
        related: dict[int, set[str]] = defaultdict(set)
        for group in (group for group in self.groups if group.words != LOAD_DIODES):  # they belong to two mirrors
            nets = {net for each in group.relatives for net in _wired(each)}
            for placed in group.devices:
                related[placed.index] |= nets
        working = (each for each in self.subject.placed if each.device.is_mos and not self.subject.is_idle(each))
        return [(placed, {*_wired(placed), *related[placed.index]}) for placed in working]

    @cached_property
    def _channels(self) -> kdb.Shapes:
        """The channels of working transistors, each with the place of its transistor in ``_owners``."""
        found = kdb.Shapes()
        for number, (placed, _) in enumerate(self._owners):
            for box in placed.boxes:
                found.insert(kdb.BoxWithProperties(box, number))
        return found


def _wired(placed: PlacedDevice) -> set[str]:
    """Return the nets of a transistor but for that of its body, which no wire over it feeds."""
    return {net for end, net in placed.device.terminals.items() if end != "b"}


def _thick(boxes: Iterable[kdb.Box]) -> kdb.Region:
    """Return boxes as a region, those without a width or height as lines of two units."""
    return region_of(box.enlarged(not box.width(), not box.height()) for box in boxes)


def _between(one: kdb.Box, other: kdb.Box, reach: int) -> kdb.Box:
    """Return the gap between two boxes if it is narrower than ``reach`` and longer than wide, else an empty box."""
    x = (max(one.left, other.left), min(one.right, other.right))
    y = (max(one.bottom, other.bottom), min(one.top, other.top))
    for along, across in ((x, y), (y, x)):
        gap = across[0] - across[1]
        if 0 <= gap < reach and along[1] - along[0] > gap:
            return kdb.Box(min(x), min(y), max(x), max(y))
    return kdb.Box()
