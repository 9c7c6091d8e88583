"""The command ``skillpack`` as a shell sees it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import forked
from patience import WATCHDOG_S
from skillpack import SkillLoader

SCRIPT = """
    import sys, time
    from skillscript import SkillError, main

    def execute(params, context):
        print("working", file=sys.stderr, flush=True)
        if params["mode"] == "hang":
            time.sleep(600)
        if params["mode"] == "refuse":
            raise SkillError("UNSUPPORTED_OPERATION", "no")
        return {"total": params["count"]}

    if __name__ == "__main__":
        raise SystemExit(main(__file__, "bench.run_mode", execute, violates=lambda data: data["total"] > 9))
    """


@pytest.fixture
def pack(write_tool, write_skill, tmp_path):
    write_tool(SCRIPT)
    write_skill("other", files={"references/a.bin": b"\xff\r\n\x00", "references/b.md": "x\r\ny\n"})
    return tmp_path / "skills"


@pytest.fixture
def skillpack(pack):
    """Run the command on the pack; return the finished process."""

    def run(*arguments, stdin="", env=None, roots=("--skills-dir", str(pack))):
        of_python = any(name.startswith("PYTHON") for name in env or {})
        return subprocess.run(
            [*([sys.executable, "-m", "skillpack"] if of_python else forked.skillpack()), *arguments, *roots],
            input=stdin.encode(),
            capture_output=True,
            check=False,
            env={**{key: value for key, value in os.environ.items() if key != "SKILLPACK_PATH"}, **(env or {})},
        )

    return run


def test_list_names_skills_and_tools(skillpack):
    assert skillpack("list").stdout.decode() == "- bench: Does a thing.\n    bench.run_mode\n- other: Does a thing.\n"


def test_list_as_json(skillpack):
    listed = json.loads(skillpack("list", "--json").stdout)
    assert [entry["name"] for entry in listed] == ["bench", "other"]
    assert listed[0]["tools"] == [{"id": "bench.run_mode", "version": "1.2.0", "description": "Runs one mode."}]


def test_prompt_prints_layer_1(skillpack, pack):
    section = SkillLoader(pack).get_prompt_section(how="").strip("\n")
    assert skillpack("prompt").stdout.decode().startswith(f"{section}\nRun `skillpack show ")


def test_show_prints_layer_2(skillpack, pack):
    content = SkillLoader(pack).get_skill_content("bench")
    assert skillpack("show", "bench").stdout.decode().strip() == content.strip()
    assert json.loads(skillpack("show", "bench", "--json").stdout)["data"]["content"] == content


def test_read_prints_layer_3_byte_for_byte(skillpack):
    assert skillpack("read", "other", "references/a.bin").stdout == b"\xff\r\n\x00"
    assert skillpack("read", "other", "references/b.md").stdout == b"x\r\ny\n"
    assert json.loads(skillpack("read", "other", "references/b.md", "--json").stdout)["data"]["size"] == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "bensh"), "Skill 'bensh' not found; did you mean 'bench'?"),
        (("read", "bensh", "x"), "Skill 'bensh' not found; did you mean 'bench'?"),
        (("read", "other", "../bench/SKILL.md"), "contains '..'"),
        (("list", "--skills-dir", "/does/not/exist"), "no such skills directory: /does/not/exist"),
        (("list", "--skills-dir", "x" * 300), f"{'x' * 300}: "),
        (("export", "other", "--to", "x" * 300), f"the folder {'x' * 300} cannot be written: "),
    ],
)
def test_what_does_not_exist_is_exit_code_2_and_one_line(skillpack, arguments, message):
    done = skillpack(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_an_empty_folder_does_not_mean_the_working_folder(skillpack):
    done = skillpack("export", "other", "--to", "")
    assert (done.returncode, b"--to is empty" in done.stderr) == (2, True)


def test_a_failure_requested_as_json_is_json(skillpack):
    done = skillpack("show", "bensh", "--json")
    assert (done.returncode, json.loads(done.stdout)["suggestions"]) == (2, ["bench"])


@pytest.mark.parametrize(
    ("params", "code", "exit_code"),
    [
        ('{"mode": "x"}', None, 0),
        ('{"mode": "x", "count": 10}', None, 1),
        ('{"mode": 1}', "INVALID_PARAM", 2),
        ("{", "INVALID_PARAM", 2),
        ("@/does/not/exist.json", "INVALID_PARAM", 2),
        ("@/dev/zero", "INVALID_PARAM", 2),
        ("@.", "INVALID_PARAM", 2),
        ("-", "INVALID_PARAM", 2),
        ('{"mode": "refuse"}', "UNSUPPORTED_OPERATION", 2),
    ],
)
def test_run_prints_one_envelope_and_exits_as_the_scripts_do(skillpack, params, code, exit_code):
    """S0.1, S0.2."""
    done = skillpack("run", "bench.run_mode", "--params", params)
    envelope = json.loads(done.stdout)
    assert set(envelope) == {"ok", "error", "data", "duration_ms"}
    assert ((envelope["error"] or {}).get("code"), done.returncode) == (code, exit_code)


def test_run_takes_params_from_a_file_and_from_stdin(skillpack, tmp_path):
    (tmp_path / "p.json").write_text('{"mode": "x", "count": 3}')
    assert json.loads(skillpack("run", "bench.run_mode", "--params", f"@{tmp_path / 'p.json'}").stdout)["data"] == {
        "total": 3
    }
    done = skillpack("run", "bench.run_mode", "--params", "-", stdin='{"mode": "x", "count": 4}')
    assert json.loads(done.stdout)["data"] == {"total": 4}


def test_what_a_tool_says_meanwhile_is_left_out_of_a_short_answer_to_a_program(skillpack):
    """Who reads both streams through pipes, as an agent's shell does, gets the answer alone."""
    call = ("run", "bench.run_mode", "--params", '{"mode": "x", "count": 4}')
    assert [skillpack(*call, *more).stderr for more in ((), ("--detail", "full"))] == [b"", b"working\n"]


