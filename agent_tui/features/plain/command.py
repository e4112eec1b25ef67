"""``agent-tui --plain``: holds the conversation line by line."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from agent_tui.cli.arguments import Arguments
from agent_tui.cli.compose import Program, command_services, compose
from agent_tui.cli.folders import folder_trust, launch_folder, project_store, withheld_notice
from agent_tui.cli.local_option import have_a_local_model
from agent_tui.cli.unread_rules import find_unread
from agent_tui.commands.core.demo import own_demo
from agent_tui.commands.core.front import Question
from agent_tui.commands.trust import trust_question
from agent_tui.commands.unread_rules import file_to_open, unread_question
from agent_tui.errors import AgentTuiError, UsageError
from agent_tui.features.plain.keyboard import Interrupts, Keyboard, TerminalInput, terminal_lines
from agent_tui.features.plain.questions import Asker
from agent_tui.features.plain.session import PlainOptions, run_plain
from agent_tui.features.plain.voice import LineWriter
from agent_tui.permissions.rule_book import UnreadRules
from agent_tui.permissions.trust import FolderTrust
from agent_tui.text_editor import editor_command, run_editor

ValueT = TypeVar("ValueT")


def run_front(arguments: Arguments) -> int:
    """Hold the conversation line by line; returns the exit code.

    Raises:
        UsageError: There is no terminal to read from, or no such folder or session, or the user
            leaves because deny rules cannot be read.
        ModelFileError: The model for ``--local`` could not be fetched.
    """
    if not sys.stdin.isatty():
        raise UsageError("--plain needs a terminal.", "Use -p to run one prompt in a script.")
    trust = folder_trust(arguments)
    held: list[str] = []
    if not arguments.is_demo:
        ask_for_trust(trust, arguments, held)
    may_lack_rules = ask_about_unread(lambda: find_unread(arguments, trust), held)
    if arguments.is_local:
        have_a_local_model(redraws=False)
    program = compose(arguments, is_interactive=True, trust=trust, may_lack_rules=may_lack_rules)
    return run_plain(replace(_options(arguments, program), typed_before=tuple(held)))


def ask_for_trust(trust: FolderTrust, arguments: Arguments, held: list[str] | None = None) -> None:
    """Ask on the terminal whether to trust the folder, before anything in it is read.

    `held` receives messages that were typed before the question.
    """
    question = trust.question(launch_folder(arguments))
    if question is None:
        return
    answer = _ask(trust_question(question), held)
    try:
        trust.answer(question, answer)
    except AgentTuiError as error:
        LineWriter(sys.stdout, tuple).line(str(error))


def ask_about_unread(
    find: Callable[[], Sequence[UnreadRules]], held: list[str] | None = None
) -> bool:
    """Ask on the terminal about deny rules that cannot be read, until they can be.

    `held` receives messages that were typed before the question.

    Returns:
        Whether to continue without them.
    """
    while unread := find():
        answer = _ask(unread_question(unread), held)
        file = file_to_open(unread)
        if answer != "open" or file is None:
            return answer == "ask"
        try:
            run_editor(editor_command(os.environ), file)
        except AgentTuiError as error:
            LineWriter(sys.stdout, tuple).line(str(error))
    return False


def _ask(question: Question[ValueT], held: list[str] | None) -> ValueT | None:
    lines = LineWriter(sys.stdout, tuple)
    interrupts = Interrupts(lambda: None)
    source = terminal_lines((), os.environ, sys.stdin, sys.stdout)
    keyboard = Keyboard(source, interrupts.reading, TerminalInput(sys.stdin), held)
    with interrupts.handle_signals():
        return Asker(lines, keyboard).question(question)


def _options(arguments: Arguments, program: Program) -> PlainOptions:
    runtime = program.runtime
    demo = own_demo() if arguments.is_demo else None
    notices = [
        *program.start_notices,
        withheld_notice(runtime.conversation.withheld_files, runtime.conversation.cwd),
        f"{demo.notice} Type anything to begin." if demo is not None else "",
    ]
    return PlainOptions(
        runtime=runtime,
        services=command_services(arguments, program),
        warm=program.warm,
        close=program.aclose,
        history_file=project_store(runtime.conversation.cwd) / "history.jsonl",
        notices=tuple(filter(None, notices)),
        first_prompt=arguments.prompt,
        resume=program.resume or "",
        keeps_model=program.keeps_model,
        lists_sessions=program.resume == "",
    )
