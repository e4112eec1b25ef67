"""Updates reach the editor in order, whatever becomes of one of them."""

from typing import cast

import pytest
from acp import Client

from agent_tui.features.acp.editor import Outbox, Outgoing
from agent_tui.features.acp.updates import chat_message


class Editor:
    """Takes updates; raises what is laid out for the first ones instead."""

    def __init__(self, *faults: Exception | None) -> None:
        self.faults = list(faults)
        self.told: list[Outgoing] = []

    async def session_update(self, session_id: str, update: Outgoing) -> None:
        assert session_id == "s1"
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault
        self.told.append(update)


async def test_more_updates_than_an_editor_reads_at_once_all_arrive_in_order():
    editor = Editor()
    outbox = Outbox(cast(Client, editor), "s1")
    updates = [chat_message(str(number)) for number in range(20_000)]
    for update in updates:
        outbox.put(update)
    await outbox.flush()
    assert editor.told == updates
    await outbox.aclose()


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (
            ValueError("a key: sk-0"),
            "Could not send AgentMessageChunk to the editor: ValueError",
        ),
        (ConnectionResetError(), ""),
    ],
)
async def test_one_that_cannot_be_sent_holds_back_none_and_is_told_in_the_log(
    capsys: pytest.CaptureFixture[str], fault: Exception, told: str
):
    editor = Editor(None, fault)
    outbox = Outbox(cast(Client, editor), "s1")
    updates = [chat_message("one"), chat_message("two"), chat_message("three")]
    for update in updates:
        outbox.put(update)
    await outbox.aclose()
    assert editor.told == [updates[0], updates[2]]
    written = capsys.readouterr()
    assert written.out == ""
    assert told in written.err
    assert "sk-0" not in written.err
    assert bool(written.err) == bool(told)
