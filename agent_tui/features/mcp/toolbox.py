"""Our tools and those of MCP servers in one toolbox."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from agent_tui.errors import ToolError
from agent_tui.features.mcp.finding import (
    CALL_TOOL,
    FINDERS,
    FindToolsArguments,
    describe_found,
    parse_call,
    search_tools,
)
from agent_tui.features.mcp.remote_tools import RemoteTool, argument_problems
from agent_tui.features.mcp.results import call_output
from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.secret_text import mask_secrets
from agent_tui.tool_names import is_remote
from agent_tui.tools.base import (
    Intent,
    PreparedCall,
    Toolbox,
    ToolContext,
    ToolOutput,
    UnderstoodCall,
)
from agent_tui.tools.server_offer import FIND_TOOLS
from agent_tui.tools.shorten import cut_line

_MAX_TITLE_CHARS = 100
_MOST_NAMED = 40


class OfferedTools(Protocol):
    """The tools that servers offer in the current turn."""

    @property
    def offered(self) -> tuple[RemoteTool, ...]:
        """The tools, in a stable order."""
        ...

    def keep_found(self, names: Sequence[str]) -> None:
        """Always offer these tools from the next turn on."""
        ...

    def take_answers(self, name: str) -> str:
        """What the user answered to the server of the tool `name` since the last time."""
        ...

    async def call(
        self, name: str, arguments: JsonObject, on_progress: Callable[[str], None]
    ) -> JsonObject:
        """Call an offered tool; raises a `ToolError` if it failed."""
        ...


@dataclass(frozen=True, slots=True)
class CombinedToolbox:
    """A `Toolbox`: the tools of `own`, then what the servers of `hub` offer in this turn."""

    own: Toolbox
    hub: OfferedTools

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The specs for the model, ours first."""
        return (*self.own.specs, *(tool.spec for tool in self.hub.offered))

    @property
    def short_specs(self) -> tuple[ToolSpec, ...]:
        """The same tools; those of servers have no shorter texts."""
        return (*self.own.short_specs, *(tool.spec for tool in self.hub.offered))

    def translate_call(self, name: str, arguments: JsonObject, cwd: Path) -> UnderstoodCall:
        """A call in the terms of our tools; ``call_tool`` becomes a call of the tool it names."""
        if name == CALL_TOOL and (meant := parse_call(arguments)) is not None:
            return UnderstoodCall(*meant)
        if is_remote(name) or name in FINDERS:
            return UnderstoodCall(name, arguments)
        return self.own.translate_call(name, arguments, cwd)

    def check(self, name: str, arguments: JsonObject) -> None:
        """Validate a call without reading any file.

        Raises:
            ToolError: Unknown tool or wrong arguments.
        """
        if name in FINDERS:
            self._check_finder(name, arguments)
            return
        if not is_remote(name):
            self.own.check(name, arguments)
            return
        problems = "\n".join(argument_problems(arguments, self._get_tool(name).spec))
        if problems:
            raise ToolError(f"{name} was not run. {problems}")

    def prepare(self, name: str, arguments: JsonObject, context: ToolContext) -> PreparedCall:
        """Validate the call and determine its intent.

        Raises:
            ToolError: Unknown tool, wrong arguments, or a call that cannot work.
        """
        if not (is_remote(name) or name in FINDERS):
            return self.own.prepare(name, arguments, context)
        self.check(name, arguments)
        if name == FIND_TOOLS:
            query = FindToolsArguments.model_validate(arguments).query
            intent = Intent(title=cut_line(f"{name} {query}", _MAX_TITLE_CHARS), access="none")
            return PreparedCall(intent, lambda: self._find(query, context))
        intent = _intent(self._get_tool(name), arguments)
        return PreparedCall(intent, lambda: self._run(name, arguments, context))

    async def _run(self, name: str, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        try:
            result = await self.hub.call(name, arguments, context.emit)
        except ToolError as error:
            output = self._with_answers(name, ToolOutput(str(error), is_error=True), context)
            if not output.for_person.user_words:
                raise
            return output
        output = await asyncio.to_thread(
            call_output,
            result,
            limits=context.limits,
            output_dir=context.output_dir,
            known_secrets=context.secrets,
        )
        return self._with_answers(name, output, context)

    def _with_answers(self, name: str, output: ToolOutput, context: ToolContext) -> ToolOutput:
        """`output` with what the user answered to the server's questions during the call."""
        if not (said := mask_secrets(self.hub.take_answers(name), context.secrets)):
            return output
        text = f"{output.for_model}\n[the user answered the server: {said}]"
        details = output.for_person.model_copy(update={"user_words": said})
        return replace(output, for_model=text, for_person=details)

    def _check_finder(self, name: str, arguments: JsonObject) -> None:
        if name == CALL_TOOL:
            raise ToolError(
                f'{name} was not run. Give it {{"name": "mcp__...", "arguments": {{...}}}}, '
                f"with the name of a tool that {FIND_TOOLS} found."
            )
        try:
            FindToolsArguments.model_validate(arguments)
        except ValidationError as error:
            raise ToolError(
                f"{name} was not run. It takes a query of 1 to 400 characters, nothing else."
            ) from error

    async def _find(self, query: str, context: ToolContext) -> ToolOutput:
        found = search_tools(query, self.hub.offered)
        output, names = describe_found(query, found, context.limits)
        self.hub.keep_found(names)
        return output

    def _get_tool(self, name: str) -> RemoteTool:
        for tool in self.hub.offered:
            if tool.name == name:
                return tool
        offered = self.hub.offered
        names = ", ".join(tool.name for tool in offered[:_MOST_NAMED]) or "none"
        more = f" and {len(offered) - _MOST_NAMED} more" if len(offered) > _MOST_NAMED else ""
        raise ToolError(f"There is no tool {name!r}. Tools of MCP servers: {names}{more}.")


def _intent(tool: RemoteTool, arguments: JsonObject) -> Intent:
    body = json.dumps(arguments, ensure_ascii=False, indent=2)
    short = json.dumps(arguments, ensure_ascii=False) if arguments else ""
    definition = f"{tool.server}\n{tool.own_name}\n{tool.spec.model_dump_json()}\n{body}"
    return Intent(
        title=cut_line(f"{tool.name} {short}".rstrip(), _MAX_TITLE_CHARS),
        access="outside",
        body=f"{tool.own_name} of the MCP server {tool.server}, with\n{body}",
        fingerprint=hashlib.sha256(definition.encode("utf-8", "surrogatepass")).hexdigest(),
    )
