from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject
from agent_tui.tools.registry import default_toolbox
from tests.support.rows import each_row

CWD = Path("/work")
TOOLBOX = default_toolbox()


@each_row(
    ("name", "arguments", "own_name", "own_arguments"),
    [
        ("Bash", {"command": "ls", "description": "List"}, "bash", {"command": "ls"}),
        ("bash", {"cmd": "ls"}, "bash", {"command": "ls"}),
        (
            "shell",
            {"command": "ls", "with_escalated_permissions": True, "justification": "keys"},
            "bash",
            {"command": "ls", "outside": True, "why": "keys"},
        ),
        ("bash", {"command": "ls", "timeout": 120_000}, "bash", {"command": "ls", "timeout": 120}),
        ("bash", {"command": "ls", "timeout": 600}, "bash", {"command": "ls", "timeout": 600}),
        ("bash", {"command": "ls", "timeout_ms": 500}, "bash", {"command": "ls", "timeout": 0.5}),
        ("shell", {"command": ["bash", "-lc", "ls | wc"]}, "bash", {"command": "ls | wc"}),
        ("container.exec", {"cmd": ["echo", "a b"]}, "bash", {"command": "echo 'a b'"}),
        ("shell", {"command": "ls", "workdir": "/work"}, "bash", {"command": "ls"}),
        (
            "shell_command",
            {"command": "ls\npwd", "workdir": "a b"},
            "bash",
            {"command": "cd 'a b' || exit 1\nls\npwd"},
        ),
        ("Read", {"file_path": "a"}, "read", {"path": "a"}),
        ("read_file", {"target_file": "a"}, "read", {"path": "a"}),
        (
            "read_file",
            {"path": "a", "start_line": 3, "end_line": 7},
            "read",
            {"path": "a", "offset": 3, "limit": 5},
        ),
        ("read", {"path": "a", "offset": 0}, "read", {"path": "a", "offset": 1}),
        (
            "str_replace_based_edit_tool",
            {"command": "view", "path": "a", "view_range": [2, 4]},
            "read",
            {"path": "a", "offset": 2, "limit": 3},
        ),
        (
            "str_replace_based_edit_tool",
            {"command": "create", "path": "a", "file_text": "x"},
            "write",
            {"path": "a", "content": "x"},
        ),
        (
            "str_replace_editor",
            {"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"},
            "edit",
            {"path": "a", "old": "x", "new": "y"},
        ),
        (
            "Edit",
            {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True},
            "edit",
            {"path": "a", "old": "x", "new": "y", "all": True},
        ),
        (
            "replace",
            {"file_path": "a", "old_string": "x", "new_string": "y", "expected_replacements": 2},
            "edit",
            {"path": "a", "old": "x", "new": "y", "all": True},
        ),
        (
            "MultiEdit",
            {"file_path": "a", "edits": '[{"old_string": "x", "new_string": "y"}]'},
            "edit",
            {"path": "a", "edits": [{"old": "x", "new": "y"}]},
        ),
        ("write_file", {"path": "a", "text": "x"}, "write", {"path": "a", "content": "x"}),
        (
            "Grep",
            {"pattern": "x", "-i": True, "-n": True, "-A": 2, "-B": 3, "head_limit": 5},
            "grep",
            {"pattern": "x", "ignore_case": True, "context": 3, "limit": 5},
        ),
        (
            "search_file_content",
            {"pattern": "x", "include": "*.py", "dir_path": "a"},
            "grep",
            {"pattern": "x", "glob": "*.py", "path": "a"},
        ),
        (
            "grep_search",
            {"query": "x", "case_sensitive": False, "type": "python"},
            "grep",
            {"pattern": "x", "ignore_case": True, "glob": "*.py"},
        ),
        ("Glob", {"pattern": "**/*.py"}, "find", {"pattern": "**/*.py"}),
        ("list_dir", {"target_directory": "a"}, "ls", {"path": "a"}),
        (
            "TodoWrite",
            {"todos": [{"content": "x", "status": "pending", "activeForm": "xing", "id": "1"}]},
            "todo",
            {"todos": [{"text": "x", "status": "pending"}]},
        ),
        (
            "update_plan",
            {"explanation": "why", "plan": [{"step": "x", "status": "completed"}]},
            "todo",
            {"todos": [{"text": "x", "status": "completed"}]},
        ),
        ("functions.bash", {"command": "ls"}, "bash", {"command": "ls"}),
        (
            "Bash",
            {"command": "npm run dev", "run_in_background": True, "description": "Start"},
            "bash",
            {"command": "npm run dev", "background": True},
        ),
        ("BashOutput", {"bash_id": "1"}, "job", {"id": "1"}),
        (
            "TaskOutput",
            {"task_id": "1", "block": True, "timeout": 30_000},
            "job",
            {"id": "1", "wait": 30},
        ),
        ("TaskOutput", {"task_id": "1", "block": False, "timeout": 30_000}, "job", {"id": "1"}),
        ("KillShell", {"shell_id": "1"}, "job", {"id": "1", "stop": True}),
        (
            "write_stdin",
            {"session_id": 1, "chars": "", "yield_time_ms": 5_000},
            "job",
            {"id": "1", "wait": 5},
        ),
        ("write_stdin", {"session_id": 1, "chars": "\x03"}, "job", {"id": "1", "stop": True}),
    ],
)
def test_calls_of_other_agents_are_understood(name, arguments, own_name, own_arguments):
    call = TOOLBOX.translate_call(name, arguments, CWD)
    assert (call.name, call.arguments, call.remark) == (own_name, own_arguments, "")
    TOOLBOX.check(call.name, call.arguments)


