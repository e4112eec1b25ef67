"""Tells whether what git follows could run programs, or have git look or write elsewhere."""

import errno
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, assert_never

from agent_tui.features.sandbox.file_contents import FileVersion
from agent_tui.features.sandbox.git_places import ON_PATH, find_stores, trees_named
from agent_tui.features.sandbox.git_replacements import (
    is_replacement,
    without_replacements,
)
from agent_tui.features.sandbox.git_settings import find_doubts, settings_in
from agent_tui.safe_paths import is_file, is_folder, is_link, real_path
from agent_tui.tools.files.folder_entries import entries_in
from agent_tui.tools.git.places import (
    entry_named,
    is_submodules,
    leads_to,
    place_named,
    repositories_of,
    trees_in,
)
from agent_tui.tools.git.settings import (
    MADE_BY_GIT,
    MERGE_STRATEGIES,
    MOST_BYTES,
    WORK_TREE,
    ControlKind,
    decode,
    lines_of,
    odd_settings,
    values_in,
)

_DRIVER: Final = re.compile(r"(?:^|\s)(?:filter|merge|diff)=(?!lfs(?:\s|$))", re.MULTILINE)
_VALID_HEAD: Final = re.compile(rb"ref:\s*refs/|[0-9a-f]{40}", re.IGNORECASE)
"""How it begins. Git takes a folder without such a file for none of its own, and looks around it
for another repository (``validate_headref``)."""

_STRATEGIES: Final = b"(?:" + "|".join(MERGE_STRATEGIES).encode() + b")"
STEP_LINES: Final = {
    "rebase-merge/git-rebase-todo": re.compile(
        rb"\s*(?:(?:pick|p|reword|r|edit|e|squash|s|fixup|f|drop|d|label|l|reset|t|merge|m"
        rb"|update-ref|u)[ \t].*|noop|break|b|[^\w\s].*)?\s*"
    ),
    "rebase-merge/strategy": re.compile(_STRATEGIES),
    "rebase-merge/strategy_opts": re.compile(rb"(?:\s*--[a-z][a-z-]*(?:=[\w./%+-]*)?)*\s*"),
    **dict.fromkeys(
        ("rebase-merge/gpg_sign_opt", "rebase-apply/gpg_sign_opt"), re.compile(rb"(?:-S[\w.@+-]*)?")
    ),
    "sequencer/opts": re.compile(
        rb"\[options\]|\tstrategy = " + _STRATEGIES + rb"|\t(?!strategy )[a-z-]+ = [^\\]*"
    ),
    "rebase-apply/apply-opt": re.compile(
        rb"(?:\s*'(?:--(?:whitespace|directory|exclude|include)=[^']*(?:'\\['!]'[^']*)*"
        rb"|--(?:reject|ignore-whitespace|ignore-space-change)|-[Cp]\d+)')*"
    ),
    **dict.fromkeys(
        ("rebase-merge/msgnum", "rebase-merge/end", "rebase-apply/next", "rebase-apply/last"),
        re.compile(rb"\d*"),
    ),
    **dict.fromkeys(
        ("rebase-merge/author-script", "rebase-apply/author-script"),
        re.compile(rb"(?:GIT_AUTHOR_(?:NAME|EMAIL|DATE)='(?:[^']|'\\['!]')*')?"),
    ),
    "BISECT_START": re.compile(rb"(?!-).*"),
    "BISECT_NAMES": re.compile(rb"(?:\s|'[^'!]*'|[\w./*-])*"),
}
"""Files of unfinished work that can run something, and the lines in them that do not.

``git rebase --continue`` runs the ``exec`` lines of its list. It, and ``git cherry-pick
--continue``, start a merge strategy by its name, even if a slash in it leads to a program of the
work tree, and pass its options. Earlier versions evaluated these, and the option that has commits
signed, in a shell; ``git rebase --apply`` passes that option to ``git am``. ``git am`` passes its
options to ``git apply``, one of which writes a file anywhere. The prompts of shells evaluate the
numbers of steps (``git-prompt.sh``). Git reads three values from the author's script
(``read_author_script``), but where git is a script itself, a shell runs it. Before git 2.35 a shell
evaluated the names of a bisection; its start becomes an argument of ``git checkout``.
Nothing is run by ``sequencer/todo``, which may only pick or revert, by the rest of
``rebase-apply``, ``MERGE_MSG`` and the like (``sequencer.c``, ``builtin/am.c``)."""

SHALLOW: Final = "shallow"
GRAFTS: Final = ("info/grafts", SHALLOW)
"""Files that change which parents commits have (``gitrepository-layout``)."""

