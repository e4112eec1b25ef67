import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.cli.folders import worktree_records
from agent_tui.config import PermissionMode
from agent_tui.events import AgentEvent, ApprovalRequested, ToolFinished
from agent_tui.features.helpers.worktrees import Worktrees
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import ToolCall, ToolResultMessage
from agent_tui.providers.base import ModelRequest
from tests.features.helpers.test_worktrees import git
from tests.support.renamed_filters import RenamedFilters
from tests.support.runtime import Stage, of_kind
from tests.support.tool_calls import KEEPER

TASK = "Make it louder"
Steps = tuple[ToolCall, ...]


class Scene:
    """A repository with an uncommitted change, and a helper that makes `steps`."""

    def __init__(self, folder: Path) -> None:
        self.stage = Stage(folder.resolve())
        self.top = self.stage.workspace
        git(self.top, "init", "-q", "-b", "main", "--template=")
        (self.top / "greet.py").write_text("one\ntwo\nthree\nfour\nfive\n")
        git(self.top, "add", ".")
        git(self.top, "commit", "-qm", "one")
        (self.top / "mine.py").write_text("mine\n")
        (self.top / "greet.py").write_text("one\ntwo\nthree\nfour\nFIVE\n")
        environ = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(folder)}
        self.trees = Worktrees(KEEPER, environ, worktree_records())
        self.asked: list[ApprovalRequested] = []
        self.results: list[ToolResultMessage] = []

    async def play(
        self,
        *steps: Steps,
        bring: bool = True,
        answer: ApprovalAnswer | None = None,
        mode: PermissionMode = "accept-edits",
        meanwhile: Callable[[], object] = lambda: None,
    ) -> AgentRuntime:
        """The model delegates, and then brings the branch over if `bring`."""

        def script(request: ModelRequest) -> Reply:
            said = sum(message.role == "assistant" for message in request.messages)
            if "You do one task" in request.system:
                return Reply(tool_calls=steps[said]) if said < len(steps) else Reply("It is loud.")
            if said == 0:
                return Reply(tool_calls=(call("c1", "delegate", task=TASK),))
            if said == 1 and bring:
                meanwhile()
                return Reply(tool_calls=(call("c2", "delegate", bring=self.branch()),))
            return Reply("Done.")

        runtime = self.stage.runtime(script, mode=mode, writing_helpers=True)

        async def follow(events: AgentEvent) -> None:
            if isinstance(events, ApprovalRequested):
                self.asked.append(events)
                given = answer or ApprovalAnswer("once")
                runtime.pending_approvals.answer(events.request.id, given)

        async for event in runtime.submit("go"):
            await asyncio.sleep(0)
            await follow(event)
            self.results += [one.message for one in of_kind([event], ToolFinished)]
        return runtime

    def branches(self) -> list[str]:
        return git(self.top, "branch", "--format=%(refname:short)").split()

    def branch(self) -> str:
        (branch,) = (name for name in self.branches() if name != "main")
        return branch


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    return Scene(tmp_path)


LOUDER = (
    (call("h1", "read", path="greet.py"),),
    (
        call("h2", "edit", path="greet.py", old="one", new="ONE"),
        call("h3", "write", path="new.py", content="new\n"),
    ),
)


async def test_a_helper_writes_in_its_own_worktree_and_the_user_merges_it(scene: Scene):
    await scene.play(*LOUDER)
    told, brought = scene.results
    assert told.text.startswith("It is loud.")
    assert "not here: greet.py, new.py, +2 -1" in told.text
    assert not told.tool_details.diff  # nothing changed here yet
    assert brought.tool_details.diff
    (asked,) = scene.asked
    assert "a helper made these changes" in asked.request.reason
    assert "+ONE" in asked.request.body
    assert (scene.top / "greet.py").read_text() == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert (scene.top / "new.py").read_text() == "new\n"
    assert not brought.is_error
    assert scene.branches() == ["main"]
    assert not (scene.top.parent / "workspace.worktrees").exists()


async def test_nothing_comes_over_before_the_user_agrees_and_the_branch_stays(scene: Scene):
    await scene.play(*LOUDER, answer=ApprovalAnswer("no", words="not yet"))
    assert (scene.top / "greet.py").read_text().startswith("one\n")
    assert not (scene.top / "new.py").exists()
    assert "ONE" in git(scene.top, "show", f"{scene.branch()}:greet.py")


