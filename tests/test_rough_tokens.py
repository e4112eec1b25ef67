"""The estimate without a vocabulary, held against tiktoken's count."""

import json
import random
import string
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.agent.prompt.fitted_prompt import full_prompt
from agent_tui.tokens import ExactCounter, TokenCounter, rough_tokens
from agent_tui.tools.registry import default_toolbox
from tests.support.offered import offered

ROOT = Path(__file__).parent.parent

IN_OTHER_SCRIPTS = {
    "Chinese": (
        "会话是一个只追加的日志。模型看到的内容是对日志条目的纯粹重放。每一种缩小上下文的方法都会追加一个"
        "条目，从不改写任何内容。因此，恢复的会话与正在进行的会话完全相同，失败的压缩会让文件保持原样。"
    ),
    "Japanese": (
        "セッションは追記専用のログです。モデルが見るものは、そのエントリを再生したものです。コンテキストを"
        "小さくする方法はどれもエントリを追加するだけで、何も書き換えません。"
    ),
    "Korean": (
        "세션은 추가만 되는 로그입니다. 모델이 보는 것은 항목을 그대로 다시 재생한 결과입니다. "
        "컨텍스트를 줄이는 모든 방법은 항목을 추가할 뿐이며 아무것도 다시 쓰지 않습니다."
    ),
    "Russian": (
        "Сеанс — это журнал, в который можно только добавлять записи. Модель видит то, что "
        "получается при их повторном воспроизведении. Неудачное сжатие оставляет файл, "
        "каким он был."
    ),
    "German": (
        "Eine Sitzung ist ein Protokoll, an das nur angehängt wird. Was das Modell sieht, ergibt "
        "sich daraus. Eine fehlgeschlagene Verdichtung lässt die Datei, wie sie gewesen ist."
    ),
}


@pytest.fixture(scope="module")
def exact() -> ExactCounter:
    return ExactCounter()


@pytest.mark.parametrize(
    "files",
    [
        "agent_tui/agent/turn/*.py",
        "agent_tui/tools/*.py",
        "tests/compaction/*.py",
        "docs/pages/*.md",
        "*.md",
        "sessions.example/*.jsonl",
        "agent_tui/ui/**/*.tcss",
        "pyproject.toml",
    ],
)
def test_real_files_are_estimated_within_ten_percent(files: str, exact: TokenCounter):
    texts = [file.read_text("utf-8") for file in sorted(ROOT.glob(files))]
    assert texts
    assert sum(map(rough_tokens, texts)) == pytest.approx(
        sum(map(exact.count_text, texts)), rel=0.1
    )


@pytest.mark.parametrize("language", IN_OTHER_SCRIPTS)
def test_other_languages_are_estimated_within_a_fifth(language: str, exact: TokenCounter):
    text = IN_OTHER_SCRIPTS[language] * 3
    assert rough_tokens(text) == pytest.approx(exact.count_text(text), rel=0.2)


@pytest.mark.parametrize("model_id", ["claude-sonnet-4-5", "gpt-5"])
def test_an_empty_conversation_is_estimated_within_ten_percent(model_id: str, exact: TokenCounter):
    prompt = full_prompt(Path("/home/person/projects/some-project"), date(2026, 1, 2))
    tools = offered(default_toolbox().specs, model_id)
    counts = [c.count_text(prompt) + c.count_tools(tools) for c in (TokenCounter(), exact)]
    assert counts[0] == pytest.approx(counts[1], rel=0.1)


def test_a_recorded_conversation_is_estimated_within_ten_percent(exact: TokenCounter):
    lines = (ROOT / "sessions.example/1-tools.jsonl").read_text("utf-8").splitlines()
    texts = [json.dumps(json.loads(line)["message"]) for line in lines if '"message"' in line]
    assert texts
    assert sum(map(rough_tokens, texts)) == pytest.approx(
        sum(map(exact.count_text, texts)), rel=0.1
    )


LETTERS = random.Random(1)
UNUSUAL = {
    "capitals": "".join(LETTERS.choices("ACGT", k=3_000)),
    "letters": "".join(LETTERS.choices(string.ascii_lowercase, k=3_000)),
    "signs": "".join(LETTERS.choices("+-<>[].,", k=3_000)),
    "a drawing": "/\\_|" * 750,
    "one sign": "=" * 3_000,
    "blanks": " " * 3_000,
}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_a_long_text_without_words_is_estimated_within_two_fifths(kind: str, exact: TokenCounter):
    for text in (UNUSUAL[kind], f"\n{UNUSUAL[kind]}"):
        assert rough_tokens(text) == pytest.approx(exact.count_text(text), rel=0.4, abs=30)


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_has_an_estimate_and_more_text_has_more(text: str, more: str):
    assert 0 <= rough_tokens(text) <= 2 * len(text)
    assert rough_tokens(f"{text}\n{more}") <= rough_tokens(text) + rough_tokens(more) + 3
