from agent_tui.features.plain.voice import FIRST_AFTER_S, Progress


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_long_work_is_told_once_and_again_when_it_has_changed():
    clock = Clock()
    progress = Progress(clock)
    progress.doing("Waiting.")
    assert progress.due() == ""
    clock.now_s = FIRST_AFTER_S
    assert progress.due() == "Waiting."
    clock.now_s *= 10
    assert progress.due() == ""
    progress.doing("Writing: 12 characters")
    assert progress.due() == "Writing: 12 characters"


def test_nothing_is_told_soon_after_another_line_or_when_nothing_goes_on():
    clock = Clock()
    progress = Progress(clock)
    progress.doing("Waiting.")
    clock.now_s = FIRST_AFTER_S * 2
    progress.note_line()
    assert progress.due() == ""
    clock.now_s *= 2
    progress.doing("")
    assert progress.due() == ""


def test_the_pauses_grow_until_something_else_is_said():
    clock = Clock()
    progress = Progress(clock)
    said_at: list[float] = []
    while clock.now_s < FIRST_AFTER_S * 31:
        clock.now_s += 1
        progress.doing(f"Writing: {clock.now_s}")
        if progress.due():
            said_at.append(clock.now_s / FIRST_AFTER_S)
    assert said_at == [1, 3, 7, 15, 23, 31]
    progress.note_line()
    progress.doing("Reading")
    clock.now_s += FIRST_AFTER_S
    assert progress.due() == "Reading"
