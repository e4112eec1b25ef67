"""States of the screen worth looking at, each made by the events that lead to it."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue
from textual.pilot import Pilot

from agent_tui.commands.core.demo import own_demo
from agent_tui.commands.core.front import CommandServices
from agent_tui.commands.core.known_models import KnownModels
from agent_tui.commands.unread_rules import unread_question
from agent_tui.config import PermissionSettings, Settings
from agent_tui.events import Notice
from agent_tui.features.context.keeping_screen import KeepingScreen
from agent_tui.features.local.pull_screen import PullBar, PullScreen
from agent_tui.features.review.comments import comment_entry, comment_on
from agent_tui.features.review.screen import ReviewScreen
from agent_tui.features.review.view import ReviewView
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.features.tree.diff_screen import DiffScreen
from agent_tui.messages import Cost, ToolCall, Usage, UserMessage
from agent_tui.permissions.rule_book import UnreadRules
from agent_tui.providers.accounts import own_accounts
from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef, ProviderError
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    Header,
    LabelEntry,
    MessageEntry,
    SessionInfoEntry,
)
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import TokenCounter
from agent_tui.ui.app import AgentApp
from agent_tui.ui.options import KeyChoice, UiOptions
from agent_tui.ui.questions import QUIET_S
from agent_tui.ui.screens.choice import ChoiceScreen
from agent_tui.ui.screens.form import FormScreen
from agent_tui.ui.screens.picker import RowList
from agent_tui.ui.terminal.outcome import UiOutcome
from tests.support.fake_local import PULLED, FakeLocal
from tests.support.long_work import PLAN, long_work
from tests.support.long_work import SUMMARY as SUMMARY_OF_WORK
from tests.support.models import MODEL, OTHER, ListedModels
from tests.support.runtime import Stage
from tests.support.wall_clock import START_S
from tests.ui.app_support import Ui, answer, asking, held, sized, ways_to_a_model
from tests.ui.file_scenes import memory_page, menu_of_prompt_files
from tests.ui.settings_scenes import editor_in, setting_refused, settings_page

Scene = Callable[[Ui], Awaitable[None]]

OLD_MAIN = """\
    args = parse(sys.argv)
    return run(args)
"""
NEW_MAIN = """\
    args = parse(sys.argv[1:])
    if args.version:
        return show_version()
    return run(args)
"""
PROGRAM = f'''"""What the program does, from its arguments to its end."""

import sys

from parser import parse
from work import run, show_version


def main() -> int:
{OLD_MAIN}

if __name__ == "__main__":
    sys.exit(main())
'''
PYTEST = """\
#!/bin/sh
printf '....\\n......\\n'
[ -e hold ] && cat hold
echo '62 passed'
"""
"""Stands still after its first lines while there is a pipe called hold."""
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


class StillClock:
    """A clock that stands until it is told to go on."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class SameEverywhere(TokenCounter):
    """Counts the system prompt without the folder, the machine and the day that it names."""

    def count_text(self, text: str) -> int:
        return super().count_text(re.sub(r"\nFolder: .*\nSystem: .*(\nDate: .*)?", "", text))


# What the model says


def edit(call_id: str, path: str) -> ToolCall:
    """Change how the arguments are parsed."""
    return call(call_id, "edit", path=path, old_text=OLD_MAIN, new_text=NEW_MAIN)


def work(*further: Reply) -> tuple[Reply, ...]:
    """A thought, a file read and edited, and what comes then."""
    look = Reply(
        thinking="The flag is parsed but never looked at. I should read the file first.",
        text="I'll look at how the arguments are parsed.",
        tool_calls=(call("c1", "read", path="src/app.py"),),
    )
    return (look, Reply(tool_calls=(edit("c2", "src/app.py"),)), *(further or (held(),)))


def explained() -> tuple[Reply, ...]:
    """The work to its end; much was read before."""
    usage = Usage(input=134_000, output=410, total_tokens=134_410, cost=Cost(total=0.41))
    return work(Reply(text=ANSWER, usage=usage))


def tested() -> tuple[Reply, ...]:
    """The work, and tests that run, with a plan."""
    plan = call("c3", "todo", todos=[todo.model_dump(mode="json") for todo in PLAN])
    tests = call("c4", "bash", command="pytest -q")
    return work(Reply(tool_calls=(plan, tests)))


def overloaded() -> tuple[Reply, ...]:
    """A server that has no time now."""
    error = ProviderError("overloaded", "The server is overloaded (529).", retry_after_s=8.0)
    return (Reply(error=error),)


