"""Every link of the documents to a file of the project leads to one."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/pages/**/*.md")])
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_to_files(document: Path):
    targets = [unquote(target) for target in _LINK.findall(document.read_text("utf-8"))]
    files = [target for target in targets if ":" not in target]
    assert [target for target in files if not (document.parent / target).exists()] == []
