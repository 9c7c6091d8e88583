"""Widths of wires: the least for a current, and the most with usual spaces. Numbers by hand from the rules."""

import pytest

from layoutkit.technology import load


@pytest.mark.parametrize(
    ("name", "conductor", "current_ma", "width_um"),
    [
        ("sky130A", "met1", 2.8, 1.0),  # 2.8 mA/um
        ("sky130A", "met3", 3.4, 0.5),  # 6.8 mA/um
        ("sky130A", "li1", 5.0, 0.0),  # no limit is published
        ("gf180mcuD", "Metal5", 1.1, 0.5),  # 2.2 mA/um
        ("sg13g2", "Metal2", 0.6, 0.0),  # any wire carries 0.6 mA
        ("sg13g2", "Metal2", 0.7, 0.35),  # 2 mA/um
    ],
)
def test_a_wire_is_as_wide_as_its_current_needs_on_its_conductor(name, conductor, current_ma, width_um):
    assert load(name).conductor(conductor).width_um(current_ma) == pytest.approx(width_um)


@pytest.mark.parametrize(
    ("name", "conductor", "width_um"),
    [
        ("sg13g2", "Metal2", 10.0),  # M2.f: 0.6 um to Metal2 wider than 10 um, more than the 0.24 um of M2.e
        ("sky130A", "met1", None),  # m1.3b is the space of wide met1, which wires keep
        ("gf180mcuD", "Metal2", None),  # M2.2b likewise
    ],
)
def test_the_widest_usual_wire_is_that_beyond_which_a_rule_asks_for_more_space(name, conductor, width_um):
    technology = load(name)
    found = technology.widest_usual(technology.conductor(conductor))
    assert found == (None if width_um is None else technology.to_dbu(width_um))
