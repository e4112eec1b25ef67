"""Skills and instructions of subfolders: put into the context once, and kept there."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.agent.conversation import Conversation
from agent_tui.agent.prompt.context_files import (
    MAX_FILE_CHARS,
    load_folder_instructions,
    text_of,
)
from agent_tui.agent.prompt.fitted_prompt import even_shares
from agent_tui.agent.prompt.mentions import find_skill_names
from agent_tui.agent.prompt.prompt_files import (
    SKILL_FILE,
    PromptFileError,
    Skill,
    find_skills,
    find_withheld_skills,
    read_front_matter,
    read_prompt_bytes,
    skill_folders,
)
from agent_tui.events import AgentEvent, Notice, TextPinned
from agent_tui.messages import Pin, ToolDetails
from agent_tui.permissions.project_files import project_folders
from agent_tui.safe_paths import is_folder, path_from, real_path
from agent_tui.secret_text import mask_values
from agent_tui.sessions.replay.pins import pin_entry, pin_of, pins_on
from agent_tui.tokens import TokenCounter
from agent_tui.tools.base import ToolOutput
from agent_tui.tools.files.protected import is_secret_name

_SHARE = 4
_TAKEN_TOKENS = 1_024
"""Pinned texts take at most a quarter of what the window has beyond these tokens.

