"""Peaks of small random-weight models, step by step, beside what the ledger says: `python -m tests.gpu.table`."""
