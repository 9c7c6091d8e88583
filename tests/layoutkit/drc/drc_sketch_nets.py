"""Drawings for the kinds that ask for nets, windows, counted sides and line ends; see drc_sketch.

Drawn on the generic process, whose layers are named here; every distance and ratio is arithmetic on the rule's number.
"""

BIG = 20000


def nets_space(d):
    """Two bars of one layer; a strap above joins them, or does not."""

    def bars(gap, joined):
        sketch = d.new().box("metal1", 0, 0, 5000, 5000).box("metal1", 5000 + gap, 0, 10000 + gap, 5000)
        sketch.box("metal1", 20000, 0, 25000, 5000)  # one that nothing joins, far away
        for left in (2000, 7000 + gap) if joined else (2000,):
            sketch.box("via1", left, 2000, left + 260, 2260)
        return sketch.box("metal2", 1000, 1000, 9000 + gap, 4000)

    apart, near = d.v, d.v - d.g
    if d.fields["nets"] == "different":
        return [bars(apart, False), bars(near, True)], [bars(near, False)]
    return [bars(apart, True), bars(near, False)], [bars(near, True)]


def one_net_space(d):
    """Two bars of one layer, alone, or with a strap of the well that makes them one net."""
    well = d.fields["one_net"].split(" | ")[0]

    def bars(gap, *, joined):
        sketch = d.new().box(d.layer, 0, 0, BIG, BIG).box(d.layer, BIG + gap, 0, 2 * BIG, BIG)
        return sketch.box(well, BIG - 1000, 5000, BIG + gap + 1000 if joined else BIG, 6000)

    near = d.v - d.g
    return [bars(d.v, joined=False), bars(near, joined=True)], [bars(near, joined=False)]


def nets_separation(d):
    """A wire beside one two layers above; a strap in between joins both, or does not."""

    def bars(gap, joined):
        sketch = d.new().box("metal1", 0, 0, 5000, 5000).box("metal2", 5000 + gap, 0, 10000 + gap, 5000)
        if joined:
            sketch.box("metal1", 2000, 5000, 2500, 7500).box("metal1", 2000, 7000, 9000, 7500)
            sketch.box("metal2", 8500, 4000, 9000, 7500).box("via1", 8600, 7100, 8860, 7360)
        return sketch

    apart, near = d.v, d.v - d.g
    if d.fields["nets"] == "different":
        return [bars(apart, False), bars(near, True)], [bars(near, False)]
    return [bars(apart, True), bars(near, False)], [bars(near, True)]


def wide_space_over_length(d):
    """A wide bar beside a line: too near only where they run side by side for long enough."""
    wide = round(d.wide_um / d.technology.dbu_um)
    run = round(d.min_projection_um / d.technology.dbu_um)
    tall = max(BIG, 3 * run)

    def beside(gap, length):
        line = d.new().box(d.layer, 0, 0, wide + d.g, tall)
        return line.box(d.layer, wide + d.g + gap, 5000, wide + d.g + gap + 500, 5000 + length)

    return [beside(d.v, tall - 5000), beside(d.v - d.g, run - d.g)], [beside(d.v - d.g, run)]


def counted_sides(d):
    """A cut whose margin is the value on some sides and one step less on the others."""
    v, less = d.v, d.v - d.g

    def around(left, bottom, right, top):
        sketch = d.new().box(d.inner, 0, 0, 400, 400).box(d.outer, -left, -bottom, 400 + right, 400 + top)
        return sketch.box(d.inner, 0, 9000, 400, 9400).box(d.outer, -v, 9000 - v, 400 + v, 9400 + v)

    needed = {"three": 3, "two": 2, "one": 1}[d.sides]
    sets = [[v if number >> side & 1 else less for side in range(4)] for number in range(16)]
    kept = [around(*sides) for sides in sets if sides.count(v) >= needed]
    broken = [around(*sides) for sides in sets if sides.count(v) < needed]
    broken.append(d.new().box(d.inner, 0, 0, 400, 400).box(d.outer, d.g, -v, 400 + v, 400 + v))  # pokes out
    return kept, [*broken, d.new().box(d.inner, 0, 0, 400, 400)]


def short_beside_long(d):
    """A side that is short makes its neighbours need more: both pairs short, or one pair a step below its limit."""
    v, less = d.v, d.v - d.g
    short = round(d.short_um / d.technology.dbu_um)

    def around(left, bottom, right, top):
        return d.new().box(d.inner, 0, 0, 400, 400).box(d.outer, -left, -bottom, 400 + right, 400 + top)

    kept = [around(0, v, 0, v), around(v, 0, v, 0), around(short, short, short, short), around(0, v, short, v)]
    nearly = short - d.g
    return kept, [around(0, v, 0, less), around(nearly, less, short, v), around(less, nearly, v, v), around(0, 0, 0, 0)]


