"""Where git keeps a repository, what it follows there, and whether that could run programs.

All of it is found without running git.

Git runs what ``core.fsmonitor``, filters, aliases, hooks and many more settings name. So this uses
an allowlist: settings are harmless if they hold only what is known to name no program and no other
file; anything else is a doubt.
"""

import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, assert_never

from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import git_entry, is_file, is_folder, is_link

ControlKind: TypeAlias = Literal[
    "entry",
    "hook",
    "config",
    "pointer",
    "attributes",
    "step",
    "head",
    "irregular",
    "shared",
    "way",
]
"""Kinds: a ``.git`` that is a file or a link; a hook; settings; a pointer to more of the
repository; attributes, which select drivers for files; the next steps of an unfinished rebase,
cherry-pick or bisection; a ``HEAD`` as git keeps it, which runs nothing; in a git folder, what is
not as git keeps it, and a file with further names (`git_state`); a link to where commands write
unchecked, perhaps to a repository."""

MAX_CONFIG_BYTES: Final = 64_000
_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+("(?:[^"\\]|\\.)*"))?\s*\]')
_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=.*)?")
_VALUE_PART: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^"#;\\]+|\\.)')
_DRIVER: Final = re.compile(r"(?:^|\s)(?:filter|merge|diff)=(?!lfs(?:\s|$))", re.MULTILINE)
_CORE = (
    "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks "
    "autocrlf eol"
)
_PLAIN: dict[str, frozenset[str]] = {
    "core": frozenset(_CORE.split()),
    "remote": frozenset({"url", "pushurl", "fetch", "prune", "tagopt"}),
    "branch": frozenset({"remote", "merge", "rebase", "description", "vscode-merge-base"}),
    "submodule": frozenset({"url", "active"}),
    "extensions": frozenset({"objectformat"}),
    "user": frozenset({"name", "email"}),
    "init": frozenset({"defaultbranch"}),
    "pull": frozenset({"rebase", "ff"}),
    "push": frozenset({"default", "autosetupremote"}),
    "fetch": frozenset({"prune"}),
    "color": frozenset({"ui"}),
    "gc": frozenset({"auto"}),
}
_FILES: Final[tuple[tuple[str, ControlKind], ...]] = (
    ("config", "config"),
    ("config.worktree", "config"),
    ("commondir", "pointer"),
    ("info/attributes", "attributes"),
)
_HEAD: Final = "HEAD"
_REMOTES: Final = ("remotes", "branches")
"""Folders with a file for each remote, as before git had settings for them."""

_OBEYED: Final = ("hooks", "gitdir", *_REMOTES, *(name for name, _ in _FILES))
"""What in a git folder determines what runs, or where git looks."""

_PUSHES: Final = frozenset(("remote.url", "remote.pushurl", "remote.mirror"))
_NAMES_REMOTE: Final = "branch.remote"
"""Settings that say where a push goes. What is no remote's name is an address: also a folder."""
_ANY_FORMAT: Final = re.compile(r"\bobjectformat\b", re.IGNORECASE)
_ID_FORMAT: Final = re.compile(
    r"^\[extensions\]\n(?:\t\w+ = .*\n)*\tobjectformat = (sha1|sha256)$",
    re.MULTILINE | re.IGNORECASE,
)
"""How git itself writes which ids a repository has."""

_STRATEGIES: Final = rb"(?:ort|recursive|resolve|octopus|ours|subtree)"
_STEP_LINES: Final = {
    "rebase-merge/git-rebase-todo": re.compile(
        rb"\s*(?:(?:pick|p|reword|r|edit|e|squash|s|fixup|f|drop|d|label|l|reset|t|merge|m"
        rb"|update-ref|u)[ \t].*|noop|break|b|[^\w\s].*)?\s*"
    ),
    "rebase-merge/strategy": re.compile(_STRATEGIES),
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
    "BISECT_START": re.compile(rb"(?!-).*"),
    "BISECT_NAMES": re.compile(rb"(?:\s|'[^'!]*'|[\w./*-])*"),
}
"""Files of unfinished work that can run something, and the lines in them that do not.

``git rebase --continue`` runs the ``exec`` lines of its list. It, and ``git cherry-pick
--continue``, start a merge strategy by its name, even if a slash in it leads to a program of the
work tree. ``git am`` passes its options to ``git apply``, one of which writes a file anywhere. The
prompts of shells evaluate the numbers of steps (``git-prompt.sh``). Before git 2.35 a shell
evaluated the names of a bisection; its start becomes an argument of ``git checkout``.
Nothing is run by ``sequencer/todo``, which may only pick or revert, by the rest of
``rebase-apply``, ``MERGE_MSG`` and the like (``sequencer.c``, ``builtin/am.c``)."""

