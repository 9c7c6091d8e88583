"""Where the units of matched bipolar transistors stand: rows and columns with one common centroid.

::

    B B B        1:8, the single unit in the middle. A unit cannot be cut, so that an exact common centroid needs
    B A B        places that are opposite about the middle, the middle itself, or three places whose centre is the
    B B B        middle. Places that remain are dummies.

No exact arrangement exists where two transistors have one unit each: only one can stand in the middle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.draw.array_pattern import array_pattern
from layoutkit.errors import GeometryError

if TYPE_CHECKING:
    from collections.abc import Sequence

Rows = tuple[tuple[int | None, ...], ...]
"""Rows from the bottom up, each from left to right: the index of the transistor, None for a dummy."""

FILLER = "."


def rows_of(pattern: Sequence[str], counts: Sequence[int]) -> Rows:
    """Return the arrangement that ``pattern`` states, a common centroid where it is empty.

    Raises:
        GeometryError: If the pattern is not one of ``counts`` units per transistor.
    """
    return drawn_as(pattern, counts) if pattern else common_centroid(counts)


def common_centroid(counts: Sequence[int]) -> Rows:
    """Return the arrangement of ``counts`` units with the smallest centroid error; see ``array_pattern``.

    Raises:
        GeometryError: If a count is not positive, or there are too many units.
    """
    rows = array_pattern({str(index): count for index, count in enumerate(counts)}, 1, 1).rows
    return tuple(tuple(int(device) if device else None for device in row) for row in rows)


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
