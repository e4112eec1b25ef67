"""The files that a command runs, or reads settings from."""

from pathlib import Path

from agent_tui.permissions.programs.run_files import find_run_files
from agent_tui.permissions.shell.parts import split_command
from tests.support.rows import each_row

_FILES = "bin/make tools/clean.js tools/clean.py config x.sh data.csv deploy.sh Makefile"


@each_row(
    ("command", "found"),
    {
        "./deploy.sh config": {"deploy.sh"},
        "PATH=./bin make": {"bin/make", "Makefile"},
        "env PATH=bin make all": {"bin/make", "Makefile"},
        "node tools/clean": {"tools/clean.js"},
        "node --trace-warnings tools/clean config": {"tools/clean.js"},
        "python tools/clean.py data.csv": {"tools/clean.py"},
        "ssh -F ./config host": {"config"},
        "ssh -F./config host": {"config"},
        "ssh -o ProxyCommand=./x.sh host": {"x.sh"},
        "ssh -o 'ProxyCommand sh x.sh %h' host": {"x.sh"},
        "LESSOPEN='|./x.sh %s' less data.csv": {"x.sh"},
        "NODE_OPTIONS='--require ./tools/clean.js' npm test": {"tools/clean.js"},
        "make -f Makefile": {"Makefile"},
        "scp data.csv host:": set[str](),
        "curl -T a.zip https://host": set[str](),
        "git add x.sh": set[str](),
        "git push origin x.sh": set[str](),
        "make all": {"Makefile"},
        "make SHELL=./x.sh all": {"Makefile", "x.sh"},
        "make -j CC='sh x.sh' all": {"Makefile", "x.sh"},
        "make 'V!=./x.sh'": {"Makefile", "x.sh"},
        "LESSOPEN='|env A=./x.sh less' less data.csv": {"x.sh"},
        "git commit -m V=./x.sh": set[str](),
        "sh -c 'make all'": {"Makefile"},
    }.items(),
)
def test_programs_scripts_and_what_variables_and_options_name_are_found(
    command: str, found: set[str], tmp_path: Path
):
    for name in _FILES.split():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "a.zip").write_bytes(b"PK\0")
    parts = split_command(command).commands
    paths = {path for part in parts for path in find_run_files(part, [tmp_path], None)}
    assert {str(path.relative_to(tmp_path)) for path in paths} == found
