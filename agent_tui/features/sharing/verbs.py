"""``agent-tui sessions share``, ``push`` and ``pull``: sessions through the git remote."""

import argparse
import asyncio
import hashlib
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from agent_tui import paths
from agent_tui.cli.folders import load_trust, present_folder, worktree_records
from agent_tui.cli.key_store import use_stored_keys
from agent_tui.cli.output import ask, write_json
from agent_tui.commands.sessions import session_title
from agent_tui.errors import SessionError, UsageError
from agent_tui.features.sharing.choice import Choice, ChoiceFile
from agent_tui.features.sharing.encryption import Sealer, make_age_key, read_opener
from agent_tui.features.sharing.git_project import GitProject, read_git_project
from agent_tui.features.sharing.guard import is_session_id
from agent_tui.features.sharing.project_sessions import sessions_of_project
from agent_tui.features.sharing.pull import PulledSession, PullOrder, pull_sessions
from agent_tui.features.sharing.push import PushedSession, PushOrder, push_sessions
from agent_tui.features.sharing.relay import Relay
from agent_tui.file_locks import LockHeldError, hold_lock
from agent_tui.messages import JsonObject
from agent_tui.paths import make_private_dir
from agent_tui.providers.keys import secret_values
from agent_tui.safe_text import printable_line, strip_control_characters
from agent_tui.secret_text import without_user
from agent_tui.sessions.format.parse import id_in_name
from agent_tui.sessions.listing import SessionSummary
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.git.worktree_records import main_folder, project_folders_elsewhere
from agent_tui.tools.processes.keeper import ProcessKeeper

_LOCK_WITHIN_S = 20.0
_TITLE_CHARS = 60

_EXPLAINED = """\
A session holds everything you typed and pasted, everything that tools read and
printed, and paths with your user name. Keys of known shapes are removed; other
secrets are not. Everybody who can read this remote can read what you push:
  {address}
If the remote is public, or becomes public later, it cannot be taken back."""
_REFUSED = "Sessions of this project may not be pushed to {address} yet."
_HOW_TO_ALLOW = (
    "Is the remote private? agent-tui sessions share --private. Else encrypt: "
    "agent-tui sessions share --encrypt-to KEY. Or publish them with --public."
)


@dataclass(frozen=True, slots=True)
class _Place:
    """The project around the present folder, and the user's choice for it."""

    keeper: ProcessKeeper
    project: GitProject
    file: ChoiceFile
    choice: Choice

    @property
    def root(self) -> Path:
        return self.project.root

    def change(self, **values: object) -> Choice:
        """Replace these fields of the choice."""
        return self.file.change(
            self.project.address, lambda choice: choice.model_copy(update=values)
        )


def share(arguments: argparse.Namespace, store: SessionStore) -> int:
    """Show or change what may be shared; returns the exit code."""
    if arguments.new_key:
        print(f"Your public key: {make_age_key()}")
        return 0
    place = _place(arguments)
    if arguments.private:
        _require_consent(place, is_sure=arguments.is_sure)
        choice = place.change(allowed="private", recipients=())
    elif arguments.recipients:
        recipients = cast("list[str]", arguments.recipients)
        Sealer(recipients)
        choice = place.change(allowed="encrypted", recipients=tuple(recipients))
    elif arguments.off:
        choice = place.change(allowed="", recipients=(), sessions=())
    elif arguments.stop is not None:
        choice = _stop(place, store, arguments.stop)
    else:
        choice = place.choice
    _print_choice(place, choice, store, is_json=arguments.is_json)
    return 0


def push(arguments: argparse.Namespace, store: SessionStore) -> int:
    """Push the chosen sessions; returns the exit code."""
    place = _place(arguments)
    there = {found.id: found for found in sessions_of_project(store, place.project.roots)}
    chosen = _chosen(arguments, place, store, there)
    choice = place.choice
    is_allowed = bool(choice.allowed) or arguments.public
    is_encrypted = choice.allowed == "encrypted" and not arguments.public
    if not is_allowed and not arguments.only_plans:
        raise UsageError(_REFUSED.format(address=place.project.address), _HOW_TO_ALLOW)
    if not arguments.only_plans:
        place.change(sessions=tuple(dict.fromkeys((*choice.sessions, *chosen))))
    use_stored_keys()
    order = PushOrder(
        sessions={one: there[one].path for one in chosen if one in there},
        known=choice.pushed,
        secrets=secret_values(os.environ),
        sealer=Sealer(choice.recipients if is_encrypted else ()),
        with_files=arguments.with_files,
        only_plans=arguments.only_plans,
    )
    gone = [PushedSession(one, "failed", why="It is gone.") for one in chosen if one not in there]
    with _relay(place, place.project.push_address) as relay:
        pushed = asyncio.run(_push(relay, place, order))
    if not arguments.only_plans:
        _note_pushed(place, pushed)
    outcomes = (*pushed, *gone)
    if arguments.is_json:
        write_json([_pushed_json(one) for one in outcomes])
    else:
        _print_pushed(place, outcomes, there, chosen)
        if not is_allowed:
            print(f"{_REFUSED.format(address=place.project.address)} {_HOW_TO_ALLOW}")
    return 1 if any(one.status == "failed" for one in outcomes) else 0


