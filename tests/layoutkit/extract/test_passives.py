"""Extraction and comparison of resistors and capacitors: what is drawn, broken and folded, against arithmetic."""

import functools
from dataclasses import replace
from types import SimpleNamespace

import klayout.db as kdb
import pytest

from layoutkit.circuit import Circuit, Device, read_netlist
from layoutkit.draw.capacitor import CapacitorSpec, draw_capacitor
from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.draw.passive import capacitor, resistor
from layoutkit.draw.resistor import ResistorSpec, draw_resistors
from layoutkit.errors import UnsupportedOperationError
from layoutkit.extract.extractor import extract
from layoutkit.extract.folding import dummies
from layoutkit.lvs.compare import compare
from layoutkit.lvs.lvs_result import extracted_spice, write_report
from layoutkit.lvs.reference import reference_of
from layoutkit.technology import load
from layoutkit.technology.device_kinds import KINDS
from layoutkit.technology.passive_sizes import PassiveSize
from thorough import processes

REAL = [name for name in processes() if load(name).passives]


@pytest.fixture(params=REAL)
def tech(request):
    return load(request.param)


def width_of(tech):
    spec = tech.passive("resistor")
    return (spec.widths or (spec.min_w,))[0] * tech.dbu_um * 1e-6


@pytest.fixture
def bank(tech):
    """Return a resistor of two strings of four bars of 10 um."""
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    device = resistor(tech, "R1", "resistor", PassiveSize(width_of(tech), 40e-6, 2, 4), {"p": "a", "n": "c"})
    return draw_resistors(layout, tech, ResistorSpec("X", (device,), "b", 1))


@pytest.fixture
def plates(tech):
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    device = capacitor(tech, "C1", "capacitor", PassiveSize(12e-6, 7e-6, 3), {"p": "a", "n": "b"})
    return draw_capacitor(layout, tech, CapacitorSpec("X", device))


def asked(tech, length=40e-6, m=2, bulk="b", width=None):
    nets = {"p": "a", "n": "c"} | ({"b": bulk} if bulk else {})
    params = {"w": width or width_of(tech), "l": length, "m": m}
    return Circuit("x", (Device("R1", "resistor", tech.passive("resistor").name, params, nets),), ("a", "c", "b"))


def erase(module, tech, layer, box):
    shapes = module.cell.shapes(tech.layer(module.layout, layer))
    rest = kdb.Region(shapes) - kdb.Region(box)
    shapes.clear()
    shapes.insert(rest)


def judged(module, tech, circuit):
    made = tech.made_for(device.model for device in circuit.devices)
    return compare(extract(module.layout, module.cell, made), circuit)


def bars(module):
    return [gate.box for gate in module.gates if gate.device]


@pytest.mark.parametrize("count", [2, 3])
def test_a_string_of_bars_that_begins_and_ends_on_one_net_is_a_dummy_like_a_single_bar(tech, count):
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    tied = resistor(tech, "R1", "resistor", PassiveSize(width_of(tech), 30e-6, 1, count), {"p": "b", "n": "b"})
    module = draw_resistors(layout, tech, ResistorSpec("X", (tied,), "b", 0))
    extraction = extract(module.layout, module.cell, tech)
    assert (extraction.devices, len(extraction.dummies)) == ((), count)

    def wanted(*nets):
        found = []
        for number, (p, n) in enumerate(nets):
            params, model = {"w": width_of(tech), "l": 30e-6 / len(nets), "m": 1}, tech.passive("resistor").name
            found.append(Device(f"R{number}", "resistor", model, params, {"p": p, "n": n, "b": "b"}))
        return Circuit("x", tuple(found), ("b",))

    assert compare(extraction, wanted(("b", "b"))).matched
    assert compare(extraction, wanted(("b", "i"), ("i", "b"))).matched
    assert compare(extraction, wanted(("b", "i"), ("i", "k"), ("k", "b"))).matched
    dangling = wanted(("b", "i"))
    units = (replace(dangling.devices[0], params={**dangling.devices[0].params, "l": 30e-6 / count, "m": 2}),)
    assert compare(extraction, replace(dangling, devices=units)).matched
    assert not compare(extraction, dangling).matched
    assert not compare(extraction, replace(wanted(("b", "a")), ports=("a", "b"))).matched


def test_bars_in_series_and_parallel_are_one_device_of_their_sum(bank, tech):
    extraction = extract(bank.layout, bank.cell, tech)
    (device,) = extraction.devices
    assert (device.id, device.l_um) == ("R1", 40.0)
    assert device.w_um == pytest.approx(2e6 * width_of(tech))
    assert len(device.fingers) == 8
    assert len(extraction.dummies) == 2
    assert {extraction.nets[net].name for net in device.nets.values()} == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"length": 30e-6}, "too many bars in series"),
        ({"length": 50e-6}, "bars in series are missing"),
        ({"m": 1}, "in parallel"),
    ],
)
def test_a_wrong_size_is_told_with_its_likely_cause(bank, tech, changes, cause):
    (mismatch,) = judged(bank, tech, asked(tech, **changes)).mismatches
    assert mismatch.kind == "wrong_parameter"
    assert "R1" in mismatch.message
    assert cause in mismatch.cause
    assert mismatch.layout[0][1] is not None


