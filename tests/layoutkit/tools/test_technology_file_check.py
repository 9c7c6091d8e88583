"""The check of technology files (technology.validate) finds every fault at once and passes what is shipped.

The page that teaches the format holds a whole small process; what it says is done here.
"""

import re
from pathlib import Path

import klayout.db as kdb
import pytest
import yaml

from layoutkit.circuit import Circuit, Device, write_spice
from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.drc.check import check
from layoutkit.errors import TechnologyError
from layoutkit.extract.extractor import extract
from layoutkit.technology import load, names
from layoutkit.technology.inspection import KNOWN, WITH, needed_dimensions
from layoutkit.tools.technology_file import validate

PAGE = (Path(__file__).parents[3] / "skills/technology-files/references/technology-format.md").read_text(
    encoding="utf-8"
)
EXAMPLE = next(text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if text.startswith("technology:"))


@pytest.fixture
def changed(tmp_path):
    """Return a function that writes the page's example, changed by a function, and returns the file's path."""

    def write(change=None):
        data = yaml.safe_load(EXAMPLE)
        if change is not None:
            change(data)
        path = tmp_path / "example.yaml"
        path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        return str(path)

    return write


@pytest.mark.parametrize("name", names())
def test_shipped_technologies_have_no_fault(name):
    found = validate(name)
    assert [str(fault) for fault in found.faults] == []
    assert [str(fault) for fault in found.warnings] == []
    assert found.technology.name == name


@pytest.mark.parametrize("flavour", ["nfet", "pfet"])
def test_the_process_of_the_page_is_valid_and_its_transistors_are_clean(changed, flavour):
    path = changed()
    assert validate(path).valid
    tech = load(path)
    for number, (width_um, length_um, nf) in enumerate([(0.4, 0.3, 1), (1.0, 0.31, 2), (10.0, 5.0, 3)]):
        layout = kdb.Layout()
        made = transistor(tech, "M1", flavour, MosSize(width_um * nf * 1e-6, length_um * 1e-6, nf))
        cell = draw_mos(layout, tech, MosSpec(made, f"cell{number}")).cell
        report = check(layout, cell, tech)
        assert report.passed, [(verdict.rule.id, verdict.reason) for verdict in report.verdicts]
        (device,) = extract(layout, cell, tech).devices
        assert (device.device, device.w_um, device.l_um, len(device.fingers)) == (
            flavour, pytest.approx(width_um * nf), pytest.approx(length_um), nf
        )  # fmt: skip


def test_the_page_explains_every_dimension():
    for name, meaning in KNOWN.items():
        assert f"| `{name}` | {meaning} |" in PAGE


@pytest.mark.parametrize("name", names())
def test_drawing_asks_for_the_listed_dimensions_and_no_others(name, monkeypatch):
    tech = load(name)
    asked = set()
    own = type(tech).dim
    monkeypatch.setattr(type(tech), "dim", lambda self, dim, device=None: asked.add(dim) or own(self, dim, device))
    for spec in tech.devices.values():
        asked.clear()
        width = max(4e-6, 2e-6 * tech.to_um(spec.min_w))
        length = tech.to_um(spec.max_l or max(1000, spec.min_l)) * 1e-6
        made = transistor(tech, "M1", spec.name, MosSize(width, length, 2))
        draw_mos(kdb.Layout(), tech, MosSpec(made, "cell", dummies=1))
        traits = {trait for trait in WITH if getattr(spec, trait, tech.role(trait))}
        assert asked <= needed_dimensions(traits)


