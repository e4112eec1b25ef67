"""What a tool is: a spec for the model, a look ahead for the person, and a run."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from agent_tui.errors import ToolError
from agent_tui.messages import FileTouches, ImageContent, JsonObject, Todo, ToolDetails, ToolSpec
from agent_tui.safe_paths import resolve_path
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.lineage.chain import KnownSession
from agent_tui.tools.files.memory import FileMemory
from agent_tui.tools.files.open_texts import NoOpenTexts, OpenTexts
from agent_tui.tools.foreign_calls import UnderstoodCall
from agent_tui.tools.jobs.table import JobTable
from agent_tui.tools.limits import OutputLimits
from agent_tui.tools.processes.output import EmitOutput
from agent_tui.tools.sandbox.held import HeldFile
from agent_tui.tools.sandbox.scratch import Scratch

Access: TypeAlias = Literal["none", "read", "write", "execute", "network", "outside"]
"""What a call can do: nothing outside the program, read files, change files, run commands, ask a
host of the network, have another program do something that cannot be judged."""

Place: TypeAlias = Literal["open", "inside", "outside"]
"""Where a command runs: without a sandbox, inside it, or outside one that there is."""

ScopeAction: TypeAlias = Literal["enter", "exit", "break"]
TurnEnding: TypeAlias = Literal["", "done", "aborted"]
"""How the turn ends behind a call; empty where it goes on."""
"""Begin a scope, leave the innermost one, or leave a loop early."""


class ToolArguments(BaseModel):
    """Base of every tool's arguments; unknown arguments are refused with their names."""

    model_config = ConfigDict(frozen=True, extra="forbid")


