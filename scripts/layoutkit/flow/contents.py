"""What the cell of a design in progress holds: modules with devices, pins and labels of nets, and wires.

A module is an instance in the cell: what a drawing tool drew, or a module of the whole flow. Wires are the cell's own
shapes on conductors and cuts, except those that the flow drew before routing: ports and rails.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.draw.ring import RING
from layoutkit.errors import DeviceNotFoundError, FileError, LayoutkitError, did_you_mean, listed
from layoutkit.extract.connectivity import DrawnLayers, Nets, device_texts
from layoutkit.layout import files
from layoutkit.layout.cells import check_flat_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.flow.placing import TriedPlacement
    from layoutkit.flow.port_frame import Frame
    from layoutkit.layout.workspace import Workspace
    from layoutkit.technology import Technology

PLACED, PLACEMENT, ROUTES = "placed.gds", "placement.json", "routes.json"


@dataclass(frozen=True)
class HeldModule:
    """An instance in the cell.

    Attributes:
        name: Name of its cell; a second instance of a cell has its number behind it, as ``cell#2``.
        instance: The instance.
        devices: Ids of the devices in it, sorted; none for a ring of taps.
        rings: The rings of taps that a build drew around this module alone.
    """

    name: str
    instance: kdb.Instance
    devices: tuple[str, ...]
    rings: tuple[kdb.Instance, ...] = ()

    @property
    def instances(self) -> tuple[kdb.Instance, ...]:
        """What is moved or deleted together."""
        return (self.instance, *self.rings)

    @property
    def box(self) -> kdb.Box:
        """Its bounding box in the cell. [dbu]"""
        return self.instance.bbox()


@dataclass(frozen=True)
class NamedPin:
    """Metal that is known to belong to a net.

    Attributes:
        net: The net.
        layer: A conductor of the technology.
        box: The metal, or a point as a box without area. [dbu]
        module: Module that it belongs to; empty for a port or a label of the cell itself.
    """

    net: str
    layer: str
    box: kdb.Box
    module: str = ""

    @property
    def point(self) -> kdb.Point:
        """A point of the metal. [dbu]"""
        return self.box.center()


def stored_placement(workspace: Workspace | None, technology: Technology) -> TriedPlacement | None:
    """Return the placement that a build left in the workspace; None where it left none of this version."""
    from layoutkit.flow.stage_record import Surroundings, from_data

    if workspace is None or not workspace.path(PLACEMENT).is_file() or not workspace.path(PLACED).is_file():
        return None
    try:
        layout = files.read_layout(workspace.path(PLACED))
        around = Surroundings(technology, layout, ranks=False)
        tried: TriedPlacement = from_data(workspace.read_json(PLACEMENT), around)
        if not workspace.path(ROUTES).is_file():
            return tried
        return _with_frame(tried, from_data(workspace.read_json(ROUTES), around).frame)
    except (ValueError, FileError):
        return None


def _with_frame(tried: TriedPlacement, frame: Frame | None) -> TriedPlacement:
    """Return a placement with ports and rails where they are after routing, also drawn in its cell."""
    from layoutkit.flow.port_frame import draw_frame, erase_frame

    placed = tried.placed
    if frame is None or placed.frame is None:
        return tried
    erase_frame(placed.layout, placed.cell, placed.technology, placed.frame)
    draw_frame(placed.layout, placed.cell, placed.technology, frame)
    return replace(tried, placed=replace(placed, frame=frame), job=replace(tried.job, area=frame.wiring, frame=None))


class Contents:
    """The contents of one cell.

    Args:
        cell: The cell.
        technology: Its process.
        placement: The placement of the build that made the cell, which knows the pins of its modules; None without.
        fixed: A cell with the shapes that are no wires: ports and rails; None without.
    """

    def __init__(
        self,
        cell: kdb.Cell,
        technology: Technology,
        placement: TriedPlacement | None = None,
        fixed: kdb.Cell | None = None,
    ) -> None:
        check_flat_size(cell)
        self.cell, self.layout, self.technology = cell, cell.layout(), technology
        self.placement = placement
        self.fixed = fixed
        self.wire_layers = {conductor.name: conductor.layer for conductor in technology.conductors}
        self.wire_layers |= {cut.name: cut.layer for cut in technology.cuts}

    @classmethod
    def of(cls, cell: kdb.Cell, technology: Technology, workspace: Workspace | None) -> Contents:
        """Return the contents of a cell of a workspace, which may hold the placement of a build."""
        placement = stored_placement(workspace, technology)
        if placement is not None and placement.placed.cell.name == cell.name:
            return cls(cell, technology, placement, placement.placed.cell)
        if workspace is not None and workspace.path(PLACED).is_file():
            layout = files.read_layout(workspace.path(PLACED))
            fixed = layout.cell(cell.name)
            if fixed is not None:
                found = cls(cell, technology, None, fixed)
                found._fixed_layout = layout  # keeps the cell alive
                return found
        return cls(cell, technology)

    _fixed_layout: kdb.Layout | None = None

    @cached_property
    def modules(self) -> list[HeldModule]:
        """The modules, from the lowest to the highest."""
        own = self._own_device_texts()
        instances = sorted(self.cell.each_inst(), key=lambda i: (i.bbox().bottom, i.bbox().left, i.cell.name))
        counts: dict[str, int] = {}
        found = []
        for instance in instances:
            name = instance.cell.name
            counts[name] = counts.get(name, 0) + 1
            devices = {text for text, _ in device_texts(instance.cell, self.technology)}
            devices |= {text for text, point in own if instance.bbox().contains(point)}
            label = name if counts[name] == 1 else f"{name}#{counts[name]}"
            found.append(HeldModule(label, instance, tuple(sorted(devices))))
        return [replace(module, rings=_rings_of(module, found)) for module in found]

    def _own_device_texts(self) -> list[tuple[str, kdb.Point]]:
        role = self.technology.role("device_text")
        return [] if role is None else [(text.string, text.trans.disp.to_p()) for _, text in self.own_texts([role])]

    def module(self, name: str) -> HeldModule:
        """Return the module with this name, or with this device.

        Raises:
            DeviceNotFoundError: If there is none; the message lists the devices.
        """
        for module in self.modules:
            if name == module.name:
                return module
        for module in self.modules:
            if name in module.devices:
                return module
        known = sorted({*(m.name for m in self.modules), *(d for m in self.modules for d in m.devices)})
        raise DeviceNotFoundError(
            f"cell '{self.cell.name}' holds no device or module '{name}'{did_you_mean(name, known, 0.3)}; "
            f"it holds {', '.join(known[:20]) or 'none'}{' and more' if len(known) > 20 else ''}",
            details={"param_name": "device_id", "provided_value": name, "available": known},
        )

    def own_texts(self, layers: list[str]) -> Iterator[tuple[kdb.Shapes, kdb.Text]]:
        """Yield the cell's own texts on layers, with the shapes that hold each."""
        for layer in layers:
            index = self.layout.find_layer(*self.technology.spec(layer).gds)
            if index is not None:
                shapes = self.cell.shapes(index)
                yield from ((shapes, shape.text) for shape in list(shapes.each(kdb.Shapes.STexts)))

    @cached_property
    def labels(self) -> list[NamedPin]:
        """The cell's own labels, sorted."""
        found = []
        for conductor in self.technology.conductors:
            for _, text in self.own_texts([conductor.label_layer]):
                point = text.trans.disp.to_p()
                found.append(NamedPin(text.string, conductor.name, kdb.Box(point, point)))
        return sorted(found, key=lambda pin: (pin.net, pin.layer, str(pin.box)))

    @cached_property
    def pins(self) -> list[NamedPin]:
        """The pins of all modules and ports that have a name: as the build knows them, else by the modules' labels."""
        found = []
        for module in self.modules:
            stored = self.placement.placed.modules.get(module.instance.cell.name) if self.placement else None
            if stored is not None and not module.instance.is_regular_array():
                turned = module.instance.trans
                found += [NamedPin(p.net, p.layer, p.box.transformed(turned), module.name) for p in stored.pins]
            else:
                found += self._labelled_pins(module)
        frame = self.placement.placed.frame if self.placement else None
        if frame is not None:
            found += [NamedPin(port.name, port.layer, box) for port, box in frame.terminals]
        return sorted(found, key=lambda pin: (pin.net, pin.module, pin.layer, str(pin.box)))

    def _labelled_pins(self, module: HeldModule) -> Iterator[NamedPin]:
        """Yield the metal below each label in a module."""
        for conductor in self.technology.conductors:
            index = self.layout.find_layer(*self.technology.spec(conductor.label_layer).gds)
            metal = self.layout.find_layer(*self.technology.spec(conductor.layer).gds)
            if index is None or metal is None:
                continue
            drawn = kdb.Region(module.instance.cell.begin_shapes_rec(metal)).merged()
            for trans in module.instance.cell_inst.each_trans():
                for text in kdb.Texts(module.instance.cell.begin_shapes_rec(index)).each():
                    box = _metal_at(drawn, kdb.Point(text.x, text.y), self.technology.grid)
                    if box is not None:
                        yield NamedPin(text.string, conductor.name, box.transformed(trans), module.name)

    @cached_property
    def nets(self) -> Nets:
        """The connected metal."""
        metal = DrawnLayers(self.cell, self.technology).wiring
        return Nets(metal.regions, metal.joins, self.layout.dbu)

    @cached_property
    def named(self) -> dict[int, tuple[kdb.Net, set[str]]]:
        """Connected metal by its number, with the names that pins and labels give it."""
        found: dict[int, tuple[kdb.Net, set[str]]] = {}
        for pin in (*self.pins, *self.labels):
            net = self.nets.at(pin.layer, pin.point)
            if net is not None:
                found.setdefault(net.cluster_id, (net, set()))[1].add(pin.net)
        return found

    def pieces_of(self, name: str) -> list[tuple[kdb.Net, set[str]]]:
        """Return the pieces of connected metal that pins or labels give this name.

        Raises:
            LayoutkitError: If there are none; the message lists the nets.
        """
        found = [entry for _, entry in sorted(self.named.items()) if name in entry[1]]
        if not found:
            raise LayoutkitError(*_unknown_net(name, self.net_names, self.cell.name))
        return found

    @cached_property
    def net_names(self) -> list[str]:
        """The names of all nets, sorted."""
        return sorted({pin.net for pin in (*self.pins, *self.labels)})

    def wires(self, layer: str) -> kdb.Region:
        """Return the cell's own metal or cuts that are wires. [dbu]"""
        index = self.layout.find_layer(*self.technology.spec(layer).gds)
        if index is None:
            return kdb.Region()
        own = kdb.Region(self.cell.shapes(index))
        own.merged_semantics = False
        fixed = self.fixed_shapes(layer)
        kept = {polygon.to_s() for polygon in fixed.each()}
        return kdb.Region([polygon for polygon in own.each() if polygon.to_s() not in kept])

    def fixed_shapes(self, layer: str) -> kdb.Region:
        """Return the cell's own shapes on a layer that are no wires. [dbu]"""
        if self.fixed is None:
            return kdb.Region()
        index = self.fixed.layout().find_layer(*self.technology.spec(layer).gds)
        region = kdb.Region() if index is None else kdb.Region(self.fixed.shapes(index))
        region.merged_semantics = False
        return region

    def metal_of(self, module: HeldModule, layer: str) -> kdb.Region:
        """Return the metal on a layer of a module and its rings, in the cell. [dbu]"""
        index = self.layout.find_layer(*self.technology.spec(layer).gds)
        found = kdb.Region()
        if index is not None:
            for instance in module.instances:
                for trans in instance.cell_inst.each_trans():
                    found += kdb.Region(instance.cell.begin_shapes_rec(index)).transformed(trans)
        return found.merged()

    def net_names_at(self, layer: str, point: kdb.Point) -> str:
        """Return the name of the metal at a point; empty where it has none."""
        net = self.nets.at(layer, point) if layer in self.nets.regions else None
        entry = None if net is None else self.named.get(net.cluster_id)
        return "" if entry is None else ", ".join(sorted(entry[1]))


