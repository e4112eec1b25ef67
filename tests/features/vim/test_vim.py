"""Keys in, text out. ``|`` is the cursor; ``<esc>`` and the like are keys without a character."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.features.vim.editor import Vim
from agent_tui.features.vim.motions import Buffer, on_a_letter
from tests.support.rows import each_row


def typed(vim: Vim, buffer: Buffer, keys: str) -> Buffer:
    """What comes of `keys`; in insert mode the field's own doing is played."""
    for key in re.findall(r"<[a-z+]+>|.", keys, re.DOTALL):
        names = {"<esc>": "escape", "<c+r>": "ctrl+r"}
        name = names[key] if key in names else key.strip("<>") or key
        made = vim.press(name, buffer)
        if made is None and vim.mode == "insert" and len(key) == 1:
            at = buffer.cursor
            made = buffer.replace_range(at, at, key, at + 1)
        buffer = made if made is not None else buffer
    return buffer


def parsed(marked: str) -> Buffer:
    before, _, after = marked.partition("|")
    return Buffer(before + after, len(before))


def after(marked: str, keys: str) -> str:
    vim, buffer = Vim(), parsed(marked)
    vim.begin(buffer, "normal")
    made = typed(vim, buffer, keys)
    return made.text[: made.cursor] + "|" + made.text[made.cursor :]


