"""Static batching: requests begin a batch together, and the next begins when the longest has ended.

As engines worked before Orca (Yu et al. 2022). A batch takes what waits when it begins, up to its
most sequences; its prompts are computed together, then all of its sequences step until the longest
answer is complete, those that have ended too. Each keeps room in the KV cache for the longest
request from the beginning. Answers are sent token by token: a short one is complete before its
batch is.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from advisor.core.requests import Requests
from advisor.core.simulator import linear_pieces
from advisor.core.steps import StepFunction
from advisor.core.workload import Length, Workload

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_NORMAL = np.linspace(-9.0, 9.0, 1801)
"""Standard normal values that the largest of several is integrated over."""

_BELOW = np.array([math.erfc(-z / math.sqrt(2)) / 2 for z in _NORMAL])


@dataclass(frozen=True)
class StaticReplica:
    """A replica: its step times, the most sequences of a batch, how many tokens a step computes,
    and the time before a request reaches it [s]."""

    step: StepFunction
    slots: int
    token_budget: float
    front_end_s: float = 0.0

    def prefill_s(self, count: float, tokens: float, pairs: float, cached: float) -> float:
        """Time of so many prompts, in as many steps as the budget asks for, cut evenly."""
        steps = max(math.ceil(tokens / self.token_budget), 1)
        share = count / steps
        before = max(1 - share, 0.0) * tokens / count / 2  # of a prompt that takes several steps
        return steps * self.step(
            0, 0, tokens / steps, pairs / steps, cached / steps + before, share
        )

    def saturation(self, workload: Workload) -> float:
        """Requests per second of full batches, one after the other: B over the mean time of their
        prompts and of the steps of the longest answer."""
        count, new = float(self.slots), workload.prompt_tokens.mean
        pairs, cached = workload.prompt_pairs, workload.cached_tokens
        prefill = self.prefill_s(count, count * new, count * pairs, count * cached)
        longest, square = (largest(workload.output_tokens, self.slots, p) for p in (1, 2))
        steps = longest - 1
        if steps <= 0:
            return count / prefill
        context = workload.input_tokens.mean + (square - longest) / (2 * steps)
        return count / (prefill + steps * self.step(count, context, 0, 0, 0, 0))


def largest(length: Length, count: int, power: int = 1) -> float:
    """E[max^power] of `count` lengths drawn independently [tokens^power]."""
    values = [
        one.mean * np.exp(one.sigma * _NORMAL - one.sigma**2 / 2) if one.sigma else [one.mean]
        for one in length.components
    ]
    points = np.unique(np.concatenate(values))
    upto, before = (_share(length, points, side) ** count for side in ("right", "left"))
    at, between = upto - before, before[1:] - upto[:-1]
    middle = (points[1:] + points[:-1]) / 2
    total = (points**power * at).sum() + (middle**power * between).sum()
    return float(total / (at.sum() + between.sum()))


def _share(length: Length, points: Array, side: Literal["left", "right"]) -> Array:
    """The share of lengths up to each point, those of just so many tokens in (`right`) or not."""
    found = np.zeros(len(points))
    for one in length.components:
        if one.sigma:
            normal = (np.log(points / one.mean) + one.sigma**2 / 2) / one.sigma
            found += one.share * np.interp(normal, _NORMAL, _BELOW)
        else:
            found += one.share * np.searchsorted([one.mean], points, side=side)
    return np.minimum(found, 1.0)


@dataclass(frozen=True)
class StaticRun:
    """When each request was sent, had its first token and was done [s], arrays of shape
    (count,)."""

    requests: Requests
    sent_s: Array
    first_token_s: Array
    done_s: Array

    def p95(self, first: int) -> tuple[float, float, float]:
        """p95 of TTFT, TPOT (NaN where no request has a gap) and E2E [s], the first ones left
        out."""
        gaps = self.requests.output_tokens - 1
        decode = self.done_s - self.first_token_s
        tpot = (decode / np.maximum(gaps, 1))[first:][gaps[first:] > 0]
        ttft, e2e = (at[first:] - self.sent_s[first:] for at in (self.first_token_s, self.done_s))
        found = [float(np.quantile(x, 0.95)) if len(x) else np.nan for x in (ttft, tpot, e2e)]
        return found[0], found[1], found[2]


def simulate_static(replica: StaticReplica, requests: Requests) -> StaticRun:
    """Serve all requests, in the order in which they reach the replica."""
    count = len(requests)
    sent, first, done = np.zeros(count), np.zeros(count), np.zeros(count)
    if requests.sent_s is not None:
        sent[:] = requests.sent_s
    known = count if requests.concurrency is None else min(requests.concurrency, count)
    coming = [(sent[i] + replica.front_end_s, i) for i in range(known)]
    heapq.heapify(coming)
    now = 0.0
    while coming:
        now = max(now, coming[0][0])
        batch: list[int] = []
        while coming and coming[0][0] <= now and len(batch) < replica.slots:
            batch.append(heapq.heappop(coming)[1])
        index = np.array(batch)
        prefill, after = _batch(replica, requests, index)
        first[index] = now + prefill
        done[index] = now + prefill + after[requests.output_tokens[index] - 1]
        now += prefill + after[-1]
        for at in np.sort(done[index])[: count - known]:
            sent[known] = at
            heapq.heappush(coming, (at + replica.front_end_s, known))
            known += 1
    return StaticRun(requests, sent, first, done)


def _batch(replica: StaticReplica, requests: Requests, index: Index) -> tuple[float, Array]:
    """Time of a batch's prompts, and of 0, 1, ... decode steps to the last of its longest [s]."""
    inputs, new = requests.input_tokens[index], requests.new_input_tokens[index]
    cached, count = inputs - new, len(index)
    pairs = float((new * (cached + (new + 1) / 2)).sum())
    prefill = replica.prefill_s(count, float(new.sum()), pairs, float(cached.sum()))
    steps = int(requests.output_tokens[index].max()) - 1
    if not steps:
        return prefill, np.zeros(1)
    context = float(inputs.mean()) + 1

    def seconds(step: int) -> float:
        return replica.step(count, context + step, 0, 0, 0, 0)

    # Pieces come in order of time.
    each = [np.linspace(first, last, n) for n, first, last in linear_pieces(seconds, steps)]
    return prefill, np.concatenate([[0.0], np.cumsum(np.concatenate(each))])
