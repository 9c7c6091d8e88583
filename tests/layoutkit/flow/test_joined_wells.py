"""Wells of one net that stand too close become one well, on the manufacturing grid."""

import random

import klayout.db as kdb
import pytest

from layoutkit.drc.check import Options, check
from layoutkit.flow.instances import Well
from layoutkit.flow.joined_wells import join_covers, join_wells, joined
from layoutkit.place import Block, Placed
from layoutkit.rectangle import Rectangle
from layoutkit.technology import load
from thorough import processes

REAL = sorted(set(processes()) - {"generic"})
# Wells of a circuit in sg13g2; two of them nearly meet at a corner.
NOTCH = (
    (-13770, 105495, -1530, 110365), (-1530, 105495, 1530, 109065), (1530, 105495, 13770, 110365),
    (-4080, 111185, 4080, 115845),
)  # fmt: skip
WELLS = (
    (0, 11500, 3570, 14360), (-8160, 17430, -5100, 20230), (0, 17430, 3060, 20640), (0, 23360, 3060, 26160),
    (-3570, 23360, 0, 26220), (-8160, 11500, -5100, 14300), (3060, 17430, 9690, 22540), (3570, 11500, 10200, 16610),
    (-5100, 11500, 0, 15970), (-5100, 17430, 0, 21900),
)  # fmt: skip


def off_grid(region, grid):
    points = (point for polygon in region.each() for point in polygon.each_point_hull())
    return [point for point in points if point.x % grid or point.y % grid]


