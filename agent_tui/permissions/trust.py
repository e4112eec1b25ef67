"""Which folders the person trusts. Nothing that any other folder holds is obeyed or run.

Every reader of a project's files (instructions, settings, prompts, servers to start) asks
`FolderTrust.may_obey` before it opens one, and git is called only where `may_run_git` agrees.
"""

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.errors import ConfigError
from agent_tui.permissions.git_settings import git_risk
from agent_tui.permissions.project_files import (
    project_files,
    project_folders,
    repository_root,
)
from agent_tui.permissions.trust_file import TrustDecision, TrustFile

TrustState: TypeAlias = TrustDecision | Literal["not asked"]
TrustAnswer: TypeAlias = Literal["trust", "this run", "no"]

NOT_TRUSTED = "the folder is not trusted"
_TOO_BROAD_HINT = "Trust each folder you work in separately."


@dataclass(frozen=True, slots=True)
class TrustQuestion:
    """What the person is asked about.

    Args:
        folder: What would be trusted, with all that is below it.
        files: What would be obeyed; of prompt files the folder they are in.
        git_risk: What of the repository git would obey; empty where it is plain.
        has_repository: Whether git would be asked there.
        state: What holds now.
    """

    folder: Path
    files: tuple[Path, ...]
    git_risk: str
    has_repository: bool
    state: TrustState


@dataclass(frozen=True, slots=True)
class WithheldFile:
    """A file of the project that is not obeyed, and the reason."""

    path: Path
    why: str


