"""Warm workers: fast calls that are as separate as cold ones, and nothing that outlives its time (S0.1, S0.15)."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from patience import WATCHDOG_S, gone
from skillpack import Runner, WorkerPool, find_tools, scan
from skillpack.execution.tool_process import tool_environment
from sturdy.bounded_run import Cancellation

TOOL = "bench.run_mode"
SCRIPT = """
    import os, signal, subprocess, sys, threading, time
    from skillscript import SkillError, main

    LOADED = time.time_ns()

    def execute(params, context):
        mode, count = params["mode"], params["count"]
        print(f"talk {count}", file=sys.stderr)
        if mode == "hang":
            print(f"pid {os.getpid()}", file=sys.stderr, flush=True)
            time.sleep(600)
        if mode == "hang in C":
            print(f"pid {os.getpid()}", file=sys.stderr, flush=True)
            signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
            sum(iter(int, 1))
        if mode == "sleep":
            time.sleep(0.3)
        if mode == "meet":
            here = os.path.dirname(__file__)
            open(f"{here}/met.{os.getpid()}", "w").close()
            while sum(name.startswith("met.") for name in os.listdir(here)) < count:
                time.sleep(0.01)
        if mode == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if mode == "raise":
            raise RuntimeError("unexpected")
        if mode == "refuse":
            raise SkillError("UNSUPPORTED_OPERATION", "no")
        if mode == "spoil":
            os.chdir("/")
            os.environ["SPOILT"] = "yes"
            sys.path.insert(0, "/spoilt")
        if mode == "look":
            return {"total": int(os.getcwd() == "/" or "SPOILT" in os.environ or "/spoilt" in sys.path)}
        if mode == "thread":
            threading.Thread(target=time.sleep, args=(600,)).start()
        if mode == "child":
            child = subprocess.Popen(["sleep", "600"], start_new_session=True)
            return {"total": child.pid}
        if mode == "echo":
            return {"total": count}
        return {"total": os.getpid()}

    if __name__ == "__main__":
        raise SystemExit(main(__file__, "bench.run_mode", execute, violates=lambda data: data["total"] == 13))
    """


@pytest.fixture
def make_runner(write_tool, tmp_path):
    """Make runners of the tool, closed afterwards."""
    made = []

    def make(source=SCRIPT, extra="", *, timeout=WATCHDOG_S, log=None, **pool):
        if not made:
            write_tool(source, extra=extra)
        tools = find_tools(scan([tmp_path / "skills"]).skills.values())
        assert tools.faults == ()
        made.append(Runner(tools, timeout=timeout, pool=WorkerPool(**pool), log=log))
        return made[-1]

    yield make
    for runner in made:
        runner.close()


@pytest.fixture
def runner(make_runner):
    return make_runner()


def ask(runner, mode, count=1, **options):
    return runner.run(TOOL, {"mode": mode, "count": count}, **options)


def total(runner, mode, count=1, **options):
    call = ask(runner, mode, count, **options)
    assert call.result.ok, call
    return call.result.data["total"]


def in_threads(*functions):
    answers = [None] * len(functions)

    def work(index):
        answers[index] = functions[index]()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_the_second_call_is_answered_by_the_first_ones_process(runner):
    first, second = ask(runner, "pid"), ask(runner, "pid")
    assert first.result.data == second.result.data
    assert (first.warm, second.warm, second.envelope["ok"]) == (True, True, True)


def test_errors_verdicts_and_the_context_arrive_as_from_a_cold_call(runner):
    assert ask(runner, "refuse").result.error.code == "UNSUPPORTED_OPERATION"
    assert ask(runner, "echo", 13).result.exit_code == 1
    assert ask(runner, "echo", context={"memory": ""}).result.error.code == "INVALID_PARAM"
    assert ask(runner, "echo", context={"memory_summary": "x" * 300_000}).result.ok


def test_each_call_has_its_own_stderr(runner):
    assert [ask(runner, "echo", count).stderr for count in (1, 2)] == ["talk 1\n", "talk 2\n"]


def test_what_a_call_does_to_folder_environment_and_path_the_next_does_not_see(runner):
    process = total(runner, "pid")
    ask(runner, "spoil")
    assert total(runner, "look") == 0
    assert total(runner, "pid") == process


@pytest.mark.parametrize("mode", ["crash", "raise", "thread", "child"])
def test_after_a_call_that_leaves_a_doubtful_process_the_next_gets_a_new_one(runner, mode):
    process = total(runner, "pid")
    call = ask(runner, mode)
    if mode == "crash":
        assert "ended with SIGSEGV before it answered" in call.result.error.message
    if mode == "child":
        assert gone(call.result.data["total"])
    assert total(runner, "pid") != process
    assert gone(process)


def test_a_worker_that_died_while_idle_is_replaced(runner):
    process = total(runner, "pid")
    os.kill(process, signal.SIGKILL)
    assert gone(process)
    assert total(runner, "pid") != process


def test_a_worker_that_dies_as_the_request_arrives_is_replaced(runner):
    process = total(runner, "pid")
    supervisor = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(supervisor, signal.SIGSTOP)  # as if it had no time yet to notice the worker's end
    os.kill(process, signal.SIGKILL)
    assert gone(process)
    later = threading.Timer(0.3, os.kill, (supervisor, signal.SIGCONT))
    later.start()
    assert total(runner, "pid") != process
    later.join()


@pytest.mark.parametrize("mode", ["hang", "hang in C"])
def test_a_timeout_kills_the_worker_and_the_next_call_works(runner, mode):
    total(runner, "echo")
    call = ask(runner, mode, timeout=0.8)
    assert (call.result.error.code, call.result.exit_code) == ("TIMEOUT", 4)
    assert (
        call.result.error.message == "tool bench.run_mode took longer than 0.8 s and was killed; "
        "a longer timeout may let it end"
    )
    assert gone(int(call.stderr.split()[-1]))
    assert total(runner, "echo", 3) == 3


@pytest.mark.parametrize("warm", [True, False])
def test_a_cancelled_call_is_killed_at_once_and_another_goes_on(make_runner, warm):
    runner = make_runner() if warm else Runner(make_runner().all_tools, warm=False)
    cancellation = Cancellation()
    started = threading.Event()
    pids = []

    def note(chunk):
        if b"pid" in chunk:
            pids.append(int(chunk.split()[-1]))
            started.set()

    def cancel():
        assert started.wait(WATCHDOG_S)
        cancellation.cancel()

    call, _, other = in_threads(
        lambda: ask(runner, "hang", on_stderr=note, cancellation=cancellation, timeout=600),
        cancel,
        lambda: total(runner, "sleep"),
    )
    assert call.result.error.details == {"cancelled": True}
    assert call.result.error.code == "TIMEOUT"
    assert gone(pids[0])
    assert other != pids[0]


def test_a_call_cancelled_before_it_began_starts_nothing(runner):
    cancellation = Cancellation()
    cancellation.cancel()
    assert ask(runner, "pid", cancellation=cancellation).result.error.details == {"cancelled": True}
    assert runner.pool.live == 0


def test_calls_from_many_threads_run_side_by_side_and_get_their_own_answers(make_runner):
    """None of the four calls that meet would end without the three others."""
    runner = make_runner(max_workers=4)
    processes = in_threads(*[lambda: total(runner, "meet", 4)] * 4)
    assert len(set(processes)) == 4
    echoes = in_threads(*(lambda count=count: total(runner, "echo", count) for count in range(20)))
    assert echoes == list(range(20))
    assert runner.pool.live <= 4


def test_a_full_pool_makes_callers_wait_but_not_beyond_their_time(make_runner):
    runner = make_runner(max_workers=1)
    total(runner, "echo")
    busy, cancellation = threading.Event(), Cancellation()

    def wait_in_vain():
        assert busy.wait(WATCHDOG_S)
        call = ask(runner, "echo", timeout=0.5)
        cancellation.cancel()
        return call

    first, second = in_threads(
        lambda: ask(runner, "hang", on_stderr=lambda _: busy.set(), cancellation=cancellation, timeout=600),
        wait_in_vain,
    )
    assert first.result.error.details == {"cancelled": True}
    assert "no process was free for tool bench.run_mode within 0.5 s" in second.result.error.message
    processes = in_threads(lambda: total(runner, "sleep"), lambda: total(runner, "sleep"))
    assert len(set(processes)) == 1


def test_waiting_for_a_free_process_can_be_cancelled(make_runner):
    """The one process is busy until the waiting call has been answered."""
    runner = make_runner(max_workers=1)
    busy, enough, waiting = threading.Event(), Cancellation(), Cancellation()

    def wait():
        assert busy.wait(WATCHDOG_S)
        threading.Timer(0.3, waiting.cancel).start()
        call = ask(runner, "echo", cancellation=waiting, timeout=600)
        enough.cancel()
        return call

    _, call = in_threads(
        lambda: ask(runner, "hang", on_stderr=lambda _: busy.set(), cancellation=enough, timeout=600), wait
    )
    assert call.result.error.details == {"cancelled": True}


def test_an_idle_process_ends_and_a_worn_out_one_is_replaced(make_runner):
    runner = make_runner(idle_seconds=0.3)
    process = total(runner, "pid")
    assert gone(process)
    assert runner.pool.live == 0
    worn = make_runner(max_calls=2)
    assert len({total(worn, "pid") for _ in range(4)}) == 2


def test_an_edited_script_is_run_as_it_is_now(runner, tmp_path):
    assert total(runner, "echo", 3) == 3
    script = tmp_path / "skills/bench/scripts/run_mode.py"
    script.write_text(script.read_text().replace('{"total": count}', '{"total": count + 1}'))
    assert total(runner, "echo", 3) == 4


def test_an_edited_file_of_shared_definitions_is_used_as_it_is_now(make_runner, tmp_path):
    make_runner()
    shared = tmp_path / "skills/shared.json"
    schema = tmp_path / "skills/bench/schemas/bench.run_mode.output.json"
    shared.write_text(json.dumps({"$defs": {"answer": json.loads(schema.read_text())}}))
    schema.write_text('{"$ref": "../../shared.json#/$defs/answer"}')
    runner = make_runner()
    process = total(runner, "pid")
    assert total(runner, "pid") == process
    shared.write_text(shared.read_text() + " ")
    assert total(runner, "pid") != process


def test_what_python_caches_beside_a_script_is_no_edit(runner, tmp_path):
    process = total(runner, "pid")
    cache = tmp_path / "skills/bench/scripts/__pycache__"
    cache.mkdir(exist_ok=True)
    (cache / "another.pyc").write_bytes(b"")
    assert total(runner, "pid") == process


def test_another_folder_or_environment_is_another_worker(runner, monkeypatch, tmp_path):
    process = total(runner, "pid")
    monkeypatch.chdir(tmp_path)
    elsewhere = total(runner, "pid")
    monkeypatch.setenv("ANALOG_LAYOUT_WORKSPACE", "x")
    assert len({process, elsewhere, total(runner, "pid")}) == 3


SHARED = """
    import sys
    sys.path.insert(0, {folder!r})
    from skillscript import main
    import inner.value

    def execute(params, context):
        import late_value
        return {{"total": 10 * inner.value.VALUE + late_value.VALUE}}

    if __name__ == "__main__":
        raise SystemExit(main(__file__, "bench.run_mode", execute))
    """


def test_edited_modules_of_a_shared_package_are_run_as_they_are_now(make_runner, tmp_path):
    early, late = tmp_path / "shared" / "inner" / "value.py", tmp_path / "shared" / "late_value.py"
    early.parent.mkdir(parents=True)
    for file in (early, late):
        file.write_text("VALUE = 1")
    (early.parent / "__init__.py").write_text("")
    runner = make_runner(SHARED.format(folder=str(tmp_path / "shared")))
    assert [total(runner, "x"), total(runner, "x")] == [11, 11]
    early.write_text("VALUE = 20")
    assert total(runner, "x") == 201
    late.write_text("VALUE = 30")
    assert [total(runner, "x"), total(runner, "x")] == [230, 230]


def test_closing_ends_the_workers_and_refuses_further_calls(make_runner):
    with make_runner() as runner:
        process = total(runner, "pid")
    assert gone(process)
    assert "has been closed" in ask(runner, "pid").result.error.message


def test_a_worker_whose_runner_was_killed_ends_with_its_calls_time(make_runner, tmp_path):
    make_runner()
    host = f"""
        from skillpack import Runner, find_tools, scan
        import sys
        tools = find_tools(scan([{str(tmp_path / "skills")!r}]).skills.values())
        out = lambda chunk: (sys.stdout.buffer.write(chunk), sys.stdout.flush())
        Runner(tools).run("bench.run_mode", {{"mode": "hang in C"}}, timeout=1.5, on_stderr=out)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(host)], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        pid = int(process.stdout.readline().split()[-1])
        process.kill()
    assert gone(pid)


