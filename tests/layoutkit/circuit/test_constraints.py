"""Suggested constraints: what a designer would say of well-known circuits, and never against the circuit."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.circuit import Circuit, Device, constraint_faults, find_roles, read_netlist, recognise
from layoutkit.circuit.constraint_faults import check_constraints, contradictions
from layoutkit.circuit.constraints import Constraints, SymmetryGroup, parse_data
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.circuit.suggested_constraints import suggest_constraints
from layoutkit.errors import LayoutkitError
from thorough import examples

SKILLS = Path(__file__).parents[3] / "skills"
COMPARATOR = SKILLS / "constraint-planning/assets/comparator.spice"
OTA = SKILLS / "netlist-to-gds/assets/ota_5t.spice"


def find_faults(data, circuit):
    return constraint_faults.find_faults(Constraints.from_json(data), circuit)


def suggested_data(circuit):
    return suggest_constraints(circuit).to_json()


@pytest.fixture(scope="module")
def comparator():
    return read_netlist(COMPARATOR)


@pytest.fixture(scope="module")
def suggested(comparator):
    return suggested_data(comparator)


def pairs(group, key="pairs"):
    return {frozenset(pair) for pair in group[key]}


def test_a_comparator_is_symmetric_as_its_designers_say(suggested):
    """The groups are those that ALIGN's authors wrote by hand for a comparator of this topology.

    SymmetricBlocks: [tail], [dp], [ccn], [ccp], [mp7, mp8], [mp9, mp10], [inv_n, inv_p]; SymmetricNets: inputs, the
    drains of the pair, the latch nodes (examples/high_speed_comparator of ALIGN-public).
    """
    (group,) = suggested["symmetry"]
    devices = [f"{stem}{{}}" for stem in ("min", "mxn", "mxp", "mop", "mon")]
    expected = {frozenset((name.format(1), name.format(2))) for name in devices}
    assert pairs(group) == expected | {frozenset(("mpre1", "mpre2")), frozenset(("mpre3", "mpre4"))}
    assert group["self_symmetric"] == ["mtail"]
    nets = [("inp", "inn"), ("dp", "dn"), ("lp", "ln"), ("outn", "outp")]
    assert pairs(group, "net_pairs") == {frozenset(pair) for pair in nets}


def test_a_netlist_and_constraints_that_are_right_are_read_without_jsonschema(tmp_path, comparator, suggested):
    (tmp_path / "circuit.json").write_text(json.dumps({"circuit": comparator.to_json()}))
    (tmp_path / "constraints.json").write_text(json.dumps(suggested))
    code = (
        "import json, sys; from layoutkit.circuit import read_netlist; from layoutkit.circuit.constraints import *\n"
        "circuit = read_netlist('circuit.json'); given = Constraints.from_json(json.load(open('constraints.json')))\n"
        "print(len(circuit.devices), len(given.symmetry), 'jsonschema' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(comparator.devices)), str(len(suggested["symmetry"])), "False"]


def test_left_is_left_in_devices_and_nets_alike(suggested):
    (group,) = suggested["symmetry"]
    way = 1 if ["min1", "min2"] in group["pairs"] else -1  # which half is left is no matter of names
    assert ["mop1", "mop2"][::way] in group["pairs"]
    nets = [["inp", "inn"], ["dp", "dn"], ["lp", "ln"], ["outn", "outp"]]
    assert sorted(group["net_pairs"]) == sorted(pair[::way] for pair in nets)


def test_sensitive_nets_come_first_and_supplies_last(suggested):
    ranks = {entry["net"]: entry["priority"] for entry in suggested["net_priorities"]}
    assert {net for net, rank in ranks.items() if rank == 1} == {"inp", "inn", "dp", "dn", "lp", "ln", "outp", "outn"}
    assert ranks["clk"] == ranks["com"] == 2
    assert ranks["vdd"] == ranks["vss"] == 4


def test_an_ota_with_a_mirror_load_is_one_symmetric_group_and_its_mirrors_keep_their_reference_first():
    circuit = read_netlist(OTA)
    suggested = suggested_data(circuit)
    (group,) = suggested["symmetry"]
    assert pairs(group) == {frozenset(("M1", "M2")), frozenset(("M3", "M4"))}
    assert group["self_symmetric"] == ["M5"]
    matching = {tuple(entry["devices"]): entry["arrangement"] for entry in suggested["matching"]}
    pair = ("M1", "M2") if ("M1", "M2") in matching else ("M2", "M1")
    assert matching == {pair: "auto", ("M3", "M4"): "auto", ("M6", "M5"): "auto"}
    assert {e["net"]: e["kind"] for e in suggested["net_priorities"]}["bias"] == "bias"


def test_a_circuit_without_structure_has_only_net_priorities():
    device = Device("M1", "nmos", "n", {"w": 1e-6, "l": 1e-6}, {"d": "out", "g": "in", "s": "vss", "b": "vss"})
    suggested = suggested_data(Circuit("one", (device,), ("in", "out", "vss")))
    assert (suggested["symmetry"], suggested["matching"]) == ([], [])
    assert [entry["net"] for entry in suggested["net_priorities"]] == ["in", "out", "vss"]
    assert suggested_data(Circuit("none")) == {"symmetry": [], "matching": [], "net_priorities": []}


def test_the_pair_that_feeds_two_others_is_no_tail_of_theirs(tmp_path):
    lines = [
        "MA op lop x vss",
        "MB on lon x vss",
        "MC on lop y vss",
        "MD op lon y vss",
        "M1 x rfp t vss",
        "M2 y rfn t vss",
    ]
    cards = "\n".join(f"{line} nmos W=4u L=0.2u" for line in [*lines, "M0 t vb vss vss"])
    (tmp_path / "mixer.sp").write_text(f".subckt mixer op on lop lon rfp rfn vb vss\n{cards}\n.ends\n")
    circuit = read_netlist(tmp_path / "mixer.sp")
    suggested = suggested_data(circuit)
    assert find_faults(suggested, circuit) == []
    (group,) = suggested["symmetry"]
    assert group["self_symmetric"] == ["M0"]
    assert group["pairs"] == [["M1", "M2"], ["MA", "MC"], ["MB", "MD"]]


NETS = st.sampled_from(["a", "b", "c", "d", "e", "vdd", "vss"])


@st.composite
def circuits(draw):
    devices = []
    for index in range(draw(st.integers(0, 9))):
        kind = draw(st.sampled_from(["nmos", "pmos"]))
        bulk = "vss" if kind == "nmos" else "vdd"
        size = {"w": draw(st.sampled_from([1e-6, 2e-6])), "l": 1e-6}
        terminals = {terminal: draw(NETS) for terminal in "dgs"}
        devices.append(Device(f"M{index}", kind, kind, size, {**terminals, "b": bulk}))
    circuit = Circuit("any", tuple(devices), ("a", "b", "vdd", "vss"))
    return circuit.with_modules(recognise(circuit))


@settings(max_examples=examples(200), deadline=None)
@given(circuits())
def test_what_is_suggested_for_any_circuit_is_right_for_that_circuit(circuit):
    assert find_faults(suggested_data(circuit), circuit) == []


def test_a_loop_of_channels_on_a_gate_makes_no_mirror_of_one_transistor():
    nets = {"M0": ("vss", "a", "a"), "M1": ("a", "a", "a"), "M2": ("b", "a", "e"), "M3": ("b", "e", "e")}
    size = {"w": 1e-6, "l": 1e-6}
    devices = [
        Device(name, "nmos", "nmos", size, dict(zip("dgs", ends, strict=True)) | {"b": "vss"})
        for name, ends in nets.items()
    ]
    circuit = Circuit("loop", tuple(devices), ("a", "b", "vdd", "vss"))
    assert find_faults(suggested_data(circuit), circuit) == []


def broken(suggested, section, **changes):
    """Return the suggestion with the first entry of one section changed."""
    first = {**suggested[section][0], **changes}
    return {**suggested, section: [first, *suggested[section][1:]]}


@pytest.mark.parametrize(
    ("section", "changes", "path", "message"),
    [
        ("symmetry", {"pairs": [["min1", "min9"]]}, "symmetry[0].pairs[0]", "no device 'min9' (did you mean 'min"),
        ("symmetry", {"pairs": [["min1", "mtail"]]}, "symmetry[0].pairs[0]", "min1 and mtail differ in type, model or"),
        ("symmetry", {"pairs": [["min1", "min1"]]}, "symmetry[0].pairs[0]", "'min1' is listed twice here"),
        (
            "symmetry",
            {"pairs": [["min1", "min2"], ["min2", "min1"]]},
            "symmetry[0].pairs[1]",
            "'min2' is already in symmetry[0].pairs[0]",
        ),
        (
            "symmetry",
            {"self_symmetric": ["min1"]},
            "symmetry[0].self_symmetric[0]",
            "'min1' is already in symmetry[0].pairs",
        ),
        (
            "symmetry",
            {"self_symmetric": ["mt"]},
            "symmetry[0].self_symmetric[0]",
            "no device 'mt' (did you mean 'mtail'?)",
        ),
        ("symmetry", {"net_pairs": [["inp", "inm"]]}, "symmetry[0].net_pairs[0]", "no net 'inm' (did you mean 'in"),
        ("symmetry", {"net_pairs": [["vdd", "inn"]]}, "symmetry[0].net_pairs[0]", "'vdd' mirrors no other net"),
        ("symmetry", {"net_pairs": [["inp", "inn"], ["inn", "dp"]]}, "symmetry[0].net_pairs[1]", "'inn' is already in"),
        ("matching", {"devices": ["min1", "mpre1"]}, "matching[0]", "devices of different kinds cannot be matched"),
        (
            "matching",
            {"devices": ["min1", "min2", "mxn1"], "arrangement": "A2B4A2"},
            "matching[0]",
            "A2B4A2 names its devices A, B; 3 devices are named A, B, C, in their order",
        ),
        ("matching", {"arrangement": "AC/CA"}, "matching[0]", "AC/CA names its devices A, C; 2 devices are named A, B"),
        ("matching", {"devices": ["min1", "mxn1"]}, "matching[1]", "'mxn1' is already in matching[0]"),
        ("net_priorities", {"net": "nope"}, "net_priorities[0]", "the circuit has no net 'nope'"),
        ("net_priorities", {"net": "vss"}, "net_priorities[11]", "'vss' is already in net_priorities[0]"),
    ],
)
def test_what_contradicts_the_circuit_or_itself_is_told_with_its_place(
    comparator, suggested, section, changes, path, message
):
    faults = find_faults(broken(suggested, section, **changes), comparator)
    assert any(message in fault.message for fault in faults if fault.path == path), faults


@pytest.mark.parametrize(("pair", "faults"), [(("a", "c"), 0), (("b", "d"), 0), (("a", "d"), 2), (("d", "b"), 0)])
def test_a_device_is_in_two_symmetry_groups_only_within_one_half(pair, faults):
    constraints = Constraints(symmetry=(SymmetryGroup((("a", "b"), ("c", "d"))), SymmetryGroup((pair,))))
    found = constraint_faults.find_faults(constraints, None)
    assert ["is already in" in fault.message for fault in found] == [True] * faults


def test_the_suggestion_itself_has_no_faults(comparator, suggested):
    assert find_faults(suggested, comparator) == []


def test_an_answer_of_thousands_of_wrong_names_is_judged_soon(comparator):
    matching = [{"devices": ["min7"] * 50_000, "arrangement": "stacked", "reason": ""}]
    pairs = [["gone", f"x{index}" * 1000] for index in range(1000)]
    symmetry = [{"pairs": pairs, "self_symmetric": [], "net_pairs": [], "reason": ""}]
    faults = find_faults({"symmetry": symmetry, "matching": matching, "net_priorities": []}, comparator)
    assert len(faults) == 1000 * 2 + 999 + 2
    assert max(len(fault.message) for fault in faults) < 300


def test_cascodes_of_another_threshold_than_their_mirror_are_matched_on_their_own(tmp_path):
    netlist = tmp_path / "mirror.sp"
    netlist.write_text(
        """.subckt mirror ref out vcas vdd
