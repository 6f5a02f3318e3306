"""Writes reports: pure functions from a State to text, Markdown, JSON or a diff."""
