"""Skill scripts in processes of their own that need not load Python, KLayout and numba again.

A server process loads what scripts load, once, and lays out a pair: a first layout also loads technologies, what numba
compiled and parts of KLayout, half a second in all. For each request it forks; the child gets the script's arguments,
environment, folder and standard streams and runs it as ``__main__``. What a real start does besides (the interpreter's
own start, its ``PYTHON...`` variables) is left to tests that start Python. The picture of a finished layout is drawn
smaller than for users, which saves a third of a second each.
"""

import atexit
import contextlib
import functools
import importlib
import io
import json
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

from patience import WATCHDOG_S

SKILLS = Path(__file__).resolve().parent.parent / "skills"
LIBRARIES = ("klayout.db", "klayout.rdb", "klayout.lay", "numpy", "numba", "yaml", "jsonschema")
SMALL_PICTURE = 320  # pixels on the long side
PACKAGES = ("layoutkit", "designgraph", "skillscript")
MEASURED = "--measured"


class Server:
    """A process that forks a child for each script to run."""

    def __init__(self):
        pipe = subprocess.PIPE
        command = [sys.executable, __file__, *([MEASURED] if is_measured() else [])]
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        atexit.register(self.close)

    def run(self, arguments, *, folder, environment, stdin=""):
        """Return what ``subprocess.run([python, *arguments])`` would, with text output."""
        with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as told:
            given.write(stdin)
            given.seek(0)
            streams = [f"/proc/{os.getpid()}/fd/{stream.fileno()}" for stream in (given, out, told)]
            order = {
                "arguments": list(arguments),
                "folder": str(folder),
                "environment": environment,
                "streams": streams,
            }
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            status = int(self._process.stdout.readline())
            texts = []
            for stream in (out, told):
                stream.seek(0)
                texts.append(io.TextIOWrapper(stream, encoding="utf-8").read())
        return subprocess.CompletedProcess(arguments, os.waitstatus_to_exitcode(status), *texts)

    def close(self):
        """End the server."""
        self._process.stdin.close()
        self._process.wait()


def is_measured():
    """Return whether pytest-cov measures the coverage of this process, so that the scripts' is measured, too."""
    coverage = sys.modules.get("coverage")
    return coverage is not None and coverage.Coverage.current() is not None


@functools.cache
def server():
    """Return this process's server; None where there is no fork."""
    return Server() if hasattr(os, "fork") and Path("/proc/self/fd").exists() else None


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


def serve():
    """Run what standard input asks for, one order a line; answer each with the child's wait status."""
    import gc

    measurement = start_measurement() if MEASURED in sys.argv else None
    packages = [importlib.import_module(name) for name in PACKAGES]
    modules = [
        found.name for package in packages for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    for name in [*LIBRARIES, *modules]:
        with contextlib.suppress(ImportError):  # an extra that is not installed
            importlib.import_module(name)
    warm_up()
    gc.freeze()  # so that a child's collector does not write to the pages it shares
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run_order(json.loads(line), measurement)
        print(os.waitpid(child, 0)[1], flush=True)


def warm_up():
    """Lay out a pair, and load all technologies."""
    from layoutkit.flow import build
    from layoutkit.flow.design import LayoutRequest
    from layoutkit.technology import load, names

    build.PICTURE_SIDE = SMALL_PICTURE
    for name in names():
        load(name)
    with tempfile.TemporaryDirectory() as workspace:
        build.build_layout(LayoutRequest(str(SKILLS / "netlist-to-gds/assets/pair.spice"), "sky130A", workspace))


def start_measurement():
    """Measure the coverage of the scripts; each child process writes a file of its own."""
    import coverage

    measurement = coverage.Coverage(config_file=str(SKILLS.parent / "pyproject.toml"), data_suffix=True)
    measurement.set_option("run:data_file", str(SKILLS.parent / measurement.get_option("run:data_file")))
    measurement.start()
    return measurement


def run_order(order, measurement):
    """Become the script that was ordered; never return."""
    for number, path in enumerate(order["streams"]):
        os.dup2(os.open(path, os.O_RDWR), number)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - descriptors, not paths
        for number, mode in enumerate(("r", "w", "w"))
    )
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    script = order["arguments"][0]
    sys.argv = order["arguments"]
    sys.path[0] = str(Path(script).parent)
    code = 0
    try:
        runpy.run_path(script, run_name="__main__")
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
    serve()
