"""Files that change between the question and the answer are not written, by no tool."""

from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.events import AgentEvent, ApprovalRequested, ToolFinished
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import ToolCall
from tests.support.runtime import Stage, of_kind


def patch(*lines: str) -> ToolCall:
    text = "\n".join(("*** Begin Patch", *lines, "*** End Patch"))
    return call("c1", "apply_patch", patch=text)


UPDATE = ("*** Update File: a.txt", "@@", "-before", "+after")
WRITING = {
    "edit": call("c1", "edit", path="a.txt", edits=[{"old": "before", "new": "after"}]),
    "write": call("c1", "write", path="a.txt", content="after\n"),
    "apply_patch": patch(*UPDATE),
    "apply_patch of two files": patch("*** Add File: new.txt", "+after", *UPDATE),
    "apply_patch that moves": patch(UPDATE[0], "*** Move to: moved.txt", *UPDATE[1:]),
    "apply_patch that deletes": patch("*** Delete File: a.txt"),
}


def change(target: Path) -> None:
    target.write_text("before\nand more\n")


def lead_elsewhere(target: Path) -> None:
    (target.parent / "other.txt").write_text("before\n")
    target.unlink()
    target.symlink_to("other.txt")


def take_away(target: Path) -> None:
    target.unlink()


def put_a_folder(target: Path) -> None:
    target.unlink()
    target.mkdir()


def files_in(folder: Path) -> dict[str, str | None]:
    """What each name holds, a link as where it leads; None for a folder."""
    return {
        str(path): f"-> {path.readlink()}"
        if path.is_symlink()
        else path.read_text()
        if path.is_file()
        else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("meddle", [change, lead_elsewhere, take_away, put_a_folder])
@pytest.mark.parametrize("writing", WRITING.values(), ids=WRITING)
async def test_a_file_changed_while_the_question_was_open_is_not_written(
    stage: Stage, writing: ToolCall, meddle: Callable[[Path], None]
):
    target = stage.workspace / "a.txt"
    target.write_text("before\n")
    look = Reply(tool_calls=(call("c0", "read", path="a.txt"),))
    runtime = stage.runtime([look, Reply(tool_calls=(writing,)), Reply(text="hm")], mode="ask")
    seen: list[AgentEvent] = []
    meddled: dict[str, str | None] | None = None
    async with aclosing(runtime.submit("go")) as events:
        async for event in events:
            seen.append(event)
            if isinstance(event, ApprovalRequested):
                meddle(target)
                meddled = files_in(stage.workspace)
                runtime.pending_approvals.answer(event.request.id, ApprovalAnswer("once"))
    assert meddled is not None
    assert of_kind(seen, ToolFinished)[-1].message.is_error
    assert files_in(stage.workspace) == meddled


@pytest.mark.parametrize(
    "writing",
    [call("c1", "write", path="a.txt", content="x"), patch("*** Add File: a.txt", "+x")],
    ids=["write", "apply_patch"],
)
async def test_a_file_made_while_the_question_was_open_is_not_written_over(
    stage: Stage, writing: ToolCall
):
    runtime = stage.runtime([Reply(tool_calls=(writing,)), Reply(text="hm")], mode="ask")
    target = stage.workspace / "a.txt"
    async with aclosing(runtime.submit("go")) as events:
        async for event in events:
            if isinstance(event, ApprovalRequested):
                target.write_text("mine\n")
                runtime.pending_approvals.answer(event.request.id, ApprovalAnswer("once"))
    assert target.read_text() == "mine\n"
