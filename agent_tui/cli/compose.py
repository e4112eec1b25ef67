"""The composition root: turns the command line into a program. Nothing else builds services."""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agent_tui import paths
from agent_tui.agent.new_services import conversation_services
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.services import RuntimeServices
from agent_tui.atomic_files import remove_leftovers
from agent_tui.cli.arguments import Arguments
from agent_tui.cli.command_sandbox import ProgramSandbox, command_sandbox
from agent_tui.cli.engine_maker import EngineMaker
from agent_tui.cli.folders import (
    folder_trust,
    folders_to_add,
    instructions_not_obeyed,
    launch_folder,
    worktree_records,
)
from agent_tui.cli.key_store import use_stored_keys
from agent_tui.cli.own_files import separate_own_files
from agent_tui.cli.plugins import load_plugins
from agent_tui.cli.settings import (
    config_files_in_effect,
    context_debug_log,
    session_root,
    usable_settings,
)
from agent_tui.cli.settings_editor import settings_editor
from agent_tui.cli.tool_servers import ServersHost, make_tool_servers
from agent_tui.cli.unread_rules import NO_RULES, find_unread, refuse_unread
from agent_tui.commands.core.demo import Demo, own_demo
from agent_tui.commands.core.front import CommandServices
from agent_tui.commands.core.known_models import KnownModels
from agent_tui.commands.core.plugin_kinds import (
    FEATURES,
    IMPORTERS,
    PROVIDERS,
    STRATEGIES,
    TOOLS,
)
from agent_tui.commands.core.plugins import Plugins
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.config import Settings
from agent_tui.config.loading import LoadedSettings
from agent_tui.config.user_file import SettingsEditor
from agent_tui.errors import IN_CHAT, IN_SHELL, ConfigError, ToolError, UsageError
from agent_tui.installation import foreign_program
from agent_tui.permissions.trust import FolderTrust
from agent_tui.providers.access import (
    NO_MODEL,
    ModelAccess,
    first_model,
    open_models,
    own_account_switch,
)
from agent_tui.providers.base import LOCAL, ModelRef
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.log_file import fault_reporter
from agent_tui.providers.spend_limits import Budget, why_unpriced
from agent_tui.safe_paths import real_path
from agent_tui.sessions.file.writer import session_status
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.git.trees import WorkTrees
from agent_tui.tools.git.worktree_records import project_folders_elsewhere
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.registry import default_toolbox
from agent_tui.tools.server_spec import ServerSpec
from agent_tui.tools.tool_servers import ToolServers


@dataclass(frozen=True, slots=True)
class Program:
    """Everything a front end needs.

    Attributes:
        runtime: The conversation.
        models: Access to every model.
        servers: The servers whose tools the model may call.
        plugins: What other packages bring.
        sandbox: The sandbox for the model's commands.
        keeper: Starts processes.
        loaded: The settings, and which of them could not be used.
        resume: A session to open first; empty means ask, None means start a new one.
        keeps_model: The command line chose the model, which overrides a resumed session's.
        notices: What to tell the user at the start.
        is_demo: Whether this is a demo, which calls no model.
    """

    runtime: AgentRuntime
    models: ModelAccess
    servers: ToolServers
    plugins: Plugins
    sandbox: ProgramSandbox
    keeper: ProcessKeeper
    loaded: LoadedSettings
    resume: str | None
    keeps_model: bool
    notices: tuple[str, ...]
    is_demo: bool

    @property
    def has_model(self) -> bool:
        """Whether a model is chosen; if not, the user is asked to choose."""
        return self.runtime.conversation.model != NO_MODEL

    @property
    def start_notices(self) -> tuple[str, ...]:
        """`notices`, and which settings, rules and trust decisions could not be used."""
        lines = (
            *(problem.notice for problem in self.loaded.problems),
            *(
                f"Permission rule ignored: {rule}"
                for rule in self.runtime.conversation.permissions.book.problems
            ),
            *self.notices,
            self.runtime.services.trust.problem,
            " ".join(foreign_program()).strip(),
        )
        return tuple(filter(None, lines))

    async def aclose(self) -> None:
        """End the processes of the provider and the MCP servers."""
        await asyncio.gather(self.servers.aclose(), self.models.provider.aclose())

    async def recover(self) -> None:
        """Set aside what commands left in the folder that ran when a program was killed.

        Until then, programs outside follow it. Costs one look at a folder if none was.
        """
        with suppress(ToolError):  # the first command reports it
            await self.sandbox.recover(self.runtime.conversation.cwd)

    async def warm(self) -> None:
        """Prepare the first request: load the HTTP client or litellm, or a model on this machine.

        A local model reads the start of its prompt while the user types: 1,500 tokens take a small
        machine some seconds.
        """
        if self.is_demo:
            return
        await self.recover()
        await self.models.provider.warm(self.runtime.conversation.model)
        if self.runtime.conversation.model.provider == LOCAL:
            await self.models.provider.prefill(self.runtime.conversation.request())