def line_end_enclosure(d):
    """A cut near the end of a line that counts as narrow, and near that of one just wide enough."""
    line = round(d.line_um / d.technology.dbu_um)

    def ending(beyond, width):
        return d.new().box(d.outer, -5000, 0, 400 + beyond, width).box(d.inner, 0, 0, 400, min(width, 400))

    narrow = line - d.g
    corner = d.new().box(d.outer, -5000, 0, 400 + d.v - d.g, narrow).box(d.inner, 0, 0, 400, 200)
    corner.box(d.outer, 400, -5000, 400 + d.v - d.g, narrow)  # turns down: no end
    return (
        [ending(d.v, narrow), ending(d.v - d.g, line), corner],
        [ending(d.v - d.g, narrow), ending(0, narrow), ending(-d.g, narrow)],
    )


def density(d):
    """A square of 100 um, covered to the share asked for and one strip less or more."""
    side = 100000
    strip = round(d.rule.value_um * side)
    step = d.g if d.fields.get("bound", "min") == "max" else -d.g
    chip = "metal1" if d.technology.resolve(d.layer) == d.technology.resolve("metal2") else "metal2"

    def covered(columns):
        sketch = d.new().box(chip, 0, 0, side, side)  # says how large the chip is
        return sketch.box(d.layer, 0, 0, columns, side)

    def striped(columns):  # every window of 20 um by 10 um holds the share
        sketch = d.new().box(chip, 0, 0, side, side)
        for left in range(0, side, 10000):
            sketch.box(d.layer, left, 0, left + columns, side)
        return sketch

    if "window_um" not in d.fields:
        none = [d.new().box(chip, 0, 0, side, side)] if step < 0 else [covered(side)]
        return [covered(strip), covered(strip - step)], [covered(strip + step), *none]
    share = round(d.rule.value_um * 10000)
    uneven = covered(strip) if step < 0 else covered(side)
    return [striped(share)], [striped(share + step), uneven]


def antenna(d):
    """A gate of 0.5 um2 below a stack up to a wire whose area, or sidewall, is at the limit, and one step more."""
    technology, gate_area = d.technology, 1000 * 500
    poly, active = technology.role("poly"), technology.role("active")
    metals = [conductor.layer for conductor in technology.conductors]
    cuts = [technology.contact.layer, *(cut.layer for cut in technology.cuts)]
    layer, thickness = technology.resolve(d.layer), round(d.fields.get("thickness_um", 0) / technology.dbu_um)
    level = metals.index(layer) if layer in metals else cuts.index(layer) if layer in cuts else -1
    below, pad, cut_side = metals[:level], 1000 * 400, 230
    allowed = d.rule.value_um + (d.diode_ratio * 0.16 if "diode_ratio" in d.fields else 0)  # a diode of 0.16 um2
    if d.fields.get("sum") == "cumulative":
        allowed -= len(below) * pad / gate_area if layer in metals else (level - 1) * cut_side**2 / gate_area
    covers = [name for name in ("nplus", "Nplus") if name in technology.layers]
    side = 400

    def size(area, edge):
        """Return the length at which a wire ``edge`` wide has an area, or a sidewall, of ``area``, on the grid."""
        length = area / thickness / 2 - edge if thickness else area / edge
        return int(length + 1e-6) // d.g * d.g

    def drawn(excess, *, diode="diode_ratio" in d.fields, gate=True, joined=True):
        sketch = d.new().box(poly, 0, -200, 1000, 700)
        if gate:
            sketch.box(active, -2000, 0, 3000, 500)
            if "mv" in str(d.fields["gate"]):
                sketch.box("Dualgate", -3000, -1000, 4000, 1500)
        if layer == poly:  # 1 um wide from the gate on
            return sketch.box(poly, 0, -200, 1000, -200 + size(allowed * gate_area, 1000) + excess)
        for name in cuts[: level + (layer in metals)]:
            sketch.box(name, 100, 600, 100 + cut_side, 600 + cut_side)
        for name in below:
            sketch.box(name, 0, 550, 1000, 550 + side)
        if diode:
            sketch.box(active, 5000, 550, 5400, 950).box(metals[0], 0, 550, 5400, 950).box(
                cuts[0], 5100, 600, 5330, 830
            )
            for name in covers:
                sketch.box(name, 4900, 450, 5500, 1050)
        low = 550 if joined else 5000
        return sketch.box(layer, 0, low, size(allowed * gate_area, side) + excess, low + side)

    kept = [drawn(0), drawn(d.g, gate=False)]
    broken = [drawn(d.g)]
    if layer == metals[0] and not thickness and d.fields.get("sum") != "cumulative":
        kept.append(drawn(d.g, joined=False))
        # through metal2 alone: not connected when metal1 is etched
        far = drawn(d.g, joined=False).box(metals[1], 0, 550, 900, 5400)
        kept.append(far.box(cuts[1], 500, 600, 760, 860).box(cuts[1], 500, 5100, 760, 5360))
    if "diode" in d.fields and "diode_ratio" not in d.fields:
        kept.append(drawn(d.g, diode=True))
    elif "diode_ratio" in d.fields:
        broken.append(drawn(0, diode=False))
    return kept, broken


