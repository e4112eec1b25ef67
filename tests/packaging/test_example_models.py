"""The models that examples name are those that the program itself would choose."""

import re
from pathlib import Path

from agent_tui.providers.table import FAMILIES, read_bundled_table

ROOT = Path(__file__).parents[2]
_NAMED = re.compile(r"\b(anthropic|openai)/(claude-[\w.-]*\w|gpt-\d[\w.-]*\w|gpt-\d)")


def test_examples_name_the_newest_models():
    table = read_bundled_table()
    newest = {name: table.newest(name, *FAMILIES[name].working) for name in ("anthropic", "openai")}
    texts = [ROOT / "README.md", *sorted((ROOT / "docs/pages").rglob("*.md"))]
    named = {
        f"{path.relative_to(ROOT)}: {found[0]}": newest[found[1]]
        for path in texts
        for found in _NAMED.finditer(path.read_text("utf-8"))
    }
    assert len(named) > 5
    assert [each for each, wanted in named.items() if not each.endswith(f" {wanted}")] == []
