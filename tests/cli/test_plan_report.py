"""The tables and sentences that `advisor plan` prints."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.questions import LOAD, ON_H100, QUESTION

COMPARED = (*QUESTION, "--hardware", "h200-sxm-141gb", "--slo", "ttft_p95_ms=1000")


def answer_to(advisor: Run, *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(advisor(*arguments, "--json").stdout)
    return answer


def rows_of(output: str) -> list[list[str]]:
    """The cells of each row of the first table, the mark of the row first."""
    lines = output.split("\n\n")[1].splitlines()[3:]
    return [[line[:1], *line[1:].split()] for line in lines if "candidates" not in line]


def number(cell: str) -> float:
    return float(cell.replace(",", "").removesuffix("%"))


def test_the_table_has_the_figures_of_the_candidates_in_their_order(advisor: Run):
    answer = answer_to(advisor, *COMPARED)
    rows = rows_of(advisor(*COMPARED).stdout)
    assert len(rows) == 10
    for row, candidate in zip(rows, answer["candidates"], strict=False):
        latency, cost = candidate["latency"], candidate["cost"]
        mark, hardware, precision, replicas, _, split, *figures = row
        met = figures.pop(6)
        assert hardware == candidate["hardware"]
        assert precision == "fp8/fp8"
        assert int(replicas) == candidate["replicas"]
        assert split == f"TP{candidate['tensor_parallel']}"
        assert met == "yes"
        expected = [
            candidate["accelerators"],
            *(latency[f"{metric}_ms"]["p95"] for metric in ("ttft", "tpot", "e2e")),
            100 * candidate["load"]["utilization"],
            candidate["throughput"]["output_tokens_per_s"],
            float(cost["per_hour"]),
            float(cost["per_million_output_tokens"]),
        ]
        assert [number(cell) for cell in figures] == pytest.approx(expected, rel=0.005, abs=0.5)
        assert mark == (
            "*" if candidate == answer["recommended"]
            else "+" if candidate in answer["pareto"]
            else " "
        )  # fmt: skip
    assert [row[0] for row in rows].count("*") == 1
    assert "+" in [row[0] for row in rows]


def test_a_verified_plan_is_shown_with_the_closed_form_over_the_simulation(advisor: Run):
    question = (*QUESTION, "--verify", "--replicas", "2")
    found = answer_to(advisor, *question)["recommended"]["verification"]
    shown = advisor(*question).stdout.partition("Simulated, and the closed form over it")[2]
    e2e, ratio = found["latency"]["e2e_ms"]["p95"], found["agreement"]["e2e"]["p95"]
    assert f"{e2e:,.0f} ({ratio:.2f})" in shown
    assert "Simulated" not in advisor(*QUESTION, "--replicas", "2").stdout


def test_a_burst_is_told_from_a_steady_loop(advisor: Run):
    load = ("--concurrency", "8", "--input-tokens", "500", "--output-tokens", "50")
    shown = advisor(*ON_H100, *load, "--start", "burst", "--num-requests", "20").stdout
    assert "a burst of 20 requests, 8 requests in flight" in " ".join(shown.split())
    assert "burst" not in advisor(*ON_H100, *load).stdout


def test_the_recommended_plan_is_shown_wherever_it_ranks(advisor: Run):
    question = (*COMPARED, "--objective", "balanced")
    ranked = answer_to(advisor, *question)
    assert ranked["candidates"][0] != ranked["recommended"]
    (row,) = rows_of(advisor(*question, "--max-candidates", "1").stdout)
    assert row[0] == "*"
    assert number(row[-2]) == pytest.approx(float(ranked["recommended"]["cost"]["per_hour"]), 0.01)


def test_as_many_candidates_are_shown_as_are_asked_for(advisor: Run):
    output = advisor(*COMPARED, "--max-candidates", "3").stdout
    total = answer_to(advisor, *COMPARED)["candidates_total"]
    assert len(rows_of(output)) == 3
    assert f"3 of {total} candidates, best first" in output


WIDTHS = [60, 80, 100, 120, 200]
MANY_FORMATS = (*ON_H100, *LOAD, "--weights", "bf16,fp8,int4_awq", "--hardware", "mi300x")


@pytest.mark.parametrize("columns", WIDTHS)
def test_no_line_is_wider_than_the_terminal(advisor: Run, columns: int):
    lines = advisor(*MANY_FORMATS, columns=columns).stdout.splitlines()
    assert max(len(line) for line in lines) <= columns
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("columns", WIDTHS)
def test_nothing_is_left_out_at_any_width(advisor: Run, columns: int):
    def cells(output: str) -> list[str]:
        table = output.split("\n\n")[1]
        return sorted(table[table.index("─\n") + 1 :].split())

    assert cells(advisor(*MANY_FORMATS, columns=columns).stdout) == cells(
        advisor(*MANY_FORMATS, columns=300).stdout
    )


def test_sentences_never_break_a_name_between_lines(advisor: Run):
    device = "rtx-pro-6000-blackwell-server"
    question = ("plan", "--model", "qwen3-32b", "--hardware", device, *LOAD)

    def named(columns: int) -> int:
        _question, _table, *sentences = advisor(*question, columns=columns).stdout.split("\n\n")
        return "".join(sentences).count(device)

    assert {named(columns) for columns in range(50, 80, 2)} == {named(300)}


def test_degrees_beyond_tensor_parallel_are_shown_where_there_are_any(advisor: Run):
    question = ("plan", "--model", "qwen3-30b-a3b", "--hardware", "h100-sxm-80gb", *LOAD)
    output = advisor(*question, "--tp", "4", "--pp", "2", "--ep", "4", "--replicas", "3").stdout
    assert "3 x TP4 PP2 EP4" in output


def test_the_explanation_assumptions_and_warnings_are_all_printed(advisor: Run):
    question = (*QUESTION, "--hardware", "mi325x", "--objective", "latency")
    answer = answer_to(advisor, *question)
    output = " ".join(advisor(*question).stdout.split())
    assert answer["explanation"]
    assert answer["assumptions"]
    assert "no_price" in [warning["code"] for warning in answer["warnings"]]
    warned = [warning["detail"] for warning in answer["warnings"]]
    assumed = [assumption["detail"] for assumption in answer["assumptions"]]
    for sentence in answer["explanation"] + warned + assumed:
        assert " ".join(sentence.split()) in output


def test_what_has_no_price_costs_a_dash(advisor: Run):
    question = ("plan", "--model", "meta-llama-3.1-8b", "--hardware", "mi325x", *LOAD)
    rows = rows_of(advisor(*question, "--objective", "latency").stdout)
    assert {tuple(row[-2:]) for row in rows} == {("-", "-")}


def test_without_slos_none_is_called_met(advisor: Run):
    assert {row[-3] for row in rows_of(advisor(*QUESTION).stdout)} == {"-"}


def test_unstable_plans_show_their_load_and_no_latency(advisor: Run):
    output = advisor(*QUESTION, "--rate", "50", "--tp", "2", "--replicas", "1").stdout
    (row,) = rows_of(output)
    assert row[0] == "~"
    assert row[7:10] == ["-", "-", "-"]
    assert number(row[10]) > 100
    assert "~ nearest" in output


def test_replicas_and_tensor_parallelism_are_compared_on_the_same_accelerators(advisor: Run):
    question = (*QUESTION, "--slo", "e2e_p95_ms=3000")
    entries = answer_to(advisor, *question)["replicas_vs_tensor_parallel"]
    assert len(entries) > 1
    output = advisor(*question).stdout
    spent = f"{entries[0]['accelerators']} x h100-sxm-80gb"
    table = output[output.index(f"The same {spent} as replicas or as tensor parallelism") :]
    for entry in entries:
        row = re.search(rf"{entry['replicas']} x TP{entry['tensor_parallel']} .*", table)
        assert row
        ttft, tpot, e2e, utilization, saturated = map(number, row[0].split()[4:])
        assert [ttft, tpot, e2e, utilization, saturated] == pytest.approx(
            [
                entry["ttft_p95_ms"],
                entry["tpot_p95_ms"],
                entry["e2e_p95_ms"],
                100 * entry["utilization"],
                entry["saturation_output_tokens_per_s"],
            ],
            rel=0.005,
            abs=0.5,
        )


def test_rejected_layouts_are_grouped_with_the_first_reason_and_remedy(advisor: Run):
    question = ("plan", "--model", "meta-llama-3.1-405b", "--hardware", "h100-sxm-80gb", *LOAD)
    rejected = answer_to(advisor, *question)["rejected"]
    assert {one["code"] for one in rejected} == {"does_not_fit"}
    result = advisor(*question)
    assert result.exit_code == 1
    assert f"does_not_fit, h100-sxm-80gb: {len(rejected)} layouts" in result.stdout
    output = " ".join(result.stdout.split())
    assert f"TP1, bf16 weights, bf16 KV cache: {rejected[0]['detail']}" in output
    assert f"Remedy: {rejected[0]['remedy']}" in output


def test_output_to_no_terminal_has_no_escape_codes(advisor: Run):
    assert "\x1b" not in advisor(*QUESTION).output
