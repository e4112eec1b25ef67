"""The tools of a conversation. A new tool is one line here."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from agent_tui.config import Settings
from agent_tui.errors import ToolError
from agent_tui.feature import load_object, own_features
from agent_tui.messages import FileTouches, JsonObject, ToolSpec
from agent_tui.tools.base import (
    TEMPORARY_PLACES,
    ArgumentsT,
    PreparedCall,
    Scratch,
    Tool,
    Toolbox,
    ToolContext,
    ToolOutput,
    UnderstoodCall,
)
from agent_tui.tools.bash import BashTool
from agent_tui.tools.command_sandbox import NO_SANDBOX, CommandSandbox
from agent_tui.tools.compact import CompactTool
from agent_tui.tools.edit import EditTool
from agent_tui.tools.foreign_calls import translate_call
from agent_tui.tools.git.changes import GitChanges
from agent_tui.tools.job import JobTool
from agent_tui.tools.other_tools import OTHER_TOOL, OtherTool, read_other_call
from agent_tui.tools.plan import PlanTool
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.read import ReadTool
from agent_tui.tools.schema import bare_schema, coerce_arguments, compact_schema, explain_invalid
from agent_tui.tools.skill import SkillTool
from agent_tui.tools.todo import TodoTool
from agent_tui.tools.write import WriteTool

_KEPT_UNTIL = (
    "/tmp is the sandbox's own: commands see this file, the user does not, and it is deleted when "
    "the conversation ends"
)


@dataclass(frozen=True, slots=True)
class ToolHost:
    """What the program gives the tools of features.

    Attributes:
        keeper: Starts processes.
        sandbox: Where the model's commands run.
        is_trusted: Whether git may run in a folder.
        settings: The user's settings.
    """

    keeper: ProcessKeeper
    sandbox: CommandSandbox
    is_trusted: Callable[[Path], bool]
    settings: Settings


def default_toolbox(
    keeper: ProcessKeeper | None = None,
    *,
    sandbox: CommandSandbox = NO_SANDBOX,
    is_trusted: Callable[[Path], bool] = lambda _cwd: True,
    settings: Settings | None = None,
    more: "Sequence[OfferedTool]" = (),
) -> Toolbox:
    """All tools, those used most first, and each after the tools it needs.

    Args:
        keeper: Starts their processes; None creates one.
        sandbox: Where the model's commands run.
        is_trusted: Whether git may run in a folder.
        settings: For the tools of features; None for the defaults.
        more: Additional tools, offered last.

    Raises:
        ValueError: Two tools have the same name.
    """
    keeper = keeper or ProcessKeeper()
    own = (
        offer_tool(ReadTool()),
        offer_tool(BashTool(keeper, GitChanges(keeper, is_trusted), sandbox)),
        offer_tool(EditTool()),
        offer_tool(WriteTool()),
        offer_tool(JobTool()),
        offer_tool(TodoTool()),
        offer_tool(SkillTool()),
        offer_tool(PlanTool()),
        offer_tool(CompactTool()),
    )
    own = _add_tools(own, ToolHost(keeper, sandbox, is_trusted, settings or Settings()))
    names = {tool.name for tool in own}
    if (taken := next((tool.name for tool in more if tool.name in names), None)) is not None:
        raise ValueError(f"{taken} is the name of a built-in tool. Rename yours.")
    return ToolRegistry(*own, *more, scratch=sandbox.scratch)


def _add_tools(own: Sequence["OfferedTool"], host: ToolHost) -> list["OfferedTool"]:
    """`own` and the tools of features, each in its place."""
    tools = [*own]
    for name in (name for feature in own_features() for name in feature.tools):
        tool = cast("Callable[[ToolHost], OfferedTool]", load_object(name))(host)
        names = [one.name for one in tools]
        tools.insert(names.index(tool.before) if tool.before in names else len(tools), tool)
    return tools


class _FoundScratch:
    """The scratch folder of a call, searched for at the first path that is below ``/tmp``.

    Args:
        find: Returns it; None if ``/tmp`` is the machine's for commands, too. Blocking.
    """

    def __init__(self, find: Callable[[], Scratch | None]) -> None:
        self._find = find
        self._found: Scratch | None = None

    def real(self, path: Path, *, to_read: bool = False) -> Path:
        """See `Scratch`."""
        if self._found is None and any(map(path.is_relative_to, TEMPORARY_PLACES)):
            self._found = self._find()
        return path if self._found is None else self._found.real(path, to_read=to_read)

    def holds(self, path: Path) -> bool:
        """See `Scratch`."""
        return self._found is not None and self._found.holds(path)

    def name_inside(self, path: Path) -> Path:
        """See `Scratch`."""
        return path if self._found is None else self._found.name_inside(path)


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool with its argument type hidden.

    `before` names the tool that it comes before in the order of use; without that one it is last.
    A tool that `is_seldom` used is offered in one line; see `agent_tui.tools.other_tools`.
    """

    name: str
    describe: Callable[[], ToolSpec]
    describe_shortly: Callable[[], ToolSpec]
    check: Callable[[JsonObject], object]
    prepare: Callable[[JsonObject, ToolContext], PreparedCall]
    before: str = ""
    is_seldom: bool = False


