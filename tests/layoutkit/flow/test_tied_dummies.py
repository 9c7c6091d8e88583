"""Dummies and decoupling transistors of the netlist: at the ends of the rows they guard, or rows of their own."""

from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.circuit import read_netlist
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.circuit.suggested_constraints import suggest_constraints
from layoutkit.circuit.symmetry import off_end
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.technology import load

GUARDED = """* a mirror and a pair, each with dummies; those of the pair are longer gates of its width
.subckt guarded bias a b x y vdd vss
M1 bias bias vss vss nmos W=2u L=1u m=2
M2 t bias vss vss nmos W=2u L=1u m=4
M3 x a t vss nmos W=3u L=0.5u m=2
M4 y b t vss nmos W=3u L=0.5u m=2
MD1 vss vss vss vss nmos W=2u L=1u
MD2 vss vss vss vss nmos W=2u L=1u
MD3 vss vss vss vss nmos W=3u L=0.25u m=2
MD4 vss vss vss vss nmos W=3u L=0.25u m=2
MD5 vss vss vss vss nmos W=1u L=0.5u
MD6 vss vss vss vss nmos W=1u L=0.5u
MD7 vss vss vss vss nmos W=1u L=0.5u
MC1 vss vdd vss vss nmos W=3u L=2u m=4
MC2 vss vdd vss vss nmos W=3u L=2u m=4
.ends
"""
MANY = "* more dummies than a pair has fingers\n.subckt many a b x y t vss\n" + "\n".join(
    [
        "M1 x a t vss nmos W=2u L=0.5u nf=1 m=2",
        "M2 y b t vss nmos W=2u L=0.5u nf=1 m=2",
        *(f"MD{i} vss vss vss vss nmos W=2u L=0.5u" for i in range(14)),
        ".ends",
        "",
    ]
)
DUMMIES = {"MD1", "MD2", "MD3", "MD4", "MD5", "MD6", "MD7"}


def built(tmp_path, text, technology="sky130A", **options):
    request = LayoutRequest(
        netlist_text=text, technology=technology, workspace=str(tmp_path), last_stage="metrics", **options
    )
    report = build_layout(request)
    assert report["drc"]["passed"]
    assert report["lvs"]["matched"]
    return report


def diffusions(path, technology):
    """Return the devices on each piece of diffusion, from left to right, by the texts in the layout."""
    layout = kdb.Layout()
    layout.read(path)
    top, own = layout.top_cell(), load(technology)

    def index(role):
        return layout.layer(*own.layers[own.role(role)].gds)

    texts = kdb.Texts(top.begin_shapes_rec(index("device_text")))
    found = []
    for polygon in kdb.Region(top.begin_shapes_rec(index("active"))).merged().each():
        inside = [(each.x, each.string) for each in texts.each() if polygon.inside(kdb.Point(each.x, each.y))]
        if inside:
            found.append([name for _, name in sorted(inside)])
    return found


@pytest.fixture
def guarded(once):
    """Return the report of ``GUARDED`` in sky130A, laid out once in a test run."""
    return once(lambda folder: built(folder, GUARDED), "guarded by dummies")[0]


def test_dummies_lie_at_the_ends_of_the_group_that_they_guard(guarded):
    modules = {frozenset(module["devices"]) for module in guarded["modules"]}
    assert {"M1", "M2", "MD1", "MD2"} in modules
    assert {"M3", "M4", "MD3", "MD4"} in modules
    beside = [devices for devices in diffusions(guarded["files"]["gds"], "sky130A") if {"MD1", "MD2"} & set(devices)]
    (row,) = beside  # its sources are on the rail at both ends, so that the dummies share the diffusion
    assert {row[0], row[-1]} == {"MD1", "MD2"}
    assert row[1:-1]
    assert set(row[1:-1]) <= {"M1", "M2"}


def test_dummies_that_guard_nothing_and_decoupling_share_rows(guarded):
    rows = [set(devices) for devices in diffusions(guarded["files"]["gds"], "sky130A")]
    assert {"MD5", "MD6", "MD7"} in rows
    modules = {frozenset(module["devices"]) for module in guarded["modules"]}
    assert {"MC1", "MC2"} in modules


def test_the_written_netlist_holds_each_dummy_once(guarded):
    lines = Path(guarded["files"]["reference_netlist"]).read_text().splitlines()
    for name in DUMMIES:
        assert sum(line.startswith(f"X{name} ") for line in lines) == 1
    added = [line for line in lines if line.startswith("XMDUMMY") and line.split()[1:5] == ["vss"] * 4]
    rows = next(module["pattern"] for module in guarded["modules"] if "MD1" in module["devices"]).count("/") + 1
    assert [line.split()[-1] for line in added] == [f"m={2 * rows - 2}"]  # at the other ends of the mirror's rows


def test_a_group_gets_no_more_dummies_than_it_has_fingers(tmp_path):
    report = built(tmp_path, MANY)
    modules = [set(module["devices"]) for module in report["modules"]]
    guarded, rest = sorted(modules, key=lambda names: "M1" not in names)
    assert guarded >= {"M1", "M2"}
    assert len(guarded) == 2 + 4
    assert len(rest) == 10


