"""The frame of a placed cell in the JSON request of the router, lengths in micrometres: written, and read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutkit.tools.cell_placement import box_um

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.flow.port_frame import Frame
    from layoutkit.technology import Technology


def frame_data(technology: Technology, frame: Frame) -> dict[str, Any]:
    """Return a frame as ``read_frame`` reads it, without the area for wires."""
    aspect = {} if frame.max_aspect is None else {"max_aspect": frame.max_aspect}
    return {
        **aspect,
        "boundary": box_um(frame.boundary, technology),
        "core": box_um(frame.core, technology),
        "ports": [
            {
                "port": port.name,
                "side": port.side,
                "layer": port.layer,
                "box": box_um(port.box, technology),
                "pin": box_um(port.pin, technology),
                "rail": port.rail,
            }
            for port in frame.ports
        ],
        "cuts": [{"layer": name, "box": box_um(box, technology)} for name, box in frame.cuts],
    }


def read_frame(technology: Technology, entry: Mapping[str, Any], wiring: kdb.Box) -> Frame:
    """Return the frame in a request, with the area for wires.

    Raises:
        TechnologyError: If the technology has no such conductor.
    """
    from layoutkit.flow.port_frame import Frame, Port, label_place

    def box(data: Mapping[str, float]) -> kdb.Box:
        return _box(technology, data)

    ports = []
    for each in entry["ports"]:
        layer, pin = technology.conductor(each["layer"]).name, box(each["pin"])
        label = label_place(technology, pin, rail=each["rail"])
        ports.append(Port(each["port"], each["side"], layer, box(each["box"]), pin, label, each["rail"]))
    cuts = tuple((technology.resolve(each["layer"]), box(each["box"])) for each in entry["cuts"])
    found = Frame(box(entry["boundary"]), box(entry["core"]), wiring, tuple(ports), cuts)
    return replace(found, max_aspect=entry.get("max_aspect"))


def _box(technology: Technology, data: Mapping[str, float]) -> kdb.Box:
    import klayout.db as kdb

    left, bottom, width, height = (round(data[side] / technology.dbu_um) for side in ("x", "y", "width", "height"))
    return kdb.Box(left, bottom, left + width, bottom + height)
