"""NMOS in deep wells: clean by the rules, the body a net of its own, and no isolation where the well leaks."""

import klayout.db as kdb
import pytest
from drawn_together import not_passed

from layoutkit.draw.deep_well import DeepWellNets, isolate
from layoutkit.draw.group import MirrorSpec, PairSpec, draw_mirror, draw_pair
from layoutkit.draw.mos import MosSpec, Transistor, draw_mos
from layoutkit.draw.ring import RingStyle
from layoutkit.drc.check import check
from layoutkit.errors import UnsupportedOperationError
from layoutkit.extract.extractor import extract
from layoutkit.technology import load

PROCESSES = ("sky130A", "gf180mcuD", "sg13g2")
FLAVOURS = [(name, device) for name in PROCESSES for device in load(name).deep_well.devices]


def device(tech, flavour, name="M1", nets="d g s body", *, widths=3, lengths=2, nf=2):
    """Return a transistor whose finger width and length are multiples of the smallest ones."""
    spec = tech.device(flavour)
    size = tech.snap(spec.min_w * widths), tech.snap(spec.min_l * lengths)
    return Transistor(name, spec, *size, nf, 1, *nets.split())


def layout_of(tech):
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    return layout


def isolated(tech, module, flavour, *, ringed=False):
    return isolate(tech, module, tech.device(flavour), DeepWellNets("vdd", "vss", ringed))


def violated(module, tech):
    report = check(module.layout, module.cell, tech)
    assert not report.unchecked
    return {verdict.rule.id for verdict in report.violated}


def body_names(module, tech):
    """Return the labels on the net of each transistor's body."""
    found = extract(module.layout, module.cell, tech)
    assert not found.soft_connections
    return [{label.text for label in found.nets[each.nets["b"]].labels} for each in found.devices]


def change(module, tech, layer, operate):
    """Replace the shapes of a layer by what ``operate`` makes of them."""
    shapes = module.cell.shapes(tech.layer(module.layout, layer))
    region = operate(kdb.Region(shapes).merged())
    shapes.clear()
    shapes.insert(region)


@pytest.mark.parametrize(("name", "flavour"), FLAVOURS)
def test_transistors_of_every_flavour_and_size_are_clean_and_have_a_body_of_their_own(name, flavour):
    tech = load(name)
    layout = layout_of(tech)
    cells = {}
    for number, (widths, lengths, nf) in enumerate([(1, 1, 1), (2, 9, 3), (12, 1, 6)]):
        ringed = number == 1
        made = device(tech, flavour, widths=widths, lengths=lengths, nf=nf)
        module = isolated(tech, draw_mos(layout, tech, MosSpec(made, f"cell{number}")), flavour, ringed=ringed)
        cells[widths, lengths, nf] = module.cell
        assert body_names(module, tech) == [{"body"}]
        rings = {"vss"} if ringed or tech.deep_well.substrate_ring else set()
        own = set() if tech.device(flavour).well else {"vdd"}  # a deep well below an n well is of its net
        assert {pin.net for pin in module.pins} == {"d", "g", "s", "body"} | own | rings
        assert (module.bbox.left, module.bbox.bottom) == (0, 0)
    assert not_passed(layout, cells, tech) == {}


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize("kind", ["ABBA", "AABB", "horizontal", "mirror", "cascode"])
def test_pairs_and_mirrors_keep_their_symmetry_and_their_gates(name, kind):
    tech = load(name)
    flavour = tech.device("nmos").name
    layout = layout_of(tech)
    first, second = (device(tech, flavour, f"M{i}", f"d{i} g{i} s body") for i in (1, 2))
    if kind in {"mirror", "cascode"}:
        mirror = tuple(device(tech, flavour, f"M{i}", f"d{i} g s body") for i in (1, 2))
        above = tuple(device(tech, flavour, f"C{i}", f"e{i} h d{i} body") for i in (1, 2))
        module = draw_mirror(layout, tech, MirrorSpec("cell", mirror, above if kind == "cascode" else ()))
    else:
        axis = "horizontal" if kind == "horizontal" else "vertical"
        arrangement = "ABBA" if kind == "horizontal" else kind
        module = draw_pair(layout, tech, PairSpec("cell", first, second, arrangement, axis=axis))
    well = isolated(tech, module, flavour)
    assert violated(well, tech) == set()
    assert {frozenset(names) for names in body_names(well, tech)} == {frozenset({"body"})}
    assert (well.symmetry_axis_x is None) == (module.symmetry_axis_x is None)
    assert well.centroid_error() == module.centroid_error()
    for before, after in zip(module.gates, well.gates, strict=True):
        shift = after.box.p1 - before.box.p1
        assert before.box.moved(shift) == after.box
        assert shift == well.gates[0].box.p1 - module.gates[0].box.p1
    poly = kdb.Region(well.cell.begin_shapes_rec(tech.layer(layout, "poly")))
    assert all(not (poly & kdb.Region(gate.box)).is_empty() for gate in well.gates)


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize("side", ["left", "top"])
def test_the_wells_ring_keeps_clear_of_transistors_at_an_open_side_of_the_bodys_ring(name, side):
    tech = load(name)
    made = device(tech, tech.device("nmos").name)
    spec = MosSpec(made, "cell", ring=RingStyle("open", (side,)))
    module = isolated(tech, draw_mos(layout_of(tech), tech, spec), made.spec.name)
    assert violated(module, tech) == set()


