"""Several placements of one design are compared by a stated order, and the best one is kept."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from layoutkit.errors import LayoutkitError
from layoutkit.flow import tries
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.tries import FIGURES, Effort, Try, at_a_time, compare_tries, planned

NETLIST = """
.subckt stage in out vss
M1 in in vss vss nmos W=4u L=1u nf=2
M2 out in vss vss nmos W=4u L=1u nf=2
M3 out2 out vss vss nmos W=2u L=0.5u
.ends
"""
EQUAL = {**dict.fromkeys(FIGURES, 0.0), "over_aspect": 1.0, "area_um2": 100.0, "wire_length_um": 50.0}


def test_the_second_try_of_one_process_is_what_one_build_with_its_seed_and_aspect_gives(tmp_path, monkeypatch):
    started, start = [], tries.TryPool.new_process
    monkeypatch.setattr(tries, "at_a_time", lambda _: 1)
    monkeypatch.setattr(Try, "rank", property(lambda one: -one.number))
    monkeypatch.setattr(tries.TryPool, "new_process", lambda pool: started.append(start(pool)) or started[-1])
    request = LayoutRequest(netlist_text=NETLIST, technology="sky130A", workspace=str(tmp_path / "two"), seed=5)
    lines = []
    report = build_layout(replace(request, effort=2, last_stage="export"), lines.append)
    compared = report["compared"]
    assert [(each["seed"], each["aspect"]) for each in compared] == [(5, None), (6, 1.25)]
    assert all(set(FIGURES) < set(each) for each in compared)
    assert sum("try " in line for line in lines) == 2
    (chosen,) = (each for each in compared if each["chosen"])
    assert (chosen["seed"], len(started)) == (6, 1)
    alone = replace(request, workspace=str(tmp_path / "one"), last_stage="export")
    build_layout(replace(alone, seed=chosen["seed"], aspect=chosen["aspect"]))
    for name in ("layout.gds", "placed.gds"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize("name", FIGURES)
def test_each_figure_decides_when_those_before_it_are_equal(name):
    worse = {**EQUAL, name: EQUAL[name] * 1.5 + 1}
    for later in FIGURES[FIGURES.index(name) + 1 :]:
        better_later = {**EQUAL, later: EQUAL[later] * 1.5 + 1}
        assert Try(1, 2, None, better_later).rank < Try(0, 1, None, worse).rank
    assert Try(1, 2, None, EQUAL).rank < Try(0, 1, None, worse).rank


def test_areas_within_a_step_are_equal_and_the_first_of_equal_tries_is_kept():
    assert Try(0, 1, None, EQUAL).rank < Try(1, 2, None, EQUAL).rank
    shorter = {**EQUAL, "area_um2": 100.1, "wire_length_um": 30.0}
    assert Try(1, 2, None, shorter).rank < Try(0, 1, None, EQUAL).rank
    smaller = {**EQUAL, "area_um2": 96.0, "wire_length_um": 80.0}
    assert Try(1, 2, None, smaller).rank < Try(0, 1, None, EQUAL).rank
    assert Try(9, 2, None, {**EQUAL, "failed_nets": 3}).rank < Try(0, 1, None, None, "cannot be drawn").rank


def test_the_squarest_of_the_tries_is_kept_where_aspect_1_is_asked_for_and_a_miss_is_told_first(tmp_path):
    request = LayoutRequest(netlist_text=NETLIST, technology="sky130A", workspace=str(tmp_path), aspect=1.0, effort=3)
    report = build_layout(replace(request, last_stage="export"))
    sides = report["placement"]["width"], report["placement"]["height"]
    over = [each["over_aspect"] for each in report["compared"]]
    assert min(over) == pytest.approx(max(sides) / min(sides), abs=0.001)
    assert min(over) > 1
    told = report["warnings"][0]
    assert f"an aspect of {min(over):.2f}, more than 1; the least of 3 tries has {min(over):.2f}" in told


def test_a_stated_shape_is_that_of_every_try():
    assert [planned(LayoutRequest(aspect=3.0), n).aspect for n in range(3)] == [3.0, 3.0, 3.0]
    assert [planned(LayoutRequest(outline="20x30"), n).aspect for n in range(3)] == [None, None, None]
    assert [planned(LayoutRequest(seed=4), n).seed for n in range(3)] == [4, 5, 6]


def test_an_effort_is_tries_or_seconds_and_nothing_else():
    assert (Effort.of(8), Effort.of("8")) == (Effort(8), Effort(8))
    assert Effort.of("2.5s").seconds == 2.5
    assert (Effort.of(1).is_one, Effort.of("1s").is_one) == (True, False)
    for word in (0, -1, "0s", "-2s", "x", "", "s", "infs", "nans", "1e9", 1001):
        with pytest.raises(LayoutkitError, match="neither a number of tries from 1 to 1000 nor seconds such as 20s"):
            Effort.of(word)


def test_an_outline_is_two_lengths_and_excludes_an_aspect():
    assert LayoutRequest(outline="60x40.5").outline_um == (60.0, 40.5)
    assert LayoutRequest().outline_um is None
    for outline in ("60", "0x5", "-3x4", "axb", "6x", "1e3x5"):
        with pytest.raises(LayoutkitError, match="is not a width and a height such as 60x40"):
            assert LayoutRequest(outline=outline).outline_um
    with pytest.raises(LayoutkitError, match="not both"):
        assert LayoutRequest(outline="6x5", aspect=2.0).outline_um


def test_as_many_tries_run_at_a_time_as_memory_and_cores_allow(monkeypatch):
    monkeypatch.setattr(tries, "free_memory_mb", lambda: 100)
    assert at_a_time(Effort(50)) == 1
    monkeypatch.setattr(tries, "free_memory_mb", lambda: 100_000)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    assert (at_a_time(Effort(50)), at_a_time(Effort(3))) == (4, 3)


def test_if_every_try_fails_the_reason_of_the_first_is_the_error(tmp_path):
    told = []
    request = LayoutRequest(effort="1e-9s")  # one try begins, however late it is
    with pytest.raises(LayoutkitError, match="holds no stages of a build"):
        compare_tries(request, Path.mkdir, lambda _: None, told.append)
    assert [line.partition(":")[0] for line in told] == ["try 1, seed 1"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("slots", "killed"), [(1, "holds no stages of a build"), (2, "ended with exit code -9")])
def test_a_killed_process_fails_the_try_that_it_makes_and_no_other(slots, killed, tmp_path, monkeypatch):
    def prepare(folder):  # the second try begins after the first, or while that runs
        folder.mkdir()
        for process in (*pool.idle, *(process for process, _ in pool.running.values())):
            process.kill()
            process.wait()

    monkeypatch.setattr(tries, "at_a_time", lambda _: slots)
    pool = tries.TryPool(tmp_path, LayoutRequest(), prepare, lambda _: None)
    errors = [each.error for each in pool.run(Effort(2))]
    pool.stop()
    assert killed in errors[0]
    assert "holds no stages of a build" in errors[1]


def test_a_shape_that_the_modules_do_not_keep_is_reported(tmp_path):
    request = LayoutRequest(
        netlist_text=NETLIST, technology="sky130A", workspace=str(tmp_path), last_stage="place", row_gap=0.5
    )
    report = build_layout(replace(request, aspect=1.01))
    told = [text for text in report["warnings"] if "more than 1.01" in text]
    assert len(told) == (report["placement"]["aspect"] > 1.01 * 1.01)  # on a grid no layout has it exactly
    assert not [text for text in build_layout(replace(request, aspect=50.0))["warnings"] if "an aspect of" in text]
    assert not [text for text in build_layout(replace(request, outline="30x30"))["warnings"] if "outline" in text]
    (text,) = (text for text in build_layout(replace(request, outline="3x5"))["warnings"] if "outline" in text)
    assert "do not fit into the outline 3x5 um" in text
