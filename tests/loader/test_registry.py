"""The registry: versions, intents with reasons, dependencies (S0.11, S4.1-S4.5)."""

import json

import pytest

from skillpack import (
    SkillDefinition,
    SkillInfo,
    SkillNotFoundError,
    SkillRegistry,
    SkillVersionNotFoundError,
    find_tools,
    scan,
)
from skillpack.exceptions import VersionError


def skill(name, version="1.0.0", **more):
    return SkillDefinition(name, version, dict, {"type": "object"}, {}, **more)


@pytest.fixture
def registry():
    return SkillRegistry()


def filled(*skills):
    registry = SkillRegistry()
    for entry in skills:
        registry.register(entry)
    return registry


def test_the_latest_version_is_found_by_semantic_order_not_by_text(registry):
    for version in ("1.9.0", "1.10.0", "1.10.0-rc.1"):
        registry.register(skill("a", version, description=version))
    assert registry.get_skill("a").version == "1.10.0"
    assert registry.get_skill("a", "1.9.0").description == "1.9.0"
    assert registry.get_skill("a", "1.9").version == "1.9.0"
    assert registry.versions("a") == ["1.10.0", "1.10.0-rc.1", "1.9.0"]


def test_what_is_not_registered_is_reported(registry):
    registry.register(skill("layout.draw"))
    with pytest.raises(SkillNotFoundError, match=r"Skill not found: layout.drew; did you mean 'layout.draw'"):
        registry.get_skill("layout.drew")
    with pytest.raises(SkillVersionNotFoundError, match=r"Version 2.0.0 not found for skill layout.draw; available: 1"):
        registry.get_skill("layout.draw", "2.0.0")


def test_a_version_that_is_none_is_not_found(registry):
    registry.register(skill("layout.draw"))
    with pytest.raises(SkillVersionNotFoundError, match=r"Version newest not found for skill layout.draw"):
        registry.get_skill("layout.draw", "newest")


def test_a_skill_without_a_semantic_version_is_refused(registry):
    with pytest.raises(VersionError):
        registry.register(skill("a", "newest"))


def test_a_skill_that_asks_for_no_version_is_refused_and_breaks_no_other(registry):
    with pytest.raises(VersionError, match="'newest'"):
        registry.register(skill("a", dependencies=["b@newest"]))
    registry.register(skill("b"))
    assert registry.dependency_problems() == []


def test_the_same_version_again_takes_the_place_of_the_former(registry):
    registry.register(skill("a", description="old"))
    registry.register(skill("a", description="new"))
    assert registry.list_skills() == [SkillInfo("a", "1.0.0", "new", [])]


def test_the_list_shows_each_skill_once_in_its_latest_version(registry):
    for entry in (skill("b", tags=["x"]), skill("a"), skill("b", "2.0.0", tags=["y"])):
        registry.register(entry)
    assert [(info.name, info.version, info.tags) for info in registry.list_skills()] == [
        ("b", "2.0.0", ["y"]),
        ("a", "1.0.0", []),
    ]


def test_declared_tools_are_registered_without_their_code_being_run(write_skill, tmp_path):
    """S4.5."""
    entry = {"id": "a.run", "script": "run.py", "input_schema": {"type": "object"}, "output_schema": {}}
    entries = [{**entry, "version": version, "intent_tags": ["x"]} for version in ("1.0.0", "1.1.0")]
    files = {"skill.yaml": json.dumps({"tools": entries}), "run.py": f"open({str(tmp_path / 'ran')!r}, 'w')"}
    write_skill("a", files=files)
    registry = SkillRegistry.from_tools(find_tools(scan([tmp_path / "skills"]).skills.values()))
    assert registry.versions("a.run") == ["1.1.0", "1.0.0"]
    assert registry.get_skill("a.run").handler is None
    assert [match.name for match in registry.get_skills_by_intent("x")] == ["a.run"]
    assert registry.resolve_dependencies("a.run").ok
    assert not (tmp_path / "ran").exists()


# --- intents (S4.3)


def cost(model_class, **more):
    return {"cost": {"model_class": model_class, **more}, "tags": ["quiz"]}


def names(registry, intent="quiz", **options):
    return [match.name for match in registry.get_skills_by_intent(intent, **options)]


