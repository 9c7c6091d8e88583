"""Whatever the router calls a success is joined, clean and short-free on random boards (S0.7; oracle: KLayout)."""

import dataclasses

import klayout.db as kdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from route_fields import AREA, as_obstacles, field
from route_oracle import faults

from layoutkit.drc.check import check
from layoutkit.route import Patch, RouteOptions, Via, draw_routes, route
from layoutkit.technology import load

TECHNOLOGIES = {name: load(name) for name in ("generic", "sky130A")}
WIDTHS = ((None,), (None, 600), (None, 1000, 400))


def routed(technology, seed, nets, obstacles, levels=(1, 2, 3), options=None):
    requests, fixed = field(
        technology, seed, nets=nets, obstacles=obstacles, layers=levels, widths=WIDTHS[seed % len(WIDTHS)]
    )
    layers = [technology.conductors[level].name for level in levels]
    return requests, fixed, route(technology, requests, as_obstacles(fixed), AREA, layers, options)


@pytest.mark.parametrize("name", TECHNOLOGIES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), nets=st.integers(1, 8), obstacles=st.integers(0, 12), levels=st.integers(2, 4))
def test_successful_nets_are_joined_and_keep_every_rule_of_the_stack(name, seed, nets, obstacles, levels):
    technology = TECHNOLOGIES[name]
    requests, fixed, result = routed(technology, seed, nets, obstacles, tuple(range(1, 1 + min(levels, 3))))
    assert faults(technology, requests, result, fixed, AREA) == []


@pytest.mark.parametrize("name", TECHNOLOGIES)
def test_crowded_boards_stay_clean_even_when_nets_are_given_up(name):
    technology = TECHNOLOGIES[name]
    options = RouteOptions(max_iterations=4)
    requests, fixed, result = routed(technology, 201, 12, 3, (1,), options)
    assert result.failed, "this board is meant to be too crowded"
    assert any(net.success for net in result.nets)
    assert faults(technology, requests, result, fixed, AREA) == []


@pytest.mark.parametrize("name", TECHNOLOGIES)
@pytest.mark.parametrize("seed", [4, 5, 9])
def test_the_technologys_own_rule_check_finds_nothing_either(name, seed):
    technology = TECHNOLOGIES[name]
    requests, fixed, result = routed(technology, seed, 6, 6)
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    cell = layout.create_cell("TOP")
    draw_routes(layout, cell, technology, result)
    for net in requests:
        for terminal in net.terminals:
            cell.shapes(technology.layer(layout, terminal.layer)).insert(terminal.box)
    for layer, box, _ in fixed:
        cell.shapes(technology.layer(layout, layer)).insert(box)
    report = check(layout, cell, technology)
    assert report.complete
    assert [(verdict.rule.id, verdict.count) for verdict in report.violated] == []


def test_moderately_full_boards_are_routed_completely():
    technology, failed = TECHNOLOGIES["sky130A"], []
    for seed in range(300, 306):
        requests, fixed = field(technology, seed, nets=12 + seed % 8, obstacles=4)
        result = route(technology, requests, as_obstacles(fixed), AREA, ["met1", "met2", "met3"])
        failed += [(seed, net.name, net.reason) for net in result.failed]
    assert failed == []


def broken(result, change):
    """Return the result with its first net that has a via changed."""
    nets = list(result.nets)
    index = next(i for i, net in enumerate(nets) if net.success and net.vias)
    nets[index] = change(nets[index])
    return dataclasses.replace(result, nets=tuple(nets))


def moved_cut(net):
    via = net.vias[0]
    return dataclasses.replace(net, vias=(Via(via.cut, via.x + 100, via.y), *net.vias[1:]))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda net: dataclasses.replace(net, vias=net.vias[1:]), "pieces"),
        (lambda net: dataclasses.replace(net, metal=(*net.metal, ("met1", (0, 0, 100, 100)))), "area"),
        (lambda net: dataclasses.replace(net, metal=(*net.metal, ("met1", (0, 0, 16000, 16000)))), "short"),
        (lambda net: dataclasses.replace(net, success=False), "failed but draws"),
        (moved_cut, "not enclosed"),
    ],
)
def test_the_oracle_sees_an_open_a_short_and_broken_rules(change, told):
    technology = TECHNOLOGIES["sky130A"]
    requests, fixed, result = routed(technology, 3, 6, 4)
    assert faults(technology, requests, result, fixed, AREA) == []
    assert any(told in fault for fault in faults(technology, requests, broken(result, change), fixed, AREA))


def test_patches_are_part_of_the_metal_that_is_drawn():
    technology = TECHNOLOGIES["generic"]
    _, _, result = routed(technology, 7, 8, 6)
    for net in result.nets:
        for patch in net.patches:
            assert isinstance(patch, Patch)
            assert (patch.layer, patch.rect) in net.metal
