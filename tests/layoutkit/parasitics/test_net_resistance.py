"""Resistances agree with closed formulas, and with the mesh that the straps are measured with."""

import klayout.db as kdb
import numpy as np
import pytest

from layoutkit.extract.metal_mesh import ladder, mean_resistance, mesh_of
from layoutkit.parasitics.layout_circuit import FeedPoint, Feeds
from layoutkit.parasitics.net_network import NetReduction
from layoutkit.parasitics.net_resistance import ResistorNetwork, WireExtractor, corrected, resistances
from layoutkit.technology import load

SKY = load("sky130A")
SHEET = {each.name: each.sheet_ohm for each in SKY.conductors}
CUT = {each.name: each.resistance_ohm for each in SKY.cuts}
POLY, CONTACT = SKY.silicon["poly"].sheet_ohm, SKY.silicon["poly"].contact_ohm


def network(shapes, port, terminals, channels=()):
    """Return the network of a net of boxes by layer, with terminals fed at places and channels in equal shares."""
    regions = {layer: kdb.Region([kdb.Box(*box) for box in boxes]).merged() for layer, boxes in shapes.items()}
    crossed = [kdb.Polygon(kdb.Box(*box)) for box in channels]
    feeds = {}
    for name, fed in terminals.items():
        points = {place: 1 / len(fed) for place in fed if isinstance(place, FeedPoint)}
        boxes = {str(crossed[place].bbox()): 1 / len(fed) for place in fed if isinstance(place, int)}
        feeds[name, "t"] = Feeds(1, points, boxes)
    places = [*([] if port is None else [port]), *(place for each in feeds.values() for place in each.points)]
    return NetReduction("n", WireExtractor(SKY).extract(regions, crossed, places), feeds, port).run()


def ohms(*arguments, **more):
    """Return the resistance from the port to each terminal, by its name."""
    return {each.device: each.ohm for each in network(*arguments, **more).terminals}


def met1(x, y):
    return FeedPoint("met1", x, y)


def test_a_straight_wire_has_its_squares():
    found = ohms({"met1": [(0, 0, 10000, 200)]}, met1(0, 100), {"end": [met1(10000, 100)], "mid": [met1(4000, 100)]})
    assert found == pytest.approx({"end": 50 * SHEET["met1"], "mid": 20 * SHEET["met1"]}, rel=1e-3)


@pytest.mark.parametrize(("low", "high"), [("a", "b"), ("b", "a")])
def test_without_a_port_resistances_start_at_the_lowest_terminal_whatever_its_name(low, high):
    found = network({"met1": [(0, 0, 200, 5000)]}, None, {high: [met1(100, 4900)], low: [met1(100, 100)]})
    assert found.start == f"{low}.t"


def test_an_l_has_the_squares_of_its_legs_and_half_a_square_in_its_corner():
    found = ohms({"met1": [(0, 0, 200, 5000), (0, 0, 5000, 200)]}, met1(100, 5000), {"end": [met1(5000, 100)]})
    assert found["end"] == pytest.approx((24 + 24 + 0.559) * SHEET["met1"], rel=0.03)


def test_a_via_stack_has_the_resistance_of_its_cuts_and_two_cuts_half_of_one():
    def stack(count):
        pads = {layer: [(0, 0, 1000, 1000)] for layer in ("li1", "met1", "met2")}
        cuts = [(100 + 500 * n, 400) for n in range(count)]
        pads["mcon"] = [(x, y, x + 170, y + 170) for x, y in cuts]
        pads["via"] = [(x, y, x + 150, y + 150) for x, y in cuts]
        return ohms(pads, FeedPoint("met2", 500, 475), {"li": [FeedPoint("li1", 500, 485)]})["li"]

    assert stack(1) == pytest.approx(CUT["mcon"] + CUT["via"], rel=0.6)  # and the spreading in li1
    narrow = {
        "li1": [(0, 0, 170, 170)],
        "mcon": [(0, 0, 170, 170)],
        "met1": [(0, 0, 170, 170)],
        "via": [(10, 10, 160, 160)],
        "met2": [(0, 0, 170, 170)],
    }
    one = ohms(narrow, FeedPoint("met2", 85, 85), {"li": [FeedPoint("li1", 85, 85)]})["li"]
    assert one == pytest.approx(CUT["mcon"] + CUT["via"], rel=1e-3)
    assert stack(2) < stack(1)


COMB = {"met1": [(0, 0, 20000, 400), *((1000 + 2000 * n, 400, 1200 + 2000 * n, 4400) for n in range(8))]}
TEETH = [met1(1100 + 2000 * n, 4400) for n in range(8)]


def test_the_teeth_of_a_comb_lie_behind_their_part_of_the_rail():
    found = ohms(COMB, met1(0, 200), {str(n): [tooth] for n, tooth in enumerate(TEETH)})
    for n in range(8):
        squares = (1100 + 2000 * n) / 400 + 4000 / 200
        assert found[str(n)] == pytest.approx(squares * SHEET["met1"], rel=0.04)


