"""A call that computes in C++ with Python's lock held, or crashes, is answered all the same (S0.1, S0.2)."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from patience import WATCHDOG_S, gone

# An endless loop in C that never gives up the global lock, like a long KLayout call.
HOLDS_THE_LOCK = """
import itertools
sys.stderr.write(f"{os.getpid()}\\n")
sys.stderr.flush()
max(itertools.repeat(1))
"""


def start(skill, *arguments):
    pipe = subprocess.PIPE
    return subprocess.Popen(skill.command(*arguments), stdin=pipe, stdout=pipe, stderr=pipe)


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [
        (signal.SIGTERM, "TIMEOUT", "stopped by SIGTERM before the work was done"),
        (signal.SIGINT, "INTERNAL_ERROR", "interrupted before the work was done"),
    ],
)
def test_a_signal_ends_a_call_that_holds_the_lock_with_an_envelope(make_skill, tmp_path, number, code, message):
    log = tmp_path / "calls.jsonl"
    with start(make_skill(HOLDS_THE_LOCK), "--w", "1", "--log", str(log)) as process:
        worker = int(process.stderr.readline())
        process.send_signal(number)
        (line,) = process.communicate(timeout=WATCHDOG_S)[0].splitlines()
    envelope = json.loads(line)
    assert (envelope["error"]["code"], envelope["error"]["message"]) == (code, message)
    assert process.returncode == 4
    assert gone(worker)
    (record,) = map(json.loads, log.read_text().splitlines())
    assert (record["params"], record["result"]["error"]["code"]) == ({"w": 1}, code)


def test_a_served_call_that_holds_the_lock_is_answered_at_its_deadline(make_skill):
    with start(make_skill(HOLDS_THE_LOCK), "--serve") as process:
        process.stdin.write(b'{"id": "late", "params": {"w": 1}, "timeout_s": 0.2}\n')
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        worker = int(process.stderr.readline())
        assert process.wait(timeout=WATCHDOG_S) == 4
    assert (answer["id"], answer["error"]["code"], answer["last"]) == ("late", "TIMEOUT", True)
    assert answer["error"]["details"] == {"timeout_s": 0.2}
    assert gone(worker)


def test_a_served_python_call_is_stopped_at_its_deadline_and_the_next_ones_are_not(make_skill):
    skill = make_skill("""
    import time
    time.sleep(params["w"])
    return {"params": {}, "context": context, "passed": True}
    """)
    with start(skill, "--serve") as process:
        requests = [{"id": n, "params": {"w": w}, "timeout_s": 600} for n, w in ((1, 0.01), (2, 0.01))]
        requests.append({"id": 3, "params": {"w": 600}, "timeout_s": 0.1})
        stdout, _ = process.communicate(b"".join(json.dumps(r).encode() + b"\n" for r in requests), timeout=WATCHDOG_S)
    got = [json.loads(line) for line in stdout.splitlines()]
    assert [(answer["id"], answer["ok"]) for answer in got] == [(1, True), (2, True), (3, False)]
    assert got[2]["error"]["code"] == "TIMEOUT"


def test_a_crash_is_an_envelope(make_skill):
    run = make_skill("os.kill(os.getpid(), 11)\nimport time\ntime.sleep(600)").run("--w", "1")
    assert run.code == 4
    assert (run.error["code"], run.error["details"]) == ("INTERNAL_ERROR", {"ended_with": "SIGSEGV"})


def test_a_library_that_leaves_the_process_is_an_envelope(make_skill):
    run = make_skill("os._exit(0)").run("--w", "1")
    assert run.code == 4
    assert run.error["message"] == "the tool's process ended with exit code 0 before it answered"


def test_a_worker_does_not_outlive_a_killed_supervisor(make_skill):
    with start(make_skill(HOLDS_THE_LOCK), "--w", "1") as process:
        worker = int(process.stderr.readline())
        os.kill(process.pid, signal.SIGKILL)
        assert gone(worker)


def test_a_call_leaves_nothing_behind_for_the_caller_to_wait_for(skill):
    """The pipes close when the answer is written: no process keeps them open."""
    with start(skill, "--w", "1") as process:
        stdout, stderr = process.communicate(timeout=WATCHDOG_S)
    assert (process.returncode, json.loads(stdout)["ok"], stderr) == (0, True, b"")
