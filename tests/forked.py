"""Run scripts in separate processes that need not load Python, KLayout and numba again.

Once in a test run, a server process loads the modules of scripts and lays out a pair, because a first layout takes a
second to load technologies, compiled code and parts of KLayout. It forks for each request. Other effects of a real
start (of the interpreter and its ``PYTHON...`` variables) are left to tests that start Python.

::

    test workers, programs of a shell  --order, standard streams-->  server  --fork-->  child: one script
                                       <--------wait status---------
"""

import contextlib
import functools
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from fork_server import MEASURED, ROOT
from made_once import locked
from patience import WATCHDOG_S

SKILLS = ROOT / "skills"
BIN = Path(sys.executable).parent
HOME = []
# For a shell: sends its arguments, environment, folder and standard streams to the server. It starts in 1/30 s.
PROGRAM = """\
#!{python} -IS
import json, os, socket, sys
words, arguments = {words!r}, sys.argv[1:]
if arguments[: len(words)] != words:
    sys.exit(9)
arguments = {before!r} + arguments[len(words) :]
if {serves!r}.intersection(arguments) or arguments[0][0] == "-" and arguments[0] != "-m":
    os.execv({python!r}, [{python!r}, *arguments])
order = os.memfd_create("order")
told = {{"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ), "python": {beside!r}}}
os.pwrite(order, json.dumps(told).encode(), 0)
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect({address!r})
socket.send_fds(server, [b"run"], [order, 0, 1, 2])
status = os.waitstatus_to_exitcode(int(server.recv(64)))
sys.exit(status if status >= 0 else 128 - status)
"""


class Server:
    """A server that the workers of a test run share; it ends when the last of them has closed its connection.

    Args:
        folder: A folder that the workers share.
        kind: What the server loads, see ``fork_server.prepare``.
    """

    def __init__(self, folder, kind):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / f"lock of {kind}"):
            kept = folder / f"address of {kind}"  # the path of a socket has at most 107 bytes
            if not kept.exists():
                short = len(bytes(folder)) < 90
                kept.write_text(f"{folder if short else tempfile.mkdtemp()}/{kind}", encoding="utf-8")
            self.address = kept.read_text(encoding="utf-8")
            self._lease = self._leased()
            if self._lease is None:
                self._start(kind)
                self._lease = self._leased()

    def _leased(self):
        """Return a connection that keeps the server alive; None if there is no server or it is ending."""
        with contextlib.suppress(OSError):
            lease = connection(self.address)
            lease.send(b"lease")
            return lease if lease.recv(64) == b"leased" else None

    def _start(self, kind):
        program = Path(__file__).with_name("fork_server.py")
        command = [sys.executable, str(program), self.address, kind, *([MEASURED] if is_measured() else [])]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
        assert process.stdout.readline(), "the server of forked scripts has not started"

    def run(self, arguments, *, folder, environment, stdin=b""):
        """Return what ``subprocess.run([python, *arguments])`` would."""
        with contextlib.ExitStack() as opened:
            files = order, given, out, told = [opened.enter_context(tempfile.TemporaryFile()) for _ in range(4)]
            request = {"arguments": list(arguments), "folder": str(folder), "environment": environment}
            for file, content in ((order, json.dumps(request).encode()), (given, stdin)):
                file.write(content)
                file.flush()
                file.seek(0)
            with connection(self.address) as server:
                socket.send_fds(server, [b"run"], [file.fileno() for file in files])
                status = int(server.recv(64))
            for file in (out, told):
                file.seek(0)
            code = os.waitstatus_to_exitcode(status)
            return subprocess.CompletedProcess(arguments, code, out.read(), told.read())


def connection(address):
    """Return a connection to the server that listens at ``address``."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        server.connect(address)
    except OSError:
        server.close()
        raise
    return server


def is_measured():
    """Return whether pytest-cov measures the coverage of this process, so that the scripts' is measured, too."""
    coverage = sys.modules.get("coverage")
    return coverage is not None and coverage.Coverage.current() is not None


