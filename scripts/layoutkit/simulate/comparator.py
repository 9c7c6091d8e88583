"""The test bench of a clocked comparator: offset by a staircase, delay and kickback.

A port with the inverse of the clock gets that. The inputs rise against each other by one step a clock period, and the
offset is the input voltage at which the decision changes: first in coarse steps, then in finer ones around that place.
Each staircase goes up and comes down, because the last decision may act on the next; where it does, the offset is the
middle of the voltages at which it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from layoutkit.simulate.continuous_comparator import measure_continuous_comparator
from layoutkit.simulate.fixture import Measurement
from layoutkit.simulate.ngspice import SimulationError
from layoutkit.simulate.raw_file import mean_over_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from layoutkit.simulate.fixture import Fixture
    from layoutkit.simulate.raw_file import Plot

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
    high = _evaluates_high(fixture)
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


def _evaluates_high(fixture: Fixture) -> bool:
    """Whether the outputs differ at the end of the clock's high phase rather than of its low one."""
    run = _transient(fixture, [0.1, 0.1], True)
    first, second = (run.plot.of(f"v({fixture.nodes[port]})") for port in fixture.roles.outputs)
    period = fixture.values.period_s
    ends = [float(np.interp(place * period, run.plot.scale, np.abs(first - second))) for place in (1.98, 1.48)]
    return ends[0] >= ends[1]


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
    for net in fixture.roles.power:
        name = "supply_current" if len(fixture.roles.power) == 1 else f"supply_current({net})"
        last = (time >= period) & (time <= 3 * period)
        found[name] = Measurement(-mean_over_time(time[last], plot.of(f"i(v{fixture.nodes[net]})")[last]), "A")
    return found
