"""Tools one after the other: checking a pipeline before it runs, and running it."""
