"""Transistors drawn as the foundry's cell: of every size clean and found again, planted errors found."""

import re

import klayout.db as kdb
import pytest

from layoutkit.circuit import Circuit, Device, map_circuit, read_netlist
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.draw.bipolar import BipolarSpec, bipolar, draw_bipolars
from layoutkit.drc.check import check
from layoutkit.errors import GeometryError, NetlistError
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.technology import load
from layoutkit.technology.passive_sizes import PassiveSize

TECH = load("sg13g2")
WIDTH_UM = {"npn13G2": 0.07, "npn13G2l": 0.07, "npn13G2v": 0.12}
SIZES = [("npn13G2", 1, 0.9), ("npn13G2", 10, 0.9), ("npn13G2l", 1, 1.0), ("npn13G2l", 4, 2.5), ("npn13G2l", 2, 1.36)]
SIZES += [("npn13G2v", 1, 1.0), ("npn13G2v", 8, 5.0), ("npn13G2v", 3, 2.295)]


def drawn(flavour, emitters, length_um, counts=(1,), *, dummies=0, pattern=(), tech=TECH):
    """Return the module and its netlist: transistors of these units with one emitter net and one substrate."""
    size = {"w": round(WIDTH_UM.get(flavour, 1.0) * emitters * 1e-6, 12), "l": length_um * 1e-6}
    nets = [{"c": f"c{i}", "b": f"b{i}", "e": "e", "s": "sub"} for i, _ in enumerate(counts)]
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    transistors = tuple(
        bipolar(tech, f"Q{i}", flavour, PassiveSize(size["w"], size["l"], m), nets[i]) for i, m in enumerate(counts)
    )
    module = draw_bipolars(layout, tech, BipolarSpec("X", transistors, dummies, tuple(pattern)))
    devices = tuple(
        Device(f"Q{i}", "npn", flavour, {**size, "nf": emitters, "m": m}, nets[i]) for i, m in enumerate(counts)
    )
    return module, Circuit("x", devices, tuple(dict.fromkeys(net for each in nets for net in each.values())))


def region(module, layer):
    return kdb.Region(module.cell.begin_shapes_rec(TECH.layer(module.layout, layer))).merged()


def judged(module, netlist):
    return compare(extract(module.layout, module.cell, TECH), netlist)


@pytest.mark.parametrize(("flavour", "emitters", "length"), SIZES)
def test_every_size_is_clean_and_found_again(flavour, emitters, length):
    module, netlist = drawn(flavour, emitters, length, (2,))
    report = check(module.layout, module.cell, TECH)
    assert (report.complete, [verdict.rule.id for verdict in report.violated]) == (True, [])
    result = judged(module, netlist)
    assert [mismatch.message for mismatch in result.mismatches] == []
    assert (result.matched, result.complete) == (True, True)
    (device,) = result.extraction.devices
    assert device.w_um == pytest.approx(2 * length)  # two units; the longer side counts as width
    assert device.l_um == pytest.approx(WIDTH_UM[flavour] * emitters)


def test_emitters_stand_where_the_cell_has_them():
    """Numbers of the manual of cells: npn13G2 has a pitch of 1.85 um, a base of 0.24 um of Metal1."""
    module, _ = drawn("npn13G2", 3, 0.9)
    boxes = sorted((polygon.bbox() for polygon in region(module, "EmWind").each()), key=lambda box: box.left)
    assert [(box.width(), box.height()) for box in boxes] == [(70, 900)] * 3
    assert [box.left - boxes[0].left for box in boxes] == [0, 1850, 3700]
    (marker,) = region(module, "TRANS").each()
    assert (marker.bbox().width(), marker.bbox().height()) == (4900 + 2 * 1850, 5310)


def test_longer_emitters_move_what_lies_above_them_and_hold_more_cuts():
    low, high = (drawn("npn13G2v", 1, length)[0] for length in (1.0, 1.82))
    marker = [region(module, "TRANS").bbox().height() for module in (low, high)]
    assert marker[1] - marker[0] == 820
    inside = [(region(m, "Via1") & region(m, "EmWiHV").sized(300)).merged().count() for m in (low, high)]
    assert inside[1] - inside[0] == 2  # 0.41 um each


