"""Currents that nobody stated: from the structure of the circuit, whatever its names and the order of its cards."""

import json
import random
from pathlib import Path

import pytest

from layoutkit.circuit import find_roles, read_netlist
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.review.currents import device_currents
from layoutkit.technology import load

SKY = load("sky130A")
USUAL = (0.2 / 1.35) ** 1.5  # of full drive, at 0.2 V of overdrive: the alpha-power law with VT = VDD / 4
FULL = 0.516e-3 * 0.15  # A for W/L = 1
OPERATING_POINTS = json.loads(Path(__file__).with_name("operating_points.json").read_text(encoding="utf-8"))
"""Circuits with the currents that ngspice 39 found with the typical models of sky130_fd_pr and gf180mcu_fd_pr."""

TWO_STAGE = """* two-stage amplifier
.subckt amp inp inn out ib vdd vss
MB ib ib vss vss nfet_01v8 W=4u L=1u
MT tail ib vss vss nfet_01v8 W=8u L=1u
M1 n1 inn tail vss nfet_01v8 W=8u L=0.5u
M2 n2 inp tail vss nfet_01v8 W=8u L=0.5u
M3 n1 n1 vdd vdd pfet_01v8 W=6u L=1u
M4 n2 n1 vdd vdd pfet_01v8 W=6u L=1u
M6 out n2 vdd vdd pfet_01v8 W=40u L=0.5u
M7 out ib vss vss nfet_01v8 W=16u L=1u
.ends
"""


def currents(text, stated=None, technology=SKY, nets=None):
    circuit = read_netlist(NetlistText(text), identify_modules=False)
    return device_currents(circuit, find_roles(circuit), technology, stated or {}, nets).devices


@pytest.mark.parametrize("case", OPERATING_POINTS, ids=lambda case: f"{case['circuit']}-{case['technology']}")
def test_currents_are_within_a_factor_of_two_of_the_operating_point(case):
    """Where a port sets the current it is stated; what the circuit sets itself is not."""
    netlist, technology = "\n".join(["*", *case["netlist"], ""]), load(case["technology"])
    found = currents(netlist, case["stated"], technology, case.get("nets"))
    ratios = {name: round(found[name].ampere / ampere, 3) for name, ampere in case["measured"].items()}
    assert {name: ratio for name, ratio in ratios.items() if not 0.5 <= ratio <= 2} == {}


def test_mirrors_pass_their_reference_on_and_all_else_follows():
    found = currents(TWO_STAGE)
    reference = FULL * 4 * USUAL
    wanted = {"MB": 1, "MT": 2, "M1": 1, "M2": 1, "M3": 1, "M4": 1, "M6": 4, "M7": 4}
    assert {name: found[name].ampere / reference for name in wanted} == pytest.approx(wanted)
    assert not any(each.assumed for each in found.values())
    assert not any(each.full or each.stated for each in found.values())


def test_a_stated_current_decides_the_others():
    found = currents(TWO_STAGE, {"MT": 20e-6})
    assert found["MT"].stated
    assert {name: round(found[name].ampere * 1e6, 6) for name in ("MB", "M1", "M6")} == {"MB": 10, "M1": 10, "M6": 40}


def test_the_order_of_cards_and_names_decide_nothing():
    lines = TWO_STAGE.splitlines()
    cards = lines[2:-1]
    random.Random(3).shuffle(cards)
    renamed = [f"MZ{10 * number}X{card.split()[0]} {card.split(maxsplit=1)[1]}" for number, card in enumerate(cards)]
    found = currents("\n".join([*lines[:2], *renamed, lines[-1], ""]))
    before = currents(TWO_STAGE)
    assert {name.split("X")[1]: each.ampere for name, each in found.items()} == pytest.approx(
        {name: each.ampere for name, each in before.items()}
    )


def test_a_resistor_sets_the_current_of_a_reference():
    text = TWO_STAGE.replace("MB ib ib", "R1 vdd ib res_high_po_0p69 W=0.69u L=69u\nMB ib ib")
    ohm = 100 * SKY.device_names.drawn("res_high_po_0p69").value
    assert currents(text)["MB"].ampere == pytest.approx((0.75 * 1.8 - 0.2) / ohm)


def test_a_pass_device_carries_what_it_can_at_full_drive():
    text = """* pass
.subckt pass vin vout gate vss
MP vout gate vin vin pfet_01v8 W=100u L=0.15u
MB x b vss vss nfet_01v8 W=1u L=1u
.ends
"""
    found = currents(text)["MP"]
    assert found.full
    assert found.ampere == pytest.approx(0.202e-3 * 100)


