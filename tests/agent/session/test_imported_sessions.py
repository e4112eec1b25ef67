from pathlib import Path

import pytest

from agent_tui.config.schema import CompactionSettings
from agent_tui.events import Notice, ReplyFinished
from agent_tui.features.tour.scripted import Reply, ScriptedProvider
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.importers.import_session import import_session
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from tests.sessions.importers import claude_lines, codex_lines
from tests.sessions.importers.recordings import LAID_OUT
from tests.support.context_checks import assert_sendable
from tests.support.importers.formats import ALL_FORMATS
from tests.support.runtime import Stage, collect, of_kind, summary_or
from tests.support.session_values import conversation, session_bytes
from tests.support.trajectories import trajectories, trajectory

PATCH = "*** Begin Patch\n*** Update File: greet.py\n@@\n-x\n+y\n*** End Patch"

LONG = " ".join(f"word{number}" for number in range(20_000))
"""More than a compaction keeps as it is."""


def _quick_or_slow(names: list[str]) -> list[object]:
    """One recorded session of each kind; the others take their time."""
    kinds: set[str] = set()
    chosen: list[object] = []
    for name in names:
        kind = name.partition("/")[0]
        chosen.append(pytest.param(name, marks=pytest.mark.slow) if kind in kinds else name)
        kinds.add(kind)
    return chosen


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def turn_after_import(stage: Stage, path: Path, until: int | None = None) -> SessionLog:
    """Import `path`, have one turn in the new session, and read that back."""
    store = SessionStore(stage.sessions, "none", ALL_FORMATS)
    imported = import_session(store, path, cwd=stage.workspace, until=until)
    provider = ScriptedProvider([Reply(text="Going on.")])
    whole = CompactionSettings(trigger_tokens=0)
    runtime = stage.runtime(provider, window=5_000_000, compaction=whole)
    await runtime.sessions.open(imported.id)
    events = await collect(runtime.submit("Go on."))
    assert of_kind(events, ReplyFinished)
    (request,) = provider.requests
    assert request.messages[-1].text == "Go on."
    await runtime.aclose()
    with SessionLog.open(imported.path, read_only=True) as log:
        assert log.warnings == ()
        assert_sendable(log.path_entries())
        return log


@pytest.mark.parametrize("name", _quick_or_slow(trajectories()))
async def test_an_imported_session_goes_on_with_a_turn(stage: Stage, name: str) -> None:
    log = await turn_after_import(stage, trajectory(name))
    said = [e.message.text for e in log.path_entries() if isinstance(e, MessageEntry)]
    assert said[-2:] == ["Go on.", "Going on."]


@pytest.mark.parametrize("name", LAID_OUT)
async def test_a_session_of_each_agent_goes_on_with_a_turn(
    stage: Stage, tmp_path: Path, name: str
) -> None:
    log = await turn_after_import(stage, LAID_OUT[name](tmp_path / "home"))
    said = [e.message.text for e in log.path_entries() if isinstance(e, MessageEntry)]
    assert said[-2:] == ["Go on.", "Going on."]


@pytest.mark.parametrize("until", range(1, 8))
async def test_a_session_cut_anywhere_goes_on_with_a_turn(
    stage: Stage, tmp_path: Path, until: int
) -> None:
    theirs = tmp_path / "theirs.jsonl"
    theirs.write_bytes(session_bytes(conversation()))
    await turn_after_import(stage, theirs, until)


async def test_files_of_an_imported_session_are_carried_by_its_compaction(
    stage: Stage, tmp_path: Path
) -> None:
    theirs = codex_lines.write(
        tmp_path / "rollout-1.jsonl",
        *(codex_lines.head(cwd=str(stage.workspace)), codex_lines.said("Fix it.")),
        codex_lines.call("c1", "shell", command=["bash", "-lc", "cat notes.md"]),
        codex_lines.output("c1", "Exit code: 0\nWall time: 0 seconds\nOutput:\nhello"),
        codex_lines.patch("c2", PATCH),
        codex_lines.patched("c2", "Success."),
        *(codex_lines.replied("Done."), codex_lines.said(LONG), codex_lines.replied("Ok.")),
    )
    store = SessionStore(stage.sessions, "none")
    imported = import_session(store, theirs, cwd=tmp_path)
    runtime = stage.runtime(summary_or(Reply(text="Yes.")))
    await runtime.sessions.open(imported.id)
    await collect(runtime.compact())
    carried = runtime.conversation.log.header.compaction
    assert carried is not None
    assert carried.read_files == ("notes.md",)
    assert carried.modified_files == ("greet.py",)
    await runtime.aclose()


async def test_another_agents_file_that_is_opened_is_copied_and_never_written(stage: Stage):
    theirs = claude_lines.write(
        stage.workspace / "0f.jsonl",
        claude_lines.said("u1", None, "Fix it."),
        claude_lines.replied("a1", "u1", claude_lines.text("It is fixed.")),
    )
    before = theirs.read_bytes()
    runtime = stage.runtime([Reply(text="Going on.")])
    events = await runtime.sessions.open(str(theirs))
    assert any("Imported" in notice.text for notice in of_kind([*events], Notice))
    await collect(runtime.submit("Go on."))
    assert [message.text for message in runtime.conversation.request().messages] == [
        "Fix it.",
        "It is fixed.",
        "Go on.",
        "Going on.",
    ]
    assert theirs.read_bytes() == before
    assert runtime.conversation.log.path is not None
    assert runtime.conversation.log.path.is_relative_to(stage.sessions)
    await runtime.aclose()
