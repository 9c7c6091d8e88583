"""An independent judge of design rules: shapely for areas, integer arithmetic on axis-parallel edges for distances.

It reads the rules as data and shares no code with the checker: not its geometry engine, not its expressions, not its
kinds. It answers, for one rule and one layout, violated (True), kept (False) or "cannot tell" (None); the latter for
kinds that its callers' layouts do not exercise.
"""

import ast
import math
from itertools import permutations

import shapely
from manhattan import (
    corners_of,
    edges_of,
    faces,
    near,
    outside,
    parts_on,
    remaining,
    rings_of,
    shared,
    union_of,
    without,
)
from shapely.geometry import MultiPolygon, Polygon, box

ROUNDING = 1e-6  # of a distance that shapely computes; distances of whole numbers below 20000 differ by more


def is_square(part):
    left, bottom, right, top = part.bounds
    return right - left == top - bottom and part.area == (right - left) * (top - bottom)


class Judge:
    """The layers of one layout, as polygons by GDS number: lists of (x, y) in database units."""

    def __init__(self, technology, drawn, base=None, changed=frozenset()):
        self.technology = technology
        self.drawn = drawn
        self.changed = changed
        self.base = base
        self.areas, self.edge_lists = {}, {}
        self.dependencies = base.dependencies if base else {}
        self.answers = {}

    # Layers

    def gds(self, name):
        return self.spec(name).gds

    def spec(self, name):
        technology = self.technology
        if name in technology.other_layers:
            return technology.other_layers[name]
        name = name if name in technology.layers else technology.aliases.get(name, name)
        return technology.layers[name if name in technology.layers else technology.roles[name]]

    def numbers(self, name):
        """Return the GDS numbers that count as a layer: its own, of wiring its fill, and others of its material."""
        spec, tech = self.spec(name), self.technology
        wiring = {tech.resolve(part.layer) for part in (*tech.conductors, *tech.cuts)}
        joined = [part for part in spec.fill if spec.name in wiring or self.spec(part).purpose != "fill"]
        return [spec.gds, *map(self.gds, joined)]

    def layers_of(self, text):
        """Return the GDS numbers that an expression depends on."""
        text = str(text)
        if text not in self.dependencies:
            self.dependencies[text] = self._layers_in(ast.parse(text, mode="eval"))
        return self.dependencies[text]

    def _layers_in(self, expression):
        found, tech = set(), self.technology
        for node in ast.walk(expression):
            if isinstance(node, ast.Name | ast.Attribute):
                name = ast.unparse(node)
                if name in self.technology.derived:
                    found |= self.layers_of(self.technology.derived[name])
                elif any(name in named for named in (tech.layers, tech.aliases, tech.roles, tech.other_layers)):
                    found |= set(self.numbers(name))
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                found.add((node.left.value, node.right.value))
        return found

    def area(self, text):
        text = str(text)
        if text not in self.areas:
            if self.base is not None and not (self.layers_of(text) & self.changed):
                self.areas[text] = self.base.area(text)
            else:
                self.areas[text] = self._evaluated(ast.parse(text, mode="eval").body)
        return self.areas[text]

    def _evaluated(self, node):
        if isinstance(node, ast.Name | ast.Attribute):
            name = ast.unparse(node)
            if name in self.technology.derived:
                return self.area(self.technology.derived[name])
            return union_of([polygon for gds in self.numbers(name) for polygon in self.drawn.get(gds, ())])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return union_of(self.drawn.get((node.left.value, node.right.value), ()))
        if isinstance(node, ast.BinOp):
            left, right = self.area(ast.unparse(node.left)), self.area(ast.unparse(node.right))
            operation = {
                ast.BitAnd: shapely.intersection, ast.BitOr: shapely.union, ast.Add: shapely.union,
                ast.Sub: shapely.difference, ast.BitXor: shapely.symmetric_difference,
            }[type(node.op)]  # fmt: skip
            return faces(operation(left, right))
        return self._selected(node)

    def _selected(self, node):
        subject = self.area(ast.unparse(node.args[0]))
        name = node.func.id
        if name == "squares":
            return MultiPolygon([part for part in subject.geoms if is_square(part)])
        if name == "own":  # the layouts of this oracle are of one cell
            return subject
        if name == "holes":
            return faces(shapely.union_all([Polygon(ring) for part in subject.geoms for ring in part.interiors]))
        if name == "sized":
            by = round(ast.literal_eval(node.args[1]) / self.technology.dbu_um)
            return faces(subject.buffer(by, join_style="mitre", mitre_limit=2))
        other = self.area(ast.unparse(node.args[1]))
        test = {
            "interacting": lambda part: part.intersects(other),
            "overlapping": lambda part: part.intersection(other).area > 0,
            "inside": other.covers,
        }[name.removeprefix("not_")]
        wanted = not name.startswith("not_")
        return MultiPolygon([part for part in subject.geoms if bool(test(part)) is wanted])

    def edges(self, text):
        text = str(text)
        if text not in self.edge_lists:
            unchanged = self.base is not None and not (self.layers_of(text) & self.changed)
            self.edge_lists[text] = self.base.edges(text) if unchanged else edges_of(self.area(text))
        return self.edge_lists[text]

    # Verdicts

    def concerns(self, rule):
        """Return whether what was changed can matter to ``rule``."""
        return any(map(self.matters_to, self.cases(rule)))

    def matters_to(self, fields):
        return any(self.layers_of(value) & self.changed for name, value in fields.items() if name in OPERANDS)

    def cases(self, rule):
        common = {name: value for name, value in rule.options.items() if name not in {"cases", "layers"}}
        if "cases" in rule.options:
            return [{**common, **case} for case in rule.options["cases"]]
        if "layers" in rule.options:
            listed = self.technology.measured_layers if rule.options["layers"] == "all" else rule.options["layers"]
            return [{**common, "layer": name} for name in listed]
        return [common]

    def violates(self, rule):
        """Return whether ``rule`` is violated; None where this judge cannot tell."""
        answers = [self.answer(rule, number, fields) for number, fields in enumerate(self.cases(rule))]
        return True if True in answers else (None if None in answers else False)

    def answer(self, rule, number, fields):
        """Return the answer to one case; a rule for all layers has one for each, and few of them are changed."""
        if "layers" in rule.options and self.base is not None and not self.matters_to(fields):
            return self.base.answer(rule, number, fields)
        if (rule.id, number) not in self.answers:
            judged = JUDGES[rule.kind](self, fields, rule) if rule.kind in JUDGES else None
            self.answers[rule.id, number] = judged
        return self.answers[rule.id, number]


