"""Remedies → the cheapest set that fits → edits."""
