"""The mismatch of nets that should mirror each other, by the arithmetic of their capacitances."""

import pytest

from layoutkit.circuit.constraints import Constraints, SymmetryGroup
from layoutkit.parasitics.net_network import NetParasitics, pair_mismatches

NETS = (
    NetParasitics("inp", 1.0, {"outp": 2.0, "clk": 0.5}),
    NetParasitics("inn", 1.2, {"outn": 1.7, "clk": 0.6}),
    NetParasitics("outp", 3.0, {"inp": 2.0}),
    NetParasitics("outn", 3.0, {"inn": 1.7}),
)


def test_each_coupling_is_compared_with_that_to_the_mirror_image():
    constraints = Constraints(symmetry=(SymmetryGroup(net_pairs=(("inp", "inn"), ("outp", "outn"))),))
    inputs, outputs = pair_mismatches(constraints, NETS, {})
    assert inputs.capacitance_percent == pytest.approx(0, abs=1e-9)  # 3.5 fF each
    assert (inputs.coupling_net, inputs.coupling_percent) == ("outp", pytest.approx(100 * 0.3 / 3.5))
    assert outputs.capacitance_percent == pytest.approx(100 * 0.3 / 4.85)
    assert outputs.resistance_percent is None


def test_two_groups_that_mirror_the_same_nets_state_their_mismatch_once():
    """As the inputs of two equal amplifiers do, crosswise."""
    groups = (SymmetryGroup(net_pairs=(("inp", "inn"),)), SymmetryGroup(net_pairs=(("outp", "outn"), ("inn", "inp"))))
    found = pair_mismatches(Constraints(symmetry=groups), NETS, {})
    assert [pair.nets for pair in found] == [("inp", "inn"), ("outp", "outn")]