_ALWAYS: Final = {
    "hook": "git runs it",
    "way": "it leads to where commands write unchecked",
    "data": "",
}


def why_obeyed(
    path: Path,
    kind: ControlKind,
    roots: Iterable[Path],
    before: bytes | None,
    now: FileVersion | None,
) -> str:
    """What git would do because of `path`; empty if it is as git itself creates it.

    A command may change the file meanwhile: it is not read again.

    Args:
        path: The file.
        kind: Its purpose.
        roots: Where repositories may be.
        before: Its previous content; settings in it are the user's.
        now: The content that is judged; None if it could not be read, or is gone.
    """
    match kind:
        case "hook" | "way" | "data":
            return _ALWAYS[kind]
        case "entry" | "alternates":
            find_why = _why_elsewhere if kind == "entry" else _why_other_objects
            return find_why(path, roots, before, now)
        case "pointer":
            # Git creates one for a worktree, inside the repository that it points to.
            above = path.parent.parent
            is_own = above.name == "worktrees" and _place_led_to(path, now) == above.parent
            return "" if is_own else "git would look elsewhere"
        case "attributes":
            return "git would run drivers for files" if _names_drivers(now) else ""
        case "config":
            return next(iter(_foreign_settings(path, _settings_before(path, before), now)), "")
        case "step":
            return _why_odd_steps(path, before, now)
        case "replacement" | "graft":
            return _why_shown_otherwise(path, kind, before, now)
        case "head":
            return _why_no_head(before, now)
        case "irregular" | "shared":
            return _why_irregular(path)
        case _:
            assert_never(kind)


def _why_elsewhere(
    path: Path, roots: Iterable[Path], before: bytes | None, now: FileVersion | None
) -> str:
    """As `why_obeyed`. What led to a repository still must, unless the work tree is gone, too."""
    is_there, folder = os.path.lexists(path), path.parent
    if now is None:  # it may be a folder
        target = None if is_link(path) else next(repositories_of(path), None)
    else:
        target = None if now.is_link else _led_to(path, now.content)
    if _led_to(path, before) not in (None, target):
        is_left = is_there or (folder == real_path(folder) and entries_in(folder))
        return "git would look elsewhere" if is_left else ""
    is_near = target is not None and any(target.is_relative_to(root) for root in roots)
    return "" if is_near or not is_there else "git would look elsewhere"


def _led_to(path: Path, before: bytes | None) -> Path | None:
    """The git folder that `path` led to with the content `before`; None if that is gone."""
    with suppress(ValueError):
        led_to = place_named(path, decode(before or b""))
        return led_to if led_to is not None and is_folder(led_to) else None
    return None


def _why_shown_otherwise(
    path: Path, kind: Literal["replacement", "graft"], before: bytes | None, now: FileVersion | None
) -> str:
    if kind == "graft":
        return "git would show another history" if _has_graft(path, before, now) else ""
    is_one = is_replacement(path, before, b"" if now is None else now.content)
    return "git would show other objects" if is_one else ""


def _has_graft(path: Path, before: bytes | None, now: FileVersion | None) -> bool:
    """Whether a commit has other parents than `before`. Git itself extends a list of shallow ones.

    One that cannot be read counts, as git may be able to by then.
    """
    if path.name == SHALLOW and before is not None:
        return False
    try:
        return bool(_new_lines(before, now))
    except OSError:
        return True


def _why_other_objects(
    path: Path, roots: Iterable[Path], before: bytes | None, now: FileVersion | None
) -> str:
    """As `why_obeyed`. A new folder with objects must be that of a repository in `roots`.

    That one stays known whatever becomes of what is in it: nobody looks elsewhere for a pipe, or
    for further files that name such folders.
    """
    roots = tuple(roots)
    with suppress(OSError, ValueError):
        stores = map(real_path, find_stores(path, _new_lines(before, now)))
        if path.name == "alternates" and all(
            store.name == "objects"
            and (store.parent.name == ".git" or store.parent in roots)
            and any(map(store.is_relative_to, roots))
            for store in stores
        ):
            return ""
    return "git would read objects elsewhere"


def _new_lines(before: bytes | None, now: FileVersion | None) -> set[bytes]:
    """The lines that a file that git reads has `now`, and not `before`.

    Raises:
        OSError: As `_bytes_of`.
    """
    return set(_bytes_of(now).split(b"\n")) - set((before or b"").split(b"\n")) - {b""}


def _place_led_to(path: Path, now: FileVersion | None) -> Path | None:
    with suppress(OSError, ValueError):
        return place_named(path, decode(_bytes_of(now)))
    return None


