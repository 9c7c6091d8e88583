"""Layouts drawn box by box in gf180mcuD, so that the review is not judged by the generators it judges.

A transistor has a column of contacts on every source and drain and one on a poly landing above each gate. ``comb``
joins the ends of a net by columns of Metal2 to a track of Metal3. Lengths are in micrometres. No design rule is kept.
"""

import klayout.db as kdb
import pytest

from layoutkit.circuit import read_netlist
from layoutkit.circuit.constraints import Constraints
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.draw.bipolar import BipolarSpec, bipolar, draw_bipolars
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.review.design_review import review_layout
from layoutkit.review.finding import shipped_limits
from layoutkit.technology import load
from layoutkit.technology.passive_sizes import PassiveSize

GF = load("gf180mcuD")
SIDE = 0.6  # of a source or drain
WIRE = 0.28
LIMITS = shipped_limits()


def severities(review, kind, words=""):
    return {each.severity for each in review.findings if each.id == kind and words in each.why}


def limit(name, severity):
    return getattr(LIMITS[name], severity)


def both(name, *severities_):
    """Return a test's parameters for the limits of these severities: figure, and what must be found."""
    found = []
    for severity in severities_:
        value = limit(name, severity)
        lesser = {"should"} if severity == "must" and limit(name, "should") is not None else set()
        inside, outside = (1.1, 0.9) if LIMITS[name].at_least else (0.9, 1.1)
        found += [(value * inside, lesser), (value * outside, {severity})]
    return pytest.mark.parametrize(("figure", "expected"), found)


