"""Pushes what is new in the chosen sessions."""

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.errors import SessionError
from agent_tui.features.sharing.choice import PushedState
from agent_tui.features.sharing.encryption import Sealer
from agent_tui.features.sharing.form import SharedForm, count_masks
from agent_tui.features.sharing.git_project import GitProject
from agent_tui.features.sharing.guard import is_project_path
from agent_tui.features.sharing.project_sessions import form_for
from agent_tui.features.sharing.relay import Addition, PushAnswer, Relay
from agent_tui.features.sharing.segments import (
    HEADER_ID,
    MOST_IDS_BYTES,
    draft_segments,
    file_name,
    listed_names,
    name_segment,
    next_number,
    read_ids,
    write_ids,
)
from agent_tui.secret_text import REMOVED, has_key, mask_secrets
from agent_tui.sessions.entries import Entry, Header
from agent_tui.sessions.file.kept_files import KeptFiles, folder_of
from agent_tui.sessions.format.codec import encode_repaired
from agent_tui.sessions.format.parse import read_session
from agent_tui.sessions.replay.file_changes import file_changes_in

PushStatus: TypeAlias = Literal["pushed", "unchanged", "failed", "to push", "raced"]

_MOST_TRIES = 8
_PAUSE_S = 0.2
_MOST_BATCH_BYTES = 64_000_000
_MOST_AT_A_TIME = 16
_RACED = "Others push this session all the time. Try again."
BROKEN = (
    "What the remote has of it is damaged, or is no session. To remove it there: "
    "git push REMOTE :refs/agent-tui/sessions/ID"
)
_TOO_MANY_IDS = "The remote lists more entries of it than a session may have."


@dataclass(frozen=True, slots=True)
class PushedSession:
    """What became of one session.

    Attributes:
        id: The session.
        status: ``to push`` if nothing was sent because only the plan was wanted; ``raced`` while
            it is done again.
        entries: Number of entries that are new at the remote.
        masked: Number of places where a key was removed.
        size_bytes: Size of what was sent, before git packs it.
        files: Number of kept contents sent along.
        withheld: Number of kept contents that were not sent because something in them looks like
            a key.
        why: Why it failed.
        state: The file when all of it was at the remote; None if that is not so.
        base: The commit on top of which it was pushed; empty for the first one.
    """

    id: str
    status: PushStatus
    entries: int = 0
    masked: int = 0
    size_bytes: int = 0
    files: int = 0
    withheld: int = 0
    why: str = ""
    state: PushedState | None = None
    base: str = ""


@dataclass(frozen=True, slots=True)
class PushOrder:
    """What to push.

    Attributes:
        sessions: The files of the sessions by id.
        known: Their files when they were last pushed.
        secrets: Values that must not leave this machine.
        sealer: Encrypts.
        with_files: Also push the contents that edits replaced and made.
        only_plans: Send nothing.
    """

    sessions: Mapping[str, Path]
    known: Mapping[str, PushedState]
    secrets: Sequence[str]
    sealer: Sealer
    with_files: bool = False
    only_plans: bool = False


Progress: TypeAlias = Callable[[int, int], None]
"""Is told how many sessions of how many are done."""


async def push_sessions(
    relay: Relay, project: GitProject, order: PushOrder, progress: Progress
) -> tuple[PushedSession, ...]:
    """Push the sessions of `order`, each on top of what the remote has of it.

    If somebody else pushes the same session at the same time, it is done again.

    Raises:
        SessionError: The remote cannot be reached.
    """
    done: dict[str, PushedSession] = {}
    pending = list(order.sessions)
    for attempt in range(_MOST_TRIES):
        if attempt:
            await asyncio.sleep(random.uniform(0, _PAUSE_S * attempt))
        tips = await relay.fetch(pending)
        batch: list[_Draft] = []
        for few in few_at_a_time(pending):
            wanted = {one: tips.get(one) for one in few}
            remote = await _read_remote(relay, wanted, order.sealer.key)
            for session_id in few:
                there = remote[session_id]
                draft = await asyncio.to_thread(_draft, session_id, there, project, order)
                done[session_id] = draft.outcome
                if draft.addition is not None and not order.only_plans:
                    batch.append(draft)
                if sum(draft.outcome.size_bytes for draft in batch) > _MOST_BATCH_BYTES:
                    done |= await _send(relay, batch)
                    batch.clear()
                progress(len(done), len(order.sessions))
        done |= await _send(relay, batch)
        pending = [one for one in pending if done[one].status == "raced"]
        if not pending:
            break
    failed = {one: replace(done[one], status="failed", why=_RACED) for one in pending}
    return tuple({**done, **failed}.values())


