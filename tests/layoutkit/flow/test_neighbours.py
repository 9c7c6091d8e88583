"""Groups that no one module holds: their modules are neighbours of equal units, and stages lie in their order."""

import klayout.db as kdb
import pytest

from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.technology import load

MIRROR = """* a mirror whose gates a switch joins: no one module has both gate nets
.subckt pump iin mid out sw vss
M1 iin iin vss vss sky130_fd_pr__nfet_01v8 W=18u L=0.15u nf=24
M6 mid iin vss vss sky130_fd_pr__nfet_01v8 W=18u L=0.15u nf=24
M2 out g vss vss sky130_fd_pr__nfet_01v8 W=18u L=0.15u nf=24
M3 g sw iin vss sky130_fd_pr__nfet_01v8 W=7.5u L=0.15u nf=10
.ends
"""
ORDER = (3, 0, 4, 1, 2)  # of the cards: that of the stages is told by the nets
NAMES = (0, 3, 1, 4, 2)  # of instances
NETS = ("o", "a", "b", "c", "d", "o")
FLAT = "* five inverters in a ring\n.subckt ring o vdd vss\n" + "".join(
    f"MP{n} {NETS[n + 1]} {NETS[n]} vdd vdd sky130_fd_pr__pfet_01v8 W=2u L=0.5u\n"
    f"MN{n} {NETS[n + 1]} {NETS[n]} vss vss sky130_fd_pr__nfet_01v8 W=1u L=0.5u\n"
    for n in ORDER
)
FLAT += ".ends\n"
CELLS = """.subckt stage x z vdd vss
MP z x vdd vdd sky130_fd_pr__pfet_01v8 W=2u L=0.5u
MN z x vss vss sky130_fd_pr__nfet_01v8 W=1u L=0.5u
.ends
.subckt ring o vdd vss
""" + "".join(f"X{NAMES[n]} {NETS[n]} {NETS[n + 1]} vdd vss stage\n" for n in ORDER)
CELLS = f"* stages that are cells, with a load\n{CELLS}M9 vss b vss vss sky130_fd_pr__nfet_01v8 W=3u L=1u\n.ends\n"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    done = {}

    def built(text):
        if text not in done:
            folder = str(tmp_path_factory.mktemp("neighbours"))
            report = build_layout(LayoutRequest(netlist_text=text, technology="sky130A", workspace=folder))
            assert (report["drc"]["total_violations"], report["lvs"]["matched"]) == (0, True)
            layout = kdb.Layout()
            layout.read(report["files"]["gds"])
            done[text] = report, layout
        return done[text]

    return built


def texts(layout):
    """Return where the name of each device is written: the middle of all its names. [dbu]"""
    layer = load("sky130A").layer(layout, load("sky130A").roles["device_text"])
    found: dict[str, list[kdb.DVector]] = {}
    for text in kdb.Texts(layout.top_cell().begin_shapes_rec(layer)).each():
        found.setdefault(text.string, []).append(kdb.DVector(text.trans.disp.x, text.trans.disp.y))
    return {name: sum(places, kdb.DVector()) / len(places) for name, places in found.items()}


def channels(layout, name, reach=50):
    """Return width and height of the channels at which the name of a device is written. [dbu]"""
    process = load("sky130A")
    top = layout.top_cell()
    active, poly = (
        kdb.Region(top.begin_shapes_rec(process.layer(layout, process.roles[role]))) for role in ("active", "poly")
    )
    layer = process.layer(layout, process.roles["device_text"])
    named = kdb.Region()
    for text in kdb.Texts(top.begin_shapes_rec(layer)).each():
        if text.string == name:
            named.insert(kdb.Box(text.bbox().center(), text.bbox().center()).enlarged(reach, reach))
    return sorted(
        (box.bbox().width(), box.bbox().height()) for box in (active & poly).merged().interacting(named).each()
    )


def test_parts_of_a_mirror_are_neighbours_of_equal_units_in_one_orientation(drawn):
    report, layout = drawn(MIRROR)
    outcomes = {tuple(each["names"]): each for each in report["constraints"]["outcomes"]}
    assert outcomes["M1", "M2"]["constraint"] == "proximity[0]"
    assert outcomes["M1", "M2"]["obeyed"], outcomes["M1", "M2"]
    apart = [each["why"] for each in report["review"]["findings"] if each["id"] == "group-apart"]
    assert all("not interleaved" in why for why in apart), apart  # the switch belongs to them: nothing foreign between
    assert channels(layout, "M1") == channels(layout, "M6") == channels(layout, "M2") == [(150, 750)] * 24


def test_the_modules_of_stages_lie_in_the_order_in_which_they_drive_each_other(drawn):
    _, layout = drawn(FLAT)
    at = texts(layout)
    for kind in ("MP", "MN"):
        places = [at[f"{kind}{n}"].x for n in range(5)]
        turned = places if places[0] < places[-1] else places[::-1]
        first = min(range(5), key=turned.__getitem__)  # a ring begins anywhere
        assert [*turned[first:], *turned[:first]] == sorted(turned)
    assert all(abs(at[f"MP{n}"].x - at[f"MN{n}"].x) < 10 for n in range(5))  # each stage is a column


def test_stages_that_are_cells_lie_in_that_order_too(drawn):
    report, layout = drawn(CELLS)
    assert report["hierarchy"]["cells"][0]["devices"] == 2
    at = texts(layout)
    places = [at[f"X{name}.MP"] for name in NAMES]
    steps = sorted((after - before).length() for before, after in zip(places, [*places[1:], places[0]], strict=True))
    grid = min((a - b).length() for a in places for b in places if a != b)
    assert steps[3] < 1.5 * grid  # all but the last to the first are neighbours in a row, or one above the other
