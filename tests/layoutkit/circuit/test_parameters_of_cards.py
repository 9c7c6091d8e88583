"""Parameters of cards: each is understood, without effect on a layout, or left out with a warning; none is lost."""

import pytest

from layoutkit.circuit import ModelNames, map_circuit, read_netlist
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.errors import LayoutkitError, NetlistError
from layoutkit.technology import load

SKY = "sky130_fd_pr__"
MOS = f"X1 a b c vss {SKY}nfet_01v8 w=2 l=0.5"
MIM = f"X1 a b {SKY}cap_mim_m3_1 w=10 l=10"
PNP = f"Q1 vss vss a {SKY}pnp_05v5_W3p40L3p40"
POLY = "X1 a b vss ppolyf_u r_width=2u r_length=20u"
DIODE = f"X1 vss a {SKY}diode_pw2nd_05v5"
BARE = {MOS: {"m": 1, "nf": 1, "w": 2e-6}, MIM: {"m": 1}, PNP: {"m": 1}, POLY: {"m": 1, "l": 20e-6}, DIODE: {"m": 1}}

UNDERSTOOD = [
    *((MOS, f"{name}=4", {"nf": 4, "w": 2e-6}) for name in ("nf", "ng", "fingers")),
    *((MOS, f"{name}=4", {"m": 4}) for name in ("m", "mult", "multi", "multiplier")),
    *((MIM, f"{text}", {"m": 4}) for text in ("m=4", "mf=4", "MF=4 m=4", "MF=1 m=4", "mult=4")),
    *((PNP, text, {"m": 8}) for text in ("m=8", "NE=8", "NE=8 m=8", "area=8", "m=4 area=2")),
    *((PNP, text, {"m": 1, "w": 3.4e-6}) for text in ("we=3.4u le=3.4u", "ae=11.56p pe=13.6u", "a=11.56p")),
    (POLY, "par=2 m=3", {"m": 6}),
    (POLY, "s=3", {"m": 1, "l": 60e-6}),
    (POLY, "series=2 par=1", {"m": 1, "l": 40e-6}),
    *((DIODE, text, {"w": 1e-6, "l": 1e-6}) for text in ("area=1e12 pj=4e6", "a=1p p=4u", "w=1u l=1u", "area=1p")),
]
HARMLESS = {
    MOS: "ad=1 as=1 pd=1 ps=1 nrd=0.1 nrs=0.1 sa=0 sb=0 sd=0 sca=1 scb=1 scc=1 sa1=1 sw1=1 rgeomod=1 trnqsmod=0",
    MIM: "ic=0 temp=27 dtemp=1 trise=0 tc1=0 tc2=0",
    PNP: "off=0 temp=27 dtemp=0 ab=20p pb=20u ac=30p pc=30u",
    POLY: "trise=0 dtemp=0 tc1=1m mismatch=1 noisy=0 b=0 topography=normal",
    DIODE: "area=1p off=0 temp=27",
}
LEFT_OUT = [
    *((MOS, each) for each in ("delvto=0.1", "mulu0=0.9", "segments=4", "frob=3", "nr=2", "wf=1u")),
    *((MIM, each) for each in ("nx=4", "nf=2", "scale=2")),
    *((PNP, each) for each in ("nx=4", "frob=3", "nf=2")),
    *((POLY, each) for each in ("segments=4", "nf=4", "scale=2")),
    *((DIODE, each) for each in ("area=1p frob=3", "area=1p nf=2")),
]
REFUSED = [
    (MIM, "mf=1.5", "mf must be an integer"),
    (MIM, "mf=2 m=3", "state two numbers of units"),
    (PNP, "NE=8 m=2", "state two numbers of units"),
    (PNP, "area={nobody*2}", "parameter 'nobody' is not defined"),
    (PNP, "area={1/0}", "has no value"),
    (PNP, "we=9u le=3.4u", "states an emitter"),
    (PNP, "ae=20p pe=18u", "states an emitter"),
    (PNP, "area=1.5", "whole number"),
    (POLY, "par=nobody", "parameter 'nobody' is not defined"),
    (POLY, "s=-1", "must be positive"),
    (DIODE, "area=wrong", "parameter 'wrong' is not defined"),
]


def drawn(card, parameters):
    technology = load("gf180mcuD" if card == POLY else "sky130A")
    text = NetlistText(f".subckt t a b c vss\n{card} {parameters}\n.ends\n")
    mapped = map_circuit(read_netlist(text, names=ModelNames(technology)), technology)
    (device,) = mapped.devices
    return device.params, [text for text in mapped.warnings if "not understood" in text]


@pytest.mark.parametrize(("card", "parameters", "expected"), UNDERSTOOD)
def test_a_parameter_that_is_understood_is_in_the_device(card, parameters, expected):
    params, left_out = drawn(card, parameters)
    assert {name: params[name] for name in expected} == pytest.approx(expected)
    assert left_out == []


