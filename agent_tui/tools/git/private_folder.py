"""Git calls that look at files of a work tree, in which the repository cannot name a program.

They run with a git folder of our own. It leads to the repository's objects, references and index,
but its settings are ours: a list of plain values that git read from the user's and the repository's
just before. A setting that somebody adds meanwhile is in no file that git reads, so filters of the
repository never run. Those of the user's own settings, such as Git LFS, run where a caller wants
them. A file that needs a filter of the repository makes git refuse there: its content would be
stored or written without the change that the repository expects.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from agent_tui.regular_files import read_regular_file
from agent_tui.safe_paths import real_path
from agent_tui.tools.git.command import (
    PATIENCE_S,
    GitRefusedError,
    GitSilentError,
    ask_git,
    git_argv,
    order_git,
)
from agent_tui.tools.git.places import git_folders
from agent_tui.tools.git.settings import write_setting
from agent_tui.tools.processes.keeper import ProcessKeeper

_PREFIX: Final = "agent-tui-git-"
_SHARED: Final = ("objects", "refs", "packed-refs", "reftable", "logs", "info", "shallow")
_OF_TREE: Final = ("refs", "reftable", "logs", "info")
"""Where git keeps a repository, and one of its work trees. None of it can name a program."""

_PLAIN: Final = re.compile(
    r"core\.(?:abbrev|attributesfile|autocrlf|bigfilethreshold|checkroundtripencoding|checkstat"
    r"|compression|eol|excludesfile|filemode|ignorecase|ignorestat|logallrefupdates|longpaths"
    r"|loosecompression|precomposeunicode|preloadindex|protecthfs|protectntfs|safecrlf"
    r"|sharedrepository|sparsecheckout|sparsecheckoutcone|symlinks|trustctime|untrackedcache)"
    r"|checkout\.(?:thresholdforparallelism|workers)|feature\.manyfiles|index\..+"
    r"|branch\..+\.(?:merge|remote)|remote\..+\.(?:fetch|partialclonefilter|promisor)",
    re.DOTALL,
)
_FORMAT: Final = re.compile(r"core\.repositoryformatversion|extensions\.(?!worktreeconfig$).+")
"""What git needs to know to read the repository; it counts only in the repository's settings."""

_FOR_FILTERS: Final = re.compile(r"lfs\.url|remote\..+\.(?:lfsurl|url)", re.DOTALL)
"""Where Git LFS finds content that is not on this machine."""

_WHOLE_INDEX: Final = ("core.splitindex", "false")
"""A part of a split index would be written into our folder."""

_MOST_ATTRIBUTE_BYTES: Final = 1_000
"""Bytes for the name of the attribute and its value."""

_COMMANDS: Final = ("clean", "smudge", "process")
_USERS: Final = ("system", "global")
_NO_USERS_SETTINGS: Final = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
_NAMED_ELSEWHERE: Final = ("GIT_COMMON_DIR", "GIT_CONFIG_SYSTEM")


@dataclass(frozen=True, slots=True)
class _Folder:
    """A private folder: the environment that leads git to it, and the filters that may not run."""

    environ: Mapping[str, str]
    refused: Collection[str]


async def ask_about_files(
    keeper: ProcessKeeper,
    root: Path,
    environ: Mapping[str, str],
    *words: str,
    runs_filters: bool = False,
    stdin: bytes | None = None,
    most_bytes: int | None = None,
    patience_s: float = PATIENCE_S,
) -> bytes:
    """What git says about files of the work tree `root`.

    Args:
        keeper: Starts git.
        root: The top folder of the work tree.
        environ: The environment of commands here.
        words: The command with its arguments.
        runs_filters: Whether the filters of the user's own settings run.
        stdin: Its input.
        most_bytes: Limit on the output; None for `MAX_OUTPUT_BYTES`.
        patience_s: Limit on the time in seconds.

    Raises:
        GitSilentError: There is no repository, another filter would have to run, or see `ask_git`.
    """
    argv = git_argv(*words, is_in_private_folder=True)
    async with _private_folder(keeper, root, environ, filters=runs_filters) as folder:
        return await ask_git(
            keeper,
            argv,
            root,
            folder.environ,
            stdin=stdin,
            most_bytes=most_bytes,
            patience_s=patience_s,
        )


