"""The lines with which every script starts: its requirements (PEP 723), and an envelope where they are not met."""

import ast
import json
import os
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest

from skillpack.skills.scaffold import _script

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "skills").glob("*/scripts/*.py"))
HEADER = '# /// script\n# requires-python = ">=3.10"\n# dependencies = ["{}"]\n# ///\n"""'
EXTRAS = {"explore_layouts.py": "[explore]", "suggest_constraints.py": "[models]"}
OLD = ("3.6", "3.7", "3.8", "3.9")


def start_lines(source):
    """Return the lines of a script that handle a failed import of ``skillscript``."""
    lines = source.splitlines()
    (block,) = (node for node in ast.parse(source).body if isinstance(node, ast.Try))
    return lines[block.handlers[0].lineno - 1 : block.end_lineno]


def answer(python, *arguments, **options):
    """Return the error that a Python answers for a script, having checked the envelope around it."""
    done = subprocess.run([python, *map(str, arguments)], capture_output=True, text=True, check=False, **options)
    assert (done.returncode, done.stderr) == (3, "")
    envelope = json.loads(done.stdout)
    assert (envelope["ok"], envelope["data"], envelope["duration_ms"]) == (False, None, 0)
    error = envelope["error"]
    assert (error["code"], error["details"]["missing"]) == ("SERVICE_UNAVAILABLE", "skillscript")
    assert error["message"].endswith(f"run: {error['details']['command']}")
    return error


def test_every_script_and_that_of_a_new_skill_start_alike():
    sources = {path.name: path.read_text(encoding="utf-8") for path in SCRIPTS}
    expected = start_lines(_script("layout.x"))
    for name, source in [*sources.items(), ("new", _script("layout.x"))]:
        assert start_lines(source) == expected, name
        assert source.startswith(HEADER.format("analog-layout-skills" + EXTRAS.get(name, ""))), name
    offered = metadata("analog-layout-skills").get_all("Provides-Extra")
    assert {extra.strip("[]") for extra in EXTRAS.values()} <= set(offered)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parts[-3]}/{path.stem}")
def test_an_old_python_reads_a_script_as_far_as_its_answer(script):
    """Python 3.6 knows the grammar; before the answer there is nothing that it cannot import."""
    tree = ast.parse(script.read_text(encoding="utf-8"), feature_version=(3, 6))
    before = tree.body[: next(n for n, node in enumerate(tree.body) if isinstance(node, ast.Try))]
    imported = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    assert imported == []
    known = {"import sys", "from typing import Any", "from typing import TYPE_CHECKING, Any"}
    assert {ast.unparse(node) for node in before if not isinstance(node, ast.Expr)} <= known


@pytest.fixture
def copied(tmp_path):
    """Return a script of a copied skill in a folder with a space in its name."""
    copy = shutil.copytree(ROOT / "skills/mos-pcell", tmp_path / "my skills/mos-pcell")
    return copy / "scripts/create_nmos_pcell.py"


def programs(folder, *names):
    """Return an environment whose PATH has these programs and no others."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": str(folder)}


def test_with_uv_the_command_is_the_same_call_by_uv(copied, tmp_path):
    skill, environment = copied.parents[1], programs(tmp_path / "bin", "uv")
    call = ["scripts/create_nmos_pcell.py", "--device-id", "M 1", "--nets", '{"d": "a"}']
    error = answer(sys.executable, "-I", "-S", *call, cwd=skill, env=environment)
    assert shlex.split(error["details"]["command"]) == ["uv", "run", *call]
    in_clone = ROOT / "skills/mos-pcell" / call[0]
    error = answer(sys.executable, "-I", "-S", in_clone, *call[1:], cwd=skill, env=environment)
    expected = ["uv", "run", "--project", str(ROOT), "python", str(in_clone), *call[1:]]
    assert shlex.split(error["details"]["command"]) == expected
    shutil.rmtree(skill)
    skill.symlink_to(ROOT / "skills/mos-pcell")
    error = answer(sys.executable, "-I", "-S", *call, cwd=skill, env=environment)
    assert shlex.split(error["details"]["command"]) == ["uv", "run", "--project", str(ROOT), "python", *call]


# Runs a script as a Python of another kind would: argv is the Python's version, its library and the script.
DISGUISED = """
import runpy, sys, sysconfig
_, version, library, script = sys.argv
sys.version_info = tuple(map(int, version.split(".")))
sys.prefix = sys.base_prefix
sysconfig.get_path = lambda name: library
sys.argv = [script]
runpy.run_path(script, run_name="__main__")
"""
OWN = "~/.analog-layout-skills"


@pytest.mark.parametrize(("version", "managed"), [("3.10", False), ("3.12", True), ("3.9", False)])
def test_without_uv_the_command_suits_the_python(copied, tmp_path, version, managed):
    if managed:
        (tmp_path / "EXTERNALLY-MANAGED").touch()
    for script, package, run in [
        (copied, "analog-layout-skills", ["uv", "run"]),
        (
            ROOT / "skills/mos-pcell/scripts/create_nmos_pcell.py",
            f"-e {ROOT}",
            ["uv", "run", "--project", ROOT, "python"],
        ),
    ]:
        arguments = ["-I", "-S", "-c", DISGUISED, version, tmp_path, script]
        command = answer(sys.executable, *arguments, env={**os.environ, "PATH": str(tmp_path)})["details"]["command"]
        python = shlex.quote(sys.executable)
        if managed or version == "3.9":
            uv = shlex.join(map(str, [*run, script]))
            assert command == f"{python} -m venv {OWN} && PATH={OWN}/bin:$PATH && pip install uv && {uv}"
        else:
            assert command == f"{python} -m pip install {package}"


def python_of(version):
    """Return a Python of this version, on PATH or among pyenv's, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    probe = ["-c", "import sys; sys.exit('%d.%d' % sys.version_info[:2] != sys.argv[1])", version]
    for program in filter(None, [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))]):
        if subprocess.run([program, *probe], capture_output=True, check=False).returncode == 0:
            return program
    return None


@pytest.mark.parametrize("version", OLD)
def test_an_old_python_answers_an_envelope(copied, version):
    """Also where the package lies beside the script, as in an exported skill."""
    found = python_of(version)
    if found is None:
        pytest.skip(f"skipped: needs python{version}")
    assert f"Python {version}." in answer(found, copied)["message"]
    shutil.copytree(ROOT / "scripts/skillscript", copied.parent / "skillscript")
    assert f"Python {version}." in answer(found, copied)["message"]


@pytest.mark.parametrize(
    "package", ["import no_such_module", "from json import no_such_name", "raise ImportError('broken')"]
)
def test_another_failed_import_is_not_taken_for_a_missing_package(copied, package):
    (copied.parent / "skillscript.py").write_text(package)
    done = subprocess.run([sys.executable, str(copied)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "ImportError" in done.stderr or "ModuleNotFoundError" in done.stderr
