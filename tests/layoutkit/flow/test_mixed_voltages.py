"""Core and thick-oxide transistors on two supplies in one layout: wells and oxides keep apart, verdicts are clean."""

import pytest

from layoutkit.flow.build import BuildRequest, build_layout

FLAVOURS = {
    "sky130A": ("nfet_01v8_lvt", "pfet_01v8_hvt", "nfet_g5v0d10v5", "pfet_g5v0d10v5"),
    "gf180mcuD": ("nfet_03v3", "pfet_03v3", "nfet_05v0", "pfet_05v0"),
    "sg13g2": ("sg13_lv_nmos", "sg13_lv_pmos", "sg13_hv_nmos", "sg13_hv_pmos"),
}
NETLIST = """* an inverter, one on a higher supply, and a thick-oxide one on the lower supply
.subckt shifter a y z vdd vddh vss
M1 x a vss vss {0} W=2u L=0.6u nf=2
M2 x a vdd vdd {1} W=4u L=0.6u nf=2
M3 y x vss vss {2} W=4u L=0.7u nf=2
M4 y x vddh vddh {3} W=6u L=0.7u nf=2
M5 z y vss vss {2} W=4u L=0.7u nf=2
M6 z y vdd vdd {3} W=6u L=0.7u nf=2
.ends
"""


@pytest.mark.parametrize("technology", FLAVOURS)
def test_a_level_shifter_of_two_oxides_is_clean_and_matched(technology, tmp_path):
    netlist = tmp_path / "shifter.spice"
    netlist.write_text(NETLIST.format(*FLAVOURS[technology]), encoding="utf-8")
    report = build_layout(BuildRequest(str(netlist), technology, str(tmp_path / "ws")))
    assert report["drc"]["violations"] == []
    assert report["drc"]["passed"]
    assert report["lvs"]["mismatches"] == []
    assert report["lvs"]["matched"]
    assert report["routing"]["failed"] == []
