"""The command that shows and changes the settings, and what a change does at once."""

import os
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from agent_tui.config import LoadedSettings, Settings
from agent_tui.config.keys import SettingKey
from agent_tui.config.specs import setting_specs
from agent_tui.errors import AgentTuiError
from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.commands.registry import Choice, command
from agent_tui.ui.theme import DARK, theme_for_colours

Effect: TypeAlias = Callable[[CommandHost, Settings], Awaitable[None]]


@command(
    "[name]",
    choices=lambda _host: [
        Choice(spec.name, spec.description) for spec in setting_specs(Settings())
    ],
)
async def settings(host: CommandHost, argument: str) -> None:
    """See and change settings."""
    from agent_tui.ui.screens.settings import SettingsScreen

    editor = host.settings_editor
    if editor is None:
        host.say("There are no settings to change here.", "warning")
        return
    await host.ask(SettingsScreen(editor, host, wanted=argument))


def acts_at_once(key: SettingKey) -> bool:
    """Whether a change of `key` is in force without a new start."""
    return key in _EFFECTS or key[0] in _EFFECTS_OF_SECTIONS


def in_use(host: CommandHost, key: SettingKey) -> str:
    """What goes on with now, where that can be changed besides the settings; else empty."""
    match key:
        case ("model",):
            return host.runtime.conversation.model.name
        case ("thinking",):
            return host.runtime.conversation.thinking
        case ("permission_mode",):
            return host.runtime.conversation.approvals.mode
        case ("theme",):
            return host.theme_in_use
        case ("mouse",):
            return "true" if host.is_mouse_on else "false"
        case _:
            return ""


async def act_on(host: CommandHost, key: SettingKey, loaded: LoadedSettings) -> None:
    """Bring the running program in line with what is in force of `key` now.

    Raises:
        AgentTuiError: It cannot be done now; the setting is kept all the same.
    """
    effect = _EFFECTS.get(key) or _EFFECTS_OF_SECTIONS.get(key[0])
    if effect is not None:
        await effect(host, loaded.settings)


async def _theme(host: CommandHost, now: Settings) -> None:
    by_terminal = theme_for_colours(os.environ.get("COLORFGBG", ""))
    host.set_theme(now.theme or by_terminal or DARK)


async def _mouse(host: CommandHost, now: Settings) -> None:
    host.set_mouse(now.mouse)


async def _permission_mode(host: CommandHost, now: Settings) -> None:
    host.runtime.conversation.approvals.mode = now.permission_mode
    host.show_events(())


async def _thinking(host: CommandHost, now: Settings) -> None:
    host.show_events(host.runtime.set_thinking(now.thinking))


async def _model(host: CommandHost, now: Settings) -> None:
    if host.runtime.is_busy:
        raise AgentTuiError("A turn runs with another model.", "/model changes it afterwards.")
    if now.model:
        host.show_events(host.runtime.set_model(host.models.resolve(now.model)))
        host.show_events(await host.runtime.refresh_usage())


async def _rules(host: CommandHost, _now: Settings) -> None:
    host.show_events(await host.runtime.sessions.apply_trust())


async def _at_work(host: CommandHost, now: Settings) -> None:
    host.runtime.use_settings(now)
    host.show_events(())


_EFFECTS: Mapping[SettingKey, Effect] = MappingProxyType(
    {
        ("theme",): _theme,
        ("mouse",): _mouse,
        ("permission_mode",): _permission_mode,
        ("thinking",): _thinking,
        ("model",): _model,
        ("bash_timeout_s",): _at_work,
        ("permissions", "allow"): _rules,
        ("permissions", "ask"): _rules,
        ("permissions", "deny"): _rules,
    }
)
_EFFECTS_OF_SECTIONS: Mapping[str, Effect] = MappingProxyType({"compaction": _at_work})
