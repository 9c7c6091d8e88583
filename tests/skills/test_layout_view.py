"""layout.render_view through its command line."""

import hashlib
import json
import re
import subprocess
from pathlib import Path

import klayout.db as kdb
import pytest
from klayout import lay, rdb

from forked import run_program, skillpack
from layoutkit.technology import load

SCRIPT = "layout-view/scripts/render_view.py"
BUILD = "netlist-to-gds/scripts/build_layout.py"


@pytest.fixture
def source(tmp_path):
    layout = kdb.Layout()
    layout.dbu = 0.001
    cell = layout.create_cell("TOP")
    cell.shapes(layout.layer(2, 0)).insert(kdb.Box(0, 0, 1000, 2000))
    cell.shapes(layout.layer(4, 0)).insert(kdb.Box(500, 0, 3000, 300))
    cell.shapes(layout.layer(4, 5)).insert(kdb.Text("out", kdb.Trans(0, False, 2000, 150)))
    layout.write(str(tmp_path / "source.gds"))
    return tmp_path / "source.gds"


def size(path):
    buffer = lay.PixelBuffer.read_png(str(path))
    return buffer.width(), buffer.height()


def test_a_picture_is_drawn_and_described(tmp_path, run_script, source):
    code, envelope = run_script(SCRIPT, "--layout-path", source, "--output-path", "a.png", "--width", 320)
    assert code == 0
    region = envelope["data"].pop("region")
    assert region[0] < 0
    assert region[2] > 3
    assert envelope["data"] == {
        "image_path": str(tmp_path / "a.png"),
        "cell_name": "TOP",
        "width": 320,
        "height": 263,
        "layers_drawn": ["poly", "metal1"],
        "labels_drawn": 1,
        "markers_drawn": 0,
        "layout_sha256": hashlib.sha256(source.read_bytes()).hexdigest(),
        "warnings": ["the process is not stated: generic fits the layers best; technology (-t) names another"],
    }
    assert size(tmp_path / "a.png") == (320, 263)  # cropped to the cell


def test_the_picture_lies_beside_the_layout_unless_configured_otherwise(tmp_path, run_script, source):
    code, envelope = run_script(SCRIPT, "--layout-path", source, "--width", 64, "--height", 64)
    assert (code, envelope["data"]["image_path"]) == (0, str(tmp_path / "source.png"))


def test_two_processes_draw_the_same_bytes(tmp_path, run_script, source):
    for name in ("a.png", "b.png"):
        run_script(SCRIPT, "--layout-path", source, "--output-path", name, "--width", 300, "--height", 200)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_violations_are_marked_from_a_list_and_from_a_report(tmp_path, run_script, source):
    database = rdb.ReportDatabase("drc")
    cell, category = database.create_cell("TOP"), database.create_category("M1.1")
    item = database.create_item(cell.rdb_id(), category.rdb_id())
    item.add_value(rdb.RdbItemValue(kdb.DPolygon(kdb.DBox(1, 1, 2, 2))))
    database.save(str(tmp_path / "drc.lyrdb"))
    violations = '[{"rule_id": "M1.1", "severity": "error", "locations": [{"x": 1, "y": 1, "layer": "metal1"}]}]'
    code, envelope = run_script(
        SCRIPT, "--layout-path", source, "--report-path", "drc.lyrdb", "--violations", violations
    )
    assert (code, envelope["data"]["markers_drawn"]) == (0, 2)


def test_markers_are_what_is_wrong_with_the_layout_as_it_is_now(run_script, source):
    """No report has to be written before, and one on an earlier layout is not drawn."""
    call = (SCRIPT, "--layout-path", source, "--technology", "generic", "--markers", "drc")
    clean = run_script(*call)[1]["data"]["markers_drawn"]
    layout = kdb.Layout()
    layout.read(str(source))
    metal = layout.layer(*load("generic").spec("metal1").gds)
    layout.top_cell().shapes(metal).insert(kdb.DBox(50, 50, 50.01, 60))
    layout.write(str(source))
    code, envelope = run_script(*call)
    assert (code, envelope["data"]["markers_drawn"] > clean) == (0, True)


def test_the_whole_check_of_a_workspace_leaves_the_report_that_is_marked_later(tmp_path, run_script):
    device = ("--device-id", "M1", "--w", "2e-6", "--l", "0.5e-6", "--technology", "generic")
    run_script("mos-pcell/scripts/create_nmos_pcell.py", *device, "--workspace", tmp_path / "ws")
    for arguments, there in (("--rule-ids", '["M1_MIN_WIDTH"]'), False), ((), True):
        _, envelope = run_script("drc-check/scripts/run_check.py", "--workspace", tmp_path / "ws", *arguments)
        assert (tmp_path / "ws/drc.lyrdb").is_file() is there, envelope
    assert envelope["data"]["report_path"] == str(tmp_path / "ws/drc.lyrdb")


def test_a_report_whose_name_is_a_command_to_klayout_is_a_file_like_any_other(tmp_path, run_script, source):
    report = tmp_path / "pipe:touch ran"
    rdb.ReportDatabase("drc").save(str(report))
    code, envelope = run_script(SCRIPT, "--layout-path", source, "--report-path", report.name)
    assert (code, envelope["data"]["markers_drawn"]) == (0, 0)
    assert not (tmp_path / "ran").exists()


