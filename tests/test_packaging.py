"""The wheel, not the checkout, is what people install: it holds the packages, the technologies and the skills."""

import json
import shutil
import zipfile
from pathlib import Path

from installed_wheel import ROOT


def printed(environment, *command, cwd):
    """Return what a program of the environment prints; fail if it fails."""
    done = environment.run(*command, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_skills_travel_in_the_wheel(wheel_environment, tmp_path):
    listed = json.loads(printed(wheel_environment, "skillpack", "list", "--json", cwd=tmp_path))
    names = {skill["name"] for skill in listed}
    assert names == {path.parent.name for path in ROOT.glob("skills/*/SKILL.md")}
    assert str(wheel_environment.site) in json.dumps(listed)


def test_a_skill_copied_elsewhere_finds_its_definitions_in_the_wheel(wheel_environment, tmp_path):
    copy = tmp_path / ".claude/skills/mos-pcell"
    shutil.copytree(ROOT / "skills/mos-pcell", copy)
    script = copy / "scripts/create_nmos_pcell.py"
    served = json.loads(printed(wheel_environment, "python", script, "--schema", cwd=tmp_path))
    assert served["input"]["properties"]["workspace"]["x-env"] == "ANALOG_LAYOUT_WORKSPACE"


def test_a_tool_of_the_wheel_draws(wheel_environment, tmp_path):
    params = json.dumps({"device_id": "M1", "w": 2e-6, "l": 0.5e-6, "technology": "sky130A", "workspace": "ws"})
    run = ("skillpack", "run", "layout.create_nmos_pcell", "--params", params)
    assert json.loads(printed(wheel_environment, *run, cwd=tmp_path))["ok"]
    assert (tmp_path / "ws/layout.gds").stat().st_size > 0


def test_the_wheel_holds_no_leftovers(built_wheel):
    with zipfile.ZipFile(next(built_wheel.glob("*.whl"))) as archive:
        paths = [Path(name) for name in archive.namelist()]
    assert [path for path in paths if path.suffix in {".pyc", ".gds"} and "assets" not in path.parts] == []
