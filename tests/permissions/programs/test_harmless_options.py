import pytest

from agent_tui.permissions.programs.harmless_options import ANYTHING, HarmlessOptions

_OPTIONS = HarmlessOptions("ab", "nx", "long other", most=2)


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "-a",
        "-ab",
        "--long",
        "--long=5",
        "-n5",
        "-abn5",
        "-n 5",
        "-an 5",
        "f g",
        "-n 5 f g",
        "-n5 f g",
        "- f",
        "-- f g",
        "-n -a f g",
        "-n -- f g",
        "--other f -a g",
    ],
)
def test_listed_options_and_as_many_words_as_allowed_are_harmless(arguments: str):
    assert _OPTIONS.admits(arguments.split())


@pytest.mark.parametrize(
    "arguments",
    [
        "-c",
        "-ac",
        "-can",
        "--longer",
        "--lon",
        "f g h",
        "-- f g h",
        "-n5 f g h",
        "-a f g h",
        "-n -n f g h",
        "--long f g h",
        "- f g",
        "-- f -a g",
        "-n -- f g h",
        "-n -c",
        "-- -c",
        "f -c",
    ],
)
def test_an_unlisted_option_or_one_word_more_is_not(arguments: str):
    assert not _OPTIONS.admits(arguments.split())


def test_nothing_is_listed_without_saying_so_and_any_option_where_all_are():
    assert HarmlessOptions().admits(["f"] * 50)
    assert not HarmlessOptions().admits(["-a"])
    assert ANYTHING.admits(["-a", "--whatever", "f", "--", "-x"])
