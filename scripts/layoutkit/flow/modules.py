"""Draw the groups: a single transistor folded to a compact shape, a matched group in the pattern that it asks for."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple, dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb

from layoutkit.circuit.circuit import Device
from layoutkit.circuit.ranked_names import named_after
from layoutkit.circuit.roles import find_roles
from layoutkit.circuit.symmetry import is_tied, off_end
from layoutkit.draw.deep_well import isolate
from layoutkit.draw.group import GroupSpec, MirrorSpec, draw_mirror, drawn_plan, group_plans, mirror_plan
from layoutkit.draw.mos import GuardDummy, MosSpec, Transistor, draw_mos, row_choices
from layoutkit.draw.ring import FULL_RING, RingStyle
from layoutkit.errors import FarFromTapsError, GeometryError, listed
from layoutkit.flow.current_loads import SHAPES, carrying_modules, device_currents
from layoutkit.flow.deep_wells import KIND
from layoutkit.flow.dummies import EndDummies, chosen_dummies
from layoutkit.flow.groups import PARALLEL, Group, size, transistors_of
from layoutkit.flow.hierarchy import SUBCIRCUIT, InstanceGroup
from layoutkit.flow.instances import array_modules, instance_module, renamed_module
from layoutkit.flow.passive_modules import ARRAYS, PassiveGroup, draw_passives

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.draw.deep_well import DeepWellNets
    from layoutkit.draw.group_plan import GroupPlan
    from layoutkit.draw.module import DrawnDummy, Module
    from layoutkit.flow.design import Design
    from layoutkit.flow.instances import FinishedCell
    from layoutkit.technology import Technology

_SHARED = RingStyle("later")
REACH_OF_SHARED = 0.9
"""A module shares a ring if it is at most this part of twice the tap distance high; the rest leads to the taps."""


@dataclass(frozen=True)
class Drawn:
    """A group with the module drawn for it.

    Attributes:
        group: What was drawn.
        module: The drawing.
        ringed: Whether it has taps of its own; modules of transistors without share a ring.
        others: The group in other shapes, as good as the first one; placement chooses among them.
        holds: Kinds of the blocks inside of an instance of a cell.
        dummies: How many dummies each end of the rows of transistors has, and why; None for other groups.
    """

    group: Group | PassiveGroup | InstanceGroup
    module: Module
    ringed: bool = True
    others: tuple[Module, ...] = ()
    holds: frozenset[str] = frozenset()
    dummies: EndDummies | None = None

    @property
    def shapes(self) -> tuple[Module, ...]:
        """The drawing in each of its shapes."""
        return (self.module, *self.others)

    @property
    def kind(self) -> str:
        """The kind of its block: wells of two kinds keep apart."""
        if isinstance(self.group, InstanceGroup):
            return f"{SUBCIRCUIT} {self.group.name}"
        kind = self.group.spec.placed_with
        return kind if self.deep_well is None else f"{kind} {KIND}"

    @property
    def flavour(self) -> str:
        """The technology's name of its devices; empty for an instance of a cell, which may hold several."""
        return "" if isinstance(self.group, InstanceGroup) else self.group.spec.name

    @property
    def deep_well(self) -> DeepWellNets | None:
        """Nets of the well of its own; None if it has none."""
        return None if isinstance(self.group, InstanceGroup) else self.group.deep_well

    @property
    def well_net(self) -> str:
        """What blocks that share a well have in common: the net; a ring, cell or long drain keeps its well apart."""
        spec = self.group.spec if isinstance(self.group, PassiveGroup) else None
        extended = isinstance(self.group, Group) and self.group.spec.drain_marker
        if extended or (spec is not None and (spec.cell is not None or spec.well or spec.accumulates)):
            return f"{self.group.bulk_net} in {self.module.name}"
        if self.deep_well is None:
            return self.group.bulk_net
        if self.deep_well.ringed or self.kind.startswith("resistor"):
            return f"{self.deep_well.well} in {self.module.name}"
        return self.deep_well.well


