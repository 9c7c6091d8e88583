"""skillpack."""
