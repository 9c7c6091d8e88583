"""The tutorials run as printed, in an empty folder, with what an installed package puts on ``PATH`` (see ``forked``).

A block whose paragraph before it ends with the path of a file in backquotes and a colon is that file. Blocks of
commands run in their order. A translation has the same blocks, so what runs for the original runs for it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

import layoutkit
from forked import BIN, programs
from patience import WATCHDOG_S

ROOT = Path(__file__).parents[2]
TUTORIALS = ROOT / "references" / "tutorials"
TRANSLATED = ROOT / "references" / "zh" / "tutorials"
EDITORS = sorted((ROOT / "references" / "editors").glob("*.md"))
PAGES = sorted(TUTORIALS.glob("*.md"))
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w./-]+)`[:\uff1a]$")  # also the colon of Chinese
OWN = ("ANALOG_LAYOUT_", "SKILLPACK_", "SKILL_MODEL_", "CHIPFORGE_", "KG_")


@dataclass
class Block:
    """A fenced block of a page: its language, its text and the file that it is, if any."""

    kind: str
    text: str
    file: str | None


def blocks(page):
    """Return the fenced blocks of a page, in their order."""
    text, found, end = page.read_text(encoding="utf-8"), [], 0
    for match in FENCED.finditer(text):
        before = text[end : match.start()].rstrip().rpartition("\n\n")[2].rstrip()
        named = FILE.search(before)
        found.append(Block(match[1], match[2], named[1] if named else None))
        end = match.end()
    return found


def follow(page, folder):
    """Write the files of a page into ``folder`` and run its commands there; the first one that fails is an error."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    places = [programs(), BIN, os.environ["PATH"]]
    environment["PATH"] = os.pathsep.join(map(str, places))
    for block in blocks(page):
        if block.file is not None:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.kind == "bash":
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", block.text],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=WATCHDOG_S,
                check=False,
            )
            assert done.returncode == 0, f"{block.text}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return folder


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """Return a function from the name of a tutorial to the folder in which it was followed, once."""
    folders = {}

    def folder_of(name):
        if name not in folders:
            folders[name] = follow(TUTORIALS / f"{name}.md", tmp_path_factory.mktemp(name))
        return folders[name]

    return folder_of


def data_of(file):
    envelope = json.loads(file.read_text(encoding="utf-8"))
    assert envelope["ok"], envelope["error"]
    return envelope["data"]


def test_every_tutorial_is_followed_below():
    assert {page.stem for page in PAGES} == {"netlist-to-gds", "agent-over-mcp", "write-a-skill", "add-a-process"}


def test_a_person_gets_from_a_netlist_to_gds(followed):
    folder = followed("netlist-to-gds")
    modules = data_of(folder / "circuit.json")["circuit"]["modules"]
    assert {frozenset(module["devices"]) for module in modules} == {
        frozenset(names) for names in (("M1", "M2"), ("M3", "M4"), ("M5", "M6"))
    }
    for name in ("build", "wide", "planned"):
        built = data_of(folder / f"{name}.json")
        assert (built["drc"]["passed"], built["lvs"]["matched"], built["routing"]["failed"]) == (True, True, [])
    usual, low = (data_of(folder / f"{name}.json")["placement"] for name in ("build", "wide"))
    assert low["height"] < usual["height"]
    (picture,) = (folder / "ota").glob("gates*.png")  # out of date since the layout was built again, and named so
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert (folder / "ota.oas").read_bytes().startswith(b"%SEMI-OASIS")


def test_an_agent_finds_reads_and_calls_over_mcp_what_the_page_says(followed):
    pytest.importorskip("mcp", reason="skipped: needs the extra mcp")
    printed = dict(
        line.split(": ", 1) for line in (followed("agent-over-mcp") / "session.txt").read_text().splitlines()
    )
    assert printed["skill"] == "netlist-to-gds"
    assert "netlist_txt" in printed["refused"]
    assert "did you mean" in printed["refused"]
    assert "seed" in printed["refused"]
    assert printed["built"].startswith("True")
    assert printed["DRC passed"] == "True LVS matched: True"
    assert "image" in printed["picture"]


