"""Every skill exported alone runs its first example: by Python with the libraries of its header only, and by uv.

No package of this project is installed there, the checkout cannot be opened, the home is empty, and the folder has a
space in its name.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import pytest

from installed_wheel import DISTRIBUTION, GUARD, ROOT, WheelEnvironment, link_dependencies
from patience import WATCHDOG_S

SKILLS = sorted(path.parent.name for path in (ROOT / "skills").glob("*/SKILL.md"))
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:mkdir -p (\S+) && )?uv run (scripts/\w+\.py .*)")
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
    """Return the program and the arguments of the first command in a body that runs a script."""
    text = (folder / "SKILL.md").read_text(encoding="utf-8")
    lines = "".join(BLOCK.findall(text.replace("\\\n", " "))).splitlines()
    made, command = next(filter(None, map(COMMAND.fullmatch, lines))).groups()
    if made:
        (folder / made).mkdir(exist_ok=True)
    return shlex.split(command)


def envelope(text):
    """Return the one envelope in ``text``, of a call that was carried out."""
    answer = json.loads(text)
    assert sorted(answer) == ["data", "duration_ms", "error", "ok"]
    assert answer["ok"] or answer["error"]["code"] == "DRC_VIOLATION", answer["error"]
    return answer


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """Return an environment that has what this project requires, but not this project, and refuses its files."""
    place = tmp_path_factory.mktemp("libraries")
    (place / "empty home").mkdir()
    made = WheelEnvironment(place / "an environment", place / "empty home")
    venv.create(made.folder, with_pip=False, symlinks=os.name != "nt")
    link_dependencies(metadata.distribution(DISTRIBUTION), made.site)
    allowed = tuple(f"{Path(path).resolve()}{os.sep}" for path in (sys.prefix, place))
    guard = GUARD.replace("CHECKOUT_VALUE", repr(f"{ROOT}{os.sep}")).replace("ALLOWED_VALUE", repr(allowed))
    (made.site / "_checkout_guard.py").write_text(guard, encoding="utf-8")
    (made.site / "_checkout_guard.pth").write_text("import _checkout_guard\n", encoding="utf-8")
    return made


@pytest.fixture(scope="session")
def answers(exported, libraries, tmp_path_factory):
    """Return what each skill's first example printed, run by Python."""
    place = tmp_path_factory.mktemp("answers")
    calls = [[str(exported[name][1]), first_example(exported[name][1]), str(place / name)] for name in SKILLS]
    done = libraries.run("python", "-c", SEVERAL, json.dumps(calls), cwd=place)
    assert done.returncode == 0, done.stderr
    return {name: (place / name).read_text(encoding="utf-8") for name in SKILLS}


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


@pytest.fixture(scope="session")
def uv(tmp_path_factory):
    """Return a function that runs uv with an empty home and this user's cache of packages."""
    program = shutil.which("uv")
    if program is None:
        pytest.skip("skipped: needs uv")
    cache = subprocess.run([program, "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    home = tmp_path_factory.mktemp("empty home")
    kept = {
        name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "HTTPS_PROXY", "SSL_CERT_FILE"}
    }

    def run(*arguments, cwd):
        return subprocess.run(
            [program, *map(str, arguments)],
            cwd=cwd,
            env={**kept, "HOME": str(home), "UV_CACHE_DIR": cache, "UV_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            check=False,
            timeout=WATCHDOG_S,
        )

    return run


@pytest.fixture(scope="session")
def filled_uv(uv, exported):
    """Return ``uv`` once it has the libraries; skip where no index can be reached."""
    done = uv("run", "--script", exported["netlist-to-gds"][1] / "scripts" / "build_layout.py", "--help", cwd="/")
    if done.returncode != 0 and re.search(r"dns error|[Cc]onnection|timed out|offline", done.stderr):
        pytest.skip("skipped: needs pypi.org, or a cache of uv that has the libraries")
    assert done.returncode == 0, done.stderr
    return uv


@pytest.mark.parametrize("name", [name for name in SKILLS if name != "netlist-to-gds"])
def test_uv_runs_the_first_example_of_each_skill(name, filled_uv, exported):
    """Of netlist-to-gds uv ran the help, and Python the example."""
    done = filled_uv("run", "--script", *first_example(exported[name][1]), cwd=exported[name][1])
    envelope(done.stdout)
    assert "Updated" not in done.stderr


@pytest.mark.parametrize("name", SKILLS)
def test_uv_finds_every_lock_up_to_date(name, filled_uv, exported):
    for lock in sorted((exported[name][1] / "scripts").glob("*.py.lock"))[:2]:
        done = filled_uv("lock", "--check", "--script", lock.with_suffix(""), cwd="/")
        assert done.returncode == 0, done.stderr
    assert all(
        script.with_name(f"{script.name}.lock").exists() for script in (exported[name][1] / "scripts").glob("*.py")
    )
