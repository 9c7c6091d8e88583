"""Transistors drawn box by box with KLayout alone, so that LVS is not judged by the generators it judges.

A sketch draws what is electrically needed and keeps no design rule. Transistors stand in a row, each in a well of its
own with a tap. Every gate, every diffusion and every tap has a column on the second metal up to the rail of its net
on the third; no two columns share an x.

    y = 20 um +  ===+=======================  rail of net "a" (metal 3), labelled by ``label_rails``
                 ===|========+==============  rail of net "b"
                    |        |
    y = w            |     gate landing
    y = 0..w      --#--|gate|--#--  tap
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import klayout.db as kdb

if TYPE_CHECKING:
    from layoutkit.technology import Technology

REACH = 1000  # diffusion beside a gate, and from gate to gate [dbu]
RAILS_FROM = 20_000
RAIL_LENGTH = 200_000


@dataclass
class Sketch:
    technology: Technology
    name: str = "TOP"
    layout: kdb.Layout = field(default_factory=kdb.Layout)
    next_x: int = 0
    rails: dict[str, int] = field(default_factory=dict)

    def __post_init__(self):
        self.layout.dbu = 0.001
        self.cell = self.layout.create_cell(self.name)
        self.metal = [conductor.name for conductor in self.technology.conductors]

    def box(self, layer, left, bottom, right, top):
        self.cell.shapes(self.technology.layer(self.layout, layer)).insert(kdb.Box(left, bottom, right, top))

    def square(self, layer, x, y, half=100):
        self.box(layer, x - half, y - half, x + half, y + half)

    def mos(self, kind, w, l, nets, *, fingers=1, text=None, at=None):  # noqa: E741
        """Draw a transistor of ``fingers`` fingers of ``w`` x ``l`` [dbu].

        ``nets`` are those of d g s b in this order, as on a SPICE card; "-" leaves a terminal unconnected.
        Sources and drains alternate from the left, beginning with a source. ``at`` puts it there, not in the row.
        """
        spec = self.technology.device(kind)
        d, g, s, b = (None if net == "-" else net for net in nets.split())
        left = self.next_x if at is None else at
        pitch = l + REACH
        right = left + REACH + fingers * pitch
        self.box("active", left, 0, right, w)
        self.box(spec.implant, left - 200, -200, right + 200, w + 200)
        for index in range(fingers + 1):
            self.join((s, d)[index % 2], left + REACH // 2 + index * pitch, w // 2)
        for index in range(fingers):
            gate = left + REACH + index * pitch
            centre = gate + l // 2
            self.box("poly", gate, -300, gate + l, w + 300)
            self.box("poly", centre - 200, w + 300, centre + 200, w + 700)
            self.join(g, centre, w + 500)
            if text:
                texts = self.cell.shapes(self.technology.layer(self.layout, "device_text"))
                texts.insert(kdb.Text(text, kdb.Trans(centre, w // 2)))
        if b is not None:
            self.tap(kind, b, right + 1000)
        if spec.well is not None:
            self.box(spec.well, left - 500, -1000, right + 2000, w + 1000)
        self.next_x = max(self.next_x, right + 4000)

    def tap(self, kind, net, x):
        self.square("tap", x, 0, 300)
        self.square(self.technology.device(kind).bulk_implant, x, 0, 400)
        self.join(net, x, 0)

    def join(self, net, x, y):
        """Contact what is at (x, y) and lead it to the rail of ``net``."""
        self.square(self.technology.contact.layer, x, y)
        self.square(self.metal[0], x, y, 150)
        if net is None:
            return
        rail = self.rail(net)
        self.square(self.technology.cuts[0].layer, x, y)
        self.box(self.metal[1], x - 150, y - 150, x + 150, rail)
        self.square(self.technology.cuts[1].layer, x, rail - 150)

    def rail(self, net):
        """Return the upper edge of the rail of ``net``, drawn when first asked for."""
        if net not in self.rails:
            self.rails[net] = RAILS_FROM + 1000 * len(self.rails)
            self.box(self.metal[2], -5000, self.rails[net] - 300, RAIL_LENGTH, self.rails[net])
        return self.rails[net]

    def label_rails(self, *nets, **renamed):
        """Label rails: by their own names, or ``rail="label"`` with another."""
        for net, text in {**{net: net for net in nets}, **renamed}.items():
            self.label(text, -4000, self.rail(net) - 150)
        return self

    def label(self, text, x, y, *, pin=False):
        conductor = self.technology.conductors[2]
        self.cell.shapes(self.technology.layer(self.layout, conductor.label_layer)).insert(
            kdb.Text(text, kdb.Trans(x, y))
        )
        if pin:
            self.square(conductor.pin_layer, x, y, 50)
