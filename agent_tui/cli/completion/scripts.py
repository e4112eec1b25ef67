"""The completion scripts for bash, zsh and fish, each written from the same tree of commands."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from agent_tui.cli.completion.tree import Command, Operand, Option

_BASH = r"""# bash completion for agent-tui; load it with: eval "$(agent-tui completion bash)"

# What may follow the words of $1: _options, _commands, and one kind for each _operands.
_agent_tui_at() {
    _options='' _commands='' _operands=()
    case $1 in
@AT@
    esac
}

# What the option $2 after the words of $1 takes, in _kind: nothing for a switch.
_agent_tui_takes() {
    _kind='' _may_stand_alone=
    case "$1 $2" in
@TAKES@
    esac
}

_agent_tui_offer() {
    local kind=$1 text=$2 line
    case $kind in
        file) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$text") ;;
        folder) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$text") ;;
        =*) mapfile -t COMPREPLY < <(compgen -W "${kind#=}" -- "$text") ;;
        none | '') ;;
        *)
            while IFS=$'\t' read -r line _; do
                [[ $line == "$text"* ]] && COMPREPLY+=("$(printf %q "$line")")
            done < <("${_words[0]}" completion --list "$kind" -- \
                "${_words[@]:1:${#_words[@]}-2}" 2>/dev/null)
            if [[ $kind == session && -z ${COMPREPLY[*]} ]]; then
                compopt -o filenames
                mapfile -t COMPREPLY < <(compgen -f -- "$text")
            fi
            ;;
    esac
}

