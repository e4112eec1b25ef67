"""The models of a server, whatever its kind."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, JsonValue

from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef, ToolStyle, reply_limit


def _plausible(value: JsonValue) -> JsonValue:
    """A number of tokens or bytes, or None if it is 0 (unknown) or not plausible."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value < 10**15 else None


Amount = Annotated[int | None, BeforeValidator(_plausible)]


class ListedMeta(BaseModel):
    """What llama.cpp adds to an entry, and what stands in front of it passes on."""

    n_ctx: Amount = None


class Listed(BaseModel):
    """One entry of ``/v1/models``."""

    id: str
    owned_by: str = ""
    max_model_len: Amount = None
    context_length: Amount = None
    meta: ListedMeta | None = None

    @property
    def window(self) -> int | None:
        """The window in tokens; None if the server does not state it."""
        return self.max_model_len or self.context_length or (self.meta and self.meta.n_ctx)


class ServerListing(BaseModel):
    """``/v1/models`` of every server that speaks OpenAI's protocol."""

    data: list[Listed]


UNLOADED_WINDOW = 4_096
"""The window in tokens that Ollama and LM Studio give an unloaded model without a setting of its
own, whatever it supports (docs.ollama.com, "context length"). Ollama cuts longer requests without a
word, so more must not be assumed."""

GUESSED_WINDOW = 32_000
"""The window for a server that does not state one."""

MAX_MODELS = 500
"""Models of one server that are looked at."""
_MAX_ID_CHARS = 200
_NOT_FOR_CHAT = re.compile(
    r"embed|rerank|minilm|whisper|(?:^|[/_.:-])(?:tts|bge|gte|e5)(?:[/_.:-]|$)", re.I
)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One model of a server; `window` in tokens, None if the server does not state it.

    `is_window_assumed`: it is the server's usual value, not a stated one.
    """

    id: str
    window: int | None = None
    is_window_assumed: bool = False
    state: str = "ready"
    size_bytes: int | None = None
    sees_images: bool = False
    thinks: bool = False
    tool_style: ToolStyle = "native"
    takes_schema: bool = False
    takes_grammar: bool = False

    def at_address(self, base_url: str, via: str, api_key_env: str = "") -> FoundModel:
        """The model as a choice; always called by OpenAI's protocol, whatever its name contains."""
        ref = ModelRef(f"openai/{self.id}", base_url, api_key_env)
        window = self.window or GUESSED_WINDOW
        info = ModelInfo(
            name=ref.name,
            window=window,
            max_output=reply_limit(window),
            sees_images=self.sees_images,
            thinks=self.thinks,
            source="server" if self.window and not self.is_window_assumed else "guess",
            tool_style=self.tool_style,
            writes_calls=True,
            takes_schema=self.takes_schema,
            takes_grammar=self.takes_grammar,
        )
        return FoundModel(ref, info, via, self.state, self.size_bytes)


def window_before_loading(trained_window: int | None) -> int:
    """The window to assume of an unloaded model that was trained for `trained_window` tokens."""
    return min(UNLOADED_WINDOW, trained_window or UNLOADED_WINDOW)


def only_for_chat(models: Iterable[ServedModel]) -> tuple[ServedModel, ...]:
    """Models that can hold a conversation, and whose names can be shown and sent unchanged."""
    named = (m for m in models if m.id.isprintable() and 0 < len(m.id) <= _MAX_ID_CHARS)
    return tuple(m for m in named if not _NOT_FOR_CHAT.search(m.id))[:MAX_MODELS]
