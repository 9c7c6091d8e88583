"""Technologies as data: ``load(name)`` returns the model every other room reads."""

from layoutkit.technology.loader import load, names
from layoutkit.technology.technology import Conductor, Cut, DeviceSpec, LayerSpec, PassiveSpec, Rule, Technology

__all__ = ["Conductor", "Cut", "DeviceSpec", "LayerSpec", "PassiveSpec", "Rule", "Technology", "load", "names"]
