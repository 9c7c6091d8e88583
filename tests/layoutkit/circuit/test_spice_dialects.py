"""One small netlist for each trap of a dialect: what is read is written out by hand beside it (S0.3)."""

import json
from dataclasses import replace

import pytest

from layoutkit.circuit import map_circuit, read_netlist
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.circuit.readers.spice_reader import read_spice
from layoutkit.errors import NetlistError


def sizes(circuit):
    return {d.id: (d.type, round(d.w * 1e9), round(d.l * 1e9), d.nf, d.m) for d in circuit.devices}


def wires(circuit):
    return {d.id: " ".join(d.terminals.values()) for d in circuit.devices}


def test_a_plain_subcircuit_keeps_names_ports_and_order(spice):
    circuit = spice("""
        .subckt inv in out vdd vss
        MP out in vdd vdd pmos w=2u l=180n
        MN out in vss vss nmos w=1u l=0.18u nf=2 m=3
        .ends inv
    """)
    assert (circuit.name, circuit.ports) == ("inv", ("in", "out", "vdd", "vss"))
    assert sizes(circuit) == {"MP": ("pmos", 2000, 180, 1, 1), "MN": ("nmos", 1000, 180, 2, 3)}
    assert wires(circuit) == {"MP": "out in vdd vdd", "MN": "out in vss vss"}


def test_comments_and_continuations_of_every_kind_are_understood(spice):
    circuit = spice("""
        * a title comment
        // a Spectre comment
        .subckt a in out vss  $ ports follow
        + vdd                 ; one more
        M1 out in ; the channel
        * a comment between continuations

        + vss vss nmos // the model
        + w=1u \\
          l=1u
        M2 out in vdd vdd pmos w=1u l=1u $ comment with = signs
        .ends
    """)
    assert circuit.ports == ("in", "out", "vss", "vdd")
    assert wires(circuit) == {"M1": "out in vss vss", "M2": "out in vdd vdd"}


def test_a_comment_behind_the_ports_of_a_subcircuit_is_no_port(spice):
    circuit = spice("""
        .SUBCKT a in out vss vdd *the amplifier
        M1 out in vss vss nmos w='2u *2' l=1u
        .ENDS
    """)
    assert circuit.ports == ("in", "out", "vss", "vdd")
    assert circuit.devices[0].params["w"] == 4e-6
    assert spice(".subckt b in out w0='3 *1u'\nM1 out in out out nmos w=w0 l=1u\n.ends").devices[0].params["w"] == 3e-6


def test_the_commented_top_of_xschem_is_the_circuit(spice):
    circuit = spice("""
        ** sch_path: somewhere.sch
        **.subckt amp in out vss
        *.ipin in
        X1 out in vss vss sky130_fd_pr__nfet_01v8 L=0.5 W=2 nf=2 mult=1 m=4 ad='int((nf+1)/2) * W/nf * 0.29'
        + as='int((nf+2)/2) * W/nf * 0.29' sa=0 sb=0
        X2 out vss bias
        **.ends
        .subckt bias a vss
        X3 a a vss vss sky130_fd_pr__nfet_01v8 L=0.5 W=1 nf=1 m=1
        .ends
        .end
    """)
    assert (circuit.name, circuit.ports) == ("amp", ("in", "out", "vss"))
    assert sizes(circuit) == {"X1": ("nmos", 2000, 500, 2, 4), "X2.X3": ("nmos", 1000, 500, 1, 1)}


def test_sizes_that_no_device_has_are_micrometres_and_it_is_told(spice):
    circuit = spice("""
        .subckt a d g s
        XM1 d g s s sky130_fd_pr__nfet_01v8 L=8 W=0.42
        M2 d g s s nmos L=8u W=0.42u
        M3 d g s s nmos L=99.9u W=999u
        M4 d g s s nmos L=8 W=0.42
        .ends
    """)
    assert sizes(circuit)["XM1"] == sizes(circuit)["M2"] == sizes(circuit)["M4"]
    assert sizes(circuit)["M3"] == ("nmos", 999000, 99900, 1, 1)
    told = [w for w in circuit.warnings if "micrometres" in w]
    assert len(told) == 1
    assert told[0].endswith(": M4")


