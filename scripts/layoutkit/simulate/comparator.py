"""The test benches of comparators, with and without a clock.

With a clock: offset by a staircase, delay and kickback. A port with the inverse of the clock gets that. The inputs
rise against each other by one step a clock period, and the offset is the input voltage at which the decision changes:
first in coarse steps, then in finer ones around that place. Each staircase goes up and comes down, because the last
decision may act on the next; where it does, the offset is the middle of the voltages at which it does.

Without a clock: offset and hysteresis by a sweep of the inputs, and the delay. The inputs move against each other, up
and down again, first in coarse steps and then in finer ones around the voltages at which the output passes half the
supply. Each sweep begins beyond both voltages, so that its start does not matter.

Where a comparator with hysteresis has two states, each point of a sweep for direct current may end in either of them.
Only a transient remembers the state before. So the inputs are also moved in slow ramps, which decide where the two
thresholds differ; where they do not, the sweep is more exact, because a ramp also shows the delay.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from layoutkit.simulate.amplifier import SPANS_S
from layoutkit.simulate.fixture import Fixture, Measurement
from layoutkit.simulate.ngspice import Plot, SimulationError, mean_over_time

if TYPE_CHECKING:
    from collections.abc import Sequence


RANGES_V = (0.032, 0.256)
"""Input voltages of the coarse staircases: the second is tried where the first finds no change. [V]"""
STEPS = 17
"""Steps of each staircase; an odd number, so that none of a coarse one ends at 0, where a latch does not decide."""
RESOLUTION_V = 50e-6
"""Height of the steps at which the offset is known. [V]"""
RISE = 1 / 200
"""Rise time of the clock as a part of its period."""


@dataclass(frozen=True)
class _Run:
    """One transient: the clock rises at the middle of every period; each period has an input voltage of its own."""

    plot: Plot
    decisions: np.ndarray


def measure_comparator(fixture: Fixture) -> dict[str, Measurement]:
    """Return offset [V], memory [V], delay [s], kickback [V] and supply current [A] of a comparator.

    One without a clock and with one output has its own bench.

    Raises:
        SimulationError: If there are no two outputs, or no input voltage changes the decision.
    """
    if len(fixture.roles.outputs) == 1 and not fixture.roles.clock:
        return measure_continuous_comparator(fixture)
    if len(fixture.roles.outputs) != 2:
        raise SimulationError("two outputs are needed and were not found; name their ports out..., or give a deck")
    if not fixture.roles.clock:
        raise SimulationError("no clock was found; name its port clk, or give a deck")
    # whether the outputs differ at the end of the clock's high phase rather than of its low one
    run = _transient(fixture, [0.1, 0.1], True)
    first, second = (run.plot.of(f"v({fixture.nodes[port]})") for port in fixture.roles.outputs)
    period = fixture.values.period_s
    ends = [float(np.interp(place * period, run.plot.scale, np.abs(first - second))) for place in (1.98, 1.48)]
    high = ends[0] >= ends[1]
    low, up = _undecided(fixture, high)
    return {
        "offset": Measurement((low + up) / 2, "V"),
        "memory": Measurement(up - low, "V"),
        **_delay_and_kickback(fixture, high),
    }


def _undecided(fixture: Fixture, high: bool) -> tuple[float, float]:
    """Return the lowest and the highest input voltage at which the decision is not certain.

    Between them, the decision before or rounding decides.
    """
    for reach in RANGES_V:
        low, up = -reach, reach
        while True:
            steps = np.linspace(low, up, STEPS + 1)
            run = _transient(fixture, [-reach, *steps, reach, *steps[::-1]], high)
            rising = _change(steps, run.decisions[1 : STEPS + 2])
            falling = _change(steps, run.decisions[STEPS + 3 :][::-1])
            if rising is None or falling is None:
                break
            step, low, up = steps[1] - steps[0], min(*rising, *falling), max(*rising, *falling)
            if step <= max(RESOLUTION_V, (up - low) / 8):
                return low, up
            low, up = low - step / 4, up + step / 4
    raise SimulationError(
        f"no input voltage within {RANGES_V[-1] * 1000:g} mV changes the decision for good; give a longer period_s"
    )


def _change(steps: np.ndarray, decisions: np.ndarray) -> tuple[float, float] | None:
    """Return the steps before the first change of the decision and after the last; None if both ends decide alike.

    Steps between them are so close to the offset that rounding decides.
    """
    turns = np.nonzero(np.diff(decisions))[0]
    if decisions[0] == decisions[-1] or not turns.size:
        return None
    return float(steps[turns[0]]), float(steps[turns[-1] + 1])


def _transient(fixture: Fixture, steps: Sequence[float], high: bool) -> _Run:
    """Return the run of one staircase and the sign of the outputs at the end of each period's evaluation."""
    values = fixture.values
    period, rise = values.period_s, values.period_s * RISE
    first, second = fixture.inputs
    end = period * len(steps)
    shape = f"{period / 2:g} {rise:g} {rise:g} {period / 2 - rise:g} {period:g}"
    clocks = {fixture.roles.clock: False, **fixture.roles.more_clocks}
    cards = [
        *(
            f"vck{number} {fixture.nodes[port]} 0 pulse({_levels(values.supply_v, rises=high != inverse)} {shape})"
            for number, (port, inverse) in enumerate(clocks.items())
            if port not in values.voltages_v
        ),
        *_staircase("p", values.common_mode_v, [step / 2 for step in steps], period, rise),
        *_staircase("n", values.common_mode_v, [-step / 2 for step in steps], period, rise),
        f"rsp sp tbp {values.source_ohm:g}",
        f"rsn sn tbn {values.source_ohm:g}",
        *(f"cl{number} {fixture.nodes[port]} 0 {values.load_f:g}" for number, port in enumerate(fixture.roles.outputs)),
        ".options trtol=1",  # with ngspice's 7, errors of the time step decide for inputs of a millivolt
        f".tran {period / 400:g} {end:g} 0 {period / 100:g}",
        ".save v(tbp) v(tbn) v(sp) v(sn) "
        + " ".join(f"v({fixture.nodes[port]})" for port in (*fixture.roles.outputs, fixture.roles.clock))
        + "".join(f" i(v{fixture.nodes[net]})" for net in fixture.roles.power),
    ]
    (plot,) = fixture.run(cards, 1, {first: "tbp", second: "tbn"})
    out = [plot.of(f"v({fixture.nodes[port]})") for port in fixture.roles.outputs]
    ends = (np.arange(len(steps)) + 0.99) * period
    return _Run(plot, np.sign(np.interp(ends, plot.scale, out[0]) - np.interp(ends, plot.scale, out[1])))


