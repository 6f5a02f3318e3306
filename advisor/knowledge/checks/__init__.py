"""What the linter asks of the knowledge beyond its types. Each module has one kind of question."""
