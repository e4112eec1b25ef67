from agent_tui.ui.prompt.ranking import fuzzy_match


def score(typed: str, name: str) -> float:
    match = fuzzy_match(typed, name)
    assert match is not None
    return match.score


def test_the_letters_that_fit_are_told():
    match = fuzzy_match("cmp", "Compact")
    assert match is not None
    assert match.offsets == (0, 2, 3)
    assert fuzzy_match("pmc", "compact") is None


def test_whole_names_then_beginnings_then_words_then_parts_then_scattered_letters():
    names = ["port", "portable", "my port", "export", "p-o-r-t"]
    scores = [score("port", name) for name in names]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)


def test_letters_whose_small_form_is_longer_keep_their_places():
    match = fuzzy_match("b", "İb")
    assert match is not None
    assert match.offsets == (1,)


def test_a_name_made_to_be_slow_is_not():
    assert fuzzy_match("a" * 40 + "b", "a" * 20_000) is None
