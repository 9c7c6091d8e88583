"""Join the gate rails of two rows that face each other without sharing them, by short wires between the rows.

The links lie on the third conductor, in pairs that mirror each other about x = 0. No channel lies below them, and the
gates need no risers at the ends of the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from layoutkit.draw.row_metal import hull
from layoutkit.draw.sketch import Area

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from layoutkit.draw.row_metal import Metal

LEVEL = 2


class GateLink(NamedTuple):
    """A wire on level ``LEVEL`` over the rails of one net. [dbu]"""

    net: str
    area: Area
    rails: tuple[Area, Area]


def gate_links(
    lower: Sequence[tuple[str, Area]], upper: Sequence[tuple[str, Area]], half_width: int, metal: Metal
) -> list[GateLink]:
    """Return two links for each net that has a rail in both rows, or none if they find no room.

    Args:
        lower: Nets and gate rails of the lower row.
        upper: Those of the upper row.
        half_width: How far from x = 0 the links may reach. [dbu]
        metal: Conductors and cuts.
    """
    above, cut = dict(upper), metal.cuts[LEVEL - 1]
    pairs = [(net, rail, above[net]) for net, rail in lower if net in above]
    width = metal.even(2 * cut.size + cut.space + 2 * cut.enclose_above_end)
    pitch = metal.even(width + metal.space(LEVEL, width))
    if (2 * len(pairs) - 1) * pitch // 2 + width // 2 > half_width:
        return []
    found = []
    for slot, (net, one, other) in enumerate(pairs):
        span = hull((one, other))
        if (span.top - span.bottom) * width < metal.conductors[LEVEL].area:
            return []
        for side in (-1, 1):
            left = side * (2 * slot + 1) * pitch // 2 - width // 2
            found.append(GateLink(net, Area(left, span.bottom, left + width, span.top), (one, other)))
    return found


def link_shapes(links: Sequence[GateLink], metal: Metal) -> Iterator[tuple[str, Area]]:
    """Yield the links and their cuts, as (layer, area)."""
    for link in links:
        yield metal.layer(LEVEL), link.area
        for rail in link.rails:
            for area in metal.cuts_between(LEVEL - 1, rail, link.area):
                yield metal.cuts[LEVEL - 1].layer, area
