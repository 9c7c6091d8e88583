"""The metal that a layout holds before routing, the nets that own it, and the modules that hold it.

The metal that a net's endpoint lies on belongs to that net, with all metal connected to it through the stack; all other
metal is an obstacle.

Modules are named that hold what is in the way of nets that failed, or what joins two nets.

Wires end on pieces of metal that carry the stated current. The wires of a supply must reach some pins where the lowest
conductor is resistive, as local interconnect is::

    rail    =====[met1]=====            met1 strip on a tap ring: bulks only, li1 is enough
                 |                      |
            source straps [met1, met2]--+--- ring of li1: tens of ohms, no way for the current of sources

Metal that only such a conductor joins counts as apart. A part that feeds nothing but taps needs no wire of its own
where the ring joins it to a part that has one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb

from layoutkit.errors import LayoutConflictError, LayoutkitError, listed, sentences
from layoutkit.extract.connectivity import DrawnLayers, Nets
from layoutkit.route.net_flows import Draw

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.extract.passive_devices import PassiveLayers
    from layoutkit.flow.matched_wires import Obstacles
    from layoutkit.flow.routing_job import Endpoint, RoutingJob, WantedNet
    from layoutkit.route.routes import Blocker, NetRequest, RoutingResult, Terminal
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


class MetalInCell:
    """The metal of a cell as a job sees it; each part is looked up once, however often the job is routed.

    Args:
        cell: Holds the metal, and no wires of the job.
        job: States endpoints, labels and modules; widths of nets do not matter.
    """

    def __init__(self, cell: kdb.Cell, job: RoutingJob) -> None:
        self.cell, self.job = cell, job

    @cached_property
    def _drawn(self) -> DrawnLayers:
        return DrawnLayers(self.cell, self.job.technology)

    @cached_property
    def _existing(self) -> ExistingMetal:
        return ExistingMetal(self._drawn)

    @cached_property
    def _clusters(self) -> dict[tuple[str, Endpoint], int | None]:
        check_pins(self.job, self._existing)
        check_labels(self.job, self._existing)
        return self._existing.clusters(self.job)

    @cached_property
    def obstacles(self) -> Obstacles:
        """All metal and cuts with the nets that own them.

        Raises:
            LayoutkitError: If a pin reaches beyond its metal, or a label lies on none.
            LayoutConflictError: If metal joins endpoints of different nets.
        """
        return self._existing.obstacles(owners_of(self._clusters, self.cell, self.job.modules))

    @cached_property
    def passives(self) -> PassiveLayers:
        """The passive devices of the cell."""
        return self._existing.passives

    @cached_property
    def feeds(self) -> SupplyFeeds:
        """What wires of supplies must reach."""
        return supply_feeds(self._drawn, self.job.nets, self._clusters)

    @cached_property
    def feeds_by_rings(self) -> SupplyFeeds:
        """The same where supplies may end at rings."""
        return supply_feeds(self._drawn, (), self._clusters)


class ExistingMetal:
    """The metal that a cell holds already, and its nets through the stack."""

    def __init__(self, drawn: DrawnLayers) -> None:
        metal = drawn.wiring
        self.drawn_as, self.passives = metal.drawn_as, metal.passives
        self.slots = {conductor.name: drawn.slots(conductor.layer) for conductor in drawn.technology.conductors}
        self.metal = Nets(metal.regions, metal.joins, drawn.cell.layout().dbu)
        self.layers = self.metal.regions
        self.nets: dict[int, kdb.Net] = {}

    def cluster(self, point: Endpoint) -> int | None:
        """Return the number of the connected metal that ``point`` lies on, None where there is no metal."""
        import klayout.db as kdb

        net = self.metal.at(point.layer, kdb.Point(point.x, point.y))
        if net is None:
            return None
        self.nets[net.cluster_id] = net
        return int(net.cluster_id)

    def clusters(self, job: RoutingJob) -> dict[tuple[str, Endpoint], int | None]:
        """Return the number of the connected metal below each endpoint of a job."""
        return {(net.name, point): self.cluster(point) for net in job.nets for point in net.endpoints}

    def obstacles(self, owners: Mapping[int, str]) -> Obstacles:
        """Return all metal and cuts with the nets that own them; slots and resistors belong to none."""
        import klayout.db as kdb

        found: Obstacles = {name: [(slots, None)] for name, slots in self.slots.items() if not slots.is_empty()}
        for name, cores in self.passives.metal.items():
            found.setdefault(name, []).append((cores, None))
        for name, drawn_as in self.drawn_as.items():
            owned = kdb.Region()
            for cluster in sorted(owners):
                own = self.metal.shapes(self.nets[cluster], name)
                found.setdefault(drawn_as, []).append((own, owners[cluster]))
                owned += own
            found.setdefault(drawn_as, []).append(((self.layers[name] - owned).merged(), None))
        return found


def check_pins(job: RoutingJob, existing: ExistingMetal) -> None:
    """Refuse pins that are not all metal: a wire that ends on the bare part would join nothing."""
    import klayout.db as kdb

    bare = {conductor.name: kdb.Region() for conductor in job.technology.conductors}
    for point in [point for net in job.nets for point in net.endpoints if point.pin]:
        bare[point.layer].insert(point.box)
    for name, pins in bare.items():
        bare[name] = pins - existing.layers[name]
    um, faults = job.technology.to_um, []
    for number, net in enumerate(job.nets):
        for i, point in enumerate(net.endpoints):
            if point.pin and not (kdb.Region(point.box) & bare[point.layer]).is_empty():
                left, bottom, right, top = map(um, point.pin)
                message = (
                    f"pin ({left:g}, {bottom:g}; {right:g}, {top:g}) um on {point.layer} of net '{net.name}' is not "
                    "wholly metal of the layout; give the rectangle that is drawn, or leave width and height out"
                )
                value = {"x": um(point.x), "y": um(point.y), "layer": point.layer}
                faults.append({"path": f"nets[{number}].endpoints[{i}]", "message": message, "provided_value": value})
    _raise(faults)


def check_labels(job: RoutingJob, existing: ExistingMetal) -> None:
    """Refuse labels that lie on no metal."""
    um, faults = job.technology.to_um, []
    for number, (name, point) in enumerate(job.labels):
        if existing.cluster(point) is None:
            value = {"net_name": name, "x": um(point.x), "y": um(point.y), "layer": point.layer}
            message = (
                f"label '{name}' at ({um(point.x):g}, {um(point.y):g}) um lies on no {point.layer} of the layout; "
                "give the centre of a pin"
            )
            faults.append({"path": f"labels[{number}]", "message": message, "provided_value": value})
    _raise(faults)


def _raise(faults: list[dict[str, Any]]) -> None:
    """Raise all faults in one error, if there are any."""
    if faults:
        first = {"param_name": faults[0]["path"], "provided_value": faults[0]["provided_value"]}
        raise LayoutkitError(sentences(str(f["message"]) for f in faults), details={**first, "errors": faults})


def owners_of(
    clusters: Mapping[tuple[str, Endpoint], int | None], cell: kdb.Cell, modules: Mapping[tuple[str, kdb.Trans], str]
) -> dict[int, str]:
    """Return the net that owns each connected metal of ``ExistingMetal.clusters``.

    Args:
        clusters: The metal below each endpoint.
        cell: Holds the metal.
        modules: Names of modules by cell and place of their instances, to say which of them joins two nets.

    Raises:
        LayoutConflictError: If existing metal already joins endpoints of different nets.
    """
    owners: dict[int, str] = {}
    shorts: dict[tuple[str, str], str] = {}
    for (name, point), cluster in clusters.items():
        if cluster is not None and owners.setdefault(cluster, name) != name:
            pair = owners[cluster], name
            ends = [end for (net, end), own in clusters.items() if (net, own) == (pair[0], cluster)]
            within = (common_module(cell, (point.box, end.box), modules) for end in ends)
            shorts[pair] = shorts.get(pair) or next(filter(None, within), "")
    if shorts:
        found = sorted(shorts.items())
        shown = listed(f"'{a}' and '{b}'{within and f' in module {within}'}" for (a, b), within in found)
        raise LayoutConflictError(
            f"existing metal already joins endpoints of different nets: {shown}; "
            "move an endpoint or remove the metal between them",
            details={"nets": [list(pair) for pair, _ in found], "modules": [within for _, within in found]},
        )
    return owners


def with_modules(
    cell: kdb.Cell, technology: Technology, result: RoutingResult, modules: Mapping[tuple[str, kdb.Trans], str]
) -> RoutingResult:
    """Return a result whose blockers name the module in ``cell``, not yet wired, that holds each of them.

    Args:
        cell: Holds the modules as instances.
        technology: The process.
        result: What the router returned.
        modules: Names of modules by the cell and the place of their instances; an instance that is not listed is named
            by its cell.
    """
    if not result.failed:
        return result
    layers = {conductor.name: conductor.layer for conductor in technology.conductors}
    layers |= {cut.name: cut.layer for cut in technology.cuts}

    def named(blocker: Blocker) -> Blocker:
        return replace(blocker, module=_holder(cell, technology, layers[blocker.layer], blocker, modules))

    nets = tuple(replace(net, blocked_by=tuple(map(named, net.blocked_by))) for net in result.nets)
    return replace(result, nets=nets)


def common_module(cell: kdb.Cell, boxes: Sequence[kdb.Box], modules: Mapping[tuple[str, kdb.Trans], str]) -> str:
    """Return the name of the smallest module in ``cell`` that all ``boxes`` lie in; empty where there is none.

    Args:
        cell: Holds the modules as instances.
        boxes: At least one. [dbu]
        modules: As for ``with_modules``.
    """
    found = [
        (instance.bbox().area(), modules.get((instance.cell.name, instance.trans), instance.cell.name))
        for instance in cell.each_touching_inst(boxes[0])
        if all(box.inside(instance.bbox()) for box in boxes)
    ]
    return min(found, default=(0, ""))[1]


def _holder(
    cell: kdb.Cell,
    technology: Technology,
    layer: str,
    blocker: Blocker,
    modules: Mapping[tuple[str, kdb.Trans], str],
) -> str:
    """Return the name of the module that holds a blocker; empty where none does."""
    import klayout.db as kdb

    if blocker.kind not in {"metal", "keepout"}:
        return ""
    box, layout = kdb.Box(*blocker.rect), cell.layout()
    index = technology.layer(layout, layer)
    found = []
    for instance in cell.each_touching_inst(box):
        within = instance.bbox()
        if blocker.kind == "keepout":
            held = box.inside(within)
        else:
            own = instance.trans.inverted() * box
            held = (kdb.Region(own) - kdb.Region(instance.cell.begin_shapes_rec_touching(index, own))).is_empty()
        if held:
            name = modules.get((instance.cell.name, instance.trans), instance.cell.name)
            found.append((within.area(), name))
    return min(found, default=(0, ""))[1]