def compose(
    arguments: Arguments,
    *,
    is_interactive: bool,
    trust: FolderTrust | None = None,
    of_editor: Sequence[ServerSpec] = (),
    may_lack_rules: bool = False,
) -> Program:
    """Build the program: settings, models, tools, permissions and the conversation.

    Args:
        arguments: The command line.
        is_interactive: Whether a user can answer questions.
        trust: The decisions about folders; None for the stored ones and those in `arguments`.
        of_editor: MCP servers that an editor names for the conversation.
        may_lack_rules: Whether the user wants to continue, in mode ask, without deny rules that
            cannot be read.

    Raises:
        AgentTuiError: The folder or the session asked for does not exist, or deny rules cannot be
            read.
    """
    remove_leftovers()
    launch_cwd = launch_folder(arguments)
    trust = trust or folder_trust(arguments)
    unread = find_unread(arguments, trust)
    refuse_unread(() if may_lack_rules else unread)

    def settings_in(workspace: Path | None) -> LoadedSettings:
        return editor_of(arguments, trust, lambda: workspace).load()

    loaded = settings_in(None if arguments.is_demo else launch_cwd)
    settings = usable_settings(loaded)
    own_settings = Settings() if arguments.is_demo else settings
    root = session_root(settings)
    unkept = _why_no_session_is_kept(arguments, settings, root)

    own_folders = (paths.user_config_dir(), paths.user_data_dir(), root)
    added = folders_to_add(arguments, trust, own_folders)
    plugins = load_plugins(() if arguments.is_demo else settings.plugins, (launch_cwd, *added))

    unread_keys = () if arguments.is_demo else use_stored_keys().problems
    budget = Budget(arguments.max_cost_usd)
    ways = IN_CHAT if is_interactive else IN_SHELL
    accounts = None if arguments.is_demo else own_account_switch(settings, os.environ)
    models = open_models(settings, os.environ, budget, ways, plugins.of(PROVIDERS), accounts)
    if arguments.is_demo and (demo := own_demo()) is not None:
        cwd, model, model_problem = _demo_folder(demo), demo.model, ""
    else:
        cwd = launch_cwd
        model, model_problem = first_model(
            models.catalog, is_named=arguments.model is not None, is_local=arguments.is_local
        )
    if model != NO_MODEL and (why := why_unpriced(budget, model, models.catalog.info(model))):
        raise UsageError(why, "Choose another model, or start without --max-cost.")

    store = SessionStore(root, settings.durability, plugins.of(IMPORTERS))
    sandbox = command_sandbox(
        settings, os.environ, added, keeper=(keeper := ProcessKeeper(settings.max_processes))
    )
    servers = make_tool_servers(
        ServersHost(
            settings=own_settings,
            trust=trust,
            keeper=keeper,
            environ=os.environ,
            own_keys=models.catalog.secret_env_names(),
            cwd=cwd,
            of_editor=of_editor,
        )
    )

    engines = EngineMaker(
        arguments,
        trust,
        lambda workspace: settings_in(workspace).settings.permissions,
        sandbox,
        own_folders=own_folders,
        added=added,
        is_interactive=is_interactive,
    )

    shared = conversation_services(
        models,
        store=store,
        toolbox=servers.combine(
            default_toolbox(
                keeper,
                sandbox=sandbox,
                is_trusted=trust.may_run_git,
                settings=settings,
                more=tuple(one.offer(access="outside") for one in plugins.of(TOOLS)),
            ),
        ),
        make_permissions=engines.make,
        trust=trust,
        user_config_dir=paths.user_config_dir(),
        output_dir=paths.cache_folder("outputs"),
    )
    services = replace(
        shared,
        settings=settings.model_copy(update={"hooks": own_settings.hooks}),
        features=plugins.of(FEATURES),
        command_names=partial(_command_names, plugins),
        brought=plugins.in_group,
        keeps_sessions=arguments.keeps_session and not unkept,
        origin=arguments.origin,
        keeps_mode=bool(arguments.origin) or loaded.origin(("permission_mode",)).layer != "default",
        added_folders=added,
        launch_cwd=launch_cwd,
        folders_elsewhere=partial(project_folders_elsewhere, worktree_records()),
        remote_tools=servers,
        most_replies=arguments.max_turns,
        fallback_model=_fallback_model(arguments, models.catalog),
        trees=WorkTrees(keeper),
        sandbox=sandbox,
        report_fault=fault_reporter(paths.log_file(), shared.secrets),
        is_first_time=paths.is_first_time,
    )
    runtime = AgentRuntime(
        services,
        _compaction_planner(services, models, plugins),
        model,
        cwd,
        settings.permission_mode,
        sandbox.network,
    )
    return Program(
        runtime=runtime,
        models=models,
        servers=servers,
        plugins=plugins,
        sandbox=sandbox,
        keeper=keeper,
        loaded=loaded,
        resume=session_to_open(arguments, store, launch_cwd),
        keeps_model=arguments.model is not None or arguments.is_local,
        notices=tuple(
            filter(
                None,
                (
                    *arguments.notices,
                    separate_own_files(),
                    NO_RULES if unread else "",
                    model_problem,
                    unkept,
                    sandbox.notice(cwd),
                    *unread_keys,
                    *plugins.problems,
                    runtime.planner.problem_of(settings.compaction.strategy)
                    if not arguments.is_demo
                    else "",
                    *instructions_not_obeyed(added, trust),
                ),
            )
        ),
        is_demo=arguments.is_demo,
    )


