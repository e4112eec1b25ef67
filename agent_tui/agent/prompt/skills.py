"""Skills: folders with a ``SKILL.md`` that tells how some kind of work is done (agentskills.io)."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.agent.prompt.prompt_files import (
    PromptFileError,
    first_line,
    read_front_matter,
    read_prompt_bytes,
)
from agent_tui.permissions.project_files import SKILLS_FOLDERS, project_folders
from agent_tui.permissions.trust import FolderTrust

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
        name: What the model and the person call it by.
        path: Its ``SKILL.md``.
        source: Whose it is.
        description: What it is for, and when.
        argument_hint: What may follow ``/name``.
        is_for_model: Whether the model is told of it.
        is_for_person: Whether it is a command.
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
        """Where what the skill needs lies."""
        return self.path.parent


@dataclass(frozen=True, slots=True)
class FoundSkills:
    """The skills in force by name, and why other folders hold none."""

    by_name: Mapping[str, Skill]
    problems: tuple[tuple[Path, str], ...] = ()


def find_skills(cwd: Path, user_dir: Path, trust: FolderTrust) -> FoundSkills:
    """The skills in force in `cwd`: the nearest of a name, the person's own last. Blocking.

    Args:
        cwd: The workspace.
        user_dir: The person's own folder; ``skills`` in it is obeyed, as it is in the home folder.
        trust: Says which folders of the project are, and where the home folder is.
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


def parse_skill(data: bytes, path: Path, source: SkillSource) -> Skill:
    """What the ``SKILL.md`` at `path` says of itself.

    Its name is the folder's where it gives none that can be a command.

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
    """The folders that the person's own skills are in."""
    at_home = (home / folder for folder in SKILLS_FOLDERS) if home is not None else ()
    return (user_dir / "skills", *at_home)


def _files(cwd: Path, user_dir: Path, trust: FolderTrust) -> Iterator[tuple[Path, SkillSource]]:
    """Every ``SKILL.md`` that may be obeyed, those that count first."""
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
