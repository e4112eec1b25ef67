from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.compaction.ledger.names import (
    MAX_NAMES,
    NameTracker,
    index_lines,
    names_in,
    names_of,
)
from agent_tui.messages import (
    AssistantMessage,
    JsonObject,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import NamedIn


def call(name: str, **arguments: str) -> ToolCall:
    given: JsonObject = dict(arguments)
    return ToolCall(id="1", name=name, arguments=given)


def asking(made: ToolCall) -> AssistantMessage:
    return AssistantMessage(content=(made,), timestamp=1)


def answer(text: str) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id="1", tool_name="t", content=(TextContent(text=text),), timestamp=1
    )


def person(text: str) -> UserMessage:
    return UserMessage(content=text, timestamp=1)


def flat(tracker: NameTracker) -> dict[str, float]:
    return {name: weight for group in tracker.names for name, weight in group.names.items()}


def test_paths_and_identifiers_are_names():
    found = names_in("see src/app/main.py, ./run.sh and ~/x/notes.md: call parse_args(Config)")
    assert {"src/app/main.py", "./run.sh", "~/x/notes.md", "parse_args", "Config"} <= found


def test_common_words_hashes_and_keys_are_not():
    text = "return this because 3f2a9c81d47be0 and sk_live_51H8x9K2mQz7Rt4Wb"
    assert names_in(text) == set()


def test_names_in_calls_count_too():
    assert "renderApp" in names_of([asking(call("edit", path="a.ts", newText="renderApp()"))])


def test_what_the_agent_wrote_weighs_more_than_what_it_read():
    tracker = NameTracker()
    tracker.add(asking(call("bash", command="pytest -k wanted_name")))
    tracker.add(answer("other_name"))
    assert flat(tracker)["wanted_name"] > flat(tracker)["other_name"]


def test_newer_names_weigh_more():
    tracker = NameTracker()
    for text in ("older_name", *["filler"] * 50, "newer_name"):
        tracker.add(person(text))
    assert flat(tracker)["newer_name"] > flat(tracker)["older_name"]


def test_a_name_belongs_to_the_file_that_defines_it():
    tracker = NameTracker()
    for path, text in (("a.py", "from b import Parser"), ("src/b.py", "class Parser:\n  pass")):
        made = call("read", path=path)
        tracker.add(asking(made))
        tracker.add(answer(text), made)
    assert next(group.path for group in tracker.names if "Parser" in group.names) == "src/b.py"


def test_what_was_carried_stays_and_is_not_counted_twice():
    tracker = NameTracker()
    tracker.add(person("first_name"))
    carried = tracker.names
    again = NameTracker(carried)
    again.add(person("first_name"))
    assert flat(again) == flat(tracker)
    later = NameTracker(carried)
    later.add(person("second_name"))
    assert set(flat(later)) == {"first_name", "second_name"}


def test_no_more_names_are_kept_than_the_bound():
    tracker = NameTracker()
    tracker.add(person(" ".join(f"name_number_{n:05d}" for n in range(MAX_NAMES + 500))))
    assert len(flat(tracker)) == MAX_NAMES


def test_a_line_for_each_file_then_the_rest():
    groups = (
        NamedIn(path="", names={"helper": 1.0, "src/a.py": 4.0}),
        NamedIn(path="src/a.py", names={"parse": 3.0, "Config": 2.0}),
        NamedIn(path="gone.py", names={"orphan": 1.0}),
    )
    assert index_lines(groups, max_chars=200, known=set()) == [
        "src/a.py: parse Config",
        "elsewhere: helper orphan",
    ]


def test_known_identifiers_take_no_room_and_light_names_go_first():
    groups = (NamedIn(names={"heavy": 9.0, "known": 8.0, "light": 0.1}),)
    assert index_lines(groups, max_chars=20, known={"known"}) == ["elsewhere: heavy"]
    assert index_lines((), max_chars=100, known=set()) == []


_names = st.dictionaries(
    st.from_regex(r"[a-z]{4,12}(/[a-z]{3,9}\.py)?", fullmatch=True),
    st.floats(0.01, 100),
    max_size=30,
)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.builds(NamedIn, path=st.just("") | st.just("some/file.py"), names=_names)))
def test_an_index_never_exceeds_its_room(groups: list[NamedIn]):
    for room in (0, 30, 200):
        assert len("\n".join(index_lines(groups, max_chars=room, known=set()))) <= room


def test_a_huge_run_without_a_break_is_looked_through_once() -> None:
    assert names_in("a+" * 80_000) == set()
    assert names_in("+".join(["src/parser.py"] * 9)) != set()
