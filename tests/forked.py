"""Skill scripts in processes of their own that need not load Python, KLayout and numba again.

A server process loads what scripts load, once in a test run, and lays out a pair: a first layout also loads
technologies, what numba compiled and parts of KLayout, a second in all. For each request it forks; the child gets the
script's arguments, environment, folder and standard streams and runs it as ``__main__``. What a real start does besides
(the interpreter's own start, its ``PYTHON...`` variables) is left to tests that start Python.

::

    test workers, programs of a shell  --order, standard streams-->  server  --fork-->  child: one script
                                       <--------wait status---------
"""

import contextlib
import functools
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

from made_once import locked
from patience import WATCHDOG_S

SKILLS = Path(__file__).resolve().parent.parent / "skills"
LIBRARIES = ("klayout.db", "klayout.rdb", "klayout.lay", "numpy", "numba", "yaml", "jsonschema")
PACKAGES = ("layoutkit", "designgraph", "skillscript", "skillpack")
BIN = Path(sys.executable).parent
MEASURED = "--measured"
HOME = []
# In a shell: hands its arguments, environment, folder and standard streams over. It starts in a thirtieth of a second.
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
    """The process that forks a child for each script to run; the workers of a test run share it.

    It ends when the last of them has closed its connection.

    Args:
        folder: That the workers share.
    """

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / "lock"):
            kept = folder / "address"  # of a socket, which may be no longer than 107 bytes
            if not kept.exists():
                short = len(bytes(folder)) < 90
                kept.write_text(str(folder if short else tempfile.mkdtemp()) + "/socket", encoding="utf-8")
            self.address = kept.read_text(encoding="utf-8")
            self._lease = self._leased()
            if self._lease is None:
                self._start()
                self._lease = self._leased()

    def _leased(self):
        """Return a connection that keeps the server alive; None if there is no server, or it is about to end."""
        with contextlib.suppress(OSError):
            lease = connection(self.address)
            lease.send(b"lease")
            return lease if lease.recv(64) == b"leased" else None

    def _start(self):
        command = [sys.executable, __file__, self.address, *([MEASURED] if is_measured() else [])]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
        assert process.stdout.readline(), "the server of forked scripts has not started"

    def run(self, arguments, *, folder, environment, stdin=""):
        """Return what ``subprocess.run([python, *arguments])`` would, with text output."""
        with contextlib.ExitStack() as files:
            order, given = (files.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2))
            out, told = (files.enter_context(tempfile.TemporaryFile()) for _ in range(2))
            json.dump({"arguments": list(arguments), "folder": str(folder), "environment": environment}, order)
            given.write(stdin)
            for file in (order, given):
                file.flush()
                file.seek(0)
            with connection(self.address) as server:
                socket.send_fds(server, [b"run"], [file.fileno() for file in (order, given, out, told)])
                status = int(server.recv(64))
            texts = []
            for stream in (out, told):
                stream.seek(0)
                texts.append(io.TextIOWrapper(stream, encoding="utf-8").read())
        return subprocess.CompletedProcess(arguments, os.waitstatus_to_exitcode(status), *texts)


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
    """Say in which folder the workers of this test run find the server and the programs; the first one makes them."""
    HOME[:] = [folder]


@functools.cache
def server():
    """Return this test run's server; None where there is no fork or no way to hand over open files."""
    able = hasattr(os, "fork") and hasattr(socket, "send_fds") and sys.platform == "linux"
    return Server(*HOME) if able else None


@functools.cache
def programs():
    """Return a folder with programs for a shell, each of which is forked.

    ``uv`` runs scripts in this environment, ``python-of-tools`` also modules. ``skillpack`` runs its tools by that.
    """
    (home,) = HOME
    made = home / "programs"
    home.mkdir(parents=True, exist_ok=True)
    with locked(home / "lock of programs"):
        if not made.exists():
            new = home / "new programs"
            new.mkdir(exist_ok=True)
            python = made / "python-of-tools"
            stand_in(new / "uv", words=["run"])
            stand_in(new / python.name, python=python)
            stand_in(new / "skillpack", before=[BIN / "skillpack"], python=python)
            new.rename(made)
    return made


def skillpack():
    """Return the command line of a ``skillpack`` that is forked, and forks its tools."""
    return [str(programs() / "skillpack")]


def run_program(script, *arguments, cwd, stdin="", **environment):
    """Run a skill's script ``x/scripts/y.py`` from its command line; return the completed process, its output as text.

    The environment is this process's without the product's own variables, and with ``environment``. Variables for
    Python itself act only on a real start, so that a caller who gives one gets that.
    """
    command = [str(SKILLS / script), *map(str, arguments)]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANALOG_LAYOUT_")}
    if server() and not any(name.startswith("PYTHON") for name in environment):
        return server().run(command, folder=cwd, environment={**inherited, **environment}, stdin=stdin)
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env={**inherited, **environment},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
        check=False,
    )


