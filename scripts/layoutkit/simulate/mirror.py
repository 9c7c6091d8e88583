"""The test bench of a current mirror: output over input current at three output voltages, and the output resistance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from layoutkit.simulate.fixture import Measurement
from layoutkit.simulate.ngspice import SimulationError

if TYPE_CHECKING:
    from layoutkit.simulate.fixture import Fixture

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