async def test_the_helper_begins_with_uncommitted_changes(scene: Scene):
    (scene.top / "gone.txt").write_text("x")
    await scene.play((call("h1", "read", path="mine.py"),), *LOUDER[1:], bring=False)
    branch = scene.branch()
    assert git(scene.top, "show", f"{branch}:mine.py") == "mine"
    assert git(scene.top, "show", f"{branch}~1:greet.py").endswith("FIVE")


async def test_large_files_stay_as_committed_and_keys_are_not_copied(scene: Scene, monkeypatch):
    monkeypatch.setattr("agent_tui.features.helpers.helper_git.MOST_FILE_BYTES", 100)
    (scene.top / "big.txt").write_text("small\n")
    git(scene.top, "add", "big.txt")
    git(scene.top, "commit", "-qm", "two")
    (scene.top / "big.txt").write_text("large\n" * 50)
    (scene.top / "config").mkdir()
    (scene.top / "config" / "id_rsa").write_text("secret\n")
    await scene.play(*LOUDER, bring=False)
    there = git(scene.top, "ls-tree", "-r", "--name-only", scene.branch()).split()
    assert git(scene.top, "show", f"{scene.branch()}:big.txt") == "small"
    assert "mine.py" in there
    assert "config/id_rsa" not in there


async def test_a_link_that_became_a_folder_leads_out_of_no_worktree(scene: Scene):
    outside = scene.top.parent / "shared" / "file.txt"
    outside.parent.mkdir()
    outside.write_text("precious")
    (scene.top / "folder").symlink_to(outside.parent)
    git(scene.top, "add", "folder")
    git(scene.top, "commit", "-qm", "two")
    (scene.top / "folder").unlink()
    (scene.top / "folder").mkdir()
    (scene.top / "folder" / "file.txt").write_text("mine")
    await scene.play(*LOUDER, bring=False)
    assert outside.read_text() == "precious"
    assert git(scene.top, "show", f"{scene.branch()}:folder/file.txt") == "mine"


async def test_changes_on_both_sides_are_merged(scene: Scene):
    def change() -> None:
        (scene.top / "greet.py").write_text("one\ntwo\nthree\nfour\n5\n")

    await scene.play(*LOUDER, meanwhile=change)
    assert (scene.top / "greet.py").read_text() == "ONE\ntwo\nthree\nfour\n5\n"


@pytest.mark.parametrize("safe", ["false", "true"])
async def test_files_come_over_as_git_would_check_them_out(scene: Scene, safe: str):
    git(scene.top, "config", "core.safecrlf", safe)
    attributes = "* text=auto eol=crlf\n*.png -text\n"
    (scene.top / ".gitattributes").write_text(attributes.replace("\n", "\r\n"))
    (scene.top / "code.txt").write_bytes(b"bcd\r\n")
    (scene.top / "greet.py").write_bytes(b"one\r\ntwo\r\nthree\r\nfour\r\nFIVE\r\n")
    (scene.top / "mine.py").unlink()
    git(scene.top, "add", ".")
    git(scene.top, "commit", "-qm", "two")

    def change() -> None:
        (scene.top / "greet.py").write_bytes(b"one\r\ntwo\r\nthree\r\nfour\r\n5\r\n")

    steps = (
        *LOUDER,
        (call("h4", "read", path="code.txt"),),
        (
            call("h5", "edit", path="code.txt", old="bcd", new="xyz"),
            call("h6", "write", path="more words.txt", content="xyz\n"),
            call("h7", "write", path="dot.png", content="a\nb\n"),
        ),
    )
    await scene.play(*steps, meanwhile=change)
    written = {path.name: path.read_bytes() for path in scene.top.iterdir() if path.is_file()}
    assert written == {
        ".gitattributes": attributes.replace("\n", "\r\n").encode(),
        "greet.py": b"ONE\r\ntwo\r\nthree\r\nfour\r\n5\r\n",
        "new.py": b"new\r\n",
        "code.txt": b"xyz\r\n",
        "more words.txt": b"xyz\r\n",
        "dot.png": b"a\nb\n",
    }
    assert scene.branches() == ["main"]


