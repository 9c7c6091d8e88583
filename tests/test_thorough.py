"""The combinations that tests draw instead of all."""

from itertools import combinations, product

import pytest

import thorough


@pytest.mark.parametrize(("is_thorough", "number", "most"), [(False, 2, 20), (True, 3, 40)])
def test_few_combinations_hold_each_pair_of_values_and_in_a_thorough_run_each_three(
    monkeypatch, is_thorough, number, most
):
    choices = ["ab", "xyz", range(5), "pq"]
    monkeypatch.setattr(thorough, "THOROUGH", is_thorough)
    monkeypatch.setattr(thorough, "TURN", None)
    few = thorough.covering(*choices)
    assert len(few) < most < len([*product(*choices)])
    assert set(few) < {*product(*choices)}
    for which in combinations(range(len(choices)), number):
        assert {tuple(row[place] for place in which) for row in few} == {*product(*(choices[place] for place in which))}
    assert thorough.covering(*choices) == few
    assert thorough.covering(*choices[:2]) == [*product(*choices[:2])]


def test_each_turn_holds_the_few_and_all_turns_hold_every_case_once(monkeypatch):
    few, every = ["a", "c"], [*"abcdefghijklmnopqrst"]
    monkeypatch.setattr(thorough, "THOROUGH", False)
    drawn = []
    for turn in range(thorough.TURNS):
        monkeypatch.setattr(thorough, "TURN", turn)
        found = thorough.in_this_run(few, every)
        assert found[:2] == few
        assert 2 <= len(found) - 2 <= 3
        drawn += found[2:]
    assert sorted(few + drawn) == every
    monkeypatch.setattr(thorough, "TURN", None)
    assert thorough.in_this_run(few, every) == few
    monkeypatch.setattr(thorough, "THOROUGH", True)
    assert thorough.in_this_run(few, iter(every)) == every
