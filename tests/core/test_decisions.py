"""What a decision rests on, and what others would bring: against plans asked for one by one."""

from __future__ import annotations

import re
from decimal import Decimal
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.choice import TIE
from advisor.core.plans import plan
from tests.core.profiles import answer, device, planned, request, unpriced, workload
from tests.core.strategies import examples, spread

WAY = (
    "hardware", "accelerators", "replicas", "tensor_parallel", "pipeline_parallel",
    "expert_parallel", "attention_data_parallel", "decode_context_parallel",
)  # fmt: skip
BOTH = (device("h100"), device("mi300x"))
OPEN = workload(1000, 250, request_rate_per_s=4.0)
CLOSED = workload(1000, 250, concurrency=200)
SATURATED = workload(1000, 250, saturate=True)


def named(candidate):
    """Which plan it is."""
    return None if candidate is None else {key: candidate[key] for key in WAY}


def exactly(candidate):
    """Limits that leave one plan only."""
    return {
        "tensor_parallel": (candidate["tensor_parallel"],),
        "expert_parallel": (candidate["expert_parallel"],),
        "replicas": (candidate["replicas"],),
    }


def asked(way, of, load, **fields):
    """A plan by itself: no limit and no table but its own."""
    limits = exactly(way) | fields.pop("limits", {})
    (one,) = answer(of, way["hardware"], load, limits=limits, **fields)["candidates"]
    return one


# Sureness


def test_of_plans_that_cost_the_same_the_one_that_surely_meets_its_slos_is_taken():
    """Two of TP1 are at 0.56, one of TP2 well within the limit."""
    load = workload(1000, 250, request_rate_per_s=1.5)
    found = answer("qwen3-32b", "mi300x", load, slo={"tpot_p95_ms": 30.0})
    chosen = found["recommended"]
    assert (chosen["replicas"], chosen["tensor_parallel"]) == (1, 2)
    toss = asked(named(chosen) | {"replicas": 2, "tensor_parallel": 1}, "qwen3-32b", load,
                 slo={"tpot_p95_ms": 30.0})  # fmt: skip
    assert toss["slo"]["met"]
    assert toss["cost"] == chosen["cost"]
    assert toss["slo"]["met_probability"] < chosen["slo"]["met_probability"] - 0.05


@pytest.mark.parametrize(
    ("load", "slo"),
    [
        (workload(1000, 250, request_rate_per_s=150.0), {"tpot_p95_ms": 14.0}),
        (workload(4000, 500, request_rate_per_s=25.0), {"ttft_p95_ms": 900.0}),
        (workload(1000, 250, concurrency=300), {"e2e_p95_ms": 6000.0}),
    ],
)
@pytest.mark.parametrize("least", [0.5, 0.8, 0.95])
def test_the_cheapest_plan_of_a_least_probability_is_that_of_an_exhaustive_search(load, slo, least):
    limits = {"tensor_parallel": (1, 2), "min_met_probability": least}
    found = answer(load=load, slo=slo, limits=limits)["recommended"]
    every = answer(
        load=load, slo=slo, limits={"tensor_parallel": (1, 2), "replicas": tuple(range(1, 65))},
        max_candidates=1000,
    )["candidates"]  # fmt: skip
    sure = [
        one for one in every
        if one["slo"]["met"] and one["slo"]["met_probability"] >= least
        and (one["load"]["utilization"] <= 0.95 or load.concurrency)
    ]  # fmt: skip
    assert sure
    assert found["slo"]["met_probability"] >= least
    assert found["accelerators"] == min(one["accelerators"] for one in sure)


def test_a_batch_is_kept_small_enough_to_be_as_sure_as_is_asked_for():
    slo, one = {"tpot_p95_ms": 30.0}, {"tensor_parallel": (1,)}
    batches = []
    for least in (None, 0.7, 0.9):
        limits = one | {"min_met_probability": least}
        found = answer(load=SATURATED, slo=slo, limits=limits, objective="throughput")
        assert found["recommended"]["slo"]["met_probability"] >= (least or 0)
        batches.append(found["recommended"]["serving"]["max_num_seqs"])
    assert batches == sorted(batches, reverse=True)
    assert batches[0] > batches[-1]


TWO = {"tensor_parallel": (1,), "replicas": (2,)}
SLOW = {"of": "qwen3-32b", "on": "mi300x", "load": workload(1000, 250, request_rate_per_s=1.5)}


