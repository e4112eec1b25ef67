"""Finds the tool calls that a model wrote into the text of its reply."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agent_tui.features.weak_models.forms import (
    UnreadableError,
    begins_tagged,
    read_json,
    skip_space,
)
from agent_tui.features.weak_models.offered import (
    ARGUMENT_KEYS,
    NAME_KEYS,
    OfferedTools,
    WrittenCall,
)
from agent_tui.features.weak_models.provenance import SentTexts
from agent_tui.features.weak_models.scan import Candidate, explains_call, scan
from agent_tui.messages import ToolSpec

MAX_CALLS = 16
"""The most calls in one reply; a model that writes more is repeating itself."""
_MAX_ARGUMENT_CHARS = 1_000_000
_MAX_LOOK_UPS = 2 * MAX_CALLS

_INVENTED = re.compile(
    r"""
    ^ [ \t]* (?:
        <\|?/?(?:tool_(?:response|result|output)s?|function_results?|observation|result)\b
      | <[|｜]tool[▁_]outputs?
      | <\|(?:im_start|start_header_id|user|observation|start)\|> | <start_of_turn>
      | \[TOOL_RESULTS\]
      | ```[ ]*(?:output|tool_output|console|result)\b
      | [*_#>\[ ]* (?:(?:tool|command|function|terminal|expected|assuming)[ ])?
        (?:output|results?|response|observation|tool[ _]response) [\]*_]* [ ]* : [*_]*
    )
    """,
    re.X | re.I | re.M,
)


_MEANT = re.compile(
    rf"""
    ["'](?:{"|".join(NAME_KEYS)})["'] \s*:\s* ["'](?P<json>[\w.:-]{{1,80}})["'] \s*,\s*
        ["'](?:{"|".join(ARGUMENT_KEYS)})["'] \s*:
  | <(?:function|invoke)(?:=|\s+name=) \s*["']?(?P<element>[\w.:-]{{1,80}})["']?\s*>
        \s*(?:<parameter|\{{)
    """,
    re.X | re.I,
)
"""Signs that a call was meant, and of which tool."""

_MAX_HEAD_CHARS = 300


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call that was meant but cannot be run; the model is told instead of left waiting.

    Attributes:
        name: The tool as it was named, whether or not it was offered.
        written: What the model wrote, from the call's JSON on or with the words around it: never
            the arguments of an offered tool.
        problem: Why it is not run, unless its JSON is unreadable.
    """

    name: str
    written: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WrittenReply:
    """A reply split into its parts.

    Attributes:
        text: What stays visible; the exact reply if it holds no calls.
        calls: The calls to run, in order.
        refused: If there is nothing to run, the first call that was broken, named a tool that is
            not offered, or may be only an example. It stays visible too.
    """

    text: str
    calls: tuple[WrittenCall, ...] = ()
    refused: RefusedCall | None = None


_MAY_BE_AN_EXAMPLE = (
    "it looked like an example. To call the tool, write the call alone, with no text before or "
    "after it"
)


@dataclass(slots=True)
class _Kept:
    """The candidates that are calls, and where the model's invented results begin."""

    candidates: list[Candidate] = field(default_factory=list[Candidate])
    end: int = 0


def read_calls(text: str, tools: Sequence[ToolSpec], sent: SentTexts) -> WrittenReply:
    """The calls in `text`, and the remaining text.

    A call counts if it is made and not just shown: see `scan` for where it may be, and `SentTexts`
    for copies. Four rules consider the reply as a whole:

    - After a call between tags, which models are trained to write, prose may follow and stays.
      After one in a fence or in bare JSON only a remark may ("This lists the files.",
      which is common), or a few words about the call; otherwise it may be an example.
    - A call without tags that may be only an example does not run, and the model is told: one
      that meant it writes it again.
    - What pretends to be the answer to a call ("Output:", ``<tool_response>``, the user's next
      turn) is dropped with everything after it: calls in it rest on an invention, and as text
      it would precede the real result.
    - The same call twice is a stutter and runs once; calls beyond `MAX_CALLS` do not run.

    Args:
        text: The whole visible text of a reply, thinking left out.
        tools: What the model was offered.
        sent: What it was sent.
    """
    offered = OfferedTools(tools)
    found = scan(text, offered)
    kept = _without_inventions(text, _not_copied(text, found.candidates, sent))
    plain = [candidate for candidate in kept.candidates if not candidate.is_tagged]
    calls = [call for candidate in plain for call in candidate.calls]
    unclear = found.unclear
    if plain and explains_call(_prose_after(text, plain[0], kept), calls):
        unclear = plain[0]
        kept = _without_inventions(text, [c for c in kept.candidates if c.is_tagged])
    if kept.candidates:
        return _take_apart(text, kept)
    refused = _find_refused(text, found.refused_at, offered, sent) or _only_call(
        text, offered, sent
    )
    if refused is None and unclear is not None and _not_copied(text, [unclear], sent):
        refused = RefusedCall(unclear.calls[0].name, text.strip(), _MAY_BE_AN_EXAMPLE)
    return WrittenReply(text, refused=refused)


def _not_copied(text: str, candidates: Iterable[Candidate], sent: SentTexts) -> list[Candidate]:
    """Those of `candidates` that the model did not copy.

    Each look-up goes through everything that was sent, so there are only so many of them.
    """
    made: list[Candidate] = []
    was_sent: dict[str, bool] = {}
    for candidate in candidates:
        written = text[candidate.start : candidate.end]
        if len(candidate.calls) > MAX_CALLS or len(written) > _MAX_ARGUMENT_CHARS:
            continue
        if written not in was_sent:
            if len(was_sent) == _MAX_LOOK_UPS:
                break
            was_sent[written] = any(sent.hold(call, written) for call in candidate.calls)
        if not was_sent[written]:
            made.append(candidate)
    return made


def _find_refused(
    text: str, at: int | None, offered: OfferedTools, sent: SentTexts
) -> RefusedCall | None:
    """The call at `at` if it is one: without tags only of an offered tool, and not copied."""
    meant = None if at is None else _MEANT.search(text, at, at + _MAX_HEAD_CHARS)
    if at is None or meant is None:
        return None
    name, written = meant["json"] or meant["element"], text[at:]
    _, bracket, rest = written.partition("{")
    tool = offered.find_tool(name)
    if tool is None and not begins_tagged(text, at):
        return None
    named = tool.name if tool else name
    if sent.hold(WrittenCall(named, {}), written):
        return None
    return RefusedCall(named, bracket + rest if bracket else written)


_FENCED = re.compile(r"```(?:json|tool_call)?[ \t]*\n(?P<body>.*)\n```", re.S | re.I)


def _only_call(text: str, offered: OfferedTools, sent: SentTexts) -> RefusedCall | None:
    """The call of a tool that was not offered, where the reply is nothing else."""
    whole = text.strip()
    if fenced := _FENCED.fullmatch(whole):
        whole = fenced["body"].strip()
    meant = _MEANT.search(whole, 0, _MAX_HEAD_CHARS)
    if meant is None or not meant["json"] or offered.find_tool(meant["json"]):
        return None
    if not whole.startswith("{", skip_space(whole, meant.end())):
        return None
    try:
        _, end = read_json(whole, 0)
    except UnreadableError:
        return None
    if end < len(whole) or sent.hold(WrittenCall(meant["json"], {}), whole):
        return None
    return RefusedCall(meant["json"], whole)


def _without_inventions(text: str, candidates: list[Candidate]) -> _Kept:
    """The candidates up to the first invented answer after one of them."""
    kept = _Kept(end=len(text))
    limits = [*(candidate.start for candidate in candidates[1:]), len(text)]
    for candidate, limit in zip(candidates, limits, strict=False):
        kept.candidates.append(candidate)
        if invented := _INVENTED.search(text, candidate.end, limit):
            kept.end = invented.start()
            break
    return kept


def _prose_after(text: str, first: Candidate, kept: _Kept) -> str:
    later = [c for c in kept.candidates if c.start >= first.end]
    starts = [*(c.start for c in later), kept.end]
    ends = [first.end, *(c.end for c in later)]
    pieces = [text[end:start].strip() for end, start in zip(ends, starts, strict=True)]
    return "\n".join(piece for piece in pieces if piece)


def _take_apart(text: str, kept: _Kept) -> WrittenReply:
    calls: dict[str, WrittenCall] = {}
    pieces: list[str] = []
    at = 0
    for candidate in kept.candidates:
        if len(calls) + len(candidate.calls) > MAX_CALLS:
            break
        for call in candidate.calls:
            calls.setdefault(_key(call), call)
        piece = text[at : candidate.start]
        pieces.append(piece.strip() if at else piece.rstrip())
        at = candidate.end
    pieces.append(text[at : kept.end].strip() if at else text)
    left = "\n\n".join(piece for piece in pieces if piece)
    return WrittenReply(left, tuple(calls.values()))


def _key(call: WrittenCall) -> str:
    return f"{call.name} {json.dumps(call.arguments, sort_keys=True)}"
