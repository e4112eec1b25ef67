"""What stays where it is until the user answers is never approved by anything but an answer."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.features.sandbox.held import HeldStore
from agent_tui.features.sandbox.project_walk import ProjectWalk, WalkFindings
from agent_tui.tools.held_files import HeldFile
from tests.support.watched_folder import WatchedFolder

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="uses git")


@pytest.fixture
def place(tmp_path: Path) -> WatchedFolder:
    """A repository with the user's files, in a wall that cannot hold files in it."""
    folders = [tmp_path / name for name in ("proj", "own", "home")]
    for folder in folders:
        folder.mkdir()
    place = WatchedFolder(*folders, has_mounts=False)
    place.outside("git init -q; echo mine > AGENTS.md; mkdir .vscode; echo 1 > .vscode/a.json")
    return place


async def _begin_job(place: WatchedFolder) -> None:
    await place.watch.note()
    await place.watch.hold(is_over=False)


async def _ask(place: WatchedFolder, job: str) -> tuple[HeldFile, ...]:
    """The questions about what a job writes."""
    await _begin_job(place)
    place.inside(job)
    held = (await place.run("true")).held
    assert held
    assert all(each.is_in_place for each in held)
    return held


def _each_look(patch: pytest.MonkeyPatch, steps: Iterator[Callable[[], object]]) -> None:
    """Do one of the `steps` of a job before each look."""
    look = ProjectWalk.look

    def look_after_step(walk: ProjectWalk) -> WalkFindings:
        next(steps, lambda: None)()
        return look(walk)

    patch.setattr(ProjectWalk, "look", look_after_step)


@pytest.mark.parametrize("name", ["CLAUDE.md", ".zed/tasks.json"])
async def test_a_question_whose_file_vanishes_becomes_no_approval(place: WatchedFolder, name: str):
    makes = f"mkdir -p $(dirname {name}); echo evil > {name}"
    await _ask(place, makes)
    top = Path(name).parts[0]
    settled = await place.run(f"rm -r {top}; echo x > .mcp.json")
    assert set(place.held(settled)) == {".mcp.json"}
    held = place.held(await place.run(makes))
    assert {Path(each).parts[0] for each in held} == {top}
    await place.watch.end_job()
    assert place.text(name) == ""
    assert {Path(each).parts[0] for each in place.held(await place.run(makes))} == {top}


async def test_what_a_job_changed_and_removes_during_the_question_is_back_after_a_no(
    place: WatchedFolder,
):
    place.outside("echo mine > .git/hooks/pre-push")
    held = await _ask(place, "echo evil | tee AGENTS.md CLAUDE.md > .git/hooks/pre-push")
    place.inside("rm AGENTS.md CLAUDE.md .git/hooks/pre-push")
    await place.watch.end_job()  # a look between the question and the answer
    for each in held:
        await place.watch.decide(each, False)
    assert place.text("AGENTS.md") == place.text(".git/hooks/pre-push") == "mine\n"
    place.inside("echo evil | tee AGENTS.md CLAUDE.md > .git/hooks/pre-push")
    found = {each.path.name for each in await place.watch.find_held()}
    assert found <= {"AGENTS.md", "CLAUDE.md", "pre-push"}
    settled = await place.run("echo evil2 | tee AGENTS.md CLAUDE.md")
    assert set(place.held(settled)) >= {"AGENTS.md", "CLAUDE.md"}


async def test_what_a_job_writes_again_after_a_no_is_a_question_again(place: WatchedFolder):
    (held,) = await _ask(place, "echo evil > CLAUDE.md")
    place.inside("rm CLAUDE.md")
    await place.watch.decide(held, False)
    place.inside("echo evil > CLAUDE.md")
    (again,) = await place.watch.find_held()
    assert (again.path.name, again.is_in_place) == ("CLAUDE.md", True)
    assert "+evil" in again.diff
    await place.watch.decide(again, False)
    assert not (place.root / "CLAUDE.md").exists()


async def test_what_a_tool_wrote_is_approved_and_not_what_a_job_wrote_over_it(place: WatchedFolder):
    await _begin_job(place)
    path = place.root / "AGENTS.md"
    path.write_text("by the tool\nevil\n")  # the job was faster than the note of the tool
    await place.watch.accept({path: b"by the tool\n"})
    (held,) = (await place.run("true")).held
    assert "+evil" in held.diff
    assert "by the tool" not in held.diff.replace(" by the tool", "")
    await place.watch.decide(held, False)
    assert path.read_text() == "by the tool\n"
    assert (await place.run("true")).held == ()


