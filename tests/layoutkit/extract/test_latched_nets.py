"""A latch that decides has two sides driven alike; a loop that an inverter switches by one net has none."""

from types import SimpleNamespace

import pytest

from layoutkit.extract.extracted import latched_nets
from layoutkit.technology.device_kinds import KINDS

LOOP = ["nmos a b vss", "nmos b a vss", "pmos a b vdd", "pmos b a vdd"]


def pairs(cards):
    """Return the latched nets of transistors ``type drain gate source``, every other one with its ends exchanged."""
    numbers = {}
    devices = []
    for index, card in enumerate(cards):
        kind, *nets = card.split()
        drain, gate, source = (numbers.setdefault(net, len(numbers)) for net in nets)
        ends = {"d": drain, "s": source} if index % 2 else {"d": source, "s": drain}
        devices.append(SimpleNamespace(kind=KINDS[kind], nets={"g": gate, **ends}))
    names = {number: name for name, number in numbers.items()}
    return {"".join(sorted(names[net] for net in pair)) for pair in latched_nets(devices) if len(pair) == 2}


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ([], {"ab"}),
        (["pmos a clk vdd", "pmos b clk vdd"], {"ab"}),
        (["nmos a inp t", "nmos b inn t", "nmos t clk vss"], {"ab"}),
        (["nmos a vss vss", "pmos b b vdd", "nmos a clk b"], {"ab"}),
        (["nmos a in vss", "pmos a in vdd"], set()),
        (["nmos a in vss", "pmos b in vdd"], set()),
    ],
)
def test_the_two_drains_of_a_latch_are_driven_alike(more, found):
    assert pairs([*LOOP, *more]) == found
    assert pairs([*more, *LOOP]) == found


def test_the_sources_of_a_latch_are_a_pair_too():
    """A StrongARM comparator's inputs discharge the nets x and y below its latch."""
    latch = ["nmos a b x", "nmos b a y", "nmos x inp t", "nmos y inn t", "pmos a b vdd", "pmos b a vdd"]
    assert pairs([*latch, "pmos a clk vdd", "pmos b clk vdd"]) == {"ab", "xy"}


def test_transistors_that_are_not_cross_coupled_are_no_latch():
    assert pairs(["nmos a inp t", "nmos b inn t", "pmos a a vdd", "pmos b a vdd"]) == set()
