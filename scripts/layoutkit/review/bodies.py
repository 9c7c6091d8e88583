"""The shapes of devices: channels, cores of resistors, plates, emitters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.extract.resistor_devices import plate_layer

if TYPE_CHECKING:
    from layoutkit.extract.extracted import DrawnFinger
    from layoutkit.lvs.lvs_result import LvsResult


class Bodies:
    """Finds the shape of each channel, bar, plate or emitter of a layout.

    Args:
        result: The match of the layout.
    """

    def __init__(self, result: LvsResult) -> None:
        self.extraction = result.extraction
        self.shapes: dict[str, kdb.Shapes] = {}

    def box(self, finger: DrawnFinger) -> kdb.Box:
        """Return the box of a channel, bar or plate. [dbu]"""
        if finger.around is not None:
            return finger.around.box
        dbu = self.extraction.layout.dbu
        point = kdb.Point(round(finger.place.x / dbu), round(finger.place.y / dbu))
        if finger.device not in self.shapes:
            self.shapes[finger.device] = kdb.Shapes()
            for name in (f"core.{finger.device}", f"gate.{finger.device}", plate_layer(finger.device)):
                region = self.extraction.lvs.layer_by_name(name)
                if region is not None:
                    self.shapes[finger.device].insert(region.merged())
        at = [shape.bbox() for shape in self.shapes[finger.device].each_touching(kdb.Box(point, point))]
        return min(at, key=lambda box: (box.area(), str(box)), default=kdb.Box(point, point).enlarged(1, 1))
