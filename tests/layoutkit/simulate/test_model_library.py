"""The part of a model library that some devices need: what is reached by name is kept, and nothing else."""

import re

import pytest

from layoutkit.errors import FileError
from layoutkit.simulate.device_models import DeviceModels, library_part
from layoutkit.simulate.ngspice import trouble
from layoutkit.technology.parasitic_data import read_simulation_models

LIBRARY = """* a library
.lib tt
.param switch=0 unused=1
.param vth_n = {base + 0.1}
.include "sizes.spice"
.include "missing.spice"
.lib 'corners.spice' slow
.endl tt
.lib ff
.param vth_n=0.3
.include "fets.spice"
.endl
"""
FETS = """
.option scale=1u
.subckt nfet d g s b w=1
+ l=1
.include "inner.spice"
m1 d g s b nfet_core w={w} l={l}
.ends nfet
.subckt pfet d g s b
m1 d g s b pfet_core
.ends
.model nfet_core.0 nmos level=1 vto={vth_n}
.model nfet_core.1 nmos level=1 vto='twice(vth_n)'
.model pfet_core pmos level=1
.func twice(x) {2*x}
.control
shell touch never
.endc
xdevice 1 2 3 4 nfet
"""


@pytest.fixture
def library(tmp_path):
    (tmp_path / "models.lib").write_text(LIBRARY)
    (tmp_path / "sizes.spice").write_text(".param base=0.4\n")
    (tmp_path / "fets.spice").write_text(FETS)
    (tmp_path / "corners.spice").write_text('.lib slow\n.include "fets.spice"\n.endl\n')
    (tmp_path / "inner.spice").write_text(".param inside=1\n")
    return tmp_path / "models.lib"


def test_what_a_device_reaches_is_kept_with_its_bins_and_nothing_else(library):
    text, missing = library_part([(library, "tt")], ["NFET"])
    assert missing == ()
    kept = [
        line.split()[0] + " " + line.split()[1] for line in text.splitlines() if line.startswith(".") and len(line) > 5
    ]
    assert kept == [
        ".param vth_n", ".param base=0.4", ".option scale=1u", ".subckt nfet", ".param inside=1",
        ".ends nfet", ".model nfet_core.0", ".model nfet_core.1", ".func twice(x)",
    ]  # fmt: skip


def test_commands_and_devices_of_a_library_are_never_copied(library):
    text, _ = library_part([(library, "ff")], ["nfet", "pfet"])
    assert not re.search(r"control|shell|xdevice", text)


def test_the_section_of_a_corner_decides(library):
    assert ".param vth_n=0.3" in library_part([(library, "ff")], ["nfet"])[0]


def test_a_parameter_takes_the_value_that_is_asked_for(library):
    (library.parent / "fets.spice").write_text(FETS.replace("vto={vth_n}", "vto={vth_n*switch}"))
    text, _ = library_part([(library, "tt")], ["nfet"], {"switch": 1})
    assert ".param switch=1 unused=1" in text


def test_a_card_with_several_parameters_that_use_one_another_is_kept_once(tmp_path):
    """The card is kept for its first parameter; its second, found in the same card, then asks for nothing more."""
    (tmp_path / "models.lib").write_text(".param vth=0.4 shift='vth/2'\n.model nfet nmos level=1 vto=vth\n")
    text, missing = library_part([(tmp_path / "models.lib", "")], ["nfet"])
    assert missing == ()
    assert text.splitlines() == [".param vth=0.4 shift='vth/2'", ".model nfet nmos level=1 vto=vth"]


def test_a_model_that_no_file_defines_is_named_with_the_files_that_are_not_there(library):
    with pytest.raises(FileError, match=r"defines no strange: missing\.spice"):
        library_part([(library, "tt")], ["strange"])
    assert library_part([(library, "ff")], ["strange"])[1] == ("strange",)


@pytest.mark.parametrize(
    ("text", "section", "message"),
    [
        ("", "tt", "has no section 'tt'; it has none"),
        (".subckt a b\n", "", "has no .ends"),
        (".subckt\n.ends\n", "", "'.subckt' defines no name"),
        (".model\n", "", "'.model' defines no name"),
        ('.include "models.lib"\n', "", "more than 20 deep"),
    ],
)
def test_a_broken_library_is_refused(tmp_path, text, section, message):
    (tmp_path / "models.lib").write_text(text)
    with pytest.raises(FileError, match=message):
        library_part([(tmp_path / "models.lib", section)], ["nfet"])


def test_a_library_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileError, match=r"nothing\.lib cannot be read"):
        library_part([(tmp_path / "nothing.lib", "tt")], ["nfet"])


def test_an_optional_library_is_read_only_where_the_others_lack_a_model(library):
    folder = library.parent
    main = {"files": ["models.lib"], "sections": {"typical": "tt"}}
    more = {"files": ["none.spice", "more.spice"], "optional": True}
    declared = read_simulation_models({"libraries": [main, more], "source": "a test"})
    models = DeviceModels(folder, declared)
    with pytest.raises(FileError, match="defines no npn"):
        models.cards(["npn"])
    (folder / "more.spice").write_text(".model npn npn is=1e-18\n.model nfet_core.0 nmos level=99\n")
    assert "is=1e-18" in models.cards(["npn"]).text
    assert "level=99" not in models.cards(["nfet"]).text


def test_a_resistor_of_which_the_kit_has_the_model_alone_can_be_called_with_its_body(tmp_path):
    (tmp_path / "models.lib").write_text(
        ".model ndiff r rsh=114\n.model clamp d is=1f\n.subckt poly p n b w=1 l=1\nr1 p n ndiff w={w} l={l}\n.ends\n"
    )
    text, _ = library_part([(tmp_path / "models.lib", "")], ["ndiff", "clamp", "poly"])
    assert ".subckt ndiff p n b w=1 l=1\nr1 p n ndiff w={w} l={l}\n.ends\n" in text
    assert [line.split()[1] for line in text.splitlines() if line.startswith(".subckt")] == ["poly", "ndiff"]


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("Error on line:\n  m1 d g s b nvt l=2u\ncould not find", "Error on line: m1 d g s b nvt l=2u; could not find"),
        ("Too many parameters for subcircuit type", "Too many parameters for subcircuit type"),
    ],
)
def test_what_ngspice_says_of_a_card_is_quoted_with_the_card(log, said):
    assert trouble(log) == said