FOLLOWER = """* a buffer: an amplifier drives the gate of what feeds an output, which resistors load
.subckt buffer in out ib vdd vss
MB ib ib vss vss nfet_01v8 W=4u L=1u
MT tail ib vss vss nfet_01v8 W=8u L=1u
M1 n1 out tail vss nfet_01v8 W=8u L=0.5u
M2 n2 in tail vss nfet_01v8 W=8u L=0.5u
M3 n1 n1 vdd vdd pfet_01v8 W=6u L=1u
M4 n2 n1 vdd vdd pfet_01v8 W=6u L=1u
MF vdd n2 out vss nfet_01v8 W={width}u L=0.15u
{load}
.ends
"""


@pytest.mark.parametrize(("width", "full"), [(44, False), (46, True)])
@pytest.mark.parametrize("load", [("out vss",), ("out x", "x vss")])
def test_a_follower_carries_what_its_resistors_take(width, full, load):
    cards = [f"R{number} {nets} res_high_po_0p69 W=0.69u L=69u" for number, nets in enumerate(load)]
    found = currents(FOLLOWER.format(width=width, load="\n".join(cards)))["MF"]
    ohm = 100 * SKY.device_names.drawn("res_high_po_0p69").value * len(load)
    assert found.full == full
    if not full:
        assert found.ampere == pytest.approx(0.75 * 1.8 / ohm)
    assert currents(FOLLOWER.format(width=width, load=""))["MF"].full


PULL_UP = """* what pulls up an output; what drives its gate is elsewhere
.subckt stage out gate vdd vss
MP out gate vdd vdd pfet_01v8 W={}u L={}u
MB x b vss vss nfet_01v8 W=1u L=1u
.ends
"""
"""A supply, a load, an output stage or a pass device, by what drives its gate."""


@pytest.mark.parametrize(
    ("width", "length", "gate", "full"),
    [
        (40, 0.5, "gate", False),  # load or output stage
        (160, 0.5, "gate", False),  # a larger one, longer than what only passes a current on
        (40, 0.15, "gate", False),
        (60, 0.15, "gate", True),  # as large as no amplifier makes it
        (10, 0.15, "enb", True),
        (1, 1, "enb", False),  # it holds an output in power-down
        (10, 0.15, "sleep", True),
    ],
)
def test_a_transistor_whose_gate_is_a_port_alone_is_a_pass_device_by_size_or_by_what_its_gate_is_called(
    width, length, gate, full
):
    found = currents(PULL_UP.format(width, length).replace("gate", gate))["MP"]
    usual = 0.202e-3 * width * 0.15 / length * USUAL
    assert (found.full, found.assumed) == (full, not full)
    if full:
        assert found.ampere == pytest.approx(0.202e-3 * width)
    else:
        assert found.ampere == pytest.approx(usual)
        assert "driven from outside" in found.how


@pytest.mark.parametrize("count", [1, 8])
def test_parallel_cards_are_one_pass_device(count):
    """60 um in as many cards."""
    card = f"out gate vdd vdd pfet_01v8 W={60 / count}u L=0.15u"
    cards = [f"MP{number} {card}" for number in range(count)]
    found = currents(
        "\n".join(["* x", ".subckt x out gate vdd vss", *cards, "MB x b vss vss nfet_01v8 W=1u L=1u", ".ends", ""])
    )
    assert {found[f"MP{number}"].full for number in range(count)} == {True}


@pytest.mark.parametrize(
    "driver", ["MI gate en vdd vdd pfet_01v8 W=1u L=0.15u", "MI y gate vdd vdd pfet_01v8 W=1u L=0.15u"]
)
def test_what_an_inverter_drives_or_complements_is_a_switch(driver):
    """The gate is the output of an inverter inside, or an inverter makes its complement of it."""
    below = driver.replace("MI", "MJ").replace("vdd vdd pfet", "vss vss nfet")
    text = PULL_UP.format(10, 0.15).replace(".ends", f"{driver}\n{below}\n.ends")
    assert currents(text)["MP"].full


SAMPLER = """* sampling switch
.subckt sampler vin out {ports} vdd vss
MN out {gate} vin vss nfet_01v8 W=10u L=0.15u
C1 out vss cap_mim_m3_1 W=20u L=20u
MA y out vss vss nfet_01v8 W=4u L=0.5u
MB y vb vdd vdd pfet_01v8 W=8u L=0.5u
.ends
"""


@pytest.mark.parametrize("ports", ["clk vb y", "vb y"], ids=["clocked", "nothing on its gate"])
@pytest.mark.parametrize("hidden", [False, True])
def test_a_switch_onto_a_capacitor_and_a_gate_carries_charge_alone(ports, hidden):
    text = SAMPLER.format(ports=ports, gate="clk")
    found = currents(text.replace("vin out ", "vin ") if hidden else text)["MN"]
    assert (found.ampere, found.full) == (0, False)


