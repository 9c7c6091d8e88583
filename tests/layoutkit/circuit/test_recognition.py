"""Recognition against circuits that were labelled by hand, before anyone looked at what recognition says of them."""

import random
import shutil
from dataclasses import replace

import pytest
import yaml

from layoutkit.circuit import find_roles, read_netlist
from layoutkit.circuit.orientation import oriented
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.circuit.suggested_constraints import suggest_constraints
from recognition_score import LABELLED, score

BOUNDS = {"must": 0.97, "precision": 0.98}
OTHER = {
    "supplies found": 0.98,
    "supplies right": 0.98,
    "mirror reference": 1.0,
    "tempting pairs explained": 0.85,
    "axis pairs": 0.95,
    "axis net_pairs": 0.95,
    "axis self_symmetric": 0.95,
}


@pytest.fixture(scope="module")
def scored():
    return score(LABELLED)


def test_recognition_agrees_with_the_labels(scored):
    assert len(scored.lines) >= 20
    assert scored.unanswered == []
    assert scored.wrong == []
    assert {part: scored.total(part) for part in BOUNDS if scored.total(part) < BOUNDS[part]} == {}
    assert {name: scored.other[name].share for name in OTHER if scored.other[name].share < OTHER[name]} == {}


def judged(folder, name, change):
    """Return the score of one labelled circuit whose label was changed."""
    for path in LABELLED.glob(f"{name}*"):
        shutil.copy(path, folder)
    path = next(folder.glob("*.labels.yaml"))
    label = yaml.safe_load(path.read_text())
    change(label)
    path.write_text(yaml.safe_dump(label))
    return score(folder)


def test_the_score_counts_what_a_label_says_otherwise(tmp_path):
    """Planted: another reference, a pair that is called wrong, a group that is none, another supply."""

    def change(label):
        label["groups"][0]["reference"] = "XMtail"
        label["groups"][0]["must_outputs"] = ["XMdio", "XMsrc"]
        label["groups"] = [group for group in label["groups"] if group["kind"] != "differential_pair"]
        label["not_matched"] = [["XMla", "XMlb"]]
        label["supplies"]["power"] = ["AVDD", "ibias"]
        label["symmetry"]["net_pairs"] = [["ip", "vo"]]

    result = judged(tmp_path, "miller_amplifier.spice", change)
    assert result.other["mirror reference"].share == 0.5
    assert result.wrong == ["miller_amplifier.spice: xmla xmlb"]
    assert result.precision["differential_pair"].share == 0
    assert result.other["supplies found"].share == pytest.approx(2 / 3)
    assert result.other["axis net_pairs"].share == 0


def test_a_netlist_that_is_refused_counts_as_an_empty_answer(tmp_path):
    result = judged(tmp_path, "schmitt_trigger.spice", lambda label: label.update(top="nothing"))
    assert result.unanswered == ["schmitt_trigger.spice"]
    assert result.total("recall") == 0


def understood(circuit, renamed):
    """Return supplies, groups and symmetry of a circuit under the original names of its devices and nets."""
    roles = find_roles(circuit)
    groups = {(group.type, frozenset(map(renamed.get, group.devices))) for group in roles.groups}
    pairs = {frozenset(map(renamed.get, pair[1:])) for each in roles.symmetry for pair in each.pairs}
    centred = {renamed[name] for each in roles.symmetry for name in each.centred}
    supplies = [{renamed[net] for net in nets} for nets in (roles.supplies.power, roles.supplies.ground)]
    return {"supplies": supplies, "groups": groups, "pairs": pairs, "centred": centred}


def reworded(circuit, seed, kept=()):
    """Return a flat circuit in other words, and its names by the new ones.

    Devices and nets but for those kept are renamed, cards and ports are shuffled, and half of the transistors turned.
    """
    chosen = random.Random(seed)
    inner = [net for net in circuit.nets if net not in kept]
    names = [*circuit.nets, *(device.id for device in circuit.devices)]
    new = {net: f"n{number}" for number, net in enumerate(chosen.sample(inner, len(inner)))}
    devices = []
    for number, device in enumerate(chosen.sample(circuit.devices, len(circuit.devices))):
        new[device.id] = f"D{number}"
        terminals = {terminal: new.get(net, net) for terminal, net in device.terminals.items()}
        other = replace(device, id=new[device.id], terminals=terminals)
        devices.append(other.with_ends_exchanged() if device.is_mos and chosen.random() < 0.5 else other)
    ports = tuple(new.get(port, port) for port in chosen.sample(circuit.ports, len(circuit.ports)))
    boxes = tuple(
        replace(box, nets={pin: new.get(net, net) for pin, net in box.nets.items()}) for box in circuit.black_boxes
    )
    other = replace(circuit, devices=tuple(devices), ports=ports, black_boxes=boxes, subcircuits=())
    return oriented(other), {new.get(name, name): name for name in names}


