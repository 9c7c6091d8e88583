"""Measure how often the words of users lead to the right skill: ``make evals``.

    python tests/evals/skill_evals.py [--out FILE]

For every skill, ``prompts.yaml`` has twelve prompts that should find it and eight near misses. ``skillpack search``
ranks the skills for each; if a model is configured (SKILL_MODEL_URL, see references/registry.md), it chooses one from
the descriptions, or none. Printed are, for each skill, how many of its prompts find it first, how many near misses find
the skill that they are about, and how many near misses find this skill, which is wrong. A search nearly always ranks
some skill first, so whether it refuses a near miss that is about no skill is counted for a model only. Further lines
have the parts of ``held_out.yaml``, requests with one or more fair skills each: nobody tuned for the part ``kept``.
"""

import argparse
import json
import sys
from pathlib import Path

import yaml

from skillpack import SkillLoader
from skillscript import SkillError, Task, ask_model, model_settings

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROMPTS = HERE / "prompts.yaml"
HELD_OUT = HERE / "held_out.yaml"
NONE = "none"


def cases():
    """Return the prompts of the skills that the pack has: (skill, prompt, skill that it should find)."""
    skills = SkillLoader(ROOT / "skills").skills
    found = []
    for name, prompts in yaml.safe_load(PROMPTS.read_text(encoding="utf-8")).items():
        if name in skills:
            found += [(name, prompt, name) for prompt in (*prompts["find"], *prompts["more"])]
            # What only a skill that is not there can do, nothing can do.
            found += [
                (name, near["prompt"], near["skill"] if near["skill"] in skills else NONE) for near in prompts["near"]
            ]
    return found


def held_out(part):
    """Return the requests of a part of ``held_out.yaml``: {request: names of the fair skills}."""
    return {entry["prompt"]: entry["skills"] for entry in yaml.safe_load(HELD_OUT.read_text(encoding="utf-8"))[part]}


def by_search(prompts):
    """Return the skill that ``skillpack search`` ranks first for each prompt."""
    loader = SkillLoader(ROOT / "skills")
    first = {}
    for prompt in prompts:
        ranked = loader.search(prompt, limit=1)["data"]["skills"]
        first[prompt] = ranked[0]["name"] if ranked else NONE
    return first


def by_model(prompts, settings):
    """Return the skill that a model chooses for each prompt from the descriptions; "failed" where it gave no answer."""
    loader = SkillLoader(ROOT / "skills")
    names = [*loader.skills, NONE]
    schema = {"type": "object", "required": ["skill"], "properties": {"skill": {"enum": names}}}
    system = f"{loader.get_prompt_section()}\n\nName the one skill to read for the user's request, or {NONE}. "
    system += 'Answer with JSON only: {"skill": NAME}.'
    return {prompt: choice(Task(prompt, schema, system=system), settings) for prompt in prompts}


def choice(task, settings):
    """Return the skill that a model answers."""
    try:
        return ask_model(task, settings).value["skill"]
    except SkillError as error:
        sys.stderr.write(f"{task.prompt}: {error}\n")
        return "failed"


def figures(found, judged, *, can_refuse):
    """Return the figures of every skill, and of all: [right, of] each.

    Args:
        found: As ``cases`` returns them.
        judged: The skill that was chosen for each prompt.
        can_refuse: Whether none is a possible choice.
    """
    rows = {}
    for name, prompt, wanted in found:
        row = rows.setdefault(name, {"hit": [0, 0], "near_right": [0, 0], "near_wrong": [0, 0]})
        if wanted == name:
            count(row["hit"], judged[prompt] == name)
            continue
        count(row["near_wrong"], judged[prompt] == name)
        if can_refuse or wanted != NONE:
            count(row["near_right"], judged[prompt] == wanted)
    total = {key: [sum(row[key][i] for row in rows.values()) for i in (0, 1)] for key in next(iter(rows.values()))}
    return {**rows, "all": total}


def count(pair, is_so):
    """Count one more case."""
    pair[0] += is_so
    pair[1] += 1


def table(rows):
    """Return the figures as text."""
    lines = [f"{'skill':<24} {'Hit@1':>8} {'near: right':>12} {'near: this':>11}"]
    for name, row in rows.items():
        texts = [f"{right}/{of}" for right, of in (row["hit"], row["near_right"], row["near_wrong"])]
        lines.append(f"{name:<24} {texts[0]:>8} {texts[1]:>12} {texts[2]:>11}")
    return "\n".join(lines)


def main():
    """Print the tables and write the figures, with every prompt that found another skill."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, help="file for the figures as JSON")
    given = options.parse_args()
    settings = model_settings({})
    judges = {"search": by_search}
    if settings is not None:
        judges["model"] = lambda prompts: by_model(prompts, settings)
    report = {}
    for judge, judged_by in judges.items():
        found = cases()
        judged = judged_by([prompt for _, prompt, _ in found])
        rows = figures(found, judged, can_refuse=judge == "model")
        missed = [
            {"prompt": prompt, "of": name, "wanted": wanted, "found": judged[prompt]}
            for name, prompt, wanted in found
            if judged[prompt] != wanted and (judge == "model" or wanted != NONE or judged[prompt] == name)
        ]
        report[judge] = {PROMPTS.name: {"skills": rows, "missed": missed}}
        print(f"{PROMPTS.name} by {judge}\n{table(rows)}\n")
        for part in ("tuned", "kept"):
            fair = held_out(part)
            judged = judged_by(list(fair))
            hits = sum(judged[prompt] in skills for prompt, skills in fair.items())
            report[judge][f"{HELD_OUT.name}, {part}"] = {"hit": [hits, len(fair)]}
            print(f"{HELD_OUT.name}, {part}: {hits}/{len(fair)}")
    if settings is None:
        print("by model: not measured, no model is configured (SKILL_MODEL_URL)")
    if given.out is not None:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
