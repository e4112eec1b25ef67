"""The words of the request that asks a model what it will need after the compaction."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import accumulate, groupby

from agent_tui.compaction.curation.ask import Ask
from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.summary.degeneration import NOTHING
from agent_tui.compaction.transcript import escape_tags
from agent_tui.omissions import one_line

_CHARS_PER_TOKEN = 3.5
"""If there is no text to measure it."""

_MOST_NAMED, _NAME_CHARS = 30, 40
_LEAST_NAMED_TOKENS = 60
_NEWER = "Newer ones stay."
_EARLIER = (
    "- The summary at the beginning does not stay: say in your notes what of it still holds. What "
    "it quotes word for word is in the list."
)
_SHORTENED = "shortened in your newest messages"

_OUTLINES_PART = 3
"""Of the list, one part in so many is for outlines, the shortest first."""

_LEAST_LISTED_TOKENS = 30
"""A shorter call, failure, or text that nobody typed costs no less to keep than to tell."""


def ask_text(ask: Ask) -> str:
    """The message that follows the conversation."""
    budget = ask.budget
    return _ASK.format(
        used=round(budget.used * budget.ratio),
        bar=round(budget.target * budget.ratio),
        counted=_COUNTED.format(ratio=budget.ratio) if round(budget.ratio, 1) != 1 else "",
        target=budget.target,
        notes=_limit(ask, min(budget.notes, budget.free)),
        free=_limit(ask, budget.free),
        form=ask.template.form,
        nothing=NOTHING,
        staying=escape_tags("\n".join(_staying_lines(ask))),
        focus=_FOCUS.format(focus=escape_tags(ask.focus)) if ask.focus else "",
        state="it is now" if ask.has_disk else "you last saw or edited it",
        outlined=_OUTLINED if any(piece.outline for piece in ask.pieces) else "",
        inventory="\n".join(map(escape_tags, _list_lines(ask))) or NOTHING,
    )


def more_text(ask: Ask, gaps: Iterable[str], free: int) -> str:
    """The message that follows an answer which leaves `gaps`, and `free` tokens."""
    return _MORE.format(free=_limit(ask, free), gaps=escape_tags("\n".join(gaps)))


def _limit(ask: Ask, tokens: int) -> str:
    """`tokens` as a limit, also in characters like those of the pieces.

    Models count neither, but misjudge characters less.
    """
    texts = [(len("\n".join(p.lines)), p.tokens) for p in ask.pieces if p.tokens]
    chars, measured = (sum(sizes) for sizes in zip(*texts, strict=True)) if texts else (0, 0)
    each = chars / measured if measured else _CHARS_PER_TOKEN
    return f"{tokens:,} tokens (about {round(tokens * each, -2):,.0f} characters)"


def _staying_lines(ask: Ask) -> Iterator[str]:
    for name, tokens in ask.staying.sizes.items():
        if tokens:
            text = f": {ask.staying.texts[name]}" if name in ask.staying.texts else ""
            yield f"- {name}: {tokens:,} tokens{text}"
    if ask.earlier:
        yield _EARLIER
    if ask.staying.messages:
        said = "; ".join(_said(*message) for message in ask.staying.messages[-_MOST_NAMED:])
        older = ask.staying.messages[:-_MOST_NAMED]
        cut = ", ".join(f"({number})" for number, _, tokens in older if number and tokens)
        before = f" The {len(older)} before these stay, too" if older else ""
        before += (f", shortened: {cut}." if cut else ".") if older else ""
        yield f"The user's messages, by their numbers afterwards: {said}.{before} {_NEWER}"


def _list_lines(ask: Ask) -> Iterator[str]:
    """The list as far as it fits: files, then texts, the newest first."""
    offered = [
        replace(piece, remark=", ".join(filter(None, (piece.remark, _SHORTENED))))
        if piece.entry_id in ask.staying.shortened
        else piece
        for piece in ask.pieces
        if not ask.stays(piece)
    ]
    files = [piece for piece in offered if piece.kind == "file"]
    known = {line.strip() for piece in files for line in piece.lines}
    offered = [piece for piece in offered if not _adds_nothing(piece, known)]
    texts = [piece for piece in reversed(offered) if piece.kind != "file"]
    lines = [*_join_parts(files), *_fold(texts)]
    room = ask.budget.listed
    below = {at: f"  {'; '.join(t)}" for at, (_, of) in enumerate(lines) if (t := _titles(of))}
    sizes = {at: ask.counter.count_text(text) + 1 for at, text in below.items()}
    shortest, most = sorted(sizes, key=lambda at: sizes[at]), room // _OUTLINES_PART
    fits = accumulate(sizes[at] for at in shortest)
    outlined = {at for at, total in zip(shortest, fits, strict=True) if total <= most}
    listed: dict[int, list[str]] = {}
    for at in sorted(range(len(lines)), key=lambda at: _rank(lines[at][1])):
        line = lines[at][0]
        room -= ask.counter.count_text(line) + 1
        if room < 0:
            break
        listed[at] = [line]
        if at in outlined and sizes[at] <= room:
            room -= sizes[at]
            listed[at].append(below[at])
    for at in sorted(listed):
        yield from listed[at]
    if missing := len(offered) - sum(len(lines[at][1]) for at in listed):
        yield f"({missing} others are not listed.)"
    stay = (p for p in ask.pieces if p.path or p.tokens >= _LEAST_NAMED_TOKENS)
    if named := [
        f"#{p.number} {p.label}{p.span}{p.remark and f', {p.remark}'}" for p in stay if ask.stays(p)
    ]:
        yield f"(Not offered, as they stay whole in your newest messages: {'; '.join(named)}.)"


def _adds_nothing(piece: Piece, known: Set[str]) -> bool:
    """Whether `piece` is too short to be worth its tags, or a call whose lines all are `known`."""
    if piece.kind == "call" and piece.remark and {*map(str.strip, piece.lines)} <= known:
        return True
    is_brief = piece.tokens < _LEAST_LISTED_TOKENS and not piece.is_answered
    return is_brief and (piece.kind in ("call", "said") or "failed" in piece.remark.split(", "))


def _titles(pieces: Sequence[Piece]) -> list[str]:
    return [title for piece in pieces for title in piece.outline]


def _rank(pieces: Sequence[Piece]) -> int:
    """Files come first, then what the user said or answered, then the newest."""
    return 0 if pieces[0].kind == "file" else 1 if any(p.is_answered for p in pieces) else 2


def _said(number: int, opening: str, tokens: int) -> str:
    """A message of the user, and how much of it stays; `tokens` is 0 if all of it does."""
    place = f"({number}) " if number else ""
    how = "shortened" if number else "not shown, recall finds it"
    state = f" ({how}, {tokens:,} tokens)" if tokens else ""
    return f'{place}"{opening}"{state}'


def _join_parts(files: Sequence[Piece]) -> Iterator[tuple[str, Sequence[Piece]]]:
    """One line for the parts of each file, and these."""
    for _, parts in groupby(files, key=lambda piece: piece.path):
        first, *others = parts
        others = [
            replace(piece, remark=piece.remark * (piece.remark != first.remark)) for piece in others
        ]
        rest = "".join(f"; #{piece.number}{piece.extent}" for piece in others)
        yield f"{first.line}{rest}", (first, *others)


def _fold(pieces: Sequence[Piece]) -> Iterator[tuple[str, Sequence[Piece]]]:
    """The line of each of `pieces`, newest first, and the pieces in it.

    All pieces of one series stand in the line of the newest.
    """
    alike: defaultdict[str, list[Piece]] = defaultdict(list)
    for piece in pieces:
        alike[piece.series].append(piece)
    for piece in pieces:
        newest, *others = alike[piece.series]
        if not piece.series or not others:
            yield piece.line, (piece,)
        elif piece == newest:
            earlier = ", ".join(_name(one, newest) for one in others)
            yield f"{piece.line}; earlier ones of {piece.series}: {earlier}", (piece, *others)


def _name(piece: Piece, newest: Piece) -> str:
    """The number and size of `piece`, and in which words it differs from the `newest` like it."""
    known = newest.label.split()
    words = " ".join(word for word in piece.label.split() if word not in known)
    return " ".join(
        filter(None, (f"#{piece.number}", one_line(words, _NAME_CHARS), f"{piece.tokens}"))
    )


def ask_again(problem: str) -> str:
    """The text added to the same message after an unusable answer.

    Args:
        problem: What was wrong with it, as a clause: "it called a tool".
    """
    return (
        f"\n\nYour last answer could not be used: {problem}. Answer with text alone: "
        "<notes> in the form above, then <keep>. Do not call a tool."
    )


_FOCUS = """
The user asked to pay special attention to this; keep every detail of it:
<focus>
{focus}
</focus>
"""

_COUNTED = " as the provider counts them ({ratio:.2f} for each token of the sizes below)"

_ASK = """\
[This is from the program, not from the user.] Stop for a moment: your context is about to be \
compacted. It shrinks from about {used:,} to {bar:,} tokens{counted}, and you continue the task \
with what stays and nothing else. You know best what you will need, so decide what stays. The work \
may go on while you answer; what is done meanwhile stays behind your notes. Do not call a tool and \
do not continue the task: answer with text alone.