_NAMING: Final[dict[str, ControlKind]] = {
    "core.hookspath": "hook",
    "include.path": "config",
    "includeif.path": "config",
}
"""Settings that name further files git reads."""

_MADE_BY_GIT: Final = frozenset(
    (
        *("remote.promisor", "remote.partialclonefilter", "extensions.partialclone"),
        *("extensions.refstorage", "core.sparsecheckout", "core.sparsecheckoutcone"),
        *("extensions.worktreeconfig", "index.sparse", "remote.mirror"),
    )
)
"""Settings that a clone, a submodule or a worktree creates. They run nothing, but lead elsewhere,
so a repository judged before it is trusted must not have them."""

_SECTIONS: Final = frozenset((*_PLAIN, *(name.partition(".")[0] for name in _MADE_BY_GIT)))

_USER_SETTINGS: Final = (".gitconfig", ".config/git/config")
_TREE: Final = "core.worktree"
"""A submodule's git folder names its work tree."""

_HOOK: Final = re.compile(r"update|(?!packed-refs$)[a-z0-9]+(?:-[a-z0-9]+)+")
"""How hooks are named. A folder of hooks that is around the repository has other files, too."""

_MOST_BYTES = 1_000_000


def controls_of(entry: Path, hooks_path: str = "") -> Iterator[tuple[Path, ControlKind]]:
    """The existing files that git follows in the repository of the ``.git`` `entry`.

    Args:
        entry: The ``.git``, or a git folder without a work tree.
        hooks_path: The hooks folder that the user's own settings name for all repositories.
    """
    if is_link(entry) or not is_folder(entry):
        yield entry, "entry"
    for git in repositories_of(entry):
        yield from _controls_in(git)
        for path, kind in _find_named(git, entry.parent):
            for each in _hooks_in(path, entry) if kind == "hook" else [path]:
                yield each, kind
    for folder in _named_hooks(entry, hooks_path):
        for hook in [folder] if is_link(folder) else _hooks_in(folder, entry):
            yield hook, "hook"


def _named_hooks(entry: Path, hooks_path: str) -> Iterator[Path]:
    """Where `hooks_path` leads: hooks run in the work tree, or in the git folder."""
    if hooks_path.startswith("/"):
        yield Path(os.path.realpath(hooks_path))
    elif hooks_path:
        for top in (entry.parent, entry):
            yield Path(os.path.normpath(top / hooks_path))


def _controls_in(git: Path) -> Iterator[tuple[Path, ControlKind]]:
    hooks = git / "hooks"
    for hook in [hooks] if is_link(hooks) else _hooks_in(hooks, git):
        yield hook, "hook"
    for name, kind in _FILES:
        if os.path.lexists(git / name):
            yield git / name, kind
    for name in _REMOTES:
        remotes = git / name
        for path in [remotes] if is_link(remotes) else map(Path, _entries(remotes)):
            yield path, "pointer"
    for name in _STEP_LINES:
        if os.path.lexists(git / name):
            yield git / name, "step"
    if os.path.lexists(git / _HEAD):
        yield git / _HEAD, "head"


