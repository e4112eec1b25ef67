import json
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.errors import ModelFileError
from agent_tui.features.local import library as library_module
from agent_tui.features.local.gguf import read_gguf
from agent_tui.features.local.library import ModelLibrary
from agent_tui.features.local.model import LocalModel, can_run_models
from tests.support.gguf_files import CHAT_FIELDS, gguf_bytes

PULLED = LocalModel(
    "tiny", Path(), 0, source="https://a.example/tiny.gguf", sha256="ab" * 32, licence="Apache-2.0"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "My Model.Q4_K_M.GGUF"
    path.write_bytes(gguf_bytes())
    return path


def part_of(library: ModelLibrary, content: bytes = gguf_bytes()) -> Path:
    library.downloads_dir.mkdir(parents=True, exist_ok=True)
    part = library.downloads_dir / "x.part"
    part.write_bytes(content)
    return part


def adopted(library: ModelLibrary, model: LocalModel = PULLED, *, fixed: bool = True) -> LocalModel:
    part = part_of(library)
    return library.adopt(replace(model, path=part), read_gguf(part), is_name_fixed=fixed)


def test_looking_creates_nothing(library: ModelLibrary) -> None:
    assert library.models() == ()
    assert library.find("tiny") is None
    assert not library.root.exists()


def test_an_added_file_stays_where_it_is_and_is_described(
    library: ModelLibrary, file: Path
) -> None:
    model = library.add(file)
    assert model.name == "my-model.q4_k_m"
    assert model.path == file
    assert (model.title, model.licence) == ("Tiny Test Q4_1", "mit")
    assert (model.trained_window, model.architecture) == (2048, "llama")
    assert model.size_bytes == file.stat().st_size
    assert not model.is_ours
    assert library.models() == (model,)
    assert library.find("my-model.q4_k_m") == model
    assert not library.files_dir.exists()


def test_descriptions_are_for_the_owner_only(library: ModelLibrary, file: Path) -> None:
    library.add(file, "one")
    assert stat.S_IMODE((library.root / "one.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(library.root.stat().st_mode) == 0o700
    assert sorted(path.name for path in library.root.iterdir()) == ["one.json"]


def test_the_same_file_is_the_same_model(library: ModelLibrary, file: Path, tmp_path: Path) -> None:
    first = library.add(file)
    link = tmp_path / "link.gguf"
    link.symlink_to(file)
    assert library.add(link) == first
    assert library.add(file, first.name) == first
    assert library.models() == (first,)


def test_a_file_can_have_a_second_name(library: ModelLibrary, file: Path) -> None:
    library.add(file, "b")
    library.add(file, "a")
    assert [model.name for model in library.models()] == ["a", "b"]


def test_files_of_one_name_get_numbers(library: ModelLibrary, tmp_path: Path) -> None:
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.gguf").write_bytes(gguf_bytes())
        library.add(tmp_path / folder / "same.gguf")
    assert [model.name for model in library.models()] == ["same", "same-2", "same-3"]


def test_a_name_that_says_nothing_gives_way_to_the_files_own(
    library: ModelLibrary, tmp_path: Path
) -> None:
    blob = tmp_path / f"sha256-{'0a' * 32}"
    blob.write_bytes(gguf_bytes())
    assert library.add(blob).name == "tiny-test-q4_1"


@pytest.mark.parametrize("name", ["", "A", "../up", "a/b", ".hidden", "-x", "a b", "x" * 101, "é"])
def test_names_that_are_no_names_are_refused(library: ModelLibrary, file: Path, name: str) -> None:
    assert library.find(name) is None
    if name:
        with pytest.raises(ModelFileError, match="cannot be the name"):
            library.add(file, name)


def test_a_taken_name_is_refused(library: ModelLibrary, file: Path, tmp_path: Path) -> None:
    library.add(file, "one")
    other = tmp_path / "other.gguf"
    other.write_bytes(gguf_bytes())
    with pytest.raises(ModelFileError, match="taken") as caught:
        library.add(other, "one")
    assert "--name" in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"general.architecture": "bert"}, "embedding model"),
        ({"general.type": "mmproj"}, "image part"),
        ({"general.type": "adapter"}, "adapter"),
        ({"split.no": 1, "split.count": 3}, "part 2"),
    ],
)
def test_files_that_cannot_be_talked_to_are_refused(
    library: ModelLibrary, tmp_path: Path, changes: dict[str, str | int], complaint: str
) -> None:
    path = tmp_path / "odd.gguf"
    path.write_bytes(gguf_bytes({**CHAT_FIELDS, **changes}))
    with pytest.raises(ModelFileError, match=complaint) as caught:
        library.add(path)
    assert caught.value.hint
    assert not library.root.exists()


def test_a_vocabulary_and_a_cut_file_are_refused(library: ModelLibrary, file: Path) -> None:
    file.write_bytes(gguf_bytes(tensors=()))
    with pytest.raises(ModelFileError, match="vocabulary"):
        library.add(file)
    file.write_bytes(gguf_bytes()[:-1])
    with pytest.raises(ModelFileError, match="is incomplete"):
        library.add(file)


def test_a_split_model_is_its_first_part(library: ModelLibrary, tmp_path: Path) -> None:
    first, second = (tmp_path / f"big-0000{number}-of-00002.gguf" for number in (1, 2))
    first.write_bytes(gguf_bytes({**CHAT_FIELDS, "split.no": 0, "split.count": 2}))
    with pytest.raises(ModelFileError, match=r"big-00002-of-00002\.gguf is missing"):
        library.add(first)
    second.write_bytes(gguf_bytes({"split.no": 1, "split.count": 2}))
    with pytest.raises(ModelFileError, match="part 2") as caught:
        library.add(second)
    assert first.name in caught.value.hint
    model = library.add(first)
    assert model.name == "big"
    assert model.size_bytes == first.stat().st_size + second.stat().st_size


