"""A rule's number lives in one place: changing it there changes what is drawn, routed and checked."""

from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.drc.check import Options, check
from layoutkit.route.routing_stack import make_stack
from layoutkit.technology import load

# technology, rule, the number as the file states it, a larger one that still lets a transistor be drawn
CHANGES = [
    ("generic", "M2_MIN_SPACE", "0.28", "0.4"),
    ("generic", "CONTACT_SPACE_GATE", "0.15", "0.25"),
    ("sky130A", "licon.11", "0.055", "0.1"),
    ("sky130A", "m1.2", "0.14", "0.3"),
    ("gf180mcuD", "M2.2a", "0.28", "0.5"),
    ("gf180mcuD", "PL.4", "0.22", "0.4"),
    ("sg13g2", "Gat.c", "0.18", "0.3"),
    ("sg13g2", "M2.b", "0.21", "0.35"),
]


@pytest.fixture
def with_number(tmp_path):
    """Return a function that loads a copy of a technology with the number of one rule changed."""

    def changed(name, rule, old, new):
        lines = Path(load(name).path).read_text(encoding="utf-8").splitlines()
        at = [i for i, line in enumerate(lines) if f"{{id: {rule}," in line]
        assert len(at) == 1
        assert f"value: {old}," in lines[at[0]]
        lines[at[0]] = lines[at[0]].replace(f"value: {old},", f"value: {new},")
        path = tmp_path / f"{name}.yaml"
        path.write_text("\n".join(lines), encoding="utf-8")
        return load(str(path))

    return changed


def drawn(tech):
    layout = kdb.Layout()
    made = transistor(tech, "M1", "nmos", MosSize(8e-6, 0.6e-6, 4), {"d": "d", "g": "g", "s": "s", "b": "b"})
    return layout, draw_mos(layout, tech, MosSpec(made, "cell")).cell


def violations(layout, cell, tech, rule):
    return check(layout, cell, tech, Options(rule_ids=[rule])).verdicts[0].count


@pytest.mark.parametrize(("name", "rule", "old", "new"), CHANGES, ids=[f"{c[0]}-{c[1]}" for c in CHANGES])
def test_generator_and_check_follow_a_changed_number(with_number, name, rule, old, new):
    before, after = load(name), with_number(name, rule, old, new)
    old_layout, old_cell = drawn(before)
    new_layout, new_cell = drawn(after)
    assert violations(old_layout, old_cell, before, rule) == 0
    assert violations(old_layout, old_cell, after, rule) > 0
    assert violations(new_layout, new_cell, after, rule) == 0


@pytest.mark.parametrize(
    ("name", "rule", "old", "new", "metal"),
    [
        ("generic", "M2_MIN_SPACE", "0.28", "0.4", "metal2"),
        ("sky130A", "m2.1", "0.14", "0.3", "met2"),
        ("gf180mcuD", "M3.2a", "0.28", "0.5", "Metal3"),
        ("sg13g2", "M3.b", "0.21", "0.4", "Metal3"),
    ],
)
def test_the_router_s_pitch_follows_a_changed_number(with_number, name, rule, old, new, metal):
    pitches = [make_stack(tech, [metal], [metal]).pitch() for tech in (load(name), with_number(name, rule, old, new))]
    assert pitches[1] > pitches[0]
