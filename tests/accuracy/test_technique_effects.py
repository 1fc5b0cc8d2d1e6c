"""Effects of techniques beside published runs with and without them.

Pairs are rows of `measurements.csv` that differ in one thing, and one stream in gpt-fast (figures
of pytorch-labs/gpt-fast@32971d3, in `data/before_after.csv`; its INT4 has smaller groups than
`int4_awq`). An effect is output tokens a second after over before.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pytest

from advisor.accuracy.rows import Row, plan_request, rows
from advisor.catalog.loader import hardware_profile, model_profile
from advisor.core.precision import WEIGHT_BYTES
from advisor.core.techniques.evaluation import tried
from advisor.core.techniques.outcome import Outcome, outcome
from advisor.core.techniques.subject import Given, subject_of
from advisor.core.workload import Length, Limits, PlanRequest, Serving, Workload

_ALIKE = (
    "source", "engine", "device", "pipeline_parallel", "expert_parallel",
    "attention_data_parallel", "replicas", "input_tokens", "output_tokens", "load", "concurrency",
    "request_rate_per_s", "requests", "max_num_seqs", "max_num_batched_tokens",
)  # fmt: skip
_CHANGED = {
    "weight_quantization": "weights",
    "kv_cache_quantization": "kv_cache",
    "tensor_parallel": "tensor_parallel",
}
_FORMATS = ("-fp8", "-nvfp4", "-fp4", "-mxfp4")


class Pair(NamedTuple):
    technique: str
    name: str
    predicted: float
    measured: float


def without_format(model: str) -> str:
    """Quantized checkpoints are stored under names of their own."""
    for each in _FORMATS:
        model = model.split(each)[0]
    return model


def is_step(technique: str, before: Row, after: Row) -> bool:
    if technique == "weight_quantization":
        return WEIGHT_BYTES[after.weights] < 0.9 * WEIGHT_BYTES[before.weights]
    if technique == "kv_cache_quantization":
        return (before.kv_cache, after.kv_cache) == ("bf16", "fp8")
    return after.tensor_parallel == 2 * before.tensor_parallel


def measured_pairs(technique: str) -> Iterator[tuple[Row, Row]]:
    groups = defaultdict(list)
    others = [name for name in _CHANGED.values() if name != _CHANGED[technique]]
    for row in rows():
        if row.throughput:
            alike = tuple(getattr(row, name) for name in (*_ALIKE, *others))
            groups[without_format(row.model), alike].append(row)
    for group in groups.values():
        for before in group:
            yield from ((before, after) for after in group if is_step(technique, before, after))


def effect(
    request: PlanRequest, technique: str, setting: dict[str, Any], serving: Serving
) -> float | None:
    """What the technique makes of output tokens a second on the same accelerators, or on twice as
    many where it splits wider, with `serving` as it was run then. None where one of the plans
    cannot be."""
    before = outcome(subject_of(request).plan)
    if not isinstance(before, Outcome):
        return None
    found = subject_of(replace(request, serving=serving))
    offers = tried(technique, found, before, Given())
    (one,) = [each for each in offers if dict(each.setting) == setting]
    after = one.in_place or one.after
    assert after is not None, one.reason
    rates = (each.figures["output_tokens_per_s"] for each in (after, before))
    return next(rates) / next(rates)


@cache
def pairs() -> list[Pair]:
    found = []
    for technique, name in _CHANGED.items():
        for before, after in measured_pairs(technique):
            request = plan_request(before)
            wide = replace(request.limits, max_accelerators=64)
            setting = {name: getattr(after, name)}
            serving = plan_request(after).serving
            predicted = effect(replace(request, limits=wide), technique, setting, serving)
            assert before.throughput
            assert after.throughput
            if predicted is not None:
                measured = after.throughput / before.throughput
                found.append(Pair(technique, f"{before.id} {after.id}", predicted, measured))
    return found + one_stream()


def one_stream() -> list[Pair]:
    path = Path(__file__).parent / "data" / "before_after.csv"
    found = []
    with path.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            request = PlanRequest(
                model_profile(row["model"]),
                (hardware_profile(row["device"]),),
                Workload(Length(5), Length(200), concurrency=1),
                objective="latency",
                weights=(row["weights"],),
                limits=Limits(tensor_parallel=(int(row["tensor_parallel"]),), replicas=(1,)),
                serving=Serving(engine="generic", max_model_len=2048),
            )
            technique, given = row["technique"], row["setting"]
            setting = {_CHANGED[technique]: int(given) if given.isdigit() else given}
            predicted = effect(request, technique, setting, request.serving)
            assert predicted is not None
            measured = float(row["after_tokens_per_s"]) / float(row["before_tokens_per_s"])
            found.append(Pair(technique, f"gpt-fast {row['model']}", predicted, measured))
    return found


def of(technique: str) -> list[Pair]:
    return [each for each in pairs() if each.technique == technique]


def off(each: Pair) -> float:
    return abs(each.predicted / each.measured - 1)


@pytest.mark.parametrize(
    ("technique", "least"),
    [("weight_quantization", 15), ("kv_cache_quantization", 3), ("tensor_parallel", 120)],
)
def test_every_effect_has_the_right_sign_and_is_within_a_quarter_in_the_median(technique, least):
    found = of(technique)
    assert len(found) >= least
    assert [each for each in found if (each.predicted - 1) * (each.measured - 1) < 0] == []
    assert median(map(off, found)) < 0.25
    within = sum(off(each) < 0.35 for each in found)
    assert within >= 0.9 * len(found)


def test_what_is_gained_is_within_a_quarter_in_the_median():
    """The gain itself, the effect less 1, is a harder measure where it is small: of all pairs, and
    of tensor parallelism, it is within a quarter; of quantization it is not (docs/techniques)."""
    for found in (pairs(), of("tensor_parallel")):
        errors = [abs((each.predicted - 1) / (each.measured - 1) - 1) for each in found]
        assert median(errors) < 0.25


def test_the_page_of_techniques_says_how_far_off_the_gains_of_each_are():
    page = (Path(__file__).parents[2] / "docs/techniques/README.md").read_text(encoding="utf-8")
    for technique in _CHANGED:
        found = of(technique)
        gains = [abs((each.predicted - 1) / (each.measured - 1) - 1) for each in found]
        figures = f"{len(found)} | {median(map(off, found)):.0%} | {median(gains):.0%}"
        assert f"| `{technique}` | {figures} |" in page, figures
