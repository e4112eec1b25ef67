"""The forms in which a message may stay: without repetition, its two ends, or one line."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from math import inf

from pydantic import JsonValue

from agent_tui.attachments import split_pastes
from agent_tui.compaction.ledger.pinned import find_rules
from agent_tui.compaction.sections.commands import is_looking_around
from agent_tui.compaction.sections.file_views import file_view
from agent_tui.compaction.tiers.describe import describe
from agent_tui.compaction.tiers.model import Content, Unit
from agent_tui.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    images_in,
)
from agent_tui.omissions import omission_mark, recall_mark
from agent_tui.sessions.actions import ActionKind, Output
from agent_tui.sessions.outputs import action_of
from agent_tui.tokens import TokenCounter

_SMALLEST_REPEATED_TOKENS = 60
"""Below this, a pointer is hardly smaller than the output it replaces."""


def pointers_to_newer(units: Sequence[Unit]) -> dict[int, str]:
    """The pointers that replace outputs made unnecessary by a later one, by position.

    A read becomes a pointer if a later successful read of the same file shows its lines, and so
    does an output that a later equal call repeats word for word, or that only showed what a later
    equal command shows as it is by then.
    """
    pointers: dict[int, str] = {}
    views: defaultdict[str, list[tuple[float, float, str]]] = defaultdict(list)
    seen: dict[tuple[str, str, bool, str], str] = {}
    for unit in reversed(units):
        output = unit.output
        if output is None:
            continue
        newer, remark = "", ""
        if output.action.kind == "read" and output.file_key:
            if (view := file_view(output)) is None:
                continue
            later = views[output.file_key]
            first, last = view.first, inf if view.is_whole else view.first + len(view.lines) - 1
            newer = next((entry for a, b, entry in later if a <= first and last <= b), "")
            remark = f"{output.action.path} was read again later, in {newer}"
            if not newer:
                later.append((first, last, unit.entry_id))
        elif unit.written_tokens >= _SMALLEST_REPEATED_TOKENS:
            found = seen.setdefault(_content_key(output), unit.entry_id)
            newer = found if found != unit.entry_id else ""
            ran = is_looking_around(output.action.command)
            same = "command ran again" if ran else "call gave the same output"
            remark = f"the same {same} later, in {newer}"
        if newer:
            pointers[unit.position] = f"({remark}) {recall_mark(unit.entry_id)}"
    return pointers


def _content_key(output: Output) -> tuple[str, str, bool, str]:
    """A key that is equal for the same call with the same output, or one that only shows."""
    command = output.action.command
    asked = command or json.dumps(output.action.arguments, sort_keys=True)
    shows = bool(command) and is_looking_around(command)
    return output.action.tool, asked, output.has_failed, "" if shows else output.text


_MOST_CHARS_A_TOKEN = 6
"""Prose and code have 3 to 5; runs of blanks have hundreds and would hide the text beside them."""

SLACK = 1.1
"""A piece may exceed the requested size by this factor."""
_LINE_SHARE = 4
"""A cut moves to the end of a line if that costs at most this fraction of a piece."""

_NOTE_ENDS = 3
"""A note that is cut keeps two ends, each of this fraction of its limit."""

_MARK_TOKENS = 20
"""Tokens of the mark for what was cut, with its id."""

_LEAST_PASTE_END_TOKENS = 12
"""A shorter end of a paste says nothing."""

_LONGEST_LIST = 40
_LIST_END = 10


def left_out_mark(tokens: int, entry_id: str) -> str:
    """The mark that replaces `tokens` tokens; `entry_id` has the original, unless it is empty."""
    mark = omission_mark(f"{tokens:,} tokens")
    return f"{mark} {recall_mark(entry_id)}" if entry_id else mark


_PART_OF_WORD = re.compile(r"\A\w{1,30}(?=\W)")
_PART_OF_WORD_AT_END = re.compile(r"(?<=\W)\w{1,30}\Z")


def keep_ends(
    text: str, *, tokens: int, end_tokens: int, entry_id: str, counter: TokenCounter
) -> str:
    """The beginning and end of `text`, about `end_tokens` each, and a line on what was removed.

    A single huge line is cut like any other text.

    Args:
        text: At least twice `end_tokens` long, or the result is no smaller.
        tokens: Size of `text`.
        end_tokens: Tokens kept at each end.
        entry_id: The entry with the original.
        counter: Counts the tokens of pieces.
    """
    chars = min(len(text) * end_tokens // max(tokens, 1), _MOST_CHARS_A_TOKEN * end_tokens)
    chars = min(max(chars, 1), len(text) // 2)
    head, tail = text[:chars], text[len(text) - chars :]
    head = head[: _fitting_chars(head, end_tokens, counter)]
    tail = tail[len(tail) - _fitting_chars(tail, end_tokens, counter) :]
    if len(head) - (line_end := head.rfind("\n") + 1) < len(head) // _LINE_SHARE:
        head = head[:line_end]
    else:
        head = _PART_OF_WORD_AT_END.sub("", head)
    if 0 < (line_start := tail.find("\n") + 1) < len(tail) // _LINE_SHARE:
        tail = tail[line_start:]
    else:
        tail = _PART_OF_WORD.sub("", tail)
    left_out = max(tokens - counter.count_text(head) - counter.count_text(tail), 0)
    start = "" if head.endswith("\n") else "\n"
    return f"{head}{start}{left_out_mark(left_out, entry_id)}\n{tail}"


def cut_pastes(
    text: str, typed: Sequence[str], *, most_tokens: int, entry_id: str, counter: TokenCounter
) -> str:
    """A user's message with each paste in about `most_tokens`: its two ends, or a mark alone.

    Args:
        text: The message.
        typed: Its typed parts, in order.
        most_tokens: Limit of each paste; one that is shorter than a mark stays.
        entry_id: The entry with the original.
        counter: Counts the tokens of parts.
    """
    shown: list[str] = []
    for part, is_pasted in split_pastes(text, typed):
        tokens = counter.count_text(part)
        if not is_pasted or tokens <= max(most_tokens, _MARK_TOKENS):
            shown.append(part)
        elif (ends := (most_tokens - _MARK_TOKENS) // 2) < _LEAST_PASTE_END_TOKENS:
            shown.append(f"\n{left_out_mark(tokens, entry_id)}\n")
        else:
            shown.append(
                keep_ends(part, tokens=tokens, end_tokens=ends, entry_id=entry_id, counter=counter)
            )
    return "".join(shown)


def _fitting_chars(piece: str, max_tokens: int, counter: TokenCounter) -> int:
    """The number of characters of `piece` to keep if it is denser than the whole text."""
    tokens = counter.count_text(piece)
    if tokens <= SLACK * max_tokens:
        return len(piece)
    return max(len(piece) * max_tokens // tokens, 1)


def without_thinking(message: AssistantMessage) -> tuple[TextContent | ToolCall, ...]:
    """The text and the calls of a reply, in their order."""
    return tuple(part for part in message.content if not isinstance(part, ThinkingContent))


def shorter_reply(
    unit: Unit,
    message: AssistantMessage,
    argument: int,
    note: int,
    counter: TokenCounter,
    *,
    spared: Collection[ActionKind] = (),
) -> Content:
    """A reply without thinking, with long notes cut and long arguments left out.

    Text written by arguments is in the file and can be read again. A note is the text beside a
    call.

    Args:
        unit: The message.
        message: The same as a reply.
        argument: Tokens; a longer text in the arguments becomes a line.
        note: Tokens; a longer text beside the calls keeps its two ends.
        counter: Counts the tokens of texts.
        spared: Calls whose arguments stay.

    Returns: None if nothing is shorter.
    """

    def shorten(part: TextContent | ToolCall) -> TextContent | ToolCall:
        if isinstance(part, ToolCall):
            stays = action_of(part).kind in spared
            return part if stays else without_long_texts(part, argument, unit.entry_id, counter)
        tokens, ends = counter.count_text(part.text), note // _NOTE_ENDS
        if tokens <= note:
            return part
        text = keep_ends(
            part.text, tokens=tokens, end_tokens=ends, entry_id=unit.entry_id, counter=counter
        )
        return part.model_copy(update={"text": text})

    shorter = tuple(map(shorten, without_thinking(message)))
    return shorter if shorter != message.content else None


def without_long_texts(
    call: ToolCall,
    max_tokens: int,
    entry_id: str,
    counter: TokenCounter,
    *,
    names: Collection[str] = (),
    told: str = "",
) -> ToolCall:
    """`call` with every text over `max_tokens` in its arguments replaced by one line.

    Arguments still fit the tools' schemas: texts stay texts, objects keep their keys; a very long
    list keeps its first and last items. Texts are never cut inside, as models copy such texts into
    files. With `names`, only texts in those arguments are replaced, at any depth. `told` precedes
    each line.
    """

    def shorten(value: JsonValue, name: str) -> JsonValue:
        match value:
            case str() if len(value) > max_tokens and (not names or name in names):
                tokens = counter.count_text(value)
                return told + left_out_mark(tokens, entry_id) if tokens > max_tokens else value
            case list() if len(value) > _LONGEST_LIST:
                return [*value[:_LIST_END], *value[-_LIST_END:]]
            case _:
                return value

    return replace_values(call, shorten)


def replace_values(call: ToolCall, replace: Callable[[JsonValue, str], JsonValue]) -> ToolCall:
    """`call` with each value in its arguments, at any depth, as `replace` makes it from its name.

    What is in a list has no name.
    """

    def walk(value: JsonValue, name: str = "") -> JsonValue:
        match replace(value, name):
            case list(items):
                return [walk(item) for item in items]
            case dict(fields):
                return {key: walk(item, key) for key, item in fields.items()}
            case other:
                return other

    arguments = {key: walk(value, key) for key, value in call.arguments.items()}
    return call if arguments == call.arguments else call.model_copy(update={"arguments": arguments})


_OUTPUT_END_TOKENS = 250
_PASTE_FACTOR = 4
_PASTE_END_TOKENS = 1_000
_ENDS_ARGUMENT_TOKENS, _ENDS_NOTE_TOKENS = 150, 500
_LINE_ARGUMENT_TOKENS, _LINE_NOTE_TOKENS = 60, 120


def without_repetition(unit: Unit, pointer: str | None) -> Content:
    """A reply without thinking, or `pointer` to where an output is repeated; None if neither.

    No provider needs the thinking of a finished exchange, signed or not. An edit need not repeat
    calls at the end.
    """
    if not isinstance(unit.message, AssistantMessage):
        return pointer
    parts = without_thinking(unit.message)
    if len(parts) == len(unit.message.content):
        return None
    texts = tuple(part for part in parts if isinstance(part, TextContent))
    return texts if parts[: len(texts)] == texts else parts


def two_ends(unit: Unit, max_output_tokens: int, counter: TokenCounter) -> Content:
    """The beginning and end of a long message; None if it is not long.

    Outputs over `max_output_tokens` keep 250 tokens at each end, a long note beside a call 150;
    a long text in the arguments of a call becomes a line. User messages stay whole, but one over
    four times the limit is mostly a pasted log. If the typed parts are known, they stay and the
    pastes share 2,000 tokens; else the message keeps 1,000 tokens at each end, where people put
    their own words, and every sentence that states a rule.
    """
    message = unit.message
    if isinstance(message, AssistantMessage):
        return _reply(unit, message, _ENDS_ARGUMENT_TOKENS, _ENDS_NOTE_TOKENS, counter)
    if unit.output is not None:
        text, most, ends = unit.output.text, max_output_tokens, _OUTPUT_END_TOKENS
    else:
        text, most, ends = message.text, _PASTE_FACTOR * max_output_tokens, _PASTE_END_TOKENS
    if unit.written_tokens <= most or (tokens := counter.count_text(text)) <= most:
        return None
    if isinstance(message, UserMessage) and (typed := message.typed):
        pastes = sum(is_pasted for _, is_pasted in split_pastes(text, typed))
        most = 2 * ends // max(pastes, 1)
        cut = cut_pastes(text, typed, most_tokens=most, entry_id=unit.entry_id, counter=counter)
        return with_images(cut, message) if cut != text else None
    cut = keep_ends(text, tokens=tokens, end_tokens=ends, entry_id=unit.entry_id, counter=counter)
    rules = find_rules(text) if unit.output is None else ()
    if lost := [rule for rule in rules if rule not in cut]:
        cut = "\n\n".join([cut, "Also said in the part left out:", *lost])
    return with_images(cut, message)


def one_line_of(unit: Unit, *, is_outdated: bool, counter: TokenCounter) -> Content:
    """One line about an output, a reply with shortened calls; None for a user's message.

    Args:
        unit: The message.
        is_outdated: Whether its file changed since, which the line then says.
        counter: Counts its tokens.
    """
    if unit.output is not None:
        return describe(unit.output, unit.entry_id, "edited since" if is_outdated else "")
    if isinstance(unit.message, AssistantMessage):
        return _reply(unit, unit.message, _LINE_ARGUMENT_TOKENS, _LINE_NOTE_TOKENS, counter)
    return None


def with_images(text: str, message: Message) -> str | tuple[TextContent | ImageContent, ...]:
    """`text` to replace the text of `message`, with the images of `message`."""
    has_images = isinstance(message, UserMessage | ToolResultMessage)
    images = images_in(message.content) if has_images else ()
    return (TextContent(text=text), *images) if images else text


def _reply(
    unit: Unit, message: AssistantMessage, argument: int, note: int, counter: TokenCounter
) -> Content:
    """A reply with shortened calls; None for a reply without calls, which stays."""
    is_long = message.tool_calls and unit.written_tokens > argument
    return shorter_reply(unit, message, argument, note, counter) if is_long else None