def _levels(supply: float, *, rises: bool) -> str:
    """Return the level before and after the edge at the middle of a period."""
    return f"0 {supply:g}" if rises else f"{supply:g} 0"


def _staircase(name: str, common: float, steps: Sequence[float], period: float, rise: float) -> list[str]:
    """Return a source of one level a period, which changes at the period's start."""
    points = [f"0 {common + steps[0]:.9g}"]
    for number, (before, after) in enumerate(pairwise(steps), start=1):
        points.append(f"{number * period:.9g} {common + before:.9g}")
        points.append(f"{number * period + rise:.9g} {common + after:.9g}")
    return [f"vs{name} s{name} 0 pwl({' '.join(points)})"]


def _delay_and_kickback(fixture: Fixture, high: bool) -> dict[str, Measurement]:
    """Return the time from the clock's edge until the outputs differ by half the supply, and what the inputs see."""
    values = fixture.values
    over = values.overdrive_v
    run = _transient(fixture, [-over, over, over], high)
    plot, period = run.plot, values.period_s
    time = plot.scale
    first, second = (plot.of(f"v({fixture.nodes[port]})") for port in fixture.roles.outputs)
    edge = 1.5 * period + values.period_s * RISE / 2
    window = (time >= edge) & (time <= 2 * period)
    apart = np.abs(first - second)[window] >= values.supply_v / 2
    found = {}
    if apart.any():
        found["delay"] = Measurement(float(time[window][np.argmax(apart)] - edge), "s")
    steady = (time >= period * (1 + 0.25)) & (time <= 2 * period)
    kick = [plot.of(f"v(tb{name})") - plot.of(f"v(s{name})") for name in "pn"]
    found["kickback"] = Measurement(float(np.max(np.abs(np.array(kick)[:, steady]))), "V")
    found["kickback_difference"] = Measurement(float(np.max(np.abs((kick[0] - kick[1])[steady]))), "V")
    last = (time >= period) & (time <= 3 * period)
    return found | fixture.supply_currents(lambda name: mean_over_time(time[last], plot.of(name)[last]))