def few_at_a_time(session_ids: Iterable[str]) -> Iterator[Sequence[str]]:
    """`session_ids` in portions: what the remote says of so many sessions fits into memory."""
    waiting = iter(session_ids)
    while few := list(islice(waiting, _MOST_AT_A_TIME)):
        yield few


@dataclass(frozen=True, slots=True)
class _Remote:
    """What the remote has of one session: its commit, its files, and the ids in them."""

    tip: str = ""
    tree: Mapping[str, str] = field(default_factory=dict[str, str])
    ids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Draft:
    """What is to be pushed of one session; without an addition, nothing is."""

    outcome: PushedSession
    addition: Addition | None = None


async def _read_remote(
    relay: Relay, tips: Mapping[str, str | None], key: str
) -> dict[str, _Remote | str]:
    """What the remote has of each session, or why that cannot be told.

    Args:
        relay: Where it was fetched to.
        tips: The commits by session; empty for one that cannot be fetched, None for none.
        key: Names the recipients.
    """
    trees = await relay.trees(filter(None, tips.values()))
    lists = {
        one: [trees[tip][name] for name in listed_names(trees[tip], key)]
        for one, tip in tips.items()
        if tip in trees
    }
    sizes = await relay.sizes([found for each in lists.values() for found in each])
    remote: dict[str, _Remote | str] = {}
    for one, tip in tips.items():
        wanted = lists.get(one, [])
        if tip is not None and tip not in trees:
            remote[one] = BROKEN
        elif sum(sizes.get(found, 0) for found in wanted) > MOST_IDS_BYTES:
            remote[one] = _TOO_MANY_IDS
        else:
            contents = await relay.contents(wanted, sizes)
            ids = chain.from_iterable(map(read_ids, contents.values()))
            remote[one] = _Remote(tip or "", trees.get(tip or "", {}), frozenset(ids))
    return remote


def _draft(session_id: str, remote: _Remote | str, project: GitProject, order: PushOrder) -> _Draft:
    """What the remote lacks of a session. Reads its file, unless that is as it was pushed."""
    path, key = order.sessions[session_id], order.sealer.key
    if isinstance(remote, str):
        return _Draft(PushedSession(session_id, "failed", why=remote))
    try:
        if (state := _unchanged(path, remote, order, session_id)) is not None:
            return _Draft(PushedSession(session_id, "unchanged", state=state))
        status, parsed = read_session(path, as_written=True)
    except SessionError as error:
        return _Draft(PushedSession(session_id, "failed", why=str(error)))
    if not parsed.has_header:
        return _Draft(PushedSession(session_id, "failed", why=f"{path} has no header."))
    form = form_for(parsed.header.cwd, project.roots, order.secrets)
    lines = list(_new_lines(parsed.header, parsed.entries, remote.ids, form))
    files: dict[str, bytes] = {}
    by = form.mask(project.by)
    for draft in draft_segments(session_id, by, ((one.id, one.line) for one in lines)):
        sealed = order.sealer.seal(draft.data)
        name = name_segment(next_number([*remote.tree, *files]), key, sealed)
        files[str(name)] = sealed
        files[name.ids_name] = write_ids(draft.ids)
    kept = _Kept({}, 0)
    if order.with_files:
        kept = _kept_contents(session_id, path, parsed.entries, remote.tree, order, form)
    files |= kept.files
    state = PushedState(
        size_bytes=status.st_size,
        mtime_ns=status.st_mtime_ns,
        tip=remote.tip,
        key=key,
        with_files=order.with_files,
    )
    outcome = PushedSession(
        session_id,
        "to push" if files else "unchanged",
        entries=sum(one.id != HEADER_ID for one in lines),
        masked=sum(one.masked for one in lines),
        size_bytes=sum(map(len, files.values())),
        files=len(kept.files),
        withheld=kept.withheld,
        state=state,
        base=remote.tip,
    )
    return _Draft(outcome, Addition(session_id, remote.tip, files) if files else None)


