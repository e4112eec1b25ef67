"""States of the screen worth looking at, each made by the events that lead to it."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agent_tui.agent.context_map import ContextMap, LargeMessage, Part
from agent_tui.config import Settings
from agent_tui.events import (
    ApprovalRequest,
    ApprovalRequested,
    CompactionFinished,
    ContextChanged,
    ReplyFinished,
    ReplyStarted,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    TodosChanged,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    TotalsChanged,
    TurnFinished,
)
from agent_tui.messages import (
    AssistantMessage,
    JsonObject,
    TextContent,
    Todo,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    Header,
    LabelEntry,
    MessageEntry,
    SessionInfoEntry,
)
from agent_tui.tokens import ContextUsage
from agent_tui.ui.app import AgentApp
from agent_tui.ui.options import FirstRun, KeyChoice, UiOptions
from agent_tui.ui.screens.context import ContextScreen
from agent_tui.ui.screens.pull import QUIET_S, PullBar
from tests.support.fake_local import PULLED, FakeLocal
from tests.support.fake_runtime import MODEL, OTHER, FakeModels, FakeRuntime
from tests.ui.fed_app import Ui
from tests.ui.file_scenes import memory_page, menu_of_prompt_files
from tests.ui.settings_scenes import editor_in, setting_refused, settings_page

Scene = Callable[[Ui], Awaitable[None]]

DIFF = """--- src/app.py
+++ src/app.py
@@ -10,7 +10,9 @@
 def main() -> int:
-    args = parse(sys.argv)
-    return run(args)
+    args = parse(sys.argv[1:])
+    if args.version:
+        return show_version()
+    return run(args)


 if __name__ == "__main__":
"""
ANSWER = """## What was wrong

`parse` got the whole of `sys.argv`, so **the program's own name** was taken for the first argument.

| case | before | now |
|---|---|---|
| `--version` | ignored | printed |
| no argument | error | help |

```python
def main() -> int:
    return run(parse(sys.argv[1:]))
```
"""
SUMMARY = """## Goal
Make the version flag of the program work.

## Progress
### Done
- [x] `src/app.py` parses `sys.argv[1:]`

## Next Steps
1. Write the change up

<modified-files>
src/app.py
</modified-files>
"""
APPROVAL = ApprovalRequest(
    id="r1",
    call_id="c9",
    tool_name="edit",
    title="edit src/app.py (+4 -2)",
    body=DIFF,
    body_kind="diff",
    reason="Changing files asks in this mode.",
    session_rule="edit(src/**)",
)


class StillClock:
    """A clock that stands until it is told to go on."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def result(call_id: str, name: str, text: str, details: JsonObject) -> ToolFinished:
    """A tool's answer."""
    message = ToolResultMessage(
        tool_call_id=call_id, tool_name=name, content=(TextContent(text=text),), details=details
    )
    return ToolFinished("e", call_id, message)


async def work_begun(ui: Ui) -> None:
    """A question, a thought, a file read and edited."""
    await ui.send("Why does the version flag do nothing? Please fix it and run the tests.")
    ui.runtime.feed(
        ReplyStarted("m"),
        ThinkingDelta("The flag is parsed but never looked at. I should read the file first."),
        TextDelta("I'll look at how the arguments are parsed.\n"),
    )
    await ui.settle()
    ui.runtime.feed(
        ReplyFinished("e", AssistantMessage()),
        ToolStarted("c1", "read", {}, "src/app.py"),
        result("c1", "read", "1 import sys\n", {"summary": "42 lines"}),
        ToolStarted("c2", "edit", {}, "src/app.py"),
        result("c2", "edit", "Edited.", {"summary": "+4 -2", "diff": DIFF}),
    )
    await ui.settle()


async def welcome(ui: Ui) -> None:
    """Nothing said yet."""
    await ui.settle()


async def chat(ui: Ui) -> None:
    """A finished turn; the context is filling up."""
    await work_begun(ui)
    ui.runtime.feed(ReplyStarted("m"), TextDelta(ANSWER))
    await ui.settle()
    ui.runtime.conversation.usage = ContextUsage(134_000, 200_000, is_estimate=False)
    ui.runtime.conversation.totals = TotalsChanged(12_300, 4_100, 0.18)
    ui.runtime.sessions.rename("version flag")
    ui.runtime.finish(ReplyFinished("e", AssistantMessage()), TurnFinished("done"))
    await ui.settle()
    ui.app.view.refresh_status()
    await ui.settle()


async def find(ui: Ui) -> None:
    """A word is looked for in the chat; its second match is the current one."""
    await chat(ui)
    await ui.pilot.press("ctrl+f")
    await ui.write("version")
    await ui.pilot.press("enter")
    await ui.settle()


