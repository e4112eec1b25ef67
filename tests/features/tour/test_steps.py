from agent_tui.events import (
    AgentEvent,
    ModelChanged,
    SessionChanged,
    TurnFinished,
    TurnStarted,
)
from agent_tui.features.tour.replies import DEMO_MODEL
from agent_tui.features.tour.steps import TOUR
from tests.support.rows import each_row

COMPACTED = SessionChanged("b", None, "", "compacted")
RESUMED = SessionChanged("a", None, "", "resumed")
SAME_MODEL = ModelChanged(DEMO_MODEL.name, 32_000)
OTHER_MODEL = ModelChanged("openai/gpt-5", 400_000)


def test_each_step_ends_with_what_it_asks_for():
    step = 0
    for event in (TurnStarted(), TurnFinished("done"), COMPACTED, RESUMED, OTHER_MODEL):
        assert TOUR.steps[step].title
        step = TOUR.step_after(step, event)
    assert step == len(TOUR.steps)


@each_row(
    ("step", "event"),
    [
        (0, RESUMED),
        (1, TurnStarted()),
        (2, TurnFinished("done")),
        (2, RESUMED),
        (3, COMPACTED),
        (4, SAME_MODEL),
        (len(TOUR.steps), TurnStarted()),
    ],
)
def test_nothing_else_goes_on(step: int, event: AgentEvent):
    assert TOUR.step_after(step, event) == step


def test_who_compacts_before_being_told_to_need_not_do_it_again():
    assert TOUR.step_after(0, COMPACTED) == 3
