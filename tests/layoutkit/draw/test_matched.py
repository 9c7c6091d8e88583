"""Pairs, mirrors and groups: centroids measured on the masks, symmetry, connections and cleanliness (S0.5, S0.6)."""

from dataclasses import replace

import klayout.db as kdb
import pytest
from drawn_circuit import channels_of, layers_changed_by

from layoutkit.draw.group import (
    GroupSpec,
    MirrorSpec,
    PairSpec,
    check_ratios,
    draw_group,
    draw_mirror,
    draw_pair,
    drawn_plan,
    group_plans,
    mirror_plan,
)
from layoutkit.draw.mos import MosSize, transistor
from layoutkit.draw.ring import RingStyle
from layoutkit.drc.check import check
from layoutkit.errors import DrcViolationError, GeometryError, LayoutkitError
from layoutkit.extract.connectivity import DrawnLayers, Nets
from layoutkit.technology import load
from thorough import covering


def clean(module, tech):
    report = check(module.layout, module.cell, tech)
    return not report.unchecked and not report.violated


def centroid(channels):
    weights = [(channel.width * channel.length, channel) for channel in channels]
    total = sum(weight for weight, _ in weights)
    return (
        sum(weight * channel.x for weight, channel in weights) / total,
        sum(weight * channel.y for weight, channel in weights) / total,
    )


def by_gate(module, tech):
    found = {}
    for channel in channels_of(module.cell, tech.name):
        found.setdefault(channel.gate, []).append(channel)
    return found


@pytest.fixture
def pair(tech, layout, device):
    """Return a function that draws a differential pair M1 (d1 g1), M2 (d2 g2) on source s."""

    def draw(w_um=4.0, l_um=0.5, *, nf=2, m=1, flavour="nmos", source="s", second=None, **options):
        a = device("M1", w_um, l_um, f"d1 g1 {source} b", nf=nf, m=m, flavour=flavour)
        b = device("M2", second or w_um, l_um, f"d2 g2 {source} b", nf=nf, m=m, flavour=flavour)
        return draw_pair(layout, tech, PairSpec("pair", a, b, **{"arrangement": "ABBA", "dummies": 0, **options}))

    return draw


def test_bars_that_tie_dummies_to_a_rail_keep_the_space_of_wide_metal_between_facing_rows():
    """sg13g2 M1.e: metal wider than 0.3 um keeps 0.22 um; LU.b is the distance to taps, which come later."""
    process = load("sg13g2")
    nets = {"M3": "a a s b", "M4": "c a s b", "M5": "r v a b", "M6": "o v c b"}
    sizes = {"M3": (2, 1.0), "M4": (8, 1.0), "M5": (2, 0.5), "M6": (8, 0.5)}
    devices = [
        transistor(
            process,
            name,
            "nmos",
            MosSize(width * 1e-6, length * 1e-6, int(width / 2)),
            dict(zip("dgsb", nets[name].split(), strict=True)),
        )
        for name, (width, length) in sizes.items()
    ]
    spec = MirrorSpec("mirror", tuple(devices[:2]), tuple(devices[2:]), "BBBAB/BABBB", ring=RingStyle("later"))
    module = draw_mirror(kdb.Layout(), process, spec)
    assert {verdict.rule.id for verdict in check(module.layout, module.cell, process).violated} <= {"LU.b"}


@pytest.mark.parametrize("nets", [("d1 g1 s b", "d2 g2 s b"), ("x y s b", "y x s b"), ("x y b b", "y x b b")])
def test_risers_of_short_channels_lie_over_the_dummies(sky130, nets):
    """Two rows of 0.15 um gates do not share their gate rails; links between these leave the ends to the risers."""
    a, b = (
        transistor(sky130, name, "nmos", MosSize(2e-6, 1.5e-7, 2), dict(zip("dgsb", ends.split(), strict=True)))
        for name, ends in zip(("M1", "M2"), nets, strict=True)
    )
    module = draw_pair(kdb.Layout(), sky130, PairSpec("pair", a, b, ring=RingStyle("later")))
    diffusion = kdb.Region(module.cell.shapes(sky130.layer(module.layout, "active"))).bbox()
    assert module.bbox.width() - diffusion.width() <= 300
    taps = {"LU.2", "LU.3", "difftap.8"}  # come later, with the ring
    assert {verdict.rule.id for verdict in check(module.layout, module.cell, sky130).violated} <= taps


