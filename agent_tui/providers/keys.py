"""Which environment variables hold the providers' keys, and which values must not be shown."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from agent_tui.secret_text import is_secret_name

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
"""litellm's provider name -> the variables it reads, the usual one first; also the order in which a
model is chosen if none is set."""

_MIN_SECRET_CHARS = 6
_MIN_KEY_CHARS = 8


def key_variable(provider: str) -> str:
    """The usual variable for `provider`'s key; empty if unknown."""
    return KEY_VARIABLES.get(provider, ("",))[0]


def secret_variables() -> frozenset[str]:
    """Every variable that holds a key of a known provider."""
    return frozenset(name for names in KEY_VARIABLES.values() for name in names) | {
        "AWS_ACCESS_KEY_ID",
        "AWS_SESSION_TOKEN",
    }


def key_values(environ: Mapping[str, str], extra_names: Iterable[str] = ()) -> tuple[str, ...]:
    """The providers' keys in `environ`: of known variables and of `extra_names`.

    Placeholders that people set for servers without keys (``dummy``, ``lm-studio``) do not count.
    """
    names = secret_variables() | set(extra_names)
    found = {environ[name] for name in names if name in environ}
    return tuple(sorted(value for value in found if _is_like_a_key(value)))


def _is_like_a_key(value: str) -> bool:
    return len(value) >= _MIN_KEY_CHARS and any(character.isdigit() for character in value)


def secret_values(environ: Mapping[str, str], extra_names: Iterable[str] = ()) -> tuple[str, ...]:
    """Values in `environ` that must not be shown: known keys, `extra_names`, secret-like names.

    Longest first, so that masking a shorter secret leaves no part of a longer one visible.
    """
    named = secret_variables() | set(extra_names)
    found = {
        value
        for name, value in environ.items()
        if (name in named or is_secret_name(name)) and len(value) >= _MIN_SECRET_CHARS
    }
    return tuple(sorted(found, key=len, reverse=True))


def what_is_wrong_with(key: str) -> str:
    """Why `key` cannot be a key, in words that reveal none of it; empty if it can."""
    if key != key.strip():
        return "starts or ends with white space"
    if any(character.isspace() for character in key):
        return "contains white space"
    if key[0] in "\"'`" or key[-1] in "\"'`":
        return "has quotation marks around it"
    if not key.isascii() or not key.isprintable():
        return "contains characters that no key has"
    if key.startswith(("$", "<")):
        return "looks like a placeholder"
    if key.lower().startswith("bearer"):
        return "starts with the word Bearer"
    return ""