Of an 8k window that is one ordinary skill (the specification recommends under 5,000 tokens).
So an 8k window holds one ordinary skill (their specification recommends less than 5,000 tokens) and
some work.
"""

_LEAST_TOKENS = 60
"""A shorter cut is useless; then only the name and the path are given."""

_WITHHELD = "{name} was not used: this folder is not trusted ({file}). /trust changes that."

_MOST_FOLDERS = 40
"""Most folders between the workspace and a file."""


@dataclass(frozen=True, slots=True)
class _Text:
    """The full text of a file as it is now."""

    pin: Pin
    text: str
    first_line: int


class PinKeeper:
    """Pins texts for one conversation: see `agent_tui.sessions.replay.pins`.

    Everything is written to the session first, then emitted.

    Args:
        conversation: Gets the texts.
        emit: Takes the events.
    """

    def __init__(self, conversation: Conversation, emit: Callable[[AgentEvent], None]) -> None:
        self._conversation = conversation
        self._emit = emit

    async def use_skill(self, name: str) -> ToolOutput:
        """Pin the skill that the model asks for; returns the tool's output."""
        skills = await asyncio.to_thread(self._skills)
        known = sorted(skill.name for skill in skills.values() if skill.is_for_model)
        skill = skills.get(name.lower())
        if skill is None:
            there_are = f"Available: {', '.join(known)}." if known else "There are none."
            return ToolOutput(f"There is no skill {name!r}. {there_are}", is_error=True)
        try:
            text = await asyncio.to_thread(_skill_text, skill)
        except (OSError, PromptFileError) as error:
            return ToolOutput(f"{skill.path} cannot be used: {error}", is_error=True)
        pinned = await self._pin([text])
        details = ToolDetails(summary="in use" if pinned else "already in use")
        where = "follows" if pinned else "is already above, unchanged,"
        return ToolOutput(f"The text of skill {skill.name} {where} and stays.", details)

    async def follow(self, typed: str, files: Iterable[Path]) -> None:
        """Pin the skills and the instructions that belong to a user's message.

        Args:
            typed: What was typed of the message; ``/name`` and ``$name`` name skills.
            files: The files it mentions.
        """
        if written := await asyncio.to_thread(find_skill_names, typed):
            await self._pin_skills(written)
        await self.pin_instructions_of(files)

    async def _pin_skills(self, written: Iterable[str]) -> None:
        skills = await asyncio.to_thread(self._skills)
        named = [one for one in written if one[1:] in skills]
        await self._tell_withheld(one for one in written if one not in named)
        if not named:
            return
        commands = await asyncio.to_thread(self._conversation.services.command_names)
        names = dict.fromkeys(one[1:] for one in named if one[0] == "$" or one[1:] not in commands)
        texts: list[_Text] = []
        for skill in map(skills.__getitem__, names):
            try:
                if skill.is_for_person:
                    texts.append(await asyncio.to_thread(_skill_text, skill))
            except (OSError, PromptFileError) as error:
                self._emit(Notice("warning", f"{skill.path} cannot be used: {error}"))
        if texts:
            await self._pin(texts)

    async def _tell_withheld(self, written: Iterable[str]) -> None:
        """Say why a skill that a message names is not used, if the folder is not trusted."""
        cwd, trust = self._conversation.cwd, self._conversation.services.trust
        withheld = await asyncio.to_thread(find_withheld_skills, cwd, trust)
        for one in written:
            if (file := withheld.get(one[1:])) is not None:
                said = _WITHHELD.format(name=one, file=path_from(file, cwd))
                self._emit(Notice("warning", said))

    async def pin_instructions_of(self, paths: Iterable[Path]) -> None:
        """Pin the instructions of the subfolders that contain `paths`.

        Args:
            paths: Absolute, links followed.
        """
        if found := await asyncio.to_thread(self._instructions_at, tuple(paths)):
            await self._pin(found)

    async def refresh(self) -> None:
        """Update pinned texts to their files and the window; called as a turn begins."""
        self._conversation.looked_into.clear()
        if pins_on(self._conversation.log.path_entries()):
            await self._pin(())

    def _instructions_at(self, paths: Sequence[Path]) -> list[_Text]:
        """Instructions in folders of `paths` that were not searched yet."""
        conversation = self._conversation
        workspace, seen = real_path(conversation.cwd), conversation.looked_into
        added, may_obey = conversation.services.added_folders, conversation.services.trust.may_obey
        told = {file.path for file in conversation.context_files}
        texts: list[_Text] = []
        for folder in _folders_of(workspace, added, paths):
            if folder not in seen:
                seen.add(folder)
                below = folder.is_relative_to(workspace)
                name = (folder.relative_to(workspace) if below else folder).as_posix()
                files = load_folder_instructions(folder, may_obey)
                texts += [_instructions(f.path, name, f.text) for f in files if f.path not in told]
        return texts

    def _skills(self) -> dict[str, Skill]:
        services = self._conversation.services
        found = find_skills(self._conversation.cwd, services.user_config_dir, services.trust)
        return dict(found.by_name)

    async def _pin(self, new: Sequence[_Text]) -> bool:
        """Pin `new` beside the pinned texts, all as their files are now and as the window allows.

        Unchanged texts are not written again; returns whether anything was.
        """
        conversation = self._conversation
        before = {
            path: (pin, entry.text)
            for path, entry in pins_on(conversation.log.path_entries()).items()
            if (pin := pin_of(entry)) is not None
        }
        texts, notices = await asyncio.to_thread(self._present, before, new)
        counter, window = conversation.services.counter, conversation.model_info.window
        fitted = await asyncio.to_thread(_fit, texts, window, counter)
        for notice in notices:
            self._emit(notice)
        is_written = False
        for pin, text in fitted:
            entry = pin_entry(pin, mask_values(text, conversation.services.secrets))
            known = before.get(pin.path)
            if known is not None and known[1] == entry.text:
                continue
            is_written = True
            placed = conversation.log.append(entry)
            is_changed = known is not None and known[0].digest != pin.digest
            self._emit(TextPinned(placed.id, pin, is_changed))
        return is_written

    def _present(
        self, before: dict[str, tuple[Pin, str]], new: Sequence[_Text]
    ) -> tuple[list[_Text], list[Notice]]:
        """The texts to pin, as their files are now, and notices for the user."""
        conversation = self._conversation
        texts = {text.pin.path: text for text in new}
        notices: list[Notice] = []
        for path, (pin, text) in before.items():
            if path in texts:
                continue
            if not pin.has_file:
                texts[path] = _Text(pin, _body(text), 1)
                continue
            try:
                found = _again(pin) if self._may_read(Path(path)) else None
            except (OSError, PromptFileError):
                found = None
            if found is None and path not in conversation.told_gone:
                conversation.told_gone.add(path)
                said = f"{path} can no longer be read; its last known text stays in effect."
                notices.append(Notice("info", said))
            texts[path] = found or _Text(pin, _body(text), 1)
        return list(texts.values()), notices

    def _may_read(self, path: Path) -> bool:
        """Whether `path` may be read again: a session file from elsewhere could name any path."""
        services = self._conversation.services
        if is_secret_name(path.name):
            return False
        own = skill_folders(services.user_config_dir, services.trust.home)
        is_own = path.name == SKILL_FILE and any(path.is_relative_to(folder) for folder in own)
        return is_own or services.trust.may_obey(path)


