"""Two nets with equal devices in the netlist get equal capacitance, whatever dummies and plates are drawn."""

import pytest

from layoutkit.circuit import read_netlist
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.net_wishes import net_loads

DEGENERATED = """* a pair with a resistor between its sources and a capacitor between its drains
.subckt top inp inn op on vb vbp vdd vss
M1 on inp s1 vss nfet_01v8 W=3u L=5u nf=3
M2 op inn s2 vss nfet_01v8 W=3u L=5u nf=3
R1 s1 s2 5k
M3 s1 vb vss vss nfet_01v8 W=5.56u L=2u
M4 s2 vb vss vss nfet_01v8 W=5.56u L=2u
M5 on vbp vdd vdd pfet_01v8 W=15u L=0.3u nf=3
M6 op vbp vdd vdd pfet_01v8 W=15u L=0.3u nf=3
C1 on op 100f
.ends
"""


def loads_of(tmp_path, cards):
    path = tmp_path / "c.sp"
    path.write_text(f".subckt top a b c vdd vss\n{cards}\n.ends\n")
    return net_loads(read_netlist(path))


@pytest.mark.parametrize(
    ("cards", "equal"),
    [
        ("M1 a c vss vss nmos W=2u L=1u\nM2 b c vss vss nmos W=1u L=1u m=2", True),  # 2 um in all
        ("M1 a c vss vss nmos W=2u L=1u\nM2 vss c b vss nmos W=2u L=1u", True),  # source and drain are drawn alike
        ("M1 a c vss vss nmos W=2u L=1u\nM2 b c vss vss nmos W=2.01u L=1u", False),
        ("M1 vss a vss vss nmos W=2u L=1u\nM2 vss b vss vss nmos W=2u L=1.01u", False),
        ("M1 a a vss vss nmos W=2u L=1u\nM2 b a vss vss nmos W=2u L=1u", False),  # the gates of a mirror
        ("M1 a c vss vss nmos W=2u L=1u\nM2 b c vdd vdd pmos W=2u L=1u", False),
        ("R1 a c resistor W=1u L=5u\nR2 c b resistor W=1u L=5u\nC1 a b capacitor W=5u L=5u", True),
        ("R1 a c resistor W=1u L=5u\nR2 c b resistor W=1u L=6u", False),
        ("C1 a c capacitor W=5u L=5u\nC2 b c capacitor W=5u L=5u m=2", False),
    ],
)
def test_devices_on_two_nets_are_compared_in_the_netlist(tmp_path, cards, equal):
    loads = loads_of(tmp_path, cards)
    assert (loads["a"] == loads["b"]) == equal


def test_outputs_with_equal_devices_get_equal_capacitance_beside_a_dummy_and_a_capacitor_between_them(tmp_path):
    """The plates of the capacitor differ in size, and a dummy lies beside one transistor only."""
    request = LayoutRequest(
        netlist_text=DEGENERATED, technology="sky130A", workspace=str(tmp_path / "ws"), last_stage="route"
    )
    report = build_layout(request)
    (outputs,) = (each for each in report["routing"]["mirrored"] if each["nets"] == ["on", "op"])
    assert "different devices" not in outputs.get("reason", "")
    low, high = sorted(outputs["total_ff"])
    assert low > 0.98 * high
