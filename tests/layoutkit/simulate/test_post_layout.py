"""Schematic and layout side by side, on the generic level 1 models, whose results are plain arithmetic."""

import math
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import sleep

import pytest
from tests.layoutkit.simulate.test_port_roles import CASCODE_MIRROR, CONTINUOUS, LATCH, OTA, RING, SIMPLE_MIRROR

from layoutkit.circuit import map_circuit, read_netlist, recognise, write_spice
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.errors import LayoutkitError, MissingProgramError, NetlistError, TimeLimitError
from layoutkit.simulate.bench_values import choose_values
from layoutkit.simulate.comparator import measure_comparator
from layoutkit.simulate.device_models import NoModelsError, find_models
from layoutkit.simulate.fixture import Fixture
from layoutkit.simulate.ngspice import PROGRAM_VARIABLE, SimulationError, Start, read_cards, simulate
from layoutkit.simulate.port_roles import find_port_roles
from layoutkit.simulate.post_layout import MEASURE, Request, compare_post_layout
from layoutkit.technology import load
from patience import WATCHDOG_S

needs_ngspice = pytest.mark.skipif(shutil.which("ngspice") is None, reason="skipped: needs ngspice")
AMPLIFIER = OTA.format(ports="inp inn out bias vdd vss", more="M6 bias bias vss vss nmos W=8u L=1u")
BIAS_A, LOAD_F, KP, LAMBDA = 20e-6, 1e-12, 300e-6, 0.1


def circuit_of(text, technology="generic"):
    read = read_netlist(NetlistText(text), identify_modules=False)
    mapped = map_circuit(read, load(technology))
    return mapped.with_modules(recognise(mapped))


def compared(text, change=lambda netlist: netlist, **options):
    """Compare a circuit with its own netlist after ``change``, which stands for its layout."""
    circuit, technology = circuit_of(text), load("generic")
    return compare_post_layout(Request(circuit, technology, change(write_spice(circuit, technology)), **options))


def values_of(answer, side="extracted"):
    return {each["name"]: each[side] for each in answer["corners"][0]["measurements"] if side in each}


def with_cards(*cards):
    return lambda netlist: netlist.replace(".ends", "\n".join(cards) + "\n.ends")


@needs_ngspice
def test_the_junctions_that_a_netlist_states_load_its_side_alone():
    """100 um2 of 1 fF/um2 at 0 V on the output; the layout's netlist states its own, here none."""
    stated = AMPLIFIER.replace("M6 bias bias", "M7 vss vss out vss nmos W=8u L=1u as=100p\nM6 bias bias")
    circuit, technology = circuit_of(stated), load("generic")
    assert circuit.device("M7").junctions == {"ad": pytest.approx(100e-12)}, "its drain, called source there"
    assert " as=" not in write_spice(circuit, technology)
    answer = compared(stated, values={"currents_a": {"bias": BIAS_A}, "load_f": LOAD_F})
    before, after = values_of(answer, "schematic"), values_of(answer)
    assert 1.04 < after["gbw"] / before["gbw"] < 1.1, "the junction has 60 to 100 fF of 1 pF at the output's voltage"
    assert before["dc_gain"] == pytest.approx(after["dc_gain"], abs=0.1)


@needs_ngspice
def test_gain_and_bandwidth_of_an_amplifier_are_those_of_arithmetic():
    """gm = sqrt(2 KP W/L I), gain = gm / (LAMBDA I (N and P)), gbw = gm / (2 pi C); 1 pF hides the transistors' C."""
    more = with_cards("Cwire out vss 200f")
    answer = compared(AMPLIFIER, more, values={"currents_a": {"bias": BIAS_A}, "load_f": LOAD_F})
    transconductance = math.sqrt(2 * KP * 8 / 0.5 * BIAS_A / 2)
    before, after = values_of(answer, "schematic"), values_of(answer)
    assert before["gbw"] == pytest.approx(transconductance / (2 * math.pi * LOAD_F), rel=0.06)
    assert before["dc_gain"] == pytest.approx(20 * math.log10(transconductance / (LAMBDA * BIAS_A)), abs=1.0)
    assert before["supply_current"] == pytest.approx(2 * BIAS_A, rel=0.06)
    own = transconductance / (2 * math.pi * before["gbw"])  # what is charged, the transistors' own included
    assert after["gbw"] == pytest.approx(before["gbw"] * own / (own + 200e-15), rel=0.02)
    assert abs(before["offset"]) < 1e-6
    assert abs(after["offset"]) < 1e-6


@needs_ngspice
def test_the_dc_gain_is_below_the_slowest_pole_and_the_bench_does_not_load_it():
    """At 20 nA the output has 500 Mohm, which with 10 nF is a pole of 0.03 Hz."""
    current = 2e-8
    fast, slow = (
        values_of(compared(AMPLIFIER, values={"currents_a": {"bias": current}, "load_f": load}))["dc_gain"]
        for load in (1e-15, 1e-8)
    )
    assert fast == pytest.approx(20 * math.log10(math.sqrt(2 * KP * 8 / 0.5 * current / 2) / (LAMBDA * current)), abs=1)
    assert slow == pytest.approx(fast, abs=0.02)


