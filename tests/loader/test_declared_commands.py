"""Commands that a skill declares for its tools; the skill here is somebody else's."""

import json
import os
import subprocess
import sys
import textwrap
from functools import partialmethod
from types import SimpleNamespace

import pytest

from forked import skillpack as forked_skillpack
from skillpack import Runner
from skillpack.commands.declared_commands import Meanwhile, declared_commands, print_results

DECLARATION = """
    tools:
      - id: tea.make_tea
        script: scripts/make_tea.py
        description: Make tea
        input_schema:
          type: object
          required: [leaf_path]
          properties: {leaf_path: {type: string}, minutes: {type: number, default: 3}, milk: {type: boolean}}
        output_schema: {type: object}
        command: {name: tea, arguments: [leaf_path], options: {minutes: -m}, shows: files.cup}
      - id: tea.list_teas
        script: scripts/make_tea.py
        input_schema: {type: object}
        output_schema: {type: object}
        command: {name: list}
"""
SCRIPT = """
    import sys
    from skillscript import SkillError, main

    def execute(params, context):
        print("the water boils", file=sys.stderr)
        if params["minutes"] > 9:
            raise SkillError("INVALID_PARAM", "too bitter")
        return {"given": params, "files": {"cup": "cup.txt"}}

    if __name__ == "__main__":
        raise SystemExit(main(__file__, "tea.make_tea", execute))
"""


