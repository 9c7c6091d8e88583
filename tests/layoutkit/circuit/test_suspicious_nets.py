"""What a netlist's author should look at: legal, read as it stands, and yet often a mistake."""

import pytest

from layoutkit.circuit import read_netlist

STAGE = """.subckt stage in out bias vdd vss
M1 out in vss vss nmos w=2u l=1u
M2 out bias vdd vdd pmos w=4u l=1u
M3 bias bias vdd vdd pmos w=4u l=1u
.ends
"""


@pytest.fixture
def warnings(tmp_path):
    def read(text):
        path = tmp_path / "stage.sp"
        path.write_text(text)
        return list(read_netlist(path).warnings)

    return read


def test_a_sound_netlist_has_no_suspicious_nets(warnings):
    assert warnings(STAGE) == []


def test_a_misspelt_net_is_told_with_the_terminals_on_it(warnings):
    (told,) = warnings(STAGE.replace("M2 out bias", "M2 out bais"))
    assert told.endswith(": bais (M2.g)")


def test_gates_and_bulks_alone_drive_nothing(warnings):
    (told,) = warnings(STAGE.replace("vdd pmos", "vddd pmos"))
    assert told.endswith(": vddd (M2.b M3.b)")


def test_a_supply_without_a_port_is_told(warnings):
    (told,) = warnings(STAGE.replace(" vdd vss\nM1", " vdd\nM1"))
    assert told.startswith("supplies that are not ports")
    assert told.endswith(": vss")


def test_a_fragment_without_ports_is_left_alone(warnings):
    assert warnings(STAGE.replace("stage in out bias vdd vss", "stage")) == []


@pytest.mark.parametrize(("card", "net"), [("M1 out in vss vdd nmos", "vdd"), ("M2 out bias vdd vss pmos", "vss")])
def test_a_body_on_the_opposite_supply_is_told_with_its_net(warnings, card, net):
    lines = [card + line[line.index(" w=") :] if line.startswith(card[:3]) else line for line in STAGE.splitlines()]
    (told,) = warnings("\n".join(lines) + "\n")
    assert "body" in told
    assert told.endswith(f": {card[:2]} ({net})")