def test_a_path_of_any_bytes_survives(library: ModelLibrary, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.gguf"))
    path.write_bytes(gguf_bytes())
    model = library.add(path)
    assert library.find(model.name) == model
    assert model.is_there


def test_removing_an_added_model_leaves_its_file(library: ModelLibrary, file: Path) -> None:
    model = library.add(file)
    assert library.remove(model.name) == model
    assert file.is_file()
    assert library.models() == ()
    with pytest.raises(ModelFileError, match="No local model"):
        library.remove(model.name)


def test_removing_a_pulled_model_deletes_its_file(library: ModelLibrary) -> None:
    model = adopted(library)
    assert model.path == library.files_dir / "tiny.gguf"
    assert model.is_there
    assert library.remove("tiny") == model
    assert not model.is_there
    assert library.models() == ()


def test_a_pulled_file_moves_into_the_library(library: ModelLibrary) -> None:
    model = adopted(library)
    assert model.is_ours
    assert (model.source, model.licence, model.title) == (
        "https://a.example/tiny.gguf",
        "Apache-2.0",
        "Tiny Test Q4_1",
    )
    assert list(library.downloads_dir.iterdir()) == []
    assert library.models() == (model,)


def test_the_library_can_be_moved_with_its_pulled_files(
    library: ModelLibrary, tmp_path: Path
) -> None:
    adopted(library)
    library.root.rename(tmp_path / "moved")
    (model,) = ModelLibrary(tmp_path / "moved").models()
    assert model.is_there


def test_a_pull_does_not_take_the_name_of_another_model(library: ModelLibrary, file: Path) -> None:
    library.add(file, "tiny")
    with pytest.raises(ModelFileError, match="taken"):
        adopted(library)
    assert (library.downloads_dir / "x.part").is_file()
    assert adopted(library, fixed=False).name == "tiny-2"
    with pytest.raises(ModelFileError, match="taken"):
        adopted(library, replace(PULLED, name="tiny-2", source="https://b.example/other.gguf"))


def test_a_pulled_file_whose_description_cannot_be_written_is_no_model(
    library: ModelLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(library_module, "replace_private_file", full)
    with pytest.raises(ModelFileError, match="No space left"):
        adopted(library)
    assert library.models() == ()
    assert list(library.files_dir.iterdir()) == []
    assert (library.downloads_dir / "x.part").is_file()


def test_a_model_whose_file_is_gone_is_still_listed(library: ModelLibrary, file: Path) -> None:
    library.add(file)
    file.unlink()
    (model,) = library.models()
    assert not model.is_there


def record(library: ModelLibrary, name: str, **changes: object) -> None:
    content = {"format": 1, "path": "/x/y.gguf", "size_bytes": 5, **changes}
    (library.root / f"{name}.json").write_text(json.dumps(content))


def test_damaged_descriptions_hide_no_others_and_are_reported(
    library: ModelLibrary, file: Path
) -> None:
    good = library.add(file, "good")
    for name, content in {
        "a-nul": b"\0\0",
        "b-cut": b'{"format": 1',
        "c-deep": b"[" * 100_000,
        "d-list": b"[]",
        "e-large": b" " * 300_000,
    }.items():
        (library.root / f"{name}.json").write_bytes(content)
    (library.root / "f-folder.json").mkdir()
    record(library, "g-new", format=2)
    record(library, "h-relative", path="y.gguf")
    record(library, "i-outside", path="../../etc/passwd", is_ours=True)
    record(library, "j-size", size_bytes=-1)
    (library.root / "NOT A NAME.json").write_text("{")
    listing = library.listing()
    assert listing.models == (good,)
    assert len(listing.problems) == 10
    assert all("agent-tui" in problem for problem in listing.problems)
    assert "d-list" in listing.problems[3]
    assert "size_bytes" in listing.problems[9]


def test_a_damaged_description_can_be_removed(library: ModelLibrary) -> None:
    model = adopted(library)
    (library.root / "tiny.json").write_text("{")
    with pytest.raises(ModelFileError, match="not JSON"):
        library.find("tiny")
    library.remove("tiny")
    assert library.listing().problems == ()
    assert not model.is_there


@pytest.mark.parametrize(
    ("file_name", "name"),
    [("Modèle Über.gguf", "modele-uber"), ("模型-7B.gguf", "7b"), ("模型.gguf", "model")],
)
def test_a_name_is_made_of_the_letters_a_name_can_have(
    library: ModelLibrary, tmp_path: Path, file_name: str, name: str
) -> None:
    path = tmp_path / file_name
    path.write_bytes(gguf_bytes())
    assert library.add(path).name == name


def test_what_was_added_again_came_last(library: ModelLibrary, file: Path) -> None:
    name = library.add(file).name
    os.utime(library.root / f"{name}.json", (1_000, 1_000))
    assert library.time_added(name) == 1_000
    library.add(file)
    assert library.time_added(name) > 1_000
    assert library.time_added("nope") == 0


@pytest.mark.parametrize("is_there", [True, False])
def test_models_run_where_the_package_is_there(
    is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = type(sys)("xllamacpp")
    module.__spec__ = sys.__spec__
    monkeypatch.setitem(sys.modules, "xllamacpp", module if is_there else None)
    assert can_run_models() == is_there
