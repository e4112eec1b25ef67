from pathlib import Path

from agent_tui.commands.core.known_models import KnownModels
from agent_tui.providers.base import ModelRef

ONE, TWO, THREE = ModelRef("openai/one"), ModelRef("openai/two"), ModelRef("openai/three")
SERVED = ModelRef("openai/one", "http://me:secret@127.0.0.1:8080/v1")


def order(known: KnownModels, *refs: ModelRef) -> list[ModelRef]:
    return sorted(refs, key=known.place)


def test_favourites_come_first_then_what_was_chosen_last(tmp_path: Path):
    known = KnownModels(tmp_path / "data" / "chosen.json")
    known.chose(TWO)
    known.chose(THREE)
    known.mark(ONE)
    again = KnownModels(tmp_path / "data" / "chosen.json")
    again.load()
    assert order(again, ModelRef("x/new"), TWO, THREE, ONE) == [ONE, THREE, TWO, ModelRef("x/new")]
    assert again.is_favourite(ONE)
    again.mark(ONE)
    assert not again.is_favourite(ONE)


def test_a_model_at_another_address_is_another_one_and_no_login_is_kept(tmp_path: Path):
    file = tmp_path / "chosen.json"
    known = KnownModels(file)
    known.mark(SERVED)
    assert (known.is_favourite(SERVED), known.is_favourite(ONE)) == (True, False)
    assert "secret" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_two_programs_lose_nothing_of_each_other_and_a_broken_file_is_no_obstacle(tmp_path: Path):
    file = tmp_path / "chosen.json"
    first, second = KnownModels(file), KnownModels(file)
    first.mark(ONE)
    second.mark(TWO)
    first.load()
    assert first.is_favourite(TWO)
    file.write_text('{"favourites": [1, "openai/two"], "recent": "no list"')
    broken = KnownModels(file)
    broken.chose(THREE)
    assert order(broken, ONE, THREE) == [THREE, ONE]


def test_where_nothing_can_be_written_it_holds_for_this_run(tmp_path: Path):
    (tmp_path / "file").write_text("")
    known = KnownModels(tmp_path / "file" / "chosen.json")
    known.mark(ONE)
    assert known.is_favourite(ONE)
