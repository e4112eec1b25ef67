"""Files go back with the talk: exactly, and never over what somebody else wrote."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent, CompactionFailed, Notice
from agent_tui.features.tour.scripted import Reply
from agent_tui.features.tree.branches import Branches
from agent_tui.messages import ToolCall, UserMessage
from agent_tui.sessions.entries import Entry, Header, MessageEntry
from agent_tui.sessions.file.kept_files import KeptFiles, digest_of, folder_of
from agent_tui.sessions.lineage.chain import snapshot
from agent_tui.sessions.lineage.joined import ContinuationPoint
from agent_tui.sessions.lineage.known_session import KnownSession
from agent_tui.sessions.replay.file_changes import (
    CHANGED_THERE,
    NOT_KEPT,
    SOMEBODY_ELSE,
    FileChanges,
    FileVersion,
    RecordedFileChange,
    Restore,
    RestorePlan,
    file_changes_entry,
    file_changes_in,
    plan_restore,
    plan_taking_back,
    restore_to_finish,
)
from agent_tui.tools.files.versions import FILE, PROGRAM, make_so, version_of
from agent_tui.tools.git.trees import WorkTrees
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, of_kind


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def keeper() -> Iterator[ProcessKeeper]:
    keeper = ProcessKeeper()
    yield keeper
    keeper.close()


def tool(name: str, id: str = "c1", **arguments: object) -> Reply:
    return Reply(tool_calls=(ToolCall(id=id, name=name, arguments=arguments),))  # pyright: ignore


def write(path: str, content: str, id: str = "w1") -> Reply:
    return tool("write", id, path=path, content=content)


def said(runtime: AgentRuntime, number: int) -> str:
    """The entry of the person's message `number`, from 0."""
    entries = runtime.conversation.log.entries
    users = [e for e in entries if isinstance(e, MessageEntry) and e.message.role == "user"]
    return users[number].id


async def back_to(runtime: AgentRuntime, number: int) -> RestorePlan:
    return await runtime.files.plan_for(await Branches(runtime).place_of(said(runtime, number)))


def behind(runtime: AgentRuntime, leaf_id: str | None) -> ContinuationPoint:
    """The place where `leaf_id` was the newest entry; None: before the first message."""
    log = runtime.conversation.log
    by_id = {entry.id: entry for entry in log.entries}
    return ContinuationPoint(snapshot(log), by_id.get(leaf_id or "", log.entries[0]), leaf_id)


def notices(events: tuple[AgentEvent, ...]) -> list[str]:
    return [notice.text for notice in of_kind(list(events), Notice)]


async def test_an_edit_and_a_new_file_are_put_back_and_that_is_taken_back(stage: Stage):
    old = stage.workspace / "old.py"
    old.write_bytes(b"one\r\ntwo\r\n")
    old.chmod(0o751)
    edit = tool("edit", "e1", path="old.py", old_text="two", new_text="2")
    runtime = stage.runtime(
        [tool("read", "r1", path="old.py"), edit, write("src/new.py", "new\n"), Reply(text="Done.")]
    )
    await collect(runtime.submit("Do it."))
    assert old.read_bytes() == b"one\r\n2\r\n"
    plan = await back_to(runtime, 0)
    assert {Path(r.path).name for r in plan.restores} == {"old.py", "new.py"}
    told = notices(await runtime.files.carry_out(plan))
    assert told == [
        "1 file restored: old.py. 1 file deleted: src/new.py. "
        "/undo offers to redo the file changes."
    ]
    assert old.read_bytes() == b"one\r\ntwo\r\n"
    assert old.stat().st_mode & 0o777 == 0o751
    assert not (stage.workspace / "src/new.py").exists()
    again = await runtime.files.plan_taking_back()
    await runtime.files.carry_out(again)
    assert old.read_bytes() == b"one\r\n2\r\n"
    assert (stage.workspace / "src/new.py").read_text() == "new\n"