def offer_tool(tool: Tool[ArgumentsT], *, before: str = "", is_seldom: bool = False) -> OfferedTool:
    """`tool` with its description and argument checks; for the others, see `OfferedTool`."""

    def make_spec(description: str, parameters: JsonObject) -> ToolSpec:
        return ToolSpec(
            name=tool.name, description=description, parameters=parameters, is_seldom=is_seldom
        )

    def describe() -> ToolSpec:
        return make_spec(tool.description, compact_schema(tool.arguments_type))

    def describe_shortly() -> ToolSpec:
        first_line = tool.description.partition("\n")[0]
        return make_spec(first_line, bare_schema(compact_schema(tool.arguments_type)))

    def check(arguments: JsonObject) -> ArgumentsT:
        try:
            mended = coerce_arguments(arguments, tool.arguments_type)
            return tool.arguments_type.model_validate(mended)
        except ValidationError as error:
            advice = explain_invalid(error, tool.arguments_type)
            raise ToolError(f"{tool.name} was not run. {advice}") from error

    def prepare(arguments: JsonObject, context: ToolContext) -> PreparedCall:
        checked = check(arguments)
        # The call acts on the paths that were approved, wherever a link leads by then.
        resolved: dict[tuple[str, bool], Path] = {}
        intent = tool.intent(checked, replace(context, resolved=resolved))
        call = PreparedCall(
            intent, lambda: tool.run(checked, replace(context, resolved=resolved))
        )  # by now the context holds the decision on the call
        return call if context.scratch is None else name_for_commands(call, context.scratch)

    return OfferedTool(tool.name, describe, describe_shortly, check, prepare, before, is_seldom)


class ToolRegistry:
    """A `Toolbox` with a fixed set of tools. Schemas are created when first needed.

    Args:
        tools: In the order they are offer_tool.
        scratch: Returns what replaces ``/tmp`` for commands in a folder.

    Raises:
        ValueError: Two tools have the same name.
    """

    def __init__(
        self, *tools: OfferedTool, scratch: Callable[[Path], Scratch | None] = NO_SANDBOX.scratch
    ) -> None:
        self._scratch = scratch
        self._seldom = {tool.name: tool.describe() for tool in tools if tool.is_seldom}
        tools = (*tools, offer_tool(OtherTool(self._seldom))) if self._seldom else tools
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) < len(tools):
            names = [tool.name for tool in tools]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"Two tools are called {twice}. Rename one.")
        self._specs: tuple[ToolSpec, ...] | None = None
        self._short_specs: tuple[ToolSpec, ...] | None = None

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The specs for the model, in order of use."""
        if self._specs is None:
            self._specs = tuple(tool.describe() for tool in self._tools.values())
        return self._specs

    @property
    def short_specs(self) -> tuple[ToolSpec, ...]:
        """The same tools, with only the first line of the description and bare arguments."""
        if self._short_specs is None:
            self._short_specs = tuple(tool.describe_shortly() for tool in self._tools.values())
        return self._short_specs

    def translate_call(self, name: str, arguments: JsonObject, cwd: Path) -> UnderstoodCall:
        """A call translated to these tools, even if made in the terms of other agents."""
        if name == OTHER_TOOL and (meant := read_other_call(arguments, self._seldom)) is not None:
            name, arguments = meant.name, meant.arguments
        return translate_call(name, arguments, self.specs, cwd)

    def check(self, name: str, arguments: JsonObject) -> None:
        """Validate a call without reading any file.

        Raises:
            ToolError: Unknown tool or wrong arguments.
        """
        self._get_tool(name).check(arguments)

    def prepare(self, name: str, arguments: JsonObject, context: ToolContext) -> PreparedCall:
        """Validate the call and determine its intent.

        Raises:
            ToolError: Unknown tool, wrong arguments, or a call that cannot work.
        """
        tool = self._get_tool(name)
        # Into the given context, which also receives the decision on the call.
        context.scratch = _FoundScratch(partial(self._scratch, context.cwd))
        return tool.prepare(arguments, context)

    def _get_tool(self, name: str) -> OfferedTool:
        tool = self._tools.get(name)
        if tool is None:
            near = difflib.get_close_matches(name, self._tools, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ToolError(f"There is no tool {name!r}.{hint} Tools: {', '.join(self._tools)}.")
        return tool


def name_for_commands(call: PreparedCall, scratch: Scratch) -> PreparedCall:
    """Name the files of `call`, and those that its output reports, as commands see them.

    Args:
        call: A call whose paths are resolved.
        scratch: What replaces ``/tmp`` for commands.
    """
    if not any(map(scratch.holds, call.intent.paths)):
        return call
    paths = tuple(map(scratch.name_inside, call.intent.paths))
    title = f"{call.intent.title} (the sandbox's)"

    async def run() -> ToolOutput:
        output = await call.run()
        files = output.for_person.files
        named = FileTouches(
            read=_names(files.read, scratch),
            written=_names(files.written, scratch),
            edited=_names(files.edited, scratch),
        )
        text = output.for_model
        if named.written or named.edited:
            text = f"{text}\n[{_KEPT_UNTIL}]"
        details = output.for_person.model_copy(update={"files": named})
        return replace(output, for_model=text, for_person=details)

    return PreparedCall(replace(call.intent, paths=paths, title=title), run)


def _names(paths: tuple[str, ...], scratch: Scratch) -> tuple[str, ...]:
    return tuple(str(scratch.name_inside(Path(path))) for path in paths)
