"""What runs inside the benchmark's own environment: one module per framework, none of which imports the program."""
