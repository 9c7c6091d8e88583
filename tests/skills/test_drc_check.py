"""``drc.run_check`` through its real command line (S0.1, S0.8)."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import klayout.db as kdb
import pytest
from klayout import rdb

from forked import run_program
from patience import WATCHDOG_S

ROOT = Path(__file__).parents[2]
SKILL = ROOT / "skills" / "drc-check"
SCRIPT = SKILL / "scripts" / "run_check.py"
EXAMPLE = SKILL / "assets" / "example.gds"
RULES = SKILL / "assets" / "example_rules.json"


def run(*arguments, cwd=ROOT, environment=None):
    done = run_program(SCRIPT, *arguments, cwd=cwd, **(environment or {}))
    envelope = json.loads(done.stdout)
    assert set(envelope) == {"ok", "error", "data", "duration_ms"}
    return envelope, done.returncode


def refused(*arguments, code="INVALID_PARAM", cwd=ROOT):
    envelope, status = run(*arguments, cwd=cwd)
    assert (envelope["ok"], status) == (False, 2)
    assert envelope["error"]["code"] == code
    return envelope["error"]


def layout_with(path, boxes, dbu=0.001):
    layout = kdb.Layout()
    layout.dbu = dbu
    cell = layout.create_cell("TOP")
    for layer, *box in boxes:
        cell.shapes(layout.layer(layer, 0)).insert(kdb.Box(*box))
    layout.write(str(path))
    return path


def test_s0_8_a_violating_layout_answers_the_seeds_data_and_exits_1():
    envelope, status = run("--layout-path", EXAMPLE)
    data = envelope["data"]
    assert (envelope["ok"], status, data["passed"]) == (True, 1, False)
    assert data["summary"]["total_violations"] == 2
    assert data["summary"]["rules_violated"] == 2
    assert data["summary"]["rules_checked"] > 90
    by_rule = {entry["rule_id"]: entry for entry in data["violations"]}
    assert set(by_rule) == {"M1_MIN_WIDTH", "M1_MIN_SPACE"}
    assert by_rule["M1_MIN_WIDTH"]["severity"] == "error"
    assert by_rule["M1_MIN_WIDTH"]["locations"][0] == {
        "x": 5.0, "y": 1.09, "layer": "metal1", "box": [0.0, 1.0, 10.0, 1.18], "distance": 0.18,
    }  # fmt: skip


def test_s0_8_a_clean_layout_passes_and_exits_0(tmp_path):
    path = layout_with(tmp_path / "clean.gds", [(4, 0, 0, 2000, 500)])
    envelope, status = run("--layout-path", path)
    assert (envelope["ok"], status) == (True, 0)
    assert envelope["data"]["passed"] is True
    assert envelope["data"]["violations"] == []


def test_s0_8_json_rules_are_checked_with_their_own_words():
    envelope, status = run("--layout-path", EXAMPLE, "--drc-rules-path", RULES)
    data = envelope["data"]
    assert status == 1
    assert data["summary"]["rules_checked"] == 5
    assert data["violations"][0]["rule_description"] == "Metal1 minimum width"


def test_s0_8_rule_ids_filter_the_rules():
    envelope, status = run("--layout-path", EXAMPLE, "--rule-ids", '["M1_MIN_AREA"]')
    assert (status, envelope["data"]["summary"]["rules_checked"]) == (0, 1)


def test_s0_8_an_unknown_rule_is_rule_not_found_with_the_nearest_ids():
    error = refused("--layout-path", EXAMPLE, "--rule-ids", '["M1_WIDTH"]', code="RULE_NOT_FOUND")
    assert "did you mean M1_MIN_WIDTH" in error["message"]
    assert error["details"]["unknown"] == ["M1_WIDTH"]


def test_s0_8_max_violations_limits_the_places_only(tmp_path):
    path = layout_with(tmp_path / "many.gds", [(4, 0, y * 1000, 2000, y * 1000 + 100) for y in range(150)])
    envelope, _ = run("--layout-path", path, "--rule-ids", '["M1_MIN_WIDTH"]')
    assert envelope["data"]["violations"][0]["count"] == 150
    assert len(envelope["data"]["violations"][0]["locations"]) == 100
    envelope, _ = run("--layout-path", path, "--rule-ids", '["M1_MIN_WIDTH"]', "--max-violations", "3")
    assert envelope["data"]["summary"]["total_violations"] == 150
    assert len(envelope["data"]["violations"][0]["locations"]) == 3


def test_s0_8_the_report_opens_in_klayout_with_all_violations(tmp_path):
    report = tmp_path / "drc.lyrdb"
    envelope, _ = run("--layout-path", EXAMPLE, "--report-path", report, "--max-violations", "0")
    assert envelope["data"]["report_path"] == str(report)
    database = rdb.ReportDatabase("read")
    database.load(str(report))
    assert database.num_items() == 2
    assert database.top_cell_name == "EXAMPLE"


def test_s0_8_a_cell_and_a_region_can_be_chosen():
    envelope, status = run("--layout-path", EXAMPLE, "--cell-name", "EXAMPLE", "--region", "[0, 0, 10, 1.5]")
    assert status == 1
    assert [entry["rule_id"] for entry in envelope["data"]["violations"]] == ["M1_MIN_WIDTH"]
    assert "EXAMPLE" in refused("--layout-path", EXAMPLE, "--cell-name", "NONE")["message"]
    assert "left < right" in refused("--layout-path", EXAMPLE, "--region", "[10, 0, 0, 1.5]")["message"]


def test_the_current_layout_is_the_workspaces(tmp_path):
    assert "holds no layout yet" in refused("--workspace", tmp_path / "none")["message"]
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "layout.gds").write_bytes(EXAMPLE.read_bytes())
    envelope, status = run("--workspace", tmp_path / "work")
    assert (status, envelope["data"]["cell_name"]) == (1, "EXAMPLE")


def test_a_process_that_is_taken_from_the_layers_is_named_as_a_guess():
    guess = "the process is not stated: generic fits the layers best; technology (-t) names another"
    assert guess in run("--layout-path", EXAMPLE)[0]["data"]["notes"]
    assert guess not in run("--layout-path", EXAMPLE, "--technology", "generic")[0]["data"]["notes"]


def test_another_process_is_not_clean():
    envelope, status = run("--layout-path", EXAMPLE, "--technology", "sky130A")
    assert status == 1
    assert envelope["data"]["summary"]["total_violations"] == 0
    assert (envelope["data"]["passed"], envelope["data"]["complete"]) == (False, False)
    assert "name the technology" in envelope["data"]["notes"][0]


def test_a_layer_that_no_rule_judges_fails_the_check_until_it_is_waived(tmp_path):
    import klayout.db as kdb

    layout = kdb.Layout()
    layout.dbu = 0.001
    cell = layout.create_cell("TWO")
    for layer in (4, 250):
        cell.shapes(layout.layer(layer, 0)).insert(kdb.Box(0, 0, 2000, 2000))
    layout.write(str(tmp_path / "two.gds"))
    envelope, status = run("--layout-path", tmp_path / "two.gds")
    data = envelope["data"]
    assert (status, data["passed"], data["complete"]) == (1, False, False)
    assert [(layer["layer"], layer["name"]) for layer in data["layers_unchecked"]] == [("250/0", None)]
    envelope, status = run("--layout-path", tmp_path / "two.gds", "--waived-layers", '["250/0"]')
    data = envelope["data"]
    assert (status, data["passed"], data["layers_unchecked"], data["layers_waived"]) == (0, True, [], ["250/0"])
    assert "no such layer" in refused("--layout-path", EXAMPLE, "--waived-layers", '["metal17"]')["message"]


DECK = """
source($input, $topcell)
report("A foundry's rules", $report)
m1 = input(4, 0)
m1.width(0.2.um).output("M1.1", "Metal1 width")
m1.space(0.23.um).output("M1.2", "Metal1 space")
input(5, 0).width($least.to_f.um).output("V.1", "Cut width") if $least
"""


@pytest.mark.skipif(shutil.which("klayout") is None, reason="needs klayout")
def test_a_foundry_deck_answers_the_same_data_as_rules_do(tmp_path):
    deck = tmp_path / "deck.drc"
    deck.write_text(DECK)
    report, image = tmp_path / "deck.lyrdb", tmp_path / "deck.png"
    envelope, status = run(
        "--layout-path", EXAMPLE, "--drc-rules-path", deck, "--deck-variables", '{"least": "0.1"}',
        "--report-path", report, "--image-path", image, "--list-passed-rules",
    )  # fmt: skip
    rules = '["M1_MIN_WIDTH", "M1_MIN_SPACE"]'
    own = run("--layout-path", EXAMPLE, "--rule-ids", rules, "--list-passed-rules")[0]["data"]
    data = envelope["data"]
    assert status == 1
    assert [entry["rule_id"] for entry in data["violations"]] == ["M1.1", "M1.2"]
    assert [rule["rule_id"] for rule in data["rules_passed"]] == ["V.1"]
    boxes = [[place["box"] for place in entry["locations"]] for entry in own["violations"]]
    assert [[place["box"] for place in entry["locations"]] for entry in data["violations"]] == boxes
    assert set(data) - set(own) == {"report_path", "image_path"}
    assert image.read_bytes().startswith(b"\x89PNG")
    assert b"M1.2" in report.read_bytes()


def test_without_the_application_a_deck_is_service_unavailable_with_a_hint(tmp_path):
    deck = tmp_path / "deck.lydrc"
    deck.write_text(DECK)
    environment = {"ANALOG_LAYOUT_KLAYOUT": str(tmp_path / "none")}
    envelope, status = run("--layout-path", EXAMPLE, "--drc-rules-path", deck, environment=environment)
    assert status == 3
    assert envelope["error"]["code"] == "SERVICE_UNAVAILABLE"
    assert "apt-get install klayout" in envelope["error"]["message"]


@pytest.mark.skipif(shutil.which("klayout") is None, reason="needs klayout")
def test_a_deck_that_hangs_is_a_timeout(tmp_path):
    deck = tmp_path / "deck.drc"
    deck.write_text("sleep")
    envelope, status = run("--layout-path", EXAMPLE, "--drc-rules-path", deck, "--timeout-s", "2")
    assert (status, envelope["error"]["code"]) == (4, "TIMEOUT")


def test_a_picture_marks_the_violations(tmp_path):
    image = tmp_path / "drc.png"
    envelope, _ = run("--layout-path", EXAMPLE, "--image-path", image)
    assert envelope["data"]["image_path"] == str(image)
    assert image.read_bytes().startswith(b"\x89PNG")
    refused("--layout-path", EXAMPLE, "--image-path", tmp_path / "drc.txt")
    refused("--layout-path", EXAMPLE, "--image-path", tmp_path / "none" / "drc.png")


def test_passed_rules_are_counted_and_listed_on_request_only():
    plain, asked = (run("--layout-path", EXAMPLE, *more)[0]["data"] for more in ((), ("--list-passed-rules",)))
    assert set(asked) - set(plain) == {"rules_passed"}
    assert plain["summary"]["rules_passed"] == asked["summary"]["rules_passed"] == len(asked["rules_passed"]) > 80
    counts = asked["summary"]
    assert counts["rules_passed"] == counts["rules_checked"] - counts["rules_violated"]
    assert len(json.dumps(asked)) > 3 * len(json.dumps(plain))


def test_every_rule_is_passed_failed_or_unchecked():
    data = run("--layout-path", EXAMPLE, "--list-passed-rules")[0]["data"]
    told = [rule["rule_id"] for part in ("violations", "rules_passed", "rules_unchecked") for rule in data[part]]
    assert len(told) == len(set(told)) == data["summary"]["rules_checked"]
    assert any(rule["shapes"] > 0 for rule in data["rules_passed"])


@pytest.mark.parametrize("mode", ["flat", "hierarchical"])
def test_both_modes_find_the_same(mode):
    data = run("--layout-path", EXAMPLE, "--mode", mode)[0]["data"]
    plain = run("--layout-path", EXAMPLE)[0]["data"]
    assert data["hierarchical"] is (mode == "hierarchical")
    assert data["violations"] == plain["violations"]


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"\x00\xff" * 50,
        b"{",
        b'{"rules": [{"rule_id": "A", "kind": "width", "layer": "metal1", "value": "x"}]}',
    ],
)
def test_bad_rule_files_are_reported(tmp_path, content):
    path = tmp_path / "rules.json"
    if content is not None:
        path.write_bytes(content)
    refused("--layout-path", EXAMPLE, "--drc-rules-path", path)


@pytest.mark.parametrize(
    "content",
    [None, b"", b"garbage" * 100, EXAMPLE.read_bytes()[:200]],
    ids=["missing", "empty", "garbage", "truncated"],
)
def test_bad_layouts_are_reported(tmp_path, content):
    path = tmp_path / "layout.gds"
    if content is not None:
        path.write_bytes(content)
    assert "layout.gds" in refused("--layout-path", path)["message"]


def test_bad_parameters_are_reported(tmp_path):
    refused("--layout-path", tmp_path)
    refused("--layout-path", EXAMPLE, "--rule-ids", "[]")
    refused("--layout-path", EXAMPLE, "--max-violations", "-1")
    refused("--layout-path", EXAMPLE, "--technology", "nowhere")
    refused("--params", '{"layout_path": 3, "surprise": true}')
    report = tmp_path / "missing" / "drc.lyrdb"
    refused("--layout-path", EXAMPLE, "--report-path", report)
    assert not report.parent.exists()


def test_help_imports_no_klayout():
    code = f"""
import runpy, sys
sys.argv = ["run_check.py", "--help"]
try:
    runpy.run_path({str(SCRIPT)!r}, run_name="__main__")
except SystemExit:
    pass
print("klayout" in {{name.split(".")[0] for name in sys.modules}}, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WATCHDOG_S, check=False)
    assert done.stderr.strip().endswith("False")
    assert "--drc-rules-path" in done.stdout + done.stderr


def test_the_check_needs_no_docstrings():
    """PYTHONOPTIMIZE=2 takes them away."""
    plain, _ = run("--layout-path", EXAMPLE, "--drc-rules-path", RULES)
    optimised, _ = run("--layout-path", EXAMPLE, "--drc-rules-path", RULES, environment={"PYTHONOPTIMIZE": "2"})
    assert optimised["ok"], optimised["error"]
    assert optimised["data"]["violations"] == plain["data"]["violations"]