@pytest.mark.parametrize("flavour", ["npn13G2l", "npn13G2v"])
def test_the_vias_of_emitters_of_any_length_lie_in_their_metal(flavour):
    cell, beyond = TECH.passives[flavour].cell, 50  # V1.c1: enclosure at the ends of a line. [dbu]
    for length in range(1000, TECH.passives[flavour].max_l + 1, 5):
        shapes = cell.shapes(1, length)
        metal = kdb.Region([kdb.Polygon([kdb.Point(*point) for point in points]) for points in shapes["Metal1"]])
        cuts = kdb.Region([kdb.Polygon([kdb.Point(*point) for point in points]) for points in shapes["Via1"]])
        assert (cuts.sized(0, beyond, 2) - metal).is_empty(), length


def test_a_pair_has_one_centroid_and_every_unit_a_ring_of_its_own():
    module, netlist = drawn("npn13G2", 1, 0.9, (2, 2), dummies=1, pattern=("AB", "BA"))
    assert module.centroid_error() == 0
    result = judged(module, netlist)
    assert (result.matched, len(result.extraction.dummies)) == (True, 12)
    around = kdb.Region([gate.box.enlarged(3000, 3000) for gate in module.gates])
    assert (region(module, "TRANS").covering(kdb.Region([g.box for g in module.gates]))).count() == 16
    assert around.count() == 16
    assert not list(check(module.layout, module.cell, TECH).violated)


def erase(module, layer, box):
    shapes = module.cell.shapes(TECH.layer(module.layout, layer))
    found = kdb.Region(shapes)
    shapes.clear()
    shapes.insert(found - kdb.Region(box))


@pytest.mark.parametrize("layer", ["TRANS", "EmWind", "nSD.block", "Activ.mask", "Cont", "pSD", "Via1", "Metal1"])
def test_a_layer_that_is_missing_is_found(layer):
    module, netlist = drawn("npn13G2", 2, 0.9)
    erase(module, layer, region(module, "TRANS").bbox().enlarged(800, 800))
    assert not judged(module, netlist).matched


def test_another_number_of_emitters_is_a_mismatch():
    module, _ = drawn("npn13G2", 2, 0.9)
    _, other = drawn("npn13G2", 3, 0.9)
    assert not judged(module, other).matched
    assert not judged(*[drawn("npn13G2l", 1, 1.0)[0], drawn("npn13G2l", 1, 1.005)[1]]).matched


@pytest.mark.parametrize("turn", range(8))
def test_a_cell_is_found_in_every_orientation(turn):
    module, netlist = drawn("npn13G2l", 3, 1.5)
    module.cell.transform(kdb.Trans(turn % 4, turn > 3, 0, 0))
    assert judged(module, netlist).matched


def test_sizes_that_the_process_lacks_are_refused():
    for flavour, emitters, length in (("npn13G2", 11, 0.9), ("npn13G2", 1, 1.0), ("npn13G2l", 1, 2.6)):
        with pytest.raises(GeometryError):
            drawn(flavour, emitters, length)


CARDS = """.subckt x c b e vss t
XQ1 c b e vss npn13G2 Nx=4
XQ2 c b e vss npn13G2l Nx=2 El=1.5 m=3
XQ3 c b e vss t npn13G2v_5t Nx=1 le=2u
QQ4 c b e vss npn13G2 AE=0.126p PE=2.08u AB=25p PB=23u
QQ5 c b e vss npn13G2v we=120n le=1u m=2
.ends
"""


def test_every_dialect_states_emitters_and_their_length(tmp_path):
    path = tmp_path / "x.spice"
    path.write_text(CARDS)
    mapped = map_circuit(read_netlist(str(path)), TECH)
    found = [
        (d.model, d.nf, round(d.w * 1e6, 6), round(d.l * 1e6, 6), d.m, sorted(d.terminals)) for d in mapped.devices
    ]
    nodes = ["b", "c", "e", "s"]
    assert found == [
        ("npn13G2", 4, 0.28, 0.9, 1, nodes),
        ("npn13G2l", 2, 0.14, 1.5, 3, nodes),
        ("npn13G2v", 1, 0.12, 2.0, 1, nodes),
        ("npn13G2", 2, 0.14, 0.9, 1, nodes),
        ("npn13G2v", 1, 0.12, 1.0, 2, nodes),
    ]


