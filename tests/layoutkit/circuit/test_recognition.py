"""Recognition against circuits that were labelled by hand, before anyone looked at what recognition says of them."""

import shutil

import pytest
import yaml

from recognition_score import LABELLED, score

BOUNDS = {"must": 0.97, "precision": 0.97}
OTHER = {
    "supplies found": 0.98,
    "supplies right": 0.98,
    "mirror reference": 1.0,
    "tempting pairs explained": 0.85,
    "axis pairs": 0.92,
    "axis net_pairs": 0.9,
}


@pytest.fixture(scope="module")
def scored():
    return score(LABELLED)


def test_recognition_agrees_with_the_labels(scored):
    assert len(scored.lines) >= 20
    assert scored.unanswered == []
    assert scored.wrong == []
    assert {part: scored.total(part) for part in BOUNDS if scored.total(part) < BOUNDS[part]} == {}
    assert {name: scored.other[name].share for name in OTHER if scored.other[name].share < OTHER[name]} == {}


def judged(folder, name, change):
    """Return the score of one labelled circuit whose label was changed."""
    for path in LABELLED.glob(f"{name}*"):
        shutil.copy(path, folder)
    path = next(folder.glob("*.labels.yaml"))
    label = yaml.safe_load(path.read_text())
    change(label)
    path.write_text(yaml.safe_dump(label))
    return score(folder)


def test_the_score_counts_what_a_label_says_otherwise(tmp_path):
    """Planted: another reference, a pair that is called wrong, a group that is none, another supply."""

    def change(label):
        label["groups"][0]["reference"] = "XMtail"
        label["groups"][0]["must_outputs"] = ["XMdio", "XMsrc"]
        label["groups"] = [group for group in label["groups"] if group["kind"] != "differential_pair"]
        label["not_matched"] = [["XMla", "XMlb"]]
        label["supplies"]["power"] = ["AVDD", "ibias"]
        label["symmetry"]["net_pairs"] = [["ip", "vo"]]

    result = judged(tmp_path, "miller_amplifier.spice", change)
    assert result.other["mirror reference"].share == 0.5
    assert result.wrong == ["miller_amplifier.spice: xmla xmlb"]
    assert result.precision["differential_pair"].share == 0
    assert result.other["supplies found"].share == pytest.approx(2 / 3)
    assert result.other["axis net_pairs"].share == 0


def test_a_netlist_that_is_refused_counts_as_an_empty_answer(tmp_path):
    result = judged(tmp_path, "schmitt_trigger.spice", lambda label: label.update(top="nothing"))
    assert result.unanswered == ["schmitt_trigger.spice"]
    assert result.total("recall") == 0
