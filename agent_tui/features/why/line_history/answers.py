"""The answers about lines: as text for people and for the model, and as JSON for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, assert_never

from pydantic import JsonValue

from agent_tui.features.why.line_history.facts import ChangeFacts
from agent_tui.features.why.line_history.project import UnrecordedMove
from agent_tui.features.why.line_history.why import LineAnswer, day_of, minute_of
from agent_tui.messages import JsonObject
from agent_tui.safe_paths import path_from
from agent_tui.safe_text import printable_line, strip_control_characters
from agent_tui.tools.shorten import cut_line


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """For whom answers are written.

    Attributes:
        asked: What the user's message is called.
        replied: What the model's words are called.
        thought: What the model's thinking is called.
        by_user: What a command of the user's is called.
        most_chars: Characters of a message, a reason or a command.
        most_lines: Lines shown of what was replaced, and of what was written.
        most_printed: Last lines shown of the next command's output.
    """

    asked: str
    replied: str
    thought: str
    by_user: str
    most_chars: int
    most_lines: int
    most_printed: int


FOR_PEOPLE: Final = AnswerForm(
    "You asked", "The model", "The model thought", "your command", 600, 12, 5
)
FOR_MODEL: Final = AnswerForm(
    "The user asked", "Reason given", "Reason thought", "the user's command", 160, 7, 2
)


class AnswerWriter:
    """Writes answers about lines of one file as text, without control characters.

    A message that asked for several changes is shown once, and so is a change of several answers.

    Args:
        cwd: Paths in it are shown relative to it.
        form: For whom the answers are written.
    """

    def __init__(self, cwd: Path, form: AnswerForm) -> None:
        self._cwd = cwd
        self._form = form
        self._asked = ("", "")
        self._changed: set[tuple[str, str, tuple[str, ...] | None]] = set()

    def lines(self, group: Sequence[LineAnswer]) -> list[str]:
        """The text for lines that have the same answer."""
        answer, most = group[0], self._form.most_chars
        place = f"{path_from(answer.path, self._cwd)}:{_numbers([one.line for one in group])}"
        text = f": {cut_line(answer.text.strip(), most)}" if len(group) == 1 else ""
        shown = [place + text]
        if answer.status != "recorded":
            shown.append(answer.said)
        shown += [_move_line(move, self._cwd) for move in answer.moves]
        for facts in answer.changes:
            shown += ["", *self._change_lines(facts, answer.path)]
        if answer.commit is not None:
            commit = answer.commit
            facts = f"{day_of(commit.time)} {commit.author}: {commit.summary}"
            shown.append(f"git blame: {commit.id[:10]} {facts}")
        return [strip_control_characters(line).replace("\n", " ") for line in shown]

    def _change_lines(self, facts: ChangeFacts, path: Path) -> Iterator[str]:
        change, form = facts.change, self._form
        name = f' "{facts.session_name}"' if facts.session_name else ""
        source = f", imported from {facts.imported_from}" if facts.imported_from else ""
        source += f", pulled from {printable_line(facts.pulled_from)}" if facts.pulled_from else ""
        yield f"{minute_of(change.entry.timestamp)}, session {change.session.id[:8]}{name}{source}"
        shown = (change.session.id, change.entry.id, facts.wrote)
        if shown in self._changed:
            yield f"  {_made_by(facts, form)} (as above)"
            return
        self._changed.add(shown)
        if facts.asked:
            asked = (change.session.id, facts.asked_at)
            is_known, self._asked = asked == self._asked, asked
            text = "(as above)" if is_known else printable_line(facts.asked, form.most_chars)
            asker = printable_line(facts.asked_by)
            yield f"  {f'{asker} asked' if asker else form.asked}: {text}"
        if facts.reason:
            who = form.replied if facts.reason_kind == "text" else form.thought
            yield f"  {who}: {printable_line(facts.reason, form.most_chars)}"
        yield f"  {_made_by(facts, form)}{_elsewhere(facts, path, self._cwd)}"
        if facts.replaced is not None and facts.wrote is not None:
            yield from _some("-", facts.replaced, 0, form)
            yield from _some("+", facts.wrote, facts.wrote_at, form)
        if facts.next_command is not None:
            ran = facts.next_command
            ending = f"exit {ran.exit_code}" if ran.exit_code is not None else ""
            ending = ending or ("failed" if ran.is_error else "exit code not recorded")
            yield f"  Next command: {_ends_of(ran.command, form.most_chars)} ({ending})"
            for line in ran.printed[-form.most_printed :]:
                yield f"    {cut_line(line, form.most_chars)}"


def answer_lines(answers: Sequence[LineAnswer], cwd: Path, form: AnswerForm) -> list[str]:
    """Answers about lines of one file as text. See `AnswerWriter`.

    Lines that have the same answer share it. At the end are the sessions that cannot be read.
    """
    writer = AnswerWriter(cwd, form)
    shown: list[str] = []
    for group in alike(answers):
        shown += ["", *writer.lines(group)] if shown else writer.lines(group)
    unread = dict.fromkeys(path for answer in answers for path in answer.unread)
    told = (f"Not read: {path}. agent-tui sessions show says why." for path in unread)
    return [*shown, *map(strip_control_characters, told)]


def alike(answers: Sequence[LineAnswer]) -> list[list[LineAnswer]]:
    """`answers` in groups that say the same, ordered by their first lines."""
    groups: list[list[LineAnswer]] = []
    for answer in answers:
        same = next((group for group in groups if group[0].says_the_same_as(answer)), None)
        if same is None:
            groups.append([answer])
        else:
            same.append(answer)
    return groups


def _numbers(lines: Sequence[int]) -> str:
    """Numbers in rising order, runs joined: ``3-7,20``."""
    runs: list[list[int]] = []
    for line in lines:
        if runs and line == runs[-1][-1] + 1:
            runs[-1].append(line)
        else:
            runs.append([line])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def _made_by(facts: ChangeFacts, form: AnswerForm) -> str:
    change = facts.change
    command = _ends_of(change.command, form.most_chars)
    match change.maker:
        case "call":
            return f"Changed by {change.call.name if change.call else 'a call of unknown name'}"
        case "command":
            return f"Changed while this command ran: {command}"
        case "user command":
            return f"Changed while {form.by_user} ran: {command}"
        case "restore":
            return "An earlier version of the file was restored"
        case "read":
            return "Read"
        case _:
            assert_never(change.maker)


def _move_line(move: UnrecordedMove, cwd: Path) -> str:
    """Says that the file was moved or copied without a record, and how that is known."""
    before, after = (printable_line(path_from(path, cwd)) for path in (move.before, move.after))
    match move.proof:
        case "git":
            known = "git says so"
        case "same":
            known = "the content is the same"
        case "similar":
            known = f"{move.percent} % of the content is the same"
        case _:
            assert_never(move.proof)
    return f"{after} comes from {before}, without a record: {known}."


def _elsewhere(facts: ChangeFacts, path: Path, cwd: Path) -> str:
    """The file's path at the time, if it has moved since."""
    change = facts.change
    return f" (in {path_from(change.path, cwd)})" if change.path != str(path) else ""


