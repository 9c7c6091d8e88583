"""The combinations that tests draw instead of all."""

from itertools import combinations, product

import thorough


def test_few_combinations_hold_each_pair_of_values_and_a_thorough_run_takes_all(monkeypatch):
    choices = ["ab", "xyz", range(5), "pq"]
    monkeypatch.setattr(thorough, "THOROUGH", False)
    few = thorough.covering(*choices)
    assert len(few) < 20
    assert set(few) < {*product(*choices)}
    for one, other in combinations(range(len(choices)), 2):
        assert {(row[one], row[other]) for row in few} == {*product(choices[one], choices[other])}
    assert thorough.covering(*choices) == few
    monkeypatch.setattr(thorough, "THOROUGH", True)
    assert thorough.covering(*choices) == [*product(*choices)]
