"""LVS of random circuits with random edits never raises, and matches exactly where a renaming of nets exists.

The layout's side is made from a circuit without drawing it, so that hundreds of circuits can be compared. The oracle
tries every renaming of the inner nets. It knows nothing of folding, so it judges only circuits without dummies,
parallel devices and strings.
"""

import random
from collections import Counter
from dataclasses import dataclass, replace
from itertools import permutations

import klayout.db as kdb
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.circuit import Circuit, Device
from layoutkit.extract.extracted import DrawnFinger, ExtractedDevice, Extraction, Label, LayoutNet, Point
from layoutkit.lvs.compare import compare
from layoutkit.lvs.reference import reference_of
from layoutkit.technology import load
from thorough import examples

SKY130 = load("sky130A")
PORTS = ("vdd", "vss", "in", "out")
INNER = ("i0", "i1", "i2", "i3")
MODELS = {
    "nfet_01v8": ("nmos", "dgsb"),
    "nfet_01v8_lvt": ("nmos", "dgsb"),
    "pfet_01v8": ("pmos", "dgsb"),
    "cap_mim_m3_1": ("capacitor", "pn"),
    "cap_mim_m3_2": ("capacitor", "pn"),
    "res_generic_po": ("resistor", "pn"),
    "cap_var_lvt": ("mos_capacitor", "pn"),
    "diode_pw2nd_05v5": ("diode", "pn"),
    "diode_pd2nw_05v5": ("diode", "pn"),
    "pnp_05v5_W3p40L3p40": ("pnp", "cbe"),
}
ENDS = {"nmos": "ds", "pmos": "ds", "capacitor": "pn", "resistor": "pn"}
EDITS = ("none", "exchange", "remove", "add", "type", "terminals", "merge", "split", "size")


@dataclass(frozen=True)
class Undrawn(Extraction):
    """A layout side of which there are no shapes."""

    def place_of(self, net):
        return Point(float(net), 0.0)

    def reaches(self, _net, *_layers):
        return False


def some_device(rng, number):
    model = rng.choice([*MODELS])
    kind, terminals = MODELS[model]
    size = 3.4e-6 if kind == "pnp" else rng.choice([2e-6, 4e-6])
    nets = dict(zip(terminals, rng.sample(PORTS + INNER, len(terminals)), strict=True))
    if len(terminals) == 4 and rng.random() < 0.5:
        nets["b"] = nets["s"]
    return Device(f"X{number}", kind, model, {"w": size, "l": size, "m": 1}, nets)


def edited(rng, devices, edit):
    devices = list(devices)
    one = rng.randrange(len(devices))
    device = devices[one]
    if edit == "exchange":
        devices[one] = replace(some_device(rng, 0), id=device.id)
    elif edit == "remove":
        del devices[one]
    elif edit == "add":
        devices.append(some_device(rng, 100 + len(devices)))
    elif edit == "type":
        alike = [name for name, (kind, _) in MODELS.items() if kind == device.type]
        devices[one] = replace(device, model=rng.choice(alike))
    elif edit == "terminals":
        names = rng.sample([*device.terminals], 2)
        nets = {**device.terminals, **dict(zip(names, (device.terminals[name] for name in names[::-1]), strict=True))}
        devices[one] = replace(device, terminals=nets)
    elif edit == "merge":
        gone, kept = rng.sample(INNER, 2)
        devices = [
            replace(each, terminals={t: kept if net == gone else net for t, net in each.terminals.items()})
            for each in devices
        ]
    elif edit == "split":
        devices[one] = replace(device, terminals={**device.terminals, rng.choice([*device.terminals]): "i9"})
    elif edit == "size" and device.type != "pnp":
        devices[one] = replace(device, params={**device.params, "l": 6e-6})
    return devices


