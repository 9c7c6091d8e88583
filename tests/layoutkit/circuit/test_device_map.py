"""Mapping circuits into a technology: which device, which sizes, and what is told."""

import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from layoutkit.circuit import Circuit, Device, MapOptions, map_circuit, read_netlist
from layoutkit.circuit.readers.model_names import classify_model, rated_voltage, threshold_flavour
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.circuit.widths import shipped_minimums
from layoutkit.errors import NetlistError, UnsupportedOperationError
from layoutkit.technology import load

PROCESS = load("sky130A")
SIZES = {
    "nfet_01v8": {"min_l": 150, "supply_v": 1.8},
    "nfet_01v8_lvt": {"min_l": 150, "supply_v": 1.8},
    "nfet_g5v0d10v5": {"min_l": 500, "supply_v": 5.0},
    "pfet_01v8": {"min_l": 150, "supply_v": 1.8},
    "pfet_01v8_lvt": {"min_l": 350, "supply_v": 1.8},
}
SKY = replace(
    PROCESS,
    name="sky",
    names=replace(PROCESS.names, other_names={}),
    passives={},
    devices={name: replace(PROCESS.devices[name], min_w=420, max_w=None, **sizes) for name, sizes in SIZES.items()},
)


def mos(name="M1", model="sky130_fd_pr__nfet_01v8", kind="nmos", **params):
    return Device(name, kind, model, {"m": 1, "nf": 1, **params}, {"d": "a", "g": "b", "s": "c", "b": "vss"})


def mapped(*devices, **options):
    return map_circuit(Circuit("x", devices, ("a", "b", "c", "vss")), SKY, MapOptions(**options))


def sizes(result):
    return [(d.model, round(d.w * 1e9, 6), round(d.l * 1e9, 6), d.nf, d.m) for d in result.devices]


def test_a_legal_device_of_the_technology_stays_as_it_is():
    result = mapped(mos(w=2e-6, l=0.15e-6, nf=2, m=3))
    assert sizes(result) == [("nfet_01v8", 2000, 150, 2, 3)]
    assert result.warnings == ()


@pytest.mark.parametrize(
    ("model", "kind", "device"),
    [
        ("sky130_fd_pr__nfet_01v8_lvt", "nmos", "nfet_01v8_lvt"),
        ("sky130_fd_pr__nfet_g5v0d10v5", "nmos", "nfet_g5v0d10v5"),
        ("NFET_01V8", "nmos", "nfet_01v8"),
        ("nch", "nmos", "nfet_01v8"),
        ("nmos_rvt", "nmos", "nfet_01v8"),
        ("nch_lvt_mac", "nmos", "nfet_01v8_lvt"),
        ("pch_lvt_mac", "pmos", "pfet_01v8_lvt"),
        ("pch_hvt_mac", "pmos", "pfet_01v8"),
        ("nch_25_mac", "nmos", "nfet_g5v0d10v5"),
        ("nfet_03v3", "nmos", "nfet_g5v0d10v5"),
        ("sg13_hv_nmos", "nmos", "nfet_g5v0d10v5"),
        ("sg13_lv_nmos", "nmos", "nfet_01v8"),
        ("n18", "nmos", "nfet_01v8"),
        ("pfet_06v0", "pmos", "pfet_01v8"),
    ],
)
def test_a_model_finds_the_device_of_its_type_rating_and_threshold(model, kind, device):
    result = mapped(mos(model=model, kind=kind, w=10e-6, l=1e-6))
    assert result.devices[0].model == device


def test_a_rating_the_technology_does_not_reach_is_told():
    assert any("not 6 V" in w for w in mapped(mos(model="pfet_06v0", kind="pmos", w=9e-6, l=1e-6)).warnings)


def test_a_length_below_the_minimum_takes_the_width_along():
    # 20 nm -> 150 nm is a factor of 7.5; 270 nm * 7.5 = 2025 nm
    assert sizes(mapped(mos(model="nmos_rvt", w=270e-9, l=20e-9))) == [("nfet_01v8", 2025, 150, 1, 1)]


def test_fins_count_as_width_in_every_finger():
    # 4 fins * 27 nm * 2 fingers * 7.5 = 1620 nm
    result = mapped(mos(model="n", w=270e-9, l=20e-9, nfin=4, nf=2, m=8))
    assert sizes(result) == [("nfet_01v8", 1620, 150, 2, 8)]
    assert sizes(mapped(mos(model="n", l=20e-9, nfin=4, nf=2), fin_pitch_m=40e-9)) == [("nfet_01v8", 2400, 150, 2, 1)]


