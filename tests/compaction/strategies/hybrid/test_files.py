"""What strategy `hybrid` knows of files: outlines, descriptions, and what was done to them."""

from collections.abc import Sequence

import pytest

from agent_tui.compaction.strategies.hybrid.checks import condensed_problem, invented_paths
from agent_tui.compaction.strategies.hybrid.file_cache import read_file_cache
from agent_tui.compaction.strategies.hybrid.modifications import Modifications, read_modifications
from agent_tui.compaction.strategies.hybrid.outline import outline_of
from agent_tui.compaction.strategies.hybrid.result_lines import MOST_TOKENS, ResultLines
from agent_tui.compaction.tiers.model import Unit
from agent_tui.compaction.tiers.units import read_units
from agent_tui.config import CompactionSettings
from agent_tui.messages import FileTouches, JsonObject, Todo
from agent_tui.tokens import TokenCounter
from tests.compaction.strategies.hybrid.scene import CWD
from tests.support.talk import Talk

FOLDERS = (CWD,)

FILES = {
    "a.py": (
        "import os\n\nclass Parser:\n    def parse(self): ...\n\nasync def main(): ...",
        "Parser",
    ),
    "a.ts": ("export interface Node {}\nexport const make = () => 1\nconst own = 2", "Node, make"),
    "a.go": ("package a\nfunc (p *Parser) Parse() {}\ntype Parser struct {}", "Parse, Parser"),
    "a.rs": ("pub(crate) async fn run() {}\nenum Kind {}", "run, Kind"),
    "A.java": ("public final class A {\n    private int x;\n}", "A"),
    "a.c": (
        "#define LIMIT 3\nstruct node {\n};\nstatic int parse(char *text)\n{\n}",
        "LIMIT, node",
    ),
    "a.rb": ("module A\n  class B\n    def c\n", "A, B"),
    "a.ex": ("defmodule A.B do\n  def run(x) do\n", "A.B, run"),
    "a.sh": ("set -e\nbuild() {\n}\nfunction test_it () {\n}", "build, test_it"),
    "a.md": ("# Title\n\ntext\n\n## Part one\n\n#### deep", "Title, Part one"),
    "a.toml": ("[tool.ruff]\nline-length = 1\n[[bin]]", "tool.ruff, bin"),
    "a.yaml": ("on: push\njobs:\n  test: 1", "on, jobs"),
    "a.json": ('{\n  "name": "a",\n  "deep": {\n    "b": 1\n  }\n}', "name, deep, b"),
    "a.css": (".button { color: red }\n@media print {\n", ".button, @media"),
    "a.sql": ("CREATE TABLE IF NOT EXISTS users (id int);\ncreate view v as", "users, v"),
}


def units_of(talk: Talk, counter: TokenCounter) -> Sequence[Unit]:
    found = read_units(
        talk.path, carryover=None, counter=counter, settings=CompactionSettings(), window=100_000
    )
    return found.items


def modifications_of(talk: Talk, counter: TokenCounter) -> Modifications:
    return read_modifications(units_of(talk, counter), FOLDERS)


def line_of(talk: Talk, counter: TokenCounter, place: int) -> str:
    """The line for the output at `place` of the conversation."""
    units = units_of(talk, counter)
    lines = ResultLines(
        files=read_file_cache(units, FOLDERS),
        modifications=read_modifications(units, FOLDERS),
        outputs=sum(unit.output is not None for unit in units),
        folders=FOLDERS,
        counter=counter,
    )
    unit = [unit for unit in units if unit.output is not None][place]
    assert unit.output is not None
    return lines.line(unit.output, unit.entry_id)


@pytest.mark.parametrize("path", FILES)
def test_an_outline_names_what_a_file_defines(path: str) -> None:
    text, names = FILES[path]
    assert str(outline_of(text, path)).startswith(names)
    numbered = "\n".join(f"{n}\t{line}" for n, line in enumerate(text.split("\n"), start=1))
    assert outline_of(numbered, path) == outline_of(text, path)