async def change_files(
    keeper: ProcessKeeper,
    root: Path,
    environ: Mapping[str, str],
    *words: str,
    runs_filters: bool = False,
    settings: tuple[str, ...] = (),
    stdin: bytes | None = None,
) -> bytes:
    """Have git write files of the work tree `root`, or read them into the repository.

    Returns the output.

    Args:
        keeper: Starts git.
        root: The top folder of the work tree.
        environ: The environment of commands here.
        words: The command with its arguments.
        runs_filters: Whether the filters of the user's own settings run, in the folder `root`.
        settings: ``key=value`` configuration overrides.
        stdin: Its input.

    Raises:
        GitRefusedError: Git refused, maybe as another filter would have to run; holds its words.
        GitSilentError: There is no repository, or see `order_git`.
    """
    argv = git_argv(*words, settings=settings, is_in_private_folder=True)
    async with _private_folder(keeper, root, environ, filters=runs_filters) as folder:
        try:
            return await order_git(keeper, argv, root, folder.environ, stdin=stdin)
        except GitRefusedError as error:
            if folder.refused and " filter " in str(error):
                why = "agent-tui runs only filters that your own git settings define"
                raise GitRefusedError(f"{error}: {why}") from error
            raise


async def stage_files(
    keeper: ProcessKeeper,
    root: Path,
    environ: Mapping[str, str],
    names: Collection[str],
    *,
    runs_filters: bool = False,
    settings: tuple[str, ...] = (),
) -> None:
    """Bring the index up to date with the files `names`, as ``git add --all`` does.

    But no git is started in a submodule or another repository, whose commit is what counts. For
    `runs_filters`, see `change_files`.

    Raises:
        GitSilentError: See `change_files`.
    """
    below_links = await asyncio.to_thread(lambda: {name for name in names if _is_gone(root, name)})
    for group, options in (
        (below_links, ("--force-remove",)),
        ({*names} - below_links, ("--add", "--remove", "--replace")),
    ):
        if group:
            lines = b"".join(os.fsencode(name) + b"\0" for name in sorted(group))
            words = ("update-index", *options, "-z", "--stdin")
            await change_files(
                keeper,
                root,
                environ,
                *words,
                runs_filters=runs_filters,
                settings=settings,
                stdin=lines,
            )


async def find_filtered(
    keeper: ProcessKeeper, root: Path, environ: Mapping[str, str], names: Collection[str]
) -> frozenset[str]:
    """Those of the files `names` for which attributes of the work tree `root` name a filter.

    Raises:
        GitSilentError: See `ask_git`.
    """
    if not names:
        return frozenset()
    lines = b"".join(os.fsencode(name) + b"\0" for name in names)
    words = ("check-attr", "-z", "--stdin", "filter")
    most = 2 * len(lines) + _MOST_ATTRIBUTE_BYTES * len(names)
    answer = await ask_git(keeper, git_argv(*words), root, environ, stdin=lines, most_bytes=most)
    fields = iter(os.fsdecode(answer).split("\0")[:-1])
    return frozenset(
        name
        for name, _, value in zip(fields, fields, fields, strict=True)
        if value not in ("unspecified", "unset")
    )


