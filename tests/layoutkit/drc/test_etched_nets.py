"""Antenna ratios of random layouts, compared with KLayout's antenna check on nets extracted layer by layer."""

import itertools
import random

import klayout.db as kdb
import pytest
from drc_sketch import Sketch, with_rule

from layoutkit.drc.check import check
from layoutkit.drc.kinds import chip
from layoutkit.technology import load

SKY = load("sky130A")
STACK = ["poly", "licon1", "li1", "mcon", "met1", "via", "met2", "via2", "met3"]
JOINS = [*itertools.pairwise(STACK), ("gate", "poly"), ("diode", "licon1")]
GATE, DIODE = "poly & diff", "diff - poly"


def drawn(seed):
    """Return wires on every level, cuts where they cross, and diffusion, also below poly."""
    chance, sketch = random.Random(seed), Sketch(SKY)
    wires = {}
    for number, name in enumerate(STACK[::2]):
        wires[name] = []
        for _ in range(14):
            x, y, long = (chance.randrange(0, 200) * 100 for _ in range(3))
            box = (x, y, x + 1000 + long // 2, y + 400) if number % 2 else (x, y, x + 400, y + 1000 + long // 2)
            wires[name].append(kdb.Box(*box))
            sketch.box(name, *box)
    for _ in range(12):
        x, y = (chance.randrange(0, 200) * 100 for _ in range(2))
        wires.setdefault("diff", []).append(kdb.Box(x, y, x + 3000, y + 700))
        sketch.box("diff", x, y, x + 3000, y + 700)
    for lower, cut, upper in [*zip(STACK[::2], STACK[1::2], STACK[2::2], strict=False), ("diff", "licon1", "li1")]:
        for one in wires[lower]:
            for box in (one & other for other in wires[upper] if one.overlaps(other)):
                if min(box.width(), box.height()) >= 200 and chance.random() < 0.7:
                    sketch.box(cut, box.left, box.bottom, box.left + 200, box.bottom + 200)
    return sketch


def by_klayout(sketch, layer, ratio, *, diode, thickness, allowance):
    """Return the greatest ratio and how much area exceeds ``ratio``, from the nets of all layers up to ``layer``."""
    layout, cell = sketch.layout()
    regions = {n: kdb.Region(cell.begin_shapes_rec(SKY.layer(layout, n))).merged() for n in [*STACK, "diff"]}
    poly, diff = regions["poly"], regions.pop("diff")
    regions = {name: regions[name] for name in STACK[: STACK.index(layer) + 1]}
    regions["gate"] = poly & diff
    if diode:
        regions["diode"] = diff - poly
    database = kdb.LayoutToNetlist("TOP", layout.dbu)
    for name, region in regions.items():
        database.register(region, name)
        database.connect(region)
    for one, other in JOINS:
        if one in regions and other in regions:
            database.connect(regions[one], regions[other])
    database.extract_netlist()
    diodes = ([[regions["diode"], allowance]] if allowance else [regions["diode"]]) if diode else []
    area, side = (0.0, thickness) if thickness else (1.0, 0.0)
    every, wrong = (
        database.antenna_check(regions["gate"], 1.0, 0.0, regions[layer], area, side, limit, diodes)
        for limit in (0.0, ratio)
    )
    return max((float(each.property("ratio")) for each in every.each()), default=None), wrong.area()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("layer", STACK)
def test_antenna_ratios_are_those_that_klayout_finds_layer_by_layer(seed, layer):
    sketch, metal = drawn(seed), layer in STACK[2::2]
    for diode, allowance in ((False, 0), (True, 0), (True, 30)):
        thickness = 0.35 if metal and seed % 2 else 0
        greatest, _ = by_klayout(sketch, layer, 1e9, diode=diode, thickness=thickness, allowance=allowance)
        limit = 1.0 if greatest is None else round(greatest / 2, 3)
        fields = {"diode": DIODE} if diode else {}
        fields |= {"diode_ratio": allowance} if allowance else {}
        fields |= {"measure": "sidewall", "thickness_um": thickness} if thickness else {}
        technology, _ = with_rule(SKY, kind="antenna", layer=layer, gate=GATE, value=limit, **fields)
        layout, cell = sketch.layout()
        (verdict,) = check(layout, cell, technology).verdicts
        assert verdict.measured == pytest.approx(greatest)
        expected = by_klayout(sketch, layer, limit, diode=diode, thickness=thickness, allowance=allowance)[1]
        assert sum(mark.shapes.area() for mark in verdict.marks) == expected


def test_the_nets_of_a_cell_without_gates_are_not_extracted(monkeypatch):
    """An array of bipolar transistors has thousands of contacts and no gate."""
    monkeypatch.setattr(chip, "EtchedNets", lambda *_: pytest.fail("extracted"))
    layout, cell = Sketch(SKY).box("diff", 0, 0, 2000, 2000).box("licon1", 500, 500, 670, 670).layout()
    report = check(layout, cell, SKY)
    found = [verdict for verdict in report.verdicts if verdict.rule.kind == "antenna"]
    assert len(found) > 10
    assert {(verdict.status, verdict.measured) for verdict in found} == {("passed", None)}
