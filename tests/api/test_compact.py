"""`agent_tui.compact`: anybody's list of messages, in either shape, without a session."""

import inspect
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agent_tui
from agent_tui.api.compacting import read_messages, to_dicts
from agent_tui.errors import CompactionWarning, TargetTooSmallError, UsageError
from agent_tui.tokens import ExactCounter
from tests.support.openai_server import Failure, OpenAiServer, Reply, bad_key, no_such_model
from tests.support.rows import each_row
from tests.support.runtime import GOOD_SUMMARY

RULE = "Never touch poetry.lock."
PNG = "iVBORw0KGgoAAAANSUhEUg=="
SYSTEM = {"role": "system", "content": "You are an agent of somebody's."}


def openai_talk(steps: int = 30) -> list[dict[str, Any]]:
    talk: list[dict[str, Any]] = [SYSTEM, {"role": "user", "content": f"Mend the parser. {RULE}"}]
    for step in range(steps):
        arguments = json.dumps({"path": f"src/part_{step}.py"})
        function = {"name": "read_file", "arguments": arguments}
        call = {"id": f"call_{step}", "type": "function", "function": function}
        said = f"Part {step} comes next."
        talk.append({"role": "assistant", "content": said, "tool_calls": [call], "name": "me"})
        text = f"def part_{step}():\n" + f"    return {step} or nothing\n" * 120
        talk.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    talk.append({"role": "user", "content": "What is left?"})
    return talk


def anthropic_talk(steps: int = 30) -> list[dict[str, Any]]:
    talk: list[dict[str, Any]] = [{"role": "user", "content": f"Mend the parser. {RULE}"}]
    for step in range(steps):
        uses = [
            {"type": "tool_use", "id": f"t{step}{one}", "name": "Read", "input": {"path": one}}
            for one in "ab"
        ]
        talk.append({"role": "assistant", "content": [{"type": "text", "text": "On."}, *uses]})
        text = f"def part_{step}():\n" + f"    return {step} or nothing\n" * 60
        results = [
            {"type": "tool_result", "tool_use_id": use["id"], "content": text} for use in uses
        ]
        talk.append({"role": "user", "content": results})
    return talk


def size(messages: Sequence[Any]) -> int:
    counter = ExactCounter()
    return counter.count_messages(m for one in read_messages(messages) for m in one.messages)


def unanswered(messages: Sequence[Any]) -> set[str]:
    """Calls without a result, and results without a call before them."""
    calls: set[str] = set()
    odd: set[str] = set()
    for one in read_messages(messages):
        for message in one.messages:
            if message.role == "assistant":
                calls |= {call.id for call in message.tool_calls}
            elif message.role == "toolResult":
                odd |= {message.tool_call_id} - calls
                calls.discard(message.tool_call_id)
    return calls | odd


@pytest.mark.parametrize("talk", [openai_talk(), anthropic_talk()], ids=["openai", "anthropic"])
def test_a_long_list_comes_down_and_keeps_what_the_person_said(talk: list[dict[str, Any]]):
    before = json.dumps(talk)
    made = agent_tui.compact(talk, 6_000)
    assert json.dumps(talk) == before
    assert size(made) <= 6_000 + size([SYSTEM]) < size(talk)
    assert RULE in json.dumps(made)
    assert not unanswered(made)
    assert sum(one in talk for one in made) >= 3, "the newest messages are the dicts given"
    assert not re.search(r"recall|\[[0-9a-f]{8}", json.dumps(made)), "there is no such tool"


def test_instructions_stay_in_front_as_they_were():
    made = agent_tui.compact(openai_talk(), 6_000)
    assert made[0] == SYSTEM
    assert [one["role"] for one in made].count("system") == 1
    assert made[-1] == {"role": "user", "content": "What is left?"}


def test_a_result_keeps_the_shape_of_its_list():
    made = agent_tui.compact(anthropic_talk(), 6_000)
    assert all(one["role"] in ("user", "assistant") for one in made)
    kinds = {
        part["type"]
        for one in made
        if isinstance(content := one["content"], list)
        for part in content
    }
    assert kinds == {"text", "tool_use", "tool_result"}


@pytest.mark.parametrize("words", [200, 20_000])
def test_a_shortened_result_stands_right_behind_its_call(words: int):
    talk = openai_talk(12)
    for message in talk:
        if message["role"] == "tool":
            message["content"] = "word " * words
    made = agent_tui.compact(talk, 2_000)
    assert "(The conversation continues.)" not in json.dumps(made)
    for before, message in itertools.pairwise(made):
        assert message["role"] != "tool" or before["role"] in ("assistant", "tool")


