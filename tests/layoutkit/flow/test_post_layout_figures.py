"""``flow.build_layout --post-layout``: parasitics and simulation in the summary, the page and the design graph."""

import json
import shutil

import pytest
from tests.layoutkit.simulate.test_port_roles import SIMPLE_MIRROR

from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.summary import faults, summary
from layoutkit.tools.circuit_nodes import verdicts_of


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mirror")
    build_layout(
        LayoutRequest(netlist_text=SIMPLE_MIRROR, technology="generic", workspace=str(folder), post_layout=True)
    )
    return folder


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="skipped: needs ngspice")
def test_both_parts_are_in_the_summary_the_page_and_the_design_graph(workspace):
    report = json.loads((workspace / "summary.json").read_text())
    [corner] = report["post_layout"]["simulation"]["corners"]
    measured = {each["name"]: each for each in corner["measurements"]}
    assert measured["ratio(io1)"]["extracted"] == pytest.approx(2.05, abs=0.05)
    assert {each["net"] for each in report["post_layout"]["parasitics"]["nets"]} == {"iref", "io1", "io2", "vss"}
    assert "ratio(io1)" in summary(report)
    page = (workspace / "report.html").read_text()
    assert "After layout" in page
    assert "ratio(io1)" in page
    verdicts = dict(verdicts_of(report))
    assert verdicts["post_layout"]["measured"]["ratio(io1)"]["schematic"] == measured["ratio(io1)"]["schematic"]
    totals = {each["net"]: each["total_ff"] for each in report["post_layout"]["parasitics"]["nets"]}
    assert verdicts["parasitics"]["total_ff"] == totals
    assert verdicts["parasitics"]["pairs"] == report["post_layout"]["parasitics"]["pairs"]
    assert ".subckt mirror " in (workspace / "extracted.pex.spice").read_text()


def test_without_a_simulator_the_build_goes_on_and_says_what_is_unchecked(workspace, monkeypatch):
    monkeypatch.setenv("ANALOG_LAYOUT_NGSPICE", "no-such-program")
    request = LayoutRequest(workspace=str(workspace), first_stage="metrics", post_layout=True)
    report = build_layout(request)
    assert "install ngspice" in report["post_layout"]["simulation"]["unchecked"][0]
    assert report["post_layout"]["parasitics"]["nets"]
    assert dict(verdicts_of(report))["post_layout"]["passed"] is False


def test_a_violated_guideline_is_reported_and_is_no_fault():
    entry = {"rule_id": "licon.12", "count": 2, "severity": "warning"}
    drc = {"passed": True, "total_violations": 2, "violations": [entry], "rules_unchecked": [], "layers_unchecked": []}
    assert faults({"drc": drc}) == []
    wrong = {"rule_id": "m1.1", "count": 3, "severity": "error"}
    drc = {**drc, "passed": False, "total_violations": 5, "violations": [entry, wrong]}
    assert faults({"drc": drc}) == ["DRC finds 3 violations: m1.1 x3"]
