"""Every rule of each foundry deck is accounted for: checked, unchecked where its layers are drawn, or of a whole chip.

``deck_rules/<technology>.txt`` lists all rule ids of the process's decks. A line is ``<deck id> <how> [<rule id>]``:

- ``M1.1 M1.1``: the rule M1.1 of the technology checks it;
- ``EF.01 unchecked [EF]``: the rule (by default the one with the deck's id) is of kind unchecked and names its layers;
- ``M1.4 chip [M1.4]``: the rule has the scope of a whole chip;
- ``MT30.4 option ...``: the rule belongs to another option of the process, which the words after it name.
"""

from pathlib import Path

import pytest

from layoutkit.drc.rule_files import kind_of
from layoutkit.technology import load

FILES = sorted((Path(__file__).parent / "deck_rules").glob("*.txt"))


def account(text):
    """Return (deck id, how, rule id) of each line; comments begin with #."""
    entries = []
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if words:
            deck_id, how, *named = words
            entries.append((deck_id, how, (named or [deck_id if how in {"unchecked", "chip"} else how])[0]))
    return entries


def faults(entries, rules):
    """Return what is wrong with an account: ids without a rule that does what their line says."""
    by_id = {rule.id: rule for rule in rules}
    found = [
        f"{deck_id} is listed twice" for deck_id in {e[0] for e in entries if [x[0] for x in entries].count(e[0]) > 1}
    ]
    for deck_id, how, rule_id in entries:
        rule = by_id.get(rule_id)
        if how == "option":
            continue
        if rule is None:
            found.append(f"{deck_id}: there is no rule {rule_id}")
        elif how == "chip":
            if rule.options.get("scope") != "chip":
                found.append(f"{deck_id}: {rule_id} has no scope chip")
        elif how == "unchecked":
            if rule.kind != "unchecked" or not rule.options.get("layer") or not rule.options.get("reason"):
                found.append(f"{deck_id}: {rule_id} is not a rule of kind unchecked with a layer and a reason")
        elif kind_of(rule) is None:
            found.append(f"{deck_id}: {rule_id} is said to be checked and is of kind {rule.kind}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_rule_of_the_decks_is_accounted_for(path):
    entries = account(path.read_text())
    assert entries
    assert faults(entries, load(path.stem).rules) == []


def test_an_id_without_its_rule_is_a_fault():
    rules = load("generic").rules
    space = next(rule.id for rule in rules if rule.kind == "space")
    assert faults(account(f"A.1 {space} # a comment\n"), rules) == []
    wrong = account(
        f"A.1 missing\nA.2 unchecked {space}\nA.3 chip {space}\nA.4 {space}\nA.4 {space}\n{space} unchecked"
    )
    assert len(faults(wrong, rules)) == 5
