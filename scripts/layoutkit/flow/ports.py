"""The ports of a design at the boundary of its cell: what each leads to, and what became of the wanted sides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.circuit.constraints import Outcome
from layoutkit.circuit.roles import find_roles
from layoutkit.flow.current_loads import stated_currents
from layoutkit.flow.net_wishes import antenna_lengths
from layoutkit.flow.port_frame import RAIL_SIDES, PortNet, draw_frame, plan_frame, port_conductors
from layoutkit.flow.routing_job import routing_conductors, track_pitch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.flow.design import Design
    from layoutkit.flow.placing import PlacedModules
    from layoutkit.flow.port_frame import Frame, Port
    from layoutkit.flow.room import Room
    from layoutkit.place import PlacementOptions
    from layoutkit.route.routes import RoutingResult
    from layoutkit.technology import Conductor, Technology

CHANNEL_TRACKS = 1
"""Least room for wires between the modules and the rails or the boundary, in track pitches of the third conductor.

Wires run over the modules where there is more room; with four tracks they lay beside them, and cells of ten ports were
a tenth larger.
"""


def with_ports(
    placed: PlacedModules, design: Design, room: Room, max_aspect: float | None = None
) -> tuple[PlacedModules, list[str]]:
    """Return placed modules with a frame of ports and rails, drawn; and what leads to no device, in words.

    Nets of black boxes that are no ports are labelled on the largest of their pins, so that the black box can be
    connected there.

    Args:
        placed: The modules.
        design: What they draw.
        room: Room for wires, that between modules also around them, beyond what ports usually need.
        max_aspect: Largest ratio of the longer to the shorter side of the cell, unless that of the modules is larger;
            None for any.
    """
    nets, loose = _port_nets(placed, design)
    channel = CHANNEL_TRACKS * track_pitch(placed.technology) + room.between
    core = placed.cell.bbox() + _kept_clear(placed)
    metal_in = _Metal(placed).inside if room.rails_over else None
    frame = plan_frame(placed.technology, core, nets, channel, design.supply_style, metal_in)
    longer, shorter = max(core.width(), core.height()), max(1, min(core.width(), core.height()))
    if max_aspect is not None:
        frame = replace(frame, max_aspect=max(max_aspect, longer / shorter))
    draw_frame(placed.layout, placed.cell, placed.technology, frame)
    loose += _label_black_boxes(placed, design.circuit)
    framed = replace(placed, frame=frame)
    return replace(framed, outcomes=(*placed.outcomes, *_outcomes(framed, design))), loose


def _kept_clear(placed: PlacedModules) -> kdb.Box:
    """Return the box of what design rules keep clear of other metal on the conductors of ports; empty for nothing."""
    names = {conductor.name for conductor in port_conductors(placed.technology)}
    box = kdb.Box()
    for module in placed.modules.values():
        for keepout in module.keepouts:
            if keepout.by_rule and keepout.layer in names:
                box += placed.place_of(module, keepout.box)
    return box


class _Metal:
    """The metal and the keepouts of placed modules, by net."""

    def __init__(self, placed: PlacedModules) -> None:
        self.placed = placed
        self.pins: dict[str, list[tuple[str, kdb.Box]]] = {}
        self.keepouts: dict[str, list[kdb.Box]] = {}
        for module in placed.modules.values():
            for pin in module.pins:
                self.pins.setdefault(pin.layer, []).append((pin.net, placed.place_of(module, pin.box)))
            for keepout in module.keepouts:
                self.keepouts.setdefault(keepout.layer, []).append(placed.place_of(module, keepout.box))

    def inside(self, conductor: Conductor, box: kdb.Box) -> dict[str, kdb.Region]:
        """Return the metal of each net in ``box``; metal without pins, and keepouts, under an empty name. [dbu]"""
        layer = self.placed.technology.layer(self.placed.layout, conductor.layer)
        rest = kdb.Region(self.placed.cell.begin_shapes_rec_touching(layer, box)).merged()
        found: dict[str, kdb.Region] = {}
        for net, pin in self.pins.get(conductor.name, ()):
            if pin.touches(box):
                found.setdefault(net, kdb.Region()).insert(pin)
        for net, pins in found.items():
            found[net] = rest.interacting(pins) & kdb.Region(box)
        for region in found.values():
            rest -= region
        found[""] = rest & kdb.Region(box)
        for keepout in self.keepouts.get(conductor.name, ()):
            found[""].insert(keepout & box)
        return found


def ports_data(frame: Frame, technology: Technology) -> list[dict[str, Any]]:
    """Return the ports as JSON data: side, conductor, pin and distance to the boundary. [um]"""
    um = technology.to_um
    return [
        {
            "port": port.name,
            "use": frame.nets[port.name].use,
            "direction": frame.nets[port.name].direction,
            "side": port.side,
            "layer": port.layer,
            "pin": [um(port.pin.left), um(port.pin.bottom), um(port.pin.right), um(port.pin.top)],
            "at_boundary": touches_boundary(port, frame.boundary),
        }
        for port in frame.ports
    ]


def supplies_data(placed: PlacedModules, result: RoutingResult) -> list[dict[str, Any]]:
    """Return how each supply with rails joins its modules, as JSON data.

    ``rail_width`` is that of its narrowest rail [um]; ``least_cuts`` are the cuts that every connection of a module has
    at least, 0 where the supply needs no via; ``weak_connections`` are the cuts that a module depends on alone.
    """
    frame = placed.frame
    rails = [port for port in frame.ports if port.rail] if frame else []
    found = []
    for net in sorted({port.name for port in rails}):
        widths = [min(port.box.width(), port.box.height()) for port in rails if port.name == net]
        modules = sorted(name for name, module in placed.modules.items() if module.pins_of(net))
        routed = next((each for each in result.nets if each.name == net), None)
        vias = routed.vias if routed else ()
        weak = [each for each in routed.single_cuts if each.alone] if routed else []
        found.append(
            {
                "net": net,
                "rail_width": placed.technology.to_um(min(widths)),
                "modules": modules,
                "routed": not modules or (routed is not None and routed.success),
                "least_cuts": 1 if weak else min((max(via.columns * via.rows, 2) for via in vias), default=0),
                "weak_connections": [{"net": net, **each.to_json(placed.technology.to_um)} for each in weak],
            }
        )
    return found


def weak_supplies(supplies: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return each connection in ``supplies_data`` that has one cut instead of two, in words."""
    return [
        f"supply {supply['net']}: modules depend on a single {weak['cut']} at ({x:g}, {y:g}) um, where two cuts are "
        f"required: {weak['reason']}"
        for supply in supplies
        for weak in supply["weak_connections"]
        for x, y in [weak["position"]]
    ]