async def test_what_a_filter_converts_stays_where_the_helper_wrote_it_and_no_filter_runs(
    scene: Scene,
):
    users, mark = str(scene.stage.folder / ".gitconfig"), scene.stage.folder / "mark"
    git(scene.top, "config", "--file", users, "filter.caesar.smudge", f"pwd >> {mark}; cat")
    git(scene.top, "config", "--file", users, "filter.caesar.clean", f"pwd >> {mark}; tr a-z A-Z")
    (scene.top / ".gitattributes").write_text("*.txt filter=caesar\n")
    for name in ("code.txt", "gone.txt"):
        (scene.top / name).write_text("abc\n")
    git(scene.top, "add", ".")
    git(scene.top, "commit", "-qm", "two")
    (scene.top / "code.txt").write_text("not committed\n")
    seen = call("h4", "bash", command="cat code.txt > seen.py; rm gone.txt; echo x > new.txt")
    await scene.play(*LOUDER, (seen,), mode="full", bring=False)
    assert not mark.exists()
    (told,) = scene.results
    place = scene.top.parent / "workspace.worktrees" / scene.branch().replace("/", "-")
    assert f"(Not on its branch, only in {place}: 1 uncommitted file.)" in told.text
    assert (place / "new.txt").read_text() == "x\n"
    files = git(scene.top, "ls-tree", "-r", "--name-only", scene.branch()).split()
    assert files == [".gitattributes", "code.txt", "greet.py", "mine.py", "new.py", "seen.py"]
    assert git(scene.top, "show", f"{scene.branch()}:seen.py") == "abc"


async def test_what_a_filter_converts_is_not_brought_over_though_the_helper_committed_it(
    scene: Scene,
):
    git(
        scene.top,
        "config",
        "--file",
        str(scene.stage.folder / ".gitconfig"),
        "filter.x.clean",
        "cat",
    )
    (scene.top / ".gitattributes").write_text("*.txt filter=x\n")
    git(scene.top, "add", ".")
    git(scene.top, "commit", "-qm", "two")
    command = (
        "echo x > new.txt && id=$(git hash-object -w --no-filters new.txt) && "
        "git update-index --add --cacheinfo 100644,$id,new.txt && "
        "git -c user.name=a -c user.email=b commit -qm own"
    )
    await scene.play(*LOUDER, (call("h4", "bash", command=command),), mode="full")
    assert (scene.top / "new.py").exists()
    assert not (scene.top / "new.txt").exists()
    assert git(scene.top, "show", f"{scene.branch()}:new.txt") == "x"


async def test_no_filter_runs_whose_name_changes_while_a_helper_works(scene: Scene):
    filters = RenamedFilters(scene.top, scene.stage.folder / "bin")
    await scene.play(*LOUDER)
    assert not filters.have_run
    assert filters.calls > 10
    assert "Not on its branch" in scene.results[0].text


async def test_line_endings_that_git_would_not_check_out_are_no_conflict(scene: Scene):
    (scene.top / ".gitattributes").write_text("* text=auto eol=crlf\n")  # after the checkout
    await scene.play(*LOUDER)
    assert (scene.top / "greet.py").read_bytes() == b"ONE\ntwo\nthree\nfour\nFIVE\n"
    assert (scene.top / "new.py").read_bytes() == b"new\r\n"


async def test_line_endings_that_the_helper_changed_are_not_lost_in_a_merge(scene: Scene):
    def change() -> None:
        (scene.top / "greet.py").write_text("one\ntwo\nthree\nfour\n5\n")

    steps = ((call("h1", "bash", command=r"sed -i 's/$/\r/' greet.py"),),)
    await scene.play(*steps, mode="full", meanwhile=change)
    assert "Conflicts in greet.py" in scene.results[1].text


@pytest.mark.parametrize(
    "command",
    [
        "chmod 755 greet.py",
        "mv greet.py 'a\nb.py'",
        "ln -s greet.py link.py",
        "git init -q sub && cd sub && git -c user.name=a -c user.email=b commit -q "
        "--allow-empty -m x",
    ],
)
async def test_what_only_git_can_bring_over_is_named_and_stays(scene: Scene, command: str):
    await scene.play((call("h1", "bash", command=command),), mode="full")
    assert "Not brought over: " in scene.results[1].text
    assert scene.branch().startswith("agent-tui/")