@pytest.mark.parametrize(
    ("scale", "w", "um"),
    [
        ("", "1200u", 1200), ("", "9999u", 9999), ("", "1200um", 1200), ("", "1.2e-3", 1200), ("", "'4*wp'", 1200),
        ("", "1200", 1200), ("", "12e3", 12000), ("", "0.065", 0.065), ("", "650000u", 0.65),
        ("1u", "1200", 1200), ("1u", "0.42", 0.42), ("1u", "650000u", 0.65), ("1", "1200u", 1200),
    ],
)  # fmt: skip
def test_a_unit_keeps_its_meaning_however_large_the_number_is(spice, scale, w, um):
    """``650000u`` is how cells of sky130 state 0.65 um for a library with ``.option scale=1u``."""
    option = f".option scale={scale}\n" if scale else ""
    circuit = spice(f"{option}.param wp=300u\n.subckt a d g s\nM1 d g s s n w={w} l={w} pd={2 * um}u\n.ends")
    device = circuit.device("M1")
    assert (device.w, device.l) == pytest.approx((um * 1e-6, um * 1e-6))
    assert bool(circuit.warnings) is (w in {"1200", "12e3", "0.065", "650000u"} and scale != "1u")
    if not scale:
        assert device.junctions == pytest.approx({"pd": 2 * um * 1e-6})


def test_a_unit_beside_a_scale_that_makes_it_impossible_counts_alone_and_it_is_told(spice):
    for scale in (".option scale=1u", "*.SCALE MICRON"):
        circuit = spice(f"{scale}\n.subckt a d g s\nM1 d g s s n w=10u l=0.5\nM2 d g s s n w=2 l=0.5\n.ends")
        assert sizes(circuit) == {"M1": ("nmos", 10000, 500, 1, 1), "M2": ("nmos", 2000, 500, 1, 1)}
        assert circuit.warnings == (
            "w and l that the scale of the file makes impossibly small are read without it: M1",
        )


def test_a_size_in_millimetres_is_read_as_stated_and_it_is_told(spice):
    circuit = spice(".subckt a d g s\nM1 d g s s n w=1.2m l=1u\nM2 d g s s n w=0.5m l=1u\n.ends")
    assert [device.w for device in circuit.devices] == [1.2e-3, 5e-4]
    assert circuit.warnings == ("w and l of 1 mm and more are read as stated; u is micrometres: M1",)


def test_stated_junctions_are_kept_as_numbers_beside_the_sizes(spice):
    circuit = spice("""
        .subckt a d g s
        XM1 d g s s sky130_fd_pr__nfet_01v8 L=0.5 W=3 nf=3 ad='int((nf+1)/2) * W / nf * 0.29'
        + as={int((nf+2)/2)*W/nf*0.29} pd='2*int((nf+1)/2)*(W/nf+0.29)' ps=5.16 nrd='0.29 / W' m=2
        M2 d g s s nmos L=0.5u W=1u ad=0.29p as='unknown*2' pd=2.58u ps=-1u
        M3 d g s s nmos L=0.5u W=1u ad='0.29*W'
        M4 d g s s nmos L=0.5u W=1u
        .ends
    """)
    um2, um = 1e-12, 1e-6
    whole = {"ad": 0.58 * um2, "as": 0.58 * um2, "pd": 5.16 * um, "ps": 5.16 * um}
    assert circuit.device("XM1").junctions == pytest.approx(whole)
    assert circuit.device("M2").junctions == pytest.approx({"ad": 0.29 * um2, "pd": 2.58 * um})
    assert circuit.device("M3").junctions == circuit.device("M4").junctions == {}
    assert all(device.params.keys() == {"w", "l", "nf", "m"} for device in circuit.devices)
    [told] = [warning for warning in circuit.warnings if "not understood" in warning]
    assert told.endswith(": M2 as, M2 ps, M3 ad")
    assert read_netlist(NetlistText(json.dumps(circuit.to_json()))).devices == circuit.devices


def test_option_scale_and_cdl_scale_set_the_unit(spice):
    deck = ".subckt a d g s\nM1 d g s s nmos L=8 W=2\n.ends\n"
    for option in (".option scale=1e-6\n", ".options scale=1u\n", "*.SCALE MICRON\n"):
        circuit = spice(option + deck)
        assert sizes(circuit) == {"M1": ("nmos", 2000, 8000, 1, 1)}
        assert circuit.warnings == ()


@pytest.mark.parametrize("name", ["nf", "ng", "fingers", "nfing"])
def test_fingers_have_many_names(spice, name):
    assert sizes(spice(f".subckt a d g s\nM1 d g s s n w=1u l=1u {name}=4\n.ends"))["M1"] == ("nmos", 1000, 1000, 4, 1)


@pytest.mark.parametrize("name", ["m", "mult", "multi", "multiplier"])
def test_multipliers_have_many_names(spice, name):
    assert sizes(spice(f".subckt a d g s\nM1 d g s s p w=1u l=1u {name}=4\n.ends"))["M1"] == ("pmos", 1000, 1000, 1, 4)