class FolderTrust:
    """What the person decided, kept and for this run.

    A decision holds for its folder and everything below, the nearest one counts. Folders too
    broad to be known (the root, the home folder and those above it, shared ones such as ``/tmp``)
    are never trusted as a whole: a decision of this run about one holds for it alone.

    Args:
        file: Keeps decisions.
        home: The person's home folder; None where there is none.
    """

    def __init__(self, file: TrustFile, *, home: Path | None = None) -> None:
        self._file = file
        self._home = home.resolve() if home is not None else None
        self._in_this_run: dict[Path, TrustDecision] = {}

    @property
    def home(self) -> Path | None:
        """The person's home folder, whose own files are theirs; None where there is none."""
        return self._home

    @property
    def problem(self) -> str:
        """Why kept decisions cannot be read, so that none holds; empty where they can."""
        return self._file.read().problem

    def state_of(self, folder: Path) -> TrustState:
        """The decision that holds for `folder`: its own, or that of the nearest folder above."""
        decided = self._decided_above(folder)
        return "not asked" if decided is None else decided[1]

    def decided_by(self, folder: Path) -> Path | None:
        """The folder whose decision holds for `folder`."""
        decided = self._decided_above(folder)
        return None if decided is None else decided[0]

    def may_obey(self, file: Path) -> bool:
        """Whether a file of a project may be read and obeyed."""
        return not self.why_not(file)

    def why_not(self, file: Path) -> str:
        """Why a file of a project is not obeyed; empty where it is.

        A link must stay in what is trusted and lead to a file of its kind: it could lead to
        keys, which would then be told to the model.
        """
        if self.state_of(file.parent) != "trusted":
            return NOT_TRUSTED
        try:
            real = file.resolve(strict=True)
        except (OSError, RuntimeError):
            return "it is a broken link"
        if real == file.parent.resolve() / file.name:
            return ""
        if self.state_of(real.parent) != "trusted" or real.suffix != file.suffix:
            return f"it is a link to {real}"
        return ""

    def may_run_git(self, cwd: Path) -> bool:
        """Whether git may be called in `cwd`.

        Where nothing could be obeyed, nothing is asked, and so nothing is held against it.
        """
        if self._trusts_repository(cwd):
            return True
        is_asked = self.state_of(self.folder_to_ask_about(cwd)) != "not asked" or project_files(cwd)
        return not is_asked and not git_risk(cwd)

    def git_risk(self, cwd: Path) -> str:
        """What of the repository around `cwd` git could obey; empty where that is trusted."""
        return "" if self._trusts_repository(cwd) else git_risk(cwd)

    def withheld(self, cwd: Path) -> tuple[WithheldFile, ...]:
        """The files that would be obeyed in `cwd` and are not."""
        found = ((file, self.why_not(file)) for file in project_files(cwd))
        return tuple(WithheldFile(file, why) for file, why in found if why)

    def folder_to_ask_about(self, cwd: Path) -> Path:
        """The folder that is trusted or not when working in `cwd`: its repository, else `cwd`."""
        resolved = cwd.resolve()
        folders = (folder for folder in project_folders(resolved) if not self.is_too_broad(folder))
        return next(folders, resolved)

    def question(self, cwd: Path) -> TrustQuestion | None:
        """What to ask before working in `cwd`; None where it is decided or there is nothing to."""
        asked = self.question_about(cwd)
        if asked is None or asked.state != "not asked":
            return None
        return asked if asked.files or asked.git_risk else None

    def question_about(self, cwd: Path) -> TrustQuestion | None:
        """The question about `cwd`, decided or not; None where it cannot be trusted."""
        folder = self.folder_to_ask_about(cwd)
        if self.is_too_broad(folder):
            return None
        files = tuple(file for file in project_files(cwd.resolve()) if file.is_relative_to(folder))
        has_repository = repository_root(cwd) is not None
        return TrustQuestion(folder, files, git_risk(cwd), has_repository, self.state_of(folder))

    def answer(self, question: TrustQuestion, answer: TrustAnswer | None) -> None:
        """Carry out an answer; None (no answer) is a no until the program ends.

        Raises:
            ConfigError: It cannot be kept; it holds for this run.
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
        self._in_this_run[folder.resolve()] = "trusted"

    def decide(self, folder: Path, decision: TrustDecision) -> None:
        """Keep a decision about `folder`; it takes the place of one for this run.

        Raises:
            ConfigError: The folder is too broad, or the decision cannot be kept.
        """
        resolved = folder.resolve()
        if decision == "trusted" and self.is_too_broad(resolved):
            raise ConfigError(f"{resolved} is too broad to trust.", _TOO_BROAD_HINT)
        self._in_this_run[resolved] = decision
        self._file.change(resolved, decision)
        del self._in_this_run[resolved]

    def forget(self, folder: Path) -> bool:
        """Take the decision about `folder` back; false where there is none about just it.

        Raises:
            ConfigError: It cannot be taken back.
        """
        resolved = folder.resolve()
        in_this_run = self._in_this_run.pop(resolved, None)
        if resolved not in self._file.read().decisions:
            return in_this_run is not None
        self._file.change(resolved, None)
        return True

    def kept(self) -> dict[Path, TrustDecision]:
        """The decisions that are kept, by folder."""
        return dict(sorted(self._file.read().decisions.items()))

    def is_too_broad(self, folder: Path) -> bool:
        """Whether nobody can know all that is below `folder`."""
        resolved = folder.resolve()
        if resolved == resolved.parent or (
            self._home is not None and self._home.is_relative_to(resolved)
        ):
            return True
        try:
            mode = resolved.stat().st_mode
        except OSError:
            return False
        return bool(mode & stat.S_IWOTH and mode & stat.S_ISVTX)

    def _trusts_repository(self, cwd: Path) -> bool:
        """Git obeys what is at the root of the repository."""
        root = repository_root(cwd)
        return self.state_of(cwd) == "trusted" and (
            root is None or self.state_of(root) == "trusted"
        )

    def _decided_above(self, folder: Path) -> tuple[Path, TrustDecision] | None:
        """The nearest decision from `folder` upward, and where it was made."""
        resolved = folder.resolve()
        kept = self._file.read().decisions
        for above in (resolved, *resolved.parents):
            decision = self._in_this_run.get(above) or kept.get(above)
            if decision is None:
                continue
            if decision == "not trusted" or not self.is_too_broad(above):
                return above, decision
            if above == resolved and above in self._in_this_run:
                return above, decision
        return None
