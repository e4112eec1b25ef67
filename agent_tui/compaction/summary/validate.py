"""Whether what a model sent can stand for a conversation."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agent_tui.compaction.model_client import ModelReply
from agent_tui.compaction.summary.degeneration import (
    is_echo,
    is_noise,
    is_repetitive,
    says_nothing,
)
from agent_tui.compaction.summary.prompts import prompt_words
from agent_tui.compaction.summary.reply import plain_text, section_bodies
from agent_tui.compaction.summary.source import SummarySource
from agent_tui.compaction.summary.templates import Template
from agent_tui.compaction.transcript.text import escape_tags
from agent_tui.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class AcceptedSummary:
    """A document in the form asked for."""

    text: str


@dataclass(frozen=True, slots=True)
class LongSummary:
    """A document with nothing wrong but its size."""

    text: str
    problem: str


@dataclass(frozen=True, slots=True)
class ThinSummary:
    """A document that is true as far as it goes, but does not say all it must.

    Sections that were no use are ``(none)`` in `text`.
    """

    text: str
    problem: str


@dataclass(frozen=True, slots=True)
class RefusedSummary:
    """Why a reply cannot be used at all."""

    problem: str


Judgement: TypeAlias = AcceptedSummary | LongSummary | ThinSummary | RefusedSummary
"""Each `problem` is a clause for the model and the person: "it was empty"."""


class SummaryJudge:
    """Tells what can stand for a conversation from what cannot.

    Args:
        template: The form asked for.
        source: What the summary has to be about.
        counter: Measures documents.
        max_tokens: The size above which a document is too long.
    """

    def __init__(
        self, template: Template, source: SummarySource, counter: TokenCounter, max_tokens: int
    ) -> None:
        self._template = template
        self._source = source
        self._counter = counter
        self._max_tokens = max_tokens
        self._prompt = prompt_words(template)

    def judge(self, reply: ModelReply) -> Judgement:
        """The document in `reply` in exactly the form of the template, or what is wrong.

        Wrapping (reasoning tags, a code fence, a remark before the first heading) is taken off
        and headings that are not core are added as ``(none)``. Sections that say the prompt back,
        go round in circles or are noise are left out. Refused is what calls a tool, says nothing,
        or names mostly files that never occurred; thin is what was cut off, lacks a core section or
        the goal, or is far too short for what it stands for.
        """
        if reply.called_tools or reply.finish == "toolUse":
            return RefusedSummary("it called a tool")
        if reply.finish == "contentFilter":
            return RefusedSummary("the provider's content filter stopped it")
        bodies = section_bodies(reply.text, self._template)
        if not bodies:
            return RefusedSummary(self._why_no_sections(reply))
        if reply.finish == "length":
            bodies = _without_the_cut(bodies)
        useful = {heading: "" if self._is_no_use(b) else b for heading, b in bodies.items()}
        problem = self._why_useless(bodies, useful)
        if problem:
            return RefusedSummary(problem)
        return self._rate(reply, bodies, useful)

    def _rate(
        self, reply: ModelReply, bodies: Mapping[str, str], useful: Mapping[str, str]
    ) -> Judgement:
        document = escape_tags(self._template.render(useful))
        if reply.finish == "length":
            return ThinSummary(document, "it was cut off by the length limit")
        if missing := self._missing(useful):
            said = {heading for heading in missing if bodies.get(heading)}
            return ThinSummary(document, _why_missing(missing, said))
        least_words = self._source.least_words
        words = sum(len(body.split()) for body in useful.values() if not says_nothing(body))
        if words < least_words:
            return ThinSummary(document, f"it said too little: {words} words for all that work")
        size = self._counter.count_text(document)
        if size > self._max_tokens:
            limit = f"it was {size} tokens long; the limit is {self._max_tokens}"
            return LongSummary(document, limit)
        return AcceptedSummary(document)

    def _why_no_sections(self, reply: ModelReply) -> str:
        text = plain_text(reply.text)
        if reply.finish == "length":
            return "it was cut off by the length limit"
        if not text:
            return "it was empty"
        if sounds_like_refusal(text):
            return "it was a refusal"
        return f"it lacked {_quoted(self._core)}"

    def _why_useless(self, bodies: Mapping[str, str], useful: Mapping[str, str]) -> str:
        """What is wrong with all of it; empty if some of it is of use."""
        said = [body.strip() for body in bodies.values() if not says_nothing(body)]
        if is_repetitive(_joined(bodies)) or len(said) - len(set(said)) > _FORGIVEN_COPIES:
            return "it repeated itself"
        text = _joined(useful)
        if not text:
            return "it only repeated the form and its rules" if said else "it said nothing"
        if invented := self._source.invented_paths(text):
            shown = ", ".join(invented[:_SHOWN_PATHS])
            return f"most files it named do not occur in the conversation, such as {shown}"
        return ""

    def _is_no_use(self, body: str) -> bool:
        return is_noise(body) or is_repetitive(body) or is_echo(body, self._prompt)

    def _missing(self, bodies: Mapping[str, str]) -> tuple[str, ...]:
        """Core sections without a body, and the goal's where it says that there is none."""
        missing = self._template.missing_core(bodies)
        goals = (s.heading for s in self._template.sections if "goal" in s.slots)
        unsaid = (heading for heading in goals if says_nothing(bodies.get(heading, "")))
        return tuple(dict.fromkeys((*missing, *unsaid)))

    @property
    def _core(self) -> tuple[str, ...]:
        return self._template.missing_core({})


