"""The completion script for zsh: one function of ``_arguments`` for each command."""

import re
from collections.abc import Iterator

from agent_tui.cli.completion.tree import Command, Operand, Option

_HEAD = r"""#compdef agent-tui
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
_TAIL = r"""
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


def zsh_script(tree: Command) -> str:
    """The script that completes `tree` in zsh 5 and later."""
    functions = [_function(command) for command in tree.walk()]
    return _HEAD + "\n" + "\n".join(functions) + _TAIL


def _function(command: Command) -> str:
    lines = [f"{_name(command)}() {{"]
    if command.subcommands:
        lines += _dispatch(command)
    specs = [_option(option) for option in command.options]
    specs += _operands(command)
    lines.append("  _arguments -s -S : \\")
    lines += [f"    {spec} \\" for spec in specs[:-1]]
    lines += [f"    {specs[-1]}", "}", ""]
    return "\n".join(lines)


def _dispatch(command: Command) -> Iterator[str]:
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
    yield f"    {_name(command)}_$name"
    yield "    return"
    yield "  fi"
    yield "  local -a below=("
    for inner in command.subcommands:
        yield f"    {_quoted(inner.words[-1] + ':' + inner.about)}"
    yield "  )"


def _operands(command: Command) -> Iterator[str]:
    if command.subcommands:
        yield "'1:command:{ _describe command below }'"
        if not command.words:
            yield "'*: : '"
        return
    for number, operand in enumerate(command.operands, start=1):
        place = "*" if operand.repeats else str(number)
        optional = ":" if operand.is_optional and not operand.repeats else ""
        label = _plain(operand.metavar.lower())
        yield _quoted(f"{place}:{optional}{label}:{_action(operand)}")


def _option(option: Option) -> str:
    value = option.value
    argument = ""
    if value is not None:
        colon = "::" if value.is_optional else ":"
        argument = f"{colon}{_plain(value.metavar.lower())}:{_action(value)}"
    about = f"[{_plain(option.about)}]"
    excluded = f"({' '.join(option.names)})" if len(option.names) > 1 else ""
    if len(option.names) == 1:
        name = option.names[0] + ("=" if value and option.names[0].startswith("--") else "")
        return _quoted(f"{name}{about}{argument}")
    names = ",".join(
        name + ("=" if value and name.startswith("--") else "") for name in option.names
    )
    return f"{_quoted(excluded)}{{{names}}}{_quoted(about + argument)}"


def _action(operand: Operand) -> str:
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


def _name(command: Command) -> str:
    return "_".join(("_agent_tui", *command.words))


def _plain(text: str) -> str:
    """Without what would end a part of a specification."""
    return re.sub(r"[\[\]:]", lambda found: "\\" + found[0], text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