def test_what_a_build_writes_of_an_emitter_is_read_back_as_it_was(run_script, tmp_path):
    """Reference and extracted netlist state number and length; LVS by its own tool answers for the same layout."""
    (tmp_path / "q.spice").write_text(".subckt q c b e s\nXQ1 c b e s npn13G2l Nx=2 le=2.5u\n.ends\n")
    build, lvs = "netlist-to-gds/scripts/build_layout.py", "lvs-check/scripts/run_check.py"
    chosen = ("--technology", "sg13g2")
    assert run_script(build, "--netlist-path", "q.spice", "--workspace", "ws", *chosen)[0] == 0
    for name in ("reference.spice", "extracted.spice"):
        (card,) = (line for line in (tmp_path / "ws" / name).read_text().splitlines() if line.startswith("XQ1"))
        assert card.split()[-3:] == ["le=2.5u", "Nx=2", "m=1"], name
    code, answer = run_script(lvs, "--layout-path", "ws/layout.gds", "--netlist-path", "q.spice", *chosen)
    assert (code, answer["data"]["matched"]) == (0, True)
    assert set(answer["data"]["devices"]["extracted"][0]["nets"]) == {"c", "b", "e", "s"}


def test_a_transistor_without_a_substrate_node_is_on_that_of_the_others(run_script, tmp_path):
    (tmp_path / "q.spice").write_text(".subckt q a b e s\nXQ1 a b e npn13G2 Nx=1\nXQ2 b b e s npn13G2 Nx=1\n.ends\n")
    build = "netlist-to-gds/scripts/build_layout.py"
    code, answer = run_script(build, "--netlist-path", "q.spice", "--workspace", "ws", "--technology", "sg13g2")
    assert (code, answer["data"]["lvs"]["matched"]) == (0, True)


def test_a_number_of_emitters_is_whole(tmp_path):
    path = tmp_path / "x.spice"
    path.write_text(".subckt x c b e s\nXQ1 c b e s npn13G2 Nx=1.5\n.ends\n")
    with pytest.raises(NetlistError, match=r"1\.5 emitters, which must be a whole number"):
        map_circuit(read_netlist(str(path)), TECH)


def test_wrong_emitters_are_all_reported_at_once(tmp_path):
    path = tmp_path / "x.spice"
    path.write_text(".subckt x c b e s\nXQ1 c b e s npn13G2 Nx=11\nXQ2 c b e s npn13G2l Nx=1 El=9\n.ends\n")
    with pytest.raises(NetlistError, match=r"XQ1.*1 to 10.*XQ2.*1 to 2.5 um"):
        map_circuit(read_netlist(str(path)), TECH)


SKY = load("sky130A")
# Sides of the foundry's cell, its emitter with gate and its contacts: measured in sky130_fd_pr. [um], count
FIXED = {
    "npn_05v5_W1p00L1p00": (1.0, (8.62, 8.62), (1.0, 1.0), 121),
    "npn_05v5_W1p00L2p00": (2.0, (8.62, 9.62), (1.0, 2.0), 142),
    "npn_11v0_W1p00L1p00": (1.0, (9.75, 9.75), (4.63, 4.625), 157),
}


def sky(module, layer):
    return kdb.Region(module.cell.begin_shapes_rec(SKY.layer(module.layout, layer))).merged()


