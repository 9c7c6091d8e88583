"""Clean layouts broken by known edits: whatever an independent judge finds violated, the check finds, and nothing else.

Each real technology gives its own layouts (transistors, a pair, a mirror); seeded edits are made on each set: an
edge moved by one grid step or more, a shape dropped, moved or added, a notch, a vertex off the grid, a cut corner, a
whole layer gone.
"""

import os
import random

import klayout.db as kdb
import pytest
from drc_oracle import Judge

from layoutkit.draw.group import MirrorSpec, PairSpec, draw_mirror, draw_pair
from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.drc.check import Options, check
from layoutkit.technology import load
from thorough import processes

REAL = [name for name in processes() if name != "generic"]
MUTANTS = int(os.environ.get("DRC_LAYOUTS", "40"))


def layouts_of(tech):
    """Return small clean layouts of a technology, each as polygons by GDS number."""
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um

    def device(name, nets, flavour="nmos", nf=1):
        spec = tech.device(flavour)
        w_um, l_um = (tech.to_um(max(size, least)) for size, least in ((600, spec.min_w), (180, spec.min_l)))
        named = dict(zip("dgsb", nets.split(), strict=True))
        return transistor(tech, name, flavour, MosSize(w_um * nf * 1e-6, l_um * 1e-6, nf), named)

    modules = [
        draw_mos(layout, tech, MosSpec(device("M1", "d g s b"), "nmos")),
        draw_mos(layout, tech, MosSpec(device("M1", "d g s b", "pmos", 2), "pmos")),
        draw_pair(layout, tech, PairSpec("pair", device("M1", "d1 g1 s b", nf=2), device("M2", "d2 g2 s b", nf=2))),
        draw_mirror(layout, tech, MirrorSpec("mirror", (device("M1", "x x s b"), device("M2", "y x s b")))),
    ]
    return [drawn_in(module.cell) for module in modules]


def drawn_in(cell):
    layout, found = cell.layout(), {}
    for index in layout.layer_indexes():
        info = layout.get_info(index)
        polygons = [points_of(polygon) for polygon in kdb.Region(cell.begin_shapes_rec(index)).each()]
        if polygons:
            found[info.layer, info.datatype] = sorted(polygons)
    return found


def points_of(polygon):
    holed = kdb.SimplePolygon(polygon) if polygon.holes() else polygon.to_simple_polygon()
    return tuple((point.x, point.y) for point in holed.each_point())


def mutant(drawn, rng, grid):
    """Return (what was done, the changed layer, the layout): one edit of ``drawn``."""
    layer = rng.choice(sorted(drawn))
    polygons = list(drawn[layer])
    place = rng.randrange(len(polygons))
    points = polygons[place]
    steps = rng.choice((1, 1, 1, 1, 2, 3, 5, 10, 20, 40)) * rng.choice((-1, 1)) * grid
    edit = rng.choice(("edge", "edge", "edge", "edge", "drop", "move", "add", "notch", "off grid", "corner", "layer"))
    if edit == "edge":
        polygons[place] = with_edge_moved(points, rng.randrange(len(points)), steps)
    elif edit == "off grid":
        polygons[place] = with_edge_moved(points, rng.randrange(len(points)), rng.choice((-2, -1, 1, 2)))
    elif edit == "drop":
        del polygons[place]
    elif edit == "move":
        dx, dy = rng.choice(((steps, 0), (0, steps), (steps, steps)))
        polygons[place] = tuple((x + dx, y + dy) for x, y in points)
    elif edit == "add":
        x, y = rng.choice(points)
        x, y = x + rng.randrange(-40, 40) * grid, y + rng.randrange(-40, 40) * grid
        w, h = rng.randrange(1, 60) * grid, rng.randrange(1, 60) * grid
        polygons.append(((x, y), (x, y + h), (x + w, y + h), (x + w, y)))
    elif edit == "notch":
        polygons[place] = notched(points, rng, grid)
    elif edit == "corner":
        polygons[place] = with_corner_cut(points, rng, grid)
    else:
        polygons = []
    return edit, layer, {**drawn, layer: polygons}


