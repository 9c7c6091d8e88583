"""SPICE in the form of each process: the cards of its own library and of the foundry's LVS deck, and back again.

The expected cards were written by hand from the subcircuits of the PDKs' libraries and the readers of their decks.
"""

import re
import shutil
import subprocess
from dataclasses import replace

import klayout.db as kdb
import pytest

from layoutkit.circuit import Circuit, Device, ModelNames, map_circuit, read_netlist, write_spice
from layoutkit.circuit.orientation import oriented
from layoutkit.errors import NetlistError
from layoutkit.lvs.reference import reference_of
from layoutkit.technology import load

SKY = "sky130_fd_pr__"
# Every device of a process: its cards for the SIZES below, first those of the library, then those of the deck.
CARDS = {
    "sky130A": {
        name: (
            [f"XM1 d g s b {SKY}{name} w=4.2 l=1.95 nf=2 m=3"],
            [f"M1 d g s b {SKY}{name} w=4.2u l=1.95u nf=2 m=3"],
        )
        for name in (
            "nfet_01v8", "pfet_01v8", "nfet_01v8_lvt", "pfet_01v8_lvt", "pfet_01v8_hvt", "nfet_g5v0d10v5",
            "pfet_g5v0d10v5", "nfet_05v0_nvt", "nfet_03v3_nvt", "pfet_01v8_mvt", "esd_nfet_01v8", "esd_nfet_g5v0d10v5",
            "esd_pfet_g5v0d10v5",
        )
    }
    | {
        name: (
            [f"XM1_{unit} d g s b {SKY}{name} w=20 l=1.95" for unit in (1, 2, 3)],
            [f"M1 d g s b {SKY}{name} w=20u l=1.95u nf=2 m=3"],
        )
        for name in ("nfet_g5v0d16v0", "pfet_g5v0d16v0")
    }
    | {
        "res_generic_po": (
            [f"XR1 p n {SKY}res_generic_po w=1.41 l=20.5 m=2"],
            [f"R1 p n {SKY}res_generic_po w=2.82u l=20.5u"],
        ),
        **{
            f"res_generic_{silicon}": (
                [f"XR1 p n b {SKY}res_generic_{silicon} w=1.41 l=20.5 m=2"],
                [f"R1 p n b {SKY}res_generic_{silicon.replace('__', '_')} w=1.41u l=20.5u m=2"],
            )
            for silicon in ("nd", "pd", "nd__hv", "pd__hv")
        },
        **{
            f"res_generic_{metal}": (
                [f"R1 p n {SKY}res_generic_{metal} w=1.41 l=20.5 m=2"],
                [f"R1 p n {SKY}res_generic_{metal} w=2.82u l=20.5u"],
            )
            for metal in ("l1", "m1", "m2", "m3", "m4", "m5")
        },
        "res_iso_pw": (
            [f"XR1 p n b {SKY}res_iso_pw w=1.41 l=20.5 m=2"],
            [f"R1 p n b {SKY}res_iso_pw w=1.41u l=20.5u m=2"],
        ),
        "res_high_po": (
            [f"XR1 p n b {SKY}res_high_po_1p41 l=20.5 m=2"],
            [f"R1 p n b {SKY}res_high_po_1p41 w=1.41u l=20.5u m=2"],
        ),
        "res_xhigh_po": (
            [f"XR1_1 p n b {SKY}res_xhigh_po_1p41 l=20.5", f"XR1_2 p n b {SKY}res_xhigh_po_1p41 l=20.5"],
            [f"R1 p n b {SKY}res_xhigh_po_1p41 w=1.41u l=20.5u m=2"],
        ),
        "cap_mim_m3_1": (
            [f"XC1 p n {SKY}cap_mim_m3_1 w=12 l=7.5 m=2"],
            [f"C1 p n {SKY}model__cap_mim w=12u l=7.5u m=2 a=180p p=78u"],
        ),
        "cap_mim_m3_2": (
            [f"XC1 p n {SKY}cap_mim_m3_2 w=12 l=7.5 m=2"],
            [f"C1 p n {SKY}model__cap_mim_m4 w=12u l=7.5u m=2 a=180p p=78u"],
        ),
    }
    | {
        name: ([f"XQ1 c b e s {SKY}{name} m=3"], [f"Q1 c b e s {SKY}{name} NE=3 m=3"])
        for name in ("npn_05v5_W1p00L1p00", "npn_05v5_W1p00L2p00", "npn_11v0_W1p00L1p00")
    }
    | {
        name: (
            [f"XC1 p n b {SKY}{name} w=6 l=2 vm=3"],
            [f"C1 p n b {SKY}{name} w=6u l=2u m=3 A=36p P=48u"],
        )
        for name in ("cap_var_lvt", "cap_var_hvt")
    }
    | {
        name: ([f"D1 p n {SKY}{name} area=3e12 pj=8e6 m=2"], [f"D1 {nodes} {SKY}{name} A=6p P=16u"])
        for name, nodes in {
            "diode_pw2nd_05v5": "p n",
            "diode_pw2nd_05v5_lvt": "n p",  # the deck has the ends of these three exchanged
            "diode_pw2nd_05v5_nvt": "n p",
            "diode_pw2nd_11v0": "n p",
            "diode_pd2nw_05v5": "p n",
            "diode_pd2nw_05v5_lvt": "p n",
            "diode_pd2nw_05v5_hvt": "p n",
            "diode_pd2nw_11v0": "p n",
        }.items()
    }
    | {
        name: ([f"XQ1 c b e {SKY}{name} m=2"], [f"Q1 c b e {SKY}{name} NE=2 m=2"])
        for name in ("pnp_05v5_W0p68L0p68", "pnp_05v5_W3p40L3p40")
    },
    "gf180mcuD": {
        name: ([f"D1 p n {name} area=3p pj=8u m=2"], [f"D1 p n {name} A=3p P=8u m=2"])
        for name in (
            *("diode_nd2ps_03v3", "diode_nd2ps_06v0", "diode_pd2nw_03v3", "diode_pd2nw_06v0"),
            *("diode_nw2ps_03v3", "diode_nw2ps_06v0", "diode_dw2ps_06v0", "diode_pw2dw_06v0"),
            "sc_diode",
        )
    }
    | {  # the SPICE library has one model for both oxides of a deep well
        f"{name}_03v3": ([f"D1 p n {name} area=3p pj=8u m=2"], [f"D1 p n {name}_03v3 A=3p P=8u m=2"])
        for name in ("diode_dw2ps", "diode_pw2dw")
    }
    | {
        name: ([f"XM1 d g s b {name} w=4.2u l=1.95u nf=2 m=3"], [f"M1 d g s b {name} w=4.2u l=1.95u nf=2 m=3"])
        for name in (*(f"{n}fet_{volts}" for n in "np" for volts in ("03v3", "05v0", "06v0")), "nfet_06v0_nvt")
    }
    | {
        f"{n}fet_{volts}_dss": (
            [f"XM1 d g s b {n}fet_{volts}_dss w=50u l={length} nf=2 s_sab={source} d_sab={drain} m=3"],
            [f"M1 d g s b {n}fet_{volts}_dss w=50u l={length} nf=2 m=3"],
        )
        for n, volts, length, source, drain in (
            *((n, "03v3", "0.5u", "0.48u", "1.78u") for n in "np"),
            *(("n", volts, "1.95u", "0.28u", "3.78u") for volts in ("05v0", "06v0")),
            *(("p", volts, "1.95u", "0.28u", "2.78u") for volts in ("05v0", "06v0")),
        )
    }
    | {
        name: (
            [f"XR1 p n b {name} r_width=1.41u r_length=20.5u m=2"],
            [f"R1 p n b {name} w=1.41u l=20.5u par=2"],
        )
        for name in (
            *(f"{material}_{u}" for material in ("ppolyf", "npolyf", "pplus", "nplus") for u in "us"),
            "nwell",
            "pwell",
            *(f"ppolyf_u_{ohm}{volts}" for ohm in ("1k", "2k", "3k") for volts in ("", "_6p0"))
        )
    }
    | {
        name: (
            [f"XR1 p n {name} r_width=1.41u r_length=20.5u m=2"],
            [f"R1 p n {name} w=1.41u l=20.5u par=2"],
        )
        for name in ("rm1", "rm2", "rm3", "tm11k")
    }
    | {
        name: ([f"XQ1 c b e {name} m=2"], [f"Q1 c b e {name} NE=2 m=2"])
        for name in ("pnp_10p00x10p00", "pnp_05p00x05p00", "pnp_10p00x00p42", "pnp_05p00x00p42")
    }
    | {
        name: ([f"XQ1 c b e s {name} m=3"], [f"Q1 c b e s {name} NE=3 m=3"])
        for size in ("10p00x10", "05p00x05", "00p54x16", "00p54x08", "00p54x04", "00p54x02")
        for name in (f"npn_{size}p00",)
    }
    | {
        f"cap_mim_{farad}{name}": (
            [f"XC1 p n cap_mim_{farad}_{metals}_noshield c_width=12u c_length=7.5u m=2"],
            [f"C1 p n cap_mim_{farad}_{metals}_noshield w=12u l=7.5u m=2"],
        )
        for farad in ("1f0", "1f5", "2f0")
        for name, metals in (("fF", "m4m5"), ("_m2m3", "m2m3"), ("_m3m4", "m3m4"))
    }
    | {
        name: ([f"XC1 p n {name} c_width=6u c_length=2u m=3"], [f"C1 p n {name} w=6u l=2u m=3"])
        for name in (f"cap_{n}mos_{volts}{b}" for n in "np" for volts in ("03v3", "06v0") for b in ("", "_b"))
    },
    "sg13g2": {
        name: ([f"XM1 d g s b {name} w=4.2u l=1.95u ng=2 m=3"], [f"M1 d g s b {name} w=4.2u l=1.95u ng=2 m=3"])
        for name in ("sg13_lv_nmos", "sg13_lv_pmos", "sg13_hv_nmos", "sg13_hv_pmos")
    }
    | {
        f"rf{t}{hv}": (
            [f"XM1 d g s b sg13_{hv or 'lv'}_{t} w=4.2u l=1.95u ng=2 m=3 rfmode=1"],
            [f"M1 d g s b rf{t}{hv} w=4.2u l=1.95u ng=2 m=3"],
        )
        for t in ("nmos", "pmos")
        for hv in ("", "hv")
    }
    | {
        name: ([f"XR1 p n b {name} w=1.41u l=20.5u m=2"], [f"R1 p n b {name} w=1.41u l=20.5u m=2"])
        for name in ("rsil", "rppd", "rhigh")
    }
    | {
        f"res_{metal}": ([f"R1 p n res_{metal} w=1.41u l=20.5u m=2"],) * 2
        for metal in ("metal1", "metal2", "metal3", "metal4", "metal5", "topmetal1", "topmetal2")
    }
    | {"cap_cmim": (["XC1 p n cap_cmim w=12u l=7.5u m=2"], ["C1 p n cap_cmim w=12u l=7.5u m=2"])}
    | {
        "cap_rfcmim": (
            ["XC1 p n b cap_rfcmim w=12u l=7.5u wfeed=4u m=2"],
            ["C1 p n b rfcmim w=12u l=7.5u wfeed=4u m=2"],
        )
    }
    | {
        name: ([f"XD1 p n {name} w=3u l=1u m=2"], [f"D1 p n {name} w=3u l=1u m=2"])
        for name in ("dantenna", "dpantenna")
    }
    | {
        f"{i}diode{rail}_{kv}kv": tuple([f"{x}D1 vdd pad vss {i}diode{rail}_{kv}kv m=2"] for x in ("X", ""))
        for i in ("", "i")
        for rail in ("vdd", "vss")
        for kv in (2, 4)
    }
    | {f"nmoscl_{kv}": ([f"XD1 vdd vss nmoscl_{kv} m=2"], [f"D1 vdd vss nmoscl_{kv} m=2"]) for kv in (2, 4)}
    | {
        name: tuple([f"{x}R1_{unit} p n {name} w=3u l=1u" for unit in (1, 2)] for x in ("X", ""))
        for name in ("ptap1", "ntap1")
    }
    | {
        "isolbox": (
            [f"XD1_{unit} p n s isolbox l=3u w=3u" for unit in (1, 2)],  # its model ignores m
            [f"D1_{unit} p n s isolbox l=3u w=3u" for unit in (1, 2)],
        )
    }
    | {"schottky_nbl1": (["XD1 p n s schottky_nbl1 m=2"], ["D1 p n s schottky_nbl1 m=2"])}
    | {"pnpMPA": (["XQ1 c b e pnpMPA a=1.4p p=5.4u m=2"], ["Q1 c b e pnpMPA a=1.4p p=5.4u m=2"])}
    | {
        name: ([f"XQ1 c b e s {name}{stated} Nx=2 m=3"], [f"Q1 c b e s {name} we={width} le={length} Nx=2 m=3"])
        for name, stated, width, length in (
            ("npn13G2", "", "0.07u", "0.9u"),
            ("npn13G2l", " le=1u", "0.07u", "1u"),
            ("npn13G2v", " le=1u", "0.12u", "1u"),
        )
    }
    | {
        f"sg13_hv_svaricap{name}": tuple(
            [f"{x}C1 g1 w g2 bn sg13_hv_svaricap w={w}u l={length}u Nx=2 m=3"] for x in ("X", "")
        )
        for name, w, length in (
            ("", "3.74", "0.3"),
            ("_w3p74_l0p8", "3.74", "0.8"),
            ("_w9p74_l0p3", "9.74", "0.3"),
            ("_w9p74_l0p8", "9.74", "0.8"),
        )
    },
    "generic": {
        "nmos": (["M1 d g s b nmos_1v8 W=4.2u L=1.95u nf=2 m=3"],) * 2,
        "pmos": (["M1 d g s b pmos_1v8 W=4.2u L=1.95u nf=2 m=3"],) * 2,
    },
}  # fmt: skip
SIZES = {
    "nmos": {"w": 4.2e-6, "l": 1.95e-6, "nf": 2, "m": 3},
    "resistor": {"w": 1.41e-6, "l": 20.5e-6, "m": 2},
    "capacitor": {"w": 12e-6, "l": 7.5e-6, "m": 2},
    "mos_capacitor": {"w": 6e-6, "l": 2e-6, "m": 3},
    "diode": {"w": 3e-6, "l": 1e-6, "m": 2},
    "tap": {"w": 3e-6, "l": 1e-6, "m": 2},
}
SIZES["pmos"] = SIZES["nmos"]
FORMS = ("spice", "lvs_deck")


