"""Devices of a process are drawn as what the netlist names, replaced where the user says so, or refused."""

import json
import re

import pytest

from layoutkit.circuit import MapOptions, ModelNames, map_circuit, read_netlist
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.circuit.replaced_devices import replaced_data, replaced_lines
from layoutkit.errors import LayoutkitError, NetlistError, UnsupportedOperationError
from layoutkit.lvs.reference import reference_of
from layoutkit.technology import load

# What the PDKs publish, by hand from their libraries, symbols and decks, not from the technology files: a name that
# is lost there fails here.
PUBLISHED = {
    "sky130A": """
        nfet_01v8 nfet_01v8_lvt nfet_03v3_nvt nfet_05v0_nvt nfet_20v0 nfet_20v0_nvt nfet_20v0_zvt nfet_20v0_iso
        nfet_g5v0d10v5 nfet_g5v0d16v0 pfet_01v8 pfet_01v8_lvt pfet_01v8_hvt pfet_01v8_mvt pfet_20v0 pfet_g5v0d10v5
        pfet_g5v0d16v0 esd_nfet_01v8 esd_nfet_g5v0d10v5 esd_nfet_05v0_nvt esd_pfet_g5v0d10v5 special_nfet_01v8
        special_nfet_latch special_nfet_pass special_pfet_pass special_pfet_01v8_hvt rf_nfet_01v8_lvt_aM02W1p65L0p15
        rf_pfet_01v8_mcM04W3p00L0p15 npn_05v5_W1p00L1p00 npn_05v5_W1p00L2p00 npn_11v0_W1p00L1p00 pnp_05v5_W0p68L0p68
        pnp_05v5_W3p40L3p40 rf_npn_05v5_W1p00L1p00 rf_pnp_05v5_W3p40L3p40 res_generic_nd res_generic_nd__hv
        res_generic_pd res_generic_pd__hv res_generic_po res_generic_l1 res_generic_m1 res_generic_m2 res_generic_m3
        res_generic_m4 res_generic_m5 res_high_po res_high_po_0p35 res_high_po_5p73 res_xhigh_po res_xhigh_po_0p69
        res_iso_pw cap_mim_m3_1 cap_mim_m3_2 cap_var_lvt cap_var_hvt cap_vpp_11p5x11p7_m1m2_noshield
        cap_vpp_08p6x07p8_m1m2_shieldl1 cap_vpp_04p4x04p6_l1m1m2_shieldpo_floatm3 diode_pw2nd_05v5
        diode_pw2nd_05v5_lvt diode_pw2nd_05v5_nvt diode_pw2nd_11v0 diode_pd2nw_05v5 diode_pd2nw_05v5_lvt
        diode_pd2nw_05v5_hvt diode_pd2nw_11v0 model__parasitic__diode_ps2nw model__parasitic__diode_ps2dn
        esd_rf_diode_pd2nw_11v0_100 ind_03_90 ind_05_125 ind_05_220 photodiode""",
    "gf180mcuD": """
        nfet_03v3 nfet_03v3_dss nfet_05v0 nfet_06v0 nfet_06v0_dss nfet_06v0_nvt nfet_10v0_asym pfet_03v3 pfet_03v3_dss
        pfet_05v0 pfet_06v0 pfet_06v0_dss pfet_10v0_asym nfet_03v3_dn pfet_06v0_dn npn_00p54x02p00 npn_00p54x16p00
        npn_05p00x05p00 npn_10p00x10p00 pnp_05p00x00p42 pnp_05p00x05p00 pnp_10p00x00p42 pnp_10p00x10p00 nplus_s nplus_u
        pplus_s pplus_u npolyf_s npolyf_u ppolyf_s ppolyf_u ppolyf_u_1k ppolyf_u_1k_6p0 ppolyf_u_2k ppolyf_u_2k_6p0
        ppolyf_u_3k ppolyf_u_3k_6p0 ppolyf_u_dw nwell pwell rm1 rm2 rm3 tm6k tm9k tm11k tm30k efuse cap_mim_1f0fF
        cap_mim_1f5fF cap_mim_2f0fF cap_mim_1f0_m4m5_noshield cap_mim_1f5_m2m3_noshield cap_mim_2f0_m2m3_noshield
        cap_mim_2f0_m3m4_noshield cap_mim_2f0_m4m5_noshield cap_mim_2f0_m5m6_noshield cap_nmos_03v3 cap_pmos_03v3
        cap_nmos_06v0 cap_pmos_06v0 cap_nmos_03v3_b cap_pmos_06v0_b cap_nmos_03v3_dn diode_nd2ps_03v3 diode_nd2ps_06v0
        diode_pd2nw_03v3 diode_pd2nw_06v0 diode_nw2ps_03v3 diode_nw2ps_06v0 diode_pw2dw diode_dw2ps_06v0 sc_diode
        nmos_3p3 nmos_6p0 pmos_6p0 nmos_6p0_nat nmos_3p3_sab vpnp_10x10 vnpn_5x5 mim_1p5fF mim_2p0fF nmoscap_6p0
        np_3p3 dnwps""",
    "sg13g2": """
        sg13_lv_nmos sg13_lv_pmos sg13_hv_nmos sg13_hv_pmos rfnmos rfpmos rfnmoshv rfpmoshv npn13G2 npn13G2l npn13G2v
        npn13G2_5t npn13G2l_5t npn13G2v_5t pnpMPA rsil rppd rhigh cap_cmim cap_rfcmim rfcmim sg13_hv_svaricap dantenna
        dpantenna diodevdd_2kv diodevdd_4kv diodevss_2kv diodevss_4kv idiodevdd_2kv idiodevss_4kv schottky_nbl1 isolbox
        nmoscl_2 nmoscl_4 ptap1 ntap1 inductor2 inductor3 res_metal1 res_metal5 res_topmetal1 res_topmetal2 bondpad""",
}
DRAWN = {
    "sky130A": re.compile(
        r"[np]fet_01v8(_lvt)?|pfet_01v8_[hm]vt|(esd_)?[np]fet_g5v0d10v5|[np]fet_g5v0d16v0|esd_nfet_01v8|nfet_0(3v3|5v0)_nvt|res_generic_(po|li?1|m[1-5]|[np]d(__hv)?)|res_iso_pw|res_x?high_po(_\dp\d\d)?|cap_mim_m3_[12]|"
        r"cap_var_[lh]vt|diode_pw2nd_(05v5|05v5_lvt|05v5_nvt|11v0)|diode_pd2nw_(05v5|05v5_[lh]vt|11v0)|(rf_)?(pnp_05v5|npn_05v5|npn_11v0)_W\w+"
    ),
    "gf180mcuD": re.compile(
        r"[np]fet_0(3v3|5v0|6v0)(_dn|_dss)?|nmos_3p3_sab|nfet_06v0_nvt|nmos_6p0_nat|v?(pnp|npn)_\w+|[np](polyf|plus)_[us](_dw)?|rm[123]|tm11k|[np]well|ppolyf_u_[123]k(_6p0)?|cap_mim_[12]f[05](fF|_m[234]m[345]_noshield)|cap_[np]mos_0(3v3|6v0)(_b|_dn)?|"
        r"diode_(nd2ps|pd2nw|nw2ps)_0(3v3|6v0)|diode_pw2dw|diode_dw2ps_06v0|sc_diode|[np]mos_(3p3|6p0)|mim_[12]p[05]fF|nmoscap_6p0|np_3p3"
    ),
    "sg13g2": re.compile(
        r"sg13_[lh]v_[np]mos|rf[np]mos(hv)?|pnpMPA|npn13G2[lv]?(_5t)?|rsil|rppd|rhigh|cap_cmim|(cap_)?rfcmim|d[p]?antenna"
        r"|i?diodev(dd|ss)_[24]kv|schottky_nbl1|isolbox|nmoscl_[24]|res_(top)?metal[1-5]|[np]tap1|sg13_hv_svaricap"
    ),
}


