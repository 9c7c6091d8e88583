"""technology."""
