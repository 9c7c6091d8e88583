"""Whatever size, pattern and nets a tool draws, LVS finds the circuit that was asked for, and no other."""

import shutil
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.technology import load, names
from layoutkit.tools.current_layout import CurrentLayout
from layoutkit.tools.layout_checks import NetlistComparison
from layoutkit.tools.transistor_requests import create_common_centroid_pair, create_current_mirror

COMMON = {
    "dummies": 2, "labels": True, "position": [0, 0], "orientation": "R0", "ring": "full", "ring_open_sides": [],
    "isolated": False, "check": True, "arrangement": "auto",
}  # fmt: skip
PAIR = {"more_devices": [], "spacing": 0.5, "interdigitate": True, "symmetry_axis": "vertical", "cell_name": "pair"}
MIRROR = {"mirror_type": "simple", "cell_name": "mirror"}
NETS_OF_PAIRS = [("d1 g1 s b", "d2 g2 s b"), ("x y s b", "y x s b"), ("x y b b", "y x b b"), ("d1 g b b", "g g b b")]


@st.composite
def requests(draw):
    """Return a tool, its parameters without a workspace, and the nets of each device."""
    technology = load(draw(st.sampled_from(names())))
    kind = draw(st.sampled_from(["nmos", "pmos"]))
    spec = technology.device(kind)
    fingers = draw(st.sampled_from([1, 2, 4]))
    width = technology.snap_up(max(spec.min_w, draw(st.sampled_from([0, 1000, 3000]))))
    length = technology.snap_up(max(spec.min_l, draw(st.sampled_from([0, 500, 3000]))))
    size = {"type": kind, "w": technology.to_um(fingers * width) * 1e-6, "l": technology.to_um(length) * 1e-6}
    if draw(st.booleans()):
        nets = draw(st.sampled_from(NETS_OF_PAIRS))
        counts, create, own = (1, 1), create_common_centroid_pair, PAIR
    else:
        counts = draw(st.sampled_from([(1, 1), (1, 3), (2, 2, 4)]))
        nets = ["r r s b", *(f"o{number} r s b" for number in range(1, len(counts)))]
        create, own = create_current_mirror, MIRROR
    devices = [
        {**size, "device_id": f"M{number}", "nf": fingers, "m": count} for number, count in enumerate(counts, start=1)
    ]
    named = {
        each["device_id"]: dict(zip("dgsb", ends.split(), strict=True))
        for each, ends in zip(devices, nets, strict=True)
    }
    params = {**COMMON, **own, "technology": technology.name, "nets": named, "dummies": draw(st.integers(0, 2))}
    given_devices = {"device_a": devices[0], "device_b": devices[1]} if own is PAIR else {"devices": devices}
    return create, {**params, **given_devices}, devices


def netlist(devices, nets, width=1.0):
    """Return SPICE text in which the last device has ``width`` times its width."""
    ports = sorted({net for ends in nets.values() for net in ends.values()})
    lines = [f".subckt drawn {' '.join(ports)}"]
    for device in devices:
        ends = nets[device["device_id"]]
        w = device["w"] * (width if device is devices[-1] else 1.0)
        sizes = f"w={w:.9g} l={device['l']:.9g} nf={device['nf']} m={device['m']}"
        lines.append(f"{device['device_id']} {' '.join(ends[end] for end in 'dgsb')} {device['type']} {sizes}")
    return "\n".join([*lines, ".ends", ""])


@settings(max_examples=10, deadline=None)
@given(requests())
def test_what_the_tools_draw_is_clean_and_the_circuit_that_was_asked_for(request_):
    create, params, devices = request_
    workspace = tempfile.mkdtemp()
    try:
        drawn = create({**params, "workspace": workspace})
        assert drawn["drc"]["passed"], drawn["drc"]
        for width, matched in ((1.0, True), (1.5, False)):
            text = netlist(devices, params["nets"], width)
            asked = {"workspace": workspace, "netlist_text": text, "map_devices": False, "width_per": "device"}
            asked |= {"tolerance": 0.001, "waived_layers": [], "cell_name": params["cell_name"]}
            assert NetlistComparison(asked, CurrentLayout(asked)).run().matched is matched
    finally:
        shutil.rmtree(workspace)
