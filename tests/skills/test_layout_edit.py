"""The tools of the skill layout-edit on layouts of the single tools and of the whole flow, over CLI, MCP and runner."""

import asyncio
import json
import os
import re
import shutil
import sys
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.technology import load
from pack_tools import pack_tools
from skillpack import Runner, WorkerPool

pytestmark = pytest.mark.usefixtures("forked_tools")
SKILLS = Path(__file__).parents[2] / "skills"
OTA = SKILLS / "netlist-to-gds/assets/ota_5t.spice"
EXAMPLE = SKILLS / "layout-edit/assets/pair.gds"
SCRIPTS = "layout-edit/scripts"


@pytest.fixture(scope="module")
def runner():
    with Runner(pack_tools(), pool=WorkerPool(max_workers=16)) as runner:
        yield runner


@pytest.fixture(scope="module")
def call(runner):
    """Return a function that calls a tool and returns its data; ``fails`` is a part of the expected message."""

    def call(tool, workspace, fails=None, **params):
        answer = runner.run(tool, {"workspace": str(workspace), **params}).result
        if fails is None:
            assert answer.error is None, answer.error
            return answer.data
        assert fails in answer.error.message
        return answer.error

    return call


@pytest.fixture
def ota(finished_layout, column_ota, tmp_path):
    """Return a copy of the workspace of a finished, clean OTA."""
    return shutil.copytree(finished_layout(column_ota, "sky130A")[1], tmp_path / "ota")


@pytest.fixture(scope="module")
def drawn(call, tmp_path_factory):
    """Return a workspace in which single tools drew two transistors, a pair and a wire that is found by its name."""
    workspace = tmp_path_factory.mktemp("edit") / "drawn"
    nets = {"d": "out1", "g": "in1", "s": "tail", "b": "vss"}
    size = {"w": 4e-6, "l": 1e-6, "nf": 2, "technology": "sky130A"}
    call("layout.create_nmos_pcell", workspace, device_id="M1", nets=nets, **size)
    other = {"d": "out1", "g": "in2", "s": "tail", "b": "vss"}
    call("layout.create_nmos_pcell", workspace, device_id="M2", nets=other, position=[12, 0], **size)
    pair = [{"device_id": name, "type": "nmos", "w": 4e-6, "l": 1e-6} for name in ("A", "B")]
    named = {name: {"d": f"d{name}", "g": f"g{name}", "s": "s", "b": "vss"} for name in "AB"}
    names = ("device_a", "device_b")
    call(
        "layout.create_common_centroid_pair",
        workspace,
        position=[0, 30],
        nets=named,
        **dict(zip(names, pair, strict=True)),
    )
    call("layout.route_signal_nets_basic", workspace, nets=[{"net_name": "tail"}])
    return workspace


@pytest.fixture
def copy(drawn, tmp_path):
    return shutil.copytree(drawn, tmp_path / "drawn")


def contents(workspace):
    """Return the bytes of every file of the workspace that is not hidden."""
    return {path.name: path.read_bytes() for path in workspace.iterdir() if not path.name.startswith(".")}


def net(listed, name):
    return next(each for each in listed["nets"] if each["net_name"] == name)


def test_a_wire_is_deleted_and_routed_by_its_name_in_two_calls_and_the_layout_is_clean(call, ota):
    before = contents(ota)
    assert net(call("layout.list_contents", ota, net_name="tail"), "tail")["pieces"] == 1
    gone = call("layout.unroute_net", ota, net_name="tail")
    assert gone["nets"][0]["shapes"] > 0
    assert any("drc.lyrdb" in text and "NAME.stale.*" in text for text in gone["warnings"])
    assert net(call("layout.list_contents", ota, net_name="tail"), "tail")["pieces"] == 2
    routed = call("layout.route_signal_nets_basic", ota, nets=[{"net_name": "tail"}])
    assert routed["routing_stats"]["success_count"] == 1
    assert call("drc.run_check", ota)["passed"]
    assert call("lvs.run_check", ota)["matched"]
    undone = call("layout.undo", ota, steps=2)
    assert undone["undone"] == ["route tail", "unroute tail"]
    after = contents(ota)
    after.pop("drc.stale.lyrdb", None)  # of no layout that is left
    assert after.pop("layout_workspace.json")
    before.pop("layout_workspace.json")
    assert after == before