@each_row(
    ("argument", "seconds"),
    [
        *((argument, 3) for argument in ("timeout_ms", "timeoutMs", "timeout_millis")),
        *((argument, 3_000) for argument in ("timeout_s", "timeout_seconds", "timeout_secs")),
    ],
)
def test_a_time_limit_by_any_of_its_names_is_one_in_seconds(argument: str, seconds: int):
    call = TOOLBOX.translate_call("bash", {"command": "ls", argument: 3_000}, CWD)
    assert (call.arguments, call.remark) == ({"command": "ls", "timeout": seconds}, "")


@pytest.mark.parametrize("argument", ["workdir", "working_directory", "cwd", "dir_path"])
def test_a_folder_for_a_command_by_any_of_its_names_is_gone_to(argument: str):
    call = TOOLBOX.translate_call("bash", {"command": "ls", argument: "/etc"}, CWD)
    assert (call.arguments, call.remark) == ({"command": "cd /etc || exit 1\nls"}, "")


def test_an_argument_nobody_knows_is_left_out_and_the_model_told():
    call = TOOLBOX.translate_call("read", {"path": "a", "colour": "red", "size": 3}, CWD)
    assert call.arguments == {"path": "a"}
    assert call.remark == "(read has no argument colour, size: ignored.)"


@pytest.mark.parametrize("argument", ["append", "mode", "dry_run"])
def test_an_argument_that_would_change_what_is_done_is_not_left_out(argument):
    call = TOOLBOX.translate_call("write", {"path": "a", "content": "x", argument: True}, CWD)
    with pytest.raises(ToolError, match=f"{argument} is not an argument"):
        TOOLBOX.check(call.name, call.arguments)


def test_a_tool_nobody_knows_stays_as_it_was_called():
    given: JsonObject = {"command": "undo_edit", "path": "a"}
    for name in ("str_replace_editor", "teleport"):
        call = TOOLBOX.translate_call(name, given, CWD)
        with pytest.raises(ToolError, match=f"no tool {name!r}"):
            TOOLBOX.check(call.name, call.arguments)


def test_our_own_name_wins_over_that_of_another_argument():
    call = TOOLBOX.translate_call("read", {"path": "a", "file_path": "b"}, CWD)
    assert call.arguments == {"path": "a"}
