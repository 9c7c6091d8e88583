"""The verdict against an oracle that tries every renaming of nets, on small circuits and their mutants."""

import itertools
import random
from collections import Counter

import pytest
from transistor_sketch import Sketch

from layoutkit.circuit import Circuit, Device
from layoutkit.circuit.canonical import ComparedDevice
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.lvs.matching import renaming
from layoutkit.technology import load

GENERIC = load("generic")
PORTS = ("a", "b", "vss")
INTERNAL = ("x", "y", "z")
NETS = (*PORTS, *INTERNAL)
WIDTHS, LENGTHS = (1000, 1500), (500, 600)


def random_cards(rng, count):
    """Return transistors (w, l, (d, g, s)); none is a dummy, and all sit on the bulk net vss."""
    cards = []
    while len(cards) < count:
        d, g, s = (rng.choice(NETS) for _ in range(3))
        if d != s and g != "vss":
            cards.append((rng.choice(WIDTHS), rng.choice(LENGTHS), (d, g, s)))
    return cards


def mutated(rng, cards):
    """Return the cards with one change, which may happen to leave the circuit the same."""
    cards = list(cards)
    kind = rng.choice(["same", "net", "width", "length", "drop", "add", "exchange", "rename", "turn"])
    index = rng.randrange(len(cards))
    w, length, nets = cards[index]
    if kind == "net":
        place = rng.randrange(3)
        nets = tuple(rng.choice(NETS) if i == place else net for i, net in enumerate(nets))
        cards[index] = (w, length, nets)
    elif kind == "width":
        cards[index] = (rng.choice(WIDTHS), length, nets)
    elif kind == "length":
        cards[index] = (w, rng.choice(LENGTHS), nets)
    elif kind == "drop":
        del cards[index]
    elif kind == "add":
        cards.append(rng.choice(cards))
    elif kind == "turn":
        cards[index] = (w, length, nets[::-1])
    elif kind in {"exchange", "rename"}:
        pool = NETS if kind == "exchange" else INTERNAL
        one, other = rng.sample(pool, 2)
        swap = {one: other, other: one}
        cards = [(w, length, tuple(swap.get(net, net) for net in nets)) for w, length, nets in cards]
    return [card for card in cards if card[2][0] != card[2][2] and card[2][1] != "vss"] or cards


def folded(cards, names):
    total = Counter()
    for w, length, (d, g, s) in cards:
        total[length, names[g], frozenset((names[d], names[s]))] += w
    return total


def same(one, other):
    """Return whether some renaming of the internal nets makes two lists of cards the same circuit."""
    goal = folded(other, {net: net for net in NETS})
    return any(
        folded(one, {**dict(zip(PORTS, PORTS, strict=True)), **dict(zip(INTERNAL, order, strict=True))}) == goal
        for order in itertools.permutations(INTERNAL)
    )


def drawn(cards):
    sketch = Sketch(GENERIC)
    for w, length, (d, g, s) in cards:
        sketch.mos("nmos", w, length, f"{d} {g} {s} vss")
    sketch.label_rails(*PORTS)
    return sketch


def asked(cards):
    devices = tuple(
        Device(f"M{i}", "nmos", "nmos", {"w": w * 1e-9, "l": length * 1e-9}, {"d": d, "g": g, "s": s, "b": "vss"})
        for i, (w, length, (d, g, s)) in enumerate(cards)
    )
    return Circuit("random", devices, PORTS)


@pytest.mark.parametrize("seed", range(150))
def test_the_verdict_is_that_of_trying_every_renaming(seed):
    rng = random.Random(seed)
    cards = random_cards(rng, rng.randint(1, 6))
    changed = mutated(rng, cards)
    sketch = drawn(changed)
    result = compare(extract(sketch.layout, sketch.cell, GENERIC), asked(cards))
    told = "\n".join(f"{m.kind}: {m.message}" for m in result.mismatches)
    assert result.matched is same(changed, cards), f"{cards}\n{changed}\n{told}"
    assert result.matched is (result.mismatches == ())


def rings(*sizes):
    """Return cells in rings of these sizes; every net of every ring looks like every other."""
    cells, start = [], 0
    for size in sizes:
        cells += [ComparedDevice("t", (("g", start + i), ("e", start + (i + 1) % size))) for i in range(size)]
        start += size
    return cells


def test_symmetric_circuits_are_told_apart_where_colours_alone_cannot():
    def named(cells):
        return [ComparedDevice(cell.label, tuple((role, f"n{net}") for role, net in cell.ends)) for cell in cells]

    assert renaming(rings(6), named(rings(3, 3)), {}) is None
    assert renaming(rings(3, 3), named(rings(3, 3)), {}) is not None
    assert renaming(rings(40), named(rings(40)), {}) is not None
    assert renaming(rings(5), named(rings(5)), {0: "n3", 1: "n4"})[2] == "n0"
    assert renaming(rings(5), named(rings(5)), {0: "n3", 1: "n2"}) is None
