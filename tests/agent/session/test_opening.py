from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.session.opening import model_change, model_to_resume, pulled_notes
from agent_tui.config import Settings
from agent_tui.events import Notice
from agent_tui.features.tour.scripted import Reply
from agent_tui.providers.base import ModelRef, ProviderError
from agent_tui.sessions.entries import Entry, Header, PulledFrom
from agent_tui.sessions.log import SessionLog
from tests.support.runtime import Stage, collect
from tests.support.session_values import entry, reply, user

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


def test_messages_pulled_beside_the_place_where_a_session_continues_are_told(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.jsonl"
    with SessionLog.write(path, Header(), [entry(user("mine"))], "none") as log:
        own = log.leaf_id
        pulled: list[Entry] = [
            one.model_copy(update={"id": f"e{at}", "parent_id": own, "pulled_from": "Eve\x1b[31m"})
            for at, one in enumerate((entry(user("hers")), entry(reply("answer"))))
        ]
        log.append_placed(pulled)
        (note,) = pulled_notes(log)
        assert note.startswith("2 pulled messages are on another branch, from Eve")
        assert "\x1b" not in note
        assert log.leaf_id == own
        log.append(entry(user("more")))
        assert list(pulled_notes(log)) == [], "it is no news any more"
        log.append_placed([pulled[0].model_copy(update={"id": "e9"})])
        (note,) = pulled_notes(log)
        assert note.startswith("1 pulled message is")


def test_a_session_that_was_only_pulled_says_from_whom(tmp_path: Path) -> None:
    header = Header(pulled_from=PulledFrom(by="Ada L <a@x>"))
    pulled = [entry(user("hers")).model_copy(update={"pulled_from": "Ada L"})]
    log = SessionLog.write(None, header, pulled)
    (note,) = pulled_notes(log)
    assert "Pulled from Ada L" in note
