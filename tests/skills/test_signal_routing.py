"""layout.route_signal_nets_basic through its command line: the specified parameters and answer (S0.7)."""

import itertools
import json
import re
import shutil
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.drc.check import check
from layoutkit.technology import load

SCRIPT = "signal-routing/scripts/route_signal_nets.py"
EXAMPLE = Path(__file__).resolve().parents[2] / "skills" / "signal-routing" / "assets" / "two_nets.json"
SKY = load("sky130A")


def end(x, y, layer="metal1"):
    return {"x": x, "y": y, "layer": layer}


def pin(left, bottom, right, top, layer="metal1"):
    middle = end(round((left + right) / 2, 6), round((bottom + top) / 2, 6), layer)
    return {**middle, "width": round(right - left, 6), "height": round(top - bottom, 6)}


def net(name, *endpoints, **more):
    return {"net_name": name, "endpoints": list(endpoints), **more}


@pytest.fixture
def route(run_script, tmp_path):
    """Return a function that routes nets into the workspace ``ws``."""

    def run(nets, **params):
        request = {"nets": nets, "workspace": str(tmp_path / "ws"), **params}
        return run_script(SCRIPT, "--params", json.dumps(request))

    return run


def layout_of(tmp_path):
    layout = kdb.Layout()
    layout.read(str(tmp_path / "ws" / "layout.gds"))
    return layout


def joined(layout, technology, *ends):
    """Return whether all ends lie on one net, traced by KLayout through conductors and cuts."""
    cell = layout.top_cell()
    trace = kdb.LayoutToNetlist(kdb.RecursiveShapeIterator(layout, cell, []))
    metal = {c.name: trace.make_layer(technology.layer(layout, c.layer), c.name) for c in technology.conductors}
    for layer in metal.values():
        trace.connect(layer)
    for cut in technology.cuts:
        via = trace.make_layer(technology.layer(layout, cut.layer), cut.name)
        trace.connect(via)
        trace.connect(metal[cut.below], via)
        trace.connect(via, metal[cut.above])
    trace.extract_netlist()
    found = [trace.probe_net(metal[technology.conductor(e["layer"]).name], kdb.DPoint(e["x"], e["y"])) for e in ends]
    return None not in found and len({one.cluster_id for one in found}) == 1


def write_layout(path, shapes, technology=SKY, cell="TOP"):
    layout = kdb.Layout()
    layout.dbu = 0.001
    top = layout.create_cell(cell)
    for layer, box in shapes:
        top.shapes(technology.layer(layout, layer)).insert(kdb.DBox(*box))
    layout.write(str(path))
    return path


def test_the_seeds_request_gives_the_seeds_answer(route, tmp_path):
    request = [net("outp", end(10.5, 5.0), end(25.0, 5.0), width=0.2, priority=1)]
    rules = {"min_width": {"metal1": 0.2}}
    code, envelope = route(request, drc_rules=rules, routing_layers=["metal1", "metal2"], via_layer="via1")
    assert code == 0
    data = envelope["data"]
    assert set(data["routed_nets"][0]) - {"patches"} == {"net_name", "success", "path", "wire_length", "via_count"}
    assert data["routed_nets"][0]["net_name"] == "outp"
    assert data["routed_nets"][0]["success"] is True
    assert data["routed_nets"][0]["wire_length"] == 14.5
    assert data["routing_stats"] == {"total_nets": 1, "success_count": 1, "failed_count": 0, "total_wire_length": 14.5}
    assert data["drc"]["passed"] is True
    assert data["drc"]["rules_checked"] > 0
    assert joined(layout_of(tmp_path), load("generic"), *request[0]["endpoints"])


@pytest.mark.parametrize("technology", ["generic", "sky130A"])
def test_the_skills_example_is_joined_and_clean(run_script, tmp_path, technology):
    code, envelope = run_script(SCRIPT, "--params", EXAMPLE, "--workspace", tmp_path / "ws", "--technology", technology)
    assert code == 0, envelope
    layout, process = layout_of(tmp_path), load(technology)
    for wanted in json.loads(EXAMPLE.read_text())["nets"]:
        assert joined(layout, process, *wanted["endpoints"])
    first, second = (n["endpoints"][0] for n in json.loads(EXAMPLE.read_text())["nets"])
    assert not joined(layout, process, first, second)
    assert check(layout, layout.top_cell(), process).violated == ()


