"""Commands where a sandbox stands, in a turn: what undo can restore, plan mode, and the gate."""

import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from agent_tui.agent.prompt.fitted_prompt import full_prompt, short_prompt
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.agent.turn.repetition import STUCK_AT
from agent_tui.cli.command_sandbox import BrokenSandbox
from agent_tui.events import (
    ApprovalRequest,
    ApprovalRequested,
    Notice,
    ToolFinished,
    TurnFinished,
)
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.features.tree.branches import Branches
from agent_tui.messages import JsonObject
from agent_tui.sessions.entries import MessageEntry
from agent_tui.tools.base import ToolContext, ToolOutput
from agent_tui.tools.bash import BashArguments, BashTool
from agent_tui.tools.command_sandbox import (
    NO_SANDBOX,
    CommandRun,
    CommandSandbox,
    CommandStart,
)
from agent_tui.tools.git.trees import WorkTrees
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.registry import default_toolbox
from agent_tui.tools.selection import select_tools
from tests.support.runtime import Stage, collect, of_kind, only


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Every command counts as inside a sandbox, or outside of it where the model wants that."""

    def place(_tool: BashTool, arguments: BashArguments, _context: ToolContext) -> str:
        return "outside" if arguments.outside else "inside"

    def run(
        _sandbox: CommandSandbox, _command: str, _context: ToolContext, how: CommandStart
    ) -> CommandRun:
        return CommandRun(how)

    monkeypatch.setattr(BashTool, "_place", place)
    monkeypatch.setattr(CommandSandbox, "run", run)
    return Stage(tmp_path)


@pytest.fixture
def keeper() -> Iterator[ProcessKeeper]:
    keeper = ProcessKeeper()
    yield keeper
    keeper.close()


def _git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def _with_work(folder: Path) -> None:
    """A repository with a changed file and a new one."""
    _git(folder, "init", "-q")
    (folder / "a.py").write_text("old\n", "utf-8")
    _git(folder, "add", ".")
    _git(folder, "commit", "-qm", "x")
    (folder / "a.py").write_text("new\n", "utf-8")
    (folder / "b.py").write_text("more\n", "utf-8")


def _calling(command: str, **arguments: object) -> list[Reply]:
    wanted = call("c1", "bash", command=command, **arguments)  # pyright: ignore[reportArgumentType]
    return [Reply(tool_calls=(wanted,)), Reply(text="Done.")]


def _result(events: list[object]) -> str:
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    return finished.message.text


async def test_work_that_undo_restores_is_discarded_and_told(stage: Stage, keeper: ProcessKeeper):
    folder = stage.workspace
    _with_work(folder)
    runtime = stage.runtime(
        _calling("git reset -q --hard; git clean -qfd"), trees=WorkTrees(keeper)
    )
    events = await collect(runtime.submit("Discard it."))
    assert ((folder / "a.py").read_text(), (folder / "b.py").exists()) == ("old\n", False)
    told = [notice.text for notice in of_kind(events, Notice)]
    assert any("/undo can restore the files" in text for text in told)
    await runtime.files.carry_out(await _plan_back(runtime))
    assert ((folder / "a.py").read_text(), (folder / "b.py").read_text()) == ("new\n", "more\n")


async def _plan_back(runtime: AgentRuntime):
    entries = runtime.conversation.log.entries
    first = next(e for e in entries if isinstance(e, MessageEntry) and e.message.role == "user")
    return await runtime.files.plan_for(await Branches(runtime).place_of(first.id))


@pytest.mark.parametrize("name", [".env", "large.bin", ""])
async def test_work_that_undo_does_not_keep_is_not_discarded(
    stage: Stage, keeper: ProcessKeeper, name: str
):
    folder = stage.workspace
    _with_work(folder)
    if name:
        (folder / name).write_bytes(b"x" * (5_000_001 if name == "large.bin" else 5))
    trees = WorkTrees(keeper) if name else None
    runtime = stage.runtime(_calling("git clean -qfd"), trees=trees)
    result = _result([*await collect(runtime.submit("Discard it."))])
    assert "Not permitted: git clean -qfd discards uncommitted work" in result
    assert "undo may not restore" in result
    assert (folder / "b.py").exists()


_LARGE = b"x" * 5_000_001


@pytest.mark.parametrize("is_interactive", [True, False])
async def test_only_what_neither_git_nor_undo_has_is_work_that_a_command_would_lose(
    stage: Stage, keeper: ProcessKeeper, is_interactive: bool
):
    folder = stage.workspace
    _with_work(folder)
    (folder / ".gitignore").write_text("*.log\n")
    for name in ("clean", "changed"):
        (folder / name).write_bytes(_LARGE)
    _git(folder, "add", ".")
    _git(folder, "commit", "-qm", "x")
    (folder / "changed").write_bytes(_LARGE + b"mine")
    for name in ("new", "data/new", "many/a", "trace.log"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(_LARGE)
    (folder / "small").write_text("x")
    lost = (
        *("git checkout -- changed", "git show HEAD:changed > changed", "rm new", "rm -r data"),
        *(": > new", "mv small new", "git restore changed"),
    )
    kept = ("rm clean", "rm trace.log", "echo > small", "rm small", "mv many/a many/b", "rm -r .x")
    for command in (*lost, *kept):
        runtime = stage.runtime(
            _calling(command),
            trees=WorkTrees(keeper),
            mode="accept-edits",
            is_interactive=is_interactive,
        )
        asked = 0
        async for event in runtime.submit("go"):
            if isinstance(event, ApprovalRequested):
                asked += 1
                assert "uncommitted work" in event.request.reason
                runtime.pending_approvals.answer(event.request.id, ApprovalAnswer("no"))
            elif isinstance(event, ToolFinished):
                refused = "which undo may not restore" in event.message.text
                assert refused == (command in lost and not is_interactive), command
        assert asked == (command in lost and is_interactive), command
    assert (folder / "changed").read_bytes() == _LARGE + b"mine"


async def test_a_command_that_removes_more_files_than_undo_records_loses_work(
    stage: Stage, keeper: ProcessKeeper, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("agent_tui.tools.git.trees.MOST_CHANGES", 3)
    _with_work(stage.workspace)
    (stage.workspace / "notes").mkdir()
    for number in range(4):
        (stage.workspace / f"notes/{number}").write_text("x")
    runtime = stage.runtime(_calling("rm -r notes"), trees=WorkTrees(keeper))
    result = _result([*await collect(runtime.submit("go"))])
    assert "loses uncommitted work" in result
    assert (stage.workspace / "notes/3").exists()


async def test_where_git_may_not_be_asked_each_large_file_counts_as_work(
    stage: Stage, keeper: ProcessKeeper, monkeypatch: pytest.MonkeyPatch
):
    folder = stage.workspace
    _with_work(folder)
    for name in ("data/x/new", "new", "few/small"):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(b"x" if name == "few/small" else _LARGE)
    for command, is_lost in (("rm -r data", True), ("rm new", True), ("rm -r few b.py", False)):
        runtime = stage.runtime(
            _calling(command), trees=WorkTrees(keeper), mode="accept-edits", is_interactive=False
        )
        monkeypatch.setattr(runtime.services.trust, "may_run_git", lambda _folder: False)
        result = _result([*await collect(runtime.submit("go"))])
        assert ("loses uncommitted work" in result) == is_lost, command


@pytest.mark.parametrize("is_repository", [True, False])
async def test_the_write_tool_replaces_no_large_file_with_work_in_it(
    stage: Stage, keeper: ProcessKeeper, is_repository: bool
):
    path = stage.workspace / "new"
    if is_repository:
        _with_work(stage.workspace)
    path.write_bytes(_LARGE)
    calls = (
        call("c1", "read", path="new", limit=1),
        call("c2", "write", path="new", content="x"),
    )
    script = [Reply(tool_calls=calls), Reply(text="Done.")]
    runtime = stage.runtime(
        script, trees=WorkTrees(keeper), mode="accept-edits", is_interactive=False
    )
    results = [
        event.message.text
        for event in await collect(runtime.submit("go"))
        if isinstance(event, ToolFinished)
    ]
    assert "loses uncommitted work" in results[-1]
    assert path.read_bytes() == _LARGE


async def test_commands_that_alternate_between_two_states_of_a_file_are_a_circle(
    stage: Stage, keeper: ProcessKeeper
):
    _with_work(stage.workspace)
    steps = [
        Reply(tool_calls=(call(f"c{n}", "bash", command=f"sed -i s/{old}/{new}/ b.py"),))
        for n in range(2 * STUCK_AT)
        for old, new in [("more", "less"), ("less", "more")]
    ]
    runtime = stage.runtime(ScriptedProvider(steps), trees=WorkTrees(keeper))
    events = await collect(runtime.submit("go"))
    assert only(events, TurnFinished).outcome == "limit"
    assert STUCK_AT < len(of_kind(events, ToolFinished)) <= 2 * STUCK_AT + 2


@pytest.mark.parametrize("mode", ["plan", "full"])
async def test_in_plan_mode_commands_run_where_they_cannot_write(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, mode: str
):
    may_write: list[bool] = []

    async def run(_tool: BashTool, _arguments: BashArguments, context: ToolContext) -> ToolOutput:
        may_write.append(context.may_write)
        return ToolOutput("ran")

    monkeypatch.setattr(BashTool, "run", run)
    runtime = stage.runtime(_calling("make all"), mode=mode)  # pyright: ignore[reportArgumentType]
    assert _result([*await collect(runtime.submit("Look."))]) == "ran"
    assert may_write == [mode == "full"]


async def _asked(runtime: AgentRuntime) -> ApprovalRequest:
    """What is asked; the answer is no."""
    events: list[object] = []
    async for event in runtime.submit("go"):
        events.append(event)
        if isinstance(event, ApprovalRequested):
            runtime.pending_approvals.answer(event.request.id, ApprovalAnswer("no"))
    return only(events, ApprovalRequested).request  # pyright: ignore[reportArgumentType]


async def test_the_gate_asks_with_the_models_reason_and_suggests_no(stage: Stage):
    script = _calling("git push origin main", outside=True, why="publish the branch")
    request = await _asked(stage.runtime(script, mode="accept-edits"))
    assert 'the model says: "publish the branch"' in request.reason
    assert (request.is_loss, request.session_rule) == (True, "bash(git push *)")


async def test_a_question_inside_suggests_yes(stage: Stage):
    request = await _asked(stage.runtime(_calling("make all"), mode="ask"))
    assert (request.is_loss, request.session_rule) == (False, "bash(inside)")


@pytest.mark.parametrize("has_sandbox", [True, False])
async def test_yes_to_all_edits_says_that_commands_run_unasked_exactly_if_they_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_sandbox: bool
):
    async def run(_tool: BashTool, _arguments: BashArguments, _context: ToolContext) -> ToolOutput:
        return ToolOutput("ran")

    def is_on(_sandbox: CommandSandbox, _cwd: Path) -> bool:
        return has_sandbox

    monkeypatch.setattr(BashTool, "run", run)
    monkeypatch.setattr(CommandSandbox, "is_on", is_on)
    write = call("c1", "write", path="a.txt", content="x\n")
    script = [Reply(tool_calls=(write,)), *_calling("make all")]
    runtime = Stage(tmp_path).runtime(script, mode="ask")
    asked: list[ApprovalRequest] = []
    async for event in runtime.submit("go"):
        if isinstance(event, ApprovalRequested):
            asked.append(event.request)
            choice = "edits" if event.request.is_edit else "no"
            runtime.pending_approvals.answer(event.request.id, ApprovalAnswer(choice))
    assert asked[0].accepted == ("edits and sandboxed commands" if has_sandbox else "edits")
    assert [request.tool_name for request in asked] == ["write", *["bash"] * (not has_sandbox)]


async def test_leaving_the_sandbox_needs_a_reason(stage: Stage):
    runtime = stage.runtime(_calling("git push", outside=True))
    assert "outside needs why" in _result([*await collect(runtime.submit("go"))])


def test_the_model_is_told_of_the_sandbox_only_where_one_stands(tmp_path: Path):
    day = date(2026, 1, 1)
    assert "sandbox" not in full_prompt(tmp_path, day) + short_prompt(tmp_path, day)
    told = (
        full_prompt(tmp_path, day, has_sandbox=True),
        short_prompt(tmp_path, day, has_sandbox=True),
    )
    assert all("`outside`" in text and "`why`" in text for text in told)

    def arguments(*, has_sandbox: bool) -> JsonObject:
        specs = select_tools(default_toolbox().specs, "m", has_sandbox=has_sandbox)
        (bash,) = [spec for spec in specs if spec.name == "bash"]
        properties = bash.parameters["properties"]
        assert isinstance(properties, dict)
        return properties

    leaving = {"outside", "why"}
    assert leaving <= set(arguments(has_sandbox=True))
    assert not leaving & set(arguments(has_sandbox=False))


@pytest.mark.parametrize(
    ("calls", "has_sandbox", "is_said"),
    [
        ({"command": "make > /tmp/log"}, True, True),
        ({"command": 'ls "$TMPDIR"'}, True, True),
        ({"command": "make > /tmp/log"}, False, False),
        ({"command": "make > /tmp/log", "outside": True, "why": "x"}, True, False),
        ({"command": "ls tmp/x"}, True, False),
    ],
)
async def test_a_reopened_session_says_once_that_temporary_files_are_gone(
    stage: Stage, calls: JsonObject, has_sandbox: bool, is_said: bool
):
    first = stage.runtime(_calling(**calls))  # pyright: ignore[reportArgumentType]
    await collect(first.submit("go"))
    path = str(first.conversation.log.path)
    await first.aclose()
    for replies in (2, 1):
        later = stage.runtime([Reply(text="Done.") for _ in range(replies)])
        later.services.sandbox = BrokenSandbox("") if has_sandbox else NO_SANDBOX
        await later.sessions.open(path)
        for number in range(replies):
            await collect(later.submit(f"again {number}"))
        told = [message.text for message in stage.model.requests[-1].messages]
        gone = [text for text in told if "no temporary files from before" in text]
        assert len(gone) == is_said
        await later.aclose()
