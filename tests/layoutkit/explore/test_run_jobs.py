"""Many jobs on this machine: each once, within its limits, whatever happens to one of them."""

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from layoutkit.errors import FileError, LayoutConflictError, LayoutkitError
from layoutkit.explore.jobs import Job, JobOutcome, JobRunOptions, Limits, LocalProcesses
from layoutkit.explore.run_jobs import RunProgress, run_jobs
from patience import WATCHDOG_S, eventually, gone

TESTS = Path(__file__).parents[2]


def squares(count, **options):
    return [Job("stand_in_jobs:square", {"n": n}, **options) for n in range(count)]


def do(name, /, **params):
    return Job(f"stand_in_jobs:{name}", params)


def run(jobs, folder, on_result=lambda *_: None, **options):
    return list(run_jobs(jobs, folder, JobRunOptions(**{"where": LocalProcesses(2), **options}), on_result))


def one(job, folder, **limits):
    (outcome,) = run([job], folder, limits=Limits(**limits))
    return outcome


def lines(folder):
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()[1:]]


def test_each_key_has_one_outcome_with_its_files_and_its_line(tmp_path):
    jobs = [*squares(5, inputs={"a.in": "x"}), *squares(3, inputs={"a.in": "x"})]
    seen = []
    found = run(jobs, tmp_path, on_result=lambda outcome, progress: seen.append((outcome.key, progress.finished)))
    assert sorted(each.answer["square"] for each in found) == [0, 1, 4, 9, 16]
    assert [key for key, _ in seen] == [each.key for each in found]
    assert [number for _, number in seen] == [1, 2, 3, 4, 5]
    assert [line["key"] for line in lines(tmp_path)] == [each.key for each in found]
    for outcome in found:
        assert outcome.status == "done"
        assert outcome.answer["read"] == ["a.in"]
        digest = hashlib.sha256(str(outcome.answer["square"]).encode()).hexdigest()
        assert outcome.files["more/square.txt"] == digest
        assert (tmp_path / outcome.folder / "more/square.txt").read_text() == str(outcome.answer["square"])
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize(
    ("job", "limits", "status", "words"),
    [
        (do("refuse", n=3), {}, "failed", "cannot be drawn"),
        (do("divide", n=0), {}, "failed", "ZeroDivisionError"),
        (do("absent"), {}, "failed", "absent"),
        (Job("no_such_module:f"), {}, "failed", "no_such_module"),
        (do("crash"), {}, "crashed", "SIGSEGV"),
        (do("find_the_disk_full"), {}, "crashed", "cannot write"),  # another run may find room: it is not final
        (do("ask_for_memory", mb=900), {"memory_mb": 300}, "memory limit", "300 MB"),
        (do("fill_memory_of_children", mb=200), {"memory_mb": 150}, "memory limit", "150 MB"),
        (do("write_much", mb=3), {"output_mb": 2}, "too large", "large.bin 3.0 MB"),
    ],
)
def test_a_job_that_fails_is_an_outcome_and_the_next_one_is_done(job, limits, status, words, tmp_path):
    bad, good = run([job, *squares(1)], tmp_path, where=LocalProcesses(1), limits=Limits(**limits))
    assert (bad.status, good.status) == (status, "done")
    assert words in bad.error["message"]
    assert bad.files == {}
    assert not (tmp_path / bad.folder).exists()


def test_the_error_of_the_engine_keeps_its_code_and_details(tmp_path):
    assert one(do("refuse", n=3), tmp_path).error == {
        "code": "INVALID_PARAM",
        "message": "it cannot be drawn",
        "details": {"n": 3},
    }


def test_a_job_beyond_its_time_is_ended_with_its_processes(tmp_path):
    outcome = one(do("wait", pids=str(tmp_path / "pids")), tmp_path, seconds=1.5)
    assert (outcome.status, outcome.error["code"]) == ("time limit", "TIMEOUT")
    assert all(gone(pid) for pid in (tmp_path / "pids").read_text().split())


def test_a_process_that_is_ended_from_outside_loses_its_own_job_only(tmp_path):
    def jobs():
        yield do("wait", pids=str(tmp_path / "pids"))
        assert eventually((tmp_path / "pids").exists)
        child = (tmp_path / "pids").read_text().split()[0]
        os.kill(int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)
        yield from squares(2)

    found = run(jobs(), tmp_path)
    assert sorted(each.status for each in found) == ["crashed", "done", "done"]
    assert gone((tmp_path / "pids").read_text().split()[0])


def test_a_later_run_does_what_an_earlier_one_did_not(tmp_path):
    jobs = squares(4)
    run(jobs[:3], tmp_path)
    later = run(jobs, tmp_path, resume=True)
    assert [each.status for each in later] == ["done"] * 4
    assert [each.resumed for each in later] == [True] * 3 + [False]
    assert len(lines(tmp_path)) == 4