OPERANDS = frozenset({"layer", "other", "inner", "outer", "active", "abutting", "within"})


def facing(judge, firsts, seconds, sides, value, fields):
    """Return whether an edge of ``firsts`` faces one of ``seconds``, nearer than ``value``.

    Args:
        judge: The layout.
        firsts: Edges at the smaller coordinate.
        seconds: Edges at the greater coordinate.
        sides: On which side of each the inside lies.
        value: Limit. [dbu]
        fields: Of the rule.
    """
    unit = judge.technology.dbu_um
    ordered = [edge for edge in seconds if edge.side == sides[1]]
    return any(
        first.axis == second.axis and near(first, second, value, fields, unit)
        for first in firsts if first.side == sides[0]
        for second in ordered
    )  # fmt: skip


def _width(judge, fields, rule):
    area = judge.area(fields["layer"])
    return any(
        facing(judge, edges, edges, (1, -1), rule.value, fields)
        for edges in (edges_of(MultiPolygon([part])) for part in area.geoms)
    )


def _space(judge, fields, rule):
    if fields.get("nets", "any") != "any":
        return None
    edges, one_net = judge.edges(fields["layer"]), "one_net" in fields
    if fields.get("notches") == "ignored" or rule.kind == "notch":
        parts = [edges_of(MultiPolygon([part])) for part in judge.area(fields["layer"]).geoms]
        own = [facing(judge, part, part, (-1, 1), rule.value, fields) for part in parts]
        if rule.kind == "notch":
            return any(own)
        areas, wholes = judge.area(fields["layer"]).geoms, judge.area(fields["one_net"]).geoms if one_net else ()
        owner = [next((n for n, whole in enumerate(wholes) if whole.intersects(part)), None) for part in areas]
        return any(
            facing(judge, parts[one], parts[other], (-1, 1), rule.value, fields)
            for one, other in permutations(range(len(parts)), 2)
            if owner[one] is None or owner[one] != owner[other]
        )
    return facing(judge, edges, edges, (-1, 1), rule.value, fields)