def test_a_width_that_scales_with_its_length_keeps_its_fingers_and_is_snapped():
    # 260 nm * 7.5 = 1950 nm, 390 steps of 5 nm: 4 does not divide them, and the scaled total is nobody's intention
    assert sizes(mapped(mos(w=260e-9, l=20e-9, nf=4), width_per="device")) == [("nfet_01v8", 1960, 150, 4, 1)]


def test_gates_in_series_become_one_gate_of_their_total_length():
    result = mapped(mos(w=2e-6, l=150e-9, stack=3))
    assert sizes(result) == [("nfet_01v8", 2000, 450, 1, 1)]
    assert any("3 gates in series" in warning for warning in result.warnings)


@pytest.mark.parametrize("reading", ["auto", "device"])
def test_a_finger_below_the_minimum_is_refused_with_both_readings(reading):
    # M2 says the total: 2 um / 2 = 1 um. M1 cannot be one: 0.42 um / 16 = 0.02625 um; as one finger it is 6.72 um.
    with pytest.raises(NetlistError) as caught:
        mapped(mos("M1", w=0.42e-6, l=150e-9, nf=16), mos("M2", w=2e-6, l=150e-9, nf=2), width_per=reading)
    message = str(caught.value)
    assert "'M1'" in message
    assert "'M2'" not in message
    for text in ("0.02625 um", "below the minimum 0.42 um", "'device'", "'finger'", "6.72 um"):
        assert text in message
    (told,) = caught.value.details["devices"]
    assert (told["total_width_per_device"], told["total_width_per_finger"]) == (0.42e-6, pytest.approx(6.72e-6))


@pytest.mark.parametrize(("model", "searched"), [("nmos", 0), ("nch_lvt", 1)])
def test_other_processes_are_read_only_for_a_model_that_may_be_one_of_theirs(model, searched):
    shipped_minimums.cache_clear()
    mapped(mos(model=model, w=2e-6, l=150e-9, nf=2))
    assert shipped_minimums.cache_info().currsize == searched


@pytest.mark.parametrize("reading", ["auto", "device", "finger"])
def test_a_total_that_could_be_one_finger_stays_what_is_asked_for(reading):
    width = 2000 if reading != "finger" else 4000
    assert sizes(mapped(mos(w=2e-6, l=150e-9, nf=2), width_per=reading)) == [("nfet_01v8", width, 150, 2, 1)]


def test_a_file_whose_every_width_of_fingers_is_impossible_as_a_total_is_read_per_finger():
    # 1 um / 8 = 0.125 um is impossible, so w = 1 um is one finger, of M2 with 2 fingers as well.
    result = mapped(
        mos("M1", w=1e-6, l=150e-9, nf=8),
        mos("M2", w=1e-6, l=150e-9, nf=2),
        mos("M3", w=0.42e-6, l=150e-9, nf=16),
        mos("M4", w=1e-6, l=150e-9),
    )
    drawn = [(width, fingers) for _, width, _, fingers, _ in sizes(result)]
    assert drawn == [(8000, 8), (2000, 2), (6720, 16), (1000, 1)]
    (warning,) = [text for text in result.warnings if "w: 0.42 um became 6.72 um" in text]
    assert "width of one finger" in warning
    assert "M3" in warning


def test_the_reading_of_a_known_model_does_not_depend_on_the_process_that_is_drawn():
    # 1 um / 6 = 0.1667 um could be drawn in sg13g2, but not in sky130A, whose model the netlist names.
    from layoutkit import technology

    circuit = Circuit("x", (mos(w=1e-6, l=500e-9, nf=6),), ("a", "b", "c", "vss"))
    for name in ("sky130A", "sg13g2", "gf180mcuD"):
        (device,) = map_circuit(circuit, technology.load(name)).devices
        assert device.nf == 6
        assert device.w == pytest.approx(6e-6)


def test_a_model_of_an_unknown_process_is_never_read_per_finger_unasked():
    with pytest.raises(NetlistError, match="width_per"):
        mapped(mos(model="nch", w=0.6e-6, l=150e-9, nf=8))


def test_one_finger_that_is_too_narrow_is_refused_in_both_readings():
    with pytest.raises(NetlistError, match="too narrow as well"):
        mapped(mos(w=0.1e-6, l=150e-9, nf=4), width_per="finger")


@pytest.mark.parametrize(
    ("width", "fingers", "drawn"),
    [
        (2000, 3, 4),  # 666.7 nm is off the grid; 4 x 500 nm is nearer than 2 x 1000 nm, as a ratio
        (2005, 2, 1),  # 401 grid steps are a prime number
        (1005, 2, 1),  # 201 = 3 x 67 steps: 3 x 335 nm would be below the minimum
        (6300, 4, 4),
    ],
)
def test_a_total_width_on_the_grid_is_kept_by_another_number_of_fingers(width, fingers, drawn):
    result = mapped(mos(w=width * 1e-9, l=150e-9, nf=fingers))
    assert sizes(result) == [("nfet_01v8", width, 150, drawn, 1)]
    told = [text for text in result.warnings if f"nf: {fingers} became {drawn}" in text]
    assert len(told) == (fingers != drawn)


