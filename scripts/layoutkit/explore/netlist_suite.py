"""A suite: the netlists of some folders, each laid out once in each process, and the scoreboard of the layouts.

Beside NAME.spice, NAME.options.json may hold further options of ``flow.build_layout``, such as
``{"width_per": "finger"}``, and ``technologies``, the only ones in which it is laid out. The board is written after
every circuit, as ``board.json`` and ``board.html``; the layouts are in ``TECHNOLOGY/NAME``.
"""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.errors import FileError, LayoutkitError
from layoutkit.explore.jobs import DONE, Job, JobOutcome, JobRunOptions
from layoutkit.explore.layout_job import FUNCTION, NetlistInputs, technology_input
from layoutkit.explore.run_jobs import RunProgress, run_jobs
from layoutkit.explore.scoreboard import FORMAT, heading, line, page
from layoutkit.explore.search_space import option_faults
from layoutkit.layout.files import make_folder, read_bytes, write_text
from sturdy.strict_json import load_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


SUFFIXES = frozenset({".sp", ".spi", ".spice", ".cdl", ".cir", ".ckt", ".net", ".scs"})
BOARD, PAGE = "board.json", "board.html"
SHOWN = ("devices", "area_um2", "area_over_modules", "aspect", "wire_over_bound", "vias", "single_cuts", "mirror_error",
         "offset_mv", "ports_inside", "unrouted", "drc", "lvs", "review_must", "review_should", "cpu_s",
         "peak_mb")  # fmt: skip


@dataclass(frozen=True)
class SuiteEntry:
    """One netlist of a suite in one process.

    Attributes:
        name: Path below the folder that was given, without suffix.
        netlist: Its file.
        technology: Name or file of the process.
    """

    name: str
    netlist: Path
    technology: str

    @property
    def label(self) -> str:
        """Name of the process in the board."""
        return Path(self.technology).stem

    @property
    def key(self) -> str:
        """Its key in the board."""
        return f"{self.label} {self.name}"

    @property
    def home(self) -> str:
        """Its workspace below the folder of the suite; unique also if a netlist and a folder have the same name."""
        return f"{self.label}/{self.name.replace('/', '--')}"


def suite_entries(folders: Sequence[str], technologies: Sequence[str], results: Path) -> list[SuiteEntry]:
    """Return the netlists of ``folders`` and of the folders in them, in each technology.

    Args:
        folders: Where to look.
        technologies: Names or files.
        results: Folder that the suite writes to. Its files are never read as netlists, so it may lie in a folder of
            netlists.

    Raises:
        FileError: If a folder does not exist, holds no netlist, or two netlists or technologies have the same name.
    """
    faults = [f"{folder} is not a folder" for folder in folders if not Path(folder).is_dir()]
    paths = {
        path: folder
        for folder in map(Path, folders)
        for path in (sorted(folder.rglob("*")) if folder.is_dir() else ())
        if path.suffix.lower() in SUFFIXES and path.is_file() and not path.resolve().is_relative_to(results.resolve())
    }
    if not paths and not faults:
        faults.append(f"no netlist ({', '.join(sorted(SUFFIXES))}) in {', '.join(map(str, folders))}")
    found = [
        SuiteEntry(path.relative_to(folder).with_suffix("").as_posix(), path, technology)
        for technology in dict.fromkeys(technologies)
        for path, folder in paths.items()
        if technology in _only_in(path, technology)
    ]
    first: dict[str, SuiteEntry] = {}
    for each in found:
        other = first.setdefault(each.home, each)
        if other.technology != each.technology:
            faults.append(f"{other.technology} and {each.technology} have the same name in the board; rename one")
        elif other is not each:
            faults.append(f"{other.netlist} and {each.netlist} have the same name in the board; rename one")
    if faults:
        faults = list(dict.fromkeys(faults))
        raise FileError("; ".join(faults[:10]), details={"param_name": "netlist_folders", "errors": faults})
    return sorted(found, key=lambda each: (technologies.index(each.technology), each.name))


def _only_in(netlist: Path, technology: str) -> Sequence[str]:
    """Return the technologies in which a netlist is laid out: those that its options state, else ``technology``."""
    path = netlist.with_suffix(".options.json")
    try:
        options = load_json(read_bytes(path).decode("utf-8-sig")) if path.is_file() else {}
    except ValueError:
        return [technology]  # the row of the circuit says what is wrong
    only = options.get("technologies") if isinstance(options, dict) else None
    return only if isinstance(only, list) and all(isinstance(each, str) for each in only) else [technology]


