"""What commands within commands would run."""

from agent_tui.permissions.shell.parts import split_command
from agent_tui.permissions.shell.words import CommandPart
from tests.support.rows import each_row


def _shown(part: CommandPart) -> str:
    return " ".join("?" if word.value is None else word.value for word in part.words)


@each_row(
    ("command", "parts"),
    [
        ("timeout 5 make x", ["timeout 5 make x", "make x"]),
        ("timeout -k 1 -s TERM 5 make", ["timeout -k 1 -s TERM 5 make", "make"]),
        ("timeout -k1 5 make", ["timeout -k1 5 make", "make"]),
        ("timeout --signal TERM 5 make", ["timeout --signal TERM 5 make", "make"]),
        ("timeout --signal=TERM 5 make", ["timeout --signal=TERM 5 make", "make"]),
        ("timeout 5", ["timeout 5"]),
        ("nice -n 5 -- make", ["nice -n 5 -- make", "make"]),
        ("env -i -u X A=1 make", ["env -i -u X A=1 make", "make"]),
        ("env --unset X make", ["env --unset X make", "make"]),
        ("sudo -u me A=1 make", ["sudo -u me A=1 make", "make"]),
        ("nice A=1 make", ["nice A=1 make", "A=1 make"]),
        ("command -v make", ["command -v make"]),
        ("command make", ["command make", "make"]),
        ("exec -a x make", ["exec -a x make", "make"]),
        ("/usr/bin/NICE make", ["/usr/bin/NICE make", "make"]),
        ("xargs -n 2 wc", ["xargs -n 2 wc", "wc ?"]),
        ("xargs -0n 2 wc -l", ["xargs -0n 2 wc -l", "wc -l ?"]),
        ("xargs -I X cp X y", ["xargs -I X cp X y", "cp ? ?"]),
        ("xargs -IX cp X y", ["xargs -IX cp X y", "cp ? ?"]),
        ("xargs -0I {} cp a{} y", ["xargs -0I {} cp a{} y", "cp ? y"]),
        ("xargs -i cp {} y", ["xargs -i cp {} y", "cp ? y"]),
        ("xargs --replace=X cp X y", ["xargs --replace=X cp X y", "cp ? ?"]),
        ("xargs --replace cp {} y", ["xargs --replace cp {} y", "cp ? y"]),
        ("find . -exec a b {} ';' -print", ["find . -exec a b {} ; -print", "a b ?"]),
        ("find a -name '*.c' -exec wc {} +", ["find a -name *.c -exec wc {} +", "wc ?"]),
        ("find -iname x -exec wc {} +", ["find -iname x -exec wc {} +", "wc ?"]),
        ("find a b -name x -exec wc {} +", ["find a b -name x -exec wc {} +", "wc ?"]),
        ("find a -name x -o -exec wc {} +", ["find a -name x -o -exec wc {} +", "wc ?"]),
        ("find a -type f -exec wc {} +", ["find a -type f -exec wc {} +", "wc ?"]),
        ("find a -name x -exec wc a{} +", ["find a -name x -exec wc a{} +", "wc ?"]),
        ("find a -exec", ["find a -exec"]),
        ("fd -e c -x wc -l", ["fd -e c -x wc -l", "wc -l ?"]),
        ("fd --exec-batch wc", ["fd --exec-batch wc", "wc ?"]),
        ("find a -name '*.c' | xargs wc", ["find a -name *.c", "xargs wc", "wc ?"]),
        ("git ls-files '*.c' | xargs wc", ["git ls-files *.c", "xargs wc", "wc ?"]),
        ("git ls-files a '*.c' | xargs wc", ["git ls-files a *.c", "xargs wc", "wc ?"]),
        ("git ls-files -o | xargs wc", ["git ls-files -o", "xargs wc", "wc ?"]),
        ("git log '*.c' | xargs wc", ["git log *.c", "xargs wc", "wc ?"]),
        ("ls | xargs nice wc", ["ls", "xargs nice wc", "nice wc ?", "wc ?"]),
        ("bash -c 'a; b'", ["bash -c a; b", "a", "b"]),
        ("bash -xc a b", ["bash -xc a b", "a"]),
        ("bash --version", ["bash --version"]),
        ("bash x.sh", ["bash x.sh"]),
        ("eval a 'b; c'", ["eval a b; c", "a b", "c"]),
        ("source x", ["source x"]),
        ("zsh --version", ["zsh --version"]),
    ],
)
def test_what_a_wrapper_would_run_is_listed_behind_it(command: str, parts: list[str]):
    found = split_command(command).commands
    assert [_shown(part) for part in found] == parts
    assert "opaque" not in [part.kind for part in found]


