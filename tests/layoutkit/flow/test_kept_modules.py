"""A finished circuit built again with other sizes: every other device stays where it was, or is listed as moved."""

import re
import shutil

import klayout.db as kdb
import pytest

from layoutkit.extract.connectivity import labelled_gates
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.summary import faults
from layoutkit.place import Block, Island, Placed, Placement
from layoutkit.place.kept_places import EarlierPlaces, kept_placement
from layoutkit.rectangle import Rectangle
from layoutkit.technology import load


@pytest.fixture(scope="module")
def finished(tmp_path_factory, column_ota):
    workspace = tmp_path_factory.mktemp("kept") / "ota"
    request = LayoutRequest(netlist_text=column_ota, technology="sky130A", workspace=str(workspace), last_stage="lvs")
    assert faults(build_layout(request)) == []
    return workspace


@pytest.fixture
def resized(column_ota):
    """Return a function that builds the OTA from ``place`` with another width of some devices.

    It returns the report and the gates before.
    """

    def build(finished, workspace, devices, width, **options):
        shutil.copytree(finished, workspace)
        text = re.sub(rf"^({devices} .*W=)\S+", rf"\g<1>{width}", column_ota, flags=re.MULTILINE)
        assert text != column_ota
        before = gates(workspace)
        request = LayoutRequest(
            netlist_text=text, workspace=str(workspace), first_stage="place", last_stage="lvs", **options
        )
        return build_layout(request), before

    return build


def gates(workspace):
    layout = kdb.Layout()
    layout.read(str(workspace / "layout.gds"))
    return {
        name: [str(box) for box in boxes] for name, boxes in labelled_gates(layout.top_cell(), load("sky130A")).items()
    }


def test_one_call_makes_a_resized_circuit_clean_and_keeps_every_other_device_in_its_place(finished, resized, tmp_path):
    report, before = resized(finished, tmp_path / "ota", "M5", "12u", effort=2)
    assert faults(report) == []
    assert report["placement"]["earlier_places"] == {
        "kept": ["current_mirror_M3_M4", "differential_pair_M1_M2"],
        "redrawn": ["current_mirror_M6_M5"],
        "moved": [],
    }
    after = gates(tmp_path / "ota")
    assert {name for name in before if before[name] != after[name]} <= {"M5", "M6"}
    widths = [sum(kdb.Box.from_s(box).height() for box in found["M5"]) for found in (before, after)]
    assert widths == [8_000, 12_000]
    assert not any("moved" in text for text in report["warnings"])


def test_what_has_to_make_room_is_listed_with_how_far_it_moved(finished, resized, tmp_path):
    report, before = resized(finished, tmp_path / "ota", "(?:M1|M2)", "32u")
    assert faults(report) == []
    places = report["placement"]["earlier_places"]
    assert places["redrawn"] == ["differential_pair_M1_M2"]
    assert places["moved"]
    assert len(places["kept"]) + len(places["moved"]) == 2
    after = gates(tmp_path / "ota")
    for moved in places["moved"]:
        for device in moved["module"].split("_")[2:]:
            shifts = {
                tuple((new.p1 - old.p1).to_dtype(0.001).to_s().split(","))
                for old, new in zip(*(map(kdb.Box.from_s, each[device]) for each in (before, after)), strict=True)
            }
            assert [tuple(map(float, shift)) for shift in shifts] == [tuple(moved["by"])]
    first = places["moved"][0]["module"]
    assert f"differential_pair_M1_M2 needed more room: moved {first} by" in " ".join(report["warnings"])


def test_without_the_earlier_places_the_circuit_is_placed_anew(finished, resized, tmp_path):
    """Shown on a placement that somebody changed, which is not to be trusted."""
    shutil.copytree(finished, tmp_path / "spoilt")
    with (tmp_path / "spoilt/placement.json").open("a") as stream:
        stream.write("\n")
    report, _ = resized(tmp_path / "spoilt", tmp_path / "ota", "M5", "12u")
    assert faults(report) == []
    assert "earlier_places" not in report["placement"]


def _blocks(sizes, **more):
    return [
        Block(name, "resistor", Rectangle(0, 0, *size), (), {"met1": Rectangle(0, 0, *size)}, **more.get(name, {}))
        for name, size in sizes.items()
    ]


def _kept(sizes, changed, places, islands=(), **more):
    """Return the lower left corners of blocks, of which some changed, as ``kept_placement`` puts them."""
    placement = Placement({n: Placed(n, *at) for n, at in places.items()}, islands, Rectangle(0, 0, 1, 1), 0)
    boxes = {name: Rectangle(0, 0, *size) for name, size in sizes.items()}
    earlier = EarlierPlaces(placement, boxes, {name: (name,) for name in sizes}, 1000)
    blocks = _blocks({**sizes, **changed}, **more)
    found = kept_placement(load("sky130A"), blocks, {name: (name,) for name in sizes}, earlier)
    return {name: (place.x, place.y) for name, place in found.placed.items()}


SQUARES = dict.fromkeys("abcd", (10_000, 10_000))
GRID = {"a": (0, 0), "b": (15_000, 0), "c": (0, 15_000), "d": (15_000, 15_000)}


def test_a_block_that_became_smaller_or_has_room_moves_nothing():
    assert _kept(SQUARES, {"a": (8_000, 8_000)}, GRID) == GRID
    assert _kept(SQUARES, {"d": (30_000, 30_000)}, GRID) == GRID  # it grows outwards


def test_what_lies_beside_a_block_that_grew_moves_by_the_growth_and_nothing_else_does():
    column = {"a": (0, 0), "b": (0, 15_000), "c": (0, 30_000), "d": (50_000, 15_000)}
    found = _kept(SQUARES, {"b": (10_000, 20_000)}, column)
    moved = {name for name in "acd" if found[name] != column[name]}
    assert len(moved) == 1
    assert abs(found["c"][1] - found["a"][1]) == 30_000 + 10_000
    assert found["d"] == column["d"]


def test_a_block_on_an_axis_stays_on_it_and_its_neighbours_stay_symmetric():
    sizes = {"left": (10_000, 10_000), "mid": (10_000, 10_000), "right": (10_000, 10_000)}
    places = {"left": (-20_000, 0), "mid": (-5_000, 0), "right": (10_000, 0)}
    more = {"mid": {"symmetric": True}, "left": {"partner": "right"}, "right": {"partner": "left"}}
    islands = (Island(0, ("left", "mid", "right")),)
    found = _kept(sizes, {"mid": (20_000, 10_000)}, places, islands, **more)
    assert found == {"left": (-25_000, 0), "mid": (-10_000, 0), "right": (15_000, 0)}