def test_a_plan_that_is_not_as_sure_as_asked_for_is_refused_with_both_figures():
    reached = answer(**SLOW, limits=TWO)["recommended"]["latency"]["tpot_ms"]["p95"]
    slo = {"tpot_p95_ms": reached * 1.02}
    free = answer(**SLOW, slo=slo, limits=TWO)["recommended"]
    met = free["slo"]["met_probability"]
    found = answer(**SLOW, slo=slo, limits=TWO | {"min_met_probability": 0.9})
    assert found["recommended"] is None
    assert f"its met_probability is {met:.4g}, min_met_probability is 0.9" in found["reason"]
    (missed,) = found["missed_limits"]
    assert missed["limit"] == "min_met_probability"
    mean, ends = free["latency"]["tpot_ms"]["mean"], free["confidence"]["tpot_ms"]
    low, high = (log(end / mean) for end in ends)  # 80 % between them
    margin = exp((low + high) / 2 + (high - low) / 2)  # and 90 % below the higher one
    assert missed["times"] == pytest.approx(margin / 1.02, rel=1e-3)


def test_slos_that_are_missed_are_named_before_that_they_are_not_surely_met():
    reached = answer(**SLOW, limits=TWO)["recommended"]["latency"]["tpot_ms"]["p95"]
    limits = TWO | {"min_met_probability": 0.8}
    found = answer(**SLOW, slo={"tpot_p95_ms": reached / 1.1}, limits=limits)
    assert [one["limit"] for one in found["missed_limits"]] == [
        "tpot_p95_ms", "min_met_probability",
    ]  # fmt: skip


# What none of the plans keeps


def test_every_limit_that_the_nearest_plan_misses_is_named_with_its_figure_the_worst_first():
    found = answer(slo={"tpot_p95_ms": 0.5, "ttft_p95_ms": 5.0, "e2e_p95_ms": 1e6},
                   limits={"max_cost_per_hour": Decimal("7")})  # fmt: skip
    nearest, missed = found["nearest"], found["missed_limits"]
    values = {
        "tpot_p95_ms": nearest["latency"]["tpot_ms"]["p95"] / 0.5,
        "ttft_p95_ms": nearest["latency"]["ttft_ms"]["p95"] / 5,
        "e2e_p95_ms": nearest["latency"]["e2e_ms"]["p95"] / 1e6,
        "max_cost_per_hour": float(nearest["cost"]["per_hour"]) / 7,
    }
    over = {limit: times for limit, times in values.items() if times > 1}
    assert {one["limit"]: one["times"] for one in missed} == pytest.approx(over, rel=1e-4)
    times = [one["times"] for one in missed]
    assert times == sorted(times, reverse=True)
    for one in missed:
        assert one["limit"] in found["reason"]


@pytest.mark.parametrize(
    ("limits", "limit"),
    [({"max_accelerators": 4}, "max_accelerators"),
     ({"max_cost_per_hour": Decimal("30")}, "max_cost_per_hour"),
     ({"max_cost_per_hour": Decimal("0")}, "max_cost_per_hour")],
)  # fmt: skip
def test_where_the_limits_leave_too_few_accelerators_the_fewest_that_hold_are_the_nearest(
    limits, limit
):
    load = workload(1000, 250, request_rate_per_s=150.0)
    found = answer(load=load, limits=limits)
    free = answer(load=load)
    assert found["recommended"] is None
    assert named(found["nearest"]) == named(free["recommended"])
    assert [one["limit"] for one in found["missed_limits"]] == [limit]
    assert limit in found["reason"]
    assert {one["code"] for one in found["rejected"]} <= {
        "overloaded", "over_max_accelerators", "over_max_cost",
    }  # fmt: skip


def test_a_saturating_load_that_no_money_serves_names_the_cost():
    found = answer(load=SATURATED, limits={"max_cost_per_hour": Decimal("1")})
    assert [one["limit"] for one in found["missed_limits"]] == ["max_cost_per_hour"]
    assert "costs 6.88 an hour, max_cost_per_hour is 1" in found["reason"]