def changed_fingers(drawn: Sequence[Drawn]) -> list[str]:
    """Return which transistors are drawn with other fingers than the netlist states, and why, in words."""
    alike: dict[tuple[str, str], list[str]] = {}
    for item in drawn:
        if not isinstance(item.group, Group):
            continue
        fingers = Counter(gate.device for gate in item.module.gates)
        for device in (*item.group.devices, *item.group.guards):
            stated, found, total_um = device.nf * device.m, fingers[device.id], device.w * device.m * 1e6
            if found != stated:
                change = f"{stated} x {total_um / stated:.4g} um drawn as {found} x {total_um / found:.4g} um"
                alike.setdefault((_why_changed(item), change), []).append(device.id)
    return [
        f"fingers differ from the netlist, with the same total width, {why} ({change}): {', '.join(names)}"
        for (why, change), names in alike.items()
    ]


def _why_changed(item: Drawn) -> str:
    """Return what other fingers than those of the netlist buy: a pattern or shape, one width, or nearness to taps."""
    if any(text.startswith("fingers were split") for text in item.module.warnings):
        return "for the pattern and shape of their group"
    if isinstance(item.group, Group) and len({round(each.w / each.nf, 12) for each in item.group.devices}) > 1:
        return "so that all fingers of their group have one width"
    return "so that taps are near, or as equal transistors are drawn"


def draw_groups(layout: kdb.Layout, design: Design) -> list[Drawn]:
    """Return each group of ``design`` with its module, drawn in ``layout`` as one cell for each shape of a group.

    Transistors of one flavour and bulk net will share tap rings; one without others of its kind, one whose mirror
    image is in another well, and one with an extended drain has its own ring.

    Args:
        layout: Receives the cells.
        design: What to draw.
    """
    alike = _twin_groups(design)
    paired = _paired(design) | {group.devices[0].id for group in design.groups if group.name in alike}
    apart = _in_other_rings(design)
    crowd = Counter(ring_key(group) for group in design.groups if isinstance(group, Group))
    drawn: list[Drawn] = []
    for group in design.groups:
        if isinstance(group, (Group, PassiveGroup)) and group.bulk_net in design.other_grounds:
            drawn.append(_in_other_ground(layout, design, group, paired))
        elif isinstance(group, PassiveGroup):
            drawn.append(Drawn(group, draw_passives(layout, design.technology, group, _of_passives(design, group))))
        elif isinstance(group, InstanceGroup):
            drawn.append(_instance(layout, design.technology, group, design.finished[group.cell]))
        elif group.deep_well is not None:
            inner, dummies = _draw(layout, design, group, paired, FULL_RING)
            shapes = [isolate(design.technology, each, group.spec, group.deep_well, labels=False) for each in inner]
            drawn.append(Drawn(group, shapes[0], others=tuple(shapes[1:]), dummies=dummies))
        elif crowd[ring_key(group)] > 1 and group.name not in apart and not group.spec.drain_marker:
            drawn.append(_without_taps(layout, design, group, paired))
        else:
            drawn.append(_with_taps(layout, design, group, paired))
    return [_in_one_shape(layout, item) if item.module.name in alike else item for item in drawn]


def _twin_groups(design: Design) -> set[str]:
    """Return the groups with a twin: as large, and with the nets of each pair exchanged, on the same nets.

    Placement mirrors twins only where the constraints pair their devices, and takes one shape for both then. The single
    transistors that load the two outputs of a pair, for example, may be no pair, and still load it alike.
    """
    image = {net: twin for one, other in _twins(design) for net, twin in ((one, other), (other, one))}
    paired = _paired(design)
    groups = [group for group in design.groups if isinstance(group, Group) and group.devices[0].id not in paired]
    ends = {group.name: _ends(group, {}) for group in groups}
    images = {group.name: _ends(group, image) for group in groups}
    return {name for name, own in ends.items() if own != images[name] and images[name] in ends.values()}


def _ends(group: Group, names: Mapping[str, str]) -> list[tuple[Any, ...]]:
    """Return flavour, size and nets of each transistor of a group, with nets renamed by ``names``."""
    return sorted(
        (group.spec.name, *astuple(sizing), *(names.get(net, net) for _, net in sorted(device.terminals.items())))
        for device, sizing in zip(group.devices, group.sizing, strict=True)
    )


def _in_one_shape(layout: kdb.Layout, item: Drawn) -> Drawn:
    for module in item.others:
        layout.prune_cell(module.cell.cell_index(), -1)
    return replace(item, others=())


def _of_passives(design: Design, group: PassiveGroup) -> int:
    """Return the dummies at each end of a block: matched capacitors and resistors in a ratio have some by default."""
    if isinstance(design.dummies, int):
        return design.dummies
    return int((group.type == ARRAYS["capacitor"] and group.matched) or group.unit > 0)


