"""Which files always ask, and what counts as inside the workspace."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_tui.permissions.project_files import git_risk
from agent_tui.safe_paths import is_file, path_exists
from agent_tui.tools.files.obeyed import is_read_at_start
from agent_tui.tools.files.protected import (
    SECRET_FOLDERS,
    SECRET_PAIRS,
    fold_name,
    holds_key,
    is_data_name,
    is_secret_name,
    is_where_keys_are,
    may_hold_key,
)
from agent_tui.tools.files.tool_tokens import is_settings_with_token
from agent_tui.tools.git.places import git_folder_around
from agent_tui.tools.git.token_settings import has_git_tokens, is_git_settings_name

_KEY_OF_A_PROGRAM = re.compile(
    r"(?:.*[._-])?(?:credentials?|creds|tokens?|auth|keys?|secrets?)"
    r"(?:\.(?:json|toml|ya?ml|txt|xml|tfrc\.json|db))?"
)
"""File names that programs give their keys, in dot folders of the home folder."""
_SYSTEM_FOLDER_NAMES = """
    etc usr bin sbin lib lib32 lib64 boot sys proc dev var opt root system library applications
"""
_SYSTEM_FOLDERS = frozenset(_SYSTEM_FOLDER_NAMES.split())
_READABLE_DEVICES = re.compile(
    r"/dev(/(null|zero|full|random|urandom|stdin|stdout|stderr|tty|fd(/\d+)?|shm(/.*)?))?"
)
_PROCESS_FILES = frozenset({"environ", "mem", "auxv", "kcore", "maps"})
_SKILLS_FOLDER = "skills"
_OWN_PROJECT_FOLDER = ".agent-tui"


def _nothing_is(_path: Path) -> bool:
    return False


def _none_are() -> None:
    return None


@dataclass(frozen=True, slots=True)
class SandboxView:
    """What commands in the sandbox can read and write, as far as file tools ask beyond it.

    Args:
        is_unseen: Tells what they cannot read, of an absolute path with links followed.
        find_temporary: Returns the folders for temporary files that they write, under the names
            that tools use; None if commands do not run in a sandbox. Blocking on first use.
    """

    is_unseen: Callable[[Path], bool] = _nothing_is
    find_temporary: Callable[[], Sequence[Path] | None] = _none_are


NO_VIEW: Final = SandboxView()
"""Without a sandbox: commands read and write what the user can."""


def _has_one_name(_path: Path) -> Iterable[Path]:
    return ()


@dataclass(frozen=True, slots=True)
class ProtectedPaths:
    """Judges resolved paths. Names are compared without case, width and invisible characters.

    `added_folders` are treated like the workspace. `scratch_folders` are the machine's folders for
    temporary files. Without a sandbox they count as inside the workspace for writing, see
    `is_scratch`. `own_folders` hold agent-tui's configuration, rules and sessions; skills in them
    may be read. `code_folders` hold the code that a start of agent-tui runs. `git_risk` says which
    settings git could follow in a folder, empty if harmless or trusted.
    `sandbox` tells what sandboxed commands can read and write.
    `find_linked` finds what in the working folders is settings of the user, as links elsewhere
    lead there, and one link to each. `find_names` finds the other names of a path, by links in the
    working folders: a file is protected as under each of them. `answers` keeps what was found of
    each name for as long as one call is judged; None to look every time.
    """

    workspace: Path
    added_folders: tuple[Path, ...] = ()
    own_folders: tuple[Path, ...] = ()
    code_folders: tuple[Path, ...] = ()
    scratch_folders: tuple[Path, ...] = ()
    home: Path | None = None
    git_risk: Callable[[Path], str] = git_risk
    sandbox: SandboxView = NO_VIEW
    find_linked: Callable[[], Mapping[Path, Path]] = dict[Path, Path]
    find_names: Callable[[Path], Iterable[Path]] = _has_one_name
    answers: dict[tuple[Path, tuple[Path, ...] | None], str] | None = None

    @property
    def secret_folder_names(self) -> tuple[str, ...]:
        """Names of folders that hold keys, wherever they are."""
        return tuple(sorted(SECRET_FOLDERS))

    @property
    def roots(self) -> tuple[Path, ...]:
        """The working folders, the workspace first."""
        return (self.workspace, *self.added_folders)

    def root_of(self, path: Path) -> Path | None:
        """The working folder that is `path` or contains it, compared by path components."""
        return next((root for root in self.roots if path.is_relative_to(root)), None)

    def is_inside(self, path: Path) -> bool:
        """Whether `path` is a working folder or below one."""
        return self.root_of(path) is not None

    def may_write_freely(self, path: Path) -> bool:
        """Whether `path` is covered by a mode that allows writing files."""
        return self.is_inside(path) or self.is_scratch(path)

    def is_scratch(self, path: Path) -> bool:
        """Whether commands have `path` for temporary files, and no folder of the user's is around.

        In a sandbox, these are its own. A project, the home folder or agent-tui's own files may be
        below ``/tmp``. They stay what they are.
        """
        confined = self.sandbox.find_temporary()
        return self._is_temporary(path, self.scratch_folders if confined is None else confined)

    @property
    def is_confined(self) -> bool:
        """Whether commands run in a sandbox."""
        return self.sandbox.find_temporary() is not None

    def _is_temporary(self, path: Path, folders: Sequence[Path]) -> bool:
        around = [folder for folder in folders if path.is_relative_to(folder)]
        kept = (*self.roots, *self.own_folders, *((self.home,) if self.home else ()))
        users = [folder for folder in kept if path.is_relative_to(folder)]
        return any(not any(user.is_relative_to(each) for user in users) for each in around)

    def why_by_names(self, path: Path, why_asks: Callable[[Path], str]) -> str:
        """What `why_asks` says of `path`, or of another name of it; empty if nothing.

        Args:
            path: Absolute, with links resolved.
            why_asks: Says something of a name, links not followed.
        """
        if why := why_asks(path):
            return why
        whys = map(why_asks, self.find_names(path))
        return next((f"{why}; it leads to {path}" for why in whys if why), "")

    def why_reading_asks(self, path: Path) -> str:
        """Why reading `path` always asks; empty if it does not."""
        return self.why_by_names(path, self._why_reading)

    def _why_reading(self, path: Path) -> str:
        return self._recall((path, None), lambda: self._find_why_reading(path))

    def _recall(
        self, key: tuple[Path, tuple[Path, ...] | None], find_why: Callable[[], str]
    ) -> str:
        if self.answers is None:
            return find_why()
        if key not in self.answers:
            self.answers[key] = find_why()
        return self.answers[key]

    def _find_why_reading(self, path: Path) -> str:
        names = [fold_name(part) for part in path.parts]
        if is_where_keys_are(names):
            return f"{path} is where keys are kept"
        if names and (
            _names_secret(path)
            or self._is_key_of_a_program(path)
            or is_settings_with_token(path, is_worked_in=self.is_inside(path))
        ):
            return f"{path} may contain keys or passwords"
        is_gits = ".git" in names or (is_git_settings_name(path) and is_inside_git(path))
        if is_gits and has_git_tokens(path):
            return f"{path} contains a token"
        if names[1:2] == ["proc"] and (names[-1] in _PROCESS_FILES or "fd" in names):
            return f"{path} exposes a running program"
        if names[1:2] == ["dev"] and not _READABLE_DEVICES.fullmatch(str(path)):
            return f"{path} is a device"
        is_skill = any(path.is_relative_to(own / _SKILLS_FOLDER) for own in self.own_folders)
        if self.is_own(path) and not is_skill:
            return f"{path} belongs to agent-tui"
        return ""

    def why_unseen(self, path: Path) -> str:
        """Why a tool must ask before it reads `path`, as commands cannot read it; empty if not."""
        is_skill = any(path.is_relative_to(own / _SKILLS_FOLDER) for own in self.own_folders)
        if self.is_inside(path) or is_skill or not self.sandbox.is_unseen(path):
            return ""
        return f"{path} is outside the folders that the sandbox shows"

    def _is_key_of_a_program(self, path: Path) -> bool:
        if _KEY_OF_A_PROGRAM.fullmatch(fold_name(path.name)) is None or self.is_inside(path):
            return False
        if self.home is None or not path.is_relative_to(self.home):
            return False
        return path.relative_to(self.home).parts[0].startswith(".")

    def why_writing_asks(self, path: Path, written: Iterable[Path] = ()) -> str:
        """Why changing `path` always asks; empty if it does not.

        Args:
            path: Absolute, with links resolved.
            written: What is written along with it.
        """
        together = tuple(written)

        def why_writing(name: Path) -> str:
            return self._recall((name, together), lambda: self._find_why_writing(name, together))

        return self.why_by_names(path, why_writing)

    def _find_why_writing(self, path: Path, written: tuple[Path, ...]) -> str:
        names = [fold_name(part) for part in path.parts]
        if (git := git_folder_around(path, written)) is not None:
            place = ".git" if fold_name(git.name) == ".git" else f"the git folder {git}"
            return f"{path} is in {place}, where files can make git run programs"
        if is_read_at_start(path):
            return f"{path} is run or read when programs start"
        if link := self._link_to(path):
            leads = "a variable names it" if path.is_relative_to(link) else f"{link} leads there"
            return f"{path} is run or read when programs start: {leads}"
        if _OWN_PROJECT_FOLDER in names:
            return f"{path} configures agent-tui"
        if self.is_own(path):
            return f"{path} belongs to agent-tui"
        return self._why_reading(path)

    def _is_code(self, path: Path) -> bool:
        """Whether `path` is in a folder of agent-tui's code that holds no working folder."""
        return any(
            path.is_relative_to(folder)
            for folder in self.code_folders
            if not any(root.is_relative_to(folder) for root in self.roots)
        )

    def _link_to(self, path: Path) -> Path | None:
        """A link of the user's through which programs read `path`; not one to a whole root."""
        linked = self.find_linked()
        places = (path, *path.parents) if linked else ()
        return next((linked[p] for p in places if p in linked and p not in self.roots), None)

    def why_changing_asks(self, path: Path, written: Iterable[Path] = ()) -> str:
        """Why changing `path` always asks, as a protected or a system file; empty if neither."""
        return self.why_writing_asks(path, written) or self.why_system_asks(path)

    def why_searching_asks(self, folder: Path) -> str:
        """Why searching all of `folder` asks: keys or sessions are below it; empty if none are."""
        home = self.home
        if home is not None and home.is_relative_to(folder) and folder != self.workspace:
            return f"{folder} contains the home folder and its keys"
        for own in self.own_folders:
            if own.is_relative_to(folder) and not self.workspace.is_relative_to(folder):
                return f"{folder} contains agent-tui's own files"
        names = [fold_name(part) for part in folder.parts]
        if names[1:2] == ["proc"]:
            return f"{folder} exposes running programs"
        for first, second in sorted(SECRET_PAIRS):
            if names[-1:] == [first] and path_exists(folder / second):
                return f"{folder / second} is where keys are kept"
        return self.why_reading_asks(folder)

    def why_system_asks(self, path: Path) -> str:
        """Why changing `path` can break the machine or agent-tui; empty if it cannot."""
        if self._is_code(path):
            return f"{path} is code that agent-tui runs at each start"
        is_free = self.may_write_freely(path) or self._is_temporary(path, self.scratch_folders)
        if is_free or _is_below(path, self.home):
            return ""
        is_system = len(path.parts) < 2 or fold_name(path.parts[1]) in _SYSTEM_FOLDERS
        return f"{path} is part of the system" if is_system else ""

    def why_git_asks(self, folder: Path) -> str:
        """Why git in `folder` may follow configuration that came with its files; empty if not."""
        if not self.is_inside(folder):
            return f"runs outside the folder: {folder}"
        for place in (folder, *folder.parents):
            if place in self.roots:
                break
            if is_file(place / "HEAD") or path_exists(place / ".git"):
                return f"{place} is a separate repository"
        doubt = self.git_risk(folder)
        return f"the folder is not trusted, and {doubt}" if doubt else ""

    def is_own(self, path: Path) -> bool:
        """Whether `path` is one of agent-tui's own files."""
        parts = [fold_name(part) for part in path.parts]
        for folder in self.own_folders:
            own = [fold_name(part) for part in folder.parts]
            if parts[: len(own)] == own:
                return True
        return False


def _names_secret(path: Path) -> bool:
    """Whether `path` is a file with keys by its name, or by its content if the name suggests that.

    A sentence is one only if there is a file.
    """
    has_space = any(character.isspace() for character in path.name)
    if is_secret_name(path.name):
        return not has_space or path_exists(path)
    return (may_hold_key(path.name) or is_data_name(path.name)) and holds_key(path)


def is_inside_git(path: Path) -> bool:
    """Whether `path` is a ``.git`` entry or another git folder, or inside one. Blocking."""
    return git_folder_around(path) is not None


def _is_below(path: Path, folder: Path | None) -> bool:
    return folder is not None and path.is_relative_to(folder)