def test_hardware_without_a_price_is_refused_under_a_cost_limit_for_that():
    found = answer(on=unpriced("h100"), objective="latency",
                   limits={"max_cost_per_hour": Decimal("100")})  # fmt: skip
    assert found["missed_limits"] == [{"limit": "max_cost_per_hour", "times": None}]
    assert "has no price" in found["reason"]


def test_a_plan_near_saturation_is_refused_for_its_load_whatever_is_allowed():
    free = answer(limits={"tensor_parallel": (1,), "replicas": (1,)})["recommended"]
    rate = free["throughput"]["saturation_requests_per_s"] * 0.985
    load = workload(1000, 250, request_rate_per_s=rate)
    limits = {"tensor_parallel": (1,), "replicas": (1,), "max_utilization": 1.0}
    found = answer(load=load, limits=limits)
    assert found["recommended"] is None
    assert [one["limit"] for one in found["missed_limits"]] == ["max_utilization"]
    assert "0.985 times what it saturates at, the limit is 0.98" in found["reason"]


def test_nothing_is_missed_where_a_plan_is_recommended():
    assert answer()["missed_limits"] == []


# The next accelerators

NEXT = [
    ({"of": "llama-3.1-70b", "load": OPEN, "slo": {"tpot_p95_ms": 40.0}}, 64),
    ({"of": "qwen3-32b", "on": BOTH, "load": OPEN, "slo": {"tpot_p95_ms": 50.0}}, 64),
    ({"of": "llama-3.1-8b", "load": workload(1000, 250, request_rate_per_s=40.0),
      "slo": {"tpot_p95_ms": 20.0}}, 64),
    ({"of": "llama-3.1-8b", "load": CLOSED, "slo": {"e2e_p95_ms": 8000.0}}, 64),
    ({"of": "llama-3.1-8b", "load": workload(1000, 250, request_rate_per_s=100.0)}, 16),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "most"), NEXT)
@pytest.mark.parametrize("objective", ["cost", "throughput"])
def test_the_next_plans_are_the_best_of_every_larger_one(ask, most, objective):
    limits = {"max_accelerators": most}
    found = answer(**ask, objective=objective, limits=limits)
    chosen, (another, larger) = found["recommended"], found["next_accelerators"]
    every = answer(
        **{**ask, "on": device(chosen["hardware"])}, objective=objective, max_candidates=1000,
        limits=limits | {"replicas": tuple(range(1, most + 1))},
    )["candidates"]  # fmt: skip
    kept = [
        one for one in every
        if one["slo"]["met"] and (one["load"]["utilization"] <= 0.95 or ask["load"].concurrency)
        and chosen["accelerators"] < one["accelerators"] <= most
    ]  # fmt: skip
    size = min(one["accelerators"] for one in kept)

    def worth(one):
        if objective == "throughput":
            return -one["throughput"]["saturation_output_tokens_per_s"]
        return one["latency"]["e2e_ms"]["p95"]

    best = min((one for one in kept if one["accelerators"] == size), key=worth)
    assert named(larger["plan"]) == named(best)
    assert named(another["plan"]) == named(chosen) | {
        "replicas": chosen["replicas"] + 1,
        "accelerators": chosen["accelerators"] // chosen["replicas"] * (chosen["replicas"] + 1),
    }


def test_what_the_next_accelerators_change_is_the_difference_to_the_plan_recommended():
    found = answer("qwen3-32b", slo={"tpot_p95_ms": 40.0})
    chosen = found["recommended"]
    for step in found["next_accelerators"]:
        then, change = asked(step["plan"], "qwen3-32b", OPEN), step["change"]
        assert step["reason"] is None
        for metric in ("ttft", "tpot", "e2e"):
            before, after = (one["latency"][f"{metric}_ms"]["p95"] for one in (chosen, then))
            assert step["plan"][f"{metric}_p95_ms"] == after
            assert change[f"{metric}_p95_ms"] == pytest.approx(after - before, abs=0.01)
        assert change["accelerators"] == then["accelerators"] - chosen["accelerators"]
        costs = [Decimal(one["cost"]["per_hour"]) for one in (chosen, then)]
        assert Decimal(change["cost_per_hour"]) == costs[1] - costs[0] > 0
        assert Decimal(step["plan"]["cost_per_hour"]) == costs[1]
        rates = [one["throughput"]["saturation_output_tokens_per_s"] for one in (chosen, then)]
        assert change["saturation_output_tokens_per_s"] == pytest.approx(rates[1] - rates[0], 1e-3)


