"""Drawn metal is judged against the current limits; a narrowed wire and a missing cut are found, with their place."""

from types import SimpleNamespace

import klayout.db as kdb
import pytest

from layoutkit.draw.mos import MosSpec, Transistor, draw_mos
from layoutkit.drc.check import check
from layoutkit.extract.current_limits import NetLoad, judge_currents
from layoutkit.extract.metal_mesh import capacities, mesh_of, minimum_cut
from layoutkit.technology import load

PROCESSES = ("sky130A", "gf180mcuD", "sg13g2")


def transistor(name, fingers=8, width=2000, **stated):
    technology = load(name)
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    spec = technology.device("nmos")
    device = Transistor("M1", spec, width, spec.min_l, fingers, 1, "d", "g", "s", "b", **stated)
    return technology, draw_mos(layout, technology, MosSpec(device, "m1", rows=2))


def with_wire(name, width, cuts=40):
    """Return a hand-drawn finger whose drain leads to a wire of a width [dbu] on the second conductor.

    ::

        | gate | contacts and cuts | wire --------------- port
    """
    technology = load(name)
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    cell = layout.create_cell("TOP")
    spec = technology.device("nmos")

    def draw(layer, *box):
        cell.shapes(technology.layer(layout, layer)).insert(kdb.Box(*box))

    draw("active", -2000, 0, 6000, 20_000)
    draw("poly", -1000, -500, 0, 20_500)
    if spec.implant:
        draw(spec.implant, -3000, -1000, 7000, 21_000)
    cell.shapes(technology.layer(layout, "device_text")).insert(kdb.Text("M1", kdb.Trans(-500, 10_000)))
    if technology.role("pwell"):
        draw("pwell", -4000, -2000, 8000, 22_000)
    first, second = technology.conductors[:2]
    cut, contact = technology.cuts[0], technology.contact
    draw(first.layer, 1000, 0, 6000, 20_000)
    draw(second.layer, 1000, 0, 6000, 20_000)
    draw(second.layer, 6000, 10_000 - width // 2, 30_000, 10_000 - width // 2 + width)
    for i in range(20):
        for x in (1200, 2200, 3200):
            draw(contact.layer, x, 300 + i * 900, x + contact.size, 300 + i * 900 + contact.size)
    for i in range(cuts):
        x, y = 4200 + i % 2 * 900, 300 + i // 2 * 900
        draw(cut.layer, x, y, x + cut.size, y + cut.size)
    return technology, SimpleNamespace(cell=cell, layout=layout), second, cut, (second.name, 29_000, 10_000)


def verdict(technology, module, port, current_ma):
    load_ = NetLoad((port,), (port,), {"M1": "out of"}, current_ma)
    return judge_currents(module.cell, technology, {"d": load_})[0]


@pytest.mark.parametrize("name", PROCESSES)
def test_a_wire_carries_its_width_times_the_limit_and_no_more(name):
    width = 400
    technology, module, conductor, _, port = with_wire(name, width)
    limit = max(conductor.current_ma_um * 0.4, conductor.narrow_current_ma or 0)
    passed = verdict(technology, module, port, 0.99 * limit)
    assert passed.verdict == "passed", passed
    failed = verdict(technology, module, port, 1.01 * limit)
    assert (failed.verdict, failed.layer) == ("failed", conductor.name)
    assert failed.carries_ma == pytest.approx(limit, rel=1e-3)
    assert failed.drawn == "0.4 um"
    assert failed.box[0] <= port[1] * technology.dbu_um
    assert "net d" in failed.text


@pytest.mark.parametrize("name", PROCESSES)
def test_two_cuts_are_needed_where_one_carries_too_little(name):
    technology, module, _, cut, port = with_wire(name, 3000, cuts=2)
    assert verdict(technology, module, port, 1.9 * cut.current_ma).verdict == "passed"
    _, module, _, _, port = with_wire(name, 3000, cuts=1)
    failed = verdict(technology, module, port, 1.9 * cut.current_ma)
    assert (failed.verdict, failed.layer) == ("failed", cut.name)
    assert (failed.drawn, failed.needed) == ("1 cut", "2 cuts")


def crossing(name, *, fenced):
    """Return two wires that cross, joined by one cut; ``fenced``: between foreign wires at the least distance."""
    technology = load(name)
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    cell = layout.create_cell("TOP")
    cut, (lower, upper) = technology.cuts[1], technology.conductors[1:3]
    sides = ((lower, cut.enclose_below, cut.enclose_below_end), (upper, cut.enclose_above, cut.enclose_above_end))
    for conductor, side, end in sides:
        half = max(conductor.width, cut.size + 2 * max(side, end)) // 2 + technology.grid
        pitch = 2 * half + conductor.space
        for place in (-pitch, 0, pitch) if fenced else (0,):
            wire = kdb.Box(-3000, place - half, 3000, place + half)
            wire = wire if conductor is lower else kdb.Box(wire.bottom, wire.left, wire.top, wire.right)
            cell.shapes(technology.layer(layout, conductor.layer)).insert(wire)
    own = kdb.Box(0, 0, cut.size, cut.size).moved(-(cut.size // 2), -(cut.size // 2))
    cell.shapes(technology.layer(layout, cut.layer)).insert(own)
    return technology, SimpleNamespace(cell=cell, layout=layout), (lower.name, -2000, 0), own


@pytest.mark.parametrize("name", PROCESSES)
def test_a_single_cut_where_two_fit_is_a_failure_of_its_own(name):
    technology, drawn, at, cut = crossing(name, fenced=False)
    tiny = NetLoad((at,), (at,), {}, 1e-3)
    found = judge_currents(drawn.cell, technology, {"d": tiny})[0]
    place = tuple(side * technology.dbu_um for side in (cut.left, cut.bottom, cut.right, cut.top))
    assert (found.verdict, found.layer, found.drawn, found.needed) == (
        "failed",
        technology.cuts[1].name,
        "1 cut",
        "2 cuts",
    )
    assert found.box == pytest.approx(place)
    assert "single cut where two fit" in found.text
    assert "too weak" not in found.text
    assert judge_currents(drawn.cell, technology, {"d": tiny}, singles=False)[0].verdict == "unchecked"
    assert judge_currents(drawn.cell, technology, {"d": tiny._replace(current_ma=None)})[0].verdict == "unstated"
    centre = (technology.cuts[1].name, cut.center().x, cut.center().y)
    known = tiny._replace(known_singles=frozenset([centre]))
    assert judge_currents(drawn.cell, technology, {"d": known})[0].verdict == "unchecked"
    technology, drawn, at, _ = crossing(name, fenced=True)
    assert judge_currents(drawn.cell, technology, {"d": NetLoad((at,), (at,), {}, 1e-3)})[0].verdict == "unchecked"


@pytest.mark.parametrize("name", PROCESSES)
def test_a_transistor_has_two_cuts_at_every_joint_and_one_that_is_taken_away_is_found(name):
    technology, module = transistor(name, current=1e-4)
    rail = module.pins_of("s")[0]
    at = (rail.layer, rail.box.center().x, rail.box.center().y)
    load_ = NetLoad((at,), (at,), {"M1": "into"}, 0.1)
    assert judge_currents(module.cell, technology, {"s": load_})[0].verdict == "passed"
    level = next(i for i, conductor in enumerate(technology.conductors) if conductor.name == rail.layer)
    shapes = module.cell.shapes(technology.layer(module.layout, technology.cuts[level - 1].layer))
    cuts = sorted((shape.box for shape in shapes.each() if shape.box.inside(rail.box)), key=str)
    while judge_currents(module.cell, technology, {"s": load_})[0].verdict == "passed":
        gone = cuts.pop()
        narrowed(module, technology, technology.cuts[level - 1].layer, gone)
    found = judge_currents(module.cell, technology, {"s": load_})[0]
    assert [cut for cut, _ in found.singles] == [technology.cuts[level - 1].name]
    left, bottom, right, top = found.singles[0][1]
    near = kdb.DBox(left, bottom, right, top).enlarged(1, 1)
    assert near.touches(gone.to_dtype(technology.dbu_um))


def test_fingers_share_the_current_of_their_device():
    """sky130: each of five drain columns of eight fingers leads its share; the cuts of one column limit it."""
    technology, module = transistor("sky130A")
    rail = max(module.pins_of("d"), key=lambda pin: pin.box.width())
    port = (rail.layer, rail.box.center().x, rail.box.center().y)
    assert verdict(technology, module, port, 0.2).verdict == "passed"
    failed = verdict(technology, module, port, 50.0)
    assert failed.verdict == "failed"
    assert failed.carries_ma < 50


@pytest.mark.parametrize("name", PROCESSES)
def test_the_metal_of_a_transistor_grows_with_its_current(name):
    """Rails, risers and cuts for 2.5 mA in 16 fingers."""
    heights = []
    for stated in ({}, {"current": 2.5e-3}):
        technology, module = transistor(name, fingers=16, **stated)
        assert check(module.layout, module.cell, technology).summary()["total_violations"] == 0
        heights.append(min(pin.box.height() for pin in module.pins_of("d")))
    for net, role in (("d", "out of"), ("s", "into")):
        rail = module.pins_of(net)[0]
        port = (rail.layer, rail.box.center().x, rail.box.center().y)
        load_ = NetLoad((port,), (port,), {"M1": role}, 2.5)
        assert judge_currents(module.cell, technology, {net: load_})[0].verdict == "passed"
    assert heights[0] < heights[1]


def narrowed(module, technology, layer, box):
    """Cut a part out of the shapes of a layer."""
    shapes = module.cell.shapes(technology.layer(module.layout, layer))
    rest = kdb.Region(shapes) - kdb.Region(box)
    shapes.clear()
    shapes.insert(rest)


@pytest.mark.parametrize("name", PROCESSES)
def test_a_rail_narrowed_at_one_place_and_a_cut_taken_from_an_array_are_found(name):
    technology, module, conductor, cut, port = with_wire(name, 3000, cuts=4)
    current = 3.9 * cut.current_ma
    assert verdict(technology, module, port, current).verdict == "passed"
    notch = kdb.Box(20_000, 8000, 20_500, 11_500 - 200)  # leaves 0.2 um of 3 um
    narrowed(module, technology, conductor.layer, notch)
    failed = verdict(technology, module, port, max(current, 2 * (conductor.current_ma(0.2) or 0)))
    assert (failed.verdict, failed.layer, failed.drawn) == ("failed", conductor.name, "0.2 um")
    assert (failed.box[0], failed.box[2]) == pytest.approx((20.0, 20.5), abs=0.51)
    technology, module, _, cut, port = with_wire(name, 3000, cuts=4)
    narrowed(module, technology, cut.layer, kdb.Box(4000, 0, 4900, 900))
    failed = verdict(technology, module, port, current)
    assert (failed.verdict, failed.layer) == ("failed", cut.name)
    assert (failed.drawn, failed.needed) == ("3 cuts", "4 cuts")


def test_a_missing_limit_is_reported_as_unchecked():
    technology, module = transistor("generic")
    rail = module.pins_of("d")[0]
    port = (rail.layer, rail.box.center().x, rail.box.center().y)
    found = verdict(technology, module, port, 1.0)
    assert found.verdict == "unchecked"
    assert "metal1" in found.unchecked
    sky, module = transistor("sky130A")
    rail = module.pins_of("d")[0]
    port = (rail.layer, rail.box.center().x, rail.box.center().y)
    assert {"li1", "licon1"} <= set(verdict(sky, module, port, 0.1).unchecked)


def test_without_a_current_the_weakest_place_is_reported():
    technology, module, conductor, _, port = with_wire("sky130A", 300)
    found = judge_currents(module.cell, technology, {"d": NetLoad((port,), (), {"M1": "out of"})})[0]
    assert found.verdict == "unstated"
    assert 0 < found.carries_ma <= conductor.current_ma_um * 0.3
    assert found.box


def test_a_long_cell_between_rows_of_cuts_carries_no_more_than_its_wire():
    """met2 of sky130 carries 2.8 mA/um: 2 um carry 5.6 mA, also along the strip between two rows of cuts.

    Cuts only lie at both ends. Through the cells beside them, many of which touch the strip, more current gets into it
    than it carries along.
    """
    technology = load("sky130A")
    rows, columns = (500, 1300), [*range(300, 9_000, 400), *range(41_000, 49_700, 400)]
    cuts = kdb.Region([kdb.Polygon(kdb.Box(x, y, x + 200, y + 200)) for x in columns for y in rows])
    regions = {"met2": kdb.Region(kdb.Box(0, 0, 50_000, 2000)), "via2": cuts}
    mesh = mesh_of(technology, regions, longest=1000)
    limits, _ = capacities(technology, mesh)
    source, sink = len(mesh.cells), len(mesh.cells) + 1
    edges = [(a.one, a.other, round(limit * 1e6)) for a, limit in zip(mesh.links, limits, strict=True)]
    for column in columns:
        for row in rows:
            end = source if column < 25_000 else sink
            edges.append((end, mesh.at("met2", column + 100, row + 100), 10**9))
    flow, _ = minimum_cut(sink + 1, edges, source, sink)
    assert flow / 1e6 == pytest.approx(5.6)


@pytest.mark.parametrize("turned", [False, True])
def test_cuts_of_a_power_device_share_cells_and_one_narrowed_strap_is_still_found(turned):
    """met1 of sky130 carries 2.8 mA/um: 60 straps of 0.5 um, one of them narrowed to 0.2 um, carry 59 x 1.4 + 0.56 mA.

    Current enters the li1 of each strap from below through a column of cuts, and leaves by a rail across all straps.
    """
    technology = load("sky130A")
    ways = kdb.Trans(kdb.Trans.M45) if turned else kdb.Trans()
    straps = [kdb.Box(x, 0, x + 500, 20_000 if x else 9500) for x in range(0, 60_000, 1000)]
    metal = [*straps, kdb.Box(0, 9500, 200, 20_000), kdb.Box(0, 20_000, 60_000, 40_000)]
    columns = [[kdb.Box(strap.left, y, strap.left + 170, y + 170) for y in range(100, 9000, 360)] for strap in straps]

    def mesh(used):
        regions = {
            "met1": kdb.Region([box.transformed(ways) for box in metal]).merged(),
            "li1": kdb.Region([box.transformed(ways) for box in straps]).merged(),
            "mcon": kdb.Region([cut.transformed(ways) for column in columns for cut in column[:used]]),
        }
        return mesh_of(technology, regions, longest=5000)

    fine, coarse = mesh(16), mesh(25)  # 960 cuts, and 1,500
    assert len(coarse.cells) < len(fine.cells)
    source, sink = len(coarse.cells), len(coarse.cells) + 1
    limits = [1000.0 if limit is None else limit for limit in capacities(technology, coarse)[0]]  # li1 states none
    edges = [(a.one, a.other, round(limit * 1e6)) for a, limit in zip(coarse.links, limits, strict=True)]
    for end, name, points in (
        (source, "li1", [cut.center() for column in columns for cut in column]),
        (sink, "met1", [kdb.Point(x, 39_000) for x in range(100, 60_000, 500)]),
    ):
        edges += [(end, coarse.at(name, place.x, place.y), 10**9) for place in (ways * point for point in points)]
    flow, _ = minimum_cut(sink + 1, edges, source, sink)
    assert flow / 1e6 == pytest.approx(59 * 1.4 + 0.56)


@pytest.mark.parametrize("turned", [False, True])
def test_a_narrow_wire_that_enters_wider_metal_at_a_cut_carries_what_it_does_elsewhere(turned):
    """Metal2 of sg13g2 carries 2 mA/um, or 0.6 mA where it is narrow: a wire of 0.2 um is no weaker at a rail.

    ::

        ==========    rail with a row of cuts, 5 nm from its edge
            |         wire
    """
    technology = load("sg13g2")
    boxes = {"wire": kdb.Box(-100, -5000, 100, 0), "rail": kdb.Box(-1000, 0, 1000, 500)}
    cuts = [kdb.Box(x, 5, x + 190, 195) for x in (-705, -295, 115, 525)]
    ways = kdb.Trans(kdb.Trans.M45) if turned else kdb.Trans()
    regions = {
        "Metal2": kdb.Region([box.transformed(ways) for box in boxes.values()]).merged(),
        "Via1": kdb.Region([cut.transformed(ways) for cut in cuts]),
    }
    mesh = mesh_of(technology, regions, longest=1000)
    limits, _ = capacities(technology, mesh)
    source, sink = len(mesh.cells), len(mesh.cells) + 1
    edges = [(a.one, a.other, round(limit * 1e6)) for a, limit in zip(mesh.links, limits, strict=True)]
    ends = [(source, kdb.Point(0, -4900)), *((sink, cut.center()) for cut in cuts)]
    for end, point in ends:
        place = ways * point
        edges.append((end, mesh.at("Metal2", place.x, place.y), 10**9))
    flow, _ = minimum_cut(sink + 1, edges, source, sink)
    assert flow / 1e6 == pytest.approx(0.6)


@pytest.mark.parametrize("longest", [None, 1000])
def test_cuts_that_reach_beyond_their_metal_cut_it_where_they_lie_on_it(longest):
    technology = load("sky130A")
    regions = {"li1": kdb.Region(kdb.Box(0, 0, 900, 400))}
    mesh = mesh_of(technology, regions, [(600, -100, 800, 100), (250, 300, 450, 600)], longest)
    lefts = {left for _, (left, *_) in mesh.cells}
    assert {0, 250, 600} <= lefts
    assert sum((right - left) * (top - low) for _, (left, low, right, top) in mesh.cells) == 900 * 400
