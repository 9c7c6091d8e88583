"""A search: the layouts of a space are made and measured, and the front of those that no other one beats is reported.

In the folder of a search::

    netlist/           the netlist as it was read, with its includes; the parameters of every layout name it
    layouts/KEY/       the workspace of each layout
    journal.jsonl      a line for each layout as it is finished (``run_jobs``)
    parameters/N.json  parameters of flow.build_layout that make layout N again
    exploration.json   request, front and all layouts; the same for the same request, whatever ran first
    front.html         the same for a browser

The last two are also written while the search runs, so that one that is killed leaves them behind.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError, MissingProgramError
from layoutkit.explore.front_page import PARAMETERS, front_page
from layoutkit.explore.jobs import DONE, NOT_RUN, Job, JobOutcome, JobRunOptions
from layoutkit.explore.layout_job import (
    CAPACITANCE,
    CHANGE,
    FUNCTION,
    MEASURES,
    POST_LAYOUT,
    REVIEW,
    NetlistInputs,
    Objective,
    front_of,
    technology_input,
)
from layoutkit.explore.run_jobs import RunProgress, refuse_earlier_run, run_jobs
from layoutkit.explore.search_space import TECHNOLOGY, Point, Space, planned_points
from layoutkit.layout.files import make_folder, write_json, write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from markupsafe import Markup


RESULT, PAGE = "exploration.json", "front.html"
PAGE_EVERY_S = 5.0
"""A running search writes its page at most this often. [s]"""
PAGE_SHARE = 0.05
"""Most of the time of a running search that writing its page may take."""
FORMAT = "exploration/1"
FRONT, BEATEN, UNCLEAN, UNMEASURED, REFUSED = "front", "beaten", "not clean", "not measured", "refused"


@dataclass(frozen=True)
class LayoutSearch:
    """What to search, and how far.

    Attributes:
        netlist: The netlist.
        space: What may vary.
        objectives: What is compared.
        folder: Receives everything.
        layouts: Most layouts to make.
        seed: Of the order of the points.
        run: Where the layouts are made, and how long.
    """

    netlist: NetlistInputs
    space: Space
    objectives: tuple[Objective, ...]
    folder: Path
    layouts: int = 16
    seed: int = 1
    run: JobRunOptions = field(default_factory=JobRunOptions)


@dataclass
class Candidate:
    """One layout of a search.

    Attributes:
        number: From 1, in the order of the search.
        point: One value of each axis.
        parameters: Those of ``flow.build_layout`` that make it, without a workspace.
        key: Key of its job; empty if there is none.
        folder: Its workspace, below the folder of the search.
        status: ``front``, ``beaten``, ``not clean``, ``not measured``, ``refused`` (no layout can be made of it), or
            how its job ended.
        reason: Why it is not in the front.
        figures: By objective.
        layout_sha256: Digest of its layout.
        devices: Of its circuit.
        notes: What its figures leave out, and whether devices of it are others than the netlist names.
    """

    number: int
    point: Point
    parameters: dict[str, Any]
    key: str = ""
    folder: str = ""
    status: str = NOT_RUN
    reason: str = "it is not finished yet"
    figures: dict[str, float | None] = field(default_factory=dict)
    layout_sha256: str = ""
    devices: int = 0
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data, without what it does not have."""
        return {name: value for name, value in vars(self).items() if value not in ("", None, [], {}, 0)}