def _unchanged(
    path: Path, remote: _Remote, order: PushOrder, session_id: str
) -> PushedState | None:
    """The state in which all of the file is at the remote; None if it has to be read."""
    state = order.known.get(session_id)
    if state is None or (state.tip, state.key) != (remote.tip, order.sealer.key):
        return None
    try:
        status = path.stat()
    except OSError:
        return None
    is_same = (status.st_size, status.st_mtime_ns) == (state.size_bytes, state.mtime_ns)
    return state if is_same and (state.with_files or not order.with_files) else None


@dataclass(frozen=True, slots=True)
class _Line:
    id: str
    line: bytes
    masked: int


def _new_lines(
    header: Header, entries: Sequence[Entry], known: frozenset[str], form: SharedForm
) -> Iterator[_Line]:
    if HEADER_ID not in known:
        line = form.write_header(header)
        yield _Line(HEADER_ID, line, count_masks(line))
    for entry in entries:
        if entry.id not in known:
            line = form.write_entry(entry)
            before = count_masks(encode_repaired(entry)[1]) if REMOVED.encode() in line else 0
            yield _Line(entry.id, line, max(count_masks(line) - before, 0))


@dataclass(frozen=True, slots=True)
class _Kept:
    files: Mapping[str, bytes]
    withheld: int


def _kept_contents(
    session_id: str,
    path: Path,
    entries: Sequence[Entry],
    tree: Mapping[str, str],
    order: PushOrder,
    form: SharedForm,
) -> _Kept:
    """The kept contents of a session that the remote lacks, without those that hold a key.

    Only files of the project: what else was changed stays here.
    """
    kept, key = KeptFiles(folder_of(path)), order.sealer.key
    recorded = filter(None, map(file_changes_in, entries))
    changes = [
        change
        for each in recorded
        for change in each.changes
        if is_project_path(form.mask(change.path))
    ]
    versions = [version for change in changes for version in (change.before, change.after)]
    digests = {version.digest for version in versions if version.is_kept}
    files: dict[str, bytes] = {}
    withheld = 0
    for digest in sorted(digests):
        name = file_name(key, session_id, digest)
        if name in tree or (content := kept.content(digest)) is None:
            continue
        if _may_hold_key(content, order.secrets):
            withheld += 1
        else:
            files[name] = order.sealer.seal(content)
    return _Kept(files, withheld)


def _may_hold_key(content: bytes, secrets: Sequence[str]) -> bool:
    """Whether `content`, as UTF-8 or UTF-16, has what looks like a key or is one of `secrets`."""
    texts = (each.decode("utf-8", "replace") for each in (content, content.replace(b"\0", b"")))
    return any(has_key(text) or mask_secrets(text, secrets) != text for text in texts)


async def _send(relay: Relay, drafts: Sequence[_Draft]) -> dict[str, PushedSession]:
    if not drafts:
        return {}
    answers = await relay.push([d.addition for d in drafts if d.addition is not None])
    return {d.outcome.id: _after(d.outcome, answers.get(d.outcome.id)) for d in drafts}


def _after(outcome: PushedSession, answer: PushAnswer | None) -> PushedSession:
    if answer is None or answer.is_raced:
        return replace(outcome, status="raced", state=None)
    if not answer.commit:
        return replace(outcome, status="failed", state=None, why=answer.why)
    state = outcome.state and outcome.state.model_copy(update={"tip": answer.commit})
    return replace(outcome, status="pushed", state=state)
