"""The lengths that a diffusion row is drawn with, read from the technology once.

Two kinds of enclosure appear everywhere: ``side`` holds across a strip (all sides), ``end`` along it (two opposite
sides), as in rules that require more "on one of two adjacent sides".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from layoutkit.technology import DeviceSpec, Technology


class RowSizes(NamedTuple):
    """Lengths of one device flavour's diffusion rows. [dbu]

    ``strip`` is the vertical wire on the first conductor, ``rail`` the horizontal one on the second, ``riser`` the
    vertical one on the third, ``cut`` joins strip and rail, ``via`` rail and riser, ``marker`` surrounds poly contacts,
    ``flavour`` is how far the device's own markers extend beyond the diffusion, ``block`` how far
    the silicide block does.
    """

    grid: int
    contact: int
    contact_space: int
    contact_to_gate: int
    active_side: int
    active_end: int
    active_space: int
    source_drain: int
    gate_space: int
    gate_extension: int
    poly_to_active: int
    head_side: int
    head_end: int
    gate_contact_to_active: int
    marker: int
    marker_space: int
    marker_to_contact: int
    strip: int
    strip_space: int
    strip_side: int
    strip_end: int
    strip_area: int
    cut: int
    cut_space: int
    cut_strip_end: int
    cut_rail_end: int
    rail: int
    rail_space: int
    rail_area: int
    via: int
    riser: int
    implant: int
    implant_space: int
    implant_width: int
    flavour: int
    flavour_space: int
    block: int
    block_to_contact: int


def row_sizes(tech: Technology, device: DeviceSpec) -> RowSizes:
    """Return the lengths for rows of ``device`` in ``tech``.

    Raises:
        TechnologyError: If the technology does not state one of them.
    """
    first, second, third = tech.conductors[:3]
    contact, cut, via = tech.contact, tech.cuts[0], tech.cuts[1]
    has_marker = tech.role("poly_contact_marker") is not None

    def dim(name: str) -> int:
        return tech.dim(name, device)

    def even(length: int, like: int = 0) -> int:
        """Return the smallest length, not below ``length``, in which ``like`` can be centred on the grid."""
        return like + -(-(length - like) // (2 * tech.grid)) * 2 * tech.grid

    return RowSizes(
        grid=tech.grid,
        contact=contact.size,
        contact_space=contact.space,
        contact_to_gate=dim("contact_to_gate"),
        active_side=dim("active_contact_enclosure"),
        active_end=max(dim("active_contact_enclosure"), dim("active_contact_enclosure_end")),
        active_space=dim("active_space"),
        source_drain=dim("source_drain_extension"),
        gate_space=dim("gate_space"),
        gate_extension=dim("gate_extension"),
        poly_to_active=dim("poly_to_active"),
        head_side=dim("poly_contact_enclosure"),
        head_end=max(dim("poly_contact_enclosure"), dim("poly_contact_enclosure_end")),
        gate_contact_to_active=dim("gate_contact_to_active"),
        marker=dim("poly_contact_marker_enclosure") if has_marker else 0,
        marker_space=dim("poly_contact_marker_space") if has_marker else 0,
        marker_to_contact=dim("poly_contact_marker_to_active_contact") if has_marker else 0,
        strip=even(
            max(first.width, contact.size + 2 * contact.enclose_above, cut.size + 2 * cut.enclose_below), contact.size
        ),
        strip_space=first.space,
        strip_side=contact.enclose_above,
        strip_end=max(contact.enclose_above, contact.enclose_above_end),
        strip_area=first.area,
        cut=cut.size,
        cut_space=cut.space,
        cut_strip_end=max(cut.enclose_below, cut.enclose_below_end),
        cut_rail_end=max(cut.enclose_above, cut.enclose_above_end),
        rail=even(max(second.width, cut.size + 2 * cut.enclose_above, via.size + 2 * via.enclose_below), cut.size),
        rail_space=second.space,
        rail_area=second.area,
        via=via.size,
        riser=even(max(third.width, via.size + 2 * via.enclose_above), via.size),
        implant=dim("implant_enclosure"),
        implant_space=dim("implant_space"),
        implant_width=dim("implant_width"),
        flavour=dim("marker_enclosure") if device.markers else 0,
        flavour_space=dim("marker_space") if device.markers else 0,
        block=dim("block_enclosure") if device.block else 0,
        block_to_contact=dim("block_to_contact") if device.block else dim("active_contact_enclosure"),
    )