@each_row(
    "command",
    [
        "$x",
        "*",
        "bash",
        "bash -",
        "bash $x",
        "bash -c $x",
        "bash -c *",
        "bash -c",
        "bash <(a)",
        "bash -x y",
        "busybox x",
        "bash --version x",
        "zsh x",
        "fish -c x",
        "eval $x",
        "source $x",
        ". <(a)",
        "alias x=y",
        "trap x EXIT",
        "env -S 'a b'",
        "env --split-string=x",
        "fd -xrm",
        "fd --exec=rm",
        "echo ${x:=y}",
        "echo ${x@P}",
    ],
)
def test_what_would_run_unseen_is_opaque_and_says_why(command: str):
    opaque = [part for part in split_command(command).commands if part.kind == "opaque"]
    assert opaque
    assert all(part.note for part in opaque)


@each_row(
    ("command", "is_plain"),
    [
        ("timeout 5 a", True),
        ("timeout -k 1 5 a", True),
        ("timeout --foreground 5 a", False),
        ("nice -n 5 a", True),
        ("env a", True),
        ("env -i a", True),
        ("env -u X a", False),
        ("A=1 nice a", False),
        ("sudo a", False),
        ("xargs a", False),
        ("bash -c a", True),
        ("bash -xc a", False),
        ("bash -c a b", False),
        ("A=1 bash -c a", False),
        ("timeout 5", False),
    ],
)
def test_a_wrapper_that_adds_no_power_is_plain(command: str, is_plain: bool):
    assert split_command(command).commands[0].is_wrapped_plainly is is_plain


def test_what_is_wrapped_knows_its_wrapper_and_what_was_set_before_it():
    outer, inner = split_command("A=1 env B=2 C+=3 make").commands
    assert (outer.note, outer.wrapper) == ("wrapper", "")
    assert (inner.wrapper, inner.assignments) == ("env", ("A=1", "B=2", "C+=3"))
    assert inner.source == "make"
    for command in ("bash -c a", "eval a"):
        assert split_command(command).commands[0].note == "wrapper"
    assert split_command("nice a b").commands[1].source == "a b"
    (_, run) = split_command("find . -exec a b ';'").commands
    assert (run.wrapper, run.source, run.is_wrapped_plainly) == ("find", "a b", False)