def test_layers_region_and_dress_can_be_chosen(run_script, source):
    arguments = ["--layers", '["metal1"]', "--region", "[1, 0, 2, 1]", "--no-legend", "--no-labels"]
    code, envelope = run_script(SCRIPT, "--layout-path", source, *arguments, "--width", 100, "--height", 100)
    assert code == 0
    assert envelope["data"]["layers_drawn"] == ["metal1"]
    assert envelope["data"]["region"] == [1, 0, 2, 1]
    assert envelope["data"]["labels_drawn"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output-path", "a.jpg"], "must end in .png"),
        (["--output-path", "none/a.png"], "create it first"),
        (["--output-path", "."], "must end in .png"),
        (["--region", "[1, 1, 1, 2]"], "left < right"),
        (["--region", "[1, 1, 2]"], "region"),
        (["--region", '[1, 1, 2, "3"]'], "region"),
        (["--layers", '["metal4"]'], "nothing is drawn on layer metal4"),
        (["--layers", '["none"]'], "technology generic has no layer 'none'"),
        (["--cell-name", "NONE"], "no cell 'NONE'; it has: TOP"),
        (["--width", "5000"], "width"),
        (["--width", "true"], "width"),
        (["--report-path", "none.lyrdb"], "no such file"),
        (["--report-path", "source.gds"], "not a KLayout report database"),
        (["--violations", '[{"locations": [{"x": 1, "y": "2"}]}]'], "violations"),
    ],
)
def test_a_wrong_parameter_is_reported_and_leaves_no_file(tmp_path, run_script, source, arguments, message):
    output = [] if "--output-path" in arguments else ["--output-path", "a.png"]
    code, envelope = run_script(SCRIPT, "--layout-path", source, *output, *arguments)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert message in envelope["error"]["message"]
    assert [path.name for path in tmp_path.iterdir()] == ["source.gds"]


@pytest.mark.parametrize("kind", ["missing", "directory", "empty", "truncated"])
def test_a_bad_layout_is_reported(tmp_path, run_script, source, kind):
    bad = tmp_path / "bad.gds"
    if kind == "directory":
        bad.mkdir()
    elif kind != "missing":
        content = {"empty": b"", "truncated": source.read_bytes()[:100]}
        bad.write_bytes(content[kind])
    code, envelope = run_script(SCRIPT, "--layout-path", bad, "--output-path", "a.png")
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert not (tmp_path / "a.png").exists()


def test_skillpack_check_writes_a_page_with_the_verdicts_and_places_of_all_its_checks(tmp_path):
    """A clean inverter, the same with a net at the wrong transistor, and a gap below the minimum."""
    inverter = ".subckt inv a y vdd vss\nMP y a vdd vdd pmos w=4u l=0.5u\nMN y a vss vss nmos w=2u l=0.5u\n.ends\n"
    (tmp_path / "inv.spice").write_text(inverter)
    (tmp_path / "wrong.spice").write_text(inverter.replace("MN y a", "MN y y"))
    built = run_program(BUILD, "--netlist-path", "inv.spice", "--workspace", "ws", "--until", "export", cwd=tmp_path)
    assert built.returncode == 0

    def check(*words):
        command = [*skillpack(), "check", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        page = Path(done.stdout.splitlines()[-1])
        data = re.search(r'<script id="data" type="application/json">(.*?)</script>', page.read_text())
        return page, page.read_text(), [each["rule"] for each in json.loads(data[1])["findings"] if each["fault"]]

    page, text, faults = check("ws/layout.gds", "--netlist", "inv.spice")
    assert (page, faults) == (tmp_path / "ws/layout.html", [])
    assert all(words in text for words in ("</span> clean", "would", "data:image/png;base64,"))
    page, text, faults = check("ws/layout.gds", "--netlist", "wrong.spice", "-o", "wrong.html")
    assert page == tmp_path / "wrong.html"
    assert faults
    assert all(rule.startswith("LVS ") for rule in faults)
    assert all(words in text for words in ("</span> not clean", "stage review was not run"))

    layout = kdb.Layout()
    metal1 = layout.create_cell("TOP").shapes(layout.layer(4, 0))
    metal1.insert(kdb.Box(0, 0, 1000, 1000))
    metal1.insert(kdb.Box(1050, 0, 2000, 1000))  # 0.05 um apart
    layout.write(str(tmp_path / "gap.gds"))
    page, text, faults = check("gap.gds", "-t", "generic")
    assert (page, set(faults)) == (tmp_path / "gap.html", {"M1_MIN_SPACE"})
    assert "stage lvs was not run" in text


def test_a_page_of_answers_about_another_layout_is_refused(run_script, source):
    answers = json.dumps({"drc.run_check": {"layout_sha256": "0" * 64}})
    code, envelope = run_script(SCRIPT, "--layout-path", source, "--answers", answers)
    assert code == 2 or not envelope["ok"]
    assert "the result of drc is for another layout" in envelope["error"]["message"]
