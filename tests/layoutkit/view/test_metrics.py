"""Areas, matching and wiring, with oracles from arithmetic (S0.10)."""

import klayout.db as kdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit import technology
from layoutkit.errors import DeviceNotFoundError, LayoutkitError, TechnologyError
from layoutkit.extract.connectivity import labelled_gates
from layoutkit.view import metrics

GENERIC = technology.load("generic")
WIDTH, LENGTH, PITCH = 2000, 500, 1000
ALIVE = []  # KLayout cells die with their layout


def row_of(pattern, tech=GENERIC):
    """One strip of active, 2 um high, crossed by gates of 0.5 um at a pitch of 1 um; "-" is a gate without a text."""
    layout = kdb.Layout()
    ALIVE.append(layout)
    layout.dbu = tech.dbu_um
    cell = layout.create_cell("ROW")
    add_row(cell, tech, pattern)
    return cell


def add_row(cell, tech, pattern, y=0):
    layout = cell.layout()
    active, poly = tech.layer(layout, tech.role("active")), tech.layer(layout, tech.role("poly"))
    text = tech.layer(layout, tech.role("device_text"))
    cell.shapes(active).insert(kdb.Box(-500, y, (len(pattern) - 1) * PITCH + LENGTH + 500, y + WIDTH))
    for number, name in enumerate(pattern):
        x = number * PITCH
        cell.shapes(poly).insert(kdb.Box(x, y - 200, x + LENGTH, y + WIDTH + 200))
        if name != "-":
            cell.shapes(text).insert(kdb.Text(name, kdb.Trans(0, False, x + LENGTH // 2, y + WIDTH // 2)))


def measured(cell, pairs=(), targets=None, tech=GENERIC):
    gates = labelled_gates(cell, tech)
    return metrics.compute(cell, tech, gates, matched_pairs=pairs, area_targets=targets)


@pytest.mark.parametrize("name", ["generic", "sky130A"])
def test_areas_are_those_of_the_drawing(name):
    tech = technology.load(name)
    found = measured(row_of("ABBA", tech), tech=tech)
    sizes = found["metrics"]
    assert (sizes["width"], sizes["height"]) == (4.5, 2.4)
    assert sizes["total_area"] == pytest.approx(4.5 * 2.4)
    assert sizes["active_area"] == pytest.approx(4.5 * 2.0)
    assert sizes["utilization"] == pytest.approx(2.0 / 2.4)
    assert sizes["aspect_ratio"] == pytest.approx(4.5 / 2.4)
    assert [(d["id"], d["gate_count"], d["gate_area"]) for d in found["devices"]] == [("A", 2, 2.0), ("B", 2, 2.0)]
    assert [d["centroid"] for d in found["devices"]] == [[1.75, 1.0], [1.75, 1.0]]


def test_overlapping_and_tapped_active_counts_once():
    tech = technology.load("sky130A")
    cell = row_of("A", tech)
    cell.shapes(tech.layer(cell.layout(), tech.role("tap"))).insert(kdb.Box(-500, 0, 500, 1000))
    assert measured(cell, tech=tech)["metrics"]["active_area"] == pytest.approx(1.5 * 2.0)


def test_a_common_centroid_pair_scores_one():
    (pair,) = measured(row_of("ABBA"), [("A", "B")])["matching_metrics"]
    assert (pair["centroid_distance"], pair["area_ratio"], pair["matching_score"], pair["symmetry_error"]) == (
        0,
        1,
        1,
        0,
    )


def test_a_mirror_of_the_wanted_ratio_scores_one():
    """The reference lies in the middle of its copies, 1:4; without the ratio it scores a quarter."""
    plain, wanted, other = measured(row_of("BBABB"), [("B", "A"), ("B", "A", 4), ("B", "A", 2)])["matching_metrics"]
    assert (plain["area_ratio"], plain["matching_score"], wanted["area_ratio"], wanted["matching_score"]) == (
        4,
        0.25,
        4,
        1,
    )
    assert other["matching_score"] == 0.5
    assert "wanted_ratio" not in plain
    assert wanted["wanted_ratio"] == 4


def test_an_alternating_pair_scores_less_and_two_neighbours_least():
    """ABAB: centres 1 um apart, box 3.5 x 2 um; AABB: 2 um apart, the same box."""
    diagonal = (3.5**2 + 2.0**2) ** 0.5
    (alternating,) = measured(row_of("ABAB"), [("A", "B")])["matching_metrics"]
    (neighbours,) = measured(row_of("AABB"), [("A", "B")])["matching_metrics"]
    assert (alternating["centroid_distance"], neighbours["centroid_distance"]) == (1, 2)
    assert alternating["matching_score"] == pytest.approx(1 - 1 / diagonal, abs=1e-6)
    assert neighbours["matching_score"] == pytest.approx(1 - 2 / diagonal, abs=1e-6)


def test_an_unequal_pair_has_its_area_ratio_in_the_score():
    (pair,) = measured(row_of("ABA"), [("B", "A")])["matching_metrics"]
    assert (pair["area_ratio"], pair["matching_score"]) == (0.5, 0.5)


def test_a_pair_that_is_not_symmetric_says_so():
    """A - B B: mirrored about the middle of its box, the gate beside the gap misses its image: 1 of 3 gates."""
    (pair,) = measured(row_of("A-BB"), [("A", "B")])["matching_metrics"]
    assert pair["symmetry_error"] == 0  # the row is symmetric top to bottom
    cell = row_of("A-BB")
    add_row(cell, GENERIC, "A", y=5000)
    (pair,) = measured(cell, [("A", "B")])["matching_metrics"]
    assert pair["symmetry_error"] == pytest.approx(0.5)  # 2 of 4 gates miss their image left-right, and top-bottom


@settings(max_examples=40, deadline=None)
@given(st.permutations("AABBCC"), st.integers(-50_000, 50_000), st.integers(0, 7))
def test_matching_does_not_depend_on_where_or_how_the_layout_is_placed(pattern, shift, code):
    row = row_of(pattern)
    parent = row.layout().create_cell("PARENT")
    trans = kdb.Trans(code % 4, code > 3, shift, -shift)
    parent.insert(kdb.CellInstArray(row.cell_index(), trans))
    assert measured(parent, [("A", "B")])["matching_metrics"] == measured(row, [("A", "B")])["matching_metrics"]


def test_channels_without_a_text_belong_to_nobody():
    assert [(d["id"], d["gate_count"]) for d in measured(row_of("-A-"))["devices"]] == [("A", 1)]


def test_a_text_outside_a_channel_names_nothing():
    cell = row_of("A")
    layer = GENERIC.layer(cell.layout(), "text")
    cell.shapes(layer).insert(kdb.Text("TITLE", kdb.Trans(0, False, -400, 100)))
    assert [d["id"] for d in measured(cell)["devices"]] == ["A"]


def test_a_channel_with_two_names_is_told():
    cell = row_of("A")
    cell.shapes(GENERIC.layer(cell.layout(), "text")).insert(kdb.Text("B", kdb.Trans(0, False, 1, 1)))
    with pytest.raises(LayoutkitError, match="labelled both"):
        labelled_gates(cell, GENERIC)


def test_an_unknown_device_is_told_with_those_that_are_there():
    with pytest.raises(DeviceNotFoundError, match="Device 'M3' not found in the layout; it has: A, B") as caught:
        measured(row_of("AB"), [("A", "M3")])
    assert caught.value.code == "DEVICE_NOT_FOUND"
    assert caught.value.details["available_devices"] == ["A", "B"]


def test_areas_are_compared_with_their_targets():
    found = measured(row_of("ABBA"), targets={"total": 5.4, "active": 9, "A": 1, "ROW": 10.8})
    assert found["area_comparison"] == {"target": 5.4, "actual": 10.8, "ratio": 2.0}
    assert {entry["name"]: entry["ratio"] for entry in found["area_comparisons"]} == {
        "A": 2.0,
        "ROW": 1.0,
        "active": 1.0,
        "total": 2.0,
    }
    assert measured(row_of("A"))["area_comparison"] is None


def test_an_area_target_for_nothing_is_told():
    with pytest.raises(LayoutkitError, match="there is no 'X'; use one of: A, ROW, active"):
        measured(row_of("A"), targets={"X": 1})


def test_an_empty_cell_is_told():
    layout = kdb.Layout()
    with pytest.raises(LayoutkitError, match="cell 'EMPTY' is empty"):
        metrics.compute(layout.create_cell("EMPTY"), GENERIC, {})


def test_wires_are_measured_merged():
    cell = row_of("A")
    metal = cell.shapes(GENERIC.layer(cell.layout(), "metal1"))
    metal.insert(kdb.Box(0, 0, 1000, 200))
    metal.insert(kdb.Box(800, 0, 2000, 200))
    (wire,) = measured(cell)["wires"]
    assert (wire["layer"], wire["area"], wire["length"]) == ("metal1", pytest.approx(0.4), pytest.approx(2.2))


def test_a_technology_without_a_text_layer_is_told():
    from dataclasses import replace

    bare = replace(GENERIC, roles={role: name for role, name in GENERIC.roles.items() if role != "device_text"})
    with pytest.raises(TechnologyError, match="device_text"):
        labelled_gates(row_of("A"), bare)
