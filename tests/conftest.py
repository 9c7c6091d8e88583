"""What tests of several rooms share."""

import functools
import gc
import json
import os
import re
import shutil
import signal
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))  # forked.py, model_service.py and the like
from browser import CHROMIUM, chromium  # noqa: E402
from fork_server import lay_out_cheaply  # noqa: E402
from forked import programs, run_program, share  # noqa: E402
from installed_wheel import build_wheel, install, run_uv  # noqa: E402
from made_once import Once  # noqa: E402
from thorough import TURN, examples  # noqa: E402

# Imported modules and collected tests stay in memory. Searching them for garbage takes a quarter of a worker's start-up
# time, and slows down each later search.
gc.disable()


def pytest_collection_finish():
    """Exclude all present objects from garbage collection, and enable it, as rarely as in programs of tools."""
    from skillscript.program import RARELY

    gc.freeze()
    gc.set_threshold(*RARELY)
    gc.enable()


# A busy machine must not turn a slow example into a failure: Hypothesis' own limits are wall time. A run of the tests
# judges the change, not luck, so each test gets the same examples every time; HYPOTHESIS_PROFILE=search tries others.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("search"), derandomize=True, max_examples=examples(100))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# A job in the background or under nohup ignores these signals, and so would every server that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

STOPPING = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def _signals_as_before():
    """Give the signals that stop a program back their handlers: code run in this process may leave them ignored."""
    former = [(number, signal.getsignal(number)) for number in STOPPING]
    yield
    for number, handler in former:
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


# A small OASIS file with a few bytes changed, found by changing bytes at random and then leaving out what did not
# matter: KLayout 0.30.12 reads it for ever, with little memory, holding the GIL.
HANGING_OASIS = (
    bytes.fromhex(
        "2553454d492d4f415349530d0a0103312e3000070f070d535f43454c4c5f4f5045525459075f4d41585f5349474e45445f49"
        "4e54454745525f5749445448071c535f4d41585f554e5349474e45445f494e54454745525f5749445448070a535f544f505f"
        "430501410d011463421464c80116e1440a050001c80115200403c20ca80651ad021c170008010201cf01018d01e123018801"
        "0100010080808080808080808080808080808080808080808080808080808080808080808080808080808080808080808080"
        "8080808080808080808080808080808080808080808080808080808080808080808080808080808080808080808080808080"
        "8080808080808080808080808080808080808080808080808080808080808080808080808080808080808080808080808080"
        "8080808080808080808080808080808080808080808080808080808080808080808080808080808080808080808080808080"
        "80808080808080808080808080808080808080808080808080808080808080808080808080808080808091"
    )
    + b"\x00"
)


@pytest.fixture
def hanging_oasis():
    """Return the bytes of an OASIS file that KLayout's reader never finishes."""
    return HANGING_OASIS


