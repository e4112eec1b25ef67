"""Which commands ask in every mode. Only their text is read; none is run."""

from pathlib import Path

import pytest

from agent_tui.permissions.programs.dangers import danger_of, device_danger, find_hidden_commands
from agent_tui.permissions.protected_paths import ProtectedPaths
from agent_tui.permissions.shell.parts import split_command
from tests.permissions.programs.parts import part_of
from tests.support.rows import each_row

_WORKSPACE = Path("/ws/project")
_PATHS = ProtectedPaths(
    workspace=_WORKSPACE,
    scratch_folders=(Path("/scratch"),),
    home=Path("/home/me"),
    git_risk=lambda _folder: "",
)


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")


def _danger(command: str, *folders: str) -> str:
    bases = [Path(folder) for folder in folders] or [_WORKSPACE]
    return danger_of(part_of(command), bases, _PATHS)


@each_row(
    ("command", "why"),
    [
        ("mkfs.ext4 x", "changes the system"),
        ("/sbin/reboot", "changes the system"),
        ("REBOOT", "changes the system"),
        ("mount /dev/sda", "changes the system"),
        ("mkfs --version x", "changes the system"),
        ("kill -9 -1", "ends every process"),
        ("kill -9 1", "ends every process"),
        ("kill 1", "ends every process"),
        ("dd if=x of=/dev/sda", "writes to a device"),
        ("agent-tui config set x", "without asking"),
        ("agent-tui trust", "without asking"),
        ("agent-tui $x", "without asking"),
        ("find / -delete", "find -delete"),
        ("find .. -delete", "find -delete"),
        ("find -delete", "on all of"),
        ("find . -delete", "on all of"),
        ("find . -name '*' -delete", "on all of"),
        ("find . -name a -o -delete", "on all of"),
        ("find $x -name a -delete", "known only at run time"),
        ("find . -name $x -delete", "on all of"),
        ("find -files0-from f -delete", "known only at run time"),
        ("find / -name core -delete", "find -delete"),
        ("rm -r .", "on all of"),
        ("rm -rf *", "on all of"),
        ("rm -rf ./.*", "on all of"),
        ("rm -rf ..", "outside the folder"),
        ("rm -rf */../../other", "cannot resolve */../../other"),
        ("chmod -R a+w a?/../..", "cannot resolve a?/../.."),
        ("find [ab]/../.. -delete", "cannot resolve [ab]/../.."),
        ("rm -rf /elsewhere/x", "outside the folder"),
        ("rm -rf /scratch/../x", "outside the folder"),
        ("rm -rf /home/me", "outside the folder"),
        ("rm -rf $x", "known only at run time"),
        ("rm -rf $x/", "known only at run time"),
        ("rm -r /", "outside the folder"),
        ("rm -fr ~", "outside the folder"),
        ("xargs rm", "rm of everything found"),
        ("/usr/bin/fd x -X rm", "rm of everything found"),
        ("/usr/bin/find .. -exec rm {} +", "rm of everything found"),
        ("xargs rm -rf", "recursive rm"),
        ("rimraf $x", "known only at run time"),
        ("rm -rf -- -x $y", "known only at run time"),
        ("rm -rf -- -x/../..", "outside the folder"),
        ("chmod --recursive a+w ..", "outside the folder"),
        ("find . -exec rm {} +", "known only at run time"),
        ("ls | xargs rm", "known only at run time"),
        ("ls | xargs chmod a+w", "known only at run time"),
        ("fd x -x rm ..", "outside the folder"),
        ("fdfind x -x rm ..", "outside the folder"),
        ("rm --no-preserve-root /elsewhere/x", "recursive rm"),
        ("trash -r ..", "recursive trash"),
        ("srm /elsewhere/x", "changes the system"),
        ("install a /usr/x", "part of the system"),
        ("ln -s a /usr/x", "part of the system"),
        ("rsync -a --delete a /elsewhere/b", "outside the folder"),
        ("rsync -a --del a $x", "known only at run time"),
        ("mv . x", "on all of"),
        ("mv /home/me x", "on all of"),
        ("ln -s .. x", "on all of"),
        ("mv a /etc/x", "part of the system"),
        ("mv /etc/x a", "part of the system"),
        ("cp a /usr/bin/x", "part of the system"),
        ("cp a /dev/sda", "is a device"),
        ("touch a /etc/x", "part of the system"),
        ("tee /etc/hosts", "part of the system"),
        ("rm /elsewhere/x", "outside the folder"),
        ("unlink /elsewhere/x", "outside the folder"),
        ("dd if=a of=/etc/x", "part of the system"),
        ("ssh host rm -rf /", "recursive rm"),
        ("foo -c 'rm -rf ..'", "recursive rm"),
        ("foo dd of=/dev/sda", "writes to a device"),
        ("foo agent-tui trust", "without asking"),
    ],
)
def test_what_destroys_more_than_a_project_is_a_danger(command: str, why: str):
    assert why in _danger(command)