@pytest.mark.parametrize(("dummies", "largest_um2"), [(0, 20), (2, 34)])
def test_a_wired_pair_inside_its_ring_is_small_and_still_equal(sky130, dummies, largest_um2):
    a, b = (
        transistor(sky130, name, "nmos", MosSize(2e-6, 5e-7, 2), dict(zip("dgsb", nets, strict=True)))
        for name, nets in (("M1", ("d1", "g1", "s", "b")), ("M2", ("d2", "g2", "s", "b")))
    )
    module = draw_pair(kdb.Layout(), sky130, PairSpec("pair", a, b, dummies=dummies))
    assert module.bbox.width() * module.bbox.height() * sky130.dbu_um**2 <= largest_um2
    assert (module.centroid_error(), module.figures.junctions, module.figures.stress_spread) == (0, 0, 0)
    assert {(c.gate, c.sides) for c in channels_of(module.cell, "sky130A") if c.gate != "b"} == {
        ("g1", frozenset(("d1", "s"))),
        ("g2", frozenset(("d2", "s"))),
    }
    assert clean(module, sky130)


@pytest.mark.parametrize(
    ("tech", "flavour", "axis", "interdigitate", "fingers", "length_um"),
    covering(
        ["generic", "sky130A"],
        ["nmos", "pmos"],
        ["vertical", "horizontal"],
        [True, False],
        [(1, 1), (2, 1), (2, 2), (4, 1)],
        [0.18, 0.505],
    ),
    indirect=["tech"],
)
def test_abba_centroids_coincide_exactly(pair, tech, flavour, axis, interdigitate, fingers, length_um):  # noqa: PLR0917 - one argument a parameter
    nf, m = fingers
    module = pair(1.0 * nf, length_um, nf=nf, m=m, flavour=flavour, axis=axis, interdigitate=interdigitate)
    gates = by_gate(module, tech)
    assert centroid(gates["g1"]) == centroid(gates["g2"])
    assert module.centroid_error() == 0
    assert clean(module, tech)
    assert {channel.sides for channel in gates["g1"]} == {frozenset(("d1", "s"))}
    assert {channel.sides for channel in gates["g2"]} == {frozenset(("d2", "s"))}
    assert sum(channel.width for channel in gates["g1"]) == nf * m * tech.to_dbu(1.0)
    assert [instance.parent for instance in module.instances] == ["M1", "M2", "M2", "M1"]


@pytest.mark.parametrize("arrangement", ["ABAB", "AABB"])
@pytest.mark.parametrize("source", ["s", "b"])
def test_other_arrangements_are_clean_and_tell_their_error(pair, tech, arrangement, source):
    module = pair(arrangement=arrangement, source=source)
    gates = by_gate(module, tech)
    distance = centroid(gates["g2"])[0] - centroid(gates["g1"])[0]
    assert module.centroid_error() == pytest.approx(distance)
    assert any(f"{tech.to_um(distance):g} um apart: M1, M2" in warning for warning in module.warnings)
    assert clean(module, tech)


@pytest.mark.parametrize("pattern", ["ABB/BAB/BBA", "ABB/BAB/BBA/ABB/BAB"])
def test_rows_that_face_each_other_keep_shared_rails_apart_in_odd_stacks(tech, layout, device, pattern):
    """The distance of rows with shared gate rails is raised twice: for what they need, and for symmetry."""
    units = pattern.count("A"), pattern.count("B")
    one, two = (
        device(f"M{i}", 2.1 * count, 0.3, f"{drain} d1 b b", nf=2 * count, flavour="pmos")
        for i, (count, drain) in enumerate(zip(units, ("d1", "d2"), strict=True), 1)
    )
    module = draw_group(layout, tech, GroupSpec("group", (one, two), pattern, ring=RingStyle("later")))
    gates = [channel for channel in channels_of(module.cell, tech.name) if channel.gate == "d1"]
    for drain, count in zip(("d1", "d2"), units, strict=True):
        assert sum(channel.sides == {drain, "b"} for channel in gates) == 2 * count


