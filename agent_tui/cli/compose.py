"""The composition root: from settings to a runtime. Nothing else builds services."""

import asyncio
import os
import secrets
from collections import ChainMap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent_tui import paths
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.services import RuntimeServices
from agent_tui.cli.arguments import Arguments
from agent_tui.cli.command_sandbox import command_sandbox
from agent_tui.cli.context_log import context_log
from agent_tui.cli.folder_trust import folder_trust, launch_folder
from agent_tui.cli.own_settings import settings_desk
from agent_tui.cli.session_root import session_root
from agent_tui.cli.tool_servers import tool_servers
from agent_tui.compaction.service import CompactionService
from agent_tui.compaction.strategies.registry import build_strategies
from agent_tui.config import LoadedSettings, PermissionMode, Settings
from agent_tui.config.desk import SettingsDesk
from agent_tui.errors import ConfigError, UsageError
from agent_tui.local_models.library import ModelLibrary
from agent_tui.permissions.engine import Approvals
from agent_tui.permissions.project_files import config_files
from agent_tui.permissions.trust import FolderTrust
from agent_tui.providers.base import ModelRef, Provider
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.demo import DEMO_MODEL, demo_reply, prepare_demo_folder
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.keys import key_values
from agent_tui.providers.local.provider import KEY_VARIABLE, LocalProvider
from agent_tui.providers.routed import RoutedProvider
from agent_tui.providers.scripted import ScriptedProvider
from agent_tui.providers.text_tools.provider import TextToolProvider
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import TokenCounter, TokenRatios
from agent_tui.tools.environment import model_environ, person_environ
from agent_tui.tools.mcp.hub import McpHub
from agent_tui.tools.mcp.toolbox import WiderToolbox
from agent_tui.tools.processes import ProcessKeeper
from agent_tui.tools.registry import default_toolbox
from agent_tui.tools.sandbox import Sandbox

NO_MODEL = ModelRef("")
"""Stands in until the person has chosen a model."""


@dataclass(frozen=True, slots=True)
class Program:
    """Everything a front end needs. `resume` is a session to open first; empty means ask."""

    runtime: AgentRuntime
    provider: TextToolProvider
    host: ProviderHost
    catalog: ModelCatalog
    library: ModelLibrary
    loaded: LoadedSettings
    resume: str | None
    keeps_model: bool
    notices: tuple[str, ...]
    sandbox: Sandbox
    servers: McpHub

    @property
    def has_model(self) -> bool:
        """Whether a model is chosen; without one the person is asked."""
        return self.runtime.conversation.model != NO_MODEL

    async def aclose(self) -> None:
        """End the processes of the provider and the MCP servers."""
        await asyncio.gather(self.servers.aclose(), self.provider.aclose())

    async def warm(self) -> None:
        """Get ready for the first request: the provider process, and a model on this machine.

        What such a model will be sent first is read in while the person types: 1,500 tokens
        take a small machine some seconds.
        """
        await self.provider.warm()
        if self.runtime.conversation.model.provider == "local":
            await self.provider.prefill(self.runtime.conversation.request())


def compose(
    arguments: Arguments, *, is_interactive: bool, trust: FolderTrust | None = None
) -> Program:
    """Build the program.

    Args:
        arguments: The command line.
        is_interactive: Whether there is a person who can answer questions.
        trust: What was decided about folders; None is what is kept and `arguments` say.

    Raises:
        UsageError: the folder or the session asked for does not exist.
    """
    launch_cwd = launch_folder(arguments)
    trust = trust or folder_trust(arguments)
    loaded = _load_settings(arguments, trust, None if arguments.is_demo else launch_cwd)
    settings = loaded.settings
    library = ModelLibrary(paths.models_dir())
    local_key = secrets.token_urlsafe(24)
    host = ProviderHost(
        log_path=paths.log_file(),
        idle_timeout_s=settings.request_idle_timeout_s,
        environ=ChainMap({KEY_VARIABLE: local_key}, os.environ),
    )
    local = LocalProvider(
        host, library, settings.local, paths.log_file(), local_key, environ=os.environ
    )
    catalog = ModelCatalog(settings, os.environ, library=library, served=local.served)
    store = SessionStore(session_root(settings), settings.durability)
    if arguments.is_demo:
        cwd, model, model_problem = _demo_folder(), DEMO_MODEL, ""
    else:
        cwd, (model, model_problem) = launch_cwd, _first_model(arguments, catalog)
    provider = TextToolProvider(
        RoutedProvider(host, local, ScriptedProvider(demo_reply)), catalog.info
    )
    sandbox, keeper = command_sandbox(settings, os.environ), ProcessKeeper()
    servers = tool_servers(
        Settings() if arguments.is_demo else settings,
        trust,
        keeper,
        environ=os.environ,
        own_keys=catalog.secret_env_names(),
        cwd=cwd,
    )
    own_tools = default_toolbox(keeper, sandbox=sandbox, is_trusted=trust.may_run_git)
    runtime = AgentRuntime(
        _services(
            arguments,
            settings,
            trust,
            provider,
            catalog,
            store,
            WiderToolbox(own_tools, servers),
            launch_cwd,
            is_interactive,
        ),
        model,
        cwd,
        settings.permission_mode,
    )
    return Program(
        runtime=runtime,
        provider=provider,
        host=host,
        catalog=catalog,
        library=library,
        loaded=loaded,
        resume=_session_to_open(arguments, store, launch_cwd),
        keeps_model=arguments.model is not None or arguments.is_local,
        notices=(model_problem,) if model_problem else (),
        sandbox=sandbox,
        servers=servers,
    )


