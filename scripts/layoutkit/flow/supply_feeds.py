"""Which pins of a supply its wires must reach where the lowest conductor is resistive, as local interconnect is.

::

    rail    =====[met1]=====            met1 strip on a tap ring: bulks only, li1 is enough
                 |                      |
            source straps [met1, met2]--+--- ring of li1: tens of ohms, no way for the current of sources

Metal that only such a conductor joins counts as apart. A part that feeds nothing but taps needs no wire of its own
where the ring joins it to a part that has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.extract.connectivity import Nets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from layoutkit.extract.connectivity import DrawnLayers
    from layoutkit.flow.routing_job import Endpoint, WantedNet
    from layoutkit.technology import Technology

RESISTIVE = 10.0
"""The lowest conductor is resistive if its sheet resistance is this many times that of the one above. [1]"""

Joined = dict[tuple[str, "Endpoint"], str]


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