def _bytes_of(now: FileVersion | None) -> bytes:
    """The content of a file that git reads.

    Raises:
        OSError: It is a link, could not be read, or is longer than any of git's.
    """
    if now is None or now.is_link or len(now.content) > MOST_BYTES:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return now.content


def _why_no_head(before: bytes | None, now: FileVersion | None) -> str:
    with suppress(OSError):
        is_link = now is not None and now.is_link
        if before is None or is_link or _VALID_HEAD.match(_bytes_of(now)):
            return ""
    return "git would find no repository"


def _why_irregular(path: Path) -> str:
    if is_folder(path) and not is_link(path):
        if path.name == ON_PATH:
            return "shells would run programs of the project"
        return "its path is too long to look into it"
    # Git writes its index, logs and messages through a link, and hangs on a pipe.
    is_pipe = not (is_link(path) or is_file(path))
    return "git would wait for it" if is_pipe else "git would write elsewhere"


def _foreign_settings(config: Path, before: bytes | None, now: FileVersion | None) -> list[str]:
    """The lines of `config` that git itself does not write and that could run a program.

    Without those that were there `before`.
    """
    try:
        if now is not None and now.is_link:
            return ["git would look elsewhere"]
        content, known = _bytes_of(now), settings_in(before)
        odd = [
            doubt
            for name, doubt, line in odd_settings(config, content)
            if line not in known and not _is_by_git(name, config, decode(content))
        ]
        if before is not None:
            odd += find_doubts(decode(content), decode(before))
        return odd
    except (OSError, UnicodeDecodeError):
        return ["it cannot be read"]


def plain_content(
    path: Path, kind: ControlKind, before: bytes | None, now: FileVersion | None
) -> bytes:
    """The lines of a "config" or "step" that run nothing, and those of `before`.

    Of a "replacement", the references that replace nothing. If it is unreadable, `before`.
    """
    if kind == "replacement":
        return without_replacements(path, before, b"" if now is None else now.content)
    try:
        content = _bytes_of(now)
    except OSError:
        return before or b""
    if kind == "step":
        odd = set(_odd_steps(content, path, before))
        return b"".join(
            line for line in content.splitlines(True) if line.rstrip(b"\r\n") not in odd
        )
    before = _settings_before(path, before)
    known = settings_in(before)
    text = decode(content)
    if before is not None and find_doubts(text, decode(before)):
        return before  # a remote must not be left without its address
    return "\n".join(
        line.text
        for line in lines_of(text)
        if line.is_plain or line.setting in known or _is_by_git(line.name, path, text)
    ).encode("utf-8", "surrogateescape")


def _settings_before(path: Path, before: bytes | None) -> bytes | None:
    """What the settings at `path` are compared with: only a new ``config`` is a new repository's.

    One of a work tree, or that others include, belongs to a repository that was there before.
    """
    return b"" if before is None and path.name != "config" else before


def _why_odd_steps(path: Path, before: bytes | None, now: FileVersion | None) -> str:
    try:
        odd = _odd_steps(_bytes_of(now), path, before)
    except OSError:
        return "git would run what cannot be read"
    return f"git would run {odd[0].decode('utf-8', 'backslashreplace').strip()}" if odd else ""


def _odd_steps(content: bytes, path: Path, before: bytes | None) -> list[bytes]:
    """The lines of the `content` of `path` that run something and were not there `before`."""
    plain = next(lines for name, lines in STEP_LINES.items() if path.match(name))
    known = set((before or b"").splitlines())
    lines = content.splitlines()
    return [line for line in lines if line not in known and not plain.fullmatch(line)]


def _is_by_git(name: str | None, config: Path, text: str) -> bool:
    """Whether git itself writes the setting `name` as it is in `config`, which has this `text`.

    Git names the work tree of a submodule alone. It counts if it refers back to the repository,
    which a command cannot have a folder elsewhere do, and no link is on the way there.
    """
    if name == WORK_TREE:
        tree, git = entry_named(config, values_in(text)), config.parent
        trees = (*trees_named(config, text), *trees_in(git / "config"))
        named = {Path(os.path.normpath(each)) / ".git" for each in trees}
        is_plain = tree is not None and named == {tree} and leads_to(tree) == real_path(git)
        return is_plain and is_submodules(git)
    return name in MADE_BY_GIT


def _names_drivers(now: FileVersion | None) -> bool:
    try:
        return _DRIVER.search(decode(_bytes_of(now))) is not None
    except OSError:
        return True