def test_at_the_end_of_its_time_a_run_ends_what_works(tmp_path):
    endless = do("wait", pids=str(tmp_path / "pids"))
    found = run([endless, do("square", n=1)], tmp_path, where=LocalProcesses(1), seconds=4)
    assert [each.status for each in found] == ["not run", "not run"]
    assert "still working" in found[0].error["message"]
    assert "before it was begun" in found[1].error["message"]
    assert lines(tmp_path) == []


def test_resuming_repeats_what_a_limit_ended_and_what_lost_its_files(tmp_path):
    limited = do("ask_for_memory", mb=600)
    jobs = [*squares(2), do("refuse"), limited]
    first = {each.key: each for each in run(jobs, tmp_path, limits=Limits(memory_mb=300))}
    assert first[limited.key].status == "memory limit"
    (tmp_path / jobs[0].home / "more/square.txt").write_text("changed")
    later = {each.key: each for each in run(jobs, tmp_path, resume=True)}
    assert [later[job.key].resumed for job in jobs] == [False, True, True, False]
    assert [later[job.key].status for job in jobs] == ["done", "done", "failed", "done"]
    assert (tmp_path / jobs[0].home / "more/square.txt").read_text() == "0"


def test_a_torn_last_line_is_left_out(tmp_path):
    run(squares(2), tmp_path)
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    assert sorted(each.resumed for each in run(squares(2), tmp_path, resume=True)) == [False, True]
    assert len(lines(tmp_path)) == 2


def test_a_folder_that_cannot_be_continued_is_refused(tmp_path):
    run(squares(1), tmp_path)
    with pytest.raises(FileError, match="holds a run already"):
        run(squares(1), tmp_path)
    running = run_jobs(squares(2), tmp_path, JobRunOptions(resume=True))
    next(running)
    with pytest.raises(LayoutConflictError, match="another program writes"):
        run(squares(1), tmp_path, resume=True)
    running.close()
    head, *rest = (tmp_path / "journal.jsonl").read_text().splitlines(keepends=True)
    other = head.replace('"sources": "', '"sources": "0')
    (tmp_path / "journal.jsonl").write_text("".join([other, *rest]))
    with pytest.raises(LayoutConflictError, match="layouts may differ"):
        run(squares(1), tmp_path, resume=True)
    (tmp_path / "journal.jsonl").write_text("a poem\n")
    with pytest.raises(FileError, match="not a journal"):
        run(squares(1), tmp_path, resume=True)


def test_a_folder_that_cannot_be_written_and_a_full_disk_are_faults_of_the_request(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot create the folder"):
        run(squares(1), tmp_path / "file")
    (tmp_path / "journal.jsonl").mkdir()
    with pytest.raises(FileError, match="cannot write"):
        run(squares(1), tmp_path)

    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(FileError, match="No space left on device; what is done is kept"):
        run(squares(1), tmp_path / "full")


def test_what_was_not_run_does_not_count_for_the_rate():
    progress = RunProgress(2)
    progress.add(JobOutcome("a", "not run"))
    assert (progress.finished, progress.per_minute) == (1, None)


def test_jobs_that_cannot_be_run_are_refused(tmp_path):
    with pytest.raises(LayoutkitError, match=r"\.\./x lies not within its folder"):
        Job("stand_in_jobs:square", inputs={"../x": ""})
    with pytest.raises(LayoutkitError, match="same folder"):
        run([do("square", n=1), Job("stand_in_jobs:square", {"n": 2}, folder=do("square", n=1).home)], tmp_path)


def test_a_job_server_leaves_the_engine_to_its_jobs():
    code = "import sys, layoutkit.explore.job_server; print({'klayout.db', 'numpy'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_no_more_jobs_run_at_a_time_than_the_memory_allows(monkeypatch):
    monkeypatch.setattr("layoutkit.flow.tries.free_memory_mb", lambda: 1000)
    assert LocalProcesses(8).open(Limits(memory_mb=300)).slots == 3
    assert LocalProcesses(8).open(Limits(memory_mb=3000)).slots == 1
    assert LocalProcesses(2).open(Limits(memory_mb=300)).slots == 2


PROGRAM = """
import json, sys
from layoutkit.explore.jobs import Job, JobRunOptions
from layoutkit.explore.jobs import LocalProcesses
from layoutkit.explore.run_jobs import run_jobs
jobs = [Job(**each) for each in json.loads(sys.argv[2])]
for outcome in run_jobs(jobs, sys.argv[1], JobRunOptions(LocalProcesses(1))):
    print(outcome.status, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_keeps_what_is_done_and_leaves_no_process(number, tmp_path):
    jobs = [do("square", n=3), do("wait", pids=str(tmp_path / "pids"))]
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "run"), json.dumps([job.to_json() for job in jobs])]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline() == b"done\n"
        assert eventually((tmp_path / "pids").exists)
        process.send_signal(number)
        process.wait(WATCHDOG_S)
    assert all(gone(pid) for pid in (tmp_path / "pids").read_text().split())
    assert [line["status"] for line in lines(tmp_path / "run")] == ["done"]
    later = run([jobs[0]], tmp_path / "run", resume=True)
    assert [each.resumed for each in later] == [True]