def limited() -> tuple[Reply, ...]:
    """A model whose usage limit resets at 16:58 UTC."""
    wait_s = 4 * 3_600.0 + 58 * 60.0
    return (Reply(error=ProviderError("rate_limit", "Limit reached.", retry_after_s=wait_s)),)


HANDED_OVER = """# Several files

The parser takes **one** path now; `main` hands it on.

1. `src/app.py`: let `--file` come more than once
2. `src/parser.py`: read each path, keep the order
   ```python
   totals = [total(path) for path in paths]
   ```
3. Run `pytest -q`

| file | change |
|---|---|
| src/app.py | the option |
| src/parser.py | the loop |

Nothing else changes, and one file prints what it printed."""


def pushing() -> tuple[Reply, ...]:
    """The work, and then it wants to push."""
    command = "git push --force-with-lease origin main"
    return work(held("", call("c3", "bash", command=command)))


def editing() -> tuple[Reply, ...]:
    """The work, and then it wants to change another file."""
    look = Reply(tool_calls=(call("c3", "read", path="src/parser.py"),))
    return work(look, held("", edit("c4", "src/parser.py")))


def planned() -> tuple[Reply, ...]:
    """A plan is handed over."""
    return (held("I have looked around.", call("c1", "plan", plan=HANDED_OVER)),)


def compacted() -> tuple[Reply, ...]:
    """Notes for a compaction, a test that runs with room again, and later notes once more."""
    tests = Reply(tool_calls=(call("c1", "bash", command="pytest -q"),), usage=sized(62_000))
    done = Reply(text="The flag works now, and all tests pass.", usage=sized(62_400))
    notes = Reply(text=SUMMARY_OF_WORK)
    return (notes, tests, done, notes)


def chosen() -> tuple[Reply, ...]:
    """What the model wants kept."""
    return (Reply(text=f"<notes>\n{SUMMARY_OF_WORK}\n</notes>\n<keep>\n#2\n#3 1-4\n</keep>"),)


async def work_begun(ui: Ui) -> None:
    """A question, a thought, a file read and edited."""
    await ui.send("Why does the version flag do nothing? Please fix it and run the tests.")


async def welcome(ui: Ui) -> None:
    """Nothing said yet."""
    await ui.settle()


async def returning(ui: Ui) -> None:
    """Nothing said yet, in a folder that was worked in before."""
    earlier_sessions(ui)
    await ui.send("/new")


async def tour(ui: Ui) -> None:
    """The tour's first step."""
    await ui.settle()


async def chat(ui: Ui) -> None:
    """A finished turn; the context is filling up."""
    ui.runtime.sessions.rename("version flag")
    await work_begun(ui)


async def find(ui: Ui) -> None:
    """A word is looked for in the chat; its second match is the current one."""
    await chat(ui)
    await ui.pilot.press("ctrl+f")
    await ui.write("version")
    await ui.pilot.press("enter")
    await ui.settle()


async def running(ui: Ui) -> None:
    """A tool runs; there is a plan, a queued message and a draft."""
    os.mkfifo(ui.workspace / "hold")
    await ui.submit("Why does the version flag do nothing? Please fix it and run the tests.")
    await ui.until(lambda: "│ ......" in ui.drawn_chat)
    await ui.submit("also update the README")
    await ui.until(lambda: ui.queued)
    await ui.write("and the")
    await tick(ui, 12)


async def retry(ui: Ui) -> None:
    """A request failed and is tried again."""
    await ui.submit("hello")
    await ui.until(lambda: ui.activity.state is not None and ui.activity.state.detail)
    await tick(ui, 3)


async def limit_wait(ui: Ui) -> None:
    """A usage limit is reached, and its reset is waited for."""
    await ui.submit("hello")
    await ui.until(lambda: ui.activity.state is not None and ui.activity.state.ends_at_s)
    await tick(ui, 3)


async def notices(ui: Ui) -> None:
    """What the program tells, each kind with its mark."""
    ui.show_events(
        Notice("info", "The theme is agent-dark."),
        Notice("info", "/btw what does `parse` return?", "question"),
        Notice("info", "A *tuple*: the options, and what is left of `argv`.", "answer"),
        Notice("info", "Plan approved. Permission mode: ask", "plan"),
        Notice("info", "Job 1 (npm run build) ended: exit code 0.", "job"),
        Notice("info", "AGENTS.md changed.", "file"),
        Notice("warning", "The context is 78% full."),
        Notice("error", "The server does not answer."),
    )
    await ui.settle()


async def tick(ui: Ui, seconds: float) -> None:
    """Let the app's clock go on."""
    assert isinstance(ui.clock, StillClock)
    ui.clock.now += seconds
    ui.activity.refresh()
    await ui.drawn()


