"""Bipolar transistors from netlist to verdict: a bandgap core with a mirror, read, mapped, recognised and laid out."""

import klayout.db as kdb
import pytest

from layoutkit.circuit import map_circuit, read_netlist, recognise
from layoutkit.circuit.suggested_constraints import suggest_constraints
from layoutkit.errors import NetlistError, UnsupportedOperationError
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit
from layoutkit.flow.modules import draw_groups, dummy_devices
from layoutkit.lvs.reference import reference_of
from layoutkit.technology import load

CORE = """.subckt core vdd vss va vb
Q1 vss vss va {pnp}
Q2 vss vss ve2 {pnp} {eight}
R1 vb ve2 vss {resistor} l=10u w={width}
M1 va vb vdd vdd {pmos} w=4u l=1u nf=2
M2 vb vb vdd vdd {pmos} w=4u l=1u nf=2
M3 vss vb vss vss {nmos} w=2u l=1u
.ends
"""
WORDS = {
    "sky130A": {
        "pnp": "sky130_fd_pr__pnp_05v5_W0p68L0p68",
        "resistor": "sky130_fd_pr__res_high_po",
        "width": "0.69u",
        "pmos": "sky130_fd_pr__pfet_01v8",
        "nmos": "sky130_fd_pr__nfet_01v8",
    },
    "gf180mcuD": {
        "pnp": "pnp_05p00x00p42",
        "resistor": "ppolyf_u",
        "width": "1u",
        "pmos": "pfet_03v3",
        "nmos": "nfet_03v3",
    },
    "sg13g2": {
        "pnp": "pnpMPA",
        "resistor": "rppd",
        "width": "0.5u",
        "pmos": "sg13_lv_pmos",
        "nmos": "sg13_lv_nmos",
    },
}


def read(tmp_path, text):
    path = tmp_path / "core.spice"
    path.write_text(text)
    return read_netlist(str(path))


def core(technology, eight="m=8"):
    return CORE.format(**WORDS[technology], eight=eight)


@pytest.mark.parametrize("technology", sorted(WORDS))
def test_a_bandgap_core_is_laid_out_clean_with_its_transistors_in_one_array(technology, tmp_path):
    path = tmp_path / "core.spice"
    path.write_text(core(technology))
    report = build_layout(LayoutRequest(str(path), technology, str(tmp_path / "ws"), last_stage="metrics"))
    assert report["routing"]["failed"] == []
    assert (report["drc"]["passed"], report["drc"]["total_violations"]) == (True, 0)
    assert report["lvs"]["mismatches"] == []
    assert (report["lvs"]["matched"], report["lvs"]["complete"]) == (True, True)
    (array,) = (module for module in report["modules"] if module["type"] == "bipolar_array")
    assert (array["devices"], array["centroid_error"]) == (["Q1", "Q2"], 0)
    (matched,) = (each for each in report["constraints"]["outcomes"] if each["names"] == ["Q1", "Q2"])
    assert matched["reason"] == "drawn as one module with a common centroid"
    cards = (tmp_path / "ws" / "reference.spice").read_text()
    assert f"XQ1 vss vss va {WORDS[technology]['pnp']}" in cards
    assert "m=8" in cards


def test_units_that_fill_the_array_are_dummies_of_the_netlists():
    """Foreign tools compare them."""
    technology = load("sky130A")
    request = LayoutRequest(netlist_text=core("sky130A", "m=9"))
    design, _ = make_design(request, technology, read_circuit(request, technology)[0])
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    drawn = draw_groups(layout, design)
    (array,) = (each for each in drawn if each.group.type == "bipolar_array")
    dummies, _ = dummy_devices([array], design.circuit, technology)
    filled = len(array.module.gates) - len(array.module.instances)
    assert filled > 0
    assert [(d.type, dict(d.terminals), d.m) for d in dummies] == [("pnp", dict.fromkeys("cbe", "vss"), filled)]


