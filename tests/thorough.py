"""Which combinations of their parameters, and how many random examples, tests draw.

``make coverage`` (``DRC_LAYOUTS=500``) draws all of them, a plain run of pytest few. ``make check`` and ``.ci/run``
(``THOROUGH_TURN=N``, N the days since 1970) draw the few and a share of the others, another one with each N, and all
within ``TURNS`` turns.
"""

import os
from itertools import combinations, product

from layoutkit.technology import names, without_variants

THOROUGH = "DRC_LAYOUTS" in os.environ
TURNS = 8
TURN = int(os.environ["THOROUGH_TURN"]) % TURNS if "THOROUGH_TURN" in os.environ else None


def processes():
    """Return the shipped technologies but those that are based on another one, which have tests of their own."""
    return without_variants(names())


def examples(most):
    """Return how many random examples a test tries: ``most`` in a thorough run, else half of them."""
    return most if THOROUGH else most // 2


def in_this_run(few, every):
    """Return which of some cases this run takes: ``few`` of them, those and a share of the others, or ``every`` one."""
    if THOROUGH:
        return [*every]
    others = [case for case in every if case not in few]
    return [*few] if TURN is None else [*few, *others[TURN::TURNS]]


def covering(*choices):
    """Return few combinations of one value of each of ``choices`` with each pair of values in one of them.

    What goes wrong for one value, or for two values of different parameters together, goes wrong in one of the few. In
    a thorough run each three values are in one of them, and so they are in ``TURNS`` turns.
    """
    return in_this_run(_covering(choices, 2), _covering(choices, 3))


def _covering(choices, number):
    """Return combinations of one value of each of ``choices`` with each ``number`` of values in one of them."""
    places = [range(len(values)) for values in choices]
    if len(choices) <= number:
        return [*product(*choices)]
    missing = {
        (*zip(which, chosen, strict=True),): None
        for which in combinations(range(len(choices)), number)
        for chosen in product(*(places[choice] for choice in which))
    }
    found = []
    while missing:
        chosen = dict(next(iter(missing)))
        for which in range(len(choices)):
            if which not in chosen:
                chosen[which] = max(
                    places[which],
                    key=lambda place: sum(each in missing for each in _together({**chosen, which: place}, number)),
                )
        for each in _together(chosen, number):
            missing.pop(each, None)
        found.append(tuple(values[chosen[which]] for which, values in enumerate(choices)))
    return found


def _together(chosen, number):
    return combinations(sorted(chosen.items()), number)