@pytest.fixture
def skillpack(tmp_path):
    skill = tmp_path / "skills" / "tea"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: tea\ndescription: Makes tea.\n---\n# Tea\n")
    (skill / "skill.yaml").write_text(textwrap.dedent(DECLARATION))
    (skill / "scripts" / "make_tea.py").write_text(textwrap.dedent(SCRIPT))

    def run(*words):
        command = [sys.executable, "-m", "skillpack", "--skills-dir", str(tmp_path / "skills"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_the_command_takes_words_and_short_options_and_prints_the_field_it_shows(skillpack):
    done = skillpack("tea", "--milk", "oolong", "-m", "4")
    assert (done.returncode, done.stdout, done.stderr) == (0, "cup.txt\n", "the water boils\n")
    answer = json.loads(skillpack("tea", "oolong", "-m", "4", "--json", "--milk").stdout)
    assert answer["data"]["given"] == {"leaf_path": "oolong", "minutes": 4, "milk": True}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["oolong", "-m", "12"], "INVALID_PARAM: too bitter"),
        ([], "leaf_path"),
        (["oolong", "assam"], "Unexpected argument: assam"),
        (["oolong", "--leaf-path", "assam"], "given 2 times"),
        (["oolong", "--sugar", "1"], "Unknown option: --sugar"),
    ],
)
def test_a_fault_is_said_in_words_with_exit_code_2(skillpack, words, said):
    done = skillpack("tea", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_folder_goes_to_the_parameter_for_folders_and_what_a_call_needs_is_named_as_a_user_gives_it(
    skillpack, tmp_path
):
    skill = tmp_path / "skills" / "tea" / "skill.yaml"
    changed = skill.read_text().replace("required: [leaf_path]", "required: []")
    changed = changed.replace("milk: {type: boolean}", "milk: {type: boolean}, pot: {type: string}")
    extra = "folders: {leaf_path: pot}, needs: [leaf_path|pot, milk]"
    skill.write_text(changed.replace("arguments: [leaf_path],", f"arguments: [leaf_path], {extra},"))
    answer = json.loads(skillpack("tea", str(tmp_path), "--milk", "--json").stdout)
    assert answer["data"]["given"] == {"pot": str(tmp_path), "minutes": 3, "milk": True}
    done = skillpack("tea")
    assert done.returncode == 2
    assert done.stderr == ("INVALID_PARAM: skillpack tea needs FILE or --pot and --milk; --help lists all parameters\n")


@pytest.mark.parametrize(
    ("shown", "launched"),
    [
        ("http://127.0.0.1:8000/?token=1", ["http://127.0.0.1:8000/?token=1"]),
        ("http://example.org/", []),
        ("http://127.0.0.1:80@example.org/", []),
        ("http://[", []),
    ],
)
def test_open_opens_a_page_of_this_machine_only(monkeypatch, shown, launched):
    opened = []
    monkeypatch.setattr("click.launch", opened.append)
    tool = SimpleNamespace(id="tea.make_tea")
    result = SimpleNamespace(data={"url": shown}, error=None, exit_code=0)
    print_results({"tea.make_tea": result}, [(tool, {"shows": "url"})], {}, opened=True)
    assert opened == launched


def test_the_commands_are_listed_and_those_of_skillpack_stay(skillpack):
    assert "tea       Of skill tea" in skillpack("--help").stdout
    assert "skillpack tea [FILE] [OPTIONS]" in skillpack("tea", "--help").stdout
    assert "tea.make_tea" in skillpack("list").stdout


def test_an_unknown_command_is_refused_with_the_most_similar(skillpack):
    done = skillpack("tee")
    assert done.returncode == 2
    assert "did you mean 'tea'" in done.stderr


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("te", ["plain,tea"]),
        ("tea --m", ["plain,--minutes", "plain,--milk"]),
        ("tea ool", ["file,ool"]),
        ("run tea.m", ["plain,tea.make_tea"]),
        ("show t", ["plain,tea"]),
    ],
)
@pytest.mark.usefixtures("skillpack")
def test_a_shell_completes_commands_options_tools_skills_and_files(tmp_path, typed, offered):
    words = f"skillpack {typed}"
    variables = {"SKILLPACK_PATH": str(tmp_path / "skills"), "_SKILLPACK_COMPLETE": "bash_complete"}
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    command = [sys.executable, "-c", "from skillpack.__main__ import main; main()"]
    done = subprocess.run(command, env={**os.environ, **variables, **asked}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == offered


def test_the_own_pack_builds_by_a_command(tmp_path):
    words = ["build", "missing.sp", "-t", "sky130", "--to", str(tmp_path / "out")]
    done = subprocess.run([*forked_skillpack(), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "missing.sp" in done.stderr


def test_the_own_pack_checks_a_built_folder_with_lvs_and_the_review(tmp_path):
    devices = "M1 out in vss vss nmos w=1u l=0.13u\nM2 out in vdd vdd pmos w=2u l=0.13u\n"
    (tmp_path / "inverter.sp").write_text(f".subckt inverter in out vdd vss\n{devices}.ends\n")

    def run(*words):
        command = [*forked_skillpack(), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert run("build", "inverter.sp", "-t", "sg13g2", "--to", "out").returncode == 0
    done = run("check", "out")
    assert "DRC     clean in sg13g2" in done.stdout
    assert "LVS     complete with replaced devices: 2 of 2 devices, 4 of 4 nets" in done.stdout
    assert "review  an engineer would" in done.stdout


PARTY = """
          - name: tea
            arguments: [leaf_path]
            then: [{tool: tea.list_teas, needs: [minutes]}]
          - name: party
            help: Hold a party
            arguments: [leaf_path]
            fixed: {minutes: 5}
            summary: ["{given.minutes} minutes, {given.minutes?with:without} milk", "{given.sugar} is not there"]
            shows: files.cup
            then:
              - {tool: tea.list_teas, needs: [minutes], summary: ["tea: {teas[].name}"]}
              - {tool: tea.drink_tea, summary: [drunk]}
"""
LIST = """
    from skillscript import main

    def execute(params, context):
        return {"teas": [{"name": number} for number in range(params["minutes"] + 5)]}

    raise SystemExit(main(__file__, "tea.list_teas", execute))
"""


def test_a_command_runs_several_tools_and_prints_their_summaries(skillpack, tmp_path):
    """Each gets the parameters that it has; a failure ends the command."""
    skill = tmp_path / "skills/tea"
    declaration = textwrap.dedent(DECLARATION).replace(
        " {name: tea, arguments: [leaf_path], options: {minutes: -m}, shows: files.cup}", PARTY.rstrip()
    )
    second = "scripts/list_teas.py\n    input_schema: {type: object, properties: {minutes: {type: integer}}, "
    declaration = declaration.replace(
        "scripts/make_tea.py\n    input_schema: {type: object}", f"{second}additionalProperties: false}}"
    )
    (skill / "skill.yaml").write_text(declaration)
    (skill / "scripts/list_teas.py").write_text(textwrap.dedent(LIST))
    said = skillpack("--help").stdout
    assert "tea       Of skill tea" in said
    assert "party     Hold a party\n" in said
    done = skillpack("party", "oolong")
    assert done.stdout.splitlines() == [
        "5 minutes, with milk", *(f"tea: {number}" for number in range(8)), "and 2 more", "cup.txt",
    ]  # fmt: skip
    assert "tea.list_teas was left out: it needs --minutes" in skillpack("tea", "oolong").stdout
    assert "\nteas: " not in done.stdout
    assert list(json.loads(skillpack("party", "oolong", "--json").stdout)) == ["tea.make_tea", "tea.list_teas"]
    failed = skillpack("party", "oolong", "--minutes", "12")
    assert (failed.returncode, failed.stdout, "too bitter" in failed.stderr) == (2, "", True)


def test_a_command_whose_summary_says_nothing_prints_the_plain_fields_of_the_answer(skillpack, tmp_path):
    declaration = textwrap.dedent(DECLARATION).replace(", shows: files.cup", ", summary: ['{no.such.field}']")
    (tmp_path / "skills/tea/skill.yaml").write_text(declaration)
    script = tmp_path / "skills/tea/scripts/make_tea.py"
    script.write_text(script.read_text().replace('"files"', '"cups": 2, "files"'))
    assert skillpack("tea", "oolong").stdout == "cups: 2\n"


def test_on_a_terminal_the_last_line_is_shown_with_a_bar_until_an_empty_line(capfdbinary, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    meanwhile = Meanwhile(4)
    for chunk in (b"fill ", b"the pot\nboil\n", b"\nclean\nsigned\n"):
        meanwhile.feed(chunk)
    meanwhile.clear()
    written = capfdbinary.readouterr().err
    assert written == (
        b"\r\x1b[K[#####---------------] fill the pot\r\x1b[K[##########----------] boil\r\x1b[K\nclean\nsigned\n"
    )


@pytest.mark.usefixtures("skillpack")
def test_a_command_runs_until_it_is_done_or_stopped(tmp_path, monkeypatch, capfd):
    """A host may end a call after minutes; who builds a large circuit at a terminal waits for it."""
    monkeypatch.setattr(Runner, "__init__", partialmethod(Runner.__init__, timeout=0.001))
    tea = declared_commands((str(tmp_path / "skills"),), ())["tea"]
    with pytest.raises(SystemExit) as ended:
        tea.main(["oolong"], standalone_mode=False)
    assert (ended.value.code, capfd.readouterr().out) == (0, "cup.txt\n")
