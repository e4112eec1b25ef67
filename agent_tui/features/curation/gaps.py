"""What the log knows and an answer leaves out, and how further answers add to it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from agent_tui.compaction.curation.answer import KeepChoice, Pick, tokens_of
from agent_tui.compaction.curation.ask import LEAST_NOTES_TOKENS, Ask
from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.curation.since import files_ahead
from agent_tui.compaction.sections.failures import failures_that_fit, is_slip
from agent_tui.compaction.sections.file_states import is_of_the_work
from agent_tui.compaction.transcript import those_that_fit

_LEAST_FREE = 1 / 4
"""If a smaller part of the space for notes and texts is free, nothing more is asked."""

_FAILURES_TOKENS, _KIND_TOKENS = 900, 400
_MOST_REPLIES = 3
_NUMBERED = re.compile(r"^\W*\d{1,2}[.)]\s", re.MULTILINE)
_RECALL = re.compile(r"\[recall (\S+)\]")


def free_tokens(choice: KeepChoice, ask: Ask) -> int:
    """Tokens of the space for notes and texts that `choice` does not use."""
    return ask.budget.free - ask.counter.count_text(choice.notes) - tokens_of(choice.picks)


def find_gaps(choice: KeepChoice, ask: Ask) -> list[str]:
    """What neither the notes nor the texts of `choice` have, each kind below a line that says so.

    None if `choice` uses most of the space, or does not have both parts.
    """
    least = max(int(ask.budget.free * _LEAST_FREE), LEAST_NOTES_TOKENS)
    if choice.problem or not choice.picks or free_tokens(choice, ask) < least:
        return []
    chosen = {pick.piece.number for pick in choice.picks}
    offered = [p for p in reversed(ask.pieces) if p.number not in chosen and not ask.stays(p)]
    said = [p.line for p in offered if p.kind == "said" and p.is_answered]
    replies = [p.line for p in offered if p.kind == "reply" and _has_points(p)]
    kinds = {
        "Failures that your notes do not tell": list(_failures(choice, ask)),
        "Files that your notes name for the next steps, and of which you keep nothing": _fitting(
            _files(choice, ask, offered), ask
        ),
        "Messages of the user that stay only in part": _fitting(said, ask),
        "Replies with numbered points": replies[:_MOST_REPLIES],
    }
    return [line for kind, lines in kinds.items() if lines for line in (f"{kind}:", *lines)]


def with_additions(choice: KeepChoice, notes: str, picks: Iterable[Pick], ask: Ask) -> KeepChoice:
    """`choice` with further `notes` and `picks` as far as the space allows; it loses nothing."""
    template, count = ask.template, ask.counter.count_text
    bodies, text, kept = template.parse(choice.notes), choice.notes, choice.picks
    most = min(ask.budget.most_notes, ask.budget.free - tokens_of(kept))
    for heading, body in template.parse(notes).items():
        known = bodies.get(heading, "").split("\n")
        for line in body.split("\n") if heading else ():
            if not line.strip() or (line in known and len(line.split()) > 1):
                continue  # a line of one word, such as a bracket, may stand twice
            added = {**bodies, heading: f"{bodies.get(heading, '')}\n{line}".lstrip("\n")}
            if count(longer := template.render(added)) > most:
                break
            bodies, text = added, longer
    for pick in picks:
        if pick not in kept and tokens_of((*kept, pick)) + count(text) <= ask.budget.free:
            kept = (*kept, pick)
    return replace(choice, notes=text, picks=kept)


def _failures(choice: KeepChoice, ask: Ask) -> Iterator[str]:
    """The failures that the notes do not name, with their numbers in the list.

    A call that soon passed, such as an edit with an outdated text, taught nothing.
    """
    numbers = {p.entry_id: f"(#{p.number})" for p in ask.pieces if p.kind == "result"}
    seen = {pick.piece.entry_id for pick in choice.picks} | ask.staying.entries
    for line in failures_that_fit(
        [one for one in ask.failures if one.entry_id not in seen and not is_slip(one)],
        notes=choice.notes,
        elsewhere="",
        room_tokens=_FAILURES_TOKENS,
        counter=ask.counter,
    ):
        yield _RECALL.sub(lambda mark: numbers.get(mark[1], ""), line)


def _files(choice: KeepChoice, ask: Ask, offered: Iterable[Piece]) -> Iterator[str]:
    """The files that the notes name as in progress, blocked or next, without a kept line."""
    files = [file for file in ask.files if is_of_the_work(file.path)]
    bodies = ask.template.parse(choice.notes)
    is_open = any(bodies.get(h) for h in ask.template.passing - {ask.template.state})
    ahead = files_ahead(files, choice, choice.notes, (), ask.template, ()) if is_open else ()
    kept = {pick.piece.path for pick in choice.picks}
    lines: dict[str, list[str]] = {}
    for piece in offered:
        if piece.kind == "file" and piece.path not in kept:
            lines.setdefault(piece.path, []).insert(0, piece.line)
    for path in dict.fromkeys(file.path for file in ahead):
        yield from lines.get(path, ())


def _has_points(piece: Piece) -> bool:
    return len(_NUMBERED.findall("\n".join(piece.lines))) > 1


def _fitting(lines: Iterable[str], ask: Ask) -> list[str]:
    """The first of `lines` that fit."""
    return those_that_fit(lines, _KIND_TOKENS, lambda line: ask.counter.count_text(line) + 1)
