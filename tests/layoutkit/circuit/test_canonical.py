"""The canonical order of a circuit is one for equal circuits; the oracle tries every renaming of the nets."""

import itertools
import random
from collections import Counter
from dataclasses import replace

import pytest

from layoutkit.circuit import Circuit, Device
from layoutkit.circuit.canonical import ColourClasses, ComparedDevice, canonical_order, links_of


def mos(name, d, g, s, w=1e-6):
    return Device(name, "nmos", "n", {"w": w, "l": 1e-6}, {"d": d, "g": g, "s": s, "b": "vss"})


def ring(size, name):
    return [mos(f"{name}{i}", f"{name}n{(i + 1) % size}", f"{name}n{i}", "vss") for i in range(size)]


def between(edges, name):
    return [mos(f"{name}{i}", f"{name}n{one}", "bias", f"{name}n{other}") for i, (one, other) in enumerate(edges)]


def scrambled(circuit, rng):
    """Return the circuit with other names, in another order, some drains and sources exchanged."""
    nets = dict(zip(circuit.nets, (f"n{rng.randrange(10**9)}_{i}" for i in range(len(circuit.nets))), strict=True))
    devices = []
    for device in circuit.devices:
        terminals = {terminal: nets[net] for terminal, net in device.terminals.items()}
        if rng.random() < 0.5:
            terminals["d"], terminals["s"] = terminals["s"], terminals["d"]
        devices.append(replace(device, id=f"{rng.choice('AMZ')}{rng.randrange(10**9)}", terminals=terminals))
    rng.shuffle(devices)
    ports = [nets[port] for port in circuit.ports]
    rng.shuffle(ports)
    return Circuit("t", tuple(devices), tuple(ports))


def form(circuit):
    """Return the circuit with numbers for names, in canonical order."""
    order = canonical_order(circuit)
    number = {net: index for index, net in enumerate(order.nets)}
    cards = []
    for device in map(circuit.device, order.devices):
        d, g, s, b = (number[device.terminals[terminal]] for terminal in "dgsb")
        cards.append((device.w, *sorted((d, s)), g, b))
    return cards, sorted(number[port] for port in circuit.ports)


def cards_of(circuit, names):
    """Return the circuit as a count of cards, with other names for the nets."""
    cards = []
    for device in circuit.devices:
        d, g, s, b = (names[device.terminals[terminal]] for terminal in "dgsb")
        cards.append((device.w, frozenset((d, s)), g, b))
    return Counter(cards), {names[port] for port in circuit.ports}


def same(one, other):
    """Return whether some renaming of the nets makes two circuits the same."""
    goal = cards_of(other, {net: net for net in other.nets})
    if len(one.nets) != len(other.nets):
        return False
    return any(
        cards_of(one, dict(zip(one.nets, names, strict=True))) == goal for names in itertools.permutations(other.nets)
    )


def random_circuit(rng, devices, nets):
    names = [f"x{i}" for i in range(nets)]
    cards = [mos(f"M{i}", *rng.choices(names, k=3), w=rng.choice((1e-6, 2e-6))) for i in range(devices)]
    return Circuit(
        "t", tuple(cards), tuple(net for net in names[:2] if any(net in c.terminals.values() for c in cards))
    )


PENTAGON = [(i, (i + 1) % 5) for i in range(5)]
SPOKES = [(i, i + 5) for i in range(5)]
ALIKE = {  # what refinement alone cannot tell apart
    "rings of three and five stages": ring(3, "a") + ring(5, "b"),
    "Petersen graph and prism": between([*PENTAGON, *SPOKES, *((i + 5, (i + 2) % 5 + 5) for i in range(5))], "a")
    + between([*PENTAGON, *SPOKES, *((i + 5, (i + 1) % 5 + 5) for i in range(5))], "b"),
    "rows and columns": [mos(f"r{i}c{j}", f"r{i}", f"c{j}", "vss") for i in range(5) for j in range(5)],
    "parallel devices": [mos(f"M{i}", "a", "g", "vss") for i in range(9)] + ring(4, "r") + ring(4, "s"),
}


@pytest.mark.parametrize("name", ALIKE)
def test_names_and_order_of_cards_have_no_influence_where_all_look_alike(name):
    circuit, rng = Circuit("t", tuple(ALIKE[name]), ("vss",)), random.Random(1)
    expected = form(circuit)
    for _ in range(8):
        assert form(scrambled(circuit, rng)) == expected


@pytest.mark.parametrize("seed", range(120))
def test_circuits_have_one_form_exactly_if_they_are_isomorphic(seed):
    rng = random.Random(seed)
    one = random_circuit(rng, rng.randint(2, 6), rng.randint(2, 5))
    other = scrambled(one, rng)
    if rng.random() < 0.6:
        device = rng.choice(other.devices)
        nets = {**device.terminals, rng.choice("dgs"): rng.choice(list(other.nets))}
        other = replace(other, devices=tuple(replace(d, terminals=nets) if d is device else d for d in other.devices))
    assert (form(one) == form(other)) is same(one, other)


def test_among_devices_that_an_automorphism_exchanges_the_name_decides():
    pair = [mos("M10", "a", "x", "t"), mos("M9", "b", "y", "t"), mos("M1", "t", "bias", "vss")]
    for cards in (pair, pair[::-1]):
        order = canonical_order(Circuit("t", tuple(cards), ("x", "y", "bias", "vss"))).devices
        assert order.index("M9") < order.index("M10")


def test_a_device_with_two_ends_on_one_net_or_another_size_is_another_one():
    def first(*cards):
        return canonical_order(Circuit("t", cards, ("vss",))).devices[0]

    assert first(mos("A", "x", "x", "vss"), mos("B", "y", "g", "vss")) == first(
        mos("Z", "x", "x", "vss"), mos("B", "y", "g", "vss")
    ).replace("Z", "A")
    assert first(mos("A", "x", "g", "vss", 2e-6), mos("B", "x", "g", "vss")) == "B"
    assert first(mos("A", "x", "g", "vss"), mos("B", "x", "g", "vss", 2e-6)) == "A"


def visits(cells):
    nets = list(dict.fromkeys(net for cell in cells for _, net in cell.ends))
    links = links_of(cells, nets)
    classes = ColourClasses(links, [0 if vertex < len(nets) else 1 for vertex in range(len(links))])
    classes.refine()
    return classes.visits


@pytest.mark.parametrize("shape", ["chain", "array"])
def test_the_work_grows_no_faster_than_the_power_1_2_of_the_devices(shape):
    def cells(size):
        if shape == "chain":
            return [ComparedDevice("n", (("d", i + 1), ("g", i), ("s", -1))) for i in range(size)]
        rows = [ComparedDevice("n", (("d", i), ("g", -2), ("s", -1))) for i in range(size)]
        return [*rows, *(ComparedDevice("n", (("d", size + i), ("g", -3), ("s", i))) for i in range(size))]

    assert visits(cells(4000)) < 10**1.2 * visits(cells(400))
