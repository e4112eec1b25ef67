from collections.abc import Callable

import pytest

from agent_tui.ui.terminal.clipboard import clipboard_ways, copy_text
from tests.support.rows import each_row


def having(*programs: str) -> Callable[[str], str | None]:
    return lambda name: f"/usr/bin/{name}" if name in programs else None


@each_row(
    ("environ", "programs", "labels"),
    [
        ({"TMUX": "x", "SSH_TTY": "y"}, ("tmux", "xclip"), ["the tmux buffer"]),
        ({"SSH_TTY": "y", "DISPLAY": ":0"}, ("xclip",), ["the terminal (OSC 52)"]),
        (
            {"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"},
            ("wl-copy", "xclip"),
            ["the clipboard (wl-copy)"],
        ),
        ({"DISPLAY": ":0"}, ("xclip",), ["the clipboard (xclip)"]),
        ({}, ("pbcopy",), ["the clipboard (pbcopy)"]),
        ({"TMUX": "x"}, ("tmux", "pbcopy"), ["the tmux buffer", "the clipboard (pbcopy)"]),
        ({}, ("xclip",), ["the terminal (OSC 52)"]),
    ],
)
def test_the_ways_that_reach_the_persons_own_clipboard(
    environ: dict[str, str], programs: tuple[str, ...], labels: list[str]
):
    assert [way.label for way in clipboard_ways(environ, having(*programs))] == labels


def test_without_a_tool_the_terminal_is_asked_and_nothing_is_promised():
    asked: list[str] = []
    said = copy_text("hello", {}, asked.append, having())
    assert said == "Sent 5 characters to the terminal (OSC 52); not every terminal accepts that."
    assert asked == ["hello"]


@pytest.mark.parametrize("environ", [{"TERM": "linux"}, {"STY": "1.pts"}, {"TERM": "dumb"}])
def test_where_it_cannot_work_nothing_is_claimed(environ: dict[str, str]):
    asked: list[str] = []
    assert copy_text("hello", environ, asked.append, having()).startswith("Nothing was copied: ")
    assert asked == []


@pytest.mark.parametrize(
    ("tmux_says", "said"),
    [
        ("external 256,clipboard,focus", "which passes it on to the terminal's clipboard."),
        ("off 256,clipboard,focus", "the tmux buffer only: paste with prefix ]."),
        ("external 256,focus", "the tmux buffer only: paste with prefix ]."),
        ("", "the tmux buffer only: paste with prefix ]."),
    ],
)
def test_tmux_is_asked_what_becomes_of_its_buffer(tmux_says: str, said: str):
    def run(command: tuple[str, ...], text: str) -> str | None:
        loaded.append(text)
        return tmux_says if "display-message" in command else ""

    loaded: list[str] = []
    assert copy_text("x" * 1_200, {"TMUX": "x"}, print, having("tmux"), run).endswith(said)
    assert loaded == ["x" * 1_200, ""]


def test_a_tool_that_fails_is_not_said_to_have_copied():
    asked: list[str] = []
    environ = {"DISPLAY": ":0"}
    said = copy_text("a", environ, asked.append, having("xclip"), lambda _command, _text: None)
    assert said.startswith("Sent 1 character to the terminal (OSC 52)")
    assert asked == ["a"]