@needs_ngspice
def test_an_offset_is_that_of_unequal_widths():
    """With dW/W = 5 %, the offset is dW/W times half the overdrive voltage, sqrt(2 I / (KP W/L))."""

    def wider(netlist):
        return netlist.replace("M2 out inn tail vss nmos_1v8 W=8u", "M2 out inn tail vss nmos_1v8 W=8.4u")

    answer = compared(AMPLIFIER, wider, values={"currents_a": {"bias": BIAS_A}})
    overdrive = math.sqrt(BIAS_A / (KP * 8 / 0.5))
    assert abs(values_of(answer)["offset"]) == pytest.approx(0.05 * overdrive / 2, rel=0.1)


@needs_ngspice
def test_exchanged_inputs_are_found_by_the_loop():
    text = AMPLIFIER.replace("inp", "first").replace("inn", "inp").replace("first", "inn")
    assert values_of(compared(text), "schematic")["dc_gain"] > 20


@needs_ngspice
def test_the_staircase_finds_the_offset_of_a_comparator():
    def shift(netlist):
        return netlist.replace("M1 dp inp com", "VOFF inp shifted 3m\nM1 dp shifted com")

    values = values_of(compared(LATCH, shift, jobs=2))
    assert values["offset"] == pytest.approx(3e-3, abs=60e-6 + values["memory"] / 8)
    assert 1e-11 < values["delay"] < 5e-9
    assert values["kickback"] > values["kickback_difference"] > 0


@needs_ngspice
def test_a_comparator_without_a_clock_has_offset_hysteresis_and_delay():
    """A source at an input is the offset; current from the output to the pair moves both voltages apart."""

    def shift(netlist):
        return netlist.replace("M1 tmir inp", "VOFF inp shifted 3m\nM1 tmir shifted")

    given = {"values": {"currents_a": {"bias": BIAS_A}}}
    plain, shifted = values_of(compared(CONTINUOUS, **given)), values_of(compared(CONTINUOUS, shift, **given))
    assert shifted["offset"] - plain["offset"] == pytest.approx(3e-3, abs=1e-5)
    assert abs(plain["hysteresis"]) < 1e-6
    slower = values_of(compared(CONTINUOUS, with_cards("Cwire out vss 200f"), **given))
    assert 0 < 2 * plain["delay"] < slower["delay"]
    feedback = with_cards("Vlow low vss 0.9", "Gback tmir vss logic low 0.5u")
    apart = values_of(compared(CONTINUOUS, feedback, **given))["hysteresis"]
    transconductance = math.sqrt(2 * KP * 8 / 0.5 * BIAS_A / 2)
    assert apart == pytest.approx(0.5e-6 * 1.8 / transconductance, rel=0.2)


@needs_ngspice
@pytest.mark.parametrize("ratio", [1.5, 4])
def test_the_hysteresis_of_a_comparator_is_that_of_its_cross_coupled_loads(ratio):
    """The pair switches when its currents are I / (1 + r) and r I / (1 + r), r being cross-coupled over diode width.

    Between the thresholds it has two states, and a sweep for direct current may find either.
    (Gregorian, Introduction to CMOS Op-Amps and Comparators, chapter on comparators with hysteresis.)
    """
    loads = f"""M3 a a vdd vdd pmos W=4u L=0.5u
        M4 b b vdd vdd pmos W=4u L=0.5u
        M3X b a vdd vdd pmos W={4 * ratio}u L=0.5u
        M4X a b vdd vdd pmos W={4 * ratio}u L=0.5u
        MA x a vdd vdd pmos W=4u L=0.5u
        MB out b vdd vdd pmos W=4u L=0.5u
        MC x x vss vss nmos W=2u L=0.5u
        MD out x vss vss nmos W=2u L=0.5u"""
    pair = [card for card in CONTINUOUS.splitlines() if not card.startswith(("M3 ", "M4 "))]
    text = "\n".join(pair).replace("M1 tmir", "M1 a").replace("M2 out", "M2 b").replace(".ends", f"{loads}\n.ends\n")
    values = values_of(compared(text, values={"currents_a": {"bias": BIAS_A}}))
    large, small = (math.sqrt(2 * part * BIAS_A / (1 + ratio) / (KP * 8 / 0.5)) for part in (ratio, 1))
    assert values["hysteresis"] == pytest.approx(2 * (large - small), rel=0.15)
    assert abs(values["offset"]) < 0.03 * values["hysteresis"]


@needs_ngspice
def test_a_comparator_that_no_input_changes_is_unchecked():
    answer = compared(CONTINUOUS, values={"common_mode_v": 0.0, "currents_a": {"bias": BIAS_A}})
    assert not values_of(answer)
    assert "changes the output" in answer["unchecked"][0]


@needs_ngspice
def test_unequal_capacitances_behind_the_pair_are_an_offset_of_a_comparator():
    answer = compared(LATCH, with_cards("Cwire dp vss 2f"))
    assert abs(values_of(answer)["offset"]) > 5e-4
    assert abs(values_of(answer, "schematic")["offset"]) < 1e-4


