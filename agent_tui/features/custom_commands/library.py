"""Prompt files in force in a folder: the user's own and those of a trusted project."""

import os
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.agent.prompt.mentions import find_mentions
from agent_tui.agent.prompt.prompt_files import (
    SKILL_FILE,
    PromptFileError,
    find_skills,
    read_prompt_bytes,
)
from agent_tui.errors import ConfigError
from agent_tui.features.custom_commands.prompt_text import (
    PromptText,
    expand_prompt,
    parse_prompt_file,
)
from agent_tui.permissions.project_files import COMMANDS_FOLDERS, SKILLS_FOLDERS, project_folders
from agent_tui.permissions.trust import NOT_TRUSTED, FolderTrust
from agent_tui.safe_paths import is_file
from agent_tui.tools.files.protected import is_secret_name

PromptSource: TypeAlias = Literal["user", "project"]

MAX_FILES = 2_000
"""Most files read from one folder: a menu is never larger."""

MAX_FOLDERS = 200
MAX_DEPTH = 4
"""Deepest nesting of folders: ``/a:b:c:d``."""

_SUFFIX = ".md"
_WITHHELD = f"is ignored: {NOT_TRUSTED}. /trust changes that"
_NAME_PART = re.compile(r"\w[\w-]*")


@dataclass(frozen=True, slots=True)
class PromptFile:
    """One prompt file.

    Attributes:
        name: What is typed after the slash: ``review``, or ``git:commit`` for git/commit.md.
        path: Where it is.
        source: Whether it is the user's or the project's.
        description: One line.
        argument_hint: What may follow the name.
        is_skill: Whether it is a skill, whose text is pinned beside the message.
    """

    name: str
    path: Path
    source: PromptSource
    description: str
    argument_hint: str
    is_skill: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that makes no command; `why` follows its path.

    `name` is the command it would have been; empty if its name is invalid.
    """

    path: Path
    why: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.path} {self.why}"


@dataclass(frozen=True, slots=True)
class FoundPrompts:
    """The commands in force, and the files that make none."""

    files: tuple[PromptFile, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def find_file(self, name: str) -> PromptFile | None:
        """The file behind the command `name`."""
        return next((file for file in self.files if file.name == name.lower()), None)


_Stamp: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _ReadFile:
    """A file's content by stamp (mtime, size, inode); a string says why reading failed."""

    stamp: _Stamp
    said: PromptText | str


@dataclass(slots=True)
class _Search:
    """The state of one search through all folders."""

    known: dict[Path, _ReadFile]
    seen: dict[Path, _ReadFile] = field(default_factory=dict[Path, _ReadFile])
    files: dict[str, PromptFile] = field(default_factory=dict[str, PromptFile])
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])
    folders: int = 0