def test_a_small_list_is_given_back():
    talk = openai_talk(2)
    made = agent_tui.compact(talk, 100_000)
    assert made == talk
    assert made is not talk
    assert agent_tui.compact([], 10) == []


def test_the_next_compaction_goes_on_from_the_one_before():
    made = agent_tui.compact(openai_talk(), 6_000)
    for step in range(4):
        more = [one for one in openai_talk(40)[2:] if one["role"] != "user"]
        renamed = json.loads(json.dumps(more).replace('"call_', f'"round{step}_'))
        made = agent_tui.compact([*made, *renamed], 6_000)
        assert RULE in json.dumps(made)
        assert json.dumps(made).count("This summary replaces it") == 1
    assert size(made[1:]) <= 6_000


async def test_it_works_where_a_loop_runs():
    talk = openai_talk()
    assert agent_tui.compact(talk, 6_000) == await agent_tui.acompact(talk, 6_000)


async def test_a_model_writes_notes_and_says_what_it_needs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    answer = f"<notes>\n{GOOD_SUMMARY}\n</notes>\n<keep>\n#20 1-30\n</keep>"
    with OpenAiServer() as server:
        server.pages["/v1/models"] = {"data": [{"id": "some-model", "max_model_len": 128_000}]}
        server.play(Reply(text=answer))
        made = await agent_tui.acompact(
            openai_talk(), 13_000, model="some-model", base_url=server.base_url, focus="the parser"
        )
        asked = json.dumps(server.chats[0].body)
    assert "the parser" in asked
    text = json.dumps(made)
    assert json.dumps(GOOD_SUMMARY.splitlines()[1])[1:-1] in text
    assert "<excerpt" in text


async def test_a_window_that_nobody_knows_can_be_given(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    answer = f"<notes>\n{GOOD_SUMMARY}\n</notes>\n<keep>\n#20 1-30\n</keep>"
    with OpenAiServer() as server:
        server.play(Reply(text=answer))
        made = await agent_tui.acompact(
            openai_talk(), 13_000, model="some-model", base_url=server.base_url, window=128_000
        )
    assert "<excerpt" in json.dumps(made)


async def test_without_an_answer_code_does_it_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with (
        OpenAiServer() as server,
        pytest.warns(
            CompactionWarning, match="without a model: some-model: .* has no room"
        ) as seen,
    ):
        made = await agent_tui.acompact(
            openai_talk(), 13_000, model="some-model", base_url=server.base_url
        )
    assert seen[0].filename == __file__
    assert size(made[1:]) <= 13_000
    assert RULE in json.dumps(made)


@pytest.mark.parametrize("answer", [no_such_model(), bad_key()], ids=["name", "key"])
async def test_a_model_that_can_never_answer_is_an_error(answer: Failure):
    with OpenAiServer() as server:
        server.play(answer)
        with pytest.raises(UsageError, match="argument"):
            await agent_tui.acompact(
                openai_talk(), 13_000, model="gone", base_url=server.base_url, window=128_000
            )


async def test_no_other_model_of_the_provider_is_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UsageError, match="claude-sonnet-5"):
        await agent_tui.acompact(openai_talk(), 13_000, model="anthropic/claude-sonnet-5")


@pytest.mark.parametrize("name", ["qwen3", "sonnet", "antrophic/claude-sonnet-5"])
async def test_a_name_is_exact(name: str):
    with pytest.raises(UsageError, match=rf"exactly '{name}'.*Nearest: "):
        await agent_tui.acompact(openai_talk(), 13_000, model=name, window=128_000)


def rules(count: int, words: int) -> list[dict[str, Any]]:
    talk: list[dict[str, Any]] = []
    for rule in range(count):
        told = " ".join(f"word{rule}x{at}" for at in range(words))
        talk.append({"role": "user", "content": f"Rule {rule}: never {told}"})
        talk.append({"role": "assistant", "content": f"Done {rule}. " + "text " * 200})
    return [*talk, {"role": "user", "content": "Go on."}]


@each_row("target", [600, 1_500])
@each_row(("count", "words"), [(15, 20), (60, 20), (60, 60)])
def test_rules_do_not_exceed_the_target(count: int, words: int, target: int):
    made = agent_tui.compact(rules(count, words), target)
    assert size(made) <= target
    assert "Go on." in json.dumps(made)
    assert re.search(r"\[\d+ (?:later messages?|more rules?) left out", json.dumps(made))


