"""Constraints of a file in the whole flow: mirrored devices and wires, matched groups, currents, sides, and reports."""

import json
from dataclasses import replace
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.circuit import read_netlist
from layoutkit.circuit.constraints import Constraints
from layoutkit.circuit.suggested_constraints import suggest_constraints
from layoutkit.errors import LayoutkitError
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit, read_constraints
from layoutkit.flow.placement_outcomes import place_outcomes
from layoutkit.flow.summary import faults
from layoutkit.rectangle import Rectangle
from layoutkit.technology import load
from layoutkit.tools.current_layout import CurrentLayout
from layoutkit.tools.layout_outputs import measure
from thorough import processes

SKILLS = Path(__file__).parents[3] / "skills"
OTA = SKILLS / "netlist-to-gds/assets/ota_5t.spice"
COMPARATOR = SKILLS / "constraint-planning/assets/comparator.spice"
BUFFERS = """* two chains of two inverters
.subckt buffers a b x y vdd vss
M1 n1 a vss vss nmos W=2u L=0.5u
M2 n2 b vss vss nmos W=2u L=0.5u
M3 n1 a vdd vdd pmos W=4u L=0.5u
M4 n2 b vdd vdd pmos W=4u L=0.5u
M5 x n1 vss vss nmos W=4u L=0.5u nf=2
M6 y n2 vss vss nmos W=4u L=0.5u nf=2
M7 x n1 vdd vdd pmos W=6u L=0.5u nf=2
M8 y n2 vdd vdd pmos W=6u L=0.5u nf=2
.ends
"""
UNEQUAL = """* an inverter, another of other sizes after it, and one more transistor
.subckt unequal a b x y vdd vss
M1 n1 a vss vss nmos W=2u L=0.5u
M2 y b vss vss nmos W=2u L=0.5u
M3 n1 a vdd vdd pmos W=4u L=0.5u
M5 x n1 vss vss nmos W=4u L=0.5u nf=2
M7 x n1 vdd vdd pmos W=6u L=1u nf=2
.ends
"""
APART = {
    "symmetry": [
        {
            "pairs": [["M1", "M2"], ["M3", "M4"], ["M5", "M6"], ["M7", "M8"]],
            "net_pairs": [["a", "b"], ["n1", "n2"], ["x", "y"]],
        }
    ]
}


@pytest.fixture
def build(tmp_path):
    """Return a function that lays out a netlist (text or path) under constraints and returns the report.

    It stops after LVS or an earlier stage: nothing here judges pictures, and few tests the figures of modules.
    """

    def run(netlist, constraints=None, technology="sky130A", last_stage="lvs", **request):
        path = tmp_path / "in.spice" if isinstance(netlist, str) else netlist
        if isinstance(netlist, str):
            path.write_text(netlist, encoding="utf-8")
        if constraints is not None:
            (tmp_path / "constraints.json").write_text(json.dumps(constraints), encoding="utf-8")
            request["constraints"] = str(tmp_path / "constraints.json")
        given = LayoutRequest(str(path), technology, str(tmp_path / technology), last_stage=last_stage, **request)
        return build_layout(given)

    return run


@pytest.fixture(scope="module")
def buffers(tmp_path_factory):
    """Return the report of the buffers laid out without constraints."""
    folder = tmp_path_factory.mktemp("buffers")
    request = LayoutRequest(netlist_text=BUFFERS, technology="sky130A", workspace=str(folder), constraints={})
    return build_layout(replace(request, last_stage="export"))


def outcomes(report):
    return {entry["constraint"]: (entry["obeyed"], entry["reason"]) for entry in report["constraints"]["outcomes"]}


def boxes_of(report):
    """Return the box of every instance in the top cell, by the name of its cell."""
    layout = kdb.Layout()
    layout.read(report["files"]["gds"])
    return {instance.cell.name: instance.bbox() for instance in layout.top_cell().each_inst()}


