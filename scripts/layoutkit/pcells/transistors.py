"""Transistors, matched pairs and mirrors as PCells: their parameters, and how they are drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from layoutkit.draw.current_mirror import MirrorSpec, draw_mirror
from layoutkit.draw.deep_well import DeepWellNets, deep_well_of, isolate
from layoutkit.draw.mos import MosSize, MosSpec, compact_rows, draw_mos, transistor
from layoutkit.draw.pair import PairSpec, draw_pair
from layoutkit.draw.ring import RingStyle
from layoutkit.errors import GeometryError
from layoutkit.pcells.fields import Field, flavours, integer, named_nets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.draw.mos import Transistor
    from layoutkit.draw.ring import RingKind, RingSide
    from layoutkit.pcells.fields import Value
    from layoutkit.technology import Technology

    Drawing = Callable[[kdb.Layout], Module]


CELL = "pcell"
_MICROMETRE_M = 1e-6


@dataclass(frozen=True)
class Mos:
    """One transistor."""

    kind: str

    @property
    def name(self) -> str:
        """Name of the PCell."""
        return self.kind

    @property
    def description(self) -> str:
        """What it is, for the dialog."""
        return f"{self.kind.upper()} transistor with taps and labelled pins"

    def fields(self, technology: Technology) -> tuple[Field, ...]:
        """Return its parameters."""
        return (
            *_size_fields(technology, self.kind),
            *_end_fields(technology, self.kind, f"{_NETS} drain, gate, source, bulk", "D G S B"),
        )

    def prepared(self, technology: Technology, values: Mapping[str, Value]) -> tuple[Drawing, tuple[str, ...]]:
        """Return how to draw it, and what was rounded.

        Raises:
            GeometryError: If a value is not allowed.
        """
        nets = named_nets(values, ("d", "g", "s", "b"))
        device = _transistor(technology, values, "M1", nets)
        spec = MosSpec(
            device, CELL, dummies=integer(values, "dummies"), labels=bool(values["labels"]), ring=_ring(values)
        )
        spec = replace(spec, rows=compact_rows(technology, spec))
        return _in_deep_well(technology, values, lambda layout: draw_mos(layout, technology, spec)), device.warnings

    def title(self, values: Mapping[str, Value]) -> str:
        """Return the text KLayout shows for one instance."""
        return f"{values['device']} W={values['w']:g} L={values['l']:g} nf={values['nf']} m={values['m']}"


@dataclass(frozen=True)
class Pair:
    """Two matched transistors."""

    kind: str

    @property
    def name(self) -> str:
        """Name of the PCell."""
        return f"{self.kind}_pair"

    @property
    def description(self) -> str:
        """What it is, for the dialog."""
        return f"Matched pair of {self.kind.upper()} transistors with a common centroid"

    def fields(self, technology: Technology) -> tuple[Field, ...]:
        """Return its parameters."""
        space = max(technology.dim("active_space"), 500)
        return (
            *_size_fields(technology, self.kind, nf=2),
            Field("arrangement", _ARRANGEMENT, "auto"),
            Field("axis", "Symmetry axis", "vertical", choices=("vertical", "horizontal")),
            Field("interdigitate", "Units share diffusion", True),
            Field("spacing", "Distance of diffusions that are not shared", technology.to_um(space), "um"),
            *_matched_end_fields(
                technology, self.kind, f"{_NETS} drain A, gate A, drain B, gate B, source, bulk", "D1 G1 D2 G2 S B"
            ),
        )

    def prepared(self, technology: Technology, values: Mapping[str, Value]) -> tuple[Drawing, tuple[str, ...]]:
        """Return how to draw it, and what was rounded.

        Raises:
            GeometryError: If a value is not allowed.
        """
        nets = named_nets(values, ("d1", "g1", "d2", "g2", "s", "b"))
        first, second = (
            _transistor(
                technology,
                values,
                f"M{number}",
                {"d": nets[f"d{number}"], "g": nets[f"g{number}"], "s": nets["s"], "b": nets["b"]},
            )
            for number in (1, 2)
        )
        spec = PairSpec(
            CELL,
            first,
            second,
            arrangement=str(values["arrangement"]),
            axis="vertical" if values["axis"] == "vertical" else "horizontal",
            spacing=technology.to_dbu(float(values["spacing"])),
            interdigitate=bool(values["interdigitate"]),
            dummies=integer(values, "dummies"),
            labels=bool(values["labels"]),
            ring=_ring(values),
        )
        drawing = _in_deep_well(technology, values, lambda layout: draw_pair(layout, technology, spec))
        return drawing, (*first.warnings, *second.warnings)

    def title(self, values: Mapping[str, Value]) -> str:
        """Return the text KLayout shows for one instance."""
        return f"{values['device']} pair {values['arrangement']} W={values['w']:g} L={values['l']:g} nf={values['nf']}"


@dataclass(frozen=True)
class Mirror:
    """A current mirror, simple or with a cascode on each transistor."""

    kind: str

    @property
    def name(self) -> str:
        """Name of the PCell."""
        return f"{self.kind}_mirror"

    @property
    def description(self) -> str:
        """What it is, for the dialog."""
        return f"Current mirror of {self.kind.upper()} transistors"

    def fields(self, technology: Technology) -> tuple[Field, ...]:
        """Return its parameters."""
        size = [field for field in _size_fields(technology, self.kind, nf=2) if field.name != "m"]
        return (
            *size,
            Field("ratio", "Units of each transistor, the reference first", "1 1"),
            Field("cascode", "With cascodes in a second row", False),
            Field("arrangement", _ARRANGEMENT, "auto"),
            *_matched_end_fields(technology, self.kind, f"{_NETS} gate, source, bulk", "BIAS S B"),
        )

    def prepared(self, technology: Technology, values: Mapping[str, Value]) -> tuple[Drawing, tuple[str, ...]]:
        """Return how to draw it, and what was rounded.

        Raises:
            GeometryError: If a value is not allowed.
        """
        nets = named_nets(values, ("gate", "s", "b"))
        units = _units(str(values["ratio"]))
        cascode = bool(values["cascode"])
        mirror, cascodes = [], []
        for number, m in enumerate(units, 1):
            outer = nets["gate"] if number == 1 else f"OUT{number - 1}"
            outer = f"{outer}_CAS" if number == 1 and cascode else outer
            inner = nets["gate"] if number == 1 else f"X{number}"
            drain = inner if cascode else outer
            mirror.append(
                _transistor(
                    technology,
                    {**values, "m": m},
                    f"M{number}",
                    {"d": drain, "g": nets["gate"], "s": nets["s"], "b": nets["b"]},
                )
            )
            if cascode:
                terminals = {"d": outer, "g": f"{nets['gate']}_CAS", "s": drain, "b": nets["b"]}
                cascodes.append(_transistor(technology, {**values, "m": m}, f"C{number}", terminals))
        spec = MirrorSpec(
            CELL,
            tuple(mirror),
            tuple(cascodes),
            str(values["arrangement"]),
            integer(values, "dummies"),
            bool(values["labels"]),
            _ring(values),
        )
        warnings = tuple(text for device in mirror for text in device.warnings)
        return _in_deep_well(technology, values, lambda layout: draw_mirror(layout, technology, spec)), warnings

    def title(self, values: Mapping[str, Value]) -> str:
        """Return the text KLayout shows for one instance."""
        ratio = ":".join(str(values["ratio"]).replace(",", " ").replace(":", " ").split())
        return f"{values['device']} mirror {ratio} W={values['w']:g} L={values['l']:g} nf={values['nf']}"


_ARRANGEMENT = "auto, interdigitated, stacked, or a pattern of units such as ABBA, A2B4A2, AB/BA"
_NETS = "Nets of"


def _size_fields(technology: Technology, kind: str, nf: int = 1) -> tuple[Field, ...]:
    names = flavours(technology, kind)
    spec = technology.device(names[0])
    width = technology.to_um(max(4 * spec.min_w, 2 * spec.min_l) * nf)
    return (
        Field("device", "Transistor", names[0], choices=names),
        Field("w", "Total gate width of one unit, over its fingers", width, "um"),
        Field("l", "Gate length", technology.to_um(spec.min_l), "um"),
        Field("nf", "Fingers of one unit", nf),
        Field("m", "Units in parallel", 1),
    )


def _matched_end_fields(technology: Technology, kind: str, nets: str, default: str) -> tuple[Field, ...]:
    return _end_fields(technology, kind, nets, default, dummies=2)


def _end_fields(technology: Technology, kind: str, nets: str, default: str, *, dummies: int = 0) -> tuple[Field, ...]:
    deep_well = (
        Field("isolated", "In a deep well, with a body of its own", False),
        Field("well_nets", "Nets of the deep well and of the substrate", "VDD VSS"),
    )
    return (
        Field("dummies", "Dummy fingers at each end", dummies),
        Field("ring", "Taps around the devices", "full", choices=("full", "open", "double", "none")),
        Field("open_sides", "Sides without taps: bottom, top, left, right", ""),
        Field("outer_net", "Net of the outer ring of a double ring; VDD or VSS if empty", ""),
        *(deep_well if technology.deep_well is not None and kind == "nmos" else ()),
        Field("labels", "Write net names on the pins", True),
        Field("nets", nets, default),
    )


def _in_deep_well(technology: Technology, values: Mapping[str, Value], drawing: Drawing) -> Drawing:
    """Return ``drawing``, in a deep well if the body is to be isolated."""
    if not values.get("isolated", False):
        return drawing
    device = technology.device(str(values["device"]))
    deep_well_of(technology, device)
    nets = str(values["well_nets"]).replace(",", " ").split()
    if len(nets) != 2:
        raise GeometryError(f"well_nets must name the nets of the deep well and the substrate, got {' '.join(nets)!r}")
    wells, labels = DeepWellNets(nets[0], nets[1]), bool(values["labels"])
    return lambda layout: isolate(technology, drawing(layout), device, wells, labels=labels)


def _ring(values: Mapping[str, Value]) -> RingStyle:
    sides = str(values["open_sides"]).replace(",", " ").split()
    # RingStyle checks the names; KLayout's dialog gives any text.
    return RingStyle(
        cast("RingKind", values["ring"]), cast("tuple[RingSide, ...]", tuple(sides)), str(values["outer_net"])
    )


def _transistor(technology: Technology, values: Mapping[str, Value], name: str, nets: Mapping[str, str]) -> Transistor:
    size = MosSize(
        round(float(values["w"]) * _MICROMETRE_M, 15),
        round(float(values["l"]) * _MICROMETRE_M, 15),
        integer(values, "nf"),
        integer(values, "m"),
    )
    device = transistor(technology, name, str(values["device"]), size, nets)
    return replace(device, warnings=tuple(text.removeprefix(f"{name}: ") for text in device.warnings))


def _units(text: str) -> list[int]:
    words = text.replace(",", " ").replace(":", " ").split()
    if not words or not all(word.isdecimal() and int(word) > 0 for word in words):
        raise GeometryError(f"ratio must list positive integers such as '1 2', got {text!r}")
    return [int(word) for word in words]
