"""What a workspace remembers, through the tools that use it: its technology, and which reports still hold."""

import hashlib
import importlib.util
import json
import shutil
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.technology import load
from layoutkit.technology.technology_files import file_of
from skillscript import call, load_tool

INVERTER = """.subckt inv a y vdd vss
M1 y a vss vss nmos W=2u L=0.5u
M2 y a vdd vdd pmos W=4u L=0.5u
.ends
"""
NMOS = {"device_id": "M9", "w": 2e-6, "l": 0.5e-6, "position": [100, 100]}
PAIR = {
    "device_a": {"device_id": "A", "type": "nmos", "w": 4e-6, "l": 0.5e-6, "nf": 2},
    "device_b": {"device_id": "B", "type": "nmos", "w": 4e-6, "l": 0.5e-6, "nf": 2},
}
MIRROR = {"devices": [PAIR["device_a"], PAIR["device_b"]], "mirror_type": "simple"}
ENDPOINTS = [{"x": x, "y": 50.0, "layer": "metal1"} for x in (50.0, 80.0)]
REPORTS = ["drc.lyrdb", "extracted.spice", "layout.png", "lvs.lvsdb", "report.html", "summary.json"]
SCRIPTS = {
    "layout.create_nmos_pcell": "mos-pcell/scripts/create_nmos_pcell.py",
    "layout.create_pmos_pcell": "mos-pcell/scripts/create_pmos_pcell.py",
    "layout.create_common_centroid_pair": "common-centroid-pair/scripts/create_common_centroid_pair.py",
    "layout.create_current_mirror": "current-mirror/scripts/create_current_mirror.py",
    "layout.create_resistor": "passive-devices/scripts/create_resistor.py",
    "layout.create_capacitor": "passive-devices/scripts/create_capacitor.py",
    "layout.place_modules": "module-placement/scripts/place_modules.py",
    "layout.route_signal_nets_basic": "signal-routing/scripts/route_signal_nets.py",
    "layout.render_view": "layout-view/scripts/render_view.py",
    "drc.run_check": "drc-check/scripts/run_check.py",
    "lvs.run_check": "lvs-check/scripts/run_check.py",
    "eval.compute_metrics": "layout-metrics/scripts/compute_metrics.py",
    "export.gds": "gds-export/scripts/export_gds.py",
    "flow.build_layout": "netlist-to-gds/scripts/build_layout.py",
    "netlist.parse": "netlist-parse/scripts/parse_netlist.py",
    "kg.import_circuit": "design-knowledge-graph/scripts/import_circuit.py",
    "kg.list": "design-knowledge-graph/scripts/list_nodes.py",
}


def run(tool_id, **params):
    """Return the envelope of a tool called as its script calls it: schema check, handler, schema check."""
    small = {"width": 200, "height": 200} if tool_id == "layout.render_view" else {}
    path = file_of("generic").parents[3] / "skills" / SCRIPTS[tool_id]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return call(load_tool(str(path), tool_id, module.execute), {**small, **params}).to_dict()


def done(tool_id, **params):
    envelope = run(tool_id, **params)
    assert envelope["error"] is None, envelope
    return envelope["data"]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def edit_by_hand(path):
    """Change the layout as KLayout's window would: without the pack."""
    layout = kdb.Layout()
    layout.read(str(path))
    layout.top_cell().shapes(layout.layer(63, 0)).insert(kdb.Box(0, 0, 1000, 1000))
    layout.write(str(path))


@pytest.fixture(scope="session")
def netlist(tmp_path_factory):
    path = tmp_path_factory.mktemp("netlist") / "inv.spice"
    path.write_text(INVERTER)
    return str(path)


@pytest.fixture(scope="session")
def built_once(tmp_path_factory, netlist):
    """Return a workspace with a finished inverter in gf180mcuD, its verdicts clean."""
    home = tmp_path_factory.mktemp("built") / "w"
    done("flow.build_layout", netlist_path=netlist, workspace=str(home), technology="gf180mcuD")
    return home


