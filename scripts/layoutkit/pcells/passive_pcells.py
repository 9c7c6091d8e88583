"""Resistors, capacitors, diodes and bipolar transistors as PCells: their parameters, and how they are drawn."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb

from layoutkit.draw.bipolar import KIND, NPN, BipolarSpec, bipolar, draw_bipolars
from layoutkit.draw.capacitor import CapacitorSpec
from layoutkit.draw.diode import diode, draw_diode, draw_tap, tap
from layoutkit.draw.fixed_cell import draw_fixed_cell, fixed_cell
from layoutkit.draw.generators import GENERATORS, BlockSpec, draw_block, draw_plates
from layoutkit.draw.mos_capacitor import draw_mos_capacitor, mos_capacitor
from layoutkit.draw.passive import capacitor, resistor
from layoutkit.draw.resistor import ResistorSpec, draw_resistors
from layoutkit.file_schema import frozen
from layoutkit.pcells.fields import CELL, Field, Generator, flavours, integer, named_nets
from layoutkit.technology.device_kinds import KINDS
from layoutkit.technology.passive_sizes import PassiveSize

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from layoutkit.draw.bipolar import Bipolar
    from layoutkit.draw.module import Module
    from layoutkit.pcells.fields import Drawing, Value
    from layoutkit.technology import PassiveSpec, Technology

_MICROMETRE_M = 1e-6
_TEXTS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


@dataclass(frozen=True)
class _Passive:
    """A PCell of one device, whose flavours are those of its kind.

    Attributes:
        kind: Type of its flavours, and its name.
        description: For the dialog.
        noun: Heading of the flavour.
        sides: Descriptions of ``w`` and ``l``.
        defaults: Their defaults. [um]
        count: Description of ``m``.
        nets: Description of ``nets``, and their defaults.
        terminals: What ``nets`` name.
        made: Makes the device.
        device_id: Its name.
        drawn: Draws it.
        title: Format of the text KLayout shows for one instance.
        before: Parameters between ``l`` and ``m``.
        after: Parameters behind ``m``.
    """

    kind: str
    description: str
    noun: str
    sides: tuple[str, str]
    defaults: Callable[[Technology, PassiveSpec], tuple[float, float]]
    count: str
    nets: tuple[str, str]
    terminals: tuple[str, ...]
    made: Callable[..., Any]
    device_id: str
    drawn: Callable[[kdb.Layout, Technology, Any, Mapping[str, Value]], Module]
    title: str
    before: tuple[Field, ...] = ()
    after: tuple[Field, ...] = ()

    def generator(self) -> Generator:
        """Return the generator behind the PCell."""
        return Generator(self.kind, self.description, self._fields, self._prepared, self.title.format_map)

    def _fields(self, technology: Technology) -> tuple[Field, ...]:
        names = flavours(technology, self.kind)
        width, length = self.defaults(technology, technology.passive(names[0]))
        return (
            Field("device", self.noun, names[0], choices=names),
            Field("w", self.sides[0], width, "um"),
            Field("l", self.sides[1], length, "um"),
            *self.before,
            Field("m", self.count, 1),
            *self.after,
            Field("labels", "Write net names on the pins", True),
            Field("nets", *self.nets),
        )

    def _prepared(self, technology: Technology, values: Mapping[str, Value]) -> tuple[Drawing, tuple[str, ...]]:
        nets = named_nets(values, self.terminals)
        size = _size(values, integer(values, "segments") if "segments" in values else 1)
        size = replace(size, bends=integer(values, "bends") if "bends" in values else 0)
        device = self.made(technology, self.device_id, str(values["device"]), size, nets)
        counts = {name: integer(values, name) for name in ("dummies", "columns") if name in values}
        used = {**values, **counts}
        return lambda layout: self.drawn(layout, technology, device, used), device.warnings


def _size(values: Mapping[str, Value], segments: int = 1) -> PassiveSize:
    """Return the size in ``values``, whose lengths are in micrometres."""
    width_m, length_m = (round(float(values[side]) * _MICROMETRE_M, 15) for side in ("w", "l"))
    feed_m = round(float(values.get("feed", 0)) * _MICROMETRE_M, 15)
    return PassiveSize(width_m, length_m, integer(values, "m"), segments, feed_m=feed_m)


def _gate(technology: Technology, spec: PassiveSpec) -> tuple[float, float]:
    return max(5.0, technology.to_um(spec.min_w)), max(2.0, technology.to_um(spec.min_l))


def _square(side_um: float) -> Callable[[Technology, PassiveSpec], tuple[float, float]]:
    """Return equal sides that are at least what the flavour requires."""

    def sides(technology: Technology, spec: PassiveSpec) -> tuple[float, float]:
        side = max(side_um, technology.to_um(spec.min_w), technology.to_um(spec.min_l))
        return side, side

    return sides


def _bar(technology: Technology, spec: PassiveSpec) -> tuple[float, float]:
    width = spec.widths[0] if spec.widths else spec.min_w
    return technology.to_um(width), max(10.0, technology.to_um(spec.min_l))


def _draw_resistor(layout: kdb.Layout, technology: Technology, device: Any, values: Mapping[str, Value]) -> Module:
    bulk = named_nets(values, ("p", "n", "b"))["b"]
    dummies, ring, labels = int(values["dummies"]), bool(values["ring"]), bool(values["labels"])
    spec = ResistorSpec(CELL, (device,), bulk, dummies, ring=ring, labels=labels)
    return draw_resistors(layout, technology, spec)


def _draw_capacitor(layout: kdb.Layout, technology: Technology, device: Any, values: Mapping[str, Value]) -> Module:
    columns = int(values["columns"]) or None
    return draw_plates(layout, technology, CapacitorSpec(CELL, device, columns, labels=bool(values["labels"])))


def _alone(draw: Callable[..., Module]) -> Callable[[kdb.Layout, Technology, Any, Mapping[str, Value]], Module]:
    """Return how a device without fields of its own is drawn."""
    return lambda layout, technology, device, values: draw(
        layout, technology, CELL, device, labels=bool(values["labels"])
    )


def _worded(kind: str, **functions: Any) -> _Passive:
    """Return the PCell of a kind with the texts and further fields that ``passive_pcells.json`` states of it."""
    stated = frozen(_TEXTS[kind])
    more = {place: tuple(Field(**each) for each in stated.get(place, ())) for place in ("before", "after")}
    return _Passive(kind, **{**stated, **more}, **functions)


def _of_block(technology: Technology, device_id: str, flavour: str, size: PassiveSize, nets: Mapping[str, str]) -> Any:
    """Return a device as the flow has it drawn, for a kind without an entry of its own here."""
    block = BlockSpec(CELL, technology.passive(flavour), ((device_id, size, nets),))
    scratch = kdb.Layout()
    scratch.dbu = technology.dbu_um
    return _Block(block, draw_block(scratch, technology, block).warnings)


class _Block(NamedTuple):
    spec: BlockSpec
    warnings: tuple[str, ...]


def _draw_block(layout: kdb.Layout, technology: Technology, device: _Block, values: Mapping[str, Value]) -> Module:
    module = draw_block(layout, technology, device.spec)
    for pin in module.pins if values["labels"] else ():
        layer = technology.layer(layout, technology.conductor(pin.layer).label_layer)
        module.cell.shapes(layer).insert(kdb.Text(pin.net, kdb.Trans(pin.box.center() - kdb.Point())))
    return module


_FIXED = [
    _Passive(
        name,
        f"{kind.noun} drawn as the foundry's cell, with labelled pins",
        kind.noun,
        ("Width of the junctions; 0 for that of the cell", "Length of the junctions; 0 for that of the cell"),
        lambda _, __: (0.0, 0.0),
        "Copies side by side",
        (f"Nets of {', '.join(kind.terminals)}", " ".join(kind.terminals).upper()),
        kind.terminals,
        fixed_cell,
        "D1",
        _alone(draw_fixed_cell),
        "{device} m={m}",
    )
    for name, kind in KINDS.items()
    if kind.one_size
]


def _cell_fields(kind: str, parts: str, terminals: str, nets: str) -> Callable[[Technology], tuple[Field, ...]]:
    changed = {
        "w": Field("w", f"Width of all {parts} of a unit; 0 for one", 0.0, "um"),
        "l": Field("l", "Length of each; 0 for that of the flavour", 0.0, "um"),
        "ratio": Field("ratio", "Units of the second device; 0 for none", 0),
        "dummies": Field("dummies", "Rings of dummies around", 0),
        "nets": Field("nets", f"Nets of {terminals}, substrate", nets),
    }
    return lambda technology: tuple(changed.get(each.name, each) for each in _bipolar_fields(technology, kind))


def _bipolar_fields(technology: Technology, kind: str = KIND) -> tuple[Field, ...]:
    names = flavours(technology, kind)
    spec = technology.passive(names[0])
    sides = spec.only_size or spec.usual_size or (spec.min_w, spec.min_l)
    width, length = (0.0 if spec.only_size else technology.to_um(side) for side in sides)
    return (
        Field("device", "Transistor", names[0], choices=names),
        Field("w", "Width of an emitter; 0 for that of the flavour", width, "um"),
        Field("l", "Length of an emitter; 0 for that of the flavour", length, "um"),
        Field("m", "Units of the first transistor", 1),
        Field("ratio", "Units of the second transistor; 0 for none", 8),
        Field("dummies", "Rings of dummies around", 1),
        Field("labels", "Write net names on the pins", True),
        Field("nets", "Nets of collector, base, first and second emitter", "C B E1 E2"),
    )


def _prepared_bipolar(technology: Technology, values: Mapping[str, Value]) -> tuple[Drawing, tuple[str, ...]]:
    spec = technology.passive(str(values["device"]))
    nets = named_nets(values, ("c", "b", "e1", "e2", *(("s",) if spec.cell else ())))
    size = _size(values)
    sides = spec.only_size or spec.usual_size or (spec.min_w, spec.min_l)
    width_m, length_m = (round(side * technology.dbu_um * _MICROMETRE_M, 15) for side in sides)
    if spec.cell is not None or not (size.w_m or size.l_m):
        size = replace(size, w_m=size.w_m or width_m, l_m=size.l_m or length_m)

    def device(number: int, units: int) -> Bipolar:
        own = (nets["c"], nets["b"], nets[f"e{number}"], nets.get("s", ""))
        terminals = dict(zip((*spec.kind.terminals, spec.kind.bulk), own, strict=True))
        return bipolar(technology, f"Q{number}", spec.name, replace(size, m=units), terminals)

    ratio = integer(values, "ratio")
    devices = (device(1, size.m), device(2, ratio)) if ratio else (device(1, size.m),)
    drawn = BipolarSpec(CELL, devices, integer(values, "dummies"), labels=bool(values["labels"]))
    return lambda layout: draw_bipolars(layout, technology, drawn), devices[0].warnings


_ARRAYS = (
    (KIND, "Vertical PNPs", _bipolar_fields),
    (
        NPN,
        "Bipolar transistors drawn as the foundry's cell",
        _cell_fields(NPN, "emitters", "collector, base, first and second emitter", "C B E1 E2 S"),
    ),
    (
        "varactor",
        "Varactors drawn as the foundry's cell",
        _cell_fields("varactor", "columns (lengths of gates)", "first gate, well, both second gates", "G1 W G2 G3 BN"),
    ),
)
_STATED = (
    _worded("resistor", defaults=_bar, made=resistor, drawn=_draw_resistor),
    _worded("capacitor", defaults=_square(10.0), made=capacitor, drawn=_draw_capacitor),
    _worded("mos_capacitor", defaults=_gate, made=mos_capacitor, drawn=_alone(draw_mos_capacitor)),
    _worded("diode", defaults=_square(1.0), made=diode, drawn=_alone(draw_diode)),
    _worded("tap", defaults=_square(0.78), made=tap, drawn=_alone(draw_tap)),
    *_FIXED,
)
_OTHERS = [
    _Passive(
        name,
        f"{kind.noun.capitalize()} with labelled pins",
        kind.noun.capitalize(),
        ("One side of a rectangle", "Other side of a rectangle"),
        _square(0.0),
        "Rectangles in parallel",
        (f"Nets of {', '.join(kind.terminals)}", " ".join(kind.terminals).upper()),
        kind.terminals,
        _of_block,
        f"{kind.letter}1",
        _draw_block,
        "{device} {w:g} x {l:g} m={m}",
    )
    for name, kind in KINDS.items()
    if name in GENERATORS.keys() - {each.kind for each in _STATED} - {name for name, *_ in _ARRAYS}
]
PASSIVES = (
    *(each.generator() for each in (*_STATED, *_OTHERS)),
    *(
        Generator(
            name,
            f"{what}, one or two in a ratio about one centre, with labelled pins",
            fields,
            _prepared_bipolar,
            "{device} {m}:{ratio}".format_map,
        )
        for name, what, fields in _ARRAYS
    ),
)
"""The generators of devices that are no field-effect transistors."""
