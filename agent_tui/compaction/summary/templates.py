"""The templates for notes: headings, what belongs under each, and which are required."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent_tui.compaction.sections.history import without_code
from agent_tui.compaction.summary.degeneration import says_nothing
from agent_tui.compaction.transcript import beginning_of
from agent_tui.tokens import TokenCounter

TemplateName: TypeAlias = Literal["structured", "seven-section"]

_REST_LEFT_OUT = "[... the rest is left out ...]"
_AS_OF_EARLIER = "(Written at an earlier compaction; the text around it is newer.)"


@dataclass(frozen=True, slots=True)
class Template:
    """The sections, in order.

    Args:
        form: The empty form as shown to a model: each heading with what belongs below it. A heading
            with nothing below groups the sections after it.
        goal: The heading of the goal. Notes without a goal are useless.
        next_steps: The heading of the next steps, which is required.
        passing: Headings of sections that are valid only until the work continues.
        in_progress: The one of them for the work in progress; may be empty.
        state: The one for test results; may be empty.
        rest: The one for points that stand below no heading; may be empty.
    """

    form: str
    goal: str
    next_steps: str
    passing: frozenset[str]
    in_progress: str = ""
    state: str = ""
    rest: str = ""

    @property
    def guides(self) -> dict[str, str]:
        """The instruction below each heading; empty for a heading that groups sections."""
        parts = (part.partition("\n") for part in self.form.split("\n\n"))
        return {heading: guide for heading, _, guide in parts}

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings that have text."""
        return tuple(heading for heading, guide in self.guides.items() if guide)

    @property
    def core(self) -> tuple[str, ...]:
        """The required headings."""
        return (self.goal, self.next_steps)

    def parse(self, document: str) -> dict[str, str]:
        """The bodies of the headings that `document` has, by exact heading.

        Level, case, bold marks and colon of headings are ignored, and at the beginning of a
        paragraph they need no mark; other headings stay part of their body. Text before the first
        heading has the key ``""``, but from its first point on it belongs to `rest`.
        """
        by_title = {_plain(heading): heading for heading in self.guides}
        bodies: dict[str, list[str]] = {}
        current = bodies.setdefault("", [])
        before = ""
        for line in document.split("\n"):
            is_heading = _HEADING.match(line) or (not before.strip() and _BARE.fullmatch(line))
            heading = by_title.get(_plain(line)) if is_heading else None
            if heading is None and self.rest and current is bodies[""] and _POINT.match(line):
                current = bodies.setdefault(self.rest, [])
            if heading is not None:
                current = bodies.setdefault(heading, [])
            else:
                current.append(line)
            before = line
        joined = {heading: "\n".join(lines).strip() for heading, lines in bodies.items()}
        return {heading: body for heading, body in joined.items() if heading or body}

    def render(self, bodies: Mapping[str, str]) -> str:
        """The document with those `bodies` that are not empty."""
        parts: list[str] = []
        group = ""
        for heading, guide in self.guides.items():
            body = bodies.get(heading, "").strip()
            if not heading.startswith("###"):
                group = ""
            if not says_nothing(body):
                parts += [group] if group else []
                parts.append(f"{heading}\n{body}")
                group = ""
            elif not guide:
                group = heading
        return "\n\n".join(parts)


_HEADING = re.compile(r"\s{0,3}(#{1,6}\s|\*\*|\d{1,2}\.\s)")
_BARE = re.compile(r"[A-Z][\w &]*:?\s*")
"""A line that is a heading without a mark if a template has it."""

_POINT = re.compile(r"\s{0,3}(?:[-*+]|\d{1,2}[.)])\s")


def _plain(line: str) -> str:
    return re.sub(r"^\d+[.)]\s*", "", line.strip("#*: \t")).strip("* ").casefold()


STRUCTURED = Template(
    """\
## Goal
What the user ultimately wants, in one to three sentences, and the newest request. Several goals: \
a list.

## Constraints & Preferences
- each rule, wish or limit of the user that still holds, old ones too, in their words

## Progress

### Done
- [x] finished work, with the files it touched and how it was checked; nothing of which a part is \
still in Next Steps

### In Progress
- [ ] what was in progress when this was written, and exactly where it stopped

### Blocked
- what is blocked, with the exact error message or the open question

### Next Steps
1. exactly what comes next
2. what follows, in order

## State
- the newest test results in exact numbers, with their command; what was pushed or published; \
branch, commit and uncommitted files only if nothing else in the context records them

## Key Decisions
- **decision**: why, and which other options were laid out
- **rejected, refused or dropped**: what it did, why, and whose objection it was
- **taken back**: what you or the user said before and say now, and why

## Errors and fixes
- each failure that taught something, refusals too: the command or edit itself, the whole exact \
message, the cause as the message gives it, what fixed it, what was tried in vain; warnings too

## Mistakes so far
- what was wrong in the work or in what you told the user, and whether it is put right

## Corrections by the user
- (number of their message) what they corrected, and what they want instead

## Critical Context
- what would have to be found again: where things are (path, name, lines), exact commands, \
signatures, values, traps; numbered proposals that the user may refer to, with their text; \
questions that wait for the user's answer""",
    goal="## Goal",
    next_steps="### Next Steps",
    passing=frozenset({"### In Progress", "### Blocked", "### Next Steps", "## State"}),
    in_progress="### In Progress",
    state="## State",
    rest="## Critical Context",
)

