"""Units of matched groups in their order and where they belong; joints, rings and taps of single transistors."""

import pytest
from planted_layout import SIDE, Planted, both, pair, severities, wired


def tracks(planted, first=50.0, ports=()):
    for track, net in enumerate(planted.ends):
        planted.comb(net, first + track, port=net in {"vss", "vdd", *ports})
    return planted


def in_a_row(second, third):
    """Return a mirror whose reference, M1, is at 0, and its copies at these places, each beside it."""
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 0.4, "ref ref vss vss")
    for name, x, y in (("M2", second, -3.5), ("M3", third, 3.5)):
        planted.mos(name, "nmos", x, y, 4, 0.4, f"o{name} ref vss vss")
    return tracks(planted, ports=("ref", "oM2", "oM3")).review()


@both("group-apart.order", "should")
def test_the_copies_of_a_reference_at_one_side_of_it(figure, expected):
    assert severities(in_a_row(4, 4 + figure), "group-apart", "at one side") == expected
    assert severities(in_a_row(-4, 4 + figure), "group-apart", "at one side") == set()


@both("group-unlike.edge", "should")
def test_a_mirror_near_the_edge_of_its_well(figure, expected):
    """The well begins so far below the channels; transistors that match nothing may lie there."""

    def review(gate):
        planted = Planted()
        planted.mos("M1", "pmos", 0, 0, 4, 1, "ref ref vdd vdd")
        planted.mos("M2", "pmos", 6, 0, 4, 1, f"out {gate} vdd vdd")
        planted.box("Nwell", -5, -figure, 20, 8)
        return tracks(planted, ports=("ref", "out", "in")).review()

    assert severities(review("ref"), "group-unlike", "edge of a well") == expected
    assert severities(review("in"), "group-unlike", "edge of a well") == set()


@pytest.mark.parametrize("what", ["stage", "diode", "other"])
@both("group-apart.replica", "should")
def test_a_second_stage_or_a_diode_away_from_the_loads_of_its_kind(figure, expected, what):
    """M6 lies so far above M5; a diode on the other rail follows nothing."""
    planted, gate = pair(), "outp" if what == "stage" else "b"
    planted.mos("M4", "pmos", -8, 30, 2, 1, f"outp {gate} vdd vdd", 2)
    planted.mos("M5", "pmos", 9, 30, 2, 1, f"outn {gate} vdd vdd", 2)
    if what == "other":
        planted.mos("M6", "nmos", 9.4, 32 + figure, 2, 1, "z z vss vss", 2)
    else:
        planted.mos("M6", "pmos", 9.4, 32 + figure, 2, 1, f"z {'outn' if what == 'stage' else 'z'} vdd vdd", 2)
    review = wired(planted, vdd=55.0, z=57.0, b=59.0).review()
    assert severities(review, "group-apart", "of the same kind") == (set() if what == "other" else expected)


@pytest.mark.parametrize(
    ("gap", "wide", "fingers", "middle", "expected"),
    [
        (2.0, 4, 1, "n", {"should"}),
        (-SIDE, 4, 1, "n", set()),  # on one diffusion
        (2.0, 3, 1, "n", set()),
        (2.0, 4, 2, "n", set()),
        (2.0, 4, 1, "vdd", set()),
        (11.0, 4, 1, "n", set()),
    ],
)
def test_channels_in_series_on_a_diffusion_each(gap, wide, fingers, middle, expected):
    planted = Planted()
    planted.mos("M1", "nmos", 0, 0, 4, 1, f"{middle} a vss vss")
    planted.mos("M2", "nmos", 1 + 2 * SIDE + gap, 0, wide, 1, f"y b {middle} vss", fingers)
    planted.mos("M3", "pmos", 40, 0, 4, 1, "y c vdd vdd")
    assert severities(tracks(planted, ports=("a", "b", "c", "y")).review(), "room", "share no diffusion") == expected


@both("rings.share", "should")
def test_a_ring_larger_than_what_it_encloses(figure, expected):
    """The outline is 21 x 21 um; M1 and its gate have 9.68 um2, other diffusion the rest."""
    planted = Planted()
    for layer, more in (("COMP", 0.0), ("Pplus", 0.1)):
        planted.box(layer, 0 - more, 0 - more, 21 + more, 21 + more)
        planted.erase(layer, 0.5 + more, 0.5 + more, 20.5 - more, 20.5 - more)
    for layer in ("COMP", "Nplus"):
        planted.box(layer, 5, 2, 19, 2 + (441 * figure - 9.68) / 14)
    planted.mos("M1", "nmos", 1.6, 5, 4, 1, "out in vss vss")
    review = tracks(planted, ports=("out", "in")).review()
    assert severities(review, "rings", "of the area of the 1 rings around them") == expected


@both("rings.taps", "should")
def test_a_channel_far_from_the_next_tap(figure, expected):
    """The only tap ends at x = -1.75; what is off needs none."""
    for gate, found in (("in", expected), ("vss", set())):
        planted = Planted()
        planted.mos("M1", "nmos", 4, 0, 4, 0.5, "y x vss vss")
        planted.mos("M2", "nmos", figure - 1.75 - 1 - SIDE, 10, 4, 1, f"out {gate} vss vss")
        review = tracks(planted, ports=("out", "in", "x", "y")).review()
        assert severities(review, "rings", "from the next tap") == found


@both("flow-order.parts", "should")
@pytest.mark.parametrize("gate", ["in", "other"])
def test_an_inverter_with_a_switch_at_each_source(figure, expected, gate):
    """M1 and M2 are so far apart, on one gate and one drain; with another gate they are no inverter."""
    planted = Planted()
    planted.mos("M0", "nmos", -6, 0, 4, 1, "a en vss vss")
    planted.mos("M1", "nmos", 0, 0, 4, 1, "out in a vss")
    planted.mos("M2", "pmos", 1 + figure, 0, 4, 1, f"out {gate} b vdd")
    planted.mos("M3", "pmos", 20, 0, 4, 1, "b enb vdd vdd")
    review = tracks(planted, ports=("out", "in", "other", "en", "enb")).review()
    assert severities(review, "flow-order", "parts of one function") == (expected if gate == "in" else set())
