"""Patterns of matched units: counted right, centred as well as any, spread."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.draw.arrange import Unit, arranged_row
from layoutkit.draw.mos import MosSize, transistor
from layoutkit.draw.pattern import centroid_error, centroid_offsets, common_centroid, matched_units, named_pattern
from layoutkit.errors import GeometryError
from layoutkit.technology import load

UNIT_COUNTS = st.lists(st.integers(1, 9), min_size=1, max_size=5)


@given(UNIT_COUNTS)
def test_a_pattern_has_the_units_asked_for(counts):
    units = {f"M{i}": count for i, count in enumerate(counts)}
    pattern = common_centroid(units)
    assert {device: pattern.count(device) for device in units} == units


@given(UNIT_COUNTS)
def test_at_most_one_odd_count_gives_a_palindrome_without_error(counts):
    counts = [counts[0], *(2 * count for count in counts[1:])]
    pattern = common_centroid({f"M{i}": count for i, count in enumerate(counts)})
    assert pattern == pattern[::-1]
    assert centroid_error(pattern) == 0


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=2, max_size=3).filter(lambda counts: sum(counts) <= 7))
def test_no_order_of_the_units_has_a_smaller_error(counts):
    units = {f"M{i}": count for i, count in enumerate(counts)}
    pool = [device for device, count in units.items() for _ in range(count)]
    best = min(centroid_error(order) for order in set(permutations(pool)))
    assert centroid_error(common_centroid(units)) == pytest.approx(best)


def test_offsets_are_in_unit_pitches_from_the_middle():
    assert centroid_offsets("ABAB") == {"A": -0.5, "B": 0.5}
    assert centroid_error("AABB") == 2.0
    assert centroid_error("ABBA") == 0.0


@pytest.mark.parametrize(
    ("fingers", "size", "pattern"),
    [
        ({"A": 1, "B": 1}, 1, "AB"),
        ({"A": 2, "B": 2}, 1, "ABBA"),
        ({"A": 4, "B": 4}, 2, "ABBA"),
        ({"A": 1, "B": 2}, 1, "BAB"),
        ({"A": 2, "B": 4}, 2, "BAB"),
        ({"A": 1, "B": 8}, 1, "BBBBABBBB"),
        ({"A": 3, "B": 3}, 1, None),
    ],
)
def test_units_are_the_largest_that_keep_the_centroids_together(fingers, size, pattern):
    got_size, got = matched_units(fingers)
    assert got_size == size
    assert pattern is None or "".join(got) == pattern


def test_unknown_arrangements_are_refused():
    assert named_pattern("ABAB", "x", "y") == ("x", "y", "x", "y")
    with pytest.raises(GeometryError, match="Invalid arrangement: BABA"):
        named_pattern("BABA", "x", "y")


def test_counts_below_one_are_refused():
    with pytest.raises(GeometryError, match="at least one unit"):
        common_centroid({"A": 2, "B": 0})


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ABC"), st.integers(1, 3)), min_size=1, max_size=4), st.booleans())
def test_no_other_way_to_face_the_fingers_breaks_fewer_diffusions(shape, common_source):
    tech = load("generic")
    made = {}
    for name in "ABC":
        nets = {"d": f"d{name}", "g": name, "s": "s" if common_source else f"s{name}", "b": "b"}
        made[name] = transistor(tech, name, "nmos", MosSize(1e-6, 1e-6), nets)
    units = [Unit(f"u{i}", made[name], count) for i, (name, count) in enumerate(shape)]
    row = arranged_row(units)
    ends = [{(f.left, f.right), (f.right, f.left)} for f in row.fingers]
    best = dict.fromkeys(ends[0], 0)
    for choices in ends[1:]:
        best = {end: min(cost + (before[1] != end[0]) for before, cost in best.items()) for end in choices}
    palindrome = shape == shape[::-1]
    if palindrome and len(row.fingers) % 2:
        assert len(row.broken()) <= 2 * min(best.values())  # an odd palindrome breaks both sides to stay one
    else:
        assert len(row.broken()) == min(best.values())
