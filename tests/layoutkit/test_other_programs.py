"""Programs that a user installs: ended in time with what they started, and missing ones reported with the remedy."""

import os
import re
import signal
import subprocess
import sys

import pytest

from layoutkit.errors import MissingProgramError, TimeLimitError, UnsupportedOperationError
from layoutkit.other_programs import OtherProgram, ProgramRun, log_tail, run_program
from patience import eventually, gone

BEGET = "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep({})"


def python(folder, code, timeout_s=30.0, **how):
    return ProgramRun([sys.executable, "-c", code], folder, timeout_s, "the run", **how)


@pytest.mark.parametrize(("seconds", "limit"), [(0, 30.0), (60, 0.5)])
def test_what_a_program_started_ends_with_it(tmp_path, seconds, limit):
    run = python(tmp_path, BEGET.format(seconds), limit)
    if seconds:
        with pytest.raises(TimeLimitError, match=r"the run did not end within 0\.5 s and was stopped"):
            run_program(run)
    else:
        assert run_program(run) == 0
    assert gone(int(log_tail(tmp_path, 100)))


PARENT = """
import sys
from pathlib import Path
from layoutkit.other_programs import ProgramRun, run_program
program = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
folder, others = Path(sys.argv[1]), sys.argv[2] == "True"
run_program(ProgramRun([sys.executable, "-c", program], folder, 60.0, "the run", starts_others=others))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a killed process cannot end its children")
@pytest.mark.parametrize("starts_others", [True, False])
def test_a_program_ends_with_the_process_that_runs_it_also_when_that_is_killed(tmp_path, starts_others):
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path), str(starts_others)])
    try:
        assert eventually(lambda: (tmp_path / "log").exists() and (tmp_path / "log").read_text().endswith("\n"))
        program = int((tmp_path / "log").read_text())
        os.kill(program, 0)  # it runs
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert gone(program)


@pytest.mark.parametrize("place", ["file", "/dev/stdout", "deep/file"])
def test_a_program_that_writes_too_much_is_stopped_with_what_it_started(tmp_path, place):
    (tmp_path / "deep").mkdir()
    script = f"(echo $$ > number; while :; do head -c 100000 /dev/zero >> {place}; sleep 0.02; done) & wait"
    run = ProgramRun(["sh", "-c", script], tmp_path, 30.0, "the run", max_bytes=500_000)
    with pytest.raises(UnsupportedOperationError, match="the run wrote more than 500000 bytes and was stopped"):
        run_program(run)
    assert gone(int((tmp_path / "number").read_text()))


def test_what_it_wrote_at_its_end_counts_with_temporary_files_and_a_sparse_file_does_not(tmp_path):
    for script, enough in [("truncate -s 10M sparse", True), ("head -c 2000000 /dev/zero > $TMPDIR/full", False)]:
        run = ProgramRun(["sh", "-c", script], tmp_path, 30.0, "the run", max_bytes=1_000_000)
        if enough:
            assert run_program(run) == 0
        else:
            with pytest.raises(UnsupportedOperationError, match="wrote more than"):
                run_program(run)


def test_status_and_last_words_are_told_and_only_a_program_that_starts_no_other_stays_in_our_group(tmp_path):
    code = "import os; print('x' * 50, os.environ['WORD'], os.getpgid(0)); raise SystemExit(3)"
    for starts_others in (True, False):
        assert run_program(python(tmp_path, code, environment={"WORD": "hello"}, starts_others=starts_others)) == 3
        word, group = re.fullmatch(r"x* (\w+) (\d+)\n", log_tail(tmp_path, 30)).groups()
        assert (word, int(group) == os.getpgid(0)) == ("hello", not starts_others)
    assert run_program(python(tmp_path, "import os; os.kill(os.getpid(), 9)")) == -9


def test_a_missing_program_is_reported_with_how_to_get_it(monkeypatch):
    program = OtherProgram("no-such-program", "it is needed", "install it", "NO_SUCH_VARIABLE")
    with pytest.raises(MissingProgramError, match="it is needed, and no-such-program is not installed; install it"):
        program.path()
    monkeypatch.setenv("NO_SUCH_VARIABLE", "nor-this-one")
    with pytest.raises(MissingProgramError, match=r"\$NO_SUCH_VARIABLE names 'nor-this-one', which is not a program"):
        program.path()
    monkeypatch.setenv("NO_SUCH_VARIABLE", sys.executable)
    assert program.path() == sys.executable
