"""Every outcome of a call is one envelope with the right code and exit code (S0.1, S0.2, S0.15)."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from patience import WATCHDOG_S
from skillscript.install import install_command

EXITS = {
    "DRC_VIOLATION": 1,
    "LAYOUT_CONFLICT": 1,
    "INVALID_PARAM": 2,
    "DEVICE_NOT_FOUND": 2,
    "RULE_NOT_FOUND": 2,
    "UNSUPPORTED_OPERATION": 2,
    "SERVICE_UNAVAILABLE": 3,
    "KLAYOUT_ERROR": 4,
    "TIMEOUT": 4,
    "INTERNAL_ERROR": 4,
}


@pytest.mark.parametrize("code", sorted(EXITS))
def test_each_of_the_ten_codes_reaches_the_envelope_and_the_exit_code(make_skill, code):
    """S0.2."""
    run = make_skill('raise SkillError(params["label"], "why", {"device": "M3"}, {"found": 2})').run(
        "--w", "1", "--label", code
    )
    assert run.error == {"code": code, "message": "why", "details": {"device": "M3"}}
    assert run.envelope["data"] == {"found": 2}
    assert run.code == EXITS[code]
    assert "Traceback" not in run.stderr


def test_a_violating_design_is_ok_with_exit_code_1(skill):
    run = skill.run("--w", "1", "--label", "dirty")
    assert run.code == 1
    assert run.envelope["ok"] is True


def test_an_exception_with_a_known_code_speaks_for_itself(make_skill):
    body = """
    class LayoutkitError(Exception):
        code, details = "DEVICE_NOT_FOUND", {"available_devices": ["M1"]}
    raise LayoutkitError("Device 'M3' not found in circuit")
    """
    run = make_skill(body).run("--w", "1")
    assert run.code == 2
    assert run.error == {
        "code": "DEVICE_NOT_FOUND",
        "message": "Device 'M3' not found in circuit",
        "details": {"available_devices": ["M1"]},
    }


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 1 / 0", "Unexpected error: division by zero"),
        ("open('/secret/place/file.gds')", "Unexpected error: [Errno 2] No such file or directory: 'file.gds'"),
        ("sys.exit(0)", "the tool tried to leave the process (exit 0)"),
        ("def f(): f()\nf()", "Unexpected error: maximum recursion depth exceeded"),
        ("raise KeyboardInterrupt", "interrupted before the work was done"),
        ("return 'free text'", "the tool answered a str, not an object"),
        ("return {'passed': float('nan')}", "the tool's answer is not JSON: passed is nan"),
        ("return {'passed': {1: 2}}", "the tool's answer is not JSON: passed has the key 1"),
        (
            "import numpy\nreturn {'passed': numpy.float64(1)}",
            "the tool's answer is not JSON: passed is a numpy.float64",
        ),
        ("x = []\nx.append(x)\nreturn {'passed': x}", "the tool's answer is not JSON: passed[0]"),
        (
            "return {'params': {}, 'context': {}, 'passed': 1}",
            "the tool's answer does not satisfy its output schema: 'passed' must be true or false, got 1",
        ),
    ],
)
def test_what_a_handler_must_not_do_is_an_internal_error(make_skill, body, message):
    run = make_skill(body).run("--w", "1")
    assert run.code == 4
    assert run.error["code"] == "INTERNAL_ERROR"
    assert run.error["message"].startswith(message)
    assert "/secret" not in run.stdout


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise MemoryError", "there is not enough memory"),
        ("import errno\nraise OSError(errno.ENOSPC, 'No space left on device')", "[Errno 28] No space left"),
        (
            "try: open('/dev/full', 'w',1).write('a\\n')\nexcept OSError as e: raise SkillError('TIMEOUT','no') from e",
            "no",
        ),
    ],
)
def test_a_lack_of_memory_or_disk_space_has_one_code(make_skill, body, message):
    run = make_skill(body).run("--w", "1")
    assert (run.code, run.error["code"]) == (3, "SERVICE_UNAVAILABLE")
    assert run.error["message"].startswith(message)


def test_an_error_is_bounded_however_much_its_tool_says(make_skill):
    body = """
    names = [f"cell_{i:06}" for i in range(20_000)]
    raise SkillError("INVALID_PARAM", ", ".join(names), {"cells": names, "by_name": dict.fromkeys(names, 1)})
    """
    run = make_skill(body).run("--w", "1")
    assert run.error["message"].startswith("cell_000000, cell_000001")
    assert run.error["message"].endswith("(259998 characters)")
    details = run.error["details"]
    assert (details["cells_count"], details["by_name_count"]) == (20_000, 20_000)
    assert details["cells"][:2] == ["cell_000000", "cell_000001"]
    assert len(run.stdout) < 30_000


def test_the_traceback_of_an_unexpected_error_goes_to_standard_error(make_skill):
    assert "ZeroDivisionError" in make_skill("return 1 / 0").run("--w", "1").stderr


def test_details_that_are_no_json_do_not_lose_the_error(make_skill):
    run = make_skill('raise SkillError("TIMEOUT", "late", {"x": {1, 2}})').run("--w", "1")
    assert run.error == {
        "code": "TIMEOUT",
        "message": "late",
        "details": {"details_dropped": "x is a builtins.set, not a JSON value"},
    }


def test_tuples_become_arrays(make_skill):
    run = make_skill('return {"params": {"a": (1, (2,))}, "context": {}, "passed": True}').run("--w", "1")
    assert run.envelope["data"]["params"] == {"a": [1, [2]]}


def test_standard_output_carries_only_the_envelope(make_skill):
    body = """
    import ctypes, subprocess
    print("python talk")
    sys.__stdout__.write("original stream\\n")
    os.write(1, b"descriptor talk\\n")
    ctypes.CDLL(None).puts(b"library talk")
    subprocess.run(["echo", "child talk"])
    return {"params": {}, "context": {}, "passed": True}
    """
    run = make_skill(body).run("--w", "1")
    assert run.envelope["ok"] is True
    for who in ("python talk", "original stream", "descriptor talk", "library talk", "child talk"):
        assert who in run.stderr


def test_sigterm_ends_a_call_with_a_timeout_envelope(make_skill):
    skill = make_skill("""
    import time
    sys.stderr.write("working\\n")
    sys.stderr.flush()
    time.sleep(20)
    """)
    with subprocess.Popen(skill.command("--w", "1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr.readline() == b"working\n"
        process.send_signal(signal.SIGTERM)
        envelope = json.loads(process.communicate(timeout=WATCHDOG_S)[0])
    assert envelope["error"]["code"] == "TIMEOUT"
    assert process.returncode == 4


def test_ctrl_c_ends_a_call_with_an_envelope(make_skill):
    skill = make_skill("os.kill(os.getpid(), 2)\nimport time\ntime.sleep(20)")
    run = skill.run("--w", "1")
    assert run.code == 4
    assert run.error["message"] == "interrupted before the work was done"


def test_a_reader_that_has_gone_is_no_noise_but_no_success_either(skill):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        skill.command("--w", "1"), stdout=write, stderr=subprocess.PIPE, check=False, timeout=WATCHDOG_S
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (4, b"")


def test_a_file_name_outside_the_locale_is_a_wrong_parameter(make_skill):
    skill = make_skill("open(chr(233))")
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(skill.command("--w", "1"), env=plain, stdout=subprocess.PIPE, check=False, timeout=WATCHDOG_S)
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "INVALID_PARAM")


def test_a_closed_standard_error_ends_nothing(make_skill):
    skill = make_skill(
        "print(1, file=sys.stderr)\nsys.stderr.flush()\nreturn {'params': {}, 'context': {}, 'passed': True}"
    )
    shell = ["sh", "-c", 'exec "$@" 2>&-', "sh", *skill.command("--w", "1")]
    done = subprocess.run(shell, stdout=subprocess.PIPE, check=False, timeout=WATCHDOG_S)
    assert done.returncode == 0, done.stdout
    assert b'"ok": true' in done.stdout


def test_a_full_disk_under_standard_output_is_reported(skill):
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            skill.command("--w", "1"), stdout=full, stderr=subprocess.PIPE, check=False, timeout=WATCHDOG_S
        )
    assert done.returncode == 4
    assert b"the answer cannot be written: No space left on device" in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_do_not_break_a_call(skill, closed):
    done = subprocess.run(
        ["sh", "-c", f'"$0" "$@" {closed}', *skill.command("--w", "1")],
        capture_output=True,
        check=False,
        timeout=WATCHDOG_S,
    )
    if ">&-" not in closed.replace("2>&-", ""):
        assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True)
        return
    assert (done.returncode, done.stdout) == (4, b"")  # nobody can have read the answer
    if "2>&-" not in closed:
        assert done.stderr == b"the answer cannot be written: standard output is closed\n"


@pytest.mark.parametrize("option", ["--help", "--schema", "--serve"])
def test_no_other_answer_vanishes_into_a_closed_standard_output(skill, option):
    command = ["sh", "-c", '"$0" "$@" >&-', *skill.command(option)]
    done = subprocess.run(command, capture_output=True, input=b'{"params": {}}', check=False, timeout=WATCHDOG_S)
    assert done.returncode == 4
    assert b"standard output is closed" in done.stderr


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_a_broken_schema_is_an_internal_error(skill, content):
    schema = skill.folder / "schemas" / "tiny.draw.input.json"
    schema.unlink() if content is None else schema.write_text(content)
    run = skill.run("--w", "1")
    assert run.code == 4
    assert "the tool's schema tiny.draw.input.json" in run.error["message"]


def test_every_call_is_logged_with_inputs_result_version_and_duration(skill, tmp_path):
    """S0.15."""
    log = tmp_path / "calls.jsonl"
    skill.run("--w", "1", "--log", str(log))
    skill.run("--nf", "0", env={"ANALOG_LAYOUT_LOG": str(log)})
    first, second = [json.loads(line) for line in log.read_text().splitlines()]
    assert (first["tool"], first["version"], first["params"]) == ("tiny.draw", "1.2.3", {"w": 1})
    assert first["result"]["data"]["params"]["nf"] == 1
    assert isinstance(first["duration_ms"], int)
    assert second["params"] == {"nf": 0}
    assert second["result"]["error"]["code"] == "INVALID_PARAM"


def test_the_log_keeps_the_traceback(make_skill, tmp_path):
    log = tmp_path / "calls.jsonl"
    make_skill("return 1 / 0").run("--w", "1", "--log", str(log))
    assert "ZeroDivisionError" in json.loads(log.read_text())["traceback"]


def test_a_log_that_cannot_be_written_never_breaks_a_call(skill, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for log in (tmp_path, tmp_path / "no" / "folder", tmp_path / "pipe"):
        run = skill.run("--w", "1", "--log", str(log))
        assert run.code == 0
        assert f"warning: the call log {log} cannot be written" in run.stderr


def test_log_lines_of_concurrent_processes_do_not_mix(make_skill, tmp_path):
    skill = make_skill('return {"params": {"long": "x" * 300_000}, "context": {}, "passed": True}')
    log = tmp_path / "calls.jsonl"
    command = skill.command("--w", "1", "--log", str(log))
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(4)]
    assert [process.wait(timeout=WATCHDOG_S) for process in running] == [0] * 4
    assert [json.loads(line)["result"]["ok"] for line in log.read_text().splitlines()] == [True] * 4


def test_a_library_that_every_installation_has_is_named_with_how_to_install_it(make_skill, tmp_path):
    (tmp_path / "klayout.py").write_text("raise ModuleNotFoundError('hidden', name='klayout.db')")
    run = make_skill(f"sys.path.insert(0, {str(tmp_path)!r})\nimport klayout").run("--w", "1")
    assert (run.code, run.error["code"], run.error["details"]["missing"]) == (3, "SERVICE_UNAVAILABLE", "klayout")
    assert run.error["details"]["command"] == install_command()
    assert run.error["message"].endswith(f"run: {install_command()}")
    other = make_skill("import no_such_module").run("--w", "1")
    assert (other.code, other.error["code"]) == (4, "INTERNAL_ERROR")
