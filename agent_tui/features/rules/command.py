"""Rules that the user's corrections suggest: offered, answered and added to AGENTS.md."""

import asyncio
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.agent.prompt.context_files import (
    add_line,
    project_file,
    text_of,
    why_not_obeyed,
    with_line,
)
from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import (
    Choice,
    Front,
    Page,
    PageSection,
    Question,
    Row,
    TextQuestion,
)
from agent_tui.commands.core.short_words import count_text, file_text, task_title
from agent_tui.commands.instructions import put_in_force
from agent_tui.errors import ConfigError
from agent_tui.features.rules.answers import RuleAnswers
from agent_tui.features.rules.events import RuleOffered
from agent_tui.features.rules.offers import Offer, Quote
from agent_tui.features.rules.review import (
    LineDate,
    RuleReview,
    answer_file,
    answered_rule,
    changed_at,
    confirmed,
    review_rules,
)
from agent_tui.features.rules.settings import RuleSettings
from agent_tui.features.rules.written_rules import Contradiction
from agent_tui.permissions.trust import FolderTrust
from agent_tui.safe_text import printable_line
from agent_tui.sessions.lineage.chain import snapshot
from agent_tui.tools.git.blame import Blame
from agent_tui.tools.processes.keeper import ProcessKeeper

_Answer: TypeAlias = Literal["yes", "edit", "no", "never"]

_ANSWERS: tuple[Choice[_Answer], ...] = (
    Choice("yes", "yes: add the line", "y"),
    Choice("edit", "edit it first", "e"),
    Choice("no", "no: don't offer it again", "n"),
    Choice("never", "never: offer no rules in this project", "v"),
)
_NOTHING = (
    "Nothing to offer. A rule is offered when you made the same correction on two occasions "
    "after the model changed files or ran commands."
)
_OFF = "Rules are no longer offered in this project. /rules on offers them again."
_ON = "Rules are offered in this project again."
_HOW = (
    ("/rules", "answer what is offered"),
    ("/rules list", "this page"),
    ("/rules off", "offer nothing in this project; /rules on offers again"),
)
_MOST_QUOTES = 4
_MOST_CHARS = 160
_MENTION = re.compile(r"(?<![\w`])@([^\s`]*[^\s`,.;:!?)])")
"""A name after ``@``, which an instruction file would include."""


def _completions(_front: Front) -> Iterator[Completion]:
    yield Completion("list", "what is offered, answered and outdated")
    yield Completion("off", "offer no rules in this project")
    yield Completion("on", "offer rules in this project again")


@command("[list | on | off]", completions=_completions)
async def rules(front: Front, argument: str) -> None:
    """Add rules that you stated more than once."""
    match argument.strip():
        case "":
            await _answer_offers(front)
        case "list":
            await _show(front, await _review(front))
        case "on" | "off" as word:
            is_off = word == "off"
            file = answer_file(front.runtime.conversation.cwd)
            await asyncio.to_thread(file.switch, is_off=is_off)
            front.say(_OFF if is_off else _ON)
            front.show_events((RuleOffered("", 0),))
        case other:
            front.say(f"/rules takes list, on or off, not {other}.", "warning")


async def find_offers(front: Front) -> RuleOffered:
    """Look for rules to offer in the project's sessions; none are there if it is switched off."""
    services = front.runtime.services
    if not (services.settings.of(RuleSettings).offer_rules and services.keeps_sessions):
        return _offered(())
    review = await _review(front)
    return _offered(() if review.answers.is_off else review.offers)


def _offered(offers: Sequence[Offer]) -> RuleOffered:
    return RuleOffered(printable_line(offers[0].text, _MOST_CHARS) if offers else "", len(offers))


