"""What the ports of a circuit are for, and which test bench measures it.

The circuit's recognised modules and the names of its ports decide: the gates of a differential pair are the inputs, a
port on gates of both kinds is a clock, a diode-connected transistor takes a bias current, and so on. What is decided is
told in the answer, and a user's values replace it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from layoutkit.circuit.roles import find_roles, held_at_supply, ports_on_gates

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from layoutkit.circuit.circuit import Circuit, Device, RecognisedModule

_Node = TypeVar("_Node")
OPERATING_POINT = "operating_point"
_PAIR = "differential_pair"
_OUTPUT_NAME = re.compile(r"v?_?out.*|vo[pnm+\-]?\d*|q(n|b|bar)?", re.IGNORECASE)
_COMMON_MODE_NAME = re.compile(r"v_?(cm|ref|com).*", re.IGNORECASE)


@dataclass(frozen=True)
class PortRoles:
    """What the ports of a circuit are for.

    Attributes:
        bench: The test bench: ``amplifier``, ``comparator``, ``oscillator``, ``mirror`` or ``operating_point``.
        reason: Why, in words.
        power: Supply nets.
        ground: Ground nets.
        inputs: Both inputs of a differential pair, or the port that the input current of a mirror enters.
        outputs: What is measured: one net, or two that mirror each other; of a mirror, all of them.
        clock: What starts a comparison.
        more_clocks: Every other port with a clock, and whether it is the inverse of ``clock``.
        currents: Port that takes a bias current, to the transistor that takes it; also the input of a mirror.
        gates: Port on gates alone, to the transistor whose gate it biases.
        common: Ports at the common-mode voltage.
        levels: Port to whether it is held at the supply (true) or at ground: what enables the circuit, what feeds the
            inverters of an oscillator, and what closes a switch between passive devices.
        open: Ports that nothing is connected to.
    """

    bench: str
    reason: str
    power: tuple[str, ...]
    ground: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    clock: str = ""
    more_clocks: Mapping[str, bool] = field(default_factory=dict)
    currents: Mapping[str, Device] = field(default_factory=dict)
    gates: Mapping[str, Device] = field(default_factory=dict)
    common: tuple[str, ...] = ()
    levels: Mapping[str, bool] = field(default_factory=dict)
    open: tuple[str, ...] = ()


def find_port_roles(circuit: Circuit, bench: str = "") -> PortRoles:
    """Return what the ports of a recognised circuit are for.

    Args:
        circuit: With its modules.
        bench: The test bench to use; empty to choose one.
    """
    return _Finder(circuit, bench).roles()


class _Finder:
    def __init__(self, circuit: Circuit, bench: str) -> None:
        self.circuit = circuit
        self.known = find_roles(circuit)
        self.supplies = self.known.supplies
        self.on_gates = ports_on_gates(circuit, self.supplies)
        self.signals = [port for port in circuit.ports if port not in self.supplies]
        self.wanted = bench
        self.ends = {
            port: [(circuit.device(end.device), end.terminal) for end in circuit.nets[port]] for port in self.signals
        }

    def roles(self) -> PortRoles:
        inputs, clocks = self.known.inputs, dict(self.known.clocks)
        clock = next(iter(clocks), "")
        bench, reason = self._bench(inputs, clock)
        mirror = self._mirror() if bench == "mirror" else None
        if mirror is not None:
            inputs = (self._mirror_input(mirror),)
            tops = {self._driven(self.circuit.device(each)) for each in mirror.properties["outputs"]}
            outputs = tuple(port for port in self.signals if port in tops and self._carries_current_out(port))
        else:
            outputs = self._outputs({*inputs, clock}, single=bench == "oscillator")
        if bench == "mirror" and mirror is None:
            inputs = outputs = ()
        if bench != "comparator":
            clocks = {}
        left = [port for port in self.signals if port not in {*inputs, *outputs, *clocks}]
        levels = self._levels(left, bench)
        left = [port for port in left if port not in levels]
        currents = {port: taker for port in left if (taker := self._takes_current(port)) is not None}
        if mirror is not None:
            currents[inputs[0]] = self.circuit.device(mirror.properties["reference"])
        gates = {port: self.ends[port][0][0] for port in self.on_gates if port in left and port not in currents}
        common = tuple(port for port in gates if _COMMON_MODE_NAME.fullmatch(port) or self._on_both_kinds(port))
        return PortRoles(
            bench=bench,
            reason=reason,
            power=tuple(net for net in self.supplies.power if net in self.circuit.ports),
            ground=tuple(net for net in self.supplies.ground if net in self.circuit.ports),
            inputs=inputs,
            outputs=outputs,
            clock=next(iter(clocks), ""),
            more_clocks=dict(list(clocks.items())[1:]),
            currents=currents,
            gates={port: device for port, device in gates.items() if port not in common},
            common=common,
            levels=levels,
            open=tuple(port for port in left if port not in currents and port not in gates),
        )

    def _bench(self, inputs: tuple[str, ...], clock: str) -> tuple[str, str]:
        if self.wanted:
            return self.wanted, "asked for"
        latch = next((m for m in self._of("cross_coupled_pair")), None)
        if inputs and clock and latch is not None:
            return "comparator", f"clock {clock}, latch {latch.id}, inputs {' and '.join(inputs)}"
        logic = next((port for port in self.signals if self._inverts(self._inverts(port))), "") if inputs else ""
        if logic:
            return "comparator", f"inputs {' and '.join(inputs)}, output {logic} behind two inverters, no clock"
        if inputs:
            pairs = [{self.circuit.device(name).terminals["g"] for name in m.devices} for m in self._of(_PAIR)]
            kind = "differential pair" if set(inputs) in pairs else "two transistors on currents of one mirror"
            return "amplifier", f"{kind} with inputs {' and '.join(inputs)}, no clocked latch"
        ring = self._ring()
        if ring:
            return "oscillator", f"a ring of inverters: {', '.join(ring)}"
        stages = self._differential_ring()
        if stages:
            return "oscillator", f"a ring of differential stages: {', '.join(map(' and '.join, stages))}"
        mirror = self._mirror()
        if mirror is not None:
            return "mirror", f"{mirror.id}, and no differential pair with both gates on ports"
        return OPERATING_POINT, "no differential pair on ports, ring of inverters or mirror on ports was recognised"

    def _inverts(self, net: str) -> str:
        """Return the net at the input of the inverter that drives a net; empty where another circuit drives it."""
        gates: dict[str, set[str]] = {}
        for device, end in self._ends_of(net) if net else ():
            if end == "d" and device.terminals["s"] in self.supplies:
                gates.setdefault(device.terminals["g"], set()).add(device.type)
        both = [gate for gate, types in gates.items() if types == {"nmos", "pmos"} and gate not in self.supplies]
        return both[0] if len(both) == 1 else ""

    def _of(self, kind: str) -> Iterable[RecognisedModule]:
        return (module for module in self.known.groups if module.type == kind)

    def _on_both_kinds(self, port: str) -> bool:
        """Whether a port is on transistors of both kinds, as the input of an inverter is."""
        return {device.type for device, _ in self.ends[port]} >= {"nmos", "pmos"}

    def _levels(self, ports: Iterable[str], bench: str) -> dict[str, bool]:
        """Return the ports that are held at the supply (true) or at ground."""
        found = {port: held_at_supply(port) for port in ports if port in self.on_gates}
        found |= {port: self.ends[port][0][0].type == "nmos" for port in found if self._joins_passives(port)}
        if bench == "oscillator":  # what feeds its inverters is a supply, and no bias of one transistor
            fed = {port: {device.type for device, end in self.ends[port] if end == "s"} for port in ports}
            found |= {port: fed[port] == {"pmos"} for port in ports if self._is_source_of_inverters(port)}
        return {port: level for port, level in found.items() if level is not None}

    def _joins_passives(self, port: str) -> bool:
        """Whether the transistors of a port are switches between passive devices, which close in the bench."""
        switches = [device for device, _ in self.ends[port]]
        nets = {device.terminals[end] for device in switches for end in "ds"}
        others = [device for net in nets for device, _ in self._ends_of(net) if device not in switches]
        return bool(others) and not nets & {*self.circuit.ports} and not any(device.is_mos for device in others)

    def _is_source_of_inverters(self, port: str) -> bool:
        """Whether a port is the source of several transistors of one kind and of nothing else."""
        ends = self.ends[port]
        return len(ends) > 2 and all(end == "s" for _, end in ends) and len({device.type for device, _ in ends}) == 1

    def _outputs(self, known: set[str], *, single: bool) -> tuple[str, ...]:
        """Return the port that drains drive and that is farthest from the inputs; its mirror image with it."""
        driven = [
            port
            for port in self.signals
            if port not in known and self._takes_current(port) is None and any(end == "d" for _, end in self.ends[port])
        ]
        named = [port for port in driven if _OUTPUT_NAME.fullmatch(port)]
        depth = self._depths(known)
        ordered = sorted(named or driven, key=lambda port: (-depth.get(port, 0), self.signals.index(port)))
        farthest = [port for port in ordered if depth.get(port, 0) == depth.get(ordered[0], 0)]
        pair = farthest[:2] if len(farthest) == 2 else ordered[:2] if len(named) == 2 else farthest[:1]
        return tuple(sorted(pair[:1] if single else pair, key=self.signals.index))

    def _depths(self, start: set[str]) -> dict[str, int]:
        """Return how many transistors a signal passes, from gate or source to drain, to each net."""
        import networkx as nx

        passes: nx.DiGraph[str] = nx.DiGraph()
        passes.add_nodes_from(start)
        for device in self.circuit.devices:
            if device.is_mos and device.terminals["d"] not in self.supplies:
                passes.add_edges_from((device.terminals[end], device.terminals["d"]) for end in "gs")
        return dict(nx.multi_source_dijkstra_path_length(passes, start))

    def _takes_current(self, port: str) -> Device | None:
        """Return the transistor that takes a bias current from a port: a diode, a cascoded one, or a pair's source.

        The current may pass a switch. A node that drains of both kinds are on has its current from the circuit.
        """
        ends = self._ends_of(port)
        gates = [device for device, end in ends if end == "g"]
        drains = [device for device, end in ends if end == "d"]
        below = {device.terminals["s"] for device in drains}
        for device in gates:
            if device in drains or device.terminals["d"] in below:
                types = {drain.type for drain in drains if drain.terminals["s"] not in self._switched(ends)}
                return device if len(types) < 2 else None
        behind = self._switched(ends)
        if port in self.ends and len(behind) == 1 and all(end in "ds" for _, end in ends):
            return self._takes_current(next(iter(behind)))
        sources = [device for device, end in ends if end == "s"]
        return sources[0] if len(sources) == len(ends) and sources else None

    def _ends_of(self, net: str) -> list[tuple[Device, str]]:
        return [(self.circuit.device(end.device), end.terminal) for end in self.circuit.nets[net]]

    def _switched(self, ends: Iterable[tuple[Device, str]]) -> set[str]:
        """Return the nets on the other side of switches of an NMOS and a PMOS in parallel."""
        other: dict[str, set[str]] = {}
        for device, end in ends:
            if device.is_mos and end in "ds":
                other.setdefault(device.terminals["s" if end == "d" else "d"], set()).add(device.type)
        return {net for net, types in other.items() if types == {"nmos", "pmos"} and net not in self.supplies}

    def _driven(self, device: Device) -> str:
        """Return the drain of a transistor, or of the cascodes above it."""
        for _ in range(4):
            above = [
                self.circuit.device(end.device)
                for end in self.circuit.nets[device.terminals["d"]]
                if end.terminal == "s" and self.circuit.device(end.device).type == device.type
            ]
            if len(above) != 1 or device.terminals["d"] in self.circuit.ports:
                break
            device = above[0]
        return device.terminals["d"]

    def _mirror(self) -> RecognisedModule | None:
        """Return the current mirror whose input and an output are on ports."""
        for module in self._of("current_mirror"):
            outputs = [self._driven(self.circuit.device(name)) for name in module.properties["outputs"]]
            if self._mirror_input(module) and any(map(self._carries_current_out, outputs)):
                return module
        return None

    def _mirror_input(self, mirror: RecognisedModule) -> str:
        """Return the port whose current the reference takes, through cascodes or not; empty without one."""
        reference = self.circuit.device(mirror.properties["reference"])
        top = self._driven(reference)
        own = reference.terminals["g"] in (reference.terminals["d"], top)
        return top if own and top in self.signals else ""

    def _carries_current_out(self, net: str) -> bool:
        """Whether a net is a port with nothing but drains of one type on it, so that all of their current leaves."""
        return (
            net in self.signals
            and all(end == "d" for _, end in self.ends[net])
            and len({device.type for device, _ in self.ends[net]}) == 1
        )

    def _ring(self) -> tuple[str, ...]:
        """Return the nets of a ring of an odd number of inverters, each net driving the next; nothing without one."""
        drivers: dict[tuple[str, str], set[str]] = {}
        for device in self.circuit.devices:
            gate, drain = device.terminals.get("g", ""), device.terminals.get("d", "")
            if device.is_mos and gate not in self.supplies and drain not in self.supplies and gate != drain:
                drivers.setdefault((gate, drain), set()).add(device.type)
        drives: dict[str, list[str]] = {}
        for (gate, drain), types in sorted(drivers.items()):
            if types == {"nmos", "pmos"}:
                drives.setdefault(gate, []).append(drain)
        for start in drives:
            ring = _shortest_way_back(drives, start)
            if len(ring) > 2 and len(ring) % 2:
                return ring
        return ()

    def _differential_ring(self) -> tuple[tuple[str, str], ...]:
        """Return the pairs of nets of a ring of differential pairs, each driving the next; nothing without one."""
        drives: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for module in self._of(_PAIR):
            nets = [self.circuit.device(name).terminals for name in module.devices]
            gates, drains = (tuple(sorted({each[end] for each in nets})) for end in "gd")
            if len(gates) == len(drains) == 2 and not {*gates, *drains} & self.supplies.nets:
                drives.setdefault((gates[0], gates[1]), []).append((drains[0], drains[1]))
        rings = (_shortest_way_back(drives, start) for start in drives)
        return next((ring for ring in rings if len(ring) > 1), ())


def _shortest_way_back(drives: Mapping[_Node, list[_Node]], start: _Node) -> tuple[_Node, ...]:
    """Return the shortest path of a graph from ``start`` to itself, without its end; nothing where there is none."""
    import networkx as nx

    paths = nx.single_source_shortest_path(nx.DiGraph(drives), start)  # the nearest nets first
    return next((tuple(path) for net, path in paths.items() if start in drives.get(net, ())), ())