def leak_opening(module, tech):
    """Open the well around the body on one side, from its hole to outside."""
    layer = "nwell" if tech.deep_well.body is None else "deep_nwell"
    middle = module.bbox.center().y
    change(module, tech, layer, lambda region: region - kdb.Region(kdb.Box(-9999, middle - 50, 2500, middle + 50)))
    if tech.deep_well.body is not None:  # the p well then reaches the substrate through the opening
        bridge = kdb.Box(0, middle - 50, module.bbox.center().x, middle + 50)
        change(module, tech, tech.deep_well.body, lambda region: region + kdb.Region(bridge))


def leak_no_deep_well(module, tech):
    """Leave out the deep n well."""
    change(module, tech, "deep_nwell", lambda _: kdb.Region())


def leak_short_deep_well(module, tech):
    """End the deep n well before the far side of the body."""
    box = module.bbox
    keep = kdb.Region(kdb.Box(box.left, box.bottom, box.right, box.center().y))
    change(module, tech, "deep_nwell", lambda region: region & keep)


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize("leak", [leak_opening, leak_no_deep_well, leak_short_deep_well])
def test_a_well_that_leaks_isolates_nothing(name, leak):
    tech = load(name)
    flavour = tech.device("nmos").name
    module = draw_mos(layout_of(tech), tech, MosSpec(device(tech, flavour, widths=8), "cell"))
    module = isolated(tech, module, flavour, ringed=True)
    assert body_names(module, tech) == [{"body"}]
    leak(module, tech)
    assert {frozenset(names) for names in short_or_soft(module, tech)} == {frozenset({"body", "vss"})}


def short_or_soft(module, tech):
    """Return the labels on the nets of bodies of a leaking layout, which must be reported as a soft connection."""
    found = extract(module.layout, module.cell, tech)
    assert found.soft_connections, "body and substrate are joined by a well only"
    return [{label.text for label in found.nets[each.nets["b"]].labels} for each in found.devices]


@pytest.mark.parametrize("name", PROCESSES)
def test_the_ring_and_the_deep_well_are_one_net_and_no_wire(name):
    """Two tap rings on one deep well without metal between them are a soft connection."""
    tech = load(name)
    flavour = tech.device("nmos").name
    module = draw_mos(layout_of(tech), tech, MosSpec(device(tech, flavour), "cell"))
    module = isolated(tech, module, flavour)
    assert not extract(module.layout, module.cell, tech).soft_connections
    box = module.bbox
    (start, end), middle = (2500, 5400) if tech.deep_well.body else (0, 1300), box.center().y
    sides = kdb.Region(kdb.Box(box.left + start, middle - 500, box.left + end, middle + 500))
    sides += kdb.Region(kdb.Box(box.right - end, middle - 500, box.right - start, middle + 500))
    for layer in (tech.conductors[0].layer, "tap", "contact"):  # the ring of n+ taps falls into two halves
        change(module, tech, layer, lambda region: region - sides)
    (soft,) = extract(module.layout, module.cell, tech).soft_connections
    assert {name for name, _ in soft.pieces} == {"n+ tap", "vdd"}


@pytest.mark.parametrize(("name", "flavour"), [("generic", "nmos"), ("sky130A", "pfet_01v8")])
def test_what_has_no_deep_well_is_refused_with_what_has(name, flavour):
    tech = load(name)
    module = draw_mos(layout_of(tech), tech, MosSpec(device(tech, flavour), "cell"))
    with pytest.raises(UnsupportedOperationError, match=r"without isolated"):
        isolated(tech, module, flavour)