async def _review(front: Front) -> RuleReview:
    """Read the project's sessions in a thread, which ends early if this task is cancelled."""
    conversation, services = front.runtime.conversation, front.runtime.services
    is_cancelled = threading.Event()
    try:
        review = await asyncio.to_thread(
            review_rules,
            services.store,
            conversation.cwd,
            conversation.context_files,
            snapshot(conversation.log),
            is_cancelled.is_set,
        )
    finally:
        is_cancelled.set()
    committed_at = line_dates(services.trust, services.environ)
    found = await confirmed(review.contradictions, review.answers, committed_at)
    return replace(review, contradictions=found)


def line_dates(trust: FolderTrust, environ: Mapping[str, str]) -> LineDate:
    """Asks git when a line was committed, in folders where git may run."""
    keeper = ProcessKeeper()

    async def committed_at(path: Path, line: int) -> str:
        if not await asyncio.to_thread(trust.may_run_git, path.parent):
            return ""
        blame = Blame(keeper, path, environ)
        committed = (await blame.committed()).decode("utf-8", "replace").split("\n")
        present = (await asyncio.to_thread(text_of, path)).split("\n")
        if committed[line - 1 : line] != present[line - 1 : line]:
            return ""  # git numbers the lines of the committed file
        commit = (await blame.commits_of([line])).get(line)
        return commit.time if commit is not None else ""

    return committed_at


async def _answer_offers(front: Front) -> None:
    """Ask about each open offer; if there is none, show what was answered."""
    review = await _review(front)
    if not (review.offers and front.can_ask):
        await _show(front, review)
        return
    is_open = list(review.offers)
    for offer in review.offers:
        against = [one for one in review.contradictions if one.quote in offer.quotes]
        is_answered = await _answer(front, offer, against)
        if is_answered is None:
            break
        is_open.remove(offer)
        if not is_answered:
            is_open.clear()
            break
    front.show_events((_offered(is_open),))


async def _answer(front: Front, offer: Offer, against: Sequence[Contradiction]) -> bool | None:
    """Ask about one offer and act on the answer.

    Returns:
        None if it is left open, false if nothing may be offered any more, else true.
    """
    cwd = front.runtime.conversation.cwd
    answers = answer_file(cwd)
    line = proposed_line(offer.text)
    while True:
        file = await asyncio.to_thread(project_file, cwd)
        question = await asyncio.to_thread(rule_question, offer, line, file, cwd, against)
        if not front.can_pick:  # it takes no text either
            choices = tuple(one for one in question.choices if one.value != "edit")
            question = replace(question, choices=choices)
        match await front.ask(question):
            case "yes":
                was_from = await asyncio.to_thread(changed_at, file)
                await _write(front, file, line)
                answer = answered_rule(offer, "yes", line, str(file), was_from)
                await asyncio.to_thread(answers.add, answer)
                return True
            case "edit":
                line = await _edited(front, line)
            case "no":
                await asyncio.to_thread(answers.add, answered_rule(offer, "no"))
                return True
            case "never":
                await asyncio.to_thread(answers.switch, is_off=True)
                front.say(_OFF)
                return False
            case _:
                return None


async def _edited(front: Front, line: str) -> str:
    question = TextQuestion(
        "The line for AGENTS.md",
        "You see the change before it is written.",
        line,
        "keeps the line",
        is_edited=True,
    )
    written = await front.ask_text(question)
    return printable_line(written or "", 1_000) or line


async def _write(front: Front, file: Path, line: str) -> None:
    """Add `line` to `file`, and apply it.

    Raises:
        ConfigError: The file would be ignored, or cannot be written.
    """
    if why := await asyncio.to_thread(why_not_obeyed, file, front.runtime.services.trust):
        raise ConfigError(f"{file} is not in effect: {why}.", "Use /trust, then /rules again.")
    is_new = not await asyncio.to_thread(file.exists)
    await asyncio.to_thread(add_line, file, line)
    await put_in_force(front, file, "Created" if is_new else "Added to", f": {line}")