def read(text, technology, device_map=None, **options):
    names = ModelNames(load(technology), device_map)
    return read_netlist(NetlistText(text), names=names, identify_modules=False, **options)


def drawn(text, technology, device_map=None):
    circuit = read(text, technology, device_map)
    return map_circuit(circuit, load(technology), MapOptions())


def cell(*cards):
    return "\n".join((".subckt cell a b c vss", *cards, ".ends", ""))


@pytest.mark.parametrize("technology", PUBLISHED)
def test_every_published_device_is_drawn_or_listed_as_undrawn(technology):
    names = load(technology).device_names
    for name in PUBLISHED[technology].split():
        spellings = [name, name.upper(), f"{name}__model"]
        spellings += [f"sky130_fd_pr__{name}"] if technology == "sky130A" else []
        for spelling in spellings:
            is_drawn = DRAWN[technology].fullmatch(name) is not None
            assert (names.drawn(spelling) is not None, names.undrawn(spelling) is not None) == (is_drawn, not is_drawn)


@pytest.mark.parametrize("technology", PUBLISHED)
def test_no_technology_claims_a_device_of_another(technology):
    names = load(technology).device_names
    for other, listed in PUBLISHED.items():
        for name in listed.split() if other != technology else ():
            assert names.drawn(name) is None, name
            assert names.undrawn(name) is None, name