def share(folder):
    """Set the folder in which the workers of this test run find servers and programs; the first worker makes them."""
    HOME[:] = [folder]


@functools.cache
def server(kind="engine"):
    """Return this test run's server; None where there is no fork or no way to hand over open files."""
    able = hasattr(os, "fork") and hasattr(socket, "send_fds") and sys.platform == "linux"
    return Server(*HOME, kind) if able else None


def run_script(command, *, cwd, environment, stdin=b"", kind="engine"):
    """Run a script with its arguments; return the completed process, its output as bytes.

    Variables for Python itself act only on a real start. If ``environment`` has one that this process does not have,
    Python is started.

    Args:
        command: The script's path and its arguments.
        cwd: The current folder of the script.
        environment: Changes to the variables of this process; None removes one.
        stdin: Its standard input.
        kind: What is loaded, see ``fork_server.prepare``.
    """
    variables = {name: value for name, value in {**os.environ, **environment}.items() if value is not None}
    if server(kind) and not any(name.startswith("PYTHON") for name in environment):
        return server(kind).run(command, folder=cwd, environment=variables, stdin=stdin)
    command = [sys.executable, *command]
    return subprocess.run(
        command, cwd=cwd, env=variables, input=stdin, capture_output=True, timeout=WATCHDOG_S, check=False
    )


def run_program(script, *arguments, cwd, stdin="", **environment):
    """Run a skill's script ``x/scripts/y.py`` from its command line; return the completed process, its output as text.

    The script gets the environment of this process without ``ANALOG_LAYOUT_...``, changed by ``environment``.
    """
    command = [str(SKILLS / script), *map(str, arguments)]
    without = {name: None for name in os.environ if name.startswith("ANALOG_LAYOUT_")}
    done = run_script(command, cwd=cwd, environment={**without, **environment}, stdin=stdin.encode())
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


def run_server_command(*words, **environment):
    """Run ``skillpack http`` or ``skillpack mcp`` where no server stays; return the completed process, output as text.

    Its standard input is empty. The token is empty unless ``environment`` has one.
    """
    command = ["-m", "skillpack", *map(str, words)]
    done = run_script(command, cwd=ROOT, environment={"SKILLPACK_TOKEN": "", **environment}, kind="servers")
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


@functools.cache
def programs():
    """Return a folder with programs for a shell that fork instead of starting Python.

    ``uv`` runs scripts in this environment, ``python-of-tools`` also modules. ``skillpack`` runs its tools with that.
    """
    (home,) = HOME
    made = home / "programs"
    home.mkdir(parents=True, exist_ok=True)
    with locked(home / "lock of programs"):
        if not made.exists():
            new = home / "new programs"
            new.mkdir(exist_ok=True)
            python = made / "python-of-tools"
            stand_in(new / "uv", words=["run"], python=python)
            stand_in(new / python.name, python=python)
            stand_in(new / "skillpack", before=[BIN / "skillpack"], python=python, kind="scripts")
            new.rename(made)
    return made


def stand_in(program, *, words=(), before=(), python=sys.executable, kind="engine"):
    """Write a program that runs a script, or a module after ``-m``, as Python would from a shell.

    Args:
        program: Its path.
        words: Words that its arguments must begin with.
        before: Arguments that replace these words.
        python: The value of ``sys.executable`` in the script.
        kind: What is loaded.

    Commands that serve, and Python with options, are started instead of forked.
    """
    if server(kind):
        given = {"words": [*words], "before": [*map(str, before)], "beside": str(python)}
        text = PROGRAM.format(python=sys.executable, address=server(kind).address, serves={"http", "mcp"}, **given)
    else:
        text = f'#!/bin/sh\nshift {len(words)}\nexec "{sys.executable}" {shlex.join(map(str, before))} "$@"\n'
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)


def skillpack():
    """Return the command line of a ``skillpack`` that is forked and forks its tools."""
    return [str(programs() / "skillpack")]
