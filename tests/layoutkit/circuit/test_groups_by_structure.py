"""Groups as an engineer draws them, each in a small circuit of its own.

All groups of a circuit are stated. Names, the order of cards and the order of drain and source change none of them.
"""

import functools
import random
from dataclasses import replace

import pytest

from layoutkit.circuit import find_roles, read_netlist, recognise
from layoutkit.circuit.orientation import oriented
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.circuit.supplies import find_supplies
from thorough import in_this_run

NMOS = "{} {} {} {} vss nch w=4u l=1u"
INVERTER = "MP{0} {2} {1} vdd vdd pch w=2u l=0.2u\nMN{0} {2} {1} vss vss nch w=1u l=0.2u\n"

BUFFER = """
M{0}1 k{0} {1} t{0} vss nch w=8u l=0.2u
M{0}2 h{0} {2} t{0} vss nch w=8u l=0.2u
M{0}3 x{0} {1} k{0} vss nch w=4u l=1u
M{0}4 y{0} {2} h{0} vss nch w=4u l=1u
M{0}5 t{0} bias vss vss nch w=4u l=1u
M{0}6 x{0} x{0} vdd vdd pch w=4u l=1u
M{0}7 y{0} x{0} vdd vdd pch w=4u l=1u
M{0}8 {1} y{0} vdd vdd pch w=9u l=0.5u
M{0}9 {1} bias vss vss nch w=8u l=1u
"""

