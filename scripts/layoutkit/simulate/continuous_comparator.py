"""The test bench of a comparator without a clock: offset and hysteresis by a sweep of its inputs, and its delay.

The inputs move against each other, up and down again, first in coarse steps and then in finer ones around the voltages
at which the output passes half the supply. Each sweep begins beyond both voltages, so that its start does not matter.
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


def measure_continuous_comparator(fixture: Fixture) -> dict[str, Measurement]:
    """Return offset [V], hysteresis [V], delay [s] and supply current [A] of a comparator with one output.

    The input voltages at which the output changes are its two thresholds: the offset is their mean, the hysteresis
    their difference. The delay is the larger one of a rising and a falling step, which end ``overdrive_v`` beyond a
    threshold.

    Raises:
        SimulationError: If no input voltage changes the output, or it changes too late.
    """
    low, up = -RANGE_V, RANGE_V
    while True:
        rising, falling = (_sweep(fixture, *ends) for ends in ((low, up), (up, low)))
        at_rising, at_falling = _threshold(fixture, rising), _threshold(fixture, falling)
        step = (up - low) / POINTS
        if step <= max(RESOLUTION_V, abs(at_rising - at_falling) / 8):
            break
        low, up = min(at_rising, at_falling) - 2 * step, max(at_rising, at_falling) + 2 * step
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


def _sweep(fixture: Fixture, start: float, end: float) -> Plot:
    first, second = fixture.inputs
    cards = [*_inputs(fixture, "tbd"), "vd tbd 0 0", f".dc vd {start:.9g} {end:.9g} {(end - start) / POINTS:.9g}"]
    return fixture.run(cards, 1, {first: "tbp", second: "tbn"})[0]


def _threshold(fixture: Fixture, sweep: Plot) -> float:
    """Return the input voltage at which the output passes half the supply, between two points of a sweep. [V]"""
    above = sweep.of(f"v({fixture.nodes[fixture.roles.outputs[0]]})") - fixture.values.supply_v / 2
    turns = np.nonzero(np.diff(np.sign(above)))[0]
    if not turns.size:
        raise SimulationError(
            f"no input voltage within {RANGE_V * 1000:g} mV changes the output: the common mode "
            f"({fixture.values.common_mode_v:g} V) or a bias does not suit this comparator; give others in values"
        )
    last = turns[0]
    part = above[last] / (above[last] - above[last + 1])
    return float(sweep.scale[last] + part * (sweep.scale[last + 1] - sweep.scale[last]))


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