This stays without your help, of the {target:,} tokens:
{staying}
{focus}
Your notes and the texts that you keep share the rest: {free}. What one does not use, the other \
has; what neither uses is wasted. What is in neither part you will not see, and only the recall \
tool finds it again. Answer in two parts.

First, notes of at most {notes}, written for yourself as if you remembered nothing. Say what \
quoting cannot: above all the reasons, and every failure that taught something, old ones too. \
Copy paths, names, numbers, commands and error messages exactly. Do not cite numbers of the list \
(#12): they mean nothing afterwards, and are not those of issues or pull requests. Name functions \
and headings rather than lines, as the texts that you keep have no line numbers. The user's \
messages stay: say what of them still holds. A heading with nothing below it may be left out.

<notes>
{form}
</notes>

Second, what you need word for word, in order of need: first for the current step, then for its \
likely follow-ups in the next ten to sixty steps. One number from the list below per line, with \
the lines you need where a part is enough; a number may stand in several lines, and lines that \
are named twice cost once. Keep the text of the task that is still to be done, the code that you \
will change or imitate (with its imports and the signatures it calls), and output that you will \
use. Leave out what the notes say, what is finished, and what stays anyway. Of a file in the list \
below, only the lines that you name stay, wherever you read it. A part costs its lines, what is \
left of the paragraph or block in which it ends (up to 20 lines), and about 25 tokens. Name a \
little more than fits: the end for which there is no room is left out, and you are told what that \
was.

<keep>
#NUMBER FIRST-LAST, FIRST-LAST
#NUMBER
</keep>

The list: number, what it is, its lines, its size without line numbers. A file is offered as \
{state}, with these line numbers, in place of what you read and edited of it. Changed files come \
first, then other files, then the newest texts.{outlined}
{inventory}"""

_OUTLINED = """ Below a file stand the numbers of its parts that you have not seen under these \
numbers."""

_MORE = """\
[This is from the program, not from the user.] Your answer is taken as it is, and leaves {free} \
free. The log has this, which is neither in your notes nor in the texts that you keep:

{gaps}

The space need not be used: what is finished takes none. If the next steps need some of this, \
answer once more, with text alone, in the same two parts, and with additions only.

<notes>
## the heading of the form to which a point belongs
- a further point
</notes>

<keep>
#NUMBER FIRST-LAST
</keep>

What you wrote stays, so do not repeat it. Add what you would otherwise have to find out again: \
failures with their exact message, cause and fix, what was tried in vain, names, values and \
commands; then further texts from the whole list that the next steps need, above all code. Leave \
out what is finished and will not matter again. If nothing is missing, leave \
both parts empty."""
