"""Matched groups through the whole flow: cascode mirrors, ratios in W, dummies in the netlists that are written."""

from collections import Counter

import klayout.db as kdb
import pytest

from layoutkit.circuit import MapOptions, map_circuit, read_netlist
from layoutkit.extract.extractor import extract
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit
from layoutkit.flow.modules import draw_groups
from layoutkit.layout.files import read_layout
from layoutkit.lvs.compare import compare
from layoutkit.technology import load
from thorough import processes

BIAS = """* a pair, a cascode mirror with a bias of its own and a ratio written in W, and a clamp that is always off
.subckt bias inp inn o1 o2 ref vc out tail pad vss
M1 o1 inp tail vss nmos W=4u L=0.5u nf=2
M2 o2 inn tail vss nmos W=4u L=0.5u nf=2
M3 a a vss vss nmos W=2u L=1u
M4 b a vss vss nmos W=8u L=1u
M5 ref vc a vss nmos W=2u L=0.5u
M6 out vc b vss nmos W=8u L=0.5u
M7 tail vc vss vss nmos W=4u L=1u nf=2
MC pad vss vss vss nmos W=6u L=0.5u nf=2
.ends
"""


@pytest.fixture(scope="module", params=processes())
def laid_out(request, tmp_path_factory):
    """Return the report of BIAS in one technology, and its workspace."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "bias.spice").write_text(BIAS)
    flow = LayoutRequest(str(folder / "bias.spice"), request.param, str(folder / "ws"), last_stage="metrics")
    return build_layout(flow), folder / "ws", load(request.param)


def test_it_is_clean_and_the_cascodes_share_the_module_of_their_mirror(laid_out):
    report, _, _ = laid_out
    assert (report["drc"]["passed"], report["lvs"]["matched"]) == (True, True)
    modules = {module["name"]: module for module in report["modules"]}
    mirror = modules["current_mirror_M3_M4_M5_M6"]
    assert sorted(mirror["devices"]) == ["M3", "M4", "M5", "M6"]
    assert mirror["centroid_error"] == 0
    assert modules["differential_pair_M1_M2"]["pattern"] in {"AB/BA", "ABBA/BAAB", "ABBABAAB"}
    (pair,) = (group for group in report["matching"]["groups"] if [d["id"] for d in group["devices"]] == ["M1", "M2"])
    assert (pair["centroid_error_x_um"], pair["centroid_error_y_um"], pair["spread"]["s_percent"]) == (0, 0, 0)
    assert all(pair["equal"][figure] for figure in ("areas", "distances", "dummies", "drains_with_dummies"))
    assert report["lvs"]["dummies"] >= 8


def test_the_written_netlists_list_every_dummy_of_the_layout(laid_out):
    report, folder, technology = laid_out
    layout = read_layout(report["files"]["gds"])
    extraction = extract(layout, layout.top_cell(), technology)
    drawn = sum(finger.w_um for finger in extraction.dummies)
    listed = read_netlist(str(folder / "reference.spice"))
    dummies = [device for device in listed.devices if "DUMMY" in device.id.upper()]
    assert sum(device.w * device.m for device in dummies) * 1e6 == pytest.approx(drawn)
    assert "* dummy fingers of the layout" in (folder / "reference.spice").read_text()
    mapped = map_circuit(listed, technology, MapOptions())
    assert compare(extraction, mapped).matched


def test_a_clamp_that_the_netlist_has_is_compared_and_no_dummy(laid_out):
    report, _, technology = laid_out
    layout = read_layout(report["files"]["gds"])
    extraction = extract(layout, layout.top_cell(), technology)
    texts = Counter(finger.text for device in extraction.devices for finger in device.fingers)
    assert texts["MC"] >= 1


def test_no_dummies_are_drawn_on_request(tmp_path):
    request = LayoutRequest(None, "sky130A", str(tmp_path), netlist_text=BIAS, dummies=0, last_stage="lvs")
    report = build_layout(request)
    assert (report["drc"]["passed"], report["lvs"]["matched"], report["lvs"]["dummies"]) == (True, True, 0)
    assert "dummy" not in (tmp_path / "reference.spice").read_text()


def test_single_transistors_with_mirrored_roles_are_drawn_alike():
    """M5 and M6 load the two outputs as the references of two mirrors; each mirror is drawn as single transistors."""
    netlist = """* input pair, and a diode with a mirror of another width at each output
.subckt loaded inp inn a b bias vdd vss
M1 x inp t vss nmos W=4u L=1u nf=2
M2 y inn t vss nmos W=4u L=1u nf=2
M3 x y vdd vdd pmos W=4.2u L=1u nf=10
M4 y x vdd vdd pmos W=4.2u L=1u nf=10
M5 x x vdd vdd pmos W=3.36u L=1u nf=8
M6 y y vdd vdd pmos W=3.36u L=1u nf=8
M7 a x vdd vdd pmos W=2u L=1u nf=2
M8 b y vdd vdd pmos W=2u L=1u nf=2
M9 t bias vss vss nmos W=4u L=1u nf=2
.ends
"""
    technology = load("sg13g2")
    request = LayoutRequest(netlist_text=netlist, technology="sg13g2")
    circuit, _ = read_circuit(request, technology)
    design, _ = make_design(request, technology, circuit)
    paired = {name for group in design.constraints.symmetry for pair in group.pairs for name in pair}
    assert {"M5", "M6", "M7", "M8"} <= paired
    layout = kdb.Layout()
    drawn = {item.module.devices: item for item in draw_groups(layout, design) if len(item.module.devices) == 1}
    for pair in (("M5", "M6"), ("M7", "M8")):
        one, other = (drawn[name,].shapes for name in pair)
        assert len(one) == len(other)
        for shapes in zip(one, other, strict=True):
            for index in layout.layer_indexes():
                regions = [kdb.Region(shape.cell.begin_shapes_rec(index)).merged() for shape in shapes]
                assert (regions[0] ^ regions[1]).is_empty(), layout.get_info(index)
