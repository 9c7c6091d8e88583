"""Technologies as data: ``load(name)`` returns the model every other room reads."""

from layoutkit.technology.technology import (
    Conductor,
    Cut,
    DeepWell,
    DeviceSpec,
    LayerSpec,
    PassiveSpec,
    Rule,
    Technology,
)
from layoutkit.technology.technology_reader import load, names

__all__ = [
    "Conductor",
    "Cut",
    "DeepWell",
    "DeviceSpec",
    "LayerSpec",
    "PassiveSpec",
    "Rule",
    "Technology",
    "load",
    "names",
]