def test_run_answers_short_unless_full_is_asked_for(skillpack, pack):
    """With somebody's own skill."""
    schema = pack / "bench/schemas/bench.run_mode.output.json"
    fields = {"total": {"type": "integer"}, "mode": {"type": "string"}, "rows": {"x-short": 1, "type": "array"}}
    schema.write_text(json.dumps({"type": "object", "properties": fields}))
    script = pack / "bench/scripts/run_mode.py"
    script.write_text(script.read_text().replace('{"total": params["count"]}', '{"total": 1, "rows": [1, "x" * 3000]}'))
    call = ("run", "bench.run_mode", "--params")
    brief = json.loads(skillpack(*call, '{"mode": "x"}').stdout)
    assert brief["data"] == {"total": 1, "rows": [1]}
    assert brief["left_out"] == {"in_part": ["rows"], "whole_answer": "detail: full"}
    for asked in (('{"mode": "x"}', "--detail", "full"), ('{"mode": "x", "detail": "full"}',)):
        whole = json.loads(skillpack(*call, *asked).stdout)
        assert whole["data"] == {"total": 1, "rows": [1, "x" * 3000]}
        assert set(whole) == {"ok", "error", "data", "duration_ms"}
    refused = skillpack(*call, '{"mode": "x", "detail": "most"}')
    assert (refused.returncode, b"detail must be one of short, full" in refused.stdout) == (2, True)


def test_run_of_an_unknown_tool_is_an_envelope(skillpack):
    done = skillpack("run", "bench.run_mood")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "INVALID_PARAM")


def test_run_kills_what_takes_too_long(skillpack):
    done = skillpack("run", "bench.run_mode", "--params", '{"mode": "hang"}', "--timeout", "1")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (4, "TIMEOUT")


PIPELINE = '{"pipeline": "p", "steps": [{"id": "a", "tool": "bench.run_mode", "params": {"mode": "hang"}}]}'


