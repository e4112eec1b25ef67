"""litellm's table of models, read without importing litellm (43 ms), and which to begin with."""

import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue, TypeAdapter

from agent_tui.messages import JsonObject
from agent_tui.providers.base import SECOND_NAMES, ModelInfo, reply_limit


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
        "openai": Family((f"gpt-{_VERSION}(?:-sol)?",), (f"gpt-{_VERSION}-(?:mini|luna)",)),
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
        "cerebras": Family((r"gpt-oss-(\d+)b",), ()),  # none of its models costs less
        "moonshot": Family((r"kimi-k(\d+)(?:\.(\d+))?", r"kimi-latest"), (r"kimi-k2\.(\d+)",)),
    }
)


_FILE_NAME = "model_prices_and_context_window_backup.json"
_PER_MILLION = 1_000_000

_PROVIDER_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **SECOND_NAMES,
        "bedrock_converse": "bedrock",
        "vertex_ai-anthropic_models": "vertex_ai",
        "vertex_ai-language-models": "vertex_ai",
    }
)
"""Providers that the table names differently from requests."""

_TABLE = TypeAdapter(dict[str, JsonObject])


class ModelTable:
    """The chat models of a table in litellm's form.

    Args:
        entries: Model name -> what is known of it.
    """

    def __init__(self, entries: Mapping[str, JsonObject]) -> None:
        self._entries = entries
        self._by_name: dict[str, JsonObject] = {}
        self._by_last_part: dict[str, list[str]] = {}
        self._other_kinds: set[str] = set()
        for name, entry in entries.items():
            if entry.get("mode") in ("chat", "responses"):
                self._by_name.setdefault(_full_name(name, entry), entry)
            else:
                self._other_kinds.add(name.rpartition("/")[2])
        for name in self._by_name:
            self._by_last_part.setdefault(name.rpartition("/")[2], []).append(name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @property
    def names(self) -> tuple[str, ...]:
        """Every model as ``provider/model``."""
        return tuple(self._by_name)

    def entry(self, name: str) -> JsonObject:
        """All that the table says about one model; empty if it is not listed.

        The table lists some models with their provider and some without.
        """
        return self._entries.get(name) or self._entries.get(name.partition("/")[2]) or {}

    def ending(self, last_part: str) -> Sequence[str]:
        """The names whose part after the last slash is `last_part`, in the order of the table."""
        return self._by_last_part.get(last_part, ())

    def of_provider(self, provider: str) -> Iterator[str]:
        """The names of one provider's models."""
        return (name for name in self._by_name if name.startswith(f"{provider}/"))

    def calls_tools(self, name: str) -> bool:
        """Whether the model can call tools."""
        return self._by_name[name].get("supports_function_calling") is True

    def is_other_kind(self, name: str) -> bool:
        """Whether a model is for sound, pictures, embeddings or the like, not for text."""
        if (entry := self._by_name.get(name)) is not None:
            return "output_cost_per_audio_token" in entry
        last = name.rpartition("/")[2]
        return last in self._other_kinds and last not in self._by_last_part

    def info(self, name: str) -> ModelInfo | None:
        """What the table says of ``provider/model``; None if it is not listed or has no window."""
        entry = self._by_name.get(name, {})
        window = _whole(entry.get("max_input_tokens")) or _whole(entry.get("max_tokens"))
        if not window:
            return None
        max_output = _whole(entry.get("max_output_tokens")) or _whole(entry.get("max_tokens"))
        return ModelInfo(
            name=name,
            window=window,
            max_output=min(max_output or window, reply_limit(window)),
            input_price=_price(entry.get("input_cost_per_token")),
            output_price=_price(entry.get("output_cost_per_token")),
            cache_read_price=_price(entry.get("cache_read_input_token_cost")),
            cache_write_price=_price(entry.get("cache_creation_input_token_cost")),
            sees_images=entry.get("supports_vision") is True,
            thinks=entry.get("supports_reasoning") is True,
            source="table",
        )

    def newest(self, provider: str, *patterns: str) -> str | None:
        """The model of `provider` with the highest version that matches a pattern.

        Args:
            provider: As in ``provider/model``.
            patterns: Regular expressions for the whole model part; their groups are the version.
        """
        for pattern in patterns:
            versions = {
                tuple(int(part or 0) for part in match.groups()): name
                for name in self.of_provider(provider)
                if (match := re.fullmatch(pattern, name.partition("/")[2]))
            }
            if versions:
                return versions[max(versions)]
        return None


def read_bundled_table() -> ModelTable:
    """The table in litellm's wheel; empty if it cannot be found."""
    found = importlib.util.find_spec("litellm")
    for folder in found.submodule_search_locations or () if found else ():
        path = Path(folder) / _FILE_NAME
        if path.is_file():
            return ModelTable(_TABLE.validate_json(path.read_bytes()))
    return ModelTable({})


def _full_name(name: str, entry: JsonObject) -> str:
    provider = str(entry.get("litellm_provider", ""))
    provider = _PROVIDER_NAMES.get(provider, provider)
    return name if name.startswith(f"{provider}/") else f"{provider}/{name}"


def _whole(value: JsonValue) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _price(value: JsonValue) -> float | None:
    return round(value * _PER_MILLION, 6) if isinstance(value, int | float) else None