def test_the_tolerance_decides_at_its_limit(bank, tech):
    extraction = extract(bank.layout, bank.cell, tech)
    assert compare(extraction, asked(tech, length=40.3e-6), tolerance=0.01).matched
    assert not compare(extraction, asked(tech, length=40.5e-6), tolerance=0.01).matched


def test_a_resistor_with_the_wrong_bulk_is_no_match(bank, tech):
    result = judged(bank, tech, asked(tech, bulk="a"))
    assert not result.matched
    assert any("R1.b" in mismatch.message for mismatch in result.mismatches)


def test_a_netlist_without_bulks_is_compared_without_and_told(bank, tech):
    result = judged(bank, tech, asked(tech, bulk=None))
    assert result.matched
    assert any("bulk of" in warning for warning in result.warnings)


def test_series_and_parallel_of_the_netlist_fold_as_the_layout_does(bank, tech):
    name, width = tech.passive("resistor").name, width_of(tech)
    strings = [
        Device(f"R{string}{part}", "resistor", name, {"w": width, "l": 20e-6}, {"p": ends[0], "n": ends[1], "b": "b"})
        for string in "xy"
        for part, ends in enumerate((("a", f"i{string}"), (f"i{string}", "c")))
    ]
    assert judged(bank, tech, Circuit("x", tuple(strings), ("a", "c", "b"))).matched
    # A port on the inner net keeps the two halves apart.
    apart = Circuit("x", tuple(strings), ("a", "c", "b", "ix"))
    assert len(reference_of(apart, tech).devices) == 3
    assert not judged(bank, tech, apart).matched


def test_a_lost_core_marker_is_found(bank, tech):
    marker = next(layer for layer in tech.passive("resistor").markers if layer != tech.role("poly_contact_marker"))
    erase(bank, tech, marker, bars(bank)[2])
    assert not judged(bank, tech, asked(tech)).matched


def test_a_shorted_bar_is_a_shorter_resistor(bank, tech):
    core = bars(bank)[1]
    erase(bank, tech, tech.passive("resistor").parts["core"], core)
    assert not judged(bank, tech, asked(tech)).matched


FLAVOURS = [
    (name, flavour) for name in REAL for flavour, spec in load(name).passives.items() if spec.type == "resistor"
]


def with_marker(technology, flavour, change):
    """Return the mismatches of a resistor of two bars whose marker, all of it, is changed before it is read."""
    tech = load(technology)
    spec = tech.passive(flavour)
    width = (spec.widths or (spec.min_w,))[0] * tech.dbu_um * 1e-6
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    length = max(20e-6, 2 * spec.min_l * tech.dbu_um * 1e-6)
    device = resistor(tech, "R1", flavour, PassiveSize(width, length, 1, 2), {"p": "a", "n": "c"})
    module = draw_resistors(layout, tech, ResistorSpec("X", (device,), "b"))
    for marker in spec.cuts_body:
        shapes = module.cell.shapes(tech.layer(layout, marker))
        changed = change(kdb.Region(shapes).merged(), spec)
        shapes.clear()
        shapes.insert(changed)
    nets = {"p": "a", "n": "c"} | ({"b": "b"} if spec.terminals > 2 else {})
    asked = Device("R1", "resistor", spec.model_of(width * 1e6), {"w": width, "l": length}, nets)
    return judged(module, tech, Circuit("x", (asked,), ("a", "c") if spec.conductor else ("a", "c", "b")))


@functools.cache
def matches_unchanged(technology, flavour):
    return with_marker(technology, flavour, lambda drawn, _: drawn).matched


@pytest.mark.parametrize(("technology", "flavour"), FLAVOURS)
@pytest.mark.parametrize(
    "change",
    [
        lambda drawn, _: kdb.Region(drawn.bbox().enlarged(0, 3000)),
        lambda _drawn, _spec: kdb.Region(),
        # By one grid step where another layer gives the length, by more than the tolerance where the marker does.
        lambda drawn, spec: drawn.sized(0, 5 if spec.core_markers else 200, 2),
        lambda drawn, spec: drawn.sized(0, -5 if spec.core_markers else -200, 2),
    ],
    ids=["over the heads", "missing", "too long", "too short"],
)
def test_a_marker_that_is_not_the_body_of_the_resistor_is_a_mismatch(technology, flavour, change):
    assert matches_unchanged(technology, flavour)
    assert not with_marker(technology, flavour, change).matched