@pytest.mark.parametrize("card", HARMLESS)
def test_a_parameter_of_the_simulation_changes_nothing_and_is_not_mentioned(card):
    params, left_out = drawn(card, HARMLESS[card])
    assert {name: params[name] for name in BARE[card]} == pytest.approx(BARE[card])
    assert left_out == []


@pytest.mark.parametrize(("card", "parameters"), LEFT_OUT)
def test_a_parameter_that_is_not_understood_is_named_with_its_device(card, parameters):
    params, (warning,) = drawn(card, parameters)
    assert f"{parameters.split()[-1]} ({card.split()[0]})" in warning
    assert {name: params[name] for name in BARE[card]} == pytest.approx(BARE[card])


@pytest.mark.parametrize(("card", "parameters", "reason"), REFUSED)
def test_a_parameter_without_a_meaning_is_refused(card, parameters, reason):
    with pytest.raises(LayoutkitError, match=reason):
        drawn(card, parameters)


def read(text, technology="sky130A"):
    return read_netlist(NetlistText(text), names=ModelNames(load(technology)))


INVERTER = f"M1 {{out}} in vss vss {SKY}nfet_01v8 w=1 l=0.15\nM2 out in {{top}} vdd {SKY}pfet_01v8 w=2 l=0.15\n"


@pytest.mark.parametrize("source", ["V1 x out 0", "V1 x out", "V1 out x DC 0", "V1 x out DC=0", "V1 x out {zero}"])
def test_a_source_of_0_v_between_nets_of_the_circuit_is_a_wire(source):
    text = f".param zero=0\n.subckt t in out vdd vss\n{INVERTER.format(out='x', top='vdd')}{source}\n.ends"
    circuit = read(text)
    assert circuit.device("M1").terminals["d"] == "out"
    assert "x" not in circuit.nets
    assert circuit.ports == ("in", "out", "vdd", "vss")
    assert any("sources of 0 V join their nets" in text and "x is out" in text for text in circuit.warnings)


def test_an_ammeter_in_a_supply_leaves_the_name_of_the_port():
    circuit = read(f".subckt t in out vdd vss\n{INVERTER.format(out='out', top='vx')}V1 vdd vx 0\n.ends")
    assert circuit.device("M2").terminals["s"] == "vdd"


def test_ammeters_one_behind_the_other_are_one_wire_through_cells():
    cell = (
        f".subckt cell in out vp vn\nM1 x g vn vn {SKY}nfet_01v8 w=1 l=0.15\nM2 x g vq vq {SKY}pfet_01v8 w=2 l=0.15\n"
        "V1 x out 0\nV2 vp vq 0\nV3 in g 0\n.ends\n"
    )
    circuit = read(f"{cell}.subckt t in out vdd vss\nX1 in y ring vss cell\nV4 vdd ring 0\nV5 y out 0\n.ends")
    assert circuit.ports == ("in", "out", "vdd", "vss")
    assert set(circuit.nets) == {"in", "out", "vdd", "vss"}


@pytest.mark.parametrize("ohm", ["0", "1m", "{1e-3 + 1e12*code}"])
def test_an_ideal_resistor_without_resistance_is_a_wire(ohm):
    circuit = read(
        f".param code=0\n.subckt t in out vdd vss\n{INVERTER.format(out='x', top='vdd')}R1 x out {ohm}\n.ends"
    )
    assert circuit.device("M1").terminals["d"] == "out"
    assert [device.id for device in circuit.devices] == ["M1", "M2"]
    assert any("ideal resistors of 0.01 ohm" in text and "R1 (x is out)" in text for text in circuit.warnings)


def test_an_ideal_resistor_of_a_teraohm_is_an_open_and_smaller_ones_are_drawn():
    cards = "R1 out vss 1T\nR2 out vss {1e-3 + 1e12*code}\nR3 out vss 20m\nR4 out vss 0.9e12"
    circuit = read(f".param code=1\n.subckt t in out vdd vss\n{INVERTER.format(out='out', top='vdd')}{cards}\n.ends")
    assert [device.id for device in circuit.devices] == ["M1", "M2", "R3", "R4"]
    assert set(circuit.nets) == {"in", "out", "vdd", "vss"}
    assert any("left out" in text and "R1" in text and "R2" in text for text in circuit.warnings)


def test_a_resistor_without_resistance_joins_no_supply_and_ground():
    with pytest.raises(LayoutkitError, match="Resistors that are wires would join supply and ground"):
        read(f".subckt t in out vdd vss\n{INVERTER.format(out='out', top='vdd')}R1 vdd vss 0\n.ends")


@pytest.mark.parametrize("source", ["V1 x out 1", "V1 x out 0 ac 1", "V1 x out pulse(0 1 0)", "E1 x out a b 0"])
def test_another_source_is_no_wire(source):
    circuit = read(f".subckt t in out vdd vss\n{INVERTER.format(out='x', top='vdd')}{source}\n.ends")
    assert circuit.device("M1").terminals["d"] == "x"
    assert "x" in circuit.ports


