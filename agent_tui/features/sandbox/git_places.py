"""What git's folders hold that a command could make lead elsewhere."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_tui.safe_paths import real_path
from agent_tui.tools.git.places import MARKS, are_of_git, leads_to, repositories_of
from agent_tui.tools.git.settings import (
    named_paths_in,
    read_text,
)

READ_IN_TREE: Final = (".gitignore", ".gitattributes", ".gitmodules", ".mailmap")
"""The files of a work tree that git reads without being told to."""

ALTERNATES: Final = ("objects/info/alternates", "objects/info/http-alternates")
"""Files that name further folders with objects. Git, or a client of a repository that is served,
reads what is there, and the file of this name there."""

ON_PATH: Final = "safe"
"""A folder that has shells run what is in ``bin``: their ``PATH`` begins with a way through it,
``.git/safe/../../bin``."""

_ANY_FORMAT: Final = re.compile(r"\bobjectformat\b", re.IGNORECASE)
_ID_FORMAT: Final = re.compile(
    r"^\[extensions\]\n(?:\t\w+ = .*\n)*\tobjectformat = (sha1|sha256)$",
    re.MULTILINE | re.IGNORECASE,
)
"""How git itself writes which ids a repository has."""


def is_git_folder(folder: Path) -> bool:
    """Whether git takes `folder` for a git folder, whatever its name is. Blocking."""
    return are_of_git([name for name in MARKS if os.path.lexists(folder / name)])


def find_stores(alternates: Path, lines: Iterable[bytes]) -> Iterator[Path]:
    """The folders with objects that `lines` of the file `alternates` name, links not followed.

    As git finds them (``link_alt_odb_entries``). One in quotation marks is returned with these.

    Raises:
        ValueError: A line cannot be a path.
    """
    objects = real_path(alternates.parent.parent)
    for line in lines:
        if line and not line.startswith(b"#"):
            if b"\0" in line:
                raise ValueError(line)
            yield Path(os.path.normpath(objects / os.fsdecode(line)))


def trees_named(settings: Path, text: str) -> Iterator[Path]:
    """As `trees_in`, for a file with this `text`."""
    return (settings.parent / value for value, kind in named_paths_in(text) if kind == "tree")


def index_stamp(top: Path) -> int:
    """The ``ctime`` of the index of the work tree at `top`; changes with it, 0 without one."""
    with suppress(OSError, StopIteration):
        return (next(repositories_of(top / ".git")) / "index").stat().st_ctime_ns
    return 0


def id_bytes_of(git: Path) -> int:
    """The length of an object's id in the git folder `git`; 0 if its settings could say either."""
    try:
        text = read_text((leads_to(git / "commondir") or git) / "config")
    except OSError:
        return 20
    mentions = _ANY_FORMAT.findall(text)
    stated = _ID_FORMAT.search(text) if len(mentions) == 1 else None
    return {"sha1": 20, "sha256": 32}[stated[1]] if stated else 0 if mentions else 20


def leads_to_work_tree(tree: Path, places: Sequence[Path]) -> bool:
    """Whether a linked work tree's folder `tree` names one in `places`, none, or its own.

    ``git worktree repair`` writes a ``.git`` where the file ``gitdir`` leads.
    """
    entry = leads_to(tree / "gitdir")
    return (
        entry is None
        or any(entry.is_relative_to(place) for place in places)
        or not os.path.lexists(entry.parent)
        or leads_to(entry) == real_path(tree)
    )
