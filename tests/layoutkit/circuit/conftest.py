"""Netlists written to a folder and read back."""

import textwrap

import pytest

from layoutkit.circuit.readers.spice_reader import read_spice


@pytest.fixture
def netlist(tmp_path):
    """Write a text as a netlist file and return its path."""

    def write(text, name="circuit.sp"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    return write


@pytest.fixture
def spice(netlist):
    """Return the circuit of a SPICE text."""

    def read(text, **options):
        return read_spice(netlist(text), **options)

    return read