def test_ports_and_rails_stay_when_their_net_is_unrouted(call, ota):
    ports = {each["port"] for each in json.loads((ota / "summary.json").read_text())["placement"]["ports"]}
    call("layout.unroute_net", ota, net_names=["out", "vss"])
    layout = kdb.Layout()
    layout.read(str(ota / "layout.gds"))
    shapes = [layout.top_cell().shapes(layout.layer(*layer)) for layer in ((68, 5), (70, 5))]  # met1, and met3 of rails
    labels = {shape.text_string for each in shapes for shape in each.each(kdb.Shapes.STexts)}
    assert labels == ports
    routed = call("layout.route_signal_nets_basic", ota, nets=[{"net_name": "out"}, {"net_name": "vss"}])
    assert routed["routing_stats"]["failed_count"] == 0
    assert call("drc.run_check", ota)["passed"]
    assert call("lvs.run_check", ota)["matched"]


def test_a_device_of_a_matched_module_moves_with_it_and_lost_wires_are_reported_with_places(call, ota):
    listed = call("layout.list_contents", ota, device_id="M3")
    (module,) = listed["modules"]
    moved = call("layout.move_device", ota, device_id="M3", by=[-60, -40])
    assert any("M3 is drawn together with M4" in text for text in moved["warnings"])
    assert moved["module"]["position"] == pytest.approx([module["position"][0] - 60, module["position"][1] - 40])
    assert {end["net"] for end in moved["lost_ends"]} == {"tmir", "out", "vdd"}
    x, y, box = moved["lost_ends"][0]["x"], moved["lost_ends"][0]["y"], module["bounding_box"]
    assert box["x"] <= x <= box["x"] + box["width"]
    assert box["y"] <= y <= box["y"] + box["height"]
    back = call("layout.move_device", ota, device_id="current_mirror_M3_M4", position=module["position"])
    assert not any("drawn together" in text for text in back["warnings"])
    assert back["module"] == module
    assert call("lvs.run_check", ota)["matched"]
    error = call("layout.delete_device", ota, fails="give device_id 'current_mirror_M3_M4'", device_id="M4")
    assert error.code == "INVALID_PARAM"
    assert call("layout.delete_device", ota, device_id="current_mirror_M3_M4")["deleted"] == ["M3", "M4"]
    call("layout.redraw_device", ota, fails="from: place", device_id="M5", w=1e-6)


def test_a_redrawn_device_stays_at_its_place_and_its_wire_still_ends_on_it(call, copy):
    before = call("layout.list_contents", copy, device_id="M2")["modules"][0]
    redrawn = call("layout.redraw_device", copy, device_id="M2", w=6e-6)
    assert redrawn["position"] == before["position"] == [12, 0]
    assert redrawn["drawn"]["w"] == 6e-6
    assert (redrawn["drawn"]["nf"], redrawn["drawn"]["l"]) == (2, 1e-6)
    nets = {"d": "out1", "g": "in2", "s": "tail", "b": "vss"}
    again = call("layout.create_nmos_pcell", copy, device_id="M2", w=4e-6, l=1e-6, nf=2, nets=nets)
    assert again["position"] == [12, 0]
    moved = call("layout.create_nmos_pcell", copy, device_id="M2", w=4e-6, l=1e-6, nf=2, nets=nets, position=[12, -15])
    lost = [text for text in moved["warnings"] if "end on nothing now" in text]
    assert len(lost) == 1
    assert "tail on met" in lost[0]
    call("layout.unroute_net", copy, net_name="tail")
    assert not any("end on" in text for text in call("layout.redraw_device", copy, device_id="M2", nf=1)["warnings"])
    call("layout.route_signal_nets_basic", copy, nets=[{"net_name": "tail"}])
    assert call("drc.run_check", copy)["passed"]
    pair = call("layout.list_contents", copy, device_id="A")["modules"][0]
    both = call("layout.create_common_centroid_pair", copy, **_pair(6e-6))
    assert both["position"] == pair["position"] == [0, 30]


