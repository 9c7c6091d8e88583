"""Route nets between points of an existing layout: its metal is in the way, or belongs to the net that starts on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutConflictError, LayoutkitError
from layoutkit.route.drawing import draw_labels, draw_routes
from layoutkit.route.router import route
from layoutkit.route.routes import NetRequest, Terminal, Via
from layoutkit.route.routing_stack import make_stack

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.route.routes import RoutedNet, RoutingResult
    from layoutkit.technology import Technology
    from layoutkit.tools.routing_request import Endpoint, RoutingJob, WantedNet

    Obstacles = dict[str, list[tuple[kdb.Box | kdb.Polygon | kdb.Region, str | None]]]

MARGIN_PITCHES = 20
"""Without a routing area, wires may run this many track pitches outside the layout and the endpoints."""


@dataclass(frozen=True)
class RoutedLayout:
    """The routes, the technology they keep, and the area they were allowed. [dbu]"""

    result: RoutingResult
    area: kdb.Box


def route_in_layout(layout: kdb.Layout, cell: kdb.Cell, job: RoutingJob) -> RoutedLayout:
    """Route a job in ``cell`` and draw the nets that succeeded into it, and its labels.

    Whatever metal an endpoint lies on belongs to that net, with all metal connected to it through the stack.

    Raises:
        LayoutkitError: If the layout's database unit is not the technology's, a pin reaches beyond its metal, or a
            label lies on none.
        LayoutConflictError: If existing metal already joins endpoints of different nets.
    """
    import klayout.db as kdb

    technology = job.technology
    if abs(layout.dbu - technology.dbu_um) > 1e-9:
        raise LayoutkitError(
            f"the layout has a database unit of {layout.dbu:g} um, technology {technology.name} one of "
            f"{technology.dbu_um:g} um; give a layout of the technology's unit"
        )
    existing = _Existing(cell, technology)
    _check_pins(job, existing)
    _check_labels(job, existing)
    clusters = {(net.name, point): existing.cluster(point) for net in job.nets for point in net.endpoints}
    owners = _owners(clusters)
    obstacles = existing.obstacles(owners)
    for layer, box in job.obstacles:
        obstacles.setdefault(layer, []).append((box, None))
    area = job.area
    if area is None:
        points = kdb.Box()
        for net in job.nets:
            for point in net.endpoints:
                points += point.box
        margin = MARGIN_PITCHES * make_stack(technology, job.layers, []).pitch()
        area = (points + cell.bbox()).enlarged(margin, margin)
        if area.empty():
            raise LayoutkitError("nets is empty and so is the layout: there is nothing to route")
    requests = [_request(technology, net, clusters) for net in job.nets]
    result = route(technology, requests, obstacles, area, job.layers)
    draw_routes(layout, cell, technology, result)
    draw_labels(layout, cell, technology, job.labels)
    return RoutedLayout(result, area)


def report(job: RoutingJob, result: RoutingResult) -> dict[str, Any]:
    """Return the result as JSON data: ``routed_nets`` and ``routing_stats``, lengths in micrometres."""
    technology = job.technology
    succeeded = [net for net in result.nets if net.success]
    return {
        "routed_nets": [_net_data(job, net) for net in result.nets],
        "routing_stats": {
            "total_nets": len(result.nets),
            "success_count": len(succeeded),
            "failed_count": len(result.nets) - len(succeeded),
            "total_wire_length": technology.to_um(sum(net.wire_length for net in succeeded)),
        },
    }


def check_routes(layout: kdb.Layout, cell: kdb.Cell, technology: Technology, result: RoutingResult) -> dict[str, Any]:
    """Return the summary of the technology's rules on wiring and vias where routes were drawn."""
    import klayout.db as kdb

    from layoutkit.drc.check import check
    from layoutkit.drc.drc_report import nothing_to_check

    drawn = kdb.Box()
    for net in result.nets:
        for _, rect in net.metal:
            drawn += kdb.Box(*rect)
    if drawn.empty():
        return nothing_to_check()
    layers = {c.layer for c in technology.conductors} | {c.layer for c in technology.cuts}
    operands = ("layer", "other", "outer", "inner")
    rules = [
        rule.id
        for rule in technology.rules
        if {rule.options[name] for name in operands if name in rule.options} <= layers
    ]
    return check(layout, cell, technology, rule_ids=rules, region=drawn.to_dtype(layout.dbu)).summary()


