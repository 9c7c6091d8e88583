"""The test bench of a comparator without a clock: offset and hysteresis by a sweep of its inputs, and its delay.

The inputs move against each other, up and down again, first in coarse steps and then in finer ones around the voltages
at which the output passes half the supply. Each sweep begins beyond both voltages, so that its start does not matter.

Where a comparator with hysteresis has two states, each point of a sweep for direct current may end in either of them.
Only a transient remembers the state before. So the inputs are also moved in slow ramps, which decide where the two
thresholds differ; where they do not, the sweep is more exact, because a ramp also shows the delay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from layoutkit.simulate.fixture import Measurement
from layoutkit.simulate.ngspice import SimulationError
from layoutkit.simulate.oscillator import SPANS_S

if TYPE_CHECKING:
    from layoutkit.simulate.fixture import Fixture
    from layoutkit.simulate.raw_file import Plot

RANGE_V = 0.256
"""Largest input voltage. [V]"""
POINTS = 128
"""Steps of each sweep."""
RESOLUTION_V = 50e-6
"""Height of the steps at which the offset is known. [V]"""
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
    found = {
        "offset": Measurement((at_rising + at_falling) / 2, "V"),
        "hysteresis": Measurement(at_rising - at_falling, "V"),
        "delay": Measurement(_delay(fixture, at_rising, at_falling), "s"),
    }
    for net in fixture.roles.power:
        name = "supply_current" if len(fixture.roles.power) == 1 else f"supply_current({net})"
        current = rising.of(f"i(v{fixture.nodes[net]})")
        found[name] = Measurement(-float(current[0] + current[-1]) / 2, "A")
    return found


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
