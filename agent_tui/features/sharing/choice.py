"""What the user chose to share of a project, in a file outside it: a repository decides nothing."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from agent_tui.errors import ConfigError
from agent_tui.file_locks import lock_for_change
from agent_tui.paths import project_dir, user_data_dir
from agent_tui.regular_files import read_regular_file
from agent_tui.sessions.file.disk import DiskFile, write_new_file

_FILE = "sharing.json"
_HINT = "Nothing was shared. Try again."


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class PushedState(_Kept):
    """A session file when all of it was pushed: ``tip`` is the commit, ``key`` the recipients'."""

    size_bytes: int
    mtime_ns: int
    tip: str
    key: str
    with_files: bool = False


class Choice(_Kept):
    """The user's choice for one project and one address of a remote.

    ``allowed``: plain text, because they declared the remote private, or encrypted to
    ``recipients``; empty for neither. ``sessions`` are the ids of the chosen ones. ``merged`` has
    the commit of each session up to which it was pulled, ``pushed`` its file when it was pushed.
    """

    allowed: Literal["", "private", "encrypted"] = ""
    recipients: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    merged: Mapping[str, str] = Field(default_factory=dict[str, str])
    pushed: Mapping[str, PushedState] = Field(default_factory=dict[str, PushedState])


class _Choices(_Kept):
    remotes: Mapping[str, Choice] = Field(default_factory=dict[str, Choice])


class ChoiceFile:
    """Stores the choices for the project at `root`, by the address of the remote. Blocking."""

    def __init__(self, root: Path) -> None:
        self.path = project_dir(root) / _FILE

    @staticmethod
    def of_every_project() -> Iterator[Mapping[str, Choice]]:
        """The choices for each project, by the address of the remote; damaged files are skipped."""
        for file in sorted((user_data_dir() / "projects").glob(f"*/{_FILE}")):
            with suppress(OSError, ValidationError):
                yield _Choices.model_validate_json(read_regular_file(file)).remotes

    def read(self, address: str) -> Choice:
        """The choice for the remote at `address`.

        Raises:
            ConfigError: The file is damaged: guessing could publish something.
        """
        return self._read().remotes.get(address, Choice())

    def change(self, address: str, change: Callable[[Choice], Choice]) -> Choice:
        """Replace the choice for `address` by what `change` makes of it, and return that.

        Raises:
            ConfigError: The file is damaged, or cannot be written.
        """
        with lock_for_change(self.path, _HINT):
            before = self._read()
            after = change(before.remotes.get(address, Choice()))
            stored = _Choices(remotes={**before.remotes, address: after})
            text = stored.model_dump_json(by_alias=True, indent=2)
            write_new_file(self.path, f"{text}\n".encode(), DiskFile, sync=True)
        return after

    def _read(self) -> _Choices:
        try:
            return _Choices.model_validate_json(read_regular_file(self.path))
        except FileNotFoundError:
            return _Choices()
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be read: {error.strerror}.") from error
        except ValidationError as error:
            raise ConfigError(
                f"{self.path} is damaged.", "Delete it, then choose again what to share."
            ) from error