def test_a_path_alternates_wires_and_vias_and_spells_layers_as_requested(route):
    request = [net("a", end(0, 0), end(8, 6, "metal3"))]
    layers = ["metal1", "metal2", "metal3"]
    code, envelope = route(request, technology="sky130A", routing_layers=layers)
    assert code == 0
    path = envelope["data"]["routed_nets"][0]["path"]
    assert {step["layer"] for step in path} <= {*layers, "via1", "via2"}
    assert sum("position" in step for step in path) == envelope["data"]["routed_nets"][0]["via_count"]
    points = [p for step in path for p in step.get("points", [step.get("position")])]
    assert (points[0], points[-1]) == ([0, 0], [8, 6]) or (points[0], points[-1]) == ([8, 6], [0, 0])
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in itertools.pairwise(points))


def test_layers_that_are_not_neighbours_are_joined_by_stacked_vias(route, tmp_path):
    request = [net("a", end(0, 0), end(8, 6, "metal3"))]
    code, envelope = route(request, technology="sky130A", routing_layers=["metal1", "metal3"])
    assert code == 0
    wires = {step["layer"] for step in envelope["data"]["routed_nets"][0]["path"] if "points" in step}
    assert "met2" not in wires
    assert joined(layout_of(tmp_path), SKY, *request[0]["endpoints"])
    assert envelope["data"]["drc"]["passed"]


def test_existing_metal_is_gone_around_and_an_endpoint_owns_what_it_lies_on(route, tmp_path):
    shapes = [
        ("met1", (0, 0, 4, 0.3)),
        ("met1", (10, 0, 14, 0.3)),
        ("met1", (6, -5, 7, 5)),
        ("met2", (5, -0.4, 8, 0.7)),
    ]
    source = write_layout(tmp_path / "in.gds", shapes)
    before = source.read_bytes()
    request = [net("a", end(3, 0.15), end(11, 0.15))]
    code, envelope = route(request, layout_path=str(source), technology="sky130A")
    assert (code, envelope["data"]["routed_nets"][0]["success"]) == (0, True)
    assert source.read_bytes() == before
    layout = layout_of(tmp_path)
    assert joined(layout, SKY, *request[0]["endpoints"], end(0.5, 0.1))
    assert not joined(layout, SKY, end(3, 0.15), end(6.5, 0))
    assert not joined(layout, SKY, end(3, 0.15), end(5.5, 0, "metal2"))
    assert check(layout, layout.top_cell(), SKY).violated == ()


def test_a_pin_is_reached_anywhere_on_its_rectangle(route, tmp_path):
    """Two rails that face each other only at their ends: a straight wire joins pins, points need a detour."""
    rails = [(0, 0, 20, 0.4), (18, 4, 40, 4.405)]
    source = write_layout(tmp_path / "in.gds", [("met1", rail) for rail in rails])
    params = {"layout_path": str(source), "technology": "sky130A"}
    code, envelope = route([net("a", *(pin(*rail) for rail in rails))], **params)
    assert (code, envelope["data"]["drc"]["passed"]) == (0, True)
    assert envelope["data"]["routed_nets"][0]["wire_length"] < 5
    layout = layout_of(tmp_path)
    assert joined(layout, SKY, end(1, 0.2), end(39, 4.2))
    assert check(layout, layout.top_cell(), SKY).violated == ()


