"""From a netlist to a design: the circuit mapped to a technology, its constraints, groups of devices and supplies."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from layoutkit.circuit.constraint_faults import check_constraints
from layoutkit.circuit.constraints import (
    PRIORITIES,
    Constraints,
    NetPriority,
    Outline,
    leaves_devices_open,
    parse_data,
)
from layoutkit.circuit.repeated import Hierarchy
from layoutkit.errors import LayoutkitError, NetlistError, listed, sentences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, StatedSupplies
    from layoutkit.circuit.readers.source import NetlistText
    from layoutkit.circuit.repeated import Use
    from layoutkit.flow.groups import Group
    from layoutkit.flow.hierarchy import InstanceGroup, Level
    from layoutkit.flow.instances import FinishedCell
    from layoutkit.flow.passive_modules import PassiveGroup
    from layoutkit.flow.port_frame import SupplyStyle
    from layoutkit.layout.workspace import Workspace
    from layoutkit.place.kept_places import EarlierPlaces
    from layoutkit.technology import Technology

MAX_CONSTRAINTS_BYTES = 4 << 20
RECOGNITION = "recognition"
GIVEN = "constraints"


@dataclass(frozen=True)
class LayoutRequest:
    """What to lay out.

    Attributes:
        netlist_path: SPICE, CDL, Spectre or JSON netlist; None if ``netlist_text`` is given.
        technology: Name of a shipped technology or path of a technology file; None for the workspace's.
        workspace: Folder that receives every file; None for the default one.
        top: Subcircuit; None for the netlist's own top.
        parameters: Values of parameters that the netlist leaves open or sets itself, such as ``{"w0": "2u"}``.
        width_per: Whether ``W`` is of a whole ``device`` or of one ``finger``; ``auto``: of one finger where no other
            reading fits the whole netlist, else of the device.
        dummies: Dummy fingers at each end of a matched row, and dummy bars at each end of a bank of resistors; ``auto``
            for as many fingers as the figures of each group need (``flow.dummies``), and no bars.
        seed: Seed of the placement search.
        waived_layers: Layers that DRC need not judge and LVS need not read.
        black_boxes: Empty or undefined subcircuits whose instances are kept as black boxes: not drawn, not compared.
        constraints: Constraints as ``plan.suggest_constraints`` writes them, as JSON data or by the path of their file;
            None for those of recognition.
        row_gap: Room between modules beyond what the rules need, more only where nets find no way; None for as little
            as the wires need. [um]
        net_priorities: Nets with a priority in routing of their own, as ``{net, priority}``.
        netlist_text: The netlist itself; it cannot include files.
        deep_well_net: Net of the deep wells around isolated bodies; None for the highest supply.
        substrate_nets: Grounds that meet in the substrate alone, such as avss and dvss; every device is laid out
            by itself then.
        outline: Box that the modules must fit into, as ``60x40``: width and height; None for any. [um]
        aspect: Largest ratio of the longer to the shorter side; None for the engine's, 2.
        effort: How many placements to compare, or for how long to try further ones, as ``20s``.
        first_stage: Stage to begin with; the workspace holds what the earlier ones made. None for the first of all.
        last_stage: Stage to stop after; None for the last of all.
        supplies: ``rails`` at the top and bottom, a ``ring`` around the core, or ``ports`` as signals have.
        post_layout: Whether parasitics are extracted and the circuit is simulated before and after layout.
        reviewed: Whether the design review is made; searches that do not compare its counts do without.
        flatten: Whether every device is laid out by itself; else subcircuits that are used more than once are laid out
            once.
        keep_parasitics: Whether capacitors without a model that are too small to be drawn are refused; else they are
            taken for capacitances of wires and left out, with a warning.
        device_map: Model of the netlist -> device of the technology that takes its place, such as
            ``{"ppolyf_u_1k": "ppolyf_u"}``.
        sizes: Sizes in place of the netlist's, by device: ``{"M1": {"w": 4e-6, "nf": 2}}``, as ``Device.params`` of the
            mapped circuit names them.
    """

    netlist_path: str | None = None
    technology: str | None = None
    workspace: str | None = None
    top: str | None = None
    parameters: Mapping[str, str | float] | None = None
    width_per: Literal["auto", "device", "finger"] = "auto"
    dummies: int | Literal["auto"] = "auto"
    seed: int = 1
    waived_layers: Sequence[str] = ()
    black_boxes: tuple[str, ...] = ()
    constraints: str | Mapping[str, Any] | None = None
    row_gap: float | None = None
    net_priorities: Sequence[Mapping[str, Any]] = ()
    netlist_text: str | None = None
    deep_well_net: str | None = None
    substrate_nets: Sequence[str] = ()
    outline: str | None = None
    aspect: float | None = None
    effort: int | str = 1
    first_stage: str | None = None
    last_stage: str | None = None
    supplies: SupplyStyle = "rails"
    flatten: bool = False
    post_layout: bool = False
    reviewed: bool = True
    sizes: Mapping[str, Mapping[str, float]] | None = None
    device_map: Mapping[str, str] | None = None
    keep_parasitics: bool = False

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> LayoutRequest:
        """Return the request in a tool's parameters, which have these names; other parameters are ignored.

        The stages are called ``from`` and ``until`` there.
        """
        values = {**params, "first_stage": params.get("from"), "last_stage": params.get("until")}
        return cls(**{each.name: values[each.name] for each in fields(cls) if each.name in values})

    @property
    def netlist(self) -> str | NetlistText:
        """Return the netlist, by its path or itself.

        Raises:
            NetlistError: If the request gives both or neither.
        """
        from layoutkit.circuit import given_netlist

        return given_netlist({"netlist_path": self.netlist_path, "netlist_text": self.netlist_text})

    @property
    def outline_um(self) -> tuple[float, float] | None:
        """Width and height that ``outline`` states; None where it states none. [um]

        Raises:
            LayoutkitError: If it is not two positive numbers, or ``aspect`` is given, too.
        """
        if self.outline is None:
            return None
        form = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)(?:um?)? ?x ?(\d{1,6}(?:\.\d+)?)(?:um?)?", self.outline)
        size = (float(form[1]), float(form[2])) if form else (0.0, 0.0)
        if min(size) <= 0:
            raise LayoutkitError(
                f"outline {self.outline!r} is not a width and a height such as 60x40 [um], both above 0",
                details={"param_name": "outline", "provided_value": self.outline},
            )
        if self.aspect is not None:
            raise LayoutkitError(
                f"give outline ({self.outline}) or aspect ({self.aspect:g}), not both",
                details={"param_name": "aspect", "provided_value": self.aspect},
            )
        return size


@dataclass(frozen=True)
class SharedCell:
    """A subcircuit that is laid out once for all its instances.

    Attributes:
        name: Name of the cell.
        subcircuit: Name of the subcircuit.
        design: What is laid out, in names of its own.
        ports: Nets that lead out of it.
        uses: Every instance.
    """

    name: str
    subcircuit: str
    design: Design
    ports: tuple[str, ...]
    uses: tuple[Use, ...]


@dataclass(frozen=True)
class Design:
    """A circuit ready to be drawn.

    Attributes:
        technology: The process.
        circuit: Mapped to ``technology``, with its modules recognised.
        groups: What is drawn in one cell each.
        supplies: Power and ground nets.
        dummies: As the request states them.
        constraints: What placement and routing obey; those on devices inside of shared cells are obeyed there.
        source: Where the constraints come from: the path of a file, ``GIVEN`` or ``RECOGNITION``.
        supply_style: How supplies reach the boundary: ``rails``, a ``ring`` or ``ports``.
        whole: All constraints of the circuit, with those on devices inside of shared cells.
        cells: The cells that instances of subcircuits share, inner ones first.
        kept_flat: What repeats and is laid out apart, and which groups stay in cells, with the reasons, in words.
        finished: The layouts of the shared cells that are laid out, by name.
        is_cell: Whether this is a shared cell, which has no ports and no supply rails at its boundary.
        other_grounds: Nets that meet that of the substrate in it: their rings lie in the process's marker.
        earlier: Places to keep where that is possible, of a build whose devices had other sizes; None without.
    """

    technology: Technology
    circuit: Circuit
    groups: tuple[Group | PassiveGroup | InstanceGroup, ...]
    supplies: frozenset[str]
    dummies: int | Literal["auto"]
    constraints: Constraints = field(default_factory=Constraints)
    source: str = RECOGNITION
    supply_style: SupplyStyle = "rails"
    whole: Constraints = field(default_factory=Constraints)
    cells: tuple[SharedCell, ...] = ()
    kept_flat: tuple[str, ...] = ()
    finished: Mapping[str, FinishedCell] = field(default_factory=dict)
    is_cell: bool = False
    other_grounds: frozenset[str] = frozenset()
    earlier: EarlierPlaces | None = None

    @property
    def isolated(self) -> frozenset[str]:
        """Ids of the devices in deep wells."""
        from layoutkit.flow.groups import Group
        from layoutkit.flow.passive_modules import PassiveGroup

        in_wells = [g for g in self.groups if isinstance(g, (Group, PassiveGroup)) and g.deep_well is not None]
        # A poly resistor on a net of its own lies above an n well.
        groups = (each for each in in_wells if isinstance(each, Group) or each.spec.diffusion_of is not None)
        inside = (use.devices[name] for cell in self.cells for name in cell.design.isolated for use in cell.uses)
        return frozenset((*(device.id for group in groups for device in group.devices), *inside))

    def priority(self, net: str) -> int:
        """Return when ``net`` is routed; a smaller number first."""
        usual = PRIORITIES["supply" if net in self.supplies else "signal"]
        return self.constraints.priorities.get(net, usual)


def technology_of(request: LayoutRequest, workspace: Workspace) -> Technology:
    """Return the technology to draw in: the requested one, else that of the workspace's layout.

    Without either it is the one shipped process whose devices the netlist names, else the usual one.

    Raises:
        LayoutkitError: As ``Workspace.technology``.
    """
    from layoutkit.circuit import ModelNames, read_netlist
    from layoutkit.layout.workspace import DEFAULT_TECHNOLOGY
    from layoutkit.technology import load, names, without_variants

    if request.technology is not None or workspace.layout_path.exists():
        return workspace.technology(request.technology)
    try:
        read = read_netlist(
            request.netlist,
            top=request.top,
            identify_modules=False,
            black_boxes=request.black_boxes,
            parameters=request.parameters,
            names=ModelNames(),
        )
    except LayoutkitError:  # which ``read_circuit`` reports in terms of the technology
        return workspace.technology(None)
    models = {device.model for device in read.devices}
    processes = [name for name in names() if name != DEFAULT_TECHNOLOGY]
    named = without_variants([name for name in processes if any(map(load(name).device_names.drawn, models))])
    return workspace.technology(None, named[0] if len(named) == 1 else DEFAULT_TECHNOLOGY)


def read_circuit(request: LayoutRequest, technology: Technology) -> tuple[Circuit, list[str]]:
    """Return the circuit of ``request`` mapped to ``technology``, with its modules, and what was decided, in words.

    Raises:
        LayoutkitError: If the netlist cannot be read or mapped, or holds no devices.
    """
    from layoutkit.circuit import ModelNames, check_junctions, map_circuit, read_netlist, recognised, resized
    from layoutkit.circuit.device_map import MapOptions

    netlist = request.netlist
    stated = None if request.constraints is None else read_constraints(request.constraints)
    read = read_netlist(
        netlist,
        top=request.top,
        identify_modules=False,
        black_boxes=request.black_boxes,
        parameters=request.parameters,
        names=ModelNames(technology, request.device_map),
        keep_parasitics=request.keep_parasitics,
        supplies=supplies_of(stated),
    )
    mapped = map_circuit(read, technology, MapOptions(width_per=request.width_per))
    if request.sizes:
        mapped = map_circuit(resized(mapped, request.sizes), technology, MapOptions(width_per="device"))
    check_junctions(technology, mapped, read)
    if not mapped.devices:
        raise NetlistError(f"the netlist has no devices, so there is nothing to lay out: {netlist}")
    circuit = recognised(mapped)
    if stated is not None and stated.supplies:  # which decide how the circuit is understood, so judge all of it now
        check_constraints(stated, circuit)
    return circuit, [
        *read.warnings,
        *(w for w in mapped.warnings if w not in read.warnings),
        *_library_cells(circuit, technology),
    ]


def _library_cells(circuit: Circuit, technology: Technology) -> list[str]:
    """Return which subcircuits are finished cells of the process's libraries, and what becomes of them, in words."""
    is_cell = technology.device_names.is_cell
    drawn = sorted({each.cell for each in circuit.subcircuits if is_cell(each.cell)})
    left = [f"{box.id} ({box.cell})" for box in circuit.black_boxes if is_cell(box.cell)]
    texts = []
    if drawn:
        texts.append(
            f"cells of the process's libraries are not placed; their transistors are drawn: {', '.join(drawn)}"
        )
    if left:
        by_hand = "place them by hand and wire them to the labelled nets"
        texts.append(f"cells of the process's libraries are not placed; {by_hand}: {', '.join(left)}")
    return texts


