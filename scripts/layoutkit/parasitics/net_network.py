"""The network of one net between its port and the terminals of devices, as small as it can be without changing it.

``layout_networks`` returns those of all nets of a layout, ``pair_mismatches`` how unequal nets are that should mirror
each other. ``Parasitics`` is all that extraction finds: elements for a simulator, figures of nets for people.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb

from layoutkit.parasitics.layout_circuit import FeedPoint, Feeds, port_of, thinned
from layoutkit.parasitics.net_resistance import CONTACT, POLY, WireExtractor, WireNetwork, resistances

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from layoutkit.circuit.constraints import Constraints
    from layoutkit.parasitics.layout_circuit import LayoutCircuit

    Terminal = tuple[str, str]

_BESIDE_OHM = 1e-3
_SENSING = frozenset({"g"})
GROUND = ""
"""The node of the substrate; node 0 where no net of the circuit is the substrate."""
LEAST_PART = 1e-3
"""Couplings below this part of a net's whole capacitance are left out of the answer. [1]"""


class ParasiticResistor(NamedTuple):
    """A resistance between two nodes of a net. [ohm]"""

    net: str
    one: str
    other: str
    ohm: float


class ParasiticCapacitor(NamedTuple):
    """A capacitance between two nodes, the second of which may be ``GROUND``. [fF]"""

    one: str
    other: str
    fF: float  # noqa: N815 - the unit


@dataclass(frozen=True)
class Elements:
    """The parasitic elements of a circuit.

    A net's own node has the name of the net. Terminals that are not in ``nodes`` are on it.

    Attributes:
        resistors: Between nodes of one net.
        capacitors: Between nodes.
        nodes: Node of a device terminal, by device and terminal.
        net_of: Net of every node that is not the own node of a net.
    """

    resistors: tuple[ParasiticResistor, ...] = ()
    capacitors: tuple[ParasiticCapacitor, ...] = ()
    nodes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    net_of: Mapping[str, str] = field(default_factory=dict)


class TerminalResistance(NamedTuple):
    """Resistance from the port of a net to a terminal of a device; None where a resistance is not known. [ohm]"""

    device: str
    terminal: str
    ohm: float | None


@dataclass(frozen=True)
class NetParasitics:
    """The figures of one net.

    Attributes:
        net: Its name in the netlist.
        ground_fF: Capacitance to the substrate; for the net of the substrate, that of all other nets to it. [fF]
        coupling_fF: Capacitance to each other net. [fF]
        start: Where resistances are measured from: ``port``, or ``device.terminal`` on a net without a port.
        terminals: Resistance to each terminal on it.
        resistance_error: Largest relative difference between the written network's resistances and these. [1]
    """

    net: str
    ground_fF: float = 0.0  # noqa: N815 - the unit
    coupling_fF: Mapping[str, float] = field(default_factory=dict)  # noqa: N815 - the unit
    start: str = "port"
    terminals: tuple[TerminalResistance, ...] = ()
    resistance_error: float = 0.0

    @property
    def total_fF(self) -> float:  # noqa: N802 - the unit
        """Capacitance to everything. [fF]"""
        return self.ground_fF + sum(self.coupling_fF.values())

    def to_json(self) -> dict[str, Any]:
        """Return the figures as JSON data, the largest coupling first; not those below a thousandth of the net."""
        coupling = sorted(self.coupling_fF.items(), key=lambda item: (-item[1], item[0]))
        coupling = [(net, value) for net, value in coupling if value >= LEAST_PART * self.total_fF]
        return {
            "net": self.net,
            "total_ff": round(self.total_fF, 4),
            "ground_ff": round(self.ground_fF, 4),
            "coupling": [{"net": net, "ff": round(value, 4)} for net, value in coupling],
            "from": self.start,
            "terminals": [
                {"device": each.device, "terminal": each.terminal, "ohm": _rounded(each.ohm)} for each in self.terminals
            ],
            "resistance_error": round(self.resistance_error, 6),
        }


