"""Find isolated boxes: rectangles of a deep n well, below a marker with a text, that hold a p well of their own.

Other devices may lie in the p well, and are found as anywhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.extract.resistor_devices import diffusion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.extract.cell_devices import CellDevices, Layer
    from layoutkit.technology import PassiveSpec, Technology

KIND = "isolated_box"


def add_boxes(technology: Technology, spec: PassiveSpec, layer: Layer, texts: Layer, found: CellDevices) -> None:
    """Add the isolated boxes: rectangles of well and marker that bear the text, with a closed ring of n well in them.

    The p well is reached by the metal on the p+ taps in the ring, the n well by that on the n+ taps of the ring.
    """
    whole = (layer(spec.well) + layer(spec.markers[0])).merged()
    contacts = layer(technology.contact.layer) & diffusion(technology, layer)
    p_plus, metal = layer(str(technology.device("nmos").bulk_implant)), technology.conductors[0].name
    boxes = kdb.Region()
    pins = {terminal: kdb.Region() for terminal in ("p", "n")}
    for polygon in whole.interacting(texts(spec.ring_text)).each():
        box = kdb.Region(polygon)
        ring = (layer("nwell") & box).merged()
        p_well = box - ring
        if not polygon.is_box() or ring.count() != 1 or p_well.count() != 1 or not (p_well - ring.hulls()).is_empty():
            found.loose.setdefault(spec.type, []).append((box, "its ring of n well is not whole"))
            continue
        pins["p"] += contacts & p_well & p_plus
        pins["n"] += (contacts & ring) - p_plus
        boxes += box
    if boxes.is_empty():
        return
    found.emitters[spec.name] = found.boxes = boxes
    # KLayout takes the base outside the emitter for the collector, so the layers of the terminals must be larger.
    around = boxes.sized(1)
    found.inside |= {f"box.{terminal}": around.dup() for terminal in spec.kind.terminals}
    found.pins |= {(f"box.{terminal}", metal): region for terminal, region in pins.items()}


def box_extractor(
    _: Technology, spec: PassiveSpec, boxes: kdb.Region, conducting: Mapping[str, kdb.Region]
) -> tuple[kdb.DeviceExtractorBase, dict[str, kdb.Region]]:
    """Return the extractor of isolated boxes, as bipolar transistors whose emitter is the whole box."""
    ends = [conducting.get(f"cell.box.{name}", kdb.Region()) for name in spec.kind.terminals]
    layers = {"C": kdb.Region(), "B": ends[1], "E": boxes}
    return kdb.DeviceExtractorBJT3Transistor(spec.name), {**layers, "tC": ends[0], "tB": ends[1], "tE": ends[2]}
