"""Traces in files: the columns of public ones, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.cli import traces
from tests.cli.conftest import Run
from tests.cli.questions import ON_H100

ROWS = 40
OURS = "sent_s,input_tokens,output_tokens\n" + "".join(
    f"{100 + i * 0.5},{1000 + i},{50 + i}\n" for i in range(ROWS)
)
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:15:{10 + i // 2}.{'5000000' if i % 2 else '0000000'},{1000 + i},{50 + i}\n"
    for i in range(ROWS)
)
AZURE_2024 = AZURE.replace("0000,", "+00:00,")
BURST_GPT = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n" + "".join(
    f"{5 + i / 2},ChatGPT,{1000 + i},{50 + i},{1050 + 2 * i},Conversation log\n"
    for i in range(ROWS)
)


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    "text", [OURS, AZURE, AZURE_2024, BURST_GPT, "\ufeff" + OURS.replace("\n", "\r\n")]
)
def test_the_same_trace_is_read_of_each_kind_of_file(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
):
    found = traces.trace_in(written(tmp_path, text))
    assert found["sent_s"] == [i * 0.5 for i in range(ROWS)]
    assert found["input_tokens"] == [1000 + i for i in range(ROWS)]
    assert found["output_tokens"] == [50 + i for i in range(ROWS)]
    assert capsys.readouterr().err == ""


def test_requests_are_put_in_order_and_those_that_failed_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    header, *lines = OURS.splitlines()
    failed = ["7,900,0", "8,0,3"]
    text = "\n".join([header, *failed, *reversed(lines)])
    found = traces.trace_in(written(tmp_path, text))
    assert found["input_tokens"] == [1000 + i for i in range(ROWS)]
    assert "2 requests without tokens left out" in capsys.readouterr().err


def test_of_a_long_trace_the_busiest_part_is_taken_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(traces, "MOST_TRACED", 25)
    slow = "".join(f"{i * 9.0},10,10\n" for i in range(9))
    found = traces.trace_in(written(tmp_path, OURS + slow))
    assert len(found["sent_s"]) == 25
    assert found["sent_s"][0] == 0
    assert found["sent_s"][-1] == 12
    said = capsys.readouterr().err
    assert "the busiest 25 of 49 requests, from 100 s on, in 12 s" in said


def test_a_plan_of_a_trace_says_what_was_measured_and_replayed(advisor: Run, tmp_path: Path):
    path = written(tmp_path, OURS)
    options = (*ON_H100, "--trace", path, "--tp", "4", "--replicas", "2")
    shown = advisor(*options)
    assert shown.exit_code == 0, shown.stderr
    assert "a trace of 40 requests in 19.5 s, 2 requests/s" in shown.stdout
    assert "Simulated, and the closed form over it" in shown.stdout
    answer = json.loads(advisor(*options, "--json").stdout)
    assert answer["trace"]["requests"] == ROWS
    assert answer["recommended"]["verification"]["requests"] == ROWS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            OURS.replace("input_tokens", "prompt"),
            "the columns are sent_s,prompt,output_tokens; they",
        ),
        ("", "the columns are ; they have to be sent_s,input_tokens,output_tokens or TIMESTAMP"),
        (OURS.splitlines()[0], "there are no requests in it"),
        (OURS + "soon,10,10\n", "line 42: 'soon,10,10' is not a time and two whole numbers"),
        (OURS + "nan,10,10\n", "line 42: 'nan,10,10' is not"),
        (OURS + "1,10.5,10\n", "line 42: '1,10.5,10' is not"),
        (OURS + "1,-1,10\n", "line 42: '1,-1,10' is not"),
        (OURS + "1,10\n", "line 42: '1,10,None' is not"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_with_the_reason(
    advisor: Run, tmp_path: Path, text: str, said: str
):
    result = advisor(*ON_H100, "--trace", written(tmp_path, text))
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""


def test_a_file_that_is_not_there_is_refused(advisor: Run):
    result = advisor(*ON_H100, "--trace", "nowhere.csv")
    assert result.exit_code == 2
    assert "nowhere.csv: the file cannot be read" in result.stderr


def test_a_trace_and_a_rate_exclude_each_other(advisor: Run, tmp_path: Path):
    result = advisor(*ON_H100, "--trace", written(tmp_path, OURS), "--rate", "3")
    assert result.exit_code == 2
    assert "/workload/trace: Exactly one kind of load is expected, not 2." in result.stderr
