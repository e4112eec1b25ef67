"""The pages that are made from the program are as the program is."""

from tests.support.reference_pages import DOCS, PAGES
from tests.support.rows import each_row


@each_row("path", PAGES)
def test_a_made_page_is_as_the_program_is(path: str) -> None:
    written = (DOCS / path).read_text(encoding="utf-8")
    assert written == PAGES[path](), "run: python -m tests.support.reference_pages"