def test_an_inverse_clock_falls_when_the_clock_rises_unless_a_voltage_is_given(monkeypatch):
    decks = []

    def stop(deck, *_):
        decks.append(deck)
        raise SimulationError("enough")

    monkeypatch.setattr("layoutkit.simulate.fixture.simulate", stop)
    text = LATCH.replace("latch clk", "latch clk clk_b")
    circuit = circuit_of(text.replace(".ends", "M11 x clk_b vss vss nmos W=1u L=0.18u\n.ends"))
    for given in ({}, {"clk_b": 0.3}):
        values = choose_values(circuit, load("generic"), find_port_roles(circuit), {"voltages_v": given})
        netlist = read_cards(write_spice(circuit, load("generic")), "netlist")
        roles = find_port_roles(circuit)
        with pytest.raises(SimulationError):
            measure_comparator(Fixture(circuit, load("generic"), roles, values, netlist, "", Start()))
    pulses = [re.findall(r"^vck\d (\w+) 0 (pulse\(\S+ \S+)", deck, re.MULTILINE) for deck in decks]
    assert pulses == [[("p1", "pulse(0 1.8"), ("p2", "pulse(1.8 0")], [("p1", "pulse(0 1.8")]]
    assert "vp2 p2 0 0.3" in decks[1]


@needs_ngspice
def test_diodes_that_set_the_level_of_two_outputs_set_their_gain():
    """The gain is gm1 / (gm3 + gds1 + gds3) at the circuit's own level; held lower, the diodes conduct less."""
    text = """.subckt pair inp inn outp outn bias vdd vss
        M1 outn inp tail vdd pmos W=16u L=0.5u
        M2 outp inn tail vdd pmos W=16u L=0.5u
        M3 outn outn vss vss nmos W=1u L=8u
        M4 outp outp vss vss nmos W=1u L=8u
        M5 tail bias vdd vdd pmos W=8u L=1u
        M6 bias bias vdd vdd pmos W=8u L=1u
        .ends
        """
    values = values_of(compared(text, values={"currents_a": {"bias": BIAS_A}}), "schematic")
    assert "held_current" not in values
    each = BIAS_A / 2
    gain = math.sqrt(2 * KP / 4 * 32 * each) / (math.sqrt(2 * KP / 8 * each) + 2 * LAMBDA * each)
    assert values["dc_gain"] == pytest.approx(20 * math.log10(gain), abs=1.0)


@needs_ngspice
@pytest.mark.parametrize("outputs", ["outn outp", "outp outn"])
def test_two_outputs_under_current_sources_are_held_and_their_difference_is_nulled(outputs):
    """gm = sqrt(2 KP W/L I) over the conductances of an N and a P, LAMBDA I each, and the offset of unequal widths.

    The sources above the pair give less than its tail takes; the bench adds the rest to both outputs alike.
    """
    text = f""".subckt pair inp inn {outputs} tail bp vdd vss
    M1 outn inp tail vss nmos W=8u L=0.5u
    M2 outp inn tail vss nmos W=8u L=0.5u
    M3 outn bp vdd vdd pmos W=8u L=0.5u
    M4 outp bp vdd vdd pmos W=8u L=0.5u
    .ends"""
    bias = {"tail": BIAS_A, "bp": 0.4 * BIAS_A}
    answer = compared(text, lambda netlist: netlist.replace("vss nmos_1v8 W=8u", "vss nmos_1v8 W=8.4u", 1),
                      values={"currents_a": bias, "load_f": LOAD_F})  # fmt: skip
    before, after = values_of(answer, "schematic"), values_of(answer)
    transconductance = math.sqrt(2 * KP * 8 / 0.5 * BIAS_A / 2)
    conductance = LAMBDA * (BIAS_A / 2 + 0.4 * BIAS_A)
    assert before["dc_gain"] == pytest.approx(20 * math.log10(transconductance / conductance), abs=1.0)
    assert before["gbw"] == pytest.approx(transconductance / (2 * math.pi * LOAD_F), rel=0.06)
    assert before["held_current"] == pytest.approx(0.1 * BIAS_A, rel=0.5)
    assert abs(before["offset"]) < 1e-6
    overdrive = math.sqrt(BIAS_A / (KP * 8 / 0.5))
    assert abs(after["offset"]) == pytest.approx(0.05 * overdrive / 2, rel=0.1)
    assert after["dc_gain"] == pytest.approx(before["dc_gain"], abs=0.3)


