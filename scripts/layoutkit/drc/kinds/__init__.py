"""All rule kinds: each module registers its own with ``rule_kind`` when it is imported."""

from layoutkit.drc.kind_register import KINDS
from layoutkit.drc.kinds import chip, distance, relation  # noqa: F401 - they register

__all__ = ["KINDS"]