@pytest.mark.parametrize("is_in_place", [True, False])
async def test_a_yes_approves_only_of_what_was_shown(
    place: WatchedFolder, monkeypatch: pytest.MonkeyPatch, is_in_place: bool
):
    path = place.root / "CLAUDE.md"
    if is_in_place:
        (held,) = await _ask(place, "echo good > CLAUDE.md")
    else:
        await _begin_job(place)
        (held,) = (await place.run("echo good > CLAUDE.md")).held
        put = HeldStore.put_in_place

        def put_and_lose(store: HeldStore, held: HeldFile) -> None:
            put(store, held)
            path.write_text("evil\n")

        monkeypatch.setattr(HeldStore, "put_in_place", put_and_lose)
    if is_in_place:
        path.write_text("evil\n")
        with pytest.raises(ToolError, match="has changed since"):
            await place.watch.decide(held, True)
    else:
        await place.watch.decide(held, True)
    (again,) = await place.watch.find_held()
    assert "+evil" in again.diff
    await place.watch.decide(again, False)
    assert place.text("CLAUDE.md") == ("" if is_in_place else "good\n")


async def test_a_file_that_comes_and_goes_between_two_looks_stays_in_question(
    place: WatchedFolder, monkeypatch: pytest.MonkeyPatch
):
    path = place.root / "CLAUDE.md"
    await _ask(place, "echo evil > CLAUDE.md")
    await place.watch.note()
    place.inside("echo x > .mcp.json")
    with monkeypatch.context() as patch:
        steps = [path.unlink, lambda: path.write_text("evil\n")]
        _each_look(patch, iter(steps))
        first = place.held(await place.watch.hold())
    second = place.held(await place.run("true"))
    assert "CLAUDE.md" in first | second
    for held in await place.watch.find_held():
        await place.watch.decide(held, False)
    assert not path.exists()


_HOOKS = "mkdir hk; echo mine > hk/pre-push; git config core.hooksPath hk"
_EVIL = "git config --unset core.hooksPath; echo evil | tee hk/pre-commit > hk/pre-push"


async def test_what_a_refusal_leads_to_is_found_at_once(place: WatchedFolder):
    place.outside(_HOOKS)
    held = await _ask(place, _EVIL)
    assert {each.path.name for each in held} == {"config"}
    await place.watch.decide(held[0], False)
    found = await place.watch.find_held()
    assert {each.path.name for each in found} == {"pre-commit", "pre-push"}
    for each in found:
        await place.watch.decide(each, False)
    assert (place.text("hk/pre-commit"), place.text("hk/pre-push")) == ("", "mine\n")
    assert await place.watch.find_held() == ()


async def test_what_a_refusal_leads_to_is_not_adopted_when_nobody_looks_again(place: WatchedFolder):
    place.outside(_HOOKS)
    (held,) = await _ask(place, _EVIL)
    await place.watch.end_job()
    await place.watch.decide(held, False)
    assert {each.path.name for each in (await place.run("true")).held} == {"pre-commit", "pre-push"}


async def test_at_the_end_what_a_job_left_is_found_and_the_next_command_asks(
    place: WatchedFolder,
):
    await _begin_job(place)
    place.inside("echo evil > AGENTS.md")
    (left,) = await place.watch.find_held()
    assert left.is_in_place
    await place.watch.close()
    assert place.text("AGENTS.md") == "evil\n"
    place.watch = place.watch_again()
    (held,) = (await place.run("true")).held
    await place.watch.decide(held, False)
    assert place.text("AGENTS.md") == "mine\n"


async def test_closing_a_watch_that_ran_nothing_keeps_the_questions(place: WatchedFolder):
    await _ask(place, "echo evil > AGENTS.md")
    await place.watch.close()
    other = place.watch_again()
    assert await other.find_held() == ()
    await other.close()
    place.watch = place.watch_again()
    assert set(place.held(await place.run("true"))) == {"AGENTS.md"}


@pytest.mark.parametrize("is_new", [False, True])
async def test_what_the_user_changes_beside_a_busy_job_stays(
    place: WatchedFolder, monkeypatch: pytest.MonkeyPatch, is_new: bool
):
    await _begin_job(place)

    def write(number: int) -> None:
        path = place.root / (f"d{number}/AGENTS.md" if is_new else "AGENTS.md")
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n")

    with monkeypatch.context() as patch:
        _each_look(patch, (lambda number=number: write(number) for number in range(20)))
        await place.run("echo x > .mcp.json")
    place.outside("echo mine >> .vscode/a.json; echo mine > CLAUDE.md")
    held = {each.path.name: each for each in (await place.run("true")).held}
    assert held["a.json"].is_in_place
    assert held["CLAUDE.md"].is_in_place
    assert (place.text(".vscode/a.json"), place.text("CLAUDE.md")) == ("1\nmine\n", "mine\n")