@pytest.mark.parametrize("name", ["nmos", "nch", "rpoly", "nch_lvt_mac", "resistor", "cap", "diode", "npn", "pnp"])
@pytest.mark.parametrize("technology", PUBLISHED)
def test_generic_names_belong_to_no_process(technology, name):
    names = load(technology).device_names
    assert names.drawn(name) is None
    assert names.undrawn(name) is None


def test_undrawn_devices_are_refused_all_at_once_with_what_exists():
    text = cell(
        "XM1 a b c vss sky130_fd_pr__nfet_20v0_zvt w=2 l=0.6",
        "M2 a b c vss sky130_fd_pr__nfet_20v0__model.7 w=29.41 l=2.95",
        "R2 a b sky130_fd_pr__res_generic_nw w=1u l=20u",
        "XC1 a b vss c sky130_fd_pr__cap_vpp_11p5x11p7_m1m2m3_shieldl1 m=2",
        "XQ1 a b c vss SKY130_FD_PR__RF_NPN_05V5_W1P00L4P00",
        "XL1 a b c vss sky130_fd_pr__ind_03_90",
        "XU1 a b sky130_fd_pr__something_new",
        "XM9 a b c vss sky130_fd_pr__nfet_01v8 w=2 l=0.6",
    )
    with pytest.raises(UnsupportedOperationError) as caught:
        read(text, "sky130A")
    message, details = caught.value.message, caught.value.details
    for device in ("XM1", "M2", "R2", "XC1", "XQ1", "XL1", "XU1"):
        assert f"({device})" in message
    assert "XM9" not in message
    for words in ("20 V", "950 ohm/sq", "nfet_01v8 (1.8 V)", "cap_mim_m3_1 (2 fF/um2)", "device_map"):
        assert words in message
    assert details["param_name"] == "device_map"
    assert details["undrawn"]["sky130_fd_pr__res_generic_nw"] == {
        "type": "resistor", "devices": ["R2"], "reason": "n well", "ohm_per_square": 950,
    }  # fmt: skip
    assert {"name": "res_xhigh_po", "ohm_per_square": 2000} in details["drawn"]["resistor"]


@pytest.mark.parametrize(
    ("card", "technology"),
    [
        ("XQ1 a b c vss c efuse", "gf180mcuD"),
        ("XC1 a b c vss sg13_hv_svaricap w=3.74u l=0.3u Nx=1", "sg13cmos5l"),
        ("XL1 a b c vss inductor3", "sg13g2"),
        ("XL1 a b c inductor w=2u s=2.1u", "sg13g2"),
        ("XC1 a b c vss svaricap", "sg13cmos5l"),
        ("XD1 a b c idiodevdd_2kv m=1", "sg13cmos5l"),
        ("D1 a b c idiodevss_4kv", "sg13cmos5l"),
        ("XC1 a b c vss cap_vpp", "sky130A"),
        ("M1 a b c vss c esd_nfet_05v0_nvt w=2u l=1u", "sky130A"),
        ("R1 a b 10k rm4", "gf180mcuD"),
        ("R1 a b rm4 10k", "gf180mcuD"),
        ("R1 a b vss pplus_u_m1 w=1u l=20u", "gf180mcuD"),
        ("R1 a b w=1u l=20u model=nplus_u_m1", "gf180mcuD"),
        ("XR1 a b vss res_high_po_1p00 l=20", "sky130A"),
    ],
)
def test_a_device_is_refused_by_name_whatever_its_card_and_nodes(card, technology):
    with pytest.raises(UnsupportedOperationError, match="has no drawing of these devices"):
        read(cell(card), technology)