async def vim_mode(ui: Ui) -> None:
    """Words selected with the keys of vi."""
    await ui.write('fix "the parser" now')
    await ui.pilot.press("escape", "0", *'vi"')
    await ui.settle()


async def menu(ui: Ui) -> None:
    """The slash menu over a chat."""
    await work_begun(ui)
    await ui.write("/co")
    await ui.until(lambda: ui.app.prompt.menu.is_open)
    await ui.settle()


async def files(ui: Ui) -> None:
    """The file menu."""
    await ui.write("look at @")
    await ui.until(lambda: ui.app.prompt.menu.is_open)
    await ui.settle()


async def approval(ui: Ui) -> None:
    """A question has just come up; keys still go into the draft."""
    await work_begun(ui)
    await ui.write("a draft")
    await ui.asked()


async def approval_armed(ui: Ui) -> None:
    """A change is to be approved; keys answer."""
    await work_begun(ui)
    await ui.asked()
    ui.approval.arm()
    await ui.settle()


def asking_user() -> tuple[Reply, ...]:
    """Questions to the user."""
    asked: list[JsonValue] = [
        {
            "question": "Where should the version come from?",
            "answers": ["the package's metadata", "a constant in main.py"],
            "recommended": "the package's metadata",
        },
        {
            "question": "Which tests do you want for the flag?",
            "answers": ["a unit test", "a test of the whole command", "none"],
            "several": True,
        },
    ]
    ask = call("a1", "ask_user", questions=asked)
    return (Reply(text="Two decisions are yours.", tool_calls=(ask,)),)


async def questions(ui: Ui) -> None:
    """The model asks, with answers to choose from."""
    await ui.send("Why does the version flag do nothing? Please fix it.")
    await ui.until(lambda: isinstance(ui.app.screen, FormScreen))
    await ui.drawn()


async def approval_rule(ui: Ui) -> None:
    """A rule is written instead of a yes."""
    await approval_armed(ui)
    await ui.pilot.press("r")
    await ui.settle()


async def plan_panel(ui: Ui) -> None:
    """A plan is to be approved; keys answer."""
    await ui.send("/plan")
    await ui.send("Let the parser take several files")
    await ui.asked()
    ui.approval.arm()
    await ui.settle()


async def model_picker(ui: Ui) -> None:
    """The models that can be used."""
    await ui.send("/model")
    await ui.until(lambda: ui.app.screen.query("#picker-list"))
    await ui.settle()


def earlier_sessions(ui: Ui) -> None:
    """Sessions of some days, one of them compacted from another."""
    told = (
        ("release work", "Cut the 2.0 release", "The notes are in CHANGELOG.md.", 18_400),
        ("", "Why is the parser slow?", "It scans each line twice; one pass is enough.", 151_200),
        ("parser speed", "Go on with the parser", "A table instead: 2.3 times as quick.", 43_100),
        ("", "Add a dark theme", "Done: `themes/dark.toml`, and a switch in the settings.", 9_600),
    )
    before = None
    for number, (name, question, reply, tokens) in enumerate(told, start=1):
        header = Header(
            id=f"{number:08}-0000",
            cwd=str(ui.workspace),
            provider="anthropic",
            model_id="claude-sonnet",
            timestamp=f"2026-03-0{number}T10:00:00.000Z",
            parent_session=str(before) if name == "parser speed" else None,
        )
        log = SessionStore(ui.stage.sessions).create(header)
        log.append(MessageEntry(message=UserMessage(content=question)))
        log.append(MessageEntry(message=answer(reply, Usage(total_tokens=tokens))))
        if name:
            log.append(SessionInfoEntry(name=name))
        log.close()
        assert log.path is not None
        before = log.path
        seconds = datetime(2026, 3, number, 10, tzinfo=UTC).timestamp()
        os.utime(log.path, (seconds, seconds))


async def session_picker(ui: Ui) -> None:
    """Earlier sessions."""
    earlier_sessions(ui)
    await ui.send("/resume")
    await ui.until(lambda: ui.app.screen.query("#picker-list"))
    end = ui.app.screen.query_one("#picker-preview-end")
    await ui.until(
        lambda: (
            ui.app.screen.has_class("-narrow")  # there is no room for it
            or any("themes/dark" in end.render_line(y).text for y in range(end.size.height))
        )
    )
    await ui.settle()


async def changes(ui: Ui) -> None:
    """What going back would change in files."""
    await ui.send("Why does the version flag do nothing? Please fix it.")
    await ui.submit("/undo")
    await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
    await ui.pilot.press("d")
    await ui.until(lambda: isinstance(ui.app.screen, DiffScreen))
    await ui.until(lambda: ui.app.screen.query(RowList))
    await ui.until(lambda: ui.app.screen.query_one(RowList).count)
    await ui.settle()