def test_metal_inside_of_cells_is_distinguished(route, tmp_path):
    """Nets that end inside of different cells, or of two instances of one, are different nets."""
    layout = kdb.Layout()
    layout.dbu = 0.001
    top = layout.create_cell("TOP")
    for name, y in (("BAR", 0), ("OTHER", 10)):
        bar = layout.create_cell(name)
        bar.shapes(SKY.layer(layout, "met1")).insert(kdb.DBox(0, 0, 4, 0.4))
        for x in (0, 10):
            top.insert(kdb.DCellInstArray(bar.cell_index(), kdb.DTrans(x, y)))
    layout.write(str(tmp_path / "in.gds"))
    nets = [net("a", end(1, 0.2), end(1, 10.2)), net("b", end(11, 0.2), end(11, 10.2))]
    code, envelope = route(nets, layout_path=str(tmp_path / "in.gds"), technology="sky130A")
    assert (code, envelope["error"]) == (0, None)
    drawn = layout_of(tmp_path)
    assert [joined(drawn.dup(), SKY, *n["endpoints"]) for n in nets] == [True, True]


def test_a_capacitors_plates_are_two_nets(route, tmp_path):
    """The via on a MIM plate joins the plate to the metal above, not the metal below to it."""
    shapes = [
        ("met3", (0, 0, 6, 6)),
        ("capm", (1, 1, 5, 5)),
        ("via3", (2, 2, 2.2, 2.2)),
        ("met4", (1.5, 1.5, 4.5, 4.5)),
    ]
    source = write_layout(tmp_path / "in.gds", shapes)
    nets = [net("n", end(0.3, 3, "met3"), end(-9, 3, "met3")), net("p", end(3, 3, "met4"), end(9, 3, "met4"))]
    params = {"routing_layers": ["met3", "met4"], "via_layer": "via3", "technology": "sky130A"}
    code, envelope = route(nets, layout_path=str(source), **params)
    assert (code, envelope["error"]) == (0, None)
    code, envelope = route([net("s", nets[0]["endpoints"][0], nets[1]["endpoints"][0])], **params)
    assert (code, envelope["data"]["routed_nets"][0]["wire_length"] > 0) == (0, True)


def test_fill_is_metal_and_a_slot_is_none(route, tmp_path):
    """What extraction calls metal is what the router keeps away from, and what a pin must lie on."""
    gf = load("gf180mcuD")
    wall = (6, -5, 7, 5)
    shapes = [("Metal1", (0, 0, 4, 0.6)), ("Metal1", (10, 0, 14, 0.6)), ("Metal1_Dummy", wall)]
    shapes += [("Metal1", (20, 0, 30, 10)), ("Metal1_Slot", (22, 2, 24, 8))]
    source = write_layout(tmp_path / "in.gds", shapes, gf)
    params = {"layout_path": str(source), "technology": "gf180mcuD"}
    code, envelope = route([net("a", end(3, 0.3), end(11, 0.3))], **params)
    assert (code, envelope["data"]["routed_nets"][0]["success"]) == (0, True)
    layout = layout_of(tmp_path)
    metal = kdb.Region(layout.top_cell().begin_shapes_rec(gf.layer(layout, "Metal1")))
    fill = kdb.Region(kdb.DBox(*wall).to_itype(0.001))
    assert metal.sized(229).interacting(fill).is_empty()  # M1.2a: 0.23 um
    code, envelope = route([net("b", pin(20, 0, 30, 10), end(40, 5))], **params)
    assert (code, "is not wholly metal" in envelope["error"]["message"]) == (2, True)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (pin(0, 0, 4, 0.5), "pin (0, 0; 4, 0.5) um on met1 of net 'a' is not wholly metal"),
        (pin(6, 6, 8, 8), "is not wholly metal"),
        (pin(0, 0, 4.0012, 0.4), "x + width / 2 = 4.0012 um is off the 0.005 um grid; the nearest grid point is 4 um"),
        ({**end(1, 0.2), "width": 0.4}, "height"),
        ({**end(1, 0.2), "width": 1e-9, "height": 0.2}, "width = 1e-09 um is less than the 0.005 um grid"),
        ({**end(1, 0.2), "width": 0, "height": 1}, "width"),
    ],
)
def test_a_pin_that_is_not_drawn_or_off_the_grid_is_refused(route, tmp_path, wrong, told):
    source = write_layout(tmp_path / "in.gds", [("met1", (0, 0, 4, 0.4))])
    code, envelope = route([net("a", wrong, end(9, 9))], layout_path=str(source), technology="sky130A")
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert told in envelope["error"]["message"]
    assert not (tmp_path / "ws" / "layout.gds").exists()


