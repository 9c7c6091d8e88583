"""Single transistors: clean, of the size asked for, connected, symmetric and reproducible (S0.4)."""

import klayout.db as kdb
import pytest
from drawn_circuit import channels_of, layers_changed_by
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.drc.check import check
from layoutkit.errors import GeometryError
from layoutkit.technology import load
from thorough import covering, examples

TECHNOLOGIES = ["generic", "sky130A"]
SHARED_NETS = ["d g s b", "d g b b", "x x s b", "x x b b", "b b b b", "d b s b"]


def violations(layout, cell, tech):
    report = check(layout, cell, tech)
    assert not report.unchecked
    return {verdict.rule.id: verdict.count for verdict in report.violated}


@pytest.mark.parametrize(
    ("tech", "flavour", "nets", "fingers", "size"),
    covering(
        TECHNOLOGIES,
        ["nmos", "pmos"],
        SHARED_NETS,
        [(1, 1), (2, 1), (3, 1), (1, 4), (2, 3)],
        [(0, 0), (0.5, 0.18), (1.0, 0.155), (2.0, 0.5), (5.0, 2.0)],
    ),
    indirect=["tech"],
)
def test_every_size_is_clean_and_extracts_as_asked(tech, layout, device, flavour, nets, fingers, size):  # noqa: PLR0917 - one argument a parameter
    """A size is a finger's width and length in micrometres, at least those that the flavour may have."""
    (nf, m), spec = fingers, tech.device(flavour)
    smallest = (tech.to_um(spec.min_w), tech.to_um(spec.min_l))
    finger_um, length_um = (max(pair) for pair in zip(size, smallest, strict=True))
    made = device("M1", finger_um * nf, length_um, nets, nf=nf, m=m, flavour=flavour)
    module = draw_mos(layout, tech, MosSpec(made, "cell"))
    assert violations(layout, module.cell, tech) == {}
    drain, gate, source, _bulk = nets.split()
    channels = channels_of(module.cell, tech.name)
    assert len(channels) == nf * m
    assert {tech.to_um(channel.width) for channel in channels} == {round(finger_um, 6)}
    assert {tech.to_um(channel.length) for channel in channels} == {round(length_um, 6)}
    assert {channel.gate for channel in channels} == {gate}
    assert {channel.sides for channel in channels} == {frozenset((drain, source))}


@pytest.mark.parametrize(("tech", "nets", "dummies"), covering(TECHNOLOGIES, SHARED_NETS, [1, 2]), indirect=["tech"])
def test_dummies_are_off_and_share_the_diffusion_of_their_neighbour(tech, layout, device, nets, dummies):
    module = draw_mos(layout, tech, MosSpec(device("M1", 3, 0.5, nets, nf=3), "cell", dummies=dummies))
    assert violations(layout, module.cell, tech) == {}
    channels = channels_of(module.cell, tech.name)
    outer = channels[:dummies] + channels[-dummies:]
    assert len(channels) == 3 + 2 * dummies
    assert {channel.gate for channel in outer} == {"b"}
    drain, _, source, _ = nets.split()
    inner = [channels[dummies - 1].sides, channels[-dummies].sides]
    assert sorted(map(sorted, inner)) == sorted(sorted({"b", net}) for net in (drain, source))
    assert {channel.sides for channel in channels[: dummies - 1] + channels[len(channels) - dummies + 1 :]} <= {
        frozenset("b")
    }
    assert [gate.device for gate in module.gates].count("") == 2 * dummies