RANGE_V = 0.256
"""Largest input voltage. [V]"""
POINTS = 128
"""Steps of each sweep."""
RAMPS_S = (2e-6, 20e-6, 200e-6, 2e-3, 20e-3)
"""Durations of a ramp up and down, each tried until it hardly changes the thresholds of the one before. [s]"""
SLOW_ENOUGH = 0.05
"""Change of a threshold from one ramp to the next at which the delay does not matter, as a part of the hysteresis. The
delay shifts a threshold in proportion to the speed, so that a tenth of this change is left."""
LEAST_HYSTERESIS_V = 4 * RESOLUTION_V
"""Smaller differences of the thresholds of ramps are those of the delay. [V]"""


def measure_continuous_comparator(fixture: Fixture) -> dict[str, Measurement]:
    """Return offset [V], hysteresis [V], delay [s] and supply current [A] of a comparator with one output.

    The input voltages at which the output changes are its two thresholds: the offset is their mean, the hysteresis
    their difference. The delay is the larger one of a rising and a falling step, which end ``overdrive_v`` beyond a
    threshold.

    Raises:
        SimulationError: If no input voltage changes the output, or it changes too late.
    """
    rising = _sweep(fixture, -RANGE_V, RANGE_V)
    _turns(fixture, rising)
    at_rising, at_falling = _by_ramps(fixture)
    if at_rising - at_falling < LEAST_HYSTERESIS_V:
        at_rising, at_falling = _by_sweeps(fixture, (at_rising + at_falling) / 2)
    return {
        "offset": Measurement((at_rising + at_falling) / 2, "V"),
        "hysteresis": Measurement(at_rising - at_falling, "V"),
        "delay": Measurement(_delay(fixture, at_rising, at_falling), "s"),
        **fixture.supply_currents(lambda name: float(rising.of(name)[0] + rising.of(name)[-1]) / 2),
    }


def _inputs(fixture: Fixture, control: str) -> list[str]:
    """Return the sources of both inputs, which differ by the voltage of a control node."""
    return [
        f"vcm tbc 0 {fixture.values.common_mode_v:g}",
        f"einp tbp tbc {control} 0 0.5",
        f"einn tbn tbc {control} 0 -0.5",
        f"cl {fixture.nodes[fixture.roles.outputs[0]]} 0 {fixture.values.load_f:g}",
    ]


def _by_sweeps(fixture: Fixture, middle: float) -> tuple[float, float]:
    """Return the thresholds of sweeps up and down of a comparator without hysteresis, near ``middle``. [V]"""
    low, up = middle - RESOLUTION_V * POINTS / 2, middle + RESOLUTION_V * POINTS / 2
    sweeps = (_sweep(fixture, low, up), _sweep(fixture, up, low))
    at_rising, at_falling = (_crossing(fixture, sweep, _turns(fixture, sweep)[0]) for sweep in sweeps)
    return at_rising, at_falling


def _by_ramps(fixture: Fixture) -> tuple[float, float]:
    """Return the thresholds of ramps up and down that are slow enough not to show the delay. [V]"""
    low, up = -RANGE_V, RANGE_V
    before: tuple[float, float] | None = None
    for span in RAMPS_S:
        found = _ramp(fixture, low, up, span)
        if found is None:
            continue
        apart = max(found) - min(found)
        if before is not None and max(map(abs, np.subtract(found, before))) <= max(RESOLUTION_V, SLOW_ENOUGH * apart):
            return found
        before, margin = found, max(16 * RESOLUTION_V, apart / 2)
        low, up = min(found) - margin, max(found) + margin
    raise SimulationError(f"the output does not follow a ramp of the inputs within {RAMPS_S[-1]:g} s")


