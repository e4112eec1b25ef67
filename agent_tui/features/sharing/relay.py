"""Our own repository between the session files and the remote, with one ref for each session.

Nothing of the project's repository is touched: it stores no objects and no refs of ours. The
relay only repeats what is in the session files and at the remote, so it may be deleted any time.

The tip of a remote ref is always the parent of the commit that replaces it, and the remote
accepts only that: of two pushes at the same time, one is refused and done again on top of the
other. A commit adds files and never removes one.
"""

import os
import re
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_tui.errors import SessionError
from agent_tui.features.sharing.git_project import GitProject
from agent_tui.features.sharing.guard import is_session_id
from agent_tui.paths import make_private_dir
from agent_tui.safe_text import printable_line
from agent_tui.secret_text import mask_secrets, without_user
from agent_tui.tools.git.command import GitAnswer, GitSilentError, git_argv, run_git
from agent_tui.tools.processes.environment import remote_git_environ
from agent_tui.tools.processes.keeper import ProcessKeeper

REFS: Final = "refs/agent-tui/sessions/"
_OUTGOING: Final = "refs/agent-tui/outgoing/"

MOST_BLOB_BYTES = 100_000_000
"""A larger file of a remote is left out; ours are at most a little over 64 MB."""

_MOST_TREE_BYTES = 4_000_000
"""Of the list of a session's files, with about 100 bytes for each: enough for 40,000."""

_MOST_BROKEN = 20
"""So many refs that cannot be fetched are looked for one by one; of more, the remote is broken."""

_DAMAGED = "git cannot add to what the remote has of it. `git fsck` there may say why."

_MOST_BATCH_BYTES = 64_000_000
_MOST_ANSWER_BYTES = 300_000_000
_LOCAL_PATIENCE_S = 300.0
_NETWORK_PATIENCE_S = 3_600.0
_MOST_REASON_CHARS = 300
_COMMITTER = "agent-tui <agent-tui@localhost>"
"""The same for everyone: who pushed is inside the parts, where it can be encrypted."""