@pytest.mark.parametrize("dummies", [0, 2])
def test_an_abba_row_is_its_own_mirror_image(pair, dummies):
    module = pair(dummies=dummies)
    mirror = kdb.Trans(2, True, 2 * module.symmetry_axis_x, 0)
    assert layers_changed_by(mirror, module.cell) == []


TWINS = (("d1", "d2"), ("g2", "g1"))


@pytest.mark.parametrize(("pattern", "process"), [("ABBA", "sky130A"), ("ABBA/BAAB", "generic"), ("AB/BA", "sky130A")])
@pytest.mark.parametrize("ring", ["full", "later"])
def test_twins_have_pins_that_are_mirror_images_and_only_the_cuts_to_them_are_not(pattern, process, ring):
    tech, layout = load(process), kdb.Layout()
    layout.dbu = tech.dbu_um
    size = MosSize(20e-6, 1e-6, 4)
    pair = [transistor(tech, f"M{i}", "nmos", size, {"d": f"d{i}", "g": f"g{i}", "s": "s", "b": "b"}) for i in (1, 2)]
    spec = GroupSpec("group", tuple(pair), pattern, ring=RingStyle(ring))
    plain = draw_group(layout, tech, spec)
    area = plain.bbox.area()
    module = draw_group(layout, tech, replace(spec, twins=TWINS))
    assert module.bbox.area() <= 1.03 * area
    axis = module.bbox.center().x
    for left, right in TWINS:
        (one,), (other,) = (
            [pin for pin in module.pins_of(net) if pin.box.height() > pin.box.width()] for net in (left, right)
        )
        assert one.layer == other.layer
        assert one.box == other.box.transformed(kdb.Trans(kdb.Trans.M90)).moved(2 * axis, 0)
        assert one.box.right < axis
    assert module.symmetry_axis_x == axis
    mirror = kdb.Trans(2, True, 2 * axis, 0)
    index = [conductor.name for conductor in tech.conductors].index(one.layer)
    lowest = 0 if pattern == "AB/BA" else index - 1  # with one device in each half, also the cuts to its own columns
    cuts = {str(layout.get_info(tech.layer(layout, cut.layer))) for cut in tech.cuts[lowest:index]}
    assert set(layers_changed_by(mirror, module.cell)) == cuts
    if ring == "full":
        assert clean(module, tech)
    for channel in channels_of(module.cell, tech.name):
        assert channel.gate == "b" or channel.sides == {"s", channel.gate.replace("g", "d")}


@pytest.mark.parametrize(("pattern", "fingers"), [("A2B2B2A2/B2A2A2B2", 8), ("AB/BA", 4)])
@pytest.mark.parametrize("process", ["sky130A", "gf180mcuD", "sg13g2"])
def test_rails_of_twins_end_at_contacts_and_risers_that_cover_both_devices_equally(process, pattern, fingers):
    """The bounds are those of hand drawings: a rail from its first contact to its last, a riser over a drain."""
    tech, layout = load(process), kdb.Layout()
    layout.dbu = tech.dbu_um
    size = MosSize(fingers * 2e-6, 0.5e-6, fingers)
    pair = [transistor(tech, f"M{i}", "nmos", size, {"d": f"d{i}", "g": f"g{i}", "s": "s", "b": "b"}) for i in (1, 2)]
    spec = GroupSpec("group", tuple(pair), pattern, dummies=1)
    plain = draw_group(layout, tech, spec)
    rail = next(pin.layer for pin in plain.pins_of("d1"))
    module = draw_group(layout, tech, replace(spec, name="twins", twins=(("d1", "d2"),)))
    assert clean(module, tech)
    assert module.bbox.area() <= plain.bbox.area()
    metal = {c.name: kdb.Region(module.cell.begin_shapes_rec(tech.layer(layout, c.layer))) for c in tech.conductors}
    channels = {name: [gate.box for gate in module.gates if gate.device == name] for name in ("M1", "M2")}
    for conductor in (rail, module.pins_of("d1")[0].layer):
        above = {name: (metal[conductor].merged() & kdb.Region(boxes)).area() for name, boxes in channels.items()}
        assert above["M1"] == above["M2"]
    (left,), (right,) = module.pins_of("d1"), module.pins_of("d2")
    assert left.box == right.box.transformed(kdb.Trans(kdb.Trans.M90)).moved(2 * module.bbox.center().x, 0)
    assert left.layer == right.layer != rail
    columns = [gate.box.right for gate in module.gates] + [gate.box.left for gate in module.gates]
    assert min(columns) < left.box.left
    assert right.box.right < max(columns)
    full = kdb.Region(plain.cell.begin_shapes_rec(tech.layer(layout, tech.conductor(rail).layer))).merged()
    drains = full.interacting(kdb.Region([pin.box for net in ("d1", "d2") for pin in plain.pins_of(net)]))
    assert full.area() - metal[rail].merged().area() >= 0.3 * drains.area()
    blocked = kdb.Region([keepout.box for keepout in module.keepouts if keepout.layer == left.layer])
    above_columns = kdb.Region([left.box, right.box]).sized(0, module.bbox.height(), 2)
    assert (blocked & above_columns).is_empty()
    assert (kdb.Region(channels["M1"] + channels["M2"]) - blocked - above_columns).is_empty()
    if process == "sky130A":
        for channel in channels_of(module.cell, process):
            assert channel.gate == "b" or channel.sides == {"s", channel.gate.replace("g", "d")}


