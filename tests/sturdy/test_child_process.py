"""Child processes end with all that they started."""

import os
import select
import subprocess
import sys

import pytest

from patience import WATCHDOG_S
from sturdy.child_process import end, kill_group

SLEEP = "import time; time.sleep(600)"
STARTS_ANOTHER = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', '{SLEEP}'])"


def closes(pipe):
    """Return whether every process that holds the other end of ``pipe`` ends."""
    ready, _, _ = select.select([pipe], [], [], WATCHDOG_S)
    return bool(ready) and os.read(pipe, 1) == b""


@pytest.fixture
def pipe():
    """Return a pipe whose writing end the children hold."""
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    yield reading, writing
    os.close(reading)


@pytest.mark.parametrize("code", [f"{STARTS_ANOTHER}; {SLEEP}", STARTS_ANOTHER])
def test_a_process_ends_with_its_group_also_when_it_ended_first(pipe, code):
    reading, writing = pipe
    command = [sys.executable, "-c", f"{code}; print(flush=True)" if code == STARTS_ANOTHER else code]
    process = subprocess.Popen(command, pass_fds=[writing], start_new_session=True)
    os.close(writing)
    if code == STARTS_ANOTHER:
        process.wait()
    end(process)
    assert closes(reading)
    assert process.returncode is not None


def test_a_process_alone_is_ended_without_a_group():
    process = subprocess.Popen([sys.executable, "-c", SLEEP])
    end(process, group=False)
    assert process.returncode == -9
    end(process, group=False)  # it has ended: nothing happens
    kill_group(process.pid)


def test_a_child_ends_when_its_parent_is_killed(pipe):
    reading, writing = pipe
    code = "import subprocess, sys; from sturdy.child_process import ending_with_parent\n"
    code += f"subprocess.run([sys.executable, '-c', {SLEEP!r}], close_fds=False, preexec_fn=ending_with_parent())"
    parent = subprocess.Popen([sys.executable, "-c", code], close_fds=False)
    os.close(writing)
    parent.kill()
    parent.wait()
    assert closes(reading)


def test_a_process_ends_when_a_pipe_closes_while_it_computes(pipe):
    reading, writing = pipe
    code = "from sturdy.child_process import end_with_pipe; end_with_pipe(0)\n"
    code += "print(end='.', flush=True); sum(iter(int, 1))"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[writing]
    )
    os.close(writing)
    assert process.stdout.read(1) == b"."
    process.stdin.close()
    assert closes(reading)
    process.stdout.close()
    process.wait()
