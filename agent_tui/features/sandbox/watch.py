"""Protects files that outside programs follow, whatever commands in the wall do.

What exists is protected in one of three ways (`obeyed_state.Protection`). A read-only mount is the
simplest, but git cannot change such a file: a merge or rebase that must do so fails half-way. So a
*folder* (``.vscode``) is replaced inside by a copy that commands may change, and a file that git
tracks, a *text* that runs nothing itself (``AGENTS.md``), or what is in a work tree that git must
be able to remove, is only compared. The changes are examined after each command. Versions that the
user's commits have, or that the user last had or allowed there, are accepted; anything else is set
aside, and the previous content restored. Changes in a copied or mounted place are not visible
outside before that.

What does not exist yet cannot be protected by a mount: it is searched for after each command. New
git repositories stay, except hooks, and settings that could run programs.

The user works in the same folders. What was covered before anything that runs now began is changed
by the user alone. What changed while only jobs ran, or after the user replaced a covered file, may
be theirs: it stays, and they are asked. Only what changed during a command is set aside at once.

After a command, `project_look` reads the current state once, `change_finder` compares it with what
may be there, `change_authors` says who made each change, `provenance` whose content it is,
`change_judge` decides, and `change_applier` carries that out. That may lead to files that nothing
led to, so all of this is repeated until nothing is written. What then differs from what was
approved is in question. Both are on disk while commands run: after ``kill -9`` the next
conversation in the folder compares with it.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final, assert_never

from agent_tui.errors import ToolError
from agent_tui.features.sandbox.approved_state import APPROVED, ApprovedState
from agent_tui.features.sandbox.beneath import remove_folder, reopen, separate
from agent_tui.features.sandbox.change_applier import ChangeApplier
from agent_tui.features.sandbox.change_authors import Author, any_of
from agent_tui.features.sandbox.change_finder import find_changes
from agent_tui.features.sandbox.change_judge import Case, Decision, decide, is_reached, why_decide
from agent_tui.features.sandbox.file_contents import FileContents
from agent_tui.features.sandbox.folder_copies import FolderCopies
from agent_tui.features.sandbox.ground import Ground
from agent_tui.features.sandbox.held import HeldStore
from agent_tui.features.sandbox.hidden import HiddenFiles
from agent_tui.features.sandbox.known_versions import KnownVersions
from agent_tui.features.sandbox.linked import describe_linked
from agent_tui.features.sandbox.named_commits import NamesStamp
from agent_tui.features.sandbox.plan import Covers
from agent_tui.features.sandbox.project_look import ProjectLook
from agent_tui.features.sandbox.project_walk import MOST_FOLDERS, ProjectWalk
from agent_tui.features.sandbox.provenance import Provenance
from agent_tui.features.sandbox.running_commands import RunningCommands, conversations_beside
from agent_tui.features.sandbox.tracked_files import TrackedFiles
from agent_tui.safe_paths import is_folder, real_path, show_name
from agent_tui.tools.files.obeyed import who_obeys_folder, who_obeys_in
from agent_tui.tools.git.places import git_place
from agent_tui.tools.held_files import HeldFile
from agent_tui.tools.processes.keeper import ProcessKeeper

_MOST_LOOKS: Final = 100
"""Each finds what the files lead to that were put back after the one before. Settings that include
each other are shorter chains, and git itself follows ten."""

HELD: Final = "held"
"""In our folder for working folders: what commands left, until the user decides."""

_MOST_RETRIES: Final = 5
"""How often to look again if something could not be carried out: a job may have moved it since."""

_TOO_MANY = (
    f"This project has more than {MOST_FOLDERS:,} folders. In the deepest of them, commands see "
    "files with keys, and what they leave for editors, shells and git is not examined. To avoid "
    "that, start in a subfolder."
)
_MOVED = (
    "{} was moved or replaced while a command ran. What the command wrote since is in the folder "
    "that was there before. Nobody checked what it left there for editors, shells and git."
)
_RESTORED = (
    "{} was deleted by a command and is back: programs outside read it. A command outside the "
    "sandbox can delete it."
)
_FOLLOWED = (
    "{} is a folder that {} obeys, so changes that a command makes there need the approval of the "
    "user, except with Landlock in a folder of more than 2,000 files or 20 MB."
)


@dataclass(frozen=True, slots=True)
class Settled:
    """What was done after a command.

    Args:
        held: What the user decides on.
        brought: Files that git changed to a version from the user's commits.
        notice: What the user and the model are told once.
    """

    held: tuple[HeldFile, ...] = ()
    brought: tuple[Path, ...] = ()
    notice: str = ""


class ObeyedWatch:
    """Watches the working folders of one conversation.

    Call `note` before a command, `hold` after it; several commands may overlap. Between the two,
    other programs may do the same in the same folder.

    Args:
        roots: The working folders, the workspace first.
        folder: Our folder for these roots; hidden from commands.
        keeper: Starts git, outside the wall.
        environ: The environment of commands.
        has_mounts: Whether the wall can protect files in writable folders.
        linked: See `find_linked`.
        repositories: Our folder for what all conversations know of repositories; None for one
            in `folder`.
        unchecked: See `ProjectWalk`.

    Attributes:
        hidden: The files that commands do not see.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        folder: Path,
        *,
        keeper: ProcessKeeper,
        environ: Mapping[str, str],
        has_mounts: bool = True,
        linked: Mapping[Path, Path] = MappingProxyType({}),
        repositories: Path | None = None,
        unchecked: Iterable[str] = (),
    ) -> None:
        working = tuple(dict.fromkeys(real_path(root) for root in roots))
        unchecked = tuple(unchecked)
        places = [place for place in map(git_place, working) if place is not None]
        gits = {git for place in places for git in (place.entry, place.folder)}
        outside = [git for git in gits if not any(root in git.parents for root in working)]
        self._roots = tuple(dict.fromkeys((*working, *(place.folder for place in places))))
        repositories = repositories or folder / "repositories"
        self._own = (folder, repositories, conversations_beside(repositories))
        name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._running = RunningCommands(folder, self._own[-1], name, self._roots)
        own_copies = folder / "copies" / name
        held = folder / HELD
        contents = FileContents(folder / "versions", (*self._roots, own_copies, held))
        tracked = TrackedFiles(keeper, environ)
        followed = {
            root: who
            for root in working
            if (who := who_obeys_folder(root) or who_obeys_in(root, root, linked))
        }
        self._walk = ProjectWalk(
            working,
            (folder,),
            sorted(outside),
            unchecked=unchecked,
            settings=(root for root in working if root in linked),
            hides=has_mounts,
        )
        project = ProjectLook(
            self._walk, contents, tracked, self._roots, linked, followed, has_mounts
        )
        self._copies = FolderCopies(own_copies, contents, self._roots)
        self.hidden = HiddenFiles(environ, keeper)
        self._versions = KnownVersions(keeper, environ, working, repositories)
        self._provenance = Provenance(contents, self._versions)
        self._state = ApprovedState(
            folder / APPROVED, project, self._copies, self.hidden, self._provenance
        )
        self._store = HeldStore(held, self._roots, contents, name)
        self._applier = ChangeApplier(
            contents, self._store, tracked, self._roots, self._walk.new_in_gits
        )
        self._ground = Ground(working, unchecked)

        self._pending: list[HeldFile] = []
        self._has_taken_over = False
        self._notices = [
            *describe_linked(linked, working),
            *(_FOLLOWED.format(root, who) for root, who in followed.items()),
        ]
        self._is_limit_told = False
        self._turn = asyncio.Lock()

    @property
    def covers(self) -> Covers:
        """What the wall must mount from now on."""
        return self._state.covers

    async def recover(self) -> tuple[HeldFile, ...]:
        """Compare with the approved state if a program was killed while commands ran.

        Call this when a conversation begins. What is held is also part of the next `hold`.

        Raises:
            ToolError: Our folder cannot be used.
        """
        async with self._have_turn():
            before = len(self._pending)
            if (since := await asyncio.to_thread(self._take_up)) != "user":
                await self._settle(since)
            return tuple(self._pending[before:])

    def tell(self, notices: Iterable[str]) -> None:
        """Have the user and the model told `notices` with the next result."""
        self._notices += notices

    async def note(self) -> None:
        """Note that a command begins: the current state is the user's, if nothing else runs.

        Raises:
            ToolError: Our folder cannot be used, so no command may run.
        """
        async with self._have_turn():
            with self._running.open_turn() as turn:
                since, moved = await asyncio.to_thread(self._begin, turn)
                if since is not None:
                    await self._settle(since)
                elif moved:
                    await self._versions.note(moved, are_persons=True)
                    await asyncio.to_thread(self._state.take_users)
            if not self._has_taken_over:
                self._pending += await asyncio.to_thread(lambda: [*self._store.take_over()])
                self._has_taken_over = True
            if self._running.author == "user":
                self._ground.note()
            self._running.commands += 1

    async def hold(self, *, is_over: bool = True, is_told: bool = True) -> Settled:
        """Judge what a command did that ended, or continues as a job.

        Args:
            is_over: False if it becomes a job: then call `end_job` at its end.
            is_told: Whether the result is reported; otherwise held files are in the next one.

        Raises:
            ToolError: Our folder cannot be used.
        """
        async with self._have_turn():
            try:
                brought = await self._settle("commands", ending=1, is_over=is_over)
            finally:
                self._running.commands -= 1
                self._running.jobs += not is_over
            if not is_told:
                return Settled()
            return Settled(self._take_held(), tuple(brought), self._take_notice())

    async def find_held(self) -> tuple[HeldFile, ...]:
        """Look again after the user's decisions: what they led to, or came meanwhile.

        Raises:
            ToolError: Our folder cannot be used.
        """
        async with self._have_turn():
            if self._running.author != "user" or self._pending or self._state.approved.asked:
                await self._settle(self._running.changes_since())
            return self._take_held()

    async def end_job(self) -> None:
        """Judge what a job did that ended; held files are in the next result.

        Raises:
            ToolError: Our folder cannot be used.
        """
        async with self._have_turn():
            try:
                await self._settle(self._running.changes_since())
            finally:
                self._running.jobs -= 1

    async def hide_new_keys(self) -> None:
        """Hide the files with keys that the user may have written, if only jobs run.

        What is new or changed while a command runs is judged at its end: it may be the command's.

        Raises:
            OSError: Git cannot be asked.
        """
        async with self._turn:
            if self._running.jobs and not self._running.commands and not self._find_missing():
                await asyncio.to_thread(self._state.hide_new_keys)

    @asynccontextmanager
    async def _have_turn(self) -> AsyncGenerator[None]:
        """Wait until nothing else works on the state.

        At the end, folders that were opened for it have their modes back, and other programs are
        told who changes files by now.

        Raises:
            ToolError: Instead of `OSError`.
        """
        async with self._turn:
            try:
                try:
                    yield
                finally:
                    self._walk.close_folders()
                    self._say()
            except OSError as error:
                raise ToolError(f"Commands cannot be watched in the sandbox: {error}") from error

    async def decide(self, held: HeldFile, may_stay: bool) -> HeldFile:
        """Do what the user decided on a held file. Only what they were shown may stay.

        Args:
            held: The file.
            may_stay: Whether it is to be where it was found.

        Returns:
            `held`, or where it was moved.

        Raises:
            ToolError: It cannot be done; the text says why.
        """
        async with self._have_turn():
            if may_stay:
                await asyncio.to_thread(self._let_stay, held)
            elif held.is_in_place:
                return await asyncio.to_thread(self._take_back, held)
            await asyncio.to_thread(self._store.note_decided, held)
            return held

    async def accept(self, written: Mapping[Path, bytes | None]) -> None:
        """Accept what our own tools wrote with approval: nothing of it is held.

        Args:
            written: The content of each file; None for one that was deleted.

        Raises:
            ToolError: Our folder cannot be used.
        """
        async with self._have_turn():
            await asyncio.to_thread(self._accept, written)

    def _accept(self, written: Mapping[Path, bytes | None]) -> None:
        look, contents = self._state.look(), self._applier.contents
        for path, content in written.items():
            self.hidden.note_own(path)
            now = look.files.get(path, "")
            if content is None or now:
                mode = int(now.rpartition("-")[2], 8) if contents.of(now) else 0o644
                digest = "" if content is None else contents.keep(content, mode)
                self._state.approved.take([(path, digest)])
        self._state.note_words(written)
        self._state.store()

    def _let_stay(self, held: HeldFile) -> None:
        """Approve of what the user was shown, and of nothing that is there by now instead."""
        now = self._state.look().files  # which opens the folders on the way
        if held.is_in_place:
            if any(now.get(path, "") != digest for path, digest in held.files):
                raise ToolError(f"{held.path} has changed since you were asked; nothing was done")
        else:
            self._store.put_in_place(held)
        self._running.unsettled = any_of(self._running.unsettled, "either")
        self._state.allow(held.files)

    def _take_back(self, held: HeldFile) -> HeldFile:
        """Make the disk as it was approved, whatever is there by now."""
        state, contents, moved = self._state.approved, self._applier.contents, list[HeldFile]()
        asked = state.asked

        def is_meant(path: Path) -> bool:
            return path.is_relative_to(held.path) or held.path.is_relative_to(path)

        found = find_changes(state.files, self._state.look(), ())
        changes = [change for change in found if is_meant(change.path)]
        state.asked = {path: asked[path] for path in asked if not is_meant(path)}
        try:
            for change in changes:
                if not change.is_deletion:
                    with suppress(FileNotFoundError):  # a job was faster
                        moved.append(self._applier.set_aside(change, held.who, state))
                        self._store.note_decided(moved[-1])
            lost = {change.path for change in changes} | (asked.keys() - state.asked.keys())
            for path in lost & state.files.keys():
                if not os.path.lexists(path):
                    contents.write(path, state.files[path])
        except OSError:
            state.asked = asked
            raise
        self._running.unsettled = any_of(self._running.unsettled, "either")
        self._state.store()
        return next((each for each in moved if each.path == held.path), (*moved, held)[0])

    async def close(self) -> None:
        """Close the watch once no command runs or will run. What jobs left is judged before.

        If that fails, the next program in the folder does it.
        """
        with suppress(ToolError):
            await self.find_held()
        async with self._turn:
            self._running.jobs = 0
            releases = self._ground.release, self._state.authors.release, self._store.release
            for step in (self._say, self._running.close, *releases, self._versions.close):
                await asyncio.to_thread(step)
            await asyncio.to_thread(remove_folder, self._copies.folder)

    def _begin(self, turn: IO[bytes]) -> tuple[Author | None, Mapping[Path, NamesStamp]]:
        """How things are as a command begins, once no other program takes up the user's state.

        If git need not be called, the user's state is adopted at once: each thread switch costs a
        command 0.1 ms. So is all that there is at the first look, but commands that run in a folder
        around these or in them may have made some of it: they may not bring it back.

        Returns:
            Who may have changed files, or None if all is the user's, and for which repositories
            git must be called.

        Raises:
            ToolError: A working folder is missing, or another program does not go on.
        """
        if missing := self._find_missing():
            raise ToolError(f"{missing} is no longer there. Nothing was run.")
        self._running.take_turn(turn)
        if (others := self._take_up()) != "user":
            self._state.authors.note(())
        since = any_of(others, self._running.changes_since())
        is_first = others == "user" and not self._state.is_stored
        if any_of(since, self._running.author) != "user" and not is_first:
            return since, {}
        self._state.is_unclear = since != "user"
        moved = self._versions.find_moved(self._state.look().found.gits)
        if not moved:
            self._state.take_users()
        return None, moved

    def _say(self) -> None:
        """Tell other programs who changes files by now, here and in the repositories."""
        self._running.say()
        self._versions.say(self._running.author)

    def _take_up(self) -> Author:
        """Read the state stored on disk; returns who may have changed files in other programs."""
        others = self._running.say_busy()  # also in case we are killed
        return others if self._state.take_up() else "user"

    def _take_held(self) -> tuple[HeldFile, ...]:
        """What was set aside and not returned before, and all that is in question.

        That is what differs from what was approved, and was left in place.
        """
        approved, (held, self._pending) = self._state.approved, (self._pending, [])
        for change in find_changes(approved.files, self._state.last, ()):
            questions = (approved.question_on(path) for path, _ in change.files)
            question = next(filter(None, questions), None)
            is_shown = all(any(map(approved.question_on, way)) for way in change.ways)
            if question is not None and not (is_shown or change.is_deletion):
                shown = change.path, change.path, question.why, change.before
                held.append(self._store.describe(*shown, dict(change.files)))
        return tuple(held)

    def _take_notice(self) -> str:
        if self._walk.left_out and not self._is_limit_told:
            self._is_limit_told = True
            self._notices.append(_TOO_MANY)
        notices, self._notices = self._notices, []
        return " ".join(notices)

    def _find_missing(self) -> Path | None:
        return next((root for root in self._walk.roots if not is_folder(root)), None)

    async def _settle(self, since: Author, *, ending: int = 0, is_over: bool = True) -> list[Path]:
        """Do `_settle_now`, also if a command closed our own folders."""
        try:
            try:
                return await self._settle_now(since, ending=ending, is_over=is_over)
            except PermissionError:
                for folder in self._own:
                    await asyncio.to_thread(reopen, folder)
                return await self._settle_now(since, ending=ending, is_over=is_over)
        except BaseException:
            self._running.unsettled = "commands"
            raise

    async def _settle_now(self, since: Author, *, ending: int, is_over: bool) -> list[Path]:
        """Find what changed, decide on each change, and carry that out.

        Whatever is put back may lead to further followed files. So this is repeated until nothing
        is written. What changes after the first look is by what runs then. It may change a copy on
        and on: each file there is held once, and then only put back.

        Args:
            since: Who could change files since the last look.
            ending: How many commands end.
            is_over: Whether the command has ended: else it may need the steps that it noted.

        Returns:
            The files that git brought from the user's commits.

        Raises:
            OSError: Our folder cannot be used, or something could not be carried out.
        """
        state, running = self._state, self._running
        brought, failures, held = list[Path](), list[OSError](), set[Path]()
        replaced, is_by_user = self._ground.find_replaced()
        self._notices += map(_MOVED.format, replaced)
        if is_by_user:  # what is new there is not from commands, and what is gone was elsewhere
            since = "either"
            await asyncio.to_thread(state.forget, replaced)
        author, retries = since, _MOST_RETRIES
        leader = "either" if running.unsettled == "either" else any_of(since, "either")
        for _ in range(_MOST_LOOKS):
            if self._find_missing():  # what was done in it is judged when it is back
                running.unsettled = "commands"
                return brought
            cases, moved = await asyncio.to_thread(self._find, author, leader)
            await self._versions.note(moved, are_persons=author == "user")
            is_written, failed = await self._carry_out(cases, held, brought, is_over=is_over)
            failures += failed
            self._copies.settle()
            running.unsettled = "commands" if failures else "either" if is_written else "user"
            if failures and retries:
                retries -= 1
                failures.clear()
                continue
            if not is_written:
                await asyncio.to_thread(state.take_rest, since)
                break
            author = running.changes_since(ending=ending)
        await asyncio.to_thread(state.finish, since)
        if failures:
            raise failures[0]
        return brought

    async def _carry_out(
        self, cases: list[Case], held: set[Path], brought: list[Path], *, is_over: bool
    ) -> tuple[bool, list[OSError]]:
        """Decide on each of `cases`, and carry that out as far as possible.

        Args:
            cases: What one look found.
            held: The sources that were set aside so far; gets those of `cases`.
            brought: Gets the files that git brought from the user's commits.
            is_over: Whether the command has ended.

        Returns:
            Whether anything was written, and what failed.
        """
        is_written, aside, failures = False, set[Path](), list[OSError]()
        for case in cases:
            source = case.change.source
            if case.change.is_in_copy and source in held:
                continue
            try:
                decided = await self._decide(case, aside, is_over=is_over)
                is_written |= await asyncio.to_thread(self._apply, *decided, aside, brought)
                held |= {source} if decided[0] == "set aside" else set()
            except OSError as error:  # nothing else stays in place because of it
                aside.add(case.change.path)
                failures.append(error)
        return is_written, failures

    def _find(self, since: Author, leader: Author) -> tuple[list[Case], dict[Path, NamesStamp]]:
        """Look, and approve of what nobody need decide on.

        Args:
            since: Who could change files since the last look.
            leader: Who made what only something written since then leads to.

        Returns:
            What there is to decide, and where references moved.
        """
        state = self._state
        state.authors.forget(self._copies.move_work_trees_out())
        last, look = state.last, state.look(after_commands=True)
        moved, cases = self._versions.find_moved(look.found.gits), list[Case]()
        for change in find_changes(state.approved.standing, look, self._copies.look()):
            author = leader if look.is_led_to(change.path, last) else since
            if change.is_in_copy:
                author = "commands"
            else:
                author = state.authors.author_of(change.path, author)
            contents = self._applier.contents
            was, now = contents.bytes_of(change.before), contents.version_of(change.digest)
            why = "" if author == "user" else why_decide(change, self._roots, was, now)
            if why:
                cases.append(Case(change, author, why))
                continue
            state.approved.take_harmless(change.files)
            if author == "user":
                state.note_words(path for path, _ in change.files)
        return cases, moved

    async def _decide(
        self, case: Case, aside: AbstractSet[Path], *, is_over: bool
    ) -> tuple[Decision, Case]:
        approved = self._state.approved
        if not is_reached(case.change, approved, aside):
            return "leave", case
        origin = await self._provenance.find_origin(case.change, approved)
        return decide(case, origin, approved, is_over=is_over)

    def _apply(self, decision: Decision, case: Case, aside: set[Path], brought: list[Path]) -> bool:
        """Carry out what was decided on a change, and note it in `aside` and `brought`.

        Returns:
            Whether anything was put back, removed or brought: that can lead to other files.

        Raises:
            OSError: It cannot be done.
        """
        change, author, why = case
        approved = self._state.approved
        if decision == "separate" and not separate(change.path, self._roots):
            decision = "ask" if author == "either" else "set aside"
        match decision:
            case "leave" | "separate":  # what a link leads to is left with it
                aside |= set() if change.is_deletion else {change.path}
            case "accept":
                approved.take(change.files)
            case "ask":
                approved.ask(change.files, why)
            case "bring":
                if self._applier.bring(change):
                    brought.append(change.path)
                    approved.take(change.files)
            case "restore":
                self._applier.contents.write(change.path, change.before)
                self._notices.append(_RESTORED.format(show_name(str(change.path))))
            case "set aside":
                aside.add(change.path)
                with suppress(FileNotFoundError):  # another program was faster
                    self._pending.append(self._applier.set_aside(change, why, approved))
            case _:
                assert_never(decision)
        return decision in ("bring", "restore", "set aside")
