"""Taps as devices: drawn in the size of the netlist, found again, and missed where they are not there."""

import pytest

import layoutkit

SIZES = [(0.78, 0.78, 1), (3.0, 2.0, 2), (60.0, 1.65, 1)]  # um, um, units
INVERTER = "M1 out in vss vss sg13_lv_nmos w=2u l=0.5u\nM2 out in vdd vdd sg13_lv_pmos w=4u l=0.5u\n"
ON_ONE_NET = ("f f", "f f")
ON_TWO_NETS = ("f f", "g g")
ON_A_SUPPLY = ("f f", "vdd vdd")


def netlist(name, w, l, m):  # noqa: E741
    return layoutkit.circuit(f".subckt cell p\nX1 p p {name} w={w}u l={l}u m={m}\n.ends\n")


@pytest.mark.parametrize(("w", "l", "m"), SIZES)
@pytest.mark.parametrize("technology", ["sg13g2", "sg13cmos5l"])
@pytest.mark.parametrize("name", ["ptap1", "ntap1"])
def test_a_drawn_tap_is_clean_and_the_tap_of_the_netlist(technology, name, w, l, m):  # noqa: E741
    drawn = layoutkit.draw("tap", technology, device=name, w=w, l=l, m=m)
    checked = layoutkit.check(drawn, netlist(name, w, l, m))
    assert checked.drc["total_violations"] == 0
    assert checked.lvs["matched"]
    assert len(checked.lvs["dummies"]) == m


@pytest.mark.parametrize(("w", "m"), [(3.0, 3), (3.5, 2)])
def test_a_tap_that_the_layout_lacks_is_reported(w, m):
    drawn = layoutkit.draw("tap", "sg13g2", device="ptap1", w=3.0, l=2.0, m=2)
    (mismatch,) = layoutkit.check(drawn, netlist("ptap1", w, 2.0, m)).lvs["mismatches"]
    assert mismatch["kind"] == "missing_device"
    assert mismatch["message"].startswith("Taps X1 (ptap1, tied to p")


def test_a_tap_without_its_text_is_a_plain_contact_of_its_well():
    drawn = layoutkit.draw("tap", "sg13g2", device="ntap1", w=3.0, l=2.0)
    texts = drawn.technology.layer(drawn.layout, "TEXT")
    drawn.cell.shapes(texts).clear()
    assert not layoutkit.check(drawn, netlist("ntap1", 3.0, 2.0, 1)).lvs["matched"]


def test_a_tap_on_a_net_that_nothing_else_is_on_is_found(tmp_path):
    cards = f".subckt t in out vdd vss\n{INVERTER}R2 f f ntap1 w=2u l=3u\n"
    built = layoutkit.build(f"{cards}.ends\n", "sg13g2", tmp_path)
    assert built.report["lvs"]["mismatches"] == []
    more = layoutkit.circuit(f"{cards}R3 g g ntap1 w=4u l=3u\n.ends\n")
    (mismatch,) = layoutkit.check(built.layout, more).lvs["mismatches"]
    assert mismatch["message"].startswith("Taps R3 (ntap1, tied to g")


@pytest.mark.parametrize(
    ("drawn", "stated"),
    [(ON_ONE_NET, ON_TWO_NETS), (ON_TWO_NETS, ON_ONE_NET), (ON_TWO_NETS, ON_A_SUPPLY), (ON_A_SUPPLY, ON_TWO_NETS)],
)
def test_taps_of_one_size_on_other_nets_are_reported(tmp_path, drawn, stated):
    def netlist(nets):
        cards = "".join(f"R{i} {net} ntap1 w=2u l=3u\n" for i, net in enumerate(nets))
        return f".subckt t in out vdd vss\n{INVERTER}{cards}.ends\n"

    built = layoutkit.build(netlist(drawn), "sg13g2", tmp_path)
    assert built.report["lvs"]["mismatches"] == []
    renamed = [net.replace("f", "x").replace("g", "a") for net in drawn]  # names and order of cards decide nothing
    assert layoutkit.check(built.layout, layoutkit.circuit(netlist(renamed[::-1]))).lvs["matched"]
    found = layoutkit.check(built.layout, layoutkit.circuit(netlist(stated))).lvs["mismatches"]
    assert [mismatch["kind"] for mismatch in found] == ["missing_device"] * len(found) != []
