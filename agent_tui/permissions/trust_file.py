"""The file that stores the decisions about folders, shared by all runs of the program."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from agent_tui.config.locked_file import locked_for_change
from agent_tui.regular_files import read_regular_file
from agent_tui.sessions.file.disk import DiskFile, write_new_file

if TYPE_CHECKING:  # keeps pydantic out of the first paint
    from pydantic import JsonValue

TrustDecision: TypeAlias = Literal["trusted", "not trusted"]

_FOR_THIS_RUN = "It applies to this run only."


@dataclass(frozen=True, slots=True)
class StoredTrust:
    """The file's content. `problem`: why it cannot be used; it then counts as empty."""

    decisions: Mapping[Path, TrustDecision] = field(default_factory=dict[Path, TrustDecision])
    problem: str = ""


class TrustFile:
    """Decisions by resolved folder, as JSON: ``{"folders": {"/home/me/proj": "trusted"}}``.

    The file is read each time, so a decision that another run removes no longer applies here.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> StoredTrust:
        """The stored decisions; none if the file is missing or broken."""
        try:
            return StoredTrust(_decisions(read_regular_file(self.path)))
        except (FileNotFoundError, NotADirectoryError):
            return StoredTrust()
        except OSError as error:
            return StoredTrust(problem=f"{self.path} cannot be read: {error.strerror}")
        except (ValueError, RecursionError) as error:
            why = f"{self.path} is damaged ({error}); no folder is trusted"
            return StoredTrust(problem=why)

    def change(self, folder: Path, decision: TrustDecision | None) -> None:
        """Store `decision` about `folder`, or remove it; a broken file is set aside, not lost.

        Raises:
            ConfigError: The file cannot be written.
        """
        with locked_for_change(self.path, _FOR_THIS_RUN):
            stored = self.read()
            if stored.problem:
                aside = f"{self.path.name}.broken-{secrets.token_hex(4)}"
                self.path.replace(self.path.with_name(aside))
            decisions = dict(stored.decisions)
            decisions.pop(folder, None)
            if decision is not None:
                decisions[folder] = decision
            write_new_file(self.path, _text(decisions), DiskFile, sync=True)


def _decisions(text: bytes) -> dict[Path, TrustDecision]:
    stored = cast("JsonValue", json.loads(text))
    folders = stored.get("folders") if isinstance(stored, dict) else None
    if not isinstance(folders, dict):
        raise ValueError('it has no "folders"')
    return {_folder(folder): _decision(folder, decision) for folder, decision in folders.items()}


def _folder(text: str) -> Path:
    path = Path(text)
    if not path.is_absolute():
        raise ValueError(f"{text!r} is not an absolute path")
    return path


def _decision(folder: str, stored: "JsonValue") -> TrustDecision:
    if stored == "trusted":
        return "trusted"
    if stored == "not trusted":
        return "not trusted"
    raise ValueError(f'{folder!r} must be "trusted" or "not trusted"')


def _text(decisions: Mapping[Path, TrustDecision]) -> bytes:
    folders = {str(folder): decisions[folder] for folder in sorted(decisions)}
    return (json.dumps({"folders": folders}, indent=2) + "\n").encode("ascii")
