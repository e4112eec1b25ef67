"""``/why FILE:LINE``: who asked for a line, and the change that made it."""

import asyncio

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front, Page, PageSection
from agent_tui.features.why.line_history.answers import FOR_PEOPLE, answer_lines
from agent_tui.features.why.line_history.file_sessions import FileSessions
from agent_tui.features.why.line_history.project import FileHistory, read_file_history
from agent_tui.features.why.line_history.why import explain_lines, read_place, read_present
from agent_tui.safe_paths import real_path
from agent_tui.secret_text import mask_values
from agent_tui.tools.git.blame import Blame
from agent_tui.tools.processes.keeper import ProcessKeeper


@command("<file:line[-line]>", takes_path=True)
async def why(front: Front, argument: str) -> None:
    """Show who asked for a line, the reason, and the change that made it."""
    if not argument:
        front.say("Give a file and a line: /why src/app.py:12.")
        return
    conversation = front.runtime.conversation
    services, chain = conversation.services, front.runtime.history()
    place = read_place(argument, conversation.cwd)

    def work_out() -> tuple[str, FileHistory, bool]:
        present = read_present(place.path)
        history = read_file_history(FileSessions(services.store, chain.sessions()), place.path)
        return present, history, services.trust.may_run_git(place.path.parent)

    present, history, may_ask = await asyncio.to_thread(work_out)
    blame = Blame(ProcessKeeper(), place.path, services.environ) if may_ask else None
    answers = await explain_lines(history, place, present, blame)
    lines = answer_lines(answers, real_path(conversation.cwd), FOR_PEOPLE)
    title, *rows = (mask_values(line, services.secrets) for line in lines)
    await front.show(Page(title, (PageSection("", tuple(("", row) for row in rows)),)))
