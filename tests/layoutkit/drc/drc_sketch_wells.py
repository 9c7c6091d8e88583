"""Drawings for rules about rings, the holes in them, and what a marker touches; see drc_sketch."""

import klayout.db as kdb


def ring(sketch, layer, inner, width):
    """Draw a closed square ring of ``layer`` about the origin: half the side of its hole and its width."""
    outer = inner + width
    for left, bottom, right, top in (
        (-outer, -outer, outer, -inner),
        (-outer, inner, outer, outer),
        (-outer, -inner, -inner, inner),
        (inner, -inner, outer, inner),
    ):
        sketch.box(layer, left, bottom, right, top)
    return sketch


def ringed(d):
    """A well in a closed ring of ``holes(...)``; a well across the ring, beside it, or in a ring with a gap."""
    well, ring_layer = d.layer.removeprefix("not_inside(").removesuffix("))").split(", holes(")

    def inside(right):
        return ring(d.new(), ring_layer, 8000, 1000).box(well, -2000, -2000, right, 2000)

    gap = d.new().box(well, -2000, -2000, 2000, 2000).box(ring_layer, -9000, -9000, 9000, -8000)
    gap.box(ring_layer, -9000, -8000, -8000, 9000).box(ring_layer, 8000, -8000, 9000, 9000)
    return [inside(2000), inside(8000)], [inside(8000 + d.g), gap, d.new().box(well, 0, 0, 2000, 2000)]


def beyond_hole(d):
    """A hole in a ring of nwell, and dnwell that reaches beyond it on all sides, or on three."""

    def around(left, bottom, right, top):
        sketch = ring(d.new(), "nwell", 5000, 3000)
        return sketch.box(d.outer, -5000 - left, -5000 - bottom, 5000 + right, 5000 + top)

    v, less = d.v, d.v - d.g
    broken = [around(*(less if side == short else v for side in range(4))) for short in range(4)]
    return [around(v, v, v, v)], broken


def touched(d):
    """A marker that touches (or overlaps) what it marks, and one that is a grid step away (or touches)."""
    relation, _, operands = d.layer.partition("(")
    marker, marked = operands.removesuffix(")").split(", ")
    least = d.g if relation == "not_overlapping" else 0  # overlap that the rule demands

    def beside(gap):
        return d.new().box(marker, 0, 0, 1000, 1000).box(marked, 1000 + gap, 0, 2000, 1000)

    return [beside(-least), beside(-500)], [beside(d.g - least), d.new().box(marker, 0, 0, 1000, 1000)]


def straddling(d):
    """A layer inside another one, flush with its edge, or a step outside it; touching it, or across its edge."""
    layer, other = d.layer.removeprefix("not_inside(interacting(").split(")")[0].split(", ")

    def at(left):
        return d.new().box(other, 0, 0, 3000, 3000).box(layer, left, 500, left + 1000, 1500)

    return [at(2000), at(3000 + d.g)], [at(3000), at(2000 + d.g)]


def port(d):
    """A pin on a well or on the substrate, with a contacted tap within reach, and with one out of reach or none."""
    in_well = "nwell" in d.layer
    pin, implant = ("nwell.pin", "nsdm") if in_well else ("pwell.pin", "psdm")

    def pinned():
        sketch = d.new().box(pin, 0, 0, 1000, 1000)
        return sketch.box("nwell", 0, 0, 40000, 2000) if in_well else sketch

    def tied(left):
        sketch = pinned()
        for name in ("tap", implant, "licon1", "li1"):
            sketch.box(name, left, 0, left + 1000, 1000)
        return sketch

    return [tied(15000)], [pinned(), *([] if in_well else [tied(15000 + d.g)])]


def prohibited(d):
    """A layer that may not be drawn at all: nothing keeps the rule but an empty layout."""
    return [d.new()], [d.new().box(d.layer, 0, 0, 1000, 1000)]