def drawn(rng, devices):
    """Return devices as a layout in which they are drawn in another order, ends turned and nets numbered."""
    parts = list(reference_of(Circuit("drawn", tuple(devices), PORTS), SKY130).devices)
    rng.shuffle(parts)
    names = sorted({net for part in parts for net in part.nets.values()} | {*PORTS})
    rng.shuffle(names)
    found, terminals = [], {}
    for number, part in enumerate(parts):
        nets = {terminal: names.index(net) for terminal, net in part.nets.items()}
        if part.kind.exchangeable and rng.random() < 0.5:
            first, second = part.kind.ends
            nets[first], nets[second] = nets[second], nets[first]
        place = Point(float(number), 1.0)
        finger = DrawnFinger(part.device, part.kind, part.drawn_w_um, part.drawn_l_um, nets, place, None)
        size = part.drawn_w_um, part.drawn_l_um
        found.append(ExtractedDevice(part.device, part.kind, *size, nets, f"D{number}", (finger,)))
        for terminal, net in nets.items():
            terminals.setdefault(net, []).append((number, terminal))
    labels = {names.index(port): (Label(port, "met1", Point(0.0, 0.0), True),) for port in PORTS}
    nets = {
        net: LayoutNet(net, f"${net}", labels.get(net, ()), tuple(terminals.get(net, ()))) for net in range(len(names))
    }
    return Undrawn("T", SKY130, tuple(found), (), nets, (), (), {}, None, kdb.Layout())


def parts_of(devices, names):
    """Return what a circuit consists of when its nets are renamed: one entry a device, exchangeable ends in order."""
    found = Counter()
    for device in devices:
        ends = ENDS.get(device.type, "")
        nets = {terminal: names.get(net, net) for terminal, net in device.terminals.items()}
        fixed = tuple(sorted((t, net) for t, net in nets.items() if t not in ends))
        size = tuple(
            sorted((device.params["w"], device.params["l"]))
            if device.type in "capacitor diode pnp"
            else (device.params["w"], device.params["l"])
        )
        found[device.model, size, fixed, tuple(sorted(nets[t] for t in ends))] += 1
    return found


def inner_nets(devices):
    return sorted({net for device in devices for net in device.terminals.values()} - {*PORTS})


def isomorphic(one, other):
    names, others = inner_nets(one), inner_nets(other)
    if len(names) != len(others):
        return False
    wanted = parts_of(other, {})
    return any(parts_of(one, dict(zip(names, order, strict=True))) == wanted for order in permutations(others))


def folds(devices):
    """Return whether LVS may fold some of the devices, so that the oracle does not know the answer."""
    meeting = Counter(net for device in devices for net in device.terminals.values())
    strung = {device.terminals[end] for device in devices for end in ENDS.get(device.type, "")}
    keys = Counter(key[0:1] + key[2:] for key in parts_of(devices, {}).elements())
    return (
        any(count > 1 for count in keys.values())
        or any(count == 1 or (count == 2 and net in strung) for net, count in meeting.items() if net not in PORTS)
        or any(
            len({d.terminals[t] for t in ENDS.get(d.type, "pn") if t in d.terminals}) == 1
            or ("g" in d.terminals and d.terminals["g"] == d.terminals["b"])
            for d in devices
        )
    )


@settings(max_examples=examples(400))
@given(seed=st.integers(0, 2**32), edits=st.lists(st.sampled_from(EDITS), min_size=1, max_size=2))
def test_a_random_edit_never_stops_lvs_and_is_judged_as_an_exhaustive_search_does(seed, edits):
    rng = random.Random(seed)
    tried = ([some_device(rng, number) for number in range(rng.randint(4, 9))] for _ in range(30))
    asked = next((devices for devices in tried if not folds(devices)), [some_device(rng, 0)])
    changed = list(asked)
    for edit in edits:
        changed = edited(rng, changed, edit) if changed else changed
    result = compare(drawn(rng, changed), Circuit("asked", tuple(asked), PORTS))
    assert result.matched or result.mismatches
    if not (folds(asked) or folds(changed)):
        assert result.matched == isomorphic(asked, changed), [m.message for m in result.mismatches]


def test_devices_of_different_types_on_the_same_nets_are_one_missing_and_one_extra():
    """A pair of different types stays in the list of candidates until all better ones are outdated."""
    same = Device("M1", "pmos", "pfet_01v8", {"w": 2e-6, "l": 0.5e-6}, {"d": "out", "g": "out", "s": "vdd", "b": "vdd"})
    plates = Device("C1", "capacitor", "cap_mim_m3_1", {"w": 5e-6, "l": 5e-6, "m": 1}, {"p": "out", "n": "vss"})
    gate = Device("M2", "pmos", "pfet_01v8", {"w": 2e-6, "l": 0.5e-6}, {"d": "in", "g": "vss", "s": "vdd", "b": "vdd"})
    result = compare(drawn(random.Random(0), [same, plates]), Circuit("asked", (same, gate), PORTS))
    assert [mismatch.kind for mismatch in result.mismatches] == ["missing_device", "extra_device"]
    assert [mismatch.reference for mismatch in result.mismatches] == [("M2",), ()]
