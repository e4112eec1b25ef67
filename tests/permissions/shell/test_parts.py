from hypothesis import given
from hypothesis import strategies as st

from agent_tui.permissions.shell.parts import split_command
from tests.support.rows import each_row


def _names(command: str) -> list[str]:
    return [part.name for part in split_command(command).commands]


@each_row(
    ("command", "names"),
    [
        ("ls", ["ls"]),
        ("a; b\nc & d", ["a", "b", "c", "d"]),
        ("a && b || c | d", ["a", "b", "c", "d"]),
        ("echo $(a) `b` <(c)", ["echo", "a", "b", "c"]),
        ('echo "x $(a "$(b)") y"', ["echo", "a", "b"]),
        ("cat <<EOF\n$(a)\nEOF", ["cat", "a"]),
        ("cat <<EOF\n  x $(a)\nEOF\nb", ["cat", "a", "b"]),
        ("cat <<'EOF'\n\t x\n  y\nEOF", ["cat"]),
        ("cat <<'EOF'\n$(a)\nEOF", ["cat"]),
        ("(a; { b; })", ["a", "b"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("while a; do b; done", ["a", "b"]),
        ("! a", ["a"]),
        ("time a", ["time", "a"]),
        ("env X=1 nice -n 5 timeout -k 1 5 a b", ["env", "nice", "timeout", "a"]),
        ("sudo -u me a", ["sudo", "a"]),
        ("xargs -0 -n 1 a b", ["xargs", "a"]),
        ("find . -exec a {} \\; -exec b {} +", ["find", "a", "b"]),
        ("bash -c 'a; b'", ["bash", "a", "b"]),
        ("eval 'a | b'", ["eval", "a", "b"]),
        ("sh -c 'bash -c \"a\"'", ["sh", "bash", "a"]),
        ("r''m 'x y'", ["rm"]),
        ("\\rm x", ["rm"]),
        ("ls # ; rm x", ["ls"]),
        ("echo a#b", ["echo"]),
    ],
)
def test_every_command_that_would_run_is_listed(command: str, names: list[str]):
    assert _names(command) == names


def test_words_are_what_the_program_would_get():
    (part,) = split_command("a 'b c' \"d e\" f\\ g h'i'\"j\" *.py ~/x").commands
    assert [word.value for word in part.words] == [
        "a",
        "b c",
        "d e",
        "f g",
        "hij",
        "*.py",
        "~/x",
    ]
    assert [word.is_pattern for word in part.words] == [False] * 5 + [True, False]
    assert part.words[-1].has_tilde


@each_row(
    ("word", "value"),
    [
        ('"a\\\nb"', "ab"),
        ('"a\\$b"', "a$b"),
        ('"a\\zb"', "a\\zb"),
        ("'a\\b'", "a\\b"),
        ("a\\ b", "a b"),
        ("a{}", "a{}"),
        ("@{0}", "@{0}"),
        ("@{u}..main@{1}", "@{u}..main@{1}"),
        ("@{a..c}", None),
        ("@{u'}',x}", None),
        ("{@{u},x}", None),
        ("''", ""),
        ("a\"b\"'c'", "abc"),
        ("<(a)", "/dev/fd/63"),
    ],
)
def test_quotes_and_backslashes_are_taken_off_as_the_shell_does(word: str, value: str):
    assert split_command(f"echo {word}").commands[0].words[1].value == value


def test_the_words_of_a_loop_and_of_an_assignment_are_listed():
    loop, run = split_command("for f in a .env; do cat $f; done").commands
    assert [word.value for word in loop.arguments] == ["a", ".env"]
    assert (loop.kind, run.words[1].value) == ("assignment", None)
    assert split_command("f=.env; cat $f").commands[0].arguments[0].value == ".env"


@each_row(
    "word",
    ["$x", '"$x"', "$(a)", "`a`", "{a,b}", "a{1..3}", "$'a\\\\n'", "$((1))", "~a", ">(a)"],
)
def test_words_only_the_run_will_tell_have_no_value(word: str):
    assert split_command(f"echo {word}").commands[0].words[1].value is None


@each_row(
    ("command", "targets"),
    [
        ("a > b", [("b", True)]),
        ("a >> b 2>&1 < c", [("b", True), ("c", False)]),
        ("a &> b", [("b", True)]),
        ("a >& b", [("b", True)]),
        ("a 2>&1 >&2 2>&-", []),
        ("a <&-", []),
        ("> b", [("b", True)]),
        ("{ a; } > b", [("b", True)]),
        ("bash -c 'a > b'", [("b", True)]),
        ("cat > b <<EOF\nx\nEOF", [("b", True)]),
        ("cat - > b <<EOF\n  x\nEOF", [("b", True)]),
    ],
)
def test_files_the_shell_opens_are_listed(command: str, targets: list[tuple[str, bool]]):
    parts = split_command(command)
    assert not parts.problem
    assert [(r.target.value, r.writes) for r in parts.redirections] == targets


@each_row(
    "command",
    ["X=1", "export X=1", "for F in a; do b; done", "f() { a; }", "((x=1))", "[[ a -eq b ]]"],
)
def test_what_sets_state_is_a_part_that_is_no_command(command: str):
    assert "construct" in [part.kind for part in split_command(command).commands]


def test_a_variable_no_program_knows_is_only_an_assignment():
    assert [part.kind for part in split_command("x=1; y=$(a)").commands] == [
        "assignment",
        "assignment",
        "command",
    ]


def test_words_behind_a_redirection_belong_to_the_command():
    (part,) = split_command("a b > /dev/null -c d 2>&1 e").commands
    assert [word.value for word in part.words] == ["a", "b", "-c", "d", "e"]
    assert split_command("a | b > c -d").problem
    for command in ("a <<< x b", "a <<E b\nx\nE", "c | a <<< x b"):
        last = split_command(command).commands[-1]
        assert [word.value for word in last.words] == ["a", "b"]


@each_row(
    "command",
    ["$x y", "eval $x", 'bash -c "$x"', "curl x | sh", "source $x", "env -S 'a b'", "echo ${x@P}"],
)
def test_what_cannot_be_told_from_the_text_is_opaque(command: str):
    assert "opaque" in [part.kind for part in split_command(command).commands]


@each_row(
    "command",
    [
        "echo 'open",
        "if",
        "a )",
        "a\0b",
        "a\rb",
        "a\x1bb",
        "a\u00a0b",
        "a\u202eb",
        "a\u200bb",
        "a\ud800b",
        "cat <<EOF\n`a`\nEOF",
        "(" * 300 + "a" + ")" * 300,
        "x" * 30_000,
    ],
    ids=lambda command: repr(command)[:20],
)
def test_what_cannot_be_judged_is_a_problem(command: str):
    parts = split_command(command)
    assert parts.problem
    assert parts.commands == ()


def test_a_wrapper_passes_its_assignments_on():
    inner = split_command("env A=1 b").commands[1]
    assert inner.assignments == ("A=1",)
    assert inner.wrapper == "env"


@given(st.text(max_size=80))
def test_splitting_never_raises(command: str):
    split_command(command)


@given(st.text(alphabet="ab $(){}[]`'\"\\;|&<>\n#=~*!-", max_size=40))
def test_splitting_shell_like_text_never_raises(command: str):
    split_command(command)


def test_loops_in_loops_are_not_gone_through_more_often_than_a_bound():
    depth, words = 5, " ".join("abcdefgh")
    command = f"rm {' '.join(f'$v{level}' for level in range(depth))}"
    for level in range(depth):
        command = f"for v{level} in {words}; do {command}; done"
    parts = split_command(command)
    assert not parts.problem
    assert len(parts.commands) < 8**depth // 4
    assert any(word.value is None for part in parts.commands for word in part.words)


def test_wrappers_around_wrappers_have_a_bound():
    assert not split_command("env " * 5 + "ls").problem
    assert split_command("env " * 20 + "ls").problem == "too many nested commands"


def test_a_dash_before_a_here_document_is_a_word_of_its_command():
    (part,) = split_command("python a.py - <<'EOF'\n  x\nEOF").commands
    assert [word.value for word in part.words] == ["python", "a.py", "-"]
    assert split_command("python a.py -- <<'EOF'\nx\nEOF").commands[0].words[-1].value == "--"
