"""The sandbox in a conversation: a reopened session has a new one, without temporary files."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from agent_tui.agent.activity import Emit
from agent_tui.agent.part import Answer, CallAnswer, Host, Part
from agent_tui.messages import AssistantMessage, ToolCall
from agent_tui.sessions.entries import CustomMessageEntry, Entry, MessageEntry

FILES_GONE = "temporary_files_gone"
"""The custom type of the entry that tells the model that a new sandbox has no such files."""


class SandboxPart(Part):
    """Tells the model once that the temporary files of a reopened session are gone."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._has_run = False

    async def before_message(self, text: str, emit: Emit) -> Answer:
        """Add the entry behind the first message, if commands named temporary files before."""
        return Answer(added=(_files_gone_entry(),) if await self._lacks_files() else ())

    async def before_continuing(self, emit: Emit) -> None:
        """Append the entry if the last turn of a reopened session is continued."""
        if await self._lacks_files():
            self.host.conversation.log.append(_files_gone_entry())

    async def before_call(self, call: ToolCall, paths: Sequence[Path], emit: Emit) -> CallAnswer:
        """Note that the temporary files that commands name from now on are the present ones."""
        self._has_run = True
        return CallAnswer()

    async def _lacks_files(self) -> bool:
        if self._has_run:
            return False
        conversation = self.host.conversation
        path = conversation.log.path_entries()
        if not await asyncio.to_thread(_names_temporary_files, path):
            return False
        return await asyncio.to_thread(conversation.services.sandbox.is_on, conversation.cwd)


_TEMPORARY = re.compile(r"/tmp\b|\$\{?TMPDIR\b")


def _names_temporary_files(path: Sequence[Entry]) -> bool:
    """Whether a command in the sandbox named temporary files since the model was last told."""
    for entry in reversed(path):
        match entry:
            case CustomMessageEntry(custom_type="temporary_files_gone"):
                return False
            case MessageEntry(message=AssistantMessage() as said):
                inside = (call.arguments for call in said.tool_calls if call.name == "bash")
                commands = (
                    str(given.get("command")) for given in inside if not given.get("outside")
                )
                if any(map(_TEMPORARY.search, commands)):
                    return True
            case _:
                pass
    return False


def _files_gone_entry() -> CustomMessageEntry:
    """The entry that tells the model that a new sandbox has none of its temporary files."""
    return CustomMessageEntry(
        custom_type=FILES_GONE,
        content="(The session was reopened: the sandbox has no temporary files from before.)",
        display=False,
    )
