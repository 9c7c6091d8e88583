"""Placing modules in the design's top cell."""

import klayout.db as kdb
import pytest

from layoutkit.draw.mos import MosSpec, draw_mos
from layoutkit.errors import GeometryError, LayoutConflictError
from layoutkit.tools.current_layout import ORIENTATIONS, CellPlace, place_module


@pytest.fixture
def module(tech, layout, device):
    """Return a drawn transistor, not placed yet."""
    return draw_mos(layout, tech, MosSpec(device("M1", 2, 0.5), "nmos_M1"))


@pytest.mark.parametrize("orientation", sorted(ORIENTATIONS))
def test_the_lower_left_corner_goes_to_the_position(module, tech, orientation):
    trans = place_module(module, tech, CellPlace(12.5, -3.005, orientation))
    placed = module.bbox.transformed(trans)
    assert (placed.left, placed.bottom) == (12500, -3005)
    swapped = orientation in {"R90", "R270", "MXR90", "MYR90"}
    size = (placed.height(), placed.width()) if swapped else (placed.width(), placed.height())
    assert size == (module.bbox.width(), module.bbox.height())
    assert module.layout.top_cell().bbox() == placed


@pytest.mark.parametrize(
    ("orientation", "expected"),
    [
        ("R0", (1, 2)),
        ("R90", (-2, 1)),
        ("R180", (-1, -2)),
        ("R270", (2, -1)),
        ("MX", (1, -2)),
        ("MY", (-1, 2)),
    ],
)
def test_orientations_turn_counter_clockwise_and_mirror_at_their_axis(orientation, expected):
    turns, mirrored = ORIENTATIONS[orientation]
    point = kdb.Trans(turns, mirrored, 0, 0) * kdb.Point(1, 2)
    assert (point.x, point.y) == expected


def test_placing_again_moves_the_instance(module, tech):
    place_module(module, tech, CellPlace(0, 0))
    place_module(module, tech, CellPlace(50, 0))
    assert [instance.bbox().left for instance in module.layout.top_cell().each_inst()] == [50000]


def test_an_overlap_is_refused_and_the_free_place_told(module, tech, layout, device):
    place_module(module, tech, CellPlace(0, 0))
    other = draw_mos(layout, tech, MosSpec(device("M2", 2, 0.5), "nmos_M2"))
    width = tech.to_um(module.bbox.width())
    with pytest.raises(LayoutConflictError, match=f"x is free from {width:g} um on; neighbours .* need a gap"):
        place_module(other, tech, CellPlace(width - tech.to_um(tech.grid), 0))
    place_module(other, tech, CellPlace(width, 0))


def test_unknown_orientations_and_positions_off_the_grid_are_refused(module, tech):
    with pytest.raises(GeometryError, match="Invalid orientation: R45"):
        place_module(module, tech, CellPlace(0, 0, "R45"))
    with pytest.raises(GeometryError, match=r"off the 0\.005 um grid; the nearest point is 1\.5 um"):
        place_module(module, tech, CellPlace(1.501, 0))


def test_the_only_other_top_cell_is_the_design_and_several_are_refused(module, tech, layout):
    """A flow's top cell keeps its name; the module is placed in it."""
    layout.create_cell("amplifier")
    place_module(module, tech, CellPlace())
    assert [cell.name for cell in layout.top_cells()] == ["amplifier"]
    layout.create_cell("other")
    with pytest.raises(LayoutConflictError, match="several top cells"):
        place_module(module, tech, CellPlace())
