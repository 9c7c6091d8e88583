"""The tool review.check_layout through its command line: verdict, limits, files and bad input."""

import json
import re
import shutil
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.flow.summary import faults, summary
from layoutkit.review.finding import shipped_limits
from layoutkit.tools.current_layout import CurrentLayout
from layoutkit.tools.layout_checks import DEFAULTS, LayoutReview

SCRIPT = "layout-review/scripts/check_layout.py"
ASSETS = Path(__file__).resolve().parents[2] / "skills" / "layout-review" / "assets"
EXAMPLE = ("--layout-path", ASSETS / "pair.gds", "--netlist-path", ASSETS / "pair.spice", "--technology", "sky130A")
STRICT = '{"net-pair.capacitance": {"must": 0.001}}'


def test_the_example_is_signed_and_every_finding_has_place_figure_reason_and_remedy(run_script):
    code, envelope = run_script(SCRIPT, *EXAMPLE)
    data = envelope["data"]
    assert (code, data["would_sign"], data["must"]) == (0, True, 0)
    assert data["should"] == len(data["findings"]) > 0
    for finding in data["findings"]:
        left, bottom, right, top = finding["place"]
        assert left <= right
        assert bottom <= top
        assert (finding["measured"] < finding["limit"]) is (finding["unit"] == "cuts")  # of these, more are better
        assert finding["why"]
        assert finding["what_to_do"]
    assert {each["device"] for each in data["estimated_currents"]} == {"M1", "M2", "M3"}


def test_every_limit_is_in_the_table():
    lines = (ASSETS.parent / "references/limits.md").read_text().splitlines()
    rows = [line.split("|")[1] for line in lines if line[:3] == "| `"]
    named = set()
    for row in rows:
        names = re.findall(r"`([^`]+)`", row)
        named |= {f"{names[0].split('.')[0]}{name}" if name[0] == "." else name for name in names}
    assert set(shipped_limits()) <= named


def test_the_user_overrides_a_limit_and_the_exit_code_says_that_nobody_signs(run_script):
    code, envelope = run_script(SCRIPT, *EXAMPLE, "--limits", STRICT)
    assert (code, envelope["ok"], envelope["data"]["would_sign"]) == (1, True, False)
    assert {each["id"] for each in envelope["data"]["findings"] if each["severity"] == "must"} == {"net-pair"}


def test_a_limit_that_does_not_exist_is_named_with_those_that_do(run_script):
    code, envelope = run_script(SCRIPT, *EXAMPLE, "--limits", '{"axes": {"must": 1}}')
    assert code == 2
    assert "'axes' is no limit (did you mean 'axis'?)" in envelope["error"]["message"]
    assert "supply-drop" in envelope["error"]["message"]


def test_a_layout_of_another_circuit_is_not_reviewed(run_script, tmp_path):
    other = tmp_path / "other.spice"
    other.write_text((ASSETS / "pair.spice").read_text().replace("M2 outn inn", "M2 outn inp"))
    code, envelope = run_script(SCRIPT, *EXAMPLE[:2], "--netlist-path", other, "--technology", "sky130A")
    assert code == 2
    assert "is not the circuit" in envelope["error"]["message"]


def test_the_review_of_a_build_knows_the_subcircuits_of_its_netlist(finished_layout):
    """The workspace's circuit is flat; without its instances, equal cells would not be compared."""
    text = """.subckt top a b c vdd vss
X1 a b vdd vss inv
X2 b c vdd vss inv
.ends
.subckt inv i o vdd vss
M1 o i vss vss sky130_fd_pr__nfet_01v8 W=1 L=0.15
M2 o i vdd vdd sky130_fd_pr__pfet_01v8 W=2 L=0.15
.ends
"""
    params = {**DEFAULTS, "workspace": str(finished_layout(text, "sky130A")[1])}
    review = LayoutReview(params, CurrentLayout(params))
    assert [(each.path, [*each.devices]) for each in review.circuit.subcircuits] == [
        ("X1", ["X1.M1", "X1.M2"]), ("X2", ["X2.M1", "X2.M2"])
    ]  # fmt: skip


def test_the_report_of_a_workspace_is_drawn_as_markers(run_script, finished_layout, tmp_path):
    made = finished_layout((ASSETS / "pair.spice").read_text(), "sky130A")[1]
    workspace = shutil.copytree(made, tmp_path / "ws")
    code, envelope = run_script(SCRIPT, "--workspace", workspace, "--limits", STRICT)
    assert code == 1
    report = Path(envelope["data"]["files"]["report"])
    assert report == workspace / "review.lyrdb"
    assert report.name in json.dumps(json.loads((workspace / "layout_workspace.json").read_text()))
    picture = ("layout-view/scripts/render_view.py", "--workspace", workspace, "--markers", "review")
    code, drawn = run_script(*picture, "--output-path", tmp_path / "x.png")
    assert code == 0
    findings = envelope["data"]["findings"]
    assert drawn["data"]["markers_drawn"] == len(findings) + sum(len(each["places"]) for each in findings)