m1 a ref vdd vdd pch w=4u l=0.12u
m2 b ref vdd vdd pch w=4u l=0.12u
m3 ref vcas a vdd pch_lvt w=4u l=0.12u
m4 out vcas b vdd pch_lvt w=4u l=0.12u
.ends
"""
    )
    circuit = read_netlist(netlist)
    suggested = suggested_data(circuit)
    assert [entry["devices"] for entry in suggested["matching"]] == [["m1", "m2"], ["m3", "m4"]]
    assert find_faults(suggested, circuit) == []


def test_isolated_transistors_on_two_nets_are_symmetric_but_in_two_wells_and_hence_not_matched(tmp_path):
    netlist = tmp_path / "followers.sp"
    netlist.write_text(
        """.subckt followers inp inn outp outn vb vdd vss
M1 vdd inp outp outp nmos w=4u l=1u
M2 vdd inn outn outn nmos w=4u l=1u
M3 outp vb vss vss nmos w=4u l=1u
M4 outn vb vss vss nmos w=4u l=1u
.ends
"""
    )
    found = suggest_constraints(read_netlist(netlist))
    assert [set(group.pairs) for group in found.symmetry] == [{("M1", "M2"), ("M3", "M4")}]
    assert [group.devices for group in found.matching] == [("M3", "M4")]


def test_the_schema_of_a_suggestion_is_that_of_the_file():
    """Two files state the format: the pack serves one, the engine reads the other."""
    served = json.loads((SKILLS / "constraint-planning/schemas/plan.suggest_constraints.output.json").read_text())
    read = json.loads(Path(constraint_faults.__file__).with_name("constraints.schema.json").read_text())
    shared = json.loads((SKILLS / "analog-layout.schema.json").read_text())["$defs"]["pattern"]
    arrangement = served["$defs"]["constraints"]["properties"]["matching"]["items"]["properties"]["arrangement"]
    assert arrangement.pop("$ref").endswith("analog-layout.schema.json#/$defs/pattern")
    arrangement.update({key: shared[key] for key in ("type", "pattern", "maxLength")})
    for rule in served["$defs"]["constraints"]["properties"].values():
        rule.pop("x-short", None)  # how much of it a short answer shows
    assert served["$defs"]["constraints"]["properties"] == read["properties"]
    assert {name: served["$defs"][name] for name in read["$defs"]} == read["$defs"]


def test_constraints_come_back_from_json_as_they_were(comparator):
    suggested = suggest_constraints(comparator)
    assert Constraints.from_json(parse_data(json.dumps(suggested.to_json()))) == suggested
    everything = {
        "symmetry": [{"pairs": [["a", "b"]], "self_symmetric": ["c"], "net_pairs": [["x", "y"]], "reason": "r"}],
        "matching": [{"devices": ["a", "b"], "arrangement": "ABBA", "reason": "r"}],
        "proximity": [{"devices": ["a", "c"], "reason": "r"}],
        "alignment": [{"devices": ["a", "c"], "edge": "top", "reason": "r"}],
        "ordering": [{"devices": ["c", "d"], "direction": "left_to_right", "reason": "r"}],
        "abutment": [{"devices": ["d", "e"], "reason": "r"}],
        "outline": [{"width": 20, "aspect": 1.5, "reason": "r"}],
        "net_priorities": [{"net": "x", "priority": 3, "kind": "bias", "reason": "r"}],
        "net_currents": [{"net": "x", "current": 0.001, "reason": "r"}],
        "port_sides": [{"port": "x", "side": "top", "reason": "r"}],
        "supplies": {"power": ["x"], "ground": [], "reason": "r"},
    }
    assert Constraints.from_json(everything).to_json() == everything


def in_rows(*names, direction="left_to_right"):
    return {"devices": list(names), "direction": direction}


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        (
            {"ordering": [in_rows("M1", "M2"), in_rows("M2", "M3"), in_rows("M3", "M1")]},
            ["ordering[0]", "ordering[1]", "ordering[2]"],
        ),
        (
            {"symmetry": [{"pairs": [["M1", "M2"]]}], "ordering": [in_rows("M2", "M1")]},
            ["ordering[0]", "symmetry[0].pairs[0]"],
        ),
        (
            {"symmetry": [{"self_symmetric": ["M1", "M2"]}], "ordering": [in_rows("M2", "M1")]},
            ["ordering[0]", "symmetry[0].self_symmetric[0]", "symmetry[0].self_symmetric[1]"],
        ),
        (
            {"symmetry": [{"pairs": [["M1", "M2"]]}], "ordering": [in_rows("M1", "M2", direction="bottom_to_top")]},
            ["ordering[0]", "symmetry[0].pairs[0]"],
        ),
        (
            {
                "alignment": [{"devices": ["M1", "M2"], "edge": "top"}],
                "ordering": [in_rows("M1", "M2", direction="bottom_to_top")],
            },
            ["alignment[0]", "ordering[0]"],
        ),
        (
            {"abutment": [{"devices": ["M1", "M2"]}], "ordering": [in_rows("M1", "M3", "M2")]},
            ["abutment[0]", "ordering[0]"],
        ),
        (
            {
                "alignment": [{"devices": ["M1", "M2"], "edge": "left"}, {"devices": ["M2", "M3"], "edge": "right"}],
                "ordering": [in_rows("M3", "M1")],
            },
            ["alignment[0]", "alignment[1]", "ordering[0]"],
        ),
        ({"alignment": [{"devices": ["M1", "M2"], "edge": "top"}], "ordering": [in_rows("M1", "M2", "M3")]}, []),
        (
            {
                "symmetry": [{"pairs": [["M1", "M2"]], "self_symmetric": ["M3"]}],
                "ordering": [in_rows("M1", "M3", "M2")],
            },
            [],
        ),
        (
            {
                "matching": [{"devices": ["M1", "M2"]}],
                "symmetry": [{"pairs": [["M1", "M2"]], "self_symmetric": ["M3"]}],
                "ordering": [in_rows("M1", "M3", direction="bottom_to_top")],
                "abutment": [{"devices": ["M4", "M5", "M6"]}],
            },
            [],
        ),
    ],
)
def test_constraints_on_places_that_contradict_one_another_are_named(given, paths):
    """Each case is small enough to see by hand which constraints no placement obeys together."""
    found = constraint_faults.find_faults(Constraints.from_json(given), None)
    named = [path for fault in found for path in paths if path in fault.message]
    assert (len(found), named) == (bool(paths), paths), found


def test_an_outline_that_limits_nothing_is_refused(comparator, suggested):
    (fault,) = find_faults({**suggested, "outline": [{"reason": "r"}]}, comparator)
    assert (fault.path, fault.message) == ("outline[0]", "an outline needs a width, a height or an aspect")


@pytest.mark.parametrize(
    ("section", "entries", "message"),
    [
        ("proximity", [{"devices": ["min1", "gone"]}], "no device 'gone'"),
        ("ordering", [{"devices": ["min1", "min1"], "direction": "left_to_right"}], "'min1' is listed twice here"),
        ("proximity", [{"devices": ["min1", "min1"]}], "'min1' is listed twice here"),
        ("net_currents", [{"net": "com", "current": 1.0}] * 2, "'com' is already in net_currents[0]"),
        ("port_sides", [{"port": "dp", "side": "top"}], "'dp' is a net inside the circuit, no port"),
        ("port_sides", [{"port": "inp", "side": "top"}] * 2, "'inp' is already in port_sides[0]"),
        (
            "port_sides",
            [{"port": "inp", "side": "left"}, {"port": "inn", "side": "left"}],
            "' can be at the side right only",
        ),
    ],
)
def test_conflicts_of_the_other_sections_are_reported(comparator, suggested, section, entries, message):
    faults = find_faults({**suggested, section: entries}, comparator)
    assert [fault for fault in faults if message in fault.message], faults
    with pytest.raises(LayoutkitError, match="do not fit circuit"):
        check_constraints(Constraints.from_json({**suggested, section: entries}), comparator)


@pytest.mark.parametrize(
    ("nets", "stated", "fault"),
    [
        ("out g vss vss", 1e-3, "M1 carries 0.002 A, which no other device can drive"),  # two switches in parallel
        ("out g vss vss", 2e-3, ""),  # they need not conduct at once
        ("vdd g out vss", 1e-3, ""),  # an upper switch drives the lower one
        ("x g vss vss", 1e-3, "its net 'out' is stated to carry 0.001 A in net_currents[0]"),
    ],
)
def test_a_device_with_more_current_than_its_net_where_only_the_port_drives_it_is_a_contradiction(nets, stated, fault):
    """The metal was judged with the smaller current, so that 40 mA through four switches passed at 0.1 mA."""
    devices = tuple(
        Device(name, "nmos", "n", {"w": 1e-6, "l": 1e-6}, dict(zip("dgsb", terminals.split(), strict=True)))
        for name, terminals in (("M1", "out g vss vss"), ("M2", nets))
    )
    circuit = Circuit("c", devices, ("out", "g", "x", "vdd", "vss"))
    given = {
        "net_currents": [{"net": "out", "current": stated}, {"net": "vss", "current": 1.0}],
        "device_currents": [{"device": "M1", "current": 2e-3}],
    }
    found = find_faults(given, circuit)
    assert [(each.path, fault in each.message) for each in found] == [("device_currents[0]", True)] * bool(fault)
    resistor = Device("R1", "resistor", "r", {"r": 1.0}, {"p": "out", "n": "x"})
    assert find_faults(given, replace(circuit, devices=(*devices, resistor))) == []


def test_every_fault_of_a_format_is_reported():
    data = {"matching": [{"devices": ["a"]}, {}], "net_priorities": [{"net": "", "priority": 0}], "extra": 1}
    with pytest.raises(LayoutkitError) as caught:
        Constraints.from_json(data)
    paths = [fault["path"] for fault in caught.value.details["errors"]]
    assert sorted(paths) == [
        "(document)", "matching[0].devices", "matching[1].devices", "net_priorities[0].net",
        "net_priorities[0].priority",
    ]  # fmt: skip


def test_suggesting_takes_time_in_proportion_to_the_modules(monkeypatch):
    """Many independent pairs: how often a module's nets are looked up grows with the modules, not with their pairs."""

    def transistor(name, nets, width):
        return Device(name, "nmos", "n", {"w": width, "l": 1e-6}, dict(zip("dgsb", nets.split(), strict=True)))

    def lookups(count):
        cells = [
            transistor(f"M{i}{side}", f"o{i}{side} i{i}{side} t{i} vss", 1e-6) for i in range(count) for side in "ab"
        ] + [transistor(f"T{i}", f"t{i} bias vss vss", 2e-6) for i in range(count)]
        circuit = Circuit("many", tuple(cells), ("bias", "vss"))
        circuit = circuit.with_modules(recognise(circuit))
        calls = Counter()
        device = Circuit.device

        def counted(self, name):
            calls["device"] += 1
            return device(self, name)

        with monkeypatch.context() as patch:
            patch.setattr(Circuit, "device", counted)
            suggested = suggest_constraints(circuit)
        assert len(suggested.symmetry) == count
        return calls["device"]

    assert lookups(80) <= 2.2 * lookups(40)


