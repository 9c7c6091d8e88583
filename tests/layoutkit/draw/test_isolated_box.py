"""Isolated boxes: clean, read in every orientation with devices in them, reported with a fault; their well is known."""

from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.draw.deep_well import draw_isolated_box, isolated_box
from layoutkit.drc.check import check
from layoutkit.errors import GeometryError, TechnologyError
from layoutkit.extract.extractor import extract
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.technology import load
from layoutkit.technology.passive_sizes import PassiveSize

TECH = load("sg13g2")
CARD = "body: nBuLay, markers: [Recog.diode], ring_text: isolbox, "


def drawn(width_um=6.0, length_um=6.0, m=1):
    layout = kdb.Layout()
    layout.dbu = TECH.dbu_um
    box = isolated_box(TECH, "D1", "isolbox", PassiveSize(width_um * 1e-6, length_um * 1e-6, m))
    return layout, draw_isolated_box(layout, TECH, "TOP", box).cell


def found_in(layout, cell):
    found = extract(layout, cell, TECH)
    return found, [(each.device, each.w_um, each.l_um) for each in found.devices]


@pytest.mark.parametrize(("width_um", "length_um", "m"), [(3, 3, 1), (3, 40, 1), (100, 100, 1), (5, 9.3, 3)])
def test_boxes_are_clean_and_read_as_drawn(width_um, length_um, m):
    layout, cell = drawn(width_um, length_um, m)
    verdicts = check(layout, cell, TECH).verdicts
    assert {v.rule.id: (v.count, v.reason) for v in verdicts if v.status != "passed"} == {}
    found, devices = found_in(layout, cell)
    assert devices == m * [("isolbox", max(width_um, length_um), min(width_um, length_um))]
    assert {end: found.nets[net].name for end, net in found.devices[0].nets.items()} == {
        "p": "D1_P", "n": "D1_N", "s": "D1_S",
    }  # fmt: skip
    assert len({found.nets[each.nets["s"]].name for each in found.devices}) == 1


def test_mask_layers_of_the_box_are_those_of_the_card():
    # NWell is 0.24 + 0.30 + 0.24 wide around Activ; the PCell of the foundry takes 1.05.
    _layout, cell = drawn()
    area = {layer: TECH.region(cell, layer).merged().area() * TECH.dbu_um**2 for layer in ("nBuLay", "Recog.diode")}
    assert area["nBuLay"] == pytest.approx(36)
    assert area["Recog.diode"] == pytest.approx(36 - (6 - 2 * 0.78) ** 2)
    assert (TECH.region(cell, "Recog.diode") ^ TECH.region(cell, "NWell")).is_empty()


@pytest.mark.parametrize("place", [kdb.Trans(turn, mirrored, 7000, -3000) for turn in range(4) for mirrored in (0, 1)])
def test_a_box_is_read_in_any_orientation(place):
    layout, cell = drawn(5, 9)
    cell.transform(place)
    assert found_in(layout, cell)[1] == [("isolbox", 9.0, 5.0)]


def test_a_box_whose_ring_is_open_or_whose_text_is_missing_is_none():
    layout, cell = drawn()
    box = TECH.region(cell, "nBuLay").bbox()
    cut = kdb.Region(kdb.Box(box.left, box.center().y, box.left + 900, box.center().y + 500))
    for layer in ("NWell", "Recog.diode"):
        left = TECH.region(cell, layer) - cut
        shapes = cell.shapes(TECH.layer(layout, layer))
        shapes.clear()
        shapes.insert(left)
    found, devices = found_in(layout, cell)
    assert devices == []
    assert any("ring of n well is not whole" in str(why) for why in found.ignored["isolated_box"])
    layout, cell = drawn()
    cell.shapes(TECH.layer(layout, "device_text")).clear()
    assert found_in(layout, cell)[1] == []


def test_a_box_without_room_for_its_tap_is_refused():
    with pytest.raises(GeometryError, match="below minimum 3e-06"):
        drawn(2.5, 6)


def test_transistors_in_the_body_of_a_box_lie_in_wells_on_its_n_well_and_its_substrate_is_the_circuit_s(tmp_path):
    text = """
.subckt stage in out vdd vss nw
M1 out in body body sg13_lv_nmos w=4u l=0.5u ng=2
M2 out in vdd vdd sg13_lv_pmos w=8u l=0.5u ng=2
D1 body nw vss isolbox l=6u w=8u
.ends
"""
    report = build_layout(
        LayoutRequest(technology="sg13g2", workspace=str(tmp_path), netlist_text=text, last_stage="lvs")
    )
    assert report["drc"]["violations"] == []
    assert report["drc"]["complete"]
    assert report["lvs"]["matched"]
    assert report["replaced_devices"] == []
    assert any("the body body is not the substrate vss" in warning for warning in report["warnings"])
    assert not any("highest supply" in warning for warning in report["warnings"])
    assert "D1 body nw vss isolbox l=6u w=8u" in (tmp_path / "reference.cdl").read_text()


@pytest.mark.parametrize(("key", "field"), [("body", "body: nBuLay, "), ("ring_text", "ring_text: isolbox, ")])
def test_a_process_states_the_well_and_the_text_that_make_a_box(tmp_path, key, field):
    text = Path(TECH.path).read_text(encoding="utf-8")
    assert CARD in text
    path = tmp_path / "own.yaml"
    path.write_text(text.replace(CARD, CARD.replace(field, "")), encoding="utf-8")
    with pytest.raises(TechnologyError, match=f"devices.isolbox: '{key}' is missing"):
        load(str(path))
