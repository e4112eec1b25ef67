"""Which of a provider's models to begin with, and which to use for summaries."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Family:
    """Patterns for a provider's working and its cheap model; the newest match is used.

    `unlisted` are a working and a cheap model for a provider that is not in the table.
    """

    working: tuple[str, ...]
    cheap: tuple[str, ...]
    unlisted: tuple[str, ...] = ()


_VERSION = r"(\d+)(?:[-.](\d{1,2}))?"
FAMILIES: Final[Mapping[str, Family]] = MappingProxyType(
    {
        "anthropic": Family((f"claude-sonnet-{_VERSION}",), (f"claude-haiku-{_VERSION}",)),
        "openai": Family((f"gpt-{_VERSION}",), (f"gpt-{_VERSION}-(?:mini|luna)",)),
        "gemini": Family((f"gemini-{_VERSION}-pro(?:-preview)?",), (f"gemini-{_VERSION}-flash",)),
        "openrouter": Family(
            (f"anthropic/claude-sonnet-{_VERSION}",),
            (f"anthropic/claude-haiku-{_VERSION}",),
            ("anthropic/claude-sonnet-4.5", "anthropic/claude-haiku-4.5"),
        ),
        "groq": Family(
            (r"openai/gpt-oss-(\d+)b", r"llama-(\d+)\.(\d+)-70b-versatile"),
            (r"llama-(\d+)\.(\d+)-8b-instant", r"openai/gpt-oss-(20)b"),
        ),
        "mistral": Family(
            (r"devstral-medium-latest", r"mistral-medium-latest"), (r"mistral-small-latest",)
        ),
        "deepseek": Family(
            (r"deepseek-v(\d+)(?:\.(\d))?-pro", r"deepseek-chat"),
            (r"deepseek-v(\d+)(?:\.(\d))?-flash", r"deepseek-chat"),
        ),
        "xai": Family((r"grok-(\d+)(?:\.(\d))?",), (r"grok-(\d+)(?:\.(\d))?-(?:fast|mini)",)),
        "cerebras": Family((r"gpt-oss-(\d+)b",), (r"llama(\d+)\.(\d+)-8b",)),
        "moonshot": Family((r"kimi-k(\d+)(?:\.(\d+))?", r"kimi-latest"), (r"kimi-k2\.(\d+)",)),
    }
)