FAULTS = {
    "an unknown key": (lambda d: d.update(colour="red"), "file", "unknown 'colour'"),
    "a missing section": (lambda d: d.pop("roles"), "roles", "is missing"),
    "a key misspelt": (lambda d: d["layers"]["m1"].update(gsd=[1, 2]), "layers.m1", "did you mean 'gds'"),
    "a GDS number used twice": (
        lambda d: d["layers"]["m1"].update(gds=[2, 0]), "layers.m1", "GDS number of layer 'poly'"
    ),
    "a GDS number out of range": (
        lambda d: d["layers"]["m1"].update(gds=[70000, 0]), "layers.m1.gds", "each from 0 to 65535, got [70000, 0]"
    ),
    "a role without a layer": (lambda d: d["roles"].update(poly="gate_poly"), "roles.poly", "there is no layer"),
    "an unknown role": (lambda d: d["roles"].update(polly="poly"), "roles", "unknown 'polly'"),
    "two conductors": (lambda d: d["stack"]["conductors"].pop(), "stack.conductors", "3 conductors"),
    "a cut that joins nothing": (lambda d: d["stack"]["cuts"][0].update(above="m3"), "stack.cuts", "in this order"),
    "a length that is not a rule": (
        lambda d: d["dimensions"].update(gate_space="PO.spce"), "dimensions.gate_space", "PO.space"
    ),
    "a length off the grid": (lambda d: d["dimensions"].update(well_width=1.005), "dimensions.well_width", "off the"),
    "a length finer than the unit": (
        lambda d: d["dimensions"].update(well_width=1.0003), "dimensions.well_width", "whole"
    ),
    "a dimension that nobody asks for": (
        lambda d: d["dimensions"].update(gate_spce=1.0), "dimensions.gate_spce", "gate_space"
    ),
    "a dimension missing": (lambda d: d["dimensions"].pop("poly_to_tap"), "devices.nfet", "poly_to_tap"),
    "a device without implants": (
        lambda d: [d["devices"]["nfet"].pop(key) for key in ("implant", "bulk_implant")], "devices.nfet", "implant"
    ),
    "a pmos without a well": (lambda d: d["devices"]["pfet"].pop("well"), "devices.pfet", "well"),
    "two defaults": (
        lambda d: d["devices"].update(other={**d["devices"]["nfet"], "markers": ["m1"]}), "devices", "exactly one nmos"
    ),
    "flavours that look alike": (
        lambda d: d["devices"].update(other={**d["devices"]["nfet"], "default": False}),
        "devices.other", "a layout cannot distinguish them",
    ),
    "limits upside down": (lambda d: d["devices"]["nfet"].update(max_l=0.2), "devices.nfet", "above max_l"),
    "a marker without its dimensions": (
        lambda d: d["devices"]["nfet"].update(markers=["m1"]), "devices.nfet", "marker_space"
    ),
    "an unknown purpose": (
        lambda d: d["layers"]["m1"].update(purpose="conducter"), "layers.m1.purpose", "did you mean 'conductor'"
    ),
    "a name that ends a line": (lambda d: d.update(technology="name\n"), "technology", "must be a name of 1 to 64"),
    "a color that is none": (lambda d: d["layers"]["m1"].update(color="red"), "layers.m1.color", '"#rrggbb", got'),
    "a wide spacing without a width": (
        lambda d: d["stack"]["conductors"][0].update(wide_space=0.5), "stack.conductors.m1", "'wide_space' needs"
    ),
    "a length that is a mapping": (
        lambda d: d["dimensions"].update(gate_space={}), "dimensions.gate_space", "expected a rule id or a length in um"
    ),
    "an unknown kind of layers": (
        lambda d: d.update(other_layers={"marcer": {"x": [9, 9]}}), "other_layers.marcer", "did you mean 'marker'"
    ),
    "an unknown type": (lambda d: d["devices"]["nfet"].update(type="njfet"), "devices.nfet", "njfet"),
    "a derived layer of nothing": (lambda d: d["derived"].update(x="polly & active"), "derived.x", "polly"),
    "a derived layer through itself": (lambda d: d["derived"].update(x="x & active"), "derived.x", "through itself"),
    "a rule of no kind": (lambda d: d["rules"][1].update(kind="spce"), "rules.NW.space", "did you mean 'space'"),
    "a rule on no layer": (lambda d: d["rules"][1].update(layer="nwel"), "rules.NW.space", "nwel"),
    "a rule twice": (lambda d: d["rules"].append(dict(d["rules"][1])), "rules.NW.space", "another rule"),
    "a rule from nowhere": (lambda d: d["rules"][1].update(source="manual"), "rules.NW.space", "none of 'sources'"),
    "rules that contradict": (
        lambda d: d["rules"].append({**d["rules"][1], "id": "NW.other", "value": 2.0}),
        "rules.NW.other", "contradicts NW.space"
    ),
    "limits that exclude each other": (
        lambda d: d["rules"].append(
            {"id": "M1.max", "kind": "max_width", "layer": "m1", "value": 0.2, "description": "x", "source": "own"}
        ),
        "rules.M1.width", "no m1 can keep both",
    ),
    "an unchecked rule without a reason": (
        lambda d: d["rules"].append({"id": "X", "kind": "unchecked"}), "rules.X", "reason"
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_at_its_place(changed, fault):
    change, place, words = FAULTS[fault]
    found = validate(changed(change))
    assert not found.valid
    assert [f for f in found.faults if f.place == place and words in f.message], [str(f) for f in found.faults]


@pytest.mark.parametrize("fault", [name for name in FAULTS if not FAULTS[name][1].startswith(("rules", "derived"))])
def test_a_faulty_file_of_ones_own_is_refused_when_it_is_loaded(changed, fault):
    """Rules and expressions are judged by the check that uses them."""
    change, place, words = FAULTS[fault]
    with pytest.raises(TechnologyError) as caught:
        load(changed(change))
    assert [told for told in caught.value.details["faults"] if told.startswith(f"{place}: ") and words in told]


def test_one_fault_has_no_consequences(changed):
    """What refers to a faulty entry is not at fault."""
    faults = {
        "layers.nplus.gds": lambda d: d["layers"]["nplus"].update(gds="7/0"),
        "stack.conductors.m2.width": lambda d: d["stack"]["conductors"][1].update(width=[]),
        "dimensions.well_width": lambda d: d["dimensions"].update(well_width=None),
        "devices.nfet.min_l": lambda d: d["devices"]["nfet"].update(min_l=True),
    }

    def change(data):
        for each in faults.values():
            each(data)

    assert {fault.place for fault in validate(changed(change)).faults} == set(faults)


def test_all_faults_are_told_at_once(changed):
    chosen = ["a GDS number out of range", "a length off the grid", "a pmos without a well", "a rule on no layer"]

    def change(data):
        for name in chosen:
            FAULTS[name][0](data)

    told = {fault.place for fault in validate(changed(change)).faults}
    assert {FAULTS[name][1] for name in chosen} <= told


@pytest.mark.parametrize("section", ["layers", "roles", "stack", "dimensions", "devices", "derived", "rules", "notes"])
@pytest.mark.parametrize("junk", [None, 3, "x", [1], [[1]], {"a": 1}, {"a": {"b": [None]}}])
def test_a_section_of_junk_is_a_fault_or_nothing_but_never_a_crash(changed, section, junk):
    validate(changed(lambda data: data.update({section: junk})))


def test_a_file_that_is_no_technology_is_refused(tmp_path):
    path = tmp_path / "list.yaml"
    path.write_text("- 1", encoding="utf-8")
    with pytest.raises(TechnologyError, match="must hold a mapping"):
        validate(str(path))
    with pytest.raises(TechnologyError, match="unknown technology"):
        validate("nowhere")


MOS_CARD = "X d g s b {model} w={w} l={l} nf={nf} m={m}"


@pytest.mark.parametrize(
    ("netlists", "place", "words"),
    [
        ([], "netlists", "mapping"),
        ({"hspice": {}}, "netlists", "unknown 'hspice' (did you mean 'spice'?)"),
        ({"spice": {"cards": {}}}, "netlists.spice", "'lengths' is missing"),
        ({"spice": {"lengths": "miles", "cards": {}}}, "netlists.spice.lengths", "one of metres, micrometres, got"),
        ({"spice": {"lengths": "metres", "cards": {"nmos": MOS_CARD}}}, "netlists.spice.cards", "no card for pfet"),
        ({"spice": {"lengths": "metres", "cards": {"nfett": MOS_CARD}}}, "netlists.spice.cards.nfett", "neither"),
        *(
            ({"spice": {"lengths": "metres", "cards": {"nmos": card}}}, "netlists.spice.cards.nmos", words)
            for card, words in (
                ("R d g s b {model} w={w}", "begin with M or X"),
                ("X d g s {model} w={w}", "connects all of d g s b"),
                ("X d g s b b {model} w={w}", "each once"),
                ("X d g s b {model} w={width}", "with a quantity of"),
                ("X d g s b {model} w=1u", "name={quantity}"),
                (7, "must be a text, got 7"),
            )
        ),
    ],
)  # fmt: skip
def test_a_faulty_netlist_form_is_found_by_its_place(changed, netlists, place, words):
    path = changed(lambda data: data.update(netlists=netlists))
    assert any(fault.place == place and words in fault.message for fault in validate(path).faults)
    with pytest.raises(TechnologyError, match=re.escape("netlists")):
        load(path)


def test_a_netlist_form_of_ones_own_is_followed(changed):
    form = {"lengths": "micrometres", "cards": {"nmos": MOS_CARD, "pfet": "M d g s b {model} w={w} l={l}"}}
    path = changed(lambda data: data.update(netlists={"spice": form}))
    assert validate(path).valid
    nets = dict(zip("dgsb", "dgsb", strict=True))
    devices = [Device("M1", kind, model, {"w": 1e-6, "l": 3e-7, "nf": 2, "m": 2}, nets) for kind, model in
               (("nmos", "nfet"), ("pmos", "pfet"))]  # fmt: skip
    text = write_spice(Circuit("x", tuple(devices), ("d",)), load(path))
    assert "XM1 d g s b nfet w=1 l=0.3 nf=2 m=2\n" in text
    assert text.count(" d g s b pfet w=1 l=0.3\n") == 2  # two cards: m has no place on one