@pytest.mark.parametrize("flavour", sorted(FIXED))
def test_fixed_npns_of_sky130a_are_clean_and_found_in_every_orientation(flavour):
    length, sides, emitter, contacts = FIXED[flavour]
    module, netlist = drawn(flavour, 1, length, (2, 1), tech=SKY)
    report = check(module.layout, module.cell, SKY)
    assert (report.complete, [verdict.rule.id for verdict in report.violated]) == (True, [])
    well = next(sky(module, "nwell").each())
    assert (well.bbox().width() / 1000, well.bbox().height() / 1000) == sides
    boxes = {(polygon.bbox().width() / 1000, polygon.bbox().height() / 1000) for polygon in sky(module, "diff").each()}
    assert boxes == {emitter}
    wells = kdb.Region([kdb.Polygon(polygon.bbox()) for polygon in sky(module, "nwell").each()])
    assert sky(module, "licon1").inside(wells).count() == 3 * contacts
    deep = sky(module, "dnwell")
    assert deep.space_check(6300).count() == 0
    for turn in (kdb.Trans.R0, kdb.Trans.R90, kdb.Trans.M0, kdb.Trans.M45):
        top = module.layout.create_cell(f"T{turn}")
        top.insert(kdb.CellInstArray(module.cell.cell_index(), kdb.Trans(turn)))
        top.flatten(False)
        result = compare(extract(module.layout, top, SKY), netlist)
        assert ([each.message for each in result.mismatches], result.complete) == ([], True)


@pytest.mark.parametrize(
    ("layer", "box", "says"),
    [
        ("tap", (-100, -1600, 100, -1400), "tap is not that"),
        ("nsdm", (-2000, -2000, 2000, 2000), "nsdm is not that"),
        ("nwell", (-4310, -4310, 4310, 4310), "nwell is not that"),
        ("lvtn", (-100, -100, 100, 100), "lvtn lies in it"),
        ("hvi", (-6000, -6000, 6000, 6000), "hvi lies in it"),
        ("licon1", (-3600, 0, -3430, 3145), "licon1 is not that"),
    ],
)
def test_a_changed_fixed_npn_is_no_device(layer, box, says):
    module, netlist = drawn("npn_05v5_W1p00L1p00", 1, 1.0, tech=SKY)
    at = next(sky(module, "diff").each()).bbox().center()
    erased = sky(module, layer) - kdb.Region(kdb.Box(*box).moved(at.x, at.y)) if layer in ("tap", "licon1") else None
    shapes = module.cell.shapes(SKY.layer(module.layout, layer))
    if erased is not None:
        shapes.clear()
        shapes.insert(erased)
    else:
        shapes.insert(kdb.Box(*box).moved(at.x, at.y))
    result = compare(extract(module.layout, module.cell, SKY), netlist)
    assert not result.matched
    assert re.search(says, " ".join(mismatch.message for mismatch in result.mismatches))


def test_a_well_that_touches_the_collector_is_on_its_net():
    module, netlist = drawn("npn_05v5_W1p00L1p00", 1, 1.0, (1, 1), tech=SKY)
    assert compare(extract(module.layout, module.cell, SKY), netlist).matched
    box = sky(module, "nwell").bbox()
    module.cell.shapes(SKY.layer(module.layout, "nwell")).insert(
        kdb.Box(box.left + 8620, box.center().y - 500, box.right - 8620, box.center().y + 500)
    )
    result = compare(extract(module.layout, module.cell, SKY), netlist)
    assert not result.matched
    assert "shorted" in " ".join(mismatch.message for mismatch in result.mismatches)


GF = load("gf180mcuD")
# Sides of the emitter and the collector's well, and contacts in that, measured in the PDK's cells. [um], count
GF_FIXED = {
    "npn_00p54x02p00": ((0.54, 2.0), (7.34, 8.8), 45),
    "npn_00p54x04p00": ((0.54, 4.0), (7.34, 10.8), 65),
    "npn_00p54x08p00": ((0.54, 8.0), (7.34, 14.8), 105),
    "npn_00p54x16p00": ((0.54, 16.0), (7.34, 22.8), 190),
    "npn_05p00x05p00": ((5.0, 5.0), (11.8, 11.8), 149),
    "npn_10p00x10p00": ((10.0, 10.0), (16.8, 16.8), 400),
}
WIDTH_UM |= {flavour: sides[0] for flavour, (sides, _, _) in GF_FIXED.items()}


def gf(module, layer):
    return kdb.Region(module.cell.begin_shapes_rec(GF.layer(module.layout, layer))).merged()