def test_an_aspect_that_the_build_was_asked_for_and_missed_is_found(run_script, finished_layout, tmp_path):
    made = finished_layout((ASSETS / "pair.spice").read_text(), "sky130A")[1]
    workspace = shutil.copytree(made, tmp_path / "ws")
    record = json.loads((workspace / "stages.json").read_text())

    def asked(aspect):
        record["options"]["aspect"] = aspect
        (workspace / "stages.json").write_text(json.dumps(record))
        _, envelope = run_script(SCRIPT, "--workspace", workspace)
        return [each["severity"] for each in envelope["data"]["findings"] if "was requested" in each["why"]]

    assert asked(50) == []
    assert asked(1.0) != []


@pytest.mark.parametrize("extra", ["x", "_z"])
def test_renamed_devices_change_no_finding(run_script, tmp_path, extra):
    """The cards are turned around as well."""
    lines = (ASSETS / "pair.spice").read_text().splitlines()
    cards = [line.replace(line.split()[0], f"M{extra}{line[1]}9", 1) for line in lines if line.startswith("M")]
    renamed = tmp_path / "renamed.spice"
    renamed.write_text("\n".join([*lines[:2], *reversed(cards), lines[-1], ""]))
    _, before = run_script(SCRIPT, *EXAMPLE)
    _, after = run_script(SCRIPT, *EXAMPLE[:2], "--netlist-path", renamed, "--technology", "sky130A")
    names = ("id", "severity", "place", "measured", "nets")
    shown = [[[each[name] for name in names] for each in run["data"]["findings"]] for run in (before, after)]
    assert shown[0] == shown[1]


def test_a_build_states_the_verdict_of_the_review(finished_layout):
    workspace = Path(finished_layout((ASSETS / "pair.spice").read_text(), "sky130A")[1])
    report = json.loads((workspace / "summary.json").read_text())
    review = report["review"]
    assert review["must"] + review["should"] == len(review["findings"])
    line = next(line for line in summary({**report, "files": {}}).splitlines() if "  review " in line)
    assert f"{review['must']} must, {review['should']} should be mended" in line
    page = (workspace / "report.html").read_text()
    assert "design review" in page
    assert all(f"review {each['id']}" in page for each in review["findings"])
    assert faults(report) == []  # the review does not decide whether a build is clean


@pytest.mark.parametrize("unit", [0.005, 0.0005])
def test_a_file_in_another_database_unit_gets_the_same_review(run_script, tmp_path, unit):
    layout = kdb.Layout()
    layout.read(str(EXAMPLE[1]))
    factor = layout.dbu / unit
    layout.transform(kdb.ICplxTrans(factor))
    layout.dbu = unit
    layout.write(str(tmp_path / "other.gds"))
    _, before = run_script(SCRIPT, *EXAMPLE)
    _, after = run_script(SCRIPT, "--layout-path", tmp_path / "other.gds", *EXAMPLE[2:])
    assert after["data"]["findings"] == before["data"]["findings"]


@pytest.mark.parametrize("models", [("nch", "nch"), ("nch", "nch_lvt"), ("lvtnfet", "lvtnfet")])
def test_the_netlist_that_a_layout_was_built_from_is_reviewed_whatever_its_models(run_script, finished_layout, models):
    cards = [line for line in (ASSETS / "pair.spice").read_text().splitlines() if line.startswith("M")]
    every = [models[0], models[0], models[1]]
    cards = [card.replace("nfet_01v8", model) for card, model in zip(cards, every, strict=True)]
    foreign = "\n".join([".subckt pair inp inn outp outn bias vss", *cards, ".ends pair", ""])
    workspace = finished_layout(foreign, "sg13g2")[1]
    netlist = workspace.parent / f"foreign_{'_'.join(models)}.spice"
    netlist.write_text(foreign)
    _, own = run_script(SCRIPT, "--workspace", workspace)
    _, original = run_script(SCRIPT, "--workspace", workspace, "--netlist-path", netlist)
    assert original["ok"], original["error"]
    assert original["data"]["findings"] == own["data"]["findings"]


def test_constraints_of_the_build_are_left_out_and_unjudged_where_another_netlist_has_no_such_devices(
    run_script, finished_layout, tmp_path
):
    text = (ASSETS / "pair.spice").read_text()
    workspace = shutil.copytree(finished_layout(text, "sky130A")[1], tmp_path / "ws")
    used = json.loads((workspace / "used_constraints.json").read_text())
    assert used
    (tmp_path / "renamed.spice").write_text(text.replace("\nM", "\nMx"))
    code, envelope = run_script(SCRIPT, "--workspace", workspace, "--netlist-path", tmp_path / "renamed.spice")
    assert code in {0, 1}
    assert "the constraints that the layout was made with do not fit this netlist" in str(envelope["data"]["unjudged"])
