"""The process behind `fetch`, killed when a page or its server takes too long.

Reads one JSON request from stdin and prints one JSON answer. Started with ``python -P -m``. What a
page makes of the libraries that read it stays in here, and so does their memory.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject
from agent_tui.tools.files.documents import document_text
from agent_tui.tools.files.text_files import decode
from agent_tui.tools.web.download import Downloader, Page
from agent_tui.tools.web.exchange import Fetched, FetchRequest, Moved
from agent_tui.tools.web.markdown import page_markdown


def _text(page: Page) -> str:
    if page.is_markup:
        return page_markdown(page.content, page.charset, page.url)
    document = document_text(Path(page.url.partition("?")[0]), page.content)
    if document is not None:
        return document
    if page.charset:
        return page.content.decode(page.charset, "replace")
    if (file := decode(page.content)) is not None:
        return file.text
    if page.is_cut and b"\0" not in page.content:  # the cut may go through a character
        return page.content.decode("utf-8", "replace")
    raise ToolError(f"{page.url} is not text.")


def answer(request: FetchRequest) -> JsonObject:
    """What is printed: the page's text, where it has moved to, or why there is none."""
    try:
        page = Downloader(may_be_private=request.may_be_private).get(request.url)
        if isinstance(page, Moved):
            return {"moved_to": page.url}
        return {**asdict(Fetched(page.url, page.media_type, _text(page), page.is_cut))}
    except ToolError as error:
        return {"error": str(error)}


def main() -> None:
    """Answer one request."""
    request = FetchRequest(**json.loads(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(json.dumps(answer(request)).encode())


if __name__ == "__main__":
    main()
