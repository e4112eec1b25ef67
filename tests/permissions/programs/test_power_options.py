"""Which options an allow rule ending in ``*`` does not cover unless it names them."""

import pytest

from agent_tui.permissions.programs.power_options import exceeds_rule
from agent_tui.permissions.rules import parse_rule
from tests.permissions.programs.parts import part_of


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("git log *", "git log --output=f"),
        ("git *", "git -c alias.x=y log"),
        ("git *", "git --git-dir=x log"),
        ("git *", "git --exec-path=x log"),
        ("git *", "git difftool"),
        ("git *", "git -C sub difftool"),
        ("git *", "git filter-branch x"),
        ("git *", "git bisect run x"),
        ("git *", "git submodule foreach x"),
        ("git *", "git rebase -ix y"),
        ("git *", "git clone -u x y"),
        ("git *", "git config core.pager x"),
        ("git *", "git archive -o f"),
        ("git *", "/usr/bin/git difftool"),
        ("docker *", "docker exec web sh -c x"),
        ("podman *", "podman run img sh"),
        ("find *", "find . -delete"),
        ("sort *", "sort -uo f a"),
        ("tar *", "tar xf a --to-command=sh"),
        ("tar *", "tar -xIf sh a"),
        ("tar *", "tar xIf sh a"),
        ("sed *", "sed -i s/a/b/ f"),
        ("sed *", "sed -n 1e f"),
        ("sed *", "sed w\\ f g"),
        ("sed -n *", "sed -n -i p f"),
        ("awk *", "awk 'BEGIN { system(\"x\") }'"),
        ("awk *", "awk -f x"),
        ("curl *", "curl -sO u"),
        ("rg *", "rg --pre x y"),
        ("make *", "make SHELL=x"),
        ("vim *", "vim -c x f"),
        ("gh *", "gh alias set x"),
    ],
)
def test_a_power_the_rule_does_not_name_exceeds_it(rule: str, command: str):
    assert exceeds_rule(parse_rule(f"bash({rule})", "allow"), part_of(command))


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("*", "git difftool"),
        ("git log --output=f", "git log --output=f"),
        ("git log --output=f *", "git log --output=f -5"),
        ("git log *", "git log -5"),
        ("git difftool *", "git difftool x"),
        ("git bisect run *", "git bisect run x"),
        ("git *", "git commit -c HEAD"),
        ("git *", "git -C sub commit -c HEAD"),
        ("git *", "git log -cc"),
        ("git *", "git config user.name me"),
        ("git *", "git config --get core.pager"),
        ("git *", "git"),
        ("git *", "git bisect good"),
        ("find *", "find . -name delete"),
        ("tar *", "tar tf a"),
        ("tar *", "tar -tf a"),
        ("sed *", "sed -n 1,5p f"),
        ("sed -i *", "sed -i s/a/b/ f"),
        ("awk *", "awk '{ print $1 }' f"),
        ("make *", "make test"),
        ("unknown *", "unknown -o f"),
    ],
)
def test_everything_else_is_covered(rule: str, command: str):
    assert not exceeds_rule(parse_rule(f"bash({rule})", "allow"), part_of(command))
