"""Jobs on a cluster of Dask whose workers end, hang or run something else: each is counted once, nothing is hidden."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clusters import Cluster
from extras import extra
from layoutkit.errors import FileError, LayoutkitError, MissingProgramError
from layoutkit.explore import dask_cluster, layout_job
from layoutkit.explore.dask_cluster import DaskCluster, DaskWorkplace
from layoutkit.explore.jobs import Job, JobRunOptions, Limits, LocalProcesses
from layoutkit.explore.run_jobs import run_jobs
from patience import WATCHDOG_S, eventually, gone

distributed = extra("distributed", reason="needs dask.distributed")
TESTS = Path(__file__).parents[2]
SCRIPTS = TESTS.parent / "scripts"
ENGINE = SCRIPTS / "layoutkit"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler with one good worker."""
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.worker()
        yield made
    finally:
        made.close()


def do(name, /, **params):
    return Job(f"stand_in_jobs:{name}", params)


def run(jobs, folder, cluster, on_result=lambda *_: None, **options):
    wait = options.pop("worker_wait_s", WATCHDOG_S)
    return list(
        run_jobs(jobs, folder, JobRunOptions(DaskCluster(cluster.address, worker_wait_s=wait), **options), on_result)
    )


def lines(folder):
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()[1:]]


def counted_once(folder, jobs):
    assert sorted(line["key"] for line in lines(folder)) == sorted(job.key for job in jobs)


def ancestors(pid):
    """Return the processes above one."""
    found = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        found.append(pid)
    return found


def three_marks(folder):
    """Return three jobs that log their process and wait for a file, the log, and the file."""
    log, go = folder / "log", folder / "go"
    return [do("mark", n=n, log=str(log), wait_for=str(go)) for n in range(3)], log, go


def marks_of_two(log):
    """Return the lines of the log as soon as two jobs have begun."""
    assert eventually(lambda: log.exists() and len(log.read_text().splitlines()) >= 2)
    return log.read_text().splitlines()


def test_inputs_travel_and_files_come_back(cluster, tmp_path):
    jobs = [Job("stand_in_jobs:square", {"n": n}, {"a.in": "x"}) for n in range(6)]
    jobs += [do("refuse", n=1), do("crash"), do("write_much", mb=3), jobs[0]]
    found = {each.key: each for each in run(jobs, tmp_path, cluster, limits=Limits(output_mb=2))}
    for n, job in enumerate(jobs[:6]):
        assert found[job.key].answer == {"square": n**2, "read": ["a.in"]}
        assert (tmp_path / job.home / "more/square.txt").read_text() == str(n**2)
        assert found[job.key].worker.startswith("tcp://127.0.0.1")
    assert [found[job.key].status for job in jobs[6:9]] == ["failed", "crashed", "too large"]
    counted_once(tmp_path, jobs[:9])
    assert all(each.resumed for each in run(jobs[:6], tmp_path, cluster, resume=True))


@pytest.mark.usefixtures("forked_jobs")
def test_a_worker_makes_the_same_layout_as_this_machine(cluster, tmp_path):
    netlist = ".subckt mirror in out vss\nM1 in in vss vss nmos W=4u L=1u\nM2 out in vss vss nmos W=4u L=1u\n.ends\n"
    params = {"build": {"netlist_path": "mirror.spice", "technology": "sky130A"}}
    job = Job(layout_job.FUNCTION, params, {"mirror.spice": netlist}, folder="mirror")
    (there,) = run([job], tmp_path / "there", cluster)
    (here,) = run_jobs([job], tmp_path / "here", JobRunOptions(LocalProcesses(1)))
    assert (there.status, here.status) == ("done", "done")
    assert there.files["layout.gds"] == here.files["layout.gds"]
    assert (there.answer["faults"], there.answer["devices"]) == ([], 2)
    assert (tmp_path / "there/mirror/report.html").is_file()


def test_the_job_of_a_worker_that_is_killed_is_done_by_another_and_counted_once(cluster, tmp_path):
    second = cluster.worker()
    jobs, log, go = three_marks(tmp_path)

    def when_both_work():
        yield from jobs
        pids = [int(line.split()[1]) for line in marks_of_two(log)]
        (victim,) = [pid for pid in pids if second.pid in ancestors(pid)]
        cluster.end(second)
        assert gone(victim)
        go.touch()

    found = run(when_both_work(), tmp_path / "run", cluster)
    assert [each.status for each in found] == ["done"] * 3
    assert len({each.worker for each in found}) == 1
    counted_once(tmp_path / "run", jobs)
    assert len(log.read_text().splitlines()) == 4  # one was begun twice


