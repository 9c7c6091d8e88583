"""What extraction of capacitances finds: pieces between two nets at a place, and their sums."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from layoutkit.parasitics.net_shapes import GROUND

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from layoutkit.parasitics.rectangles import Integers

    Numbers = NDArray[np.floating]


class CapacitancePiece(NamedTuple):
    """Capacitance between two nets at one place.

    Attributes:
        net: Number of a net.
        layer: Its conductor, or ``poly``.
        other: Number of the other net; None for the substrate.
        other_layer: Its conductor, ``poly``, ``diffusion``, ``thick_diffusion``, ``well`` or ``substrate``.
        x: Place. [dbu]
        y: Place. [dbu]
        fF: Capacitance. [fF]
    """

    net: int
    layer: str
    other: int | None
    other_layer: str
    x: int
    y: int
    fF: float  # noqa: N815 - the unit


class PieceGroup(NamedTuple):
    """Pieces between two layers: nets, other nets (``GROUND`` for the substrate), places [dbu] and values [fF]."""

    nets: Integers
    layer: str
    others: Integers
    other_layer: str
    places: Integers
    values: Numbers


def divided(
    groups: Iterable[PieceGroup], shares: Mapping[int, tuple[tuple[int, float], ...]]
) -> tuple[PieceGroup, ...]:
    """Return the pieces with those of some nets divided among others, without what is then between a net and itself.

    Args:
        groups: The pieces.
        shares: Net that is to go to the nets that get its capacitance, each with its share.
    """
    if not shares:
        return tuple(groups)
    return tuple(_turned(_turned(group, shares), shares) for group in groups)


def _turned(group: PieceGroup, shares: Mapping[int, tuple[tuple[int, float], ...]]) -> PieceGroup:
    """Return pieces whose first nets are divided, with both sides exchanged."""
    numbers, index = np.unique(group.nets, return_inverse=True)
    parts = [shares.get(net, ((net, 1.0),)) for net in numbers.tolist()]
    counts = np.array([len(part) for part in parts], np.int64)
    first = np.cumsum(counts) - counts
    nets = np.array([net for part in parts for net, _ in part], np.int64)
    share = np.array([value for part in parts for _, value in part])
    each = counts[index.reshape(-1)]
    owner = np.repeat(np.arange(len(group.nets)), each)
    part = np.repeat(first[index.reshape(-1)] - (np.cumsum(each) - each), each) + np.arange(len(owner))
    kept = nets[part] != group.others[owner]
    owner, part = owner[kept], part[kept]
    return PieceGroup(
        group.others[owner],
        group.other_layer,
        nets[part],
        group.layer,
        group.places[owner],
        group.values[owner] * share[part],
    )


@dataclass(frozen=True)
class Capacitances:
    """Capacitances between nets, by their numbers.

    Attributes:
        groups: All pieces, by layers.
        merged: Pieces between the same nets and layers within a square of this size are one. [dbu]
        unchecked: What is not in it, and why.
    """

    groups: tuple[PieceGroup, ...] = field(repr=False)
    merged: int
    unchecked: tuple[str, ...] = ()

    @cached_property
    def ground_fF(self) -> dict[int, float]:  # noqa: N802 - the unit
        """Net to its capacitance to the substrate. [fF]"""
        return {net: value for (other, net), value in self._sums.items() if other == GROUND}

    @cached_property
    def coupling_fF(self) -> dict[tuple[int, int], float]:  # noqa: N802 - the unit
        """Two nets, the lower number first, to the capacitance between them. [fF]"""
        return {pair: value for pair, value in self._sums.items() if pair[0] != GROUND}

    @cached_property
    def _sums(self) -> dict[tuple[int, int], float]:
        sums: dict[tuple[int, int], float] = defaultdict(float)
        for group in self.groups:
            low, high = np.minimum(group.nets, group.others), np.maximum(group.nets, group.others)
            count = int(high.max(initial=GROUND)) - GROUND + 1  # one number for both nets is found faster than a row
            unique, index = np.unique((low - GROUND) * count + high - GROUND, return_inverse=True)
            totals = np.bincount(index.reshape(-1), group.values, len(unique))
            for key, total in zip(unique.tolist(), totals.tolist(), strict=True):
                sums[key // count + GROUND, key % count + GROUND] += total
        return {pair: value for pair, value in sorted(sums.items()) if value > 0.0}

    def total_fF(self, net: int) -> float:  # noqa: N802 - the unit
        """Return the capacitance of a net to everything. [fF]"""
        return self.ground_fF.get(net, 0.0) + sum(value for pair, value in self.coupling_fF.items() if net in pair)

    @cached_property
    def pieces(self) -> tuple[CapacitancePiece, ...]:
        """All of it by place: one piece for the same nets and layers in a square, at their mean place; sorted."""
        totals: dict[tuple[int, str, int, str, int, int], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        for group in self.groups:
            keys = np.column_stack([group.nets, group.others, group.places // self.merged])
            unique, index = np.unique(keys, axis=0, return_inverse=True)
            weights = (group.values, *(group.values * group.places.T))
            sums = [np.bincount(index.reshape(-1), each, len(unique)).tolist() for each in weights]
            for (net, other, column, row), *amounts in zip(unique.tolist(), *sums, strict=True):
                total = totals[net, group.layer, other, group.other_layer, column, row]
                for number, amount in enumerate(amounts):
                    total[number] += amount
        return tuple(
            CapacitancePiece(net, layer, None if other == GROUND else other, below, round(x / fF), round(y / fF), fF)
            for (net, layer, other, below, _, _), (fF, x, y) in sorted(totals.items())
            if fF > 0.0
        )
