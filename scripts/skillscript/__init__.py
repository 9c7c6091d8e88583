"""skillscript."""
