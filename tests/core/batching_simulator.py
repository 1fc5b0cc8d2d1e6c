"""Continuous batching, one iteration after the other: the yardstick of the closed forms.

One replica; requests queue in order of arrival; a step decodes every running sequence and spends
what is left of its token budget on prompts, the oldest first (chunked prefill, as vLLM does it).
Outputs have two tokens or more.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.core.scalar import ScalarStep


@dataclass(frozen=True)
class Engine:
    """The limits of a replica, and the time before a request reaches it [s]."""

    slots: int
    token_budget: int
    front_end: float


@dataclass
class Measured:
    """Latencies of the requests [s], and how many were served per second, after warm-up."""

    ttft: NDArray[Any]
    tpot: NDArray[Any]
    e2e: NDArray[Any]
    itl_p95: float
    requests_per_s: float
    batch: float


@dataclass
class _Request:
    arrived: float
    inputs: int
    outputs: int
    computed: int = 0
    first: float = 0.0
    done: float = 0.0


@dataclass
class Simulation:
    """A replica's state; requests are known by their index."""

    step: ScalarStep
    engine: Engine
    requests: list[_Request] = field(default_factory=list)
    coming: list[tuple[float, int]] = field(default_factory=list)
    waiting: deque[int] = field(default_factory=deque)
    prompts: deque[int] = field(default_factory=deque)
    decoding: list[tuple[int, int]] = field(default_factory=list)
    finished: list[int] = field(default_factory=list)
    steps: list[tuple[float, float, int]] = field(default_factory=list)
    now: float = 0.0
    context: float = 0.0

    def open(self, rate: float, inputs: int, outputs: int, count: int, seed: int = 1) -> Measured:
        """Poisson arrivals of `count` requests, of which exactly `rate` come a second."""
        random = Random(seed)
        times = list(accumulate(random.expovariate(rate) for _ in range(count)))
        for at in times:
            self._send(at * count / rate / times[-1], inputs, outputs)
        while len(self.finished) < count:
            self._advance()
        return self._measured(count // 10, count)

    def closed(
        self, clients: int, inputs: int, outputs: int, count: int, seed: int = 1
    ) -> Measured:
        """`clients` that send their next request when the last one is answered, until `count`
        are; they start spread over the time that one request takes."""
        random = Random(seed)
        spread = outputs * self.step.seconds(min(clients, self.engine.slots), inputs)
        for _ in range(clients):
            self._send(random.uniform(0, spread), inputs, outputs)
        while len(self.finished) < count:
            for _ in range(self._advance()):
                self._send(self.now, inputs, outputs)
        return self._measured(count // 3, count)

    def _send(self, at: float, inputs: int, outputs: int) -> None:
        heapq.heappush(self.coming, (at + self.engine.front_end, len(self.requests)))
        self.requests.append(_Request(at, inputs, outputs))

    def _advance(self) -> int:
        """One step; how many requests it finished."""
        if not (self.waiting or self.prompts or self.decoding):
            self.now = max(self.now, self.coming[0][0])
        while self.coming and self.coming[0][0] <= self.now:
            self.waiting.append(heapq.heappop(self.coming)[1])
        running = len(self.decoding)
        while self.waiting and running + len(self.prompts) < self.engine.slots:
            self.prompts.append(self.waiting.popleft())
        chunk, pairs, cached, pieces, complete = self._chunks(self.engine.token_budget - running)
        mean = self.context / running if running else 0.0
        length = self.step.seconds(running, mean, chunk, pairs, cached, pieces)
        self.now += length
        self.context += running
        self.steps.append((self.now, length, running))
        done = self._finish()
        for index in complete:
            self._begin(index)
        return done

    def _finish(self) -> int:
        done = 0
        while self.decoding and self.decoding[0][0] == len(self.steps):
            index = heapq.heappop(self.decoding)[1]
            one = self.requests[index]
            one.done = self.now
            self.context -= one.inputs + one.outputs
            self.finished.append(index)
            done += 1
        return done

    def _begin(self, index: int) -> None:
        one = self.requests[index]
        one.first = self.now
        self.context += one.inputs + 1
        heapq.heappush(self.decoding, (len(self.steps) + one.outputs - 1, index))

    def _chunks(self, budget: int) -> tuple[int, float, float, int, list[int]]:
        """Spend the budget on prompts in order: tokens, pairs, cached tokens, pieces of prompts (a
        token of each is sampled, as vLLM does for simplicity), prompts done."""
        chunk, pairs, cached, pieces, complete = 0, 0.0, 0.0, 0, []
        for index in self.prompts:
            one = self.requests[index]
            share = min(budget - chunk, one.inputs - one.computed)
            if share <= 0:
                break
            pairs += share * (one.computed + (share + 1) / 2)
            cached += one.computed
            one.computed += share
            chunk += share
            pieces += 1
            if one.computed == one.inputs:
                complete.append(index)
        for _ in complete:
            self.prompts.popleft()
        return chunk, pairs, cached, pieces, complete

    def _measured(self, warm_up: int, count: int) -> Measured:
        requests = [self.requests[i] for i in self.finished[warm_up:count]]
        arrived, first, done, gaps = np.array(
            [(each.arrived, each.first, each.done, each.outputs - 1) for each in requests]
        ).T
        ends, lengths, running = np.array(self.steps).T
        seen = (ends > done.min()) & (ends <= done.max()) & (running > 0)
        order = np.argsort(lengths[seen])
        share = np.cumsum(running[seen][order]) / running[seen].sum()
        return Measured(
            ttft=first - arrived,
            tpot=(done - first) / gaps,
            e2e=done - arrived,
            itl_p95=float(lengths[seen][order][np.searchsorted(share, 0.95)]),
            requests_per_s=(len(requests) - 1) / (done.max() - done.min()),
            batch=float((lengths[seen] * running[seen]).sum() / lengths[seen].sum()),
        )