async def test_what_a_session_names_and_always_asks_stays_as_it_is(stage: Stage):
    hook, plain = stage.workspace / ".git/hooks/post-checkout", stage.workspace / "a.py"
    hook.parent.mkdir(parents=True)
    runtime = stage.runtime([write("b.py", "b\n"), Reply(text="Done.")])
    await collect(runtime.submit("Do it."))
    conversation = runtime.conversation
    kept = conversation.kept_files.keep(b"echo\n")
    planted = FileVersion(digest=digest_of(b"echo\n"), mode=PROGRAM, is_kept=kept)
    places = (hook, Path("/proc/none/.bashrc"), plain)
    made = (
        RecordedFileChange(path=str(path), before=planted, after=FileVersion()) for path in places
    )
    conversation.log.append(file_changes_entry(FileChanges(changes=tuple(made))))
    *left, last = notices(await runtime.files.carry_out(await back_to(runtime, 0)))
    assert [path.exists() for path in places] == [False, False, True]
    assert "a.py" in left[0]
    assert "is in .git" in left[1]
    assert "read when programs start" in last


async def test_each_message_has_its_own_way_back(stage: Stage):
    file = stage.workspace / "a.txt"
    runtime = stage.runtime(
        [
            *(write("a.txt", "first"), Reply(text="1")),
            *(tool("read", "r", path="a.txt"), write("a.txt", "second", "w2"), Reply(text="2")),
        ]
    )
    await collect(runtime.submit("One."))
    await collect(runtime.submit("Two."))
    await runtime.files.carry_out(await back_to(runtime, 1))
    assert file.read_text() == "first"
    await runtime.files.carry_out(await back_to(runtime, 0))
    assert not file.exists()


async def test_what_somebody_else_changed_since_stays_and_is_named(stage: Stage):
    runtime = stage.runtime([write("a.txt", "ours"), write("b.txt", "b", "w2"), Reply(text="1")])
    await collect(runtime.submit("Go."))
    (stage.workspace / "a.txt").write_text("theirs")
    plan = await back_to(runtime, 0)
    assert [Path(r.path).name for r in plan.restores] == ["b.txt"]
    told = notices(await runtime.files.carry_out(plan))
    assert told[1] == f"a.txt was not restored: {SOMEBODY_ELSE}."
    assert (stage.workspace / "a.txt").read_text() == "theirs"


async def test_what_changes_between_the_plan_and_its_doing_stays(stage: Stage):
    runtime = stage.runtime([write("a.txt", "ours"), Reply(text="1")])
    await collect(runtime.submit("Go."))
    plan = await back_to(runtime, 0)
    (stage.workspace / "a.txt").write_text("theirs")
    assert notices(await runtime.files.carry_out(plan)) == [
        "a.txt was not restored: it has changed since."
    ]
    assert (stage.workspace / "a.txt").read_text() == "theirs"


async def test_a_file_that_may_hold_keys_is_not_copied_and_stays(stage: Stage):
    (stage.workspace / ".env").write_text("OLD=1")
    runtime = stage.runtime([tool("bash", "b", command="true"), Reply(text="1")])
    kept = runtime.conversation.kept_files
    held = version_of(
        stage.workspace / ".env", kept, runtime.conversation.permissions.why_attaching_asks
    )
    assert "may contain keys" in held.why_not
    assert not held.is_kept


async def test_talk_alone_leaves_the_files_and_they_can_still_go_back_later(stage: Stage):
    runtime = stage.runtime([write("a.txt", "ours"), Reply(text="1"), Reply(text="2")])
    await collect(runtime.submit("Go."))
    first = said(runtime, 0)
    await Branches(runtime).go_back(first)
    await collect(runtime.submit("Otherwise."))
    place = await Branches(runtime).place_of(first)
    await runtime.files.carry_out(await runtime.files.plan_for(place))
    assert not (stage.workspace / "a.txt").exists()


async def test_undoing_a_message_that_changed_nothing_leaves_what_an_older_branch_changed(
    stage: Stage,
):
    file = stage.workspace / "a.txt"
    runtime = stage.runtime(
        [Reply(text="1"), write("a.txt", "kept"), Reply(text="2"), Reply(text="3")]
    )
    for text in ("Explain.", "Fix it."):
        await collect(runtime.submit(text))
    await runtime.files.carry_out(await back_to(runtime, 1))
    await Branches(runtime).go_back(said(runtime, 1))
    await runtime.files.carry_out(await runtime.files.plan_taking_back(), tells_model=True)
    await Branches(runtime).go_back(said(runtime, 0))
    await collect(runtime.submit("Explain otherwise."))
    place = await Branches(runtime).last_said()
    assert place is not None
    assert (await runtime.files.plan_for(place)).is_empty
    assert file.read_text() == "kept"


