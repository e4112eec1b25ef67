from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.first_run.model_options import (
    SHOWN_PER_SOURCE,
    AllModels,
    first_run_options,
    option_lines,
)
from agent_tui.features.tour.steps import TOUR
from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef
from agent_tui.ui.options import KeyChoice
from tests.support.fake_local import FakeLocal
from tests.ui.app_support import ways_to_a_model

OFFER = FakeLocal(Path()).as_offer
KEY = KeyChoice("Anthropic", "ANTHROPIC_API_KEY", ModelRef("anthropic/claude-sonnet"))
NOTHING = ways_to_a_model()
WITH_KEY = ways_to_a_model((KEY,))


def served(name: str, via: str = "Ollama at 127.0.0.1:11434", state: str = "") -> FoundModel:
    ref = ModelRef(f"openai/{name}", base_url="http://127.0.0.1:11434/v1")
    info = ModelInfo(ref.name, 32_768, 8_192, source="server")
    return FoundModel(ref, info, via, state)


def pulled(name: str) -> FoundModel:
    ref = ModelRef(f"local/{name}")
    info = ModelInfo(ref.name, 8_192, 2_048)
    return FoundModel(ref, info, "this machine", "ready", size_bytes=98_362_432)


def test_what_works_at_once_comes_first_and_the_tour_last():
    mine, other = pulled("qwen"), served("coder")
    keyed = FoundModel(KEY.model, ModelInfo(KEY.model.name, 200_000, 64_000), KEY.env_name)
    assert first_run_options((mine, other, keyed), WITH_KEY, OFFER) == (
        keyed,
        other,
        mine,
        KEY,
        "other provider",
        "own server",
        OFFER,
        TOUR,
    )


def test_the_built_in_model_is_not_offered_twice():
    mine = pulled(OFFER.model.model_id)
    options = first_run_options((mine,), NOTHING, OFFER)
    assert options == (mine, "other provider", "own server", TOUR)


def test_a_served_model_of_the_same_name_is_not_the_built_in_one():
    assert OFFER in first_run_options((served(OFFER.model.model_id),), NOTHING, OFFER)


def test_of_many_models_at_one_place_the_loaded_ones_are_shown():
    many = [served(f"model-{n}") for n in range(7)]
    many[5] = replace(many[5], state="loaded")
    small = served("small", "LM Studio at 127.0.0.1:1234")
    options = first_run_options((*many, small), NOTHING, None)
    assert [option.ref.model_id for option in options if isinstance(option, FoundModel)] == [
        "model-5",
        "model-0",
        "model-1",
        "small",
    ]
    assert AllModels(7 - SHOWN_PER_SOURCE) in options


def test_each_way_says_what_it_means():
    options = first_run_options((served("coder", state="loaded"), pulled("qwen")), WITH_KEY, OFFER)
    text = "\n".join(line.plain for line in option_lines(options, 74, are_numbered=True))
    assert "Ollama :11434 · loaded · 32.8k tokens" in text
    assert "this machine · 98.4 MB · about 8.2k tokens" in text
    assert "or set ANTHROPIC_API_KEY" in text
    assert "92.9 MB, Apache-2.0, no key" in text
    assert "too small for real work" in text


def test_digits_end_with_nine_and_can_be_left_out():
    options = first_run_options([served(f"m{n}", f"server {n}") for n in range(12)], NOTHING, None)
    digits = [line.plain[:1] for line in option_lines(options, 80, are_numbered=True)]
    assert digits == [*"123456789", *" " * (len(options) - 9)]
    assert {line.plain[:1] for line in option_lines(options, 80, are_numbered=False)} == {" "}


@given(
    name=st.text(min_size=1, max_size=90),
    via=st.text(max_size=90),
    state=st.text(max_size=20),
    width=st.integers(20, 200),
)
def test_hostile_names_stay_in_their_place(name: str, via: str, state: str, width: int):
    (line, *_) = option_lines([served(name, via, state)], width, are_numbered=True)
    assert not any(
        ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in line.plain.replace("\n", "")
    )
    assert line.plain.startswith("1  Use ")


def test_markup_in_a_name_is_only_text():
    (line,) = option_lines([served("[red]x[/red]\x1b[2J", "here")], 90, are_numbered=False)
    assert "Use [red]x[/red]␛[2J" in line.plain


@given(st.integers(30, 120))
def test_no_detail_is_wider_than_the_list(width: int):
    options = first_run_options((served("coder"),), WITH_KEY, OFFER)
    for line in option_lines(options, width, are_numbered=True):
        for row in line.plain.splitlines()[1:]:
            assert len(row) <= width
