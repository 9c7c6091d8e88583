"""The space of a search: what it may vary, the builds it stands for, and the order in which points are tried."""

import builtins
import json
from itertools import islice, product
from pathlib import Path

import pytest

from layoutkit.circuit.readers.source import NetlistText
from layoutkit.errors import FileError, LayoutkitError, MissingProgramError
from layoutkit.explore.layout_job import NetlistInputs, figures_of, front_of, objectives_of, technology_input
from layoutkit.explore.search_space import FIXED, OPTIONS, Space, planned_points, sampled_points
from layoutkit.flow.design import LayoutRequest

ROOT = Path(__file__).parents[3]
SAID = {"description", "default", "title"}
PAIR = """
.subckt stage inp inn outp outn tail vss
M1 outp inp tail vss nmos W=4u L=1u nf=2
M2 outn inn tail vss nmos W=4u L=1u nf=2
.ends
"""


def space(given, **options):
    return Space.of(given, ["sky130A"], options)


def test_every_option_of_a_space_is_one_of_a_build_and_the_others_are_named_by_the_search_itself():
    of_the_search = {"netlist_path", "netlist_text", "technology", "workspace", "first_stage", "last_stage", "reviewed"}
    assert set(OPTIONS) | set(FIXED) | of_the_search == set(LayoutRequest.__dataclass_fields__)


def constraints_in(schema):
    """Return a schema without what says nothing about values."""
    if not isinstance(schema, dict):
        return [*map(constraints_in, schema)] if isinstance(schema, list) else schema
    kept = {key: rule for key, rule in schema.items() if key not in SAID and not key.startswith("x-")}
    parts = {name: constraints_in(part) for name, part in kept.pop("properties", {}).items()}
    return {**{key: constraints_in(rule) for key, rule in kept.items()}, **({"properties": parts} if parts else {})}


@pytest.mark.parametrize("name", [*OPTIONS, *FIXED])
def test_an_option_takes_the_values_that_a_build_takes(name):
    """A search wants a number of tries, since seconds give no layout that can be repeated, and constraints as data."""
    own = json.loads((ROOT / "scripts/layoutkit/explore/search_space.schema.json").read_text())["$defs"][name]
    build = json.loads((ROOT / "skills/netlist-to-gds/schemas/flow.build_layout.input.json").read_text())
    stated = build["properties"][name]
    if "$ref" in stated:
        shared = json.loads((ROOT / "skills/analog-layout.schema.json").read_text())["$defs"]
        stated = {**shared[stated["$ref"].rpartition("/")[2]], **stated}
    stated.pop("$ref", None)
    narrower = {"effort": {"type": "integer", "minimum": 1}, "constraints": {"type": "object"}}
    assert constraints_in(own) == narrower.get(name, constraints_in(stated))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sed": [1]}, "did you mean 'seed'"),
        ({"router": ["fast"]}, "what can: seed, aspect"),
        ({"technology": ["sky130A"]}, "technologies have a parameter of their own"),
        ({"effort": ["20s"]}, "a number of tries"),
        ({"seed": [True]}, "whole number from 0, got true"),
        ({"aspect": [0.5]}, "a number from 1 to 1000, got 0.5"),
        ({"dummies": [9]}, "auto or a whole number from 0 to 8, got 9"),
        ({"seed": [1.0]}, "whole number from 0, got 1.0"),
        ({"seed": {"from": 1, "to": 3, "count": 2.0}}, "count, a whole number from 2"),
        ({"side inp": ["middle"]}, "one of left, right, bottom, top"),
        ({"pattern M1 M2": ["AB-BA"]}, "a pattern such as ABBA"),
        ({"pattern": ["ABBA"]}, "does not say whose"),
        ({"w": [1e-6]}, "does not say whose"),
        ({"w M1": [-1e-6]}, "above 0"),
        ({"nf M1": [1.5]}, "whole number from 1, got 1.5"),
        ({"seed": []}, "a list of 1 to"),
        ({"seed": {"from": 1}}, "a range has from and to"),
        ({"w M1": {"from": -1e-6, "to": 1e-6}}, "above 0"),
        ({"aspect": [1], "outline": ["60x40"]}, "cannot both be given"),
    ],
)
def test_what_cannot_be_varied_is_refused_by_name(given, words):
    with pytest.raises(LayoutkitError, match="the space cannot be searched") as raised:
        space(given)
    assert words in raised.value.message


