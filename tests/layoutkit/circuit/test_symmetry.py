"""Symmetric structures: images that a designer would name, whoever drew the circuit, and none that only look alike."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.circuit import Circuit, Device, find_roles, recognise
from layoutkit.circuit.constraint_faults import find_faults
from layoutkit.circuit.constraints import Constraints
from layoutkit.circuit.orientation import oriented
from layoutkit.circuit.suggested_constraints import suggest_constraints
from thorough import examples

TAIL_AND_PAIR = "MT t nb vss vss n w=6u l=1u\nMA x inp t vss n w=5u l=0.5u\nMB y inn t vss n w=5u l=0.5u\n"
LOGIC = """
.subckt cell d ck q vdd vss
MP1 k d vdd vdd p w=2u l=0.2u
MN1 k d vss vss n w=1u l=0.2u
MNS h ck k vss n w=1u l=0.2u
MP2 q h vdd vdd p w=2u l=0.2u
MN2 q h vss vss n w=1u l=0.2u
.ends
"""

# name: (ports, cards, pairs, devices on the axis, pairs of nets)
CIRCUITS = {
    "an input pair whose current is that of a mirror's diode": (
        "inp inn out ref vdd vss",
        """
        MD t t vdd vdd p w=8u l=1u
        MR ref t vdd vdd p w=8u l=1u
        MA x inp t vdd p w=9u l=1u
        MB y inn t vdd p w=9u l=1u
        MC x x vss vss n w=4u l=1u
        ME y y vss vss n w=4u l=1u
        MF z x vss vss n w=4u l=1u
        MG out y vss vss n w=4u l=1u
        MH z z vdd vdd p w=6u l=1u
        MI out z vdd vdd p w=6u l=1u
        """,
        "MA/MB MC/ME MF/MG MH/MI",
        "MD",
        "inp/inn x/y z/out",
    ),
    "crossed diodes between two loaded outputs": (
        "inp inn nb x y z vdd vss",
        TAIL_AND_PAIR
        + """
        MX x x y vss n w=1u l=0.2u
        MY y y x vss n w=1u l=0.2u
        MC x nb vdd vdd p w=4u l=1u
        MD y nb vdd vdd p w=4u l=1u
        MI z x vss vss n w=1u l=0.2u
        MJ z x vdd vdd p w=1u l=0.2u
        """,
        "MA/MB MX/MY MC/MD",
        "MT",
        "inp/inn x/y",
    ),
    "bipolar switches above an input pair of transistors": (
        "a1 a2 l1 l2 o1 o2 ib vdd vss",
        """
        M1 x a1 t vss n w=4u l=0.5u
        M2 y a2 t vss n w=4u l=0.5u
        M3 t ib vss vss n w=8u l=0.5u
        Q3 o1 l1 x vss npn13G2
        Q4 o2 l2 x vss npn13G2
        Q5 o1 l2 y vss npn13G2
        Q6 o2 l1 y vss npn13G2
        R1 vdd o1 10k
        R2 vdd o2 10k
        """,
        "M1/M2 R1/R2 Q3/Q6 Q4/Q5",
        "M3",
        "a1/a2 x/y o1/o2",
    ),
    "two equal arrays of capacitors": (
        "p0 p1 p2 q0 q1 q2 x y vss",
        "".join(f"C{side}{i} {side}{i} {top} mim w=9u l=9u m={2**i}\n" for side, top in ("px", "qy") for i in range(3)),
        "Cp0/Cq0 Cp1/Cq1 Cp2/Cq2",
        "",
        "x/y p0/q0 p1/q1 p2/q2",
    ),
    "fully differential, two stages, common mode sensed by resistors": (
        "inp inn op on nb pb vcm vdd vss",
        TAIL_AND_PAIR
        + """
        MC x f vdd vdd p w=8u l=1u
        MD y f vdd vdd p w=8u l=1u
        ME op x vdd vdd p w=20u l=0.5u
        MF on y vdd vdd p w=20u l=0.5u
        MG op nb vss vss n w=7u l=1u
        MH on nb vss vss n w=7u l=1u
        CC x op 300f
        CD y on 300f
        RA op s 20k
        RB on s 20k
        MJ f s u vss n w=2u l=1u
        MK g vcm u vss n w=2u l=1u
        ML u nb vss vss n w=3u l=1u
        MM f f vdd vdd p w=4u l=1u
        MN g g vdd vdd p w=4u l=1u
        """,
        "MA/MB MC/MD ME/MF MG/MH CC/CD RA/RB",
        "MT",
        "x/y inp/inn op/on",
    ),
    "single-ended, with a buffer at one output and a dummy": (
        "inp inn out nb vdd vss",
        TAIL_AND_PAIR
        + """
        MC x x vdd vdd p w=8u l=1u
        MD y x vdd vdd p w=8u l=1u
        ME out y vdd vdd p w=20u l=0.5u
        MF out nb vss vss n w=7u l=1u
        MZ x vss vss vss n w=5u l=0.5u
        """,
        "MA/MB MC/MD",
        "MT",
        "x/y inp/inn",
    ),
    "latch with an equalizer, loaded on one side": (
        "inp inn op on ck q vdd vss",
        TAIL_AND_PAIR
        + """
        MC x y vdd vdd p w=4u l=0.5u
        MD y x vdd vdd p w=4u l=0.5u
        ME x ck y vdd p w=1u l=0.5u
        MF x q vss vss n w=1u l=1u
        """,
        "MA/MB MC/MD",
        "MT ME",
        "x/y inp/inn",
    ),
    "folded, with a mesh between the gates of its output": (
        "inp inn out nb c1 c2 mp mn pb vdd vss",
        TAIL_AND_PAIR
        + """
        MC x f vdd vdd p w=8u l=1u
        MD y f vdd vdd p w=8u l=1u
        ME f c2 x vdd p w=6u l=0.5u
        MF h c2 y vdd p w=6u l=0.5u
        MG f c1 u vss n w=3u l=0.5u
        MH g c1 v vss n w=3u l=0.5u
        MI u nb vss vss n w=4u l=1u
        MJ v nb vss vss n w=4u l=1u
        MO r pb vdd vdd p w=9u l=1u
        MP u inp r vdd p w=9u l=0.5u
        MQ v inn r vdd p w=9u l=0.5u
        MK h mn g vss n w=7u l=0.2u
        ML g mp h vdd p w=9u l=0.2u
        MM out h vdd vdd p w=40u l=0.2u
        MN out g vss vss n w=20u l=0.2u
        """,
        "MA/MB MC/MD ME/MF MG/MH MI/MJ MP/MQ",
        "MT MO",
        "x/y inp/inn u/v f/h",
    ),
    "two tails and diodes for shifters, feedback to one input, unequal outputs": (
        "inp inn out nb vdd vss",
        """
        MA a inp u vdd p w=9u l=0.5u
        MB b inn v vdd p w=9u l=0.5u
        MC u nb vdd vdd p w=5u l=1u
        MD v nb vdd vdd p w=5u l=1u
        ME u u c vss n w=4u l=0.5u
        MF v v d vss n w=4u l=0.5u
        RA c vss 9k
        RB d vss 9k
        MG a a vss vss n w=3u l=1u
        MH b b vss vss n w=3u l=1u
        MI x u vss vss n w=6u l=1u
        MJ out v vss vss n w=6u l=1u
        MK x x vdd vdd p w=4u l=1u
        ML out x vdd vdd p w=8u l=1u
        RF out inn 50k
        """,
        "MA/MB MC/MD ME/MF RA/RB MG/MH MI/MJ",
        "",
        "inp/inn u/v c/d a/b x/out",
    ),
    "recycling": (
        "inp inn out cb nb vdd vss",
        """
        MT t nb vdd vdd p w=9u l=1u
        MA1 a inp t vdd p w=3u l=0.4u
        MA2 b inp t vdd p w=3u l=0.4u
        MB1 c inn t vdd p w=3u l=0.4u
        MB2 d inn t vdd p w=3u l=0.4u
        MD1 b b vss vss n w=1u l=0.6u
        MD2 d d vss vss n w=1u l=0.6u
        ME1 a d vss vss n w=4u l=0.6u
        ME2 c b vss vss n w=4u l=0.6u
        MF1 x cb a vss n w=4u l=0.6u
        MF2 out cb c vss n w=4u l=0.6u
        MG1 x x vdd vdd p w=3u l=0.6u
        MG2 out x vdd vdd p w=3u l=0.6u
        """,
        "MA1/MB1 MA2/MB2 MD1/MD2 ME1/ME2 MF1/MF2 MG1/MG2",
        "MT",
        "inp/inn a/c b/d x/out",
    ),
    "switches of two phases": (
        "inp inn cm p1 p2 xp xn vss",
        """
        MS1 inp p1 ap vss n w=2u l=0.2u
        MS2 cm p2 ap vss n w=2u l=0.2u
        MS3 inn p1 an vss n w=2u l=0.2u
        MS4 cm p2 an vss n w=2u l=0.2u
        C1 ap xp 50f
        C2 an xn 50f
        """,
        "MS1/MS3 MS2/MS4 C1/C2",
        "",
        "inp/inn ap/an xp/xn",
    ),
    "three equal stages that bits switch on": (
        "ip in op on s0 s1 s2 nb vdd vss",
        "".join(
            f"""
            MA{i} op ip t{i} vss n w=3u l=0.3u
            MB{i} on in t{i} vss n w=3u l=0.3u
            MS{i} t{i} s{i} u{i} vss n w=3u l=0.2u
            MT{i} u{i} nb vss vss n w=3u l=1u
            """
            for i in range(3)
        )
        + "R1 vdd op 3k\nR2 vdd on 3k",
        "MA0/MB0 MA1/MB1 MA2/MB2 R1/R2",
        "MS0 MS1 MS2 MT0 MT1 MT2",
        "ip/in op/on",
    ),
    "cascodes in wells of their own, two equal loads on each output": (
        "inp inn nb pc pb cm vdd vss",
        TAIL_AND_PAIR
        + """
        MC x pc k k p w=4u l=0.5u
        MD y pc h h p w=4u l=0.5u
        ME k pb vdd vdd p w=6u l=1u
        MF h pb vdd vdd p w=6u l=1u
        MG k cm vdd vdd p w=6u l=1u
        MH h cm vdd vdd p w=6u l=1u
        CA x vss 70f
        CB y vss 70f
        CC x inn 70f
        CD y inp 70f
        """,
        "MA/MB MC/MD ME/MF MG/MH CA/CB CC/CD",
        "MT",
        "inp/inn x/y k/h",
    ),
    "inverters as amplifier with a common mode": (
        "inp inn op on vdd vss",
        """
        MNA on inp vss vss n w=3u l=0.4u
        MNB op inn vss vss n w=3u l=0.4u
        MPA on inp t t p w=7u l=0.2u
        MPB op inn t t p w=7u l=0.2u
        MHA t on vdd vdd p w=2u l=0.2u
        MHB t op vdd vdd p w=2u l=0.2u
        """,
        "MNA/MNB MPA/MPB MHA/MHB",
        "",
        "inp/inn op/on",
    ),
    "a switched capacitor bank": (
        "a b en enb vdd vss",
        """
        MS1 a en x vss n w=5u l=0.2u
        MS2 b en y vss n w=5u l=0.2u
        MS3 x enb a vdd p w=9u l=0.2u
        MS4 y enb b vdd p w=9u l=0.2u
        MS5 x enb vss vss n w=1u l=0.2u
        MS6 y enb vss vss n w=1u l=0.2u
        C1 x y 80f
        """,
        "MS1/MS2 MS3/MS4 MS5/MS6",
        "C1",
        "a/b x/y",
    ),
    "two mirrors that face each other": (
        "inp inn out nb vdd vss",
        TAIL_AND_PAIR
        + """
        MD1 x x vdd vdd p w=4u l=1u
        MD2 y y vdd vdd p w=4u l=1u
        MO1 k x vdd vdd p w=9u l=1u
        MO2 out y vdd vdd p w=9u l=1u
        MN1 k k vss vss n w=4u l=1u
        MN2 out k vss vss n w=4u l=1u
        """,
        "MA/MB MD1/MD2 MO1/MO2 MN1/MN2",
        "MT",
        "inp/inn x/y k/out",
    ),
    "stacked inputs above two sources, the degeneration switched": (
        "inp inn op on en nb vdd vss",
        """
        M0 nb nb vss vss n w=2u l=1u
        M1 s nb vss vss n w=2u l=1u
        M2 r nb vss vss n w=2u l=1u
        MA1 on inp k vss n w=5u l=0.2u
        MA2 k inp s vss n w=5u l=0.2u
        MB1 op inn h vss n w=5u l=0.2u
        MB2 h inn r vss n w=5u l=0.2u
        R1 s d 2k
        MSW d en e vss n w=3u l=0.2u
        R2 e r 2k
        R3 vdd on 4k
        R4 vdd op 4k
        """,
        "MA1/MB1 MA2/MB2 M1/M2 R1/R2 R3/R4",
        "MSW M0",
        "inp/inn op/on k/h s/r d/e",
    ),
    "a mixer: the pair decides, equal gates of the quad are images": (
        "rp rn lp ln op on nb vss",
        """
        MQ1 op lp x vss n w=3u l=0.2u
        MQ2 on ln x vss n w=3u l=0.2u
        MQ3 op ln y vss n w=3u l=0.2u
        MQ4 on lp y vss n w=3u l=0.2u
        MA x rp t vss n w=3u l=0.2u
        MB y rn t vss n w=3u l=0.2u
        MT t nb vss vss n w=6u l=1u
        """,
        "MA/MB MQ1/MQ4 MQ2/MQ3",
        "MT",
        "rp/rn op/on x/y",
    ),
    "a mixer whose tails are outside: a resistor joins the sources of the pair": (
        "rp rn lp ln op on tp tn vdd vss",
        """
        MQ1 op lp x vss n w=3u l=0.2u
        MQ2 on ln x vss n w=3u l=0.2u
        MQ3 op ln y vss n w=3u l=0.2u
        MQ4 on lp y vss n w=3u l=0.2u
        MA x rp tp vss n w=3u l=0.2u
        MB y rn tn vss n w=3u l=0.2u
        R1 tp tn 1k
        R2 vdd op 4k
        R3 vdd on 4k
        """,
        "MA/MB MQ1/MQ4 MQ2/MQ3 R2/R3",
        "R1",
        "rp/rn op/on x/y tp/tn",
    ),
    "input pair of two models above a clocked tail of the same size, behind it a latch": (
        "inp inn ck q qb vdd vss",
        """
        MT t ck vss vss n w=3u l=0.3u
        MA x inp t vss nx w=3u l=0.3u
        MB y inn t vss n w=3u l=0.3u
        MC x ck vdd vdd p w=3u l=0.3u
        MD y ck vdd vdd p w=3u l=0.3u
        ME q x vss vss n w=3u l=0.3u
        MF qb y vss vss n w=3u l=0.3u
        MG q qb vss vss n w=3u l=0.3u
        MH qb q vss vss n w=3u l=0.3u
        MJ q qb vdd vdd p w=3u l=0.3u
        MK qb q vdd vdd p w=3u l=0.3u
        """,
        "MA/MB MC/MD ME/MF MG/MH MJ/MK",
        "MT",
        "inp/inn x/y q/qb",
    ),
    "input pair of two widths below cascodes": (
        "inp inn out nb vdd vss",
        """
        MT t nb vss vss n w=6u l=1u
        MA x inp t vss n w=10u l=1u
        MB y inn t vss n w=4u l=1u
        MC f vdd x vss n w=3u l=0.5u
        MD out vdd y vss n w=3u l=0.5u
        ME f f vdd vdd p w=8u l=1u
        MF out f vdd vdd p w=8u l=1u
        """,
        "MC/MD ME/MF",
        "MT",
        "inp/inn x/y f/out",
    ),
    "two mirrors that feed each other above switches": (
        "en ref vdd vss",
        """
        MA a a u vss n w=5u l=2u
        MB b a v vss n w=5u l=2u
        MC a b vdd vdd p w=9u l=2u
        MD b b vdd vdd p w=9u l=2u
        ME u en j vss n w=7u l=0.5u
        MF v en k vss n w=7u l=0.5u
        D1 j vss dio
        R1 k m 40k
        D2 m vss dio m=8
        MG ref b vdd vdd p w=9u l=2u
        R2 ref vss 300k
        """,
        "MA/MB MC/MD ME/MF",
        "",
        "a/b u/v j/k",
    ),
    "a pseudo-differential amplifier, its loads on one bias": (
        "inp inn op on ib vdd vss",
        """
        MR ib ib vdd vdd p w=4u l=1u
        MA on inp vss vss n w=5u l=0.5u
        MB op inn vss vss n w=5u l=0.5u
        MC on ib vdd vdd p w=8u l=1u
        MD op ib vdd vdd p w=8u l=1u
        """,
        "MA/MB MC/MD",
        "MR",
        "inp/inn op/on",
    ),
    "two single-ended halves of an integrator with switches of two phases": (
        "vip vin p1 p2 vcm op on nb vdd vss",
        "".join(
            f"""
            MS1{s} vi{s} p1 a{s} vss n w=1u l=0.2u
            MS2{s} a{s} p2 vcm vss n w=1u l=0.2u
            CS{s} a{s} b{s} 100f
            MS3{s} b{s} p1 vcm vss n w=1u l=0.2u
            MS4{s} b{s} p2 g{s} vss n w=1u l=0.2u
            CI{s} g{s} o{s} 400f
            MD{s} o{s} g{s} vss vss n w=5u l=0.4u
            ML{s} o{s} nb vdd vdd p w=9u l=1u
            """
            for s in "pn"
        ),
        "MS1p/MS1n MS2p/MS2n MS3p/MS3n MS4p/MS4n CSp/CSn CIp/CIn MDp/MDn MLp/MLn",
        "",
        "vip/vin ap/an bp/bn gp/gn op/on",
    ),
    "a doubler between two phases": (
        "ck ckb out vdd vss",
        """
        M1 a b vdd vss n w=4u l=0.2u
        M2 b a vdd vss n w=4u l=0.2u
        M3 a b out out p w=8u l=0.2u
        M4 b a out out p w=8u l=0.2u
        C1 a ck 1p
        C2 b ckb 1p
        """,
        "M1/M2 M3/M4 C1/C2",
        "",
        "ck/ckb a/b",
    ),
    "a level shifter that selects the inputs of a multiplexer": (
        "i ib v0 v1 y vdd vss",
        """
        MP1 s sb vdd vdd p w=1u l=0.5u
        MP2 sb s vdd vdd p w=1u l=0.5u
        MN1 s ib vss vss n w=4u l=0.5u
        MN2 sb i vss vss n w=4u l=0.5u
        MT1 v0 s y vss n w=1u l=0.5u
        MT2 v0 sb y vdd p w=1u l=0.5u
        MT3 v1 sb y vss n w=1u l=0.5u
        MT4 v1 s y vdd p w=1u l=0.5u
        """,
        "MP1/MP2 MN1/MN2",
        "",
        "s/sb i/ib",
    ),
    "outputs that two followers on one rail sense together": (
        "inp inn nb cm vdd vss",
        TAIL_AND_PAIR
        + """
        MP1 x vb vdd vdd p w=4u l=1u
        MP2 y vb vdd vdd p w=4u l=1u
        MF1 vdd x cm vss n w=2u l=0.5u
        MF2 vdd y cm vss n w=2u l=0.5u
        MS cm nb vss vss n w=2u l=1u
        """,
        "MA/MB MP1/MP2 MF1/MF2",
        "MT MS",
        "inp/inn x/y",
    ),
    "a mixer that its own oscillator drives": (
        "rp rn ip in nb vdd vss",
        """
        MA x ip t vss n w=9u l=0.2u
        MB y in t vss n w=9u l=0.2u
        MT t nb vss vss n w=12u l=0.2u
        MC rp lp x vss n w=6u l=0.2u
        MD rn ln x vss n w=6u l=0.2u
        ME rn lp y vss n w=6u l=0.2u
        MF rp ln y vss n w=6u l=0.2u
        R1 vdd rp 2k
        R2 vdd rn 2k
        MX lp ln s vss n w=9u l=0.2u
        MY ln lp s vss n w=9u l=0.2u
        MS s nb vss vss n w=12u l=0.2u
        R3 vdd lp 1k
        R4 vdd ln 1k
        C1 vdd lp 1p
        C2 vdd ln 1p
        """,
        "MA/MB MC/ME MD/MF R1/R2",
        "MT",
        "ip/in x/y rp/rn",
    ),
}

# name: (ports, cards): nothing is an image of anything
NOTHING = {
    "two equal inverters": (
        "a b x y vdd vss",
        (
            "MP1 x a vdd vdd p w=2u l=0.2u\nMN1 x a vss vss n w=1u l=0.2u\n"
            "MP2 y b vdd vdd p w=2u l=0.2u\nMN2 y b vss vss n w=1u l=0.2u"
        ),
    ),
    "a ring of inverters on a rail that a bias limits": (
        "pb vdd vss",
        "MH r pb vdd vdd p w=9u l=1u\n"
        + "".join(
            f"MP{i} n{(i + 1) % 5} n{i} r vdd p w=2u l=0.2u\nMN{i} n{(i + 1) % 5} n{i} vss vss n w=1u l=0.2u\n"
            for i in range(5)
        ),
    ),
    "a flying capacitor between switches of two phases": (
        "vin out p1 p2 vss",
        """
        MS1 vin p1 a vss n w=5u l=0.2u
        MS2 out p2 a vss n w=5u l=0.2u
        MS3 b p2 vss vss n w=5u l=0.2u
        MS4 k p1 b vss n w=5u l=0.2u
        MS5 out p2 k vss n w=5u l=0.2u
        C1 a b 1p
        C2 k vss 1p
        """,
    ),
    "two of three equal sources on one bias, each switched": (
        "nb e0 e1 e2 o0 o1 o2 vdd vss",
        "".join(
            f"MA{i} k{i} nb vss vss n w={2 + (i == 2)}u l=1u\nMB{i} o{i} e{i} k{i} vss n w=2u l=0.2u\n"
            for i in range(3)
        ),
    ),
    "two parallel stacks of one gate": (
        "a b q vdd vss",
        (
            "MP1 q a vdd vdd p w=2u l=0.2u\nMP2 q b vdd vdd p w=3u l=0.2u\n"
            "MN1 q a x vss n w=1u l=0.2u\nMN2 x b vss vss n w=1u l=0.2u\n"
            "MN3 q a y vss n w=1u l=0.2u\nMN4 y b vss vss n w=1u l=0.2u"
        ),
    ),
    "two bits of a current converter on one output": (
        "d0 d1 out nb vdd vss",
        "MR nb nb vss vss n w=2u l=1u\n"
        + "".join(f"MA{i} k{i} nb vss vss n w=2u l=1u\nMB{i} out d{i} k{i} vss n w=2u l=0.2u\n" for i in range(2)),
    ),
    "a multiplexer of two gates": (
        "a b s sb y vdd vss",
        """
        M1 a s y vss n w=1u l=0.2u
        M2 a sb y vdd p w=2u l=0.2u
        M3 b sb y vss n w=1u l=0.2u
        M4 b s y vdd p w=2u l=0.2u
        """,
    ),
    "a decoder": (
        "a ab b bb y0 y1 y2 y3 vdd vss",
        "".join(
            f"MP{i} y{i} {one} vdd vdd p w=2u l=0.2u\nMQ{i} y{i} {other} vdd vdd p w=2u l=0.2u\n"
            f"MN{i} y{i} {one} k{i} vss n w=2u l=0.2u\nMM{i} k{i} {other} vss vss n w=2u l=0.2u\n"
            for i, (one, other) in enumerate((("a", "b"), ("a", "bb"), ("ab", "b"), ("ab", "bb")))
        ),
    ),
    "four equal followers": (
        "i0 i1 i2 i3 o0 o1 o2 o3 nb vdd vss",
        "".join(f"MA{i} vdd i{i} o{i} vss n w=9u l=0.2u\nMB{i} o{i} nb vss vss n w=6u l=1u\n" for i in range(4)),
    ),
    "two pads with a resistor and a buffer": (
        "a b x y vdd vss",
        "".join(
            f"D1{i} {i} vdd dio\nD2{i} vss {i} dio\nR{i} {i} h{i} 200\n"
            f"MP{i} {o} h{i} vdd vdd p w=2u l=0.2u\nMN{i} {o} h{i} vss vss n w=1u l=0.2u\n"
            for i, o in ("ax", "by")
        ),
    ),
}


def read(spice, ports, cards):
    lines = "\n".join(line.strip() for line in cards.splitlines())
    return spice(f".subckt dut {ports}\n{lines}\n.ends\n")


def variant(circuit, seed):
    """Return the circuit with all drains and sources exchanged, everything shuffled, and other names; and these."""
    rng = random.Random(seed)
    supplies = find_roles(circuit).supplies
    nets = [net for net in circuit.nets if net not in supplies]
    names = dict(zip(nets, rng.sample([f"q{i}" for i in range(len(nets))], len(nets)), strict=True))
    ids = [device.id for device in circuit.devices]
    names |= {
        f"@{old}": new for old, new in zip(ids, rng.sample([f"z{i}" for i in range(len(ids))], len(ids)), strict=True)
    }
    devices = []
    for device in circuit.devices:
        terminals = {end: names.get(net, net) for end, net in device.as_written.terminals.items()}
        if device.is_mos:
            terminals |= {"d": terminals["s"], "s": terminals["d"]}
        devices.append(Device(names[f"@{device.id}"], device.type, device.model, device.params, terminals))
    rng.shuffle(devices)
    ports = [names.get(port, port) for port in circuit.ports]
    rng.shuffle(ports)
    return oriented(Circuit(circuit.name, tuple(devices), tuple(ports))), {
        new: old.lstrip("@") for old, new in names.items()
    }


def images(circuit, back=None):
    """Return the largest structure as sets, its names as ``back`` gives them."""
    old = back or {}
    found = max(find_roles(circuit).symmetry, key=lambda each: len(each.pairs))
    return (
        {frozenset(old.get(name, name) for name in pair) for _, *pair in found.pairs},
        {old.get(name, name) for name in found.centred},
        {frozenset(old.get(net, net) for net in pair) for pair in found.net_pairs},
    )


def sets(text):
    return {frozenset(pair.split("/")) for pair in text.split()}


@pytest.mark.parametrize("name", CIRCUITS)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_images_are_those_that_a_designer_names(spice, name, seed):
    ports, cards, pairs, centred, nets = CIRCUITS[name]
    circuit, back = read(spice, ports, cards), None
    if seed is not None:
        circuit, back = variant(circuit, seed)
    axis = {next(iter(each)) for each in sets(centred)}
    assert images(circuit, back) == (sets(pairs), axis, sets(nets))


@pytest.mark.parametrize("name", NOTHING)
def test_what_only_looks_alike_is_no_image(spice, name):
    circuit = read(spice, *NOTHING[name])
    assert find_roles(circuit).symmetry == ()
    assert find_roles(variant(circuit, 3)[0]).symmetry == ()


def test_two_equal_instances_are_images_flat_or_not(spice):
    body = "X1 dp ck qp vdd vss cell\nX2 dn ck qn vdd vss cell\nR1 qp op 5k\nR2 qn on 5k"
    circuit = spice(f"{LOGIC}.subckt dut dp dn ck op on vdd vss\n{body}\n.ends\n")
    expected = {frozenset((f"X1.{name}", f"X2.{name}")) for name in ("MP1", "MN1", "MNS", "MP2", "MN2")}
    assert images(circuit)[0] == expected | {frozenset(("R1", "R2"))}
    assert images(replace(circuit, subcircuits=())) == images(circuit)


def test_two_flip_flops_on_one_clock_have_no_axis(spice):
    body = "X1 d0 ck q0 vdd vss cell\nX2 d1 ck q1 vdd vss cell"
    assert find_roles(spice(f"{LOGIC}.subckt dut d0 d1 ck q0 q1 vdd vss\n{body}\n.ends\n")).symmetry == ()


OPAMP = """
.subckt opamp inp inn out nb vdd vss
MT t nb vss vss n w=6u l=1u
MA x inp t vss n w=5u l=0.5u
MB y inn t vss n w=5u l=0.5u
MC x x vdd vdd p w=8u l=1u
MD y x vdd vdd p w=8u l=1u
ME out y vdd vdd p w=20u l=0.5u
MF out nb vss vss n w=7u l=1u
.ends
.subckt nand a b q vdd vss
MP1 q a vdd vdd p w=2u l=0.2u
MP2 q b vdd vdd p w=2u l=0.2u
MN1 q a k vss n w=2u l=0.2u
MN2 k b vss vss n w=2u l=0.2u
.ends
"""
INSIDE = sets(" ".join(f"X1.{name}/X2.{name}" for name in ("MT", "MA", "MB", "MC", "MD")))
AMPLIFIERS = {frozenset(sets(f"X{i}.MA/X{i}.MB X{i}.MC/X{i}.MD")) for i in (1, 2)}
TWO_OPAMPS = {
    "relaxation oscillator": (
        "ref ib q1 q2 vdd vss",
        "".join(
            f"MI{i} r{i} pb vdd vdd p w=4u l=1u\nMR{i} r{i} q{o} vss vss n w=4u l=0.2u\nC{i} r{i} vss 1p\n"
            f"X{i} r{i} ref c{i} ib vdd vss opamp\nXN{i} c{i} q{o} q{i} vdd vss nand\n"
            for i, o in ("12", "21")
        )
        + "MP pb pb vdd vdd p w=4u l=1u\nMQ pb ib vss vss n w=2u l=1u\nMS ib ib vss vss n w=2u l=1u",
        "MI1/MI2 MR1/MR2 C1/C2 X1.ME/X2.ME X1.MF/X2.MF XN1.MP1/XN2.MP1 XN1.MP2/XN2.MP2 XN1.MN1/XN2.MN1 XN1.MN2/XN2.MN2",
        "r1/r2 q1/q2 c1/c2 XN1.k/XN2.k",
    ),
    "instrumentation amplifier": (
        "i1 i2 o1 o2 nb vdd vss",
        "X1 i1 f1 o1 nb vdd vss opamp\nX2 i2 f2 o2 nb vdd vss opamp\nR1 o1 f1 20k\nR2 o2 f2 20k\nRG f1 f2 5k",
        "R1/R2 X1.ME/X2.ME X1.MF/X2.MF",
        "o1/o2 f1/f2 i1/i2",
    ),
    "two buffers without anything between them": ("i1 i2 o1 o2 nb vdd vss", "", "", ""),
}


@pytest.mark.parametrize("name", TWO_OPAMPS)
def test_two_equal_cells_are_images_around_the_axes_within_them(spice, name):
    """Flat or not: each amplifier has its axis, and the two, with what is around them, are images about another."""
    ports, cards, pairs, nets = TWO_OPAMPS[name]
    cards = cards or "X1 i1 o1 o1 nb vdd vss opamp\nX2 i2 o2 o2 nb vdd vss opamp"
    circuit = spice(f"{OPAMP}.subckt dut {ports}\n{cards}\n.ends\n", top="dut")
    for each, back in ((circuit, None), (replace(circuit, subcircuits=()), None), variant(circuit, 6)):
        assert structures(each, back) == AMPLIFIERS | ({frozenset(sets(pairs) | INSIDE)} if pairs else set())
        old = back or {}
        found = {frozenset(old.get(n, n) for n in pair) for s in find_roles(each).symmetry for pair in s.net_pairs}
        assert sets(nets) <= found
        assert frozenset(("r1", "ref")) not in found


def test_what_two_amplifiers_drive_leaves_each_its_axis_and_its_groups(spice):
    """A pair behind two amplifiers, each with a bias diode of its own: no group holds a device of both."""
    bias = OPAMP.replace(
        "MF out nb vss vss n w=7u l=1u\n", "MF out nb vss vss n w=7u l=1u\nMN nb nb vss vss n w=6u l=1u\n"
    )
    bias = bias.replace("inp inn out nb vdd", "inp inn out ib vdd").replace("MN nb nb", "RN ib nb 9k\nMN nb nb")
    cards = "X1 i1 o1 o1 ib vdd vss opamp\nX2 i2 o2 o2 ib vdd vss opamp\nMT k nx vss vss n w=9u l=1u\n"
    cards += (
        "MA x o1 k vss n w=3u l=1u\nMB y o2 k vss n w=3u l=1u\nMC x x vdd vdd p w=4u l=1u\nMD y x vdd vdd p w=4u l=1u"
    )
    circuit = spice(f"{bias}.subckt dut i1 i2 y ib nx vdd vss\n{cards}\n.ends\n", top="dut")
    outer = INSIDE | sets("MA/MB MC/MD X1.ME/X2.ME X1.MF/X2.MF X1.MN/X2.MN X1.RN/X2.RN")
    for each, back in ((circuit, None), (replace(circuit, subcircuits=()), None), variant(circuit, 7)):
        old = back or {}
        assert structures(each, back) == AMPLIFIERS | {frozenset(outer)}
        assert {old.get(n, n) for s in find_roles(each).symmetry for n in s.centred} >= {"X1.MT", "X2.MT", "MT"}
        matched = {"differential_pair", "current_mirror", "load_pair", "cascode_pair"}
        groups = [{old.get(n, n)[:2] for n in g.devices} for g in recognise(each) if g.type in matched]
        assert not any({"X1", "X2"} <= cells for cells in groups)
        constraints = suggest_constraints(each)
        assert not find_faults(constraints, each)
        nets = [net for group in constraints.symmetry for pair in group.net_pairs for net in pair]
        assert len(nets) == len(set(nets))
        beside = replace(constraints.symmetry[1], pairs=(constraints.symmetry[0].pairs[0],))
        assert find_faults(Constraints(symmetry=(constraints.symmetry[0], beside)), each)


SHARED_OUTPUTS = {
    "two amplifiers of both types drive one output": (
        "p n out nb pb",
        """
        MA x p t vss n w=4u l=1u
        MB out n t vss n w=4u l=1u
        MC x x vdd vdd p w=6u l=1u
        MD out x vdd vdd p w=6u l=1u
        MT t nb vss vss n w=5u l=1u
        ME y p u vdd p w=8u l=1u
        MF out n u vdd p w=8u l=1u
        MG y y vss vss n w=3u l=1u
        MH out y vss vss n w=3u l=1u
        MU u pb vdd vdd p w=7u l=1u
        """,
        {"MA/MB MC/MD", "ME/MF MG/MH"},
    ),
    "two pairs under a steered current, with loads that are diodes": (
        "o1 o2 a1 a2 b1 b2 ca cb nb",
        """
        MA o1 a1 x vss n w=4u l=0.2u
        MB o2 a2 x vss n w=4u l=0.2u
        MC o1 b1 y vss n w=4u l=0.2u
        MD o2 b2 y vss n w=4u l=0.2u
        ME x ca t vss n w=6u l=0.2u
        MF y cb t vss n w=6u l=0.2u
        MG o1 o1 vdd vdd p w=2u l=0.2u
        MH o2 o2 vdd vdd p w=2u l=0.2u
        MT t nb vss vss n w=5u l=1u
        """,
        {"MA/MB MC/MD MG/MH", "ME/MF"},
    ),
}


@pytest.mark.parametrize("name", SHARED_OUTPUTS)
def test_outputs_that_pairs_share_lie_on_both_sides_of_an_axis(spice, name):
    ports, cards, expected = SHARED_OUTPUTS[name]
    circuit = read(spice, ports, cards)
    for each, back in ((circuit, None), variant(circuit, 8)):
        assert structures(each, back) == {frozenset(sets(pairs)) for pairs in expected}
        nets = [net for structure in find_roles(each).symmetry for pair in structure.net_pairs for net in pair]
        assert len(nets) == len(set(nets))


def test_equal_capacitors_by_value_on_bipolar_outputs_are_a_pair(spice):
    bipolar = (
        "Q1 a p e qn\nQ2 b n e qn\nIT e vss 1m\nR1 vdd a 1k\nR2 vdd b 1k\nC1 a vss 0.5p\nC2 b vss 0.5p\n.model qn npn\n"
    )
    groups = {group.type: set(group.devices) for group in recognise(read(spice, "a b p n vdd vss", bipolar))}
    assert groups["capacitor_pair"] == {"C1", "C2"}


def test_a_differential_circuit_is_one_group_with_one_axis(spice):
    """The common-mode amplifier has a symmetry of its own: its inputs are a reference and the middle of two outputs."""
    ports, cards, *_ = CIRCUITS["fully differential, two stages, common mode sensed by resistors"]
    circuit = read(spice, ports, cards)
    main, sensing = suggest_constraints(circuit).symmetry
    assert len(main.pairs) == 6
    assert {frozenset(pair) for pair in sensing.pairs} == {frozenset(("MJ", "MK")), frozenset(("MM", "MN"))}
    assert sensing.self_symmetric == ("ML",)
    used = Counter(name for group in (main, sensing) for pair in group.pairs for name in pair)
    assert max(used.values()) == 1


def test_the_kinds_of_pairs(spice):
    kinds = {}
    for name in CIRCUITS:
        for group in recognise(read(spice, *CIRCUITS[name][:2])):
            kinds.setdefault(group.type, set()).add(frozenset(group.devices))
    assert sets("MA/MB") <= kinds["differential_pair"]
    assert sets("MA2/MB2") <= kinds["differential_pair"]  # above two sources
    assert sets("MC/MD") <= kinds["cascode_pair"]
    assert sets("ME/MF MG/MH MD1/MD2") <= kinds["load_pair"]
    assert sets("MS1/MS3 MS3/MS4") <= kinds["switch_pair"]
    assert sets("MHA/MHB") <= kinds["symmetric_pair"]
    assert sets("R1/R2") <= kinds["resistor_pair"]
    assert sets("CC/CD C1/C2") <= kinds["capacitor_pair"]


def structures(circuit, back=None):
    """Return the pairs of each structure as sets, its names as ``back`` gives them."""
    old = back or {}
    return {
        frozenset(frozenset(old.get(n, n) for n in names) for _, *names in each.pairs)
        for each in find_roles(circuit).symmetry
    }


def test_every_one_of_several_equal_cells_has_its_pairs(spice):
    """Three multipliers share one bias and one reference, and their outputs; the axis is that of one of them."""
    cards = "".join(
        f"MA{i} x{i} vr k{i} vss n w=8u l=0.5u\nMB{i} y{i} in{i} l{i} vss n w=8u l=0.5u\nR{i} k{i} l{i} 20k\n"
        f"MC{i} k{i} nb vss vss n w=5u l=1u\nMD{i} l{i} nb vss vss n w=5u l=1u\n"
        f"ME{i} on w{i} x{i} vss n w=8u l=0.5u\nMF{i} op wr x{i} vss n w=8u l=0.5u\n"
        f"MG{i} on wr y{i} vss n w=8u l=0.5u\nMH{i} op w{i} y{i} vss n w=8u l=0.5u\n"
        for i in (1, 2, 3)
    )
    circuit = read(spice, "in1 in2 in3 vr w1 w2 w3 wr nb on op vdd vss", cards + "RP op vdd 5k\nRN on vdd 5k")
    expected = {frozenset({f"{one}{i}", f"{other}{i}"}) for i in (1, 2, 3) for one, other in ("AB", "EF", "GH")}
    for seed in range(6):
        turned, back = variant(circuit, seed)
        groups = (group for group in find_roles(turned).groups if group.type == "differential_pair")
        assert {frozenset(back[name][1:] for name in group.devices) for group in groups} == expected


def test_equal_dummies_on_two_nets_of_a_pair_are_images_and_state_no_symmetry(spice):
    cards = TAIL_AND_PAIR + (
        "MC x x vdd vdd p w=8u l=1u\nMD y x vdd vdd p w=8u l=1u\n"
        "MX x vss vss vss n w=5u l=0.5u\nMY y vss vss vss n w=5u l=0.5u\nMZ y vss vss vss n w=2u l=0.5u\n"
    )
    circuit = read(spice, "inp inn y nb vdd vss", cards)
    (structure,) = find_roles(circuit).symmetry
    assert ("dummy_pair", "MX", "MY") in {(kind, *sorted(pair)) for kind, *pair in structure.pairs}
    assert not {"MX", "MY", "MZ"} & {
        name for group in suggest_constraints(circuit).symmetry for pair in group.pairs for name in pair
    }


def test_amplifiers_that_share_an_input_have_an_axis_each(spice):
    """The voltage that both compare with faces another net in each of them."""
    cards = "".join(
        f"MT{i} t{i} nb vss vss n w=6u l=1u\nMA{i} x{i} z{i} t{i} vss n w={size}u l=1u\n"
        f"MB{i} y{i} vcm t{i} vss n w={size}u l=1u\nMC{i} x{i} x{i} vdd vdd p w=8u l=1u\n"
        f"MD{i} y{i} x{i} vdd vdd p w=8u l=1u\nME{i} o{i} y{i} vdd vdd p w=30u l=1u\n"
        f"MF{i} o{i} nb vss vss n w=9u l=1u\n"
        for i, size in ((1, 4), (2, 5))
    )
    circuit = read(spice, "z1 z2 o1 o2 nb vcm vdd vss", cards)
    expected = {frozenset(sets(f"MA{i}/MB{i} MC{i}/MD{i}")) for i in (1, 2)}
    for seed in range(3):
        assert structures(*variant(circuit, seed)) == expected
    assert structures(circuit) == expected


CELLS = ("XN1", "XN2", "XP1", "XP2")


def test_two_equal_channels_of_several_amplifiers_are_images(spice):
    """The channels have an axis, and each amplifier within them has one of its own, on which its pairs lie."""
    amplifier = """
        .subckt amp_{k} ref in out b1 b2 c1 vdd vss
        MT t b1 {r1} {r1} {m1} w=6u l=1u
        MA x ref t {r1} {m1} w=4u l=0.5u
        MB y in t {r1} {m1} w=4u l=0.5u
        MC x b2 {r2} {r2} {m2} w=7u l=1u
        MD y b2 {r2} {r2} {m2} w=7u l=1u
        ME z c1 x {r2} {m2} w=5u l=0.5u
        MF out c1 y {r2} {m2} w=5u l=0.5u
        MG z z {r1} {r1} {m1} w=3u l=1u
        MH out z {r1} {r1} {m1} w=3u l=1u
        .ends
        """
    cells = amplifier.format(k="n", m1="n", m2="p", r1="vss", r2="vdd")
    cells += amplifier.format(k="p", m1="p", m2="n", r1="vdd", r2="vss")
    channel = "".join(
        f"XN{i} vrn e{i} gp{i} nb pb cp vdd vss amp_n\nXP{i} vrp d{i} gn{i} pb nb cn vdd vss amp_p\n"
        f"MP{i} o{i} gp{i} e{i} vdd p w=4u l=0.5u\nMN{i} o{i} gn{i} d{i} vss n w=4u l=0.5u\n"
        f"MI{i} e{i} pb vdd vdd p w=8u l=1u\nMJ{i} d{i} nb vss vss n w=8u l=1u\n"
        for i in (1, 2)
    )
    ports = "d1 d2 e1 e2 o1 o2 vrn vrp nb pb cn cp vdd vss"
    lines = "\n".join(line.strip() for line in cells.splitlines())
    circuit = spice(f"{lines}\n.subckt dut {ports}\n{channel}.ends\n", top="dut")
    pairs = [f"M{k}1/M{k}2" for k in "PNIJ"] + [f"X{a}1.M{k}/X{a}2.M{k}" for a in "NP" for k in "TABCDEFGH"]
    inside = {frozenset(sets(f"{x}.MA/{x}.MB {x}.MC/{x}.MD {x}.ME/{x}.MF {x}.MG/{x}.MH")) for x in CELLS}
    for each, back in ((circuit, None), variant(circuit, 4)):
        assert structures(each, back) == {frozenset(sets(" ".join(pairs))), *inside}
        groups = {frozenset((back or {}).get(n, n) for n in group.devices): group.type for group in recognise(each)}
        for name in CELLS:
            assert groups[frozenset((f"{name}.MA", f"{name}.MB"))] == "differential_pair"
            assert groups[frozenset((f"{name}.ME", f"{name}.MF"))] == "cascode_pair"


def test_one_gate_is_of_loads_on_a_rail_and_of_switches_on_a_clock(spice):
    loads = "ML1 vdd vdd x vss n w=2u l=1u\nML2 vdd vdd y vss n w=2u l=1u"
    clocked = """
        MC x y vdd vdd p w=3u l=0.5u
        MD y x vdd vdd p w=3u l=0.5u
        ME q ck x vdd p w=2u l=0.5u
        MF qb ck y vdd p w=2u l=0.5u
        MG q ck vss vss n w=2u l=0.5u
        MH qb ck vss vss n w=2u l=0.5u
        MI q qb vss vss n w=3u l=0.5u
        MJ qb q vss vss n w=3u l=0.5u
        """
    for cards, kind, pair in ((loads, "load_pair", "ML1/ML2"), (clocked, "switch_pair", "ME/MF")):
        circuit = read(spice, "inp inn nb ck q qb vdd vss", TAIL_AND_PAIR + cards)
        for each, back in ((circuit, None), variant(circuit, 5)):
            found = {frozenset((back or {}).get(n, n) for n in group.devices): group.type for group in recognise(each)}
            assert found.get(*sets(pair)) == kind


@pytest.mark.parametrize("seed", [1, 2])
def test_switched_halves_whose_outputs_have_two_equal_branches_have_an_axis(spice, seed):
    """There is no common node, and of two equal branches or arms either may be the image."""
    cards = "".join(
        f"""
        M2{a} cm p2 v{a} vss n w=1u l=0.2u
        C1{a} y{a} v{a} c=0.5p
        C2{a} y{a} w{a} c=0.5p
        M4{a} cm p2 w{a} vss n w=1u l=0.2u
        M5{a} y{a} p2 n{a} vss n w=1u l=0.2u
        M6{a} n{a} p2 u{a} vss n w=1u l=0.2u
        C3{a} a{a} u{a} c=4p
        M7{a} s{a} p2 a{a} vss n w=1u l=0.2u
        M8{a} cm p1 s{a} vss n w=1u l=0.2u
        M9{a} t{a} p2 a{a} vss n w=1u l=0.2u
        M0{a} cm p1 t{a} vss n w=1u l=0.2u
        """
        for a in "ab"
    )
    circuit, back = variant(read(spice, "aa ab cm vdd vss", cards), seed)
    pairs, _, nets = images(circuit, back)
    assert len(pairs) == 11
    assert all({name[-1] for name in pair} == {"a", "b"} for pair in (*pairs, *nets))


@st.composite
def halves(draw):
    """A random half of a circuit, each device of a size of its own, and its mirror image below one tail."""
    inner = [f"i{n}" for n in range(draw(st.integers(1, 4)))]
    shared = ["vdd", "vss", "b1", "b2"]
    net = st.sampled_from(inner + shared)
    devices = [("MA", "nmos", 9.0, {"d": inner[0], "g": "in", "s": "tail", "b": "vss"})]
    for number in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["nmos", "pmos", "resistor", "capacitor"]))
        ends = ("d", "g", "s") if kind in ("nmos", "pmos") else ("p", "n")
        nets = {end: draw(net) for end in ends}
        if kind in ("nmos", "pmos"):
            nets["b"] = "vss" if kind == "nmos" else "vdd"
        devices.append((f"D{number}", kind, number + 1.0, nets))
    sides = []
    for side in "lr":
        for name, kind, width, nets in devices:
            own = {end: net if net in (*shared, "tail") else f"{net}{side}" for end, net in nets.items()}
            sides.append(Device(f"{name}{side}", kind, kind, {"w": width * 1e-6, "l": 1e-6}, own))
    tail = Device("MT", "nmos", "nmos", {"w": 2e-5, "l": 1e-6}, {"d": "tail", "g": "b1", "s": "vss", "b": "vss"})
    return oriented(Circuit("mirrored", (*sides, tail), ("inl", "inr", "b1", "b2", "vdd", "vss")))


@settings(max_examples=examples(150), deadline=None)
@given(halves())
def test_no_device_of_a_mirrored_circuit_gets_another_image_than_its_own(circuit):
    for structure in find_roles(circuit).symmetry:
        for _, one, other in structure.pairs:
            assert (one[:-1], {one[-1], other[-1]}) == (other[:-1], {"l", "r"})
        for one, other in structure.net_pairs:
            assert (one[:-1], {one[-1], other[-1]}) == (other[:-1], {"l", "r"})
