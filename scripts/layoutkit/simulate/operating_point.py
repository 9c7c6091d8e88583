"""Supply currents and port voltages at the operating point; the test bench of circuits that no other fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from layoutkit.simulate.fixture import Measurement
from layoutkit.simulate.ngspice import SimulationError

if TYPE_CHECKING:
    from layoutkit.simulate.fixture import Fixture
    from layoutkit.simulate.raw_file import Plot


def measure_operating_point(fixture: Fixture) -> dict[str, Measurement]:
    """Return the operating point with every input at the common-mode voltage.

    Raises:
        SimulationError: If the circuit has no port at which anything can be measured.
    """
    inputs = [
        f"vin{n} {fixture.nodes[port]} 0 {fixture.values.common_mode_v:g}"
        for n, port in enumerate(fixture.roles.inputs)
    ]
    (plot,) = fixture.run([*inputs, ".op"], 1)
    found = operating_point(fixture, plot)
    if not found:
        raise SimulationError("the circuit has no port to measure at, such as a supply or an output; add ports")
    return found


def operating_point(fixture: Fixture, plot: Plot) -> dict[str, Measurement]:
    """Return the supply currents and the voltages of the ports that the bench does not set."""
    found = {
        "supply_current" if len(fixture.roles.power) == 1 else f"supply_current({net})": Measurement(
            -float(plot.of(f"i(v{fixture.nodes[net]})")[0]), "A"
        )
        for net in fixture.roles.power
    }
    told = [*fixture.roles.outputs, *fixture.roles.currents, *fixture.roles.open]
    for port in dict.fromkeys(told):
        name = f"v({fixture.nodes[port]})"
        if name in plot.vectors:
            found[f"v({port})"] = Measurement(float(np.real(plot.of(name)[0])), "V")
    return found
