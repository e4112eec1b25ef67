"""The completion script for bash: an interpreter of the tree, which is put into its tables."""

import shlex
from collections.abc import Iterator

from agent_tui.cli.completion.tree import Command, Operand

_SCRIPT = r"""# bash completion for agent-tui; load it with: eval "$(agent-tui completion bash)"

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


def bash_script(tree: Command) -> str:
    """The script that completes `tree` in bash 4 and later."""
    commands = list(tree.walk())
    at = "\n".join(_at(command) for command in commands)
    takes = "\n".join(line for command in commands for line in _takes(command))
    return _SCRIPT.replace("@AT@", at).replace("@TAKES@", takes)


def _at(command: Command) -> str:
    options = " ".join(name for option in command.options for name in option.names)
    names = " ".join(inner.words[-1] for inner in command.subcommands)
    operands = " ".join(
        shlex.quote(_kind(operand) + ("*" if operand.repeats else ""))
        for operand in command.operands
    )
    path = shlex.quote(" ".join(command.words))
    return (
        f"        {path}) _options={shlex.quote(options)} _commands={shlex.quote(names)} "
        f"_operands=({operands}) ;;"
    )


def _takes(command: Command) -> Iterator[str]:
    path = " ".join(command.words)
    for option in command.options:
        if option.value is not None:
            names = " | ".join(shlex.quote(f"{path} {name}") for name in option.names)
            alone = " _may_stand_alone=1" if option.value.is_optional else ""
            yield f"        {names}) _kind={shlex.quote(_kind(option.value))}{alone} ;;"


def _kind(operand: Operand) -> str:
    return f"={' '.join(operand.choices)}" if operand.kind == "choice" else operand.kind
