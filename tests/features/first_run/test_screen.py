import asyncio
import tomllib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, OptionList, Static

from agent_tui.errors import ConfigError
from agent_tui.features.first_run.screen import FirstRunScreen
from agent_tui.features.local.pull_screen import PullScreen
from agent_tui.providers.accounts import Account, DeviceCode, SignInError, own_accounts
from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef
from agent_tui.ui.options import FirstRun, KeyChoice
from agent_tui.ui.questions import QUIET_S
from agent_tui.ui.screens.listing import ModelPicker
from agent_tui.ui.screens.picker import RowList
from agent_tui.ui.transcript.blocks import WelcomeBlock
from tests.support.fake_local import PULLED, FakeLocal
from tests.support.models import LOCAL, MODEL, OTHER, ListedModels
from tests.ui.app_support import Ui, running_app, ways_to_a_model
from tests.ui.scenes import StillClock
from tests.ui.settings_scenes import editor_in

NOTHING = ListedModels(nothing=True)


class SlowModels(ListedModels):
    """Models that are found when the test says so."""

    def __init__(self, *answers: tuple[FoundModel, ...]) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()
        self._answers = [*answers]

    async def list_models(self) -> tuple[FoundModel, ...]:
        await self.may_answer.wait()
        return self._answers.pop(0)


def keeping(kept: dict[str, str]) -> FirstRun:
    keys = (
        KeyChoice("Anthropic", "ANTHROPIC_API_KEY", MODEL),
        KeyChoice("OpenAI", "OPENAI_API_KEY", OTHER),
    )
    return ways_to_a_model(keys, keep_key=kept.__setitem__)


def served(count: int, name: str = "model") -> tuple[FoundModel, ...]:
    refs = [ModelRef(f"openai/{name}-{n}", "http://127.0.0.1:1234/v1") for n in range(count)]
    return tuple(
        FoundModel(ref, ModelInfo(ref.name, 8_192, 2_048), "LM Studio at 127.0.0.1:1234")
        for ref in refs
    )


def starting_app(root: Path, **changes: Any) -> AbstractAsyncContextManager[Ui]:
    """The app, in which Enter need not wait."""
    return running_app(root, **{"approval_quiet_s": 0.0, **changes})


async def chooser(ui: Ui) -> FirstRunScreen:
    await ui.until(lambda: isinstance(ui.app.screen, FirstRunScreen))
    await ui.settle()
    screen = ui.app.screen
    assert isinstance(screen, FirstRunScreen)
    return screen


def rows(screen: FirstRunScreen) -> list[str]:
    return [str(option.prompt) for option in screen.query_one(OptionList).options]


def said(screen: FirstRunScreen, where: str = "#first-run-text") -> str:
    return str(screen.query_one(where, Static).render())


async def test_a_key_can_be_pasted(tmp_path: Path):
    kept: dict[str, str] = {}
    async with starting_app(tmp_path, first_run=keeping(kept), models=NOTHING) as ui:
        screen = await chooser(ui)
        await ui.pilot.press("down", "enter")
        assert "OPENAI_API_KEY" in said(screen, "#first-run-note")
        assert screen.query_one(Input).password
        await ui.write("sk-1")
        await ui.pilot.press("enter")
        await ui.settle()
        assert kept == {"OPENAI_API_KEY": "sk-1"}
        assert ui.model == OTHER


async def test_an_enter_meant_for_the_prompt_chooses_nothing(tmp_path: Path):
    clock = StillClock()
    options = {"first_run": keeping({}), "clock": clock, "approval_quiet_s": QUIET_S}
    async with starting_app(tmp_path, **options) as ui:
        screen = await chooser(ui)
        await ui.pilot.press("enter")
        clock.now += QUIET_S
        await ui.pilot.press("x", "enter")
        await ui.settle()
        assert ui.app.screen is screen
        clock.now += QUIET_S
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.model == OTHER)


async def test_an_empty_key_is_not_taken(tmp_path: Path):
    kept: dict[str, str] = {}
    async with starting_app(tmp_path, first_run=keeping(kept), models=NOTHING) as ui:
        screen = await chooser(ui)
        await ui.pilot.press("enter", "enter", "space", "enter")
        await ui.settle()
        assert kept == {}
        assert ui.app.screen is screen


