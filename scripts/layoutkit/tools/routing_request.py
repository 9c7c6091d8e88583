"""The JSON request of ``layout.route_signal_nets_basic``, lengths in micrometres: read and checked, or written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.circuit.constraints import ConstraintFault, Constraints, NetCurrent, NetLengths, NetShield, SymmetryGroup
from layoutkit.errors import LayoutkitError, TechnologyError, listed, sentences
from layoutkit.flow.matched_wires import Obstacle
from layoutkit.flow.net_wishes import equal_lengths, with_wishes
from layoutkit.flow.routing_job import Endpoint, RoutingJob, WantedNet
from layoutkit.route.net_flows import Draw
from layoutkit.tools.current_layout import box_um, frame_data, read_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.flow.port_frame import Frame
    from layoutkit.technology import Technology

DEFAULT_PRIORITY = 1
MAX_SHOWN = 10  # names in a warning
GRID_TOLERANCE = 1e-6
"""How far a coordinate in micrometres may be from a grid point, in grid steps: floating-point noise only."""


def request_data(job: RoutingJob) -> dict[str, Any]:
    """Return a job as the request that ``read_job`` reads."""
    technology, um = job.technology, job.technology.to_um
    nets = []
    for net in job.nets:
        entry: dict[str, Any] = {
            "net_name": net.name,
            "endpoints": [_endpoint_data(technology, point) for point in net.endpoints],
            "priority": net.priority,
        }
        wishes = {
            "width": None if net.width is None else um(net.width),
            "mirror_of": net.mirror_of,
            "current": net.current,
            "symmetric": net.symmetric or None,
            "match_length": net.match_length or None,
            "shield": net.shield,
            "least_cuts": net.least_cuts if net.least_cuts > 1 else None,
            "hop_layer": net.hop_layer,
            "apart_from": list(net.apart_from) or None,
            "avoid_layers": list(net.avoid_layers) or None,
        }
        nets.append(entry | {name: value for name, value in wishes.items() if value is not None})
    data: dict[str, Any] = {
        "nets": nets,
        "routing_layers": list(job.layers),
        "via_layer": technology.cut_between(job.layers[0], job.layers[1]).name,
        "obstacles": [_obstacle_data(technology, obstacle) for obstacle in job.obstacles],
    }
    if job.area is not None:
        data["routing_area"] = box_um(job.area, technology)
    if job.axis_x is not None:
        data["axis_x"] = um(job.axis_x)
    if job.frame is not None:
        data["frame"] = frame_data(technology, job.frame)
    return data


def _endpoint_data(technology: Technology, point: Endpoint) -> dict[str, Any]:
    box, um = point.box, technology.to_um
    centre = {"x": um((box.left + box.right) / 2), "y": um((box.bottom + box.top) / 2)}
    current = {} if point.draw is None or point.draw.port else {"current": list(point.draw.amperes)}
    return {"layer": point.layer, **centre, "width": um(box.width()), "height": um(box.height()), **current}


def _obstacle_data(technology: Technology, obstacle: Obstacle) -> dict[str, Any]:
    data = {"layer": obstacle.layer, "box": box_um(obstacle.box, technology), "kind": obstacle.kind}
    return data | ({"devices": list(obstacle.devices)} if obstacle.devices else {})


def with_constraints(job: RoutingJob, constraints: Constraints) -> RoutingJob:
    """Return a job whose nets have the priorities, currents and mirror images that ``constraints`` state.

    What they state of a net replaces what the request states; each difference is a warning, and so are nets that the
    request does not have.
    """
    names = {net.name for net in job.nets}
    stated_nets = {net for group in constraints.symmetry for pair in group.net_pairs for net in pair}
    stated_nets |= {net for entry in constraints.net_lengths for net in entry.nets}
    stated_nets |= {net for entry in constraints.net_separations for net in entry.nets}
    stated_nets |= {net for entry in constraints.net_shields for net in (entry.net, entry.shield)}
    others = sorted({*stated_nets, *constraints.priorities, *constraints.currents} - names)
    images = {second: first for second, first in constraints.images.items() if names.issuperset((first, second))}
    paired = {*images, *images.values()}
    same = {(net.name, net.mirror_of) for net in job.nets} & {(first, second) for second, first in images.items()}
    nets, warnings = [], list(job.warnings)
    for net in job.nets:
        stated: dict[str, Any] = {
            "priority": constraints.priorities.get(net.name, net.priority),
            "current": constraints.currents.get(net.name, net.current),
            "mirror_of": images.get(net.name) if paired & {net.name, net.mirror_of} else net.mirror_of,
        }
        for name, usual in (("priority", DEFAULT_PRIORITY), ("current", None), ("mirror_of", None)):
            before = getattr(net, name)
            if before not in {usual, stated[name]} and (net.name, before) not in same:
                text = f"net '{net.name}': {name} is {stated[name]} (constraints), not {before} (request)"
                warnings.append(text)
        nets.append(replace(net, **stated))
    if others:
        warnings.append(
            f"the constraints name nets that are not in this request: {listed(others, MAX_SHOWN)}; a net "
            "that needs no wires may be left out, any other name is a mistake"
        )
    return replace(job, nets=with_wishes(nets, constraints), warnings=tuple(warnings))


def constraints_of(job: RoutingJob, constraints: Constraints) -> Constraints:
    """Return the constraints on nets that a job obeys: those of a file, with what the request itself states."""
    pairs = [pair for group in constraints.symmetry for pair in group.net_pairs]
    known = {net for pair in pairs for net in pair}
    more = [(net.mirror_of, net.name) for net in job.nets if net.mirror_of is not None and net.name not in known]
    group = SymmetryGroup(net_pairs=tuple(more), reason="mirror_of")
    loads = [
        NetCurrent(net.name, net.current, "current")
        for net in job.nets
        if net.current is not None and net.name not in constraints.currents
    ]
    equal = {net for entry in constraints.net_lengths for net in entry.nets}
    lengths = [
        NetLengths(each.nets, reason="match_length") for each in equal_lengths(job.nets) if not equal & {*each.nets}
    ]
    covered = {entry.net for entry in constraints.net_shields}
    shields = [NetShield(n.name, n.shield, "shield") for n in job.nets if n.shield and n.name not in covered]
    return replace(
        constraints,
        net_lengths=(*constraints.net_lengths, *lengths),
        net_shields=(*constraints.net_shields, *shields),
        symmetry=(*constraints.symmetry, group) if more else constraints.symmetry,
        net_currents=(*constraints.net_currents, *loads),
    )


def read_job(technology: Technology, params: Mapping[str, Any]) -> RoutingJob:
    """Return the job in the parameters of the tool.

    Raises:
        LayoutkitError: INVALID_PARAM with everything that is wrong in ``details["errors"]``.
    """
    return _Reader(technology, params).job()


def _with_port_draws(nets: Sequence[WantedNet], frame: Frame | None) -> tuple[WantedNet, ...]:
    """Return nets whose endpoints at ports of the frame carry any current, where those of devices state theirs."""
    ports = {(port.name, box.left, box.bottom, box.right, box.top) for port, box in frame.terminals} if frame else set()
    return tuple(
        replace(
            net,
            endpoints=tuple(
                replace(point, draw=Draw(port=True)) if (net.name, *(point.pin or ())) in ports else point
                for point in net.endpoints
            ),
        )
        if any(point.draw for point in net.endpoints)
        else net
        for net in nets
    )


class _Reader:
    """Collects faults while it reads, so that all are reported at once."""

    def __init__(self, technology: Technology, params: Mapping[str, Any]) -> None:
        self.technology, self.params = technology, params
        self.names = [conductor.name for conductor in technology.conductors]
        self.faults: list[ConstraintFault] = []
        self.warnings: list[str] = []
        self.spelled: dict[str, str] = {}

    def job(self) -> RoutingJob:
        layers = self._layers()
        self.technology = self._raised()
        area = self._area()
        obstacles = tuple(self._obstacles())
        nets = tuple(self._net(number, entry, layers) for number, entry in enumerate(self.params["nets"]))
        self._twice(nets)
        self._positions(nets, area, obstacles)
        self._via_layer(layers, nets)
        labels = tuple(self._label(number, entry) for number, entry in enumerate(self.params.get("labels", ())))
        axis_x = self._on_grid("axis_x", self.params["axis_x"]) if "axis_x" in self.params else None
        self._mirrors(nets)
        frame = self._frame(area)
        if self.faults:
            raise self._error()
        return RoutingJob(
            self.technology,
            _with_port_draws(nets, frame),
            layers,
            area,
            obstacles,
            self.spelled,
            tuple(self.warnings),
            labels,
            axis_x,
            frame=frame,
        )

    def _label(self, number: int, entry: Mapping[str, Any]) -> tuple[str, Endpoint]:
        x, y = (round(entry[axis] / self.technology.dbu_um) for axis in ("x", "y"))
        return entry["net_name"], Endpoint(self._conductor(f"labels[{number}].layer", entry["layer"]), x, y)

    def _fault(self, path: str, message: str, value: Any) -> None:
        self.faults.append(ConstraintFault(path, message, value))

    def _error(self) -> LayoutkitError:
        first = self.faults[0]
        message = first.message if len(self.faults) == 1 else sentences(fault.message for fault in self.faults)
        errors = [{"path": f.path, "message": f.message, "provided_value": f.value} for f in self.faults]
        return LayoutkitError(
            message, details={"param_name": first.path, "provided_value": first.value, "errors": errors}
        )

    def _conductor(self, path: str, name: str) -> str:
        """Return the conductor called ``name``; the first conductor after noting a fault."""
        try:
            return self.technology.conductor(name).name
        except TechnologyError as error:
            self._fault(path, f"{path}: {error}", name)
            return self.names[0]

    def _layers(self) -> tuple[str, ...]:
        found: list[str] = []
        for number, name in enumerate(self.params["routing_layers"]):
            conductor = self._conductor(f"routing_layers[{number}]", name)
            if conductor in found:
                self._fault(f"routing_layers[{number}]", f"routing layer '{name}' is named twice", name)
            found.append(conductor)
            self.spelled.setdefault(conductor, name)
        return tuple(sorted(set(found), key=self.names.index))

    def _raised(self) -> Technology:
        """Return the technology with the widths and spaces that ``drc_rules`` raises; it never lowers one."""
        raised: dict[tuple[str, str], int] = {}
        for field, key in (("width", "min_width"), ("space", "min_space")):
            for name, value_um in self.params.get("drc_rules", {}).get(key, {}).items():
                conductor = self.technology.conductor(self._conductor(f"drc_rules.{key}.{name}", name))
                least = getattr(conductor, field)
                value = self.technology.snap_up(value_um / self.technology.dbu_um - GRID_TOLERANCE)
                if value < least:
                    self.warnings.append(
                        f"drc_rules.{key}.{name} = {value_um:g} um is below the technology's "
                        f"{self.technology.to_um(least):g} um, which is kept"
                    )
                raised[conductor.name, field] = max(value, least)
        return replace(
            self.technology,
            conductors=tuple(
                replace(c, width=raised.get((c.name, "width"), c.width), space=raised.get((c.name, "space"), c.space))
                for c in self.technology.conductors
            ),
        )

    def _on_grid(self, path: str, value_um: float) -> int:
        """Return a coordinate [dbu]; one that is off the manufacturing grid is a fault."""
        technology = self.technology
        nearest = technology.snap(value_um / technology.dbu_um)
        if abs(value_um / technology.dbu_um - nearest) > GRID_TOLERANCE * technology.grid:
            self._fault(
                path,
                f"{path} = {value_um:.10g} um is off the {technology.to_um(technology.grid):g} um grid; "
                f"the nearest grid point is {technology.to_um(nearest):g} um",
                value_um,
            )
        return nearest

    def _box(self, path: str, entry: Mapping[str, float]) -> kdb.Box:
        left, bottom = self._on_grid(f"{path}.x", entry["x"]), self._on_grid(f"{path}.y", entry["y"])
        width, height = (self._on_grid(f"{path}.{side}", entry[side]) for side in ("width", "height"))
        return kdb.Box(left, bottom, left + width, bottom + height)

    def _area(self) -> kdb.Box | None:
        entry = self.params.get("routing_area")
        return None if entry is None else self._box("routing_area", entry)

    def _frame(self, area: kdb.Box | None) -> Frame | None:
        entry = self.params.get("frame")
        if entry is None:
            return None
        if area is None:
            self._fault("routing_area", "a frame needs the routing_area that came with it", None)
            return None
        try:
            return read_frame(self.technology, entry, area)
        except TechnologyError as error:
            self._fault("frame.ports", f"frame: {error}", entry["ports"])
            return None

    def _obstacles(self) -> list[Obstacle]:
        return [
            Obstacle(
                self._wiring(f"obstacles[{i}].layer", entry["layer"]),
                self._box(f"obstacles[{i}].box", entry["box"]),
                entry.get("kind", "metal"),
                tuple(entry.get("devices", ())),
            )
            for i, entry in enumerate(self.params.get("obstacles", ()))
        ]

    def _wiring(self, path: str, name: str) -> str:
        """Return the via called ``name``, else the conductor."""
        resolved = self.technology.resolve(name)
        return resolved if resolved in [cut.name for cut in self.technology.cuts] else self._conductor(path, name)

    def _net(self, number: int, entry: Mapping[str, Any], layers: Sequence[str]) -> WantedNet:
        path = f"nets[{number}]"
        endpoints = tuple(self._endpoint(f"{path}.endpoints[{i}]", point) for i, point in enumerate(entry["endpoints"]))
        for i, point in enumerate(entry["endpoints"]):
            self.spelled.setdefault(endpoints[i].layer, point["layer"])
        return WantedNet(
            entry["net_name"],
            endpoints,
            self._width(path, entry, layers),
            entry.get("priority", DEFAULT_PRIORITY),
            entry.get("mirror_of"),
            symmetric=entry.get("symmetric", False),
            match_length=entry.get("match_length", ""),
            apart_from=tuple(entry.get("apart_from", ())),
            shield=entry.get("shield"),
            current=entry.get("current"),
            least_cuts=entry.get("least_cuts", 1),
            avoid_layers=self._avoided(f"{path}.avoid_layers", entry.get("avoid_layers", ()), layers),
            hop_layer=next(iter(self._avoided(f"{path}.hop_layer", [entry["hop_layer"]], layers)), None)
            if "hop_layer" in entry
            else None,
        )

    def _avoided(self, path: str, names: Sequence[str], layers: Sequence[str]) -> tuple[str, ...]:
        found = [self._conductor(f"{path}[{i}]", name) for i, name in enumerate(names)]
        for i, conductor in enumerate(found):
            if conductor not in layers:
                shown = ", ".join(layers)
                self._fault(f"{path}[{i}]", f"{path}[{i}] is none of the routing layers {shown}: {names[i]}", names[i])
        return tuple(found)

    def _endpoint(self, path: str, point: Mapping[str, Any]) -> Endpoint:
        layer = self._conductor(f"{path}.layer", point["layer"])
        draw = Draw.of(point["current"]) if "current" in point else None
        if "width" not in point:
            x, y = self._on_grid(f"{path}.x", point["x"]), self._on_grid(f"{path}.y", point["y"])
            return Endpoint(layer, x, y, draw=draw)
        left, right = self._sides(path, "x", "width", point)
        bottom, top = self._sides(path, "y", "height", point)
        return Endpoint(layer, (left + right) // 2, (bottom + top) // 2, (left, bottom, right, top), draw)

    def _sides(self, path: str, axis: str, size: str, point: Mapping[str, Any]) -> tuple[int, int]:
        """Return both sides of a pin along ``axis``; its middle may be off the grid, its sides may not."""
        middle, half = point[axis], point[size] / 2
        low = self._on_grid(f"{path}: {axis} - {size} / 2", middle - half)
        high = self._on_grid(f"{path}: {axis} + {size} / 2", middle + half)
        if low == high:
            step = self.technology.to_um(self.technology.grid)
            self._fault(
                f"{path}.{size}", f"{path}.{size} = {point[size]:g} um is less than the {step:g} um grid", point[size]
            )
        return low, high

    def _width(self, path: str, entry: Mapping[str, Any], layers: Sequence[str]) -> int | None:
        if "width" not in entry:
            return None
        technology, width_um = self.technology, entry["width"]
        least = {name: technology.conductor(name).width for name in layers}
        width = technology.snap_up(width_um / technology.dbu_um - GRID_TOLERANCE)
        below = [f"{technology.to_um(value):g} um on {name}" for name, value in least.items() if width < value]
        if len(below) == len(least):  # wires on a conductor with a larger minimum get that
            message = f"Width {width_um:g} um of net '{entry['net_name']}' is below minimum: {', '.join(below)}"
            self._fault(f"{path}.width", message, width_um)
        step = 2 * technology.grid
        drawn = -(-width // step) * step
        if abs(drawn - width_um / technology.dbu_um) > GRID_TOLERANCE * step:
            self.warnings.append(
                f"net '{entry['net_name']}': width {width_um:g} um is drawn as {technology.to_um(drawn):g} um, "
                "the next even number of grid steps"
            )
        return drawn

    def _twice(self, nets: Sequence[WantedNet]) -> None:
        seen: set[str] = set()
        for number, net in enumerate(nets):
            if net.name in seen:
                self._fault(f"nets[{number}].net_name", f"net '{net.name}' is listed more than once", net.name)
            seen.add(net.name)

    def _mirrors(self, nets: Sequence[WantedNet]) -> None:
        """Refuse shields that are missing, and images of nets that are missing, images themselves, or have another."""
        originals = [net.mirror_of for net in nets if net.mirror_of is not None]
        images = {net.name for net in nets if net.mirror_of is not None}
        names = {net.name for net in nets}
        for number, net in enumerate(nets):
            if net.shield is not None and (net.shield not in names or net.shield == net.name):
                text = (
                    f"net '{net.name}' cannot be shielded by '{net.shield}', which is not another net of this request"
                )
                self._fault(f"nets[{number}].shield", text, net.shield)
            if net.mirror_of is None:
                continue
            path, of = f"nets[{number}].mirror_of", net.mirror_of
            if of not in names or of == net.name:
                self._fault(
                    path, f"net '{net.name}' cannot mirror '{of}', which is not another net of this request", of
                )
            elif of in images or originals.count(of) > 1:
                self._fault(path, f"net '{net.name}' cannot mirror '{of}', which is in another mirrored pair", of)

    def _positions(self, nets: Sequence[WantedNet], area: kdb.Box | None, obstacles: Sequence[Obstacle]) -> None:
        taken: dict[Endpoint, str] = {}
        um = self.technology.to_um
        for number, net in enumerate(nets):
            for i, point in enumerate(net.endpoints):
                path = f"nets[{number}].endpoints[{i}]"
                where = f"endpoint ({um(point.x):g}, {um(point.y):g}) um on {point.layer} of net '{net.name}'"
                value = {"x": um(point.x), "y": um(point.y), "layer": point.layer}
                if point in taken:
                    again = "named twice" if taken[point] == net.name else f"also an endpoint of net '{taken[point]}'"
                    self._fault(path, f"{where} is {again}", value)
                taken.setdefault(point, net.name)
                if area is not None and not point.box.inside(area):
                    self._fault(path, f"{where} lies outside the routing area", value)
                hidden = [each for each in obstacles if each.kind != "matching" and each.layer == point.layer]
                if any(point.box.inside(each.box) for each in hidden):
                    self._fault(path, f"{where} lies on an obstacle", value)

    def _via_layer(self, layers: Sequence[str], nets: Sequence[WantedNet]) -> None:
        """Accept a via between the routed layers; the technology's stack defines the other vias."""
        named = self.params["via_layer"]
        used = {self.names.index(name) for name in layers} | {
            self.names.index(point.layer) for net in nets for point in net.endpoints
        }
        cuts = [cut.name for cut in self.technology.cuts[min(used) : max(used)]]
        resolved = self.technology.resolve(named)
        if resolved in cuts:
            self.spelled.setdefault(resolved, named)
        elif resolved not in [cut.name for cut in self.technology.cuts]:
            known = ", ".join(cut.name for cut in self.technology.cuts)
            self._fault("via_layer", f"technology {self.technology.name} has no via '{named}'; it has: {known}", named)
        elif cuts:
            self.warnings.append(f"via_layer '{named}' joins no layers routed here; the vias are {', '.join(cuts)}")