def pull(arguments: argparse.Namespace, store: SessionStore) -> int:
    """Pull sessions; returns the exit code."""
    place = _place(arguments)
    named = cast("list[str]", arguments.sessions)
    if wrong := next((one for one in named if not is_session_id(one)), None):
        raise UsageError(f"{wrong!r} is not the id of a session.", "Give an id, or its beginning.")
    use_stored_keys()
    order = PullOrder(
        store=store,
        merged=place.choice.merged,
        secrets=secret_values(os.environ),
        opener=read_opener(cast("Path | None", arguments.identity), _home()),
        session_ids=named or None,
    )
    with _relay(place, place.project.fetch_address) as relay:
        pulled = asyncio.run(_pull(relay, place, order))
    tips = {one.id: one.tip for one in pulled if one.tip}
    place.file.change(
        place.project.address,
        lambda now: now.model_copy(update={"merged": {**now.merged, **tips}}),
    )
    if missing := [one for one in named if not any(f.id.startswith(one) for f in pulled)]:
        remote = place.project.remote
        raise SessionError(f"{remote} has no session {', '.join(missing)}.")
    if arguments.is_json:
        write_json([_pulled_json(one) for one in pulled])
    else:
        titles = {found.id: session_title(found) for found in store.list()}
        _print_pulled(place, pulled, titles)
    return 1 if any(one.status == "failed" for one in pulled) else 0


async def _push(relay: Relay, place: _Place, order: PushOrder) -> tuple[PushedSession, ...]:
    await relay.prepare()
    pushed = await push_sessions(relay, place.project, order, _progress("Pushing"))
    await relay.tidy()
    return pushed


async def _pull(relay: Relay, place: _Place, order: PullOrder) -> tuple[PulledSession, ...]:
    await relay.prepare()
    pulled = await pull_sessions(relay, place.project, order, _progress("Pulling"))
    await relay.tidy()
    return pulled


def _place(arguments: argparse.Namespace) -> _Place:
    """The project around the present folder.

    Raises:
        UsageError: It is in no clone, has no such remote, or git may not run there.
    """
    cwd = present_folder()
    if not load_trust().may_run_git(cwd):
        raise UsageError(
            f"{cwd} is not trusted, so its git settings are not followed: they can run programs.",
            "If you trust it: agent-tui trust add.",
        )
    keeper, remote = ProcessKeeper(), cast("str | None", arguments.remote)
    project = asyncio.run(read_git_project(keeper, cwd, os.environ, remote))
    elsewhere = project_folders_elsewhere(worktree_records(), project.root)
    project = replace(project, elsewhere=elsewhere)
    file = ChoiceFile(main_folder(project.root))
    return _Place(keeper, project, file, file.read(project.address))


@contextmanager
def _relay(place: _Place, address: str) -> Generator[Relay]:
    """Our repository for the project and this address of its remote, for one program at a time.

    Raises:
        SessionError: Another program uses it, or it cannot be made.
    """
    named = hashlib.sha256(without_user(address).encode()).hexdigest()[:8]
    slug = paths.cwd_slug(main_folder(place.root))
    folder = paths.cache_folder("sharing") / f"{slug}-{named}.git"
    try:
        make_private_dir(folder.parent)
        with hold_lock(folder.with_suffix(".lock"), within_s=_LOCK_WITHIN_S):
            yield Relay(place.keeper, folder, place.project, address, os.environ)
    except LockHeldError as error:
        hint = error.owner.how_to_go_on or "Try again when it is done."
        raise SessionError(
            f"Sessions are being pushed or pulled by {error.owner}.", hint
        ) from error
    except OSError as error:
        raise SessionError(f"{folder} cannot be used: {error.strerror}.") from error


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # no HOME, and the system does not know this user
        return None


