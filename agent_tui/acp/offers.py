"""What an editor lets the person choose in a session: modes, model, thinking, commands."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias, get_args

from acp.schema import (
    AvailableCommand,
    AvailableCommandInput,
    AvailableCommandsUpdate,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
    UnstructuredCommandInput,
)

from agent_tui.commands.core.command import Command
from agent_tui.commands.permissions import MODES
from agent_tui.config import PermissionMode
from agent_tui.messages import ThinkingLevel

ConfigOptions: TypeAlias = list[SessionConfigOptionSelect | SessionConfigOptionBoolean]

MODEL, THINKING = "model", "thinking"


def modes_of(present: PermissionMode) -> SessionModeState:
    """The permission modes, and the one in force."""
    modes = [SessionMode(id=mode, name=mode, description=text) for mode, text in MODES]
    return SessionModeState(current_mode_id=present, available_modes=modes)


def options_of(model: str, models: Iterable[str], thinking: ThinkingLevel) -> ConfigOptions:
    """Model and thinking as they are, with what there is to choose."""
    names = [name for name in dict.fromkeys((model, *models)) if name]
    levels = get_args(ThinkingLevel)
    return [
        _select(MODEL, "Model", "model", model, names),
        _select(THINKING, "Thinking", "thought_level", thinking, levels),
    ]


def commands_of(commands: Iterable[Command]) -> AvailableCommandsUpdate:
    """The slash commands."""
    told = [
        AvailableCommand(
            name=each.name,
            description=each.description,
            input=AvailableCommandInput(UnstructuredCommandInput(hint=each.argument_hint))
            if each.argument_hint
            else None,
        )
        for each in commands
    ]
    return AvailableCommandsUpdate(
        session_update="available_commands_update", available_commands=told
    )


def _select(
    id: str, name: str, category: str, present: str, values: Sequence[str]
) -> SessionConfigOptionSelect:
    return SessionConfigOptionSelect.model_validate(
        {
            "id": id,
            "name": name,
            "category": category,
            "type": "select",
            "currentValue": present,
            "options": [SessionConfigSelectOption(value=each, name=each) for each in values],
        }
    )