FOREIGN = """
    import sys
    for line in sys.stdin:
        print({answer!r}, flush=True)
    """
GOOD = '{"ok": true, "error": null, "data": {"total": 1}, "duration_ms": 5'


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (GOOD + ', "exit_code": 0}', None),
        (GOOD + "}", "without a valid answer"),
        ("hello", "without a valid answer"),
        (GOOD + ', "exit_code": 0}\n{}', "without a valid answer"),
        (GOOD + ', "exit_code": 4}', "ended with exit code 4 after its answer"),
        (GOOD.replace("total", "sum") + ', "exit_code": 0}', "its output schema refuses"),
    ],
)
def test_a_program_that_says_it_can_be_warm_must_speak_as_one(make_runner, answer, message):
    runner = make_runner(FOREIGN.format(answer=answer), extra="    warm: true\n")
    call = ask(runner, "x")
    assert call.warm
    assert call.result.ok if message is None else message in call.result.error.message


def test_endless_output_without_a_line_ends_the_worker(make_runner, monkeypatch):
    monkeypatch.setattr("sturdy.bounded_run.MAX_STDOUT_BYTES", 1 << 20)
    source = "import sys\nsys.stdin.readline()\nwhile True: sys.stdout.write('x' * 65536)"
    call = ask(make_runner(source, extra="    warm: true\n"), "x")
    assert "more output than is allowed" in call.result.error.message