def with_edge_moved(points, number, by):
    points = list(points)
    a, b = number, (number + 1) % len(points)
    axis = 0 if points[a][0] == points[b][0] else 1
    for end in (a, b):
        moved = list(points[end])
        moved[axis] += by
        points[end] = tuple(moved)
    return tuple(points)


def notched(points, rng, grid):
    """Return ``points`` with a step in the middle of its longest edge, inward or outward."""
    size = len(points)

    def length(number):
        (x1, y1), (x2, y2) = points[number], points[(number + 1) % size]
        return abs(x2 - x1) + abs(y2 - y1)

    number = max(range(size), key=length)
    (x1, y1), (x2, y2) = points[number], points[(number + 1) % size]
    middle = length(number) // 2 // grid * grid
    half = rng.randrange(1, max(2, min(30, middle // grid - 1))) * grid
    depth = rng.choice((-1, 1)) * rng.randrange(1, 12) * grid
    ux, uy = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
    start, end = max(middle - half, grid), min(middle, length(number) - grid)
    if start >= end:
        return points
    step = [
        (x1 + ux * along + uy * deep, y1 + uy * along - ux * deep)
        for along, deep in ((start, 0), (start, depth), (end, depth), (end, 0))
    ]
    return (*points[: number + 1], *step, *points[number + 1 :])


def with_corner_cut(points, rng, grid):
    number = rng.randrange(len(points))
    before, corner, after = points[number - 1], points[number], points[(number + 1) % len(points)]
    dx, dy = rng.randrange(1, 6) * grid, rng.randrange(1, 6) * grid

    def towards(end, by):
        return tuple(c + max(-by, min(by, e - c)) for c, e in zip(corner, end, strict=True))

    return (*points[:number], towards(before, dx), towards(after, dy), *points[number + 1 :])


def layout_of(drawn, dbu_um):
    layout = kdb.Layout()
    layout.dbu = dbu_um
    cell = layout.create_cell("MUTANT")
    for (layer, datatype), polygons in drawn.items():
        shapes = cell.shapes(layout.layer(layer, datatype))
        for points in polygons:
            shapes.insert(kdb.Polygon([kdb.Point(*point) for point in points], True))
    return layout, cell


def found_by_check(drawn, tech, rule_ids):
    layout, cell = layout_of(drawn, tech.dbu_um)
    report = check(layout, cell, tech, Options(rule_ids=rule_ids))
    assert not report.unchecked, [(v.rule.id, v.reason) for v in report.unchecked]
    return {verdict.rule.id for verdict in report.violated}


@pytest.mark.parametrize("name", REAL)
def test_every_violating_mutant_is_found_and_clean_ones_stay_clean(name):
    tech = load(name)
    rng = random.Random(2024)
    bases = [Judge(tech, drawn) for drawn in layouts_of(tech)]
    checkable = [rule for rule in tech.rules if rule.kind != "unchecked" and rule.options.get("scope") != "chip"]
    for base in bases:
        assert [rule.id for rule in checkable if base.violates(rule)] == [], (
            "the judge finds the clean layout violating"
        )
        assert found_by_check(base.drawn, tech, [rule.id for rule in checkable]) == set()
    violating = unsure = asked = 0
    for number in range(MUTANTS):
        base = bases[number % len(bases)]
        edit, layer, drawn = mutant(base.drawn, rng, tech.grid)
        judge = Judge(tech, drawn, base, frozenset({layer}))
        rules = [
            rule for rule in checkable if judge.concerns(rule) and (edit != "corner" or rule.kind in {"grid", "angle"})
        ]
        answers = {rule.id: judge.violates(rule) for rule in rules}
        found = found_by_check(drawn, tech, list(answers)) if answers else set()
        expected = {rule_id for rule_id, answer in answers.items() if answer}
        sure = {rule_id for rule_id, answer in answers.items() if answer is not None}
        asked, unsure = asked + len(answers), unsure + len(answers) - len(sure)
        violating += bool(expected)
        assert found & sure == expected, (
            number,
            edit,
            layer,
            "missed",
            expected - found,
            "invented",
            found & sure - expected,
        )
    assert violating > MUTANTS / 3
    assert violating < MUTANTS
    assert unsure < asked / 20
