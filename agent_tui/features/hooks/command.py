"""The hooks: commands that are run when something happens."""

from collections.abc import Sequence
from pathlib import Path

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front, Page, PageSection
from agent_tui.commands.core.short_words import short_path
from agent_tui.commands.trust import ask_about_program
from agent_tui.features.hooks.dispatcher import HookResult, Hooks
from agent_tui.features.hooks.files import FoundHook
from agent_tui.features.hooks.part import HooksPart
from agent_tui.safe_text import printable_line

_HOW = (
    ("/hooks ask", "choose again which project hooks may run"),
    ("when they apply", "A project's from your next message, yours when agent-tui starts."),
    ("what they can do", "Deny, ask or add context; never allow what would otherwise ask."),
)
_HOW_TO_HAVE_ONE = (
    (
        "yours",
        'In config.toml: [[hooks.PostToolUse]] with matcher = "Edit|Write" and command = "...".',
    ),
    (
        "a project's",
        ".agent-tui/hooks.json, .claude/settings.json or .codex/hooks.json in its folder.",
    ),
)


@command(
    "[ask]",
    completions=lambda _front: (Completion("ask", "choose which project hooks may run"),),
)
async def hooks(front: Front, argument: str) -> None:
    """Show the hooks and their last results."""
    part = front.runtime.part(HooksPart)
    match argument.strip():
        case "":
            await part.hooks.take_up(front.runtime.conversation.cwd)
            await front.show(hook_page(part.hooks, Path.home()))
        case "ask" if front.can_ask:
            questions = await part.questions(asks_again=True)
            if not questions:
                front.say("This project has no hooks, or is not trusted (see /trust).")
            for question in questions:
                await ask_about_program(front, question)
        case "ask":
            front.say("Cannot ask here. Run agent-tui in a terminal.", "warning")
        case other:
            front.say(f"/hooks takes ask, not {other}.", "warning")


def hook_page(hooks: Hooks, home: Path) -> Page:
    """The hooks in order, then unusable definitions, then how to define one."""
    found = hooks.found
    problems = [("ignored", problem) for problem in found.problems]
    sections = [
        PageSection(_heading(one), tuple(_rows(one, hooks.results.get(one.spec.fingerprint), home)))
        for one in found.hooks
    ]
    if problems:
        sections.append(PageSection("Problems", tuple(problems)))
    how = PageSection("How", _HOW if found.hooks else _HOW_TO_HAVE_ONE)
    title = () if found.hooks else (PageSection("No hooks", ()),)
    return Page("Hooks", (*title, *sections, how))


def _heading(one: FoundHook) -> str:
    about = f" ({one.spec.matcher})" if one.spec.matcher else ""
    state = {None: ": not approved yet", False: ": off", True: ""}[one.is_allowed]
    return f"{one.spec.event}{about}{state}"


def _rows(one: FoundHook, last: HookResult | None, home: Path) -> Sequence[tuple[str, str]]:
    kind = "function" if one.spec.function else "command"
    rows = [(kind, printable_line(one.spec.command, 2_000))]
    if one.is_allowed is None:
        rows.append(("why", "/hooks ask asks whether it may run"))
    elif not one.is_allowed:
        rows.append(("why", "you declined it; /hooks ask asks again"))
    if last is not None:
        outcome = printable_line(last.outcome, 300)
        rows.append(("last run", f"{last.at:%H:%M:%S}, {last.took_s:.1f} s: {outcome}"))
    elif one.is_allowed:
        rows.append(("last run", "not since agent-tui started"))
    return (*rows, ("defined in", short_path(Path(one.spec.source), home)))