def _separation(judge, fields, rule):
    layer, other = judge.area(fields["layer"]), judge.area(fields["other"])
    if layer.is_empty or other.is_empty:
        return False
    if fields.get("nets", "any") != "any":
        return None
    allowed = fields.get("overlap", "forbidden") == "allowed"
    if not allowed and layer.intersection(other).area > 0:
        return True
    plain = fields.get("metrics", "euclidean") == "euclidean" and "min_projection_um" not in fields
    if not allowed and "abutting" not in fields and plain:
        return bool(layer.distance(other) < rule.value - ROUNDING)
    edges, others = judge.edges(fields["layer"]), judge.edges(fields["other"])
    if "abutting" in fields:
        others = without(others, judge.edges(fields["abutting"]))
    touching = any(  # before ``outside``, which takes away what lies on the boundary

        (a.axis, a.at) == (b.axis, b.at) and a.side != b.side and min(a.high, b.high) > max(a.low, b.low)
        for a in edges for b in others
    )  # fmt: skip
    if allowed:
        edges, others = outside(edges, other), outside(others, layer)
    if touching or any(
        facing(judge, *pair, (-1, 1), rule.value, fields) for pair in ((edges, others), (others, edges))
    ):
        return True
    at_ends = any(
        (a.axis, a.at) == (b.axis, b.at) and a.side != b.side and (a.high == b.low or b.high == a.low)
        for a in edges for b in others
    )  # fmt: skip
    return None if at_ends else False  # one line, where one ends and the other begins: near, but not facing


def _overlap(judge, fields, rule):
    layer, other = judge.edges(fields["layer"]), judge.edges(fields["other"])
    return facing(judge, layer, other, (1, -1), rule.value, fields) or facing(
        judge, other, layer, (1, -1), rule.value, fields
    )


def _enclosure(judge, fields, rule):
    inner, outer, v = judge.area(fields["inner"]), judge.area(fields["outer"]), rule.value
    if inner.is_empty:
        return False
    sides = fields.get("sides", "all")
    if sides == "opposite":
        short = round(fields["short_um"] / judge.technology.dbu_um) if "short_um" in fields else v
        return not all(_opposite(part, outer, v, short) for part in inner.geoms)
    if inner.difference(outer).area > 0.5:
        return True
    if sides != "all":
        return None
    if v == 0:
        return False
    if "abutting" not in fields and fields.get("metrics", "euclidean") == "euclidean":
        return bool(inner.distance(outer.boundary) < v - ROUNDING)
    edges = judge.edges(fields["inner"])
    if "abutting" in fields:
        edges = without(edges, judge.edges(fields["abutting"]))
    flush = any(
        (a.axis, a.at, a.side) == (b.axis, b.at, b.side) and min(a.high, b.high) > max(a.low, b.low)
        for a in edges for b in judge.edges(fields["outer"])
    )  # fmt: skip
    return flush or _beyond(judge, edges, judge.edges(fields["outer"]), v, fields)


def _beyond(judge, edges, around, value, fields):
    """Return whether an edge of what lies around is nearer than ``value`` outside of one of ``edges``."""
    return facing(judge, around, edges, (1, 1), value, fields) or facing(judge, edges, around, (-1, -1), value, fields)


def _opposite(part, outer, value, short):
    left, bottom, right, top = part.bounds

    def reaches(dx, dy):
        return outer.covers(box(left - dx, bottom - dy, right + dx, top + dy))

    return (
        reaches(value, 0) or reaches(0, value) or (short < value and reaches(short, 0) and reaches(0, short))
    )  # fmt: skip


def _line_end(judge, fields, rule):
    outer, line = judge.area(fields["outer"]), round(fields["line_um"] / judge.technology.dbu_um)
    convex = {point for point, is_convex in corners_of(outer) if is_convex}
    ends = [
        edge for edge in judge.edges(fields["outer"])
        if edge.high - edge.low < line
        and all(((edge.at, end) if edge.axis == 0 else (end, edge.at)) in convex for end in (edge.low, edge.high))
    ]  # fmt: skip
    if not ends:
        return False
    inner = judge.edges(fields["inner"])
    flush = any(
        (a.axis, a.at, a.side) == (b.axis, b.at, b.side) and min(a.high, b.high) > max(a.low, b.low)
        for a in inner for b in ends
    )  # fmt: skip
    poking = judge.area(fields["inner"]).difference(outer)
    return flush or _beyond(judge, inner, ends, rule.value, fields) or (None if poking.area > 0.5 else False)


