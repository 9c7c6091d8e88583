"""The shipped technology files agree with themselves and with the page that describes their format."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from layoutkit.drc.kinds import KINDS
from layoutkit.drc.rule_files import fields_of, kind_of
from layoutkit.errors import TechnologyError
from layoutkit.technology import load, names
from layoutkit.technology.expressions import require
from layoutkit.technology.inspection import SCHEMA as TECHNOLOGY_SCHEMA
from layoutkit.technology.technology_files import SHIPPED, read_document

PAGE = Path(__file__).parents[3] / "skills/technology-files/references/technology-format.md"
TECHNOLOGIES = {name: load(name) for name in names()}


def kind_rows():
    """Return the kinds table of the page: kind to the text of its row."""
    rows = {}
    table = PAGE.read_text(encoding="utf-8").split("| kind | operands |")[1].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        cell = line.split("|")[1]
        for kind in re.findall(r"`(\w+)`", cell):
            rows[kind] = line
    return rows


def test_the_page_lists_every_kind_with_every_field():
    kind_of(TECHNOLOGIES["generic"].rules[0])  # the kinds register when the first is asked for
    rows = kind_rows()
    assert set(rows) == set(KINDS)
    measure = {"metrics", "min_projection_um", "max_projection_um"}
    for kind in KINDS.values():
        row = rows[kind.name]
        for field in kind.fields - measure:
            assert f"`{field}" in row, (kind.name, field)
        assert ("| measure" in row) == (measure <= kind.fields), kind.name
        for words in (words for name, words in kind.choices.items() if name not in measure):
            assert " \\| ".join(words) in row, kind.name


def test_the_page_names_every_function_of_expressions():
    from layoutkit.technology.expressions import FUNCTIONS

    text = PAGE.read_text(encoding="utf-8")
    for function in FUNCTIONS:
        assert f"`{function}(" in text


@pytest.mark.parametrize("name", sorted(TECHNOLOGIES))
def test_derived_layers_and_operands_name_layers_that_exist(name):
    technology = TECHNOLOGIES[name]
    for text in technology.derived.values():
        require(text, technology)
    for rule in technology.rules:
        kind = kind_of(rule)
        if kind is None:
            require(rule.options["layer"], technology)
            continue
        for fields in fields_of(rule, kind, technology.measured_layers):
            for operand in (*kind.operands, *kind.optional):
                if operand in fields:
                    require(fields[operand], technology)


@pytest.mark.parametrize("name", sorted(TECHNOLOGIES))
def test_every_drawn_layer_has_a_grid_and_an_angle_rule(name):
    technology = TECHNOLOGIES[name]
    texts = {n for n in technology.layers if n.endswith((".label", ".pin"))} | {technology.role("device_text")}
    for kind in ("grid", "angle"):
        ruled = {
            fields["layer"]
            for rule in technology.rules
            if rule.kind == kind
            for fields in fields_of(rule, kind_of(rule), technology.measured_layers)
        }
        assert set(technology.layers) - texts <= ruled, kind


@pytest.mark.parametrize("name", sorted(TECHNOLOGIES))
def test_the_stack_keeps_the_rules_it_was_written_from(name):
    technology = TECHNOLOGIES[name]
    for conductor in technology.conductors:
        kinds = {rule.kind: rule for rule in technology.rules if rule.options.get("layer") == conductor.layer}
        assert conductor.width == kinds["width"].value
        assert conductor.space == kinds["space"].value
        assert conductor.area == (kinds["area"].value if "area" in kinds else 0)
    for cut in technology.cuts:
        own = (cut.layer, f"{cut.layer} - TRANS")  # bipolar transistors of sg13g2 have bars of Via1
        kinds = {rule.kind: rule for rule in technology.rules if rule.options.get("layer") in own}
        assert cut.size == kinds["exact_size"].value
        assert cut.space == kinds["space"].value


@pytest.mark.parametrize(
    ("name", "dropped_by_magic"), [("sky130A", (83, 44)), ("gf180mcuD", (63, 63)), ("sg13g2", (63, 0))]
)
def test_texts_that_name_devices_are_no_net_names_to_magic(name, dropped_by_magic):
    """Magic's kit of gf180mcu knows 63/0 as a boundary, and a text there names the net that it lies on."""
    technology = TECHNOLOGIES[name]
    assert technology.spec(technology.role("device_text")).gds == dropped_by_magic


