"""Skills and nested instructions: once before the model, word for word whatever is compacted."""

from pathlib import Path

import pytest

from agent_tui.agent.prompt.mentions import find_skill_names
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.config import CompactionSettings
from agent_tui.events import CompactionFinished, Notice, TextPinned
from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import Pin, ToolCall
from agent_tui.providers.base import ModelRequest
from agent_tui.sessions.entries import CompactionEntry
from agent_tui.sessions.replay.pins import pin_entry
from tests.support.context_checks import assert_sendable
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, of_kind, only

BODY = "# Release\n\nAlways run `make check` first.\n\n1. Change the version.\n2. Tag it."
HEAD = "---\nname: release\ndescription: Use when a release is made\n---\n"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def skill(stage: Stage, name: str = "release", text: str = HEAD + BODY) -> Path:
    return write(stage.workspace / ".agents/skills" / name / "SKILL.md", text)


def texts(request: ModelRequest) -> str:
    return "\n".join(message.text for message in request.messages)


def last_request(stage: Stage) -> ModelRequest:
    return next(r for r in reversed(stage.model.requests) if r.purpose != "summary")


def use(name: str = "release") -> Reply:
    return Reply(tool_calls=(ToolCall(id="s1", name="skill", arguments={"name": name}),))


def read(path: str, id: str = "r1") -> Reply:
    return Reply(tool_calls=(ToolCall(id=id, name="read", arguments={"path": path}),))


async def test_the_model_is_told_of_a_skill_loads_it_and_a_second_time_adds_nothing(stage: Stage):
    path = skill(stage)
    runtime = stage.runtime([use(), use(), Reply(text="Done.")])
    events = await collect(runtime.submit("Release it."))
    pinned = only(events, TextPinned)
    assert (pinned.pin.kind, pinned.pin.name, pinned.pin.path) == ("skill", "release", str(path))
    first, _, last = stage.model.requests
    assert "release: Use when a release is made" in first.system
    assert "skill" in {tool.name for tool in first.tools}
    assert BODY not in texts(first)
    assert texts(last).count(BODY) == 1
    assert f'file="{path}"' in texts(last)
    assert pinned.pin.digest[:12] in texts(last)
    assert_sendable(runtime.conversation.log.path_entries())


async def test_skills_named_in_a_message_are_loaded_each_once(stage: Stage):
    skill(stage)
    skill(stage, "review", "Look twice.")
    runtime = stage.runtime([Reply(text="Done.")])
    said = "please do /release, then $review and /release again; not $RELEASE, not /nothing"
    events = await collect(runtime.submit(said))
    assert [event.pin.name for event in of_kind(events, TextPinned)] == ["release", "review"]
    assert texts(last_request(stage)).count(BODY) == 1
    assert said in texts(last_request(stage))


async def test_a_queued_message_loads_its_skills(stage: Stage):
    skill(stage)
    runtime = stage.runtime([use("nothing"), Reply(text="Done.")])
    runtime.enqueue("now do /release")
    events = await collect(runtime.submit("Begin"))
    assert only(events, TextPinned).pin.name == "release"


async def test_a_name_in_a_long_paste_or_of_a_skill_for_the_model_alone_is_text(stage: Stage):
    skill(stage)
    skill(stage, "quiet", "---\nuser-invocable: false\n---\nHush.")
    runtime = stage.runtime([Reply(text="Done.")])
    typed = ("Explain this to me, /quiet please: ",)
    events = await collect(runtime.submit(f"{typed[0]}run /release", typed=typed))
    assert not of_kind(events, TextPinned)
    events = await collect(runtime.submit("run /release", typed=()))
    assert not of_kind(events, TextPinned)