@pytest.mark.thorough
async def test_a_found_server_can_be_used(tmp_path: Path):
    async with starting_app(tmp_path, first_run=keeping({})) as ui:
        await chooser(ui)
        await ui.pilot.press("down", "down", "enter")
        await ui.settle()
        assert ui.model == LOCAL


async def test_the_welcome_names_the_chosen_model_and_keeps_what_was_said(tmp_path: Path):
    async with starting_app(tmp_path, first_run=keeping({}), notices=("Mind the gap.",)) as ui:
        await chooser(ui)
        await ui.pilot.press("3")
        await ui.settle()
        block = ui.blocks[0]
        assert isinstance(block, WelcomeBlock)
        assert ("model", LOCAL.name) in block.facts
        assert "Mind the gap." in ui.notices


async def test_a_digit_chooses_what_stands_beside_it(tmp_path: Path):
    async with starting_app(tmp_path, first_run=keeping({})) as ui:
        screen = await chooser(ui)
        assert rows(screen)[2].startswith("3  Use small-coder")
        await ui.pilot.press("9")
        assert ui.app.screen is screen
        await ui.pilot.press("3")
        await ui.settle()
        assert ui.model == LOCAL


async def test_digits_wait_until_they_no_longer_change(tmp_path: Path):
    models = SlowModels(served(1))
    async with starting_app(tmp_path, first_run=keeping({}), models=models) as ui:
        screen = await chooser(ui)
        assert "Looking for model servers" in said(screen)
        assert rows(screen)[0].startswith("   Paste a key")
        await ui.pilot.press("1")
        await ui.settle()
        assert ui.app.screen is screen
        assert not screen.query_one(Input).display
        models.may_answer.set()
        await ui.until(lambda: rows(screen)[0].startswith("1  Use model-0"))
        assert "are ready to use" in said(screen)


async def test_a_digit_in_a_key_is_only_text(tmp_path: Path):
    async with starting_app(tmp_path, first_run=keeping({}), models=NOTHING) as ui:
        screen = await chooser(ui)
        await ui.pilot.press("1")
        await ui.write("3r1")
        assert screen.query_one(Input).value == "3r1"


async def test_servers_found_late_do_not_move_the_choice(tmp_path: Path):
    models = SlowModels(served(2))
    async with starting_app(tmp_path, first_run=keeping({}), models=models) as ui:
        screen = await chooser(ui)
        await ui.pilot.press("down")
        models.may_answer.set()
        await ui.until(lambda: len(rows(screen)) == 7)
        await ui.pilot.press("enter")
        await ui.settle()
        assert "OPENAI_API_KEY" in said(screen, "#first-run-note")


async def test_servers_found_late_leave_a_half_pasted_key_alone(tmp_path: Path):
    models = SlowModels(served(2))
    async with starting_app(tmp_path, first_run=keeping({}), models=models) as ui:
        screen = await chooser(ui)
        await ui.pilot.press("enter")
        await ui.write("sk")
        models.may_answer.set()
        await ui.settle()
        assert screen.query_one(Input).value == "sk"
        assert said(screen) == "Key for Anthropic:"


async def test_a_choice_that_is_gone_after_looking_again_gives_way_to_the_first(tmp_path: Path):
    models = SlowModels(served(2), ())
    models.may_answer.set()
    async with starting_app(tmp_path, first_run=keeping({}), models=models) as ui:
        screen = await chooser(ui)
        models.may_answer.clear()
        await ui.pilot.press("down", "r")
        await ui.settle()
        assert not any(row.startswith("1") for row in rows(screen))
        assert screen.query_one(OptionList).highlighted == 1
        models.may_answer.set()
        await ui.until(lambda: len(rows(screen)) == 5)
        assert screen.query_one(OptionList).highlighted == 0
        assert "no model server is running" in said(screen)


