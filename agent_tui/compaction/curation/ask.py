"""The request that asks a model what it will need after the compaction."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.summary.degeneration import NOTHING
from agent_tui.compaction.summary.templates import Template
from agent_tui.compaction.tiers.model import Unit
from agent_tui.compaction.transcript import escape_tags


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """Sizes in tokens: the context now and afterwards, and the limits of the answer's two parts.

    `notes` and `keep` are those limits.
    """

    used: int
    target: int
    notes: int
    keep: int


@dataclass(frozen=True, slots=True)
class Ask:
    """One request for notes and a list of what to keep.

    Args:
        units: The conversation.
        pieces: The pieces to choose from.
        staying_from: Number of the first piece that stays anyway; 0 if none does.
        budget: The available sizes.
        template: The form of the notes.
        focus: What the user wants the summary to focus on; may be empty.
        through: The newest entry that the model sees with the request; empty if none.
        earlier: The summary at the beginning of the conversation; may be empty.
    """

    units: Sequence[Unit]
    pieces: Sequence[Piece]
    staying_from: int
    budget: TokenBudget
    template: Template
    focus: str = ""
    through: str = ""
    earlier: str = ""

    @property
    def text(self) -> str:
        """The message that follows the conversation."""
        return _ASK.format(
            used=self.budget.used,
            target=self.budget.target,
            notes=self.budget.notes,
            keep=self.budget.keep,
            form=self.template.form,
            nothing=NOTHING,
            newest=self._newest,
            focus=_FOCUS.format(focus=escape_tags(self.focus)) if self.focus else "",
            inventory="\n".join(escape_tags(piece.line) for piece in self._choosable) or NOTHING,
        )

    @property
    def _choosable(self) -> Sequence[Piece]:
        staying = self.staying_from
        return [piece for piece in self.pieces if not staying or piece.number < staying]

    @property
    def _newest(self) -> str:
        if not self.staying_from:
            return " (no text of the list below is among them)"
        return f" (everything behind #{self.staying_from - 1} of the list)"


def ask_again(problem: str) -> str:
    """The text added to the same message after an unusable answer.

    Args:
        problem: What was wrong with it, as a clause: "it called a tool".
    """
    return (
        f"\n\nYour last answer could not be used: {problem}. Answer with text alone: "
        "<notes> with all of the headings above, then <keep>. Do not call a tool."
    )


_FOCUS = """
The user asked to pay special attention to this; keep every detail of it:
<focus>
{focus}
</focus>
"""

_ASK = """\
[This is from the program, not from the user.] Stop for a moment: the context is nearly full. \
Before your next step it shrinks from about {used:,} to {target:,} tokens, and you continue the \
task with what stays and nothing else. You know best what you will need, so decide what stays. \
Do not call a tool and do not continue the task: answer with text alone.

These stay without your help: every message of the user, with the reasons of refusals and the \
answers to questions, pinned instructions, your plan, and your newest messages{newest}.
{focus}
Answer in two parts.

First, notes of at most {notes:,} tokens, written for yourself as if you remembered nothing. Say \
what quoting cannot: the goal and the newest request; what is done, what is in progress and \
exactly where it stopped, what comes next; why things were decided the way they were; what \
failed, why, and which ways led nowhere; which files are changed and not committed; the newest \
test results in exact numbers; exact commands; traps; where things are that you will need and do \
not keep (path, name, lines). Copy paths, names, numbers and error messages exactly. What the \
user wrote stays word for word: do not repeat it, say what of it still holds. If you notice a \
mistake in the work so far, or in what you told the user, say so. Under an empty heading write \
{nothing}.

<notes>
{form}
</notes>

Second, what you need word for word in your next ten to sixty steps, at most {keep:,} tokens (not \
counting the notes and what stays anyway), in order of need: one number from the list below per \
line, with the lines you need where a part is enough. A number may stand in several lines, the \
part you need most first. Keep the text of the task that is still to \
be done, the code that you will change or imitate (with its imports and the signatures it calls), \
and output that you will use. Line numbers are those that you were shown, or counted from 1. If \
the file was edited since, you get the lines as they are now, with what was added between them, \
so their size may differ. \
Leave out what the notes say, what is finished, and what stays anyway. If there is too little \
room, the end of your list is left out, and you are told what that was.

<keep>
#NUMBER FIRST-LAST, FIRST-LAST
#NUMBER
</keep>

The list (number, what it is, its lines, its size without line numbers), in the order of the \
conversation:
{inventory}"""
