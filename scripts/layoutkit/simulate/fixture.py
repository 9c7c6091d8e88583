"""The circuit in its test bench: the sources of its supplies and biases, and the run of one deck.

Every port has a node ``p<number>`` of the bench, so that no name of a netlist can be one of the bench's own. Ground
ports are node 0.

``measure_operating_point`` is the test bench of circuits that no other fits: supply currents and port voltages.

The deck of a user calls the circuit by its name. Its ``.meas`` cards state what is measured.

ngspice takes the first line of a deck as its title. Decks without one are common too, so that the first line is a card
here if its first two nodes are in other cards.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from layoutkit.circuit.circuit import Circuit, Device
from layoutkit.circuit.spice_writer import spelled_ports, write_spice
from layoutkit.errors import NetlistError
from layoutkit.simulate.bench_values import CASCODE_V, BenchValues
from layoutkit.simulate.ngspice import (
    IN_DECKS,
    IN_NETLISTS,
    CardNetlist,
    Plot,
    SimulationError,
    Start,
    check_is_netlist,
    harmless_cards,
    measure_log,
    read_cards,
    simulate,
    trouble,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from layoutkit.simulate.port_roles import PortRoles
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

    def supply_currents(
        self, flowing: Callable[[str], float], nets: Sequence[str] | None = None
    ) -> dict[str, Measurement]:
        """Return what each supply gives, by the name of the measurement.

        Args:
            flowing: Returns the current through a source, given as ``i(source)``, from its plus to its minus. [A]
            nets: The supplies; None for those of the circuit's roles.
        """
        nets = self.roles.power if nets is None else nets
        names = {net: "supply_current" if len(nets) == 1 else f"supply_current({net})" for net in nets}
        return {name: Measurement(-flowing(f"i(v{self.nodes[net]})"), "A") for net, name in names.items()}

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


def measure_operating_point(fixture: Fixture) -> dict[str, Measurement]:
    """Return the operating point with every input at the common-mode voltage.

    Raises:
        SimulationError: If the circuit has no port at which anything can be measured.
    """
    inputs = [
        f"vin{n} {fixture.nodes[port]} 0 {fixture.values.common_mode_v:g}"
        for n, port in enumerate(fixture.roles.inputs)
    ]
    (plot,) = fixture.run([*inputs, ".op"], 1)
    found = operating_point(fixture, plot)
    if not found:
        raise SimulationError("the circuit has no port to measure at, such as a supply or an output; add ports")
    return found


def operating_point(fixture: Fixture, plot: Plot) -> dict[str, Measurement]:
    """Return the supply currents and the voltages of the ports that the bench does not set."""
    found = fixture.supply_currents(lambda name: float(plot.of(name)[0]))
    told = [*fixture.roles.outputs, *fixture.roles.currents, *fixture.roles.open]
    for port in dict.fromkeys(told):
        name = f"v({fixture.nodes[port]})"
        if name in plot.vectors:
            found[f"v({port})"] = Measurement(float(np.real(plot.of(name)[0])), "V")
    return found


_VALUE = re.compile(r"^\s*([a-z_]\w*)\s*=\s*([+-]?\d[\d.]*(?:e[+-]?\d+)?)(?:\s|$)", re.IGNORECASE | re.MULTILINE)
_MEASURES = frozenset({".meas", ".measure"})
_ANALYSES = frozenset({".op", ".ac", ".dc", ".tran", ".tf", ".noise"})


def read_deck(text: str, cell: str) -> tuple[list[str], tuple[str, ...]]:
    """Return the cards of a deck and the names of its measurements.

    Without a ``.save`` card all voltages are kept, as ``.meas`` does not ask for those in ``vdb(node)`` and the like.

    Raises:
        NetlistError: If it holds cards that are not simulated, measures nothing or does not call the circuit.
    """
    check_is_netlist(text, "the deck")
    cards = harmless_cards(_without_title(text), "the deck", IN_DECKS | IN_NETLISTS)
    words = [card.lower().split() for card in cards]
    names = tuple(each[2] for each in words if each[0] in _MEASURES and len(each) > 2)
    if not names:
        raise NetlistError("the deck has no .meas card, so it measures nothing")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise NetlistError(
            f"the deck measures {', '.join(twice)} more than once; give each measurement a name of its own"
        )
    if not any(each[0].startswith("x") and cell.lower() in each for each in words):
        raise NetlistError(f"the deck does not call subcircuit {cell}; add a card such as Xdut ... {cell}")
    saved = any(each[0] == ".save" for each in words)
    return cards if saved else [*cards, ".save all"], names


def _without_title(text: str) -> str:
    """Return a deck whose first line is empty if it is a title."""
    title, _, rest = text.partition("\n")
    words = title.lower().split()
    if not words or words[0].startswith((".", "*")):
        return text
    others = set(re.split(r"[\s()=,]+", rest.lower()))
    return text if len(words) > 2 and others.issuperset(words[1:3]) else f"\n{rest}"


def measure_deck(fixture: Fixture, cards: Sequence[str], names: Sequence[str]) -> dict[str, Measurement]:
    """Return the measurements of a deck that ngspice could make.

    It measures only the analysis that it runs last: those of each kind have a run of their own.

    Raises:
        SimulationError: If it made none; the message holds what it said.
    """
    logs = [fixture.log_of(part) for part in _by_analysis(cards)]
    values = {match[1].lower(): float(match[2]) for log in logs for match in _VALUE.finditer(log)}
    found = {name: Measurement(values[name], "") for name in names if name in values}
    if not found:
        raise SimulationError(f"the deck gave no measurement: {'; '.join(dict.fromkeys(map(trouble, logs)))}")
    return found


def _by_analysis(cards: Sequence[str]) -> list[list[str]]:
    """Return the cards once for each kind of analysis that is measured, without other analyses and measurements."""
    words = [card.lower().split() for card in cards]
    kinds = dict.fromkeys(each[1] for each in words if each[0] in _MEASURES and len(each) > 2)

    def belongs(each: Sequence[str], kind: str) -> bool:
        return each[1:2] == [kind] if each[0] in _MEASURES else each[0] not in _ANALYSES or each[0] == f".{kind}"

    return [[card for card, each in zip(cards, words, strict=True) if belongs(each, kind)] for kind in kinds]
