"""Builds what a run is from its launch: dialect, model shape, topology, knobs, mechanics."""
