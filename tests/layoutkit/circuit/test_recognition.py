"""Recognition against circuits that were labelled by hand, before anyone looked at what recognition says of them."""

import random
import shutil
from dataclasses import replace

import pytest
import yaml

from layoutkit.circuit import find_roles, read_netlist
from layoutkit.circuit.orientation import oriented
from layoutkit.circuit.readers.source import NetlistText
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


@pytest.mark.parametrize("path", sorted(LABELLED.glob("*.labels.yaml")), ids=lambda path: path.name.split(".")[0])
@pytest.mark.parametrize("seed", range(3))
def test_inner_names_cards_terminals_and_hierarchy_decide_nothing(path, seed):
    """Devices and inner nets are renamed, cards shuffled, half of the transistors turned, the hierarchy forgotten."""
    label = yaml.safe_load(path.read_text())
    circuit = read_netlist(
        path.parent / label["netlist"], top=label.get("top"), keep_unknown=True, identify_modules=False
    )
    chosen = random.Random(seed)
    inner = [net for net in circuit.nets if net not in circuit.ports]
    names = [*circuit.nets, *(device.id for device in circuit.devices)]
    new = {net: f"n{number}" for number, net in enumerate(chosen.sample(inner, len(inner)))}
    devices = []
    for number, device in enumerate(chosen.sample(circuit.devices, len(circuit.devices))):
        new[device.id] = f"D{number}"
        terminals = {terminal: new.get(net, net) for terminal, net in device.terminals.items()}
        other = replace(device, id=new[device.id], terminals=terminals)
        devices.append(other.with_ends_exchanged() if device.is_mos and chosen.random() < 0.5 else other)
    shuffled = oriented(replace(circuit, devices=tuple(devices), subcircuits=()))
    flat = oriented(replace(circuit, subcircuits=()))
    back, same = {new.get(name, name): name for name in names}, {name: name for name in names}
    assert understood(shuffled, back) == understood(flat, same)
    assert understood(circuit, same) == understood(flat, same)


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
