"""Follows bash scripts without running them; knows no other room of the house."""
