"""Design rule checks: the rules of a technology, and foundry decks."""