def _require_consent(place: _Place, *, is_sure: bool) -> None:
    if is_sure:
        return
    print(_EXPLAINED.format(address=place.project.address), file=sys.stderr)
    if not sys.stdin.isatty():
        raise UsageError("Nobody is there to confirm this.", "Add --yes if you read it.")
    if not ask("Is this remote private?", is_yes_usual=False):
        raise UsageError("Nothing changed.", "agent-tui sessions share --encrypt-to KEY encrypts.")


def _chosen(
    arguments: argparse.Namespace,
    place: _Place,
    store: SessionStore,
    there: dict[str, SessionSummary],
) -> list[str]:
    """The ids to push: those that are named now, else those that were chosen before.

    Raises:
        SessionError: A named session does not exist, or is not part of the project.
        UsageError: None was ever chosen.
    """
    named: list[str] = []
    for ref in cast("list[str]", arguments.sessions):
        path = store.find(ref, present_folder())
        found = next((one for one in there.values() if one.path.samefile(path)), None)
        if found is None:
            raise SessionError(f"{path} is not a session of the project in {place.root}.")
        named.append(found.id)
    if arguments.is_all:
        begun_here = [one for one, found in there.items() if not found.pulled_from]
        others = " or another worktree of it" if place.project.elsewhere else ""
        question = f"Choose all {len(begun_here)} sessions that began in {place.root}{others}?"
        is_asked = not arguments.is_sure and not arguments.only_plans
        if is_asked and not ask(question, is_yes_usual=False):
            raise UsageError("Nothing was pushed.", "Name the sessions that you want to share.")
        named += begun_here
    chosen = list(dict.fromkeys(named)) or list(place.choice.sessions)
    if not chosen:
        raise UsageError(
            "No session of this project is chosen.",
            "Choose one: agent-tui sessions push ID. `agent-tui sessions list` shows the ids.",
        )
    return chosen


def _stop(place: _Place, store: SessionStore, ref: str) -> Choice:
    """Remove a session from the chosen ones; one that is gone here is named by its id."""
    chosen = place.choice.sessions
    ids = [one for one in chosen if one.startswith(ref)]
    if len(ids) != 1:
        ids = [id_in_name(store.find(ref, present_folder()))]
    if ids[0] not in chosen:
        raise UsageError(
            f"Session {ids[0]} is not chosen.", "`agent-tui sessions share` lists them."
        )
    return place.change(sessions=tuple(one for one in chosen if one != ids[0]))


def _note_pushed(place: _Place, pushed: Sequence[PushedSession]) -> None:
    """Remember what is at the remote now, so that the next push need not read it again."""
    states = {one.id: one.state for one in pushed if one.state is not None}

    def note(now: Choice) -> Choice:
        # What was pulled up to the commit before ours is pulled up to ours, too.
        merged = {
            one.id: one.state.tip
            for one in pushed
            if one.state is not None
            and one.status == "pushed"
            and one.base == now.merged.get(one.id, "")
        }
        changed = {"pushed": {**now.pushed, **states}, "merged": {**now.merged, **merged}}
        return now.model_copy(update=changed)

    place.file.change(place.project.address, note)


def _progress(doing: str) -> "_Progress":
    return _Progress(doing)


@dataclass(frozen=True, slots=True)
class _Progress:
    """Shows on one line of a terminal how far the work is."""

    doing: str

    def __call__(self, done: int, total: int) -> None:
        """Show that `done` of `total` sessions are done."""
        if sys.stderr.isatty():
            end = "\r\x1b[K" if done >= total else ""
            text = f"\r{self.doing} {done:,} of {total:,} sessions{end}"
            print(text, end="", file=sys.stderr, flush=True)


def _print_choice(place: _Place, choice: Choice, store: SessionStore, *, is_json: bool) -> None:
    if is_json:
        write_json(
            {
                "remote": place.project.remote,
                "address": place.project.address,
                "allowed": choice.allowed,
                "recipients": list(choice.recipients),
                "sessions": list(choice.sessions),
            }
        )
        return
    print(
        f"Remote: {printable_line(place.project.remote)} ({printable_line(place.project.address)})"
    )
    match choice.allowed:
        case "private":
            print("You declared it private: sessions go in plain text.")
        case "encrypted":
            print("Sessions go encrypted to:")
            for one in choice.recipients:
                print(f"  {printable_line(one)}")
        case "":
            print(f"Nothing may be pushed yet. {_HOW_TO_ALLOW}")
    if not choice.sessions:
        print("No session is chosen.")
        return
    print("Chosen sessions:")
    titles = {
        found.id: session_title(found) for found in sessions_of_project(store, place.project.roots)
    }
    for one in choice.sessions:
        print(f"  {one[:8]}  {printable_line(titles.get(one, '(gone)'), _TITLE_CHARS)}")


