"""``skillpack new`` (S3.6, S3.7): what it writes passes ``validate``, and its tool and its printed commands run."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import forked
from skillpack import SkillLoader, find_tools, validate
from skillpack.authoring.validation import Plan, default_tool, write_skill
from skillpack.exceptions import ScaffoldError


def skillpack(*arguments, cwd):
    return subprocess.run([*forked.skillpack(), *arguments], capture_output=True, text=True, cwd=cwd, check=False)


@pytest.mark.parametrize("tool", [None, "text.count_words", "a.b.c"])
@pytest.mark.parametrize("name", ["word-count", "3d", "x" * 64, "123", "null", "on", "2024-01-01"])
def test_a_new_skill_has_nothing_that_any_host_objects_to(tmp_path, name, tool):
    home = write_skill_of(tmp_path, name=name, tool=tool)
    assert validate(home, ["all"]).findings == ()
    tools = find_tools(SkillLoader(tmp_path / "skills").skills.values())
    assert (list(tools.by_id), tools.faults) == ([tool] if tool else [], ())


def write_skill_of(tmp_path, *, name="word-count", description="", tool=None):
    return write_skill(Plan(name, tmp_path / "skills", description, tool))


def test_the_description_given_is_the_one_found(tmp_path):
    text = 'Say: "it\'s" # 计数, when asked'
    write_skill_of(tmp_path, description=text)
    assert SkillLoader(tmp_path / "skills").skills["word-count"].description == text


def test_the_commands_it_prints_and_writes_run(tmp_path):
    """As a person would: in the folder where ``new`` ran, and the command of the body in a copy of the skill's folder.

    ``uv run`` is this Python, which has the package.
    """
    made = skillpack("new", "word-count", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    validated, ran = (line.strip() for line in made.stdout.splitlines()[1:])
    body = (tmp_path / "skills" / "word-count" / "SKILL.md").read_text()
    (written,) = re.findall(r"^```bash\n(.*)\n```$", body, re.MULTILINE)
    copy = shutil.copytree(tmp_path / "skills" / "word-count", tmp_path / "a copy" / "word-count")
    assert "(MCP: `word_count_run`)" in body
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    outputs = [
        subprocess.run(
            shlex.split(line), capture_output=True, text=True, cwd=folder, env=environment, check=True
        ).stdout
        for line, folder in (
            (validated, tmp_path),
            (ran, tmp_path),
            (written.replace("uv run ", f"{shlex.quote(sys.executable)} "), copy),
        )
    ]
    assert outputs[0] == "1 skill: no findings\n"
    assert [json.loads(output)["data"] for output in outputs[1:]] == [{"words": 3}, {"words": 3}]


def test_its_tool_refuses_what_its_schema_refuses(tmp_path):
    skillpack("new", "word-count", "--to", "a b", "--tool", "text.count_words", cwd=tmp_path)
    script = tmp_path / "a b" / "word-count" / "scripts" / "count_words.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "INVALID_PARAM")
    assert "Missing required param: text" in done.stdout


def test_a_new_skill_is_seen_by_a_loader_that_runs(tmp_path):
    (tmp_path / "skills").mkdir()
    loader = SkillLoader(tmp_path / "skills")
    write_skill_of(tmp_path)
    assert loader.reload().added == ("word-count",)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "Word Count"}, "single hyphens; try 'word-count'"),
        ({"name": "画"}, "single hyphens"),
        ({"name": "../x"}, "single hyphens; try 'x'"),
        ({"name": "x" * 65}, "not 1-64 characters"),
        ({"description": "a <b>"}, "without '<' and '>'"),
        ({"description": "a\nb"}, "one line"),
        ({"description": "x" * 1025}, "at most 1024"),
        ({"tool": "../../etc/x"}, "is not lower-case words joined by dots"),
        ({"tool": "single"}, "is not lower-case words joined by dots"),
    ],
)
def test_what_cannot_be_a_skill_is_refused_and_nothing_is_written(tmp_path, changed, message):
    with pytest.raises(ScaffoldError, match=re.escape(message)):
        write_skill_of(tmp_path, **changed)
    assert list(tmp_path.iterdir()) == []


def test_everything_wrong_is_reported_at_once(tmp_path):
    with pytest.raises(ScaffoldError, match=r"single hyphens.*one line.*joined by dots"):
        write_skill_of(tmp_path, name="A", description="<", tool="x")


def test_an_existing_folder_is_left_alone(tmp_path):
    home = write_skill_of(tmp_path)
    before = (home / "SKILL.md").read_text()
    with pytest.raises(ScaffoldError, match="exists; nothing was written"):
        write_skill_of(tmp_path, tool="a.b")
    assert (home / "SKILL.md").read_text() == before
    assert [path.name for path in home.parent.iterdir()] == ["word-count"]


def test_a_folder_that_cannot_be_written_is_reported_and_nothing_is_left(tmp_path):
    (tmp_path / "skills").write_text("")
    with pytest.raises(ScaffoldError, match="cannot be written"):
        write_skill_of(tmp_path)


@pytest.mark.parametrize(("name", "tool"), [("word-count", "word_count.run"), ("3d-view", "skill_3d_view.run")])
def test_the_default_tool_is_named_after_the_skill(name, tool):
    assert default_tool(name) == tool


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["Word Count"], "try 'word-count'"), (["x", "--tool", "a.b", "--no-tool"], "cannot be combined"), ([], "NAME")],
)
def test_the_command_refuses_with_exit_code_2(tmp_path, arguments, message):
    done = skillpack("new", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
