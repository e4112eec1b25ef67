"""The errors that users may see: what happened, and what to do next."""

import re
from dataclasses import dataclass, replace

_WAY = r"\{(\w+)(?::([^{}]*))?\}"


@dataclass(frozen=True, slots=True)
class Ways:
    """How the reader of a text does what it advises.

    A text names a way in braces, such as ``Switch models with {model}.``. What follows a colon
    there takes the place of ``%`` in the way.
    """

    model: str
    new: str
    compact: str
    key_env: str
    session_dir: str
    sessions: str
    or_keep_key: str
    or_setting: str
    setting_changes: str
    stop: str
    allowing: str

    def fill(self, text: str) -> str:
        """`text` with the reader's ways in place of their names."""

        def way_of(found: re.Match[str]) -> str:
            way: str = getattr(self, found[1]) if found[1] in self.__slots__ else found[0]
            return way.replace("%", found[2] or "")

        return re.sub(_WAY, way_of, text).strip()


IN_CHAT = Ways(
    model="/model",
    new="/new",
    compact="/compact",
    key_env="--api-key-env",
    session_dir="--session-dir",
    sessions="`agent-tui sessions list --all` shows all sessions.",
    or_keep_key=" or with agent-tui login %",
    or_setting=", or % in the settings",
    setting_changes="% in /settings changes that.",
    stop="Stop it first with Esc or /abort.",
    allowing="which permission rule or mode would allow it",
)
"""For a conversation on a screen, line by line or in an editor."""
IN_SHELL = replace(
    IN_CHAT,
    model="--model",
    new="a run without -c and -r",
    compact="agent-tui -c -p /compact",
    setting_changes="% in the settings changes that.",
)
"""For a command line, as with ``-p``."""
IN_PROGRAM = Ways(
    model="the argument model",
    new="another Agent",
    compact="Agent.compact()",
    key_env="the argument api_key_env",
    session_dir="the argument session",
    sessions="Session.list() has all sessions; the argument folder says where to look.",
    or_keep_key="",
    or_setting="",
    setting_changes="",
    stop="Await it first; to leave the loop over run() early, use contextlib.aclosing.",
    allowing="what the argument permissions would have to allow",
)
"""For a program that uses the library, which reads no settings."""


class AgentTuiError(Exception):
    """Base of every error that is shown to the user unchanged.

    Args:
        message: What happened, naming the file, key or model concerned.
        advice: What the user can do about it, with the names of `Ways`; empty if nothing.

    Attributes:
        ways: Those of the reader, which `hint` and the text name.
    """

    ways: Ways = IN_CHAT

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    @property
    def hint(self) -> str:
        """What the reader can do about it, in the reader's ways; empty if nothing."""
        return self.ways.fill(self.advice)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class UsageError(AgentTuiError):
    """The command line asks for something that does not exist. Exit code 2."""


class ConfigError(AgentTuiError):
    """A setting cannot be used; names file, line and key."""


class ModelFileError(AgentTuiError):
    """A model file cannot be fetched, read or used."""


class SessionError(AgentTuiError):
    """A session file cannot be opened, read or written."""


class SessionNotWritableError(SessionError):
    """The system does not allow writing a session's file or folder; it can be read."""


class NewerFormatError(SessionError):
    """A session file has a format version of a newer program; it can be read."""


class CompactionError(AgentTuiError):
    """A compaction was not carried out; the session is unchanged."""


class NothingToCompactError(CompactionError):
    """A compaction would free nothing; found before any work was done."""


class TargetTooSmallError(CompactionError):
    """A list of messages cannot be made as small as was asked.

    Attributes:
        least_tokens: The least target that works.
    """

    def __init__(self, target_tokens: int, least_tokens: int) -> None:
        super().__init__(
            f"The messages do not fit in {target_tokens:,} tokens.",
            f"The least target that works is {least_tokens:,}.",
        )
        self.least_tokens = least_tokens


class CompactionWarning(UserWarning):
    """A model that was to help with a compaction could not; code did it alone, or in part."""


class ToolError(AgentTuiError):
    """A tool call failed in a way that the model can fix; the text goes back to the model."""


class WorktreeError(AgentTuiError):
    """A worktree cannot be created, used or removed; what was there is unchanged."""
