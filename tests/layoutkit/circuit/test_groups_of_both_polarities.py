"""Groups of a circuit and of its complement: NMOS for PMOS, NPN for PNP, power for ground.

All groups of a circuit are stated. Neither the order of cards nor that of drain and source changes them.
"""

import random
import re

import pytest

from layoutkit.circuit import find_roles, read_netlist
from layoutkit.circuit.readers.source import NetlistText

PORTS = r"vmr|vb[12]|sub|vcas|tail|lo[pn]|o[pn]|ina|inb|vdd|vss|in[pn]?|bias|out|dump|vb|ck|en|row|[ef]\d"
COMPLEMENT = {"nch": "pch", "pch": "nch", "npn": "pnp", "pnp": "npn", "vdd": "vss", "vss": "vdd"}

COMPARATOR = """
M9 a mid vss vss nch w=2u l=1u
M12 b in vss vss nch w=2u l=1u
M8 c ck a vss nch w=2u l=0.2u
M11 d ck b vss nch w=2u l=0.2u
M7 on op c vss nch w=2u l=0.2u
M10 op on d vss nch w=2u l=0.2u
M2 on op vdd vdd pch w=4u l=0.2u
M3 op on vdd vdd pch w=4u l=0.2u
M1 on ck vdd vdd pch w=4u l=0.2u
M6 op ck vdd vdd pch w=4u l=0.2u
"""
OF_COMPARATOR = {
    "symmetric_pair M12 M9",
    "switch_pair M11 M8",
    "cross_coupled_pair M10 M7",
    "cross_coupled_pair M2 M3",
    "load_pair M1 M6",
}
CELL = "M{0} s{0} vb vss vss nch w=1u l=0.5u\nMS{0} out {1} s{0} vss nch w=1u l=0.5u\n"
STEERED = CELL + "MT{0} dump {2} s{0} vss nch w=1u l=0.5u\n"
GATE = """
MP{0} g{0} e{0} vdd vdd pch w=1u l=0.2u
MQ{0} g{0} row vdd vdd pch w=1u l=0.2u
MN{0} g{0} e{0} h{0} vss nch w=1u l=0.2u
MO{0} h{0} row vss vss nch w=1u l=0.2u
"""
SOURCES = "current_mirror M0 M1 M2 M3"

HALVES = """
Q1 c1 inp e1 npn m=3
Q2 c2 inn e2 npn m=3
"""
LOADS = "R8 vdd op rpoly w=1u l=9u\nR9 vdd on rpoly w=1u l=9u\n"
CASCODES = "Q3 op vcas c1 npn m=3\nQ4 on vcas c2 npn m=3\n" + LOADS
DEGENERATED = "R1 e1 t rpoly w=5u l=1u\nR2 e2 t rpoly w=5u l=1u\nM0 t bias vss vss nch w=8u l=1u\n"
OF_CASCODED = {"differential_pair Q1 Q2", "cascode_pair Q3 Q4", "resistor_pair R8 R9"}

PTAT = """
M2 a a vb2 vss nch w=3u l=1u m=6
M1 b a vmr vss nch w=3u l=1u m=12
M3 b b vdd vdd pch w=1u l=4u m=2
M4 a b vdd vdd pch w=1u l=4u m=1
Q2 vss vss vb2 pnp m=1
Q1 vss vss vb1 pnp m=8
R1 vmr vb1 rpoly w=1u l=4u
"""
OF_PTAT = {"current_mirror M1 M2", "bipolar_array Q1 Q2"}
BRANCH = "M5 out b vdd vdd pch w=1u l=4u m=3\n"
STRING = "R2 {0} x2 rpoly w=1u l=4u\n" + "".join(f"R{i} x{i - 1} x{i} rpoly w=1u l=4u\n" for i in range(3, 10))
STRING += "R10 x9 {1} rpoly w=1u l=4u\n"
BARS = " ".join(sorted(f"R{i}" for i in range(2, 11)))

