"""A session of long work: rules, files read and changed, a test that fails, an open plan."""

from typing import Any

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.messages import FileTouches, JsonObject, Todo, ToolCall
from tests.support.talk import Talk

TASK = (
    "Make the version flag of the program work. Never touch anything below vendor/. "
    "All public functions need a docstring, and please keep every line under 100 characters, "
    "also in the tests."
)
PLAN = (
    Todo(text="Read the code", status="completed"),
    Todo(text="Fix the flag", status="completed"),
    Todo(text="Run the tests", status="in_progress"),
    Todo(text="Write it up"),
)
FAILED = "tests/test_app.py:12: AssertionError: expected 3 tokens, got 4\n1 failed, 61 passed\n"

SUMMARY = """\
## Goal
Make the version flag of the program work, with a table in the help.

## Progress
### Done
- [x] Read src/app.py and the generated schemas, src/generated/schema_0.py to schema_30.py
- [x] Changed src/app.py, src/parser.py and tests/test_app.py: the flag is looked at first

### In Progress
- [ ] Run the tests: pytest -q failed in tests/test_app.py, expected 3 tokens, got 4

## Key Decisions
- The help shows the options as a table

## Next Steps
1. Mend tests/test_app.py
2. Write the change up
"""
"""What a model writes that sums it up."""


def schema(number: int, lines: int) -> str:
    """A generated file, no two of them alike."""
    rows = (
        f"    column_{number}_{row} = Column('field {row} of table {number}', width={row * 7})"
        for row in range(lines)
    )
    return "\n".join((f"class Table{number}:", *rows))


def long_work(runtime: AgentRuntime, *, lines: int = 40, tokens: int = 0) -> AgentRuntime:
    """`runtime` with the work in its session.

    Args:
        runtime: Its conversation is empty so far.
        lines: Of each of the many files that were read.
        tokens: What the provider counted with the last reply; 0 for nothing.
    """
    conversation = runtime.conversation
    model = conversation.model.name
    talk = Talk(cwd=str(conversation.cwd))

    def tool(name: str, arguments: JsonObject, text: str, **details: Any) -> None:
        call = ToolCall(id=f"call-{len(talk.entries)}", name=name, arguments=arguments)
        talk.reply("", call, model=model)
        talk.result(call, text, **details)

    def read(path: str, text: str) -> None:
        tool("read", {"path": path}, text, files=FileTouches(read=(f"{talk.cwd}/{path}",)))

    talk.user(TASK)
    for number in range(31):
        read(f"src/generated/schema_{number}.py", schema(number, lines))
    read("src/app.py", schema(99, lines))
    read("src/app.py", schema(99, lines))
    for path in ("tests/test_app.py", "src/parser.py", "src/app.py"):
        tool(
            "edit",
            {"path": path, "old_text": "a", "new_text": "b"},
            "Edited.",
            files=FileTouches(edited=(f"{talk.cwd}/{path}",)),
        )
    tool("bash", {"command": "pytest -q"}, FAILED, is_error=True, exit_code=1)
    tool("todo", {}, "The plan is kept.", todos=PLAN)
    talk.reply("The help can show the options as a table or as a list. A table?", model=model)
    talk.user("yes, go with the table")
    talk.reply("Then a table it is; now the tests.", tokens=tokens, model=model)
    conversation.log.append_many(talk.entries)
    return runtime