def metal_of_ports(path, process):
    """Return port -> conductor -> metal and cuts connected to the port's label, traced by KLayout."""
    layout = kdb.Layout()
    layout.read(path)
    top = layout.top_cell()
    trace = kdb.LayoutToNetlist(kdb.RecursiveShapeIterator(layout, top, []))
    layers = {
        item.name: trace.make_polygon_layer(process.layer(layout, item.layer), item.name)
        for item in (*process.conductors, *process.cuts)
    }
    for layer in layers.values():
        trace.connect(layer)
    for cut in process.cuts:
        trace.connect(layers[cut.below], layers[cut.name])
        trace.connect(layers[cut.name], layers[cut.above])
    trace.extract_netlist()
    found = {}
    for conductor in process.conductors:
        for shape in top.shapes(process.layer(layout, conductor.label_layer)).each(kdb.Shapes.STexts):
            net = trace.probe_net(layers[conductor.name], kdb.Point(shape.text.x, shape.text.y))
            found[shape.text.string] = {name: trace.shapes_of_net(net, layer, True) for name, layer in layers.items()}
    return found


@pytest.mark.parametrize("technology", processes())
def test_pairs_drawn_apart_and_their_nets_are_mirror_images_in_metal(build, technology):
    report = build(BUFFERS, APART, technology)
    assert faults(report) == []
    assert {obeyed for obeyed, _ in outcomes(report).values()} == {True}
    axis = round(report["placement"]["axis_x"] * 1000)
    mirror = kdb.Trans(2, True, 2 * axis, 0)
    metal = metal_of_ports(report["files"]["gds"], load(technology))
    for left, right in (("a", "b"), ("x", "y")):
        assert sum(region.area() for region in metal[left].values()) > 0
        for name, region in metal[left].items():
            assert (region.transformed(mirror) ^ metal[right][name]).is_empty(), (left, name)


def test_the_first_device_of_a_pair_lies_on_the_left(build):
    for pairs in (APART["symmetry"][0]["pairs"], [pair[::-1] for pair in APART["symmetry"][0]["pairs"]]):
        report = build(BUFFERS, {"symmetry": [{"pairs": pairs}]}, last_stage="export")
        places = {name.rpartition("_")[2]: box for name, box in boxes_of(report).items() if name[:4] != "ring"}
        for left, right in pairs:
            assert places[left].right < places[right].left


def test_self_symmetric_devices_are_centred_on_the_axis_beside_others_of_their_row(build):
    constraints = {"symmetry": [{"pairs": [["M5", "M6"]], "self_symmetric": ["M1", "M4"]}]}
    report = build(BUFFERS, constraints, "gf180mcuD", "metrics")
    assert faults(report) == []
    assert {obeyed for obeyed, _ in outcomes(report).values()} == {True}
    boxes, axis = boxes_of(report), round(report["placement"]["axis_x"] * 1000)
    for device in ("M1", "M4"):
        (module,) = [entry["name"] for entry in report["modules"] if entry["devices"] == [device]]
        assert boxes[module].left + boxes[module].right == 2 * axis, device


@pytest.mark.parametrize("technology", processes())
def test_a_clocked_comparator_is_drawn_as_two_halves_that_mirror_each_other(finished_layout, technology):
    report, _ = finished_layout(COMPARATOR, technology)
    assert faults(report) == []
    found = outcomes(report)
    pairs = [found[f"symmetry[0].pairs[{index}]"] for index in range(7)]
    assert set(pairs) == {(True, "drawn as two modules that mirror each other")}
    exact = {"".join(sorted(each["nets"])): each["exact"] for each in report["routing"]["mirrored"]}
    assert exact.keys() >= {"clk", "com", "dndp", "inninp", "outnoutp"}
    crossing = {"lnlp"}  # each net of the latch leads to the other side, past the other on another layer
    assert {nets for nets, mirrored in exact.items() if not mirrored} <= {*crossing, "clk", "vdd"}
    assert exact["clk"] or technology != "sky130A"  # no room for an image of the wire to its port
    assert "the nets differ in length by" in found["symmetry[0].net_pairs[2]"][1]