COMPARATOR_ON_INPUT = """
M1{0} a{0} in vss vss nch w=1u l=0.2u
M2{0} b{0} e{0} vss vss nch w=1u l=0.2u
M3{0} a{0} b{0} vss vss nch w=4u l=0.2u
M4{0} b{0} a{0} vss vss nch w=4u l=0.2u
M5{0} c{0} ck a{0} vss nch w=2u l=0.2u
M6{0} f{0} ck b{0} vss nch w=2u l=0.2u
M7{0} c{0} f{0} vdd vdd pch w=4u l=0.2u
M8{0} f{0} c{0} vdd vdd pch w=4u l=0.2u
"""
OF_COMPARATOR_ON_INPUT = (
    ("symmetric_pair", 1, 2),
    ("cross_coupled_pair", 3, 4),
    ("cascode_pair", 5, 6),
    ("cross_coupled_pair", 7, 8),
)
NAND_LATCH = """
M1p{0} x{0} y{0} vdd vdd pch w=2u l=0.2u
M1q{0} y{0} x{0} vdd vdd pch w=2u l=0.2u
M2p{0} x{0} y{0} s{0} vss nch w=2u l=0.2u
M2q{0} y{0} x{0} r{0} vss nch w=2u l=0.2u
M3p{0} x{0} in vdd vdd pch w=2u l=0.2u
M3q{0} y{0} e{0} vdd vdd pch w=2u l=0.2u
M4p{0} s{0} in vss vss nch w=2u l=0.2u
M4q{0} r{0} e{0} vss vss nch w=2u l=0.2u
"""

STAGES = """
M1 on inp t vss nch w=4u l=0.2u
M2 op inn t vss nch w=4u l=0.2u
M3 t vb vss vss nch w=8u l=0.5u
R1 vdd on 2k
R2 vdd op 2k
M4 x vdd u vss nch w=4u l=0.2u
M5 u vb vss vss nch w=4u l=0.5u
R3 vdd x 4k
M8 y y vdd vdd pch w=2u l=0.5u
M9 vb y vdd vdd pch w=2u l=0.5u
M10 w bias vss vss nch w=2u l=1u
"""
OF_STAGES = {"differential_pair M1 M2", "current_mirror M3 M5", "current_mirror M8 M9"}

REGULATED = """
M1{0} g{0} e1 t{0} vss nch w=8u l=1u
M2{0} h{0} {1} t{0} vss nch w=8u l=1u
M3{0} g{0} h{0} vdd vdd pch w=4u l=1u
M4{0} h{0} h{0} vdd vdd pch w=4u l=1u
M5{0} t{0} bias vss vss nch w=4u l=1u
"""

