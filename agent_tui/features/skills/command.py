"""Skills: list them, show those in use, and drop one."""

import asyncio
from collections.abc import Iterator

from agent_tui.agent.prompt.prompt_files import (
    FoundSkills,
    Skill,
    find_skills,
    find_withheld_skills,
)
from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front, Page, PageSection, Row
from agent_tui.commands.core.short_words import file_text
from agent_tui.sessions.entries import CustomMessageEntry
from agent_tui.sessions.replay.pins import pin_of

_HOW = (
    ("/NAME task", "use a skill for a task; the model can use skills too"),
    ("/skills drop NAME", "remove it from the context"),
    (
        "where they are",
        "In .agents/skills, .agent-tui/skills and .claude/skills of a trusted project and of your "
        "home folder: one folder per skill, with a SKILL.md. The text of a skill in use survives "
        "every compaction word for word.",
    ),
)
_NONE = "No skills."
_DROP = "drop "


def _completions(front: Front) -> Iterator[Completion]:
    for name, entry in _in_use(front).items():
        yield Completion(f"{_DROP}{name}", pin_text(entry))


@command("[drop NAME]", completions=_completions)
async def skills(front: Front, argument: str) -> None:
    """Show the skills, or drop one from the context."""
    if not argument:
        await front.show(await _page(front))
    elif not (argument + " ").startswith(_DROP):
        front.say(f"/skills takes drop NAME, not {argument}.", "warning")
    else:
        await _drop(front, argument[len(_DROP) :].strip())


async def _drop(front: Front, name: str) -> None:
    in_use = ", ".join(_in_use(front)) or "none"
    if not name:
        front.say(f"Name a skill. In use: {in_use}.", "warning")
    elif front.runtime.drop_skill(name):
        front.say(f"Skill {name} removed from the context.")
        front.show_events(await front.runtime.refresh_usage())
    else:
        front.say(f"Skill {name} is not in use. In use: {in_use}.", "warning")


async def _page(front: Front) -> Page:
    runtime = front.runtime
    conversation, services = runtime.conversation, runtime.services
    cwd = conversation.cwd
    found = await asyncio.to_thread(find_skills, cwd, services.user_config_dir, services.trust)
    withheld = await asyncio.to_thread(find_withheld_skills, cwd, services.trust)
    in_use = _in_use(front)
    used = await asyncio.to_thread(
        lambda: tuple(
            (name, f"about {services.counter.count_text(entry.text):,} tokens, {pin_text(entry)}")
            for name, entry in in_use.items()
        )
    )
    sections = [PageSection("In use", used)] if used else []
    sections.append(PageSection("Available", tuple(_rows(found)) or (("", _NONE),)))
    if withheld:
        rows = tuple((name, file_text(path, cwd)) for name, path in withheld.items())
        sections.append(PageSection("Not in force: this folder is not trusted (/trust)", rows))
    if found.problems:
        problems = tuple((file_text(path, cwd), why) for path, why in found.problems)
        sections.append(PageSection("Unusable", problems))
    return Page("Skills", (*sections, PageSection("How", _HOW)))


def _rows(found: FoundSkills) -> Iterator[Row]:
    for name in sorted(found.by_name):
        yield name, _describe(found.by_name[name])


def _describe(skill: Skill) -> str:
    whose = "yours" if skill.source == "user" else "this project's"
    only = "" if skill.is_for_model else ", only when you call it"
    return f"{skill.description} ({whose}{only})"


def _in_use(front: Front) -> dict[str, CustomMessageEntry]:
    return dict(front.runtime.conversation.skills_in_use())


def pin_text(entry: CustomMessageEntry) -> str:
    """The file of a pinned text, and whether it is cut."""
    pin = pin_of(entry)
    assert pin is not None
    return f"{pin.path}{', cut to fit the window' * pin.is_cut}"
