"""The client that the suite starts for each scenario: our servers' hub, used as a person would.

``python -m tests.mcp_conformance.client URL``. It connects, logs in where the server asks, calls
every tool, reads every resource and fills every prompt. The suite's server judges what it is sent.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from agent_tui.errors import AgentTuiError, ToolError
from agent_tui.features.mcp.login import log_in
from agent_tui.features.mcp.oauth import Registration, token_file
from agent_tui.messages import JsonObject
from agent_tui.tools.form import Elicitation, accept_form
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.shorten import OutputLimits
from tests.support.mcp_servers import Stage

_METADATA_URL = "https://conformance-test.local/client-metadata.json"
"""The page that the suite knows; it takes its address for our id."""

_LOGINS = 2
"""How often the person logs in before they give up."""


async def accept_what_is_suggested(form: Elicitation) -> JsonObject:
    """A person who sends each form as it is."""
    return accept_form({f.name: f.value(f.present) for f in form.fields if f.present})


def open_page(page: str) -> None:
    """A browser whose user allows everything: it follows the page back to our port."""

    def follow() -> None:
        with suppress(OSError):
            urllib.request.urlopen(page, timeout=20).close()

    threading.Thread(target=follow, daemon=True).start()


class Person:
    """Uses one server."""

    def __init__(self, stage: Stage, url: str, context: JsonObject) -> None:
        self._stage = stage
        self._url = url
        self._context = context
        self._logins = 0

    @property
    def _why(self) -> str:
        return self._stage.hub.servers[0].why

    async def use(self) -> str:
        """Use all that the server offers; returns why it cannot be used."""
        self._stage.hub.let_answer(accept_what_is_suggested)
        self._stage.add(argv=(), url=self._url)
        await self._stage.take_up()
        while await self._logged_in_as_told(self._why):
            pass
        if self._why:
            return self._why
        for name, arguments in self._calls():
            await self._call(name, arguments)
        await self._read_and_ask()
        return self._why

    async def _read_and_ask(self) -> None:
        hub = self._stage.hub
        for named in await hub.resource_choices("srv:"):
            await hub.read_resource("srv", named.removeprefix("srv:"), OutputLimits())
        for prompt in hub.prompts:
            typed = " ".join("text" for argument in prompt.arguments if argument.is_required)
            with suppress(ToolError):  # a prompt without text
                await hub.prompt(prompt, typed)

    async def _logged_in_as_told(self, said: str) -> bool:
        """Log in if `said` tells to, and the person's patience has not ended."""
        if "agent-tui mcp login" not in said or self._logins == _LOGINS:
            return False
        self._logins += 1
        tokens = token_file(self._stage.folder / "tokens", "srv", self._url)
        registration = Registration(
            client_id=cast(str, self._context.get("client_id", "")),
            secret=cast(str, self._context.get("client_secret", "")),
            metadata_url=_METADATA_URL,
        )
        await log_in(self._url, tokens, open_page, registration)
        await self._stage.hub.restart("srv")
        await self._stage.take_up()
        return True

    def _calls(self) -> Iterator[tuple[str, JsonObject]]:
        wanted = self._context.get("toolCalls")
        given = {
            cast(str, call["name"]): cast(JsonObject, call["arguments"])
            for call in (wanted if isinstance(wanted, list) else [])
            if isinstance(call, dict)
        }
        for tool in self._stage.hub.offered:
            yield tool.name, given.get(tool.own_name) or arguments_for(tool.spec.parameters)

    async def _call(self, name: str, arguments: JsonObject) -> None:
        try:
            await self._stage.hub.call(name, arguments, lambda _text: None)
        except ToolError as error:
            print(f"{name}: {error}")
            if await self._logged_in_as_told(str(error)):
                await self._call(name, arguments)


def arguments_for(schema: JsonObject) -> JsonObject:
    """Values for the arguments that a tool requires."""
    values: dict[JsonValue, JsonValue] = {"number": 3, "integer": 3, "boolean": True}
    properties = schema.get("properties")
    required = schema.get("required")
    return {
        name: values.get(about.get("type"), "text")
        for name, about in (properties if isinstance(properties, dict) else {}).items()
        if isinstance(about, dict) and name in (required if isinstance(required, list) else ())
    }


async def run(url: str, context: JsonObject) -> str:
    """Use the server at `url`; returns why it cannot be used."""
    keeper = ProcessKeeper()
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder), keeper)
        try:
            return await Person(stage, url, context).use()
        except AgentTuiError as error:
            return str(error)
        finally:
            await stage.hub.aclose()
            keeper.close()


if __name__ == "__main__":
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    sys.exit(asyncio.run(run(sys.argv[-1], given)) or 0)
