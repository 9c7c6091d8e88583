"""Alignment after packing: edges meet exactly, and the distances that the rules need stay."""

from dataclasses import replace
from itertools import combinations

import pytest

from layoutkit.place import Block, Island, Placed, Placement, PlacementOptions, place_blocks
from layoutkit.place.sliding import slide_into_line
from layoutkit.rectangle import Rectangle
from layoutkit.technology import load

SKY = load("sky130A")
SIZES = {"a": (4000, 2000), "b": (3000, 5000), "c": (2500, 2505), "d": (6000, 1500), "e": (1000, 7000)}
SPACE = 280  # um/1000 of met1 (m1.2: 0.14, 0.28 beside wide metal)
MIDDLES = {
    "left": lambda b: 2 * b.left,
    "right": lambda b: 2 * b.right,
    "center_x": lambda b: b.left + b.right,
    "bottom": lambda b: 2 * b.bottom,
    "top": lambda b: 2 * b.top,
    "center_y": lambda b: b.bottom + b.top,
}


def blocks_of(sizes):
    boxes = {name: Rectangle(0, 0, width, height) for name, (width, height) in sizes.items()}
    return [Block(name, "resistor", box, (("x", 0, 0),), {"met1": box}) for name, box in boxes.items()]


def gap(one, other):
    return max(
        max(one.left, other.left) - min(one.right, other.right), max(one.bottom, other.bottom) - min(one.top, other.top)
    )


@pytest.mark.parametrize("edge", sorted(MIDDLES))
def test_blocks_that_were_packed_without_regard_to_it_slide_into_line(edge):
    blocks, lined = blocks_of(SIZES), 0
    pairs = list(combinations(SIZES, 2))
    for seed, names in enumerate(pairs):
        packed = place_blocks(SKY, blocks, PlacementOptions(seed=seed + 1, moves=300), "python")
        options = PlacementOptions(aligned=((edge, names),))
        placement = slide_into_line(SKY, packed, blocks, options)
        boxes = {block.name: placement.placed[block.name].box(block) for block in blocks}
        assert min(gap(boxes[one], boxes[other]) for one, other in pairs) >= SPACE
        assert min(box.bottom for box in boxes.values()) == 0
        assert placement.box == Rectangle(
            min(b.left for b in boxes.values()),
            0,
            max(b.right for b in boxes.values()),
            max(b.top for b in boxes.values()),
        )
        apart = abs(MIDDLES[edge](boxes[names[0]]) - MIDDLES[edge](boxes[names[1]]))
        before = [packed.placed[name].box(block) for name in names for block in blocks if block.name == name]
        along_x = edge in {"left", "right", "center_x"}
        sides = ("bottom", "top") if along_x else ("left", "right")
        low, high = (max(getattr(b, sides[0]) for b in before), min(getattr(b, sides[1]) for b in before))
        passable = low - high >= SPACE  # else each is in the way of the other
        assert apart < 2 * SKY.grid or not passable
        lined += passable
    assert lined >= 3


def test_what_is_in_the_way_moves_along_and_a_block_on_the_axis_does_not():
    blocks = blocks_of({"a": (1000, 1000), "b": (1000, 1000), "c": (1000, 1000)})
    blocks[2] = replace(blocks[2], symmetric=True)
    #  b c      b has c beside it; a is to have the left edge of b
    #  a
    packed = Placement(
        {"a": Placed("a", -1500, 0), "b": Placed("b", -1780, 3000), "c": Placed("c", -500, 3000)},
        (Island(0, ("c",)),),
        Rectangle(-1780, 0, 500, 4000),
        0,
    )
    found = slide_into_line(SKY, packed, blocks, PlacementOptions(aligned=(("left", ("a", "b")),)))
    assert (found.placed["a"].x, found.placed["b"].x, found.placed["c"].x) == (-1780, -1780, -500)
    centred = PlacementOptions(aligned=(("left", ("a", "c")),))
    found = slide_into_line(SKY, packed, blocks, centred)
    assert (found.placed["a"].x, found.placed["c"].x) == (-500, -500)


def test_an_order_that_was_kept_is_kept():
    blocks = blocks_of({"a": (1000, 1000), "b": (1000, 1000)})
    packed = Placement({"a": Placed("a", 0, 0), "b": Placed("b", 1280, 0)}, (), Rectangle(0, 0, 2280, 1000), 0)
    wanted = PlacementOptions(aligned=(("left", ("a", "b")),), ordered=(("left_to_right", ("a", "b")),))
    assert slide_into_line(SKY, packed, blocks, wanted).placed == packed.placed
