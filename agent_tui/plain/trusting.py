"""Asking whether a folder is trusted, in words."""

from agent_tui.errors import AgentTuiError
from agent_tui.plain.command_table import command
from agent_tui.plain.host import PlainHost


def ask_about_workspace(host: PlainHost, *, is_wanted: bool = False) -> None:
    """Ask about the folder that is worked in, and go on as the answer says.

    Args:
        host: Where to ask and to tell.
        is_wanted: Ask even if it is decided, or nothing there would be obeyed.
    """
    trust, cwd = host.runtime.services.trust, host.runtime.conversation.cwd
    question = trust.question_about(cwd) if is_wanted else trust.question(cwd)
    if question is None:
        if is_wanted:
            host.say(f"{cwd} is too broad to be trusted. Work in one of the folders below.")
        return
    answer = host.asker.trust(question)
    if answer is None and is_wanted:
        return
    try:
        trust.answer(question, answer)
    except AgentTuiError as error:
        host.say(str(error))
    host.show(host.agent.wait(host.runtime.sessions.apply_trust()))
    host.say(f"{question.folder}: {trust.state_of(question.folder)}")


@command()
def trust(host: PlainHost, _argument: str) -> None:
    """Say whether this folder's AGENTS.md and settings are obeyed."""
    ask_about_workspace(host, is_wanted=True)
