"""The services a runtime is built from, made once by the composition root."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from agent_tui.config import PermissionMode, Settings
from agent_tui.errors import IN_CHAT, Ways
from agent_tui.feature import Feature
from agent_tui.permissions.trust import FolderTrust
from agent_tui.permissions.verdict import Permissions
from agent_tui.providers.base import ModelInfo, ModelRef, Provider
from agent_tui.providers.client import ModelClient
from agent_tui.providers.limits import Sleep
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import TokenCounter, TokenRatios
from agent_tui.tools.base import Toolbox
from agent_tui.tools.command_sandbox import NO_SANDBOX, CommandSandbox
from agent_tui.tools.files.memory import NoOpenTexts, OpenTexts
from agent_tui.tools.git.trees import WorkTrees
from agent_tui.tools.remote_tools import RemoteTools


@dataclass(slots=True)
class RuntimeServices:
    """What conversations share; made once, except `settings`, which change while the program runs.

    Args:
        provider: Where the turns' replies come from.
        client: Makes single requests, for summaries and the like.
        make_permissions: Builds the permission engine for a workspace and a mode.
        model_info: Looks up settings, servers seen so far and the built-in table.
        learn_model: The same after asking the model's own server, if it has one.
        resolve_model: Finds a model by the name that a user or a session file gives.
        user_config_dir: Where the user's own AGENTS.md is.
        trust: Says in which folders files may be read as instructions.
        output_dir: Where whole tool outputs are kept.
        environ: Environment of the model's commands, without secrets.
        person_environ: That of the user's own commands, without the providers' keys.
        secrets: The providers' keys, which are masked in every message.
        ways: Those of whoever reads the notices and errors.
        keeps_sessions: False for ``--no-session``.
        origin: What makes the sessions: ``print``, ``tour``, or empty for the user.
        keeps_mode: Whether sessions open in the present permission mode, not in the one they were
            left in.
        added_folders: Folders besides the workspace that belong to the work.
        launch_cwd: Where the program was started, if it works elsewhere.
        folders_elsewhere: The top folders of the other worktrees of a workspace's repository:
            sessions in them are of the same project. Blocking.
        remote_tools: The tools of servers in `toolbox`.
        features: The features whose parts conversations have.
        command_names: The names of the program's own slash commands, which no skill has. Blocking.
        brought: What plugins bring, by the group of its kind, such as ``agent_tui.hooks``.
        sleep: Waits before a request is tried again.
        clock: Monotonic seconds, which say how long turns and calls take.
        is_first_time: Whether the notice of this name was never shown; remembers that it was.
        wall_clock: Seconds since 1970, for the age of a provider's cache.
        fallback_model: Used if another does not answer after retries; None for none.
        most_replies: A turn of the conversation ends after so many; 0 for any number.
        trees: Inspects work trees for what commands change; None if only edits are kept.
        sandbox: Where the model's commands run.
        report_fault: Logs a fault of the program from which it recovers.
        open_texts: The texts open in the user's editor, if it holds the conversation; set by the
            session that it begins.
    """

    provider: Provider
    client: ModelClient
    store: SessionStore
    toolbox: Toolbox
    counter: TokenCounter
    ratios: TokenRatios
    settings: Settings
    make_permissions: Callable[[Path, PermissionMode], Permissions]
    model_info: Callable[[ModelRef], ModelInfo]
    learn_model: Callable[[ModelRef], Awaitable[ModelInfo]]
    resolve_model: Callable[[str], ModelRef]
    user_config_dir: Path
    trust: FolderTrust
    output_dir: Path
    environ: dict[str, str]
    person_environ: dict[str, str]
    secrets: tuple[str, ...] = ()
    ways: Ways = IN_CHAT
    keeps_sessions: bool = True
    origin: str = ""
    keeps_mode: bool = False
    added_folders: tuple[Path, ...] = ()
    launch_cwd: Path | None = None
    folders_elsewhere: Callable[[Path], Sequence[Path]] = lambda _cwd: ()
    remote_tools: RemoteTools = field(default_factory=RemoteTools)
    features: Sequence[Feature] = ()
    command_names: Callable[[], Set[str]] = frozenset[str]
    brought: Callable[[str], Sequence[object]] = lambda _group: ()
    sleep: Sleep = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    is_first_time: Callable[[str], bool] = lambda _name: False
    most_replies: int = 0
    fallback_model: ModelRef | None = None
    trees: WorkTrees | None = None
    sandbox: CommandSandbox = NO_SANDBOX
    report_fault: Callable[[BaseException], None] = lambda _fault: None
    open_texts: OpenTexts = field(default_factory=NoOpenTexts)
