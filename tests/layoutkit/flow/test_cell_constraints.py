"""Constraints suggested for instances of shared cells have no conflicts, and mean the same when read from a file."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.circuit.constraint_faults import find_faults
from layoutkit.circuit.constraints import Constraints
from layoutkit.circuit.repeated import find_repeated
from layoutkit.errors import LayoutkitError
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit
from layoutkit.technology import load
from thorough import examples

BIQUAD = """* four equal transconductors; the outputs of some are their own inputs, or those of others, exchanged
.subckt gm ip in op on vb vdd vss
M0 t vb vss vss nmos W=4u L=1u
M1 on ip t vss nmos W=6u L=0.5u
M2 op in t vss nmos W=6u L=0.5u
M3 on vb2 vdd vdd pmos W=8u L=1u
M4 op vb2 vdd vdd pmos W=8u L=1u
M5 vb2 vb2 vdd vdd pmos W=8u L=1u
.ends
.subckt top ip in op on vb vdd vss
X1 bn bp bp bn vb vdd vss gm
X2 ip in bp bn vb vdd vss gm
X3 bp bn op on vb vdd vss gm
X4 on op bp bn vb vdd vss gm
.ends
"""
DELAYS = """* a replica of a delay cell with its inputs on the supplies, before two whose inputs are signals
.subckt delay ip in op on vb vdd vss
M0 t vb vss vss nmos W=4u L=0.5u
M1 on ip t vss nmos W=3u L=0.5u
M2 op in t vss nmos W=3u L=0.5u
R1 on vdd 1k
R2 op vdd 1k
.ends
.subckt top ip in op on vb vdd vss
X0 vss vdd r1 r2 vb vdd vss delay
X1 ip in p n vb vdd vss delay
X2 p n op on vb vdd vss delay
.ends
"""
CROSSED = """* the negative input is the positive output in both instances, and the positive input is on ground in one
.subckt amp ip in op on vb vdd vss
M0 t vb vdd vdd pmos W=4u L=0.5u
M1 on ip t vdd pmos W=3u L=0.5u
M2 op in t vdd pmos W=3u L=0.5u
R1 on vss 1k
R2 op vss 1k
.ends
.subckt top a b c ip vb vdd vss
X0 vss a a b vb vdd vss amp
X1 ip c c d vb vdd vss amp
.ends
"""
CIRCUITS = {"biquad": BIQUAD, "delays": DELAYS, "crossed": CROSSED}


def design_of(name, constraints=None):
    request = LayoutRequest(netlist_text=CIRCUITS[name], technology="sky130A", constraints=constraints)
    technology = load("sky130A")
    circuit, _ = read_circuit(request, technology)
    return make_design(request, technology, circuit)[0]


@pytest.mark.parametrize("name", CIRCUITS)
def test_the_suggestion_for_every_instance_has_no_faults_and_as_a_file_gives_the_same_design(name):
    design = design_of(name)
    assert len(design.cells) == 1
    assert find_faults(design.whole, design.circuit) == []
    again = design_of(name, design.whole.to_json())
    assert again.constraints == design.constraints
    assert [cell.design.constraints for cell in again.cells] == [cell.design.constraints for cell in design.cells]


def test_a_net_mirrors_one_other_and_none_a_supply():
    design = design_of("biquad")
    partners = {}
    for one, other in (pair for group in design.whole.symmetry for pair in group.net_pairs):
        partners.setdefault(one, set()).add(other)
        partners.setdefault(other, set()).add(one)
    assert partners == {"bn": {"bp"}, "bp": {"bn"}, "ip": {"in"}, "in": {"ip"}, "op": {"on"}, "on": {"op"}}
    assert design_of("delays").whole.images == {"r1": "r2", "in": "ip", "p": "n", "op": "on"}


@pytest.mark.parametrize(("name", "pairs"), [("biquad", 2), ("delays", 2), ("crossed", 1)])
def test_a_cell_obeys_each_pair_of_nets_that_any_instance_has(name, pairs):
    """Not every instance shows all pairs: inputs may be supplies, or two nets of the cell one net outside."""
    (cell,) = design_of(name).cells
    found = [set(pair) for group in cell.design.constraints.symmetry for pair in group.net_pairs]
    assert len(found) == pairs
    assert all(pair in ({"ip", "in"}, {"op", "on"}) for pair in found)


def test_a_pair_of_nets_stated_by_two_groups_mirrors_one_way_only():
    stated = Constraints.from_json(
        {"symmetry": [{"pairs": [["M1", "M2"]], "net_pairs": [["a", "b"]]}, {"pairs": [], "net_pairs": [["b", "a"]]}]}
    )
    assert stated.images == {"b": "a"}


NETS = st.sampled_from(["a", "b", "c", "n", "vdd", "vss", "0", "sub!"])
DEVICES = ("M? {} {} {} vss nmos w=2u l=1u", "M? {} {} {} vdd pmos w=4u l=1u", "R? {} {} 2k", "R? {} vss ptap1")


@st.composite
def hierarchies(draw):
    """Return a netlist of three levels, with instances whose ports are shorted, unused, or on global nets."""
    text = ".global sub!\n"
    for level, inner in (("leaf", ""), ("cell", "leaf"), ("top", "cell")):
        calls = [f"X? {{}} {{}} {{}} vdd vss {inner}"] * 3 if inner else []
        cards = draw(st.lists(st.sampled_from([*DEVICES[:3], *DEVICES, *calls, *calls]), min_size=2, max_size=5))
        cards += calls[:2]
        lines = (card.replace("?", str(i)).format(*(draw(NETS) for _ in range(3))) for i, card in enumerate(cards))
        text += f".subckt {level} a b c vdd vss\n{chr(10).join(lines)}\n.ends\n"
    return text


def connected(device, names=None):
    """Return the nets of a device, in other names; ends that may be exchanged are in no order."""
    roles = device.kind.roles
    return sorted((roles[terminal], names[net] if names else net) for terminal, net in device.terminals.items())


@settings(max_examples=examples(60))
@given(hierarchies())
def test_any_hierarchy_is_shared_as_its_flat_circuit_is_connected(text):
    request = LayoutRequest(netlist_text=text, technology="sky130A")
    technology = load("sky130A")
    try:
        circuit, _ = read_circuit(request, technology)
    except LayoutkitError as error:  # a tap between supplies, bodies of NMOS on several nets
        assert error.code == "INVALID_PARAM"  # noqa: PT017 - both are answers
        return
    flat = {device.id: device for device in circuit.devices}
    hierarchy = find_repeated(circuit)
    inside = {shared.name: shared.circuit for shared in hierarchy.shared}
    for shared in hierarchy.shared:
        for use in shared.uses:
            for device in shared.circuit.devices:
                there = flat[use.devices[device.id]]
                assert connected(device, use.nets) == connected(there)
    for around, parts in [(circuit, hierarchy.parts), *((each.circuit, each.parts) for each in hierarchy.shared)]:
        for part in parts:
            for device in inside[part.shared].devices:
                there = around.device(part.devices[device.id])
                assert connected(device, part.nets) == connected(there)
    make_design(request, technology, circuit)


def test_a_symmetric_pair_inside_a_part_is_no_constraint_of_the_cell_around_it():
    """The cell around two equal amplifiers has no transistor of its own that could be in a pair."""
    amplifier = BIQUAD.partition(".subckt top")[0]
    pair = ".subckt pair ip in op on vb vdd vss\nX1 ip in x y vb vdd vss gm\nX2 x y op on vb vdd vss gm\n.ends\n"
    top = ".subckt top a b c d e f vb vdd vss\nX1 a b c d vb vdd vss pair\nX2 c d e f vb vdd vss pair\n.ends\n"
    request = LayoutRequest(netlist_text=amplifier + pair + top, technology="sky130A")
    technology = load("sky130A")
    inner, outer = make_design(request, technology, read_circuit(request, technology)[0])[0].cells
    assert [group.pairs for group in inner.design.constraints.symmetry] != []
    assert [group.pairs for group in outer.design.constraints.symmetry if group.pairs] == []