def test_a_terminal_sees_the_mean_voltage_of_what_feeds_it():
    found = ohms(COMB, met1(0, 200), {"all": TEETH, "one": TEETH[:1]})
    rail = 2000 / 400  # squares between two teeth
    mean = 1100 / 400 + sum(rail * ((8 - k) / 8) ** 2 for k in range(1, 8)) + 4000 / 200 / 8
    assert found["all"] == pytest.approx(mean * SHEET["met1"], rel=0.02)


def test_it_agrees_with_the_mesh_of_the_straps():
    shapes = {layer: [(0, 0, 400, 6000)] for layer in ("li1", "met1")}
    shapes["mcon"] = [(115, y, 285, y + 170) for y in range(200, 6000, 360)]
    contacts = [(115, y + 500, 285, y + 670) for y in range(0, 5000, 700)]
    feeds = [FeedPoint("li1", 200, (box[1] + box[3]) // 2) for box in contacts]
    shapes["met1"].append((0, 6000, 400, 6400))
    found = ohms(shapes, met1(200, 6200), {"s": feeds})["s"]
    regions = {layer: kdb.Region([kdb.Box(*box) for box in boxes]).merged() for layer, boxes in shapes.items()}
    mesh = mesh_of(SKY, regions, contacts)
    grounded = {mesh.at("met1", 200, 6399)}
    cells = [mesh.at("li1", place.x, place.y) for place in feeds]
    expected = mean_resistance(ladder(mesh, SKY), grounded, cells)
    assert found == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(("driven", "part"), [("one end", 1 / 3), ("both ends", 1 / 12), ("through", 1)])
def test_a_gate_has_a_third_of_its_channels_resistance_or_a_twelfth_if_both_ends_are_driven(driven, part):
    channel = kdb.Polygon(kdb.Box(0, 0, 150, 3000))
    poly = kdb.Region([kdb.Box(0, -400, 150, 0), kdb.Box(0, 3000, 150, 3130)])
    wires = WireExtractor(SKY).extract({"poly": poly}, [channel], [])
    below, above = (wires.at[FeedPoint("poly", 75, y)] for y in (0, 3000))
    gate = wires.channels[str(channel.bbox())]
    if driven == "both ends":
        wires.network.add(below, above, 1e6)
    (found,) = wires.network.resistances(below, [above if driven == "through" else gate])
    assert found == pytest.approx(part * 20 * POLY, rel=1e-3)


def test_a_contact_on_poly_counts():
    shapes = {"poly": [(0, 0, 170, 170)], "contact": [(0, 0, 170, 170)], "li1": [(0, 0, 170, 170)]}
    found = ohms(shapes, FeedPoint("li1", 85, 85), {"g": [FeedPoint("poly", 85, 85)]})
    assert found["g"] == pytest.approx(CONTACT, rel=1e-3)


def test_a_terminal_that_no_wire_reaches_has_no_resistance_and_is_named():
    found = network({"met1": [(0, 0, 1000, 200), (3000, 0, 4000, 200)]}, met1(0, 100), {"far": [met1(4000, 100)]})
    assert found.terminals[0].ohm is None
    assert found.cut_off == ("far.t",)


def test_elimination_keeps_all_resistances_between_the_nodes_that_stay():
    rng = np.random.default_rng(7)
    edges = [(int(a), int(b), float(rng.uniform(0.1, 9))) for a, b in rng.integers(0, 40, (160, 2))]
    edges = [(a, b, g) for a, b, g in edges if a != b]
    whole = ResistorNetwork()
    for edge in edges:
        whole.add(*edge)
    kept = [0, 5, 9, 17, 30]
    whole.eliminate(kept)
    assert set(whole.links) == set(kept)
    for start in kept:
        assert whole.resistances(start, kept) == pytest.approx(resistances(edges, start, kept))


def test_a_small_network_is_written_as_it_is_and_a_large_one_with_at_most_one_percent_error():
    few = network(COMB, met1(0, 200), {str(n): [tooth] for n, tooth in enumerate(TEETH)})
    assert few.error <= 0.01
    found = few.between("n", [few.nodes[each.device, "t"] for each in few.terminals])
    assert found == pytest.approx([each.ohm for each in few.terminals], rel=0.01 + 1e-9)
    assert all(ohm > 0 for _, _, ohm in few.resistors)


def test_nodes_that_are_added_are_not_the_start_whatever_its_number():
    """The nodes 0 and 1 are 2 ohm from node 2 in the kept part and 5 ohm in truth, so each gets 3 ohm in front."""
    written = corrected([(0, 2, 0.5), (1, 2, 0.5)], 2, {0: 5.0, 1: 5.0})
    assert set(written.inner) == {3, 4}
    assert all(one != other for one, other, _ in written.resistors)
