"""Lengths, classes of requests and what follows from them, beside requests drawn one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.core.economics.planned import planned_serving
from advisor.core.latency import LEVELS, Latency, mixed
from advisor.core.length_totals import COARSE, FINE, totals
from advisor.core.lengths import MOST_GROUPS, Length, RequestClass
from advisor.core.requests import sample_requests
from advisor.core.workload import Workload
from tests.core.profiles import answer, planned, workload

CHAT = RequestClass(Length(600, 1500), Length(300, 800), 3.0, 0.0, "chat")
RAG = RequestClass(Length(5000), Length.histogram([1, 50, 200], [1, 2, 1]), 1.0, 0.4, "rag")
LABEL = RequestClass(Length(200, 420), Length(1), 2.0, 0.0, "label")
MIX = Workload.of_classes([CHAT, RAG, LABEL], saturate=True)
ONE = {"tensor_parallel": (1,), "replicas": (1,)}


@pytest.fixture(scope="module")
def drawn():
    return sample_requests(MIX, 600_000, np.random.default_rng(5))


def test_means_and_variations_are_those_of_requests_drawn(drawn):
    for length, tokens in (
        (MIX.input_tokens, drawn.input_tokens), (MIX.output_tokens, drawn.output_tokens),
        (MIX.prompt_tokens, drawn.new_input_tokens),
    ):  # fmt: skip
        assert length.mean == pytest.approx(tokens.mean(), rel=0.005)
        assert length.squared_cv == pytest.approx(tokens.var() / tokens.mean() ** 2, rel=0.02)
        assert length.mean_square == pytest.approx((tokens.astype(float) ** 2).mean(), rel=0.02)
    assert MIX.gaps == pytest.approx((drawn.output_tokens - 1).mean(), rel=0.005)
    hit = 1 - drawn.new_input_tokens.sum() / drawn.input_tokens.sum()
    assert MIX.prefix_cache_hit == pytest.approx(hit, rel=0.01)


def test_a_decoding_sequence_is_found_as_often_as_it_has_tokens(drawn):
    """Of all output tokens, each seen with the context before it: the mean of a product, which is
    not the product of means where long prompts have short answers."""
    context = drawn.input_tokens + drawn.output_tokens / 2
    seen = np.average(context, weights=drawn.output_tokens)
    assert MIX.live_context == pytest.approx(seen, rel=0.01)
    of_means = workload(MIX.input_tokens, MIX.output_tokens, saturate=True).live_context
    assert of_means > 1.2 * seen
    for number, (share, _) in enumerate(MIX.decoding):
        mine = drawn.output_tokens[drawn.request_class == number]
        assert share == pytest.approx(mine.sum() / drawn.output_tokens.sum(), rel=0.02)


@pytest.mark.parametrize("decode_share", [0.0, 0.3, 0.9, 1.0])
def test_work_varies_less_where_long_prompts_have_short_answers(drawn, decode_share):
    prompt, output = drawn.new_input_tokens, drawn.output_tokens
    work = decode_share * output / output.mean() + (1 - decode_share) * prompt / prompt.mean()
    assert MIX.work_cv2(np.array([decode_share]))[0] == pytest.approx(work.var(), rel=0.02)


def test_pairs_of_a_prompt_are_those_of_each_request(drawn):
    prompt = drawn.new_input_tokens.astype(float)
    cached = drawn.input_tokens - prompt
    pairs = prompt * (cached + (prompt + 1) / 2)
    assert MIX.prompt_pairs == pytest.approx(pairs.mean(), rel=0.02)


def test_a_histogram_has_the_moments_of_its_values():
    values, weights = [10, 200, 3000], [5, 3, 2]
    length = Length.histogram(values, weights)
    mean = np.average(values, weights=weights)
    assert length.mean == pytest.approx(mean)
    assert length.mean_square == pytest.approx(np.average(np.square(values), weights=weights))
    assert length.longest == 3000
    assert Length.histogram(values).mean == pytest.approx(1070)


def test_a_long_histogram_is_grouped_with_its_mean_and_its_single_tokens_kept():
    values = [1, *range(10, 600, 10)]
    weights = [7.0, *np.linspace(1, 3, 59)]
    length = Length.histogram(values, weights)
    assert len(length.grouped) <= MOST_GROUPS + 1
    assert sum(one.share for one in length.grouped) == pytest.approx(1)
    mean = sum(one.share * one.mean for one in length.grouped)
    assert mean == pytest.approx(np.average(values, weights=weights))
    without = sum(one.share for one in length.grouped if not one.gaps)
    assert without == pytest.approx(7 / sum(weights))


def test_each_class_has_its_share_of_every_run():
    few = sample_requests(MIX, 600, np.random.default_rng(1))
    assert few.request_class is not None
    assert np.bincount(few.request_class).tolist() == [300, 100, 200]
    assert set(few.output_tokens[few.request_class == 1]) == {1, 50, 200}
    assert np.bincount(few.output_tokens[few.request_class == 1])[[1, 50, 200]].tolist() == [
        25, 50, 25,
    ]  # fmt: skip


@pytest.mark.parametrize("cuts", [FINE, COARSE])
@pytest.mark.parametrize("together", [1, 2, 5, 40, 64, 500])
def test_totals_are_those_of_lengths_drawn_together(cuts, together):
    length = Length.histogram([50, 400, 6000], [6, 3, 1])
    found = totals(length, cuts)
    factors = found.of(np.array(together))
    assert found.chances @ factors == pytest.approx(1, rel=1e-9)
    spread = found.chances @ (factors - 1) ** 2
    if factors.min() > 1e-9:  # else it is kept as far as no length is negative
        assert spread == pytest.approx(length.squared_cv / together, rel=1e-6)
    assert (factors >= -1e-12).all()
    random = np.random.default_rng(3)
    counts = random.multinomial(together, [0.6, 0.3, 0.1], 100_000)
    sums = np.sort(counts @ [50, 400, 6000] / (together * length.mean))
    sigma = np.sqrt(length.squared_cv / together)
    for nodes in range(1, len(factors)):  # means of all below the end of a node
        upto = found.chances[:nodes].sum()
        below = sums[: int(upto * len(sums))].mean()
        node = np.average(factors[:nodes], weights=found.chances[:nodes])
        assert node == pytest.approx(below, abs=0.12 * max(sigma, 0.5))


def test_quantiles_of_a_mixture_are_those_of_its_requests_together():
    """Requests are drawn from each part's own table, evenly between its levels."""
    random = np.random.default_rng(11)
    shares = [0.6, 0.3, 0.1]
    tables = [np.sort(random.gamma(2, scale, 12)) for scale in (0.01, 0.5, 20)]
    parts = [Latency(np.array([t.mean()]), t[None, :]) for t in tables]
    found = mixed(shares, parts)
    each = random.choice(3, 400_000, p=shares)
    values = np.empty(len(each))
    for number, table in enumerate(tables):
        mine = each == number
        values[mine] = np.interp(random.random(mine.sum()), LEVELS, table)
    for level, quantile in zip(LEVELS, found.quantiles[0], strict=True):
        assert (values < quantile * (1 - 1e-6)).mean() <= level + 0.003
        assert (values <= quantile * (1 + 1e-6)).mean() >= level - 0.003
    means = [table.mean() for table in tables]
    assert found.mean[0] == pytest.approx(np.average(means, weights=shares))


