"""The immediate effects of changing a setting."""

import os
from typing import TYPE_CHECKING

from agent_tui.config import LoadedSettings
from agent_tui.config.keys import SettingKey
from agent_tui.errors import AgentTuiError
from agent_tui.ui.theme.themes import DARK, theme_for_colours

if TYPE_CHECKING:
    from agent_tui.ui.front import ScreenFront

_AT_ONCE: frozenset[SettingKey] = frozenset(
    {
        ("theme",),
        ("mouse",),
        ("vim_mode",),
        ("status_fields",),
        ("terminal_state",),
        ("permission_mode",),
        ("thinking",),
        ("model",),
        ("bash_timeout_s",),
        ("limit_wait_h",),
        ("permissions", "allow"),
        ("permissions", "ask"),
        ("permissions", "deny"),
    }
)
_SECTIONS_AT_ONCE = frozenset({"compaction", "keys"})


def acts_at_once(key: SettingKey) -> bool:
    """Whether a change of `key` is in force without a new start."""
    return key in _AT_ONCE or key[0] in _SECTIONS_AT_ONCE


def in_use(front: "ScreenFront", key: SettingKey) -> str:
    """The value in use now, if it can differ from the setting; else empty."""
    match key:
        case ("model",):
            return front.runtime.conversation.model.name
        case ("thinking",):
            return front.runtime.conversation.thinking
        case ("permission_mode",):
            return front.runtime.conversation.permissions.mode
        case ("theme",):
            return front.theme_in_use
        case ("mouse",):
            return "true" if front.is_mouse_on else "false"
        case _:
            return ""


async def act_on(front: "ScreenFront", key: SettingKey, loaded: LoadedSettings) -> None:
    """Bring the running program in line with what is in force of `key` now.

    Raises:
        AgentTuiError: It cannot be done now; the setting is kept all the same.
    """
    now, runtime = loaded.settings, front.runtime
    match key:
        case ("theme",):
            by_terminal = theme_for_colours(os.environ.get("COLORFGBG", ""))
            front.set_theme(now.theme or by_terminal or DARK)
        case ("mouse",):
            front.set_mouse(now.mouse)
        case ("status_fields",):
            front.use_status_fields(now.status_fields)
        case ("terminal_state",):
            front.use_terminal_state(now.terminal_state)
        case ("vim_mode",):
            front.use_vim(on=now.vim_mode)
        case ("keys", *_):
            front.use_keys(now.keys.key_map)
        case ("permission_mode",):
            runtime.conversation.permissions.mode = now.permission_mode
            front.show_events(())
        case ("thinking",):
            front.show_events(runtime.set_thinking(now.thinking))
        case ("model",):
            await _use_model(front, now.model)
        case ("permissions", "allow" | "ask" | "deny"):
            front.show_events(await runtime.sessions.apply_trust())
        case ("bash_timeout_s",) | ("limit_wait_h",) | ("compaction", *_):
            runtime.use_settings(now)
            front.show_events(())
        case _:  # it takes effect at the next start
            return


async def _use_model(front: "ScreenFront", name: str) -> None:
    if front.runtime.is_busy:
        raise AgentTuiError(
            "The running turn uses another model.", "Change it afterwards with /model."
        )
    if name:
        front.show_events(front.runtime.set_model(front.services.models.resolve(name)))
        front.show_events(await front.runtime.refresh_usage())