@each_row(
    "command",
    [
        "sudo --version",
        "sudo --help",
        "mount",
        "date +%F",
        "kill -9 123",
        "kill 12",
        "dd if=a of=b",
        "agent-tui",
        "agent-tui config show",
        "agent-tui sessions",
        "docker run -v ./src:/src x",
        "apt-get install x",
        "find . -name '*.pyc' -delete",
        "find build -delete",
        "find . -empty -delete",
        "rm f",
        "rm -rf build",
        "rm -rf build/*",
        "rm -rf */build/..x",
        "rm -rf *.pyc",
        "rm -rf /scratch/x",
        "rm -- -r",
        "rm *.o",
        'rm "$x"',
        "rm $x f",
        "rm ${x}",
        "rm ${x%.c}.o",
        "rm ${x/.c/.o}",
        "rm $scratch.$$",
        'rm -f "$x" $y',
        "x=a; rm $x.$$",
        "x=$(mktemp -u); rm -f $x.$$",
        "chmod a+x f",
        "chmod -R a+r build",
        "rsync -a --delete a b",
        "rsync -a . b",
        "mv a b",
        "mv $x b",
        "mv /elsewhere/a b",
        "cp -r . /scratch/x",
        "cp /etc/hosts .",
        "touch /home/me/f",
        "sed s/a/b/ /etc/x",
        "sed -i s/a/b/ f",
        "curl -o f u",
        "curl -O u",
        "tar xf a -C build",
        "tee f",
        "npm run rm -rf ..",
        "git commit -m 'rm -rf ..'",
        "echo hi",
    ],
)
def test_what_stays_in_the_workspace_is_none(command: str):
    assert _danger(command) == ""


def test_every_folder_a_command_may_run_in_counts():
    assert _danger("rm -rf x", "/ws/project", "/elsewhere")
    assert _danger("touch x", "/ws/project", "/etc")
    assert not _danger("rm -rf x", "/ws/project", "/ws/project/sub")


def test_what_is_known_to_read_only_is_none_whatever_it_names():
    assert danger_of(part_of("rm -rf /"), [_WORKSPACE], _PATHS, reads_only=True) == ""


@each_row(
    ("command", "hidden"),
    [
        ("ssh host rm x", ["host rm x", "rm x", "x"]),
        ("foo -v rm x", ["rm x", "x"]),
        ("foo -c 'rm x; ls'", ["rm x; ls", "rm x", "ls"]),
        ("foo $x rm", ["rm"]),
        ("git commit -m 'rm x'", []),
        ("/usr/bin/npm run x", []),
        ("foo", []),
    ],
)
def test_the_commands_an_unknown_program_may_be_given_are_told(command: str, hidden: list[str]):
    told = [
        " ".join(word.value or "" for word in inner.words)
        for inner in find_hidden_commands(part_of(command))
    ]
    assert told == hidden


@each_row(
    ("path", "is_one"),
    [
        ("/dev/sda", True),
        ("/dev/fd/x", True),
        ("/dev/null", False),
        ("/dev/fd/2", False),
        ("/device", False),
        ("dev/sda", False),
    ],
)
def test_devices_are_known_by_their_path(path: str, is_one: bool):
    assert bool(device_danger(Path(path))) is is_one


@pytest.mark.parametrize(
    ("definition", "is_one"),
    [("f() { f | f & }", True), (":(){ :|:& };:", True), ("f() { g | g & }", False)],
)
def test_a_function_that_starts_itself_is_a_danger(definition: str, is_one: bool):
    defined = split_command(definition).commands[0]
    assert bool(danger_of(defined, [_WORKSPACE], _PATHS)) is is_one


@pytest.mark.parametrize(
    "command",
    [
        "make SHELL='rm -rf /' all",
        "make 'V!=rm -rf /'",
        "rake -j CC='sh -c \"rm -rf /\"'",
        "LESSOPEN=\"|env A='rm -rf /' x\" less f",
        'LESSOPEN="|env A=\'make CC=\\"rm -rf /\\"\' x" less f',
    ],
)
def test_a_command_in_a_variable_is_judged_wherever_the_variable_is_set(command: str):
    assert "recursive rm" in _danger(command)


def test_variables_with_variables_are_followed_to_an_end():
    text = "x"
    for _ in range(30):
        text = f"env A{len(text)}={text} x"
    assert len(find_hidden_commands(part_of(f"make V='{text}'"))) < 300
