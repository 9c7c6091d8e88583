"""Bodies of devices are strips of one width or shapes with the area and perimeter of a rectangle, or LVS says so."""

import klayout.db as kdb
import pytest
from transistor_sketch import Sketch

from layoutkit.circuit import Circuit, Device
from layoutkit.draw.capacitor import CapacitorSpec, draw_capacitor
from layoutkit.draw.passive import capacitor, resistor
from layoutkit.draw.resistor import ResistorSpec, draw_resistors
from layoutkit.extract.extractor import extract
from layoutkit.extract.wells_and_bodies import unmeasured
from layoutkit.lvs.compare import compare
from layoutkit.technology import load
from layoutkit.technology.passive_sizes import PassiveSize
from thorough import processes

REAL = [name for name in processes() if load(name).passives]
BAR = (0, 0, 100, 1000)


def shape(*boxes, without=()):
    return kdb.Region([kdb.Box(*box) for box in boxes]) - kdb.Region([kdb.Box(*box) for box in without])


def path(width, *points):
    return kdb.Region(kdb.Path([kdb.Point(*point) for point in points], width).polygon())


OCTAGON = kdb.Region(
    kdb.Polygon([kdb.Point(*p) for p in ((0, 3), (0, 7), (3, 10), (7, 10), (10, 7), (10, 3), (7, 0), (3, 0))]) * 1000
)
STRIPS = {
    "bar": shape(BAR),
    "bend": shape(BAR, (0, 0, 800, 100)),
    "serpentine": path(350, (0, 0), (0, 2000), (500, 2000), (500, 0), (1000, 0), (1000, 2000)),
    "bends of 45 degrees": path(100, (0, 0), (0, 2000), (1500, 3500), (4000, 3500)),
}
OTHERS = {
    "bulge": (shape(BAR, (-20, 400, 120, 600)), "its width changes between 0.100 and 0.140 um"),
    "shallow bulge": (shape(BAR, (0, 400, 105, 600)), "its width changes"),
    "bulge as high as the bar is wide": (shape(BAR, (0, 400, 105, 500)), "it branches"),
    "notch": (shape(BAR, without=[(0, 400, 5, 600)]), "its width changes between 0.095"),
    "step": (shape((0, 0, 100, 500), (5, 500, 105, 1000)), "its width changes between 0.095"),
    "branch": (shape(BAR, (100, 400, 500, 500)), "it branches"),
    "ring": (shape((0, 0, 1000, 1000), without=[(100, 100, 900, 900)]), "its width changes"),
    "octagon": (OCTAGON, "no rectangle has its area of 82 um2 and its perimeter"),
}


@pytest.mark.parametrize("name", STRIPS)
def test_strips_of_one_width_are_measured(name):
    assert list(unmeasured(STRIPS[name], 0.001, strips=True)) == []


@pytest.mark.parametrize("name", OTHERS)
def test_other_shapes_are_not(name):
    region, reason = OTHERS[name]
    ((_, found),) = unmeasured(region, 0.001, strips=True)
    assert found.startswith(reason)


def test_plates_are_measured_by_area_and_perimeter():
    assert list(unmeasured(shape((0, 0, 1000, 1000), without=[(500, 500, 1000, 1000)]), 0.001, strips=False)) == []
    assert len(list(unmeasured(OCTAGON, 0.001, strips=False))) == 1


def told(layout, cell, technology, device, ports):
    result = compare(extract(layout, cell, technology), Circuit("x", (device,), ports))
    return result.matched, [mismatch.message for mismatch in result.mismatches]


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("depth", [0, 20])
def test_a_bulge_of_a_long_resistor_is_no_small_difference_of_its_length(name, depth):
    """The bulge makes it 20 nm longer in KLayout's measure: 0.02 % of 100 um, which is less than the tolerance."""
    technology = load(name)
    spec = technology.passive("resistor")
    width = (spec.widths or (2 * spec.min_w,))[0]
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    size = PassiveSize(width * technology.dbu_um * 1e-6, 100e-6, 1, 1)
    bar = resistor(technology, "R1", "resistor", size, {"p": "a", "n": "c"})
    module = draw_resistors(layout, technology, ResistorSpec("X", (bar,), "b", 0))
    (box,) = [gate.box for gate in module.gates if gate.device]
    middle = box.center()
    if depth:
        bulge = kdb.Box(box.left, middle.y - width // 2, box.right + depth, middle.y + width // 2)
        for layer in (spec.parts["body"], spec.parts["core"], *spec.core_markers):
            module.cell.shapes(technology.layer(layout, layer)).insert(bulge)
    params = {"w": size.w_m, "l": 100e-6, "m": 1}
    asked = Device("R1", "resistor", spec.name, params, {"p": "a", "n": "c", "b": "b"})
    matched, words = told(layout, module.cell, technology, asked, ("a", "c", "b"))
    assert matched == (depth == 0), words
    assert depth == 0 or "has no W and L that could be compared: it branches" in words[0]


@pytest.mark.parametrize("name", ["generic", "sky130A"])  # those that sketches can draw
def test_a_notch_of_a_wide_gate_is_no_small_difference_of_its_width(name):
    """A notch of 5 nm makes W 5 nm larger in KLayout's measure: 0.05 % of 10 um."""
    technology = load(name)
    sketch = Sketch(technology)
    sketch.mos("nmos", 10_000, 1000, "d g s b")
    sketch.label_rails(*"dgsb")
    asked = Device("M1", "nmos", "nmos", {"w": 10e-6, "l": 1e-6}, {t: t for t in "dgsb"})
    assert told(sketch.layout, sketch.cell, technology, asked, (*"dgsb",)) == (True, [])
    poly = sketch.cell.shapes(technology.layer(sketch.layout, "poly"))
    rest = kdb.Region(poly) - kdb.Region(kdb.Box(1000, 5000, 1005, 6000))
    poly.clear()
    poly.insert(rest)
    matched, words = told(sketch.layout, sketch.cell, technology, asked, (*"dgsb",))
    assert not matched
    assert "has no W and L that could be compared: its width changes between 0.995" in words[0]


@pytest.mark.parametrize("name", REAL)
def test_a_plate_without_corners_has_more_area_than_any_rectangle_of_its_perimeter(name):
    technology = load(name)
    spec = technology.passive("capacitor")
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    plates = capacitor(technology, "C1", "capacitor", PassiveSize(20e-6, 20e-6, 1), {"p": "a", "n": "b"})
    module = draw_capacitor(layout, technology, CapacitorSpec("X", plates))
    shapes = module.cell.shapes(technology.layer(layout, spec.parts["plate"]))
    box = kdb.Region(shapes).bbox()
    rest = kdb.Region(box)
    for x in (box.left, box.right):
        for y in (box.bottom, box.top):
            rest -= kdb.Region(
                kdb.Polygon(
                    [kdb.Point(x - 6000, y), kdb.Point(x, y + 6000), kdb.Point(x + 6000, y), kdb.Point(x, y - 6000)]
                )
            )
    shapes.clear()
    shapes.insert(rest)
    side = rest.perimeter() / 4 * technology.dbu_um * 1e-6
    asked = Device("C1", "capacitor", spec.name, {"w": side, "l": side, "m": 1}, {"p": "a", "n": "b"})
    matched, words = told(layout, module.cell, technology, asked, ("a", "b"))
    assert not matched
    assert any("no rectangle has its area" in each for each in words), words