@pytest.mark.parametrize(
    ("ends", "dummies"), [("d1 d1 b b/d2 d1 b b", 1), ("d1 d1 b b/d2 d1 b b", 2), ("d1 g1 s b/d2 g2 s b", 2)]
)
@pytest.mark.parametrize("process", ["sky130A", "gf180mcuD", "sg13g2"])
def test_one_finger_of_each_device_in_a_row_has_its_riser_over_the_outer_drain_and_short_rails(process, ends, dummies):
    """As drawn by hand. With risers at the ends, each drain has rails as long as the module beside the other's."""
    tech, layout = load(process), kdb.Layout()
    layout.dbu = tech.dbu_um
    nets = [dict(zip("dgsb", each.split(), strict=True)) for each in ends.split("/")]
    pair = [transistor(tech, f"M{i}", "pmos", MosSize(4e-6, 1e-6, 2), each) for i, each in enumerate(nets, 1)]
    module = draw_group(layout, tech, GroupSpec("pair", tuple(pair), "AB/BA", dummies=dummies, twins=TWINS[::-1]))
    assert clean(module, tech)
    (left,), (right,) = module.pins_of("d1"), module.pins_of("d2")
    channels = kdb.Region([gate.box for gate in module.gates if gate.device]).bbox()
    assert left.box.center().x < channels.left
    assert right.box.center().x > channels.right
    assert left.box.left - module.bbox.left == module.bbox.right - right.box.right
    wiring = DrawnLayers(module.cell, tech).wiring
    metal = Nets(wiring.regions, wiring.joins, layout.dbu)
    conductors = [conductor.name for conductor in tech.conductors]
    rails = metal.shapes(metal.at(right.layer, right.box.center()), conductors[conductors.index(right.layer) - 1])
    longest = max(rail.bbox().width() for rail in rails.merged().each())
    assert longest < 0.6 * module.bbox.width()


@pytest.mark.parametrize("ends", ["d1 g1 s b/d2 g2 s b", "d1 d1 b b/d2 d1 b b"])
@pytest.mark.parametrize("process", ["sky130A", "gf180mcuD", "sg13g2"])
def test_drains_on_their_own_sides_have_short_rails_beside_each_other_and_rows_share_gate_rails(process, ends):
    """In AB/BA each riser lies over a column of its own drain in one row, so that no wire crosses that row."""
    tech, layout = load(process), kdb.Layout()
    layout.dbu = tech.dbu_um
    size = MosSize(8e-6, 0.5e-6, 4)
    nets = [dict(zip("dgsb", each.split(), strict=True)) for each in ends.split("/")]
    pair = [transistor(tech, f"M{i}", "nmos", size, each) for i, each in enumerate(nets, 1)]
    spec = GroupSpec("group", tuple(pair), "AB/BA", dummies=1, twins=TWINS[::-1])
    module = draw_group(layout, tech, spec)
    assert clean(module, tech)
    axis = module.symmetry_axis_x
    assert axis is not None
    rows = {(gate.box.bottom, gate.box.top) for gate in module.gates}
    straps = next(pin.layer for pin in draw_group(layout, tech, replace(spec, name="plain", twins=())).pins_of("d1"))
    metal = kdb.Region(module.cell.begin_shapes_rec(tech.layer(layout, tech.conductor(straps).layer))).merged()
    (left,), (right,) = module.pins_of("d1"), module.pins_of("d2")
    found = []
    for bottom, top in sorted(rows):
        over = [piece.bbox() for piece in metal.each() if bottom <= piece.bbox().bottom and piece.bbox().top <= top]
        short = [box for box in over if box.touches(left.box) != box.touches(right.box)]
        across = [box for box in over if box.touches(left.box) and box.touches(right.box)]
        found.append((len(short), sum(box.width() < module.bbox.width() / 2 for box in across)))
        assert (kdb.Region(short) ^ kdb.Region([kdb.Trans(2, True, 2 * axis, 0) * box for box in short])).is_empty()
    assert sorted(found) == [(0, 2), (2, 0)]
    gates = [pin for pin in module.pins if pin.net in {"g1", "g2"} and pin.box.width() > pin.box.height()]
    assert len({pin.box.bottom for pin in gates}) == len({pin.net for pin in gates})