class _Existing:
    """The metal that a cell holds already, and its nets through the stack."""

    def __init__(self, cell: kdb.Cell, technology: Technology) -> None:
        from layoutkit.extract.connectivity import DrawnLayers, Nets, wiring

        metal = wiring(cell, technology)
        drawn = DrawnLayers(cell, technology)
        self.drawn_as = metal.drawn_as
        self.slots = {conductor.name: drawn.slots(conductor.layer) for conductor in technology.conductors}
        self.metal = Nets(metal.regions, metal.joins, cell.layout().dbu)
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

    def obstacles(self, owners: Mapping[int, str]) -> Obstacles:
        """Return all metal and cuts, each with the net that owns its cluster, and the slots, which nothing owns."""
        found: Obstacles = {name: [(slots, None)] for name, slots in self.slots.items() if not slots.is_empty()}
        for name, drawn_as in self.drawn_as.items():
            rest = self.layers[name].dup()
            for cluster in sorted(owners):
                own = self.metal.shapes(self.nets[cluster], name)
                found.setdefault(drawn_as, []).append((own, owners[cluster]))
                rest -= own
            found.setdefault(drawn_as, []).append((rest.merged(), None))
        return found


def _check_pins(job: RoutingJob, existing: _Existing) -> None:
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


def _check_labels(job: RoutingJob, existing: _Existing) -> None:
    """Refuse labels beside the metal: they would name nothing."""
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
        raise LayoutkitError("; ".join(str(f["message"]) for f in faults), details={**first, "errors": faults})


def _owners(clusters: Mapping[tuple[str, Endpoint], int | None]) -> dict[int, str]:
    owners: dict[int, str] = {}
    shorts: set[tuple[str, str]] = set()
    for (name, _), cluster in clusters.items():
        if cluster is not None and owners.setdefault(cluster, name) != name:
            shorts.add((owners[cluster], name))
    if shorts:
        told = ", ".join(f"'{one}' and '{other}'" for one, other in sorted(shorts))
        raise LayoutConflictError(
            f"existing metal already joins endpoints of different nets: {told}; "
            "move an endpoint or remove the metal between them",
            details={"nets": [list(pair) for pair in sorted(shorts)]},
        )
    return owners


def _request(technology: Technology, net: WantedNet, clusters: Mapping[tuple[str, Endpoint], int | None]) -> NetRequest:
    terminals = []
    for point in net.endpoints:
        half = -(-technology.conductor(point.layer).width // (2 * technology.grid)) * technology.grid
        cluster = clusters[net.name, point]
        box = point.box if point.pin else point.box.enlarged(half, half)
        terminals.append(Terminal(point.layer, box, "" if cluster is None else f"metal {cluster}"))
    return NetRequest(net.name, tuple(terminals), net.width, net.priority)


def _net_data(job: RoutingJob, net: RoutedNet) -> dict[str, Any]:
    um, spelled = job.technology.to_um, job.spelled
    path: list[dict[str, Any]] = []
    for entry in net.path:
        if isinstance(entry, Via):
            path.append({"layer": spelled.get(entry.cut, entry.cut), "position": [um(entry.x), um(entry.y)]})
        else:
            points = [[um(x), um(y)] for x, y in entry.points]
            path.append({"layer": spelled.get(entry.layer, entry.layer), "points": points})
    data: dict[str, Any] = {
        "net_name": net.name,
        "success": net.success,
        "path": path,
        "wire_length": um(net.wire_length),
        "via_count": net.via_count,
    }
    if net.patches:
        data["patches"] = [
            {"layer": spelled.get(patch.layer, patch.layer), "box": [um(side) for side in patch.rect]}
            for patch in net.patches
        ]
    if net.reason is not None:
        data["reason"] = net.reason
        data["conflicts"] = list(net.conflicts)
    return data