def _body(text: str) -> str:
    """A pinned text without the tags around it."""
    return text.partition("\n")[2].rpartition("\n")[0]


def _skill_text(skill: Skill) -> _Text:
    """The body of a skill as its file is now.

    Raises:
        OSError, PromptFileError: It cannot be used.
    """
    data = read_prompt_bytes(skill.path)
    _, body = read_front_matter(data, ())
    text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    first = text[: text.rindex(body)].count("\n") + 1
    pin = Pin(kind="skill", name=skill.name, path=str(skill.path), digest=_digest(data))
    return _Text(pin, body, first)


def _instructions(path: Path, name: str, text: str) -> _Text:
    digest = _digest(text.encode("utf-8", "replace"))
    pin = Pin(kind="instructions", name=name, path=str(path), digest=digest)
    return _Text(pin, text.rstrip(), 1)


def _again(pin: Pin) -> _Text:
    """A pinned text as its file is now.

    Raises:
        OSError, PromptFileError: The file is no longer usable.
    """
    path = Path(pin.path)
    if pin.kind == "skill":
        return _skill_text(Skill(pin.name, path, "user", ""))
    return _instructions(path, pin.name, text_of(path)[:MAX_FILE_CHARS])


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _fit(texts: Sequence[_Text], window: int, counter: TokenCounter) -> Iterator[tuple[Pin, str]]:
    """Each text whole, or cut to an even share of the space that shorter ones leave.

    A text without a file is never cut, for nothing else holds the rest.
    """
    whole = [text for text in texts if not text.pin.has_file]
    texts = [text for text in texts if text.pin.has_file]
    sizes = [counter.count_text(text.text) for text in texts]
    room = max(window - _TAKEN_TOKENS, 0) // _SHARE if window > 0 else sum(sizes)
    fitted = [(text.pin, text.text) for text in whole]
    for text, size, share in zip(texts, sizes, even_shares(sizes, room), strict=True):
        if size <= share:
            fitted.append((text.pin, text.text))
        else:
            pin = text.pin.model_copy(update={"is_cut": True})
            fitted.append((pin, _cut_to(text, share, counter)))
    return iter(fitted)


def _cut_to(text: _Text, room: int, counter: TokenCounter) -> str:
    """The first lines that fit into `room` tokens, and a note on where to read the rest."""
    lines = text.text.split("\n")
    kept: list[str] = []
    left = room - _LEAST_TOKENS
    for line in lines:
        left -= counter.count_text(f"{line}\n")
        if left < 0:
            break
        kept.append(line)
    offset = text.first_line + len(kept)
    rest = f"(cut here to fit; to see the rest, read this file with offset={offset})"
    return "\n".join([*kept, rest])


def _folders_of(workspace: Path, added: Sequence[Path], paths: Iterable[Path]) -> Iterator[Path]:
    """The folders that contain `paths`, or are `paths`, outermost first.

    Only folders below `workspace`, and `added` folders and those below them.
    """
    above = set(project_folders(workspace))
    for path in paths:
        root = next((root for root in (workspace, *added) if path.is_relative_to(root)), None)
        if root is None:
            continue
        parts = path.relative_to(root).parts[:_MOST_FOLDERS]
        for count in range(len(parts) + 1):
            folder = root.joinpath(*parts[:count])
            if folder not in above and is_folder(folder):
                yield folder