# What `make test-quick` leaves out: files that start servers, other programs or the KLayout application, finish or
# review many layouts, or walk a large grid. Everything they test is tested by `make test`.
SLOW_BY_FOLDER = {
    "designgraph": "pictures processes startup",
    "docs": "documents registry_pages site skill_pictures tutorials",
    "evals": "evals",
    "hosts": "confinement hosts_page http http_fuzz lean_schemas mcp_inspector mcp_stdio mcp_tools mcp_transports "
    "options plugin raw_copies remote uvx",
    "layoutkit/api": "python_api",
    "layoutkit/drc": "drc_application drc_deck drc_hierarchy drc_mutants drc_oracle",
    "layoutkit/circuit": "bounded_messages hostile_netlists linear_time netlist_fuzz",
    "layoutkit/draw": "bipolar_cells bipolars capacitor_arrays deep_well fixed_cells flavours matched module_trunks "
    "mos resistors_and_capacitors row_wires stack",
    "layoutkit/explore": "cluster_jobs exploration netlist_suite run_jobs",
    "layoutkit/extract": "diodes matched_groups",
    "layoutkit/flow": "bipolars_in_flow cell_constraints common_rings constraints_in_flow end_dummies equal_circuits "
    "every_device isolated_bodies keepouts kept_modules matched_groups matched_hbts mixed_voltages module_currents "
    "neighbours nets_in_flow other_grounds passive_groups ports shared_cells supply_feeds tied_dummies tight_frame "
    "tries whole_symmetry",
    "layoutkit/pcells": "pcells",
    "layoutkit/route": "blockers path_search route_paths route_random",
    "layoutkit/layout": "export klayout_files workspace",
    "layoutkit/parasitics": "pex_netlist",
    "layoutkit/review": "planted_connections planted_counterparts planted_covers planted_dummies planted_floorplans "
    "planted_groups planted_halves planted_layouts planted_lone_transistors planted_matching planted_neighbours "
    "planted_passives planted_supplies planted_units planted_ways planted_wires unsigned_layouts",
    "layoutkit/simulate": "post_layout",
    "layoutkit/technology": "size_limits",
    "layoutkit/tools": "technology_file_check",
    "layoutkit/view": "report_in_browser",
    "loader": "cli declared_commands export exported_skills frontmatter handler layer1 pipeline runner search "
    "warm_workers",
    "skills": "black_boxes common_centroid_pair compare_layouts constraint_planning current_mirror "
    "design_knowledge_graph drc_check extracted_spice gds_export layout_edit layout_review layout_view lvs_check "
    "module_placement mos_pcell netlist_text netlist_to_gds netlists_as_they_are one_flow parasitics passive_devices "
    "post_layout_simulation signal_routing technology_export_klayout watch_layout workspace_state",
    "skillscript": "command_line model_call outcomes serve_tools supervisor worker",
}
SLOW = {f"{folder}/test_{name}.py" for folder, names in SLOW_BY_FOLDER.items() for name in names.split()}
SLOW |= {"test_packaging.py", "test_release.py"}
# What judges the text of the sources alike with each version of Python and of libraries.
OF_SOURCES = {"test_architecture.py", "test_house.py"}
# What `make test` leaves out too and `make check` runs: what is packed, copied and installed elsewhere or served to
# other machines, what other programs judge, how well the search does, what kills processes until nothing is lost, what
# huge and hostile netlists do, and the whole flow once more, tool by tool.
OUTER_BY_FOLDER = {
    "designgraph": "processes",
    "docs": "documents registry_pages site tutorials",
    "evals": "evals",
    "hosts": "confinement hosts_page http http_fuzz mcp_inspector mcp_stdio mcp_tools mcp_transports options plugin "
    "raw_copies remote uvx",
    "layoutkit/circuit": "bounded_messages hostile_netlists linear_time netlist_fuzz",
    "layoutkit/drc": "drc_application drc_deck drc_mutants drc_oracle",
    "layoutkit/explore": "cluster_jobs exploration netlist_suite run_jobs",
    "layoutkit/pcells": "pcells",
    "layoutkit/simulate": "post_layout",
    "loader": "export exported_skills warm_workers",
    "skills": "one_flow watch_layout",
}
OUTER = {f"{folder}/test_{name}.py" for folder, names in OUTER_BY_FOLDER.items() for name in names.split()}
OUTER |= {"test_packaging.py", "test_release.py"}
# What waits for processes, servers or a clock most of its time, or starts programs of its own. One worker of several
# gets these tests first: while it waits, the others compute.
WAITING_BY_FOLDER = {
    "designgraph": "processes",
    "docs": "site",
    "hosts": "http http_fuzz mcp_inspector mcp_stdio mcp_transports plugin raw_copies remote uvx",
    "layoutkit/drc": "drc_deck",
    "layoutkit/explore": "cluster_jobs exploration run_jobs",
    "loader": "export exported_skills runner warm_workers",
    "skills": "watch_layout",
    "skillscript": "model_call supervisor",
}
WAITING = {f"{folder}/test_{name}.py" for folder, names in WAITING_BY_FOLDER.items() for name in names.split()}
WAITING |= {"test_packaging.py", "test_release.py"}
ALIKE = 2
FEW = 10  # random examples of a test for other versions
TECHNOLOGIES = {path.stem for path in (TESTS.parent / "scripts/layoutkit/technology").glob("*.yaml")}


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="leave out the slow files that tests/conftest.py lists")
    parser.addoption("--inner", action="store_true", help="leave out the files about copies, packages and programs")
    parser.addoption("--versions", action="store_true", help="run what may differ between versions of the libraries")


def pytest_configure(config):
    """Draw few random examples where one case of a test stands for all."""
    if config.getoption("--versions"):
        settings.register_profile("few", settings.get_profile("same"), max_examples=FEW)
        settings.load_profile("few")


