"""Tools of one's own: typed functions that the model may call."""

import inspect
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, cast, get_type_hints, overload

from pydantic import TypeAdapter, create_model
from pydantic.errors import PydanticUserError

from agent_tui.errors import ToolError
from agent_tui.outside_code import cause_of, is_fault, run_in_thread
from agent_tui.safe_text import strip_control_characters
from agent_tui.tools.base import Access, Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.registry import OfferedTool, offer_tool
from agent_tui.tools.shorten import keep_ends

ParametersT = ParamSpec("ParametersT")
ResultT = TypeVar("ResultT")
ResultT_co = TypeVar("ResultT_co", covariant=True)

_MOST_TITLE_CHARS = 100


class FunctionTool(Generic[ParametersT, ResultT_co]):
    """A function as a tool; it can still be called as what it is.

    Args:
        function: Typed in all its parameters, with a docstring, which the model reads. May be
            ``async``.

    Raises:
        TypeError: It has no docstring, it takes ``*args``, or a parameter has no type or one that
            JSON cannot represent.
    """

    def __init__(self, function: Callable[ParametersT, ResultT_co]) -> None:
        self._function = function
        self.name = function.__name__
        self.description = inspect.getdoc(function) or ""
        if not self.description:
            raise TypeError(f"{self.name} needs a docstring: the model reads what it is for.")
        self.arguments_type = _arguments_of(function)
        self.is_async = inspect.iscoroutinefunction(function)
        update_wrapper(self, function)

    def __call__(self, *args: ParametersT.args, **kwargs: ParametersT.kwargs) -> ResultT_co:
        """Call the function."""
        return self._function(*args, **kwargs)

    def offer(self, access: Access = "none") -> OfferedTool:
        """The tool as a conversation offers it.

        Args:
            access: What a call of it counts as; for ``none``, nobody is asked.
        """
        return offer_tool(_Run(self, access))


@overload
def tool(function: Callable[ParametersT, ResultT]) -> FunctionTool[ParametersT, ResultT]: ...


@overload
def tool() -> Callable[[Callable[ParametersT, ResultT]], FunctionTool[ParametersT, ResultT]]: ...


def tool(function: Callable[..., object] | None = None) -> object:
    """Make `function` a tool: its schema is its signature, its text the docstring.

        @tool
        def tickets(status: Literal["open", "closed"], limit: int = 10) -> list[str]:
            \"""List the tickets of this project, newest first.\"""

    What it returns goes to the model: text as it is, everything else as JSON, of a very long one
    the beginning and the end. An exception becomes an error that the model can react to. A
    function that is not ``async`` runs in a thread.
    """
    return FunctionTool if function is None else FunctionTool(function)


@dataclass(frozen=True, slots=True)
class _Run:
    """A function as a `Tool`."""

    of: FunctionTool[..., Any]
    access: Access

    @property
    def name(self) -> str:
        return self.of.name

    @property
    def description(self) -> str:
        return self.of.description

    @property
    def arguments_type(self) -> type[ToolArguments]:
        return self.of.arguments_type

    def intent(self, arguments: ToolArguments, context: ToolContext) -> Intent:
        given = ", ".join(f"{name}={value!r}" for name, value in arguments)
        title = f"{self.name} {given}".strip()
        body = "\n".join(f"{name} = {value!r}" for name, value in arguments)
        return Intent(title[:_MOST_TITLE_CHARS], self.access, body=body)

    async def run(self, arguments: ToolArguments, context: ToolContext) -> ToolOutput:
        values = dict(arguments)
        try:
            if self.of.is_async:
                result = await cast("Awaitable[object]", self.of(**values))
            else:
                result = await run_in_thread(partial(self.of, **values))
        except BaseException as error:  # whatever it is, the model can react to it
            if not is_fault(error):
                raise
            cause = cause_of(error)
            why = strip_control_characters(f"{type(cause).__name__}: {cause}")
            raise ToolError(f"{self.name} failed: {why}") from error
        text = result if isinstance(result, str) else _as_json(result)
        limits = context.limits
        kept = keep_ends(text, max_lines=limits.max_lines, max_bytes=limits.max_bytes)
        return ToolOutput(kept.text)


def _as_json(value: object) -> str:
    """`value` as JSON, or its `repr` if JSON cannot represent it."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _arguments_of(function: Callable[..., object]) -> type[ToolArguments]:
    types = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{function.__name__}({parameter}): a model gives arguments by name.")
        if name not in types:
            raise TypeError(f"{function.__name__}({name}) needs a type.")
        _check_type(types[name], f"{function.__name__}({name})")
        is_needed = parameter.default is parameter.empty
        fields[name] = (types[name], ... if is_needed else parameter.default)
    return create_model(function.__name__, __base__=ToolArguments, **fields)


def _check_type(given: type[object], where: str) -> None:
    try:
        TypeAdapter(given).json_schema()
    except PydanticUserError as error:
        name = getattr(given, "__name__", repr(given))
        raise TypeError(
            f"{where} has the type {name}, which a model cannot write as JSON. Use a type such as "
            "str, int, list[str], Literal, a dataclass or a pydantic model."
        ) from error