@pytest.mark.parametrize("flavour", sorted(GF_FIXED))
def test_fixed_npns_of_gf180mcud_are_clean_and_found_in_every_orientation(flavour):
    emitter, sides, contacts = GF_FIXED[flavour]
    module, netlist = drawn(flavour, 1, emitter[1], (2, 1), tech=GF)
    report = check(module.layout, module.cell, GF)
    assert (report.complete, [verdict.rule.id for verdict in report.violated]) == (True, [])
    wells = gf(module, "DNWELL")
    assert {(well.bbox().width() / 1000, well.bbox().height() / 1000) for well in wells.each()} == {sides}
    assert gf(module, "Contact").inside(wells).count() == 3 * contacts
    for turn in (kdb.Trans.R0, kdb.Trans.R90, kdb.Trans.M0, kdb.Trans.M45):
        top = module.layout.create_cell(f"T{turn}")
        top.insert(kdb.CellInstArray(module.cell.cell_index(), kdb.Trans(turn)))
        top.flatten(False)
        result = compare(extract(module.layout, top, GF), netlist)
        assert ([each.message for each in result.mismatches], result.complete) == ([], True)


@pytest.mark.parametrize(
    ("layer", "box", "says"),
    [
        ("Pplus", (-100, -100, 100, 100), "Pplus is not that"),
        ("LVPWELL", (-2000, -2000, 2000, 2000), "LVPWELL is not that"),
        ("Dualgate", (-5000, -5000, 5000, 5000), "Dualgate lies in it"),
        ("COMP", (-1300, -200, -1000, 200), "COMP is not that"),
    ],
)
def test_a_changed_npn_of_gf180mcud_is_no_device(layer, box, says):
    module, netlist = drawn("npn_00p54x02p00", 1, 2.0, tech=GF)
    at = gf(module, "DNWELL").bbox().center()
    module.cell.shapes(GF.layer(module.layout, layer)).insert(kdb.Box(*box).moved(at.x, at.y))
    result = compare(extract(module.layout, module.cell, GF), netlist)
    assert not result.matched
    assert re.search(says, " ".join(mismatch.message for mismatch in result.mismatches))


VARACTORS = {(3.74, 0.3): "", (3.74, 0.8): "_w3p74_l0p8", (9.74, 0.3): "_w9p74_l0p3", (9.74, 0.8): "_w9p74_l0p8"}


@pytest.mark.parametrize(("width", "length"), VARACTORS)
@pytest.mark.parametrize("pairs", [1, 7, 10])
def test_every_varactor_is_clean_and_found_again(width, length, pairs):
    flavour = f"sg13_hv_svaricap{VARACTORS[width, length]}"
    nets = {"g1": "a", "w": "w", "g2": "b", "bn": "sub"}
    layout = kdb.Layout()
    layout.dbu = TECH.dbu_um
    size = PassiveSize(round(length * pairs * 1e-6, 12), width * 1e-6, 2)
    module = draw_bipolars(layout, TECH, BipolarSpec("X", (bipolar(TECH, "C1", flavour, size, nets),)))
    netlist = read_netlist(
        NetlistText(
            f".subckt x a w b sub\nC1 a w b sub sg13_hv_svaricap w={width}u l={length}u Nx={pairs} m=2\n.ends\n"
        )
    )
    report = check(module.layout, module.cell, TECH)
    assert (report.complete, [verdict.rule.id for verdict in report.violated]) == (True, [])
    result = judged(module, netlist)
    assert [mismatch.message for mismatch in result.mismatches] == []
    assert (result.matched, result.complete) == (True, True)
    gates = (region(module, "GatPoly") & region(module, "Activ") & region(module, "NWell")).area() / 1e6
    assert gates >= 2 * 2 * pairs * width * length  # two units, two gates a pair; their comb lies on Activ as well
    (device,) = result.extraction.circuit.devices
    assert (device.params["nf"], device.params["m"], device.model) == (pairs, 2, "sg13_hv_svaricap")


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ("w=9.74u l=0.8u Nx=3", ""),
        ("w=9.74u l=0.3u Nx=3", "sg13_hv_svaricap_w9p74_l0p3"),  # the other length is another device of the model
        ("w=9.74u l=0.8u Nx=4", "units|size|W|area"),
    ],
)
def test_lvs_compares_the_size_and_the_pairs_of_gates_of_a_varactor(card, said):
    nets = {"g1": "a", "w": "w", "g2": "b", "bn": "sub"}
    layout = kdb.Layout()
    layout.dbu = TECH.dbu_um
    flavour, size = "sg13_hv_svaricap_w9p74_l0p8", PassiveSize(2.4e-6, 9.74e-6, 1)
    module = draw_bipolars(layout, TECH, BipolarSpec("X", (bipolar(TECH, "C1", flavour, size, nets),)))
    result = judged(
        module, read_netlist(NetlistText(f".subckt x a w b sub\nC1 a w b sub sg13_hv_svaricap {card}\n.ends\n"))
    )
    assert result.matched is not bool(said)
    assert not said or re.search(said, " ".join(each.message for each in result.mismatches))