CASES = {
    "strings of one bar that two amplifiers hold on one junction": (
        REGULATED.format("a", "x")
        + REGULATED.format("b", "y")
        + """
        M6 x gb vdd vdd pch w=9u l=1u
        M7 e1 gb vdd vdd pch w=9u l=1u
        M8 y ga vdd vdd pch w=7u l=1u
        Q1 vss vss e1 pnp m=1
        Q2 vss vss e2 pnp m=8
        R1 x e2 rpoly w=1u l=9u
        R2 y z rpoly w=1u l=9u
        R3 z vss rpoly w=1u l=9u
        """,
        {
            "differential_pair M1a M2a",
            "differential_pair M1b M2b",
            "current_mirror M3a M4a",
            "current_mirror M3b M4b",
            "current_mirror M5a M5b",
            "load_pair M6 M7",
            "bipolar_array Q1 Q2",
            "resistor_ratio R1 R2 R3",
        },
    ),
    "a pair whose gates hold two junctions equal, with ports on these": (
        PTAT,
        {*OF_PTAT, "current_mirror M3 M4"},
    ),
    "equal halves of a pair whose gates hold two junctions equal": (
        PTAT.replace("m=12", "m=6").replace("m=2\nM4", "m=1\nM4"),
        {*OF_PTAT, "current_mirror M3 M4"},
    ),
    "a string from a third branch to the junction below a diode": (
        (PTAT + BRANCH + STRING.format("e2", "out")).replace("vb", "e").replace("vmr", "f"),
        {*OF_PTAT, "current_mirror M3 M4 M5", "resistor_ratio R1 R10 " + BARS.removeprefix("R10 ")},
    ),
    "strings of one bar on two junctions that an amplifier holds equal": (
        """
        Q1 vss vss e1 pnp m=8
        Q2 vss vss e2 pnp m=1
        M5 out g vdd vdd pch w=9u l=1u
        M1 g e2 tail vss nch w=8u l=1u
        M2 h f tail vss nch w=8u l=1u
        R1 e1 f rpoly w=1u l=4u
        R11 f out rpoly w=1u l=4u
        R12 vdd g rpoly w=9u l=7u
        R13 vdd h rpoly w=9u l=7u
        """
        + STRING.format("e2", "out"),
        {
            "differential_pair M1 M2",
            "resistor_pair R12 R13",
            "bipolar_array Q1 Q2",
            "resistor_ratio " + " ".join(sorted(["R1", "R11", *BARS.split()])),
        },
    ),
    "a bipolar pair with cascodes over a channel": (
        HALVES.replace("e1", "t").replace("e2", "t") + CASCODES + "M0 t bias vss vss nch w=8u l=1u\n",
        OF_CASCODED,
    ),
    "a bipolar pair with a resistor in each emitter": (
        HALVES + CASCODES + DEGENERATED,
        {*OF_CASCODED, "resistor_pair R1 R2"},
    ),
    "a bipolar pair with a resistor between the emitters": (
        HALVES
        + CASCODES
        + "R1 e1 e2 rpoly w=5u l=1u\nQ5 e1 bias vss npn m=2\nQ6 e2 bias vss npn m=2\nQ7 bias bias vss npn m=2\n",
        {*OF_CASCODED, "bipolar_array Q5 Q6 Q7"},
    ),
    "two bipolar pairs on the same two inputs": (
        (HALVES + CASCODES + DEGENERATED)
        + "Q5 d1 inp f1 npn m=3\nQ6 d2 inn f2 npn m=3\nQ7 op vcas d1 npn m=3\nQ8 on vcas d2 npn m=3\n"
        + "R3 f1 u rpoly w=5u l=1u\nR4 f2 u rpoly w=5u l=1u\nM1 u bias2 vss vss nch w=4u l=1u\n",
        {
            *OF_CASCODED,
            "differential_pair Q5 Q6",
            "cascode_pair Q7 Q8",
            "resistor_pair R1 R2",
            "resistor_pair R3 R4",
        },
    ),
    "bipolar cascodes on a pair of channels": (
        CASCODES
        + "M1 c1 inp t vss nch w=8u l=0.2u\nM2 c2 inn t vss nch w=8u l=0.2u\nM0 t bias vss vss nch w=8u l=1u\n",
        {"differential_pair M1 M2", "cascode_pair Q3 Q4", "resistor_pair R8 R9"},
    ),
    "two crossed bipolar pairs on the outputs of one": (
        HALVES.replace("e1", "tail").replace("e2", "tail")
        + LOADS
        + "Q3 op lop c1 npn m=2\nQ4 on lon c1 npn m=2\nQ5 op lon c2 npn m=2\nQ6 on lop c2 npn m=2\n",
        {"differential_pair Q1 Q2", "differential_pair Q3 Q4", "differential_pair Q5 Q6", "resistor_pair R8 R9"},
    ),
    "emitter followers behind a pair": (
        HALVES.replace("e1", "tail").replace("e2", "tail").replace("c1", "x").replace("c2", "y")
        + LOADS.replace("op", "x").replace("on", "y")
        + "Q3 vdd x op npn m=2\nQ4 vdd y on npn m=2\nM1 op bias vss vss nch w=4u l=1u\n"
        + "M2 on bias vss vss nch w=4u l=1u\nM3 bias bias vss vss nch w=4u l=1u\n",
        {"differential_pair Q1 Q2", "symmetric_pair Q3 Q4", "resistor_pair R8 R9", "current_mirror M1 M2 M3"},
    ),
    "a bipolar mirror with a resistor in each emitter": (
        "Q1 bias bias e1 npn m=1\nQ2 out bias e2 npn m=4\nR1 e1 vss rpoly w=5u l=4u\nR2 e2 vss rpoly w=5u l=1u\n",
        {"bipolar_array Q1 Q2", "resistor_ratio R1 R2"},
    ),
    "an input on the net of a diode of another length": (
        COMPARATOR + "MD mid mid vss vss nch w=2.5u l=1.5u\nMP mid mid vdd vdd pch w=10u l=1.5u\n",
        OF_COMPARATOR,
    ),
    "an input on the net of a diode of its own length, but another width": (
        COMPARATOR.replace("l=0.2u", "l=0.3u") + "MD mid mid vss vss nch w=2u l=3u\nR1 vdd mid 90k\n",
        OF_COMPARATOR,
    ),
    "outputs of two mirrors, of another length than their diodes": (
        """
        M1 a inp t vss nch w=8u l=1u
        M2 b inn t vss nch w=8u l=1u
        M0 t bias vss vss nch w=4u l=1u
        M3 a a vdd vdd pch w=4u l=1u
        M4 b b vdd vdd pch w=4u l=1u
        M5 c a vdd vdd pch w=4u l=0.5u
        M6 d b vdd vdd pch w=4u l=0.5u
        M7 c c vss vss nch w=4u l=1u
        M8 d c vss vss nch w=4u l=1u
        """,
        {
            "differential_pair M1 M2",
            "load_pair M3 M4",
            "current_mirror M3 M5",
            "current_mirror M4 M6",
            "current_mirror M7 M8",
        },
    ),
    "sources under switches with gates of their own": ("".join(CELL.format(i, f"e{i}") for i in range(4)), {SOURCES}),
    "sources under switches on the gates of logic": (
        "".join(CELL.format(i, f"g{i}") + GATE.format(i) for i in range(4)),
        {SOURCES},
    ),
    "sources under one signal that an inverter drives": (
        "MP0 g en vdd vdd pch w=1u l=0.2u\nMN0 g en vss vss nch w=1u l=0.2u\n"
        + "".join(CELL.format(i, "g") for i in range(4)),
        {SOURCES, "inverter MN0 MP0"},
    ),
    "sources whose currents ports steer into one of two nets": (
        "".join(STEERED.format(i, f"e{i}", f"f{i}") for i in range(4)),
        {SOURCES, *(f"differential_pair MS{i} MT{i}" for i in range(4))},
    ),
    "stacks to outputs of their own": (
        "".join(CELL.format(i, f"e{i}").replace("out", f"out{i}") for i in range(4)),
        set(),
    ),
    "equal resistors on both inputs of an amplifier, to the one rail and to the other": (
        """
        M1 a ref t vss nch w=8u l=1u
        M2 g fb t vss nch w=8u l=1u
        M0 t bias vss vss nch w=4u l=1u
        M3 a a vdd vdd pch w=4u l=1u
        M4 g a vdd vdd pch w=4u l=1u
        M5 fb g vdd vdd pch w=9u l=1u
        R1 vdd ref rpoly w=1u l=90u
        R2 fb vss rpoly w=1u l=90u
        R3 bias vss rpoly w=1u l=90u
        M6 bias bias2 vdd vdd pch w=4u l=1u
        M7 ref ref vss vss nch w=4u l=1u
        """,
        {"differential_pair M1 M2", "current_mirror M3 M4", "resistor_ratio R1 R2"},
    ),
    "tail sources behind switches of the size of the pair": (
        """
        M1 on inp t vss nch w=4u l=0.2u
        M2 op inn t vss nch w=4u l=0.2u
        R1 vdd on 2k
        R2 vdd op 2k
        M3 t bias vss vss nch w=4u l=0.5u
        M4 a bias vss vss nch w=4u l=0.5u
        M5 t e1 a vss nch w=4u l=0.2u
        M6 b bias vss vss nch w=4u l=0.5u
        M7 t e2 b vss nch w=4u l=0.2u
        """,
        {"differential_pair M1 M2", "resistor_pair R1 R2", "current_mirror M3 M4 M6"},
    ),
    "rows of gain cells on their bit lines": (
        "".join(
            f"MW{i}{j} in{j} out{i} s{i}{j} vss nch w=1u l=0.2u\nMG{i}{j} m{i}{j} s{i}{j} vss vss nch w=1u l=0.2u\n"
            f"MR{i}{j} inb{j} inn{i} m{i}{j} vss nch w=1u l=0.2u\n"
            for i in range(4)
            for j in range(2)
        ),
        set(),
    ),
    "an input stage and its follower, biased from the collector of the first and from the supply": (
        """
        R1 vdd b 40k
        R2 b vss 10k
        R3 vdd c 6k
        Q1 c b e npn
        R4 e vss 1k
        R5 c b2 10k
        Q2 vdd b2 out npn
        R6 out vss 2k
        """,
        {"resistor_ratio R1 R2"},
    ),
    "a stage and its replica, whose output an amplifier holds by the tails of both": (
        STAGES + "M6 y en w vss nch w=2u l=0.5u\nM7 vb x w vss nch w=2u l=0.5u\n",
        {*OF_STAGES, "differential_pair M6 M7", "resistor_pair R1 R2", "resistor_ratio R1 R2 R3"},
    ),
    "two stages with tails of one mirror, of which an amplifier holds none by these": (
        STAGES.replace("vdd u vss", "e1 u vss") + "M6 y en w vss nch w=2u l=0.5u\nM7 vb e2 w vss nch w=2u l=0.5u\n",
        {*OF_STAGES, "differential_pair M6 M7", "resistor_pair R1 R2"},
    ),
    "comparators with a reference each, on one input": (
        "".join(COMPARATOR_ON_INPUT.format(i) for i in range(3)),
        {f"{kind} M{one}{i} M{other}{i}" for i in range(3) for kind, one, other in OF_COMPARATOR_ON_INPUT},
    ),
    "an oscillator whose emitters are on the rail": (
        """
        L1 vdd op 1n
        L2 vdd on 1n
        Q1 op b vss npn
        Q2 on b2 vss npn
        C1 on b 1p
        C2 op b2 1p
        R1 vb b 10k
        R2 vb b2 10k
        """,
        {"cross_coupled_pair Q1 Q2", "capacitor_pair C1 C2", "resistor_pair R1 R2"},
    ),
    "an amplifier of two stages with a resistor from its output back to its input": (
        """
        R1 vdd c 6k
        R2 vdd d 6k
        Q1 c inp vss npn
        Q2 d c vss npn
        R3 d inp 10k
        """,
        set(),
    ),
    "two transistors whose collectors drive each other's bases through resistors": (
        """
        R1 vdd c 6k
        R2 vdd d 6k
        Q1 c b vss npn
        Q2 d b2 vss npn
        R3 c b2 10k
        R4 d b 10k
        """,
        {"cross_coupled_pair Q1 Q2", "resistor_pair R1 R2", "resistor_pair R3 R4"},
    ),
}


