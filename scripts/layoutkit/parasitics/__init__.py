"""Parasitics: resistance and capacitance of the nets of a layout, and the netlists that hold them."""