def test_the_suggestion_of_recognition_as_a_file_gives_the_same_layout(build, finished_layout):
    plain, _ = finished_layout(COMPARATOR, "sky130A")
    given = build(COMPARATOR, suggest_constraints(read_netlist(COMPARATOR)).to_json(), last_stage="export")
    assert given["layout_sha256"] == plain["layout_sha256"]
    assert (plain["constraints"]["source"], given["constraints"]["source"][-5:]) == ("recognition", ".json")
    ours, theirs = (report["constraints"]["outcomes"] for report in (given, plain))
    count = sum("net_priorities" not in each["constraint"] for each in ours)  # those come last, in the order of nets
    assert ours[:count] == theirs[:count]


def test_what_only_the_file_matches_is_one_module_and_the_rest_is_drawn_one_by_one(build):
    groups = [{"devices": ["M1", "M2"], "arrangement": "AABB"}, {"devices": ["M5", "M6"]}]
    report = build(OTA, {"matching": groups}, last_stage="metrics")
    assert faults(report) == []
    assert {tuple(sorted(m["devices"])): m["type"] for m in report["modules"]} == {
        ("M1", "M2"): "differential_pair", ("M5", "M6"): "current_mirror", ("M3",): "single", ("M4",): "single",
    }  # fmt: skip
    offsets = [offset for group in report["matching"]["groups"] for offset in group["predicted_offsets"]]
    apart, together = offsets  # of AABB the centroids are two fingers apart
    assert [text.partition(":")[0] for text in apart["unchecked"]] == ["distance"]
    assert (apart["centroid_distance_um"] > 0, together["unchecked"]) == (True, [])
    assert all(offset["contributions"]["strap"]["counted"] for offset in offsets)
    report = build(BUFFERS, {"matching": [{"devices": ["M1", "M2"], "arrangement": "ABAB"}]}, last_stage="metrics")
    assert faults(report) == []
    assert [m["devices"] for m in report["modules"] if m["type"] == "matched_group"] == [["M1", "M2"]]
    assert outcomes(report)["matching[0]"][0] is True


def test_the_sets_of_a_cascode_mirror_that_have_a_common_centroid_are_named(build):
    nmos = "NMOS W=4u L=0.5u nf=2"
    below = f"M1 in in vss vss {nmos}\nM2 x2 in vss vss {nmos}\n"
    report = build(f"{below}M3 ic ic in vss {nmos}\nM4 o1 ic x2 vss {nmos}\n", None, last_stage="metrics")
    (module,) = report["modules"]
    assert len(module["devices"]) == 4
    (reason,) = (each["reason"] for each in report["constraints"]["outcomes"] if each["constraint"] == "matching[0]")
    assert reason.endswith("with a common centroid of each set: M1 M2; M3 M4")


def test_a_pattern_that_cannot_be_drawn_is_refused_and_never_replaced(build):
    narrow = BUFFERS.replace("W=2u", "W=0.42u")
    with pytest.raises(LayoutkitError, match=r"M1 has 1 fingers for 2 units, .* Possible here: AB,"):
        build(narrow, {"matching": [{"devices": ["M1", "M2"], "arrangement": "ABBA"}]})


def test_what_is_not_obeyed_is_reported_and_warned_of(build):
    constraints = {
        "matching": [{"devices": ["M3", "M7"]}, {"devices": ["M1", "M2"], "arrangement": "AB"}],
        "net_currents": [{"net": "n1", "current": 0.0001}, {"net": "x", "current": 0.008}],
        "port_sides": [{"port": "a", "side": "left"}, {"port": "b", "side": "left"}],
        "proximity": [{"devices": ["M1", "M5"]}],
        "net_priorities": [{"net": "n1", "priority": 7}],
    }
    report = build(UNEQUAL, constraints, last_stage="currents", row_gap=2.0)
    found = outcomes(report)
    assert "drawn as 2 modules" in found["matching[0]"][1]
    assert found["matching[1]"][0]
    assert "AB, with centroids" in found["matching[1]"][1]
    assert found["net_currents[0]"] == (True, "the drawn metal carries the current")
    assert found["net_currents[1]"][0] is False
    assert found["net_priorities[0]"] == (True, "routed with priority 7")
    assert found["matching[0]"][0] is False
    not_obeyed = [entry for entry in report["constraints"]["outcomes"] if entry["obeyed"] is False]
    warned = [text for text in report["warnings"] if "is not obeyed" in text]
    assert len(warned) == len(not_obeyed) == report["constraints"]["not_obeyed"] == 2
    assert found["proximity[0]"] == (True, "the modules are neighbours")  # apart from the room for the wire of 8 mA
    assert [found[f"port_sides[{index}]"][0] for index in (0, 1)] == [True, True]