def test_m_wins_over_mult_and_it_is_told(spice):
    circuit = spice(".subckt a d g s\nM1 d g s s p w=1u l=1u mult=3 m=4\n.ends")
    assert circuit.device("M1").m == 4
    assert any("differ" in warning for warning in circuit.warnings)


def test_rf_models_give_one_finger_and_their_number(spice):
    assert sizes(spice(".subckt a d g s\nX1 d g s s nmos_rf wr=2u lr=60n nr=8 m=1\n.ends"))["X1"] == (
        "nmos",
        16000,
        60,
        8,
        1,
    )


def test_parameters_flow_through_the_hierarchy(spice):
    circuit = spice("""
        .param wide=4u lmin=100n twice='2*wide'
        .subckt cell d g s w=1u k=1
        .param inner=3
        M1 d g s 0 nmos w='w*k' l=lmin nf=inner
        .ends
        .subckt top d g s
        .param w=7u
        X1 d g s cell
        X2 d g s cell w=twice k=2
        X3 d g s cell PARAMS: inner=5 w={w/7}
        M9 d g s 0 nmos w=nf*wide l = 2 * lmin nf=2
        .ends
    """)
    assert sizes(circuit) == {
        "X1.M1": ("nmos", 1000, 100, 3, 1),
        "X2.M1": ("nmos", 16000, 100, 3, 1),
        "X3.M1": ("nmos", 1000, 100, 5, 1),
        "M9": ("nmos", 8000, 200, 2, 1),
    }


def test_a_default_that_names_itself_is_the_value_outside(spice):
    circuit = spice("""
        .param w=3u
        .subckt cell a b vss w={w}
        M1 a b vss vss nmos w={w} l=1u
        .ends
    """)
    assert sizes(circuit)["M1"][1] == 3000
    with pytest.raises(NetlistError, match="depends on itself"):
        spice(".subckt cell a b vss w={w}\nM1 a b vss vss nmos w={w} l=1u\n.ends")


def test_an_undefined_cell_with_the_nodes_and_sizes_of_a_transistor_is_one(spice):
    circuit = spice("""
        .subckt inv in out vdd vss
        XP out in vdd vdd pel w=2u l=180n
        XN out in vss vss ne w=1u l=180n
        .ends
    """)
    assert {d.id: d.type for d in circuit.devices} == {"XP": "pmos", "XN": "nmos"}
    with pytest.raises(NetlistError, match="Undefined"):  # a cell like any other
        spice(".subckt a in out vdd vss\nX1 out in vdd vss ne\n.ends")


def test_an_instance_multiplier_reaches_every_device_in_it(spice):
    circuit = spice("""
        .subckt cell d g s
        M1 d g s s nmos w=1u l=1u m=2
        .ends
        .subckt top d g s
        X1 d g s cell m=3
        .ends
    """)
    assert circuit.device("X1.M1").m == 6


def test_hierarchy_is_flattened_under_instance_paths(spice):
    circuit = spice("""
        .subckt leaf a b
        M1 a b mid 0 nmos w=1u l=1u
        M2 mid b 0 0 nmos w=1u l=1u
        .ends
        .subckt branch a b
        X1 a x leaf
        X2 x b leaf
        .ends
        .subckt top p q
        XL p q branch
        XR q p branch
        .ends
    """)
    assert circuit.name == "top"
    assert wires(circuit) == {
        "XL.X1.M1": "p XL.x XL.X1.mid 0",
        "XL.X1.M2": "XL.X1.mid XL.x 0 0",
        "XL.X2.M1": "XL.x q XL.X2.mid 0",
        "XL.X2.M2": "XL.X2.mid q 0 0",
        "XR.X1.M1": "q XR.x XR.X1.mid 0",
        "XR.X1.M2": "XR.X1.mid XR.x 0 0",
        "XR.X2.M1": "XR.x p XR.X2.mid 0",
        "XR.X2.M2": "XR.X2.mid p 0 0",
    }


def test_ground_stays_0_and_becomes_a_port(spice):
    circuit = spice(".subckt a d g\nM1 d g 0 0 nmos w=1u l=1u\n.ends")
    assert circuit.ports == ("d", "g", "0")
    assert any("global" in warning for warning in circuit.warnings)


def test_a_port_named_0_is_a_port(spice):
    assert spice(".subckt a d g 0\nM1 d g 0 0 nmos w=1u l=1u\n.ends").ports == ("d", "g", "0")


def test_global_nets_are_one_net_on_every_level(spice):
    circuit = spice("""
        .global vdd
        .subckt leaf a
        M1 a a vdd vdd! pmos w=1u l=1u
        .ends
        .subckt top a
        X1 a leaf
        M2 a a VDD vdd! pmos w=1u l=1u
        .ends
    """)
    assert circuit.device("X1.M1").terminals["s"] == circuit.device("M2").terminals["s"] == "vdd"
    assert circuit.ports == ("a", "vdd", "vdd!")


