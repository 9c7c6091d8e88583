"""Devices drawn as the foundry's cell of one size: clean, read as drawn in any place, reported with a fault in them."""

import klayout.db as kdb
import pytest

from layoutkit.draw.fixed_cell import draw_fixed_cell, fixed_cell
from layoutkit.drc.check import check
from layoutkit.errors import GeometryError, NetlistError
from layoutkit.extract.extractor import extract
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.technology import load, names
from layoutkit.technology.passive_sizes import PassiveSize

TECHNOLOGIES = {name: load(name) for name in names()}
CELLS = [
    (name, spec.name)
    for name, tech in TECHNOLOGIES.items()
    for spec in tech.passives.values()
    if spec.cell is not None and spec.cell.fixed
]
# What the foundry's own cell covers on each layer, measured in sg13g2_pr.gds (IHP-Open-PDK 5cccb16), or in
# its layouts for LVS (idiodev*). [um2]
AREAS = {
    "diodevdd_2kv": {"Activ": 168.9372, "NWell": 224.9559, "pSD": 179.0055, "Recog.esd": 360.126, "Cont": 27.6224},
    "diodevdd_4kv": {"Activ": 258.315, "NWell": 381.0339, "pSD": 252.4725, "Recog.esd": 530.556, "Cont": 42.5728},
    "diodevss_2kv": {"Activ": 168.9372, "NWell": 117.9585, "pSD": 152.712, "Recog.esd": 360.126, "Cont": 27.6224},
    "diodevss_4kv": {"Activ": 258.315, "NWell": 130.3785, "pSD": 234.213, "Recog.esd": 530.556, "Cont": 42.5728},
    "idiodevdd_2kv": {
        "Activ": 169.8588,
        "NWell": 224.9559,
        "pSD": 181.5831,
        "nBuLay": 224.9559,
        "PWell.block": 53.7489,
    },
    "idiodevdd_4kv": {
        "Activ": 259.2366,
        "NWell": 381.0339,
        "pSD": 255.0501,
        "nBuLay": 381.0339,
        "PWell.block": 59.5449,
    },
    "idiodevss_2kv": {"Activ": 168.9372, "NWell": 117.9585, "pSD": 152.712, "nBuLay": 360.126, "Cont": 27.6224},
    "idiodevss_4kv": {"Activ": 258.315, "NWell": 130.3785, "pSD": 234.213, "nBuLay": 530.556, "Cont": 42.5728},
    "schottky_nbl1": {
        "Activ": 13.11,
        "NWell": 7.76,
        "pSD": 11.5,
        "nBuLay": 6.302,
        "SalBlock": 2.28,
        "nSD.block": 1.98,
        "Cont": 1.4776,
    },
    "nmoscl_2": {
        "Activ": 547.4112,
        "NWell": 156.6822,
        "pSD": 44.0484,
        "nBuLay": 760.8165,
        "SalBlock": 285.768,
        "Recog.esd": 802.6197,
        "GatPoly": 88.0178,
        "Cont": 36.4288,
    },
    "nmoscl_4": {
        "Activ": 1064.9069,
        "NWell": 246.6966,
        "pSD": 86.1828,
        "nBuLay": 1426.3485,
        "SalBlock": 571.536,
        "Recog.esd": 1491.1341,
        "GatPoly": 176.561,
        "Cont": 83.8144,
    },
}


def drawn(technology, device, m=1):
    tech, layout = TECHNOLOGIES[technology], kdb.Layout()
    layout.dbu = tech.dbu_um
    return layout, draw_fixed_cell(layout, tech, "TOP", fixed_cell(tech, "D1", device, PassiveSize(0, 0, m))), tech


@pytest.mark.parametrize(
    ("technology", "device", "m"),
    [(*cell, 1 + place % 2) for place, cell in enumerate(CELLS)],  # test_every_device.py draws one and two of each
)
def test_copies_are_clean_and_read_as_drawn(technology, device, m):
    layout, module, tech = drawn(technology, device, m)
    faults = {v.rule.id: (v.count, v.reason) for v in check(layout, module.cell, tech).verdicts if v.status != "passed"}
    assert faults == {}
    found = extract(layout, module.cell, tech)
    assert not any(found.ignored.values())
    read = [(each.device, {end: found.nets[net].name for end, net in each.nets.items()}) for each in found.devices]
    wanted = {end: f"D1_{end.upper()}" for end in tech.passives[device].kind.terminals}
    assert sum(len(each.fingers) for each in found.devices) == m
    assert read[0] == (device, wanted)


@pytest.mark.parametrize("device", AREAS)
def test_the_layers_have_the_areas_of_the_foundry_s_cell(device):
    _, module, tech = drawn("sg13g2", device)
    for layer, area in AREAS[device].items():
        shapes = tech.region(module.cell, layer).merged()
        assert shapes.area() * tech.dbu_um**2 == pytest.approx(area, abs=1e-4), layer


@pytest.mark.parametrize("place", [kdb.Trans(turn, mirrored, 7000, -3000) for turn in range(4) for mirrored in (0, 1)])
def test_a_cell_is_read_in_any_orientation(place):
    layout, module, tech = drawn("sg13g2", "schottky_nbl1")
    module.cell.transform(place)
    found = extract(layout, module.cell, tech)
    assert [each.device for each in (*found.devices, *found.dummies)] == ["schottky_nbl1"]


@pytest.mark.parametrize(("technology", "device"), CELLS)
def test_a_cell_with_a_shape_too_much_is_reported(technology, device):
    layout, module, tech = drawn(technology, device)
    kind = tech.passives[device].type
    spot = tech.region(module.cell, tech.passives[device].cell.marker).bbox().center()
    module.cell.shapes(tech.layer(layout, "nSD")).insert(kdb.Box(spot, spot).enlarged(900, 30))
    found = extract(layout, module.cell, tech)
    assert not [each for each in (*found.devices, *found.dummies) if each.kind.name == kind]
    assert f"not a {device}: nSD lies in it" in found.ignored[kind][0][1]


def test_a_size_that_is_not_the_cell_s_is_refused():
    with pytest.raises(GeometryError, match=r"diodevdd_2kv is drawn in the size of the foundry's cell only"):
        fixed_cell(TECHNOLOGIES["sg13g2"], "D1", "diodevdd_2kv", PassiveSize(1e-6, 2e-6, 1))


@pytest.mark.parametrize("stated", ["w=2u l=3u", "Nx=2", "Ny=3", "w=1.3u"])
def test_a_netlist_that_states_another_size_or_more_parts_is_refused(stated, tmp_path):
    text = f".subckt a p n vss\nXS1 p n vss schottky_nbl1 Nx=1 Ny=1 m=2\nXS2 p n vss schottky_nbl1 {stated}\n.ends\n"
    request = LayoutRequest(netlist_text=text, technology="sg13g2", workspace=str(tmp_path), last_stage="recognise")
    with pytest.raises(NetlistError, match=rf"'XS2': schottky_nbl1 .*got {stated[:2].lower()}.*with m"):
        build_layout(request)