def explore(search: LayoutSearch, tell: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Return the front, all layouts, and how far the search came, as JSON data; files are written beside.

    Args:
        search: What to search.
        tell: Receives a line for each layout as it is finished.

    Raises:
        LayoutkitError: If the netlist cannot be read or no point of the space can be built, or the folder holds another
            search.
    """
    running = _Running(search, tell)
    progress = running.run()
    return {**running.write_result(), "progress": progress}


class _Running:
    """One search in progress."""

    def __init__(self, search: LayoutSearch, tell: Callable[[str], None]) -> None:
        self.search = search
        self.tell = tell
        self.candidates: list[Candidate] = []
        self.by_key: dict[str, Candidate] = {}
        self.netlist = Path(os.path.abspath(search.folder)) / search.netlist.main  # noqa: PTH100 - links stay
        self.sampling = ""
        self.unfinished: set[str] = set()
        self.pictures: dict[str, Markup] = {}
        self.next_page_at = 0.0

    def run(self) -> dict[str, Any]:
        """Make the layouts; return how far the run came."""
        search = self.search
        if not search.run.resume:
            refuse_earlier_run(search.folder)
        search.netlist.save(search.folder)
        search.space.check_names(str(self.netlist), self._named(CAPACITANCE))
        points, self.sampling = planned_points(search.space, search.seed, search.layouts)
        jobs = list(self._jobs(points))
        if not jobs:
            raise LayoutkitError(self.candidates[0].reason, details={"layouts": len(self.candidates)})
        # an earlier search may have had more layouts
        shutil.rmtree(self.search.folder / PARAMETERS, ignore_errors=True)
        make_folder(self.search.folder / PARAMETERS)
        for candidate in self.candidates:
            write_json(self.search.folder / PARAMETERS / f"{candidate.number}.json", candidate.parameters)
        self.unfinished = set(self.by_key)
        begun = time.monotonic()
        self._check_measurements(jobs)
        left = None if search.run.seconds is None else max(0.0, search.run.seconds - (time.monotonic() - begun))
        found: dict[str, Any] = {}

        def on_result(outcome: JobOutcome, progress: RunProgress) -> None:
            self._take(outcome)
            found.update(progress.to_json())
            self.tell(self._line(outcome, progress))
            if not outcome.resumed:
                self._write_now_and_then()

        for _ in run_jobs(jobs, search.folder, replace(search.run, seconds=left), on_result):
            pass
        return found

    def _named(self, *words: str) -> list[str]:
        """Return what the objectives of these words are of, such as the nets of the capacitances."""
        return [name for each in self.search.objectives if (name := each.named(*words))]

    def _jobs(self, points: Iterable[Point]) -> Iterator[Job]:
        """Yield a job for each point that can be built; the others are noted with the reason."""
        wanted = {"nets": self._named(CAPACITANCE), "measurements": sorted({*self._named(POST_LAYOUT, CHANGE)})}
        for number, point in enumerate(points, 1):
            try:
                parameters = self.search.space.parameters(point, str(self.netlist))
                technology, texts = technology_input(parameters[TECHNOLOGY])
            except LayoutkitError as error:
                self.candidates.append(Candidate(number, point, {}, status=REFUSED, reason=error.message))
                continue
            if wanted["measurements"]:
                parameters["post_layout"] = True
            reviewed = any(each.name in REVIEW for each in self.search.objectives)
            named = {"netlist_path": self.search.netlist.main, TECHNOLOGY: technology}
            build = {**parameters, "reviewed": reviewed, **named}
            job = Job(FUNCTION, {"build": build, **wanted}, {**self.search.netlist.texts, **texts})
            job = replace(job, folder=f"layouts/{job.key[:12]}")
            candidate = Candidate(number, point, parameters, job.key, job.folder)
            self.candidates.append(candidate)
            self.by_key[job.key] = candidate
            yield job

    def _check_measurements(self, jobs: Iterable[Job]) -> None:
        """Simulate a netlist of each technology, where layouts are made, before the first of them is.

        Raises:
            MissingProgramError: If ngspice or models are missing, so that no layout could be measured.
            LayoutkitError: If the test bench does not measure what the objectives name.
        """
        wanted = sorted({*self._named(POST_LAYOUT, CHANGE)})
        firsts = {self.by_key[job.key].parameters[TECHNOLOGY]: job for job in reversed(list(jobs))} if wanted else {}
        checks = {name: replace(job, function=MEASURES, folder="") for name, job in sorted(firsts.items())}
        if not checks:
            return
        names = {job.key: name for name, job in checks.items()}
        absent, unknown = [], []
        options = replace(self.search.run, seconds=None, resume=False)
        with TemporaryDirectory(prefix="measurements-") as folder:
            for outcome in run_jobs(checks.values(), folder, options):
                technology, fault = names[outcome.key], outcome.error or {}
                if outcome.status == DONE:
                    other = [name for name in wanted if name not in outcome.answer]
                    if other:
                        measured = ", ".join(outcome.answer) or "nothing"
                        unknown.append(f"{technology}: the test bench measures no {', '.join(other)}, but {measured}")
                elif fault["code"] == MissingProgramError.default_code:
                    absent.append(f"{technology}: {fault['message']}")
                else:  # other sizes may be simulated; each layout says what became of it
                    self.tell(f"{technology}: the netlist could not be simulated: {fault['message']}")
        if absent or unknown:
            kind = MissingProgramError if absent else LayoutkitError
            text = "; ".join(sorted([*absent, *unknown]))
            raise kind(f"no layout was begun, because objectives cannot be measured: {text}")

    def _take(self, outcome: JobOutcome) -> None:
        """Note what came of a layout."""
        candidate, answer = self.by_key[outcome.key], outcome.answer
        self.unfinished.discard(outcome.key)
        candidate.folder = outcome.folder
        if outcome.status != DONE:
            candidate.status = outcome.status
            candidate.reason = (outcome.error or {}).get("message", "")
            candidate.folder = ""
            return
        candidate.figures = answer["figures"]
        candidate.layout_sha256, candidate.devices = answer["layout_sha256"], answer["devices"]
        candidate.notes = answer["notes"]
        missing = [each.name for each in self.search.objectives if each.cost(candidate.figures) is None]
        if answer["faults"]:
            candidate.status, candidate.reason = UNCLEAN, "; ".join(answer["faults"])
        elif missing:
            candidate.status = UNMEASURED
            candidate.reason = "; ".join([f"it has no {', '.join(missing)}", *candidate.notes])
        else:
            candidate.status, candidate.reason = DONE, ""

    def _line(self, outcome: JobOutcome, progress: RunProgress) -> str:
        candidate = self.by_key[outcome.key]
        known = [(each, candidate.figures.get(each.name)) for each in self.search.objectives]
        figures = ", ".join(f"{each.name} {value:g} {each.unit}".strip() for each, value in known if value is not None)
        return f"layout {candidate.number}: {candidate.reason[:150] or figures} ({progress})"

    def _write_now_and_then(self) -> None:
        """Write the result so far, unless that was just done or is the last layout."""
        begun = time.monotonic()
        if self.unfinished and begun >= self.next_page_at:
            self.write_result()
            ended = time.monotonic()
            self.next_page_at = ended + max(PAGE_EVERY_S, (ended - begun) / PAGE_SHARE)

    def write_result(self) -> dict[str, Any]:
        """Judge what is finished, write it as data and as a page, and return it."""
        self._judge()
        result, folder = self._result(), self.search.folder
        write_json(folder / RESULT, result)
        write_text(folder / PAGE, front_page(result, folder, len(self.unfinished), self.pictures))
        return result

    def _judge(self) -> None:
        """Find the front among the clean layouts that are finished."""
        clean = {each.number: each for each in self.candidates if each.status in (DONE, FRONT, BEATEN)}
        costs = {n: [each.cost(one.figures) or 0.0 for each in self.search.objectives] for n, one in clean.items()}
        best, beaten = front_of(costs)
        for number in best:
            clean[number].status, clean[number].reason = FRONT, ""
        for number, by in beaten.items():
            same = costs[number] == costs[by]
            clean[number].status = BEATEN
            clean[number].reason = f"equal to layout {by}" if same else f"layout {by} is nowhere worse"

    def _result(self) -> dict[str, Any]:
        """Return everything that is the same however the layouts were run."""
        space = self.search.space
        begun = [each.to_json() for each in self.candidates]
        return {
            "format": FORMAT,
            "netlist": self.search.netlist.main,
            "axes": {name: list(values) for name, values in space.axes.items()},
            "options": dict(space.options),
            "space_size": space.size,
            "sampling": self.sampling,
            "seed": self.search.seed,
            "objectives": [each.to_json() for each in self.search.objectives],
            "front": [each.number for each in self.candidates if each.status == FRONT],
            "layouts": begun,
        }
