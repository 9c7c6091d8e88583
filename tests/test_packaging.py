"""The wheel, not the checkout, is what people install: it holds the packages, the technologies and the skills."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from patience import WATCHDOG_S

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return a freshly built wheel."""
    builders = pytest.importorskip("hatchling.builders.wheel", reason="skipped: needs hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    (path,) = builders.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def unpacked(wheel):
    """Return the folder the wheel was unpacked into; Python may write compiled modules there."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(wheel.parent / "site")
    return wheel.parent / "site"


def run(unpacked, folder, *arguments):
    """Run Python with nothing of the checkout on its path but the wheel's content and the dependencies."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SKILLPACK", "ANALOG"))}
    environment["PYTHONPATH"] = str(unpacked)
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=WATCHDOG_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_skills_travel_in_the_wheel(unpacked, tmp_path):
    listed = json.loads(run(unpacked, tmp_path, "-m", "skillpack", "list", "--json"))
    names = {skill["name"] for skill in listed}
    assert names == {path.parent.name for path in ROOT.glob("skills/*/SKILL.md")}
    assert str(unpacked) in json.dumps(listed)


def test_a_skill_copied_elsewhere_finds_its_definitions_in_the_wheel(unpacked, tmp_path):
    copy = tmp_path / ".claude/skills/mos-pcell"
    shutil.copytree(ROOT / "skills/mos-pcell", copy)
    script = str(copy / "scripts/create_nmos_pcell.py")
    served = json.loads(run(unpacked, tmp_path, script, "--schema"))
    assert served["input"]["properties"]["workspace"]["x-env"] == "ANALOG_LAYOUT_WORKSPACE"


def test_a_tool_of_the_wheel_draws(unpacked, tmp_path):
    params = json.dumps({"device_id": "M1", "w": 2e-6, "l": 0.5e-6, "technology": "sky130A", "workspace": "ws"})
    answer = run(unpacked, tmp_path, "-m", "skillpack", "run", "layout.create_nmos_pcell", "--params", params)
    assert json.loads(answer)["ok"]
    assert (tmp_path / "ws/layout.gds").stat().st_size > 0


def test_the_wheel_holds_no_leftovers(wheel):
    with zipfile.ZipFile(wheel) as archive:
        paths = [Path(name) for name in archive.namelist()]
    assert [path for path in paths if path.suffix in {".pyc", ".gds"} and "assets" not in path.parts] == []