MOTIONS = [
    ("one |two", "h", "one| two"),
    ("|one", "3l", "on|e"),
    ("o|ne\ntwo", "j", "one\nt|wo"),
    ("one\ntwo t|hree", "k", "on|e\ntwo three"),
    ("one two t|hree\na\none two three", "2j", "one two three\na\none two t|hree"),
    ("o|ne\nx\nlonger", "$jj", "one\nx\nlonge|r"),
    ("|one, two", "w", "one|, two"),
    ("|one, two", "W", "one, |two"),
    ("|one\n\n two", "w", "one\n|\n two"),
    ("|one\n\n two", "ww", "one\n\n |two"),
    ("one two|", "b", "one |two"),
    ("a.b c.|d", "B", "a.b |c.d"),
    ("|one two", "e", "on|e two"),
    ("|a.b c", "E", "a.|b c"),
    ("  one| two", "0", "|  one two"),
    ("  one| two", "^", "  |one two"),
    ("|one two", "$", "one tw|o"),
    ("a\n b\n|c", "gg", "|a\n b\nc"),
    ("|a\n b\nc", "G", "a\n b\n|c"),
    ("|a\n b\nc", "2G", "a\n |b\nc"),
    ("|a, b, c", "f,", "a|, b, c"),
    ("|a, b, c", "2f,", "a, b|, c"),
    ("|a, b, c", "f,;", "a, b|, c"),
    ("|a, b, c", "f,;,", "a|, b, c"),
    ("|a, b, c", "t,", "|a, b, c"),
    ("|a, b, c", "t,;", "a, |b, c"),
    ("a, b, |c", "F,", "a, b|, c"),
    ("a, b, |c", "T,", "a, b,| c"),
    ("|abc", "fx", "|abc"),
    ("|abc", "fj", "|abc"),
    ("a|bc", "<left>", "|abc"),
    ("a|bc", "<end>", "ab|c"),
]
CHANGES = [
    ("|one two", "dw", "|two"),
    ("one |two\nnext", "dw", "one| \nnext"),
    ("|one two three four", "2d2w", "|"),
    ("|one two three", "d2w", "|three"),
    ("one t|wo", "db", "one |wo"),
    ("one\n|two", "db", "|two"),
    ("|one two", "de", "| two"),
    ("one |two three", "d$", "one| "),
    ("one |two three", "D", "one| "),
    ("one |two", "d0", "|two"),
    ("a|, b, c", "df,", "a| c"),
    ("|a, b", "dt,", "|, b"),
    ("a, b|c", "dF,", "a|c"),
    ("one\nt|wo\nthree", "dd", "one\n|three"),
    ("one\ntwo\nth|ree", "dd", "one\n|two"),
    ("o|ne", "dd", "|"),
    ("|a\nb\nc\nd", "3dd", "|d"),
    ("|a\nb\nc", "dj", "|c"),
    ("a\nb\n|c", "dk", "|a"),
    ("a\nb\n|c", "dgg", "|"),
    ("|one two", "cwnew<esc>", "ne|w two"),
    ("|o two", "cwnew<esc>", "ne|w two"),
    ("|one two three", "c2wnew<esc>", "ne|w three"),
    ("  o|ne\ntwo", "ccnew<esc>", "ne|w\ntwo"),
    ("one| two", "Cnew<esc>", "onene|w"),
    ("|one", "sx<esc>", "|xne"),
    ("one t|wo three", "diw", "one | three"),
    ("one t|wo three", "daw", "one |three"),
    ("one t|wo", "daw", "on|e"),
    ("a b.c|.d e", "diW", "a | e"),
    ("o|ne two three", "d2aw", "|three"),
    ("a\nb|\n\nc", "d2ip", "|c"),
    ('say "he|llo" now', 'di"', 'say "|" now'),
    ('|say "hello" now', 'ci"x<esc>', 'say "|x" now'),
    ('say "he|llo" now', 'da"', "say |now"),
    ("f(a, g(b|), c)", "di(", "f(a, g(|), c)"),
    ("f(a, g(b|), c)", "2di(", "f(|)"),
    ("f(a, g(b|), c)", "dab", "f(a, g|, c)"),
    ("|f(a)", "di(", "f(|)"),
    ("{x| [y]}", "diB", "{|}"),
    ("no brackets |here", "di(", "no brackets |here"),
    ("a\nb|\n\nc", "dip", "|\nc"),
    ("a\nb|\n\nc", "dap", "|c"),
    ("a|bc", "x", "a|c"),
    ("a|bcd", "2x", "a|d"),
    ("ab|c", "X", "a|c"),
    ("a|bc", "rx", "a|xc"),
    ("a|bcd", "2rx", "ax|xd"),
    ("|abc", "5rx", "|abc"),
    ("|aBc", "3~", "Ab|C"),
    ("o|ne\n  two", "J", "one| two"),
    ("a|\nb\nc", "3J", "a b| c"),
    ("o|ne", "iX<esc>", "o|Xne"),
    ("o|ne", "aX<esc>", "on|Xe"),
    ("  o|ne", "IX<esc>", "  |Xone"),
    ("o|ne two", "AX<esc>", "one two|X"),
    ("o|ne\ntwo", "oX<esc>", "one\n|X\ntwo"),
    ("one\nt|wo", "OX<esc>", "one\n|X\ntwo"),
]
REGISTERS = [
    ("|one two", "dwp", "tone| wo"),
    ("|one two", "ywP", "one| one two"),
    ("|one", "yl3p", "ooo|one"),
    ("one\nt|wo", "yyp", "one\ntwo\n|two"),
    ("one\nt|wo", "ddP", "|two\none"),
    ("|a\nb", "yy2p", "a\n|a\na\nb"),
    ("|one two", "yiwwviwp", "one |one"),
    ("o|ne\ntwo", "Yjp", "one\ntwo\n|one"),
    ("on|e", "p", "on|e"),
]
REPEATS = [
    ("|one two three", "dw.", "|three"),
    ("|a b c d", "dw2.", "|d"),
    ("|one two", "cwx<esc>w.", "x |x"),
    ("|a\nb", "Ax<esc>j.", "ax\nb|x"),
    ("|abc", "x.", "|c"),
    ("|abc", ".", "|abc"),
    ("|one two", "dwu", "|one two"),
    ("|one two", "dwu<c+r>", "|two"),
    ("|abcd", "xxxuu", "|bcd"),
    ("|one", "ahello<esc>u", "|one"),
    ("|one", "u<c+r>", "|one"),
    ("|one two", "cwx<esc>w.u", "x |two"),
]
SELECTIONS = [
    ("|one two", "ved", "| two"),
    ("one |two", "vbd", "|wo"),
    ("a\n|b\nc", "Vd", "a\n|c"),
    ("|a\nb\nc", "Vjcx<esc>", "|x\nc"),
    ("|one two", "viwy$p", "one twoon|e"),
    ("|one two", "vlrx", "|xxe two"),
    ("|one two", "ve~", "|ONE two"),
    ("|a\nb\nc", "VjJ", "a| b\nc"),
    ("one |two three", "vwohd", "one|hree"),
    ("|one", "v<esc>x", "|ne"),
    ("f(|a, b)", "vi(d", "f(|)"),
    ("|abc", "vv", "|abc"),
]
NOT_WHOLE = [
    ("|one", "2<esc>x", "|ne"),
    ("|one", "d<esc>x", "|ne"),
    ("|one", "dqx", "|ne"),
    ("|one", "Qzx", "|ne"),
    ("|", "x", "|"),
    ("|", "dd", "|"),
    ("|", "vd", "|"),
    ("|", "cwx<esc>", "|x"),
]