def test_all_faults_are_reported_at_once_and_an_axis_is_no_option_as_well():
    with pytest.raises(LayoutkitError) as raised:
        space({"sed": [1], "seed": [-1], "aspect": [1]}, aspect=2, tops="x")
    assert len(raised.value.details["errors"]) == 4


def test_a_range_has_both_ends_and_is_rounded_to_what_can_be_drawn():
    axes = space({"w M1": {"from": 1e-6, "to": 2e-6, "count": 4}, "nf M1": {"from": 1, "to": 4, "count": 7}}).axes
    assert axes["w M1"] == (1e-6, 1.33e-6, 1.67e-6, 2e-6)
    assert axes["nf M1"] == (1, 2, 3, 4)


def test_a_point_is_a_request_of_one_build(tmp_path):
    netlist = NetlistInputs.of(NetlistText(PAIR)).save(tmp_path)
    given = {"seed": [3], "w M1 M2": [6e-6], "nf M1 M2": [4], "parameter w0": ["2u"]}
    found = space(given, supplies="ring")
    (point,) = found.all_points()
    made = found.parameters(point, str(netlist))
    assert (made["seed"], made["supplies"], made["technology"]) == (3, "ring", "sky130A")
    assert made["sizes"] == {"M1": {"w": 6e-6, "nf": 4}, "M2": {"w": 6e-6, "nf": 4}}
    assert made["parameters"] == {"w0": "2u"}


def test_patterns_and_sides_change_the_constraints_of_recognition_and_nothing_else(tmp_path):
    netlist = NetlistInputs.of(NetlistText(PAIR)).save(tmp_path)
    found = space({"pattern M2 M1": ["ABBA", "AABB"], "side inp": ["left"]})
    one, other = (found.parameters(point, str(netlist))["constraints"] for point in found.all_points())
    assert [each["arrangement"] for each in (*one["matching"], *other["matching"])] == ["ABBA", "AABB"]
    assert one["port_sides"] == [{"port": "inp", "side": "left"}]
    assert one["symmetry"]
    assert {**one, "matching": []} == {**other, "matching": []}
    with pytest.raises(LayoutkitError, match="M1 M3 is no matched group; the matched groups are: M1 M2"):
        found.parameters({"technology": "sky130A", "pattern M1 M3": "ABBA"}, str(netlist))


def test_points_are_the_same_for_the_same_seed_and_those_of_a_small_budget_come_first():
    pytest.importorskip("scipy", reason="skipped: needs the extra explore")
    wide = space({"seed": list(range(50)), "aspect": [1, 1.5, 2, 3], "supplies": ["rails", "ring"]})
    few, many = (list(islice(sampled_points(wide, 7), count)) for count in (20, 100))
    assert many[:20] == few
    assert len({tuple(point.values()) for point in many}) == 100
    assert list(islice(sampled_points(wide, 8), 20)) != few
    for name in ("aspect", "supplies"):  # each value about as often as the others
        counts = [sum(point[name] == value for point in many) for value in wide.axes[name]]
        assert max(counts) - min(counts) <= 0.15 * len(many)