@pytest.fixture
def built(tmp_path, built_once):
    """Return a copy of the finished inverter, to be changed."""
    return shutil.copytree(built_once, tmp_path / "w")


@pytest.fixture
def tools(netlist, tmp_path):
    """Return the parameters of a valid call of every tool that takes a workspace and a technology."""
    netlist_given = {"netlist_path": netlist}
    return {
        "layout.create_nmos_pcell": NMOS,
        "layout.create_pmos_pcell": NMOS,
        "layout.create_common_centroid_pair": {**PAIR, "position": [100, 100]},
        "layout.create_current_mirror": {**MIRROR, "position": [100, 100]},
        "layout.create_resistor": {"device_id": "R1", "l": 5e-6, "position": [100, 100]},
        "layout.create_capacitor": {"device_id": "C1", "w": 6e-6, "l": 6e-6, "position": [100, 100]},
        "layout.place_modules": netlist_given,
        "layout.route_signal_nets_basic": {"nets": [{"net_name": "x", "endpoints": ENDPOINTS, "width": 1.0}]},
        "layout.render_view": {},
        "drc.run_check": {},
        "lvs.run_check": {},
        "eval.compute_metrics": {},
        "export.gds": {"output_path": str(tmp_path / "out.gds"), "layer_filter": ["metal1"]},
        "flow.build_layout": netlist_given,
    }


# ---- technology