def stand_in(program, *, words=(), before=(), python=sys.executable):
    """Write a program that runs a script, or a module after ``-m``, as Python would from a shell.

    Args:
        program: Its path.
        words: With which its arguments begin.
        before: What stands before the others instead.
        python: What the script takes for its Python.

    A server is really started, since whoever starts it will end it, and so is Python with options of its own.
    """
    if server():
        given = {"words": [*words], "before": [*map(str, before)], "beside": str(python), "address": server().address}
        given["serves"] = {"http", "mcp"}
        text = PROGRAM.format(python=sys.executable, **given)
    else:
        text = f'#!/bin/sh\nshift {len(words)}\nexec "{sys.executable}" {shlex.join(map(str, before))} "$@"\n'
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)


def serve(address):
    """Run what is asked for at ``address``, and answer each with the child's wait status, while a worker leases it."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with contextlib.suppress(FileNotFoundError):
        Path(address).unlink()
    listening.bind(address)
    listening.listen(64)
    measurement = prepare()
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    print("ready", flush=True)
    leases, asked = {listening}, {}  # until the first one is there, the server is its own
    while leases:
        clients = {client: child for child, client in asked.items() if client}
        ready, _, _ = select.select({listening, woken, *leases, *clients}, [], [])
        for lease in leases.intersection(ready) - {listening}:  # nothing more is said there: it was closed
            leases.remove(lease)
            lease.close()
        for client in set(ready).intersection(clients):  # nor there: whoever waited was killed
            end(clients[client])
            asked[clients[client]] = None
            client.close()
        if woken in ready:
            woken.recv(64)
            answer_ended(asked)
        if listening in ready:
            client, _ = listening.accept()
            said, files, _, _ = socket.recv_fds(client, 64, 4)
            if said == b"lease":
                client.send(b"leased")
                leases = leases - {listening} | {client}
            elif said == b"run":
                child = os.fork()
                if child == 0:
                    listening.close()
                    run_order(files, measurement)
                asked[child] = client
            for file in files:
                os.close(file)


def end(child):
    """Kill a child, which leads a group, with what it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def answer_ended(asked):
    """Tell the clients in ``asked``, by process, of those that have ended; None is no client any more."""
    with contextlib.suppress(ChildProcessError):
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                break
            client = asked.pop(child)
            if client:
                with client, contextlib.suppress(OSError):
                    client.send(str(status).encode())


def prepare():
    """Load what scripts load; return the measurement of coverage, if there is one."""
    import gc

    measurement = start_measurement() if MEASURED in sys.argv else None
    packages = [importlib.import_module(name) for name in PACKAGES]
    modules = [
        found.name for package in packages for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    for name in [*LIBRARIES, *(name for name in modules if not name.startswith("skillpack.hosts."))]:
        with contextlib.suppress(ImportError):  # an extra that is not installed
            importlib.import_module(name)
    warm_up()
    gc.freeze()  # so that a child's collector does not write to the pages it shares
    return measurement


def warm_up():
    """Lay out a pair, with what numba compiled, and load all technologies."""
    from layoutkit.flow.build import build_layout
    from layoutkit.flow.design import LayoutRequest
    from layoutkit.place import engine
    from layoutkit.technology import load, names

    lay_out_cheaply()
    engine.COMPILE_FROM_WORK = 0  # a child gets what is loaded here
    for name in names():
        load(name)
    with tempfile.TemporaryDirectory() as workspace:
        build_layout(LayoutRequest(str(SKILLS / "netlist-to-gds/assets/pair.spice"), "sky130A", workspace))


def lay_out_cheaply():
    """Draw pictures of finished layouts smaller than for users, and wait for no disk: no test ends with a power cut."""
    from layoutkit.flow import build

    build.PICTURE_SIDE = 320  # pixels on the long side: a third of a second less than 1600
    os.fsync = lambda _: None


def start_measurement():
    """Measure the coverage of the scripts; each child process writes a file of its own."""
    import coverage

    measurement = coverage.Coverage(config_file=str(SKILLS.parent / "pyproject.toml"), data_suffix=True)
    measurement.set_option("run:data_file", str(SKILLS.parent / measurement.get_option("run:data_file")))
    measurement.start()
    return measurement


def run_order(files, measurement):
    """Become the script that was ordered; never return."""
    os.setpgid(0, 0)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with os.fdopen(files[0], encoding="utf-8") as given:
        given.seek(0)
        order = json.load(given)
    for number, file in enumerate(files[1:]):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - descriptors, not paths
        for number, mode in enumerate(("r", "w", "w"))
    )
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv, sys.executable = order["arguments"], order.get("python", sys.executable)
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)  # of -m the folder where it is run
    code = 0
    try:
        if sys.argv[0] == "-m":
            del sys.argv[0]
            sys.modules.pop(sys.argv[0], None)
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
    except BaseException:  # noqa: BLE001 - the interpreter's own last resort
        traceback.print_exc()
        code = 1
    if measurement is not None:
        measurement.stop()
        measurement.save()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
