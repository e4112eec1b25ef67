"""``/diff`` shows changes to review; ``/review`` has a helper review them first."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front, Page, PageSection, Row
from agent_tui.features.review.actions import ReviewActions
from agent_tui.features.review.changes import FileChange
from agent_tui.features.review.comments import Comment
from agent_tui.features.review.helper import review_by_helper
from agent_tui.features.review.sources import Review, ReviewLoader
from agent_tui.safe_text import safe_text
from agent_tui.tools.processes.keeper import ProcessKeeper

if TYPE_CHECKING:  # a run without the screen imports no Textual
    from textual.screen import Screen

_WHAT = ("last", "session", "git")


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
    "[last|session|git|worktree NAME|A..B|file]",
    aliases=("changes",),
    completions=lambda _front: _WHAT,
    takes_path=True,
)
async def diff(front: Front, argument: str) -> None:
    """Show changes, comment on them, take them back, stage and commit them."""
    keeper = ProcessKeeper(front.runtime.services.settings.max_processes)
    try:
        loader = ReviewLoader(front.runtime, keeper)
        review = await loader.load(argument.strip())
        if review.changes or review.state.unsent():
            actions = ReviewActions(front.runtime, loader, keeper)
            await front.show(ReviewPage(front, loader, actions, review))
        else:
            front.say(f"Nothing changed {review.title}.")
    finally:
        keeper.close()


@command(
    "[last|session|git|worktree NAME|A..B|file]",
    completions=lambda _front: _WHAT,
    refusal="The review cannot start while something runs. /abort stops it.",
    takes_path=True,
)
async def review(front: Front, argument: str) -> None:
    """Have a helper review changes; /diff shows what it finds."""
    keeper = ProcessKeeper(front.runtime.services.settings.max_processes)
    try:
        found = await ReviewLoader(front.runtime, keeper).load(argument.strip())
    finally:
        keeper.close()
    if found.changes:
        await front.run(
            front.runtime.carry_out(lambda emit: review_by_helper(front.runtime, found, emit))
        )
    else:
        front.say(f"Nothing changed {found.title}.")


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