def _instance(layout: kdb.Layout, technology: Technology, group: InstanceGroup, finished: FinishedCell) -> Drawn:
    if not group.several:
        return Drawn(group, instance_module(layout, group, finished), holds=finished.kinds)
    first, *others = array_modules(layout, technology, group, finished)
    return Drawn(group, first, others=tuple(others), holds=finished.kinds)


def ring_key(group: Group) -> tuple[str, str, bool]:
    """Return what groups must have alike to share a tap ring."""
    return group.spec.name, group.bulk_net, group.deep_well is not None


def _in_other_rings(design: Design) -> set[str]:
    """Return the groups whose mirror images would share other rings: partners are placed in one ring or in none."""
    groups = {device.id: group for group in design.groups if isinstance(group, Group) for device in group.devices}
    pairs = [
        pair for each in design.constraints.symmetry for pair in each.pairs if all(name in groups for name in pair)
    ]
    images = [(groups[one], groups[other]) for one, other in pairs]
    return {group.name for pair in images if ring_key(pair[0]) != ring_key(pair[1]) for group in pair}


def _in_other_ground(layout: kdb.Layout, design: Design, group: Group | PassiveGroup, paired: Collection[str]) -> Drawn:
    """Draw a group with taps of its own, and the marker of substrate with another ground up to their outer edge."""
    technology = design.technology
    if isinstance(group, PassiveGroup):
        item = Drawn(group, draw_passives(layout, technology, group, _of_passives(design, group)))
    else:
        item = _with_taps(layout, design, group, paired)
    for module in (item.module, *item.others):
        taps = technology.region(module.cell, "active") + technology.region(module.cell, "tap")
        module.cell.shapes(technology.layer(layout, "substrate_cut")).insert(taps.bbox())
    return item


def _with_taps(layout: kdb.Layout, design: Design, group: Group, paired: Collection[str]) -> Drawn:
    (first, *others), dummies = _draw(layout, design, group, paired, FULL_RING)
    return Drawn(group, first, others=tuple(others), dummies=dummies)


def _without_taps(layout: kdb.Layout, design: Design, group: Group, paired: Collection[str]) -> Drawn:
    """Draw a group that is to share a ring; with its own taps if it is too high for that."""
    most = REACH_OF_SHARED * 2 * design.technology.dim("tap_max_distance", group.spec)
    (first, *others), dummies = _draw(layout, design, group, paired, _SHARED)
    low = [module for module in others if module.bbox.height() <= most]
    high = [module for module in (first, *others) if module.bbox.height() > most]
    for module in high:
        layout.prune_cell(module.cell.cell_index(), -1)
    if first in high:
        for module in low:
            layout.prune_cell(module.cell.cell_index(), -1)
        return _with_taps(layout, design, group, paired)
    return Drawn(group, first, ringed=False, others=tuple(low), dummies=dummies)


def _paired(design: Design) -> set[str]:
    """Return the devices that have a mirror image."""
    return {device for group in design.constraints.symmetry for pair in group.pairs for device in pair}


def _twins(design: Design) -> tuple[tuple[str, str], ...]:
    """Return the net pairs of the constraints, the left net of each first.

    It is the net of the left device of a pair that is drawn in two modules. Where no pair says so, an output whose twin
    is no port comes last: outputs lie at the right.
    """
    circuit, found = design.circuit, []
    together = {device.id: group.name for group in design.groups for device in group.devices}
    outputs = {port for port, use in find_roles(circuit).ports.items() if use.direction == "output"}
    for group in design.constraints.symmetry:
        apart = [pair for pair in group.pairs if together.get(pair[0]) != together.get(pair[1])]
        ends = [tuple(circuit.device(name).terminals for name in pair) for pair in apart]
        sides = {(left[end], right.get(end)) for left, right in ends for end in left}
        for one, other in group.net_pairs:
            at_left = (one, other) in sides
            at_right = (other, one) in sides or (one in outputs and other not in circuit.ports)
            found.append((other, one) if at_right and not at_left else (one, other))
    return tuple(found)


