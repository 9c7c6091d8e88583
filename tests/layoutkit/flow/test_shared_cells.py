"""Equal instances are one cell, polygon for polygon; verdicts stay clean, also of nested, tied and isolated ones."""

import random

import klayout.db as kdb
import pytest

from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.technology import load
from thorough import in_this_run

FLAVOURS = {
    "sky130A": ("nfet_01v8", "pfet_01v8", "res_high_po", "cap_mim_m3_1"),
    "gf180mcuD": ("nfet_03v3", "pfet_03v3", "ppolyf_u", "cap_mim_2f0_m4m5_noshield"),
    "sg13g2": ("sg13_lv_nmos", "sg13_lv_pmos", "rppd", "cap_cmim"),
}
RING = """* three inverters in a ring
.subckt inv a y vdd vss
MP y a vdd vdd {1} W=2u L=0.5u
MN y a vss vss {0} W=1u L=0.5u
.ends
.subckt ring o vdd vss
X1 o n1 vdd vss inv
X2 n1 n2 vdd vss inv
X3 n2 o vdd vss inv
.ends
"""
AMPLIFIERS = """* two amplifiers with one bias
.subckt ota ip in out vb vdd vss
M1 x ip t vss {0} W=4u L=1u nf=2
M2 out in t vss {0} W=4u L=1u nf=2
M3 x x vdd vdd {1} W=4u L=1u nf=2
M4 out x vdd vdd {1} W=4u L=1u nf=2
M5 t vb vss vss {0} W=4u L=1u nf=2
.ends
.subckt two a b o1 o2 ib vdd vss
X1 a o1 o1 ib vdd vss ota
X2 b o2 o2 ib vdd vss ota
M1 ib ib vss vss {0} W=4u L=1u nf=2
.ends
"""
BODIES = """* followers in wells of their own, with resistors
.subckt fol a y vdd vss
M1 vdd a y y {0} W=4u L=0.6u nf=2
R1 y vss {2} W=1.41u L=14.1u
M2 y y vss vss {0} W=2u L=1u
.ends
.subckt iso a b y z vdd vss
X1 a y vdd vss fol
X2 b z vdd vss fol
M1 y z vdd vdd {1} W=2u L=0.6u
.ends
"""
LADDER = """* a line of cells, each a filter and a follower; resistors alone would be one string
.subckt cell a b vss
R1 a f {2} W=1.41u L=14.1u
C1 f vss {3} W=6u L=6u
M1 vss f b vss {0} W=2u L=0.5u
.ends
.subckt ladder a b vss
X1 a n1 vss cell
X2 n1 n2 vss cell
X3 n2 b vss cell
.ends
"""

SWITCHES = """* two switches whose rails lie between other rails: wires reach the risers over them
.subckt sw d b bb op on vss
M1 op b d vss {0} W=2u L=0.18u
M2 on bb d vss {0} W=2u L=0.18u
.ends
.subckt dac b1 b2 c1 c2 iref op on vss
M0 iref iref vss vss {0} W=2u L=1u
M1 d1 iref vss vss {0} W=2u L=1u
M2 d2 iref vss vss {0} W=2u L=1u
X1 d1 b1 c1 op on vss sw
X2 d2 b2 c2 op on vss sw
.ends
"""