def test_a_proximity_group_brings_devices_together(build, buffers):
    apart = []
    for report in (buffers, build(BUFFERS, {"proximity": [{"devices": ["M4", "M5"]}]}, last_stage="export")):
        places = {name.rpartition("_")[2]: box for name, box in boxes_of(report).items() if name[:4] != "ring"}
        middles = [places[device].center() for device in ("M4", "M5")]
        apart.append(abs(middles[0].x - middles[1].x) + abs(middles[0].y - middles[1].y))
    assert apart[1] < apart[0] / 2
    assert outcomes(report)["proximity[0]"] == (True, "the modules are neighbours")


def test_metal_that_does_not_carry_its_current_makes_the_layout_not_clean(build, monkeypatch):
    """sky130: a via carries 0.29 mA; the modules and the wires are drawn here as if no current were stated."""
    monkeypatch.setattr("layoutkit.flow.modules.device_currents", lambda *_: {})
    monkeypatch.setattr("layoutkit.flow.routing.stated_currents", lambda *_: {})
    constraints = {
        "device_currents": [{"device": "M5", "current": 0.00005}],
        "net_currents": [{"net": "vdd", "current": 0.003}],
    }
    report = build(OTA, constraints, last_stage="export")
    verdicts = {entry["net"]: entry for entry in report["currents"]["nets"]}
    assert (verdicts["tail"]["verdict"], verdicts["vss"]["verdict"]) == ("passed", "passed")
    failed = verdicts["vdd"]
    assert failed["verdict"] == "failed"
    assert failed["needed_ma"] == 3
    assert failed["carries_ma"] < 3
    assert len(failed["box"]) == 4
    assert verdicts["inp"]["verdict"] == "unstated"
    assert verdicts["inp"]["carries_ma"] > 0
    found = faults(report)
    assert len(found) == 1
    assert "net vdd carries 3 mA" in found[0]
    assert outcomes(report)["device_currents[0]"] == (True, "the drawn metal carries the current")
    assert outcomes(report)["net_currents[0]"][0] is False
    assert report["currents"]["temperature_c"] == 90
    alone = {"workspace": str(Path(report["files"]["gds"]).parent)}
    for current, verdict in ((0.003, "failed"), (0.0001, "passed")):
        params = {**alone, "net_currents": [{"net": "vdd", "current": current}]}
        (found_alone,) = measure(params, CurrentLayout(params))[0]["currents"]
        assert found_alone["verdict"] == verdict
        assert (len(found_alone.get("box", ())) == 4) == (verdict == "failed")


def test_single_cuts_in_wires_with_a_current_make_the_layout_not_clean_where_two_fit(build, monkeypatch):
    """The router is kept from giving its vias more than one cut; the current is far below what one carries."""
    stated = {"net_currents": [{"net": "n1", "current": 0.00001}]}
    assert faults(build(BUFFERS, stated, last_stage="currents")) == []
    monkeypatch.setattr("layoutkit.flow.routing.stated_currents", lambda *_: {})
    monkeypatch.setattr("layoutkit.route.second_cuts.SecondCuts.add", lambda *_: {})
    report = build(BUFFERS, stated, last_stage="currents")
    (failed,) = (entry for entry in report["currents"]["nets"] if entry["verdict"] == "failed")
    assert (failed["net"], failed["drawn"], failed["needed"]) == ("n1", "1 cut", "2 cuts")
    assert len(failed["box"]) == 4
    (text,) = faults(report)
    assert "net n1 carries 0.01 mA, it has a single cut where two fit" in text
    assert outcomes(report)["net_currents[0]"][0] is False