def test_every_tool_refuses_another_technology_and_changes_nothing(built, tools):
    before = {path: path.read_bytes() for path in built.rglob("*") if path.is_file()}
    for tool_id, params in tools.items():
        error = run(tool_id, **params, workspace=str(built), technology="sky130A")["error"]
        assert error is not None, tool_id
        assert error["code"] == "INVALID_PARAM", (tool_id, error)
        assert "is drawn in gf180mcuD, not in sky130A; omit technology" in error["message"], tool_id
    assert {path: path.read_bytes() for path in built.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("tool_id", ["drc.run_check", "lvs.run_check", "layout.render_view", "eval.compute_metrics"])
def test_a_tool_takes_the_technology_of_the_workspace(built, tool_id):
    data = done(tool_id, workspace=str(built))
    assert data["layout_sha256"] == digest(built / "layout.gds")
    assert data.get("technology", "gf180mcuD") == "gf180mcuD"
    assert data.get("passed", True) is data.get("matched", True) is True
    warnings = [text for text in data.get("warnings", []) if "no matched groups are known" not in text]
    assert warnings == data.get("notes", []) == []


def test_a_layout_given_by_its_path_in_the_workspace_is_known_too(built):
    layout = {"layout_path": str(built / "layout.gds")}
    assert done("drc.run_check", **layout)["technology"] == "gf180mcuD"
    assert "is drawn in gf180mcuD" in run("drc.run_check", **layout, technology="sky130A")["error"]["message"]


def test_without_a_layout_the_technology_is_generic_and_for_passive_devices_sky130a(tmp_path):
    assert done("layout.create_nmos_pcell", **NMOS, workspace=str(tmp_path / "a"))["technology"] == "generic"
    resistor = {"device_id": "R1", "l": 5e-6}
    assert done("layout.create_resistor", **resistor, workspace=str(tmp_path / "b"))["technology"] == "sky130A"
    error = run("layout.create_resistor", **resistor, workspace=str(tmp_path / "a"))["error"]
    assert "generic" in error["message"]


def test_routing_does_not_take_a_layout_of_another_process_into_the_workspace(built, tools, tmp_path):
    done("layout.create_nmos_pcell", **NMOS, workspace=str(tmp_path / "s"), technology="sky130A")
    for name in ("layout.gds", "copy.gds"):
        given = tmp_path / ("s" if name == "layout.gds" else "") / name
        if not given.exists():
            shutil.copy(tmp_path / "s/layout.gds", given)
        params = {**tools["layout.route_signal_nets_basic"], "layout_path": str(given), "workspace": str(built)}
        error = run("layout.route_signal_nets_basic", **params)["error"]
        assert "not drawn in gf180mcuD" in error["message"] or "not in sky130A" in error["message"]


def test_an_own_technology_file_is_remembered_by_what_it_says(tmp_path):
    own = tmp_path / "own.yaml"
    text = file_of("generic").read_text().replace("technology: generic", "technology: own", 1)
    own.write_text(text)
    draw = {**NMOS, "workspace": str(tmp_path / "w")}

    def checked(technology):
        return run("drc.run_check", workspace=draw["workspace"], technology=str(technology))

    done("layout.create_nmos_pcell", **draw, technology=str(own))
    assert done("drc.run_check", workspace=draw["workspace"])["technology"] == "own"
    copy = tmp_path / "copy.yaml"
    copy.write_text(text)
    assert done("drc.run_check", workspace=draw["workspace"], technology=str(copy))["technology"] == "own"
    assert (
        "is drawn in own" in run("drc.run_check", workspace=draw["workspace"], technology="generic")["error"]["message"]
    )
    metal = load(str(own)).spec("metal1").gds
    copy.write_text(text.replace(f"[{metal[0]}, {metal[1]}]", "[999, 7]"))
    assert load(str(copy)).spec("metal1").gds == (999, 7)
    assert (
        "is drawn in own" in run("drc.run_check", workspace=draw["workspace"], technology=str(copy))["error"]["message"]
    )
    own.write_text(text + "\n# revised\n")
    more = {**draw, "device_id": "M10", "position": [200, 0]}
    assert "has changed since" in " ".join(done("layout.create_nmos_pcell", **more)["warnings"])
    own.unlink()
    error = run("drc.run_check", workspace=draw["workspace"])["error"]
    assert "own.yaml" in error["message"]
    assert "specify the path of its file" in error["message"]


def test_a_workspace_without_a_record_is_judged_by_its_layers(built):
    (built / "layout_workspace.json").unlink()
    assert done("drc.run_check", workspace=str(built))["technology"] == "gf180mcuD"
    error = run("layout.create_nmos_pcell", **NMOS, workspace=str(built), technology="sky130A")["error"]
    assert "it is not drawn in sky130A" in error["message"]
    assert done("layout.create_nmos_pcell", **NMOS, workspace=str(built))["technology"] == "gf180mcuD"
    assert json.loads((built / "layout_workspace.json").read_text())["technology"]["source"] == "gf180mcuD"


def test_a_workspace_whose_layers_no_technology_knows_needs_one_named(tmp_path):
    layout = kdb.Layout()
    layout.create_cell("TOP").shapes(layout.layer(250, 0)).insert(kdb.Box(0, 0, 10, 10))
    (tmp_path / "w").mkdir()
    layout.write(str(tmp_path / "w/layout.gds"))
    error = run("layout.create_nmos_pcell", **NMOS, workspace=str(tmp_path / "w"))["error"]
    assert "specify technology" in error["message"]
    done("layout.create_nmos_pcell", **NMOS, workspace=str(tmp_path / "w"), technology="sky130A")


@pytest.mark.parametrize(
    "content",
    ["", "no JSON", "[]", '{"format": 2}', '{"format": 1, "technology": {"name": 1}, "reports": []}', "[" * 100_000],
)
def test_a_record_that_cannot_be_read_is_one_clear_error(built, tools, content):
    (built / "layout_workspace.json").write_text(content)
    asked = tools if content == "no JSON" else ("layout.create_nmos_pcell", "drc.run_check")
    for tool_id in asked:
        params = tools[tool_id]
        error = run(tool_id, **params, workspace=str(built))["error"]
        assert error["code"] == "INVALID_PARAM", (tool_id, error)
        assert "cannot determine which technology the workspace" in error["message"], tool_id
        assert len(error["message"]) < 1000


def test_after_the_layout_is_deleted_another_technology_can_be_drawn(built):
    (built / "layout.gds").unlink()
    done("layout.create_nmos_pcell", **NMOS, workspace=str(built), technology="sky130A")
    assert done("drc.run_check", workspace=str(built))["technology"] == "sky130A"


# ---- reports


def test_every_report_says_which_layout_it_is_about(built):
    sha256 = digest(built / "layout.gds")
    for name in REPORTS:
        assert sha256.encode() in (built / name).read_bytes(), name
    report = json.loads((built / "summary.json").read_text())
    assert report["layout_sha256"] == sha256
    assert report["circuit_sha256"] == digest(built / "circuit.json")
    lvs = kdb.LayoutVsSchematic()
    lvs.read(str(built / "lvs.lvsdb"))
    assert lvs.netlist().top_circuit().name == "inv"


def test_a_change_of_the_layout_marks_the_reports_of_before(built):
    old = {name: (built / name).read_bytes() for name in REPORTS}
    data = done("layout.create_nmos_pcell", **NMOS, workspace=str(built))
    assert [name for name in REPORTS if (built / name).exists()] == []
    for name, content in old.items():
        stem, _, suffix = name.partition(".")
        assert (built / f"{stem}.stale.{suffix}").read_bytes() == content
        assert any(name in text and " out of date" in text for text in data["warnings"]), name
    assert sum(" out of date" in text for text in data["warnings"]) == 1
    assert data["layout_sha256"] == digest(built / "layout.gds")
    assert (built / "reference.spice").exists()  # it was made from the circuit, which is the same


def test_routing_and_placing_mark_the_reports_of_before(built, tools):
    for tool_id in ("layout.route_signal_nets_basic", "layout.place_modules"):
        done("drc.run_check", workspace=str(built), report_path=str(built / "drc.lyrdb"))
        data = done(tool_id, **tools[tool_id], workspace=str(built))
        assert any("drc.lyrdb" in text and "out of date" in text for text in data["warnings"]), tool_id
        assert not (built / "drc.lyrdb").exists()


def test_a_layout_edited_by_hand_is_noticed_by_every_tool(built, tools, tmp_path):
    edit_by_hand(built / "layout.gds")
    for tool_id in ("drc.run_check", "lvs.run_check", "eval.compute_metrics", "export.gds"):
        workspace = shutil.copytree(built, tmp_path / tool_id)
        data = done(tool_id, **tools[tool_id], workspace=str(workspace))
        told = [*data.get("warnings", []), *data.get("notes", [])]
        for name in {*REPORTS} - ({"drc.lyrdb"} if tool_id == "drc.run_check" else set()):  # which writes it anew
            assert any(name in text and " out of date" in text for text in told), (tool_id, name)
    view = done("layout.render_view", workspace=str(built), report_path=str(built / "drc.lyrdb"))
    assert any("judged another layout" in text for text in view["warnings"])
    assert digest(built / "layout.gds").encode() in (built / "layout.png").read_bytes()


def test_the_design_graph_takes_the_digest_of_a_verdict_and_no_verdict_that_is_out_of_date(
    built, tmp_path, monkeypatch
):
    monkeypatch.setenv("KG_FILE", str(tmp_path / "graph.json"))
    assert done("kg.import_circuit", graphId="before", workspace=str(built))["warnings"] == []
    edit_by_hand(built / "layout.gds")
    told = done("kg.import_circuit", graphId="after", workspace=str(built))["warnings"]
    assert ["its verdicts are left out" in text for text in told] == [True]
    kinds = {
        graph: [node["type"] for node in done("kg.list", graphId=graph, fields=["type"])["nodes"]]
        for graph in ("before", "after")
    }
    assert kinds["before"].count("Verification") == 3
    assert "Verification" not in kinds["after"]


def test_reports_that_the_user_named_are_followed_too(built, tmp_path):
    within, outside = built / "mine.lyrdb", tmp_path / "outside.lvsdb"
    done("drc.run_check", workspace=str(built), report_path=str(within))
    done("lvs.run_check", workspace=str(built), report_path=str(outside))
    assert done("drc.run_check", workspace=str(built))["notes"] == []
    told = " ".join(done("layout.create_nmos_pcell", **NMOS, workspace=str(built))["warnings"])
    assert "out of date" in told
    assert within.name in told
    assert (built / "mine.stale.lyrdb").exists()
    assert str(outside) in told
    assert f"{outside} is out of date" in " ".join(done("drc.run_check", workspace=str(built))["notes"])
    done("lvs.run_check", workspace=str(built), report_path=str(outside))
    assert done("drc.run_check", workspace=str(built))["notes"] == []


def test_a_report_without_a_note_is_marked_when_the_layout_changes(built):
    (built / "layout_workspace.json").unlink()
    (built / "review.lyrdb").write_text("<report-database></report-database>")
    assert any("does not state" in text for text in done("drc.run_check", workspace=str(built))["notes"])
    done("layout.create_nmos_pcell", **NMOS, workspace=str(built))
    assert not (built / "review.lyrdb").exists()


def test_another_circuit_makes_the_verdicts_about_it_stale(built, tmp_path):
    other = tmp_path / "other.spice"
    other.write_text(INVERTER.replace("W=4u", "W=8u"))
    info = done("netlist.parse", netlist_path=str(other), workspace=str(built))["parse_info"]
    told = " ".join(info["warnings"])
    for name in ("lvs.lvsdb", "reference.spice", "summary.json"):
        assert name in told
        assert not (built / name).exists()
    assert "are out of date (made from another circuit)" in told
    assert (built / "drc.lyrdb").exists()


def test_a_workspace_that_cannot_be_written_to_is_still_judged(built, tmp_path):
    edit_by_hand(built / "layout.gds")
    (built / ".lock").unlink()
    (built / ".lock").mkdir()  # cannot be opened, not even by root
    data = done("drc.run_check", workspace=str(built), report_path=str(tmp_path / "r.lyrdb"))
    assert any("cannot record which reports" in text for text in data["notes"])
    assert any("summary.json" in text and "out of date" in text for text in data["notes"])


def test_a_record_cannot_make_the_pack_rename_files_elsewhere(built, tmp_path):
    elsewhere = tmp_path / "summary.json"
    shutil.copy(built / "summary.json", elsewhere)
    record = json.loads((built / "layout_workspace.json").read_text())
    record["reports"] += [str(elsewhere), "../summary.json", "/dev/zero", "/etc/passwd"]
    (built / "layout_workspace.json").write_text(json.dumps(record))
    done("layout.create_nmos_pcell", **NMOS, workspace=str(built))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["summary.json", "w"]


@pytest.mark.parametrize(
    ("tool_id", "name"),
    [("drc.run_check", "report_path"), ("lvs.run_check", "report_path"), ("lvs.run_check", "extracted_path")],
)
def test_a_report_never_replaces_what_it_is_made_from(tmp_path, tool_id, name):
    work = tmp_path / "work"
    netlist = tmp_path / "inverter.spice"
    netlist.write_text(INVERTER)
    done("layout.create_nmos_pcell", workspace=str(work), **NMOS)
    done("netlist.parse", workspace=str(work), netlist_path=str(netlist))
    given = {} if tool_id == "drc.run_check" else {"netlist_path": str(netlist)}
    kept = [work / "layout.gds", work / "circuit.json", work / "layout_workspace.json", *map(Path, given.values())]
    before = [path.read_bytes() for path in kept]
    for target in kept:
        envelope = run(tool_id, workspace=str(work), **given, **{name: str(target)})
        assert envelope["error"]["code"] == "INVALID_PARAM", target
        assert "must not replace" in envelope["error"]["message"]
    assert [path.read_bytes() for path in kept] == before