def _extension(judge, fields, rule):
    inner, outer = judge.area(fields["inner"]), judge.area(fields["outer"])
    if any(convex and inner.intersects(shapely.Point(point)) for point, convex in corners_of(outer)):
        return True
    edges = judge.edges(fields["inner"])
    crossed = [part for edge in edges for part in remaining(edge, outside([edge], outer))]
    around = judge.edges(fields["outer"])
    if _beyond(judge, crossed, around, rule.value, fields):
        return True
    return None if _beyond(judge, edges, around, rule.value, fields) else False  # near, but not where it crosses


def _gate(judge, fields, rule):
    active = judge.edges(fields["active"])
    for part in judge.area(fields["layer"]).geoms:
        own = edges_of(MultiPolygon([part]))
        ends = shared(own, active) if rule.kind == "gate_width" else without(own, active)
        if facing(judge, ends, ends, (1, -1), rule.value, fields):
            return True
    return False


def _sides(part):
    left, bottom, right, top = part.bounds
    return sorted((round(right - left), round(top - bottom)))


def _exact_size(judge, fields, rule):
    long = round(fields["length_um"] / judge.technology.dbu_um) if "length_um" in fields else rule.value
    return any(
        _sides(part) != [rule.value, long] or abs(part.area - rule.value * long) > 0.5
        for part in judge.area(fields["layer"]).geoms
    )


def _wide_space(judge, fields, rule):
    layer, half = judge.area(fields["layer"]), (round(fields["wide_um"] / judge.technology.dbu_um) + 1) / 2
    wide = faces(layer.buffer(-half, join_style="mitre").buffer(half, join_style="mitre"))
    if "long_edges_um" in fields:
        long = round(fields["long_edges_um"] / judge.technology.dbu_um)
        slim = [part for part in layer.geoms if all(e.high - e.low > long for e in edges_of(MultiPolygon([part])))]
        wide = faces(shapely.union_all([wide, *slim]))
    if wide.is_empty:
        return False
    if "attached_um" in fields:
        return None
    edges = judge.edges(fields["layer"])
    own = [part for edge in edges for part in parts_on(edge, edges_of(wide))]
    return facing(judge, own, edges, (-1, 1), rule.value, fields) or facing(
        judge, edges, own, (-1, 1), rule.value, fields
    )


def _array_space(judge, fields, rule):
    array = round(fields["array_um"] / judge.technology.dbu_um)
    reach = round(fields.get("reach_um", 0) / judge.technology.dbu_um) + 1 or rule.value
    parts, groups = list(judge.area(fields["layer"]).geoms), []
    for part in parts:
        joined = [group for group in groups if any(part.distance(one) < 1.5 * max(reach, rule.value) for one in group)]
        groups = [group for group in groups if group not in joined] + [[part, *(one for g in joined for one in g)]]
    large = [group for group in groups if min(_sides(MultiPolygon(group))) >= array]
    return None if large else False


def _tap_distance(judge, fields, rule):
    layer, taps = judge.area(fields["layer"]), judge.area(fields["other"])
    if layer.is_empty:
        return False
    if "within" in fields:
        wells = judge.area(fields["within"])
        if layer.difference(wells).area > 0:
            return True
        pairs = [(layer.intersection(well), taps.intersection(well)) for well in wells.geoms]
    else:
        pairs = [(layer, taps)]
    answers = [_reach(faces(one), faces(other), rule.value) for one, other in pairs if one.area > 0]
    return True if True in answers else (None if None in answers else False)


def _reach(layer, taps, value):
    if taps.is_empty:
        return True
    farthest = max(shapely.Point(point).distance(taps) for point, _ in corners_of(layer))
    if farthest > value * 1.01:
        return True
    return False if layer.hausdorff_distance(taps) < value * 0.99 or farthest < value * 0.7 else None


def _on_grid(judge, fields, rule):
    points = [point for ring in judge.drawn.get(judge.gds(fields["layer"]), ()) for point in ring]
    return any(x % rule.value or y % rule.value for x, y in points)