def test_a_via_can_be_kept_away_from_an_area(route):
    """The way up lies under the keepout; vias are drawn beside it, wires may cross."""
    wall = [{"layer": "metal1", "box": {"x": 4, "y": -9, "width": 1, "height": 18}}]
    keepout = {"layer": "via1", "box": {"x": -1, "y": -9, "width": 4, "height": 18}}
    for obstacles, inside in ((wall, True), ([*wall, keepout], False)):
        code, envelope = route(
            [net("a", end(0, 0), end(9, 0))], obstacles=obstacles, workspace=None or str(len(obstacles))
        )
        assert code == 0
        vias = [step["position"][0] for step in envelope["data"]["routed_nets"][0]["path"] if "position" in step]
        assert any(x < 3 for x in vias) is inside


def test_no_nets_in_a_layout_draw_nothing(route, tmp_path):
    """A step of a pipeline whose modules need no wires."""
    source = write_layout(tmp_path / "in.gds", [("met1", (0, 0, 4, 0.4))])
    code, envelope = route([], layout_path=str(source), technology="sky130A")
    assert (code, envelope["data"]["routed_nets"], envelope["data"]["drc"]["passed"]) == (0, [], True)


def test_endpoints_that_metal_joins_already_draw_nothing(route, tmp_path):
    request = [net("a", end(0, 0), end(8, 6))]
    assert route(request)[0] == 0
    once = (tmp_path / "ws" / "layout.gds").read_bytes()
    code, envelope = route(request)
    assert code == 0
    assert envelope["data"]["routed_nets"] == [
        {"net_name": "a", "success": True, "path": [], "wire_length": 0, "via_count": 0}
    ]
    assert (tmp_path / "ws" / "layout.gds").read_bytes() == once


def test_the_same_request_gives_the_same_bytes(run_script, tmp_path):
    for name in ("one", "two"):
        assert run_script(SCRIPT, "--params", EXAMPLE, "--workspace", tmp_path / name)[0] == 0
    assert (tmp_path / "one" / "layout.gds").read_bytes() == (tmp_path / "two" / "layout.gds").read_bytes()


def test_a_net_that_cannot_be_routed_is_reported_and_the_others_are_drawn(route, tmp_path):
    wall = [{"layer": layer, "box": {"x": 4, "y": -9, "width": 1, "height": 18}} for layer in ("metal1", "metal2")]
    request = [net("shut", end(0, 0), end(8, 0)), net("free", end(0, 3), end(3, 3))]
    area = {"x": -2, "y": -5, "width": 12, "height": 10}
    code, envelope = route(request, obstacles=wall, routing_area=area)
    assert code == 1
    assert envelope["ok"] is True
    shut, free = envelope["data"]["routed_nets"]
    assert (shut["success"], shut["path"], shut["wire_length"], shut["via_count"]) == (False, [], 0, 0)
    assert shut["reason"].startswith("no path from the terminal on metal1 at (0, 0) um")
    assert {(each["kind"], each["net"]) for each in shut["blocked_by"]} == {("metal", None)}
    assert shut["blocked_by"][0]["position"][0] == pytest.approx(4.5, abs=2)
    assert free["success"] is True
    assert envelope["data"]["routing_stats"]["failed_count"] == 1
    assert layout_of(tmp_path).top_cell().dbbox().right < 4


def test_what_blocks_a_net_names_the_module_that_holds_it(route, tmp_path):
    layout = kdb.Layout()
    module, top = layout.create_cell("wall"), layout.create_cell("TOP")
    for layer in ((68, 20), (69, 20)):
        module.shapes(layout.layer(*layer)).insert(kdb.DBox(0, -9, 1, 9))
    top.insert(kdb.DCellInstArray(module.cell_index(), kdb.DTrans(4.0, 0.0)))
    layout.write(str(tmp_path / "in.gds"))
    request = [{"net_name": "shut", "endpoints": [end(0, 0, "met1"), end(8, 0, "met1")]}]
    area = {"x": -2, "y": -5, "width": 12, "height": 10}
    code, envelope = route(
        request,
        layout_path=str(tmp_path / "in.gds"),
        technology="sky130A",
        routing_area=area,
        routing_layers=["met1", "met2"],
    )
    blocked_by = envelope["data"]["routed_nets"][0]["blocked_by"]
    assert (code, {each["module"] for each in blocked_by}) == (1, {"wall"})
    assert blocked_by[0]["box"] == [4, -9, 5, 9]


