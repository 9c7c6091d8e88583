"""Flat and hierarchical netlists of one circuit have the same supplies, roles and symmetry.

The flattener and the random hierarchies here know cards of transistors, passives and instances, and nothing else.
"""

import random
from pathlib import Path

import pytest

from layoutkit.circuit import find_roles, read_netlist
from layoutkit.circuit.readers.source import NetlistText

LABELLED = sorted(
    path for path in (Path(__file__).parent / "labelled").iterdir() if path.suffix in {".spice", ".cdl", ".sp"}
)
SWITCHES = """* transmission gates between ports, and a pulled-down node
.subckt switches a b y en enb vdd vss
M1 y en a vss nmos w=2u l=0.15u
M2 y enb a vdd pmos w=4u l=0.15u
M3 y enb b vss nmos w=2u l=0.15u
M4 y en b vdd pmos w=4u l=0.15u
M5 n en y vss nmos w=2u l=0.15u
M6 n enb y vdd pmos w=4u l=0.15u
M7 n enb vss vss nmos w=1u l=0.15u
C1 n vss 1p
.ends
"""


def words_of(text):
    """Return the cards of a netlist as lists of words, continuation lines joined."""
    found = []
    for line in text.splitlines():
        if line.startswith("+"):
            found[-1] += line[1:].split()
        elif line.strip() and line[0] != "*":
            found.append(line.split("$")[0].split())
    return found


def nodes_in(card):
    """Return how many words after the name of a card are nets."""
    stated = [word for word in card if "=" not in word]
    known = {"m": 4, "c": 2, "l": 2, "r": 2}.get(card[0][0].lower())
    return len(stated) - 2 if known is None else min(known, len(stated) - 1)


def flattened(text):
    """Return name and ports of the last outer subcircuit, and its cards with those of all instances in it."""
    cells, name, around = {}, "", []
    for words in words_of(text):
        if words[0].lower() == ".subckt":
            name = name if around else words[1]
            around.append(words[1].lower())
            cells[around[-1]] = words[2:], []
        elif words[0].lower() == ".ends":
            around.pop()
        elif words[0][0] != ".":
            cells[around[-1]][1].append(words)

    def cards_in(cell, prefix, outer):
        for card in cells[cell][1]:
            count = nodes_in(card)
            nets = [outer.get(net, f"{prefix}{net}") for net in card[1 : count + 1]]
            inner = card[count + 1].lower() if len(card) > count + 1 else ""
            if inner in cells and card[0][0] in "xX":
                assert len(card) == count + 2, f"{card}: parameters are not understood here"
                yield from cards_in(inner, f"{prefix}{card[0]}_", dict(zip(cells[inner][0], nets, strict=True)))
            else:
                yield [f"{card[0]}_{prefix}" if prefix else card[0], *nets, *card[count + 1 :]]

    ports = cells[name.lower()][0]
    return name, ports, list(cards_in(name.lower(), "", {port: port for port in ports}))


def in_random_cells(name, ports, cards, rng):
    """Return a netlist in which random parts of a circuit are subcircuits with ports of other names, up to two deep."""
    cells = []

    def lines_of(cards, outer, depth):
        pool, parts, lines = list(cards), [], []
        rng.shuffle(pool)
        while pool:
            size = rng.choice((1, 1, 2, 3, 5)) if depth < 2 else 1
            parts.append(pool[:size])
            pool = pool[size:]
        for part in parts:
            if len(part) == 1:
                lines.append(" ".join(part[0]))
                continue
            used = {net for card in part for net in card[1 : nodes_in(card) + 1]}
            others = [card for other in parts if other is not part for card in other]
            elsewhere = {net for card in others for net in card[1 : nodes_in(card) + 1]} | outer
            leads_out = sorted(used & elsewhere)
            rng.shuffle(leads_out)
            inside = {net: f"port{len(cells)}_{i}" for i, net in enumerate(leads_out)}
            renamed = [
                [
                    card[0],
                    *(inside.get(net, net) for net in card[1 : nodes_in(card) + 1]),
                    *card[nodes_in(card) + 1 :],
                ]
                for card in part
            ]
            body = lines_of(renamed, set(inside.values()), depth + 1)
            cell = f"part{len(cells)}"
            cells.append("\n".join([f".subckt {cell} {' '.join(inside.values())}", *body, ".ends"]))
            lines.append(f"X{rng.randrange(10**6)} {' '.join(leads_out)} {cell}")
        return lines

    body = lines_of(cards, set(ports), 0)
    return "\n".join(["* cells", *cells, f".subckt {name} {' '.join(ports)}", *body, ".ends", ""])


