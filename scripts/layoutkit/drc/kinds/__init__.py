"""The kinds of design rules."""
