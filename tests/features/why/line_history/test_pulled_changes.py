"""Changes in sessions with pulled entries: each is credited to whoever made it."""

from collections.abc import Sequence

from agent_tui.features.why.line_history.changes import changes_of_file, in_order_of_time
from agent_tui.features.why.line_history.facts import facts_of
from agent_tui.messages import AssistantMessage, BashExecutionMessage, Message, ToolCall
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.lineage.known_session import KnownSession
from agent_tui.sessions.replay.file_changes import (
    FileChanges,
    FileVersion,
    RecordedFileChange,
    file_changes_entry,
)
from tests.support.session_values import entry, header, result, user

FILE = "/w/app.py"


class Branches:
    """Entries of one session, each below the one that it names."""

    def __init__(self, *, day: int = 1) -> None:
        self.entries: list[Entry] = []
        self._day = day

    def add(self, own_id: str, parent: str | None, item: Entry, by: str | None = None) -> None:
        when = f"2026-03-{self._day:02}T09:00:{len(self.entries):02}.000Z"
        fields = {"id": own_id, "parent_id": parent, "timestamp": when, "pulled_from": by}
        self.entries.append(item.model_copy(update=fields))

    def say(self, own_id: str, parent: str | None, message: Message, by: str | None = None) -> None:
        self.add(own_id, parent, entry(message), by)

    def known(self, session_id: str) -> KnownSession:
        first = header(id=session_id, timestamp=f"2026-03-{self._day:02}T00:00:00.000Z")
        return KnownSession(first, None, tuple(self.entries))


def call(command: str, call_id: str) -> AssistantMessage:
    return AssistantMessage(
        content=(ToolCall(id=call_id, name="bash", arguments={"command": command}),)
    )


def record(digest: str) -> Entry:
    change = RecordedFileChange(
        path=FILE,
        before=FileVersion(),
        after=FileVersion(digest=digest * 64, mode=0o100644, is_kept=True),
    )
    return file_changes_entry(FileChanges(changes=(change,)))


def run(branches: Branches, name: str, asked: str, by: str | None = None) -> None:
    """A turn below the first entry, whose command changes the file."""
    branches.say(f"{name}1", "root", user(asked), by)
    branches.say(f"{name}2", f"{name}1", call(f"make {name}", name), by)
    branches.add(f"{name}3", f"{name}2", record("a"), by)
    branches.say(f"{name}4", f"{name}3", result(name, "ok", "bash"), by)


def credits(*sessions: KnownSession) -> Sequence[tuple[str, str, str]]:
    """Of each change of the file: the command, what was asked, and who pushed it."""
    found = changes_of_file(in_order_of_time(sessions), FILE)
    facts = [facts_of(change, sessions) for change in found]
    return [(one.change.command, one.asked, one.pulled_from) for one in facts]


def test_a_pulled_session_that_copies_ids_and_times_displaces_no_own_change():
    own = Branches(day=5)
    own.say("root", None, user("begin"))
    run(own, "c", "mine")
    forged = [item.model_copy(update={"pulled_from": "Eve"}) for item in own.entries]
    first = header(id="forged", timestamp="2026-03-01T00:00:00.000Z")
    sessions = (own.known("own"), KnownSession(first, None, tuple(forged)))
    assert credits(*sessions) == [("make c", "mine", "")]


def test_an_own_command_is_not_credited_with_a_change_pulled_before_it():
    session = Branches()
    session.say("root", None, user("begin"))
    session.say("p1", "root", user("theirs"), "Eve")
    session.add("p2", "p1", record("b"), "Eve")
    run(session, "c", "mine")
    assert credits(session.known("s")) == [("", "theirs", "Eve"), ("make c", "mine", "")]


def test_an_own_command_on_a_pulled_branch_is_not_credited_with_its_last_change():
    session = Branches()
    session.say("root", None, user("theirs"), "Eve")
    session.add("p", "root", record("b"), "Eve")
    session.say("u", "p", user("mine"))
    session.say("c", "u", call("make", "c"))
    session.say("r", "c", result("c", "ok", "bash"))
    assert credits(session.known("s")) == [("", "theirs", "Eve")]


def test_a_pulled_result_takes_no_own_change_that_lost_its_result():
    session = Branches()
    session.say("root", None, user("mine"))
    session.add("own", "root", record("b"))
    session.say("p1", "own", call("make evil", "e"), "Eve")
    session.say("p2", "p1", result("e", "ok", "bash"), "Eve")
    assert credits(session.known("s")) == [("", "mine", "")]


def test_a_change_on_another_branch_belongs_to_no_later_command():
    session = Branches()
    session.say("root", None, user("begin"))
    session.say("l1", "root", user("left"))
    session.add("l2", "l1", record("b"))
    session.say("b1", "root", user("back"))
    ran = BashExecutionMessage(command="make", output="", exit_code=0)
    session.say("b2", "b1", ran)
    assert credits(session.known("s")) == [("", "left", "")]
