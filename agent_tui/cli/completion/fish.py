"""The completion script for fish."""

from collections.abc import Iterator

from agent_tui.cli.completion.tree import Command, Operand, Option

_HEAD = r"""# fish completion for agent-tui; load it with: agent-tui completion fish | source

# Whether the words before the present one lead to the command $argv, and no further.
function __agent_tui_at
    set -l words (commandline -opc)
    set -e words[1]
    if test (count $argv) -eq 0
        return (not contains -- "$words[1]" $__agent_tui_commands)
    end
    test "$words[1]" = "$argv[1]"; or return 1
    set -e words[1]
    if test (count $argv) -eq 2
        contains -- $argv[2] $words
    else if set -q __agent_tui_below_$argv[1]
        set -l below __agent_tui_below_$argv[1]
        for word in $words
            contains -- $word $$below; and return 1
        end
        return 0
    end
end

# Whether so many words of no option were typed after the first $argv[2] words.
function __agent_tui_place
    set -l words (commandline -opc)
    set -l alone (string match -v -- '-*' $words[(math $argv[2] + 2)..])
    test (count $alone) -eq $argv[1]
end

function __agent_tui_list
    set -l words (commandline -opc)
    $words[1] completion --list $argv -- $words[2..] 2>/dev/null
end

function __agent_tui_is_first
    test (count (commandline -opc)) -eq 1
end

complete -c agent-tui -f
"""


def fish_script(tree: Command) -> str:
    """The script that completes `tree` in fish 3.1 and later."""
    lines = [_HEAD.rstrip("\n")]
    for command in tree.walk():
        if command.subcommands:
            names = " ".join(inner.words[-1] for inner in command.subcommands)
            below = "_".join(("__agent_tui_below", *command.words))
            lines.append(f"set -g {below if command.words else '__agent_tui_commands'} {names}")
    for command in tree.walk():
        lines += ["", *_lines(command)]
    return "\n".join(lines) + "\n"


def _lines(command: Command) -> Iterator[str]:
    here = _quoted(" ".join(("__agent_tui_at", *command.words)))
    for inner in command.subcommands:
        condition = here if command.words else "__agent_tui_is_first"
        name, about = inner.words[-1], _quoted(inner.about)
        yield f"complete -c agent-tui -n {condition} -a {name} -d {about}"
    for option in command.options:
        yield f"complete -c agent-tui -n {here} {_names(option)}{_value(option.value)} " + (
            f"-d {_quoted(option.about)}"
        )
    for place, operand in enumerate(command.operands):
        if operand.kind != "none":
            depth = len(command.words)
            there = f" -n '__agent_tui_place {place} {depth}'" if len(command.operands) > 1 else ""
            yield f"complete -c agent-tui -n {here}{there} {_offered(operand)}"


def _names(option: Option) -> str:
    return " ".join(
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
    )


def _value(value: Operand | None) -> str:
    if value is None:
        return ""
    if value.is_optional and value.kind == "none":
        return ""
    return f" -r {_offered(value)}"


def _offered(operand: Operand) -> str:
    match operand.kind:
        case "choice":
            return f"-f -a {_quoted(' '.join(operand.choices))}"
        case "file":
            return "-F"
        case "folder":
            return "-f -a '(__fish_complete_directories)'"
        case "none":
            return "-f"
        case "session":
            return "-F -a '(__agent_tui_list session)'"
        case _:
            return f"-f -a '(__agent_tui_list {operand.kind})'"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