_agent_tui() {
    local _options _commands _kind _may_stand_alone _operands _words=() path='' place=0
    local word text awaited='' only_operands='' number
    COMPREPLY=()
    # bash takes words apart at : and =, which names of models hold.
    for ((number = 0; number <= COMP_CWORD; number++)); do
        word=${COMP_WORDS[number]}
        if ((number > 1)) && [[ $word == [:=]* || ${COMP_WORDS[number - 1]} == *[:=] ]]; then
            _words[${#_words[@]} - 1]+=$word
        else
            _words+=("$word")
        fi
    done
    text=${_words[${#_words[@]} - 1]}
    _agent_tui_at "$path"
    for ((number = 1; number < ${#_words[@]} - 1; number++)); do
        word=${_words[number]}
        if [[ -n $awaited && ! (-n $_may_stand_alone && $word == -*) ]]; then
            awaited=''
        elif [[ -z $only_operands && $word == -- ]]; then
            awaited='' only_operands=1
        elif [[ -z $only_operands && $word == -?* ]]; then
            _agent_tui_takes "$path" "${word%%=*}"
            [[ $word == *=* ]] && awaited='' || awaited=$_kind
        elif [[ -z $only_operands && " $_commands " == *" $word "* ]] &&
            [[ -n $path || $number -eq 1 ]]; then
            path="${path:+$path }$word"
            place=0 awaited=''
            _agent_tui_at "$path"
        else
            place=$((place + 1)) awaited=''
        fi
    done
    if [[ -n $awaited && ! (-n $_may_stand_alone && $text == -*) ]]; then
        _agent_tui_offer "$awaited" "$text"
    elif [[ -z $only_operands && $text == --*=* ]]; then
        _agent_tui_takes "$path" "${text%%=*}"
        _agent_tui_offer "$_kind" "${text#*=}"
        COMPREPLY=("${COMPREPLY[@]/#/${text%%=*}=}")
    elif [[ -z $only_operands && $text == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$_options" -- "$text")
    else
        number=$((place < ${#_operands[@]} ? place : ${#_operands[@]} - 1))
        ((number >= 0)) && [[ $place -eq $number || ${_operands[number]} == *'*' ]] &&
            _agent_tui_offer "${_operands[number]%'*'}" "$text"
        if [[ -n $path && -n $_commands ]] || ((${#_words[@]} == 2)); then
            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$_commands" -- "$text")
        fi
    fi
    # What bash itself takes for the word is only what follows the last : or =.
    word=${text%"${text##*[:=]}"}
    if [[ -n $word && $COMP_WORDBREAKS == *[:=]* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"$word"}")
    fi
}

complete -o default -F _agent_tui agent-tui
"""
_ZSH_HEAD = r"""#compdef agent-tui
# zsh completion for agent-tui; load it with: source <(agent-tui completion zsh)
# or put it into a folder of $fpath as _agent-tui.

_agent_tui_list() {
  local -a found
  local line
  for line in ${(f)"$($_agent_tui_words[1] completion --list $1 -- \
      ${_agent_tui_words[2,_agent_tui_current-1]} 2>/dev/null)"}; do
    found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  _describe -t "$1" "$1" found
}

_agent_tui_session() {
  _alternative 'session:session:_agent_tui_list session' 'file:file:_files'
}
"""
_ZSH_TAIL = r"""
_agent_tui_main() {
  local -a _agent_tui_words=("${words[@]}")
  local _agent_tui_current=$CURRENT
  _agent_tui
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _agent_tui_main "$@"
else
  compdef _agent_tui_main agent-tui
fi
"""
_FISH_HEAD = r"""# fish completion for agent-tui; load it with: agent-tui completion fish | source

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


def bash_script(tree: Command) -> str:
    """The script that completes `tree` in bash 4 and later."""
    commands = list(tree.walk())
    at = "\n".join(_bash_words_after(command) for command in commands)
    takes = "\n".join(line for command in commands for line in _bash_values(command))
    return _BASH.replace("@AT@", at).replace("@TAKES@", takes)


def _bash_words_after(command: Command) -> str:
    options = " ".join(name for option in command.options for name in option.names)
    names = " ".join(inner.words[-1] for inner in command.subcommands)
    operands = " ".join(
        shlex.quote(_bash_kind(operand) + ("*" if operand.repeats else ""))
        for operand in command.operands
    )
    path = shlex.quote(" ".join(command.words))
    return (
        f"        {path}) _options={shlex.quote(options)} _commands={shlex.quote(names)} "
        f"_operands=({operands}) ;;"
    )


def _bash_values(command: Command) -> Iterator[str]:
    path = " ".join(command.words)
    for option in command.options:
        if option.value is not None:
            names = " | ".join(shlex.quote(f"{path} {name}") for name in option.names)
            alone = " _may_stand_alone=1" if option.value.is_optional else ""
            yield f"        {names}) _kind={shlex.quote(_bash_kind(option.value))}{alone} ;;"


def _bash_kind(operand: Operand) -> str:
    return f"={' '.join(operand.choices)}" if operand.kind == "choice" else operand.kind


def zsh_script(tree: Command) -> str:
    """The script that completes `tree` in zsh 5 and later."""
    functions = [_zsh_function(command) for command in tree.walk()]
    return _ZSH_HEAD + "\n" + "\n".join(functions) + _ZSH_TAIL


def _zsh_function(command: Command) -> str:
    lines = [f"{_zsh_name(command)}() {{"]
    if command.subcommands:
        lines += _zsh_dispatch(command)
    specs = [_zsh_option(option) for option in command.options]
    specs += _zsh_operands(command)
    lines.append("  _arguments -s -S : \\")
    lines += [f"    {spec} \\" for spec in specs[:-1]]
    lines += [f"    {specs[-1]}", "}", ""]
    return "\n".join(lines)


def _zsh_dispatch(command: Command) -> Iterator[str]:
    """Hand on to the function of a subcommand that was typed already."""
    names = "|".join(inner.words[-1] for inner in command.subcommands)
    if not command.words:  # there a subcommand is the first word, or none
        yield f"  if (( CURRENT > 2 )) && [[ $words[2] == ({names}) ]]; then"
        yield "    local name=$words[2]"
        yield "    shift words; (( CURRENT-- ))"
    else:
        yield "  local -i place=${words[(I)(" + names + ")]}"
        yield "  if (( place > 1 && place < CURRENT )); then"
        yield "    local name=$words[place]"
        yield '    words=("${(@)words[place,-1]}"); (( CURRENT -= place - 1 ))'
    yield f"    {_zsh_name(command)}_$name"
    yield "    return"
    yield "  fi"
    yield "  local -a below=("
    for inner in command.subcommands:
        yield f"    {_zsh_quoted(inner.words[-1] + ':' + inner.about)}"
    yield "  )"


def _zsh_operands(command: Command) -> Iterator[str]:
    if command.subcommands:
        yield "'1:command:{ _describe command below }'"
        if not command.words:
            yield "'*: : '"
        return
    for number, operand in enumerate(command.operands, start=1):
        place = "*" if operand.repeats else str(number)
        optional = ":" if operand.is_optional and not operand.repeats else ""
        label = _zsh_plain(operand.metavar.lower())
        yield _zsh_quoted(f"{place}:{optional}{label}:{_zsh_action(operand)}")


def _zsh_option(option: Option) -> str:
    value = option.value
    argument = ""
    if value is not None:
        colon = "::" if value.is_optional else ":"
        argument = f"{colon}{_zsh_plain(value.metavar.lower())}:{_zsh_action(value)}"
    about = f"[{_zsh_plain(option.about)}]"
    excluded = f"({' '.join(option.names)})" if len(option.names) > 1 else ""
    if len(option.names) == 1:
        name = option.names[0] + ("=" if value and option.names[0].startswith("--") else "")
        return _zsh_quoted(f"{name}{about}{argument}")
    names = ",".join(
        name + ("=" if value and name.startswith("--") else "") for name in option.names
    )
    return f"{_zsh_quoted(excluded)}{{{names}}}{_zsh_quoted(about + argument)}"


def _zsh_action(operand: Operand) -> str:
    match operand.kind:
        case "choice":
            return f"({' '.join(operand.choices)})"
        case "file":
            return "_files"
        case "folder":
            return "_files -/"
        case "none":
            return " "
        case "session":
            return "_agent_tui_session"
        case _:
            return f" _agent_tui_list {operand.kind}"  # the space: without options of zsh


def _zsh_name(command: Command) -> str:
    return "_".join(("_agent_tui", *command.words))


def _zsh_plain(text: str) -> str:
    """Without what would end a part of a specification."""
    return re.sub(r"[\[\]:]", lambda found: "\\" + found[0], text)


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def fish_script(tree: Command) -> str:
    """The script that completes `tree` in fish 3.1 and later."""
    lines = [_FISH_HEAD.rstrip("\n")]
    for command in tree.walk():
        if command.subcommands:
            names = " ".join(inner.words[-1] for inner in command.subcommands)
            below = "_".join(("__agent_tui_below", *command.words))
            lines.append(f"set -g {below if command.words else '__agent_tui_commands'} {names}")
    for command in tree.walk():
        lines += ["", *_fish_lines(command)]
    return "\n".join(lines) + "\n"


def _fish_lines(command: Command) -> Iterator[str]:
    here = _fish_quoted(" ".join(("__agent_tui_at", *command.words)))
    for inner in command.subcommands:
        condition = here if command.words else "__agent_tui_is_first"
        name, about = inner.words[-1], _fish_quoted(inner.about)
        yield f"complete -c agent-tui -n {condition} -a {name} -d {about}"
    for option in command.options:
        yield (
            f"complete -c agent-tui -n {here} {_fish_names(option)}{_fish_value(option.value)} "
            + (f"-d {_fish_quoted(option.about)}")
        )
    for place, operand in enumerate(command.operands):
        if operand.kind != "none":
            depth = len(command.words)
            there = f" -n '__agent_tui_place {place} {depth}'" if len(command.operands) > 1 else ""
            yield f"complete -c agent-tui -n {here}{there} {_fish_offered(operand)}"


def _fish_names(option: Option) -> str:
    return " ".join(
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
    )


def _fish_value(value: Operand | None) -> str:
    if value is None:
        return ""
    if value.is_optional and value.kind == "none":
        return ""
    return f" -r {_fish_offered(value)}"


def _fish_offered(operand: Operand) -> str:
    match operand.kind:
        case "choice":
            return f"-f -a {_fish_quoted(' '.join(operand.choices))}"
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


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS: Mapping[str, Callable[[Command], str]] = MappingProxyType(
    {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
)
"""Shell -> what writes its script."""