def test_lengths_are_whole_database_units_and_areas_are_square_ones():
    sky = TECHNOLOGIES["sky130A"]
    assert sky.rule("licon.11").value == 55
    assert sky.rule("li.6").value == 56_100
    assert sky.rule("x.2").value == 90
    assert sky.rule("li.2").value is None
    assert sky.rule("li.2").value_um == 10
    assert sky.rule("n/psd.8").value is None


def test_a_rule_defined_twice_is_told(tmp_path):
    text = Path(TECHNOLOGIES["generic"].path).read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if "M1_MIN_WIDTH" in line and "kind" in line)
    path = tmp_path / "twice.yaml"
    path.write_text(text + line + "\n", encoding="utf-8")
    with pytest.raises(TechnologyError, match="defined twice: M1_MIN_WIDTH"):
        load(str(path))


def test_a_technology_is_read_again_only_when_its_file_changes(tmp_path):
    path = tmp_path / "own.yaml"
    text = (SHIPPED / "generic.yaml").read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    first = load(str(path))
    assert load(str(path)) is first
    path.write_text(yaml.safe_dump({**yaml.safe_load(text), "notes": ["changed"]}), encoding="utf-8")
    assert load(str(path)).notes == ("changed",)


def test_drawing_a_transistor_loads_no_reader_of_netlists():
    """Each module costs start-up time, which is a third of the time that one transistor takes."""
    code = "import sys, layoutkit.tools.transistor_requests; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not [name for name in done.stdout.split() if name.startswith(("layoutkit.circuit", "yaml", "numpy"))]


SCHEMA = TECHNOLOGY_SCHEMA.content


@pytest.mark.parametrize("name", sorted(TECHNOLOGIES))
def test_a_shipped_file_keeps_the_schema(name):
    """Judged by jsonschema itself; a shipped file is loaded without a check."""
    Draft202012Validator.check_schema(SCHEMA)
    path = Path(TECHNOLOGIES[name].path)
    own = yaml.safe_load(path.read_text(encoding="utf-8"))
    data = {**own, **read_document(path)}
    assert [error.json_path for error in Draft202012Validator(SCHEMA).iter_errors(data)] == []


def test_the_schema_knows_every_purpose_and_describes_every_field():
    purpose = SCHEMA["$defs"]["purpose"]
    assert purpose["enum"] == list(purpose["x-meanings"])
    parts = [SCHEMA, *(part for name, part in SCHEMA["$defs"].items() if "title" not in part and name != "base")]
    fields = [(name, field) for part in parts for name, field in part.get("properties", {}).items()]
    described = {**SCHEMA["$defs"], "device": {"description": "by its type"}}
    for name, field in fields:
        reference = field.get("$ref", "").rpartition("/")[2]
        assert "description" in field or "description" in described.get(reference, {}) or name == "type", name


def test_shipped_technologies_load_without_the_schema_library():
    code = "import sys; from layoutkit.technology import load, names; [load(name) for name in names()]; "
    code += "print('jsonschema' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("name", sorted(TECHNOLOGIES))
def test_every_resistance_is_stated_or_marked_as_uncertain(name):
    technology = TECHNOLOGIES[name]
    assert all(conductor.sheet_ohm for conductor in technology.conductors)
    assert all(cut.resistance_ohm for cut in technology.cuts)
    assert set(technology.silicon) == {"ndiff", "pdiff", "poly"}
    for part, silicon in technology.silicon.items():
        assert silicon.contact_ohm, part
        assert silicon.sheet_ohm or any(note.startswith(f"{part}: sheet_ohm is uncertain") for note in technology.notes)
    assert technology.electrical.resistances


