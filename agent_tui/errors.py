"""The errors that users may see: what happened, and what to do next."""


class AgentTuiError(Exception):
    """Base of every error that is shown to the user unchanged.

    Args:
        message: What happened, naming the file, key or model concerned.
        hint: What the user can do about it; empty if nothing.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

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


class ToolError(AgentTuiError):
    """A tool call failed in a way that the model can fix; the text goes back to the model."""
