"""The model's own sentences that give a reason: decisions and why, and what did not work."""

import re
from collections.abc import Iterable, Sequence

from agent_tui.compaction.ledger.pinned import sentences_of
from agent_tui.compaction.sections.history import Done, Event, Replied
from agent_tui.compaction.sections.task import plan_in
from agent_tui.omissions import SENTENCE_END, one_line
from agent_tui.tokens import TokenCounter

_REASON = re.compile(
    r"\b(?:because|since|instead(?: of)?|rather than|so that|due to|which means|that means"
    r"|decided|turns out|root cause|caused by|the (?:real |actual )?(?:issue|problem|bug|reason"
    r"|cause|culprit|fix|trick|catch) (?:is|was|here)|to avoid|otherwise|must not|cannot|can['’]t"
    r"|does(?:n['’]t| not) (?:work|support|exist|handle|match|accept)"
    r"|did(?:n['’]t| not) (?:work|help)"
    r"|no longer|in order to|weil|damit|statt)\b",
    re.IGNORECASE,
)
_NO_SENTENCE = re.compile(
    r"^(?:\||>|`{3}|(?:(?:now|also|next|first|then|ok(?:ay)?|good|great|perfect)\b[,.!:]?\s*)*"
    r"(?:let me|let[’']s|let us|i[’']ll|i will)\b)|[{;,(]$|=>|^[\w.]+\(",
    re.IGNORECASE,
)
"""Table rows, quotations, code, and announcements of the next step."""

_FENCED = re.compile(r"^\s*```.*?^\s*```", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"[\w./-]+")
_IS_NAME = re.compile(r"_|/|\.\w|[a-z][A-Z]")
_LONGEST_NAME = 200
_LOOKED_AT_CHARS = 8_000
_SHORTEST, _LONGEST = 25, 500
_NEWEST_ACTIONS = 60
_MOST = 400


def reasons_in(text: str) -> list[str]:
    """The sentences of `text` that give a reason, as written."""
    plain = _FENCED.sub("", text)
    sentences = (part.strip().lstrip("-*• ").strip() for part in sentences_of(plain))
    return [
        " ".join(sentence.split())
        for sentence in sentences
        if _SHORTEST <= len(sentence) <= _LONGEST
        and _REASON.search(sentence)
        and not _NO_SENTENCE.search(sentence)
    ]


def all_findings(events: Iterable[Event], earlier: Sequence[str] = ()) -> tuple[str, ...]:
    """Every sentence with a reason, oldest first, starting with those from a parent session."""
    found = dict.fromkeys(earlier)
    for event in events:
        text = plan_in(event.output.action) if isinstance(event, Done) else ""
        text = event.text if isinstance(event, Replied) else text
        for sentence in reasons_in(text):
            found.pop(sentence, None)
            found[sentence] = None
    return tuple(found)[-_MOST:]


def names_in_use(events: Sequence[Event], texts: Iterable[str]) -> frozenset[str]:
    """Files and identifiers that the newest actions and `texts` mention."""
    actions = [event.output.action for event in events if isinstance(event, Done)]
    spoken = [f"{action.path} {action.command[:400]}" for action in actions[-_NEWEST_ACTIONS:]]
    return frozenset(name for text in (*spoken, *texts) for name in _names(text))


def findings_that_fit(
    findings: Sequence[str],
    *,
    in_use: frozenset[str],
    elsewhere: str,
    room_tokens: int,
    counter: TokenCounter,
) -> list[str]:
    """The findings to list, oldest first.

    Those about names in use have priority, then the newest of the others.

    Args:
        findings: Oldest first.
        in_use: See `names_in_use`.
        elsewhere: Text that is in the context anyway and is not repeated.
        room_tokens: Limit of all together.
        counter: Counts their tokens.
    """
    known = " ".join(elsewhere.split())
    ranked = sorted(
        enumerate(findings),
        key=lambda item: (bool(in_use & _names(item[1])), item[0]),
        reverse=True,
    )
    chosen: list[int] = []
    for at, sentence in ranked:
        if sentence in known:
            continue
        tokens = counter.count_text(sentence) + 3
        if tokens > room_tokens:
            continue
        chosen.append(at)
        room_tokens -= tokens
    return [f"- {findings[at]}" for at in sorted(chosen)]


def _names(text: str) -> frozenset[str]:
    """Words that look like names in code, and paths, also by their last part alone."""
    words = {word.strip("./-") for word in _WORD.findall(text[:_LOOKED_AT_CHARS])}
    names = {word for word in words if len(word) <= _LONGEST_NAME and _IS_NAME.search(word)}
    return frozenset(names | {name.rpartition("/")[2] for name in names})


def first_sentence(text: str, max_chars: int) -> str:
    """The beginning of `text` up to the end of its first sentence."""
    plain = text.strip()
    line = plain.partition("\n")[0]
    return one_line(SENTENCE_END.split(line, maxsplit=1)[0], max_chars)