def _rings_of(module: HeldModule, modules: list[HeldModule]) -> tuple[kdb.Instance, ...]:
    """Return the rings that a build drew around a module and around no other one."""
    rings = [
        other.instance
        for other in modules
        if not other.devices and other.instance.cell.name.startswith(RING) and module.box.inside(other.box)
    ]
    return tuple(
        ring
        for ring in rings
        if module.devices and sum(bool(each.devices) and each.box.inside(ring.bbox()) for each in modules) == 1
    )


def _metal_at(metal: kdb.Region, point: kdb.Point, grid: int) -> kdb.Box | None:
    """Return a rectangle on the grid of the metal at a point; the largest one, None where there is no metal."""
    near = metal & kdb.Region(kdb.Box(point, point).enlarged(1, 1))
    whole = metal.interacting(near)
    for mode in (kdb.Polygon.TD_htrapezoids, kdb.Polygon.TD_vtrapezoids):
        boxes = [
            polygon.bbox()
            for polygon in whole.decompose_trapezoids_to_region(mode).each()
            if polygon.is_box() and polygon.bbox().contains(point)
        ]
        fitting = [box for box in boxes if all(side % grid == 0 for side in (box.left, box.bottom, box.right, box.top))]
        if fitting:
            return max(fitting, key=lambda box: (box.area(), str(box)))
    return None


def _unknown_net(name: str, known: list[str], cell: str) -> tuple[str]:
    close, has = did_you_mean(name, known, 0.3), listed(known) or "none"
    return (f"no pin or label of cell '{cell}' names net '{name}'{close}; it has: {has}",)
