"""Transistors, matched pairs and mirrors as PCells: their parameters, and how they are drawn."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from layoutkit.draw.deep_well import DeepWellNets, deep_well_of, isolate
from layoutkit.draw.group import MirrorSpec, PairSpec, draw_mirror, draw_pair
from layoutkit.draw.mos import MosSize, MosSpec, Transistor, compact_rows, draw_mos, transistor
from layoutkit.draw.ring import RingKind, RingSide, RingStyle
from layoutkit.errors import GeometryError
from layoutkit.pcells.fields import CELL, Field, Generator, flavours, integer, named_nets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.pcells.fields import Drawing, Value
    from layoutkit.technology import Technology


_MICROMETRE_M = 1e-6


def transistor_generators(kind: str) -> tuple[Generator, ...]:
    """Return the generators of transistors of type ``kind``: one alone, a matched pair, and a current mirror."""
    upper, size = kind.upper(), "W={w:g} L={l:g} nf={nf}"
    return (
        Generator(
            kind,
            f"{upper} transistor with taps and labelled pins",
            partial(_mos_fields, kind),
            _prepared_mos,
            f"{{device}} {size} m={{m}}".format_map,
        ),
        Generator(
            f"{kind}_pair",
            f"Matched pair of {upper} transistors with a common centroid",
            partial(_pair_fields, kind),
            _prepared_pair,
            f"{{device}} pair {{arrangement}} {size}".format_map,
        ),
        Generator(
            f"{kind}_mirror",
            f"Current mirror of {upper} transistors",
            partial(_mirror_fields, kind),
            _prepared_mirror,
            _mirror_title,
        ),
    )


def _mos_fields(kind: str, technology: Technology) -> tuple[Field, ...]:
    return (
        *_size_fields(technology, kind),
        *_end_fields(technology, kind, f"{_NETS} drain, gate, source, bulk", "D G S B"),
    )


def _prepared_mos(technology: Technology, values: Mapping[str, Value]) -> tuple[Drawing, tuple[str, ...]]:
    device = _transistor(technology, values, "M1", named_nets(values, ("d", "g", "s", "b")))
    spec = MosSpec(device, CELL, dummies=integer(values, "dummies"), labels=bool(values["labels"]), ring=_ring(values))
    spec = replace(spec, rows=compact_rows(technology, spec))
    return _in_deep_well(technology, values, lambda layout: draw_mos(layout, technology, spec)), device.warnings


def _pair_fields(kind: str, technology: Technology) -> tuple[Field, ...]:
    space = max(technology.dim("active_space"), 500)
    nets = f"{_NETS} drain A, gate A, drain B, gate B, source, bulk"
    return (
        *_size_fields(technology, kind, nf=2),
        Field("arrangement", _ARRANGEMENT, "auto"),
        Field("axis", "Symmetry axis", "vertical", choices=("vertical", "horizontal")),
        Field("interdigitate", "Units share diffusion", True),
        Field("spacing", "Distance of diffusions that are not shared", technology.to_um(space), "um"),
        *_end_fields(technology, kind, nets, "D1 G1 D2 G2 S B", dummies=2),
    )


def _prepared_pair(technology: Technology, values: Mapping[str, Value]) -> tuple[Drawing, tuple[str, ...]]:
    nets = named_nets(values, ("d1", "g1", "d2", "g2", "s", "b"))
    shared = {"s": nets["s"], "b": nets["b"]}
    first, second = (
        _transistor(technology, values, f"M{number}", {"d": nets[f"d{number}"], "g": nets[f"g{number}"], **shared})
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


def _mirror_fields(kind: str, technology: Technology) -> tuple[Field, ...]:
    size = [field for field in _size_fields(technology, kind, nf=2) if field.name != "m"]
    return (
        *size,
        Field("ratio", "Units of each transistor, the reference first", "1 1"),
        Field("cascode", "With cascodes in a second row", False),
        Field("arrangement", _ARRANGEMENT, "auto"),
        *_end_fields(technology, kind, f"{_NETS} gate, source, bulk", "BIAS S B", dummies=2),
    )


def _prepared_mirror(technology: Technology, values: Mapping[str, Value]) -> tuple[Drawing, tuple[str, ...]]:
    nets = named_nets(values, ("gate", "s", "b"))
    cascode = bool(values["cascode"])
    mirror, cascodes = [], []
    for number, m in enumerate(_units(str(values["ratio"])), 1):
        outer = nets["gate"] if number == 1 else f"OUT{number - 1}"
        outer = f"{outer}_CAS" if number == 1 and cascode else outer
        inner = nets["gate"] if number == 1 else f"X{number}"
        drain = inner if cascode else outer
        terminals = {"d": drain, "g": nets["gate"], "s": nets["s"], "b": nets["b"]}
        mirror.append(_transistor(technology, {**values, "m": m}, f"M{number}", terminals))
        if cascode:
            terminals = {"d": outer, "g": f"{nets['gate']}_CAS", "s": drain, "b": nets["b"]}
            cascodes.append(_transistor(technology, {**values, "m": m}, f"C{number}", terminals))
    arrangement, dummies = str(values["arrangement"]), integer(values, "dummies")
    spec = MirrorSpec(CELL, tuple(mirror), tuple(cascodes), arrangement, dummies, bool(values["labels"]), _ring(values))
    warnings = tuple(text for device in mirror for text in device.warnings)
    return _in_deep_well(technology, values, lambda layout: draw_mirror(layout, technology, spec)), warnings


def _mirror_title(values: Mapping[str, Value]) -> str:
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


def _end_fields(technology: Technology, kind: str, nets: str, default: str, *, dummies: int = 0) -> tuple[Field, ...]:
    deep = technology.deep_well
    able = deep is not None and any(technology.device(name).type == kind for name in deep.devices)
    deep_well = (
        Field("isolated", "In a deep well, with a body of its own", False),
        Field("well_nets", "Nets of the deep well and of the substrate", "VDD VSS"),
    )
    return (
        Field("dummies", "Dummy fingers at each end", dummies),
        Field("ring", "Taps around the devices", "full", choices=("full", "open", "double", "none")),
        Field("open_sides", "Sides without taps: bottom, top, left, right", ""),
        Field("outer_net", "Net of the outer ring of a double ring; VDD or VSS if empty", ""),
        *(deep_well if able else ()),
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