def test_a_switch_onto_a_capacitor_with_a_load_carries_a_current():
    """The same switch with a resistor beside the capacitor."""
    text = SAMPLER.format(ports="clk vb y", gate="clk").replace(
        "MA y", "R1 out vss res_high_po_0p69 W=0.69u L=69u\nMA y"
    )
    found = currents(text)["MN"]
    assert found.full
    assert found.ampere == pytest.approx(0.516e-3 * 10)


def test_a_large_pass_device_with_a_capacitor_at_its_port_carries_a_current():
    text = SAMPLER.format(ports="gate vb y", gate="gate").replace("W=10u L=0.15u", "W=180u L=0.15u")
    assert currents(text)["MN"].full


def test_a_starved_inverter_onto_a_capacitor_is_no_sampling_switch():
    text = """* an inverter, then a starved one
.subckt delay in out vb vbp vdd vss
MP0 a in vdd vdd pfet_01v8 W=1u L=0.15u
MN0 a in vss vss nfet_01v8 W=1u L=0.15u
MP1 out a top vdd pfet_01v8 W=1u L=0.15u
MN1 out a foot vss nfet_01v8 W=1u L=0.15u
MP2 top vbp vdd vdd pfet_01v8 W=1u L=1u
MN2 foot vb vss vss nfet_01v8 W=1u L=1u
C1 out vss cap_mim_m3_1 W=5u L=5u
.ends
"""
    found = currents(text)
    assert found["MP1"].ampere > 0
    assert found["MN1"].ampere > 0


BOOTSTRAPPED = """* its gate is lifted by the capacitor that the input charges
.subckt sample vin out clk clkb vdd vss
MS out g vin vss nfet_01v8 W={}u L=0.15u
M1 low g vin vss nfet_01v8 W=1u L=0.15u
M2 low clkb vss vss nfet_01v8 W=1u L=0.15u
M3 high g vdd high pfet_01v8 W=1u L=0.15u
M4 g c high high pfet_01v8 W=1u L=0.15u
M5 c clk vdd vdd pfet_01v8 W=1u L=0.15u
M6 c clk low vss nfet_01v8 W=1u L=0.15u
M7 c g low vss nfet_01v8 W=1u L=0.15u
M8 g vdd e vss nfet_01v8 W=1u L=0.15u
M9 e clkb vss vss nfet_01v8 W=1u L=0.15u
C1 high {} cap_mim_m3_1 W=20u L=20u
.ends
"""


@pytest.mark.parametrize("width", [10, 180])
def test_a_bootstrapped_switch_carries_charge_alone(width):
    assert currents(BOOTSTRAPPED.format(width, "low"))["MS"].ampere == 0


def test_a_switch_whose_gate_a_charge_pump_lifts_carries_a_current():
    """The capacitor hangs on a clock, not on what the switch carries."""
    assert currents(BOOTSTRAPPED.format(10, "clk"))["MS"].full


def test_a_transistor_between_ports_as_short_as_can_be_is_taken_for_a_switch():
    """One of the same width that is longer may be half of a pair, or a cascode."""
    text = """* lone
.subckt lone a b gate vss
M1 a gate b vss nfet_01v8 W=10u L={}u
MB x b vss vss nfet_01v8 W=1u L=1u
.ends
"""
    short, long = (currents(text.format(length))["M1"] for length in (0.15, 0.5))
    assert (short.full, short.assumed, long.full, long.assumed) == (True, True, False, True)
    assert long.ampere == pytest.approx(0.516e-3 * 10 * 0.15 / 0.5 * USUAL)


def test_a_pair_whose_nets_are_all_ports_is_no_pass_device():
    text = """* pair
.subckt pair outp outn inp inn tail vss
M1 outp inp tail vss nfet_01v8 W=8u L=0.5u
M2 outn inn tail vss nfet_01v8 W=8u L=0.5u
.ends
"""
    found = currents(text)
    assert not found["M1"].full
    assert found["M1"].assumed  # its tail is elsewhere
    assert found["M1"].ampere == pytest.approx(FULL * 16 * USUAL)


def test_devices_that_are_off_carry_nothing():
    text = TWO_STAGE.replace("M7 out", "MD out vss vss vss nfet_01v8 W=16u L=1u\nM7 out")
    assert "MD" not in currents(text)


