"""Tools run in processes of their own: whatever they do, the answer is one envelope (S0.1, S0.2, S1.3)."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from patience import WATCHDOG_S, gone
from skillpack import Runner, find_tools, scan
from sturdy import bounded_run
from sturdy.bounded_run import STDERR_TAIL_BYTES, Cancellation, marked, run_bounded

TOOL = "bench.run_mode"
GOOD = '{"ok": true, "error": null, "data": {"total": 1}, "duration_ms": 5}'


@pytest.fixture
def run(write_tool, tmp_path):
    """Run a tool whose script is ``source``; return the call."""

    def call(source, params=None, **options):
        write_tool(source)
        tools = find_tools(scan([tmp_path / "skills"]).skills.values())
        assert tools.faults == ()
        return Runner(tools.by_id, timeout=WATCHDOG_S).run(TOOL, {"mode": "x"} if params is None else params, **options)

    return call


SKILL_SCRIPT = """
    import sys
    from skillscript import main

    def execute(params, context):
        print("talk")
        print("progress", file=sys.stderr)
        return {"total": params["count"] + len(context["memory_summary"])}

    if __name__ == "__main__":
        raise SystemExit(main(__file__, "bench.run_mode", execute, violates=lambda data: data["total"] > 9))
    """


def test_a_skill_script_answers_with_defaults_and_context(run):
    call = run(SKILL_SCRIPT, context={"memory_summary": "abc"})
    assert (call.result.ok, call.result.data, call.result.exit_code) == (True, {"total": 4}, 0)
    assert "progress" in call.stderr
    assert set(call.envelope) == {"ok", "error", "data", "duration_ms"}


def test_a_design_that_violates_is_a_result_with_exit_code_1(run):
    call = run(SKILL_SCRIPT, {"mode": "x", "count": 10})
    assert (call.result.ok, call.result.exit_code) == (True, 1)


def test_a_context_too_long_for_an_argument_arrives_whole(run):
    assert run(SKILL_SCRIPT, context={"memory_summary": "x" * 300_000}).result.data == {"total": 300_001}


def test_all_input_faults_are_reported_before_anything_is_started(run, tmp_path):
    marker = tmp_path / "started"
    result = run(f"open({str(marker)!r}, 'w')", {"mode": 3, "cuont": 1}).result
    assert (result.error.code, result.exit_code) == ("INVALID_PARAM", 2)
    assert len(result.error.details["errors"]) == 2
    assert not marker.exists()


@pytest.mark.parametrize("params", [[], None, "x", {"mode": float("nan")}, {"mode": object()}, {1: 2}])
def test_params_that_are_no_json_object_are_refused(write_tool, tmp_path, params):
    write_tool("")
    tools = find_tools(scan([tmp_path / "skills"]).skills.values())
    assert Runner(tools.by_id).run(TOOL, params).result.error.code == "INVALID_PARAM"


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), 1e300, 1e7])
def test_a_senseless_timeout_is_refused(run, timeout):
    assert run("", timeout=timeout).result.error.code == "INVALID_PARAM"


def test_an_unknown_tool_is_reported_with_the_nearest_id(write_tool, tmp_path):
    write_tool("")
    tools = find_tools(scan([tmp_path / "skills"]).skills.values())
    error = Runner(tools.by_id).run("bench.run_mod", {}).result.error
    assert (error.code, error.message) == (
        "INVALID_PARAM",
        "unknown tool 'bench.run_mod'; did you mean 'bench.run_mode'?",
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param("import os; os.kill(os.getpid(), 11)", "was ended by SIGSEGV", id="segfault"),
        pytest.param("import ctypes; ctypes.string_at(0)", "was ended by SIGSEGV", id="real segfault"),
        pytest.param("import os; os._exit(7)", "ended with exit code 7", id="exit"),
        pytest.param("raise RuntimeError('/secret/path')", "ended with exit code 1", id="exception"),
        pytest.param("this is no Python", "ended with exit code 1", id="syntax error"),
        pytest.param("", "ended with exit code 0", id="silence"),
        pytest.param("print('hello')", "without a valid answer", id="text"),
        pytest.param("print('[1]')", "without a valid answer", id="not an object"),
        pytest.param("print('{}')", "without a valid answer", id="not an envelope"),
        pytest.param("print('[' * 100000)", "without a valid answer", id="deep nesting"),
        pytest.param("import sys; sys.stdout.buffer.write(b'\\xff\\xfe')", "without a valid answer", id="bytes"),
        pytest.param(f"print('{GOOD}'); print('bye')", "without a valid answer", id="talk after the answer"),
        pytest.param(
            f"print('{GOOD.replace('null', '3')}')", "without a valid answer", id="an envelope that contradicts itself"
        ),
        pytest.param(
            """print('{"ok": false, "error": {"code": "OOPS"}, "data": null, "duration_ms": 1}')""",
            "without a valid answer",
            id="an unknown error code",
        ),
        pytest.param(
            f"print('{GOOD}', flush=True); import os; os.abort()", "SIGABRT after its answer", id="late crash"
        ),
        pytest.param(
            f"print('{GOOD.replace('total', 'sum')}')", "its output schema refuses", id="data against the schema"
        ),
    ],
)
def test_a_tool_that_breaks_its_promise_is_an_internal_error(run, source, message):
    call = run(source)
    error = call.result.error
    assert (error.code, call.result.exit_code) == ("INTERNAL_ERROR", 4)
    assert message in error.message
    assert "/" not in error.message


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param("", "it printed nothing", id="silence"),
        pytest.param("print('hello')", "what it printed is not JSON", id="text"),
        pytest.param(f"print('{GOOD.replace('1', 'NaN')}')", "data.total is nan, which JSON cannot hold", id="NaN"),
        pytest.param(f"print('{GOOD.replace('5', '1.5')}')", "'duration_ms' must be an integer", id="duration"),
        pytest.param("print('talk'); print('{}')", "not an envelope: lacks ok, error", id="no envelope"),
    ],
)
def test_an_answer_that_is_none_is_refused_with_the_reason(run, source, reason):
    error = run(source).result.error
    assert reason in error.message
    assert reason in error.details["reason"]


def test_talk_before_the_answer_is_forgiven(run):
    assert run(f"print('hello'); print('{GOOD}')").result.data == {"total": 1}


def test_an_error_envelope_is_passed_on(run):
    error = '{"code": "RULE_NOT_FOUND", "message": "m", "details": null}'
    text = f'{{"ok": false, "error": {error}, "data": null, "duration_ms": 1}}'
    call = run(f"import sys; print('{text}'); sys.exit(2)")
    assert (call.result.error.code, call.result.exit_code) == ("RULE_NOT_FOUND", 2)


def test_endless_output_ends_the_tool(monkeypatch, run):
    monkeypatch.setattr("sturdy.bounded_run.MAX_STDOUT_BYTES", 1 << 20)
    error = run("import sys\nwhile True: sys.stdout.write('x' * 65536)", timeout=600).result.error
    assert (error.code, "more output than is allowed" in error.message) == ("INTERNAL_ERROR", True)


def test_much_talk_on_stderr_neither_blocks_nor_is_kept(run):
    call = run(f"import sys; sys.stderr.write('x' * 5_000_000 + 'end'); print('{GOOD}')")
    assert call.result.ok
    assert len(call.stderr) == STDERR_TAIL_BYTES
    assert call.stderr.endswith("end")


def test_stderr_arrives_while_the_tool_works(run):
    """The tool would sleep for ever; what it said is what ends it."""
    cancellation, arrived = Cancellation(), []
    source = f"import sys, time; print('go', file=sys.stderr, flush=True); time.sleep(600); print('{GOOD}')"

    def note(chunk):
        arrived.append(chunk)
        cancellation.cancel()

    call = run(source, timeout=600, on_stderr=note, cancellation=cancellation)
    assert call.result.error.details == {"cancelled": True}
    assert b"".join(arrived).startswith(b"go")  # print() may write the end of the line by itself


STUBBORN = """
    import os, signal, subprocess, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session={new_session})
    print(os.getpid(), child.pid, file=sys.stderr, flush=True)
    while True:
        {work}
    """


@pytest.mark.parametrize(
    ("work", "new_session"),
    [
        pytest.param("time.sleep(1)", False, id="sleeps, grandchild in the group"),
        pytest.param("pass", True, id="computes, grandchild in its own session"),
        pytest.param("print('x', flush=True); time.sleep(0.01)", True, id="prints, grandchild in its own session"),
    ],
)
def test_a_timeout_kills_the_tool_and_its_children_whatever_they_ignore(run, new_session, work):
    for limit in (1.5, 10, 100):  # a busy machine may take longer to start the two processes
        call = run(STUBBORN.format(new_session=new_session, work=work), timeout=limit)
        assert (call.result.error.code, call.result.exit_code) == ("TIMEOUT", 4)
        assert (
            call.result.error.message == f"tool bench.run_mode took longer than {limit} s and was killed; "
            "a longer timeout may let it end"
        )
        assert call.result.duration_ms >= 900 * limit
        pids = [int(word) for word in call.stderr.split()]
        if len(pids) == 2:
            break
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


@pytest.mark.parametrize("new_session", [False, True])
def test_children_that_a_finished_tool_left_behind_do_not_delay_the_answer_or_stay(run, new_session):
    source = f"""
    import subprocess, sys
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session={new_session})
    print(child.pid, file=sys.stderr)
    print('{GOOD}')
    """
    call = run(source)
    assert call.result.ok
    assert gone(int(call.stderr))


def test_a_daemon_that_holds_no_pipe_does_not_outlive_the_call(run, tmp_path):
    note = tmp_path / "pid"
    detach = f"setsid sh -c 'echo $$ > {note}; exec sleep 600' </dev/null >/dev/null 2>&1 &"
    source = f"""
    import os, pathlib, time
    os.system({detach!r})
    while not (pathlib.Path({str(note)!r}).exists() and pathlib.Path({str(note)!r}).read_text()):
        time.sleep(0.01)
    print('{GOOD}')
    """
    assert run(source).result.ok
    assert gone(int(note.read_text()))


def test_a_child_that_is_just_starting_its_program_is_found(monkeypatch):
    child = subprocess.Popen(["sleep", "600"], env=marked(os.environ, "just-started"), start_new_session=True)
    tell, asked = bounded_run.environment_of, []

    def blank_at_first(place):
        if place.name == str(child.pid) and not asked:
            asked.append(place)
            return b""
        return tell(place)

    monkeypatch.setattr(bounded_run, "environment_of", blank_at_first)
    bounded_run.kill_marked("just-started")
    assert child.wait(WATCHDOG_S) == -signal.SIGKILL


def test_a_timeout_reaches_a_call_made_by_the_called():
    inner = "import os, sys, time; print(os.getpid(), file=sys.stderr, flush=True); time.sleep(600)"
    tell = "lambda chunk: (sys.stderr.write(chunk.decode()), sys.stderr.flush())"
    outer = (
        "import sys; from sturdy.bounded_run import run_bounded\n"
        f"run_bounded([sys.executable, '-c', {inner!r}], b'', 600, on_stderr={tell})"
    )
    for limit in (1.5, 10, 100):  # a busy machine may take longer to start the two processes
        outcome = run_bounded([sys.executable, "-c", outer], b"", limit)
        assert outcome.timed_out
        if outcome.stderr:
            break
    assert gone(int(outcome.stderr))


def test_an_interrupted_caller_leaves_no_process_behind(tmp_path):
    note = tmp_path / "pid"
    code = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"

    def interrupt_when_started():
        while not (note.exists() and note.read_text()):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt_when_started, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_bounded([sys.executable, "-c", code], b"", 30)
    assert gone(int(note.read_text()))


def test_a_program_that_does_not_read_its_input_is_no_fault():
    outcome = run_bounded([sys.executable, "-c", "print('done')"], b"x" * 5_000_000, 20)
    assert (outcome.returncode, outcome.stdout.strip()) == (0, b"done")


def test_calls_from_several_threads_do_not_disturb_each_other(write_tool, tmp_path):
    write_tool(SKILL_SCRIPT)
    runner = Runner(find_tools(scan([tmp_path / "skills"]).skills.values()).by_id)
    answers = {}

    def call(count):
        answers[count] = runner.run(TOOL, {"mode": "x", "count": count}).result.data

    threads = [threading.Thread(target=call, args=(count,)) for count in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {count: {"total": count} for count in range(4)}
