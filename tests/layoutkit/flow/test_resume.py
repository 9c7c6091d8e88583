"""Builds that stop after a stage and continue with the next: the same layout, or one clear refusal."""

import ast
import hashlib
import json
import re
import shutil
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.errors import LayoutkitError
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.stage_record import MODULES, OPTIONS, STAGES, Surroundings, from_data, to_data
from layoutkit.technology import load

MIRROR = """
.subckt mirror in out vss
M1 in in vss vss nmos W=4u L=1u nf=2
M2 out in vss vss nmos W=4u L=1u nf=2
M3 out2 out vss vss nmos W=2u L=0.5u
R1 out2 out rpoly W=1u L=10u
.ends
"""


@pytest.fixture(scope="module")
def request_of(tmp_path_factory):
    """Return a function that gives a request for the circuit above in a named workspace."""
    folder = tmp_path_factory.mktemp("resume")
    (folder / "mirror.spice").write_text(MIRROR, encoding="utf-8")

    def request(workspace, **options):
        values = {"netlist_path": str(folder / "mirror.spice"), "technology": "sky130A", "seed": 7, **options}
        return LayoutRequest(workspace=str(folder / workspace), **values)

    return request


@pytest.fixture(scope="module")
def whole(request_of):
    """Return the report of one build without a stop, and its workspace."""
    request = request_of("whole")
    return build_layout(request), Path(request.workspace)


@pytest.fixture
def workspace(whole, tmp_path):
    """Return a copy of the finished workspace, to be spoilt."""
    shutil.copytree(whole[1], tmp_path / "copy")
    return tmp_path / "copy"


def resume(workspace, stage, **options):
    return build_layout(LayoutRequest(workspace=str(workspace), first_stage=stage, last_stage=stage, **options))


def refusal(workspace, stage, **options):
    before = {path.name: path.read_bytes() for path in workspace.iterdir() if path.is_file()}
    with pytest.raises(LayoutkitError) as refused:
        resume(workspace, stage, **options)
    assert {path.name: path.read_bytes() for path in workspace.iterdir() if path.is_file()} == before
    assert refused.value.code == "INVALID_PARAM"
    return refused.value.message


def test_a_build_that_stops_after_every_stage_gives_the_bytes_of_one_build(request_of, whole):
    report, finished = whole
    stopped = request_of("stopped", last_stage="parse")
    part = build_layout(stopped)
    workspace = Path(stopped.workspace)
    assert part["remaining_stages"] == list(STAGES[1:])
    for number, stage in enumerate(STAGES[1:], 1):
        assert "drc" not in part or number > STAGES.index("drc")
        part = resume(workspace, stage)
        assert [each["name"] for each in part["stages"]] == [stage]
        assert part["remaining_stages"] == list(STAGES[number + 1 :])
    for name in ("layout.gds", "layout.png", "reference.spice", "extracted.spice", "circuit.json", "placed.gds"):
        assert (workspace / name).read_bytes() == (finished / name).read_bytes(), name
    pages = [(folder / "report.html").read_text(encoding="utf-8").splitlines() for folder in (workspace, finished)]
    assert [line[:20] for line, other in zip(*pages, strict=True) if line != other] == ['<section id="times" ']
    for each in (part, report):
        each["stages"] = each["files"] = None
    assert part == report


def regions_of(net):
    """Return the shapes of a net in the page, by layer, read without the code that wrote them."""
    found = {}
    for layer, shapes in net["shapes"].items():
        found[layer] = kdb.Region(
            [kdb.Box(x, y, x + w, y + h) for x, y, w, h in zip(*[iter(shapes.get("boxes", []))] * 4, strict=True)]
        )
        for hull, *holes in shapes.get("polygons", []):
            contours = [
                [kdb.Point(x, y) for x, y in zip(accumulate(steps[::2]), accumulate(steps[1::2]), strict=True)]
                for steps in (hull, *holes)
            ]
            polygon = kdb.Polygon(contours[0])
            for hole in contours[1:]:
                polygon.insert_hole(hole)
            found[layer].insert(polygon)
    return found


