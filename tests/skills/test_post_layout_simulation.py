"""``sim.compare_post_layout`` as a user runs it: the script, its envelope and exit code."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from layoutkit.errors import FileError
from layoutkit.simulate.post_layout import offsets_apart
from layoutkit.tools.post_layout_requests import compare, measured_groups
from pack_tools import pack_tools
from skillpack.execution.tool_process import tool_environment

SKILL = Path(__file__).parents[2] / "skills" / "post-layout-simulation"
EXAMPLE = {name: str(SKILL / "assets" / file) for name, file in
           [("netlist_path", "ota_5t.spice"), ("extracted_path", "ota_5t.pex.spice")]}  # fmt: skip
needs_ngspice = pytest.mark.skipif(shutil.which("ngspice") is None, reason="skipped: needs ngspice")


def run(tmp_path, **params):
    """Return exit code and envelope of the script."""
    command = [sys.executable, str(SKILL / "scripts" / "compare_post_layout.py"), "--params", "-"]
    done = subprocess.run(
        command, input=json.dumps({**EXAMPLE, **params}), capture_output=True, text=True, check=False, cwd=tmp_path
    )
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize(
    "tool", ["sim.compare_post_layout", "pex.extract_parasitics", "flow.build_layout", "flow.explore_layouts"]
)
def test_hosts_tell_a_tool_that_simulates_or_runs_magic_where_the_process_kit_is(tool):
    """Without it, a layout over MCP had no figures after layout on a machine with all models."""
    told = {"PDK_ROOT": "/kits", "PDK": "sky130A"}
    tools = pack_tools().by_id
    assert tool_environment(tools[tool].environment, {**told, "OTHER": "1"}) == told


@needs_ngspice
def test_a_broken_limit_is_exit_1_and_the_data_is_in_the_answer(tmp_path):
    status, envelope = run(tmp_path, limits={"gbw": {"max_loss_percent": 10}}, technology="generic")
    assert (status, envelope["error"]["code"]) == (1, "LAYOUT_CONFLICT")
    measured = {each["name"]: each for each in envelope["data"]["corners"][0]["measurements"]}
    assert measured["gbw"]["passed"] is False
    assert measured["gbw"]["change_percent"] < -10
    assert envelope["data"]["models"]["source"] == "generic"


@needs_ngspice
def test_a_deck_of_ones_own_names_the_measurements_of_a_netlist_given_as_text(tmp_path):
    deck = tmp_path / "mine.cir"
    deck.write_text(
        "* mine\nVdd vdd 0 1.8\nVi inp 0 0.9\nIb vdd bias 20u\nXdut inp out out bias vdd 0 ota_5t\n"
        ".dc Vi 0.8 1.0 0.1\n.meas dc follows find v(out) at=0.9\n"
    )
    given = {"netlist_text": Path(EXAMPLE["netlist_path"]).read_text(), "extracted_path": EXAMPLE["extracted_path"]}
    answer = compare({**given, "technology": "generic", "deck_path": str(deck)})
    [measured] = answer["corners"][0]["measurements"]
    assert measured["name"] == "follows"
    assert measured["extracted"] == pytest.approx(0.9, abs=0.02)


def test_a_missing_simulator_is_exit_3(tmp_path, monkeypatch):
    monkeypatch.setenv("ANALOG_LAYOUT_NGSPICE", "no-such-program")
    status, envelope = run(tmp_path, technology="generic")
    assert (status, envelope["error"]["code"]) == (3, "SERVICE_UNAVAILABLE")


def test_an_offset_is_told_by_its_causes():
    answer = {
        "corners": [{"corner": "typical", "measurements": [{"name": "offset", "unit": "V", "change": 1e-4}]}],
        "monte_carlo": [{"name": "offset", "unit": "V", "mean": 2e-4, "sigma": 2e-3, "samples": 9}],
    }
    predicted = {"devices": ["M1", "M2"], "value": 0.1, "unit": "mV", "random_sigma": {"value": 2.5}, "kind": "pair"}
    assert offsets_apart(answer, [{"predicted_offsets": [predicted]}])["offset"] == {
        "layout": 1e-4,
        "random_sigma": 2e-3,
        "predicted": [{"devices": ["M1", "M2"], "value": 0.1, "unit": "mV", "random_sigma": 2.5}],
    }


@pytest.mark.parametrize("groups", [5, [5], [{"predicted_offsets": 5}], [{"predicted_offsets": [{"devices": 3}]}]])
def test_a_summary_that_was_changed_is_refused_by_its_name(tmp_path, groups):
    (tmp_path / "summary.json").write_text(json.dumps({"matching": {"groups": groups}}))
    with pytest.raises(FileError, match=r"summary\.json does not state matching\.groups"):
        measured_groups({"workspace": str(tmp_path)})
