"""``agent-tui sessions share``, ``push`` and ``pull`` between two clones of a project."""

import asyncio
import io
import json
import os
import random
import stat
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_tui.agent.session.spending import spending_of
from agent_tui.errors import SessionError, UsageError
from agent_tui.features.goal.goal import Goal, goal_entry, goal_in
from agent_tui.features.sessions.command import run_command
from agent_tui.features.sharing import pull, segments
from agent_tui.features.sharing import verbs as sharing
from agent_tui.features.sharing.encryption import Sealer
from agent_tui.features.sharing.relay import Addition, PushAnswer, Relay
from agent_tui.features.sharing.segments import MOST_OPENED_BYTES, SegmentHead, file_name
from agent_tui.features.trust.subcommand import run_command as trust_folder
from agent_tui.features.why.line_history.answers import FOR_PEOPLE, answer_lines
from agent_tui.features.why.line_history.file_sessions import FileSessions
from agent_tui.features.why.line_history.project import read_file_history
from agent_tui.features.why.line_history.why import LinePlace, explain_lines
from agent_tui.file_locks import FileLock
from agent_tui.messages import FileTouches, JsonObject, ToolCall, Usage, UserMessage
from agent_tui.sessions.entries import CustomEntry, Entry, LabelEntry, MessageEntry
from agent_tui.sessions.file.kept_files import KeptFiles, digest_of, folder_of
from agent_tui.sessions.format.codec import encode_entry
from agent_tui.sessions.lineage.chain import ProjectSessions
from agent_tui.sessions.lineage.joined import labels_of
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.file_changes import (
    NOT_PULLED,
    FileChanges,
    FileVersion,
    RecordedFileChange,
    changes_entry,
    file_changes_entry,
    file_changes_in,
)
from tests.support.session_values import entry, reply, result, user
from tests.support.shared_clones import (
    DECOYS,
    SECRET_VARIABLE,
    Clone,
    import_into,
    make_clones,
    no_decoy_in,
    objects_of,
    run_git,
    sharing_program,
)

Run = Callable[..., str]


@dataclass(frozen=True, slots=True)
class Both:
    """The remote, and the clones of Ada and Bo."""

    remote: Path
    ada: Clone
    bo: Clone


@pytest.fixture
def both(tmp_path: Path) -> Both:
    return Both(*make_clones(tmp_path))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``agent-tui sessions`` in a clone; returns what it prints."""

    def run_in(clone: Clone, *argv: str, code: int | None = 0, knows_secret: bool = True) -> str:
        monkeypatch.chdir(clone.root)
        monkeypatch.setenv("AGENT_TUI_HOME", str(clone.home))
        monkeypatch.setenv("HOME", str(clone.home))
        monkeypatch.setenv(SECRET_VARIABLE, DECOYS[-1] if knows_secret else "")
        capsys.readouterr()
        assert run_command(argv) == code or code is None
        return capsys.readouterr().out

    return run_in


def carry(run: Run, both: Both, *ids: str, argv: tuple[str, ...] = ()) -> None:
    """Push these sessions of Ada's, and pull them as Bo."""
    run(both.ada, "push", "--public", *argv, *ids)
    run(both.bo, "pull")


def refs(remote: Path) -> list[str]:
    return run_git(remote, "for-each-ref", "--format=%(refname)").split()


def test_nothing_is_pushed_until_it_is_allowed(both: Both, run: Run) -> None:
    one = both.ada.begin("hello")
    with pytest.raises(UsageError, match="may not be pushed") as refused:
        run(both.ada, "push", one)
    assert "share --private" in refused.value.hint
    assert "--encrypt-to" in refused.value.hint
    assert "--public" in refused.value.hint
    assert refs(both.remote) == []
    assert "No session is chosen" in run(both.ada, "share")


def test_nobody_declares_a_remote_private_without_being_told(both: Both, run: Run) -> None:
    with pytest.raises(UsageError, match="Nobody is there"):
        run(both.ada, "share", "--private")
    assert json.loads(run(both.ada, "share", "--json"))["allowed"] == ""
    assert "declared it private" in run(both.ada, "share", "--private", "--yes")


class Answer(io.StringIO):
    """A terminal at which somebody types this."""

    def isatty(self) -> bool:
        return True


def test_the_explanation_is_read_before_the_answer(
    both: Both, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Answer("\n"))
    with pytest.raises(UsageError, match="Nothing changed"):
        run(both.ada, "share", "--private")
    said = capsys.readouterr().err
    assert "cannot be taken back" in said
    assert str(both.remote) in said
    assert json.loads(run(both.ada, "share", "--json"))["allowed"] == ""
    monkeypatch.setattr("sys.stdin", Answer("y\n"))
    assert "declared it private" in run(both.ada, "share", "--private")


