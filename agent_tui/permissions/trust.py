"""Which folders the user trusts. Nothing from any other folder takes effect or runs.

Every reader of a project's files (instructions, settings, prompts, servers to start) calls
`FolderTrust.may_obey` before it opens one, and git is called only if `may_run_git` agrees.
"""

import json
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, cast

from agent_tui.errors import ConfigError
from agent_tui.file_locks import lock_for_change
from agent_tui.permissions.project_files import (
    git_risk,
    project_files,
    project_folders,
    repository_root,
)
from agent_tui.regular_files import read_regular_file
from agent_tui.safe_paths import real_path
from agent_tui.sessions.file.disk import DiskFile, write_new_file
from agent_tui.tools.git.worktree import Worktree

if TYPE_CHECKING:  # keeps pydantic out of the first paint
    from pydantic import JsonValue

TrustDecision: TypeAlias = Literal["trusted", "not trusted"]
_FOR_THIS_RUN = "It applies to this run only."
TrustState: TypeAlias = TrustDecision | Literal["not asked"]
TrustAnswer: TypeAlias = Literal["trust", "this run", "no"]
NOT_TRUSTED = "the folder is not trusted"
_TOO_BROAD_HINT = "Trust each folder you work in separately."


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
        with lock_for_change(self.path, _FOR_THIS_RUN):
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


@dataclass(frozen=True, slots=True)
class TrustQuestion:
    """What the user is asked to trust.

    Args:
        folder: What would be trusted, with everything below it.
        files: What would take effect; for prompt files the folder they are in.
        git_risk: Which of the repository's settings git would follow; empty if harmless.
        has_repository: Whether git would run there.
        state: The current decision.
    """

    folder: Path
    files: tuple[Path, ...]
    git_risk: str
    has_repository: bool
    state: TrustState


@dataclass(frozen=True, slots=True)
class WithheldFile:
    """A project file that does not take effect, and the reason."""

    path: Path
    why: str


class KnownWorktrees(Protocol):
    """Knows the worktrees that agent-tui created, and that they belong to their repositories."""

    def around(self, folder: Path) -> Worktree | None:
        """The worktree that contains `folder`, which is resolved; None if there is none."""
        ...

    def home_of(self, folder: Path) -> Path | None:
        """The folder of the main worktree that `folder`, in one of ours, stands for."""
        ...