async def test_another_branch_has_its_files_again(stage: Stage):
    file = stage.workspace / "a.txt"
    runtime = stage.runtime(
        [write("a.txt", "left"), Reply(text="1"), write("a.txt", "right", "w2"), Reply(text="2")]
    )
    await collect(runtime.submit("Go."))
    tip = runtime.conversation.log.leaf_id
    await runtime.files.carry_out(await back_to(runtime, 0))
    await Branches(runtime).go_back(said(runtime, 0))
    await collect(runtime.submit("Otherwise."))
    assert file.read_text() == "right"
    assert tip is not None
    await runtime.files.carry_out(await runtime.files.plan_for(behind(runtime, tip)))
    assert file.read_text() == "left"


async def test_files_alone_tell_the_model(stage: Stage):
    runtime = stage.runtime([write("a.txt", "ours"), Reply(text="1"), Reply(text="2")])
    await collect(runtime.submit("Go."))
    await runtime.files.carry_out(await back_to(runtime, 0), tells_model=True)
    await collect(runtime.submit("And now?"))
    request = stage.model.requests[-1]
    assert any("deleted these files" in m.text and "a.txt" in m.text for m in request.messages)


async def test_the_model_is_told_that_a_restore_was_undone_and_what_stayed(stage: Stage):
    edits = [write("a.txt", "ours"), write("b.txt", "ours", "w2")]
    runtime = stage.runtime([*edits, Reply(text="1"), Reply(text="2")])
    await collect(runtime.submit("Go."))
    await runtime.files.carry_out(await back_to(runtime, 0), tells_model=True)
    (stage.workspace / "b.txt").write_text("the user's")
    await runtime.files.carry_out(await runtime.files.plan_taking_back(), tells_model=True)
    await collect(runtime.submit("And now?"))
    note = stage.model.requests[-1].messages[-2].text
    assert note == (
        "(The user redid the undone changes in these files: a.txt. Read them again. "
        "These stayed as they are: b.txt (changed outside this session).)"
    )


async def test_of_several_restores_of_a_file_the_model_is_told_the_newest(stage: Stage):
    runtime = stage.runtime([write("a.txt", "ours"), Reply(text="1"), Reply(text="2")])
    await collect(runtime.submit("Go."))
    took = "(The user took this change in a.txt back.)"
    await runtime.files.carry_out(await back_to(runtime, 0), tells_model=True, told=took)
    assert await runtime.files.carry_out(await runtime.files.plan_taking_back(), tells_model=True)
    assert await runtime.files.carry_out(await back_to(runtime, 0), tells_model=True)
    await collect(runtime.submit("And now?"))
    texts = [m.text for m in stage.model.requests[-1].messages]
    assert took not in texts
    assert len([text for text in texts if "deleted these files" in text]) == 1


async def test_nothing_goes_back_while_something_runs(stage: Stage):
    refused: list[str] = []
    runtime: AgentRuntime

    async def attempt() -> None:
        try:
            await runtime.files.carry_out(RestorePlan())
        except AgentTuiError as error:
            refused.append(str(error))

    runtime = stage.runtime([Reply(text="1")])
    async for _ in runtime.submit("Go."):
        if not refused:
            await attempt()
    assert "Something is running" in refused[0]


async def test_a_session_in_memory_keeps_nothing(stage: Stage):
    runtime = stage.runtime([write("a.txt", "ours"), Reply(text="1")])
    runtime.conversation.kept_files = KeptFiles(None)
    await collect(runtime.submit("Go."))
    assert not any(map(file_changes_in, runtime.conversation.log.entries))


async def test_a_deleted_session_takes_what_it_kept_along(stage: Stage):
    runtime = stage.runtime([write("a.txt", "ours"), Reply(text="1")])
    await collect(runtime.submit("Go."))
    path = runtime.conversation.log.path
    assert path is not None
    assert folder_of(path).is_dir()
    assert all(f.stat().st_mode & 0o077 == 0 for f in folder_of(path).rglob("*"))
    await runtime.aclose()
    moved = runtime.services.store.delete(path)
    assert not folder_of(path).exists()
    assert folder_of(moved).is_dir()