TEXTS = st.text("abc de. never\n", min_size=1, max_size=40).map(lambda text: text * 30)
MESSAGES = st.lists(
    st.one_of(
        st.builds(lambda text: {"role": "user", "content": text}, TEXTS),
        st.builds(lambda text: {"role": "assistant", "content": text}, TEXTS),
    ),
    max_size=12,
)


@given(MESSAGES, st.integers(1, 2_000))
def test_a_target_is_kept_or_the_error_says_the_least_one(
    messages: list[dict[str, Any]], target: int
):
    try:
        made = agent_tui.compact(messages, target)
    except TargetTooSmallError as error:
        target = error.least_tokens
        made = agent_tui.compact(messages, target)
    assert size(made) <= target


def test_the_error_says_the_least_target():
    with pytest.raises(TargetTooSmallError) as caught:
        agent_tui.compact(rules(60, 60), 100)
    assert f"The least target that works is {caught.value.least_tokens}." in str(caught.value)
    assert size(agent_tui.compact(rules(60, 60), caught.value.least_tokens)) > 150


def test_the_newest_messages_are_shortened_where_they_alone_exceed_the_target():
    talk = openai_talk(4)[:-1]
    talk[-1]["content"] = "line of output\n" * 8_000
    made = agent_tui.compact(talk, 2_000)
    assert size(made) <= 2_000
    assert made[-1]["role"] == "tool"
    assert "line of output" in str(made[-1]["content"])


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize("part", [{"type": [], "text": "x"}, {"type": {}, "text": "x"}])
def test_a_part_whose_type_is_no_text_is_a_text(part: dict[str, Any]):
    talk = [{"role": "user", "content": [part]}]
    assert agent_tui.compact(talk, 1_000) == talk


@each_row(
    ("message", "why"),
    [
        ({"role": "user", "content": [{"type": "x", "d": nested(3_000)}]}, "nested too deeply"),
        ({"role": "user", "content": "x", "extra": nested(3_000)}, "nested too deeply"),
        ({"content": "x"}, "no 'role'"),
        ({"role": "robot", "content": "x"}, "the role 'robot'"),
        ({"role": "tool", "content": "x"}, "no 'tool_call_id'"),
        ({"role": "user", "content": 7}, "neither a text nor a list"),
        ({"role": "assistant", "content": "", "tool_calls": [{"id": "a"}]}, "no 'function'"),
    ],
)
def test_what_is_no_message_is_named(message: dict[str, Any], why: str):
    with pytest.raises(ValueError, match="messages\\[1\\] cannot be read: ") as caught:
        agent_tui.compact([{"role": "user", "content": "hi"}, message], 1)
    assert why in str(caught.value)


def test_the_number_of_a_message_counts_the_instructions_before_it():
    with pytest.raises(ValueError, match="messages\\[2\\] cannot be read: it is a str"):
        agent_tui.compact([SYSTEM, {"role": "user", "content": "hi"}, "hello"], 1)  # type: ignore[list-item]


def test_objects_of_a_framework_are_named_with_their_converter():
    kind = type("HumanMessage", (), {"__module__": "langchain_core.messages.human"})
    with pytest.raises(ValueError, match=r"HumanMessage.* with langchain_core.*convert_to_openai"):
        agent_tui.compact([kind()], 1)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="the type 'function_call'; convert the list"):
        agent_tui.compact([{"type": "function_call", "call_id": "a"}], 1)


def test_messages_may_come_from_a_generator():
    assert agent_tui.compact((one for one in openai_talk()), 6_000) == agent_tui.compact(
        openai_talk(), 6_000
    )


