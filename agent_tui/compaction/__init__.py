"""Making the context smaller: pure plans, one question to a model, code that vouches for both.

The data flow, in the order to read it; nothing here writes to a session file:

1. `policy` decides when to compact, from the context that `usage` measured.
2. `planner` is what the rest of the program calls: it takes a `CompactionRequest` and returns an
   `outcome`, a preview of one, a `proposal` for the person, or the summary of a `branch`.
3. `strategies/tiered` shortens messages in place (`in_place`, no model): `message_plan` says what
   becomes of each, in the forms of `tiers/`. If that is not enough:
4. `draft` fits a summary and the newest messages into the target. `sections/` writes what a reader
   needs, `ledger/` the rules and the lists of files, all by code; `plan` makes the cut.
5. `curation/` asks the model what to keep. `summary/` has the form of its notes, and checks them.
   With its choice, the draft is made again; without one, the draft is the compaction.
6. `result` is the finished compaction, and the entries that it becomes.

Also here: the other `strategies/`; `scopes/`, which sums up a scope that ended; `transcript/`,
messages as text for a model; `model_client`, which sends one request.
"""