def test_the_page_names_the_net_of_every_piece_of_metal_and_every_device(whole):
    report, folder = whole
    page = (folder / "report.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page)[1])
    layout = kdb.Layout()
    layout.read(str(folder / "layout.gds"))
    cell, technology = layout.top_cell(), load("sky130A")
    nets = {net["name"]: regions_of(net) for net in data["nets"]}
    assert set(nets) == {"in", "out", "out2", "vss"}
    for conductor in technology.conductors:
        drawn = kdb.Region(cell.begin_shapes_rec(technology.layer(layout, conductor.layer)))
        named = [regions[conductor.layer] for regions in nets.values() if conductor.layer in regions]
        whole_metal = kdb.Region([polygon for region in named for polygon in region.each()])
        assert (whole_metal ^ drawn).is_empty(), conductor.name
        assert sum(region.area() for region in named) == drawn.merged().area()  # none is on two nets
        for text in kdb.Texts(cell.shapes(technology.layer(layout, conductor.label_layer))).each():
            place = kdb.Region(kdb.Box(text.x - 1, text.y - 1, text.x + 1, text.y + 1))
            assert not (nets[text.string][conductor.layer] & place).is_empty()
    devices = {device["name"]: device for device in data["devices"]}
    assert set(devices) - {""} == {"M1", "M2", "M3", "R1"}  # "" are the dummies
    assert devices["M3"]["nets"] == {"b": "vss", "d": "out2", "g": "out", "s": "vss"}
    channels = devices["M3"]["boxes"]
    assert sum(w * h for w, h in zip(channels[2::4], channels[3::4], strict=True)) == 2000 * 500
    assert devices["R1"]["boxes"]
    assert report["layout_sha256"] in page


def test_a_stage_that_runs_again_may_have_other_options_and_drops_the_later_stages(workspace):
    report = resume(workspace, "place", seed=8)
    assert report["remaining_stages"] == list(STAGES[3:])
    assert "routing" not in report
    assert refusal(workspace, "drc").count("stage route is not finished; undo that, or build from route") == 1
    stored = json.loads((workspace / "stages.json").read_text())
    assert stored["options"]["seed"] == 8  # that of the placement which is stored now


SPOILERS = {
    "circuit.json": ("place", "circuit.json was changed after stage parse wrote it", "from parse"),
    "used_constraints.json": ("place", "used_constraints.json was changed after stage recognise", "from recognise"),
    "placed.gds": ("route", "placed.gds was changed after stage place", "from place"),
    "placement.json": ("export", "placement.json was changed after stage place", "from place"),
    "routes.json": ("drc", "routes.json was changed after stage route", "from route"),
    "layout.gds": ("drc", "layout.gds was changed after stage export", "from export"),
}


@pytest.mark.parametrize("name", SPOILERS)
def test_a_changed_file_is_refused_with_the_stage_to_build_from(workspace, name):
    stage, text, cure = SPOILERS[name]
    with (workspace / name).open("ab") as stream:
        stream.write(b"\n")
    message = refusal(workspace, stage)
    assert text in message
    assert message.endswith(f"undo that, or build {cure}")
    (workspace / name).unlink()
    assert f"{name} of stage" in refusal(workspace, stage)


def test_another_netlist_technology_or_option_is_refused_and_all_faults_are_named(workspace):
    netlist = MIRROR.replace("W=2u", "W=3u")
    assert "the sizes of M3 differ from those in circuit.json" in refusal(workspace, "route", netlist_text=netlist)
    netlist = MIRROR.replace("M3 out2 out vss", "M3 out2 in vss")
    assert "other connections or ports" in refusal(workspace, "route", netlist_text=netlist)
    netlist = MIRROR.replace("R1", "R2")
    assert "differ in the devices R1, R2" in refusal(workspace, "recognise", netlist_text=netlist)
    message = refusal(workspace, "route", seed=9, dummies=0, waived_layers=["200/3"])
    assert "dummies is 0, stage recognise was done with the default; seed is 9, stage place was done with 7;" in message
    assert "waived_layers" not in message  # read by a stage that runs again
    constraints = {"matching": []}
    assert "constraints are not those of used_constraints.json" in refusal(workspace, "route", constraints=constraints)
    assert "drawn in sky130A, not in gf180mcuD" in refusal(workspace, "route", technology="gf180mcuD")
    (workspace / "layout.gds").unlink()
    message = refusal(workspace, "route", technology="gf180mcuD")
    assert "the technology is gf180mcuD, the stages were done in sky130A" in message


def test_the_same_netlist_and_constraints_are_accepted_again(workspace):
    used = json.loads((workspace / "used_constraints.json").read_text())
    assert resume(workspace, "drc", netlist_text=MIRROR, constraints=used, seed=7)["drc"]["passed"]


def test_a_workspace_without_a_usable_record_is_refused(workspace, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "holds no stages of a build" in refusal(tmp_path / "empty", "route")
    for text in ("[]", "{}", '{"format": 99}', "not json", '{"format": 1, "stages": [{"name": "lvs"}]}'):
        (workspace / "stages.json").write_text(text)
        assert "stages.json" in refusal(workspace, "route"), text
    with pytest.raises(LayoutkitError, match="cannot begin with stage drc and stop after place"):
        build_layout(LayoutRequest(workspace=str(workspace), first_stage="drc", last_stage="place"))


def test_every_option_of_placement_and_of_later_stages_exists():
    request = LayoutRequest()
    assert all(hasattr(request, name) for names in OPTIONS.values() for name in names)


def test_a_workspace_says_nowhere_in_which_module_a_class_is(workspace):
    for name in ("placement.json", "routes.json", "stages.json"):
        assert re.search(r"layoutkit\.|\w:[A-Z]\w+", (workspace / name).read_text()) is None


def test_a_workspace_of_version_1_is_read_although_classes_have_moved_since(workspace):
    """There a dataclass was stored with its module, such as ``layoutkit.flow.end_dummies:EndDummies``."""
    record = json.loads((workspace / "stages.json").read_text())
    for stage, name in (("place", "placement.json"), ("route", "routes.json")):
        text = re.sub(r'"is": ?"([A-Z])', r'"is": "layoutkit.flow.end_dummies:\1', (workspace / name).read_text())
        assert "end_dummies:" in text
        (workspace / name).write_text(text)
        (entry,) = [entry for entry in record["stages"] if entry["name"] == stage]
        entry["files"][name] = hashlib.sha256(text.encode()).hexdigest()
    (workspace / "stages.json").write_text(json.dumps({**record, "format": 1}))
    drawn = (workspace / "layout.gds").read_bytes()
    assert resume(workspace, "export")["stages"]
    assert (workspace / "layout.gds").read_bytes() == drawn


def test_every_dataclass_that_a_stored_one_may_hold_can_be_stored():
    """Read from the annotations of fields; what the reader supplies is left out."""
    engine = Path(__file__).parents[3] / "scripts" / "layoutkit"
    every = [node for path in engine.rglob("*.py") for node in ast.parse(path.read_text("utf-8")).body]
    nodes = {node.name: node for node in every if isinstance(node, ast.ClassDef)}
    bases = {name: {ast.unparse(base) for base in node.bases} for name, node in nodes.items()}
    supplied = {"Technology", "DeviceSpec", "PassiveSpec"}
    waiting, found = ["TriedPlacement", "Routes"], set()
    while waiting:
        name = waiting.pop()
        if name in found | supplied or name not in nodes:
            continue
        parts = [*map(ast.unparse, nodes[name].decorator_list), *bases[name]]
        if not any("dataclass" in part or part == "NamedTuple" for part in parts):
            continue
        found.add(name)
        waiting += [other for other, its in bases.items() if name in its]
        fields = [ast.unparse(item.annotation) for item in nodes[name].body if isinstance(item, ast.AnnAssign)]
        waiting += re.findall(r"(?<![\w.])[A-Z]\w+", " ".join(fields))
    tuples = {name for name in found if "NamedTuple" in bases[name]}
    assert len(found) > 30
    assert found - tuples <= MODULES.keys()


def test_reading_stored_objects_makes_nothing_but_data_of_this_package():
    around = Surroundings(load("generic"), kdb.Layout())
    for name in ("os:system", "layoutkit.layout.files:write_text", "layoutkit.flow.build:_Job", "layoutkit.x:Y", "", 3):
        with pytest.raises(ValueError, match="not"):
            from_data({"is": name, "command": "true"}, around)
    deep = []
    for _ in range(200):
        deep = [deep]
    for data in (deep, {"is": "cell", "name": "absent"}, {"is": "Via"}, {}):
        with pytest.raises(ValueError, match=r"deep|no cell|not written by this version"):
            from_data(data, around)
    foreign = replace(load("generic"), name="other")
    with pytest.raises(TypeError, match="another technology"):
        to_data((foreign,), around)