def tap_between(d):
    """Two 5 V diffusions with a tap between them, as far apart as twice the growth that closes the gap, and a step."""
    growth = int(float(d.layer.split(", ")[1].rstrip(")")) * 1000)

    def apart(gap):
        sketch = d.new().box("hv_ndiff", 0, 0, 1000, 1000).box("hv_ndiff", 1000 + gap, 0, 2000 + gap, 1000)
        return sketch.box("ptap", 1300, 200, 1500, 800)

    least = -(-(2 * growth + 1) // d.g) * d.g
    return [apart(least)], [apart(least - d.g)]


def tap_in_deep_well(d):
    """Diffusion in the hole of a deep well's ring, at the limit from a tap in it, and near a tap outside the ring."""

    def at(far, tap=-16000):
        sketch = ring(d.new(), "nwell", 20000, 1000).box("dnwell", -21000, -21000, 21000, 21000)
        return sketch.box("ptap", tap - 1000, -2000, tap, 2000).box("ndiff", far - 400, -200, far, 200)

    return [at(-16000 + d.v)], [at(-16000 + d.v + d.g), at(-19000, tap=-22000)]


def bars(d):
    """A contact bar in metal, beside a contact, or beside a bar along which it runs for 6 um."""

    def metal(margin):
        return d.new().box("Cont", 0, 0, 160, 1000).box(d.outer, -margin, -margin, 160 + margin, 1000 + margin)

    def beside(gap):
        tall = 160 if "other" in d.fields else 6000
        return d.new().box("Cont", 0, 0, 160, 6000).box("Cont", 160 + gap, 0, 320 + gap, tall)

    drawn = metal if d.rule.kind == "enclosure" else beside
    return [drawn(d.v)], [drawn(d.v - d.g)]


def enclosed(d):
    """A shape in the hole of a ring, and in a ring that one grid step keeps open."""
    ring = d.outer.removeprefix("holes(").removesuffix(")")

    def around(short):
        sketch = d.new().box(d.inner, 0, 0, 400, 400)
        for left, bottom, right, top in (
            (-1000, -1000, 1400, -500),
            (-1000, 900, 1400, 1400),
            (-1000, -500, -500, 900),
        ):
            sketch = sketch.box(ring, left, bottom, right, top)
        return sketch.box(ring, 900, -500, 1400, 900 - short)

    return [around(0)], [around(d.g)]


def schottky(d):
    """The contact bar of a Schottky diode, with the layers that make it one around it."""
    letter = d.rule.id.split(".")[1]
    beyond = {"a": ("PWell.block", 250), "b": ("nSD.block", 400), "c": ("SalBlock", 450)}

    def around(*sides):
        sketch = d.new().box("Cont", 0, 0, 300, 1000)
        for name in ("Recog.diode", "ThickGateOx", "nBuLay"):
            sketch = sketch.box(name, -2000, -2000, 2300, 3000)
        for each, (name, by) in beyond.items():
            left, bottom, right, top = sides if each == letter else (by,) * 4
            sketch = sketch.box(name, -left, -bottom, 300 + right, 1000 + top)
        return sketch

    limit = beyond[letter][1]
    step = d.g if d.rule.id.endswith(".max") else -d.g
    return [around(*(limit,) * 4)], [
        around(*(limit + step * (side == wrong) for side in range(4))) for wrong in range(4)
    ]


def protecting(d):
    """Gates under SAB in ESD_MK, each with a contact at source and drain; one step more or less of what a rule says."""
    implant = "Pplus" if d.rule.id.startswith("HVP") else "Nplus"

    def drawn(count=1, beyond=0, sab=(-480, 2000), source=700, drain=2000):
        sketch = d.new().box("ESD_MK", -2000, -1000, 10000 * count - 2000, 5000)
        for left in range(0, 10000 * count, 10000):
            sketch.box("COMP", left - 1500, 0, left + 8000 + beyond, 2000).box("Poly2", left, -500, left + 300, 2500)
            sketch.box(
                f"{implant} & Dualgate" if d.rule.id.startswith("HV") else implant, left - 2000, -800, left + 8000, 2800
            )
            sketch.box("SAB", left + sab[0], -220, left + sab[1], 2220).box("LVS_Source", left - 1500, 0, left, 2000)
            sketch.box("Contact", left - source - 220, 900, left - source, 1120)
            sketch.box("Contact", left + 300 + drain, 900, left + 520 + drain, 1120)
        return sketch

    g, name = d.g, d.rule.id.partition(".")[2]
    if name == "1":
        return [drawn()], [drawn(beyond=g)]
    if name == "5b":
        return [drawn(count=d.v // 1000)], [drawn(count=d.v // 1000 + 1)]
    if name.startswith("7a"):
        over = g if name == "7a_max" else -g
        return [drawn(sab=(250, 2000))], [drawn(sab=(250 - over, 2000))]
    if name == "8c":
        return [drawn(drain=4000)], [drawn(drain=4000 + g)]
    if name == "13b":
        return [drawn(source=1000)], [drawn(source=1000 + g)]
    return [drawn(sab=(-480, 2080))], [drawn(sab=(-475, 2075))]  # SAB to contact


def extended(d):
    """A transistor with its drain beyond field oxide, at the limits of the manual, or one length a step off."""
    kind = "p" if d.rule.id.startswith("depmos") else "n"
    limits = {"over": 225, "gap": 1585, "beyond": 660, "tap": 860}
    limits = {"over": 260, "gap": 1190, "beyond": 860, "tap": 660} if kind == "p" else limits

    def drawn(cut=430, bevel=50, gate=130, **lengths):
        over, gap, beyond, tap = ({**limits, **lengths}[name] for name in limits)
        body, doping = ("nsdm", "psdm") if kind == "p" else ("psdm", "nsdm")
        drain = gap + 300
        sketch = d.new().box(f"diff & {doping}", -2000, 0, 0, 5000).box("poly", -900, -200, gate, 5200)
        sketch.polygon(f"tap & {doping}", bevelled(gap, 0, drain, 5000, bevel)).box("areaid.en", -2000, 0, drain, 5000)
        well = kdb.Region(bevelled(-over, -beyond, drain + beyond, 5000 + beyond, cut))
        if kind == "p":
            around = kdb.Box(-6000, -6000, 9000, 11000)
            well = kdb.Region(around) - well
            sketch.polygon("dnwell", kdb.Polygon(around))
        for polygon in well.each():
            sketch.polygon("nwell", polygon)
        left = drain + beyond + tap
        return sketch.box(f"tap & {body}", left, 0, left + 400, 5000)

    name, g = d.rule.id.partition(".")[2], d.g
    if d.rule.id == "extd.2":
        return [drawn()], [drawn().box("areaid.en", -2000, 0, 0, 5100), drawn().box("areaid.en", 0, -100, 500, 0)]
    if d.rule.id == "extd.3":
        return [drawn()], [drawn(gate=4000)]
    if name == "9a":
        return [drawn()], [drawn(cut=430 - g), drawn(cut=430 + g), drawn(cut=0)]
    if name == "9b":
        return [drawn()], [drawn(bevel=50 - g), drawn(bevel=50 + g), drawn(bevel=0)]
    length = {"6": "gap", "10": "beyond", "11": "tap"}[name]
    return [drawn()], [drawn(**{length: limits[length] - g})]


def bevelled(left, bottom, right, top, cut):
    """Return a box without a triangle at each corner."""
    points = [(left, bottom + cut), (left, top - cut), (left + cut, top), (right - cut, top)]
    points += [(right, top - cut), (right, bottom + cut), (right - cut, bottom), (left + cut, bottom)]
    return kdb.Polygon([kdb.Point(*point) for point in points])


_EXTENDED = {
    "extd.2",
    "extd.3",
    *(f"{kind}.{rule}" for kind in ("denmos", "depmos") for rule in ("6", "9a", "9b", "10", "11")),
}
_PROTECTING = {
    *("LVESD.1", "LVESD.5b", "HVNESD.5b", "HVPESD.5b", "LVESD.7a", "LVESD.7a_max", "LVESD.8c", "LVESD.13b", "COLVESD.7")
}


def special(d):
    """Return the drawing for a rule about a ring, its hole or a port of a well, None for any other."""
    if d.rule.id in {*_PROTECTING, *_EXTENDED}:
        return protecting if d.rule.id in _PROTECTING else extended
    if d.rule.id.endswith(".port"):
        return port
    if d.rule.id.startswith(("Sdiod.a", "Sdiod.b", "Sdiod.c")):
        return schottky
    if any(str(field).startswith("cont_bar") for field in d.fields.values()) and d.rule.kind in {
        "space",
        "separation",
        "enclosure",
    }:
        return bars
    if d.rule.kind == "covered" and str(d.fields.get("outer", "")).startswith("holes("):
        return enclosed
    if d.rule.kind == "forbidden" and d.fields["layer"].replace(".", "").isidentifier():
        return None if d.fields["layer"] in d.technology.derived else prohibited
    if d.rule.kind == "forbidden" and d.fields["layer"].startswith("not_inside(interacting("):
        return straddling
    if d.rule.kind == "forbidden" and d.fields["layer"].startswith("(sized(sized("):
        return tap_between
    if d.rule.kind == "tap_distance" and d.fields.get("within") == "well_hole":
        return tap_in_deep_well
    if d.rule.kind == "forbidden" and ", holes(" in d.fields["layer"]:
        return ringed
    if d.rule.kind == "forbidden" and d.fields["layer"].startswith(("not_interacting(", "not_overlapping(")):
        return touched
    inner = d.fields.get("inner")
    if d.rule.kind == "enclosure" and "holes(" in d.technology.derived.get(inner, ""):
        return beyond_hole
    return None
