"""The metal that a layout holds before routing, the nets that own it, and the modules that hold it.

The metal that a net's endpoint lies on belongs to that net, with all metal connected to it through the stack; all other
metal is an obstacle.

Modules are named that hold what is in the way of nets that failed, or what joins two nets.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutConflictError, LayoutkitError, listed, sentences
from layoutkit.extract.connectivity import DrawnLayers, Nets
from layoutkit.flow.landing_places import SupplyFeeds, supply_feeds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.extract.passive_devices import PassiveLayers
    from layoutkit.flow.keepouts import Obstacles
    from layoutkit.flow.routing_job import Endpoint, RoutingJob
    from layoutkit.route.routes import Blocker, RoutingResult
    from layoutkit.technology import Technology


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
