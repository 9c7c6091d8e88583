"""The capacitors of a netlist: of whole nets, or on the nodes that lie nearest."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from layoutkit.parasitics.net_parasitics import GROUND, Capacitor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.parasitics.capacitance_pieces import CapacitancePiece
    from layoutkit.parasitics.net_network import NetNetwork
    from layoutkit.parasitics.net_parasitics import NetParasitics

LEAST_FF = 1e-3
"""A smaller coupling between two nodes is added to the capacitor between their nets. [fF]"""


def net_capacitors(nets: Sequence[NetParasitics], *, coupled: bool, substrate: str) -> tuple[Capacitor, ...]:
    """Return the capacitors of whole nets: all of it to ground, or what is between nets ``coupled``.

    The net of the ``substrate`` is ground itself.
    """
    found = []
    for net in nets:
        ground = net.ground_fF if coupled else net.total_fF
        if ground > 0 and net.net != substrate:
            found.append(Capacitor(net.net, GROUND, ground))
        found += [
            Capacitor(net.net, other, value)
            for other, value in sorted(net.coupling_fF.items())
            if coupled and net.net < other and value > 0
        ]
    return tuple(found)


def node_capacitors(
    pieces: Sequence[CapacitancePiece], names: Mapping[int, str], networks: Mapping[int, NetNetwork]
) -> tuple[Capacitor, ...]:
    """Return capacitors between the nodes that are nearest to each piece of capacitance.

    Args:
        pieces: All capacitance, by place.
        names: Name of each net.
        networks: Network of each net.
    """
    nearest = {number: _Nearest(names[number], network) for number, network in networks.items()}
    totals: dict[tuple[str, str], float] = defaultdict(float)
    nets: dict[tuple[str, str], tuple[str, str]] = {}
    for piece in pieces:
        one = nearest[piece.net].to(piece.x, piece.y)
        other = GROUND if piece.other is None else nearest[piece.other].to(piece.x, piece.y)
        key = (one, other) if other == GROUND or one < other else (other, one)
        whole = (names[piece.net], GROUND if piece.other is None else names[piece.other])
        totals[key] += piece.fF
        nets[key] = whole if whole[1] == GROUND or whole[0] < whole[1] else whole[::-1]
    kept: dict[tuple[str, str], float] = defaultdict(float)
    for key, value in totals.items():
        kept[key if value >= LEAST_FF else nets[key]] += value
    return tuple(Capacitor(*key, value) for key, value in sorted(kept.items()))


class _Nearest:
    """The nodes of one net, by place."""

    def __init__(self, net: str, network: NetNetwork) -> None:
        self.net = net
        self.nodes = sorted((place.x, place.y, name) for name, place in network.places.items())

    def to(self, x: int, y: int) -> str:
        """Return the node nearest to a point, the net's own where it has no other."""
        nearest = min(self.nodes, key=lambda node: ((node[0] - x) ** 2 + (node[1] - y) ** 2, node), default=None)
        return self.net if nearest is None else nearest[2]