def as_drawn(circuit: Circuit, drawn: Sequence[Drawn]) -> Circuit:
    """Return the circuit with the ends of its passive devices as they are drawn, and without bends of straight ones.

    The right one of a mirrored pair may have them exchanged, and foreign tools tell the plates of a capacitor apart.
    """
    groups = (item.group for item in drawn if isinstance(item.group, PassiveGroup))
    ends = {device.id: device.terminals for group in groups for device in group.devices}
    metre = 1e6 / drawn[0].module.layout.dbu if drawn else 1.0
    widths = {gate.device: gate.box.width() / metre for item in drawn for gate in item.module.gates}
    devices = []
    for device in circuit.devices:
        if (
            device.params.get("bends") and widths.get(device.id, 2 * device.w) < 1.5 * device.w
        ):  # bars beside each other
            params = {name: value for name, value in device.params.items() if name != "bends"}
            device = replace(device, params=params)  # noqa: PLW2901
        found = ends.get(device.id, device.terminals)
        exchanged = found != device.terminals and Counter(found.values()) == Counter(device.terminals.values())
        devices.append(replace(device, terminals=found) if exchanged else device)
    return replace(circuit, devices=tuple(devices))


def dummy_devices(
    drawn: Sequence[Drawn], circuit: Circuit, technology: Technology
) -> tuple[tuple[Device, ...], frozenset[str]]:
    """Return the dummies of the modules as devices, one for all equal ones, and the ids of those in deep wells.

    Extraction leaves out dummies whose source and drain are one net; foreign tools do not, so all are listed. Equal
    ones are one device, because LVS decks combine the transistors of a layout and not always those of a netlist.
    """
    taken = {device.id.lower() for device in circuit.devices}
    names = (name for number in count(1) if (name := f"MDUMMY{number}").lower() not in taken)
    equal: dict[tuple[DrawnDummy, bool], int] = {}
    for item in drawn:
        for dummy in item.module.dummies:
            turned = replace(dummy, first=dummy.second, second=dummy.first)
            keys = [(replace(each, count=1), item.deep_well is not None) for each in (dummy, turned)]
            key = keys[1] if keys[1] in equal else keys[0]
            equal[key] = equal.get(key, 0) + dummy.count
    devices: list[Device] = []
    isolated = set()
    for (dummy, in_well), units in equal.items():
        spec = technology.any_device(dummy.device)
        width, length = (round(technology.to_um(side) * 1e-6, 12) for side in (dummy.width, dummy.length))
        nets = {"d": dummy.first, "g": dummy.gate, "s": dummy.second, "b": dummy.bulk}
        params = {"w": width, "l": length, "nf": 1, "m": units}
        if not spec.kind.is_mos:
            nets = dict.fromkeys(spec.kind.terminals, dummy.first)
            if body := getattr(spec, "body_terminal", ""):
                nets[body] = dummy.bulk
            del params["nf"]
        devices.append(Device(next(names), spec.type, spec.name, params, nets))
        if in_well:
            isolated.add(devices[-1].id)
    return tuple(devices), frozenset(isolated)


def _draw(
    layout: kdb.Layout, design: Design, group: Group, paired: Collection[str], ring: RingStyle
) -> tuple[list[Module], EndDummies]:
    """Draw a group in the shapes that carry its currents; without regard to currents if its wires would be too wide."""
    currents = device_currents(design.constraints, design.circuit)
    known = currents if any(device.id in currents for device in group.devices) else {}
    try:
        modules, dummies = _drawn(layout, design, _Sized(group, tuple(transistors_of(group, known))), paired, ring)
    except GeometryError:  # the wires are so wide that the diffusion lies too far from its taps
        if not known:
            raise
        modules, dummies = _drawn(layout, design, _Sized(group, tuple(transistors_of(group, {}))), paired, ring)
    if known:
        modules = carrying_modules(design.technology, group, transistors_of(group, currents), modules, currents)
    guards = _guards(design.technology, group)
    if guards:
        outside = f"outside of them lie the netlist's own: {listed([guard.id for guard in guards], 12)}"
        dummies = EndDummies(dummies.count, f"{dummies.reason}; {outside}")
    return [_with_guards(module, guards) for module in modules], dummies


class _Sized(NamedTuple):
    group: Group
    transistors: tuple[Transistor, ...]


