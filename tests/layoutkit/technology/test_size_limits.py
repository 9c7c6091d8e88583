"""Sizes and numbers beyond what any chip holds are refused before any work, with one clear error."""

import functools
import json
from contextlib import suppress

import pytest
import yaml

from layoutkit.circuit import given_netlist, map_circuit, read_netlist, resized
from layoutkit.draw.passive import capacitor, resistor
from layoutkit.errors import LayoutkitError
from layoutkit.technology import load
from layoutkit.technology.passive_sizes import PassiveSize, capacitor_size, mos_capacitor_size, resistor_size
from layoutkit.technology.technology_files import SHIPPED
from layoutkit.tools.technology_file import validate
from thorough import THOROUGH

TECHNOLOGIES = ("sky130A", "gf180mcuD", "sg13g2")
MAX_FINGERS, MAX_CIRCUIT_UNITS = 10_000, 200_000  # of a device, and of all devices
HUGE = ("1e6", "1e9", "1e15", "1e300", "1e400", "'10**400'", "'1e200*1e200'", "1e-30", "1e-320", "0", "-1")


def refused(make):
    with pytest.raises(LayoutkitError) as caught:
        make()
    assert caught.value.code == "INVALID_PARAM"
    return str(caught.value)


def circuit(*cards):
    text = "\n".join([".subckt top d g s b", *cards, ".ends", ""])
    return read_netlist(given_netlist({"netlist_text": text}))


def mapped(technology, *cards):
    return map_circuit(circuit(*cards), load(technology))


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize("name", ["w", "l", "m", "nf"])
def test_a_transistor_beyond_the_limits_is_refused(name, value):
    sizes = {"w": "1u", "l": "1u", "m": "1", "nf": "1", name: value}
    card = "M1 d g s b nmos " + " ".join(f"{key}={text}" for key, text in sizes.items())
    for technology in TECHNOLOGIES:
        assert "M1" in refused(lambda technology=technology: mapped(technology, card))


@pytest.mark.parametrize("technology", TECHNOLOGIES)
def test_capacitors_too_large_for_a_chip_are_refused_together_by_name(technology):
    # 1 uF at a few fF/um^2 is some 500 mm^2; 1 nF some 0.5 mm^2
    text = refused(lambda: mapped(technology, "C1 d s 1u", "C2 d s 1u", "C3 d s 1n"))
    assert text.count("in SPICE") == 2
    assert all(f"'{name}'" in text for name in ("C1", "C2"))
    assert "'C3'" not in text
    mapped(technology, "C3 d s 1n")


@pytest.mark.parametrize("technology", TECHNOLOGIES)
@pytest.mark.parametrize(
    "card",
    ["C1 d s 900", "C1 d s 1e300", "R1 d s 1e300", "R1 d s 1e-300", "R1 d s 1k m=100001", "D1 d s dio w=1e9 l=1u"],
)
def test_a_passive_device_beyond_the_limits_is_refused(technology, card):
    assert card[:2] in refused(lambda: mapped(technology, card))


def test_the_fingers_of_nested_instances_count_together():
    text = """
.subckt unit d g s b
M1 d g s b nmos w=1u l=1u m=100
.ends
.subckt top d g s b
X1 d g s b unit m=1001
.ends
"""
    assert "m=100100" in refused(lambda: read_netlist(given_netlist({"netlist_text": text, "top": "top"}), top="top"))


def test_a_switch_of_more_units_than_are_drawn_is_read_and_refused_where_it_is_drawn():
    card = "M1 d g s b nmos w=10u l=0.4u m=12096"
    assert circuit(card).devices[0].m == 12096
    assert "at most 10000 are drawn" in refused(lambda: mapped("sky130A", card))


def test_all_fingers_of_a_circuit_have_one_limit():
    count = MAX_CIRCUIT_UNITS // MAX_FINGERS
    cards = [f"M{i} d g s b nmos w=1m l=1u m={MAX_FINGERS}" for i in range(count)]
    assert len(circuit(*cards).devices) == count
    assert str(MAX_CIRCUIT_UNITS) in refused(lambda: circuit(*cards, "M d g s b nmos w=1u l=1u"))
    devices = [
        {
            "id": f"M{i}",
            "type": "nmos",
            "params": {"w": 1e-6, "l": 1e-6, "m": MAX_FINGERS},
            "terminals": dict.fromkeys("dgsb", "n"),
        }
        for i in range(count + 1)
    ]
    text = json.dumps({"name": "top", "devices": devices})
    assert str(MAX_CIRCUIT_UNITS) in refused(lambda: read_netlist(given_netlist({"netlist_text": text})))


