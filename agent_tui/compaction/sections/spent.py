"""Which of the newest exchanges are not needed any more."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap

from agent_tui.compaction.sections.commands import PassedRuns, is_check, is_looking_around, runs_of
from agent_tui.compaction.sections.failures import has_failed
from agent_tui.compaction.sections.file_views import text_of_change
from agent_tui.compaction.sections.history import announces_only
from agent_tui.compaction.tiers.model import Unit
from agent_tui.messages import AssistantMessage, ToolResultMessage
from agent_tui.sessions.shell_files import programs_run

_ANSWER_TOKENS = 80
"""A longer answer to a change says more than that it was made."""


def find_spent(
    units: Sequence[Unit], left: Mapping[str, str], changes: Mapping[str, str], committed: int
) -> Iterator[Unit]:
    """The replies that can go with their results, the newest first.

    All calls of such a reply are looks that showed what stands elsewhere; changes that their file
    is shown with or that are committed, if the file was changed again or committed since; checks
    that passed, if they passed again or a commit came since; or other commands before a commit. The
    newest call of each kind stays, as it says how such things are done here, and so do the first
    change after a refused one and a reply that says more than what comes next.

    Args:
        units: The messages before the newest exchange, oldest first.
        left: What is left of outputs that were shortened, by entry.
        changes: The file of each call whose change stands elsewhere, by the call's id.
        committed: The position of the newest commit.
    """
    instead = frozenset(_changes_after_refusals(units))
    answers: dict[str, Unit] = {}
    later: set[object] = set()
    passed = PassedRuns()
    is_next_gone = False
    for unit in reversed(units):
        message = unit.message
        if isinstance(message, ToolResultMessage):
            answers[message.tool_call_id] = unit
            continue
        calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
        spent: list[Unit] = []
        for id in (call.id for call in reversed(calls)):
            answer = answers.pop(id, None)
            if answer is None or (output := answer.output) is None:
                continue
            path, command = changes.get(id, ""), output.action.command
            kind = (output.action.tool, *starmap(_task, programs_run(command)))
            is_again = unit.position < committed or path in later
            has_news = output.has_failed or bool(output.said) or answer.entry_id in instead
            if path:
                is_short = answer.tokens <= _ANSWER_TOKENS
                is_settled = is_again and (is_short or _is_pointer(left, answer))
            elif is_check(command):
                runs, has_passed = runs_of(command), not has_failed(output)
                is_settled = has_passed and (is_again or passed.cover(runs))
                passed.add(runs if has_passed else ())
            else:
                is_past = bool(command) and unit.position < committed
                is_look = not command or is_looking_around(command)
                is_settled = is_past or (is_look and _is_pointer(left, answer))
            spent += [answer] * (is_settled and kind in later and not has_news)
            later |= {kind, path} - {""}
        is_said = bool(message.text.strip()) and not announces_only(message.text)
        is_next_gone = (bool(calls) or is_next_gone) and len(spent) == len(calls) and not is_said
        is_next_gone &= isinstance(message, AssistantMessage)
        yield from (*spent, unit) if is_next_gone else ()


def _changes_after_refusals(units: Sequence[Unit]) -> Iterator[str]:
    """The first change of each file after the user refused another: else that one seems made."""
    refused: dict[str, str] = {}
    for unit in units:
        if (output := unit.output) is None or output.action.kind not in ("edit", "write"):
            continue
        path, text = output.file_key or output.action.path, text_of_change(output.action)
        if output.ending == "declined":
            refused[path] = text
        elif not output.has_failed and refused.pop(path, text) != text:
            yield unit.entry_id


def _task(program: str, words: Sequence[str]) -> str:
    """`program` with its first option or task: ``sed -n``, ``git status``."""
    words = words[2:] if words[:1] == ("-C",) else words  # a folder, for git, make and others
    first = "".join(words[:1])
    return f"{program} {first}" if first[:1] == "-" or first.isalpha() else program


def _is_pointer(left: Mapping[str, str], answer: Unit) -> bool:
    """Whether what is `left` of an answer only says where that stands."""
    lines = {line for line in left.get(answer.entry_id, "-").split("\n") if line.strip()}
    is_own = lines.isdisjoint(answer.message.text.split("\n"))
    return is_own and all(line.startswith(("(", "[recall ")) for line in lines)
