"""Every skill exported alone runs its first example: by Python with the libraries of its header only, and by uv.

No package of this project is installed there, the checkout cannot be opened, the home is empty, and the folder has a
space in its name.
"""

import json
import os
import py_compile
import re
import shlex
import shutil
import subprocess
from importlib import metadata
from importlib.util import cache_from_source

import pytest

from installed_wheel import DISTRIBUTION, ROOT, empty_environment, link_dependencies

SKILLS = sorted(path.parent.name for path in (ROOT / "skills").glob("*/SKILL.md"))
HEADER = re.compile(r"^# /// script\n(?:#.*\n)*?# ///$", re.MULTILINE)
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:(mkdir -p \S+) && )?uv run (scripts/\w+\.py .*)")
# Runs each program in a child of one process, which has loaded the libraries once.
SEVERAL = """
import json, os, runpy, sys
import klayout.db, klayout.lay, klayout.rdb, jsonschema, numpy, yaml
for folder, arguments, answer in json.loads(sys.argv[1]):
    if not (child := os.fork()):
        out = os.open(answer, os.O_WRONLY | os.O_CREAT)
        os.dup2(out, 1)
        os.chdir(folder)
        sys.argv = arguments
        sys.path[0] = os.path.join(folder, os.path.dirname(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
        os._exit(0)
    os.waitpid(child, 0)
"""


def first_example(folder):
    """Return the program and the arguments of the first command in a body that runs a script; prepare its files."""
    text = (folder / "SKILL.md").read_text(encoding="utf-8")
    shutil.rmtree(folder / "build", ignore_errors=True)  # what another test made: a search takes no folder of another
    for line in "".join(BLOCK.findall(text.replace("\\\n", " "))).splitlines():
        if found := COMMAND.fullmatch(line):
            prepared, command = found.groups()
            subprocess.run(["sh", "-c", prepared or "true"], cwd=folder, check=True)
            return shlex.split(command)
        if line.startswith("mkdir "):
            subprocess.run(["sh", "-c", line], cwd=folder, check=True)
    raise AssertionError(f"{folder} runs no script")


def smaller(example, exported):
    """Return the first example of a skill; a search, which lays out a circuit twice, gets a smaller circuit."""
    if example[0] != "scripts/explore_layouts.py":
        return example
    pair, at = exported["netlist-to-gds"][1] / "assets/pair.spice", example.index("--netlist-path") + 1
    return [*example[:at], str(pair), *example[at + 1 :]]


def envelope(text):
    """Return the one envelope in ``text``, of a call that was carried out."""
    answer = json.loads(text)
    assert sorted(answer) == ["data", "duration_ms", "error", "ok"]
    assert answer["ok"] or answer["error"]["code"] == "DRC_VIOLATION", answer["error"]
    return answer


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """Return an environment that has what this project requires, but not this project, and refuses its files."""
    made = empty_environment(tmp_path_factory.mktemp("libraries"))
    link_dependencies(metadata.distribution(DISTRIBUTION), made.site)
    return made


@pytest.fixture(scope="session")
def exported(exported):
    """Return the copies with compiled modules; a module of several copies is compiled once."""
    known = {}
    for _, home in exported.values():
        for source in home.rglob("*.py"):
            text, kept = source.read_bytes(), cache_from_source(source)
            if text in known:
                os.makedirs(os.path.dirname(kept), exist_ok=True)  # noqa: PTH103, PTH120 - a path as a text
                shutil.copy(known[text], kept)
            else:
                mode = py_compile.PycInvalidationMode.CHECKED_HASH  # does not depend on the time of the source
                known[text] = py_compile.compile(source, kept, doraise=True, invalidation_mode=mode)
    return exported


@pytest.fixture(scope="session")
def answers(exported, libraries, once):
    """Return what each skill's first example printed, run by Python: a search lays out all, to choose needs SciPy."""

    def run_all(folder):
        homes = {name: exported[name][1] for name in SKILLS}
        examples = {name: smaller(first_example(home), exported) for name, home in homes.items()}
        calls = [[str(homes[name]), examples[name], str(folder / name)] for name in SKILLS]
        done = libraries.run("python", "-c", SEVERAL, json.dumps(calls), cwd=folder)
        assert done.returncode == 0, done.stderr
        return {name: (folder / name).read_text(encoding="utf-8") for name in SKILLS}

    return once(run_all, "answers of exported skills")[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="skipped: needs fork")
@pytest.mark.parametrize("name", SKILLS)
def test_the_first_example_of_each_skill_runs_without_the_project(name, answers):
    envelope(answers[name])


def test_a_transistor_is_drawn_by_a_plain_python_elsewhere(exported, libraries, tmp_path):
    home = exported["mos-pcell"][1]
    program, *arguments = first_example(home)
    program = home / program
    done = libraries.run("python", program, *arguments, cwd=tmp_path)
    assert envelope(done.stdout)["data"]["drc"]["passed"], done.stderr
    assert (tmp_path / "build" / "mos" / "layout.gds").is_file()
    blocked = libraries.run("python", "-c", f"open({str(ROOT / 'pyproject.toml')!r})", cwd=tmp_path)
    assert "out of reach" in blocked.stderr
    absent = libraries.run("python", "-c", "import skillscript", cwd=tmp_path)
    assert "No module named 'skillscript'" in absent.stderr


def one_of_each(files, exported):
    """Return skill and script of one of ``files`` for each different header and lock, which are what uv reads."""
    found = {}
    for name in SKILLS:
        for script in files(exported[name][1]):
            lock = script.with_name(f"{script.name}.lock")
            header = HEADER.search(script.read_text(encoding="utf-8"))[0]
            found.setdefault((header, lock.read_bytes()), (name, script))
    return [*found.values()]


def test_uv_runs_the_first_example_of_a_skill_of_each_header(uv, exported):
    """A search tries one layout of two, so that SciPy, which the header names, chooses it."""
    chosen = one_of_each(lambda home: [home / first_example(home)[0]], exported)
    assert len(chosen) > 2
    for name, script in chosen:
        fewer = ["--layouts", "1"] if script.name == "explore_layouts.py" else []
        example = smaller(first_example(exported[name][1]), exported)
        done = uv("run", "--script", *example, *fewer, cwd=exported[name][1])
        envelope(done.stdout)
        assert "Updated" not in done.stderr, name


def test_uv_finds_the_lock_of_each_header_up_to_date(uv, exported):
    chosen = one_of_each(lambda home: sorted((home / "scripts").glob("*.py")), exported)
    assert len(chosen) > 2
    for _, script in chosen:
        done = uv("lock", "--check", "--script", script, cwd="/")
        assert done.returncode == 0, done.stderr