def test_a_parameter_that_makes_it_another_device_counts():
    plain, radio = (
        "XM1 a b c vss sg13_lv_nmos w=1u l=0.13u ng=1 rfmode=0",
        "XM2 a b c vss SG13_hv_pmos w=1u l=1u rfmode=1",
    )
    other = "XM3 a b c vss sg13_hv_rf_pmos w=1u l=1u"
    models = [device.model for device in drawn(cell(plain, radio, other), "sg13g2").devices]
    assert models == ["sg13_lv_nmos", "rfpmoshv", "rfpmoshv"]
    circuit = drawn(cell(plain, radio), "sg13g2", {"rfpmoshv": "sg13_hv_pmos"})
    assert [(each.device, each.model) for each in circuit.replaced] == [("XM2", "rfpmoshv")]


def test_a_model_card_or_a_subcircuit_of_the_netlist_does_not_hide_a_device_of_the_process():
    model = ".model nfet_10v0_asym nmos level=54\n" + cell("M1 a b c vss nfet_10v0_asym w=2u l=2u")
    wrapped = (
        ".subckt pplus_u_m1 r0 r1 sub r_width=1u r_length=1u\n"
        "R1 r0 r1 sub ppolyf_u r_width=r_width r_length=r_length\n.ends\n"
        + cell("XR1 a b vss pplus_u_m1 r_width=1u r_length=20u")
    )
    for text, name in ((model, "nfet_10v0_asym (M1)"), (wrapped, "pplus_u_m1 (XR1)")):
        with pytest.raises(UnsupportedOperationError, match=re.escape(name)):
            read(text, "gf180mcuD", top="cell")


def test_other_faults_of_the_netlist_are_in_the_same_error():
    with pytest.raises(NetlistError) as caught:
        read(cell("XR1 a b vss pplus_u_m1 r_width=1u r_length=20u", "X2 a b missing"), "gf180mcuD")
    assert "'missing' (used by X2)" in caught.value.message
    assert "pplus_u_m1 (XR1)" in caught.value.message


def test_json_netlists_and_circuits_read_without_a_process_are_refused_too():
    device = {
        "id": "R1", "type": "resistor", "model": "pplus_u_m1", "params": {"w": 1e-6, "l": 2e-5},
        "terminals": {"p": "a", "n": "b"},
    }  # fmt: skip
    text = json.dumps({"name": "c", "ports": ["a", "b"], "devices": [device]})
    with pytest.raises(UnsupportedOperationError, match="pplus_u_m1"):
        read(text, "gf180mcuD")
    plain = read_netlist(NetlistText(text), identify_modules=False)
    with pytest.raises(UnsupportedOperationError, match="pplus_u_m1"):
        map_circuit(plain, load("gf180mcuD"))


def test_a_card_of_one_kind_that_names_a_device_of_another_is_refused():
    with pytest.raises(NetlistError) as caught:
        read(
            cell("R1 a b cap_cmim w=7u l=7u", "D1 a b pnpMPA area=1p", "M1 a b c vss sg13_lv_nmos w=1u l=1u"), "sg13g2"
        )
    for words in (
        "R1 is a resistor, and cap_cmim of sg13g2 is a capacitor",
        "D1 is a diode, and pnpMPA of sg13g2 is a pnp",
    ):
        assert words in caught.value.message


def test_a_listed_black_box_is_kept_as_one():
    circuit = read(cell("XM1 a b c vss nfet_03v3 w=1u l=1u", "X1 a bondpad"), "sg13g2", black_boxes=["bondpad"])
    assert [box.cell for box in circuit.black_boxes] == ["bondpad"]