MIXER = """.subckt mixer out lop lon rfp rfn op on bias vdd gnd
{quad}
MR1 x rfp t gnd nfet w=4e-6 l=0.3e-6
MR2 y rfn t gnd nfet w=4e-6 l=0.3e-6
MT t bias gnd gnd nfet w=8e-6 l=0.5e-6
R1 vdd op 1000
R2 vdd on 1000
MA1 z op s gnd nfet w=2e-6 l=0.3e-6
MA2 out on s gnd nfet w=2e-6 l=0.3e-6
MA3 z z vdd vdd pfet w=2e-6 l=0.3e-6
MA4 out z vdd vdd pfet w=2e-6 l=0.3e-6
MA5 s bias gnd gnd nfet w=8e-6 l=0.5e-6
.ends
"""
QUAD = ["on lop x", "op lon x", "on lon y", "op lop y"]


@pytest.mark.parametrize("names", ["1234", "1243", "1423", "4213", "2143", "3412"])
def test_modules_of_a_mixer_mirror_each_other_whatever_its_transistors_are_called(names):
    """The quad is drawn as two pairs, whose transistors mirror each other crosswise: one pair lies left for both."""
    cards = [f"MQ{name} {nets} gnd nfet w=4e-6 l=0.3e-6" for name, nets in zip(names, QUAD, strict=True)]
    circuit = read_netlist(NetlistText(MIXER.format(quad="\n".join(cards))))
    suggestion = suggest_constraints(circuit)
    owner = {name: module.id for module in find_roles(circuit).modules for name in module.devices}
    assert len({owner[f"MQ{name}"] for name in "1234"}) == 2
    assert contradictions(suggestion, lambda name: owner.get(name, name)) == []
