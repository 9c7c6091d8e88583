"""Alignment, order and abutment: kept by the packing, with and without numba, and refused for unknown names."""

import pytest

from layoutkit.errors import GeometryError
from layoutkit.place import Block, PlacementOptions, place_blocks
from layoutkit.rectangle import Rectangle
from layoutkit.technology import load

SKY = load("sky130A")
SIZES = {"a": (4000, 2000), "b": (3000, 5000), "c": (2500, 2500), "d": (6000, 1500), "e": (1000, 7000)}
SPACE = 280  # um/1000 of met1 (m1.2: 0.14, 0.28 beside wide metal)


def placed(engine, **wanted):
    blocks = []
    for name, (width, height) in SIZES.items():
        box = Rectangle(0, 0, width, height)
        blocks.append(Block(name, "resistor", box, (("x", 0, 0),), {"met1": box}))
    placement = place_blocks(SKY, blocks, PlacementOptions(seed=2, moves=3000, **wanted), engine)
    return {block.name: placement.placed[block.name].box(block) for block in blocks}


@pytest.mark.parametrize("engine", ["python", "numba"])
def test_wanted_edges_orders_and_neighbours_are_kept(engine):
    boxes = placed(engine, aligned=(("bottom", ("a", "b")), ("left", ("c", "d"))))
    assert boxes["a"].bottom == boxes["b"].bottom
    assert boxes["c"].left == boxes["d"].left
    boxes = placed(engine, ordered=(("left_to_right", ("e", "d", "a")), ("bottom_to_top", ("b", "c"))))
    assert boxes["e"].right <= boxes["d"].left
    assert boxes["d"].right <= boxes["a"].left
    assert boxes["b"].top <= boxes["c"].bottom
    boxes = placed(engine, abutting=(("e", "c", "a"),))
    gaps = [boxes["c"].left - boxes["e"].right, boxes["a"].left - boxes["c"].right]
    beside = placed(engine, abutting=(("e", "c"),))
    assert gaps[0] == beside["c"].left - beside["e"].right == min(gaps) >= SPACE
    roomy = placed(engine, abutting=(("e", "c"),), room={"c": 1500})
    assert roomy["c"].left - roomy["e"].right == gaps[0] + 1500
    assert min(boxes["e"].top, boxes["c"].top) > max(boxes["e"].bottom, boxes["c"].bottom)
    assert min(boxes["c"].top, boxes["a"].top) > max(boxes["c"].bottom, boxes["a"].bottom)


def test_unwanted_they_are_not_kept_by_chance():
    boxes = placed("python")
    assert not (
        boxes["a"].bottom == boxes["b"].bottom
        and boxes["c"].left == boxes["d"].left
        and boxes["d"].right <= boxes["a"].left
    )


def test_a_name_of_no_block_is_refused():
    with pytest.raises(GeometryError, match="there is no block f, g; blocks: a, b, c, d, e"):
        placed("python", ordered=(("left_to_right", ("a", "g", "f")),))
