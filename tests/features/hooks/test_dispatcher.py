"""Which hooks an event is for, and what is told of those that are not run."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.agent.hook import HookSpec
from agent_tui.features.hooks.dispatcher import HookPlace, Hooks
from agent_tui.features.hooks.files import FoundHook, FoundHooks
from agent_tui.features.hooks.part import input_for_hooks
from agent_tui.messages import ToolCall
from agent_tui.tool_names import name_for_hooks, names_of
from agent_tui.tools.registry import default_toolbox
from tests.support.rows import each_row

SPEC = HookSpec("PreToolUse", "true", "Edit|Write", source="/p/hooks.json", is_projects=True)


class Sources:
    """Hooks that a test names; what was answered is kept."""

    def __init__(self, *hooks: FoundHook, problems: tuple[str, ...] = ()) -> None:
        self.found = FoundHooks(hooks, problems)
        self.answers: list[tuple[HookSpec, bool]] = []

    def find(self, cwd: Path) -> FoundHooks:
        return self.found

    def answer(self, spec: HookSpec, *, is_allowed: bool) -> None:
        self.answers.append((spec, is_allowed))


@each_row(
    ("matcher", "tools"),
    [
        ("Edit|Write", {"edit", "write", "apply_patch"}),
        ("bash", {"bash"}),
        ("Read", {"read"}),
        ("Glob|LS", {"find", "ls"}),
        ("mcp__github__.*", {"mcp__github__issues"}),
        ("", {"bash", "edit", "write", "apply_patch", "read", "find", "ls", "mcp__github__issues"}),
    ],
)
def test_a_matcher_is_for_a_whole_name_of_ours_or_of_others(matcher: str, tools: set[str]):
    known = ["bash", "edit", "write", "apply_patch", "read", "find", "ls", "mcp__github__issues"]
    spec = replace(SPEC, matcher=matcher)
    assert {tool for tool in known if spec.is_for(names_of(tool))} == tools


def test_where_nothing_is_named_a_matcher_holds_nothing_back():
    assert replace(SPEC, event="Stop", matcher="whatever").is_for(())


@pytest.mark.parametrize(
    "other", [{"command": "false"}, {"matcher": "Edit"}, {"event": "Stop"}, {"source": "/q"}]
)
def test_another_command_moment_or_file_is_another_hook(other):
    assert replace(SPEC, **other).fingerprint != SPEC.fingerprint


def test_what_edits_say_in_shared_terms_is_read_back(tmp_path):
    toolbox = default_toolbox()
    for arguments in (
        {"path": "a.py", "edits": [{"old": "a", "new": "b", "all": True}]},
        {"path": "a.py", "edits": [{"old": "a", "new": "b"}, {"old": "c", "new": "d"}]},
    ):
        given = input_for_hooks(ToolCall(id="1", name="edit", arguments=arguments), ())
        assert "path" not in given
        assert "old" not in given
        name, path = name_for_hooks("edit"), given["file_path"]
        back = toolbox.translate_call(name, given, tmp_path)
        toolbox.check(back.name, back.arguments)
        assert (back.name, back.remark, path) == ("edit", "", "a.py")
        again = input_for_hooks(ToolCall(id="1", name="edit", arguments=back.arguments), ())
        assert again == given


async def test_what_was_not_asked_about_is_told_once_and_not_run(tmp_path):
    hooks = Hooks(Sources(FoundHook(SPEC, None), problems=("x.json: bad",)))
    told: list[str] = []
    await hooks.take_up(tmp_path)
    await hooks.take_up(tmp_path, told.append)
    await hooks.take_up(tmp_path, told.append)
    assert [line.partition(":")[0] for line in told] == ["Hook ignored", told[1].partition(":")[0]]
    assert told[1].startswith("1 project hook did not run")
    assert hooks.not_asked == (SPEC,)
    assert hooks.hooks_for("PreToolUse", ("Edit",)) == ()


async def test_a_yes_counts_at_once_and_a_no_too(tmp_path):
    sources = Sources(FoundHook(SPEC, None))
    hooks = Hooks(sources)
    await hooks.take_up(tmp_path)
    await hooks.answer(SPEC, is_allowed=True)
    assert hooks.hooks_for("PreToolUse", ("Edit",)) == (SPEC,)
    assert hooks.hooks_for("PreToolUse", ("Bash",)) == ()
    assert hooks.hooks_for("PostToolUse", ("Edit",)) == ()
    await hooks.answer(SPEC, is_allowed=False)
    assert hooks.hooks_for("PreToolUse", ("Edit",)) == ()
    assert sources.answers == [(SPEC, True), (SPEC, False)]


async def test_what_a_hook_says_is_bounded_and_plain(tmp_path):
    loud = "seq 1 20000; printf '\\033]0;title\\007'; echo secretvalue"
    spec = HookSpec("SessionStart", loud)
    hooks = Hooks(
        Sources(FoundHook(spec)), environ={"PATH": "/usr/bin:/bin"}, secrets=("secretvalue",)
    )
    await hooks.take_up(tmp_path)
    place = HookPlace("id", "", tmp_path, "default", "m")
    said = await hooks.begin_session(
        place, is_new=True, is_compacted=False, tell=lambda _line: None
    )
    assert len(said) < 11_000
    assert said.startswith("1\n2\n")
    assert "\x1b" not in said
    assert "title" not in said
    assert "secretvalue" not in said


async def test_side_by_side_they_wait_for_each_other(tmp_path):
    commands = (
        "mkfifo a; echo here > a",
        "while ! test -p a; do sleep 0.01; done; cat a",
    )
    specs = [FoundHook(HookSpec("SessionStart", command)) for command in commands]
    hooks = Hooks(Sources(*specs), environ={"PATH": "/usr/bin:/bin"})
    await hooks.take_up(tmp_path)
    place = HookPlace("id", "", tmp_path, "default", "m")
    said = await hooks.begin_session(
        place, is_new=True, is_compacted=False, tell=lambda _line: None
    )
    assert said == "here"