def test_all_sessions_are_chosen_only_after_a_question(
    both: Both, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = both.ada.begin("hello")
    monkeypatch.setattr("sys.stdin", Answer("\n"))
    with pytest.raises(UsageError, match="Nothing was pushed"):
        run(both.ada, "push", "--public", "--all")
    assert refs(both.remote) == []
    monkeypatch.setattr("sys.stdin", Answer("y\n"))
    run(both.ada, "push", "--public", "--all")
    assert refs(both.remote) == [f"refs/agent-tui/sessions/{one}"]


def test_one_program_at_a_time_pushes_and_pulls(
    both: Both, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(both.ada, "push", "--public", both.ada.begin("hello"))
    (relay,) = (both.ada.home / "cache" / "sharing").glob("*.git")
    lock = FileLock(relay.with_suffix(".lock"))
    monkeypatch.setattr(sharing, "_LOCK_WITHIN_S", 0.0)
    with pytest.raises(SessionError, match="being pushed or pulled"):
        run(both.ada, "pull")
    lock.release()
    run(both.ada, "pull")


def test_a_declaration_counts_for_this_address_only(both: Both, run: Run, tmp_path: Path) -> None:
    one = both.ada.begin("hello")
    run(both.ada, "share", "--private", "--yes")
    run(both.ada, "push", one)
    other = tmp_path / "public.git"
    run_git(tmp_path, "init", "--quiet", "--bare", str(other))
    both.ada.git("remote", "set-url", "origin", str(other))
    with pytest.raises(UsageError, match="may not be pushed"):
        run(both.ada, "push", one)
    assert refs(other) == []


def test_a_file_of_the_repository_allows_nothing(both: Both, run: Run) -> None:
    one = both.ada.begin("hello")
    text = json.dumps({"remotes": {str(both.remote): {"allowed": "private"}}})
    for name in ("sharing.json", ".agent-tui/sharing.json"):
        file = both.ada.root / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    with pytest.raises(UsageError, match="may not be pushed"):
        run(both.ada, "push", one)


def test_only_chosen_sessions_are_pushed_and_they_stay_chosen(both: Both, run: Run) -> None:
    one, two = both.ada.begin("first"), both.ada.begin("second")
    run(both.ada, "share", "--private", "--yes")
    with pytest.raises(UsageError, match="No session of this project is chosen"):
        run(both.ada, "push")
    assert "1 new entry in 1 session" in run(both.ada, "push", one)
    for session_id in (one, two):
        both.ada.append(session_id, entry(user("more")))
    assert "1 new entry in 1 session" in run(both.ada, "push")
    assert refs(both.remote) == [f"refs/agent-tui/sessions/{one}"]
    run(both.ada, "share", "--stop", one[:8])
    both.ada.append(one, entry(user("secret now")))
    with pytest.raises(UsageError, match="No session"):
        run(both.ada, "push")


def test_sessions_of_other_folders_are_none_of_the_project(
    both: Both, run: Run, tmp_path: Path
) -> None:
    nested = both.ada.root / "vendor"
    nested.mkdir()
    run_git(nested, "init", "--quiet")
    elsewhere = both.ada.begin("other work", cwd=str(tmp_path))
    inner = both.ada.begin("nested", cwd=str(nested))
    (both.ada.root / "src").mkdir()
    inside = both.ada.begin("here", cwd=str(both.ada.root / "src"))
    for session_id in (elsewhere, inner):
        with pytest.raises(SessionError, match="not a session of the project"):
            run(both.ada, "push", "--public", session_id)
    run(both.ada, "push", "--public", "--all", "--yes")
    assert refs(both.remote) == [f"refs/agent-tui/sessions/{inside}"]


def test_sessions_of_the_other_worktrees_are_of_the_project(
    both: Both, run: Run, tmp_path: Path
) -> None:
    ada = both.ada
    ada.git("commit", "--quiet", "--allow-empty", "-m", "first")
    tree = tmp_path / "tree"
    ada.git("worktree", "add", "--quiet", str(tree))
    (tree / "src").mkdir()
    nested = tree / "vendor"
    nested.mkdir()
    run_git(nested, "init", "--quiet")
    main = ada.begin("in the main one")
    inside = ada.begin(f"look at {tree}/src/a.py and {ada.root}/b.py", cwd=str(tree / "src"))
    other = ada.begin("of another repository", cwd=str(nested))
    linked = Clone(tree, ada.home)
    with pytest.raises(UsageError, match="is not trusted"):
        run(linked, "share")
    assert trust_folder(["add", str(tree)]) == 0
    run(linked, "share", "--private", "--yes")
    run(ada, "push", "--all", "--yes")
    assert set(refs(both.remote)) == {f"refs/agent-tui/sessions/{one}" for one in (main, inside)}
    with pytest.raises(SessionError, match="not a session of the project"):
        run(ada, "push", other)
    (both.bo.root / "src").mkdir()
    run(both.bo, "pull")
    log = both.bo.open(inside)
    assert log.header.cwd == str(both.bo.root / "src")
    assert said_in(log.entries) == [f"look at {both.bo.root}/src/a.py and {both.bo.root}/b.py"]
    both.bo.append(inside, entry(user(f"see {both.bo.root}/c.py")))
    run(both.bo, "push", "--public", inside)
    assert "differ" not in (printed := run(ada, "pull"))
    assert "1 new entry in 1 session" in printed
    assert said_in(ada.open(inside).entries)[-1] == f"see {tree}/c.py"
    ada.append(inside, entry(user("more")))
    assert "1 new entry in 1 session" in run(linked, "push")


def test_a_dry_run_says_what_would_go_and_sends_nothing(both: Both, run: Run) -> None:
    one = both.ada.begin(f"the key is {DECOYS[0]}", "and more")
    printed = run(both.ada, "push", "--dry-run", one)
    assert "2 new entries" in printed
    assert "1 key removed" in printed
    assert "may not be pushed" in printed
    assert refs(both.remote) == []
    assert json.loads(run(both.ada, "share", "--json"))["sessions"] == []
    (row,) = json.loads(run(both.ada, "push", "--dry-run", "--json", one))
    assert (row["status"], row["entries"], row["keysRemoved"]) == ("to push", 2, 1)


def test_no_key_leaves_and_the_original_keeps_it(both: Both, run: Run) -> None:
    said = " ".join(DECOYS)
    one = both.ada.begin(said)
    call = ToolCall(id="c1", name="bash", arguments={"command": f"curl -H 'X: {DECOYS[0]}'"})
    both.ada.append(one, entry(reply("")).model_copy(update={"message": reply(said)}))
    asked = reply("").model_copy(update={"content": (call,)})
    both.ada.append(one, entry(asked), entry(result("c1", said)))
    carry(run, both, one)
    assert no_decoy_in(both.remote)
    assert b"[key removed]" in objects_of(both.remote)
    pulled = both.bo.file_of(one).read_text()
    assert not any(decoy in pulled for decoy in DECOYS)
    assert "[key removed]" in pulled
    both.bo.append(one, entry(user("going on")))
    run(both.bo, "push", "--public", one)
    before = both.ada.file_of(one).read_bytes()
    printed = run(both.ada, "pull")
    assert "differ" not in printed
    after = both.ada.file_of(one).read_bytes()
    assert after.startswith(before)
    assert after[len(before) :].count(b"\n") == 1


def test_a_copy_without_a_key_that_is_unknown_by_now_is_still_a_copy(both: Both, run: Run) -> None:
    one = both.ada.begin(f"it is {DECOYS[-1]}, he said {DECOYS[-1]} again")
    run(both.ada, "push", "--public", one)
    for file in both.ada.home.rglob("sharing.json"):
        file.unlink()  # so that all of it is compared again
    assert "differ" not in run(both.ada, "pull", knows_secret=False)
    forge(both, one, part(one, said("it is [key removed], she said", own_id_of(both.ada, one))))
    assert "yours stay" in run(both.ada, "pull", knows_secret=False)


def own_id_of(clone: Clone, session_id: str) -> str:
    return clone.open(session_id).entries[0].id


def test_a_file_that_is_no_session_any_more_is_not_replaced(both: Both, run: Run) -> None:
    one = both.ada.begin("start")
    carry(run, both, one)
    file = both.bo.file_of(one)
    file.write_bytes(b"all that is left of it")
    assert "exists already and stays" in run(both.bo, "pull", one, code=1)
    assert file.read_bytes() == b"all that is left of it"


def test_a_pulled_session_works_in_this_clone_and_decides_nothing(both: Both, run: Run) -> None:
    (both.bo.root / "src").mkdir()
    (both.ada.root / "src").mkdir()
    cwd = both.ada.root / "src"
    one = both.ada.begin(f"look at {both.ada.root}/a.py", cwd=str(cwd), modelId="expensive")
    both.ada.append(one, CustomEntry(custom_type="permission_mode", data="full"))
    carry(run, both, one)
    log = both.bo.open(one)
    assert log.header.cwd == str(both.bo.root / "src")
    assert log.header.model_id == ""
    assert log.header.pulled_from is not None
    assert log.header.pulled_from.by == "Ada L <ad@example.org>"
    assert [getattr(e, "custom_type", "") for e in log.entries] == ["", "foreign/permission_mode"]
    assert f"look at {both.bo.root}/a.py" in both.bo.file_of(one).read_text()
    assert str(both.ada.root) not in both.bo.file_of(one).read_text()
    assert "(from Ada L)" in run(both.bo, "list", "--all")
    (row,) = json.loads(run(both.bo, "list", "--all", "--json"))
    assert row["pulledFrom"] == "Ada L"


def test_c_opens_no_pulled_session(both: Both, run: Run) -> None:
    carry(run, both, both.ada.begin("theirs"))
    assert both.bo.store.find_left_last(both.bo.root) is None
    assert both.bo.store.newest(both.bo.root) is None


def said_in(entries: Sequence[Entry]) -> list[str]:
    """The messages of the users among `entries`."""
    messages = (e.message for e in entries if isinstance(e, MessageEntry))
    return [message.text for message in messages if isinstance(message, UserMessage)]


def test_both_continue_and_each_stays_where_it_is(both: Both, run: Run) -> None:
    one = both.ada.begin("start")
    carry(run, both, one)
    both.ada.append(one, entry(user("by ada")))
    both.bo.append(one, entry(user("by bo")))
    run(both.ada, "push", "--public")
    assert "continues where you left it: /tree" in run(both.bo, "pull")
    run(both.bo, "push", "--public", one)
    run(both.ada, "pull")
    for clone, own in ((both.ada, "by ada"), (both.bo, "by bo")):
        log = clone.open(one)
        assert set(said_in(log.entries)) == {"start", "by ada", "by bo"}
        assert said_in(log.path_entries()) == ["start", own]
        assert log.warnings == ()


def test_a_session_that_was_only_pulled_continues_with_what_is_new(both: Both, run: Run) -> None:
    one = both.ada.begin("start")
    carry(run, both, one)
    both.ada.append(one, entry(user("by ada")))
    run(both.ada, "push", "--public")
    assert "where you left it" not in run(both.bo, "pull")
    assert said_in(both.bo.open(one).path_entries()) == ["start", "by ada"]


def test_no_remote_moves_an_own_session_or_opens_its_goal_again(both: Both, run: Run) -> None:
    one = both.ada.begin("start")
    goal = Goal(text="all tests pass", checks=("true",))
    both.ada.append(one, goal_entry(goal))
    begun = both.ada.open(one).entries[-1].id
    ended = goal.model_copy(update={"ending": "met"})
    both.ada.append(one, entry(user("more")), goal_entry(ended), entry(user("done")))
    run(both.ada, "push", "--public", one)
    leaf = both.ada.open(one).leaf_id
    future = {**said("go on with the goal", "e1", begun), "timestamp": "9999-01-01T00:00:00.000Z"}
    name: dict[str, object] = {
        "type": "session_info",
        "id": "e2",
        "parentId": "e1",
        "name": "release",
    }
    reopened: dict[str, object] = {
        **{"type": "custom", "id": "e3", "parentId": "e2", "timestamp": "9999-01-01T00:00:00Z"},
        **{"customType": "goal", "data": goal.model_dump(mode="json", by_alias=True)},
    }
    forge(both, one, part(one, future, name, reopened, number=9))
    printed = run(both.ada, "pull")
    assert "3 new entries" in printed
    assert "continues where you left it" in printed
    log = both.ada.open(one)
    assert log.leaf_id == leaf
    found = goal_in(log.path_entries())
    assert found is not None
    assert not found.is_open
    assert log.name == ""
    assert [row["name"] for row in json.loads(run(both.ada, "list", "--all", "--json"))] == [""]
    assert not any(item.timestamp.startswith("9999") for item in log.entries)
    assert [item.pulled_from for item in log.entries if item.id in ("e1", "e2", "e3")] == [
        "Eve"
    ] * 3


def test_what_is_pulled_changes_no_result_label_or_spending_of_an_own_session(
    both: Both, run: Run
) -> None:
    one = both.ada.begin("start")
    paid = reply("", ("c1", "bash")).model_copy(update={"usage": Usage(input=7, output=1)})
    both.ada.append(one, entry(paid), entry(result("c1", "", "bash")))
    before = both.ada.open(one)
    made = before.entries[2].id
    both.ada.append(one, LabelEntry(target_id=made, label="mine"))
    changed = changes_entry(made, FileTouches(written=("/etc/passwd",)))
    costly = entry(reply("costly").model_copy(update={"usage": Usage(input=10**9)}))
    hostile = [changed, LabelEntry(target_id=made, label="theirs"), costly]
    run(both.ada, "push", "--public", one)
    placed = [
        item.model_copy(update={"id": f"e{number}", "parent_id": made})
        for number, item in enumerate(hostile)
    ]
    forge(both, one, part(one, *(json.loads(encode_entry(item)) for item in placed), number=9))
    assert "3 new entries" in run(both.ada, "pull")
    log = both.ada.open(one)
    assert log.entries[: len(before.entries)] == before.entries
    assert labels_of(log.entries) == {made: "mine"}
    assert [spent.input_tokens for spent in spending_of(log).replies] == [7]


def test_a_pulled_entry_is_never_older_than_the_session_it_joins(both: Both, run: Run) -> None:
    one = both.ada.begin("start")
    run(both.ada, "push", "--public", one)
    before = both.ada.open(one)
    forge(both, one, part(one, said("old", "e1", before.entries[0].id), number=9))
    run(both.ada, "pull")
    log = both.ada.open(one)
    (added,) = (item for item in log.entries if item.id == "e1")
    assert added.timestamp > max(log.header.timestamp, log.entries[0].timestamp)


def test_a_pull_changes_nothing_about_which_session_was_left_last(both: Both, run: Run) -> None:
    old = both.ada.begin("old")
    run(both.ada, "push", "--public", old)
    newest = both.ada.begin("newest")
    forge(both, old, part(old, said("x", "e1", own_id_of(both.ada, old)), number=9))
    os.utime(both.ada.file_of(old), (1_700_000_000, 1_700_000_000))
    assert "1 new entry" in run(both.ada, "pull")
    assert both.ada.store.find_left_last(both.ada.root) == both.ada.file_of(newest)


def test_a_push_on_top_of_anothers_push_keeps_both(both: Both, run: Run) -> None:
    one = both.ada.begin("start")
    carry(run, both, one)
    both.bo.append(one, entry(user("by bo")))
    run(both.bo, "push", "--public", one)
    both.ada.append(one, entry(user("by ada")))
    run(both.ada, "push", "--public")
    tip = run_git(both.remote, "rev-parse", f"refs/agent-tui/sessions/{one}").strip()
    assert run_git(both.remote, "rev-list", "--count", tip).strip() == "3"
    run(both.ada, "pull")
    assert "by bo" in both.ada.file_of(one).read_text()


def test_all_means_the_sessions_that_began_here(both: Both, run: Run, tmp_path: Path) -> None:
    carry(run, both, both.ada.begin("of ada"))
    own = both.bo.begin("of bo")
    other = tmp_path / "public.git"
    run_git(tmp_path, "init", "--quiet", "--bare", str(other))
    both.bo.git("remote", "add", "fork", str(other))
    run(both.bo, "push", "--public", "--all", "--yes", "--remote", "fork")
    assert refs(other) == [f"refs/agent-tui/sessions/{own}"]


def test_a_push_that_another_one_overtakes_is_done_again(
    both: Both, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = both.ada.begin("start")
    carry(run, both, one)
    both.ada.append(one, entry(user("by ada")))
    both.bo.append(one, entry(user("by bo")))
    overtaken: list[int] = []
    push = Relay.push

    async def push_late(self: Relay, additions: Sequence[Addition]) -> dict[str, PushAnswer]:
        if not overtaken:
            with sharing_program() as program:
                overtaken.append(program.run(both.bo, "push", "--public", one)[0])
        return await push(self, additions)

    monkeypatch.setattr(Relay, "push", push_late)
    assert "1 new entry in 1 session" in run(both.ada, "push", "--public")
    assert overtaken == [0]
    run(both.ada, "pull")
    run(both.bo, "pull")
    for clone in (both.ada, both.bo):
        text = clone.file_of(one).read_text()
        assert "by ada" in text
        assert "by bo" in text


def test_recall_and_search_find_what_a_pulled_session_says(both: Both, run: Run) -> None:
    one = both.ada.begin("the quokka algorithm rounds half to even")
    carry(run, both, one)
    project = ProjectSessions(both.bo.store, both.bo.root)
    found, late = project.search("quokka", frozenset())
    assert [known.id for known in found] == [one]
    assert late == 0
    assert [known.id for known in project.find_by_prefix(one[:8])] == [one]


def test_what_a_command_changed_is_recorded_later_and_is_no_difference(
    both: Both, run: Run
) -> None:
    one = both.ada.begin("start")
    both.ada.append(one, entry(reply("", ("c1", "bash"))), entry(result("c1", "", "bash")))
    run(both.ada, "push", "--public", one)
    changed = FileTouches(written=(str(both.ada.root / "a.py"),))
    both.ada.append(one, changes_entry(both.ada.open(one).entries[-1].id, changed))
    run(both.ada, "push", "--public")
    for file in both.ada.home.rglob("sharing.json"):
        file.unlink()  # so that all of it is compared again
    assert "Nothing new" in run(both.ada, "pull")
    run(both.bo, "pull")
    finished = both.bo.open(one).entries[2]
    assert isinstance(finished, MessageEntry)
    assert str(both.bo.root / "a.py") in finished.model_dump_json()


def test_a_session_that_is_open_is_left_alone_and_pulled_later(both: Both, run: Run) -> None:
    one = both.ada.begin("start")
    carry(run, both, one)
    both.ada.append(one, entry(user("news")))
    run(both.ada, "push", "--public")
    before = both.bo.file_of(one).read_bytes()
    with SessionLog.open(both.bo.file_of(one), "none"):
        assert "It is open in" in run(both.bo, "pull", code=1)
    assert both.bo.file_of(one).read_bytes() == before
    assert "1 new entry" in run(both.bo, "pull")


def test_a_deleted_session_comes_back_only_when_it_is_named(both: Both, run: Run) -> None:
    one = both.ada.begin("start")
    carry(run, both, one)
    both.bo.store.delete(both.bo.file_of(one))
    assert "deleted here" in run(both.bo, "pull")
    assert both.bo.store.list() == []
    run(both.bo, "pull", one[:8])
    assert [found.id for found in both.bo.store.list()] == [one]
    with pytest.raises(SessionError, match="has no session"):
        run(both.bo, "pull", "0000-none")


def forge(both: Both, session_id: str, files: dict[str, bytes]) -> None:
    """Write a tree that agent-tui would not write to the remote."""
    stream = bytearray(f"commit refs/agent-tui/sessions/{session_id}\n".encode())
    stream += b"committer x <x@x> 1 +0000\ndata 1\nx\n"
    for name, data in files.items():
        stream += f"M 100644 inline {name}\ndata {len(data)}\n".encode() + data + b"\n"
    import_into(both.remote, bytes(stream))


def part(session_id: str, *lines: dict[str, object], number: int = 1) -> dict[str, bytes]:
    head = SegmentHead(session=session_id, by="\x1b[31mEve\x07").model_dump_json(by_alias=True)
    rows = [head, *(json.dumps(line) for line in lines)]
    return {f"{number:06}-plain-{'0' * 24}": "".join(f"{row}\n" for row in rows).encode()}


def said(text: str, own_id: str, parent: str | None = None) -> dict[str, object]:
    when = "2026-03-02T09:00:00.000Z"
    message = {"role": "user", "content": text, "timestamp": 1}
    place = {"type": "message", "id": own_id, "parentId": parent, "timestamp": when}
    return {**place, "message": message}


def test_hostile_sessions_harm_nothing_here(both: Both, run: Run, tmp_path: Path) -> None:
    mine = both.bo.begin("my own work")
    other = both.bo.begin("of another project", cwd=str(tmp_path))
    own_id = both.bo.open(mine).entries[0].id
    before = {path: path.read_bytes() for path in both.bo.home.rglob("*.jsonl")}
    forge(both, mine, part(mine, said("not what you said", own_id), said("added", "e1", own_id)))
    forge(both, other, part(other, said("into another project", "e2")))
    evil = "aaaa0000-0000-4000-8000-000000000000"
    first = {"type": "session", "version": 3, "id": evil, "timestamp": "../../x", "cwd": "/etc"}
    steps = part(evil, first, said("x", "e3", "e4"), said("\x1b]0;x\x07 hello", "e5"))
    forge(both, evil, {**steps, "../x".replace("/", "_"): b"", "file-plain-zz": b"x"})
    forge(both, "bbbb0000", {"000001-plain-" + "0" * 24: b"\x00garbage"})
    printed = run(both.bo, "pull", code=1)
    assert "\x1b" not in printed
    assert "yours stay" in printed
    assert "same id" in printed
    assert both.bo.file_of(other).read_bytes() == before[both.bo.file_of(other)]
    assert both.bo.file_of(mine).read_bytes().startswith(before[both.bo.file_of(mine)])
    log = both.bo.open(evil)
    assert log.header.cwd == str(both.bo.root)
    assert both.bo.file_of(evil).is_relative_to(both.bo.home / "data" / "sessions")
    assert [e.id for e in log.entries] == ["e5"]
    assert not (both.bo.home / "data" / "x").exists()
    assert "\x1b" not in run(both.bo, "list", "--all")


@pytest.mark.parametrize("limit", ["MOST_OPENED_BYTES", "MOST_ENTRIES"])
def test_what_a_remote_sends_has_a_limit_and_nothing_of_it_is_taken(
    both: Both, run: Run, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    one, fine = both.ada.begin("start"), both.ada.begin("other")
    carry(run, both, one, fine)
    lines = [said("flood" * 10, f"f{number}") for number in range(40)]
    forge(both, one, {**part(one, *lines, number=7), **part(one, *lines, number=8)})
    both.ada.append(fine, entry(user("news")))
    run(both.ada, "push", "--public", fine)
    before = both.bo.file_of(one).read_bytes()
    for module in (pull, segments):
        monkeypatch.setattr(module, limit, {"MOST_OPENED_BYTES": 12_000, "MOST_ENTRIES": 60}[limit])
    printed = run(both.bo, "pull", code=1)
    assert "None of them was taken" in printed
    assert "1 new entry in 1 session" in printed
    assert both.bo.file_of(one).read_bytes() == before


def test_a_part_that_unpacks_to_too_much_is_not_unpacked(both: Both, run: Run) -> None:
    pytest.importorskip("pyrage")
    key = run(both.bo, "share", "--new-key").split()[-1]
    bomb = "dddd0000-0000-4000-8000-000000000000"
    sealed = Sealer([key]).seal(bytes(MOST_OPENED_BYTES + 1))
    assert len(sealed) < 1_000_000
    forge(both, bomb, {f"000001-{Sealer([key]).key}-{'0' * 24}": sealed})
    assert "None of them was taken" in run(both.bo, "pull", code=1)


def test_kept_files_of_others_never_displace_own_ones(
    both: Both, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = both.ada.begin("start")
    edit_file(both.ada, one, b"one\n", b"two\n")
    run(both.ada, "push", "--public", one)
    kept = KeptFiles(folder_of(both.ada.file_of(one)))
    noise = [random.Random(number).randbytes(1_000) for number in range(20)]
    files = {file_name("plain", one, str(number)): data for number, data in enumerate(noise)}
    huge = file_name("plain", one, "huge")
    forge(both, one, {**part(one, said("x", "e1"), number=5), **files, huge: bytes(5_000_001)})
    monkeypatch.setattr(pull, "MOST_STORED_BYTES", 10_000)
    printed = run(both.ada, "pull")
    assert "9 kept files;" in printed
    assert "12 kept files left out" in printed
    assert kept.content(digest_of(b"one\n")) == b"one\n"
    assert kept.content(digest_of(b"two\n")) == b"two\n"


@pytest.mark.parametrize("what", ["a blob", "a lost tree", "a lost commit"])
@pytest.mark.parametrize("is_new", [True, False], ids=["new here", "known here"])
def test_a_broken_ref_at_the_remote_stops_nothing_else(
    both: Both, run: Run, what: str, is_new: bool
) -> None:
    broken, fine = both.ada.begin("broken"), both.ada.begin("fine")
    carry(run, both, broken, fine)
    ref = f"refs/agent-tui/sessions/{broken}"
    both.ada.append(broken, entry(user("before")))
    run(both.ada, "push", "--public")
    tree = run_git(both.remote, "rev-parse", f"{ref}^{{tree}}").strip()
    match what:
        case "a blob":
            blob = run_git(both.remote, "hash-object", "-w", "HEAD").strip()
            run_git(both.remote, "update-ref", ref, blob)
        case "a lost tree":
            lose(both.remote, tree)
        case _:
            lose(both.remote, run_git(both.remote, "rev-parse", ref).strip())
    for one in (broken, fine):
        both.ada.append(one, entry(user("news")))
    if is_new:
        subprocess.run(("rm", "-rf", str(both.ada.home / "cache")), check=True)
    printed = run(both.ada, "push", "--public", broken, fine, code=1)
    if what == "a lost commit" and "missing necessary objects" in printed:
        return  # git at the remote takes no push at all
    assert "Pushed 1 new entry in 1 session" in printed
    assert "damaged" in printed or "rejected" in printed
    printed = run(both.bo, "pull", code=None)
    assert "1 new entry in 1 session" in printed
    assert "news" in both.bo.file_of(fine).read_text()


def lose(repository: Path, object_id: str) -> None:
    """Remove an object, as a damaged disk would."""
    for pack in (repository / "objects" / "pack").glob("*.pack"):
        moved = repository / pack.name
        pack.rename(moved)
        with moved.open("rb") as data:
            command = ("git", "--git-dir", str(repository), "unpack-objects", "-q")
            subprocess.run(command, stdin=data, check=True)
        moved.unlink()
        pack.with_suffix(".idx").unlink()
    (repository / "objects" / object_id[:2] / object_id[2:]).unlink()


def test_a_remote_with_another_address_for_pushes_works_each_time(
    both: Both, run: Run, tmp_path: Path
) -> None:
    mirror = tmp_path / "mirror.git"
    run_git(tmp_path, "init", "--quiet", "--bare", str(mirror))
    both.ada.git("remote", "set-url", "origin", str(mirror))
    both.ada.git("remote", "set-url", "--push", "origin", str(both.remote))
    one = both.ada.begin("start")
    for number in range(3):
        assert "1 new entry in 1 session" in run(both.ada, "push", "--public", one)
        both.ada.append(one, entry(user(f"more {number}")))
    assert refs(mirror) == []
    assert "Nothing new" in run(both.ada, "pull")
    run(both.bo, "pull")
    assert len(both.bo.open(one).entries) == 3


def test_a_killed_gits_locks_stop_nobody(both: Both, run: Run) -> None:
    one = both.ada.begin("start")
    carry(run, both, one)
    (relay,) = (both.bo.home / "cache" / "sharing").glob("*.git")
    for name in ("packed-refs.lock", f"refs/agent-tui/sessions/{one}.lock", "config.lock"):
        (relay / name).parent.mkdir(parents=True, exist_ok=True)
        (relay / name).touch()
    both.ada.append(one, entry(user("news")))
    run(both.ada, "push", "--public")
    assert "1 new entry" in run(both.bo, "pull")


def test_the_relay_may_be_deleted_any_time(both: Both, run: Run) -> None:
    one = both.ada.begin("start")
    carry(run, both, one)
    for clone in (both.ada, both.bo):
        subprocess.run(("rm", "-rf", str(clone.home / "cache")), check=True)
    both.bo.append(one, entry(user("by bo")))
    assert "1 new entry" in run(both.bo, "push", "--public", one)
    assert "1 new entry" in run(both.ada, "pull")


def test_nothing_in_the_clone_is_touched_and_no_program_of_its_runs(
    both: Both, run: Run, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    hooks = both.ada.root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-push", "reference-transaction", "post-checkout"):
        hook = hooks / name
        hook.write_text(f"#!/bin/sh\ntouch {ran}\nexit 1\n")
        hook.chmod(hook.stat().st_mode | stat.S_IXUSR)
    both.ada.git("config", "commit.gpgSign", "true")
    both.ada.git("config", "push.gpgSign", "true")
    both.ada.git("config", "gpg.program", f"touch {ran}")
    both.ada.git("config", "gc.auto", "1")
    one = both.ada.begin("start")
    with pytest.raises(UsageError, match="is not trusted"):
        run(both.ada, "push", "--public", one)
    assert trust_folder(["add", str(both.ada.root)]) == 0
    before = {p: p.read_bytes() for p in (both.ada.root / ".git").rglob("*") if p.is_file()}
    run(both.ada, "push", "--public", one)
    run(both.ada, "pull")
    after = {p: p.read_bytes() for p in (both.ada.root / ".git").rglob("*") if p.is_file()}
    assert after == before
    assert not ran.exists()


def test_a_remote_that_is_gone_says_what_to_check(both: Both, run: Run) -> None:
    one = both.ada.begin("start")
    both.ada.git("remote", "set-url", "origin", "/nowhere/at/all.git")
    with pytest.raises(SessionError, match="does not appear to be a git repository") as lost:
        run(both.ada, "push", "--public", one)
    assert "git ls-remote origin" in lost.value.hint
    both.ada.git("remote", "set-url", "origin", "ext::sh -c 'touch ran'")
    with pytest.raises(SessionError, match="not allowed"):
        run(both.ada, "push", "--public", one)
    assert not (both.ada.root / "ran").exists()


def test_without_a_repository_or_a_remote_it_says_so(both: Both, run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not in a work tree"):
        run(Clone(tmp_path, both.ada.home), "pull")
    with pytest.raises(UsageError, match="no remote 'nope'"):
        run(both.ada, "pull", "--remote", "nope")
    both.ada.git("remote", "remove", "origin")
    with pytest.raises(UsageError, match="has no remote"):
        run(both.ada, "pull")


def edit_file(
    clone: Clone, session_id: str, before: bytes, after: bytes, file: Path | None = None
) -> Path:
    """Record that a call changed a file, by default one of the clone, with both contents kept."""
    file = file or clone.root / "a.py"
    file.write_bytes(after)
    kept = KeptFiles(folder_of(clone.file_of(session_id)))
    versions = []
    for content in (before, after):
        is_kept = kept.keep(content)
        versions.append(FileVersion(digest=digest_of(content), mode=0o100644, is_kept=is_kept))
    change = RecordedFileChange(path=str(file), before=versions[0], after=versions[1])
    arguments: JsonObject = {"command": "sed -i s/one/two/ a.py"}
    asked = reply("I change it.").model_copy(
        update={"content": (ToolCall(id="c1", name="bash", arguments=arguments),)}
    )
    clone.append(
        session_id,
        entry(asked),
        file_changes_entry(FileChanges(changes=(change,))),
        entry(result("c1", "", "bash")),
    )
    return file


def why(clone: Clone, file: Path) -> str:
    present = file.read_text()
    history = read_file_history(FileSessions(clone.store), file)
    answers = asyncio.run(explain_lines(history, LinePlace(file, 2, 2), present, None))
    return "\n".join(answer_lines(answers, clone.root, FOR_PEOPLE))


def test_kept_files_travel_only_when_asked_and_why_says_what_is_missing(
    both: Both, run: Run
) -> None:
    before, after = b"one\nold\nx\n", b"one\nnew\nx\n"
    one = both.ada.begin("make it new")
    edit_file(both.ada, one, before, after)
    there = both.bo.root / "a.py"
    there.write_bytes(after)
    carry(run, both, one)
    assert before not in objects_of(both.remote)
    (changes,) = filter(None, map(file_changes_in, both.bo.open(one).entries))
    assert changes.changes[0].path == str(there)
    assert changes.changes[0].before.why_not == NOT_PULLED
    assert "were not pulled" in why(both.bo, there)
    assert "--with-files" in why(both.bo, there)
    printed = run(both.ada, "push", "--public", "--with-files")
    assert "2 kept files" in printed
    assert "2 kept files" in run(both.bo, "pull")
    answer = why(both.bo, there)
    assert "Not known" not in answer
    assert "- old" in answer
    assert "Ada L asked: make it new" in answer
    assert "pulled from Ada L" in answer


def test_why_says_whose_turn_it_was_in_an_own_and_in_a_pulled_session(both: Both, run: Run) -> None:
    one = both.ada.begin("start")
    carry(run, both, one)
    both.bo.append(one, entry(user("make it new")))
    edit_file(both.bo, one, b"one\nold\nx\n", b"one\nnew\nx\n")
    assert "You asked: make it new" in why(both.bo, both.bo.root / "a.py")
    assert "pulled from" not in why(both.bo, both.bo.root / "a.py")
    run(both.bo, "push", "--public", "--with-files", one)
    run(both.ada, "pull")
    there = both.ada.root / "a.py"
    there.write_bytes(b"one\nnew\nx\n")
    answer = why(both.ada, there)
    assert "Bo asked: make it new" in answer
    assert "pulled from Bo" in answer
    assert "You asked" not in answer


def test_a_kept_file_with_a_key_stays_here(both: Both, run: Run) -> None:
    one = both.ada.begin("start")
    edit_file(both.ada, one, f"key = {DECOYS[0]}\n".encode(), b"key = env\n")
    printed = run(both.ada, "push", "--public", "--with-files", one)
    assert "1 kept file left out" in printed
    assert no_decoy_in(both.remote)


@pytest.mark.parametrize(
    "content",
    [b"url = postgres://bob:hunter2pw@db/x\n", f"key = {DECOYS[0]}\n".encode("utf-16")],
    ids=["password in an address", "UTF-16"],
)
def test_what_messages_mask_keeps_a_file_here_too(both: Both, run: Run, content: bytes) -> None:
    one = both.ada.begin("start")
    edit_file(both.ada, one, content, b"key = env\n")
    printed = run(both.ada, "push", "--public", "--with-files", one)
    assert "1 kept file left out" in printed
    assert content not in objects_of(both.remote)


def test_a_file_outside_the_project_stays_here(both: Both, run: Run, tmp_path: Path) -> None:
    one = both.ada.begin("start")
    edit_file(both.ada, one, b"private = 1\n", b"private = 2\n", tmp_path / "notes.txt")
    run(both.ada, "push", "--public", "--with-files", one)
    objects = objects_of(both.remote)
    assert b"private = 1\n" not in objects
    assert b"private = 2\n" not in objects


def test_only_the_named_sessions_are_pushed(both: Both, run: Run) -> None:
    one, other = both.ada.begin("hello"), both.ada.begin("good day")
    run(both.ada, "push", "--public", one)
    both.ada.append(one, entry(user("added later")))
    assert "added later" not in run(both.ada, "push", "--public", other)
    run(both.bo, "pull")
    assert "added later" not in both.bo.file_of(one).read_text()
    run(both.ada, "push", "--public")
    run(both.bo, "pull")
    assert "added later" in both.bo.file_of(one).read_text()


def test_encrypted_sessions_are_read_by_their_recipients_only(
    both: Both, run: Run, tmp_path: Path
) -> None:
    pytest.importorskip("pyrage")
    one = both.ada.begin(f"a private thought and {DECOYS[0]}")
    edit_file(both.ada, one, b"one\nold\n", b"one\nnew\n")
    key = run(both.bo, "share", "--new-key").split()[-1]
    with pytest.raises(UsageError, match="exists already"):
        run(both.bo, "share", "--new-key")
    with pytest.raises(UsageError, match="is not a public key"):
        run(both.ada, "share", "--encrypt-to", "nonsense")
    assert key in run(both.ada, "share", "--encrypt-to", key)
    run(both.ada, "push", "--with-files", one)
    content = objects_of(both.remote)
    for private in (b"a private thought", b"Ada", b"example.org", b"make it", b"one\nold"):
        assert private not in content
    outsider = Clone(both.bo.root, tmp_path / "outsider")
    assert "not among its recipients" in run(outsider, "pull", code=1)
    assert "1 session" in run(both.bo, "pull")
    pulled = both.bo.file_of(one).read_text()
    assert "a private thought" in pulled
    assert DECOYS[0] not in pulled, "keys go before it is encrypted"
    assert run(outsider, "pull", "--identity", str(both.bo.home / "config" / "age-key.txt"))
    assert outsider.store.list()


def test_another_recipient_gets_the_sessions_that_were_pushed_before(
    both: Both, run: Run, tmp_path: Path
) -> None:
    pytest.importorskip("pyrage")
    third = Clone(both.bo.root, tmp_path / "third")
    one = both.ada.begin("start", "more")
    keys = [run(clone, "share", "--new-key").split()[-1] for clone in (both.bo, third)]
    run(both.ada, "share", "--encrypt-to", keys[0])
    run(both.ada, "push", one)
    run(third, "pull", code=1)
    run(both.ada, "share", "--encrypt-to", keys[0], "--encrypt-to", keys[1])
    assert "2 new entries" in run(both.ada, "push")
    assert "2 new entries" in run(third, "pull")
    run(both.bo, "pull")
    assert len(both.bo.open(one).entries) == 2


def test_the_help_fits_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for verb in ("share", "push", "pull"):
        with pytest.raises(SystemExit) as ended:
            run_command([verb, "--help"])
        assert ended.value.code == 0
        assert all(len(line) <= 80 for line in capsys.readouterr().out.split("\n"))
