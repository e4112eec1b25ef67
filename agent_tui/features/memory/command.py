"""AGENTS.md files: show, write by the model, add to, edit, and reload."""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from importlib import resources
from pathlib import Path

from agent_tui.agent.prompt.context_files import (
    add_line,
    load_context_files,
    make_folder,
    own_file,
    project_file,
    why_not_obeyed,
)
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.attachments import instructions_block
from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front, Page, PageSection, has_model
from agent_tui.commands.core.short_words import count_text, file_text
from agent_tui.commands.instructions import put_in_force
from agent_tui.events import AgentEvent, Notice
from agent_tui.features.memory.changes import (
    FileChangeKind,
    FileInForce,
    changes_on_disk,
    files_in_force,
)
from agent_tui.messages import Pin
from agent_tui.permissions.project_files import (
    CONTEXT_NAMES,
    INSTRUCTION_NAMES,
    has_text,
    project_folders,
)
from agent_tui.permissions.trust import WithheldFile
from agent_tui.regular_files import read_regular_file
from agent_tui.safe_paths import path_from

_MINE = "--user"
_REFUSED = "outside the trusted folder, or may hold keys"
_BUSY = "Cannot {} while the agent works. {}"
_NONE = "None. /init has the model write AGENTS.md; /memory add TEXT starts one."
_CHANGES: dict[FileChangeKind, str] = {
    "changed": "changed since it was read",
    "new": "added since the session began",
    "gone": "deleted or no longer trusted, but still in effect",
}
_HOW = (
    (
        "/memory add TEXT",
        "add a line to this project's file; --user TEXT adds it to yours, for all folders",
    ),
    ("/memory edit [file]", "edit a file in $EDITOR; --user edits yours"),
    ("/memory reload", "read the files again"),
    (
        "when it applies",
        "Files are read when a session begins and after /compact. What you add or edit here "
        "applies from your next message. Other changes wait for /memory reload: when the system "
        "prompt changes, the provider reads the whole conversation again, once.",
    ),
)


def _completions(front: Front) -> Iterator[Completion]:
    runtime = front.runtime
    yield Completion("add ", "add a line to this project's AGENTS.md")
    yield Completion(f"add {_MINE} ", "add a line to your own file, for all folders")
    yield Completion("edit", "edit this project's file in $EDITOR")
    yield Completion(f"edit {_MINE}", "edit your own file")
    files = [file.path for file in runtime.conversation.context_files]
    files += [
        file.path
        for file in runtime.conversation.withheld_files
        if file.path.name in INSTRUCTION_NAMES
    ]
    for file in files:
        yield Completion(f"edit {file_text(file, runtime.conversation.cwd)}", "edit this file")
    yield Completion("reload", "read the files again")


@command(f"[add [{_MINE}] TEXT | edit [file] | reload]", completions=_completions)
async def memory(front: Front, argument: str) -> None:
    """Show or edit the AGENTS.md instructions."""
    verb, _, rest = argument.partition(" ")
    match verb:
        case "":
            await _show(front)
        case "add":
            await _add(front, rest.strip())
        case "edit":
            await _edit(front, rest.strip())
        case "reload":
            await _reload(front)
        case _:
            front.say(f"/memory takes add, edit or reload, not {verb}.", "warning")


async def _show(front: Front) -> None:
    runtime = front.runtime
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
        below=conversation.pins("instructions"),
    )
    await front.show(page)


async def _add(front: Front, text: str) -> None:
    is_mine = text == _MINE or text.startswith(f"{_MINE} ")
    line = text.removeprefix(_MINE).strip() if is_mine else text
    if not line:
        front.say(f"Add the text to remember: /memory add [{_MINE}] TEXT", "warning")
        return
    file = _file(front, is_mine=is_mine)
    if why := "" if is_mine else why_not_obeyed(file, front.runtime.services.trust):
        front.say(f"{file} is not in effect: {why}. Use /trust, or /memory add {_MINE}.", "warning")
        return
    was_there = file.exists()
    await asyncio.to_thread(add_line, file, line)
    await put_in_force(front, file, "Added to" if was_there else "Created", f": {line}")


async def _edit(front: Front, wanted: str) -> None:
    if front.runtime.is_busy:
        front.say(_BUSY.format("open an editor", front.runtime.services.ways.stop), "warning")
        return
    if wanted in ("", _MINE):
        file = _file(front, is_mine=wanted == _MINE)
    else:
        file = _file_at(front.runtime.conversation.cwd, wanted)
        if file.name not in INSTRUCTION_NAMES:
            front.say(f"{wanted} is not one of {', '.join(INSTRUCTION_NAMES)}.", "warning")
            return
    if wanted == _MINE:
        await asyncio.to_thread(make_folder, file)
    before = await asyncio.to_thread(_content, file)
    if not await front.edit_file(file):
        return
    if await asyncio.to_thread(_content, file) == before:
        front.say(f"{file_text(file, front.runtime.conversation.cwd)} is unchanged.")
    else:
        await put_in_force(front, file, "Changed", ".")


async def _reload(front: Front) -> None:
    runtime = front.runtime
    if runtime.is_busy:
        front.say(_BUSY.format("read the files again", front.runtime.services.ways.stop), "warning")
        return
    before = runtime.conversation.context_files
    front.show_events(await runtime.sessions.apply_trust())
    names = ", ".join(
        file_text(file.path, runtime.conversation.cwd)
        for file in runtime.conversation.context_files
    )
    is_same = runtime.conversation.context_files == before
    said = "Read again, no changes" if is_same else "In effect from your next message"
    front.say(f"{said}: {names or 'no files'}.")


