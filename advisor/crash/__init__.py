"""What the logs prove."""