def controls_at(
    paths: Iterable[Path], entries: Iterable[Path]
) -> Iterator[tuple[Path, ControlKind]]:
    """Which of `paths` are the hooks and the settings of a repository, whether they exist or not.

    Args:
        paths: Files.
        entries: Each ``.git`` that exists.
    """
    if paths := list(paths):
        gits = {git for entry in entries for git in repositories_of(entry)}
        for path in paths:
            if path.name == "config" and path.parent in gits:
                yield path, "config"
            elif any(git / "hooks" in path.parents for git in gits.intersection(path.parents)):
                yield path, "hook"


def covers_of(entry: Path, hooks_path: str = "") -> Iterator[Path]:
    """The existing files that git follows and only the user changes.

    Without those of linked worktrees: ``git worktree remove`` deletes them.

    Args:
        entry: As in `controls_of`.
        hooks_path: As there.
    """
    for folder in _named_hooks(entry, hooks_path):
        yield from _hooks_place(folder, entry)
    if not (is_folder(entry) or is_link(entry) or is_linked_tree(entry)):
        yield entry
    for git in repositories_of(entry):
        if git.parent.name != "worktrees":
            yield from (git / name for name in _OBEYED if os.path.lexists(git / name))
            for path, kind in _find_named(git, entry.parent):
                yield from _hooks_place(path, entry) if kind == "hook" else [path]


def _hooks_place(folder: Path, entry: Path) -> Iterable[Path]:
    """A folder of hooks, if it exists, or the hooks in one that is around `entry`."""
    if entry.is_relative_to(folder):
        return _hooks_in(folder, entry)
    return [folder] if os.path.lexists(folder) else []


def named_in_tree(entry: Path, hooks_path: str) -> Iterator[Path]:
    """What of `covers_of` lies in a work tree: hooks folders, and settings that others include.

    Commits can have these, so a checkout must be able to change them.

    Args:
        entry: The ``.git``.
        hooks_path: As in `controls_of`.
    """
    if named := [path for path in covers_of(entry, hooks_path) if ".git" not in path.parts]:
        own = {entry, *repositories_of(entry)}
        yield from (path for path in named if own.isdisjoint((path, *path.parents)))


def included_settings(git: Path) -> Iterator[Path]:
    """The files in the git folder `git` that its settings include."""
    named = (path for path, kind in _find_named(git, git) if kind == "config")
    return (path for path in named if path.is_relative_to(git.resolve()))


def is_followed(path: Path, home: Path | None) -> bool:
    """Whether git runs the file at `path`, or reads it as settings, because settings say so.

    Args:
        path: A file that may not exist, links followed.
        home: The user's home folder, with their settings; None if there is none.
    """
    if (entry := git_entry(path.parent)) is None:
        return False
    users = [] if home is None else [home / name for name in _USER_SETTINGS]
    named = {
        each for git in repositories_of(entry) for each in _find_named(git, entry.parent, users)
    }
    return any(
        path.parent == place and _HOOK.fullmatch(path.name) is not None
        if kind == "hook" and entry.is_relative_to(place)
        else path.is_relative_to(place)
        for place, kind in named
    )


def _find_named(
    git: Path, top: Path, users: Sequence[Path] = ()
) -> Iterator[tuple[Path, ControlKind]]:
    """What the settings of `git` name for the work tree at `top`, also in several steps.

    That is further settings, and hooks folders, which may not exist.

    Args:
        git: The git folder.
        top: The work tree.
        users: Files with settings for all repositories.
    """
    pending = [git / "config", git / "config.worktree", *users]
    seen = set(pending)
    for config in pending:
        for value, kind in _names_in(config, follow_links=config in users):
            with suppress(OSError, RuntimeError, ValueError):
                named = Path(value).expanduser()
                path = ((config.parent if kind == "config" else top) / named).resolve()
                if is_file(path) == (kind == "config") and path not in seen:
                    seen.add(path)
                    pending += [path] if kind == "config" else []
                    yield path, kind


def _names_in(config: Path, *, follow_links: bool = False) -> Iterator[tuple[str, ControlKind]]:
    """Each path in `config` that leads to more of what git follows, and to what."""
    try:
        text = _text(config, follow_links=follow_links)
    except OSError:
        return
    for _, section, line in _lines(_SECTION.sub(r"\g<0>\n", text)):
        key, _, value = line.partition("=")
        setting = f"{_kind_of(section)}.{key.strip().lower()}"
        if (kind := _NAMING.get(setting)) is not None:
            yield _plain_value(value), kind