@pytest.mark.parametrize(("process", "length_um"), [("sky130A", 0.15), ("gf180mcuD", 0.28), ("sg13g2", 0.13)])
def test_each_gate_of_a_pair_has_the_nearer_rail_in_one_of_two_rows_that_share_no_rails(process, length_um):
    tech, layout = load(process), kdb.Layout()
    layout.dbu = tech.dbu_um
    size = MosSize(
        18e-6, length_um * 1e-6, 6
    )  # strips of gates as short as these find no room beside those of the other row
    pair = [transistor(tech, f"M{i}", "nmos", size, {"d": f"d{i}", "g": f"g{i}", "s": "s", "b": "b"}) for i in (1, 2)]
    module = draw_group(layout, tech, GroupSpec("group", tuple(pair), "AB/BA", dummies=1, twins=TWINS[::-1]))
    rails = [pin for pin in module.pins if pin.net in {"g1", "g2"} and pin.box.width() > pin.box.height()]
    assert len({pin.box.bottom for pin in rails}) == 4
    rows = sorted({(gate.box.bottom, gate.box.top) for gate in module.gates})
    middle = (rows[0][1] + rows[1][0]) / 2
    distances = {"g1": [], "g2": []}
    for pin in rails:
        height = (pin.box.bottom + pin.box.top) / 2
        distances[pin.net].append(height - rows[0][1] if height < middle else rows[1][0] - height)
    assert {tuple(sorted(set(each))) for each in distances.values()} == {tuple(sorted(set(distances["g1"])))}
    assert len(set(distances["g1"])) == 2


@pytest.mark.parametrize("nets", ["o1 g1 b b/o2 g2 b b", "o1 g1 s b/o2 g2 s b", "o1 o2 s b/o2 o1 s b"])
@pytest.mark.parametrize("process", ["sky130A", "gf180mcuD", "sg13g2"])
def test_risers_of_twins_join_no_two_nets(process, nets):
    """Gates of short channels have links between facing rows where dummies are missing and ends have no room."""
    tech = load(process)
    ends = [each.split() for each in nets.split("/")]
    twins = tuple({frozenset(pair): pair for pair in zip(*ends, strict=True) if len({*pair}) == 2}.values())
    shortest = {"sky130A": 0.15, "gf180mcuD": 0.28, "sg13g2": 0.13}[process]
    for fingers, length, dummies in ((4, shortest, 0), (20, shortest, 0), (20, shortest, 1), (4, 0.5, 0), (20, 0.5, 1)):
        layout = kdb.Layout()
        layout.dbu = tech.dbu_um
        size = MosSize(fingers * 2.4e-6, length * 1e-6, fingers)
        pair = [transistor(tech, f"M{i}", "pmos", size, dict(zip("dgsb", e, strict=True))) for i, e in enumerate(ends)]
        spec = GroupSpec("twins", tuple(pair), "ABBA/BAAB", dummies=dummies, ring=RingStyle("later"), twins=twins)
        module = draw_group(layout, tech, spec)
        wiring = DrawnLayers(module.cell, tech).wiring
        metal = Nets(wiring.regions, wiring.joins, layout.dbu)
        names = {}
        for pin in module.pins:
            names.setdefault(metal.at(pin.layer, pin.box.center()).cluster_id, set()).add(pin.net)
        assert [sorted(found) for found in names.values() if len(found) > 1] == [], (fingers, length, dummies)


