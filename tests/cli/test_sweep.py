from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet
import pytest
from click.testing import CliRunner

from advisor.cli import main
from advisor.sweeps import formats

GRID = {
    "models": ["meta-llama-3.1-8b"],
    "hardware": ["h100-sxm-80gb", "l40s"],
    "workloads": [{"request_rate_per_s": [1, 5000], "input_tokens": 500, "output_tokens": 100}],
    "limits": {"max_accelerators": 4},
}


def sweep(tmp_path: Path, body: object, *arguments: str):
    file = tmp_path / "sweep.json"
    file.write_text(json.dumps(body))
    return CliRunner().invoke(main, ["sweep", "--request", str(file), *arguments])


def test_a_row_for_each_question_goes_into_the_file(tmp_path: Path):
    out = tmp_path / "rows.csv"
    done = sweep(tmp_path, {"grid": GRID}, "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "2 planned, 2 no_plan, 0 refused" in done.stderr
    found = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["hardware"] for row in found] == ["h100-sxm-80gb"] * 2 + ["l40s"] * 2
    assert [row["status"] for row in found] == ["planned", "no_plan"] * 2


def test_rows_go_to_standard_output_as_json_lines(tmp_path: Path):
    done = sweep(tmp_path, {"grid": GRID | {"objectives": ["latency"]}}, "--format", "jsonl")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["objective"] for row in found] == ["latency"] * 4


def test_an_unknown_name_is_told_with_the_nearest(tmp_path: Path):
    done = sweep(tmp_path, {"grid": GRID | {"models": ["meta-llama-3.1-9b"]}})
    assert done.exit_code == 2
    assert "meta-llama-3.1-8b" in done.stderr


def test_the_ending_of_the_file_says_its_form_unless_that_is_given(tmp_path: Path):
    out = tmp_path / "rows.parquet"
    assert sweep(tmp_path, {"grid": GRID}, "--out", str(out)).exit_code == 0
    rows = pyarrow.parquet.read_table(out).to_pylist()
    lines = sweep(tmp_path, {"grid": GRID}, "--format", "jsonl").stdout.splitlines()
    assert rows == [json.loads(line) for line in lines]
    assert sweep(tmp_path, {"grid": GRID}, "--out", str(out), "--format", "jsonl").exit_code == 0
    assert out.read_text().splitlines() == lines


def test_without_pyarrow_the_extra_is_named_before_anything_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(formats, "find_spec", lambda _: None)
    done = sweep(tmp_path, {"grid": GRID}, "--format", "parquet")
    assert done.exit_code == 1
    assert "pip install 'inference-advisor[parquet]'" in done.stderr
    assert "planned" not in done.stderr