@pytest.mark.parametrize("width", [835, 837.5, 839.9])
def test_a_finger_less_than_half_a_grid_step_too_narrow_is_refused_like_any_other(width):
    with pytest.raises(NetlistError, match="width_per 'finger'"):
        mapped(mos(w=width * 1e-9, l=150e-9, nf=2), width_per="device")


@pytest.mark.parametrize(("width", "fingers"), [(28585, 10), (25915, 4)])
def test_a_finger_wider_than_taps_reach_keeps_a_total_that_nothing_else_keeps(width, fingers):
    from layoutkit import technology

    circuit = Circuit("x", (mos(w=width * 1e-9, l=150e-9, nf=fingers),), ("a", "b", "c", "vss"))
    result = map_circuit(circuit, technology.load("sky130A"))
    assert sizes(result) == [("nfet_01v8", width, 150, 1, 1)]
    assert any(f"nf: {fingers} became 1" in text for text in result.warnings)


def test_transistors_of_equal_fingers_keep_them_equal_where_the_grid_asks_for_others():
    result = mapped(mos("M1", w=2e-6, l=150e-9, nf=3), mos("M2", w=4e-6, l=150e-9, nf=6))
    assert [(size[1], size[3]) for size in sizes(result)] == [(2000, 4), (4000, 8)]


def test_fins_move_to_fewer_fingers_of_the_same_total_width():
    # 2 fins x 27 nm x 20 fingers = 1080 nm; 20 = 2 x 10, and 1080 / 2 = 540 nm is the narrowest finger of a divisor
    result = mapped(mos(l=150e-9, nfin=2, nf=20))
    assert sizes(result) == [("nfet_01v8", 1080, 150, 2, 1)]
    assert any("nf: 20 became 2" in warning for warning in result.warnings)


def test_every_change_of_a_size_is_told_with_the_old_and_the_new_value():
    result = mapped(mos(w=0.3e-6, l=100e-9), mos("M2", w=2.0013e-6, l=150e-9))
    told = "; ".join(result.warnings)
    # 0.3 um x 150 / 100 = 0.45 um
    assert "l: 0.1 um became 0.15 um): M1" in told
    assert "w: 0.3 um became 0.45 um): M1" in told
    assert "w: 2.0013 um became 2 um): M2" in told


def test_width_per_finger_is_an_option():
    assert sizes(mapped(mos(w=1.05e-6, l=150e-9, nf=20), width_per="finger")) == [("nfet_01v8", 21000, 150, 20, 1)]


def test_a_device_narrower_than_one_finger_is_widened_and_told():
    result = mapped(mos(w=0.3e-6, l=150e-9))
    assert sizes(result) == [("nfet_01v8", 420, 150, 1, 1)]
    assert any("width below the minimum" in warning for warning in result.warnings)


def test_sizes_are_snapped_to_the_grid_and_told():
    result = mapped(mos(w=2.0013e-6, l=0.2521e-6, nf=3))
    assert sizes(result) == [("nfet_01v8", 2010 - 15, 250, 3, 1)] or sizes(result) == [("nfet_01v8", 1995, 250, 3, 1)]
    assert [re.search(r"\((\w+): ", text)[1] for text in result.warnings] == ["l", "w"]


def test_a_missing_length_is_the_shortest_of_the_circuit():
    result = mapped(mos("M1", model="n", nfin=12, nf=4), mos("M2", model="n", nfin=12, nf=4, l=14e-9))
    assert sizes(result)[0] == sizes(result)[1]
    assert sizes(mapped(mos(w=1e-6))) == [("nfet_01v8", 1000, 150, 1, 1)]


def test_a_transistor_without_any_width_is_refused():
    with pytest.raises(NetlistError, match="without a width: M1, M2"):
        mapped(mos("M1", l=1e-6), mos("M2"))


def test_devices_the_technology_cannot_draw_are_all_named():
    resistor = Device("R1", "resistor", "r", {"r": 1.0}, {"p": "a", "n": "b"})
    capacitor = Device("C1", "capacitor", "c", {"c": 1.0}, {"p": "a", "n": "b"})
    with pytest.raises(
        UnsupportedOperationError, match="'sky' has no device for capacitor: C1; resistor: R1"
    ) as caught:
        mapped(resistor, capacitor)
    assert caught.value.code == "UNSUPPORTED_OPERATION"


