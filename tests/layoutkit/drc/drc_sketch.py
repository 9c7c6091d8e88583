"""Draws, for a design rule, layouts that just keep it and layouts that just break it.

Nothing here uses the checker: an expression of layers is drawn by its own small reading of it, and every distance is
arithmetic on the rule's number ``v`` and one grid step ``g``.
"""

import ast
import math
from dataclasses import dataclass, replace

import drc_sketch_nets
import drc_sketch_wells
import klayout.db as kdb

from layoutkit.technology import Rule

BIG = 20000  # far more than any rule's reach, except where a rule is larger


@dataclass
class Sketch:
    """Boxes and polygons by drawn layer, then a layout."""

    technology: object

    def __post_init__(self):
        self.shapes = []

    def box(self, expression, left, bottom, right, top):
        """Draw layers so that ``expression`` is there in the box."""
        if left < right and bottom < top:
            self.polygon(expression, kdb.Polygon(kdb.Box(left, bottom, right, top)))
        return self

    def polygon(self, expression, polygon):
        self._draw(ast.parse(expression, mode="eval").body, polygon)
        return self

    def layout(self):
        layout = kdb.Layout()
        layout.dbu = self.technology.dbu_um
        cell = layout.create_cell("SKETCH")
        for name, polygon in self.shapes:
            cell.shapes(self.technology.layer(layout, name)).insert(polygon)
        return layout, cell

    def _draw(self, node, polygon):
        if isinstance(node, ast.Name | ast.Attribute):
            name = ast.unparse(node)
            if name in self.technology.derived:
                self.polygon(self.technology.derived[name], polygon)
            else:
                self.shapes.append((name, polygon))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            gds = (node.left.value, node.right.value)
            name = next(name for name, spec in self.technology.layers.items() if spec.gds == gds)
            self.shapes.append((name, polygon))
        elif isinstance(node, ast.BinOp):
            self._draw(node.left, polygon)
            if isinstance(node.op, ast.BitAnd):
                self._draw(node.right, polygon)
        else:
            self._draw(node.args[0], polygon)
            if node.func.id == "interacting":  # a sliver that touches on the left
                box = polygon.bbox()
                self._draw(node.args[1], kdb.Polygon(kdb.Box(box.left - 5, box.bottom, box.left, box.top)))
            elif node.func.id in {"overlapping", "inside"}:
                self._draw(node.args[1], polygon)


def drawn_layers(technology, expression):
    """Return the layers that drawing ``expression`` draws, in order."""
    sketch = Sketch(technology).box(expression, 0, 0, 10, 10)
    return list(dict.fromkeys(name for name, _ in sketch.shapes))


def cases(rule, technology):
    """Return the fields of every case of ``rule``, by the format's own words."""
    common = {key: value for key, value in rule.options.items() if key not in {"cases", "layers"}}
    if "cases" in rule.options:
        return [{**common, **case} for case in rule.options["cases"]]
    if "layers" in rule.options:
        listed = technology.measured_layers if rule.options["layers"] == "all" else rule.options["layers"]
        return [{**common, "layer": name} for name in listed]
    return [common]


def pairs(rule, fields, technology):
    """Return (kept, broken): layouts that keep the rule at its limit, and layouts one grid step beyond it.

    Raises:
        KeyError: If there is no drawing for a rule of this kind; write one.
    """
    drawing = Drawing(rule, fields, technology)
    special = drc_sketch_nets.special(drawing) or drc_sketch_wells.special(drawing)
    return (special or SKETCHES[rule.kind])(drawing)


@dataclass
class Drawing:
    rule: Rule
    fields: dict
    technology: object

    @property
    def v(self):
        return self.rule.value

    @property
    def g(self):
        return self.technology.grid

    def new(self):
        return Sketch(self.technology)

    def __getattr__(self, name):
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(name) from None


def _width(d):
    def at(w):
        return d.new().box(d.layer, 0, 0, w, max(BIG, 2 * d.v))

    return [at(d.v)], [at(d.v - d.g)]


