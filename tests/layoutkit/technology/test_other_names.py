"""Names by which people call a shipped technology."""

import pytest

from layoutkit.errors import TechnologyError
from layoutkit.technology import load, names


@pytest.mark.parametrize(
    ("name", "technology"),
    [
        ("sky130", "sky130A"), ("SKY130a", "sky130A"), ("skywater", "sky130A"), ("gf180", "gf180mcuD"),
        ("gf180mcu", "gf180mcuD"), ("ihp", "sg13g2"), ("ihp-sg13g2", "sg13g2"), ("sg13g2", "sg13g2"),
    ],
)  # fmt: skip
def test_other_names_find_the_process(name, technology):
    assert load(name).name == technology


@pytest.mark.parametrize("name", ["sky130B", "s", "", "ihp130nm", "gf130"])
def test_the_name_of_another_process_is_refused_with_those_that_exist(name):
    with pytest.raises(TechnologyError, match=f"shipped: {', '.join(names())}"):
        load(name)