def proposed_line(text: str) -> str:
    """`text` as a line of an instruction file, where ``@name`` would include a file."""
    return _MENTION.sub(r"`\1`", printable_line(text, 1_000))


def rule_question(
    offer: Offer, line: str, file: Path, cwd: Path, against: Sequence[Contradiction] = ()
) -> Question[_Answer]:
    """The question whether to add `line` to `file`. Reads the file.

    Args:
        offer: What the user said.
        line: The line as it would be written.
        file: The instruction file, which need not exist.
        cwd: The workspace.
        against: Rules in files that the quotes contradict.
    """
    shown, present = file_text(file, cwd), text_of(file)
    quotes = offer.quotes[-_MOST_QUOTES:]
    more = len(offer.quotes) - len(quotes)
    said = f"You said (and {count_text(more, 'more time')}):" if more else "You said:"
    facts = [
        shown if file.exists() else f"{shown} (new file)",
        *_change(present, with_line(present, line)),
        "",
        said,
        *(f"  {'  '.join(quote_row(quote))}" for quote in reversed(quotes)),
        *(f"This contradicts {': '.join(rule_row(one, cwd))}" for one in against),
    ]
    title = f"Add this line to {shown}?"
    return Question(title, tuple(facts), _ANSWERS, is_grave=True, unanswered="not now; /rules asks")


def _change(before: str, after: str) -> Iterator[str]:
    """The last line of a file that stays, and the lines that are added after it, numbered."""
    old, new = before.splitlines(), after.splitlines()
    kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    width = len(str(len(new)))
    for number, line in enumerate(new[max(kept - 1, 0) :], start=max(kept, 1)):
        sign = "+" if number > kept else " "
        yield f"  {number:>{width}} {sign} {printable_line(line, _MOST_CHARS)}".rstrip()


def quote_row(quote: Quote) -> Row:
    """When something was said, the words, and where that was."""
    source = quote.source
    title = task_title(source.name) or source.id[:8]
    origin = f", imported from {source.imported_from}" if source.imported_from else ""
    said = printable_line(quote.sentence, _MOST_CHARS)
    return quote.correction.at[:10], f"“{said}” · {printable_line(title)}{origin}"


def rule_row(one: Contradiction, cwd: Path) -> Row:
    """The place of a contradicted rule, and its words."""
    place = f"{file_text(one.rule.path, cwd)}:{one.rule.line}"
    return place, printable_line(one.rule.text, _MOST_CHARS)


async def _show(front: Front, review: RuleReview) -> None:
    await front.show(rules_page(review, front.runtime.conversation.cwd))


def rules_page(review: RuleReview, cwd: Path) -> Page:
    """What is offered, what later words contradict, and what was answered, with the quotes."""
    sections = [
        PageSection(
            f"Offered: {printable_line(offer.text, _MOST_CHARS)}",
            tuple(quote_row(quote) for quote in offer.quotes),
        )
        for offer in review.offers
    ]
    if not review.offers:
        sections.append(PageSection("Offered", (("", _NOTHING),)))
    sections += [
        PageSection(
            "Contradicted by what you said later",
            (rule_row(one, cwd), quote_row(one.quote)),
        )
        for one in review.contradictions
    ]
    if answered := tuple(_answer_rows(review.answers, cwd)):
        sections.append(PageSection("Answered", answered))
    if review.answers.is_off:
        sections.append(PageSection("", (("", _OFF),)))
    sections.append(PageSection("How to change it", _HOW))
    read = count_text(review.sessions, "session")
    return Page(f"Rules from your corrections in {read}", tuple(sections))


def _answer_rows(answers: RuleAnswers, cwd: Path) -> Iterator[Row]:
    for answer in reversed(answers.answers):
        place = f", in {file_text(Path(answer.file), cwd)}" if answer.file else ""
        line = printable_line(answer.line, _MOST_CHARS)
        yield f"{answer.at[:10]}, {answer.answer}{place}", line