@needs_ngspice
def test_another_common_mode_is_taken_where_the_usual_one_leaves_little_gain_unless_one_is_given():
    """Cascodes with gates at 0.95 V leave the drains of the pair at 0.5 V; at 1.08 V its sources are above them."""
    text = """.subckt telescopic inp inn out bc bias vdd vss
    M1 dn inp tail vss nmos W=8u L=0.5u
    M2 dp inn tail vss nmos W=8u L=0.5u
    MC1 tmir bc dn vss nmos W=8u L=0.5u
    MC2 out bc dp vss nmos W=8u L=0.5u
    M3 tmir tmir vdd vdd pmos W=12u L=0.5u
    M4 out tmir vdd vdd pmos W=12u L=0.5u
    M5 tail bias vss vss nmos W=8u L=1u
    M6 bias bias vss vss nmos W=8u L=1u
    .ends"""
    given = {"currents_a": {"bias": 1e-6}, "voltages_v": {"bc": 0.95}}
    answer, asked = (compared(text, values=values) for values in (given, {**given, "common_mode_v": 1.08}))
    assert answer["bench"]["values"]["common_mode_v"] < 1.08
    assert "because it amplifies far less at 1.08 V" in answer["bench"]["reason"]
    assert asked["bench"]["values"]["common_mode_v"] == 1.08
    gains = [values_of(each).get("dc_gain", 0.0) for each in (answer, asked)]
    assert gains[0] > gains[1] + 20


@pytest.mark.parametrize(
    ("given", "level"), [({}, 1.38), ({"voltages_v": {"bc": 1.2}}, 1.2), ({"common_mode_v": 0.9}, 1.2)]
)
def test_the_cascodes_of_a_pair_are_biased_from_its_inputs(given, level):
    """The pair's own gates are at the common mode, so that a copy of the cascode, made from ground, is far too low."""
    text = """.subckt pair inp inn outn outp tail bc bp vdd vss
    M1 dn inp tail vss nmos W=8u L=0.5u
    M2 dp inn tail vss nmos W=8u L=0.5u
    MC1 outn bc dn vss nmos W=8u L=0.5u
    MC2 outp bc dp vss nmos W=8u L=0.5u
    M3 outn bp vdd vdd pmos W=8u L=0.5u
    M4 outp bp vdd vdd pmos W=8u L=0.5u
    .ends"""
    circuit = circuit_of(text)
    values = choose_values(circuit, load("generic"), find_port_roles(circuit), {**given, "supply_v": 1.8})
    assert values.voltages_v == pytest.approx({"bc": level})
    assert set(values.currents_a) == {"tail", "bp"}


@needs_ngspice
def test_a_circuit_that_does_not_amplify_is_unchecked():
    answer = compared(AMPLIFIER, values={"currents_a": {"bias": BIAS_A}, "common_mode_v": 0.1})
    assert not values_of(answer)
    assert "common mode" in answer["unchecked"][0]


@needs_ngspice
def test_a_bias_current_that_the_supply_cannot_drive_is_told():
    answer = compared(AMPLIFIER, values={"currents_a": {"bias": 3e-3}})
    assert any("0.003 A put bias at" in each and "beyond the supplies" in each for each in answer["unchecked"])
    assert not compared(AMPLIFIER, values={"currents_a": {"bias": BIAS_A}})["unchecked"]


@needs_ngspice
def test_an_oscillation_below_half_of_the_supply_has_a_frequency():
    starved = RING.replace("ring out", "ring out vctl").replace(" vdd vdd pmos", " vctl vdd pmos")
    values = values_of(compared(starved, values={"voltages_v": {"vctl": 0.8}}))
    assert 0.4 < values["swing"] < 0.85
    assert values["supply_current(vctl)"] > 10 * abs(values["supply_current(vdd)"])


@needs_ngspice
def test_the_frequency_of_a_ring_is_that_of_a_deck_of_ones_own():
    deck = """Vdd vdd 0 1.8
    Xdut out vdd 0 ring
    CL out 0 50f
    .ic v(out)=0
    .tran 1p 6n
    .meas tran span trig v(out) val=0.9 rise=3 targ v(out) val=0.9 rise=8
    .meas tran highest max v(out)"""
    by_deck = values_of(compared(RING, deck=deck))
    assert values_of(compared(RING))["frequency"] == pytest.approx(5 / by_deck["span"], rel=0.01)
    assert 1.4 < by_deck["highest"] < 1.9


@needs_ngspice
def test_a_supply_that_rises_starts_a_balanced_ring_whose_output_is_behind_a_buffer(monkeypatch):
    """With the supply on, all nets at the switching voltage are a solution, too; exact arithmetic stays there."""
    decks = []
    run = simulate
    monkeypatch.setattr(
        "layoutkit.simulate.fixture.simulate", lambda deck, *more: decks.append(deck) or run(deck, *more)
    )
    buffered = RING.replace("ring out", "ring buffered").replace(
        ".ends", "MPB buffered out vdd vdd pmos W=4u L=0.5u\n.ends"
    )
    text = buffered.replace(".ends", "MNB buffered out vss vss nmos W=2u L=0.5u\n.ends")
    assert values_of(compared(text))["swing"] > 1.3
    vdd = re.findall(r"^vp2 p2 0 (.*)$", decks[0], re.MULTILINE)
    assert vdd == ["pwl(0 0 2e-10 1.8)"]
    assert ".ic" not in decks[0]


@needs_ngspice
def test_the_supply_current_of_an_oscillator_is_that_of_whole_periods(monkeypatch):
    currents = []
    for span in (20e-9, 20.15e-9, 20.3e-9, 20.45e-9):  # a period of the ring has 0.6 ns
        monkeypatch.setattr("layoutkit.simulate.amplifier.SPANS_S", (span,))
        currents.append(values_of(compared(RING))["supply_current"])
    assert max(currents) / min(currents) < 1.002


