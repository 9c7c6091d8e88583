"""layout.place_modules through its command line, and the placed modules handed to the router (S1.7, S0.7, S0.15)."""

import json
from itertools import combinations
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.circuit import map_circuit, read_netlist
from layoutkit.drc.check import check
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.technology import load
from layoutkit.tools.current_layout import ORIENTATIONS
from thorough import processes

PLACE = "module-placement/scripts/place_modules.py"
ROUTE = "signal-routing/scripts/route_signal_nets.py"
OTA = Path(__file__).parents[2] / "skills/netlist-to-gds/assets/ota_5t.spice"
INSTRUMENTATION = Path(__file__).parents[1] / "layoutkit/circuit/labelled/instrumentation.spice"
FILTER_FILE = Path(__file__).with_name("filter.spice")
FILTER = FILTER_FILE.read_text(encoding="utf-8")
CAPACITOR = ".subckt cap a b\nC1 a b 500f\n.ends"
PASSIVE = [name for name in processes() if load(name).passives]


@pytest.fixture
def place(run_script, tmp_path):
    """Return a function that places netlist text (or a path) in the workspace ``ws``."""

    def run(netlist, *arguments, technology="sky130A", workspace="ws"):
        path = netlist
        if isinstance(netlist, str):
            path = tmp_path / "in.spice"
            path.write_text(netlist, encoding="utf-8")
        flags = {"--netlist-path": path, "--technology": technology, "--workspace": tmp_path / workspace}
        flags.update(zip(arguments[::2], arguments[1::2], strict=True))
        return run_script(PLACE, *(part for flag in flags.items() for part in flag))

    return run


@pytest.fixture
def placed(run_once):
    """Return a function that returns the answer for a netlist, placed once in a test run; tests only read it."""

    def run(netlist, technology="sky130A"):
        code, envelope, _ = run_once(PLACE, netlist, "--technology", technology)
        assert (code, envelope["error"]) == (0, None)
        return envelope["data"]

    return run


def top_cell(path):
    layout = kdb.Layout()
    layout.read(str(path))
    return layout, layout.top_cell()


def box(data):
    return kdb.DBox(data["x"], data["y"], data["x"] + data["width"], data["y"] + data["height"])


def faults_of(path, netlist, technology):
    """Return what DRC and LVS have against a layout."""
    layout, cell = top_cell(path)
    process = load(technology)
    circuit = map_circuit(read_netlist(netlist), process)
    result = compare(extract(layout, cell, process), circuit)
    return [*check(layout, cell, process).violated, *(mismatch.to_json() for mismatch in result.mismatches)]


@pytest.mark.parametrize("technology", processes())
def test_the_layout_has_exactly_the_modules_clean_and_apart(placed, technology):
    data = placed(OTA, technology)
    layout, cell = top_cell(data["layout_path"])
    assert cell.name == data["cell_name"] == "ota_5t"
    inside = {i.cell.name: i for i in cell.each_inst()}
    drawn = {name: instance for name, instance in inside.items() if not name.startswith("ring_")}
    assert len(inside) - len(drawn) == len(data["placement"]["rings"])  # each around several modules
    placed = [entry["module"] for entry in data["placement"]["instances"]]
    assert sorted(drawn) == sorted(m["name"] for m in data["modules"]) == sorted(placed)
    assert len(drawn) == 3
    assert sorted(d for m in data["modules"] for d in m["devices"]) == ["M1", "M2", "M3", "M4", "M5", "M6"]
    boxes = [i.bbox() for i in drawn.values()]
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    for entry in data["placement"]["instances"]:
        instance = drawn[entry["module"]]
        assert instance.dtrans.disp == kdb.DVector(*entry["position"])
        assert instance.dbbox() == box(entry["bounding_box"])
        assert ORIENTATIONS[entry["orientation"]] == (instance.trans.angle, instance.trans.is_mirror())
    assert check(layout, cell, load(technology)).violated == ()


def test_modules_that_are_turned_have_the_orientation_of_their_instances(placed):
    data = placed(INSTRUMENTATION)
    _layout, cell = top_cell(data["layout_path"])  # kept: its cells end with it
    instances = {each.cell.name: each.trans for each in cell.each_inst()}
    told = {entry["module"]: entry["orientation"] for entry in data["placement"]["instances"]}
    assert {"R90", "MXR90", "MYR90"} <= {*told.values()}
    for module, orientation in told.items():
        assert ORIENTATIONS[orientation] == (instances[module].angle, instances[module].is_mirror())


@pytest.mark.parametrize("technology", PASSIVE)
def test_port_names_lie_on_the_grid(placed, technology):
    layout, cell = top_cell(placed(FILTER, technology)["layout_path"])
    grid = load(technology).grid
    texts = [shape.text for index in layout.layer_indexes() for shape in cell.shapes(index).each() if shape.is_text()]
    assert {text.string for text in texts} == {"in", "out", "mid", "vdd", "vss"}
    assert [(text.string, text.x, text.y) for text in texts if text.x % grid or text.y % grid] == []