@pytest.mark.parametrize("name", REAL)
def test_joined_wells_are_on_the_grid_and_keep_their_rules(name):
    technology = load(name)
    grid, width = technology.grid, technology.dim("well_width")
    space = max(technology.dim("well_space", spec) for spec in technology.devices.values() if spec.well)
    chance = random.Random(9)
    sets = [WELLS]
    for _ in range(30):
        corners = [(chance.randrange(-4, 4) * 755 * grid // 5, chance.randrange(-4, 4) * 615 * grid) for _ in range(5)]
        sets.append(
            [(x, y, x + chance.randrange(400, 900) * grid, y + chance.randrange(400, 900) * grid) for x, y in corners]
        )
    for boxes in sets:
        drawn = kdb.Region([kdb.Box(*box) for box in boxes]).merged()
        whole = joined(drawn, space, width, grid).merged()
        assert not off_grid(whole, grid), boxes
        assert (drawn - whole).is_empty()
        assert whole.space_check(space, False, kdb.Metrics.Euclidian).is_empty()
        assert whole.width_check(width, False, kdb.Metrics.Euclidian).is_empty()


def test_the_layer_made_of_a_wide_well_keeps_its_space_across_a_notch():
    """sg13g2 makes nBuLay inside wide wells; two parts of one well must not have it closer than 3.2 um (NBL.c)."""
    technology = load("sg13g2")
    blocks = [
        Block(str(number), "pmos", Rectangle(*box), (), {"NWell": Rectangle(*box)}, bulk_net="vdd")
        for number, box in enumerate(NOTCH)
    ]
    placed = {block.name: Placed(block.name, 0, 0, mirrored=False) for block in blocks}
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    cell = layout.create_cell("wells")
    well = technology.layer(layout, "NWell")
    cell.shapes(well).insert(kdb.Region([kdb.Box(*box) for box in NOTCH]))
    join_wells(technology, cell, [(block, placed[block.name]) for block in blocks])
    rules = [rule.id for rule in technology.rules if rule.id.startswith(("NBL.", "NW."))]
    assert check(layout, cell, technology, Options(rule_ids=rules)).summary()["total_violations"] == 0
    assert (kdb.Region(cell.shapes(well)) - kdb.Region(kdb.Box(-13770, 105495, 13770, 115845))).is_empty()


def joined_beside_a_channel(wells, channel):
    """Return the rules that two wells of one net violate before and after they are joined, and the well in the end."""
    technology = load("sg13g2")
    blocks = [Block(str(n), "pmos", box, (), {"NWell": box}, bulk_net="vdd") for n, box in enumerate(wells)]
    blocks.append(Block("n", "nmos", channel, (), {"Activ": channel}, bulk_net="vss"))
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    cell = layout.create_cell("wells")
    well = cell.shapes(technology.layer(layout, "NWell"))
    for box in wells:
        well.insert(kdb.Box(*box))
    rules = [rule.id for rule in technology.rules if rule.id.startswith(("NBL.", "NW."))]

    def violated():
        violations = check(layout, cell, technology, Options(rule_ids=rules)).summary()["violations"]
        return {each["rule_id"] for each in violations}

    before = violated()
    join_wells(technology, cell, [(block, Placed(block.name, 0, 0)) for block in blocks])
    return before, violated(), kdb.Region(well)


def test_wide_wells_that_overlap_at_a_corner_are_joined_by_a_wide_well():
    """nBuLay inside both ends 1.31 um apart (NBL.b: 1.5); an n channel leaves room at one side of the corner only."""
    wells = [Rectangle(-4710, 33355, 4710, 39465), Rectangle(3425, 28355, 10160, 34255)]
    before, after, well = joined_beside_a_channel(wells, Rectangle(-2675, 19165, 2675, 32735))
    assert "NBL.b" in before
    assert after == set()
    assert (well & kdb.Region(kdb.Box(-2675, 19165, 2675, 32735))).is_empty()


def test_the_layer_made_of_one_well_may_be_near_itself_where_the_gap_cannot_be_filled():
    """A tall well and a wide one join at a corner; an n channel lies in the corner, where nBuLay is 2.41 um apart."""
    wells = [Rectangle(-12860, 7010, -7200, 15915), Rectangle(-6790, 13875, 6790, 17860)]
    before, after, _ = joined_beside_a_channel(wells, Rectangle(-6140, 6700, 6140, 12845))
    assert before == {"NBL.c", "NW.b", "NW.b1"}  # 0.41 um apart
    assert after == set()


def test_no_well_grows_over_what_lies_between_two_of_them():
    """The gap of 4 um is filled for nBuLay (NBL.c) only where it is empty; an n channel there would lie in the well."""
    technology = load("sg13g2")
    wells = [Rectangle(0, 0, 6000, 20000), Rectangle(10000, 0, 16000, 20000)]
    blocks = [Block(str(n), "pmos", box, (), {"NWell": box}, bulk_net="vdd") for n, box in enumerate(wells)]
    between = Rectangle(7500, 5000, 8500, 15000)
    for inside in ([], [Block("n", "nmos", between, (), {"Activ": between}, bulk_net="vss")]):
        layout = kdb.Layout()
        layout.dbu = technology.dbu_um
        cell = layout.create_cell("wells")
        join_wells(technology, cell, [(block, Placed(block.name, 0, 0)) for block in (*blocks, *inside)])
        filled = kdb.Region(cell.shapes(technology.layer(layout, "NWell")))
        assert filled.is_empty() == bool(inside)
        assert (filled & kdb.Region(kdb.Box(*between).enlarged(310, 310))).is_empty() or not inside


def test_no_well_grows_over_diffusion_inside_of_an_instance():
    """Two instances one above the other: the n channel of the lower one lies between their n-wells."""
    technology = load("sg13g2")
    channel = kdb.Box(1000, 5000, 4000, 7000)
    for drawn in (True, False):
        layout = kdb.Layout()
        layout.dbu = technology.dbu_um
        cell, shared = layout.create_cell("wells"), layout.create_cell("inverter")
        if drawn:
            shared.shapes(technology.layer(layout, "Activ")).insert(channel)
        wells = []
        for place in (kdb.Trans(), kdb.Trans(0, 8800)):
            cell.insert(kdb.CellInstArray(shared.cell_index(), place))
            wells.append(Well("NWell", "vdd", (), kdb.Region(kdb.Box(0, 0, 5000, 3600)).transformed(place)))
        join_wells(technology, cell, [], wells)
        filled = kdb.Region(cell.shapes(technology.layer(layout, "NWell")))
        assert (filled & kdb.Region(channel.enlarged(310, 310))).is_empty() == drawn


def test_wells_that_only_a_narrow_bridge_could_join_stay_apart():
    """The corners of two wells of 2 um distance overlap by 0.02 um; diffusion stands beside the gap on both sides."""
    technology = load("sky130A")
    boxes = [kdb.Box(0, 0, 4600, 4000), kdb.Box(4580, 6000, 12000, 10000)]
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    cell = layout.create_cell("wells")
    for channel in (kdb.Box(5065, 0, 12000, 3965), kdb.Box(0, 6035, 4115, 10000)):
        cell.shapes(technology.layer(layout, technology.resolve("active"))).insert(channel)
    well = technology.layer(layout, "nwell")
    cell.shapes(well).insert(kdb.Region(boxes))
    join_wells(technology, cell, [], [Well("nwell", "vdd", (), kdb.Region(box)) for box in boxes])
    found = check(layout, cell, technology, Options(rule_ids=["nwell.1", "nwell.2a"])).summary()
    assert found["violations"] == []


@pytest.mark.parametrize("count", [1, 2])
def test_what_cannot_fill_a_gap_does_not_make_it_smaller_wherever_else_there_is_one(count):
    """Rings of substrate taps stand in two quarters around the corners of three wells, at each of several places."""
    technology = load("sky130A")
    corners = [(6235, 3795, 8345, 8580), (8345, 3795, 8665, 8580), (8665, 0, 13865, 8580), (555, 9970, 5755, 19505)]
    taps = [(735, 9165, 5575, 9415), (5325, 1285, 5575, 9415), (6360, 9185, 13600, 9435), (6360, 9185, 6610, 19380)]
    places = [kdb.Trans(15590 * number, 0) for number in range(count)]
    boxes = [place * kdb.Box(*corner) for place in places for corner in corners]
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    cell = layout.create_cell("wells")
    for place in places:
        for tap in taps:
            cell.shapes(technology.layer(layout, technology.resolve("tap"))).insert(place * kdb.Box(*tap))
    cell.shapes(technology.layer(layout, "nwell")).insert(kdb.Region(boxes))
    join_wells(technology, cell, [], [Well("nwell", "vdd", (), kdb.Region(box)) for box in boxes])
    found = check(layout, cell, technology, Options(rule_ids=["nwell.1", "nwell.2a"])).summary()
    assert found["violations"] == []


def test_a_gap_that_can_be_filled_only_up_to_a_foreign_corner_is_filled_so_far():
    """Two wells beside a third; a ring of substrate taps ends at the corner where all three nearly meet."""
    technology = load("sky130A")
    boxes = [kdb.Box(-12330, 0, 12330, 18300), kdb.Box(12600, 0, 30730, 15380), kdb.Box(13360, 19900, 35130, 38540)]
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    cell = layout.create_cell("wells")
    tap = technology.layer(layout, technology.resolve("tap"))
    cell.shapes(tap).insert(kdb.Box(-12805, 18855, 12805, 42665))
    cell.shapes(technology.layer(layout, "nwell")).insert(kdb.Region(boxes))
    join_wells(technology, cell, [], [Well("nwell", "vdd", (), kdb.Region(box)) for box in boxes])
    found = check(layout, cell, technology, Options(rule_ids=["nwell.1", "nwell.2a"])).summary()
    assert found["violations"] == []


@pytest.mark.parametrize("room", [860, 855])
def test_wells_that_nearly_meet_at_a_corner_are_joined_around_what_lies_beside_it(room):
    """n channels stand beside the gap: a way of 0.86 um between them can be a well (NW.1a), one of 0.855 cannot.

    Everything keeps 0.6 um to an n well (DF.16_5V).
    """
    technology = load("gf180mcuD")
    wells = [Rectangle(-10000, -8000, 0, 0), Rectangle(600, 600, 10000, 8000)]
    channels = [Rectangle(760, -8000, 10000, -160), Rectangle(-10000, 760, -440 - room, 8000)]
    blocks = [Block(str(n), "pmos", box, (), {"Nwell": box}, bulk_net="vdd") for n, box in enumerate(wells)]
    blocks += [Block(f"n{n}", "nmos", box, (), {"COMP": box}, bulk_net="vss") for n, box in enumerate(channels)]
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    cell = layout.create_cell("wells")
    well, comp = (technology.layer(layout, name) for name in ("Nwell", "COMP"))
    cell.shapes(well).insert(kdb.Region([kdb.Box(*box) for box in wells]))
    cell.shapes(comp).insert(kdb.Region([kdb.Box(*box) for box in channels]))
    cell.shapes(technology.layer(layout, "Nplus")).insert(kdb.Region([kdb.Box(*box) for box in channels]))
    join_wells(technology, cell, [(block, Placed(block.name, 0, 0)) for block in blocks])
    found = check(layout, cell, technology, Options(rule_ids=["NW.1a", "NW.2a_3.3V", "NW.2b_3.3V"])).summary()[
        "violations"
    ]
    drawn = kdb.Region(cell.shapes(well))
    assert not off_grid(drawn.merged(), technology.grid)
    assert (drawn & kdb.Region(cell.shapes(comp)).sized(600)).is_empty()
    assert {each["rule_id"] for each in found} == ({"NW.2b_3.3V"} if room < 860 else set())


@pytest.mark.parametrize("thin", [False, True])
def test_thick_oxide_over_a_filling_is_joined_with_that_of_others_beside_it(thin):
    """A filling between two thick-oxide wells ends 0.28 um beside the oxide of an n channel (TGO.e: 0.86).

    A thin-oxide channel in that gap keeps the oxide away from itself: the gap stays, and is reported.
    """
    technology = load("sg13g2")
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    cell, below = layout.create_cell("wells"), layout.create_cell("below")
    cell.insert(kdb.CellInstArray(below.cell_index(), kdb.Trans()))
    wells = [kdb.Box(-21620, 0, -6260, 11400), kdb.Box(-5680, 12290, 5680, 18310)]
    filling = [kdb.Box(-7555, 11400, -5680, 12600), kdb.Box(-6260, 10275, -5680, 13415)]
    for where, layer, boxes in (
        (below, "NWell", wells), (below, "ThickGateOx", [*wells, kdb.Box(-5400, 0, 5400, 11430)]),
        (cell, "NWell", filling), (cell, "ThickGateOx", filling),
    ):  # fmt: skip
        where.shapes(technology.layer(layout, layer)).insert(kdb.Region(boxes))
    if thin:
        below.shapes(technology.layer(layout, "Activ")).insert(kdb.Box(-5620, 8000, -5460, 8160))
    assert check(layout, cell, technology, Options(rule_ids=["TGO.e"])).total_violations
    join_covers(technology, cell)
    report = check(layout, cell, technology, Options(rule_ids=["TGO.e", "TGO.f", "Grid"]))
    assert bool(report.total_violations) == thin
