import stat
from pathlib import Path

import pytest

from agent_tui.ui.terminal import clipboard as module
from agent_tui.ui.terminal.clipboard import clipboard_image, image_commands
from tests.support.images import png
from tests.ui.app_support import running_app

WAYLAND = {"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}


@pytest.mark.parametrize(
    ("environ", "programs"),
    [
        ({}, ["pngpaste"]),
        ({"DISPLAY": ":0"}, ["pngpaste", "xclip"]),
        (WAYLAND, ["pngpaste", "wl-paste", "xclip"]),
        ({**WAYLAND, "SSH_TTY": "/dev/pts/1"}, []),
    ],
)
def test_only_programs_of_this_machine_are_asked(environ: dict[str, str], programs: list[str]):
    assert [command[0] for command in image_commands(environ)] == programs


def test_the_first_program_that_has_an_image_gives_it_and_few_are_kept(tmp_path: Path):
    asked: list[str] = []

    def fetch(command: object) -> bytes:
        assert isinstance(command, tuple)
        asked.append(command[0])
        return png(8, 6) if command[0] == "xclip" else b""

    path = clipboard_image(tmp_path, WAYLAND, lambda name: name, fetch)
    assert path is not None
    assert path.read_bytes() == png(8, 6)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert asked == ["pngpaste", "wl-paste", "xclip"]
    for width in range(1, 40):
        clipboard_image(tmp_path, WAYLAND, lambda name: name, lambda _, w=width: png(w, 1))
    assert len(list(tmp_path.iterdir())) == 20


def test_without_a_program_or_an_image_there_is_none(tmp_path: Path):
    assert clipboard_image(tmp_path, WAYLAND, lambda _: None, lambda _: png()) is None
    assert clipboard_image(tmp_path, WAYLAND, lambda name: name, lambda _: b"") is None
    assert clipboard_image(tmp_path, WAYLAND, lambda _: "x") is None


async def test_ctrl_v_attaches_the_image_or_pastes_what_was_copied_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shot = tmp_path / "shot.png"
    shot.write_bytes(png(8, 6))
    found: list[Path | None] = [shot, None, None]
    monkeypatch.setattr(module, "clipboard_image", lambda *_: found.pop(0))
    async with running_app(tmp_path) as ui:
        await ui.write("see ")
        await ui.pilot.press("ctrl+v")
        await ui.until(lambda: ui.text == "see [image #1 shot.png 8x6] ")
        await ui.pilot.press("ctrl+v")
        await ui.until(lambda: any("No image on the clipboard" in toast for toast in ui.toasts))
        ui.app.copy_to_clipboard("copied")
        await ui.pilot.press("ctrl+v")
        await ui.until(lambda: ui.text.endswith("copied"))