@pytest.mark.parametrize(
    ("load", "limits", "limit"),
    [
        (OPEN, {"max_accelerators": 1}, "max_accelerators"),
        (OPEN, {"max_cost_per_hour": Decimal("10")}, "max_cost_per_hour"),
        (OPEN, {"replicas": (1,), "tensor_parallel": (1,)}, "replicas"),
        (workload(1000, 250, concurrency=1), {"tensor_parallel": (1,)}, "concurrency"),
    ],
)
def test_the_limit_that_leaves_no_larger_plan_is_named(load, limits, limit):
    found = answer(load=load, limits=limits)
    for step in found["next_accelerators"]:
        assert step["plan"] is step["change"] is None
        assert step["reason"].startswith(f"{limit} leaves no more than 1 replica")
    assert f"No larger plan: {limit}" in " ".join(found["explanation"])


def test_the_sentence_is_on_another_replica_where_the_next_number_is_slower():
    """Three of TP1 are more than one of TP2, and slower; two of TP2 are faster."""
    found = answer("qwen3-32b", "mi300x", workload(1000, 250, request_rate_per_s=1.5),
                   slo={"tpot_p95_ms": 30.0})  # fmt: skip
    another, larger = found["next_accelerators"]
    assert larger["change"]["e2e_p95_ms"] > 0 > another["change"]["e2e_p95_ms"]
    (words,) = [line for line in found["explanation"] if line.startswith("The next accelerators")]
    assert f"{another['plan']['replicas']} replicas x TP2" in words


def test_spares_are_kept_in_the_next_plan():
    found = answer(limits={"spare_replicas": 2, "tensor_parallel": (1,)})
    another = found["next_accelerators"][0]["plan"]
    assert another["replicas"] == found["recommended"]["replicas"] + 1 == 4
    alone = asked(named(another) | {"replicas": 2}, "llama-3.1-8b", OPEN)
    assert another["e2e_p95_ms"] == alone["latency"]["e2e_ms"]["p95"]


# Looser and tighter SLOs

QUESTIONS = [
    {"of": "llama-3.1-70b", "on": BOTH, "load": OPEN,
     "slo": {"ttft_p95_ms": 250.0, "tpot_p95_ms": 30.0}},
    {"of": "llama-3.1-8b", "load": workload(1000, 250, request_rate_per_s=40.0),
     "slo": {"tpot_p95_ms": 13.0, "e2e_p99_ms": 3500.0}},
    {"of": "qwen3-32b", "on": BOTH, "load": CLOSED,
     "slo": {"ttft_p95_ms": 600.0, "tpot_p95_ms": 50.0}},
    {"of": "qwen3-32b", "on": BOTH, "load": SATURATED, "slo": {"tpot_p95_ms": 50.0}},
    {"of": "llama-3.1-8b", "load": workload(1000, 250, request_rate_per_s=1500.0),
     "slo": {"tpot_p95_ms": 13.0}, "limits": {"max_accelerators": 300}},
    {"of": "llama-3.1-8b", "load": OPEN, "slo": {"tpot_p95_ms": 7.0},
     "limits": {"replicas": (1, 2)}},
    {"of": "qwen3-32b", "on": "mi300x", "load": workload(1000, 250, request_rate_per_s=1.5),
     "slo": {"tpot_p95_ms": 30.0}, "limits": {"min_met_probability": 0.8}},
]  # fmt: skip


@pytest.mark.parametrize("ask", QUESTIONS)
@pytest.mark.parametrize("objective", ["cost", "latency", "throughput", "balanced"])
def test_what_other_slos_would_bring_is_what_asking_with_them_answers(ask, objective):
    found = answer(**ask, objective=objective, explain="full")
    tried = found["slo_sensitivity"]
    assert [one["slo"] for one in tried] == [slo for slo in ask["slo"] for _ in "ab"]
    for one, factor in zip(tried, [1.2, 0.8] * len(ask["slo"]), strict=True):
        assert one["limit_ms"] == ask["slo"][one["slo"]]
        assert one["instead_ms"] == pytest.approx(one["limit_ms"] * factor, rel=1e-11)
        slo = ask["slo"] | {one["slo"]: one["instead_ms"]}
        other = answer(**{**ask, "slo": slo}, objective=objective)["recommended"]
        assert named(one["plan"]) == named(other)
        if other is None:
            assert one["reason"]
            continue
        assert one["plan"]["e2e_p95_ms"] == other["latency"]["e2e_ms"]["p95"]
        assert one["plan"]["cost_per_hour"] == other["cost"]["per_hour"]
        if found["recommended"] is not None:
            bills = [Decimal(each["cost"]["per_hour"]) for each in (found["recommended"], other)]
            assert Decimal(one["saved_per_hour"]) == bills[0] - bills[1]


