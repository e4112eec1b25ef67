"""Which environment variables hold the providers' keys, and how keys are kept out of texts."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "anthropic": ("ANTHROPIC_API_KEY",),
        "openai": ("OPENAI_API_KEY",),
        "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "openrouter": ("OPENROUTER_API_KEY",),
        "groq": ("GROQ_API_KEY",),
        "mistral": ("MISTRAL_API_KEY",),
        "deepseek": ("DEEPSEEK_API_KEY",),
        "xai": ("XAI_API_KEY",),
        "cerebras": ("CEREBRAS_API_KEY",),
        "moonshot": ("MOONSHOT_API_KEY",),
        "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN"),
        "fireworks_ai": ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY"),
        "azure": ("AZURE_API_KEY",),
        "bedrock": ("AWS_SECRET_ACCESS_KEY", "AWS_BEARER_TOKEN_BEDROCK"),
        "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
        "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
        "deepinfra": ("DEEPINFRA_API_KEY",),
        "nvidia_nim": ("NVIDIA_NIM_API_KEY",),
        "huggingface": ("HUGGINGFACE_API_KEY", "HF_TOKEN"),
        "dashscope": ("DASHSCOPE_API_KEY",),
    }
)
"""litellm's provider name -> the variables it reads, the usual one first; also the order in
which a model is chosen when none is set."""

REDACTED = "[key removed]"

_SECRET_NAME = re.compile(r"(API_?KEY|_TOKEN|_SECRET|SECRET_ACCESS_KEY|PASSWORD)(_|$)", re.I)
_KEY_SHAPES = re.compile(
    r"\b(?:sk|pk|rk|xai|nvapi)-[A-Za-z0-9_*.-]{12,}"
    r"|\b(?:gsk|hf)_[A-Za-z0-9]{12,}"
    r"|\bAIza[A-Za-z0-9_-]{20,}"
    r"|(?<=Bearer )[A-Za-z0-9][A-Za-z0-9._~+/=-]{7,}"
)
_MIN_SECRET_CHARS = 6


def key_variable(provider: str) -> str:
    """The usual variable for `provider`'s key; empty where none is known."""
    return KEY_VARIABLES.get(provider, ("",))[0]


def secret_variables() -> frozenset[str]:
    """Every variable that holds a key of a known provider."""
    return frozenset(name for names in KEY_VARIABLES.values() for name in names) | {
        "AWS_ACCESS_KEY_ID",
        "AWS_SESSION_TOKEN",
    }


def secret_values(environ: Mapping[str, str], extra_names: Iterable[str] = ()) -> tuple[str, ...]:
    """Values in `environ` that must not be shown: known keys, `extra_names`, secret-like names.

    Longest first, so that a secret inside another does not leave the rest of it standing.
    """
    named = secret_variables() | set(extra_names)
    found = {
        value
        for name, value in environ.items()
        if (name in named or _SECRET_NAME.search(name)) and len(value) >= _MIN_SECRET_CHARS
    }
    return tuple(sorted(found, key=len, reverse=True))


def redact(text: str, secrets: Iterable[str]) -> str:
    """`text` without any of `secrets` and without what has the shape of a key."""
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    return _KEY_SHAPES.sub(REDACTED, text)
