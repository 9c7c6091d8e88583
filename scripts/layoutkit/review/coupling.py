"""Findings on neighbours that disturb: which nets are quiet, which are loud, and where they run side by side."""

from __future__ import annotations

from functools import cached_property
from itertools import chain, combinations, product
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.circuit.orientation import is_off
from layoutkit.review.matched_devices import is_gate
from layoutkit.review.matched_roles import CASCODES, PAIR
from layoutkit.review.passives import joined_by_capacitors
from layoutkit.review.room_and_wells import rings_of
from layoutkit.review.subject import box_around, longer_side, names_of, region_of, wire_length
from layoutkit.review.supply_ways import feet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.circuit.circuit import Device
    from layoutkit.review.finding import Remark
    from layoutkit.review.matched_roles import MatchedDevices
    from layoutkit.review.subject import PlacedDevice, Subject

BESIDE = 2  # wires nearer than this many minimum spaces run side by side
_NEAR_UM = 1.0  # wires nearer than this for long still disturb [um]
LEVELS = 2  # wires so many levels above each other, with no metal between, couple as those side by side do
ALONG = 3  # wires over each other for so many times the width of what is covered do not just cross
_BANK_UM = 5.0  # what is nearer to a group is beside it [um]
_HOLDS = 0.1  # W/L of a diode that holds a net; longer ones leave it a high impedance
_SHORT = 0.5  # of the length of the mirror, a switch that passes on its current; cascodes are longer
_STRAPS_UM = 5.0  # from the channels of a pair to the straps of its gates [um]
OWN_UM = 1.0  # so near to a device on both nets, its own terminals couple more than its wires [um]


