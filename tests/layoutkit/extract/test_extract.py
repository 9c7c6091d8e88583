"""Extraction gives back what was drawn (issue: first light; S0.4 sizes)."""

import klayout.db as kdb
import pytest
from transistor_sketch import Sketch

from layoutkit.extract.extractor import extract
from layoutkit.layout.files import layout_bytes
from layoutkit.technology import load

TECHNOLOGIES = ["generic", "sky130A"]


@pytest.fixture(params=TECHNOLOGIES)
def sketch(request):
    return Sketch(load(request.param))


def extracted(sketch):
    return extract(sketch.layout, sketch.cell, sketch.technology)


def nets_of(extraction, device):
    return {terminal: extraction.nets[net].name for terminal, net in device.nets.items()}


@pytest.mark.parametrize("kind", ["nmos", "pmos"])
@pytest.mark.parametrize(("w", "l", "fingers"), [(1000, 180, 1), (2005, 500, 3), (420, 2000, 4)])
def test_width_length_and_fingers_come_back(sketch, kind, w, l, fingers):  # noqa: E741
    sketch.mos(kind, w, l, "d g s b", fingers=fingers)
    sketch.label_rails("d", "g", "s", "b")
    found = extracted(sketch)
    (device,) = found.devices
    assert (device.w_um, device.l_um, len(device.fingers)) == (w * fingers / 1000, l / 1000, fingers)
    assert found.technology.devices[device.device].type == kind
    assert {**nets_of(found, device), "d": None, "s": None} == {"d": None, "g": "g", "s": None, "b": "b"}
    assert found.nets[device.nets["d"]].name in {"d", "s"}
    assert found.ignored["nmos"] == ()


def test_no_tap_leaves_the_bulk_on_a_net_of_its_own(sketch):
    sketch.mos("nmos", 1000, 500, "d g s -")
    sketch.label_rails("d", "g", "s")
    found = extracted(sketch)
    bulk = found.devices[0].nets["b"]
    assert {terminal for _, terminal in found.nets[bulk].terminals} == {"b"}
    assert not found.reaches(bulk, "contact")


def test_wells_apart_are_nets_apart_and_the_substrate_is_one():
    sketch = Sketch(load("sky130A"))
    for kind in ("pmos", "nmos"):
        sketch.mos(kind, 1000, 500, f"{kind} g s b")
        sketch.mos(kind, 1000, 500, f"other_{kind} g s -")
    wells = {(d.device, d.nets["b"]) for d in extracted(sketch).devices}
    assert len({net for device, net in wells if device == "pfet_01v8"}) == 2
    assert len({net for device, net in wells if device == "nfet_01v8"}) == 1


def test_a_ring_of_n_well_over_a_deep_n_well_cuts_its_inside_off_from_the_substrate():
    sketch = Sketch(load("sky130A"))
    sketch.mos("nmos", 1000, 500, "d1 g s vss")
    left = sketch.next_x + 5000
    sketch.mos("nmos", 1000, 500, "d2 g s inner", at=left)
    for box in ((-4, -6, 10, -4), (-4, 5, 10, 7), (-4, -6, -2, 7), (8, -6, 10, 7)):
        sketch.box("nwell", left + 1000 * box[0], 1000 * box[1], left + 1000 * box[2], 1000 * box[3])
    bulks = [device.nets["b"] for device in extracted(sketch).devices]
    assert bulks[0] == bulks[1], "a ring alone insulates nothing"
    sketch.box("dnwell", left - 3000, -5000, left + 9000, 6000)
    bulks = [device.nets["b"] for device in extracted(sketch).devices]
    assert bulks[0] != bulks[1]