def test_wide_transistors_count_by_the_fingers_that_their_width_needs():
    # 9 mm in fingers of at most about 30 um are some 300 fingers; 100 such units are 30,000
    assert "fingers" in refused(lambda: mapped("sky130A", "M1 d g s b nmos w=9000u l=1u m=100"))


@pytest.mark.parametrize("value", [1e9, 1e300, float("inf"), float("nan")])
def test_sizes_of_a_build_have_the_same_limits(value):
    plain = circuit("M1 d g s b nmos w=1u l=1u")
    for name in ("w", "l", "m"):
        assert "M1" in refused(lambda name=name: resized(plain, {"M1": {name: value}}))


@pytest.mark.parametrize("value", [1e5, 1e15, 1e300, float("inf"), float("nan"), 1e-300, 0.0, -1.0])
def test_a_value_beyond_the_limits_has_no_size(value):
    technology = load("sky130A")
    for kind, size_of in (("capacitor", capacitor_size), ("mos_capacitor", mos_capacitor_size)):
        refused(lambda kind=kind, size_of=size_of: size_of(technology, technology.passive(kind), value))
    if value not in (1e5, 1e15):  # ohm
        refused(lambda: resistor_size(technology, technology.passive("resistor"), value))


def test_the_plates_of_a_large_value_are_as_many_as_before():
    technology = load("sky130A")
    spec = technology.passive("capacitor")
    for farad in (1e-12, 37e-12, 1e-9):
        size = capacitor_size(technology, spec, farad)
        side = size.w_m * 1e6
        assert size.m * (spec.value * side**2 + spec.edge_value * 4 * side) == pytest.approx(farad, rel=1e-3)
        if size.m > 1:  # one plate less would be larger than the process allows
            limit = technology.to_um(spec.max_w)
            assert (size.m - 1) * (spec.value * limit**2 + spec.edge_value * 4 * limit) < farad


def test_generators_refuse_sides_longer_than_a_millimetre():
    technology = load("sky130A")
    for make in (resistor, capacitor):
        for size in (PassiveSize(1e9, 1e-6), PassiveSize(1e-6, 1e9), PassiveSize(1e300, 1e300)):
            refused(lambda make=make, size=size: make(technology, "X1", make.__name__, size))


@functools.cache
def text_with_a_place(which):
    """Return a technology file in which one number is the word HERE."""
    data = yaml.safe_load((SHIPPED / "generic.yaml").read_text())
    if which == "rule":
        next(rule for rule in data["rules"] if isinstance(rule.get("value"), float))["value"] = "HERE"
    elif which == "nmos":
        next(entry for entry in data["devices"].values() if entry["type"] == "nmos")["min_l"] = "HERE"
    else:
        data[which] = "HERE"
    return yaml.safe_dump(data)


VALUES = [".nan", ".inf", "-.inf", "9" * 400, "1e300", "1.0e+300", "1.0e-300", "1e13"]
PLACES = [
    (which, value)
    for row, which in enumerate(("dbu_um", "grid_um", "nmos", "rule"))
    for column, value in enumerate(VALUES)
    if THOROUGH or (row + column) % 2
]


@pytest.mark.parametrize(("which", "value"), PLACES)
def test_numbers_of_technology_files_are_finite_and_within_a_range(tmp_path, which, value):
    path = tmp_path / "own.yaml"
    path.write_text(text_with_a_place(which).replace("HERE", value))
    assert refused(lambda: load(str(path)))
    with suppress(LayoutkitError):
        assert validate(str(path)).faults


def test_a_length_that_klayout_cannot_hold_is_a_fault(tmp_path):
    data = yaml.safe_load((SHIPPED / "generic.yaml").read_text())
    next(rule for rule in data["rules"] if rule["kind"] == "width")["value"] = 3e9
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(data))
    assert any("database units" in str(fault) for fault in validate(str(path)).faults)
