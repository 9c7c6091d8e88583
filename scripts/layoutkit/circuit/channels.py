r"""Where currents flow: what is on a net, what lies below a source, and which transistors are switches.

The foot of a transistor is what its current passes from its source down to the net where branches meet: a resistor, a
switch, a diode or junction, or nothing::

      | M1     | M2       | M3
      |        R          sw     the root of all three is the rail; the feet of M2 and M3 are R and the switch
    --+--------+----------+-- rail
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.circuit.orientation import is_off

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.supplies import Supplies

_LONGEST_FOOT = 128  # devices in series, such as the bars of one resistor
_LEAST_DRAWN = 2e-15  # farad of a capacitor that only has a value
_MOST_IN_A_GATE = 16
"""A logic gate has at most this many transistors of one type."""
_LONGEST_CHAIN = 64  # nets through which a logic signal is followed
_OF_WIRE = 50e-15  # farad; a smaller capacitor is that of a wire
_RESISTOR, _SWITCH, _JUNCTION = "resistor", "switch", "junction"
_JUNCTIONS = frozenset({"npn", "pnp", "diode"})


class Foot(NamedTuple):
    """What lies between the source of a transistor and the net where branches meet.

    Attributes:
        root: That net.
        kinds: What the current passes, from the source down: ``resistor``, ``switch``, ``junction``.
        devices: Those devices.
    """

    root: str
    kinds: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()


class Channels:
    """The channels, resistors and junctions of an oriented circuit, by net.

    Attributes:
        mos: Id to each transistor that carries current: neither off for good nor with both ends on one net.
        gates: Net to the transistors of ``mos`` whose gate is on it.
        drains: Likewise for drains.
        sources: Likewise for sources.
    """

    def __init__(self, circuit: Circuit, supplies: Supplies) -> None:
        self.circuit = circuit
        self.supplies = supplies
        self.ports = frozenset(circuit.ports)
        sensed = {net for net, places in circuit.nets.items() if all(p.terminal == "g" for p in places)}
        self._outside = self.ports | set(circuit.black_box_nets) | sensed  # such a net is a port that was forgotten
        self._on = {"nmos": frozenset(supplies.outer.power), "pmos": frozenset(supplies.outer.ground)}
        self.mos = {d.id: d for d in circuit.devices if d.is_mos and not self.is_dummy(d)}
        self.gates: dict[str, list[Device]] = defaultdict(list)
        self.drains: dict[str, list[Device]] = defaultdict(list)
        self.sources: dict[str, list[Device]] = defaultdict(list)
        for device in self.mos.values():
            net = device.terminals
            self.gates[net["g"]].append(device)
            self.drains[net["d"]].append(device)
            self.sources[net["s"]].append(device)
        between: dict[frozenset[str], set[str]] = defaultdict(set)
        for device in self.mos.values():
            between[self._ends_of(device)].add(device.type)
        self._both_types = {ends for ends, types in between.items() if len(types) == 2}
        self._gate_types: dict[str, int] = {}
        self._logic: dict[str, bool] = {}
        self._asked = 0  # depth of the search of is_logic
        self._feet: dict[tuple[str, str], Foot] = {}

    @staticmethod
    def _ends_of(device: Device) -> frozenset[str]:
        return frozenset((device.terminals["d"], device.terminals["s"]))

    def is_dummy(self, device: Device) -> bool:
        """Whether a transistor is off for good, or has both ends on one net."""
        return device.terminals["d"] == device.terminals["s"] or is_off(device, self.supplies)

    def is_dummy_beside(self, device: Device) -> bool:
        """Whether drain and source of a device are on one net, and it has gate, source and length of one beside it."""
        net, unit = device.terminals, (device.model.lower(), gate_length(device))
        beside = self.gates.get(net["g"], ()) if device.is_mos and net["d"] == net["s"] else ()
        return any((d.model.lower(), gate_length(d)) == unit and d.terminals["s"] == net["s"] for d in beside)

    @cached_property
    def others(self) -> dict[str, list[Device]]:
        """Net to the devices other than transistors that carry direct current from it."""
        found: dict[str, list[Device]] = defaultdict(list)
        for device in self.circuit.devices:
            if device.is_mos or device.type in {"capacitor", "mos_capacitor", "tap"} or self._blocks(device):
                continue
            ends = ("c", "e") if device.kind.area_counts or device.type in {"npn", "pnp"} else device.kind.ends
            for net in {device.terminals[end] for end in ends if end in device.terminals}:
                found[net].append(device)
        return found

    def _blocks(self, device: Device) -> bool:
        """Whether a diode is reverse-biased for good, as one against the charge of an antenna."""
        if device.type != "diode":
            return False
        anode, cathode = (device.terminals[end] for end in ("p", "n"))
        return anode in self.supplies.turning_off["nmos"] or cathode in self.supplies.turning_off["pmos"]

    @cached_property
    def source_types(self) -> dict[str, set[str]]:
        """Net to the types of the transistors whose sources are on it."""
        return {net: {device.type for device in devices} for net, devices in self.sources.items()}

    def stack_of(self, device: Device) -> list[Device]:
        """Return a transistor and those in series on its gate above it, which are one long channel."""
        found = [device]
        while True:
            net = found[-1].terminals
            above = self.sources.get(net["d"], ())
            if len(above) != 1 or len(self.drains[net["d"]]) != 1 or above[0] in found:
                return found
            if (above[0].type, above[0].terminals["g"]) != (device.type, net["g"]):
                return found
            found += above

    def drives_one_type(self, net: str) -> bool:
        """Whether all gates on a net are those of transistors of one type; a diode makes the net, and counts last."""
        if net not in self._gate_types:
            gates = self.gates.get(net, ())
            driven = {device.type for device in gates if device.terminals["d"] != net}
            self._gate_types[net] = len(driven or {device.type for device in gates})
        return self._gate_types[net] == 1

    def channel_ends(self, net: str) -> list[Device]:
        """Return the transistors whose channel ends on a net."""
        return [*self.drains.get(net, ()), *self.sources.get(net, ())]

    @staticmethod
    def far(device: Device, net: str) -> str:
        """Return the other end of a channel or a resistor that ends on a net."""
        one, other = (device.terminals[end] for end in device.kind.ends)
        return other if one == net else one

    def path_from(self, device: Device, net: str) -> tuple[list[str], str]:
        """Return the channels and resistors in series from a net, beginning with a device, and the net at their end."""
        passed, net = [device.id], self.far(device, net)
        while net not in self.supplies and not self.gates.get(net):
            ends = [*self.channel_ends(net), *self.others.get(net, ())]
            onward = [each for each in ends if each.id not in passed]
            if len(ends) != 2 or len(onward) != 1 or not (onward[0].is_mos or onward[0].type == "resistor"):
                break
            passed.append(onward[0].id)
            net = self.far(onward[0], net)
        return passed, net

    def is_driven(self, net: str) -> bool:
        """Whether a channel or another device inside the circuit carries current to a net."""
        return bool(self.channel_ends(net) or self.others.get(net))

    def has_capacitor(self, net: str) -> bool:
        """Whether a capacitor is on a net, larger than that of a wire."""
        devices = (self.circuit.device(place.device) for place in self.circuit.nets[net])
        return any("capacitor" in each.type and each.params.get("c", _OF_WIRE) >= _OF_WIRE for each in devices)

    def has_diode(self, net: str, mos_type: str = "") -> bool:
        """Whether a transistor has gate and drain on a net."""
        return any(d.terminals["g"] == net and mos_type in {"", d.type} for d in self.drains.get(net, ()))

    def _is_rail_diode(self, device: Device, net: str) -> bool:
        """Whether a transistor takes the current from a net to a supply that its gate is on, as a junction does."""
        ends = device.terminals
        return device.is_mos and ends["s"] == net and ends["d"] == ends["g"] and ends["d"] in self.supplies

    def ends_in_junction(self, net: str) -> bool:
        """Whether a diode, a junction or a transistor connected as a diode leads on from a net."""
        others = any(device.type in _JUNCTIONS for device in self.others.get(net, ()))
        return others or self.has_diode(net) or any(self._is_rail_diode(d, net) for d in self.sources.get(net, ()))

    def is_always_on(self, device: Device) -> bool:
        """Whether the gate of a transistor is on the rail that turns it on, and its drain is not: it is a resistor."""
        return device.terminals["g"] in self._on[device.type] - {device.terminals["d"]}

    def has_junction(self, net: str, mos_type: str) -> bool:
        """Whether a bipolar diode, in place of a diode of ``mos_type``, takes the current from a net."""
        ends = ("c", "e") if mos_type == "nmos" else ("e", "c")
        for device in self.others.get(net, ()):
            if device.type in {"npn", "pnp"}:
                end = ends[device.type == "pnp"]
                if device.terminals[end] == net and device.terminals["b"] == device.terminals["c"]:
                    return True
        return False

    def is_switch(self, device: Device, *, by_port: bool = False) -> bool:
        """Whether a transistor only switches: it is half of a transmission gate, always on, or on a logic signal.

        Args:
            device: The transistor.
            by_port: Whether a gate that only something outside drives counts, too.
        """
        gate = device.terminals["g"]
        if self.passes(device):
            return True
        if self.is_always_on(device) or self.is_logic(gate):
            return True
        return by_port and gate in self._outside and not self.is_driven(gate)

    def inverting(self, device: Device) -> list[Device]:
        """Return the transistors with their gate and drain on those of another one."""
        return [each for each in self.gates[device.terminals["g"]] if each.terminals["d"] == device.terminals["d"]]

    def passes(self, device: Device) -> bool:
        """Whether a transistor is half of a transmission gate."""
        ends = self._ends_of(device)
        return ends in self._both_types and not any(net in self.supplies for net in ends)

    def is_logic(self, net: str) -> bool:
        """Whether a net carries a logic signal: the output of a complementary gate, or an input of one from outside.

        In a complementary gate the transistors to power and those to ground have the same gate nets. What pulls between
        both rails, on one side only by logic signals and nowhere by a bias, is logic too, such as a level shifter, and
        so is a latch between both rails without a bias. Transmission gates pass logic on.
        """
        if net not in self._logic:
            if self._asked >= _LONGEST_CHAIN:
                return False
            self._logic[net] = False  # where signals go round in a circle
            self._asked += 1
            self._logic[net] = self._is_logic(net)
            self._asked -= 1
        return self._logic[net]

    def _is_logic(self, net: str) -> bool:
        if net in self.supplies:
            return False
        if not self.is_driven(net):
            pulled: dict[str, set[str]] = {"nmos": set(), "pmos": set()}
            for device in self.gates.get(net, ()):
                pulled[device.type].add(device.terminals["d"])
            return bool(pulled["nmos"] & pulled["pmos"])
        drivers = self.channel_ends(net)
        if len(drivers) <= _MOST_IN_A_GATE and drivers and all(self.passes(device) for device in drivers):
            fars = {end for device in drivers for end in self._ends_of(device)} - {net}
            return not self.others.get(net) and all(self.is_logic(far) for far in fars)
        down, up = (_gates_of(self._pulled_by(net, kind)) - self._on[kind] for kind in ("nmos", "pmos"))
        if (down and down == up and net not in down) or self._is_switched_inverter(net, down, up):
            return True
        if down and up and self._is_latched(net) and not any(self.has_diode(gate) for gate in (*down, *up)):
            return True
        if len(drivers) > _MOST_IN_A_GATE or self.others.get(net):
            return False
        if any(d.terminals["s"] not in self.supplies or self.has_diode(d.terminals["g"]) for d in drivers):
            return False
        sides = [[d for d in drivers if d.type == kind] for kind in ("nmos", "pmos")]
        return all(sides) and any(all(self.is_logic(d.terminals["g"]) for d in side) for side in sides)

    def _is_switched_inverter(self, net: str, down: set[str], up: set[str]) -> bool:
        """Whether an inverter on logic drives a net, or other gates that pull it ``down`` or ``up`` are no bias.

        Where the output itself is one of these gates on both sides, it is the bias: the amplifier biases itself.
        """
        drivers = self.channel_ends(net)
        gates = {d.terminals["g"] for d in drivers}
        two = len(drivers) == 2 and {d.type for d in drivers} == {"nmos", "pmos"}
        if not two or len(gates) > 1 or net in gates | (down & up):
            return False
        switched = all(self.is_logic(g) or (g in self._outside and not self.is_driven(g)) for g in down ^ up)
        return all(map(self.is_logic, gates)) or (bool(down and up and down != up) and switched)

    @cached_property
    def in_logic_gates(self) -> frozenset[str]:
        """The transistors of complementary gates, such as inverters and NAND gates."""
        found: set[str] = set()
        for net in self.drains:
            down, up = (self._pulled_by(net, kind) for kind in ("nmos", "pmos"))
            gates = _gates_of(down)
            if down and up and gates == _gates_of(up) and net not in gates and net not in self.supplies:
                found |= {device.id for device in (*down, *up)}
        return frozenset(found)

    def _is_latched(self, net: str) -> bool:
        """Whether a transistor on a rail drives a net whose gate the net drives back through one of its type."""
        for device in self.drains.get(net, ()):
            gate = device.terminals["g"]
            back = self.drains.get(gate, ()) if device.terminals["s"] in self.supplies and gate != net else ()
            if len(back) <= _MOST_IN_A_GATE and any(d.type == device.type and d.terminals["g"] == net for d in back):
                return True
        return False

    def _pulled_by(self, net: str, mos_type: str) -> list[Device]:
        """Return the transistors of one type between a net and their rail; none if these are no gate."""
        front, seen = [net], {net}
        used: dict[str, Device] = {}
        while front:
            here = front.pop()
            for device in self.drains.get(here, ()) if len(self.drains.get(here, ())) <= _MOST_IN_A_GATE else ():
                if device.type != mos_type:
                    continue
                used[device.id] = device
                below = device.terminals["s"]
                if below in self.supplies.turning_off[mos_type]:
                    continue
                if not any(each.type == mos_type for each in self.drains.get(below, ())):
                    return []  # it leads to no rail
                if below not in seen:
                    seen.add(below)
                    front.append(below)
            if len(used) > _MOST_IN_A_GATE:
                return []
        return list(used.values())

    def foot(self, device: Device) -> Foot:
        """Return what lies between the source of a transistor and the net where branches meet."""
        key = (device.id, device.terminals["s"])
        if key not in self._feet:
            self._feet[key] = self._foot(device)
        return self._feet[key]

    def _foot(self, device: Device) -> Foot:
        net, above = device.terminals["s"], device
        kinds: list[str] = []
        passed: list[str] = []
        while net not in self.supplies and not self._is_held(net) and len(kinds) < _LONGEST_FOOT:
            drains, sources = self.drains.get(net, ()), self.sources.get(net, ())
            others = self.others.get(net, ())
            if len(drains) + len(sources) + len(others) > _MOST_IN_A_GATE:
                break
            known = {above.id, *passed}
            below = [d for d in (*drains, *sources, *others) if d.id not in known]
            junctions = [d for d in below if d.type in _JUNCTIONS or self._is_rail_diode(d, net)]
            bridges = [d for d in below if d.type == "resistor"]
            if junctions and len(junctions) + len(bridges) == len(below):
                far = self._below_junction(junctions, net)
                if far is None:
                    break
                kinds.append(_JUNCTION)
                passed += [d.id for d in (*junctions, *bridges) if far in d.terminals.values()]
                net, above = far, junctions[0]
                continue
            if len(bridges) > 1 and len({frozenset(d.terminals[end] for end in d.kind.ends) for d in below}) == 1:
                passed += [d.id for d in bridges[1:]]  # in parallel
                below = bridges[:1]
            if len(below) > 1 and len(bridges) == len(below):  # one to a rail, others to adjust it or to a junction
                below = [d for d in below if any(d.terminals[end] in self.supplies for end in d.kind.ends)]
            if len(below) != 1:
                break
            (other,) = below
            passed += [
                d.id for d in bridges if d is not other and any(map(self.ends_in_junction, d.terminals.values()))
            ]
            if other.type == "resistor":
                ends = [other.terminals[end] for end in other.kind.ends]
                far = ends[1] if ends[0] == net else ends[0]
                kinds.append(_RESISTOR)
            elif other.is_mos and other.type == device.type and other.terminals["d"] == net:
                if not self.is_switch(other, by_port=True):
                    break
                far = other.terminals["s"]
                kinds.append(_SWITCH)
            else:
                break
            passed.append(other.id)
            net, above = far, other
        return Foot(net, tuple(dict.fromkeys(kinds)), tuple(passed))

    def _is_held(self, net: str) -> bool:
        """Whether something outside sets the potential of a net.

        A port on a junction only shows it, and so does one on a single resistor to a rail or to a junction.
        """
        if net not in self._outside or net in self.circuit.black_box_nets:
            return net in self._outside
        others = self.others.get(net, ())
        ends = {device.terminals[end] for device in others if device.type == "resistor" for end in device.kind.ends}
        shown = self.supplies.nets
        shown |= {end for end in (net, *ends) if any(d.type in _JUNCTIONS for d in self.others.get(end, ()))}
        return net not in shown and (len(others) != 1 or ends.isdisjoint(shown))

    @staticmethod
    def _below_junction(devices: Sequence[Device], net: str) -> str | None:
        """Return the net at the other end of junctions in parallel; None if they end on several."""
        ends = set()
        for device in devices:
            if device.type == "diode":
                ends |= {device.terminals[end] for end in device.kind.ends} - {net}
            elif device.is_mos:
                ends.add(device.terminals["d"])
            elif device.terminals.get("e") == net:
                ends.add(device.terminals["c"])
            else:
                return None
        return ends.pop() if len(ends) == 1 else None


def _gates_of(devices: Iterable[Device]) -> set[str]:
    return {device.terminals["g"] for device in devices}


def electrical_width(device: Device) -> float | None:
    """Return the width of all units of a transistor, in units that compare within one netlist."""
    if "nfin" in device.params:
        return float(device.params["nfin"]) * device.nf * device.m
    return float(device.params["w"]) * device.m if "w" in device.params else None


def is_of_a_wire(device: Device) -> bool:
    """Whether a device is a capacitor too small to draw, as an extracted netlist has them for its wires."""
    return device.type == device.model == "capacitor" and device.params.get("c", 1.0) * device.m < _LEAST_DRAWN


def gate_length(device: Device) -> tuple[float | None, float]:
    """Return the gate length of a transistor [m] and how many gates are in series."""
    return device.params.get("l"), device.params.get("stack", 1)