@dataclass(frozen=True)
class PairMismatch:
    """How unequal the parasitics of two nets are that should mirror each other.

    Attributes:
        nets: The two nets.
        total_fF: Capacitance of each to everything. [fF]
        capacitance_percent: Difference of the capacitances over their mean. [%]
        coupling_percent: Largest difference of what each couples to a net or its mirror image, over the same mean. [%]
        coupling_net: That net; empty where the two couple to nothing.
        resistance_percent: Largest difference of the resistances to two terminals that mirror each other, over the mean
            of all; None where none is known. [%]
        resistance_difference_ohm: The same difference. [ohm]
    """

    nets: tuple[str, str]
    total_fF: tuple[float, float]  # noqa: N815 - the unit
    capacitance_percent: float
    coupling_percent: float
    coupling_net: str
    resistance_percent: float | None
    resistance_difference_ohm: float

    def to_json(self) -> dict[str, Any]:
        """Return the figures as JSON data."""
        return {
            "nets": list(self.nets),
            "total_ff": [round(value, 4) for value in self.total_fF],
            "c_mismatch_percent": round(self.capacitance_percent, 4),
            "coupling_mismatch_percent": round(self.coupling_percent, 4),
            "coupling_net": self.coupling_net,
            "r_mismatch_percent": _rounded(self.resistance_percent),
        }


@dataclass(frozen=True)
class Parasitics:
    """The parasitics of one layout.

    Attributes:
        cell: Name of the circuit.
        nets: Figures of each net, sorted by name.
        pairs: Figures of each symmetric pair of nets.
        elements: What a simulator needs, as the mode states it.
        spice: The circuit with its parasitics as SPICE.
        spef: The parasitics as SPEF (IEEE 1481).
        unchecked: What could not be computed, and why.
        substrate: Net of the substrate; empty where none is known.
    """

    cell: str
    nets: tuple[NetParasitics, ...]
    pairs: tuple[PairMismatch, ...]
    elements: Elements
    spice: str
    spef: str
    unchecked: tuple[str, ...] = ()
    substrate: str = ""

    @property
    def total_fF(self) -> float:  # noqa: N802 - the unit
        """Total capacitance of all nets, with each coupling capacitance counted once. [fF]"""
        coupling = sum(sum(net.coupling_fF.values()) for net in self.nets) / 2
        return coupling + sum(net.ground_fF for net in self.nets if net.net != self.substrate)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


@dataclass(frozen=True)
class NetNetwork:
    """The resistors of one net.

    Attributes:
        own: The net's own node, where resistances start; empty where no terminal is on a wire.
        start: What is there: ``port``, or ``device.terminal`` where the net has none.
        terminals: Exact resistance to each terminal.
        resistors: Two nodes and what is between them [ohm]; the net's own node is where it starts.
        nodes: Node of each terminal.
        places: Where each node is, but for ``inner``.
        inner: Nodes that are neither the port nor a terminal.
        error: Largest relative error of the resistances from the start to terminals with ``resistors``. [1]
        cut_off: Terminals that no wire joins to the start: only diffusion, wells or the substrate do.
    """

    own: str = ""
    start: str = "port"
    terminals: tuple[TerminalResistance, ...] = ()
    resistors: tuple[tuple[str, str, float], ...] = ()
    nodes: Mapping[Terminal, str] = field(default_factory=dict)
    places: Mapping[str, FeedPoint] = field(default_factory=dict)
    inner: tuple[str, ...] = ()
    error: float = 0.0
    cut_off: tuple[str, ...] = ()

    def between(self, one: str, others: Sequence[str]) -> list[float]:
        """Return the resistances between one node and others. [ohm]"""
        names = sorted({one, *others, *(node for a, b, _ in self.resistors for node in (a, b))})
        number = {name: place for place, name in enumerate(names)}
        conductances = [(number[a], number[b], 1 / ohm) for a, b, ohm in self.resistors]
        return resistances(conductances, number[one], [number[each] for each in others])