def make_design(
    request: LayoutRequest, technology: Technology, circuit: Circuit, refused: Mapping[str, str] | None = None
) -> tuple[Design, list[str]]:
    """Return the design of ``circuit``, and what was decided, in words.

    Args:
        request: What to lay out.
        technology: The process.
        circuit: Mapped to ``technology``.
        refused: Paths of instances of subcircuits that are not to be shared, and why.

    Raises:
        LayoutkitError: If the constraints cannot be read, do not fit the circuit, or contradict ``net_priorities``.
        UnsupportedOperationError: If a device cannot be drawn.
    """
    from layoutkit.circuit import find_roles
    from layoutkit.circuit.ranked_names import ranked, with_names
    from layoutkit.circuit.supplies import substrate_net
    from layoutkit.flow.deep_wells import isolated_bodies
    from layoutkit.flow.hierarchy import (
        Chip,
        constraints_inside,
        levels_of,
        repeated_subcircuits,
        suggested_by_level,
        without_parts,
    )

    technology = technology.made_for(device.model for device in circuit.devices)
    stated, completed = None, False
    if request.constraints is not None:
        data = constraints_data(request.constraints)
        stated, completed = Constraints.from_json(data), leaves_devices_open(data)
        check_constraints(stated, circuit)
    circuit = ranked(circuit)
    devices, nets = {each.id: each.id for each in circuit.devices}, {net: net for net in circuit.nets}
    names = {**devices, **nets}
    if stated is not None:
        stated = with_names(stated, names)
    arranged = None if completed else stated
    supplies = find_roles(circuit).supplies
    joined = _joined_grounds(request, stated, nets)
    deep_wells, notes = isolated_bodies(circuit, technology, with_names(request.deep_well_net, nets), joined)
    chip = Chip(supplies.nets, substrate_net(circuit), deep_wells)
    hierarchy, kept_flat = Hierarchy(), tuple[str, ...]()
    if not (request.flatten or joined):
        hierarchy, kept_flat = repeated_subcircuits(circuit, chip, arranged, refused or {})
    top, levels = levels_of(circuit, hierarchy, chip)
    whole = arranged if arranged is not None else suggested_by_level(top, levels, hierarchy)
    if completed and stated is not None:
        whole = replace(whole, **{each.name: found for each in fields(stated) if (found := getattr(stated, each.name))})
        what = "supplies" if stated.supplies else "grounds"
        notes = (
            *notes,
            f"the constraints state {what} and no groups; recognition with these {what} finds the groups",
        )
    whole = _with_priorities(whole, request, circuit)
    whole = replace(whole, net_priorities=with_names(whole.net_priorities, nets))
    frame = _Frame(request, technology, source_of(request.constraints), frozenset(joined) - {chip.substrate})
    cells = []
    for shared in hierarchy.shared:
        level = levels[shared.name]
        inside = without_parts(level, constraints_inside(shared, level, whole, circuit))
        inner = replace(frame.design(level, inside)[0], is_cell=True)
        cells.append(SharedCell(shared.name, shared.subcircuit, inner, level.ports, shared.uses))
    design, more_notes = frame.design(top, without_parts(top, whole))
    design = replace(design, circuit=circuit, whole=whole, cells=tuple(cells), kept_flat=kept_flat)
    return design, [*notes, *more_notes, *kept_flat]


