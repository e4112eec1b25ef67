"""``docs/pages/tour.svg``: the first steps of the tour as a picture that moves.

python -m tests.support.moving_picture    # plays the tour and writes the picture anew
"""

import asyncio
import re
import tempfile
from pathlib import Path

import pytest

from tests.support.screen import Screen, screen

PICTURE = Path(__file__).parents[2] / "docs" / "pages" / "tour.svg"
LARGEST_BYTES = 300_000
_SECONDS_PER_FRAME = 2.5
_SIZE_OF_SCREEN = 84, 30
_WEB_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


async def play() -> list[str]:
    """Take the tour up to its end; returns the screen at each step, as SVG."""
    frames: list[str] = []
    async with screen("--demo") as here:
        await here.pilot.resize_terminal(*_SIZE_OF_SCREEN)
        await _settled(here)
        frames.append(here.app.export_screenshot())
        await here.pilot.press("enter")
        for _ in range(3):
            panel = here.app.view.widgets.approval
            await here.until(lambda panel=panel: panel.request is not None and panel.is_armed)
            await here.pilot.pause(0.2)
            frames.append(here.app.export_screenshot())
            await here.approve()
        await here.until_idle()
        await _settled(here)
        frames.append(here.app.export_screenshot())
        await here.send("/compact --preview")
        await here.pilot.pause(1)
        frames.append(here.app.export_screenshot())
    return frames


def moving(frames: list[str]) -> str:
    """One picture that shows `frames`, each an SVG, one after the other without end."""
    size = _SIZE.search(frames[0])
    assert size is not None
    whole, share = len(frames) * _SECONDS_PER_FRAME, 100 / len(frames)
    turn = f"0% {{ visibility: visible }} {share:.3f}% {{ visibility: hidden }}"
    style = (
        f".frame {{ animation: turn {whole:g}s step-end infinite }}\n@keyframes turn {{ {turn} }}\n"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[1]} {size[2]}">\n'
        f"<style>\n{style}</style>\n"
    ]
    for number, frame in enumerate(frames):
        inner = _WEB_FONTS.sub("", frame)
        # The last is on top: it is what a viewer shows in which nothing moves.
        delay = f"animation-delay: {number * _SECONDS_PER_FRAME - whole:g}s"
        parts.append(f'<g class="frame" style="{delay}">\n{inner}</g>\n')
    return "".join(parts) + "</svg>\n"


async def _settled(here: Screen) -> None:
    await here.until(lambda: here.app.status.fields is not None)
    await here.pilot.pause(0.5)


def main() -> None:
    """Play the tour in a home folder of its own, and write the picture."""
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENT_TUI_HOME", home)
        patch.setenv("HOME", home)
        drawn = moving(asyncio.run(play()))
    if len(drawn.encode()) > LARGEST_BYTES:
        raise SystemExit(f"The picture is too large: {len(drawn.encode()):,} bytes.")
    PICTURE.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
