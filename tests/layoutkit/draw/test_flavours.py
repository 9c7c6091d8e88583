"""Every transistor flavour of every shipped technology: clean, extracted as asked, in pairs and mirrors as well.

A technology or flavour that appears is tested the day it appears.
"""

import klayout.db as kdb
import pytest
from drawn_together import in_lots, not_passed

from layoutkit.draw.group import GroupSpec, draw_group
from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.extract.extractor import extract
from layoutkit.technology import load, names
from thorough import THOROUGH

TECHNOLOGIES = {name: load(name) for name in names()}
FLAVOURS = [(name, flavour) for name, tech in TECHNOLOGIES.items() for flavour in tech.devices]
# Finger width and gate length [um], fingers, multiplier, dummies, rows; None is the least the flavour may have.
SIZES = [
    (None, None, 1, 1, 0, 1),
    (None, 1.0, 3, 1, 1, 1),
    (1.005, None, 2, 2, 0, 1),
    (20.0, 10.0, 2, 1, 0, 1),
    (2.0, 0.505, 8, 4, 1, 2),
]


# Each flavour in its least size and in two others, which differ from flavour to flavour. ``test_every_device.py`` draws
# its largest and random sizes, too.
CASES = [
    (*flavour, size)
    for place, flavour in enumerate(FLAVOURS)
    for number, size in enumerate(SIZES)
    if number == 0 or (number + place) % (len(SIZES) - 1) < 2
]
# Each flavour as a pair or as a mirror.
PAIR, MIRROR = (2, 2), (2, 4)
NATIVE_MIRROR = ("gf180mcuD", "nfet_06v0_nvt", MIRROR)  # its diffusion breaks; NAT.6 allows one piece in a marker
GROUPS = [
    (*flavour, fingers)
    for place, flavour in enumerate(FLAVOURS)
    for number, fingers in enumerate((PAIR, MIRROR))
    if (THOROUGH or (number + place) % 2 == 0) and (*flavour, fingers) != NATIVE_MIRROR
]


def size_of(spec, tech, width_um, length_um):
    least = tech.to_um(spec.min_w), tech.to_um(spec.min_l)
    longest = tech.to_um(spec.max_l) if spec.max_l else float("inf")
    return max(width_um or 0, least[0]), min(max(length_um or 0, least[1]), longest)


def technology_of(case):
    return case[0]


@pytest.mark.parametrize(("technology", "cases"), in_lots(CASES, technology_of))
def test_transistors_are_clean_and_extract_as_asked(technology, cases):
    tech, layout = TECHNOLOGIES[technology], kdb.Layout()
    cells = {f"{flavour} {size}": drawn_as_asked(layout, tech, flavour, size) for _, flavour, size in cases}
    assert not_passed(layout, cells, tech) == {}


def drawn_as_asked(layout, tech, flavour, size):
    """Return the cell of a transistor, which extracts as asked."""
    spec = tech.devices[flavour]
    width_um, length_um, nf, m, dummies, rows = size
    width_um, length_um = size_of(spec, tech, width_um, length_um)
    if spec.block:  # fingers of 20 um at least, few in one ring; no dummies beside them
        m, rows = 1, 1
    if spec.unequal_ends:
        dummies = 0
    nets = {"d": "d", "g": "g", "s": "s", "b": "b"}
    made = transistor(tech, "M1", spec.name, MosSize(width_um * nf * 1e-6, length_um * 1e-6, nf, m), nets)
    cell = draw_mos(layout, tech, MosSpec(made, f"cell{layout.cells()}", dummies=dummies, rows=rows)).cell
    found = extract(layout, cell, tech)
    (device,) = found.devices
    assert device.device == spec.name
    assert (device.w_um, device.l_um) == (pytest.approx(width_um * nf * m), pytest.approx(length_um))
    assert len(device.fingers) == nf * m
    assert {found.nets[net].name for net in device.nets.values()} == {"d", "g", "s", "b"}
    assert len(found.dummies) == 2 * dummies * rows
    return cell


@pytest.mark.parametrize("flavour", ["rfnmos", "rfpmos", "rfnmoshv", "rfpmoshv"])
@pytest.mark.parametrize("planted", ["no text", "open ring"])
def test_a_transistor_for_radio_frequencies_needs_text_and_ring(flavour, planted):
    tech = TECHNOLOGIES["sg13g2"]
    layout = kdb.Layout()
    made = transistor(tech, "M1", flavour, MosSize(2e-6, 0.5e-6, 2, 1), dict(zip("dgsb", "dgsb", strict=True)))
    cell = draw_mos(layout, tech, MosSpec(made, "cell")).cell
    if planted == "no text":
        cell.shapes(tech.layer(layout, "TEXT")).clear()
    else:  # the left side of the ring, cut in its middle
        middle = cell.bbox().center().y
        active = kdb.Region(cell.shapes(tech.layer(layout, "Activ"))).merged()
        gap = kdb.Box(active.bbox().left, middle - 200, active.bbox().left + 350, middle + 200)
        cell.shapes(tech.layer(layout, "Activ")).clear()
        cell.shapes(tech.layer(layout, "Activ")).insert(active - kdb.Region(gap))
    plain = flavour.replace("rf", "sg13_hv_" if "hv" in flavour else "sg13_lv_").removesuffix("hv")
    assert [device.device for device in extract(layout, cell, tech).devices] == [plain]


@pytest.mark.parametrize(("technology", "cases"), in_lots(GROUPS, technology_of))
def test_matched_groups_are_clean_and_extract_as_asked(technology, cases):
    tech, layout = TECHNOLOGIES[technology], kdb.Layout()
    cells = {f"{flavour} {fingers}": group_as_asked(layout, tech, flavour, fingers) for _, flavour, fingers in cases}
    assert not_passed(layout, cells, tech) == {}


def group_as_asked(layout, tech, flavour, fingers):
    """Return the cell of a pair or mirror, which extracts as asked."""
    spec = tech.devices[flavour]
    width_um, length_um = size_of(spec, tech, 1.0, 0.5)
    gates = ("ga", "gb") if fingers == PAIR else ("ga", "ga")
    made = tuple(
        transistor(
            tech,
            name,
            spec.name,
            MosSize(width_um * count * 1e-6, length_um * 1e-6, count),
            {"d": f"d{name}", "g": gate, "s": "s", "b": "b"},
        )
        for name, count, gate in zip(("M1", "M2"), fingers, gates, strict=True)
    )
    cell = draw_group(layout, tech, GroupSpec(f"group{layout.cells()}", made)).cell
    found = sorted((d.device, round(d.w_um, 3), d.l_um) for d in extract(layout, cell, tech).devices)
    assert found == sorted((spec.name, round(width_um * count, 3), length_um) for count in fingers)
    return cell
