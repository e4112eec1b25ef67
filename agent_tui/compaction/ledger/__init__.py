"""Facts that code takes from a session: `build` makes the ledger, others find one kind each."""
