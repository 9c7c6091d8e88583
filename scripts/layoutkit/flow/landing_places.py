"""Where wires end on the metal of modules: on pieces that carry a stated current, and at which pins of a supply.

The wires of a supply must reach some pins where the lowest conductor is resistive, as local interconnect is::

    rail    =====[met1]=====            met1 strip on a tap ring: bulks only, li1 is enough
                 |                      |
            source straps [met1, met2]--+--- ring of li1: tens of ohms, no way for the current of sources

Metal that only such a conductor joins counts as apart. A part that feeds nothing but taps needs no wire of its own
where the ring joins it to a part that has one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb

from layoutkit.extract.connectivity import Nets
from layoutkit.route.net_flows import Draw

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from layoutkit.extract.connectivity import DrawnLayers
    from layoutkit.flow.routing_job import Endpoint, WantedNet
    from layoutkit.route.routes import NetRequest, Terminal
    from layoutkit.technology import Technology


RESISTIVE = 10.0
"""The lowest conductor is resistive if its sheet resistance is this many times that of the one above. [1]"""
Joined = dict[tuple[str, "Endpoint"], str]


class NetPiece(NamedTuple):
    """Connected metal of a net.

    Attributes:
        draw: Largest current that its terminals draw together. [mA]
        height: Height of its highest rail, on which vias may land. [dbu]
    """

    draw: float
    height: int


def heavy_pieces(net: NetRequest, usual: float) -> list[NetPiece]:
    """Return the pieces of metal that draw more than ``usual``, the current that wires of usual width carry. [mA]"""
    groups: dict[Any, list[Terminal]] = {}
    for number, terminal in enumerate(net.terminals):
        if terminal.draw and terminal.draw.most > 0:
            groups.setdefault(terminal.group or number, []).append(terminal)
    pieces = (
        NetPiece(sum((each.draw or Draw() for each in its), Draw()).most, max(each.box.height() for each in its))
        for its in groups.values()
    )
    return [piece for piece in pieces if piece.draw > usual]


def landed(technology: Technology, net: NetRequest) -> NetRequest:
    """Return a net in which the rails of a module are separate pieces if one rail does not carry the current of all.

    A rail that does not even carry the current of its own row is divided along its length, so that wires lead to
    several places on it. So are rails of neighbours that touch, if they draw together more than one rail carries. Wires
    do not end on the metal of a ring that does not carry the current of the devices inside.
    """
    groups: dict[str, list[Terminal]] = {}
    for terminal in net.terminals:
        groups.setdefault(terminal.group, []).append(terminal)
    found: dict[Terminal, list[Terminal]] = {}
    for name, its in groups.items():
        draw = sum((each.draw or Draw() for each in its), Draw())
        rails = [each for each in its if each.draw is not None and each.draw.most > 0]
        least = min((_carried(technology, each) for each in rails), default=float("inf"))
        if not name or draw.port:
            continue
        found.update(
            {each: [] for each in its if rails and each not in rails and _carried(technology, each) < draw.most}
        )
        if least >= draw.most:
            continue
        rows = sorted({(each.layer, each.box.bottom, each.box.top) for each in rails})
        for each in (each for each in its if each not in found):
            row = each.layer, each.box.bottom, each.box.top
            group = f"{name} rail {rows.index(row) if row in rows else 0}"
            own = replace(each, group=group)
            beside = [one for one in rails if one.layer == each.layer and one is not each and one.box.touches(each.box)]
            most = sum((one.draw or Draw() for one in (each, *beside)), Draw()).most
            apart = bool(beside) and most > _carried(technology, each)
            found[each] = _divided(technology, own, f" {its.index(each)}" if apart else "") if each in rails else [own]
    return replace(net, terminals=tuple(part for each in net.terminals for part in found.get(each, [each])))


def _carried(technology: Technology, rail: Terminal) -> float:
    """Return what a rail carries along its length; infinity without a limit. [mA]"""
    carried = technology.conductor(rail.layer).current_ma(technology.to_um(min(rail.box.width(), rail.box.height())))
    return float("inf") if carried is None else carried


def _divided(technology: Technology, rail: Terminal, own: str = "") -> list[Terminal]:
    """Return a rail in as many parts along its length as its current needs, apart and no shorter than it is high.

    Args:
        technology: The process.
        rail: The rail.
        own: Suffix for its group if the rail is also separate from rails that it touches; else empty.
    """
    needed = ceil((rail.draw or Draw()).most / _carried(technology, rail) - 1e-9)
    count = min(needed, rail.box.width() // max(rail.box.height(), 4 * technology.grid))
    if (count < 2 and not own) or rail.draw is None:
        return [rail]
    count, step, parts = max(count, 1), rail.box.width() // max(count, 1), []
    for number in range(count):
        left = technology.snap_up(rail.box.left + number * step)
        box = kdb.Box(left, rail.box.bottom, technology.snap(left + step) - 2 * technology.grid, rail.box.top)
        group = f"{rail.group}{own}" if number == 0 else f"{rail.group}{own} part {number}"
        parts.append(replace(rail, box=box, group=group, draw=rail.draw.part(1 / count), divided=True))
    return parts


@dataclass(frozen=True)
class SupplyFeeds:
    """What wires of supplies must reach.

    Attributes:
        groups: Endpoints with the same text are joined well enough; empty where there is no metal.
        left_out: Endpoints that need no wire of their own.
    """

    groups: Joined
    left_out: frozenset[tuple[str, Endpoint]]

    def joins_as(self, other: SupplyFeeds) -> bool:
        """Return whether wires must reach the same as for ``other``, whatever the texts of groups are."""
        pairs = {(text, other.groups.get(key)) for key, text in self.groups.items()}
        alike = len(pairs) == len(set(self.groups.values())) == len(set(other.groups.values()))
        return alike and self.groups.keys() == other.groups.keys() and self.left_out == other.left_out


def is_resistive(technology: Technology) -> bool:
    """Return whether the lowest conductor is no way for a supply's current."""
    lowest, above = (each.sheet_ohm for each in technology.conductors[:2])
    return lowest is not None and above is not None and lowest > RESISTIVE * above