def test_a_tool_can_refuse_to_be_warm(make_runner):
    runner = make_runner(extra="    warm: false\n")
    first, second = ask(runner, "pid"), ask(runner, "pid")
    assert (first.warm, second.warm) == (False, False)
    assert first.result.data != second.result.data


# --- environment


def test_a_tool_gets_the_basic_variables_and_those_it_names():
    surrounding = {
        "PATH": "p",
        "LC_ALL": "C",
        "ANALOG_LAYOUT_WORKSPACE": "w",
        "ANALOG_LAYOUT_LOG": "log",
        "SKILLPACK_PATH": "s",
        "SKILLPACK_HTTP_TOKEN": "t",
        "AWS_SECRET_ACCESS_KEY": "a",
        "MODEL_KEY": "k",
        "MODEL_URL": "u",
        "PDK_ROOT": "r",
    }
    basic = {"PATH", "LC_ALL", "ANALOG_LAYOUT_WORKSPACE", "SKILLPACK_PATH"}
    assert set(tool_environment((), surrounding)) == basic
    assert set(tool_environment(("*_TOKEN",), {"SKILLPACK_TOKEN": "x", "HUB_TOKEN": "y"})) == {"HUB_TOKEN"}
    assert set(tool_environment(("MODEL_*", "PDK_ROOT"), surrounding)) == basic | {"MODEL_KEY", "MODEL_URL", "PDK_ROOT"}