def _file(front: Front, *, is_mine: bool) -> Path:
    runtime = front.runtime
    return (
        own_file(runtime.services.user_config_dir)
        if is_mine
        else project_file(runtime.conversation.cwd)
    )


def _file_at(cwd: Path, written: str) -> Path:
    try:
        return Path(os.path.normpath(cwd / Path(written).expanduser()))
    except RuntimeError:  # ~ of an unknown user
        return cwd / written


def _content(file: Path) -> bytes | None:
    try:
        return read_regular_file(file)
    except OSError:
        return None


def memory_page(
    in_force: Sequence[FileInForce],
    changes: Sequence[tuple[Path, FileChangeKind]],
    withheld: Sequence[WithheldFile],
    cwd: Path,
    *,
    window: int,
    fit_note: str,
    below: Sequence[Pin] = (),
) -> Page:
    """The files in force, most general first; those that are not, and why; how to change them.

    Args:
        in_force: Files that the model gets.
        changes: Files that have changed on disk.
        withheld: The project's files that are ignored.
        cwd: The workspace.
        window: Tokens of the model's window; 0 if unknown.
        fit_note: What was cut to fit that window; may be empty.
        below: Files in force for folders below the workspace.
    """
    rows = [(file_text(one.file.path, cwd), _size(one)) for one in in_force]
    if len(in_force) > 1:
        rows.append(("total", _tokens(sum(one.tokens for one in in_force), window)))
    sections = [PageSection("In effect", tuple(rows) or (("", _NONE),))]
    if fit_note:
        sections.append(PageSection("", (("", fit_note),)))
    refused = tuple(
        (file_text(p, cwd), _REFUSED) for one in in_force for p in one.file.not_imported
    )
    if refused:
        sections.append(PageSection("Named with @, not included", refused))
    if below:
        rows = [(f"{pin.name}/", pin.path) for pin in below]
        sections.append(PageSection("From subfolders where work was done", tuple(rows)))
    if changes:
        changed = tuple((file_text(path, cwd), _CHANGES[change]) for path, change in changes)
        sections.append(PageSection("Not in effect yet (/memory reload)", changed))
    if withheld:
        kept_back = tuple((file_text(file.path, cwd), file.why) for file in withheld)
        sections.append(PageSection("Not in effect (/trust)", kept_back))
    sections.append(PageSection("How to change it", _HOW))
    return Page("Instructions from AGENTS.md and CLAUDE.md", tuple(sections))


def _size(one: FileInForce) -> str:
    lines = len(one.file.text.splitlines())
    cut = ", cut: too long" if one.file.was_cut else ""
    return f"{_tokens(one.tokens, 0)}, {count_text(lines, 'line')}{cut}"


def _tokens(tokens: int, window: int) -> str:
    share = f", {tokens / window:.1%} of the window" if window else ""
    return f"about {tokens:,} tokens{share}"


@command(
    "[focus]",
    refusal="Cannot write AGENTS.md while the agent works. {stop}",
)
async def init(front: Front, argument: str) -> None:
    """Write or improve AGENTS.md."""
    runtime = front.runtime
    if runtime.conversation.permissions.mode == "plan":
        front.say("Plan mode cannot write files. Use /permissions ask first.", "warning")
        return
    if await has_model(front):
        prompt = await asyncio.to_thread(init_prompt, runtime.conversation.cwd, argument)
        await front.run(_write_file(runtime, prompt))


async def _write_file(runtime: AgentRuntime, prompt: str) -> AsyncGenerator[AgentEvent, None]:
    """Run the turn, then apply the file it wrote, without telling the model about it again."""
    before = runtime.conversation.context_files
    async with aclosing(runtime.submit(prompt)) as events:
        async for event in events:
            yield event
    file = init_target(runtime.conversation.cwd)
    if not file.exists():
        return
    for event in await runtime.sessions.apply_trust():
        yield event
    shown = file_text(file, runtime.conversation.cwd)
    if all(one.path != file for one in runtime.conversation.context_files):
        why = why_not_obeyed(file, runtime.services.trust)
        yield Notice("info", f"{shown} is not in effect: {why}. /trust changes that.")
    elif runtime.conversation.context_files != before:
        yield Notice("info", f"{shown} takes effect with your next message.")


def init_target(cwd: Path) -> Path:
    """The AGENTS.md nearest to `cwd`, or where the first one belongs: at the project's root."""
    folders = project_folders(cwd)
    files = [folder / CONTEXT_NAMES[0] for folder in folders]
    return next((file for file in reversed(files) if has_text(file)), files[0])


def init_prompt(cwd: Path, focus: str = "") -> str:
    """The prompt; the user sees only its first lines.

    Args:
        cwd: The workspace.
        focus: What the file should stress; may be empty.
    """
    file = init_target(cwd)
    shown = path_from(file, cwd)
    task, details = _read_text("init_prompt.md").replace("{file}", shown).split("\n\n", 1)
    if focus:
        task += f"\n\nIn particular: {focus}"
    if has_text(file):
        details += "\n\n" + _read_text("init_again_prompt.md").replace("{file}", shown)
    return f"{task}\n\n{instructions_block(details)}"


def _read_text(name: str) -> str:
    return resources.files("agent_tui.commands").joinpath(name).read_text("utf-8").strip()