def test_spice_ignores_case_and_keeps_the_first_spelling(spice):
    circuit = spice(".SUBCKT A D1 Out\nm1 d1 D1 out OUT NMOS W=1U L=1U\n.ENDS")
    assert wires(circuit) == {"m1": "D1 D1 Out Out"}
    assert set(circuit.nets) == {"D1", "Out"}


def test_bus_names_are_names(spice):
    circuit = spice("""
        .subckt a x2[19] o<1> v+ v-
        M<1> x2[19] o<1> v+ v- nmos w=1u l=1u
        .ends
    """)
    assert wires(circuit) == {"M<1>": "x2[19] o<1> v+ v-"}


def test_spectre_cards_and_topckt_are_read(netlist):
    path = netlist(
        """
        simulator lang=spectre
        parameters wu=1.5u
        subckt pair (a b \\
            c)
        M0 (a b c 0) nch_lvt l=120.0n w=2*wu multi=1 nf=2 ad=(2*wu*150n) pd=2.3u
        M1 (b A c 0) pch_hvt_mac l=(60n+60n) w=(2*wu) multi=2
        ends pair
        topckt chip x y z
        I5 (x y z) pair wu=1u
        R1 (x y z) rppolywo lr=3.6u wr=400n series=6
        R2 (x y) resistor r=1k
        C7 (x y z) cfmom nr=32 lr=2.7u w=70n
        V0 (x 0) vsource dc=1
        ends chip
        subckt spare x
        R9 (x x) resistor r=1
        ends
    """,
        "netlist.scs",
    )
    circuit = read_spice(path)
    assert circuit.name == "chip"
    assert sizes(replace(circuit, devices=circuit.devices[:2])) == {
        "I5.M0": ("nmos", 2000, 120, 2, 1),
        "I5.M1": ("pmos", 2000, 120, 1, 2),
    }
    assert circuit.device("I5.M0").junctions == pytest.approx({"ad": 3e-13, "pd": 2.3e-6})
    assert circuit.device("I5.M1").terminals == {"d": "y", "g": "I5.A", "s": "z", "b": "0"}, "Spectre tells A from a"
    assert [d.type for d in circuit.devices[2:]] == ["resistor", "resistor", "capacitor"]
    assert circuit.device("R1").terminals == {"p": "x", "n": "y", "b": "z"}
    assert circuit.device("R1").params["l"] == pytest.approx(3.6e-6)
    assert any("sources" in warning for warning in circuit.warnings)


def test_cdl_is_read(netlist):
    path = netlist(
        """
        *.GLOBAL gnd!
        *.PININFO a:I b:O
        .SUBCKT inv a b
        *.PININFO a:I b:O
        MM1 b a gnd! gnd! nch W=1u L=60n $X=10 $Y=20 $D=5
        RR1 a b 100 $[rppoly] $W=2u $L=10u $SUB=gnd!
        .ENDS
        .SUBCKT top p q
        XI1 p q / inv
        XI2 inv $PINS b=p a=q
        .ENDS
    """,
        "netlist.cdl",
    )
    circuit = read_spice(path)
    assert wires(circuit) == {
        "XI1.MM1": "q p gnd! gnd!",
        "XI1.RR1": "p q gnd!",
        "XI2.MM1": "p q gnd! gnd!",
        "XI2.RR1": "q p gnd!",
    }
    resistor = circuit.device("XI1.RR1")
    assert (resistor.model, resistor.params["r"], resistor.params["w"]) == ("rppoly", 100.0, 2e-6)


def test_plain_numbers_of_a_diode_are_its_area_and_perimeter(spice):
    circuit = spice("""
        .subckt a x y
        D1 x y diode_nd2ps_06v0 0.2052p 1.86u $m=1
        D2 x y diode_nd2ps_06v0 area=0.2052p pj=1.86u
        .ends
    """)
    first, second = circuit.devices
    assert (first.params["area"], first.params["perimeter"]) == pytest.approx((0.2052e-12, 1.86e-6))
    assert first.params == second.params