def devices_of(technology):
    """Return every device of a process."""
    return {**technology.devices, **technology.passives}


def one(spec, number=1, nets=None):
    """Return a device of ``spec`` at the sizes above; its nets are called as its terminals unless ``nets`` says so."""
    if spec.type == "pnp":  # in one size, or in that of the SPICE card above; its collector is the substrate
        sides = spec.only_size or (700, 2000)
        params = {name: round(side * 1e-9, 12) for name, side in zip("wl", sides, strict=True)}
        named = dict(zip("cbe", (nets["b"], nets["p"], nets["n"]) if nets else "cbe", strict=True))
        return Device(f"Q{number}", "pnp", spec.name, {**params, "m": 2}, named)
    if spec.kind.in_cells:  # two emitters in each of three units, where it may have several
        count = min(2, spec.cell.most)
        params = {"w": round(count * 1e-9 * spec.min_w, 12), "l": round(1e-9 * spec.min_l, 12), "nf": count, "m": 3}
        ends = (*spec.kind.terminals, spec.kind.bulk)
        named = dict(zip(ends, (nets["p"], nets["n"], nets["b"], nets["b"]) if nets else ends, strict=True))
        return Device(f"{spec.kind.letter}{number}", spec.type, spec.name, params, named)
    if spec.kind.one_size or spec.type == "isolated_box":
        params = {"w": round(1e-9 * spec.min_w, 12), "l": round(1e-9 * spec.min_l, 12), "m": 2}
        named = {end: f"{end}{number}" if nets else end for end in spec.kind.terminals}
        return Device(f"D{number}", spec.type, spec.name, params, named)
    terminals = "dgsb" if spec.type in ("nmos", "pmos") else "pn" if spec.terminals == 2 else "pnb"
    letter = {"resistor": "R", "capacitor": "C", "mos_capacitor": "C", "diode": "D", "tap": "R"}.get(spec.type, "M")
    named = {terminal: (nets or {}).get(terminal, terminal) for terminal in terminals}
    params = SIZES[spec.type]
    if nets and spec.type == "resistor" and not spec.widths and spec.min_w > 1410:  # a thick metal, where it is mapped
        params = {**params, "w": round(1e-9 * spec.min_w, 12)}
    feed = {"wfeed": 4e-6} if getattr(spec, "fed", False) else {}
    if getattr(spec, "block", ""):  # fingers of 25 um, at most 0.5 um long where the oxide is thin
        length = {"l": 0.5e-6} if spec.max_l else {}
        blocked = zip(("drain_block", "source_block"), spec.blocked({}, 0.001), strict=True)
        feed = {"w": 50e-6, **length, **{block: round(1e-9 * side, 12) for block, side in blocked}}
    if getattr(spec, "drain_marker", ""):  # a finger of 5 um at least
        feed = {"w": 20e-6}
    return Device(f"{letter}{number}", spec.type, spec.name, {**params, **feed}, named)


