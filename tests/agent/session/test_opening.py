from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.session.opening import model_change, model_to_resume
from agent_tui.config import Settings
from agent_tui.events import Notice
from agent_tui.providers.base import ModelRef, ProviderError
from agent_tui.providers.scripted.provider import Reply
from agent_tui.sessions.entries import Header
from agent_tui.sessions.log import SessionLog
from tests.support.runtime import Stage, collect

NAME = "openai/qwen"
OTHER = ModelRef("scripted/test")


def resumed(stored: str, settings: Settings, present: ModelRef = OTHER) -> tuple[ModelRef, str]:
    log = SessionLog.create(None, Header(cwd="/"))
    log.append(model_change(ModelRef(NAME, stored)))
    services = SimpleNamespace(settings=settings)
    return model_to_resume(log, present, cast("RuntimeServices", services))


def test_a_login_in_an_address_comes_back_from_the_settings() -> None:
    address = "https://me:hunter2@models.example/v1"
    settings = Settings(base_url=address, api_key_env="MINE")
    for stored in (address, "https://models.example/v1"):
        assert resumed(stored, settings) == (ModelRef(NAME, address, "MINE"), "")
    present = ModelRef(NAME, address)
    assert resumed(address, Settings(), present) == (present, "")


def test_an_address_that_is_not_taken_is_named_without_its_login() -> None:
    model, remark = resumed("https://me:hunter2@models.example/v1", Settings())
    assert model == OTHER
    assert "at https://models.example/v1, which is not in your settings" in remark


async def test_a_login_in_an_address_is_in_no_session_file(tmp_path) -> None:
    stage = Stage(tmp_path)
    first = ModelRef("scripted/one", "http://me:hunter2@127.0.0.1:1/v1")
    runtime = stage.runtime([Reply(text="Hello.")], model=first)
    await collect(runtime.submit("one"))
    runtime.set_model(ModelRef("scripted/two", "http://me:hunter2@127.0.0.1:2/v1"))
    await runtime.aclose()
    assert runtime.conversation.log.path is not None
    text = runtime.conversation.log.path.read_text(encoding="utf-8")
    assert "http://127.0.0.1:1/v1" in text
    assert "http://127.0.0.1:2/v1" in text
    assert "hunter2" not in text


@pytest.mark.parametrize(
    ("script", "is_told"),
    [
        ([Reply(text="Done.")], False),
        ([Reply(text="I beg", error=ProviderError("auth", "broken"))], True),
    ],
)
async def test_a_turn_that_was_cut_off_is_told_of_when_the_session_is_opened(
    tmp_path: Path, script: list[Reply], is_told: bool
):
    stage = Stage(tmp_path)
    runtime = stage.runtime(script)
    await collect(runtime.submit("go"))
    path = str(runtime.conversation.log.path)
    await runtime.aclose()
    again = stage.runtime([])
    events = await again.sessions.open(path)
    assert is_told == any("/retry continues" in e.text for e in events if isinstance(e, Notice))
    await again.aclose()
