"""Latencies of each class of requests and of all together, from those of requests of one length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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
    workload: Workload,
    rows: int,
    ttft: OfPrompt | None,
    tpot: OfAnswer,
    itl: Callable[[Array], Latency],
) -> tuple[dict[str, Latency], dict[str, Latencies]]:
    """The latencies of all requests, and TTFT, TPOT and E2E of each class by its name.

    `ttft` is that of requests with inputs of one length, None where it has no value; `tpot` that of
    a class's answers of one length that has gaps; `itl` is that of all gaps around their mean:
    classes share the steps.
    """
    mix = workload.mix
    answers = [_answers(one, tpot) for one in mix]
    classes = tuple(
        _of_class(one, rows, ttft, tpot, each) for one, each in zip(mix, answers, strict=True)
    )
    shares = [one.share for one in mix]
    answering = [(one, found["tpot"]) for one, found in zip(mix, classes, strict=True) if one.gaps]
    gaps = undefined(rows)
    if answering:
        several = [one.share * one.with_gaps for one, _ in answering]
        gaps = mixed(several, [found for _, found in answering])
    whole = {
        "ttft": mixed(shares, [found["ttft"] for found in classes]),
        "tpot": gaps,
        "itl": itl(_mean_gap(workload, rows, answers)),
        "e2e": mixed(shares, [found["e2e"] for found in classes]),
    }
    if not workload.classes:
        return whole, {}
    return whole, {one.name: found for one, found in zip(mix, classes, strict=True)}


def mean_gap(workload: Workload, rows: int, tpot: OfAnswer) -> Array:
    """Mean time between two tokens [s], (rows,): of TPOT, each request as often as it has gaps."""
    return _mean_gap(workload, rows, [_answers(one, tpot) for one in workload.mix])


def _mean_gap(workload: Workload, rows: int, answers: Sequence[_Answers]) -> Array:
    if not workload.gaps:
        return np.full(rows, np.nan)
    terms = [
        one.share * each.share * each.gaps / workload.gaps * found.mean
        for one, of_class in zip(workload.mix, answers, strict=True)
        for each, found in of_class
        if found
    ]
    return np.asarray(sum(terms))


_Answers = Sequence[tuple[Component, Latency | None]]
"""The lengths of the answers of a class, and TPOT of those that have gaps."""


def _answers(one: RequestClass, tpot: OfAnswer) -> _Answers:
    return [(each, tpot(one, each) if each.gaps else None) for each in one.output_tokens.grouped]


def _of_class(
    one: RequestClass, rows: int, ttft: OfPrompt | None, tpot: OfAnswer, answers: _Answers
) -> Latencies:
    """TPOT is a request's own mean, which weighs short answers as much as long ones."""
    known, parts = dict(answers), one.output_tokens.parts
    several = [(each.share, known.get(each) or tpot(one, each)) for each in parts if each.gaps]
    gaps = mixed(*zip(*several, strict=True)) if several else undefined(rows)
    if ttft is None:
        return {"ttft": undefined(rows), "tpot": gaps, "e2e": undefined(rows)}
    prompts = one.by_prompt
    first = mixed([each.share for each in prompts], [ttft(each) for each in prompts])
    whole = [end_to_end(first, found, each) if found else first for each, found in answers]
    return {"ttft": first, "tpot": gaps, "e2e": mixed([each.share for each, _ in answers], whole)}
