"""Which groups that reach across repeated cells are drawn as a group, which stay in their cells, and what is said."""

import random
import re

import pytest

from layoutkit.circuit import read_netlist
from layoutkit.circuit.across_cells import groups_across_cells
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.circuit.repeated import find_repeated

STAGE = """.subckt ota ip in out vb vdd vss
M1 x ip t vss nmos W=4u L=1u
M2 out in t vss nmos W=4u L=1u
M3 x x vdd vdd pmos W=4u L=1u
M4 out x vdd vdd pmos W=4u L=1u
M5 t vb vss vss nmos W=4u L=1u
.ends
"""
REFERENCE = "M0 ib ib vss vss nmos W=4u L=1u\n"


def amplifiers(count):
    """Return amplifiers with one bias and outputs of their own."""
    ports = " ".join(f"a{n} o{n}" for n in range(count))
    calls = "".join(f"X{n} a{n} o{n} o{n} ib vdd vss ota\n" for n in range(count))
    return f"{STAGE}.subckt top ib vdd vss {ports}\n{REFERENCE}{calls}.ends\n"


def converter(count):
    """Return current sources with switches: all currents flow to the nets op and on."""
    cell = """.subckt bit b bb op on vb vss
M1 s vb vss vss nmos W=2u L=1u
M2 op b s vss nmos W=1u L=0.18u
M3 on bb s vss nmos W=1u L=0.18u
.ends
"""
    ports = " ".join(f"b{n} c{n}" for n in range(count))
    calls = "".join(f"X{n} b{n} c{n} op on ib vss bit\n" for n in range(count))
    return f"{cell}.subckt dac ib op on vss {ports}\n{REFERENCE}{calls}.ends\n"


def halves(extra=0):
    """Return a differential amplifier of two equal halves; ``extra`` cascodes make each larger."""
    tower = "".join(f"M1{n} {'out' if n == 0 else f'n{n - 1}'} c{n} n{n} vss nmos W=4u L=0.5u\n" for n in range(extra))
    below = f"n{extra - 1}" if extra else "out"
    ports = "".join(f" c{n}" for n in range(extra))
    return f""".subckt half in out t bp vdd vss{ports}
{tower}M1 {below} in t vss nmos W=4u L=0.5u
M3 out bp vdd vdd pmos W=4u L=0.5u
.ends
.subckt amp ip in op on bp vb vdd vss{ports}
XA ip on t bp vdd vss{ports} half
XB in op t bp vdd vss{ports} half
M0 t vb vss vss nmos W=4u L=0.5u
.ends
"""


RING = """.subckt stage a y vp vn vdd vss
M1 y a p vdd pmos W=2u L=0.2u
M2 y a n vss nmos W=1u L=0.2u
M3 p vp vdd vdd pmos W=4u L=1u
M4 n vn vss vss nmos W=2u L=1u
.ends
.subckt vco o vp vn vdd vss
X1 o n1 vp vn vdd vss stage
X2 n1 n2 vp vn vdd vss stage
X3 n2 o vp vn vdd vss stage
M5 vn vn vss vss nmos W=2u L=1u
M6 vp vn vss vss nmos W=2u L=1u
M7 vp vp vdd vdd pmos W=4u L=1u
.ends
"""
LADDER = """.subckt rung a b c vss
R1 a b 1k
R2 b c 2k
.ends
.subckt ladder a vss b0 b1 b2
X0 a n0 b0 vss rung
X1 n0 n1 b1 vss rung
X2 n1 n2 b2 vss rung
R9 n2 vss 2k
.ends
"""
LATCHES = """.subckt nand a b y vdd vss
M1 y a vdd vdd pmos W=1u L=0.15u
M2 y b vdd vdd pmos W=1u L=0.15u
M3 y a s vss nmos W=1u L=0.15u
M4 s b vss vss nmos W=1u L=0.15u
.ends
.subckt latch s r q qn vdd vss
XA s qn q vdd vss nand
XB r q qn vdd vss nand
.ends
"""


def decided(text):
    """Return the circuit, the decisions and the cells that are shared then: name to size and number of instances."""
    circuit = read_netlist(NetlistText(text))
    decisions = groups_across_cells(circuit, find_repeated(circuit))
    shared = find_repeated(circuit, refused=decisions.dissolved, moved=decisions.moved).shared
    return circuit, decisions, {each.name: (len(each.circuit.devices), len(each.uses)) for each in shared}