def random_hierarchy(seed):
    """Return a netlist of two levels of gates with some ports tied to supplies and parameters of the instances."""
    choose = random.Random(seed)
    tied = [choose.choice(["n1", "y", "vdd"]), choose.choice(["vss", "n1"])]
    cells = f"""* random
.subckt gate a b y vdd vss w={choose.choice([1, 2])}u
M1 y a vdd vdd {{1}} W='w' L=0.5u
M2 y {choose.choice("ab")} n vss {{0}} W='w' L=0.5u
M3 n b vss vss {{0}} W='w' L={choose.choice([0.5, 1])}u
.ends
.subckt stage a b y vdd vss
X1 a {tied[0]} n1 vdd vss gate
X2 n1 b y vdd vss gate{choose.choice(["", " w=3u"])}
M1 y n1 {tied[1]} vss {{0}} W=2u L=1u
.ends
.subckt top p q r s vdd vss
"""
    nets = ["p", "q", "r", "s"]
    for number in range(3):
        inputs = f"{choose.choice(nets)} {choose.choice([*nets, 'vdd'])}"
        cells += f"X{number} {inputs} {nets[number]} vdd vss {choose.choice(['stage', 'gate'])}\n"
    return f"{cells}X9 p q s vdd vss stage\n.ends\n"


CIRCUITS = {"ring": RING, "amplifiers": AMPLIFIERS, "bodies": BODIES, "ladder": LADDER, "switches": SWITCHES}
CIRCUITS["narrow switches"] = SWITCHES.replace("W=2u L=0.18u", "W=1u L=0.18u")
FEW = [
    ("ring", "sky130A"),
    ("amplifiers", "gf180mcuD"),
    ("bodies", "sg13g2"),
    ("ladder", "sky130A"),
    ("1", "sg13g2"),
    ("2", "gf180mcuD"),
]
EVERY = [(name, technology) for name in CIRCUITS for technology in FLAVOURS]
EVERY += [(str(seed), [*FLAVOURS][seed % len(FLAVOURS)]) for seed in range(12)]  # random ones, in one technology each
CASES = in_this_run(FEW, EVERY)


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    done = {}

    def built(name, technology, **options):
        key = (name, technology, *sorted(options))
        if key not in done:
            folder = tmp_path_factory.mktemp("shared")
            text = CIRCUITS[name] if name in CIRCUITS else random_hierarchy(int(name))
            (folder / "circuit.spice").write_text(text.format(*FLAVOURS[technology]), encoding="utf-8")
            given = {"last_stage": "metrics" if name == "amplifiers" else "lvs", **options}
            request = LayoutRequest(str(folder / "circuit.spice"), technology, str(folder / "ws"), **given)
            done[key] = build_layout(request)
        return done[key]

    return built


def layout_of(report):
    layout = kdb.Layout()
    layout.read(report["files"]["gds"])
    return layout


def places(layout, name):
    """Return where a cell lies in the top cell, through all levels."""
    cell, found = layout.cell(name), []

    def walk(inside, trans):
        for instance in inside.each_inst():
            for each in instance.cell_inst.each_trans():
                if instance.cell_index == cell.cell_index():
                    found.append(trans * each)
                else:
                    walk(instance.cell, trans * each)

    walk(layout.top_cell(), kdb.Trans())
    return found


@pytest.mark.parametrize(("name", "technology"), CASES)
def test_verdicts_are_clean_and_every_instance_is_the_same_cell(build, name, technology):
    report = build(name, technology)
    assert (report["drc"]["total_violations"], report["lvs"]["matched"]) == (0, True)
    assert report["routing"]["failed"] == []
    layout = layout_of(report)
    assert report["hierarchy"]["cells"]
    for cell in report["hierarchy"]["cells"]:
        assert len(places(layout, cell["name"])) == len(cell["instances"]) > 1


@pytest.mark.parametrize(("name", "technology"), CASES[:2])
def test_instances_are_identical_in_the_flat_layout_but_for_wires_above_them(build, name, technology):
    report = build(name, technology)
    layout, process = layout_of(report), load(technology)
    cell = layout.cell(report["hierarchy"]["cells"][0]["name"])
    box = cell.bbox()
    active, poly = (process.layer(layout, process.roles[role]) for role in ("active", "poly"))
    images = [
        [
            (kdb.Region(layout.top_cell().begin_shapes_rec(layer)) & box.transformed(trans)).transformed(
                trans.inverted()
            )
            for layer in (active, poly)
        ]
        for trans in places(layout, cell.name)
    ]
    assert not any(region.is_empty() for region in images[0])
    for other in images[1:]:
        assert all((one ^ another).is_empty() for one, another in zip(images[0], other, strict=True))


