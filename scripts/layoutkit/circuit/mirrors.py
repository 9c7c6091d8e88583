r"""Find current mirrors and current sources on one gate net, with what lies below their sources and above their drains.

      iref    out      iref    out     iref    out      iref       out       amplifier
       |__     |        sw__    |       |__     |        |_____     |           |
     M1|--'---|M2     M1|--'---|M2    M1|--'---|M2     C1|--' |----|C2     M1|--'---|M2
       |       |        |       |       R       sw     M1|----'----|M2       |       |
       rail   rail     rail   rail     rail   rail      rail      rail      rail   rail
       simple         closed_by sw     degenerated       wide_swing           driven

Members of a mirror have one type, one model and one gate net, and their feet end on one net (see ``channels.py``).
Outputs of another gate length than the reference are listed in ``unequal_length``; they are members only where no
output has its length, and where the reference does not bias cascodes. The reference is the member whose drain the gate
is on, directly, through a cascode or through a switch. Without one, an amplifier or a port drives the gate, and the
structure must say that the members are current sources.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.circuit.channels import electrical_width, gate_length
from layoutkit.circuit.families import OTHER_TYPE, families_of, ratio
from layoutkit.circuit.symmetry_graph import drawing, grouped, same_size

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from layoutkit.circuit.channels import Channels
    from layoutkit.circuit.circuit import Device
    from layoutkit.circuit.families import Family

FEWEST_SOURCES = 3  # on a gate that an amplifier drives, are a group; two are one if nothing else takes them
_MOST_CASCODES = 256
_MOST_ON_A_DRAIN = 16  # channel ends on the net between a current source and its cascode


class Found(NamedTuple):
    """A group of devices that was found.

    Attributes:
        type: Type of its module.
        devices: Its devices; the order carries meaning.
        properties: Those of its module.
    """

    type: str
    devices: tuple[str, ...]
    properties: dict[str, Any]


class Mirrors:
    """The search in one circuit.

    Args:
        channels: Its channels.
        crossed: Transistors of cross-coupled pairs: what closes a loop around one of these is no diode.
        images: Device to its image.
    """

    def __init__(self, channels: Channels, crossed: AbstractSet[str], images: Mapping[str, str]) -> None:
        self._channels = channels
        self._crossed = crossed
        self._images = images
        self._supplies = channels.supplies
        self._by_gate = families_of(channels)
        self._references: dict[tuple[str, str, str], list[Device]] = defaultdict(list)  # type, model, gate
        self._with_reference: set[tuple[str, str, str]] = set()
        self._closing: dict[str, dict[str, list[Device]]] = {}
        self._apart: list[tuple[str, str]] = []
        self._below: set[str] = set()  # devices below the sources of mirrors

    def with_reference(self) -> list[Found]:
        """Return the mirrors with a reference: a member whose drain is on the gate, if need be through others."""
        found, behind = list[Found](), list[Found]()
        for key, families in self._by_gate.items():
            for family in families:
                found += self._mirrors_of(key, family)
        for key, families in self._by_gate.items():
            if key not in self._with_reference:
                for family in families:
                    behind += self._behind_switches(key, family)
        stages = grouped(behind, lambda each: (each.devices[0], tuple(map(drawing, self._outputs_of(each)))))
        return [*found, *(each for rows in stages.values() if not self._are_inputs(rows) for each in rows)]

    def _outputs_of(self, mirror: Found) -> list[Device]:
        return [self._channels.mos[name] for name in mirror.properties["outputs"]]

    def _are_inputs(self, mirrors: Sequence[Found]) -> bool:
        """Whether equal outputs of one reference have a gate each, of which a capacitor brings a signal to one."""
        gates = [output.terminals["g"] for each in mirrors for output in self._outputs_of(each)]
        circuit = self._channels.circuit
        devices = (circuit.device(place.device) for net in gates for place in circuit.nets[net])
        plates = [{d.terminals[end] for end in d.kind.ends} for d in devices if d.type == "capacitor"]
        return len(mirrors) == len(gates) > 1 and any(not any(e in self._supplies for e in ends) for ends in plates)

    def _mirrors_of(self, key: tuple[str, str, str], family: Family) -> list[Found]:
        reference, closer = self._reference(family)
        if reference is None:
            return []
        self._with_reference.add(key)
        self._references[key].append(reference)
        foot = self._channels.foot(reference)
        alike: list[Device] = []
        other: list[Device] = []
        for member in family.members:
            if member is not reference:
                own = self._channels.foot(member)
                same = own.kinds == foot.kinds and (own.kinds or member.terminals["s"] == reference.terminals["s"])
                (alike if same else other).append(member)
        extra: dict[str, Any] = {}
        if (
            closer is not None
            and closer.terminals["g"] != family.gate
            and self._channels.is_switch(closer, by_port=True)
        ):
            extra["closed_by"] = closer.id
        members = (*alike, *other)
        if not any(gate_length(each) == gate_length(reference) for each in members):
            inputs = any(map(self._is_input, members))
            if members and (other or inputs or self._biases_cascodes(family)):
                names = ", ".join(each.id for each in members)
                why = "and something else below its source" if other else "and the reference biases cascodes"
                why = "and it matches a transistor on another gate" if inputs else why
                self._apart.append((names, f"has the gate of {reference.id}, but another length {why}"))
                return []
            if apart := self._of_another_length(each.id for each in members):
                self._apart.append((reference.id, f"makes the gate of {apart[0].devices[0]}, but has another length"))
                return apart
        else:
            equal = [[each for each in part if gate_length(each) == gate_length(reference)] for part in (alike, other)]
            unequal = [each.id for each in members if gate_length(each) != gate_length(reference)]
            alike, other = equal
            extra |= {"unequal_length": unequal} if unequal else {}
        outputs = [each for each in (*alike, *other) if each.id not in self._channels.in_logic_gates]
        if not outputs or ("resistor" in foot.kinds and not any(self._channels.foot(each).kinds for each in outputs)):
            return []
        apart = self._of_another_length(extra.get("unequal_length", ()))
        kinds = {kind for each in (reference, *outputs) for kind in self._channels.foot(each).kinds}
        topology = "self_biased" if other and kinds & {"resistor", "junction"} else "degenerated"
        topology = topology if other or foot.kinds else "simple"
        return [self._mirror(reference, outputs, topology, extra, closer), *apart]

    def _is_input(self, device: Device) -> bool:
        """Whether the image of a transistor is on a gate without a diode: two inputs, of which one is biased."""
        image = self._channels.mos.get(self._images.get(device.id, ""))
        return image is not None and not self._channels.has_diode(image.terminals["g"], device.type)

    def _of_another_length(self, names: Iterable[str]) -> list[Found]:
        """Return the equal current sources on the gate of a mirror that have a length of their own, as in a ring."""
        devices = [d for d in map(self._channels.mos.__getitem__, names) if d.terminals["d"] not in self._supplies]
        alike = grouped(devices, lambda device: (drawing(device), device.terminals["s"]))
        rows = [
            row for row in alike.values() if len({each.terminals["d"] for each in row}) == len(row) >= FEWEST_SOURCES
        ]
        return [self._mirror(row[0], row[1:], "driven", {}, None) for row in rows]

    def _biases_cascodes(self, family: Family) -> bool:
        """Whether the gate of a family is also that of transistors that stand on others of their type."""
        kind, own = family.members[0].type, {each.id for each in family.members}
        tops = [each for each in self._channels.gates[family.gate] if each.type == kind and each.id not in own]
        return any(
            below.type == kind and below.terminals["g"] != family.gate
            for top in tops
            for below in self._channels.drains.get(top.terminals["s"], ())
        )

    def _reference(self, family: Family, least: int = 2) -> tuple[Device | None, Device | None]:
        """Return the reference of a family, and the transistor between its drain and the gate if there is one.

        One of fewer than ``least`` members may only be a diode.
        """
        diodes = [
            member for member in family.members if self._channels.stack_of(member)[-1].terminals["d"] == family.gate
        ]
        if diodes:
            return min(
                diodes, key=lambda each: (len(self._channels.foot(each).kinds), electrical_width(each) or 0)
            ), None
        closed: list[tuple[Device, Device]] = []
        closers = self._closers(family.gate) if len(family.members) >= least else {}
        for member in family.members:
            for closer in closers.get(member.terminals["d"], ()):
                if self._crossed & {member.id, closer.id} or closer is member:
                    continue
                above = closer.type == member.type and closer.terminals["d"] == family.gate
                switch = self._channels.is_switch(closer, by_port=True)
                if (above and not switch) or (switch and self._channels.drives_one_type(family.gate)):
                    closed.append((member, closer))
        if not closed:
            return None, None
        return min(closed, key=lambda each: electrical_width(each[0]) or 0)

    def _closers(self, gate: str) -> dict[str, list[Device]]:
        """Return the transistors between a gate net and other nets that are no supplies, by the other net."""
        if gate not in self._closing:
            found: dict[str, list[Device]] = defaultdict(list)
            for closer in self._channels.channel_ends(gate):
                net = closer.terminals
                far = net["s"] if net["d"] == gate else net["d"]
                if far not in self._supplies and far != gate:
                    found[far].append(closer)
            self._closing[gate] = found
        return self._closing[gate]

    def _behind_switches(self, key: tuple[str, str, str], family: Family) -> list[Found]:
        """Return the mirror of members whose gate net only channels, or a resistor, join to that of a reference.

        Through these no current flows, whether they switch or filter. Where switches choose one of several references,
        all are in the mirror: the one with the fewest outputs of its own is its reference, the others are outputs.
        """
        gate, own = family.gate, {each.terminals["d"] for each in family.members if len(family.members) == 1}
        joined: dict[str, list[str]] = defaultdict(list)
        for closer in (*self._channels.channel_ends(gate), *self._channels.others.get(gate, ())):
            if not (closer.is_mos or closer.type == "resistor"):
                return []  # a junction shifts the voltage of the gates
            passed, far = self._channels.path_from(closer, gate)
            if far == gate or far in own:
                continue  # a loop of channels on one net; a switch that makes the output a diode instead
            if far not in self._supplies:
                joined[far] += passed
            elif not (closer.is_mos and self._channels.is_switch(closer, by_port=True)):
                return []
        found = [each for far in joined if (each := self._reference_on((*key[:2], far), family.root)) is not None]
        if not found or len(found) < len(joined) or found[0].id in {each.id for each in family.members}:
            return []
        lengths, on_gate = {*map(gate_length, family.members)}, self._channels.gates
        first, *others = sorted(found, key=lambda d: (gate_length(d) not in lengths, len(on_gate[d.terminals["g"]])))
        others, equal = ([d for d in part if gate_length(d) == gate_length(first)] for part in (others, family.members))
        self._with_reference.add(key)
        outputs = equal or list(family.members)
        unequal = [each.id for each in family.members if each not in outputs]
        via = sorted({name for passed in joined.values() for name in passed})
        extra = {"joined_by": via, **({"unequal_length": unequal} if unequal else {})}
        return [self._mirror(first, (*others, *outputs), "selected" if len(joined) > 1 else "switched", extra, None)]

    def _reference_on(self, key: tuple[str, str, str], rail: str) -> Device | None:
        """Return the only reference on a gate net, even one whose mirror has no other output."""
        found = [each for each in self._references.get(key, ()) if self._root(each) == rail]
        if not found:
            alone = [each for each in self._by_gate.get(key, ()) if each.root == rail]
            found = [each for one in alone if (each := self._reference(one, least=1)[0]) is not None]
        return found[0] if len(found) == 1 else None

    def _root(self, device: Device) -> str:
        return self._channels.foot(device).root

    def driven(
        self,
        tails: Collection[tuple[str, str]],
        least: int,
        taken: Collection[str] = (),
        folded: Collection[tuple[str, str]] = (),
    ) -> list[Found]:
        """Return current sources at a supply whose gates have no reference: an amplifier or a port drives them.

        An amplifier inside the circuit drives at least ``least`` of them, or the structure says that one is a current
        source. Gates of both types are those of switches.

        Args:
            tails: Source nets of the input pairs, each with the type of its transistors; where any are given, a source
                without an amplifier must be the tail of one, else it must lie under a cascode or feed a reference.
            least: Fewest sources on a gate that an amplifier drives.
            taken: Transistors that are part of other groups.
            folded: Drain nets of the input pairs, each with the other type: a source there below a cascode, whose bias
                comes from outside, carries the current of the pair, too.
        """
        found = []
        for key, families in self._by_gate.items():
            gate = key[2]
            if key in self._with_reference or not self._channels.drives_one_type(gate):
                continue
            driven = any(not self._channels.is_switch(each) for each in self._channels.channel_ends(gate))
            for family in families:
                members = [each for each in family.members if each.id not in taken and each.id not in self._below]
                members = [each for each in members if each.terminals["d"] not in self._supplies]
                if not driven:  # above a junction, what something outside drives is a switch
                    members = [each for each in members if "junction" not in self._channels.foot(each).kinds]
                if not (driven and len(members) >= FEWEST_SOURCES):
                    members = [each for each in members if not self._is_pulled_beside(each, tails)]
                if family.root not in self._supplies or not members or self._channels.is_logic(gate):
                    continue
                lengths = Counter(gate_length(each) for each in members)
                length = max(lengths, key=lambda each: (lengths[each], str(each)))
                alike = [each for each in members if gate_length(each) == length]
                if len({each.terminals["d"] for each in alike}) < 2:
                    continue
                units = {round(each.params.get("w", 0) / each.nf * 1e12) for each in alike}  # two of these are sources
                enough = driven and len(alike) >= least and (least > 2 or len(units) == 1)
                tops = list(filter(None, map(self._above, alike)))
                gates = {each.terminals["g"] for each in tops} - {key[2]}
                if FEWEST_SOURCES <= len(alike) == len(tops) and len(gates) == 1:
                    ends = (self._channels.channel_ends(each.terminals["d"]) for each in tops)
                    enough = enough or all(any(each.type != key[0] for each in devices) for devices in ends)
                below_pair = not driven and all(self._is_folded(each, folded) for each in alike)
                if len(alike) >= FEWEST_SOURCES:
                    enough = enough or any(map(self._feeds_reference, alike)) or self._are_switched(alike)
                if enough or below_pair or any(self._is_tail(each, alike, tails) for each in alike):
                    self._with_reference.add(key)
                    reference = min(alike, key=lambda each: (len(self._channels.foot(each).kinds),))
                    rest = [each for each in alike if each is not reference]
                    unequal = [each.id for each in members if each not in alike]
                    extra = {"unequal_length": unequal} if unequal else {}
                    found.append(self._mirror(reference, rest, "driven", extra, None))
        return found

    def _is_folded(self, device: Device, folded: Collection[tuple[str, str]]) -> bool:
        return (device.terminals["d"], device.type) in folded and self._above(device, clean=False) is not None

    def _is_pulled_beside(self, device: Device, tails: Collection[tuple[str, str]]) -> bool:
        """Whether another transistor of its type pulls the drain of a transistor to its rail, as beside a switch.

        Without ``tails`` the source of the other one may be on any net, as in a start-up circuit. A longer one that is
        always on is the resistor of a start-up.
        On the tail of an input pair an equal one is the other half of its source, which a common mode drives.
        """
        net = device.terminals
        beside = self._channels.drains[net["d"]]
        if len(beside) > _MOST_ON_A_DRAIN:
            return True
        alike = [d for d in beside if d.type == device.type and (d.terminals["s"] == net["s"] or not tails)]
        alike = [each for each in alike if not (self._channels.is_always_on(each) and _is_longer(each, device))]
        halves = (net["d"], device.type) in tails
        return any(each.terminals["g"] != net["g"] and not (halves and same_size(each, device)) for each in alike)

    def _feeds_reference(self, device: Device) -> bool:
        """Whether the current of a transistor flows into a diode of the other type or a junction in place of one."""
        other, top = OTHER_TYPE[device.type], self._above(device, clean=False)
        nets = [each.terminals["d"] for each in (device, top) if each is not None]
        return any(self._channels.has_diode(net, other) or self._channels.has_junction(net, other) for net in nets)

    def _are_switched(self, members: Sequence[Device]) -> bool:
        """Whether switches alone lead the currents of equal transistors on to the same nets, as in a DAC."""
        ends = set()
        for each in members:
            drain = each.terminals["d"]
            above = self._channels.sources.get(drain, ())
            switched = [top for top in above if top.type == each.type and self._channels.is_switch(top, by_port=True)]
            if not switched or len(self._channels.circuit.nets[drain]) > 1 + len(switched):
                return False
            ends.add(frozenset(top.terminals["d"] for top in above))
        return len(ends) == len({*map(drawing, members)}) == 1

    def _is_tail(self, device: Device, members: Sequence[Device], tails: Collection[tuple[str, str]]) -> bool:
        """Whether the structure says that a transistor is a current source."""
        drain = device.terminals["d"]
        top = self._above(device, clean=False)
        if tails:
            tops = [each.terminals["d"] for each in self._channels.sources.get(drain, ()) if each.type == device.type]
            return any((net, device.type) in tails for net in (drain, *tops))
        if self._feeds_reference(device):
            return True
        if top is None or device.terminals["s"] != device.terminals["b"] or len(self._channels.circuit.nets[drain]) > 2:
            return False  # a switch to a net that is no rail of its own type, or to one plate of a capacitor
        above = [self._above(each) for each in members]
        gates = [each.terminals["g"] for each in above if each is not None]
        return gates.count(top.terminals["g"]) > 1

    def _above(self, device: Device, *, clean: bool = True) -> Device | None:
        """Return the cascode of a transistor: the only one of its type with its source on the drain.

        Args:
            device: The transistor.
            clean: Whether nothing else may feed the net between them, as an input pair does in a folded cascode.
        """
        net = device.terminals["d"]
        if net in self._supplies or len(self._channels.channel_ends(net)) > _MOST_ON_A_DRAIN:
            return None
        tops = [each for each in self._channels.sources.get(net, ()) if each.type == device.type]
        if len(tops) != 1 or self._channels.is_switch(tops[0]) or tops[0].terminals["g"] in self._supplies:
            return None
        if any(each.type != device.type for each in self._channels.inverting(tops[0])):
            return None  # half of an inverter, which the source starves
        beside = [each for each in self._channels.drains.get(net, ()) if each is not device]
        opposite = [each for each in self._channels.sources.get(net, ()) if each.type != device.type]
        fed = any(each.type == device.type for each in beside)
        if clean:
            fed = bool(self._channels.others.get(net)) or not all(self._shuts(each, net) for each in beside + opposite)
        return None if fed else tops[0]

    def _shuts(self, device: Device, net: str) -> bool:
        """Whether a transistor is no more than a switch that pulls a net to a supply, as at shutdown."""
        ends = {device.terminals["d"], device.terminals["s"]} - {net}
        return ends <= self._supplies.nets and self._channels.is_switch(device, by_port=True)

    def _cascodes(self, bottoms: Sequence[Device], closer: Device | None) -> list[Device]:
        """Return the cascodes above a mirror that share a gate, in the order of the mirror; none or at least two."""
        first = self._above(bottoms[0])
        clean = first is not None or closer is None
        above = [self._above(each, clean=clean) for each in bottoms]
        if above[0] is not None:
            gate, least = above[0].terminals["g"], 2
        else:
            gates = Counter(each.terminals["g"] for each in above if each is not None)
            if not gates:
                return []
            gate, least = min(gates, key=lambda net: (-gates[net], net)), 3  # two are a pair of their own
        tops = [each for each in above if each is not None and each.terminals["g"] == gate]
        if len({gate_length(each) for each in tops}) > 1:
            return []  # such as a bias transistor and a follower on it
        return tops if least <= len(tops) == len({each.id for each in tops}) else []

    def cascode_pairs(self, mirror: Found, taken: Collection[str]) -> list[tuple[Device, Device]]:
        """Return each two equal transistors with one gate above the members of a mirror that are in no group."""
        rows: dict[tuple[Any, ...], list[Device]] = defaultdict(list)
        for name in (mirror.properties["reference"], *mirror.properties["outputs"]):
            top = self._above(self._channels.mos[name], clean=False)
            if top is not None and top.id not in taken:
                rows[top.terminals["g"], drawing(top)].append(top)
        return [(row[0], row[1]) for row in rows.values() if len(row) == 2 and row[0] is not row[1]]

    def _mirror(
        self,
        reference: Device,
        outputs: Sequence[Device],
        topology: str,
        extra: Mapping[str, Any],
        closer: Device | None,
    ) -> Found:
        """Return the group of a mirror with the cascodes on top of it."""
        ratios = {output.id: ratio(output, reference) for output in outputs}
        bottoms = [reference, *outputs]
        tops = self._cascodes(bottoms, closer)
        stacked = bool(tops) and tops[0].terminals["g"] == reference.terminals["g"]
        row = tops
        while len(row) == len(bottoms) and (row := self._cascodes(row, None)) and len(tops) < _MOST_CASCODES:
            tops = [*tops, *row]
        if closer is not None and closer in tops:
            extra = {name: value for name, value in extra.items() if name != "closed_by"}
        if tops and topology == "simple":
            first = next((each for each in tops if each.terminals["s"] == reference.terminals["d"]), None)
            if closer is not None and "closed_by" not in extra:
                topology = "stacked" if closer.terminals["g"] == reference.terminals["g"] else "wide_swing"
            elif stacked:
                topology = "stacked"
            else:
                own = first is not None and first.terminals["d"] == first.terminals["g"]
                topology = "cascode" if own else "biased_cascode"
        elif closer is not None and topology == "simple" and "closed_by" not in extra:
            topology = "wide_swing"
        properties: dict[str, Any] = {
            "matched": any(each is not None for each in ratios.values()),
            "topology": topology,
            "reference": reference.id,
            "outputs": [output.id for output in outputs],
            "ratios": ratios,
            "common_gate": reference.terminals["g"],
            **extra,
        }
        sources = {each.terminals["s"] for each in bottoms}
        if len(sources) == 1:
            properties["common_source"] = reference.terminals["s"]
        else:
            properties["common_source"] = self._root(reference)
            feet = {each.id: list(self._channels.foot(each).devices) for each in bottoms}
            properties["feet"] = {name: devices for name, devices in feet.items() if devices}
            self._below.update(*feet.values())
        if tops:
            properties["cascodes"] = [device.id for device in tops]
            properties["cascoded_reference"] = tops[0].terminals["s"] == reference.terminals["d"]
        return Found("current_mirror", tuple(device.id for device in (*bottoms, *tops)), properties)

    def left_out(self) -> list[tuple[str, str]]:
        """Return what has the gate of a mirror and is not in it, each with the reason in words."""
        found = list(self._apart)
        for key, references in self._references.items():
            roots = {self._root(each): each for each in references}
            for family in self._by_gate[key]:
                if family.root not in roots:
                    reference, names = references[0], ", ".join(each.id for each in family.members)
                    end, its = family.root, self._root(reference)
                    text = f"the source ends on {end}, not on {its}" if end != its else "a port drives what lies below"
                    found.append((names, f"has the gate of mirror {reference.id}, but {text}"))
        return found


def _is_longer(one: Device, other: Device) -> bool:
    return one.params.get("l", 0) > other.params.get("l", math.inf)
