"""How unequal the parasitics of nets are that should mirror each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.parasitics.net_network import NetNetwork
from layoutkit.parasitics.net_parasitics import PairMismatch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.circuit.constraints import Constraints
    from layoutkit.parasitics.net_parasitics import NetParasitics


def pair_mismatches(
    constraints: Constraints | None, nets: Sequence[NetParasitics], networks: Mapping[str, NetNetwork]
) -> tuple[PairMismatch, ...]:
    """Return the mismatch of each pair of nets that the constraints mirror, once each, in their order.

    Args:
        constraints: State the pairs of nets and of devices; None for none.
        nets: Figures of all nets.
        networks: Network of each net, by its name; empty where resistances are not known.
    """
    groups = () if constraints is None else constraints.symmetry
    mirror: dict[str, str] = {}
    devices: dict[str, str] = {}
    for group in groups:
        for images, pairs in ((mirror, group.net_pairs), (devices, group.pairs)):
            for one, other in pairs:
                images[one], images[other] = other, one
    by_name, empty = {net.net: net for net in nets}, NetNetwork()
    once: dict[frozenset[str], tuple[str, str]] = {}  # two groups may mirror the same nets
    for group in groups:
        for one, other in group.net_pairs:
            once.setdefault(frozenset((one, other)), (one, other))
    return tuple(
        _mismatch(
            by_name[one],
            by_name[other],
            mirror,
            _mirrored_ohms(networks.get(one, empty), networks.get(other, empty), devices),
        )
        for one, other in once.values()
        if one in by_name and other in by_name
    )


def _mirrored_ohms(one: NetNetwork, other: NetNetwork, devices: Mapping[str, str]) -> list[tuple[float, float]]:
    """Return the resistances of two nets to terminals that mirror each other. [ohm]

    They start at the ports where both nets have one, else at the first of those terminals.
    """
    common = [
        (node, other.nodes[image])
        for (device, terminal), node in sorted(one.nodes.items())
        if (image := (devices.get(device, device), terminal)) in other.nodes
    ]
    if one.own and one.start == other.start == "port":
        starts = (one.own, other.own)
    elif common:
        starts = common.pop(0)
    else:
        return []
    ohms = [
        network.between(start, [pair[side] for pair in common])
        for side, (network, start) in enumerate(zip((one, other), starts, strict=True))
    ]
    return list(zip(*ohms, strict=True))


def _mismatch(
    one: NetParasitics, other: NetParasitics, mirror: Mapping[str, str], ohms: Sequence[tuple[float, float]]
) -> PairMismatch:
    totals = (one.total_fF, other.total_fF)
    mean = sum(totals) / 2
    reached = sorted({*one.coupling_fF, *(mirror.get(net, net) for net in other.coupling_fF)} - {other.net})
    differences = {
        net: abs(one.coupling_fF.get(net, 0.0) - other.coupling_fF.get(mirror.get(net, net), 0.0)) for net in reached
    }
    worst = max(differences, key=lambda net: differences[net], default="")
    mean_ohm = sum(sum(pair) for pair in ohms) / (2 * len(ohms)) if ohms else 0.0
    return PairMismatch(
        nets=(one.net, other.net),
        total_fF=totals,
        capacitance_percent=100 * abs(totals[0] - totals[1]) / mean if mean else 0.0,
        coupling_percent=100 * differences.get(worst, 0.0) / mean if mean else 0.0,
        coupling_net=worst,
        resistance_percent=100 * max(abs(a - b) for a, b in ohms) / mean_ohm if mean_ohm else None,
    )
