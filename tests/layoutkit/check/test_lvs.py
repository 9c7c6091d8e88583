"""LVS matches what is right and tells what is wrong: every failure that the issue lists, each with kind and words."""

import pytest
from transistor_sketch import Sketch

from layoutkit.check.extract import extract
from layoutkit.check.lvs import compare
from layoutkit.circuit.model import Circuit, Device
from layoutkit.technology import load

TECHNOLOGIES = ["generic", "sky130A"]
PORTS = ("inp", "inn", "out", "bias", "vdd", "vss")
# A five-transistor OTA: id, kind, w, l [dbu], nets d g s b, fingers
OTA = (
    ("M1", "nmos", 2000, 500, "n1 inp tail vss", 2),
    ("M2", "nmos", 2000, 500, "out inn tail vss", 2),
    ("M3", "pmos", 3000, 500, "n1 n1 vdd vdd", 1),
    ("M4", "pmos", 3000, 500, "out n1 vdd vdd", 1),
    ("M5", "nmos", 1500, 1000, "tail bias vss vss", 4),
)


def device(name, kind, w, length, nets, fingers, *, m=1):
    params = {"w": w * fingers * 1e-9, "l": length * 1e-9, "nf": fingers, "m": m}
    return Device(name, kind, kind, params, dict(zip("dgsb", nets.split(), strict=True)))


def circuit(cards=OTA, ports=PORTS):
    return Circuit("ota", tuple(device(*card) for card in cards), ports)


def drawn(technology, cards=OTA, ports=PORTS, *, texts=False, **renamed):
    """Return a sketch of the cards; ``renamed``: card -> its nets, w or l instead."""
    sketch = Sketch(load(technology))
    for name, kind, w, length, nets, fingers in cards:
        changed = {"w": w, "l": length, "nets": nets, **renamed.get(name, {})}
        sketch.mos(kind, changed["w"], changed["l"], changed["nets"], fingers=fingers, text=name if texts else None)
    for port in ports:
        sketch.label_rails(port)
    return sketch


def lvs(sketch, reference=None, **options):
    return compare(extract(sketch.layout, sketch.cell, sketch.technology), reference or circuit(), **options)


def kinds(result):
    return [mismatch.kind for mismatch in result.mismatches]


def words(result):
    return "\n".join(f"{m.kind}: {m.message} ({m.cause})" for m in result.mismatches)


technologies = pytest.mark.parametrize("technology", TECHNOLOGIES)
with_and_without_texts = pytest.mark.parametrize("texts", [False, True])


@technologies
def test_the_right_layout_matches(technology):
    result = lvs(drawn(technology))
    assert result.matched, words(result)
    assert result.mismatches == ()
    assert result.net_pairs["tail" if "tail" in result.net_pairs else "out"] == "out"
    assert sorted(ref for refs in result.device_pairs.values() for ref in refs) == ["M1", "M2", "M3", "M4", "M5"]
    assert set(result.net_pairs.values()) == {*PORTS, "n1", "tail"}


def test_the_order_of_devices_and_the_sides_of_source_and_drain_do_not_matter():
    turned = [
        (name, kind, w, length, " ".join(nets.split()[i] for i in (2, 1, 0, 3)), fingers)
        for name, kind, w, length, nets, fingers in reversed(OTA)
    ]
    assert lvs(drawn("generic"), circuit(turned)).matched


def test_a_multiplier_parallel_devices_and_fingers_are_the_same_width():
    halves = [card for card in OTA if card[0] != "M5"]
    halves += [(f"M5{part}", "nmos", 1500, 1000, "tail bias vss vss", 2) for part in "ab"]
    assert lvs(drawn("generic"), circuit(halves)).matched
    assert lvs(drawn("generic", halves)).matched
    units = [device(*card) for card in OTA[:4]] + [device("M5", "nmos", 1500, 1000, "tail bias vss vss", 2, m=2)]
    assert lvs(drawn("generic"), Circuit("ota", tuple(units), PORTS)).matched


@technologies
@with_and_without_texts
def test_swapped_drains_of_a_pair_are_found(technology, texts):
    swapped = {"M1": {"nets": "out inp tail vss"}, "M2": {"nets": "n1 inn tail vss"}}
    result = lvs(drawn(technology, texts=texts, **swapped))
    assert not result.matched
    (mismatch,) = result.mismatches
    if texts:  # the device texts say that the gates are right
        assert mismatch.kind == "swapped_nets"
        assert set(mismatch.reference) == {"n1", "out"}
        assert "at M1.d, M2.d" in mismatch.message
    else:
        assert mismatch.kind == "swapped_ports"
        assert set(mismatch.reference) == {"inp", "inn"}
        assert "wires of M1, M2 are crossed at drains or gates" in mismatch.cause