async def test_what_the_user_changes_during_a_question_is_theirs(place: WatchedFolder):
    await place.run("true")
    (held,) = (await place.run("echo evil > CLAUDE.md")).held
    place.outside("echo more >> AGENTS.md")
    await place.watch.decide(held, False)
    assert await place.watch.find_held() == ()
    settled = await place.run("echo mine > AGENTS.md")  # as it was before
    assert set(place.held(settled)) == {"AGENTS.md"}
    assert place.text("AGENTS.md") == "mine\nmore\n"


async def test_settings_in_question_are_not_approved_with_a_harmless_change(place: WatchedFolder):
    await _ask(place, "git config core.fsmonitor ./evil")
    (held,) = (await place.run("git config branch.x.merge refs/heads/x")).held
    assert held.is_in_place
    assert "+\tfsmonitor = ./evil" in held.diff
    aside, held = (await place.run("git config alias.x '!true'")).held
    assert (aside.is_in_place, held.is_in_place) == (False, True)
    await place.watch.decide(held, False)
    assert "fsmonitor" not in place.text(".git/config")


async def test_a_file_in_question_that_a_command_changes_comes_back_as_it_was(place: WatchedFolder):
    await _ask(place, "echo more >> AGENTS.md")
    aside, held = (await place.run("rm AGENTS.md; echo evil > AGENTS.md")).held
    assert (aside.is_in_place, held.is_in_place) == (False, True)
    assert place.text("AGENTS.md") == "mine\nmore\n"


async def test_what_is_in_question_is_no_version_of_the_users(place: WatchedFolder):
    await _ask(place, "echo evil > AGENTS.md")
    await place.watch.end_job()
    await place.run("true")  # nothing runs, and nobody has answered
    place.outside("echo mine > AGENTS.md")
    assert (await place.run("true")).held == ()
    assert set(place.held(await place.run("echo evil > AGENTS.md"))) == {"AGENTS.md"}


@pytest.mark.parametrize("is_job", [True, False])
async def test_a_question_about_a_link_shows_what_it_leads_to(place: WatchedFolder, is_job: bool):
    script = "mkdir docs; echo evil > docs/x.md; ln -s docs/x.md CLAUDE.md"
    if is_job:
        (held,) = await _ask(place, script)
    else:
        (held,) = (await place.run(script)).held
    assert "CLAUDE.md -> docs/x.md\n" in held.diff
    assert "+evil" in held.diff
    await place.watch.decide(held, True)
    assert place.text("CLAUDE.md") == "evil\n"
    assert await place.watch.find_held() == ()
    settled = await place.run("echo more >> docs/x.md")
    assert set(place.held(settled)) == {"docs/x.md"}
    assert place.text("CLAUDE.md") == "evil\n"


@pytest.mark.parametrize("is_job", [True, False])
async def test_a_yes_to_a_link_holds_for_what_it_led_to(place: WatchedFolder, is_job: bool):
    script = "echo good > x.md; ln -s x.md CLAUDE.md"
    if is_job:
        (held,) = await _ask(place, script)
    else:
        await _begin_job(place)
        (held,) = (await place.run(script)).held
    place.inside("echo evil > x.md")
    with pytest.raises(ToolError, match="has changed since"):
        await place.watch.decide(held, True)
    assert is_job == (place.root / "CLAUDE.md").is_symlink()


async def test_a_question_says_what_becomes_executable(place: WatchedFolder):
    place.outside("echo > .git/hooks/pre-push; chmod -x .git/hooks/pre-push")
    (held,) = (await place.run("chmod +x .git/hooks/pre-push")).held
    assert held.diff == f"{held.path}: now executable\n"


async def test_settings_that_a_tool_wrote_before_a_command_made_the_repository_are_held(
    place: WatchedFolder,
):
    """As long as no repository was there, nobody was asked about them."""
    place.outside("mkdir doc")
    settings = b"[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch mark\n"
    assert (await place.run("true")).held == ()
    (place.root / "doc/config").write_bytes(settings)
    await place.watch.accept({place.root / "doc/config": settings})
    made = "mkdir doc/objects doc/refs; echo ref: refs/heads/main > doc/HEAD"
    assert "doc/config" in place.held(await place.run(made))
    assert "fsmonitor" not in place.text("doc/config")
