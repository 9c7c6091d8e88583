"""The same circuit in other words: other names and another order of cards and terminals give the same layout."""

import random
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.circuit import map_circuit, read_netlist
from layoutkit.circuit.ranked_names import RankedName, named_after, ranked
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.errors import LayoutkitError
from layoutkit.flow.build import build_layout
from layoutkit.flow.contents import stored_placement
from layoutkit.flow.design import LayoutRequest
from layoutkit.layout.workspace import Workspace
from layoutkit.technology import load
from layoutkit.tools.whole_flow import place_circuit

BENCH = Path(__file__).resolve().parents[2] / "bench"
OF_ONE_PROCESS = {
    path.name.partition(".")[0] for path in BENCH.glob("circuits/*.options.json") if "technologies" in path.read_text()
}
AMPLIFIER = """.subckt amplifier inp inn out bias vdd vss
M1 x inp t vss nmos W=4u L=0.5u nf=2
M2 out inn t vss nmos W=4u L=0.5u nf=2
M3 x x vdd vdd pmos W=4u L=0.5u nf=2
M4 out x vdd vdd pmos W=4u L=0.5u nf=2
M5 t bias vss vss nmos W=4u L=1u nf=2
M6 bias bias vss vss nmos W=2u L=1u nf=1
.ends
"""
SWITCHES = """.subckt switches a b c en enb vdd vss
M1 a en b vss nmos W=2u L=0.5u
M2 a enb b vdd pmos W=4u L=0.5u
M3 b en c vss nmos W=2u L=0.5u
M4 b enb c vdd pmos W=4u L=0.5u
R1 a m 5k
R2 m c 5k
R3 m vss 5k
.ends
"""
STAGES = """.subckt stage in out vb vdd vss
MP1 s vb vdd vdd pmos W=4u L=0.5u nf=2
MP2 out in s vdd pmos W=4u L=0.5u nf=2
MN2 out in vss vss nmos W=2u L=0.5u nf=2
.ends
.subckt stages in out vb vdd vss
X1 in n1 vb vdd vss stage
X2 n1 n2 vb vdd vss stage
MO out n2 vss vss nmos W=4u L=0.5u nf=2
MP out vb vdd vdd pmos W=4u L=0.5u nf=2
MB vb vb vdd vdd pmos W=4u L=0.5u nf=2
.ends
"""
GUARDED = """.subckt guarded in fb b o vdd vss
M1 b b vss vss nmos W=2u L=1u m=2
M2 o b vss vss nmos W=2u L=1u m=4
M3 o fb vdd vdd pmos W=2u L=0.5u
MD1 vss vss vss vss nmos W=2u L=1u
MD2 vss vss vss vss nmos W=2u L=1u
MD3 vss vss vss vss nmos W=2u L=0.5u
MD4 vss vss vss vss nmos W=1u L=0.5u
MD5 vss vss vss vss nmos W=1u L=0.5u
MC1 vss vdd vss vss nmos W=3u L=2u m=2
R1 in n1 5k
R2 n1 n2 5k
R3 n2 fb 5k
R4 fb n3 5k
R5 n3 vss 5k
R6 vss vss 5k
R7 vss vss 5k
C1 o in 200f
C2 o in 200f
.ends
"""
ENDS = {"M": 4, "R": 2, "C": 2, "Q": 3}


def scrambled(text, rng, kept=()):
    """Return a netlist with other names of nets and devices, its cards and the ports of the last cell in another order.

    Drain and source of some transistors are exchanged, and so are the ends of some resistors. Nets in ``kept`` keep
    their names.
    """
    lines = [line for line in text.splitlines() if line and not line.startswith("*")]
    top = max(index for index, line in enumerate(lines) if line.startswith(".subckt"))
    result, names, cards = [], {}, []

    def renamed(nets):
        return [names.setdefault(net, f"{rng.choice('aqz')}{rng.randrange(10**6)}_{len(names)}") for net in nets]

    for index, line in enumerate(lines):
        first, *words = line.split()
        if first == ".subckt":
            names, cards = {net: net for net in kept}, []
            ports = renamed(words[1:])
            if index == top:
                rng.shuffle(ports)
            result.append(" ".join((first, words[0], *ports)))
        elif first == ".ends":
            rng.shuffle(cards)
            result += [*cards, line]
        elif first.startswith("."):
            result.append(line)
        else:
            count = ENDS.get(first[0], len(words) - 1)
            nets = renamed(words[:count])
            if first[0] in "MR" and rng.random() < 0.5:
                other = 2 if first[0] == "M" else 1
                nets[0], nets[other] = nets[other], nets[0]
            name = f"{first[0]}{rng.choice('AZ19')}{rng.randrange(10**6)}_{len(cards)}"
            cards.append(" ".join((name, *nets, *words[count:])))
    return "\n".join((*result, ""))


def geometry(folder):
    """Return the merged shapes of each layer of the flattened layout in a workspace."""
    layout = kdb.Layout()
    layout.read(str(folder / "layout.gds"))
    cell = layout.top_cell()
    return {
        (info.layer, info.datatype): kdb.Region(cell.begin_shapes_rec(layout.layer(info))).merged()
        for info in layout.layer_infos()
    }


