from pathlib import Path

import pytest

from agent_tui import __version__
from agent_tui.harbor.measured import Wheel, source_of
from agent_tui.installation import Installation


def test_a_release_goes_as_the_same_release() -> None:
    assert source_of(None, None, Installation()) == f"agent-tui-cli=={__version__}"
    assert source_of(None, "9.9", Installation()) == "agent-tui-cli==9.9"


def test_a_copy_from_a_repository_comes_from_there() -> None:
    installation = Installation(address="git+https://example.org/a.git@0123abc")
    wanted = "agent-tui-cli @ git+https://example.org/a.git@0123abc"
    assert source_of(None, None, installation) == wanted


def test_a_wheel_is_copied_whether_it_is_named_or_was_installed_here(tmp_path: Path) -> None:
    wheel = tmp_path / "a b.whl"
    wheel.touch()
    assert source_of(str(wheel), "9.9", Installation()) == Wheel(wheel)
    assert source_of(None, None, Installation(address=wheel.as_uri())) == Wheel(wheel)


def test_a_folder_is_never_taken_for_the_release_of_its_number(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="uv build --wheel"):
        source_of(None, None, Installation(folder=str(tmp_path)))


@pytest.mark.parametrize("name", ["gone.whl", "source.tar.gz"])
def test_what_is_no_wheel_is_refused_before_any_trial(name: str, tmp_path: Path) -> None:
    (tmp_path / "source.tar.gz").touch()
    with pytest.raises(ValueError, match="is not a wheel"):
        source_of(str(tmp_path / name), None, Installation())