def test_three_equal_instances_lie_in_an_array_of_even_pitch(build):
    report = build("ring", "sky130A")
    listed = report["hierarchy"]["cells"][0]["arrays"]
    layout = layout_of(report)
    arrays = [each for cell in layout.each_cell() for each in cell.each_inst() if each.is_regular_array()]
    assert [each.na * each.nb for each in arrays] == [columns * rows for columns, rows in listed] != []
    points = [trans.disp for trans in places(layout, "inv")]
    columns, rows = ({getattr(point, axis) for point in points} for axis in "xy")
    assert len(points) == 3 > len(columns) * len(rows) - 2  # at most one place of the grid is empty


def test_nets_that_metal_of_shared_cells_encloses_are_tried_twice_then_reach_all_upper_metal(build):
    report = build("narrow switches", "sky130A")
    assert [cell["instances"] for cell in report["hierarchy"]["cells"]] == [["X1", "X2"]]
    assert report["hierarchy"]["not_shared"] == []
    assert report["routing"]["failed"] == []
    assert [sorted(each["failed"]) for each in report["placement"]["tries"]] == [["d1", "d2"], ["d1", "d2"], []]
    assert report["drc"]["total_violations"] == 0
    assert report["lvs"]["matched"]


def test_a_warning_about_a_shared_cell_names_it_and_appears_once(build):
    found = [text for text in build("switches", "sky130A")["warnings"] if "split" in text]
    units = "fingers were split into 2, so that the pattern "
    assert [text.partition(units)[0] for text in found] == ["", "in cell sw: "]


def test_devices_keep_their_own_names_in_reports_and_on_the_layout(build):
    report = build("amplifiers", "gf180mcuD")
    drawn = {device for module in report["modules"] for device in module["devices"]}
    assert {"X1.M1", "X2.M1", "M1"} <= drawn
    groups = [{device["id"] for device in group["devices"]} for group in report["matching"]["groups"]]
    assert {"X1.M1", "X1.M2"} in groups
    assert {"X2.M1", "X2.M2"} in groups
    layout = layout_of(report)
    shared = layout.cell("ota")
    layer = load("gf180mcuD").layer(layout, load("gf180mcuD").roles["device_text"])
    assert kdb.Texts(shared.begin_shapes_rec(layer)).is_empty()  # a name would be wrong in the other instance
    texts = {text.string for text in kdb.Texts(layout.top_cell().begin_shapes_rec(layer)).each()}
    assert drawn <= texts
    paths = [each["constraint"] for each in report["constraints"]["outcomes"]]
    assert len(paths) == len(set(paths))


def gates_in(layout, cell, technology):
    """Return how many gates a cell has by its geometry, through all levels."""
    process = load(technology)
    active, poly = (
        kdb.Region(layout.cell(cell).begin_shapes_rec(process.layer(layout, process.roles[role])))
        for role in ("active", "poly")
    )
    return (active & poly).merged().count()


def test_a_mirror_across_cells_is_drawn_as_one_and_its_outputs_are_in_no_cell(build):
    report = build("amplifiers", "gf180mcuD")
    (mirror,) = [each for each in report["modules"] if "M1" in each["devices"]]
    assert set(mirror["devices"]) == {"M1", "X1.M5", "X2.M5"}
    (group,) = [each for each in report["matching"]["groups"] if "M1" in {d["id"] for d in each["devices"]}]
    assert {device["id"] for device in group["devices"]} == {"M1", "X1.M5", "X2.M5"}
    layout = layout_of(report)
    inside, whole = gates_in(layout, "ota", "gf180mcuD"), gates_in(layout, layout.top_cell().name, "gf180mcuD")
    flat = layout.cell(mirror["name"])
    assert gates_in(layout, flat.name, "gf180mcuD") >= 6 == 3 * 2  # dummies come on top
    assert whole == 2 * inside + gates_in(layout, flat.name, "gf180mcuD")
    (text,) = report["hierarchy"]["not_shared"]
    assert "current_mirror_1 (M1, X1.M5, X2.M5) is drawn as one group" in text
    assert text in report["warnings"]
    assert text in report["recognition"]["across_cells"]
    assert "repeated" not in {each["id"] for each in report["review"]["findings"]}  # the rest of the cells is equal


