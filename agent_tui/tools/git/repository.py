"""Asks git for what a reader who continues the work must know of a repository."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from agent_tui.omissions import one_line
from agent_tui.sessions.entries import RepositoryState
from agent_tui.tools.git.command import GitSilentError, ask_git, git_argv
from agent_tui.tools.git.status import read_work_tree, top_folder
from agent_tui.tools.processes.keeper import ProcessKeeper

MOST_COMMITS = 30
MOST_UNCOMMITTED = 200
_MOST_REFLOG = 2_000
_SUBJECT_CHARS = 120
_HASH_CHARS = 10
_FIRST_COMMIT = "commit (initial)"


async def read_repository(
    keeper: ProcessKeeper,
    folder: Path,
    environ: Mapping[str, str],
    *,
    began_s: int,
    since: str | None = None,
) -> RepositoryState:
    """The state of the repository around `folder`.

    Args:
        keeper: Starts git.
        folder: An existing folder in a work tree.
        environ: The environment of commands here.
        began_s: When the session began, in seconds since 1970. The reflog says where HEAD was then.
        since: That HEAD, if an earlier state has it.

    Raises:
        GitSilentError: There is no repository, or git does not answer (see `ask_git`).
    """
    try:
        return await _read(keeper, folder, environ, began_s, since)
    except ValueError as error:
        raise GitSilentError("not what git says") from error


async def _read(
    keeper: ProcessKeeper, folder: Path, environ: Mapping[str, str], began_s: int, since: str | None
) -> RepositoryState:

    async def ask(*words: str, allowed: tuple[int, ...] = (0,)) -> str:
        answer = await ask_git(keeper, git_argv(*words), root, environ, allowed=allowed)
        return answer.decode("utf-8", "replace").strip()

    root = await top_folder(keeper, folder, environ)
    tree = await read_work_tree(keeper, root, environ)
    ahead, behind, commits = 0, 0, ""
    if tree.upstream:
        sides = f"HEAD...{tree.upstream}"
        counts = await ask("rev-list", "--left-right", "--count", sides, "--", allowed=(0, 128))
        ahead, behind = map(int, counts.split() or (0, 0))
    if tree.head:
        if since is None:
            reflog = ("--walk-reflogs", "--date=unix", "--format=%gd%x00%H%x00%gs")
            known = await ask("log", *reflog, f"-n{_MOST_REFLOG}", "HEAD", "--", allowed=(0, 128))
            since = _head_at(began_s, known)
        if since is not None:
            new = ("HEAD", f"^{since}") if since else ("HEAD",)
            listing = (f"-n{MOST_COMMITS}", "--format=%h%x00%s", f"--abbrev={_HASH_CHARS}")
            commits = await ask("log", *listing, *new, "--", allowed=(0, 128))
    return RepositoryState(
        root=str(root),
        branch=tree.branch,
        head=tree.head[:_HASH_CHARS],
        upstream=tree.upstream,
        ahead=ahead,
        behind=behind,
        uncommitted=tuple(sorted(tree.dirty)[:MOST_UNCOMMITTED]),
        changed=len(tree.dirty),
        since=since if tree.head else "",
        commits=dict(reversed(list(_subjects(commits)))),
    )


def _head_at(moment_s: int, reflog: str) -> str | None:
    """The commit that HEAD was at `moment_s`, or at first if `reflog` (newest first) is younger.

    Empty if there was no commit yet; None if the reflog does not say.
    """
    commit, what = None, ""
    for line in filter(None, reflog.split("\n")):
        entry, commit, what = line.split("\0", 2)
        if int(entry.partition("@{")[2].rstrip("}")) <= moment_s:
            return commit
    return "" if what.startswith(_FIRST_COMMIT) else commit


def _subjects(listing: str) -> Iterator[tuple[str, str]]:
    for line in filter(None, listing.split("\n")):
        commit, _, subject = line.partition("\0")
        yield commit, one_line(subject, _SUBJECT_CHARS)
