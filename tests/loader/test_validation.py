"""``skillpack validate``: three levels of findings, everything at once, what each host objects to."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from forked import skillpack
from skillpack import validate
from skillpack.exceptions import RootError

ROOT = Path(__file__).parents[2]
HOSTS = ("agent-plugins", "claude-ai", "claude-code", "codex", "manus")


@pytest.fixture
def found(write_skill, tmp_path):
    """Write the skill ``s`` and return (level, rule) of what is found."""

    def check(text, *, strict=(), files=None):
        write_skill("s", text, files=files)
        return [(item.level, item.rule) for item in validate(tmp_path / "skills" / "s", strict).findings]

    return check


def skill(extra="", *, name="s", description="d", body="Body."):
    return f"---\nname: {name}\ndescription: {description}\n{extra}---\n{body}\n"


FULL = 'license: Apache-2.0\ncompatibility: Python\nmetadata:\n  version: "1.0"\nallowed-tools: Read Bash(git:*)\n'


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        pytest.param(skill(FULL), [], id="all six fields"),
        pytest.param(skill(description="x" * 1024), [], id="longest description"),
        pytest.param(skill(description="x" * 1025), ["description-length"], id="too long a description"),
        pytest.param(skill(description="'a <b> c'"), ["description-brackets"], id="angle brackets"),
        pytest.param(skill(description="''"), ["description-missing"], id="empty description"),
        pytest.param("---\nname: s\n---\nx", ["description-missing"], id="no description"),
        pytest.param("---\n---\nx", ["description-missing", "name-missing"], id="empty frontmatter"),
        pytest.param(skill(description="[a]"), ["description-form"], id="a list as description"),
        pytest.param(skill(name="other"), ["name-folder"], id="name differs from folder"),
        pytest.param(skill(name="S"), ["name-folder", "name-form"], id="upper case"),
        pytest.param(skill(name="s--t"), ["name-folder", "name-form"], id="two hyphens"),
        pytest.param(skill(name="-s"), ["name-folder", "name-form"], id="hyphen first"),
        pytest.param(skill(name="s_t"), ["name-folder", "name-form"], id="underscore"),
        pytest.param(skill(name='"s\\n"'), [], id="a line break around the name is blank"),
        pytest.param(skill("compatibility: " + "x" * 501 + "\n"), ["compatibility-length"], id="compatibility"),
        pytest.param(skill("compatibility: ''\n"), ["compatibility-missing"], id="empty compatibility"),
        pytest.param(skill("license: [a]\n"), ["license-form"], id="license"),
        pytest.param(skill("metadata: x\n"), ["metadata-form"], id="metadata as text"),
        pytest.param(skill("metadata:\n"), [], id="metadata without a value"),
        pytest.param(skill("metadata: {a: [b]}\n"), ["metadata-form"], id="a list in metadata"),
        pytest.param(skill("allowed-tools: [Read]\n"), ["allowed-tools-form"], id="allowed-tools as list"),
        pytest.param(skill("when_to_use: now\n"), ["unknown-field"], id="a field of Claude Code"),
        pytest.param(skill("name: t\n"), ["frontmatter"], id="the name twice"),
        pytest.param(skill("metadata: &a {b: c}\nlicense: *a\n"), ["frontmatter"], id="alias"),
        pytest.param("no frontmatter", ["frontmatter"], id="no frontmatter"),
        pytest.param(b"---\nname: \xff\n---\n", ["frontmatter"], id="not UTF-8"),
        pytest.param(skill(body="x" * (1 << 20)), ["file"], id="too large"),
    ],
)
def test_what_breaks_the_specification_is_an_error(found, text, findings):
    assert sorted(found(text)) == sorted(("error", rule) for rule in findings)


def test_everything_that_is_wrong_is_reported_at_once(found):
    text = "---\nname: A B\ndescription: <x>\nlicence: MIT\nmetadata: [1]\n---\n"
    assert {rule for _, rule in found(text)} == {
        *("name-form", "name-folder", "description-brackets", "unknown-field", "metadata-form", "body-empty")
    }


def test_an_unknown_field_comes_with_the_nearest_one(write_skill):
    (finding,) = validate(write_skill("s", skill("licence: MIT\n"))).findings
    assert finding.message.endswith("put it under metadata or leave it out; did you mean 'license'?")


@pytest.mark.parametrize(
    ("text", "rule", "hosts"),
    [
        (skill(description="Use when: x"), "yaml-colon", {"agent-plugins", "claude-ai", "codex", "manus"}),
        ("\ufeff" + skill(), "byte-order-mark", {"claude-ai", "codex", "manus"}),
        (skill().replace("---\n", "--- \n", 1), "opening-line", {"claude-ai", "manus"}),
        (skill(description="|\n  a\n  ---\n  b"), "dashes-in-value", {"codex"}),
        (skill(description="2026"), "unquoted", {"agent-plugins", "claude-ai", "codex", "manus"}),
        (skill("metadata: {version: 1.10}\n"), "unquoted", {"agent-plugins", "claude-ai", "codex", "manus"}),
        (
            skill(body="run ${CLAUDE_SKILL_DIR}/x"),
            "host-variable",
            {"agent-plugins", "claude-ai", "codex", "manus"},
        ),
        (skill(body="see [it](references/none.md)"), "reference-missing", set(HOSTS)),
        (skill(body="run `scripts/none.py`"), "reference-missing", set(HOSTS)),
        (skill(body="see [it](../other/x.md)"), "reference-outside", set(HOSTS)),
        (skill(body="see [it](/etc/x.md)"), "reference-outside", set(HOSTS)),
        (skill(body="a\u202eb"), "hidden-text", set(HOSTS)),
        (skill(description="a\U000e0041b"), "hidden-text", set(HOSTS)),
    ],
)
def test_what_a_host_objects_to_is_a_warning_and_an_error_when_that_host_is_named(write_skill, text, rule, hosts):
    home = write_skill("s", text)
    (finding,) = validate(home).findings
    assert (finding.level, finding.rule, set(finding.hosts)) == ("warning", rule, hosts)
    assert validate(home).ok
    for host in HOSTS:
        assert validate(home, [host]).ok is (host not in hosts)
    assert not validate(home, ["all"]).ok


def test_a_reserved_word_in_a_name_concerns_uploads_to_claude_ai(write_skill):
    (finding,) = validate(write_skill("my-claude-skill")).findings
    assert (finding.rule, finding.hosts) == ("reserved-name", ("claude-ai",))


def test_references_that_are_there_or_lie_elsewhere_on_purpose_are_fine(found):
    body = (
        "[a](references/a.md#part) [b](https://x.org/y) [c](#part) [d](mailto:a@b)\n"
        "`scripts/<name>.py` `references/*.md`\n"
        "```python\nopen('assets/none.md') # [x](none.md)\n```\n`scripts/run.py`"
    )
    assert found(skill(body=body), files={"references/a.md": "", "scripts/run.py": ""}) == []


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("uv run scripts/run.py --params @assets/a.json --to build/out.gds", None),
        ("cd build && python ../scripts/run.py", "command-path"),
        ("python scripts/none.py", "command-missing"),
        ("./scripts/none.sh", "command-missing"),
        ("uv run scripts/run.py --params=assets/none.json", "command-missing"),
        ("python tools/none.py", "command-missing"),
        ("python skills/s/scripts/run.py", "command-path"),
        ("python skills/s/run.py", "command-path"),
        ("python s/scripts/run.py", "command-path"),
        ("python ~/.claude/skills/s/scripts/run.py", "command-path"),
        ("python /home/me/s/scripts/run.py", "command-path"),
        ('python "../t/scripts/none.py"', "command-path"),
        ("skillpack pipeline run t/assets/p.yaml", "command-path"),
        ("uv run --project SKILL_FOLDER python SKILL_FOLDER/scripts/run.py", None),
        (
            "python {baseDir}/scripts/x.py $HOME/scripts/x.py path/to/scripts/x.py src/main.py /usr/share/scripts/x",
            None,
        ),
        ("curl https://x.org/skills/s/scripts/run.py -o build/x.py", None),
        ("skillpack validate skills/s", None),
        ("uv run scripts/run.py --to build/none.gds", None),
    ],
)
@pytest.mark.parametrize("form", ["```bash\n{}\n```", "  ```sh\n  {}\n  ```", "| a | run `{}` |"])
def test_a_command_names_files_from_the_skills_own_folder(write_skill, found, command, rule, form):
    write_skill("t", files={"assets/p.yaml": ""})
    files = {"scripts/run.py": "", "assets/a.json": "", "run.py": "", "tools/a.py": "", "build/a.gds": ""}
    expected = [] if rule is None else [("warning", rule)]
    assert found(skill(body=form.replace("{}", command)), files=files) == expected


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("", "body-empty"),
        ("line\n" * 501, "body-long"),
        ("word " * 4100, "body-long"),
        ("[a](references/deep/a.md)", "reference-deep"),
    ],
)
def test_what_is_only_worth_knowing_is_an_info(found, body, rule):
    assert found(skill(body=body), files={"references/deep/a.md": ""}, strict=["all"]) == [("info", rule)]


def test_a_link_to_outside_is_reported(write_skill, tmp_path):
    home = write_skill("s", files={"references/a.md": ""})
    (tmp_path / "outside.md").write_text("")
    (home / "references" / "b.md").symlink_to(tmp_path / "outside.md")
    (home / "references" / "c.md").symlink_to("a.md")
    (finding,) = validate(home).findings
    assert (finding.rule, "'references/b.md'" in finding.message) == ("link-outside", True)


def test_faults_of_its_tools_are_errors(found):
    assert found(skill(), files={"skill.yaml": "tools: [{id: t.x}, 5]"}) == [("error", "tool"), ("error", "tool")]


def test_a_folder_of_skills_is_checked_as_a_set(write_skill, tmp_path):
    write_skill("a", skill(name="a"))
    write_skill("b", skill(name="a"))
    write_skill("group/c", skill(name="c"))
    write_skill("bad", "x")
    report = validate(tmp_path / "skills")
    assert report.skills == ("a", "c")
    assert [(os.path.relpath(item.path, report.path), item.level, item.rule) for item in report.findings] == [
        ("b/SKILL.md", "error", "name-folder"),
        ("b/SKILL.md", "warning", "name-taken"),
        ("bad/SKILL.md", "error", "frontmatter"),
        ("group/c/SKILL.md", "warning", "nested"),
    ]


def test_descriptions_that_a_host_would_cut_are_reported(write_skill, tmp_path):
    for number in range(9):
        write_skill(f"s{number}", description="x" * 1000)
    (finding,) = validate(tmp_path / "skills").findings
    assert (finding.rule, finding.hosts) == ("listing-length", ("codex",))


def test_a_path_without_skills_is_an_error_and_one_that_is_not_there_a_refusal(tmp_path):
    assert [item.rule for item in validate(tmp_path).findings] == ["no-skill"]
    with pytest.raises(RootError, match="no such skill or folder"):
        validate(tmp_path / "none")


def test_validating_runs_nothing_of_a_skill(write_skill, tmp_path):
    trap = f"open({str(tmp_path / 'ran')!r}, 'w')"
    tool = "tools: [{id: a.b, script: scripts/x.py, input_schema: {type: object}, output_schema: {type: object}}]"
    home = write_skill("s", files={"scripts/x.py": trap, "sitecustomize.py": trap, "skill.yaml": tool})
    assert validate(home, ["all"]).ok
    assert not (tmp_path / "ran").exists()


def run(*arguments, cwd=None):
    return subprocess.run(
        [*skillpack(), "validate", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
    )


def test_the_command_prints_findings_and_exits_by_them(write_skill, tmp_path):
    good, bad = write_skill("good"), write_skill("bad", skill(name="bad", description="Use: x", body=""))
    done = run(good)
    assert (done.returncode, done.stdout) == (0, "1 skill: no findings\n")
    done = run(bad, "--strict", "codex")
    assert done.returncode == 1
    assert done.stdout.split("\n")[0].startswith("SKILL.md: error [yaml-colon] the value of 'description'")
    assert done.stdout.endswith("1 skill: 1 error, 1 info\n")
    assert "info [" in done.stdout
    assert "info [" not in run(bad, "--quiet").stdout
    report = json.loads(run(bad / "SKILL.md", "--json").stdout)
    assert (report["ok"], [item["rule"] for item in report["reports"][0]["findings"]]) == (
        True,
        ["yaml-colon", "body-empty"],
    )
    assert run("--skills-dir", tmp_path / "skills").stdout.endswith("2 skills: 1 warning, 1 info\n")


@pytest.mark.parametrize("arguments", [["/does/not/exist"], [".", "--strict", "netscape"]])
def test_the_command_refuses_what_is_not_there(arguments, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "/does/not/exist" in done.stderr or "netscape" in done.stderr


def test_every_rule_is_documented():
    source = "".join(
        (ROOT / "loader" / "skillpack" / "authoring" / f"{name}.py").read_text()
        for name in ("validation", "skill_rules")
    )
    rules = {
        re.sub(r"^\{key\}", "name", rule) for rule in re.findall(r'(?:error|warning|info)\(\s*f?"([a-z{}-]+)"', source)
    }
    page = (ROOT / "references" / "writing-skills.md").read_text()
    assert len(rules) > 20
    assert [rule for rule in sorted(rules) if f"`{rule}`" not in page] == []
