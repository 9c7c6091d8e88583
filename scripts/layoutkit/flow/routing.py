"""Route nets between points of a layout around the metal that it holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutkit.errors import LayoutkitError
from layoutkit.flow.current_loads import stated_currents, terminal_draws
from layoutkit.flow.existing_metal import MetalInCell, SupplyFeeds, heavy_pieces, landed, with_modules
from layoutkit.flow.matched_wires import Obstacle, RoutingFrame, measured_mirrors, route_around, unequal_metal
from layoutkit.flow.net_wishes import (
    antenna_lengths,
    equal_lengths,
    hops_over_plates,
    net_loads,
    with_antenna_wishes,
    with_wishes,
)
from layoutkit.flow.port_frame import draw_frame, erase_frame
from layoutkit.flow.routing_job import (
    Endpoint,
    Routes,
    RoutingJob,
    WantedNet,
    routing_conductors,
    track_pitch,
    wiring_conductors,
)
from layoutkit.flow.tight_frame import Kept, equally_long, tighten, with_frame
from layoutkit.route.equal_loads import Loading, StubRoom, equalised
from layoutkit.route.mirroring import axis_between
from layoutkit.route.net_flows import Draw
from layoutkit.route.router import draw_labels, draw_routes
from layoutkit.route.routes import Gauge, Mirrored, NetRequest, Terminal, length_bound, rect_of
from layoutkit.route.routing_stack import make_stack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.draw.module import Module, Pin
    from layoutkit.extract.passive_devices import PassiveLayers
    from layoutkit.flow.design import Design
    from layoutkit.flow.matched_wires import MirroredNets, Obstacles
    from layoutkit.flow.placing import PlacedModules
    from layoutkit.flow.port_frame import Frame
    from layoutkit.route.routes import EqualLengths, RoutingResult
    from layoutkit.technology import Technology

MARGIN_PITCHES = 20
"""Without a routing area, wires may run this many track pitches outside the layout and the endpoints."""
MARGIN_TRACKS = 8
"""Room around placed modules for wires, in track pitches of the third conductor."""
CELL_MARGIN_TRACKS = 2
"""The same around the modules of a shared cell, whose neighbours it would keep away."""
MOST_SHARES = 5
"""Widths that the wires of a net with a stated current may have, beside the usual one."""
SUPPLY_WIDTH_FACTOR = 3
"""Width of a supply's wires, in minimum widths of the second conductor."""


