"""Grounds that meet in the substrate alone: laid out clean, compared as nets of their own, and said to be joined."""

import klayout.db as kdb
import pytest

from layoutkit.circuit import read_netlist
from layoutkit.errors import LayoutkitError, UnsupportedOperationError
from layoutkit.extract.extractor import extract
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.lvs.compare import compare
from layoutkit.technology import load

AMPLIFIER = """.subckt amp vdd avss dvss inp inn bias out
M1 x inp tail avss {n} w=4u l=1u
M2 y inn tail avss {n} w=4u l=1u
M3 tail bias avss avss {n} w=4u l=1u
M4 x x vdd vdd {p} w=4u l=1u
M5 y x vdd vdd {p} w=4u l=1u
M6 out y dvss dvss {n} w=2u l=1u
M7 out y vdd vdd {p} w=4u l=1u
.ends
"""
MODELS = {
    "sky130A": ("sky130_fd_pr__nfet_01v8", "sky130_fd_pr__pfet_01v8"),
    "gf180mcuD": ("nfet_03v3", "pfet_03v3"),
    "sg13g2": ("sg13_lv_nmos", "sg13_lv_pmos"),
}


def netlist(technology):
    n, p = MODELS[technology]
    return AMPLIFIER.format(n=n, p=p)


def built(technology, folder, nets=("avss", "dvss")):
    path = folder / "amp.spice"
    path.write_text(netlist(technology))
    return build_layout(LayoutRequest(str(path), technology, str(folder / "ws"), substrate_nets=nets, last_stage="lvs"))


@pytest.mark.parametrize("technology", sorted(MODELS))
def test_an_amplifier_with_two_grounds_is_clean_and_shorted_without_the_marker(technology, tmp_path):
    report = built(technology, tmp_path)
    assert report["routing"]["failed"] == []
    assert (report["drc"]["passed"], report["drc"]["complete"], report["drc"]["total_violations"]) == (True, True, 0)
    assert report["lvs"]["mismatches"] == []
    assert (report["lvs"]["matched"], report["lvs"]["complete"]) == (True, True)
    assert report["lvs"]["verdict"] == "complete, grounds joined by the substrate"

    tech, layout = load(technology), kdb.Layout()
    layout.read(str(tmp_path / "ws" / "layout.gds"))
    (cell,) = layout.top_cells()
    marker = layout.find_layer(*tech.spec("substrate_cut").gds)
    assert kdb.Region(cell.begin_shapes_rec(marker)).count() == 1
    layout.clear_layer(marker)
    result = compare(extract(layout, cell, tech), read_netlist(str(tmp_path / "amp.spice")))
    assert not result.matched
    assert any("avss" in each.message and "dvss" in each.message for each in result.mismatches)


def test_a_ground_that_the_circuit_lacks_is_named(tmp_path):
    with pytest.raises(LayoutkitError, match="substrate_nets names gnd"):
        built("sky130A", tmp_path, ("avss", "gnd"))


def test_the_refusal_of_two_grounds_names_the_parameter(tmp_path):
    text = netlist("gf180mcuD").replace("M6", "R1 y out dvss ppolyf_u w=1u l=5u\nM6")
    path = tmp_path / "amp.spice"
    path.write_text(text)
    with pytest.raises(UnsupportedOperationError, match="substrate_nets"):
        build_layout(LayoutRequest(str(path), "gf180mcuD", str(tmp_path / "ws"), last_stage="recognise"))
