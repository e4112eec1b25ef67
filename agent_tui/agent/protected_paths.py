"""Which files always ask, and what lies inside the workspace."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from agent_tui.tools.protected import folded, is_secret_name

_SECRET_FOLDERS = frozenset(
    {".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".password-store", ".mozilla"}
)
_SECRET_PAIRS = frozenset(
    {(".config", "gcloud"), (".config", "gh"), ("library", "keychains"), ("etc", "shadow")}
)
_STARTUP_NAMES = """
    .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile
    .zlogin .zlogout .kshrc .cshrc .tcshrc .inputrc .xprofile .xinitrc .xsessionrc .gitconfig
    .gitmodules .vimrc .exrc .envrc .mailcap .lesskey .curlrc .wgetrc config.fish
"""
_STARTUP_FILES = frozenset(_STARTUP_NAMES.split())
_STARTUP_FOLDERS = frozenset({"autostart", "launchagents", "launchdaemons", "cron.d"})
_OWN_PROJECT_FOLDER = ".agent-tui"


@dataclass(frozen=True, slots=True)
class PathGuard:
    """Judges resolved paths. Names are compared without case, width and invisible characters.

    `scratch_folders` count as inside the workspace for writing. `own_folders` hold our
    configuration, rules and sessions.
    """

    workspace: Path
    own_folders: tuple[Path, ...] = ()
    scratch_folders: tuple[Path, ...] = ()
    home: Path | None = None

    def is_inside(self, path: Path) -> bool:
        """Whether `path` is the workspace or below it, component by component."""
        return path.is_relative_to(self.workspace)

    def may_write_freely(self, path: Path) -> bool:
        """Whether a mode that lets files be written covers `path`."""
        return any(path.is_relative_to(f) for f in (self.workspace, *self.scratch_folders))

    def why_reading_asks(self, path: Path) -> str:
        """Why reading `path` always asks; empty if it does not."""
        names = [folded(part) for part in path.parts]
        if any(name in _SECRET_FOLDERS for name in names) or _has_pair(names, _SECRET_PAIRS):
            return f"{path} is where keys are kept"
        if names and is_secret_name(path.name):
            return f"{path} may hold keys or passwords"
        if names[1:2] == ["proc"] and names[-1] in ("environ", "mem", "auxv"):
            return f"{path} is the inside of a running program"
        if self._is_own(path):
            return f"{path} belongs to agent-tui itself"
        return ""

    def why_writing_asks(self, path: Path) -> str:
        """Why changing `path` always asks; empty if it does not."""
        names = [folded(part) for part in path.parts]
        if ".git" in names:
            return f"{path} is inside .git, where files can make git run things"
        if names and (names[-1] in _STARTUP_FILES or any(n in _STARTUP_FOLDERS for n in names)):
            return f"{path} is run or read when programs start"
        if _OWN_PROJECT_FOLDER in names:
            return f"{path} configures agent-tui itself"
        return self.why_reading_asks(path)

    def why_searching_asks(self, folder: Path) -> str:
        """Why searching all of `folder` asks: keys or sessions are somewhere below it."""
        home = self.home
        if home is not None and home.is_relative_to(folder) and folder != self.workspace:
            return f"{folder} holds the home folder, with keys in it"
        for own in self.own_folders:
            if own.is_relative_to(folder) and not self.workspace.is_relative_to(folder):
                return f"{folder} holds files of agent-tui itself"
        return self.why_reading_asks(folder)

    def _is_own(self, path: Path) -> bool:
        parts = [folded(part) for part in path.parts]
        for folder in self.own_folders:
            own = [folded(part) for part in folder.parts]
            if parts[: len(own)] == own:
                return True
        return False


def _has_pair(names: list[str], pairs: Iterable[tuple[str, str]]) -> bool:
    wanted = set(pairs)
    return any(pair in wanted for pair in pairwise(names))
