"""What a front end reads of a running conversation."""

from pathlib import Path

from agent_tui.agent.context_files import ContextFile
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.session_desk import SessionDesk
from agent_tui.config import PermissionMode, Settings
from agent_tui.events import TotalsChanged
from agent_tui.messages import ThinkingLevel, Todo
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.trust import FolderTrust, WithheldFile
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import ContextUsage
from agent_tui.tools.base import Toolbox


class RuntimeFacts:
    """The state behind `AgentRuntime`, for reading."""

    def __init__(self, services: RuntimeServices, desk: SessionDesk) -> None:
        self._services = services
        self._desk = desk

    @property
    def model(self) -> ModelRef:
        """The model of the next request."""
        return self.conversation.model

    @property
    def model_info(self) -> ModelInfo:
        """What is known of that model."""
        return self.conversation.model_info

    @property
    def thinking(self) -> ThinkingLevel:
        """How much the model is asked to think."""
        return self.conversation.thinking

    @property
    def permission_mode(self) -> PermissionMode:
        """What needs the person's approval."""
        return self._desk.approvals.mode

    @property
    def approvals(self) -> PermissionEngine:
        """The permission engine, for showing its rules."""
        return self._desk.approvals

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._services.settings

    @property
    def cwd(self) -> Path:
        """The workspace."""
        return self.conversation.cwd

    @property
    def log(self) -> SessionLog:
        """The present session, for reading."""
        return self.conversation.log

    @property
    def store(self) -> SessionStore:
        """All sessions, for reading."""
        return self._services.store

    @property
    def conversation(self) -> Conversation:
        """The whole state, for reading."""
        return self._desk.conversation

    @property
    def toolbox(self) -> Toolbox:
        """The tools the model is offered."""
        return self._services.toolbox

    @property
    def context_files(self) -> tuple[ContextFile, ...]:
        """The AGENTS.md files in force."""
        return self._desk.context_files

    @property
    def trust(self) -> FolderTrust:
        """Which folders the person trusts."""
        return self._services.trust

    @property
    def user_config_dir(self) -> Path:
        """The person's own folder; AGENTS.md and commands there are always obeyed."""
        return self._services.user_config_dir

    @property
    def withheld_files(self) -> tuple[WithheldFile, ...]:
        """Files of the project that are not obeyed, for want of trust."""
        return self._desk.withheld

    @property
    def usage(self) -> ContextUsage:
        """How full the window is, as last counted."""
        return self.conversation.usage

    @property
    def totals(self) -> TotalsChanged:
        """Tokens and cost of this session."""
        return self.conversation.totals

    @property
    def todos(self) -> tuple[Todo, ...]:
        """The model's plan."""
        return tuple(self.conversation.todos)

    @property
    def queued(self) -> tuple[str, ...]:
        """Messages typed while a turn runs and not delivered yet."""
        return self.conversation.inbox.shown

    def history(self) -> tuple[Entry, ...]:
        """The entries of the present session from its root to its leaf."""
        return self.log.path_entries()