SEVEN_SECTION = Template(
    """\
## TASK STATE
The goal, what is finished, and the current state of the work.

## FILES
- path: what matters about it, what was changed in it and why

## TOOL HISTORY
- commands and calls whose outcome still matters, with that outcome

## ERRORS
- command and exact error message: its cause and what was done about it, or that it is open

## DECISIONS
- what was decided, dropped or taken back, and why

## USER GUIDANCE
- each rule, wish, correction or limit of the user that still holds, in a few of their words

## NEXT STEPS
1. the very next action
2. what follows, in order""",
    goal="## TASK STATE",
    next_steps="## NEXT STEPS",
    passing=frozenset({"## ERRORS", "## NEXT STEPS"}),
    rest="## TOOL HISTORY",
)


CLAUDE_CODE = Template(
    """\
1. Primary Request and Intent:
what was asked

2. Key Technical Concepts:
- what the work is about

3. Files and Code Sections:
- files, with what was done to them

4. Errors and Fixes:
- what failed, and its fix

5. Problem Solving:
- what was solved

6. All User Messages:
- what the user wrote

7. Pending Tasks:
- what was asked and not done

8. Current Work:
what was done last

9. Optional Next Step:
what comes next""",
    goal="1. Primary Request and Intent:",
    next_steps="9. Optional Next Step:",
    passing=frozenset(
        {
            "6. All User Messages:",
            "7. Pending Tasks:",
            "8. Current Work:",
            "9. Optional Next Step:",
        }
    ),
)
"""The form of Claude Code's summaries, which imported sessions begin with.

The user's messages are in a section of their own.
"""


def template_named(name: TemplateName) -> Template:
    """The template that the setting ``compaction.template`` names."""
    return STRUCTURED if name == "structured" else SEVEN_SECTION


def fit_to_tokens(
    document: str, *, template: Template, counter: TokenCounter, max_tokens: int
) -> str:
    """Cut `document` to `max_tokens` by leaving out lines.

    The longest section loses lines first. In a list the first lines (the beginning) and the last
    ones (the current state) matter most, so lines are removed from one third on.
    """
    bodies = {h: body.split("\n") for h, body in template.parse(document).items() if h}
    costs = {h: [counter.count_text(line) + 1 for line in lines] for h, lines in bodies.items()}
    sizes = {heading: sum(cost) for heading, cost in costs.items()}
    total = counter.count_text("\n\n".join(bodies)) + sum(sizes.values())
    while total > max_tokens and any(costs.values()):
        longest = max((h for h in sizes if costs[h]), key=lambda heading: sizes[heading])
        third = len(bodies[longest]) // 3
        cost = costs[longest].pop(third)
        bodies[longest].pop(third)
        sizes[longest] -= cost
        total -= cost
    return template.render({heading: "\n".join(lines) for heading, lines in bodies.items()})


def earlier_notes(notes: str, *, template: Template, counter: TokenCounter, max_tokens: int) -> str:
    """The part of a model's `notes` that still holds at the next compaction without new notes.

    Sections on the work in progress do not; the sections by code cover that.
    """
    form = max((template, CLAUDE_CODE), key=lambda form: len(form.parse(notes)))
    bodies = {heading: body for heading, body in form.parse(notes).items() if heading}
    if bodies:
        lasting = {heading: bodies[heading] for heading in bodies.keys() - form.passing}
        text = form.render(lasting)
        text = without_code(text) if form is CLAUDE_CODE else text
        text = fit_to_tokens(text, template=form, counter=counter, max_tokens=max_tokens)
    else:  # in another form, from an imported session
        whole = without_code(notes).strip()  # it shows files as they were then
        text = beginning_of(whole, max_tokens, counter)
        text += f"\n{_REST_LEFT_OUT}" if len(text) < len(whole) else ""
    return f"{_AS_OF_EARLIER}\n\n{text}" if text else ""
