"""Making the context smaller: pure plans, a bounded summariser, code that checks both.

Where to read, in the order in which a compaction with a summary goes:

* `usage` measures how full the window is, `policy` decides when to compact.
* `plan` chooses the cut: which messages stay and which the summary replaces.
* `ledger/` takes the facts from the log by code: files, rules, errors, commands, names.
* `draft` puts together all of a compaction but its prose; `preview` shows it to the person.
* `summary/` has a model write the prose, checks it, and falls back to the facts.
* `service` is the whole and gives a `result`; nothing here writes to a session file.

Beside it: `tiers/` makes single messages smaller without a model, `strategies/` are the other
ways to do that, `branch` sums up a branch that is left, `scopes/` a loop or scope that ended,
and `transcript/` turns messages into text for a model.
"""
