"""The model picker: what is nearest comes first, and each model says where it is."""

from pathlib import Path

from agent_tui.commands.core.known_models import KnownModels
from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef
from agent_tui.ui.screens.listing import ModelPicker, model_row
from tests.support.models import INFO, MODEL, ListedModels
from tests.ui.app_support import Ui, listed, running_app


def served(name: str, port: int, state: str = "loaded", *, is_assumed: bool = False) -> FoundModel:
    """A model of an Ollama at `port`."""
    ref = ModelRef(f"openai/{name}", f"http://127.0.0.1:{port}/v1")
    info = ModelInfo(ref.name, 32_768, 8_192, source="guess" if is_assumed else "server")
    return FoundModel(ref, info, f"Ollama at 127.0.0.1:{port}", state)


HERE = ModelRef("local/smollm2")
HERE_INFO = ModelInfo(HERE.name, 8_192, 2_048, source="table")
FIRST, SECOND = served("qwen3:8b", 11434), served("qwen3:8b", 11500, "not loaded", is_assumed=True)


class ServedModels(ListedModels):
    """One model on this machine, one at two servers, one with a key."""

    def __init__(self) -> None:
        super().__init__()
        self.has_looked = False

    def resolve(self, name: str) -> ModelRef:
        if name == "qwen3:8b" and self.has_looked:
            return FIRST.ref
        return super().resolve(name)

    async def list_models(self) -> tuple[FoundModel, ...]:
        self.has_looked = True
        here = FoundModel(HERE, HERE_INFO, "this machine", "ready", 98_362_432)
        return (here, FIRST, SECOND, FoundModel(MODEL, INFO, "ANTHROPIC_API_KEY"))


def lines(ui: Ui) -> list[str]:
    return listed(ui.app.screen)


async def open_picker(ui: Ui) -> None:
    await ui.send("/model")
    await ui.until(lambda: isinstance(ui.app.screen, ModelPicker))
    await ui.until(lambda: bool(lines(ui)))


async def test_a_marked_model_comes_next_and_one_chosen_before_after_it(tmp_path: Path):
    known = KnownModels()
    known.chose(SECOND.ref)
    async with running_app(
        tmp_path, models=ServedModels(), known_models=known, size=(80, 24)
    ) as ui:
        await open_picker(ui)
        assert "qwen3:8b" in lines(ui)[1]
        assert "not loaded" in lines(ui)[1]
        await ui.write("smoll")
        await ui.until(lambda: len(lines(ui)) == 1)
        await ui.pilot.press("ctrl+s")
        await ui.until(lambda: "★" in lines(ui)[0])
        await ui.pilot.press(*["backspace"] * 5)
        await ui.until(lambda: len(lines(ui)) == 4)
        assert lines(ui)[1].startswith(f"★ {HERE.name} ")
        await ui.pilot.press("down", "enter")
        await ui.until(lambda: f"Model: {HERE.name}" in ui.notices)
        known.mark(HERE)
        assert known.place(HERE) == 0, "no favourite any more, but chosen last"


async def test_the_present_model_comes_first_then_what_is_nearest(tmp_path: Path):
    async with running_app(tmp_path, models=ServedModels(), size=(80, 24)) as ui:
        await open_picker(ui)
        shown = lines(ui)
        assert shown[0].startswith(f"● {MODEL.name} ")
        assert [line.split()[0] for line in shown[1:]] == [HERE.name, "qwen3:8b", "qwen3:8b"]


async def test_the_model_in_use_is_there_even_where_nothing_lists_it(tmp_path: Path):
    async with running_app(tmp_path, models=ServedModels(), size=(80, 24)) as ui:
        ui.runtime.set_model(ModelRef("openai/of-tomorrow"))
        await open_picker(ui)
        assert lines(ui)[0].startswith("● openai/of-tomorrow ")
        assert len(lines(ui)) == 5


async def test_window_state_and_place_fit_a_small_terminal_and_prices_a_larger_one(tmp_path: Path):
    for width, has_prices in ((80, False), (120, True)):
        root = tmp_path / str(width)
        root.mkdir()
        async with running_app(root, models=ServedModels(), size=(width, 24)) as ui:
            await open_picker(ui)
            present, _, first, second = lines(ui)
            assert ("3.00/15.00" in present) is has_prices
            assert [*first.split()][-4:] == ["32.8k", "loaded", "Ollama", ":11434"]
            assert [*second.split()][-5:] == ["~32.8k", "not", "loaded", "Ollama", ":11500"]


async def test_a_name_at_two_servers_can_be_chosen_at_either(tmp_path: Path):
    async with running_app(tmp_path, models=ServedModels()) as ui:
        await open_picker(ui)
        await ui.write("11500")
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.runtime.conversation.model == SECOND.ref


async def test_a_model_named_by_its_server_is_marked_as_the_present_one(tmp_path: Path):
    async with running_app(tmp_path, models=ServedModels()) as ui:
        ui.runtime.set_model(ModelRef("qwen3:8b", SECOND.ref.base_url))
        await open_picker(ui)
        assert [line for line in lines(ui) if line.startswith("●")] == lines(ui)[:1]
        assert ":11500" in lines(ui)[0]


async def test_a_name_that_only_a_running_server_knows_can_be_typed(tmp_path: Path):
    models = ServedModels()
    async with running_app(tmp_path, models=models) as ui:
        await ui.send("/model qwen3:8b")
        await ui.until(lambda: ui.runtime.conversation.model == FIRST.ref)
        models.has_looked = False
        await ui.send("/model nonsense")
        await ui.until(lambda: models.has_looked)
        await ui.settle()
        assert ui.notices[-1].startswith("No model is called nonsense.")


async def test_a_name_that_its_server_does_not_list_is_taken_with_a_warning(tmp_path: Path):
    class OneServer(ServedModels):
        def resolve(self, name: str) -> ModelRef:
            return ModelRef(name, FIRST.ref.base_url)

    async with running_app(tmp_path, models=OneServer()) as ui:
        await ui.send("/model no-such/thing")
        await ui.settle()
        assert ui.runtime.conversation.model.name == "no-such/thing"
        assert any("does not list no-such/thing. It lists" in said for said in ui.notices)
        seen = len(ui.notices)
        await ui.send(f"/model {FIRST.ref.name}")
        await ui.settle()
        assert not any("does not list" in said for said in ui.notices[seen:])


def test_what_servers_say_of_themselves_cannot_steer_the_terminal():
    hostile = FoundModel(FIRST.ref, FIRST.info, "x\x1b]0;owned\x07", "\x1b[2J")
    assert "\x1b" not in "".join(model_row(hostile, is_present=False).columns)


def test_a_model_named_by_its_file_is_shown_without_the_folder():
    row = model_row(served("/home/me/models/small.gguf", 8080), is_present=False)
    assert row.title.strip() == "small.gguf"
    assert "/home/me/models" in row.search