@pytest.mark.parametrize(
    ("technology", "layers"),
    [
        ("gf180mcuD", ["SAB"]),
        ("gf180mcuD", ["RES_MK"]),
        ("sg13g2", ["SalBlock"]),
        ("sg13g2", ["RES"]),
        ("sg13g2", ["PolyRes"]),
        ("sky130A", ["rpm"]),
        ("sky130A", ["urpm"]),
    ],
)
def test_resistive_or_marked_poly_that_is_no_resistor_is_reported(technology, layers):
    tech = load(technology)
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    cell = layout.create_cell("X")
    cell.shapes(tech.layer(layout, "poly")).insert(kdb.Box(0, 0, 1000, 9000))
    assert compare(extract(layout, cell, tech), Circuit("x", (), ())).mismatches[0].kind == "nothing_compared"
    for layer in layers:
        cell.shapes(tech.layer(layout, layer)).insert(kdb.Box(-500, 3000, 1500, 6000))
    extraction = extract(layout, cell, tech)
    ((place, reason),) = extraction.ignored["resistor"]
    assert 3.0 <= place.y <= 6.0
    assert layers[0] in reason
    assert "unrecognised_device" in {mismatch.kind for mismatch in compare(extraction, Circuit("x", (), ())).mismatches}


def test_a_layer_of_another_resistor_makes_it_none(bank, tech):
    foreign = {"gf180mcuD": "Resistor", "sg13g2": "ThickGateOx", "sky130A": "urpm"}[tech.name]
    bank.cell.shapes(tech.layer(bank.layout, foreign)).insert(bars(bank)[2])
    result = judged(bank, tech, asked(tech))
    assert not result.matched
    assert len(result.extraction.ignored["resistor"]) == 1


def test_a_cut_link_is_found(bank, tech):
    box = bars(bank)[0]
    first = tech.conductors[1].layer
    erase(bank, tech, first, kdb.Box(box.left, bank.bbox.bottom, box.right, bank.bbox.top))
    assert not judged(bank, tech, asked(tech)).matched


def test_plates_are_extracted_with_their_sides(plates, tech):
    extraction = extract(plates.layout, plates.cell, tech)
    (device,) = extraction.devices
    assert (device.id, device.w_um, device.l_um, len(device.fingers)) == ("C1", 36.0, 7.0, 3)


def test_a_plate_whose_cuts_are_gone_is_missing_from_the_capacitor(plates, tech):
    erase(plates, tech, tech.passive("capacitor").parts["cut"], bars(plates)[0])
    three = Device("C1", "capacitor", "capacitor", {"w": 12e-6, "l": 7e-6, "m": 3}, {"p": "a", "n": "b"})
    circuit = Circuit("x", (three,), ("a", "b"))
    assert not judged(plates, tech, circuit).matched


def test_cuts_on_a_plate_do_not_short_it_to_the_bottom(plates, tech):
    extraction = extract(plates.layout, plates.cell, tech)
    (device,) = extraction.devices
    assert device.nets["p"] != device.nets["n"]


@pytest.mark.parametrize("tech", ["gf180mcuD"], indirect=True)
def test_a_marker_need_not_cover_the_plate_that_it_marks(plates, tech):
    """The foundry's deck asks for plates that MIM_L_MK touches; the PDK's own cells draw a strip along one edge."""
    for bar in bars(plates):
        erase(plates, tech, "MIM_L_MK", kdb.Box(bar.left, bar.bottom + 100, bar.right, bar.top))
    (device,) = extract(plates.layout, plates.cell, tech).devices
    assert (device.id, device.w_um, device.l_um, len(device.fingers)) == ("C1", 36.0, 7.0, 3)


@pytest.mark.parametrize(
    ("technology", "block"), [("gf180mcuD", "SAB"), ("gf180mcuD", "RES_MK"), ("sg13g2", "SalBlock"), ("sg13g2", "RES")]
)
def test_diffusion_below_a_silicide_block_or_a_marker_is_no_wire(technology, block):
    """A source that reaches its contact through blocked diffusion has hundreds of ohms in series."""
    tech = load(technology)
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    nets = {terminal: terminal for terminal in "dgsb"}
    made = transistor(tech, "M1", "nmos", MosSize(2e-6, 1e-6, 1, 1), nets)
    module = draw_mos(layout, tech, MosSpec(made, "X"))
    circuit = Circuit("x", (Device("M1", "nmos", "nmos", {"w": 2e-6, "l": 1e-6}, nets),), tuple("dgsb"))
    assert judged(module, tech, circuit).matched
    gate = module.gates[0].box
    beside = kdb.Box(gate.right + 20, gate.bottom, gate.right + 60, gate.top)
    module.cell.shapes(tech.layer(layout, block)).insert(beside)
    result = judged(module, tech, circuit)
    assert not result.matched
    if block == "RES_MK":  # with silicide it is the resistor nplus_s in series
        assert "nplus_s" in " ".join(found.message for found in result.mismatches)
    else:
        assert [(found.kind, block in found.message) for found in result.mismatches] == [("unrecognised_device", True)]