def test_a_worker_that_hangs_loses_its_jobs(tmp_path, monkeypatch):
    """Dask drops a worker that it has not heard of for its ``worker-ttl``."""
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "3s")
    cluster = Cluster(tmp_path)
    cluster.worker()
    second = cluster.worker()
    jobs, log, go = three_marks(tmp_path)

    def when_both_work():
        yield from jobs
        marks_of_two(log)
        second.send_signal(signal.SIGSTOP)
        go.touch()

    try:
        found = run(when_both_work(), tmp_path / "run", cluster)
    finally:
        cluster.close()
    assert [each.status for each in found] == ["done"] * 3
    counted_once(tmp_path / "run", jobs)


def test_a_job_beyond_its_time_is_ended_on_its_worker(cluster, tmp_path):
    (outcome,) = run([do("wait", pids=str(tmp_path / "pids"))], tmp_path / "run", cluster, limits=Limits(seconds=1.5))
    assert outcome.status == "time limit"
    assert all(gone(pid) for pid in (tmp_path / "pids").read_text().split())


def test_a_run_that_stops_ends_its_jobs_on_the_workers(cluster, tmp_path):
    running = run_jobs(
        [do("square", n=2), do("wait", pids=str(tmp_path / "pids"))],
        tmp_path,
        JobRunOptions(DaskCluster(cluster.address)),
    )
    next(running)
    assert eventually((tmp_path / "pids").exists)
    running.close()
    assert all(gone(pid) for pid in (tmp_path / "pids").read_text().split())
    assert len(lines(tmp_path)) == 1


@pytest.fixture(scope="module")
def strange_packages(tmp_path_factory):
    """Folders with another version of the engine, and with none that can be imported."""
    home = tmp_path_factory.mktemp("packages")
    shutil.copytree(ENGINE, home / "other/layoutkit", ignore=shutil.ignore_patterns("__pycache__"))
    with (home / "other/layoutkit/errors.py").open("a") as source:
        source.write("# changed\n")
    (home / "none/layoutkit").mkdir(parents=True)
    (home / "none/layoutkit/__init__.py").write_text("raise ImportError('not here')\n")
    return home


@pytest.mark.parametrize(("kind", "words"), [("other", "this client runs"), ("none", "cannot run this package")])
def test_a_worker_with_another_version_does_no_job_and_is_named(kind, words, strange_packages, cluster, tmp_path):
    stranger = cluster.worker(packages=strange_packages / kind)
    try:
        seen = {}
        jobs = [do("square", n=n) for n in range(6)]
        found = run(jobs, tmp_path, cluster, on_result=lambda _, progress: seen.update(progress.notes))
        assert [each.status for each in found] == ["done"] * 6
        assert len({each.worker for each in found}) == 1
        ((stranger_address, why),) = seen.items()
        assert words in why
        assert stranger_address != found[0].worker
    finally:
        cluster.end(stranger)


def test_without_a_worker_that_may_work_everything_missing_is_named(strange_packages, tmp_path):
    alone = Cluster(tmp_path)
    try:
        jobs = [do("square", n=n) for n in range(2)]
        found = run(jobs, tmp_path / "none", alone, worker_wait_s=0.5)
        assert [(each.key, each.status) for each in found] == [(job.key, "lost") for job in jobs]
        assert "no worker could run it for 0.5 s" in found[0].error["message"]
        alone.worker(packages=strange_packages / "other")
        (outcome,) = run(jobs[:1], tmp_path / "other", alone, worker_wait_s=12)
        assert "this client runs" in outcome.error["message"]
        alone.worker()
        later = run(jobs, tmp_path / "none", alone, resume=True)
        assert [each.status for each in later] == ["done", "done"]
        running = run_jobs(
            [do("square", n=5), do("wait", pids=str(tmp_path / "pids"))],
            tmp_path / "gone",
            JobRunOptions(DaskCluster(alone.address)),
        )
        next(running)
        alone.end(alone.scheduler)
        with pytest.raises(MissingProgramError, match="resume the run"):
            list(running)
        assert len(lines(tmp_path / "gone")) == 1
    finally:
        alone.close()


