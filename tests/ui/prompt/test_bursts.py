from agent_tui.ui.prompt.lines_area import PasteDetector


async def pasted(keys: list[tuple[str, float]], waiting: list[bool]) -> list[str]:
    """The keys that count as text of a paste; `waiting` answers what is asked, in order."""
    answers = iter(waiting)

    async def has_more() -> bool:
        return next(answers)

    burst = PasteDetector(has_more)
    return [key for key, at in keys if await burst.is_pasted(key, at)]


async def test_typing_is_never_a_paste_however_much_waits():
    keys = [("l", 0.0), ("s", 0.05), ("enter", 0.10), ("tab", 0.15)]
    assert await pasted(keys, []) == []


async def test_every_enter_of_some_lines_that_came_at_once_is_text_the_last_one_too():
    keys = [("a", 0.0), ("enter", 0.001), ("b", 0.002), ("tab", 0.003), ("enter", 0.004)]
    assert await pasted(keys, [True]) == ["enter", "tab", "enter"]


async def test_one_line_and_enter_at_once_sends():
    assert await pasted([("a", 0.0), ("b", 0.001), ("enter", 0.002)], [False]) == []


async def test_an_enter_after_the_paste_sends():
    keys = [("a", 0.0), ("enter", 0.001), ("b", 0.002), ("enter", 0.5)]
    assert await pasted(keys, [True]) == ["enter"]


async def test_an_enter_alone_sends_though_keys_wait_behind_it():
    assert await pasted([("enter", 0.0), ("a", 0.001)], []) == []
