"""Layout versus schematic: matching, comparison and explanation."""