ArgumentsT = TypeVar("ArgumentsT", bound=ToolArguments)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """Result of a call: text (and images) for the model, details for the person.

    `find_changes` finds out which files a command changed, where that takes its time: to be called
    once at most, before anything else changes files. It raises nothing. `ends_turn` leaves the
    word to the person: the turn ends so behind the results of the reply. `held` files are not where
    the command put them: `put_in_place` does that once the person has agreed.
    """

    for_model: str
    for_person: ToolDetails = field(default_factory=ToolDetails)
    is_error: bool = False
    images: tuple[ImageContent, ...] = ()
    find_changes: Callable[[], Awaitable[FileTouches]] | None = None
    ends_turn: TurnEnding = ""
    held: tuple[HeldFile, ...] = ()
    put_in_place: Callable[[HeldFile], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class Intent:
    """What a call would do, worked out before anything happens.

    `paths` are resolved, absolute targets (links and ``..`` followed), `command` is set for
    `execute`, `host` for `network`, with `leaves_sandbox` where commands run in a sandbox.
    `place` says where a command would run: ``open`` where there is no sandbox, ``inside`` it, or
    ``outside`` it, which the model asks for and gives `purpose` as its reason.
    `is_coarse`: the sandbox neither hides nor protects single files in the folders worked in.
    `body` is what the person is shown when asked: the exact command or a diff. `note` is said
    beside the reason for asking. `fingerprint` changes when what was shown no longer is what
    would happen.
    """

    title: str
    access: Access
    paths: tuple[Path, ...] = ()
    command: str = ""
    host: str = ""
    leaves_sandbox: bool = False
    place: Place = "open"
    purpose: str = ""
    is_coarse: bool = False
    body: str = ""
    body_kind: Literal["command", "diff", "text", "plan"] = "text"
    note: str = ""
    fingerprint: str = ""


class History(Protocol):
    """Everything that was ever said in a conversation, whatever the model still sees of it."""

    def entries(self) -> Iterator[Entry]:
        """All entries, newest first, those of the sessions it goes on from after its own.

        May read files: not for the event loop.
        """
        ...

    def others_with(self, query: str) -> tuple[Sequence[KnownSession], int]:
        """Other sessions of the project that fit `query`; how many could not be looked at."""
        ...

    def others_named(self, start: str) -> Sequence[KnownSession]:
        """The sessions of the project whose id begins with `start`."""
        ...

    @property
    def session_count(self) -> int:
        """How many sessions the newest walk through `entries` has come to so far."""
        ...

    @property
    def missing(self) -> str:
        """The earlier session that could not be read on that walk; empty where none."""
        ...


class NoHistory:
    """A conversation in which nothing was said."""

    session_count = 0
    missing = ""

    def entries(self) -> Iterator[Entry]:
        """Nothing."""
        return iter(())

    def others_with(self, query: str) -> tuple[Sequence[KnownSession], int]:
        """None."""
        return (), 0

    def others_named(self, start: str) -> Sequence[KnownSession]:
        """None."""
        return ()


async def _cannot_compact(_focus: str) -> ToolOutput:
    return ToolOutput("Compaction is not available here.", is_error=True)


async def _has_no_scopes(_action: ScopeAction, _label: str, _focus: str) -> ToolOutput:
    return ToolOutput("Scopes are not available here.", is_error=True)


async def _is_not_planning(_plan: str) -> ToolOutput:
    return ToolOutput("Plans cannot be approved here.", is_error=True)


async def _has_no_helpers(_task: str, _agent: str, _say: Callable[[str], None]) -> ToolOutput:
    return ToolOutput("Helpers are not available here.", is_error=True)


async def _has_no_skills(_name: str) -> ToolOutput:
    return ToolOutput("Skills are not available here.", is_error=True)


def _nothing_is_held(_searched: Path) -> Callable[[Path], bool]:
    return lambda _path: False


@dataclass(slots=True)
class ToolContext:
    """What a running tool may use.

    Args:
        cwd: The workspace; relative paths start here.
        emit: Called with output as it comes, for the person.
        files: What the model has seen of each file.
        output_dir: Where whole outputs are kept when the model gets a shortened one.
        environ: Environment for child processes, without the providers' keys.
        secrets: Those keys, which no output that is kept may hold.
        todos: The present plan; the todo tool replaces it.
        default_timeout_s: For commands that name none.
        waited_s: How long the person has been waited for, which does not count for a timeout.
        limits: How much of its output the model may be given.
        history: What `recall` looks in.
        jobs: The commands that go on in the background.
        open_texts: What an editor has open.
        resolved: What paths of this call lead to, so that it is decided once; None: each time.
        scratch: What stands for ``/tmp`` in the sandbox, for a call that names a path there.
        only_reads: Whether the call is known to change nothing: its changes are not looked for.
        is_persons: Whether the person typed the call themselves; what they run is not sandboxed.
        may_show: Whether a rule of the person's lets commands in the sandbox see a file with keys.
        may_write: Whether a command in the sandbox may write in the folders worked in.
        compact: Makes room in the context, with what to pay attention to; never raises for a
            compaction that cannot be made.
        scope: Enters a scope with a label and a focus for its summary, or leaves one; never
            raises for a summary that cannot be made.
        plan: Has the person decide on a plan, in Markdown.
        held_in: Given what is searched, tells which files there are left out: a rule denies
            reading them, or they may hold keys.
        explore: Has a helper look into a task, one of a kind that is defined or any; what it
            does is said as it goes on.
        use_skill: Puts the text of a skill before the model, where it stays.
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
    scope: Callable[[ScopeAction, str, str], Awaitable[ToolOutput]] = _has_no_scopes
    plan: Callable[[str], Awaitable[ToolOutput]] = _is_not_planning
    explore: Callable[[str, str, Callable[[str], None]], Awaitable[ToolOutput]] = _has_no_helpers
    use_skill: Callable[[str], Awaitable[ToolOutput]] = _has_no_skills
    held_in: Callable[[Path], Callable[[Path], bool]] = _nothing_is_held
    only_reads: bool = False
    is_persons: bool = False
    may_show: Callable[[Path], bool] = lambda _path: False
    may_write: bool = True
    secrets: tuple[str, ...] = ()
    jobs: JobTable = field(default_factory=JobTable)
    open_texts: OpenTexts = field(default_factory=NoOpenTexts)
    resolved: dict[str, Path] | None = None
    scratch: Scratch | None = None

    def resolve(self, path: str) -> Path:
        """`path` as the model wrote it, absolute and with links followed.

        A leading ``@`` (how people name files to us) is dropped unless such a file exists.

        Raises:
            ToolError: no file can have this name.
        """
        if self.resolved is not None and path in self.resolved:
            return self.resolved[path]
        try:
            if path.startswith("@") and not os.path.lexists(self.cwd / path):
                path = path[1:]
            resolved = resolve_path(path, self.cwd)
            if self.scratch is not None:
                resolved = self.scratch.real(resolved)
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                resolved.lstat()
            if self.resolved is not None:
                self.resolved[path] = resolved
            return resolved
        except OSError as error:
            why = error.strerror or error
            raise ToolError(f"{path[:200]!r} cannot be used as a path: {why}") from error

    def shown(self, path: Path) -> str:
        """`path` as it is named to the model and the person: relative inside the workspace."""
        path = path if self.scratch is None else self.scratch.named(path)
        root = self.cwd.resolve()
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


class Tool(Protocol[ArgumentsT]):
    """One tool. Arguments are validated by `arguments_type` before any method is called."""

    @property
    def name(self) -> str:
        """The name the model calls."""
        ...

    @property
    def description(self) -> str:
        """What the model reads about the tool; in a small window only the first line."""
        ...

    @property
    def arguments_type(self) -> type[ArgumentsT]:
        """The pydantic model of the arguments; its JSON schema goes to the model."""
        ...

    def intent(self, arguments: ArgumentsT, context: ToolContext) -> Intent:
        """What the call would do. Quick, changes nothing.

        Raises:
            ToolError: the call cannot work; the text tells the model how to mend it.
        """
        ...

    async def run(self, arguments: ArgumentsT, context: ToolContext) -> ToolOutput:
        """Do it. On cancellation, stop everything that was started and re-raise.

        Raises:
            ToolError: it failed in a way the model can mend.
        """
        ...


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A validated call: what it would do, and the way to do it."""

    intent: Intent
    run: Callable[[], Awaitable[ToolOutput]]


class Toolbox(Protocol):
    """The tools a conversation offers."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told, in order of use: each needs none that comes after it."""
        ...

    @property
    def short_specs(self) -> tuple[ToolSpec, ...]:
        """The same tools in the same order in fewer words, for small windows."""
        ...

    def understood(self, name: str, arguments: JsonObject, cwd: Path) -> UnderstoodCall:
        """A call in the terms of these tools, also where it is made in those of other agents."""
        ...

    def check(self, name: str, arguments: JsonObject) -> None:
        """Validate a call without looking at any file; all calls of a reply are checked first.

        Raises:
            ToolError: unknown tool or wrong arguments.
        """
        ...

    def prepare(self, name: str, arguments: JsonObject, context: ToolContext) -> PreparedCall:
        """Validate and look ahead.

        Raises:
            ToolError: unknown tool, wrong arguments, or a call that cannot work.
        """
        ...


async def in_thread(work: Callable[[], ToolOutput]) -> ToolOutput:
    """Run blocking `work` off the event loop."""
    return await asyncio.to_thread(work)


__all__ = [
    "Access",
    "FileMemory",
    "FileTouches",
    "History",
    "Intent",
    "NoHistory",
    "Place",
    "PreparedCall",
    "ScopeAction",
    "Tool",
    "ToolArguments",
    "ToolContext",
    "ToolError",
    "ToolOutput",
    "Toolbox",
    "UnderstoodCall",
    "in_thread",
]
