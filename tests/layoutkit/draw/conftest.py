"""What the tests of the generators share."""

import sys
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.draw.mos import MosSize, transistor
from layoutkit.technology import load

sys.path.insert(0, str(Path(__file__).parent))  # makes the oracle of this folder importable by the tests beside it


@pytest.fixture(scope="session", params=["generic", "sky130A"])
def tech(request):
    """Return each shipped technology in turn."""
    return load(request.param)


@pytest.fixture(scope="session")
def sky130():
    """Return sky130A."""
    return load("sky130A")


@pytest.fixture
def layout(tech):
    """Return an empty layout in the technology's database unit."""
    empty = kdb.Layout()
    empty.dbu = tech.dbu_um
    return empty


@pytest.fixture
def device(tech):
    """Return a function that makes a transistor from micrometres and ``drain gate source bulk`` in one string."""

    def make(name, w_um, l_um, nets="d g s b", *, nf=1, m=1, flavour="nmos"):
        named = dict(zip("dgsb", nets.split(), strict=True))
        return transistor(tech, name, flavour, MosSize(w_um * 1e-6, l_um * 1e-6, nf, m), named)

    return make