class Coupling:
    """The findings on coupling of one layout.

    Args:
        subject: The layout.
        groups: Its matched groups.

    Attributes:
        quiet: Nets that must not be disturbed: inputs, and nets that no source, diode or resistor holds; no loud one.
        loud: Nets that disturb: outputs, clocks, and what inverters and clocked switches are on.
        held: Quiet nets with a capacitor and a switch, which hold a sampled voltage.
        slow: Quiet nets that a resistor or plate moves and logic reads; no must, as one review signed 26 um.
        charged: Other quiet nets with a capacitor.
        still: Gates of mirrors and of other current sources, which only nets that swing from rail to rail disturb.
    """

    def __init__(self, subject: Subject, groups: Sequence[MatchedDevices]) -> None:
        self.subject, self.groups = subject, groups
        own = subject.supplies.nets
        loud = self._steering(self._loud()) - {net for net in subject.circuit.nets if self._is_mirrored(net)}
        self.slow = {*filter(self._is_slow, loud)}
        steered = self.slow | {net for net in subject.circuit.nets if self._is_steered(net, loud)}
        self.loud = {net for net in loud - own - steered if net in subject.number}
        self.quiet = {net for net in (self._quiet() | steered) - own - self.loud if net in subject.number}
        mirrors = (each.properties for each in subject.roles.groups if each.type == "current_mirror")
        self.still = {str(each["common_gate"]) for each in mirrors if "common_gate" in each}
        self.still = (self.still | feet(subject)) & {*subject.nets} - self.loud - self.quiet
        on = {True: set[str](), False: set[str]()}
        for device in subject.circuit.devices:
            if device.type == "capacitor" or device.id in self.switches:
                on[device.is_mos].update(device.terminals.values())
        self.held, self.charged = self.quiet & on[True] & on[False], self.quiet & on[False] - self.slow

    def findings(self, bare: Callable[[MatchedDevices], int]) -> Iterator[Remark]:
        """Yield all findings; ``bare`` says how many ends of rows of a group have no dummy."""
        yield from chain.from_iterable(self.disturbed.values())
        for group in self.groups:
            yield from self.in_the_ring(group, bare)
        yield from self.inputs_of_pairs()

    @cached_property
    def disturbed(self) -> dict[frozenset[str], list[Remark]]:
        """The findings on quiet nets beside loud ones; only nets that swing to the rails disturb current sources."""
        circuit, image, found = self.subject.circuit, self.subject.images_by_name, {}
        driven = (each.terminals for each in circuit.devices if each.is_mos and each.id not in self.subject.both_ways)
        ends = {frozenset({net["s"], net["d"]}) for net in driven}  # its current drives both
        ports = {net: {end.device for end in circuit.nets[net]} for net in circuit.ports}
        common = {net for net, own in ports.items() if own == {image.get(name) for name in own}}  # to both halves alike
        mild = self.still | self.slow | common
        for loud, quiet in product(self.subject.in_order(self.loud), self.subject.in_order(self.quiet | self.still)):
            pair, images = frozenset((quiet, loud)), self.subject.net_images.get(quiet) == loud
            if not images and pair not in self._joined and not (quiet in self.still and loud in self.outputs):
                found[pair] = self.coupling(quiet, loud, must=quiet not in mild and pair not in ends)
        return {pair: remarks for pair, remarks in found.items() if remarks}

    def coupling(self, quiet: str, loud: str, *, must: bool) -> list[Remark]:
        """Return whether a quiet net runs beside a loud one."""
        subject, reach = self.subject, self.subject.technology.to_dbu(OWN_UM)
        shared = region_of(
            placed.box.enlarged(reach, reach)
            for placed in subject.placed
            if {quiet, loud} <= set(placed.device.terminals.values())
        ) + region_of(hull for nets, hull in self._modules if {quiet, loud} <= nets)

        def told(limit: str, length: int, where: kdb.Box, how: str, *, must: bool = True) -> list[Remark]:
            words, nets = f"{quiet} runs {subject.um(length):.3g} um {how}", [quiet, loud]
            return subject.finding(limit, subject.um(length), words, where=where, nets=nets, must=must, cause=quiet)

        length, place, near, around = self.along(quiet, loud, shared)
        how = f"over, under or within {BESIDE} minimum spaces of {loud}"
        found = told("coupling.charge" if quiet in self.charged else "coupling", length, place, how, must=must)
        if not found and near > length:
            limit = "coupling.output" if quiet in self._gates_of_pairs and loud in self.outputs else "coupling.near"
            if close := told(limit, near, around, f"within {_NEAR_UM:g} um of {loud}"):
                return close
        if not found and loud in subject.roles.clocks:
            whole, spot, near, around = self.along(quiet, loud, kdb.Region())  # also at the devices on both
            whole, spot = max((whole, spot), (near, around), key=lambda each: each[0])
            if close := told("coupling.clock", whole, spot, f"beside clock {loud}, also at the devices on both"):
                return close
        if not found and quiet in self.quiet:
            words = (
                f"{loud} runs {subject.um(length):.3g} um beside or over {quiet}, an input or a node of high impedance"
            )
            nets = [quiet, loud]
            return subject.finding("coupling.short", subject.um(length), words, where=place, nets=nets, cause="short")
        if not found or not must or found[0].severity == "must":
            return found
        share = length / sum(wire_length(piece) for metal in subject.metal(quiet).values() for piece in metal.each())
        words = f"{found[0].why}, {100 * share:.3g} % of its length"
        return subject.finding("coupling.share", share, words, where=place, nets=[quiet, loud]) or found

    def along(self, one: str, other: str, without: kdb.Region, *, lowest: int = 0) -> tuple[int, kdb.Box, int, kdb.Box]:
        """Return how far two nets run over, under or beside each other, how far near each other, and where. [dbu]"""
        subject, conductors = self.subject, self.subject.technology.conductors
        length, near, place, around = 0, 0, kdb.Box(), kdb.Box()
        far = subject.technology.to_dbu(_NEAR_UM)
        for level, above in product(range(lowest, len(conductors)), repeat=2):
            first = subject.shapes(one, conductors[level].name)
            second = subject.shapes(other, conductors[above].name)
            if first.is_empty() or second.is_empty() or abs(level - above) > LEVELS:
                continue
            over, between = level != above, kdb.Region()
            if over:
                for each in conductors[min(level, above) + 1 : max(level, above)]:
                    between += subject.layer(each.layer)
                every = [piece.bbox() for piece in ((first & second) - without).each()]
                along = region_of(b for b in every if longer_side(b) >= ALONG * min(b.width(), b.height()))
                boxes = [piece.bbox() for piece in ((along & first & second) - between).each()]
                length += sum(map(longer_side, boxes))
                place += box_around(boxes)
            beside = 0 if over else BESIDE * conductors[level].space
            pairs = list(first.separation_check(second, max(far, beside), False, kdb.Region.Projection).each())
            close = [pair for pair in pairs if pair.distance() < beside]
            for some, is_close in ((close, True), (pairs, False)):
                edges = kdb.Edges([min(pair.first, pair.second, key=kdb.Edge.length) for pair in some])
                edges -= without + between
                if is_close:
                    length, place = length + edges.length(), place + edges.bbox()
                else:
                    near, around = near + edges.length(), around + edges.bbox()
        return length, place, near, around

    def inputs_of_pairs(self) -> Iterator[Remark]:
        """Yield the inputs of differential pairs beside or over what the pair drives, above the straps of its own."""
        subject, circuit = self.subject, self.subject.circuit
        for group in subject.roles.groups:
            own = [circuit.device(name).terminals for name in group.devices if group.type == "differential_pair"]
            gates, driven = ({net[end] for net in own if end in net} & {*subject.number} for end in ("g", "d"))
            driven -= gates | subject.supplies.nets  # which a follower does not drive
            pairs = product(subject.in_order(gates - self.loud), subject.in_order(driven))
            for quiet, loud in (pair for pair in pairs if {*pair} not in self._joined):
                length, place, *_ = self.along(quiet, loud, kdb.Region(), lowest=1)
                words = (
                    f"input {quiet} of a pair runs {subject.um(length):.3g} um beside or over {loud}, which it drives"
                )
                yield from subject.finding(
                    "coupling.pair", subject.um(length), words, where=place, nets=[quiet, loud], cause="pairs"
                )

    @cached_property
    def _joined(self) -> set[frozenset[str]]:
        """The nets that a capacitor couples on purpose."""
        return joined_by_capacitors(self.subject.circuit)

    @cached_property
    def _modules(self) -> list[tuple[set[str], kdb.Box]]:
        """The gates of each pair, which run side by side by design, and the box around it with its straps.

        For interleaved devices all nets: their drains lie beside each other's gates, too.
        """
        reach, near = self.subject.technology.to_dbu(_STRAPS_UM), self.subject.technology.to_dbu(OWN_UM)
        woven = [
            ({net for placed in group.devices for net in placed.device.terminals.values()},
             box_around(placed.box for placed in group.devices).enlarged(near))
            for group in self.groups if group.devices[0].device.is_mos
            if any(one.box.overlaps(other.box) for one, other in combinations(group.devices, 2))
        ]  # fmt: skip
        return woven + [
            ({placed.device.terminals["g"] for placed in group.devices},
             box_around(box for placed in group.devices for box in placed.boxes).enlarged(reach))
            for group in self.groups if group.devices[0].device.is_mos and len(group.devices) == 2
        ]  # fmt: skip

    @cached_property
    def inputs(self) -> set[str]:
        """The inputs of the circuit."""
        return {port for port, use in self.subject.roles.ports.items() if use.direction == "input"}

    @cached_property
    def biases(self) -> set[str]:
        """The nets of nothing but gates of mirrors and cascodes, which are still."""
        kinds = {"current_mirror", "cascode_pair"}
        held = {name for each in self.subject.roles.groups if each.type in kinds for name in each.devices}
        ends = {net: self.subject.circuit.nets[net] for net in self.inputs}
        return {net for net, own in ends.items() if all(end.terminal == "g" and end.device in held for end in own)}

    def enables(self, group: MatchedDevices) -> bool:
        """Return whether transistors on one port feed nothing but clocked switches: they need not match."""
        circuit, own = self.subject.circuit, {placed.id for placed in group.devices}
        nets = [placed.device.terminals for placed in group.devices]
        fed = [circuit.device(end.device) for net in nets for end in circuit.nets[net["d"]] if end.device not in own]
        clocked = all(each.is_mos and each.terminals["g"] in {*self.subject.roles.clocks, *self.loud} for each in fed)
        return bool(fed) and clocked and len(gates := {net["g"] for net in nets}) == 1 and gates <= {*circuit.ports}

    def in_the_ring(self, group: MatchedDevices, bare: Callable[[MatchedDevices], int]) -> list[Remark]:
        """Return whether switches or logic stand beside matched transistors in the ring of these."""
        subject, reach = self.subject, self.subject.technology.to_dbu(_BANK_UM)
        pair, mos = group.words == PAIR, group.devices[0].device.is_mos
        switches = any(placed.device.terminals.get("g") in self.loud for placed in group.devices)
        kind = mos and (group.strict or group.words == CASCODES) and not group.spread
        if not kind or switches or self.enables(group):
            return []
        body = str(group.devices[0].device.terminals["b"])
        rings = rings_of(subject, body) if body in subject.number else []
        around = (hole for _, hole in rings if all(hole.inside(each.box.center()) for each in group.devices))
        hole = min(around, key=kdb.Polygon.area, default=kdb.Polygon())
        hull = box_around(each.box for each in group.devices).enlarged(reach, reach)
        beside = [p for p in subject.placed if p not in group.relatives and p.device.is_mos and p.box.touches(hull)]
        own = {net for placed in group.devices for net in placed.ends if net not in subject.supplies}
        loud = {net for net in self.loud if not self.diodes(net)}  # a diode holds its net
        beside = [p for p in beside if p.device.terminals["g"] in loud and not p.ends & own]
        beside = [p for p in beside if hole.inside(p.box.center()) and p not in self._held_pairs]
        unguarded = bool(pair and beside and bare(group))
        why = f"the ring of {group.called} holds {names_of(beside)} as well, which turn on and off"
        why += ", and no dummies guard the pair" * unguarded
        name, every = "group-apart.unguarded" if unguarded else "group-apart.ring", [*group.devices, *beside]
        return subject.finding(name, len(beside), why, devices=every, must=pair, cause="in the ring")

    @cached_property
    def _held_pairs(self) -> set[PlacedDevice]:
        """The transistors of pairs, or above a source of current, whose gates are outputs of pairs and amplifiers."""
        mos = [placed for placed in self.subject.placed if placed.device.is_mos]
        sources = [p for p in mos if p.device.terminals["s"] in self.subject.supplies]
        tails = {p.device.terminals["d"] for p in sources if p.device.terminals["g"] not in self.loud}
        held = [p for p in mos if p.device.terminals["s"] in tails]
        pairs = {placed for each in self.groups if each.words == PAIR for placed in each.devices}
        outputs = {p.device.terminals["d"] for p in held if p in pairs}
        return {p for p in pairs.union(held) if p.device.terminals.get("g") in outputs | self.outputs}

    @cached_property
    def _gates_of_pairs(self) -> set[str]:
        pairs = [each.devices for each in self.subject.roles.groups if each.type == "differential_pair"]
        return {self.subject.circuit.device(name).terminals.get("g", "") for names in pairs for name in names}

    @cached_property
    def moved(self) -> set[str]:
        """The nets whose voltage changes: loud nets, and ports that are no bias."""
        ports = {port for port in self.subject.circuit.ports if not self._is_mirrored(port)}
        return self.loud | ports - self.biases - self.subject.supplies.nets - self.still

    @cached_property
    def outputs(self) -> set[str]:
        """The outputs that no gate drives from rail to rail."""
        gates = (placed for stage in self.subject.stages if is_gate(stage) for placed in stage)
        return self._driven - self.subject.inverted - {placed.device.terminals["d"] for placed in gates}

    @cached_property
    def _driven(self) -> set[str]:
        """The ports that are outputs, or that transistors of both types hold, and no bias for other circuits."""
        ports = [port for port in self.subject.circuit.ports if not self.diodes(port)]
        uses = self.subject.roles.ports
        return {port for port in ports if uses[port].direction == "output" or len(self._pulls(port)) > 1}

    def _loud(self) -> set[str]:
        subject, circuit = self.subject, self.subject.circuit
        found = {*subject.roles.clocks, *self._driven}
        for module in subject.roles.groups:
            if module.type == "inverter":
                found.update(str(module.properties[each]) for each in ("input", "output"))
            elif module.type == "ring_stage":
                found.update(net for nets in module.properties["outputs"] for net in nets)
        for stage in subject.stages:
            if is_gate(stage):
                found.update(placed.device.terminals[end] for placed in stage for end in "gd")
        found |= self._gates_of_switches() & {*circuit.ports}
        for net in subject.nets * 2:  # what it drives as logic does, stage by stage
            gates = {
                kind: {d.terminals["g"] for d, end in self._ends(net) if end == "d" and d.type == kind}
                for kind in ("nmos", "pmos")
            }
            found |= {net} if gates["nmos"] & gates["pmos"] & found else set()
        return found

    @cached_property
    def switches(self) -> set[str]:
        """Those that carry current both ways; no source with a diode at its gate, or between a PMOS and an NMOS."""
        mos = [device for device in self.subject.circuit.devices if device.id in self.subject.both_ways]
        mos = [device for device in mos if not self.diodes(device.terminals["g"])]
        ends = {device.id: [self._pulls(device.terminals[end]) for end in "ds"] for device in mos}
        return {name for name, pulls in ends.items() if {"nmos"} not in pulls or {"pmos"} not in pulls}

    def _gates_of_switches(self) -> set[str]:
        """Return the gates of transistors that conduct both ways, or are below a source like one that is always on."""
        subject, mos = self.subject, [device for device in self.subject.circuit.devices if device.is_mos]
        below = {(device.type, device.terminals["s"]) for device in mos}
        feet = [device for device in mos if (device.type, device.terminals["d"]) in below]

        def form(device: Device) -> tuple[object, ...]:
            return device.model, device.params.get("w"), device.params.get("l"), device.terminals["s"]

        on = {"nmos": subject.supplies.power, "pmos": subject.supplies.ground}
        always_on = {form(device) for device in feet if device.terminals["g"] in on[device.type]}
        switches = [d for d in mos if d.id in self.switches] + [d for d in feet if form(d) in always_on]
        return {device.terminals["g"] for device in switches}

    def _quiet(self) -> set[str]:
        subject = self.subject
        found = set(subject.roles.inputs)
        for module in subject.roles.groups:
            if module.type in {"differential_pair", "source_follower"}:
                found.update(subject.circuit.device(name).terminals.get("g", "") for name in module.devices)
        found |= {port for port in self.inputs if self._is_reference(port)}
        kinds = (self.is_passed_on, self._is_high_impedance, self._is_weak)
        return found | {net for net in subject.nets if any(is_quiet(net) for is_quiet in kinds)}

    def _is_weak(self, net: str) -> bool:
        """Return whether none but long channels hold a net."""
        ends = [device for device, end in self._ends(net) if end in {"d", "s"}]
        others = {self.subject.circuit.device(end.device).type for end in self.subject.circuit.nets[net]}
        mos = bool(ends) and others <= {"nmos", "pmos", "capacitor"}
        return mos and all(device.w * device.m <= _HOLDS * device.l for device in ends)

    def is_passed_on(self, net: str) -> bool:
        """Return whether only the channels of switches are on a net, and plates: an analog signal, or a charge."""
        circuit, both_ways = self.subject.circuit, self.subject.both_ways
        ends = circuit.nets[net]
        plates = [end for end in ends if circuit.device(end.device).type == "capacitor"]
        channels = [end for end in ends if end.device in both_ways and end.terminal in {"d", "s"}]
        return len(plates) + len(channels) == len(ends) and bool(channels) and bool(plates or net in circuit.ports)

    def _is_slow(self, net: str) -> bool:
        """Return whether logic reads a net on which only a resistor or plate and transistors of one type are."""
        others = {self.subject.circuit.device(end.device).type for end in self.subject.circuit.nets[net]}
        gates = {device.type for device, end in self._ends(net) if end == "g"}
        slow = bool(others & {"resistor", "capacitor"}) and net not in self.subject.roles.clocks
        return slow and len(gates) > 1 > len(self._pulls(net)) - 1

    def _ends(self, net: str) -> list[tuple[Device, str]]:
        """Return the ends of transistors on a net, but for dummies that are off, either end of which is the drain."""
        subject = self.subject
        ends = ((subject.circuit.device(end.device), end.terminal) for end in subject.circuit.nets[net])
        return [(each, terminal) for each, terminal in ends if each.is_mos and not is_off(each, subject.supplies)]

    def _pulls(self, net: str) -> set[str]:
        """Return the types of the transistors whose drain holds a net, but for switches."""
        held = (d for d, end in self._ends(net) if end == "d" and d.terminals["s"] != net)
        return {device.type for device in held if device.id not in self.subject.both_ways}

    def diodes(self, net: str) -> set[str]:
        """Return the types of the transistors with gate and drain on a net."""
        return {d.type for d, _ in self._ends(net) if d.terminals["g"] == d.terminals["d"] == net != d.terminals["s"]}

    def _is_mirrored(self, net: str) -> bool:
        """Return whether a diode holds a net that drives other gates of its type and rail: current sources."""
        held = {(d.type, d.terminals["s"]) for d, _ in self._ends(net) if d.terminals["d"] == d.terminals["g"] == net}
        return any(
            end == "g" and d.terminals["d"] != net and (d.type, d.terminals["s"]) in held for d, end in self._ends(net)
        )

    def _is_reference(self, net: str) -> bool:
        """Return whether a net drives a transistor that draws its current from a diode of the other type."""
        return any(end == "g" and self.diodes(d.terminals["d"]) - {d.type} for d, end in self._ends(net))

    def _steering(self, found: set[str]) -> set[str]:
        """Return loud nets, and gates of pairs or switches of both types that steer currents of mirrors into a net."""
        circuit = self.subject.circuit
        gates: dict[str, set[str]] = {}
        for group in self.subject.roles.groups:
            own = {circuit.device(name).terminals.get("g", "") for name in group.devices}
            gates |= dict.fromkeys(group.devices, own) if group.type == "differential_pair" else {}
        for net in circuit.nets:
            drains = [device for device, end in self._ends(net) if end == "d" and device.terminals["g"] != net]
            down, up = (
                {gate for each in drains if each.type == kind for gate in gates.get(each.id, ())}
                for kind in ("nmos", "pmos")
            )
            found |= down | up if down and up and not down & up else set()
            passed = {each.terminals["g"]: each.l / source.l for each, source in self._passed_into(net)}
            alone = all(len(circuit.nets[gate]) == 1 and share < _SHORT for gate, share in passed.items())
            found |= {*passed} if alone or not found.isdisjoint(passed) else set()
        return found

    def _is_steered(self, net: str, loud: AbstractSet[str]) -> bool:
        """Return whether switches that pass on the currents of mirrors hold a net, as the output of a charge pump."""
        return not loud.isdisjoint(switch.terminals["g"] for switch, _ in self._passed_into(net))

    def _passed_into(self, net: str) -> list[tuple[Device, Device]]:
        """Return switches of both types and the devices of mirrors in series with them, if all into a net are such."""
        groups = self.subject.roles.groups
        mirrored = {name for each in groups if each.type == "current_mirror" for name in each.devices}
        pulls = [device for device, end in self._ends(net) if end == "d"]
        stacks = [(one, d) for one in pulls for d, end in self._ends(one.terminals["s"]) if end == "d"]
        stacks = [(one, d) for one, d in stacks if (one.id in mirrored) != (d.id in mirrored)]
        pairs = [(d, one) if one.id in mirrored else (one, d) for one, d in stacks]
        gates, kinds = {switch.terminals["g"] for switch, _ in pairs}, {device.type for device in pulls}
        return pairs if len(gates) > 1 < len(kinds) and [one for one, _ in stacks] == pulls else []

    def _is_high_impedance(self, net: str) -> bool:
        """Return whether only drains, open switches and capacitors hold a net, which drives a gate or keeps a charge.

        Capacitors that do not lead to supplies keep one where transistors of one type hold them, as in a DAC.
        """
        circuit, both_ways, gates, plates = self.subject.circuit, self.subject.both_ways, 0, 0
        pulls: dict[str, set[str]] = {"nmos": set(), "pmos": set()}
        if net in circuit.black_box_nets:
            return False
        for end in circuit.nets[net]:
            device = circuit.device(end.device)
            switch = device.id in both_ways
            if device.is_mos and device.terminals["d"] == device.terminals["s"]:
                continue  # a dummy
            if device.is_mos and end.terminal == "g" and net not in {device.terminals["d"], device.terminals["s"]}:
                gates += 1
            elif device.is_mos and end.terminal in {"d", "s"} and (switch or end.terminal == "d"):
                if device.terminals["g"] == net and device.w * device.m > _HOLDS * device.l:
                    return False  # as a diode
                if not switch:
                    pulls[device.type].add(device.terminals["g"])
            elif device.type == "capacitor":
                far = (other for other in device.terminals.values() if other != net)
                plates += any(other not in self.subject.supplies for other in far)
            elif end.terminal not in {"b", "g"} and not self._leads_to_plates(device, net):
                return False
        held = any(pulls.values()) or any(e.device in both_ways for e in circuit.nets[net])
        charged = plates > 1 and not all(pulls.values())
        drives = gates and net not in circuit.ports
        return held and bool(charged or drives) and not pulls["nmos"] & pulls["pmos"]  # one gate on both: logic

    def _leads_to_plates(self, device: Device, net: str) -> bool:
        """Return whether a resistor leads from a net to nothing but capacitors, as that of a compensation does."""
        far = [end for end in device.terminals.values() if end != net and end not in self.subject.supplies]
        ends = [end for other in far for end in self.subject.circuit.nets[other] if end.device != device.id]
        plates = all(self.subject.circuit.device(end.device).type == "capacitor" for end in ends)
        return device.type == "resistor" and bool(ends) and plates
