"""Everything about the rules of one project: what to offer, what was answered, what is outdated."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from agent_tui.agent.prompt.context_files import ContextFile
from agent_tui.features.rules.answers import (
    AnsweredQuote,
    AnsweredRule,
    AnswerFile,
    RuleAnswer,
    RuleAnswers,
)
from agent_tui.features.rules.cache import CorrectionCache
from agent_tui.features.rules.offers import (
    Offer,
    ProjectCorrections,
    SessionSource,
    find_offers,
)
from agent_tui.features.rules.reading import read_corrections
from agent_tui.features.rules.written_rules import (
    Contradiction,
    contradictions,
    said_later,
    unwritten,
    written_rules,
)
from agent_tui.paths import project_dir
from agent_tui.permissions.project_files import project_folders
from agent_tui.safe_paths import follow_links
from agent_tui.sessions.entries import milliseconds, timestamp_now
from agent_tui.sessions.importers.import_session import import_source
from agent_tui.sessions.lineage.known_session import KnownSession
from agent_tui.sessions.listing import SessionSummary, session_files
from agent_tui.sessions.store import SessionStore

LineDate: TypeAlias = Callable[[Path, int], Awaitable[str]]
"""When a line of a file was committed, ISO 8601; empty if unknown."""

_CACHE = "corrections.sqlite"


@dataclass(frozen=True, slots=True)
class RuleReview:
    """What the sessions of a project say about its rules.

    Attributes:
        offers: Rules without an answer, the newest first.
        answers: What was answered, and whether offers are off.
        contradictions: Rules in files that later words may contradict.
        sessions: How many sessions were read.
    """

    offers: tuple[Offer, ...]
    answers: RuleAnswers
    contradictions: tuple[Contradiction, ...]
    sessions: int


def answer_file(cwd: Path) -> AnswerFile:
    """The file with the answers about the project around `cwd`."""
    return AnswerFile(project_dir(project_folders(cwd)[0]) / "rules.json")


def review_rules(
    store: SessionStore,
    cwd: Path,
    files: Iterable[ContextFile],
    own: KnownSession | None = None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> RuleReview:
    """Read the sessions of the project around `cwd`, and compare them with its rules. Blocking.

    These are the sessions that work in its repository or, without one, in `cwd` or below. Sessions
    that the user did not make, such as those of scripts, are left out.

    Args:
        store: The sessions.
        cwd: The workspace.
        files: The instruction files in force.
        own: The present conversation, whose entries are known.
        is_cancelled: Called before each file.
    """
    said, sessions = _read_sessions(store, cwd, own, is_cancelled)
    rules = [rule for file in files for rule in written_rules(file.path, file.text)]
    answers = answer_file(cwd).read()
    offers = unwritten(find_offers(said), rules, said.weights)
    open_offers = [offer for offer in offers if not _is_answered(offer, answers)]
    found = tuple(contradictions(rules, said))
    return RuleReview(tuple(open_offers), answers, found, sessions)


def _read_sessions(
    store: SessionStore, cwd: Path, own: KnownSession | None, is_cancelled: Callable[[], bool]
) -> tuple[ProjectCorrections, int]:
    said, sessions = ProjectCorrections(), 0
    root, listed = Path(follow_links(str(project_folders(cwd)[0]))), store.list()
    made = {one.path: one for one in listed if _is_own(one) and _works_below(one, root)}
    if own is not None and own.path is not None:
        made.pop(own.path, None)
    if made:
        cache = CorrectionCache(store.root / _CACHE)
        cache.forget_missing(one.path for one in listed)
        for path, imported_from, found in cache.read(session_files(made), is_cancelled):
            said.add(_source(made[path], imported_from), found)
            sessions += 1
    if own is not None and not own.header.origin and own.header.pulled_from is None:
        source = SessionSource(own.id, "this session", import_source(own.entries))
        said.add(source, read_corrections(own.entries))
        sessions += 1
    return said, sessions


def _is_own(session: SessionSummary) -> bool:
    """Whether the user talked in `session`: no helper, and nobody who pushed it."""
    return not session.origin and not session.pulled_from


def _works_below(session: SessionSummary, root: Path) -> bool:
    """Whether a session works in `root` or below it."""
    return session.cwd.is_absolute() and Path(follow_links(str(session.cwd))).is_relative_to(root)


def _source(session: SessionSummary, imported_from: str) -> SessionSource:
    return SessionSource(session.id, session.name or session.first_prompt, imported_from)


def _is_answered(offer: Offer, answers: RuleAnswers) -> bool:
    """Whether the user answered an offer with one of the same quotes."""
    answered = {(quote.at, quote.sentence) for answer in answers.answers for quote in answer.quotes}
    return any((quote.correction.at, quote.sentence) in answered for quote in offer.quotes)


def answered_rule(
    offer: Offer, answer: RuleAnswer, line: str = "", file: str = "", file_was_from: str = ""
) -> AnsweredRule:
    """The answer to `offer` as it is stored.

    Args:
        offer: What was offered.
        answer: The answer.
        line: The line as it was written; empty for the offered one.
        file: The file that it was added to; empty for none.
        file_was_from: When that file was last changed before; empty if it is new.
    """
    quotes = tuple(
        AnsweredQuote(at=quote.correction.at, sentence=quote.sentence) for quote in offer.quotes
    )
    return AnsweredRule(
        line=line or offer.text,
        answer=answer,
        at=timestamp_now(),
        file=file,
        file_was_from=file_was_from,
        quotes=quotes,
    )


async def confirmed(
    found: Sequence[Contradiction], answers: RuleAnswers, committed_at: LineDate
) -> tuple[Contradiction, ...]:
    """Those of `found` whose words are newer than the rule.

    A rule is as old as the user's answer that added it or its commit. If neither is known, it is as
    old as the last change of its file that no answer made.

    Args:
        found: The contradictions.
        answers: What the user answered.
        committed_at: Asks git.
    """
    added = {answer.line: answer.at for answer in answers.answers if answer.answer == "yes"}
    later: list[Contradiction] = []
    for one in found:
        rule = one.rule
        written_at = added.get(rule.text) or await committed_at(rule.path, rule.line)
        if said_later(one, written_at or _changed_by_others(rule.path, answers)):
            later.append(one)
    return tuple(later)


def _changed_by_others(path: Path, answers: RuleAnswers) -> str:
    """When the file was last changed, apart from the lines that answers added; empty if unknown."""
    changed = changed_at(path)
    for answer in reversed(answers.answers):
        if answer.file == str(path) and milliseconds(answer.at) >= milliseconds(changed):
            changed = answer.file_was_from or changed
    return changed


def changed_at(path: Path) -> str:
    """When the file was last changed, ISO 8601; empty if it does not exist."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat()
    except OSError:
        return ""