@each_row(
    ("command", "programs"),
    [
        ("git push --receive-pack=./x . main", ["./x"]),
        ("git push --receive-pack './x; y' . main", ["./x", "y"]),
        ("git push --exe=./x . main", ["./x"]),
        ("git push --rec=./x . main", ["./x"]),
        ("git push -o a --receive-pack ./x .", ["./x"]),
        ("git fetch -u --upl=./x .", ["./x"]),
        ("git fetch --upload-pack ./x .", ["./x"]),
        ("git clone -u ./x a b", ["./x"]),
        ("git clone -c core.sshCommand=./x a b", ["./x"]),
        ("git clone --config=core.sshCommand=./x a b", ["./x"]),
        ("git -c alias.s='!./x' s", ["./x"]),
        ("git -C a -c core.pager=./x log", ["./x"]),
        ("git rebase -ix ./x main", ["./x"]),
        ("git rebase --exec 'make test' main", ["make test"]),
        ("git grep -O./x a", ["./x"]),
        ("git difftool -y --extcmd=./x", ["./x"]),
        ("git bisect run ./x a", ["./x a"]),
        ("git clone --template=./t . y", ["./t/hooks/post-checkout"]),
        ("git clone --t 'ls;a' . y", ["ls;a/hooks/post-checkout"]),
        ("git -C . init --tem ./t y", ["./t/hooks/post-checkout"]),
        ("git init --template= y", []),
        ("git clone --conf=core.sshCommand=./x a b", ["./x"]),
        ("git clone -ccore.sshCommand=./x a b", ["./x"]),
        ("git clone -lqccore.sshCommand=./x a b", ["./x"]),
        ("git clone --u ./x a b", ["./x"]),
        ("git clone -lu./x a b", ["./x"]),
        ("git clone -c core.hooksPath=ls a b", ["ls/git"]),
        ("git -c init.templateDir='ls;a' init", ["ls;a/git"]),
        ("git -c core.hooksPath= commit", []),
        ("git --exec-path=./x pull", ["./x/git"]),
        ("git pull -s x/../evil . main", ["git-merge-x/../evil"]),
        ("git pull -qsx/../evil . main", ["git-merge-x/../evil"]),
        ("git merge --strat=x main", ["git-merge-x"]),
        ("git rebase -is 'a;b' main", ["git-merge-a;b"]),
        ("git cherry-pick --strategy x main", ["git-merge-x"]),
        ("git send-email --to-cmd=./x a", ["./x"]),
        ("git send-email -cc-cmd ./x a", ["./x"]),
        ("git send-email --Header=./x a", ["./x"]),
        ("git send-email --smtp-server=./x a", ["./x"]),
        ("git send-email --smtp-server=smtp.example.com --to=a@b --cc a@b x", []),
        ("git difftool -yt ../../x", ["../../x"]),
        ("git difftool --tool=vimdiff", []),
        ("git merge -s ours main", []),
        ("git merge -Xours --stat main", []),
        ("git pull --rebase --strategy=ort -Xtheirs origin main", []),
        ("git clone -bbugfix --depth=1 a b", []),
        ("git switch -c core.pager=./x", []),
        ("git commit --template=./x -c main", []),
        ("git log --cc --stat -s", []),
        ("git fetch -up origin", []),
        ("git grep -O a", []),
        ("git submodule foreach --recursive './x || y'", ["./x", "y"]),
        ("git -c user.name='Ada (A' -c color.ui=always -c a.b=off commit -m x", []),
        ("git push origin main --no-verify", []),
        ("git push -u origin main", []),
        ("git push -- --exec=./x", []),
        ("git log -Oorder --oneline --exclude=x", []),
        ("git rebase -i main", []),
    ],
)
def test_programs_that_options_of_git_name_are_commands(command: str, programs: list[str]):
    outer, *inner = split_command(command).commands
    assert (outer.name, [_shown(part) for part in inner]) == ("git", programs)
    assert all(part.wrapper == "git" for part in inner)


@each_row(
    ("command", "is_opaque"),
    [
        ("git push --receive-pack=$X", True),
        ("git rebase --exec $X", True),
        ("git -c $X log", True),
        ("git -C . merge $X", True),
        ("git clone --te$X a b", True),
        ("git clone -c protocol.ext.allow=always ext::./x y", True),
        ("git push origin $X", True),
        ('git fetch "$(cat x)"', True),
        ("git push origin HEAD:$X", False),
        ('git push origin "$(git branch --show-current)"', False),
        ("git push -u origin $(git rev-parse --abbrev-ref HEAD)", False),
        ("git log $X", False),
        ("git push origin -- $X", False),
    ],
)
def test_a_program_for_git_that_is_known_at_run_time_is_opaque(command: str, is_opaque: bool):
    kinds = [part.kind for part in split_command(command).commands]
    assert ("opaque" in kinds) == is_opaque