@pytest.mark.parametrize(("tech", "nets", "rows"), covering(TECHNOLOGIES, SHARED_NETS, [2, 3]), indirect=["tech"])
def test_fingers_fold_into_rows_that_stay_one_transistor(tech, layout, device, nets, rows):
    module = draw_mos(layout, tech, MosSpec(device("M1", 5, 0.3, nets, nf=5), "cell", rows=rows))
    assert violations(layout, module.cell, tech) == {}
    channels = channels_of(module.cell, tech.name)  # fails where a net is in pieces
    assert len(channels) == 5
    assert len({channel.y for channel in channels}) == rows


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    technology=st.sampled_from(TECHNOLOGIES),
    flavour=st.sampled_from(["nmos", "pmos"]),
    width=st.integers(84, 2000),
    length=st.integers(30, 800),
    nf=st.integers(1, 4),
    m=st.integers(1, 3),
    dummies=st.integers(0, 1),
    nets=st.sampled_from(SHARED_NETS),
)
def test_any_size_on_the_grid_is_clean(technology, flavour, width, length, nf, m, dummies, nets):  # noqa: PLR0917 - the same
    tech = load(technology)
    spec = tech.device(flavour)
    width, length = max(width, spec.min_w // 5), max(length, spec.min_l // 5)
    layout = kdb.Layout()
    size = MosSize(width * nf * 5e-9, length * 5e-9, nf, m)
    made = transistor(tech, "M1", flavour, size, dict(zip("dgsb", nets.split(), strict=True)))
    assert made.warnings == ()
    module = draw_mos(layout, tech, MosSpec(made, "cell", dummies=dummies))
    assert violations(layout, module.cell, tech) == {}
    channels = channels_of(module.cell, technology)
    real = channels[dummies : len(channels) - dummies]
    assert [(channel.width, channel.length) for channel in real] == [(width * 5, length * 5)] * (nf * m)


@pytest.mark.parametrize(
    ("tech", "nf", "length_um"),
    covering(TECHNOLOGIES, [2, 4, 6], [0.15, 0.155, 0.5, 0.505, 3.0]),
    indirect=["tech"],
)
def test_an_even_number_of_fingers_is_its_own_mirror_image(tech, layout, device, nf, length_um):
    length_um = max(length_um, tech.to_um(tech.device("nmos").min_l))
    module = draw_mos(layout, tech, MosSpec(device("M1", nf, length_um, nf=nf), "cell"))
    axis = module.symmetry_axis_x
    assert axis is not None
    mirror = kdb.Trans(2, True, 2 * axis, 0)
    assert layers_changed_by(mirror, module.cell) == []


def test_an_axis_is_told_only_where_the_drawing_has_one(tech, layout, device):
    """One finger has its source left and its drain right."""
    assert draw_mos(layout, tech, MosSpec(device("M1", 1, 0.5), "cell")).symmetry_axis_x is None


def test_the_cell_starts_at_the_origin_and_pins_lie_in_it(tech, layout, device):
    module = draw_mos(layout, tech, MosSpec(device("M1", 4, 0.5, nf=2, m=2), "cell"))
    assert (module.bbox.left, module.bbox.bottom) == (0, 0)
    assert module.bbox == module.cell.bbox()
    assert {pin.net for pin in module.pins} == {"d", "g", "s", "b"}
    over_fingers = {"generic": "metal2", "sky130A": "met2"}[tech.name]
    for pin in module.pins:
        assert pin.layer == (over_fingers if pin.net in {"d", "s"} else tech.conductors[1].name)
        drawn = kdb.Region(module.cell.begin_shapes_rec(tech.layer(layout, tech.conductor(pin.layer).layer)))
        assert (kdb.Region(pin.box) - drawn).is_empty()


def test_device_text_names_every_channel_and_no_dummy(tech, layout, device):
    module = draw_mos(layout, tech, MosSpec(device("M7", 3, 0.5, nf=3), "cell", dummies=1))
    texts = [shape.text for shape in module.cell.shapes(tech.layer(layout, tech.role("device_text"))).each()]
    assert [text.string for text in texts] == ["M7"] * 3
    boxes = [gate.box for gate in module.gates if gate.device]
    assert all(any(box.contains(kdb.Point(text.x, text.y)) for box in boxes) for text in texts)


def test_labels_can_be_left_out(tech, layout, device):
    module = draw_mos(layout, tech, MosSpec(device("M1", 1, 0.5), "cell", labels=False))
    assert module.cell.shapes(tech.layer(layout, tech.conductors[1].label_layer)).is_empty()


def test_drawing_again_replaces_the_cell(tech, layout, device):
    draw_mos(layout, tech, MosSpec(device("M1", 8, 0.5, nf=4), "cell"))
    module = draw_mos(layout, tech, MosSpec(device("M1", 1, 0.5), "cell"))
    assert len(channels_of(module.cell, tech.name)) == 1
    assert layout.cells() == 1


@pytest.mark.parametrize(
    ("w_um", "l_um", "nf", "message"),
    [
        (0.1, 0.5, 1, "Width 1e-07 is below minimum"),
        (-1, 0.5, 1, "Width -1e-06 is below minimum"),
        (0.5, 0.5, 2, "Width 5e-07 is below minimum"),
        (1, 0.1, 1, "Length 1e-07 is below minimum"),
        (float("nan"), 0.5, 1, "Width nan is below minimum"),
        (1, 0.5, 0, "Number of fingers must be positive integer"),
        (1e6, 0.5, 20000, "at most 10000"),
    ],
)
def test_impossible_sizes_are_refused_in_words(sky130, w_um, l_um, nf, message):
    with pytest.raises(GeometryError, match=message):
        transistor(sky130, "M1", "nmos", MosSize(w_um * 1e-6, l_um * 1e-6, nf))


def test_all_faults_of_a_size_are_reported_at_once(sky130):
    with pytest.raises(GeometryError, match=r"Width 1e-07 is below minimum.*; Length 1e-08 is below minimum") as caught:
        transistor(sky130, "M1", "nmos", MosSize(0.1e-6, 0.01e-6))
    assert [fault["provided_value"] for fault in caught.value.details["faults"]] == [0.1e-6, 0.01e-6]
    with pytest.raises(GeometryError, match=r"Number of fingers.*; Multiplier"):
        transistor(sky130, "M1", "nmos", MosSize(1e-6, 1e-6, 0, 0))


def test_dummies_beside_long_gates_are_shorter(sky130):
    """Their length is at most 1 um; matched fingers keep their own, and short ones have dummies of their length."""
    for length, wanted in ((8.0, 1000), (0.5, 500)):
        one = transistor(sky130, "M1", "nmos", MosSize(2e-6, length * 1e-6, 2), dict(zip("dgsb", "dgsb", strict=True)))
        module = draw_mos(kdb.Layout(), sky130, MosSpec(one, "cell", dummies=2))
        lengths = [(gate.device, gate.box.width()) for gate in module.gates]
        assert lengths == [("", wanted)] * 2 + [("M1", length * 1000)] * 2 + [("", wanted)] * 2


def test_the_minimum_width_is_a_finger_s_one(sky130):
    """difftap.2: 0.42 um a finger, so 0.84 um for two; one grid step less is refused."""
    assert transistor(sky130, "M1", "nmos", MosSize(0.84e-6, 0.15e-6, 2)).finger_width == 420
    with pytest.raises(GeometryError, match=r"Width 8\.3e-07 is below minimum 8\.4e-07"):
        transistor(sky130, "M1", "nmos", MosSize(0.83e-6, 0.15e-6, 2))


def test_sizes_off_the_grid_are_rounded_and_told(sky130):
    made = transistor(sky130, "M1", "nmos", MosSize(2e-6, 0.502e-6, 3))
    assert (made.finger_width, made.length) == (665, 500)
    assert len(made.warnings) == 2
    assert "0.665 um in each of 3 fingers" in made.warnings[0]


def test_a_finger_too_wide_for_the_taps_is_refused_with_the_cure(sky130):
    """LU.2: 15 um from any diffusion to the nearest tap; a row of ten 40 um fingers has its middle at 20 um."""
    wide = transistor(sky130, "M1", "nmos", MosSize(400e-6, 4e-6, 10))
    with pytest.raises(GeometryError, match="Use more fingers"):
        draw_mos(kdb.Layout(), sky130, MosSpec(wide, "cell"))


def test_sizes_that_hold_millions_of_contacts_are_refused_at_once(tech):
    with pytest.raises(GeometryError, match=r"a finger of M1 is 500000 um wide.*gate of M1 is 2000 um long.*in metres"):
        transistor(tech, "M1", "nmos", MosSize(1.0, 2e-3, 2))
