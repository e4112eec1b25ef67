import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.sessions.shell_files import files_in_patch, shell_changes
from tests.support.rows import each_row


@each_row(
    ("command", "read"),
    [
        ("cat a.py", ("a.py",)),
        ("cat a.py; cat b.py", ("a.py", "b.py")),
        ("cd /repo && cat src/x.py | head -20", ("/repo/src/x.py",)),
        ("sed -n '1,20p' b.py", ("b.py",)),
        ("nl -ba x.py | sed -n '1,5p'", ("x.py",)),
        ("head -n 20 f.c", ("f.c",)),
        ("awk '{print $1}' data.csv", ("data.csv",)),
        ("X=1 cat q.py", ("q.py",)),
        ("cat package.json 2>/dev/null || echo none", ("package.json",)),
        ("# don't\ncat a.py\n# it's > b\ncat b.py", ("a.py", "b.py")),
        ("grep -n foo x.py", ()),
        ("cat *.py $FILE", ()),
        ("git commit -m 'cat food'", ()),
        ("echo 'unclosed\ncat a", ()),
    ],
)
def test_files_that_are_shown_count_as_read(command: str, read: tuple[str, ...]):
    touched = shell_changes(command).touches
    assert touched.read == read
    assert (touched.written, touched.edited) == ((), ())


@each_row(
    ("command", "written"),
    [
        ("cat <<'EOF' > foo/t.py\nimport x > y\ncat z\nEOF\npython foo/t.py", ("foo/t.py",)),
        ("cat > a.txt <<EOF\nhi\nEOF", ("a.txt",)),
        ("echo hi >> log.txt 2>&1", ("log.txt",)),
        ("make > /dev/null 2>err.txt", ("err.txt",)),
        ("echo x | tee -a y.log", ("y.log",)),
        ("touch new.py", ("new.py",)),
        ("mv a.py b.py", ("b.py",)),
        ("cd src && mv utils/a.py .", ("src/a.py",)),
        ("mv a.py b.py core", ("core/a.py", "core/b.py")),
        ("cp a.py core/", ("core/a.py",)),
        ("cp a.py ../core", ("../core/a.py",)),
        ("cp -r old new", ()),
        ("git mv a.py b.py", ("b.py",)),
        ("(cd lib && cp ../a b)", ("lib/b",)),
        ('python -c "\nif a > b:\n  pass\n"', ()),
        ('git commit -m "a > b"', ()),
    ],
)
def test_files_that_output_goes_to_count_as_written(command: str, written: tuple[str, ...]):
    assert shell_changes(command).touches.written == written


@pytest.mark.parametrize(
    ("command", "edited"),
    [
        ("sed -i 's/a/b/g' src/a.py", ("src/a.py",)),
        ("sed -i '' 's/x/y/' m.py", ("m.py",)),
        ("cd assets && npm install left-pad", ("assets/package.json",)),
        ("npm install && pip install left-pad", ()),
        ("sed -i -e 's/a/b/' -e 's/c/d/' k.py", ("k.py",)),
        ("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: src/q.py\n@@\nEOF", ("src/q.py",)),
    ],
)
def test_files_that_are_changed_in_place_count_as_edited(command: str, edited: tuple[str, ...]):
    assert shell_changes(command).touches.edited == edited


def test_a_patch_names_added_updated_and_moved_files():
    patch = "*** Add File: a\n+x\n*** Update File: b\n*** Move to: c\n"
    assert files_in_patch(patch) == ("a", "b", "c")


@given(st.text(st.sampled_from("cat >|&;'\"\\\n<EOF-$()a/. #"), max_size=60))
def test_any_text_is_taken(command: str):
    touched = shell_changes(command).touches
    assert all((*touched.read, *touched.written, *touched.edited))