def _angle(judge, fields, rule):
    for polygon in judge.area(fields["layer"]).geoms:
        for ring in rings_of(polygon):
            for (x1, y1), (x2, y2) in zip(ring, ring[1:] + ring[:1], strict=True):
                dx, dy = abs(x2 - x1), abs(y2 - y1)
                if dx and dy and (rule.value == 90 or dx != dy):
                    return True
    return False


def _corner(judge, fields, _rule):
    wanted = fields.get("corners", "all")
    other = judge.area(fields["other"])
    return any(
        other.contains(shapely.Point(point))
        for point, convex in corners_of(judge.area(fields["layer"]))
        if wanted == "all" or convex == (wanted == "convex")
    )


def _bent(judge, fields, _rule):
    """Without edges at 45 degrees nothing is violated; with them it cannot tell."""
    rings = [ring for polygon in judge.area(fields["layer"]).geoms for ring in rings_of(polygon)]
    sides = [(a, b) for ring in rings for a, b in zip(ring, ring[1:] + ring[:1], strict=True)]
    return None if any(x1 != x2 and y1 != y2 for (x1, y1), (x2, y2) in sides) else False


def _max_ratio(judge, fields, rule):
    def ratio(part):
        half = part.length / 2
        return (half + math.sqrt(max(half * half - 4 * part.area, 0))) / 2

    return any(ratio(part) ** 2 > rule.value_um * part.area * (1 + 1e-9) for part in judge.area(fields["layer"]).geoms)


def _contains(judge, fields, _rule):
    inner = judge.area(fields["inner"])
    return not all(any(part.covers(one) for one in inner.geoms) for part in judge.area(fields["layer"]).geoms)


def _count(judge, fields, rule):
    inner, parts = list(judge.area(fields["inner"]).geoms), list(judge.area(fields["layer"]).geoms)
    if "beside" in fields:
        width, beside = round(fields["width_um"] / judge.technology.dbu_um), judge.edges(fields["beside"])
        meeting = [(part, shared(edges_of(MultiPolygon([part])), beside)) for part in parts]
        parts = [part for part, edges in meeting if any(edge.high - edge.low == width for edge in edges)]
    return any(sum(part.intersects(one) for one in inner) != rule.value_um for part in parts)


def _abutting(judge, fields, _rule):
    meeting = shared(judge.edges(fields["layer"]), judge.edges(fields["abutting"]))
    return None if meeting else False


def _widest(judge, fields, rule):
    if "abutting" in fields:
        return _abutting(judge, fields, rule)
    parts = judge.area(fields["layer"]).geoms
    narrow = [part for part in parts if part.buffer(0.25 - rule.value / 2, join_style="mitre").is_empty]
    if any(part.equals(part.envelope) for part in narrow):
        return True
    return None if narrow else False


def _of_parts(test):
    def judged(judge, fields, rule):
        return any(test(part, rule.value) for part in judge.area(fields["layer"]).geoms)

    return judged


JUDGES = {
    "width": _width,
    "space": _space,
    "notch": _space,
    "wide_space": _wide_space,
    "array_space": _array_space,
    "separation": _separation,
    "overlap": _overlap,
    "enclosure": _enclosure,
    "line_end_enclosure": _line_end,
    "extension": _extension,
    "gate_width": _gate,
    "gate_length": _gate,
    "exact_size": _exact_size,
    "area": _of_parts(lambda part, value: part.area < value - 0.5),
    "max_area": _of_parts(lambda part, value: part.area > value + 0.5),
    "hole_area": _of_parts(lambda part, value: any(Polygon(ring).area < value - 0.5 for ring in part.interiors)),
    "min_length": _of_parts(lambda part, value: _sides(part)[1] < value),
    "max_length": _of_parts(lambda part, value: _sides(part)[1] > value),
    "max_width": _of_parts(lambda part, value: not part.buffer(-value / 2 - 0.25, join_style="mitre").is_empty),
    "max_ratio": _max_ratio,
    "bent_width": _bent,
    "bent_space": _bent,
    "grid": _on_grid,
    "angle": _angle,
    "forbidden": lambda judge, fields, _: judge.area(fields["layer"]).area > 0.5,
    "covered": lambda judge, f, _: judge.area(f["inner"]).difference(judge.area(f["outer"])).area > 0.5,
    "contains": _contains,
    "count": _count,
    "corner": _corner,
    "tap_distance": _tap_distance,
    "abutting_width": _abutting,
    "abutting_space": _abutting,
    "abutting_flush": _abutting,
    "widest": _widest,
}