def _some(sign: str, lines: Sequence[str], at: int, form: AnswerForm) -> Iterator[str]:
    """The lines with their sign; of many, those around index `at`."""
    first = min(at, len(lines) - 1) - form.most_lines // 2 if at >= form.most_lines else 0
    last = min(first + form.most_lines, len(lines))
    if first:
        yield f"    {sign} ... {first} more lines"
    for line in lines[first:last]:
        yield f"    {sign} {cut_line(line, form.most_chars)}"
    if last < len(lines):
        yield f"    {sign} ... {len(lines) - last} more lines"


def _ends_of(command: str, most_chars: int) -> str:
    """A command on one line; of one with several lines, the first and the last."""
    lines = command.strip().splitlines()
    if len(lines) < 2:
        return printable_line(command, most_chars)
    first, last = (printable_line(line, most_chars // 2) for line in (lines[0], lines[-1]))
    return f"{first} … {last}"


def answer_json(answer: LineAnswer) -> JsonObject:
    """The answer for programs; ``agent-tui why --help`` describes it."""
    commit: JsonValue = None
    if answer.commit is not None:
        made = answer.commit
        commit = {
            "id": made.id,
            "author": made.author,
            "time": made.time,
            "summary": made.summary,
        }
    return {
        "path": str(answer.path),
        "line": answer.line,
        "text": answer.text,
        "status": answer.status,
        "message": answer.said,
        "changes": [_change_json(facts) for facts in answer.changes],
        "commit": commit,
        "moves": [
            {"from": move.before, "to": move.after, "proof": move.proof, "percent": move.percent}
            for move in answer.moves
        ],
        "unread": [str(path) for path in answer.unread],
    }


def _change_json(facts: ChangeFacts) -> JsonObject:
    change, ran = facts.change, facts.next_command
    session = change.session
    return {
        "session": {
            "id": session.id,
            "name": facts.session_name,
            "path": str(session.path) if session.path is not None else None,
            "importedFrom": facts.imported_from or None,
            "pulledFrom": facts.pulled_from or None,
        },
        "entry": change.entry.id,
        "time": change.entry.timestamp,
        "path": change.path,
        "maker": change.maker,
        "tool": change.call.name if change.call is not None else None,
        "arguments": change.call.arguments if change.call is not None else None,
        "command": change.command or None,
        "asked": facts.asked or None,
        "askedAt": facts.asked_at or None,
        "reason": facts.reason or None,
        "reasonKind": facts.reason_kind or None,
        "replaced": list(facts.replaced) if facts.replaced is not None else None,
        "wrote": list(facts.wrote) if facts.wrote is not None else None,
        "nextCommand": {
            "command": ran.command,
            "printed": list(ran.printed),
            "exitCode": ran.exit_code,
            "isError": ran.is_error,
        }
        if ran is not None
        else None,
    }
