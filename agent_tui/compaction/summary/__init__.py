"""The prose of a summary, from the prompt to the checked document.

`templates` and `prompts` say what is asked for, `candidates` whom to ask, `summariser` tries one
model after the other and `writer` is one of these tries. `reply` reads what came, `validate`
judges it (`source`: is it about this conversation, `degeneration`: is it text at all). `fallback`
writes or completes the summary of a branch from the ledger, `prose` says what becomes of a model's
document or of there being none, and `fact_blocks` adds the facts that no model is trusted with.
"""