def argv_without_files(
    root: Path,
    environ: Mapping[str, str],
    empty: Path,
    *words: str,
    settings: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """The command line for a change of the index or a commit: git sees an empty work tree.

    So it compares no file with the index, and reads no attributes: no filter runs.

    Args:
        root: The top folder of the work tree.
        environ: The environment of commands here.
        empty: An empty folder of ours, in which to run it.
        words: The command with its arguments.
        settings: ``key=value`` configuration overrides.

    Raises:
        GitSilentError: There is no repository.
    """
    git, _ = _folders_of(root, environ)
    places = (f"--git-dir={git}", f"--work-tree={empty}")
    return git_argv(*places, *words, settings=settings, is_in_private_folder=True)


async def change_index(
    keeper: ProcessKeeper,
    root: Path,
    environ: Mapping[str, str],
    *words: str,
    settings: tuple[str, ...] = (),
) -> None:
    """Have git change the index of the work tree `root`, or commit it, without looking at files.

    Raises:
        GitSilentError: See `argv_without_files` and `order_git`.
    """
    with TemporaryDirectory(prefix=_PREFIX) as folder:
        empty = Path(folder)
        argv = argv_without_files(root, environ, empty, *words, settings=settings)
        await order_git(keeper, argv, empty, environ)


@asynccontextmanager
async def _private_folder(
    keeper: ProcessKeeper, root: Path, environ: Mapping[str, str], *, filters: bool
) -> AsyncGenerator[_Folder]:
    """A git folder for the work tree `root` with settings that are copied now.

    Raises:
        GitSilentError: There is no repository, or git does not work in it.
    """
    git, common = _folders_of(root, environ)
    listing = git_argv("config", "--list", "-z", "--show-scope")
    with TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as place:
        own = Path(place)
        try:
            listed, _ = await asyncio.gather(
                ask_git(keeper, listing, root, environ),
                asyncio.to_thread(_make, own, git, common),
            )
        except OSError as error:
            raise GitSilentError(str(error)) from error
        settings = _parse_settings(listed)
        if not any(scope == "local" for scope, _, _ in settings):
            raise GitSilentError("git does not work in this repository")
        refused = _filters_of_repository(settings) if filters else {}
        lines = [*_plain_settings(settings), _WHOLE_INDEX]
        if filters:
            lines += _user_filters(settings, common)
            lines += [(f"filter.{name}.{key}", "") for name in refused for key in _COMMANDS]
            lines += [(f"filter.{name}.required", "true") for name in refused]
        text = "".join(write_setting(key, value) for key, value in lines)
        (own / "shared/config").write_text(text, "utf-8", "surrogateescape")
        kept = {name: value for name, value in environ.items() if name not in _NAMED_ELSEWHERE}
        led = {"GIT_DIR": os.fspath(own), "GIT_WORK_TREE": os.fspath(root)}
        users = {} if filters else _NO_USERS_SETTINGS
        yield _Folder({**kept, **led, **users}, refused)


def _folders_of(root: Path, environ: Mapping[str, str]) -> tuple[Path, Path]:
    """The git folder of the work tree `root`, and the one that its work trees share."""
    found = git_folders(root / environ.get("GIT_DIR", ".git"))
    if found is None:
        raise GitSilentError("no repository")
    git, common = found
    return git, root / environ.get("GIT_COMMON_DIR", common)


def _make(own: Path, git: Path, common: Path) -> None:
    """Make the empty folder `own` a git folder without settings that leads to `git`."""
    shared = own / "shared"
    shared.mkdir()
    for folder, source, names in ((shared, common, _SHARED), (own, git, _OF_TREE)):
        for name in names:
            if os.path.lexists(source / name):
                (folder / name).symlink_to(source / name)
    for part in git.glob("sharedindex.*"):
        (own / part.name).symlink_to(part)
    (own / "index").symlink_to(git / "index")  # git makes it where the link leads
    (own / "commondir").write_text("shared\n")
    (own / "HEAD").write_bytes(read_regular_file(git / "HEAD"))


def _parse_settings(listed: bytes) -> list[tuple[str, str, str]]:
    """The scope, the key and the value of each setting; a key without a value is true."""
    fields = iter(os.fsdecode(listed).split("\0")[:-1])
    parsed: list[tuple[str, str, str]] = []
    for scope, setting in zip(fields, fields, strict=True):
        key, has_value, value = setting.partition("\n")
        parsed.append((scope, key, value if has_value else "true"))
    return parsed


def _plain_settings(settings: list[tuple[str, str, str]]) -> Iterator[tuple[str, str]]:
    for scope, key, value in settings:
        if _PLAIN.fullmatch(key) or (scope == "local" and _FORMAT.fullmatch(key)):
            yield key, value


def _user_filters(settings: list[tuple[str, str, str]], common: Path) -> Iterator[tuple[str, str]]:
    """The user's filters, also those under conditions, and where Git LFS has its content."""
    yield "lfs.storage", os.fspath(common / "lfs")
    for scope, key, value in settings:
        if _FOR_FILTERS.fullmatch(key) or (scope in _USERS and key.startswith(("filter.", "lfs."))):
            yield key, value


def _filters_of_repository(settings: list[tuple[str, str, str]]) -> dict[str, None]:
    """The names of the filters that the repository defines otherwise than the user."""
    filters = [one for one in settings if one[1].startswith("filter.") and one[1].count(".") > 1]
    users = {key: value for scope, key, value in filters if scope in _USERS}
    others = (
        key for scope, key, value in filters if scope not in _USERS and users.get(key) != value
    )
    return dict.fromkeys(key[len("filter.") :].rpartition(".")[0] for key in others)


def _is_gone(root: Path, name: str) -> bool:
    """Whether a link took the place of a folder in which the file `name` was."""
    with suppress(OSError):
        return real_path((root / name).parent) != (root / name).parent
    return False