_SHOWN_PATHS = 3
_FORGIVEN_COPIES = 1
"""The next step may be what is in progress."""

_REFUSAL = re.compile(
    r"\b(i['’]?m sorry|i am sorry|i can(?:no|['’]?)t|i['’]?m (?:not able|unable)|i am unable"
    r"|i won['’]?t|as an ai)\b",
    re.IGNORECASE,
)


def sounds_like_refusal(text: str) -> bool:
    """Whether the beginning of `text` says that its writer will not do what was asked."""
    return bool(_REFUSAL.search(text[:400]))


def _joined(bodies: Mapping[str, str]) -> str:
    return "\n".join(body for body in bodies.values() if not says_nothing(body))


def _quoted(headings: Iterable[str]) -> str:
    return ", ".join(f'"{heading}"' for heading in headings)


def _why_missing(missing: Sequence[str], said: Collection[str]) -> str:
    if not said:
        return f"it lacked {_quoted(missing)}"
    return f"it said nothing under {_quoted(missing)}"


def _without_the_cut(bodies: Mapping[str, str]) -> dict[str, str]:
    """All but the last line, which the cut may have made into something else."""
    *whole, last = bodies.items()
    heading, body = last
    return {**dict(whole), heading: body.rpartition("\n")[0]}


def fit_to_tokens(
    document: str, *, template: Template, counter: TokenCounter, max_tokens: int
) -> str:
    """`document` cut to `max_tokens` by leaving out lines, with all headings still there.

    Lines go from the longest section first. In a list the first lines (where it began) and the
    last ones (where it stands) say most, so they go from one third down.
    """
    bodies = {h: body.split("\n") for h, body in template.parse(document).items() if h}
    costs = {h: [counter.count_text(line) + 1 for line in lines] for h, lines in bodies.items()}
    sizes = {heading: sum(cost) for heading, cost in costs.items()}
    total = counter.count_text(template.render({})) + sum(sizes.values())
    while total > max_tokens and any(costs.values()):
        longest = max((h for h in sizes if costs[h]), key=lambda heading: sizes[heading])
        third = len(bodies[longest]) // 3
        cost = costs[longest].pop(third)
        bodies[longest].pop(third)
        sizes[longest] -= cost
        total -= cost
    return template.render({heading: "\n".join(lines) for heading, lines in bodies.items()})
