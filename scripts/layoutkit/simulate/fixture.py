"""The circuit in its test bench: the sources of its supplies and biases, and the run of one deck.

Every port has a node ``p<number>`` of the bench, so that no name of a netlist can be one of the bench's own. Ground
ports are node 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from layoutkit.circuit.circuit import Circuit
from layoutkit.circuit.spice_writer import spelled_ports, write_spice
from layoutkit.errors import NetlistError
from layoutkit.simulate.bench_values import CASCODE_V
from layoutkit.simulate.netlist_cards import read_cards
from layoutkit.simulate.ngspice import SimulationError, measure_log, simulate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.circuit.circuit import Device
    from layoutkit.simulate.bench_values import BenchValues
    from layoutkit.simulate.netlist_cards import CardNetlist
    from layoutkit.simulate.ngspice import Start
    from layoutkit.simulate.port_roles import PortRoles
    from layoutkit.simulate.raw_file import Plot
    from layoutkit.technology import Technology


@dataclass(frozen=True)
class Measurement:
    """One measured value; a voltage is in V, a current in A and so on, as ``unit`` says."""

    value: float
    unit: str


@dataclass(frozen=True)
class Fixture:
    """One netlist in its bench, with models of one corner.

    Attributes:
        circuit: The circuit as drawn, mapped to the technology.
        technology: Its process.
        roles: What the ports are for.
        values: Sources and loads.
        netlist: The cards to simulate: those of the circuit or of its layout.
        models: Cards of the models.
        start: How ngspice is started.
    """

    circuit: Circuit
    technology: Technology
    roles: PortRoles
    values: BenchValues
    netlist: CardNetlist
    models: str
    start: Start

    @cached_property
    def nodes(self) -> dict[str, str]:
        """Port to its node."""
        grounds = frozenset(self.roles.ground)
        return {
            port: "0" if port in grounds else f"p{number}" for number, port in enumerate(self.circuit.ports, start=1)
        }

    @cached_property
    def ports(self) -> dict[str, str]:
        """Port to its name in netlists, where a name that SPICE cannot hold is spelled otherwise."""
        return spelled_ports(self.circuit)

    @property
    def inputs(self) -> tuple[str, str]:
        """The ports at the gates of the differential pair.

        Raises:
            SimulationError: If there is no such pair.
        """
        if len(self.roles.inputs) != 2:
            raise SimulationError("no differential pair has both gates on ports; name another bench or give a deck")
        return self.roles.inputs[0], self.roles.inputs[1]

    def run(
        self, cards: Sequence[str], analyses: int, reach: Mapping[str, str] | None = None, rise_s: float = 0.0
    ) -> list[Plot]:
        """Return the results of the analyses in ``cards``.

        Args:
            cards: Sources, loads, analyses and ``.save`` of one bench.
            analyses: How many analyses they ask for.
            reach: Port to another node than its own.
            rise_s: Time in which the supplies rise from 0; 0 for supplies that are always there. [s]
        """
        return simulate(self._deck([*self.bias_cards(rise_s), *cards], reach), self.start, analyses)

    def log_of(self, cards: Sequence[str]) -> str:
        """Return what ngspice prints for the deck of a user, which calls the circuit itself.

        Raises:
            NetlistError: If the ports are in another order than the circuit's, so that the call would swap them.
        """
        if [port.lower() for port in self.netlist.ports] != [port.lower() for port in self.ports.values()]:
            raise NetlistError(
                f"subcircuit {self.netlist.cell} has the ports {' '.join(self.netlist.ports)}, the circuit "
                f"{' '.join(self.ports.values())}; a deck calls both alike, so give them the same order"
            )
        return measure_log("\n".join([*self._head(), *cards, ".end"]) + "\n", self.start)

    def _deck(self, cards: Sequence[str], reach: Mapping[str, str] | None) -> str:
        nodes = {self.ports[port].lower(): node for port, node in {**self.nodes, **(reach or {})}.items()}
        strange = [port for port in self.netlist.ports if port.lower() not in nodes]
        if strange:
            raise NetlistError(
                f"subcircuit {self.netlist.cell} has ports that the circuit does not have: {', '.join(strange)}; "
                f"the circuit has {', '.join(self.ports.values())}"
            )
        missing = nodes.keys() - {port.lower() for port in self.netlist.ports}
        if missing:
            raise NetlistError(
                f"subcircuit {self.netlist.cell} lacks ports of the circuit: {', '.join(sorted(missing))}"
            )
        call = " ".join(["xdut", *(nodes[port.lower()] for port in self.netlist.ports), self.netlist.cell])
        return "\n".join([*self._head(), call, *cards, ".end"]) + "\n"

    def _head(self) -> list[str]:
        seed = [f".option seed={self.start.seed}"] if self.start.seed else []
        return ["test bench", *seed, self.models, self.netlist.text, f".temp {self.values.temperature_c:g}"]

    def bias_cards(self, rise_s: float = 0.0) -> list[str]:
        """Return the sources of supplies and biases, as ``run`` describes them."""
        values = self.values
        levels = dict.fromkeys(self.roles.power, values.supply_v)
        levels.update(dict.fromkeys(self.roles.common, values.common_mode_v))
        levels.update({port: values.supply_v if high else 0.0 for port, high in self.roles.levels.items()})
        levels.update({port: level for port, level in values.voltages_v.items() if port not in self.roles.inputs})
        rising = {*self.roles.power, *(port for port, high in self.roles.levels.items() if high)} if rise_s else set()
        cards = [
            f"v{self.nodes[port]} {self.nodes[port]} 0 "
            + (f"pwl(0 0 {rise_s:g} {level:g})" if port in rising else f"{level:g}")
            for port, level in levels.items()
        ]
        for port, current in values.currents_a.items():
            if port in self.roles.inputs:
                continue
            node = self.nodes[port]
            if port in self.roles.gates:
                cards += self._gate_bias(port, self.roles.gates[port], current)
            else:
                into = self.takes(port)
                cards.append(f"i{node} {self.supply} {node} {current:g}" if into else f"i{node} {node} 0 {current:g}")
        return cards

    @property
    def supply(self) -> str:
        """The node of the highest supply; 0 where the circuit has none."""
        return self.nodes[self.roles.power[0]] if self.roles.power else "0"

    def takes(self, port: str) -> bool:
        """Whether the transistor at a port takes a current out of it, rather than giving one."""
        device = self.roles.currents.get(port)
        if device is None:
            ends = self.circuit.nets[port]
            types = [self.circuit.device(end.device).type for end in ends if end.terminal in "gd"]
            return "nmos" in types
        at_source = device.terminals["s"] == port and device.terminals["d"] != port
        return (device.type == "nmos") != at_source

    def _gate_bias(self, port: str, device: Device, current: float) -> list[str]:
        """Return a copy of a transistor, connected as a diode, that makes the voltage of its gate from a current."""
        node, nmos = self.nodes[port], device.type == "nmos"
        copy = replace(device, id="M1", terminals={"d": "gate", "g": "gate", "s": "rail", "b": "rail"})
        name = f"copy_{node}"
        ignored = self.technology.simulation.ignored_parameters if self.technology.simulation else ()
        text = write_spice(Circuit(name, (copy,), ("gate", "rail")), self.technology)
        cards = read_cards(text, "the bias", ignored=ignored).text.splitlines()
        rail = "0" if nmos else self.supply
        source = f"ib{node} {self.supply} b{node} {current:g}" if nmos else f"ib{node} b{node} 0 {current:g}"
        stacked = device.terminals["s"] not in (*self.roles.ground, *self.roles.power)
        beyond = (CASCODE_V if nmos else -CASCODE_V) if stacked else 0.0
        return [
            *cards, f"xb{node} b{node} {rail} {name}", source,
            f"e{node} e{node} 0 b{node} 0 1", f"v{node} {node} e{node} {beyond:g}",
        ]  # fmt: skip