async def test_of_many_models_the_rest_is_in_the_picker(tmp_path: Path):
    models = SlowModels(served(8), served(8), served(8))
    models.may_answer.set()
    async with starting_app(tmp_path, first_run=keeping({}), models=models) as ui:
        screen = await chooser(ui)
        assert rows(screen)[3].startswith("4  5 more")
        await ui.pilot.press("4")
        await ui.until(lambda: isinstance(ui.app.screen, ModelPicker))
        await ui.settle()
        await ui.pilot.press("escape")
        await ui.settle()
        assert ui.app.screen is screen
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ModelPicker))
        await ui.settle()
        await ui.pilot.press("down", "down", "down", "down", "down", "enter")
        await ui.settle()
        assert ui.model.model_id == "model-5"


async def test_another_provider_is_asked_for_its_model_and_its_key(tmp_path: Path):
    kept: dict[str, str] = {}
    async with starting_app(tmp_path, first_run=keeping(kept), models=NOTHING) as ui:
        screen = await chooser(ui)
        await ui.pilot.press("3")
        field = screen.query_one(Input)
        assert not field.password
        field.value = "no such"
        await ui.pilot.press("enter")
        assert "Did you mean openai/gpt-large?" in said(screen, "#first-run-note")
        field.value = "gpt-large"
        await ui.pilot.press("enter")
        assert said(screen) == "Key for openai/gpt-large:"
        assert field.password
        assert field.value == ""
        await ui.write("sk-2")
        await ui.pilot.press("enter")
        await ui.settle()
        assert kept == {"OPENAI_API_KEY": "sk-2"}
        assert ui.model == OTHER


@pytest.mark.thorough
async def test_a_provider_whose_key_is_not_known_is_used_as_it_is(tmp_path: Path):
    async with starting_app(tmp_path, first_run=keeping({}), models=NOTHING) as ui:
        screen = await chooser(ui)
        await ui.pilot.press("3")
        screen.query_one(Input).value = "small-coder"
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.model == LOCAL


async def at_server(url: str) -> tuple[FoundModel, ...]:
    if url.endswith("none"):
        raise ConfigError(f"The server at {url} lists no models.", "Check the address.")
    return served(int(url[-1]))


async def test_a_server_is_used_by_its_url(tmp_path: Path):
    ways = ways_to_a_model(find_at=at_server)
    async with starting_app(tmp_path, first_run=ways, models=NOTHING) as ui:
        screen = await chooser(ui)
        await ui.pilot.press("2")
        assert said(screen) == "The server's URL:"
        await ui.write("none")
        await ui.pilot.press("enter")
        await ui.settle()
        assert "none lists no models" in said(screen, "#first-run-note")
        screen.query_one(Input).value = "host:1"
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.model == served(1)[0].ref


async def test_a_server_is_kept_for_the_next_start(tmp_path: Path):
    ways, file = ways_to_a_model(find_at=at_server), tmp_path / "config.toml"
    async with starting_app(
        tmp_path, first_run=ways, models=NOTHING, settings_editor=editor_in(tmp_path)
    ) as ui:
        screen = await chooser(ui)
        await ui.pilot.press("2")
        screen.query_one(Input).value = "host:1"
        await ui.pilot.press("enter")
        await ui.settle()
        ref = served(1)[0].ref
        kept = tomllib.loads(file.read_text())
        assert (kept["base_url"], kept["model"]) == (ref.base_url, ref.name)
        assert ui.notices[-1] == f"Kept for the next start, in {file}: this server and model"


async def test_of_a_server_with_several_models_one_is_chosen(tmp_path: Path):
    ways = ways_to_a_model(find_at=at_server)
    async with starting_app(tmp_path, first_run=ways) as ui:
        screen = await chooser(ui)
        await ui.pilot.press("5")
        screen.query_one(Input).value = "host:3"
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ModelPicker))
        await ui.settle()
        assert ui.app.screen.query_one(RowList).count == 3
        await ui.pilot.press("escape")
        await ui.settle()
        assert ui.app.screen is screen
        assert screen.query_one(OptionList).display
        await ui.pilot.press("5")
        screen.query_one(Input).value = "host:3"
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ModelPicker))
        await ui.settle()
        await ui.pilot.press("down", "enter")
        await ui.settle()
        assert ui.model == served(2)[1].ref


