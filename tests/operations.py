"""Counting what a function does, where its time would depend on the machine."""

import sys


def lines_run(function):
    """Return how many lines of Python ``function()`` executes; a line of a loop counts once in each round."""
    count = 0

    def trace(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count
