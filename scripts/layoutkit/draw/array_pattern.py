"""Which unit of an array belongs to which device, so that all devices have one centroid in x and in y.

Units of one device come in pairs that lie opposite to each other about the middle of the array. Where a count is odd,
one unit lies in the middle, or three units lie so that their places add up to the middle:

::

    2:2        1:2         3:3 (the middle is a dummy)
    A B        B A B       A A B
    B A                    B . A
                           B A B        and the like
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import TYPE_CHECKING, Any

from layoutkit.errors import GeometryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Moments = tuple[float, float, float]
Cell = tuple[int, int]
"""Column and row of a place, doubled and from the middle of the array."""

_MOST_UNITS = 2048
_MOST_TRIED = 60_000  # triples of one array; more take long and find nothing better
_MOST_CHOICES = 300  # triples of one array that are put to use
_EXCHANGES = 200  # rounds that improve the spread
FEW_PAIRS = 48  # opposite pairs, up to which plain numbers are as quick as arrays
_WIDEST = 4.0  # largest aspect


@dataclass(frozen=True)
class ArrayPattern:
    """Units in rows and columns.

    Attributes:
        rows: Device of each place, bottom row first; empty for a dummy.
        error: Largest distance between the centroids of two devices. [length unit of the pitches]
        dispersion: Device to the root of the mean square distance of its units from the middle. [the same unit]
    """

    rows: tuple[tuple[str, ...], ...]
    error: float
    dispersion: dict[str, float]


def array_pattern(units: Mapping[str, int], pitch_x: float, pitch_y: float) -> ArrayPattern:
    """Return the pattern with the smallest centroid error, then the smallest area, for devices with ``units`` each.

    The error is 0 for all counts of which at most one is 1 and the others are even or at least 3. Dummies fill the
    places that are left.

    Args:
        units: Device to its number of units.
        pitch_x: Distance of two columns.
        pitch_y: Distance of two rows.

    Raises:
        GeometryError: If a count is not positive, or there are too many units.
    """
    total = sum(units.values())
    if not units or min(units.values()) < 1 or total > _MOST_UNITS:
        raise GeometryError(
            f"an array has 1 to {_MOST_UNITS} units, at least one of each device; got {dict(units)}",
            details={"provided_value": dict(units)},
        )
    best: tuple[tuple[float, ...], dict[Cell, str], int, int] | None = None
    for columns, rows in _shapes(total, pitch_x, pitch_y, odd=sum(count % 2 for count in units.values())):
        placed = _placed(units, columns, rows)
        if placed is None:
            continue
        error = _error(units, placed, pitch_x, pitch_y)
        width, height = columns * pitch_x, rows * pitch_y
        cost = (round(error, 6), width * height * max(width / height, height / width) ** 0.5)
        if best is None or cost < best[0]:
            best = cost, placed, columns, rows
    if best is None:
        raise GeometryError(f"no array of at most aspect {_WIDEST:g} holds {dict(units)}")
    _, placed, columns, rows = best
    placed = _spread(placed, pitch_x, pitch_y)
    dispersion = {
        device: (
            sum((x * pitch_x / 2) ** 2 + (y * pitch_y / 2) ** 2 for (x, y), other in placed.items() if other == device)
            / count
        )
        ** 0.5
        for device, count in units.items()
    }
    return ArrayPattern(_rows(placed, columns, rows), _error(units, placed, pitch_x, pitch_y), dispersion)


def _shapes(total: int, pitch_x: float, pitch_y: float, odd: int) -> Iterator[tuple[int, int]]:
    """Yield columns and rows of arrays that hold ``total`` units, with few places left over."""
    spare = max(4, total // 3) + (0 if odd < 2 else 6)
    for rows in range(1, total + 3):
        for columns in range(-(-total // rows), (total + spare) // rows + 1):
            width, height = columns * pitch_x, rows * pitch_y
            if total <= 4 or max(width / height, height / width) <= _WIDEST:
                yield columns, rows


class _Places:
    """The places of an array that are free, and the devices of the others."""

    def __init__(self, columns: int, rows: int) -> None:
        self.free = {(x, y) for y in range(1 - rows, rows, 2) for x in range(1 - columns, columns, 2)}
        self.taken: dict[Cell, str] = {}

    def take(self, device: str | None, cell: Cell) -> None:
        """Give a place to a device, to a dummy where there is none."""
        self.free.discard(cell)
        if device is not None:
            self.taken[cell] = device

    def opposite(self) -> list[Cell]:
        """Return one of each two free places that are opposite to each other, those near the middle first."""
        return sorted((cell for cell in self.free if cell > (0, 0) and _mirrored(cell) in self.free), key=_from_middle)


def _placed(units: Mapping[str, int], columns: int, rows: int) -> dict[Cell, str] | None:
    """Return a device for each place that has one, opposite to each other as far as counts allow."""
    places = _Places(columns, rows)
    odd = sorted((device for device, count in units.items() if count % 2), key=units.__getitem__)
    if odd and (0, 0) in places.free and (len(odd) % 2 or units[odd[0]] == 1):
        places.take(odd.pop(0), (0, 0))
    while odd and min(units[device] for device in odd[:2]) < 3:
        pairs = places.opposite()
        if not pairs:
            return None
        places.take(odd.pop(0), pairs[0])
        places.take(odd.pop(0) if odd else None, _mirrored(pairs[0]))
    triples = _disjoint_triples(places.free, -(-len(odd) // 2), iter(range(_MOST_CHOICES)))
    if triples is None:
        return None
    for cells in triples:
        first, other = odd.pop(0), odd.pop(0) if odd else None
        for cell in cells:
            places.take(first, cell)
            places.take(other, _mirrored(cell))
    places.free.discard((0, 0))
    held = list(places.taken.values())
    order = _interleaved({device: (count - held.count(device)) // 2 for device, count in units.items()})
    pairs = places.opposite()
    if len(order) > len(pairs):
        return None
    for device, cell in zip(order, pairs, strict=False):
        places.taken[cell] = places.taken[_mirrored(cell)] = device
    return places.taken


def _mirrored(cell: Cell) -> Cell:
    return -cell[0], -cell[1]


def _from_middle(cell: Cell) -> tuple[int, int, int, int]:
    x, y = cell
    return max(abs(x), abs(y)), x * x + y * y, y, x


def _disjoint_triples(free: set[Cell], count: int, choices: Iterator[int]) -> list[tuple[Cell, ...]] | None:
    """Return ``count`` triples that share neither places nor opposite places; None where ``choices`` do not suffice."""
    if count == 0:
        return []
    for cells, _ in zip(_triples(free), choices, strict=False):
        rest = _disjoint_triples(free - {*cells, *map(_mirrored, cells)}, count - 1, choices)
        if rest is not None:
            return [cells, *rest]
    return None


def _triples(free: set[Cell]) -> Iterator[tuple[Cell, ...]]:
    """Yield three places that add up to the middle, none opposite to another, all with a free opposite place."""
    able = sorted((cell for cell in free if cell != (0, 0) and _mirrored(cell) in free), key=_from_middle)
    for one, other in islice(combinations(able, 2), _MOST_TRIED):
        third = (-one[0] - other[0], -one[1] - other[1])
        if third in free and len({one, other, third}) == 3 and third != (0, 0):
            opposite = {_mirrored(cell) for cell in (one, other, third)}
            if not opposite & {one, other, third} and opposite <= free:
                yield one, other, third


def _interleaved(counts: Mapping[str, int]) -> list[str]:
    """Return the devices, each as often as its count, evenly spread."""
    keyed = [
        ((2 * k + 1) / (2 * count), place, device)
        for place, (device, count) in enumerate(counts.items())
        for k in range(count)
    ]
    return [device for _, _, device in sorted(keyed)]


def _spread(placed: dict[Cell, str], pitch_x: float, pitch_y: float) -> dict[Cell, str]:
    """Return the places after exchanges of opposite pairs that bring the spread of all devices in x and y together."""
    pairs = [cell for cell in sorted(placed) if cell > (0, 0) and placed.get(_mirrored(cell)) == placed[cell]]
    counts, placed = Counter(placed.values()), dict(placed)
    moments = {device: [0.0, 0.0, 0.0] for device in counts}

    def of(cell: Cell) -> tuple[float, float, float]:
        x, y = cell[0] * pitch_x, cell[1] * pitch_y
        return x * x, y * y, x * y

    for cell, device in placed.items():
        moments[device] = [moment + value for moment, value in zip(moments[device], of(cell), strict=True)]
    mean = [sum(each) / len(placed) for each in zip(*moments.values(), strict=True)]
    values = [of(cell) for cell in pairs]
    for _ in range(_EXCHANGES if len(pairs) > 1 else 0):
        gain, one, other = _best_exchange(values, [placed[cell] for cell in pairs], counts, moments, mean)
        if gain >= -1e-6 * (mean[0] + mean[1]) ** 2:
            break
        a, b = placed[pairs[one]], placed[pairs[other]]
        change = [2 * (v - w) for v, w in zip(values[other], values[one], strict=True)]
        moments[a] = [moment + each for moment, each in zip(moments[a], change, strict=True)]
        moments[b] = [moment - each for moment, each in zip(moments[b], change, strict=True)]
        for cell, device in ((pairs[one], b), (pairs[other], a)):
            placed[cell] = placed[_mirrored(cell)] = device
    return placed


def _best_exchange(
    values: Sequence[Moments],
    owners: Sequence[str],
    counts: Mapping[str, int],
    moments: Mapping[str, Sequence[float]],
    mean: Sequence[float],
) -> tuple[float, int, int]:
    """Return what the best exchange of two pairs adds to the unequal spread, and the numbers of these pairs.

    Args:
        values: Of each pair, what one of its places adds to the moments of its device.
        owners: Its device.
        counts: Units of each device.
        moments: Of each device.
        mean: Of all places.
    """
    if len(values) <= FEW_PAIRS:  # also in KLayout's window, whose Python may have no numpy

        def off(device: str, its: Sequence[float]) -> float:
            x, y, xy = (value / counts[device] - goal for value, goal in zip(its, mean, strict=True))
            return x * x + y * y + xy * xy

        best, now = (0.0, 0, 0), {device: off(device, its) for device, its in moments.items()}
        for one, other in combinations(range(len(values)), 2):
            a, b = owners[one], owners[other]
            if a != b:
                change = [2 * (v - w) for v, w in zip(values[other], values[one], strict=True)]
                gain = off(a, [moment + each for moment, each in zip(moments[a], change, strict=True)])
                gain += off(b, [moment - each for moment, each in zip(moments[b], change, strict=True)])
                best = min(best, (gain - now[a] - now[b], one, other), key=lambda found: found[0])
        return best
    try:
        import numpy as np
    except ImportError as error:
        raise GeometryError(f"arrays of more than {2 * FEW_PAIRS} units need numpy, which Python lacks here") from error

    devices = list(counts)
    at, of = np.array([devices.index(device) for device in owners]), np.array(values)
    totals = np.array([float(counts[device]) for device in devices])[:, None]
    held = np.array([moments[device] for device in devices])

    def away(its: Any, totals: Any) -> Any:
        return ((its / totals - mean) ** 2).sum(axis=-1)

    change, now = 2 * (of[None, :] - of[:, None]), away(held, totals)  # of the device of the first pair, by the second
    gains = away(held[at][:, None] + change, totals[at][:, None])
    gains = gains + away(held[at][None, :] - change, totals[at][None, :]) - now[at][:, None] - now[at][None, :]
    gains[~np.triu(np.ones(gains.shape, dtype=bool), 1) | (at[:, None] == at[None, :])] = 0
    one, other = divmod(int(gains.argmin()), len(values))
    return float(gains[one, other]), one, other


def _error(units: Mapping[str, int], placed: Mapping[Cell, str], pitch_x: float, pitch_y: float) -> float:
    sums = {device: [0, 0] for device in units}
    for (x, y), device in placed.items():
        sums[device][0] += x
        sums[device][1] += y
    centres = [(sums[d][0] / units[d] * pitch_x / 2, sums[d][1] / units[d] * pitch_y / 2) for d in units]
    return max(
        (((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) ** 0.5 for a, b in product(centres, centres)),
        default=0.0,
    )


def _rows(placed: Mapping[Cell, str], columns: int, rows: int) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(placed.get((2 * x + 1 - columns, 2 * y + 1 - rows), "") for x in range(columns)) for y in range(rows)
    )