@needs_ngspice
@pytest.mark.parametrize("title", ["", "my ring\n", "* ring\n", "Voltages of the ring\n"])
def test_a_deck_may_have_a_title_and_what_it_does_not_measure_is_told(title):
    deck = f"""{title}Vdd vdd 0 1.8 ac 1
    Xdut out vdd 0 ring
    .ac dec 2 1 100
    .meas ac at_supply find vdb(vdd) at=10
    .meas ac never when vdb(vdd)=7"""
    answer = compared(RING, deck=deck)
    assert values_of(answer) == {"at_supply": pytest.approx(0, abs=1e-6)}
    assert answer["unchecked"] == [
        f"{side}, typical: the deck did not measure never" for side in ("schematic", "extracted")
    ]


@needs_ngspice
def test_what_was_not_measured_is_told_in_the_order_of_the_runs_whichever_ends_first(monkeypatch):
    ended = Event()

    def measure(fixture):
        if "rlast" in fixture.netlist.text.lower():
            ended.set()
            raise SimulationError("the layout's run ended first")
        ended.wait(WATCHDOG_S)
        sleep(0.05)
        raise SimulationError("the schematic's run ended last")

    monkeypatch.setitem(MEASURE, "oscillator", measure)
    told = compared(RING, with_cards("Rlast out vss 1t"), jobs=2)["unchecked"]
    assert [each.split(",")[0] for each in told] == ["schematic", "extracted"]


@needs_ngspice
def test_a_deck_may_use_models_that_the_circuit_does_not():
    """A diode of its own model, a resistor of a parameter, and the library's PMOS beside a circuit of NMOS."""
    deck = """.param load=10k
    .model clamp d
    Vdd vdd 0 1.8
    Mload iref iref vdd vdd pmos_1v8 W=4u L=1u
    Rload vdd io1 load
    Dclamp 0 io1 clamp
    Xdut iref io1 io2 0 simple_mirror
    .tran 1n 10n
    .meas tran level avg v(iref)"""
    answer = compared(SIMPLE_MIRROR, deck=deck.replace("simple_mirror", circuit_of(SIMPLE_MIRROR).name))
    assert 0.45 < values_of(answer)["level"] < 1.35
    assert not answer["unchecked"]


@needs_ngspice
def test_the_ratio_of_a_mirror_is_that_of_widths_and_output_voltage():
    values = values_of(compared(SIMPLE_MIRROR, values={"currents_a": {"iref": BIAS_A}}))
    gate = values["v(iref)"]
    assert values["ratio(io1)"] == pytest.approx(2 * (1 + LAMBDA * 0.9) / (1 + LAMBDA * gate), rel=1e-3)
    assert values["ratio_at_quarter(io2)"] == pytest.approx((1 + LAMBDA * 0.45) / (1 + LAMBDA * gate), rel=1e-3)


@needs_ngspice
def test_a_cascode_keeps_the_ratio_of_a_mirror_whatever_its_output_voltage():
    """The transistors of the mirror have the same drain voltage but for the gain of a cascode, 50 or more here."""
    values = values_of(compared(CASCODE_MIRROR, values={"currents_a": {"iref": BIAS_A}}))
    for port, ratio in (("io1", 1), ("io2", 4)):
        assert values[f"ratio({port})"] == pytest.approx(ratio, rel=0.1 * LAMBDA)
        assert values[f"ratio_at_three_quarters({port})"] == pytest.approx(ratio, rel=0.1 * LAMBDA)
    simple = values_of(compared(SIMPLE_MIRROR, values={"currents_a": {"iref": BIAS_A}}))
    assert values["output_resistance(io1)"] > 4 * simple["output_resistance(io2)"]


def test_the_gates_of_cascodes_of_a_mirror_are_biased_by_a_current():
    """Those of an input pair get a voltage above the common mode, which a mirror does not have."""
    text = CASCODE_MIRROR.replace("iref io1 io2", "iref cascode io1 io2").replace("M4 iref iref", "M4 iref cascode")
    text = text.replace(" k vss vss", " iref vss vss").replace("io1 iref", "io1 cascode")
    circuit = circuit_of(text.replace("io2 iref b", "io2 cascode b"))
    found = find_port_roles(circuit)
    values = choose_values(circuit, load("generic"), found)
    assert (found.bench, found.inputs) == ("mirror", ("iref",))
    assert values.voltages_v == {}
    assert set(values.currents_a) == {"iref", "cascode"}


@needs_ngspice
@pytest.mark.parametrize(
    ("text", "bench", "reason"),
    [
        (SIMPLE_MIRROR, "amplifier", "no differential pair has both gates on ports"),
        (SIMPLE_MIRROR, "comparator", "no clock was found"),
        (AMPLIFIER, "mirror", "no current mirror has its input and an output on ports"),
        (SIMPLE_MIRROR.replace("iref io1 io2 vss\n", "\n", 1), "", "no port to measure at"),
    ],
)
def test_a_circuit_that_does_not_suit_the_bench_is_unchecked(text, bench, reason):
    answer = compared(text, bench=bench)
    assert not values_of(answer)
    assert [reason in each for each in answer["unchecked"]] == [True, True]


