"""The flow and the pipeline of its tools lay out the same bytes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.summary import faults
from pack_tools import pack_tools
from skillpack import Runner, load_pipeline, run_pipeline

pytestmark = pytest.mark.usefixtures("forked_tools")
SKILLS = Path(__file__).parents[2] / "skills"
PIPELINE = SKILLS / "netlist-to-gds/assets/netlist-to-gds.pipeline.yaml"
OTA = SKILLS / "netlist-to-gds/assets/ota_5t.spice"
COMPARATOR = SKILLS / "constraint-planning/assets/comparator.spice"
FILTER = Path(__file__).with_name("filter.spice")
APART = {"symmetry": [{"pairs": [["M1", "M2"]], "self_symmetric": ["M5"], "net_pairs": [["tmir", "out"]]}]}
INVERTERS = """.subckt two a b x y vdd vss
M1 x a vss vss nmos W=2u L=0.5u
M2 x b vdd vdd pmos W=4u L=0.5u
M3 y x vss vss nmos W=2u L=0.5u
M4 y x vdd vdd pmos W=4u L=0.5u
.ends
"""
WIDE = {"net_currents": [{"net": "x", "current": 0.004}]}
CASES = {
    "ota": (OTA, "sky130A", {}, None),
    "comparator": (COMPARATOR, "gf180mcuD", {"dummies": 1}, None),
    "resistors": (FILTER, "sg13g2", {"seed": 2}, None),
    "constraints": (OTA, "generic", {}, APART),
    "further attempts": (INVERTERS, "gf180mcuD", {"seed": 1}, WIDE),
}


@pytest.fixture(scope="module")
def runner():
    with Runner(pack_tools()) as runner:
        yield runner


@pytest.fixture(scope="module")
def drawing():
    """Return the pipeline without its checks, which draw nothing."""
    pipeline = load_pipeline(PIPELINE)
    steps = tuple(step for step in pipeline.steps if step.id in {"parse", "place", "route", "export"})
    return replace(pipeline, steps=steps, outputs={})


@pytest.mark.parametrize("case", CASES)
def test_the_flow_and_its_tools_step_by_step_draw_the_same_bytes(runner, drawing, tmp_path, case):
    netlist, technology, more, constraints = CASES[case]
    if isinstance(netlist, str):
        (tmp_path / "two.spice").write_text(netlist, encoding="utf-8")
        netlist = tmp_path / "two.spice"
    if constraints is not None:
        path = tmp_path / "constraints.json"
        path.write_text(json.dumps(constraints), encoding="utf-8")
        more = {**more, "constraints": str(path)}
    report = build_layout(LayoutRequest(str(netlist), technology, str(tmp_path / "flow"), last_stage="lvs", **more))
    assert [fault for fault in faults(report) if "cannot carry the current" not in fault] == []
    if constraints is not None:
        more = {**more, "constraints": constraints}  # the same by value, as a caller elsewhere gives them
    inputs = {
        "netlist_text": netlist.read_text(encoding="utf-8"),
        "technology": technology,
        "output_path": str(tmp_path / "out.gds"),
        "workspace": str(tmp_path / "steps"),
        **more,
    }
    result = run_pipeline(drawing, inputs, runner)
    assert result.exit_code == 0, result.error
    steps = {step["id"]: step["envelope"]["data"] for step in result.data["steps"]}
    whole = (tmp_path / "flow" / "layout.gds").read_bytes()
    assert (tmp_path / "steps" / "layout.gds").read_bytes() == whole
    assert (tmp_path / "out.gds").read_bytes() == whole
    assert steps["place"]["placement"]["attempts"] == report["placement"]["attempts"]
    if case == "further attempts":
        assert report["placement"]["attempts"] > 1
    told, planned = report["constraints"]["outcomes"], steps["place"]["constraints"]
    assert planned["source"] == ("recognition" if constraints is None else "constraints")
    assert all(entry in told for entry in planned["outcomes"] if "current" not in entry["constraint"])
    assert len(planned["outcomes"]) == len(told)
