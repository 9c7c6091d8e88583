"""What the pages on the registry and on pipelines say is true, and the shipped pipelines work (S1.7, S3.7)."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from forked import BIN, programs
from patience import WATCHDOG_S

sys.path.insert(0, str(Path(__file__).parents[1]))
from model_service import model_service, says  # noqa: I001

from pack_tools import pack_tools
from skillpack import Runner
from skillpack import WorkerPool
from skillpack import check_pipeline, load_pipeline
from skillpack.pipelines.pipeline import make_pipeline
from skillpack import RunOptions, run_pipeline
from skillpack.untrusted.strict_yaml import load_typed_mapping

pytestmark = pytest.mark.usefixtures("forked_tools")
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "references" / name for name in ("registry.md", "pipelines.md")]
PIPELINES = sorted((ROOT / "skills").glob("*/assets/*.pipeline.yaml"))
ASSETS = ROOT / "skills/netlist-to-gds/assets"
CHECKS = ["drc", "lvs", "metrics", "export"]
OTA = (ASSETS / "ota_5t.spice").read_text(encoding="utf-8")
SINGLE = ".subckt single d g s b\nM1 d g s b nmos W=4u L=0.5u nf=2\n.ends\n"
BARE = "* no subcircuit\nM1 out in vss vss nmos W=2u L=0.5u\nM2 out in vdd vdd pmos W=4u L=0.5u\n.end\n"
UNNAMED = json.dumps(
    {
        "devices": [
            {
                "id": "M1",
                "type": "nmos",
                "params": {"w": 2e-6, "l": 5e-7},
                "terminals": {"d": "a", "g": "in", "s": "b", "b": "b"},
            }
        ]
    }
)
FILTER = (ROOT / "tests/skills/filter.spice").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tools():
    return pack_tools()


@pytest.fixture(scope="module")
def runner(tools):
    """Return a runner whose tools all stay warm from one chain to the next."""
    with Runner(tools, pool=WorkerPool(max_workers=10)) as runner:
        yield runner


@pytest.fixture
def root(tmp_path):
    """A folder that looks like the repository root."""
    for name in ("skills", "scripts", "loader", "references"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(command, folder, places=(BIN,)):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANALOG_LAYOUT_")}
    environment["PATH"] = os.pathsep.join([*map(str, places), environment["PATH"]])
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=WATCHDOG_S, check=False
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_run_as_printed(page, root):
    places = [programs(), BIN]
    lines = [line for block in blocks(page, "bash") for line in block.replace("\\\n", " ").splitlines()]
    assert lines
    for line in lines:
        done = run(["bash", "-c", line], root, places)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def test_the_python_of_the_registry_page_runs_as_printed(root):
    for block in blocks(PAGES[0], "python"):
        done = run([sys.executable, "-c", block], root)
        assert done.returncode == 0, done.stderr


def test_the_tool_that_asks_a_model_gets_its_answer(tmp_path, monkeypatch):
    pytest.importorskip("httpx", reason="skipped: needs the extra models")
    example = next(block for block in blocks(PAGES[0], "python") if "ask_model" in block)
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets/quiz.jinja").write_text("A quiz about {{ topic }}", encoding="utf-8")
    (tmp_path / "skill.yaml").write_text('{"tools": [{"id": "quiz.make", "models": {"primary": "small"}}]}')
    tool = {"__file__": str(tmp_path / "scripts/make.py")}
    exec(example, tool)  # noqa: S102 - what the page prints
    monkeypatch.delenv("SKILL_MODEL_URL", raising=False)
    assert tool["execute"]({"topic": "limits"}, {}) == {"questions": []}
    with model_service() as service:
        service.script[:] = [says("no JSON"), says({"questions": ["x"]})]
        monkeypatch.setenv("SKILL_MODEL_URL", service.url)
        assert tool["execute"]({"topic": "limits"}, {}) == {"questions": ["x"]}


def test_the_pipeline_of_the_page_has_no_problems(tools):
    (text,) = blocks(PAGES[1], "yaml")
    assert check_pipeline(make_pipeline(load_typed_mapping(text)), tools).problems == ()


def test_the_migration_of_the_page_is_one():
    from skillpack import Migration

    (text,) = blocks(PAGES[0], "yaml")
    (entry,) = load_typed_mapping(text)["migrations"]
    old = {"gate_width": 2, "orientation": "N", "nets": [{"color": 1}]}
    assert Migration(**entry).apply(old) == {"w": 2e-6, "nf": 1, "orientation": "R0", "nets": [{}]}


@pytest.mark.parametrize("file", PIPELINES, ids=lambda file: file.name)
def test_a_shipped_pipeline_has_no_problems(tools, file):
    assert check_pipeline(load_pipeline(file), tools).problems == ()


def test_every_shipped_tool_finds_what_it_needs(tools):
    from skillpack import SkillRegistry

    assert tools.faults == ()
    assert SkillRegistry.from_tools(tools).dependency_problems() == []


def test_a_netlist_becomes_a_checked_layout_step_by_step_and_goes_on_after_a_failure(runner, tmp_path):
    """The whole chain of S1.7: netlist, modules, placement, routing, DRC, LVS, export."""
    pipeline = load_pipeline(ASSETS / "netlist-to-gds.pipeline.yaml")
    inputs = {
        "netlist_path": str(ASSETS / "ota_5t.spice"),
        "output_path": str(tmp_path / "out" / "ota.gds"),
        "workspace": str(tmp_path / "ws"),
    }
    options = RunOptions(state_path=tmp_path / "state.json", resume=True)
    failed = run_pipeline(pipeline, inputs, runner, options)
    assert failed.error.details["step"] == "export"  # its folder does not exist
    (tmp_path / "out").mkdir()
    result = run_pipeline(pipeline, inputs, runner, options)
    assert result.exit_code == 0, result.error
    assert [step["id"] for step in result.data["steps"]] == ["parse", "place", "route", *CHECKS]
    assert [step["status"] for step in result.data["steps"]] == ["reused"] * 6 + ["done"]
    outputs = result.data["outputs"]
    assert (outputs["drc_passed"], outputs["lvs_matched"]) == (True, True)
    assert (outputs["routing"]["total_nets"], outputs["routing"]["failed_count"]) == (8, 0)  # all: rows have pins each
    assert [pair["centroid_distance"] for pair in outputs["matching"]] == [0, 0, 0]
    assert Path(outputs["gds"]).stat().st_size > 0


@pytest.mark.parametrize(
    ("technology", "netlist"),
    [
        pytest.param("sg13g2", OTA, id="sg13g2"),
        pytest.param("sky130A", FILTER, id="passives"),
        pytest.param("gf180mcuD", SINGLE, id="gf180mcuD, one device"),
        pytest.param("path", BARE, id="technology by path, no subcircuit"),
        pytest.param("generic", UNNAMED, id="generic, JSON without a name"),
    ],
)
def test_the_chain_ends_clean_for_other_processes_and_circuits(runner, tmp_path, technology, netlist):
    source = tmp_path / ("in.json" if netlist.startswith("{") else "in.spice")
    source.write_text(netlist, encoding="utf-8")
    if technology == "path":
        technology = str(tmp_path / "mine.yaml")
        text = (ROOT / "scripts/layoutkit/technology/sky130A.yaml").read_text(encoding="utf-8")
        Path(technology).write_text(re.sub(r"(?m)^name: .*", "name: mine", text), encoding="utf-8")
    inputs = {
        "netlist_path": str(source),
        "output_path": str(tmp_path / "out.gds"),
        "workspace": str(tmp_path / "ws"),
        "technology": technology,
    }
    result = run_pipeline(load_pipeline(ASSETS / "netlist-to-gds.pipeline.yaml"), inputs, runner)
    assert (result.exit_code, result.error) == (0, None)
    assert {step["status"] for step in result.data["steps"]} == {"done"}
    outputs = result.data["outputs"]
    assert (outputs["drc_passed"], outputs["lvs_matched"], outputs["routing"]["failed_count"]) == (True, True, 0)


def test_inputs_that_placement_refuses_stop_the_chain_with_nothing_drawn(runner, tmp_path):
    pipeline = load_pipeline(ASSETS / "netlist-to-gds.pipeline.yaml")
    inputs = {"netlist_path": str(ASSETS / "ota_5t.spice"), "output_path": "out.gds", "workspace": str(tmp_path / "ws")}
    wrong = run_pipeline(pipeline, {**inputs, "row_gap": -1}, runner)
    late = run_pipeline(pipeline, {**inputs, "technology": "nosuch"}, runner)
    unknown = run_pipeline(pipeline, {**inputs, "net_priorities": [{"net": "nosuch", "priority": 1}]}, runner)
    assert (wrong.exit_code, wrong.error.code) == (2, "INVALID_PARAM")
    assert (late.exit_code, late.error.code, late.error.details["step"]) == (2, "INVALID_PARAM", "place")
    assert unknown.error.message.startswith("step 'place' (layout.place_modules): net_priorities names nets that")
    assert not (tmp_path / "ws" / "layout.gds").exists()


def test_a_pair_is_drawn_from_what_the_netlist_says(runner, tmp_path):
    pipeline = load_pipeline(ASSETS / "matched-pair.pipeline.yaml")
    inputs = {
        "netlist_path": str(ASSETS / "pair.spice"),
        "output_path": str(tmp_path / "pair.gds"),
        "workspace": str(tmp_path / "ws"),
    }
    result = run_pipeline(pipeline, inputs, runner)
    assert result.exit_code == 0, result.error
    assert (result.data["outputs"]["centroid_error_um"], result.data["outputs"]["lvs_matched"]) == (0, True)


def test_the_command_line_checks_and_runs_pipelines(tmp_path):
    pipeline = "netlist-to-gds/assets/netlist-to-gds.pipeline.yaml"
    skillpack = [programs() / "skillpack", "pipeline"]
    assert "7 steps can run" in run([*skillpack, "check", pipeline], tmp_path).stdout
    for arguments in (["check", "none.yaml"], ["run", "none.yaml"], ["run", pipeline, "--resume"], ["run", pipeline]):
        done = run([*skillpack, *arguments], tmp_path)
        assert done.returncode == 2, shlex.join(arguments)
    envelope = json.loads(done.stdout)
    choice, missing = envelope["error"]["details"]["errors"]
    assert choice["message"] == "give exactly one of netlist_path, netlist_text; received none of them"
    assert missing["path"] == "output_path"


def test_the_command_line_ranks_intents_and_shows_entries(tmp_path):
    skillpack = [programs() / "skillpack"]
    ranked = json.loads(run([*skillpack, "intent", "current mirror", "--json"], tmp_path).stdout)
    assert ranked[0]["id"] == "layout.create_current_mirror"
    assert run([*skillpack, "intent", "cooking"], tmp_path).returncode == 1
    entry = json.loads(run([*skillpack, "tools", "netlist.parse@1.0.0"], tmp_path).stdout)
    assert {"required": ["netlist_path"]} in entry["input_schema"]["oneOf"]
    missing = run([*skillpack, "tools", "netlist.prase"], tmp_path)
    assert (missing.returncode, "did you mean 'netlist.parse'" in missing.stderr) == (2, True)
