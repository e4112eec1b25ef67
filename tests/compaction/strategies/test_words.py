"""What a model wrote in place of messages, and whether it can stand for them."""

from agent_tui.features.strategies.words import words_problem
from tests.support.rows import each_row

ORIGINAL = (
    "Look at src/parse.py and /srv/data/in.csv, then at https://example.org/docs.html\n"
    "I have read src/parse.py line by line, and ~/notes.txt too."
)


@each_row(
    ("text", "original"),
    [
        ("It was asked to look at src/parse.py, which was read.", ORIGINAL),
        ("parse.py was read, and so was ./src/parse.py.", ORIGINAL),
        ("The table /srv/data/in.csv is next; see https://example.org/other.html.", ORIGINAL),
        ("Either/or, and/or, 1/2, e.g. this: nothing of that is a path that was read.", ORIGINAL),
        ("</summary> src/parse.py was read </conversation>", ORIGINAL),
        ("Wie gewünscht wurden src/parse.py und ~/notes.txt gelesen.", ORIGINAL),
        ("構文解析を直す", "構文解析を直してください。テストも実行してください。"),
        ("構文解析 src/a.py", "src/a.py の構文解析を直してください。"),
        ("Ändere die Datei nicht", "Bitte ändere die Datei auf keinen Fall, und nicht heute."),
    ],
)
def test_a_text_that_names_what_occurs_is_taken(text: str, original: str) -> None:
    assert words_problem(text, original, 200) == ""


@each_row(
    "path",
    ["src/lexer.py", "lib/parse.py", "/srv/data/out.csv", "/etc/passwd", "~/other", "a.toml"],
)
def test_a_path_that_does_not_occur_is_found(path: str) -> None:
    text = f"It was asked to look at src/parse.py and at {path} too."
    assert words_problem(text, ORIGINAL, 400) == f"it names {path}, which does not occur there"


@each_row(
    ("text", "problem"),
    [
        ("", "it says nothing"),
        ("(none)", "it says nothing"),
        ("1 2 3 4 5 6 7 8 9", "it says nothing"),
        ("As an AI, I do not do that.", "it is a refusal"),
        ("It was read. " * 9, "it repeats itself"),
        ("All of it was read.", "it is too short for 4,000 tokens"),
        (
            "Bananas ripen quicker inside paper bags. People wait until they turn yellow, eat "
            "them, throw away skins, plus wash their hands.",
            "it is about something else",
        ),
        (
            "Вопрос был о том, что делает этот файл и почему его читают два раза подряд, а "
            "ответ на него обещали дать завтра утром.",
            "it is about something else",
        ),
    ],
)
def test_a_text_that_cannot_stand_for_messages_is_found(text: str, problem: str) -> None:
    assert words_problem(text, ORIGINAL, 4_000) == problem


def test_a_refusal_can_be_said_in_fewer_words() -> None:
    assert words_problem("I can't read it.", "I'm sorry, I can't read the file.", 50) == ""