async def test_a_command_of_the_program_names_no_skill_but_a_dollar_does(stage: Stage):
    skill(stage)
    runtime = stage.runtime([Reply(text="Well."), Reply(text="Done.")])
    runtime.services.command_names = lambda: {"release"}
    assert not of_kind(await collect(runtime.submit("do /release now")), TextPinned)
    assert only(await collect(runtime.submit("do $release")), TextPinned).pin.name == "release"


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("/release 1.2", ("/release",)),
        ("do /Release, please ($review). Then /release.", ("/release", "$review")),
        ("in /usr/bin, /release/x, /release.sh, /a-b/c, $release-x/y and $release=1", ()),
        ("not `/release`, not a/release, not US$release", ()),
        ("```sh\ncd /release\n```\nthen /review", ("/review",)),
        ("~~~\ncd $release\n~~~\n- and $review", ("$review",)),
        ("say `run /release now` please, `` $release `` or `a\n/b`", ()),
        ("'then /release happens' or \"please do /release\", “$it”, «do /it»", ()),
        ("I don't /release what isn't mine; 5\" of $it, 6\" of it", ("/release", "$it")),
        ("It says:\n    GET /deploy HTTP/1.1\n\tGET /deploy\n- a\n    - /it", ("/it",)),
        ("> quoted /deploy line\n> and $it\nso /release", ("/release",)),
        ("12| see /release", ()),
        ("a price of $5 / or $", ("$5",)),
    ],
)
def test_what_a_message_names(said: str, names: tuple[str, ...]):
    assert find_skill_names(said) == names


async def test_without_skills_nothing_is_offered(stage: Stage):
    runtime = stage.runtime([Reply(text="Hi.")])
    await collect(runtime.submit("Hello"))
    request = last_request(stage)
    assert "skill" not in {tool.name for tool in request.tools}
    assert "<skills>" not in request.system


async def test_skills_of_a_folder_that_is_not_trusted_are_neither_told_nor_loaded(tmp_path: Path):
    stage = Stage(tmp_path, is_trusted=False)
    skill(stage)
    runtime = stage.runtime([use(), Reply(text="Well.")])
    events = await collect(runtime.submit("/release it"))
    assert "release" not in stage.model.requests[0].system
    assert not of_kind(events, TextPinned)
    assert "no skill 'release'" in texts(last_request(stage))


@pytest.mark.parametrize("kind", ["in place", "child"])
async def test_a_body_stands_word_for_word_in_each_request_through_24_compactions(
    stage: Stage, kind: str
):
    skill(stage)
    count = 0

    def answer(request: ModelRequest) -> Reply:
        nonlocal count
        if request.purpose == "summary":
            return Reply(text=GOOD_SUMMARY)
        count += 1
        return Reply(text=f"Reply {count}. " + f"what I found in part {count} of it, " * 120)

    runtime = stage.runtime(answer, window=40_000)
    await collect(runtime.submit("/release the next version"))
    for number in range(24):
        for _ in range(2):
            await collect(runtime.submit(f"Go on with {number}. " + "more words on it, " * 20))
        request = last_request(stage)
        assert texts(request).count(BODY) == 1
        assert_sendable(runtime.conversation.log.path_entries())
        if kind == "child":
            events = await collect(runtime.compact())
        else:
            events = await collect(runtime.compact_here("tiered"))
        assert of_kind(events, CompactionFinished)
    await collect(runtime.submit("What was it?"))
    assert texts(last_request(stage)).count(BODY) == 1
    assert sum(isinstance(e, CompactionEntry) for e in runtime.conversation.log.entries) >= 1


@pytest.mark.parametrize("strategy", ["hybrid", "agent", "tiered"])
async def test_no_strategy_touches_a_pinned_text(stage: Stage, strategy: str):
    skill(stage)
    long = "found " * 4_000
    replies = [use(), *(Reply(text=f"{n} {long}") for n in range(4)), Reply(text="Done.")]
    runtime = stage.runtime(
        lambda request: Reply(text="no") if request.purpose == "summary" else replies.pop(0),
        compaction=CompactionSettings(auto=False),
    )
    await collect(runtime.submit("Release."))
    for _ in range(3):
        await collect(runtime.submit("More " + "of it " * 2_000))
    await collect(runtime.compact_here(strategy))  # pyright: ignore[reportArgumentType]
    await collect(runtime.submit("And?"))
    assert texts(last_request(stage)).count(BODY) == 1


