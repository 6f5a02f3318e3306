"""Holds the scripts that the program writes against the frameworks' own parsers: `python -m tests.real_parsers`.

It needs checkouts of the frameworks and an environment of its own, and is no part of the suite; what it found stands in
results.yaml, and docs/accuracy.md shows it.
"""