def test_a_mirror_takes_its_outputs_out_of_a_few_cells_and_the_rest_stays_shared():
    _, found, cells = decided(amplifiers(2))
    assert set(found.moved) == {"X0.M5", "X1.M5"}
    assert cells == {"ota": (4, 2)}
    (line,) = found.words
    assert "M0, X0.M5, X1.M5" in line
    assert "outside of ota" in line


def test_a_bias_that_is_copied_into_many_cells_stays_in_each():
    _, found, cells = decided(amplifiers(16))
    assert (found.moved, cells) == ({}, {"ota": (5, 16)})
    (line,) = found.words
    assert "ota stays one cell" in line
    assert "a bias copied into 16 equal cells" in line


def test_currents_that_many_cells_add_must_match():
    _, found, cells = decided(converter(16))
    assert set(found.moved) == {f"X{n}.M1" for n in range(16)}
    assert cells == {"bit": (2, 16)}


def test_sources_that_a_port_drives_in_equal_cells_stay_there():
    _, found, cells = decided(amplifiers(2).replace(REFERENCE, ""))
    assert (found.moved, cells) == ({}, {"ota": (5, 2)})


def test_small_halves_of_an_amplifier_are_drawn_device_by_device_and_of_large_ones_the_pair():
    _, found, cells = decided(halves())
    assert (found.dissolved, cells) == ({"XA", "XB"}, {})
    assert "halves of a symmetric amplifier" in found.words[0]
    _, found, cells = decided(halves(30))
    assert not found.dissolved
    assert {"XA.M1", "XB.M1"} <= set(found.moved)
    assert cells["half"][1] == 2


def test_only_the_instances_that_are_halves_are_dissolved():
    text = halves().replace("M0 t vb", "X5 a b c bp vdd vss half\nX6 d e f bp vdd vss half\nM0 t vb")
    _, found, cells = decided(text.replace("amp ip in", "amp a b c d e f ip in"))
    assert (found.dissolved, cells) == ({"XA", "XB"}, {"half": (2, 2)})


def test_stages_of_a_ring_keep_their_current_sources():
    _, found, cells = decided(RING)
    assert (found.moved, cells) == ({}, {"stage": (4, 3)})
    assert any("ring or delay line" in line for line in found.words)


def test_the_resistors_of_a_ratio_leave_their_cells():
    _, found, cells = decided(LADDER)
    assert set(found.moved) == {f"X{n}.R{k}" for n in range(3) for k in (1, 2)}
    assert cells == {}
    assert "resistors in a ratio" in found.words[0]


def test_pairs_of_logic_stay_in_their_cells():
    _, found, cells = decided(LATCHES)
    assert (found.moved, found.dissolved, cells) == ({}, frozenset(), {"nand": (4, 2)})


@pytest.mark.parametrize("text", [amplifiers(3), converter(5), halves(), RING, LADDER])
def test_names_and_the_order_of_cards_decide_nothing(text):
    def shape(text, back):
        _, found, cells = decided(text)
        undone = {re.sub(r"\w+", lambda m: back.get(m[0], m[0]), name) for name in (*found.moved, *found.dissolved)}
        return undone, sorted(cells.values())

    choose = random.Random(4)
    instances = sorted(set(re.findall(r"^X\w+", text, re.MULTILINE)))
    fresh = [f"X{n}q" for n in choose.sample(range(100, 999), len(instances))]
    names = dict(zip(instances, fresh, strict=True))
    head, _, last = text[: text.rindex(".ends")].rpartition(".subckt ")
    first, *cards = last.splitlines()
    choose.shuffle(cards)
    shuffled = "\n".join([f"{head}.subckt {first}", *cards, ".ends\n"])
    renamed = re.sub(r"^X\w+", lambda m: names[m[0]], shuffled, flags=re.MULTILINE)
    assert shape(renamed, {new: old for old, new in names.items()}) == shape(text, {})


def test_a_circuit_put_together_from_cells_without_moved_devices_is_the_flat_one():
    circuit, found, _ = decided(amplifiers(3))
    hierarchy = find_repeated(circuit, moved=found.moved)
    own = {device.id: device for device in circuit.devices}
    inside = set()
    for shared in hierarchy.shared:
        for use in shared.uses:
            for device in shared.circuit.devices:
                flat = own[use.devices[device.id]]
                inside.add(flat.id)
                assert {t: use.nets[net] for t, net in device.terminals.items()} == flat.terminals
    assert inside.isdisjoint(found.moved)
    (cell,) = hierarchy.shared
    assert "t" in cell.circuit.ports  # the net at which a moved device hangs leads out of the cell
