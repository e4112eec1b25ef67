"""What the user answered about offered rules, stored for each project outside of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field

from agent_tui.file_locks import lock_for_change
from agent_tui.messages import Stored
from agent_tui.regular_files import read_regular_file
from agent_tui.sessions.file.disk import DiskFile, write_new_file

RuleAnswer: TypeAlias = Literal["yes", "no"]

_FOR_THIS_RUN = "Your answer was not stored; you will be asked again."


class AnsweredQuote(Stored):
    """A quote that an answered offer had."""

    at: str
    sentence: str


class AnsweredRule(Stored):
    """One answer.

    Args:
        line: The line that was offered, or what the user made of it.
        answer: Whether it was added.
        at: When it was answered, ISO 8601.
        file: The file that it was added to; empty for no.
        file_was_from: When that file was last changed before, ISO 8601; empty if it is new.
        quotes: What the user had said.
    """

    line: str
    answer: RuleAnswer
    at: str
    file: str = ""
    file_was_from: str = ""
    quotes: tuple[AnsweredQuote, ...] = ()


class RuleAnswers(Stored):
    """All answers of a project, oldest first; `is_off`: nothing is offered there any more."""

    is_off: bool = False
    answers: tuple[AnsweredRule, ...] = Field(default=())


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """The file with a project's answers; a broken one counts as empty.

    Args:
        path: The file; created with its folder by the first answer.
    """

    path: Path

    def read(self) -> RuleAnswers:
        """The answers so far."""
        try:
            return RuleAnswers.model_validate_json(read_regular_file(self.path))
        except (OSError, ValueError):
            return RuleAnswers()

    def add(self, answer: AnsweredRule) -> None:
        """Store one more answer.

        Raises:
            ConfigError: It cannot be written.
        """
        with lock_for_change(self.path, _FOR_THIS_RUN):
            known = self.read()
            self._write(known.model_copy(update={"answers": (*known.answers, answer)}))

    def switch(self, *, is_off: bool) -> None:
        """Stop offering rules in the project, or offer them again.

        Raises:
            ConfigError: It cannot be written.
        """
        with lock_for_change(self.path, _FOR_THIS_RUN):
            self._write(self.read().model_copy(update={"is_off": is_off}))

    def _write(self, answers: RuleAnswers) -> None:
        text = answers.model_dump_json(by_alias=True, indent=2)
        write_new_file(self.path, f"{text}\n".encode(), DiskFile, sync=True)
