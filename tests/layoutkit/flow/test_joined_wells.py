"""Wells of one net that stand too close become one well, on the manufacturing grid."""

import random

import klayout.db as kdb
import pytest

from layoutkit.flow.placing import _joined
from layoutkit.technology import load, names

REAL = sorted(set(names()) - {"generic"})
# Wells of a circuit in sg13g2; two of them nearly meet at a corner.
WELLS = (
    (0, 11500, 3570, 14360), (-8160, 17430, -5100, 20230), (0, 17430, 3060, 20640), (0, 23360, 3060, 26160),
    (-3570, 23360, 0, 26220), (-8160, 11500, -5100, 14300), (3060, 17430, 9690, 22540), (3570, 11500, 10200, 16610),
    (-5100, 11500, 0, 15970), (-5100, 17430, 0, 21900),
)  # fmt: skip


def off_grid(region, grid):
    points = (point for polygon in region.each() for point in polygon.each_point_hull())
    return [point for point in points if point.x % grid or point.y % grid]


@pytest.mark.parametrize("name", REAL)
def test_joined_wells_are_on_the_grid_and_keep_their_rules(name):
    technology = load(name)
    grid, width = technology.grid, technology.dim("well_width")
    space = max(technology.dim("well_space", spec) for spec in technology.devices.values() if spec.well)
    chance = random.Random(9)
    sets = [WELLS]
    for _ in range(30):
        corners = [(chance.randrange(-4, 4) * 755 * grid // 5, chance.randrange(-4, 4) * 615 * grid) for _ in range(5)]
        sets.append(
            [(x, y, x + chance.randrange(400, 900) * grid, y + chance.randrange(400, 900) * grid) for x, y in corners]
        )
    for boxes in sets:
        drawn = kdb.Region([kdb.Box(*box) for box in boxes]).merged()
        joined = _joined(drawn, space, width, grid).merged()
        assert not off_grid(joined, grid), boxes
        assert (drawn - joined).is_empty()
        assert joined.space_check(space, False, kdb.Metrics.Euclidian).is_empty()
        assert joined.width_check(width, False, kdb.Metrics.Euclidian).is_empty()