@pytest.mark.parametrize("path", sorted(LABELLED.glob("*.labels.yaml")), ids=lambda path: path.name.split(".")[0])
@pytest.mark.parametrize("seed", range(3))
def test_names_cards_terminals_and_hierarchy_decide_nothing(path, seed):
    """Ports and supplies are renamed, too, but in the first variant and where only its name tells a supply."""
    label = yaml.safe_load(path.read_text())
    circuit = read_netlist(
        path.parent / label["netlist"], top=label.get("top"), keep_unknown=True, identify_modules=False
    )
    only_named = any(words.startswith("only by") for words in find_roles(circuit).supplies.reasons.values())
    other, back = reworded(circuit, seed, circuit.ports if only_named or not seed else ())
    flat, same = oriented(replace(circuit, subcircuits=())), {name: name for name in back.values()}
    assert understood(other, back) == understood(flat, same)
    assert understood(circuit, same) == understood(flat, same)


PASSIVE = {
    "a divider": "R1 in a 5k\nR2 a mid 5k\nR3 mid lo 5k\nR4 lo {vss} 5k\nR5 {vss} {vss} 5k\n",
    "a ladder": "".join(
        f"Ra{i} b{i} m{i} 5k\nRb{i} m{i} n{i} 5k\n" + (f"Rs{i} n{i} n{i + 1} 5k\n" if i < 3 else "") for i in range(4)
    )
    + "Rt m9 {vss} 5k\nRu n0 m9 5k\n",
    "two dividers": "R1 {vdd} a 5k\nR2 a {vss} 5k\nR3 {vdd} b 5k\nR4 b {vss} 5k\nR5 b c 5k\n",
    "capacitors on one plate": "C1 top b0 9f\nC2 top b1 9f m=2\nC3 top b2 9f m=4\nC4 top {vss} 9f\nC5 {vdd} {vss} 9f\n",
    "a filter": "R1 in a 5k\nC1 a {vss} 1p\nR2 a out 5k\nC2 out {vss} 1p\nC3 {vdd} {vss} 1p\nC4 {vdd} {vss} 1p\n",
    "a differential filter": "R1 ip a 5k\nR2 in b 5k\nC1 a b 1p\nR3 a op 5k\nR4 b on 5k\n"
    "C2 op {vss} 1p\nC3 on {vss} 1p\n",
    "diodes": "D1 in {vdd} dd area=1p\nD2 {vss} in dd area=1p\nR1 in out 5k\n",
}


@pytest.mark.parametrize("kind", PASSIVE)
@pytest.mark.parametrize("seed", range(4))
def test_no_name_decides_what_a_circuit_without_transistors_is_drawn_as(kind, seed):
    """Only the supplies that are told may differ, since their names alone tell them: not what is drawn with what."""
    found = []
    for names in ({"vdd": "vdd", "vss": "vss"}, {"vdd": "in9", "vss": "b8"}):
        cards = PASSIVE[kind].format(**names)
        nets = {word for line in cards.splitlines() for word in line.split()[1:3]}
        ports = sorted(net for net in nets if not net.startswith(("m", "a")) or net == "mid")
        text = f".subckt s {' '.join(ports)}\n{cards}.ends\n"
        circuit = read_netlist(NetlistText(text), identify_modules=False)
        other, back = reworded(circuit, seed)
        for variant, same in ((circuit, {name: name for name in back.values()}), (other, back)):
            modules = {(m.type, frozenset(map(same.get, m.devices))) for m in find_roles(variant).modules}
            matched = [{same[name] for name in group.devices} for group in suggest_constraints(variant).matching]
            near = [{same[name] for name in group.devices} for group in suggest_constraints(variant).proximity]
            answer = understood(variant, same)
            found.append(
                [
                    answer["groups"],
                    answer["pairs"],
                    answer["centred"],
                    modules,
                    *(sorted(map(sorted, each)) for each in (matched, near)),
                ]
            )
    assert all(each == found[0] for each in found)


def test_units_of_one_divider_are_a_bank_and_no_pairs():
    text = f".subckt s in mid lo vss\n{PASSIVE['a divider'].format(vss='vss')}.ends\n"
    roles = find_roles(read_netlist(NetlistText(text)))
    assert [(module.type, set(module.devices)) for module in roles.modules] == [
        ("resistor_ratio", {"R1", "R2", "R3", "R4"})
    ]
    assert roles.symmetry == ()


def test_a_buffer_is_symmetric_although_the_gate_of_one_half_is_on_its_own_drain():
    text = """.subckt buf in out ib vdd vss
M1 a in t vss nmos W=4u L=0.5u
M2 out out t vss nmos W=4u L=0.5u
M3 a a vdd vdd pmos W=4u L=0.5u
M4 out a vdd vdd pmos W=4u L=0.5u
M5 t ib vss vss nmos W=4u L=1u
M6 ib ib vss vss nmos W=4u L=1u
.ends
"""
    (structure,) = find_roles(read_netlist(NetlistText(text))).symmetry
    assert {frozenset(pair[1:]) for pair in structure.pairs} == {frozenset({"M1", "M2"}), frozenset({"M3", "M4"})}
    assert structure.centred == ("M5",)
    assert set(map(frozenset, structure.net_pairs)) == {frozenset({"a", "out"})}