def _print_pushed(
    place: _Place,
    outcomes: Sequence[PushedSession],
    there: dict[str, SessionSummary],
    chosen: Sequence[str],
) -> None:
    for one in outcomes:
        if one.status == "unchanged":
            continue
        title = session_title(there[one.id]) if one.id in there else ""
        facts = [one.why] if one.status == "failed" else list(_facts_of_push(one))
        print(f"{one.id[:8]}  {printable_line(title, _TITLE_CHARS)}")
        print(f"          {strip_control_characters('; '.join(facts))}")
    sent = [one for one in outcomes if one.status in ("pushed", "to push")]
    total = sum(one.entries for one in sent)
    verb = "Would push" if any(one.status == "to push" for one in outcomes) else "Pushed"
    where = printable_line(place.project.remote)
    print(
        f"{verb} {_count(total, 'new entry', 'new entries')} in "
        f"{_count(len(sent), 'session', 'sessions')} to {where}."
        if sent
        else f"Nothing new to push to {where}."
    )
    if left := _continuations(there, chosen):
        print(f"Not chosen, although they continue a chosen one: {', '.join(left)}")


def _facts_of_push(one: PushedSession) -> Generator[str]:
    yield f"{_count(one.entries, 'new entry', 'new entries')}, {one.size_bytes:,} bytes"
    if one.masked:
        yield f"{_count(one.masked, 'key', 'keys')} removed"
    if one.files:
        yield _count(one.files, "kept file", "kept files")
    if one.withheld:
        left_out = _count(one.withheld, "kept file", "kept files")
        yield f"{left_out} left out, as something in them looks like a key"


def _continuations(there: dict[str, SessionSummary], chosen: Sequence[str]) -> list[str]:
    """The sessions that continue a chosen one and are not chosen."""
    return [
        found.id[:8]
        for found in there.values()
        if found.id not in chosen
        and found.parent_session
        and id_in_name(Path(found.parent_session)) in chosen
    ]


def _print_pulled(place: _Place, pulled: Sequence[PulledSession], titles: dict[str, str]) -> None:
    for one in pulled:
        if one.status == "unchanged" and not (one.differing or one.waiting or one.unreadable):
            continue
        print(f"{one.id[:8]}  {printable_line(titles.get(one.id, ''), _TITLE_CHARS)}")
        facts = [one.why] if one.why else list(_facts_of_pull(one))
        print(f"          {strip_control_characters('; '.join(facts))}")
    came = [one for one in pulled if one.status in ("new", "updated")]
    where = printable_line(place.project.remote)
    total = sum(one.entries for one in came)
    print(
        f"Pulled {_count(total, 'new entry', 'new entries')} in "
        f"{_count(len(came), 'session', 'sessions')} from {where}."
        if came
        else f"Nothing new at {where}."
    )
    if new := next((one for one in came if one.status == "new"), None):
        print(f"To continue one: agent-tui -r {new.id[:8]}")


def _facts_of_pull(one: PulledSession) -> Generator[str]:
    yield _count(one.entries, "new entry", "new entries")
    if one.status == "new" and one.by:
        yield f"from {printable_line(one.by)}"
    if one.stays:
        yield "it continues where you left it: /tree shows what was pulled"
    if one.files:
        yield _count(one.files, "kept file", "kept files")
    if one.files_left:
        yield f"{_count(one.files_left, 'kept file', 'kept files')} left out: too large, or no room"
    if one.differing:
        yield f"{_count(one.differing, 'entry differs', 'entries differ')}: yours stay"
    if one.waiting:
        yield f"{_count(one.waiting, 'entry', 'entries')} left out: an earlier entry is missing"
    if one.unreadable:
        yield f"{_count(one.unreadable, 'part', 'parts')} unreadable"


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _pushed_json(one: PushedSession) -> JsonObject:
    return {
        "id": one.id,
        "status": one.status,
        "entries": one.entries,
        "keysRemoved": one.masked,
        "bytes": one.size_bytes,
        "files": one.files,
        "filesWithKeys": one.withheld,
        "error": one.why,
    }


def _pulled_json(one: PulledSession) -> JsonObject:
    return {
        "id": one.id,
        "status": one.status,
        "path": str(one.path) if one.path else None,
        "entries": one.entries,
        "by": one.by,
        "files": one.files,
        "stays": one.stays,
        "filesLeft": one.files_left,
        "differing": one.differing,
        "waiting": one.waiting,
        "unreadable": one.unreadable,
        "error": one.why,
    }
