"""A whole runtime over the scripted provider, real tools and real session files."""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, TypeVar

from agent_tui.agent.conversation import Conversation
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.turn.pending_approvals import PendingApprovals
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.config import (
    CompactionSettings,
    HookEvent,
    HookSettings,
    PermissionMode,
    PermissionSettings,
    Settings,
)
from agent_tui.events import AgentEvent
from agent_tui.feature import Feature, own_features
from agent_tui.features.sandbox.network_questions import NetworkQuestions
from agent_tui.features.sandbox.proxy import NetworkGate
from agent_tui.features.tour.scripted import Reply, Script, ScriptedProvider
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.trust import FolderTrust, TrustFile
from agent_tui.providers.access import AdaptingProvider
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.providers.client import ModelClient
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.limits import Sleep
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.importers.builder import ImportFormat
from agent_tui.sessions.importers.formats import FORMATS
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import TokenCounter, TokenRatios
from agent_tui.tools.git.trees import WorkTrees
from agent_tui.tools.registry import default_toolbox
from agent_tui.tools.tool_servers import ToolServers

MODEL = ModelRef("scripted/test")
EventT = TypeVar("EventT")

GOOD_SUMMARY = """\
## Goal
Make the greeting polite.

## Constraints & Preferences
(none)

## Progress
### Done
- [x] Looked at greet.py

### In Progress
(none)

### Blocked
(none)

## Key Decisions
(none)

## Next Steps
1. Change the greeting.

## Critical Context
(none)
"""


class Models(Protocol):
    """What a runtime asks a catalogue of models."""

    def info(self, ref: ModelRef) -> ModelInfo: ...

    async def learn(self, ref: ModelRef) -> ModelInfo: ...

    def resolve(self, name: str) -> ModelRef: ...

    def cheap_model(self, ref: ModelRef) -> ModelRef | None: ...


class SmallModels:
    """Every model has the same window unless named; none has a cheaper sibling.

    `learned` is the window that servers say theirs have, where it is not the one known before.
    """

    def __init__(self, window: int, windows: Mapping[str, int], learned: int | None) -> None:
        self._window = window
        self._windows = windows
        self._learned = learned

    def info(self, ref: ModelRef) -> ModelInfo:
        return ModelInfo(
            ref.name, self._windows.get(ref.name, self._window), 1_000, source="setting"
        )

    async def learn(self, ref: ModelRef) -> ModelInfo:
        info = self.info(ref)
        return dataclasses.replace(info, window=self._learned or info.window)

    def resolve(self, name: str) -> ModelRef:
        return ModelRef(name)

    def cheap_model(self, ref: ModelRef) -> ModelRef | None:
        return None


