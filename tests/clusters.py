"""Real schedulers and workers of Dask, as separate processes on loopback."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from patience import WATCHDOG_S, eventually

TESTS = Path(__file__).parent


class Cluster:
    """A scheduler and its workers; each has a folder of its own, and none knows the client's.

    Args:
        home: Folder for theirs.
        options: Further options of ``dask scheduler`` and ``dask worker``, such as those of TLS.
        protocol: ``tcp`` or ``tls``.
    """

    def __init__(self, home, options=(), protocol="tcp"):
        self.home = home
        self.options = options
        self.processes = []
        address = home / "scheduler.json"
        where = ["--protocol", protocol, "--host", "127.0.0.1", "--port", "0", "--scheduler-file", address]
        self.scheduler = self._start("scheduler", *where, "--no-dashboard", *options)
        assert eventually(lambda: address.exists() and address.read_text().endswith("}"))
        self.file = address

    @property
    def address(self):
        """Address of the scheduler."""
        import json

        return json.loads(self.file.read_text())["address"]

    def worker(self, *, packages=None):
        """Return a new worker that has joined; ``packages`` is a folder that Python searches first."""
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0", "--host", "127.0.0.1"]
        process = self._start("worker", self.address, *options, *self.options, packages=packages)
        assert eventually(lambda: "Registered to" in self.talk.read_text())
        return process

    def _start(self, kind, *arguments, packages=None):
        folder = Path(tempfile.mkdtemp(prefix=kind, dir=self.home))
        places = [*([str(packages)] if packages else []), str(TESTS)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "TMPDIR": str(folder)}
        environment["DASK_TEMPORARY_DIRECTORY"] = str(folder)
        self.talk = folder / "talk.txt"  # of the last process
        with self.talk.open("wb") as talk:
            command = [sys.executable, "-m", "dask", kind, *map(str, arguments)]
            process = subprocess.Popen(command, cwd=folder, env=environment, stdout=talk, stderr=talk)
        self.processes.append(process)
        return process

    def end(self, process):
        """End one of its processes, whatever it does."""
        self.processes.remove(process)
        process.kill()
        process.wait(WATCHDOG_S)

    def close(self):
        """End all of them, the scheduler last."""
        for process in list(reversed(self.processes)):
            self.end(process)