class PromptLibrary:
    """Finds prompt files, and rereads only those that changed.

    Args:
        user_dir: The user's own folder; ``commands`` in it and in the home folder is always read.
        trust: Says which other folders are read.
        taken: Names of built-in commands, which files cannot use.
    """

    def __init__(self, user_dir: Path, trust: FolderTrust, taken: Set[str]) -> None:
        self._user_dir = user_dir
        self._trust = trust
        self._taken = taken
        self._known: dict[Path, _ReadFile] = {}

    def find(self, cwd: Path) -> FoundPrompts:
        """The commands in force in `cwd`. Blocking; a folder that is not trusted is not listed.

        Among files with one name, the project's wins over the user's, the one nearest to `cwd` over
        others, and a prompt file over a skill. No file replaces a built-in command.
        """
        search = _Search(self._known)
        home = self._trust.home
        at_home = [home / kind for kind in COMMANDS_FOLDERS] if home is not None else []
        own = (*at_home, self._user_dir / "commands")
        for folder in own:
            self._take_folder(search, folder, "user")
        for project in project_folders(cwd):
            for kind in COMMANDS_FOLDERS:
                if project / kind not in own:
                    self._take_folder(search, project / kind, "project")
        self._take_skills(search, cwd)
        self._known = search.seen
        by_name = sorted(search.files.values(), key=lambda file: (file.source, file.name))
        return FoundPrompts(tuple(by_name), tuple(search.left_out))

    def find_withheld(self, name: str, cwd: Path) -> LeftOut | None:
        """The file that would be the command `name` in `cwd` if its folder was trusted.

        Folders are not listed and files not read: only paths with that name are looked at.
        """
        inner = f"{name.replace(':', '/')}{_SUFFIX}"
        kinds = {folder: inner for folder in COMMANDS_FOLDERS}
        kinds |= {folder: f"{name}/{SKILL_FILE}" for folder in SKILLS_FOLDERS}
        for project in reversed(project_folders(cwd)):
            for kind, file in kinds.items():
                is_trusted = self._trust.state_of(project / kind) == "trusted"
                if not is_trusted and is_file(project / kind / file):
                    return LeftOut(project / kind / file, _WITHHELD, name)
        return None

    def message(self, name: str, argument: str, cwd: Path) -> str | None:
        """The message for ``/name argument`` in `cwd`; None if no file makes that command.

        Blocking; folders and file are read as they are now.

        Raises:
            ConfigError: The file cannot be used, its message is empty, or a project's file would
                attach a file that is outside the project and that the user did not name.
        """
        found = self.find(cwd)
        if (file := found.find_file(name)) is not None:
            if file.is_skill:
                return f"/{file.name} {argument}".rstrip()
            text = _expand(file, argument)
            if file.source == "project":
                self._refuse_to_take_along(file.path, text, argument, cwd)
            return text
        for one in found.left_out:
            if one.name == name.lower() and one.name not in self._taken:
                raise ConfigError(f"{one}.")
        return None

    def _refuse_to_take_along(self, file: Path, text: str, argument: str, cwd: Path) -> None:
        path = _find_foreign_mention(text, argument, cwd, self._trust.folder_to_ask_about(cwd))
        if path is not None:
            problem = f"{file} was not sent: it would attach {path}, which is outside the project"
            raise ConfigError(f"{problem} or may contain keys.", "Attach it yourself with @.")

    def _take_folder(self, search: _Search, folder: Path, source: PromptSource) -> None:
        """Add the files of one folder; of two files with one name, the first wins."""
        own: dict[str, PromptFile] = {}
        search.folders = 0
        for number, (parts, path) in enumerate(self._markdown_files(search, folder, source, ())):
            if number == MAX_FILES:
                search.left_out.append(LeftOut(folder, f"has more than {MAX_FILES:,} prompt files"))
                break
            name = ":".join(parts).lower() if all(map(_NAME_PART.fullmatch, parts)) else ""
            if why := self._why_no_name(name, own):
                search.left_out.append(LeftOut(path, why, name))
                continue
            match self._read(search, path):
                case PromptText(description, hint):
                    own[name] = PromptFile(name, path, source, description, hint)
                case str(why):
                    search.left_out.append(LeftOut(path, why, name))
                case None:
                    pass
        for name in sorted(own.keys() & search.files.keys()):
            other = search.files[name]
            whose = "this project" if other.source == "user" else "a nearer folder"
            search.left_out.append(
                LeftOut(other.path, f"is overridden by /{name} of {whose}", name)
            )
        search.files |= own

    def _take_skills(self, search: _Search, cwd: Path) -> None:
        """Add the skills for the user whose name no prompt file has."""
        found = find_skills(cwd, self._user_dir, self._trust)
        search.left_out += [
            LeftOut(path, why, path.parent.name.lower()) for path, why in found.problems
        ]
        for name, skill in found.by_name.items():
            if not skill.is_for_person:
                continue
            other = search.files.get(name)
            if name in self._taken:
                why = f"is not a command (the model can use it): /{name} is built in"
                search.left_out.append(LeftOut(skill.path, why, name))
            elif other is not None:
                why = f"is overridden by {other.path}, which is /{name}"
                search.left_out.append(LeftOut(skill.path, why, name))
            else:
                hint = skill.argument_hint or "[task]"
                search.files[name] = PromptFile(
                    name, skill.path, skill.source, skill.description, hint, is_skill=True
                )

    def _why_no_name(self, name: str, own: Mapping[str, PromptFile]) -> str:
        """Why a file cannot be the command `name`; empty if it can."""
        if not name:
            return "needs a name made of letters, digits, - and _ to be a command"
        if name in self._taken:
            return f"is ignored: /{name} is a built-in command"
        return f"is ignored: {own[name].path.name} is already /{name}" if name in own else ""

    def _markdown_files(
        self, search: _Search, folder: Path, source: PromptSource, above: tuple[str, ...]
    ) -> Iterator[tuple[tuple[str, ...], Path]]:
        """Yield the files of `folder` in order, then those of its subfolders, with name parts.

        `above` are the names of the folders between the first one and its files.
        """
        if not self._may_enter(search, folder, source, len(above)):
            return
        try:
            with os.scandir(folder) as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            search.left_out.append(LeftOut(folder, f"cannot be listed: {error.strerror}"))
            return
        shown = [entry for entry in entries if not entry.name.startswith(".")]
        for entry in shown:
            if not entry.name.endswith(_SUFFIX) or not _leads_to(entry, "file"):
                continue
            path = folder / entry.name
            if source == "project" and entry.is_symlink() and (why := self._trust.why_not(path)):
                search.left_out.append(LeftOut(path, f"is ignored: {why}"))
            else:
                yield (*above, entry.name.removesuffix(_SUFFIX)), path
        for entry in shown:
            if _leads_to(entry, "folder"):
                inner = (*above, entry.name)
                yield from self._markdown_files(search, folder / entry.name, source, inner)

    def _may_enter(self, search: _Search, folder: Path, source: PromptSource, depth: int) -> bool:
        """Whether to list a folder that is `depth` levels below the first one."""
        why = ""
        if source == "project" and self._trust.state_of(folder) != "trusted":
            if depth == 0:  # the user was asked about this folder, or will be
                return False
            why = f"is ignored: {NOT_TRUSTED}"
        elif depth >= MAX_DEPTH:
            why = f"is more than {MAX_DEPTH} folders deep"
        elif search.folders >= MAX_FOLDERS:
            if search.folders > MAX_FOLDERS:
                return False
            why = f"is ignored, as are all others: only {MAX_FOLDERS} folders are read"
            search.folders += 1
        if why:
            search.left_out.append(LeftOut(folder, why))
            return False
        search.folders += 1
        return True

    def _read(self, search: _Search, path: Path) -> PromptText | str | None:
        """The content of a file, or why it cannot be used; None if it is gone."""
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            known = search.known.get(path)
            if known is None or known.stamp != stamp:
                known = _ReadFile(stamp, _description_of(path))
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        search.seen[path] = known
        return known.said


