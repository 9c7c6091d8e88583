"""Transistors of one flavour and body share a tap ring, a well and implants; without it the layout is not clean."""

import klayout.db as kdb
import pytest

from layoutkit.drc.check import check
from layoutkit.flow.design import LayoutRequest, make_design, read_circuit
from layoutkit.flow.placing import place_modules
from layoutkit.place import PlacementOptions
from layoutkit.technology import load
from thorough import processes

# Two chains of inverters on two supplies: three bodies, so three rings, however many devices there are.
CHAINS = """* two chains
.subckt chains a b x y vdd vddh vss
M1 n1 a vss vss nmos W=1u L=0.5u
M2 n1 a vdd vdd pmos W=2u L=0.5u
M3 x n1 vss vss nmos W=3u L=0.5u nf=2
M4 x n1 vdd vdd pmos W=5u L=0.5u nf=2
M5 n2 b vss vss nmos W=1u L=1u
M6 n2 b vddh vddh pmos W=2u L=1u
M7 y n2 vss vss nmos W=3u L=1u nf=2
M8 y n2 vddh vddh pmos W=5u L=1u nf=2
M9 x y z vss nmos W=1.5u L=0.6u
.ends
"""


# Both halves of the loads of a pair have wells of their own: on each side one of them shares it with another device.
OWN_WELLS = """* cascodes with their bulks on their sources
.subckt own f g vb vc vdd vss
M1 f vc a a pmos W=6u L=1u
M2 g vc b b pmos W=6u L=1u
M3 a vb c a pmos W=6u L=1u
M4 b vb d b pmos W=6u L=1u
M5 c vb vdd vdd pmos W=8u L=1u
M6 d vb vdd vdd pmos W=8u L=1u
M7 f f vss vss nmos W=2u L=1u
M8 g g vss vss nmos W=2u L=1u
M9 e vb c c pmos W=4u L=1u
M10 h vb d d pmos W=4u L=1u
M11 e e vss vss nmos W=2u L=1u
M12 h h vss vss nmos W=2u L=1u
.ends
"""
HALVES = {"symmetry": [{"pairs": [[f"M{i}", f"M{i + 1}"] for i in range(1, 12, 2)]}]}


def placed(text, name, *, recognised=False, gap=1000, constraints=None):
    technology = load(name)
    request = LayoutRequest(netlist_text=text, technology=name, constraints=None if recognised else constraints or {})
    circuit, _ = read_circuit(request, technology)
    design, _ = make_design(request, technology, circuit)
    return technology, place_modules(design, PlacementOptions(gap_x=gap - 1000, gap_y=gap, seed=2))


def violated(technology, modules):
    return {v.rule.id for v in check(modules.layout, modules.cell, technology).violated}


def closed_rings(technology, modules):
    """Return the polygons of diffusion with a hole."""
    drawn = kdb.Region()
    for role in ("active", "tap"):
        drawn += kdb.Region(modules.cell.begin_shapes_rec(technology.layer(modules.layout, role)))
    return [polygon for polygon in drawn.merged().each() if polygon.holes()]


def test_the_pads_of_dummies_below_rails_join_the_posts_beside_them():
    """In a mirror without taps of its own, 0.025 um lay between a post and the pad of the nearest column (M1.b)."""
    text = """.subckt bias i o1 o2 a vss
M1 i i vss vss sg13_hv_nmos w=5u l=0.5u
M2 o1 i vss vss sg13_hv_nmos w=5u l=0.5u
M3 o2 i vss vss sg13_hv_nmos w=3u l=0.5u
M4 a o1 o2 vss sg13_hv_nmos w=2u l=5u
.ends
"""
    technology, modules = placed(text, "sg13g2", recognised=True)
    assert len(modules.placement.rings) == 1
    assert "M1.b" not in violated(technology, modules)


@pytest.mark.parametrize("name", processes())
def test_partners_in_wells_of_two_nets_keep_the_space_of_wells_and_share_no_ring(name):
    technology, modules = placed(OWN_WELLS, name, constraints=HALVES)
    assert sum(len(island.members) for island in modules.placement.islands) == 12
    assert violated(technology, modules) == set()
    body = {item.module.name: item.group.bulk_net for item in modules.drawn}
    assert all(len({body[module] for module in inside}) == 1 for inside in modules.placement.rings)


def test_the_well_of_a_varactor_holds_no_transistors():
    """varac.7 of sky130A: transistors on the same net have a well of their own, as far away as wells of two nets."""
    text = """* a decoupling varactor beside an inverter
.subckt decoupled a y vdd vss
M1 y a vdd vdd pmos W=4u L=0.5u
M2 y a vss vss nmos W=2u L=0.5u
XV1 vss vdd vss sky130_fd_pr__cap_var_lvt w=4 l=2
.ends
"""
    technology, modules = placed(text, "sky130A")
    assert violated(technology, modules) == set()
    drawn = kdb.Region(modules.cell.begin_shapes_rec(technology.layer(modules.layout, "nwell")))
    assert drawn.merged().count() == 2


