"""What was measured once, against what the ledger says today; needs neither a GPU nor torch."""
