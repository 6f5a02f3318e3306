"""What the run is: dialect, model shape, topology, knobs."""
