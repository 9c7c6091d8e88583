"""500 generated layouts of each process, judged hierarchically and flat: every rule finds the same layouts violating.

Each layout is the drawing of a rule at its limit or a grid step beyond (see drc_sketch), taken apart over a hierarchy:
shapes in cells that are turned and placed, alone, overlapping or in arrays, shapes of which the parent holds one half,
shapes drawn twice. All lie in one file, far apart, and each marker belongs to the layout that it lies in: a whole run
would measure a violated rule again flat, and so say nothing of the hierarchy.
"""

import random

import klayout.db as kdb
import pytest
from drc_sketch import cases, pairs

from layoutkit.check.regions import LayerRegions
from layoutkit.check.rules import Measured, cases_of, kind_of
from layoutkit.technology import load, names

LAYOUTS = 500
COLUMNS = 25
PITCH = 600_000  # dbu; further than any rule reaches beyond the largest drawing


def sketches(tech, rng):
    """Return drawings at the limit of a rule and one step beyond, of each rule in turn."""
    rules = [rule for rule in tech.rules if kind_of(rule) is not None]
    found = []
    while len(found) < LAYOUTS:
        rng.shuffle(rules)
        for rule in rules:
            kept, broken = pairs(rule, rng.choice(cases(rule, tech)), tech)
            found += [rng.choice(kept), rng.choice(broken)]
    return found[:LAYOUTS]


def hierarchical(tech, seed):
    """Return a layout of all drawings, each in a cell of its own with cells below it."""
    rng = random.Random(seed)
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    top = layout.create_cell("TOP")
    for number, sketch in enumerate(sketches(tech, rng)):
        parent = layout.create_cell(f"P{number}")
        take_apart(tech, layout, parent, sketch.shapes, rng)
        place = kdb.Trans(number % COLUMNS * PITCH, number // COLUMNS * PITCH)
        top.insert(kdb.CellInstArray(parent.cell_index(), place))
    return layout, top


def take_apart(tech, layout, parent, shapes, rng):
    """Draw ``shapes`` in ``parent`` and in two cells below it, of which one is in the other or beside it."""
    places = [kdb.Trans(rng.randrange(4), rng.random() < 0.5, *(rng.randrange(-900, 900) * 5 for _ in "xy")) for _ in "ab"]
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


def violating(layers, tech):
    """Return the numbers of the layouts in which each rule finds something, by the rule's id."""
    found = {}
    for rule in tech.rules:
        kind = kind_of(rule)
        marked = set()
        for case in cases_of(rule, kind, layers, tuple(tech.layers)):
            if case.layers.region(case.subject).is_empty():
                continue
            for marks in kind.check(case):
                if isinstance(marks, Measured):
                    continue
                for shape in marks.each():
                    place = shape.bbox().center()
                    column, row = ((each + PITCH // 2) // PITCH for each in (place.x, place.y))
                    marked.add(row * COLUMNS + column)
        found[rule.id] = marked
    return found


@pytest.mark.parametrize("name", sorted(names()))
def test_every_rule_finds_the_same_of_500_layouts_violating_in_both_modes(name):
    tech = load(name)
    layout, top = hierarchical(tech, seed=9)
    flat = violating(LayerRegions(layout, top, tech), tech)
    deep = violating(LayerRegions(layout, top, tech, hierarchical=True), tech)
    wrong = {rule: (sorted(flat[rule] - deep[rule]), sorted(deep[rule] - flat[rule])) for rule in flat}
    assert {rule: each for rule, each in wrong.items() if each != ([], [])} == {}, "missed, invented"
    assert set().union(*flat.values()) <= set(range(LAYOUTS))
    assert sum(map(bool, flat.values())) > len(flat) * 0.9