def test_abba_rows_are_their_own_image_upside_down(pair):
    module = pair(nf=4, axis="horizontal")
    mirror = kdb.Trans(0, True, 0, module.bbox.top)
    assert module.mirrored_in_y
    assert layers_changed_by(mirror, module.cell) == []


def test_separate_units_keep_the_spacing(pair, tech):
    for spacing in (500, 1000, 1235):
        module = pair(interdigitate=False, spacing=spacing)
        right = [gate.box.right for gate in module.gates]
        active = kdb.Region(module.cell.begin_shapes_rec(tech.layer(module.layout, "active")))
        across = active & kdb.Region(kdb.Box(right[0], module.gates[0].box.bottom, 10**6, module.gates[0].box.top))
        boxes = sorted((polygon.bbox() for polygon in across.each_merged()), key=lambda box: box.left)
        gap = boxes[1].left - boxes[0].right
        assert spacing <= gap <= spacing + 2 * tech.grid


def test_spacing_one_grid_step_below_the_minimum_is_refused(pair, tech):
    least = tech.dim("active_space")
    assert clean(pair(interdigitate=False, spacing=least), tech)
    with pytest.raises(DrcViolationError, match=r"Spacing 0\.\d+ violates min spacing 0\.\d+"):
        pair(spacing=least - tech.grid)


def test_different_widths_are_drawn_clean_and_warned_about(pair, tech):
    module = pair(4.0, second=6.0)
    gates = by_gate(module, tech)
    assert centroid(gates["g1"]) == centroid(gates["g2"])
    assert any("differ in total width" in warning for warning in module.warnings)
    assert clean(module, tech)


def test_an_odd_finger_that_cannot_be_halved_is_refused_with_the_cure(pair, tech):
    with pytest.raises(GeometryError, match="do not divide into the units of ABBA"):
        pair(tech.to_um(tech.device("nmos").min_w), nf=1)


def test_a_group_whose_inner_rows_lie_too_far_from_taps_gets_fewer_rows(sky130):
    """LU.2: 15 um from any diffusion to the nearest tap; ten rows with the rails of forty drains are higher."""
    many = tuple(
        transistor(sky130, f"M{i}", "nmos", MosSize(4e-6, 0.5e-6, 2), {"d": f"o{i}", "g": "g", "s": "s", "b": "b"})
        for i in range(40)
    )
    spec = GroupSpec("cell", many)
    planned = group_plans(sky130, spec, 1)[0]
    with pytest.raises(GeometryError, match="from the nearest tap"):
        drawn_plan(kdb.Layout(), sky130, spec, planned)
    module = draw_group(kdb.Layout(), sky130, spec)
    assert 1 < len(module.pattern.split("/")) < len(planned.rows)


def test_a_mirror_whose_cascodes_lie_too_far_from_taps_gets_fewer_rows(sky130):
    """LU.2 again: three rows of cascodes of 5.2 um above three of the mirror do not fit between two taps."""

    def made(name, width, length, nf, m, nets):
        size = MosSize(width * 1e-6, length * 1e-6, nf, m)
        return transistor(sky130, name, "pmos", size, dict(zip("dgsb", nets.split(), strict=True)))

    mirror = (made("M0", 3.315, 2, 1, 1, "s0 s0 b b"), made("M1", 3.315, 2, 1, 2, "s1 s0 b b"))
    cascodes = (made("M2", 15.735, 10, 3, 1, "i0 i0 s0 b"), made("M3", 15.735, 10, 3, 2, "i1 i0 s1 b"))
    spec = MirrorSpec("mirror", mirror, cascodes)
    planned = mirror_plan(sky130, spec)
    assert len(planned.rows) > 1
    with pytest.raises(GeometryError, match="from the nearest tap"):
        draw_mirror(kdb.Layout(), sky130, replace(spec, arrangement=planned.pattern))
    module = draw_mirror(kdb.Layout(), sky130, spec)
    assert clean(module, sky130)
    assert module.pattern.count("/") + 1 < len(planned.rows)


def test_types_must_agree(tech, layout, device):
    with pytest.raises(GeometryError, match="Devices must be same type for matching"):
        draw_pair(layout, tech, PairSpec("pair", device("M1", 2, 0.5), device("M2", 2, 0.5, flavour="pmos")))