def test_a_long_outline_keeps_types_first_and_counts_the_rest() -> None:
    text = "".join(f"def function_{n}(): ...\n" for n in range(60)) + "class Parser: ...\n"
    outline = outline_of(text, "a.py")
    assert "Parser" in outline.names
    assert len(outline.names) + outline.more == 61
    assert str(outline).endswith(f", +{outline.more} more")
    assert outline_of(text, "a.unknown").names == ()


def test_changes_of_files_are_told_from_results_alone(counter: TokenCounter) -> None:
    talk = Talk()
    plan = [Todo(text="write it", status="in_progress")]
    talk.user("go")
    talk.tool("todo", {"todos": [todo.model_dump() for todo in plan]}, todos=plan)
    new = FileTouches(written=(f"{CWD}/a.py",))
    talk.tool("write", {"path": "a.py", "content": "1\n2\n3\n"}, "Created a.py", files=new)
    talk.tool(
        "edit",
        {"path": "./a.py", "old_string": "1", "new_string": "1\n1"},
        files=FileTouches(edited=(f"{CWD}/a.py",)),
    )
    talk.tool("write", {"path": "a.py", "content": "x"}, "Replaced a.py", files=new)
    talk.tool("edit", {"path": "b.py", "old_string": "1"}, "not found", is_error=True)
    talk.tool("bash", {"command": "rm -f a.py && echo 'rm c.py'"}, exit_code=0)
    found = modifications_of(talk, counter).by_file
    assert set(found) == {"a.py"}
    assert [(m.kind, m.number, m.lines, m.todo) for m in found["a.py"]] == [
        ("created", 2, "3 lines", "write it"),
        ("modified", 3, "+2 -1", "write it"),
        ("modified", 4, "1 line", "write it"),
        ("deleted", 6, "", "write it"),
    ]
    assert [m.at_ms for m in found["a.py"]] == sorted(m.at_ms for m in found["a.py"])


