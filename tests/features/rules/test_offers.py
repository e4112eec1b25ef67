"""Which corrections become an offer."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.rules.offers import SessionSource, find_offers
from agent_tui.features.rules.reading import read_corrections
from tests.features.rules.said import project, say, session, work


def texts(*sessions):
    return [offer.text for offer in find_offers(project(sessions))]


def test_what_was_corrected_in_two_sessions_is_offered_in_the_users_words():
    (offer,) = find_offers(
        project(
            [session("Please use uv instead of pip.", day=1), session("use uv, not pip", day=2)]
        )
    )
    assert offer.text == "use uv, not pip"
    assert [quote.sentence for quote in offer.quotes] == [
        "Please use uv instead of pip.",
        "use uv, not pip",
    ]
    assert [quote.source.name for quote in offer.quotes] == ["Session 0", "Session 1"]


def test_once_is_not_enough():
    assert texts(session("use uv, not pip")) == []


def test_in_one_session_other_messages_must_be_between():
    assert texts(session("use uv, not pip", "uv, not pip please")) == ["use uv, not pip"]
    insisting = (
        say("Write it.", "1"),
        work("pip"),
        say("use uv, not pip", "2"),
        work("pip"),
        say("uv, not pip please", "3"),
    )
    assert texts(iter(insisting)) == []


def test_a_copy_of_a_session_is_no_second_occasion():
    assert texts(session("use uv, not pip"), session("use uv, not pip")) == []


def test_a_text_that_is_sent_again_is_no_second_occasion():
    template = "The steps are in the plan already. Do not create the steps again."
    assert texts(session(template, day=1), session(template, day=2)) == []
    assert texts(
        session("Do not create the steps again.", day=1),
        session("Do not create the steps again.", day=2),
    ) == ["Do not create the steps again."]


def test_requests_and_reports_are_not_offered():
    for said in ("Commit and push it.", "It still does not work.", "Run the tests again."):
        assert texts(session(said, day=1), session(said, day=2)) == []


def test_without_any_form_of_a_rule_the_model_must_have_replaced_the_same_twice():
    def told(day: int, after: str, before: str = "pip install x"):
        yield say("Write it.", f"{day}a")
        yield work(before, "bash")
        yield say("Take uv for pip here.", f"{day}b")
        yield work(after, "bash")

    assert texts(told(1, "uv add x"), told(2, "uv add y")) == ["Take uv for pip here."]
    assert texts(told(1, "uv add x"), told(2, "pip install y")) == []
    assert texts(told(1, "uv add x"), told(2, "uv add x", before="come here")) == []


def test_the_newest_offer_comes_first():
    assert texts(
        session("use uv, not pip", day=1),
        session("Never push to main.", day=2),
        session("uv, not pip please", day=3),
        session("never push to main, open a pull request", day=4),
    ) == ["Never push to main.", "use uv, not pip"]


def test_the_order_in_which_sessions_are_read_does_not_matter():
    days = {1: "use uv, not pip", 2: "uv, not pip please", 3: "Please use uv instead of pip."}
    found = {
        tuple(
            (offer.text, tuple(quote.sentence for quote in offer.quotes))
            for offer in find_offers(project([session(days[day], day=day) for day in order]))
        )
        for order in permutations(days)
    }
    assert len(found) == 1


SAID = st.lists(
    st.sampled_from(
        ["use uv, not pip", "no pip, uv please", "never push to main", "go on", "no tests yet?"]
    ),
    max_size=4,
)


@given(st.lists(SAID, max_size=4))
def test_every_offer_quotes_at_least_two_things_the_user_said(days):
    found = find_offers(
        project([session(*said, day=day) for day, said in enumerate(days, start=1)])
    )
    everything = {one for said in days for one in said}
    quoted = [quote for offer in found for quote in offer.quotes]
    assert all(len(offer.quotes) > 1 for offer in found)
    assert all(offer.text in {quote.sentence for quote in offer.quotes} for offer in found)
    assert {quote.sentence for quote in quoted} <= everything
    assert len(quoted) == len(set(quoted)), "no quote stands for two rules"


def test_a_source_keeps_where_a_session_came_from():
    said = project([])
    source = SessionSource("x", "Imported", "claude")
    said.add(source, read_corrections(session("use uv, not pip")))
    assert {quote.source for quote in said.quotes} == {source}
