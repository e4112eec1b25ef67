"""What a tool is: a spec for the model, a preview for the user, and a run."""

import asyncio
import contextlib
import os
from abc import ABC
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Final, Literal, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from agent_tui.errors import AgentTuiError, ToolError
from agent_tui.messages import FileTouches, ImageContent, JsonObject, Todo, ToolDetails, ToolSpec
from agent_tui.safe_paths import follow_shown, path_from, real_path, resolve_path
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.lineage.known_session import KnownSession
from agent_tui.tools.files.memory import FileMemory, NoOpenTexts, OpenTexts
from agent_tui.tools.held_files import HeldFile, HeldFiles
from agent_tui.tools.job_table import JobTable
from agent_tui.tools.processes.output import EmitOutput
from agent_tui.tools.shorten import OutputLimits

Access: TypeAlias = Literal["none", "read", "write", "execute", "network", "query", "outside"]
"""What a call can do: nothing outside the program, read files, change files, run commands, call a
network host, send a text to a service that the user set up, or make another program do something
that cannot be judged."""

CommandPlace: TypeAlias = Literal["open", "inside", "outside"]
"""Where a command runs: without a sandbox, inside it, or outside an existing one."""

TurnEnding: TypeAlias = Literal["", "done", "aborted"]
"""How the turn ends after a call; empty if it continues."""


class ToolArguments(BaseModel):
    """Base of every tool's arguments; unknown arguments are refused with their names."""

    model_config = ConfigDict(frozen=True, extra="forbid")


ArgumentsT = TypeVar("ArgumentsT", bound=ToolArguments)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """Result of a call: text (and images) for the model, details for the user.

    `find_changes` finds which files a command changed, if that takes time: call it at most once,
    before anything else changes files. It raises nothing. `ends_turn` gives control to the user:
    the turn ends this way after the reply's results. The user decides on `held` files, and
    `holder` does that. `notice` is for the user, beside the result. `fault` is one of the program
    after the work was done; it is logged.
    """

    for_model: str
    for_person: ToolDetails = field(default_factory=ToolDetails)
    is_error: bool = False
    images: tuple[ImageContent, ...] = ()
    find_changes: Callable[[], Awaitable[FileTouches]] | None = None
    ends_turn: TurnEnding = ""
    held: tuple[HeldFile, ...] = ()
    holder: HeldFiles | None = None
    notice: str = ""
    fault: Exception | None = None

    def with_failure(self, error: Exception) -> "ToolOutput":
        """This output, with a line about what failed after the work was done.

        Args:
            error: What was raised; a fault of the program unless it is an `AgentTuiError`.
        """
        is_known = isinstance(error, AgentTuiError)
        said = str(error) if is_known else _FAULT.format(type(error).__name__)
        fault = self.fault if is_known else error
        return replace(self, for_model=f"{self.for_model}\n[{said}]", fault=fault)


_FAULT: Final = (
    "the command has run. What agent-tui does after a command failed with an internal error ({}), "
    "which is not your fault"
)

TEMPORARY_PLACES: Final = (Path("/tmp"), Path("/var/tmp"))
"""Where the machine has temporary files. For commands in a sandbox, something else may be there."""


class Scratch(Protocol):
    """The folder that commands see as ``/tmp``, so that all tools mean the same by that name."""

    def real(self, path: Path, *, to_read: bool = False) -> Path:
        """The real location of `path`, links followed.

        Args:
            path: Absolute.
            to_read: Whether a file that only the machine's ``/tmp`` has counts, too.

        Raises:
            OSError: Links form a loop.
        """
        ...

    def holds(self, path: Path) -> bool:
        """Whether `path`, links followed, is in it."""
        ...

    def name_inside(self, path: Path) -> Path:
        """The path under which commands see `path`."""
        ...


class CallInterrupted(asyncio.CancelledError):
    """A cancelled call that keeps its result so far: raise it in place of the cancellation.

    Args:
        output: What the call had printed, and that it was interrupted.
    """

    def __init__(self, output: ToolOutput) -> None:
        super().__init__()
        self.output = output


@dataclass(frozen=True, slots=True)
class Intent:
    """What a call would do, determined before anything happens.

    `paths` are resolved, absolute targets (links and ``..`` followed). `command` is set for
    `execute`, `host` for `network` (a name for `query`), with `leaves_sandbox` if commands run in a
    sandbox. `place` says where a command would run: ``open`` without a sandbox, ``inside`` it, or
    ``outside`` it, which the model requests with `purpose` as its reason. `is_coarse`: the sandbox
    can neither hide nor protect single files in the working folders. `body` is what an approval
    shows: the exact command or a diff; for `query`, the text that is sent, which rules match.
    `note` is shown beside the reason for asking. `fingerprint` changes when the call would no
    longer do what was shown. `doubt` is why the user decides even if the mode would allow the call.
    """

    title: str
    access: Access
    paths: tuple[Path, ...] = ()
    command: str = ""
    host: str = ""
    leaves_sandbox: bool = False
    place: CommandPlace = "open"
    purpose: str = ""
    is_coarse: bool = False
    body: str = ""
    body_kind: Literal["command", "diff", "text", "plan"] = "text"
    note: str = ""
    fingerprint: str = ""
    doubt: str = ""

    def deciding(self, why: str) -> "Intent":
        """This intent, which the user is asked about in every mode but ``full``."""
        return replace(self, doubt=why)