def test_a_looser_slo_that_saves_an_accelerator_says_so_in_words():
    load = workload(1000, 250, request_rate_per_s=40.0)
    tight = answer(load=load, slo={"tpot_p95_ms": 11.0})
    (one,) = tight["slo_sensitivity"]
    assert one["instead_ms"] == 13.2
    assert Decimal(one["saved_per_hour"]) > 0
    fewer = tight["recommended"]["accelerators"] - one["plan"]["accelerators"]
    assert Decimal(one["saved_per_hour"]) == fewer * Decimal("6.88")
    assert f"which saves {one['saved_per_hour']} an hour." in tight["explanation"][-1]


def test_a_looser_slo_that_changes_nothing_saves_0():
    found = answer(slo={"tpot_p95_ms": 1000.0, "ttft_p95_ms": 5000.0})
    assert [one["saved_per_hour"] for one in found["slo_sensitivity"]] == ["0", "0"]
    assert "No SLO that is 20 % looser would save anything." in found["explanation"]
    faster = answer(slo={"tpot_p95_ms": 1000.0}, objective="latency")["explanation"]
    assert "No SLO that is 20 % looser would change the choice." in faster


def test_another_plan_of_the_same_cost_is_no_saving():
    load = workload(1000, 250, request_rate_per_s=20.0)
    found = answer(load=load, slo={"tpot_p95_ms": 9.0})
    (one,) = found["slo_sensitivity"]
    assert named(one["plan"]) != named(found["recommended"])
    assert one["saved_per_hour"] == "0"
    assert "No SLO that is 20 % looser would save anything." in found["explanation"]


def test_a_looser_slo_that_makes_a_plan_possible_names_it():
    reached = answer(objective="latency", limits={"max_accelerators": 8})["recommended"]
    limit = reached["latency"]["tpot_ms"]["p95"] / 1.1
    found = answer(slo={"tpot_p95_ms": limit}, limits={"max_accelerators": 8})
    assert found["recommended"] is None
    (one,) = found["slo_sensitivity"]
    assert one["plan"]["tpot_p95_ms"] <= one["instead_ms"]
    assert one["saved_per_hour"] is None
    assert any("which meets every limit" in line for line in found["explanation"])


def test_a_batch_that_follows_an_slo_is_decided_anew_only_where_that_is_asked_for():
    slo = {"ttft_p95_ms": 600.0, "tpot_p95_ms": 50.0}
    brief = answer("qwen3-32b", load=CLOSED, slo=slo)["slo_sensitivity"]
    assert [one["plan"] is None for one in brief] == [False, True]
    assert "explain full" in brief[1]["reason"]
    free = answer("qwen3-32b", load=CLOSED, slo=slo, serving={"max_num_seqs": 64})
    assert all(one["plan"] for one in free["slo_sensitivity"])
    assert free["crossing_loads"] is None


def test_a_decision_under_other_slos_leaves_the_first_as_it_was():
    ask = request("qwen3-32b", load=CLOSED, slo={"tpot_p95_ms": 50.0}, explain="full")
    first = plan(ask)
    slots, settings = first.evaluator.slots.copy(), first.evaluator.settings
    assert first.as_dict() == first.as_dict() == plan(ask).as_dict()
    assert np.array_equal(first.evaluator.slots, slots)
    assert first.evaluator.settings == settings


# What a small batch costs


