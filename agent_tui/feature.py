"""What a feature brings: names of objects, which are imported when they are asked for.

A feature of the program is a folder of ``agent_tui/features`` whose ``feature.py`` has a `FEATURE`;
it can be deleted. A feature of another package is the same value, named by an entry point.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, cast

_NOTHING: Final[Mapping[str, Sequence[str]]] = MappingProxyType({})


class SubcommandModule(Protocol):
    """What the module of a subcommand offers."""

    def build_parser(self) -> argparse.ArgumentParser:
        """The parser of its command line."""
        ...

    def run_command(self, argv: Sequence[str], /) -> int:
        """Run it with the arguments after its name; returns the exit code."""
        ...


class Subcommand(NamedTuple):
    """A subcommand of ``agent-tui``.

    Attributes:
        name: The word typed after ``agent-tui``.
        summary: What it does, in one line.
        module: Its module; imported only when needed.
    """

    name: str
    summary: str
    module: str

    def load(self) -> SubcommandModule:
        """Import the module."""
        return cast(SubcommandModule, import_module(self.module))


class Option(NamedTuple):
    """A switch of the command line without a subcommand.

    Attributes:
        name: ``plain`` for ``--plain``; `Arguments.switches` has it if it was given.
        summary: What it does, in one line that begins with a verb.
        demo: If it starts a demo, that `Demo` (``commands/core/demo.py``).
        offer: If it chooses a model on this machine, a function that makes the `ModelOffer`
            (``ui/options.py``), one to download.
        ask: With `offer`: a `MakeSure` (``cli/local_option.py``), used without the screen.
    """

    name: str
    summary: str
    demo: str = ""
    offer: str = ""
    ask: str = ""


class OptionsModule(Protocol):
    """What the module of options with values offers. Every start imports it."""

    def add_options(self, parser: argparse.ArgumentParser, /) -> None:
        """Add them to the command line without a subcommand."""
        ...

    def take_options(self, parser: argparse.ArgumentParser, values: argparse.Namespace, /) -> None:
        """Remove them from `values`, or end with a usage error.

        It may keep texts in ``option_values`` for `Feature.around` and `Feature.headless`, set a
        setting for this run in ``setting_values``, and replace ``prompt``; the option that does
        is then named in ``prompt_option``.
        """
        ...


class FeatureCheck(NamedTuple):
    """A check of ``agent-tui doctor``.

    Attributes:
        section: The heading that it is listed under.
        name: What the report calls it if it fails or takes too long.
        function: Yields a `Check` (``commands/core/checks.py``) for each line, from a
            `CheckContext`. It may block and may raise.
    """

    section: str
    name: str
    function: str


class StoredElsewhere(NamedTuple):
    """Something that agent-tui made outside its own folders.

    Attributes:
        place: Its path, or its address in a git remote.
        path: The folder, for its size; None if it is not on this machine.
        loss: What removing it loses.
        removal: How to remove it: a command, or a sentence.
    """

    place: str
    path: Path | None
    loss: str
    removal: str


class Feature(NamedTuple):
    """What a feature brings. An object is named ``module:name``, as in entry points.

    The features of plugins have no `options`, `options_module`, `around`, `completions`,
    `shell_answer`, `headless`, `front`, `wires`, `caller`, `local_models`, `server_kinds`,
    `accounts`, `account_switch`, `key_pages`, `adapters`, `spend_limits`, `settings`, `pickers`,
    `prompt_modes`, `screen_watcher`, `stores` and `stores_elsewhere`: these are used before plugins
    are loaded. Nor have they `tool_servers`, a `sandbox`, a `curator` or `command_finders`.

    A named tuple, because every start makes all of them: a dataclass takes 3 ms to make.

    Attributes:
        name: The name of its folder.
        subcommands: What can be typed after ``agent-tui``.
        options: Switches of ``agent-tui`` itself.
        options_module: The module of options with values, an `OptionsModule`.
        around: A function around each run without a subcommand: it gets the `Start` that it is to
            call, the `Arguments` (both in ``cli/arguments.py``), and returns the exit code. Every
            start imports its module.
        completions: Functions that complete the values of options and positional words, by their
            names in the parser. Each is called with the program's name and the words of the
            subcommand, as one text, and yields values with what they are.
        shell_answer: A function that answers a shell which requests completions of a command line,
            and ends the process.
        headless: A function that runs a command line without a user: it gets the `Arguments` and
            returns the exit code. It is used if `options_module` keeps a text under the feature's
            name; that module is the first to add its options, and the last to take them.
        front: The module of a front (``cli/fronts.py``). It is used in place of the screen if the
            switch, the variable or the setting with the feature's name is on.
        verbs: Functions that add verbs to a subcommand, by its name.
        listed_models: Functions without arguments that return what ``agent-tui models`` lists
            first, `BroughtModels` (``cli/listed_models.py``).
        between_turns: Functions of a `Front` that look for something to say, with an event or None
            as their result. They are awaited when a front begins, and after turns on the screen.
        events: Classes of events, `FeatureEvent` in ``events.py``.
        tools: Functions that make a tool from a `ToolHost` (``tools/registry.py``). Plugins use
            `agent_tui.tool` instead, whose calls are always judged as outside the sandbox.
        tool_servers: Makes the servers whose tools the model may call: a function that returns a
            `ToolServers` (``tools/tool_servers.py``) for a `ServersHost` (``cli/tool_servers.py``).
        sandbox: Makes the sandbox of the model's commands: a function that returns a
            `ProgramSandbox` for a `SandboxHost` (``cli/command_sandbox.py``).
        curator: Makes the `Curator`, who asks a model what a compaction keeps
            (``compaction/curation/choosing.py``), from what asks models, counts tokens and looks
            up models.
        wires: Protocols for talking to models: a `Wire` each (``providers/wires/base.py``).
        caller: Makes the `Caller` of models without a wire (``providers/host.py``).
        local_models: Makes the `LocalModels` that it finds and runs on this machine
            (``providers/local_models.py``), from the settings and the environment.
        server_kinds: Kinds of model servers that the user runs: a `ServerKind` each
            (``providers/servers/kinds.py``).
        accounts: Accounts to sign in to instead of a key: an `Account` each
            (``providers/accounts.py``).
        account_switch: Makes the `AccountSwitch` (``providers/account_switch.py``) from the
            `Settings` and the environment.
        key_pages: Pages where the user allows a new key: a `KeyPage` each (there, too).
        adapters: Functions that make an `Adapter` of requests to models (``providers/access.py``)
            from what tells the facts about a model.
        spend_limits: Functions that make a limit on what requests cost from the `Settings`: a
            `SpendLimit` each (``providers/spend_limits.py``).
        settings: A class whose fields join `Settings`. `Settings.of` returns it.
        pickers: Screens to pick from, by the class of the `Pickable`: functions of it and of the
            screen's front (``ui/front.py``).
        prompt_modes: Modes of the prompt's text field (``ui/prompt/modes.py``).
        screen_watcher: What learns what happens on the screen, for example to notify the user: a
            class, a `ScreenWatcher` (``ui/watchers.py``).
        command_finders: Functions that make what finds commands while the program runs, such as
            those of files: a `CommandFinder` each, from a `FinderHost`
            (``commands/core/found_commands.py``).
        checks: What ``agent-tui doctor`` checks for it.
        stores: What removing each of its files and folders in `user_data_dir` loses, by its name
            there; ``agent-tui clean`` lists and removes them.
        stores_elsewhere: Functions without arguments that yield a `StoredElsewhere` for each thing
            it made outside the program's folders, by the kind of these things, such as
            ``git/worktrees``. They may block.
        part: What it does in each conversation: a class, a `Part` (``agent/part.py``).
        brings: Objects by the group of their kind in ``commands/core/plugin_kinds.py``, such as
            ``agent_tui.commands``.
    """

    name: str
    subcommands: tuple[Subcommand, ...] = ()
    options: tuple[Option, ...] = ()
    options_module: str = ""
    around: str = ""
    completions: Mapping[str, str] = MappingProxyType({})
    shell_answer: str = ""
    headless: str = ""
    front: str = ""
    verbs: Mapping[str, Sequence[str]] = _NOTHING
    listed_models: tuple[str, ...] = ()
    between_turns: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    tool_servers: str = ""
    sandbox: str = ""
    curator: str = ""
    wires: tuple[str, ...] = ()
    caller: str = ""
    local_models: str = ""
    server_kinds: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    account_switch: str = ""
    key_pages: tuple[str, ...] = ()
    adapters: tuple[str, ...] = ()
    spend_limits: tuple[str, ...] = ()
    settings: str = ""
    pickers: Mapping[str, str] = MappingProxyType({})
    prompt_modes: tuple[str, ...] = ()
    screen_watcher: str = ""
    command_finders: tuple[str, ...] = ()
    checks: tuple[FeatureCheck, ...] = ()
    stores: Mapping[str, str] = MappingProxyType({})
    stores_elsewhere: Mapping[str, str] = MappingProxyType({})
    part: str = ""
    brings: Mapping[str, Sequence[str]] = _NOTHING


@cache
def own_features() -> tuple[Feature, ...]:
    """The features in the program's own folder, by name; imports nothing else of them.

    Raises:
        OSError: A folder cannot be read. It is not taken for deleted: the sandbox is one.
        ImportError: One has lost some of its files.
    """
    names = feature_names(Path(__file__).with_name("features"))
    modules = (f"agent_tui.features.{name}.feature" for name in names)
    return tuple(cast(Feature, import_module(module).FEATURE) for module in modules)


def feature_names(folder: Path) -> list[str]:
    """The names of the features in `folder`: its folders that hold Python files.

    Raises:
        OSError: One cannot be read.
    """
    return sorted(entry.name for entry in folder.iterdir() if _holds_modules(entry))


def _holds_modules(folder: Path) -> bool:
    return folder.is_dir() and any(entry.suffix == ".py" for entry in folder.iterdir())


def demo_option() -> Option | None:
    """The option that starts a demo; None if no feature of the program brings one."""
    return next((option for option in _own_options() if option.demo), None)


def local_option() -> Option | None:
    """The option that chooses a model on this machine; None if no feature brings one."""
    return next((option for option in _own_options() if option.offer), None)


def _own_options() -> Iterator[Option]:
    return (option for feature in own_features() for option in feature.options)


def headless_function(option_values: Mapping[str, str]) -> str:
    """The name of the function that runs without a user; empty if the options ask for none."""
    names = (one.headless for one in own_features() if one.name in option_values)
    return next(filter(None, names), "")


def named_modules(feature: Feature) -> frozenset[str]:
    """The modules of all that `feature` names."""
    part = (feature.part,) if feature.part else ()
    tables = (*feature.brings.values(), *feature.verbs.values(), feature.between_turns, part)
    tables += (feature.listed_models, feature.events)
    objects = [name for table in tables for name in table]
    objects += [row.module for row in feature.subcommands]
    objects += [row.function for row in feature.checks]
    return frozenset(name.partition(":")[0] for name in objects)


def load_object(name: str) -> object:
    """Import the object that ``module:name`` names."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def own_names(group: str) -> tuple[str, ...]:
    """The variables that hold what the program's own features bring of a kind; imports nothing."""
    names = (name for one in own_features() for name in one.brings.get(group, ()))
    return tuple(name.rpartition(":")[2] for name in names)


def own_objects(group: str) -> Iterator[object]:
    """What the program's own features bring of the kind with this `group`."""
    for feature in own_features():
        yield from map(load_object, feature.brings.get(group, ()))
