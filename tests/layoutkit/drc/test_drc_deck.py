"""Rule decks run by the KLayout application: what stopped, lied or hung never reads as clean (S0.8)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.drc import foundry_deck
from layoutkit.drc.check import Options
from layoutkit.drc.foundry_deck import PROGRAM_VARIABLE, Deck, run_deck
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
    return run_deck(layout, cell, Deck(path, timeout_s=60, **deck), options)


@needs_klayout
def test_each_category_is_a_rule_with_its_places(tmp_path):
    report = report_of(tmp_path, CLEAN, lines(3))
    assert [(v.rule.id, v.rule.description, v.status, v.count) for v in report.verdicts] == [
        ("W", "width", "failed", 3),
        ("S", "space", "passed", 0),
    ]
    assert [place.box_um for place in report.locations(report.verdicts[0], 9)] == [
        (0.0, number, 2.0, number + 0.1) for number in (0.0, 1.0, 2.0)
    ]
    assert report.complete
    assert not report.passed


UNFINISHED = {
    "called exit": START + "Process.exit!(0)\n",
    "layer 5 is missing": START + 'puts "ERROR: layer 5 is missing"\n',
    "stopped before its end": "source($input)\nfoo(\n",
    "no rule at all": 'source($input)\nreport("none", $report)\n',
}
STAND_INS = {
    "signal 9": "kill -9 $$",
    "no report": "echo nothing to do",
    "cannot be read": "echo garbage > report.lyrdb",
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
def test_the_usual_variables_of_decks_are_set_and_those_of_the_caller(tmp_path):
    text = CLEAN.replace("$input", "$in_gds").replace("$report", "$report_file").replace("$topcell", "$cell")
    report = report_of(tmp_path, text.replace("width(0.2.um)", "width($limit.to_f.um)"), variables={"limit": "0.05"})
    assert [(v.rule.id, v.status) for v in report.verdicts] == [("W", "passed"), ("S", "passed")]
    assert report.passed


@needs_klayout
def test_a_report_that_the_deck_named_itself_is_found(tmp_path):
    text = CLEAN.replace("$report", '"mine.lyrdb"').replace("0.2.um", "$limit.to_f.um")
    report = report_of(tmp_path, text, variables={"limit": "0.5"})
    assert [(v.rule.id, v.count) for v in report.verdicts] == [("W", 1), ("S", 0)]


@needs_klayout
def test_a_macro_file_is_a_deck_too(tmp_path):
    macro = (
        '<?xml version="1.0" encoding="utf-8"?>\n<klayout-macro><category>drc</category>'
        "<interpreter>dsl</interpreter><dsl-interpreter-name>drc-dsl-xml</dsl-interpreter-name>"
        f"<text>{CLEAN}</text></klayout-macro>"
    )
    assert len(report_of(tmp_path, macro, name="deck.lydrc").verdicts) == 2


@needs_klayout
def test_a_hierarchical_deck_is_told_at_every_place(tmp_path):
    layout, cell = lines()
    top = layout.create_cell("TOP")
    for place in ((0, 0), (0, 5000), (5000, 0)):
        top.insert(kdb.CellInstArray(cell.cell_index(), kdb.Trans(*place)))
    report = report_of(tmp_path, CLEAN.replace("m1 =", "deep\nm1 ="), (layout, top))
    places = [place.box_um for place in report.locations(report.verdicts[0], 9)]
    assert sorted(places) == [(0.0, 0.0, 2.0, 0.1), (0.0, 5.0, 2.0, 5.1), (5.0, 0.0, 7.0, 0.1)]


@needs_klayout
def test_a_deck_is_given_the_chosen_cell_in_a_file_of_its_own(tmp_path):
    own = tmp_path / "own.gds"
    layout, cell = lines(2)
    layout.create_cell("OTHER").shapes(layout.layer(4, 0)).insert(kdb.Box(0, 0, 50, 50))
    layout.write(str(own))
    before = own.read_bytes()
    text = CLEAN.replace("source($input, $topcell)", "source($input)") + 'File.write($input, "gone")\n'
    assert report_of(tmp_path, text, (layout, cell)).verdicts[0].count == 2
    assert own.read_bytes() == before


@needs_klayout
def test_rules_region_and_places_are_chosen_as_elsewhere(tmp_path, monkeypatch):
    drawn = lines(6)
    kept, run = tmp_path / "kept.lyrdb", foundry_deck._run

    def run_once(command, folder, deck):
        """Return what the application does, which the options do not change."""
        if not kept.exists():
            outcome = run(command, folder, deck)
            shutil.copy(outcome.report, kept)
        return foundry_deck._Outcome(0, kept, "")

    with monkeypatch.context() as patched:
        patched.setattr(foundry_deck, "_run", run_once)
        assert [v.rule.id for v in report_of(tmp_path, CLEAN, drawn, Options(rule_ids=["S"])).verdicts] == ["S"]
        inside = report_of(tmp_path, CLEAN, drawn, Options(region=kdb.DBox(0, 1.5, 1, 3.05), max_violations=1))
        assert inside.verdicts[0].count == 2
        assert len(inside.to_data()["violations"][0]["locations"]) == 1
        with pytest.raises(RuleNotFoundError, match="no rule X"):
            report_of(tmp_path, CLEAN, drawn, Options(rule_ids=["X"]))
    unfinished = report_of(tmp_path, START + "exit\n", drawn, Options(rule_ids=["S"]))
    assert_unchecked(unfinished, "called exit")
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
        run_deck(*lines(), Deck(path, timeout_s=3))
    assert caught.value.code == "TIMEOUT"
    assert running(f"sleep {mark}") == []


@needs_klayout
@pytest.mark.skipif(shutil.which("pgrep") is None, reason="needs pgrep")
def test_a_deck_ends_when_who_waits_for_it_is_killed(tmp_path):
    mark = f"4{os.getpid()}.25"
    path = tmp_path / "deck.drc"
    path.write_text(f'system("sleep {mark} &")\nloop {{ sleep 0.1 }}\n')
    code = (
        "import klayout.db as kdb; from pathlib import Path; from layoutkit.drc.foundry_deck import Deck, run_deck;"
        f"layout = kdb.Layout(); run_deck(layout, layout.create_cell('A'), Deck(Path({str(path)!r})))"
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
        run_deck(*lines(), Deck(tmp_path / "deck.drc"))
    assert caught.value.code == "SERVICE_UNAVAILABLE"


@needs_klayout
def test_a_missing_deck_is_told(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        run_deck(*lines(), Deck(tmp_path / "none.drc"))
