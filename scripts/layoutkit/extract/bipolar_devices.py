"""Recognise vertical bipolar transistors: emitters surrounded by the same shapes as in the foundry's cell.

An emitter is p+ diffusion in a well, covered by the markers of the device. It is accepted if the process has a device
of its size and if base, well, collector, implants and markers are where the foundry's cell has them. Otherwise it is
reported, with the first difference. Neighbours may share the sides of their collector rings. Therefore only the shapes
inside the ring are compared exactly; the ring must exist and have contacts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.technology.bipolar_frames import frames_of, layer_of_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from layoutkit.technology import PassiveSpec, Technology
    from layoutkit.technology.bipolar_frames import Frame

    Layer = Callable[[str], kdb.Region]

_INSIDE = ("base", "well", "base_implant", "emitter_implant")
_WORDS = {
    "base": "the base ring",
    "collector": "the collector ring",
    "well": "the well",
    "base_implant": "the implant of the base",
    "emitter_implant": "the implant of the emitter",
    "collector_implant": "the implant of the collector",
}


def sized_emitters(spec: PassiveSpec, found: kdb.Region) -> kdb.Region:
    """Return those of the emitters ``found`` that are rectangles of a size that ``spec`` has.

    Args:
        spec: A flavour.
        found: Diffusion below the markers of the flavour.
    """
    fitting = kdb.Region()
    for emitter in found.merged().each():
        if emitter.is_box() and _upright(spec, emitter.bbox()) is not None:
            fitting.insert(emitter)
    return fitting


def emitters_of(technology: Technology, spec: PassiveSpec, found: kdb.Region, layer: Layer) -> kdb.Region:
    """Return those of the emitters ``found`` that are transistors of the flavour ``spec``."""
    kept = kdb.Region()
    for emitter in sized_emitters(spec, found).each():
        if not difference(technology, spec, emitter.bbox(), layer):
            kept.insert(emitter)
    return kept


def loose_emitters(
    technology: Technology, specs: list[PassiveSpec], found: Mapping[str, kdb.Region], known: kdb.Region, layer: Layer
) -> list[tuple[kdb.Region, str]]:
    """Return what looks like a bipolar transistor but is none, and markers without one, each with the reason.

    Args:
        technology: The process.
        specs: All flavours.
        found: Flavour to the diffusion below its markers.
        known: The emitters of all transistors.
        layer: Returns the merged shapes of a layer.
    """
    loose: list[tuple[kdb.Region, str]] = []
    reported = known.dup()
    for spec in specs:
        fitting = sized_emitters(spec, found[spec.name])
        loose += [
            (kdb.Region(emitter), f"not a {spec.name}: {_why(technology, spec, emitter.bbox(), layer)}")
            for emitter in (fitting - reported).merged().each()
        ]
        reported += fitting
    for spec in specs:
        others = found[spec.name].merged().not_interacting(reported)
        sizes = ", ".join(_size_text(technology, each) for each in specs)
        loose.append((others, f"the emitter of no bipolar transistor of {technology.name}, which has {sizes}"))
        reported += others
    markers = {name for spec in specs for name in spec.markers if technology.spec(name).purpose == "marker"}
    loose += [
        (layer(marker).merged().not_interacting(reported), f"{marker} marks no bipolar transistor")
        for marker in sorted(markers)
    ]
    return [(region, reason) for region, reason in loose if not region.is_empty()]


def difference(technology: Technology, spec: PassiveSpec, emitter: kdb.Box, layer: Layer) -> str:
    """Return what differs from the cell of ``spec`` around an emitter of its size; empty where nothing does."""
    turned = bool(_upright(spec, emitter))
    frames = _frames(technology, spec, emitter, turned=turned)
    window = kdb.Region(emitter.enlarged(*frames["collector"][0]))
    drawn: dict[str, kdb.Region] = {}
    expected: dict[str, kdb.Region] = {technology.resolve("active"): kdb.Region(emitter)}
    for name, frame in frames.items():
        role = layer_of_frame(spec, name)
        if role is None:
            continue
        key = technology.resolve(role)
        ring = _ring(emitter, frame)
        if name not in _INSIDE and not (ring - layer(role)).is_empty():
            return f"{_WORDS.get(name, name)} is missing or not whole"
        expected[key] = expected.get(key, kdb.Region()) + (ring & window)
    for name in (*_INSIDE, *spec.markers):
        role = layer_of_frame(spec, name) if name in frames else None
        if role is not None:
            key = technology.resolve(role)
            drawn[key] = layer(role) & window
            if not (drawn[key] ^ expected[key].merged()).is_empty():
                return f"{_WORDS.get(name, name)} is not that of the foundry's cell"
    for name in ("base", "collector"):
        ring = _ring(emitter, frames[name])
        if layer(technology.contact.layer).inside(ring).is_empty():
            return f"{_WORDS[name]} has no contact"
    return ""


def _why(technology: Technology, spec: PassiveSpec, emitter: kdb.Box, layer: Layer) -> str:
    return difference(technology, spec, emitter, layer) or "it belongs to two flavours"


def _frames(technology: Technology, spec: PassiveSpec, emitter: kdb.Box, *, turned: bool) -> Mapping[str, Frame]:
    """Return the frames around ``emitter``, x and y exchanged where it lies on its side."""
    width = emitter.height() if turned else emitter.width()
    frames = frames_of(spec, width, technology.grid)
    if not turned:
        return frames
    return {name: ((inner[1], inner[0]), (outer[1], outer[0])) for name, (inner, outer) in frames.items()}


def _ring(emitter: kdb.Box, frame: Frame) -> kdb.Region:
    inner, outer = frame
    region = kdb.Region(emitter.enlarged(*outer))
    return region if inner == (0, 0) else region - kdb.Region(emitter.enlarged(*inner))


def _upright(spec: PassiveSpec, emitter: kdb.Box) -> bool | None:
    """Return whether an emitter lies on its side; None where the process has none of its size."""

    def allowed(width: int, length: int) -> bool:
        wide = spec.min_w <= width <= (spec.max_w or width)
        return wide and spec.min_l <= length <= (spec.max_l or length)

    sides = (emitter.width(), emitter.height())
    if allowed(*sides) and (sides[0] <= sides[1] or not allowed(*reversed(sides))):
        return False
    return True if allowed(*reversed(sides)) else (False if allowed(*sides) else None)


def _size_text(technology: Technology, spec: PassiveSpec) -> str:
    low = f"{technology.to_um(spec.min_w):g} x {technology.to_um(spec.min_l):g} um"
    return f"{spec.name} ({low}{'' if spec.only_size else ' and more'})"