def all_devices(technology):
    """Return a circuit of all devices of one set of masks, each on nets of its own so that none folds with another.

    Taps are left out: only one on a net of a well or the substrate is mapped to a device.
    """
    drawn = [spec for spec in devices_of(technology).values() if spec.type not in ("tap", "isolated_box")]
    made = [spec for spec in drawn if spec.kind.is_mos or technology.makes(spec)]
    devices = [
        one(spec, number, {terminal: f"{terminal}{number}" for terminal in "dgspn"} | {"b": "b"})
        for number, spec in enumerate(made)
    ]
    return Circuit("every", tuple(devices), tuple(dict.fromkeys(n for d in devices for n in d.terminals.values())))


def cards(text):
    """Return the cards of a netlist, continued lines joined."""
    return [line for line in text.replace("\n+ ", " ").splitlines() if line[:1] not in "*."]


@pytest.mark.parametrize("name", CARDS)
def test_every_device_is_written_as_its_process_wants_it(name):
    technology = load(name)
    assert CARDS[name].keys() == devices_of(technology).keys()
    for device, spec in devices_of(technology).items():
        circuit = Circuit("x", (one(spec),), ("p", "n"))
        written = [cards(write_spice(circuit, technology, form)) for form in FORMS]
        assert written == list(CARDS[name][device])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CARDS)