async def test_a_fork_finds_what_the_session_before_it_kept(stage: Stage):
    (stage.workspace / "a.txt").write_text("old")
    runtime = stage.runtime(
        [tool("read", "r", path="a.txt"), write("a.txt", "ours"), Reply(text="1")]
    )
    await collect(runtime.submit("Go."))
    await Branches(runtime).fork()
    await runtime.files.carry_out(await back_to(runtime, 0))
    assert (stage.workspace / "a.txt").read_text() == "old"


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "clean.txt").write_bytes(b"clean\r\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / ".gitignore").write_text("ignored.txt\n")
    (folder / ".gitattributes").write_text("* text=auto eol=lf\n*.x filter=trap\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")


COMMAND = (
    "printf changed > clean.txt; rm run.sh; echo more >> dirty.txt; echo n > new.txt;"
    " rm link; ln -s new.txt link; echo i > ignored.txt; git add -A; git commit -qm y --no-verify"
)


@pytest.mark.parametrize("kind", ["model", "person"])
async def test_what_a_command_changed_in_a_repository_goes_back(
    stage: Stage, keeper: ProcessKeeper, kind: str
):
    folder = stage.workspace
    repository(folder)
    for key in ("user.name", "user.email"):
        git(folder, "config", key, "a@b")
    git(folder, "config", "filter.trap.clean", f"touch {folder}/trapped; cat")
    (folder / "dirty.txt").write_text("dirty\n")
    (folder / "a.x").write_text("x")
    (folder / "link").symlink_to("clean.txt")
    objects = {path.name for path in (folder / ".git/objects").rglob("*")}
    trees = WorkTrees(keeper)
    runtime = stage.runtime(
        [tool("bash", command="true"), Reply(text="0"), tool("bash", "b", command=COMMAND), Reply()]
        if kind == "model"
        else [],
        trees=trees,
    )
    if kind == "model":
        await collect(runtime.submit("Look."))
        assert {path.name for path in (folder / ".git/objects").rglob("*")} == objects
        assert not (folder / "trapped").exists()
        leaf = runtime.conversation.log.leaf_id
        await collect(runtime.submit("Go."))
    else:
        leaf = runtime.conversation.log.leaf_id
        await collect(runtime.run_bash(COMMAND, in_context=True))
    plan = await runtime.files.plan_for(behind(runtime, leaf))
    names = {"clean.txt", "run.sh", "dirty.txt", "new.txt", "link"}
    assert {Path(r.path).name for r in plan.restores} - {"trapped"} == names
    await runtime.files.carry_out(plan)
    assert (folder / "clean.txt").read_bytes() == b"clean\r\n"
    assert os.access(folder / "run.sh", os.X_OK)
    assert (folder / "dirty.txt").read_text() == "dirty\n"
    assert (folder / "link").readlink() == Path("clean.txt")
    assert not (folder / "new.txt").exists()
    assert (folder / "ignored.txt").exists()


async def test_files_too_large_to_keep_are_named_and_stay_as_the_command_left_them(
    stage: Stage, keeper: ProcessKeeper
):
    folder = stage.workspace
    repository(folder)
    for name in ("gone", "emptied", "longer", "same", "run"):
        (folder / name).write_bytes(b"x" * 5_000_001)
    (folder / "grown").write_text("small")
    (folder / "change.sh").write_text(
        "rm gone; : > emptied; echo >> longer; head -c 5000001 /dev/zero | tee grown > made;"
        "chmod +x run; echo changed > clean.txt"
    )
    runtime = stage.runtime(
        [tool("bash", command="sh change.sh"), Reply(text="Done.")], trees=WorkTrees(keeper)
    )
    leaf = runtime.conversation.log.leaf_id
    await collect(runtime.submit("Go."))
    plan = await runtime.files.plan_for(behind(runtime, leaf))
    events = await runtime.files.carry_out(plan)
    told = [event.text for event in events if isinstance(event, Notice)]
    left = "".join(text for text in told if "not restored" in text)
    assert "it is larger than 5 MB" in left
    assert {name for name in left.replace(",", "").split() if (folder / name).exists()} >= {
        *("emptied", "longer", "made", "run", "grown")
    }
    assert "gone" in left
    assert "same" not in left
    assert (folder / "emptied").read_bytes() == b""
    assert (folder / "clean.txt").read_bytes() == b"clean\r\n"


async def test_names_that_are_not_utf8_go_back_byte_for_byte_after_the_session_is_resumed(
    stage: Stage, keeper: ProcessKeeper
):
    folder, trees = stage.workspace, WorkTrees(keeper)
    repository(folder)
    names = [b"own\377.txt", b"own\376.txt", b"gone\377.txt"]
    for name in (names[0], names[2]):
        (folder / os.fsdecode(name)).write_bytes(b"as before " + name)
    (folder / "change.sh").write_text(
        r"a=$(printf 'own\377.txt') b=$(printf 'own\376.txt') c=$(printf 'gone\377.txt');"
        ' echo changed > "$a"; echo new > "$b"; rm "$c"; echo "$a"'
    )
    runtime = stage.runtime(
        [tool("bash", command="sh change.sh"), Reply(text="Done.")], trees=trees
    )
    leaf = runtime.conversation.log.leaf_id
    await collect(runtime.submit("Go."))
    made = {name: os.path.lexists(os.fsencode(folder) + b"/" + name) for name in names}
    assert made == {names[0]: True, names[1]: True, names[2]: False}
    path = runtime.conversation.log.path
    assert path is not None
    await runtime.aclose()
    resumed = stage.runtime([], trees=trees)
    await resumed.sessions.open(str(path))
    plan = await resumed.files.plan_for(behind(resumed, leaf))
    assert {os.fsencode(Path(r.path).name) for r in plan.restores} == set(names)
    await resumed.files.carry_out(plan)
    found = (path for path in folder.glob("*.txt") if path.name != "clean.txt")
    present = {os.fsencode(path.name): path.read_bytes() for path in found}
    assert present == {name: b"as before " + name for name in (names[0], names[2])}


async def test_what_the_person_changes_between_commands_is_not_the_commands(
    stage: Stage, keeper: ProcessKeeper
):
    folder = stage.workspace
    repository(folder)
    runtime = stage.runtime([], trees=WorkTrees(keeper))
    await collect(runtime.run_bash("echo 1 > one.txt", in_context=True))
    (folder / "clean.txt").write_text("mine")
    await collect(runtime.run_bash("echo 2 > two.txt", in_context=True))
    plan = await runtime.files.plan_for(behind(runtime, None))
    assert {Path(r.path).name for r in plan.restores} == {"one.txt", "two.txt"}


def change(path: str, before: str, after: str, *, is_kept: bool = True) -> RecordedFileChange:
    versions = [
        FileVersion(digest=text, mode=0o100644, is_kept=is_kept) if text else FileVersion()
        for text in (before, after)
    ]
    return RecordedFileChange(path=path, before=versions[0], after=versions[1])


def log(*changes: FileChanges):
    return tuple(
        file_changes_entry(each).model_copy(update={"id": str(number)})
        for number, each in enumerate(changes)
    )


def test_what_was_not_kept_stays_with_the_reason():
    entries = log(FileChanges(changes=(change("/a", "x", "y", is_kept=False),)))
    now = FileVersion(digest="y", mode=0o100644)
    assert plan_restore(entries, None, lambda _: now).left == (("/a", NOT_KEPT),)


def test_a_putting_back_that_was_cut_short_can_be_gone_on_with_and_taken_back():
    done, open_ = change("/a", "x", "y"), change("/b", "x", "y")
    entries = log(FileChanges(changes=(done, open_), is_restore=True))
    disk = {"/a": done.after, "/b": open_.before}
    left = restore_to_finish(entries, disk.__getitem__)
    assert [(r.path, r.wanted.digest) for r in left.restores] == [("/b", "y")]
    before = plan_restore(entries, None, disk.__getitem__)
    assert [(r.path, r.wanted.digest) for r in before.restores] == [("/a", "x")]


async def test_each_restore_is_undone_newest_first(stage: Stage):
    runtime = stage.runtime([])
    files = [stage.workspace / name for name in ("a.txt", "b.txt")]
    for file in files:
        file.write_text("changed")
        present = version_of(file, runtime.conversation.kept_files)
        kept = runtime.conversation.kept_files.keep(b"as before")
        wanted = FileVersion(digest=digest_of(b"as before"), mode=FILE, is_kept=kept)
        plan = RestorePlan((Restore(str(file), present, wanted),))
        told = notices(await runtime.files.carry_out(plan))
        assert told == [f"1 file restored: {file.name}. /undo offers to redo the file changes."]
    told = notices(await runtime.files.carry_out(await runtime.files.plan_taking_back()))
    assert told == [
        "Redone, files only: 1 file restored: b.txt. /undo offers to undo the restore before it."
    ]
    assert [file.read_text() for file in files] == ["as before", "changed"]
    told = notices(await runtime.files.carry_out(await runtime.files.plan_taking_back()))
    assert told == ["Redone, files only: 1 file restored: a.txt."]
    assert [file.read_text() for file in files] == ["changed", "changed"]
    assert (await runtime.files.plan_taking_back()).is_empty


def test_a_restore_whose_undoing_was_cut_short_stays_open():
    made = dated(
        file_changes_entry(
            FileChanges(changes=(change("/a", "x", "y"), change("/b", "x", "y")), is_restore=True)
        ),
        "r1",
        0,
    )
    undoing = FileChanges(
        changes=(change("/a", "y", "x"), change("/b", "y", "x")), is_restore=True, undoes="r1"
    )
    entries = [made, dated(file_changes_entry(undoing), "r2", 1)]
    disk = {"/a": change("/a", "y", "x").after, "/b": change("/b", "y", "x").before}
    for plan in (plan_taking_back, restore_to_finish):
        left = plan(entries, disk.__getitem__)
        assert [(r.path, r.wanted.digest) for r in left.restores] == [("/b", "x")]
        assert left.undoes == "r1"


CONTENTS = st.one_of(st.none(), st.binary(max_size=20))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["us", "them", "back"]),
        st.sampled_from("abc"),
        CONTENTS,
        st.booleans(),
        st.integers(0, 20),
    ),
    max_size=12,
)