def test_passives_diodes_and_bipolars_are_typed(spice):
    circuit = spice("""
        .param rl=2k
        .model qq PNP
        .subckt a x y z
        R1 x y 1k
        R2 x y rl
        R3 x y rpoly r='rl*2' w=1u l=4u
        R4 x y z rpoly w=1u l=4u
        R5 x y {rl/2}
        C1 x y 1p
        C2 x y z mimcap c=2p
        L1 x y 1n
        D1 x y dio 2.0
        Q1 x y z qq
        Q2 x y z 0 npn_05v5
        XR x y z sky130_fd_pr__res_xhigh_po_1p41 L=111
        XC x y sky130_fd_pr__cap_mim_m3_2 W=30 L=30 m=6
        XG x y cap_mim_2f0_m4m5_noshield c_width=60u c_length=50u
        XQ x y z sky130_fd_pr__pnp_05v5_W0p68L0p68
        XD x y diode_nd2ps_03v3 area=1p
        XT x y ptap1
        .ends
    """)
    by_id = {d.id: d for d in circuit.devices}
    kinds = "resistor " * 5 + "capacitor capacitor inductor diode pnp npn resistor capacitor capacitor pnp diode tap"
    assert [d.type for d in circuit.devices] == kinds.split()
    assert [by_id[name].params["r"] for name in ("R1", "R2", "R3", "R5")] == [1e3, 2e3, 4e3, 1e3]
    assert by_id["C2"].params["c"] == 2e-12
    assert by_id["C2"].terminals["b"] == "z"
    assert (by_id["XC"].params["w"], by_id["XC"].params["m"]) == (30e-6, 6)
    assert (by_id["XG"].params["w"], by_id["XG"].params["l"]) == (60e-6, 50e-6)
    assert by_id["XR"].params["l"] == 111e-6


def test_a_defined_subcircuit_wins_over_a_name_that_sounds_like_a_device(spice):
    circuit = spice("""
        .subckt nfet2x d g s b
        .param p1=2
        MN0 d g n1 b nfet l=14n nfin=12 nf=p1
        MN1 n1 g s b nfet l=14n nfin=12 nf=p1
        .ends
        .subckt top d g s
        xI0 d g s s nfet2x p1=4
        .ends
    """)
    assert [(d.id, d.params["nfin"], d.nf) for d in circuit.devices] == [("xI0.MN0", 12, 4), ("xI0.MN1", 12, 4)]


def test_stack_and_fins_are_kept_for_the_device_map(spice):
    device = spice(".subckt a d g s\nM1 d g s s nmos l=150e-9 w=10.5e-7 nf=10 stack=3\n.ends").device("M1")
    assert device.params == {"l": 150e-9, "w": 1.05e-6, "nf": 10, "stack": 3, "m": 1}


def test_a_model_card_says_what_a_strange_name_is(spice):
    circuit = spice(".model fast nmos level=1\n.subckt a d g s\nM1 d g s s fast w=1u l=1u\n.ends")
    assert circuit.device("M1").type == "nmos"


def test_nested_definitions_are_seen_only_inside(spice):
    circuit = spice("""
        .subckt outer a b
        .subckt cell x
        M1 x x 0 0 nmos w=1u l=1u
        .ends cell
        X1 a cell
        X2 b cell
        .ends outer
    """)
    assert [d.id for d in circuit.devices] == ["X1.M1", "X2.M1"]


def test_a_flat_netlist_works_and_its_ports_are_told(spice):
    circuit = spice("""
        Common source stage
        Vdd vdd 0 1.8
        Vin in 0 sin(0 1 1k)
        M1 out in 0 0 nmos w=1u l=1u
        M2 out bias vdd vdd pmos w=1u l=1u
        .tran 1n 1u
        .end
    """)
    assert [d.id for d in circuit.devices] == ["M1", "M2"]
    assert circuit.name == "circuit"
    assert set(circuit.ports) == {"vdd", "0", "in", "bias", "out"}
    assert any("title" in warning for warning in circuit.warnings)


def test_a_first_line_that_reads_as_a_device_is_one(spice):
    assert len(spice("M1 a b 0 0 nmos w=1u l=1u\nM2 b a 0 0 nmos w=1u l=1u\n.end").devices) == 2


def test_a_testbench_gives_way_to_the_subcircuit_it_drives(spice):
    circuit = spice("""
        * bench
        .subckt dut in out
        M1 out in 0 0 nmos w=1u l=1u
        .ends
        X1 a b dut
        V1 a 0 1
        CL b 0 1p
        .control
        run
        plot v(b)
        .endc
        .end
    """)
    assert circuit.name == "dut"
    assert any("testbench" in warning for warning in circuit.warnings)


def test_the_top_is_the_subcircuit_nobody_instantiates_or_the_one_asked_for(spice):
    deck = """
        .subckt a x
        M1 x x 0 0 nmos w=1u l=1u
        .ends
        .subckt b x
        X1 x a
        .ends
    """
    assert spice(deck).name == "b"
    assert spice(deck, top="A").name == "a"
    with pytest.raises(NetlistError, match="'c' not found; the netlist defines a, b"):
        spice(deck, top="c")


