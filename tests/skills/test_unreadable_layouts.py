"""Every tool that reads a layout file refuses one that is incomplete or too large, with what is wrong."""

import os
import struct

import klayout.db as kdb
import pytest

from layoutkit.layout.files import layout_bytes

TOOLS = {
    "drc-check/scripts/run_check.py": [],
    "lvs-check/scripts/run_check.py": ["--netlist-path", "none.spice"],
    "layout-metrics/scripts/compute_metrics.py": [],
    "layout-view/scripts/render_view.py": [],
    "gds-export/scripts/export_gds.py": ["--output-path", "out.gds"],
    "signal-routing/scripts/route_signal_nets.py": [
        "--nets",
        '[{"net_name": "a", "endpoints": [{"x": 0, "y": 0, "layer": "metal1"}, {"x": 9, "y": 0, "layer": "metal1"}]}]',
    ],
}


@pytest.fixture
def incomplete(tmp_path):
    """A layout whose top cell refers to a cell PART that the file does not hold."""
    layout = kdb.Layout()
    layout.dbu = 0.001
    top, part = layout.create_cell("TOP"), layout.create_cell("HERE")
    top.insert(kdb.CellInstArray(part.cell_index(), kdb.Trans()))
    top.shapes(layout.layer(68, 20)).insert(kdb.Box(0, 0, 1000, 1000))
    name = struct.pack(">HH", 8, 0x1206)
    path = tmp_path / "incomplete.gds"
    path.write_bytes(layout_bytes(layout, "GDS2").replace(name + b"HERE", name + b"PART"))
    return path


@pytest.mark.parametrize("script", TOOLS)
def test_a_missing_cell_is_refused_by_name(run_script, incomplete, script):
    (incomplete.parent / "none.spice").write_text(".subckt TOP a\n.ends\n")
    code, envelope = run_script(script, "--layout-path", incomplete, *TOOLS[script])
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM"), envelope
    assert "cells that it does not contain: PART" in envelope["error"]["message"]


def test_a_missing_cell_whose_name_is_no_text_is_refused_too(run_script, incomplete):
    incomplete.write_bytes(incomplete.read_bytes().replace(b"PART", b"\x80ART"))
    code, envelope = run_script("layout-metrics/scripts/compute_metrics.py", "--layout-path", incomplete)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM"), envelope


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="skipped: needs POSIX")
def test_a_pipe_is_refused_and_not_waited_for(run_script, tmp_path):
    os.mkfifo(tmp_path / "pipe.gds")
    code, envelope = run_script("layout-metrics/scripts/compute_metrics.py", "--layout-path", "pipe.gds")
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM"), envelope
    assert "not a regular file" in envelope["error"]["message"]
