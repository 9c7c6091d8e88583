"""What the engine of many layouts costs, how it scales here, and a simulation of many workers with measured costs.

    python tests/bench/many_jobs.py [--layouts N]

Other programs share the machine, so efficiency is not a ratio of wall times. It is the part of the workers' time that
layouts fill, times the CPU time of a layout with one worker over that with several: both are measured within one run.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import os
import resource
import statistics
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
for folder in (HERE, HERE.parent):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from layoutkit.explore.jobs import Job, JobOutcome, JobProcess, JobRunOptions, Limits, LocalProcesses  # noqa: E402  # noqa: E402
from layoutkit.explore.layout_job import FUNCTION  # noqa: E402
from layoutkit.explore.run_jobs import run_jobs  # noqa: E402

OTA = ROOT / "skills/netlist-to-gds/assets/ota_5t.spice"
STAND_INS = 120
FILES = 21
SIMULATED_LAYOUTS = 20_000
LARGE_S = 60.0
"""Of a circuit that is simulated beside the measured one. [s]"""
WORKERS = (1, 10, 50, 100, 200, 500, 1000)


def nothing(params, folder):  # noqa: ARG001 - the functions of jobs have one signature
    """Do nothing: what remains is the engine's own cost."""
    return {}


def leave_files(params, folder):
    """Leave as many bytes in as many files as a layout does."""
    for number in range(FILES):
        (folder / f"file_{number}").write_bytes(os.urandom(params["bytes"] // FILES))
    return {}


def layouts(count: int) -> list[Job]:
    """Return jobs that lay out one amplifier with different seeds."""
    inputs = {"ota.spice": OTA.read_text(encoding="utf-8")}
    params = {"netlist_path": "ota.spice", "technology": "sky130A"}
    return [Job(FUNCTION, {"build": {**params, "seed": seed}}, inputs) for seed in range(1, count + 1)]


@dataclass(frozen=True)
class Local:
    """A run on this machine: its outcomes, its wall time [s] and the CPU time of all its processes [s]."""

    outcomes: list[JobOutcome]
    wall_s: float
    cpu_s: float
    slots: int

    @property
    def filled(self) -> float:
        """Return the part of the workers' time that jobs filled, the start of the processes included."""
        return sum(each.seconds for each in self.outcomes) / (self.slots * self.wall_s)


def local(jobs: list[Job], workers: int) -> Local:
    """Run ``jobs`` with ``workers`` processes."""
    with tempfile.TemporaryDirectory() as folder:
        begun, before = time.monotonic(), _cpu_s()
        outcomes = list(run_jobs(jobs, folder, JobRunOptions(LocalProcesses(workers), limits=Limits(900, 1000))))
        found = Local(outcomes, time.monotonic() - begun, _cpu_s() - before, workers)
    wrong = [each for each in outcomes if each.status != "done"]
    if wrong:
        sys.exit(f"{len(wrong)} of {len(outcomes)} jobs were not done, the first: {wrong[0].error}")
    return found


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def overhead_ms(count: int = STAND_INS) -> tuple[float, float]:
    """Return CPU and wall time that the engine adds to a job, its files included; one process works. [ms]"""
    few, many = (local([Job("many_jobs:nothing", {"n": n}) for n in range(number)], 1) for number in (1, count + 1))
    return 1000 * (many.cpu_s - few.cpu_s) / count, 1000 * (many.wall_s - few.wall_s) / count


@dataclass(frozen=True)
class Costs:
    """CPU time that one layout costs the client and the scheduler, files included. [s]"""

    client_s: float
    scheduler_s: float


def cluster_costs(size: int, count: int = STAND_INS) -> Costs:
    """Measure a real scheduler, two workers and this client with stand-ins that leave ``size`` bytes."""
    from clusters import Cluster
    from layoutkit.explore.dask_cluster import DaskCluster

    with tempfile.TemporaryDirectory() as home:
        cluster = Cluster(Path(home))
        try:
            for _ in range(2):
                cluster.worker(packages=HERE)
            where = DaskCluster(cluster.address)
            for name, number in (("warm", 4), ("run", count)):
                jobs = [Job("many_jobs:leave_files", {"bytes": size, "n": n, "run": name}) for n in range(number)]
                client, scheduler = time.process_time(), _cpu_of(cluster.scheduler.pid)
                done = list(run_jobs(jobs, Path(home, name), JobRunOptions(where)))
            if wrong := [each for each in done if each.status != "done"]:
                sys.exit(f"{len(wrong)} of {count} stand-ins on the cluster were not done, the first: {wrong[0].error}")
            client, scheduler = time.process_time() - client, _cpu_of(cluster.scheduler.pid) - scheduler
        finally:
            cluster.close()
    return Costs(client / count, scheduler / count)


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Simulated:
    """A simulated run: its length [s] and the part of it that workers, client and scheduler are busy."""

    seconds: float
    workers: float
    client: float
    scheduler: float


def simulate(workers: int, times: list[float], costs: Costs, count: int = SIMULATED_LAYOUTS) -> Simulated:
    """Simulate ``count`` layouts as discrete events; client and scheduler do one thing at a time, in order of arrival.

    A layout passes client, scheduler, worker, scheduler and client; each visit of client and scheduler takes half of
    their costs. As in the engine, two layouts a worker are under way.

    Args:
        workers: How many there are.
        times: Measured times of layouts, used in turn. [s]
        costs: Those of client and scheduler.
    """
    submit, dispatch, done, receive = range(4)
    client = scheduler = work = 0.0
    idle, waiting, begun, sequence = workers, deque[float](), 0, 0
    durations = itertools.cycle(times)
    events = []

    def at(moment: float, kind: int) -> None:
        nonlocal sequence
        sequence += 1
        heapq.heappush(events, (moment, sequence, kind))

    for _ in range(min(2 * workers, count)):
        begun += 1
        at(0.0, submit)
    while events:
        now, _, kind = heapq.heappop(events)
        if kind in (submit, receive):
            client = max(client, now) + costs.client_s / 2
            if kind == submit:
                at(client, dispatch)
            elif begun < count:
                begun += 1
                at(client, submit)
            continue
        scheduler = max(scheduler, now) + costs.scheduler_s / 2
        if kind == dispatch:
            waiting.append(next(durations))
        else:
            idle += 1
            at(scheduler, receive)
        while idle and waiting:
            idle -= 1
            work += waiting[0]
            ready = scheduler if kind == dispatch else now  # the next one waits on the worker
            at(ready + waiting.popleft(), done)
    return Simulated(
        client, work / (workers * client), count * costs.client_s / client, count * costs.scheduler_s / client
    )


def measure(count: int = 64) -> None:
    """Print overhead, efficiency and the simulation."""
    cpu, wall = overhead_ms()
    print(f"{'engine, per job that does nothing, one process':<60} {cpu:.1f} ms CPU, {wall:.1f} ms wall  at most 50 ms")
    jobs = layouts(count)
    runs = {workers: local(jobs, workers) for workers in (1, 2)}
    for workers, run in runs.items():
        cpu_each = run.cpu_s / count
        efficiency = run.filled * (runs[1].cpu_s / run.cpu_s)
        name = f"{count} layouts of a 5T OTA, workers: {workers}"
        text = f"efficiency {efficiency:.2f} (filled {run.filled:.2f}), CPU {cpu_each:.2f} s a layout"
        print(f"{name:<60} {text}  at least 0.85", flush=True)
    times = [each.cpu_s for each in runs[1].outcomes]
    size = _size_of_a_layout(jobs[0])
    costs = cluster_costs(size)
    print(
        f"cluster, {size / 1e6:.2f} MB a layout: client {1000 * costs.client_s:.1f} ms, "
        f"scheduler {1000 * costs.scheduler_s:.1f} ms CPU a layout"
    )
    for each in (times, [LARGE_S]):
        print_simulation(each, costs)


def print_simulation(times: list[float], costs: Costs) -> None:
    """Print a line for each number of workers."""
    print(f"simulated: {SIMULATED_LAYOUTS} layouts of {statistics.mean(times):.2f} s")
    print(f"{'workers':>8} {'layouts/h':>10} {'workers busy':>13} {'client busy':>12} {'scheduler busy':>15}")
    for workers in WORKERS:
        found = simulate(workers, times, costs)
        rate = SIMULATED_LAYOUTS / found.seconds * 3600
        print(f"{workers:>8} {rate:>10.0f} {found.workers:>13.2f} {found.client:>12.2f} {found.scheduler:>15.2f}")


def _size_of_a_layout(job: Job) -> int:
    with tempfile.TemporaryDirectory() as home:
        process = JobProcess()
        try:
            process.run(job, Path(home, "files"), Limits(), lambda: True)
        finally:
            process.stop()
        return sum(path.stat().st_size for path in Path(home).rglob("*") if path.is_file())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layouts", type=int, default=64, help="how many layouts each run makes (default 64)")
    measure(parser.parse_args().layouts)
