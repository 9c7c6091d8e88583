"""Generated layouts of each process: hierarchical and flat checks give the same verdicts and places.

Each layout holds the drawings of some rules at their limits or a grid step beyond (see drc_sketch), one and others that
read what it draws, taken apart over a hierarchy: shapes in cells that are turned and placed, alone, overlapping or in
arrays, shapes of which the parent holds one half, shapes drawn twice. It is judged by these rules. A test run takes
some of the 500 layouts of each process, ``make check`` all.
"""

import os
import random

import klayout.db as kdb
import pytest
from drc_sketch import cases, pairs

from layoutkit.drc.check import Options, check
from layoutkit.technology import load
from thorough import processes

LAYOUTS = int(os.environ.get("DRC_LAYOUTS", "12"))
OTHERS = 3  # rules beside the first that are drawn in a layout and judge it


def drawing(tech, rule, rng):
    """Return the shapes of a drawing of ``rule`` at its limit or one step beyond."""
    return rng.choice(rng.choice(pairs(rule, rng.choice(cases(rule, tech)), tech))).shapes


def drawings(tech, rng):
    """Yield each rule in turn and others that judge what it draws, with a drawing of each."""
    rules, made = [rule for rule in tech.rules if rule.kind != "unchecked"], 0
    while made < LAYOUTS:
        rng.shuffle(rules)
        for rule in rules[: LAYOUTS - made]:
            made += 1
            shapes = drawing(tech, rule, rng)
            others = judges(tech, rule, shapes, rng)
            yield [rule, *others], [shapes, *(drawing(tech, other, rng) for other in others)]


def hierarchical(tech, sketches, rng):
    """Return a layout of drawings, each taken apart over cells, and its top cell."""
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    top = layout.create_cell("TOP")
    for shapes in sketches:
        take_apart(tech, layout, top, shapes, rng)
    return layout, top


def take_apart(tech, layout, parent, shapes, rng):
    """Draw ``shapes`` in ``parent`` and in two cells below it, of which one is in the other or beside it."""
    places = [
        kdb.Trans(rng.randrange(4), rng.random() < 0.5, *(rng.randrange(-900, 900) * 5 for _ in "xy")) for _ in "ab"
    ]
    cells = [layout.create_cell(f"{parent.name}{name}") for name in "ab"]
    nested = rng.random() < 0.5
    to_parent = [places[0], places[0] * places[1] if nested else places[1]]

    def draw(level, name, polygon):
        into = parent if level == len(cells) else cells[level]
        placed = polygon if level == len(cells) else polygon.transformed(to_parent[level].inverted())
        into.shapes(tech.layer(layout, name)).insert(placed)

    for name, polygon in shapes:
        how = rng.random()
        levels = rng.sample(range(len(cells) + 1), 2)
        if how < 0.3 and polygon.is_box():
            for level, half in zip(levels, halves(polygon.bbox(), rng), strict=True):
                draw(level, name, kdb.Polygon(half))
        else:
            for level in levels[: 2 if how > 0.9 else 1]:
                draw(level, name, polygon)
    parent.insert(instance(cells[0], places[0], rng))
    (cells[0] if nested else parent).insert(instance(cells[1], places[1], rng))


def halves(box, rng):
    """Return a box in two that overlap or abut."""
    overlap = rng.choice((0, 0, 5, 50))
    if box.width() > box.height():
        cut = box.left + box.width() // 10 * 5
        return kdb.Box(box.left, box.bottom, min(cut + overlap, box.right), box.top), kdb.Box(cut, *list_of(box)[1:])
    cut = box.bottom + box.height() // 10 * 5
    return kdb.Box(*list_of(box)[:3], min(cut + overlap, box.top)), kdb.Box(box.left, cut, box.right, box.top)


def list_of(box):
    return [box.left, box.bottom, box.right, box.top]


def instance(cell, place, rng):
    """Return one placement of ``cell``, or an array of up to four, which may overlap."""
    if rng.random() < 0.6:
        return kdb.CellInstArray(cell.cell_index(), place)
    across, up = (rng.choice((200, 1000, 5000, 25000)) + rng.randrange(100) * 5 for _ in "xy")
    return kdb.CellInstArray(cell.cell_index(), place, kdb.Vector(across, 0), kdb.Vector(0, up), 2, rng.choice((1, 2)))


def judges(tech, rule, shapes, rng):
    """Return some rules other than ``rule`` that name a layer of ``shapes``."""
    drawn = {name for name, _ in shapes}
    named = [other for other in tech.rules if drawn & set(map(str, other.options.values()))]
    others = [other for other in named if other is not rule and other.kind != "unchecked"]
    return rng.sample(others, min(OTHERS, len(others)))


@pytest.mark.parametrize("name", sorted(processes()))
def test_both_modes_give_the_same_verdict_on_generated_layouts(name):
    tech = load(name)
    rng = random.Random(10)
    violated = 0
    for number, (rules, sketches) in enumerate(drawings(tech, rng)):
        layout, top = hierarchical(tech, sketches, rng)
        ids = [rule.id for rule in rules]
        flat, deep = (check(layout, top, tech, Options(ids, mode=mode)) for mode in ("flat", "hierarchical"))
        assert deep.hierarchical
        for one, other in zip(flat.verdicts, deep.verdicts, strict=True):
            told = (number, ids[0], one.rule.id)
            assert (*told, one.status, one.count) == (*told, other.status, other.count)
            assert flat.locations(one, 10**6) == deep.locations(other, 10**6), told
            violated += one.status == "failed"
    assert violated > LAYOUTS


def test_an_edge_beside_an_abutment_of_two_cells_is_found_in_both_modes():
    tech = load("sky130A")
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    top, below = layout.create_cell("TOP"), layout.create_cell("BELOW")
    top.shapes(tech.layer(layout, "tap")).insert(kdb.Box(0, 0, 1000, 400))
    for box in (kdb.Box(-125, 0, 0, 400), kdb.Box(-3000, -300, -125, 700)):
        below.shapes(tech.layer(layout, "diff")).insert(box)
    top.insert(kdb.CellInstArray(below.cell_index(), kdb.Trans()))
    for mode in ("flat", "hierarchical"):
        assert check(layout, top, tech, Options(["difftap.7"], mode=mode)).total_violations == 2