class Disk:
    """Files that we, they and going back change, and how they were after each entry."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.kept = KeptFiles(root / "kept")
        self.entries: list[Entry] = []
        self.theirs: set[str] = set()
        self.moments = [self.look()]

    def look(self) -> dict[str, FileVersion]:
        return {name: version_of(self.root / name, self.kept) for name in "abc"}

    def put(self, name: str, content: bytes | None, *, runs: bool) -> None:
        path = self.root / name
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
            path.chmod(0o755 if runs else 0o644)

    def record(self, changes: Sequence[RecordedFileChange], *, is_restore: bool) -> None:
        if changes:
            made = FileChanges(changes=tuple(changes), is_restore=is_restore)
            entry = file_changes_entry(made).model_copy(update={"id": str(len(self.entries))})
            self.entries.append(entry)
            self.moments.append(self.look())

    def ours(self, name: str, content: bytes | None, *, runs: bool) -> None:
        path = self.root / name
        before = version_of(path, self.kept)
        self.put(name, content, runs=runs)
        after = version_of(path, self.kept)
        if not before.is_as(after):
            made = RecordedFileChange(path=str(path), before=before, after=after)
            self.record([made], is_restore=False)

    def take(self) -> list[Entry]:
        """The records since the last time, for a session's log."""
        taken, self.entries = self.entries, []
        return [each.model_copy(update={"id": "", "parent_id": None}) for each in taken]

    def back(self, number: int) -> None:
        """Go back to behind an entry, and look at what came of it."""
        at = number % len(self.moments)
        present = self.look()
        leaf = str(at - 1) if at else None
        plan = plan_restore(self.entries, leaf, lambda path: version_of(Path(path)))
        made = [
            RecordedFileChange(
                path=r.path, before=version_of(Path(r.path), self.kept), after=r.wanted
            )
            for r in plan.restores
        ]
        for each in plan.restores:
            make_so(Path(each.path), each.wanted, self.kept)
        left = {Path(path).name for path, _ in plan.left}
        now = self.look()
        assert left <= self.theirs
        assert all(now[name].is_as(present[name]) for name in left)
        assert all(now[name].is_as(self.moments[at][name]) for name in set("abc") - self.theirs)
        self.record(made, is_restore=True)