def complement(text):
    return " ".join(COMPLEMENT.get(word, word) for word in text.replace("\n", " \n ").split(" "))


def found(text):
    ports = " ".join(sorted(word for word in set(text.split()) if re.fullmatch(PORTS, word)))
    circuit = read_netlist(NetlistText(f".subckt c {ports}\n{text}\n.ends\n"))
    return {" ".join((group.type, *sorted(group.devices))) for group in find_roles(circuit).groups}


def exchanged(card):
    """Return the card of a transistor with drain and source exchanged."""
    words = card.split()
    return " ".join((words[0], words[3], words[2], words[1], *words[4:])) if "ch" in card else card


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("turned", [False, True])
def test_a_circuit_and_its_complement_have_the_same_groups(name, turned):
    text, expected = CASES[name]
    assert found(complement(text) if turned else text) == expected


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_cards_and_ends_changes_no_group(name):
    text, expected = CASES[name]
    cards = [exchanged(card) for card in text.strip().splitlines()]
    random.Random(len(text)).shuffle(cards)
    assert found("\n".join(cards)) == expected


def test_a_signal_that_logic_gates_share_is_no_input_of_their_halves():
    """Only one latch may have the halves of its inputs as images, since the net that all share has one image."""
    groups = found("".join(NAND_LATCH.format(i) for i in range(3)))
    assert len([group for group in groups if group.startswith("symmetric_pair")]) <= 1