def test_a_plate_that_makes_no_capacitor_is_no_wire(plates, tech):
    """Without its markers, or beyond its bottom plate, the cuts on a plate would join it to the bottom."""
    spec = tech.passive("capacitor")
    bottom = tech.spec(tech.conductor(spec.parts["bottom"]).layer).name
    (name, wire) = ("a", Circuit("x", (), ("a",)))
    for shapes in (plates.cell.shapes(index) for index in plates.layout.layer_indexes()):
        for text in [shape for shape in shapes.each() if shape.is_text() and shape.text_string != name]:
            text.delete()
    for layer in spec.markers or (bottom,):
        plates.cell.shapes(tech.layer(plates.layout, layer)).clear()
    result = judged(plates, tech, wire)
    assert not result.matched
    assert "unrecognised_device" in {mismatch.kind for mismatch in result.mismatches}
    assert result.extraction.ignored["capacitor"]


def test_the_extracted_netlist_reads_back_as_the_same_circuit(bank, plates, tech, tmp_path):
    for module in (bank, plates):
        extraction = extract(module.layout, module.cell, tech)
        path = tmp_path / "extracted.spice"
        path.write_text(extracted_spice(extraction))
        assert compare(extraction, read_netlist(str(path), identify_modules=False)).matched


def test_the_report_opens_in_klayout(bank, tech, tmp_path):
    result = judged(bank, tech, asked(tech))
    write_report(result, tmp_path / "r.lvsdb")
    database = kdb.LayoutVsSchematic()
    database.read(str(tmp_path / "r.lvsdb"))
    assert {device_class.name for device_class in database.reference.each_device_class()} >= set(tech.passives)


def test_a_process_without_passives_says_so():
    with pytest.raises(UnsupportedOperationError, match=r"R1 \(resistor\)"):
        reference_of(Circuit("x", (Device("R1", "resistor", "r", {"r": 1.0}, {"p": "a", "n": "b"}),)), load("generic"))


def test_dummies_are_tied_or_lead_nowhere():
    nets = [{"p": "a", "n": "a"}, {"p": "x", "n": "y", "b": "s"}, {"p": "a", "n": "z"}, {"p": "a", "n": "b"}]
    resistors = [SimpleNamespace(kind=KINDS["resistor"], nets=each) for each in nets]
    assert dummies(resistors, ["a", "b"]) == {0, 1}
    assert dummies(resistors, ["a", "b", "x"]) == {0}
    parallel = SimpleNamespace(kind=KINDS["resistor"], nets=nets[1])
    assert dummies([*resistors, parallel], ["a", "b"]) == {0, 1, 4}, "two units are no more connected than one"


def well_resistor(*, marker=(500, -500, 4500, 2500), poly=False):
    """Return the devices of a hand-drawn n well with a tap at each end, and what is reported beside them."""
    tech = load("gf180mcuD")
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    cell = layout.create_cell("well")
    shapes = {
        "Nwell": [(0, 0, 5000, 2000)], "RES_MK": [marker], "Nplus": [(-40, -40, 660, 2040), (4340, -40, 5040, 2040)],
        "COMP": [(120, 120, 480, 1880), (4520, 120, 4880, 1880)],
        "Contact": [(190, 890, 410, 1110), (4590, 890, 4810, 1110)],
        "Metal1": [(120, 120, 480, 1880), (4520, 120, 4880, 1880)], "Poly2": [(2000, 500, 3000, 1500)] if poly else [],
    }  # fmt: skip
    for layer, boxes in shapes.items():
        for box in boxes:
            cell.shapes(tech.layer(layout, layer)).insert(kdb.Box(*box))
    for name, x in (("a", 300), ("b", 4700)):
        cell.shapes(tech.layer(layout, "Metal1.label")).insert(kdb.Text(name, x, 1000))
    found = extract(layout, cell, tech)
    return [(d.device, d.w_um, d.l_um, d.nets["p"] != d.nets["n"]) for d in found.devices], found.ignored["resistor"]


def test_a_well_between_two_taps_is_a_resistor_as_long_as_its_marker():
    """2 um wide, 4 um between the edges of the marker; a marker that leaves no head, and one over poly, make none."""
    assert well_resistor() == ([("nwell", 2.0, 4.0, True)], ())
    assert well_resistor(marker=(500, -500, 3500, 2500))[0] == [("nwell", 2.0, 3.0, True)]
    assert well_resistor(poly=True)[0] == []
    assert well_resistor(marker=(6000, 0, 7000, 1000))[0] == []
