"""Plans the changes: remedies → the cheapest set that fits → edits."""
