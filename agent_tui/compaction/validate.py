"""Whether what a model sent can stand for a conversation."""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent_tui.compaction.templates import NOTHING, Template
from agent_tui.compaction.transcript_text import escape_tags
from agent_tui.tokens import TokenCounter

FinishReason: TypeAlias = Literal["stop", "length", "toolUse", "contentFilter"]


@dataclass(frozen=True, slots=True)
class SummaryReply:
    """What came back for one request."""

    text: str
    finish: FinishReason
    called_tools: bool


@dataclass(frozen=True, slots=True)
class AcceptedSummary:
    """A document in the form asked for."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusedSummary:
    """Why a reply cannot be used, as a clause for the model and the person: "it was empty".

    `too_long` is the document if nothing but its size is wrong.
    """

    problem: str
    too_long: str = ""


def validate_summary(
    reply: SummaryReply, *, template: Template, counter: TokenCounter, max_tokens: int
) -> AcceptedSummary | RefusedSummary:
    """The document in `reply` in exactly the form of `template`, or what is wrong with it.

    Wrapping (reasoning tags, a code fence, a remark before the first heading) is taken off and
    headings that are not core are added as ``(none)``. Cut off by length, a tool call, a
    refusal, a missing core heading or one with nothing below, and too great a size are refused.
    """
    if reply.called_tools or reply.finish == "toolUse":
        return RefusedSummary("it called a tool")
    if reply.finish == "contentFilter":
        return RefusedSummary("the provider's content filter stopped it")
    if reply.finish == "length":
        return RefusedSummary("it was cut off by the length limit")
    text = unwrap(reply.text)
    if not text:
        return RefusedSummary("it was empty")
    bodies = {heading: body for heading, body in template.parse(text).items() if heading}
    core = [section.heading for section in template.sections if section.is_core]
    missing = template.missing_core(bodies)
    if missing and not bodies and _REFUSAL.search(text[:400]):
        return RefusedSummary("it was a refusal")
    if missing:
        return RefusedSummary("it lacked " + ", ".join(f'"{heading}"' for heading in missing))
    if all(_says_nothing(bodies[heading]) for heading in core):
        return RefusedSummary("it said nothing")
    document = escape_tags(template.render(bodies))
    size = counter.count_text(document)
    if size > max_tokens:
        problem = f"it was {size} tokens long, and {max_tokens} is the limit"
        return RefusedSummary(problem, too_long=document)
    return AcceptedSummary(document)


_REFUSAL = re.compile(
    r"\b(i['’]?m sorry|i am sorry|i can(?:no|['’]?)t|i['’]?m (?:not able|unable)|i am unable"
    r"|i won['’]?t|as an ai)\b",
    re.IGNORECASE,
)

_WRAPPINGS = (
    re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.IGNORECASE | re.DOTALL),
    re.compile(r"</?summary>", re.IGNORECASE),
)


def unwrap(text: str) -> str:
    """`text` without reasoning, ``<summary>`` tags and a code fence around the whole."""
    for wrapping in _WRAPPINGS:
        text = wrapping.sub("", text)
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        text = text.partition("\n")[2].removesuffix("```").strip()
    return text


def _says_nothing(body: str) -> bool:
    return body.strip("-*. \n").casefold() in (NOTHING, "none", "n/a", "")


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