class History(Protocol):
    """Everything said in a conversation, including what the model no longer sees."""

    def sessions(self) -> Iterator[KnownSession]:
        """The conversation's session, then those that it continues.

        May read files: not for the event loop.
        """
        ...

    def entries(self) -> Iterator[Entry]:
        """All entries, newest first, followed by those of the sessions it continues.

        May read files: not for the event loop.
        """
        ...

    def others_with(self, query: str) -> tuple[Sequence[KnownSession], int]:
        """Other sessions of the project that match `query`, and how many could not be searched."""
        ...

    def others_named(self, start: str) -> Sequence[KnownSession]:
        """The sessions of the project whose id begins with `start`."""
        ...

    @property
    def session_count(self) -> int:
        """How many sessions the latest walk through `entries` has reached so far."""
        ...

    @property
    def missing(self) -> str:
        """The earlier session that could not be read on that walk; empty if none."""
        ...

    @property
    def reaches_others(self) -> bool:
        """Whether other sessions of the project may be read."""
        ...


class NoHistory:
    """The history of an empty conversation."""

    session_count = 0
    missing = ""
    reaches_others = False

    def sessions(self) -> Iterator[KnownSession]:
        """No sessions."""
        return iter(())

    def entries(self) -> Iterator[Entry]:
        """No entries."""
        return iter(())

    def others_with(self, query: str) -> tuple[Sequence[KnownSession], int]:
        """No other sessions."""
        return (), 0

    def others_named(self, start: str) -> Sequence[KnownSession]:
        """No other sessions."""
        return ()


async def _cannot_compact(_focus: str) -> ToolOutput:
    return ToolOutput("Compaction is not available here.", is_error=True)


async def _is_not_planning(_plan: str) -> ToolOutput:
    return ToolOutput("Plans cannot be approved here.", is_error=True)


async def _has_no_skills(_name: str) -> ToolOutput:
    return ToolOutput("Skills are not available here.", is_error=True)


def _nothing_is_held(_searched: Path) -> Callable[[Path], bool]:
    return lambda _path: False


class Ability(ABC):
    """Something that tools ask the conversation for, by its class; see `ToolContext.use`.

    Attributes:
        unavailable: What the model reads if the conversation lacks it.
    """

    unavailable: ClassVar[str]


AbilityT = TypeVar("AbilityT", bound=Ability)


async def _change_at_once(change: Callable[[], Awaitable[ToolOutput]]) -> ToolOutput:
    return await change()