def test_what_is_written_reads_back_as_the_same_circuit(name, form, tmp_path):
    technology, path = load(name), tmp_path / "every.spice"
    circuit = all_devices(technology)
    if (name, form) == ("sky130A", "lvs_deck"):  # all units as one, some ends exchanged
        circuit = replace(circuit, devices=tuple(each for each in circuit.devices if each.type != "diode"))
    path.write_text(write_spice(circuit, technology, form))
    read = read_netlist(str(path), names=ModelNames(technology), identify_modules=False)

    def compared(each):
        reference = reference_of(each, technology)
        widths = {}  # units that are cards of their own make one transistor
        for d in reference.devices:
            key = (d.device, d.l_um, tuple(sorted(d.nets.items())))
            widths[key] = widths.get(key, 0) + d.w_um
        return widths, reference.ports

    assert compared(read) == compared(oriented(circuit))
    mapped = map_circuit(read, technology)
    assert mapped.warnings == read.warnings
    assert compared(mapped) == compared(oriented(circuit))
    if name != "sky130A":  # which writes units as cards of their own, or as one width
        assert [(d.model, d.params, d.terminals) for d in mapped.devices] == [
            (d.model, d.params, d.terminals) for d in oriented(circuit).devices
        ]


@pytest.mark.parametrize(("name", "listed"), [("sg13g2", ["M2"]), ("gf180mcuD", ["M1", "M2"])])
def test_transistors_on_one_net_that_a_deck_drops_from_the_layout_are_not_in_its_netlist(name, listed):
    technology = load(name)
    spec = next(spec for spec in technology.devices.values() if spec.type == "pmos")
    tied, gated = (
        one(spec, 1, dict.fromkeys("dgsb", "vdd")),
        one(spec, 2, {"d": "vdd", "g": "a", "s": "vdd", "b": "vdd"}),
    )
    circuit = Circuit("x", (gated,), ("vdd", "a"))
    assert [card.split()[0] for card in cards(write_spice(circuit, technology, "lvs_deck", dummies=(tied,)))] == sorted(
        listed, reverse=True
    )
    assert len(cards(write_spice(circuit, technology, "spice", dummies=(tied,)))) == 2