def _joined_grounds(request: LayoutRequest, stated: Constraints | None, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the grounds that meet in the substrate alone, as the request or its constraints state them."""
    from layoutkit.circuit.ranked_names import with_names

    in_constraints = tuple(net for entry in (stated.substrate_nets if stated else ()) for net in entry.nets)
    if request.substrate_nets and in_constraints and {*request.substrate_nets} != {*in_constraints}:
        raise LayoutkitError(
            f"substrate_nets names {listed(request.substrate_nets)}, and the constraints name "
            f"{listed(in_constraints)}; give one of the two, or the same nets in both",
            details={"param_name": "substrate_nets", "provided_value": list(request.substrate_nets)},
        )
    return tuple(with_names(tuple(request.substrate_nets) or in_constraints, names))


@dataclass(frozen=True)
class _Frame:
    """What the designs of all cells of a request have in common."""

    request: LayoutRequest
    technology: Technology
    source: str
    other_grounds: frozenset[str]

    def design(self, level: Level, constraints: Constraints) -> tuple[Design, tuple[str, ...]]:
        """Return the design of one level of the hierarchy, and what was decided, in words."""
        from layoutkit.circuit import find_roles
        from layoutkit.flow.groups import group_devices
        from layoutkit.flow.hierarchy import in_arrays
        from layoutkit.flow.passive_modules import group_passives

        own = level.own
        transistors, notes = group_devices(own, self.technology, constraints, level.chip.deep_wells)
        others, more_notes = group_passives(
            own, self.technology, constraints, level.chip.substrate, level.chip.deep_wells
        )
        design = Design(
            self.technology,
            replace(level.circuit, modules=find_roles(own).groups),
            (*transistors, *others, *in_arrays(level)),
            level.chip.supplies,
            self.request.dummies,
            constraints,
            self.source,
            self.request.supplies,
            other_grounds=self.other_grounds,
        )
        return design, (*notes, *more_notes)


def source_of(constraints: str | Mapping[str, Any] | None) -> str:
    """Return where constraints come from: the path of a file, ``GIVEN`` in the request itself, or ``RECOGNITION``."""
    if constraints is None:
        return RECOGNITION
    return constraints if isinstance(constraints, str) else GIVEN


def read_constraints(given: str | Mapping[str, Any]) -> Constraints:
    """Return the constraints of a JSON file or JSON data; whether they fit a circuit is not checked.

    Args:
        given: Path of the file, or the data itself.

    Raises:
        FileError: If the file cannot be read.
        LayoutkitError: If it is not JSON or has another format; the details list every fault.
    """
    return Constraints.from_json(constraints_data(given))


def constraints_data(given: str | Mapping[str, Any]) -> Any:
    """Return constraints as the JSON data that is given or that its file holds; its format is not checked.

    Raises:
        FileError: If the file cannot be read.
        LayoutkitError: If it is not JSON.
    """
    from layoutkit.layout.files import read_bytes

    if not isinstance(given, str):
        return given
    return parse_data(read_bytes(given, max_bytes=MAX_CONSTRAINTS_BYTES).decode("utf-8-sig", "replace"))


def supplies_of(constraints: Constraints | None) -> StatedSupplies | None:
    """Return the supplies that constraints state; None where they state none."""
    return constraints.supplies[0] if constraints is not None and constraints.supplies else None


def with_outline(constraints: Constraints, request: LayoutRequest) -> Constraints:
    """Return the constraints with the outline or aspect of the request, which holds in place of theirs."""
    if request.outline_um is None and request.aspect is None:
        return constraints
    width, height = request.outline_um or (None, None)
    return replace(constraints, outline=(Outline(width, height, request.aspect),))


def _with_priorities(constraints: Constraints, request: LayoutRequest, circuit: Circuit) -> Constraints:
    """Return the constraints with the priorities of ``net_priorities``, which may not contradict those of a file."""
    names = [entry["net"] for entry in request.net_priorities]
    own = {entry["net"]: entry["priority"] for entry in request.net_priorities}
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    unknown = sorted(set(own) - {*circuit.nets, *circuit.ports}, key=str)
    stated = constraints.priorities if request.constraints is not None else {}
    faults = []
    if twice:
        faults.append(f"net_priorities names nets more than once: {listed(twice)}")
    if unknown:
        has = listed(sorted({*circuit.nets, *circuit.ports}, key=str))
        faults.append(f"net_priorities names nets that the circuit lacks: {listed(unknown)}; it has: {has}")
    other = [
        f"{net} ({own[net]}; constraints: {stated[net]})" for net in own if net in stated and stated[net] != own[net]
    ]
    if other:
        faults.append(f"net_priorities contradicts the constraints: {listed(other)}; give each priority in one place")
    if faults:
        raise LayoutkitError(
            sentences(faults), details={"param_name": "net_priorities", "provided_value": [*twice, *unknown, *other]}
        )
    kept = (entry for entry in constraints.net_priorities if entry.net not in own)
    added = (NetPriority(net, priority, reason="net_priorities") for net, priority in own.items())
    return replace(constraints, net_priorities=(*kept, *added))