CIRCUITS = {
    "cascodes that an amplifier of their own size holds, both ways round": (
        """
        MT t bias vss vss nch w=4u l=1u
        M1 a inp t vss nch w=4u l=1u
        M2 b inn t vss nch w=4u l=1u
        M3 o ga a vss nch w=4u l=1u
        M4 out gb b vss nch w=4u l=1u
        MS ts bias vss vss nch w=4u l=1u
        M5 ga a ts vss nch w=4u l=1u
        M6 gb b ts vss nch w=4u l=1u
        M7 ga cas vdd vdd pch w=9u l=1u
        M8 gb cas vdd vdd pch w=9u l=1u
        MC c ctl vdd vdd pch w=6u l=1u
        MD d ctl vdd vdd pch w=6u l=1u
        ME o gc c vdd pch w=6u l=1u
        MF out gd d vdd pch w=6u l=1u
        MU us bias vss vss nch w=4u l=1u
        MG gc c us vss nch w=4u l=1u
        MH gd d us vss nch w=4u l=1u
        MI gc cas vdd vdd pch w=9u l=1u
        MJ gd cas vdd vdd pch w=9u l=1u
        """,
        {
            ("current_mirror", "MS MT MU", None, "driven"),
            ("differential_pair", "M1 M2"),
            ("differential_pair", "M5 M6"),
            ("differential_pair", "MG MH"),
            ("symmetric_pair", "M3 M4"),
            ("symmetric_pair", "ME MF"),
            ("load_pair", "MC MD"),
            ("load_pair", "M7 M8"),
            ("load_pair", "MI MJ"),
        },
    ),
    "stacks on one gate, which add their voltages": (
        """
        M0 a a vdd vdd pch w=2u l=2u
        M1 b a vdd vdd pch w=2u l=2u
        M2 c a vdd vdd pch w=2u l=2u
        M3 a e s s nch w=40u l=2u
        M4 s e vss vss nch w=4u l=2u
        M5 e a vdd vdd pch w=9u l=2u
        Q1 vss vss e pnp
        M6 b b h h nch w=16u l=2u
        M7 h b s s nch w=2u l=2u
        M8 c c o o nch w=16u l=2u
        M9 o c h h nch w=2u l=2u
        """,
        {("current_mirror", "M0 M1 M2 M5", "M0", "simple")},
    ),
    "wide-swing bias of two types": (
        """
        M1 p3 p4 vdd vdd pch w=8u l=2u
        M2 n2 p5 p3 vdd pch w=8u l=2u
        M3 p5 p5 vdd vdd pch w=1u l=2u
        M4 p5 n2 n3 vss nch w=6u l=2u
        M5 n3 n4 vss vss nch w=9u l=2u
        M6 n2 n2 vss vss nch w=1u l=2u
        M7 n4 n4 vss vss nch w=9u l=2u
        M8 p4 p4 vdd vdd pch w=8u l=2u
        M9 n4 p4 vdd vdd pch w=8u l=2u
        """,
        {("current_mirror", "M5 M7", "M7", "simple"), ("current_mirror", "M1 M8 M9", "M8", "simple")},
    ),
    "self-biased loop with its resistor on a port": (
        """
        M1 x x vss vss nch w=2u l=1u
        M2 y x b0 vss nch w=2u l=1u
        M3 x y vdd vdd pch w=2u l=1u
        M4 y y vdd vdd pch w=2u l=1u
        """,
        {("current_mirror", "M1 M2", "M1", "degenerated"), ("current_mirror", "M3 M4", "M4", "simple")},
    ),
    "ring whose stages have a bias of their own, with a dummy": (
        "".join(
            INVERTER.format(i, f"n{i}", f"n{(i + 1) % 3}").replace("vss vss", f"l{i} vss")
            + f"ML{i} l{i} g{i} vss vss nch w=3u l=0.5u\nMD{i} g{i} g{i} vss vss nch w=5u l=0.5u\n"
            f"MC{i} g{i} ctl vdd vdd pch w=2u l=3u\nMZ{i} n{i} vss vss vss nch w=1u l=0.2u\n"
            for i in range(3)
        ),
        {
            *(("inverter", f"MN{i} MP{i}") for i in range(3)),
            *(("current_mirror", f"MD{i} ML{i}", f"MD{i}", "simple") for i in range(3)),
            ("current_mirror", "MC0 MC1 MC2", None, "driven"),
            ("ring_stage", " ".join(f"M{kind}{i}" for kind in "CDLNP" for i in range(3))),
        },
    ),
    "equal resistors in series, drawn as units of one": (
        """
        M1 i i vss vss nch w=4u l=1u
        M2 o i vss vss nch w=4u l=1u
        R1 vdd a 4k
        R2 a b 4k
        R3 b i 4k
        """,
        {("current_mirror", "M1 M2", "M1", "simple"), ("resistor_ratio", "R1 R2 R3")},
    ),
    "unequal resistors in series": (
        """
        M1 i i vss vss nch w=4u l=1u
        M2 o i vss vss nch w=4u l=1u
        R1 vdd a 4k
        R2 a i 1.5k
        """,
        {("current_mirror", "M1 M2", "M1", "simple")},
    ),
    "equal capacitors at the stages of a ring": (
        "".join(INVERTER.format(i, f"n{i}", f"n{(i + 1) % 3}") + f"C{i} n{i} vss 40f\n" for i in range(3)),
        {
            *(("inverter", f"MN{i} MP{i}") for i in range(3)),
            ("ring_stage", "C0 C1 C2 MN0 MN1 MN2 MP0 MP1 MP2"),
            ("capacitor_ratio", "C0 C1 C2"),
        },
    ),
    "mesh of a class-AB output, with its diodes": (
        """
        M1 d1 d1 vss vss nch w=2u l=0.5u
        M2 d2 d2 d1 vss nch w=6u l=0.5u
        M3 hi d2 lo vss nch w=6u l=0.5u
        M4 out lo vss vss nch w=40u l=0.5u
        M5 d3 d3 vdd vdd pch w=5u l=0.5u
        M6 d4 d4 d3 vdd pch w=16u l=0.5u
        M7 lo d4 hi vdd pch w=16u l=0.5u
        M8 out hi vdd vdd pch w=90u l=0.5u
        M9 lo in vss vss nch w=9u l=1u
        M10 hi ip vdd vdd pch w=9u l=1u
        """,
        {("current_mirror", "M2 M3", "M2", "translinear"), ("current_mirror", "M6 M7", "M6", "translinear")},
    ),
    "two output stages with a string of diodes each, which sources on one gate feed": (
        """
        M1 a inp t vss nch w=8u l=0.5u
        M2 b inn t vss nch w=8u l=0.5u
        M3 t bias vss vss nch w=6u l=1u
        M4 a ctl vdd vdd pch w=9u l=1u
        M5 b ctl vdd vdd pch w=9u l=1u
        MA o a vdd vdd pch w=20u l=0.5u
        MB out b vdd vdd pch w=20u l=0.5u
        MC o bias vss vss nch w=12u l=1u
        MD out bias vss vss nch w=12u l=1u
        ME p p vdd vdd pch w=20u l=0.5u
        MF q q vdd vdd pch w=20u l=0.5u
        MG g g p vdd pch w=4u l=0.5u
        MH h h q vdd pch w=4u l=0.5u
        MI g bias vss vss nch w=3u l=1u
        MJ h bias vss vss nch w=3u l=1u
        MK o g k vdd pch w=4u l=0.5u
        ML out h n vdd pch w=4u l=0.5u
        CK k a 1p
        CL n b 1p
        C1 a vss 30f
        C2 b vss 30f
        C3 t vss 30f
        C4 o vss 30f
        C5 out vss 30f
        C6 p vss 30f
        C7 q vss 30f
        C8 g vss 30f
        C9 h vss 30f
        """,
        {
            ("differential_pair", "M1 M2"),
            ("load_pair", "M4 M5"),
            ("symmetric_pair", "MA MB"),
            ("symmetric_pair", "MK ML"),
            ("capacitor_pair", "CK CL"),
            ("current_mirror", "M3 MC MD MI MJ", None, "driven"),
        },
    ),
    "two amplifiers that share a gain resistor": (
        "".join(
            f"""
            MA{n} a{n} i{n} t{n} vss nch w=8u l=1u
            MB{n} o{n} f{n} t{n} vss nch w=8u l=1u
            MC{n} a{n} a{n} vdd vdd pch w=8u l=1u
            MD{n} o{n} a{n} vdd vdd pch w=8u l=1u
            ME{n} t{n} bias vss vss nch w=5u l=2u
            R{n} o{n} f{n} 10k
            """
            for n in (1, 2)
        )
        + "RG f1 f2 1k",
        {
            *(("differential_pair", f"MA{n} MB{n}") for n in (1, 2)),
            *(("current_mirror", f"MC{n} MD{n}", f"MC{n}", "simple") for n in (1, 2)),
            ("current_mirror", "ME1 ME2", None, "driven"),
            ("resistor_pair", "R1 R2"),
            ("resistor_ratio", "R1 R2 RG"),
        },
    ),
    "input pair of which two halves are one side, on one drain": (
        """
        M1 a inp t vss nch w=8u l=1u
        M2 o inn t vss nch w=4u l=1u
        M3 o bias t vss nch w=4u l=1u
        M4 t ctl vss vss nch w=8u l=1u
        M5 a a vdd vdd pch w=6u l=1u
        M6 o a vdd vdd pch w=6u l=1u
        """,
        {("differential_pair", "M1 M2 M3"), ("current_mirror", "M5 M6", "M5", "simple")},
    ),
    "input pair of which two halves are one side, on one gate": (
        """
        M1 a inp t vss nch w=8u l=1u
        M2 o inn t vss nch w=4u l=1u
        M3 vdd inn t vss nch w=4u l=1u
        M4 t ctl vss vss nch w=8u l=1u
        M5 a a vdd vdd pch w=6u l=1u
        M6 o a vdd vdd pch w=6u l=1u
        """,
        {("differential_pair", "M1 M2 M3"), ("current_mirror", "M5 M6", "M5", "simple")},
    ),
    "no input pair, since its sides have two widths": (
        """
        M1 a inp t vss nch w=8u l=1u
        M2 o inn t vss nch w=4u l=1u
        M3 o bias t vss nch w=2u l=1u
        M4 t ctl vss vss nch w=8u l=1u
        M5 a a vdd vdd pch w=6u l=1u
        M6 o a vdd vdd pch w=2u l=1u
        """,
        {("current_mirror", "M5 M6", "M5", "simple")},
    ),
    "two crossed transconductors with a resistor between two tails each": (
        """
        M1 a inp s1 vss nch w=8u l=1u
        M2 o bias s2 vss nch w=8u l=1u
        M3 s1 ctl vss vss nch w=8u l=1u
        M4 s2 ctl vss vss nch w=8u l=1u
        R1 s1 s2 10k
        M5 o inn s5 vss nch w=8u l=1u
        M6 a bias s6 vss nch w=8u l=1u
        M7 s5 ctl vss vss nch w=8u l=1u
        M8 s6 ctl vss vss nch w=8u l=1u
        R2 s5 s6 10k
        M9 a a vdd vdd pch w=6u l=1u
        M10 o a vdd vdd pch w=6u l=1u
        """,
        {
            ("differential_pair", "M1 M2"),
            ("differential_pair", "M5 M6"),
            ("current_mirror", "M3 M4 M7 M8", None, "driven"),
            ("resistor_ratio", "R1 R2"),
            ("current_mirror", "M10 M9", "M9", "simple"),
        },
    ),
    "sources on a bias port under switches of two pairs, on a clock that is made inside": (
        """
        M1 o1 inp t1 vss nch w=2u l=0.2u
        M2 o2 inn t1 vss nch w=2u l=0.2u
        M3 o1 b0 t2 vss nch w=2u l=0.2u
        M4 o2 b1 t2 vss nch w=2u l=0.2u
        M5 t1 clk u1 vss nch w=1u l=0.15u
        M6 t2 clk u2 vss nch w=1u l=0.15u
        M7 u1 bias vss vss nch w=1u l=1u
        M8 u2 bias vss vss nch w=1u l=1u
        M9 clk en vdd vdd pch w=2u l=0.15u
        M10 clk en vss vss nch w=1u l=0.15u
        M11 o1 o1 vdd vdd pch w=2u l=1u
        M12 o2 o1 vdd vdd pch w=2u l=1u
        """,
        {
            ("differential_pair", "M1 M2"),
            ("differential_pair", "M3 M4"),
            ("current_mirror", "M7 M8", None, "driven"),
            ("current_mirror", "M11 M12", "M11", "simple"),
            ("inverter", "M10 M9"),
        },
    ),
    "bias diodes beside two output stages, which a mirror in each feeds: images, but no loads": (
        """
        M1 a inp t vdd pch w=4u l=1u
        M2 b inn t vdd pch w=4u l=1u
        M3 t ctl vdd vdd pch w=4u l=1u
        M4 a bias vss vss nch w=2u l=2u
        M5 b bias vss vss nch w=2u l=2u
        M6 bias bias vss vss nch w=2u l=2u
        M7 p1 bias vss vss nch w=2u l=2u
        M8 p2 bias vss vss nch w=2u l=2u
        M9 p1 p1 vdd vdd pch w=3u l=2u
        M10 p2 p2 vdd vdd pch w=3u l=2u
        M11 n1 p1 vdd vdd pch w=3u l=2u
        M12 n2 p2 vdd vdd pch w=3u l=2u
        M13 n1 n1 vss vss nch w=1u l=2u
        M14 n2 n2 vss vss nch w=1u l=2u
        C1 a n1 1p
        C2 b n2 1p
        """,
        {
            ("differential_pair", "M1 M2"),
            ("current_mirror", "M4 M5 M6 M7 M8", "M6", "simple"),
            ("current_mirror", "M11 M9", "M9", "simple"),
            ("current_mirror", "M10 M12", "M10", "simple"),
            ("capacitor_pair", "C1 C2"),
        },
    ),
    "tied transistors of the length of those beside them are dummies, longer ones are capacitors": (
        """
        M1 a inp t vss nch w=4u l=0.2u
        M2 b inn t vss nch w=4u l=0.2u
        M3 t ctl vss vss nch w=4u l=1u
        M4 a a vdd vdd pch w=2u l=0.2u
        M5 b b vdd vdd pch w=2u l=0.2u
        M6 vdd a vdd vdd pch w=1u l=0.2u
        M7 vdd b vdd vdd pch w=1u l=0.2u
        M8 vdd a vdd vdd pch w=4u l=2u
        M9 vdd b vdd vdd pch w=4u l=2u
        """,
        {("differential_pair", "M1 M2"), ("load_pair", "M4 M5"), ("symmetric_pair", "M8 M9")},
    ),
    "reference of two bipolar transistors with a resistor below one and equal ones to one net": (
        """
        Q1 a a vss npn
        Q2 b a e npn m=8
        Q3 o b vss npn
        R1 a o 9k
        R2 b o 9k
        R3 e vss 1k
        """,
        {("bipolar_array", "Q1 Q2"), ("resistor_ratio", "R1 R2 R3")},
    ),
    "two channels of three transistors each on a bias port": (
        """
        M1 a bias vss vss nch w=2u l=1u
        M2 b bias a vss nch w=2u l=1u
        M3 p bias b vss nch w=2u l=1u
        M4 c bias vss vss nch w=2u l=1u
        M5 d bias c vss nch w=2u l=1u
        M6 q bias d vss nch w=2u l=1u
        M7 p p vdd vdd pch w=6u l=1u
        M8 o p vdd vdd pch w=6u l=1u
        """,
        {("current_mirror", "M1 M2 M3 M4 M5 M6", None, "driven"), ("current_mirror", "M7 M8", "M7", "simple")},
    ),
    "self-biased reference whose two branches a pair at the rail compares, and cascoded sources on ports": (
        """
        M1 a a s vss nch w=16u l=0.5u
        M2 b b vss vss nch w=4u l=0.5u
        R1 s vss 2k
        M3 a g vdd vdd pch w=12u l=0.5u
        M4 b g vdd vdd pch w=12u l=0.5u
        M5 g b vss vss nch w=4u l=0.5u
        M6 c a vss vss nch w=4u l=0.5u
        M7 c c vdd vdd pch w=12u l=0.5u
        M8 g c vdd vdd pch w=12u l=0.5u
        M9 r g vdd vdd pch w=12u l=0.5u
        M0 r r vss vss nch w=3u l=2u
        MA q1 bias vss vss nch w=5u l=1u
        MB q2 bias vss vss nch w=5u l=1u
        MC q3 bias vss vss nch w=5u l=1u
        MD p1 cas q1 vss nch w=4u l=0.5u
        ME p2 cas q2 vss nch w=4u l=0.5u
        MF p3 cas q3 vss nch w=4u l=0.5u
        MG p1 p1 vdd vdd pch w=6u l=1u
        MH p2 p2 vdd vdd pch w=7u l=1u
        MI p3 p3 vdd vdd pch w=8u l=1u
        """,
        {
            ("current_mirror", "M2 M5", "M2", "simple"),
            ("current_mirror", "M3 M4 M9", None, "driven"),
            ("current_mirror", "M7 M8", "M7", "simple"),
            ("symmetric_pair", "M5 M6"),
            ("current_mirror", "MA MB MC", None, "driven"),
            ("cascode_pair", "MD ME MF"),
        },
    ),
    "clocked tail, which is charged while the clock is low, and an inverter before a gate": (
        """
        M1 a inp t vss nch w=4u l=0.2u
        M2 b inn t vss nch w=4u l=0.2u
        M3 t ck vss vss nch w=6u l=0.2u
        M4 t ck vdd vdd pch w=3u l=0.2u
        M5 a a vdd vdd pch w=4u l=0.2u
        M6 b b vdd vdd pch w=4u l=0.2u
        MN ck en vss vss nch w=1u l=0.2u
        MP ck en vdd vdd pch w=2u l=0.2u
        """,
        {("differential_pair", "M1 M2"), ("load_pair", "M5 M6"), ("inverter", "MN MP")},
    ),
    "mirror with resistors below its sources": (
        """
        M1 i i s1 vss nch w=4u l=1u
        M2 o i s2 vss nch w=8u l=1u
        R1 s1 vss 2k
        R2 s2 vss 1k
        """,
        {("current_mirror", "M1 M2", "M1", "degenerated"), ("resistor_ratio", "R1 R2")},
    ),
    "self-biased reference": (
        """
        M1 a a vss vss nch w=1u l=2u
        M2 b a s vss nch w=4u l=2u
        M5 o a vss vss nch w=1u l=2u
        R1 s vss 10k
        M3 a b vdd vdd pch w=2u l=2u
        M4 b b vdd vdd pch w=2u l=2u
        """,
        {
            ("current_mirror", "M1 M2 M5", "M1", "self_biased"),
            ("current_mirror", "M3 M4", "M4", "simple"),
        },
    ),
    "diode that biases cascodes, with a start-up transistor of another gate length": (
        """
        M1 i i vss vss nch w=1u l=2u
        M2 k i vss vss nch w=1u l=2u
        M3 k k vdd vdd pch w=1u l=8u
        M4 x up vdd vdd pch w=4u l=1u
        M5 y up vdd vdd pch w=4u l=1u
        M6 o k x vdd pch w=8u l=1u
        M7 out k y vdd pch w=8u l=1u
        M8 start k vdd vdd pch w=4u l=0.5u m=4
        M9 vss start k k pch w=4u l=0.5u
        R1 start vss 900k
        """,
        {
            ("current_mirror", "M1 M2", "M1", "simple"),
            ("load_pair", "M4 M5"),
            ("cascode_pair", "M6 M7"),
        },
    ),
    "amplifier whose two tails its own output biases": (
        """
        M1 x a t vss nch w=1u l=0.2u
        M2 y b t vss nch w=1u l=0.2u
        M3 t x vss vss nch w=1u l=0.2u
        M4 x a u vdd pch w=1u l=0.2u
        M5 y b u vdd pch w=1u l=0.2u
        M6 u x vdd vdd pch w=1u l=0.2u
        """,
        {("differential_pair", "M1 M2"), ("differential_pair", "M4 M5")},
    ),
    "two switches that pass currents on to the reference of a mirror, which a third one pulls down": (
        """
        M1 nb nb vss vss nch w=1u l=1u
        M2 o nb vss vss nch w=1u l=1u
        M3 d1 en nb vss nch w=1u l=0.5u
        M4 d2 more nb vss nch w=1u l=0.5u
        M5 nb stop vss vss nch w=1u l=0.5u
        R1 d1 vdd 300k
        R2 d2 vdd 90k
        """,
        {("current_mirror", "M1 M2", "M1", "simple")},
    ),
    "load whose second gate switches join to the reference or to its own drain": (
        """
        M1 a a vdd vdd pch w=8u l=1u
        M2 o g vdd vdd pch w=8u l=1u
        M3 a inp t vss nch w=8u l=0.5u
        M4 o inn t vss nch w=8u l=0.5u
        M5 t nb vss vss nch w=4u l=1u
        M6 a s g vss nch w=1u l=0.2u
        M7 a sb g vdd pch w=2u l=0.2u
        M8 o sb g vss nch w=1u l=0.2u
        M9 o s g vdd pch w=2u l=0.2u
        """,
        {
            ("differential_pair", "M3 M4"),
            ("current_mirror", "M1 M2", "M1", "switched"),
        },
    ),
    "sources that float between the halves of a class AB stage are no switches": (
        """
        M1 f1 inp t vss nch w=8u l=0.5u
        M2 f2 inn t vss nch w=8u l=0.5u
        M3 t nb vss vss nch w=4u l=0.5u
        M4 f1 pb vdd vdd pch w=9u l=0.5u
        M5 f2 pb vdd vdd pch w=9u l=0.5u
        M6 p1 pc f1 vdd pch w=8u l=0.5u
        M7 p2 pc f2 vdd pch w=8u l=0.5u
        M8 p1 b n1 vss nch w=2u l=0.5u
        M9 n1 c p1 vdd pch w=4u l=0.5u
        M10 p2 b n2 vss nch w=2u l=0.5u
        M11 n2 c p2 vdd pch w=4u l=0.5u
        M12 n1 bias vss vss nch w=4u l=0.5u
        M13 n2 bias vss vss nch w=4u l=0.5u
        M14 o p1 vdd vdd pch w=20u l=0.5u
        M15 o n1 vss vss nch w=10u l=0.5u
        M16 q p2 vdd vdd pch w=20u l=0.5u
        M17 q n2 vss vss nch w=10u l=0.5u
        """,
        {
            ("differential_pair", "M1 M2"),
            ("current_mirror", "M4 M5", None, "driven"),
            ("cascode_pair", "M6 M7"),
            ("cascode_pair", "M10 M8"),
            ("cascode_pair", "M11 M9"),
            ("load_pair", "M12 M13"),
            ("symmetric_pair", "M14 M16"),
            ("symmetric_pair", "M15 M17"),
        },
    ),
    "wide-swing mirror whose inner nets switches shut down": (
        """
        M1 x i vss vss nch w=4u l=1u
        M2 y i vss vss nch w=4u l=1u
        M3 i b x vss nch w=4u l=0.3u
        M4 o b y vss nch w=4u l=0.3u
        M5 x en vss vss nch w=1u l=0.2u
        M6 y en vss vss nch w=1u l=0.2u
        """,
        {("current_mirror", "M1 M2", "M1", "wide_swing"), ("cascode_pair", "M3 M4")},
    ),
    "starved inverter that a switch joins with its input": (
        """
        M1 r pb vdd vdd pch w=2u l=0.5u
        M2 o a r vdd pch w=2u l=0.2u
        M3 o a s vss nch w=1u l=0.2u
        M4 s nb vss vss nch w=1u l=0.5u
        M5 o phi1 a vss nch w=1u l=0.2u
        C1 a in 1p
        M6 q o vdd vdd pch w=2u l=0.2u
        M7 q o vss vss nch w=1u l=0.2u
        """,
        {("inverter", "M2 M3"), ("inverter", "M6 M7")},
    ),
    "complementary input pairs among dummies of their unit between floating nets": (
        """
        M1 t inp x vss nch w=1u l=0.6u
        M2 t inn y vss nch w=1u l=0.6u
        M3 t nb vss vss nch w=2u l=0.6u
        M4 x vss f1 vss nch w=1u l=0.6u
        M5 f1 vss q vss nch w=1u l=0.6u
        M6 y vss f2 vss nch w=1u l=0.6u
        M7 f2 vss q vss nch w=1u l=0.6u
        M8 x pb vdd vdd pch w=1u l=0.6u
        M9 y pb vdd vdd pch w=1u l=0.6u
        M10 x pc p vdd pch w=1u l=0.6u
        M11 y pc q vdd pch w=1u l=0.6u
        M12 p p vss vss nch w=1u l=0.9u
        M13 q p vss vss nch w=1u l=0.9u
        """,
        {
            ("differential_pair", "M1 M2"),
            ("current_mirror", "M8 M9", None, "driven"),
            ("cascode_pair", "M10 M11"),
            ("current_mirror", "M12 M13", "M12", "simple"),
        },
    ),
    "cascoded load of two folded pairs whose output a switch pulls to power": (
        """
        M1 a inp t vss nch w=2u l=1u
        M2 b inn t vss nch w=2u l=1u
        M3 t nb vss vss nch w=4u l=1u
        M4 a a vdd vdd pch w=8u l=1u
        M5 b a vdd vdd pch w=8u l=1u
        M6 m m a vdd pch w=8u l=4u
        M7 o m b vdd pch w=8u l=4u
        M8 m nc x vss nch w=4u l=1u
        M9 o nc y vss nch w=4u l=1u
        M10 o en vdd vdd pch w=1u l=0.5u
        M11 x nb vss vss nch w=4u l=1u
        M12 y nb vss vss nch w=4u l=1u
        M13 x inp u vdd pch w=6u l=1u
        M14 y inn u vdd pch w=6u l=1u
        M15 u pb vdd vdd pch w=8u l=1u
        """,
        {
            ("differential_pair", "M1 M2"),
            ("differential_pair", "M13 M14"),
            ("current_mirror", "M4 M5", "M4", "simple"),
            ("cascode_pair", "M6 M7"),
            ("cascode_pair", "M8 M9"),
            ("current_mirror", "M11 M12 M3", None, "driven"),
        },
    ),
    "mirror of branches of two lengths on one gate": (
        """
        M1 x g vdd vdd pch w=8u l=4u
        M2 y g vdd vdd pch w=8u l=4u
        M3 z g vdd vdd pch w=8u l=4u
        M4 g g x vdd pch w=8u l=1u
        M5 o1 g y vdd pch w=8u l=1u
        M6 o2 g z vdd pch w=8u l=1u
        """,
        {("current_mirror", "M1 M2 M3", "M1", "stacked"), ("cascode_pair", "M4 M5 M6")},
    ),
    "oscillator whose crossing runs through capacitors": (
        """
        M1 p g1 t vss nch w=9u l=0.2u
        M2 q g2 t vss nch w=9u l=0.2u
        M3 t nb vss vss nch w=9u l=1u
        C1 q g1 cmim w=5u l=5u
        C2 p g2 cmim w=5u l=5u
        R1 g1 vb 9k
        R2 g2 vb 9k
        R3 p vdd 1k
        R4 q vdd 1k
        """,
        {
            ("cross_coupled_pair", "M1 M2"),
            ("capacitor_pair", "C1 C2"),
            ("resistor_pair", "R1 R2"),
            ("resistor_pair", "R3 R4"),
        },
    ),
    "output stage above a switch": (
        """
        M1 o in vdd vdd pch w=4u l=1u
        M2 o in s vss nch w=4u l=1u
        M3 s en vss vss nch w=4u l=0.5u
        """,
        {("inverter", "M1 M2")},
    ),
    "mirror on the emitters of a bandgap core": (
        """
        M1 a a e1 vss nch w=4u l=1u
        M2 b a s vss nch w=4u l=1u
        R1 s e2 10k
        Q1 vss vss e1 pnp m=1
        Q2 vss vss e2 pnp m=8
        M3 a b vdd vdd pch w=2u l=2u
        M4 b b vdd vdd pch w=2u l=2u
        """,
        {
            ("current_mirror", "M1 M2", "M1", "self_biased"),
            ("current_mirror", "M3 M4", "M4", "simple"),
            ("bipolar_array", "Q1 Q2"),
        },
    ),
    "charge pump with switches below its sources, and replicas that are always on": (
        """
        M1 i i x1 vss nch w=4u l=1u
        M2 o i x2 vss nch w=4u l=1u
        M3 x1 vdd vss vss nch w=2u l=0.2u
        M4 x2 dn vss vss nch w=2u l=0.2u
        M5 p p vdd vdd pch w=4u l=1u
        M6 o p vdd vdd pch w=4u l=1u
        """,
        {
            ("current_mirror", "M1 M2", "M1", "degenerated"),
            ("current_mirror", "M5 M6", "M5", "simple"),
            ("switch_pair", "M3 M4"),
        },
    ),
    "charge pump with switches that only ports drive below sources no wider than the references": (
        """
        M1 i i vss vss nch w=4u l=1u
        M2 o i x vss nch w=4u l=1u
        M3 x dn vss vss nch w=4u l=1u
        M4 en en vdd vdd pch w=8u l=1u
        M5 o en y vdd pch w=6u l=1u
        M6 y upb vdd vdd pch w=8u l=1u
        """,
        {("current_mirror", "M1 M2", "M1", "degenerated"), ("current_mirror", "M4 M5", "M4", "degenerated")},
    ),
    "cascode that a narrow diode biases, above a source on a bias port": (
        """
        M1 cas cas vss vss nch w=1u l=1u
        M2 o cas x vss nch w=8u l=1u
        M3 x bias vss vss nch w=8u l=1u
        """,
        set(),
    ),
    "latch whose crossing runs through the inputs": (
        """
        M1 ob inp s1 vss nch w=2u l=0.2u
        M2 out inn s2 vss nch w=2u l=0.2u
        M3 s1 out t vss nch w=2u l=0.2u
        M4 s2 ob t vss nch w=2u l=0.2u
        M5 t en vss vss nch w=4u l=0.2u
        M6 ob out vdd vdd pch w=2u l=0.2u
        M7 out ob vdd vdd pch w=2u l=0.2u
        """,
        {("symmetric_pair", "M1 M2"), ("cross_coupled_pair", "M3 M4"), ("cross_coupled_pair", "M6 M7")},
    ),
    "common-mode detector of two pairs with a diode each": (
        """
        M1 x inp s1 vdd pch w=4u l=1u
        M2 f fb s1 vdd pch w=4u l=1u
        M3 y inn s2 vdd pch w=4u l=1u
        M4 f fb s2 vdd pch w=4u l=1u
        M5 s1 bias vdd vdd pch w=8u l=2u
        M6 s2 bias vdd vdd pch w=8u l=2u
        M7 x x vss vss nch w=2u l=1u
        M8 y y vss vss nch w=2u l=1u
        M9 f f vss vss nch w=2u l=1u
        M11 inp en t vss nch w=6u l=1u
        M12 inn dn t vss nch w=6u l=1u
        M13 t ctl vss vss nch w=6u l=2u
        M14 inp out vdd vdd pch w=6u l=2u
        M15 inn out vdd vdd pch w=6u l=2u
        """,
        {
            ("differential_pair", "M11 M12"),
            ("load_pair", "M14 M15"),
            ("differential_pair", "M1 M2"),
            ("differential_pair", "M3 M4"),
            ("current_mirror", "M5 M6", None, "driven"),
            ("load_pair", "M7 M8"),
        },
    ),
    "mirror above a resistor of many bars": (
        """
        M1 a a r vss nch w=4u l=1u
        M2 b a e vss nch w=4u l=1u
        Q1 vss vss e pnp m=1
        R0 r k0 1k
        """
        + "".join(f"R{n + 1} k{n} k{n + 1} 1k\n" for n in range(11))
        + "R12 k11 vss 1k\n",
        {("current_mirror", "M1 M2", "M1", "self_biased")},
    ),
    "mirror with an adjustable resistor below its output": (
        """
        M1 a a vss vss nch w=4u l=1u
        M2 b a e vss nch w=4u l=1u
        R1 e vss 10k
        R2 e ctl 10k
        """,
        {("current_mirror", "M1 M2", "M1", "self_biased")},
    ),
    "four inputs above one tail, with a divider on one and a capacitor at the output": (
        """
        M1 d1 inp t vdd pch w=24u l=2u
        M2 d2 inn t vdd pch w=24u l=2u
        M3 d1 d1 vss vss nch w=1u l=1u
        M4 f1 d1 vss vss nch w=2u l=1u
        M5 t bias vdd vdd pch w=8u l=1u
        M7 f2 d2 vss vss nch w=2u l=1u
        M8 d2 d2 vss vss nch w=1u l=1u
        M9 f1 inn t vdd pch w=24u l=2u
        M10 f2 inp t vdd pch w=24u l=2u
        M11 out m vdd vdd pch w=2u l=1u
        M12 m m vdd vdd pch w=2u l=1u
        M13 out cas f1 vss nch w=16u l=1u
        M14 m cas f2 vss nch w=16u l=1u
        C1 out vss 1p
        R1 x inn 10k
        R2 inn vss 10k
        M15 x x vdd vdd pch w=3u l=1u
        """,
        {
            ("differential_pair", "M1 M2"),
            ("differential_pair", "M10 M9"),
            ("load_pair", "M3 M8"),
            ("cascode_pair", "M13 M14"),
            ("current_mirror", "M3 M4", "M3", "simple"),
            ("current_mirror", "M7 M8", "M8", "simple"),
            ("current_mirror", "M11 M12", "M12", "simple"),
            ("resistor_ratio", "R1 R2"),
        },
    ),
    "bandgap core of NPN diodes, the amplifier outside": (
        """
        M1 a fb vdd vdd pch w=8u l=1u
        M2 b fb vdd vdd pch w=8u l=1u
        M3 out fb vdd vdd pch w=8u l=1u
        Q1 a a vss npn m=1
        Q2 e e vss npn m=8
        Q3 k k vss npn m=1
        R1 b e 10k
        R2 out k 100k
        """,
        {("current_mirror", "M1 M2 M3", None, "driven"), ("bipolar_array", "Q1 Q2 Q3"), ("resistor_ratio", "R1 R2")},
    ),
    "reference closed through an enable switch": (
        """
        M1 i g vss vss nch w=4u l=1u
        M2 o g vss vss nch w=8u l=1u
        M3 i enb g vss nch w=1u l=0.2u
        M4 g en vss vss nch w=1u l=0.2u
        """
        + INVERTER.format(5, "en", "enb"),
        {("current_mirror", "M1 M2", "M1", "simple"), ("inverter", "MN5 MP5")},
    ),
    "outputs on a gate that a switch joins to that of the reference": (
        """
        M1 i i vss vss nch w=4u l=1u
        M2 m i vss vss nch w=4u l=1u
        M3 g up i vss nch w=1u l=0.2u
        M4 o g vss vss nch w=4u l=1u
        M5 g upb vss vss nch w=1u l=0.2u
        """,
        {("current_mirror", "M1 M2", "M1", "simple"), ("current_mirror", "M1 M4", "M1", "switched")},
    ),
    "sources of a bandgap that an amplifier drives, with cascodes and a start-up transistor": (
        """
        M1 d1 g vdd vdd pch w=8u l=4u
        M2 d2 g vdd vdd pch w=8u l=4u
        M3 d3 g vdd vdd pch w=8u l=4u
        C1 a cas d1 vdd pch w=8u l=1u
        C2 b cas d2 vdd pch w=8u l=1u
        C3 out cas d3 vdd pch w=8u l=1u
        Q1 vss vss a pnp m=1
        Q2 vss vss e pnp m=8
        R1 b e 10k
        R2 out vss 100k
        A1 n a t vss nch w=4u l=2u
        A2 g b t vss nch w=4u l=2u
        A3 n n vdd vdd pch w=4u l=2u
        A4 g n vdd vdd pch w=4u l=2u
        A5 t bias vss vss nch w=4u l=2u
        S1 g start vss vss nch w=1u l=0.2u
        """.replace("\n        C", "\n        MC")
        .replace("\n        A", "\n        MA")
        .replace("\n        S", "\n        MS"),
        {
            ("current_mirror", "M1 M2 M3", None, "driven"),
            ("cascode_pair", "MC1 MC2 MC3"),
            ("differential_pair", "MA1 MA2"),
            ("current_mirror", "MA3 MA4", "MA3", "simple"),
            ("bipolar_array", "Q1 Q2"),
            ("resistor_ratio", "R1 R2"),
        },
    ),
    "ladder of equal transistors, whose currents switches steer": (
        """
        MI0 nb0 b0 vss vss nch w=1u l=0.5u
        MI1 nb0 b0 vdd vdd pch w=2u l=0.5u
        MI2 nb1 b1 vss vss nch w=1u l=0.5u
        MI3 nb1 b1 vdd vdd pch w=2u l=0.5u
        MI4 nb2 b2 vss vss nch w=1u l=0.5u
        MI5 nb2 b2 vdd vdd pch w=2u l=0.5u
        M1 i vdd x vss nch w=3u l=0.5u
        M2 i vdd p vss nch w=3u l=0.5u
        M3 x vdd q vss nch w=3u l=0.5u
        M4 x vdd y vss nch w=3u l=0.5u
        M5 y vdd z vss nch w=3u l=0.5u
        M6 y vdd r vss nch w=3u l=0.5u
        M7 z vdd dn vss nch w=3u l=0.5u
        MS5 r b2 o vss nch w=4u l=0.5u
        MS6 r nb2 dn vss nch w=4u l=0.5u
        MS1 p b0 o vss nch w=4u l=0.5u
        MS2 p nb0 dn vss nch w=4u l=0.5u
        MS3 q b1 o vss nch w=4u l=0.5u
        MS4 q nb1 dn vss nch w=4u l=0.5u
        """,
        {
            ("inverter", "MI0 MI1"),
            ("inverter", "MI2 MI3"),
            ("inverter", "MI4 MI5"),
            ("switch_pair", "M1 M2 M3 M4 M5 M6 M7"),
            ("switch_pair", "MS1 MS2"),
            ("switch_pair", "MS3 MS4"),
            ("switch_pair", "MS5 MS6"),
        },
    ),
    "self-biased mirror above a string of bars, of which two are in parallel": (
        """
        M1 x y vdd vdd pch w=5u l=2u
        M2 y y vdd vdd pch w=5u l=2u
        M3 x x e1 vss nch w=5u l=1u
        M4 y x r1 vss nch w=5u l=1u
        R1 r1 r2 10k
        R2 r2 r3 10k
        R3 r3 e2 10k
        R4 r3 e2 10k
        Q1 vss vss e1 pnp
        Q2 vss vss e2 pnp m=8
        """,
        {
            ("current_mirror", "M1 M2", "M2", "simple"),
            ("current_mirror", "M3 M4", "M3", "self_biased"),
            ("bipolar_array", "Q1 Q2"),
            ("resistor_ratio", "R1 R2 R3 R4"),
        },
    ),
    "ladder whose bits and complements are ports": (
        """
        M1 i vdd x vss nch w=3u l=0.5u
        M2 i vdd p vss nch w=3u l=0.5u
        M3 x vdd q vss nch w=3u l=0.5u
        M4 x vdd y vss nch w=3u l=0.5u
        M5 y vdd r vss nch w=3u l=0.5u
        M6 y vdd z vss nch w=3u l=0.5u
        M7 z vdd dump vss nch w=3u l=0.5u
        MS1 p b0 o vss nch w=4u l=0.5u
        MS2 p en dump vss nch w=4u l=0.5u
        MS3 o b1 q vss nch w=4u l=0.5u
        MS4 q dn dump vss nch w=4u l=0.5u
        MS5 r b2 o vss nch w=4u l=0.5u
        MS6 dump start r vss nch w=4u l=0.5u
        """,
        {
            ("switch_pair", "M1 M2 M3 M4 M5 M6 M7"),
            ("switch_pair", "MS1 MS2"),
            ("switch_pair", "MS3 MS4"),
            ("switch_pair", "MS5 MS6"),
        },
    ),
    "folded cascode on bias ports": (
        """
        M0 t up vdd vdd pch w=8u l=1u
        M1 x inp t vdd pch w=8u l=0.5u
        M2 y inn t vdd pch w=8u l=0.5u
        M3 x dn vss vss nch w=6u l=1u
        M4 y dn vss vss nch w=6u l=1u
        M5 g cas x vss nch w=6u l=1u
        M6 out cas y vss nch w=6u l=1u
        M7 l g vdd vdd pch w=4u l=1u
        M8 r g vdd vdd pch w=4u l=1u
        M9 g upb l vdd pch w=4u l=1u
        M10 out upb r vdd pch w=4u l=1u
        """,
        {
            ("differential_pair", "M1 M2"),
            ("current_mirror", "M3 M4", None, "driven"),
            ("cascode_pair", "M5 M6"),
            ("current_mirror", "M7 M8", "M7", "wide_swing"),
            ("cascode_pair", "M10 M9"),
        },
    ),
    "mirror whose resistor is on a port": (
        """
        M1 i i vss vss nch w=2u l=4u
        M2 k i o vss nch w=8u l=4u
        R1 o vss 20k
        M3 i k vdd vdd pch w=2u l=4u
        M4 k k vdd vdd pch w=2u l=4u
        """,
        {("current_mirror", "M1 M2", "M1", "self_biased"), ("current_mirror", "M3 M4", "M4", "simple")},
    ),
    "start-up follower that looks like half of a latch": (
        """
        M1 k k vdd vdd pch w=1u l=2u
        M2 x k vdd vdd pch w=1u l=2u
        M3 vss x k vdd pch w=1u l=2u
        M4 i i vss vss nch w=1u l=4u
        M5 k i s vss nch w=4u l=4u
        R1 s vss 10k
        M6 i k vdd vdd pch w=1u l=2u
        M7 x x vss vss nch w=1u l=9u
        """,
        {("current_mirror", "M1 M2 M6", "M1", "simple"), ("current_mirror", "M4 M5", "M4", "self_biased")},
    ),
    "transistors with their sources on ground that compare two voltages": (
        """
        M1 a inp vss vss nch w=4u l=2u
        M2 out inn vss vss nch w=4u l=2u
        M3 a a vdd vdd pch w=4u l=1u
        M4 out a vdd vdd pch w=4u l=1u
        """,
        {("symmetric_pair", "M1 M2"), ("current_mirror", "M3 M4", "M3", "simple")},
    ),
    "two tails on a bias port": (
        """
        M1 a inp s1 vss nch w=4u l=1u
        M2 b inn s2 vss nch w=4u l=1u
        R1 s1 s2 1k
        M3 s1 bias vss vss nch w=8u l=2u
        M4 s2 bias vss vss nch w=8u l=2u
        """,
        {("differential_pair", "M1 M2"), ("current_mirror", "M3 M4", None, "driven")},
    ),
    "output of another gate length": (
        """
        M1 i i vss vss nch w=4u l=1u
        M2 o i vss vss nch w=4u l=1u
        M3 p i vss vss nch w=1u l=8u
        """,
        {("current_mirror", "M1 M2", "M1", "simple")},
    ),
    "start-up transistor of another gate length on a self-biased reference": (
        """
        M1 a a vss vss nch w=4u l=2u
        M2 b a s vss nch w=4u l=2u m=8
        R1 s vss 10k
        M3 a b vdd vdd pch w=6u l=4u
        M4 b b vdd vdd pch w=6u l=4u
        M5 k a vss vss nch w=1u l=1u
        M6 k vss vdd vdd pch w=1u l=20u
        M7 b k vss vss nch w=1u l=1u
        """,
        {("current_mirror", "M1 M2", "M1", "self_biased"), ("current_mirror", "M3 M4", "M4", "simple")},
    ),
    "loads that are the references of two mirrors": (
        """
        M0 t bias vss vss nch w=4u l=1u
        M1 a inp t vss nch w=8u l=1u
        M2 b inn t vss nch w=8u l=1u
        M3 a a vdd vdd pch w=4u l=1u
        M4 b b vdd vdd pch w=4u l=1u
        M5 c a vdd vdd pch w=8u l=1u
        M6 out b vdd vdd pch w=8u l=1u
        M7 c c vss vss nch w=4u l=1u
        M8 out c vss vss nch w=4u l=1u
        """,
        {
            ("differential_pair", "M1 M2"),
            ("load_pair", "M3 M4"),
            ("current_mirror", "M3 M5", "M3", "simple"),
            ("current_mirror", "M4 M6", "M4", "simple"),
            ("current_mirror", "M7 M8", "M7", "simple"),
        },
    ),
    "folded cascodes beside a mirror with the same bias": (
        """
        M0 t nb vss vss nch w=4u l=1u
        M1 x inp t vss nch w=4u l=1u
        M2 y inn t vss nch w=4u l=1u
        M3 x p vdd vdd pch w=4u l=1u
        M4 y p vdd vdd pch w=4u l=1u
        M5 r p vdd vdd pch w=4u l=1u
        M6 q p vdd vdd pch w=4u l=1u
        M7 p c r vdd pch w=4u l=1u
        M8 nb c q vdd pch w=4u l=1u
        M9 o1 c x vdd pch w=2u l=1u
        M10 o2 c y vdd pch w=2u l=1u
        """,
        {
            ("differential_pair", "M1 M2"),
            ("current_mirror", "M3 M4 M5 M6", "M5", "wide_swing"),
            ("cascode_pair", "M7 M8"),
            ("cascode_pair", "M10 M9"),
        },
    ),
    "three rows": (
        """
        M1 k k vss vss nch w=4u l=1u
        M2 l k vss vss nch w=4u l=1u
        M3 m m k vss nch w=4u l=1u
        M4 n m l vss nch w=4u l=1u
        M5 i i m vss nch w=4u l=1u
        M6 o i n vss nch w=4u l=1u
        """,
        {("current_mirror", "M1 M2", "M1", "cascode"), ("cascode_pair", "M3 M4"), ("cascode_pair", "M5 M6")},
    ),
    "two sources in a loop of an amplifier": (
        """
        M1 i g vdd vdd pch w=4u l=1u
        M2 o g vdd vdd pch w=4u l=1u
        MA1 n cas t vss nch w=2u l=1u
        MA2 g i t vss nch w=2u l=1u
        MA3 n n vdd vdd pch w=2u l=1u
        MA4 g n vdd vdd pch w=2u l=1u
        MA5 t bias vss vss nch w=2u l=1u
        """,
        {
            ("differential_pair", "MA1 MA2"),
            ("current_mirror", "MA3 MA4", "MA3", "simple"),
            ("current_mirror", "M1 M2", None, "driven"),
        },
    ),
    "gate behind a filter": (
        """
        M1 i i vss vss nch w=4u l=1u
        R1 i g 100k
        C1 g vss 10p
        M2 o g vss vss nch w=4u l=1u
        """,
        {("current_mirror", "M1 M2", "M1", "switched")},
    ),
    "resistors that switches of their own lay between two nets": (
        """
        R1 out x rhigh w=1u l=10u m=1
        R2 out y rhigh w=1u l=10u m=2
        R3 out z rhigh w=1u l=10u m=4
        M1 i b0 x vss nch w=2u l=0.5u
        M2 i b1 y vss nch w=4u l=0.5u
        M3 i b2 z vss nch w=8u l=0.5u
        """,
        {("resistor_ratio", "R1 R2 R3")},
    ),
    "bias resistors of three blocks, all switched by one signal": (
        """
        M1 i i vdd vdd pch w=4u l=1u
        M2 o i vdd vdd pch w=4u l=1u
        R1 i x rhigh w=1u l=10u
        R2 i y rhigh w=1u l=10u
        R3 i z rhigh w=1u l=10u
        M3 x en vss vss nch w=2u l=0.5u
        M4 y en vss vss nch w=2u l=0.5u
        M5 z en vss vss nch w=2u l=0.5u
        """,
        {("current_mirror", "M1 M2", "M1", "simple")},
    ),
    "diodes to a rail in place of bipolar ones": (
        """
        M1 vss vss o vdd pch w=9u l=5u
        M2 vss vss i vdd pch w=9u l=5u
        M3 o cas vdd vdd pch w=9u l=9u
        M4 i cas vdd vdd pch w=9u l=9u
        M5 cas cas vdd vdd pch w=9u l=9u
        R1 cas vss 9k
        """,
        {("current_mirror", "M3 M4 M5", "M5", "simple"), ("load_pair", "M1 M2")},
    ),
    "stacked pairs of one size above a resistor": (
        """
        R1 o vdd 1k
        R2 out vdd 1k
        M1 o inp x vss nch w=2u l=0.2u
        M2 out inn x vss nch w=2u l=0.2u
        M3 x b0 y vss nch w=2u l=0.2u
        M4 o b1 y vss nch w=2u l=0.2u
        R3 y vss 400
        """,
        {("differential_pair", "M1 M2"), ("differential_pair", "M3 M4"), ("resistor_pair", "R1 R2")},
    ),
    "a resistor under the loads of a pair, and one that an amplifier holds on a divider, of other units": (
        """
        RC x vdd rhigh w=20u l=2.65u
        R1 o x rhigh w=20u l=5.66u
        R2 out x rhigh w=20u l=5.66u
        M1 o i t vss nch w=9u l=0.3u
        M2 out y t vss nch w=9u l=0.3u
        M3 t bias vss vss nch w=20u l=0.5u
        RA i vdd rhigh w=0.5u l=78u
        RB i vss rhigh w=0.5u l=78u
        RD y vss rhigh w=1u l=110u
        """,
        {("differential_pair", "M1 M2"), ("resistor_pair", "R1 R2"), ("resistor_ratio", "RA RB")},
    ),
    "mirror above switches of its size on a port": (
        """
        M1 i i x vdd pch w=4u l=1u
        M2 o i y vdd pch w=4u l=1u
        M3 out i z vdd pch w=4u l=1u
        M4 x en vdd vdd pch w=4u l=1u
        M5 y en vdd vdd pch w=4u l=1u
        M6 z en vdd vdd pch w=4u l=1u
        M7 fb fb vss vss nch w=4u l=1u
        M8 fb2 fb vss vss nch w=4u l=1u
        """,
        {
            ("current_mirror", "M1 M2 M3", "M1", "degenerated"),
            ("switch_pair", "M4 M5 M6"),
            ("current_mirror", "M7 M8", "M7", "simple"),
        },
    ),
    "a power transistor and one of another unit on one amplifier": (
        """
        M1 a inp t vss nch w=4u l=1u
        M2 g inn t vss nch w=4u l=1u
        M3 a a vdd vdd pch w=4u l=1u
        M4 g a vdd vdd pch w=4u l=1u
        M5 t bias vss vss nch w=4u l=2u
        M6 out g vdd vdd pch w=900u l=0.5u nf=50
        M7 o g vdd vdd pch w=3u l=0.5u
        """,
        {("differential_pair", "M1 M2"), ("current_mirror", "M3 M4", "M3", "simple")},
    ),
    "capacitors turned against each other": (
        """
        C1 o out mim w=9u l=9u
        C2 out o mim w=9u l=9u
        M1 o inp vss vss nch w=4u l=1u
        M2 out o vss vss nch w=9u l=1u
        """,
        {("capacitor_ratio", "C1 C2")},
    ),
    "bank of capacitors with a bridge and two in series": (
        """
        C1 b1 low mim w=9u l=9u
        C2 b2 low mim w=9u l=9u m=2
        CB low top mim w=9u l=9u
        C4 b4 top mim w=9u l=9u m=2
        CS mid top mim w=9u l=9u
        CT b0 end mim w=9u l=9u
        CU end mid mim w=9u l=9u
        """,
        {("capacitor_ratio", "C1 C2 C4 CB CS CT CU")},
    ),
    "four capacitors in series behind a switch are one": (
        """
        M1 x inp y vss nch w=4u l=0.2u
        C1 x c1 mim w=9u l=9u
        C2 c1 c2 mim w=9u l=9u
        C3 c2 c3 mim w=9u l=9u
        C4 c3 out mim w=9u l=9u
        """,
        set(),
    ),
    "gates behind several resistors": (
        """
        M1 i i vss vss nch w=4u l=1u
        R1 i x 10k
        R2 x y 10k
        R3 y g 10k
        C1 x vss 10p
        C2 g vss 10p
        M2 o g vss vss nch w=8u l=1u
        M3 p g vss vss nch w=8u l=1u
        """,
        {("current_mirror", "M1 M2 M3", "M1", "switched")},
    ),
    "inputs that resistors bias from one diode, of which a signal drives one": (
        """
        M1 i i vss vss nch w=4u l=1u
        R1 i x 10k
        R2 i y 10k
        C1 out x 10p
        M2 o x vss vss nch w=8u l=1u
        M3 p y vss vss nch w=8u l=1u
        M4 u inp o vss nch w=4u l=0.2u
        M5 v inn o vss nch w=4u l=0.2u
        M6 v inp p vss nch w=4u l=0.2u
        M7 u inn p vss nch w=4u l=0.2u
        R3 vdd u 1k
        R4 vdd v 1k
        """,
        {
            ("symmetric_pair", "M2 M3"),
            ("differential_pair", "M4 M5"),
            ("differential_pair", "M6 M7"),
            ("resistor_pair", "R3 R4"),
        },
    ),
    "bases behind resistors": (
        """
        Q1 i i e1 npn m=1
        R1 e1 vss 80
        R2 i x 1k
        R3 x b 1k
        C1 in b 1p
        Q2 o b e2 npn m=8
        R4 e2 vss 10
        """,
        {("bipolar_array", "Q1 Q2"), ("resistor_ratio", "R1 R4")},
    ),
    "gates behind a diode": (
        """
        M1 a a vss vss nch w=4u l=1u
        D1 a g dio area=1p pj=4u
        M2 o1 g vss vss nch w=4u l=1u
        M3 o2 g vss vss nch w=4u l=1u
        """,
        set(),
    ),
    "cascodes in wells of their own, on bias ports": (
        """
        M0 t bias vss vss nch w=8u l=1u
        M1 o1 inp t vss nch w=4u l=1u
        M2 o2 inn t vss nch w=4u l=1u
        M3 o1 cas x x pch w=4u l=1u
        M4 o2 cas y y pch w=4u l=1u
        M5 x up vdd vdd pch w=4u l=1u
        M6 y up vdd vdd pch w=4u l=1u
        """,
        {("differential_pair", "M1 M2"), ("cascode_pair", "M3 M4"), ("load_pair", "M5 M6")},
    ),
    "ring of starved inverters": (
        "MB p ctl vss vss nch w=1u l=1u\nMD p p vdd vdd pch w=2u l=1u\n"
        + "".join(
            f"MP{i} n{(i + 1) % 3} n{i} h{i} vdd pch w=2u l=0.2u\nMN{i} n{(i + 1) % 3} n{i} l{i} vss nch w=1u l=0.2u\n"
            f"MH{i} h{i} p vdd vdd pch w=2u l=1u\nML{i} l{i} ctl vss vss nch w=1u l=1u\nC{i} n{(i + 1) % 3} vss 10f\n"
            for i in range(3)
        ),
        {
            ("current_mirror", "MD MH0 MH1 MH2", "MD", "simple"),
            ("current_mirror", "MB ML0 ML1 ML2", None, "driven"),
            *(("inverter", f"MN{i} MP{i}") for i in range(3)),
            ("ring_stage", " ".join(f"{kind}{i}" for kind in ("C", "MH", "ML", "MN", "MP") for i in range(3))),
            ("capacitor_ratio", "C0 C1 C2"),
        },
    ),
    "ring of differential stages": (
        "".join(
            f"MA{i} x{(i + 1) % 4} x{i} t{i} vss nch w=4u l=0.2u\nMB{i} y{(i + 1) % 4} y{i} t{i} vss nch w=4u l=0.2u\n"
            f"RA{i} vdd x{(i + 1) % 4} 2k\nRB{i} vdd y{(i + 1) % 4} 2k\nMT{i} t{i} nb vss vss nch w=4u l=1u\n"
            for i in range(4)
        )
        + "MR nb nb vss vss nch w=4u l=1u\n",
        {
            ("current_mirror", "MR MT0 MT1 MT2 MT3", "MR", "simple"),
            *(("differential_pair", f"MA{i} MB{i}") for i in range(4)),
            *(("resistor_pair", f"RA{i} RB{i}") for i in range(4)),
            ("ring_stage", " ".join(f"{kind}{i}" for kind in ("MA", "MB", "MT", "RA", "RB") for i in range(4))),
        },
    ),
    "ring on a regulated supply from a port": (
        "".join(
            f"MP{i} n{(i + 1) % 3} n{i} ctl vdd pch w=2u l=0.2u\nMN{i} n{(i + 1) % 3} n{i} vss vss nch w=1u l=0.2u\n"
            for i in range(3)
        ),
        {
            *(("inverter", f"MN{i} MP{i}") for i in range(3)),
            ("ring_stage", "MN0 MN1 MN2 MP0 MP1 MP2"),
        },
    ),
    "ring of inverters in pairs, with latches between them": (
        "".join(
            f"MP{i}{a} {b}{(i + 1) % 4} {a}{i} vdd vdd pch w=4u l=0.2u\n"
            f"MN{i}{a} {b}{(i + 1) % 4} {a}{i} vss vss nch w=2u l=0.2u\n"
            f"ML{i}{a} {b}{(i + 1) % 4} {a}{(i + 1) % 4} vdd vdd pch w=1u l=0.2u\n"
            f"MK{i}{a} {b}{(i + 1) % 4} {a}{(i + 1) % 4} vss vss nch w=1u l=0.2u\n"
            for i in range(4)
            for a, b in ("pq", "qp")
        ),
        {
            *(("inverter", f"MN{i}{a} MP{i}{a}") for i in range(4) for a in "pq"),
            *(("cross_coupled_pair", f"M{k}{i}p M{k}{i}q") for i in range(4) for k in "LK"),
            ("ring_stage", " ".join(f"M{k}{i}{a}" for k in "KLNP" for i in range(4) for a in "pq")),
        },
    ),
    "divider, its compensation and a pole": (
        """
        R1 out fb 200k
        R2 fb vss 100k
        R3 n z 10k
        C1 z out 1p
        R4 fb2 flt 10k
        C2 flt vss 1p
        M1 n fb t vss nch w=4u l=1u
        M2 q flt t vss nch w=4u l=1u
        M3 t bias vss vss nch w=4u l=1u
        M4 n q vdd vdd pch w=4u l=1u
        M5 q q vdd vdd pch w=4u l=1u
        """,
        {
            ("differential_pair", "M1 M2"),
            ("current_mirror", "M4 M5", "M5", "simple"),
            ("resistor_ratio", "R1 R2"),
        },
    ),
    "inverting stage and a summing one behind it, of equal resistors": (
        """
        R1 fb x 50k
        R2 x y 50k
        R3 y z 50k
        R4 z out 50k
        R5 b0 z 50k
        M1 y x t vss nch w=4u l=1u
        M2 q vcm t vss nch w=4u l=1u
        M3 t nb vss vss nch w=4u l=1u
        M4 y q vdd vdd pch w=4u l=1u
        M5 q q vdd vdd pch w=4u l=1u
        M6 out z u vss nch w=4u l=1u
        M7 r vcm u vss nch w=4u l=1u
        M8 u nb vss vss nch w=4u l=1u
        M9 out r vdd vdd pch w=4u l=1u
        M10 r r vdd vdd pch w=4u l=1u
        """,
        {
            ("differential_pair", "M1 M2"),
            ("differential_pair", "M6 M7"),
            ("current_mirror", "M3 M8", None, "driven"),
            ("current_mirror", "M4 M5", "M5", "simple"),
            ("current_mirror", "M10 M9", "M10", "simple"),
            ("resistor_ratio", "R1 R2 R3 R4 R5"),
        },
    ),
    "inverter above a diode": (
        """
        M1 o inp k vss nch w=1u l=0.2u
        M2 o inp vdd vdd pch w=2u l=0.2u
        M3 k k vss vss nch w=1u l=0.2u
        """,
        {("inverter", "M1 M2")},
    ),
    "tail in two halves, one on a bias and one on the common mode": (
        """
        M1 n inp t vss nch w=4u l=1u
        M2 q inn t vss nch w=4u l=1u
        M3 t bias vss vss nch w=3u l=2u
        M4 t ctl vss vss nch w=3u l=2u
        M5 k bias vss vss nch w=3u l=2u
        M6 k k vdd vdd pch w=6u l=2u
        M7 n k vdd vdd pch w=6u l=2u
        M8 q k vdd vdd pch w=6u l=2u
        """,
        {
            ("differential_pair", "M1 M2"),
            ("current_mirror", "M3 M5", None, "driven"),
            ("current_mirror", "M6 M7 M8", "M6", "simple"),
        },
    ),
    "reference whose amplifier feeds both of its inputs through resistors": (
        """
        M1 q x t vss nch w=4u l=1u
        M2 r y t vss nch w=4u l=1u
        M3 t nb vss vss nch w=6u l=1u
        M4 q r vdd vdd pch w=4u l=1u
        M5 r r vdd vdd pch w=4u l=1u
        M6 ref q vdd vdd pch w=9u l=1u
        R1 ref x rpoly w=1u l=40u
        R2 ref y rpoly w=1u l=80u
        R3 y e rpoly w=1u l=10u
        Q1 vss vss x pnp m=1
        Q2 vss vss e pnp m=8
        """,
        {
            ("differential_pair", "M1 M2"),
            ("current_mirror", "M4 M5", "M5", "simple"),
            ("bipolar_array", "Q1 Q2"),
            ("resistor_ratio", "R1 R2 R3"),
        },
    ),
    "ladder": (
        "".join(f"RS{i} n{i} n{i + 1} rpoly w=1u l=10u\nRP{i} n{i} b{i} rpoly w=1u l=20u\n" for i in range(3))
        + "RT n3 vss rpoly w=1u l=20u\n",
        {("resistor_ratio", "RP0 RP1 RP2 RS0 RS1 RS2 RT")},
    ),
    "bank of unit capacitors, and two on the output of an amplifier": (
        """
        C0 top b0 cmim w=5u l=5u m=1
        C1 top b1 cmim w=5u l=5u m=2
        C2 top b2 cmim w=5u l=5u m=4
        M1 out top vss vss nch w=4u l=1u
        M2 out bias vdd vdd pch w=4u l=1u
        C3 out x cmim w=9u l=9u
        C4 out y cmim w=9u l=9u
        """,
        {("capacitor_ratio", "C0 C1 C2")},
    ),
    "emitters that differ, on one base": (
        """
        Q1 c1 b e1 npn m=8
        Q2 c2 b e2 npn m=1
        R1 e1 e2 10k
        R2 e2 vss 50k
        """,
        {("bipolar_array", "Q1 Q2"), ("resistor_ratio", "R1 R2")},
    ),
    "two sources on the output of a buffer, of another length than its load": (
        """
        M1 x in t vss nch w=4u l=1u
        M2 o o t vss nch w=4u l=1u
        M3 t bias vss vss nch w=4u l=1u
        M4 x x vdd vdd pch w=4u l=1u
        M5 o x vdd vdd pch w=4u l=1u
        M6 e1 o vdd vdd pch w=2u l=3u
        M7 e2 o vdd vdd pch w=2u l=3u m=5
        Q1 vss vss e1 pnp
        Q2 vss vss e2 pnp
        """,
        {
            ("differential_pair", "M1 M2"),
            ("current_mirror", "M4 M5", "M4", "simple"),
            ("current_mirror", "M6 M7", None, "driven"),
            ("bipolar_array", "Q1 Q2"),
        },
    ),
    "two buffers with stacked inputs, images of each other about the stage behind them": (
        BUFFER.format("A", "fb", "inp")
        + BUFFER.format("B", "fb2", "inn")
        + """
        MC1 o fb tc vss nch w=3u l=1u
        MC2 out fb2 tc vss nch w=3u l=1u
        MC3 tc bias vss vss nch w=4u l=1u
        R1 vdd o 5k
        R2 vdd out 5k
        """,
        {
            ("differential_pair", "MC1 MC2"),
            *(("differential_pair", f"M{x}1 M{x}2") for x in "AB"),
            *(("symmetric_pair", f"M{x}3 M{x}4") for x in "AB"),
            *(("current_mirror", f"M{x}6 M{x}7", f"M{x}6", "simple") for x in "AB"),
            ("current_mirror", "MA5 MA9 MB5 MB9 MC3", None, "driven"),
            ("symmetric_pair", "MA8 MB8"),
            ("resistor_pair", "R1 R2"),
        },
    ),
    "class-AB input stage, whose halves meet on its inputs": (
        """
        M1 a inp x vss nch w=8u l=0.5u
        M2 b inn y vss nch w=8u l=0.5u
        M3 c gp x vdd pch w=9u l=0.5u
        M4 d gn y vdd pch w=9u l=0.5u
        M5 gp gp p vdd pch w=9u l=0.5u
        M6 gn gn q vdd pch w=9u l=0.5u
        M7 vdd inn p vss nch w=8u l=0.5u
        M8 vdd inp q vss nch w=8u l=0.5u
        MI gp bias vss vss nch w=3u l=1u
        MJ gn bias vss vss nch w=3u l=1u
        MA a a vdd vdd pch w=6u l=1u
        MB b b vdd vdd pch w=6u l=1u
        MC o a vdd vdd pch w=6u l=1u
        MD out b vdd vdd pch w=6u l=1u
        ME c c vss vss nch w=5u l=1u
        MF d d vss vss nch w=5u l=1u
        MG o c vss vss nch w=5u l=1u
        MH out d vss vss nch w=5u l=1u
        """,
        {
            ("symmetric_pair", "M1 M2"),
            ("symmetric_pair", "M3 M4"),
            ("load_pair", "M5 M6"),
            ("symmetric_pair", "M7 M8"),
            ("load_pair", "MI MJ"),
            ("load_pair", "MA MB"),
            ("load_pair", "ME MF"),
            *(("current_mirror", f"M{x} M{y}", f"M{x}", "simple") for x, y in ("AC", "BD", "EG", "FH")),
        },
    ),
    "mixer without current before common sources, with a bias of its own": (
        """
        C1 cas gp 1p
        C2 ctl gn 1p
        C3 inp x 1p
        R1 gp sp 1k
        R2 gn sn 1k
        R3 x y 1k
        M1 x gp sp vss nch w=4u l=0.1u
        M2 x gn sn vss nch w=4u l=0.1u
        M3 o sp vss vss nch w=6u l=0.2u
        M4 out sn vss vss nch w=6u l=0.2u
        M5 y y vss vss nch w=1u l=1u
        R4 o vdd 3k
        R5 out vdd 3k
        """,
        {
            ("differential_pair", "M1 M2"),
            ("symmetric_pair", "M3 M4"),
            ("resistor_pair", "R1 R2"),
            ("resistor_pair", "R4 R5"),
            ("capacitor_pair", "C1 C2"),
        },
    ),
    "two crossed pairs on one output, each above a transistor on ground": (
        """
        M1 o cas x vss nch w=8u l=0.2u
        M2 out ctl x vss nch w=8u l=0.2u
        M3 out cas y vss nch w=8u l=0.2u
        M4 o ctl y vss nch w=8u l=0.2u
        M5 x inp vss vss nch w=9u l=0.3u
        M6 y inn vss vss nch w=9u l=0.3u
        R1 vdd o 2k
        R2 vdd out 2k
        """,
        {
            ("differential_pair", "M1 M2"),
            ("differential_pair", "M3 M4"),
            ("symmetric_pair", "M5 M6"),
            ("resistor_pair", "R1 R2"),
        },
    ),
    "junctions whose bases are on their emitters": (
        """
        MP1 i o vdd vdd pch w=6u l=1u
        MP2 cas o vdd vdd pch w=6u l=1u
        Q1 i vss vss pnp m=1
        Q2 k vss vss pnp m=6
        R1 cas k 5k
        M1 o en vss vss nch w=1u l=1u
        """,
        {("bipolar_array", "Q1 Q2"), ("current_mirror", "MP1 MP2", None, "driven")},
    ),
    "mirror above a junction and above a junction with a resistor, each with a resistor beside it": (
        """
        MP1 p p vdd vdd pch w=8u l=4u
        MP2 g p vdd vdd pch w=8u l=4u
        MP3 o p vdd vdd pch w=8u l=4u
        M1 g g ea vss nch w=4u l=2u
        M2 p g eb vss nch w=4u l=2u
        Q1 vss vss ea pnp m=1
        R1 ea vss 9k
        R2 eb e2 2k
        Q2 vss vss e2 pnp m=8
        R3 eb vss 8k
        """,
        {
            ("current_mirror", "MP1 MP2 MP3", "MP1", "simple"),
            ("current_mirror", "M1 M2", "M1", "self_biased"),
            ("bipolar_array", "Q1 Q2"),
            ("resistor_ratio", "R1 R2 R3"),
        },
    ),
    "mirror above diodes of the other type at the rail, in place of junctions": (
        """
        MP1 p p vdd vdd pch w=8u l=4u
        MP2 n p vdd vdd pch w=8u l=4u
        MP3 o p vdd vdd pch w=8u l=4u
        M1 n n a vss nch w=4u l=2u
        M2 p n b vss nch w=4u l=2u
        MD1 vss vss a vdd pch w=3u l=5u
        R1 b c 9k
        MD2 vss vss c vdd pch w=30u l=5u
        R2 o e 81k
        MD3 vss vss e vdd pch w=30u l=5u
        """,
        {
            ("current_mirror", "MP1 MP2 MP3", "MP1", "simple"),
            ("current_mirror", "M1 M2", "M1", "self_biased"),
            ("resistor_ratio", "R1 R2"),
        },
    ),
    "self-biased loop with a channel in place of its resistor": (
        """
        MP1 p p vdd vdd pch w=8u l=4u
        MP2 n p vdd vdd pch w=8u l=4u
        MP3 b p vdd vdd pch w=8u l=4u
        M1 n n vss vss nch w=4u l=2u
        M2 p n r vss nch w=16u l=2u
        M3 r b vss vss nch w=1u l=20u
        M4 b b vss vss nch w=1u l=20u
        """,
        {
            ("current_mirror", "MP1 MP2 MP3", "MP1", "simple"),
            ("current_mirror", "M1 M2", "M1", "degenerated"),
            ("current_mirror", "M3 M4", "M4", "simple"),
        },
    ),
    "diode that biases the cascode above a mirror": (
        """
        M1 i i vss vss nch w=4u l=2u
        M2 a i vss vss nch w=4u l=2u
        M3 o cas a vss nch w=16u l=1u
        M4 cas cas vss vss nch w=1u l=1u
        """,
        {("current_mirror", "M1 M2", "M1", "simple")},
    ),
    "two sources on an amplifier, with the resistor of a start-up beside one": (
        """
        M1 x inp t vss nch w=8u l=1u
        M2 g inn t vss nch w=8u l=1u
        M3 x x vdd vdd pch w=4u l=1u
        M4 g x vdd vdd pch w=4u l=1u
        M5 t bias vss vss nch w=4u l=1u
        MS1 n1 g vdd vdd pch w=6u l=1u
        MS2 n2 g vdd vdd pch w=6u l=1u
        MT n1 vss vdd vdd pch w=0.5u l=20u
        MN1 n1 n1 vss vss nch w=4u l=1u
        MN2 n2 n2 vss vss nch w=1u l=1u
        """,
        {
            ("differential_pair", "M1 M2"),
            ("current_mirror", "M3 M4", "M3", "simple"),
            ("current_mirror", "MS1 MS2", None, "driven"),
        },
    ),
    "stages starved by sources shorter than the mirror on their gate": (
        """
        M1 bias bias vss vss nch w=4u l=1u
        M2 p bias vss vss nch w=4u l=1u
        M3 p p vdd vdd pch w=8u l=1u
        """
        + "".join(
            INVERTER.format(i, f"n{i}", f"n{(i + 1) % 3}")
            .replace("vdd vdd", f"h{i} vdd")
            .replace("vss vss", f"l{i} vss")
            + f"MH{i} h{i} p vdd vdd pch w=8u l=0.5u\nML{i} l{i} bias vss vss nch w=4u l=0.5u\n"
            for i in range(3)
        ),
        {
            ("current_mirror", "M1 M2", "M1", "simple"),
            ("current_mirror", "ML0 ML1 ML2", None, "driven"),
            ("current_mirror", "MH0 MH1 MH2", None, "driven"),
            *(("inverter", f"MN{i} MP{i}") for i in range(3)),
            ("ring_stage", " ".join(f"M{kind}{i}" for kind in "HLNP" for i in range(3))),
        },
    ),
    "pair of stacks of equal transistors above a tail": (
        """
        M1 t bias vdd vdd pch w=3u l=1u
        M2 a inp t vdd pch w=3u l=0.2u
        M3 x inp a vdd pch w=3u l=0.2u
        M4 b inn t vdd pch w=3u l=0.2u
        M5 o inn b vdd pch w=3u l=0.2u
        M6 x x vss vss nch w=1u l=1u
        M7 o x vss vss nch w=1u l=1u
        """,
        {("differential_pair", "M2 M3 M4 M5"), ("current_mirror", "M6 M7", "M6", "simple")},
    ),
    "two pairs with resistors between their sources, added at two nodes": (
        "".join(
            f"M{x}1 y {one} s{x} vss nch w=8u l=1u\nM{x}2 x {two} r{x} vss nch w=8u l=1u\nR{x} s{x} r{x} 20k\n"
            f"M{x}3 s{x} bias vss vss nch w=4u l=2u\nM{x}4 r{x} bias vss vss nch w=4u l=2u\n"
            for x, one, two in (("A", "inp", "ctl"), ("B", "ctl", "inn"))
        )
        + "ML1 x x vdd vdd pch w=4u l=1u\nML2 y x vdd vdd pch w=4u l=1u\n",
        {
            ("differential_pair", "MA1 MA2"),
            ("differential_pair", "MB1 MB2"),
            ("current_mirror", "MA3 MA4 MB3 MB4", None, "driven"),
            ("current_mirror", "ML1 ML2", "ML1", "simple"),
            ("resistor_ratio", "RA RB"),
        },
    ),
    "varactors on the two sides of an oscillator": (
        """
        M1 up dn t vss nch w=8u l=0.2u
        M2 dn up t vss nch w=8u l=0.2u
        M3 t bias vss vss nch w=8u l=1u
        XC1 up ctl vss cap_var w=5u l=1u
        XC2 dn ctl vss cap_var w=5u l=1u
        L1 up vdd 1n
        L2 dn vdd 1n
        """,
        {("cross_coupled_pair", "M1 M2"), ("capacitor_pair", "XC1 XC2")},
    ),
    "amplifier above a switch to ground, where a diode of one and a drain of another cascode end": (
        """
        ME g en vss vss nch w=40u l=0.5u
        MT t bias vdd vdd pch w=8u l=1u
        M1 p inp t vdd pch w=9u l=1u
        M2 q inn t vdd pch w=9u l=1u
        M3 x cas p vss nch w=2u l=1u
        M4 o cas q vss nch w=2u l=1u
        M5 p x g vss nch w=4u l=1u
        M6 q x g vss nch w=4u l=1u
        M7 x bias vdd vdd pch w=4u l=1u
        M8 o bias vdd vdd pch w=4u l=1u
        M9 i i g vss nch w=4u l=1u
        MA u i g vss nch w=4u l=1u
        MB u u y vdd pch w=5u l=1u
        MC g u z vdd pch w=1u l=1u
        MD v v z vdd pch w=6u l=1u
        MF y y vdd vdd pch w=5u l=1u
        MG z y vdd vdd pch w=5u l=1u
        MH v i g vss nch w=4u l=1u
        MJ n o vdd vdd pch w=2u l=0.2u
        MK n o g vss nch w=1u l=0.2u
        """,
        {
            ("differential_pair", "M1 M2"),
            ("current_mirror", "M5 M6", "M5", "wide_swing"),
            ("cascode_pair", "M3 M4"),
            ("current_mirror", "M7 M8 MT", None, "driven"),
            ("current_mirror", "M9 MA MH", "M9", "simple"),
            ("current_mirror", "MF MG", "MF", "simple"),
            ("inverter", "MJ MK"),
        },
    ),
    "inverters behind which a switch samples, and one behind a clocked inverter": (
        """
        M1 x inp vdd vdd pch w=2u l=0.2u
        M2 x inp vss vss nch w=1u l=0.2u
        M3 s en x vss nch w=1u l=0.2u
        M4 s fb i vss nch w=1u l=0.2u
        C1 s o 1p
        M5 y inn vdd vdd pch w=2u l=0.2u
        M6 y inn vss vss nch w=1u l=0.2u
        M7 y up w vdd pch w=1u l=0.2u
        C2 w o 1p
        """,
        {("inverter", "M1 M2"), ("inverter", "M5 M6")},
    ),
    "divider of five equal bars with the capacitances of its wires": (
        """
        R1 vdd a rpoly w=1u l=20u
        R2 b a rpoly w=1u l=20u
        R3 b o rpoly w=1u l=20u
        R4 c o rpoly w=1u l=20u
        R5 c vss rpoly w=1u l=20u
        C1 a vss 3f
        C2 vdd b 1.2f
        C3 c o 9f
        """,
        {("resistor_ratio", "R1 R2 R3 R4 R5")},
    ),
    "two comparators that set and reset a latch": (
        "".join(
            f"M1{x} k{x} {p} t{x} vss nch w=4u l=0.5u\nM2{x} h{x} {n} t{x} vss nch w=4u l=0.5u\n"
            f"M3{x} t{x} bias vss vss nch w=8u l=1u\nM4{x} h{x} h{x} vdd vdd pch w=4u l=1u\n"
            f"M5{x} k{x} h{x} vdd vdd pch w=4u l=1u\n" + INVERTER.format(x, f"k{x}", f"s{x}")
            for x, p, n in (("A", "ctl", "inp"), ("B", "inn", "ctl"))
        )
        + "".join(
            f"ML1{x} {out} s{x} vss vss nch w=2u l=0.5u\nML2{x} {out} {back} vss vss nch w=2u l=0.5u\n"
            f"ML3{x} m{x} s{x} vdd vdd pch w=4u l=0.5u\nML4{x} {out} {back} m{x} vdd pch w=4u l=0.5u\n"
            for x, out, back in (("A", "o", "out"), ("B", "out", "o"))
        ),
        {
            *(("differential_pair", f"M1{x} M2{x}") for x in "AB"),
            *(("current_mirror", f"M4{x} M5{x}", f"M4{x}", "simple") for x in "AB"),
            ("current_mirror", "M3A M3B", None, "driven"),
            *(("inverter", f"MN{x} MP{x}") for x in "AB"),
            *(("cross_coupled_pair", f"ML{n}A ML{n}B") for n in (2, 4)),
            ("symmetric_pair", "ML3A ML3B"),
        },
    ),
    "mirror behind a filter, with a transistor of a start-up on its gate": (
        """
        M1 i i vss vss nch w=4u l=2u
        R1 i g 500k
        C1 g vss 2p
        M2 o g vss vss nch w=16u l=2u
        M3 s g vss vss nch w=1u l=1u
        MS s en vdd vdd pch w=1u l=9u
        """,
        {("current_mirror", "M1 M2", "M1", "switched")},
    ),
    "bandgap whose wide transistors get their base current through a resistor": (
        "M1 a b vdd vdd pch w=8u l=2u\nM2 b b vdd vdd pch w=8u l=2u\nQ1 a a e npn13G2\nR3 a o 5k\n"
        + "".join(f"Q2{i} b o f npn13G2\n" for i in range(8))
        + "R1 f e 1k\nR2 e vss 3k\n",
        {
            ("current_mirror", "M1 M2", "M2", "simple"),
            ("bipolar_array", " ".join(["Q1", *(f"Q2{i}" for i in range(8))])),
            ("resistor_ratio", "R1 R2"),
        },
    ),
    "narrow follower beside the wide diode of a cascode, above one source": (
        """
        M1 p p vdd vdd pch w=10u l=2u
        M2 h p vdd vdd pch w=20u l=2u
        M3 vss i h vdd pch w=1u l=1u
        M4 o o h vdd pch w=5u l=1u
        M5 p i i vdd pch w=10u l=1u
        """,
        {("current_mirror", "M1 M2", "M1", "simple")},
    ),
}


