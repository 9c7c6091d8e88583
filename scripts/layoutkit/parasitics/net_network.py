"""The network of one net between its port and the terminals of devices, as small as it can be without changing it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from layoutkit.parasitics.net_parasitics import TerminalResistance
from layoutkit.parasitics.resistor_network import resistances

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.parasitics.net_resistance import WireNetwork
    from layoutkit.parasitics.terminal_feeds import Feeds, Place

    Terminal = tuple[str, str]

_BESIDE_OHM = 1e-3
_SENSING = frozenset({"g"})


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
    places: Mapping[str, Place] = field(default_factory=dict)
    inner: tuple[str, ...] = ()
    error: float = 0.0
    cut_off: tuple[str, ...] = ()

    def between(self, one: str, others: Sequence[str]) -> list[float]:
        """Return the resistances between one node and others. [ohm]"""
        names = sorted({one, *others, *(node for a, b, _ in self.resistors for node in (a, b))})
        number = {name: place for place, name in enumerate(names)}
        conductances = [(number[a], number[b], 1 / ohm) for a, b, ohm in self.resistors]
        return resistances(conductances, number[one], [number[each] for each in others])


def net_network(
    net: str,
    wires: WireNetwork,
    terminals: Mapping[Terminal, Feeds],
    port: Place | None,
    first: Terminal | None = None,
) -> NetNetwork:
    """Return the reduced network of a net.

    All nodes but the port's and those of terminals are eliminated, which keeps the resistances between these. Of what
    is then between them, ``resistors`` has what matters; ``error`` says what the rest changes.

    Args:
        net: Name of the net.
        wires: Its wires, which this changes.
        terminals: What feeds each terminal on it.
        port: Where its port is; None where it has none.
        first: Terminal to measure from where there is no port; None for the lowest one.
    """
    return _Reduction(net, wires, terminals, port, first).run()


class _Reduction:
    def __init__(
        self,
        net: str,
        wires: WireNetwork,
        terminals: Mapping[Terminal, Feeds],
        port: Place | None,
        first: Terminal | None,
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

    def run(self) -> NetNetwork:
        if self.origin is None:
            every = tuple(TerminalResistance(*terminal, 0.0) for terminal in sorted(self.terminals))
            return NetNetwork(start=".".join(min(self.terminals)) if self.terminals else "port", terminals=every)
        reached = self.network.reached(self.origin)
        cut_off = tuple(".".join(terminal) for terminal, node in sorted(self.nodes.items()) if node not in reached)
        for node in [node for node in self.network.links if node not in reached]:
            del self.network.links[node]
        kept = {self.origin, *(node for node in self.nodes.values() if node in reached)}
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
            terminals=terminals,
            resistors=tuple((names[one], names[other], ohm) for one, other, ohm in written.resistors),
            nodes={terminal: names[node] for terminal, node in sorted(self.nodes.items()) if node in reached},
            places={names[node]: self.wires.places[node] for node in sorted(self.network.links)},
            inner=tuple(names[node] for node in written.inner),
            error=written.error,
            cut_off=cut_off,
        )

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