@settings(max_examples=150)
@given(STEPS)
def test_whatever_happens_going_back_is_exact_or_names_what_it_leaves(
    steps: list[tuple[str, str, bytes | None, bool, int]],
):
    with tempfile.TemporaryDirectory() as name:
        disk = Disk(Path(name).resolve())
        for who, file, content, runs, number in steps:
            match who:
                case "them":
                    disk.put(file, content, runs=runs)
                    disk.theirs.add(file)
                case "us":
                    disk.ours(file, content, runs=runs)
                case _:
                    disk.back(number)


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.text("abc", max_size=2), st.integers(0, 3)),
        st.tuples(st.sampled_from(["both", "talk", "files", "redo"]), st.just(""), st.just(0)),
        st.tuples(st.just("go back"), st.just(""), st.integers(0, 9)),
    ),
    min_size=3,
    max_size=14,
)


@settings(max_examples=60)
@given(ACTS)
async def test_undoing_a_turn_changes_no_file_that_did_not_change_since_its_message_was_sent(
    acts: list[tuple[str, str, int]],
):
    with tempfile.TemporaryDirectory() as name:
        stage = Stage(Path(name).resolve())
        runtime = stage.runtime([])
        log, branches = runtime.conversation.log, Branches(runtime)
        disk, sent = Disk(stage.workspace), dict[str, dict[str, FileVersion]]()
        disk.kept = runtime.conversation.kept_files
        for act, files, number in acts:
            match act:
                case "send":
                    message = log.append(MessageEntry(message=UserMessage(content="Go.")))
                    sent[message.id] = disk.look()
                    for file in files:
                        disk.ours(file, b"%d" % number if number else None, runs=False)
                        log.append_many(disk.take())
                case "redo":
                    await runtime.files.carry_out(
                        await runtime.files.plan_taking_back(), tells_model=True
                    )
                case "go back":
                    if sent:
                        await branches.go_back([*sent][number % len(sent)])
                case _ if (place := await branches.last_said()) is not None:
                    before, was = disk.look(), sent[place.entry.id]
                    if act != "talk":
                        plan = await runtime.files.plan_for(place)
                        await runtime.files.carry_out(plan, tells_model=act == "files")
                        assert {n: v for n, v in disk.look().items() if not v.is_as(before[n])} == {
                            n: v for n, v in was.items() if not v.is_as(before[n])
                        }
                    if act != "files":
                        await branches.go_to(place)
                case _:
                    pass


