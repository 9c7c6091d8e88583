"""Rule decks run by the KLayout application: what stopped, lied or hung never reads as clean (S0.8)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import klayout.db as kdb
import pytest
from klayout import rdb

from layoutkit.drc import foundry_deck
from layoutkit.drc.check import Options
from layoutkit.drc.foundry_deck import PROGRAM_VARIABLE, FoundryDeck, run_deck
from layoutkit.errors import FileError, MissingProgramError, RuleNotFoundError, TimeLimitError
from patience import eventually

needs_klayout = pytest.mark.skipif(shutil.which("klayout") is None, reason="needs klayout")

START = 'source($input, $topcell)\nreport("deck", $report)\nm1 = input(4, 0)\nm1.width(0.2.um).output("W", "width")\n'
CLEAN = START + 'm1.space(0.2.um).output("S", "space")\n'


def lines(count=1, width=100):
    """Return a cell of ``count`` lines 2 um long, 1 um apart; 0.1 um is too narrow for the decks here."""
    layout = kdb.Layout()
    cell = layout.create_cell("LINES")
    for number in range(count):
        cell.shapes(layout.layer(4, 0)).insert(kdb.Box(0, number * 1000, 2000, number * 1000 + width))
    return layout, cell


def report_of(tmp_path, text, drawn=None, options=None, name="deck.drc", **deck):
    path = tmp_path / name
    path.write_text(text)
    layout, cell = drawn or lines()
    return run_deck(layout, cell, FoundryDeck(path, timeout_s=60, **deck), options)


def hierarchy():
    """Return three places of three lines, one cell above them."""
    layout, cell = lines(3)
    top = layout.create_cell("TOP")
    for place in ((0, 0), (0, 5000), (5000, 0)):
        top.insert(kdb.CellInstArray(cell.cell_index(), kdb.Trans(*place)))
    return layout, top


@needs_klayout
def test_each_category_is_a_rule_with_its_places_also_where_the_deck_is_hierarchical(tmp_path):
    """The deck reads other common variable names than the other tests, and one variable of the caller."""
    text = CLEAN.replace("$input", "$in_gds").replace("$report", "$report_file").replace("$topcell", "$cell")
    text = text.replace("space(0.2.um)", "space($limit.to_f.um)").replace("m1 =", "deep\nm1 =")
    report = report_of(tmp_path, text, hierarchy(), variables={"limit": "1.5"})
    assert [(v.rule.id, v.rule.description, v.status, v.count) for v in report.verdicts] == [
        ("W", "width", "failed", 9),
        ("S", "space", "failed", 6),
    ]
    assert sorted(place.box_um for place in report.locations(report.verdicts[0], 99)) == [
        (x, y + number, x + 2.0, y + number + 0.1)
        for x, y in ((0.0, 0.0), (0.0, 5.0), (5.0, 0.0))
        for number in range(3)
    ]
    assert report.complete
    assert not report.passed


@needs_klayout
def test_a_deck_in_a_macro_file_is_given_the_chosen_cell_in_a_file_of_its_own_and_may_name_its_report(tmp_path):
    own = tmp_path / "own.gds"
    layout, cell = lines(2)
    layout.create_cell("OTHER").shapes(layout.layer(4, 0)).insert(kdb.Box(0, 0, 50, 50))
    layout.write(str(own))
    before = own.read_bytes()
    deck = CLEAN.replace("source($input, $topcell)", "source($input)").replace("$report", '"mine.lyrdb"')
    macro = (
        '<?xml version="1.0" encoding="utf-8"?>\n<klayout-macro><category>drc</category>'
        "<interpreter>dsl</interpreter><dsl-interpreter-name>drc-dsl-xml</dsl-interpreter-name>"
        f"<text>{deck}File.write($input, 'gone')\n</text></klayout-macro>"
    )
    report = report_of(tmp_path, macro, (layout, cell), name="deck.lydrc")
    assert [(v.rule.id, v.status, v.count) for v in report.verdicts] == [("W", "failed", 2), ("S", "passed", 0)]
    assert own.read_bytes() == before


UNFINISHED = {
    "called exit": START + "begin; Process.exit!(0); rescue; end\nbegin; abort; rescue; end\nexit\n",  # all three ways
    "stopped before its end": "source($input)\nfoo(\n",
    "no rule at all": 'source($input)\nreport("none", $report)\n',
}
STAND_INS = {
    "signal 9": "kill -9 $$",
    "no report": "echo nothing to do",
    "cannot be read": "echo garbage > report.lyrdb",
    "layer 5 is missing": "echo ERROR: layer 5 is missing",
}


def assert_unchecked(report, reason):
    assert not report.passed
    assert not report.complete
    (unchecked,) = report.unchecked
    assert reason in unchecked.reason


@needs_klayout
@pytest.mark.parametrize("reason", UNFINISHED)
def test_a_deck_that_did_not_run_whole_is_unchecked_with_the_reason(tmp_path, reason):
    assert_unchecked(report_of(tmp_path, UNFINISHED[reason], lines(width=300)), reason)


@pytest.mark.skipif(os.name != "posix", reason="skipped: needs a shell")
@pytest.mark.parametrize("reason", STAND_INS)
def test_an_application_that_failed_is_unchecked_with_the_reason(tmp_path, monkeypatch, reason):
    """A script stands in for the application, which takes seconds to start."""
    program = tmp_path / "application"
    program.write_text(f"#!/bin/sh\n{STAND_INS[reason]}\n")
    program.chmod(0o755)
    monkeypatch.setenv(PROGRAM_VARIABLE, str(program))
    assert_unchecked(report_of(tmp_path, CLEAN), reason)


@needs_klayout
def test_what_ran_before_a_deck_stopped_is_told(tmp_path):
    report = report_of(tmp_path, START + 'raise "out of ideas"\nm1.space(0.2.um).output("S")\n')
    assert [(v.rule.id, v.status) for v in report.verdicts] == [("W", "failed"), ("(deck.drc)", "unchecked")]
    assert_unchecked(report, "out of ideas")


@needs_klayout
def test_rules_region_and_places_are_chosen_as_elsewhere(tmp_path, monkeypatch):
    """The report is that of the deck ``CLEAN``, whatever the options."""
    drawn, kept = lines(6), tmp_path / "kept.lyrdb"
    database = rdb.ReportDatabase("deck")
    top, width, _ = database.create_cell("LINES"), database.create_category("W"), database.create_category("S")
    for number in range(6):
        database.create_item(top, width).add_value(kdb.DPolygon(kdb.DBox(0, number, 2, number + 0.1)))
    database.save(str(kept))
    outcome = foundry_deck.DeckRun(0, kept, "")
    monkeypatch.setattr(foundry_deck, "outcome_of", lambda *_: outcome)
    assert [v.rule.id for v in report_of(tmp_path, CLEAN, drawn, Options(rule_ids=["S"])).verdicts] == ["S"]
    inside = report_of(tmp_path, CLEAN, drawn, Options(region=kdb.DBox(0, 1.5, 1, 3.05), max_violations=1))
    assert inside.verdicts[0].count == 2
    assert len(inside.to_data()["violations"][0]["locations"]) == 1
    with pytest.raises(RuleNotFoundError, match="no rule X"):
        report_of(tmp_path, CLEAN, drawn, Options(rule_ids=["X"]))
    outcome = foundry_deck.DeckRun(1, kept, "ERROR: no more")
    unfinished = report_of(tmp_path, CLEAN, drawn, Options(rule_ids=["X"]))  # the deck may have ended before rule X
    assert_unchecked(unfinished, "no more")
    assert len(unfinished.verdicts) == 1


@needs_klayout
def test_plain_ruby_is_a_deck_too_and_waived_items_do_not_count_but_items_without_a_shape_do(tmp_path):
    ruby = """
