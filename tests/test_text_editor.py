import sys
from pathlib import Path

import pytest

from agent_tui.errors import AgentTuiError
from agent_tui.text_editor import editor_command, place_in, run_editor


@pytest.mark.parametrize(
    ("environ", "command"),
    [
        ({"EDITOR": "code --wait"}, ["code", "--wait"]),
        ({"EDITOR": "other", "VISUAL": "mine 'a b'"}, ["mine", "a b"]),
        ({"EDITOR": "other", "VISUAL": ""}, ["other"]),
    ],
)
def test_visual_goes_before_editor_and_options_stay(environ: dict[str, str], command: list[str]):
    assert editor_command(environ) == command


@pytest.mark.parametrize(
    ("programs", "editor"), [(("vi", "nano"), "vi"), (("nano",), "nano"), ((), "vi")]
)
def test_where_none_is_named_it_is_vi_or_nano_without_a_vi(
    tmp_path: Path, programs: tuple[str, ...], editor: str
):
    for name in programs:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o700)
    assert editor_command({"PATH": str(tmp_path)}) == [editor]


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"VISUAL": "mine 'x"}, r"\$VISUAL is not a command: its quotation marks do not match"),
        ({"EDITOR": " "}, r"\$EDITOR is not a command: it is blank"),
    ],
)
def test_what_is_no_command_is_said_with_the_variable(environ: dict[str, str], said: str):
    with pytest.raises(AgentTuiError, match=said):
        editor_command(environ)


def test_the_editor_gets_the_file_and_its_exit_code_comes_back(tmp_path: Path):
    file = tmp_path / "a b.txt"
    write = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('new'); sys.exit(3)"
    assert run_editor([sys.executable, "-c", write], file) == 3
    assert file.read_text() == "new"


def test_an_editor_that_cannot_be_started_is_said(tmp_path: Path):
    with pytest.raises(AgentTuiError, match="no-such-editor-here cannot be started"):
        run_editor(["no-such-editor-here"], tmp_path / "file")


@pytest.mark.parametrize(
    ("editor", "expected"),
    [
        ("vi", ["+12", "a b.py"]),
        ("/usr/bin/nano", ["+12", "a b.py"]),
        ("/usr/bin/code", ["--goto", "a b.py:12"]),
        ("hx", ["a b.py:12"]),
    ],
)
def test_an_editor_opens_a_file_at_a_line(editor: str, expected: list[str]):
    assert place_in(editor, Path("a b.py"), 12) == expected
    assert place_in(editor, Path("a b.py"), 0) == ["a b.py"]
