"""Which hooks a folder has, and which of them may be run."""

import json
from pathlib import Path

import pytest

from agent_tui.agent.consent import ConsentFile
from agent_tui.config import HookSettings
from agent_tui.features.hooks.files import HookFiles
from agent_tui.permissions.trust import FolderTrust, TrustFile

PLACES = (
    ".agent-tui/hooks.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/hooks.json",
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def name_hook(folder: Path, command: str, place: str = PLACES[0], **more: object) -> Path:
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": command, **more}]}]}
    return write(folder, {"hooks": hooks}, place)


def write(folder: Path, value: object, place: str = PLACES[0]) -> Path:
    file = folder / place
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(value))
    return file


def files(tmp_path: Path, *, trusted: Path | None, **own: tuple[HookSettings, ...]) -> HookFiles:
    trust = FolderTrust(TrustFile(tmp_path / "trust.json"))
    if trusted is not None:
        trust.trust_for_this_run(trusted)
    consent = ConsentFile(tmp_path / "hooks.json", "hooks")
    return HookFiles(own, tmp_path / "config.toml", trust, consent)  # pyright: ignore


@pytest.mark.parametrize("place", PLACES)
def test_a_projects_hooks_are_found_after_trust_and_not_yet_allowed(tmp_path, project, place):
    file = name_hook(project, "check it", place, type="command", timeout=7)
    assert files(tmp_path, trusted=None).find(project).hooks == ()
    (found,) = files(tmp_path, trusted=project).find(project).hooks
    spec = found.spec
    assert (spec.event, spec.matcher, spec.command) == ("PreToolUse", "Bash", "check it")
    assert (spec.timeout_s, spec.source, found.is_allowed) == (7, str(file), None)


def test_the_question_of_trust_names_the_file(tmp_path, project):
    file = name_hook(project, "check it", ".claude/settings.json")
    question = FolderTrust(TrustFile(tmp_path / "trust.json")).question(project)
    assert question is not None
    assert question.files == (file,)


def test_a_link_to_a_file_elsewhere_is_not_followed(tmp_path, project):
    file = name_hook(project, "check it")
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")
    assert files(tmp_path, trusted=project).find(project).hooks == ()


def test_an_answer_holds_for_just_this_command(tmp_path, project):
    name_hook(project, "check it")
    sources = files(tmp_path, trusted=project)
    (found,) = sources.find(project).hooks
    sources.answer(found.spec, is_allowed=True)
    again = files(tmp_path, trusted=project)
    assert [one.is_allowed for one in again.find(project).hooks] == [True]
    name_hook(project, "check it; and more")
    assert [one.is_allowed for one in again.find(project).hooks] == [None]


def test_a_no_is_kept(tmp_path, project):
    name_hook(project, "check it")
    sources = files(tmp_path, trusted=project)
    sources.answer(sources.find(project).hooks[0].spec, is_allowed=False)
    found = files(tmp_path, trusted=project).find(project).hooks
    assert [one.is_allowed for one in found] == [False]


def test_ones_own_need_no_question(tmp_path, project):
    own = HookSettings(command="mine", matcher="Edit", timeout_s=5)
    (found,) = files(tmp_path, trusted=None, Stop=(own,)).find(project).hooks
    assert (found.spec.event, found.spec.command, found.is_allowed) == ("Stop", "mine", True)


def test_the_same_hook_of_two_files_is_run_once(tmp_path, project):
    first = name_hook(project, "check it", ".claude/settings.json")
    name_hook(project, "check it", ".codex/hooks.json")
    found = files(tmp_path, trusted=project).find(project).hooks
    assert [one.spec.source for one in found] == [str(first)]


def test_words_are_quoted_for_the_shell(tmp_path, project):
    name_hook(project, "check", args=["a b", "$x"])
    (found,) = files(tmp_path, trusted=project).find(project).hooks
    assert found.spec.command == "check 'a b' '$x'"


def test_other_settings_of_other_agents_are_passed_over(tmp_path, project):
    value = {"permissions": {"allow": ["Bash(*)"]}, "hooks": {"Notification": [{"hooks": []}]}}
    write(project, value, ".claude/settings.json")
    found = files(tmp_path, trusted=project).find(project)
    assert (found.hooks, found.problems) == ((), ())


def entry(**hook: object) -> dict[str, object]:
    return {"hooks": {"Stop": [{"hooks": [hook]}]}}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([], '"hooks" must be an object'),
        ({"hooks": []}, '"hooks" must be an object'),
        ({"hooks": {"OnStop": []}}, "unknown event 'OnStop'; the events are SessionStart"),
        ({"hooks": {"Stop": {}}}, "it is not an object"),
        ({"hooks": {"Stop": [{"matcher": 3, "hooks": []}]}}, "its matcher must be a string"),
        ({"hooks": {"Stop": [{"matcher": "(", "hooks": []}]}}, "not a valid regular expression"),
        ({"hooks": {"Stop": [{"matcher": "a" * 600, "hooks": []}]}}, "longer than 500 characters"),
        (entry(), "it has no command"),
        (entry(command=" "), "it has no command"),
        (entry(command="a\0b"), "it has no command"),
        (entry(command="a" * 5_000), "longer than 4,000 characters"),
        (entry(type="prompt", prompt="?"), "only command hooks"),
        (entry(command="a", timeout=0), "its timeout must be a number"),
        (entry(command="a", args="b"), "args must be a list"),
        (
            {"hooks": {"Stop": [{"hooks": [{"command": "a", "if": "Bash(git *)"}]}]}},
            "'if' is not",
        ),
    ],
)
def test_what_cannot_be_used_is_told_and_left_out(tmp_path, project, value, why):
    file = write(project, value)
    found = files(tmp_path, trusted=project).find(project)
    (problem,) = found.problems
    assert found.hooks == ()
    assert str(file) in problem
    assert why in problem


def test_a_broken_file_is_told(tmp_path, project):
    write(project, {}).write_text("{")
    (problem,) = files(tmp_path, trusted=project).find(project).problems
    assert "cannot be used" in problem


def test_a_matcher_of_ones_own_that_is_wrong_is_told(tmp_path, project):
    own = HookSettings(command="mine", matcher="(")
    (problem,) = files(tmp_path, trusted=None, Stop=(own,)).find(project).problems
    assert "config.toml: Stop:" in problem


def test_only_so_many_hooks_of_a_file_count(tmp_path, project):
    hooks = [{"command": f"check {number}"} for number in range(70)]
    write(project, {"hooks": {"Stop": [{"hooks": hooks}]}})
    found = files(tmp_path, trusted=project).find(project)
    assert len(found.hooks) == 64
    assert "only the first 64 hooks are used" in found.problems[0]
