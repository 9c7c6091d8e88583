"""The minimum distance of two blocks: the largest spacing that any two of their layers need."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.place.blocks import Block
    from layoutkit.technology import Technology


class Clearances:
    """Computes the gap between two blocks' bounding boxes from the technology's spacing rules."""

    def __init__(self, technology: Technology) -> None:
        self.grid = technology.grid
        self.wells = {spec.well for spec in technology.devices.values() if spec.well}
        self.spaces = _spaces(technology)
        self.beside_deep_well: dict[str, int] = {}
        self.deep_well = ""
        if technology.deep_well is not None:
            deep, self.deep_well = technology.deep_well, technology.roles["deep_nwell"]
            self.wells |= {self.deep_well, *((deep.body,) if deep.body else ())}
            self.spaces = {**self.spaces, self.deep_well: deep.dim("space")}
            diffusion = max(deep.dim("to_active"), deep.dim("to_taps"))
            self.beside_deep_well = {technology.resolve(role): diffusion for role in ("active", "tap")}
            self.beside_deep_well[technology.roles["nwell"]] = deep.dim("to_wells")
        flavours = sorted(technology.devices.items())
        self.to_well = max(technology.dim(name, d) for _, d in flavours for name in ("active_to_well", "tap_to_well"))
        self.implant_to_active = max(technology.dim("implant_to_active", d) for _, d in flavours)
        self.to_bodies: dict[str, int] = {}
        self.to_plates: dict[tuple[str, str], int] = {}
        for spec in technology.passives.values():
            if "bottom" in spec.parts:
                plate = spec.type, technology.conductor(spec.parts["bottom"]).layer
                self.to_plates[plate] = max(spec.dimensions.get("bottom_to_others", 0), self.to_plates.get(plate, 0))
            space = max(spec.dimensions.get(name, 0) for name in ("body_to_poly", "body_to_active"))
            self.to_bodies[spec.type] = max(space, self.to_bodies.get(spec.type, 0))
        implants = (layer for _, device in flavours for layer in (device.implant, device.bulk_implant))
        self.implants = {layer for layer in implants if layer}
        self.diffusion = {technology.resolve(role) for role in ("active", "tap")}
        self.covers = {layer: technology.dim("cover_to_others", d) for _, d in flavours for layer in d.covers}

    def between(self, first: Block, second: Block, axis: str) -> int:
        """Return the gap to keep between ``first`` and the block to its right (``x``) or above it (``y``). [dbu].

        Wells of one kind, oxide and bulk net may meet: they are one well. Blocks without taps have room for a ring.
        """
        one, other = (block.ring.outside if block.ring else block for block in (first, second))
        gap = self._gap(one, other, axis)
        if axis == "x":
            gap += _beyond(first, one, ("left", "right")) + _beyond(second, other, ("left", "right"))
        else:
            gap += _beyond(first, one, ("top",)) + _beyond(second, other, ("bottom",))
        return -(-gap // self.grid) * self.grid

    def beside(self, first: Block, second: Block) -> int:
        """Return the gap to keep between ``first`` and the block to its right, inside one ring where they share one."""
        shared = first.ring is not None and second.ring is not None and first.ring.key == second.ring.key
        return self.inside(first, second, "x") if shared else self.between(first, second, "x")

    def inside(self, first: Block, second: Block, axis: str) -> int:
        """Return the same gap for two blocks inside one ring. [dbu]"""
        near, far = (("left", "right"), ("left", "right")) if axis == "x" else (("top",), ("bottom",))
        gap = self._gap(first, second, axis)
        for (layer, another), space in first.ring.spaces.items() if first.ring else ():
            for a, b in ((layer, another), (another, layer)):
                if a in first.layer_boxes and b in second.layer_boxes:
                    gap = max(gap, space - _inset(first, a, near) - _inset(second, b, far))
        return -(-gap // self.grid) * self.grid

    def _gap(self, first: Block, second: Block, axis: str) -> int:
        """Return the gap between the boxes of two blocks, rings left aside. [dbu]"""
        near, far = (("left", "right"), ("left", "right")) if axis == "x" else (("top",), ("bottom",))
        merged = self.wells | self._merged(first, second, axis)
        one_well = (first.kind, first.bulk_net, self.oxide(first)) == (second.kind, second.bulk_net, self.oxide(second))
        gap = self._of_kinds(first, near, second, far)
        kinds = {*_kinds(first), *_kinds(second)}
        gap = max(gap, *(self.to_bodies.get(kind, 0) for kind in kinds))
        for layer, space in self.covers.items():
            covered = (layer in first.layer_boxes) + (layer in second.layer_boxes)
            if covered == 1 or (covered and (first.holds or second.holds)):
                gap = max(gap, space)
        for layer, space in self.spaces.items():
            if layer not in first.layer_boxes or layer not in second.layer_boxes or (one_well and layer in merged):
                continue
            plates = (self.to_plates.get((kind, layer), 0) for kind in kinds)
            gap = max(gap, max(space, *plates) - _inset(first, layer, near) - _inset(second, layer, far))
        for one, sides, other, facing in ((first, near, second, far), (second, far, first, near)):
            gap = max(gap, self._beside_deep_well(one, sides, other, facing))
        return gap

    def _of_kinds(self, first: Block, near: tuple[str, ...], second: Block, far: tuple[str, ...]) -> int:
        """Return the gap that wells and implants of one block keep to the diffusion of one of another kind. [dbu]"""
        if first.kind == second.kind:
            return 0
        if not (first.holds or second.holds):
            return max(self.to_well, self.implant_to_active)
        gap = 0
        for one, sides, other, facing in ((first, near, second, far), (second, far, first, near)):
            for layers, space in ((self.wells, self.to_well), (self.implants, self.implant_to_active)):
                insets = [_inset(one, layer, sides) for layer in layers if layer in one.layer_boxes]
                opposite = [_inset(other, layer, facing) for layer in self.diffusion if layer in other.layer_boxes]
                if insets and opposite:
                    gap = max(gap, space - min(insets) - min(opposite))
        return gap

    def _merged(self, first: Block, second: Block, axis: str) -> set[str]:
        """Return the layers whose shapes may be close: they face each other and are merged inside a ring."""
        if axis == "y" or first.ring is None or second.ring is None:
            return set()
        found = set()
        for layer, width in first.ring.merged.items():
            if layer in second.ring.merged:
                one, other = ((b.layer_boxes[layer], b.box.bottom) for b in (first, second))
                low = max(box.bottom - base for box, base in (one, other))
                if min(box.top - base for box, base in (one, other)) - low >= width:
                    found.add(layer)
        return found

    def _beside_deep_well(self, isolated: Block, sides: tuple[str, ...], other: Block, facing: tuple[str, ...]) -> int:
        """Return the gap from a block in a deep well to what lies in none; 0 if the first has none. [dbu]"""
        if self.deep_well not in isolated.layer_boxes or self.deep_well in other.layer_boxes:
            return 0
        inside = _inset(isolated, self.deep_well, sides)
        return max(
            (
                space - inside - _inset(other, layer, facing)
                for layer, space in self.beside_deep_well.items()
                if layer in other.layer_boxes
            ),
            default=0,
        )

    def oxide(self, block: Block) -> frozenset[str]:
        """Return the covers (thick oxide) that are drawn over ``block``."""
        return frozenset(layer for layer in self.covers if layer in block.layer_boxes)


def _kinds(block: Block) -> frozenset[str]:
    """Return the kinds of what a block holds."""
    return block.holds or frozenset({block.kind})


def _beyond(block: Block, outside: Block, sides: tuple[str, ...]) -> int:
    """Return how far ``outside`` extends beyond the box of ``block``, the same block without a ring. [dbu]"""
    return max(abs(int(getattr(outside.box, side)) - int(getattr(block.box, side))) for side in sides)


def _inset(block: Block, layer: str, sides: tuple[str, ...]) -> int:
    """Return the distance from the block's shapes on ``layer`` to its bounding box at the nearest of ``sides``. [dbu]

    Both sides count along x, since a block may be mirrored.
    """
    box, shapes = block.box, block.layer_boxes[layer]
    return min(abs(int(getattr(box, side)) - int(getattr(shapes, side))) for side in sides)


def _spaces(technology: Technology) -> Mapping[str, int]:
    spaces: dict[str, int] = {}
    for role in ("active", "tap"):
        spaces[technology.resolve(role)] = technology.dim("active_space")
    spaces[technology.resolve("poly")] = technology.dim("gate_space")
    for device in technology.devices.values():
        for layer in (device.implant, device.bulk_implant):
            if layer is not None:
                spaces[layer] = technology.dim("implant_space", device)
        if device.well:
            spaces[device.well] = max(spaces.get(device.well, 0), technology.dim("well_space", device))
        for layer in device.covers:
            spaces[layer] = technology.dim("cover_space", device)
    for conductor in technology.conductors:
        spaces[conductor.layer] = max(conductor.space, conductor.wide_space or 0)
    for passive in technology.passives.values():
        for layer in passive.markers:
            spaces[layer] = max(spaces.get(layer, 0), passive.dimensions.get(f"{layer}_space", 0))
    return spaces