def test_an_ambiguous_top_lists_the_candidates(spice):
    with pytest.raises(NetlistError, match="Ambiguous top: choose one of a, b") as caught:
        spice(".subckt b x\nR1 x x 1\n.ends\n.subckt a x\nR1 x x 1\n.ends")
    assert caught.value.details == {"candidates": ["a", "b"]}


def test_includes_in_the_same_folder_are_read(netlist, tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "inner.inc").write_text(".subckt inner a\nM1 a a 0 0 nmos w=wn l=1u\n.ends\n")
    (tmp_path / "corners.lib").write_text(".lib tt\n.param wn=2u\n.endl\n.lib ff\n.param wn=3u\n.endl\n")
    path = netlist("""
        .include 'lib/inner.inc'
        .lib "corners.lib" ff
        .subckt top a
        X1 a inner
        .ends
    """)
    assert read_spice(path).device("X1.M1").w == 3e-6


def test_a_model_library_elsewhere_is_not_read_and_told(spice):
    circuit = spice("""
        .lib /usr/share/pdk/models.lib.spice tt
        .include $PDK_ROOT/cells.spice
        .subckt top a
        M1 a a 0 0 nmos w=1u l=1u
        .ends
    """)
    assert any("models.lib.spice" in warning and "cells.spice" in warning for warning in circuit.warnings)


def test_names_that_meet_after_flattening_are_kept_apart(spice):
    circuit = spice("""
        .subckt leaf a
        M1 a n 0 0 nmos w=1u l=1u
        .ends
        .subckt top a
        M2 a X1.n 0 0 nmos w=1u l=1u
        X1 a leaf
        .ends
    """)
    assert circuit.device("M2").terminals["g"] != circuit.device("X1.M1").terminals["g"]


@pytest.mark.parametrize(
    ("card", "reason"),
    [
        ("M1 d g s nmos w=1u l=1u", "has 3 nodes; a MOS transistor needs drain, gate, source and bulk"),
        ("M1 d g s s zzz w=1u l=1u", "it is unknown whether model 'zzz' is nmos or pmos"),
        ("M1 d g s s nmos w=-1u l=1u", "w must be positive"),
        ("M1 d g s s nmos w=1u l=1u nf=1.5", "nf must be an integer"),
        ("M1 d g s s nmos w=1u l=1u m=0", "m must be positive"),
        ("M1 d g s s nmos w=1u w=2u l=1u", "'w' is given twice"),
        ("M1 d g s s nmos w= l=1u l='1u", "is never closed"),
        ("R1 d", "has 1 nodes"),
        ("R1 d g s b e f", "not understood"),
        ("J1 d g s jfet", "cards of type 'J' are not supported"),
        ("X1 d g nmos", "has 2 nodes; it needs d g s b"),
        ("X1 d g inner", "connects 2 nodes to 'inner', which has 1 ports"),
        ("Q1 d g s zzz", "it is unknown whether model 'zzz' is npn or pnp"),
        (".if (a==1)", "chooses devices by condition"),
        (".connect d g", "joins nets"),
        ("M1 d g s s nmos w=1u l=1u\nM1 d g s s nmos w=1u l=1u", "the name 'M1' is used twice"),
        (".param a=b b=a\nM1 d g s s nmos w=a l=1u", "depends on itself"),
        (".include ../../etc/passwd", "would be incomplete"),
    ],
)
def test_a_faulty_card_is_told_with_its_line(spice, card, reason):
    deck = f".subckt inner x\nR1 x x 1\n.ends\n.subckt a d g s\nM0 d g s s nmos w=1u l=1u\n{card}\n.ends"
    with pytest.raises(NetlistError, match=r"Invalid netlist: line [4678]: ") as caught:
        spice(deck, top="a")
    assert reason in str(caught.value)
    assert caught.value.code == "INVALID_PARAM"


OPEN = """
    .param l0=0.5u
    .subckt inv a y vdd vss wn=1u
    M1 y a vss vss nmos w=wn l=l0
    M2 y a vdd vdd pmos w='2*wp+dw' l=l1 nf=n0 sa='zz*2'
    .ends
    .subckt top a y vdd vss wt=2u
    X1 a b vdd vss inv wn='w0*2'
    X2 b y vdd vss inv wn=wt m=mm
    .ends
"""
ALL_OPEN = {"w0": "1u", "wp": 2e-6, "dw": 0, "l1": "l0*2", "n0": 2, "mm": 3}


def test_all_open_parameters_are_named_at_once_with_who_uses_them(spice):
    with pytest.raises(NetlistError) as caught:
        spice(OPEN)
    assert caught.value.details["missing_parameters"] == list(ALL_OPEN)
    for text in ("'w0' is not defined (used by X1.M1 at line", "'mm' is not defined (used by X2 at line", '"dw": ...'):
        assert text in str(caught.value)


