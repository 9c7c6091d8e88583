"""What the parts of a circuit are for, found once: its supplies, its groups, and which of these are drawn as modules.

Groups may share devices: the load of a pair is also the diodes of two mirrors. A module is drawn as one block, so the
modules are a cut of the groups in which no device stands twice. ``Roles.cut`` says how each overlap was decided.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from layoutkit.circuit.cut import cut_groups
from layoutkit.circuit.port_uses import clock_ports, differential_inputs, port_uses, ports_on_gates
from layoutkit.circuit.ranked_names import is_ranked, plain, ranked
from layoutkit.circuit.recognise import find_groups
from layoutkit.circuit.supplies import find_supplies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit.circuit import Circuit, RecognisedModule
    from layoutkit.circuit.port_uses import PortUse
    from layoutkit.circuit.supplies import Supplies
    from layoutkit.circuit.symmetry import SymmetricStructure

_KEPT = "_roles"  # where a circuit holds its roles once they are found


@dataclass(frozen=True)
class Roles:
    """The roles in one circuit.

    Attributes:
        supplies: Power and ground, with the reasons.
        groups: Every group that was found, by type; a device may be in several.
        modules: The groups that are drawn as modules, with the devices that each keeps; no device is in two.
        cut: How overlapping groups were cut into modules, in words.
        not_matched: What looks like part of a group and is in none, with the reason, in words.
        symmetry: What is symmetric about one axis, the largest structure first.
        ports: What each port carries, and its direction.
        inputs: The two ports at the gates of a differential pair; none where there are no such ports.
        clocks: Ports that carry a clock, the main one first, and whether each is the inverse of that one.
    """

    supplies: Supplies
    groups: tuple[RecognisedModule, ...]
    modules: tuple[RecognisedModule, ...]
    cut: tuple[str, ...] = ()
    not_matched: tuple[str, ...] = ()
    symmetry: tuple[SymmetricStructure, ...] = ()
    ports: Mapping[str, PortUse] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    clocks: Mapping[str, bool] = field(default_factory=dict)


def find_roles(circuit: Circuit) -> Roles:
    """Return the roles in an oriented circuit; they are computed once for each ``Circuit`` object.

    The search runs on the circuit in canonical order, so that neither names nor the order of cards decide.
    """
    kept = vars(circuit)
    if _KEPT not in kept:
        supplies, found = find_supplies(circuit), find_groups(ranked(circuit))
        found = found if is_ranked(circuit) else plain(found)
        groups = found.groups
        modules, cut = cut_groups(groups)
        inputs = differential_inputs(circuit, supplies, groups)
        unpaired = [port for port in ports_on_gates(circuit, supplies) if port not in inputs]
        kept[_KEPT] = Roles(
            supplies,
            groups,
            modules,
            cut,
            found.not_matched,
            found.symmetry,
            ports=port_uses(circuit, supplies),
            inputs=inputs,
            clocks=clock_ports(circuit, supplies, unpaired),
        )
    roles: Roles = kept[_KEPT]
    return roles


def recognised(circuit: Circuit) -> Circuit:
    """Return an oriented circuit with its groups as its modules; their roles are kept with it."""
    found = find_roles(circuit)
    result = circuit.with_modules(found.groups)
    vars(result)[_KEPT] = found  # the roles of a circuit do not depend on the modules that it lists
    return result