def test_of_references_in_series_the_one_of_the_least_current_decides():
    """Both loads are wide diodes, and so is the tail, whose current is less; half of it flows in each."""
    text = """* symmetrical amplifier
.subckt amp inp inn outp outn copy vdd vss
MT tail tail vdd vdd pfet_01v8 W=4u L=1u
MC copy tail vdd vdd pfet_01v8 W=4u L=1u
M1 n1 inp tail vdd pfet_01v8 W=8u L=0.5u
M2 n2 inn tail vdd pfet_01v8 W=8u L=0.5u
M3 n1 n1 vss vss nfet_01v8 W=20u L=1u
M4 n2 n2 vss vss nfet_01v8 W=20u L=1u
M5 outp n1 vss vss nfet_01v8 W=20u L=1u
M6 outn n2 vss vss nfet_01v8 W=20u L=1u
.ends
"""
    found = currents(text)
    assert [found["MT"].ampere / found[name].ampere for name in ("MC", "M1", "M3", "M4", "M6")] == pytest.approx(
        [1, 2, 2, 2, 2]
    )


def test_a_folding_net_divides_its_current_between_tail_and_cascode():
    """Each source above gives 3 units, the tail takes 1 of each side, so that each cascode carries 2."""
    text = """* folded cascode
.subckt folded inp inn out ib ibp vcp vcn vdd vss
MB ib ib vss vss nfet_01v8 W=4u L=1u
MT tail ib vss vss nfet_01v8 W=8u L=1u
M1 a inn tail vss nfet_01v8 W=8u L=0.5u
M2 b inp tail vss nfet_01v8 W=8u L=0.5u
M3 a ibp vdd vdd pfet_01v8 W=24u L=1u
M4 b ibp vdd vdd pfet_01v8 W=24u L=1u
M5 c vcp a vdd pfet_01v8 W=12u L=0.5u
M6 out vcp b vdd pfet_01v8 W=12u L=0.5u
M7 c vcn d vss nfet_01v8 W=6u L=0.5u
M8 out vcn e vss nfet_01v8 W=6u L=0.5u
M9 d c vss vss nfet_01v8 W=6u L=1u
M10 e c vss vss nfet_01v8 W=6u L=1u
.ends
"""
    found = currents(text, {"MB": 10e-6, "M3": 30e-6, "M4": 30e-6})
    wanted = {"M1": 10, "M2": 10, "M5": 20, "M6": 20, "M7": 20, "M9": 20, "M10": 20}
    assert {name: round(found[name].ampere * 1e6, 6) for name in wanted} == wanted


def test_the_stated_current_of_a_net_decides_that_of_its_pass_device():
    text = """* pass
.subckt pass vin vout gate vss
MP vout gate vin vin pfet_01v8 W=100u L=0.15u
MB x b vss vss nfet_01v8 W=1u L=1u
.ends
"""
    assert currents(text, nets={"vout": 2e-3})["MP"].ampere == pytest.approx(2e-3)


REGULATOR = """* regulator of a block inside
.subckt regulator vref ib vdd vss
MB ib ib vss vss nfet_01v8 W=4u L=1u
MT tail ib vss vss nfet_01v8 W=8u L=1u
M1 n1 vreg tail vss nfet_01v8 W=8u L=0.5u
M2 g vref tail vss nfet_01v8 W=8u L=0.5u
M3 n1 n1 vdd vdd pfet_01v8 W=6u L=1u
M4 g n1 vdd vdd pfet_01v8 W=6u L=1u
MP {fed} g vdd vdd pfet_01v8 W=40u L=0.3u
{cells}.ends
"""


@pytest.mark.parametrize("body", ["vreg", "vdd"])
@pytest.mark.parametrize(("cells", "full"), [(0, False), (3, True), (5, True)])
def test_what_feeds_the_rail_of_a_block_inside_is_a_pass_device(cells, full, body):
    """An oscillator hangs on the rail; without it the transistor is the output of an amplifier."""
    ring = "".join(
        f"MP{n} r{(n + 1) % cells} r{n} vreg {body} pfet_01v8 W=2u L=0.15u\n"
        f"MN{n} r{(n + 1) % cells} r{n} vss vss nfet_01v8 W=1u L=0.15u\n"
        for n in range(cells)
    )
    found = currents(REGULATOR.format(fed="vreg", cells=ring))["MP"]
    assert (found.full, found.assumed) == (full, not full)
    if full:
        assert found.ampere == pytest.approx(0.202e-3 * 40 * 0.15 / 0.3)


def test_a_tail_with_a_pair_in_its_own_well_feeds_no_rail():
    """The common mode drives the tail's gate."""
    text = """* pair
.subckt amp inp inn op on cm vdd vss
MT tail g vdd vdd pfet_01v8 W=8u L=0.3u
MG g cm vss vss nfet_01v8 W=2u L=1u
MD g g vdd vdd pfet_01v8 W=2u L=0.3u
M1 on inp tail tail pfet_01v8 W=8u L=0.3u
M2 op inn tail tail pfet_01v8 W=8u L=0.3u
R1 on vss res_high_po_0p69 W=0.69u L=69u
R2 op vss res_high_po_0p69 W=0.69u L=69u
.ends
"""
    assert not currents(text)["MT"].full