async def test_an_account_is_signed_in_to_with_the_code_that_is_shown(tmp_path: Path):
    entered = asyncio.Event()
    copilot = own_accounts()["github_copilot"]
    models = SlowModels(
        (), (FoundModel(OTHER, ModelInfo(OTHER.name, 8_192, 2_048), copilot.title),)
    )
    models.may_answer.set()

    async def sign_in(account: Account, show: Callable[[DeviceCode], object]) -> None:
        assert account is copilot
        show(DeviceCode("ABCD-1234", "https://example.org/device", "d", 1.0, 900.0))
        await entered.wait()

    ways = ways_to_a_model(accounts=tuple(own_accounts().values()), sign_in=sign_in)
    async with starting_app(tmp_path, first_run=ways, models=models) as ui:
        screen = await chooser(ui)
        assert [row[3:].partition("  ")[0] for row in rows(screen)[2:4]] == [
            "Sign in: GitHub Copilot",
            "Sign in: ChatGPT",
        ]
        await ui.pilot.press("3")
        await ui.until(lambda: "ABCD-1234" in said(screen, "#first-run-note"))
        assert "https://example.org/device" in said(screen, "#first-run-note")
        await ui.pilot.press("escape")
        await ui.settle()
        assert screen.query_one(OptionList).display
        await ui.pilot.press("3")
        await ui.settle()
        entered.set()
        await ui.until(lambda: len(ui.app.screen_stack) == 1)
        await ui.settle()
        assert ui.model == OTHER


async def test_a_sign_in_that_fails_says_why(tmp_path: Path):
    async def sign_in(_account: Account, _show: Callable[[DeviceCode], object]) -> None:
        raise SignInError("The code expired before it was entered.", "Try again.")

    ways = ways_to_a_model(accounts=tuple(own_accounts().values()), sign_in=sign_in)
    async with starting_app(tmp_path, first_run=ways, models=NOTHING) as ui:
        screen = await chooser(ui)
        await ui.pilot.press("3")
        await ui.until(lambda: "expired" in said(screen, "#first-run-note"))
        await ui.pilot.press("escape")
        await ui.settle()
        assert screen.query_one(OptionList).display


async def test_the_built_in_model_can_be_got(tmp_path: Path):
    local = FakeLocal(tmp_path)
    options = {
        "first_run": keeping({}),
        "models": NOTHING,
        "local": local.as_offer,
        "clock": StillClock(),
    }
    async with starting_app(tmp_path, **options) as ui:
        screen = await chooser(ui)
        await ui.pilot.press("5")
        await ui.until(lambda: isinstance(ui.app.screen, PullScreen))
        await ui.settle()
        await ui.pilot.press("escape")
        await ui.settle()
        assert ui.app.screen is screen
        assert screen.query_one(OptionList).highlighted == 4
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, PullScreen))
        await ui.settle()
        options["clock"].now += 1
        await ui.pilot.press("enter")
        await ui.until(lambda: local.pulls)
        local.succeed()
        await ui.until(lambda: len(ui.app.screen_stack) == 1)
        await ui.settle()
        assert ui.model == PULLED


async def test_a_pulled_model_that_cannot_run_yet_says_what_is_missing(tmp_path: Path):
    found = (FoundModel(PULLED, ModelInfo(PULLED.name, 8_192, 2_048), "this machine"),)
    models = SlowModels(found)
    models.may_answer.set()
    local = FakeLocal(tmp_path, "Missing.\npip install it")
    async with starting_app(
        tmp_path, first_run=keeping({}), models=models, local=local.as_offer
    ) as ui:
        await chooser(ui)
        await ui.pilot.press("1")
        await ui.until(lambda: isinstance(ui.app.screen, PullScreen))
        await ui.settle()
        assert "pip install it" in str(ui.app.screen.query_one("#pull-status", Static).render())