def _plain_value(written: str) -> str:
    """The value of a setting without quotes, escapes and a comment."""
    parts = list[str]()
    at = 0
    while (part := _VALUE_PART.match(written, at)) is not None:
        parts.append(part[2] if part[1] is None else part[1])
        at = part.end()
    return re.sub(r"\\(.)", r"\1", "".join(parts).strip())


def why_obeyed(
    path: Path, kind: ControlKind, roots: Iterable[Path], before: bytes | None = None
) -> str:
    """What git would do because of `path`; empty if it is as git itself creates it.

    Args:
        path: The file.
        kind: Its purpose.
        roots: Where repositories may be.
        before: Its previous content; settings in it are the user's.
    """
    match kind:
        case "hook":
            return "git runs it"
        case "entry":
            target = None if is_link(path) else next(repositories_of(path), None)
            is_near = target is not None and any(target.is_relative_to(root) for root in roots)
            return "" if is_near else "git would look elsewhere"
        case "pointer":
            # Git creates one for a worktree, inside the repository that it points to.
            above = path.parent.parent
            is_own = above.name == "worktrees" and _leads_to(path) == above.parent
            return "" if is_own else "git would look elsewhere"
        case "attributes":
            return "git would run drivers for files" if _names_drivers(path) else ""
        case "config":
            return next(iter(foreign_settings(path, before)), "")
        case "step":
            odd = _odd_steps(path, before)
            return f"git would run {odd[0]}" if odd else ""
        case "head":
            return ""
        case "irregular" | "shared":
            return _why_irregular(path)
        case "way":
            return "it leads to where commands write unchecked"
        case _:
            assert_never(kind)


def _why_irregular(path: Path) -> str:
    if is_folder(path) and not is_link(path):
        return "its path is too long to look into it"
    # Git writes its index, logs and messages through a link, and hangs on a pipe.
    is_pipe = not (is_link(path) or is_file(path))
    return "git would wait for it" if is_pipe else "git would write elsewhere"


def foreign_settings(config: Path, before: bytes | None = None) -> list[str]:
    """The lines of `config` that git itself does not write and that could run a program.

    Without those that were there `before`.
    """
    try:
        if is_link(config):
            return ["git would look elsewhere"]
        known = _lines_before(before)
        odd = [
            doubt
            for name, doubt, line in odd_settings(config)
            if line not in known and not _is_by_git(name, config)
        ]
        if before is not None:
            odd += _doubts_about_changes(_text(config), _decode(before))
        return odd
    except (OSError, UnicodeDecodeError):
        return ["it cannot be read"]


def plain_content(path: Path, kind: ControlKind, before: bytes | None = None) -> bytes:
    """The lines of a "config" or "step" that run nothing, and those of `before`.

    If it is unreadable, `before`.
    """
    try:
        content = _bytes(path)
    except OSError:
        return before or b""
    if kind == "step":
        odd = set(_odd_steps(path, before))
        return b"".join(line for line in content.splitlines(True) if _shown(line) not in odd)
    known = _lines_before(before)
    text = _decode(content)
    if before is not None and _doubts_about_changes(text, _decode(before)):
        return before  # a remote must not be left without its address
    return "\n".join(
        line
        for name, section, line in _lines(text)
        if (name is not None and (not name or _is_plain(name) or _is_by_git(name, path)))
        or (section, line.strip()) in known
    ).encode("utf-8", "surrogateescape")


def _odd_steps(path: Path, before: bytes | None) -> list[str]:
    """The lines that run something and were not there `before`."""
    plain = next(lines for name, lines in _STEP_LINES.items() if path.match(name))
    known = set((before or b"").splitlines())
    try:
        lines = _bytes(path).splitlines()
    except OSError:
        return ["what cannot be read"]
    return [_shown(line) for line in lines if line not in known and not plain.fullmatch(line)]


