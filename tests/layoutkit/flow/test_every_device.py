"""Every device of every technology in the flow, at its least, its largest and three random sizes, m 1 and 2.

DRC finds nothing, LVS matches and the verdict is complete. A device or technology that appears is tested the day it
appears. `EVERY_DEVICE=1` draws all sizes (4 minutes), `make check` each device once, and each size once of each type,
other runs one of each type and technology.
"""

import os
import random
import zlib
from math import sqrt

import pytest

from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.technology import load, names
from thorough import in_this_run

TECHNOLOGIES = {name: load(name) for name in names()}
# Largest width and length where the process states none, or more than can lie near the taps beside it. [um]
LARGEST = {
    "nmos": (100.0, 10.0),
    "pmos": (100.0, 10.0),
    "resistor": (30.0, 100.0),
    "capacitor": (100.0, 100.0),
    "mos_capacitor": (15.0, 15.0),
    "diode": (15.0, 15.0),
    "isolated_box": (100.0, 100.0),
    "tap": (25.0, 60.0),
    "npn": (10.0, 20.0),
    "varactor": (10.0, 20.0),
    "pnp": (10.0, 10.0),
}
RANDOM_SIZES = 3
STEP_UM = 0.02  # of random sizes: a grid step on each side


def sizes_of(tech, spec):
    """Return width and length of each size to draw: the least, the largest and random ones between. [um]"""
    if not spec.kind.is_mos and (spec.only_size or (spec.cell is not None and spec.cell.fixed)):
        return [None]
    area = 0 if spec.kind.is_mos else spec.min_area
    least = [tech.to_um(side) for side in (spec.min_w, spec.min_l)]
    largest = [
        min(given, tech.to_um(stated)) if stated else given
        for given, stated in zip(LARGEST[spec.type], (spec.max_w, spec.max_l), strict=True)
    ]
    widths = [] if spec.kind.is_mos else [tech.to_um(width) for width in spec.widths]
    side = sqrt(area) * tech.dbu_um
    if least[0] * least[1] < side**2:
        least = [max(each, -(-side // STEP_UM) * STEP_UM) for each in least]
    if not spec.kind.is_mos and spec.max_area and largest[0] * largest[1] > spec.max_area * tech.dbu_um**2:
        largest = [min(each, sqrt(spec.max_area) * tech.dbu_um) for each in largest]
    chance = random.Random(zlib.crc32(f"{tech.name}/{spec.name}".encode()))
    sizes = [tuple(least), (widths[-1] if widths else largest[0], largest[1])]
    for _ in range(RANDOM_SIZES):
        width, length = (
            low + STEP_UM * int((low * (high / low) ** chance.random() - low) / STEP_UM)
            for low, high in zip(least, largest, strict=True)
        )
        sizes.append((chance.choice(widths) if widths else width, length))
    return [tuple(round(side, 6) for side in size) for size in sizes]


def netlist_of(spec, size):
    """Return a circuit of the device with m 1 and 2, and no device in common: its bodies are on the supplies."""
    terminals = spec.kind.terminals if spec.kind.is_mos else spec.kind.all_terminals[: spec.terminals]
    of = spec if spec.kind.is_mos or spec.diffusion_of is None else spec.diffusion_of
    body, supply = (spec.kind.bulk, of) if spec.kind.is_mos else (spec.body_terminal, of)
    rail = "vdd" if supply.type == "pmos" and not (not spec.kind.is_mos and spec.kind.substrate) else "vss"
    cards, ports = [], [rail] if body else []
    shared = {body: rail, "vss": "vss"} | ({"s": "s"} if spec.type == "schottky" else {})  # the substrate is one net
    for m in (1, 2):
        nets = [shared.get(terminal, f"{terminal}{m}") for terminal in terminals]
        ports += [net for net in nets if net not in ports]
        sides = "" if size is None else f" w={size[0]}u l={size[1]}u"
        if spec.type == "varactor":  # w and l are those of one gate
            least = spec.min_w / 1000
            sides = f" w={size[1]}u l={least}u Nx={round(size[0] / least)}"
        cards.append(f"{spec.kind.letter}{m} {' '.join(nets)} {spec.name}{sides} m={m}")
    return "\n".join([f".subckt device {' '.join(ports)}", *cards, ".ends", ""])


CASES = [
    (name, spec, size)
    for name, tech in TECHNOLOGIES.items()
    for spec in (*tech.devices.values(), *tech.passives.values())
    for size in range(len(sizes_of(tech, spec)))
]


def of_each_kind(cases):
    """Return the cases of each kind of device in each technology: {(technology, type): {device: its cases}}."""
    kinds = {}
    for case in cases:
        kinds.setdefault((case[0], case[1].type), {}).setdefault(case[1].name, []).append(case)
    return kinds


def sample(cases):
    """Return one size of each kind of device in each technology, another kind's in the next."""
    kinds = [[case for found in devices.values() for case in found] for devices in of_each_kind(cases).values()]
    return [found[place * 7 % len(found)] for place, found in enumerate(kinds)]


LOW_PLATES = [f"cap_mim_{value}_{metals}" for value in ("1f0", "1f5", "2f0") for metals in ("m2m3", "m3m4")]
# Sizes, by their numbers, that were not clean at first: plates low in the stack, short or wide bars of metal.
HARD = {*(("gf180mcuD", plates, 1) for plates in LOW_PLATES), ("sg13g2", "res_metal3", 1), ("sg13g2", "res_metal5", 4)}
HARD |= {("sg13cmos5l", "res_metal3", 1), ("sg13cmos5l", "res_metal4", 3)}


def each_device_and_size(cases):
    """Return few cases with each device in one of them, and each size of each type, and those in ``HARD``."""
    chosen, sizes = {*HARD}, set()
    for (_, kind), devices in of_each_kind(cases).items():
        for place, of_one in enumerate(devices.values()):
            new = [case for case in of_one if (kind, case[2]) not in sizes]
            name, spec, size = (new or of_one)[place % len(new or of_one)]
            chosen.add((name, spec.name, size))
            sizes.add((kind, size))
    for name, spec, size in cases:  # of types with fewer devices than sizes
        if (spec.type, size) not in sizes:
            chosen.add((name, spec.name, size))
            sizes.add((spec.type, size))
    return [case for case in cases if (case[0], case[1].name, case[2]) in chosen]


def drawn():
    """Return the cases of this run."""
    return CASES if "EVERY_DEVICE" in os.environ else in_this_run(sample(CASES), each_device_and_size(CASES))


@pytest.mark.parametrize(
    ("technology", "spec", "size"),
    drawn(),
    ids=lambda value: value if isinstance(value, str) else str(getattr(value, "name", value)),
)
def test_a_device_in_the_flow_is_clean_and_matched(technology, spec, size, tmp_path):
    report = build(technology, spec, size, tmp_path)
    assert report["drc"]["violations"] == []
    assert report["lvs"]["mismatches"] == []
    assert report["drc"]["complete"]
    assert report["lvs"]["complete"]
    assert report["routing"]["failed"] == []


def build(technology, spec, size, folder):
    """Return the report of the layout of one device in its size number ``size``."""
    text = netlist_of(spec, sizes_of(TECHNOLOGIES[technology], spec)[size])
    request = LayoutRequest(
        technology=technology, workspace=str(folder), netlist_text=text, last_stage="lvs", device_map={}
    )
    return build_layout(request)