def _space(d):
    big = max(BIG, 2 * d.v)

    def apart(gap):
        return d.new().box(d.layer, 0, 0, big, big).box(d.layer, big + gap, 0, 2 * big, big)

    def notched(gap):
        return apart(gap).box(d.layer, 0, -big, 2 * big, 0)

    kept, broken = [apart(d.v)], [apart(d.v - d.g)]
    if d.rule.kind == "space" and d.fields.get("notches") != "ignored":
        kept, broken = [*kept, notched(d.v)], [*broken, notched(d.v - d.g)]
    return kept, broken


def _notch(d):
    def notched(gap):
        u = d.new().box(d.layer, 0, 0, BIG, BIG).box(d.layer, BIG + gap, 0, 2 * BIG, BIG)
        return u.box(d.layer, 0, -BIG, 2 * BIG, 0)

    return [notched(d.v)], [notched(d.v - d.g)]


def _separation(d):
    def apart(gap, where="right"):
        sketch = d.new().box(d.layer, 0, 0, 1000, 1000)
        if where == "right":
            return sketch.box(d.other, 1000 + gap, 0, 2000 + gap, 1000)
        return sketch.box(d.other, 0, 1000 + gap, 1000, 2000 + gap)

    kept, broken = [apart(d.v), apart(d.v, "above")], [apart(d.v - d.g), apart(d.v - d.g, "above")]
    if d.fields.get("overlap", "forbidden") == "forbidden":
        layer, other = (set(drawn_layers(d.technology, text)) for text in (d.layer, d.other))
        shared = "abutting" in d.fields and set(drawn_layers(d.technology, d.abutting)) <= layer
        touch = not d.other.startswith("not_interacting")
        if not layer & other and not shared and touch:  # else they merge, or may share the edge
            broken.append(apart(0))
        # What overlaps is not concerned where it is another layer then, or where abutting is allowed.
        abuts = "abutting" in d.fields and f"- {d.layer}" in d.technology.derived.get(d.other, "")
        if not d.other.startswith(("not_overlapping", "not_interacting")) and not abuts:
            broken.append(apart(-d.g))
            cut = f"- {d.layer}" in d.other or f"- {d.other}" in d.technology.derived.get(d.layer, "")
            if not cut:  # else what lies within is another layer
                broken.append(apart(-1000))
    return kept, broken


def _overlap(d):
    def over(by):
        return d.new().box(d.layer, 0, 0, 5000, 5000).box(d.other, 5000 - by, -1000, 9000, 6000)

    return [over(d.v)], [over(d.v - d.g)]


def _enclosure(d):
    def around(left, bottom, right, top):
        sketch = d.new().box(d.inner, 0, 0, 400, 400).box(d.outer, -left, -bottom, 400 + right, 400 + top)
        if "interacting(" in d.inner.replace("not_interacting", ""):  # the sliver that touches is concerned as well
            sketch.box(d.outer, -5, 0, 0, 400)
        return sketch

    v, less = d.v, d.v - d.g
    if d.fields.get("sides") == "opposite":
        kept = [around(v, 0, v, 0), around(0, v, 0, v), around(v, v, v, v), around(v, less, v, less)]
        return kept, [around(less, v, v, less), around(v, less, less, v), around(v, v, less, less), around(0, 0, 0, 0)]
    broken = [around(*(less if side == short else v for side in range(4))) for short in range(4)]
    broken.append(d.new().box(d.inner, 0, 0, 400, 400).box(d.outer, 200, -v, 800, 400 + v))
    broken.append(d.new().box(d.inner, 0, 0, 400, 400).box(d.outer, BIG, 0, 2 * BIG, 400))
    return [around(v, v, v, v)], broken[: 4 if _shared(d) else None]


def _shared(d):
    """Return whether drawing the inner layer draws all of the outer one too, so that it can never lie outside."""
    inner = set(drawn_layers(d.technology, d.inner))
    return set(drawn_layers(d.technology, d.outer)) <= inner


