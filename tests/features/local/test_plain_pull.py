import io
import sys

from agent_tui.features.local.fetch import fetch
from agent_tui.features.local.library import ModelLibrary
from tests.support.file_server import FileServer
from tests.support.gguf_files import gguf_bytes


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pull_that_may_not_redraw_tells_how_far_it_is_in_lines(monkeypatch, tmp_path):
    told = Terminal()
    monkeypatch.setattr(sys, "stderr", told)
    with FileServer() as server:
        server.offer("/m.gguf", gguf_bytes())
        address = f"{server.url}/m.gguf"
        library = ModelLibrary(tmp_path / "models")
        assert fetch(library, address, name="", sha256="", is_sure=True, redraws=False)
    assert "downloading" in told.getvalue()
    assert "\x1b" not in told.getvalue()
    assert "\r" not in told.getvalue()