@functools.cache  # a circuit is never changed, and each is read for several tests
def circuit_of(text, ports="vdd vss"):
    cards = "\n".join(line.strip() for line in text.strip().splitlines())
    return read_netlist(NetlistText(f".subckt dut {ports}\n{cards}\n.ends\n"), identify_modules=False)


def stated(groups, names=None):
    """Return type and sorted devices of each group; of mirrors also the reference, None without one, and topology."""
    found = set()
    for group in groups:
        own = [names[name] if names else name for name in group.devices]
        entry = (group.type, " ".join(sorted(own)))
        if group.type == "current_mirror":
            topology, reference = group.properties["topology"], group.properties["reference"]
            reference = names[reference] if names else reference
            entry += (None if topology == "driven" else reference, topology)
        found.add(entry)
    return found


PORTS = "vdd vss inp inn bias ctl en dn up upb start o out i cas fb fb2 b0 b1 b2"


@pytest.mark.parametrize("name", CIRCUITS)
def test_the_groups_of_a_circuit_are_those_of_an_engineer(name):
    text, expected = CIRCUITS[name]
    assert stated(recognise(circuit_of(text, PORTS))) == expected


@pytest.mark.parametrize("name", CIRCUITS)
@pytest.mark.parametrize("seed", in_this_run([1], range(4)))
def test_names_and_order_change_no_group(name, seed):
    text, expected = CIRCUITS[name]
    circuit = circuit_of(text, PORTS)
    chance = random.Random(seed)
    devices = list(circuit.devices)
    chance.shuffle(devices)
    new = [f"D{number}" for number in range(len(devices))]
    chance.shuffle(new)
    old = {name: device.id for name, device in zip(new, devices, strict=True)}
    rails = {"vdd", "vss"}
    nets = [net for net in circuit.nets if net not in rails]
    other = dict(zip(nets, chance.sample([f"k{number}" for number in range(len(nets))], len(nets)), strict=True))
    devices = [
        replace(device, id=own, terminals={t: other.get(net, net) for t, net in device.terminals.items()})
        for own, device in zip(new, devices, strict=True)
    ]
    devices = [d.with_ends_exchanged() if d.is_mos and chance.random() < 0.5 else d for d in devices]
    ports = tuple(other.get(port, port) for port in circuit.ports)
    changed = oriented(replace(circuit, devices=tuple(devices), ports=ports))
    assert stated(recognise(changed), old) == expected


