"""Semantic versions, and parameters carried from one version to the next (S0.11, S0.12)."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpack import Migration, SkillVersionManager
from skillpack.exceptions import MigrationError, VersionError
from skillpack.registry.migrations import latest, parse_version, satisfies

# The example chain of semver.org, clause 11, with neighbours.
ASCENDING = [
    "0.9.9",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.2.0",
    "1.10.0",
    "2.0.0-0",
    "2.0.0",
]


def test_versions_ascend_as_semver_says():
    for lower, higher in itertools.pairwise(ASCENDING):
        assert parse_version(lower) < parse_version(higher)
    assert latest(reversed(ASCENDING)) == "2.0.0"


def test_missing_parts_are_zero_and_build_metadata_does_not_count():
    assert parse_version("1") == parse_version("1.0") == parse_version("1.0.0+build.7")


@pytest.mark.parametrize(
    "text", ["", "v1.0.0", "1.0.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1..0", "latest", "1.0\n", 1.0]
)
def test_what_is_no_version_is_refused(text):
    with pytest.raises(VersionError, match="is not a version"):
        parse_version(text)


@given(st.lists(st.tuples(*[st.integers(0, 99)] * 3), min_size=1))
def test_releases_order_as_their_numbers(numbers):
    texts = [".".join(map(str, number)) for number in numbers]
    assert latest(texts) == ".".join(map(str, max(numbers)))


@pytest.mark.parametrize(
    ("version", "requirement", "expected"),
    [
        ("1.2.0", "", True),
        ("1.2.0", "1.2.0", True),
        ("1.9.0", "1.2", True),
        ("1.1.9", "1.2", False),
        ("2.0.0", "1.2", False),
        ("2.0.0", ">=1.2,<3", True),
        ("3.0.0", ">=1.2, <3", False),
        ("1.2.0", "=1.2.0", True),
        ("1.2.1", "=1.2.0", False),
        ("1.2.0", ">1.2.0", False),
        ("1.2.0", "<=1.2.0", True),
        ("1.2.0-rc.1", "^1.2.0", False),
    ],
)
def test_requirements(version, requirement, expected):
    assert satisfies(version, requirement) is expected


@pytest.mark.parametrize("requirement", ["latest", ">=", "1.0 2.0", ">=1,,<2", "~>1"])
def test_what_is_no_requirement_is_refused(requirement):
    with pytest.raises(VersionError):
        satisfies("1.0.0", requirement)


@pytest.mark.parametrize(
    ("requested", "available", "expected"),
    [("1.0.0", "1.9.3", True), ("1.9.3", "1.0.0", True), ("1.0.0", "2.0.0", False), ("0.1.0", "0.2.0", True)],
)
def test_the_same_major_version_is_compatible(requested, available, expected):
    assert SkillVersionManager().is_compatible(requested, available) is expected
    assert SkillVersionManager.COMPATIBILITY_POLICY["major"] == "breaking"


CHAIN = [
    Migration("1.3.0", [{"default": "nf", "value": 1}, {"replace": "orientation", "values": {"N": "R0"}}]),
    Migration("1.1.0", [{"rename": "gate_width_um", "to": "w"}, {"scale": "w", "by": 1e-6}]),
    Migration("1.2.0", [{"remove": "color"}, {"rename": "nets[].thickness", "to": "width"}]),
]


@pytest.fixture
def manager():
    return SkillVersionManager({"x.draw": CHAIN})


def test_a_chain_of_migrations_is_applied_lowest_first_and_leaves_its_input_alone(manager):
    old = {"gate_width_um": 2, "color": "red", "nets": [{"thickness": 1}, {"width": 3}], "orientation": "N"}
    before = repr(old)
    new = manager.migrate_params(old, "1.0.0", "1.3.0", "x.draw")
    assert new == {"w": 2e-6, "nets": [{"width": 1}, {"width": 3}], "orientation": "R0", "nf": 1}
    assert repr(old) == before


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("1.0.0", "1.0.0", {"gate_width_um": 2, "color": "red"}),
        ("1.0.0", "1.1.0", {"w": 2e-6, "color": "red"}),
        ("1.1.0", "1.2.0", {"gate_width_um": 2}),
        ("1.2.0", "1.9.0", {"gate_width_um": 2, "color": "red", "nf": 1}),
        ("1.1.0-rc.1", "1.1.0", {"w": 2e-6, "color": "red"}),
    ],
)
def test_only_what_lies_between_the_two_versions_is_applied(manager, start, end, expected):
    assert manager.migrate_params({"gate_width_um": 2, "color": "red"}, start, end, "x.draw") == expected


def test_a_migration_may_be_a_function_and_gets_a_copy(manager):
    def double(params):
        params["list"].append(1)
        return {**params, "w": params["w"] * 2}

    manager.add_migration("y", Migration("1.1.0", function=double))
    old = {"w": 1, "list": []}
    assert manager.migrate_params(old, "1.0.0", "1.1.0", "y") == {"w": 2, "list": [1]}
    assert old == {"w": 1, "list": []}


def test_another_skills_migrations_do_not_apply(manager):
    assert manager.migrate_params({"color": "red"}, "1.0.0", "1.3.0", "other") == {"color": "red"}


def test_old_and_new_name_together_are_refused(manager):
    with pytest.raises(MigrationError, match="'gate_width_um' is called 'w' since"):
        manager.migrate_params({"gate_width_um": 2, "w": 1}, "1.0.0", "1.1.0", "x.draw")


def test_parameters_are_not_carried_back(manager):
    with pytest.raises(MigrationError, match="cannot be carried back"):
        manager.migrate_params({}, "2.0.0", "1.0.0", "x.draw")


def test_a_value_of_another_type_is_left_for_the_schema_check(manager):
    old = {"gate_width_um": "two", "nets": 3, "orientation": 7}
    assert manager.migrate_params(old, "1.0.0", "1.3.0", "x.draw") == {
        "w": "two",
        "nets": 3,
        "orientation": 7,
        "nf": 1,
    }


@pytest.mark.parametrize(
    "arguments",
    [
        {"version": "1.0.0"},
        {"version": "x", "changes": [{"remove": "a"}]},
        {"version": "1.0.0", "changes": [{"remove": "a", "rename": "b", "to": "c"}]},
        {"version": "1.0.0", "changes": [{"scale": "a"}]},
        {"version": "1.0.0", "changes": [{}]},
        {"version": "1.0.0", "changes": [{"remove": "a"}], "function": dict},
        {"version": "1.0.0", "changes": [{"scale": "a", "by": "2"}]},
        {"version": "1.0.0", "changes": [{"scale": "a", "by": float("nan")}]},
        {"version": "1.0.0", "changes": [{"rename": "a", "to": 3}]},
        {"version": "1.0.0", "changes": [{"replace": "a", "values": ["b"]}]},
        {"version": "1.0.0", "changes": [{"scale": "widths[]", "by": 2}]},
        {"version": "1.0.0", "changes": [{"remove": "a..b"}]},
    ],
)
def test_a_senseless_migration_is_refused_when_it_is_made(arguments):
    with pytest.raises((MigrationError, VersionError)):
        Migration(**arguments)


def test_a_function_that_answers_no_object_is_reported():
    with pytest.raises(MigrationError, match="answered a NoneType"):
        Migration("1.0.0", function=lambda _params: None).apply({})


def test_a_function_that_fails_is_reported_with_its_version():
    with pytest.raises(MigrationError, match=r"migration to 1.2.0 failed: KeyError: 'w'"):
        Migration("1.2.0", function=lambda params: {"width": params["w"]}).apply({})
