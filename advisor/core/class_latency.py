"""Latencies of each class of requests and of all together, from those of requests of one length."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from advisor.core.latency import Latency, end_to_end, mixed, undefined
from advisor.core.lengths import Component, RequestClass
from advisor.core.workload import Workload

Array = NDArray[np.float64]

CLASS_METRICS = ("ttft", "tpot", "e2e")
"""Latencies of one class: its gaps are steps that all classes share."""

Latencies = Mapping[str, Latency]
OfPrompt = Callable[[RequestClass], Latency]
OfAnswer = Callable[[RequestClass, Component], Latency]


def latencies(
    workload: Workload, rows: int, ttft: OfPrompt, tpot: OfAnswer, itl: Callable[[Array], Latency]
) -> tuple[dict[str, Latency], dict[str, Latencies]]:
    """The latencies of all requests, and TTFT, TPOT and E2E of each class by its name.

    `ttft` is that of requests with inputs of one length, `tpot` that of a class's answers of one
    length that has gaps; `itl` is that of all gaps around their mean: classes share the steps.
    """
    mix, tpot = workload.mix, cache(tpot)
    classes = tuple(_of_class(one, rows, ttft, tpot) for one in mix)
    shares = [one.share for one in mix]
    answering = [(one, found["tpot"]) for one, found in zip(mix, classes, strict=True) if one.gaps]
    gaps = undefined(rows)
    if answering:
        several = [one.share * one.with_gaps for one, _ in answering]
        gaps = mixed(several, [found for _, found in answering])
    whole = {
        "ttft": mixed(shares, [found["ttft"] for found in classes]),
        "tpot": gaps,
        "itl": itl(mean_gap(workload, rows, tpot)),
        "e2e": mixed(shares, [found["e2e"] for found in classes]),
    }
    if not workload.classes:
        return whole, {}
    return whole, {one.name: found for one, found in zip(mix, classes, strict=True)}


def mean_gap(workload: Workload, rows: int, tpot: OfAnswer) -> Array:
    """Mean time between two tokens [s], (rows,): of TPOT, each request as often as it has gaps."""
    if not workload.gaps:
        return np.full(rows, np.nan)
    terms = [
        one.share * each.share * each.gaps / workload.gaps * tpot(one, each).mean
        for one in workload.mix
        for each in one.output_tokens.grouped
        if each.gaps
    ]
    return np.asarray(sum(terms))


def _of_class(one: RequestClass, rows: int, ttft: OfPrompt, tpot: OfAnswer) -> Latencies:
    prompts, outputs = one.by_prompt, one.output_tokens.grouped
    first = mixed([each.share for each in prompts], [ttft(each) for each in prompts])
    gaps = [(each, tpot(one, each) if each.gaps else undefined(rows)) for each in outputs]
    several = [(each.share, found) for each, found in gaps if each.gaps]
    whole = [end_to_end(first, found, each) for each, found in gaps]
    return {
        "ttft": first,
        "tpot": mixed(*zip(*several, strict=True)) if several else undefined(rows),
        "e2e": mixed([each.share for each in outputs], whole),
    }