async def running(ui: Ui) -> None:
    """A tool runs; there is a plan, a queued message and a draft."""
    await work_begun(ui)
    ui.runtime.feed(
        ToolStarted("c3", "bash", {}, "pytest -q"),
        ToolOutputDelta("c3", "....\n......\n"),
        TodosChanged(
            (
                Todo(text="Read the code", status="completed"),
                Todo(text="Fix the flag", status="completed"),
                Todo(text="Run the tests", status="in_progress"),
                Todo(text="Write it up"),
            )
        ),
    )
    await ui.settle()
    await ui.send("also update the README")
    await ui.write("and the")
    await tick(ui, 12)


async def retry(ui: Ui) -> None:
    """A request failed and is tried again."""
    await ui.send("hello")
    ui.runtime.feed(RetryScheduled(1, 3, 8.0, "The server is overloaded (529)."))
    await ui.settle()
    await tick(ui, 3)


async def tick(ui: Ui, seconds: float) -> None:
    """Let the app's clock go on."""
    clock = ui.app.controller.options.clock
    assert isinstance(clock, StillClock)
    clock.now += seconds
    ui.app.view.widgets.activity.refresh()
    await ui.settle()


async def menu(ui: Ui) -> None:
    """The slash menu over a chat."""
    await work_begun(ui)
    await ui.write("/co")


async def files(ui: Ui) -> None:
    """The file menu."""
    await ui.write("look at @")
    await ui.until(lambda: ui.app.prompt.menu.is_open)
    await ui.settle()


async def approval(ui: Ui) -> None:
    """A question has just come up; keys still go into the draft."""
    await work_begun(ui)
    await ui.write("a draft")
    command = replace(
        APPROVAL,
        body="git push --force-with-lease origin main",
        body_kind="command",
        reason="No rule allows this command.",
        session_rule="bash(git push *)",
    )
    ui.runtime.feed(ApprovalRequested(command))
    await ui.settle()


async def approval_armed(ui: Ui) -> None:
    """A change is to be approved; keys answer."""
    await work_begun(ui)
    ui.runtime.feed(ApprovalRequested(APPROVAL))
    await ui.settle()
    ui.app.view.widgets.approval.arm()
    await ui.settle()


async def model_picker(ui: Ui) -> None:
    """The models that can be used."""
    await ui.send("/model")
    await ui.until(lambda: ui.app.screen.query("#picker-list"))
    await ui.settle()


async def session_picker(ui: Ui) -> None:
    """Earlier sessions."""
    told = (
        ("release work", "Cut the 2.0 release", "The notes are in CHANGELOG.md.", 18_400),
        ("", "Why is the parser slow?", "It scans each line twice; one pass is enough.", 151_200),
        ("parser speed", "Go on with the parser", "A table instead: 2.3 times as quick.", 43_100),
        ("", "Add a dark theme", "Done: `themes/dark.toml`, and a switch in the settings.", 9_600),
    )
    before = None
    for number, (name, question, answer, tokens) in enumerate(told, start=1):
        header = Header(
            id=f"{number:08}-0000",
            cwd=str(ui.runtime.conversation.cwd),
            provider="anthropic",
            model_id="claude-sonnet",
            timestamp=f"2026-03-0{number}T10:00:00.000Z",
            parent_session=str(before) if name == "parser speed" else None,
        )
        log = ui.runtime.services.store.create(header)
        log.append(MessageEntry(message=UserMessage(content=question)))
        reply = AssistantMessage(
            content=(TextContent(text=answer),), usage=Usage(total_tokens=tokens)
        )
        log.append(MessageEntry(message=reply))
        if name:
            log.append(SessionInfoEntry(name=name))
        log.close()
        assert log.path is not None
        before = log.path
        seconds = datetime(2026, 3, number, 10, tzinfo=UTC).timestamp()
        os.utime(log.path, (seconds, seconds))
    await ui.send("/resume")
    await ui.until(lambda: ui.app.screen.query("#picker-list"))
    preview = ui.app.screen.query_one("#picker-preview-text")
    await ui.until(lambda: "themes/dark" in str(preview.render()))
    await ui.settle()