@needs_ngspice
def test_any_other_circuit_gets_its_operating_point():
    values = values_of(compared(AMPLIFIER, bench="operating_point", values={"currents_a": {"bias": BIAS_A}}))
    assert values["supply_current"] == pytest.approx(2 * BIAS_A, rel=0.1)


@needs_ngspice
@pytest.mark.parametrize(
    ("bounds", "broken"),
    [
        ({"max_loss_percent": 10}, True),
        ({"max_loss_percent": 40}, False),
        ({"max_change_percent": 10}, True),
        ({"min": 1e6, "max": 1e12}, False),
        ({"min": 1e12}, True),
        ({"max": 1e6}, True),
        ({"max_change": 1e3}, True),
    ],
)
def test_a_limit_is_kept_or_broken(bounds, broken):
    answer = compared(AMPLIFIER, with_cards("Cwire out vss 50f"), limits={"gbw": bounds})
    [gbw] = [each for each in answer["corners"][0]["measurements"] if each["name"] == "gbw"]
    assert (gbw["passed"], bool(answer["faults"])) == (not broken, broken)


@needs_ngspice
def test_a_limit_on_what_was_not_measured_is_no_pass():
    [fault] = compared(AMPLIFIER, limits={"delay": {"max": 1}})["faults"]
    assert fault.startswith(
        "typical: delay: not measured, so its limit max 1 is not checked; measured are dc_gain, gbw"
    )


@needs_ngspice
def test_without_models_nothing_is_measured_and_the_answer_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.delenv("PDK_ROOT", raising=False)
    circuit, technology = circuit_of(AMPLIFIER, "sky130A"), load("sky130A")
    request = Request(circuit, technology, write_spice(circuit, technology), limits={"gbw": {"min": 1}})
    for answer in [compare_post_layout(request), compare_post_layout(replace(request, models=str(tmp_path)))]:
        assert answer["corners"][0]["measurements"] == []
        assert "set PDK_ROOT" in answer["unchecked"][0]
        assert answer["faults"]


@needs_ngspice
def test_compiled_models_that_are_not_there_are_named(monkeypatch, tmp_path):
    models = tmp_path / "ihp-sg13g2" / "libs.tech" / "ngspice" / "models"
    models.mkdir(parents=True)
    library = ".lib {0}\n.model sg13_lv_nmos psp103va type=1\n.model sg13_lv_pmos psp103va type=-1\n.endl\n"
    for family, section in [("MOSlv", "mos_tt"), ("MOShv", "mos_tt"), ("RES", "res_typ"), ("CAP", "cap_typ"),
                            ("DIO", "dio_tt"), ("HBT", "hbt_typ")]:  # fmt: skip
        (models / f"corner{family}.lib").write_text(library.format(section))
    monkeypatch.setenv("PDK_ROOT", str(tmp_path))
    circuit, technology = circuit_of(AMPLIFIER, "sg13g2"), load("sg13g2")
    answer = compare_post_layout(Request(circuit, technology, write_spice(circuit, technology)))
    assert "psp103.osdi; compile them with OpenVAF" in answer["unchecked"][0]


@needs_ngspice
def test_generic_models_have_one_corner_and_no_random_differences():
    assert "do not vary at random" in compared(RING, samples=2)["unchecked"][0]
    with pytest.raises(LayoutkitError, match="no corner 'ss'; the technology has typical"):
        compared(RING, corners=("ss",))


@needs_ngspice
def test_all_faults_of_ports_and_corners_are_in_one_message():
    """A value that the bench would not use is an error, too: it would change nothing and say nothing."""
    values = {
        "currents_a": {"bias": 1e-5, "BIAS": 2e-5, "elsewhere": 1e-6},
        "voltages_v": {"vss": 0.1, "inn": 0.9},
    }
    with pytest.raises(LayoutkitError) as raised:
        compared(AMPLIFIER, values=values, corners=("typical", "ss", "tt"))
    for fault in ("no port elsewhere", "bias is named twice", "vss is ground", "input inn; give common_mode_v",
                  "no corner 'ss', 'tt'"):  # fmt: skip
        assert fault in raised.value.message
    with pytest.raises(LayoutkitError, match="give its current in currents_a"):
        compared(SIMPLE_MIRROR, values={"voltages_v": {"iref": 0.7}})


@needs_ngspice
def test_ports_that_spice_cannot_spell_are_measured_under_the_names_that_the_reader_gives_them():
    """``+in`` would continue a line, ``*o`` begin a comment."""
    text = SIMPLE_MIRROR.replace("io1", "*o").replace("io2", "+in").replace("iref", "é")
    values = values_of(compared(text))
    assert {"ratio(_o)", "ratio(plusin)", "v(_)"} <= values.keys()
    assert values["ratio(_o)"] == pytest.approx(values_of(compared(SIMPLE_MIRROR))["ratio(io1)"])


@needs_ngspice
def test_a_limit_in_percent_of_what_has_no_percent_says_so():
    faults = compared(AMPLIFIER, limits={"dc_gain": {"max_loss_percent": 5}})["faults"]
    assert faults == [
        "typical: dc_gain has no change in percent, so its limit max_loss_percent is not checked; give max_change"
    ]