database = RBA::ReportDatabase::new("r")
top = database.create_cell($topcell)
rule = database.create_category("R")
database.create_item(top.rdb_id, rule.rdb_id).add_value("density 0.1")
waived = database.create_item(top.rdb_id, rule.rdb_id)
waived.add_tag(database.tag_id("waived"))
drawn = database.create_category("B")
database.create_item(top.rdb_id, drawn.rdb_id).add_value(RBA::DBox::new(0, 0, 1, 2))
database.save($report)
"""
    verdict, drawn = report_of(tmp_path, ruby, name="deck.rb").verdicts
    assert (verdict.status, verdict.count, verdict.marks) == ("failed", 1, ())
    assert (drawn.rule.id, drawn.count, len(drawn.marks)) == ("B", 1, 1)


def running(mark):
    return subprocess.run(["pgrep", "-f", mark], capture_output=True, text=True, check=False).stdout.split()


@needs_klayout
@pytest.mark.skipif(shutil.which("pgrep") is None, reason="needs pgrep")
def test_a_deck_that_hangs_is_ended_with_its_children(tmp_path):
    mark = f"3{os.getpid()}.25"
    path = tmp_path / "deck.drc"
    path.write_text(f'system("sleep {mark} &")\nsleep\n')
    with pytest.raises(TimeLimitError) as caught:
        run_deck(*lines(), FoundryDeck(path, timeout_s=3))
    assert caught.value.code == "TIMEOUT"
    assert running(f"sleep {mark}") == []


@needs_klayout
@pytest.mark.skipif(shutil.which("pgrep") is None, reason="needs pgrep")
def test_a_deck_ends_when_who_waits_for_it_is_killed(tmp_path):
    mark = f"4{os.getpid()}.25"
    path = tmp_path / "deck.drc"
    path.write_text(f'system("sleep {mark} &")\nloop {{ sleep 0.1 }}\n')
    code = (
        "import klayout.db as kdb; from pathlib import Path;"
        "from layoutkit.drc.foundry_deck import FoundryDeck, run_deck;"
        f"layout = kdb.Layout(); run_deck(layout, layout.create_cell('A'), FoundryDeck(Path({str(path)!r})))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "scripts")}
    waiting = subprocess.Popen([sys.executable, "-c", code], env=environment)
    assert eventually(lambda: running(f"sleep {mark}")), "the deck never started"
    waiting.kill()
    waiting.wait()
    assert eventually(lambda: not running(f"sleep {mark}")), "the deck outlived its caller"


def test_without_the_application_the_error_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("ANALOG_LAYOUT_KLAYOUT", raising=False)
    with pytest.raises(MissingProgramError, match="klayout is not installed; install") as caught:
        run_deck(*lines(), FoundryDeck(tmp_path / "deck.drc"))
    assert caught.value.code == "SERVICE_UNAVAILABLE"


@needs_klayout
def test_a_missing_deck_is_told(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        run_deck(*lines(), FoundryDeck(tmp_path / "none.drc"))