@each_row(
    ("text", "keys", "result"),
    [*MOTIONS, *CHANGES, *REGISTERS, *REPEATS, *SELECTIONS, *NOT_WHOLE],
)
def test_keys_do_what_they_do_in_vi(text: str, keys: str, result: str):
    assert after(text, keys) == result


@pytest.mark.parametrize(
    ("text", "key", "wish"),
    [
        ("on|e\ntwo", "k", "older"),
        ("one\ntw|o", "j", "newer"),
        ("|", "k", "older"),
        ("on|e\ntwo", "j", ""),
    ],
)
def test_the_edges_of_the_text_lead_to_the_history(text: str, key: str, wish: str):
    vim = Vim()
    vim.begin(parsed(text), "normal")
    vim.press(key, parsed(text))
    assert vim.wish == wish


def test_escape_in_normal_mode_is_left_to_others():
    vim, buffer = Vim(), Buffer("one", 3)
    assert vim.press("x", buffer) is None
    assert vim.press("escape", buffer) == Buffer("one", 2)
    assert vim.press("escape", buffer) is None
    assert vim.press("enter", buffer) is None
    assert vim.press("Q", buffer) == buffer


def test_what_is_typed_of_a_command_is_shown():
    vim, buffer = Vim(), Buffer("one")
    vim.begin(buffer, "normal")
    for key in "2d":
        vim.press(key, buffer)
    assert vim.pending == "2d"


def test_what_is_written_in_another_draft_is_not_what_a_change_repeats():
    vim, buffer = Vim(), parsed("|one two")
    vim.begin(buffer, "normal")
    typed(vim, buffer, "cwx<esc>")
    vim.begin(Buffer(""), "insert")
    buffer = typed(vim, Buffer(""), "new<esc>")
    assert typed(vim, buffer, "0.").text == "x"


def test_undoing_ends_at_the_text_that_was_begun_with():
    vim, buffer = Vim(), Buffer("one")
    vim.begin(buffer, "normal")
    buffer = typed(vim, buffer, "xx")
    vim.begin(buffer)
    assert typed(vim, buffer, "u") == buffer


TEXTS = st.text(alphabet='ab_ .,\n"(){}é\u0301宽', max_size=40)
KEYS = st.lists(
    st.one_of(
        st.sampled_from([*'hjklwbeWBE0^$G;,dcyxrJoOaAiIupPvV.DCYsSX~fFtT123("', "escape"]),
        st.sampled_from(["gg", "iw", "a(", 'i"', "ip", "dd", "yy", "2d3w"]),
    ),
    max_size=25,
)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.integers(0, 40), KEYS)
def test_no_keys_break_it_and_everything_can_be_undone(text: str, at: int, groups: list[str]):
    vim, buffer = Vim(), Buffer(text, on_a_letter(text, min(at, len(text))))
    vim.begin(buffer, "normal")
    keys = [key for group in groups for key in ([group] if group == "escape" else group)]
    for key in [*keys, "escape", "escape"]:
        made = vim.press(key, buffer)
        if made is None and vim.mode == "insert" and len(key) == 1:
            made = buffer.replace_range(buffer.cursor, buffer.cursor, key, buffer.cursor + 1)
        buffer = made if made is not None else buffer
        assert 0 <= buffer.cursor <= len(buffer.text)
        if vim.mode.startswith("visual"):
            extent = vim.selection(buffer)
            assert 0 <= extent.start <= extent.end <= len(buffer.text)
    assert vim.mode == "normal"
    assert buffer.cursor == 0 or buffer.text[buffer.cursor :] or buffer.text[-1] == "\n"
    for _ in range(len(keys) + 1):
        buffer = vim.press("u", buffer) or buffer
    assert buffer.text == text
    for _ in range(len(keys) + 1):
        buffer = vim.press("ctrl+r", buffer) or buffer
    for _ in range(len(keys) + 1):
        buffer = vim.press("u", buffer) or buffer
    assert buffer.text == text