def test_a_tap_joins_its_nets_and_is_drawn_with_the_well():
    tap = Device("XT", "tap", "ptap1", {}, {"p": "sub", "n": "vss"})
    body = Device("M1", "nmos", "n", {"w": 1e-6, "l": 1e-6}, {"d": "a", "g": "b", "s": "vss", "b": "sub"})
    result = mapped(tap, body)
    assert [d.id for d in result.devices] == ["M1"]
    assert result.devices[0].terminals["b"] == "vss"
    assert result.ports == ("a", "b", "c", "vss")


@pytest.mark.parametrize("name", ["generic", "sky130A"])
def test_the_shipped_technologies_are_targets(name):
    from layoutkit import technology

    target = technology.load(name)
    result = map_circuit(Circuit("x", (mos(model="nch", w=1e-6, l=40e-9),)), target)
    assert result.devices[0].model in target.devices


@given(
    w=st.floats(1e-8, 2e-4),
    l=st.floats(1e-8, 2e-5),
    nf=st.integers(1, 40),
    stack=st.integers(1, 4),
    kind=st.sampled_from(["nmos", "pmos"]),
)
def test_every_mapped_device_is_legal_on_grid_and_maps_to_itself(w, l, nf, stack, kind):  # noqa: E741
    try:
        result = mapped(mos(model=kind[0], kind=kind, w=w, l=l, nf=nf, stack=stack))
    except NetlistError:  # w / nf is too narrow
        assume(nf == 1)
        raise
    (device,) = result.devices
    spec = SKY.devices[device.model]
    w_dbu, l_dbu = device.w * 1e9, device.l * 1e9
    assert abs(w_dbu - round(w_dbu)) < 1e-6
    assert round(w_dbu) % (5 * device.nf) == 0
    assert round(l_dbu) % 5 == 0
    assert round(w_dbu) // device.nf >= spec.min_w
    assert round(l_dbu) >= spec.min_l
    again = map_circuit(result, SKY)
    assert (again.devices, again.warnings) == (result.devices, result.warnings)


@given(w=st.integers(84, 20000), nf=st.integers(1, 40))
def test_a_total_width_on_the_grid_never_changes(w, nf):
    if w < 84 * nf:  # 84 grid steps are the narrowest finger
        with pytest.raises(NetlistError, match="too narrow"):
            mapped(mos(w=w * 5e-9, l=1e-6, nf=nf), width_per="device")
        return
    (device,) = mapped(mos(w=w * 5e-9, l=1e-6, nf=nf)).devices
    assert round(device.w * 1e9, 6) == w * 5
    assert w % device.nf == 0


@pytest.mark.parametrize(
    ("name", "kind", "on_card"),
    [
        ("nmos", "nmos", "nmos"),
        ("n", None, "nmos"),
        ("P_33_MM", None, "pmos"),
        ("slvtpfet", "pmos", "pmos"),
        ("sky130_fd_pr__esd_nfet_g5v0d10v5", "nmos", "nmos"),
        ("cap_nmos_03v3", "mos_capacitor", "nmos"),
        ("sky130_fd_pr__cap_var_lvt", "mos_capacitor", None),
        ("nmoscap", "capacitor", "nmos"),
        ("nplus_u", "resistor", None),
        ("pres", "resistor", None),
        ("npn13G2", "npn", None),
        ("sky130_fd_sc_hd__inv_1", None, None),
        ("sg13g2_nand2_1", None, None),
        ("comparator", None, None),
        ("out_n", None, "nmos"),
    ],
)
def test_a_name_is_classified_by_habit_or_not_at_all(name, kind, on_card):
    assert classify_model(name) == kind
    assert classify_model(name, on_mos_card=True) == on_card


def test_flavours_and_ratings_are_read_off_names():
    assert threshold_flavour("nch_ulvt_mac") == "lvt"
    assert threshold_flavour("sky130_fd_pr__nfet_05v0_nvt") == "native"
    assert rated_voltage("sky130_fd_pr__pfet_g5v0d10v5") == 5.0
    assert rated_voltage("nmos_rvt") == 0.0


@pytest.mark.parametrize(
    ("name", "volts"),
    [("nmos_6p0_dw", 6), ("nmos_5p0", 5), ("pmos_3p3_esd", 3.3), ("nch_5v", 5), ("n5v", 5), ("nch_lvt", 0)],
)
def test_ratings_with_p_for_the_point_and_of_whole_volts_are_read(name, volts):
    assert rated_voltage(name) == volts


def test_a_transistor_of_6_v_is_drawn_as_one_that_bears_it():
    read = read_netlist(NetlistText(".subckt c d g s b\nX1 d g s b nmos_6p0_special w=2u l=1u\n.ends"))
    (drawn,) = map_circuit(read, load("gf180mcuD")).devices
    assert drawn.model == "nfet_06v0"
