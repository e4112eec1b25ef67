"""Facts taken from a session by code: `build` makes the ledger, the others find one kind each."""