@pytest.mark.parametrize(
    ("nets", "is_dummy"),
    [
        ("b b b b", True),  # all tied
        ("s b s b", True),  # off, source and drain one net
        ("s s s b", True),  # no voltage anywhere
        ("- b s b", True),  # off, and the drain leads nowhere
        ("s g s b", False),  # a MOS capacitor
        ("d b s b", False),  # off, between two nets: an ESD clamp
        ("g g s b", False),  # a diode
        ("- g s b", False),  # a switch whose drain is open
    ],
)
def test_a_dummy_is_what_can_carry_no_current(sketch, nets, is_dummy):
    sketch.mos("nmos", 1000, 500, nets)
    sketch.label_rails(*(net for net in dict.fromkeys(nets.split()) if net != "-"))
    found = extracted(sketch)
    assert (len(found.dummies), len(found.devices)) == ((1, 0) if is_dummy else (0, 1))


def test_poly_over_diffusion_without_its_implant_is_told_not_dropped(sketch):
    sketch.mos("nmos", 1000, 500, "d g s b")
    implant = sketch.technology.layer(sketch.layout, sketch.technology.device("nmos").implant)
    sketch.cell.shapes(implant).clear()
    sketch.box(sketch.technology.device("nmos").implant, -200, -200, 1250, 1200)  # covers half of the channel
    found = extracted(sketch)
    assert found.devices == ()
    assert [place for place, _ in found.ignored["nmos"]] == [(1.25, 0.5)]


def test_a_gate_that_does_not_split_its_diffusion_is_told_not_dropped(sketch):
    sketch.mos("nmos", 1000, 500, "d g s b")
    sketch.box("active", 0, -2000, 300, 0)
    sketch.box("active", 0, -2000, 2500, -1000)
    sketch.box("active", 2200, -2000, 2500, 0)
    sketch.box(sketch.technology.device("nmos").implant, -200, -2200, 2700, 1200)
    found = extracted(sketch)  # source and drain are one ring of diffusion: the channel is still a transistor
    assert len(found.devices) + len(found.dummies) + len(found.ignored["nmos"]) == 1


def test_a_label_beside_its_metal_names_nothing_and_is_told(sketch):
    sketch.mos("nmos", 1000, 500, "d g s b")
    sketch.label("d", -4000, 500_000)
    found = extracted(sketch)
    assert [label.text for label in found.labels_off_metal] == ["d"]
    assert all(not net.labels for net in found.nets.values())


def test_equal_labels_do_not_connect(sketch):
    sketch.mos("nmos", 1000, 500, "one g two b")
    sketch.label_rails(one="x", two="x")
    found = extracted(sketch)
    named = [net for net in found.nets.values() if net.texts == ("x",)]
    assert len(named) == 2
    assert len({net.name for net in named}) == 2


def test_device_texts_name_devices_from_any_level(sketch):
    sketch.mos("nmos", 1000, 500, "d g s b", fingers=2, text="M7")
    top = sketch.layout.create_cell("above")
    top.insert(kdb.CellInstArray(sketch.cell.cell_index(), kdb.Trans(1, False, 3000, 70)))
    (device,) = extract(sketch.layout, top, sketch.technology).devices
    assert (device.id, len(device.fingers), device.w_um) == ("M7", 2, 2.0)


def test_an_empty_cell_is_an_empty_circuit(sketch):
    found = extracted(sketch)
    assert (found.devices, found.dummies, found.nets, found.circuit.devices) == ((), (), {}, ())


def test_labels_on_pin_shapes_are_the_ports_where_there_are_any(sketch):
    sketch.mos("nmos", 1000, 500, "d g s b")
    sketch.label_rails("d", "g", "s", "b")
    assert extracted(sketch).circuit.ports == ("b", "d", "g", "s")
    sketch.label("d", -3000, sketch.rail("d") - 150, pin=True)
    assert extracted(sketch).circuit.ports == ("d",)


def test_the_layout_is_left_as_it_is(sketch):
    sketch.mos("nmos", 1000, 500, "d g s b")
    before = layout_bytes(sketch.layout, "GDS2")
    extracted(sketch)
    assert layout_bytes(sketch.layout, "GDS2") == before
