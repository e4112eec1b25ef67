"""Markdown files with front matter, and the skills among them."""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.permissions.project_files import SKILLS_FOLDERS, project_folders
from agent_tui.permissions.trust import FolderTrust
from agent_tui.regular_files import open_regular_file

MAX_FILE_BYTES = 100_000
"""A prompt of 25,000 tokens: no real prompt file is larger."""

_FENCE = "---"
_KEY = re.compile(r"([A-Za-z][\w-]*)\s*:(?:\s+(.*))?$")
_BLOCK_MARKS = ("|", ">", "|-", ">-", "|+", ">+")


class PromptFileError(ValueError):
    """A prompt file that cannot be used; the text follows the file's name and says why."""


def read_front_matter(
    data: bytes, keys: Collection[str], lists: Collection[str] = ()
) -> tuple[dict[str, str], str]:
    """Read the front matter of a Markdown file, and the text below it.

    Args:
        data: The file.
        keys: Those to read; a value of several lines is joined to one.
        lists: Those whose values may also be lines ``- value``, which are joined by commas.

    Raises:
        PromptFileError: It is too large, binary, not UTF-8 or empty, or its front matter is
            invalid.
    """
    if len(data) > MAX_FILE_BYTES:
        raise PromptFileError(f"is larger than {MAX_FILE_BYTES:,} bytes")
    if b"\0" in data:
        raise PromptFileError("is binary, not text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PromptFileError(f"is not UTF-8 text (byte {error.start:,})") from error
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    known: dict[str, str] = {}
    if lines[0].rstrip() == _FENCE:
        end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), 0)
        if not end:
            raise PromptFileError("begins with --- but has no closing ---")
        known = _front_matter(lines[1:end], keys, lists)
        lines = lines[end + 1 :]
    body = "\n".join(lines).strip("\n")
    if not body.strip():
        raise PromptFileError("is empty")
    return known, body


def read_prompt_bytes(path: Path) -> bytes:
    """The bytes of a regular file, cut one byte beyond `MAX_FILE_BYTES`.

    Raises:
        OSError: It cannot be read.
    """
    with open_regular_file(path) as file:
        return file.read(MAX_FILE_BYTES + 1)


def _front_matter(
    lines: list[str], keys: Collection[str], lists: Collection[str]
) -> dict[str, str]:
    """The values of `keys` and `lists`; other keys may have values of several lines."""
    known: dict[str, str] = {}
    key = ""
    for number, line in enumerate(lines, start=2):
        is_continued = line[:1] in (" ", "\t", "-")
        if not line.strip() or line.startswith("#"):
            continue
        if is_continued and key and (key not in keys or line[0] != "-"):
            if key in lists:
                known[key] += f",{line.strip().removeprefix('-').strip()}"
            elif key in keys:
                known[key] += f" {line}"
            continue
        found = None if is_continued else _KEY.match(line.rstrip())
        if found is None:
            raise PromptFileError(f"line {number}: front matter must be key: value lines")
        key, value = found[1].lower(), (found[2] or "").strip()
        if key in keys and key in known:
            raise PromptFileError(f"line {number}: {key} appears twice")
        if key in keys or key in lists:
            known[key] = "" if value in _BLOCK_MARKS else value
    return {
        key: value if key in lists else " ".join(_unquote(value.strip()).split())
        for key, value in known.items()
    }


