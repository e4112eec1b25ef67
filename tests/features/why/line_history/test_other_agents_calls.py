"""Changes by the calls of other agents, which have no kept contents."""

import pytest

from agent_tui.attachments import approving_message
from agent_tui.features.importers.claude_tree import claude_details
from agent_tui.features.importers.diffs import creation, replacement
from agent_tui.features.why.line_history.changes import changes_of_file, in_order_of_time
from agent_tui.features.why.line_history.facts import facts_of
from agent_tui.features.why.line_history.replay import (
    Earlier,
    Made,
    Origins,
    Unknown,
    Unrecorded,
    replay_changes,
)
from agent_tui.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    TextContent,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import Entry, Header, MessageEntry
from agent_tui.sessions.file.kept_files import digest_of
from agent_tui.sessions.lineage.known_session import KnownSession

FILE = "/project/a.py"
ADD = "*** Begin Patch\n*** Add File: a.py\n+one\n+two\n*** End Patch"
UPDATE = "*** Begin Patch\n*** Update File: a.py\n@@\n one\n-two\n+TWO\n*** End Patch"
MOVE = (
    "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n-one\n+ONE\n TWO\n*** End Patch"
)


class Session:
    """Entries in a row, as an importer makes them."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def say(self, message: Message) -> None:
        number = len(self.entries) + 1
        entry = MessageEntry(
            message=message,
            id=f"{number:08x}",
            parent_id=self.entries[-1].id if self.entries else None,
            timestamp=f"2026-03-01T10:00:{number:02}.000Z",
        )
        self.entries.append(entry)

    def call(
        self,
        name: str,
        arguments: JsonObject,
        details: ToolDetails | None = None,
        *,
        is_error: bool = False,
        text: str = "",
    ) -> None:
        call = ToolCall(id=f"call-{len(self.entries)}", name=name, arguments=arguments)
        dumped = details.model_dump(mode="json", by_alias=True) if details else None
        self.say(AssistantMessage(content=(call,)))
        self.say(
            ToolResultMessage(
                tool_call_id=call.id,
                tool_name=name,
                content=(TextContent(text=text),) if text else (),
                details=dumped,
                is_error=is_error,
            )
        )

    @property
    def known(self) -> KnownSession:
        return KnownSession(Header(id="s", cwd="/project"), None, tuple(self.entries))

    def lines(self, present: str, path: str = FILE) -> list[Origins]:
        changes = changes_of_file(in_order_of_time([self.known]), path)
        return list(replay_changes(changes, present, lambda _digest: None).lines)


def made(*lines: tuple[int, int]) -> list[Origins]:
    return [frozenset((Made(change, line),)) for change, line in lines]


def test_patches_of_codex_are_followed_through_a_move():
    session = Session()
    for patch in (ADD, UPDATE):
        session.call("apply_patch", {"input": patch})
    assert session.lines("one\nTWO\n") == made((0, 0), (1, 1))
    session.call("shell", {"command": ["apply_patch", MOVE]})
    assert session.lines("ONE\nTWO\n", "/project/b.py") == made((2, 0), (1, 1))


def test_a_call_that_failed_changed_nothing():
    session = Session()
    session.call("apply_patch", {"input": ADD})
    session.call("apply_patch", {"input": UPDATE}, is_error=True)
    assert session.lines("one\ntwo\n") == made((0, 0), (0, 1))


def test_a_file_that_claude_code_created_is_known_from_its_first_line():
    session = Session()
    arguments: JsonObject = {"file_path": FILE, "content": "one\ntwo"}
    noted: JsonObject = {"type": "create", "filePath": FILE, "structuredPatch": []}
    details = claude_details("Write", arguments, noted, "", is_error=False)
    assert details.diff is not None
    assert details.diff.endswith("+one\n+two\n\\ No newline at end of file\n")
    session.call("Write", arguments, details)
    session.call("Edit", {"file_path": FILE, "old_string": "two", "new_string": "2"})
    assert session.lines("one\n2") == made((0, 0), (1, 1))


def test_what_a_write_of_pi_replaced_is_not_known():
    session = Session()
    session.call("write", {"path": "a.py", "content": "one\ntwo\n"})
    (first, _) = session.lines("one\ntwo\n")
    assert len(first) == 2
    session.call("edit", {"path": "a.py", "oldText": "two", "newText": "2"})
    assert session.lines("one\n2\n")[1:] == made((1, 1))


def test_lines_that_a_lost_change_cannot_have_written_keep_their_answer():
    session = Session()
    session.call("apply_patch", {"input": ADD})
    lost = "*** Begin Patch\n*** Update File: a.py\n@@\n-by hand\n+by call\n*** End Patch"
    session.call("apply_patch", {"input": lost})
    above, kept, below = session.lines("by call\none\nby call\n")
    assert [kept] == made((0, 0))
    assert above == below == {Unknown(1, 2)}


def test_the_request_behind_a_plan_counts_not_its_approval():
    session = Session()
    session.say(UserMessage(content="Add it."))
    session.say(UserMessage(content=approving_message("## Goal")))
    session.call("apply_patch", {"input": ADD})
    (change,) = in_order_of_time([session.known])
    assert facts_of(change, [session.known]).asked == "Add it."


@pytest.mark.parametrize("command", [{"command": "make test"}, {"cmd": "make test"}])
def test_the_next_command_is_that_of_the_same_turn(command: JsonObject):
    session = Session()
    session.say(UserMessage(content="Add it."))
    session.call("apply_patch", {"input": ADD})
    (change,) = in_order_of_time([session.known])
    assert facts_of(change, [session.known]).next_command is None
    session.call("shell_command", command, ToolDetails(exit_code=2), is_error=True)
    session.say(UserMessage(content="And now?"))
    (change,) = in_order_of_time([session.known])
    facts = facts_of(change, [session.known])
    assert facts.asked == "Add it."
    assert facts.next_command is not None
    assert (facts.next_command.command, facts.next_command.exit_code) == ("make test", 2)


def test_what_claude_code_says_of_a_file_before_an_edit_separates_changes_from_outside():
    session = Session()
    digest = digest_of(b"one\nby hand\ntwo\n")
    arguments: JsonObject = {"file_path": FILE, "old_string": "two", "new_string": "2"}
    session.call("Write", {"file_path": FILE, "content": "one\ntwo\n"})
    session.call("Edit", arguments, ToolDetails(digest_before=digest))
    kept = {digest: b"one\nby hand\ntwo\n"}.get
    changes = changes_of_file(in_order_of_time([session.known]), FILE)
    _, outside, edited = replay_changes(changes, "one\nby hand\n2\n", kept).lines
    assert outside == {Unrecorded(-1, 1)}
    assert [edited] == made((1, 2))


def test_a_file_that_pi_read_whole_is_known_from_then_on():
    session = Session()
    change: JsonObject = {"path": "a.py", "oldText": "two", "newText": "2"}
    session.call("edit", change)
    assert session.lines("one\n2\n") != [{Earlier()}, *made((0, 1))]
    session = Session()
    session.call("read", {"path": "a.py"}, text="one\ntwo\n")
    session.call("edit", change)
    assert session.lines("one\n2\n") == [{Earlier()}, *made((1, 1))]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"path": "a.py", "offset": 1}, "one\ntwo\n"),
        ({"path": "a.py"}, "one\n\n[5 more lines in file. Use offset=2 to continue]"),
        ({"path": "a.py"}, "1\tone\n2\ttwo\n"),
        ({"path": "a.py"}, "     1\u2192one\n     2\u2192two\n"),
    ],
)
def test_a_result_that_may_be_a_part_or_have_line_numbers_says_nothing_of_the_file(
    arguments: JsonObject, text: str
):
    session = Session()
    session.call("read", arguments, text=text)
    session.call("write", {"path": "a.py", "content": "one\nTWO\n"})
    assert [len(origins) for origins in session.lines("one\nTWO\n")] == [2, 2]


def test_the_line_numbers_in_a_diff_of_pi_tell_equal_lines_apart():
    session = Session()
    session.call("read", {"path": "a.py"}, text="x\nx\nx\n")
    details = ToolDetails(diff=" 1 x\n 2 x\n-3 x\n+3 y")
    session.call("edit", {"path": "a.py", "oldText": "x", "newText": "y"}, details)
    assert session.lines("x\nx\ny\n")[2:] == made((1, 2))


def test_changes_of_one_file_by_a_subagent_are_one_after_the_other():
    session = Session()
    made_it = creation(FILE, "one\ntwo\n")
    changed_it = replacement(FILE, "one\ntwo\n", "one\nTWO\n")
    session.call("task", {"prompt": "Do it."}, ToolDetails(diff=made_it + changed_it))
    assert session.lines("one\nTWO\n") == made((0, 0), (1, 1))
    assert session.lines("one\ntwo\n")[0] == made((0, 0))[0]
