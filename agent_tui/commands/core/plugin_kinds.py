"""The table of what other packages can bring; a new kind is one row."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agent_tui.commands.core.command import Command
from agent_tui.commands.core.plugins import AnyKind, Kind, Plugins
from agent_tui.config import STRATEGY_NAMES
from agent_tui.config.specs import SettingSpec
from agent_tui.feature import Feature, Subcommand, own_features
from agent_tui.sessions.importers.builder import ImportFormat
from agent_tui.sessions.importers.formats import FORMATS
from agent_tui.sessions.importers.guard import guarded_import

if TYPE_CHECKING:
    from agent_tui.agent.hook import Hook
    from agent_tui.api.tools import FunctionTool
    from agent_tui.compaction.strategies.registry import CompactionStrategy
    from agent_tui.providers.registry import ModelProvider
    from agent_tui.sessions.export.formats import ExportFormat


def _tool_type() -> "type[FunctionTool[..., object]]":
    from agent_tui.api.tools import FunctionTool  # most of the program, which shell commands spare

    return FunctionTool


def _tool_names() -> Iterable[str]:
    from agent_tui.tools.registry import default_toolbox

    return (spec.name for spec in default_toolbox().specs)


def _command_names() -> Iterable[str]:
    from agent_tui.commands.core.own_commands import own_commands

    return (name for entry in own_commands() for name in (entry.name, *entry.aliases))


def _export_type() -> "type[ExportFormat]":
    from agent_tui.sessions.export.formats import ExportFormat

    return ExportFormat


def _own_exports() -> "Sequence[ExportFormat]":
    from agent_tui.sessions.export.formats import own_formats

    return own_formats()


def _guard_export(known: "ExportFormat") -> "ExportFormat":
    from agent_tui.sessions.export.formats import guard_export

    return guard_export(known)


def _strategy_type() -> "type[CompactionStrategy]":
    from agent_tui.compaction.strategies.registry import CompactionStrategy

    return CompactionStrategy


def _hook_type() -> "type[Hook]":
    from agent_tui.agent.hook import Hook

    return Hook


def _provider_type() -> "type[ModelProvider]":
    from agent_tui.providers.registry import ModelProvider

    return ModelProvider


def _provider_names() -> Iterable[str]:
    from agent_tui.providers.accounts import own_accounts
    from agent_tui.providers.base import LOCAL
    from agent_tui.providers.keys import KEY_VARIABLES
    from agent_tui.providers.registry import providers_with
    from agent_tui.providers.table import FAMILIES, read_bundled_table

    listed = (name.partition("/")[0] for name in read_bundled_table().names)
    return {LOCAL, *providers_with(), *KEY_VARIABLES, *FAMILIES, *own_accounts(), *listed}


TOOLS: Final = Kind("agent_tui.tools", "tool", _tool_type, reserved=_tool_names)
COMMANDS: Final = Kind(
    "agent_tui.commands",
    "command",
    lambda: Command,
    reserved=_command_names,
    names=lambda command: (command.name, *command.aliases),
)
IMPORTERS: Final = Kind(
    "agent_tui.importers",
    "ImportFormat",
    lambda: ImportFormat,
    lambda: FORMATS,
    guarded=guarded_import,
)

EXPORTS: Final = Kind(
    "agent_tui.exports", "ExportFormat", _export_type, _own_exports, guarded=_guard_export
)

STRATEGIES: Final = Kind(
    "agent_tui.strategies",
    "CompactionStrategy",
    _strategy_type,
    reserved=lambda: STRATEGY_NAMES,
    setting=("compaction", "strategy"),
)

HOOKS: Final = Kind("agent_tui.hooks", "hook", _hook_type)

PROVIDERS: Final = Kind(
    "agent_tui.providers", "ModelProvider", _provider_type, reserved=_provider_names
)

SUBCOMMANDS: Final = Kind("agent_tui.subcommands", "Subcommand", lambda: Subcommand)

FEATURES: Final = Kind("agent_tui.features", "Feature", lambda: Feature, own_features)

KINDS: Final[tuple[AnyKind, ...]] = (
    TOOLS,
    COMMANDS,
    IMPORTERS,
    EXPORTS,
    STRATEGIES,
    HOOKS,
    PROVIDERS,
    SUBCOMMANDS,
    FEATURES,
)


def spec_with_plugins(spec: SettingSpec, plugins: Plugins) -> SettingSpec:
    """`spec` with the names that `plugins` bring among its choices."""
    brought = (one.name for kind in kinds_named_by(spec) for one in plugins.of(kind))
    return replace(spec, choices=tuple(dict.fromkeys((*spec.choices, *brought))))


def kinds_named_by(spec: SettingSpec) -> tuple[AnyKind, ...]:
    """The kinds whose names the setting `spec` takes."""
    return tuple(kind for kind in KINDS if kind.setting == spec.key)
