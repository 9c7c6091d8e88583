"""A skill's folder as it is in git, copied by hand or by npm's programs: its quick start runs, alone and at once.

uv installs the package from a wheel; a Python without the package names the command that helps, and that works.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from patience import WATCHDOG_S
from skillpack.__main__ import command

ROOT = Path(__file__).parents[2]
SKILL = ROOT / "skills/mos-pcell"
MADE_BY_NPM = {".openskills.json"}


@pytest.fixture
def project(tmp_path):
    """Return an empty project, whose name has a space, of a user with an empty home."""
    (tmp_path / "empty home").mkdir()
    (tmp_path / "my project").mkdir()
    return tmp_path / "my project"


def npm(program, project, *arguments):
    """Run a program of npm in ``project``, without network and questions."""
    path, environment = program
    environment = {**environment, "HOME": str(project.parent / "empty home"), "DISABLE_TELEMETRY": "1", "CI": "1"}
    done = subprocess.run(
        [path, *map(str, arguments)],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=WATCHDOG_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def by_hand(project, _=None):
    copy = project.parent / "empty home/.claude/skills/mos-pcell"
    return Path(shutil.copytree(SKILL, copy, ignore=shutil.ignore_patterns("__pycache__")))


def by_openskills(project, npm_program):
    program = npm_program("openskills")
    npm(program, project, "install", SKILL, "-y")
    assert "mos-pcell" in npm(program, project, "list")
    return project / ".claude/skills/mos-pcell"


def by_skills(project, npm_program):
    program = npm_program("skills")
    npm(program, project, "add", SKILL, "-y", "-a", "claude-code", "codex")
    (listed,) = json.loads(npm(program, project, "list", "--json"))
    assert listed["name"] == "mos-pcell"
    return project / ".claude/skills/mos-pcell"  # for Codex in .agents/skills, and here a link to it


def quick_start(copy):
    """Return the first command of the body's quick start, as a shell splits it."""
    body = (copy / "SKILL.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"^## Quick start\n+```bash\n(.*?)^```", body, re.MULTILINE | re.DOTALL)
    return shlex.split(commands.splitlines()[0])


def files_of(folder):
    """Return the contents of all files of a skill by their paths."""
    paths = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths if path.name not in MADE_BY_NPM}


def check_drawn(done, copy):
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["data"]["cell_name"] == "nmos_M1"
    assert (copy / "build/mos/layout.gds").stat().st_size > 0


@pytest.mark.parametrize("way", [by_openskills, by_skills], ids=lambda way: way.__name__)
def test_uv_runs_the_quick_start_of_a_folder_that_npm_copied(way, project, npm_program, uv, built_wheel):
    copy = way(project, npm_program)
    assert files_of(copy) == files_of(SKILL)
    program, run, *call = quick_start(copy)
    assert (program, run, call[0]) == ("uv", "run", "scripts/create_nmos_pcell.py")
    check_drawn(uv("run", *call, cwd=copy, UV_FIND_LINKS=str(built_wheel)), copy)


def test_a_python_without_the_package_names_the_command_and_uv_runs_it(project, uv, built_wheel):
    copy = by_hand(project)
    script, *options = quick_start(copy)[2:]
    done = subprocess.run(
        [sys.executable, "-I", "-S", copy / script, *options], cwd=copy, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    program, run, *named = shlex.split(re.search("`(uv run [^`]*)`", done.stderr)[1])
    assert (program, run, named) == ("uv", "run", [str(copy / script)])
    check_drawn(uv("run", *named, *options, cwd=copy, UV_FIND_LINKS=str(built_wheel)), copy)


def test_skills_that_skillpack_installed_are_seen_by_other_programs(project, npm_program, monkeypatch):
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(project.parent / "empty home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    for host in (["claude", "--user"], ["agents", "--project"]):
        installed = CliRunner().invoke(command, ["install", "mos-pcell", "layout-view", "--host", *host])
        assert installed.exit_code == 0, installed.output
    listed = npm(npm_program("openskills"), project, "list")
    assert re.findall(r"^ +([\w-]+) +\((\w+)\)", listed, re.MULTILINE) == [
        ("layout-view", "global"),
        ("mos-pcell", "global"),
    ]
    seen = json.loads(npm(npm_program("skills"), project, "list", "--json"))
    assert [(one["name"], one["path"]) for one in sorted(seen, key=lambda one: one["name"])] == [
        (name, str(project / ".agents/skills" / name)) for name in ("layout-view", "mos-pcell")
    ]
