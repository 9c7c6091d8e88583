"""Patterns of matched units: counted right, centred as well as any, spread."""

from itertools import islice, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.draw.mos import MosSize, transistor
from layoutkit.draw.pattern import (
    FingerUnit,
    arranged_row,
    centroid_error,
    centroid_offsets,
    common_centroid,
    parse_pattern,
    pattern_text,
    sequences,
)
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


@given(st.lists(st.lists(st.tuples(st.sampled_from("ABC"), st.integers(1, 30)), min_size=1), min_size=1, max_size=4))
def test_a_pattern_read_from_its_own_text_is_the_same(rows):
    pattern = tuple(
        tuple(letter for letter, count in row for _ in range(count)) for row in [*rows, [(c, 1) for c in "ABC"]]
    )
    devices = ("M1", "M2", "M3")
    named = tuple(tuple(devices["ABC".index(letter)] for letter in row) for row in pattern)
    assert parse_pattern(pattern_text(named, devices), devices) == named


@pytest.mark.parametrize(
    ("text", "rows"),
    [("ABBA", ["xyyx"]), ("A2B4A2", ["xxyyyyxx"]), ("AB/BA", ["xy", "yx"]), ("A10B1/BA", ["x" * 10 + "y", "yx"])],
)
def test_a_letter_is_a_unit_a_number_repeats_it_and_a_slash_starts_the_next_row(text, rows):
    assert parse_pattern(text, ("x", "y")) == tuple(tuple(row) for row in rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abba", "Invalid arrangement: abba; write 'auto'"),
        ("AB//BA", "Invalid arrangement"),
        ("A0B", "each letter stands for 1 to"),
        ("AAA", "B has no unit. The devices are A = x, B = y"),
        ("ABCA", "C is no device"),
        ("2A", "Invalid arrangement"),
        ("", "Invalid arrangement"),
    ],
)
def test_texts_that_are_no_pattern_of_the_devices_are_refused(text, message):
    with pytest.raises(GeometryError, match=message):
        parse_pattern(text, ("x", "y"))


@given(UNIT_COUNTS)
def test_every_sequence_to_choose_from_has_the_units_and_no_centroid_error_where_that_is_possible(counts):
    units = {f"M{i}": count for i, count in enumerate(counts)}
    for sequence in islice(sequences(units), 50):
        assert {device: sequence.count(device) for device in units} == units
        if sum(count % 2 for count in counts) <= 1:
            assert centroid_error(sequence) == 0


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
    units = [FingerUnit(f"u{i}", made[name], count) for i, (name, count) in enumerate(shape)]
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
