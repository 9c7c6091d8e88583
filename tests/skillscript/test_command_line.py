"""The command line generated from an input schema (S0.1, S1.2, S1.3)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from patience import WATCHDOG_S


def test_flags_become_typed_parameters_and_defaults_are_filled_in(skill):
    run = skill.run("--w", "2e-6", "--nf", "2", "--position", "[1, -2.5]", "--flatten", "--label", "12")
    assert run.code == 0
    assert run.envelope["data"]["params"] == {
        "w": 2e-6,
        "nf": 2,
        "position": [1, -2.5],
        "flatten": True,
        "label": "12",
        "orientation": "R0",
        "nets": [],
        "workspace": "./ws",
    }


def test_context_has_its_four_parts_by_default(skill):
    """S1.2."""
    context = skill.run("--w", "1").envelope["data"]["context"]
    assert context == {"user_profile": {}, "session_context": {}, "memory_summary": "", "content_context": []}


def test_context_is_taken_and_its_types_are_checked(skill):
    given = skill.run("--w", "1", "--context", '{"memory_summary": "short"}')
    assert given.envelope["data"]["context"]["memory_summary"] == "short"
    wrong = skill.run("--context", '{"memory_summary": 3, "user_profil": {}}')
    assert wrong.code == 2
    paths = [fault["path"] for fault in wrong.error["details"]["errors"]]
    assert paths == ["w", "context.memory_summary", "context.user_profil"]
    assert "did you mean 'user_profile'?" in wrong.error["message"]


def test_parameters_come_as_json_text_file_or_stdin_and_flags_override_them(skill, tmp_path):
    text = '{"w": 1, "nf": 3}'
    file = tmp_path / "params.json"
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())
    for source in (text, str(file), f"@{file}", "-"):
        run = skill.run("--params", source, "--w", "5", stdin=text.encode())
        assert run.code == 0, run
        assert (run.envelope["data"]["params"]["w"], run.envelope["data"]["params"]["nf"]) == (5, 3)


@pytest.mark.parametrize("value", ["-1", "-1e-6", "-.5", "-0.5E+3"])
def test_a_negative_number_is_a_value_and_not_an_option(skill, value):
    """S0.4 test table: w=-1 is INVALID_PARAM."""
    run = skill.run("--w", value)
    assert run.code == 2
    assert run.error["details"]["provided_value"] == float(value)
    assert run.error["message"].startswith("'w' must be greater than 0, got -")


def test_booleans_have_a_negative_flag_and_take_true_or_false(skill):
    flags = (["--flatten"], ["--flatten", "true"], ["--flatten=false"], ["--no-flatten"])
    got = [skill.run("--w", "1", *words).envelope["data"]["params"]["flatten"] for words in flags]
    assert got == [True, True, False, False]


def test_everything_wrong_is_reported_at_once_with_suggestions(skill):
    nets = '[{"endpoints": [{"x": "far"}], "widht": 1}]'
    run = skill.run("--orient", "R0", "--nf", "two", "--orientation", "r90", "--nets", nets, "--position", "[1]")
    assert run.code == 2
    assert run.error["code"] == "INVALID_PARAM"
    told = {fault["path"]: fault["message"] for fault in run.error["details"]["errors"]}
    assert told == {
        "--orient": "Unknown option: --orient; did you mean '--orientation'?",
        "nets[0].endpoints[0].x": "'nets[0].endpoints[0].x' must be a number, got string \"far\"",
        "nets[0].widht": "Unknown param: nets[0].widht; did you mean 'width'?",
        "nf": "Number of fingers must be positive integer",
        "orientation": "Invalid orientation: r90",
        "position": "'position' must have at least 2 items, got array [1]",
        "w": "Missing required param: w",
    }
    assert run.error["message"] == "; ".join(told.values())


def test_one_fault_gives_exactly_the_message_of_the_seed(skill):
    """S0.4: the error table's text is the whole message."""
    assert skill.run("--w", "1", "--nf", "0").error["message"] == "Number of fingers must be positive integer"
    assert skill.run("--w", "1", "--orientation", "R45").error == {
        "code": "INVALID_PARAM",
        "message": "Invalid orientation: R45",
        "details": {
            "param_name": "orientation",
            "provided_value": "R45",
            "errors": [
                {
                    "path": "orientation",
                    "message": "Invalid orientation: R45",
                    "provided_value": "R45",
                    "allowed": ["R0", "R90", "MX"],
                },
            ],
        },
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--w"], "--w: needs a value"),
        (["--w", "1", "--w", "2"], "--w: is given 2 times; give it once"),
        (["--w", "1", "stray"], "Unexpected argument: stray; parameters are given as --name VALUE"),
        (["--w", "1", "--nets", "[{"], "--nets: Invalid JSON format: Expecting property name"),
        (["--w", "1", "--pretty=yes"], "argument --pretty: ignored explicit argument 'yes'"),
        (["--params", "[1]"], "params must be an object, got array [1]"),
        (["--params", '{"w": 1, "w": 2}'], '--params: Invalid JSON format: key "w" appears twice'),
        (["--params", '{"w": NaN}'], "--params: Invalid JSON format: NaN is not a JSON number"),
        (["--params", '{"w": 1e999}'], "--params: w is inf, which JSON cannot hold"),
        (["--params", "nowhere.json"], '--params: cannot read string "nowhere.json": No such file or directory'),
        (["--params", "."], "--params: is not a regular file: ."),
        (["--w", "1", "--label", ""], "'label' must not be empty"),
        (["--w", "nan"], "'w' must be a number, got string \"nan\""),
        (["--w", "1_0"], "'w' must be a number, got string \"1_0\""),
        (["--w", "9" * 400], "'w' is "),
        (["--w", "1", "--serve"], "--serve takes parameters and context"),
    ],
)
def test_a_wrong_command_line_is_answered_with_an_envelope(skill, arguments, message):
    run = skill.run(*arguments)
    assert run.code == 2
    assert run.error["code"] == "INVALID_PARAM"
    assert run.error["message"].startswith(message)


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        (b"", "--params: Invalid JSON format: Expecting value"),
        (b"\xff\xfe{}", "--params: is not UTF-8 text (byte 0)"),
        (b"[" * 200_000, "--params: is nested deeper than the 64 levels allowed"),
        (b'{"nets": ' + b"[" * 70 + b"]" * 70 + b"}", "--params: nets[0]"),
        (b'{"label": "' + b"x" * 5_000_000 + b'"}', "--params: is longer than the 4194304 bytes allowed"),
        (b'{"w": 1, "label": "a\\u0000b"}', "--params: label holds a NUL character"),
        (b'{"w": 1, "label": "\\ud800"}', "--params: label holds a lone surrogate"),
        (b'{"w": 1' + b"0" * 5000 + b"}", "--params: Invalid JSON format: Exceeds the limit"),
    ],
)
def test_hostile_json_is_refused_quickly(skill, stdin, message):
    run = skill.run("--params", "-", stdin=stdin)
    assert run.code == 2
    assert run.error["message"].startswith(message)
    assert len(run.stdout) < 4000


