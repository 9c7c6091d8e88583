"""What the documents say is true: commands run, flags exist, links lead somewhere, sizes stay small (S3.7)."""

import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from forked import programs, run_program
from patience import WATCHDOG_S
from skillpack import find_tools, load_skill, validate
from skillpack.copies.skill_copy import own_files
from skillpack.hosts.mcp.skill_files import served_files
from skillpack.hosts.served_schemas import served_names
from skillscript.envelope import EXIT_BAD_INPUT, EXIT_CODES

ROOT = Path(__file__).parents[2]
SKILLS = sorted(path.parent for path in (ROOT / "skills").glob("*/SKILL.md"))
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "references").rglob("*.md"), *(ROOT / "skills").rglob("*.md")],
)
BLOCK = re.compile(r"^```(?:bash|sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?:\]\(|^\[[^\]]+\]: )([^)#\s]+)", re.MULTILINE)  # in the text, and as a definition below it
ADDRESS = re.search(r'^Source = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)[1]
# The addresses at which the files of the branch main are shown, as pages and as they are.
RAW_ADDRESS = ADDRESS.replace("github.com", "raw.githubusercontent.com")
IN_REPOSITORY = re.compile(f"(?:{re.escape(ADDRESS)}/(?:blob|tree)|{re.escape(RAW_ADDRESS)})/main/")
SCRIPT = re.compile(r"uv run (scripts/\w+\.py)")
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
OTHERS = re.compile(
    r"uv |pip |skillpack |klayout |configure |KLAYOUT_HOME="
)  # programs whose options --help of a script does not list
ELSEWHERE = {  # options of other skills and of servers, which the body attributes to them
    "constraint-planning": {"--constraints"},
    "drc-check": {"--allow-decks"},
    "lvs-check": {"--labels"},
    "module-placement": {"--layout-path"},
    "netlist-to-gds": {"--labels", "--waived-layers"},
}


def commands(document):
    """Return the shell commands of a document's bash blocks, continued lines joined."""
    text = document.read_text(encoding="utf-8")
    lines = [line for block in BLOCK.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def tools_of(skill):
    return find_tools([load_skill(skill / "SKILL.md")]).by_id.values()


@functools.cache
def help_of(script):
    """Return the help of a script in one line, as it may break a line within an option."""
    done = run_program(script.relative_to(ROOT / "skills"), "--help", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return re.sub(r"-\s+", "-", done.stdout)


@pytest.fixture
def copied(tmp_path):
    """Copy a skill, alone, to a folder with a blank in its name; return a function that runs a command in the copy.

    ``uv`` is a stand-in that runs the script with this Python, which has the package. What uv installs is tested where
    skills are copied and exported.
    """
    own = ("ANALOG_LAYOUT_", "SKILLPACK_", "SKILL_MODEL_", "CHIPFORGE_", "KG_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    environment["PATH"] = os.pathsep.join([str(programs()), os.environ["PATH"]])

    def copy(skill):
        home = shutil.copytree(skill, tmp_path / "a copy" / skill.name)
        return lambda command: subprocess.run(
            ["bash", "-c", command],
            capture_output=True,
            text=True,
            cwd=home,
            env=environment,
            timeout=WATCHDOG_S,
            check=False,
        )

    return copy


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_links_lead_to_files(document):
    """Also links to pages of the repository."""
    targets = [t for t in LINK.findall(document.read_text(encoding="utf-8")) if "mailto:" not in t]
    relative = [t for t in targets if "://" not in t]
    absolute = [IN_REPOSITORY.sub("", t) for t in targets if IN_REPOSITORY.match(t)]
    assert [t for t in relative if not (document.parent / t).exists()] == []
    assert [t for t in absolute if not (ROOT / t).exists()] == []


def test_the_readme_is_short_and_its_links_are_absolute_on_a_package_index(built_wheel):
    """In a clone they are relative."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    here = LINK.findall(text)
    assert [t for t in here if "://" in t] == [f"{ADDRESS}/releases"]
    with zipfile.ZipFile(next(built_wheel.glob("*.whl"))) as wheel:
        (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        shown = LINK.findall(wheel.read(metadata).decode())
    assert [IN_REPOSITORY.sub("", t) for t in shown] == here
    assert [t for t in shown if t.startswith(RAW_ADDRESS)] == [
        f"{RAW_ADDRESS}/main/references/images/ota_5t_sky130A.png"
    ]


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.name)
def test_a_skill_body_has_six_kilobytes_and_says_when_to_read_each_of_its_pages(skill):
    text = (skill / "SKILL.md").read_text(encoding="utf-8")
    body = text.split("\n---\n", 1)[1]
    assert len(body.encode()) <= 6000
    pages = {page.relative_to(skill).as_posix() for page in skill.glob("references/*.md")}
    assert {page for page in pages if page not in body} == set()


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.name)
def test_every_flag_a_skill_names_is_in_that_scripts_help(skill):
    for line in commands(skill / "SKILL.md"):
        for script in SCRIPT.finditer(line):
            text = help_of(skill / script[1])
            assert not [flag for flag in FLAG.findall(line[script.end() :].split("|")[0]) if flag not in text], line


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.name)
def test_every_flag_in_the_text_of_a_body_is_in_the_help_of_one_of_its_scripts(skill):
    help_texts = "".join(help_of(script) for script in skill.glob("scripts/*.py") if script.name != "graph_worker.py")
    allowed = {*FLAG.findall(help_texts), *ELSEWHERE.get(skill.name, ())}
    spans = SPAN.findall(BLOCK.sub("", (skill / "SKILL.md").read_text(encoding="utf-8")))
    named = {flag for span in spans if not OTHERS.match(SCRIPT.sub("", span)) for flag in FLAG.findall(span)}
    assert named <= allowed


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.name)
def test_the_commands_of_a_skill_run_as_printed_in_a_copy_of_its_folder(skill, copied):
    """Each command of the body and of the pages runs, in order. What they write there is no part of the skill."""
    run = copied(skill)
    home = Path(run("pwd").stdout.strip())
    shipped = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    lines = [line for page in (skill / "SKILL.md", *skill.glob("references/*.md")) for line in commands(page)]
    assert any(SCRIPT.search(line) for line in lines), f"{skill.name}/SKILL.md shows no command of its script"
    for line in lines:
        done = run(line)
        assert done.returncode in (0, 1), f"{line}\n{done.stdout}\n{done.stderr}"
        if done.stdout.startswith("{"):
            assert json.loads(done.stdout)["ok"] or "violat" in done.stdout, f"{line}\n{done.stdout}"
    assert {file.path for file in served_files(load_skill(home / "SKILL.md"))} <= shipped
    assert set(own_files(home)[0]) <= shipped
    assert validate(home, ["all"]).findings == ()


@pytest.mark.parametrize("folder", [ROOT, ROOT / "skills" / "layout-metrics"], ids=["root", "skill"])
def test_the_example_in_a_scripts_help_runs_in_the_folder_where_it_is_printed(folder):
    script = (ROOT / "skills/layout-metrics/scripts/compute_metrics.py").relative_to(folder)
    text = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True, cwd=folder, check=True)
    (example,) = re.findall(r"^  python (.*)", text.stdout, re.MULTILINE)
    subprocess.run([sys.executable, *shlex.split(example)], capture_output=True, cwd=folder, check=True)


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.name)
def test_beside_each_script_stands_the_name_of_its_tool_over_mcp(skill):
    body = (skill / "SKILL.md").read_text(encoding="utf-8").splitlines()
    for tool in tools_of(skill):
        (name,) = served_names([tool.id], "underscored")
        script = Path(tool.script).name
        assert any(f"`{name}`" in line and re.search(rf"\b{script}\b", line) for line in body), (script, name)


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.name)
def test_a_body_first_says_the_way_that_works_everywhere(skill):
    """In a wheel, a clone and a plugin, in whatever folder."""
    body = (skill / "SKILL.md").read_text(encoding="utf-8")
    (tool,) = re.findall(
        r"^Anywhere: `skillpack run ([\w.]+) --params '\{\.\.\.\}'`; paths start where you are\.$", body, re.MULTILINE
    )
    assert tool in {each.id for each in tools_of(skill)}
    assert body.index("Anywhere: ") < body.index("Run commands in ")


def test_every_body_says_how_to_run_its_commands_in_the_same_words():
    """In at most three lines, for a checkout, a copy, an exported copy, a plugin and MCP."""
    bodies = [(skill / "SKILL.md").read_text(encoding="utf-8") for skill in SKILLS]
    found = [re.findall(r"(?ms)^Run commands in .*?(?=\n\n)", body) for body in bodies]
    assert {len(paragraphs) for paragraphs in found} == {1}
    (text,) = {paragraph for (paragraph,) in found}
    lines = text.splitlines()
    assert len(lines) <= 3
    assert max(map(len, lines)) <= 155
    for words in (
        "this skill's folder",
        "full paths",
        "relative paths",
        "`uv run` installs",
        "`UV_FIND_LINKS`",
        "clone or plugin",
        "`uv run --project SKILL_FOLDER python`",
        "`python` of an environment with analog-layout-skills",
        "Over MCP call the tool named beside the command with the same parameters",
        "links to its files",
    ):
        assert words in " ".join(lines)


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.name)
def test_a_body_names_no_file_of_another_skill(skill):
    text = "".join(page.read_text(encoding="utf-8") for page in (skill / "SKILL.md", *skill.glob("references/*.md")))
    others = "|".join(other.name for other in SKILLS)
    assert re.findall(rf"\b(?:{others})/(?:scripts|assets|references|SKILL)\S*", text) == []


def test_every_requirement_that_a_file_names_is_in_the_list_of_requirements():
    """A number such as S0.15 in code, tests, workflows and documents leads to ``references/requirements.md``."""
    number = re.compile(r"\bS\d\.\d+\b")
    page = (ROOT / "references" / "requirements.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (S\d\.\d+) \|", page, re.MULTILINE)
    assert len(listed) == len(set(listed)) > 40
    folders = [ROOT / name for name in ("loader", "scripts", "skills", "references", "tests", ".github", ".ci")]
    files = [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in {".pyc", ".png"}
    ]
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
    """Types of the packages and of every script, and the suite once; ``make coverage`` measures it, too."""
    done = subprocess.run(["make", "-n", "check"], capture_output=True, text=True, cwd=ROOT, check=True)
    lines = done.stdout.splitlines()
    assert any(line.endswith("/mypy") for line in lines)
    scripts = [word for line in lines if "/mypy " in line for word in line.split() if word.endswith(".py")]
    assert sorted(scripts) == sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("skills/*/scripts/*.py"))
    (suite,) = (line for line in lines if "-m pytest" in line and "tests/" not in line)
    assert "THOROUGH_TURN=" in suite
    assert "--cov" not in suite
    measured = subprocess.run(["make", "-n", "coverage"], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert "DRC_LAYOUTS=" in measured
    assert measured.index("--cov") < measured.index("tests/coverage_table.py")


@pytest.mark.parametrize("target", ["demo", "test", "test-quick", "check", "coverage", "docs", "fix", "bench", "help"])
def test_make_has_the_target(target):
    assert re.search(rf"^{target}:.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_exit_codes_in_tables_of_errors_are_those_of_their_codes():
    stated = [
        (folder.name, code, int(exit_code))
        for folder in SKILLS
        for codes, exit_code in re.findall(
            r"^\| (`[A-Z_`, ]+`), (\d)", (folder / "SKILL.md").read_text("utf-8"), re.MULTILINE
        )
        for code in re.findall(r"[A-Z_]+", codes)
    ]
    assert len(stated) > 30
    assert [each for each in stated if EXIT_CODES.get(each[1], EXIT_BAD_INPUT) != each[2]] == []