@pytest.mark.parametrize("name", ["sky130A", "gf180mcuD"])
def test_klayout_counts_the_emitters_of_a_bipolar_transistor_on_its_card(name, tmp_path):
    """The foundries' decks join parallel PNPs of the layout, but not those of the netlist, and compare NE."""
    technology, path = load(name), tmp_path / "one.cdl"
    pnp = next(spec for spec in technology.passives.values() if spec.type == "pnp")
    path.write_text(
        write_spice(
            Circuit("x", (replace(one(pnp), params={**one(pnp).params, "m": 8}),), ("c",)), technology, "lvs_deck"
        )
    )
    netlist = kdb.Netlist()
    netlist.read(str(path), kdb.NetlistSpiceReader())
    (device,) = netlist.circuit_by_name("X").each_device()
    assert device.parameter("NE") == 8


@pytest.mark.parametrize("name", ["sky130A", "gf180mcuD", "sg13g2"])
def test_a_resistor_of_two_terminals_gets_the_substrate_as_its_third(name):
    technology = load(name)
    nmos = Device("M1", "nmos", "nmos", SIZES["nmos"], dict(zip("dgsb", ("a", "b", "c", "sub!"), strict=True)))
    plain = Device("R1", "resistor", "resistor", {"r": 2e4}, {"p": "a", "n": "b"})
    mapped = map_circuit(Circuit("x", (nmos, plain), ("a", "b")), technology)
    assert mapped.device("R1").terminals == {"p": "a", "n": "b", "b": "sub!"}
    assert any("(b: none became sub!)" in text for text in mapped.warnings)
    assert re.search(r"^XR1 a b sub! ", write_spice(mapped, technology), re.MULTILINE)
    assert reference_of(mapped, technology).devices[1].nets["b"] == "sub!"


