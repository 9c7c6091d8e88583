"""All roles of a circuit, and the cut of its groups into modules."""

from layoutkit.circuit import RecognisedModule, find_roles, read_netlist
from layoutkit.circuit.roles import cut_groups

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


def test_no_device_is_in_two_modules_and_every_overlap_is_explained():
    mirror = RecognisedModule("current_mirror_1", "current_mirror", ("M1", "M2"))
    loads = RecognisedModule("load_pair_1", "load_pair", ("M2", "M3"))
    modules, cut = cut_groups([mirror, loads])
    assert modules == (mirror,)
    assert len(cut) == 1
    assert "load_pair_1" in cut[0]
    assert "current_mirror_1" in cut[0]
