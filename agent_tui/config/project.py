"""What a trusted project's ``.agent-tui/config.toml`` may set, and what it may not."""

from collections.abc import Iterator, Sequence

from agent_tui.config.keys import SettingKey
from agent_tui.config.schema import PermissionMode, SandboxMode, Settings
from agent_tui.messages import JsonObject

_PROJECT_SETTINGS = frozenset(
    {
        *("model", "thinking", "theme", "mouse", "bash_timeout_s"),
        *("request_idle_timeout_s", "loopback_idle_timeout_s"),
        *("compaction", "permission_mode", "sandbox", "permissions", "models"),
    }
)
_PROJECT_PERMISSIONS = frozenset({"ask", "deny"})
_PROJECT_MODELS = frozenset({"window", "max_output"})
_NOT_A_PROJECTS = "only your own config.toml can set this, not a project's"
_ELSEWHERE = {"hooks": f"{_NOT_A_PROJECTS}; a project's hooks belong in .agent-tui/hooks.json"}
_ONLY_TIGHTER = "a project's config.toml can only make this stricter; loosen it in your own"
_NO_ADDRESS = "a project's config.toml can name a model, not a URL"
_LOOSER_MODES: tuple[PermissionMode, ...] = ("plan", "ask", "accept-edits", "full")
_LOOSER_SANDBOXES: tuple[SandboxMode, ...] = ("on", "auto", "off")


def refusals(values: JsonObject, own: Settings) -> Iterator[tuple[SettingKey, str]]:
    """The settings of a valid project file that it may not set, and why.

    It may choose how work is done and make permissions stricter. It may not decide where requests,
    keys and files go, nor allow what the user's own settings do not.
    """
    for key, value in values.items():
        if key not in _PROJECT_SETTINGS:
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
        ("permission_mode",): "permission_mode" in values
        and _is_later(wanted.permission_mode, own.permission_mode, _LOOSER_MODES),
        ("sandbox",): "sandbox" in values
        and _is_later(wanted.sandbox, own.sandbox, _LOOSER_SANDBOXES),
        ("compaction", "idle_compaction"): wanted.compaction.idle_compaction
        > own.compaction.idle_compaction,
    }
    yield from ((key, _ONLY_TIGHTER) for key, is_looser in looser.items() if is_looser)
    if "://" in wanted.model:
        yield ("model",), _NO_ADDRESS
    if "://" in wanted.compaction.model:
        yield ("compaction", "model"), _NO_ADDRESS


def _is_later(one: str, other: str, order: Sequence[str]) -> bool:
    return order.index(one) > order.index(other)
