"""What looks like part of a group and is in none: the lines are true, name real devices, and are few."""

import random
import re
from dataclasses import replace

import pytest
import yaml

from layoutkit.circuit import find_roles, read_netlist
from layoutkit.circuit.near_misses import DEVICES_A_LINE
from layoutkit.circuit.orientation import oriented
from layoutkit.circuit.readers.source import NetlistText
from recognition_score import LABELLED

# A mirror M1 M2 and its neighbours, in a circuit of enough devices for every line.
MIRROR = """
M1 b b vss vss nmos W=4u L=2u
M2 o b vss vss nmos W=4u L=2u
{more}
M8 y x vdd vdd pmos W=3u L=0.2u
M9 y x vss vss nmos W=1u L=0.2u
M10 z y vdd vdd pmos W=3u L=0.3u
M11 z y vss vss nmos W=1u L=0.3u
"""


def lines(more):
    text = f".subckt c vdd vss b o x y z k e\n{MIRROR.format(more=more)}\n.ends\n"
    return find_roles(read_netlist(NetlistText(text))).not_matched


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "M6 k e vss vss nmos W=4u L=2u",
            r"M1 M2 \(current_mirror_1\), M6 .*model and size .*W 4 um, L 2 um.* gates differ",
        ),
        (
            "M6 k e vss vss nmos W=9u L=2u",
            r"M1 M2 \(current_mirror_1\), M6 .*model and length .*gates and widths differ",
        ),
        ("M6 k o vss vss nmos W=4u L=1u", r"M6 follows M1 M2 of current_mirror_1 on vss.* lengths are 1 and 2 um"),
        ("M6 vss vss vss vss nmos W=4u L=2u", r"M1 M2 \(current_mirror_1\), M6 \(a dummy\)"),
        (
            "M5 k e vss vss nmos W=1u L=1u\nM6 z e vss vss nmos W=1u L=3u",
            r"M5 .*M6 .*share the gate e and the source vss",
        ),
        ("M5 k e t vss nmos W=1u L=1u\nM6 t k vss vss nmos W=1u L=3u", r"M5 stands on M6, .* lengths are 1 and 3 um"),
        ("R1 k e 1k\nR2 z x 1k\nR3 z x 3k", r"R1.*R2.*resistors of one kind"),
    ],
)
def test_a_near_miss_is_said_with_its_reason(more, said):
    assert any(re.search(said, line) for line in lines(more)), lines(more)


def test_what_is_matched_is_no_near_miss():
    assert not any("M2" in line for line in lines("M6 k b vss vss nmos W=8u L=2u"))


@pytest.mark.parametrize("path", sorted(LABELLED.glob("*.labels.yaml")), ids=lambda path: path.name.split(".")[0])
def test_lines_are_few_and_true(path):
    """Judged from the netlist alone: sizes that are called equal are, and no line puts a group against itself."""
    label = yaml.safe_load(path.read_text())
    circuit = read_netlist(path.parent / label["netlist"], top=label.get("top"), keep_unknown=True)
    roles = find_roles(circuit)
    assert len(roles.not_matched) <= len(circuit.devices) / DEVICES_A_LINE
    known = {device.id: device for device in circuit.devices}
    for line in roles.not_matched:
        words = re.sub(r"\(gate on [^)]*\)|gate on \S+", "", line).replace(",", " ").split()
        named = [known[word] for word in dict.fromkeys(words) if word in known]
        assert len(named) > 1, line
        if "one model" in line:
            assert len({(each.type, each.model, each.params["l"]) for each in named}) == 1
            equal = len({each.params["w"] for each in named}) == 1
            assert equal == ("model and size" in line)
        if "their gates" in line:
            assert len({each.terminals["g"] for each in named}) > 1
        ids = {each.id for each in named}
        groups = [group for group in roles.groups if group.type != "ring_stage"]
        matched = [group.devices for group in groups if group.properties.get("matched", True)]
        assert not any(ids <= set(devices) for devices in matched)


def named(circuit):
    """Return the groups of a circuit, and the devices of each line about what is in none."""
    ids = {device.id for device in circuit.devices}
    roles = find_roles(circuit)
    lines = {
        frozenset(word for word in re.sub(r"[,()]", " ", line).split() if word in ids) for line in roles.not_matched
    }
    return {(group.type, frozenset(group.devices)) for group in roles.groups}, lines


@pytest.mark.parametrize("path", sorted(LABELLED.glob("*.labels.yaml")), ids=lambda path: path.name.split(".")[0])
def test_the_order_of_cards_and_terminals_does_not_decide_what_is_told(path):
    label = yaml.safe_load(path.read_text())
    netlist = path.parent / label["netlist"]
    circuit = read_netlist(netlist, top=label.get("top"), keep_unknown=True, identify_modules=False)
    shuffled = random.Random(path.name)
    devices = [
        device.with_ends_exchanged() if device.is_mos and shuffled.random() < 0.5 else device
        for device in shuffled.sample(circuit.devices, len(circuit.devices))
    ]
    groups, lines = named(circuit)
    other = named(oriented(replace(circuit, devices=tuple(devices), subcircuits=())))
    if groups == other[0]:  # the groups have tests of their own
        assert lines == other[1]