def pytest_runtest_protocol(item, nextitem):
    """Let a worker report what counts: a call, and what has not passed; reports cost more than a short test."""
    if "PYTEST_XDIST_WORKER" not in os.environ or item.config.getoption("durations"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@functools.cache
def place_of(path):
    """Return the path of a test file below the folder of tests."""
    return path.relative_to(TESTS).as_posix()


def pytest_ignore_collect(collection_path, config):
    """Leave out the files that the selection of this run does not need; see ``pytest_collection_modifyitems``."""
    place = place_of(collection_path)
    if config.getoption("--versions"):
        return place in OF_SOURCES or (place in SLOW and not place.startswith("skills/")) or None
    left_out = SLOW if config.getoption("--quick") else OUTER if config.getoption("--inner") else ()
    return place in left_out or None


def pytest_collection_modifyitems(config, items):
    """Leave out some of several tests that are alike, unless all tests run, as by ``make check``.

    With ``--quick`` or ``--inner``, a test of a slow file runs in one of the technologies that it is written for, and
    with ``ALIKE`` of its parameters at most. With ``--versions``, any test runs with one of its parameters, as the same
    code runs with each, and one test of each slow file: of these, only those of tools are collected; of the others,
    every second one, the other half the next day.
    """
    items.sort(key=lambda item: place_of(item.path) not in WAITING)
    slow = {item for item in items if place_of(item.path) in SLOW}
    if config.getoption("--versions"):
        left_out = beyond(1, items, lambda item: item.path if item in slow else name_of(item))
        if TURN is not None:
            quick = {item: name_of(item) for item in items if item not in slow}
            today = {*sorted({*quick.values()})[TURN % 2 :: 2]}
            left_out |= {item for item, name in quick.items() if name not in today}
        draw_few_examples(set(items) - left_out)
    elif config.getoption("--quick") or config.getoption("--inner"):
        left_out = beyond(1, slow, name_in_any_technology)
        left_out |= beyond(ALIKE, slow - left_out, name_of)
    else:
        return
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def draw_few_examples(items):
    """Let tests that state how many random examples they try draw ``FEW`` at most."""
    stated = "_hypothesis_internal_use_settings"
    for test in {item.function for item in items if hasattr(getattr(item, "function", None), stated)}:
        own = getattr(test, stated)
        setattr(test, stated, settings(own, max_examples=min(FEW, own.max_examples)))


def beyond(most, items, name):
    """Return what is left out if of the tests with one ``name(test)`` at most so many run.

    Which ones follows from their own names, so that each value of their parameters has its share.
    """
    alike = {}
    for item in sorted(items, key=lambda item: (zlib.crc32(item.nodeid.encode()), item.nodeid)):
        alike.setdefault(name(item), []).append(item)
    return {item for found in alike.values() for item in found[most:]}


def name_of(item):
    """Return the name of a test without its parameters."""
    return item.nodeid.partition("[")[0]


def name_in_any_technology(item):
    """Return the name of a test with its parameters, but for the technology, if one of them is one."""
    given = getattr(item, "callspec", None)
    values = [value for value in given.params.values() if isinstance(value, str)] if given else []
    technology = next((value for value in values if value in TECHNOLOGIES), None)
    return item.nodeid.replace(technology, "*") if technology else item.nodeid


@pytest.fixture(autouse=True, scope="session")
def cheap_layouts(once):
    """Draw small pictures of layouts that this process finishes, and do not wait until files are on disk."""
    share(once.root / "forked")
    lay_out_cheaply()


@pytest.fixture(scope="session")
def started_browser():
    """Return a browser that tests use one after the other."""
    if CHROMIUM is None:
        pytest.skip("skipped: needs chromium")
    with chromium() as page:
        yield page


@pytest.fixture
def browser(started_browser):
    """Return a page of a browser, 1400 x 900 in light colours; see ``browser.Page``."""
    started_browser.begin()
    return started_browser


@pytest.fixture(scope="session")
def built_wheel(once):
    """Return a folder that holds the wheel of this checkout and nothing else; ``UV_FIND_LINKS`` may name it."""
    pytest.importorskip("hatchling.builders.wheel", reason="skipped: needs hatchling")
    pytest.importorskip("hatch_fancy_pypi_readme", reason="skipped: needs hatch-fancy-pypi-readme")
    return once(lambda folder: build_wheel(folder).name, "wheel")[1]


@pytest.fixture(scope="session")
def uv(tmp_path_factory):
    """Return a function that runs uv: ``uv("tool", "run", ..., cwd=folder, UV_FIND_LINKS=...)``.

    It returns the completed process, its output as text. The home is empty, the cache the user's. A test is skipped
    where there is no uv, or no index for what the cache lacks.
    """
    beside = Path(sys.executable).with_name("uv")
    program = str(beside) if beside.exists() else shutil.which("uv")
    if program is None:
        pytest.skip("skipped: needs uv")
    return functools.partial(run_uv, program, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def wheel_environment(built_wheel, uv, tmp_path_factory):
    """Return an environment with the wheel and its declared dependencies, but no extra; see ``installed_wheel``."""
    return install(next(built_wheel.glob("*.whl")), tmp_path_factory.mktemp("wheel"), uv)


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """Return what does a thing once in a test run, in whichever worker it is asked for first; see ``made_once``."""
    own = tmp_path_factory.getbasetemp()
    return Once((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "made_once")


@pytest.fixture(scope="session")
def run_once(once):
    """Return a function that runs a skill's script with the same arguments once in a test run.

    ``run("x/scripts/y.py", netlist, "--flag", value)`` gives it a file with the netlist (a path or text) and a
    workspace. It returns the exit code, the envelope and the workspace, which tests read; one that changes it takes a
    copy.
    """

    def run(script, netlist, *arguments):
        text = netlist if isinstance(netlist, str) else netlist.read_text(encoding="utf-8")

        def make(folder):
            (folder / "in.spice").write_text(text, encoding="utf-8")
            given = ("--netlist-path", folder / "in.spice", "--workspace", folder / "ws", *arguments)
            done = run_program(script, *given, cwd=folder)
            assert done.stdout.count("\n") == 1, done.stdout + done.stderr
            return [done.returncode, json.loads(done.stdout)]

        (code, envelope), folder = once(make, script, text, *map(str, arguments))
        return code, envelope, folder / "ws"

    return run


@pytest.fixture(scope="session")
def finished_layout(run_once):
    """Return a function that lays out a netlist (a path or text) once in a test run; it returns report and workspace.

    The workspace is shared: a test that changes it takes a copy.
    """

    def build(netlist, technology):
        script = "netlist-to-gds/scripts/build_layout.py"
        _, envelope, workspace = run_once(script, netlist, "--technology", technology)
        return envelope["data"], workspace

    return build


@pytest.fixture(scope="session")
def column_ota():
    """Return the text of the OTA with twice the fingers: its modules are wide and flat, and lie on one axis."""
    text = (TESTS.parent / "skills/netlist-to-gds/assets/ota_5t.spice").read_text(encoding="utf-8")
    return re.sub(r"nf=(\d)", lambda found: f"nf={2 * int(found[1])}", text)


@pytest.fixture(scope="module")
def forked_tools():
    """Fork the programs of tools instead of starting them, for tests of what tools do."""
    from skillpack.execution import tool_process

    started, python = tool_process.program_of, str(programs() / "python-of-tools")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tool_process, "program_of", lambda *given, **warm: [python, *started(*given, **warm)[1:]])
        yield


@pytest.fixture(scope="module")
def forked_jobs():
    """Fork the processes of jobs instead of starting them, for tests of what searches find."""
    from layoutkit.explore import jobs

    with pytest.MonkeyPatch.context() as patch:
        python = str(programs() / "python-of-tools")
        patch.setattr(jobs, "sys", SimpleNamespace(executable=python, path=sys.path))
        yield


@pytest.fixture
def run_script(tmp_path):
    """Return a function that runs a skill's script as a person would: ``run("x/scripts/y.py", "--flag", value)``.

    It returns the exit code and the envelope, having checked that standard output is one envelope and nothing else.
    """

    def run(script, *arguments, **more_environment):
        done = run_program(script, *arguments, cwd=tmp_path, **more_environment)
        assert done.stdout.count("\n") == 1, done.stdout + done.stderr
        envelope = json.loads(done.stdout)
        assert sorted(envelope) == ["data", "duration_ms", "error", "ok"]
        assert envelope["ok"] is (envelope["error"] is None)
        return done.returncode, envelope

    return run
