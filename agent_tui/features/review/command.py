"""``/diff`` shows changes, ``/comment`` comments on them, ``/review`` has a helper review them."""

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front, Page, PageSection, Row
from agent_tui.errors import UsageError
from agent_tui.features.review.actions import ReviewActions
from agent_tui.features.review.changes import FileChange
from agent_tui.features.review.comments import Comment, comment_on
from agent_tui.features.review.helper import review_by_helper
from agent_tui.features.review.sources import Review, ReviewLoader
from agent_tui.safe_text import safe_text
from agent_tui.tools.processes.keeper import ProcessKeeper

if TYPE_CHECKING:  # a run without the screen imports no Textual
    from textual.screen import Screen

_HINT = "[session|git|worktree NAME|A..B|file]"
_WHAT = (
    Completion("last", "since your last message"),
    Completion("session", "since the session began"),
    Completion("git", "not committed"),
    Completion("worktree ", "the work in a worktree"),
)
_PLACE = re.compile(r"(.+?):(\d+)(?:-(\d+))?\s+(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """A review for fronts: a screen, or rows."""

    front: Front
    loader: ReviewLoader
    actions: ReviewActions
    review: Review

    def make_screen(self) -> "Screen[None]":
        """The screen."""
        from agent_tui.features.review.screen import ReviewScreen

        return ReviewScreen(self.front, self.loader, self.actions, self.review)

    async def page(self) -> Page:
        """The files with numbered hunks, and the comments."""
        return review_page(self.review)


@command(
    _HINT,
    aliases=("changes",),
    completions=lambda _front: _WHAT,
    takes_path=True,
)
async def diff(front: Front, argument: str) -> None:
    """Show changes, comment on them, take them back, stage and commit them."""
    with _loading(front) as (loader, actions):
        found = await loader.load(argument.strip())
        if found.changes or found.state.unsent():
            await front.show(ReviewPage(front, loader, actions, found))
        else:
            _say_nothing(front, found)


@command(
    _HINT,
    completions=lambda _front: _WHAT,
    refusal="The review cannot start while something runs. /abort stops it.",
    takes_path=True,
)
async def review(front: Front, argument: str) -> None:
    """Have a helper review changes; /diff shows what it finds."""
    runtime = front.runtime
    with _loading(front) as (loader, _):
        found = await loader.load(argument.strip())
    if found.changes:
        await front.run(runtime.carry_out(lambda emit: review_by_helper(runtime, found, emit)))
    else:
        _say_nothing(front, found)


@command("<file:line[-line] text|send>", completions=lambda _front: ("send",), takes_path=True)
async def comment(front: Front, argument: str) -> None:
    """Comment on lines of a file for a review; send sends all comments."""
    with _loading(front) as (loader, actions):
        state = (await loader.load("session")).state
        if argument.strip() == "send":
            message = actions.write_message(state)
            if message:
                await front.send(message)
            else:
                front.say("No comments to send.")
            return
        if (place := _PLACE.fullmatch(argument.strip())) is None:
            raise UsageError("Give a place and a text: /comment src/app.py:12 Why?")
        change = await loader.present_file(place[1])
        first, last = int(place[2]), int(place[3] or place[2])
        made = comment_on(change, "new", first, last, place[4], actions.new_id(state))
        if not made.lines:
            raise UsageError(f"{change.name} has no line {first}.")
        actions.keep(state, made)
        front.say(f"Comment on {made.place}. /comment send sends {len(state.unsent())}.")


def _say_nothing(front: Front, found: Review) -> None:
    other = " /diff git shows what is not committed." if found.what == "session" else ""
    front.say(f"Nothing changed {found.title}.{other}")


@contextmanager
def _loading(front: Front) -> Generator[tuple[ReviewLoader, ReviewActions]]:
    """What finds changes and acts on them; git can run inside the block."""
    keeper = ProcessKeeper(front.runtime.services.settings.max_processes)
    try:
        loader = ReviewLoader(front.runtime, keeper)
        yield loader, ReviewActions(front.runtime, loader, keeper)
    finally:
        keeper.close()


def review_page(review: Review) -> Page:
    """The files with numbered hunks, and the comments on each."""
    sections = [
        _section(number, change, [one for one in review.state.shown() if one.path == change.name])
        for number, change in enumerate(review.changes, start=1)
    ]
    return Page(f"Changes {review.title}", tuple(sections))


def _section(number: int, change: FileChange, comments: list[Comment]) -> PageSection:
    added, removed = change.counts
    facts = [f"+{added} -{removed}", *filter(None, (change.kind, change.note))]
    heading = f"{number}. {change.name} ({', '.join(facts)})"
    return PageSection(
        safe_text(heading, keep_newlines=False), tuple(_rows(number, change, comments))
    )


def _rows(number: int, change: FileChange, comments: list[Comment]) -> Iterator[Row]:
    for index, hunk in enumerate(change.hunks, start=1):
        yield "", f"Hunk {number}.{index}"
        for line in hunk.lines:
            text = safe_text(line.text.removesuffix("\n").removesuffix("\r"), keep_newlines=False)
            yield "", f"{line.new or line.old} {line.sign}{text}"
    for comment in comments:
        yield "", safe_text(f"Comment on {comment.place} ({comment.state}): {comment.text}")