POWER_DOWN = """* current sources, which a switch turns off; what else it may be
.subckt bias ib o1 o2 pd vdd vss
MS {end} {gate} vss vss nfet_01v8 W=4u L=0.15u
M1 o1 ib vss vss nfet_01v8 W=8u L=1u
M2 o2 ib vss vss nfet_01v8 W=8u L=1u
MP y pd vdd vdd pfet_01v8 W=2u L=0.15u
MN y pd vss vss nfet_01v8 W=1u L=0.15u
.ends
"""


@pytest.mark.parametrize(("end", "gate", "full"), [("ib", "pd", False), ("ib", "y", False), ("o3", "pd", True)])
def test_a_switch_that_turns_current_sources_off_is_no_pass_device(end, gate, full):
    """It joins their gates to the rail of their sources; the same switch at a port of its own pulls that down."""
    text = POWER_DOWN.format(end=end, gate=gate).replace("bias ib", "bias ib o3" if end == "o3" else "bias ib")
    found = currents(text)["MS"]
    assert (found.full, found.ampere > 0) == (full, full)


@pytest.mark.parametrize(("gates", "full"), [("bias", False), ("y", True)])
def test_what_starts_current_sources_at_a_port_is_no_pass_device(gates, full):
    text = f"""* start-up: a follower from the bias of PMOS sources to ground, whose gate something inside drives
.subckt start bias o1 o2 y vdd vss
MS vss x bias bias pfet_01v8 W=60u L=0.15u
MX x vb vss vss nfet_01v8 W=1u L=1u
M1 o1 {gates} vdd vdd pfet_01v8 W=8u L=1u
M2 o2 {gates} vdd vdd pfet_01v8 W=8u L=1u
.ends
"""
    assert currents(text)["MS"].full == full


@pytest.mark.parametrize(("width", "full"), [(14, False), (16, True)])
def test_a_clamp_is_no_pass_device(width, full):
    """What an amplifier inside drives passes a current on from W/L 30 on; below it clamps a port."""
    text = PULL_UP.format(width, 0.5).replace(".ends", "MG gate vb vss vss nfet_01v8 W=1u L=1u\n.ends")
    assert currents(text)["MP"].full == full


@pytest.mark.parametrize(("ohm", "expected"), [(3e6, 1.8 / 3e6), (10e3, None)])
def test_a_large_resistor_sets_the_current_of_what_is_in_series(ohm, expected):
    text = ["*", ".subckt top b vdd vss", f"R1 vdd x {ohm:g}", "M1 x b vss vss nfet_01v8 W=4u L=1u", ".ends", ""]
    found = currents("\n".join(text))
    assert found["M1"].ampere == pytest.approx(expected or FULL * 4 * USUAL)


DIVIDER = """* string of resistors between the supplies
.subckt divider in out vdd vss
R1 vdd t ppolyf_u W=1u L=3u
R2 t vss ppolyf_u W=1u L=3u
M1 out {gate} {source} vss nfet_03v3 W=4u L=0.5u
.ends
"""


@pytest.mark.parametrize(("gate", "source", "known"), [("t", "vss", True), ("in", "t", False)])
def test_a_divider_carries_what_the_supply_drives_through_it(gate, source, known):
    """A gate taps it, or the source of a transistor, which takes or gives a current of its own."""
    technology = load("gf180mcuD")
    found = currents(DIVIDER.format(gate=gate, source=source), technology=technology)
    assert ("string" in found["R1"].how if "R1" in found else False) == known
    if known:
        ohm = 6 * technology.passives["ppolyf_u"].value
        assert [found[name].ampere for name in ("R1", "R2")] == pytest.approx([3.3 / ohm] * 2)


def test_a_switch_is_limited_by_what_is_in_series_with_it():
    """Two switches along a ladder below a resistor of 1 Mohm, and one from a port to the ground."""
    text = """* trimmed ladder
.subckt ladder a b in vdd vss
R1 vdd t0 1e6
M1 t0 a t1 vss nfet_01v8 W=10u L=0.15u
M2 t1 b vss vss nfet_01v8 W=10u L=0.15u
M3 in a vss vss nfet_01v8 W=10u L=0.15u
.ends
"""
    circuit = read_netlist(NetlistText(text), identify_modules=False)
    found = device_currents(circuit, find_roles(circuit), SKY, {})
    assert [found.limited[name] for name in ("M1", "M2")] == pytest.approx([1.8e-6] * 2)
    assert found.limited["M3"] == found.strength["M3"]


