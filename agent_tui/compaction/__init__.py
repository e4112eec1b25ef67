"""Making the context smaller: pure plans, a bounded summariser, code that checks both.

Where to read, in the order in which a compaction with a summary goes:

* `usage` measures how full the window is, `policy` decides when to compact.
* `planner` is what the rest of the program asks: what a compaction comes to, and what it would.
* `outcome` is the one order: the strategy that is named, and where that is not enough, `tiered`.
* `strategies/tiered` shortens messages in place where little must go: `strategies/message_plan`
  says what becomes of each message, in the forms of `tiers/`. No model is asked. Otherwise:
* `draft` fits a summary and the newest messages into the target. `sections/` writes what a reader
  needs who goes on, `ledger/` rules and lists of files, all by code; `plan` makes the cut.
* `summary/` has a model write the prose amid the sections, and checks it.
* `service` puts both together to a `result`; nothing here writes to a session file.

Beside it: the other `strategies/`, which make the same plan with a model, `branch` sums up a branch
that is left, `scopes/` a loop or scope that ended, and `transcript/` turns messages into text for a
model.
"""