@pytest.mark.parametrize("warm", ["true", "false"])
def test_an_undeclared_variable_does_not_reach_the_tool(make_runner, monkeypatch, warm):
    monkeypatch.setenv("HIDDEN_TOKEN", "x")
    monkeypatch.setenv("SHOWN_TOKEN", "x")
    source = """
        import os
        from skillscript import main
        names = ("HIDDEN_TOKEN", "SHOWN_TOKEN")
        execute = lambda params, context: {"total": sum(10 ** i for i, name in enumerate(names) if name in os.environ)}
        raise SystemExit(main(__file__, "bench.run_mode", execute))
        """
    runner = make_runner(source, extra=f"    environment: [SHOWN_TOKEN]\n    warm: {warm}\n")
    assert total(runner, "x") == 10


# --- the record of calls


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_call_is_recorded_once_whatever_became_of_it(make_runner, tmp_path, monkeypatch):
    log = tmp_path / "calls.jsonl"
    monkeypatch.setenv("ANALOG_LAYOUT_LOG", str(log))
    runner = make_runner()
    cold = Runner(runner.all_tools, warm=False)
    outcomes = [
        ask(runner, "echo"),
        ask(cold, "echo", 13),
        ask(runner, 3),
        ask(runner, "crash"),
        ask(runner, "raise"),
        ask(runner, "hang", timeout=0.5),
        runner.run("bench.none", {}),
        runner.run(TOOL, {"mode": float("nan")}),
    ]
    found = records(log)
    assert [record["result"] for record in found] == [call.envelope for call in outcomes]
    assert [record["warm"] for record in found] == [True, False, False, True, True, True, False, False]
    assert (found[0]["tool"], found[0]["version"], found[0]["params"]["count"]) == (TOOL, "1.2.0", 1)
    assert "RuntimeError: unexpected" in found[4]["stderr"]


