"""The drawing dimensions that generators need from a technology, and what each means.

This list is used by the check of technology files and by the page that explains the format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layoutkit.technology.device_specs import DeviceSpec

ALWAYS = {
    "gate_space": "poly to poly",
    "gate_extension": "poly beyond the channel (end cap)",
    "source_drain_extension": "diffusion beyond a gate",
    "contact_to_gate": "contact on diffusion to gate",
    "active_width": "minimum width of diffusion",
    "active_space": "diffusion to diffusion, and to the tap ring",
    "active_contact_enclosure": "diffusion beyond contact, all sides",
    "active_contact_enclosure_end": "the same on two opposite sides",
    "tap_width": "minimum width of a tap",
    "tap_contact_enclosure": "tap beyond contact, all sides",
    "tap_contact_enclosure_end": "the same on two opposite sides",
    "poly_contact_enclosure": "poly beyond contact, all sides",
    "poly_contact_enclosure_end": "the same on two opposite sides",
    "gate_contact_to_active": "contact on poly to diffusion",
    "gate_contact_to_tap": "contact on poly to tap",
    "poly_to_active": "poly on field to diffusion",
    "poly_to_tap": "poly on field to tap",
    "implant_enclosure": "implant beyond the diffusion of transistors; 0 where it is not drawn",
    "implant_tap_enclosure": "implant beyond taps; 0 where it is not drawn",
    "implant_width": "minimum width of an implant",
    "implant_space": "implant to implant of the same type",
    "implant_to_active": "implant to diffusion or tap of the other type",
    "bulk_implant_to_channel": "implant of the tap ring to channels",
    "well_active_enclosure": "well beyond the diffusion of transistors",
    "well_tap_enclosure": "well beyond taps",
    "well_width": "minimum width of a well",
    "well_space": "well to well on another net",
    "active_to_well": "diffusion of transistors to a well they do not lie in",
    "tap_to_well": "taps to a well they do not lie in",
    "tap_max_distance": "diffusion to the nearest tap, at most",
}
WITH_POLY_CONTACT_MARKER = {
    "poly_contact_marker_enclosure": "role poly_contact_marker beyond contacts on poly",
    "poly_contact_marker_width": "its minimum width",
    "poly_contact_marker_space": "its spacing",
    "poly_contact_marker_to_active_contact": "it to contacts on diffusion",
}
WITH_MARKERS = {
    "marker_enclosure": "the device's markers beyond its diffusion",
    "marker_space": "their spacing",
}
WITH_COVERS = {
    "cover_enclosure": "the device's covers beyond its tap ring",
    "cover_space": "their spacing",
    "cover_to_others": "covers to devices that do not have them",
}
WITH_BLOCK = {
    "drain_block": "silicide block beside the gate at the drain, where the netlist states none",
    "drain_block_min": "the same, at least",
    "drain_block_max": "the same, at most",
    "source_block": "silicide block beside the gate at the source, where the netlist states none",
    "source_block_min": "the same, at least",
    "source_block_max": "the same, at most",
    "block_to_contact": "silicide block to contact",
    "block_enclosure": "silicide block beyond the diffusion that it crosses",
}
WITH_DRAIN_MARKER = {
    "gate_over_field": "gate beyond the diffusion below it, towards the drain",
    "drain_space": "diffusion below the gate to the tap that is the drain",
    "drain_bevel": "cut from the corners of the drain",
    "drain_well_overlap": "well of the drain, or hole in the well, over the diffusion below the gate",
    "drain_well_enclosure": "the same beyond the drain",
    "drain_well_bevel": "cut from its corners",
    "drain_well_to_tap": "the same to the tap ring",
}
OPTIONAL = {
    "well_fill": "gaps of a merged well below this width are filled, where a layer is made from wide wells",
    "well_core_inset": "what is this far inside a well makes it a wide one, from which a layer is made",
    "well_core_space": "wide parts of one well, without their insets, are joined below this distance",
}
DEEP_WELL = {
    "width": "minimum width of the deep n well",
    "space": "deep n well to deep n well that is not merged with it",
    "beyond_hole": "deep n well beyond the hole of the ring of n well",
    "active_enclosure": "deep n well beyond the diffusion in it",
    "active_to_ring": "diffusion and taps to the ring, where this is more than active_to_well and tap_to_well",
    "ring_enclosure": "ring of n well beyond the deep n well",
    "body_active_enclosure": "drawn p well beyond the diffusion of transistors",
    "body_tap_enclosure": "drawn p well beyond its taps",
    "body_enclosure": "deep n well beyond the drawn p well",
    "body_to_tap": "drawn p well to the taps of the deep n well",
    "tap_enclosure": "deep n well beyond its taps",
    "n_well_enclosure": "deep n well beyond an n well in it",
    "p_active_enclosure": "deep n well beyond the diffusion of transistors in an n well in it",
    "to_wells": "deep n well to n wells outside it",
    "to_active": "deep n well to diffusion of transistors outside it",
    "to_taps": "deep n well to substrate taps outside it",
    "cover_enclosure": "covers (thick oxide) of the devices beyond the deep n well",
}
"""Lengths of the section ``deep_well``; one that a process does not state is 0."""
DEEP_WELL_ALWAYS = ("width", "space", "to_wells")
DEEP_WELL_RING = ("beyond_hole", "ring_enclosure")
DEEP_WELL_BODY = ("body_active_enclosure", "body_tap_enclosure", "body_enclosure", "body_to_tap", "tap_enclosure")
KNOWN = {
    **ALWAYS,
    **OPTIONAL,
    **WITH_POLY_CONTACT_MARKER,
    **WITH_MARKERS,
    **WITH_COVERS,
    **WITH_BLOCK,
    **WITH_DRAIN_MARKER,
}


def needed(device: DeviceSpec, *, poly_contact_marker: bool) -> tuple[str, ...]:
    """Return the dimensions that drawing ``device`` needs.

    Args:
        device: Flavour.
        poly_contact_marker: Whether the technology has the role of that name.
    """
    names = [*ALWAYS]
    names += WITH_POLY_CONTACT_MARKER if poly_contact_marker else ()
    names += WITH_MARKERS if device.markers else ()
    names += WITH_COVERS if device.covers else ()
    names += WITH_BLOCK if device.block else ()
    names += WITH_DRAIN_MARKER if device.drain_marker else ()
    return tuple(names)