async def test_what_a_compaction_says_it_leaves_is_what_the_next_request_takes(stage: Stage):
    skill(stage, text=HEAD + BODY + "\nA rule of the house. " * 800)
    runtime = stage.runtime(
        lambda request: Reply(
            text=GOOD_SUMMARY if request.purpose == "summary" else "Said. " * 3_000
        ),
        window=60_000,
    )
    await collect(runtime.submit("/release"))
    for _ in range(5):
        await collect(runtime.submit("Go on."))
    events = await collect(runtime.compact_here("tiered"))
    after = only(events, CompactionFinished).tokens_after
    conversation = runtime.conversation
    counted = conversation.overhead_tokens() + conversation.services.counter.count_messages(
        item.message for item in conversation.context().messages
    )
    assert counted == pytest.approx(after, rel=0.1)


async def test_it_goes_on_in_the_session_that_is_resumed(stage: Stage):
    skill(stage)
    runtime = stage.runtime([use(), Reply(text="Done.")])
    await collect(runtime.submit("Release."))
    path = runtime.conversation.log.path
    await runtime.aclose()
    again = stage.runtime([Reply(text="Yes.")])
    await again.sessions.open(str(path))
    await collect(again.submit("Still there?"))
    assert texts(last_request(stage)).count(BODY) == 1


async def test_a_changed_file_is_told_and_its_new_text_counts(stage: Stage):
    path = skill(stage)
    runtime = stage.runtime([use(), Reply(text="Done."), Reply(text="Yes."), Reply(text="Yes.")])
    await collect(runtime.submit("Release."))
    path.write_text(HEAD + BODY + "\n3. Push it.", "utf-8")
    changed = only(await collect(runtime.submit("Again.")), TextPinned)
    assert changed.is_changed
    assert BODY + "\n3. Push it." in texts(last_request(stage))
    assert not of_kind(await collect(runtime.submit("Once more.")), TextPinned)


async def test_a_text_without_a_file_stays_whole_and_no_file_is_looked_up(stage: Stage):
    own = "Use tabs.\n" * 2_000
    write(stage.workspace / "codex/AGENTS.md", "Obey me.")
    runtime = stage.runtime([Reply(text="Yes.")])
    pin = Pin(kind="instructions", name="your AGENTS.md of Codex", path="codex/AGENTS.md")
    runtime.conversation.log.append(pin_entry(pin, own))
    events = await collect(runtime.submit("Go on."))
    assert not of_kind(events, TextPinned) + of_kind(events, Notice)
    assert own.strip() in texts(last_request(stage))


async def test_a_file_that_goes_keeps_its_text_and_is_told_of_once(stage: Stage):
    path = skill(stage)
    runtime = stage.runtime([use(), *(Reply(text="Yes.") for _ in range(3))])
    await collect(runtime.submit("Release."))
    path.unlink()
    told = of_kind(await collect(runtime.submit("Again.")), Notice)
    assert [notice.text for notice in told] == [
        f"{path} can no longer be read; its last known text stays in effect."
    ]
    assert not of_kind(await collect(runtime.submit("Again.")), Notice)
    assert BODY in texts(last_request(stage))


async def test_a_session_file_cannot_have_other_files_read(stage: Stage):
    path = skill(stage)
    runtime = stage.runtime([use(), Reply(text="Done."), Reply(text="Yes.")])
    await collect(runtime.submit("Release."))
    secret = write(stage.folder / "elsewhere" / "notes.txt", "the hidden words")
    file = runtime.conversation.log.path
    assert file is not None
    await runtime.aclose()
    file.write_text(file.read_text("utf-8").replace(str(path), str(secret)), "utf-8")
    again = stage.runtime([Reply(text="Yes.")])
    await again.sessions.open(str(file))
    await collect(again.submit("Go on."))
    assert "the hidden words" not in texts(last_request(stage))


async def test_a_small_window_gets_the_beginning_and_where_the_rest_is(stage: Stage):
    lines = "\n".join(f"Rule {number} of the house is to be kept." for number in range(1_000))
    path = skill(stage, text=HEAD + lines)
    runtime = stage.runtime([use(), Reply(text="Done."), Reply(text="Yes.")], window=16_000)
    pinned = only(await collect(runtime.submit("Release.")), TextPinned)
    assert pinned.pin.is_cut
    said = texts(last_request(stage))
    assert "Rule 0 of" in said
    assert "Rule 999 of" not in said
    offset = int(said.partition("read this file with offset=")[2].partition(")")[0])
    first_missing = path.read_text("utf-8").split("\n")[offset - 1]
    assert first_missing not in said
    assert path.read_text("utf-8").split("\n")[offset - 2] in said


