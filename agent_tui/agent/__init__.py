"""One conversation at work, without a screen.

`runtime` is what a front end talks to; it shows its parts: `services` (what all conversations
share), `conversation` (log, model, permissions, usage) and `session.manager` (which session it is).

* `turn/` runs one turn: message queue, reply, tool calls, approvals.
* `session/` begins, opens, forks, names and leaves sessions, and goes back in them.
* `prompt/` makes the system prompt, the files behind it, mentions and prompt files.
* `compaction/` carries out what the compaction room plans, and maps the context.
"""