def test_current_limits_are_those_of_the_processes_documents():
    """The LEF of sky130 (90 degC), the design manual of gf180 (110 degC), the specification of sg13g2 (105 degC)."""
    sky, gf, ihp = (TECHNOLOGIES[name] for name in ("sky130A", "gf180mcuD", "sg13g2"))
    assert [one.current_ma_um for one in sky.conductors] == [None, 2.8, 2.8, 6.8, 6.8, 10.17]
    assert [one.current_ma for one in sky.cuts] == [0.36, 0.29, 0.48, 0.48, 2.49]
    assert {one.contact_ma for one in sky.silicon.values()} == {None}
    assert [one.current_ma_um for one in gf.conductors] == [1.0, 1.0, 1.0, 1.0, 2.2]
    assert [gf.silicon[part].contact_ma for part in ("ndiff", "pdiff", "poly")] == [0.28, 0.28, 0.21]
    assert ihp.conductor("Metal1").current_ma(0.16) == 0.36, "a narrow line has an absolute limit"
    assert ihp.conductor("Metal2").current_ma(0.2) == 0.6
    assert ihp.conductor("Metal2").current_ma(0.5) == pytest.approx(1.0)
    assert [technology.electrical.temperature_c for technology in (sky, gf, ihp)] == [90, 110, 105]


def test_stress_coefficients_give_the_shifts_of_the_foundrys_cards():
    """Simulated with the cards: |Vth| per S, and the change of the mobility from sa = sb = 5 um to 0.265 um."""
    for name, shift, near, far, length in (
        ("nfet_01v8", 8.909, 0.9200, 1.0172, 0.5),
        ("pfet_01v8", 29.909, 1.1107, 0.9760, 0.5),
        ("pfet_g5v0d10v5", 26.415, 1.1909, 0.9613, 0.5),
    ):
        stress = TECHNOLOGIES["sky130A"].devices[name].matching.stress
        assert stress.threshold_mv_um(2.0) == pytest.approx(shift, abs=0.001)
        ratio = [1 + stress.mobility_um(2.0) * 2 / (distance + length / 2) for distance in (0.265, 5.0)]
        assert ratio[0] / ratio[1] == pytest.approx(near / far, abs=2e-4)


@pytest.mark.parametrize("name", sorted(set(TECHNOLOGIES) - {"generic"}))
def test_every_transistor_states_what_is_known_about_matching(name):
    for spec in TECHNOLOGIES[name].devices.values():
        data = spec.matching
        assert (data.stress is None) == bool(data.stress_not_modelled)
        assert data.junction is not None
        assert data.junction.source
        assert data.mismatch is not None
        assert data.mismatch.a_vt_mv_um > 0


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("nmos: {stress: {not_modelled: why, ku0_um: 1}}", "matching.nmos.stress"),
        ("nmos: {stress: {ku0_um: 1, source: s}}", "matching.nmos.stress"),
        ("nmos: {junction: {cj_ff_um2: 1, cjsw_ff_um: 0, source: s}}", "matching.nmos.junction"),
        ("nothing: {mismatch: {a_vt_mv_um: 1, source: s}}", "matching.nothing"),
        ("nmos: {mismatch: {a_vt_mv_um: -1, source: s}}", "matching.nmos.mismatch"),
    ],
)
def test_a_fault_in_the_matching_data_is_told_with_its_place(tmp_path, entry, fault):
    path = tmp_path / "own.yaml"
    path.write_text(Path(TECHNOLOGIES["generic"].path).read_text(encoding="utf-8") + f"\nmatching:\n  {entry}\n")
    with pytest.raises(TechnologyError) as caught:
        load(str(path))
    assert any(text.startswith(fault) for text in caught.value.details["faults"]), caught.value.details
