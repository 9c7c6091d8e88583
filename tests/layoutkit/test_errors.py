"""Every error of the engine speaks one of the ten codes (S0.2)."""

import pickle

import klayout.db as kdb
import pytest

from layoutkit import errors
from layoutkit.errors import LayoutkitError
from layoutkit.layout.cells import choose_cell

CODES = {
    "INVALID_PARAM",
    "DEVICE_NOT_FOUND",
    "DRC_VIOLATION",
    "LAYOUT_CONFLICT",
    "KLAYOUT_ERROR",
    "SERVICE_UNAVAILABLE",
    "TIMEOUT",
    "INTERNAL_ERROR",
    "RULE_NOT_FOUND",
    "UNSUPPORTED_OPERATION",
}
CLASSES = [errors.LayoutkitError, *errors.LayoutkitError.__subclasses__()]


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_carries_its_code_message_and_details(kind):
    error = kind("what happened", details={"limit": 3})
    assert error.code in CODES
    assert str(error) == error.message == "what happened"
    assert error.details == {"limit": 3}
    assert kind("other", code="TIMEOUT").code == "TIMEOUT"


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_crosses_a_process_border_whole(kind):
    copy = pickle.loads(pickle.dumps(kind("what happened", details={"limit": 3})))  # noqa: S301 - made right here
    assert (type(copy), str(copy), copy.details) == (kind, "what happened", {"limit": 3})


def test_a_message_lists_twenty_names_and_counts_the_others():
    layout = kdb.Layout()
    for number in range(20_000):
        layout.create_cell(f"CELL_{number:05}")
    for name in (None, "OTHER"):
        with pytest.raises(LayoutkitError) as caught:
            choose_cell(layout, name)
        assert str(caught.value).endswith("CELL_00018, CELL_00019 and 19980 more")


def test_a_message_lists_twenty_faults_and_counts_the_others():
    text = errors.sentences(f"fault {number}" for number in range(5000))
    assert text.count("fault") == 20
    assert text.endswith("fault 19; and 4980 more")
    assert errors.sentences(["only"]) == "only"
