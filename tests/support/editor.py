"""An editor of the tests: the client of the protocol's SDK, and the whole program behind it."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    FileSystemCapabilities,
    Implementation,
    ReadTextFileResponse,
    RequestPermissionResponse,
)

from tests.support.openai_server import OpenAiServer


@dataclass
class Editor:
    """A client that keeps what it is told, and answers questions as it is told to.

    Attributes:
        buffers: Files that are open, with what they hold unsaved; None does not offer files.
        refuses: Files that it does not write.
        forms: What forms are filled with; no forms are offered where there are none.
        filled: The forms: what was said, and their schemas.
        may_answer: Set while questions are answered.
    """

    answers: list[str] = field(default_factory=list)
    updates: list[Any] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    buffers: dict[str, str] | None = None
    refuses: tuple[str, ...] = ()
    forms: list[dict[str, Any]] = field(default_factory=list)
    filled: list[tuple[str, Any]] = field(default_factory=list)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()

    wrote: list[tuple[str, str]] = field(default_factory=list)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **_more: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, [option.option_id for option in options]))
        await self.may_answer.wait()
        answer = self.answers.pop(0)
        if answer == "closed":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        chosen = AllowedOutcome(outcome="selected", option_id=answer)
        return RequestPermissionResponse(outcome=chosen)

    async def session_update(self, session_id: str, update: Any, **_more: Any) -> None:
        self.updates.append(update)

    async def create_elicitation(self, message: str, mode: Any, **_more: Any) -> Any:
        self.filled.append((message, mode.requested_schema))
        return AcceptElicitationResponse(action="accept", content=self.forms.pop(0))

    async def read_text_file(
        self, path: str, session_id: str, **_more: Any
    ) -> ReadTextFileResponse:
        if self.buffers is None or path not in self.buffers:
            raise RequestError.resource_not_found(path)
        return ReadTextFileResponse(content=self.buffers[path])

    async def write_text_file(self, content: str, path: str, session_id: str, **_more: Any) -> None:
        if path in self.refuses:
            raise RequestError(-32000, "read-only here")
        self.wrote.append((path, content))
        Path(path).write_bytes(content.encode())
        if self.buffers is not None:
            self.buffers[path] = content.replace("\r\n", "\n")

    def on_connect(self, conn: Any) -> None:
        pass

    def kinds(self) -> list[str]:
        return [update.session_update for update in self.updates]

    def text(self, kind: str = "agent_message_chunk") -> str:
        chosen = (u for u in self.updates if u.session_update == kind)
        return "".join(update.content.text for update in chosen)

    def calls(self) -> dict[str, list[Any]]:
        """The updates of each call, by its title."""
        titles: dict[str, str] = {}
        found: dict[str, list[Any]] = {}
        for update in self.updates:
            if update.session_update == "tool_call":
                titles[update.tool_call_id] = update.title
            if update.session_update in ("tool_call", "tool_call_update"):
                found.setdefault(titles[update.tool_call_id], []).append(update)
        return found


@dataclass
class Place:
    """Folders, a model, and the program."""

    root: Path
    server: OpenAiServer

    @property
    def work(self) -> Path:
        return self.root / "work"

    @asynccontextmanager
    async def editor(
        self,
        *answers: str,
        buffers: dict[str, str] | None = None,
        name: str = "test",
        forms: Sequence[dict[str, Any]] = (),
    ) -> AsyncGenerator[tuple[Editor, Any, Any], None]:
        editor = Editor(list(answers), buffers=buffers, forms=list(forms))
        environ = {
            **os.environ,
            "AGENT_TUI_HOME": str(self.root / "home"),
            "OPENAI_API_KEY": "sk-test",
        }
        arguments = ("-m", "openai/gpt-4o", "--base-url", self.server.base_url)
        command = (sys.executable, "-m", "agent_tui", "acp", *arguments)
        client: Any = editor
        spawned = spawn_agent_process(client, *command, env=environ, use_unstable_protocol=True)
        async with spawned as (connection, process):
            offers = buffers is not None
            files = FileSystemCapabilities(read_text_file=offers, write_text_file=offers)
            shown = ElicitationCapabilities(form=ElicitationFormCapabilities()) if forms else None
            await connection.initialize(
                protocol_version=PROTOCOL_VERSION,
                client_capabilities=ClientCapabilities(fs=files, elicitation=shown),
                client_info=Implementation(name=name, version="1"),
            )
            yield editor, connection, process


async def say(connection: Any, session: str, text: str) -> str:
    answered = await connection.prompt(session_id=session, prompt=[text_block(text)])
    return answered.stop_reason