def test_device_map_replaces_what_it_names_at_its_size_and_nothing_else():
    text = cell("XR1 a b vss pplus_u_m1 r_width=1u r_length=20u m=2", "XR2 a c vss npolyf_u r_width=1u r_length=20u")
    circuit = drawn(text, "gf180mcuD", {"PPLUS_U_M1": "ppolyf_u"})
    assert [(d.id, d.model, d.params["w"], d.params["l"]) for d in circuit.devices] == [
        ("XR1", "ppolyf_u", 1e-6, 20e-6), ("XR2", "npolyf_u", 1e-6, 20e-6),
    ]  # fmt: skip
    (entry,) = replaced_data(circuit, load("gf180mcuD"))
    # 20 squares: 185 and 350 ohm each, two in parallel
    assert (entry["devices"], entry["reason"]) == (["XR1"], "device_map")
    assert entry["before"] == {"model": "pplus_u_m1", "w_um": 1, "l_um": 20, "m": 2, "ohm": 1850}
    assert entry["after"] == {"model": "ppolyf_u", "w_um": 1, "l_um": 20, "m": 2, "ohm": 3500}
    assert replaced_lines([entry]) == [
        "XR1: pplus_u_m1 (1 x 20 um, m=2, 1850 ohm) drawn as ppolyf_u (1 x 20 um, m=2, 3500 ohm)"
    ]


def test_the_rest_is_still_refused_beside_a_device_map():
    text = cell("XR1 a b vss pplus_u_m1 r_width=1u r_length=20u", "XR2 a b vss nplus_u_m1 r_width=1u r_length=20u")
    with pytest.raises(UnsupportedOperationError) as caught:
        read(text, "gf180mcuD", {"pplus_u_m1": "ppolyf_u"})
    assert "nplus_u_m1 (XR2)" in caught.value.message
    assert "pplus_u_m1" not in caught.value.message


def test_a_foreign_width_in_the_name_is_kept_by_a_replacement():
    circuit = drawn(
        cell("XR1 a b vss sky130_fd_pr__res_high_po_0p69 l=13.8"), "sky130A", {"res_high_po_0p69": "res_xhigh_po"}
    )
    (entry,) = replaced_data(circuit, load("sky130A"))
    assert (entry["before"]["ohm"], entry["after"]["ohm"]) == (20 * 319.8, 20 * 2000)
    assert entry["after"]["w_um"] == 0.69


def test_an_undefined_subcircuit_may_be_replaced_by_a_device():
    circuit = drawn(cell("X1 a b c vss my_switch w=2u l=1u"), "sg13g2", {"my_switch": "sg13_lv_nmos"})
    assert [(d.type, d.model) for d in circuit.devices] == [("nmos", "sg13_lv_nmos")]
    assert [each.model for each in circuit.replaced] == ["my_switch"]


def test_every_fault_of_a_device_map_is_told_at_once():
    text = cell("XR1 a b vss pplus_u_m1 r_width=1u r_length=20u", "XM1 a b c vss nfet_03v3 w=1u l=1u")
    given = {
        "pplus_u_m1": "ppolyf_uu",
        "pplus_u_m3": "ppolyf_u",
        "nfet_03v3": "ppolyf_u",
        "NFET_03V3": "nfet_05v0",
    }
    with pytest.raises(LayoutkitError) as caught:
        read(text, "gf180mcuD", given)
    assert caught.value.code == "INVALID_PARAM"
    for words in (
        "draws no device 'ppolyf_uu' (did you mean 'ppolyf_u'?)",
        "has no model 'pplus_u_m3' (did you mean 'pplus_u_m1'?)",
        "nfet_03v3 is a nmos, and ppolyf_u is a resistor",
        "two names mean the model nfet_03v3",
        "Models of the netlist: nfet_03v3, pplus_u_m1",
    ):
        assert words in caught.value.message
    assert caught.value.details["allowed"]["resistor"][:2] == ["ppolyf_u", "npolyf_u"]


def test_devices_of_two_options_of_the_masks_are_refused_and_those_of_another_option_are_told():
    one, same, other = (
        f"XR{number} a b vss {model} r_width=1u r_length=20u"
        for number, model in enumerate(("ppolyf_u_3k", "ppolyf_u_3k_6p0", "ppolyf_u_1k"))
    )
    circuit = drawn(cell(one, same), "gf180mcuD")
    assert circuit.replaced == ()
    (note,) = (text for text in circuit.warnings if "option" in text)
    for words in ("ppolyf_u_3k, ppolyf_u_3k_6p0", "poly_res 3k", "has 1k"):
        assert words in note
    assert not any("option" in text for text in drawn(cell(other), "gf180mcuD").warnings)
    with pytest.raises(UnsupportedOperationError, match="poly_res is 3k for ppolyf_u_3k and 1k for ppolyf_u_1k"):
        drawn(cell(one, other), "gf180mcuD")


