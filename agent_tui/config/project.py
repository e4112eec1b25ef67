"""What a trusted project's ``.agent-tui/config.toml`` may set, and what it may not."""

from collections.abc import Iterator, Sequence

from agent_tui.config.keys import SettingKey
from agent_tui.config.schema import Settings
from agent_tui.config.section import OnlyStricter
from agent_tui.messages import JsonObject

_PROJECT_SETTINGS = frozenset(
    {
        *("model", "thinking", "theme", "mouse", "bash_timeout_s"),
        *("request_idle_timeout_s", "loopback_idle_timeout_s"),
        *("compaction", "permissions", "models"),
    }
)
_PROJECT_PERMISSIONS = frozenset({"ask", "deny"})
_PROJECT_MODELS = frozenset({"window", "max_output"})
_NOT_A_PROJECTS = "only your own config.toml can set this, not a project's"
_ELSEWHERE = {"hooks": f"{_NOT_A_PROJECTS}; a project's hooks belong in .agent-tui/hooks.json"}
_ONLY_TIGHTER = "a project's config.toml can only make this stricter; loosen it in your own"
_NO_ADDRESS = "a project's config.toml can name a model, not a URL"


def refusals(values: JsonObject, own: Settings) -> Iterator[tuple[SettingKey, str]]:
    """The settings of a valid project file that it may not set, and why.

    It may choose how work is done and make permissions stricter. It may not decide where requests,
    keys and files go, nor allow what the user's own settings do not.
    """
    orders = _orders()
    for key, value in values.items():
        if key not in _PROJECT_SETTINGS and key not in orders:
            yield (key,), _ELSEWHERE.get(key, _NOT_A_PROJECTS)
        elif key == "permissions" and isinstance(value, dict):
            refused = value.keys() - _PROJECT_PERMISSIONS
            yield from (((key, inner), _NOT_A_PROJECTS) for inner in sorted(refused))
        elif key == "models" and isinstance(value, dict):
            for name, model in value.items():
                refused = model.keys() - _PROJECT_MODELS if isinstance(model, dict) else ()
                yield from (((key, name, inner), _NOT_A_PROJECTS) for inner in sorted(refused))
    wanted = Settings.model_validate(values)
    looser: dict[SettingKey, bool] = {
        **{
            (name,): name in values and _is_later(getattr(wanted, name), getattr(own, name), order)
            for name, order in orders.items()
        },
        ("compaction", "idle_compaction"): wanted.compaction.idle_compaction
        > own.compaction.idle_compaction,
    }
    yield from ((key, _ONLY_TIGHTER) for key, is_looser in looser.items() if is_looser)
    if "://" in wanted.model:
        yield ("model",), _NO_ADDRESS
    if "://" in wanted.compaction.model:
        yield ("compaction", "model"), _NO_ADDRESS


def _orders() -> dict[str, Sequence[str]]:
    """The settings that a project can only make stricter, and their values, the strictest first."""
    return {
        name: mark.order
        for name, field in Settings.model_fields.items()
        for mark in field.metadata
        if isinstance(mark, OnlyStricter)
    }


def _is_later(one: str, other: str, order: Sequence[str]) -> bool:
    return order.index(one) > order.index(other)
