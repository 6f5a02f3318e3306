"""Finds the cause of a crash: facts → the decision tree → a cause, with its path."""