def test_routes_stay_inside_the_routing_area(route, tmp_path):
    area = {"x": -1, "y": -1, "width": 12, "height": 3}
    wall = [{"layer": "metal1", "box": {"x": 4, "y": -9, "width": 1, "height": 18}}]
    code, _ = route([net("a", end(0, 0), end(10, 0))], obstacles=wall, routing_area=area)
    assert code == 0
    assert layout_of(tmp_path).top_cell().dbbox().inside(kdb.DBox(-1, -1, 11, 2))


def test_wider_limits_than_the_technologys_are_kept_and_narrower_ones_reported(route, tmp_path):
    shapes = [("metal1", (2, 1, 8, 2))]
    write_layout(tmp_path / "in.gds", shapes, load("generic"))
    request = [net("a", end(0, 0), end(10, 0))]
    rules = {"min_space": {"metal1": 1.5, "metal2": 0.1}, "min_width": {"metal1": 0.5}}
    code, envelope = route(
        request, drc_rules=rules, layout_path=str(tmp_path / "in.gds"), routing_layers=["metal1"], via_layer="via1"
    )
    assert code == 0
    assert [w for w in envelope["data"]["warnings"] if "metal2 = 0.1 um is below" in w]
    layout = layout_of(tmp_path)
    region = kdb.Region(layout.top_cell().begin_shapes_rec(layout.layer(4, 0))).merged()
    assert region.count() == 2
    assert region.space_check(1500).is_empty()
    assert region.width_check(500).is_empty()


def faults_of(envelope):
    return [fault["message"] for fault in envelope["error"]["details"].get("errors", [])]


def test_everything_wrong_with_a_request_is_reported_at_once_and_nothing_is_written(route, tmp_path):
    request = [
        net("a", end(0, 0.0012), end(50, 0), width=0.1),
        net("a", end(3, 3), end(3, 3)),
        net("b", end(3, 3), end(1, 1, "poly")),
        net("c", end(5.5, 5.5), end(6, 1)),
    ]
    obstacles = [{"layer": "metal1", "box": {"x": 5, "y": 5, "width": 1, "height": 1}}]
    area = {"x": -1, "y": -1, "width": 20, "height": 20}
    layers = ["metal1", "metal9"]
    code, envelope = route(request, obstacles=obstacles, routing_area=area, routing_layers=layers, via_layer="via7")
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    told = "\n".join(faults_of(envelope))
    for expected in (
        "has no conductor 'metal9'",
        "nets[0].endpoints[0].y = 0.0012 um is off the 0.005 um grid; the nearest grid point is 0 um",
        "Width 0.1 um of net 'a' is below minimum: 0.2 um on metal1",
        "net 'a' is listed more than once",
        "endpoint (50, 0) um on metal1 of net 'a' lies outside the routing area",
        "endpoint (3, 3) um on metal1 of net 'a' is named twice",
        "endpoint (3, 3) um on metal1 of net 'b' is also an endpoint of net 'a'",
        "has no conductor 'poly'",
        "endpoint (5.5, 5.5) um on metal1 of net 'c' lies on an obstacle",
        "technology generic has no via 'via7'",
    ):
        assert expected in told
    assert envelope["error"]["details"]["param_name"]
    assert not (tmp_path / "ws" / "layout.gds").exists()