@pytest.mark.parametrize("technology", ["gf180mcuD", "sg13g2"])
def test_other_processes(tmp_path, technology):
    report = built(tmp_path, GUARDED, technology)
    assert {"M1", "M2", "MD1", "MD2"} in [set(module["devices"]) for module in report["modules"]]


def test_dummies_that_constraints_match_stay_as_they_are(tmp_path):
    constraints = {"alignment": [{"devices": ["M1", "MD1"], "edge": "bottom"}]}
    report = built(tmp_path, GUARDED, constraints=constraints)
    assert ["MD1"] in [module["devices"] for module in report["modules"]]


def test_what_lies_beside_a_group_is_suggested(tmp_path):
    path = tmp_path / "own.spice"
    path.write_text(GUARDED)
    found = {entry.reason: set(entry.devices) for entry in suggest_constraints(read_netlist(str(path))).proximity}
    assert found["dummies of the differential pair"] == {"M3", "M4", "MD3", "MD4"}
    assert found["dummies of the current mirror"] == {"M1", "M2", "MD1", "MD2"}
    assert found["equal dummies"] == {"MD5", "MD6", "MD7"}
    assert found["decoupling of vdd and vss"] == {"MC1", "MC2"}


OFF = """* an amplifier whose loads and tail have dummies with one end on a signal
.subckt off a b out bias vdd vss
M1 x a t vss nmos W=4u L=1u
M2 out b t vss nmos W=4u L=1u
M3 x x vdd vdd pmos W=4u L=1u
M4 out x vdd vdd pmos W=4u L=1u
M5 t bias vss vss nmos W=4u L=1u
M6 bias bias vss vss nmos W=4u L=1u
MD1 out vdd vdd vdd pmos W=4u L=1u
MD2 vdd vdd x vdd pmos W=4u L=1u
MD3 vss vss t vss nmos W=4u L=1u
.ends
"""


@pytest.mark.parametrize("technology", ["sky130A", "sg13g2"])
def test_dummies_that_end_on_a_signal_lie_in_the_rows_of_the_group_on_it(tmp_path, technology):
    report = built(tmp_path, OFF, technology)
    modules = [set(module["devices"]) for module in report["modules"]]
    assert {"M3", "M4", "MD1", "MD2"} in modules
    (tail,) = [devices for devices in modules if "MD3" in devices]
    assert tail in ({"M5", "M6", "MD3"}, {"M1", "M2", "MD3"})


LATCH = """* a latch whose halves are drawn apart, each with a dummy on its own output
.subckt latch p n a vg vh gnd
M1 y x vh vh pmos W=10u L=0.4u
M3 x y vh vh pmos W=10u L=0.4u
M5 z y vh vh pmos W=10u L=0.4u m=3
M7 vg z vh vh pmos W=10u L=0.4u m=6
M2 y p gnd gnd nmos W=10u L=0.45u m=6
M4 x n gnd gnd nmos W=10u L=0.45u m=6
M6 z n gnd gnd nmos W=10u L=0.45u m=3
M8 vg z gnd gnd nmos W=10u L=0.45u m=6
MD2 y gnd gnd gnd nmos W=10u L=0.45u m=2
MD4 x gnd gnd gnd nmos W=10u L=0.45u m=2
.ends
"""


def test_halves_that_are_drawn_apart_have_dummies_that_end_on_their_signals(tmp_path):
    report = built(tmp_path, LATCH)
    modules = [set(module["devices"]) for module in report["modules"]]
    assert {"M2", "MD2"} in modules
    assert {"M4", "MD4"} in modules


STAGES = (
    """.subckt stage i o vdd vss b
M1 o i vss vss nmos W=2u L=1u
M2 o i n vdd pmos W=5u L=5u
M3 n b vdd vdd pmos W=5u L=4u
M4 b b vdd vdd pmos W=8u L=4u
MD1 n vdd vdd vdd pmos W=5u L=5u
MD2 o vdd vdd vdd pmos W=5u L=5u
.ends
.subckt line a e vdd vss b0 b1 b2 b3
"""
    + "".join(f"x{i} {'abcd'[i]} {'bcde'[i]} vdd vss b{i} stage\n" for i in range(4))
    + ".ends\n"
)


def test_each_use_of_a_cell_has_the_dummies_under_its_own_names(tmp_path):
    report = built(tmp_path, STAGES)
    together = [set(module["devices"]) for module in report["modules"]]
    assert all(any({f"x{i}.M3", f"x{i}.MD1"} <= devices for devices in together) for i in range(4))


def test_what_conducts_or_lies_in_another_body_is_no_dummy():
    text = ".subckt c a o t vdd vss\n{}\n.ends\n"
    ends = {
        "M1 o vss vss vss nmos W=1u L=1u": "o",
        "M1 vss vss o vss nmos W=1u L=1u": "o",
        "M1 vss vss vss vss nmos W=1u L=1u": "vss",
        "M1 o a vss vss nmos W=1u L=1u": None,
        "M1 o vss t vss nmos W=1u L=1u": None,
        "M1 o vss vss t nmos W=1u L=1u": None,
    }
    for card, end in ends.items():
        (device,) = read_netlist(NetlistText(text.format(card))).devices
        assert off_end(device) == end, card