_SETTINGS: Final = (
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("core.fsyncMethod", "batch"),
    ("fetch.fsckObjects", "false"),
    ("http.lowSpeedLimit", "500"),
    ("http.lowSpeedTime", "60"),
    ("push.gpgSign", "false"),
    ("submodule.recurse", "false"),
    ("advice.pushUpdateRejected", "false"),
)
_PUSHED = re.compile(rb"^([ +*=!-])\t([^:\t]*):([^\t]*)\t(.*)$", re.MULTILINE)
_RACED = re.compile(r"fetch first|non-fast-forward|stale info|lock ref|failed to update ref|locked")
_NEEDS_LOGIN = re.compile(
    r"could not read (Username|Password)|terminal prompts disabled|Authentication failed"
    r"|Permission denied|Host key verification failed|publickey",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Addition:
    """Files to add to the tree of a session, on top of the commit `tip` (empty: the first one)."""

    session_id: str
    tip: str
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class PushAnswer:
    """What became of one addition.

    Attributes:
        commit: The new tip; empty if it was not accepted.
        is_raced: Whether somebody else pushed in the meantime: try again.
        why: Why it was refused; empty if it may be accepted later.
    """

    commit: str = ""
    is_raced: bool = False
    why: str = ""


_FINE = PushAnswer()


class Relay:
    """The repository in `folder` through which the sessions of `project` travel.

    One program at a time may use it; the caller holds a lock.

    Args:
        keeper: Starts git.
        folder: The repository; made if it is missing.
        project: The project and its remote.
        address: Where to fetch from and push to: of a remote with two addresses, one of them.
        environ: Our environment.
    """

    def __init__(
        self,
        keeper: ProcessKeeper,
        folder: Path,
        project: GitProject,
        address: str,
        environ: Mapping[str, str],
    ) -> None:
        self._keeper = keeper
        self._folder = folder
        self._project = project
        self._address = address
        self._environ = dict(environ)

    async def prepare(self) -> None:
        """Make the repository, and remove what a killed git left in it.

        Raises:
            SessionError: It cannot be made.
        """
        if (self._folder / "HEAD").is_file():
            for lock in self._folder.rglob("*.lock"):
                with suppress(OSError):
                    lock.unlink()
            answer = await self._run("for-each-ref", "--format=%(refname)", _OUTGOING)
            if answer.exit_code == 0:
                await self._delete(answer.output.decode().split())
                return
            shutil.rmtree(self._folder, ignore_errors=True)
        try:
            make_private_dir(self._folder)
        except OSError as error:
            raise SessionError(f"{self._folder} cannot be made: {error.strerror}.") from error
        await self._ask(
            "init", "--quiet", "--bare", "--template=",
            f"--object-format={self._project.object_format}",
        )  # fmt: skip

    async def fetch(self, session_ids: Sequence[str] | None) -> dict[str, str]:
        """Fetch sessions; returns the commit of each, by id. Those the remote lacks are left out.

        The commit is empty for one that the remote has, but cannot send.

        Args:
            session_ids: Which, each by its id or the beginning of it; None for all.

        Raises:
            SessionError: The remote cannot be reached.
        """
        starts = ("",) if session_ids is None else tuple(session_ids)
        there = await self._remote_tips(starts)
        here = await self._tips()
        await self._fetch([one for one, tip in there.items() if here.get(one) != tip], _MOST_BROKEN)
        gone = [one for one in here if one not in there and one.startswith(starts)]
        await self._delete([f"{REFS}{one}" for one in gone])
        here = await self._tips()
        return {one: tip if here.get(one) == tip else "" for one, tip in there.items()}

    async def _fetch(self, session_ids: Sequence[str], most_broken: int) -> int:
        """Fetch these refs, or all but those that cannot be fetched; returns the number of these.

        Raises:
            SessionError: The remote cannot be reached, or more refs than `most_broken` are broken.
        """
        if not session_ids:
            return 0
        wanted = "".join(f"+{REFS}{one}:{REFS}{one}\n" for one in session_ids).encode()
        try:
            await self._over_network("fetch", *_FETCH, "--stdin", "shared", stdin=wanted)
        except SessionError:
            if most_broken <= 0:
                raise
            await self._remote_tips(())  # raises if it is the connection
            half = len(session_ids) // 2
            if not half:
                return 1
            first = await self._fetch(session_ids[:half], most_broken)
            return first + await self._fetch(session_ids[half:], most_broken - first)
        return 0

    async def trees(self, commits: Iterable[str]) -> dict[str, dict[str, str]]:
        """The files of each commit: their objects by name.

        Left out are what is no commit, and commits with a list of files that no session has.
        """
        wanted = list(dict.fromkeys(filter(None, commits)))
        found = await self._look_up([f"{commit}^{{tree}}" for commit in wanted])
        sizes = {one.id: one.size_bytes for one in found if one is not None}
        small = [one for one, size_bytes in sizes.items() if size_bytes <= _MOST_TREE_BYTES]
        contents = await self.contents(small, sizes)
        width = 32 if self._project.object_format == "sha256" else 20
        return {
            commit: _read_tree(contents[one.id], width)
            for commit, one in zip(wanted, found, strict=True)
            if one is not None and one.id in contents
        }

    async def sizes(self, objects: Sequence[str]) -> dict[str, int]:
        """The sizes of `objects` in bytes; missing ones are left out."""
        return {one.id: one.size_bytes for one in await self._look_up(objects) if one is not None}

    async def contents(self, objects: Sequence[str], sizes: Mapping[str, int]) -> dict[str, bytes]:
        """The contents of `objects` by id; missing and too large ones are left out.

        Args:
            objects: Which.
            sizes: Their sizes, from `sizes`.
        """
        contents: dict[str, bytes] = {}
        batch: list[str] = []
        batch_bytes = 0
        for one in dict.fromkeys(objects):
            size = sizes.get(one, MOST_BLOB_BYTES + 1)
            if size > MOST_BLOB_BYTES:
                continue
            if batch and batch_bytes + size > _MOST_BATCH_BYTES:
                contents |= await self._contents(batch)
                batch, batch_bytes = [], 0
            batch.append(one)
            batch_bytes += size
        return contents | await self._contents(batch)

    async def push(self, additions: Sequence[Addition]) -> dict[str, PushAnswer]:
        """Commit `additions` and push them; returns what became of each, by session.

        Raises:
            SessionError: The remote cannot be reached.
        """
        answer = await self._run(
            "fast-import", "--quiet", "--done", "--force", stdin=_import_stream(additions)
        )
        if answer.exit_code != 0 and len(additions) == 1:
            return {additions[0].session_id: PushAnswer(why=_DAMAGED)}
        if answer.exit_code != 0:
            return await self._push_apart(additions)
        commits = await self._tips(_OUTGOING)
        pushed = await self._over_network(
            "push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags",
            "--recurse-submodules=no", "shared", f"{_OUTGOING}*:{REFS}*",
            allowed=(0, 1),
        )  # fmt: skip
        answers = _read_answers(pushed.output, commits)
        accepted = {one: found.commit for one, found in answers.items() if found.commit}
        orders = [f"update {REFS}{one} {commit}\n" for one, commit in accepted.items()]
        orders += [f"delete {_OUTGOING}{one}\n" for one in commits]
        await self._ask("update-ref", "--stdin", stdin="".join(orders).encode())
        if not answers:
            raise self._failure("push", pushed)
        rejected = [one for one in additions if answers.get(one.session_id, _FINE).why]
        if rejected and len(additions) > 1:
            answers |= await self._push_apart(rejected)
        return answers

    async def _push_apart(self, additions: Sequence[Addition]) -> dict[str, PushAnswer]:
        """Push in two halves: a session that the remote cannot take stops those beside it."""
        half = (len(additions) + 1) // 2
        first = await self.push(additions[:half])
        return first | await self.push(additions[half:]) if additions[half:] else first

    async def tidy(self) -> None:
        """Pack the repository if it has many loose objects."""
        with suppress(SessionError):
            await self._ask("-c", "gc.auto=2000", "-c", "gc.autoDetach=false", "gc", "--auto")

    async def _remote_tips(self, starts: Sequence[str]) -> dict[str, str]:
        """The commits at the remote of the sessions whose ids begin with one of `starts`."""
        answer = await self._over_network("ls-remote", "--refs", "shared", f"{REFS}*")
        tips: dict[str, str] = {}
        for line in answer.output.decode("utf-8", "replace").split("\n"):
            commit, _, ref = line.partition("\t")
            one = ref.removeprefix(REFS)
            if ref != one and is_session_id(one) and one.startswith(tuple(starts)):
                tips[one] = commit
        return tips

    async def _tips(self, prefix: str = REFS) -> dict[str, str]:
        """The commits of the refs here below `prefix`, by session."""
        printed = await self._ask("for-each-ref", "--format=%(objectname) %(refname)", prefix)
        tips: dict[str, str] = {}
        for line in printed.decode("utf-8", "replace").split("\n"):
            commit, _, ref = line.partition(" ")
            if is_session_id(one := ref.removeprefix(prefix)):
                tips[one] = commit
        return tips

    async def _delete(self, refs: Sequence[str]) -> None:
        if refs:
            orders = "".join(f"delete {ref}\n" for ref in refs)
            await self._ask("update-ref", "--stdin", stdin=orders.encode())

    async def _contents(self, objects: Sequence[str]) -> dict[str, bytes]:
        found = await self._objects(objects)
        pairs = zip(objects, found, strict=True)
        return {one: data for one, data in pairs if data is not None}

    async def _objects(self, names: Sequence[str]) -> list[bytes | None]:
        """The contents of the objects with these names; None for a missing one."""
        if not names:
            return []
        asked = "".join(f"{name}\n" for name in names).encode()
        printed = await self._ask("cat-file", "--batch", stdin=asked)
        found: list[bytes | None] = []
        place = 0
        for _ in names:
            end = printed.index(b"\n", place)
            told = _read_told(printed[place:end])
            place = end + 1
            if told is None:
                found.append(None)
                continue
            found.append(printed[place : place + told.size_bytes])
            place += told.size_bytes + 1
        return found

    async def _look_up(self, names: Sequence[str]) -> list["_Object | None"]:
        """What the objects with these names are; None for a missing one."""
        if not names:
            return []
        asked = "".join(f"{name}\n" for name in names).encode()
        printed = await self._ask("cat-file", "--batch-check", stdin=asked)
        return [_read_told(line) for line in printed.split(b"\n")[: len(names)]]

    async def _ask(self, command: str, *arguments: str, stdin: bytes | None = None) -> bytes:
        answer = await self._run(command, *arguments, stdin=stdin)
        if answer.exit_code != 0:
            raise SessionError(f"git {command} failed in {self._folder}.", _DELETE_RELAY)
        return answer.output

    async def _over_network(
        self,
        command: str,
        *arguments: str,
        stdin: bytes | None = None,
        allowed: tuple[int, ...] = (0,),
    ) -> GitAnswer:
        answer = await self._run(
            command, *arguments, stdin=stdin, patience_s=_NETWORK_PATIENCE_S, keeps_stderr=True
        )
        if answer.exit_code not in allowed:
            raise self._failure(command, answer)
        return answer

    def _failure(self, command: str, answer: GitAnswer) -> SessionError:
        remote = self._project.remote
        printed = answer.output.decode("utf-8", "replace")
        lines = [line for line in printed.split("\n") if line.strip()]
        named = [line for line in lines if re.match(r"fatal|error|remote|ssh|!", line)] or lines
        reason = printable_line(mask_secrets("; ".join(named)), _MOST_REASON_CHARS).rstrip(":. ")
        hint = f"Check that `git ls-remote {remote}` works in this folder."
        if _NEEDS_LOGIN.search(printed):
            hint = (
                f"Run `git fetch {remote}` once and let a credential helper or ssh-agent store "
                "the login."
            )
        address = without_user(self._address)
        return SessionError(f"git {command} failed at {address}: {reason}.", hint)

    async def _run(
        self,
        command: str,
        *arguments: str,
        stdin: bytes | None = None,
        patience_s: float = _LOCAL_PATIENCE_S,
        keeps_stderr: bool = False,
    ) -> GitAnswer:
        project = self._project
        settings = (
            *project.settings,
            *_SETTINGS,
            ("remote.shared.url", self._address),
        )
        try:
            return await run_git(
                self._keeper,
                git_argv(command, *arguments),
                project.root,
                remote_git_environ(self._environ, self._folder, settings),
                stdin=stdin,
                most_bytes=_MOST_ANSWER_BYTES,
                patience_s=patience_s,
                keeps_stderr=keeps_stderr,
            )
        except GitSilentError as error:
            raise SessionError(f"git {command} failed: {error}.") from error


_FETCH = ("--no-tags", "--no-write-fetch-head", "--refmap=", "--quiet", "--recurse-submodules=no")
_DELETE_RELAY = "Delete that folder and try again; it only holds copies."


@dataclass(frozen=True, slots=True)
class _Object:
    """An object of git, without its content."""

    id: str
    size_bytes: int


def _read_told(line: bytes) -> _Object | None:
    """What a line of ``git cat-file`` says; None if the object is missing."""
    words = line.decode("ascii", "replace").split()
    is_there = len(words) == 3 and words[2].isdecimal()
    return _Object(words[0], int(words[2])) if is_there else None


def _import_stream(additions: Sequence[Addition]) -> bytes:
    """The commits for ``git fast-import``."""
    stream = bytearray()
    for addition in additions:
        message = f"Session {addition.session_id}\n".encode()
        stream += f"commit {_OUTGOING}{addition.session_id}\n".encode()
        stream += f"committer {_COMMITTER} {int(time.time())} +0000\n".encode()
        stream += f"data {len(message)}\n".encode() + message
        if addition.tip:
            stream += f"from {addition.tip}\n".encode()
        for name, data in sorted(addition.files.items()):
            stream += f"M 100644 inline {name}\ndata {len(data)}\n".encode() + data + b"\n"
        stream += b"\n"
    return bytes(stream + b"done\n")


def _read_tree(data: bytes, width: int) -> dict[str, str]:
    """The regular files in a tree object; names that are not ASCII are none of ours."""
    files: dict[str, str] = {}
    place = 0
    while (end := data.find(b"\0", place)) >= 0 and end + width < len(data) + 1:
        mode, _, name = data[place:end].partition(b" ")
        place = end + 1 + width
        if mode == b"100644" and name.isascii():
            files[os.fsdecode(name)] = data[end + 1 : place].hex()
    return files


def _read_answers(printed: bytes, commits: Mapping[str, str]) -> dict[str, PushAnswer]:
    answers: dict[str, PushAnswer] = {}
    for flag, _, target, summary in _PUSHED.findall(printed):
        one = target.decode("utf-8", "replace").removeprefix(REFS)
        if one not in commits:
            continue
        if flag == b"!":
            why = printable_line(summary.decode("utf-8", "replace"), _MOST_REASON_CHARS)
            is_raced = _RACED.search(why) is not None
            answers[one] = PushAnswer(is_raced=is_raced, why="" if is_raced else why)
        else:
            answers[one] = PushAnswer(commit=commits[one])
    return answers
