"""The document of a summary as it is kept: a model's, the same completed, or one by code."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.compaction.summary.fallback import LogFacts, complete_summary, fallback_summary
from agent_tui.compaction.summary.summariser import WrittenSummary
from agent_tui.compaction.summary.templates import Template
from agent_tui.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class Prose:
    """A document, what to tell the person of it, and the model's part in it.

    `note` is one line, empty when all went as planned. `written` is None where code wrote it.
    """

    text: str
    note: str
    written: WrittenSummary | None


def finished_prose(
    written: WrittenSummary | None,
    failures: Sequence[str],
    log_facts: LogFacts,
    *,
    template: Template,
    counter: TokenCounter,
    max_tokens: int,
) -> Prose:
    """What becomes of a model's summary, or of there being none.

    Args:
        written: The model's document; None when there is none.
        failures: What went wrong on the way, one clause each.
        log_facts: What the log says.
        template: The form.
        counter: Measures the result.
        max_tokens: Its largest size.
    """
    reasons = f" ({'; '.join(failures)})" if failures else ""
    if written is None:
        text = fallback_summary(
            log_facts, template=template, counter=counter, max_tokens=max_tokens
        )
        return Prose(text, f"Summarised without a model{reasons}.", None)
    remarks: list[str] = []
    text, from_log = written.text, ()
    if written.problem or written.left_out:
        completed = complete_summary(
            text, log_facts, template=template, counter=counter, max_tokens=max_tokens
        )
        text, from_log = completed.text, completed.from_log
    if from_log:
        remarks.append(f"Summary completed from the record: {', '.join(from_log)}{reasons}.")
    elif failures:
        remarks.append(f"Summarised by {written.model.name}{reasons}.")
    if written.left_out:
        remarks.append(
            f"{written.left_out} messages, the oldest tool results first, did not fit into the "
            f"window of {written.model.name}."
        )
    return Prose(text, " ".join(remarks), written)