def _pair(width):
    return {
        name: {"device_id": device, "type": "nmos", "w": width, "l": 1e-6}
        for name, device in (("device_a", "A"), ("device_b", "B"))
    }


def test_a_tap_ring_goes_with_the_only_module_in_it_and_stays_around_several(call, copy):
    """Frames of metal stand for the rings of a build: one around M1, one around M1 and M2."""
    layout = kdb.Layout()
    layout.read(str(copy / "layout.gds"))
    top = layout.top_cell()
    boxes = {each.cell.name: each.bbox() for each in top.each_inst()}
    metal = layout.find_layer(*load("sky130A").spec("met1").gds)
    inside = {"ring_M1": boxes["nmos_M1"], "ring_M1_M2": boxes["nmos_M1"] + boxes["nmos_M2"]}
    for gap, (name, box) in zip((1000, 3000), inside.items(), strict=True):
        ring = layout.create_cell(name)
        ring.shapes(metal).insert(kdb.Region(box.enlarged(gap + 500)) - kdb.Region(box.enlarged(gap)))
        top.insert(kdb.CellInstArray(ring.cell_index(), kdb.Trans()))
    layout.write(str(copy / "layout.gds"))

    def places():
        return {each["name"]: each["position"] for each in call("layout.list_contents", copy)["modules"]}

    before = places()
    call("layout.move_device", copy, device_id="M1", by=[0, -20], orientation="R180")
    moved = {name for name, place in places().items() if place != before[name]}
    assert moved == {"nmos_M1", "ring_M1"}
    assert places()["ring_M1"] == pytest.approx([before["ring_M1"][0], before["ring_M1"][1] - 20])
    near = round((boxes["nmos_M2"].left - boxes["nmos_M1"].right) * layout.dbu - 1, 3)  # 1.5 um less with the ring
    error = call("layout.move_device", copy, fails="would overlap nmos_M2", device_id="M1", by=[near, 20])
    assert error.code == "LAYOUT_CONFLICT"
    call("layout.delete_device", copy, device_id="M1")
    assert before.keys() - places().keys() == {"nmos_M1", "ring_M1"}


def test_nets_that_a_move_joins_are_named(call, ota):
    before = call("layout.move_device", ota, device_id="M5", by=[0, -30])["warnings"]
    assert not any("are joined now" in text for text in before)
    call("layout.undo", ota)
    moved = call("layout.move_device", ota, device_id="M5", by=[1, 0])["warnings"]
    joined = next(text for text in moved if "are joined now" in text)
    shorts = [each for each in call("lvs.run_check", ota)["mismatches"] if each["kind"] == "short"]
    assert shorts
    assert {name for each in shorts for name in each["reference"]} & set(re.split(r"\W+", joined))


def test_labels_and_stubs_of_a_device_go_with_it(call, copy):
    pin = call("layout.list_contents", copy, device_id="M1")["nets"]
    gate = next(each for each in pin if each["net_name"] == "in1")["pins"][0]
    x, y = gate["center"]
    stub = {"net_name": "in1", "endpoints": [gate, {"x": round(x - 6, 2), "y": round(y + 8, 2), "layer": "met2"}]}
    label = {"net_name": "in1", "x": x, "y": y, "layer": gate["layer_name"]}
    call("layout.route_signal_nets_basic", copy, nets=[stub], labels=[label])
    moved = call("layout.move_device", copy, device_id="M1", by=[-20, -20])
    assert (moved["stubs"], moved["labels"]) == (1, ["in1"])
    assert [end["net"] for end in moved["lost_ends"]] == ["tail"]
    (found,) = net(call("layout.list_contents", copy, net_name="in1"), "in1")["labels"]
    assert (found["x"], found["y"]) == pytest.approx((x - 20, y - 20))
    gone = call("layout.delete_device", copy, device_id="M1")
    assert (gone["deleted"], gone["stubs"], gone["labels"]) == (["M1"], 1, ["in1"])
    call("layout.list_contents", copy, fails="no pin or label of cell 'layout' names net 'in1'", net_name="in1")