async def test_the_tour_can_be_taken(tmp_path: Path):
    async with starting_app(tmp_path, first_run=keeping({}), models=NOTHING) as ui:
        await chooser(ui)
        await ui.pilot.press("end", "enter")
        await ui.until(lambda: ui.app.return_value is not None)
        assert ui.app.return_value is not None
        assert ui.app.return_value.wants_demo


async def test_a_double_enter_takes_the_tour_once(tmp_path: Path):
    async with starting_app(tmp_path, first_run=keeping({}), models=NOTHING) as ui:
        await chooser(ui)
        await ui.pilot.press("end", "enter", "enter")
        await ui.until(lambda: ui.app.return_value is not None)


async def test_a_double_enter_on_a_found_model_sends_nothing(tmp_path: Path):
    async with starting_app(tmp_path, first_run=keeping({})) as ui:
        await chooser(ui)
        await ui.pilot.press("enter", "enter")
        await ui.settle()
        assert ui.sent == []
        assert ui.model == OTHER


async def test_the_chooser_can_be_left_and_comes_back_with_model_and_with_a_message(
    tmp_path: Path,
):
    async with starting_app(tmp_path, first_run=keeping({}), models=NOTHING) as ui:
        await chooser(ui)
        await ui.pilot.press("enter")
        await ui.pilot.press("escape")
        await ui.pilot.press("escape")
        await ui.settle()
        assert ui.notices[-1].startswith("No model is set up.")
        ui.runtime.set_model(ModelRef(""))
        await ui.send("/model")
        await chooser(ui)
        await ui.pilot.press("escape")
        await ui.settle()
        await ui.send("fix it")
        await chooser(ui)
        assert ui.sent == []
        assert ui.text == "fix it"


async def test_with_a_model_slash_model_is_the_picker(tmp_path: Path):
    async with starting_app(tmp_path, first_run=keeping({}), models=NOTHING) as ui:
        await chooser(ui)
        await ui.pilot.press("escape")
        await ui.settle()
        await ui.send("/model")
        await ui.until(lambda: isinstance(ui.app.screen, ModelPicker))


@pytest.mark.thorough
async def test_every_way_can_be_reached_whatever_the_size(tmp_path: Path):
    models = SlowModels(served(8, "a-model-with-quite-a-long-name-as-they-are-in-catalogues"))
    models.may_answer.set()
    local = FakeLocal(tmp_path)
    options = {"first_run": keeping({}), "models": models, "local": local.as_offer}
    async with starting_app(tmp_path, size=(100, 36), **options) as ui:
        screen = await chooser(ui)
        for size in ((80, 24), (40, 16), (120, 40)):
            await ui.pilot.press("end")
            await ui.pilot.resize_terminal(*size)
            await ui.settle()
            options = screen.query_one(OptionList)
            assert options.highlighted == len(rows(screen)) - 1
            bottom = screen.query_one("#page-keys").region
            assert options.region.bottom <= bottom.y
            assert bottom.bottom <= size[1]
            assert "tour" in rows(screen)[-1]
            assert options.scroll_offset.y == options.max_scroll_y
            await ui.pilot.press("home")
            await ui.settle()
            assert options.scroll_offset.y == 0


async def test_without_colours_the_way_in_hand_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("NO_COLOR", "1")
    async with starting_app(tmp_path, first_run=keeping({}), models=NOTHING) as ui:
        options = (await chooser(ui)).query_one(OptionList)
        first, second = ([*options.render_line(y)][1].style for y in (0, 1))
        assert first is not None
        assert first.underline
        assert second is None or not second.underline


async def test_at_80x24_nothing_is_cut(tmp_path: Path):
    options = {"first_run": keeping({}), "models": NOTHING, "local": FakeLocal(tmp_path).as_offer}
    async with starting_app(tmp_path, **options) as ui:
        screen = await chooser(ui)
        options = screen.query_one(OptionList)
        assert options.max_scroll_y == 0
        width = options.scrollable_content_region.width
        assert all(len(line) <= width for row in rows(screen) for line in row.splitlines())
        await ui.pilot.press("1")
        await ui.settle()
        assert screen.query_one("#first-run-note").region.bottom <= 23