@pytest.mark.parametrize("name", processes())
def test_one_ring_holds_the_devices_of_one_body(name, monkeypatch):
    technology, modules = placed(CHAINS, name)
    assert violated(technology, modules) == set()
    groups = [set(inside) for inside in modules.placement.rings]
    body = {item.module.name: item.group.bulk_net for item in modules.drawn}
    assert all(len({body[module] for module in inside}) == 1 for inside in groups)
    assert len(closed_rings(technology, modules)) <= 4 < len(modules.drawn)
    monkeypatch.setattr("layoutkit.flow.modules.ring_key", lambda group: group.name)  # each has a ring of its own
    _, apart = placed(CHAINS, name)
    assert len(closed_rings(technology, apart)) == len(apart.drawn)
    assert modules.cell.bbox().area() < apart.cell.bbox().area()


@pytest.mark.parametrize("name", processes())
def test_a_group_whose_ring_was_taken_away_violates_the_tap_distance(name):
    technology, modules = placed(CHAINS, name, gap=60_000)
    taps = {rule.id for rule in technology.rules if rule.kind == "tap_distance"}
    assert violated(technology, modules) == set()
    in_substrate = [ring for ring in modules.rings if ring.pins[0].net == "vss"]  # the others hold the well, too
    largest = max(in_substrate, key=lambda ring: ring.bbox.area())
    largest.cell.clear()
    assert violated(technology, modules) & taps


@pytest.mark.parametrize(("name", "flavour"), [(n, "lv") for n in processes()] + [("sky130A", "hv")])
def test_the_cell_of_a_module_holds_the_well_and_thick_oxide_of_its_transistors_though_the_ring_does_too(name, flavour):
    """Magic reads cell by cell, and takes p+ diffusion outside a well of its cell for a part of the substrate."""
    thick = CHAINS.replace("nmos", "sky130_fd_pr__nfet_g5v0d10v5").replace("pmos", "sky130_fd_pr__pfet_g5v0d10v5")
    technology, modules = placed(thick if flavour == "hv" else CHAINS, name)
    shared = {member for inside in modules.placement.rings for member in inside}
    judged = 0
    for item in modules.drawn:
        device, cell = technology.device(item.flavour), item.module.cell
        active = kdb.Region(cell.begin_shapes_rec(technology.layer(modules.layout, "active")))
        assert not active.is_empty()
        for layer in (*([device.well] if device.well else []), *device.covers):
            own = kdb.Region(cell.begin_shapes_rec(technology.layer(modules.layout, layer)))
            assert (active - own).is_empty(), (item.module.name, layer)
            rest = kdb.Region(modules.cell.begin_shapes_rec(technology.layer(modules.layout, layer)))
            judged += item.module.name in shared and not rest.is_empty()
    assert judged


def test_rails_of_the_body_inside_a_ring_and_the_ring_are_pins_of_one_net():
    _, modules = placed(CHAINS, "sky130A")
    for ring, inside in zip(modules.rings, modules.placement.rings, strict=True):
        (pin,) = ring.pins
        assert {item.group.bulk_net for item in modules.drawn if item.module.name in inside} == {pin.net}


def test_blocks_share_a_ring_only_while_the_middle_is_near_enough_to_its_taps():
    """Sixteen devices of 20 um and more, 15 um of tap distance: no ring can hold two of them side by side each way."""
    cards = "\n".join(f"M{i} d{i} g{i} vss vss nmos W=20u L={6 + i / 10}u" for i in range(16))
    technology, modules = placed(f"* tall\n.subckt tall vss\n{cards}\n.ends\n", "sky130A")
    assert violated(technology, modules) == set()
    assert len(modules.placement.rings) < len(modules.drawn)
    reach = 2 * technology.dim("tap_max_distance", technology.device("nfet_01v8"))
    assert all(min(ring.bbox.width(), ring.bbox.height()) <= reach + 3000 for ring in modules.rings)


def test_a_mirror_and_its_cascodes_too_high_for_one_ring_are_two_modules():
    """Rows of 16.5 and 20 um in sky130A would put diffusion farther than 15 um from the taps below and above."""
    text = """* a cascode mirror of long channels
.subckt mirror vdd in out
M3 a in vdd vdd pmos W=33u L=26.4u nf=2
M4 b in vdd vdd pmos W=33u L=26.4u nf=2
MC3 in c a vdd pmos W=40u L=16u nf=2
MC4 out c b vdd pmos W=40u L=16u nf=2
.ends
"""
    technology, modules = placed(text, "sky130A", recognised=True)
    assert {frozenset(item.module.devices) for item in modules.drawn} == {
        frozenset(("M3", "M4")),
        frozenset(("MC3", "MC4")),
    }
    assert violated(technology, modules) == set()
