"""Wells of one net that nearly meet at a corner keep their space where nothing can join them."""

from layoutkit.drc.check import Options, check
from layoutkit.flow import placing
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit
from layoutkit.flow.joined_wells import room_for_wells
from layoutkit.place import PlacementOptions
from layoutkit.technology import load

# Four transistors of one size; nothing ties them together but their supplies.
FOUR = """* p and n channels
.subckt four a b c d ga gb gc gd vdd vss
MP1 a ga vdd vdd pmos W=5u L=0.5u nf=1
MN1 b gb vss vss nmos W=5u L=0.5u nf=1
MN2 c gc vss vss nmos W=5u L=0.5u nf=1
MP2 d gd vdd vdd pmos W=5u L=0.5u nf=1
.ends
"""
# MN2 MP2
# MP1 MN1
CHECKERED = {
    "ordering": [
        {"devices": ["MP1", "MN1"], "direction": "left_to_right"},
        {"devices": ["MN2", "MP2"], "direction": "left_to_right"},
        {"devices": ["MP1", "MN2"], "direction": "bottom_to_top"},
        {"devices": ["MN1", "MP2"], "direction": "bottom_to_top"},
    ],
    "alignment": [{"devices": ["MP1", "MN1"], "edge": "bottom"}, {"devices": ["MP1", "MN2"], "edge": "right"}],
}


def checkered():
    """Return a placement of ``FOUR``, and the rules of n wells that it violates."""
    technology = load("gf180mcuD")
    request = LayoutRequest(netlist_text=FOUR, technology=technology.name, constraints=CHECKERED)
    circuit, _ = read_circuit(request, technology)
    design, _ = make_design(request, technology, circuit)
    placed = placing.place_modules(design, PlacementOptions(moves=5000))
    rules = [rule.id for rule in technology.rules if rule.id.startswith("NW.")]
    found = check(placed.layout, placed.cell, technology, Options(rule_ids=rules)).summary()["violations"]
    return placed, {each["rule_id"] for each in found}


def test_wells_in_a_checkered_pattern_keep_their_space(monkeypatch):
    """Both quarters beside the gap hold n channels, so that no n well fits between the p channels' wells (NW.2b)."""
    placed, violated = checkered()
    assert violated == set()
    assert all(outcome.obeyed for outcome in placed.outcomes)
    monkeypatch.setattr(placing, "MOST_FOR_WELLS", 1)
    placed, violated = checkered()
    assert violated == {"NW.2b_3.3V"}
    room = room_for_wells(placed, {"pmos_MP1": 100})
    assert room == {"pmos_MP1": 800, "pmos_MP2": 700}