# ---- mirrors


@pytest.mark.parametrize(
    ("tech", "flavour", "arrangement", "source", "ms"),
    covering(
        ["generic", "sky130A"],
        ["nmos", "pmos"],
        ["interdigitated", "stacked"],
        ["s", "b"],
        [(2, 2), (1, 2), (1, 4), (2, 4, 2)],
    ),
    indirect=["tech"],
)
def test_mirrors_are_clean_centred_and_in_ratio(tech, layout, device, flavour, arrangement, source, ms):  # noqa: PLR0917
    mirror = tuple(
        device(f"M{i}", 1, 0.35, f"{'bias' if i == 0 else f'o{i}'} bias {source} b", m=m, flavour=flavour)
        for i, m in enumerate(ms)
    )
    module = draw_mirror(layout, tech, MirrorSpec("mirror", mirror, arrangement=arrangement, dummies=0))
    channels = channels_of(module.cell, tech.name)
    assert {channel.gate for channel in channels} == {"bias"}
    drains = ["bias", *(f"o{i}" for i in range(1, len(ms)))]
    groups = [[c for c in channels if c.sides == frozenset((drain, source))] for drain in drains]
    assert [sum(channel.width for channel in group) for group in groups] == [m * tech.to_dbu(1.0) for m in ms]
    assert len({channel.width for channel in channels}) == 1
    assert len({centroid(group) for group in groups}) == 1
    assert clean(module, tech)


@pytest.mark.parametrize("m", [1, 2, 4])
def test_a_cascode_mirror_has_its_cascodes_in_the_row_above(tech, layout, device, m):
    mirror = (device("M1", 1, 0.5, "bias bias b b", m=m), device("M2", 1, 0.5, "mid bias b b", m=m))
    cascodes = (device("M3", 2, 0.3, "cas cas bias b", m=m), device("M4", 2, 0.3, "out cas mid b", m=m))
    module = draw_mirror(layout, tech, MirrorSpec("mirror", mirror, cascodes, "AB" if m % 2 else "ABBA", dummies=0))
    assert clean(module, tech)
    rows = {}
    for channel in channels_of(module.cell, tech.name):
        rows.setdefault(channel.y, []).append((channel.gate, channel.sides))
    assert len(rows) == 2
    low, high = (set(rows[y]) for y in sorted(rows))
    assert low == {("bias", frozenset(("bias", "b"))), ("bias", frozenset(("mid", "b")))}
    assert high == {("cas", frozenset(("cas", "bias"))), ("cas", frozenset(("out", "mid")))}


def test_cascodes_that_do_not_split_like_their_mirror_get_a_pattern_of_their_own(tech, layout, device):
    """Two fingers at the minimum width do not divide into the four units of ABBA/BAAB."""
    mirror = (device("M1", 4, 0.5, "bias bias b b", nf=4), device("M2", 4, 0.5, "mid bias b b", nf=4))
    least = 2 * tech.to_um(mirror[0].spec.min_w)
    cascodes = tuple(
        device(f"M{i}", least, 0.3, f"o{i} cas {source} b", nf=2) for i, source in ((3, "bias"), (4, "mid"))
    )
    module = draw_mirror(layout, tech, MirrorSpec("mirror", mirror, cascodes, "ABBA/BAAB"))
    assert clean(module, tech)
    assert any("do not split into the units of the mirror below (ABBA/BAAB)" in text for text in module.warnings)
    gates = by_gate(module, tech)
    assert sorted(sorted(channel.sides) for channel in gates["cas"]) == [["bias", "o3"]] * 2 + [["mid", "o4"]] * 2