def _expand(file: PromptFile, argument: str) -> str:
    try:
        text = expand_prompt(parse_prompt_file(read_prompt_bytes(file.path)).body, argument)
    except PromptFileError as error:
        raise ConfigError(f"{file.path} {error}.") from error
    except OSError as error:
        raise ConfigError(f"{file.path} cannot be read: {error.strerror}.") from error
    if not text.strip():
        hint = f"/{file.name} {file.argument_hint}".rstrip()
        raise ConfigError(f"/{file.name} needs an argument.", f"Usage: {hint}")
    return text


def _description_of(path: Path) -> PromptText | str:
    try:
        said = parse_prompt_file(read_prompt_bytes(path))
    except PromptFileError as error:
        return str(error)
    return PromptText(said.description, said.argument_hint, "")  # bodies are read when sent


def _leads_to(entry: os.DirEntry[str], kind: Literal["file", "folder"]) -> bool:
    try:
        return entry.is_file() if kind == "file" else entry.is_dir()
    except OSError:  # a cycle of links
        return False


def _find_foreign_mention(text: str, argument: str, cwd: Path, project: Path) -> Path | None:
    """The first file that `text` would attach though it is neither the user's nor the project's.

    A prompt file of a project could mention keys (``@~/.ssh/id_rsa``), which would then be sent
    without a question.

    Args:
        text: What the prompt file made of `argument`.
        argument: What the user wrote; its mentions are allowed.
        cwd: What paths are relative to.
        project: Files below it are allowed, except those with names of secrets.
    """
    by_person = {mention.path for mention in find_mentions(argument, cwd)}
    for mention in find_mentions(text, cwd):
        path = mention.path
        is_of_project = path.is_relative_to(project) and not is_secret_name(path.name)
        if path not in by_person and not is_of_project:
            return path
    return None