def test_only_skills_with_the_tag_serve_an_intent_whatever_its_case_and_separators():
    registry = filled(skill("a", tags=["Differential-Pair"]), skill("b", tags=["mirror"]))
    assert names(registry, "differential pair") == ["a"]
    assert names(registry, "b") == ["b"]
    assert names(registry, "guitar") == names(registry, "") == []


def test_without_an_exact_tag_words_of_the_intent_count():
    registry = filled(
        skill("a", tags=["current mirror"]), skill("b", tags=["mirror symmetry"]), skill("c", tags=["差分对"])
    )
    assert names(registry, "please draw a current mirror for me") == ["a"]
    assert names(registry, "mirror") == ["a", "b"]
    assert names(registry, "画一个差分对") == ["c"]
    assert names(registry, "mirrors") == ["a", "b"]  # in all forms of a word, as in a search
    assert names(registry, "irror") == names(registry, "mirror the current") == names(registry, "分差") == []
    assert names(registry, "Draw a current mirror.") == names(registry, "(current mirror), now!") == ["a"]


@pytest.mark.parametrize(
    "context",
    [
        {"user_profile": "x", "content_context": 5},
        {"user_profile": {"skill_preferences": {"b": float("nan"), "a": "much"}}},
    ],
)
def test_a_context_that_makes_no_sense_ranks_as_none(context):
    registry = filled(skill("b", **cost("small")), skill("a", **cost("small"), context={"need_content_store": True}))
    assert names(registry, context=context) == ["b", "a"]


def test_cost_comes_before_preference_and_preference_before_context():
    wanting = {"context": {"need_user_memory": True}}
    registry = filled(
        skill("dear", **cost("large")),
        skill("unfit", **cost("small"), **wanting),
        skill("fit", **cost("small")),
        skill("liked", **cost("small"), **wanting),
        skill("disliked", **cost("small")),
        skill("middle", **cost("medium")),
    )
    context = {"user_profile": {}, "memory_summary": ""}
    wishes = {"user_profile": {"skill_preferences": {"liked": 2, "disliked": -1, "dear": 9}}}
    assert names(registry, context=context) == ["disliked", "fit", "liked", "unfit", "middle", "dear"]
    assert names(registry, context=wishes) == ["liked", "fit", "unfit", "disliked", "middle", "dear"]
    assert names(registry, limit=2) == ["disliked", "fit"]


def test_what_is_equal_in_all_else_is_ranked_by_its_words_as_a_search_ranks():
    registry = filled(
        skill("a", tags=["matching", "symmetry"]),
        skill("b", tags=["matching", "netlist"], description="Whether the layout matches the netlist"),
    )
    assert names(registry, "does my layout match the netlist") == ["b", "a"]
    second = registry.get_skills_by_intent("does my layout match the netlist")[1]
    assert (second.decided_by, second.explanation[-1]) == ("relevance", "behind b by relevance")


def test_each_rank_is_explained():
    registry = filled(skill("a", **cost("small")), skill("b", **cost("small")), skill("c", **cost("large")))
    wishes = {"user_profile": {"skill_preferences": {"b": 1}}}
    first, second, third = registry.get_skills_by_intent("quiz", context=wishes)
    assert (first.name, first.rank, first.decided_by, first.matched) == ("b", 1, "", ("quiz",))
    assert "preference: 1 (the user's for b)" in first.explanation
    assert second.explanation[-1] == "behind b by preference"
    assert third.explanation[-1] == "behind a by cost"
    assert third.to_json()["decided_by"] == "cost"


def test_a_preference_for_a_tag_counts_where_the_skill_is_not_named():
    registry = filled(skill("a", **cost("small")), skill("b", cost={"model_class": "small"}, tags=["quiz", "fast"]))
    wishes = {"user_profile": {"skill_preferences": {"fast": 1, "slow": 2}}}
    assert names(registry, context=wishes) == ["b", "a"]


@pytest.mark.parametrize(("contents", "share"), [(0, "50%"), (2, "70%"), (5, "100%"), (9, "100%")])
def test_context_fit_is_the_share_of_what_is_wanted(contents, share):
    wanted = {"need_user_memory": True, "need_content_store": True, "retrieve_top_k": 5}
    registry = filled(skill("a", tags=["quiz"], context=wanted))
    context = {"memory_summary": "knows limits", "content_context": [{}] * contents}
    (match,) = registry.get_skills_by_intent("quiz", context=context)
    assert any(line.startswith(f"context fit: {share}") for line in match.explanation)


