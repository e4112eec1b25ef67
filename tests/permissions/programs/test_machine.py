from agent_tui.permissions.programs.dangers import machine_danger_of
from agent_tui.permissions.shell.parts import split_command
from tests.support.rows import each_row


def _danger(command: str) -> str:
    part = split_command(command).commands[0]
    return machine_danger_of(part.name, part)


@each_row(
    ("command", "why"),
    [
        ("reboot", "changes the system"),
        ("mkfs.ext4 x", "changes the system"),
        ("kill -9 -1", "ends every process"),
        ("kill $PPID", "or agent-tui"),
        ("pkill -u me", "ends every process"),
        ("pkill .", "ends every process"),
        ("chmod u+s x", "run a file as its owner"),
        ("chmod 4755 x", "run a file as its owner"),
        ("agent-tui --permission-mode full", "without asking"),
        ("agent-tui mcp add x", "without asking"),
    ],
)
def test_what_changes_the_machine_is_told(command: str, why: str):
    assert why in _danger(command)


@each_row(
    "command",
    [
        "mount",
        "ip addr show",
        "ifconfig eth0",
        "hostname -f",
        "kill 1234",
        "pkill -f my-server",
        "killall node",
        "chmod 755 x",
        "chmod +x x",
        "tar xf x",
        "tar cPf x .",
        "ps aux",
        "ps -C node",
        "ps -o time",
        "apt list",
        "docker run x",
        "claude -p x",
        "agent-tui sessions list",
        "agent-tui trust list",
    ],
)
def test_what_only_looks_or_does_less_is_none(command: str):
    assert _danger(command) == ""
