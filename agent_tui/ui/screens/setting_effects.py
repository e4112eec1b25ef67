"""What a change of a setting does at once."""

import os
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Protocol, TypeAlias, TypeVar

from textual.screen import Screen

from agent_tui.commands.core.front import Front, ScreenControls
from agent_tui.config import LoadedSettings, Settings
from agent_tui.config.keys import SettingKey
from agent_tui.errors import AgentTuiError
from agent_tui.key_actions import KeyMap
from agent_tui.ui.theme.themes import DARK, theme_for_colours

ResultT = TypeVar("ResultT")


class SettingsFront(Front, ScreenControls, Protocol):
    """The screen, as the settings see it."""

    async def show_screen(self, screen: Screen[ResultT]) -> ResultT | None:
        """Show a screen above this one and wait for its result; None if it was left without."""
        ...

    def use_status_fields(self, fields: tuple[str, ...]) -> None:
        """Show other parts in the status line, or in another order."""
        ...

    def use_vim(self, *, on: bool) -> None:
        """Have the keys of vi in the prompt, or no longer."""
        ...

    def use_keys(self, keys: KeyMap) -> None:
        """From now on `keys` do what is done in the chat and in the prompt."""
        ...


Effect: TypeAlias = Callable[[SettingsFront, Settings], Awaitable[None]]


def acts_at_once(key: SettingKey) -> bool:
    """Whether a change of `key` is in force without a new start."""
    return key in _EFFECTS or key[0] in _EFFECTS_OF_SECTIONS


def in_use(front: SettingsFront, key: SettingKey) -> str:
    """What goes on with now, where that can be changed besides the settings; else empty."""
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


async def act_on(front: SettingsFront, key: SettingKey, loaded: LoadedSettings) -> None:
    """Bring the running program in line with what is in force of `key` now.

    Raises:
        AgentTuiError: It cannot be done now; the setting is kept all the same.
    """
    effect = _EFFECTS.get(key) or _EFFECTS_OF_SECTIONS.get(key[0])
    if effect is not None:
        await effect(front, loaded.settings)


async def _theme(front: SettingsFront, now: Settings) -> None:
    by_terminal = theme_for_colours(os.environ.get("COLORFGBG", ""))
    front.set_theme(now.theme or by_terminal or DARK)


async def _mouse(front: SettingsFront, now: Settings) -> None:
    front.set_mouse(now.mouse)


async def _status_fields(front: SettingsFront, now: Settings) -> None:
    front.use_status_fields(now.status_fields)


async def _vim_mode(front: SettingsFront, now: Settings) -> None:
    front.use_vim(on=now.vim_mode)


async def _keys(front: SettingsFront, now: Settings) -> None:
    front.use_keys(now.keys.key_map)


async def _permission_mode(front: SettingsFront, now: Settings) -> None:
    front.runtime.conversation.permissions.mode = now.permission_mode
    front.show_events(())


async def _thinking(front: SettingsFront, now: Settings) -> None:
    front.show_events(front.runtime.set_thinking(now.thinking))


async def _model(front: SettingsFront, now: Settings) -> None:
    if front.runtime.is_busy:
        raise AgentTuiError(
            "The running turn uses another model.", "Change it afterwards with /model."
        )
    if now.model:
        front.show_events(front.runtime.set_model(front.services.models.resolve(now.model)))
        front.show_events(await front.runtime.refresh_usage())


async def _rules(front: SettingsFront, _now: Settings) -> None:
    front.show_events(await front.runtime.sessions.apply_trust())


async def _at_work(front: SettingsFront, now: Settings) -> None:
    front.runtime.use_settings(now)
    front.show_events(())


_EFFECTS: Mapping[SettingKey, Effect] = MappingProxyType(
    {
        ("theme",): _theme,
        ("mouse",): _mouse,
        ("vim_mode",): _vim_mode,
        ("status_fields",): _status_fields,
        ("permission_mode",): _permission_mode,
        ("thinking",): _thinking,
        ("model",): _model,
        ("bash_timeout_s",): _at_work,
        ("permissions", "allow"): _rules,
        ("permissions", "ask"): _rules,
        ("permissions", "deny"): _rules,
    }
)
_EFFECTS_OF_SECTIONS: Mapping[str, Effect] = MappingProxyType(
    {"compaction": _at_work, "keys": _keys}
)