def test_the_modules_lie_symmetric_about_the_axis(placed, column_ota):
    """S0.5: the pair's poly and diffusion are their own mirror image about ``axis_x``."""
    data = placed(column_ota)
    assert [m["centroid_error"] for m in data["modules"]] == [0, 0, 0]
    assert sorted(map(sorted, data["matched_pairs"])) == [["M1", "M2"], ["M3", "M4"], ["M5", "M6"]]
    layout, cell = top_cell(data["layout_path"])
    mirror = kdb.Trans(2, True, round(2 * data["placement"]["axis_x"] / layout.dbu), 0)
    for name in ("poly", "diff", "nwell"):
        shapes = kdb.Region(cell.begin_shapes_rec(load("sky130A").layer(layout, name)))
        assert (shapes ^ shapes.transformed(mirror)).is_empty(), name


def test_a_net_without_wires_is_open_and_ports_are_labelled(placed):
    """Nothing is wired: LVS tells it, though every port has its name."""
    data = placed(OTA)
    layout, cell = top_cell(data["layout_path"])
    layers = [load("sky130A").layer(layout, f"{each}.label") for each in ("met1", "met2", "met3")]  # rails on met3
    texts = [text.text_string for layer in layers for text in cell.shapes(layer).each()]
    assert sorted(texts) == ["bias", "inn", "inp", "out", "vdd", "vss"]
    assert {net["net_name"] for net in data["nets"]} == {"bias", "inn", "inp", "out", "tail", "tmir", "vdd", "vss"}
    assert faults_of(data["layout_path"], OTA, "sky130A")


@pytest.mark.parametrize("technology", processes())
def test_the_router_takes_the_request_as_it_is(placed, run_script, technology, tmp_path):
    data = placed(OTA, technology)
    request = json.loads(Path(data["routing_path"]).read_text())
    assert request == {name: data[name] for name in request}
    before = Path(data["placed_path"]).read_bytes()
    where = ("--layout-path", data["placed_path"], "--technology", technology, "--workspace", tmp_path / "ws")
    outcomes = []
    for _ in range(2):  # starting again gives the same layout
        code, envelope = run_script(ROUTE, "--params", data["routing_path"], *where)
        assert (code, envelope["data"]["routing_stats"]["failed_count"]) == (0, 0)
        told = envelope["data"]["constraints"]["outcomes"]
        assert {tuple(sorted(entry["names"])) for entry in told} == {("inn", "inp"), ("out", "tmir")}
        unmet = [f"{entry['constraint']} ({', '.join(entry['names'])})" for entry in told if not entry["obeyed"]]
        warned = [text.partition(" is not obeyed: ")[0] for text in envelope["data"]["warnings"]]
        assert warned == [f"constraint {name}" for name in unmet]
        outcomes.append(Path(envelope["data"]["layout_path"]).read_bytes())
    assert faults_of(envelope["data"]["layout_path"], OTA, technology) == []
    assert outcomes[0] == outcomes[1] != before == Path(data["placed_path"]).read_bytes()


@pytest.mark.parametrize("technology", PASSIVE)
def test_resistors_and_capacitors_are_placed_and_routed(placed, run_script, technology, tmp_path):
    data = placed(FILTER, technology)
    assert data["obstacles"]  # vias and wires keep off the capacitor
    where = ("--layout-path", data["placed_path"], "--technology", technology, "--workspace", tmp_path / "ws")
    code, envelope = run_script(ROUTE, "--params", data["routing_path"], *where)
    assert code == 0
    assert faults_of(envelope["data"]["layout_path"], FILTER_FILE, technology) == []


def test_a_single_device_is_wired_to_its_ports(place, run_script, tmp_path):
    data = place(CAPACITOR)[1]["data"]
    where = ("--layout-path", data["placed_path"], "--technology", "sky130A", "--workspace", tmp_path / "ws")
    code, envelope = run_script(ROUTE, "--params", data["routing_path"], *where)
    assert code == 0
    assert {net["net_name"] for net in envelope["data"]["routed_nets"]} == {
        port["port"] for port in data["placement"]["ports"]
    }
    assert faults_of(data["layout_path"], tmp_path / "in.spice", "sky130A") == []