@pytest.mark.parametrize("eight", ["m=8", "8", "area=8", "area=4 m=2"])
def test_units_and_area_factors_are_the_same(eight, tmp_path):
    circuit = read(tmp_path, core("sky130A", eight))
    mapped = map_circuit(circuit, load("sky130A"))
    assert mapped.warnings == circuit.warnings
    assert mapped.device("Q2").m == 8
    assert sorted(mapped.device("Q2").terminals) == ["b", "c", "e"]
    assert [d.fingers for d in reference_of(circuit, load("sky130A")).devices if d.kind.name == "pnp"] == [1, 8]
    (array,) = (module for module in recognise(circuit) if module.type == "bipolar_array")
    assert array.properties["ratios"] == {"Q1": 1, "Q2": 8}
    assert array.properties["diode_connected"]
    assert {"Q1", "Q2"} in [set(group.devices) for group in suggest_constraints(circuit).matching]


def test_a_part_of_a_unit_is_refused(tmp_path):
    with pytest.raises(NetlistError, match=r"area factor 2\.5"):
        map_circuit(read(tmp_path, core("sky130A", "area=2.5")), load("sky130A"))


def test_a_generic_or_foreign_pnp_becomes_the_nearest_of_the_process(tmp_path):
    target = load("gf180mcuD")
    plain = core("sky130A").replace(WORDS["sky130A"]["pnp"], "pnp")
    generic = map_circuit(read(tmp_path, plain), target)
    assert (generic.device("Q1").model, generic.device("Q2").m) == ("pnp_10p00x10p00", 8)
    foreign = map_circuit(read(tmp_path, core("sky130A").replace("W0p68L0p68", "W3p40L3p40")), target)
    assert foreign.device("Q1").model == "pnp_05p00x05p00"  # 25 um2 is nearer to 11.56 than 4.2 by ratio
    assert "Q1" in {each.device for each in foreign.replaced}


def test_another_collector_than_the_substrate_is_refused(tmp_path):
    text = core("sky130A").replace("Q1 vss vss va", "Q1 vdd vss va")
    with pytest.raises(NetlistError, match="collector of every pnp of sky130A is the substrate, which is on vss"):
        map_circuit(read(tmp_path, text), load("sky130A"))


def test_unknown_npns_and_processes_without_bipolars_are_refused(tmp_path):
    npn = core("sky130A").replace(WORDS["sky130A"]["pnp"], "sky130_fd_pr__rf_npn_05v5_W5p00L5p00")
    with pytest.raises(UnsupportedOperationError, match=r"W5p00L5p00 \(Q1, Q2\): 5 V, .*no model of this"):
        map_circuit(read(tmp_path, npn), load("sky130A"))
    without = "\n".join(line for line in core("sky130A").splitlines() if not line.startswith("R")) + "\n"
    with pytest.raises(UnsupportedOperationError, match="no device for pnp: Q1, Q2"):
        map_circuit(read(tmp_path, without), load("generic"))


NPNS = """.subckt x a b x y vss
XQ1 a x vss vss {0}
XQ2 b x vss vss {0}
R1 a x {1}
R2 b x {1}
R3 a y {1}
R4 b y {1}
.ends
"""


@pytest.mark.parametrize(
    ("technology", "npn", "resistor"),
    [
        ("sky130A", "sky130_fd_pr__npn_05v5_W1p00L1p00", "sky130_fd_pr__res_high_po w=0.69u l=10u"),
        ("gf180mcuD", "npn_05p00x05p00", "ppolyf_u w=1u l=20u"),
        ("sg13g2", "npn13G2", "rppd w=0.5u l=10u"),
    ],
)
def test_a_pair_of_npns_is_reviewed(technology, npn, resistor, tmp_path):
    """The two have the substrate on a terminal that has the name of a source, and no gate."""
    text = NPNS.format(npn, resistor)
    request = LayoutRequest(netlist_text=text, technology=technology, workspace=str(tmp_path), last_stage="metrics")
    report = build_layout(request)
    assert report["lvs"]["matched"]
    assert {"must", "should", "findings"} <= report["review"].keys()
