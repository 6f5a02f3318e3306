"""Read and edit launch files, byte-exact."""