@needs_ngspice
def test_each_analysis_of_a_deck_is_measured():
    """ngspice itself measures only the one that it runs last, and none beside an operating point."""
    deck = """Vdd vdd 0 1.8
    Ibias vdd bias 20u
    Vin inp 0 dc 1.0 ac 1
    Xdut inp out out bias vdd 0 ota
    .op
    .dc Vin 0.9 1.1 0.05
    .ac dec 10 1k 100g
    .tran 1n 20n
    .meas
    .meas dc highest max v(out)
    .meas ac first find vdb(out) at=1k
    .meas tran level avg v(out)
    .meas tran twice param='2*level'"""
    answer = compared(AMPLIFIER, deck=deck)
    values = values_of(answer)
    assert not answer["unchecked"]
    assert values["highest"] == pytest.approx(1.1, abs=0.02)
    assert values["first"] == pytest.approx(0, abs=0.2)
    assert values["level"] == pytest.approx(1.0, abs=0.02)
    assert values["twice"] == pytest.approx(2 * values["level"], rel=1e-4)


def test_a_deck_names_each_measurement_once():
    deck = "Xdut out vdd 0 ring\n.tran 1p 1n\n.meas tran level max v(out)\n.meas tran level min v(out)\n"
    with pytest.raises(NetlistError, match="measures level more than once"):
        compared(RING, deck=deck)


@needs_ngspice
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda netlist: netlist + ".control\nshell touch stolen\n.endc\n", "holds cards that are not simulated"),
        (lambda netlist: netlist.replace("ota", "other"), "has no subcircuit ota"),
        (
            lambda netlist: netlist.replace("vdd vss\n", "vdd vss more\n", 1),
            "ports that the circuit does not have: more",
        ),
        (lambda netlist: netlist.replace("vdd vss\n", "vdd\n", 1), "lacks ports of the circuit: vss"),
    ],
)
def test_an_extracted_netlist_that_cannot_be_used_is_refused(change, message):
    with pytest.raises(NetlistError, match=message):
        compared(AMPLIFIER, change)


@needs_ngspice
def test_ports_in_another_order_are_called_by_name_but_no_deck_can_do_that():
    def turned(netlist):
        return netlist.replace("ring out vdd vss", "ring vss vdd out")

    assert values_of(compared(RING, turned)) == pytest.approx(values_of(compared(RING)))
    deck = "Xdut out vdd 0 ring\nVdd vdd 0 1.8\n.tran 1p 1n\n.meas tran x max v(out)"
    with pytest.raises(NetlistError, match=r"ports vss vdd out, the circuit out vdd vss"):
        compared(RING, turned, deck=deck)


@needs_ngspice
def test_what_ngspice_says_of_a_faulty_netlist_is_told():
    answer = compared(AMPLIFIER, lambda netlist: netlist.replace("nmos_1v8 W=8u", "nmos_1v8 strange=8u", 1))
    assert "strange" in answer["unchecked"][0]
    assert values_of(answer, "schematic")["gbw"] > 0


@needs_ngspice
def test_a_deck_that_measures_nothing_is_refused():
    for deck, message in [
        ("R1 a 0 1\n.op", "no .meas"),
        (".meas tran x max v(a)\n.tran 1p 1n", "does not call subcircuit"),
    ]:
        with pytest.raises(NetlistError, match=message):
            compared(RING, deck=deck)


@needs_ngspice
def test_a_simulation_ends_at_its_time_limit():
    deck = "endless\nv1 a 0 sin(0 1 1g)\nr1 a 0 1\n.tran 1p 1 0 1p\n.save v(a)\n.end\n"
    with pytest.raises(TimeLimitError, match=r"did not end within 0\.5 s"):
        simulate(deck, Start(timeout_s=0.5), 1)


@needs_ngspice
def test_a_simulation_ends_when_it_has_written_too_much(monkeypatch):
    monkeypatch.setattr("layoutkit.simulate.ngspice.MAX_BYTES", 100_000)
    deck = "endless\nv1 a 0 sin(0 1 1g)\nr1 a 0 1\n.tran 1p 1 0 1p\n.save v(a)\n.end\n"
    with pytest.raises(SimulationError, match="wrote more than 100000 bytes and was stopped"):
        simulate(deck, Start(timeout_s=60), 1)


@needs_ngspice
def test_an_analysis_that_does_not_finish_is_an_error_with_its_reason():
    with pytest.raises(SimulationError, match="finished 0 of 1 analyses"):
        simulate("title\nv1 a 0 1\nv2 a 0 2\n.op\n.end\n", Start(), 1)


