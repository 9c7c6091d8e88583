"""Programs that a user installs: ended in time with what they started, and missing ones reported with the remedy."""

import os
import re
import sys

import pytest

from layoutkit.errors import MissingProgramError, TimeLimitError
from layoutkit.other_programs import OtherProgram, ProgramRun, log_tail, run_program
from patience import gone

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


def test_a_check_that_raises_ends_the_program(tmp_path):
    pids = []

    def check():
        if said := log_tail(tmp_path, 100):
            pids.append(int(said))
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        run_program(python(tmp_path, "import os, time; print(os.getpid(), flush=True); time.sleep(60)"), check)
    assert gone(pids[0])


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