def test_two_nets_are_routed_mirrored_by_their_names(call, tmp_path):
    for device, x in (("M1", 0), ("M2", 40), ("M3", 14), ("M4", 26)):
        side = "l" if device in {"M1", "M3"} else "r"
        nets = {"d": f"out{side}", "g": f"g{device}", "s": f"s{device}", "b": "vss"}
        more = {"position": [x, 0 if device in {"M1", "M2"} else 20], "orientation": "R0" if side == "l" else "MY"}
        call(
            "layout.create_nmos_pcell",
            tmp_path / "ws",
            device_id=device,
            nets=nets,
            w=2e-6,
            l=1e-6,
            technology="sky130A",
            **more,
        )
    routed = call("layout.route_signal_nets_basic", tmp_path / "ws", net_pairs=[["outl", "outr"]])
    assert routed["routing_stats"]["success_count"] == 2
    assert [(each["nets"], each["exact"]) for each in routed["mirrored"]] == [(["outl", "outr"], True)]


@pytest.mark.parametrize("pair", [["tmir", "out"], ["out", "tmir"]])
def test_two_nets_that_a_build_mirrored_are_routed_mirrored_in_either_order(call, ota, pair):
    call("layout.unroute_net", ota, net_names=pair)
    routed = call("layout.route_signal_nets_basic", ota, net_pairs=[pair])
    assert [(each["nets"], each["exact"]) for each in routed["mirrored"]] == [(pair, True)]
    assert call("lvs.run_check", ota)["matched"]


def test_a_net_that_is_named_twice_is_unrouted_once(call, copy):
    unrouted = call("layout.unroute_net", copy, net_names=["tail", "tail"])
    assert [each["net_name"] for each in unrouted["nets"]] == ["tail"]
    assert unrouted["warnings"] == []


def test_every_operation_can_be_undone_one_by_one(call, copy):
    operations = call("layout.list_contents", copy)["operations"]
    assert operations == ["route tail", "draw A, B", "draw M2", "draw M1"]
    for name in operations:
        assert call("layout.undo", copy)["undone"] == [name]
    assert not (copy / "layout.gds").exists()
    call("layout.undo", copy, fails="nothing to undo")


def test_a_report_of_any_name_that_undo_restored_is_renamed_by_the_next_change(call, copy):
    call("drc.run_check", copy, report_path=str(copy / "mine.lyrdb"))
    for _ in range(2):
        call("layout.move_device", copy, device_id="M2", by=[0, 5])
        assert ((copy / "mine.lyrdb").exists(), (copy / "mine.stale.lyrdb").exists()) == (False, True)
        call("layout.undo", copy)
        assert ((copy / "mine.lyrdb").exists(), (copy / "mine.stale.lyrdb").exists()) == (True, False)


def test_a_module_that_overlaps_one_already_is_not_moved_onto_a_third(call, copy):
    layout = kdb.Layout()
    layout.read(str(copy / "layout.gds"))
    modules = {each.cell.name: each for each in layout.top_cell().each_inst()}
    first, second = modules.pop("nmos_M1"), modules.pop("nmos_M2")
    (third,) = modules.values()
    second.transform(kdb.Trans(first.bbox().p1 - second.bbox().p1 + kdb.Vector(2000, 0)))
    third.transform(kdb.Trans(first.bbox().left - third.bbox().left, first.bbox().top + 100 - third.bbox().bottom))
    layout.write(str(copy / "layout.gds"))
    error = call("layout.move_device", copy, fails="would overlap", device_id="M1", by=[0, 1])
    assert [each["module"] for each in error.details["overlaps"]] == [third.cell.name]
    assert call("layout.move_device", copy, device_id="M1", by=[0, -1])["module"]["name"] == "nmos_M1"


