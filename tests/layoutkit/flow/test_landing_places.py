"""Which conductors carry the wires of large currents."""

from layoutkit.flow.routing_job import routing_conductors, wiring_conductors
from layoutkit.technology import load


def test_currents_that_need_very_wide_wires_get_a_thick_conductor():
    """sg13g2: Metal2 to Metal5 carry 2 mA/um, so that 12 mA need 6 um, and 0.8 um of TopMetal1; sky130's met5 is 1.5
    times as thick as met4 only."""
    process = load("sg13g2")
    usual = [each.name for each in routing_conductors(process)]
    assert [each.name for each in wiring_conductors(process, {"out": 0.009})] == usual
    assert [each.name for each in wiring_conductors(process, {"out": 0.012})] == [*usual, "TopMetal1"]
    sky = load("sky130A")
    assert wiring_conductors(sky, {"out": 0.1}) == routing_conductors(sky)
