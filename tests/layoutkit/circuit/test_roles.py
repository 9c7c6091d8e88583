"""All roles of a circuit, and the cut of its groups into modules."""

from layoutkit.circuit import find_roles, read_netlist

OTA = """
.subckt ota inp inn out ib vdd vss
M1 a inp t vss nch w=4u l=1u
M2 out inn t vss nch w=4u l=1u
M3 a a vdd vdd pch w=2u l=1u
M4 out a vdd vdd pch w=2u l=1u
M5 t ib vss vss nch w=4u l=1u
M6 ib ib vss vss nch w=2u l=1u
.ends
"""

FACING = """
.subckt ota inp inn out bias vdd vss
M0 bias bias vss vss nch w=4u l=1u
M1 t bias vss vss nch w=4u l=1u
M2 a inp t vss nch w=8u l=1u
M3 b inn t vss nch w=8u l=1u
M4 a a vdd vdd pch w=4u l=1u
M5 c a vdd vdd pch w=8u l=1u
M6 b b vdd vdd pch w=4u l=1u
M7 out b vdd vdd pch w=8u l=1u
M8 c c vss vss nch w=4u l=1u
M9 out c vss vss nch w=4u l=1u
.ends
"""

SELF_BIASED = """
.subckt reference vdd vss out
M1 a a vss vss nch w=1u l=2u m=2
M2 b a s vss nch w=1u l=2u m=8
M5 out a vss vss nch w=1u l=2u m=2
R1 s vss 10k
M3 a b vdd vdd pch w=2u l=2u m=2
M4 b b vdd vdd pch w=2u l=2u m=2
.ends
"""


def circuit_of(tmp_path, text):
    path = tmp_path / "netlist.sp"
    path.write_text(text)
    return read_netlist(str(path))


def test_roles_are_found_once_for_a_circuit(tmp_path):
    circuit = circuit_of(tmp_path, OTA)
    roles = find_roles(circuit)
    assert find_roles(circuit) is roles
    assert circuit.modules == roles.groups
    assert roles.supplies.power == ("vdd",)


def test_no_device_is_in_two_modules_and_every_overlap_is_explained(tmp_path):
    """The diodes that load a pair are the references of two mirrors, which are drawn."""
    roles = find_roles(circuit_of(tmp_path, FACING))
    groups = {(group.type, group.devices) for group in roles.groups}
    loads = {frozenset(devices) for kind, devices in groups if kind == "load_pair"}
    assert frozenset(("M4", "M6")) in loads
    assert {("current_mirror", ("M4", "M5")), ("current_mirror", ("M6", "M7"))} <= groups
    drawn = [name for module in roles.modules for name in module.devices]
    assert len(drawn) == len(set(drawn))
    loads = next(group for group in roles.groups if group.type == "load_pair")
    assert loads not in roles.modules
    assert any(loads.id in line for line in roles.cut)


def test_all_outputs_of_one_reference_are_one_group(tmp_path):
    """A self-biased reference: M2 has a resistor below its source, M5 none; all three have one gate."""
    roles = find_roles(circuit_of(tmp_path, SELF_BIASED))
    groups = {group.devices: group.properties for group in roles.groups if group.type == "current_mirror"}
    assert set(groups) == {("M1", "M5", "M2"), ("M4", "M3")}
    assert groups["M1", "M5", "M2"]["topology"] == "self_biased"
    assert groups["M1", "M5", "M2"]["ratios"] == {"M5": 1.0, "M2": 4.0}
    assert {module.devices for module in roles.modules} == set(groups)