def test_a_skill_that_cannot_run_comes_last_and_says_why():
    registry = filled(skill("a", **cost("small"), dependencies=["gone"]), skill("b", **cost("large")))
    matches = registry.get_skills_by_intent("quiz")
    assert [match.name for match in matches] == ["b", "a"]
    assert matches[1].decided_by == "dependencies"
    assert "cannot run: a needs gone, which is not registered" in matches[1].explanation


@pytest.mark.parametrize("profile", [None, {}, {"skill_preferences": "quiz"}, {"skill_preferences": {"a": "high"}}])
def test_a_profile_without_usable_preferences_prefers_nothing(profile):
    registry = filled(skill("a", **cost("small")))
    assert names(registry, context={"user_profile": profile}) == ["a"]


# --- dependencies (S4.4)


def problems(registry, name):
    return [(problem.kind, problem.message) for problem in registry.resolve_dependencies(name).problems]


def order(registry, name):
    return [f"{entry.name} {entry.version}" for entry in registry.resolve_dependencies(name).order]


def test_dependencies_come_before_what_needs_them():
    registry = filled(
        skill("flow", dependencies=["route", "parse"]), skill("route", dependencies=["parse"]), skill("parse")
    )
    assert order(registry, "flow") == ["parse 1.0.0", "route 1.0.0", "flow 1.0.0"]
    assert registry.dependency_problems() == []


def test_a_missing_dependency_is_reported_with_its_asker_and_the_nearest_name():
    registry = filled(skill("flow", dependencies=["route"]), skill("route", dependencies=["prse"]), skill("parse"))
    assert problems(registry, "flow") == [
        ("missing", "route needs prse, which is not registered; did you mean 'parse'?")
    ]
    assert len(registry.dependency_problems()) == 1


@pytest.mark.parametrize("circle", [["a"], ["a", "b"], ["a", "b", "c"]])
def test_a_cycle_is_reported_once_wherever_it_is_entered(circle):
    following = [*circle[1:], circle[0]]
    registry = filled(skill("start", dependencies=[circle[-1]]), *map(_needing, circle, following))
    text = " -> ".join([*circle, circle[0]]) + " is a cycle"
    assert problems(registry, "start") == [("cycle", text)]
    assert [problem.message for problem in registry.dependency_problems()] == [text]


def _needing(name, needed):
    return skill(name, dependencies=[needed])


def test_the_latest_version_that_all_accept_is_chosen():
    registry = filled(
        skill("flow", dependencies=["route", "parse@>=1.0"]),
        skill("route", dependencies=["parse@^1.1"]),
        *(skill("parse", version) for version in ("1.0.0", "1.2.0", "2.0.0")),
    )
    assert order(registry, "flow")[0] == "parse 1.2.0"


def test_an_unavailable_version_is_reported_with_what_is_available():
    registry = filled(skill("flow", dependencies=["parse@>=3"]), skill("parse"), skill("parse", "2.0.0"))
    assert problems(registry, "flow") == [("version", "flow needs parse@>=3, available: 1.0.0, 2.0.0")]


def test_two_askers_that_cannot_agree_are_both_named():
    registry = filled(
        skill("flow", dependencies=["route", "parse@1.0"]),
        skill("route", dependencies=["parse@2.0"]),
        skill("parse"),
        skill("parse", "2.0.0"),
    )
    ((kind, message),) = problems(registry, "flow")
    assert (kind, message) == (
        "version",
        "route needs parse@2.0, available: 1.0.0, 2.0.0 (flow needs 1.0)",
    )


def test_what_an_older_version_needs_counts_only_when_that_version_is_chosen():
    registry = filled(
        skill("flow", dependencies=["route@<2"]),
        skill("route", "1.0.0", dependencies=["old"]),
        skill("route", "2.0.0", dependencies=["new"]),
        skill("old"),
    )
    assert order(registry, "flow") == ["old 1.0.0", "route 1.0.0", "flow 1.0.0"]
    assert problems(registry, "flow") == []
