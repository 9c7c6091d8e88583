"""The order in which the points of a space are tried: a scrambled Sobol sequence, the same for the same seed.

Each point depends on the seed and its number alone, not on earlier results. So the layouts of a search are the same on
one core and on a cluster, whichever finishes first, and those of a smaller budget are the first of a larger one.
Decision 0021 compares this with a search that learns.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from layoutkit.errors import MissingProgramError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.explore.search_space import Point, Space

_BLOCK = 256
_FRUITLESS_BLOCKS = 4
_ALL_AT_MOST = 1_000_000
"""A space of more points is never walked through in whole."""


def planned_points(space: Space, seed: int, count: int) -> tuple[list[Point], str]:
    """Return ``count`` different points, or all where there are fewer, and how they are chosen: ``all``, ``sobol``.

    Raises:
        MissingProgramError: If SciPy, which makes the sequence, is needed and not installed.
    """
    if space.size <= count:
        return list(space.all_points()), "all"
    return list(islice(sampled_points(space, seed), count)), "sobol"


def sampled_points(space: Space, seed: int) -> Iterator[Point]:
    """Yield different points that cover the space evenly; those of a small space all come in the end."""
    try:
        from scipy.stats import qmc
    except ImportError:
        raise MissingProgramError(
            "a search that does not cover its whole space needs SciPy: install the extra 'explore', or let the budget "
            f"be at least the {space.size} layouts of this space",
            details={"missing": "scipy", "extra": "explore"},
        ) from None

    free = [(name, values) for name, values in space.axes.items() if len(values) > 1]
    fixed = {name: values[0] for name, values in space.axes.items()}
    sequence = qmc.Sobol(len(free), scramble=True, rng=seed)
    seen: set[tuple[int, ...]] = set()
    fruitless = 0
    while fruitless < _FRUITLESS_BLOCKS and len(seen) < space.size:
        before = len(seen)
        for row in sequence.random(_BLOCK):
            place = tuple(min(int(u * len(values)), len(values) - 1) for u, (_, values) in zip(row, free, strict=True))
            if place not in seen:
                seen.add(place)
                yield {**fixed, **{name: values[index] for (name, values), index in zip(free, place, strict=True)}}
        fruitless = fruitless + 1 if len(seen) == before else 0
    if len(seen) < space.size <= _ALL_AT_MOST:
        for point in space.all_points():
            place = tuple(values.index(point[name]) for name, values in free)
            if place not in seen:
                yield point
