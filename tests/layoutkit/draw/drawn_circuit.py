"""An oracle for drawn cells that shares nothing with the generators: mask shapes in, transistors and nets out.

Channels are poly over active. Nets are the groups of touching shapes: poly, active outside poly (taps included), and
the conductors, joined where a cut lies on both. Names come from the labels.
"""

from typing import NamedTuple

import klayout.db as kdb

OWN_LAYERS = {
    "generic": {
        "active": [(1, 0)],
        "poly": (2, 0),
        "contact": (3, 0),
        "wires": [(4, 0), (10, 0), (12, 0)],
        "cuts": [(9, 0), (11, 0)],
        "labels": {1: (10, 5), 2: (12, 5)},
    },
    "sky130A": {
        "active": [(65, 20), (65, 44)],
        "poly": (66, 20),
        "contact": (66, 44),
        "wires": [(67, 20), (68, 20), (69, 20), (70, 20)],
        "cuts": [(67, 44), (68, 44), (69, 44)],
        "labels": {1: (68, 5), 2: (69, 5), 3: (70, 5)},
    },
}


class Channel(NamedTuple):
    """One channel: its place, size [dbu] and the names of the nets it joins."""

    x: float
    y: float
    width: int
    length: int
    gate: str
    sides: frozenset


def channels_of(cell, technology):
    """Return the channels of ``cell``, from below, left to right."""
    layers = OWN_LAYERS[technology]

    def region(gds):
        return kdb.Region(cell.begin_shapes_rec(cell.layout().layer(*gds))).merged()

    poly, contact = region(layers["poly"]), region(layers["contact"])
    active = kdb.Region()
    for gds in layers["active"]:
        active += region(gds)
    gates = active & poly
    levels = [poly, active - poly, *(region(gds) for gds in layers["wires"])]
    nodes = [(level, polygon) for level, shapes in enumerate(levels) for polygon in shapes.each_merged()]
    joins = [(contact, (0, 1), 2)]
    joins += [(region(gds), (i + 2,), i + 3) for i, gds in enumerate(layers["cuts"])]
    group = _joined(nodes, joins)
    names = _named(cell, layers["labels"], nodes, group)
    found = []
    for gate in gates.each_merged():
        box = gate.bbox()
        ends = [
            _name(names, group, nodes, 1, kdb.Box(box.left - 1, box.bottom, box.left, box.top)),
            _name(names, group, nodes, 1, kdb.Box(box.right, box.bottom, box.right + 1, box.top)),
        ]
        centre = ((box.left + box.right) / 2, (box.bottom + box.top) / 2)
        gate_net = _name(names, group, nodes, 0, box)
        found.append(Channel(*centre, box.height(), box.width(), gate_net, frozenset(ends)))
    return sorted(found, key=lambda channel: (channel.y, channel.x))


def layers_changed_by(trans, cell):
    """Return the layers whose shapes ``trans`` does not map onto themselves."""
    changed = []
    for index in cell.layout().layer_indexes():
        shapes = kdb.Region(cell.begin_shapes_rec(index)).merged()  # merging drops texts
        if (shapes ^ shapes.transformed(trans)).count():
            changed.append(str(cell.layout().get_info(index)))
    return changed


def _joined(nodes, joins):
    """Return node index -> representative, after joining what cuts connect."""
    parent = list(range(len(nodes)))

    def root(i):
        while parent[i] != i:
            i = parent[i]
        return i

    for cuts, below, above in joins:
        for cut in cuts.each_merged():
            on = [i for i, (level, shape) in enumerate(nodes) if level in (*below, above) and _covers(shape, cut)]
            levels = {nodes[i][0] for i in on}
            assert above in levels, f"cut at {cut.bbox()} has no metal"
            assert levels & set(below), f"cut at {cut.bbox()} lands on nothing"
            for i in on[1:]:
                parent[root(i)] = root(on[0])
    return [root(i) for i in range(len(nodes))]


def _covers(shape, cut):
    # the boxes first, as few shapes are near a cut
    return cut.bbox().inside(shape.bbox()) and (kdb.Region(cut) - kdb.Region(shape)).is_empty()


def _named(cell, labels, nodes, group):
    names = {}
    for wire, gds in labels.items():
        for shape in cell.shapes(cell.layout().layer(*gds)).each():
            point = kdb.Point(shape.text.x, shape.text.y)
            on = [i for i, (level, polygon) in enumerate(nodes) if level == wire + 2 and polygon.inside(point)]
            assert len(on) == 1, f"label {shape.text_string} lies on {len(on)} rails"
            old = names.setdefault(group[on[0]], shape.text_string)
            assert old == shape.text_string, f"nets {old} and {shape.text_string} are shorted"
    assert len(set(names.values())) == len(names), f"a net is in pieces: {sorted(names.values())}"
    return names


def _name(names, group, nodes, wanted, box):
    """Return the net of the ``wanted`` level's shape that meets ``box``."""
    met = {group[i] for i, (level, shape) in enumerate(nodes) if level == wanted and _meets(shape, box)}
    assert len(met) == 1, f"{len(met)} shapes at {box}"
    return names[met.pop()]


def _meets(shape, box):
    return box.overlaps(shape.bbox()) and not (kdb.Region(shape) & kdb.Region(box)).is_empty()
