import pytest

from agent_tui.compaction.ledger_files import FileOperations, capped_lists, normalise_path


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("src/a.py", "src/a.py"),
        ("./src/../a.py", "a.py"),
        ("@src/a.py", "src/a.py"),
        ("/project/src/a.py", "src/a.py"),
        ("/real/project/src/a.py", "src/a.py"),
        ("../b.py", "/b.py"),
        ("/projects/c.py", "/projects/c.py"),
        ("/etc/hosts", "/etc/hosts"),
        ("/project", ""),
        ("", ""),
        ("a\nb", ""),
    ],
)
def test_every_form_of_a_path_becomes_one(path: str, normal: str):
    assert normalise_path(path, ("/project", "/real/project")) == normal


def test_lists_are_sorted_and_whole_when_they_fit():
    files = FileOperations(read=("b", "a"), modified=("d", "c"))
    assert capped_lists(files, 100) == (["a", "b"], ["c", "d"])


def test_read_files_are_left_out_first_and_counted():
    files = FileOperations(
        read=tuple(f"read{n:04d}" for n in range(50)),
        modified=tuple(f"mod{n:05d}" for n in range(10)),
    )
    read, modified = capped_lists(files, 9 * 15)
    assert modified == sorted(files.modified)
    assert read == [*files.read[:5], "+45 more"]


def test_modified_files_are_left_out_last_and_counted():
    files = FileOperations(read=("r",), modified=tuple(f"mod{n:05d}" for n in range(10)))
    read, modified = capped_lists(files, 27)
    assert read == ["+1 more"]
    assert modified == ["mod00000", "mod00001", "mod00002", "+7 more"]