async def tree(ui: Ui) -> None:
    """A conversation with branches that were left."""
    log = ui.runtime.conversation.log

    def say(question: str, answer: str) -> str:
        log.append(MessageEntry(message=UserMessage(content=question)))
        reply = AssistantMessage(content=(TextContent(text=answer),))
        return log.append(MessageEntry(message=reply)).id

    begun = say("Why does the version flag do nothing?", "It is parsed, but never looked at.")
    first = log.entries[0].id
    say("Use argparse instead", "That is a larger change: the parser is used by three tools.")
    say("Do it all the same, one tool after the other", "The first of them is done.")
    log.branch_to(begun)
    fixed = say("Please fix it in `main`", "Fixed: `main` looks at the flag first.")
    log.append(LabelEntry(target_id=log.entries[-2].id, label="the fix"))
    say("Print the commit as well", "There is no commit in an installed copy.")
    log.branch_to(fixed)
    log.append(BranchSummaryEntry(from_id=fixed, summary=SUMMARY))
    say("Add a test for it", "Added `test_version`, which runs the program itself.")
    log.append(CompactionEntry(summary=SUMMARY, first_kept_entry_id=first, tokens_before=150_000))
    say("And one for `--help`, with the whole text", "Added `test_help`.")
    ui.app.view.redraw()
    await ui.pilot.press("escape", "escape")
    await ui.until(lambda: ui.app.screen.query("TreeList"))
    await ui.settle()
    await ui.pilot.press("up", "up")
    await ui.settle()


async def tree_everything(ui: Ui) -> None:
    """The same with replies and results, searched."""
    await tree(ui)
    await ui.pilot.press("t", "slash")
    await ui.write("the")
    await ui.settle()


async def label(ui: Ui) -> None:
    """A message of the tree is labelled."""
    await tree(ui)
    await ui.pilot.press("l")
    await ui.settle()


async def help_page(ui: Ui) -> None:
    """Keys and commands."""
    await ui.send("/help")
    await ui.settle()


async def permissions_page(ui: Ui) -> None:
    """Mode and rules."""
    await ui.send("/permissions")
    await ui.settle()


async def new_user(ui: Ui) -> None:
    """Nothing said yet, by somebody who is told the keys."""
    await ui.settle()


async def command_palette(ui: Ui) -> None:
    """Looking for something to do."""
    await ui.pilot.press("ctrl+p")
    await ui.settle()
    await ui.write("th")


async def theme_picker(ui: Ui) -> None:
    """The themes."""
    await ui.send("/theme")
    await ui.until(lambda: ui.app.screen.query("#picker-list"))
    await ui.settle()


async def context_map(ui: Ui) -> None:
    """What fills the window."""
    parts = (
        Part("system", 1_800),
        Part("tools", 2_400),
        Part("summary", 6_100),
        Part("you", 3_200),
        Part("replies", 41_000),
        Part("results", 89_500),
        Part("free", 56_000),
    )
    largest = (
        LargeMessage("read: src/generated/schema.py", 31_200),
        LargeMessage("bash: pytest -q --tb=long", 18_400),
        LargeMessage("reply: Here is the whole plan for the new parser", 9_100),
    )
    usage = ContextUsage(144_000, 200_000, is_estimate=False)
    shown = ContextMap(usage, parts, largest)
    ui.app.push_screen(ContextScreen(shown, ui.runtime.preview_compaction))
    await ui.settle()


async def preview(ui: Ui) -> None:
    """What a compaction would do."""
    ui.runtime.conversation.usage = ContextUsage(144_000, 200_000, is_estimate=False)
    ui.app.view.refresh_status()
    await ui.send("/compact --preview")
    await ui.until(lambda: ui.app.screen.query("#tier-table"))
    await ui.settle()


async def compactions(ui: Ui) -> None:
    """A turn in which the context was compacted, at first by edits, then with a summary."""
    await work_begun(ui)
    edits = CompactionFinished(
        "e5",
        "threshold",
        "",
        150_000,
        62_000,
        "",
        False,
        freed={0: 31_200, 1: 24_500, 2: 32_300},
        messages={0: 12, 1: 31, 2: 140},
    )
    summary = CompactionFinished(
        "e6", "threshold", SUMMARY, 161_000, 48_300, "anthropic/claude-haiku", False
    )
    after = ContextUsage(48_300, 200_000, is_estimate=True)
    ui.runtime.conversation.usage = after
    ui.runtime.feed(
        edits,
        ToolStarted("c4", "bash", {}, "pytest -q"),
        result("c4", "bash", "62 passed\n", {"summary": "exit 0"}),
        summary,
        ContextChanged(after),
        ReplyStarted("m"),
        TextDelta("The flag works now, and all tests pass."),
    )
    ui.runtime.finish(ReplyFinished("e", AssistantMessage()), TurnFinished("done"))
    await ui.settle()


async def compactions_unfolded(ui: Ui) -> None:
    """The same with what each of them did."""
    await compactions(ui)
    ui.app.view.widgets.transcript.toggle_details()
    await ui.settle()


async def confirm(ui: Ui) -> None:
    """A yes-or-no question."""
    await work_begun(ui)
    await ui.send("/exit")
    await ui.until(lambda: ui.app.screen.query("#confirm"))
    await ui.settle()


async def first_run(ui: Ui) -> None:
    """No key and no server."""
    await ui.until(lambda: ui.app.screen.query("#first-run"))
    await ui.settle()