def _extension(d):
    def beyond(below, above):
        return d.new().box(d.inner, -2000, 0, 2000, 400).box(d.outer, -200, -below, 200, 400 + above)

    v, less = d.v, d.v - d.g
    ending = beyond(v, -100)
    if d.fields.get("ends") == "allowed":
        return [beyond(v, v), ending], [beyond(v, less), beyond(less, v), beyond(v, 0)]
    return [beyond(v, v)], [beyond(v, less), beyond(less, v), beyond(v, 0), ending]


def _gate_width(d):
    def channel(w):
        return _around_channel(d, d.new().box(d.active, -5000, 0, 5000, w).box(_poly(d), -500, -2000, 500, w + 2000))

    return [channel(d.v)], [channel(d.v - d.g)]


def _around_channel(d, sketch):
    """Draw the other layers of the rule's channels, such as a well, over everything."""
    drawn = {*drawn_layers(d.technology, d.active), _poly(d)}
    for name in drawn_layers(d.technology, d.layer):
        if name not in drawn:
            sketch.box(name, -9000, -9000, 9000, 9000)
    return sketch


def _gate_length(d):
    def channel(length):
        return _around_channel(d, d.new().box(d.active, -5000, 0, 5000, 1000).box(_poly(d), 0, -2000, length, 3000))

    return [channel(d.v)], [channel(d.v - d.g)]


def _poly(d):
    return d.technology.resolve("poly")


def _exact_size(d):
    v, g = d.v, d.g

    def cut(w, h):
        return d.new().box(d.layer, 0, 0, w, h)

    if "length_um" in d.fields:
        long = round(d.length_um / d.technology.dbu_um)
        return [cut(v, long), cut(long, v)], [cut(v + g, long), cut(v, long + g), cut(long, v - g)]
    if d.layer.startswith("squares("):  # what is longer on one side is no contact but a bar
        return [cut(v, v)], [cut(v + g, v + g), cut(v - g, v - g)]
    return [cut(v, v)], [cut(v + g, v), cut(v, v + g), cut(v - g, v), cut(v, v - g), cut(v - g, v - g)]