LOADS = [
    {"request_rate_per_s": 5.0}, {"concurrency": 30}, {"saturate": True},
    {"concurrency": 8, "start": "burst"},
]  # fmt: skip


@pytest.mark.parametrize("load", LOADS)
def test_a_single_class_is_the_workload_itself(load):
    plain = workload(Length(600, 1500), Length(300, 800), prefix_cache_hit=0.3, **load)
    whole = answer(load=plain, limits=ONE)["recommended"]
    one = RequestClass(plain.input_tokens, plain.output_tokens, 5.0, 0.3, "all")
    found = answer(load=Workload.of_classes([one], **load), limits=ONE)["recommended"]
    (own,) = found.pop("classes")
    assert own == {"name": "all"} | {k: v for k, v in whole["latency"].items() if k != "itl_ms"}
    assert whole.pop("classes") == []
    assert found == whole


@pytest.mark.parametrize("load", LOADS[:3])
def test_a_class_cut_in_two_changes_little(load):
    half = RequestClass(Length(900), Length(200), 1.0, 0.0, "a")
    cut = Workload.of_classes([half, replace(half, name="b", share=2.0)], **load)
    served = [
        planned(load=each, limits=ONE).candidates.served
        for each in (cut, workload(900, 200, **load))
    ]
    assert served[0].saturation == pytest.approx(served[1].saturation, rel=1e-9)
    for metric in ("ttft", "tpot", "itl", "e2e"):
        for statistic in ("mean", "p50", "p95", "p99"):
            first, second = (one.latency[metric].at(statistic)[0] for one in served)
            assert first == pytest.approx(second, rel=0.01, nan_ok=True), (metric, statistic)