def _drawn(
    layout: kdb.Layout, design: Design, sized: _Sized, paired: Collection[str], ring: RingStyle
) -> tuple[list[Module], EndDummies]:
    """Return the modules of a group in all its shapes, the best one first, each with a cell name of its own.

    The second part says how many dummies each end of its rows has. Rails and risers lie in the order of the names of
    their nets. Where that is another one in the group that is its image, they lie in the order of what the nets are at,
    so that the two have the same geometry.
    """
    group, twins = sized.group, _twins(design)
    other = _image_of(design, group)
    if other is None or _order_of_nets(other) == _order_of_nets(group):
        return _drawn_as_named(layout, design, sized, (paired, twins, ring))
    numbers: dict[str, str] = {}
    transistors = []
    for each in sized.transistors:
        nets = (each.drain, each.gate, each.source, each.bulk)
        drain, gate, source, bulk = (numbers.setdefault(net, f"{len(numbers):03}") for net in nets)
        transistors.append(replace(each, drain=drain, gate=gate, source=source, bulk=bulk))
    inside = tuple((numbers[a], numbers[b]) for a, b in twins if a in numbers and b in numbers)
    modules, dummies = _drawn_as_named(layout, design, _Sized(group, tuple(transistors)), (paired, inside, ring))
    back = {number: net for net, number in numbers.items()}
    return [renamed_module(each, each.name, {name: name for name in each.devices}, back) for each in modules], dummies


def _image_of(design: Design, group: Group) -> Group | None:
    """Return the group that is the mirror image of a matched group; None if no other group is."""
    pairs = [pair for each in design.constraints.symmetry for pair in each.pairs]
    image = dict(pairs) | {right: left for left, right in pairs}
    names = {image.get(device.id, "") for device in group.devices}
    if len(names) < len(group.devices) or len(names) == 1 or names.intersection(device.id for device in group.devices):
        return None
    groups = (each for each in design.groups if isinstance(each, Group))
    return next((each for each in groups if {device.id for device in each.devices} == names), None)


def _order_of_nets(group: Group) -> list[int]:
    """Return the place of the net at each terminal of a group in the order of the names."""
    nets = [device.terminals[terminal] for device in group.devices for terminal in "dgsb"]
    order = sorted(set(nets))
    return [order.index(net) for net in nets]


def _drawn_as_named(
    layout: kdb.Layout,
    design: Design,
    sized: _Sized,
    how: tuple[Collection[str], Sequence[tuple[str, str]], RingStyle],
) -> tuple[list[Module], EndDummies]:
    """Return the modules of a group as ``_drawn`` does; ``how``: devices with an image, twins, style of rings."""
    technology, group, (paired, twins, ring) = design.technology, sized.group, how
    if len(sized.transistors) == 1 or group.type == PARALLEL:
        spec = replace(_as_one(sized.transistors, group.name), ring=ring, guards=_guards(technology, group))
        draw = _draw_by_role if sized.transistors[0].id in paired else draw_mos
        modules = [
            draw(layout, technology, replace(spec, name=_shape_name(layout, group.name), rows=rows))
            for rows in row_choices(technology, spec, 1 if is_tied(group.devices[0]) else SHAPES)
        ]
        return modules, EndDummies(0, "a single transistor" if group.type != PARALLEL else "parallel transistors")
    if group.cascodes:
        lower = tuple(t for t in sized.transistors if t.id not in group.cascodes)
        upper = tuple(t for t in sized.transistors if t.id in group.cascodes)
        mirror = MirrorSpec(group.name, lower, upper, group.arrangement, labels=False, ring=ring, twins=tuple(twins))
        mirror = replace(mirror, guards=_guards(technology, group))
        dummies, _ = chosen_dummies(
            technology, group, design.dummies, lambda count: [mirror_plan(technology, replace(mirror, dummies=count))]
        )
        return [draw_mirror(layout, technology, replace(mirror, dummies=dummies.count))], dummies
    matched = GroupSpec(
        group.name,
        sized.transistors,
        group.arrangement,
        labels=False,
        split=group.split,
        ring=ring,
        twins=tuple(twins),
        guards=_guards(technology, group),
    )
    return _in_rows(layout, design, group, matched)


def _guards(technology: Technology, group: Group) -> tuple[GuardDummy, ...]:
    """Return the dummies of the netlist that a group gets, as they are to be drawn."""
    return tuple(
        GuardDummy(each.id, sizing.finger_width * sizing.fingers, sizing.length, off_end(each) or group.bulk_net)
        for each in group.guards
        for sizing in [size(each, technology, 1)]
    )


def _with_guards(module: Module, guards: Sequence[GuardDummy]) -> Module:
    """Return a module in which the dummies of the netlist are devices."""
    if not guards:
        return module
    names = {guard.id for guard in guards}
    gates = tuple(
        replace(gate, device=gate.unit) if not gate.device and gate.unit in names else gate for gate in module.gates
    )
    return replace(module, gates=gates, devices=(*module.devices, *(guard.id for guard in guards)))


