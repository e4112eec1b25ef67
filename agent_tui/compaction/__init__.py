"""Make the context smaller: pure plans, one question to a model, and code that checks both.

The data flow, in reading order; nothing here writes to a session file:

1. `policy` decides when to compact, from the size that `sessions.context_size` measured.
2. `planner` is what the rest of the program calls: it takes a `CompactionRequest` and returns an
`outcome`, a preview of one, a `proposal` for the user, or the summary of a `branch`.
3. `strategies/tiered` shortens messages in place (no model): `message_plan` decides the
form of each, from those in `tiers/`. If that is not enough:
4. `draft` fits a summary and the newest messages into the target. `sections/` writes what a reader
needs, `ledger/` the rules and file lists, all by code; `plan` makes the cut.
5. `curation/` asks the model what to keep. `summary/` defines the form of its notes and checks
them. The draft is made again with its choice; without a choice, the draft is the compaction.
6. `result` is the finished compaction with its entries.

Also here: `transcript/`, messages as text for a model; `candidates`, the models to ask.
"""
