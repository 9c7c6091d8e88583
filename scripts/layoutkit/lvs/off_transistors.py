"""Compare again with transistors that are always off taken for dummies, or not, where the first comparison fails.

Extraction takes channels that are off and bear no device text for dummies, where other channels bear one. Two cases
remain. The netlist may list such dummies, as the ``reference.spice`` of the flow does: then every one has to be there.
A layout without device texts may hold dummies: then those are taken away that are of no size that the netlist has. An
NMOS whose gate is on the substrate is off as well, wherever its body is.
A transistor of the netlist that is off is compared like any other, either way.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from layoutkit.extract.connectivity import SUBSTRATE
from layoutkit.extract.extractor import combined
from layoutkit.extract.folding import fold_series, off_transistors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.extract.extracted import DrawnFinger, ExtractedDevice, Extraction
    from layoutkit.lvs.reference import Reference

Sides = tuple["Extraction", "Reference"]


def other_readings(extraction: Extraction, reference: Reference) -> Iterator[tuple[Sides, Sides]]:
    """Yield the sides to compare, each with the sides that a report shows if they match."""
    expected = [reference.devices[index] for index in sorted(off_transistors(reference.devices))]
    off = [finger for index, finger in enumerate(extraction.dummies) if index in off_transistors(extraction.dummies)]
    if expected and off:
        listed = replace(
            reference,
            devices=tuple(device for device in reference.devices if device not in expected),
            dummies=(*reference.dummies, *expected),
        )
        yield (_with_devices(extraction, off), reference), (extraction, listed)
    if any(finger.text for finger in extraction.fingers):
        return
    sizes = Counter((device.device, round(device.drawn_w_um, 6), round(device.drawn_l_um, 6)) for device in expected)
    extra = []
    for index in sorted(off_transistors(extraction.devices) | _below_all(extraction)):
        device = extraction.devices[index]
        size = (device.device, round(device.w_um, 6), round(device.l_um, 6))
        if sizes[size]:
            sizes[size] -= 1
        else:
            extra.append(device)
    if extra:
        fewer = _without_devices(extraction, extra)
        yield (fewer, reference), (fewer, reference)


def _below_all(extraction: Extraction) -> set[int]:
    """Return the indexes of NMOS transistors with their gates on the substrate, below which no source ever is."""
    return {
        index
        for index, device in enumerate(extraction.devices)
        if device.kind.name == "nmos" and extraction.reaches(device.nets["g"], SUBSTRATE)
    }


def _with_devices(extraction: Extraction, off: list[DrawnFinger]) -> Extraction:
    """Return the extraction with the dummies ``off`` that lie between two nets as devices."""
    between = [finger for finger in off if len({finger.nets[end] for end in finger.kind.ends}) > 1]
    fingers = [finger for device in extraction.devices for finger in device.fingers]
    named = {net for net, found in extraction.nets.items() if found.labels}
    devices = fold_series(combined([*fingers, *between], extraction.layout.dbu), named)
    return replace(extraction, devices=devices, dummies=tuple(f for f in extraction.dummies if f not in between))


def _without_devices(extraction: Extraction, extra: list[ExtractedDevice]) -> Extraction:
    """Return the extraction with the devices ``extra`` as dummies."""
    kept = tuple(device for device in extraction.devices if device not in extra)
    return replace(
        extraction,
        devices=kept,
        dummies=(*extraction.dummies, *(finger for device in extra for finger in device.fingers)),
    )