FED = """* bias of a bipolar stage: the base is on a port through a capacitor
.subckt stage in out vdd gnd
{feed}
XQR nr nr er gnd npn13G2 Nx=1 m=1
XRE er gnd gnd rsil w=2u l=0.5u m=1
XRB nr b gnd rppd w=0.5u l=3.85u m=1
XC in b cap_cmim w=50u l=50u m=1
XQ1 out b gnd gnd npn13G2 Nx=8 m=1
.ends
"""


@pytest.mark.parametrize("feed", ["XRR vdd nr gnd rhigh w=0.5u l=3u m=1", "", "XCF vdd nr cap_cmim w=9u l=9u m=1"])
def test_what_flows_through_a_resistor_is_no_more_than_the_supply_drives_through_it(feed):
    """In the bipolar transistor behind it, and in the 1.75 ohm at its emitter, which 0.1 V would drive 57 mA through.

    Nothing flows through a capacitor; the base takes what its resistor gives, which is not known here.
    """
    technology = load("sg13g2")
    found = currents(FED.format(feed=feed), technology=technology)
    sheet = technology.device_names.drawn("rhigh").value
    most = 1.8 / (sheet * 6) if feed.startswith("XRR") else 0.0
    assert [found[name].ampere for name in ("XQR", "XRE")] == pytest.approx([most] * 2)
    assert found["XQ1"].ampere == pytest.approx(3.6e-3)  # its collector is a port


@pytest.mark.parametrize(("ends", "inside"), [("vdd out", True), ("vdd x", False)])
def test_a_collector_on_a_port_with_a_resistor_takes_what_that_gives(ends, inside):
    """Without the resistor, the load is outside of the circuit."""
    text = f"""* output stage with a load of 470 ohm
.subckt stage in out x vdd gnd
XR {ends} gnd rppd w=2u l=3.6u m=1
XQ1 out in e gnd npn13G2 Nx=8 m=1
XRE e gnd gnd rsil w=4u l=1.7u m=1
.ends
"""
    technology = load("sg13g2")
    found = currents(text, technology=technology)
    ohm = technology.device_names.drawn("rppd").value * 1.8
    assert found["XQ1"].ampere == found["XRE"].ampere
    assert (found["XQ1"].ampere == pytest.approx(1.8 / ohm)) == inside


def test_a_switch_beside_a_resistor_is_limited_by_what_is_in_series_with_both():
    """The switch carries one way alone; what flows in it does not come back by the resistor."""
    text = """* trimmed resistor
.subckt trim a in vdd vss
R1 vdd t0 1e6
M1 t0 a t1 vss nfet_01v8 W=10u L=0.15u
R2 t0 t1 1e4
R3 t1 in 1e3
.ends
"""
    circuit = read_netlist(NetlistText(text), identify_modules=False)
    assert device_currents(circuit, find_roles(circuit), SKY, {}).limited["M1"] == pytest.approx(1.8e-6)


def test_a_bias_from_outside_limits_what_is_in_series_with_its_source():
    """Pair and tail of a port's bias; what an inner net drives may be at full drive."""
    text = """* pair and second stage
.subckt pair inp inn vb out vdd vss
MT t vb vss vss nfet_01v8 W=60u L=1.5u
M1 a inp t vss nfet_01v8 W=10u L=0.5u
M2 b inn t vss nfet_01v8 W=10u L=0.5u
R1 vdd a 1e3
R2 vdd b 1e3
M3 out b vss vss nfet_01v8 W=60u L=1.5u
.ends
"""
    circuit = read_netlist(NetlistText(text), identify_modules=False)
    found = device_currents(circuit, find_roles(circuit), SKY, {})
    assert found.limited["M1"] <= found.limited["MT"] == pytest.approx(4 * found.devices["MT"].ampere)
    assert found.limited["M3"] == found.strength["M3"] > 2 * found.limited["MT"]


@pytest.mark.parametrize("known", [True, False])
def test_what_is_in_series_with_a_mirror_carries_no_more_than_that(known):
    """A switch above the output of a mirror; without a port the reference is a guess, and the output at full drive."""
    text = """* switched current source
.subckt source en {port} out vdd vss
MB ib ib vss vss nfet_01v8 W=4u L=1u
MP ib pb vdd vdd pfet_01v8 W=4u L=1u
M1 x ib vss vss nfet_01v8 W=8u L=1u
M2 out en x vss nfet_01v8 W=10u L=0.15u
.ends
""".format(port="ib" if known else "pb")
    circuit = read_netlist(NetlistText(text), identify_modules=False)
    found = device_currents(circuit, find_roles(circuit), SKY, {})
    assert found.limited["M2"] == found.limited["M1"]
    assert (found.limited["M1"] == found.devices["M1"].ampere) == known


