"""Run a foundry's rule deck: a program in Ruby or Python that only the KLayout application understands.

A deck is a program and may do anything that the user may do. It runs on a copy of the layout in a folder of its own,
within a time limit, and its process is killed with all its children. This is no sandbox.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import klayout.db as kdb
from klayout import rdb

from layoutkit.drc.check import Options, touching
from layoutkit.drc.drc_report import DrcReport, Marks, Verdict
from layoutkit.errors import FileError, RuleNotFoundError
from layoutkit.layout.drawn_layers import drawn_layers
from layoutkit.layout.files import layout_bytes, read_bytes
from layoutkit.layout.reports import places_of, shapes_of
from layoutkit.other_programs import OtherProgram, ProgramRun, log_tail, run_program
from layoutkit.technology.technology import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


PROGRAM_VARIABLE = "ANALOG_LAYOUT_KLAYOUT"
DEFAULT_TIMEOUT_S = 600.0
KLAYOUT = OtherProgram(
    "klayout",
    "a rule deck is run by the KLayout application",
    "install the KLayout application (Debian: apt-get install klayout; others: https://www.klayout.de/build.html) and "
    f"put it on PATH, or name its program in ${PROGRAM_VARIABLE}; JSON and YAML rules need no application",
    PROGRAM_VARIABLE,
)
# What decks call their input, report and top cell. All are set; a deck reads those it knows.
_INPUTS = ("input", "in_gds", "gds", "gds_file", "input_file", "infile", "layout_path")
_REPORTS = ("report", "report_file", "report_path", "output", "output_file", "out_file", "out", "drc_report")
_TOP_CELLS = ("topcell", "top_cell", "cell", "topcell_name", "top")
_DEFAULTS = {"thr": "1", "threads": "1", "verbose": "false"}
_MAX_LOG = 20_000
_WAIVED = "waived"
_MAX_REPORT_BYTES = 2 << 30
_GUARD = Path(__file__).with_name("foundry_deck_guard.rb")


@dataclass(frozen=True)
class FoundryDeck:
    """A rule deck and how to run it.

    Attributes:
        path: The deck, ending in .drc, .lydrc or .rb.
        variables: Values of the deck's own variables (KLayout's ``-rd name=value``), over those set here.
        timeout_s: Longest time it may take. [s]
    """

    path: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = DEFAULT_TIMEOUT_S


@dataclass(frozen=True)
class DeckRun:
    """How the application ended, the report it left, and the last of what it said."""

    status: int
    report: Path | None
    log: str


def run_deck(layout: kdb.Layout, cell: kdb.Cell, deck: FoundryDeck, options: Options | None = None) -> DrcReport:
    """Return what ``deck`` found in ``cell`` and all below it.

    Each category of its report is a rule. Where the deck ended with an error, stopped before its end, left no report or
    one without rules, an unchecked verdict says so, so that the report is neither complete nor passed.

    Args:
        layout: Layout that owns ``cell``; the deck gets a copy.
        cell: What to check.
        deck: The deck and its variables.
        options: What to report; the deck itself chooses what it checks and how.

    Raises:
        MissingProgramError: If the KLayout application is not installed.
        FileError: If the deck cannot be read.
        TimeLimitError: If it took longer than allowed.
        UnsupportedOperationError: If it wrote more than allowed.
        RuleNotFoundError: If a whole run has no rule that ``options.rule_ids`` names.
    """
    program, start, options = KLAYOUT.path(), perf_counter(), options or Options()
    read_bytes(deck.path)
    with tempfile.TemporaryDirectory(prefix="deck-") as name:
        folder = Path(name)
        outcome = outcome_of([program, *_arguments(layout, cell, deck, folder)], folder, deck)
        verdicts: tuple[Verdict, ...] = ()
        fault = _fault_of(outcome)
        if outcome.report is not None:
            try:
                verdicts = read_deck_report(outcome.report, cell)
            except FileError as error:
                fault = f"{fault}; {error}" if fault else str(error)
    if not fault and not verdicts:
        fault = "its report names no rule at all"
    if options.rule_ids is not None:
        verdicts = _selected(verdicts, deck, options.rule_ids, complete=not fault)
    if options.region is not None:
        verdicts = tuple(_within(verdict, options.region, layout.dbu) for verdict in verdicts)
    if fault:
        rule = Rule(f"({deck.path.name})", "deck", "The whole deck has run", "error", None, None, deck.path.name, {})
        verdicts = (*verdicts, Verdict(rule, "unchecked", reason=fault))
    return DrcReport(
        cell_name=cell.name,
        technology=deck.path.name,
        verdicts=verdicts,
        unit_um=layout.dbu,
        max_violations=options.max_violations,
        check_time_ms=(perf_counter() - start) * 1000,
        chosen=True,
        empty=not any(drawn_layers(cell)),
    )


def _arguments(layout: kdb.Layout, cell: kdb.Cell, deck: FoundryDeck, folder: Path) -> list[str]:
    given, guard, home = folder / "layout.gds", folder / "guard.rb", folder / "home"
    home.mkdir()
    guard.write_bytes(_GUARD.read_bytes())
    given.write_bytes(_alone(layout, cell))
    variables = {name: str(given) for name in _INPUTS}
    variables.update(dict.fromkeys(_REPORTS, str(folder / "report.lyrdb")))
    variables.update(dict.fromkeys(_TOP_CELLS, cell.name))
    variables.update(_DEFAULTS)
    variables.update(deck.variables)
    settings = [part for name, value in sorted(variables.items()) for part in ("-rd", f"{name}={value}")]
    return ["-b", "-rm", str(guard), *settings, "-r", str(deck.path.resolve())]


def _alone(layout: kdb.Layout, cell: kdb.Cell) -> bytes:
    """Return ``cell`` and what is below it as a file of one top cell."""
    if [top.cell_index() for top in layout.top_cells()] == [cell.cell_index()]:
        return layout_bytes(layout, "GDS2")
    alone = kdb.Layout()
    alone.dbu = layout.dbu
    alone.create_cell(cell.name).copy_tree(cell)
    return layout_bytes(alone, "GDS2")


def outcome_of(command: list[str], folder: Path, deck: FoundryDeck) -> DeckRun:
    """Return what a run of KLayout with the deck left in ``folder``."""
    environment = {"KLAYOUT_HOME": str(folder / "home"), "QT_QPA_PLATFORM": "offscreen"}
    run = ProgramRun(command, folder, deck.timeout_s, f"deck {deck.path.name}", environment, ends_itself=True)
    status = run_program(run)
    return DeckRun(status, _report_in(folder), log_tail(folder, _MAX_LOG))


def _report_in(folder: Path) -> Path | None:
    """Return the report with the name that the deck was given, or else the only report that it wrote."""
    requested = folder / "report.lyrdb"
    if requested.is_file():
        return requested
    others = sorted(path for path in folder.rglob("*.lyrdb") if path.is_file())
    return others[0] if len(others) == 1 else None


def _fault_of(outcome: DeckRun) -> str:
    """Return why the run is not complete, empty if it is."""
    errors = [line.strip() for line in outcome.log.splitlines() if line.lstrip().lower().startswith("error")]
    first = f": {errors[0].removeprefix('ERROR:').strip()[:500]}" if errors else ""
    if outcome.status < 0:
        return f"the deck's process was ended by signal {-outcome.status}{first}"
    if outcome.status > 0:
        return f"the deck stopped before its end (exit status {outcome.status}){first}"
    if errors:
        return f"the deck reported an error{first}"
    if outcome.report is None:
        return "the deck wrote no report; set the variable that names its report file with deck_variables"
    if outcome.report.stat().st_size > _MAX_REPORT_BYTES:
        return "the deck's report is too large to read"
    return ""


def _selected(
    verdicts: tuple[Verdict, ...], deck: FoundryDeck, rule_ids: Sequence[str], *, complete: bool
) -> tuple[Verdict, ...]:
    known = {verdict.rule.id for verdict in verdicts}
    unknown = [rule_id for rule_id in dict.fromkeys(rule_ids) if rule_id not in known]
    if unknown and complete:
        raise RuleNotFoundError(
            f"deck {deck.path.name} has checked no rule {', '.join(unknown)}; it has checked {len(known)} rules",
            details={"unknown": unknown, "known": sorted(known)},
        )
    return tuple(verdict for verdict in verdicts if verdict.rule.id in set(rule_ids))


def _within(verdict: Verdict, region: kdb.DBox, unit_um: float) -> Verdict:
    """Return ``verdict`` with only those violations that touch ``region``. [um]"""
    window = (region * (1 / unit_um)).to_itype(1.0)
    marks = tuple(Marks(mark.layer, touching(mark.shapes, window)) for mark in verdict.marks)
    count = sum(mark.shapes.count() for mark in marks)
    return replace(verdict, status="failed" if count else "passed", count=count, marks=marks)


def read_deck_report(path: Path, cell: kdb.Cell) -> tuple[Verdict, ...]:
    """Return a verdict for each category of the report ``path``, in the report's order.

    A rule is passed where its category holds no item. Items that someone waived do not count.

    Args:
        path: Report database.
        cell: The checked cell; what was found in a cell below counts at each of its places.

    Raises:
        FileError: If it is not a report database.
    """
    database = rdb.ReportDatabase("deck")
    try:
        database.load(str(path))
    except (RuntimeError, UnicodeDecodeError) as error:
        raise FileError(f"its report cannot be read: {str(error).splitlines()[0]}") from error
    return _Reader(database, cell).verdicts()


class _Reader:
    def __init__(self, database: rdb.ReportDatabase, cell: kdb.Cell) -> None:
        self._database = database
        self._cell = cell
        self._to_units = kdb.DCplxTrans(1 / cell.layout().dbu)
        self._waived = database.tag_id(_WAIVED)
        self._places: dict[int, list[kdb.DCplxTrans]] = {}

    def verdicts(self) -> tuple[Verdict, ...]:
        found: list[Verdict] = []
        for category in self._database.each_category():
            self._add(category, "", found)
        return tuple(found)

    def _add(self, category: rdb.RdbCategory, above: str, found: list[Verdict]) -> None:
        name = f"{above}/{category.name()}" if above else category.name()
        children = list(category.each_sub_category())
        items = list(category.each_item())
        if items or not children:  # one that only groups others is no rule
            rule = Rule(name, "deck", category.description or name, "error", None, None, "deck", {})
            found.append(self._verdict(rule, items))
        for child in children:
            self._add(child, name, found)

    def _verdict(self, rule: Rule, items: list[rdb.RdbItem]) -> Verdict:
        polygons, edges, pairs = kdb.Region(), kdb.Edges(), kdb.EdgePairs()
        polygons.merged_semantics = edges.merged_semantics = False
        count = 0
        for item in items:
            if item.has_tag(self._waived):
                continue
            places = self._placed(item.cell_id())
            count += len(places)
            shape = _shape_of(item)
            if shape is None:
                continue
            for place in places:
                placed = shape.transformed(self._to_units * place)
                if isinstance(placed, kdb.DEdgePair):
                    pairs.insert(placed.to_itype(1.0))
                elif isinstance(placed, kdb.DEdge):
                    edges.insert(placed.to_itype(1.0))
                else:
                    polygons.insert(placed.to_itype(1.0))
        marks = tuple(Marks("", shapes) for shapes in (polygons, edges, pairs) if shapes.count())
        return Verdict(rule, "failed" if count else "passed", None, count, marks)

    def _placed(self, cell_id: int) -> list[kdb.DCplxTrans]:
        if cell_id not in self._places:
            self._places[cell_id] = places_of(self._database.cell_by_id(cell_id), self._cell) or [kdb.DCplxTrans()]
        return self._places[cell_id]


def _shape_of(item: rdb.RdbItem) -> kdb.DPolygon | kdb.DEdge | kdb.DEdgePair | None:
    """Return the first shape of ``item``, else the place of a text, None where it holds only words and numbers."""
    places = (value.text().trans.disp for value in item.each_value() if value.is_text())
    return next(shapes_of(item), None) or next((kdb.DEdge(at.x, at.y, at.x, at.y) for at in places), None)