def test_what_a_batch_within_its_slo_gives_up_is_what_the_engines_own_limit_serves():
    slo, one = {"tpot_p95_ms": 20.0}, {"tensor_parallel": (1,), "replicas": (1,)}
    for load in (workload(1000, 250, concurrency=200), SATURATED):
        found = answer(load=load, slo=slo, limits=one)
        limit, chosen = found["batch_limit"], found["recommended"]
        batch = limit["unlimited"]["max_num_seqs"]
        assert limit["kept"]["max_num_seqs"] == chosen["serving"]["max_num_seqs"] < batch
        (wide,) = answer(load=load, limits=one, serving={"max_num_seqs": batch})["candidates"]
        for part, candidate in (("kept", chosen), ("unlimited", wide)):
            figures = limit[part]
            assert figures["output_tokens_per_s"] == candidate["throughput"]["output_tokens_per_s"]
            assert figures["slot_wait_mean_ms"] == candidate["load"]["slot_wait_mean_ms"]
            for metric in ("ttft", "tpot", "e2e"):
                p95 = candidate["latency"][f"{metric}_ms"]["p95"]
                assert figures[f"{metric}_p95_ms"] == p95
        given, possible = (limit[part]["output_tokens_per_s"] for part in ("kept", "unlimited"))
        assert given < possible
        (words,) = [line for line in found["explanation"] if "That batch serves" in line]
        assert re.findall(r"\d[\d.]*", words)[:2] == [f"{given:.4g}", f"{possible:.4g}"]


@pytest.mark.parametrize("slo", [{}, {"tpot_p95_ms": 1000.0}, {"ttft_p95_ms": 1e6}])
def test_a_batch_that_no_slo_limits_costs_nothing(slo):
    assert answer(load=CLOSED, slo=slo)["batch_limit"] is None


# Invariants


@st.composite
def asks(draw):
    """A model on some devices under an open or a closed load, with two SLOs that may bind."""
    name = draw(st.sampled_from(["llama-3.1-8b", "qwen3-32b", "qwen3-30b-a3b"]))
    devices = draw(st.lists(st.sampled_from(["h100", "h200", "mi300x", "l40s"]),
                            min_size=1, max_size=2, unique=True))  # fmt: skip
    lengths = draw(st.sampled_from([(200, 100), (1000, 250), (4000, 30)]))
    if draw(st.booleans()):
        load = workload(*lengths, request_rate_per_s=draw(spread(0.1, 200)))
    else:
        load = workload(*lengths, concurrency=draw(st.integers(1, 400)))
    slo = {
        "ttft_p95_ms": draw(spread(50, 5000)), "tpot_p95_ms": draw(spread(5, 100)),
        "e2e_p95_ms": draw(spread(1000, 60_000)),
    }  # fmt: skip
    keys = draw(st.lists(st.sampled_from(sorted(slo)), min_size=1, max_size=2, unique=True))
    return {
        "of": name, "on": tuple(map(device, devices)), "load": load,
        "slo": {key: slo[key] for key in keys},
    }  # fmt: skip


def worth(ask, objective):
    """What the objective makes small, of the plan recommended; infinite where there is none."""
    found = planned(**ask, objective=objective)
    return np.inf if found.recommended is None else float(found.score[found.recommended])


@examples(40)
@given(asks(), st.floats(0.5, 0.999), st.sampled_from(["cost", "latency"]))
def test_a_tighter_slo_is_never_better_for_the_objective(ask, factor, objective):
    key = sorted(ask["slo"])[0]
    tighter = ask | {"slo": ask["slo"] | {key: ask["slo"][key] * factor}}
    assert worth(tighter, objective) >= worth(ask, objective) / (1 + TIE)


@examples(40)
@given(
    asks(), st.integers(1, 300), st.integers(1, 100),
    st.sampled_from(["cost", "latency", "throughput"]),
)  # fmt: skip
def test_more_accelerators_allowed_are_never_worse_for_the_objective(ask, few, more, objective):
    fewer, free = (
        worth(ask | {"limits": {"max_accelerators": most}}, objective) for most in (few, few + more)
    )
    assert free <= fewer * (1 + TIE)


@examples(25)
@given(asks(), st.floats(0.5, 0.95))
def test_to_be_surer_never_costs_less(ask, least):
    sure = ask | {"limits": {"min_met_probability": least}}
    assert worth(sure, "cost") >= worth(ask, "cost") / (1 + TIE)


def test_what_is_asked_for_in_full_changes_no_choice():
    for ask in QUESTIONS:
        brief, full = (answer(**ask, explain=each) for each in ("brief", "full"))
        assert brief["recommended"] == full["recommended"]
        assert brief["candidates"] == full["candidates"]
