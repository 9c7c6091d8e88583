"""Resistors and capacitors carried into a process: by model, by size, by value."""

from dataclasses import replace

import pytest

from layoutkit.circuit import Circuit, Device, map_circuit
from layoutkit.circuit.circuit import ReplacedDevice
from layoutkit.draw.generators import GENERATORS
from layoutkit.errors import NetlistError, UnsupportedOperationError
from layoutkit.extract.passive_devices import RECIPES
from layoutkit.technology import load
from layoutkit.technology.device_kinds import DRAWN_KINDS, KINDS, PASSIVE_KINDS
from layoutkit.technology.passive_sizes import SIZE_OF_VALUE


def mapped(technology, kind, model, params):
    circuit = Circuit("x", (Device("D1", kind, model, params, {"p": "a", "n": "b"}),))
    result = map_circuit(circuit, load(technology))
    return result.devices[0], " ".join(result.warnings)


def test_a_model_of_fixed_width_states_the_width():
    device, warnings = mapped("sky130A", "resistor", "sky130_fd_pr__res_xhigh_po_1p41", {"l": 111e-6})
    assert (device.model, device.params) == ("res_xhigh_po", {"w": 1.41e-6, "l": 111e-6, "m": 1})
    assert warnings == ""


def test_a_plain_value_becomes_squares_of_sheet_resistance():
    device, warnings = mapped("gf180mcuD", "resistor", "resistor", {"r": 3500.0, "m": 2})
    assert device.model == "ppolyf_u"  # 350 ohm a square, at least 0.8 um wide
    assert device.params == {"w": 0.8e-6, "l": 8e-6, "m": 2}
    assert "follow from their values, r = 3500 (l: none became 8 um)" in warnings


def test_a_capacitance_becomes_a_square_plate():
    device, _ = mapped("sg13g2", "capacitor", "c", {"c": 1.5e-13})
    assert device.params == {"w": 10e-6, "l": 10e-6, "m": 1}  # 1.5 fF/um2


@pytest.mark.parametrize(
    ("model", "expected"),
    [("cap_mim_2f0_m3m4_noshield", "cap_mim_2f0_m3m4"), ("cap_mim_1f5_m4m5_noshield", "cap_mim_1f5fF")],
)
def test_a_capacitor_without_a_model_is_what_the_masks_of_the_others_make(model, expected):
    """A default plate beside one of other masks was joined to metal that the masks of both do not part."""
    own = Device("C1", "capacitor", model, {"w": 8e-6, "l": 8e-6}, {"p": "a", "n": "b"})
    plain = Device("C2", "capacitor", "capacitor", {"c": 1e-13}, {"p": "a", "n": "c"})
    for devices in ((own, plain), (plain, own)):
        found = map_circuit(Circuit("x", devices), load("gf180mcuD"))
        assert [found.device(name).model for name in ("C1", "C2")] == [expected, expected]
    alone = map_circuit(Circuit("x", (plain,)), load("gf180mcuD"))
    assert alone.devices[0].model == "cap_mim_2f0fF"


def test_a_foreign_resistor_keeps_its_squares():
    device, warnings = mapped("sky130A", "resistor", "rppolywo", {"w": 0.4e-6, "l": 3.6e-6, "series": 6.0})
    assert device.params["l"] / device.params["w"] == pytest.approx(6 * 3.6 / 0.4, rel=1e-3)
    assert "squares" in warnings


def test_own_resistors_of_widths_that_the_process_does_not_have_are_refused_all_at_once():
    sizes = [("res_iso_pw", 0.35e-6), ("res_iso_pw", 2.645e-6), ("res_iso_pw", 2.65e-6), ("res_high_po", 0.5e-6)]
    devices = tuple(
        Device(f"R{n}", "resistor", model, {"w": width, "l": 7e-6}, {"p": "a", "n": "b"})
        for n, (model, width) in enumerate(sizes)
    )
    with pytest.raises(NetlistError) as caught:
        map_circuit(Circuit("x", devices), load("sky130A"))
    assert [fault.partition(", and ")[0] for fault in caught.value.details["faults"]] == [
        "'R0' (res_iso_pw) is 0.35 um wide; sky130A has widths of at least 2.65 um",
        "'R1' (res_iso_pw) is 2.645 um wide; sky130A has widths of at least 2.65 um",
        "'R3' (res_high_po) is 0.5 um wide; sky130A has widths of 0.35, 0.69, 1.41, 2.85, 5.73 um",
    ]
    assert "w=2.65u l=53u has as many squares" in caught.value.message  # 20 squares
    replaced = (ReplacedDevice("R0", "other", {}, asked=True),)  # the user asked for another device: the squares count
    (device,) = map_circuit(Circuit("x", devices[:1], replaced=replaced), load("sky130A")).devices
    assert (device.w, device.l) == pytest.approx((2.65e-6, 53e-6))


def test_a_foreign_plate_grows_to_the_least_one():
    device, warnings = mapped("gf180mcuD", "capacitor", "cap_cmim", {"w": 2e-6, "l": 6e-6})
    assert device.params == {"w": 5e-6, "l": 6e-6, "m": 1}
    assert "became the smallest" in warnings


