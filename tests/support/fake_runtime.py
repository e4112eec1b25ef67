"""A conversation whose events a test gives one by one, behind the real front end."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agent_tui.agent.context_files import ContextFile
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.fitting import FittedPrompt
from agent_tui.agent.inbox import QueuedMessage
from agent_tui.agent.pending_approvals import ApprovalAnswer
from agent_tui.agent.session_manager import OpenMode
from agent_tui.compaction.preview import CompactionPreview, TierPreview
from agent_tui.config import (
    CompactionStrategy,
    PermissionMode,
    PermissionSettings,
    Settings,
)
from agent_tui.errors import AgentTuiError, SessionError
from agent_tui.events import (
    AgentEvent,
    CompactionFinished,
    ContextChanged,
    ModelChanged,
    Notice,
    QueueChanged,
    SessionChanged,
    TurnFinished,
    TurnStarted,
    UserMessageAdded,
    WentBack,
)
from agent_tui.messages import ImageContent, Message, ThinkingLevel, Todo, ToolSpec, UserMessage
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.trust import FolderTrust, WithheldFile
from agent_tui.permissions.trust_file import TrustFile
from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef
from agent_tui.sessions.entries import (
    Entry,
    Header,
    LabelEntry,
    Ledger,
    MessageEntry,
    SessionInfoEntry,
)
from agent_tui.sessions.file.status import SessionStatus, session_status
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import ContextUsage, TokenCounter, TokenRatios

if TYPE_CHECKING:
    from agent_tui.agent.runtime import AgentRuntime
    from agent_tui.agent.services import RuntimeServices

MODEL = ModelRef("anthropic/claude-sonnet")
INFO = ModelInfo("anthropic/claude-sonnet", 200_000, 64_000, 3.0, 15.0, sees_images=True)
OTHER = ModelRef("openai/gpt-large", api_key_env="OPENAI_API_KEY")
OTHER_INFO = ModelInfo("openai/gpt-large", 400_000, 128_000, 1.25, 10.0)
LOCAL = ModelRef("ollama/small-coder", base_url="http://127.0.0.1:11434")
LOCAL_INFO = ModelInfo("ollama/small-coder", 32_768, 8_192)
TOOLS = (
    ToolSpec(name="read", description="Read a file. Lines are numbered.", parameters={}),
    ToolSpec(name="bash", description="Run a command in the workspace.", parameters={}),
)


PREVIEW = CompactionPreview(
    tokens_before=144_000,
    tokens_after=78_600,
    window=200_000,
    target_tokens=80_000,
    tiers=(
        TierPreview(0, 12, 112_800, 31_200, is_used=True),
        TierPreview(1, 31, 88_300, 24_500, is_used=True),
        TierPreview(2, 140, 61_900, 26_400, is_used=True),
        TierPreview(3, 412, 27_400, 116_600, is_used=False),
    ),
    ledger=Ledger(
        pinned=(
            "Never touch anything below vendor/.",
            "All public functions need a docstring, and please keep every line under 100 "
            "characters, also in the tests.",
        ),
        modified_files=("src/app.py", "src/parser.py", "tests/test_app.py"),
        read_files=tuple(f"src/generated/schema_{number}.py" for number in range(31)),
        errors=("$ pytest -q => AssertionError: expected 3 tokens, got 4 | 1 failed, 61 passed",),
        open_todos=("Run the tests (in progress)", "Write it up"),
        decisions=("yes, go with the table (asked: A table or a list?)",),
    ),
)


class _Toolbox:
    specs = TOOLS


class FakeModels:
    """Three models: two with keys, one on a local server."""

    def __init__(self, *, nothing: bool = False) -> None:
        self._nothing = nothing

    def resolve(self, name: str) -> ModelRef:
        for ref in (MODEL, OTHER, LOCAL):
            if name in ref.name:
                return ref
        raise SessionError(f"No model is called {name}.", "Did you mean openai/gpt-large?")

    def info(self, ref: ModelRef) -> ModelInfo:
        return {MODEL.name: INFO, OTHER.name: OTHER_INFO}.get(ref.name, LOCAL_INFO)

    async def found(self) -> tuple[FoundModel, ...]:
        if self._nothing:
            return ()
        return (
            FoundModel(OTHER, OTHER_INFO, "OPENAI_API_KEY"),
            FoundModel(MODEL, INFO, "ANTHROPIC_API_KEY"),
            FoundModel(LOCAL, LOCAL_INFO, "Ollama at 127.0.0.1:11434"),
        )


class FakeRuntime:
    """Stands in for `AgentRuntime`: activities yield what the test feeds."""

    def __init__(self, root: Path, cwd: Path | None = None) -> None:
        self.cwd = cwd or root
        self.store = SessionStore(root / "sessions")
        self.settings = Settings()
        self.services = self.sessions = self.branches = self.pending_approvals = self
        self.counter, self.ratios, self.secrets = TokenCounter(), TokenRatios(), ()
        self.approvals = PermissionEngine(
            mode="ask",
            rules=PermissionSettings(allow=("bash(git status)",), deny=("bash(git push *)",)),
            workspace=self.cwd,
            project_rules_file=root / "rules.json",
        )
        self.user_config_dir = root / "config"
        self.trust = FolderTrust(TrustFile(root / "trust.json"))
        self.toolbox = _Toolbox()
        self.submitted: list[str] = []
        self.refusal = ""
        self.sent_images: list[tuple[ImageContent, ...]] = []
        self.commands: list[tuple[str, bool]] = []
        self.compactions: list[str] = []
        self.answers: list[tuple[str, ApprovalAnswer]] = []
        self.on_abort: tuple[AgentEvent, ...] = ()
        self.preview: CompactionPreview | AgentTuiError = PREVIEW
        self.undone: tuple[AgentEvent, ...] | AgentTuiError = ()
        self.opened: list[tuple[str, OpenMode, bool]] = []
        self.owner_pid: int | None = None
        self.branchings: list[tuple[str, str]] = []
        self.is_closed = False
        self._fed: asyncio.Queue[AgentEvent | None] | None = None
        self._kind = ""
        self.conversation = self._converse()

    @property
    def real(self) -> "AgentRuntime":
        return cast("AgentRuntime", self)

    @property
    def context_files(self) -> tuple[ContextFile, ...]:
        return self.conversation.context_files

    @context_files.setter
    def context_files(self, files: tuple[ContextFile, ...]) -> None:
        self.conversation.context_files = files

    @property
    def permission_mode(self) -> PermissionMode:
        return self.approvals.mode

    @property
    def model(self) -> ModelRef:
        return self.conversation.model

    @property
    def model_info(self) -> ModelInfo:
        return self.conversation.model_info

    @property
    def thinking(self) -> ThinkingLevel:
        return self.conversation.thinking

    @property
    def log(self) -> SessionLog:
        return self.conversation.log

    @property
    def usage(self) -> ContextUsage:
        return self.conversation.usage

    @property
    def totals(self):
        return self.conversation.totals

    @property
    def withheld_files(self) -> tuple[WithheldFile, ...]:
        return self.trust.withheld(self.cwd)

    async def apply_trust(self) -> tuple[AgentEvent, ...]:
        self.conversation.withheld_files = self.withheld_files
        return (ContextChanged(self.usage),)

    @property
    def todos(self) -> tuple[Todo, ...]:
        return tuple(self.conversation.todos)

    @property
    def queued(self) -> tuple[str, ...]:
        return self.conversation.inbox.shown

    @property
    def is_busy(self) -> bool:
        return self._fed is not None

    def history(self) -> tuple[Entry, ...]:
        return self.log.path_entries()

    def write(self, *messages: Message) -> None:
        """Put messages into the session, as an earlier run would have."""
        for message in messages:
            self.log.append(MessageEntry(message=message))

    # What the test does

    def feed(self, *events: AgentEvent) -> None:
        assert self._fed is not None, "nothing runs"
        for event in events:
            self._fed.put_nowait(event)

    def finish(self, *events: AgentEvent) -> None:
        """End the running activity, a turn with a happy end if nothing else is said."""
        ending = events or ((TurnFinished("done"),) if self._kind == "turn" else ())
        self.feed(*ending)
        assert self._fed is not None
        self._fed.put_nowait(None)

    # What the front end does

    def submit(
        self, text: str, images: tuple[ImageContent, ...] = ()
    ) -> AsyncGenerator[AgentEvent, None]:
        self.submitted.append(text)
        self.sent_images.append(images)
        return self._submit(text, len(images))

    async def _submit(self, text: str, image_count: int) -> AsyncGenerator[AgentEvent, None]:
        if self.refusal:
            yield TurnFinished("error", self.refusal)
            return
        entry = self.log.append(MessageEntry(message=UserMessage(content=text)))
        yield TurnStarted()
        yield UserMessageAdded(entry.id, text, image_count)
        async for event in self._activity("turn"):
            yield event

    async def continue_turn(self) -> AsyncGenerator[AgentEvent, None]:
        yield TurnStarted()
        async for event in self._activity("turn"):
            yield event

    async def compact(self, focus: str = "") -> AsyncGenerator[AgentEvent, None]:
        self.compactions.append(focus)
        async for event in self._activity("compaction"):
            yield event

    async def compact_here(
        self, strategy: CompactionStrategy, focus: str = ""
    ) -> AsyncGenerator[AgentEvent, None]:
        self.compactions.append(f"{strategy}: {focus}")
        async for event in self._activity("compaction"):
            yield event

    async def preview_compaction(self) -> CompactionPreview:
        if isinstance(self.preview, AgentTuiError):
            raise self.preview
        return self.preview

    async def undo_compaction(self) -> tuple[AgentEvent, ...]:
        if isinstance(self.undone, AgentTuiError):
            raise self.undone
        return self.undone

    async def run_bash(self, command: str, *, in_context: bool) -> AsyncGenerator[AgentEvent, None]:
        self.commands.append((command, in_context))
        async for event in self._activity("bash"):
            yield event

    async def _activity(self, kind: str) -> AsyncGenerator[AgentEvent, None]:
        self._kind = kind
        self._fed = fed = asyncio.Queue()
        try:
            while (event := await fed.get()) is not None:
                yield event
        finally:
            self._fed = None

    def abort(self) -> None:
        if self._fed is not None:
            self.finish(*self.on_abort, *([TurnFinished("aborted")] * (self._kind == "turn")))

    def answer(self, request_id: str, answer: ApprovalAnswer) -> None:
        self.answers.append((request_id, answer))

    def enqueue(
        self, text: str, images: tuple[ImageContent, ...] = (), *, shown: str = ""
    ) -> tuple[AgentEvent, ...]:
        self.conversation.inbox.add(QueuedMessage(text, images, shown))
        return (QueueChanged(self.queued),)

    def take_back_queue(self) -> tuple[QueuedMessage, ...]:
        return self.conversation.inbox.take_all()

    async def start_new(self) -> tuple[AgentEvent, ...]:
        self.log.close()
        self.conversation = self._converse()
        return (self._changed("new"), ContextChanged(self.usage))

    async def status(self, ref: str) -> SessionStatus:
        found = await asyncio.to_thread(lambda: session_status(self.store.find(ref, self.cwd)))
        return replace(found, owner_pid=self.owner_pid)

    async def open(
        self,
        ref: str,
        *,
        keep_model: bool = False,
        mode: OpenMode = "write",
        here: bool = False,
    ) -> tuple[AgentEvent, ...]:
        self.opened.append((ref, mode, here))
        log = await asyncio.to_thread(self.store.open, ref, self.cwd)
        self.conversation.log = log
        return (self._changed("resumed"), ContextChanged(self.usage))

    async def go_back(self, entry_id: str) -> tuple[AgentEvent, ...]:
        self.branchings.append(("go back", entry_id))
        return self._went_back(entry_id)

    async def go_back_with_summary(self, entry_id: str) -> AsyncGenerator[AgentEvent, None]:
        self.branchings.append(("summarise", entry_id))
        async for event in self._activity("branch summary"):
            yield event

    async def fork(self, entry_id: str | None = None) -> tuple[AgentEvent, ...]:
        self.branchings.append(("fork", entry_id or ""))
        return self._went_back(entry_id) if entry_id else ()

    def label(self, entry_id: str, text: str) -> None:
        self.log.append(LabelEntry(target_id=entry_id, label=text or None))

    def _went_back(self, entry_id: str) -> tuple[AgentEvent, ...]:
        entry = next(entry for entry in self.log.entries if entry.id == entry_id)
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
            self.log.branch_to(entry.parent_id)
            return (WentBack(entry.parent_id, entry.message.text, len(entry.message.images)),)
        self.log.branch_to(entry_id)
        return (WentBack(entry_id, ""),)

    def rename(self, name: str) -> tuple[AgentEvent, ...]:
        self.log.append(SessionInfoEntry(name=name))
        return (self._changed("renamed"),)

    def set_model(self, model: ModelRef) -> tuple[AgentEvent, ...]:
        self.conversation.model = model
        self.conversation.model_info = FakeModels().info(model)
        return (ModelChanged(model.name, self.model_info.window),)

    def set_thinking(self, level: ThinkingLevel) -> tuple[AgentEvent, ...]:
        self.conversation.thinking = level
        return (Notice("info", f"Thinking: {level}"),)

    def use_settings(self, settings: Settings) -> None:
        self.settings = settings

    def set_permission_mode(self, mode: PermissionMode) -> None:
        self.approvals.mode = mode

    async def refresh_usage(self) -> tuple[AgentEvent, ...]:
        return ()

    async def aclose(self) -> None:
        self.abort()
        self.is_closed = True
        self.log.close()

    def compacted(self, summary: str) -> CompactionFinished:
        return CompactionFinished("e1", "manual", summary, 150_000, 9_000, "a model", False)

    def _changed(self, reason) -> SessionChanged:
        return SessionChanged(self.log.header.id, self.log.path, self.log.name, reason)

    def _converse(self) -> Conversation:
        header = Header(
            cwd=str(self.cwd),
            provider="anthropic",
            model_id="claude-sonnet",
            timestamp="2026-03-04T10:00:00.000Z",
        )
        return Conversation(
            log=self.store.create(header),
            cwd=self.cwd,
            model=MODEL,
            model_info=INFO,
            thinking="off",
            fit=lambda window: FittedPrompt(window, "You are a coding agent.", TOOLS),
            services=cast("RuntimeServices", self),
            approvals=self.approvals,
            context_files=(),
            withheld_files=self.withheld_files,
            usage=ContextUsage(0, 200_000, is_estimate=False),
        )