async def first_run_key(ui: Ui) -> None:
    """A key is asked for."""
    await first_run(ui)
    await ui.pilot.press("1")


async def first_run_found(ui: Ui) -> None:
    """No key, but a server with many models and a model of this machine."""
    await first_run(ui)
    await ui.pilot.press("down")


async def pull(ui: Ui) -> None:
    """The built-in model is asked about."""
    await ui.until(lambda: ui.app.screen.query("#pull-bar"))
    await ui.settle()


async def pull_running(ui: Ui) -> None:
    """The built-in model comes."""
    await pull(ui)
    local = ui.app.controller.options.local
    assert isinstance(local, FakeLocal)
    await tick(ui, QUIET_S)
    await ui.pilot.press("enter")
    await ui.until(lambda: local.pulls)
    local.tell(12_000_000, local.offer.download_bytes)
    bar = ui.app.screen.query_one(PullBar)
    await ui.until(lambda: "12%" in bar.render().plain)
    await tick(ui, 9)
    local.tell(43_900_000, local.offer.download_bytes)
    await ui.until(lambda: "47%" in bar.render().plain)


async def pull_failed(ui: Ui) -> None:
    """The pull ended badly."""
    await pull_running(ui)
    local = ui.app.controller.options.local
    assert isinstance(local, FakeLocal)
    local.fail()
    await ui.until(lambda: "r or enter" in str(ui.app.screen.query_one("#page-keys").render()))


async def pull_missing(ui: Ui) -> None:
    """The built-in model cannot run yet."""
    await pull(ui)


SCENES: dict[str, Scene] = {
    scene.__name__: scene
    for scene in (
        welcome,
        chat,
        find,
        running,
        retry,
        menu,
        menu_of_prompt_files,
        files,
        approval,
        approval_armed,
        model_picker,
        session_picker,
        tree,
        tree_everything,
        label,
        help_page,
        permissions_page,
        memory_page,
        new_user,
        command_palette,
        theme_picker,
        settings_page,
        setting_refused,
        context_map,
        preview,
        compactions,
        compactions_unfolded,
        confirm,
        first_run,
        first_run_key,
        first_run_found,
        pull,
        pull_running,
        pull_failed,
        pull_missing,
    )
}

MISSING_EXTRA = """The part that runs models on this machine is not installed. Install it with
python -m pip install "agent-tui[local]\"
and start agent-tui --local again."""
KEYS = (
    KeyChoice("Anthropic", "ANTHROPIC_API_KEY", MODEL),
    KeyChoice("OpenAI", "OPENAI_API_KEY", OTHER),
    KeyChoice("Google Gemini", "GEMINI_API_KEY", OTHER),
    KeyChoice("OpenRouter", "OPENROUTER_API_KEY", OTHER),
)


class ServedModels(FakeModels):
    """A server with many models, one of them loaded, and a model of this machine."""

    async def found(self) -> tuple[FoundModel, ...]:
        names = ("qwen3-coder:30b", "gpt-oss:20b", "llama3.2:3b", "gemma3:4b", "phi4:14b")
        served = tuple(
            FoundModel(
                ModelRef(f"openai/{name}", "http://127.0.0.1:11434/v1"),
                ModelInfo(
                    f"openai/{name}", 32_768 if number == 1 else 4_096, 1_024, source="server"
                ),
                "Ollama at 127.0.0.1:11434",
                "loaded" if number == 1 else "not loaded",
            )
            for number, name in enumerate(names)
        )
        info = ModelInfo(PULLED.name, 8_192, 2_048, source="table")
        return (*served, FoundModel(PULLED, info, "this machine", "ready", 98_362_432))


def scene_app(name: str, theme: str, home: Path) -> tuple[AgentApp, FakeRuntime]:
    """The app for a scene, in a small project under `home`."""
    project = home / "proj"
    (project / "src").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    for file in ("README.md", "pyproject.toml", "src/app.py", "src/parser.py"):
        (project / file).write_text("x\n", encoding="utf-8")
    runtime = FakeRuntime(home, project)
    is_first = name.startswith("first_run")
    problem = MISSING_EXTRA if name == "pull_missing" else ""
    options = UiOptions(
        runtime.real,
        ServedModels() if name == "first_run_found" else FakeModels(nothing=is_first),
        settings=Settings(theme=theme),
        settings_editor=editor_in(home) if name.startswith("setting") else None,
        first_run=FirstRun(KEYS, lambda _name, _key: None) if is_first else None,
        local=FakeLocal(home / "data" / "models", problem),
        pull_first=name.startswith("pull"),
        onboarding_file=home / "newcomer.json" if name == "new_user" else None,
        approval_quiet_s=3_600.0,
        clock=StillClock(),
    )
    app = AgentApp(lambda: options, theme)
    app.prompt.area.cursor_blink = False
    return app, runtime
