"""Technologies as data: ``load(name)`` returns the model every other room reads."""

from layoutkit.technology.device_specs import DeepWell, DeviceSpec, PassiveSpec
from layoutkit.technology.technology import Conductor, Cut, LayerSpec, Rule, Technology
from layoutkit.technology.technology_files import names
from layoutkit.technology.technology_reader import load, originals_first, without_variants

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
    "originals_first",
    "without_variants",
]
