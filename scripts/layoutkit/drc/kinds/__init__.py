"""All rule kinds: each module registers its own with ``rule_kind`` when it is imported."""

from layoutkit.drc.kinds import abutment, array, chip, distance, enclosure, relation, shape  # noqa: F401 - they register
from layoutkit.drc.rule_kinds import KINDS

__all__ = ["KINDS"]
