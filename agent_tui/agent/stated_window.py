"""The window that a server names when it refuses a request as too large."""

import re

_LEAST_WINDOW = 512
"""Tokens. Smaller numbers beside these words are something else."""

_STATED = re.compile(
    r"""
    (?: maximum\ (?:context|model|sequence)\ (?:length|limit)(?:\ (?:is|of))?:?  # OpenAI, vLLM
      | max_model_len\D{0,3} | context\ (?:size|length|window)\ (?:is|of)(?:\ only)?  # LM Studio
      | context\ size\ \( | "n_ctx":                                               # llama.cpp
      | `max_new_tokens`\ must\ be\ <=                                             # TGI
      | maximum\ allowed\ length\ \(                                             # SGLang
      | token\ limit:                                                           # Moonshot
      | while\ limit\ is | tokens\ >                                               # Cerebras
      | model\ with                                                                # Mistral
    ) \s* (?P<tokens>\d{3,9}) \b
    """,
    re.X | re.I,
)


def stated_window(refusal: str) -> int:
    """Tokens of the window that `refusal` names; 0 where it names none."""
    sizes = [int(match["tokens"]) for match in _STATED.finditer(refusal)]
    return min((size for size in sizes if size >= _LEAST_WINDOW), default=0)