def _doubts_about_changes(text: str, before: str) -> list[str]:
    """What is wrong with git settings because of those that were there `before`."""
    now = {(section, line.strip()) for _, section, line in _lines(text)}
    lost = [
        f"git would run without {name or line.strip()}"
        for name, section, line in _lines(before)
        if (name is None or not (name in ("", _TREE, *_MADE_BY_GIT) or _is_plain(name)))
        and (section, line.strip()) not in now
    ]
    return [*lost, *(["git would push elsewhere"] if _leads_elsewhere(text, before) else [])]


def _leads_elsewhere(text: str, before: str) -> bool:
    """Whether git settings send a push elsewhere than those `before` did.

    A remote may be removed, unless a branch names it.
    """
    is_now, was = _settings(text, _PUSHES), _settings(before, _PUSHES)
    remotes = {section for section, _ in is_now}
    if is_now != {each for each in was if each[0] in remotes}:
        return True
    lost = {section for section, _ in was} - remotes
    branches = _settings(before, {_NAMES_REMOTE})
    for branch in _settings(text, {_NAMES_REMOTE}):
        named = f'remote "{_plain_value(branch[1].partition("=")[2])}"'
        is_known = named in remotes or named == 'remote "."' or branch in branches
        if named in lost or not is_known:
            return True
    return False


def _settings(text: str, names: AbstractSet[str]) -> set[tuple[str, str]]:
    """The lines with settings of these `names`, each with its section."""
    return {(section, line.strip()) for name, section, line in _lines(text) if name in names}


def _shown(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace").strip()


def _lines_before(before: bytes | None) -> set[tuple[str, str]]:
    return {(section, line.strip()) for _, section, line in _lines(_decode(before or b""))}


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _lines(text: str) -> Iterator[tuple[str | None, str, str]]:
    """Each line's setting (see `_setting_of`), its section (``remote "origin"``), and the line."""
    section = ""
    for line in text.split("\n"):
        name, section = _setting_of(line.strip(), section)
        yield name, section, line


def odd_settings(config: Path) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """Every line that is not known to be harmless: the setting's name, a sentence, and the line.

    The line comes with its section before it. Git's own grammar allows far more than is known here.

    Raises:
        OSError: It cannot be read.
        UnicodeDecodeError: It is not text.
    """
    with open_regular_file(config) as file:
        content = file.read(MAX_CONFIG_BYTES + 1)
    if len(content) > MAX_CONFIG_BYTES:
        yield "", f"{config} is too long to check", ("", "")
    lines = _lines(content.decode("utf-8"))
    for number, (name, section, line) in enumerate(lines, start=1):
        if name is None or (name and not _is_plain(name)):
            shown = name or (f"the section {_kind_of(section)}" if section else "this line")
            doubt = f"{config}:{number}: {shown} could run a program"
            yield shown, doubt, (section, line.strip())


def _setting_of(line: str, section: str) -> tuple[str | None, str]:
    """The setting on a line of `section`, and the section from there on.

    The setting is empty for a line without one, and None if it cannot be parsed.
    """
    if not line or line.startswith(("#", ";")):
        return "", section
    header = _SECTION.fullmatch(line)
    if header is not None:
        kind = header[1].lower()
        section = f"{kind} {header[2]}" if header[2] else kind
        return ("" if kind in _SECTIONS else None), section
    setting = _SETTING.fullmatch(line)
    if setting is None or line.endswith("\\"):
        return None, section
    return f"{_kind_of(section)}.{setting[1].lower()}", section


def _kind_of(section: str) -> str:
    """The kind of a section: ``remote`` of ``remote "origin"``."""
    return section.partition(" ")[0]


def _is_plain(name: str) -> bool:
    section, _, key = name.rpartition(".")
    return key in _PLAIN.get(section, ())


def _is_by_git(name: str, config: Path) -> bool:
    """Whether git itself writes the setting `name` as it is in `config`.

    A submodule's work tree counts if it refers back to the repository, which a command cannot have
    a folder elsewhere do.
    """
    if name == _TREE:
        tree = _submodule(config)
        return tree is not None and _leads_to(tree) == config.parent.resolve()
    return name in _MADE_BY_GIT


def _hooks_in(folder: Path, git: Path) -> Iterator[Path]:
    """The hooks in `folder`, and what is in folders there: hooks run it (``pre-commit.d``).

    In one that is around `git`, only what is named as a hook.
    """
    is_around = git.is_relative_to(folder)
    pending = [folder]
    for each in pending:
        for entry in _entries(each):
            if entry.is_dir(follow_symlinks=False):
                pending += [] if is_around else [Path(entry)]
            elif _HOOK.fullmatch(entry.name) if is_around else not entry.name.endswith(".sample"):
                yield Path(entry)


def folders_in(folder: Path) -> list[Path]:
    """The folders in `folder`; none if it cannot be listed."""
    return [Path(entry) for entry in _entries(folder) if entry.is_dir(follow_symlinks=False)]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _leads_to(pointer: Path, *, follow_links: bool = False) -> Path | None:
    """Where the path in a git file leads; None if it cannot be read, or holds none."""
    try:
        named = _text(pointer, follow_links=follow_links).removeprefix("gitdir:").strip()
        return (pointer.parent / named).resolve() if named else None
    except (OSError, RuntimeError, ValueError):
        return None


def _text(file: Path, *, follow_links: bool = True) -> str:
    return _decode(_bytes(file, follow_links=follow_links))


def _bytes(file: Path, *, follow_links: bool = False) -> bytes:
    with open_regular_file(file, follow_links=follow_links) as opened:
        content = opened.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(file))
    return content


