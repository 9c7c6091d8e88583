"""``--serve``: one JSON request a line, one envelope a line (S0.1)."""

from __future__ import annotations

import json
import signal
import subprocess

from patience import WATCHDOG_S


def answers(skill, *lines, arguments=()):
    requests = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    run = skill.run("--serve", *arguments, stdin=requests)
    assert run.code == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_requests_are_answered_in_order_with_their_ids(skill):
    got = answers(skill, {"id": 1, "params": {"w": 1}}, {"id": "b", "params": {"w": 2, "label": "dirty"}}, {"id": 3})
    assert [(answer["id"], answer["ok"], answer["exit_code"]) for answer in got] == [
        (1, True, 0),
        ("b", True, 1),
        (3, False, 2),
    ]
    assert got[1]["data"]["params"]["w"] == 2


def test_a_bad_line_is_answered_and_the_worker_lives_on(skill):
    bad = [b"not json", b"[1]", b"\xff", b'{"id": 7, "parms": {}}', b'{"id": {}}', b"[" * 100_000]
    got = answers(skill, *bad, b"", b"  \r", {"id": "last", "params": {"w": 1}})
    assert [answer["ok"] for answer in got] == [False] * 8 + [True]
    assert {answer["error"]["code"] for answer in got[:8]} == {"INVALID_PARAM"}
    assert [answer["id"] for answer in got] == [None, None, None, 7, None, None, None, None, "last"]
    assert "did you mean 'params'?" in got[3]["error"]["message"]


def test_a_line_without_bounds_is_refused_and_skipped(skill):
    huge = b'{"params": {"label": "' + b"x" * 9_000_000 + b'"}}'
    got = answers(skill, huge, {"id": 2, "params": {"w": 1}})
    assert [answer["ok"] for answer in got] == [False, True]
    assert "longer than the 4194304 bytes" in got[0]["error"]["message"]


def test_a_handler_can_neither_eat_requests_nor_spoil_the_answers(make_skill):
    skill = make_skill("""
    eaten = sys.stdin.read() + os.read(0, 100).decode()
    print("talk")
    if params["label"] == "crash":
        raise RuntimeError("boom")
    return {"params": {"eaten": eaten}, "context": context, "passed": True}
    """)
    got = answers(skill, {"params": {"w": 1, "label": "crash"}}, {"params": {"w": 1}})
    assert got[0]["error"]["message"] == "Unexpected error: boom"
    assert got[1]["data"]["params"] == {"eaten": ""}


def test_a_worker_whose_code_was_edited_carries_nothing_out_and_ends(make_skill):
    skill = make_skill("""
    import pathlib
    file = pathlib.Path(__file__)
    file.write_text(file.read_text() + "# edited")
    return {"params": {"w": params["w"]}, "context": context, "passed": True}
    """)
    got = answers(skill, {"id": 1, "params": {"w": 1}}, {"id": 2, "params": {"w": 2}}, {"id": 3, "params": {"w": 3}})
    assert [(answer["id"], answer["ok"], answer.get("stale"), answer.get("last")) for answer in got] == [
        (1, True, None, None),
        (2, False, True, True),
    ]
    assert got[1]["error"]["code"] == "SERVICE_UNAVAILABLE"


def test_what_one_call_changes_in_its_parameters_does_not_reach_the_next(make_skill):
    skill = make_skill("""
    params["nets"].append(1)
    context["user_profile"]["x"] = 1
    return {"params": {"count": len(params["nets"])}, "context": context, "passed": True}
    """)
    got = answers(skill, {"params": {"w": 1}}, {"params": {"w": 1}})
    assert [answer["data"]["params"]["count"] for answer in got] == [1, 1]


def test_served_calls_are_logged(skill, tmp_path):
    log = tmp_path / "calls.jsonl"
    answers(skill, {"params": {"w": 1}}, {"params": {"w": 2}}, arguments=("--log", str(log)))
    assert [json.loads(line)["params"]["w"] for line in log.read_text().splitlines()] == [1, 2]


def test_answers_come_before_the_next_request_and_sigterm_ends_an_idle_worker(skill):
    pipe = subprocess.PIPE
    with subprocess.Popen(skill.command("--serve"), stdin=pipe, stdout=pipe, stderr=pipe) as process:
        for width in (1, 2):
            process.stdin.write(json.dumps({"id": width, "params": {"w": width}}).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == width
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=WATCHDOG_S) == 0
        assert process.stdout.read() == b""
