"""The lines with which every script starts: its requirements (PEP 723), and what to run where they are not met."""

import ast
import os
import shutil
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest

from skillpack.authoring.validation import Plan, write_skill

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "skills").glob("*/scripts/*.py"))
HEADER = '# /// script\n# requires-python = ">=3.10"\n# dependencies = ["{}"]\n# ///\n"""'
EXTRAS = {"explore_layouts.py": "[explore]", "suggest_constraints.py": "[models]", "watch_layout.py": "[http]"}
OLD = ("3.6", "3.7", "3.8", "3.9")
MOST_LINES = 6  # of a script for starting it: the import, where it fails, and the call of main


def start_lines(source):
    """Return the lines of a script that handle a failed import of ``skillscript``."""
    lines = source.splitlines()
    (block,) = (node for node in ast.parse(source).body if isinstance(node, ast.Try))
    return lines[block.handlers[0].lineno - 1 : block.end_lineno]


def reason(python, script, **options):
    """Return the one line on standard error of a script that does not start."""
    done = subprocess.run([python, "-I", "-S", script], capture_output=True, text=True, check=False, **options)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    return line


def test_every_script_and_that_of_a_new_skill_start_alike(tmp_path):
    sources = {path.name: path.read_text(encoding="utf-8") for path in SCRIPTS}
    new = (write_skill(Plan("new-skill", tmp_path, tool="layout.x")) / "scripts" / "x.py").read_text(encoding="utf-8")
    expected = start_lines(new)
    assert len(expected) + 4 <= MOST_LINES
    for name, source in [*sources.items(), ("new", new)]:
        assert start_lines(source) == expected, name
        assert source.startswith(HEADER.format("analog-layout-skills" + EXTRAS.get(name, ""))), name
    offered = metadata("analog-layout-skills").get_all("Provides-Extra")
    assert {extra.strip("[]") for extra in EXTRAS.values()} <= set(offered)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parts[-3]}/{path.stem}")
def test_an_old_python_reads_a_script_as_far_as_its_import(script):
    """Python 3.6 knows the grammar; before that there is nothing that it cannot import."""
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


def test_a_script_without_the_package_says_in_one_line_what_to_run(copied):
    for script in (copied, ROOT / "skills/mos-pcell/scripts/create_nmos_pcell.py"):
        assert reason(sys.executable, script) == (
            "No module named 'skillscript': `pip install -e .` in a clone; "
            f"`uv run {str(script)!r}` in an exported copy"
        )


def python_of(version):
    """Return a Python of this version, on PATH or among pyenv's, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    probe = ["-c", "import sys; sys.exit('%d.%d' % sys.version_info[:2] != sys.argv[1])", version]
    for program in filter(None, [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))]):
        if subprocess.run([program, *probe], capture_output=True, check=False).returncode == 0:
            return program
    return None


@pytest.mark.parametrize("version", OLD)
def test_an_old_python_says_in_one_line_what_to_run(copied, version):
    """Also where the package lies beside the script, as in an exported skill."""
    found = python_of(version)
    if found is None:
        pytest.skip(f"skipped: needs python{version}")
    assert "No module named" in reason(found, copied)
    shutil.copytree(ROOT / "scripts/skillscript", copied.parent / "skillscript")
    done = subprocess.run([found, str(copied)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert "needs Python 3.10 or newer: `pip install" in done.stderr


@pytest.mark.parametrize(
    ("package", "problem"),
    [
        ("import no_such_module", "No module named 'no_such_module'"),
        ("from json import no_such_name", "cannot import name 'no_such_name'"),
        ("raise ImportError('broken')", "broken"),
    ],
)
def test_another_failed_import_is_not_taken_for_a_missing_package(copied, package, problem):
    (copied.parent / "skillscript.py").write_text(package)
    done = subprocess.run([sys.executable, str(copied)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(problem)
