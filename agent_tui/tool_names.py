"""The names that other agents use for tools like ours, which models have learned."""

from collections.abc import Collection, Mapping
from typing import Final

REMOTE_PREFIX: Final = "mcp__"
"""The name prefix of all MCP servers' tools; none of our own tools has it."""

_NAMES: Final[Mapping[str, str]] = {
    other: ours
    for ours, others in {
        "read": "read_file readfile view view_file open_file cat notebookread get_file_contents",
        "bash": "shell sh shell_command run_command run_shell_command execute_bash exec_command "
        "execute_command run_terminal_cmd local_shell container.exec terminal run execute exec "
        "run_in_terminal",
        "edit": "edit_file str_replace search_replace replace replace_in_file multiedit "
        "multi_edit edit_anthropic replace_string_in_file",
        "write": "write_file create_file write_to_file create save_file",
        "grep": "grep_search search_file_content search_files ripgrep rg search_code",
        "find": "glob find_files file_search glob_file_search glob_search",
        "ls": "list_dir list_directory list_files listdir",
        "todo": "todowrite todo_write update_plan write_todos todo_list",
        "job": "bashoutput bash_output taskoutput task_output killshell kill_shell killbash "
        "taskstop task_stop write_stdin",
        "fetch": "webfetch web_fetch fetch_url url_fetch fetch_webpage fetch_page read_url "
        "read_url_content read_web_page open_url visit_url browse_url browser_navigate",
        "web_search": "websearch search_web google_web_search google_search web_search_preview "
        "internet_search search_internet brave_web_search",
        "explore": "task agent dispatch_agent delegate_task explore_agent codebase_investigator "
        "search_subagent run_subagent",
        "apply_patch": "applypatch patch apply_diff",
    }.items()
    for other in others.split()
}
"""Other agents' names for our tools, in lower case."""


_SHARED: Final[Mapping[str, str]] = {
    "read": "Read",
    "bash": "Bash",
    "edit": "Edit",
    "write": "Write",
    "grep": "Grep",
    "find": "Glob",
    "ls": "LS",
    "todo": "TodoWrite",
    "fetch": "WebFetch",
    "web_search": "WebSearch",
    "explore": "Task",
    "job": "BashOutput",
}
"""The names of our tools in hooks, whichever agent the hooks were written for."""

_ALSO: Final[Mapping[str, tuple[str, ...]]] = {"apply_patch": ("edit", "write")}


def name_for_hooks(tool: str) -> str:
    """The name of our `tool` in hooks; tools of servers and others keep their names."""
    return _SHARED.get(tool, tool)


def names_of(tool: str) -> tuple[str, ...]:
    """All names that hooks may use for our `tool`."""
    ours = (tool, *_ALSO.get(tool, ()))
    others = (other for other, own in _NAMES.items() if own in ours)
    return (name_for_hooks(tool), *ours, *others)


def find_meant_tool(name: str, offered: Collection[str]) -> str:
    """The tool of `offered` that a model means by `name`; `name` itself if there is none."""
    plain = name.strip().casefold().removeprefix("functions.").removeprefix("default_api.")
    meant = plain if plain in offered else _NAMES.get(plain, name)
    return meant if meant in offered else name


def is_remote(tool_name: str) -> bool:
    """Whether a tool of this name belongs to an MCP server."""
    return tool_name.startswith(REMOTE_PREFIX)