def test_a_pair_of_varactors_has_one_centre():
    nets = [{"g1": f"a{i}", "w": "w", "g2": f"b{i}", "bn": "sub"} for i in range(2)]
    layout = kdb.Layout()
    layout.dbu = TECH.dbu_um
    pair = tuple(bipolar(TECH, f"C{i}", "sg13_hv_svaricap", PassiveSize(0.6e-6, 3.74e-6, 2), nets[i]) for i in range(2))
    module = draw_bipolars(layout, TECH, BipolarSpec("X", pair, 1))
    assert check(module.layout, module.cell, TECH).violated == ()
    cards = [f"C{i} a{i} w b{i} sub sg13_hv_svaricap w=3.74u l=0.3u Nx=2 m=2" for i in range(2)]
    result = judged(module, read_netlist(NetlistText("\n".join([".subckt x a0 b0 a1 b1 w sub", *cards, ".ends", ""]))))
    assert result.matched
    centres = {
        name: [sum(values) / len(values) for values in zip(*places, strict=True)]
        for name in ("C0", "C1")
        for places in [[(each.x, each.y) for each in module.instances if each.parent == name]]
    }
    assert centres["C0"] == centres["C1"]


def test_a_varactor_has_gates_and_no_emitters():
    card = "C1 a w b sub sg13_hv_svaricap w=3.74u l=0.3u Nx=11"
    with pytest.raises(NetlistError, match="has 11 pairs of gates, it must have 1 to 10"):
        map_circuit(read_netlist(NetlistText(f".subckt x a w b sub\n{card}\n.ends\n")), TECH)


@pytest.mark.parametrize(
    ("sizes", "size"),
    [
        ("w=9.74u", (0.3, 9.74)),
        ("l=0.8u", (0.8, 3.74)),
        ("w=9.74u Nx=3", (0.9, 9.74)),
        ("l=0.3u Nx=4", (1.2, 3.74)),
        ("", (0.3, 3.74)),
    ],
)
def test_a_lone_side_of_a_varactor_is_read_as_what_it_is(sizes, size):
    card = f"C1 a w b sub sg13_hv_svaricap {sizes}"
    netlist = read_netlist(NetlistText(f".subckt x a w b sub\n{card}\n.ends\n"))
    mapped = map_circuit(netlist, TECH)
    (device,) = mapped.devices
    assert [round(device.params[side] * 1e6, 9) for side in ("w", "l")] == list(size)
    told = mapped.warnings[len(netlist.warnings) :]
    assert len(told) == bool(sizes)
    assert all(f"became {size[0] / device.nf:g} x {size[1]:g} um)" in text for text in told)


@pytest.mark.parametrize("sizes", ["w=5u", "l=0.5u", "w=3.74u l=0.6u", "l=2.4u Nx=3"])
def test_a_size_that_no_varactor_has_is_refused(sizes):
    card = f"C1 a w b sub sg13_hv_svaricap {sizes}"
    with pytest.raises(NetlistError, match=r"each of|must be 3\.74 um"):
        map_circuit(read_netlist(NetlistText(f".subckt x a w b sub\n{card}\n.ends\n")), TECH)