def test_ratios_that_the_sizes_contradict_are_told(device):
    mirror = [device("M1", 1, 0.5), device("M2", 1, 0.5, m=2)]
    check_ratios(mirror, {"M1": 1, "M2": 2})
    check_ratios(mirror, {"M1": 2, "M2": 4})
    with pytest.raises(GeometryError, match="says M2 is 3 x M1, but the sizes give 2"):
        check_ratios(mirror, {"M1": 1, "M2": 3})
    with pytest.raises(GeometryError, match="names M9"):
        check_ratios(mirror, {"M9": 1})


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"nets": "o other s b"}, "must have the same gate"),
        ({"nets": "o bias t b"}, "must have the same source"),
        ({"nets": "o bias s c"}, "must have the same bulk net"),
        ({"w_um": 1.5}, "must have the same finger width"),
        ({"l_um": 0.6}, "must have the same channel length"),
        ({"name": "M1"}, "ids must differ"),
    ],
)
def test_devices_that_are_no_mirror_are_refused(tech, layout, device, second, message):
    options = {"name": "M2", "w_um": 1, "l_um": 0.5, "nets": "o bias s b", **second}
    mirror = (device("M1", 1, 0.5, "bias bias s b"), device(**options))
    with pytest.raises(GeometryError, match=message):
        draw_mirror(layout, tech, MirrorSpec("mirror", mirror))


def test_too_many_stacked_units_are_unsupported(tech, layout, device):
    mirror = (device("M1", 1, 0.5, "x x s b"), device("M2", 1, 0.5, "o x s b", m=14))
    with pytest.raises(LayoutkitError, match="use arrangement auto") as raised:
        draw_mirror(layout, tech, MirrorSpec("mirror", mirror, arrangement="stacked"))
    assert raised.value.code == "UNSUPPORTED_OPERATION"


# ---- groups


@pytest.mark.parametrize("ms", [(1, 1), (1, 1, 1), (1, 2, 3), (3, 5), (1, 1, 2, 4)])
def test_any_group_is_clean_connected_and_tells_its_error(tech, layout, device, ms):
    group = tuple(device(f"M{i}", 1, 0.3, f"d{i} g{i} s b", m=m) for i, m in enumerate(ms))
    module = draw_group(layout, tech, GroupSpec("group", group))
    assert clean(module, tech)
    gates = by_gate(module, tech)
    points = [centroid(gates[f"g{i}"]) for i in range(len(ms))]
    spread = max(abs(a[0] - b[0]) for a in points for b in points)
    assert module.centroid_error() == pytest.approx(spread)
    assert spread <= (0 if 1 in ms else 300)  # single fingers of 1 um can be halved; half a pitch is 0.3 um and more
    for i, m in enumerate(ms):
        assert sum(channel.width for channel in gates[f"g{i}"]) == m * tech.to_dbu(1.0)
        assert {channel.sides for channel in gates[f"g{i}"]} == {frozenset((f"d{i}", "s"))}


def test_a_group_that_may_not_be_halved_warns(tech, layout, device):
    group = tuple(device(f"M{i}", 1, 0.3, f"d{i} g{i} s b") for i in range(2))
    module = draw_group(layout, tech, GroupSpec("group", group, split=False))
    assert len(module.gates) == 6  # four dummies
    assert any("um apart" in warning for warning in module.warnings)


@pytest.mark.parametrize(
    ("process", "nets", "size", "arrangement", "dummies"),
    [
        pytest.param(
            "sky130A", "m m b b/o m b b", (0.72e-6, 9.75e-6, 1), "AB", 1, id="pads of two rails in each column"
        ),
        pytest.param("gf180mcuD", "o1 g s1 b/o2 g s2 b", (1e-6, 2e-6, 2), "ABAB", 1, id="risers above each other"),
        pytest.param("gf180mcuD", "o1 g s1 b/o2 g s2 b", (3e-6, 0.5e-6, 6), "auto", 0, id="risers beside pads"),
        pytest.param("sg13g2", "o1 g1 s b/o2 g2 s b", (12e-6, 0.13e-6, 4), "AB/BA", 1, id="risers beside wide ones"),
    ],
)
def test_rails_and_risers_of_twins_keep_their_spaces(process, nets, size, arrangement, dummies):
    tech, layout = load(process), kdb.Layout()
    layout.dbu = tech.dbu_um
    ends = [each.split() for each in nets.split("/")]
    twins = tuple(pair for pair in dict.fromkeys(zip(*ends, strict=True)) if len({*pair}) == 2)
    pair = [
        transistor(tech, f"M{i}", "pmos", MosSize(*size), dict(zip("dgsb", each, strict=True)))
        for i, each in enumerate(ends)
    ]
    assert clean(
        draw_group(layout, tech, GroupSpec("group", tuple(pair), arrangement, dummies=dummies, twins=twins)), tech
    )