def _compaction_planner(
    services: RuntimeServices, models: ModelAccess, plugins: Plugins
) -> CompactionPlanner:
    return CompactionPlanner(
        services.client,
        services.counter,
        models.catalog,
        on_decisions=context_debug_log(os.environ, paths.log_file()),
        brought=plugins.of(STRATEGIES),
    )


def command_services(arguments: Arguments, program: Program) -> CommandServices:
    """What slash commands work on besides the conversation."""
    runtime = program.runtime
    return CommandServices(
        program.models.catalog,
        KnownModels(paths.user_data_dir() / "chosen_models.json"),
        program.servers,
        editor_of(
            arguments,
            runtime.services.trust,
            lambda: None if arguments.is_demo else runtime.conversation.cwd,
        ),
        program.plugins,
    )


def editor_of(
    arguments: Arguments, trust: FolderTrust, workspace: Callable[[], Path | None]
) -> SettingsEditor:
    """An editor for the settings in force in `workspace`; None means no project settings."""
    flags = {
        "model": arguments.model,
        "base_url": arguments.base_url,
        "api_key_env": arguments.api_key_env,
        "thinking": arguments.thinking,
        "permission_mode": arguments.permission_mode,
        "session_dir": arguments.session_dir,
        **arguments.setting_values,
    }
    return settings_editor(lambda: config_files_in_effect(workspace(), trust), flags)


def _command_names(plugins: Plugins) -> frozenset[str]:
    from agent_tui.commands.core.registry import load_commands  # imports most of the program

    return load_commands(plugins).own_names


def _fallback_model(arguments: Arguments, catalog: ModelCatalog) -> ModelRef | None:
    """The model of ``--fallback-model``; None without that option.

    Raises:
        UsageError: There is no model of that name.
    """
    if arguments.fallback_model is None:
        return None
    try:
        return catalog.resolve(arguments.fallback_model)
    except ConfigError as error:
        raise UsageError(error.message, error.advice) from error


def _why_no_session_is_kept(arguments: Arguments, settings: Settings, sessions: Path) -> str:
    """The notice if the default folder of sessions cannot be written; else empty.

    If the user named the folder, failing to write there is an error.
    """
    if settings.session_dir or not arguments.keeps_session:
        return ""
    why = paths.why_not_writable(sessions)
    if not why:
        return ""
    return (
        f"Sessions are not saved: cannot write to {sessions} ({why}). "
        "Set AGENT_TUI_HOME to a folder that you can write to."
    )


def session_to_open(arguments: Arguments, store: SessionStore, cwd: Path) -> str | None:
    """The session of ``-c`` or ``-r``, in the form of `Program.resume`.

    Interactive runs continue the session the user left last, or list the sessions of ``-p`` and of
    demos if there are no others; scripts continue the one written last.

    Raises:
        UsageError: There is none to continue.
    """
    if not arguments.continues:
        return (
            _session_named(arguments.resume, store, cwd) if arguments.resume else arguments.resume
        )
    newest = store.newest(cwd)
    if newest is None:
        raise UsageError(
            f"No session to continue in {cwd}.",
            "Start one with agent-tui, or choose one with agent-tui -r.",
        )
    left = newest.path if arguments.origin else store.find_left_last(cwd)
    return "" if left is None else str(left)


def _session_named(ref: str, store: SessionStore, cwd: Path) -> str:
    """The file of the session that `ref` names.

    Raises:
        SessionError: There is none, or nothing in it can be read.
    """
    path = store.find(ref, cwd)
    if session_status(path).cwd is None:  # no header: only reading all of it tells
        SessionLog.open(path, read_only=True)
    return str(path)


def _demo_folder(demo: Demo) -> Path:
    folder = paths.user_cache_dir() / "demo"
    try:
        demo.prepare(paths.make_private_dir(folder))
    except OSError as error:
        raise UsageError(
            f"Cannot create the scratch folder {folder}: {error.strerror}.",
            "Set AGENT_TUI_CACHE_DIR to another folder.",
        ) from error
    return real_path(folder)
