"""``/diff`` shows changes, ``/comment`` comments on them, ``/review`` has a helper review them."""

import asyncio
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front, Page, PageSection, Row
from agent_tui.errors import UsageError
from agent_tui.features.review.actions import ReviewActions
from agent_tui.features.review.changes import FileChange
from agent_tui.features.review.comments import Comment, CommentState, ReviewState, comment_on
from agent_tui.features.review.helper import review_by_helper
from agent_tui.features.review.sources import Review, ReviewLoader
from agent_tui.safe_text import safe_text
from agent_tui.tools.git.status import nearest_git
from agent_tui.tools.processes.keeper import ProcessKeeper

if TYPE_CHECKING:  # a run without the screen imports no Textual
    from textual.screen import Screen

_SHOWN_AFTER_S = 0.5
"""Seconds after which the screen opens, although the changes are not all read."""

_HINT = "[session | git | A..B | file]"
_WHAT = (
    Completion("last", "since your last message"),
    Completion("session", "since the session began"),
    Completion("git", "not committed"),
    Completion("worktree ", "the work in a worktree"),
    Completion("folder ", "in another folder"),
)
_ACTS: Mapping[str, CommentState] = {"keep": "open", "drop": "dropped", "resolve": "resolved"}
_ACT = re.compile(r"(keep|drop|resolve) +([1-9]\d{0,5})")
_PLACE = re.compile(r"(.+?):(\d+)(?:-(\d+))?\s+(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """A review for fronts: a screen, or rows.

    Attributes:
        front: Where it is shown.
        loader: Finds the changes again.
        actions: Acts on them.
        review: What is shown first.
        reading: Reads what is shown then; None if `review` is complete.
    """

    front: Front
    loader: ReviewLoader
    actions: ReviewActions
    review: Review
    reading: asyncio.Task[Review] | None = None

    def make_screen(self) -> "Screen[None]":
        """The screen."""
        from agent_tui.features.review.screen import ReviewScreen

        return ReviewScreen(self.front, self.loader, self.actions, self.review, self.reading)

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
    if nothing := await show_changes(front, argument.strip()):
        front.say(nothing)


async def show_changes(front: Front, what: str) -> str:
    """Show the changes that `what` names (see `ReviewLoader.load`), until they are read.

    Returns:
        That there are none; empty if they were shown.
    """
    with _loading(front) as (loader, actions):
        reading = asyncio.create_task(loader.load(what))
        try:
            await asyncio.wait((reading,), timeout=_SHOWN_AFTER_S if front.screen else None)
            if not reading.done():
                begun = Review(what, what, (), ReviewState(), is_read=False)
                await front.show(ReviewPage(front, loader, actions, begun, reading))
                return ""
            found = reading.result()
        finally:
            reading.cancel()
        if found.changes or found.state.unsent():
            await front.show(ReviewPage(front, loader, actions, found))
            return ""
        return _nothing_words(front, found)


@command(
    _HINT,
    completions=lambda _front: _WHAT,
    refusal="The review cannot start while something runs. Esc or /abort stops it.",
    takes_path=True,
    gives_way=True,
)
async def review(front: Front, argument: str) -> None:
    """Have a helper review changes; /diff shows what it finds."""
    runtime = front.runtime
    with _loading(front) as (loader, _):
        found = await loader.load(argument.strip())
    if found.changes:
        await front.run(runtime.carry_out(lambda emit: review_by_helper(runtime, found, emit)))
    else:
        front.say(_nothing_words(front, found))


@command(
    "<file:line text | send | keep N>",
    completions=lambda _front: ("send", *(f"{act} " for act in _ACTS)),
    takes_path=True,
    gives_way=True,
)
async def comment(front: Front, argument: str) -> None:
    """Comment on lines of a file, send all comments, or decide on one that /diff lists."""
    with _loading(front) as (loader, actions):
        state = (await loader.load("session")).state
        if argument.strip() == "send":
            await _send(front, actions, state)
        elif (act := _ACT.fullmatch(argument.strip())) is not None:
            chosen = list(state.comments.values())[int(act[2]) - 1 : int(act[2])]
            if not chosen:
                raise UsageError(f"There is no comment {act[2]}.", "/diff lists them.")
            if act[1] == "keep" and chosen[0].state in ("sent", "resolved"):
                why = f"Comment {act[2]} is {chosen[0].state} already."
                raise UsageError(why, "/comment FILE:LINE TEXT writes another.")
            changed = chosen[0].model_copy(update={"state": _ACTS[act[1]]})
            actions.keep(state, changed)
            front.say(f"Comment {act[2]} on {changed.place}: {changed.state}.")
        elif (place := _PLACE.fullmatch(argument.strip())) is not None:
            change = await loader.present_file(place[1])
            first, last = int(place[2]), int(place[3] or place[2])
            made = comment_on(change, "new", first, last, place[4], actions.new_id(state))
            if not made.lines:
                raise UsageError(f"{change.name} has no line {first}.")
            actions.keep(state, made)
            front.say(f"Comment on {made.place}. /comment send sends {len(state.unsent())}.")
        else:
            front.say("Give a place and a text: /comment src/app.py:12 Why?")


async def _send(front: Front, actions: ReviewActions, state: ReviewState) -> None:
    if message := actions.write_message(state):
        await front.send(message)
    else:
        front.say("No comments to send.")


def _nothing_words(front: Front, found: Review) -> str:
    runtime = front.runtime
    has_git = nearest_git(runtime.conversation.cwd, runtime.services.person_environ) is not None
    is_session = found.what == "session" and has_git
    other = " /diff git shows what is not committed." if is_session else ""
    left_out = f" {found.left_out}" if found.left_out else ""
    return f"Nothing changed {found.title}.{other}{safe_text(left_out, keep_newlines=False)}"


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
    """The files with numbered hunks, and the numbered comments on each."""
    comments = list(enumerate(review.state.comments.values(), start=1))
    sections: list[PageSection] = []
    for number, change in enumerate(review.changes, start=1):
        own = [row for row in comments if row[1].path == change.name]
        rows = (*_hunk_rows(number, change), *_comment_rows(own))
        sections.append(PageSection(_heading(number, change), rows))
    known = {change.name for change in review.changes}
    if rows := tuple(_comment_rows([row for row in comments if row[1].path not in known])):
        sections.append(PageSection("Other files", rows))
    if review.left_out:
        sections.append(PageSection("", (("", safe_text(review.left_out, keep_newlines=False)),)))
    return Page(f"Changes {review.title}", tuple(sections))


def _heading(number: int, change: FileChange) -> str:
    added, removed = change.counts
    facts = [f"+{added} -{removed}", *filter(None, (change.kind, change.note))]
    return safe_text(f"{number}. {change.name} ({', '.join(facts)})", keep_newlines=False)


def _hunk_rows(number: int, change: FileChange) -> Iterator[Row]:
    for index, hunk in enumerate(change.hunks, start=1):
        yield "", f"Hunk {number}.{index}"
        for line in hunk.lines:
            text = safe_text(line.text.removesuffix("\n").removesuffix("\r"), keep_newlines=False)
            yield "", f"{line.new or line.old} {line.sign}{text}"


def _comment_rows(comments: Iterable[tuple[int, Comment]]) -> Iterator[Row]:
    for number, one in comments:
        if one.state != "dropped":
            by = f", by a {one.by}" if one.by else ""
            yield "", safe_text(f"Comment {number} on {one.place} ({one.state}{by}): {one.text}")