def touches_boundary(port: Port, boundary: kdb.Box) -> bool:
    """Return whether the pin of a port lies inside the boundary and touches it."""
    pin = port.pin
    edges = (
        (pin.left, boundary.left),
        (pin.right, boundary.right),
        (pin.bottom, boundary.bottom),
        (pin.top, boundary.top),
    )
    return pin.inside(boundary) and any(one == other for one, other in edges)


def with_port_places(options: PlacementOptions, design: Design) -> PlacementOptions:
    """Return the options with the sides of rails, and with the pairs of ports that lie at the left and right.

    Sides that the options or constraints state come first.
    """
    circuit, stated = design.circuit, {**design.constraints.sides, **options.sides}
    rails = {}
    if design.supply_style == "rails":
        uses = {port: each.use for port, each in find_roles(circuit).ports.items()}
        rails = {port: RAIL_SIDES[use][0] for port, use in uses.items() if use in RAIL_SIDES}
    pairs = (pair for group in design.constraints.symmetry for pair in group.net_pairs)
    mirrored = tuple(pair for pair in pairs if set(pair) <= set(circuit.ports) and not set(stated) & set(pair))
    return replace(options, mirrored=mirrored, sides={**rails, **stated})


def _port_nets(placed: PlacedModules, design: Design) -> tuple[list[PortNet], list[str]]:
    circuit = design.circuit
    wanted = {entry.port: entry for entry in design.constraints.port_sides}
    uses, currents = find_roles(circuit).ports, stated_currents(design.constraints, circuit)
    antennas = antenna_lengths(placed.technology, circuit, routing_conductors(placed.technology))
    pins: dict[str, list[tuple[str, kdb.Box]]] = {}
    for module in placed.modules.values():
        for pin in module.pins:
            pins.setdefault(pin.net, []).append((pin.layer, placed.place_of(module, pin.box)))
    loose = [port for port in dict.fromkeys(circuit.ports) if port not in pins]
    words = [f"port {port} connects to no device; it is metal with a label at the boundary" for port in loose]
    nets = {
        port: PortNet(
            port,
            tuple(box for _, box in pins.get(port, ())),
            use=uses[port].use,
            direction=uses[port].direction,
            side=wanted[port].side if port in wanted else None,  # type: ignore[arg-type]
            order=wanted[port].order if port in wanted else None,
            current=currents.get(port),
            layers=frozenset(layer for layer, _ in pins.get(port, ())),
            longest=max(antennas.get(port, {}).values(), default=None),
        )
        for port in dict.fromkeys(circuit.ports)
    }
    for one, other in (pair for group in design.constraints.symmetry for pair in group.net_pairs):
        if one in nets and other in nets:
            axis, images = _mirrored_pins(pins[one], pins[other])
            axis = axis if axis == placed.placement.axis_x else None  # wires are mirrored about that one only
            for net, partner, boxes in ((one, other, images[0]), (other, one, images[1])):
                nets[net] = replace(nets[net], partner=partner, axis=axis, pins=boxes or nets[net].pins)
    return list(nets.values()), words