def test_flatten_lays_out_every_device_by_itself(build):
    report = build("ring", "sky130A", flatten=True)
    assert report["hierarchy"]["cells"] == []
    assert (report["drc"]["total_violations"], report["lvs"]["matched"]) == (0, True)
    assert layout_of(report).cell("inv") is None


def test_what_a_constraint_matches_lies_outside_of_its_cells(build):
    wanted = {"matching": [{"devices": ["M1", "X1.M5", "X2.M5"]}]}
    report = build("amplifiers", "gf180mcuD", constraints=wanted, last_stage="place")
    assert [(cell["name"], cell["devices"]) for cell in report["hierarchy"]["cells"]] == [("ota", 4)]
    named = "M1 and X1.M5 and X2.M5"
    assert report["hierarchy"]["not_shared"] == [
        f"X1.M5, X2.M5: laid out outside of their cells, as a constraint matches {named}"
    ]


def test_what_a_constraint_mirrors_dissolves_the_cells(build):
    wanted = {"symmetry": [{"pairs": [["X1.M1", "X2.M1"]]}]}
    report = build("amplifiers", "sky130A", constraints=wanted, last_stage="place")
    assert report["hierarchy"]["cells"] == []
    assert report["hierarchy"]["not_shared"] == [
        "X1, X2: laid out with the rest, as a constraint mirrors X1.M1 and X2.M1"
    ]


def test_cells_with_stated_axes_within_the_halves_of_another_stay_cells(build):
    inner = [{"pairs": [[f"{x}.M1", f"{x}.M2"]], "self_symmetric": [f"{x}.M5"]} for x in ("X1", "X2")]
    outer = {"pairs": [["X1.M1", "X2.M1"], ["X1.M2", "X2.M2"]]}
    report = build("amplifiers", "sky130A", constraints={"symmetry": [outer, *inner]})
    assert [(cell["name"], cell["devices"]) for cell in report["hierarchy"]["cells"]] == [("ota", 5)]
    outcomes = {each["constraint"]: each["obeyed"] for each in report["constraints"]["outcomes"]}
    assert outcomes["symmetry[0].pairs[0]"] is outcomes["symmetry[0].pairs[1]"] is None
    assert outcomes["symmetry[1].pairs[0]"] is outcomes["symmetry[2].pairs[0]"] is not None