async def review(ui: Ui) -> None:
    """A review with a comment of the user's, and one of a helper's."""
    await ui.send("Why does the version flag do nothing? Please fix it.")
    await ui.submit("/diff")
    await ui.until(lambda: isinstance(ui.app.screen, ReviewScreen))
    screen = ui.app.screen
    assert isinstance(screen, ReviewScreen)
    await ui.until(lambda: screen.query(ReviewView))
    view = screen.query_one(ReviewView)
    await ui.until(lambda: view.items)
    (change,) = screen.review.changes
    lines = [line for hunk in change.hunks for line in hunk.lines if line.sign == "+"]
    own = comment_on(change, "new", lines[0].new, lines[0].new, "Say it on stdout.", "c1")
    found = comment_on(change, "new", lines[-1].new, lines[-1].new, "No test runs this.", "c2")
    found = found.model_copy(update={"by": "helper", "state": "found"})
    ui.runtime.conversation.log.append_many([comment_entry(own), comment_entry(found)])
    await screen.reload()
    await ui.pilot.press("down", "down", "down")
    await ui.until(lambda: view.is_coloured)
    await ui.settle()


async def tree(ui: Ui) -> None:
    """A conversation with branches that were left."""
    log = ui.runtime.conversation.log

    def say(question: str, reply: str) -> str:
        log.append(MessageEntry(message=UserMessage(content=question)))
        return log.append(MessageEntry(message=answer(reply))).id

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
    ui.redraw()
    await ui.pilot.press("escape", "escape")
    await ui.until(lambda: ui.app.screen.query(RowList))
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
    await ui.send("/context")
    await ui.until(lambda: "Each request reads" in shown(ui))


def shown(ui: Ui) -> str:
    """All that stands on the page on top."""
    return "\n".join(str(widget.render()) for widget in ui.app.screen.query("#page *"))


async def preview(ui: Ui) -> None:
    """What a compaction would do."""
    await ui.send("/compact --preview")
    await ui.until(lambda: ui.app.screen.query(".page-row"))
    await ui.settle()


async def keeping(ui: Ui) -> None:
    """What the model would keep, and what the person marked."""
    await preview(ui)
    await ui.pilot.press("m")
    await ui.until(lambda: isinstance(ui.app.screen, KeepingScreen))
    await ui.until(lambda: ui.app.screen.query_one(RowList).count > 0)
    await ui.pilot.press("down", "a", "down", "d", "down")
    await ui.settle()


async def compactions(ui: Ui) -> None:
    """The context was compacted on the way, and then by hand."""
    await ui.send("Run the tests again, please.")
    await ui.send("/compact --force")


async def compactions_unfolded(ui: Ui) -> None:
    """The same with what each of them did."""
    await compactions(ui)
    await ui.pilot.press("ctrl+o")
    await ui.settle()


async def confirm(ui: Ui) -> None:
    """A yes-or-no question."""
    await work_begun(ui)
    await ui.send("/exit")
    await ui.until(lambda: ui.app.screen.query("#choice"))
    await ui.settle()


async def unread_rules(ui: Ui) -> None:
    """What to do about a deny rule that cannot be read."""
    file = Path("/home/you/.config/agent-tui/config.toml")
    wrong = f"{file}:12: permissions.deny: 'rm *' is not a rule. Write it like bash(git status) or "
    unread = (UnreadRules(str(file), f"{wrong}write(docs/**).", file),)
    ui.app.push_screen(ChoiceScreen(unread_question(unread)))
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


def pulled(ui: Ui) -> FakeLocal:
    """What the screen pulls."""
    assert isinstance(ui.app.screen, PullScreen)
    assert isinstance(ui.app.screen.local, FakeLocal)
    return ui.app.screen.local


async def pull_running(ui: Ui) -> None:
    """The built-in model comes."""
    await pull(ui)
    local = pulled(ui)
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
    local = pulled(ui)
    local.fail()
    await ui.until(lambda: "disk is full" in str(ui.app.screen.query_one("#pull-status").render()))


async def pull_missing(ui: Ui) -> None:
    """The built-in model cannot run yet."""
    await pull(ui)


