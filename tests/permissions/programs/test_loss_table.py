import re

import pytest

from agent_tui.permissions.programs.destruction import destruction_of
from agent_tui.permissions.programs.loss_table import KEYS_SHOWN, LOSSES
from agent_tui.permissions.shell.parts import split_command


def _lost(command: str) -> str:
    return destruction_of(split_command(command).commands[0])


def test_every_row_of_the_tables_is_read():
    assert {"terraform", "npm", "goreleaser", "svn"} <= LOSSES.keys()
    assert {"pass", "vault", "gh"} <= KEYS_SHOWN.keys()
    names = [*LOSSES, *KEYS_SHOWN]
    assert all(re.fullmatch(r"[\w.-]+", name) for name in names)


@pytest.mark.parametrize(
    "command",
    [
        "npm install",
        "npm run publish-docs",
        "docker build -t publish .",
        "docker rm x",
        "terraform plan",
        "kubectl get secrets",
        "kubectl get pods -o yaml",
        "helm upgrade x y",
        "gh release list",
        "gh pr create",
        "gh auth status",
        "gradle publishToMavenLocal",
        "sbt publishLocal",
        "pass ls",
        "vault status",
        "aws s3 ls",
        "aws sts get-caller-identity",
        "redis-cli get x",
        "svn revert a.c",
        "hg update tip",
        "mix deps.get",
        "rake test",
        "curl -X DELETE http://localhost:3000/x",
        "curl -X POST http://x/y",
        "uv run pytest",
        "npx eslint .",
        "cargo publish --dry-run",
        "git push origin main",
        "git checkout -- a.c",
        "git clean -n",
        "git rm a.c",
        "git merge x",
        "git update-index -q --refresh",
    ],
)
def test_what_can_be_undone_is_not_told(command: str):
    assert _lost(command) == ""