def test_a_client_that_closed_with_its_scheduler_hides_no_error(cluster, tmp_path):
    client = distributed.Client(cluster.address, set_as_default=False)
    place = DaskWorkplace(client, Limits(), 60.0)
    place.start(do("square", n=3), tmp_path)
    client.close()
    with pytest.raises(MissingProgramError, match="resume the run"):
        place.finished(0.1)
    place.stop()


PROGRAM = """
import json, sys
from layoutkit.explore.jobs import Job, JobRunOptions
from layoutkit.explore.dask_cluster import DaskCluster, DaskWorkplace
from layoutkit.explore.run_jobs import run_jobs
jobs = [Job(**each) for each in json.loads(sys.argv[2])]
for outcome in run_jobs(jobs, sys.argv[1], JobRunOptions(DaskCluster(sys.argv[3]))):
    print(outcome.status, flush=True)
"""


def test_a_client_that_is_killed_is_continued(cluster, tmp_path):
    go = tmp_path / "go"
    jobs = [do("mark", n=0, log=str(tmp_path / "log"))]
    jobs += [do("mark", n=n, log=str(tmp_path / "log"), wait_for=str(go)) for n in (1, 2)]
    given = json.dumps([job.to_json() for job in jobs])
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "run"), given, cluster.address]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline() == b"done\n"
        process.kill()
        process.wait(WATCHDOG_S)
    go.touch()
    found = run(jobs, tmp_path / "run", cluster, resume=True)
    assert sorted(each.resumed for each in found) == [False, False, True]
    counted_once(tmp_path / "run", jobs)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_tls_is_passed_through(tmp_path):
    ca, cert, key = _certificate(tmp_path)
    options = ["--tls-ca-file", ca, "--tls-cert", cert, "--tls-key", key]
    secured = Cluster(tmp_path, options, protocol="tls")
    try:
        secured.worker()
        where = DaskCluster(secured.address, ca, cert, key)
        (outcome,) = run_jobs([do("square", n=3)], tmp_path / "run", JobRunOptions(where))
        assert outcome.worker.startswith("tls://")
        (tmp_path / "other").mkdir()
        strangers = DaskCluster(secured.address, *_certificate(tmp_path / "other"))
        with pytest.raises(MissingProgramError, match="no scheduler answers"):
            list(run_jobs([do("square", n=3)], tmp_path / "strangers", JobRunOptions(strangers)))
    finally:
        secured.close()


def _certificate(folder):
    """Make a certificate that certifies itself."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    subprocess.run([*made, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return str(cert), str(cert), str(key)


def test_what_a_worker_sends_is_written_into_the_folder_only(tmp_path):
    dask_cluster.write_contents({"more/a": b"1", "../b": b"2", "/b": b"3"}, tmp_path / "job")
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["job", "more", "a"]
    with pytest.raises(FileError, match="what is done is kept"):
        dask_cluster.write_contents({"b": b"1"}, tmp_path / "job/more/a")


def test_addresses_and_certificates_that_do_not_fit_are_refused(monkeypatch, tmp_path):
    for arguments, words in [
        (("localhost",), "must have the form tcp://"),
        (("http://localhost:1",), "must have the form tcp://"),
        (("tcp://h:1", "ca.pem"), "got only ca"),
        (("tcp://h:1", "ca.pem", "c.pem", "k.pem"), "write tls://h:1"),
        (("tls://h:1",), "needs the TLS files"),
    ]:
        with pytest.raises(LayoutkitError, match=words):
            DaskCluster(*arguments)
    files = [tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem")]
    secured = DaskCluster("127.0.0.1:1", *map(str, files))
    with pytest.raises(FileError, match=r"no TLS file .*ca\.pem, .*cert\.pem, .*key\.pem"):
        secured.open(Limits())
    for file in files:
        file.write_text("no certificate\n", encoding="utf-8")
    with pytest.raises(MissingProgramError, match=r"tls://127\.0\.0\.1:1"):
        secured.open(Limits())
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingProgramError, match="extra 'explore'"):
        DaskCluster("127.0.0.1:1").open(Limits())