def antenna_of_a_plate(d):
    """A plate of 0.5 um2 below a wire whose sidewall is at the limit, one step more, and less without the diode."""
    technology = d.technology
    metals = [conductor.layer for conductor in technology.conductors]
    cuts = [technology.contact.layer, *(cut.layer for cut in technology.cuts)]
    level, thickness = metals.index(d.layer), round(d.thickness_um / technology.dbu_um)
    sidewall = (d.rule.value_um + d.diode_ratio * 0.16) * 1000 * 500 / thickness
    wire = int(sidewall / 2 - 950 + 1e-6) // d.g * d.g  # its perimeter is that of the box around it, 0.95 um high

    def drawn(excess, *, diode=True, plate=True):
        sketch = d.new().box(metals[level - 1], -200, -200, 1200, 700)
        if plate:
            sketch.box("FuseTop", 0, 0, 1000, 500).box(cuts[level], 100, 100, 330, 330)
            sketch.box("CAP_MK", -200, -200, 1200, 700).box("MIM_L_MK", 0, 0, 1000, 500)
        if diode:
            sketch.box(technology.role("active"), 5000, 550, 5400, 950).box("Nplus", 4900, 450, 5500, 1050)
            for cut, metal in zip(cuts, metals[:level], strict=False):
                sketch.box(metal, 5000, 550, 5400, 950).box(cut, 5100, 600, 5330, 830)
            sketch.box(cuts[level], 5100, 600, 5330, 830)
        return sketch.box(d.layer, 0, 0, 1000, 950).box(d.layer, 0, 550, wire + excess, 950)

    return [drawn(0), drawn(d.g, plate=False)], [drawn(d.g), drawn(0, diode=False)]


def max_area(d):
    side = 100000
    height = d.v // side // d.g * d.g
    return [d.new().box(d.layer, 0, 0, side, height)], [d.new().box(d.layer, 0, 0, side, height + d.g)]


def shared_max_area(d):
    """Two halves on one plate, and the same halves on two plates."""
    plate = {"mim_bottom": "Metal4"}.get(d.within, d.within)

    def halves(excess, *, one=True):
        side, height = 100000, d.v // 200000
        sketch = d.new()
        for x, more in ((0, 0), (side + 10000, excess)):
            sketch.box(d.layer, x, 0, x + side, height + more)
            sketch.box(plate, x, 0, x + side + 10000 * one, height + d.g)
        return sketch

    return [halves(0), halves(d.g, one=False)], [halves(d.g)]


def gates_on_a_wire(d):
    """Gates of native devices, each on its own poly, and two on one."""

    def bars(*, joined):
        sketch = d.new().box("NAT", -3000, -3000, 9000, 9000).box("Nplus", -3000, -3000, 9000, 9000)
        for x in (0, 3000):
            sketch.box("COMP", x, 0, x + 2000, 2000).box("Poly2", x + 500, -1000, x + 1500, 3000)
        return sketch.box("Poly2", 0, 3000, 4500, 4000) if joined else sketch

    return [bars(joined=False)], [bars(joined=True)]


def diffusions_in_a_native_area(d):
    """Two diffusions, each in an area of its own, and both in one."""

    def areas(right):
        sketch = d.new()
        for x in (0, 6000):
            sketch.box("COMP", x, 0, x + 1000, 1000).box("NAT", x - 2000, -2000, x + right, 3000)
        return sketch

    return [areas(3000)], [areas(4000)]


def width_of_butted(d):
    """A bar whose halves have the two implants."""

    def bar(width):
        sketch = d.new().box("COMP", 0, 0, width, 2000)
        return sketch.box("Nplus", -500, -500, width + 500, 1000).box("Pplus", -500, 1000, width + 500, 2500)

    return [bar(d.v)], [bar(d.v - d.g)]


SKETCHES = {
    "max_area": max_area,
    "line_end_enclosure": line_end_enclosure,
    "density": density,
    "antenna": antenna,
}


def special(d):
    """Return the drawing for a kind whose fields ask for one of its own, None where the plain one does."""
    if d.fields.get("nets", "any") != "any":
        return {"space": nets_space, "separation": nets_separation}[d.rule.kind]
    if d.fields.get("gate") == "FuseTop":
        return antenna_of_a_plate
    if "one_net" in d.fields:
        return one_net_space
    if d.rule.kind == "max_area" and "within" in d.fields:
        return shared_max_area
    if d.rule.kind == "count" and d.layer == "NAT":
        return diffusions_in_a_native_area
    if d.rule.kind == "count" and "NAT" in d.layer:
        return gates_on_a_wire
    if d.rule.kind == "width" and "butted" in d.layer:
        return width_of_butted
    if d.rule.kind == "wide_space" and "min_projection_um" in d.fields:
        return wide_space_over_length
    if d.fields.get("sides") in {"three", "two", "one"}:
        return counted_sides
    return short_beside_long if "short_um" in d.fields else None
