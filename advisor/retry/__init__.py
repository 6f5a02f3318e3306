"""Starts a run again that died for want of memory: with what surely helps changed, from its last checkpoint."""