def test_a_hundred_open_parameters_are_all_in_the_details(spice):
    cards = "".join(f"M{i} d d d d nmos w=w{i} l=1u\n" for i in range(100))
    with pytest.raises(NetlistError) as caught:
        spice(f".subckt a d\n{cards}.ends\n")
    assert caught.value.details["missing_parameters"] == [f"w{i}" for i in range(100)]
    assert "'w19' is not defined" in str(caught.value)
    assert "and 80 more" in str(caught.value)


def test_an_expression_that_doubles_an_open_parameter_again_and_again_is_refused_soon(spice):
    chain = "\n".join(f".param p{i}='p{i - 1}+p{i - 1}'" for i in range(1, 31))
    with pytest.raises(NetlistError, match="'p0' is not defined"):
        spice(f".subckt a d\n{chain}\nM1 d d d d nmos w=p30 l=1u\n.ends\n")


def test_given_parameters_reach_every_level(spice):
    circuit = spice(OPEN, parameters=ALL_OPEN)
    sizes = {d.id: (d.w, d.l, d.nf, d.m) for d in circuit.devices}
    # wn of X1 is 2 * w0; of X2 wt, the top's own default
    assert sizes["X1.M1"] == (pytest.approx(2e-6), 0.5e-6, 1, 1)
    assert sizes["X1.M2"] == (pytest.approx(4e-6), pytest.approx(1e-6), 2, 1)
    assert sizes["X2.M1"] == (pytest.approx(2e-6), 0.5e-6, 1, 3)


def test_given_parameters_win_over_the_files_own_but_not_over_instances(spice):
    circuit = spice(OPEN, parameters={**ALL_OPEN, "L0": "0.7u", "wt": "7u"})
    assert circuit.device("X1.M1").w == pytest.approx(2e-6)
    assert circuit.device("X2.M1").w == pytest.approx(7e-6)
    assert circuit.device("X2.M1").l == pytest.approx(0.7e-6)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"wtt": "1u"}, "uses no parameter 'wtt' (did you mean 'wt'?)"),
        ({"wn": "1u"}, "uses no parameter 'wn'; subcircuit 'inv' has its own, which its instances set"),
        ({"zz": 1}, "uses no parameter 'zz'"),
        ({"wt": "1u*"}, "'wt': expression '1u*' ends too early"),
        ({"wt": "wt+1"}, "parameter 'wt' depends on itself"),
        ({"wt": "1u", "WT": "2u"}, "'WT' is given twice"),
        ({"wt": ""}, "'wt' must be a number or an expression"),
    ],
)
def test_a_given_parameter_that_is_not_used_or_has_no_value_is_refused(spice, given, reason):
    with pytest.raises(NetlistError) as caught:
        spice(OPEN, parameters={**ALL_OPEN, **given})
    assert reason in str(caught.value)


def test_a_given_parameter_is_refused_for_a_json_netlist(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"name": "a", "devices": []}')
    with pytest.raises(NetlistError, match="a JSON netlist has no parameters: w0"):
        read_netlist(path, parameters={"w0": "1u"})


TAPS = """
    .subckt a in out vdd vss
    M1 out in vss sub! sg13_lv_nmos w=1u l=1u
    M2 out in vdd well sg13_lv_pmos w=1u l=1u
    {}
    {}
    .ends
"""


@pytest.mark.parametrize(
    ("p", "n", "drawn"),
    [
        ("R1 vss sub! ptap1 A=24.01p Perim=19.6u", "R2 vdd well ntap1 r=262.8", {"R1": "vss vss"}),
        (
            "XR1 sub! vss ptap1 A=24.01p",
            "XR2 well vdd ntap1 w=0.78u l=0.78u",
            {"XR1": "vss vss", "XR2": "vdd vdd"},
        ),
        (
            "XR1 vss sub! / ptap1 r=22.472 A=24.01p Perim=19.6u w=4.9u l=4.9u",
            "R2 vdd well 262.8 $[ntap1] m=1",
            {"XR1": "vss vss"},
        ),
        ("R1 vss sub! 22.4 ptap1 A='2*12.005p'", "R2 well vdd ntap1 A=0.3p P=4u", {"R1": "vss vss"}),
    ],
)
def test_a_tap_on_any_card_ties_its_nets_and_is_drawn_where_its_size_can_be(spice, p, n, drawn):
    from layoutkit import technology

    read = spice(TAPS.format(p, n))
    assert [d.type for d in read.devices] == ["nmos", "pmos", "tap", "tap"]
    assert read.devices[2].params.get("area", 24.01e-12) == pytest.approx(24.01e-12)
    mapped = map_circuit(read, technology.load("sg13g2"))
    assert wires(mapped) == {"M1": "out in vss vss", "M2": "out in vdd vdd", **drawn}
    assert {round(each.w * each.l * 1e12, 2) for each in mapped.devices if each.model == "ptap1"} == {24.01}
    assert mapped.ports == ("in", "out", "vdd", "vss")
    told = "; ".join(mapped.warnings)
    assert "port sub! is vss" in told
    assert "well is vdd" in told
    assert ("are not devices of the layout: " in told) == (len(drawn) < 2)