async def test_it_is_whole_again_where_the_window_has_room(stage: Stage):
    lines = "\n".join(f"Rule {number} of the house is to be kept." for number in range(1_000))
    skill(stage, text=HEAD + lines)
    runtime = stage.runtime(
        [use(), Reply(text="Done."), Reply(text="Yes.")],
        window=16_000,
        windows={"scripted/large": 200_000},
    )
    await collect(runtime.submit("Release."))
    runtime.set_model(type(runtime.conversation.model)("scripted/large"))
    pinned = only(await collect(runtime.submit("Again.")), TextPinned)
    assert not pinned.pin.is_cut
    assert lines in texts(last_request(stage))


async def test_a_skill_can_be_dropped_and_taken_up_again(stage: Stage):
    skill(stage)
    runtime = stage.runtime([use(), Reply(text="Done."), Reply(text="Yes."), Reply(text="Yes.")])
    await collect(runtime.submit("Release."))
    assert not runtime.drop_skill("review")
    assert runtime.drop_skill("release")
    await collect(runtime.submit("Go on."))
    assert BODY not in texts(last_request(stage))
    await collect(runtime.submit("/release once more"))
    assert texts(last_request(stage)).count(BODY) == 1


def nested(stage: Stage) -> Path:
    write(stage.workspace / "AGENTS.md", "Everywhere: be brief.")
    write(stage.workspace / "web/app.ts", "let x = 1")
    return write(stage.workspace / "web/AGENTS.md", "In web: use tabs.")


@pytest.mark.parametrize("kind", ["call", "mention", "folder"])
async def test_instructions_below_join_when_something_there_is_touched(stage: Stage, kind: str):
    path = nested(stage)
    call = Reply(tool_calls=(ToolCall(id="l1", name="ls", arguments={"path": "web"}),))
    replies = {"call": read("web/app.ts"), "folder": call}
    script = [replies[kind]] if kind in replies else []
    runtime = stage.runtime(
        [*script, Reply(text="Done."), read("web/app.ts", "r2"), Reply(text="Yes.")]
    )
    said = "Look at @web/app.ts" if kind == "mention" else "Look."
    pinned = only(await collect(runtime.submit(said)), TextPinned)
    assert (pinned.pin.kind, pinned.pin.name, pinned.pin.path) == ("instructions", "web", str(path))
    assert "In web: use tabs." in texts(last_request(stage))
    assert not of_kind(await collect(runtime.submit("Again.")), TextPinned)
    assert texts(last_request(stage)).count("In web: use tabs.") == 1


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_instructions_of_an_added_folder_join_where_it_is_trusted(
    stage: Stage, is_trusted: bool
):
    added = stage.folder / "library"
    path = write(added / "AGENTS.md", "In library: no prints.")
    write(added / "src/a.py", "x = 1")
    if is_trusted:
        stage.trust.trust_for_this_run(added)
    runtime = stage.runtime([read(f"{added}/src/a.py"), Reply(text="Done.")])
    runtime.services.added_folders = (added,)
    events = await collect(runtime.submit("Look."))
    told = [(event.pin.name, event.pin.path) for event in of_kind(events, TextPinned)]
    assert told == ([(str(added), str(path))] if is_trusted else [])


async def test_a_refused_call_touches_nothing(stage: Stage):
    nested(stage)
    write(stage.workspace / "web/.env", "KEY=1")
    runtime = stage.runtime([read("web/.env"), Reply(text="Well.")], is_interactive=False)
    events = await collect(runtime.submit("Look."))
    assert not of_kind(events, TextPinned)


async def test_a_message_in_the_queue_takes_its_skill_along(stage: Stage):
    skill(stage)
    write(stage.workspace / "a.txt", "a")
    runtime: AgentRuntime
    queued = False

    def answer(request: ModelRequest) -> Reply:
        nonlocal queued
        if not queued:
            queued = True
            runtime.enqueue("/release now")
            return read("a.txt")
        return Reply(text="Done.")

    runtime = stage.runtime(answer)
    only(await collect(runtime.submit("Look.")), TextPinned)
    assert texts(last_request(stage)).index(BODY) < texts(last_request(stage)).index("/release now")