def _unquote(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value


def first_line(body: str) -> str:
    """The first line with text, without heading marks."""
    line = next(line for line in body.split("\n") if line.strip())
    return " ".join(line.strip().lstrip("#").split())


SkillSource: TypeAlias = Literal["user", "project"]

SKILL_FILE = "SKILL.md"
MOST_SKILLS = 200
_MOST_FOLDERS = 1_000
_DESCRIPTION_CHARS = 1_024
"""The most that the specification of skills allows."""

_NAME = re.compile(r"\w[\w-]{0,63}")
_KEYS = ("name", "description", "argument-hint", "disable-model-invocation", "user-invocable")


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill.

    Attributes:
        name: Its name for the model and the user.
        path: Its ``SKILL.md``.
        source: Whether it is the user's or the project's.
        description: What it is for, and when.
        argument_hint: What may follow ``/name``.
        is_for_model: Whether the model sees it in the prompt.
        is_for_person: Whether ``/name`` is a command.
    """

    name: str
    path: Path
    source: SkillSource
    description: str
    argument_hint: str = ""
    is_for_model: bool = True
    is_for_person: bool = True

    @property
    def folder(self) -> Path:
        """The folder with the files that the skill needs."""
        return self.path.parent


@dataclass(frozen=True, slots=True)
class FoundSkills:
    """The skills in force by name, and why other folders have none."""

    by_name: Mapping[str, Skill]
    problems: tuple[tuple[Path, str], ...] = ()


def find_skills(cwd: Path, user_dir: Path, trust: FolderTrust) -> FoundSkills:
    """Find the skills in force in `cwd`; for one name, the nearest wins. Blocking.

    Args:
        cwd: The workspace.
        user_dir: The user's own folder; ``skills`` in it and in the home folder is always read.
        trust: Says which project folders are read, and where the home folder is.
    """
    by_name: dict[str, Skill] = {}
    problems: list[tuple[Path, str]] = []
    for path, source in _files(cwd, user_dir, trust):
        try:
            skill = parse_skill(read_prompt_bytes(path), path, source)
        except PromptFileError as error:
            problems.append((path, str(error)))
        except OSError as error:
            problems.append((path, f"cannot be read: {error.strerror}"))
        else:
            if skill.name not in by_name and len(by_name) == MOST_SKILLS:
                problems.append((path, f"is ignored: only the first {MOST_SKILLS} are used"))
            else:
                by_name.setdefault(skill.name, skill)
    return FoundSkills(by_name, tuple(problems))


def find_withheld_skills(cwd: Path, trust: FolderTrust) -> dict[str, Path]:
    """The project's skills that are not in force because their folder is not trusted. Blocking.

    Returns:
        Their files by the names of their folders; nothing in them is read.
    """
    folders = (project / kind for project in project_folders(cwd) for kind in SKILLS_FOLDERS)
    withheld = (folder for folder in folders if trust.state_of(folder) != "trusted")
    files = (file for folder in withheld for file in _in_folder(folder))
    return {file.parent.name.lower(): file for file in files}


def parse_skill(data: bytes, path: Path, source: SkillSource) -> Skill:
    """Parse the ``SKILL.md`` at `path`.

    If its name cannot be a command, the folder's name is used.

    Raises:
        PromptFileError: It cannot be used.
    """
    known, body = read_front_matter(data, _KEYS)
    name = known.get("name") or path.parent.name
    name = (name if _NAME.fullmatch(name) else path.parent.name).lower()
    if not _NAME.fullmatch(name):
        raise PromptFileError("needs a name made of letters, digits, - and _")
    return Skill(
        name=name,
        path=path,
        source=source,
        description=(known.get("description") or first_line(body))[:_DESCRIPTION_CHARS],
        argument_hint=known.get("argument-hint", ""),
        is_for_model=known.get("disable-model-invocation", "").lower() != "true",
        is_for_person=known.get("user-invocable", "").lower() != "false",
    )


def skill_folders(user_dir: Path, home: Path | None) -> tuple[Path, ...]:
    """The folders of the user's own skills."""
    at_home = (home / folder for folder in SKILLS_FOLDERS) if home is not None else ()
    return (user_dir / "skills", *at_home)


def _files(cwd: Path, user_dir: Path, trust: FolderTrust) -> Iterator[tuple[Path, SkillSource]]:
    """Every ``SKILL.md`` that may be read, those with precedence first."""
    own = skill_folders(user_dir, trust.home)
    for project in reversed(project_folders(cwd)):
        for kind in SKILLS_FOLDERS:
            if project / kind not in own and trust.state_of(project / kind) == "trusted":
                for file in filter(trust.may_obey, _in_folder(project / kind)):
                    yield file, "project"
    for folder in own:
        for file in _in_folder(folder):
            yield file, "user"


def _in_folder(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as scanned:
            names = sorted(entry.name for entry in scanned)
    except OSError:
        return
    for name in names[:_MOST_FOLDERS]:
        file = folder / name / SKILL_FILE
        if not name.startswith(".") and _is_file(file):
            yield file


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False