def test_neither_size_nor_value_is_refused():
    with pytest.raises(NetlistError, match=r"'D1' .res. states neither w and l nor a value r above 0, .* state them"):
        mapped("sky130A", "resistor", "res", {})
    with pytest.raises(NetlistError, match=r"'D1' .res. states neither w and l nor a value r above 0 \(only r=0\), "):
        mapped("sky130A", "resistor", "res", {"r": 0.0})


@pytest.mark.parametrize("technology", ["gf180mcuD", "sg13g2"])
def test_a_foreign_resistor_keeps_the_squares_of_the_width_that_its_model_names(technology):
    wide = "sky130_fd_pr__res_xhigh_po_1p41"
    device, warnings = mapped(technology, "resistor", wide, {"l": 111e-6})
    assert device.params["l"] / device.params["w"] == pytest.approx(111 / 1.41, rel=1e-3)
    assert "missing width of resistors read from the name of their model (w: none became 1.41 um)" in warnings


@pytest.mark.parametrize("model", ["sky130_fd_pr__res_xhigh_po", "res_0p00", "res1p41"])
def test_a_resistor_whose_width_only_its_own_process_knows_is_refused_with_what_it_states(model):
    with pytest.raises(
        NetlistError, match=rf"'D1' .{model}. .*only l=0.000111.* is no model of gf180mcuD .*state them"
    ):
        mapped("gf180mcuD", "resistor", model, {"l": 111e-6})


def test_a_process_without_passives_refuses_them():
    with pytest.raises(UnsupportedOperationError, match="resistor: D1"):
        mapped("generic", "resistor", "res", {"r": 1e3})


IN_SUBSTRATE = {"sky130A": "diode_pw2nd_05v5", "gf180mcuD": "diode_nd2ps_03v3", "sg13g2": "dantenna"}
IN_WELL = {"sky130A": "diode_pd2nw_05v5", "gf180mcuD": "diode_pd2nw_03v3", "sg13g2": "dpantenna"}


@pytest.mark.parametrize("technology", IN_WELL)
def test_a_foreign_diode_is_in_the_substrate_only_where_its_anode_is(technology):
    """Where the anode is another net, or the substrate's net is unknown, only the junction in a well is possible."""
    substrate, well = IN_SUBSTRATE[technology], IN_WELL[technology]
    cases = (("vss", "a", substrate), ("a", "vdd", well), ("a", "vss", well), ("a", "k", well))
    for anode, cathode, expected in cases:
        for model in ("diode", "some_unknown_model"):
            params = {"area": 4e-12, "perimeter": 8e-6}
            circuit = Circuit("x", (Device("D1", "diode", model, params, {"p": anode, "n": cathode}),))
            result = map_circuit(circuit, load(technology))
            assert result.devices[0].model == expected, (anode, cathode)
    stated = Circuit("x", (Device("D1", "diode", substrate, {"area": 4e-12}, {"p": "a", "n": "k"}),))
    assert map_circuit(stated, load(technology)).devices[0].model == substrate


def test_only_the_side_that_grew_is_reported():
    """0.48 um is the minimum of both sides in sg13g2."""
    for sides, expected in (((40e-6, 0.48e-6), (40e-6, 0.48e-6)), ((2e-6, 0.2e-6), (2e-6, 0.48e-6))):
        device, warnings = mapped("sg13g2", "diode", "other", {"w": sides[0], "l": sides[1]})
        assert (device.w, device.l) == pytest.approx(expected)
        assert ("became the smallest (l: 0.2 um became 0.48 um)" in warnings) == (sides != expected)
        assert ("keep their size, which is another value here" in warnings) == (sides == expected)
        assert "w:" not in warnings


def test_the_faults_of_all_devices_are_reported_at_once():
    stated = [{}, {"area": -1e-12}, {"area": 4e-12, "perimeter": 1e-6}, {"area": 4e-12}]
    devices = [Device(f"D{n}", "diode", "d", params, {"p": "a", "n": "b"}) for n, params in enumerate(stated)]
    target = load("sg13g2")
    with pytest.raises(
        NetlistError, match=r"'D0' .* states neither .*; 'D1': no rectangle .*; 'D2': no rectangle"
    ) as refused:
        map_circuit(Circuit("x", tuple(devices)), target)
    assert "D3" not in str(refused.value)
    with pytest.raises(NetlistError, match="; and 3 more"):
        map_circuit(Circuit("x", tuple(replace(devices[0], id=f"D{n}") for n in range(23))), target)


def test_every_kind_that_technologies_have_is_drawn_found_and_sized():
    assert set(GENERATORS) == set(PASSIVE_KINDS)
    assert set(RECIPES) == set(DRAWN_KINDS)
    assert set(SIZE_OF_VALUE) == {name for name in PASSIVE_KINDS if KINDS[name].value}


def test_a_value_from_which_no_size_follows_is_refused(monkeypatch):
    monkeypatch.delitem(SIZE_OF_VALUE, "resistor")
    with pytest.raises(NetlistError, match=r"'D1' .* states neither w and l nor an area"):
        mapped("sky130A", "resistor", "res", {"r": 1e3})