def test_a_flag_that_is_no_unicode_text_is_refused(skill):
    assert skill.run("--w", "1", "--label", "\udcff").error["message"] == (
        "'label' holds a lone surrogate, which is not valid Unicode text"
    )


def test_the_environment_can_stand_in_for_a_default(skill):
    env = {"TINY_WORKSPACE": "/designs/ota"}
    assert skill.run("--w", "1", env=env).envelope["data"]["params"]["workspace"] == "/designs/ota"
    assert skill.run("--w", "1", "--workspace", "x", env=env).envelope["data"]["params"]["workspace"] == "x"


def test_help_names_every_flag_unit_default_and_example(skill):
    run = skill.run("--help")
    assert run.code == 0
    for text in (
        "--w NUMBER",
        "Gate width, 100% drawn. [m] [required]",
        "{R0,R90,MX}",
        '[default: "R0"]',
        "--no-flatten",
    ):
        assert text in run.stdout
    for flag in ("--params", "--context", "--log", "--serve", "--schema", "--pretty", "--help"):
        assert flag in run.stdout
    assert "--w 2e-06 --nf 2 --position '[1, -2]' --flatten" in run.stdout


def test_schema_prints_both_schemas(skill):
    shown = json.loads(skill.run("--schema").stdout)
    assert shown["tool"] == "tiny.draw"
    assert shown["input"]["required"] == ["w"]
    assert shown["output"]["required"] == ["params", "context", "passed"]


def test_pretty_indents_the_same_envelope(skill):
    run = skill.run("--w", "1", "--pretty")
    assert json.loads(run.stdout)["ok"] is True
    assert run.stdout.startswith('{\n  "ok": true')


@pytest.mark.parametrize("arguments", [["--help"], ["--schema"], ["--w", "1"]])
def test_no_heavy_module_is_imported_for_help_or_a_valid_call(skill, arguments):
    command = [sys.executable, "-X", "importtime", skill.script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=WATCHDOG_S)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "skillscript" in imported
    assert imported & {"klayout", "jsonschema", "yaml", "numpy", "click", "referencing", "typing"} == set()
