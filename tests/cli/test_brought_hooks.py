"""Hooks of other packages: loaded, refused, run at their moments, and what their faults do."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.agent.consent import ConsentFile
from agent_tui.agent.hook import Hook, hook
from agent_tui.cli.plugins import load_plugins
from agent_tui.commands.core.plugin_kinds import HOOKS
from agent_tui.events import Notice, ToolFinished, TurnFinished
from agent_tui.features.hooks.answer import HookAnswer, read_answer
from agent_tui.features.hooks.command import hook_page
from agent_tui.features.hooks.dispatcher import HookPlace, Hooks
from agent_tui.features.hooks.files import HookFiles
from agent_tui.features.hooks.function import run_function
from agent_tui.features.hooks.part import HooksPart
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import JsonObject
from agent_tui.permissions.trust import FolderTrust, TrustFile
from tests.support.packages import documented_plugin, make_package, run_with_packages
from tests.support.runtime import Stage, collect, of_kind, only

MORE = """
open("{marker}", "w").close()

def plain(facts):
    return None

def __getattr__(name):
    if name == "NEVER":
        return hook("Never")(plain)
    if name == "ODD":
        return hook("Stop", matcher="(")(plain)
    raise AttributeError(name)

@hook("UserPromptSubmit")
def adds(facts):
    return "The tide is high." if "tide" in facts["prompt"] else 1 / 0
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, one of which is the example of the page and more."""
    site = tmp_path / "site"
    code = documented_plugin("@hook(") + MORE.replace("{marker}", str(tmp_path / "imported"))
    names = ("no_pushes", "adds", "plain", "NEVER", "ODD")
    make_package(site, "hook-plugin", code, {"agent_tui.hooks": {name: name for name in names}})
    monkeypatch.syspath_prepend(str(site))
    return site


@pytest.mark.usefixtures("site")
def test_hooks_are_loaded_and_others_are_refused_with_their_reason(tmp_path: Path) -> None:
    found = load_plugins(["hook-plugin"], [tmp_path / "work"])
    assert [(one.name, one.spec.event) for one in found.of(HOOKS)] == [
        ("no_pushes", "PreToolUse"),
        ("adds", "UserPromptSubmit"),
    ]
    plain, never, odd = found.problems
    assert "plain was not made by agent_tui.hook" in plain
    assert "there is no event 'Never'; the events are SessionStart, " in never
    assert "not a valid regular expression" in odd


def test_those_where_commands_may_write_or_that_nobody_named_are_not_imported(
    site: Path, tmp_path: Path
) -> None:
    found = load_plugins(["hook-plugin"], [site.parent])
    assert found.of(HOOKS) == ()
    assert "where the model's commands can write" in found.problems[0]
    assert load_plugins([], []).of(HOOKS) == ()
    assert not (tmp_path / "imported").exists()


def hooks_of(folder: Path, *brought: Hook, secrets: tuple[str, ...] = ()) -> Hooks:
    trust = FolderTrust(TrustFile(folder / "trust.json"))
    consent = ConsentFile(folder / "hooks.json", "hooks")
    sources = HookFiles({}, folder / "config.toml", trust, consent, [one.spec for one in brought])
    return Hooks(sources, secrets=secrets)


async def answer_of(folder: Path, one: Hook, told: list[str], secret: str = "") -> HookAnswer:
    """The answer of `one` to a call of ``bash``."""
    hooks = hooks_of(folder, one, secrets=(secret,) if secret else ())
    await hooks.take_up(folder)
    place = HookPlace("1", "", folder, "default", "scripted/one")
    facts: JsonObject = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    return await hooks.run(one.spec.event, place, facts, told.append, ("bash",))


def fails(facts):
    raise KeyError("tool")


def leaves(facts):
    raise SystemExit(3)


def stops(facts):
    raise StopIteration


def counts(facts):
    return 3


def allows(facts):
    return {"hookSpecificOutput": {"permissionDecision": "allow"}}


def holds_objects(facts):
    return {"reason": object()}


async def cancels(facts):
    raise asyncio.CancelledError


async def fails_later(facts):
    raise ValueError("no")


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (fails, "KeyError: 'tool'"),
        (leaves, "SystemExit: 3"),
        (stops, "StopIteration"),
        (counts, "it returned int, not text or a dict"),
        (holds_objects, "not JSON serializable"),
        (cancels, "it cancelled itself"),
        (fails_later, "ValueError: no"),
    ],
)
async def test_a_fault_is_told_and_changes_nothing(
    tmp_path: Path, function: Callable[[JsonObject], object], why: str
) -> None:
    told: list[str] = []
    assert await answer_of(tmp_path, hook("PreToolUse")(function), told) == HookAnswer()
    (line,) = told
    assert line.startswith("PreToolUse hook failed and was ignored: ")
    assert why in line
    assert line.endswith(f"{__name__}.{function.__name__}")


async def test_it_reads_what_a_command_reads_and_can_do_no_more(tmp_path: Path) -> None:
    read: list[JsonObject] = []

    @hook("PreToolUse", matcher="Bash")
    async def looks(facts: JsonObject) -> JsonObject:
        read.append(facts)
        return {"systemMessage": "\x1b[31mseen s3cret", "decision": "block", "reason": "no s3cret"}

    told: list[str] = []
    answer = await answer_of(tmp_path, looks, told, "s3cret")
    assert read[0]["hook_event_name"] == "PreToolUse"
    assert (read[0]["tool_name"], read[0]["session_id"]) == ("Bash", "1")
    assert "s3cret" not in answer.refusal + told[0]
    assert "\x1b" not in told[0]
    assert await answer_of(tmp_path, hook("PreToolUse")(allows), []) == HookAnswer()
    assert await answer_of(tmp_path, hook("PreToolUse", matcher="read")(fails), told) == (
        HookAnswer()
    )
    assert len(told) == 1, "the matcher is not for bash"
    assert hook("PreToolUse")(allows)({}) == allows({}), "it is still a function"


async def test_one_that_hangs_is_left_alone(tmp_path: Path) -> None:
    go_on = threading.Event()

    def hangs(facts: JsonObject) -> None:
        go_on.wait()

    ran = await run_function(hangs, "{}", 0.01)
    go_on.set()
    assert read_answer("Stop", ran).problem == "timed out after 0.01 s"


@pytest.mark.usefixtures("site")
async def test_a_turn_is_refused_a_call_and_the_page_shows_the_hook(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    push = Reply(tool_calls=(call("c1", "bash", command="git push"),))
    runtime = stage.runtime([push, Reply(text="Then not.")])
    brought = load_plugins(["hook-plugin"], []).of(HOOKS)
    hooks = hooks_of(tmp_path, *brought)
    runtime.part(HooksPart).hooks = hooks
    events = await collect(runtime.submit("The tide"))
    assert "Pushing is for people." in only(events, ToolFinished).message.text
    assert only(events, TurnFinished).outcome == "done"
    assert not [n for n in of_kind(events, Notice) if "failed" in n.text]
    assert "The tide is high." in str(stage.model.requests[0].messages)
    section = hook_page(hooks, tmp_path).sections[0]
    assert section.heading == "PreToolUse (bash)"
    (kind, shown), (_, last), (_, where) = section.rows
    assert (kind, shown.rpartition(".")[2]) == ("function", "no_pushes")
    assert last.endswith("refused: Pushing is for people.")
    assert where.endswith(".py")


async def test_none_allows_what_the_rules_would_ask_about(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    write = Reply(tool_calls=(call("c1", "write", path="a.txt", content="one"),))
    runtime = stage.runtime([write, Reply(text="Then not.")], mode="ask", is_interactive=False)
    runtime.part(HooksPart).hooks = hooks_of(tmp_path, hook("PreToolUse")(allows))
    events = await collect(runtime.submit("go"))
    assert only(events, ToolFinished).message.is_error
    assert not (stage.workspace / "a.txt").exists()


def test_a_script_runs_them(site: Path, tmp_path: Path) -> None:
    def run(prompt: str, plugins: str = '["hook-plugin"]'):
        argv = ("-m", "scripted/tour", "--output-format", "stream-json", "-p", prompt)
        return run_with_packages(site, tmp_path, *argv, plugins=plugins)

    failed = run("help")
    assert failed.returncode == 0, failed.stderr
    assert "ZeroDivisionError" in failed.stdout + failed.stderr
    assert "ZeroDivisionError" not in run("help", "[]").stdout
    assert [json.loads(line) for line in failed.stdout.splitlines()]
