"""Watches a run while it lives: its output, its phases and what it holds, in a record that outlives every crash."""
