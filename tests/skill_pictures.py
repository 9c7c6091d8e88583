"""Draw the pictures in the skills' ``assets/`` folders: ``make pictures``.

Each picture shows what a tool of its skill draws from the parameters below. A picture is stale when the tool draws
something else from them. Compared are digests of the geometry, since the pixels depend on the version of KLayout.
"""

import hashlib
import importlib.util
import json
import struct
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import klayout.db as kdb
from klayout import lay

from layoutkit.layout.reports import noted
from layoutkit.technology import load
from layoutkit.view.render import ViewOptions, render
from skillpack import find_tools, load_skill
from skillscript import call, load_tool

SKILLS = Path(__file__).resolve().parent.parent / "skills"
TECHNOLOGY = "sky130A"
DIGEST = "geometry_sha256"
GAP_UM = 2.0
DEVICES = ("diff", "tap", "poly", "text")


@dataclass(frozen=True)
class SkillPicture:
    """What a picture shows.

    Attributes:
        tool: The tool that draws it, one of the skill's.
        calls: Parameters of each call. What a call draws is placed to the right of what the one before drew.
        title: Text above the picture. ``{pattern}`` stands for the pattern in the answer to the last call.
        layers: Layers to show.
        size: Largest width and height. [pixels]
    """

    tool: str
    calls: tuple[dict, ...]
    title: str
    layers: tuple[str, ...] = DEVICES
    size: tuple[int, int] = (480, 260)


def _transistor(name, **changes):
    return {"device_id": name, "w": 4e-6, "l": 0.5e-6, "nf": 2, **changes}


def _matched(name, **changes):
    return _transistor(name, type="nmos", **changes)


PICTURES = {
    "common-centroid-pair/assets/two-rows.png": SkillPicture(
        "layout.create_common_centroid_pair",
        ({"device_a": _matched("A"), "device_b": _matched("B")},),
        "{pattern} (chosen by auto), two dummies x at each end",
        size=(480, 300),
    ),
    "common-centroid-pair/assets/one-row.png": SkillPicture(
        "layout.create_common_centroid_pair",
        ({"device_a": _matched("A"), "device_b": _matched("B"), "arrangement": "ABBA"},),
        "{pattern} in one row, two dummies x at each end",
        size=(480, 220),
    ),
    "current-mirror/assets/one-to-four.png": SkillPicture(
        "layout.create_current_mirror",
        ({"devices": [_matched("A"), _matched("B", m=4)]},),
        "1:4 as {pattern} (chosen by auto), two dummies x at each end",
        size=(640, 220),
    ),
    "current-mirror/assets/cascode.png": SkillPicture(
        "layout.create_current_mirror",
        ({"devices": [_matched(name) for name in "ABCD"], "mirror_type": "cascode"},),
        "mirror A, B in the lower rows, their cascodes C, D above",
        size=(480, 460),
    ),
    "mos-pcell/assets/wires.png": SkillPicture(
        "layout.create_nmos_pcell",
        (_transistor("M1", w=8e-6, nf=4, nets={terminal: terminal.upper() for terminal in "dgsb"}),),
        "met1 along sources and drains, met2 rails over them",
        layers=("diff", "poly", "met1", "met1.label", "via", "met2", "met2.label"),
    ),
    "mos-pcell/assets/dummies.png": SkillPicture(
        "layout.create_nmos_pcell",
        (_transistor("A", dummies=0), _transistor("B", dummies=2)),
        "A without dummies, B with two dummies x at each end",
    ),
    "mos-pcell/assets/rings.png": SkillPicture(
        "layout.create_nmos_pcell",
        tuple(
            _transistor(style, ring=style, **more)
            for style, more in (("full", {}), ("open", {"ring_open_sides": ["left"]}), ("none", {}), ("double", {}))
        ),
        "ring full, open at the left, none, double",
        layers=(*DEVICES, "nwell"),
        size=(640, 260),
    ),
    "mos-pcell/assets/deep-well.png": SkillPicture(
        "layout.create_nmos_pcell",
        (_transistor("M1", isolated=True, deep_well_net="VDD"),),
        "an NMOS isolated by a deep well",
        layers=("dnwell", "nwell", *DEVICES),
        size=(480, 300),
    ),
    "passive-devices/assets/bipolars.png": SkillPicture(
        "layout.create_bipolar_array",
        ({"device_id": "Q1", "matched": [{"device_id": "Q2", "m": 8}]},),
        "PNPs 1:8 with a ring of dummies",
        layers=("nwell", "diff", "tap", "text"),
        size=(420, 300),
    ),
    "passive-devices/assets/capacitors.png": SkillPicture(
        "layout.create_capacitor",
        (
            {
                "device_id": "C1",
                "c": 1e-13,
                "dummy_net": "vss",
                "matched": [{"device_id": "C2", "c": 2e-13}, {"device_id": "C3", "c": 4e-13}],
            },
        ),
        "capacitors 1:2:4 with a ring of dummies",
        layers=("met3", "met4", "capm", "text"),
        size=(420, 300),
    ),
}