def differences(one, other):
    found = {layer: one.get(layer, kdb.Region()) ^ other.get(layer, kdb.Region()) for layer in {*one, *other}}
    return {layer: str(region) for layer, region in found.items() if not region.is_empty()}


def built(text, technology, folder, **options):
    build_layout(
        LayoutRequest(netlist_text=text, technology=technology, workspace=str(folder), last_stage="export", **options)
    )
    return geometry(folder)


@pytest.mark.parametrize(
    ("text", "technology"),
    [
        (AMPLIFIER, "sky130A"),
        (AMPLIFIER, "gf180mcuD"),
        (AMPLIFIER, "sg13g2"),
        (SWITCHES, "sg13g2"),
        (STAGES, "sky130A"),
        (GUARDED, "sky130A"),
    ],
    ids=[
        "sky130A amplifier",
        "gf180mcuD amplifier",
        "sg13g2 amplifier",
        "sg13g2 switches",
        "sky130A shared cells",
        "sky130A dummies",
    ],
)
def test_names_and_the_order_of_cards_and_terminals_decide_nothing(text, technology, tmp_path):
    expected = built(text, technology, tmp_path / "given")
    other = scrambled(text, random.Random(5))
    assert differences(built(other, technology, tmp_path / "other"), expected) == {}


def test_the_comparison_finds_a_transistor_of_another_width(tmp_path):
    wider = AMPLIFIER.replace("M5 t bias vss vss nmos W=4u", "M5 t bias vss vss nmos W=4.4u")
    expected = built(AMPLIFIER, "sky130A", tmp_path / "given")
    assert differences(built(wider, "sky130A", tmp_path / "other"), expected)


def mapped(text):
    return map_circuit(read_netlist(NetlistText(text), identify_modules=False), load("sky130A"))


def numbered(circuit):
    """Return the circuit with numbers for names."""
    number = {net: index for index, net in enumerate(sorted(circuit.nets))}
    cards = [
        (device.type, sorted(device.params.items()), {end: number[net] for end, net in device.terminals.items()})
        for device in circuit.devices
    ]
    return cards, [number[port] for port in circuit.ports]


@pytest.mark.parametrize(
    "path",
    [
        *(path for path in sorted(BENCH.glob("circuits/*.spice")) if path.stem not in OF_ONE_PROCESS),
        BENCH / "folded_cascode_42.spice",
    ],
    ids=lambda path: path.stem,
)
def test_the_circuit_that_is_laid_out_is_the_same_in_numbers(path):
    text = path.read_text(encoding="utf-8")
    kept = ("vdd", "vss") if path.stem == "isolated_follower" else ()  # it has no PMOS whose body is on vdd
    expected = numbered(ranked(mapped(text)))
    for seed in range(3):
        assert numbered(ranked(mapped(scrambled(text, random.Random(seed), kept)))) == expected


def test_the_constraints_of_a_user_name_devices_whatever_their_order(tmp_path):
    symmetry = {"pairs": [["M2", "M1"]], "self_symmetric": ["M5"], "net_pairs": [["inn", "inp"]], "reason": "stated"}
    options = {
        "constraints": {
            "symmetry": [symmetry],
            "port_sides": [{"port": "inp", "side": "left", "reason": "stated"}],
        }
    }
    cards = AMPLIFIER.splitlines()
    shuffled = "\n".join((cards[0], *reversed(cards[1:-1]), cards[-1], ""))
    expected = built(AMPLIFIER, "sky130A", tmp_path / "given", **options)
    assert differences(built(shuffled, "sky130A", tmp_path / "other", **options), expected) == {}


def exact(value):
    """Return whether data holds nothing but exact JSON values, as the answers of tools must."""
    if isinstance(value, dict):
        return all(exact(key) and exact(each) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(exact, value))
    return type(value) in (str, int, float, bool, type(None))


def test_answers_and_the_details_of_errors_hold_plain_names(tmp_path):
    report = build_layout(LayoutRequest(netlist_text=STAGES, technology="sky130A", workspace=str(tmp_path / "w")))
    assert exact(report)
    assert exact(place_circuit({"netlist_text": STAGES, "technology": "sky130A", "workspace": str(tmp_path / "p")}))
    workspace = Workspace(str(tmp_path / "w"))
    placed = stored_placement(workspace, workspace.technology(None))
    assert all(type(module.name) is str for module in placed.placed.modules.values())
    assert exact(LayoutkitError("wrong", details={"devices": [RankedName("M1", 1)]}).details)


def test_a_ranked_name_sorts_by_its_rank_and_is_its_text_otherwise():
    first, second = RankedName("z", 1), RankedName("a", 2)
    assert sorted([second, "0", first]) == ["z", "a", "0"]
    assert (first, {"z": 5}[first], f"{first}_1") == ("z", 5, "z_1")
    assert first < second
    assert second >= first
    assert first < "a"
    assert max("a", first) == "a"
    assert sorted([named_after(second, "b"), named_after(first, "c")]) == ["c", "b"]
    assert named_after("plain", "text") == "text"
