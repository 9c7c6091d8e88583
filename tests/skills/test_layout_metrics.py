"""eval.compute_metrics through its command line: the specified parameters and answer (S0.10)."""

import klayout.db as kdb
import pytest

SCRIPT = "layout-metrics/scripts/compute_metrics.py"


@pytest.fixture
def pair(tmp_path):
    """A B B A: gates of 2 x 0.5 um, 1 um apart, on one strip of active; generic layers."""
    layout = kdb.Layout()
    layout.dbu = 0.001
    cell = layout.create_cell("PAIR")
    cell.shapes(layout.layer(1, 0)).insert(kdb.Box(-500, 0, 4000, 2000))
    for number, name in enumerate("ABBA"):
        x = 1000 * number
        cell.shapes(layout.layer(2, 0)).insert(kdb.Box(x, -200, x + 500, 2200))
        cell.shapes(layout.layer(63, 0)).insert(kdb.Text(name, kdb.Trans(0, False, x + 250, 1000)))
    layout.write(str(tmp_path / "pair.gds"))
    return tmp_path / "pair.gds"


def test_the_answer_is_the_seeds(run_script, pair):
    arguments = ["--cell-name", "PAIR", "--matched-pairs", '[["A", "B"]]', "--area-targets", '{"total": 10}']
    code, envelope = run_script(SCRIPT, "--layout-path", pair, *arguments)
    assert code == 0
    data = envelope["data"]
    assert data["metrics"] == {
        "total_area": 10.8,
        "active_area": 9.0,
        "utilization": 0.833333,
        "aspect_ratio": 1.875,
        "width": 4.5,
        "height": 2.4,
        "device_count": 2,
    }
    assert data["matching_metrics"] == [
        {
            "pair": ["A", "B"],
            "centroid_distance": 0,
            "area_ratio": 1,
            "matching_score": 1,
            "symmetry_error": 0,
        }
    ]
    assert data["area_comparison"] == {"target": 10, "actual": 10.8, "ratio": 1.08}


def test_pairs_and_targets_are_optional(run_script, pair):
    code, envelope = run_script(SCRIPT, "--layout-path", pair)
    assert code == 0
    assert envelope["data"]["matching_metrics"] == []
    assert envelope["data"]["area_comparison"] is None


def test_matched_groups_that_are_not_measured_are_told(run_script, pair):
    """An empty list of groups does not say that none is wrong."""
    _, envelope = run_script(SCRIPT, "--layout-path", pair)
    assert envelope["data"]["matched_groups"] == []
    assert [text for text in envelope["data"]["warnings"] if "no matched groups are known of this layout" in text]
    _, envelope = run_script(SCRIPT, "--layout-path", pair, "--matched-groups", "[]", "--technology", "generic")
    assert envelope["data"]["warnings"] == []


def test_an_unknown_device_is_reported(run_script, pair):
    code, envelope = run_script(SCRIPT, "--layout-path", pair, "--matched-pairs", '[["A", "M9"]]')
    assert (code, envelope["error"]["code"]) == (2, "DEVICE_NOT_FOUND")
    assert envelope["error"]["details"]["available_devices"] == ["A", "B"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cell-name", "NONE"], "no cell 'NONE'; it has: PAIR"),
        (["--area-targets", '{"NONE": 1}'], "there is no 'NONE'"),
        (["--area-targets", '{"total": 0}'], "area_targets"),
        (["--matched-pairs", '[["A"]]'], "matched_pairs"),
        (["--matched-pairs", '[["A", "B", "C"]]'], "matched_pairs"),
        (["--matched-pairs", '[["A", 3]]'], "matched_pairs"),
        (["--technology", "none"], "none"),
        (["--layout-path", "none.gds"], "no such file"),
    ],
)
def test_a_wrong_parameter_is_reported(run_script, pair, arguments, message):
    where = [] if "--layout-path" in arguments else ["--layout-path", pair]
    code, envelope = run_script(SCRIPT, *where, *arguments)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert message in envelope["error"]["message"]