def _sides_of(area, grid):
    """Return grid sides (w, h): w * h is ``area`` or more, exactly if possible, and w * (h - grid) is less."""
    near = math.isqrt(area) // grid * grid
    for w in range(near, grid, -grid):
        if area % (w * grid) == 0:
            return w, area // w
    return near, -(-area // (near * grid)) * grid


def _area(d):
    w, h = _sides_of(d.v, d.g)
    return [d.new().box(d.layer, 0, 0, w, h)], [d.new().box(d.layer, 0, 0, w, h - d.g)]


def _hole_area(d):
    w, h = _sides_of(d.v, d.g)
    big = max(BIG, 2 * w, 2 * h)

    def frame(h):
        sketch = d.new().box(d.layer, -big, -big, 0, big).box(d.layer, w, -big, big, big)
        return sketch.box(d.layer, 0, -big, w, 0).box(d.layer, 0, h, w, big)

    return [frame(h)], [frame(h - d.g)]


def _max_area(d):
    w, h = _sides_of(d.v, d.g)
    short = h if w * h == d.v else h - d.g
    return [d.new().box(d.layer, 0, 0, w, short)], [d.new().box(d.layer, 0, 0, w, short + d.g)]


def _array_space(d):
    """Cuts of the size and number that fill ``array_um`` at their least spacing; one row less is no array.

    With ``reach_um``, a middle gap of that length joins two halves to one array, and a grid step more parts them. With
    ``crossing_um``, rows may be nearer than columns.
    """
    side = round(d.array_um / d.technology.dbu_um)
    alike = (d.layer, f"squares({d.layer})")
    ruled = {r.kind: r.value for r in reversed(d.technology.rules) if r.options.get("layer") in alike}
    size, least = ruled.get("exact_size", 260), ruled.get("space", 260)
    count = math.isqrt(int(d.fields.get("count", 0))) or -(-(side + least) // (size + least))

    def array(gap, columns, rows, middle=None, up=None):
        sketch = d.new()
        for i in range(columns * rows):
            x, y = i % columns * (size + gap), i // columns * (size + (up or gap))
            if middle is not None and i % columns >= columns // 2:
                x += middle - gap
            sketch.box(d.layer, x, y, x + size, y + size)
        return sketch

    short = round(d.fields.get("crossing_um", 0) / d.technology.dbu_um)
    less = short // d.g * d.g or d.v - d.g
    kept = [array(d.v, count, count), array(least, count, count - 1), array(least, count - 1, 3 * count)]
    broken = [array(less, count, count), array(less, count + 1, count), array(least, count + 1, count + 1)]
    if "reach_um" in d.fields:
        reach = round(d.reach_um / d.technology.dbu_um)
        kept.append(array(less, count, count, reach + d.g))
        broken += [array(less, count, count, reach), array(d.v, count, count, less)]
    if short:
        kept += [array(less, count, count, up=d.v), array(d.v, count, count, up=less)]
        broken += [array(less, count, count, d.v), array(d.v, count, count, less, up=least)]
    return kept, broken


def _grid(d):
    def box(right, top):
        return d.new().box(d.layer, -1000, -1000, right, top)

    return [box(1000, 1000)], [box(1001, 1000), box(1000, 999), box(1000 + d.g - 1, 1000)]


def _angle(d):
    def cut(dx, dy):
        points = [(0, 0), (0, 2000), (2000 - dx, 2000), (2000, 2000 - dy), (2000, 0)]
        return d.new().polygon(d.layer, kdb.Polygon([kdb.Point(*point) for point in points]))

    if d.v == 90:
        return [d.new().box(d.layer, 0, 0, 2000, 2000)], [cut(500, 500), cut(d.g, d.g), cut(1000, 500)]
    return [cut(500, 500), cut(d.g, d.g)], [cut(500, 500 + d.g), cut(d.g, 2 * d.g)]


def _longest(d):
    def strip(length):
        return d.new().box(d.layer, 0, 0, length, 200)

    step = d.g if d.rule.kind == "max_length" else -d.g
    return [strip(d.v)], [strip(d.v + step)]


def _max_width(d):
    long = max(BIG, 2 * d.v)
    return [d.new().box(d.layer, 0, 0, long, d.v)], [d.new().box(d.layer, 0, 0, long, d.v + d.g)]


def _max_ratio(d):
    long = round(d.rule.value_um * 200)
    return [d.new().box(d.layer, 0, 0, long, 200)], [d.new().box(d.layer, 0, 0, long + d.g, 200)]


def _forbidden(d):
    *some, last = drawn_layers(d.technology, d.layer)

    def over(by):
        sketch = d.new().box(last, 1000 - by, 0, 2000, 1000)
        for name in some:
            sketch.box(name, 0, 0, 1000, 1000)
        return sketch

    return [over(0)], [over(d.g)]


def _forbidden_straddle(d):
    def out(by):
        return d.new().box("licon1", 0, 0, 170, 170).box("tap", -500, -500, 170 - by, 500)

    return [out(0)], [out(d.g)]


def _covered(d):
    def cover(short):
        return d.new().box(d.inner, 0, 0, 400, 400).box(d.outer, 0, 0, 400 - short, 400)

    return [cover(0)], [cover(d.g)]


def _contains(d):
    def at(left):
        return d.new().box(d.layer, 0, 0, 1000, 1000).box(d.inner, left, 400, left + 170, 570)

    if set(drawn_layers(d.technology, d.inner)) & set(drawn_layers(d.technology, d.layer)):
        return [at(400)], [d.new().box(d.layer, 0, 0, 1000, 1000)]
    return [at(1000 - 170)], [at(1000 - 170 + d.g), d.new().box(d.layer, 0, 0, 1000, 1000)]


def _count(d):
    """Squares in a row on a plate of which one edge is ``width_um`` long, or one grid step longer."""
    width, number = round(d.fields.get("width_um", 1.0) / d.technology.dbu_um), round(d.rule.value_um)

    def holding(count, edge=width):
        sketch = d.new().box(d.layer, 0, 0, edge, 4000)
        if "beside" in d.fields:
            sketch.box(d.beside, 0, -2000, edge, 0)
        for i in range(count):
            sketch.box(d.inner, 50, 50 + 400 * i, 240, 250 + 400 * i)
        return sketch

    kept, broken = [holding(number)], [holding(number - 1), holding(number + 1)]
    return [*kept, holding(number + 1, width + d.g)] if "beside" in d.fields else kept, broken


def _corner(d):
    def inside(by):
        sketch = d.new().box(d.other, -500, -500, by, 500)
        if d.fields.get("corners") == "concave":
            right, up = kdb.Box(-1000, -1000, 1000, 0), kdb.Box(0, 0, 1000, 1000)
            shape = (kdb.Region(right) + kdb.Region(up)).merged()
            return sketch.polygon(d.layer, next(shape.each()))
        return sketch.box(d.layer, 0, -1000, 1000, 0)

    return [inside(0)], [inside(d.g)]


def _tap_distance(d):
    def to(far):
        sketch = d.new().box(d.other, -1000, -2000, 0, 2000).box(d.layer, far - 400, -200, far, 200)
        if "within" in d.fields:
            sketch.box(d.within, -BIG, -BIG, 2 * BIG, BIG)
        return sketch

    def across_wells(far):
        sketch = d.new().box(d.other, -1000, -2000, 0, 2000).box(d.layer, far - 400, -200, far, 200)
        return sketch.box(d.within, -BIG, -BIG, 100, BIG).box(d.within, 2000, -BIG, 2 * BIG, BIG)

    broken = [to(d.v + d.g), d.new().box(d.layer, 0, 0, 400, 400)]
    return [to(d.v)], [*broken, across_wells(4000)] if "within" in d.fields else broken


def _wide_space(d):
    wide = round(d.wide_um / d.technology.dbu_um)
    tall = max(BIG, 2 * wide)

    def beside(gap, size):
        return d.new().box(d.layer, 0, 0, size, tall).box(d.layer, size + gap, 0, size + gap + 500, tall)

    def in_ring(gap, edge):
        """A frame 300 wide, closed, whose inner edges are ``edge`` long, and a line in it beside its left side."""
        sketch = d.new().box(d.layer, -300, -300, 0, edge + 300).box(d.layer, edge, -300, edge + 300, edge + 300)
        sketch.box(d.layer, -300, -300, edge + 300, 0).box(d.layer, -300, edge, edge + 300, edge + 300)
        return sketch.box(d.layer, gap, 3000, gap + 500, 5000)

    def before_stub(gap):
        stub = round(d.attached_um / d.technology.dbu_um)
        sketch = d.new().box(d.layer, 0, 0, BIG, BIG).box(d.layer, BIG, 8000, BIG + stub, 8500)
        return sketch.box(d.layer, BIG + stub + gap, 0, BIG + stub + gap + 500, BIG)

    if "attached_um" in d.fields:
        return [before_stub(d.v)], [before_stub(d.v - d.g)]
    kept, broken = [beside(d.v, wide + d.g), beside(d.v - d.g, wide)], [beside(d.v - d.g, wide + d.g)]
    if "long_edges_um" in d.fields:
        long = round(d.long_edges_um / d.technology.dbu_um)
        kept += [in_ring(d.v, long + d.g), in_ring(d.v - d.g, long)]
        broken.append(in_ring(d.v - d.g, long + d.g))
    return kept, broken


def _diagonal(left, run, across):
    """Return a strip whose long sides rise at 45 degrees for ``run``, and are ``across`` apart in x."""
    return kdb.Polygon(
        [kdb.Point(*p) for p in ((left, 0), (left + run, run), (left + run + across, run), (left + across, 0))]
    )


def _across(d):
    """Return how far apart in x two lines at 45 degrees are that are just ``v`` apart, rounded up to the grid."""
    return -(-math.isqrt(2 * d.v * d.v) // d.g) * d.g


def _bent_width(d):
    longer = round(d.fields.get("longer_um", 0.0) / d.technology.dbu_um)
    short = math.isqrt(longer * longer // 2) // d.g * d.g

    def strip(across, run):
        return d.new().polygon(d.layer, _diagonal(0, run, across))

    kept = [strip(_across(d), BIG)]
    if longer:
        kept.append(strip(_across(d) - d.g, short))
    return kept, [strip(_across(d) - d.g, BIG), strip(_across(d) - d.g, max(short + d.g, 2 * d.v))]


def _bent_space(d):
    def apart(gap):
        strips = d.new().polygon(d.layer, _diagonal(0, BIG, 2000))
        return strips.polygon(d.layer, _diagonal(2000 + gap, BIG, 2000))

    def corner(gap):
        strip = d.new().polygon(d.layer, _diagonal(0, BIG, 2000))
        return strip.box(d.layer, 2000 + 5000 + gap, 2000, 2000 + 8000 + gap, 5000)

    across = _across(d)
    return [apart(across), corner(across)], [apart(across - d.g), corner(across - d.g)]


def _abutting_width(d):
    def between(w):
        sketch = d.new().box(d.layer, 0, 0, w, 2000).box(d.abutting, -1000, 0, 0, 2000)
        return sketch.box(d.abutting, w, 0, w + 1000, 2000) if d.ends == "both" else sketch

    return [between(d.v)], [between(d.v - d.g)]


def _abutting_space(d):
    def jog(at):
        sketch = d.new().box(d.layer, 0, 0, 1000, 400).box(d.abutting, -at, 0, 0, 400)
        return sketch.box(d.abutting, -3000, -300, -at, 700)

    return [jog(d.v)], [jog(d.v - d.g)]


def _abutting_flush(d):
    def taller(by):
        return d.new().box(d.layer, 0, 0, 1000, 400).box(d.abutting, -1000, 0, 0, 400 + by)

    return [taller(0)], [taller(d.g), taller(-d.g)]


def _widest(d):
    def strip(widest):
        """A strip one step too narrow, with one position as wide as ``widest``."""
        sketch = d.new().box(d.layer, 0, 0, d.v - d.g, 2000).box(d.layer, 0, 500, widest, 1000)
        return sketch.box(d.abutting, -1000, 0, 0, 2000) if "abutting" in d.fields else sketch

    return [strip(d.v)], [strip(d.v - d.g)]


def _forbidden_any(d):
    return (_forbidden_straddle if "- tap" in d.layer else _forbidden)(d)


SKETCHES = {
    "width": _width,
    "space": _space,
    "notch": _notch,
    "wide_space": _wide_space,
    "separation": _separation,
    "overlap": _overlap,
    "enclosure": _enclosure,
    "extension": _extension,
    "gate_width": _gate_width,
    "gate_length": _gate_length,
    "exact_size": _exact_size,
    "area": _area,
    "hole_area": _hole_area,
    "max_area": _max_area,
    "array_space": _array_space,
    "bent_width": _bent_width,
    "bent_space": _bent_space,
    "grid": _grid,
    "angle": _angle,
    "min_length": _longest,
    "max_length": _longest,
    "max_width": _max_width,
    "max_ratio": _max_ratio,
    "forbidden": _forbidden_any,
    "covered": _covered,
    "contains": _contains,
    "count": _count,
    "corner": _corner,
    "tap_distance": _tap_distance,
    "abutting_width": _abutting_width,
    "abutting_space": _abutting_space,
    "abutting_flush": _abutting_flush,
    "widest": _widest,
    "bevel": drc_sketch_wells.extended,
    **drc_sketch_nets.SKETCHES,
}


def with_rule(technology, **fields):
    """Return ``technology`` with one rule of its own, the numbers in um as in a file."""
    value = fields.pop("value", None)
    kind = fields.pop("kind")
    area = kind in {"area", "hole_area", "max_area"}
    number = (
        None if value is None else value if kind == "angle" else round(value / technology.dbu_um ** (2 if area else 1))
    )
    rule = Rule("OWN", kind, "own rule", fields.pop("severity", "error"), number, value, "test", fields)
    return replace(technology, rules=(rule,)), rule