def test_a_sampled_space_comes_to_its_end_and_a_small_one_is_tried_in_whole():
    pytest.importorskip("scipy", reason="skipped: needs the extra explore")
    small = space({"seed": [1, 2, 3], "supplies": ["rails", "ring"], "aspect": [2]})
    every = sorted(product((1, 2, 3), ("rails", "ring")))
    assert sorted((p["seed"], p["supplies"]) for p in sampled_points(small, 1)) == every
    points, how = planned_points(small, 1, 6)
    assert (len(points), how) == (6, "all")
    assert planned_points(small, 1, 5)[1] == "sobol"


def test_without_scipy_a_space_within_the_budget_is_searched_and_a_larger_one_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **named):
        if name.startswith("scipy"):
            raise ImportError(name)
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    seeds = space({"seed": [1, 2, 3]})
    assert len(planned_points(seeds, 1, 3)[0]) == 3
    with pytest.raises(MissingProgramError, match="extra 'explore', or let the budget be at least the 3"):
        planned_points(seeds, 1, 2)


def test_objectives_state_their_goal_and_unknown_ones_are_all_reported():
    area, wide, net = objectives_of(["area", "max aspect", "capacitance out"])
    assert (area.cost({"area": 3.0}), wide.cost({"aspect": 2.0}), area.cost({})) == (3.0, -2.0, None)
    assert (net.named("capacitance"), net.unit, net.cost({"capacitance out": 1.5})) == ("out", "fF", 1.5)
    with pytest.raises(LayoutkitError, match="did you mean 'area'") as raised:
        objectives_of(["arae", "capacitance", "offset", "offset"])
    assert len(raised.value.details["errors"]) == 3


def test_offsets_that_differ_by_less_than_a_microvolt_are_equal():
    """The noise of a numerical prediction is no reason to keep a layout in the front."""
    empty = {"routing": {"mirrored": []}, "metrics": {"matching_metrics": []}}
    offsets = [{"unit": "mV", "value": value} for value in (-0.0014, 3e-6)]
    reports = [{"matching": {"groups": [{"predicted_offsets": [each]}]}, **empty} for each in offsets]
    assert [figures_of(report)["offset"] for report in reports] == [0.001, 0.0]


def test_the_front_is_what_no_other_entry_beats():
    """Compared with the definition, entry by entry."""
    costs = {n: (float(n * 7 % 5), float(n * 3 % 4), float(n * 5 % 3)) for n in range(1, 30)}
    best, beaten = front_of(costs)
    for number, mine in costs.items():
        better = [n for n, c in costs.items() if c != mine and all(a <= b for a, b in zip(c, mine, strict=True))]
        first = min(n for n, c in costs.items() if c == mine)
        assert (number in best) == (not better and number == first), number
    assert set(best) | set(beaten) == set(costs)
    assert all(all(a <= b for a, b in zip(costs[by], costs[n], strict=True)) for n, by in beaten.items())


def test_a_netlist_takes_its_includes_along(tmp_path):
    (tmp_path / "in/parts").mkdir(parents=True)
    (tmp_path / "in/top.sp").write_text(
        "* top\n.include parts/pair.sp\n.include absent.sp\nX1 a b c d e f stage\n.end\n"
    )
    (tmp_path / "in/parts/pair.sp").write_text(PAIR)
    found = NetlistInputs.of(str(tmp_path / "in/top.sp"))
    assert list(found.texts) == ["netlist/top.sp", "netlist/parts/pair.sp"]
    copy = found.save(tmp_path / "out")
    assert copy == tmp_path / "out/netlist/top.sp"
    assert (tmp_path / "out/netlist/parts/pair.sp").read_text() == PAIR


def test_a_technology_file_is_taken_along_and_a_missing_one_is_an_error_of_the_request(tmp_path):
    assert technology_input("sky130A") == ("sky130A", {})
    (tmp_path / "mine.yaml").write_text("name: mine\n")
    assert technology_input(str(tmp_path / "mine.yaml")) == (
        "technology/mine.yaml",
        {"technology/mine.yaml": "name: mine\n"},
    )
    with pytest.raises(FileError):
        technology_input(str(tmp_path / "none.yaml"))
