"""Holds the one rule language of the knowledge files: expressions, and the functions they may call."""