def test_swapped_drains_of_a_bare_pair_are_found_though_the_circuit_is_symmetric():
    pair = OTA[:2]
    ports = ("inp", "inn", "n1", "out", "tail", "vss")
    swapped = {"M1": {"nets": "out inp tail vss"}, "M2": {"nets": "n1 inn tail vss"}}
    assert lvs(drawn("generic", pair, ports), circuit(pair, ports)).matched
    result = lvs(drawn("generic", pair, ports, **swapped), circuit(pair, ports))
    assert not result.matched
    assert kinds(result) == ["swapped_ports"]
    assert set(result.mismatches[0].reference) == {"n1", "out"}
    assert "M1.d" in result.mismatches[0].message
    assert "M2.d" in result.mismatches[0].message


@technologies
@with_and_without_texts
@pytest.mark.parametrize(
    ("card", "nets", "net", "cut_off"),
    [
        ("M5", "cut bias vss vss", "tail", "M5.d"),
        ("M3", "cut n1 vdd vdd", "n1", "M3.d"),
        ("M1", "n1 cut tail vss", "inp", "M1.g"),
        ("M4", "cut n1 vdd vdd", "out", "M4.d"),
        ("M2", "out inn - vss", "tail", "M2.s"),
    ],
)
def test_an_open_is_found(technology, texts, card, nets, net, cut_off):
    result = lvs(drawn(technology, texts=texts, **{card: {"nets": nets}}))
    assert "open" in kinds(result), words(result)
    opened = next(m for m in result.mismatches if m.kind == "open")
    assert opened.reference == (net,)
    assert cut_off in opened.message or net in PORTS


@technologies
@with_and_without_texts
@pytest.mark.parametrize(
    ("one", "other"), [("n1", "out"), ("tail", "n1"), ("inp", "inn"), ("tail", "vss"), ("bias", "vdd"), ("out", "inn")]
)
def test_a_short_is_found(technology, texts, one, other):
    sketch = drawn(technology, texts=texts)
    low, high = sorted((sketch.rails[one], sketch.rails[other]))
    sketch.box(sketch.metal[1], -4900, low - 300, -4600, high)
    for rail in (low, high):
        sketch.square(sketch.technology.cuts[1].layer, -4750, rail - 150)
    result = lvs(sketch)
    assert "short" in kinds(result), words(result)
    short = next(m for m in result.mismatches if m.kind == "short")
    assert set(short.reference) == {one, other}
    assert short.layout[0][1] is not None


@technologies
def test_a_wrong_width_is_found(technology):
    result = lvs(drawn(technology, M2={"w": 2005}))
    assert kinds(result) == ["wrong_parameter"], words(result)
    message = result.mismatches[0].message
    assert message.startswith("W of M2 is 4.01 um in the layout (2 fingers at (")
    assert message.endswith("4 um in the netlist (2 fingers)")


@technologies
def test_a_wrong_length_is_found(technology):
    result = lvs(drawn(technology, M4={"l": 505}))
    assert kinds(result) == ["wrong_parameter"], words(result)
    assert result.mismatches[0].message.startswith("L of M4 is 0.505 um in the layout (1 finger at (")


def test_one_finger_of_wrong_length_is_found():
    sketch = drawn("generic", [card for card in OTA if card[0] != "M5"])
    for length in (1000, 1000, 1005, 1000):
        sketch.mos("nmos", 1500, length, "tail bias vss vss")
    result = lvs(sketch.label_rails("bias"))
    assert kinds(result) == ["wrong_parameter"], words(result)
    assert result.mismatches[0].message.startswith("L of M5 is 1.005 um in the layout (1 finger at (")


@technologies
@with_and_without_texts
@pytest.mark.parametrize("missing", [card[0] for card in OTA])
def test_a_missing_device_is_found(technology, texts, missing):
    result = lvs(drawn(technology, [card for card in OTA if card[0] != missing], texts=texts))
    assert kinds(result) == ["missing_device"], words(result)
    assert result.mismatches[0].reference == (missing,)


@technologies
def test_an_extra_device_is_found(technology):
    sketch = drawn(technology)
    sketch.mos("nmos", 1000, 500, "n1 out vss vss")
    result = lvs(sketch)
    assert kinds(result) == ["extra_device"], words(result)
    assert result.mismatches[0].layout[0][1] is not None


@technologies
def test_a_swapped_port_is_found(technology):
    sketch = drawn(technology, ports=PORTS[2:])
    sketch.label_rails(inp="inn", inn="inp")
    result = lvs(sketch)
    assert not result.matched
    assert kinds(result) == ["swapped_ports"], words(result)
    assert {"inp", "inn"} <= set(result.mismatches[0].reference)


@technologies
@pytest.mark.parametrize(("kind", "bulk"), [("nmos", "vss"), ("pmos", "vdd")])
def test_a_floating_bulk_is_found(technology, kind, bulk):
    untapped = {name: {"nets": " ".join([*nets.split()[:3], "-"])} for name, own, _, _, nets, _ in OTA if own == kind}
    result = lvs(drawn(technology, **untapped))
    assert set(kinds(result)) == {"floating_bulk"}, words(result)
    assert bulk in result.mismatches[0].reference
    assert "no contacted tap" in result.mismatches[0].cause