async def test_conflicts_are_told_and_nothing_is_written(scene: Scene):
    def change() -> None:
        (scene.top / "greet.py").write_text("1\ntwo\nthree\nfour\nFIVE\n")

    await scene.play(*LOUDER, meanwhile=change)
    assert scene.asked == []
    assert "Conflicts in greet.py" in scene.results[1].text
    assert (scene.top / "greet.py").read_text().startswith("1\n")
    assert not (scene.top / "new.py").exists()
    assert scene.branch().startswith("agent-tui/make-it-louder-")


async def test_a_helper_that_changes_nothing_leaves_nothing(scene: Scene):
    await scene.play(bring=False)
    assert "(It changed no files.)" in scene.results[0].text
    assert scene.branches() == ["main"]


@pytest.mark.parametrize("more", [(), LOUDER[0]])
async def test_what_git_ignores_is_named_and_stays_in_the_worktree(scene: Scene, more: Steps):
    (scene.top / ".gitignore").write_text("*.local\n")
    writing = call("h4", "write", path="new.local", content="new\n")
    writing_here = (*more, writing) if more else (writing,)
    await scene.play(writing_here, *(LOUDER if more else ()), bring=False)
    (place,) = scene.top.parent.glob("workspace.worktrees/*/new.local")
    told = scene.results[0].text
    assert f"(Not on its branch, only in {place.parent}: 1 ignored file (new.local).)" in told
    assert ("It changed no files." in told, "delegate bring=" in told) == (False, bool(more))
    assert place.parent.name.startswith("agent-tui-make-it-louder")
    assert scene.branch()


async def test_a_helper_cannot_write_outside_its_worktree(scene: Scene):
    target = scene.top / "mine.py"
    await scene.play((call("h1", "write", path=str(target), content="theirs\n"),), bring=False)
    assert target.read_text() == "mine\n"
    assert scene.asked == []


async def test_in_full_mode_the_model_may_merge_without_a_question(scene: Scene):
    await scene.play(*LOUDER, mode="full")
    assert scene.asked == []
    assert (scene.top / "new.py").exists()


async def test_keys_that_are_not_committed_stay_with_the_user(scene: Scene):
    (scene.top / ".env").write_text("KEY=1\n")
    await scene.play(*LOUDER, bring=False)
    files = git(scene.top, "ls-tree", "-r", "--name-only", scene.branch()).split()
    assert ("mine.py" in files, ".env" in files) == (True, False)


@pytest.mark.parametrize("arguments", [{}, {"task": "x", "bring": "y"}, {"bring": "unknown"}])
async def test_calls_that_cannot_work_are_explained(scene: Scene, arguments: dict[str, str]):
    def script(request: ModelRequest) -> Reply:
        said = sum(message.role == "assistant" for message in request.messages)
        return Reply("Done.") if said else Reply(tool_calls=(call("c", "delegate", **arguments),))

    runtime = scene.stage.runtime(script, writing_helpers=True)
    async for event in runtime.submit("go"):
        scene.results += [one.message for one in of_kind([event], ToolFinished)]
    assert scene.results[0].is_error
    assert "branch" in scene.results[0].text


async def test_a_helper_that_is_stopped_leaves_its_worktree(scene: Scene):
    hold = asyncio.Event()

    def script(request: ModelRequest) -> Reply:
        said = sum(message.role == "assistant" for message in request.messages)
        if "You do one task" not in request.system:
            return Reply(tool_calls=(call("c1", "delegate", task=TASK),))
        if said == 0:
            return Reply(tool_calls=(call("h", "write", path="new.py", content="new\n"),))
        return Reply("Waiting", gate=hold)

    runtime = scene.stage.runtime(script, mode="full", writing_helpers=True)

    async def stop() -> None:
        while not list(scene.top.parent.glob("workspace.worktrees/*/new.py")):
            await asyncio.sleep(0.01)
        runtime.abort()

    stopping = asyncio.create_task(stop())
    async for _ in runtime.submit("go"):
        pass
    await stopping
    (left,) = scene.top.parent.glob("workspace.worktrees/*/new.py")
    assert left.read_text() == "new\n"
    assert await scene.trees.clean_up(scene.top, lambda _: False) == []
    assert left.exists()
