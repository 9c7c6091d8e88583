"""A server that forks a child process for each script to run; ``forked`` starts it and sends requests.

The server has loaded the modules that scripts load. A child gets the script's arguments, environment, folder and
standard streams, and runs the script as ``__main__``. It leads a process group, which is killed if the client is
killed. The server ends when the last test worker has closed its connection.
"""

import contextlib
import functools
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import tempfile
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEASURED = "--measured"
EXECUTED = ROOT / "build/coverage/forked.jsonl"  # a line for each process: {path of a module: [numbers of lines]}
COPYING = {"install", "export", "update"}  # commands of skillpack that copy skills
LIBRARIES = {
    "scripts": ("yaml", "jsonschema", "click", "frontmatter"),
    "engine": ("klayout.db", "klayout.rdb", "klayout.lay", "numpy", "numba", "yaml", "jsonschema"),
    "servers": ("yaml", "jsonschema", "click", "frontmatter", "fastapi", "uvicorn", "mcp"),
}
PACKAGES = {
    "scripts": ("skillscript", "skillpack"),
    "engine": ("skillscript", "designgraph", "layoutkit"),
    "servers": ("skillscript", "skillpack"),
}


def serve(address):
    """Run the scripts requested at ``address`` and answer with their wait status, as long as a worker holds a lease."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with contextlib.suppress(FileNotFoundError):
        Path(address).unlink()
    listening.bind(address)
    listening.listen(64)
    measurement = prepare(sys.argv[2])
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    print("ready", flush=True)
    leases, asked = {listening}, {}  # the listening socket stands for a lease until a worker has one
    while leases:
        clients = {client: child for child, client in asked.items() if client}
        ready, _, _ = select.select({listening, woken, *leases, *clients}, [], [])
        for lease in leases.intersection(ready) - {listening}:  # readable only because it was closed
            leases.remove(lease)
            lease.close()
        for client in set(ready).intersection(clients):  # the same: the client was killed
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
                order = json.loads(os.pread(files[0], os.fstat(files[0]).st_size, 0))
                if COPYING.intersection(order["arguments"]):
                    read_packages()
                child = os.fork()
                if child == 0:
                    listening.close()
                    run_order(order, files, measurement)
                asked[child] = client
            for file in files:
                os.close(file)


def end(child):
    """Kill a child and the processes that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def answer_ended(asked):
    """Send the status of ended processes to their clients in ``asked``; None if the client has gone."""
    with contextlib.suppress(ChildProcessError):
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                break
            client = asked.pop(child)
            if client:
                with client, contextlib.suppress(OSError):
                    client.send(str(status).encode())


def prepare(kind):
    """Load what scripts load; return the measurement of coverage, if there is one.

    Args:
        kind: ``engine`` for scripts of skills; ``scripts`` for scripts that do not need the engine, which are forked in
            a fifth of the time. ``servers`` for commands that serve, if they end by themselves.
    """
    import gc

    measurement = start_measurement() if MEASURED in sys.argv else None
    packages = [importlib.import_module(name) for name in PACKAGES[kind]]
    modules = [
        found.name for package in packages for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    if kind != "servers":
        modules = [name for name in modules if not name.startswith("skillpack.hosts.")]
    for name in [*LIBRARIES[kind], *modules]:
        with contextlib.suppress(ImportError):  # an extra that is not installed
            importlib.import_module(name)
    if kind == "engine":
        warm_up()
    if measurement is not None:
        measurement.save()  # so that a child notes only what it executes itself
    gc.freeze()  # so that garbage collection in a child does not write to shared pages
    return measurement


@functools.cache
def read_packages():
    """Read what the packages of this project import, which each copy of a skill needs: two seconds a process."""
    from skillpack.copies.packages import needed_by, own_distribution, packages_of, providers

    packages = packages_of(own_distribution() or "")
    needed_by(ROOT / "skills/mos-pcell", Path(__file__), packages, packages)
    providers()


def warm_up():
    """Load all technologies and numba's compiled code, and lay out a pair."""
    from layoutkit.flow.build import build_layout
    from layoutkit.flow.design import LayoutRequest
    from layoutkit.place import engine
    from layoutkit.technology import load, names

    lay_out_cheaply()
    engine.COMPILE_FROM_WORK = 0  # children share the compiled code that is loaded here
    for name in names():
        load(name)
    with tempfile.TemporaryDirectory() as workspace:
        build_layout(LayoutRequest(str(ROOT / "skills/netlist-to-gds/assets/pair.spice"), "sky130A", workspace))


def lay_out_cheaply():
    """Draw smaller pictures of finished layouts than for users, and do not wait until files are on disk."""
    from layoutkit.flow import build

    build.PICTURE_SIDE = 320  # pixels on the long side: a third of a second less than 1600
    os.fsync = lambda _: None


def start_measurement():
    """Measure the coverage of the scripts; child processes append to ``EXECUTED``: coverage's files take 20 ms each."""
    import coverage

    measurement = coverage.Coverage(config_file=str(ROOT / "pyproject.toml"), data_suffix=True)
    measurement.set_option("run:data_file", str(ROOT / measurement.get_option("run:data_file")))
    EXECUTED.parent.mkdir(parents=True, exist_ok=True)
    measurement.kept = os.open(EXECUTED, os.O_WRONLY | os.O_CREAT | os.O_APPEND)  # a script may confine itself
    measurement.start()
    return measurement


def run_order(order, files, measurement):
    """Run the requested script in this process, and end the process."""
    os.setpgid(0, 0)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.close(files[0])
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
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)  # for -m, the current folder
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
        data = measurement._collector.data  # noqa: SLF001 - get_data() would write a file
        executed = json.dumps({name: [*lines] for name, lines in data.items() if lines})
        os.write(measurement.kept, executed.encode() + b"\n")  # whole, as the file is open for appending
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
