"""Every tool that checks design rules answers one form of summary, and what is unchecked is never clean in it."""

from dataclasses import replace

import klayout.db as kdb

from layoutkit.drc.check import check
from layoutkit.route import RoutingResult
from layoutkit.technology import Rule, load
from layoutkit.tools.module_requests import checked
from layoutkit.tools.route_in_layout import check_routes

GENERIC = load("generic")
UNKNOWN = Rule("OWN", "no_such_kind", "A rule of the future", "error", None, None, "none", {"layer": "metal1"})
EXTENDED = replace(GENERIC, rules=(*GENERIC.rules, UNKNOWN))


class Drawn:
    """What the summaries below are of: one wide bar of metal1, drawn as a module and as a route."""

    name = "BAR"
    success = True
    metal = (("metal1", (0, 0, 5000, 5000)),)

    def __init__(self):
        self.layout = kdb.Layout()
        self.layout.dbu = GENERIC.dbu_um
        self.cell = self.layout.create_cell(self.name)
        self.cell.shapes(GENERIC.layer(self.layout, "metal1")).insert(kdb.Box(*self.metal[0][1]))
        self.nets = [self]


def summaries(technology):
    drawn = Drawn()
    yield check(drawn.layout, drawn.cell, technology).summary()
    yield checked(drawn, technology)
    yield check_routes(drawn.layout, drawn.cell, technology, drawn)


def test_a_module_a_route_and_a_whole_layout_are_summarised_alike():
    layout = kdb.Layout()
    without_wires = check_routes(layout, layout.create_cell("A"), GENERIC, RoutingResult((), 0, (0, 0, 0)))
    for summary in (without_wires, *summaries(GENERIC)):
        assert summary.keys() == without_wires.keys()
        assert (summary["passed"], summary["complete"], summary["rules_unchecked"]) == (True, True, [])
    for summary in summaries(EXTENDED):
        assert (summary["passed"], summary["complete"], summary["total_violations"]) == (False, False, 0)
        assert [rule["rule_id"] for rule in summary["rules_unchecked"]] == ["OWN"]
        assert "no rule kind 'no_such_kind'" in summary["rules_unchecked"][0]["reason"]


def test_the_full_report_holds_the_summary():
    drawn = Drawn()
    report = check(drawn.layout, drawn.cell, EXTENDED)
    whole = report.to_data()
    assert {**whole["summary"], **whole}.items() >= report.summary().items()
