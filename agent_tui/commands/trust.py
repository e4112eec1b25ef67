"""Trust: whether the program reads and starts what the folder provides."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import (
    Choice,
    Front,
    Question,
    after_turn,
    is_at_terminal,
    refuse_without_screen,
)
from agent_tui.errors import AgentTuiError
from agent_tui.permissions.project_files import AGENTS_FOLDERS, COMMANDS_FOLDERS, SKILLS_FOLDERS
from agent_tui.permissions.trust import TrustAnswer, TrustQuestion, TrustState
from agent_tui.safe_text import safe_text
from agent_tui.tools.server_spec import ServerSpec

if TYPE_CHECKING:  # pydantic loads after the first paint
    from agent_tui.agent.part import ProgramQuestion

_MAX_FILES_SHOWN = 3
_MAX_PATH_CHARS = 100
_MAX_NAME_CHARS = 46

_TRUST_ANSWERS: tuple[Choice[TrustAnswer], ...] = (
    Choice("trust", "trust it and its subfolders from now on", "y"),
    Choice("this run", "trust it for this run only", "o"),
    Choice("no", "no: ignore its instructions and settings", "n"),
)
_TRUST_STATES: Mapping[TrustState, str] = {
    "trusted": "It is currently trusted.",
    "not trusted": "It is currently not trusted.",
    "not asked": "Trust it only if you know who made it.",
}
_NOT_TO_START: tuple[Choice[bool | None], ...] = (
    Choice(None, "not now; ask again next time", "n"),
    Choice(False, "no, and don't ask again", "d"),
)


@command(
    refusal=refuse_without_screen("Cannot change trust while the agent works. {stop}"),
    needs="person",
)
async def trust(front: Front, _argument: str) -> None:
    """Choose whether to trust this folder."""
    await ask_about_workspace(front, is_wanted=True)


async def ask_about_workspace(front: Front, *, is_wanted: bool = False) -> None:
    """Ask whether to trust the working folder, and act on the answer.

    Args:
        front: The front to ask and show in.
        is_wanted: Ask even if that is decided, or nothing there would take effect.
    """
    runtime = front.runtime
    trust, cwd = runtime.services.trust, runtime.conversation.cwd
    find = trust.question_about if is_wanted else trust.question
    question = await asyncio.to_thread(find, cwd)
    if question is None:
        if is_wanted:
            front.say(f"{cwd} is too broad to trust. Work in one of its subfolders.")
        await ask_about_started(front)
        return
    answer = await front.ask(trust_question(question))
    if answer is None and is_wanted:
        return
    try:
        await asyncio.to_thread(trust.answer, question, answer)
    except AgentTuiError as error:
        front.say(str(error), "warning")
    async with after_turn(front, "This takes effect when this turn ends."):
        front.show_events(await runtime.sessions.apply_trust())
    if is_wanted:
        front.say(f"{question.folder}: {trust.state_of(question.folder)}")
    if answer in ("trust", "this run") and any(f.suffix == ".toml" for f in question.files):
        front.say("Its rules apply now, its other settings the next time agent-tui starts there.")
    await ask_about_started(front)


async def ask_about_started(front: Front) -> None:
    """Ask about undecided programs that files want to start: servers, then others."""
    await ask_about_servers(front)
    for part in front.runtime.parts:
        for question in await part.questions():
            if is_at_terminal(front) or not question.at_terminal:
                await ask_about_program(front, question)


async def ask_about_program(front: Front, question: "ProgramQuestion") -> None:
    """Ask whether a program that the project names may run, and pass the answer on."""
    await _decide(front, program_question(question), question.answer)


async def ask_about_servers(front: Front) -> None:
    """Ask about each undecided MCP server of the project, and start the allowed ones."""
    servers = front.services.servers
    await servers.reconcile(front.runtime.conversation.cwd)
    for spec in servers.not_asked:
        await _decide(front, server_question(spec), partial(servers.answer, spec))


async def _decide(
    front: Front, question: Question[bool | None], answer: Callable[..., Awaitable[object]]
) -> None:
    """Ask `question`, and pass a decision to `answer` as `is_allowed`."""
    is_allowed = await front.ask(question)
    if is_allowed is None:
        return
    try:
        await answer(is_allowed=is_allowed)
    except AgentTuiError as error:
        front.say(str(error), "warning")


def trust_question(question: TrustQuestion) -> Question[TrustAnswer]:
    """The question whether to trust a folder; short, so that the answers stay visible."""
    facts = [_short(str(question.folder), _MAX_PATH_CHARS), ""]
    if question.files:
        facts.append("These would take effect:")
        facts += [f"  {_file_text(file, question)}" for file in question.files[:_MAX_FILES_SHOWN]]
        more = len(question.files) - _MAX_FILES_SHOWN
        facts += [f"  … and {more} more"] if more > 0 else []
    else:
        facts.append("It has no AGENTS.md, settings or commands for agent-tui yet.")
    if question.git_risk:
        doubt = question.git_risk.replace(f"{question.folder}/", "")
        facts.append(_short(f"Git risk: {doubt}", _MAX_PATH_CHARS))
    elif question.has_repository:
        facts.append("agent-tui would run git here (a repository's git settings can run programs).")
    return Question(
        "Trust this folder?",
        (*facts, _TRUST_STATES[question.state]),
        _TRUST_ANSWERS,
        is_grave=True,
        unanswered="continue without; asks again next time",
        marked=2,
    )


def server_question(spec: ServerSpec) -> Question[bool | None]:
    """The question whether to start a server of a project or an editor; shows all of it."""
    verb = "Connect to" if spec.url else "Start"
    does = (
        "It receives the arguments of the calls the model makes."
        if spec.url
        else "It runs with your permissions, unsupervised."
    )
    extras = (f"with {extra}" for extra in spec.extras)
    title = f"{verb} this {spec.origin}'s MCP server {spec.name}?"
    return _start_question(title, (spec.command_line, *extras, f"defined in {spec.source}", does))


def program_question(question: "ProgramQuestion") -> Question[bool | None]:
    """`question` as a front asks it; shows all of it."""
    title = safe_text(question.title, keep_newlines=False)
    return _start_question(title, question.facts, question.until)


def _start_question(
    title: str, facts: Iterable[str], until: str = "its command changes"
) -> Question[bool | None]:
    """A question about something that a file or an editor wants to start."""
    return Question(
        title,
        tuple(safe_text(fact, keep_newlines=False) for fact in facts),
        (Choice(True, f"yes, until {until}", "y"), *_NOT_TO_START),
        is_grave=True,
        unanswered="not now",
        marked=1,
    )


def _file_text(file: Path, question: TrustQuestion) -> str:
    """A file; for a folder of prompt files, which is not listed before, its kind of contents."""
    name = str(file.relative_to(question.folder))
    kinds = {
        **dict.fromkeys(COMMANDS_FOLDERS, "/*.md (commands)"),
        **dict.fromkeys(AGENTS_FOLDERS, "/*.md (helpers)"),
        **dict.fromkeys(SKILLS_FOLDERS, "/*/SKILL.md (skills)"),
    }
    return _short(name, _MAX_NAME_CHARS) + kinds.get(Path(*file.parts[-2:]), "")


def _short(text: str, limit: int) -> str:
    """`text` on one line; a long one is cut in the middle."""
    line = safe_text(text, keep_newlines=False)
    if len(line) <= limit:
        return line
    return f"{line[: limit // 2]}…{line[-(limit // 2) :]}"
