"""Where the units of matched bipolar transistors stand: rows and columns with one common centroid.

::

    B B B        1:8, the single unit in the middle. A unit cannot be cut, so that an exact common centroid needs
    B A B        places that are opposite about the middle, the middle itself, or three places whose centre is the
    B B B        middle. Places that remain are dummies.

No exact arrangement exists where two transistors have one unit each: only one can stand in the middle.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from layoutkit.errors import GeometryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    Place = tuple[int, int]
    Taken = dict[Place, int]

Rows = tuple[tuple[int | None, ...], ...]
"""Rows from the bottom up, each from left to right: the index of the transistor, None for a dummy."""

FILLER = "."
_LEAST_PLACES = 9  # tried even for few units: 1:3 needs 3 x 3
_WIDEST = 4  # most columns per row, and rows per column
_ELONGATED = 0.15  # places that count as much as one more column than rows [relative]


def rows_of(pattern: Sequence[str], counts: Sequence[int]) -> Rows:
    """Return the arrangement that ``pattern`` states, a common centroid where it is empty.

    Raises:
        GeometryError: If the pattern is not one of ``counts`` units per transistor.
    """
    return drawn_as(pattern, counts) if pattern else common_centroid(counts)


def common_centroid(counts: Sequence[int]) -> Rows:
    """Return the smallest arrangement of ``counts`` units per transistor, with a common centroid where one exists.

    It may have up to twice as many places as units. Where none of those is exact, the smallest one without places left
    over is returned, with the odd units nearest to the middle.

    Raises:
        GeometryError: If a count is not positive.
    """
    if not counts or min(counts) < 1:
        raise GeometryError("every transistor has one unit at least", details={"units": list(counts)})
    total = sum(counts)
    sizes = _sizes(total, max(2 * total, _LEAST_PLACES))
    for columns, rows in sizes:
        taken = _exact(columns, rows, counts)
        if taken is not None:
            return _rows(columns, rows, taken)
    columns, rows = sizes[0]
    return _rows(columns, rows, _nearest(columns, rows, counts))


def drawn_as(pattern: Sequence[str], counts: Sequence[int]) -> Rows:
    """Return the arrangement that ``pattern`` states: rows from the top down, ``A`` for the first transistor.

    Args:
        pattern: Rows of equal length; ``.`` is a dummy.
        counts: Units of each transistor.

    Raises:
        GeometryError: If the rows differ in length, or the letters are not those of the transistors as often as they
            have units.
    """
    letters = [chr(ord("A") + index) for index in range(len(counts))]
    wanted = dict(zip(letters, counts, strict=True))
    text = "".join(pattern)
    found = {letter: text.count(letter) for letter in sorted(set(text) - {FILLER})}
    if not pattern or len({len(row) for row in pattern}) != 1 or found != wanted:
        listed = ", ".join(f"{count} x {letter}" for letter, count in wanted.items())
        raise GeometryError(
            f"the pattern must be rows of equal length with {listed} and '{FILLER}' for dummies, got {list(pattern)}",
            details={"param_name": "pattern", "units": wanted},
        )
    index = {letter: number for number, letter in enumerate(letters)}
    return tuple(tuple(index.get(letter) for letter in row) for row in reversed(list(pattern)))


def as_text(rows: Rows) -> list[str]:
    """Return the rows from the top down as ``drawn_as`` reads them."""
    return ["".join(FILLER if one is None else chr(ord("A") + one) for one in row) for row in reversed(rows)]


def with_dummies(rows: Rows, rings: int) -> Rows:
    """Return the rows with ``rings`` rings of dummies around them."""
    for _ in range(rings):
        empty = (None,) * (len(rows[0]) + 2)
        rows = (empty, *((None, *row, None) for row in rows), empty)
    return rows


def _sizes(total: int, most: int) -> list[Place]:
    """Return columns and rows of every arrangement to try, the smallest and squarest first."""
    found = [
        (columns * rows * (1 + _ELONGATED * (columns / rows - 1)), columns, rows)
        for rows in range(1, most + 1)
        for columns in range(rows, min(most // rows, _WIDEST * rows) + 1)
        if columns * rows >= total
    ]
    return [(columns, rows) for _, columns, rows in sorted(found)]


def _places(columns: int, rows: int) -> list[Place]:
    """Return the places about the middle in half pitches, the innermost first; opposite ones follow each other."""
    places = [(2 * x - columns + 1, 2 * y - rows + 1) for y in range(rows) for x in range(columns)]
    return sorted(places, key=lambda at: (at[0] ** 2 + at[1] ** 2, max(at, (-at[0], -at[1])), at))


def _exact(columns: int, rows: int, counts: Sequence[int]) -> Taken | None:
    """Return place to transistor with one centroid for all, None where this arrangement has none."""
    places = _places(columns, rows)
    odd = sorted((index for index, count in enumerate(counts) if count % 2), key=lambda index: counts[index])
    taken: Taken = {}
    left = list(counts)
    free = set(places)
    if odd:
        if (0, 0) not in free or any(counts[index] == 1 for index in odd[1:]):
            return None
        taken[0, 0] = odd[0]
        left[odd[0]] -= 1
    free.discard((0, 0))
    threes = odd[1:]
    for first, second in zip(threes[::2], [*threes[1::2], None][: len(threes[::2])], strict=True):
        three = _three(places, free)
        if three is None:
            return None
        opposite = [(-x, -y) for x, y in three]
        free -= {*three, *opposite}
        taken.update(dict.fromkeys(three, first))
        left[first] -= 3
        if second is not None:
            taken.update(dict.fromkeys(opposite, second))
            left[second] -= 3
    pairs = [at for at in places if at in free and at > (-at[0], -at[1])]
    if sum(left) > 2 * len(pairs):
        return None
    for at, index in zip(pairs, _interleaved([count // 2 for count in left]), strict=False):
        taken[at] = taken[-at[0], -at[1]] = index
    return taken


def _three(places: Sequence[Place], free: set[Place]) -> tuple[Place, Place, Place] | None:
    """Return the innermost three free places whose centre is the middle, no two of them opposite."""
    inner = [at for at in places if at in free]
    for first, second in combinations(inner, 2):
        third = (-first[0] - second[0], -first[1] - second[1])
        three = (first, second, third)
        if third in free and len({*three, *((-x, -y) for x, y in three)}) == 2 * len(three):
            return three
    return None


def _interleaved(counts: Sequence[int]) -> list[int]:
    """Return ``counts[i]`` times each index ``i``, spread evenly."""
    total, given = sum(counts), [0] * len(counts)
    order = []
    for step in range(total):
        behind = [count * (step + 1) / total - done for count, done in zip(counts, given, strict=True)]
        chosen = max(range(len(counts)), key=lambda index: (behind[index], -index))
        given[chosen] += 1
        order.append(chosen)
    return order


def _nearest(columns: int, rows: int, counts: Sequence[int]) -> Taken:
    """Return place to transistor with as many opposite pairs as there are, and the odd units nearest to the middle."""
    places = _places(columns, rows)
    odd = [index for index, count in enumerate(counts) if count % 2]
    taken = dict(zip(places, odd, strict=False))
    rest = [at for at in places if at not in taken and (-at[0], -at[1]) not in taken]
    pairs = [at for at in rest if at > (-at[0], -at[1])]
    order = _interleaved([count // 2 for count in counts])
    for at, index in zip(pairs, order, strict=False):
        taken[at] = taken[-at[0], -at[1]] = index
    lonely = [at for at in places if at not in taken]
    for index in order[len(pairs) :]:
        taken[lonely.pop(0)] = taken[lonely.pop(0)] = index
    return taken


def _rows(columns: int, rows: int, taken: Taken) -> Rows:
    return tuple(tuple(taken.get((2 * x - columns + 1, 2 * y - rows + 1)) for x in range(columns)) for y in range(rows))
