"""The ledger: who holds how many bytes, phase by phase, on one GPU and on one node."""
