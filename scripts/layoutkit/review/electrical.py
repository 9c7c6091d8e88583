"""Findings on what wires cost and carry: supplies, switches, metal and cuts."""

from __future__ import annotations

from collections import defaultdict
from functools import cache, cached_property
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb
import numpy as np

from layoutkit.errors import listed
from layoutkit.extract.current_limits import LONGEST_CELL_UM, End, largest_flow
from layoutkit.extract.metal_mesh import capacities, mesh_of
from layoutkit.parasitics.net_network import layout_networks, not_joined
from layoutkit.review.covered_devices import far_taps
from layoutkit.review.currents import BIAS_SPREAD, SIGNS, THRESHOLD
from layoutkit.review.finding import Remark, Spot, Unjudged
from layoutkit.review.subject import MOST_CONTACTS, PlacedDevice, Subject, box_around, names_of
from layoutkit.review.ways import worst_first

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.parasitics.net_network import NetNetwork

_NO_WIRE_OHM = 1e6  # above this, no metal joins two terminals [ohm]
_STRONG_OHM = 1000  # transistors of less on-resistance are worth wide wires [ohm]
_WITHIN = 2  # factor within which estimated currents are right
_NANO = 1_000_000  # flows are counted in whole nanoamperes; per milliampere


class Weakest(NamedTuple):
    """The weakest place of a net's metal: its current over its limit, the limit [mA], its layer and box. [dbu]"""

    share: float
    limit_ma: float
    layer: str
    box: kdb.Box