def test_a_source_of_0_v_at_gates_alone_is_a_signal():
    flat = f"* deck\n{INVERTER.format(out='out', top='vdd')}Vin in vss 0\nVdd vdd 0 1.8\nVss vss 0 0\n"
    circuit = read(flat)
    assert circuit.device("M1").terminals["g"] == "in"
    assert "in" in circuit.ports


def test_sources_of_0_v_never_join_supply_and_ground():
    with pytest.raises(NetlistError, match="would join supply and ground: vdd and vss"):
        read(f".subckt t in out vdd vss\n{INVERTER.format(out='out', top='vdd')}V1 vdd vss 0\n.ends")


WRAPPED = ".subckt {name} d g s b w=1 l=1\n{content}\n.ends\n.subckt t a b vss\nX1 a b vss vss {name} w=3\n.ends\n"


@pytest.mark.parametrize("inner", [f"M1 d g s b {SKY}nfet_01v8_lvt w=w l=l", f"R1 d s {SKY}res_high_po_0p35 l=2"])
def test_a_subcircuit_with_the_name_of_a_device_that_holds_another_is_refused(inner):
    with pytest.raises(NetlistError, match=f"'{SKY}nfet_01v8' at line 1 has the name of a device of the process"):
        read(WRAPPED.format(name=f"{SKY}nfet_01v8", content=inner))


def test_the_cell_that_magic_generates_for_a_device_is_a_subcircuit_with_that_device():
    text = f".subckt {SKY}res_xhigh_po_0p35_NVJ5PF a b s\nX0 a b s {SKY}res_xhigh_po_0p35 l=7\nC0 b a 0.7f\n.ends\n"
    text += f".subckt t a c s\nX0 a b s {SKY}res_xhigh_po_0p35_NVJ5PF\nX1 b c s {SKY}res_xhigh_po_0p35_NVJ5PF\n.ends"
    circuit = read(text)
    resistors = [device for device in circuit.devices if device.type == "resistor"]
    assert [(device.id, device.model, device.params["l"]) for device in resistors] == [
        ("X0.X0", f"{SKY}res_xhigh_po_0p35", 7e-6),
        ("X1.X0", f"{SKY}res_xhigh_po_0p35", 7e-6),
    ]
    with pytest.raises(LayoutkitError, match="res_xhigh_po_0p35_NVJ5PF"):
        read(text.replace(f"{SKY}res_xhigh_po_0p35 l=7", f"{SKY}res_high_po_0p35 l=7"))


def test_a_subcircuit_that_describes_a_device_to_a_simulator_is_that_device():
    circuit = read(WRAPPED.format(name=f"{SKY}nfet_01v8", content="R1 d s 1k"))
    (device,) = circuit.devices
    assert (device.model, device.params["w"], device.params["l"]) == (f"{SKY}nfet_01v8", 3e-6, 1e-6)
    assert any("subcircuits with the name of a device" in text for text in circuit.warnings)


def test_a_file_that_a_flat_deck_includes_is_named_as_missing(tmp_path):
    deck = tmp_path / "deck.cir"
    flat = f"* deck\n{{}}\n{INVERTER.format(out='out', top='vdd')}"
    deck.write_text(flat.format(".include 'rest.cir'"))
    with pytest.raises(NetlistError, match=r"line 2: 'rest\.cir' is not read"):
        read_netlist(deck)
    deck.write_text(flat.format(".include 'models/kit.lib'"))
    assert len(read_netlist(deck).devices) == 2


def test_lengths_in_micrometres_are_told_only_where_the_process_has_metres():
    told = [
        read(f".subckt t a b c vss\nM1 a b c vss {model} w=2 l=0.5\n.ends").warnings
        for model in ("nmos", SKY + "nfet_01v8")
    ]
    assert any("micrometres" in text for text in told[0])
    assert not any("micrometres" in text for text in told[1])


def test_names_of_the_older_lvs_deck_of_gf180mcud_are_devices_of_the_process():
    for name in ("pmos_10p0_asym", "mim_single_2p0fF", "npolyf_u_body", "efuse"):
        assert ModelNames(load("gf180mcuD")).refuses(name), name
    names = load("gf180mcuD").device_names
    assert names.drawn("nmos_5p0").name == names.drawn("nmos_5p0_dw").name == "nfet_05v0"
    assert [names.in_deep_well(name) for name in ("nmos_5p0", "nmos_5p0_dw", "NP_6P0_DW", "dw")] == [
        False,
        True,
        True,
        False,
    ]


def test_ports_that_differ_in_case_alone_are_one_net_and_it_is_told():
    circuit = read(f".subckt t a A vdd vss\n{INVERTER.format(out='A', top='vdd').replace(' in ', ' a ')}.ends")
    assert circuit.ports == ("a", "vdd", "vss")
    assert any("ports listed twice are one port: t (a)" in text for text in circuit.warnings)
