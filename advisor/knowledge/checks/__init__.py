"""Checks the knowledge beyond its types; each module asks one kind of question."""
