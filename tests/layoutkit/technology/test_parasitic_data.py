"""The section ``parasitics`` of the technology files: complete, consistent with the stack, checked when it is read."""

from copy import deepcopy
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from layoutkit.technology import load
from layoutkit.technology.inspection import Inspection
from layoutkit.technology.technology_files import read_document

PROCESSES = ("generic", "sky130A", "gf180mcuD", "sg13g2")


def levels(technology):
    return ["poly", *(conductor.name for conductor in technology.conductors)]


@pytest.mark.parametrize("name", PROCESSES)
def test_every_conductor_and_every_pair_of_conductors_is_stated_with_its_source(name):
    technology = load(name)
    data, order = technology.parasitics, levels(technology)
    diffusions = {"diffusion"}
    if any(layer.purpose == "oxide" for layer in technology.layers.values()):
        diffusions.add("thick_diffusion")
    stated = {(upper, lower) for lower, upper in combinations(order, 2)}
    stated |= {(upper, diffusion) for upper in order[1:] for diffusion in diffusions}
    assert set(data.pairs) == stated
    assert list(data.profiles) == order
    assert all(profile.sidewall_af and profile.thickness_um for profile in data.profiles.values())
    heads = {"heads"} if data.modelled_heads_um else set()
    assert set(data.sources) == {"profile", "capacitances", "shielding"} | heads
    assert data.shielding is not None
    assert technology.silicon["poly"].area_af_um2
    assert technology.silicon["poly"].fringe_af_um


@pytest.mark.parametrize("name", PROCESSES)
def test_the_numbers_are_those_of_a_stack(name):
    """Conductors lie above one another, and a lower plate that is farther away has a lower capacitance per area."""
    technology = load(name)
    data, order = technology.parasitics, levels(technology)
    for lower, upper in pairwise(order):
        below = data.profiles[lower]
        assert data.profiles[upper].bottom_um > below.bottom_um + below.thickness_um
    for upper in order[1:]:
        ground = technology.conductor(upper).area_af_um2
        below = [data.pairs[upper, lower].area_af_um2 for lower in order[: order.index(upper)]]
        assert [ground, *below] == sorted([ground, *below]), upper
    for conductor in technology.conductors:
        space, profile = conductor.space * technology.dbu_um, data.profiles[conductor.name]
        near, far = (profile.sidewall_af / (space * times + profile.sidewall_offset_um) for times in (1, 3))
        assert near > 1.5 * far > 0, conductor.name


def test_uncertain_numbers_are_among_the_notes():
    notes = load("gf180mcuD").notes
    assert any(note.startswith("Metal1 over diffusion: area_af_um2 is uncertain: ") for note in notes)
    assert any(note.startswith("Metal5: bottom_um is uncertain: ") for note in notes)


@pytest.mark.parametrize(
    ("part", "entry", "message"),
    [
        ("pairs", {"upper": "met1", "lower": "met2"}, "'met1' is not a conductor above 'met2'"),
        ("pairs", {"upper": "poly", "lower": "diffusion"}, "'poly' is not a conductor above 'diffusion'"),
        ("pairs", {"upper": "metal", "lower": "met2"}, "there is no conductor 'metal'"),
        ("pairs", {"upper": "met1", "lower": "li1"}, "states 'met1' over 'li1' a second time"),
        ("conductors", "metal", "there is no conductor 'metal'"),
        ("modelled_heads_um", "cap_mim_m3_1", "there is no resistor 'cap_mim_m3_1'"),
    ],
)
def test_a_wrong_reference_is_reported(part, entry, message):
    data = deepcopy(read_document(Path(load("sky130A").path)))
    section = data["parasitics"][part]
    if part == "pairs":
        section.append({**entry, "area_af_um2": 1.0, "fringe_upper_af_um": 1.0})
    else:
        section[entry] = {"bottom_um": 1.0} if part == "conductors" else 1.0
    faults = [str(fault) for fault in Inspection(data).run()]
    assert len(faults) == 1
    assert message in faults[0]
