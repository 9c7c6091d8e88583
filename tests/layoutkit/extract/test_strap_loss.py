"""Strap losses agree with a resistor ladder solved by hand, and stay small on what the generators draw."""

import klayout.db as kdb
import numpy as np
import pytest

from layoutkit.draw.mos import MosSpec, Transistor, draw_mos
from layoutkit.extract.metal_mesh import mean_resistance
from layoutkit.extract.strap_loss import strap_losses, straps_data
from layoutkit.technology import load
from thorough import processes

PITCH, COUNT, WIDTH = 1000, 20, 400


def finger(name, cuts):
    """Return a hand-drawn finger of 20 um with a strap on the first conductor and a rail across its top.

    Contacts lie at a pitch of 1 um on both sides; ``cuts`` join each strap with the rail at its upper end.
    """
    technology = load(name)
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    cell = layout.create_cell("TOP")
    spec, contact, cut = technology.device("nmos"), technology.contact, technology.cuts[0]

    def draw(layer, *box):
        cell.shapes(technology.layer(layout, layer)).insert(kdb.Box(*box))

    top = COUNT * PITCH
    draw("active", -2000, 0, 3000, top)
    draw("poly", 0, -500, 1000, top + 500)
    if spec.implant:
        draw(spec.implant, -3000, -1000, 4000, top + 1000)
    if technology.role("pwell"):
        draw("pwell", -4000, -2000, 5000, top + 2000)
    cell.shapes(technology.layer(layout, "device_text")).insert(kdb.Text("M1", kdb.Trans(500, 10_000)))
    first, second = technology.conductors[:2]
    for x, rail in ((-1000, 0), (2000, 1)):
        draw(first.layer, x - WIDTH // 2, 0, x + WIDTH // 2, top + 5000)
        y = top + 3000 + 1000 * rail
        draw(second.layer, -9000, y - 200, 9000, y + 200)
        for i in range(COUNT):
            low = i * PITCH + (PITCH - contact.size) // 2
            draw(contact.layer, x - contact.size // 2, low, x - contact.size // 2 + contact.size, low + contact.size)
        for _ in range(cuts):
            left = x - cut.size // 2
            draw(cut.layer, left, y - cut.size // 2, left + cut.size, y - cut.size // 2 + cut.size)
    return technology, cell, layout


def by_hand(technology, distance):
    """Return the mean voltage per current of a ladder of COUNT nodes; the rail is ``distance`` above the last."""
    sheet, cut = technology.conductors[0].sheet_ohm, technology.cuts[0].resistance_ohm
    step, end = sheet * PITCH / WIDTH, sheet * distance / WIDTH + cut
    matrix = np.zeros((COUNT, COUNT))
    for i in range(COUNT - 1):
        matrix[i, i] += 1 / step
        matrix[i + 1, i + 1] += 1 / step
        matrix[i, i + 1] = matrix[i + 1, i] = -1 / step
    matrix[-1, -1] += 1 / end
    return np.linalg.solve(matrix, np.full(COUNT, 1 / COUNT)).mean()


@pytest.mark.parametrize("name", processes())
def test_the_resistance_of_a_finger_is_that_of_a_ladder_solved_by_hand(name):
    technology, cell, _ = finger(name, 1)
    found = strap_losses(cell, technology)
    assert len(found) == 1
    # from the middle of the last contact to the middle of the cut: half a pitch, then 3 or 4 um
    for column, above in ((found[0].left, 3000), (found[0].right, 4000)):
        assert column.ohm == pytest.approx(by_hand(technology, PITCH // 2 + above), rel=0.02)
        assert column.coverage == 1.0


def test_the_loss_is_the_voltage_lost_over_the_supply():
    technology, cell, _ = finger("sky130A", 1)
    found = strap_losses(cell, technology)[0]
    current = 0.516e-3 * 20  # 0.516 mA/um, sky130 nfet_01v8
    lost = (2.0 * found.right.ohm + 0.2 * found.left.ohm) * current / 1.8
    assert found.loss == pytest.approx(lost / (1 + lost), rel=1e-6)
    assert found.loss > 0.5, "20 um of li1 cost most of the current"


def test_a_column_that_reaches_no_rail_has_no_resistance():
    technology, cell, _ = finger("gf180mcuD", 0)
    assert straps_data(strap_losses(cell, technology))[0]["strap_ohm"] is None


@pytest.mark.parametrize("name", processes())
def test_generated_fingers_of_5_um_are_covered_and_lose_little(name):
    technology = load(name)
    for spec in (each for each in technology.devices.values() if each.kind.is_mos and not each.drain_marker):
        layout = kdb.Layout()
        layout.dbu = technology.dbu_um
        device = Transistor("M1", spec, 5000, spec.min_l, 4, 1, "d", "g", "s", "b")
        module = draw_mos(layout, technology, MosSpec(device, "m1"))
        (found,) = straps_data(strap_losses(module.cell, technology))
        assert found["coverage"] >= 0.8
        assert (found["idsat_loss"] is None) == (spec.saturation_ma_um is None)
        assert (found["idsat_loss"] or 0) <= 0.02, spec.name


def test_a_comb_on_the_first_conductor_is_measured_up_to_its_back():
    """The straps lead into a bar on the first conductor, with no cut: their part beyond the gates is the rail."""
    technology, cell, layout = finger("sky130A", 0)
    first = technology.conductors[0]
    top = COUNT * PITCH
    cell.shapes(technology.layer(layout, first.layer)).insert(kdb.Box(-9000, top + 3000, 1500, top + 4000))
    left = strap_losses(cell, technology)[0].left
    squares = PITCH / WIDTH
    ladder = first.sheet_ohm * squares * sum(((i + 1) / COUNT) ** 2 for i in range(COUNT - 1))
    above = first.sheet_ohm * (3000 + PITCH / 2) / WIDTH
    assert ladder + above < left.ohm < 1.1 * (ladder + above)
    assert left.coverage == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_the_resistance_of_any_network_is_that_of_its_solved_matrix(seed):
    random = np.random.default_rng(seed)
    size = 30
    links = {(i, i + 1): float(random.uniform(0.1, 9)) for i in range(size - 1)}
    for _ in range(25):
        one, other = sorted(random.choice(size, 2, replace=False).tolist())
        links[one, other] = float(random.uniform(0.1, 9))
    grounded, feeds = {3, 17}, random.integers(0, size, 6).tolist()
    matrix = np.zeros((size, size))
    for (one, other), conductance in links.items():
        matrix[[one, other], [one, other]] += conductance
        matrix[[one, other], [other, one]] -= conductance
    free = [cell for cell in range(size) if cell not in grounded]
    currents = np.bincount(feeds, minlength=size) / len(feeds)
    voltages = np.linalg.solve(matrix[np.ix_(free, free)], currents[free])
    assert mean_resistance(links, grounded, feeds) == pytest.approx(currents[free] @ voltages, rel=1e-9)


def test_a_network_with_a_fed_cell_that_reaches_no_ground_has_no_resistance():
    links = {(0, 1): 1.0, (2, 3): 1.0, (4, 5): 1.0}
    assert mean_resistance(links, {1}, [0, 2]) is None
    assert mean_resistance(links, {1, 3}, [0, 2]) == pytest.approx(0.5)  # what is not fed does not count
