"""Supplies reach devices by metal, not through a ring of local interconnect."""

from dataclasses import replace
from pathlib import Path

import klayout.db as kdb

from layoutkit.circuit import read_netlist
from layoutkit.extract.connectivity import DrawnLayers, Nets
from layoutkit.flow.existing_metal import is_resistive
from layoutkit.flow.routing import draw_job, find_routes
from layoutkit.flow.routing_job import Endpoint, RoutingJob, WantedNet
from layoutkit.parasitics.parasitic_extraction import extract_parasitics
from layoutkit.technology import load

OTA = Path(__file__).parents[3] / "skills/netlist-to-gds/assets/ota_5t.spice"
LARGEST_OHM = 10.0
STRIP, RAIL = 2, 3

# Two straps over sources (diff) that only li1 of a tapped column joins, a strip on its taps, and a rail. [um]
COLUMN = {
    "nwell": [(-2, -2, 6, 12)],
    "tap": [(0, 0, 0.4, 10)],
    "nsdm": [(-0.2, -0.2, 0.6, 10.2)],
    "diff": [(2, 2, 3, 3), (2, 6, 3, 7)],
    "psdm": [(1.8, 1.8, 3.2, 3.2), (1.8, 5.8, 3.2, 7.2)],
    "licon1": [(0.1, 4.5, 0.27, 4.67), (2.4, 2.4, 2.57, 2.57), (2.4, 6.4, 2.57, 6.57)],
    "li1": [(0, 0, 0.4, 10), (2.2, 2.2, 2.8, 2.8), (2.2, 6.2, 2.8, 6.8)],
    "mcon": [(x, y, x + 0.17, y + 0.17) for x, y in ((0.1, 2.4), (2.4, 2.4), (0.1, 6.4), (2.4, 6.4), (0.1, 9.4))],
    "met1": [(0, 2.2, 3, 2.8), (0, 6.2, 3, 6.8), (0, 9.2, 3, 9.8), (0, 14, 3, 15)],
}


def column():
    """Return the layout, and the job that joins its four pieces of met1 as a supply."""
    technology = load("sky130A")
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    cell = layout.create_cell("column")
    for name, boxes in COLUMN.items():
        index = layout.layer(*technology.spec(name).gds)
        for box in boxes:
            cell.shapes(index).insert(kdb.DBox(*box))
    pins = [tuple(round(each / layout.dbu) for each in box) for box in COLUMN["met1"]]
    ends = [Endpoint("met1", (box[0] + box[2]) // 2, (box[1] + box[3]) // 2, box) for box in pins]
    net = WantedNet("vdd", tuple(ends), width=420, priority=4, least_cuts=2)
    return layout, RoutingJob(technology, (net,), ("met1", "met2", "met3"), None, ())


def joined_by_wires(layout, job):
    """Return how many pieces are joined to the rail, and which, once wires are drawn and li1 is left out."""
    cell = layout.top_cell()
    routes = find_routes(layout, cell, job)
    assert not routes.result.failed
    draw_job(layout, cell, job, routes)
    metal = DrawnLayers(cell, job.technology).wiring
    above = Nets({name: region for name, region in metal.regions.items() if name != "li1"}, metal.joins, layout.dbu)
    numbers = [above.at("met1", end.box.center()).cluster_id for end in job.nets[0].endpoints]
    return {index for index, number in enumerate(numbers) if number == numbers[RAIL]}


def test_straps_that_only_local_interconnect_joins_get_wires_and_a_strip_on_taps_needs_none():
    layout, job = column()
    assert {0, 1, RAIL} <= joined_by_wires(layout, job)


def test_a_signal_and_a_supply_without_another_way_may_use_the_ring():
    layout, job = column()
    signal = replace(job, nets=(replace(job.nets[0], least_cuts=1),))
    assert joined_by_wires(layout, signal) == {STRIP, RAIL}
    layout, job = column()
    assert joined_by_wires(layout, replace(job, by_rings=True)) == {STRIP, RAIL}


def test_only_local_interconnect_counts_as_resistive():
    assert [name for name in ("generic", "sky130A", "gf180mcuD", "sg13g2") if is_resistive(load(name))] == ["sky130A"]


def test_the_sources_of_the_demo_are_few_ohms_from_their_rails(finished_layout):
    _, workspace = finished_layout(OTA, "sky130A")
    technology, layout = load("sky130A"), kdb.Layout()
    layout.read(str(workspace / "layout.gds"))
    circuit = read_netlist(workspace / "circuit.json")
    found = extract_parasitics(layout, circuit, technology)
    ohms = {(each.device, net.net): each.ohm for net in found.nets for each in net.terminals if each.terminal == "s"}
    supplied = {key: ohm for key, ohm in ohms.items() if key[1] in {"vdd", "vss"}}
    assert len(supplied) == 4
    assert all(ohm < LARGEST_OHM for ohm in supplied.values()), supplied