@pytest.mark.parametrize("command", ["run", "pipeline"])
@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        (signal.SIGINT, "INTERNAL_ERROR", "interrupted before the work was done"),
        (signal.SIGTERM, "TIMEOUT", "stopped by SIGTERM before the work was done"),
    ],
)
def test_an_interrupted_run_kills_its_tool_and_answers_as_a_script_does(pack, tmp_path, command, kind, code, message):
    """By the table in references/envelope.md."""
    (tmp_path / "p.json").write_text(PIPELINE)
    arguments = {
        "run": ["run", "bench.run_mode", "--detail", "full", "--params", '{"mode": "hang"}'],
        "pipeline": ["pipeline", "run", str(tmp_path / "p.json")],
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "skillpack", "--skills-dir", str(pack), *arguments[command]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert any(line == b"working\n" for line in process.stderr)
    process.send_signal(kind)
    out, _ = process.communicate(timeout=WATCHDOG_S)
    error = json.loads(out)["error"]
    assert (process.returncode, error["code"], error["message"]) == (4, code, message)


def test_doctor_is_content_with_a_whole_pack(skillpack):
    done = skillpack("doctor", "--json")
    findings = json.loads(done.stdout)
    assert (done.returncode, findings["ok"]) == (0, True)
    found = findings["environment"]
    assert set(found) == {"skillpack", "python", "klayout_module", "programs", "libraries", "process_kits"}
    assert set(found["programs"]) == {"klayout", "netgen", "ngspice", "magic", "kpex"}
    assert set(found["libraries"]) == {"dask", "scipy"}
    assert b"bench: bench.run_mode" in skillpack("doctor").stdout


def test_doctor_tells_which_programs_libraries_and_process_kits_are_there(tmp_path, monkeypatch):
    from skillpack import Catalog, Tools
    from skillpack.commands import authoring as doctor

    program = tmp_path / "bin" / "magic"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for kit in ("sky130A/libs.tech", "ihp-sg13g2/libs.tech", "notes"):
        (tmp_path / "kits" / kit).mkdir(parents=True)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("PDK_ROOT", str(tmp_path / "kits"))
    monkeypatch.setattr(doctor, "LIBRARIES", {"dask": "no-such-distribution", "scipy": "click"})

    def shown():
        findings = doctor.examine(Catalog(), Tools({}))
        return findings["environment"], [" ".join(line.split()) for line in doctor.report(findings).splitlines()]

    found, lines = shown()
    assert (found["programs"]["magic"], found["programs"]["ngspice"]) == (str(program), None)
    assert f"magic {program}" in lines
    assert "ngspice not found (optional)" in lines
    assert "dask not installed (optional, extra explore)" in lines
    assert f"scipy {found['libraries']['scipy']}" in lines
    assert lines[-1] == f"PDK_ROOT {tmp_path}/kits: ihp-sg13g2, sky130A"

    (tmp_path / "none").mkdir()
    monkeypatch.setenv("PDK_ROOT", str(tmp_path / "none"))
    assert shown()[1][-1].endswith("no process kit, which has a folder libs.tech")
    monkeypatch.delenv("PDK_ROOT")
    assert "not set (optional" in shown()[1][-1]


def test_doctor_tells_what_was_lost_and_why(skillpack, write_skill, tmp_path):
    write_skill("bad", "no frontmatter")
    write_skill("bench", root="more")
    write_skill("third", files={"skill.yaml": "tools: [{id: t.x}]"})
    done = skillpack("doctor", "--skills-dir", str(tmp_path / "skills"), "--skills-dir", str(tmp_path / "more"))
    text = done.stdout.decode()
    assert done.returncode == 1
    assert f"{tmp_path}/skills/bad/SKILL.md: does not start with a line '---'" in text
    assert f"{tmp_path}/more/bench/SKILL.md: {tmp_path}/skills/bench/SKILL.md comes first" in text
    assert "t.x: " in text
    assert "has no script" in text
    assert b"2 skills or tools were left out" in skillpack("list").stderr


def test_doctor_tells_dependencies_that_are_not_met_but_loses_no_tool_for_them(skillpack, tmp_path):
    with (tmp_path / "skills/bench/skill.yaml").open("a") as file:
        file.write("    dependencies: [bench.run_mod]\n")
    done = skillpack("doctor", "--json")
    (problem,) = json.loads(done.stdout)["dependency_problems"]
    assert (problem["tool"], problem["needs"], problem["kind"]) == ("bench.run_mode", "bench.run_mod", "missing")
    assert f"Dependencies not met:\n  {problem['message']}\n" in skillpack("doctor").stdout.decode()
    assert done.returncode == 0


def test_doctor_executes_nothing_of_the_folder_it_is_called_in(tmp_path, monkeypatch):
    """As ``python -c`` would, which looks for modules there first."""
    from skillpack.commands import authoring as doctor

    (tmp_path / "klayout").mkdir()
    (tmp_path / "klayout" / "__init__.py").write_text("open('canary', 'w')\n")
    monkeypatch.chdir(tmp_path)
    doctor.environment()
    assert not (tmp_path / "canary").exists()


STRANGE = "ring\x07 \u202egnp \x9b2J\nfake: line"


def test_text_of_an_untrusted_skill_controls_no_terminal_and_makes_no_lines(skillpack, write_skill):
    tool = {"id": "a.b", "script": "scripts/x.py", "description": STRANGE, "intent_tags": [STRANGE, "strange"]}
    whole = {**tool, "dependencies": [STRANGE], "input_schema": {}, "output_schema": {}}
    bad = {**tool, "id": STRANGE}
    write_skill("odd", files={"skill.yaml": json.dumps({"tools": [whole, bad]}), "scripts/x.py": ""})
    for command in (["tools"], ["doctor"], ["validate"], ["intent", "strange"], ["intent", STRANGE]):
        done = skillpack(*command)
        told = (done.stdout + done.stderr).decode()
        assert not set(told) & {"\x07", "\u202e", "\x9b"}, command
        assert "\nfake" not in told, command


def test_roots_come_from_the_option_else_the_environment_else_the_pack_itself(skillpack, write_skill, tmp_path):
    write_skill("one", root="a")
    write_skill("two", root="b")
    env = {"SKILLPACK_PATH": os.pathsep.join([str(tmp_path / "b"), str(tmp_path / "a")])}
    assert skillpack("list", roots=(), env=env).stdout.decode().split("\n")[0] == "- two: Does a thing."
    option = ("--skills-dir", str(tmp_path / "a"))
    assert skillpack("list", roots=option, env=env).stdout.decode() == "- one: Does a thing.\n"
    own = json.loads(skillpack("doctor", "--json", roots=()).stdout)["roots"]
    assert len(own) == 1
    assert Path(own[0]).name in {"skills", "bundled_skills"}


def test_text_beyond_ascii_is_printed_whatever_the_terminal_says(skillpack, write_skill):
    write_skill("zh", description="画一个晶体管")
    done = skillpack("list", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert "画一个晶体管" in done.stdout.decode()


@pytest.mark.parametrize("command", ["list", "prompt", "show", "read", "run", "doctor"])
def test_every_command_has_help(skillpack, command):
    done = skillpack(command, "--help", roots=())
    assert done.returncode == 0
    assert b"--skills-dir" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is full")
@pytest.mark.parametrize("arguments", [["list"], ["prompt"], ["read", "netlist-parse", "skill.yaml"]])
def test_a_full_disk_is_reported_in_one_line(arguments):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "skillpack", *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (2, "skillpack: the answer cannot be written: the disk is full\n")


@pytest.mark.parametrize("arguments", ["list", "--help", "show mos-pcell", "run no.such_tool"])
def test_no_answer_vanishes_into_a_closed_standard_output(arguments):
    command = f'"$0" -m skillpack {arguments} >&-'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable], capture_output=True, text=True, check=False, timeout=60
    )
    message = "skillpack: the answer cannot be written: standard output is closed\n"
    assert (done.returncode, done.stderr) == (2, message)


@pytest.mark.parametrize("command", [["list"], ["search", "count"], ["show", "unnamed"], ["tools"]])
def test_a_skill_without_a_name_is_used_with_a_warning(tmp_path, command):
    home = tmp_path / "unnamed"
    home.mkdir()
    (home / "SKILL.md").write_text("---\ndescription: Count words.\n---\nbody\n")
    done = subprocess.run(
        [*forked.skillpack(), "--skills-dir", str(tmp_path), *command],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr.count("the frontmatter has no name") == 1
    if command != ["tools"]:
        assert "unnamed" in done.stdout or "body" in done.stdout