def repositories_of(entry: Path) -> Iterator[Path]:
    """The git folders behind a ``.git``: its own, those of its worktrees and submodules."""
    if (found := git_folders(entry)) is not None:
        yield from _repositories_around(*found)


def git_folders(entry: Path) -> tuple[Path, Path] | None:
    """The git folder behind a ``.git``, and the one with its commits, which work trees share."""
    git = entry.resolve() if is_folder(entry) else _leads_to(entry)
    if git is None or not is_folder(git):
        return None
    return git, _leads_to(git / "commondir") or git


def is_linked_tree(entry: Path) -> bool:
    """Whether this ``.git`` belongs to a work tree that git added, and can remove."""
    found = git_folders(entry) if is_file(entry) else None
    return found is not None and found[0] != found[1]


def _repositories_around(git: Path, common: Path) -> Iterable[Path]:
    worktrees = folders_in(common / "worktrees")
    return dict.fromkeys((git, common, *worktrees, *_submodules_in(common / "modules")))


def index_stamp(top: Path) -> int:
    """The ``ctime`` of the index of the work tree at `top`; changes with it, 0 without one."""
    with suppress(OSError, StopIteration):
        return (next(repositories_of(top / ".git")) / "index").stat().st_ctime_ns
    return 0


def id_bytes_of(git: Path) -> int:
    """The length of an object's id in the git folder `git`; 0 if its settings could say either."""
    try:
        text = _text((_leads_to(git / "commondir") or git) / "config")
    except OSError:
        return 20
    mentions = _ANY_FORMAT.findall(text)
    stated = _ID_FORMAT.search(text) if len(mentions) == 1 else None
    return {"sha1": 20, "sha256": 32}[stated[1]] if stated else 0 if mentions else 20


def leads_to_work_tree(tree: Path, places: Sequence[Path]) -> bool:
    """Whether a linked work tree's folder `tree` names one in `places`, none, or its own.

    ``git worktree repair`` writes a ``.git`` where the file ``gitdir`` leads.
    """
    entry = _leads_to(tree / "gitdir")
    return (
        entry is None
        or any(entry.is_relative_to(place) for place in places)
        or not os.path.lexists(entry.parent)
        or _leads_to(entry) == tree.resolve()
    )


