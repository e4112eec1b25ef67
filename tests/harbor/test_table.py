import json
from pathlib import Path

from agent_tui.harbor.table import main, table

TRIAL = {
    "trial_name": "task__0",
    "verifier_result": {"rewards": {"reward": 1.0}},
    "agent_result": {
        "n_input_tokens": 2_000,
        "n_cache_tokens": 500,
        "n_output_tokens": 70,
        "cost_usd": 0.5,
        "metadata": {"session_id": "s", "replies": 4, "compactions": 1},
    },
    "agent_execution": {
        "started_at": "2026-03-02T09:00:00Z",
        "finished_at": "2026-03-02T09:00:30Z",
    },
    "exception_info": None,
}
FAILED = {
    "trial_name": "task__1",
    "agent_result": None,
    "verifier_result": None,
    "exception_info": {"exception_type": "E"},
}


def job(folder: Path, *trials: object) -> Path:
    for number, trial in enumerate(trials):
        path = folder / f"task__{number}" / "result.json"
        path.parent.mkdir(parents=True)
        path.write_text(trial if isinstance(trial, str) else json.dumps(trial))
    (folder / "result.json").write_text("{}")
    return folder


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_each_job_is_a_row_of_means(tmp_path: Path) -> None:
    on = job(tmp_path / "on", TRIAL, TRIAL | {"agent_result": {"n_input_tokens": 4_000}})
    off = job(tmp_path / "off", TRIAL, FAILED)
    head, rule, first, second = map(cells, table([on, off]).splitlines())
    assert head[:5] == ["job", "trials", "reward", "failed", "replies"]
    assert set("".join(rule)) == {"-", ":"}
    known = ["3,000", "500", "70", "0.5000", "30"]
    assert first == ["on", "2", "1.00", "0.00", "4.0", "1.0", *known]
    assert second[:6] == ["off", "2", "0.50", "0.50", "4.0", "1.0"]


def test_what_no_trial_tells_is_a_question_mark(tmp_path: Path) -> None:
    row = cells(table([job(tmp_path / "off", FAILED)]).splitlines()[2])
    assert row == ["off", "1", "0.00", "1.00", *["?"] * 7]


def test_the_program_prints_the_table_or_says_what_is_wrong(tmp_path: Path, capsys) -> None:
    assert main([str(job(tmp_path / "on", TRIAL))]) == 0
    assert capsys.readouterr().out.startswith("| job")
    (tmp_path / "empty").mkdir()
    assert main([str(tmp_path / "empty")]) == 1
    assert "contains no trials" in capsys.readouterr().err
    for wrong in (tmp_path, job(tmp_path / "bad", "[")):  # the folder of all jobs; half a file
        assert main([str(wrong)]) == 1
        assert "is not a trial result" in capsys.readouterr().err
    assert main([]) == 2