@dataclass(slots=True)
class ToolContext:
    """What a running tool may use.

    Args:
        cwd: The workspace; relative paths start here.
        emit: Called with output as it arrives, for the user.
        files: The version of each file that the model has seen.
        output_dir: Where whole outputs are stored if the model gets a shortened one.
        environ: Environment for child processes, without the providers' keys.
        secrets: Those keys, which no stored output may contain.
        todos: The current plan; the todo tool replaces it.
        default_timeout_s: For commands without their own timeout.
        waited_s: Returns the seconds spent waiting for the user, which no timeout counts.
        limits: How much of its output the model may receive.
        history: What `recall` searches.
        jobs: The commands that run in the background.
        leaves_jobs: Whether what a command leaves running becomes one of them, or ends with it. A
            command that the user moves to the background becomes one anyway.
        open_texts: What an editor has open.
        resolved: The resolved paths of this call, so each is resolved once; None: each time.
        scratch: What replaces ``/tmp`` in the sandbox.
        only_reads: Whether the call is known to change nothing: its changes are not searched for.
        is_persons: Whether the user typed the call; such commands are not sandboxed.
        may_show: Whether a rule lets sandboxed commands see a file with keys.
        may_write: Whether a sandboxed command may write in the working folders.
        compact: Compacts the context, with a focus; never raises if compaction is not possible.
        plan: Asks the user to decide on a plan, in Markdown.
        held_in: Given the searched path, returns a function that tells which files to skip: a rule
            denies reading them, or they may hold keys.
        use_skill: Gives the model the text of a skill, which stays in the context.
        abilities: What tools of features ask for; see `use`.
        change_context: Runs what changes the context, after all changes of files are recorded.
    """

    cwd: Path
    emit: EmitOutput
    files: FileMemory
    output_dir: Path
    environ: dict[str, str]
    todos: list[Todo]
    default_timeout_s: float = 120.0
    waited_s: Callable[[], float] = lambda: 0.0
    limits: OutputLimits = field(default_factory=OutputLimits)
    history: History = field(default_factory=NoHistory)
    compact: Callable[[str], Awaitable[ToolOutput]] = _cannot_compact
    plan: Callable[[str], Awaitable[ToolOutput]] = _is_not_planning
    use_skill: Callable[[str], Awaitable[ToolOutput]] = _has_no_skills
    abilities: Sequence[Ability] = ()
    change_context: Callable[[Callable[[], Awaitable[ToolOutput]]], Awaitable[ToolOutput]] = (
        _change_at_once
    )
    held_in: Callable[[Path], Callable[[Path], bool]] = _nothing_is_held
    only_reads: bool = False
    is_persons: bool = False
    may_show: Callable[[Path], bool] = lambda _path: False
    may_write: bool = True
    secrets: tuple[str, ...] = ()
    jobs: JobTable = field(default_factory=JobTable)
    leaves_jobs: bool = True
    open_texts: OpenTexts = field(default_factory=NoOpenTexts)
    resolved: dict[tuple[str, bool], Path] | None = None
    scratch: Scratch | None = None

    def use(self, kind: type[AbilityT]) -> AbilityT:
        """The conversation's ability of this kind.

        Raises:
            ToolError: The conversation lacks it.
        """
        for ability in self.abilities:
            if isinstance(ability, kind):
                return ability
        raise ToolError(kind.unavailable)

    def resolve(self, path: str, *, to_read: bool = False) -> Path:
        """`path` as the model wrote it, made absolute and with links followed.

        A leading ``@`` (how users mention files) is dropped unless such a file exists. A name that
        is not UTF-8 may be as `display_name` shows it. Below ``/tmp`` it is what commands have
        there.

        Args:
            path: The path.
            to_read: Whether the call only reads it: then a file that only the machine's ``/tmp``
                has counts, too.

        Raises:
            ToolError: No file can have this name.
        """
        key = (path, to_read)
        if self.resolved is not None and key in self.resolved:
            return self.resolved[key]
        try:
            if path.startswith("@") and not os.path.lexists(self.cwd / path):
                path = path[1:]
            resolved = resolve_path(path, self.cwd)
            if (meant := follow_shown(resolved)) != resolved:
                resolved = resolve_path(meant, self.cwd)
            if self.scratch is not None:
                resolved = self.scratch.real(resolved, to_read=to_read)
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                resolved.lstat()
            if self.resolved is not None:
                self.resolved[key] = resolved
            return resolved
        except OSError as error:
            why = error.strerror or error
            raise ToolError(f"{path[:200]!r} cannot be used as a path: {why}") from error

    def display_name(self, path: Path) -> str:
        """`path` as shown to the model and the user: relative if inside the workspace."""
        return self.make_namer()(path)

    def make_namer(self) -> Callable[[Path], str]:
        """A `display_name` for many paths, which finds the workspace once."""
        root, scratch = real_path(self.cwd), self.scratch
        return lambda path: path_from(path if scratch is None else scratch.name_inside(path), root)


class Tool(Protocol[ArgumentsT]):
    """One tool. Arguments are validated by `arguments_type` before any method is called."""

    @property
    def name(self) -> str:
        """The name that the model calls."""
        ...

    @property
    def description(self) -> str:
        """What the model reads about the tool; with a small window only the first line."""
        ...

    @property
    def arguments_type(self) -> type[ArgumentsT]:
        """The pydantic model of the arguments; its JSON schema goes to the model."""
        ...

    def intent(self, arguments: ArgumentsT, context: ToolContext) -> Intent:
        """What the call would do. Fast; changes nothing.

        Raises:
            ToolError: The call cannot work; the text tells the model how to fix it.
        """
        ...

    async def run(self, arguments: ArgumentsT, context: ToolContext) -> ToolOutput:
        """Run the call. On cancellation, stop everything that was started and re-raise.

        Of a cancelled call, the model gets the end of what it emitted.

        Raises:
            CallInterrupted: It was cancelled and has a better result than that.
            ToolError: It failed in a way that the model can fix.
        """
        ...


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A validated call: what it would do, and how to run it."""

    intent: Intent
    run: Callable[[], Awaitable[ToolOutput]]


@dataclass(frozen=True, slots=True)
class UnderstoodCall:
    """A call in the terms of our tools, and what the model is told about the translation."""

    name: str
    arguments: JsonObject
    remark: str = ""


class Toolbox(Protocol):
    """The tools a conversation offers."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The specs for the model, in order of use: no tool needs one that comes after it."""
        ...

    @property
    def short_specs(self) -> tuple[ToolSpec, ...]:
        """The same tools in the same order with shorter texts, for small windows."""
        ...

    def translate_call(self, name: str, arguments: JsonObject, cwd: Path) -> UnderstoodCall:
        """A call translated to these tools, even if made in the terms of other agents."""
        ...

    def check(self, name: str, arguments: JsonObject) -> None:
        """Validate a call without reading any file; all calls of a reply are checked first.

        Raises:
            ToolError: Unknown tool or wrong arguments.
        """
        ...

    def prepare(self, name: str, arguments: JsonObject, context: ToolContext) -> PreparedCall:
        """Validate the call and determine its intent.

        Raises:
            ToolError: Unknown tool, wrong arguments, or a call that cannot work.
        """
        ...
