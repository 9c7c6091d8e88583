"""What IHP SG13CMOS5L has not, and has elsewhere, than sg13g2; the parametrised tests have the rest."""

from fnmatch import fnmatch
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.draw.bipolar import BipolarSpec, bipolar, draw_bipolars
from layoutkit.drc.check import check
from layoutkit.extract.extractor import extract
from layoutkit.layout.workspace_record import fitting
from layoutkit.route.routing_stack import make_stack
from layoutkit.technology import load
from layoutkit.technology.passive_sizes import PassiveSize

TECH, BASE = load("sg13cmos5l"), load("sg13g2")
# Those of its manual's table of forbidden layers (3.2) that sg13g2 allows: TRANS, nBuLay, MIM, Vmim, Via4, Metal5 and
# its fill, TopVia2, TopMetal2 and its fill.
FORBIDDEN = [(26, 0), (32, 0), (36, 0), (129, 0), (66, 0), (67, 0), (67, 22), (133, 0), (134, 0), (134, 22)]


def drawn(*boxes):
    """Return a layout with boxes, each a layer, a datatype and two corners. [um]"""
    layout = kdb.Layout()
    layout.dbu = 0.001
    cell = layout.create_cell("cell")
    for number, datatype, *corners in boxes:
        cell.shapes(layout.layer(number, datatype)).insert(kdb.DBox(*corners))
    return layout, cell


def violated(*boxes, tech=TECH):
    return {verdict.rule.id for verdict in check(*drawn(*boxes), tech).verdicts if verdict.count}


def test_its_wires_are_four_thin_metals_and_a_thick_one():
    assert [each.name for each in TECH.conductors] == ["Metal1", "Metal2", "Metal3", "Metal4", "TopMetal1"]
    assert [(each.below, each.above) for each in TECH.cuts][-1] == ("Metal4", "TopMetal1")
    assert TECH.resolve("metal5") == "TopMetal1"
    assert make_stack(TECH, ["Metal4"], ["TopMetal1"]).pitch() > 0
    assert TECH.deep_well is None
    assert BASE.deep_well is not None


@pytest.mark.parametrize("layer", FORBIDDEN, ids=str)
def test_a_layer_that_only_sg13g2_has_is_forbidden(layer):
    box = (*layer, 0, 0, 10, 10)
    assert any(name.startswith("forbidden.") for name in violated(box))
    assert not any(name.startswith("forbidden.") for name in violated(box, tech=BASE))


@pytest.mark.parametrize(("margin", "wrong"), [(0.1, False), (0.095, True)])
def test_the_thick_metal_s_cut_lies_in_the_fourth_metal(margin, wrong):
    """TV1.c of its manual: Metal4 0.1 um beyond TopVia1; TV1.a: 0.42 um wide; TV1.d: TopMetal1 0.42 um beyond it."""
    low, high = -margin, 0.42 + margin
    boxes = [(125, 0, 0, 0, 0.42, 0.42), (50, 0, low, low, high, high), (126, 0, -1, -1, 1.42, 1.42)]
    assert ("TV1.c" in violated(*boxes)) == wrong


@pytest.mark.parametrize("planted", ["", "base", "collector", "nBuLay"])
def test_its_pnp_is_made_by_what_surrounds_it(planted):
    """The PyCell is that of sg13g2 without nBuLay: rings of diffusion 0.39 and 1.7 um from an emitter of 0.7 x 2 um."""
    layout = kdb.Layout()
    nets = {"c": "sub", "b": "base", "e": "e1"}
    device = bipolar(TECH, "Q1", "pnpMPA", PassiveSize(0.7e-6, 2e-6, 1), nets)
    cell = draw_bipolars(layout, TECH, BipolarSpec("cell", (device,))).cell
    assert check(layout, cell, TECH).violated == ()
    active = cell.shapes(TECH.layer(layout, "Activ"))
    emitter = next(box for box in kdb.Region(active).merged().each() if box.bbox().width() == 700).bbox()
    distance = {"base": 450, "collector": 1800}.get(planted, 0)
    if distance:  # a gap in the ring, right of the emitter
        x, y = emitter.right + distance, emitter.center().y
        left = kdb.Region(active).merged() - kdb.Region(kdb.Box(x - 100, y - 100, x + 500, y + 100))
        active.clear()
        active.insert(left)
    elif planted:
        cell.shapes(layout.layer(32, 0)).insert(emitter.enlarged(740, 700))
    found = [each.device for each in extract(layout, cell, TECH).devices]
    assert found == ([] if distance else ["pnpMPA"])
    if planted == "nBuLay":
        assert "forbidden.nbulay" in {each.rule.id for each in check(layout, cell, TECH).violated}


@pytest.mark.parametrize("name", ["cap_cmim", "npn13G2", "cap_rfcmim"])
def test_a_device_that_it_has_not_or_that_is_not_drawn_is_named_with_the_reason(name):
    assert name not in TECH.passives
    meant = [each for each in TECH.names.undrawn if any(fnmatch(name.lower(), pattern) for pattern in each.names)]
    assert meant[0].reason


def test_a_layout_that_fits_both_is_taken_for_sg13g2():
    well, oxide, thick = (31, 0, 0, 0, 3, 3), (44, 0, 0, 0, 4, 4), (134, 0, 0, 0, 9, 9)
    for boxes in ([well, oxide], [well, oxide, thick]):
        assert fitting(drawn(*boxes)[0], Path("folder"), "sky130A") == "sg13g2"


@pytest.mark.parametrize(("name", "found"), [("sg13", "sg13g2"), ("cmos5l", "sg13cmos5l"), ("sg13c", "sg13cmos5l")])
def test_short_names_mean_the_process_that_stands_alone(name, found):
    assert load(name).name == found