def test_wrong_inputs_give_one_clear_error_and_change_nothing(call, copy, tmp_path):
    before = contents(copy)
    cases = {
        "holds no device or module 'M7'": ("layout.move_device", {"device_id": "M7", "by": [1, 0]}),
        "off the 0.005 um grid": ("layout.move_device", {"device_id": "M1", "by": [0.0012, 0]}),
        "would overlap nmos_M2": ("layout.move_device", {"device_id": "M1", "by": [12, 0]}),
        "give either position": ("layout.move_device", {"device_id": "M1"}),
        "give only one of position, by": (
            "layout.move_device",
            {"device_id": "M1", "position": [0, 5], "by": [0, 5], "orientation": "R0"},
        ),
        "names net 'tial' (did you mean 'tail'?)": ("layout.unroute_net", {"net_name": "tial"}),
        "net 'in1' has 1 pin": ("layout.route_signal_nets_basic", {"nets": [{"net_name": "in1"}]}),
        "Missing required param": ("layout.redraw_device", {}),
        "M1 has no r; its sizes are w, l, nf, m": ("layout.redraw_device", {"device_id": "M1", "r": 5000}),
        "A has no segments and no columns": ("layout.redraw_device", {"device_id": "A", "segments": 2, "columns": 2}),
        "5 were requested": ("layout.undo", {"steps": 5}),
        "holds no device or module 'nope'": ("layout.redraw_device", {"device_id": "nope", "w": 1e-6}),
    }
    for text, (tool, params) in cases.items():
        call(tool, copy, fails=text, **params)
        assert contents(copy) == before, tool
    call("layout.list_contents", tmp_path / "none", fails="holds no layout yet")
    call("layout.undo", tmp_path / "none", fails="there is no workspace")


def test_the_scripts_do_the_same_from_the_command_line(run_script, tmp_path):
    workspace = tmp_path / "pair"
    workspace.mkdir()
    shutil.copy(EXAMPLE, workspace / "layout.gds")
    code, answer = run_script(f"{SCRIPTS}/unroute_net.py", "--net-name", "tail", "--workspace", workspace)
    assert (code, answer["data"]["nets"][0]["net_name"]) == (0, "tail")
    code, answer = run_script(f"{SCRIPTS}/undo.py", "--workspace", workspace)
    assert (code, answer["data"]["undone"]) == (0, ["unroute tail"])
    assert (workspace / "layout.gds").read_bytes() == EXAMPLE.read_bytes()
    code, answer = run_script(f"{SCRIPTS}/undo.py", "--workspace", workspace)
    assert (code, answer["error"]["code"]) == (2, "INVALID_PARAM")


def test_an_agent_edits_over_mcp(tmp_path):
    pytest.importorskip("mcp", reason="skipped: needs the extra mcp")
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    shutil.copy(EXAMPLE, tmp_path / "layout.gds")

    async def session():
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "skillpack", "mcp", "--directory", str(tmp_path)], env=dict(os.environ)
        )
        async with stdio_client(server) as streams, ClientSession(*streams) as client:
            await client.initialize()
            steps = (
                ("layout_list_contents", {"net_name": "tail"}),
                ("layout_unroute_net", {"net_name": "tail"}),
                ("layout_route_signal_nets_basic", {"nets": [{"net_name": "tail"}]}),
                ("layout_undo", {"steps": 2}),
            )
            found = [await client.call_tool(name, {"workspace": ".", **params}) for name, params in steps]
            return [each.model_dump(by_alias=True)["structuredContent"] for each in found]

    listed, _, routed, undone = asyncio.run(session())
    assert [each["ok"] for each in (listed, routed, undone)] == [True, True, True]
    assert routed["data"]["routing_stats"]["success_count"] == 1
    assert undone["data"]["undone"] == ["route tail", "unroute tail"]
    assert (tmp_path / "layout.gds").read_bytes() == EXAMPLE.read_bytes()
