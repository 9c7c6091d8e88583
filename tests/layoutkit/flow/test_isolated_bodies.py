"""Bodies on several nets: each that is not the substrate lies in a deep well; verdicts are clean, wells keep apart."""

from dataclasses import replace

import klayout.db as kdb
import pytest

from layoutkit.circuit import map_circuit, read_netlist
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.errors import LayoutkitError, UnsupportedOperationError
from layoutkit.extract.extractor import extract
from layoutkit.flow.build import build_layout
from layoutkit.flow.deep_wells import isolated_bodies
from layoutkit.flow.design import LayoutRequest
from layoutkit.lvs.compare import compare
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


STATED = """* devices that state a deep well, with their bodies on the rails
.subckt stated a b c d vdd vss
M1 a b vss vss nfet_03v3_dn W=4u L=0.6u nf=2
M2 a b vss vss nfet_03v3 W=2u L=0.6u
M3 a b vdd vdd pmos_3p3_dw W=4u L=0.6u nf=2 m=2
M4 a b vdd vdd pfet_06v0 W=2u L=0.6u
D1 vss c diode_nd2ps_03v3_dn area=2p pj=6u
D2 c vdd diode_pd2nw_06v0_dn area=2p pj=6u m=2
R1 c d vdd ppolyf_u_dw w=1u l=8u
R2 c d vss nplus_u_dw w=1u l=8u
R3 c d vdd pplus_s_dw w=1u l=8u
C1 b vss cap_nmos_06v0_dn w=3u l=3u
C2 b vdd cap_pmos_03v3_dn w=3u l=3u
.ends
"""
IN_DEEP_WELLS = {"M1", "M3", "D1", "D2", "R1", "R2", "R3", "C1", "C2"}


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
    circuit = map_circuit(read_netlist(netlist), technology)
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
        (MANY.replace(".ends", "M20 y y y y nfet_06v0_nvt W=1u L=2u\n.ends"), "isolate only nfet_03v3"),
    ],
)
def test_bodies_that_cannot_be_isolated_are_refused(text, expected):
    with pytest.raises(UnsupportedOperationError, match=expected):
        bodies_of(text, load("gf180mcuD"))


def test_a_process_without_deep_wells_refuses_bodies_on_several_nets():
    with pytest.raises(UnsupportedOperationError, match="all the one substrate"):
        bodies_of(MANY, replace(load("sky130A"), deep_well=None))


def test_devices_that_state_a_deep_well_lie_in_one_whatever_the_net_of_their_body(built):
    report, workspace = built(STATED, "gf180mcuD")
    assert report["drc"]["violations"] == []
    assert report["lvs"]["mismatches"] == []
    assert report["lvs"]["complete"]
    assert report["replaced_devices"] == []
    deck = (workspace / "reference.cdl").read_text(encoding="utf-8")
    for card in (line.split() for line in deck.splitlines() if line[:1] in "MDRC" and "DUMMY" not in line):
        model = next(word for word in card if "_" in word)
        assert model.endswith(("_dn", "_dw")) == (card[0] in IN_DEEP_WELLS), card


def test_a_device_outside_of_a_deep_well_is_not_the_one_that_states_it(built):
    """The same layout is that of the names without deep wells, but not of those with more of them."""
    technology = load("gf180mcuD")
    report, _ = built(STATED, "gf180mcuD")
    layout = kdb.Layout()
    layout.read(report["files"]["gds"])
    drawn = extract(layout, layout.top_cell(), technology)

    def verdict(text):
        circuit = read_netlist(NetlistText(text))
        return compare(drawn, map_circuit(circuit, technology))

    assert verdict(STATED).matched
    assert verdict(STATED.replace("_dn ", " ").replace("_dw ", " ")).matched
    for plain, name in (("vss nfet_03v3 W", "M1, M2"), ("vdd pfet_06v0 W", "M4")):
        model = plain.split()[1]
        (found,) = verdict(STATED.replace(plain, plain.replace(model, f"{model}_dn"))).mismatches
        assert found.kind == "wrong_parameter"
        assert f"the netlist puts {name} in a deep well" in found.message
    plain = "M2 a b vss vss nfet_03v3 W=2u L=0.6u"
    halves = "M2 a b vss vss nfet_03v3_dn W=1u L=0.6u\nM5 a b vss vss nfet_03v3 W=1u L=0.6u"
    (found,) = verdict(STATED.replace(plain, halves)).mismatches
    assert "the netlist puts M1, M2 in a deep well; the layout has fewer there" in found.message


def test_pins_that_end_just_beyond_a_via_of_their_wire_are_made_longer(tmp_path):
    """V2.3c of gf180mcuD: Metal2 narrower than 0.34 um reaches 0.06 um beyond Via2 at its ends."""
    cards = ["R1 a b vss ppolyf_u_1k_dw w=1u l=1u", "R2 c d vss ppolyf_u_1k_dw w=1u l=1u m=2"]
    text = "\n".join([".subckt device a b c d vdd vss", *cards, ".ends", ""])
    request = LayoutRequest(technology="gf180mcuD", workspace=str(tmp_path), netlist_text=text, last_stage="lvs")
    report = build_layout(request)
    assert report["drc"]["violations"] == []
    assert report["lvs"]["matched"]
