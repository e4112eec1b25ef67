"""What the screen is built from; filled in by the composition root."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from textual.screen import Screen

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.demo import Demo
from agent_tui.commands.core.front import CommandServices
from agent_tui.config import Settings
from agent_tui.config.loading import SettingProblem
from agent_tui.providers.accounts import Account, DeviceCode
from agent_tui.providers.base import FoundModel, ModelRef
from agent_tui.ui.questions import QUIET_S
from agent_tui.ui.status.status_script import StatusScript


@dataclass(frozen=True, slots=True)
class ModelOffer:
    """A small model for this machine that the user can download.

    Attributes:
        model: Its reference once it is there.
        choice: What the user chooses to get it, such as ``Get SmolLM2``.
        details: What it needs and what to expect, in a few words each.
        can_run: Whether models can run on this machine yet. If not, the screen says what is
            missing.
        make_screen: Makes the screen that offers the download and shows its progress, given a
            clock in monotonic seconds. It returns the model; None if the user left without it.
    """

    model: ModelRef
    choice: str
    details: Sequence[str]
    can_run: Callable[[], bool]
    make_screen: Callable[[Callable[[], float]], Screen[ModelRef]]


@dataclass(frozen=True, slots=True)
class KeyChoice:
    """A provider whose key can be pasted at the first run.

    `env_name` is the variable of the key, `model` the model to use with it.
    """

    label: str
    env_name: str
    model: ModelRef


@dataclass(frozen=True, slots=True)
class FirstRun:
    """What the first-run chooser offers. Its functions raise an `AgentTuiError` for the user.

    Args:
        keys: Providers a key can be pasted for.
        keep_key: Takes the variable's name and the key, for this run only.
        find_at: The models of the server at an address, which are listed from then on.
        accounts: What the user can sign in to.
        sign_in: Signs in to one of them, and shows the code to enter.
        is_start: Whether the program has just started, so that the user can also look around.
        demo: The demo to offer; None for none.
    """

    keys: tuple[KeyChoice, ...]
    keep_key: Callable[[str, str], None]
    find_at: Callable[[str], Awaitable[tuple[FoundModel, ...]]]
    accounts: tuple[Account, ...]
    sign_in: Callable[[Account, Callable[[DeviceCode], object]], Awaitable[None]]
    is_start: bool = True
    demo: Demo | None = None


async def _nothing() -> None:
    pass


def _not_special(_cwd: Path) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class UiOptions:
    """Everything `AgentApp` needs.

    Args:
        runtime: The conversation; the app closes it when it ends.
        services: What commands work on besides the conversation: models, servers, plugins.
        settings: The settings in force.
        problems: Settings that were ignored; shown at the start.
        notices: Other lines to show at the start.
        first_prompt: Sent at once, as if it had been typed.
        resume: A session to open at the start (``-r ID``, ``-c``), by path, id or name.
        keeps_model: Keep the runtime's model instead of the opened session's.
        opens_picker: Open the session picker at the start (``-r`` without an id).
        first_run: What the chooser offers if no model can be used, or in a demo; None if one can.
        local: The model to download; None leaves it out of the chooser.
        pull_first: Ask at the start whether to download `local` (``--local``).
        warm: Prepares the provider and the present model. It runs in the background after the first
            paint, and again once the user has chosen a model at the first run. An `AgentTuiError`
            is shown.
        close: Stops the provider and the servers; awaited once the conversation is closed.
        history_file: Stores sent prompts; None keeps them in memory.
        onboarding_file: Stores the number of sent messages, which ends the hints. None shows none.
        session_dir: The folder of sessions from the command line, for the hint how to resume;
            empty if it named none.
        demo: The demo that this is; None if it is none.
        sandbox_word: Returns how commands in a folder run, for the status bar; may block.
        status_script: The user's command for the status line; None if there is none.
        approval_quiet_s: Seconds without a key before an approval takes keys.
        clock: Monotonic seconds.
    """

    runtime: AgentRuntime
    services: CommandServices
    settings: Settings = field(default_factory=Settings)
    problems: tuple[SettingProblem, ...] = ()
    notices: tuple[str, ...] = ()
    first_prompt: str = ""
    resume: str = ""
    keeps_model: bool = False
    opens_picker: bool = False
    first_run: FirstRun | None = None
    local: ModelOffer | None = None
    pull_first: bool = False
    warm: Callable[[], Awaitable[None]] = _nothing
    close: Callable[[], Awaitable[None]] = _nothing
    history_file: Path | None = None
    onboarding_file: Path | None = None
    session_dir: str = ""
    demo: Demo | None = None
    sandbox_word: Callable[[Path], str] = _not_special
    status_script: StatusScript | None = None
    approval_quiet_s: float = QUIET_S
    clock: Callable[[], float] = time.monotonic
