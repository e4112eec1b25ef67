"""The parts of the chat: blocks of pure data, drawn elsewhere."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent_tui.events import NoticeSubject
from agent_tui.messages import Todo, TurnFacts

BlockId: TypeAlias = int
"""Names one block of a transcript; grows from top to bottom, is never used twice."""

ReplyMark: TypeAlias = Literal["", "interrupted", "error", "length"]
ToolStatus: TypeAlias = Literal["running", "ok", "nothing", "error", "denied", "cancelled"]
"""`nothing`: a command printed nothing and its exit code means no match, as for a search."""


@dataclass(frozen=True, slots=True)
class UserBlock:
    """What the user said, and what went with it: images in base64, and a line for each file."""

    text: str
    images: tuple[str, ...] = ()
    attached: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AssistantBlock:
    """Visible text of a reply, as Markdown.

    `is_finished` is false while it streams. `mark` says how it ended when it did not end
    well, `note` is what the user is told about that.
    """

    markdown: str
    is_finished: bool = True
    mark: ReplyMark = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """Reasoning of the model; one line unless thinking is shown."""

    text: str
    is_finished: bool = True


@dataclass(frozen=True, slots=True)
class ToolBlock:
    """A tool call and what came of it.

    `title` is one line for the user, `summary` a short result ("42 lines"), `diff` a
    unified diff. While it runs, `output` holds its last lines, `lines_before` came before them.
    `images` are in base64. Of a command `printed_lines` counts what it printed, of which `output`
    may lack the middle; None for other calls. `kept_at` is the file with all of it. `todos` are the
    plan that the call set, `is_new_plan` whether its steps are others than before. `command` is the
    shell command that it runs, with its line ends.
    """

    call_id: str
    name: str
    title: str
    status: ToolStatus = "running"
    output: str = ""
    diff: str = ""
    summary: str = ""
    elapsed_s: float | None = None
    lines_before: int = 0
    images: tuple[str, ...] = ()
    printed_lines: int | None = None
    kept_at: str = ""
    todos: tuple[Todo, ...] = ()
    is_new_plan: bool = False
    command: str = ""


@dataclass(frozen=True, slots=True)
class BashBlock:
    """A command the user ran with ``!``; `in_context` is false for ``!!``.

    While it runs, `output` holds its last lines, `lines_before` came before them. `printed_lines`
    counts what it printed, of which `output` may lack a part; None if unknown.
    `kept_at` is the file with all of it. `job` names the background command that it became.
    """

    call_id: str
    command: str
    status: ToolStatus = "running"
    output: str = ""
    exit_code: int | None = None
    in_context: bool = True
    lines_before: int = 0
    printed_lines: int | None = None
    kept_at: str = ""
    job: str = ""


@dataclass(frozen=True, slots=True)
class SummaryBlock:
    """A compaction: one line, its Markdown summary when expanded.

    With no `tokens_before` it is another summary (of a branch), and `note` is its title.
    """

    summary: str
    tokens_before: int
    tokens_after: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class NoticeBlock:
    """One message of the program to the user; an answer is Markdown."""

    level: Literal["info", "warning", "error"]
    text: str
    about: NoticeSubject = ""


@dataclass(frozen=True, slots=True)
class TurnBlock:
    """The end of a turn: its duration and its changes."""

    facts: TurnFacts


@dataclass(frozen=True, slots=True)
class DividerBlock:
    """A rule across the chat, with a title in it if there is one."""

    title: str = ""


@dataclass(frozen=True, slots=True)
class StartRow:
    """One thing to begin with; a click, or `key`, runs `draft` or puts it into the prompt."""

    text: str
    about: str
    draft: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class WelcomeBlock:
    """The first thing in an empty chat: a name, facts about this start, and what to begin with.

    `sessions` can be resumed. Once the conversation `is_begun`, its name and facts are left.
    """

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    hints: tuple[StartRow, ...] = ()
    sessions: tuple[StartRow, ...] = ()
    is_begun: bool = False


Block: TypeAlias = (
    UserBlock
    | AssistantBlock
    | ThinkingBlock
    | ToolBlock
    | BashBlock
    | SummaryBlock
    | NoticeBlock
    | TurnBlock
    | DividerBlock
    | WelcomeBlock
)

DetailedBlock: TypeAlias = UserBlock | ToolBlock | BashBlock | SummaryBlock
"""Blocks that unfold together; thinking has its own key."""

SpokenBlock: TypeAlias = UserBlock | AssistantBlock | ToolBlock | BashBlock
"""Blocks of messages: the same live and from a session, unlike what the program tells."""
