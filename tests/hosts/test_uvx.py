"""uvx and pipx run the command of the wheel without an installation."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PYPROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "probe"
version = "1"
scripts.probe = "probe:main"
[tool.hatch.build]
include = ["probe.py"]
[tool.uv]
"""


@pytest.mark.parametrize(
    "command",
    [
        ["--from", "WHEEL", "skillpack"],  # uvx --from WHEEL skillpack
        ["analog-layout-skills"],  # uvx analog-layout-skills, the wheel in UV_FIND_LINKS
        ["pipx", "run", "--spec", "WHEEL", "skillpack"],
        ["pipx", "run", "analog-layout-skills"],
    ],
    ids=" ".join,
)
def test_uvx_and_pipx_run_the_wheel(command, uv, built_wheel, tmp_path):
    wheel = next(built_wheel.glob("*.whl"))
    line = [str(wheel) if word == "WHEEL" else word for word in command]
    answered = uv(
        "tool", "run", *line, "tools", "--json", cwd=tmp_path, UV_FIND_LINKS=str(built_wheel), PIPX_HOME=str(tmp_path)
    )
    assert answered.returncode == 0, answered.stderr
    assert "flow.build_layout" in answered.stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="skipped: needs git")
def test_uvx_builds_a_folder_of_a_clone_again_after_a_commit(uv, tmp_path):
    """With the ``cache-keys`` of this project: a plugin that a host reads in place is updated by ``git pull``."""
    own = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "pyproject.toml").write_text(PYPROJECT + re.search(r"^cache-keys = .*$", own, re.MULTILINE)[0])
    git = ["git", "-C", tmp_path, "-c", "user.name=x", "-c", "user.email=x", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q"], check=True)
    for answer in ("old", "new"):
        (pack / "probe.py").write_text(f"def main():\n    print({answer!r})\n")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", answer], check=True)
        done = uv("tool", "run", "--from", pack, "probe", cwd=tmp_path)
        assert done.stdout == f"{answer}\n", done.stderr
