"""From a design to placed modules: drawn, placed, wells merged, ports labelled; no wires yet."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from math import inf
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.errors import LayoutkitError, listed
from layoutkit.flow.existing_metal import MetalInCell, is_resistive
from layoutkit.flow.groups import Group
from layoutkit.flow.hierarchy import InstanceGroup
from layoutkit.flow.instances import Inside, Well, in_layout, inside_of, members_of, name_devices
from layoutkit.flow.joined_wells import close_wells, join_covers, join_deep_wells, join_wells, room_for_wells
from layoutkit.flow.kept_modules import chosen_shapes, compared_places, kept_modules, module_blocks
from layoutkit.flow.modules import ModuleDrawings
from layoutkit.flow.net_wishes import hops_over_plates
from layoutkit.flow.overlays import Below, covers, critical_devices, lay_over, outline_area
from layoutkit.flow.pair_loads import completed, with_pairs_apart
from layoutkit.flow.passive_modules import PassiveGroup
from layoutkit.flow.placement_outcomes import check_modules, place_outcomes, with_relations
from layoutkit.flow.ports import ports_data, with_port_places, with_ports
from layoutkit.flow.rings import draw_rings, transformation
from layoutkit.flow.room import MOST_TRIES, PlacementTry, Room, first_room, held_inside, more_room, uncrowded
from layoutkit.flow.routing import find_routes, narrower_supplies, placed_job
from layoutkit.flow.symmetric_modules import (
    MOST_AREA,
    axis_outcomes,
    least_area,
    matched_sets,
    matching_outcomes,
    plan_symmetry,
    whole_arrangements,
)
from layoutkit.place import Placed, PlacementOptions, place_blocks
from layoutkit.place.blocks import Clearances
from layoutkit.place.problem import between_ports
from layoutkit.place.sliding import slide_into_line
from layoutkit.route.negotiation import NOT_TRIED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from layoutkit.circuit.constraints import Outcome
    from layoutkit.draw.module import Module
    from layoutkit.flow.design import Design, LayoutRequest
    from layoutkit.flow.instances import FinishedCell
    from layoutkit.flow.kept_modules import KeptPlaces
    from layoutkit.flow.modules import Drawn
    from layoutkit.flow.overlays import Overlay
    from layoutkit.flow.port_frame import Frame
    from layoutkit.flow.routing_job import Routes, RoutingJob
    from layoutkit.flow.symmetric_modules import SymmetryPlan
    from layoutkit.place import Block, Placement
    from layoutkit.place.kept_places import EarlierPlaces
    from layoutkit.technology import Technology

MOST_FOR_WELLS = 4
"""Placements until wells of one net that cannot be joined keep their space."""


@dataclass(frozen=True)
class PlacedModules:
    """A cell that holds the modules of a design, each in its place.

    Attributes:
        technology: The process.
        cell: The top cell.
        layout: Kept referenced: KLayout's cells do not outlive their layout.
        drawn: The modules, in the order of the design's groups.
        placement: Places, symmetry islands and rings.
        trans: Module name to its place in the cell.
        outcomes: What became of the constraints on devices.
        rings: The rings that several modules share, each as a module without devices.
        frame: Boundary, ports and rails; None before they are drawn.
        overlays: Capacitors over other modules.
        wells: The wells, those inside of instances included.
        finished: The cells of instances, by name.
    """

    technology: Technology
    cell: kdb.Cell
    layout: kdb.Layout
    drawn: tuple[Drawn, ...]
    placement: Placement
    trans: Mapping[str, kdb.Trans]
    outcomes: tuple[Outcome, ...] = ()
    rings: tuple[Module, ...] = ()
    frame: Frame | None = None
    overlays: tuple[Overlay, ...] = ()
    wells: tuple[Well, ...] = ()
    finished: Mapping[str, FinishedCell] = field(default_factory=dict)

    @property
    def modules(self) -> dict[str, Module]:
        """The modules and the rings around them by name, sorted."""
        modules = (*(item.module for item in self.drawn), *self.rings)
        return {module.name: module for module in sorted(modules, key=lambda m: m.name)}

    @property
    def inside(self) -> tuple[Inside, ...]:
        """All modules and rings, those inside of instances in their stead."""
        found: list[Inside] = []
        for item in self.drawn:
            trans = self.trans[item.module.name]
            members = members_of(item, trans)
            for member, place in members:
                found += inside_of(member, self.finished[member.cell], place)
            if not members:
                found.append(Inside(item.module, trans, item))
        return (*found, *(Inside(ring, self.trans[ring.name], None) for ring in self.rings))

    @property
    def flat(self) -> PlacedModules:
        """The same with the modules inside of instances in the place of these."""
        inside = self.inside
        return replace(
            self,
            drawn=tuple(each.item for each in inside if each.item is not None),
            rings=tuple(each.module for each in inside if each.item is None),
            trans={each.module.name: each.trans for each in inside},
        )

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of what is drawn, those inside of instances included."""
        return frozenset().union(*(item.holds or {item.kind} for item in self.drawn))

    def place_of(self, module: Module, box: kdb.Box) -> kdb.Box:
        """Return where a box of a module's own coordinates lies. [dbu]"""
        return box.transformed(self.trans[module.name])


