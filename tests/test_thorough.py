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
    few = thorough.covering(*choices)
    assert len(few) < most < len([*product(*choices)])
    assert set(few) < {*product(*choices)}
    for which in combinations(range(len(choices)), number):
        assert {tuple(row[place] for place in which) for row in few} == {*product(*(choices[place] for place in which))}
    assert thorough.covering(*choices) == few
    assert thorough.covering(*choices[:2]) == [*product(*choices[:2])]
