"""What a model writes, and whether it can be used.

`templates` has the headings of notes, `candidates` says whom to ask. `validate` judges what came
(`source`: is it about this conversation, `degeneration`: is it text at all). `writer` has a model
write a short text, for branches and scopes; `fact_blocks` adds facts that code knows.
"""