OWN = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("wxyz"), st.sampled_from("wxyz")), max_size=6
)
PUSHED = st.lists(
    st.tuples(
        st.integers(0, 12), st.sampled_from("abc"), st.sampled_from("wxyz"), st.sampled_from("wxyz")
    ),
    max_size=6,
)


def dated(item: Entry, own_id: str, second: int, pulled_from: str | None = None) -> Entry:
    place = {"id": own_id, "parent_id": None, "pulled_from": pulled_from}
    return item.model_copy(update={**place, "timestamp": f"2026-03-02T09:00:{second:02}.000Z"})


@given(OWN, PUSHED, st.sampled_from("wxyz"), st.booleans(), st.integers(0, 6), st.integers(0, 6))
def test_what_others_pushed_neither_causes_nor_changes_a_restore(
    own: list[tuple[str, str, str]],
    pushed: list[tuple[int, str, str, str]],
    present: str,
    is_restore: bool,
    leaf: int,
    later: int,
):
    made = [
        dated(file_changes_entry(FileChanges(changes=(change(*each),))), f"o{number}", number)
        for number, each in enumerate(own)
    ]
    together = list(made)
    for number, (place, path, before, after) in enumerate(pushed):
        theirs = FileChanges(changes=(change(path, before, after),), is_restore=is_restore)
        # They may name one of our entries, and any time.
        own_id, when = f"{'o' if place % 2 else 'p'}{number}", (place * 17) % 60
        item = dated(file_changes_entry(theirs), own_id, when, "Eve")
        if own_id not in {entry.id for entry in made} or place % 4 == 1:
            together.insert(place % (len(together) + 1), item)
    cut = min(later, len(together))
    first, second = (
        KnownSession(Header(), None, tuple(each)) for each in (together[:cut], together[cut:])
    )
    begun = dated(file_changes_entry(FileChanges()), "x", 0)
    written = ContinuationPoint(first, begun, None, (second,)).all_entries()
    assert [one for one in written if one.pulled_from is None] == made
    version = FileVersion(digest=present, mode=0o100644, is_kept=True)
    leaf_id = f"o{leaf}" if leaf < len(made) else None
    plan, alone = (plan_restore(each, leaf_id, lambda _: version) for each in (written, made))
    assert plan.restores == alone.restores
    assert [path for path, _ in plan.left[: len(alone.left)]] == [path for path, _ in alone.left]
    assert {why for _, why in plan.left[len(alone.left) :]} <= {CHANGED_THERE.format(name="Eve")}
    for planned in (plan_taking_back, restore_to_finish):
        assert planned(written, lambda _: version) == planned(made, lambda _: version)


