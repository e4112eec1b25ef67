"""A model's summaries, and checks of whether they can be used.

`templates` has the headings of notes, `candidates` lists the models to ask. `validate` judges
replies (`source`: is it about this conversation, `degeneration`: is it meaningful text). `writer`
asks a model for a short text, for branches and scopes; `fact_blocks` adds facts found by code.
"""
