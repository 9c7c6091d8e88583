"""Draw devices: rows of transistor fingers inside tap rings, matched pairs and mirrors, resistors, capacitors."""