def test_going_back_names_what_others_changed_and_leaves_it():
    theirs = dated(
        file_changes_entry(FileChanges(changes=(change("/a", "x", "y"),))), "p1", 1, "Eve"
    )
    mine = dated(file_changes_entry(FileChanges(changes=(change("/b", "x", "y"),))), "o2", 2)
    now = FileVersion(digest="y", mode=0o100644)
    plan = plan_restore((theirs, mine), None, lambda _: now)
    assert [one.path for one in plan.restores] == ["/b"]
    assert plan.left == (("/a", "changed in another clone, and pulled from Eve"),)
    over_ours = dated(
        file_changes_entry(FileChanges(changes=(change("/b", "y", "z"),))), "p3", 3, "Eve"
    )
    theirs_now = FileVersion(digest="z", mode=0o100644)
    left = plan_restore((mine, over_ours), None, lambda _: theirs_now)
    assert left == RestorePlan(left=(("/b", "changed in another clone, and pulled from Eve"),))
    as_before = plan_restore((theirs,), None, lambda _: FileVersion(digest="x", mode=0o100644))
    assert as_before.is_empty


RESTORING = """
import asyncio, sys
from pathlib import Path
from tests.agent.session.test_restoring import behind
from tests.support.runtime import Stage

async def main(folder, session):
    runtime = Stage(Path(folder)).runtime([])
    await runtime.sessions.open(session)
    print("ready", flush=True)
    await runtime.files.carry_out(await runtime.files.plan_for(behind(runtime, None)))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(4))
async def test_a_kill_in_the_middle_leaves_whole_files_and_can_be_gone_on_with(
    stage: Stage, number: int
):
    count = 200
    folder = stage.workspace / "many"
    folder.mkdir()
    calls = [write(f"many/{n}.txt", "new" * 100, f"w{n}").tool_calls[0] for n in range(count)]
    runtime = stage.runtime([Reply(tool_calls=tuple(calls)), Reply(text="Done.")])
    await collect(runtime.submit("Go."))
    assert len(list(folder.iterdir())) == count
    session = str(runtime.conversation.log.path)
    await runtime.aclose()
    command = [sys.executable, "-c", RESTORING, str(stage.folder), session]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        while len(list(folder.iterdir())) > count - 1 - 40 * number and child.poll() is None:
            pass
        child.kill()
    left = list(folder.glob("*.txt"))
    assert all(path.read_text() == "new" * 100 for path in left)
    again = stage.runtime([])
    opened = await again.sessions.open(session)
    going_on = await again.files.plan_going_on()
    assert len(going_on.restores) == len(left)
    assert bool(left) == any("ended while restoring files" in text for text in notices(opened))
    await again.files.carry_out(going_on)
    assert not list(folder.glob("*.txt"))


def test_the_store_keeps_each_content_once_and_lets_the_oldest_go(tmp_path: Path):
    kept = KeptFiles(tmp_path / "k", most_bytes=5_000)
    first = os.urandom(1_000)
    assert kept.keep(first)
    assert kept.keep(first)
    assert len(list((tmp_path / "k").glob("*/*"))) == 1
    os.utime(next((tmp_path / "k").glob("*/*")), (1, 1))
    for _ in range(6):
        kept.keep(os.urandom(1_000))
    stored = sum(path.stat().st_size for path in (tmp_path / "k").glob("*/*"))
    assert stored <= 5_000
    digest = version_of(tmp_path / "none").digest
    assert digest == ""


def test_damaged_content_is_not_given(tmp_path: Path):
    kept = KeptFiles(tmp_path / "k")
    kept.keep(b"words")
    (file,) = (tmp_path / "k").glob("*/*")
    digest = file.parent.name + file.name
    assert kept.content(digest) == b"words"
    file.write_bytes(b"damaged")
    assert kept.content(digest) is None


async def test_a_changed_file_whose_name_is_not_utf8_is_compacted(
    stage: Stage, keeper: ProcessKeeper
):
    repository(stage.workspace)
    (stage.workspace / "change.sh").write_text(r"echo new > $(printf 'own\377.txt'); ls")
    said = Reply(text="more " * 5_000)
    script = [tool("bash", command="sh change.sh"), said, *[Reply(text=GOOD_SUMMARY)] * 4]
    runtime = stage.runtime(script, trees=WorkTrees(keeper))
    await collect(runtime.submit("go"))
    await collect(runtime.submit("again"))
    events = await collect(runtime.compact())
    assert not of_kind(events, CompactionFailed)