class NetReduction:
    """The reduction of the network of a net.

    All nodes but the port's and those of terminals are eliminated, which keeps the resistances between these. Of what
    is then between them, ``resistors`` has what matters; ``error`` says what the rest changes.

    Args:
        net: Name of the net.
        wires: Its wires, which this changes.
        terminals: What feeds each terminal on it.
        port: Where its port is; None where it has none.
        first: Terminal to measure from where there is no port; None for the lowest one.
    """

    def __init__(
        self,
        net: str,
        wires: WireNetwork,
        terminals: Mapping[Terminal, Feeds],
        port: FeedPoint | None,
        first: Terminal | None = None,
    ) -> None:
        self.net = net
        self.wires = wires
        self.network = wires.network
        self.terminals = terminals
        self.nodes: dict[Terminal, int] = {}
        for terminal, feeds in sorted(terminals.items()):
            self._add(terminal, feeds)
        self.start = "port"
        self.origin = self._behind(wires.at[port]) if port is not None else self._first(first)

    def _behind(self, node: int) -> int:
        """Return a new node right beside another one, which may feed several terminals."""
        new = self.wires.new_node(self.wires.places[node])
        self.network.add(node, new, 1 / _BESIDE_OHM)
        return new

    def _add(self, terminal: Terminal, feeds: Feeds) -> None:
        """Add the node of one terminal, in the middle of what feeds it."""
        shares = {self.wires.at[place]: share for place, share in feeds.points.items()}
        for box, share in feeds.channels.items():
            shares[self.wires.channels[box]] = share
        if not shares:
            return
        nearest = self.wires.places[max(shares, key=lambda node: (shares[node], -node))]
        node = self.wires.new_node(nearest)
        self.nodes[terminal] = node
        if feeds.series_ohm:
            inner = self.wires.new_node(nearest)
            self.network.add(inner, node, 1 / feeds.series_ohm)
            node = inner
        if len(shares) == 1:
            self.network.add(node, next(iter(shares)), 1 / _BESIDE_OHM)
        else:
            self.network.add_terminal(node, self.wires.new_node(nearest), shares)

    def _first(self, wanted: Terminal | None) -> int | None:
        """Return the node of the lowest terminal that carries current, else of the lowest one: names decide nothing."""
        places = {terminal: self.wires.places[node] for terminal, node in self.nodes.items()}
        order = sorted(
            self.nodes, key=lambda each: (each != wanted, each[1] in _SENSING, places[each].y, places[each].x, each)
        )
        if not order:
            return None
        self.start = ".".join(order[0])
        return self.nodes[order[0]]

    def run(self, also: Mapping[Terminal, Feeds] | None = None) -> NetNetwork:
        """Return the network; its terminals have the exact resistances to further places as well."""
        if self.origin is None:
            every = tuple(TerminalResistance(*terminal, 0.0) for terminal in sorted(self.terminals))
            return NetNetwork(start=".".join(min(self.terminals)) if self.terminals else "port", terminals=every)
        reached = self.network.reached(self.origin)
        cut_off = tuple(".".join(terminal) for terminal, node in sorted(self.nodes.items()) if node not in reached)
        for node in [node for node in self.network.links if node not in reached]:
            del self.network.links[node]
        kept = {self.origin, *(node for node in self.nodes.values() if node in reached)}
        further = self._further(also or {}, kept, reached)
        self.network.eliminate(kept)
        exact = self._exact(kept)
        written = self.network.written(self.origin)
        names = self._names(written.inner)
        terminals = tuple(
            TerminalResistance(*terminal, self._ohm(terminal, exact)) for terminal in sorted(self.terminals)
        )
        return NetNetwork(
            own=self.net,
            start=self.start,
            terminals=(*terminals, *further),
            resistors=tuple((names[one], names[other], ohm) for one, other, ohm in written.resistors),
            nodes={terminal: names[node] for terminal, node in sorted(self.nodes.items()) if node in reached},
            places={names[node]: self.wires.places[node] for node in sorted(self.network.links)},
            inner=tuple(names[node] for node in written.inner),
            error=written.error,
            cut_off=cut_off,
        )

    def _further(
        self, also: Mapping[Terminal, Feeds], kept: set[int], reached: Collection[int]
    ) -> list[TerminalResistance]:
        """Return the resistances to further places, which are no nodes of the network that is written."""
        at = {terminal: self.wires.at[place] for terminal, feeds in sorted(also.items()) for place in feeds.points}
        at = {terminal: node for terminal, node in at.items() if node in reached}
        if not at:
            return []
        self.network.eliminate({*kept, *at.values()})
        exact = self._exact({*kept, *at.values()})
        return [TerminalResistance(*terminal, exact.get(node)) for terminal, node in at.items()]

    def _exact(self, kept: set[int]) -> dict[int, float]:
        nodes = sorted(kept)
        return dict(zip(nodes, self.network.resistances(self.origin or 0, nodes), strict=True))

    def _ohm(self, terminal: Terminal, exact: Mapping[int, float]) -> float | None:
        node = self.nodes.get(terminal)
        if node is None:
            return 0.0  # nothing but silicon, which the device's model contains
        return exact.get(node)

    def _names(self, inner: Iterable[int]) -> dict[int, str]:
        """Return the name of each node that is left: the net's own, that of a terminal, or a number."""
        names = {self.origin: self.net} if self.origin is not None else {}
        for terminal, node in sorted(self.nodes.items()):
            names.setdefault(node, f"{self.net}:{'.'.join(terminal)}")
        names.update({node: f"{self.net}:{number}" for number, node in enumerate(inner, 1)})
        return names


