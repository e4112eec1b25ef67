"""The command about what every conversation is told: AGENTS.md files."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

from agent_tui.agent.context_files import load_context_files
from agent_tui.agent.memory import (
    add_line,
    changes_on_disk,
    files_in_force,
    make_folder,
    own_file,
    project_file,
    why_not_obeyed,
)
from agent_tui.permissions.project_files import CONTEXT_NAMES
from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.commands.registry import Choice, command
from agent_tui.ui.file_names import shown_file
from agent_tui.ui.memory_page import memory_page

_MINE = "--user"
_BUSY = "Cannot {} while responding. Use /abort first."


def _choices(host: CommandHost) -> Iterator[Choice]:
    runtime = host.runtime
    yield Choice("add ", "add a line to this project's AGENTS.md")
    yield Choice(f"add {_MINE} ", "add a line to yours, for all folders")
    yield Choice("edit", "open this project's in $EDITOR")
    yield Choice(f"edit {_MINE}", "open yours")
    files = [file.path for file in runtime.conversation.context_files]
    files += [
        file.path for file in runtime.conversation.withheld_files if file.path.name in CONTEXT_NAMES
    ]
    for file in files:
        yield Choice(f"edit {shown_file(file, runtime.conversation.cwd)}", "open this one")
    yield Choice("reload", "read them again")


@command(f"[add [{_MINE}] TEXT | edit [file] | reload]", choices=_choices)
async def memory(host: CommandHost, argument: str) -> None:
    """Show or change what AGENTS.md tells."""
    verb, _, rest = argument.partition(" ")
    match verb:
        case "":
            await _show(host)
        case "add":
            await _add(host, rest.strip())
        case "edit":
            await _edit(host, rest.strip())
        case "reload":
            await _reload(host)
        case _:
            host.say(f"/memory takes add, edit or reload, not {verb}.", "warning")


async def _show(host: CommandHost) -> None:
    from agent_tui.ui.screens.page import PageScreen

    runtime = host.runtime
    conversation, trust = runtime.conversation, runtime.services.trust
    in_force, on_disk, prompt = await asyncio.gather(
        asyncio.to_thread(
            files_in_force,
            runtime.conversation.context_files,
            conversation.services.counter.count_text,
        ),
        asyncio.to_thread(
            load_context_files,
            runtime.services.user_config_dir,
            runtime.conversation.cwd,
            trust.may_obey,
        ),
        asyncio.to_thread(lambda: conversation.prompt),
    )
    page = memory_page(
        in_force,
        changes_on_disk(runtime.conversation.context_files, on_disk),
        runtime.conversation.withheld_files,
        runtime.conversation.cwd,
        window=runtime.conversation.model_info.window,
        fit_note=prompt.note,
    )
    await host.ask(PageScreen(page))


async def _add(host: CommandHost, text: str) -> None:
    is_mine = text == _MINE or text.startswith(f"{_MINE} ")
    line = text.removeprefix(_MINE).strip() if is_mine else text
    if not line:
        host.say(f"What should be remembered? Write /memory add [{_MINE}] and the line.", "warning")
        return
    file = _file(host, is_mine=is_mine)
    if why := "" if is_mine else why_not_obeyed(file, host.runtime.services.trust):
        host.say(f"{file} is not obeyed: {why}. Use /trust, or /memory add {_MINE}.", "warning")
        return
    was_there = file.exists()
    await asyncio.to_thread(add_line, file, line)
    await _put_in_force(host, file, "Added to" if was_there else "Made", f": {line}")


async def _edit(host: CommandHost, wanted: str) -> None:
    if host.runtime.is_busy:
        host.say(_BUSY.format("open an editor"), "warning")
        return
    if wanted in ("", _MINE):
        file = _file(host, is_mine=wanted == _MINE)
    else:
        file = _named_file(host.runtime.conversation.cwd, wanted)
        if file.name not in CONTEXT_NAMES:
            host.say(f"{wanted} is neither {' nor '.join(CONTEXT_NAMES)}.", "warning")
            return
    if wanted == _MINE:
        await asyncio.to_thread(make_folder, file)
    before = await asyncio.to_thread(_content, file)
    if not host.edit_file(file):
        return
    if await asyncio.to_thread(_content, file) == before:
        host.say(f"{shown_file(file, host.runtime.conversation.cwd)} is as it was.")
    else:
        await _put_in_force(host, file, "Changed", ".")


async def _reload(host: CommandHost) -> None:
    runtime = host.runtime
    if runtime.is_busy:
        host.say(_BUSY.format("read them again"), "warning")
        return
    before = runtime.conversation.context_files
    host.show_events(await runtime.sessions.apply_trust())
    names = ", ".join(
        shown_file(file.path, runtime.conversation.cwd)
        for file in runtime.conversation.context_files
    )
    is_same = runtime.conversation.context_files == before
    said = "Read again, nothing changed" if is_same else "In force from the next message on"
    host.say(f"{said}: {names or 'no file'}.")


async def _put_in_force(host: CommandHost, file: Path, done: str, end: str) -> None:
    """Have the next message sent with `file` as it is now, where that can be; say so."""
    from agent_tui.ui.trust_question import ask_about_workspace

    runtime = host.runtime
    said = f"{done} {shown_file(file, runtime.conversation.cwd)}"
    if runtime.is_busy:
        later = "in force in the next session, or after /memory reload when the turn is done"
        host.say(f"{said}, {later}{end}")
        return
    is_first = runtime.services.trust.state_of(file.parent) == "not asked"
    if is_first and not file.is_relative_to(runtime.services.user_config_dir):
        await ask_about_workspace(host)
    host.show_events(await runtime.sessions.apply_trust())
    is_told = any(one.path == file for one in runtime.conversation.context_files)
    counts = "in force from the next message on" if is_told else "not in force (/memory says why)"
    host.say(f"{said}, {counts}{end}")


def _file(host: CommandHost, *, is_mine: bool) -> Path:
    runtime = host.runtime
    return (
        own_file(runtime.services.user_config_dir)
        if is_mine
        else project_file(runtime.conversation.cwd)
    )


def _named_file(cwd: Path, written: str) -> Path:
    try:
        return Path(os.path.normpath(cwd / Path(written).expanduser()))
    except RuntimeError:  # ~ of an unknown person
        return cwd / written


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None