def meaning(text, top, own):
    """Return the roles in a netlist as data without an order; ``own`` gives the name of a thing in the flat circuit."""
    circuit = read_netlist(NetlistText(text), top=top)
    roles = find_roles(circuit)

    def names(of):
        return frozenset(own(str(name)) for name in of)

    return {
        "power": names(roles.supplies.power),
        "ground": names(roles.supplies.ground),
        "groups": sorted((group.type, sorted(names(group.devices))) for group in roles.groups),
        "diodes": sorted(
            own(group.properties["reference"])
            for group in roles.groups
            if group.type == "current_mirror" and group.properties["topology"] != "driven"
        ),
        "modules": sorted((module.type, sorted(names(module.devices))) for module in roles.modules),
        "symmetry": {
            (
                frozenset(names(pair) for _, *pair in each.pairs),
                names(each.centred),
                frozenset(map(names, each.net_pairs)),
            )
            for each in roles.symmetry
        },
        "near misses": len(roles.not_matched),
        "ports": {own(port): use for port, use in roles.ports.items()},
        "inputs": names(roles.inputs),
    }, bool(circuit.subcircuits)


def flat_text(name, ports, cards):
    return "\n".join(["* flat", f".subckt {name} {' '.join(ports)}", *map(" ".join, cards), ".ends", ""])


CIRCUITS = {path.stem: path.read_text(encoding="utf-8") for path in LABELLED} | {"switches": SWITCHES}


@pytest.mark.parametrize("circuit", CIRCUITS)
def test_a_circuit_means_the_same_in_random_cells_as_flat(circuit):
    name, ports, cards = flattened(CIRCUITS[circuit])
    expected, _ = meaning(flat_text(name, ports, cards), name, str)
    for seed in range(3):
        text = in_random_cells(name, ports, cards, random.Random(f"{circuit} {seed}"))
        found, has_cells = meaning(text, name, lambda path: path.rpartition(".")[2])
        assert has_cells or len(cards) < 4
        assert found == expected, text


@pytest.mark.parametrize("circuit", [name for name, text in CIRCUITS.items() if text.lower().count(".subckt") > 1])
def test_a_circuit_of_cells_means_the_same_flat(circuit):
    name, ports, cards = flattened(CIRCUITS[circuit])
    flat, _ = meaning(flat_text(name, ports, cards), name, str)

    def own(path):
        *around, last = path.split(".")
        return f"{last}_{'_'.join(around)}_" if around and last[0] in "MXRCDQmxrcdq" else "_".join([*around, last])

    known = {card[0] for card in cards} | {net for card in cards for net in card[1 : nodes_in(card) + 1]}
    found, _ = meaning(
        CIRCUITS[circuit], name, lambda path: own(path) if own(path) in known else path.replace(".", "_")
    )
    assert found == flat


def test_the_comparison_sees_one_other_width():
    name, ports, cards = flattened(CIRCUITS["telescopic"])
    right, _ = meaning(flat_text(name, ports, cards), name, str)
    changed = next(card for card in cards if card[0] in right["groups"][0][1])
    wider = [[*card[:6], "w=17.3u", *card[7:]] if card is changed else card for card in cards]
    wrong, _ = meaning(flat_text(name, ports, wider), name, str)
    assert right != wrong