@needs_ngspice
@pytest.mark.parametrize("text", [AMPLIFIER, RING])
def test_a_run_that_does_not_end_is_unchecked_by_name_and_the_others_are_kept(text, monkeypatch, tmp_path):
    program = tmp_path / "ngspice"
    real = shutil.which("ngspice")
    program.write_text(f'#!/bin/sh\ngrep -qsi rslow deck.cir && exec sleep 60\nexec {real} "$@"\n')
    program.chmod(0o700)
    monkeypatch.setenv(PROGRAM_VARIABLE, str(program))
    answer = compared(text, with_cards("Rslow out vss 1t"), timeout_s=3.0)
    assert values_of(answer, "schematic")["supply_current"] > 0
    assert not values_of(answer)
    [told] = answer["unchecked"]
    assert told.startswith("extracted, typical: a simulation did not end within 3 s")
    assert told.endswith("with timeout_s")


def test_a_missing_ngspice_is_told_with_how_to_get_it(monkeypatch):
    monkeypatch.setenv(PROGRAM_VARIABLE, "no-such-program")
    with pytest.raises(MissingProgramError, match="apt-get install ngspice"):
        compared(RING)


def kit(name):
    """Return the folder of models in a kit below PDK_ROOT; skip the test where there is none."""
    folder = Path(os.environ.get("PDK_ROOT", "/nowhere")) / name / "libs.tech" / "ngspice"
    if not folder.is_dir():
        pytest.skip("skipped: needs PDK_ROOT")
    return folder


@needs_ngspice
def test_the_part_of_a_kit_gives_the_current_that_the_whole_kit_gives():
    """In gf180mcuD, which loads in seconds; sky130A's whole library, which takes minutes, was compared by hand."""
    library = next(kit("gf180mcuD").glob("sm141064.[sn]*"))
    whole = f'.include "{library.with_stem("design")}"\n.lib "{library}" typical\n'
    part = find_models(load("gf180mcuD")).cards(["nfet_03v3"]).text
    cards = "xm d g 0 0 nfet_03v3 w=2u l=0.5u\nvd d 0 1.2\nvg g 0 1\n.op\n.end\n"
    currents = [simulate(f"title\n{models}{cards}", Start(), 1)[0].of("i(vd)")[0] for models in (part, whole)]
    assert currents[0] == currents[1] != 0


def compiled_models_of_sg13g2():
    """Return the folder of models with their compiled form; skip the test where ngspice cannot load them."""
    folder = kit("ihp-sg13g2")
    try:
        find_models(load("sg13g2")).cards(["sg13_lv_nmos"])
    except NoModelsError as error:
        pytest.skip(f"skipped: needs compiled models and an ngspice with OSDI ({error})")
    return folder / "models"


@needs_ngspice
@pytest.mark.parametrize(
    ("card", "library", "section"),
    [
        ("sg13_lv_nmos w=2u l=0.5u ng=2 m=3", "cornerMOSlv.lib", "mos_tt"),
        ("sg13_hv_nmos w=2u l=0.5u ng=1 as=0.5p ad=0.5p ps=3u pd=3u m=1", "cornerMOShv.lib", "mos_tt"),
        ("rppd w=0.5u l=5u m=2", "cornerRES.lib", "res_typ"),
        ("npn13g2 m=2", "cornerHBT.lib", "hbt_typ"),
    ],
)
def test_the_part_of_ihps_kit_gives_the_current_that_the_whole_kit_gives(card, library, section):
    folder = compiled_models_of_sg13g2()
    model = card.split()[0]
    nodes = "d 0 0" if model == "rppd" else "d g 0 0"
    cards = f"xm {nodes} {card}\nvd d 0 0.8\nvg g 0 0.8\nrg g 0 1k\n.op\n.end\n"
    part = find_models(load("sg13g2")).cards([model])
    whole = f'.lib "{folder / library}" {section}\n'
    start = Start(part.osdi)
    currents = [simulate(f"title\n{models}{cards}", start, 1)[0].of("i(vd)")[0] for models in (part.text, whole)]
    assert currents[0] == currents[1] != 0


@needs_ngspice
def test_an_amplifier_in_sg13g2_has_gain_and_an_offset_from_mismatch_alone():
    compiled_models_of_sg13g2()
    text = AMPLIFIER.replace("W=8u L=0.5u", "W=8u L=0.5u nf=4")
    circuit, technology = circuit_of(text, "sg13g2"), load("sg13g2")
    request = Request(circuit, technology, write_spice(circuit, technology), corners=("typical", "ss"), samples=4)
    answer = compare_post_layout(request)
    assert answer["unchecked"] == []
    for corner in answer["corners"]:
        values = {each["name"]: each for each in corner["measurements"]}
        assert values["dc_gain"]["extracted"] == values["dc_gain"]["schematic"] > 20
        assert abs(values["offset"]["extracted"]) < 1e-5
    assert 1e-4 < next(each for each in answer["monte_carlo"] if each["name"] == "offset")["sigma"] < 2e-2


@needs_ngspice
def test_samples_differ_from_each_other_and_repeat_with_their_seed():
    kit("sky130A")
    circuit, technology = circuit_of(SIMPLE_MIRROR, "sky130A"), load("sky130A")
    request = Request(circuit, technology, write_spice(circuit, technology), samples=3, jobs=2)
    [first, again] = [compare_post_layout(request)["monte_carlo"] for _ in range(2)]
    assert first == again
    assert next(each for each in first if each["name"] == "ratio(io1)")["sigma"] > 1e-4
