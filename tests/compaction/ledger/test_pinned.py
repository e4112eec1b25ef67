import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.compaction.ledger.pinned import find_rules, fit_pins
from tests.support.rows import each_row


@each_row(
    "rule",
    [
        "Never push to main.",
        "always run the tests first",
        "You must not rename `Foo.bar`!",
        "don't touch src/e.g.py",
        "Do not use e.g. requests here.",
        "Only change files in docs/.",
        "I prefer short names",
        "avoid new dependencies",
        "make sure it works on 3.11",
        "use tabs instead of spaces",
        "Keep lines at most 100 characters long.",
        "we don’t use mocks",
    ],
)
def test_a_rule_is_found_word_for_word(rule: str):
    assert find_rules(f"Please fix the parser. {rule}\nThanks.") == (rule,)


def test_rules_in_a_list_are_found_one_by_one():
    text = "Rules:\n- never push\n* always test\n1. avoid globals\nThat is it"
    assert find_rules(text) == ("never push", "always test", "avoid globals")


@each_row(
    "text",
    [
        "Rules, for all of it:\n- no new dependencies\n- plain asserts in tests\n- never push",
        "## Rules\n\n1. no new dependencies\n2. plain asserts in tests\n3. never push\n\nFix it.",
    ],
)
def test_in_a_list_of_rules_every_item_is_one(text: str):
    assert find_rules(text) == ("no new dependencies", "plain asserts in tests", "never push")


@each_row(
    "text",
    [
        "Do this:\n- rename a\n- run b\n- never push",
        "The rules are fine.\n\nDo this:\n- rename a\n- never push",
        "Add to the rules of the linter:\n- rename a\n- run b",
    ],
)
def test_an_item_of_another_list_is_no_rule(text: str):
    assert set(find_rules(text)) <= {"never push"}


def test_a_sentence_over_two_lines_stays_as_it_was_written():
    rule = "Please never touch the generated files in build, and above all\nthe lock file."
    assert find_rules(f"Hello.\n{rule} Bye.") == (rule,)


@each_row(
    "text",
    [
        "Fix the parser.",
        "I don't understand this error",
        "Why don't we use a lexer?",
        "it also always seems to be this same hash, I think?",
        "```\nnever do this\n```",
        "~~~python\n# always\n~~~",
        "> you must reply within two days",
        '<file name="a.py">\nnever(x)\nmust hold\n</file>',
        "if (only) {",
        '{"always": true}',
        "2024-01-01 10:00:00 must restart",
        "always " + "x" * 600,
    ],
)
def test_other_sentences_code_quotes_and_logs_are_no_rules(text: str):
    assert find_rules(text) == ()


@pytest.mark.parametrize("code", ["```py\ncode\n```", "  ```\ncode\n```", "~~~\n\ncode\n\n  ~~~"])
def test_a_rule_after_a_block_of_code_is_found(code: str):
    assert find_rules(f"It fails here:\n\n{code}\n\nNever push.") == ("Never push.",)


def test_the_middle_of_a_long_paste_is_not_read():
    text = "Never push. See:\n" + "you must obey\n" * 5_000 + "\nAlways test."
    found = find_rules(text)
    assert found[0] == "Never push."
    assert found[-1] == "Always test."


def test_code_that_a_long_paste_ends_in_is_no_rule():
    code = "# Replace only the first one.\nsed -i s/a/b/ x\n" * 200
    opened = "Never push.\n```\nx\n" + "y\n" * 3_000  # the beginning ends amid code, too
    assert find_rules(f"{opened}```\n~~~sh\n{code}~~~\nAlways test.") == (
        "Never push.",
        "Always test.",
    )


def test_preferences_give_way_to_orders_and_old_to_new():
    pins = [f"prefer {n} over the other" for n in range(10)] + ["never push to main, ever"]
    kept = fit_pins(pins, 75)
    assert "never push to main, ever" in kept
    assert kept[0] == "prefer 0 over the other"
    assert sum(len(pin) for pin in kept) <= 75


@given(st.text(max_size=3_000))
def test_whatever_the_text_pins_are_parts_of_it(text: str):
    for sentence in find_rules(text):
        assert sentence in text
