"""Grounds that meet in the substrate alone: laid out clean, compared as nets of their own, and said to be joined."""

from dataclasses import replace

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


RESISTORS = {
    "sky130A": "sky130_fd_pr__res_high_po_0p35 l=10u",
    "gf180mcuD": "ppolyf_u w=1u l=10u",
    "sg13g2": "rppd w=1u l=10u",
}
DIODES = {"sky130A": "sky130_fd_pr__diode_pw2nd_05v5", "gf180mcuD": "diode_nd2ps_03v3", "sg13g2": "dantenna"}


@pytest.mark.parametrize("technology", sorted(MODELS))
def test_resistors_and_diodes_lie_in_what_their_bodies_state(technology, tmp_path):
    resistor, diode = RESISTORS[technology], DIODES[technology]
    passives = (
        f"XR1 vdd bias vdd {resistor}\nXR2 vdd bias vdd {resistor}\nXR3 bias dvss dvss {resistor}\n"
        f"XR4 bias avss avss {resistor}\nXR5 inp y x {resistor}\nXD1 dvss bias {diode} w=1u l=2u\n"
    )
    isolated = f"XD2 x out {diode} w=1u l=2u\n" if technology == "sg13g2" else ""
    path = tmp_path / "amp.spice"
    path.write_text(netlist(technology).replace("M6", f"{passives}{isolated}M6"))
    grounds = {"substrate_nets": {"nets": ["avss", "dvss"], "reason": "one substrate"}}
    request = LayoutRequest(str(path), technology, str(tmp_path / "ws"), constraints=grounds, last_stage="lvs")
    report = build_layout(request)
    assert (report["drc"]["passed"], report["drc"]["complete"], report["drc"]["total_violations"]) == (True, True, 0)
    assert report["lvs"]["mismatches"] == []
    assert report["lvs"]["verdict"] == "complete, grounds joined by the substrate"
    assert any("XR1, XR2 lie above an n well" in text for text in report["warnings"])

    tech, layout = load(technology), kdb.Layout()
    layout.read(str(tmp_path / "ws" / "layout.gds"))
    (cell,) = layout.top_cells()
    well = layout.find_layer(*tech.spec(tech.roles["nwell"]).gds)
    text, found = path.read_text(), extract(layout, cell, tech)
    moved = tmp_path / "moved.spice"
    for body, others in (("vdd", ("avss", "x")), ("x", ("vdd",)), ("dvss", ("avss",))):
        line = next(each for each in text.splitlines() if each.startswith("XR") and each.split()[3] == body)
        for other in others:  # planted: the resistor is said to lie in something else
            moved.write_text(text.replace(line, line.replace(f" {body} {resistor}", f" {other} {resistor}")))
            assert not compare(found, read_netlist(str(moved))).matched
    layout.clear_layer(well)
    assert not compare(extract(layout, cell, tech), read_netlist(str(path))).matched


def test_the_grounds_of_the_request_and_of_the_constraints_are_the_same(tmp_path):
    path = tmp_path / "amp.spice"
    path.write_text(netlist("sky130A"))
    grounds = {"substrate_nets": {"nets": ["avss", "vdd"]}}
    request = LayoutRequest(
        str(path), "sky130A", str(tmp_path / "ws"), constraints=grounds, substrate_nets=("avss", "dvss")
    )
    with pytest.raises(LayoutkitError, match=r"substrate_nets names avss, dvss, and the constraints name avss, vdd"):
        build_layout(request)
    with pytest.raises(LayoutkitError, match=r"substrate_nets\.nets: the circuit has no net 'gnd'"):
        build_layout(LayoutRequest(str(path), "sky130A", constraints={"substrate_nets": {"nets": ["avss", "gnd"]}}))


@pytest.mark.parametrize(("technology", "in_well"), [("gf180mcuD", True), ("sky130A", False)])
def test_a_diode_that_no_well_isolates_is_refused_with_the_parameter(technology, in_well, tmp_path):
    text = netlist(technology).replace("M6", f"XD1 dvss out {DIODES[technology]} w=1u l=2u\nM6")
    path = tmp_path / "amp.spice"
    path.write_text(text)
    request = LayoutRequest(str(path), technology, str(tmp_path / "ws"), last_stage="recognise")
    if in_well:
        assert any("XD1, M6 lie in a deep well" in warning for warning in build_layout(request)["warnings"])
        return
    with pytest.raises(UnsupportedOperationError, match=r'not XD1; .*substrate_nets \["avss", "dvss"\]'):
        build_layout(request)


REFERENCE = """.subckt top vdd avss dvss out in y z
M1 out out vdd vdd sky130_fd_pr__pfet_01v8 w=4u l=1u
M2 out z avss avss sky130_fd_pr__nfet_01v8 w=1u l=0.5u
Q1 avss avss out sky130_fd_pr__pnp_05v5_W0p68L0p68
M3 y in dvss dvss sky130_fd_pr__nfet_01v8 w=1u l=0.15u
M4 y in vdd vdd sky130_fd_pr__pfet_01v8 w=2u l=0.15u
M5 z y dvss dvss sky130_fd_pr__nfet_01v8 w=1u l=0.15u
M6 z y vdd vdd sky130_fd_pr__pfet_01v8 w=2u l=0.15u
.ends
"""


def test_the_substrate_is_the_ground_of_collectors_unless_it_joins_several(tmp_path):
    path = tmp_path / "top.spice"
    path.write_text(REFERENCE)
    request = LayoutRequest(str(path), "sky130A", str(tmp_path / "ws"), last_stage="lvs")
    report = build_layout(request)
    assert (report["drc"]["total_violations"], report["lvs"]["verdict"]) == (0, "complete")
    assert "M3, M5 lie in a deep well: the body dvss is not the substrate avss" in report["warnings"]
    path.write_text(REFERENCE.replace("Q1 avss", "Q2 dvss dvss in sky130_fd_pr__pnp_05v5_W0p68L0p68\nQ1 avss"))
    report = build_layout(replace(request, substrate_nets=("avss", "dvss")))
    assert report["drc"]["total_violations"] == 0
    assert report["lvs"]["verdict"] == "complete, grounds joined by the substrate"
    with pytest.raises(UnsupportedOperationError, match=r"Q1.*Q2.*substrate_nets"):
        build_layout(request)


@pytest.mark.parametrize("card", ["D1 vdd pad {} diodevss_2kv", "X1 vdd {} nmoscl_2", "X1 a pad {} schottky_nbl1"])
def test_a_finished_cell_whose_substrate_is_another_net_is_refused(card, tmp_path):
    """Its cell has taps of the substrate: drawn, it would join the two nets."""
    text = f".subckt cell vdd vss pad a b\nM1 a b vss vss sg13_lv_nmos w=2u l=0.13u\n{card.format('b')}\n.ends\n"
    request = LayoutRequest(technology="sg13g2", workspace=str(tmp_path), netlist_text=text)
    with pytest.raises(UnsupportedOperationError, match="nmos bodies are on 2 nets"):
        build_layout(request)
