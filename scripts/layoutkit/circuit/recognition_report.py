"""What was understood of a circuit, as a designer would say it: supplies, groups, symmetry, what matches nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutkit.circuit.across_cells import groups_across_cells
from layoutkit.circuit.orientation import carries_both_ways, is_off
from layoutkit.circuit.recognise import MODULE_TYPES
from layoutkit.circuit.repeated import find_repeated
from layoutkit.circuit.roles import find_roles
from layoutkit.circuit.suggested_constraints import stages_without_order
from layoutkit.errors import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.circuit.symmetry import SymmetricStructure


MOST_NAMED = 40
"""Most devices or pairs that a sentence names; of others the number is told."""


def recognition_data(circuit: Circuit) -> dict[str, Any]:
    """Return what was understood of an oriented circuit as JSON data.

    ``supplies`` and ``groups`` are lists of objects; ``cut``, ``across_cells``, ``symmetry``, ``not_matched`` and
    ``undefined_cells`` are sentences; ``drain_source_exchanged`` and ``carry_both_ways`` name transistors.
    """
    roles = find_roles(circuit)
    kinds = {**dict.fromkeys(roles.supplies.power, "power"), **dict.fromkeys(roles.supplies.ground, "ground")}
    turned = (device for device in circuit.devices if device.exchanged)
    return {
        "supplies": [
            {"net": net, "kind": kind, "reason": roles.supplies.reasons.get(net, "")} for net, kind in kinds.items()
        ],
        "groups": [
            {"id": group.id, "what": MODULE_TYPES[group.type].words, "devices": list(group.devices)}
            for group in roles.groups
        ],
        "cut": [*roles.cut, *stages_without_order(circuit)],
        "across_cells": list(groups_across_cells(circuit, find_repeated(circuit)).words),
        "symmetry": symmetry_lines(roles.symmetry),
        "not_matched": list(roles.not_matched),
        "drain_source_exchanged": [d.id for d in turned if not (d.both_ways or is_off(d, roles.supplies))],
        "carry_both_ways": sorted(carries_both_ways(circuit)),
        "undefined_cells": undefined_cells(circuit),
    }


def symmetry_lines(structures: Sequence[SymmetricStructure]) -> list[str]:
    """Return one sentence for each symmetric structure, the largest first."""
    lines = []
    for each in structures:
        words = [f"{left} and {right}" for _, left, right in each.pairs]
        text = f"{listed(words, MOST_NAMED)} mirror each other about one axis"
        if each.centred:
            text += f", with {listed(each.centred, MOST_NAMED)} on it"
        if each.net_pairs:
            text += f"; nets {listed((f'{left}/{right}' for left, right in each.net_pairs), MOST_NAMED)}"
        if each.unmatched:
            text += f"; {each.unmatched} device{'s have' if each.unmatched > 1 else ' has'} no image on these nets"
        lines.append(text)
    return lines


def undefined_cells(circuit: Circuit) -> list[str]:
    """Return each instance of a cell that the netlist does not define, with its nets and the devices on them."""
    lines = []
    supplies = find_roles(circuit).supplies
    for box in circuit.black_boxes:
        nets = [net for net in dict.fromkeys(box.nets.values()) if net not in supplies]
        on_it = dict.fromkeys(place.device for net in nets for place in circuit.nets[net])
        hangs = f"; on these nets: {listed(on_it, MOST_NAMED)}" if on_it else ""
        lines.append(
            f"{box.id} is a {box.cell}, which the netlist does not define, on {' '.join(nets) or 'supplies'}{hangs}"
        )
    return lines
