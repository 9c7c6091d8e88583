"""Simulation of a circuit, and of the netlist extracted from its layout, by ngspice on one test bench.

``device_models`` finds the process's models and keeps those of the devices used; ``bench_values`` chooses sources and
loads from the recognised circuit; ``amplifier`` and ``comparator`` measure; ``fixture`` runs
one deck, also that of a user; ``post_layout`` puts both netlists side by side.
"""
