import pytest

from agent_tui.permissions.shell.code import files_in_code
from agent_tui.permissions.shell.parts import split_command


def _found(command: str) -> set[str]:
    return {
        word.value or "" for part in split_command(command).commands for word in files_in_code(part)
    }


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("python3 -c \"open('.env')\"", ".env"),
        ('python3 -c \'open(".e" + "nv")\'', ".env"),
        ("python3 - <<'EOF'\nopen('sub/.env')\nEOF", "sub/.env"),
        ("node -p 'fs.readFileSync(`.npmrc`)'", ".npmrc"),
        ("ruby3.2 -e 'File.read \"~/.ssh/id_rsa\"'", "~/.ssh/id_rsa"),
        ("awk 'BEGIN{while((getline l < \".env\")>0) print l}'", ".env"),
        ("sed 's/x/cat .env/e' a", ".env"),
        ("sed 'r .git/config' a", ".git/config"),
        ("sqlite3 x '.read .netrc'", ".netrc"),
    ],
)
def test_files_that_code_names_are_found(command: str, file: str):
    assert file in _found(command)


@pytest.mark.parametrize(
    "command",
    [
        "node -e 'console.log(process.env.HOME, event.key, x[0].env, f().env)'",
        "python3 -c 'import os; print(os.environ, a.pem)'",
        "sed -i 's/.env/.envrc/' README.md",
        "awk '/.env/ {print $1}' a",
        "grep -rn '.env' src",
        "git commit -m 'read .env'",
        "cargo run -- '.env('",
        "python3 app.py --port 80",
    ],
)
def test_what_only_looks_like_one_is_none(command: str):
    assert not _found(command)