def _as_one(transistors: Sequence[Transistor], name: str) -> MosSpec:
    """Return how to draw a transistor, or parallel ones as one."""
    first, *others = transistors
    if not others:
        return MosSpec(first, name, labels=False)
    parts = tuple((each.id, each.fingers) for each in transistors)
    total = sum(count for _, count in parts)
    one = replace(first, nf=total, m=1, current=sum(each.current for each in transistors))
    return MosSpec(one, name, labels=False, parts=parts)


def _in_rows(layout: kdb.Layout, design: Design, group: Group, matched: GroupSpec) -> tuple[list[Module], EndDummies]:
    """Return the modules of a matched group as ``_drawn`` does, in as few rows as its taps reach."""
    technology = design.technology
    dummies, plans = chosen_dummies(
        technology,
        group,
        design.dummies,
        lambda count: group_plans(technology, replace(matched, dummies=count), SHAPES),
    )
    try:
        return _in_shapes(layout, technology, replace(matched, dummies=dummies.count), plans), dummies
    except FarFromTapsError:
        lower = matched.in_fewer_rows(plans[0])
        if lower is None:
            raise
    return _in_rows(layout, design, group, lower)


def _in_shapes(
    layout: kdb.Layout, technology: Technology, matched: GroupSpec, plans: Sequence[GroupPlan]
) -> list[Module]:
    """Return the modules of the plans that can be drawn, and that are their own mirror images where the first is."""
    shapes: list[Module] = []
    for plan in plans:
        named = replace(matched, name=_shape_name(layout, matched.name))
        try:
            shapes.append(drawn_plan(layout, technology, named, plan))
        except GeometryError:
            if not shapes:
                raise
    if shapes[0].symmetry_axis_x is not None:
        for module in [module for module in shapes if module.symmetry_axis_x is None]:
            layout.prune_cell(module.cell.cell_index(), -1)
        return [module for module in shapes if module.symmetry_axis_x is not None]
    return shapes


def _shape_name(layout: kdb.Layout, name: str) -> str:
    """Return the name of a group's cell, with a number if it is not the first shape."""
    numbered = (name if number == 1 else f"{name}_shape{number}" for number in count(1))
    return named_after(name, next(each for each in numbered if not layout.has_cell(each)))


def _draw_by_role(layout: kdb.Layout, technology: Technology, spec: MosSpec) -> Module:
    """Draw a transistor whose rails lie in an order that does not depend on the names of its nets.

    Two equal transistors that are connected alike then have the same geometry, so that one can mirror the other.
    """
    transistor = spec.transistor
    own = {"b": transistor.bulk, "d": transistor.drain, "g": transistor.gate, "s": transistor.source}
    roles: dict[str, str] = {}
    for role, net in own.items():
        roles.setdefault(net, role)
    for guard in spec.guards:
        roles.setdefault(guard.end, f"end {len(roles)}")
    renamed = replace(
        transistor,
        drain=roles[transistor.drain],
        gate=roles[transistor.gate],
        source=roles[transistor.source],
        bulk=roles[transistor.bulk],
    )
    guards = tuple(replace(guard, end=roles[guard.end]) for guard in spec.guards)
    module = draw_mos(layout, technology, replace(spec, transistor=renamed, guards=guards))
    nets = {role: net for net, role in roles.items()}
    return replace(module, pins=tuple(replace(pin, net=nets[pin.net]) for pin in module.pins))


class ModuleDrawings:
    """Draws the groups of ``design`` when they are first asked for."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self._drawn: tuple[kdb.Layout, list[Drawn]] | None = None

    def copy(self) -> tuple[kdb.Layout, list[Drawn]]:
        """Return a new layout with the modules in all their shapes.

        Raises:
            LayoutkitError: If a module cannot be drawn.
        """
        if self._drawn is None:
            layout = kdb.Layout()
            layout.dbu = self.design.technology.dbu_um
            self._drawn = layout, draw_groups(layout, self.design)
        layout, drawn = self._drawn[0].dup(), self._drawn[1]
        return layout, [
            replace(
                each,
                module=each.module.in_layout(layout),
                others=tuple(other.in_layout(layout) for other in each.others),
            )
            for each in drawn
        ]
