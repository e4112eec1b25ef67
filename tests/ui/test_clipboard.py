from collections.abc import Callable

import pytest

from agent_tui.ui.clipboard import clipboard_way, copy_text


def having(*programs: str) -> Callable[[str], str | None]:
    return lambda name: f"/usr/bin/{name}" if name in programs else None


@pytest.mark.parametrize(
    ("environ", "programs", "label"),
    [
        ({"TMUX": "x", "SSH_TTY": "y"}, ("tmux", "xclip"), "the tmux buffer"),
        ({"SSH_TTY": "y", "DISPLAY": ":0"}, ("xclip",), "the terminal (OSC 52)"),
        (
            {"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"},
            ("wl-copy", "xclip"),
            "the clipboard (wl-copy)",
        ),
        ({"DISPLAY": ":0"}, ("xclip",), "the clipboard (xclip)"),
        ({}, ("pbcopy",), "the clipboard (pbcopy)"),
        ({}, ("xclip",), "the terminal (OSC 52)"),
    ],
)
def test_the_way_that_reaches_the_persons_own_clipboard(
    environ: dict[str, str], programs: tuple[str, ...], label: str
):
    assert clipboard_way(environ, having(*programs)).label == label


def test_without_a_tool_the_terminal_is_asked_and_it_is_said():
    asked: list[str] = []
    assert copy_text("hello", {}, asked.append) == "Copied 5 characters to the terminal (OSC 52)."
    assert asked == ["hello"]