class Stage:
    """Makes runtimes that share one folder of sessions and one workspace, which is trusted.

    Args:
        folder: Everything is in it, so nothing of this machine is used.
        workspace: The name of the workspace.
        is_trusted: Whether the files of the workspace are obeyed.

    Attributes:
        model: What plays the script of the newest runtime, with the requests that came.
    """

    def __init__(
        self, folder: Path, workspace: str = "workspace", *, is_trusted: bool = True
    ) -> None:
        self.workspace = folder / workspace
        self.workspace.mkdir(exist_ok=True)
        self.sessions = folder / "sessions"
        self.model = ScriptedProvider(())
        self.config = folder / "config"
        self.folder = folder
        self.trust = FolderTrust(TrustFile(folder / "trust.json"))
        if is_trusted:
            self.trust.trust_for_this_run(self.workspace)

    def runtime(
        self,
        script: Script | ScriptedProvider | ProviderHost | AdaptingProvider,
        *,
        model: ModelRef = MODEL,
        sleep: Sleep = asyncio.sleep,
        mode: PermissionMode = "full",
        window: int = 100_000,
        windows: Mapping[str, int] = MappingProxyType({}),
        learned_window: int | None = None,
        models: Models | None = None,
        counter: TokenCounter | None = None,
        compaction: CompactionSettings | None = None,
        permissions: PermissionSettings | None = None,
        background: bool = False,
        is_interactive: bool = True,
        secrets: tuple[str, ...] = (),
        servers: ToolServers | None = None,
        trees: WorkTrees | None = None,
        writing_helpers: bool = False,
        hooks: Mapping[HookEvent, Sequence[HookSettings]] | None = None,
        most_replies: int = 0,
        fallback_model: ModelRef | None = None,
        limit_wait_h: float = 0.0,
        clock: Callable[[], float] = lambda: 0.0,
        network: NetworkGate | None = None,
        formats: Sequence[ImportFormat] = FORMATS,
        features: Sequence[Feature] | None = None,
        report_fault: Callable[[BaseException], None] = lambda _fault: None,
        planner: CompactionPlanner | None = None,
    ) -> AgentRuntime:
        """A runtime over a script, or over a provider that is used as it is.

        Summaries ahead of time have to be asked for: they would take replies from a script. So have
        waits for limits. By itself the clock stands still, so that no turn takes any time.
        """
        provider = script
        if not isinstance(provider, ScriptedProvider | ProviderHost | AdaptingProvider):
            provider = self.model = ScriptedProvider(provider)
        chosen = (compaction or CompactionSettings()).model_copy(update={"background": background})
        settings = Settings(compaction=chosen, permissions=permissions or PermissionSettings())
        settings = settings.model_copy(
            update={
                "limit_wait_h": limit_wait_h,
                "writing_helpers": writing_helpers,
                "hooks": dict(hooks or {}),
            }
        )
        models = models or SmallModels(window, windows, learned_window)
        counter = counter or TokenCounter()
        client = ModelClient(provider, sleep)
        environ = {"PATH": f"{self.folder}/bin:/usr/bin:/bin", "HOME": str(self.folder)}
        if network is not None:
            environ |= network.environ()
        servers = servers or ToolServers()
        services = RuntimeServices(
            provider=provider,
            client=client,
            store=SessionStore(self.sessions, "none", formats),
            toolbox=servers.combine(default_toolbox()),
            counter=counter,
            ratios=TokenRatios(),
            settings=settings,
            make_permissions=self._permissions(settings, is_interactive),
            model_info=models.info,
            learn_model=models.learn,
            resolve_model=models.resolve,
            user_config_dir=self.config,
            trust=self.trust,
            output_dir=self.folder / "outputs",
            environ=environ,
            person_environ=environ,
            secrets=secrets,
            sleep=sleep,
            clock=clock,
            most_replies=most_replies,
            fallback_model=fallback_model,
            trees=trees,
            remote_tools=servers,
            features=own_features() if features is None else features,
            report_fault=report_fault,
        )
        planner = planner or CompactionPlanner(client, counter, models)

        def make_network(
            pending: PendingApprovals, conversation: Callable[[], Conversation]
        ) -> NetworkQuestions:
            questions = NetworkQuestions(pending, conversation)
            questions.serve(network)
            return questions

        return AgentRuntime(services, planner, model, self.workspace, mode, make_network)

    def _permissions(
        self, settings: Settings, is_interactive: bool
    ) -> Callable[[Path, PermissionMode], PermissionEngine]:
        return lambda workspace, mode: PermissionEngine(
            mode=mode,
            rules=settings.permissions,
            workspace=workspace,
            project_rules_file=self.folder / "permissions.toml",
            own_folders=(self.config,),
            is_interactive=is_interactive,
        )


async def collect(events: AsyncGenerator[AgentEvent, None]) -> list[AgentEvent]:
    """All events of an activity."""
    async with aclosing(events) as stream:
        return [event async for event in stream]


def only(events: list[AgentEvent], kind: type[EventT]) -> EventT:
    """The one event of a kind."""
    (found,) = of_kind(events, kind)
    return found


def of_kind(events: list[AgentEvent], kind: type[EventT]) -> list[EventT]:
    """All events of a kind."""
    return [event for event in events if isinstance(event, kind)]


def roles(runtime: AgentRuntime) -> list[str]:
    """Roles of the messages in the log, in order."""
    return [
        e.message.role
        for e in runtime.conversation.log.path_entries()
        if isinstance(e, MessageEntry)
    ]


def lines_of(runtime: AgentRuntime) -> bytes:
    """The session file's bytes."""
    assert runtime.conversation.log.path is not None
    return runtime.conversation.log.path.read_bytes()


def summary_or(reply: Reply) -> Callable[..., Reply]:
    """A script that answers summary requests with a good summary and all others with `reply`."""
    return lambda request: (
        Reply(text=GOOD_SUMMARY) if request.purpose == "summary" else dataclasses.replace(reply)
    )
