"""What the documents say is true: commands run, flags exist, links lead somewhere, sizes stay small (S3.7)."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from patience import WATCHDOG_S

ROOT = Path(__file__).parents[2]
SKILLS = sorted(path.parent for path in (ROOT / "skills").glob("*/SKILL.md"))
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "references").rglob("*.md"), *(ROOT / "skills").rglob("*.md")],
)
BLOCK = re.compile(r"^```(?:bash|sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
SCRIPT = re.compile(r"skills/[\w-]+/scripts/\w+\.py")


def commands(document):
    """Return the shell commands of a document's bash blocks, continued lines joined."""
    text = document.read_text(encoding="utf-8")
    lines = [line for block in BLOCK.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def script_commands(document):
    return [line for line in commands(document) if SCRIPT.search(line)]


def help_of(script):
    return subprocess.run(
        [sys.executable, script, "--help"], capture_output=True, text=True, cwd=ROOT, check=True
    ).stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_links_lead_to_files(document):
    targets = [t for t in LINK.findall(document.read_text(encoding="utf-8")) if "://" not in t and "mailto:" not in t]
    missing = [t for t in targets if not (document.parent / t).exists()]
    assert not missing


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.name)
def test_a_skill_body_stays_under_two_hundred_lines(skill):
    assert len((skill / "SKILL.md").read_text(encoding="utf-8").splitlines()) <= 200


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.name)
def test_every_flag_a_skill_names_is_in_that_scripts_help(skill):
    for line in script_commands(skill / "SKILL.md"):
        script = SCRIPT.search(line).group()
        flags = set(re.findall(r"(?<=\s)--[a-z][\w-]*", line[line.index(script) :].split("|")[0]))
        text = help_of(script)
        assert not [flag for flag in flags if flag not in text], line


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.name)
def test_the_commands_of_a_skill_run_as_printed(skill, tmp_path):
    """Each script command of the body runs in order in one fresh folder that looks like the repository root."""
    for name in ("skills", "scripts", "loader", "references"):
        (tmp_path / name).symlink_to(ROOT / name)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("ANALOG_LAYOUT_WORKSPACE", None)
    lines = script_commands(skill / "SKILL.md")
    assert lines, f"{skill.name}/SKILL.md shows no command of its script"
    for line in lines:
        done = subprocess.run(
            ["bash", "-c", line],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=WATCHDOG_S,
            check=False,
        )
        assert done.returncode in (0, 1), f"{line}\n{done.stdout}\n{done.stderr}"
        if done.stdout.startswith("{"):
            assert json.loads(done.stdout)["ok"] or "violat" in done.stdout, f"{line}\n{done.stdout}"


def test_every_requirement_that_a_file_names_is_in_the_list_of_requirements():
    """A number such as S0.15 in code, tests, workflows and documents leads to ``references/requirements.md``."""
    number = re.compile(r"\bS\d\.\d+\b")
    page = (ROOT / "references" / "requirements.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (S\d\.\d+) \|", page, re.MULTILINE)
    assert len(listed) == len(set(listed)) > 40
    folders = [ROOT / name for name in ("loader", "scripts", "skills", "references", "tests", ".github", ".ci")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    named = {
        (path.relative_to(ROOT).as_posix(), found)
        for path in [*files, *ROOT.glob("*.*"), ROOT / "Makefile"]
        if path.is_file()
        for found in number.findall(path.read_text(encoding="utf-8", errors="ignore"))
    }
    assert len(named) > 50
    assert sorted(entry for entry in named if entry[1] not in listed) == []


def test_the_readme_opens_with_the_two_commands():
    assert commands(ROOT / "README.md")[:2] == ["make demo", "make test"]


def test_the_agents_page_is_short():
    assert len((ROOT / "CLAUDE.md").read_text(encoding="utf-8").splitlines()) <= 80


def test_make_check_covers_what_the_contributing_page_says():
    """Types of the packages and of every script, the suite once and with coverage, and the table of coverage."""
    done = subprocess.run(["make", "-n", "check"], capture_output=True, text=True, cwd=ROOT, check=True)
    lines = done.stdout.splitlines()
    assert any(line.endswith("/mypy") for line in lines)
    (scripts,) = (line for line in lines if "/mypy " in line)
    assert "for scripts in skills/*/scripts" in scripts
    assert "$scripts/*.py" in scripts
    (suite,) = (line for line in lines if "-m pytest" in line and "tests/" not in line)
    assert "--cov" in suite
    assert sum("tests/coverage_table.py" in line for line in lines) == 1


@pytest.mark.parametrize("target", ["demo", "test", "test-quick", "check", "coverage", "fix", "bench", "help"])
def test_make_has_the_target(target):
    assert re.search(rf"^{target}:.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