def desk_of(
    arguments: Arguments, trust: FolderTrust, workspace: Callable[[], Path | None]
) -> SettingsDesk:
    """Where the settings in force in `workspace` are read; None is one without its own."""
    flags = {
        "model": arguments.model,
        "base_url": arguments.base_url,
        "api_key_env": arguments.api_key_env,
        "thinking": arguments.thinking,
        "permission_mode": arguments.permission_mode,
        "session_dir": arguments.session_dir,
    }

    def obeyed() -> tuple[Path, ...]:
        folder = workspace()
        return tuple(filter(trust.may_obey, config_files(folder))) if folder else ()

    return settings_desk(os.environ, obeyed, flags)


def _load_settings(
    arguments: Arguments, trust: FolderTrust, workspace: Path | None
) -> LoadedSettings:
    """The settings in force in `workspace`; None is one without settings of its own."""
    return desk_of(arguments, trust, lambda: workspace).load()


def _services(
    arguments: Arguments,
    settings: Settings,
    trust: FolderTrust,
    provider: Provider,
    catalog: ModelCatalog,
    store: SessionStore,
    toolbox: WiderToolbox,
    launch_cwd: Path,
    is_interactive: bool,
) -> RuntimeServices:
    counter = TokenCounter()
    own_keys = catalog.secret_env_names()
    passed = settings.permissions.pass_environment

    def make_approvals(workspace: Path, mode: PermissionMode) -> Approvals:
        return Approvals(
            mode=mode,
            rules=_load_settings(arguments, trust, workspace).settings.permissions,
            workspace=workspace,
            project_rules_file=paths.project_dir(workspace) / "permissions.toml",
            own_folders=(paths.user_config_dir(), paths.user_data_dir(), store.root),
            is_interactive=is_interactive,
            git_doubt=trust.git_doubt,
        )

    return RuntimeServices(
        provider=provider,
        store=store,
        toolbox=toolbox,
        counter=counter,
        ratios=TokenRatios(),
        compaction=CompactionService(provider, counter, catalog, settings.compaction),
        strategies=build_strategies(
            provider,
            counter,
            catalog,
            settings.compaction,
            on_decisions=context_log(os.environ, paths.log_file()),
        ),
        settings=settings,
        make_approvals=make_approvals,
        model_info=catalog.info,
        learn_model=catalog.learn,
        resolve_model=catalog.resolve,
        user_config_dir=paths.user_config_dir(),
        trust=trust,
        output_dir=paths.user_cache_dir() / "outputs",
        environ=model_environ(os.environ, own_keys=own_keys, passed=passed),
        person_environ=person_environ(os.environ, own_keys=own_keys, passed=passed),
        secrets=key_values(os.environ, own_keys),
        keeps_sessions=arguments.keeps_session,
        launch_cwd=launch_cwd,
        take_up_tools=toolbox.hub.take_up,
    )


def _first_model(arguments: Arguments, catalog: ModelCatalog) -> tuple[ModelRef, str]:
    """The model to begin with, and what is wrong with the one in the settings.

    Raises:
        UsageError: the model named on the command line does not exist.
    """
    try:
        chosen = catalog.default_local() if arguments.is_local else catalog.default_model()
        return chosen or NO_MODEL, ""
    except ConfigError as error:
        if arguments.model is not None:
            raise UsageError(error.message, error.hint) from error
        return NO_MODEL, str(error)


def _session_to_open(arguments: Arguments, store: SessionStore, cwd: Path) -> str | None:
    if not arguments.continues:
        return arguments.resume
    newest = store.newest(cwd)
    if newest is None:
        raise UsageError(
            f"There is no session to continue in {cwd}.",
            "Start one with agent-tui, or choose from all with agent-tui -r.",
        )
    return str(newest.path)


def _demo_folder() -> Path:
    folder = paths.user_cache_dir() / "demo"
    try:
        prepare_demo_folder(paths.make_private_dir(folder))
    except OSError as error:
        raise UsageError(
            f"{folder}: the tour's scratch folder could not be made: {error.strerror}.",
            "Name another place with AGENT_TUI_CACHE_DIR.",
        ) from error
    return folder.resolve()
