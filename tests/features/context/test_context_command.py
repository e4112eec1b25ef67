import json
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from agent_tui.config import CompactionSettings
from agent_tui.errors import SessionError
from agent_tui.features.context.subcommand import run_command
from agent_tui.features.tour.scripted import Reply, ScriptedProvider
from agent_tui.messages import (
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from agent_tui.providers.wires.chat import openai_messages
from agent_tui.sessions.store import SessionStore
from tests.support.runtime import Stage, collect, summary_or
from tests.support.session_files import write_session
from tests.support.trajectories import trajectory
from tests.support.wire_rules import anthropic_problems, openai_problems

FOLDER = Path(__file__).parents[3] / "sessions.example"
EXAMPLES = sorted(FOLDER.glob("*.jsonl"))


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_TUI_SESSION_DIR", str(tmp_path / "sessions"))
    monkeypatch.setenv("AGENT_TUI_CONFIG_DIR", str(tmp_path / "config"))


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert run_command(argv) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_the_examples_print_what_is_documented(
    capsys: pytest.CaptureFixture[str], example: Path
) -> None:
    given = json.loads(printed(capsys, str(example), "--json", "--window", "1000"))
    expected = json.loads((FOLDER / "expected" / f"{example.stem}.json").read_text("utf-8"))
    assert given["messages"] == expected["messages"]
    assert given["window"] == 1_000
    assert given["tokens"] > 50
    assert set(given) == {"messages", "tokens", "window"}


@pytest.mark.parametrize("style", ["openai", "anthropic"])
def test_a_real_session_gives_messages_the_services_take(
    capsys: pytest.CaptureFixture[str], style: str
) -> None:
    session = str(trajectory("pi/before-compaction.jsonl"))
    given = json.loads(printed(capsys, session, "--json", "--format", style, "--window", "200000"))
    messages = given.pop("messages")
    if style == "openai":
        assert openai_problems(messages) == []
    else:
        assert anthropic_problems({"messages": messages}) == []
    assert 150_000 < given["tokens"] < 220_000


def test_the_window_is_that_of_the_sessions_model(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / "config.toml").write_text('[models."anthropic/claude-haiku-4-5"]\nwindow = 4321\n')
    example = str(FOLDER / "4-branch.jsonl")
    assert json.loads(printed(capsys, example, "--json"))["window"] == 4_321


def test_the_readable_form_has_roles_texts_and_the_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = printed(capsys, str(FOLDER / "4-branch.jsonl"), "--window", "10000")
    assert text.startswith("--- user\nShould the totals go to a database or to a file?\n")
    assert '"name": "write"' in text
    assert "of 10,000 tokens [ctx: ~" in text.splitlines()[-1]


def test_the_readable_form_of_blocks_is_their_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(
        capsys, str(FOLDER / "4-branch.jsonl"), "--window", "10000", "--format", "anthropic"
    )
    assert "\nYes, as long as one person writes it.\n" in text
    assert '"tool_use_id": "call_d1"' in text


SIGNATURE = "s" * 1_344


@pytest.mark.parametrize("style", ["openai", "anthropic"])
def test_of_a_signature_the_readable_form_has_the_size(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, style: str
) -> None:
    thought = ThinkingContent(thinking="So it is.", signature=SIGNATURE)
    look = ToolCall(id="c1", name="read", arguments={"path": "a.py"})
    reply = AssistantMessage(
        content=(thought, look),
        provider="anthropic",
        model="claude-haiku-4-5",
        usage=Usage(),
        stop_reason="toolUse",
        timestamp=2,
    )
    asked = UserMessage(content="Go.", timestamp=1)
    result = ToolResultMessage(
        tool_call_id="c1",
        tool_name="read",
        content=(TextContent(text="x"),),
        is_error=False,
        timestamp=3,
    )
    store, model = SessionStore(tmp_path), "claude-haiku-4-5"
    path = write_session(store, asked, reply, result, provider="anthropic", model_id=model)
    readable = printed(capsys, str(path), "--window", "10000", "--format", style)
    assert '"signature": "(1,344 characters)"' in readable
    assert "So it is." in readable
    whole = printed(capsys, str(path), "--window", "10000", "--format", style, "--json")
    assert SIGNATURE in whole


def test_a_bad_window_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run_command([str(EXAMPLES[0]), "--window", "-5"])
    assert caught.value.code == 2
    assert "not a number of tokens" in capsys.readouterr().err


def test_a_missing_file_is_named() -> None:
    with pytest.raises(SessionError, match=r"nowhere\.jsonl"):
        run_command(["nowhere.jsonl"])


def test_help_says_that_the_system_prompt_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        run_command(["--help"])
    assert "system prompt" in " ".join(capsys.readouterr().out.split())


ASK = """
import sys
from agent_tui.features.context.subcommand import run_command
run_command([sys.argv[1], "--json"])
print(*sys.modules)
"""


def test_neither_screen_nor_provider_libraries_are_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(EXAMPLES[0])], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert "tiktoken" in loaded
    assert loaded.isdisjoint({"textual", "rich", "litellm"})


@pytest.mark.thorough
@pytest.mark.parametrize("summary_role", ["user", "system"])
async def test_it_prints_what_the_next_request_of_a_live_session_sends(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    summary_role: Literal["user", "system"],
) -> None:
    monkeypatch.setenv("AGENT_TUI_COMPACTION__SUMMARY_ROLE", summary_role)
    (tmp_path / "stage").mkdir()
    stage = Stage(tmp_path / "stage")
    settings = CompactionSettings(summary_role=summary_role)
    reply = Reply(text="It is as you say. " * 60)
    runtime = stage.runtime(summary_or(reply), compaction=settings)
    for text in ("one", "two", "three"):
        await collect(runtime.submit(text))
    await collect(runtime.compact())
    await collect(runtime.run_bash("echo hi", in_context=True))
    await collect(runtime.run_bash("echo secret", in_context=False))
    await runtime.aclose()

    provider = ScriptedProvider([Reply(text="cut", cut=True), Reply(text="on it goes")])
    live = stage.runtime(provider, compaction=settings)
    await live.sessions.open(str(runtime.conversation.log.path))
    await collect(live.submit("four"))
    given = json.loads(printed(capsys, str(live.conversation.log.path), "--json"))["messages"]
    await collect(live.continue_turn())
    request = provider.requests[-1]
    system = request.system.removeprefix(live.conversation.prompt.system).strip()
    assert bool(system) is (summary_role == "system")
    assert given == openai_messages(system, request.messages, model=live.conversation.model.name)