def _ramp(fixture: Fixture, low: float, up: float, span: float) -> tuple[float, float] | None:
    """Return the input voltages at which the output changes on the way up and down; None if not once on each. [V]"""
    first, second = fixture.inputs
    output = fixture.nodes[fixture.roles.outputs[0]]
    cards = [
        *_inputs(fixture, "tbd"),
        f"vd tbd 0 pwl(0 {low:.9g} {span / 2:g} {up:.9g} {span:g} {low:.9g})",
        f".tran {span / 2000:g} {span:g} 0 {span / 2000:g}",
        f".save v({output}) v(tbd)",
    ]
    (run,) = fixture.run(cards, 1, {first: "tbp", second: "tbn"})
    turns = np.nonzero(np.diff(np.sign(_above(fixture, run))))[0]
    if len(turns) != 2 or not run.scale[turns[0]] < span / 2 < run.scale[turns[1]]:
        return None
    place = [run.scale[turn] for turn in turns]
    at_rising, at_falling = (float(np.interp(time, run.scale, run.of("v(tbd)"))) for time in place)
    return at_rising, at_falling


def _sweep(fixture: Fixture, start: float, end: float) -> Plot:
    first, second = fixture.inputs
    cards = [*_inputs(fixture, "tbd"), "vd tbd 0 0", f".dc vd {start:.9g} {end:.9g} {(end - start) / POINTS:.9g}"]
    return fixture.run(cards, 1, {first: "tbp", second: "tbn"})[0]


def _above(fixture: Fixture, plot: Plot) -> np.ndarray:
    """Return how far the output is above half the supply. [V]"""
    return plot.of(f"v({fixture.nodes[fixture.roles.outputs[0]]})") - fixture.values.supply_v / 2


def _turns(fixture: Fixture, sweep: Plot) -> np.ndarray:
    """Return the points of a sweep after which the output passes half the supply.

    Raises:
        SimulationError: If it does not.
    """
    turns = np.nonzero(np.diff(np.sign(_above(fixture, sweep))))[0]
    if not turns.size:
        raise SimulationError(
            f"no input voltage within {RANGE_V * 1000:g} mV changes the output: the common mode "
            f"({fixture.values.common_mode_v:g} V) or a bias does not suit this comparator; give others in values"
        )
    return turns


def _crossing(fixture: Fixture, sweep: Plot, turn: int) -> float:
    """Return the input voltage between two points of a sweep at which the output passes half the supply. [V]"""
    above = _above(fixture, sweep)
    part = above[turn] / (above[turn] - above[turn + 1])
    return float(sweep.scale[turn] + part * (sweep.scale[turn + 1] - sweep.scale[turn]))


def _delay(fixture: Fixture, at_rising: float, at_falling: float) -> float:
    """Return the longer of the delays after an edge up and an edge down. [s]"""
    first, second = fixture.inputs
    over = fixture.values.overdrive_v
    output = fixture.nodes[fixture.roles.outputs[0]]
    low, high = at_falling - over, at_rising + over
    for span in SPANS_S:
        edges = 0.1 * span, 0.55 * span
        rise = span / 4000
        cards = [
            *_inputs(fixture, "tbd"),
            f"vd tbd 0 pulse({low:.9g} {high:.9g} {edges[0]:g} {rise:g} {rise:g} {edges[1] - edges[0] - rise:g})",
            f".tran {rise:g} {span:g} 0 {4 * rise:g}",
            f".save v({output})",
        ]
        (run,) = fixture.run(cards, 1, {first: "tbp", second: "tbn"})
        above = run.of(f"v({output})") > fixture.values.supply_v / 2
        changes = run.scale[1:][np.diff(above)]
        if len(changes) == len(edges) and edges[0] < changes[0] < edges[1] < changes[1]:
            return float(np.max(changes - edges))
    raise SimulationError(f"the output does not follow the inputs within {SPANS_S[-1] / 2:g} s")
