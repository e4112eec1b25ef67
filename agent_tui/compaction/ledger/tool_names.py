"""The names that coding agents give their tools, in lower case, by what the tools do."""

from typing import Final

SHELLS: Final = frozenset(
    {
        *("bash", "shell", "run", "execute", "terminal", "run_command", "run_shell_command"),
        *("execute_bash", "exec_command", "run_terminal_cmd", "local_shell"),
        *("shell_command", "container.exec"),
        *("execute_ipython_cell", "run_ipython"),
    }
)
"""They run a command or code."""

READERS: Final = frozenset(
    {"read", "read_file", "view", "view_file", "open", "open_file", "cat", "notebookread"}
)
MANY_READERS: Final = frozenset({"read_many_files"})
"""They read several files in one call, so that no single file stands for it."""

WRITERS: Final = frozenset({"write", "write_file", "write_to_file", "create", "create_file"})
EDITORS: Final = frozenset(
    {
        *("edit", "edit_file", "multiedit", "multi_edit", "str_replace", "insert", "replace"),
        *("notebookedit", "notebook_edit", "replace_in_file", "apply_diff", "search_replace"),
    }
)
PATCHERS: Final = frozenset({"apply_patch", "patch"})
"""They edit the files that the patch itself names."""

COMMAND_EDITORS: Final = frozenset(
    {"str_replace_editor", "str_replace_based_edit_tool", "file_editor", "edit_anthropic"}
)
"""One tool for all: its argument ``command`` says which."""

PATH_ARGUMENTS: Final = ("path", "file_path", "filePath", "filename", "file", "notebook_path")
"""The arguments that name the file, the likeliest first."""
