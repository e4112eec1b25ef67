from importlib.machinery import SOURCE_SUFFIXES, all_suffixes
from importlib.util import cache_from_source
from pathlib import Path

from agent_tui.tools.files.python_modules import compiled_name, find_compiled
from tests.support.rows import each_row


def test_each_name_that_this_python_tries_for_a_module_counts(tmp_path: Path):
    names = [f"m{end}" for end in all_suffixes() if end not in SOURCE_SUFFIXES]
    names += [cache_from_source("m.py", optimization=each) for each in ("", "1", "2")]
    assert {compiled_name(f"/a/{name}") for name in names} == {"/a/m.pyc"}
    (tmp_path / "__pycache__").mkdir()
    for name in (*names, "m.py", "mm.pyc", "n.so", "__pycache__/n.cpython-311.pyc"):
        (tmp_path / name).touch()
    found = set(find_compiled([f"{tmp_path}/m.pyc", f"{tmp_path}/n.py", f"{tmp_path}/none/m.pyc"]))
    assert found == {f"{tmp_path}/{name}" for name in names}


@each_row(
    ("path", "name"),
    [
        ("m.pyc", "m.pyc"),
        ("__pycache__/m.cpython-311.pyc", "m.pyc"),
        ("/__pycache__/m.pypy310.pyc", "/m.pyc"),
        ("a/__pycache__/.x.cpython-39.opt-2.pyc", "a/.x.pyc"),
        ("a/m.cp312-win_amd64.pyd", "a/m.pyc"),
        ("a/m.py", ""),
        ("a/pyc", ""),
        ("a/__pycache__", ""),
    ],
)
def test_one_name_stands_for_the_compiled_forms_of_a_module(path: str, name: str):
    assert compiled_name(path) == name
