"""Moving pictures in ``docs/pages``: a compacted task, a goal, `why`, and the like.

python -m tests.support.moving_picture           # does all and writes the pictures
python -m tests.support.moving_picture goals     # only that one
"""

import asyncio
import re
import sys
import tempfile
from pathlib import Path

import pytest

from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.features.session_picker.screen import SessionPicker
from agent_tui.ui.screens.choice import ChoiceScreen
from agent_tui.ui.screens.modal import PageRow
from agent_tui.ui.screens.picker import RowList
from tests.support.showcase import (
    GOAL,
    HANDED_OVER,
    LINE,
    MAKEFILE_CORRECTION,
    MAKEFILE_TASK,
    PULL,
    QUESTION,
    TASK,
    WHY_ASKED,
    goal_showcase,
    rules_showcase,
    sharing_showcase,
    showcase,
    why_showcase,
    worktrees_showcase,
)
from tests.ui.app_support import Ui

_PAGES = Path(__file__).parents[2] / "docs" / "pages"
PICTURE = _PAGES / "compaction.svg"
GOAL_PICTURE = _PAGES / "goals.svg"
WHY_PICTURE = _PAGES / "why-lines.svg"
WORKTREES_PICTURE = _PAGES / "worktrees.svg"
RULES_PICTURE = _PAGES / "rules.svg"
SHARING_PICTURE = _PAGES / "sharing.svg"
LARGEST_BYTES = 400_000
_SECONDS_PER_FRAME = 2.5
_SIZE_OF_SCREEN = 100, 32
_WEB_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


class _Film:
    """Takes pictures of the screen, as SVG."""

    def __init__(self, ui: Ui) -> None:
        self.frames: list[str] = []
        self._ui = ui

    async def take(self) -> None:
        """Take the screen once the heights of its blocks are known."""
        await self._ui.measured()
        self.take_now()

    def take_now(self) -> None:
        """Take the screen as it is."""
        self.frames.append(self._ui.app.export_screenshot())


async def play(folder: Path) -> list[str]:
    """Do the task; returns the screen before it, at each stop, at the end and as a map, as SVG."""
    async with showcase(folder, _SIZE_OF_SCREEN) as ui:
        film = _Film(ui)
        ui.app.prompt.area.load_text(TASK)
        await film.take()
        await ui.send(TASK)
        while ui.is_running:
            await film.take()
            ui.let_go()
            await ui.settle()
        await film.take()
        await ui.submit("/context")
        await ui.pilot.pause(1)
        film.take_now()
    return film.frames


async def play_goal(folder: Path) -> list[str]:
    """Work toward a goal; returns the screen at each stop and at the end, as SVG."""
    async with goal_showcase(folder, (100, 26)) as ui:
        film = _Film(ui)
        ui.app.prompt.area.load_text(GOAL)
        await film.take()
        await ui.submit(GOAL)
        await ui.settle()
        while ui.is_running:
            await film.take()
            ui.let_go()
            await ui.settle()
        await film.take()
    return film.frames


async def play_sharing(folder: Path) -> list[str]:
    """Pull a session, open it, ask about it and explain a line; returns the screens as SVG."""
    async with sharing_showcase(folder, (100, 28)) as ui:
        film = _Film(ui)
        ui.app.prompt.area.load_text(PULL)
        await film.take()
        await ui.send(PULL)
        await film.take()
        await ui.send("/resume")
        await ui.until(
            lambda: ui.app.screen.query(RowList) and ui.app.screen.query_one(RowList).count
        )
        await ui.pilot.pause(1)
        await ui.pilot.pause()
        film.take_now()
        await ui.pilot.press("enter")
        await ui.until(lambda: any("Pulled from" in notice for notice in ui.notices))
        await ui.settle()
        await film.take()
        await ui.send(QUESTION)
        await film.take()
        await ui.submit(LINE)
        await ui.pilot.pause(1)
        await ui.until(lambda: len(ui.app.screen_stack) > 1)
        await ui.drawn()
        film.take_now()
    return film.frames


async def play_rules(folder: Path) -> list[str]:
    """Correct the model a second time and accept the offered rule; returns the screens, as SVG."""
    async with rules_showcase(folder, (100, 30)) as ui:
        film = _Film(ui)
        await ui.send(MAKEFILE_TASK)
        ui.app.prompt.area.load_text(MAKEFILE_CORRECTION)
        await film.take()
        await ui.send(MAKEFILE_CORRECTION)
        await film.take()
        await ui.submit("/rules")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        await film.take()
        assert isinstance(ui.app.screen, ChoiceScreen)
        ui.app.screen.dismiss("yes")
        await ui.settle()
        await film.take()
    return film.frames


async def play_worktrees(folder: Path) -> list[str]:
    """List the sessions of all worktrees, and merge what a helper wrote; returns SVGs."""
    async with worktrees_showcase(folder, (100, 26)) as ui:
        film = _Film(ui)
        await ui.send("/resume")
        await ui.until(lambda: isinstance(ui.app.screen, SessionPicker))
        await ui.until(lambda: ui.app.screen.query_one(RowList).count == 2)
        await film.take()
        await ui.pilot.press("escape")
        ui.app.prompt.area.load_text(HANDED_OVER)
        await film.take()
        await ui.send(HANDED_OVER)
        await ui.until(lambda: ui.app.view.widgets.approval.request is not None)
        await film.take()
        await ui.settle()
        request = ui.app.view.widgets.approval.request
        assert request is not None
        ui.app.controller.answer_approval(request.id, ApprovalAnswer("once"))
        await ui.until(lambda: not ui.is_running)
        await film.take()
    return film.frames


async def play_why(folder: Path) -> list[str]:
    """Ask for a change; returns the screen at each stop, at the end and with ``/why``, as SVG."""
    async with why_showcase(folder, (100, 30)) as ui:
        film = _Film(ui)
        ui.app.prompt.area.load_text(WHY_ASKED)
        await film.take()
        await ui.submit(WHY_ASKED)
        await ui.settle()
        while ui.is_running:
            await film.take()
            ui.let_go()
            await ui.settle()
        await film.take()
        await ui.submit("/why fetch.py:6")
        await ui.until(lambda: ui.app.screen.query(PageRow))
        film.take_now()
    return film.frames


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


def main() -> None:
    """Play each in a home folder of its own, and write the pictures."""
    players = {
        PICTURE: play,
        GOAL_PICTURE: play_goal,
        WHY_PICTURE: play_why,
        SHARING_PICTURE: play_sharing,
        RULES_PICTURE: play_rules,
        WORKTREES_PICTURE: play_worktrees,
    }
    wanted = sys.argv[1:] or [picture.stem for picture in players]
    for picture, player in players.items():
        if picture.stem not in wanted:
            continue
        with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
            patch.setenv("AGENT_TUI_HOME", home)
            patch.setenv("HOME", home)
            drawn = moving(asyncio.run(player(Path(home))))
        if len(drawn.encode()) > LARGEST_BYTES:
            raise SystemExit(f"{picture.name} is too large: {len(drawn.encode()):,} bytes.")
        picture.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