# --- versions


MIGRATIONS = """\
        migrations:
          - version: "1.1.0"
            changes: [{rename: kind, to: mode}, {replace: mode, values: {ring: echo}}]
          - version: "1.2.0"
            changes: [{default: count, value: 7}]
"""


def test_a_call_for_an_older_compatible_version_is_carried_over_and_reported(make_runner, tmp_path):
    """S0.12."""
    runner = make_runner(extra=textwrap.indent(textwrap.dedent(MIGRATIONS), "    "), log=str(tmp_path / "log"))
    call = runner.run(f"{TOOL}@1.0.0", {"kind": "ring"})
    assert (call.result.data, call.migrated_from) == ({"total": 7}, "1.0.0")
    assert call.notes == ("the parameters of bench.run_mode 1.0.0 were carried over to 1.2.0",)
    assert set(call.envelope) == {"ok", "error", "data", "duration_ms"}
    refused = runner.run(f"{TOOL}@1.0.0", {"kind": 3}).result.error
    assert (refused.code, refused.details["migrated_from"]) == ("INVALID_PARAM", "1.0.0")
    current = runner.run(f"{TOOL}@1.2", {"mode": "echo"})
    assert (current.result.data, current.migrated_from, current.notes) == ({"total": 1}, None, ())
    assert [record.get("migrated_from") for record in records(tmp_path / "log")] == ["1.0.0", "1.0.0", None]


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("2.0.0", "has no version 2.0.0 or a later one compatible with it; available: 1.2.0"),
        ("1.3.0", "has no version 1.3.0 or a later one compatible with it"),
        ("newest", "'newest' is not a version"),
    ],
)
def test_a_version_that_cannot_be_had_is_reported(runner, version, message):
    error = runner.run(f"{TOOL}@{version}", {"mode": "echo"}).result.error
    assert error.code == "INVALID_PARAM"
    assert message in error.message


def test_old_and_new_names_together_are_refused(make_runner):
    runner = make_runner(extra=textwrap.indent(textwrap.dedent(MIGRATIONS), "    "))
    error = runner.run(f"{TOOL}@1.0.0", {"kind": "a", "mode": "b"}).result.error
    assert "'kind' is called 'mode' since 1.1.0, and both are given" in error.message


def test_a_tool_declared_without_a_script_is_not_called(write_skill, tmp_path):
    entry = {"id": "quiz", "input_schema": {"type": "object"}, "output_schema": {}}
    write_skill("quiz", files={"skill.json": json.dumps(entry)})
    runner = Runner(find_tools(scan([tmp_path / "skills"]).skills.values()))
    error = runner.run("quiz", {}).result.error
    assert (error.code, "declared without a script" in error.message) == ("UNSUPPORTED_OPERATION", True)


@pytest.mark.parametrize("warm", [True, False])
def test_an_interrupted_call_is_logged_and_its_process_ended(make_runner, tmp_path, warm):
    log = tmp_path / "log"
    runner = Runner(make_runner().all_tools, timeout=WATCHDOG_S, warm=warm, log=str(log))
    pids = []

    def interrupt(chunk):
        pids.extend(int(word) for word in chunk.split() if word.isdigit() and int(word) > 1)
        if pids:
            os.kill(os.getpid(), signal.SIGINT)

    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            ask(runner, "hang", on_stderr=interrupt)
    finally:
        signal.signal(signal.SIGINT, former)
    assert gone(pids[0])
    (record,) = map(json.loads, log.read_text().splitlines())
    assert (record["tool"], record["result"]["error"]["message"]) == (TOOL, "interrupted; the tool was killed")
