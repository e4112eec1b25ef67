"""Recognises in every provider's words that a request exceeded the model's window."""

import re

_WORDINGS = re.compile(
    "|".join(
        (
            r"context[_ ]length[_ ]exceeded",  # OpenAI, Azure, Groq, LM Studio: the code
            r"maximum context (?:length|limit)",  # OpenAI, OpenRouter, DeepSeek, vLLM
            r"max(?:imum)? (?:model|sequence|input) (?:length|len|tokens?)",  # vLLM, Fireworks
            r"max_model_len",  # vLLM
            r"prompt is too long",  # Anthropic
            r"input length and `?max_tokens`? exceed context limit",  # Anthropic
            r"input (?:is )?too long for (?:the )?(?:requested )?model",  # Bedrock
            r"input is too long(?! for)",  # Bedrock, and gateways before others
            r"too many total text bytes",  # Bedrock
            r"request payload size exceeds the limit",  # Gemini: bytes
            r"input token count[^.]{0,60}exceeds the maximum",  # Gemini
            r"exceeds? the maximum number of (?:input )?tokens",  # Gemini, Bedrock, Mistral
            r"too many (?:input )?tokens?(?! per)",  # Bedrock, Cohere
            r"too large for model with \d+ maximum context",  # Mistral
            r"exceeds? (?:the )?(?:model'?s? )?(?:available )?"
            r"(?:maximum )?context (?:size|length|window|limit)",  # llama.cpp, LM Studio, xAI
            r"exceed_context_size_error",  # llama.cpp: the type
            r"(?:greater|longer|larger) than the context (?:length|size|window)",  # LM Studio
            r"context (?:size|length|window)[^.]{0,40}(?:exceeded|overflow|is full|too small)",
            r"context[_ ]?window[_ ]?exceeded",  # z.ai; the name of litellm's own error
            r"context window exceeds limit",  # MiniMax
            r"reached context length of \d+",  # LM Studio, in the middle of a reply
            r"exceeds? max context window|exceeds? n_ctx|longer than the model'?s context",
            r"tokens? (?:\(\d+\) )?exceeds? (?:the )?(?:context window|configured limit)",
            r"keep the first \d+ tokens when context",  # LM Studio
            r"`?inputs`? tokens \+ `?max_new_tokens`? must be",  # Hugging Face TGI, Together
            r"`?inputs`? must have less than \d+ tokens",  # the same
            r"current length is \d+ while limit is \d+",  # Cerebras
            r"maximum (?:prompt|input) length is \d+",  # xAI, Together
            r"prompt(?: length)?[^.]{0,40}(?:exceeds|is longer than)[^.]{0,40}(?:context|limit)",
            r"(?:prompt|input|request|messages?)[^.]{0,30}too (?:long|large)[^.]{0,60}"
            r"(?:token|context|model)",  # Ollama, Databricks, Groq ("reduce your message size")
            r"reduce the length of (?:the|your) (?:messages|prompt|input)",  # OpenAI, Groq
            r"tokens? (?:in|of) (?:the )?(?:prompt|request)[^.]{0,40}exceed",
            r"'(?:input|(?:messages|input)\[\d+\][^']*"  # OpenAI: a text over 10 MB; no id or name
            r"\.(?:content|text|output|arguments)(?:\[\d+\])?)': string too long",
            r"exceeded model token limit|model max length exceeded",  # Moonshot
            r"total message size \d+ exceeds limit",  # Moonshot: bytes
            r"input length[^.]{0,40}exceeds the maximum allowed length",  # SGLang
            r"input tokens exceeded",  # Bedrock: Nova
            r"expected maxLength: \d+, actual: \d+",  # Bedrock: characters
            r"input token count is \d+ but (?:the )?model only supports",  # Vertex AI
            r"prompt has \d+ tokens, but the configured context size",
            r"prompt length \d+ is greater than max_seq_len",  # TabbyAPI
            r"max_prompt_tokens_exceeded",  # GitHub Copilot
            r"prompt (?:exceeds max length|超长)",  # z.ai
            r"request_too_large|request exceeds the maximum size",  # Anthropic: bytes
            r"input tokens \d+ cannot exceed the total tokens limit",  # watsonx
            r"total tokens of image and text exceed",  # Volcengine
            r"input_tokens \(\d+\) \+ max_tokens \(\d+\) > context window",
            r"max tokens of \d+ exceeded",  # Snowflake
            r"max_tokens must be at least 1, got -\d",  # vLLM: the prompt alone is larger
            r"n_keep \(?\d+\)? >= n_ctx",  # llama.cpp, LM Studio
            r"you passed \d+ input (?:characters|tokens)[^.]{0,60}\. however, the model's context",
            r"range of input length should be",  # DashScope
            r"input (?:tokens? )?exceeds? (?:the )?[^.]{0,20}(?:limit|context)",
        )
    ),
    re.I,
)
_PER_TIME = re.compile(
    r"per[-_ ](?:min(?:ute)?|hour|day|second|\d+ ?s)(?![a-z])|\bTPM\b|\bRPM\b|\bTPD\b"
    r"|rate.?limit|throttl|please wait|too many requests"
    r"|(?:re)?try (?:again )?(?:in|after) \d",
    re.I,
)
_TOO_LARGE_STATUS = 413

_LEAST_WINDOW = 512
"""Tokens. Smaller numbers beside these words mean something else."""

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


def is_context_overflow(text: str, status: int | None = None) -> bool:
    """Whether a server's refusal means that the conversation exceeds the window.

    Args:
        text: The message with the codes of the response's body.
        status: HTTP status, None if there is none. 429 is never an overflow, and 413 always is,
            unless the text mentions an amount per time (Groq sends 413 for both).
    """
    if status == 429 or _PER_TIME.search(text):
        return False
    if status == _TOO_LARGE_STATUS:
        return True
    return status in (None, 400, 422, 500) and _WORDINGS.search(text) is not None


def window_in(refusal: str) -> int:
    """The window in tokens that `refusal` names; 0 if it names none."""
    sizes = [int(match["tokens"]) for match in _STATED.finditer(refusal)]
    return min((size for size in sizes if size >= _LEAST_WINDOW), default=0)
