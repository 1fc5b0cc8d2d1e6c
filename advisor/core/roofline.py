"""Roofline time of one microbatch on one pipeline stage, part by part.

The formulas stand here once and serve two uses: many stages at once, each quantity an array that
broadcasts to (rows, columns), and one stage at a time, each a float, which is some ten times faster
where steps come one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from advisor.core.attention import UNBOUNDED
from advisor.core.collectives import all_reduce_seconds, all_to_all_seconds

Array = NDArray[np.float64]
Value = TypeVar("Value", float, Array)


@dataclass(frozen=True)
class Operations(Generic[Value]):
    """What differs between floats and arrays; the arithmetic operators do not."""

    minimum: Callable[[Any, Any], Value]
    maximum: Callable[[Any, Any], Value]
    where: Callable[[Any, Any, Any], Value]


ON_ARRAYS: Operations[Array] = Operations(np.minimum, np.maximum, np.where)
ON_FLOATS: Operations[float] = Operations(min, max, lambda test, yes, no: yes if test else no)


@dataclass(frozen=True)
class LinearCost(Generic[Value]):
    """Weights of one kind: computing a token, and reading them all (experts: one of them) [s]."""

    token: Value
    weights: Value


@dataclass(frozen=True)
class CacheCost(Generic[Value]):
    """One cache: a decoded token on a cached one, a query-key pair of prefill, and moving a token's
    entry [s], as far as `window` tokens back. `exchanges` are the collectives of decode context
    parallelism, of `exchanged` bytes a decoded token."""

    decoded: Value
    pair: Value
    moved: Value
    window: float
    exchanges: Value
    exchanged: Value


@dataclass(frozen=True)
class ExpertCost(Generic[Value]):
    """The routed experts of all layers: `cost`, held by `ranks` ranks. `largest` is the expected
    largest of as many standard normal values."""

    cost: LinearCost[Value]
    experts: int
    chosen: int
    ranks: Value
    largest: Value


@dataclass(frozen=True)
class LinkCost(Generic[Value]):
    """A stage's collectives: how many all-reduces of `hidden` bytes a token over the attention
    ranks, a gather of `logits` bytes a token that the LM head sees (`gathers`: 0 or 1), dispatches
    of `dispatched` bytes a token over all ranks, and the hop to the next stage. Links are skew and
    latency [s] and bandwidth [bytes/s]."""

    reduces: Value
    hidden: Value
    gathers: Value
    logits: Value
    dispatches: Value
    dispatched: Value
    attention_ranks: Value
    ranks: Value
    context_ranks: Value
    inner: tuple[Value, Value, Value]
    outer: tuple[Value, Value, Value]
    hop_latency: Value
    hop_token: Value


@dataclass(frozen=True)
class StageCost(Generic[Value]):
    """What a stage's steps cost in seconds, by part. `state` is moving one sequence's recurrent
    state once, `overlap` the share of the shorter of two times that is not hidden, `fixed` the
    time that every step takes, `sequence` what each sequence adds to it. A sequence decodes
    `verified` tokens in a step, after drafts that take `drafted` plain decode steps."""

    quantized: LinearCost[Value]
    plain: LinearCost[Value]
    head: LinearCost[Value]
    experts: ExpertCost[Value] | None
    caches: tuple[CacheCost[Value], ...]
    state: Value
    overlap: Value
    fixed: Value
    sequence: Value
    link: LinkCost[Value]
    ops: Operations[Value]
    verified: float = 1.0
    drafted: float = 0.0

    def seconds(
        self,
        decode: Value,
        context: Value,
        prefill: Value,
        pairs: Value,
        cached: Value,
        prompts: Value,
    ) -> tuple[Value, Value, Value, Value]:
        """Seconds of compute, memory, interconnect and overhead; arguments as `StepModel.times`."""
        decoded = decode * self.verified
        tokens, headed = decoded + prefill, decoded + prompts
        parts = [
            (self.quantized.token * tokens, self.quantized.weights),
            (self.plain.token * tokens, self.plain.weights),
            (self.head.token * headed, self.head.weights),
            self._attention(decode, context, prefill, pairs, cached, prompts),
        ]
        if self.experts is not None:
            parts.append(self._experts(self.experts, tokens))
        compute, memory = self._overlapped(parts)
        memory = memory + self.state * (2 * decode + prompts)
        link = self._interconnect(tokens, headed) + self._context_exchange(decoded)
        overhead = self.fixed + self.sequence * decode + 0 * link
        if not self.drafted:
            return compute, memory, link, overhead
        plain = replace(self, verified=1.0, drafted=0.0)
        none = 0 * decode
        drafts = plain.seconds(decode, context, none, none, none, none)
        times = zip((compute, memory, link, overhead), drafts, strict=True)
        compute, memory, link, overhead = (one + self.drafted * draft for one, draft in times)
        return compute, memory, link, overhead

    def _attention(
        self,
        decode: Value,
        context: Value,
        prefill: Value,
        pairs: Value,
        cached: Value,
        prompts: Value,
    ) -> tuple[Value, Value]:
        ops = self.ops
        prompts = ops.maximum(prompts, 1.0)
        compute = memory = 0 * decode
        for cache in self.caches:
            seen = decode * ops.minimum(context, cache.window)
            pairs_seen = pairs
            if cache.window < UNBOUNDED:
                near = pairs_in_window(cached / prompts, prefill / prompts, cache.window, ops)
                pairs_seen = ops.minimum(pairs, prompts * near)
            # A sequence's cache is read once for all the tokens that are verified.
            compute = compute + cache.decoded * seen * self.verified + cache.pair * pairs_seen
            read = seen + ops.minimum(cached, cache.window)
            memory = memory + cache.moved * (read + decode * self.verified + prefill)
        return compute, memory

    def _experts(self, experts: ExpertCost[Value], tokens: Value) -> tuple[Value, Value]:
        """Experts of the slowest rank: read once, and computing more than its share of tokens."""
        read = experts_read(experts.experts, experts.chosen, tokens)
        share = slowest_rank_experts(
            experts.experts, read, experts.ranks, experts.largest, self.ops
        )
        skew = share * experts.ranks / self.ops.maximum(read, 1e-300)
        return experts.cost.token * tokens * skew, experts.cost.weights * share

    def _overlapped(self, parts: list[tuple[Value, Value]]) -> tuple[Value, Value]:
        """Each part takes the larger of its two times, and a share of the smaller."""
        compute = memory = 0 * self.overlap
        for by_compute, by_memory in parts:
            slower = by_compute > by_memory
            compute = compute + by_compute * self.ops.where(slower, 1.0, self.overlap)
            memory = memory + by_memory * self.ops.where(slower, self.overlap, 1.0)
        return compute, memory

    def _interconnect(self, tokens: Value, headed: Value) -> Value:
        """The layers' all-reduces in each attention group; the embedding's and the logits' once.

        With attention-DP, tokens are dispatched to their experts and combined by all-to-all.
        """
        link, ranks = self.link, self.link.attention_ranks
        reduce = all_reduce_seconds(tokens * link.hidden, ranks, *link.inner, self.ops.minimum)
        gather = all_to_all_seconds(headed * link.logits, ranks, *link.inner)
        dispatch = all_to_all_seconds(tokens * link.dispatched, link.ranks, *link.outer)
        hop = link.hop_latency + tokens * link.hop_token
        return link.reduces * reduce + link.gathers * gather + link.dispatches * dispatch + hop

    def _context_exchange(self, decode: Value) -> Value:
        """Decode context parallelism: in each layer the queries of its ranks' heads are gathered,
        and the parts of their outputs exchanged."""
        time = 0 * decode
        for cache in self.caches:
            each = all_to_all_seconds(
                decode * cache.exchanged, self.link.context_ranks, *self.link.inner
            )
            time = time + cache.exchanges * each
        return time

    def row(self, index: int) -> StageCost[float]:
        """One of many stages, its costs as floats."""
        costs = {f.name: _row(getattr(self, f.name), index) for f in fields(self)}
        return StageCost(**costs | {"ops": ON_FLOATS})


def _row(value: Any, index: int) -> Any:
    """The same structure with the row of each of its columns."""
    if isinstance(value, np.ndarray):
        return float(value[index, 0])
    if isinstance(value, tuple):
        return tuple(_row(each, index) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(*(_row(getattr(value, f.name), index) for f in fields(value)))
    return value


def pairs_in_window(before: Value, tokens: Value, window: float, ops: Operations[Value]) -> Value:
    """Query-key pairs of a prompt's chunk in a sliding window: the i-th of `tokens` sees
    min(before + i, window)."""
    rising = ops.minimum(ops.maximum(window - before, 0.0), tokens)
    return rising * (before + (rising + 1) / 2) + (tokens - rising) * window


def experts_read(experts: int, chosen: int, tokens: Value) -> Value:
    """Distinct experts that `tokens` tokens of a step use in a layer: E (1 - (1 - k/E)^T).

    Exact for uniform routing, an upper bound under skew; `chosen` at one token.
    """
    unread: Value = (1 - chosen / experts) ** tokens
    return experts * (1 - unread)


def slowest_rank_experts(
    experts: int, read: Value, ranks: Value, largest: Value, ops: Operations[Value]
) -> Value:
    """Experts read on the slowest of `ranks` ranks that hold them: the mean, plus the expected
    largest deviation of as many hypergeometric counts, `largest` standard deviations."""
    share = read / experts
    held = experts / ranks
    variance = held * share * (1 - share) * (experts - held) / max(experts - 1, 1)
    deviation: Value = ops.maximum(variance, 0.0) ** 0.5
    return ops.minimum(read / ranks + largest * deviation, ops.minimum(read, held))