@pytest.mark.parametrize("technology", ["sky130A", "gf180mcuD", "sg13g2"])
def test_modules_and_wires_grow_with_the_current(build, technology):
    """2 mA flow through M5, and so through M1 and M2: more than a minimum rail, riser or two cuts carry anywhere.

    The seed is one with which no wire crosses a module on its rail, which holds the current of the module alone.
    """
    report = build(OTA, {"device_currents": [{"device": "M5", "current": 0.002}]}, technology)
    assert faults(report) == []
    verdicts = {entry["net"]: entry["verdict"] for entry in report["currents"]["nets"]}
    assert (verdicts["tail"], verdicts["vss"]) == ("passed", "passed")


def test_a_current_widens_the_wires_of_its_net(build, buffers):
    """Arithmetic: 2.8 mA/um of met1 and met2 (sky130 LEF), so 1.4 mA need 0.5 um; the minimum is 0.14 um."""
    report = build(BUFFERS, {"net_currents": [{"net": "n1", "current": 0.0014}]}, last_stage="export")
    assert longest_wire(report, "met2", 498) > 700
    assert longest_wire(buffers, "met2", 498) < 500  # the metal of vias is as wide


def longest_wire(report, conductor, width):
    """Return how long the longest metal of a conductor is where it is wider than ``width``. [dbu]"""
    layout, process = kdb.Layout(), load(report["technology"])
    layout.read(report["files"]["gds"])
    drawn = kdb.Region(layout.top_cell().shapes(process.layer(layout, process.conductor(conductor).layer))).merged()
    boxes = (each.bbox() for each in drawn.sized(-(width // 2)).each())
    return max((max(box.width(), box.height()) for box in boxes), default=0)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"symetry": []}, "unknown 'symetry' (did you mean 'symmetry'?)"),
        ({"matching": [{"devices": ["M1"]}]}, "matching[0].devices: must have at least 2 entries, got 1"),
        ({"net_currents": [{"net": "out", "current": -1}]}, "net_currents[0].current: must be greater than 0, got -1"),
        ({"matching": [{"devices": ["M1", "M9"]}]}, "the circuit has no device 'M9'"),
        ([], "must be an object, got array"),
        ({"net_priorities": [{"net": "out", "priority": 2}]}, "net_priorities contradicts the constraints: out (1;"),
    ],
)
def test_a_file_that_cannot_be_obeyed_is_refused_with_its_faults(build, tmp_path, constraints, message):
    with pytest.raises(LayoutkitError) as caught:
        build(OTA, constraints, net_priorities=[{"net": "out", "priority": 1}])
    assert message in str(caught.value)
    assert not (tmp_path / "sky130A").exists()


