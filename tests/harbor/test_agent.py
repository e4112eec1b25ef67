"""The agent by itself, where Harbor is installed: what it runs, and with which keys."""

import asyncio
import importlib
import importlib.util
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.session_values import chain, entry, reply, session_bytes, user

if importlib.util.find_spec("harbor") is None:
    pytest.skip("Harbor is not installed", allow_module_level=True)

agent_module = importlib.import_module("agent_tui.harbor.agent")
context_module = importlib.import_module("harbor.models.agent.context")


class Recorder:
    """An environment that runs nothing; commands that contain `missing` fail."""

    default_user = None

    def __init__(self, missing: str = "") -> None:
        self.missing = missing
        self.commands: list[str] = []
        self.environs: list[dict[str, str]] = []
        self.uploads: list[tuple[Path, str]] = []

    async def exec(self, command: str, env: dict[str, str] | None = None, **_options: object):
        self.commands.append(command)
        self.environs.append(env or {})
        failed = bool(self.missing) and self.missing in command
        return SimpleNamespace(return_code=int(failed), stdout="apt-get", stderr="")

    async def upload_file(self, source: Path, target: str) -> None:
        self.uploads.append((source, target))


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes an agent of a model, with options."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai-12345678")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-anthropic-12345678")

    def made(model: str = "openai/gpt-5", **options: object):
        return agent_module.AgentTui(logs_dir=tmp_path, model_name=model, **options)

    return made


def run(running_agent, instruction: str) -> Recorder:
    environment = Recorder()
    context = context_module.AgentContext()
    asyncio.run(running_agent.run(instruction, environment, context))
    return environment


def test_uv_is_fetched_only_where_there_is_none(agent) -> None:
    there, missing = Recorder(), Recorder("command -v uv")
    for environment in (there, missing):
        asyncio.run(agent(version="9.9").install(environment))
        assert "agent-tui-cli==9.9" in environment.commands[-1]
    assert not any("curl" in command for command in there.commands)
    assert any("curl -LsSf" in command for command in missing.commands)


def test_a_wheel_is_copied_into_the_environment(agent, tmp_path: Path) -> None:
    wheel = tmp_path / "agent_tui_cli-1.0-py3-none-any.whl"
    wheel.touch()
    environment = Recorder()
    asyncio.run(agent(wheel=str(wheel)).install(environment))
    assert environment.uploads == [(wheel, f"/tmp/{wheel.name}")]
    assert shlex.split(environment.commands[-1])[-1] == f"/tmp/{wheel.name}"


def test_only_keys_of_the_models_asked_go_along(agent) -> None:
    (own,) = run(agent(), "go").environs
    assert own == {"OPENAI_API_KEY": "sk-openai-12345678"}
    (both,) = run(agent(fallback_model="anthropic/claude-sonnet-4-5"), "go").environs
    assert set(both) == {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}


def test_the_task_is_one_word_of_the_shell_and_never_a_command(agent) -> None:
    text = "/app's $(files)\n`here`"
    (command,) = run(agent(max_turns=7, max_cost=0.5), text).commands
    words = shlex.split(command.partition("printf %s ")[2].partition(" >")[0])
    assert words[:5] == [text, "|", "agent-tui", "-p", "-"]
    assert words[-4:] == ["--max-turns", "7", "--max-cost", "0.5"]


def test_a_run_that_was_cut_off_is_measured_by_what_it_wrote(agent, tmp_path: Path) -> None:
    context = context_module.AgentContext()
    agent().populate_context_post_run(context)
    assert context.is_empty()
    file = tmp_path / "sessions" / "-app" / "2026-03-02_a.jsonl"
    file.parent.mkdir(parents=True)
    whole = session_bytes(chain(entry(user("sk-openai-12345678")), entry(reply("one"))))
    file.write_bytes(whole + b'{"type": "mess')
    agent().populate_context_post_run(context)
    assert context.metadata["replies"] == 1
    written = (tmp_path / "trajectory.json").read_text()
    assert "[key removed]" in written
    assert agent().convert_trajectory(tmp_path).steps[0].message == "[key removed]"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("max_turns", 0, "max_turns"),
        ("wheel", "gone.whl", "is not a wheel"),
        ("reasoning_effort", "all", "reasoning_effort"),
        ("other", 1, "Unknown option 'other'"),
    ],
)
def test_wrong_options_are_refused_before_any_trial(name: str, value: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        agent_module.AgentTui.preflight({name: value})