SCENES: dict[str, Scene] = {
    scene.__name__: scene
    for scene in (
        welcome,
        returning,
        tour,
        chat,
        find,
        running,
        retry,
        limit_wait,
        notices,
        menu,
        vim_mode,
        menu_of_prompt_files,
        files,
        approval,
        approval_armed,
        questions,
        approval_rule,
        plan_panel,
        model_picker,
        session_picker,
        changes,
        review,
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
        keeping,
        compactions,
        compactions_unfolded,
        confirm,
        unread_rules,
        first_run,
        first_run_key,
        first_run_found,
        pull,
        pull_running,
        pull_failed,
        pull_missing,
    )
}

SCRIPTS: Mapping[str, Callable[[], tuple[Reply, ...]]] = {
    "chat": explained,
    "changes": explained,
    "review": explained,
    "find": explained,
    "running": tested,
    "retry": overloaded,
    "limit_wait": limited,
    "menu": work,
    "approval": pushing,
    "approval_armed": editing,
    "approval_rule": editing,
    "questions": asking_user,
    "plan_panel": planned,
    "keeping": chosen,
    "compactions": compacted,
    "compactions_unfolded": compacted,
    "confirm": work,
}
"""What the model says in a scene; nothing in all others."""
TOKENS: Mapping[str, int] = {
    "context_map": 144_000,
    "preview": 144_000,
    "keeping": 144_000,
    "compactions": 165_000,
    "compactions_unfolded": 165_000,
}
"""How large the long work of a scene was with its last reply."""

MISSING_EXTRA = """The part that runs models on this machine is not installed. Install it with
python -m pip install "agent-tui-cli[local]\"
and start agent-tui --local again."""
KEYS = (
    KeyChoice("Anthropic", "ANTHROPIC_API_KEY", MODEL),
    KeyChoice("OpenAI", "OPENAI_API_KEY", OTHER),
    KeyChoice("Google Gemini", "GEMINI_API_KEY", OTHER),
    KeyChoice("OpenRouter", "OPENROUTER_API_KEY", OTHER),
)


class ServedModels(ListedModels):
    """A server with many models, one of them loaded, and a model of this machine."""

    async def list_models(self) -> tuple[FoundModel, ...]:
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


RULES = PermissionSettings(
    allow=("bash(git status)", "bash(pytest *)", "edit(src/app.py)"),
    deny=("bash(git push --force *)",),
)


async def _for_ever(_delay_s: float) -> None:
    await asyncio.Event().wait()


def scene_app(
    name: str, theme: str, home: Path
) -> tuple[AgentApp, Callable[[Pilot[UiOutcome]], Ui]]:
    """The app for a scene, in a small project under `home`, and what drives it."""
    stage = Stage(home, "proj", is_trusted=False)
    project, is_first = stage.workspace, name.startswith("first_run")
    _make_project(project)
    program = home / "bin" / "pytest"
    program.parent.mkdir()
    program.write_text(PYTEST, encoding="utf-8")
    program.chmod(0o700)
    models = ServedModels() if name == "first_run_found" else ListedModels(nothing=is_first)
    replies = SCRIPTS[name]() if name in SCRIPTS else ()
    clock = StillClock()
    runtime = asking(
        stage,
        *replies,
        models=models,
        permissions=RULES,
        counter=SameEverywhere(),
        sleep=_for_ever,
        clock=clock,
        limit_wait_h=12.0,
    )
    if name == "limit_wait":
        runtime.services.wall_clock = lambda: START_S
    if name in TOKENS:
        long_work(runtime, lines=150, tokens=TOKENS[name])
    problem = MISSING_EXTRA if name == "pull_missing" else ""
    editor = editor_in(home) if name.startswith("setting") else None
    ways = ways_to_a_model(KEYS, accounts=tuple(own_accounts().values()))
    options = UiOptions(
        runtime,
        CommandServices(models, KnownModels(), settings=editor),
        settings=Settings.model_validate({"theme": theme, "vim_mode": name == "vim_mode"}),
        first_run=ways if is_first else None,
        local=FakeLocal(home / "data" / "models", problem).as_offer,
        pull_first=name.startswith("pull"),
        onboarding_file=home / "newcomer.json" if name == "new_user" else None,
        approval_quiet_s=0.0 if name == "questions" else 3_600.0,
        clock=clock,
        demo=own_demo() if name == "tour" else None,
    )
    app = AgentApp(lambda: options, theme)
    app.prompt.area.cursor_blink = False
    app.prompt.area.burst_s = 0.0
    return app, lambda pilot: Ui(app, runtime, pilot, stage, replies)


def _make_project(project: Path) -> None:
    (project / "src").mkdir()
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    for file in ("README.md", "pyproject.toml"):
        (project / file).write_text("x\n", encoding="utf-8")
    for file in ("src/app.py", "src/parser.py"):
        (project / file).write_text(PROGRAM, encoding="utf-8")
