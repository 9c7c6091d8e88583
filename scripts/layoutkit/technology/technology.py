"""The model of a technology: layers, stack, dimensions and rules, as read from its file; see also ``device_specs``.

Lengths are integers in database units, areas in square database units; names of values in micrometres end in ``_um``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

from layoutkit.errors import GeometryError, TechnologyError, listed
from layoutkit.technology.device_kinds import KINDS
from layoutkit.technology.device_names import DeviceNames, ListedNames
from layoutkit.technology.parasitic_data import ParasiticData

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import klayout.db as kdb

    from layoutkit.technology.device_names import CardForm
    from layoutkit.technology.device_specs import DeepWell, DeviceSpec, PassiveSpec
    from layoutkit.technology.parasitic_data import SimulationModels

NOT_ON_A_MASK = frozenset({"pin", "text", "boundary", "exclusion", "annotation"})
"""Purposes of layers that are not on the wafer and therefore need no rules."""
MAX_LENGTH = 1_000_000_000  # of a rule or dimension; KLayout's coordinates have 32 bits [dbu]
AREA_KINDS = frozenset({"area", "hole_area", "max_area"})
"""Kinds of rules whose value is an area."""
LENGTHS_OF_CONDUCTORS = ("width", "space", "wide_width", "wide_space", "long_edges", "max_width")
"""Fields of a conductor in a file that are lengths."""
NO_LENGTHS_OF_CUTS = frozenset(
    {"name", "layer", "below", "above", "array_count", "current_ma", "resistance_ohm", "uncertain"}
)
"""Fields of a cut in a file; all others are lengths."""
DIMENSIONLESS_KINDS = frozenset({"angle", "max_ratio", "density", "antenna"})
"""Kinds of rules whose value has no unit."""


@dataclass(frozen=True)
class LayerSpec:
    """One layer of the process.

    Attributes:
        name: Name in the process.
        gds: GDS layer and datatype.
        color: Colour in pictures, ``#rrggbb``.
        description: What it is, if the name does not explain it.
        purpose: What it is for, as ``technology.schema.json`` lists.
        fill: Layers whose shapes are of the same material on the wafer: fill, and what is added to the mask.
        slots: Layers whose shapes are subtracted from it.
    """

    name: str
    gds: tuple[int, int]
    color: str | None = None
    description: str = ""
    purpose: str = "mask"
    fill: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()

    @property
    def on_a_mask(self) -> bool:
        """Whether its shapes appear on the wafer, or change what does."""
        return self.purpose not in NOT_ON_A_MASK


@dataclass(frozen=True)
class Conductor:
    """One wiring layer with the rules a generator and a router keep on it. [dbu, dbu2]

    ``current_ma_um`` is the largest direct current per width [mA/um], ``narrow_current_ma`` that of a narrow wire of
    any width [mA], ``sheet_ohm`` the sheet resistance [ohm per square], ``area_af_um2`` and ``fringe_af_um`` the
    capacitance to the substrate per area [aF/um2] and per length of edge [aF/um]; None where the technology states
    none.
    """

    name: str
    layer: str
    label_layer: str
    pin_layer: str | None
    width: int
    space: int
    area: int = 0
    wide_width: int | None = None
    wide_space: int | None = None
    max_width: int | None = None
    long_edges: int | None = None
    current_ma_um: float | None = None
    narrow_current_ma: float | None = None
    sheet_ohm: float | None = None
    area_af_um2: float | None = None
    fringe_af_um: float | None = None

    def spacing(self, *, wide: bool = True) -> int:
        """Return the distance that two pieces of metal keep where one of them is ``wide``, or none is. [dbu]"""
        return max(self.space, self.wide_space or 0) if wide else self.space

    def current_ma(self, width_um: float) -> float | None:
        """Return the largest direct current of a wire of this width [mA], None if the technology states none."""
        if self.current_ma_um is None:
            return None
        return max(self.current_ma_um * width_um, self.narrow_current_ma or 0.0)

    def width_um(self, current_ma: float) -> float:
        """Return the least width of a wire that carries a current [um]: 0 where any does, or no limit is stated."""
        if not self.current_ma_um or current_ma <= (self.narrow_current_ma or 0.0):
            return 0.0
        return current_ma / self.current_ma_um


@dataclass(frozen=True)
class Cut:
    """A contact or via between two conductors: square ``size``, array ``space``, metal beyond it. [dbu]

    ``enclose_*`` holds on every side, ``enclose_*_end`` on two opposite sides at least. In arrays of ``array_count``
    rows and columns and more the cuts keep ``array_space`` instead; ``array_count`` is 0 where there is no such rule.
    Cuts up to ``array_reach`` apart count as one array.
    ``current_ma`` is the largest direct current of one cut [mA], ``resistance_ohm`` its resistance [ohm]; None where
    the technology states none. Those of a contact are in ``Technology.silicon``, as they depend on what is below.
    """

    name: str
    layer: str
    below: str
    above: str
    size: int = 0
    space: int = 0
    enclose_below: int = 0
    enclose_below_end: int = 0
    enclose_above: int = 0
    enclose_above_end: int = 0
    array_space: int = 0
    array_count: int = 0
    array_reach: int = 0
    current_ma: float | None = None
    resistance_ohm: float | None = None

    def spacing(self, count: int | None = None) -> int:
        """Return the distance of ``count`` cuts in a line beside other arrays; None: of any number. [dbu]"""
        dense = count is None or 0 < self.array_count <= count
        return max(self.space, self.array_space) if dense else self.space

    def count_for(self, current_ma: float | None) -> int:
        """Return how many cuts carry a current, two at least; 1 without a current or a limit."""
        limit = self.current_ma
        return 1 if current_ma is None or limit is None else max(2, ceil(round(current_ma / limit, 6)))


@dataclass(frozen=True)
class Silicon:
    """What contacts stand on: its sheet resistance, and resistance and largest direct current of one contact on it.

    Of poly also the capacitance to the substrate, per area and per length of edge. A number is None where the
    technology states none. [ohm per square, ohm, mA, aF/um2, aF/um]
    """

    sheet_ohm: float | None = None
    contact_ohm: float | None = None
    contact_ma: float | None = None
    area_af_um2: float | None = None
    fringe_af_um: float | None = None


@dataclass(frozen=True)
class ElectricalSources:
    """Where current limits, resistances and capacitances come from; empty or None if the file does not state it."""

    currents: str = ""
    temperature_c: float | None = None
    resistances: str = ""
    capacitances: str = ""


@dataclass(frozen=True, eq=False)
class Rule:
    """One design rule as the technology file states it. Compared by identity: see ``Technology``.

    ``value`` is a length [dbu], an area [dbu2] for area kinds, an angle in degrees for ``angle``, else None;
    ``options`` holds the operands of its kind.
    """

    id: str
    kind: str
    description: str
    severity: str
    value: int | None
    value_um: float | None
    source: str
    options: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Technology:
    """A process, read from one YAML file. Every number in it comes from a rule or a stated constant.

    Compared by identity, so that functions can cache what follows from it alone.
    ``layers`` are those that generators draw or roles name, ``other_layers`` all others of the process.
    """

    name: str
    description: str
    path: str
    dbu_um: float
    grid: int
    layers: Mapping[str, LayerSpec]
    roles: Mapping[str, str]
    aliases: Mapping[str, str]
    conductors: tuple[Conductor, ...]
    cuts: tuple[Cut, ...]
    contact: Cut
    dimensions: Mapping[str, int]
    devices: Mapping[str, DeviceSpec]
    derived: Mapping[str, str]
    rules: tuple[Rule, ...]
    based_on: str = ""
    """The technology or file whose content this one changes; empty where it stands alone."""
    passives: Mapping[str, PassiveSpec] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    other_layers: Mapping[str, LayerSpec] = field(default_factory=dict)
    silicon_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """``nwell``, ``pwell`` (p wells, substrate) and ``poly`` -> layers whose texts name them; one may be of pins."""
    netlists: Mapping[str, Mapping[str, CardForm]] = field(default_factory=dict)
    """Form (``spice``, ``lvs_deck``) -> device -> how a netlist of that form writes it."""
    silicon: Mapping[str, Silicon] = field(default_factory=dict)
    """``ndiff``, ``pdiff`` and ``poly`` -> their resistances and contacts."""
    electrical: ElectricalSources = field(default_factory=ElectricalSources)
    parasitics: ParasiticData = field(default_factory=ParasiticData)
    deep_well: DeepWell | None = None
    """How bodies are isolated; None where the process has no deep well."""
    simulation: SimulationModels | None = None
    """Where its models for ngspice are; None where the file does not say."""
    names: ListedNames = field(default_factory=ListedNames)
    """Other names of drawn devices, and the devices of the process without a drawing."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Option of the masks, such as the resistance of a poly implant -> the value with which they are made."""
    option_layers: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    """Option -> value -> derived layers that are others with that value."""

    @cached_property
    def device_names(self) -> DeviceNames:
        """The names of all devices of the process."""
        parts = () if self.deep_well is None else self.deep_well.name_parts
        return DeviceNames(self.names, self.devices, self.passives, self.dbu_um, parts)

    @cached_property
    def measured_layers(self) -> tuple[str, ...]:
        """The layers that ``layers: all`` of a rule means: those of ``layers`` but texts and annotations."""
        return tuple(name for name, spec in self.layers.items() if spec.purpose not in {"text", "annotation"})

    def role(self, role: str) -> str | None:
        """Return the layer name of ``role`` (active, tap, poly, contact, ...), None where the process has none."""
        return self.roles.get(role)

    def layer(self, layout: kdb.Layout, name: str) -> int:
        """Return the index in ``layout`` of the layer, role or alias ``name``; the layer is made where absent."""
        number, datatype = self.spec(name).gds
        return int(layout.layer(number, datatype))

    def region(self, cell: kdb.Cell, name: str) -> kdb.Region:
        """Return the shapes of ``cell`` and the cells in it on the layer, role or alias ``name``, not merged."""
        import klayout.db as kdb

        return kdb.Region(cell.begin_shapes_rec(self.layer(cell.layout(), name)))

    def spec(self, name: str) -> LayerSpec:
        """Return the layer that ``name`` (layer, role or alias) stands for.

        Raises:
            TechnologyError: If the technology has no such layer; the message lists what it has.
        """
        resolved = self.resolve(name)
        found = self.other_layers.get(resolved) or self.layers.get(resolved)
        if found is None:
            raise TechnologyError(
                f"technology {self.name} has no layer '{name}'; it has: {', '.join(sorted(self.layers))}"
            )
        return found

    def resolve(self, name: str) -> str:
        """Return the layer name behind an alias (``metal1``) or a role (``active``), else ``name`` itself."""
        if name not in self.layers:
            name = self.aliases.get(name, name)
        return name if name in self.layers else self.roles.get(name, name)

    def layer_at(self, gds: tuple[int, int]) -> LayerSpec | None:
        """Return the layer of a GDS layer and datatype, None where the technology names none."""
        every = (*self.layers.values(), *self.other_layers.values())
        return next((spec for spec in every if spec.gds == gds), None)

    def conductor(self, name: str) -> Conductor:
        """Return the conductor called ``name`` (its own name or an alias)."""
        wanted = self.resolve(name)
        for conductor in self.conductors:
            if conductor.name == wanted:
                return conductor
        known = ", ".join(c.name for c in self.conductors)
        raise TechnologyError(f"technology {self.name} has no conductor '{name}'; its stack is: {known}")

    def widest_usual(self, conductor: Conductor) -> int | None:
        """Return the width up to which metal keeps the spaces that its conductor states [dbu]; None for any width.

        Some rules ask for more space beside very wide metal.
        """
        stated = conductor.spacing()
        limits = [conductor.max_width] if conductor.max_width is not None else []
        for rule in self.rules:
            wider = rule.kind == "wide_space" and rule.severity == "error" and (rule.value or 0) > stated
            if wider and self.resolve(str(rule.options.get("layer", ""))) == conductor.layer:
                limits.append(self.to_dbu(float(rule.options["wide_um"])))
        return min(limits, default=None)

    def cut_between(self, lower: str, upper: str) -> Cut:
        """Return the via that joins two neighbouring conductors."""
        for cut in self.cuts:
            if (cut.below, cut.above) == (self.resolve(lower), self.resolve(upper)):
                return cut
        raise TechnologyError(f"technology {self.name} has no via between '{lower}' and '{upper}'")

    def device(self, name: str) -> DeviceSpec:
        """Return the device called ``name``: a device, its model, or ``nmos``/``pmos`` for the default of that type."""
        if name in self.devices:
            return self.devices[name]
        for spec in self.devices.values():
            if spec.model == name or (spec.default and spec.type == name):
                return spec
        raise TechnologyError(
            f"technology {self.name} has no device '{name}'; it has: {', '.join(sorted(self.devices))}"
        )

    def passive(self, name: str) -> PassiveSpec:
        """Return the passive device called ``name``: a device, its model, or its type for the default of that type."""
        if name in self.passives:
            return self.passives[name]
        for spec in self.passives.values():
            if name in spec.models(self.dbu_um) or (spec.default and spec.type == name):
                return spec
        known = listed(sorted(self.passives)) or "none"
        instead = KINDS[name].instead if name in KINDS else ""
        cure = f"; instead of a {KINDS[name].noun} use {instead}" if instead else ""
        raise TechnologyError(f"technology {self.name} has no passive device '{name}'; it has: {known}{cure}")

    def any_device(self, name: str) -> DeviceSpec | PassiveSpec:
        """Return the device of exactly this name in the technology, transistor or not."""
        found: DeviceSpec | PassiveSpec | None = self.devices.get(name) or self.passives.get(name)
        if found is None:
            raise TechnologyError(f"technology {self.name} has no device '{name}'")
        return found

    def makes(self, spec: PassiveSpec) -> bool:
        """Return whether the masks with these options make a device, rather than one that is drawn like it."""
        return all(self.options.get(name, value) == value for name, value in spec.options.items())

    def made_for(self, models: Iterable[str]) -> Technology:
        """Return the process with the options of its masks that devices of these models need."""
        specs = (self.device_names.drawn(model) for model in models)
        needed = {k: v for spec in specs if spec is not None for k, v in getattr(spec, "options", {}).items()}
        others = {option: value for option, value in needed.items() if self.options.get(option) != value}
        return _with_options(self, tuple(sorted(others.items()))) if others else self

    def dim(self, name: str, device: DeviceSpec | None = None) -> int:
        """Return a drawing dimension [dbu]; a device may override the technology's."""
        if device is not None and name in device.dimensions:
            return device.dimensions[name]
        try:
            return self.dimensions[name]
        except KeyError:
            raise TechnologyError(f"technology {self.name} states no dimension '{name}'") from None

    def rule(self, rule_id: str) -> Rule:
        """Return the rule called ``rule_id``."""
        for rule in self.rules:
            if rule.id == rule_id:
                return rule
        raise TechnologyError(f"technology {self.name} has no rule '{rule_id}'", code="RULE_NOT_FOUND")

    def to_dbu(self, length_um: float) -> int:
        """Return ``length_um`` in database units, rounded to the nearest."""
        return round(_finite(length_um / self.dbu_um))

    def to_um(self, length: float) -> float:
        """Return ``length`` [dbu] in micrometres, rounded to a thousandth of a database unit."""
        return round(length * self.dbu_um, 6)

    def snap(self, length: float) -> int:
        """Return ``length`` [dbu] on the nearest grid point; halves go up."""
        return int((_finite(length) + self.grid / 2) // self.grid) * self.grid

    def snap_up(self, length: float) -> int:
        """Return the smallest grid point not below ``length`` [dbu]."""
        return -int(-_finite(length) // self.grid) * self.grid

    def with_layer_map(self, layer_map: Mapping[str, int | tuple[int, int]]) -> Technology:
        """Return the same technology drawn on other GDS numbers.

        Args:
            layer_map: Layer, role or alias name to a GDS layer number (datatype 0) or a (layer, datatype) pair.

        Raises:
            TechnologyError: If a name is none of the technology's.
        """
        layers = dict(self.layers)
        for name, number in layer_map.items():
            spec = self.spec(name)
            layers[spec.name] = replace(spec, gds=(number, 0) if isinstance(number, int) else number)
        return replace(self, layers=layers)


def _finite(length: float) -> float:
    """Return ``length`` [dbu], which must be a number that can be rounded.

    Raises:
        GeometryError: If it is infinite or NaN, as after a product of numbers that are too large.
    """
    if not isfinite(length):
        raise GeometryError("a length is too large: lengths of devices are in metres, places and spaces in micrometres")
    return length


@lru_cache(maxsize=32)
def _with_options(technology: Technology, options: tuple[tuple[str, str], ...]) -> Technology:
    layers = [technology.option_layers.get(option, {}).get(value, {}) for option, value in options]
    derived = {name: text for named in layers for name, text in named.items()}
    return replace(
        technology, options={**technology.options, **dict(options)}, derived={**technology.derived, **derived}
    )
