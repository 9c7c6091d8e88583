"""Bodies on several nets: each that is not the substrate lies in a deep well; verdicts are clean, wells keep apart."""

from dataclasses import replace

import klayout.db as kdb
import pytest

from layoutkit.circuit import Target, map_circuit, read_netlist
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.errors import LayoutkitError, UnsupportedOperationError
from layoutkit.flow.build import build_layout
from layoutkit.flow.deep_wells import isolated_bodies
from layoutkit.flow.design import LayoutRequest
from layoutkit.technology import load
from thorough import THOROUGH

FLAVOURS = {
    "sky130A": ("nfet_01v8", "pfet_01v8", "nfet_g5v0d10v5", "pfet_g5v0d10v5"),
    "gf180mcuD": ("nfet_03v3", "pfet_03v3", "nfet_05v0", "pfet_05v0"),
    "sg13g2": ("sg13_lv_nmos", "sg13_lv_pmos", "sg13_hv_nmos", "sg13_hv_pmos"),
}
MANY = """* followers with their own bodies on two supplies, a pair on its tail, and plain inverters between them
.subckt many a b y z t vdd vddh vss
M1 vdd a y y {0} W=4u L=0.6u nf=2
M2 vdd y z z {0} W=2u L=0.6u
M3 vddh b t t {2} W=8u L=0.8u nf=4
M4 p a t t {2} W=4u L=0.8u nf=2
M5 q b t t {2} W=4u L=0.8u nf=2
M6 y b vss vss {0} W=2u L=0.6u
M7 z b vss vss {0} W=12u L=0.6u nf=4
M8 t b vss vss {2} W=4u L=0.8u
M9 p p vddh vddh {3} W=4u L=0.8u nf=2
M10 q p vddh vddh {3} W=4u L=0.8u nf=2
M11 z y vdd vdd {1} W=2u L=0.6u
.ends
"""
ALL = """* every body is isolated, and no device is in the substrate
.subckt all a y z vdd vss
M1 vdd a y y {0} W=4u L=0.6u nf=2
M2 vdd y z z {0} W=4u L=0.6u nf=2
.ends
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a function from a circuit and a technology to the report of the layout and its workspace, made once."""
    done = {}

    def build(text, technology):
        if (text, technology) not in done:
            folder = tmp_path_factory.mktemp("isolated")
            netlist = text.format(*FLAVOURS[technology])
            request = LayoutRequest(None, technology, str(folder), netlist_text=netlist, last_stage="lvs")
            done[text, technology] = build_layout(request), folder
        return done[text, technology]

    return build


def bodies_of(text, technology, wanted=None):
    netlist = NetlistText(text.format(*FLAVOURS[technology.name]))
    circuit = map_circuit(read_netlist(netlist), Target.from_technology(technology)).circuit
    return isolated_bodies(circuit, technology, wanted)


@pytest.mark.parametrize(
    ("text", "name"),
    [(text, name) for text in (MANY, ALL) for name in FLAVOURS if text is MANY or THOROUGH or name == "gf180mcuD"],
    ids=lambda value: {MANY: "many", ALL: "all"}.get(value, value),
)
def test_bodies_on_several_nets_are_laid_out_clean_and_matched(name, text, built):
    report, workspace = built(text, name)
    assert report["drc"]["violations"] == []
    assert report["drc"]["passed"]
    assert report["lvs"]["mismatches"] == []
    assert report["lvs"]["matched"]
    assert report["lvs"]["complete"]
    assert report["routing"]["failed"] == []
    supply = "vddh" if text is MANY else "vdd"
    assert f"the deep wells are tied to {supply}, the highest supply" in " ".join(report["warnings"])
    deck = (workspace / "reference.cdl").read_text(encoding="utf-8")
    models = {line.split()[0]: line.split()[5] for line in deck.splitlines() if line.startswith("M")}
    assert [model.endswith("_dn") for name, model in sorted(models.items()) if name in {"M1", "M2", "M3", "M4"}] == [
        name == "gf180mcuD"
    ] * (4 if text is MANY else 2)
    assert not any(models.get(name, "").endswith("_dn") for name in ("M6", "M7", "M8"))
    extracted = (workspace / "extracted.spice").read_text(encoding="utf-8")
    assert "_dn" not in extracted


def test_wells_that_stand_close_are_merged(built):
    """Three followers of one oxide: their deep wells are fewer polygons than modules, and each has its own body."""
    technology = load("sky130A")
    report, _ = built(MANY, "sky130A")
    layout = kdb.Layout()
    layout.read(report["files"]["gds"])
    (top,) = layout.top_cells()
    wells = kdb.Region(top.begin_shapes_rec(technology.layer(layout, "deep_nwell")))
    holes = kdb.Region(top.begin_shapes_rec(technology.layer(layout, "nwell"))).merged().holes()
    assert wells.merged().count() < wells.count()
    assert (holes & wells.merged()).merged().count() >= 3


@pytest.mark.parametrize(
    ("changes", "well"),
    [
        ({}, "vddh"),
        ({"{3}": "{1}"}, "vddh"),  # the rating of its PMOS no longer tells; vddh has more of them
        ({"vddh": "vddx"}, "vddx"),
    ],
)
def test_the_deep_wells_are_tied_to_the_highest_supply(changes, well):
    text = MANY
    for old, new in changes.items():
        text = text.replace(old, new)
    bodies, notes = bodies_of(text, load("sky130A"))
    assert {nets.well for nets in bodies.values()} == {well}
    assert {nets.substrate for nets in bodies.values()} == {"vss"}
    assert sorted(bodies) == ["M1", "M2", "M3", "M4", "M5"]
    assert any("M3, M4, M5 lie in a deep well: the body t is not the substrate vss" in note for note in notes)


def test_another_net_may_tie_the_deep_wells_if_the_circuit_has_it():
    bodies, notes = bodies_of(MANY, load("sg13g2"), "vdd")
    assert {nets.well for nets in bodies.values()} == {"vdd"}
    assert "as deep_well_net states" in notes[-1]
    with pytest.raises(LayoutkitError, match="vcc, which is no net of the circuit"):
        bodies_of(MANY, load("sg13g2"), "vcc")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".subckt t a b c\nM1 a b c c {0} W=1u L=1u\nM2 b a a a {0} W=1u L=1u\n.ends\n", "name one with deep_well_net"),
        (MANY.replace(".ends", "D1 y vdd diode_nd2ps_03v3 area=1p pj=4u\n.ends"), "isolate only nfet_03v3"),
    ],
)
def test_bodies_that_cannot_be_isolated_are_refused(text, expected):
    with pytest.raises(UnsupportedOperationError, match=expected):
        bodies_of(text, load("gf180mcuD"))


def test_a_process_without_deep_wells_refuses_bodies_on_several_nets():
    with pytest.raises(UnsupportedOperationError, match="all the one substrate"):
        bodies_of(MANY, replace(load("sky130A"), deep_well=None))
