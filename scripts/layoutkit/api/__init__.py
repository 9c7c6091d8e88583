"""The engine for Python programs and notebooks: the functions of ``import layoutkit`` and what they return."""
