"""Layout to circuit: connectivity, devices and their parameters."""
