from pathlib import Path

import pytest

from tests.support.editor import Place
from tests.support.openai_server import OpenAiServer


@pytest.fixture
def place(tmp_path: Path):
    (tmp_path / "work").mkdir()
    with OpenAiServer() as server:
        yield Place(tmp_path.resolve(), server)