def test_native_transistors_take_the_place_of_native_ones_only():
    cards = ("M1 a b c vss nfet_03v3 w=2u l=2u", "M2 a b c vss nch_33_na w=2u l=2u", "M3 a b c c pch_33 w=2u l=2u")
    models = [device.model for device in drawn(cell(*cards), "sky130A").devices]
    assert models == ["nfet_g5v0d10v5", "nfet_03v3_nvt", "pfet_g5v0d10v5"]


def test_a_device_map_needs_a_technology():
    with pytest.raises(LayoutkitError, match="give technology") as caught:
        ModelNames(None, {"a": "b"})
    assert caught.value.details["param_name"] == "technology"


def test_generic_names_and_those_of_another_process_count_as_replaced():
    text = cell(
        "M1 a b c vss nmos w=2u l=1u",
        "M2 a b c vss sg13_hv_nmos w=2u l=1u",
        "M3 a b c vss nfet_g5v0d10v5 w=2u l=1u",
        "R1 a b 32k",
        "X4 a b vss rppd w=1u l=10u",
    )
    entries = {entry["devices"][0]: entry for entry in replaced_data(drawn(text, "sky130A"), load("sky130A"))}
    assert {name: entry["reason"] for name, entry in entries.items()} == {
        "M1": "generic", "M2": "other_process", "R1": "generic", "X4": "other_process",
    }  # fmt: skip
    assert entries["M2"]["before"] == {
        "model": "sg13_hv_nmos", "technology": "sg13g2", "w_um": 2, "l_um": 1, "nf": 1, "m": 1, "supply_v": 3.3,
    }  # fmt: skip
    assert (entries["M2"]["after"]["model"], entries["M2"]["after"]["supply_v"]) == ("nfet_g5v0d10v5", 5)
    assert entries["X4"]["before"]["ohm"] == 2600
    assert entries["R1"]["before"]["ohm"] == 32000
    assert entries["R1"]["after"]["ohm"] == pytest.approx(32000, rel=0.01)


def test_a_transistor_of_a_length_that_the_process_lacks_is_told_as_replaced():
    text = cell("XM1 a b c vss nfet_06v0 w=1u l=0.6u", "XM2 a b c vss nfet_06v0 w=1u l=0.7u")  # the least is 0.7 um
    (entry,) = replaced_data(drawn(text, "gf180mcuD"), load("gf180mcuD"))
    assert (entry["devices"], entry["reason"]) == (["XM1"], "size")
    assert (entry["before"]["l_um"], entry["after"]["l_um"]) == (0.6, 0.7)


def test_capacitors_tell_their_values():
    text = cell("XC1 a b cap_mim_1f5fF c_width=10u c_length=20u m=3")
    circuit = drawn(text, "gf180mcuD", {"cap_mim_1f5fF": "cap_mim_2f0fF"})
    (entry,) = replaced_data(circuit, load("gf180mcuD"))
    assert entry["before"]["farad"] == pytest.approx(3 * 200 * 1.5e-15)
    assert entry["after"]["farad"] == pytest.approx(3 * 200 * 2.0e-15)


def test_what_was_replaced_stays_with_the_circuit_in_its_file():
    circuit = drawn(cell("XR1 a b vss pplus_u_m1 r_width=1u r_length=20u"), "gf180mcuD", {"pplus_u_m1": "ppolyf_u"})
    text = json.dumps({"circuit": circuit.to_json()})
    again = read(text, "gf180mcuD", {"pplus_u_m1": "ppolyf_u"})
    assert again.replaced == circuit.replaced
    assert again.warnings == ()
    assert map_circuit(again, load("gf180mcuD")).replaced == circuit.replaced