def layout_networks(
    found: LayoutCircuit,
    only: Collection[int] | None = None,
    starts: Mapping[int, Terminal] | None = None,
    most_contacts: int | None = None,
    also: Mapping[int, Mapping[Terminal, Feeds]] | None = None,
) -> tuple[dict[int, NetNetwork], set[str]]:
    """Return the network of each net, by its number, and what could not be computed.

    Args:
        found: The layout.
        only: Numbers of the nets; None for all.
        starts: Terminal that a net without a port is measured from, by its number: only from there all is exact.
        most_contacts: Of a terminal with twice as many contacts or more, every so many-th stands for those beside it,
            which costs less and changes resistances by little; None for all.
        also: Further places to measure to, as those of terminals, by the number of the net.
    """
    extraction = found.extraction
    wires = WireExtractor(extraction.technology)
    channels, feeds = found.channels, found.feeds
    networks, unchecked = {}, set()
    for number, net in sorted(extraction.nets.items()):
        if only is not None and number not in only:
            continue
        regions = {name: extraction.merged(number, name) for name in wires.layers}
        unstated = sorted(name for name in wires.unstated if not regions[name].is_empty())
        if unstated:
            unchecked |= {f"resistance of {each}: technology {wires.technology.name} states none" for each in unstated}
            terminals = (TerminalResistance(*terminal, None) for terminal in sorted(feeds[number]))
            networks[number] = NetNetwork(terminals=tuple(terminals))
            continue
        port, fed = port_of(net, extraction), feeds[number]
        if most_contacts is not None:
            fed = {terminal: thinned(each, most_contacts) for terminal, each in fed.items()}
        others = (also or {}).get(number, {})
        places = [place for each in (*fed.values(), *others.values()) for place in each.points]
        places += [] if port is None else [port]
        drawn = wires.extract(regions, _without_channels(regions, channels), places)
        network = NetReduction(found.nets[number], drawn, fed, port, (starts or {}).get(number)).run(others)
        unchecked |= {*not_joined(found.nets[number], network).values()}
        networks[number] = network
    return networks, unchecked


def not_joined(net: str, network: NetNetwork) -> dict[str, str]:
    """Return why the terminals of a net that no wire joins to the others have no resistance, by their names."""
    why = f"only diffusion, a well or the substrate joins it to net {net}"
    return {terminal: f"resistance to {terminal}: {why}" for terminal in network.cut_off}


