"""layoutkit."""
