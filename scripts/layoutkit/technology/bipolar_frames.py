"""What surrounds the emitter of a vertical bipolar transistor: rectangular frames, at distances from its edge.

::

    +-------------------------+    collector   p+ ring in the substrate
    |  +-------------------+  |    well        from the emitter to beyond the base ring
    |  |  +-------------+  |  |    base        n+ ring in the well
    |  |  |  +-------+  |  |  |
    |  |  |  |emitter|  |  |  |    p+ diffusion in the well
    |  |  |  +-------+  |  |  |
    |  |  +-------------+  |  |
    |  +-------------------+  |
    +-------------------------+

A frame begins and ends at distances from the emitter, in x and in y; one that begins at 0 covers the emitter as well.
The numbers are those of the foundry's cell. The other frames are implants and the markers of the device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.technology.device_specs import PassiveSpec

    Distance = tuple[int, int]
    Frame = tuple[Distance, Distance]

FRAMES = ("base", "collector", "well", "emitter_implant", "collector_implant")
"""The frames that every vertical bipolar transistor has."""
OPTIONAL_FRAMES = ("base_implant",)
"""The implant of the base ring, where the process draws one."""


def frames_of(spec: PassiveSpec, width: int, grid: int) -> Mapping[str, Frame]:
    """Return the frames around an emitter of ``width`` [dbu]: name to inner and outer distance in x and y. [dbu]

    What grows with the width stays on ``grid``. [dbu]
    """
    if spec.base_growth is None:
        return spec.frames
    share, above = spec.base_growth
    growth = max(0, int(share * width) // grid * grid - above)
    ring = spec.frames["base"][1][0]

    def grown(distance: Distance) -> Distance:
        return (distance[0] + growth if distance[0] >= ring else distance[0]), distance[1]

    return {name: (grown(inner), grown(outer)) for name, (inner, outer) in spec.frames.items()}


def layer_of_frame(spec: PassiveSpec, name: str) -> str | None:
    """Return the layer or role that the frame ``name`` is drawn on; None where the process does not draw it."""
    transistor = spec.diffusion_of
    if transistor is None:
        return None
    parts = {
        "base": "tap",
        "collector": "tap",
        "well": transistor.well,
        "emitter_implant": transistor.implant,
        "collector_implant": transistor.implant,
        "base_implant": transistor.bulk_implant,
    }
    return parts.get(name, name)
