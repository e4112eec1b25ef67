"""The folders of features: a deleted one is missing, a damaged one is an error."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.feature import feature_names


def make_feature(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir(parents=True)
    (made / "feature.py").touch()
    return made


def test_what_a_deleted_feature_leaves_is_none(tmp_path: Path):
    make_feature(tmp_path, "goal")
    (tmp_path / "gone" / "__pycache__").mkdir(parents=True)
    (tmp_path / "__init__.py").touch()
    assert feature_names(tmp_path) == ["goal"]


def test_a_feature_that_cannot_be_read_does_not_count_as_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    closed = make_feature(tmp_path, "sandbox")
    entries = Path.iterdir

    def list_entries(folder: Path) -> Iterator[Path]:
        if folder == closed:
            raise PermissionError(13, "Permission denied")
        return entries(folder)

    monkeypatch.setattr(Path, "iterdir", list_entries)
    with pytest.raises(PermissionError):
        feature_names(tmp_path)