def supply_feeds(
    drawn: DrawnLayers,
    nets: Iterable[WantedNet],
    clusters: Mapping[tuple[str, Endpoint], int | None],
) -> SupplyFeeds:
    """Return what the wires of nets must reach in a cell.

    Args:
        drawn: What is drawn in it.
        nets: What to route; those that ask for two cuts are supplies.
        clusters: Number of the metal that each endpoint lies on, all conductors together.
    """
    groups = {key: "" if cluster is None else f"metal {cluster}" for key, cluster in clusters.items()}
    supplies = {net.name for net in nets if net.least_cuts > 1}
    on_metal: dict[tuple[str, int], list[tuple[str, Endpoint]]] = {}
    for key, cluster in clusters.items():
        if key[0] in supplies and cluster is not None:
            on_metal.setdefault((key[0], cluster), []).append(key)
    several = [keys for keys in on_metal.values() if len(keys) > 1]
    if not several or not is_resistive(drawn.technology):
        return SupplyFeeds(groups, frozenset())
    parts = _Parts(drawn)
    left_out: set[tuple[str, Endpoint]] = set()
    for keys in several:
        part_of = {key: part for key in keys for part in [parts.number(key[1])] if part is not None}
        feeding = {part for part in part_of.values() if parts.feeds_devices(part)}
        for key, part in part_of.items():
            groups[key] += f" {part}"
            if feeding and part not in feeding:
                left_out.add(key)
    return SupplyFeeds(groups, frozenset(left_out))


class _Parts:
    """The metal of a cell without the lowest conductor."""

    def __init__(self, drawn: DrawnLayers) -> None:
        layers, technology = drawn.electrical(), drawn.technology
        self.lowest, self.cut = technology.conductors[0].name, technology.cuts[0].name
        metal = [*(each.name for each in technology.conductors[1:]), *(each.name for each in technology.cuts)]
        taps = layers.conducting["n_tap"] + layers.conducting["p_tap"]
        contacts, lowest = layers.conducting["contact"], layers.conducting[self.lowest]
        # a ring may tie the gates and ends of dummies as well, which carry no current
        self.fed = lowest.interacting(contacts.outside(taps)).not_interacting(contacts.interacting(taps))
        regions = {name: layers.conducting[name] for name in metal}
        self.nets = Nets(regions, layers.joins, technology.dbu_um)
        self.found: dict[int, kdb.Net] = {}

    def number(self, point: Endpoint) -> int | None:
        """Return the number of the metal at an endpoint; None where there is none above the lowest conductor."""
        net = self.nets.at(point.layer, kdb.Point(point.x, point.y)) if point.layer != self.lowest else None
        if net is None:
            return None
        self.found[net.cluster_id] = net
        return int(net.cluster_id)

    def feeds_devices(self, part: int) -> bool:
        """Return whether metal has cuts to the lowest conductor where that joins no tap but a device."""
        return not self.fed.interacting(self.nets.shapes(self.found[part], self.cut)).is_empty()
