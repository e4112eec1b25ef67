"""How long providers cache the start of a request, so that the next one costs less.

As documented for requests like ours, which ask for no lifetime; counted from the last use.
Providers that document none for such requests, such as Google and DeepSeek, are not listed.

- Anthropic: 5 minutes, an hour only if a request asks for it.
  platform.claude.com/docs/en/build-with-claude/prompt-caching. The same for its models elsewhere.
- Bedrock: 5 minutes. docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html
- OpenAI: in memory 5 to 10 minutes, never over an hour; from GPT-4.1 and GPT-5 on up to 24 hours,
  unless the organisation keeps no data. developers.openai.com/docs/guides/prompt-caching
- Azure: as OpenAI, but a deployment's name does not say which model it is.
  learn.microsoft.com/azure/foundry/openai/how-to/prompt-caching
"""

import re
from dataclasses import dataclass
from typing import Final

from agent_tui.providers.base import ModelRef

_MINUTE_S, _HOUR_S = 60.0, 3_600.0


@dataclass(frozen=True, slots=True)
class CacheLifetime:
    """A prefix is cached for at least `least_s` seconds after its last use, at most `most_s`."""

    least_s: float
    most_s: float


_FIVE_MINUTES: Final = CacheLifetime(5 * _MINUTE_S, 5 * _MINUTE_S)
_IN_MEMORY: Final = CacheLifetime(5 * _MINUTE_S, _HOUR_S)
_EXTENDED: Final = CacheLifetime(5 * _MINUTE_S, 24 * _HOUR_S)

_LIFETIMES: Final = tuple(
    (re.compile(pattern), lifetime)
    for pattern, lifetime in (
        (r"anthropic/", _FIVE_MINUTES),
        (r"bedrock/.*(claude|nova)", _FIVE_MINUTES),
        (r"vertex_ai/.*claude", _FIVE_MINUTES),
        (r"openrouter/anthropic/", _FIVE_MINUTES),
        (r"openai/(gpt-4\.1|gpt-[5-9])", _EXTENDED),
        (r"openai/(gpt-4o|o\d)", _IN_MEMORY),
        (r"azure/", _EXTENDED),
    )
)
"""By the start of a model's full name; the first match counts."""


def cache_lifetime(model: ModelRef) -> CacheLifetime | None:
    """How long `model`'s provider caches a prefix; None if not documented."""
    if model.base_url:
        return None
    fits = (lifetime for pattern, lifetime in _LIFETIMES if pattern.match(model.name))
    return next(fits, None)
