"""The main job: from a netlist to a verified layout, stage by stage."""