def hierarchical_extraction(path):
    """Return what KLayout's own hierarchical extraction finds in a sky130A layout, by layer numbers of that process."""
    layout = kdb.Layout()
    layout.read(path)
    found = kdb.LayoutToNetlist(kdb.RecursiveShapeIterator(layout, layout.top_cell(), []))
    nwell, diff, tap, poly, licon = (
        found.make_layer(layout.layer(*pair), name)
        for pair, name in (
            ((64, 20), "nw"),
            ((65, 20), "diff"),
            ((65, 44), "tap"),
            ((66, 20), "poly"),
            ((66, 44), "ct"),
        )
    )
    metals = [found.make_layer(layout.layer(67 + level, 20), f"m{level}") for level in range(5)]
    cuts = [found.make_layer(layout.layer(67 + level, 44), f"v{level}") for level in range(4)]
    labels = [found.make_text_layer(layout.layer(67 + level, 5), f"l{level}") for level in range(5)]
    bulk = found.make_layer("bulk")
    silicon = {
        "gn": (diff - nwell) & poly,
        "gp": (diff & nwell) & poly,
        "n": diff - nwell - poly,
        "p": diff & nwell - poly,
    }
    silicon |= {"ntap": tap & nwell, "ptap": tap - nwell}
    for name, region in silicon.items():
        found.register(region, name)
    for kind, sides, gate, body in (("NMOS", "n", "gn", bulk), ("PMOS", "p", "gp", nwell)):
        layers = {"SD": silicon[sides], "G": silicon[gate], "P": poly, "W": body}
        found.extract_devices(kdb.DeviceExtractorMOS4Transistor(kind), layers)
    contacted = [poly, *(silicon[name] for name in ("n", "p", "ntap", "ptap"))]
    for region in (nwell, licon, *contacted, *metals, *cuts):
        found.connect(region)
    for one, other in [(nwell, silicon["ntap"]), (licon, metals[0]), *((licon, each) for each in contacted)]:
        found.connect(one, other)
    for level in range(4):
        found.connect(metals[level], cuts[level])
        found.connect(cuts[level], metals[level + 1])
    for metal, texts in zip(metals, labels, strict=True):
        found.connect(metal, texts)
    for region in (bulk, silicon["ptap"]):
        found.connect_global(region, "SUB")
    found.extract_netlist()
    return found


PADS = """* two pads with a current source of bipolar transistors each
.subckt io pad y ib vdd vss
XD1 vdd pad vss diodevdd_2kv m=2
XQ1 y ib vss vss npn13G2l le=1.5u Nx=2
R1 pad y res_metal3 w=2u l=10u
.ends
.subckt pads p1 p2 a b ib vdd vss
X1 p1 a ib vdd vss io
X2 p2 b ib vdd vss io
.ends
"""


def test_shared_cells_keep_the_texts_by_which_a_foundry_knows_a_device(tmp_path):
    request = LayoutRequest(netlist_text=PADS, technology="sg13g2", workspace=str(tmp_path), last_stage="lvs")
    report = build_layout(request)
    assert report["lvs"]["matched"]
    assert report["drc"]["passed"]
    layout = kdb.Layout()
    layout.read(report["files"]["gds"])
    index = layout.layer(*load("sg13g2").spec(load("sg13g2").roles["device_text"]).gds)
    inside = [shape.shape().text_string for shape in layout.cell("io").begin_shapes_rec(index)]
    everywhere = [shape.shape().text_string for shape in layout.cell("pads").begin_shapes_rec(index)]
    assert [text for text in inside if "." not in text and "XQ1" not in text] == ["diodevdd_2kv"] * 2
    assert {f"X{number}.{name}" for number in (1, 2) for name in ("XQ1", "R1")} <= {*everywhere}
    assert everywhere.count("diodevdd_2kv") == 4


@pytest.mark.parametrize(("width", "same"), [("W=1u", True), ("W=1.5u", False)])
def test_klayout_compares_the_layout_with_the_netlist_cell_by_cell(build, tmp_path, width, same):
    found = hierarchical_extraction(build("ring", "sky130A")["files"]["gds"])
    netlist = found.netlist()
    text = RING.format("NMOS", "PMOS").replace("W=1u", width)
    (tmp_path / "reference.spice").write_text(text, encoding="utf-8")
    reference = kdb.Netlist()
    reference.read(str(tmp_path / "reference.spice"), kdb.NetlistSpiceReader())
    known = {circuit.name.upper() for circuit in reference.each_circuit()}
    while inner := [circuit for circuit in netlist.each_circuit() if circuit.name.upper() not in known]:
        netlist.flatten_circuit(inner[0])  # arrays and modules, which the netlist does not have
    netlist.purge()
    assert netlist.circuit_by_name("inv") is not None
    assert kdb.NetlistComparer().compare(netlist, reference) is same