def _without_channels(regions: dict[str, kdb.Region], channels: kdb.Shapes) -> list[kdb.Polygon]:
    """Take channels out of the poly of a net, keep the contacts on poly only, and return the channels it crosses."""
    near = kdb.Region([shape.polygon for shape in channels.each_touching(regions[POLY].bbox())])
    crossed: list[kdb.Polygon] = list(near.interacting(regions[POLY]).each())
    regions[CONTACT] = regions[CONTACT] & regions[POLY]
    regions[POLY] = regions[POLY] - near
    return crossed


def pair_mismatches(
    constraints: Constraints | None, nets: Sequence[NetParasitics], networks: Mapping[str, NetNetwork]
) -> tuple[PairMismatch, ...]:
    """Return the mismatch of each pair of nets that the constraints mirror, once each, in their order.

    Args:
        constraints: State the pairs of nets and of devices; None for none.
        nets: Figures of all nets.
        networks: Network of each net, by its name; empty where resistances are not known.
    """
    groups = () if constraints is None else constraints.symmetry
    mirror: dict[str, str] = {}
    devices: dict[str, str] = {}
    for group in groups:
        for images, pairs in ((mirror, group.net_pairs), (devices, group.pairs)):
            for one, other in pairs:
                images[one], images[other] = other, one
    by_name, empty = {net.net: net for net in nets}, NetNetwork()
    once: dict[frozenset[str], tuple[str, str]] = {}  # two groups may mirror the same nets
    for group in groups:
        for one, other in group.net_pairs:
            once.setdefault(frozenset((one, other)), (one, other))
    return tuple(
        _mismatch(
            by_name[one],
            by_name[other],
            mirror,
            _mirrored_ohms(networks.get(one, empty), networks.get(other, empty), devices),
        )
        for one, other in once.values()
        if one in by_name and other in by_name
    )


def _mirrored_ohms(one: NetNetwork, other: NetNetwork, devices: Mapping[str, str]) -> list[tuple[float, float]]:
    """Return the resistances of two nets to terminals that mirror each other. [ohm]

    They start at the ports where both nets have one, else at the first of those terminals.
    """
    common = [
        (node, other.nodes[image])
        for (device, terminal), node in sorted(one.nodes.items())
        if (image := (devices.get(device, device), terminal)) in other.nodes
    ]
    if one.own and one.start == other.start == "port":
        starts = (one.own, other.own)
    elif common:
        starts = common.pop(0)
    else:
        return []
    ohms = [
        network.between(start, [pair[side] for pair in common])
        for side, (network, start) in enumerate(zip((one, other), starts, strict=True))
    ]
    return list(zip(*ohms, strict=True))


def _mismatch(
    one: NetParasitics, other: NetParasitics, mirror: Mapping[str, str], ohms: Sequence[tuple[float, float]]
) -> PairMismatch:
    totals = (one.total_fF, other.total_fF)
    mean = sum(totals) / 2
    reached = sorted({*one.coupling_fF, *(mirror.get(net, net) for net in other.coupling_fF)} - {other.net})
    differences = {
        net: abs(one.coupling_fF.get(net, 0.0) - other.coupling_fF.get(mirror.get(net, net), 0.0)) for net in reached
    }
    worst = max(differences, key=lambda net: differences[net], default="")
    mean_ohm = sum(sum(pair) for pair in ohms) / (2 * len(ohms)) if ohms else 0.0
    most_ohm = max((abs(a - b) for a, b in ohms), default=0.0)
    return PairMismatch(
        nets=(one.net, other.net),
        total_fF=totals,
        capacitance_percent=100 * abs(totals[0] - totals[1]) / mean if mean else 0.0,
        coupling_percent=100 * differences.get(worst, 0.0) / mean if mean else 0.0,
        coupling_net=worst,
        resistance_percent=100 * most_ohm / mean_ohm if mean_ohm else None,
        resistance_difference_ohm=most_ohm,
    )