def test_a_switch_that_feeds_a_block_carries_what_the_block_takes():
    """An inverter switches the rail of four current sources; a block without any current is charged at full drive."""
    text = """* block that is turned off
.subckt block en ib o1 o2 o3 vdd vss
M0 ib ib vss vss nfet_01v8 W=4u L=1u
M1 x ib vss vss nfet_01v8 W=4u L=1u
M2 x x rail rail pfet_01v8 W=8u L=1u
M3 o1 x rail rail pfet_01v8 W=8u L=1u
M4 o2 x rail rail pfet_01v8 W=8u L=1u
M5 o3 x rail rail pfet_01v8 W=16u L=1u
M6 rail enb vdd vdd pfet_01v8 W=100u L=0.15u
M7 enb en vdd vdd pfet_01v8 W=2u L=0.15u
M8 enb en vss vss nfet_01v8 W=1u L=0.15u
.ends
"""
    found = currents(text, {"M0": 10e-6})
    assert found["M6"].ampere == pytest.approx(50e-6)
    assert not found["M6"].full
    nothing = currents(text, {"M0": 10e-6, **dict.fromkeys(("M1", "M2", "M3", "M4", "M5"), 0.0)})
    assert nothing["M6"].full


AMPLIFIER = """* cascode of bipolars, whose bias is elsewhere
.subckt lna in out bias vcc vee
Q1 m in {emitter} vee npn13G2 Nx=4 m=2
Q2 out bias m vee npn13G2 Nx=2 m=1
R1 {emitter} vee rsil w=0.5u l=50u
.ends
"""


def test_bipolars_carry_what_is_usual_for_their_emitters_where_nothing_else_tells():
    """Of two in series, what is usual of the smaller one flows in both; a resistor at the emitter tells more."""
    ihp = load("sg13g2")
    usual = ihp.device_names.drawn("npn13G2").usual_ma_um * 1e-3 * 0.9
    text = AMPLIFIER.format(emitter="vee").replace("R1 vee", "R1 bias")
    found = currents(text, technology=ihp)
    assert {name: found[name].ampere / usual for name in ("Q1", "Q2")} == pytest.approx({"Q1": 2, "Q2": 2})
    assert found["Q2"].assumed
    assert "usual current of 2 emitters" in found["Q2"].how
    assert currents(text, {"Q1": 1e-3}, technology=ihp)["Q2"].ampere == pytest.approx(1e-3)
    assert "resistor at an emitter" in currents(AMPLIFIER.format(emitter="foot"), technology=ihp)["R1"].how


def test_bipolars_of_a_process_that_states_no_current_have_none():
    """The vertical ones of CMOS carry from microamperes to milliamperes."""
    text = AMPLIFIER.format(emitter="vee").replace("npn13G2 Nx=4 m=2", "npn").replace("npn13G2 Nx=2 m=1", "npn")
    assert "Q1" not in currents(text.replace("rsil", "res_high_po_0p35").replace("w=0.5u", "w=0.35u"))


def test_the_stated_current_of_an_output_leaves_the_circuit_and_not_through_its_divider():
    """The divider carries what three quarters of the supply drive through it, whether its load is stated or not."""
    text = """* output
.subckt output vout gate vdd vss
MP vout gate vdd vdd pfet_01v8 W=100u L=0.15u
R1 vout tap 2e6
R2 tap vss 1e6
MA y tap vss vss nfet_01v8 W=4u L=1u
.ends
"""
    for nets in ({"vout": 2e-3}, {}):
        found = currents(text, nets=nets)
        assert [found[name].ampere for name in ("R1", "R2")] == pytest.approx([0.75 * 1.8 / 3e6] * 2)
    assert currents(text, nets={"vout": 2e-3})["MP"].ampere == pytest.approx(2e-3)


@pytest.mark.parametrize(("load", "none"), [("C1 w out 1p", True), ("R2 w vss 1e5", False)])
def test_a_resistor_that_leads_to_a_capacitor_carries_no_direct_current(load, none):
    text = TWO_STAGE.replace("M7 out", f"R1 n2 w 1e5\n{load}\nM7 out")
    found = currents(text)
    assert ("R1" in found and found["R1"].ampere == 0) == none


UNEQUAL = """* one gate net, unequal lengths
.subckt sources ib o1 o2 vdd vss
M0 ib ib vss vss nfet_01v8 W=4u L=1u
M1 o1 ib vss vss nfet_01v8 W=4u L=4u
M2 o2 ib {source} vss nfet_01v8 W=4u L=4u
R1 {source} vss 1e4
.ends
"""