def test_a_terminal_on_no_net_gets_one_of_its_own_and_a_comment():
    technology = load("gf180mcuD")
    resistor = Device("R1", "resistor", "ppolyf_u", SIZES["resistor"], {"p": "a", "n": "Substrate"})
    text = write_spice(Circuit("x", (resistor,), ("a",)), technology)
    assert "* on net substrate_, which the circuit leaves open: R1.b\n" in text
    assert "XR1 a Substrate substrate_ ppolyf_u " in text


def test_bends_of_a_resistor_count_alike_in_the_layout_and_in_lvs(tmp_path):
    path = tmp_path / "own.spice"
    path.write_text(".subckt x a b c\nXR1 a b c rhigh w=0.5u l=5u b=2\n.ends\n")
    read = read_netlist(str(path), identify_modules=False)
    expected = 3 * 5 + 2 * (2 / 1.85 * (0.5 - 0.04) + 0.18)
    mapped = map_circuit(read, load("sg13g2"))
    for device in (*reference_of(read, load("sg13g2")).devices, *reference_of(mapped, load("sg13g2")).devices):
        assert device.l_um == pytest.approx(expected, abs=0.01)


def test_an_area_that_no_rectangle_of_the_perimeter_has_is_refused(tmp_path):
    path = tmp_path / "own.spice"
    path.write_text(".subckt x a b\nC1 a b sky130_fd_pr__model__cap_mim A=90p P=30u\n.ends\n")
    with pytest.raises(NetlistError, match="no rectangle"):
        read_netlist(str(path))


def test_a_device_without_a_size_keeps_its_value():
    resistor = Device("R1", "resistor", "ppolyf_u", {"r": 1e3, "m": 1}, {"p": "a", "n": "b"})
    assert "R1 a b ppolyf_u r=1000.0 m=1\n" in write_spice(Circuit("x", (resistor,), ()), load("gf180mcuD"))