def test_tools_of_other_programs_are_understood(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("go")
    told: list[tuple[str, JsonObject, str]] = [
        ("Write", {"file_path": f"{CWD}/n.py", "content": "1\n2"}, "File created successfully"),
        ("Edit", {"file_path": f"{CWD}/n.py", "old_string": "1", "new_string": ""}, "The file"),
        ("str_replace_editor", {"command": "create", "path": "m.py", "file_text": "1"}, "ok"),
        ("apply_patch", {"input": "*** Delete File: m.py\n*** Add File: k.py\n+1"}, "ok"),
        ("Bash", {"command": "git rm n.py"}, "rm 'n.py'"),
    ]
    for name, arguments, text in told:
        talk.tool(name, arguments, text, is_foreign=True)
    found = modifications_of(talk, counter).by_file
    assert {file: [m.kind for m in changes] for file, changes in found.items()} == {
        "n.py": ["created", "modified", "deleted"],
        "m.py": ["created", "deleted"],
        "k.py": ["modified"],
    }


def test_the_cache_knows_content_by_its_hash_and_what_the_model_said_last(
    counter: TokenCounter,
) -> None:
    talk = Talk()
    talk.user("look")
    talk.reply("src/a.py: said before it was read.")
    for text in ("class A: ...\n", "class A: ...\n", "class B: ...\n"):
        talk.tool("read", {"path": "src/a.py"}, text)
        talk.reply("`a.py` holds the parser. It is long.\n- src/a.py - the grammar of it all")
    talk.tool("read", {"path": "src/b/a.py"}, "class C: ...\n")
    talk.reply("a.py is one of two now. See e.g. this.")
    units = units_of(talk, counter)
    cache = read_file_cache(units, FOLDERS)
    reads = [cache.summary(unit.output) for unit in units if unit.output is not None]
    assert reads[0] is reads[1]
    assert reads[0].digest != reads[2].digest
    assert [str(read.outline) for read in reads] == ["A", "A", "B", "C"]
    assert reads[0].description == "the grammar of it all"
    assert reads[3].description == ""


@pytest.mark.parametrize("kind", ["read", "write", "edit"])
@pytest.mark.parametrize("entry_id", ["0a1b2c3d", "9b2f6a7e-1c3d-4e5f-8a9b-0c1d2e3f4a5b"])
def test_a_line_is_short_however_long_paths_and_plans_are(
    kind: str, entry_id: str, counter: TokenCounter
) -> None:
    talk = Talk()
    long_path = "src/" + "very_long_folder_name/" * 12 + "module_with_a_name.py"
    plan = [Todo(text="a step that says all there is to say " * 5, status="in_progress")]
    talk.user("go")
    talk.tool("todo", {"todos": [todo.model_dump() for todo in plan]}, todos=plan)
    arguments: dict[str, JsonObject] = {
        "read": {"path": long_path},
        "write": {"path": long_path, "content": "x\n" * 500},
        "edit": {"path": long_path, "old_string": "x\n" * 300, "new_string": "y\n" * 300},
    }
    names = "".join(f"class AVeryLongNameOfAClassNumber{n}: ...\n" for n in range(80))
    talk.tool(kind, arguments[kind], names, is_foreign=True)
    talk.reply(f"{long_path} holds " + "quite a lot of things " * 20)
    talk.entries[-2] = talk.entries[-2].model_copy(update={"id": entry_id})
    line = line_of(talk, counter, 1)
    assert line.endswith(f"[recall {entry_id}]")
    assert "_with_a_name.py" in line
    assert (MOST_TOKENS["read"], MOST_TOKENS["write"], MOST_TOKENS["edit"]) == (140, 46, 36)
    mark = counter.count_text(f"[recall {entry_id}]")
    assert counter.count_text(line) <= max({"read": 140, "write": 46, "edit": 36}[kind], mark + 24)


def test_errors_keep_their_message_and_commands_their_first_line(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("go")
    talk.tool("read", {"path": "a.py"}, "a.py does not exist: no such file", is_error=True)
    talk.tool("bash", {"command": "make"}, "built everything\n" * 80, exit_code=0)
    assert "no such file" in line_of(talk, counter, 0)
    assert "bash make; exit 0; 80 lines; built everything" in line_of(talk, counter, 1)


def test_a_file_that_was_deleted_or_changed_since_is_said_to_be(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("go")
    talk.tool("read", {"path": "a.py"}, "x = 1\n" * 80)
    talk.tool("read", {"path": "b.py"}, "x = 1\n" * 80)
    for _ in range(2):
        talk.tool("edit", {"path": "b.py", "old_string": "1", "new_string": "2"}, is_foreign=True)
    talk.tool("bash", {"command": "rm a.py"})
    assert "deleted since" in line_of(talk, counter, 0)
    assert "modified since 2 times, last in call 4" in line_of(talk, counter, 1)


@pytest.mark.parametrize(
    ("text", "original", "problem"),
    [
        ("Parse src/a.py first", "please parse the file src/a.py first of all", ""),
        ("Parse /etc/passwd first", "please parse the file first", "/etc/passwd"),
        ("See https://a.org/b.py for parsing", "parsing, as https://a.org/b.py has it", ""),
        ("構文解析を直す", "構文解析を直してください。テストも実行してください。", ""),
        ("Fix the parser", "構文解析を直してください。テストも実行してください。", "language"),
        ("構文解析 src/a.py", "src/a.py の構文解析を直してください。", ""),
        ("Ändere die Datei nicht", "Bitte ändere die Datei auf keinen Fall, und nicht heute.", ""),
        ("", "anything", "nothing"),
    ],
)
def test_what_stands_for_a_message_is_about_it_in_its_language(
    text: str, original: str, problem: str
) -> None:
    found = condensed_problem(text, original)
    assert problem in found if problem else found == ""


def test_paths_that_a_message_does_not_hold_are_found() -> None:
    original = "Look at src/a.py and ~/notes.txt, version 1.2, e.g. today and/or tomorrow."
    assert invented_paths("src/a.py and ~/notes.txt, e.g. 1.2, and/or", original) == ()
    assert invented_paths("src/b.py or a.py", original) == ("src/b.py",)