@pytest.mark.parametrize(
    ("nets", "told"),
    [
        ([net("a", end(0, 0))], "endpoints"),
        ([net("a", end(0, 0), end(1, 1), width="wide")], "width"),
        ([net("a", end(0, 0), {"x": 1, "y": True, "layer": "metal1"})], "y"),
        ([{"net_name": "a", "endpoint": []}], "endpoint"),
        ([], "nets"),
    ],
)
def test_requests_of_the_wrong_shape_are_refused(route, nets, told):
    code, envelope = route(nets)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert told in envelope["error"]["message"]


def test_metal_that_shorts_two_nets_is_a_conflict_and_nothing_changes(route, tmp_path):
    source = write_layout(tmp_path / "in.gds", [("met1", (0, 0, 9, 1))])
    request = [net("a", end(1, 0.5), end(1, 5)), net("b", end(8, 0.5), end(8, 5))]
    code, envelope = route(request, layout_path=str(source), technology="sky130A")
    assert (code, envelope["error"]["code"]) == (1, "LAYOUT_CONFLICT")
    assert envelope["error"]["details"]["nets"] == [["a", "b"]]
    assert not (tmp_path / "ws" / "layout.gds").exists()


@pytest.mark.parametrize("content", [b"", b"not a layout", b"\x00\x06\x00\x02\x00\x07"])
def test_an_unreadable_layout_is_refused_without_a_partial_file(route, tmp_path, content):
    (tmp_path / "bad.gds").write_bytes(content)
    code, envelope = route([net("a", end(0, 0), end(5, 0))], layout_path=str(tmp_path / "bad.gds"))
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert not (tmp_path / "ws" / "layout.gds").exists()


def test_an_unknown_cell_or_technology_is_refused(route, tmp_path):
    source = write_layout(tmp_path / "in.gds", [("met1", (0, 0, 1, 1))])
    request = [net("a", end(0, 0), end(5, 0))]
    code, envelope = route(request, layout_path=str(source), cell_name="NONE", technology="sky130A")
    assert (code, envelope["error"]["details"]["available_cells"]) == (2, ["TOP"])
    code, envelope = route(request, technology="sky131")
    assert (code, "unknown technology 'sky131'" in envelope["error"]["message"]) == (2, True)


def test_an_area_too_large_to_search_is_refused(route):
    code, envelope = route([net("a", end(0, 0), end(90_000, 90_000))])
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert "give a smaller routing area" in envelope["error"]["message"]


def test_labels_become_ports_of_the_routed_cell(route, run_script, tmp_path):
    _, drawn = run_script(
        "mos-pcell/scripts/create_nmos_pcell.py",
        *("--device-id", "M1", "--w", "2e-6", "--l", "0.5e-6", "--technology", "sky130A"),
        *("--workspace", str(tmp_path / "ws")),
    )
    pins = {pin["net"]: pin for pin in drawn["data"]["pins"].values()}
    labels = [
        {"net_name": net, "x": pin["center"][0], "y": pin["center"][1], "layer": pin["layer_name"]}
        for net, pin in sorted(pins.items())
    ]
    (tmp_path / "one.sp").write_text(
        ".subckt one M1_B M1_D M1_G M1_S\nM1 M1_D M1_G M1_S M1_B nfet_01v8 w=2u l=0.5u\n.ends\n"
    )
    compare = (
        "lvs-check/scripts/run_check.py",
        *("--workspace", str(tmp_path / "ws"), "--netlist-path", str(tmp_path / "one.sp"), "--technology", "sky130A"),
    )
    _, unnamed = run_script(*compare)
    assert {mismatch["kind"] for mismatch in unnamed["data"]["mismatches"]} == {"missing_port"}
    for _ in range(2):  # the same labels again add nothing
        assert route([], labels=labels, technology="sky130A")[0] == 0
    layout = layout_of(tmp_path)
    texts = [shape.text_string for index in layout.layer_indexes() for shape in layout.top_cell().shapes(index).each()]
    assert sorted(texts) == sorted(pins)
    assert run_script(*compare)[1]["data"]["matched"]


def test_a_label_beside_the_metal_is_refused(route):
    bar = net("a", end(0, 0), end(5, 0))
    route([bar])
    code, answer = route([], labels=[{"net_name": "a", "x": 0, "y": 9, "layer": "metal1"}])
    assert code == 2
    assert answer["error"]["details"]["param_name"] == "labels[0]"
    assert "lies on no metal1 of the layout; give the centre of a pin" in answer["error"]["message"]