def placed_job(placed: PlacedModules, design: Design) -> RoutingJob:
    """Return how to route placed modules: every net with several pins, around the modules' keepouts."""
    technology, constraints = placed.technology, design.constraints
    pins: dict[str, list[Endpoint]] = {}
    draws = terminal_draws(constraints, design.circuit, technology)
    for module in placed.modules.values():
        for pin in module.pins:
            box = placed.place_of(module, pin.box)
            middle = ((box.left + box.right) // 2, (box.bottom + box.top) // 2)
            rect = (box.left, box.bottom, box.right, box.top)
            draw = _draw_at(pin, module, design.circuit, draws.get(pin.net))
            pins.setdefault(pin.net, []).append(Endpoint(pin.layer, *middle, rect, draw))
    for port, box in placed.frame.terminals if placed.frame else ():
        middle = (box.center().x, box.center().y)
        draw = Draw(port=True) if any(end.draw for end in pins.get(port.name, ())) else None
        endpoint = Endpoint(port.layer, *middle, (box.left, box.bottom, box.right, box.top), draw)
        pins.setdefault(port.name, []).append(endpoint)
    step = 2 * technology.grid
    supply_width = -(-technology.conductors[1].width * SUPPLY_WIDTH_FACTOR // step) * step
    images = constraints.images
    wired = {net for net, ends in pins.items() if len(ends) > 1}
    paired = {net for pair in images.items() if wired.issuperset(pair) for net in pair}
    currents, loads = stated_currents(constraints, design.circuit), net_loads(design.circuit)
    nets = tuple(
        WantedNet(
            net,
            tuple(pins[net]),
            width=supply_width if net in design.supplies else None,
            priority=design.priority(net),
            mirror_of=images.get(net) if images.get(net) in wired else None,
            symmetric=bool(constraints.symmetry) and net not in paired,
            current=currents.get(net),
            least_cuts=2 if net in design.supplies else 1,
            load=loads.get(net),
        )
        for net in sorted(wired)
    )
    nets = with_wishes(nets, constraints, design)
    over_plates = hops_over_plates(technology, design.circuit)
    layers = tuple(conductor.name for conductor in wiring_conductors(technology, currents, over_plates.values()))
    conductors = routing_conductors(technology)
    lengths = antenna_lengths(technology, design.circuit, conductors)
    driven = antenna_lengths(technology, design.circuit, conductors, driven=True)
    nets = with_antenna_wishes(nets, lengths, layers, driven, over_plates)
    margin = (CELL_MARGIN_TRACKS if design.is_cell else MARGIN_TRACKS) * track_pitch(technology)
    axis_x = placed.placement.axis_x
    return RoutingJob(
        technology,
        nets,
        layers,
        placed.frame.wiring if placed.frame else placed.cell.bbox().enlarged(margin, margin),
        tuple(
            Obstacle(
                keepout.layer,
                placed.place_of(module, keepout.box),
                "rule" if keepout.by_rule else "matching",
                ()
                if keepout.by_rule
                else tuple(sorted({g.device for g in module.gates if g.device and g.box.overlaps(keepout.box)})),
            )
            for module in placed.modules.values()
            for keepout in module.keepouts
        ),
        axis_x=axis_x,
        frame=placed.frame,
        modules={(module.cell.name, placed.trans[name]): name for name, module in placed.modules.items()},
    )


def _draw_at(pin: Pin, module: Module, circuit: Circuit, draws: Mapping[str, Draw] | None) -> Draw | None:
    """Return what flows through a pin of a module; None where that is not known.

    Args:
        pin: The pin.
        module: Its module.
        circuit: The devices.
        draws: What the devices of the pin's net draw; None where the current of the net is not stated.
    """
    if draws is None:
        return None
    found = Draw()
    for device in circuit.devices:
        if device.id in module.devices and pin.net in device.terminals.values():
            if device.id not in draws:
                return None
            found += draws[device.id].part(pin.share)
    return Draw.of(found.amperes)


def narrower_supplies(job: RoutingJob, names: Sequence[str]) -> dict[str, int]:
    """Return the width of the narrowest pin of each of ``names`` that asks for more. [dbu]

    Wires that carry a stated current stay as wide as it needs.
    """
    found = {}
    for net in job.nets:
        if net.name in names and net.width is not None:
            rects = [point.pin for point in net.endpoints if point.pin is not None]
            least = min((min(right - left, top - bottom) for left, bottom, right, top in rects), default=net.width)
            least = least // (2 * job.technology.grid) * 2 * job.technology.grid
            if least < net.width:
                found[net.name] = max(least, job.technology.conductors[1].width)
    return found


def find_routes(
    layout: kdb.Layout,
    cell: kdb.Cell,
    job: RoutingJob,
    essential: tuple[str, ...] = (),
    metal: MetalInCell | None = None,
    *,
    patient: bool = True,
) -> Routes:
    """Return the routes of a job in ``cell``, which is left as it is.

    Args:
        layout: Holds the cell.
        cell: Holds the metal that was there before.
        job: What to route.
        essential: Where one of these nets has no way, no net is routed and the result has no iterations.
        metal: The metal of the cell, if it is known already.
        patient: Whether to route as many nets as possible if one has no way; see ``keepouts.RoutingFrame``.

    Raises:
        LayoutkitError: If the layout's database unit is not the technology's, a pin reaches beyond its metal, a
            label lies on none, or there is nothing to route.
        LayoutConflictError: If existing metal already joins endpoints of different nets.
    """
    technology = job.technology
    if abs(layout.dbu - technology.dbu_um) > 1e-9:
        raise LayoutkitError(
            f"the layout has a database unit of {layout.dbu:g} um, technology {technology.name} one of "
            f"{technology.dbu_um:g} um; give a layout of the technology's unit"
        )
    metal = metal or MetalInCell(cell, job)
    obstacles = _with_stated(metal.obstacles, job)
    feeds = metal.feeds_by_rings if job.by_rings else metal.feeds
    area = _area(cell, job)
    requests, overloaded = [], {}
    for net in job.nets:
        width, reason = width_for_current(job, net)
        if reason:
            overloaded[net.name] = reason
        request = _request(technology, replace(net, width=width), feeds)
        if net.current is not None:
            request = replace(request, current_ma=net.current * 1e3)
            request = request if reason else _with_shares(job, net, request)
        requests.append(request)
    requests = _equally_wide(requests)
    axis_x = job.axis_x if job.axis_x is not None else _common_axis(requests)
    apart: list[Mirrored] = []
    if axis_x is None:
        reason = "the terminals of the two nets are not mirror images about any vertical axis"
        apart = [Mirrored((n.mirror_of, n.name), exact=False, reason=reason) for n in requests if n.mirror_of]
        requests = [replace(net, mirror_of=None, symmetric=False) for net in requests]
    search = RoutingFrame(technology, area, job.layers, axis_x, equal_lengths(job.nets), essential, patient)
    result = with_modules(cell, technology, route_around(job.obstacles, requests, obstacles, search), job.modules)
    result = replace(result, mirrored=(*apart, *result.mirrored))
    state = SettledRoutes(job.frame, result, tuple(requests), obstacles)
    best = settled(job, state, search)
    result, frame, mirrored = best.result, best.frame, best.mirrored
    overloaded.update(_weak_vias(job, result, overloaded))
    unequal = tuple(unequal_metal(technology, job.obstacles, result))
    widest = max(technology.conductor(name).width for name in job.layers)
    routed = [net for net in best.requests if result.net(net.name).success]
    bound = sum(length_bound(net, max(net.width or 0, widest) // 2) for net in routed)
    return Routes(result, area, mirrored, overloaded, unequal, bound, frame)


def _equally_wide(nets: Sequence[NetRequest]) -> list[NetRequest]:
    """Return nets, those that mirror each other with the wires and vias that the one with more current needs."""
    found = {net.name: net for net in nets}
    for net in nets:
        if net.mirror_of in found:
            pair = found[net.mirror_of], net
            width = max((each.width for each in pair if each.width is not None), default=None)
            current = max((each.current_ma for each in pair if each.current_ma is not None), default=None)
            found.update({each.name: replace(each, width=width, current_ma=current) for each in pair})
    return list(found.values())


@dataclass(frozen=True)
class SettledRoutes:
    """Routes that end at a frame, with the metal that was there before and what was asked for."""

    frame: Frame | None
    result: RoutingResult
    requests: tuple[NetRequest, ...]
    obstacles: Obstacles
    mirrored: tuple[MirroredNets, ...] = ()


def settled(job: RoutingJob, state: SettledRoutes, search: RoutingFrame) -> SettledRoutes:
    """Return routes with the frame moved inwards, and with equal loads on pairs that are no mirror images there.

    Args:
        job: What was routed.
        state: The routes as the router returned them.
        search: How they were found.
    """
    small = _tightened(job, state, search, keep_lengths=False)
    first = _equally_loaded(job, small, search)
    lost = equally_long(state.result) - equally_long(small.result)  # by moving the frame
    if not lost or not any(each.lacks > 0 for each in first.mirrored):
        return first
    # there may be room to make them equal beside the modules
    large = _tightened(job, state, search, keep_lengths=True)
    if (large.frame, large.result) == (small.frame, small.result):
        return first
    second = _equally_loaded(job, large, search)
    return min(first, second, key=lambda each: sum(pair.lacks for pair in each.mirrored))


def _tightened(job: RoutingJob, state: SettledRoutes, search: RoutingFrame, *, keep_lengths: bool) -> SettledRoutes:
    """Return routes with the frame moved inwards; see ``settled``.

    Args:
        job: What was routed.
        state: The routes as the router returned them.
        search: How they were found.
        keep_lengths: Whether pairs that are equally long keep the frame from moving.
    """
    if state.frame is None:
        return state
    kept = Kept(search.axis_x, keep_lengths)
    frame, moved = tighten(job.technology, state.frame, state.result, state.obstacles, job.obstacles, kept)
    if _unequal(search.equal_lengths, moved) > _unequal(search.equal_lengths, state.result):
        return state  # stated equal lengths matter more than a small frame
    requests = tuple(_at_frame(net, state.frame, frame) for net in state.requests)
    return SettledRoutes(frame, moved, requests, with_frame(state.obstacles, state.frame, frame))


def _equally_loaded(job: RoutingJob, state: SettledRoutes, search: RoutingFrame) -> SettledRoutes:
    """Return routes with equal loads on pairs that are no mirror images, and what their pairs have in common."""
    result = _with_equal_loads(job, state, state.frame.wiring if state.frame else search.area)
    return replace(
        state, result=result, mirrored=measured_mirrors(job.technology, result, search.axis_x, state.obstacles)
    )


def _with_equal_loads(job: RoutingJob, state: SettledRoutes, area: kdb.Box) -> RoutingResult:
    """Return routes in which pairs that are no mirror images load equally; nets of stated equal lengths keep theirs."""
    result, stated = state.result, {name for group in equal_lengths(job.nets) for name in group.nets}
    pairs = replace(result, mirrored=tuple(each for each in result.mirrored if not stated.intersection(each.nets)))
    equal = equalised(job.technology, state.requests, state.obstacles, _room(job, area), pairs)
    return replace(equal, mirrored=result.mirrored)


def _room(job: RoutingJob, area: kdb.Box) -> StubRoom:
    """Return where metal may be added to routes."""
    keepouts = [(each.layer, rect_of(each.box)) for each in job.obstacles if each.kind != "metal"]
    return StubRoom(rect_of(area), job.layers, keepouts)


def axis_of(job: RoutingJob) -> int | None:
    """Return the axis of mirrored nets of a job; None if there is none. [dbu]"""
    if job.axis_x is not None:
        return job.axis_x
    return _common_axis([_request(job.technology, net, SupplyFeeds({}, frozenset())) for net in job.nets])


def metal_around(metal: MetalInCell, routes: Routes) -> tuple[Obstacles, PassiveLayers]:
    """Return the metal and cuts that a cell holds beside routes, with the nets that own them, and its passives."""
    found, frame = metal.obstacles, metal.job.frame
    if frame is not None and routes.frame is not None:
        found = with_frame(found, frame, routes.frame)
    return found, metal.passives


def loading(job: RoutingJob, routes: Routes, metal: Obstacles) -> Loading:
    """Return the routes of a job as nets that metal can be added to.

    Args:
        job: What was routed.
        routes: Its routes.
        metal: What ``metal_around`` returns of it.
    """
    feeds = SupplyFeeds({}, frozenset())
    requests = [_request(job.technology, net, feeds) for net in job.nets]
    if job.frame is not None and routes.frame is not None:
        requests = [_at_frame(net, job.frame, routes.frame) for net in requests]
    room = _room(job, routes.frame.wiring if routes.frame else routes.area)
    return Loading(job.technology, requests, _with_stated(metal, job), room, routes.result)


def _with_stated(metal: Obstacles, job: RoutingJob) -> Obstacles:
    """Return metal with the areas that a job states as metal."""
    found = {layer: list(shapes) for layer, shapes in metal.items()}
    for obstacle in job.obstacles:
        if obstacle.kind == "metal":
            found.setdefault(obstacle.layer, []).append((obstacle.box, None))
    return found


def _unequal(groups: Sequence[EqualLengths], result: RoutingResult) -> int:
    """Return how many groups of nets are not equally long."""
    lengths = [[result.net(name).wire_length for name in group.nets] for group in groups]
    return sum(max(each) - min(each) > group.tolerance * max(each) for group, each in zip(groups, lengths, strict=True))


def _at_frame(net: NetRequest, old: Frame, new: Frame) -> NetRequest:
    """Return a net with the ports of another frame as terminals."""
    moved = {(port.layer, str(box)): at for (port, box), (_, at) in zip(old.terminals, new.terminals, strict=True)}
    terminals = (replace(each, box=moved.get((each.layer, str(each.box)), each.box)) for each in net.terminals)
    return replace(net, terminals=tuple(terminals))


def draw_job(layout: kdb.Layout, cell: kdb.Cell, job: RoutingJob, routes: Routes) -> None:
    """Draw the nets that succeeded, the labels of a job and the frame where the wires end into ``cell``.

    Raises:
        LayoutkitError: If the job has a frame that the cell does not hold.
    """
    if job.frame is not None and routes.frame is not None:
        erase_frame(layout, cell, job.technology, job.frame)
        draw_frame(layout, cell, job.technology, routes.frame)
    draw_routes(layout, cell, job.technology, routes.result)
    draw_labels(layout, cell, job.technology, [(name, point.layer, (point.x, point.y)) for name, point in job.labels])


def width_for_current(job: RoutingJob, net: WantedNet) -> tuple[int | None, str]:
    """Return the width at which a net carries its current on every routing layer [dbu], and why it may not."""
    technology = job.technology
    if net.current is None:
        return net.width, ""
    widths, reason = [], ""
    for name in job.layers:
        conductor = technology.conductor(name)
        if not conductor.current_ma_um:
            return net.width, f"technology {technology.name} states no current limit of {name}"
        needed, widest = conductor.width_um(net.current * 1e3), technology.widest_usual(conductor)
        if widest is None or needed <= technology.to_um(widest):
            widths.append(technology.snap_up(round(needed / technology.dbu_um, 6)))
        else:
            most = technology.to_um(widest)
            reason = f"{net.current * 1e3:g} mA need {needed:g} um of {name}, and wires are at most {most:g} um wide"
    if not widths:
        return net.width, reason
    step = 2 * technology.grid
    return -(-max(net.width or 0, *widths) // step) * step, ""


def _with_shares(job: RoutingJob, net: WantedNet, request: NetRequest) -> NetRequest:
    """Return a net with a stated current and the gauges of its wires, which depend on their share of the current.

    Shares are the whole current, its half, its quarter and so on, as far as they exceed what usual wires carry. One
    more is the smallest current of a piece of metal for which usual wires are too weak.

    There are no shares if it is not known what the terminals draw, or if usual wires carry the whole current. In the
    second case, vias have room for their cuts, unless the net is mirrored.
    """
    technology, whole = job.technology, (net.current or 0.0) * 1e3
    um = technology.to_um(net.width or 0)
    conductors = [technology.conductor(name) for name in job.layers]
    usual = min(each.current_ma(max(um, technology.to_um(each.width))) or 0.0 for each in conductors)
    if all(point.draw is None for point in net.endpoints):
        return request
    if whole <= usual:
        room = Gauge(net.width, whole, min(each.box.height() for each in request.terminals))
        return request if net.symmetric or net.mirror_of else replace(request, own_gauge=room)
    capped = (each if each.draw is None else replace(each, draw=each.draw.at_most(whole)) for each in request.terminals)
    request = landed(technology, replace(request, terminals=tuple(capped)))
    heavy, parts = heavy_pieces(request, usual), [whole]
    lowest = min((piece.height for piece in heavy), default=0)
    least = min((piece.draw for piece in heavy), default=whole)
    while len(parts) < MOST_SHARES - 1 and parts[-1] / 2 > usual and parts[-1] / 2 > least:
        parts.append(parts[-1] / 2)
    parts += [least] if least < whole else []  # a wire of the next share may be higher than the rail it leads to
    shares = [(part, Gauge(net.width, part, lowest)) for part in parts]
    return replace(
        request,
        shares=(*([(usual, Gauge(net.width))] if usual > 0 else ()), *reversed(shares)),
        own_gauge=None if net.symmetric or net.mirror_of else shares[0][1],
    )


def _weak_vias(job: RoutingJob, result: RoutingResult, known: Mapping[str, str]) -> dict[str, str]:
    """Return the nets with a via that may not carry the net's whole current, and why."""
    cuts = {cut.name: cut for cut in job.technology.cuts}
    found = {}
    for net in job.nets:
        if net.current is None or net.name in known:
            continue
        for via in result.net(net.name).vias:
            limit = cuts[via.cut].current_ma
            if limit is None:
                found[net.name] = f"technology {job.technology.name} states no current limit of {via.cut}"
            elif limit * via.columns * via.rows < net.current * 1e3:
                found[net.name] = (
                    f"{via.columns * via.rows} cuts of {via.cut} carry {limit * via.columns * via.rows:g} mA, "
                    f"the net up to {net.current * 1e3:g} mA"
                )
    return found


def _common_axis(requests: Sequence[NetRequest]) -> int | None:
    """Return the axis of the first two nets whose terminals are mirror images of each other. [dbu]"""
    nets = {net.name: net for net in requests}
    axes = (axis_between(nets[net.mirror_of], net) for net in requests if net.mirror_of is not None)
    return next((axis for axis in axes if axis is not None), None)


def _area(cell: kdb.Cell, job: RoutingJob) -> kdb.Box:
    """Return where metal may be drawn. [dbu]"""
    import klayout.db as kdb

    if job.area is not None:
        return job.area
    points = kdb.Box()
    for net in job.nets:
        for point in net.endpoints:
            points += point.box
    margin = MARGIN_PITCHES * make_stack(job.technology, job.layers, []).pitch()
    area = (points + cell.bbox()).enlarged(margin, margin)
    if area.empty():
        raise LayoutkitError("nets is empty and so is the layout: there is nothing to route")
    return area


def _request(technology: Technology, net: WantedNet, feeds: SupplyFeeds) -> NetRequest:
    terminals = []
    for point in net.endpoints:
        if (net.name, point) in feeds.left_out:
            continue
        half = -(-technology.conductor(point.layer).width // (2 * technology.grid)) * technology.grid
        box = point.box if point.pin else point.box.enlarged(half, half)
        terminals.append(Terminal(point.layer, box, feeds.groups.get((net.name, point), ""), point.draw))
    return NetRequest(
        net.name,
        tuple(terminals),
        net.width,
        net.priority,
        net.mirror_of,
        net.symmetric,
        net.apart_from,
        net.shield,
        least_cuts=net.least_cuts,
        avoid_layers=net.avoid_layers,
        hop_layer=net.hop_layer,
    )
