"""Test benches of amplifiers, oscillators and current mirrors.

Amplifier: operating point, DC gain, unity-gain frequency, phase margin, offset, supply current.

One output: a coil closes the loop for direct current and a capacitor opens it for all other frequencies, so that one
run tells the offset and the open-loop response. A source in the loop keeps the output at the level at which the
schematic's is with equal inputs; the offset is then the difference of the inputs, which also holds the shift of the
output's level over the gain where the layout changes the currents of a matched circuit, as by ``nf``. An ideal
amplifier of gain 1 is before the coil, which would load a high output resistance at low frequencies.

                  inp --|+            cm + AC     |  >---+--------- out
                  inn --|-/    |
                   |--- 1 GH --(level - cm)-- gain 1
                  1 GF
                   0

Two outputs: the inputs are driven by plus and minus half of the source, and the same coil and capacitor let the
difference of the outputs hold the difference of the inputs, so that a high gain does not drive the outputs to the
supplies. Where the schematic's own level leaves it little gain, as with current sources above and below the outputs or
with a load that is not part of the circuit, equal currents into both outputs hold their common level.

Oscillator: frequency, swing and supply current once the oscillation is steady.
Current mirror: output over input current at three output voltages, and the output resistance.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import numpy as np

from layoutkit.simulate.fixture import Fixture, Measurement, operating_point
from layoutkit.simulate.ngspice import Plot, SimulationError, mean_over_time

SWEEP = ".ac dec 40 1m 100g"
"""The sweep begins at 1 mHz, below the pole of any integrated amplifier; the gain there is the DC gain."""
LARGEST_OFFSET = 0.1
"""Largest difference of the inputs, as a part of the supply, at which an amplifier is in its operating range."""
LEAST_GAIN = 0.1
"""Least DC gain of an amplifier in its operating range; an equalizer may have less than 1."""
HELD_GAIN = 2.0
"""How many times more two outputs have to amplify at the common-mode voltage for the bench to hold them there."""
HOLD_S = 1.0
"""Conductance that holds the common level of two outputs. [S]"""
_POSITIVE_NAME = re.compile(r".*(p|\+|plus|pos|1|a)\d*", re.IGNORECASE)


def measure_amplifier(fixture: Fixture) -> dict[str, Measurement]:
    """Return the measurements of an amplifier by name.

    Raises:
        SimulationError: If the amplifier has no inputs or no output, or its loop finds no operating point.
    """
    if not fixture.roles.outputs:
        raise SimulationError("no output was found; name its port so that it begins with out, or give a deck")
    if len(fixture.roles.outputs) == 2:
        return _two_outputs(fixture)
    first, second = fixture.inputs
    if not _POSITIVE_NAME.fullmatch(first) and _POSITIVE_NAME.fullmatch(second):
        first, second = second, first
    plots = _one_output(fixture, first, second)
    if _inverts(plots[1], fixture):  # the loop was closed to the other input
        plots = _one_output(fixture, second, first)
        first, second = second, first
    if _inverts(plots[1], fixture):
        raise SimulationError(f"neither {first} nor {second} is the inverting input: the output follows none of them")
    operating, sweep = plots
    output = fixture.nodes[fixture.roles.outputs[0]]
    offset = operating.of("v(tbn)")[0] - operating.of("v(tbp)")[0]
    if abs(offset) > LARGEST_OFFSET * fixture.values.supply_v:
        raise SimulationError(
            f"the loop holds the output only with {offset:.3f} V between the inputs: the common mode "
            f"({fixture.values.common_mode_v:g} V) or a bias does not suit this amplifier; give others in values"
        )
    return {
        **_response(sweep.scale, sweep.of(f"v({output})")),
        "offset": Measurement(float(offset), "V"),
        **operating_point(fixture, operating),
    }


def quiet_output(fixture: Fixture) -> float | None:
    """Return the level at which the outputs are to be kept; None to leave that to the circuit and its loop. [V]

    One output is kept where it is with equal inputs, unless that is near a supply, as with a high gain. Two outputs are
    kept at the common-mode voltage if the circuit amplifies far more there than at the level that it finds itself, and
    no load sets that.
    """
    outputs = fixture.roles.outputs
    if len(fixture.roles.inputs) != 2 or len(outputs) not in (1, 2):
        return None
    level, supply = fixture.values.common_mode_v, fixture.values.supply_v
    if len(outputs) == 2:
        if any(_has_own_level(fixture, port) for port in outputs):
            return None
        held = replace(fixture, values=replace(fixture.values, output_v=level))
        free, kept = (float(np.abs(_two_outputs_at(each)[1][0])) for each in (fixture, held))
        return level if kept > HELD_GAIN * free else None
    first, second = fixture.roles.inputs
    (plot,) = fixture.run([f"vp tbp 0 {level:g}", f"vn tbn 0 {level:g}", ".op"], 1, {first: "tbp", second: "tbn"})
    output = float(plot.of(f"v({fixture.nodes[outputs[0]]})")[0])
    return round(output, 4) if 0.1 * supply < output < 0.9 * supply else None


def _has_own_level(fixture: Fixture, port: str) -> bool:
    """Whether a diode or a resistor at a supply is the load of an output, which sets its level and its gain."""
    supplies = {*fixture.roles.power, *fixture.roles.ground}
    for end in fixture.circuit.nets[port]:
        device = fixture.circuit.device(end.device)
        if device.is_mos:
            diode = device.terminals["d"] == device.terminals["g"] == port
            if diode and device.terminals["s"] in supplies:
                return True
        elif device.type == "resistor" and supplies & {device.terminals["p"], device.terminals["n"]}:
            return True
    return False


def _level(fixture: Fixture) -> float:
    """Return the voltage at which the loop keeps the output. [V]"""
    level = fixture.values.output_v
    return fixture.values.common_mode_v if level is None else level


def _one_output(fixture: Fixture, positive: str, negative: str) -> list[Plot]:
    output = fixture.nodes[fixture.roles.outputs[0]]
    cards = [
        f"vin tbp 0 {fixture.values.common_mode_v:g} ac 1",
        f"ebuffer tbe 0 {output} 0 1",
        f"vlevel tbe tbf {_level(fixture) - fixture.values.common_mode_v:g}",
        "lfb tbf tbn 1e9",
        "cfb tbn 0 1e9",
        f"cl {output} 0 {fixture.values.load_f:g}",
        ".op",
        SWEEP,
    ]
    return fixture.run(cards, 2, {positive: "tbp", negative: "tbn"})


def _two_outputs(fixture: Fixture) -> dict[str, Measurement]:
    (operating, sweep), response = _two_outputs_at(fixture)
    first, second = (fixture.nodes[port] for port in fixture.roles.outputs)
    difference = float(operating.of(f"v({first})")[0] - operating.of(f"v({second})")[0])
    driven = float(operating.of("v(tbp)")[0] - operating.of("v(tbn)")[0])
    found = _response(sweep.scale, response)
    if fixture.values.output_v is not None:
        found["held_current"] = Measurement(float(operating.of("i(vhold1)")[0]), "A")
    offset = Measurement(driven - difference / float(np.real(response[0])), "V")
    return {**found, "offset": offset, **operating_point(fixture, operating)}


def _two_outputs_at(fixture: Fixture) -> tuple[list[Plot], np.ndarray]:
    """Return operating point, sweep and the response of the difference, with the loop closed so that it is stable."""
    first, second = (fixture.nodes[port] for port in fixture.roles.outputs)
    for sign in (1, -1):  # the second, where the outputs are exchanged
        plots = _closed_loop(fixture, sign)
        response = plots[1].of(f"v({first})") - plots[1].of(f"v({second})")
        if sign * np.real(response[0]) >= 0:
            break
    return plots, response


def _closed_loop(fixture: Fixture, sign: int) -> list[Plot]:
    """Return operating point and sweep of two outputs, whose difference acts on the inputs with a sign."""
    values, inputs = fixture.values, fixture.inputs
    first, second = (fixture.nodes[port] for port in fixture.roles.outputs)
    cards = [
        f"ebuffer tbe 0 {first} {second} 1",
        "lfb tbe tbf 1e9",
        "cfb tbf 0 1e9",
        f"vinp tbp tbq {values.common_mode_v:g} ac 0.5",
        f"vinn tbn tbr {values.common_mode_v:g} ac -0.5",
        f"efbp tbq 0 tbf 0 {-0.5 * sign:g}",
        f"efbn tbr 0 tbf 0 {0.5 * sign:g}",
        f"cl1 {first} 0 {values.load_f:g}",
        f"cl2 {second} 0 {values.load_f:g}",
        *(_common_level(first, second, values.output_v) if values.output_v is not None else ()),
        ".op",
        SWEEP,
    ]
    return fixture.run(cards, 2, {inputs[0]: "tbp", inputs[1]: "tbn"})


def _common_level(first: str, second: str, level: float) -> list[str]:
    """Return cards that hold the mean of two nodes at a level by equal currents into both. [V]"""
    return [
        f"ehalf1 tbh 0 {first} 0 0.5",
        f"ehalf2 tbm tbh {second} 0 0.5",
        f"vhold tbl 0 {level:g}",
        f"vhold1 tbi {first} 0",
        f"vhold2 tbj {second} 0",
        f"ghold1 0 tbi tbl tbm {HOLD_S:g}",
        f"ghold2 0 tbj tbl tbm {HOLD_S:g}",
    ]


def _inverts(sweep: Plot, fixture: Fixture) -> bool:
    """Whether the output is inverted against the driven input at the lowest frequency."""
    return bool(np.real(sweep.of(f"v({fixture.nodes[fixture.roles.outputs[0]]})")[0]) < 0)


def _response(frequency: np.ndarray, response: np.ndarray) -> dict[str, Measurement]:
    """Return DC gain [dB], unity-gain frequency [Hz] and phase margin [degrees]; no unity gain, no margin.

    The DC gain is that of the first point. The unity-gain frequency is found between two points of the sweep on
    logarithmic scales.

    Raises:
        SimulationError: If the circuit does not amplify, so that it is not in its operating range.
    """
    if abs(response[0]) < LEAST_GAIN:
        raise SimulationError(
            f"the circuit does not amplify at low frequencies (gain {abs(response[0]):.2g}): the common mode or a bias "
            "does not suit it; give others in values"
        )
    gain = 20 * np.log10(np.maximum(np.abs(response), 1e-30))
    found = {"dc_gain": Measurement(float(gain[0]), "dB")}
    below = np.nonzero(gain < 0)[0]
    if gain[0] <= 0 or not below.size:
        return found
    last = below[0]
    part = gain[last - 1] / (gain[last - 1] - gain[last])
    decades = np.log10(frequency)
    phase = np.degrees(np.unwrap(np.angle(response)))
    at_unity = phase[last - 1] + part * (phase[last] - phase[last - 1])
    unity = 10 ** (decades[last - 1] + part * (decades[last] - decades[last - 1]))
    return {
        **found,
        "gbw": Measurement(float(unity), "Hz"),
        "phase_margin": Measurement(float(180 + at_unity - phase[0]), "deg"),
    }


SPANS_S = (20e-9, 200e-9, 2e-6, 20e-6)
"""Simulated times, each tried until the output has enough periods. [s]"""
RISE = 0.01
"""Time in which the supplies rise, as a part of the simulated time."""
PERIODS = 6
STEADY = 0.01
"""Largest difference between the last periods, as a part of their mean."""

LEAST_SWING = 0.05
"""Smallest swing of an oscillation, as a part of the supply."""


def measure_oscillator(fixture: Fixture) -> dict[str, Measurement]:
    """Return frequency, peak-to-peak swing and mean supply current over the last periods.

    The supplies rise at the beginning, which starts the oscillation: with them on, all stages at their switching
    voltage are a solution, too, which nothing disturbs.

    Raises:
        SimulationError: If there is no output port, or it does not oscillate steadily within the longest time.
    """
    if not fixture.roles.outputs:
        raise SimulationError("no output was found; name its port so that it begins with out, or give a deck")
    output = fixture.nodes[fixture.roles.outputs[0]]
    supplies = [*fixture.roles.power, *(port for port, high in fixture.roles.levels.items() if high)]
    for span in SPANS_S:
        step = span / 4000
        cards = [
            f"cl {output} 0 {fixture.values.load_f:g}",
            f".tran {step:g} {span:g} 0 {step:g}",
            f".save v({output}) " + " ".join(f"i(v{fixture.nodes[net]})" for net in supplies),
        ]
        (run,) = fixture.run(cards, 1, rise_s=RISE * span)
        time, level = run.scale, run.of(f"v({output})")
        periods, start, end = _last_periods(time, level, LEAST_SWING * fixture.values.supply_v)
        if periods.size == PERIODS and np.ptp(periods) <= STEADY * periods.mean():
            last = (time >= start) & (time <= end)  # whole periods: the current is not even within one
            return {
                "frequency": Measurement(float(1 / periods.mean()), "Hz"),
                "swing": Measurement(float(np.ptp(level[last])), "V"),
                **fixture.supply_currents(partial(_mean, run, last), supplies),
            }
    raise SimulationError(f"the output does not oscillate steadily within {SPANS_S[-1]:g} s")


def _mean(run: Plot, during: np.ndarray, name: str) -> float:
    return mean_over_time(run.scale[during], run.of(name)[during])


def _last_periods(time: np.ndarray, level: np.ndarray, least: float) -> tuple[np.ndarray, float, float]:
    """Return the last periods [s] and when they begin and end; none if the swing is below ``least`` [V].

    A period is the time between two rises through the middle of the swing, which need not be half of the supply.
    """
    late = level[time >= time[-1] / 2]
    edges = rising_edges(time, level, float(late.min() + late.max()) / 2)
    if np.ptp(late) < least or len(edges) <= PERIODS:
        return np.empty(0), 0.0, 0.0
    return np.diff(edges)[-PERIODS:], float(edges[-PERIODS - 1]), float(edges[-1])


def rising_edges(time: np.ndarray, level: np.ndarray, threshold: float) -> np.ndarray:
    """Return the times at which a level rises through a threshold, each between two points. [s]"""
    before = np.nonzero((level[:-1] < threshold) & (level[1:] >= threshold))[0]
    part = (threshold - level[before]) / (level[before + 1] - level[before])
    return np.asarray(time[before] + part * (time[before + 1] - time[before]))


POINTS = 40
"""Steps of the output voltage from ground to the supply."""


def measure_mirror(fixture: Fixture) -> dict[str, Measurement]:
    """Return ``ratio(port)`` at half the supply, at a quarter and three quarters, and the resistance between these.

    The input current flows into an NMOS mirror and out of a PMOS one, and so do the output currents.

    Raises:
        SimulationError: If no mirror is on ports.
    """
    if not fixture.roles.inputs:
        raise SimulationError("no current mirror has its input and an output on ports; name another bench")
    reference, supply = fixture.roles.inputs[0], fixture.values.supply_v
    node, current = fixture.nodes[reference], fixture.values.currents_a[reference]
    sinks = fixture.takes(reference)
    cards = [f"iref {fixture.supply} {node} {current:g}" if sinks else f"iref {node} 0 {current:g}", "vsweep tbs 0 0"]
    for number, port in enumerate(fixture.roles.outputs):
        cards.append(f"vout{number} tbs {fixture.nodes[port]} 0")
    cards.append(f".dc vsweep 0 {supply:g} {supply / POINTS:g}")
    if fixture.supply == "0" and sinks:  # no supply port: the current comes from ground, which is as good
        cards[0] = f"iref 0 {node} {current:g}"
    (sweep,) = fixture.run(cards, 1)
    found = {}
    for number, port in enumerate(fixture.roles.outputs):
        out = sweep.of(f"i(vout{number})") * (1 if sinks else -1)
        quarter, half, three = (float(np.interp(part * supply, sweep.scale, out)) for part in (0.25, 0.5, 0.75))
        found[f"ratio({port})"] = Measurement(half / current, "")
        found[f"ratio_at_quarter({port})"] = Measurement(quarter / current, "")
        found[f"ratio_at_three_quarters({port})"] = Measurement(three / current, "")
        if abs(three - quarter) > 1e-6 * abs(half):
            found[f"output_resistance({port})"] = Measurement(abs(0.5 * supply / (three - quarter)), "ohm")
    found[f"v({reference})"] = Measurement(float(np.interp(supply / 2, sweep.scale, sweep.of(f"v({node})"))), "V")
    return found
