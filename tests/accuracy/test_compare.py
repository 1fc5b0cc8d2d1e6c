"""The harness: its arithmetic on rows made by hand, and splits that cover every row once."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from advisor.accuracy.closed_form import Refused, closed_form, evaluator_of
from advisor.accuracy.compare import compare, markdown, score_table, scores, worst
from advisor.accuracy.ranking import choices, scalings
from advisor.accuracy.rows import Row, rows
from advisor.accuracy.splits import dense_folds, moe_fold


def made(name: str = "one", **changes) -> Row:
    """Llama-3.1-8B on one H100: 32 clients, 1000 tokens in, 101 out, a gap of 10 ms."""
    row = Row(
        id=name, source="made by hand", date="2026-01", engine="vllm", engine_version="0.13.0",
        model="meta-llama-3.1-8b", device="h100-sxm-80gb", tensor_parallel=1, pipeline_parallel=1,
        expert_parallel=1, attention_data_parallel=1, replicas=1, weights="bf16", kv_cache=None,
        input_tokens=1000.0, output_tokens=101.0, lengths="fixed", load="fixed_concurrency",
        concurrency=32, request_rate_per_s=None, requests=None, max_num_seqs=None,
        max_num_batched_tokens=None, memory_utilization=None, tier="A", notes="",
        measured={"ttft_mean_ms": 200.0, "tpot_mean_ms": 10.0},
    )  # fmt: skip
    return replace(row, **changes)


def always(found: dict[str, float]):
    """A predictor that says the same of every row."""
    return lambda _: found


def test_a_residual_is_the_logarithm_of_predicted_over_measured():
    found = compare([made()], always({"tpot_mean_ms": 20.0, "e2e_mean_ms": 5.0}))
    (only,) = found.residuals
    assert only.metric == "tpot_mean_ms"
    assert only.log_ratio == pytest.approx(math.log(2))
    assert only.relative_error == pytest.approx(1.0)
    assert only.regime == ("tpot_mean_ms", "fixed_concurrency", "dense")


def test_scores_are_medians_of_a_regime():
    measured = [8.0, 10.0, 16.0]
    sample = [made(str(value), measured={"tpot_mean_ms": value}) for value in measured]
    (score,) = scores(compare(sample, always({"tpot_mean_ms": 12.0})).residuals)
    assert score.count == 3
    assert score.ratio == pytest.approx(1.2)
    assert score.median == pytest.approx(0.25)  # of 0.5, 0.2 and 0.25
    assert score.p90 == pytest.approx(0.45)


def test_a_refused_row_is_counted_and_not_compared():
    def refuse(row: Row) -> dict[str, float]:
        raise Refused("does_not_fit", "Too large.")

    found = compare([made()], refuse)
    assert found.residuals == ()
    assert [(row.id, code) for row, code in found.refused] == [("one", "does_not_fit")]


def test_the_worst_are_the_furthest_either_way():
    sample = [made(str(value), measured={"tpot_mean_ms": value}) for value in (1.0, 12.0, 30.0)]
    found = worst(compare(sample, always({"tpot_mean_ms": 10.0})).residuals, 2)
    assert [each.row.id for each in found] == ["1.0", "30.0"]


def test_a_table_has_a_line_for_each_score():
    found = scores(compare([made()], always({"tpot_mean_ms": 11.0})).residuals)
    table = score_table(found, ["metric", "load", "model"])
    assert table.splitlines()[2] == (
        "| tpot_mean_ms | fixed_concurrency | dense | 1 | 1.10 | 10.0% | 10% |"
    )
    assert markdown(["a"], [[1]]) == "| a |\n| --- |\n| 1 |"


def test_throughput_that_was_not_published_follows_from_littles_law():
    assert made().throughput == pytest.approx(32 * 101 / 1.2)
    assert made(load="open", request_rate_per_s=1.0).throughput is None


def test_a_wrong_choice_of_tensor_parallelism_loses_its_share():
    sample = [
        made("tp1", measured={"output_tokens_per_s": 1000.0}),
        made("tp2", tensor_parallel=2, measured={"output_tokens_per_s": 3000.0}),
    ]
    predicted = {"tp1": 2000.0, "tp2": 2400.0}
    (choice,) = choices(sample, lambda row: {"output_tokens_per_s": predicted[row.id]})
    assert (choice.chosen.id, choice.best.id) == ("tp1", "tp2")
    assert choice.share_lost == pytest.approx(1 - 1000 / 1500)
    (gain,) = scalings(sample, lambda row: {"output_tokens_per_s": predicted[row.id]})
    assert gain.predicted == pytest.approx(1.2)
    assert gain.measured == pytest.approx(3.0)


def test_other_conditions_are_not_compared():
    sample = [
        made("tp1", measured={"output_tokens_per_s": 1000.0}),
        made("tp2", tensor_parallel=2, concurrency=64, measured={"output_tokens_per_s": 3000.0}),
    ]
    assert choices(sample, always({"output_tokens_per_s": 1.0})) == []


def test_every_dense_row_is_held_out_once():
    dense = [row.id for row in rows() if row.kind == "dense"]
    folds = list(dense_folds(rows()))
    assert sorted(row.id for fold in folds for row in fold.test) == sorted(dense)
    for fold in folds:
        assert len(fold.fit) + len(fold.test) == len(dense)
        pairs = {(row.model, row.device) for row in fold.fit}
        assert not pairs & {(row.model, row.device) for row in fold.test}


def test_every_moe_row_fits_or_tests_and_no_model_does_both():
    fold = moe_fold(rows())
    moe = [row.id for row in rows() if row.kind == "moe"]
    assert sorted(row.id for row in (*fold.fit, *fold.test)) == sorted(moe)
    assert not {row.model for row in fold.fit} & {row.model for row in fold.test}
    assert fold.fit
    assert fold.test


def test_a_moe_model_that_the_split_does_not_name_is_refused():
    with pytest.raises(ValueError, match="qwen3-30b-a3b"):
        moe_fold([made(model="qwen3-30b-a3b")])


def test_the_closed_form_of_a_closed_loop_obeys_littles_law():
    found = closed_form(made())
    assert found["e2e_mean_ms"] == pytest.approx(
        found["ttft_mean_ms"] + 100 * found["tpot_mean_ms"], rel=1e-6
    )
    assert found["output_tokens_per_s"] == pytest.approx(32 * 101 / (found["e2e_mean_ms"] / 1e3))


def test_a_static_batch_is_its_prefill_and_its_steps():
    row = made(load="static_batch", concurrency=4, measured={"e2e_mean_ms": 1.0})
    found = closed_form(row)
    assert found["e2e_mean_ms"] == pytest.approx(
        found["ttft_mean_ms"] + 100 * found["tpot_mean_ms"]
    )
    assert found["output_tokens_per_s"] == pytest.approx(4 * 101 / (found["e2e_mean_ms"] / 1e3))
    floor = evaluator_of(row).steps.floor(np.array([[4.0]]), np.array([[1050.5]])).item()
    assert found["tpot_mean_ms"] > floor * 1e3
    # 4,000 tokens of 6.979e9 parameters at 989 TFLOP/s take no less than this
    assert found["ttft_mean_ms"] > 4000 * 2 * 6.979e9 / 989e12 * 1e3


def test_a_burst_has_no_first_token_time_in_the_closed_form():
    found = closed_form(made(load="burst", concurrency=None, requests=32))
    assert not any(name.startswith(("ttft", "e2e")) for name in found)
    assert found["tpot_mean_ms"] > 0


def test_a_layout_that_the_planner_rejects_is_refused_with_its_code():
    with pytest.raises(Refused) as refusal:
        closed_form(made(model="meta-llama-3.1-405b"))
    assert refusal.value.code == "does_not_fit"
    with pytest.raises(Refused) as refusal:
        closed_form(made(load="static_batch", concurrency=5000))
    assert refusal.value.code == "batch_exceeds_slots"