PAIR = [
    net("outp", end(-8, 0), end(-3, 6)),
    net("outn", end(8, 0), end(3, 6)),
    net("tail", end(-9, 3), end(9, 3)),
]


def outcomes_of(envelope):
    return {
        entry["constraint"]: (entry["obeyed"], entry["reason"]) for entry in envelope["data"]["constraints"]["outcomes"]
    }


def test_a_net_mirrors_another_about_the_axis_between_their_endpoints(route):
    nets = [PAIR[0], {**PAIR[1], "mirror_of": "outp"}, PAIR[2]]
    code, envelope = route(nets, technology="sky130A")
    assert (code, outcomes_of(envelope)) == (0, {"symmetry[0].net_pairs[0]": (True, "the wires are mirror images")})
    assert envelope["data"]["constraints"]["source"] == "nets"
    metal = {
        entry["net_name"]: sorted(
            (p["layer"], *sorted(map(tuple, p.get("points", [p.get("position")])))) for p in entry["path"]
        )
        for entry in envelope["data"]["routed_nets"]
    }
    image = sorted((layer, *sorted((-x, y) for x, y in points)) for layer, *points in metal["outp"])
    assert image == metal["outn"] != []


def test_a_constraints_file_states_priorities_mirrored_nets_and_currents(route, tmp_path):
    constraints = {
        "symmetry": [{"net_pairs": [["outp", "outn"]]}],
        "net_priorities": [{"net": "tail", "priority": 3}],
        "net_currents": [{"net": "tail", "current": 0.0028}],
        "matching": [{"devices": ["M1", "M2"]}],
    }
    path = tmp_path / "constraints.json"
    path.write_text(json.dumps(constraints), encoding="utf-8")
    nets = [*PAIR[:2], {**PAIR[2], "priority": 2}]
    code, envelope = route(nets, technology="sky130A", constraints=str(path))
    found = outcomes_of(envelope)
    assert code == 0
    assert found["symmetry[0].net_pairs[0]"] == (True, "the wires are mirror images")
    assert found["net_priorities[0]"] == (True, "routed with priority 3")
    assert "net 'tail': priority is 3 (constraints), not 2 (request)" in envelope["data"]["warnings"]
    layout = layout_of(tmp_path)
    drawn = kdb.Region(layout.top_cell().begin_shapes_rec(SKY.layer(layout, "met1"))).merged()
    assert not drawn.sized(-499).is_empty()  # 2.8 mA at 2.8 mA/um need 1 um


def test_currents_of_endpoints_without_one_of_their_net_are_reported_as_unused(route, tmp_path):
    ends = [{**end(0, 0), "current": [0.001, 0]}, {**end(20, 0), "current": [0, 0.001]}]
    idle = [{**end(0, 10), "current": [0, 0]}, end(20, 10)]
    code, envelope = route([net("out", *ends), net("gate", *idle)], technology="sky130A")
    assert code == 0
    [warning] = [text for text in envelope["data"]["warnings"] if "currents of its endpoints" in text]
    assert warning == (
        "net 'out': the currents of its endpoints are not used, because the net itself states none; "
        "give it a 'current' [A], or state it in the constraints (net_currents)"
    )
    stated = tmp_path / "constraints.json"
    stated.write_text(json.dumps({"net_currents": [{"net": "out", "current": 0.001}]}), encoding="utf-8")
    for more in (
        {"nets": [net("out", *ends, current=0.001)]},
        {"nets": [net("out", *ends)], "constraints": str(stated)},
    ):
        code, envelope = route(**more, technology="sky130A")
        assert not any("currents of its endpoints" in text for text in envelope["data"]["warnings"])


