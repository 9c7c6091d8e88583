"""Bulks of resistors: compared where the netlist states them, told where it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from layoutkit.lvs.mismatch import listed

if TYPE_CHECKING:
    from layoutkit.extract.extracted import Extraction
    from layoutkit.lvs.reference import Reference


def without_unstated_bulks(extraction: Extraction, reference: Reference) -> tuple[Extraction, Reference, list[str]]:
    """Return both sides without the bulks of those types of passives of which the netlist gives two terminals.

    The third value tells which are not compared.
    """
    technology = extraction.technology
    bare = sorted(
        {
            device.device
            for device in reference.devices
            if device.device in technology.passives and "b" not in device.nets
        }
    )
    left_out = [name for name in bare if technology.passives[name].terminals > 2]
    if not left_out:
        return extraction, reference, []
    devices = tuple(
        replace(d, nets={t: net for t, net in d.nets.items() if t != "b"}) if d.device in left_out else d
        for d in reference.devices
    )
    told = f"the bulk of {listed(left_out)} is not compared: the netlist gives two terminals"
    return extraction.without_bulks_of(left_out), replace(reference, devices=devices), [told]