def test_odd_messages_of_other_programs_go_through():
    deep = '{"a":' * 2_000 + "1" + "}" * 2_000
    calls = [
        {"id": "d", "type": "function", "function": {"name": "f", "arguments": deep}},
        {"id": "e", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
    ]
    talk = openai_talk(20)
    talk[2:2] = [
        {"role": "user", "content": "lone \ud83d half"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "d", "content": "done"},
        {"role": "tool", "tool_call_id": "e", "content": "done"},
    ]
    made = agent_tui.compact(talk, 3_000)
    again = agent_tui.compact([*made, *openai_talk(20)[2:]], 3_000)
    assert made[-1] == talk[-1]
    assert RULE in json.dumps(again)


@pytest.mark.parametrize("target", [0, "20k", 1.5, True])
def test_a_target_is_a_number_of_tokens(target: Any):
    with pytest.raises(ValueError, match="whole number of at least 1"):
        agent_tui.compact([], target)


@pytest.mark.parametrize("answered", [0, 1])
def test_calls_at_the_end_still_wait_for_their_results(answered: int):
    talk = [one for one in openai_talk() if one["role"] != "user" or "Mend" in one["content"]]
    calls = [
        {"id": f"q{n}", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        for n in range(2)
    ]
    waiting = {"role": "assistant", "content": None, "tool_calls": calls}
    results = [{"role": "tool", "tool_call_id": f"q{n}", "content": "a.py"} for n in range(2)]
    made = agent_tui.compact([*talk, waiting, *results[:answered]], 4_000)
    assert made[len(made) - 1 - answered :] == [waiting, *results[:answered]]
    assert unanswered([*made, *results[answered:]]) == set()


def test_parts_that_nobody_knows_are_kept_as_text():
    odd = {"type": "video", "url": "https://example.com/film"}
    (read,) = read_messages([{"role": "user", "content": ["see", odd]}])
    (written,) = to_dicts(read.messages, "openai")
    assert "https://example.com/film" in json.dumps(written)


def test_calls_thinking_and_pictures_go_through_both_shapes():
    picture = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    given = [
        {"role": "user", "content": [{"type": "image", "source": picture}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sealed"},
                {"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "."}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "a.py", "is_error": True},
                {"type": "text", "text": "go on"},
            ],
        },
    ]
    messages = [message for one in read_messages(given) for message in one.messages]
    written = to_dicts(messages, "openai")
    assert [one["role"] for one in written] == ["user", "assistant", "tool", "user"]
    assert "aGk=" in json.dumps(written[0])
    assert json.loads(written[1]["tool_calls"][0]["function"]["arguments"]) == {"path": "."}  # type: ignore[index,call-overload]
    again = to_dicts(messages, "anthropic")
    assert json.dumps(again[2]).count("a.py") == 1
    assert '"is_error": true' in json.dumps(again[2])


def with_image(message: dict[str, Any]) -> dict[str, Any]:
    """`message` with an image beside its text, or in its first tool result."""
    content = message["content"]
    if isinstance(content, list) and content[0]["type"] == "tool_result":
        source = {"type": "base64", "media_type": "image/png", "data": PNG}
        inner = [
            {"type": "text", "text": content[0]["content"]},
            {"type": "image", "source": source},
        ]
        return {**message, "content": [{**content[0], "content": inner}, *content[1:]]}
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    return {**message, "content": [{"type": "text", "text": content}, image]}


def images_and_marks(messages: Sequence[Any]) -> int:
    text = json.dumps(messages)
    more = map(int, re.findall(r"\[(\d+) more images? left out\]", text))
    return text.count(PNG) + text.count("[image left out]") + sum(more)


@each_row("shape", ["openai", "anthropic"])
@each_row("target", [800, 3_000, 12_000])
def test_every_image_that_is_left_out_leaves_a_mark(shape: str, target: int):
    talk = openai_talk() if shape == "openai" else anthropic_talk()
    talk = [with_image(one) if one["role"] in ("user", "tool") else one for one in talk]
    there = images_and_marks(talk)
    made = agent_tui.compact(talk, target)
    assert json.dumps(made).count(PNG) < there == images_and_marks(made)
    last = json.dumps(talk[-9 if shape == "openai" else -10 :])
    later = json.loads(re.sub(r'"(call_|t)(\d+[ab]?)"', r'"\1new\2"', last))
    again = agent_tui.compact([*made, *later], target)
    assert images_and_marks(again) == there + images_and_marks(later)


def test_the_mark_of_an_image_stands_with_the_words_it_came_with():
    talk = openai_talk()
    talk[9:9] = [with_image({"role": "user", "content": "This is what I see."})]
    made = agent_tui.compact(talk, 4_000)
    assert "This is what I see.\n[image left out]" in str(made[1]["content"])


def test_the_public_names_and_their_signatures():
    names = {name: getattr(agent_tui, name) for name in agent_tui.__all__}
    given = inspect.signature(names.pop("command")).parameters
    assert [*given][:2] == ["argument", "aliases"]
    fields = {
        name: [*inspect.signature(names.pop(name)).parameters]
        for name in (
            "Check",
            "CheckContext",
            "CompactionStrategy",
            "ExportFormat",
            "ExportedSession",
            "Feature",
            "FeatureCheck",
            "ForeignSession",
            "ImportFormat",
            "ModelProvider",
            "SessionEnd",
            "SessionFinder",
            "SessionHead",
            "Shortening",
            "StrategyMessage",
            "StrategyRequest",
            "Subcommand",
        )
    }
    assert fields == {
        "Check": ["name", "state", "found", "advice", "section"],
        "CheckContext": ["environ", "cwd", "loaded", "catalog", "kept", "plugins"],
        "CompactionStrategy": ["name", "description", "shorten"],
        "ExportFormat": ["name", "suffix", "about", "text"],
        "ExportedSession": ["log", "secrets"],
        "FeatureCheck": ["section", "name", "function"],
        "ForeignSession": ["header", "entries", "warnings", "contents"],
        "Feature": [
            "name",
            "subcommands",
            "options",
            "options_module",
            "around",
            "completions",
            "shell_answer",
            "headless",
            "front",
            "verbs",
            "listed_models",
            "between_turns",
            "events",
            "tools",
            "tool_servers",
            "sandbox",
            "curator",
            "wires",
            "caller",
            "local_models",
            "server_kinds",
            "accounts",
            "account_switch",
            "key_pages",
            "adapters",
            "spend_limits",
            "settings",
            "pickers",
            "prompt_modes",
            "screen_watcher",
            "command_finders",
            "checks",
            "stores",
            "stores_elsewhere",
            "part",
            "brings",
        ],
        "ImportFormat": [
            *("name", "read", "is_record", "is_document", "finder", "is_place"),
            "describe_unknown",
        ],
        "ModelProvider": ["name", "models", "stream", "via"],
        "SessionEnd": ["last_text", "is_done", "context_tokens", "branch"],
        "SessionFinder": ["agent", "files", "read_head", "read_place", "read_end"],
        "SessionHead": ["is_session", "cwd", "name", "prompt", "modified", "problem"],
        "Shortening": ["position", "fate"],
        "StrategyMessage": ["position", "role", "text", "tokens", "tool", "_entry_id"],
        "StrategyRequest": ["messages", "used_tokens", "target_tokens", "focus", "ask"],
        "Subcommand": ["name", "summary", "module"],
    }
    assert {"user", "reply", "result", "warn", "finish"} < vars(names["SessionBuilder"]).keys()
    signatures = {name: str(inspect.signature(one)) for name, one in names.items() if callable(one)}
    assert signatures == {
        "Agent": (
            "(model: str, *, base_url: str | None = None, api_key_env: str | None = None, "
            "window: int | None = None, "
            "tools: collections.abc.Sequence[agent_tui.api.tools.FunctionTool[..., object]] = (), "
            "cwd: str | pathlib.Path | None = None, permissions: collections.abc.Callable["
            "[agent_tui.events.ApprovalRequest], bool | collections.abc.Awaitable[bool]] | None "
            "= None, questions: collections.abc.Callable[[collections.abc.Sequence["
            "agent_tui.tools.form.FormField]], collections.abc.Sequence[str | "
            "collections.abc.Sequence[str]] | collections.abc.Awaitable[collections.abc.Sequence["
            "str | collections.abc.Sequence[str]] | None] | None] | None = None, "
            "instructions: str = '', max_turns: int | None = None, "
            "session: agent_tui.api.session.Session | str | pathlib.Path | None = None"
            ") -> None"
        ),
        "Session": (
            "(id: str, path: pathlib.Path, folder: pathlib.Path, cwd: pathlib.Path, name: str, "
            "first_prompt: str, modified: datetime.datetime) -> None"
        ),
        "SessionBuilder": "() -> None",
        "hook": (
            "(event: Literal['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse', "
            "'PreCompact', 'PostCompact', 'Stop', 'SessionEnd'], *, matcher: str = '', "
            "timeout_s: float = 60.0) -> collections.abc.Callable[[collections.abc.Callable["
            "[dict[str, JsonValue]], object]], agent_tui.agent.hook.Hook]"
        ),
        "tool": "(function: collections.abc.Callable[..., object] | None = None) -> object",
        "compact": (
            "(messages: collections.abc.Iterable[collections.abc.Mapping[str, typing.Any]], "
            "target_tokens: int) -> list[dict[str, object]]"
        ),
        "acompact": (
            "(messages: collections.abc.Iterable[collections.abc.Mapping[str, typing.Any]], "
            "target_tokens: int, *, model: str = '', base_url: str | None = None, "
            "api_key_env: str | None = None, window: int | None = None, focus: str = '') "
            "-> list[dict[str, object]]"
        ),
    }
    with pytest.raises(AttributeError, match="no attribute 'compress'"):
        _ = agent_tui.compress  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "count"), [("library", 7), ("plugins", 10)])
def test_the_examples_of_the_page_run(name: str, count: int):
    page = Path(__file__).parents[2] / f"docs/pages/{name}.md"
    examples = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    assert len(examples) == count
    for example in examples:
        exec(compile(example, str(page), "exec"), {})


def test_the_program_starts_without_the_library():
    code = "import agent_tui, sys; print([m for m in sys.modules if m.startswith('agent_tui.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
