"""Resistors, plate and MOS capacitors and diodes as PCells: their parameters, and how they are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.draw.bipolar import KIND, BipolarSpec, bipolar, draw_bipolars
from layoutkit.draw.capacitor import CapacitorSpec, draw_capacitor
from layoutkit.draw.diode import diode, draw_diode
from layoutkit.draw.mos_capacitor import draw_mos_capacitor, mos_capacitor
from layoutkit.draw.passive import capacitor, resistor
from layoutkit.draw.resistor import ResistorSpec, draw_resistors
from layoutkit.pcells.fields import Field, integer, named_nets, passive_flavours
from layoutkit.pcells.transistors import CELL
from layoutkit.technology.passive_sizes import PassiveSize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.pcells.fields import Value
    from layoutkit.pcells.transistors import Drawing
    from layoutkit.technology import Technology

_MICROMETRE_M = 1e-6


def _size(values: Mapping[str, Value], segments: int = 1) -> PassiveSize:
    """Return the size in ``values``, whose lengths are in micrometres."""
    width_m, length_m = (round(float(values[side]) * _MICROMETRE_M, 15) for side in ("w", "l"))
    return PassiveSize(width_m, length_m, integer(values, "m"), segments)


class ResistorCell:
    """Bars of one resistor, in series and parallel."""

    name = "resistor"
    description = "Poly resistor with substrate ring and labelled pins"

    def fields(self, technology: Technology) -> tuple[Field, ...]:
        """Return its parameters."""
        flavours = passive_flavours(technology, self.name)
        spec = technology.passive(flavours[0])
        width = spec.widths[0] if spec.widths else spec.min_w
        return (
            Field("device", "Resistor", flavours[0], choices=flavours),
            Field("w", "Width of a bar", technology.to_um(width), "um"),
            Field("l", "Resistive length of all bars in series", max(10.0, technology.to_um(spec.min_l)), "um"),
            Field("segments", "Bars in series", 1),
            Field("m", "Strings in parallel", 1),
            Field("dummies", "Dummy bars at each end", 0),
            Field("ring", "Substrate ring", True),
            Field("labels", "Write net names on the pins", True),
            Field("nets", "Nets of the two ends and the substrate", "P N B"),
        )

    def prepared(self, technology: Technology, values: Mapping[str, Value]) -> tuple[Drawing, tuple[str, ...]]:
        """Return how to draw it, and what was rounded.

        Raises:
            GeometryError: If a value is not allowed.
        """
        nets = named_nets(values, ("p", "n", "b"))
        device = resistor(technology, "R1", str(values["device"]), _size(values, integer(values, "segments")), nets)
        spec = ResistorSpec(
            CELL,
            (device,),
            nets["b"],
            dummies=integer(values, "dummies"),
            ring=bool(values["ring"]),
            labels=bool(values["labels"]),
        )
        return lambda layout: draw_resistors(layout, technology, spec), device.warnings

    def title(self, values: Mapping[str, Value]) -> str:
        """Return the text KLayout shows for one instance."""
        return f"{values['device']} W={values['w']:g} L={values['l']:g} in {values['segments']} m={values['m']}"


class CapacitorCell:
    """Equal plates in parallel."""

    name = "capacitor"
    description = "Plate (MIM) capacitor with labelled pins"

    def fields(self, technology: Technology) -> tuple[Field, ...]:
        """Return its parameters."""
        flavours = passive_flavours(technology, self.name)
        spec = technology.passive(flavours[0])
        side = max(10.0, technology.to_um(spec.min_w), technology.to_um(spec.min_l))
        return (
            Field("device", "Capacitor", flavours[0], choices=flavours),
            Field("w", "Width of one plate", side, "um"),
            Field("l", "Length of one plate", side, "um"),
            Field("m", "Plates in parallel", 1),
            Field("columns", "Plates side by side; 0 for about a square", 0),
            Field("labels", "Write net names on the pins", True),
            Field("nets", "Nets of top and bottom plate", "P N"),
        )

    def prepared(self, technology: Technology, values: Mapping[str, Value]) -> tuple[Drawing, tuple[str, ...]]:
        """Return how to draw it, and what was rounded.

        Raises:
            GeometryError: If a value is not allowed.
        """
        device = capacitor(technology, "C1", str(values["device"]), _size(values), named_nets(values, ("p", "n")))
        spec = CapacitorSpec(CELL, device, integer(values, "columns") or None, labels=bool(values["labels"]))
        return lambda layout: draw_capacitor(layout, technology, spec), device.warnings

    def title(self, values: Mapping[str, Value]) -> str:
        """Return the text KLayout shows for one instance."""
        return f"{values['device']} {values['w']:g} x {values['l']:g} m={values['m']}"


class MosCapacitorCell:
    """Gates over diffusion, all in parallel."""

    name = "mos_capacitor"
    description = "MOS capacitor (varactor) with tap ring and labelled pins"

    def fields(self, technology: Technology) -> tuple[Field, ...]:
        """Return its parameters."""
        flavours = passive_flavours(technology, self.name)
        spec = technology.passive(flavours[0])
        return (
            Field("device", "MOS capacitor", flavours[0], choices=flavours),
            Field("w", "Width of one gate", max(5.0, technology.to_um(spec.min_w)), "um"),
            Field("l", "Length of one gate", max(2.0, technology.to_um(spec.min_l)), "um"),
            Field("m", "Gates in parallel", 1),
            Field("labels", "Write net names on the pins", True),
            Field("nets", "Nets of the gates and of the diffusion", "P N"),
        )

    def prepared(self, technology: Technology, values: Mapping[str, Value]) -> tuple[Drawing, tuple[str, ...]]:
        """Return how to draw it, and what was rounded.

        Raises:
            GeometryError: If a value is not allowed.
        """
        nets = named_nets(values, ("p", "n"))
        device = mos_capacitor(technology, "C1", str(values["device"]), _size(values), nets)
        labels = bool(values["labels"])
        return lambda layout: draw_mos_capacitor(layout, technology, CELL, device, labels=labels), device.warnings

    def title(self, values: Mapping[str, Value]) -> str:
        """Return the text KLayout shows for one instance."""
        return f"{values['device']} W={values['w']:g} L={values['l']:g} m={values['m']}"


class DiodeCell:
    """Equal rectangles of diffusion in parallel."""

    name = "diode"
    description = "Junction diode with tap ring and labelled pins"

    def fields(self, technology: Technology) -> tuple[Field, ...]:
        """Return its parameters."""
        flavours = passive_flavours(technology, self.name)
        spec = technology.passive(flavours[0])
        side = max(1.0, technology.to_um(spec.min_w), technology.to_um(spec.min_l))
        return (
            Field("device", "Diode", flavours[0], choices=flavours),
            Field("w", "One side of a rectangle", side, "um"),
            Field("l", "Other side of a rectangle", side, "um"),
            Field("m", "Rectangles in parallel", 1),
            Field("labels", "Write net names on the pins", True),
            Field("nets", "Nets of anode and cathode", "P N"),
        )

    def prepared(self, technology: Technology, values: Mapping[str, Value]) -> tuple[Drawing, tuple[str, ...]]:
        """Return how to draw it, and what was rounded.

        Raises:
            GeometryError: If a value is not allowed.
        """
        device = diode(technology, "D1", str(values["device"]), _size(values), named_nets(values, ("p", "n")))
        labels = bool(values["labels"])
        return lambda layout: draw_diode(layout, technology, CELL, device, labels=labels), device.warnings

    def title(self, values: Mapping[str, Value]) -> str:
        """Return the text KLayout shows for one instance."""
        return f"{values['device']} {values['w']:g} x {values['l']:g} m={values['m']}"


class BipolarCell:
    """Vertical PNPs in one array: one transistor, or two in a ratio."""

    name = KIND
    description = "Vertical PNPs, one or two in a ratio about one centre, with labelled pins"

    def fields(self, technology: Technology) -> tuple[Field, ...]:
        """Return its parameters."""
        flavours = passive_flavours(technology, self.name)
        spec = technology.passive(flavours[0])
        width, length = spec.only_size or spec.usual_size or (spec.min_w, spec.min_l)
        return (
            Field("device", "Transistor", flavours[0], choices=flavours),
            Field(
                "w",
                "Width of an emitter; 0 for that of the flavour",
                0.0 if spec.only_size else technology.to_um(width),
                "um",
            ),
            Field(
                "l",
                "Length of an emitter; 0 for that of the flavour",
                0.0 if spec.only_size else technology.to_um(length),
                "um",
            ),
            Field("m", "Units of the first transistor", 1),
            Field("ratio", "Units of the second transistor; 0 for none", 8),
            Field("dummies", "Rings of dummies around", 1),
            Field("labels", "Write net names on the pins", True),
            Field("nets", "Nets of collector, base, first and second emitter", "C B E1 E2"),
        )

    def prepared(self, technology: Technology, values: Mapping[str, Value]) -> tuple[Drawing, tuple[str, ...]]:
        """Return how to draw it, and what was rounded.

        Raises:
            GeometryError: If a value is not allowed.
        """
        nets = named_nets(values, ("c", "b", "e1", "e2"))
        spec = technology.passive(str(values["device"]))
        size = _size(values)
        if not (size.w_m or size.l_m):
            sides = spec.only_size or spec.usual_size or (spec.min_w, spec.min_l)
            width_m, length_m = (round(side * technology.dbu_um * _MICROMETRE_M, 15) for side in sides)
            size = PassiveSize(width_m, length_m, size.m)
        counts = [size.m, integer(values, "ratio")]
        devices = tuple(
            bipolar(
                technology,
                f"Q{number}",
                spec.name,
                PassiveSize(size.w_m, size.l_m, count),
                {"c": nets["c"], "b": nets["b"], "e": nets[f"e{number}"]},
            )
            for number, count in enumerate(counts, 1)
            if count or number == 1
        )
        drawn = BipolarSpec(CELL, devices, integer(values, "dummies"), labels=bool(values["labels"]))
        return lambda layout: draw_bipolars(layout, technology, drawn), devices[0].warnings

    def title(self, values: Mapping[str, Value]) -> str:
        """Return the text KLayout shows for one instance."""
        return f"{values['device']} {values['m']}:{values['ratio']}"