SCHMITT = """
M1 n1 in vss vss nch w=1u l=0.2u
M2 out in n1 vss nch w={0}u l=0.2u
M3 vdd out n1 vss nch w=3u l={1}u
M4 p1 in vdd vdd pch w=2u l=0.2u
M5 out in p1 vdd pch w={0}u l=0.2u
M6 vss out p1 vdd pch w=2u l={1}u
"""
TRIMMED = """
M1 bias bias vss vss nch w=4u l=1u
M2 out bias vss vss nch w=4u l=1u
M3 out bias x vss nch w=4u l=1u
M4 x e1 vss vss nch w=4u l=0.2u
M5 out bias y vss nch w=4u l=1u
M6 y e2 vss vss nch w=4u l=0.2u
"""


@pytest.mark.parametrize("text", [SCHMITT.format(0.5, 0.2), SCHMITT.format(1, 0.2), SCHMITT.format(1, 0.4), TRIMMED])
@pytest.mark.parametrize("turned", [False, True])
def test_the_source_of_a_transistor_on_one_gate_with_that_below_it_is_on_the_drain_of_that_one(text, turned):
    for cards in (text.strip().splitlines(), [exchanged(card) for card in text.strip().splitlines()]):
        body = complement("\n".join(cards)) if turned else "\n".join(cards)
        circuit = read_netlist(NetlistText(f".subckt c in out bias e1 e2 vdd vss\n{body}\n.ends\n"))
        for card in (complement(text) if turned else text).strip().splitlines():
            name, drain, _, source, *_ = card.split()
            device = circuit.device(name)
            assert (device.terminals["d"], device.terminals["s"]) == (drain, source), name
            assert not device.both_ways