def run_suite(
    entries: Sequence[SuiteEntry],
    folder: Path,
    options: Mapping[str, Any],
    run: JobRunOptions,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Return the board of all circuits; it is written as a file after each of them.

    Args:
        entries: What to lay out.
        folder: Receives everything.
        options: Options of ``flow.build_layout`` that all circuits have; those of NAME.options.json come after them.
        run: Where the circuits are laid out, and how long.
        tell: Receives a line for each circuit as it is finished.

    Raises:
        LayoutkitError: If ``folder`` cannot be used.
    """
    make_folder(folder)
    board: dict[str, Any] = {"format": FORMAT, "reference_cpu_s": reference_cpu_s(), "rows": {}}
    wanted = [entry.key for entry in entries]
    jobs: list[Job] = []
    keys: dict[str, list[str]] = {}
    for entry, job in _jobs(entries, options, board["rows"]):
        jobs.append(job)
        keys.setdefault(job.key, []).append(entry.key)
    tell(heading(SHOWN))

    def on_result(outcome: JobOutcome, progress: RunProgress) -> None:
        for key in keys[outcome.key]:
            board["rows"][key] = _row(outcome)
            tell(line(key, board["rows"][key], SHOWN))
        tell(str(progress))
        write_board(board, folder, wanted)

    for key, row in board["rows"].items():
        tell(line(key, row, SHOWN))
    for _ in run_jobs(jobs, folder, run, on_result):
        pass
    write_board(board, folder, wanted)
    return board


def _jobs(
    entries: Sequence[SuiteEntry], common: Mapping[str, Any], rows: dict[str, Any]
) -> Iterator[tuple[SuiteEntry, Job]]:
    """Yield the job of each entry; those whose files cannot be read get a row at once."""
    for entry in entries:
        try:
            netlist = NetlistInputs.of(str(entry.netlist))
            options = {**common, **_options_beside(entry.netlist)}
            technology, texts = technology_input(entry.technology)
        except LayoutkitError as error:
            rows[entry.key] = {"status": "failed", "error": error.message[:500]}
            continue
        build = {**options, "netlist_path": netlist.main, "technology": technology}
        inputs = {**netlist.texts, **texts}
        yield entry, Job(FUNCTION, {"build": build, "board": True}, inputs, entry.home)


def _options_beside(netlist: Path) -> dict[str, Any]:
    """Return the options in the file beside a netlist.

    Raises:
        LayoutkitError: If it is not JSON or holds other options than a layout can have.
    """
    path = netlist.with_suffix(".options.json")
    if not path.is_file():
        return {}
    try:
        options = load_json(read_bytes(path).decode("utf-8-sig"))
    except ValueError as error:
        raise FileError(f"{path} is not JSON: {str(error)[:200]}", details={"path": str(path)}) from error
    only = options.pop("technologies", []) if isinstance(options, dict) else []
    faults = option_faults(options) if isinstance(options, dict) else ["it must hold an object"]
    if not (isinstance(only, list) and all(isinstance(each, str) for each in only)):
        faults.append("technologies must be a list of names")
    if faults:
        raise LayoutkitError(f"{path}: {'; '.join(faults)}", details={"path": str(path), "errors": faults})
    return options  # type: ignore[no-any-return]


def _row(outcome: JobOutcome) -> dict[str, Any]:
    """Return the row of a finished job."""
    if outcome.status != DONE:
        return {"status": outcome.status, "error": str((outcome.error or {}).get("message", ""))[:500]}
    answer = outcome.answer
    error = {"error": "; ".join(answer["faults"])[:500]} if answer["faults"] else {}
    cost = {"cpu_s": round(outcome.cpu_s, 2), "peak_mb": round(outcome.peak_mb, 1)}
    return {"status": "done", **error, **answer["row"], **cost}


def write_board(board: dict[str, Any], folder: Path, wanted: Sequence[str]) -> None:
    """Write the board as JSON and HTML, rows in the order of ``wanted``."""
    board["rows"] = {key: board["rows"][key] for key in wanted if key in board["rows"]}
    write_text(folder / BOARD, json.dumps(board, indent=1) + "\n")
    write_text(folder / PAGE, page(board))


def reference_cpu_s() -> float:
    """Return the CPU time of a fixed computation, to which CPU times are compared. [s]"""
    times = []
    for _ in range(3):
        begun = time.process_time()
        boxes = kdb.Region()
        for number in range(40_000):
            left, bottom = number % 200 * 150, number // 200 * 150
            boxes.insert(kdb.Box(left, bottom, left + 160, bottom + 90))
        boxes.merge()
        boxes.space_check(70)
        times.append(time.process_time() - begun)
    return round(statistics.median(times), 4)