def test_the_same_input_gives_the_same_bytes(place, placed, tmp_path):
    one = Path(placed(FILTER)["layout_path"]).parent
    place(FILTER, workspace="two")
    for name in ("layout.gds", "placed.gds", "circuit.json", "routing.json"):
        assert (one / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_a_row_gap_is_room_beyond_the_rules_taken_up_to_the_grid(place):
    tight, wide = (place(OTA, "--row-gap", gap)[1]["data"]["placement"] for gap in (0, 3.0012))
    assert (tight["row_gap"], wide["row_gap"]) == (0, 3.005)
    assert wide["width"] * wide["height"] > tight["width"] * tight["height"]
    assert [[(each["room"], each["failed"]) for each in placement["tries"]] for placement in (tight, wide)] == [
        [(0, [])],
        [(3.005, [])],
    ]
    assert (tight["attempts"], tight["most_attempts"]) == (1, 6)


def test_utilisation_aspect_and_islands_are_those_of_the_boxes(placed, column_ota):
    data = placed(column_ota)
    layout, cell = top_cell(data["layout_path"])
    placement, boxes = data["placement"], {i.cell.name: i.bbox() for i in cell.each_inst()}
    core = sum(boxes.values(), kdb.Box())
    area = sum(boxes[entry["module"]].area() for entry in placement["instances"])
    assert placement["core_utilisation"] == pytest.approx(area / core.area(), abs=1e-3)
    covered = kdb.Region([boxes[entry["module"]] for entry in placement["instances"]])
    rings = [i for i in cell.each_inst() if i.cell.name.startswith("ring_")]
    assert rings
    for ring in rings:  # its bands: all but what lies inside of its local interconnect
        interconnect = kdb.Region(ring.cell.begin_shapes_rec(layout.layer(67, 20))).merged().transformed(ring.trans)
        covered += kdb.Region(ring.bbox()) - interconnect.holes()
    covered = covered.merged().area()
    assert placement["utilisation"] == pytest.approx(covered / cell.bbox().area(), abs=1e-3)
    sides = sorted((cell.bbox().width(), cell.bbox().height()))
    assert placement["aspect"] == pytest.approx(sides[1] / sides[0], abs=1e-3)
    (island,) = placement["islands"]
    axis = round(island["axis_x"] / layout.dbu)
    for name in island["modules"]:
        images = [box for box in boxes.values() if box == kdb.Trans(2, True, 2 * axis, 0) * boxes[name]]
        assert images, name


@pytest.mark.parametrize("technology", processes())
def test_modules_without_room_between_them_keep_the_rules(place, technology):
    """Wells of several blocks in one row are joined, right above the row of the other kind."""
    ring = [f"Mp{i} n{(i + 1) % 5} n{i} vdd vdd pmos W=2u L=0.2u" for i in range(5)]
    ring += [f"Mn{i} n{(i + 1) % 5} n{i} vss vss nmos W=1u L=0.2u" for i in range(5)]
    netlist = "\n".join([".subckt ring n0 vdd vss", *ring, ".ends", ""])
    code, envelope = place(netlist, "--row-gap", 0, technology=technology)
    assert code == 0
    layout, cell = top_cell(envelope["data"]["layout_path"])
    assert check(layout, cell, load(technology)).violated == ()


def test_the_priorities_of_a_plan_reach_the_router(place, run_script):
    plan = run_script(
        "constraint-planning/scripts/suggest_constraints.py", "--netlist-path", OTA, "--source", "recognition"
    )
    priorities = plan[1]["data"]["constraints"]["net_priorities"]
    code, envelope = place(OTA, "--net-priorities", json.dumps(priorities))
    assert code == 0
    wanted = {entry["net"]: entry["priority"] for entry in priorities}
    assert {n["net_name"]: n["priority"] for n in envelope["data"]["nets"]} == {
        n["net_name"]: wanted[n["net_name"]] for n in envelope["data"]["nets"]
    }


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--row-gap", "-1"), "row_gap"),
        (("--row-gap", "wide"), "row_gap"),
        (("--row-gap", "1e9"), "row_gap"),
        (("--seed", "-1"), "seed"),
        (("--netlist-path", "missing.spice"), "missing.spice"),
        (("--top", "nosuch"), "nosuch"),
        (("--technology", "nosuch"), "nosuch"),
        (("--net-priorities", '[{"net": "nosuch", "priority": 1}]'), "nosuch; it has: bias, inn"),
        (("--net-priorities", '[{"net": "out", "priority": 1}, {"net": "out", "priority": 2}]'), "more than once: out"),
        (("--net-priorities", '[{"net": "out"}]'), "priority"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_refused_and_nothing_is_written(place, tmp_path, arguments, told):
    code, envelope = place(OTA, *arguments)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert told in envelope["error"]["message"]
    assert not (tmp_path / "ws").exists()


@pytest.mark.parametrize(
    ("netlist", "code", "told"),
    [
        (".subckt a b c\nL1 b c 1n\nM1 b c b b nmos W=1u L=0.18u\n.ends", "UNSUPPORTED_OPERATION", "L1"),
        (".subckt a b\n.ends", "INVALID_PARAM", "no devices"),
    ],
)
def test_what_cannot_be_drawn_is_refused_and_nothing_is_written(place, tmp_path, netlist, code, told):
    exit_code, envelope = place(netlist)
    assert (exit_code, envelope["error"]["code"]) == (2, code)
    assert told in envelope["error"]["message"]
    assert not (tmp_path / "ws").exists()


def test_a_workspace_that_is_a_file_is_refused(place, tmp_path):
    (tmp_path / "taken").write_text("")
    code, envelope = place(OTA, workspace="taken")
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
