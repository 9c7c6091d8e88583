"""Core and thick-oxide transistors on two supplies in one layout: wells and oxides keep apart, verdicts are clean."""

import pytest

from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest

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


# Thick-oxide PMOS in blocks of several sizes, so that wells of one net stand in several rows and are joined.
BIAS = """* a thick-oxide bias
.subckt bias a b c ib vdd vss
M1 a a vdd vdd {3} W=20u L=5u nf=2
M2 b a vdd vdd {3} W=20u L=5u nf=2
M3 c b a vdd {3} W=3u L=10u
M4 c c b vdd {3} W=8u L=1u nf=2
M5 b ib vdd vdd {3} W=2u L=0.6u
M6 c ib vss vss {2} W=4u L=0.6u
M7 ib ib vss vss {2} W=4u L=2u
.ends
"""


@pytest.mark.parametrize("technology", FLAVOURS)
@pytest.mark.parametrize("text", [NETLIST, BIAS], ids=["shifter", "bias"])
def test_circuits_of_thick_oxide_are_clean_and_matched(technology, text, tmp_path):
    netlist = tmp_path / "shifter.spice"
    netlist.write_text(text.format(*FLAVOURS[technology]), encoding="utf-8")
    report = build_layout(LayoutRequest(str(netlist), technology, str(tmp_path / "ws"), last_stage="lvs"))
    assert report["drc"]["violations"] == []
    assert report["drc"]["passed"]
    assert report["lvs"]["mismatches"] == []
    assert report["lvs"]["matched"]
    assert report["routing"]["failed"] == []


def test_deep_wells_below_extended_drains_keep_apart_with_other_modules_between_them(tmp_path):
    """sky130A: modules of one body net that the deep wells of two others, 6.3 um apart, let no well between them."""
    cards = [
        card
        for i in range(6)
        for card in (
            f"M{i} n{i} a vdd vdd pfet_g5v0d16v0 w={5 + 3 * i}u l=0.66u m={1 + i % 3}",
            f"M1{i} n{i} c vss vss nfet_g5v0d16v0 w={5 + 2 * i}u l=0.7u m={1 + i % 2}",
        )
    ]
    netlist = "\n".join(["* stages", ".subckt stages a c vdd vss", *cards, ".ends", ""])
    report = build_layout(
        LayoutRequest(technology="sky130A", workspace=str(tmp_path), netlist_text=netlist, last_stage="lvs")
    )
    assert report["drc"]["violations"] == []
    assert report["lvs"]["verdict"] == "complete"