@pytest.mark.parametrize(
    ("name", "card", "expected"),
    [
        ("sky130A", "XR1 a b c sky130_fd_pr__res_high_po w=1.41 l=20.5 mult=1 m=2", ("res_high_po", 1.41, 20.5, 2)),
        ("sky130A", "XR1 a b c sky130_fd_pr__res_xhigh_po_0p35 l=10 mult=1 m=1", ("res_xhigh_po", 0.35, 10, 1)),
        ("sky130A", "XC1 a b sky130_fd_pr__cap_mim_m3_1 W=12 L=7.5 MF=1 m=1", ("cap_mim_m3_1", 12, 7.5, 1)),
        ("sky130A", "R1 a b c sky130_fd_pr__res_high_po_1p41 L=20.5u", ("res_high_po", 1.41, 20.5, 1)),
        ("sky130A", "C1 a b sky130_fd_pr__model__cap_mim A=90p P=39u", ("cap_mim_m3_1", 12, 7.5, 1)),
        ("gf180mcuD", "XR1 a b c ppolyf_u r_width=1e-6 r_length=5e-6 m=2", ("ppolyf_u", 1, 5, 2)),
        ("gf180mcuD", "XC1 a b cap_mim_2f0fF c_width=10e-6 c_length=6e-6 m=1", ("cap_mim_2f0fF", 10, 6, 1)),
        ("gf180mcuD", "R1 a b c npolyf_u w=1u l=5u par=2 s=1", ("npolyf_u", 1, 5, 2)),
        ("gf180mcuD", "XR1 a b c ppolyf_u r_width=1u r_length=5u s=2 m=1", ("ppolyf_u", 1, 10, 1)),
        ("sg13g2", "XR1 a b c rhigh w=0.5e-6 l=0.96e-6 m=1 b=0", ("rhigh", 0.5, 0.96, 1)),
        ("sg13g2", "XM1 d g s b sg13_lv_nmos w=1.0u l=0.45u ng=2 m=1", ("sg13_lv_nmos", 1, 0.45, 1)),
        ("sg13g2", "C1 a b cap_cmim w=6.99u l=6.99u m=1 C=74.620f", ("cap_cmim", 6.99, 6.99, 1)),
    ],
)  # fmt: skip
def test_the_cards_that_users_of_a_pdk_write_are_taken_as_they_are(name, card, expected, tmp_path):
    path = tmp_path / "own.spice"
    path.write_text(f".subckt x a b c d g s\n{card}\n.ends\n")
    read = read_netlist(str(path), identify_modules=False)
    (device,) = map_circuit(read, load(name)).devices
    found = (device.model, round(device.w * 1e6, 6), round(device.l * 1e6, 6), device.m)
    assert found == expected
    (compared,) = reference_of(read, load(name)).devices
    assert (compared.device, compared.l_um) == (expected[0], expected[2])


@pytest.mark.parametrize(
    ("card", "model"),
    [
        ("C1 a b c d 1p", None),
        ("R1 a b c d 1k", None),
        ("C1 a b c cap_cmim 1p w=7u l=7u", "cap_cmim"),
        ("R1 a b d 1k", "d"),
    ],
)
def test_four_nodes_and_a_value_on_a_card_of_a_capacitor_or_resistor_are_refused(card, model, tmp_path):
    path = tmp_path / "own.spice"
    path.write_text(f".subckt x a b c d\n{card}\nXM1 a b c d sg13_lv_nmos w=1u l=0.13u\n.ends\n")
    if model is None:
        with pytest.raises(NetlistError, match="has 4 nodes and a value, or the unknown model 'd' behind 3 nodes"):
            read_netlist(str(path), names=ModelNames(load("sg13g2")), identify_modules=False)
        return
    read = read_netlist(str(path), names=ModelNames(load("sg13g2")), identify_modules=False)
    assert read.device(card.split()[0]).model == model


def test_a_width_that_is_not_the_one_of_the_model_is_told(tmp_path):
    path = tmp_path / "own.spice"
    path.write_text(
        ".subckt x a b c\nX1 a b c sky130_fd_pr__res_high_po_0p35 w=2 l=2\n"
        "X2 a b c sky130_fd_pr__res_high_po_0p69 w=0.69 l=2\n.ends\n"
    )
    mapped = map_circuit(read_netlist(str(path), identify_modules=False), load("sky130A"))
    assert [round(device.w * 1e6, 6) for device in mapped.devices] == [0.35, 0.69]
    (told,) = (warning for warning in mapped.warnings if "states their width" in warning)
    assert "w: 2 um became 0.35 um" in told
    assert told.endswith(": X1")


@pytest.mark.parametrize(
    ("name", "card", "told"),
    [
        ("sg13g2", "R1 a b 10k rppd w=1u l=2u", "r: 1e+04 became 520"),
        ("sg13g2", "R1 a b 600 rppd w=1u l=2u", None),  # 520 ohm and two ends
        ("gf180mcuD", "C1 a b 10p cap_mim_2f0fF w=5u l=5u", "c: 1e-11 became 5"),
        ("gf180mcuD", "C1 a b 100f cap_mim_2f0fF w=5u l=5u m=2", None),  # in all
    ],
)
def test_a_value_that_is_not_the_one_of_the_size_beside_it_is_told(name, card, told, tmp_path):
    path = tmp_path / "own.spice"
    path.write_text(f".subckt x a b\n{card}\n.ends\n")
    mapped = map_circuit(read_netlist(str(path), identify_modules=False), load(name))
    found = [warning for warning in mapped.warnings if "another value" in warning]
    assert len(found) == (told is not None)
    assert told is None or told in found[0]