def test_end_to_end_has_the_two_heaps_of_its_classes():
    """Half of the answers have 10 tokens and half 1,000: a log-normal of their mean and variance
    would put the median between the two, where no request is."""
    classes = [RequestClass(Length(500), Length(n), 1.0, 0.0, f"of-{n}") for n in (10, 1000)]
    load = Workload.of_classes(classes, request_rate_per_s=2.0)
    latency = planned(load=load, limits=ONE).candidates.served.latency["e2e"]
    counted = workload(500, Length.histogram([10, 1000]), request_rate_per_s=2.0)
    of_histogram = planned(load=counted, limits=ONE).candidates.served.latency["e2e"]
    for one in (latency, of_histogram):
        quarter, three = one.quantiles[0, 3], one.quantiles[0, 5]
        assert quarter < 0.3
        assert three > 5
    assert latency.mean == pytest.approx(of_histogram.mean, rel=0.02)


def test_the_cache_holds_as_many_requests_as_the_decoding_ones_take():
    """Whole tokens a sequence of the 8B model's 131,072 bytes, half a block of 16 more, and each
    class's prefix once."""
    fit = planned(load=MIX, limits=ONE).evaluator.memory
    contexts = [(share, one.live_context, one.shared_tokens) for share, one in MIX.decoding]
    mean = sum(share * (context + 7.5 - prefix) for share, context, prefix in contexts)
    prefixes = sum(prefix for _, _, prefix in contexts)
    room = fit.kv_cache[0] / 131_072 - prefixes
    assert fit.max_concurrency[0] == pytest.approx(room / mean, rel=1e-9)


def test_answers_of_one_token_have_no_tpot():
    load = Workload.of_classes([CHAT, LABEL], request_rate_per_s=5.0)
    found = answer(load=load, limits=ONE)["recommended"]
    chat, label = found["classes"]
    assert label["tpot_ms"] == dict.fromkeys(("mean", "p50", "p95", "p99"))
    assert label["e2e_ms"] == label["ttft_ms"]
    assert found["latency"]["tpot_ms"] == chat["tpot_ms"]


def test_a_bill_is_shared_over_the_mean_lengths_of_all_classes():
    one = RequestClass(Length(1000), Length(200), 3.0)
    other = RequestClass(Length.histogram([2000, 4000]), Length(40), 1.0, 0.5, "other")
    load = Workload.of_classes([replace(one, name="one"), other], request_rate_per_s=2.0)
    serving = planned_serving({"id": "any"} | answer(load=load, limits=ONE))
    assert float(serving.input_tokens) == pytest.approx(0.75 * 1000 + 0.25 * 3000)
    assert float(serving.output_tokens) == pytest.approx(0.75 * 200 + 0.25 * 40)
    assert float(serving.cached_share) == pytest.approx(0.25 * 1500 / 1500)


# SLOs of a class


def bounded(slo):
    return Workload.of_classes(
        [replace(CHAT, slo=slo.get("chat", {})), replace(RAG, slo=slo.get("rag", {}))],
        request_rate_per_s=12.0,
    )


def test_a_plan_meets_the_slos_of_every_class():
    found = answer(load=bounded({}), limits=ONE)["recommended"]
    ttft = {one["name"]: one["ttft_ms"]["p95"] for one in found["classes"]}
    assert ttft["rag"] > 1.2 * ttft["chat"]
    between = (ttft["rag"] + ttft["chat"]) / 2
    easy = answer(load=bounded({"chat": {"ttft_p95_ms": between}}), limits=ONE)
    assert easy["recommended"]["slo"]["binding"] == "ttft_p95_ms@chat"
    hard = answer(load=bounded({"rag": {"ttft_p95_ms": between}}), limits=ONE)
    assert hard["recommended"] is None
    assert "ttft_p95_ms@rag is" in hard["reason"]
    assert hard["inputs"]["slo"] == {}
    assert hard["inputs"]["workload"]["classes"][1]["slo"] == {"ttft_p95_ms": between}


def test_attainment_is_the_share_of_requests_within_the_bounds_of_their_class():
    served = answer(load=bounded({}), limits=ONE)["recommended"]
    never = {"rag": {"e2e_p95_ms": 1e-3}}
    found = answer(load=bounded(never), limits=ONE)["nearest"]
    assert served["slo"]["attainment"] == 1
    assert found["slo"]["attainment"] == pytest.approx(0.75)


def test_a_batch_is_kept_small_for_the_tpot_of_a_class():
    full = {"request_rate_per_s": None, "saturate": True}
    load, free = (replace(bounded(slo), **full) for slo in ({"chat": {"tpot_mean_ms": 15.0}}, {}))
    kept, most = (answer(load=one, limits=ONE)["candidates"][0] for one in (load, free))
    assert kept["serving"]["max_num_seqs"] < most["serving"]["max_num_seqs"]
    assert kept["classes"][0]["tpot_ms"]["mean"] <= 15