class FolderTrust:
    """The user's decisions about folders, kept ones and those for this run.

    A decision applies to its folder and everything below it; the nearest one counts. Folders too
    broad to judge (the root, the home folder and those above it, shared ones such as ``/tmp``) are
    never trusted as a whole: a decision for this run about one applies to it alone.

    What holds for a repository also holds in the worktrees that agent-tui created of it, unless
    there is another decision in one.

    Args:
        file: Stores decisions.
        home: The user's home folder; None if there is none.
        worktrees: Knows those worktrees; None if there are none.
    """

    def __init__(
        self,
        file: TrustFile,
        *,
        home: Path | None = None,
        worktrees: KnownWorktrees | None = None,
    ) -> None:
        self._file = file
        self._worktrees = worktrees
        self._home = real_path(home) if home is not None else None
        self._in_this_run: dict[Path, TrustDecision] = {}

    @property
    def home(self) -> Path | None:
        """The user's home folder, whose own files are theirs; None if there is none."""
        return self._home

    @property
    def problem(self) -> str:
        """Why kept decisions cannot be read, so that none applies; empty if they can."""
        return self._file.read().problem

    def state_of(self, folder: Path) -> TrustState:
        """The decision about `folder`: its own, or that of the nearest folder above."""
        decided = self._find_decision(folder)
        return "not asked" if decided is None else decided[1]

    def find_deciding_folder(self, folder: Path) -> Path | None:
        """The folder whose decision applies to `folder`; None if none does."""
        decided = self._find_decision(folder)
        return None if decided is None else decided[0]

    def may_obey(self, file: Path) -> bool:
        """Whether a project's file may be read and take effect."""
        return not self.why_not(file)

    def why_not(self, file: Path) -> str:
        """Why a project's file does not take effect; empty if it does.

        A link must stay in the trusted folder and lead to a file of the same kind. Otherwise it
        could expose keys to the model.
        """
        if self.state_of(file.parent) != "trusted":
            return NOT_TRUSTED
        try:
            real = file.resolve(strict=True)
        except (OSError, RuntimeError):
            return "it is a broken link"
        if real == real_path(file.parent) / file.name:
            return ""
        if self.state_of(real.parent) != "trusted" or real.suffix != file.suffix:
            return f"it is a link to {real}"
        return ""

    def may_run_git(self, cwd: Path) -> bool:
        """Whether git may be called in `cwd`.

        If no file could take effect, the user is not asked, so a missing decision does not count.
        """
        if self._trusts_repository(cwd):
            return True
        is_asked = self.state_of(self.folder_to_ask_about(cwd)) != "not asked" or project_files(cwd)
        return not is_asked and not git_risk(self._home_of(cwd))

    def git_risk(self, cwd: Path) -> str:
        """Which settings of the repository around `cwd` git could follow; empty if trusted."""
        return "" if self._trusts_repository(cwd) else git_risk(self._home_of(cwd))

    def withheld(self, cwd: Path) -> tuple[WithheldFile, ...]:
        """The files that could take effect in `cwd` but do not."""
        found = ((file, self.why_not(file)) for file in project_files(cwd))
        return tuple(WithheldFile(file, why) for file, why in found if why)

    def folder_to_ask_about(self, cwd: Path) -> Path:
        """The folder to trust when working in `cwd`: its repository, else `cwd`."""
        resolved = real_path(cwd)
        folders = (folder for folder in project_folders(resolved) if not self.is_too_broad(folder))
        return next(folders, resolved)

    def question(self, cwd: Path) -> TrustQuestion | None:
        """What to ask before working in `cwd`; None if it is decided or there is no need to ask."""
        asked = self.question_about(cwd)
        if asked is None or asked.state != "not asked":
            return None
        return asked if asked.files or asked.git_risk else None

    def question_about(self, cwd: Path) -> TrustQuestion | None:
        """The question about `cwd`, decided or not; None if it cannot be trusted."""
        folder = self.folder_to_ask_about(cwd)
        if self.is_too_broad(folder):
            return None
        files = tuple(file for file in project_files(real_path(cwd)) if file.is_relative_to(folder))
        has_repository = repository_root(cwd) is not None
        risk = git_risk(self._home_of(cwd))
        return TrustQuestion(folder, files, risk, has_repository, self.state_of(folder))

    def answer(self, question: TrustQuestion, answer: TrustAnswer | None) -> None:
        """Apply an answer; None (no answer) means no until the program ends.

        Raises:
            ConfigError: The answer cannot be stored; it applies to this run.
        """
        match answer:
            case "trust":
                self.decide(question.folder, "trusted")
            case "no":
                self.decide(question.folder, "not trusted")
            case "this run":
                self.trust_for_this_run(question.folder)
            case None:
                self._in_this_run[question.folder] = "not trusted"

    def trust_for_this_run(self, folder: Path) -> None:
        """Trust `folder` until the program ends."""
        self._in_this_run[real_path(folder)] = "trusted"

    def decide(self, folder: Path, decision: TrustDecision) -> None:
        """Store a decision about `folder`; it replaces one for this run.

        Raises:
            ConfigError: The folder is too broad, or the decision cannot be stored.
        """
        resolved = real_path(folder)
        if decision == "trusted" and self.is_too_broad(resolved):
            raise ConfigError(f"{resolved} is too broad to trust.", _TOO_BROAD_HINT)
        self._in_this_run[resolved] = decision
        self._file.change(resolved, decision)
        del self._in_this_run[resolved]

    def forget(self, folder: Path) -> bool:
        """Remove the decision about exactly `folder`; false if there is none.

        Raises:
            ConfigError: It cannot be removed.
        """
        resolved = real_path(folder)
        in_this_run = self._in_this_run.pop(resolved, None)
        if resolved not in self._file.read().decisions:
            return in_this_run is not None
        self._file.change(resolved, None)
        return True

    def list_decisions(self) -> dict[Path, TrustDecision]:
        """The stored decisions, by folder."""
        return dict(sorted(self._file.read().decisions.items()))

    def is_too_broad(self, folder: Path) -> bool:
        """Whether `folder` is too broad to know everything below it."""
        resolved = real_path(folder)
        if resolved == resolved.parent or (
            self._home is not None and self._home.is_relative_to(resolved)
        ):
            return True
        try:
            mode = resolved.stat().st_mode
        except OSError:
            return False
        return bool(mode & stat.S_IWOTH and mode & stat.S_ISVTX)

    def _home_of(self, cwd: Path) -> Path:
        """The folder of the main worktree that `cwd` stands for; `cwd` if it is in none of ours."""
        home = self._worktrees.home_of(real_path(cwd)) if self._worktrees else None
        return home or cwd

    def _trusts_repository(self, cwd: Path) -> bool:
        """Whether `cwd` and its repository's root are trusted; git reads settings at the root."""
        root = repository_root(cwd)
        return self.state_of(cwd) == "trusted" and (
            root is None or self.state_of(root) == "trusted"
        )

    def _find_decision(self, folder: Path) -> tuple[Path, TrustDecision] | None:
        """The nearest decision from `folder` upward, and the folder it was made for."""
        resolved = real_path(folder)
        kept = self._file.read().decisions
        worktree = self._worktrees.around(resolved) if self._worktrees else None
        for above in (resolved, *resolved.parents):
            if worktree is not None and not above.is_relative_to(worktree.path):
                repository = real_path(worktree.repository)
                same = real_path(repository / resolved.relative_to(worktree.path))
                # A link of the repository could lead to a folder that is trusted.
                return self._find_decision(same if same.is_relative_to(repository) else repository)
            decision = self._in_this_run.get(above) or kept.get(above)
            if decision is None:
                continue
            if decision == "not trusted" or not self.is_too_broad(above):
                return above, decision
            if above == resolved and above in self._in_this_run:
                return above, decision
        return None