# Subcircuits with the terminals and parameters of the PDKs' libraries, as facts: each is a conductance that tells the
# parameters it was called with. A parameter that it does not have would be an error or leave the default. The scale of
# sky130's library is left out, since it would not reach these expressions.
STUBS = {
    "sky130A": {
        **dict.fromkeys(("nfet_01v8", "pfet_g5v0d10v5"), ("d g s b", "w=1 l=1 nf=1 mult=1", "w + 100*l + 1000*nf")),
        "res_high_po_1p41": ("r0 r1 b", "l=5 mult=1", "l"),
        "res_xhigh_po_1p41": ("r0 r1 b", "l=5 mult=1", "l"),
        "res_generic_po": ("r0 r1", "w=1 l=1 mult=1", "w + 100*l"),
        "cap_mim_m3_1": ("c0 c1", "w=1 l=1 mf=1", "w + 100*l"),
    },
    "gf180mcuD": {
        "nfet_03v3": ("d g s b", "w=1e-5 l=2.8e-7 nf=1", "1e6*w + 1e8*l + 1000*nf"),
        "ppolyf_u": ("1 2 3", "r_length=1 r_width=1 par=1 s=1", "1e6*r_width + 1e8*r_length"),
        "cap_mim_2f0_m4m5_noshield": ("1 2", "c_length=1 c_width=1 par=1", "1e6*c_width + 1e8*c_length"),
    },
    "sg13g2": {
        "sg13_lv_nmos": ("d g s b", "w=0.35u l=0.34u ng=1", "1e6*w + 1e8*l + 1000*ng"),
        "rppd": ("1 2 bn", "w=0.5e-6 l=0.5e-6 b=0", "1e6*w + 1e8*l"),
        "cap_cmim": ("PLUS MINUS", "w=7u l=7u", "1e6*w + 1e8*l"),
    },
}
# w + 100 l [+ 1000 nf], times m, of SIZES; the fixed widths take no w.
CURRENTS = {"nmos": 3 * (4.2 + 195 + 2000), "resistor": 2 * (1.41 + 2050), "capacitor": 2 * (12 + 750)}
CURRENTS["pmos"] = CURRENTS["nmos"]


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="skipped: needs ngspice")
@pytest.mark.parametrize("name", STUBS)
def test_ngspice_hands_the_sizes_to_the_subcircuits_of_the_library(name, tmp_path):
    technology = load(name)
    prefix = SKY if name == "sky130A" else ""
    stubs = "".join(
        f".subckt {prefix}{model} {nodes} {params}\nR1 {nodes.split()[0]} {nodes.split()[1]} r='1/({siemens})'\n.ends\n"
        for model, (nodes, params, siemens) in STUBS[name].items()
    )
    deck, prints, expected = ["* deck", stubs], [], []
    for number, model in enumerate(STUBS[name]):
        spec = (
            technology.device(prefix + model)
            if "fet" in model or "mos" in model
            else technology.passive(prefix + model)
        )
        device = one(spec, nets=dict.fromkeys("dgspnb", "0") | {"d": "x", "p": "x"})
        circuit = write_spice(Circuit(f"cell{number}", (device,), ("x",)), technology).replace(".end\n", "")
        deck += [circuit, f"V{number} n{number} 0 1", f"X{number} n{number} cell{number}"]
        prints.append(f"i(v{number})")
        expected.append(2 * 20.5 if "_po_1p41" in model else CURRENTS[spec.type])
    deck.append(f".control\nop\nprint {' '.join(prints)}\n.endc\n.end")
    (tmp_path / "deck.cir").write_text("\n".join(deck) + "\n")
    done = subprocess.run(
        ["ngspice", "-b", "deck.cir"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    found = [-float(value) for value in re.findall(r"^i\(v\d+\) = (\S+)", done.stdout, re.MULTILINE)]
    assert found == pytest.approx(expected, rel=1e-5), done.stdout + done.stderr
