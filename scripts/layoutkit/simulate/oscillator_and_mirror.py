"""The test benches of oscillators and of current mirrors.

Oscillator: frequency, swing and supply current once the oscillation is steady.
Current mirror: output over input current at three output voltages, and the output resistance.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from layoutkit.simulate.fixture import Measurement
from layoutkit.simulate.ngspice import SimulationError, mean_over_time

if TYPE_CHECKING:
    from layoutkit.simulate.fixture import Fixture
    from layoutkit.simulate.ngspice import Plot


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
