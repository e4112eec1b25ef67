"""``/why FILE:LINE``: who asked for a line, and the change that made it."""

import asyncio

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front, Page, PageSection
from agent_tui.sessions.lineage.chain import snapshot
from agent_tui.tools.git.blame import Blame
from agent_tui.tools.line_history.project import FileHistory, read_file_history
from agent_tui.tools.line_history.why import (
    answer_lines,
    explain_line,
    read_place,
    read_present,
)
from agent_tui.tools.processes.keeper import ProcessKeeper


@command("<file:line>", takes_path=True)
async def why(front: Front, argument: str) -> None:
    """Show who asked for a line, the reason, and the change that made it."""
    if not argument:
        front.say("Give a file and a line: /why src/app.py:12.")
        return
    conversation = front.runtime.conversation
    services, own = conversation.services, snapshot(conversation.log)
    path, line = read_place(argument, conversation.cwd)

    def work_out() -> tuple[str, FileHistory, bool]:
        present = read_present(path)
        history = read_file_history(services.store, path, own)
        return present, history, services.trust.may_run_git(path.parent)

    present, history, may_ask = await asyncio.to_thread(work_out)
    blame = Blame(ProcessKeeper(), path, services.environ) if may_ask else None
    answer = await explain_line(history, path, line, present, blame)
    title, *rows = answer_lines(answer, conversation.cwd.resolve())
    await front.show(Page(title, (PageSection("", tuple(("", row) for row in rows)),)))