def test_a_person_writes_a_skill_whose_tool_answers(followed):
    folder = followed("write-a-skill")
    copy = folder / "copies" / "device-count"
    assert (copy / "scripts" / "count_devices.py").is_file()
    done = subprocess.run(
        [sys.executable, copy / "scripts" / "count_devices.py", "--netlist-path", folder / "ota.spice"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["data"] == {"counts": {"nmos": 4, "pmos": 2}}


def test_a_person_adds_a_process_and_draws_in_it(followed):
    folder = followed("add-a-process")
    assert layoutkit.technology(folder / "my_process.yaml").rule("M1_MIN_SPACE").value_um == 0.3
    assert "M1_MIN_SPACE" in json.dumps(data_of(folder / "drc.json")["rules_passed"])
    built = data_of(folder / "build.json")
    assert (built["technology"], built["drc"]["passed"], built["lvs"]["matched"]) == ("my_process", True, True)
    assert (folder / "klayout" / "tech" / "my_process" / "my_process.lyp").is_file()


# What each page draws, with the pairs and mirrors that its schematic has.
DRAWN = {
    "ade": {name: [{"M1", "M2"}, {"M3", "M4"}, {"M5", "M6"}] for name in ("from_ade", "from_cdl")},
    "kicad": {"ota_layout": [{"M1", "M2"}, {"M3", "M4"}, {"M5", "M6"}]},
    "spectre": {"bias_layout": [{"MR", "MO1", "MO2"}]},
    "xschem": {"ota_layout": [{"XM1", "XM2"}, {"XM3", "XM4"}, {"XM5", "XM6"}]},
}


@pytest.mark.parametrize("page", EDITORS, ids=lambda page: page.stem)
def test_what_a_schematic_editor_exports_is_laid_out_with_its_pairs(page, tmp_path):
    follow(page, tmp_path)
    for name, groups in DRAWN[page.stem].items():
        summary = json.loads((tmp_path / name / "summary.json").read_text(encoding="utf-8"))
        assert (summary["drc"]["passed"], summary["lvs"]["matched"], summary["routing"]["failed"]) == (True, True, [])
        found = [{id_.replace("MM", "M") for id_ in group["devices"]} for group in summary["recognition"]["groups"]]
        assert sorted(map(sorted, found)) == sorted(map(sorted, groups))


def test_the_workflow_for_continuous_integration_builds_checks_and_keeps_a_layout(tmp_path):
    """Its own steps run in their order in a checkout with the netlist; the steps of others are not run."""
    (block,) = blocks(ROOT / "references" / "ci.md")
    steps = yaml.safe_load(block.text)["jobs"]["layout"]["steps"]
    (tmp_path / "blocks").mkdir()
    shutil.copy(ROOT / "skills" / "netlist-to-gds" / "assets" / "ota_5t.spice", tmp_path / "blocks" / "ota.spice")
    summary = tmp_path / "summary.md"
    page = tmp_path / "steps.md"
    own = [step["run"] for step in steps if "run" in step and step["name"] != "Install"]
    page.write_text("".join(f"```bash\nexport GITHUB_STEP_SUMMARY={summary}\n{line}\n```\n" for line in own))
    follow(page, tmp_path)
    assert len(own) == 2
    said = summary.read_text(encoding="utf-8")
    assert "an engineer would sign" in said
    assert said.startswith("~~~\n")  # as it is, not as a paragraph of Markdown
    (kept,) = (step["with"]["path"] for step in steps if "upload-artifact" in step.get("uses", ""))
    assert {"layout.gds", "layout.png", "report.html"} <= {file.name for file in (tmp_path / kept).rglob("*")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_translation_has_the_blocks_of_the_original(page):
    """Hence its commands are run, too."""
    assert blocks(TRANSLATED / page.name) == blocks(page)


def test_a_command_that_fails_is_an_error(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("A file `a.txt`:\n\n```text\nhello\n```\n\nThen:\n\n```bash\ngrep -q hello a.txt\n```\n")
    follow(page, tmp_path)
    page.write_text("```bash\nskillpack read nosuch | cat\n```\n")
    with pytest.raises(AssertionError, match="nosuch"):
        follow(page, tmp_path)