def _mirrored_pins(
    one: Sequence[tuple[str, kdb.Box]], other: Sequence[tuple[str, kdb.Box]]
) -> tuple[int | None, tuple[tuple[kdb.Box, ...], tuple[kdb.Box, ...]]]:
    """Return the vertical axis about which most pins of two nets are mirror images [dbu], and those pins of each net.

    The axis is None, and there are no pins, where no two pins are images about an axis on the database unit.
    """
    found: dict[int, tuple[list[kdb.Box], list[kdb.Box]]] = {}
    for layer, box in one:
        for other_layer, image in other:
            same = (layer, box.bottom, box.top, box.width()) == (other_layer, image.bottom, image.top, image.width())
            total = box.left + image.right
            if same and total % 2 == 0:
                pins = found.setdefault(total // 2, ([], []))
                pins[0].append(box)
                pins[1].append(image)
    if not found:
        return None, ((), ())
    axis = min(found, key=lambda each: (-len(found[each][0]), each))
    return axis, (tuple(found[axis][0]), tuple(found[axis][1]))


def _label_black_boxes(placed: PlacedModules, circuit: Circuit) -> list[str]:
    """Label the nets of black boxes that are no ports; return those that have no metal, in words."""
    missing = []
    for net in dict.fromkeys(net for net in circuit.black_box_nets if circuit.nets[net] and net not in circuit.ports):
        pins = [(placed.place_of(m, pin.box), pin.layer) for m in placed.modules.values() for pin in m.pins_of(net)]
        if not pins:
            missing.append(f"net {net} of a black box connects to no device; it has no metal and no label")
            continue
        box, layer = max(pins, key=lambda entry: (entry[0].area(), str(entry[0])))
        conductor, technology = placed.technology.conductor(layer), placed.technology
        if conductor.pin_layer is not None:
            placed.cell.shapes(technology.layer(placed.layout, conductor.pin_layer)).insert(box)
        middle = kdb.Trans(technology.snap(box.center().x), technology.snap(box.center().y))
        placed.cell.shapes(technology.layer(placed.layout, conductor.label_layer)).insert(kdb.Text(net, middle))
    return missing


def _outcomes(placed: PlacedModules, design: Design) -> list[Outcome]:
    """Return for each wanted side whether the port is there, and in its order."""
    frame, found = placed.frame, []
    if frame is None:
        return []
    orders = {entry.port: entry.order for entry in design.constraints.port_sides if entry.order is not None}
    for index, wanted in enumerate(design.constraints.port_sides):
        path, at = f"port_sides[{index}]", [port for port in frame.of(wanted.port) if port.side == wanted.side]
        if not at:
            sides = ", ".join(sorted({port.side for port in frame.of(wanted.port)}))
            found.append(Outcome(path, (wanted.port,), obeyed=False, reason=f"the port lies at the {sides}"))
        else:
            wrong = _out_of_order(frame, at[0], orders)
            reason = f"the port lies at the boundary, {wanted.side}"
            why = f"{reason}, but on the wrong side of {', '.join(wrong)}: mirror images come first"
            found.append(Outcome(path, (wanted.port,), obeyed=not wrong, reason=why if wrong else reason))
    return found


def _out_of_order(frame: Frame, port: Port, orders: dict[str, int]) -> list[str]:
    """Return the ports of the same side that an order wants on the other side of ``port``."""
    if port.name not in orders or port.rail:
        return []

    def at(other: Port) -> int:
        return other.pin.center().y if port.side in {"left", "right"} else other.pin.center().x

    return [
        other.name
        for other in frame.ports
        if other.side == port.side
        and not other.rail
        and other.name in orders
        and (orders[other.name] - orders[port.name]) * (at(other) - at(port)) < 0
    ]