def test_files_that_are_no_constraints_are_refused_without_quoting_them(tmp_path):
    twice = '{"matching": [{"devices": 1, "NAME": 1, "NAME": 2}]}'.replace("NAME", "x" * 9999)
    for content, reason in (
        ("secret words", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ("x" * (5 << 20), "bytes, more than"),
        ('{"symmetry": [], "symmetry": []}', "appears twice"),
        (twice, "not JSON"),
    ):
        (tmp_path / "c.json").write_text(content, encoding="utf-8")
        with pytest.raises(LayoutkitError) as caught:
            build_layout(LayoutRequest(str(OTA), "sky130A", str(tmp_path / "ws"), constraints=str(tmp_path / "c.json")))
        assert "secret" not in str(caught.value)
        assert reason in str(caught.value)
        assert len(str(caught.value)) < 500


def test_a_file_with_a_byte_order_mark_is_read(tmp_path):
    (tmp_path / "c.json").write_text('{"matching": [{"devices": ["M1", "M2"]}]}', encoding="utf-8-sig")
    assert read_constraints(str(tmp_path / "c.json")).matching[0].devices == ("M1", "M2")


def test_both_drains_of_a_lone_pair_reach_their_ports_though_all_their_pins_lie_at_different_heights(build):
    """The wire that mends the heights of the ports meets the one that mends those of the rails: both are drawn."""
    report = build(SKILLS / "netlist-to-gds/assets/pair.spice", last_stage="lvs")
    assert report["lvs"]["mismatches"] == []
    assert report["lvs"]["matched"]


def test_modules_of_two_rings_align_exactly(build):
    report = build(BUFFERS, {"alignment": [{"devices": ["M5", "M7"], "edge": "top"}]})
    assert (report["drc"]["passed"], report["lvs"]["matched"]) == (True, True)
    assert outcomes(report)["alignment[0]"] == (True, "the modules are aligned")
    boxes = boxes_of(report)
    assert boxes["nmos_M5"].top == boxes["pmos_M7"].top


def test_modules_that_lie_apart_or_out_of_line_are_reported_with_the_distance():
    boxes = {
        "m1": Rectangle(0, 0, 1000, 1000),
        "m2": Rectangle(5250, 3, 6250, 1003),
        "m3": Rectangle(0, 1100, 1005, 2100),
    }
    entries = {
        "proximity": [{"devices": ["M1", "M2"]}, {"devices": ["M1", "M3"]}],
        "alignment": [{"devices": ["M1", "M2"], "edge": "left"}, {"devices": ["M1", "M3"], "edge": "center_x"}],
        "abutment": [{"devices": ["M1", "M2"]}],
    }
    owner = {name.upper(): name for name in boxes}

    def judged(room):
        constraints = Constraints.from_json(entries)
        return place_outcomes(load("sky130A"), constraints, owner, boxes, lambda *_: 270, lambda *_: room)

    found = judged((0, 0))
    assert [each.obeyed for each in found] == [False, True, False, True, False]
    assert "m2 lie apart from m1: 4.25 um between the nearest two" in found[0].reason
    assert "differs by up to 5.25 um" in found[2].reason
    assert "but for 0.0025 um" in found[3].reason
    assert "4.25 um apart, the rules and wires need 0.27 um" in found[4].reason
    # what the flow keeps free for wires parts nobody: 4.25 um are 1 um, the length of a module, and 3.25 um of room
    for room, obeyed in ((3245, (False, False)), (3250, (True, False)), (3975, (True, False)), (3980, (True, True))):
        found = judged((room, 0))
        assert (found[0].obeyed, found[4].obeyed) == obeyed
    assert not judged((0, 9000))[0].obeyed  # the room above a module is not that beside it


REGULATOR = """* a pass device of eight milliamperes beside a transistor of some microamperes
.subckt regulator vin vout gate a q vss
MP vout gate vin vin pmos W=100u L=0.5u nf=10 m=2
M1 q a vin vin pmos W=2u L=0.5u
M2 q a vss vss nmos W=1u L=0.5u
R1 vout vss 20k
.ends
"""


def test_wires_and_modules_carry_their_shares_of_a_net_s_current(build):
    """8 mA need 2.86 um of met2, which finds no way to M1; it takes 1 % of them, which a wire of 0.14 um carries.

    R1 takes 0.09 mA; the single cuts at its end become two.
    """
    stated = [{"net": "vin", "current": 0.008}, {"net": "vout", "current": 0.008}]
    report = build(REGULATOR, {"net_currents": stated})
    assert faults(report) == []
    verdicts = {entry["net"]: entry["verdict"] for entry in report["currents"]["nets"]}
    assert (verdicts["vin"], verdicts["vout"]) == ("passed", "passed")


def test_single_cuts_of_tap_rings_are_doubled_on_nets_with_a_current(build):
    mirror = """* 1:2
.subckt mirror iin iout vss
M1 iin iin vss vss nmos W=10u L=1u nf=2
M2 iout iin vss vss nmos W=20u L=1u nf=4
.ends
"""
    constraints = {"net_currents": [{"net": "vss", "current": 0.0005}], "matching": [{"devices": ["M1", "M2"]}]}
    assert faults(build(mirror, constraints)) == []


LOADED = """.subckt stage hi lo in out ib
M1 out in t lo nmos W=4u L=0.5u nf=2
M3 t ib lo lo nmos W=4u L=0.5u nf=2
M4 ib ib lo lo nmos W=4u L=0.5u nf=2
R1 hi out sky130_fd_pr__res_high_po_0p69 l=10u w=0.69u
.ends
"""


def test_stated_supplies_get_a_rail_and_others_do_not(build, tmp_path):
    """Nothing tells that ``hi``, on one resistor only, is the supply; a user who states it gets its rail."""

    def port(report, name):
        return next(entry for entry in report["placement"]["ports"] if entry["port"] == name)

    found = port(build(LOADED, last_stage="route"), "hi")
    assert (found["use"], found["layer"]) == ("signal", "met1")
    report = build(LOADED, {"supplies": {"power": ["hi"], "ground": ["lo"]}}, last_stage="currents")
    assert port(report, "hi")["use"] == "power"
    assert (port(report, "hi")["side"], port(report, "lo")["side"]) == ("top", "bottom")
    left, _, right, _ = port(report, "hi")["pin"]
    assert right - left == pytest.approx(report["placement"]["width"], rel=0.05)  # a rail along the whole top
    assert outcomes(report)["supplies.power"][0] is True
    # The workspace keeps what was stated: a build that goes on from there draws the same rails.
    again = build_layout(LayoutRequest(workspace=str(tmp_path / "sky130A"), first_stage="place", last_stage="route"))
    assert port(again, "hi") == port(report, "hi")
    # Taken out again, they are found again: nothing stays behind.
    assert port(build(LOADED, {"supplies": {"ground": ["lo"]}}, last_stage="route"), "hi")["use"] == "signal"


RAIL_PAIR = """.subckt rail hi lo inp inn out ib
M1 x inp t lo nmos W=4u L=0.5u nf=2
M2 out inn t lo nmos W=4u L=0.5u nf=2
M3 x x hi hi pmos W=4u L=0.5u nf=2
M4 out x hi hi pmos W=4u L=0.5u nf=2
M5 t ib lo lo nmos W=4u L=1u
.ends
"""
SUPPLIES = {"supplies": {"power": ["hi"], "ground": ["lo"]}}


def recognise(constraints):
    request = LayoutRequest(netlist_text=RAIL_PAIR, technology="sky130A", constraints=constraints)
    technology = load("sky130A")
    design, notes = make_design(request, technology, read_circuit(request, technology)[0])
    sizes = sorted(tuple(sorted(str(device.id) for device in group.devices)) for group in design.groups)
    return design, sizes, [note for note in notes if "recognition" in note]


@pytest.mark.parametrize("more", [{}, {"net_currents": [{"net": "out", "current": 1e-4}]}])
def test_supplies_without_groups_are_completed_by_recognition(more):
    design, drawn, notes = recognise({**SUPPLIES, **more})
    assert drawn == [("M1", "M2"), ("M3", "M4"), ("M5",)]
    assert ("M1", "M2") in {pair for group in design.constraints.symmetry for pair in group.pairs}
    assert design.supplies == {"hi", "lo"}
    assert design.whole.currents == ({"out": 1e-4} if more else {})
    assert notes == ["the constraints state supplies and no groups; recognition with these supplies finds the groups"]


@pytest.mark.parametrize("stated", [{"matching": [{"devices": ["M3", "M4"]}]}, {"matching": []}, {"symmetry": []}])
def test_groups_beside_supplies_replace_recognition(stated):
    design, drawn, notes = recognise({**SUPPLIES, **stated})
    of_pair = [("M3", "M4")] if stated.get("matching") else [("M3",), ("M4",)]
    assert drawn == [("M1",), ("M2",), *of_pair, ("M5",)]
    assert (design.constraints.symmetry, notes) == ((), [])


def test_a_completed_build_goes_on_with_the_same_groups(build, tmp_path):
    first = build(RAIL_PAIR, SUPPLIES, last_stage="place")
    request = LayoutRequest(workspace=str(tmp_path / "sky130A"), first_stage="route", last_stage="currents")
    again = build_layout(replace(request, constraints=str(tmp_path / "constraints.json")))
    assert [path for path in outcomes(again) if path.startswith("matching")] == ["matching[0]", "matching[1]"]
    assert any("recognition with these supplies" in text for text in first["warnings"])


def test_wrong_supplies_are_refused_with_all_other_faults(build):
    given = {"supplies": {"power": ["hi", "vdd"], "ground": ["hi"]}, "matching": [{"devices": ["M1", "M9"]}]}
    with pytest.raises(LayoutkitError) as caught:
        build(LOADED, given, last_stage="parse")
    paths = [fault["path"] for fault in caught.value.details["errors"]]
    assert sorted(paths) == ["matching[0]", "supplies.ground", "supplies.power"]
