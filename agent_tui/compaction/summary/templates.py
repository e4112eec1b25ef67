"""The shapes a summary can have: headings, what belongs under each, which must be there."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

TemplateName: TypeAlias = Literal["structured", "seven-section"]

Slot: TypeAlias = Literal[
    "goal",
    "guidance",
    "done",
    "in_progress",
    "errors",
    "decisions",
    "files",
    "history",
    "next_steps",
    "context",
]
"""A kind of fact, whatever heading a template puts it under."""

NOTHING = "(none)"


@dataclass(frozen=True, slots=True)
class Section:
    """One heading with what the model is told to write below it.

    `is_core`: a summary without this section is refused; others are added as ``(none)``.
    `slots`: the facts that belong here when code writes the summary.
    """

    heading: str
    guide: str
    is_core: bool = False
    slots: tuple[Slot, ...] = ()

    @property
    def title(self) -> str:
        """The heading without its marks."""
        return self.heading.lstrip("# ")

    @property
    def is_group(self) -> bool:
        """Whether it only holds the sections below it."""
        return not self.guide


@dataclass(frozen=True, slots=True)
class Template:
    """Sections in the order they are written."""

    name: TemplateName
    sections: tuple[Section, ...]

    @property
    def writable(self) -> tuple[Section, ...]:
        """The sections that have text of their own."""
        return tuple(section for section in self.sections if not section.is_group)

    @property
    def form(self) -> str:
        """The empty form, as the model is shown it."""
        return "\n\n".join(
            section.heading if section.is_group else f"{section.heading}\n{section.guide}"
            for section in self.sections
        )

    def parse(self, document: str) -> dict[str, str]:
        """Bodies by exact heading, for those headings that `document` has.

        Headings are found whatever their level, case, bold marks or colon; other headings
        stay part of the body they are in. Text before the first heading has the key ``""``.
        """
        by_title = {_plain(section.heading): section.heading for section in self.sections}
        bodies: dict[str, list[str]] = {}
        current = bodies.setdefault("", [])
        for line in document.split("\n"):
            heading = by_title.get(_plain(line)) if _HEADING.match(line) else None
            if heading is not None:
                current = bodies.setdefault(heading, [])
            else:
                current.append(line)
        joined = {heading: "\n".join(lines).strip() for heading, lines in bodies.items()}
        return {heading: body for heading, body in joined.items() if heading or body}

    def missing_core(self, bodies: Mapping[str, str]) -> tuple[str, ...]:
        """Headings of core sections that are missing or empty."""
        core = (section.heading for section in self.sections if section.is_core)
        return tuple(heading for heading in core if not bodies.get(heading))

    def render(self, bodies: Mapping[str, str]) -> str:
        """The whole document; a section without a body says ``(none)``."""
        parts: list[str] = []
        for section in self.sections:
            body = bodies.get(section.heading, "").strip()
            if not body and not section.is_group:
                body = NOTHING
            parts.append(f"{section.heading}\n{body}" if body else section.heading)
        return "\n\n".join(parts)


_HEADING = re.compile(r"\s{0,3}(#{1,6}\s|\*\*)")


def _plain(line: str) -> str:
    return re.sub(r"^\d+[.)]\s*", "", line.strip("#*: \t")).strip("* ").casefold()


STRUCTURED = Template(
    "structured",
    (
        Section(
            "## Goal",
            "What the user ultimately wants, in one to three sentences. Several goals: a list.",
            is_core=True,
            slots=("goal",),
        ),
        Section(
            "## Constraints & Preferences",
            "- each rule, wish or limit the user stated, in their own words",
            slots=("guidance",),
        ),
        Section("## Progress", ""),
        Section(
            "### Done",
            "- [x] finished work, with the files it touched and how it was checked",
            slots=("done", "history"),
        ),
        Section(
            "### In Progress",
            "- [ ] what was in progress when this was written, and how far it got",
            slots=("in_progress",),
        ),
        Section(
            "### Blocked",
            "- what is blocked, with the exact error message or the open question",
            slots=("errors",),
        ),
        Section("## Key Decisions", "- **decision**: why", slots=("decisions",)),
        Section(
            "## Next Steps",
            "1. the very next action\n2. what follows, in order",
            is_core=True,
            slots=("next_steps",),
        ),
        Section(
            "## Critical Context",
            "- facts that would have to be found again: exact paths, names, signatures, "
            "commands, values, error messages",
            slots=("files", "context"),
        ),
    ),
)

SEVEN_SECTION = Template(
    "seven-section",
    (
        Section(
            "## TASK STATE",
            "The goal, what is finished, and the current state of the work.",
            is_core=True,
            slots=("goal", "done", "in_progress"),
        ),
        Section(
            "## FILES",
            "- path: what matters about it, what was changed in it and why",
            slots=("files",),
        ),
        Section(
            "## TOOL HISTORY",
            "- commands and calls whose outcome still matters, with that outcome",
            slots=("history",),
        ),
        Section(
            "## ERRORS",
            "- exact error message: its cause and what was done about it, or that it is open",
            slots=("errors",),
        ),
        Section("## DECISIONS", "- what was decided, and why", slots=("decisions", "context")),
        Section(
            "## USER GUIDANCE",
            "- each rule, wish, correction or limit the user stated, in their own words",
            slots=("guidance",),
        ),
        Section(
            "## NEXT STEPS",
            "1. the very next action\n2. what follows, in order",
            is_core=True,
            slots=("next_steps",),
        ),
    ),
)


def template_named(name: TemplateName) -> Template:
    """The template of the setting ``compaction.template``."""
    return STRUCTURED if name == "structured" else SEVEN_SECTION