class Electrical:
    """The electrical findings of one layout.

    Args:
        subject: The layout.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.technology = subject.technology
        self._weakest: dict[str, Weakest | None] = {}
        self._flows: dict[tuple[int, ...], dict[str, Weakest | None]] = defaultdict(dict)
        self._drawn = cache(self._drawn_and_fed)
        strong = [p for p in subject.placed if subject.drive(p) or self.on_ohm(p) < _STRONG_OHM]
        switched = {net for placed in strong for _, net, _ in self._ends(placed)}
        supplies = {net for net in subject.supplies.power + subject.supplies.ground if net in subject.number}
        outside = {net for net in switched if net in subject.circuit.ports}
        wanted = {subject.number[net] for net in supplies | outside if net in subject.number}
        first = subject.technology.conductors[0].name
        taps = {subject.number[net]: [t.terminals(first, subject.number[net]) for t in far_taps(subject, net)]
                for net in supplies}  # fmt: skip
        also = {number: {end: feed for each in own for end, feed in each.items()} for number, own in taps.items()}
        networks, unchecked = layout_networks(subject.found, wanted, most_contacts=MOST_CONTACTS, also=also)
        self.networks: dict[str, NetNetwork] = {subject.found.nets[number]: each for number, each in networks.items()}
        self.supplies = sorted(supplies)
        unchecked -= {reason for net in self.supplies for reason in self._cut_off(net).values()}
        self.subject.unjudged += [Unjudged("supply-drop", reason, matters=True) for reason in sorted(unchecked)]
        self.subject.unjudged += self._unknown()

    def _unknown(self) -> Iterator[Unjudged]:
        """Yield what states no limit of its current, and the transistors whose current is not known."""
        subject, technology = self.subject, self.technology
        drawn = [name for name, layer in subject.metal_layers if not subject.layer(layer).is_empty()]
        wires = [each.name for each in technology.conductors if each.name in drawn]
        without = [name for name in drawn if self._limits[name] is None]
        if without:
            reason = f"{technology.name} states no largest current of {listed(without)}"
            yield Unjudged("electromigration", reason, matters=not any(self._limits[name] for name in wires))
        dark = [placed for placed in subject.placed if placed.device.is_mos and not subject.is_idle(placed)]
        dark = [placed for placed in dark if subject.current(placed) is None]
        if dark:
            reason = f"no current is stated of {names_of(dark)}, and none could be estimated"
            yield Unjudged("electromigration", reason, matters=True)

    def _cut_off(self, net: str) -> dict[PlacedDevice, str]:
        """Return the transistors that carry a current of a supply and have no wire to it, and why, for the unjudged."""
        ends = {f"{key}.{end}": placed for key, placed in self.subject.by_key.items() for end in ("d", "s")}
        reasons = not_joined(net, self.networks[net])
        return {ends[end]: why for end, why in reasons.items() if end in ends and not self.subject.is_idle(ends[end])}

    def findings(self) -> Iterator[Remark]:
        """Yield all findings."""
        for net in self.supplies:
            yield from self.supply_drop(net)
            if cut := self._cut_off(net):
                why = f"no metal joins {names_of([*cut])} to {net}: only diffusion, a well or the substrate does"
                yield from self.subject.finding("supply-drop.cut", len(cut), why, devices=[*cut], nets=[net])
        yield from self.thin_ways()
        for net in self.subject.nets:
            yield from self.electromigration(net)

    @staticmethod
    def _ends(placed: PlacedDevice) -> list[tuple[str, str, int]]:
        """Return the terminals of a device that carry current, their nets, and the direction of the current."""
        device = placed.device
        signs = SIGNS.get(device.type) or dict.fromkeys(device.kind.ends, 0)
        return [(terminal, device.terminals[terminal], sign) for terminal, sign in signs.items()]

    def currents_of(self, net: str) -> list[tuple[PlacedDevice, str, int, float]]:
        """Return the terminals on a net with a known current: device, terminal, direction and current. [A]"""
        found = []
        for placed, terminal in self.subject.feeds(net):
            current = self.subject.current(placed)
            sign = {name: each for name, _, each in self._ends(placed)}.get(terminal)
            if current and sign is not None and not self.subject.is_idle(placed):
                found.append((placed, terminal, sign, current))
        return found

    def total(self, net: str) -> float:
        """Return the current of a net: what flows in or out, the larger one. [A]"""
        sides = self.sides(net)
        return max(sum(current for *_, side, current in sides if side == each) for each in (-1, 1))

    def sides(self, net: str) -> list[tuple[PlacedDevice, str, int, float]]:
        """Return the terminals on a net with the side on which the current of each flows: in (1) or out of it (-1).

        All of a supply flow in. Resistors give or take what the others leave, one by one from the largest.
        """
        ends = self.currents_of(net)
        if net in self.subject.supplies:
            return [(placed, terminal, 1, current) for placed, terminal, _, current in ends]
        found = [end for end in ends if end[2]]
        left, free = sum(sign * current for *_, sign, current in found), [end for end in ends if not end[2]]
        whole = sum(current for *_, current in free)
        if found and free:  # what they carry is an estimate; what is left is not more than that
            part = min(1.0, abs(left) / whole)
            return found + [(p, terminal, -1 if left > 0 else 1, part * current) for p, terminal, _, current in free]
        for placed, terminal, _, current in sorted(free, key=lambda end: (-end[3], end[0].index)):
            side = -1 if left > 0 else 1
            left += side * current
            found.append((placed, terminal, side, current))
        return found

    def is_sure(self, net: str, over: float = 1.0) -> bool:
        """Return whether the current of a net is known well enough for a severe finding.

        An assumed bias current is not known well enough, unless the limit is exceeded so far that a quarter of it would
        be too much: that of transistors at half the usual overdrive. An estimated current is known within a factor of
        two, so it counts from twice the limit on.
        """
        ends = [(self.subject.currents.devices.get(placed.id), ampere) for placed, *_, ampere in self.currents_of(net)]
        half = sum(ampere for _, ampere in ends) / 2
        assumed = sum(ampere for known, ampere in ends if known and known.assumed)
        estimated = sum(ampere for known, ampere in ends if known and not known.stated and not known.full)
        return over >= BIAS_SPREAD or (assumed <= half and (over >= _WITHIN or estimated <= half))

    def supply_drop(self, net: str) -> list[Remark]:
        """Return where the wires of a supply lose too much of it."""
        network = self.networks[net]
        if network.start != "port":
            if self.currents_of(net):
                reason, matters = f"{net} has no labelled port to measure from", not self._is_switched(net)
                self.subject.unjudged.append(Unjudged("supply-drop", reason, matters=matters))
            return []
        drops = self.drops(net, network)
        if not drops:
            return self.thin_feed(net, network)
        volts = {each: drop / self.supply_v(each) for each, drop in drops.items()}
        worst = max(volts, key=lambda each: (volts[each], each.box.left, each.box.bottom))
        limit = self.subject.limits["supply-drop"].should or 0.0
        weak = [each for each, value in volts.items() if value > limit]
        found = self.subject.finding(
            "supply-drop",
            volts[worst],
            f"{1000 * drops[worst]:.3g} mV of {net} are lost between its port and {worst.id}, "
            f"{100 * volts[worst]:.3g} % of the supply{self._how(worst)}",
            where=worst.box,
            devices=weak,
            nets=[net],
            must=self.is_sure(net, volts[worst] / (self.subject.limits["supply-drop"].must or inf)),
        )
        return found + self.thin_feed(net, network, plates=bool(found))

    def _is_switched(self, net: str) -> bool:
        """Return whether a supply is an inner net behind a transistor at another supply, and so needs no port."""
        outer, circuit = self.subject.supplies.nets & {*self.subject.circuit.ports}, self.subject.circuit
        behind = (placed for placed in self.subject.placed if placed.device.is_mos and net in placed.ends)
        return net not in circuit.ports and any(
            placed.ends - {net} & outer for placed in behind if placed.ends - {net} <= outer
        )

    def thin_feed(self, net: str, network: NetNetwork, *, plates: bool = False) -> list[Remark]:
        """Return whether thin wires lead from a supply's port to a transistor or capacitor, or to ``plates`` alone."""
        subject, limit = self.subject, self.subject.limits["wire-length.feed"]
        ohms = {
            subject.by_key[each.device]: each.ohm
            for each in network.terminals
            if each.ohm and each.ohm < _NO_WIRE_OHM and each.device in subject.by_key
            if (each.terminal in {"d", "s", "c", "e"} and not plates)
            or subject.by_key[each.device].device.type == "capacitor"
            if not subject.carries_little([subject.by_key[each.device]], each.ohm)
        }
        far = [placed for placed, ohm in ohms.items() if limit.beyond(ohm)]
        drops = self.drops(net, network) if far else {}
        heavy = [placed for placed in far if limit.must is None or ohms[placed] > limit.must]
        lost = (drops.get(placed, 0.0) for placed in heavy if not self._is_logic(placed))
        found = []
        for p in far:
            why = f"{ohms[p]:.3g} ohm of wires lie between the port of {net} and {p.id}"
            found.append((ohms[p], Spot(p.box, why, f"{p.id} ({ohms[p]:.3g} ohm)")))
        most = 1000 * max(lost, default=0.0)
        return worst_first(subject, "wire-length.feed", found, devices=far, nets=[net], difference=most)

    def _is_logic(self, placed: PlacedDevice) -> bool:
        """Return whether the gate of a transistor drives both types, as in a logic gate, which draws pulses alone."""
        circuit = self.subject.circuit
        gates = circuit.nets[placed.device.terminals["g"]] if placed.device.is_mos else ()
        return {"nmos", "pmos"} <= {circuit.device(end.device).type for end in gates if end.terminal == "g"}

    def supply_v(self, placed: PlacedDevice) -> float:
        """Return the voltage of the supply of a device. [V]"""
        known = self.subject.currents.supply_v
        return known.get(placed.id) or max(known.values(), default=1.8)

    def _how(self, placed: PlacedDevice) -> str:
        known = self.subject.currents.devices.get(placed.id)
        if known is None:
            return ""
        return f" ({1000 * known.ampere:.3g} mA, {'' if known.stated else 'estimated: '}{known.how})"

    def drops(
        self,
        net: str,
        network: NetNetwork,
        others: Sequence[tuple[PlacedDevice, str]] = (),
        stated: Mapping[tuple[PlacedDevice, str], float] | None = None,
    ) -> dict[PlacedDevice, float]:
        """Return the voltage between the port of a net and each device, with the currents of all or those stated. [V]

        The result also holds the ``others``, each at the terminal given with it, though they carry little current.
        """
        fed: dict[str, float] = defaultdict(float)
        nodes: dict[PlacedDevice, str] = {}
        drawing = [(placed, terminal, 0.0) for placed, terminal in others]
        known = {(placed, terminal): current for placed, terminal, _, current in self.currents_of(net)}
        if stated is not None:
            known = dict(stated)
        drawing += [(placed, terminal, current) for (placed, terminal), current in known.items()]
        for placed, terminal, current in drawing:
            node = network.nodes.get((placed.key, terminal))
            if node is not None and node != network.own:
                fed[node] += current
                nodes[placed] = node
        names = sorted({name for a, b, _ in network.resistors for name in (a, b)})
        number = {name: place for place, name in enumerate(names)}
        if not fed or network.own not in number:
            return {}
        matrix = np.zeros((len(number), len(number)))
        for one, other, ohm in network.resistors:
            for here, there in ((number[one], number[other]), (number[other], number[one])):
                matrix[here, here] += 1 / ohm
                matrix[here, there] -= 1 / ohm
        vector = np.zeros(len(number))
        for node, current in fed.items():
            vector[number[node]] = current
        kept = [place for name, place in number.items() if name != network.own]
        voltages = dict(zip(kept, np.linalg.solve(matrix[np.ix_(kept, kept)], vector[kept]), strict=True))
        return {placed: float(voltages[number[node]]) for placed, node in nodes.items()}

    def on_ohm(self, placed: PlacedDevice) -> float:
        """Return the on-resistance of a transistor at full drive; infinite where nothing tells it. [ohm]"""
        drive = sum(self.subject.currents.strength.get(name, 0.0) for name in placed.names)
        idle = not drive or self.subject.is_idle(placed)
        return inf if idle else (1 - THRESHOLD) * self.supply_v(placed) / (2 * drive)

    def thin_ways(self) -> Iterator[Remark]:
        """Yield the transistors whose way to their ports costs much beside their on-resistance, pass devices first."""
        subject = self.subject
        ways = {p: self._way(p) for p in subject.placed if p.device.is_mos}
        switches = {p for p in ways if subject.drive(p) or p.id in subject.both_ways or self._drives_resistors(p)}
        for name, own in (("wire-resistance", switches), ("wire-resistance.any", ways.keys() - switches)):
            shares = {placed: ways[placed][0] / self.on_ohm(placed) for placed in own if ways[placed][0]}
            thin = [placed for placed, share in shares.items() if subject.limits[name].beyond(share)]
            found = []
            for p in thin:
                why = f"the wires from the ports to {p.id} have {ways[p][0]:.3g} ohm, its channel about "
                why += f"{self.on_ohm(p):.3g} ohm"
                found.append((shares[p], Spot(p.box, why, f"{p.id} ({ways[p][0]:.3g} ohm)")))
            nets = {net for placed in thin for net in ways[placed][1]}
            yield from worst_first(subject, name, found, devices=thin, nets=nets)

    def _drives_resistors(self, placed: PlacedDevice) -> bool:
        """Return whether a transistor at a rail is a switch of a ladder: it drives resistors and no gate."""
        circuit, own = self.subject.circuit, placed.device.terminals
        ends = [(circuit.device(end.device), end.terminal) for end in circuit.nets[own["d"]]]
        mos = [(device, terminal) for device, terminal in ends if device.is_mos]
        others = {device.type for device, _ in ends if not device.is_mos}
        gates = {device.terminals["g"] for device, _ in mos}
        both = {device.type for device, _ in mos} == {"nmos", "pmos"}
        return both and others == {"resistor"} and len(gates) == 1 and all(terminal == "d" for _, terminal in mos)

    def _way(self, placed: PlacedDevice) -> tuple[float, list[str]]:
        """Return the resistance from the ports to both ends of a transistor, and these nets. [ohm]"""
        ohm, nets = 0.0, list[str]()
        for terminal, net, _ in self._ends(placed):
            network = self.networks.get(net)
            if network is None or network.start != "port":
                continue
            found = next((t.ohm for t in network.terminals if (t.device, t.terminal) == (placed.key, terminal)), None)
            ohm += found if found and found < _NO_WIRE_OHM else 0.0
            nets.append(net)
        return ohm, nets

    def weakest(self, net: str) -> Weakest | None:
        """Return the weakest place of a net's metal for its current; None where all of it is strong enough."""
        if net not in self._weakest:
            limit = self.subject.limits["electromigration"]
            share = limit.should or limit.must or 1.0
            enough = 1000 * self.total(net) <= share * self._least_limit(net)
            self._weakest[net] = None if enough else self._alike(net, share)
        return self._weakest[net]

    def _alike(self, net: str, share: float) -> Weakest | None:
        """Return the weakest place of a net, as that of another net that is drawn and fed alike at another place."""
        ends = self._ends_of_flow(net)
        box = box_around(region.bbox() for region in self.subject.metal(net).values())
        like = self._flows[box.width(), box.height(), len(ends[1]), len(ends[-1])]
        for other, found in like.items():
            (key, corner), (its_key, its_corner) = self._drawn(net), self._drawn(other)
            if key == its_key:
                return None if found is None else found._replace(box=found.box.moved(corner - its_corner))
        like[net] = self._flow(net, share, ends)
        return like[net]

    def _drawn_and_fed(self, net: str) -> tuple[object, kdb.Point]:
        """Return what nets that are drawn and fed alike have in common, and the corner of the net's metal."""
        drawn = [self.subject.shapes(net, name) for name, _ in self.subject.metal_layers]
        corner = box_around(region.bbox() for region in drawn).p1
        x, y = corner.x, corner.y
        metal = tuple(hash(frozenset(polygon.moved(-x, -y) for polygon in region.each())) for region in drawn)
        ends = self._ends_of_flow(net)
        fed = frozenset((side, p.x - x, p.y - y, round(ma * _NANO)) for side, at in ends.items() for p, ma in at)
        ports = frozenset((each, p.x - x, p.y - y) for each, p, _ in self.subject.labels.get(net, ()))
        return (metal, fed, ports), corner

    def _ends_of_flow(self, net: str) -> dict[int, list[tuple[kdb.Point, float]]]:
        """Return the contacts at which current enters (1) and leaves (-1) a net, and how much. [mA]"""
        ends: dict[int, list[tuple[kdb.Point, float]]] = {-1: [], 1: []}
        first, feeds = self.technology.conductors[0].name, self.subject.feeds(net)
        for placed, terminal, side, current in self.sides(net):
            for place, part in feeds[placed, terminal].points.items():
                if place.conductor == first:
                    ends[side].append((kdb.Point(place.x, place.y), 1000 * current * part))
        return ends

    def _flow(self, net: str, share: float, ends: Mapping[int, Sequence[tuple[kdb.Point, float]]]) -> Weakest | None:
        technology, subject = self.technology, self.subject
        regions = {name: subject.shapes(net, name) for name, _ in subject.metal_layers}
        first = technology.conductors[0].name
        mesh = mesh_of(technology, regions, longest=technology.to_dbu(LONGEST_CELL_UM))
        limits = [None if limit is None else share * limit for limit in capacities(technology, mesh)[0]]
        sums = {side: sum(current for _, current in found) for side, found in ends.items()}
        cells: dict[int, list[End]] = {1: [], -1: []}
        for side, found in ends.items():
            for point, current in found:
                cell = mesh.at(first, point.x, point.y)
                if cell is not None:
                    cells[side].append(End(cell, current, current))
        ports = subject.labels.get(net, ())
        less = min(sums, key=lambda side: (sums[side], side))
        for conductor, point, _ in ports:
            cells[less] += [End(cell, None, None) for cell in mesh.across(conductor, point.x, point.y)]
        amount = max(sums.values()) if ports else min(sums.values())
        flow, crossed = largest_flow(mesh, limits, (cells[1], cells[-1]), amount)
        missing, strength = amount - flow, sum(limit for _, limit in crossed) / share
        if missing <= amount * 1e-3 or not strength:
            return None  # where nothing is crossed, the contacts on devices limit, which the devices' models have
        box = box_around(kdb.Box(*link.box) for link, _ in crossed)
        return Weakest(share + missing / strength, strength, crossed[0][0].name, box)

    @cached_property
    def _limits(self) -> dict[str, float | None]:
        """What the narrowest wire of each conductor, or one cut, may carry. [mA]"""
        dbu = self.technology.dbu_um
        wires = {each.name: each.current_ma(each.width * dbu) for each in self.technology.conductors}
        return {**wires, **{each.name: each.current_ma for each in self.technology.cuts}}

    def _least_limit(self, net: str) -> float:
        """Return the least current that any piece of a net's metal may be unable to carry. [mA]"""
        drawn = (limit for name, limit in self._limits.items() if not self.subject.shapes(net, name).is_empty())
        return min((limit for limit in drawn if limit is not None), default=float("inf"))

    def electromigration(self, net: str) -> list[Remark]:
        """Return the place of a net where its current exceeds what metal or cuts may carry."""
        weak = self.weakest(net)
        if weak is None:
            return []
        near, sure = [placed for placed, *_ in self.currents_of(net)], self.is_sure(net, weak.share)
        known = [self.subject.currents.devices.get(placed.id) for placed in near]
        guessed = any(each is not None and not each.stated for each in known)
        carried, whole = weak.share * weak.limit_ma, 1000 * self.total(net)
        return self.subject.finding(
            "electromigration",
            weak.share,
            f"{net} carries {carried:.3g} mA through {weak.layer} that may carry {weak.limit_ma:.3g} mA"
            + f"; its whole current is {whole:.3g} mA" * (carried < 0.99 * whole)
            + ", estimated" * guessed
            + ": state it to be sure" * (guessed and not sure),
            where=weak.box,
            devices=near,
            nets=[net],
            cause=weak.layer,
            must=sure,
        )
