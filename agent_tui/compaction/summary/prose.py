"""The document of a summary as it is kept: a model's, or one by code."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent_tui.compaction.summary.summariser import WrittenSummary
from agent_tui.compaction.summary.templates import NOTHING, Slot, Template
from agent_tui.compaction.summary.validate import fit_to_tokens
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
    *,
    template: Template,
    without_model: Callable[[], str],
) -> Prose:
    """What becomes of a model's summary, or of there being none.

    Args:
        written: The model's document; None when there is none.
        failures: What went wrong on the way, one clause each.
        template: The form.
        without_model: What takes the document's place where no model wrote one.
    """
    if written is None:
        why = f": {'; '.join(failures)}" if failures else ""
        return Prose(without_model(), f"Summary written without a model{why}.", None)
    name, problem = written.model.name, written.problem
    failures = [failure for failure in failures if failure != f"{name}: {problem}"]
    remarks: list[str] = []
    others = f" ({'; '.join(failures)})" if failures else ""
    if problem:
        remarks.append(f"The summary by {name} is incomplete: {problem}{others}.")
    elif others:
        remarks.append(f"Summarised by {name}{others}.")
    if written.left_out:
        remarks.append(
            f"{written.left_out} messages, oldest tool results first, did not fit in the context "
            f"window of {name}."
        )
    text = _without_empty_sections(written.text, template)
    return Prose(text, " ".join(remarks), written)


def _without_empty_sections(document: str, template: Template) -> str:
    """`document` without the sections that say nothing."""
    bodies = {h: body for h, body in template.parse(document).items() if body != NOTHING}
    parts: list[str] = []
    group = ""
    for section in template.sections:
        if section.is_group:
            group = section.heading
        elif body := bodies.get(section.heading, ""):
            level = section.heading.partition(" ")[0]
            if group and len(level) > len(group.partition(" ")[0]):
                parts.append(group)
                group = ""
            parts.append(f"{section.heading}\n{body}")
    return "\n\n".join(parts) or document


_OUTDATED: frozenset[Slot] = frozenset({"in_progress", "next_steps", "errors"})
_AS_OF_EARLIER = "(Written at an earlier compaction; the text around it is newer.)"


def earlier_prose(
    previous_prose: str, *, template: Template, counter: TokenCounter, max_tokens: int
) -> str:
    """What still holds of a model's earlier document where none writes a new one.

    What it says of the work in progress does not, and the sections around it say that anew.
    """
    if not previous_prose.strip():
        return ""
    bodies = template.parse(previous_prose)
    kept = {
        section.heading: body
        for section in template.writable
        if not (section.slots and set(section.slots) <= _OUTDATED)
        and (body := bodies.get(section.heading, "").strip())
        and body != NOTHING
    }
    if not kept:
        text = previous_prose.strip()
        while text and counter.count_text(text) > max_tokens:
            text = text[: len(text) * 9 // 10]
        return f"{_AS_OF_EARLIER}\n{text}"
    fitted = fit_to_tokens(
        template.render(kept), template=template, counter=counter, max_tokens=max_tokens
    )
    parsed = template.parse(fitted)
    lines = [
        f"{heading}\n{body}"
        for heading in kept
        if (body := parsed.get(heading, "")) and body != NOTHING
    ]
    return "\n\n".join((_AS_OF_EARLIER, *lines))
