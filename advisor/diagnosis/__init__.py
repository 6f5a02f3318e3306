"""Facts → the decision tree → a cause, with its path."""