def test_nets_of_a_constraints_file_that_the_request_lacks_are_reported(route, tmp_path):
    constraints = {
        "symmetry": [{"net_pairs": [["outp", "outm"]]}],
        "net_priorities": [{"net": "tial", "priority": 3}],
        "net_currents": [{"net": "outp", "current": 1e-5}],
    }
    (tmp_path / "constraints.json").write_text(json.dumps(constraints), encoding="utf-8")
    code, envelope = route(PAIR, technology="sky130A", constraints=str(tmp_path / "constraints.json"))
    found = outcomes_of(envelope)
    assert code == 0
    assert found["symmetry[0].net_pairs[0]"] == (False, "net outm is not in this request")
    assert found["net_priorities[0]"] == (None, "tial: not in this request")
    assert envelope["data"]["constraints"]["obeyed"] == 1
    assert any("not in this request: outm, tial;" in text for text in envelope["data"]["warnings"])


def test_a_constraints_file_that_contradicts_itself_is_refused_with_every_fault(route, tmp_path):
    constraints = {
        "symmetry": [{"self_symmetric": ["M5", "M5"], "net_pairs": [["outp", "outn"], ["tail", "outn"], ["x", "x"]]}],
        "net_priorities": [{"net": "tail", "priority": 3}, {"net": "tail", "priority": 4}],
    }
    (tmp_path / "constraints.json").write_text(json.dumps(constraints), encoding="utf-8")
    code, envelope = route(PAIR, technology="sky130A", constraints=str(tmp_path / "constraints.json"))
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert [fault["path"] for fault in envelope["error"]["details"]["errors"]] == [
        "symmetry[0].self_symmetric[1]",
        "symmetry[0].net_pairs[1]",
        "symmetry[0].net_pairs[2]",
        "net_priorities[1]",
    ]
    assert not (tmp_path / "ws").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mirror_of": "nosuch"}, "net 'outn' cannot mirror 'nosuch', which is not another net of this request"),
        ({"mirror_of": "outn"}, "net 'outn' cannot mirror 'outn'"),
    ],
)
def test_impossible_mirror_images_are_refused(route, changes, message):
    code, envelope = route([PAIR[0], {**PAIR[1], **changes}])
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert message in envelope["error"]["message"]


def test_endpoints_that_are_no_images_are_routed_one_by_one_and_reported(route):
    code, envelope = route([PAIR[0], {**PAIR[2], "mirror_of": "outp"}])
    obeyed, reason = outcomes_of(envelope)["symmetry[0].net_pairs[0]"]
    assert (code, obeyed) == (0, False)
    assert "not mirror images" in reason
    assert any(reason in text for text in envelope["data"]["warnings"])


def test_another_width_replaces_the_wires_of_a_finished_net_or_says_why_not(run_once, run_script, tmp_path):
    ota = Path(__file__).parents[2] / "skills/netlist-to-gds/assets/ota_5t.spice"
    _, _, built = run_once("netlist-to-gds/scripts/build_layout.py", ota, "--technology", "sky130A")
    workspace = tmp_path / "ws"
    shutil.copytree(built, workspace)

    def route(name, width):
        nets = json.dumps([{"net_name": name, "width": width}])
        return run_script("signal-routing/scripts/route_signal_nets.py", "--nets", nets, "--workspace", workspace)

    before = (workspace / "layout.gds").read_bytes()
    code, envelope = route("out", 60)
    assert (code, envelope["error"]["code"]) == (1, "LAYOUT_CONFLICT")
    assert "no way for net 'out'" in envelope["error"]["message"]
    assert (workspace / "layout.gds").read_bytes() == before
    fits = float(re.search(r"fits: ([\d.]+) um", envelope["error"]["message"]).group(1))
    assert fits >= 0.4
    code, envelope = route("out", fits + 0.01)
    assert f"fits: {fits:g} um" in envelope["error"]["message"]
    code, envelope = route("out", fits)
    data = envelope["data"]
    assert (code, data["drc"]["passed"], data["routed_nets"][0]["success"]) == (0, True, True)
    assert data["routed_nets"][0]["wire_length"] > 0
    assert "the wires of net 'out' were replaced, for another width was asked for" in data["warnings"]
    code, envelope = run_script("lvs-check/scripts/run_check.py", "--workspace", workspace)
    assert (code, envelope["data"]["matched"]) == (0, True)
