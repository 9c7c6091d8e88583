"""Simulation of a circuit, and of the netlist extracted from its layout, by ngspice on one test bench.

``device_models`` finds the process's models and keeps those of the devices used; ``test_bench`` chooses sources and
loads from the recognised circuit; ``amplifier``, ``comparator``, ``oscillator`` and ``mirror`` measure; ``own_deck``
runs the deck of a user; ``post_layout`` puts both netlists side by side.
"""