NOTHING = {
    "switches on an enable port": """
        M1 a en vss vss nch w=1u l=0.2u
        M2 b en vss vss nch w=1u l=0.2u
        M3 c en vss vss nch w=1u l=0.2u
    """,
    "switches of two phases": """
        M1 inp phi1 ap vss nch w=1u l=0.2u
        M2 agnd phi2 ap vss nch w=1u l=0.2u
        M3 inn phi1 an vss nch w=1u l=0.2u
        M4 agnd phi2 an vss nch w=1u l=0.2u
        C1 ap x 100f
        C2 an y 100f
    """,
    "switches of two phases on the input of an amplifier": """
        M1 x phi2 y vss nch w=1u l=0.2u
        M2 x phi1 a vss nch w=1u l=0.2u
        M3 w phi2 x vss nch w=1u l=0.2u
        M4 a phi1 y vss nch w=1u l=0.2u
        M5 q x vdd vdd pch w=2u l=0.2u
        M6 q x vss vss nch w=1u l=0.2u
        M7 w en q vss nch w=1u l=0.2u
        C1 y inp 100f
        C2 w q 1p
    """,
    "transistors that a logic signal pulls down": INVERTER.format(1, "en", "enb")
    + """
        M1 a enb vss vss nch w=1u l=0.2u
        M2 b enb vss vss nch w=1u l=0.2u
        M3 c enb vss vss nch w=1u l=0.2u
    """,
    "switches of supplies": """
        MH1 v1 en vdd vdd pch w=20u l=0.2u
        MH2 v2 en vdd vdd pch w=20u l=0.2u
        MP1 a inp v1 vdd pch w=2u l=0.2u
        MN1 a inp vss vss nch w=1u l=0.2u
        MP2 b inn v2 vdd pch w=2u l=0.2u
        MN2 b inn vss vss nch w=1u l=0.2u
    """,
    "keeper": INVERTER.format(1, "in", "q") + "MKP in q vdd vdd pch w=0.5u l=1u\nMKN in q vss vss nch w=0.5u l=1u\n",
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_is_switched_is_neither_a_mirror_nor_a_pair(name):
    circuit = circuit_of(NOTHING[name], "vdd vss en a b c inp inn agnd phi1 phi2 in q")
    amplifying = {"current_mirror", "differential_pair", "cascode_pair", "cross_coupled_pair"}
    assert not amplifying & {group.type for group in recognise(circuit)}


@pytest.mark.parametrize(
    "unit", ["XC{} {} ctl vss cap_var w=5u l=1u", "XC{0} {1} b0 {1} vss sg13_hv_svaricap w=3u l=1u"]
)
def test_equal_varactors_on_both_sides_of_an_oscillator_are_one_bank(unit):
    units = [unit.format(number, net) for number, net in enumerate(("up", "dn") * 2)]
    core = "M1 up dn t vss nch w=8u l=0.2u\nM2 dn up t vss nch w=8u l=0.2u\nM3 t bias vss vss nch w=8u l=1u\n"
    groups = recognise(circuit_of(core + "\n".join(units) + "\nL1 up vdd 1n\nL2 dn vdd 1n\n", PORTS))
    (bank,) = (group for group in groups if group.type == "capacitor_ratio")
    assert set(bank.devices) == {"XC0", "XC1", "XC2", "XC3"}
    assert bank.properties["matched"]


def test_tied_dummies_stand_with_the_group_that_has_their_unit():
    circuit = circuit_of(
        """
        M1 i i vss vss nch w=4u l=1u m=2
        M2 o i vss vss nch w=4u l=1u m=4
        MD1 vss vss vss vss nch w=4u l=1u
        MD2 vss vss o vss nch w=4u l=1u
        MX vss vss vss vss nch w=2u l=1u
        """
    )
    (mirror,) = recognise(circuit)
    assert mirror.devices == ("M1", "M2")
    assert mirror.properties["dummies"] == ["MD1", "MD2"]


def test_what_has_the_gate_of_a_mirror_and_another_root_is_told():
    circuit = circuit_of(
        """
        M1 i i vss vss nch w=4u l=1u
        M2 o i vss vss nch w=4u l=1u
        M3 p i x vss nch w=4u l=1u
        M4 x q r vss nch w=4u l=1u
        M5 x u r vss nch w=4u l=1u
        """
    )
    roles = find_roles(circuit)
    assert any(line.startswith("M3 has the gate of mirror M1") for line in roles.not_matched)


@pytest.mark.parametrize("name", CIRCUITS)
@pytest.mark.parametrize("fingers", in_this_run([3], [2, 3]))
def test_transistors_written_finger_by_finger_are_the_same_groups(name, fingers):
    """A netlist from a layout lists each finger as a device, every other one with drain and source exchanged."""
    circuit = circuit_of(CIRCUITS[name][0], PORTS)
    whole = [replace(d, params={**d.params, "m": d.m * fingers}) if d.is_mos else d for d in circuit.devices]
    written, of = [], {}
    for device in circuit.devices:
        for number in range(fingers if device.is_mos else 1):
            finger = replace(device, id=f"{device.id}_{number}") if device.is_mos else device
            of[finger.id] = device.id
            written.append(finger.with_ends_exchanged() if device.is_mos and number % 2 else finger)
    expected = stated(recognise(oriented(replace(circuit, devices=tuple(whole)))))
    groups = recognise(oriented(replace(circuit, devices=tuple(written))))
    found = {(entry[0], " ".join(sorted({*entry[1].split()})), *entry[2:]) for entry in stated(groups, of)}
    assert found == expected


def found(text, kind):
    return {frozenset(each.devices) for each in find_roles(read_netlist(NetlistText(text))).groups if each.type == kind}


SELECTED = """.subckt sel a b o1 o2 s sb vdd vss
MD1 a a vdd vdd pmos w=4u l=2u
MD2 b b vdd vdd pmos w=4u l=2u
MI1 a bn vss vss nmos w=2u l=2u
MI2 b bn vss vss nmos w=2u l=2u
MB bn bn vss vss nmos w=2u l=2u
MT1 a s g vdd pmos w=1u l=0.2u
MT2 g sb a vss nmos w=1u l=0.2u
MT3 b sb g vdd pmos w=1u l=0.2u
MT4 g s b vss nmos w=1u l=0.2u
MO1 o1 g vdd vdd pmos w=4u l=2u
MO2 o2 g vdd vdd pmos w=4u l=2u
.ends
"""


def test_sources_for_which_switches_choose_a_reference_match_each_of_these():
    """A reference of another length is none of them; alone, the first has them behind a switch."""
    assert frozenset({"MD1", "MD2", "MO1", "MO2"}) in found(SELECTED, "current_mirror")
    longer = SELECTED.replace("MD2 b b vdd vdd pmos w=4u l=2u", "MD2 b b vdd vdd pmos w=4u l=8u")
    assert frozenset({"MD1", "MO1", "MO2"}) in found(longer, "current_mirror")
    single = "\n".join(line for line in SELECTED.splitlines() if not line.startswith(("MT3", "MT4")))
    assert frozenset({"MD1", "MO1", "MO2"}) in found(single, "current_mirror")
    pulled = SELECTED.replace("MD2 b b vdd vdd pmos w=4u l=2u", "MD2 b c vdd vdd pmos w=4u l=2u")
    assert not any("MO1" in devices for devices in found(pulled, "current_mirror"))


def test_outputs_behind_a_switch_are_drawn_as_one_module_where_the_reference_is_in_another():
    text = SELECTED.replace(".ends", "ME1 e1 a vdd vdd pmos w=4u l=2u\nME2 e2 b vdd vdd pmos w=4u l=2u\n.ends")
    modules = {frozenset(each.devices) for each in find_roles(read_netlist(NetlistText(text))).modules}
    assert {frozenset({"MD1", "ME1"}), frozenset({"MD2", "ME2"}), frozenset({"MO1", "MO2"})} <= modules


def test_a_diode_on_a_junction_outside_matches_the_one_on_a_resistor():
    """The emitter is a port: its voltage comes to lie on the resistor. A port that drives something else is none."""
    loop = """.subckt ptat ve out vdd vss
MN0 n0 n0 ve vss nmos w=5u l=4u
MN1 p0 n0 vr vss nmos w=5u l=4u
MP1 p0 p0 vdd vdd pmos w=5u l=4u
MP0 n0 p0 vdd vdd pmos w=5u l=4u
MP2 out p0 vdd vdd pmos w=5u l=4u
R1 vr vss 100k
.ends
"""
    assert frozenset({"MN0", "MN1"}) in found(loop, "current_mirror")
    driven = loop.replace(".ends", "MX ve out vss vss nmos w=1u l=1u\n.ends")
    assert frozenset({"MN0", "MN1"}) not in found(driven, "current_mirror")


def test_capacitors_between_which_switches_pass_charge_are_a_ratio():
    """Multiples of one unit; a load to ground is none of them, and neither are capacitors that are no multiples."""
    filter_ = """.subckt sc vin vout p1 p2 vg vss
C1 a b 30f
C2 in vout 60f
C3 c in 90f
CL vout vss 30f
MS1 vin p1 a vss nmos w=1u l=0.2u
MS2 vg p2 a vss nmos w=1u l=0.2u
MS3 b p1 in vss nmos w=1u l=0.2u
MS4 b p2 vg vss nmos w=1u l=0.2u
MS5 c p1 vin vss nmos w=1u l=0.2u
M1 vout in vss vss nmos w=5u l=1u
.ends
"""
    assert found(filter_, "capacitor_ratio") == {frozenset({"C1", "C2", "C3"})}
    assert found(filter_.replace("60f", "71f"), "capacitor_ratio") == set()
    assert found(filter_.replace("90f", "cap=90f"), "capacitor_ratio") == {frozenset({"C1", "C2", "C3"})}


def test_capacitors_in_parallel_that_are_images_of_as_many_are_one_ratio():
    cards = "MA o inp t vss nch w=4u l=1u\nMB out inn t vss nch w=4u l=1u\nMT t bias vss vss nch w=4u l=1u\n"
    cards += "".join(f"C{n}{side} {net} vss 1p\n" for n in range(2) for side, net in (("a", "o"), ("b", "out")))
    ratios = found(f".subckt amp inp inn bias o out vdd vss\n{cards}.ends\n", "capacitor_ratio")
    assert ratios == {frozenset({"C0a", "C0b", "C1a", "C1b"})}


def test_capacitors_of_extracted_wires_match_nothing():
    """Those that a designer states by a value are larger."""
    cards = "MA o inp t vss nch w=4u l=1u\nMB out inn t vss nch w=4u l=1u\nMT t bias vss vss nch w=4u l=1u\n"
    cards += "".join(f"C{n}{side} {net} vdd 1.04f\n" for n in range(2) for side, net in (("a", "o"), ("b", "out")))
    text = f".subckt amp inp inn bias o out vdd vss\n{cards}.ends\n"
    assert found(text, "capacitor_ratio") == found(text, "capacitor_pair") == set()
    assert found(text.replace("1.04f", "104f"), "capacitor_ratio") == {frozenset({"C0a", "C0b", "C1a", "C1b"})}


def test_switches_as_wide_as_the_sources_above_them_are_a_group():
    """Each drops the same voltage; others do not."""
    text = """.subckt dac i o b0 b1 vdd vss
M0 i i x0 vss nch w=2u l=1u m=2
M1 o i x1 vss nch w=2u l=1u
M2 o i x2 vss nch w=2u l=1u m=4
MS0 x0 vdd vss vss nch w=1u l=0.2u m=2
MS1 x1 b0 vss vss nch w=1u l=0.2u
MS2 x2 b1 vss vss nch w=1u l=0.2u m=4
.ends
"""
    assert found(text, "switch_pair") == {frozenset({"MS0", "MS1", "MS2"})}
    assert found(text.replace("l=0.2u m=4", "l=0.2u m=3"), "switch_pair") == set()
    assert found(text.replace("l=0.2u m=4", "l=0.3u m=4"), "switch_pair") == set()


def test_a_switch_to_the_rail_at_a_tap_leaves_a_string_below_a_mirror_whole():
    cards = """
        .subckt trim o s vb vdd vss
        M1 vb vb vdd vdd pch w=4u l=1u
        M2 o vb vdd vdd pch w=4u l=1u
        R1 o m 10k
        R2 m vss 10k
        M4 m s vss vss nch w=1u l=0.15u
        .ends
    """
    text = "\n".join(line.strip() for line in cards.strip().splitlines()) + "\n"
    assert found(text, "resistor_ratio") == {frozenset({"R1", "R2"})}


def test_a_string_below_a_mirror_ends_at_the_output_of_a_buffer():
    """Into that another current flows; a gate there senses the voltage between two parts of one string."""
    string = """.subckt load i o in ref s vdd vss
M1 i i vss vss nch w=4u l=1u
M2 o i vss vss nch w=4u l=1u
R1 o ref rp l=10u w=1u
R2 ref vdd rp l=30u w=1u
MS s ref vss vss nch w=9u l=0.5u
"""
    buffer = """MA x in t vss nch w=5u l=1u
MB y ref t vss nch w=5u l=1u
MC x x vdd vdd pch w=5u l=1u
MD y x vdd vdd pch w=5u l=1u
MT t i vss vss nch w=4u l=1u
ME ref y vdd vdd pch w=9u l=1u
MF ref i vss vss nch w=4u l=1u
"""
    assert found(f"{string}.ends\n", "resistor_ratio") == {frozenset({"R1", "R2"})}
    assert found(f"{string}{buffer}.ends\n", "resistor_ratio") == set()


def test_what_pulls_beside_another_source_starts_the_circuit_and_is_none():
    text = """.subckt start pb pc nb nc vdd vss
    MP1 pb pb vdd vdd pch w=9u l=2u
    MP5 pc pc vdd vdd pch w=1u l=2u
    M1 pb nc d vss nch w=6u l=1u
    M2 d nb vss vss nch w=6u l=2u
    M3 pc nc e vss nch w=6u l=1u
    M4 e nb vss vss nch w=6u l=2u
    MS1 pb m vss vss nch w=1u l=0.5u
    MS2 pc m vss vss nch w=1u l=0.5u
    MS3 m nb vss vss nch w=2u l=0.5u
    MS4 m vss vdd vdd pch w=1u l=9u
    .ends
    """
    assert not any({"MS1", "MS2"} & devices for devices in found(text, "current_mirror"))


def test_the_switched_capacitors_of_two_halves_are_one_ratio():
    half = """C{0}1 a{0} b{0} 20f
C{0}2 in{0} out{0} 60f
C{0}3 v{0} in{0} 20f
MS{0}1 v{0} p1 a{0} vss nmos w=1u l=0.2u
MS{0}2 cm p2 a{0} vss nmos w=1u l=0.2u
MS{0}3 b{0} p1 in{0} vss nmos w=1u l=0.2u
MS{0}4 cm p2 b{0} vss nmos w=1u l=0.2u
M{0}1 out{0} in{0} t vss nmos w=5u l=1u
M{0}2 out{0} pb vdd vdd pmos w=5u l=1u
"""
    ports = ".subckt sc vx vy outx outy p1 p2 cm nb pb vdd vss\n"
    text = ports + half.format("x") + half.format("y") + "MT t nb vss vss nmos w=4u l=1u\n.ends\n"
    assert found(text, "capacitor_ratio") == {frozenset(f"C{side}{n}" for side in "xy" for n in (1, 2, 3))}


def test_switches_below_unequal_members_of_a_mirror_are_no_group():
    mirror = """.subckt m ref out a2 y vdd vss
M1 ref ref a vss nmos w=1u l=1u
M2 out ref b vss nmos w={w}u l=1u
MS1 a vdd vss vss nmos w=1u l=0.2u
MS2 b vdd vss vss nmos w=1u l=0.2u
MP y a2 vdd vdd pmos w=2u l=0.2u
MN y a2 vss vss nmos w=1u l=0.2u
.ends
"""
    assert found(mirror.format(w=1), "switch_pair") == {frozenset({"MS1", "MS2"})}
    assert found(mirror.format(w=3), "switch_pair") == set()


def test_each_net_of_loads_is_power_where_the_name_tells_one_alone():
    text = ".subckt t a b c d ta tb vcc rail\n" + "".join(
        f"M{i}1 {o} {i} t{o} 0 nmos w=1u l=1u\nM{i}2 {p} {j} t{o} 0 nmos w=1u l=1u\n"
        f"R{i}1 {o} {net} 1k\nR{i}2 {p} {net} 1k\nI{i} t{o} 0 1u\n"
        for i, j, o, p, net in (("a", "b", "x", "y", "vcc"), ("c", "d", "z", "w", "rail"))
    )
    assert set(find_supplies(read_netlist(NetlistText(text + ".ends\n"))).power) == {"vcc", "rail"}


def test_an_inverter_on_the_diode_of_a_delay_stage_is_no_mirror():
    """Beside the diode, a transistor of the other type pulls the same output from the same gate."""
    stage = """.subckt s in y vdd vss
M1 a in vss vss nmos w=2u l=0.1u
M2 a a vdd vdd pmos w=1u l=0.1u
M3 y a vdd vdd pmos w=2u l=0.1u
M4 y {gate} vss vss nmos w=1u l=0.1u
.ends
"""
    assert found(stage.format(gate="a"), "current_mirror") == set()
    assert frozenset({"M2", "M3"}) in found(stage.format(gate="in"), "current_mirror")


def test_what_drives_the_sources_of_a_latch_is_a_pair_and_no_inverter():
    """The second stage of a dynamic comparator. Where the latch stands on the rail itself, they are inverters."""
    stage = """.subckt s xp xn op on vdd vss
M1 mid xp vss vss nmos w=2u l=0.1u
M2 midb xn vss vss nmos w=2u l=0.1u
M3 mid xp vdd vdd pmos w=1u l=0.1u
M4 midb xn vdd vdd pmos w=1u l=0.1u
M5 op on mid vss nmos w=4u l=0.1u
M6 on op midb vss nmos w=4u l=0.1u
M7 op on vdd vdd pmos w=2u l=0.1u
M8 on op vdd vdd pmos w=2u l=0.1u
.ends
"""
    assert found(stage, "inverter") == set()
    assert {frozenset({"M1", "M2"}), frozenset({"M3", "M4"})} <= found(stage, "symmetric_pair")
    apart = stage.replace("op on mid vss", "op on vss vss").replace("on op midb vss", "on op vss vss")
    assert {frozenset({"M1", "M3"}), frozenset({"M2", "M4"})} <= found(apart, "inverter")


def test_transistors_of_undefined_models_with_digits_within_their_names_are_read():
    cell = ".subckt m i o vss vdd\nX1 i i vss vss nod33ll_ckt l=li w=wi\nX2 o i vss vss nod33ll_ckt l=li w=wi m=4\n"
    cell += "X3 o o vdd vdd p11ll_ckt l=40n w=1u\n.ends\n"
    circuit = read_netlist(NetlistText(cell), keep_unknown=True)
    assert [device.type for device in circuit.devices] == ["nmos", "nmos", "pmos"]
    assert [group.devices for group in circuit.modules] == [("X1", "X2")]


OWN_SIZES = """.subckt amp inp inn out bias vdd vss
M1 x inp t vss nch w=w_1 l=l_1
M2 out inn t vss nch w=w_2 l=l_2
M3 x x vdd vdd pch w=w_3 l=l_3
M4 out x vdd vdd pch w=w_4 l=l_4
M5 t bias vss vss nch w=w_5 l=l_5
.ends
"""


def test_size_parameters_of_which_each_transistor_has_its_own_tell_no_sizes_apart():
    """Where two transistors share one, another one states another size."""
    circuit = read_netlist(NetlistText(OWN_SIZES), keep_unknown=True)
    assert {(group.type, group.devices, group.properties["matched"]) for group in circuit.modules} == {
        ("differential_pair", ("M1", "M2"), True),
        ("current_mirror", ("M3", "M4"), True),
    }
    assert any("every transistor has parameters of its own for this size" in text for text in circuit.warnings)
    shared = OWN_SIZES.replace("w_3", "w_load").replace("w_4", "w_load")
    groups = read_netlist(NetlistText(shared), keep_unknown=True).modules
    assert [group.properties["matched"] for group in groups if group.type == "differential_pair"] == [False]


def test_starved_inverters_on_one_signal_are_no_cascodes():
    text = ".subckt v in a b vb vp vdd vss\nM1 vb vb vss vss nch w=1u l=1u\nM2 vp vp vdd vdd pch w=2u l=1u\n"
    for name in "ab":
        text += f"MN{name} {name} in n{name} vss nch w=2u l=0.2u\nMP{name} {name} in p{name} vdd pch w=4u l=0.2u\n"
        text += f"MT{name} n{name} vb vss vss nch w=1u l=1u\nMH{name} p{name} vp vdd vdd pch w=2u l=1u\n"
    text += ".ends\n"
    assert found(text, "inverter") == {frozenset({"MPa", "MNa"}), frozenset({"MPb", "MNb"})}
    assert found(text, "cascode_pair") == set()


def test_a_follower_of_another_length_is_no_cascode():
    text = """.subckt c in out o vdd vss
M1 in out a vss nch w=3u l={0}u
M2 a a vss vss nch w=3u l=2u
M3 o a vss vss nch w=3u l=2u
M4 vdd out o vss nch w=15u l=0.5u
.ends
"""
    assert not any("cascodes" in group.properties for group in read_netlist(NetlistText(text.format(2))).modules)


ENABLED = """.subckt bandgap ref vdd vss {ports}
M1 n n s1 vss nch w=15u l=5u
M2 p n s2 vss nch w=15u l=5u
M3 n p vdd vdd pch w=15u l=5u
M4 p p vdd vdd pch w=15u l=5u
M5 s3 p vdd vdd pch w=15u l=5u
ME1 s1 en e1 vss nch w=12u l=5u
ME2 s2 en e2 vss nch w=12u l=5u
ME3 s3 en ref vss nch w=12u l=5u
Q1 vss vss e1 pnp
R1 e2 f2 50k
Q2 vss vss f2 pnp m=8
R2 ref g2 463k
Q3 vss vss g2 pnp
RL ref vss {load}
.ends
"""


@pytest.mark.parametrize("ports", ["en", ""])
def test_switches_above_junctions_are_no_sources_and_part_no_mirror(ports):
    """The enable transistors of a bandgap; the resistor that bleeds its output is no part of the ratio."""
    text = ENABLED.format(ports=ports, load="90meg")
    assert found(text, "current_mirror") == {frozenset({"M1", "M2"}), frozenset({"M3", "M4", "M5"})}
    assert found(text, "resistor_ratio") == {frozenset({"R1", "R2"})}
    current_mode = ENABLED.format(ports=ports, load="900k")
    assert found(current_mode, "resistor_ratio") == {frozenset({"R1", "R2", "RL"})}


def test_a_gate_behind_a_filter_of_transistors_has_the_potential_of_the_reference():
    """No current flows to gates; with a source on the net there would be one."""
    text = """.subckt f ref out vc bb g b vss
MR1 a ref vss vss nch w=2u l=1u
M1 ref vc a vss nch w=2u l=0.5u
MF1 ref bb m vss nch w=1u l=9u
MF2 m bb g vss nch w=1u l=9u
MO1 o1 g vss vss nch w=4u l=1u
MO2 o2 g vss vss nch w=4u l=1u
M2 out vc o1 vss nch w=4u l=0.5u
M3 b vc o2 vss nch w=4u l=0.5u
{}
.ends
"""
    mirrors = {frozenset({"MR1", "MO1", "MO2"})}
    assert found(text.format(""), "current_mirror") == mirrors
    assert found(text.format("MX g ref vss vss nch w=1u l=2u"), "current_mirror") != mirrors


def test_what_an_input_pair_drives_in_a_latch_of_nor_gates_is_a_pair():
    """In a latch of gates alone, behind logic, the same transistors are halves of gates."""
    gates = "".join(
        f"M{o}1 t{o} {i} vdd vdd pch w=2u l=0.2u\nM{o}2 {o} {other} t{o} vdd pch w=2u l=0.2u\n"
        f"M{o}3 {o} {i} vss vss nch w=1u l=0.2u\nM{o}4 {o} {other} vss vss nch w=1u l=0.2u\n"
        for o, i, other in (("y", "a", "z"), ("z", "b", "y"))
    )
    pair = """M1 a inp t vss nch w=2u l=0.2u
M2 b inn t vss nch w=2u l=0.2u
M3 a ck vdd vdd pch w=1u l=0.2u
M4 b ck vdd vdd pch w=1u l=0.2u
M5 t ck vss vss nch w=4u l=0.2u
"""
    assert frozenset({"My3", "Mz3"}) in found(
        f".subckt c inp inn ck y z vdd vss\n{pair}{gates}.ends\n", "symmetric_pair"
    )
    alone = found(f".subckt c a b y z vdd vss\n{gates}.ends\n", "symmetric_pair")
    assert frozenset({"My3", "Mz3"}) not in alone


def test_a_resistor_that_a_switch_lays_across_a_part_of_a_string_belongs_to_it():
    text = """.subckt h top sense out inn vdd vss
R1 top sense 60k
R2 sense low 7k
R3 low vss 100k
R4 sense x 7k
M1 x out low vss nch w=1u l=0.5u
M2 out low vdd vdd pch w=4u l=0.5u
M3 out inn vss vss nch w=2u l=1u
.ends
"""
    assert found(text, "resistor_ratio") == {frozenset({"R1", "R2", "R3", "R4"})}


def test_the_tails_of_stages_with_latches_are_parts_of_these():
    stage = """M1{o} x{o} x{i} t{o} vss nch w=2u l=0.2u
M2{o} y{o} y{i} t{o} vss nch w=2u l=0.2u
M3{o} x{o} y{o} vdd vdd pch w=1u l=0.2u
M4{o} y{o} x{o} vdd vdd pch w=1u l=0.2u
M5{o} t{o} nb vss vss nch w=2u l=1u
"""
    text = "".join(stage.format(i=i, o=(i + 1) % 3) for i in range(3))
    text = f".subckt ring x0 y0 nb vdd vss\n{text}MB nb nb vss vss nch w=2u l=1u\n.ends\n"
    assert found(text, "ring_stage") == {frozenset(f"M{n}{o}" for n in range(1, 6) for o in range(3))}


def test_each_pair_on_one_emitter_has_an_axis_beside_a_latch_of_resistors_and_transistors():
    comparator = """Q1{0} a{0} r{0} t{0} npn m=1
Q2{0} b{0} n{0} t{0} npn m=1
R1{0} a{0} vcc 3k
R2{0} b{0} vcc 3k
R3{0} t{0} vee 1k
R4{0} {0} a{0} 2k
"""
    latch = """Q5 q x vee npn m=1
Q6 qb y vee npn m=1
R5 x s 1k
R6 y r 1k
R7 x qb 1k
R8 y q 1k
R9 q vcc 500
R10 qb vcc 500
"""
    text = f".subckt timer rs ns rr nr q qb vcc vee\n{comparator.format('s')}{comparator.format('r')}{latch}.ends\n"
    circuit = read_netlist(NetlistText(text))
    pairs = {frozenset(names) for each in find_roles(circuit).symmetry for _, *names in each.pairs}
    expected = ("Q1s Q2s", "R1s R2s", "Q1r Q2r", "R1r R2r", "Q5 Q6", "R5 R6", "R7 R8", "R9 R10")
    assert pairs >= {frozenset(each.split()) for each in expected}


def test_a_base_senses_the_tap_of_a_divider_with_a_capacitor():
    text = """.subckt c high inp out vcc vee
R1 vcc high 5k
R2 high low 5k
R3 low vee 5k
C1 low vee 1p
Q1 vcc inp t npn m=1
Q2 out low t npn m=1
R4 out vcc 900
R5 t vee 300
.ends
"""
    assert frozenset({"R1", "R2", "R3"}) in found(text, "resistor_ratio")


def test_outputs_of_two_load_mirrors_are_images_whatever_they_drive():
    text = """.subckt ota inp inn out bias cas vdd vss
M1 a inp t vss nch w=8u l=1u
M2 b inn t vss nch w=8u l=1u
M3 t bias vss vss nch w=4u l=1u
M4 a a vdd vdd pch w=4u l=1u
M5 b b vdd vdd pch w=4u l=1u
M6 c a vdd vdd pch w=12u l=1u
M7 d b vdd vdd pch w=12u l=1u
M8 c c vss vss nch w=4u l=1u
M9 out c vss vss nch w=4u l=1u
M10 out cas d vdd pch w=12u l=0.5u
.ends
"""
    (structure,) = find_roles(read_netlist(NetlistText(text))).symmetry
    pairs = {frozenset(names) for _, *names in structure.pairs}
    assert pairs == {frozenset(each.split()) for each in ("M1 M2", "M4 M5", "M6 M7")}


def image_pairs(text):
    structures = find_roles(read_netlist(NetlistText(text))).symmetry
    return {frozenset(names) for each in structures for _, *names in each.pairs}


def test_equal_paths_side_by_side_are_images_by_the_nets_that_they_share():
    paths = "".join(
        f"RA{i} p{i} x 140\nRB{i} q{i} y 140\nMA{i} in{i} up{i} p{i} vss nch w=8u l=0.1u\n"
        f"MB{i} in{i} dn{i} q{i} vss nch w=8u l=0.1u\nMC{i} im{i} dn{i} p{i} vss nch w=8u l=0.1u\n"
        f"MD{i} im{i} up{i} q{i} vss nch w=8u l=0.1u\nCA{i} p{i} cm 1p\nCB{i} q{i} cm 1p\n"
        for i in range(4)
    )
    ports = " ".join(f"in{i} im{i} up{i} dn{i}" for i in range(4))
    text = f""".subckt mixer {ports} cm o out bias vdd vss
M1 o x t vss nch w=8u l=1u
M2 out y t vss nch w=8u l=1u
M3 t bias vss vss nch w=4u l=1u
R1 x o 5k
R2 y out 5k
{paths}.ends
"""
    assert image_pairs(text) >= {frozenset({f"RA{i}", f"RB{i}"}) for i in range(4)}


def test_a_pair_that_others_reach_through_gates_has_the_loads_of_its_own_outputs():
    stage = """M1{0} p{0} {1} t{0} vss nch w=8u l=1u
M2{0} q{0} {2} t{0} vss nch w=8u l=1u
M3{0} t{0} bias vss vss nch w=4u l=1u
R1{0} p{0} {1} 9k
R2{0} q{0} {2} 9k
C1{0} p{0} vss 1p
C2{0} q{0} vss 1p
"""
    switches = "MS1{0} in {1} {3}1 vss nch w=2u l=0.1u\nMS2{0} in {2} {3}2 vss nch w=2u l=0.1u\n"
    oscillator = "MX1{0} {1} {2} s{0} vss nch w=4u l=0.1u\nMX2{0} {2} {1} s{0} vss nch w=4u l=0.1u\n"
    oscillator += "ML1{0} {1} {3} vss vss nch w=2u l=0.1u\nML2{0} {2} {4} vss vss nch w=2u l=0.1u\n"
    text = (
        ".subckt receiver in bias vdd vss\n"
        + stage.format("A", "x1", "x2")
        + stage.format("B", "y1", "y2")
        + switches.format("A", "k0", "k2", "x")
        + switches.format("B", "k1", "k3", "y")
        + oscillator.format("A", "k0", "k2", "k1", "k3")
        + oscillator.format("B", "k1", "k3", "k2", "k0")
        + ".ends\n"
    )
    assert image_pairs(text) >= {frozenset({f"{n}1{x}", f"{n}2{x}"}) for n in "MRC" for x in "AB"}


def test_the_switches_of_a_mixer_without_current_are_one_group_and_those_that_commutate_a_current_are_pairs():
    text = """.subckt mixer i o up dn b0 b1 fb fb2 bias vdd vss
MS0 i up x vss nch w=2u l=0.1u
MS1 i dn y vss nch w=2u l=0.1u
MS2 o dn x vss nch w=2u l=0.1u
MS3 o up y vss nch w=2u l=0.1u
C1 x vss 2p
C2 y vss 2p
M1 p x t vss nch w=8u l=1u
M2 q y t vss nch w=8u l=1u
M3 t bias vss vss nch w=4u l=1u
M4 fb b0 p vss nch w=4u l=0.5u
M5 fb2 b1 p vss nch w=4u l=0.5u
M6 fb b1 q vss nch w=4u l=0.5u
M7 fb2 b0 q vss nch w=4u l=0.5u
R1 vdd fb 5k
R2 vdd fb2 5k
.ends
"""
    assert {group for group in found(text, "switch_pair") if len(group) > 2} == {
        frozenset({"MS0", "MS1", "MS2", "MS3"})
    }
    assert found(text, "differential_pair") >= {frozenset({"M4", "M5"}), frozenset({"M6", "M7"})}


def test_the_upper_pairs_of_a_mixer_whose_currents_end_at_ports_are_those_above_one_transistor():
    """Not those that meet at a port, as the halves of a passive mixer do."""
    text = """.subckt stage op on lo lob rf rfb ip in vss
MA op lo x vss nch w=4u l=0.3u
MB on lob x vss nch w=4u l=0.3u
MC op lob y vss nch w=4u l=0.3u
MD on lo y vss nch w=4u l=0.3u
ME x rf ip vss nch w=2u l=0.3u
MF y rfb in vss nch w=2u l=0.3u
.ends
"""
    assert found(text, "differential_pair") == {frozenset({"MA", "MB"}), frozenset({"MC", "MD"})}


def test_sources_on_a_port_are_no_switches_below_a_diode_that_another_one_feeds():
    text = """.subckt t o out bias vdd vss
M1 k k x vss nch w=4u l=1u
M2 o k y vss nch w=4u l=1u
M3 out k z vss nch w=4u l=1u
M4 x bias vss vss nch w=4u l=1u
M5 y bias vss vss nch w=4u l=1u
M6 z bias vss vss nch w=4u l=1u
M7 k k vdd vdd pch w=4u l=1u
.ends
"""
    assert found(text, "current_mirror") == set()
    assert found(text.replace("M7 k k vdd vdd pch w=4u l=1u\n", "R1 k vdd 9k\n"), "current_mirror") == {
        frozenset({"M1", "M2", "M3"})
    }