def test_taps_in_a_chain_make_one_net_of_the_first_port(spice):
    from layoutkit.circuit import join_taps

    cards = "".join(f"R{i} n{i} n{i + 1} ptap1\n" for i in range(400))
    ports = "R1000 vss n7 ptap1\nR1001 gnd2 n9 ptap1\n"
    circuit = join_taps(spice(f".subckt a d g vss gnd2\nM1 d g n0 n400 nmos w=1u l=1u\n{cards}{ports}.ends\n"))
    assert wires(circuit) == {"M1": "d g vss vss"}
    assert circuit.ports == ("d", "g", "vss")


def test_a_tap_between_supply_and_ground_is_refused(spice):
    from layoutkit.circuit import join_taps

    with pytest.raises(NetlistError, match="Taps would join supply and ground: sub! and vdd and vss"):
        join_taps(spice(TAPS.format("R1 vss sub! ptap1", "R2 vdd sub! ntap1")))


def test_all_faults_are_told_at_once(spice):
    with pytest.raises(NetlistError) as caught:
        spice(".subckt a d\nM1 d d nmos\nJ1 d d d x\nM2 d d d d zzz\n.ends")
    assert [fault.split(":")[0] for fault in caught.value.details["faults"]] == ["line 2", "line 3", "line 4"]


def test_undefined_subcircuits_are_all_named(spice):
    with pytest.raises(
        NetlistError, match=r"Undefined subcircuits: 'buf' \(used by X3\); 'sky130_fd_sc_hd__inv_1'"
    ) as e:
        spice("""
            .lib /somewhere/cells.lib
            .subckt a d
            X1 d d d d sky130_fd_sc_hd__inv_1
            X2 d d d d sky130_fd_sc_hd__inv_1
            X3 d d buf
            .ends
        """)
    assert e.value.details["undefined"] == {"buf": ["X3"], "sky130_fd_sc_hd__inv_1": ["X1", "X2"]}
    assert "/somewhere/cells.lib" in str(e.value)


@pytest.mark.parametrize("bad", ["M1 d d nmos", "R1 d d r='1+"])
def test_undefined_and_empty_subcircuits_are_named_beside_faulty_lines(spice, bad):
    with pytest.raises(NetlistError, match=r"line 4: .*Undefined subcircuits: 'buf'.*Empty subcircuits.*'box'") as e:
        spice(f".subckt box a\n.ends\n.subckt a d\n{bad}\nX1 d d buf\nX2 d box\n.ends\n")
    assert e.value.details.keys() >= {"faults", "undefined", "empty"}


def test_a_subcircuit_defined_twice_is_an_error_unless_alike(spice):
    one = ".subckt a d\nR1 d d 1\n.ends\n"
    assert len(spice(one + one).devices) == 1
    with pytest.raises(NetlistError, match="line 4: subcircuit 'a' is defined differently at line 1"):
        spice(one + one.replace("R1 d d 1", "R1 d d 2"))


@pytest.mark.parametrize(
    ("card", "kind"),
    [
        ("D1 a b cell area=1p pj=4u", "diode"),
        ("R1 a b cell w=1u l=5u", "resistor"),
        ("C1 a b cell w=5u l=5u", "capacitor"),
        ("M1 a b a b cell w=1u l=1u", "nmos"),
        ("Q1 a b b cell", "npn"),
    ],
)
def test_a_model_may_have_the_name_of_its_own_subcircuit(spice, card, kind):
    model = f".model cell {kind}\n" if kind in {"nmos", "npn"} else ""
    circuit = spice(f"{model}.subckt cell a b\n{card}\n.ends\n")
    assert [(device.type, device.model) for device in circuit.devices] == [(kind, "cell")]
    other = spice(f"{model}.subckt cell a b\n{card}\n.ends\n.subckt top a b\n{card}\nX1 a b cell\n.ends\n", top="top")
    assert [(device.id, device.type) for device in other.devices] == [(card[:2], kind), (f"X1.{card[:2]}", kind)]