class NoRoomError(LayoutkitError):
    """Modules that changed do not fit beside those that keep their places."""


@dataclass(frozen=True)
class TriedPlacement:
    """A placement with the routing it was chosen for.

    Attributes:
        placed: The modules in their places, ports labelled.
        job: How to route them.
        routes: The routes that were found; None before they are tried.
        room: Room for wires between and around the modules.
        tries: The placements that were tried, in order.
        warnings: What was decided or given up, in words.
        refused: Paths of instances whose cells were not shared in the end, and why.
        flattened: Why no cell is shared although subcircuits repeat; empty where cells are shared or none repeat.
        kept: What became of the places of an earlier build; None where none were to be kept.
    """

    placed: PlacedModules
    job: RoutingJob
    routes: Routes | None
    room: Room
    warnings: tuple[str, ...]
    tries: tuple[PlacementTry, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    flattened: str = ""
    kept: KeptPlaces | None = None

    @property
    def attempts(self) -> int:
        """How many placements were tried."""
        return max(1, len(self.tries))


def find_placement(design: Design, request: LayoutRequest) -> TriedPlacement:
    """Return the first placement in which every net is routed, else the one in which the fewest nets fail.

    After a try in which nets fail, or wires are too weak for their currents, there is more room. So there is, once,
    where only the nets of pairs stay unequal. ``request.row_gap`` is the room of the first try; more is given, with a
    warning, only where nets fail. Without a gap and an outline, the first try has more room where wires would crowd the
    modules. There is no third try where metal inside of shared cells left the same net no way twice.

    Raises:
        LayoutkitError: If a module cannot be drawn, or constraints contradict one another.
    """
    technology = design.technology
    if design.earlier is not None:
        return _kept_placement(design, design.earlier, request)
    room = first = first_room(technology, request.row_gap)
    drawings = ModuleDrawings(design)
    found: list[tuple[tuple[int, ...], TriedPlacement, Routes]] = []
    tries: list[PlacementTry] = []
    while len(tries) < MOST_TRIES:
        placement = _placement(design, request, room, drawings)
        if not tries and request.row_gap is None and request.outline is None:
            room = uncrowded(first, placement.placed, placement.job)
            placement = placement if room == first else _placement(design, request, room, drawings)
        metal = MetalInCell(placement.placed.cell, placement.job)
        tried, wired = routed_placement(placement, metal)
        routes = wired if wired.unequal else _balanced(tried, wired, metal)  # another try comes where wires are unequal
        # pairs are equal whose wires are, or whose whole nets are now
        lacks = min(_lacks(tried, wired), _lacks(tried, routes))
        better = all(lacks[:-1] < earlier[:-1] for earlier, *_ in found)
        found.append((lacks, tried, routes))
        failed = tuple(net.name for net in routes.result.failed if net.reason != NOT_TRIED)
        tries.append(PlacementTry(room, failed, tuple(sorted({wire.net for wire in routes.unequal}))))
        sound = sum(not any(each[:-2]) for each, *_ in found)  # placements in which at most pairs are unequal
        short = bool(failed) or (request.row_gap is None and (better or lacks[1] > 0))
        if not any(lacks[:-1]) or sound > 1 or not short:
            break
        if len(found) > 1 and held_inside(tried.placed, routes) & held_inside(found[-2][1].placed, found[-2][2]):
            break  # more room had not helped: other cells, or none that are shared, may
        room = more_room(room, tried.placed, routes)
    _, best, routes = min(found, key=lambda each: each[0])
    if not routes.result.iterations:  # no placement lets every net past its modules; the last one has the most room
        best, routes = routed_placement(
            found[-1][1], MetalInCell(found[-1][1].placed.cell, found[-1][1].job), patient=True
        )
    metal = MetalInCell(best.placed.cell, best.job)
    best, routes = _with_pairs_apart(best, _balanced(best, routes, metal) if routes.unequal else routes, metal)
    warnings = best.warnings
    if routes.result.failed:
        names = listed(net.name for net in routes.result.failed)
        text = f"no way was found for {names} in {len(tries)} placements, each with more room where nets had failed"
        warnings = (*warnings, f"{text}; try a larger row_gap or another seed")
    elif best.room != first and request.row_gap is not None:
        names, gap = listed(tries[0].failed), technology.to_um(first.between)
        text = f"modules have more room than the row_gap of {gap:g} um, with which no way was found for {names}"
        warnings = (*warnings, text)
    return replace(best, routes=routes, tries=tuple(tries), warnings=warnings)


def _kept_placement(design: Design, earlier: EarlierPlaces, request: LayoutRequest) -> TriedPlacement:
    """Return a placement in which modules keep their earlier places, a new one where that leaves nets without a way."""
    try:
        placement = _placement(design, request, Room(earlier.gap, {}), ModuleDrawings(design))
        metal = MetalInCell(placement.placed.cell, placement.job)
        tried, routes = routed_placement(placement, metal)
        tried, routes = _with_pairs_apart(tried, _balanced(tried, routes, metal), metal)
        failed = tuple(net.name for net in routes.result.failed)
        tried = replace(tried, routes=routes, tries=(PlacementTry(tried.room, failed, ()),))
        reason = f"no way was found for {', '.join(failed)} with the earlier places" if failed else ""
    except NoRoomError:
        reason = "the modules that changed do not fit beside the others"
    if reason:
        tried = find_placement(replace(design, earlier=None), request)
    kept = compared_places(earlier, tried.placed, reason)
    text = kept.text(design.technology)
    return replace(tried, kept=kept, warnings=(*tried.warnings, *([text] if text else [])))


def _balanced(tried: TriedPlacement, routes: Routes, metal: MetalInCell) -> Routes:
    """Return routes with pairs made as equal as there is room for; as they are where nets fail."""
    return routes if routes.result.failed else completed(metal, tried.job, routes)


def _with_pairs_apart(tried: TriedPlacement, routes: Routes, metal: MetalInCell) -> tuple[TriedPlacement, Routes]:
    """Return a placement and its routes, in which pairs that load unequally keep apart from signals if that helps."""
    job, apart = with_pairs_apart(metal, tried.job, routes, lambda each: _lacks(tried, each)[:-1])
    return replace(tried, job=job), apart


def _lacks(tried: TriedPlacement, routes: Routes) -> tuple[int, ...]:
    """Return what a try lacks, and its area: [dbu2]

    Nets, nets that carry their currents, wires that are equal over matched gates, and pairs of equal nets. Pairs on
    which different devices hang do not count: no placement makes them equal.
    """
    pairs = sum(pair.lacks > 0 and pair.alike for pair in routes.mirrored)
    weak = sum(net.weak for net in routes.result.nets)
    return len(routes.result.failed), weak, len(routes.unequal), pairs, _area(tried.placed.placement)


def routed_placement(
    placement: TriedPlacement, metal: MetalInCell, *, patient: bool = False
) -> tuple[TriedPlacement, Routes]:
    """Return a placement with its routes.

    Supplies that find no way, or none around matched gates, are wired as narrowly as their rails. If nets still find no
    way, supplies may reach devices through rings of a resistive conductor.

    Args:
        placement: The placement.
        metal: Its metal.
        patient: Whether to route as many nets as possible if one has no way in this placement.
    """
    placed, job = placement.placed, placement.job
    supplies = tuple(narrower_supplies(job, [net.name for net in job.nets]))
    narrow, widths = None, dict[str, int]()
    for essential in (supplies, ()):  # other nets wait until each wide supply has a way past the modules
        routes = find_routes(placed.layout, placed.cell, job, essential, metal, patient=patient)
        blocked = [net.name for net in routes.result.failed if net.reason != NOT_TRIED]
        before, widths = widths, narrower_supplies(job, [*blocked, *(each.net for each in routes.unequal)])
        if widths != before:  # the same widths give the same routes
            narrow = _with_narrow_supplies(placement, metal, widths, patient=patient) if widths else None
        if routes.result.iterations or (narrow is not None and not any(_faults(narrow[1]))):
            break
    found = narrow if narrow is not None and _faults(narrow[1]) < _faults(routes) else (placement, routes)
    if not found[1].result.failed or not is_resistive(placed.technology):
        return found
    return _supplied_by_rings(found, metal, patient=patient)


def _supplied_by_rings(
    found: tuple[TriedPlacement, Routes], metal: MetalInCell, *, patient: bool
) -> tuple[TriedPlacement, Routes]:
    """Return a placement with its routes; supplies may end at rings if fewer nets fail then."""
    if metal.feeds_by_rings.joins_as(metal.feeds):
        return found  # the same routes
    placement, job = found[0], replace(found[0].job, by_rings=True)
    routes = find_routes(placement.placed.layout, placement.placed.cell, job, (), metal, patient=patient)
    if len(routes.result.failed) >= len(found[1].result.failed):
        return found
    lowest = placement.placed.technology.conductors[0].name
    text = f"supplies reach some devices only through {lowest} of tap rings, which is resistive: no other way was found"
    return replace(placement, job=job, warnings=(*placement.warnings, text)), routes


def _faults(routes: Routes) -> tuple[int, int, int]:
    """Return how many nets have no route, how many of them found no way, and how many wires lie over matched gates."""
    failed = routes.result.failed
    return len(failed), sum(net.reason != NOT_TRIED for net in failed), len(routes.unequal)


def _with_narrow_supplies(
    placement: TriedPlacement, metal: MetalInCell, narrow: Mapping[str, int], *, patient: bool
) -> tuple[TriedPlacement, Routes]:
    """Return a placement with its routes where supplies have the widths in ``narrow``, those of their rails. [dbu]"""
    placed, job = placement.placed, placement.job
    job = replace(job, nets=tuple(replace(net, width=narrow.get(net.name, net.width)) for net in job.nets))
    widths = listed(f"{name} {placed.technology.to_um(width):g} um" for name, width in sorted(narrow.items()))
    text = f"wires of supplies are as narrow as the rails they join, where wider ones found no way: {widths}"
    routes = find_routes(placed.layout, placed.cell, job, (), metal, patient=patient)
    return replace(placement, job=job, warnings=(*placement.warnings, text)), routes


def _placement(design: Design, request: LayoutRequest, room: Room, drawings: ModuleDrawings) -> TriedPlacement:
    technology, outline = design.technology, request.outline_um
    options = PlacementOptions(
        gap_x=room.between,
        gap_y=room.between,
        room=room.around,
        outline=None if outline is None else (technology.to_dbu(outline[0]), technology.to_dbu(outline[1])),
        seed=request.seed,
    )
    if request.aspect is not None:
        options = replace(options, max_aspect=request.aspect)
    placed = place_modules(design, options, cover=room.cover, drawings=drawings)
    max_aspect = options.max_aspect if outline is None else None
    placed, missing = (placed, []) if design.is_cell else with_ports(placed, design, room, max_aspect)
    warnings = dict.fromkeys((*(text for item in placed.drawn for text in item.module.warnings), *missing))
    return TriedPlacement(placed, placed_job(placed, design), None, room, tuple(warnings))


def place_modules(
    design: Design, options: PlacementOptions, *, cover: bool = True, drawings: ModuleDrawings | None = None
) -> PlacedModules:
    """Return the modules of ``design``, drawn into a new layout and placed.

    Where wells of one net stay too close, their modules are placed anew with more room around them.

    Args:
        design: What to draw.
        options: How to place.
        cover: Whether plate capacitors may lie over other modules.
        drawings: The modules of the design, if they are drawn already.

    Raises:
        LayoutkitError: If a module cannot be drawn.
    """
    drawings = drawings or ModuleDrawings(design)
    found = [_placed_once(design, options, drawings, cover=cover)]
    while close_wells(found[-1]) and design.earlier is None and len(found) < MOST_FOR_WELLS:  # earlier places stay
        options = replace(options, room=room_for_wells(found[-1], options.room))
        found.append(_placed_once(design, options, drawings, cover=cover))
    return min(found, key=lambda placed: len(close_wells(placed)))


def _placed_once(design: Design, options: PlacementOptions, drawings: ModuleDrawings, *, cover: bool) -> PlacedModules:
    """Return what ``place_modules`` does, placed once."""
    technology = design.technology
    layout, every = drawings.copy()
    owner = {device: item.module.name for item in every for device in item.module.devices}
    check_modules(design.constraints, owner)
    options = with_relations(technology, options, design.constraints, owner)
    if not design.is_cell:
        options = with_port_places(options, design)
    arranged = _arranged(layout, design, every, options, cover=cover)
    plan, blocks, placement = arranged.plan, arranged.blocks, arranged.placement
    drawn = chosen_shapes(arranged.drawn, placement)
    owner = {device: item.module.name for item in drawn for device in item.module.devices}
    cell = layout.create_cell(_cell_name(design.circuit.name, layout))
    trans = {name: transformation(place) for name, place in placement.placed.items()}
    shapes = {block.name: placement.placed[block.name].shape(block) for block in blocks}
    boxes = {name: placement.placed[name].rectangle(shape.box) for name, shape in shapes.items()}
    clearances = Clearances(technology)
    outcomes = (
        *axis_outcomes(plan.outcomes, drawn, placement, technology),
        *matching_outcomes(drawn, design),
        *place_outcomes(
            technology,
            design.constraints,
            owner,
            boxes,
            lambda left, right: clearances.beside(shapes[left], shapes[right]),
            options.room_between,
        ),
    )
    rings = draw_rings(layout, technology, {item.module.name: item for item in drawn}, blocks, placement)
    trans |= {ring.module.name: kdb.Trans() for ring in rings}
    modules = tuple(ring.module for ring in rings)
    finished = {name: in_layout(each, layout) for name, each in design.finished.items() if layout.has_cell(name)}
    placed = PlacedModules(
        technology,
        cell,
        layout,
        tuple(drawn),
        placement,
        trans,
        outcomes,
        modules,
        overlays=arranged.overlays,
        finished=finished,
    )
    for name, module in placed.modules.items():
        cell.insert(kdb.CellInstArray(module.cell.cell_index(), trans[name]))
    for item in drawn:
        for member, place in members_of(item, trans[item.module.name]):
            name_devices(cell, technology, member, design.finished[member.cell], place)
    above = {overlay.name for overlay in arranged.overlays}  # in metal only: wells may meet below
    here = [(shape, placement.placed[name]) for name, shape in shapes.items() if name not in above]
    here += [(ring.block, Placed(ring.block.name, 0, 0)) for ring in rings]
    wells = join_wells(technology, cell, here, _wells_of_instances(placed))
    join_deep_wells(technology, cell, here)
    join_covers(technology, cell)
    return replace(placed, wells=wells)


@dataclass(frozen=True)
class Arranged:
    """An arrangement of modules with its placement.

    Attributes:
        drawn: The modules.
        plan: How they are symmetric.
        blocks: What placement knows of them.
        placement: Where they lie.
        overlays: Capacitors over other modules.
    """

    drawn: tuple[Drawn, ...]
    plan: SymmetryPlan
    blocks: list[Block]
    placement: Placement
    overlays: tuple[Overlay, ...]

    @property
    def aspect(self) -> float:
        """The longer side over the shorter one, with all rings."""
        box = self._box()
        return max(box.width(), box.height()) / min(box.width(), box.height())

    def _box(self) -> kdb.Box:
        box = kdb.Box()
        for block in self.blocks:
            place = self.placement.placed[block.name]
            shape = place.shape(block)
            box += kdb.Box(*place.rectangle(shape.ring.outside.box if shape.ring else shape.box))
        return box

    def area(self, options: PlacementOptions) -> int:
        """Return the area with all rings, and with a frame that is symmetric where ports mirror each other.

        It is that of an outline of an allowed ratio; more where it exceeds the outline.
        """
        box = self._box()
        width, height = options.outline or (box.width(), box.height())
        fits = box.width() <= width and box.height() <= height
        by_name, axis = {block.name: block for block in self.blocks}, self.placement.axis_x
        main = [island for island in self.placement.islands if island.axis_x == axis]
        on_axis = [by_name[name] for island in main for name in island.members]
        if any(between_ports(block, by_name.get(block.partner or ""), options) for block in on_axis):
            box += box.transformed(kdb.Trans(2, True, 2 * axis, 0))
        return outline_area(box, options.max_aspect if options.outline is None else inf) * (1 if fits else 1000)


def _arranged(
    layout: kdb.Layout, design: Design, drawn: Sequence[Drawn], options: PlacementOptions, *, cover: bool
) -> Arranged:
    """Return the placement that is symmetric as a whole if that takes little area, else the smallest one.

    Symmetric arrangements that cannot be small enough are not searched. Cells of modules that are not used are deleted.
    """
    plan = plan_symmetry(drawn, design)
    whole = whole_arrangements(layout, design, drawn, plan)
    searched: dict[bytes, Any] = {}  # arrangements are often equal but for the names of modules
    place = partial(_in_line, design.technology, options=options, searched=searched)
    max_aspect = options.max_aspect if options.outline is None else inf

    def arranged(modules: tuple[Drawn, ...], symmetry: SymmetryPlan, blocks: list[Block]) -> Arranged:
        return Arranged(modules, symmetry, blocks, *_placed(modules, design, blocks, options, place, cover=cover))

    best = arranged(tuple(drawn), plan, module_blocks(drawn, design.technology, plan))
    most = MOST_AREA * best.area(options) if whole else 0
    found = []
    for modules, symmetry in whole:
        blocks = module_blocks(modules, design.technology, symmetry)
        above = {each.name for each in covers(modules, design.technology, design.constraints)} if cover else set()
        if least_area([block for block in blocks if block.name not in above], max_aspect) <= most:
            found.append(arranged(modules, symmetry, blocks))
    narrow = [each for each in found if each.aspect <= max(best.aspect, options.max_aspect)]
    if narrow:
        smallest = min(narrow, key=lambda each: each.area(options))
        if smallest.area(options) <= most:
            best = smallest
    kept = {id(item) for item in best.drawn}
    every = {id(item): item for modules in (drawn, *(modules for modules, _ in whole)) for item in modules}
    for item in (item for number, item in every.items() if number not in kept):
        for module in item.shapes:
            layout.prune_cell(module.cell.cell_index(), -1)
    return best


def _placed(
    drawn: Sequence[Drawn],
    design: Design,
    blocks: Sequence[Block],
    options: PlacementOptions,
    place: Callable[[Sequence[Block]], Placement],
    *,
    cover: bool,
) -> tuple[Placement, tuple[Overlay, ...]]:
    """Return a placement, with capacitors over other modules where that makes the layout smaller.

    Raises:
        NoRoomError: If modules are to keep earlier places, and there is no room for those that changed.
    """
    technology = design.technology
    if design.earlier is not None:
        found_places = kept_modules(technology, drawn, blocks, design.earlier)
        if found_places is None:
            raise NoRoomError("modules that changed do not fit beside those that keep their places")
        return found_places
    found = covers(drawn, technology, design.constraints) if cover else []
    above = {each.name for each in found}
    below = [block for block in blocks if block.name not in above]
    if not found or not below:
        return place(blocks), ()
    hops = hops_over_plates(technology, design.circuit)  # from gates up to above the plates
    critical = critical_devices(design.constraints)
    critical |= {each.id for each in design.circuit.devices if each.is_mos and each.terminals["g"] in hops}
    closed = {
        item.module.name
        for item in drawn
        if critical & set(item.module.devices)
        or isinstance(item.group, InstanceGroup)  # which may hold matched ones
        or (isinstance(item.group, PassiveGroup) and item.group.shares_centroid)
    }
    placement = place(below)
    named = kdb.Region()
    for item in drawn:
        if item.module.name not in above:
            spot = placement.placed[item.module.name]
            for gate in item.shapes[spot.variant].gates:
                named.insert(gate.box.transformed(transformation(spot)))
    laid = lay_over(
        technology, found, blocks, placement, Below(frozenset(closed), named, options.max_aspect), options.gap_y
    )
    size = outline_area(kdb.Box(*laid[0].box), options.max_aspect)
    if size <= sum(block.width * block.height for block in blocks):
        return laid  # no placement beside each other is smaller
    beside = place(blocks)
    return laid if size < outline_area(kdb.Box(*beside.box), options.max_aspect) else (beside, ())


def _in_line(
    technology: Technology, blocks: Sequence[Block], options: PlacementOptions, searched: dict[bytes, Any]
) -> Placement:
    """Return a placement in which blocks that are to align do so exactly, where they can slide there."""
    return slide_into_line(technology, place_blocks(technology, blocks, options, searched=searched), blocks, options)


def _area(placement: Placement) -> int:
    box = placement.box
    return (box.right - box.left) * (box.top - box.bottom)


def _cell_name(name: str, layout: kdb.Layout) -> str:
    """Return a name for the top cell that GDS can hold and no module has."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "_$") else "_" for c in name)[:60] or "top"
    while layout.has_cell(safe):
        safe += "_top"
    return safe


def _wells_of_instances(placed: PlacedModules) -> list[Well]:
    """Return the wells inside of instances, in the names and coordinates of what contains these."""
    return [
        Well(well.layer, member.nets[well.net], well.oxide, well.shapes.transformed(place))
        for item in placed.drawn
        for member, place in members_of(item, placed.trans[item.module.name])
        for well in placed.finished[member.cell].wells
    ]


def matched_pairs(placed: PlacedModules) -> list[tuple[str, str]]:
    """Return every two transistors that are drawn to match."""
    return [
        pair
        for item in placed.drawn
        if item.group.type != "single" and isinstance(item.group, Group)
        for devices in matched_sets(item.group)
        for pair in combinations(devices, 2)
    ]


_UNFIT, _OBLONG = "the modules need", "the layout has an aspect of"


def shape_warnings(
    placed: PlacedModules, cell: kdb.Cell, request: LayoutRequest, compared: Sequence[Mapping[str, Any]] = ()
) -> list[str]:
    """Return whether the modules and rings exceed the outline, or ``cell`` the aspect, that is stated or usual.

    Of the tries that were ``compared``, the least aspect is stated.
    """
    core, to_um = _core(placed), placed.technology.to_um
    width, height = to_um(core.width()), to_um(core.height())
    found = []
    if request.outline_um is not None and (width > request.outline_um[0] or height > request.outline_um[1]):
        found.append(f"{_UNFIT} {width:g} x {height:g} um and do not fit into the outline {request.outline} um")
    aspect, most = _aspect(cell.bbox()), request.aspect or PlacementOptions().max_aspect
    if request.outline_um is None and aspect > 1.01 * most:  # on a grid no layout has it exactly
        over = [each["over_aspect"] for each in compared if "over_aspect" in each]
        least = f"; the least of {len(compared)} tries has {min(over) * most:.2f}" if over and request.aspect else ""
        found.append(f"{_OBLONG} {aspect:.2f}, more than {most:g}{least}")
    advice = "more effort" if compared else "effort 8, which compares 8 arrangements"
    return [f"{text}; try another seed, a larger one, or {advice}" for text in found]


def wishes_first(warnings: Sequence[str]) -> list[str]:
    """Return warnings with those of ``shape_warnings`` first."""
    return sorted(warnings, key=lambda text: not text.startswith((_UNFIT, _OBLONG)))


def _aspect(box: kdb.Box) -> float:
    return max(box.width(), box.height()) / max(1, min(box.width(), box.height()))


def _core(placed: PlacedModules) -> kdb.Box:
    """Return the box of all modules and rings, without wires. [dbu]"""
    core = kdb.Box()
    for module in placed.modules.values():
        core += placed.place_of(module, module.bbox)
    return core


def _bands(placed: PlacedModules, ring: Module) -> kdb.Region:
    """Return the bands of a ring in the cell, from its outer edge to the inner edge of its metal. [dbu]"""
    metal = placed.technology.layer(placed.layout, placed.technology.conductors[0].name)
    inside = kdb.Region(ring.cell.begin_shapes_rec(metal)).merged().holes()
    return (kdb.Region(ring.bbox) - inside).transformed(placed.trans[ring.name])


def placement_data(tried: TriedPlacement, cell: kdb.Cell) -> dict[str, Any]:
    """Return size, islands, rings and tries as JSON data; size and aspect are those of ``cell`` as drawn. [um]

    ``utilisation`` is the area of the modules, and of the bands of the rings around several of them, over that of the
    box around ``cell``, with rails, ports and wires; ``core_utilisation`` that of the modules alone over that of the
    box of all modules and rings. A module counts with its own ring and all inside of that.
    """
    placed = tried.placed
    box, to_um = cell.bbox(), placed.technology.to_um
    core, outlines = _core(placed), kdb.Region()
    for item in placed.drawn:
        outlines.insert(placed.place_of(item.module, item.module.bbox))
    for ring in placed.rings:
        outlines += _bands(placed, ring)
    modules = sum(item.module.bbox.area() for item in placed.drawn)
    return {
        "width": to_um(box.width()),
        "height": to_um(box.height()),
        "aspect": round(_aspect(box), 3),
        "utilisation": round(outlines.merged().area() / max(1, box.area()), 3),
        "core_utilisation": round(modules / max(1, core.area()), 3),
        "axis_x": to_um(placed.placement.axis_x),
        "islands": [
            {"axis_x": to_um(island.axis_x), "modules": list(island.members)} for island in placed.placement.islands
        ],
        "rings": [list(names) for names in placed.placement.rings],
        "overlays": [each.to_json() for each in placed.overlays],
        "row_gap": to_um(tried.room.between),
        "attempts": tried.attempts,
        "most_attempts": MOST_TRIES,
        "ports": ports_data(placed.frame, placed.technology) if placed.frame else [],
        "tries": [each.to_json(placed.technology) for each in tried.tries],
        **({"earlier_places": tried.kept.to_json(placed.technology)} if tried.kept else {}),
    }