def test_current_sources_of_one_gate_net_share_by_their_size_whatever_their_lengths():
    """One with a resistor of its own at its source carries less, which its size does not tell."""
    found = currents(UNEQUAL.format(source="foot"), {"M0": 8e-6})
    assert found["M1"].ampere == pytest.approx(2e-6)
    assert "times its mirror" not in found["M2"].how


SELF_BIASED = """* loop that sets its own current, and what starts it
.subckt bias o1 vdd vss
M1 nb nb vss vss nfet_01v8 W=2u L=2u
M2 pb nb foot vss nfet_01v8 W=8u L=2u
R1 foot vss 20000
M3 pb pb vdd vdd pfet_01v8 W=6u L=2u
M4 nb pb vdd vdd pfet_01v8 W=6u L=2u
M5 o1 nb vss vss nfet_01v8 W=2u L=2u
{start}
MK kick nb vss vss nfet_01v8 W=2u L=0.5u
MV kick vss vdd vdd pfet_01v8 W=0.42u L=20u
.ends
"""


@pytest.mark.parametrize(
    ("start", "none"),
    [
        ("MS vdd kick nb vss nfet_01v8 W=1u L=0.5u", True),  # it lifts the gates of the NMOS sources
        ("MS pb kick vss vss nfet_01v8 W=1u L=0.5u", True),  # it pulls at those of the PMOS sources
        ("MS pb nb vss vss nfet_01v8 W=1u L=0.5u", False),  # a current source itself
    ],
)
def test_what_starts_a_loop_carries_nothing_when_it_runs(start, none):
    found = currents(SELF_BIASED.format(start=start))
    assert (found["MS"].ampere == 0) == none
    if none:
        assert [found[name].ampere / found["M1"].ampere for name in ("M2", "M3", "M4", "M5")] == pytest.approx([1] * 4)


@pytest.mark.parametrize(("gate", "none"), [("en", True), ("vb", False)])
def test_a_switch_that_holds_what_others_feed_and_drain_carries_nothing(gate, none):
    """In power-down it pulls the output of the first stage to the rail; a bias in its place makes it a source."""
    text = TWO_STAGE.replace("ib vdd", f"ib {gate} vdd").replace(
        "M7 out", f"MS n2 {gate} vdd vdd pfet_01v8 W=1u L=0.5u\nM7 out"
    )
    assert (currents(text)["MS"].ampere == 0) == none


def test_a_capacitor_at_the_rail_bootstraps_nothing():
    """Three in series on one gate, below a current source; behind a switch the gate has a capacitor to ground."""
    text = """* long transistor in three parts, as a reference
.subckt reference ib en vdd vss
M0 ib ib vdd vdd pfet_01v8 W=8u L=1u
M1 ref ib vdd vdd pfet_01v8 W=8u L=1u
M2 ref ref a vss nfet_01v8 W=2u L=4u
M3 a ref b vss nfet_01v8 W=2u L=4u
M4 b ref vss vss nfet_01v8 W=2u L=4u
M5 ref en held vss nfet_01v8 W=1u L=0.15u
C1 held vss cap_mim_m3_1 W=20u L=20u
.ends
"""
    found = currents(text, {"M0": 5e-6})
    assert [found[name].ampere for name in ("M2", "M3", "M4")] == pytest.approx([5e-6] * 3)


def test_bipolars_that_meet_share_a_current_by_their_emitters():
    text = """* pair
.subckt pair a b o1 o2 vcc vee
Q1 o1 a e vee npn13G2 Nx=2 m=1
Q2 o2 b e vee npn13G2 Nx=1 m=1
R1 e vee 1e3
.ends
"""
    found = currents(text, {"R1": 3e-4}, load("sg13g2"))
    assert [found[name].ampere for name in ("Q1", "Q2")] == pytest.approx([2e-4, 1e-4])


@pytest.mark.parametrize("width", [1, 40])
def test_of_transistors_in_series_the_weakest_decides(width):
    """Three on their own drains between the rails, of which nothing else tells the current."""
    text = f"""* divider of diodes
.subckt divider vdd vss
MA x x vdd vdd pfet_01v8 W=4u L=1u
MB m m x x pfet_01v8 W=4u L=1u
MC m m vss vss nfet_01v8 W={width}u L=1u
.ends
"""
    found = currents(text)
    least = min(FULL * width, 0.202e-3 * 0.15 * 4) * USUAL
    assert [found[name].ampere for name in ("MA", "MB", "MC")] == pytest.approx([least] * 3)