@dataclass(frozen=True)
class Drawing:
    """What the calls of a picture drew.

    Attributes:
        cell: All shapes, merged, without subcells.
        layout: The cell's layout.
        title: Text above the picture.
        areas: For each call the area of the bounding box of what it drew. [um2]
    """

    cell: kdb.Cell
    layout: kdb.Layout
    title: str
    areas: tuple[float, ...]


def drawing_of(name, folder):
    """Return what the calls of the picture ``name`` draw in the empty workspace ``folder``."""
    picture, left, answers = PICTURES[name], 0.0, []
    for params in picture.calls:
        where = {"technology": TECHNOLOGY, "workspace": str(folder), "position": [left, 0.0]}
        answers.append(answer_of(SKILLS / name.partition("/")[0], picture.tool, {**params, **where}))
        box = answers[-1]["bounding_box"]
        left = box["x"] + box["width"] + GAP_UM
    layout = kdb.Layout()
    layout.read(str(folder / "layout.gds"))
    cell = layout.top_cell()
    cell.flatten(True)
    for layer in layout.layer_indexes():
        texts = _texts(cell, layer)
        region = kdb.Region(cell.shapes(layer)).merged()
        cell.shapes(layer).clear()
        cell.shapes(layer).insert(region)
        for text in texts:
            cell.shapes(layer).insert(text)
    _label_dummies(cell)
    areas = tuple(answer["bounding_box"]["width"] * answer["bounding_box"]["height"] for answer in answers)
    return Drawing(cell, layout, picture.title.format(pattern=answers[-1].get("pattern")), areas)


def answer_of(skill, tool_id, params):
    """Return the data that a tool of ``skill`` answers, called as its script calls it."""
    script = skill / find_tools([load_skill(skill / "SKILL.md")]).by_id[tool_id].script
    spec = importlib.util.spec_from_file_location(script.stem, script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    envelope = call(load_tool(str(script), tool_id, module.execute), params).to_dict()
    if not envelope["ok"]:
        raise SystemExit(f"{tool_id} with {json.dumps(params)}: {envelope['error']}")
    return envelope["data"]


def _texts(cell, layer):
    return [shape.text for shape in cell.shapes(layer).each(kdb.Shapes.STexts)]


def _label_dummies(cell):
    """Label each gate that has no label ``x``: the tools label the fingers of devices, and not the dummies."""
    layout, technology = cell.layout(), load(TECHNOLOGY)
    diffusion, poly, text = (layout.layer(*technology.spec(layer).gds) for layer in ("active", "poly", "text"))
    gates = kdb.Region(cell.shapes(diffusion)) & kdb.Region(cell.shapes(poly))
    labelled = kdb.Region([kdb.Box(label.x - 1, label.y - 1, label.x + 1, label.y + 1) for label in _texts(cell, text)])
    for gate in gates.merged().not_interacting(labelled).each():
        centre = gate.bbox().center()
        cell.shapes(text).insert(kdb.Text("x", centre.x, centre.y))


def digest_of(name, drawing):
    """Return the digest of what the picture ``name`` shows: shapes, labels and colours of its layers, and its view."""
    technology, picture = load(TECHNOLOGY), PICTURES[name]
    shown = [drawing.title, picture.size]
    for layer in picture.layers:
        spec = technology.spec(layer)
        index = drawing.layout.layer(*spec.gds)
        polygons = sorted(str(polygon) for polygon in kdb.Region(drawing.cell.shapes(index)).each_merged())
        texts = sorted(str(text) for text in _texts(drawing.cell, index))
        shown.append([layer, spec.color, polygons, texts])
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


def picture_of(name):
    """Return the PNG file ``name``, with the digest of what it shows."""
    with tempfile.TemporaryDirectory() as folder:
        drawing = drawing_of(name, Path(folder))
    picture = PICTURES[name]
    width, height = picture.size
    view = ViewOptions(width=width, height=height, layers=picture.layers, title=drawing.title)
    png = with_palette(render(drawing.cell, load(TECHNOLOGY), view).png)
    return noted(png, {DIGEST: digest_of(name, drawing)})


def with_palette(png):
    """Return the picture ``png`` as one with at most 256 colours, which takes a quarter of the bytes."""
    pixels = lay.PixelBuffer.from_png_data(png)
    rows = [[pixels.pixel(x, y) & 0xFFFFFF for x in range(pixels.width())] for y in range(pixels.height())]
    if len(colours := set().union(*rows)) > 256:  # six levels of red, green and blue each are 216 colours
        near = {
            colour: sum(round((colour >> bits & 255) / 51) * 51 << bits for bits in (0, 8, 16)) for colour in colours
        }
        rows = [[near[colour] for colour in row] for row in rows]
    palette = {colour: number for number, colour in enumerate(sorted({colour for row in rows for colour in row}))}
    lines = b"".join(bytes([0, *(palette[colour] for colour in row)]) for row in rows)
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", pixels.width(), pixels.height(), 8, 3, 0, 0, 0),
        b"PLTE": b"".join(colour.to_bytes(3, "big") for colour in palette),
        b"IDAT": zlib.compress(lines, 9),
        b"IEND": b"",
    }
    parts = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks.items()
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def write(folder):
    """Write the pictures to the skills below ``folder``."""
    for name in PICTURES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(picture_of(name))


if __name__ == "__main__":
    write(SKILLS)
