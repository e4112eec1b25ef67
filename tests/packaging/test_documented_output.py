"""What the documents show as the output of a command is what it prints."""

from pathlib import Path

import pytest

from tests.support.documented_output import DOCUMENTS, with_output

SHOWING = [document for document in DOCUMENTS if "```console\n" in document.read_text("utf-8")]


@pytest.mark.parametrize("document", SHOWING, ids=lambda path: path.name)
def test_documents_show_what_a_command_prints(document: Path) -> None:
    written = document.read_text("utf-8")
    assert written == with_output(written), "run: python -m tests.support.documented_output"


def test_there_are_documents_with_output() -> None:
    assert SHOWING