def _submodules_in(folder: Path) -> Iterator[Path]:
    """The git folders below and their worktrees'; the name of a submodule may have slashes."""
    pending = [folder]
    for folder in pending:
        for below in folders_in(folder):
            is_git = os.path.lexists(below / "HEAD")
            if is_git:
                yield from (below, *folders_in(below / "worktrees"))
            pending.append(below / "modules" if is_git else below)


def _names_drivers(path: Path) -> bool:
    try:
        return _DRIVER.search(_text(path, follow_links=False)) is not None
    except OSError:
        return True


@dataclass(frozen=True, slots=True)
class GitPlace:
    """A repository that a folder belongs to.

    Args:
        top: The worktree around the folder. It must exist, as git treats missing files as deleted.
        folder: Where commits are stored, shared by all worktrees; commands write it.
        seen: The ``.git`` file of each other worktree: ``git worktree prune`` forgets one without
            it.
        obeyed: What must not change.
    """

    top: Path
    folder: Path
    seen: tuple[Path, ...]
    obeyed: tuple[Path, ...]

    @property
    def entry(self) -> Path:
        """The ``.git`` of the worktree."""
        return self.top / ".git"


def git_place(folder: Path) -> GitPlace | None:
    """The repository that contains `folder`; None if there is none, or it is another's.

    Only reads files; git is not run. A ``.git`` that leads elsewhere counts only if that place
    refers back to it, or can be no other work tree's: a command could have created it to get write
    access to another repository.
    """
    for top in (folder, *folder.parents):
        entry = top / ".git"
        if is_folder(entry):
            git = entry.resolve()
        elif is_file(entry):
            git = _leads_to(entry, follow_links=True)
        else:
            continue
        if git is not None and is_file(git / "HEAD"):
            back = _leads_to(git / "gitdir", follow_links=True)
            is_own = (
                git == entry or entry in (back, _submodule(git / "config")) or _stands_apart(git)
            )
            return _place(folder, entry, git) if is_own else None
    return None


def _place(folder: Path, entry: Path, git: Path) -> GitPlace:
    is_linked = git.parent.name == "worktrees" and os.path.lexists(git / "commondir")
    common = git.parent.parent if is_linked else git
    trees = {tree: _worktree(tree) for tree in folders_in(common / "worktrees")}
    # One that lies in the folder may be removed there, so all of it must be removable.
    inside = {tree for tree, file in trees.items() if file and folder in file.parents} - {git}
    repositories = [each for each in _repositories_around(git, common) if each not in inside]
    obeyed = [repository / name for repository in repositories for name in _OBEYED]
    return GitPlace(
        top=entry.parent,
        folder=common,
        seen=tuple(file for file in trees.values() if file),
        obeyed=(*obeyed, *((entry,) if is_file(entry) else ())),
    )


def _worktree(tree: Path) -> Path | None:
    """The ``.git`` file of a linked worktree, which names `tree`.

    A command may have created `tree` to get access to another file.
    """
    file = _leads_to(tree / "gitdir", follow_links=True)
    return file if file and _leads_to(file, follow_links=True) == tree.resolve() else None


def _stands_apart(git: Path) -> bool:
    """Whether `git` has a work tree somewhere that it does not name.

    ``git init --separate-git-dir`` makes such a folder; others move it and leave a link. Without
    those within another repository, and those named ``.git``, which belong to the folder around.
    """
    if ".git" in git.parts or any(os.path.lexists(git / name) for name in ("commondir", "gitdir")):
        return False
    settings = _settings_of(git / "config")
    return settings.get("core.bare") == "false" and _TREE not in settings


def _submodule(config: Path) -> Path | None:
    """The ``.git`` file of a submodule, as the settings in its git folder name it."""
    with suppress(OSError, RuntimeError, ValueError, KeyError):
        tree = _settings_of(config)[_TREE]
        if not set(tree) & set('"\\#;'):
            return (config.parent / tree).resolve() / ".git"
    return None


def _settings_of(config: Path) -> dict[str | None, str]:
    try:
        lines = _lines(_text(config))
    except OSError:
        return {}
    return {name: line.partition("=")[2].strip() for name, _, line in lines}