class Planted:
    def __init__(self):
        self.layout = kdb.Layout()
        self.layout.dbu = 0.001
        self.cell = self.layout.create_cell("TOP")
        self.ends = {}
        self.cards = []
        self.ports = []
        self.drawn = {}  # net to its boxes of metal
        self.tap("nmos", "vss", -2, 5)  # of the substrate

    def box(self, layer, left, bottom, right, top, net=None):
        box = kdb.DBox(left, bottom, right, top).to_itype(0.001)
        self.cell.shapes(GF.layer(self.layout, layer)).insert(box)
        if net is not None:
            self.drawn.setdefault(net, []).append((layer, box))

    def erase(self, layer, left, bottom, right, top):
        """Cut a hole into a layer."""
        shapes = self.cell.shapes(GF.layer(self.layout, layer))
        left_over = kdb.Region(shapes) - kdb.Region(kdb.DBox(left, bottom, right, top).to_itype(0.001))
        shapes.clear()
        shapes.insert(left_over)

    def square(self, layer, x, y, side, net=None):
        self.box(layer, x - side / 2, y - side / 2, x + side / 2, y + side / 2, net)

    def mos(self, name, kind, x, y, w, l, nets, fingers=1, turned=False, nf=None):  # noqa: E741, PLR0917 - as on a card
        """Draw a transistor whose diffusion begins at (x, y); sources and drains alternate, a source first."""
        d, g, s, b = nets.split()
        spec = GF.device(kind)
        width = fingers * l + (fingers + 1) * SIDE

        def at(a, c):
            return (x + c, y + a) if turned else (x + a, y + c)

        def draw(layer, left, bottom, right, top, net=None):
            one, other = at(left, bottom), at(right, top)
            self.box(layer, *one, *other, net)

        draw("COMP", 0, 0, width, w)
        draw(spec.implant, -0.2, -0.2, width + 0.2, w + 0.2)
        if kind == "pmos":
            draw("Nwell", -0.5, -0.5, width + 1.9, w + 1.2)
        for index in range(fingers + 1):
            net, middle = (s, d)[index % 2], index * (l + SIDE) + SIDE / 2
            draw("Metal1", middle - 0.15, 0.1, middle + 0.15, w - 0.1, net)
            for row in range(max(1, round((w - 0.4) / 0.5))):
                self.square("Contact", *at(middle, 0.3 + 0.5 * row), 0.22)
            self.ends.setdefault(net, []).append(at(middle, w - 0.3))
        for index in range(fingers):
            left = SIDE + index * (l + SIDE)
            draw("Poly2", left, -0.3, left + l, w + 0.3)
            centre = at(left + l / 2, w + 0.6)
            draw("Poly2", left + l / 2 - 0.25, w + 0.3, left + l / 2 + 0.25, w + 0.85)
            self.square("Contact", *centre, 0.22)
            self.square("Metal1", *centre, 0.4, g)
            self.ends.setdefault(g, []).append(centre)
        if kind == "pmos":
            self.tap(kind, b, *at(width + 1.2, 0.4))
        self.cards.append(
            f"{name} {d} {g} {s} {b} {spec.model} W={w * fingers}u L={l}u nf={fingers if nf is None else nf}"
        )

    def bar(self, name, x, y, w, l, nets, upright=True):  # noqa: E741, PLR0917 - as on a card
        """Draw a resistor of p+ poly whose core begins at (x, y); its body is the substrate."""
        one, other = nets.split()

        def draw(layer, left, bottom, right, top, net=None):
            box = (left, bottom, right, top) if upright else (bottom, left, top, right)
            origin = (x, y, x, y)
            self.box(layer, *(a + b for a, b in zip(box, origin, strict=True)), net)

        draw("Poly2", 0, -0.8, w, l + 0.8)
        for layer in ("SAB", "RES_MK"):
            draw(layer, -0.2 if layer == "SAB" else 0, 0, w + 0.2 if layer == "SAB" else w, l)
        draw("Pplus", -0.2, -1.0, w + 0.2, l + 1.0)
        for net, middle in ((one, -0.5), (other, l + 0.5)):
            place = (x + w / 2, y + middle) if upright else (x + middle, y + w / 2)
            self.square("Contact", *place, 0.22)
            self.square("Metal1", *place, 0.4, net)
            self.ends.setdefault(net, []).append(place)
        self.cards.append(f"{name} {one} {other} vss ppolyf_u W={w}u L={l}u")

    def plate(self, name, x, y, side, nets):
        """Draw a MIM capacitor: its top is Metal5 over the plate, its bottom Metal4, which reaches 1 um farther."""
        top, bottom = nets.split()
        self.box("FuseTop", x, y, x + side, y + side)
        self.box("Metal4", x - 1, y - 1, x + side + 1, y + side + 1, bottom)
        self.box("Metal5", x + 0.5, y + 0.5, x + side - 0.5, y + side - 0.5, top)
        self.square("Via4", x + side / 2, y + side / 2, 0.26)
        for layer in ("CAP_MK", "MIM_L_MK"):
            self.box(layer, x - 1, y - 1, x + side + 1, y + side + 1)
        self.cards.append(f"{name} {top} {bottom} cap_mim_2f0_m4m5_noshield W={side}u L={side}u")

    def npn(self, name, x, y, nets):
        """Draw a bipolar transistor, its body at the ground, whose wires of Metal3 become columns of Metal4.

        Its contacts have to be those of the foundry's cell, which the generator draws; 23 um to the next one.
        """
        terminals = {"c": "c", "b": "b", "e": "e", "s": "s"}  # apart even where nets are the same
        device = bipolar(GF, name, "npn_05p00x05p00", PassiveSize(5e-6, 5e-6, 1), terminals)
        drawn = draw_bipolars(self.layout, GF, BipolarSpec(name, (device,))).cell
        for layer in self.layout.layer_indexes():
            for shape in [each for each in drawn.shapes(layer).each() if each.is_text()]:
                drawn.shapes(layer).erase(shape)
        self.cell.insert(kdb.DCellInstArray(drawn, kdb.DVector(x, y)))
        for net, dx in zip((*nets.split(), "vss"), (9.3, 13.78, 18.26, 4.82), strict=True):
            self.via3(net, x + dx, y + 1)
            self.box("Metal4", x + dx - 0.2, y - 3, x + dx + 0.2, y + 1, net)
            self.via3(net, x + dx, y - 3)
            self.square("Metal3", x + dx, y - 3, 0.4, net)
            self.square("Via2", x + dx, y - 3, 0.26)
            self.square("Metal2", x + dx, y - 3, 0.4, net)
            self.square("Via1", x + dx, y - 3, 0.26)
            self.ends.setdefault(net, []).append((x + dx, y - 3))
        self.cards.append(f"{name} {nets} vss npn_05p00x05p00")

    def tap(self, kind, net, x, y, size=0.5):
        self.square("COMP", x, y, size)
        self.square("Nplus" if kind == "pmos" else "Pplus", x, y, size + 0.2)
        self.square("Contact", x, y, 0.22)
        self.square("Metal1", x, y, 0.4, net)
        self.ends.setdefault(net, []).append((x, y))

    def column(self, net, x, y, track):
        """Lead an end of a net up or down to a track."""
        self.square("Via1", x, y, 0.26)
        low, high = min(y, track), max(y, track)
        self.box("Metal2", x - WIRE / 2, low - WIRE / 2, x + WIRE / 2, high + WIRE / 2, net)
        self.square("Metal1", x, y, 0.34, net)
        self.square("Via2", x, track, 0.26)

    def comb(self, net, track, left=None, right=None, width=WIRE, port=True):
        """Join the ends of a net by a track from the outermost ends, or as far as told; its label is at the left."""
        xs = [x for x, _ in self.ends[net]]
        first = min(xs) - WIRE / 2 if left is None else left
        last = max(xs) + WIRE / 2 if right is None else right
        for x, y in self.ends[net]:
            self.column(net, x, y, track)
        self.box("Metal3", first, track - width / 2, last, track + width / 2, net)
        if port:
            self.label(net, "Metal3", first + 0.1, track)

    def via3(self, net, x, y):
        self.square("Via3", x, y, 0.26)
        self.square("Metal4", x, y, 0.4, net)

    def label(self, net, conductor, x, y):
        layer = GF.layer(self.layout, GF.conductor(conductor).label_layer)
        self.cell.shapes(layer).insert(kdb.Text(net, round(x * 1000), round(y * 1000)))
        if net not in self.ports:
            self.ports.append(net)

    def move_label(self, net, conductor, x, y):
        """Take the label of a port to another place of its wire."""
        self.erase_label(net, conductor)
        self.label(net, conductor, x, y)

    def erase_label(self, net, conductor):
        shapes = self.cell.shapes(GF.layer(self.layout, GF.conductor(conductor).label_layer))
        for shape in [each for each in shapes.each() if each.text.string == net]:
            shapes.erase(shape)

    def area_of_signals(self, supplies=("vss", "vdd")):
        """Return the area of the metal of all nets but the supplies. [um2]"""
        total = 0.0
        for net, boxes in self.drawn.items():
            for layer in {layer for layer, _ in boxes}:
                if net not in supplies:
                    region = kdb.Region([kdb.Polygon(box) for each, box in boxes if each == layer])
                    total += region.merged().area() * 1e-6
        return total

    def review(self, netlist=None, constraints=None, limits=None, supplies=None):
        """Return the review of the layout, which must be the circuit of its cards."""
        text = netlist or "\n".join([f".subckt TOP {' '.join(self.ports)}", *self.cards, ".ends", ""])
        circuit = read_netlist(NetlistText(f"* planted\n{text}"), supplies=supplies, identify_modules=False)
        result = compare(extract(self.layout, self.cell, GF), circuit)
        assert result.matched, [mismatch.message for mismatch in result.mismatches]
        asked = None if constraints is None else Constraints.from_json(constraints)
        return review_layout(result, circuit, asked, limits)


def pair(gap=1.0, **second):
    """Return a differential pair with its tail below; keywords change the second transistor, or add a foreign one."""
    planted = Planted()
    width = 1.0 + 2 * SIDE
    x = width + gap
    planted.mos("M1", "nmos", 0, 10, 4, 1, "outp inp tail vss")
    planted.mos("M2", "nmos", x + second.get("dx", 0), 10 + second.get("dy", 0), second.get("w", 4), 1,
                "outn inn tail vss", second.get("fingers", 1), second.get("turned", False), nf=1)  # fmt: skip
    planted.mos("M3", "nmos", (width + x) / 2 - 1.1, 0, 4, 1, "tail bias vss vss")
    return planted


def wired(planted, **tracks):
    """Return a planted pair with its nets joined; keywords place a net's track."""
    wanted = {"outp": 24.0, "outn": 25.0, "inp": 18.0, "inn": 19.0, "tail": 7.0, "bias": -3.0, "vss": -5.0, **tracks}
    for net in planted.ends:
        planted.comb(net, wanted[net], port=net != "tail")
    return planted
