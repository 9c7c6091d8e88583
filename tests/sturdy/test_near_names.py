"""The name that was meant: case and separators do not count, and nothing is suggested for what resembles nothing."""

import pytest

from sturdy.near_names import did_you_mean, near_names

KNOWN = ["netlist_path", "netlist", "technology", "w", "l", 7, None]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("netlist-path", ["netlist_path", "netlist"]),
        ("Netlist Path", ["netlist_path", "netlist"]),
        ("tecnology", ["technology"]),
        ("netlst", ["netlist", "netlist_path"]),
        ("voltage", []),
        ("", []),
        (7, []),
        (None, []),
    ],
)
def test_names_are_found_whatever_their_case_and_separators(name, found):
    assert near_names(name, KNOWN)[:2] == found


def test_a_short_name_needs_a_lower_bound():
    assert near_names("M1", ["M12", "net"], cutoff=0.9) == []
    assert near_names("M1", ["M12", "net"], cutoff=0.3) == ["M12"]


def test_names_that_contain_the_unknown_one_follow_on_request():
    names = ["drc-check", "lvs-check", "layout-view"]
    assert near_names("check", names, cutoff=0.9) == []
    assert near_names("check", names, cutoff=0.9, parts=True) == ["drc-check", "lvs-check"]
    assert near_names("ch", names, cutoff=0.9, parts=True) == []


def test_names_that_differ_only_in_case_are_all_meant():
    assert near_names("CLK", ["clk", "Clk", "rst"], 5) == ["clk", "Clk"]
    assert near_names("CLK", ["clk", "Clk", "rst"], 1) == ["clk"]


def test_the_suggestion_is_a_clause_or_nothing():
    assert did_you_mean("tecnology", KNOWN) == "; did you mean 'technology'?"
    assert did_you_mean("voltage", KNOWN) == ""
    assert did_you_mean("t" * 401, ["t" * 400]) == ""
    assert did_you_mean(["technology"], KNOWN) == ""
