"""Whether tests draw many combinations of their parameters and random examples, as `make coverage` does, or fewer."""

import os
from itertools import combinations, product

from layoutkit.technology import names, without_variants

THOROUGH = "DRC_LAYOUTS" in os.environ


def processes():
    """Return the shipped technologies but those that are based on another one, which have tests of their own."""
    return without_variants(names())


def examples(most):
    """Return how many random examples a test tries: ``most`` in a thorough run, else half of them."""
    return most if THOROUGH else most // 2


def covering(*choices):
    """Return few combinations of one value of each of ``choices`` with each pair of values in one of them.

    What goes wrong for one value, or for two values of different parameters together, goes wrong in one of the few. In
    a thorough run each three values are in one of them.
    """
    number = 3 if THOROUGH else 2
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
