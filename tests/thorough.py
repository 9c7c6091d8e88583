"""Whether tests draw all combinations of their parameters and many random examples, as `make coverage` does.

Otherwise they draw some combinations that cover each value, and fewer examples.
"""

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
    """Return all combinations of one value of each of ``choices``, or else few with each pair of values in one of them.

    What goes wrong for one value, or for two values of different parameters together, goes wrong in one of the few.
    """
    places = [range(len(values)) for values in choices]
    if THOROUGH or len(choices) < 2:
        return [*product(*choices)]
    missing = {
        ((one, i), (other, k)): None
        for one, other in combinations(range(len(choices)), 2)
        for i, k in product(places[one], places[other])
    }
    found = []
    while missing:
        chosen = dict(next(iter(missing)))
        for which in range(len(choices)):
            if which not in chosen:
                chosen[which] = max(places[which], key=lambda place: len(_pairs({**chosen, which: place}) & {*missing}))
        for pair in _pairs(chosen):
            missing.pop(pair, None)
        found.append(tuple(values[chosen[which]] for which, values in enumerate(choices)))
    return found


def _pairs(chosen):
    return {*combinations(sorted(chosen.items()), 2)}