def test_the_spelling_of_a_name_does_not_change_the_device():
    text = cell(
        "XR1 a b vss RES_XHIGH_PO_0P69 l=13.8",
        "XM1 a b c vss Sky130_fd_pr__NFET_01v8 w=1 l=0.15",
        "M2 a b c vss sky130_fd_pr__nfet_01v8__model.12 w=1u l=0.15u",
    )
    circuit = drawn(text, "sky130A")
    assert [(d.model, round(d.w * 1e9)) for d in circuit.devices] == [
        ("res_xhigh_po", 690), ("nfet_01v8", 1000), ("nfet_01v8", 1000),
    ]  # fmt: skip
    assert circuit.replaced == ()
    compared = reference_of(read(text, "sky130A"), load("sky130A"))
    assert sorted((d.device, d.w_um) for d in compared.devices) == [
        ("nfet_01v8", 1),
        ("nfet_01v8", 1),
        ("res_xhigh_po", 0.69),
    ]
    assert compared.replaced == ()


def test_older_names_of_the_process_are_its_devices():
    text = cell(
        "M1 a b c vss nmos_6p0 w=2u l=1u",
        "X2 a b nmoscap_6p0 c_width=5u c_length=5u",
        "X3 a b mim_2p0fF c_width=10u c_length=10u",
    )
    circuit = drawn(text, "gf180mcuD")
    assert [device.model for device in circuit.devices] == ["nfet_06v0", "cap_nmos_06v0", "cap_mim_2f0fF"]
    assert circuit.replaced == ()


@pytest.mark.parametrize("technology", ["sky130A", None])
def test_a_device_of_another_process_with_other_nodes_is_named(technology):
    names = ModelNames(None if technology is None else load(technology))
    with pytest.raises(NetlistError, match="inductor3 is a device of sg13g2 that has no drawing: coil of thick metal"):
        read_netlist(NetlistText(cell("XL1 a b c vss inductor3")), names=names)


def test_a_netlist_of_no_process_is_read_with_every_model():
    circuit = read_netlist(NetlistText(cell("XR1 a b vss pplus_u_m1 r_width=1u r_length=20u")), identify_modules=False)
    assert [device.model for device in circuit.devices] == ["pplus_u_m1"]


@pytest.mark.parametrize("rfmode", [0, 1])
def test_a_parameter_of_a_json_netlist_makes_another_device_of_the_model(rfmode):
    data = {
        "name": "t",
        "ports": ["d", "g", "s", "b"],
        "devices": [
            {
                "id": "M1",
                "type": "nmos",
                "model": "sg13_lv_nmos",
                "terminals": {"d": "d", "g": "g", "s": "s", "b": "b"},
                "params": {"w": 1e-6, "l": 1e-6, "rfmode": rfmode},
            }
        ],
    }

    def read(**device_map):
        return read_netlist(NetlistText(json.dumps(data)), names=ModelNames(load("sg13g2"), device_map))

    if not rfmode:
        assert [device.model for device in read().devices] == ["sg13_lv_nmos"]
        return
    assert [device.model for device in read().devices] == ["rfnmos"]
    circuit = read(rfnmos="sg13_lv_nmos")
    assert [device.model for device in circuit.devices] == ["sg13_lv_nmos"]
    assert [each.model for each in circuit.replaced] == ["rfnmos"]
    assert ModelNames(load("sg13g2")).applied(circuit) == circuit  # what is written for the next tool is not refused


def test_a_model_card_that_exchanges_the_polarity_of_a_device_of_the_process_is_refused():
    text = ".model nfet_01v8 pmos level=1\n.subckt t d g s b\nM1 d g s b nfet_01v8 w=1u l=1u\n.ends"
    with pytest.raises(NetlistError, match="nfet_01v8 makes it a pmos, and the process has it as a nmos"):
        read_netlist(NetlistText(text), names=ModelNames(load("sky130A")))


def test_the_example_of_a_replacement_withstands_the_voltage_of_the_device():
    with pytest.raises(
        UnsupportedOperationError, match=r'such as \{"sky130_fd_pr__esd_nfet_05v0_nvt": "nfet_g5v0d10v5"\}'
    ):
        read_netlist(
            NetlistText("X1 d g s b sky130_fd_pr__esd_nfet_05v0_nvt w=1 l=0.5\n"), names=ModelNames(load("sky130A"))
        )
